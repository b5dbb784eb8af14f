"""Solvers are functions ``(Problem, SearchLimits) -> Solution``; a new one is a file and its line in ``SOLVERS`` here.

    core              from a problem to integer rows and back to a tree; no search
    exact             branch and bound for losses that add up over rows
    multi_objective   Pareto fronts, and losses that are monotone in errors
    constrained       budgets and shares: the Lagrangian dual, then the duality gap
    nonadditive       F-scores and areas under ROC curves
    rashomon          all trees near the optimum
    guided            any solver within guesses (McTavish et al.)
    approximate       duplication, sampling, and the solver that chooses
    test_costs        greedy trees of low expected test cost
    out_of_core       trees from tables, without rows in memory
    kernels           all that numba compiles

``regularization_path.py`` solves for every leaf penalty, wherever two known trees cost the same.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache, partial

from policytree.exceptions import InputError, quoted
from policytree.problem.types import Problem, Solution
from policytree.solvers.approximate.auto import solve_auto
from policytree.solvers.approximate.duplication import solve_duplication
from policytree.solvers.approximate.sampling import solve_sampling
from policytree.solvers.exact.direct import solve_direct

Solver = Callable[..., Solution]  # (Problem, SearchLimits | None, **options) -> Solution

SOLVERS: dict[str, Solver] = {"direct": solve_direct}  # these prove the optimum of the problem as stated
APPROXIMATE_SOLVERS: dict[str, Solver] = {
    "auto": solve_auto,
    "duplication": solve_duplication,
    "sampling": solve_sampling,
}
ALL_SOLVERS: dict[str, Solver] = SOLVERS | APPROXIMATE_SOLVERS


def get_solver(name: str, options: Mapping | None = None):
    """The solver of that name, with its options set.

    Parameters
    ----------
    name : {"direct", "duplication", "sampling", "auto"}
    options : mapping, optional
        Keyword arguments of the solver's function, for example ``{"factor": 50}``.

    Raises
    ------
    InputError
        If there is no such solver, or it knows no such option.

    Examples
    --------
    >>> from policytree.solvers import get_solver
    >>> get_solver("duplication", {"factor": 50}).keywords
    {'factor': 50}
    """
    if not isinstance(name, str) or name not in ALL_SOLVERS:
        raise InputError(f"solver={quoted(name)} is not known; use one of {', '.join(map(repr, ALL_SOLVERS))}.")
    if not options:
        return ALL_SOLVERS[name]
    allowed = solver_options(name)
    unknown = [option for option in options if option not in allowed]
    if unknown:
        raise InputError(
            f"solver_options holds {unknown[0]!r}, which solver={name!r} does not know; it knows {', '.join(allowed)}."
        )
    if not callable(options.get("solve", ALL_SOLVERS[name])):
        raise InputError(f"solve must be a solver, a function of problem and limits; got {quoted(options['solve'])}.")
    return partial(ALL_SOLVERS[name], **options)


@cache
def solver_options(name: str) -> tuple[str, ...]:
    """Names of the options of a solver.

    Parameters
    ----------
    name : {"direct", "duplication", "sampling", "auto"}

    Examples
    --------
    >>> from policytree.solvers import solver_options
    >>> solver_options("sampling")
    ('amplification', 'n_draws', 'random_state', 'delta', 'solve')
    """
    solver = ALL_SOLVERS[name]
    named = [p.name for p in inspect.signature(solver).parameters.values() if p.kind is p.KEYWORD_ONLY]
    return tuple(dict.fromkeys([*named, *getattr(solver, "switches", ())]))


def draws(name: str) -> bool:
    """Whether a solver draws random numbers: then it takes a seed, ``random_state``. Unknown names draw nothing.

    Parameters
    ----------
    name : {"direct", "duplication", "sampling", "auto"}

    Examples
    --------
    >>> from policytree.solvers import draws
    >>> draws("sampling"), draws("direct")
    (True, False)
    """
    return isinstance(name, str) and name in ALL_SOLVERS and "random_state" in solver_options(name)


def time_estimate(name: str) -> Callable[[Problem], float] | None:
    """How to estimate a solver's seconds, if its function says so by an attribute ``estimated_seconds``.

    Parameters
    ----------
    name : {"direct", "duplication", "sampling", "auto"}

    Examples
    --------
    >>> from policytree.solvers import time_estimate
    >>> time_estimate("direct") is None, time_estimate("sampling") is None
    (False, True)
    """
    return getattr(ALL_SOLVERS[name], "estimated_seconds", None)


__all__ = [
    "ALL_SOLVERS",
    "APPROXIMATE_SOLVERS",
    "SOLVERS",
    "draws",
    "get_solver",
    "solve_auto",
    "solve_direct",
    "solve_duplication",
    "solve_sampling",
    "solver_options",
    "time_estimate",
]
