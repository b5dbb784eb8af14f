"""budget_path: every tree that is the best one at some price of money, and what it is worth on other people."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from policytree.common.calls import check_fit_arguments
from policytree.common.row_labels import aligns_rows
from policytree.common.typing import Column, PerTreatment, Table
from policytree.common.validation import columns_by_label, is_real
from policytree.constraints.amounts import Budget
from policytree.constraints.checks import asked
from policytree.data.views import Shown
from policytree.estimators.depth_choice import of_chosen_size
from policytree.estimators.inputs import n_threads
from policytree.estimators.leaf_sizes import infeasible
from policytree.estimators.policy import PolicyTree
from policytree.estimators.search import Job, chosen_solver
from policytree.evaluation.inputs import reward_frame
from policytree.evaluation.leaves.summary import HELD_OUT, TRAINING_ROWS
from policytree.evaluation.policy_value.values import policy_value
from policytree.exceptions import InputError, SearchWarning, quoted
from policytree.problem.types import SearchLimits
from policytree.solvers.constrained.front import FrontTree, hull_of_two
from policytree.solvers.constrained.solve import Budgeted
from policytree.weighting.costs import treatment_costs

if TYPE_CHECKING:
    from policytree.plotting.budget import BudgetPathDisplay

PARTS = ("value", "standard_error", "lower", "upper")


@dataclass(frozen=True, eq=False, repr=False)
class BudgetPath(Shown):
    """Trees from the cheapest to the best one without a budget: the corners of the hull of (spend, value).

    Attributes
    ----------
    estimators : tuple of PolicyTree
        Fitted, each with its own spend as ``budget``: it is the best tree of that budget.
    spend : ndarray of shape (n_trees,)
        Per person, on the rows that chose the trees.
    values : ndarray of shape (n_trees,)
        Mean reward of these rows under each tree (net of ``sample_treatment_costs``, without the price of leaves): they
        are flattered, see :meth:`evaluate`.
    low, high : ndarray of shape (n_trees,)
        Gain in mean reward of one more unit of spend: each tree is the best one if money is worth that much.
        ``high[0]`` is infinite, ``low[-1]`` zero.
    proved : bool
        Whether all searches ended with a proof: then no corner is lacking.

    Examples
    --------
    >>> from policytree import PolicyTree
    >>> from policytree.evaluation import budget_path
    >>> X, rewards = [[1.0], [2.0], [3.0], [4.0]], [[0.0, -1.0], [0.0, 1.0], [0.0, 2.0], [0.0, 4.0]]
    >>> path = budget_path(PolicyTree(max_depth=1), X, rewards, budget_costs=[0, 100])
    >>> path.spend.tolist(), path.values.tolist()
    ([0.0, 25.0, 50.0, 75.0], [0.0, 1.0, 1.5, 1.75])
    """

    estimators: tuple[PolicyTree, ...]
    spend: np.ndarray
    values: np.ndarray
    low: np.ndarray
    high: np.ndarray
    proved: bool
    _objectives: np.ndarray = field(repr=False)

    def __len__(self) -> int:
        return len(self.estimators)

    @property
    def direction(self) -> str:
        """Which way rewards are better."""
        return self.estimators[0].direction or "maximize"

    def bound_at(self, budget: float) -> float:
        """No tree that spends at most this a person has a better ``objective_value_`` than this (on these rows).

        The line between two corners, which lots between their trees reach. If searches ended without a proof, only what
        no tree at all can reach is known.

        Raises
        ------
        InputError
            If the budget is no number, or less than the cheapest tree spends.
        """
        if not is_real(budget) or not np.isfinite(budget):
            raise InputError(f"budget must be a finite number; got {quoted(budget)}.")
        if budget < self.spend[0]:
            raise InputError(f"budget is {budget:g} a person, but the cheapest tree spends {self.spend[0]:g}.")
        if not self.proved:
            return self.estimators[0].objective_bound_
        return float(np.interp(budget, self.spend, self._objectives))

    def to_frame(self) -> pd.DataFrame:
        """One row a tree: spend, value, low, high, n_leaves, depth, rows."""
        return path_frame(self, "spend", self.spend)

    def plot(self, held_out: pd.DataFrame | None = None, **options: Any) -> BudgetPathDisplay:
        """Draw what every budget buys, with the trees at some corners of the path.

        Parameters
        ----------
        held_out : DataFrame, optional
            From :meth:`evaluate`: values on other people, beside those of the rows that chose the trees.
        **options
            ``ax``, ``title``, ``xlabel``, ``unit`` and ``trees``, as in
            :meth:`policytree.plotting.budget.BudgetPathDisplay.plot`.
        """
        from policytree.plotting.budget import BudgetPathDisplay

        return BudgetPathDisplay(self, held_out).plot(**options)

    @aligns_rows
    def evaluate(
        self,
        X: Table,
        rewards: Table,
        *,
        budget_costs: PerTreatment,
        sample_treatment_costs: PerTreatment | None = None,
        groups: Column | None = None,
        sample_weight: Column | None = None,
        level: float = 0.95,
    ) -> pd.DataFrame:
        """Estimate the spend and the value of every tree on people whose data did not influence it.

        Parameters
        ----------
        X : table of shape (n, p)
            Of other people than the trees were learnt from.
        rewards : DataFrame or array of shape (n, K)
            Their rewards, in the columns of ``fit``.
        budget_costs : mapping, array of shape (K,) or (n, K)
            Cost of every treatment, in the unit of the budgets.
        sample_treatment_costs : mapping, array of shape (K,) or (n, K), optional
            Cost of every treatment, in the outcome's unit; values are net of it.
        groups : array of shape (n,), optional
            Clusters.
        sample_weight : array of shape (n,), optional
        level : float
            Coverage of the intervals.

        Returns
        -------
        DataFrame
            One row a tree. Columns: (quantity, number) with the quantities budget (what the tree was to keep to),
            spend and value, the latter two with value, standard_error, lower, upper; and rows.

        Raises
        ------
        InputError
            If a column or treatment is missing, shapes differ, values are missing or infinite, or there are fewer than
            two clusters.
        """
        table = rewards_of_path(self, rewards, sample_treatment_costs)
        labels = table.columns.tolist()
        costs = pd.DataFrame(treatment_costs(budget_costs, len(table), labels), columns=table.columns)
        options: dict[str, Any] = {"groups": groups, "sample_weight": sample_weight, "level": level}
        rows = []
        for budget, tree in zip(self.spend, self.estimators, strict=True):
            chosen = tree.predict(X)
            both = policy_value(chosen, costs, **options), policy_value(chosen, table, **options)
            rows.append([budget, *(x for e in both for x in e.numbers.values())])
        columns = [("budget", ""), *((what, part) for what in ("spend", "value") for part in PARTS)]
        out = pd.DataFrame(rows, columns=pd.MultiIndex.from_tuples(columns))
        out["rows", ""] = HELD_OUT
        return out


def path_frame(path: Any, quantity: str, means: np.ndarray) -> pd.DataFrame:
    """One row a tree of a path: what is traded for value, by its name, value, low, high, n_leaves, depth, rows."""
    return pd.DataFrame(
        {
            quantity: means,
            "value": path.values,
            "low": path.low,
            "high": path.high,
            "n_leaves": [tree.get_n_leaves() for tree in path.estimators],
            "depth": [tree.get_depth() for tree in path.estimators],
            "rows": TRAINING_ROWS,
        }
    )


def rewards_of_path(
    path: Any, rewards: Table, costs: PerTreatment | None = None, argument: str = "rewards"
) -> pd.DataFrame:
    """Rewards of other people in the order of a path's treatments, (n, K), net of what treatments cost them."""
    table, labels = reward_frame(rewards), path.estimators[0].treatments_.tolist()
    if set(table.columns) != set(labels):
        raise InputError(f"{argument} must have a column for each treatment: {', '.join(map(str, labels))}.")
    table = columns_by_label(table, labels)
    if costs is None:
        return table
    sign = 1.0 if path.direction == "minimize" else -1.0
    return table + sign * treatment_costs(costs, len(table), labels)


