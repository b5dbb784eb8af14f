"""tree_path: every tree that some regularization makes the best one."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from policytree.common.calls import check_fit_arguments
from policytree.common.row_labels import aligns_rows
from policytree.common.typing import Column, Table
from policytree.data.views import Shown
from policytree.estimators.base import TreeEstimator
from policytree.estimators.depth_choice import of_chosen_size
from policytree.estimators.inputs import check_number, leaf_penalty, n_threads
from policytree.estimators.leaf_sizes import infeasible
from policytree.estimators.search import chosen_solver, make_guesses, search
from policytree.exceptions import InputError, SearchWarning
from policytree.problem.types import SearchLimits
from policytree.solvers.regularization_path import solution_path

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class TreePath(Shown):
    """Trees from the single leaf to the largest, as regularization falls.

    Attributes
    ----------
    estimators : tuple of fitted estimators
        Each with a ``regularization`` at which its tree is the best one.
    low, high : ndarray of shape (n_trees,)
        The range of regularization over which each tree is the best one; ``high[0]`` is infinite.
    n_leaves : ndarray of shape (n_trees,), int64
    values : ndarray of shape (n_trees,)
        Mean loss without the price of the leaves (error rate, mean cost), or mean reward; costs of tests included
        (an estimator's ``expected_cost_`` says how much they are).
    proved : bool
        Whether all searches ended with a proof: then every tree is optimal on its range, and none is lacking.

    Examples
    --------
    >>> from policytree import OptimalTreeClassifier, tree_path
    >>> X, y = [[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1]
    >>> path = tree_path(OptimalTreeClassifier(max_depth=1), X, y)
    >>> path.n_leaves.tolist(), path.proved
    ([1, 2], True)
    """

    estimators: tuple
    low: np.ndarray
    high: np.ndarray
    n_leaves: np.ndarray
    values: np.ndarray
    proved: bool

    def __len__(self) -> int:
        return len(self.estimators)

    def to_frame(self) -> pd.DataFrame:
        """One row a tree: low, high, n_leaves, depth, value."""
        import pandas as pd

        depth = [estimator.get_depth() for estimator in self.estimators]
        return pd.DataFrame(
            {"low": self.low, "high": self.high, "n_leaves": self.n_leaves, "depth": depth, "value": self.values}
        )


@aligns_rows
def tree_path(
    estimator: TreeEstimator, X: Table, y: Column, *, min_regularization: float = 0.0, **fit_params: Any
) -> TreePath:
    """Find every tree that is optimal for some regularization, without trying values of it.

    Parameters
    ----------
    estimator : OptimalTreeClassifier, CostSensitiveTreeClassifier or PolicyTree
        Not fitted; its ``regularization`` does not matter, everything else holds. ``time_limit`` is for the whole path.
    X : DataFrame or array of shape (n, p)
        The table that ``estimator.fit`` takes.
    y : array of shape (n,), or of shape (n, K)
        Labels; for :class:`policytree.PolicyTree` the rewards.
    min_regularization : float
        Where the path ends; with 0 its last tree has the least loss within ``max_depth`` and ``max_leaf_nodes``. Small
        values may need long searches.
    **fit_params
        Passed to ``fit``: ``sample_weight``, ``T``, ...

    Returns
    -------
    TreePath

    Raises
    ------
    InputError
        If the estimator has no regularization path, or ``fit`` would refuse the data.

    Notes
    -----
    Data are checked, binned and guessed at once for the whole path. See
    :func:`policytree.solvers.regularization_path.solution_path`.

    Examples
    --------
    >>> from policytree import OptimalTreeClassifier, tree_path
    >>> X, y = [[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 0]
    >>> tree_path(OptimalTreeClassifier(max_depth=2), X, y).to_frame()[["low", "high", "n_leaves", "value"]]
         low   high  n_leaves  value
    0  0.125    inf         1   0.25
    1  0.000  0.125         3   0.00
    """
    if not isinstance(estimator, TreeEstimator):
        raise InputError(
            f"tree_path takes an OptimalTreeClassifier, CostSensitiveTreeClassifier or PolicyTree; for a "
            f"{type(estimator).__name__}, pass a PolicyTree and its rewards."
        )
    check_number("min_regularization", min_regularization, 0)
    first = of_chosen_size(estimator)
    check_fit_arguments(first, fit_params)
    job = first._prepare(X, y, **fit_params)
    if job.constraints:
        raise InputError(
            "tree_path takes no constraints; leave them out, or take budget_path for those of all budgets."
        )
    first.guesses_, report = make_guesses(job, first.guesses, first.random_state)
    solver = chosen_solver(first.solver, first.solver_options, first.random_state, job.objective)
    solve = partial(_solve, solver=solver, guesses=first.guesses_, report=report)
    limits = SearchLimits(first.time_limit, first.memory_limit, n_threads(first.n_jobs))
    floor = None if job.objective is None else 0.0
    steps, proved = solution_path(
        job.problem,
        limits,
        min_penalty=leaf_penalty(min_regularization, job.total_weight, "min_regularization"),
        solve=solve,
        floor=floor,
    )
    if not steps:
        per_arm = getattr(first, "min_samples_per_treatment", 0)
        raise infeasible(job.problem, first.min_samples_leaf, per_arm, job.actions)
    if not proved:
        warnings.warn(
            "Searches on the path ended without a proof: trees may be lacking, ranges are those of the trees found.",
            SearchWarning,
            stacklevel=2,
        )
    unit = 1.0 / job.total_weight
    return TreePath(
        tuple(_fitted(first, job, step.penalty * unit, step.solution) for step in steps),
        np.array([step.low * unit for step in steps]),
        np.array([step.high * unit for step in steps]),
        np.array([step.solution.tree.n_leaves for step in steps], dtype=np.int64),
        np.array([first._sign() * step.loss * unit for step in steps]),
        bool(proved),
    )


def _solve(problem, limits, *, solver, guesses, report):
    return search(problem, solver, guesses, report, limits)


def _fitted(first: TreeEstimator, job, regularization: float, solution) -> TreeEstimator:
    """A fitted estimator that shares what was learnt of the data."""
    out = clone(first).set_params(regularization=regularization)
    for name, value in vars(first).items():
        if name.endswith("_") and not name.startswith("_"):
            setattr(out, name, value)
    return out._keep(job.with_regularization(regularization), solution, warn=False)
