"""The engines of the exact search: each works on a ``SharedState``, offers trees to its incumbent and raises its bound.

    TreeEngine      grows incumbents, and searches for better ones
    BoundEngine     a lower bound of the whole problem that is found once, such as conflict pairs
    SubsetEngine    dynamic programming over subsets of rows, in slices; trees of any depth
    DualEngine      row duals: a lower bound of all trees deeper than those that were searched
    DepthEngine     depth-first branch and bound, one depth after the other

Before each depth is searched, ``give_turns`` gives a turn to the engine of the highest ``rate``, again and again: the
searches that its turn could end, per second of work. The search of that depth, whose estimated seconds are T, is the
last one. An engine whose turn may take a tenth of T has ten times its rate; one that expects no more of a second than
that search has the same rate, and its turn just before.

    rate   inf            1 / seconds of the turn                          1 / T
           trees, bounds  subsets (TURN of row duals' seconds)             those that are behind or idle
           that pay       row duals (gates.pricing_share of T)             subsets again, if row duals are slow
                                                                           the search of the depth

An engine works by ``advance``; it stops where the incumbent is proved, its turn ends, or the clock's flag is raised.
Its proofs hold whenever it stops. Seconds are counted work (``core.work_units``), so that time never changes the tree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from policytree.problem.types import Status
from policytree.solvers.core import work_units
from policytree.solvers.core.compilation import SUBSETS, load_kernels
from policytree.solvers.core.fixed_point import MOST_PRICED
from policytree.solvers.core.rows import Node, Splits, expand, rows_of, size_of
from policytree.solvers.exact.binary_features import BinaryRoot, BinaryStack
from policytree.solvers.exact.bounds.conflict_pairs import ConflictPairs
from policytree.solvers.exact.bounds.root_bound import RootBound
from policytree.solvers.exact.bounds.row_duals import PATIENCE, RowDuals
from policytree.solvers.exact.constraint_generation import (
    ConstraintGeneration,
    constraint_generation_applies,
    errors_are_few,
)
from policytree.solvers.exact.depth_search import RootFeature, Stack, least_depth
from policytree.solvers.exact.grow_incumbent import MOST_GROWN, Found, grow_incumbent
from policytree.solvers.exact.incumbent_search import IncumbentSearch
from policytree.solvers.exact.partitions import Partition, Partitions
from policytree.solvers.exact.shared_state import CLOSED_BY_PAIRS, GENERATED_ROWS, RAISED_BY_SUBSETS, SharedState
from policytree.solvers.exact.subset_search import SubsetSearch, choose_sets, start_subset_search
from policytree.solvers.exact.subset_storage import BitMaker, ListMaker
from policytree.solvers.kernels.base.layout import INF, LEAF_COUNTS, NODES, SIMILAR, UNLIMITED
from policytree.solvers.kernels.depth_three.sweep_tables import SweepTables, make_tables
from policytree.solvers.kernels.subsets.layout import CLOSED, ENTERED

# The turn of subsets before that of row duals, as a share of its seconds: set with the tables of merged codes, beside
# which a third of it saved nothing (benchmarks/results/row_duals.md).
TURN = 0.1
# Slices of subsets before a depth, whatever they close: one up to the depth CHEAP, SLICES beyond. They were set with
# benchmarks/no_depth_limit.py; no other values are on record.
CHEAP, SLICES = 4, 4


@dataclass(frozen=True)
class Ahead:
    """The search of one depth, before which engines get turns.

    Attributes
    ----------
    depth : int
        Of the trees that are searched next.
    proved : int
        Trees down to this depth are proved to be no better than the incumbent. It may be less than ``depth - 1``,
        since a depth that could bound nothing is left out.
    seconds : float
        Limit of that search, in seconds of work.
    """

    depth: int
    proved: int
    seconds: float

    def rate(self, seconds: float) -> float:
        """The rate of a turn of so many seconds; never below that of the search itself, or it would not come."""
        return 1.0 / max(min(seconds, self.seconds), work_units.A_NODE)


class Engine:
    """A part of the search that takes turns.

    Attributes
    ----------
    shared : SharedState
    depth : int
        The depth before which it had its last turn, or which it searched last.
    """

    shared: SharedState
    depth = 0

    def rate(self, ahead: Ahead) -> float:
        """The searches that its next turn could end, per second of work; 0 for no turn before this depth."""
        raise NotImplementedError

    def advance(self, ahead: Ahead) -> None:
        """Take a turn."""
        raise NotImplementedError


def give_turns(shared: SharedState, engines: Sequence[Engine], ahead: Ahead) -> None:
    """Give turns to the highest rate, the first engine among equals, as long as there is anything to gain."""
    while not shared.done and shared.useful_depth() >= ahead.depth:
        engine = max(engines, key=lambda each: each.rate(ahead))
        if engine.rate(ahead) == 0:
            return
        engine.advance(ahead)


class TreeEngine(Engine):
    """Incumbents: trees that are grown before every depth beyond the first, and searched for beside them.

    Parameters
    ----------
    depths : DepthEngine
        The search whose incumbents these are; it begins with its depth two.
    """

    def __init__(self, depths: DepthEngine):
        self.depths, self.shared = depths, depths.shared
        shared = self.shared
        if depths.target <= 3:
            return
        f, t = shared.incumbent.tree[0]
        self._grow([(-1, 0)] if f == -1 else [(-2 - f, t), (-1, 0), (-1, 0)])
        if (
            depths.first == 3
            and shared.node.penalty == 0
            and errors_are_few(shared.node, shared.incumbent.value, shared.gates)
        ):
            depths.first = 4  # depth three bounds nothing beyond, and hardly makes a better incumbent
        searches = "incumbent search" in shared.engines and not shared.incumbent.proved
        if searches and shared.clock.fits_memory(Stack.bytes(shared.node, 3, shared.gates)):
            depths.starts = IncumbentSearch(shared, depths.order, depths.hints)
            if depths.first == 4 and depths.generates(shared.node, 4):
                shared.report()  # some of the rows may prove depth four: a few trees come first
                depths.starts.begin()
                shared.incumbent.offer(*depths.starts.best)

    def rate(self, ahead: Ahead) -> float:
        """At once: growing is little work beside a depth, and a better incumbent shortens every proof."""
        return math.inf if self.depth < ahead.depth > max(self.depths.first, 3) else 0.0

    def advance(self, ahead: Ahead) -> None:
        """Grow the incumbent deeper, by two exact levels at a time, and by three.

        Three take about as long as depth three of all rows took, on every level but the last two: little beside
        depth five. Where leaves have a price, deep trees are rarely best, and two levels do.
        """
        shared, starts, self.depth = self.shared, self.depths.starts, ahead.depth
        tree = expand(shared.node, shared.incumbent.tree)
        better = self._grow(tree)
        if starts is not None and starts.grow(tree):
            better = shared.incumbent.offer(*starts.best) or better
        if better:
            self.depths.report()
        if starts is None or ahead.depth > 4:
            return
        # Once depth three is proved, a share of what depth five may take; later on it works beside that search.
        starts.reorder(self.depths.values_of_first_splits())
        seconds = shared.gates.start_advance * work_units.of_next_depth(shared.node, ahead.seconds)
        while starts.advance(seconds):
            shared.incumbent.offer(*starts.best)
            self.depths.report()
            seconds = 0.0

    def _grow(self, splits: Splits) -> bool:
        """Grow a good tree to the last depth by two exact levels at a time; returns whether it is the incumbent."""
        shared, depth = self.shared, self.depths.target
        if self.depths.blocks is not None and depth <= 5:  # blocks find what is better in the same time
            return False
        if not shared.any_root or shared.leaves != UNLIMITED:
            return False
        return shared.incumbent.offer(*grow_incumbent(shared.node, splits, min(depth, MOST_GROWN), shared.clock.flag))


class BoundEngine(Engine):
    """A lower bound of the whole problem, which is tried before a depth once it costs little beside that search."""

    def __init__(self, shared: SharedState, bound: RootBound):
        self.shared, self.bound = shared, bound

    def rate(self, ahead: Ahead) -> float:
        """At once, if it pays: the bound is found once, and other engines may use it from then on."""
        return math.inf if self.depth < ahead.depth > 3 and self.bound.pays(ahead.seconds) else 0.0

    def advance(self, ahead: Ahead) -> None:
        """Raise the bound of all trees that are not searched yet."""
        self.depth = ahead.depth
        self.shared.improve(self.bound, ahead.proved, ahead.seconds)


class DualEngine(Engine):
    """A lower bound of all trees deeper than those that were searched, by row duals.

    Parameters
    ----------
    shared : SharedState
    applies : bool
        Whether it ever works.

    Attributes
    ----------
    slow : bool
        Whether the seconds of the last turn were far too few.
    promising : bool
        Whether the last turn did not end with many rounds that brought no better bound.
    """

    def __init__(self, shared: SharedState, applies: bool):
        self.shared, self.applies = shared, applies
        self.duals: RowDuals | None = None
        self.slow = self.promising = False

    def seconds(self, ahead: Ahead) -> float:
        """Seconds of a turn; 0 where so few are not worth while."""
        seconds = self.shared.gates.pricing_share * ahead.seconds
        return seconds if self.applies and seconds >= self.shared.gates.least_pricing_seconds else 0.0

    def rate(self, ahead: Ahead) -> float:
        """A proof in these seconds, if the bound still rises; before the first turn that is not known."""
        seconds = self.seconds(ahead)
        if seconds <= 0 or self.depth == ahead.depth:
            return 0.0
        return ahead.rate(seconds if self.promising else math.inf)

    def advance(self, ahead: Ahead) -> None:
        """Bound all trees of this depth and deeper ones."""
        shared, self.depth = self.shared, ahead.depth
        self.duals = self.duals or RowDuals(shared.node, shared.clock, shared.gates)
        shared.improve(self.duals, ahead.proved, self.seconds(ahead))
        self.slow, self.promising = self.duals.slow, self.duals.waited < PATIENCE
        shared.report()

    def bounded(self) -> Node:
        """The rows with their duals, where these are known."""
        return self.shared.node if self.duals is None else self.duals.bounded()


class SubsetEngine(Engine):
    """Dynamic programming over subsets of rows, in slices that double.

    Parameters
    ----------
    shared : SharedState
    bounds : sequence of RootBound
        Tried once they cost little beside this search. If conflict pairs are above what this search has proved, they
        bound every subset from then on.
    duals : DualEngine
        Its duals bound every subset, too.
    most : float
        Seconds of a turn at most.
    make : ListMaker or BitMaker, optional
        How subsets are kept, if it was chosen before.
    """

    def __init__(
        self, shared: SharedState, bounds: Sequence[RootBound], duals: DualEngine, most: float,
        make: ListMaker | BitMaker | None = None,
    ):  # fmt: skip
        self.shared, self.bounds, self.duals, self.most = shared, bounds, duals, most
        self.pairs = next((bound for bound in bounds if isinstance(bound, ConflictPairs)), None)
        make = make or choose_sets(shared.node, shared.restricted_roots, gates=shared.gates)
        with shared.clock.paused():
            load_kernels([(SUBSETS, make.keeps)])
        most = -(-(shared.incumbent.value - shared.floor) // shared.node.penalty)
        self.search: SubsetSearch | None = start_subset_search(
            shared.node, most, shared.clock, shared.restricted_roots, gates=shared.gates, make=make
        )
        self.slice = 0 if self.search is None else self.search.first_slice()
        self.had_second = False  # turn before the depth

    @property
    def behind_duals(self) -> bool:
        """Whether row duals raised the bound above what this search has proved."""
        shared, search = self.shared, self.search
        return search is not None and shared.used[RowDuals.counter] > 0 and search.bound < shared.incumbent.bound

    def seconds(self, ahead: Ahead) -> float:
        """Seconds of the turn before that of row duals; without a limit but the gap's if these have no turn."""
        return min(TURN * self.duals.seconds(ahead) or math.inf, self.most)

    def rate(self, ahead: Ahead) -> float:
        """A proof in one turn, unless row duals proved more; a second turn if they turned out to be slow."""
        if self.search is None:  # memory is short
            return 0.0
        if self.depth < ahead.depth:
            return ahead.rate(math.inf if self.behind_duals else self.seconds(ahead))
        again = self.duals.slow and self.duals.depth == ahead.depth and not self.had_second
        return ahead.rate(math.inf) if again else 0.0

    def advance(self, ahead: Ahead) -> None:
        """Take the first turn before a depth, or the second, which may take as long as that depth."""
        self.had_second = self.depth == ahead.depth
        self.depth = ahead.depth
        if self.had_second:
            self.work(1, ahead.seconds)
        else:
            self.work(1 if ahead.depth <= CHEAP else SLICES, self.seconds(ahead))

    def work(self, slices: int, seconds: float) -> None:
        """Work for some slices, and on while each closes enough of the gap, for at most so many seconds of work."""
        if self.search is None:
            return
        self.search = self.search.with_duals(self.duals.bounded())
        shared, search = self.shared, self.search
        until = seconds + work_units.of_sets(search.counters)
        while not (search.ended or shared.clock.stopped):
            conflicts = None if self.pairs is None else self.pairs.conflicts
            if conflicts is not None and shared.used[ConflictPairs.counter] > 0 and not search.has_conflicts:
                search.use_conflicts(conflicts)
                slices = max(slices, 1)
            slices -= 1
            before, gap = search.counters.copy(), shared.incumbent.value - shared.incumbent.bound
            if search.advance(shared.incumbent.value, self.slice) < shared.incumbent.value:
                value, tree = search.tree()
                depth, leaves = size_of(tree)
                if depth <= shared.depth and leaves <= shared.leaves:
                    shared.incumbent.offer(value, tree)
            self.slice *= 2
            done = search.counters - before
            shared.work[NODES] += int(done[ENTERED])
            shared.used[CLOSED_BY_PAIRS] += int(done[CLOSED])
            spent = work_units.of_sets(search.counters)
            shared.raise_bound(search.bound, RAISED_BY_SUBSETS)
            for bound in self.bounds:
                shared.improve(bound, 0, spent)
            shared.report()
            pays = shared.incumbent.value - shared.incumbent.bound <= (1 - shared.gates.set_gain) * gap
            if shared.incumbent.proved or not (pays or slices > 0) or spent > until:
                break


