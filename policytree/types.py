"""The frozen values that flow between rooms. Shape checks only; numbers are computed elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from policytree.exceptions import InputError
from policytree.features import Feature
from policytree.tree import Tree


@dataclass(frozen=True, slots=True)
class SplitColumn:
    """One ordinal column of codes offered to the search: which split of which feature its cuts stand for.

    A plain numeric feature gives one column. A numeric feature with missing values gives two, one whose splits send
    missing values left and one whose splits send them right. A categorical feature gives one column per category
    (``x == category`` goes left).

    Attributes
    ----------
    feature : int
        Index into ``BinnedData.features``.
    thresholds : ndarray of shape (n_cuts,), float64
        Cut ``b`` sends left what satisfies ``x <= thresholds[b]`` (numeric) or ``x == thresholds[b]`` (categorical).
    missing_left : bool
        Whether missing values go left.
    """

    feature: int
    thresholds: np.ndarray
    missing_left: bool = False


@dataclass(frozen=True, slots=True)
class BinnedData:
    """Integer codes of the features; a column of codes is one contiguous row.

    Attributes
    ----------
    codes : ndarray of shape (n_columns, n), uint8 or uint16
        Or uint32, of one numeric feature that keeps more than 65,536 values, which one search alone takes.
        ``codes[j, i] <= b`` if and only if row ``i`` goes left at cut ``b`` of column ``j``.
    n_bins : ndarray of shape (n_columns,), int64
        Codes of column ``j`` lie in ``range(n_bins[j])``; it has ``n_bins[j] - 1`` cuts.
    columns : tuple of SplitColumn
    features : tuple of Feature
    exact : bool
        False if thresholds were thinned (``max_bins``), so that a certificate holds for the kept thresholds only.
    """

    codes: np.ndarray
    n_bins: np.ndarray
    columns: tuple[SplitColumn, ...]
    features: tuple[Feature, ...]
    exact: bool = True

    def __post_init__(self) -> None:
        if self.codes.ndim != 2 or len(self.codes) != len(self.columns) or len(self.n_bins) != len(self.columns):
            raise InputError("codes, n_bins and columns must describe the same split columns.")

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.codes.shape[1]

    def columns_of(self, features: tuple[int, ...] | None) -> np.ndarray:
        """Which columns are of these features (None: of any), shape (n_columns,), bool."""
        return np.array([features is None or column.feature in features for column in self.columns], dtype=bool)


class Status(Enum):
    """How a search ended, and so what its lower bound certifies."""

    OPTIMAL = "optimal"
    OPTIMAL_GIVEN_GUESSES = "optimal given the guesses"
    TIME_LIMIT = "time limit"
    MEMORY_LIMIT = "memory limit"
    INTERRUPTED = "interrupted"
    HEURISTIC = "heuristic"
    INFEASIBLE = "infeasible"

    @property
    def proved(self) -> bool:
        """Whether the search ended with a proof, if only for the thresholds or depth that were guessed."""
        return self in (Status.OPTIMAL, Status.OPTIMAL_GIVEN_GUESSES)


@dataclass(frozen=True, slots=True)
class Problem:
    """Minimise ``sum of leaf losses + leaf_penalty * leaves + test costs`` over trees on ``data``.

    Attributes
    ----------
    data : BinnedData
    losses : ndarray of shape (n, K), float64
        What it costs, in total, to give row ``i`` action ``k``. Any finite sign.
    leaf_penalty : float
        The price of one leaf, in the unit of the summed losses; >= 0.
    max_depth : int or None
        Largest number of splits on a path. None means no limit.
    min_leaf : int
        Smallest number of rows in a leaf (rows are counted, weights are not).
    arms : ndarray of shape (n,), intp, or None
        The arm (0 .. K - 1) each row was observed in; needed only for ``min_leaf_per_arm``.
    min_leaf_per_arm : int
        Smallest number of rows of each of the K arms in a leaf.
    max_leaf_nodes : int or None
        Largest number of leaves.
    feature_costs : ndarray of shape (n_features,) or None
        What a split on each feature costs for every person who reaches it, in the unit of a loss; finite and >= 0.
    weights : ndarray of shape (n,) or None
        How many persons a row stands for, for ``feature_costs``; one if None. Finite and >= 0.
    root_features : tuple of int or None
        The features that the first split may be on; any if None.
    feature_groups : ndarray of shape (n_features,), int, or None
        Of the features of a group, only the first split on a path is charged; None if every split is.
    """

    data: BinnedData
    losses: np.ndarray
    leaf_penalty: float = 0.0
    max_depth: int | None = 2
    min_leaf: int = 1
    arms: np.ndarray | None = None
    min_leaf_per_arm: int = 0
    max_leaf_nodes: int | None = None
    feature_costs: np.ndarray | None = None
    weights: np.ndarray | None = None
    root_features: tuple[int, ...] | None = None
    feature_groups: np.ndarray | None = None

    def __post_init__(self) -> None:
        if self.losses.ndim != 2 or len(self.losses) != self.data.n_rows:
            raise InputError(
                f"losses must have shape (n, K) with n = {self.data.n_rows} rows of data; got {self.losses.shape}."
            )
        n, K = self.losses.shape
        if n == 0 or K == 0:
            raise InputError("losses must have at least one row and one action.")
        if self.max_depth is not None and self.max_depth < 0:
            raise InputError(f"max_depth must be >= 0 or None; got {self.max_depth}.")
        if self.min_leaf_per_arm > 0:
            arms = self.arms
            if arms is None or arms.shape != (n,) or arms.min() < 0 or arms.max() >= K:
                raise InputError(f"min_leaf_per_arm needs the arm of every row, {n} integers from 0 to {K - 1}.")
        if self.max_leaf_nodes is not None and self.max_leaf_nodes < 1:
            raise InputError(f"max_leaf_nodes must be >= 1 or None; got {self.max_leaf_nodes}.")
        self._check_costs(n)

    @property
    def most_leaves(self) -> int:
        """The largest number of leaves that rows, depth and ``max_leaf_nodes`` allow."""
        n = self.data.n_rows
        depth = 60 if self.max_depth is None else min(self.max_depth, 60)
        return min(n, 2**depth, self.max_leaf_nodes or n)

    @property
    def root_columns(self) -> np.ndarray:
        """Whether the first split may be on each column of the data, shape (n_columns,), bool."""
        return self.data.columns_of(self.root_features)

    @property
    def proved_status(self) -> Status:
        """How a search that ends with a proof ends: thresholds that were thinned are guesses."""
        return Status.OPTIMAL if self.data.exact else Status.OPTIMAL_GIVEN_GUESSES

    def _check_costs(self, n: int) -> None:
        p = len(self.data.features)
        for name, values, size in (("feature_costs", self.feature_costs, p), ("weights", self.weights, n)):
            if values is not None and (values.shape != (size,) or not (np.isfinite(values) & (values >= 0)).all()):
                raise InputError(f"{name} must be {size} finite numbers >= 0, or None.")
        if self.feature_groups is not None and self.feature_groups.shape != (p,):
            raise InputError(f"feature_groups must be {p} numbers of groups, or None.")
        if self.root_features is not None and not set(self.root_features) <= set(range(p)):
            raise InputError(f"root_features must be numbers of features, from 0 to {p - 1}; got {self.root_features}.")


@dataclass(frozen=True, slots=True)
class ReferenceTree:
    """One tree that predicts what a reference ensemble predicts, on all rows of a problem.

    Attributes
    ----------
    actions : ndarray of shape (n,), int64
        What both predict, 0 .. K - 1, for every row of the problem.
    leaves, depth : int
        Of the tree.
    smallest_leaf : int
        Rows of its smallest leaf.
    """

    actions: np.ndarray
    leaves: int
    depth: int
    smallest_leaf: int


@dataclass(frozen=True, slots=True)
class Guesses:
    """What a reference model suggests about the optimum. Everything unset means an exact search.

    Attributes
    ----------
    max_depth : int or None
        An upper limit beside the problem's.
    thresholds : tuple of ndarray or None
        Per feature the thresholds to keep: numbers (infinity: missing against the rest), or positions of categories
        (-1: missing); None for all. Estimators take any numbers, and category values, and find the data's own beside
        them.
    reference_losses : ndarray of shape (n,) or None
        What a reference loses in every row of the problem, weighted: no set of rows is expected to lose less.
    reference_tree : ReferenceTree or None
        A single tree in place of the reference, on the kept thresholds: takes nothing away, and bounds what is lost.
    """

    max_depth: int | None = None
    thresholds: tuple[np.ndarray | None, ...] | None = None
    reference_losses: np.ndarray | None = None
    reference_tree: ReferenceTree | None = None


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """What a search may use, and how it reports.

    Attributes
    ----------
    time_limit : float or None
        Seconds of wall time. None means no limit.
    memory_limit : float or None
        Bytes. None means no limit.
    n_jobs : int
        Number of threads, >= 1.
    progress : callable or None
        Called now and then with a :class:`Progress`.
    """

    time_limit: float | None = None
    memory_limit: float | None = None
    n_jobs: int = 1
    progress: Any = None


@dataclass(frozen=True, slots=True)
class Progress:
    """A running search: seconds so far, the best objective, a valid lower bound, share of root splits closed."""

    seconds: float
    objective: float
    lower_bound: float
    share_closed: float
    subproblems: int


@dataclass(frozen=True, slots=True)
class Solution:
    """A tree and its certificate.

    Attributes
    ----------
    tree : Tree
    objective : float
        ``sum of leaf losses + leaf_penalty * leaves`` of ``tree``, re-scored in float64 from the losses as given.
    lower_bound : float
        No tree that the problem allows has a smaller objective (up to ``resolution``).
    status : Status
    seconds : float
        Wall time of the search; compiling its kernels, once on a machine, is not part of it.
    resolution : float
        The largest error that fixed-point losses can cause in the objective, in its unit.
    counters : dict
        Work done (subproblems solved, root cuts evaluated, merged rows, ...).
    guarantees : dict
        What theorems say about this very solution, in numbers, and why a solver was chosen; empty for the direct
        solver, whose guarantee is ``lower_bound``. Each solver documents its keys.
    compile_seconds : float
        Wall time that compiling took before the search; 0 if the kernels were on disk.
    """

    tree: Tree
    objective: float
    lower_bound: float
    status: Status
    seconds: float
    resolution: float
    counters: dict[str, int | float] = field(default_factory=dict)
    guarantees: dict[str, float | str] = field(default_factory=dict)
    compile_seconds: float = 0.0

    @property
    def gap(self) -> float:
        """``objective - lower_bound``, at least zero."""
        return max(0.0, self.objective - self.lower_bound)