@aligns_rows
def budget_path(
    estimator: PolicyTree, X: Table, rewards: Table, *, budget_costs: PerTreatment, **fit_params: Any
) -> BudgetPath:
    """Find every tree that is optimal at some price of the budget, which is its Lagrange multiplier.

    Parameters
    ----------
    estimator : PolicyTree
        Not fitted; a ``Budget`` does not matter, everything else holds. ``time_limit`` is for the whole path. It
        must have no other constraints.
    X : DataFrame or array of shape (n, p)
        Columns that the trees may split on.
    rewards : DataFrame or array of shape (n, K)
        Reward of every row under every treatment; column names are the treatments' labels.
    budget_costs : mapping, array of shape (K,) or (n, K)
        Costs of treatments, in any unit. Treatments that a mapping leaves out cost nothing.
    **fit_params
        Passed to ``fit``: ``sample_weight``, ``T``, ``sample_treatment_costs``.

    Returns
    -------
    BudgetPath

    Raises
    ------
    InputError
        If the estimator is no PolicyTree or has other constraints, or ``fit`` would refuse the data.

    Notes
    -----
    The best tree of a budget between two corners is not on the path: ``PolicyTree(constraints=[Budget(...)])`` finds
    it, below the line that :meth:`~policytree.evaluation.targeting.budget_path.BudgetPath.bound_at` draws.

    Examples
    --------
    >>> from policytree import PolicyTree
    >>> from policytree.evaluation import budget_path
    >>> X, rewards = [[1.0], [2.0], [3.0], [4.0]], [[0.0, -1.0], [0.0, 1.0], [0.0, 2.0], [0.0, 4.0]]
    >>> path = budget_path(PolicyTree(max_depth=1), X, rewards, budget_costs=[0, 100])
    >>> path.to_frame()[["spend", "value", "low", "high"]]
       spend  value   low  high
    0    0.0   0.00  0.04   inf
    1   25.0   1.00  0.02  0.04
    2   50.0   1.50  0.01  0.02
    3   75.0   1.75  0.00  0.01
    """
    if not isinstance(estimator, PolicyTree):
        raise InputError(
            f"budget_path takes a PolicyTree; for a {type(estimator).__name__}, pass a PolicyTree and its rewards."
        )
    if others := [type(each).__name__ for each in asked(estimator) if not isinstance(each, Budget)]:
        raise InputError(f"budget_path takes no {others[0]}: leave it out, or fit one budget at a time.")
    first = of_chosen_size(estimator).set_params(constraints=[Budget(0.0)])
    check_fit_arguments(first, fit_params)
    first._losses_are_final = False
    job = first._prepare(X, rewards, budget_costs=budget_costs, **fit_params)
    first.guesses_ = None
    limits = SearchLimits(first.time_limit, first.memory_limit, n_threads(first.n_jobs))
    solve = chosen_solver(first.solver, first.solver_options, first.random_state)
    trees, proved = hull_of_two(job.problem, job.constraints[0], limits, solve=solve)
    if not trees:
        raise infeasible(job.problem, first.min_samples_leaf, first.min_samples_per_treatment, job.actions)
    if not proved:
        warnings.warn(
            "Searches on the path ended without a proof: corners may be lacking, prices are those of the trees found.",
            SearchWarning,
            stacklevel=2,
        )
    return _path(first, job, trees, proved)


