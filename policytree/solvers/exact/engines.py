"""The engines of the exact search: each works on a ``Run``, offers trees to its incumbent and raises its bound.

    DepthEngine     depth-first branch and bound, one depth after the other
    SubsetEngine    dynamic programming over subsets of rows, in slices; trees of any depth
    DualEngine      row duals: a lower bound of all trees deeper than those that were searched

An engine has one method that works, ``advance``; it stops where the incumbent is proved, its turn ends, or the clock's
flag is raised. Its proofs hold whenever it stops.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from policytree.problem.types import Status
from policytree.solvers.core import work_units
from policytree.solvers.core.compilation import SUBSETS, load_kernels
from policytree.solvers.core.fixed_point import MOST_PRICED
from policytree.solvers.core.rows import Node, Splits, rows_of, size_of
from policytree.solvers.exact.binary_features import BinaryRoot, BinaryStack
from policytree.solvers.exact.bounds.conflict_pairs import ConflictPairs
from policytree.solvers.exact.bounds.row_duals import PATIENCE, RowDuals
from policytree.solvers.exact.constraint_generation import ConstraintGeneration, constraint_generation_applies
from policytree.solvers.exact.depth_search import RootFeature, Stack
from policytree.solvers.exact.grow_incumbent import Found
from policytree.solvers.exact.incumbent_search import IncumbentSearch
from policytree.solvers.exact.run import (
    CLOSED_BY_PAIRS,
    GENERATED_ROWS,
    RAISED_BY_DUALS,
    RAISED_BY_PAIRS,
    RAISED_BY_SUBSETS,
    Run,
)
from policytree.solvers.exact.scheduler import Partition, Scheduler
from policytree.solvers.exact.subset_search import SubsetSearch, choose_sets, start_subset_search
from policytree.solvers.exact.subset_storage import BitMaker, ListMaker
from policytree.solvers.kernels.base.layout import INF, NODES, SIMILAR
from policytree.solvers.kernels.depth_three.sweep_tables import SweepTables, make_tables
from policytree.solvers.kernels.subsets.layout import CLOSED, ENTERED


class DepthEngine:
    """Branch and bound over trees of one depth: all first cuts of every root feature.

    Parameters
    ----------
    run : Run
    blocks : BinaryRoot, optional
        Pair sums of two-valued columns, which then do the work instead of tables.
    starts : IncumbentSearch, optional
        A search for incumbents, which works beside this one.

    Attributes
    ----------
    features : dict of RootFeature
        Bounds of both sides of every first cut, by column, in the order of the search.
    depth, useful : int
        The depth of this pass, and that down to which its nodes can be of use.
    """

    def __init__(self, run: Run, blocks: BinaryRoot | None, starts: IncumbentSearch | None = None):
        self.run, self.blocks, self.starts = run, blocks, starts
        self.features: dict[int, RootFeature] = {}
        self.depth = self.useful = 0
        self.hints = np.empty(0, np.int64)
        self.final = False

    def advance(self, depth: int, order: np.ndarray, hints: np.ndarray, need: int, bounded: Node, final: bool) -> None:
        """Search every root feature: a few cuts of each first, then to the end.

        Parameters
        ----------
        depth : int
        order, hints : ndarray
            Of every column: the value of the best tree of depth two with this first split, and its cut.
        need : int
            The least depth of trees of interest (see :func:`~policytree.solvers.exact.depth_search.least_depth`).
        bounded : Node
            The rows, with their duals where these are known.
        final : bool
            Whether no deeper tree can be better, so that bounds hold for the problem.
        """
        run = self.run
        self.depth, self.useful, self.final = depth, min(depth, run.useful_depth()), final
        self.features, self.hints = {}, hints
        for f in map(int, np.argsort(order, kind="stable")):
            if f in run.roots:
                low = np.full(run.node.bins[f] - 1, -INF, np.int64)
                self.features[f] = RootFeature(low, low.copy(), int(hints[f]), run.node.paid(f))
        if self.blocks is not None:
            self.blocks.share(self.useful)
        else:
            self._make_tables()
        if run.clock.stopped:
            return
        self.scheduler = self._schedule(need, bounded)
        if self.blocks is None and constraint_generation_applies(bounded, self.useful, run.incumbent.value, run.gates):
            generation = ConstraintGeneration(self)
            generation.run()
            run.used[GENERATED_ROWS] += int(generation.inside.sum())
        for first in (True, False):
            if not (run.incumbent.proved or all(state.solved for state in self.features.values())):
                self._round(first)

    def _make_tables(self) -> None:
        """Allocate what all stacks share, unless memory is short."""
        run, node = self.run, self.run.node
        at_once = Scheduler.partitions_at(self.useful <= 3)
        if self.useful <= 3:
            at_once = min(run.limits.n_jobs, at_once)
        stacks = min(at_once, len(self.features))
        if not run.clock.fits_memory(Stack.bytes(node, self.useful, run.gates) * stacks):
            run.clock.stop(Status.MEMORY_LIMIT)
            return
        part = node if self.useful == 3 else rows_of(node, np.arange(1))
        self.tables: SweepTables = make_tables(part.rows, part.rules, part.special)
        if node.priced and self.useful > MOST_PRICED:
            run.clock.flag[SIMILAR] = 0  # a similarity bound would have to charge for longer paths

    def _schedule(self, need: int, bounded: Node) -> Scheduler:
        run, blocks = self.run, self.blocks

        def make_worker() -> Stack | BinaryStack:
            if blocks is not None:
                return BinaryStack(blocks, self.useful, run.gates.most_block_sides)
            return Stack(bounded, self.useful, run.leaves, self.tables, need, run.gates)

        return Scheduler(list(self.features), self.useful <= 3, run.limits.n_jobs, make_worker)

    def _round(self, first: bool) -> None:
        """Let every partition work on its open features, all from the incumbent at the start of the round."""
        cutoff = self.run.incumbent.value

        def work(partition: Partition, worker: Any) -> tuple[int, Splits | None]:
            return self._work_on(partition, worker, cutoff, first)

        for value, tree in self.scheduler.run(work):  # in the order of partitions: ties go to the first
            if tree is not None:
                self.run.incumbent.offer(value, tree)
        self._raise_bound()

    def _work_on(self, partition: Partition, worker: Any, cutoff: int, first: bool) -> tuple[int, Splits | None]:
        """Search a partition's features in turn; returns its best value below the cutoff and the tree."""
        best = None
        for f in partition.features:
            state = self.features[f]
            if state.solved or self.run.clock.stopped or partition.place > self.scheduler.last_needed:
                continue
            value, tree = worker.advance(f, self.depth, cutoff, state, first, self.run.clock.flag)
            counters = worker.take_counters()
            state.solved = state.lower_bound() >= min(cutoff, value)
            if tree is not None:
                cutoff, best = value, tree
            # One partition alone, which tells its own work, so that threads do not change what is found when.
            found = self._search_beside(self.run.node, counters) if partition.place == 0 else None
            if found is not None and found[0] < cutoff:
                cutoff, best = found
            with self.run.lock:
                self.run.count(counters, cutoff)
                if cutoff <= self.run.incumbent.bound:
                    self.scheduler.last_needed = min(self.scheduler.last_needed, partition.place)
                self.report()
        return cutoff, best

    def _search_beside(self, node: Node, counters: np.ndarray) -> Found | None:
        """Give the search for incumbents its share of such work on some rows; returns its tree if it is better."""
        if self.starts is None:
            return None
        work = work_units.of_depth(node, np.zeros_like(counters), counters)
        return self.starts.best if self.starts.advance(self.run.gates.start_share * work) else None

    def take_turn(self, node: Node, counters: np.ndarray) -> None:
        """Give the search for incumbents its share of such work on some rows, and take its tree if it is better."""
        found = self._search_beside(node, counters)
        if found is not None:
            self.run.incumbent.offer(*found)

    def _raise_bound(self) -> None:
        if self.final:
            bounds = (state.lower_bound() for state in self.features.values())
            self.run.incumbent.raise_bound(min(bounds, default=self.run.incumbent.value))

    def values_of_first_splits(self) -> np.ndarray:
        """Of every column, what the search has proved of the trees whose first split is the hint of its depth two."""
        values = np.full(len(self.run.node.bins), INF)
        for f, state in self.features.items():
            t = self.hints[f]
            values[f] = state.left[t] + state.right[t] + state.paid
        return values

    def report(self) -> None:
        """Report progress. Passes of less than the full depth close nothing of the problem."""
        if self.run.limits.progress is None:
            return
        self._raise_bound()
        solved = sum(state.solved for state in self.features.values()) / max(len(self.features), 1)
        self.run.report(solved if self.final else 0.0)


