"""pareto_path: the trees that no other is as good as in two outcomes, and what they are worth on other people."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from policytree.common.calls import check_fit_arguments
from policytree.common.row_labels import aligns_rows
from policytree.common.typing import Column, PerTreatment, Table
from policytree.common.validation import is_real
from policytree.constraints.amounts import Limit
from policytree.constraints.people import MAXIMIZE, MINIMIZE, further_outcomes
from policytree.data.views import Shown
from policytree.estimators.depth_choice import of_chosen_size
from policytree.estimators.inputs import n_threads
from policytree.estimators.leaf_sizes import infeasible
from policytree.estimators.policy import PolicyTree
from policytree.estimators.search import Job, chosen_solver
from policytree.evaluation.leaves.summary import HELD_OUT
from policytree.evaluation.policy_value.values import policy_value
from policytree.evaluation.targeting.budget_path import PARTS, fitted_within, path_frame, rewards_of_path
from policytree.exceptions import InputError, SearchWarning, quoted
from policytree.problem.types import SearchLimits
from policytree.solvers.constrained.front import FrontTree, front_of_two
from policytree.solvers.constrained.solve import Budgeted

if TYPE_CHECKING:
    from policytree.plotting.pareto import ParetoPathDisplay


@dataclass(frozen=True, eq=False, repr=False)
class ParetoPath(Shown):
    """Trees from the best one by a further outcome to the best one by the rewards: the Pareto front of the two.

    Attributes
    ----------
    estimators : tuple of PolicyTree
        Fitted, each with its own mean of the further outcome as ``Limit``: it is the best tree of that limit.
    outcome : str
        Name of the further outcome.
    outcome_direction : {"minimize", "maximize"}
        Which way that is better.
    outcome_means : ndarray of shape (n_trees,)
        Its mean under each tree, on the rows that chose the trees.
    values : ndarray of shape (n_trees,)
        Mean reward of these rows under each tree (net of ``sample_treatment_costs``, without the price of leaves): they
        are flattered, see :meth:`evaluate`.
    low, high : ndarray of shape (n_trees,)
        Each tree is the best one by a weighted sum of both if a unit of the further outcome is worth that much mean
        reward; NaN for trees that are best at no weight, since a line between two others passes above them.
    every : bool
        Whether the path holds all trees of the front (depth two or less), one of every pair of means, and not only
        those that are best at some weight.
    proved : bool
        Whether all searches ended with a proof: then no tree is lacking.

    Examples
    --------
    >>> from policytree import PolicyTree
    >>> from policytree.evaluation import pareto_path
    >>> X, rewards = [[1.0], [2.0], [3.0], [4.0]], [[0.0, -1.0], [0.0, 1.0], [0.0, 2.0], [0.0, 4.0]]
    >>> harm = [[0.0, 0.1], [0.0, 0.2], [0.0, 0.1], [0.0, 0.1]]
    >>> path = pareto_path(PolicyTree(max_depth=1), X, rewards, outcomes={"harm": harm})
    >>> path.estimators[path.within(0.05)].predict(X).tolist()
    [0, 0, 1, 1]
    """

    estimators: tuple[PolicyTree, ...]
    outcome: str
    outcome_direction: str
    outcome_means: np.ndarray
    values: np.ndarray
    low: np.ndarray
    high: np.ndarray
    every: bool
    proved: bool
    _objectives: np.ndarray = field(repr=False)

    def __len__(self) -> int:
        return len(self.estimators)

    @property
    def direction(self) -> str:
        """Which way rewards are better."""
        return self.estimators[0].direction or "maximize"

    def within(self, limit: float) -> int:
        """Position of the best tree of the path whose mean of the further outcome keeps to a limit.

        Where the path holds every tree of the front, this is the best tree of all that keep to it. The limit is the
        most that the mean may be, or the least if more of the outcome is better, on the rows that chose the trees.

        Raises
        ------
        InputError
            If it is no number, or no tree keeps to it.
        """
        if not is_real(limit) or not np.isfinite(limit):
            raise InputError(f"limit must be a finite number; got {quoted(limit)}.")
        more = self.outcome_direction == MAXIMIZE
        kept = self.outcome_means >= limit if more else self.outcome_means <= limit
        if not kept.any():
            raise InputError(
                f"No tree of the path has a mean of {self.outcome!r} {'above' if more else 'below'} "
                f"{self.outcome_means[0]:.6g}; change the limit of {limit:g} to that."
            )
        return int(np.flatnonzero(kept)[-1])

    def weighted(self, weight: float) -> int:
        """Position of the best tree by a weighted sum: a unit of the further outcome counts as so much mean reward.

        Parameters
        ----------
        weight : float
            At least 0. It is what a unit of an outcome of which less is better costs, or of which more is better
            brings.

        Raises
        ------
        InputError
            If it is no number of at least 0.
        """
        if not is_real(weight) or not 0 <= weight < np.inf:
            raise InputError(f"weight must be a finite number of at least 0; got {quoted(weight)}.")
        reward = 1.0 if self.direction == "maximize" else -1.0
        outcome = 1.0 if self.outcome_direction == MAXIMIZE else -1.0
        return int(np.argmax(reward * self._objectives + outcome * weight * self.outcome_means))

    def to_frame(self) -> pd.DataFrame:
        """One row a tree: the further outcome's mean (by its name), value, low, high, n_leaves, depth, rows."""
        return path_frame(self, self.outcome, self.outcome_means)

    def plot(
        self, held_out: pd.DataFrame | None = None, *, chosen: int | None = None, **options: Any
    ) -> ParetoPathDisplay:
        """Draw both outcomes of every tree, with the rules of some; ``to_html`` of the display says all of them.

        Parameters
        ----------
        held_out : DataFrame, optional
            From :meth:`evaluate`: then the chosen tree, or those at the hull's corners, are drawn on other people too.
        chosen : int, optional
            Position of the tree to mark, as :meth:`within` and :meth:`weighted` return it.
        **options
            ``ax``, ``title``, ``unit`` and ``trees``, as in
            :meth:`policytree.plotting.pareto.ParetoPathDisplay.plot`.
        """
        from policytree.plotting.pareto import ParetoPathDisplay

        return ParetoPathDisplay(self, held_out, chosen=chosen).plot(**options)

    @aligns_rows
    def evaluate(
        self,
        X: Table,
        rewards: Table,
        *,
        outcomes: Mapping[str, Any],
        sample_treatment_costs: PerTreatment | None = None,
        groups: Column | None = None,
        sample_weight: Column | None = None,
        level: float = 0.95,
    ) -> pd.DataFrame:
        """Both outcomes under every tree, on people whose data did not influence it.

        The trees are many and look at the same people: of their intervals, each holds by itself. Who picks the tree
        that looks best here needs other people again to judge it.

        Parameters
        ----------
        X : table of shape (n, p)
            Of other people than the trees were learnt from.
        rewards : DataFrame or array of shape (n, K)
            Their rewards, in the columns of ``fit``.
        outcomes : mapping of name to table of shape (n, K)
            Their rewards by the further outcome.
        sample_treatment_costs : mapping, array of shape (K,) or (n, K), optional
            Cost of every treatment, in the outcome's unit; values are net of it.
        groups : array of shape (n,), optional
            Clusters.
        sample_weight : array of shape (n,), optional
        level : float
            Coverage of each interval.

        Returns
        -------
        DataFrame
            One row a tree. Columns: (quantity, number) with the quantities "value" and the further outcome's name, each
            with value, standard_error, lower, upper; and rows.

        Raises
        ------
        InputError
            If a column or treatment is missing, shapes differ, values are missing or infinite, or there are fewer than
            two clusters.
        """
        named = _one_outcome(outcomes)
        if named[0] != self.outcome:
            raise InputError(f"outcomes holds {named[0]!r}, but the path is one of {self.outcome!r}; pass that.")
        tables = (
            rewards_of_path(self, rewards, sample_treatment_costs),
            rewards_of_path(self, named[1], argument=f"outcomes[{named[0]!r}]"),
        )
        options: dict[str, Any] = {"groups": groups, "sample_weight": sample_weight, "level": level}
        rows = []
        for tree in self.estimators:
            chosen = tree.predict(X)
            found = [policy_value(chosen, table, **options) for table in tables]
            rows.append([number for each in found for number in each.numbers.values()])
        columns = pd.MultiIndex.from_product([["value", self.outcome], PARTS])
        out = pd.DataFrame(rows, columns=columns)
        out["rows", ""] = HELD_OUT
        return out


