"""The frozen values that packages exchange. Shapes are checked here; numbers are computed elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import pairwise
from typing import Any

import numpy as np

from policytree.data.features import Feature
from policytree.data.views import Shown, fact, facts, facts_frame
from policytree.exceptions import InputError
from policytree.trees.tree import Tree


@dataclass(frozen=True, slots=True)
class SplitColumn:
    """One ordinal column of codes offered to the search: which split of which feature its cuts stand for.

    A plain numeric feature gives one column. A numeric feature with missing values gives two, one whose splits send
    missing values left and one whose splits send them right. A feature with more cuts than codes tell apart gives one
    for each part of its cuts. A categorical feature gives one column per category
    (``x == category`` goes left), or one per set of categories (``Feature.levels_at``).

    Attributes
    ----------
    feature : int
        Index into ``BinnedData.features``.
    thresholds : ndarray of shape (n_cuts,), float64
        Cut ``b`` sends left what satisfies ``x <= thresholds[b]`` (numeric), or the categories
        ``Feature.levels_at(thresholds[b])`` (categorical).
    missing_left : bool
        Whether missing values go left.
    """

    feature: int
    thresholds: np.ndarray
    missing_left: bool = False


@dataclass(frozen=True, slots=True)
class Levels:
    """Meaning of the codes of a column of levels: its splits divide the levels at will (``BinnedData.levels``).

    Attributes
    ----------
    values : ndarray, float64
        The category of every code, by its position in ``Feature.categories``; ascending.
    missing : bool
        Whether one more code stands for missing values: the last one.
    """

    values: np.ndarray
    missing: bool

    @property
    def n_levels(self) -> int:
        """How many levels there are."""
        return len(self.values) + self.missing


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
        False if thresholds were thinned (``max_bins``), or groupings of a category left out, so that a certificate
        holds for the kept splits only.
    partly_grouped : tuple of int
        Features of which groupings were left out.
    implied : int
        Groupings that have no column because none is better than those that have one.
    thinned : bool
        Whether thresholds of numeric features were left out.
    levels : tuple of Levels
        Of the last columns, one each: splits are not only their cuts, but all groupings of their codes. One engine
        takes them (``solvers/exact/level_groups.py``); for others ``split_columns.py::with_every_grouping`` has a
        column for each grouping.
    """

    codes: np.ndarray
    n_bins: np.ndarray
    columns: tuple[SplitColumn, ...]
    features: tuple[Feature, ...]
    exact: bool = True
    partly_grouped: tuple[int, ...] = ()
    implied: int = 0
    thinned: bool = False
    levels: tuple[Levels, ...] = ()

    def __post_init__(self) -> None:
        if self.codes.ndim != 2 or len(self.codes) != len(self.columns) or len(self.n_bins) != len(self.columns):
            raise InputError("codes, n_bins and columns must describe the same split columns.")

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.codes.shape[1]

    @property
    def n_ordered(self) -> int:
        """Number of columns whose codes are in order; columns of levels stand behind them."""
        return len(self.columns) - len(self.levels)

    @property
    def in_parts(self) -> bool:
        """Whether columns are parts of the cuts of one feature."""
        return any(
            len(a.thresholds) > 1 and len(b.thresholds) > 1 and a.thresholds[-1] < b.thresholds[0]
            for a, b in pairwise(self.columns)
            if (a.feature, a.missing_left) == (b.feature, b.missing_left)
        )

    def columns_of(self, features: tuple[int, ...] | None) -> np.ndarray:
        """Mark the columns of these features (None: of any); shape (n_columns,), bool."""
        return np.array([features is None or column.feature in features for column in self.columns], dtype=bool)


