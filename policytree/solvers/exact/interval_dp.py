"""Dynamic programming for one ordered feature: every partition of its values into intervals is a tree."""

from __future__ import annotations

import math

import numpy as np

from policytree.problem.types import Problem, SearchLimits, Solution, Status
from policytree.solvers.core.fixed_point import FixedPoint
from policytree.solvers.core.limits import Clock
from policytree.solvers.core.merge import sums_of_first_codes
from policytree.solvers.core.rows import counted_rows
from policytree.solvers.core.scoring import leaf_only
from policytree.solvers.core.search_state import Incumbent, SearchState
from policytree.solvers.kernels.base.layout import FEASIBLE, INF
from policytree.solvers.kernels.depth_two.interval_dp import ALONE, VALUE, Intervals, add_leaf, useful_ends

Leaf = tuple[int, int, bool]  # first value, value after the last, whether the rows without a value are in it


def one_feature_applies(problem: Problem) -> bool:
    """Whether all splits are cuts of one ordered feature, and free: what they cost depends on who reaches them."""
    columns = problem.data.columns
    if problem.feature_costs is not None or problem.root_features is not None or problem.data.levels:
        return False
    if len(columns) != 2:
        return len(columns) == 1
    right, left = (c.thresholds for c in columns)
    same = columns[0].feature == columns[1].feature and columns[1].missing_left and not columns[0].missing_left
    # A category with missing values on either side has two columns of one cut.
    return same and np.isposinf(right[-1]) and np.array_equal(right[:-1], left)


def solve_one_feature(problem: Problem, fixed: FixedPoint, clock: Clock, limits: SearchLimits) -> Solution:
    """Find the best tree of a problem that :func:`one_feature_applies` takes.

    A tree of depth d has up to 2^d leaves, and any 2^d intervals are a balanced tree of that depth: limits of depth are
    limits on leaves. Without one, or where it does not bind, a price per leaf is all there is, in O(n K). Else the
    limit is first turned into a further price per leaf (a Lagrange multiplier); where no such price gives just the
    number of leaves that is allowed, leaves are added one after the other, in O(n K) each.
    """
    search = _Partition(problem, fixed, clock, limits)
    search.solve()
    if search.incumbent.value >= FEASIBLE:
        return leaf_only(problem, fixed, Status.INFEASIBLE, clock.seconds())
    ends = search.ends
    leaves = [(int(ends[first]), int(ends[end]), missing) for first, end, missing in search.incumbent.tree]
    values = int(search.ends[-1])
    splits = balanced_splits(leaves, values)
    counters = {"values": len(search.ends) - 1, "passes": search.passes}
    return search.solution(splits, counters, _rows_of_leaves(problem, leaves, values))