@aligns_rows
def pareto_path(
    estimator: PolicyTree, X: Table, rewards: Table, *, outcomes: Mapping[str, Any], **fit_params: Any
) -> ParetoPath:
    """Find the trees that no other is as good as in two outcomes at once: the rewards, and a further outcome.

    Of trees of depth two or less all are found; of deeper ones those that are best by some weighted sum of the two.

    Parameters
    ----------
    estimator : PolicyTree
        Not fitted; ``time_limit`` is for the whole path. It must not have constraints.
    X : DataFrame or array of shape (n, p)
        Columns that the trees may split on.
    rewards : DataFrame or array of shape (n, K)
        Reward of every row under every treatment; column names are the treatments' labels.
    outcomes : mapping of name to table of shape (n, K)
        One further outcome: its rewards. A pair of a table and "maximize" is an outcome of which more is better; less
        is better otherwise.
    **fit_params
        Passed to ``fit``: ``sample_weight``, ``T``, ``sample_treatment_costs``.

    Returns
    -------
    ParetoPath

    Raises
    ------
    InputError
        If the estimator is no PolicyTree or has constraints, outcomes are not one, or ``fit`` would refuse the data.

    Warns
    -----
    SearchWarning
        If a search ended without a proof.

    See Also
    --------
    policytree.constraints.Limit : the best tree of one limit, of any depth, without the rest of the front.

    Notes
    -----
    With ``regularization`` the first of the two is the objective: mean reward less the price of leaves.

    Two outcomes can be weighed in one reward instead, ``rewards - weight * harm``, where somebody can say what a unit
    of the second is worth in units of the first. The tree for one weight is found as fast as any, and is on this path;
    but trees between two corners of the hull are best at no weight (``low`` is NaN), however much a limit would ask for
    them.

    Examples
    --------
    >>> from policytree import PolicyTree
    >>> from policytree.evaluation import pareto_path
    >>> X, rewards = [[1.0], [2.0], [3.0], [4.0]], [[0.0, -1.0], [0.0, 1.0], [0.0, 2.0], [0.0, 4.0]]
    >>> harm = [[0.0, 0.1], [0.0, 0.2], [0.0, 0.1], [0.0, 0.1]]
    >>> path = pareto_path(PolicyTree(max_depth=1), X, rewards, outcomes={"harm": harm})
    >>> path.to_frame()[["harm", "value"]]
        harm  value
    0  0.000   0.00
    1  0.025   1.00
    2  0.050   1.50
    3  0.100   1.75
    """
    if not isinstance(estimator, PolicyTree):
        raise InputError(
            f"pareto_path takes a PolicyTree; for a {type(estimator).__name__}, pass a PolicyTree and its rewards."
        )
    if estimator.constraints:
        raise InputError("pareto_path takes no constraints: leave them out, or fit one tree at a time.")
    name, _ = _one_outcome(outcomes)
    first = of_chosen_size(estimator).set_params(constraints=[Limit(name, 0.0)])
    check_fit_arguments(first, fit_params)
    first._losses_are_final = False
    job = first._prepare(X, rewards, outcomes=outcomes, **fit_params)
    first.guesses_ = None
    limits = SearchLimits(first.time_limit, first.memory_limit, n_threads(first.n_jobs))
    solve = chosen_solver(first.solver, first.solver_options, first.random_state)
    trees, every, proved = front_of_two(job.problem, job.constraints[0], limits, solve=solve)
    if not trees:
        raise infeasible(job.problem, first.min_samples_leaf, first.min_samples_per_treatment, job.actions)
    if not proved:
        warnings.warn(
            "The search for the front ended without a proof: trees may be lacking, and some of the path may be beaten.",
            SearchWarning,
            stacklevel=2,
        )
    return _path(first, job, name, trees, every, proved)


