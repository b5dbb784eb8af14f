"""Dynamic programming over subsets of rows: proofs without a depth limit, for trees with a leaf penalty."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from policytree.problem.types import GATES, Problem, SizeGates
from policytree.solvers.core.limits import Clock
from policytree.solvers.core.merge import sums_of_first_codes
from policytree.solvers.core.rows import Node, Splits, rows_of
from policytree.solvers.core.shared_costs import shares_test_costs
from policytree.solvers.exact.bounds.conflict_pairs import no_conflicts
from policytree.solvers.exact.interval_dp import balanced_splits
from policytree.solvers.exact.subset_storage import BitMaker, ListMaker, make_sets
from policytree.solvers.kernels.base.layout import INF, LANES
from policytree.solvers.kernels.base.sums import best_one_split
from policytree.solvers.kernels.conflicts.layout import Conflicts
from policytree.solvers.kernels.depth_two.interval_dp import best_intervals
from policytree.solvers.kernels.subsets.layout import (
    INTERVALS,
    KEPT,
    N_COUNTERS,
    N_PLACES,
    N_SCALARS,
    SET_KEY1,
    SET_KEY2,
    STUCK,
    SUMMED,
    UNSPLIT,
    Path,
    SearchState,
    SetRules,
    SetScratch,
)
from policytree.solvers.kernels.subsets.search import search_subsets
from policytree.solvers.kernels.subsets.table import FULL, KNOWN, copy_table, place_of

FEWEST_LEVELS, BYTES_OF_A_COLUMN = 3, 108  # of the path
FIRST_SETS = 256  # as large as the root, that the first slice enters
SLACK = 2  # prices that a set may be worked on beyond the second best split's bound


def subset_search_applies(problem: Problem, gates: SizeGates) -> bool:
    """Whether the search is of use: a price per leaf, and no limit of depth that is low."""
    deep = (math.inf if problem.max_depth is None else problem.max_depth) > gates.most_setless_depth
    return deep and problem.leaf_penalty > 0 and problem.losses.shape[1] > 1 and not shares_test_costs(problem)


def choose_sets(
    node: Node, roots: Sequence[int] | None = None, keep: str | None = None, gates: SizeGates = GATES
) -> ListMaker | BitMaker:
    """How sets are kept in a search whose first split may use these columns (see :func:`make_sets`)."""
    return make_sets(node, keep, roots is not None and len(roots) < len(node.bins), gates)


def start_subset_search(
    node: Node,
    most_leaves: int,
    clock: Clock,
    roots: Sequence[int] | None = None,
    keep: str | None = None,
    gates: SizeGates = GATES,
    make: ListMaker | BitMaker | None = None,
) -> SubsetSearch | None:
    """Start a search, or return None if the memory limit leaves no room for it.

    Parameters
    ----------
    node : Node
        The rows of a problem that :func:`subset_search_applies` takes.
    most_leaves : int
        More leaves than a tree that is of use can have.
    clock : Clock
        Its flag ends a slice, its memory limit the growth of the table.
    roots : sequence of int, optional
        Columns that all rows may be split on; all of them if not given.
    keep : {"lists", "bits"}, optional
        How sets are kept (see :func:`make_sets`).
    gates : SizeGates, optional
    make : ListMaker or BitMaker, optional
        How sets are kept, if :func:`choose_sets` was called before.
    """
    make = make or choose_sets(node, roots, keep, gates)
    a_level = BYTES_OF_A_COLUMN * make.width + make.bytes_a_level
    levels = max(min(most_leaves + 2, node.n_rows + 1, gates.most_set_path // a_level), FEWEST_LEVELS)
    if not clock.fits_memory(make.bytes + levels * a_level):
        return None
    return SubsetSearch(make, levels, clock, roots, gates)


class SubsetSearch:
    """Bounds and trees of one problem; work can be done in slices.

    Limits of depth and of leaves are not obeyed: bounds hold for all trees, so also for those within limits, and the
    best tree solves the problem if it keeps to them.

    Parameters
    ----------
    make : ListMaker or BitMaker
        How sets are kept.
    levels : int
        Longest path from the root.
    clock : Clock
        Its flag ends a slice, its memory limit the growth of the table.
    roots : sequence of int, optional
        Columns of codes that all rows may be split on; all of them if not given.
    gates : SizeGates, optional

    Attributes
    ----------
    bound : int
        No tree costs less.
    ended : bool
        Whether more work cannot raise the bound: it is the cost of a tree, or more needs more memory than there is.
    """

    def __init__(self, make: ListMaker | BitMaker, levels: int, clock: Clock, roots=None, gates: SizeGates = GATES):
        self.node, self.make, self.clock, self.roots, self.gates = make.node, make, clock, roots, gates
        width, size, Q = make.width, len(make.columns[0]), make.n_sums
        self.sets = make(levels)
        rules = _rules(make, roots)
        arrays = (np.zeros((levels, 2, width), np.int64) for _ in range(6))
        path = Path(
            np.zeros((levels, size), np.int32), np.zeros((levels, N_SCALARS), np.int64),
            np.zeros((levels, width), np.int64), *arrays,
        )  # fmt: skip
        (live, opened), (low, up) = np.zeros((2, width // LANES), np.uint8), np.zeros((2, 2, width), np.int64)
        scratch = SetScratch(
            np.zeros(Q, np.int64), np.zeros((Q, width), np.int64), np.zeros((2, width), np.int64),
            np.zeros((Q, width), np.int64), live, opened,
            np.zeros(width, np.int64), np.zeros((Q, LANES), np.int64), low, up,
        )  # fmt: skip
        # Whatever is open when the table counts as full (at seven tenths) is still kept, one set a level: it must fit
        # into the rest, or looks for a place would never end. Splits on a path are on different columns.
        places, deepest = gates.first_set_places, min(levels, size + 1)
        while 3 * places <= 10 * deepest:
            places *= 2
        self.state = SearchState(rules, path, np.zeros(places, KNOWN), scratch, no_conflicts(self.node))
        self.counters = np.zeros(N_COUNTERS, np.int64)
        self.bound = -INF
        self.ended = False

    @property
    def table(self) -> np.ndarray:
        """Proved bounds of each set."""
        return self.state.table

    def first_slice(self) -> int:
        """Work to begin with: some hundred sets as large as the root, from ten milliseconds to half a second."""
        return min(max(FIRST_SETS * self.make.work, self.gates.least_set_slice), self.gates.most_set_slice)

    def advance(self, cutoff: int, work: int) -> int:
        """Work until about so many more pairs of a row and a split were seen.

        Returns the cost of the best tree it knows (INF: none). Once the bound is at least ``cutoff``, no tree costs
        less than that.
        """
        most = int(self.counters[SUMMED]) + work
        up = INF
        while self.counters[SUMMED] < most and self.bound < min(cutoff, up) and not (self.clock.stopped or self.ended):
            self.counters[STUCK] = 0
            self._enter_root()
            bound, up = search_subsets(
                *self.sets, self.state, cutoff, SLACK * self.node.penalty, most, self.counters,
                self.clock.flag,
            )  # fmt: skip
            self.bound = max(self.bound, int(bound))
            if 10 * self.counters[KEPT] > FULL * len(self.table):
                self._grow_table()
            elif self.counters[STUCK] != 0 or self.bound >= up:
                self.ended = True
        return int(up)

    def with_duals(self, node: Node) -> SubsetSearch:
        """The same search, where prices say what rows are worth, from what was proved before.

        Only of sets as lists: their sums have room for what differs from row to row, and their names stay.
        """
        if node is self.node or node.rules.beyond < 0 or not isinstance(self.make, ListMaker):
            return self
        other = start_subset_search(node, len(self.state.path.scalars) - 2, self.clock, self.roots, "lists", self.gates)
        if other is None:
            return self
        other.state = other.state._replace(table=self.table, conflicts=self.state.conflicts)
        other.counters[:], other.bound = self.counters, self.bound
        return other

    def use_conflicts(self, conflicts: Conflicts) -> None:
        """Bound subsets by these conflict pairs as well, from now on."""
        self.state = self.state._replace(conflicts=conflicts._replace(of_bit=self.make.rows_of_bits()))

    @property
    def has_conflicts(self) -> bool:
        """Whether conflict pairs bound subsets."""
        return len(self.state.conflicts.pairs) > 0

    def _enter_root(self) -> None:
        path = self.state.path
        root, splits = path.scalars[0], path.places[0]
        splits[:] = np.arange(len(splits))
        root[N_PLACES] = len(splits)
        self.make.enter_all(self.sets, root)
        root[SET_KEY1], root[SET_KEY2] = self.make.name(np.arange(self.node.n_rows))

    def _grow_table(self) -> None:
        size = 4 * len(self.table)
        if size > self.gates.most_set_places or not self.clock.fits_memory(size * KNOWN.itemsize):
            self.ended = True
            return
        larger = np.zeros(size, KNOWN)
        copy_table(self.table, larger)
        self.state = self.state._replace(table=larger)

    def tree(self) -> tuple[int, Splits]:
        """The best tree that the table knows, and what it costs."""
        return self._tree(np.arange(self.node.n_rows))

    def _tree(self, rows: np.ndarray) -> tuple[int, Splits]:
        part = rows_of(self.node, rows)
        leaf = part.leaf()[0] + self.node.penalty
        known = self._known(rows)
        if known is not None and known["split"] <= INTERVALS:
            return _intervals(part, INTERVALS - int(known["split"]))
        f, cut, paid = self._best_split(part, known)
        if f < 0:
            return leaf, [(-1, 0)]
        left = part.codes[f] <= cut
        if left.all() or not left.any():
            return leaf, [(-1, 0)]
        one, other = self._tree(rows[left]), self._tree(rows[~left])
        value = paid + one[0] + other[0]
        return (value, [(f, cut), *one[1], *other[1]]) if value < leaf else (leaf, [(-1, 0)])

    def _known(self, rows: np.ndarray) -> np.void | None:
        """Look up a set's entry in the table, if there is one."""
        known = self.table[place_of(self.table, *self.make.name(rows))]
        return None if known["key1"] == 0 and known["key2"] == 0 else known

    def _best_split(self, part: Node, known: np.void | None) -> tuple[int, int, int]:
        """Feature, cut and own cost of the split that the table knows; -1 for a leaf.

        A set that it does not know was never entered: its value is that of a leaf or of one split.
        """
        if known is None:
            _, f, cut = best_one_split(part.rows, part.rules)
        elif known["split"] == UNSPLIT:
            return -1, 0, 0
        else:
            f, cut = (int(c[known["split"]]) for c in self.make.columns)
        return int(f), int(cut), part.paid(int(f)) if f >= 0 else 0