class _Partition(SearchState):
    """The best intervals, and a bound, of one problem; the incumbent's tree is its leaves."""

    def __init__(self, problem: Problem, fixed: FixedPoint, clock: Clock, limits: SearchLimits):
        super().__init__(problem, fixed, clock, limits, Incumbent(INF, [], -INF))
        self.penalty, self.most_bytes = fixed.leaf_penalty, limits.gates.most_layer_bytes
        self.intervals, self.ends = _sums(problem, fixed)
        values = len(self.intervals.sums) - 1 + self.intervals.any_missing
        self.most = min(values, problem.most_leaves)
        self.least = np.empty((3, problem.losses.shape[1], 3), np.int64)
        self.passes = 0

    def solve(self) -> None:
        """Search until the bound meets the best value, or a limit strikes."""
        value, leaves = self._priced(0)
        if len(leaves) > self.most:
            self.incumbent.raise_bound(value)
            self._take([(0, len(self.intervals.sums) - 1, self.intervals.any_missing)])
            self._multiplier()
            if not self.done:
                self._limited()
        else:
            self.incumbent.offer(value, leaves)
            self.incumbent.raise_bound(value)

    def empty(self) -> np.ndarray:
        """Costs where no row is in a leaf yet."""
        costs = np.full((2, 2, len(self.intervals.sums)), INF, np.int64)
        costs[0, :, 0] = 0
        return costs

    def _put_alone(self, costs: np.ndarray, start: np.ndarray, price: int) -> None:
        """The rows without a value in a leaf of their own, the first one, if they are enough."""
        if self.intervals.any_missing and (self.intervals.missing_counts >= self.intervals.minima).all():
            costs[1, :, 0] = int(self.intervals.missing_sums.min()) + price, 1
            start[1, 0] = ALONE

    def _priced(self, more: int) -> tuple[int, list[Leaf]]:
        """The best intervals of any number if every leaf costs so much more, and what they cost then."""
        start, costs = np.zeros((2, len(self.intervals.sums)), np.int32), self.empty()
        self._put_alone(costs, start, self.penalty + more)
        add_leaf(self.intervals, self.penalty + more, costs, costs, start, self.least)
        self.passes += 1
        state = int(self.intervals.any_missing)
        value = int(costs[state, VALUE, -1])
        return value, [] if value >= FEASIBLE else _walk(
            state, lambda state, i, taken: start[state, i], len(start[0]) - 1
        )

    def _take(self, leaves: list[Leaf]) -> None:
        """Keep leaves that cost less than the best ones."""
        sums, value = self.intervals.sums, 0
        for first, end, missing in leaves:
            loss = sums[end] - sums[first] + (self.intervals.missing_sums if missing else 0)
            value += int(loss.min()) + self.penalty
        self.incumbent.offer(value, leaves)

    def _multiplier(self) -> None:
        """Bisect the least further price per leaf at which few enough leaves are best; all prices give bounds."""
        each = np.vstack([np.diff(self.intervals.sums, axis=0), self.intervals.missing_sums])
        low, high = 0, int(np.ptp(each, axis=1).sum()) + 1  # more than any split can save
        while low < high and not self.done:
            middle = (low + high) // 2
            value, leaves = self._priced(middle)
            self.incumbent.raise_bound(value - middle * self.most)
            if len(leaves) <= self.most:
                high = middle
                self._take(leaves)
            else:
                low = middle + 1

    def _limited(self) -> None:
        """Add leaves one after the other, up to the limit."""
        layers = _Layers(self)
        if not self.clock.fits_memory(layers.bytes):
            self.clock.stop(Status.MEMORY_LIMIT)
            return
        state, costs = int(self.intervals.any_missing), layers.empty
        best, leaves = INF, 0
        for count in range(1, self.most + 1):
            costs = layers.add(costs, count)
            value = int(costs[state, VALUE, -1])
            if value < best:
                best, leaves = value, count
            if self.clock.stopped:
                return
        self.incumbent.raise_bound(best)
        chosen = _walk(state, lambda state, i, taken: layers.start(leaves - taken, state, i), len(self.ends) - 1)
        if not self.clock.stopped:  # else starts are lacking
            self._take(chosen)

    def add(self, costs: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Costs with one leaf more, ``count`` in all, and where the last leaf starts."""
        target, start = np.full_like(costs, INF), np.zeros(costs.shape[1:], np.int32)
        if count == 1:
            self._put_alone(target, start, self.penalty)
        add_leaf(self.intervals, self.penalty, costs, target, start, self.least)
        self.passes += 1
        return target, start


class _Layers:
    """Where the last leaf starts, for every number of leaves; what memory would not hold is computed again when read.

    Costs are kept at the first number of leaves of every block, and starts of one block.
    """

    def __init__(self, search: _Partition):
        self.search = search
        self.empty = search.empty()
        n, most = self.empty.shape[2], search.most
        starts, costs = 2 * n * np.dtype(np.int32).itemsize, self.empty.nbytes
        at_once = starts * most <= search.most_bytes and search.clock.fits_memory(starts * most)
        self.block = most if at_once else math.isqrt(most * costs // starts) + 1
        self.bytes = starts * self.block + costs * -(-most // self.block)
        self.costs: list[np.ndarray] = []  # before each block
        self.starts: list[np.ndarray] = []  # of the block that begins after ``before`` leaves
        self.before = 0

    def add(self, costs: np.ndarray, count: int) -> np.ndarray:
        """Costs with one leaf more, ``count`` in all."""
        if (count - 1) % self.block == 0:
            self.costs.append(costs)
            self.starts, self.before = [], count - 1
        costs, start = self.search.add(costs, count)
        self.starts.append(start)
        return costs

    def start(self, count: int, state: int, i: int) -> int:
        """Where the last of ``count`` leaves of the first i values starts; ``count`` never rises from call to call.

        Ends the walk where the search was stopped before that was computed again.
        """
        if count <= self.before:
            block = (count - 1) // self.block
            costs, self.starts, self.before = self.costs[block], [], block * self.block
            for more in range(self.block):
                if self.search.clock.stopped:
                    break
                costs, start = self.search.add(costs, self.before + more + 1)
                self.starts.append(start)
        at = count - self.before - 1
        return int(self.starts[at][state, i]) if at < len(self.starts) else ALONE


def _sums(problem: Problem, fixed: FixedPoint) -> tuple[Intervals, np.ndarray]:
    """Sums of losses and counts over the first values of the feature, and of rows without a value.

    Also returns how many values of the feature the first 0, 1, 2, ... values of the intervals are.
    """
    data, K = problem.data, problem.losses.shape[1]
    counts, minima = counted_rows(problem)
    planes = [np.zeros(data.n_rows, np.int64), *fixed.planes, *counts]
    size = int(data.n_bins[0])
    ahead = sums_of_first_codes(np.vstack(planes), data.codes[0], size)
    values = size - (len(data.columns) == 2)
    ahead, rest = ahead[: values + 1], ahead[size] - ahead[values]
    ends = np.arange(values + 1) if minima else useful_ends(np.ascontiguousarray(ahead[:, :K]))
    ahead = ahead[ends]
    intervals = Intervals(
        np.ascontiguousarray(ahead[:, :K]), np.ascontiguousarray(ahead[:, K:]), np.array(minima, np.int64),
        rest[:K].copy(), rest[K:].copy(), values < size,
    )  # fmt: skip
    return intervals, ends


def _walk(state: int, start_of, end: int) -> list[Leaf]:
    """Leaves from the last value back: ``start_of(state, i, leaves so far)`` is where the leaf up to i begins."""
    leaves: list[Leaf] = []
    i = end
    while i > 0 or state:
        at = int(start_of(state, i, len(leaves)))
        if at == ALONE:
            leaves.append((0, 0, True))
            break
        leaves.append((at // 2, i, bool(at % 2)))
        i = at // 2
        state -= at % 2
    return leaves[::-1]


def _rows_of_leaves(problem: Problem, leaves: list[Leaf], values: int) -> list[np.ndarray]:
    """The rows of every leaf of :func:`balanced_splits`: one pass, where following a tree takes one for each level."""
    alone = int(leaves[0][1] == 0)  # which comes after the leaf of the first values
    parts = leaves[alone:]
    of_code = np.zeros(values + 1, np.int64)  # the last code is that of no value
    of_code[[first for first, _, _ in parts[1:]]] = 1
    of_code = np.cumsum(of_code)
    if alone:
        of_code[parts[0][1] :] += 1
        of_code[values] = 1
    else:
        of_code[values] = next((k for k, part in enumerate(parts) if part[2]), 0)
    leaf = of_code[problem.data.codes[0]]
    ends = np.cumsum(np.bincount(leaf, minlength=len(leaves)))
    return np.split(np.argsort(leaf, kind="stable"), ends[:-1])


def balanced_splits(leaves: list[Leaf], n: int) -> list[tuple[int, int]]:
    """A tree of least depth with these leaves, as (column, cut) in preorder."""
    alone = bool(leaves) and leaves[0][1] == 0
    parts = leaves[alone:]
    out: list[tuple[int, int]] = []

    def build(first: int, end: int, alone: bool) -> None:
        if end - first == 1:
            out.extend([(0, n - 1), (-1, 0), (-1, 0)] if alone else [(-1, 0)])
            return
        middle = (first + end) // 2  # the left half is never larger: it takes the leaf that is alone
        missing_left = alone or any(part[2] for part in parts[first:middle])
        out.append((int(missing_left), parts[middle][0] - 1))
        build(first, middle, alone)
        build(middle, end, False)

    build(0, len(parts), alone)
    return out
