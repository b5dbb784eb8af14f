"""The direct solver: exact search over trees for real-valued losses, by bounds and pair tables."""

from __future__ import annotations

import functools
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from policytree.problem.types import Problem, Progress, SearchLimits, Solution, Status
from policytree.solvers.core import work_units
from policytree.solvers.core.compilation import is_special, load_kernels
from policytree.solvers.core.fixed_point import MOST_PRICED, FixedPoint, to_fixed_point
from policytree.solvers.core.limits import Clock
from policytree.solvers.core.rows import (
    Splits,
    depth_two,
    expand,
    grow_fully,
    new_control,
    prepare,
    refuse_memory,
    rows_of,
    size_of,
)
from policytree.solvers.core.scoring import finish, leaf_only
from policytree.solvers.exact.binary_features import BinaryRoot, BinaryStack, blocks_for
from policytree.solvers.exact.bounds.conflict_pairs import ConflictPairs
from policytree.solvers.exact.bounds.row_duals import (
    RowDuals,
    boxes_are_few,
    row_duals_apply,
    seconds_to_spend,
    turns_of_subsets,
)
from policytree.solvers.exact.constraint_generation import (
    ConstraintGeneration,
    constraint_generation_applies,
    errors_are_few,
)
from policytree.solvers.exact.depth_search import Partition, RootFeature, Stack, least_depth
from policytree.solvers.exact.estimate import estimated_seconds
from policytree.solvers.exact.grow_incumbent import MOST_GROWN, grow_incumbent
from policytree.solvers.exact.interval_dp import one_feature_applies, solve_one_feature
from policytree.solvers.exact.needed_kernels import needed_kernels
from policytree.solvers.exact.shared_test_costs import shares_test_costs, solve_shared_costs
from policytree.solvers.exact.subset_search import SubsetSearch, start_subset_search, subset_search_applies
from policytree.solvers.kernels.base.layout import (
    COUNTERS,
    CUTS,
    FEASIBLE,
    INF,
    LEAF_COUNTS,
    NODES,
    SIMILAR,
    TWO,
    UNLIMITED,
)
from policytree.solvers.kernels.base.sums import best_one_split
from policytree.solvers.kernels.depth_three.sweep_tables import SweepTables, make_tables
from policytree.solvers.kernels.subsets.layout import ENTERED

# Independent searches, whatever the number of threads, so that it cannot change the tree; deep ones have a cache each.
PARTITIONS, SWEEP_PARTITIONS = 2, 8
# The search over row sets works in slices, each of twice as much work, as long as a slice closes that share of the gap.
# Before depths that are not cheap it has some slices in any case.
CHEAP, PATIENCE = 4, 4


def solve_direct(
    problem: Problem,
    limits: SearchLimits | None = None,
    *,
    similar_support: bool = True,
    cache: bool = True,
    look_ahead: bool = True,
    leaf_counts: bool = True,
    merge: bool = True,
) -> Solution:
    """Find the best tree, with a proof.

    Parameters
    ----------
    problem : Problem
    limits : SearchLimits, optional
    similar_support, cache, look_ahead, leaf_counts, merge : bool
        What only saves work, and never changes the objective: bounds from neighbouring cuts; the cache of solved sets;
        that a side is a leaf or pays for two; that a deep tree pays for many leaves; merging of equal rows.

    Returns
    -------
    Solution
        ``status`` is OPTIMAL (OPTIMAL_GIVEN_GUESSES if thresholds were thinned), or says which limit ended the
        search; the tree and the lower bound are valid either way.

    Notes
    -----
    Losses become int64 fixed point, so sums are exact and pruning needs no tolerance. Subtrees of depth two are solved
    by tables over pairs of features (after the specialised depth-two solver of Demirovic et al., MurTree, JMLR 2022);
    root cuts are refuted by similar-support bounds (Angelino et al., CORELS, JMLR 2018; Brita et al., ConTree, AAAI
    2025), and a branch ends when the leaf penalty of its next split exceeds what is left to gain.
    """
    if shares_test_costs(problem):
        return solve_shared_costs(problem, limits)
    limits, control = limits or SearchLimits(), new_control(similar_support, cache, look_ahead, leaf_counts)
    kind = blocks_for(problem, limits.gates)
    compile_seconds = load_kernels(needed_kernels(problem, kind, limits.gates))
    clock = Clock(limits.time_limit, control, limits.memory_limit)
    solution = clock.watch(lambda: _solve(problem, limits, clock, merge, kind))
    return replace(solution, compile_seconds=compile_seconds) if compile_seconds else solution