class SubsetEngine:
    """Dynamic programming over subsets of rows, in slices that double.

    Parameters
    ----------
    run : Run
    pairs : ConflictPairs
        A bound that is tried once it costs little beside this search; if it is
        above what this search has proved, its pairs bound every subset from then on.
    make : ListMaker or BitMaker, optional
        How subsets are kept, if it was chosen before.
    """

    def __init__(self, run: Run, pairs: ConflictPairs, make: ListMaker | BitMaker | None = None):
        self.run, self.pairs = run, pairs
        make = make or choose_sets(run.node, run.restricted_roots, gates=run.gates)
        with run.clock.paused():
            load_kernels([(SUBSETS, make.keeps)])
        most = -(-(run.incumbent.value - run.floor) // run.node.penalty)
        self.search: SubsetSearch | None = start_subset_search(
            run.node, most, run.clock, run.restricted_roots, gates=run.gates, make=make
        )
        self.slice = 0 if self.search is None else self.search.first_slice()

    @property
    def behind_duals(self) -> bool:
        """Whether row duals raised the bound above what this search has proved."""
        run, search = self.run, self.search
        return search is not None and run.used[RAISED_BY_DUALS] > 0 and search.bound < run.incumbent.bound

    def use_duals(self, bounded: Node) -> None:
        """Bound subsets by row duals as well, from now on."""
        if self.search is not None:
            self.search = self.search.with_duals(bounded)

    def advance(self, slices: int, seconds: float) -> None:
        """Work for some slices, and on while each closes enough of the gap, for at most so many seconds of work."""
        run, search = self.run, self.search
        if search is None:  # memory is short
            return
        until = seconds + work_units.of_sets(search.counters)
        while not (search.ended or run.clock.stopped):
            if self.pairs.conflicts is not None and run.used[RAISED_BY_PAIRS] > 0 and not search.has_conflicts:
                search.use_conflicts(self.pairs.conflicts)
                slices = max(slices, 1)
            slices -= 1
            before, gap = search.counters.copy(), run.incumbent.value - run.incumbent.bound
            if search.run(run.incumbent.value, self.slice) < run.incumbent.value:
                value, tree = search.tree()
                depth, leaves = size_of(tree)
                if depth <= run.depth and leaves <= run.leaves:
                    run.incumbent.offer(value, tree)
            self.slice *= 2
            done = search.counters - before
            run.work[NODES] += int(done[ENTERED])
            run.used[CLOSED_BY_PAIRS] += int(done[CLOSED])
            spent = work_units.of_sets(search.counters)
            run.raise_bound(search.bound, RAISED_BY_SUBSETS)
            run.improve(self.pairs, RAISED_BY_PAIRS, 0, spent)
            run.report()
            pays = run.incumbent.value - run.incumbent.bound <= (1 - run.gates.set_gain) * gap
            if run.incumbent.proved or not (pays or slices > 0) or spent > until:
                break


class DualEngine:
    """A lower bound of all trees deeper than those that were searched, by row duals.

    Attributes
    ----------
    slow : bool
        Whether the seconds of the last turn were far too few.
    promising : bool
        Whether the last turn did not end with many rounds that brought no better bound.
    """

    def __init__(self, run: Run):
        self.run = run
        self.duals: RowDuals | None = None
        self.slow = self.promising = False

    def advance(self, depth: int, seconds: float) -> None:
        """Bound all trees deeper than ``depth``, down to which the incumbent is proved, in so many seconds of work."""
        if seconds <= 0:
            self.slow = False
            return
        run = self.run
        self.duals = self.duals or RowDuals(run.node, run.clock, run.gates)
        run.improve(self.duals, RAISED_BY_DUALS, depth, seconds)
        self.slow, self.promising = self.duals.slow, self.duals.waited < PATIENCE
        run.report()

    def bounded(self) -> Node:
        """The rows with their duals, where these are known."""
        return self.run.node if self.duals is None else self.duals.bounded()