def _one_outcome(outcomes: Any) -> tuple[str, Any]:
    """The name and the table of the one further outcome."""
    found = further_outcomes(outcomes)
    if len(found) != 1:
        raise InputError(
            f"A path is of two outcomes, the rewards and one more; outcomes holds {len(found)}: give one of them, and "
            "limits on the others to a PolicyTree."
        )
    ((name, (table, _)),) = found.items()
    return name, table


def _path(first: PolicyTree, job: Job, name: str, trees: list[FrontTree], every: bool, proved: bool) -> ParetoPath:
    unit = 1.0 / job.total_weight
    fitted = tuple(
        fitted_within(first, job, Budgeted(t.solution, (t.mean,), (t.low,)), constraints=[Limit(name, t.mean)])
        for t in trees
    )
    chosen = [t.solution.tree.action[t.solution.tree.apply(job.X)] for t in trees]
    values = [float(np.average(job.values[np.arange(len(a)), a], weights=job.weight)) for a in chosen]
    assert job.limited is not None, "there is a further outcome"
    return ParetoPath(
        fitted,
        name,
        MAXIMIZE if job.limited.larger_is_better[name] else MINIMIZE,
        np.array([t.mean for t in trees]),
        np.array(values),
        np.array([t.low * unit for t in trees]),
        np.array([t.high * unit for t in trees]),
        every,
        proved,
        np.array([tree.objective_value_ for tree in fitted]),
    )