class Status(Enum):
    """How a search ended, and so what its lower bound certifies.

    Examples
    --------
    >>> from policytree import PolicyTree
    >>> from policytree.problem.types import Status
    >>> tree = PolicyTree(max_depth=1).fit([[1.0], [2.0]], [[1.0, 0.0], [0.0, 1.0]])
    >>> tree.status_ is Status.OPTIMAL
    True
    """

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
        Total cost of giving row ``i`` action ``k``. Any finite sign.
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
        Cost of a split on each feature for every person who reaches it, in the unit of a loss; finite and >= 0.
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
        self._take_plain_numbers()
        if self.max_depth is not None and self.max_depth < 0:
            raise InputError(f"max_depth must be >= 0 or None; got {self.max_depth}.")
        if self.min_leaf_per_arm > 0:
            arms = self.arms
            if arms is None or arms.shape != (n,) or arms.min() < 0 or arms.max() >= K:
                raise InputError(f"min_leaf_per_arm needs the arm of every row, {n} integers from 0 to {K - 1}.")
        if self.max_leaf_nodes is not None and self.max_leaf_nodes < 1:
            raise InputError(f"max_leaf_nodes must be >= 1 or None; got {self.max_leaf_nodes}.")
        self._check_costs(n)

    def _take_plain_numbers(self) -> None:
        """Turn numpy's numbers into Python's: comparisons of numpy's are not of type bool."""
        object.__setattr__(self, "leaf_penalty", float(self.leaf_penalty))
        for name in ("max_depth", "min_leaf", "min_leaf_per_arm", "max_leaf_nodes"):
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else int(value))

    @property
    def most_leaves(self) -> int:
        """The largest number of leaves that rows, depth and ``max_leaf_nodes`` allow."""
        n = self.data.n_rows
        depth = 60 if self.max_depth is None else min(self.max_depth, 60)
        return min(n, 2**depth, self.max_leaf_nodes or n)

    @property
    def most_depth(self) -> int:
        """The largest depth of a tree with at most so many leaves."""
        most = self.most_leaves - 1
        return most if self.max_depth is None else min(self.max_depth, most)

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
        Predictions of both, 0 .. K - 1, for every row of the problem.
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
    """Suggestions of a reference model about the optimum. Everything unset means an exact search.

    Attributes
    ----------
    max_depth : int or None
        An upper limit beside the problem's.
    thresholds : tuple of ndarray or None
        Per feature the thresholds to keep: numbers (infinity: missing against the rest), or positions of categories
        (-1: missing); None for all. Estimators take any numbers, and category values, and find the data's own beside
        them.
    reference_losses : ndarray of shape (n,) or None
        A reference's weighted loss in every row of the problem: no set of rows is expected to lose less.
    reference_tree : ReferenceTree or None
        A single tree in place of the reference, on the kept thresholds: takes nothing away, and bounds what is lost.

    Examples
    --------
    >>> import numpy as np
    >>> from policytree import OptimalTreeClassifier
    >>> from policytree.guesses import Guesses
    >>> X, y = [[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1]
    >>> tree = OptimalTreeClassifier(guesses=Guesses(thresholds=(np.array([2.5]),))).fit(X, y)
    >>> tree.tree_.threshold[0], tree.status_.name
    (np.float64(2.5), 'OPTIMAL_GIVEN_GUESSES')
    """

    max_depth: int | None = None
    thresholds: tuple[np.ndarray | None, ...] | None = None
    reference_losses: np.ndarray | None = None
    reference_tree: ReferenceTree | None = None


