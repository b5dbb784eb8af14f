"""The search over trees whose leaf costs add up to little: its rows, its arrays, its steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from policytree.objectives.objective import RankingObjective
from policytree.objectives.references import Reference, steps_of
from policytree.problem.types import Problem, SizeGates, Status
from policytree.solvers.core.columns import short_codes
from policytree.solvers.core.fixed_point import to_fixed_point
from policytree.solvers.core.leaf_sums import Masses
from policytree.solvers.core.limits import Clock
from policytree.solvers.core.merge import merge_equal_rows
from policytree.solvers.core.rows import Splits, prepare
from policytree.solvers.exact.bounds.dual_fitting import DualFitting
from policytree.solvers.exact.bounds.row_duals import RowDuals, boxes_are_few, row_duals_apply
from policytree.solvers.kernels.subsets.ranking_bounds import best_known, bound_ranking
from policytree.solvers.kernels.subsets.ranking_costs import costs_of_rows
from policytree.solvers.kernels.subsets.ranking_layout import (
    AREA,
    BEST,
    BETTER,
    BOUND,
    CUTOFF,
    CUTS,
    DEPTH,
    DONE,
    KEPT_SETS,
    LEAF,
    LEFT_OUT,
    OMEGA,
    SETS,
    SIZE,
    STATES,
    TREES,
    CoarseBoxes,
    Judge,
    LeafCosts,
    OpenTrees,
    RankingPath,
    RankingRows,
)
from policytree.solvers.kernels.subsets.ranking_search import search_ranking
from policytree.solvers.kernels.subsets.table import KNOWN_REAL
from policytree.solvers.nonadditive.ranking_bounds import fill

SMALLEST_TABLE = 1 << 12  # sets that are kept under a memory limit; 40 bytes each
SHARE_OF_MEMORY = 0.2  # of a memory limit, for a table; two references have one each
SLACK, LEAST_SLACK = (
    0.05,
    1e-4,
)  # of a leaf's price, and at least, that a side is worked on beyond what makes another cut better
SHARE_OF_TIME = 0.2  # of a time limit, for the same
UNIT = 2.0**-52  # twice what rounding to the nearest float moves, in proportion
KINDS = {"area": AREA, "omega": OMEGA}


@dataclass(frozen=True, slots=True)
class MergedRows:
    """Rows that no split tells apart, added up.

    Attributes
    ----------
    codes : ndarray of shape (columns, n), uint16
    negative, positive, count : ndarray of shape (n,), int64
    moved : tuple of float
        The share of the weight of negatives, and of positives, that is not in these integers.
    """

    codes: np.ndarray
    negative: np.ndarray
    positive: np.ndarray
    count: np.ndarray
    moved: tuple[float, float]

    @property
    def n(self) -> int:
        """Number of merged rows."""
        return len(self.count)

    @property
    def rounding(self) -> float:
        """Bound the rounding error of a kernel's sum of shares: a share, and each sum of two, is rounded once."""
        return (self.n + 16) * UNIT

    @property
    def whole(self) -> bool:
        """Whether sums of shares, as integers, are the weights that were given."""
        largest = max(int(self.positive.sum()), int(self.negative.sum()))
        return max(self.moved) == 0 and self.rounding * largest < 0.25

    @property
    def off(self) -> tuple[float, float]:
        """By how much positives and negatives of a leaf may differ from what a kernel takes them for."""
        if self.whole:
            return 0.0, 0.0
        P, N = float(self.positive.sum()), float(self.negative.sum())
        return (self.moved[1] + self.rounding) * P + 1.0, (self.moved[0] + self.rounding) * N + 1.0


def merge_rows(problem: Problem, sums: Masses) -> MergedRows:
    """Merge the rows of a problem, in the order of :func:`policytree.solvers.core.rows.prepare`."""
    codes = short_codes(problem.data)
    planes = np.vstack([sums.negative, sums.positive, np.ones(problem.data.n_rows, np.int64)])
    codes, (negative, positive, count) = merge_equal_rows(codes, planes)
    return MergedRows(np.ascontiguousarray(codes), negative, positive, count, sums.moved)