class DepthEngine(Engine):
    """Branch and bound over trees of one depth: all first cuts of every root feature.

    Parameters
    ----------
    shared : SharedState
    order, hints : ndarray
        Of every column: the value of the best tree of depth two with this first split, and its cut.
    first : int
        The first depth that is searched.
    duals : DualEngine
        Its duals bound every node.
    blocks : BinaryRoot, optional
        Pair sums of two-valued columns, which then do the work instead of tables.

    Attributes
    ----------
    target : int
        The last depth.
    starts : IncumbentSearch or None
        A search for incumbents, which works beside this one.
    features : dict of RootFeature
        Bounds of both sides of every first cut, by column, in the order of the search.
    depth, useful : int
        The depth of this pass, and that down to which its nodes can be of use.
    seconds : float
        Of work on the last pass; before the first one, of depth two.
    """

    def __init__(
        self,
        shared: SharedState,
        order: np.ndarray,
        hints: np.ndarray,
        first: int,
        duals: DualEngine,
        blocks: BinaryRoot | None,
    ):
        self.shared, self.order, self.hints, self.duals, self.blocks = shared, order, hints, duals, blocks
        self.first, self.target = first, shared.useful_depth()
        self.starts: IncumbentSearch | None = None
        self.features: dict[int, RootFeature] = {}
        self.useful = 0
        self.final = False
        # Work of this pass on some of the rows (constraint generation), counted as nodes of their size.
        self._of_some, self._seconds_of_some = np.zeros_like(shared.work), 0.0
        self.seconds = work_units.DEPTH_TWO if shared.any_root else 0.0

    def ahead(self, depth: int) -> Ahead:
        """The search of the next depth, with what it may take; depth two is proved, unless roots are given."""
        proved = self.depth or (2 if self.shared.any_root else 0)
        return Ahead(depth, proved, work_units.of_next_depth(self.shared.node, self.seconds))

    def rate(self, ahead: Ahead) -> float:
        """The least: it may take all the seconds, and shallow depths end no search without a limit of depth."""
        return ahead.rate(math.inf) if self.depth < ahead.depth else 0.0

    def advance(self, ahead: Ahead) -> None:
        """Search every root feature: a few cuts of each first, then to the end."""
        shared, before = self.shared, self.shared.work.copy()
        self._of_some, self._seconds_of_some = np.zeros_like(before), 0.0
        self._search(ahead.depth)
        of_all = shared.work - before - self._of_some
        self.seconds = self._seconds_of_some + work_units.of_depth(shared.node, of_all)

    def _search(self, depth: int) -> None:
        shared, bounded = self.shared, self.duals.bounded()
        # Where no deeper tree can be better, bounds hold for the problem.
        self.depth, self.useful, self.final = depth, min(depth, shared.useful_depth()), depth == self.target
        self.features = {}
        for f in map(int, np.argsort(self.order, kind="stable")):
            if f in shared.roots:
                low = np.full(shared.node.bins[f] - 1, -INF, np.int64)
                self.features[f] = RootFeature(low, low.copy(), int(self.hints[f]), shared.node.paid(f))
        if self.blocks is not None:
            self.blocks.share(self.useful)
        else:
            self._make_tables()
        if shared.clock.stopped:
            return
        self.partitions = self._make_partitions(bounded)
        if self.generates(bounded, self.useful):
            generation = ConstraintGeneration(self)
            generation.generate()
            shared.used[GENERATED_ROWS] += int(generation.inside.sum())
        for first in (True, False):
            if not (shared.incumbent.proved or all(state.solved for state in self.features.values())):
                self._round(first)

    def generates(self, node: Node, depth: int) -> bool:
        """Whether a depth is to be proved from some of these rows."""
        shared = self.shared
        asked = "constraint generation" in shared.engines
        return asked and constraint_generation_applies(node, depth, shared.incumbent.value, shared.gates)

    def _make_tables(self) -> None:
        """Allocate what all stacks share, unless memory is short."""
        shared, node = self.shared, self.shared.node
        at_once = Partitions.number_of(self.useful <= 3)
        if self.useful <= 3:
            at_once = min(shared.limits.n_jobs, at_once)
        stacks = min(at_once, len(self.features))
        if not shared.clock.fits_memory(Stack.bytes(node, self.useful, shared.gates) * stacks):
            shared.clock.stop(Status.MEMORY_LIMIT)
            return
        part = node if self.useful == 3 else rows_of(node, np.arange(1))
        self.tables: SweepTables = make_tables(part.rows, part.rules, part.special)
        if node.priced and self.useful > MOST_PRICED:
            shared.clock.flag[SIMILAR] = 0  # a similarity bound would have to charge for longer paths

    def _make_partitions(self, bounded: Node) -> Partitions:
        shared, blocks = self.shared, self.blocks
        proved = shared.clock.flag[LEAF_COUNTS] != 0 and (self.depth > self.first or shared.any_root)
        above = shared.incumbent.value - shared.floor
        need = least_depth(self.depth, proved, above, shared.node.penalty, shared.gates.most_needed_prices)

        def make_worker() -> Stack | BinaryStack:
            if blocks is not None:
                return BinaryStack(blocks, self.useful, shared.gates.most_block_sides)
            return Stack(bounded, self.useful, shared.leaves, self.tables, need, shared.gates)

        return Partitions(list(self.features), self.useful <= 3, shared.limits.n_jobs, make_worker)

    def _round(self, first: bool) -> None:
        """Let every partition work on its open features, all from the incumbent at the start of the round."""
        cutoff = self.shared.incumbent.value

        def work(partition: Partition, worker: Any) -> tuple[int, Splits | None]:
            return self._work_on(partition, worker, cutoff, first)

        for value, tree in self.partitions.map(work):  # in the order of partitions: ties go to the first
            if tree is not None:
                self.shared.incumbent.offer(value, tree)
        self._raise_bound()

    def _work_on(self, partition: Partition, worker: Any, cutoff: int, first: bool) -> tuple[int, Splits | None]:
        """Search a partition's features in turn; returns its best value below the cutoff and the tree."""
        best = None
        for f in partition.features:
            state = self.features[f]
            if state.solved or self.shared.clock.stopped or partition.place > self.partitions.last_needed:
                continue
            value, tree = worker.advance(f, self.depth, cutoff, state, first, self.shared.clock.flag)
            counters = worker.take_counters()
            state.solved = state.lower_bound() >= min(cutoff, value)
            if tree is not None:
                cutoff, best = value, tree
            # One partition alone, which tells its own work, so that threads do not change what is found when.
            found = self._search_beside(self.shared.node, counters) if partition.place == 0 else None
            if found is not None and found[0] < cutoff:
                cutoff, best = found
            with self.shared.lock:
                self.shared.count(counters, cutoff)
                if cutoff <= self.shared.incumbent.bound:
                    self.partitions.last_needed = min(self.partitions.last_needed, partition.place)
                self.report()
        return cutoff, best

    def _search_beside(self, node: Node, counters: np.ndarray) -> Found | None:
        """Give the search for incumbents its share of so much work on a node; returns its tree if it is better."""
        if self.starts is None:
            return None
        work = work_units.of_depth(node, counters)
        return self.starts.best if self.starts.advance(self.shared.gates.start_share * work) else None

    def take_turn(self, node: Node, counters: np.ndarray) -> None:
        """Note work on some rows; the search for incumbents gets its share, and its tree is taken if it is better."""
        self._of_some += counters
        self._seconds_of_some += work_units.of_depth(node, counters)
        found = self._search_beside(node, counters)
        if found is not None:
            self.shared.incumbent.offer(*found)

    def _raise_bound(self) -> None:
        if self.final:
            bounds = (state.lower_bound() for state in self.features.values())
            self.shared.incumbent.raise_bound(min(bounds, default=self.shared.incumbent.value))

    def values_of_first_splits(self) -> np.ndarray:
        """Of every column, what the search has proved of the trees whose first split is the hint of its depth two."""
        values = np.full(len(self.shared.node.bins), INF)
        for f, state in self.features.items():
            t = self.hints[f]
            values[f] = state.left[t] + state.right[t] + state.paid
        return values

    def report(self) -> None:
        """Report progress. Passes of less than the full depth close nothing of the problem."""
        if self.shared.limits.progress is None:
            return
        self._raise_bound()
        solved = sum(state.solved for state in self.features.values()) / max(len(self.features), 1)
        self.shared.report(solved if self.final else 0.0)