@dataclass(frozen=True, slots=True)
class SizeGates:
    """Sizes that decide which way a search takes, where several ways lead to the same optimum.

    The ways differ in time and memory. The defaults are where one way was measured to become faster than another; tests
    set them to their extremes, so that tiny problems take every way. A name that begins with ``least`` is a lower limit
    for the way to be taken, one that begins with ``most`` an upper limit; both may be infinite.

    Attributes
    ----------
    least_generation_rows, most_generation_errors, most_generation_columns, most_generation_rows : float
        Constraint generation (solvers/exact/constraint_generation.py) proves a depth if a problem has that many merged
        rows, the incumbent loses at most that share of what the worst actions lose, and the ends of the columns are at
        most that share of the rows. It is abandoned once it needs that share of the rows.
    generation_first_rows, generation_added_rows : int
        Rows of its first problem, and the most rows that one tree adds; at least 1.
    most_priced_columns, least_priced_codes, least_pricing_seconds, pricing_share : float
        Row duals (solvers/exact/bounds/row_duals.py) bound trees if there are that few columns, one column has that
        many codes, and ``pricing_share`` of what the next depth may take is at least so many seconds.
    most_unpriced_depth, most_setless_depth : float
        Depth limits up to which row duals, and the search over subsets (solvers/exact/subset_search.py), are not used;
        if infinite, they are not used without a depth limit either.
    least_coarse_rows, most_coarse_share : float
        Row duals are fitted to tables of fewer codes first if there are that many merged rows, and if a table has at
        most that share of the rows of the next one.
    coarse_codes : tuple of int
        Codes of a feature in these tables, ascending powers of two.
    most_found_boxes, most_known_boxes, box_slice : int
        Boxes that one pricing returns, and boxes that are kept; rows and cells that pricing reads between two looks at
        the clock's flag. All at least 1.
    least_quick_pricing : float
        Rows and cells after which pricing ends once it has found as many boxes as it returns.
    most_table_cells, most_table_additions : float
        Size and cost of the table of two features that pricing reads; row duals are not used beyond.
    most_counted_leaves : int
        Numbers of leaves with a bound of their own (solvers/exact/bounds/row_duals.py), at least 1.
    most_pair_cuts, most_pair_distances, pair_share : float
        The conflict-pair bound (solvers/exact/bounds/conflict_pairs.py) is computed if there are that few cuts and
        pairs of rows, and if it takes at most that share of the search beside it.
    most_block_depth, most_block_bytes, most_block_products, most_shared_bytes : float
        Blocks of pair sums (solvers/exact/binary_features.py) solve columns of two values up to this depth and these
        sizes. Searches below all first splits share their values up to ``most_shared_bytes``.
    least_bits_depth, bits_gain : float
        From that depth on, columns with few cuts are solved as a column of two values for each cut
        (solvers/exact/estimate.py) if that is estimated to be so many times as fast.
    least_set_slice, most_set_slice : int
        Work of the first slice of the search over subsets, in pairs of a row and a split.
    set_gain : float
        Share of the gap that a slice has to close for another one to follow.
    first_set_places, most_set_places, most_set_path : int
        Entries of the table of subsets at first and at last, powers of two from 2 on; bytes of its path.
    row_cost, most_set_pairs : float
        Cost of adding a row to a list, in words: subsets are kept as bits where that takes less. Sums over so many
        pairs of columns are kept for lists.
    most_solved_sets, most_swept_sides, most_block_sides : int
        Entries of the caches of solved subsets, of sides of swept cuts, and of both in searches by blocks; powers of
        two from 1 on. Entries that do not fit are computed again.
    loose_minimum : int
        Minimum counts of leaves are relaxed first where the rows at hand meet them so many times over; 0: never.
    most_needed_prices : float
        The least depth of better trees is used as a bound if the incumbent is at most that many leaf penalties above
        the sum of the rows' least losses.
    least_started_depth, start_share, start_advance, start_saving : float
        The search for incumbents (solvers/exact/incumbent_search.py) works on trees of that depth or a deeper one, for
        a share of the work that is done beside it, and of the estimated work of depth five once depth three is proved.
        It begins once that comes to more than ``start_saving`` seconds, so that short searches end without it.
    most_start_seconds : float
        Estimated seconds of work on first trees before the search on some of the rows.
    most_start_cuts : int
        Cuts of a column in the trees that it grows first, at least 1.
    most_layer_bytes : float
        Bytes of the starts of leaves (solvers/exact/interval_dp.py) beyond which they are computed a second time.
    most_ratio_entries, least_ratio_table, most_unwatched_seconds : float
        Squared number of columns up to which the F-score is solved by blocks
        (solvers/nonadditive/fractional_binary.py); entries of the table from which the most promising first split is
        tried alone; estimated seconds of a search that runs without a thread that watches limits.
    most_shallow_bag_depth : float
        Depth up to which ranking objectives (solvers/nonadditive/ranking.py) try one reference only, without boxes.
    quick_seconds : float
        Estimated seconds of one search for their incumbents.
    least_bag_rows, bag_pricing_seconds : float
        Merged rows from which row duals bound ranking objectives, and seconds of a usual machine for that.
    most_bag_boxes, most_boxes_of_a_row, most_fitted_boxes : float
        Boxes of strips of codes (solvers/nonadditive/ranking_bounds.py): in all, per merged row, and to fit a curve to.
    least_strips : int
        Fewest strips of a column that has more codes, from 1 on; otherwise there are no boxes.
    most_bag_sets : int
        Entries of the table of bounded subsets, a power of two from 4 on.
    most_labellings : int
        Choices of labels that are followed from leaf to leaf (solvers/constrained/solve.py), at least 1.
    coarse_cuts : tuple of int
        Cuts of a feature in the searches under constraints before the last one (solvers/constrained/solve.py).
    first_tied_values : int
        Values of near-ties for which memory is allocated at first, at least 1.
    most_guessed_cuts, most_polish_seconds : float
        Guessed cuts that may become columns of their own; estimated seconds of solving a subtree anew.
    """

    least_generation_rows: float = 2_000
    most_generation_errors: float = 0.06
    most_generation_columns: float = 0.25
    most_generation_rows: float = 0.5
    generation_first_rows: int = 160
    generation_added_rows: int = 64
    most_priced_columns: float = 16
    least_priced_codes: float = 3
    least_pricing_seconds: float = 0.004
    pricing_share: float = 0.35
    most_unpriced_depth: float = 3
    most_setless_depth: float = 4
    least_coarse_rows: float = 200
    most_coarse_share: float = 0.8
    coarse_codes: tuple[int, ...] = (8, 16, 32)
    most_found_boxes: int = 300
    most_known_boxes: int = 8_192
    box_slice: int = 2_000_000
    least_quick_pricing: float = 8_000_000
    most_table_cells: float = 1 << 18
    most_table_additions: float = 1 << 24
    most_counted_leaves: int = 1 << 10
    most_pair_cuts: float = 4_000
    most_pair_distances: float = 1 << 23
    pair_share: float = 0.5
    most_block_depth: float = 6
    most_block_bytes: float = 1 << 26
    most_block_products: float = 1 << 26
    most_shared_bytes: float = 1 << 26
    least_bits_depth: float = 4
    bits_gain: float = 2
    least_set_slice: int = 1 << 23
    most_set_slice: int = 1 << 28
    set_gain: float = 0.05
    first_set_places: int = 1 << 12
    most_set_places: int = 1 << 23
    most_set_path: int = 1 << 27
    row_cost: float = 8
    most_set_pairs: float = 1 << 18
    most_solved_sets: int = 1 << 17
    most_swept_sides: int = 1 << 20
    most_block_sides: int = 1 << 17
    loose_minimum: int = 50
    most_needed_prices: float = 30
    least_started_depth: float = 5
    start_share: float = 0.08
    start_advance: float = 0.015
    start_saving: float = 0.02
    most_start_seconds: float = 3.0
    most_start_cuts: int = 16
    most_layer_bytes: float = 1 << 30
    most_ratio_entries: float = 1 << 22
    least_ratio_table: float = 100_000
    most_unwatched_seconds: float = 0.02
    most_shallow_bag_depth: float = 3
    quick_seconds: float = 2.0
    least_bag_rows: float = 200
    bag_pricing_seconds: float = 4.0
    most_bag_boxes: float = 1 << 20
    most_boxes_of_a_row: float = 2_000
    most_fitted_boxes: float = 1 << 20
    least_strips: int = 8
    most_bag_sets: int = 1 << 22
    most_labellings: int = 2_000
    coarse_cuts: tuple[int, ...] = (32, 256)
    first_tied_values: int = 1 << 16
    most_guessed_cuts: float = 1_000
    most_polish_seconds: float = 0.5