def _path(first: PolicyTree, job: Job, trees: list[FrontTree], proved: bool) -> BudgetPath:
    fitted = tuple(
        fitted_within(first, job, Budgeted(tree.solution, (tree.mean,), (tree.low,)), constraints=[Budget(tree.mean)])
        for tree in trees
    )
    unit = 1.0 / job.total_weight
    chosen = [tree.solution.tree.action[tree.solution.tree.apply(job.X)] for tree in trees]
    values = [float(np.average(job.values[np.arange(len(a)), a], weights=job.weight)) for a in chosen]
    return BudgetPath(
        fitted,
        np.array([tree.mean for tree in trees]),
        np.array(values),
        np.array([tree.low * unit for tree in trees]),
        np.array([tree.high * unit for tree in trees]),
        proved,
        np.array([tree.objective_value_ for tree in fitted]),
    )


def fitted_within(first: PolicyTree, job: Job, found: Budgeted, **arguments: Any) -> PolicyTree:
    """A fitted estimator that shares what was learnt of the data, with some arguments of its own."""
    out = clone(first).set_params(**arguments)
    for name, value in vars(first).items():
        if name.endswith("_") and not name.startswith("_"):
            setattr(out, name, value)
    out._keep_limits(job, found)
    return out._keep(job, found.solution, warn=False)