SWITCHES = ("similar_support", "cache", "look_ahead", "leaf_counts", "merge")
vars(solve_direct).update(estimated_seconds=estimated_seconds, switches=SWITCHES)  # a long search is warned of


def _solve(problem: Problem, limits: SearchLimits, clock: Clock, merge: bool, kind: np.dtype | None) -> Solution:
    costs = problem.feature_costs, problem.weights
    fixed = to_fixed_point(problem.losses, problem.leaf_penalty, problem.most_leaves, *costs)
    if one_feature_applies(problem):
        return solve_one_feature(problem, fixed, clock, limits.gates)
    refuse_memory(problem, limits)
    node = prepare(problem, fixed, merge, is_special(problem), limits.gates)
    leaf, floor = node.leaf()
    if leaf >= FEASIBLE:
        return leaf_only(problem, fixed, Status.INFEASIBLE, clock.seconds())
    search = _Search(problem, node, leaf, floor, limits, clock, fixed, kind)
    search.run()
    counters = {"merged_rows": node.n_rows, **dict(zip(COUNTERS, map(int, search.work), strict=True))}
    status = clock.status if clock.stopped and search.bound < search.best else problem.proved_status
    gap = fixed.to_float(search.best - search.bound)
    return finish(problem, fixed, expand(node, search.tree), gap, status, clock.seconds(), counters)