GATES = SizeGates()  # where they were measured


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """Limits of a search's resources, and how it reports.

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
    gates : SizeGates
        Which ways problems of which size take.
    """

    time_limit: float | None = None
    memory_limit: float | None = None
    n_jobs: int = 1
    progress: Any = None
    gates: SizeGates = GATES


@dataclass(frozen=True, slots=True)
class Progress:
    """A running search: seconds so far, the best objective, a valid lower bound, share of root splits closed."""

    seconds: float
    objective: float
    lower_bound: float
    share_closed: float
    subproblems: int


IN_OBJECTIVE_UNIT = frozenset(
    ("dual_bound", "probable_lower_bound", "rounding_error", "theorem_1", "theorem_2", "theorem_3", "theorem_4_1",
     "theorem_a_1", "tree_rounding_error", "without_limits")
)  # fmt: skip


@dataclass(frozen=True, slots=True, repr=False)
class Solution(Shown):
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
        Guarantees of theorems for this very solution, in numbers, and why a solver was chosen; empty for the direct
        solver, whose guarantee is ``lower_bound``. Each solver documents its keys. Those of ``IN_OBJECTIVE_UNIT`` are
        in the unit of ``objective``, so that they can be read beside ``gap``.
    compile_seconds : float
        Wall time that compiling took before the search; 0 if the kernels were on disk.

    Examples
    --------
    >>> import numpy as np
    >>> from policytree.problem.types import Problem
    >>> from policytree.solvers import solve_direct
    >>> from policytree.solvers.core.binning import bin_matrix
    >>> losses = np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    >>> data = bin_matrix(np.array([[1.0], [2.0], [3.0]]))
    >>> solution = solve_direct(Problem(data, losses, leaf_penalty=0.1, max_depth=1))
    >>> solution.objective, solution.objective - solution.lower_bound <= solution.resolution
    (0.2, True)
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

    def per(self, total: float) -> Solution:
        """The same in another unit: sums of losses, divided by the total weight of their rows, are means."""
        told = {
            name: value if isinstance(value, str) or name not in IN_OBJECTIVE_UNIT else value / total
            for name, value in self.guarantees.items()
        }
        return replace(
            self,
            objective=self.objective / total,
            lower_bound=self.lower_bound / total,
            resolution=self.resolution / total,
            guarantees=told,
        )

    def _shown(self):
        said = facts(replace(self, guarantees={}))
        told = {"gap": self.gap, **self.guarantees}
        return [facts_frame(said | {name: fact(value) for name, value in told.items()})]