def _intervals(part: Node, f: int) -> tuple[int, Splits]:
    """The best tree of some rows on one feature, whose splits are free, and what it costs."""
    size = int(part.rows.bins[f])
    ahead = sums_of_first_codes(np.vstack([part.all_losses, part.counts]), part.codes[f], size)
    K, rules = len(part.losses) + 1, part.rules
    sums, counts = np.ascontiguousarray(ahead[:, :K]), np.ascontiguousarray(ahead[:, K:])
    value, ends = best_intervals(sums, counts, rules.minima, part.penalty, size)
    leaves = [(first, end, False) for first, end in pairwise([0, *ends.tolist()])]
    return int(value), [(f if column >= 0 else -1, cut) for column, cut in balanced_splits(leaves, size)]


def _rules(make: ListMaker | BitMaker, roots) -> SetRules:
    """Make the rules that trees obey and the prices that they pay."""
    node, rules, (features, cuts), n_sums = make.node, make.node.rules, make.columns, make.n_sums
    at_root = np.ones(len(features), np.int64) if roots is None else np.isin(features, roots).astype(np.int64)
    charges = n_sums - 1 - (rules.beyond >= 0) - rules.prices if node.priced else 0
    return SetRules(
        rules.n_losses, len(rules.minima), charges, n_sums, rules.beyond, node.penalty,
        rules.minima, node.rows.groups[features], at_root, int(not at_root.all()), features.astype(np.int32),
        cuts.astype(np.int32),
    )  # fmt: skip
