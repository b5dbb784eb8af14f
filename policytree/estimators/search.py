"""A fit as a problem: what is searched, by which solver, within which guesses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils import check_random_state

from policytree.estimators.inputs import leaf_penalty
from policytree.exceptions import InputError, quoted
from policytree.guesses.reference import ReferenceGuesses, resolve_guesses
from policytree.guesses.thresholds import snap_thresholds
from policytree.objectives.objective import Objective
from policytree.problem.types import Guesses, Problem, SearchLimits, Solution
from policytree.solvers import draws, get_solver
from policytree.solvers.core.constraints import Constraint
from policytree.solvers.guided.solve import solve_with_guesses
from policytree.solvers.kernels.compiling import seconds_compiling
from policytree.solvers.nonadditive.registry import solver_for

if TYPE_CHECKING:
    from policytree.constraints.constraint import WorstServed
    from policytree.constraints.people import Limited


@dataclass(frozen=True, slots=True)
class Job:
    """One fit, ready to be searched.

    Attributes
    ----------
    X : ndarray of shape (n, p)
        Encoded rows of positive weight.
    problem : Problem
        Its losses are multiplied by weights, so that trees are judged by sums, not by means.
    total_weight : float
        Sum of the weights: sums divided by it are means.
    actions : tuple
        The user's labels.
    values : ndarray of shape (n, K)
        Values whose weighted means are ``node_values_``.
    weight : ndarray of shape (n,)
    objective : Objective or None
        Objective of the search, where that is no sum of losses over rows.
    constraints : tuple of Constraint
        Constraints on the tree, if any.
    test_costs : ndarray of shape (p,) or None
        Cost of a question about each column, charged or limited.
    worst : tuple of WorstServed
        Where trees are judged by the group that they serve worst: one search per group.
    limited : Limited or None
        Further outcomes and groups, of which the fit reports what the tree comes to.
    """

    X: np.ndarray
    problem: Problem
    total_weight: float
    actions: tuple
    values: np.ndarray
    weight: np.ndarray
    objective: Objective | None = None
    constraints: tuple[Constraint, ...] = ()
    test_costs: np.ndarray | None = None
    worst: tuple[WorstServed, ...] = ()
    limited: Limited | None = None

    def with_regularization(self, regularization: float) -> Job:
        """The same with another price of a leaf, in the mean loss."""
        return replace(
            self, problem=replace(self.problem, leaf_penalty=leaf_penalty(regularization, self.total_weight))
        )


def check_search_arguments(solver, options, guesses) -> None:
    """Refuse an unknown solver, option or guess before anything is computed."""
    if options is not None and not isinstance(options, Mapping):
        raise InputError(f"solver_options must be a mapping of option names to values or None; got {quoted(options)}.")
    get_solver(solver, options)
    resolve_guesses(guesses)


def make_guesses(job: Job, guesses, random_state) -> tuple[Guesses | None, dict]:
    """The guesses that an estimator's ``guesses=`` stands for, and what is to be reported of them."""
    seed = 0 if guesses is None else _seed(random_state)
    resolved = resolve_guesses(guesses, seed)
    if isinstance(resolved, ReferenceGuesses):
        made, report = resolved.make(job.problem.data, job.problem.losses)
        return _with_roots(made, job.problem.root_features), report
    if resolved is not None and resolved.thresholds is not None:
        features = job.problem.data.features
        resolved = replace(resolved, thresholds=snap_thresholds(job.X, features, resolved.thresholds))
    return resolved, {}


def guesses_losses(guesses) -> bool:
    """Whether guesses are, or include, lower bounds from a reference's losses."""
    resolved = resolve_guesses(guesses)
    if isinstance(resolved, ReferenceGuesses):
        return "lower_bounds" in resolved.names
    return resolved is not None and resolved.reference_losses is not None


def _with_roots(guesses: Guesses, roots: tuple[int, ...] | None) -> Guesses:
    """A first split needs its features even where a reference model does without: these keep all their thresholds."""
    if roots is None or guesses.thresholds is None:
        return guesses
    kept = tuple(None if j in roots and t is not None and not len(t) else t for j, t in enumerate(guesses.thresholds))
    return replace(guesses, thresholds=kept)


def chosen_solver(solver: str, options, random_state, objective: Objective | None = None):
    """The solver as a function of problem and limits; a seed is drawn if it takes one and none is set."""
    if objective is not None:
        return solver_for(objective)
    options = dict(options or {})
    if draws(solver):
        options.setdefault("random_state", _seed(random_state))
    return get_solver(solver, options)


def _seed(random_state) -> int:
    if isinstance(random_state, (int, np.integer)) and random_state >= 0:
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def search(problem: Problem, solve, guesses: Guesses | None, report: dict, limits: SearchLimits) -> Solution:
    """Solve, within guesses if there are any; the report joins the guarantees."""
    compiled = seconds_compiling()
    if guesses is None:
        solution = solve(problem, limits)
    else:
        solution = solve_with_guesses(problem, guesses, limits, solve=solve)
        solution = replace(solution, guarantees={**solution.guarantees, **report})
    return replace(solution, compile_seconds=seconds_compiling() - compiled)