class _Search:
    """Rounds over root features; the kernels do the work, this class owns incumbent, bounds, threads and clock."""

    def __init__(self, problem: Problem, node, leaf, floor, limits, clock: Clock, fixed: FixedPoint, kind):
        self.base = float(problem.losses[:, 0].sum())
        self.node, self.limits, self.clock, self.fixed, self.gates = node, limits, clock, fixed, limits.gates
        self.best, self.floor = leaf + node.penalty, floor
        self.tree, self.final = [(-1, 0)], False
        self.bound = min(self.best, floor + 2 * node.penalty)
        depth = UNLIMITED if problem.max_depth is None else min(problem.max_depth, node.n_rows - 1)
        self.problem_depth = self.depth = depth
        self.roots = np.flatnonzero(problem.root_columns).tolist()
        self.leaf_limit = UNLIMITED if problem.max_leaf_nodes is None else problem.max_leaf_nodes
        self.most_leaves = min([node.n_rows, self.leaf_limit, *(node.counts.sum(axis=1) // node.rules.minima)])
        self.kind: np.dtype | None = kind  # of the blocks' sums, where blocks apply
        # Most that row sets may take.
        self.by_blocks = math.inf if kind is None else estimated_seconds(problem, self.gates)
        self.blocks: BinaryRoot | None = None
        self.by_subsets = (
            subset_search_applies(problem, self.gates) and node.penalty > 0
        )  # which may be rounded to nothing
        self.sets: SubsetSearch | None = None  # beside the search over depths, where it applies
        self.slice = 0  # work of the next slice
        self.by_duals = kind is None and row_duals_apply(problem, self.gates) and boxes_are_few(node, self.gates)
        self.prices: RowDuals | None = None  # after a depth that was proved, where they apply
        self.pairs = ConflictPairs(node, clock, self.gates)  # where prices of rows do not apply
        self.work = np.zeros(len(COUNTERS), dtype=np.int64)
        self.features: dict[int, RootFeature] = {}
        self.lock = threading.Lock()
        self.shown = INF  # the best of all lanes so far; the incumbent moves only between rounds

    def _useful_depth(self) -> int:
        """Depth worth searching: a tree of h leaves costs at least ``floor + h * penalty``, its depth is below h."""
        penalty = self.node.penalty
        if self.best <= self.floor + 2 * penalty or not self.roots:
            return 0
        most = self.most_leaves - 1
        if penalty > 0:
            most = min(most, max(-(-(self.best - self.floor) // penalty) - 2, 0))
        return min(self.problem_depth, most)

    def run(self) -> None:
        """Search until the bound meets the incumbent or a limit strikes."""
        if self._useful_depth() == 0:
            self.bound = self.best
        elif self._splits_are_free():
            self.best, self.tree = grow_fully(self.node)
            self.bound = self.best
        elif self._useful_depth() == 1 and self._any_root():
            self._try_one_split()
            self.bound = self.best
        else:
            self._deep()

    def _splits_are_free(self) -> bool:
        free = self.node.penalty == 0 and len(self.node.rules.minima) == 0 and not self.node.priced
        return free and self.problem_depth == self.leaf_limit == UNLIMITED and self._any_root()

    def _any_root(self) -> bool:
        return len(self.roots) == len(self.node.bins)

    def _try_one_split(self) -> None:
        value, f, t = best_one_split(self.node.rows, self.node.rules)
        value += 2 * self.node.penalty
        if f >= 0 and value < self.best:
            self.best, self.tree = int(value), [(int(f), int(t)), (-1, 0), (-1, 0)]

    def _deep(self) -> None:
        """Depth two outright; beyond, use it as the first incumbent and to order the root features."""
        node = self.node
        if self.kind is not None:
            value, f, t, roots, cuts = self._make_blocks()
        else:
            (value, f, t), _, (roots, cuts) = depth_two(node, min(self.leaf_limit, 4), self.clock.flag)
        first = 3
        if self._any_root():
            f, t = int(f), int(t)  # as expand reads it
            self.best, self.tree = int(value), [(-1, 0) if f < 0 else (-2 - f, -1 - t if self.leaf_limit == 3 else t)]
        else:  # the search below starts at every root feature that is allowed
            first = min(self._useful_depth(), 2)
        if self.clock.stopped:
            if self._any_root():
                self._try_one_split()  # takes no time, and may be more than two splits have come to
            return
        self.work[TWO] += 1
        if self._useful_depth() < first:
            self.bound = self.best
            return
        self._deepen(first, roots, cuts)

    def _deepen(self, first: int, order: np.ndarray, cuts: np.ndarray) -> None:
        """Depths from ``first`` on, one after the other; and the search over row sets, while that pays.

        Shallower problems are cheap and leave an incumbent behind; their bounds do not hold for deeper trees.
        """
        node, target = self.node, self._useful_depth()
        if target > 3:
            f, t = self.tree[0]  # of depth two
            self._grow([(-1, 0)] if f == -1 else [(-2 - f, t), (-1, 0), (-1, 0)], target)
            if first == 3 and node.penalty == 0 and errors_are_few(node, self.best, self.gates):
                first = 4  # depth three bounds nothing beyond, and hardly makes a better incumbent
        if self.by_subsets:
            roots = None if self._any_root() else self.roots
            most = -(-(self.best - self.floor) // node.penalty)
            self.sets = start_subset_search(node, most, self.clock, roots, gates=self.gates)
            self.slice = 0 if self.sets is None else self.sets.first_slice()
        seconds = (
            work_units.DEPTH_TWO if self._any_root() else 0.0
        )  # of the last depth that was proved; see work_units.py
        for depth in range(first, target + 1):
            if depth > max(first, 3):
                self._grow(expand(node, self.tree), target)
            if self._useful_depth() < depth:  # an incumbent so good that deeper trees cannot pay
                break
            worth = seconds_to_spend(node, seconds, self.gates) if self.by_duals else 0.0
            slices, turn = (
                1 if depth <= CHEAP else PATIENCE,
                min(turns_of_subsets(worth, self.gates)[0], self.by_blocks),
            )
            if self._search_subsets(slices, turn) or self._improve_dual_bound(depth - 1, worth):
                return
            before, self.final = self.work.copy(), depth == target
            proved = self.clock.flag[LEAF_COUNTS] != 0 and (depth > first or self._any_root())
            self.depth = depth
            above, most = self.best - self.floor, self.gates.most_needed_prices
            self.need = least_depth(depth, proved, above, node.penalty, most)
            self._all_rounds(order, cuts)
            if self.clock.stopped:
                return
            seconds = work_units.of_depth(node, before, self.work)
            self._raise_bound(self.pairs.bound(work_units.of_next_depth(node, seconds)))
        if self._useful_depth() <= depth:
            self.bound = self.best

    def _search_subsets(self, slices: int, seconds: float) -> bool:
        """Search over row sets, some slices and on while that pays, where it applies; whether nothing is left to do."""
        until = seconds + (0.0 if self.sets is None else work_units.of_sets(self.sets.counters))
        while self.sets is not None and not (self.sets.ended or self.clock.stopped):
            slices -= 1
            entered, gap = int(self.sets.counters[ENTERED]), self.best - self.bound
            if self.sets.run(self.best, self.slice) < self.best:
                value, tree = self.sets.tree()
                depth, leaves = size_of(tree)
                if value < self.best and depth <= self.problem_depth and leaves <= self.leaf_limit:
                    self.best, self.tree = value, tree
            self.slice *= 2
            self.work[NODES] += int(self.sets.counters[ENTERED]) - entered
            self._raise_bound(max(self.sets.bound, self.pairs.bound(work_units.of_sets(self.sets.counters))))
            self.report()
            if self.best == self.bound:
                return True
            pays = self.best - self.bound <= (1 - self.gates.set_gain) * gap
            if not (pays or slices > 0) or work_units.of_sets(self.sets.counters) > until:
                break
        return self.clock.stopped

    def _improve_dual_bound(self, depth: int, worth: float) -> bool:
        """Bound all trees beyond the depth that was proved, in as many seconds; returns whether that is all."""
        if worth > 0:
            self.prices = self.prices or RowDuals(self.node, self.clock, self.gates)
            self._raise_bound(self.prices.work(self.best, expand(self.node, self.tree), depth, worth))
            self.report()
            if self.prices.slow:
                return self.bound == self.best or self._search_subsets(1, turns_of_subsets(worth, self.gates)[1])
        return self.clock.stopped or self.bound == self.best

    def _grow(self, splits: Splits, depth: int) -> None:
        """Make a deeper tree of one that is good, for an incumbent."""
        if self.blocks is not None and depth <= 5:
            return  # blocks find what is better in the same time
        if self._any_root() and self.leaf_limit == UNLIMITED:
            value, tree = grow_incumbent(self.node, splits, min(depth, MOST_GROWN), self.clock.flag)
            if value < self.best:
                self.best, self.tree = value, tree
                if self.features:
                    self.report()

    def _make_blocks(self) -> tuple[int, int, int, np.ndarray, np.ndarray]:
        """Depth two by blocks of two-valued columns, which the search beyond goes on with."""
        cuts = np.zeros(len(self.node.bins), np.int64)
        useful, shared = self._useful_depth(), self.gates.most_shared_bytes
        assert self.kind is not None, "there are blocks"
        if not self.clock.fits_memory(BinaryRoot.bytes(self.node, self.kind, useful, shared)):
            self.clock.stop(Status.MEMORY_LIMIT)
            return self.best, -1, 0, cuts, cuts
        self.blocks = BinaryRoot.solved(self.node, self.kind, useful, self.clock.flag, shared)
        self.work += self.blocks.counters
        roots = self.blocks.first
        f = int(np.argmin(roots))
        return (int(roots[f]), f, 0, roots, cuts) if roots[f] < self.best else (self.best, -1, 0, roots, cuts)

    def _all_rounds(self, roots: np.ndarray, cuts: np.ndarray) -> None:
        """Search every root feature at the present depth: a few cuts of each, then to the end."""
        node = self.node
        self.features = {}
        for f in np.argsort(roots, kind="stable"):
            if f in self.roots:
                low = np.full(node.bins[f] - 1, -INF, np.int64)
                self.features[int(f)] = RootFeature(low, low.copy(), int(cuts[f]), node.paid(int(f)))
        names = list(self.features)
        self.useful = min(self.depth, self._useful_depth())
        self.bounded = node if self.prices is None else self.prices.bounded()
        self.sets = self.sets and self.sets.with_duals(self.bounded)
        # Sweeps keep nothing from one root feature to the next: any free worker serves any lane.
        partitions = SWEEP_PARTITIONS if self.useful <= 3 else PARTITIONS
        self.partitions = [Partition(k, names[k::partitions]) for k in range(min(partitions, len(names)))]
        self.last_needed = len(self.partitions)  # a lane that finds what is surely best makes those after it idle
        self.free: list[Stack | BinaryStack] = []
        if self.blocks is not None:
            self.blocks.share(self.useful)
        else:
            self._make_tables(len(names))
        if self.clock.stopped:
            return
        if self.blocks is None and constraint_generation_applies(self.bounded, self.useful, self.best, self.gates):
            ConstraintGeneration(self).run()
        for first in (True, False):
            if self.best > self.bound and not all(state.solved for state in self.features.values()):
                self._round(first)

    def _make_tables(self, n_roots: int) -> None:
        """Allocate what stacks share, unless memory is short."""
        node = self.node
        partitions_at_once = min(self.limits.n_jobs, SWEEP_PARTITIONS) if self.useful <= 3 else PARTITIONS
        if not self.clock.fits_memory(Stack.bytes(node, self.useful, self.gates) * min(partitions_at_once, n_roots)):
            self.clock.stop(Status.MEMORY_LIMIT)
            return
        part = node if self.useful == 3 else rows_of(node, np.arange(1))
        self.tables: SweepTables = make_tables(part.rows, part.rules, part.special)
        if node.priced and self.useful > MOST_PRICED:
            self.clock.flag[SIMILAR] = 0  # a bound for moved rows would have to price longer paths

    def _round(self, first: bool) -> None:
        """Let every lane advance its open features, all from the incumbent that the round starts with."""
        run = functools.partial(self._run_partition, cutoff=self.best, first=first)
        if self.limits.n_jobs == 1:  # a pool costs small searches half of their time
            results = [run(partition) for partition in self.partitions]
        else:
            with ThreadPoolExecutor(self.limits.n_jobs) as pool:
                results = list(pool.map(run, self.partitions))
        for value, tree in results:  # in the order of lanes: ties go to the first
            if tree is not None and value < self.best:
                self.best, self.tree = value, tree
        self._update_bound()

    def _run_partition(self, partition: Partition, cutoff: int, first: bool):
        """Advance a lane's features one after the other; returns its best value below the budget and the tree."""
        tree = None
        worker = partition.worker or self._free_worker()
        for f in partition.features:
            if not self.features[f].solved and not self.clock.stopped and partition.place <= self.last_needed:
                value, found = self._advance(worker, partition, f, cutoff, first)
                if found is not None:
                    cutoff, tree = value, found
        if self.useful > 3:
            partition.worker = worker
        else:
            self.free.append(worker)
        return cutoff, tree

    def _free_worker(self) -> Stack | BinaryStack:
        try:
            return self.free.pop()  # atomic: two threads never get the same
        except IndexError:
            if self.blocks is not None:
                return BinaryStack(self.blocks, self.useful, self.gates.most_block_sides)
            return Stack(self.bounded, self.useful, self.leaf_limit, self.tables, self.need, self.gates)

    def _update_bound(self) -> None:
        if self.final:
            self._raise_bound(min((state.lower_bound() for state in self.features.values()), default=self.best))

    def _raise_bound(self, bound: int) -> None:
        self.bound = min(self.best, max(self.bound, bound))

    def _advance(self, worker: Stack | BinaryStack, partition: Partition, f: int, cutoff: int, first: bool):
        """Search one root feature; returns its best value below the budget and the tree, or (budget, None)."""
        state = self.features[f]
        value, tree = worker.advance(f, self.depth, cutoff, state, first, self.clock.flag)
        with self.lock:
            self.work += worker.take_counters()
            state.solved = state.lower_bound() >= min(cutoff, value)
            self.shown = min(self.shown, value)
            if value <= self.bound:
                self.last_needed = min(self.last_needed, partition.place)
            self.report()
        return value, tree

    def report(self) -> None:
        """Tell the user's callback how far the search is."""
        if self.limits.progress is None:
            return
        self._update_bound()
        solved = sum(state.solved for state in self.features.values()) / max(len(self.features), 1)
        closed = solved if self.final else 0.0  # shallower passes close nothing of the problem asked
        shown, bound = (self.base + self.fixed.to_float(v) for v in (min(self.shown, self.best), self.bound))
        work = int(self.work[NODES] + self.work[CUTS])
        self.limits.progress(Progress(self.clock.seconds(), shown, bound, closed, work))