class _BestDuals(RowDuals):
    """Keeps the numbers that prove most of trees with some number of leaves."""

    by_leaves = False  # the reference's price is what a leaf may exceed its loss by at most
    proves: int | None = None
    kept: tuple[np.ndarray, int] | None = None

    def _certify(self, boxes: DualFitting) -> None:
        super()._certify(boxes)
        if not self.certificates:  # numbers too large to be scaled down prove nothing
            return
        numbers, allowance = self.certificates[-1]
        value = int(numbers.sum()) + self.goal[1] * (self.node.penalty - allowance)
        if self.proves is None or value > self.proves:
            self.proves, self.kept = value, (numbers, allowance)


class RankingSearch:
    """Bounds by a reference, and the trees within a budget.

    Parameters
    ----------
    rows : MergedRows
    reference : Reference
    objective : AUC, PartialAUC or OmegaFScore
    leaf_price : float
        In the unit of the objective.
    problem : Problem
    depth : int
        Largest depth of a better tree.
    clock : Clock
    boxes : CoarseBoxes
        Their least costs are worked out for the reference.
    gates : SizeGates
    """

    def __init__(
        self, rows: MergedRows, reference: Reference, objective: RankingObjective, leaf_price: float, problem: Problem,
        depth: int, clock: Clock, boxes: CoarseBoxes, gates: SizeGates,
    ):  # fmt: skip
        self.rows, self.reference, self.objective, self.gates = rows, reference, objective, gates
        self.leaf_price, self.problem, self.depth, self.clock = leaf_price, problem, depth, clock
        self.shares = np.column_stack([rows.positive / rows.positive.sum(), rows.negative / rows.negative.sum()])
        self.costs, self.boxes = costs_by(reference), boxes
        self.least = np.empty(rows.n)
        costs_of_rows(self.costs, self.shares, self.least)
        self.worst = self.shares @ largest_growth(self.costs)
        self.dual, self.room = self.least, 0.0
        self.slack = max(SLACK * reference.price, LEAST_SLACK)
        self.counters = np.zeros(4, np.int64)
        self.data: RankingRows | None = None
        self.phase = 0  # odd while level 0 is the root

    def boxes_are_few(self) -> bool:
        """Whether numbers of rows are looked for: as for the direct solver, where depth is no limit."""
        large = self.rows.n >= self.gates.least_bag_rows and self.depth > 2
        if len(self.boxes.least):  # they bound what costs leaves together have, and numbers of rows do not
            return False
        applies = row_duals_apply(self.problem, self.gates)
        return large and applies and bool((self.problem.data.n_bins >= self.gates.least_priced_codes).any())

    def fit_row_duals(self, proxy: Problem, most: float, leaves: int) -> None:
        """Find numbers of rows that no leaf's cost exceeds by more than the price of a leaf.

        Parameters
        ----------
        proxy : Problem
            With the reference's loss matrix and price.
        most : float
            The bound to be proved.
        leaves : int
            Of the best tree known.
        """
        fixed = to_fixed_point(proxy.losses, proxy.leaf_penalty, self.rows.n)
        node = prepare(proxy, fixed, True)
        if not boxes_are_few(node, self.gates):
            return
        prices = _BestDuals(node, self.clock, self.gates)
        if prices.too_large:
            return
        base = float(proxy.losses[:, 0].sum())
        target = int(np.ldexp(most - base, fixed.exponent))
        limit = self.clock.time_limit
        seconds = self.gates.bag_pricing_seconds
        if limit is not None:
            seconds = min(seconds, SHARE_OF_TIME * limit)
        prices.work(target, [(LEAF, 0)] * max(leaves, 2), 0, seconds)
        if prices.kept is None:
            return
        numbers, allowance = prices.kept
        # The proof is about the loss matrix, of which a leaf costs the least column at least. Rows may cost more:
        # the rest of a cost is curved, and a leaf's may be less than the sum of its rows' where their slopes differ.
        least = (self.shares[:, ::-1] @ self.reference.losses()).min(axis=1)
        dual = least + np.ldexp(numbers.astype(np.float64), -fixed.exponent)
        room = self.reference.price - fixed.to_float(allowance)
        if dual.sum() + 2 * room > self.least.sum() + 2 * self.reference.price and room >= -fixed.resolution:
            self.dual, self.room = dual, max(room, 0.0)

    def _begin(self) -> RankingRows:
        """Lay out rows, levels and the table."""
        if self.data is not None:
            return self.data
        self.boxes = fill(self.boxes, self.costs, self.reference.price, self.rows.codes, self.shares, self.clock.flag)
        rows, bins = self.rows, np.asarray(self.problem.data.n_bins, dtype=np.int64)
        n, offset = rows.n, np.concatenate([[0], np.cumsum(bins)]).astype(np.int64)
        S, levels = int(offset[-1]), self.depth + 2
        sums = np.column_stack([self.shares, self.least, self.dual, self.worst])
        keys = np.random.default_rng(0).integers(-(2**62), 2**62, size=(n, 2))
        self.data = RankingRows(
            rows.codes, offset, np.ascontiguousarray(sums), np.column_stack([keys, rows.count]), self.costs, self.boxes,
            float(self.reference.price), float(self.room), max(self.problem.min_leaf, 1),
            self.problem.root_columns.astype(np.int64),
        )  # fmt: skip
        self.path = RankingPath(
            np.zeros((levels, n), np.int32), np.zeros((levels, 2, S)), np.zeros((levels, 2, S)),
            np.zeros((levels, S, 5)), np.zeros((levels, S, 3), np.int64), np.zeros((levels, 5)),
            np.zeros((levels, 3), np.int64), np.zeros((levels, 2), np.int64), np.zeros((levels, S), np.int32),
            np.zeros((levels, len(bins), 2), np.int64), np.zeros((levels, 4)), np.zeros((levels, 6), np.int64),
        )  # fmt: skip
        self.table = np.zeros(self._table_size(), KNOWN_REAL)
        return self.data

    def _table_size(self) -> int:
        size, limit = self.gates.most_bag_sets, self.clock.memory_limit
        while limit is not None and size > SMALLEST_TABLE and size * KNOWN_REAL.itemsize > SHARE_OF_MEMORY * limit:
            size //= 2
        return size

    def _root(self) -> None:
        self.path.rows[0] = np.arange(self.rows.n)
        self.path.whole[0, [SIZE, DEPTH]] = self.rows.n, self.depth
        self.path.box[0] = self._whole_box()

    def _whole_box(self) -> np.ndarray:
        bins = np.asarray(self.problem.data.n_bins, dtype=np.int64)
        return np.column_stack([np.zeros_like(bins), bins])

    def best_known(self) -> Splits:
        """The tree of least cost that :meth:`least_cost` found."""
        self._root()
        chosen = np.zeros(4 * self.depth + 2 * self.rows.n + 4, np.int64)
        count = best_known(self._begin(), self.path, self.table, chosen)
        return [self._split(int(t)) for t in chosen[:count]]

    def least_cost(self, most: float) -> float:
        """A bound of the least cost of all trees, prices of leaves included: exact up to ``most``."""
        data = self._begin()
        self._root()
        self.path.numbers[0] = 0.0
        self.path.numbers[0, CUTOFF] = most
        self.path.whole[0, CUTS] = 0
        self.phase += 1
        bound, _ = bound_ranking(data, self.path, self.table, 0, self.slack, self.counters, self.clock.flag)
        self.phase += 1
        return float(bound)

    def least_so_far(self) -> float:
        """While :meth:`least_cost` works, in another thread: a bound of the least cost by what is known of the root."""
        phase = self.phase
        if phase % 2 == 0:
            return 0.0
        numbers, low = self.path.numbers[0], self.path.low[0]
        cuts = self.path.cuts[0, : self.path.whole[0, CUTS]]
        first = float(min((low[0, cuts] + low[1, cuts]).min(initial=np.inf), numbers[LEFT_OUT]))
        bound = min(max(first, float(numbers[BOUND])), float(numbers[BEST]))
        return bound if self.phase == phase else 0.0  # else level 0 may have become another set meanwhile

    def better_tree(
        self, best: float, most: float, cutoff: np.ndarray, is_better: Callable[[Splits], bool]
    ) -> Splits | None:
        """A tree that loses less than ``best``; None if there is none, or the search was stopped.

        ``is_better`` has the last word on trees whose labels sums of floats cannot tell.
        """
        data, n = self._begin(), self.rows.n
        largest = len(cutoff) - 1
        if self.problem.max_leaf_nodes is not None:
            largest = min(largest, self.problem.max_leaf_nodes)
        states, S = 2 * largest + 6, int(data.offset[-1])
        trees = OpenTrees(
            np.zeros((states + 1, n), np.int32), np.zeros((2 * states + 4, 4), np.int64),
            np.zeros((2 * states + 4, len(self.problem.data.n_bins), 2), np.int64),
            np.zeros(2 * states + 4, np.int64), np.zeros((2 * states + 4, 2)), np.zeros((2 * states + 4, 2)),
            np.zeros((states + 1, S + 1), np.int32), np.zeros((states + 1, 2, S + 1)),
            np.zeros((states + 1, 4), np.int64), np.zeros((states + 1, 2)), np.zeros((states + 1, 2)),
            np.zeros(states + 1, np.int64), np.zeros(states + 1, np.int64),
        )  # fmt: skip
        self._root()
        trees.rows[0] = np.arange(n)
        trees.node[0] = 0, 0, n, -1
        trees.depth[0], trees.shares[0], trees.box[0] = self.depth, 1.0, self._whole_box()
        whole = np.empty(1)
        costs_of_rows(self.costs, np.ones((1, 2)), whole)
        trees.cost[0, 0] = float(whole[0]) + self.reference.price
        ended, state, judge = BETTER, 0, self._judge(most, cutoff, largest)
        while ended == BETTER:
            ended, state = search_ranking(
                data, self.path, self.table, trees, judge, best,
                self.slack, state, self.counters, self.clock.flag,
            )  # fmt: skip
            splits = [self._split(int(t)) for t in trees.chosen[:state]]
            if ended == BETTER and is_better(splits):
                return splits
        if ended != DONE and not self.clock.stopped:
            self.clock.stop(Status.MEMORY_LIMIT)
        return None

    def _judge(self, most: float, cutoff: np.ndarray, largest: int) -> Judge:
        P, N = int(self.rows.positive.sum()), int(self.rows.negative.sum())
        kind, numbers = self.objective.leaf_numbers(P, N, self.rows.off)
        return Judge(
            KINDS[kind], np.array(numbers, dtype=np.float64), self.leaf_price,
            np.ascontiguousarray(cutoff, dtype=np.float64), most, largest,
        )  # fmt: skip

    def _split(self, t: int) -> tuple[int, int]:
        if t == LEAF:
            return (-1, 0)
        assert self.data is not None, "boxes were priced"
        offset = self.data.offset
        column = int(np.searchsorted(offset, t, side="right")) - 1
        return column, t - int(offset[column])

    def work(self) -> dict[str, int | float]:
        """Return the counters of the search by name."""
        sets, kept, trees, states = (int(self.counters[k]) for k in (SETS, KEPT_SETS, TREES, STATES))
        return {"sets": sets, "sets_kept": kept, "trees": trees, "states": states}


def costs_by(reference: Reference) -> LeafCosts:
    """Convert a reference to the kernels' costs of leaves."""
    ends, heights = steps_of(reference.pairs)
    widths = np.diff(ends)
    areas, squares = (np.concatenate([[0.0], np.cumsum(h * widths)]) for h in (heights[:-1], heights[:-1] ** 2))
    return LeafCosts(ends, heights, areas, squares, float(reference.limit), int(reference.curved))


def largest_growth(costs: LeafCosts) -> np.ndarray:
    """Bound the rise of a leaf's cost for each unit of p and of n that it is given."""
    S, limit = float(costs.heights[0]), costs.limit
    if costs.curved == 0:
        return np.array([S, costs.areas[-1]])
    return np.array([limit - limit**2 / 2 + S**2 / 2, costs.areas[-1] + 1.0])
