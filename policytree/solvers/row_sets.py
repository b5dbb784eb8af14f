"""Proofs without a depth limit, for trees with a price per leaf: a search over sets of rows."""

from __future__ import annotations

import numpy as np

from policytree.solvers.clock import Clock
from policytree.solvers.kernels.layout import INF, LANES
from policytree.solvers.kernels.row_set_layout import (
    KEPT,
    KNOWN,
    N_PLACES,
    N_ROWS,
    N_SCALARS,
    SET_KEY1,
    SET_KEY2,
    SUMMED,
    UNSPLIT,
    Path,
    RowSetProblem,
    SumScratch,
)
from policytree.solvers.kernels.row_set_table import copy_table, place_of
from policytree.solvers.kernels.row_sets import search_row_sets
from policytree.solvers.node import Node, Splits, rows_of
from policytree.types import Problem

FIRST_PLACES, MOST_PLACES = 2**12, 2**23  # of the table
MOST_PATH = 1 << 27  # bytes
FIRST_SETS, LEAST_SLICE, MOST_SLICE = 256, 1 << 23, 1 << 28


def row_sets_apply(problem: Problem) -> bool:
    """Whether the search takes a problem: a price per leaf, no limit of depth or leaves, no minimum, free questions."""
    limited = problem.min_leaf > 1 or problem.min_leaf_per_arm > 0 or problem.feature_costs is not None
    limited = limited or problem.max_leaf_nodes is not None or problem.root_features is not None
    return problem.max_depth is None and problem.leaf_penalty > 0 and problem.losses.shape[1] > 1 and not limited


class RowSetSearch:
    """Bounds and trees of one problem; work can be done in slices.

    Parameters
    ----------
    node : Node
        The rows of a problem that :func:`row_sets_apply` takes.
    most_leaves : int
        More leaves than a tree that is of use can have.
    clock : Clock
        Its flag ends a slice, its memory limit the growth of the table.

    Attributes
    ----------
    bound : int
        No tree costs less.
    ended : bool
        Whether more work cannot raise the bound: it needs more memory than there is.
    """

    def __init__(self, node: Node, most_leaves: int, clock: Clock):
        self.node, self.clock = node, clock
        self.problem = _problem(node)
        places, size = int(node.rows.offset[-1]), self.problem.numbers.shape[1]
        levels = max(min(most_leaves + 2, node.n_rows + 1, MOST_PATH // (100 * places + 4 * node.n_rows)), 3)
        arrays = (np.empty((levels, 2, places), np.int64) for _ in range(6))
        self.path = Path(
            np.empty((levels, node.n_rows), np.int32), np.empty((levels, places), np.int32),
            np.zeros((levels, N_SCALARS), np.int64), *arrays,
        )  # fmt: skip
        self.path.index[0] = np.arange(node.n_rows)
        last = np.isin(np.arange(places), node.rows.offset[1:] - 1)  # no split: nothing is on its right
        self.splits = np.flatnonzero(~last)
        self.table = np.zeros(FIRST_PLACES, KNOWN)
        self.scratch = SumScratch(*(np.empty((k, size), np.int64) for k in (places, 1, 2)))
        self.counters = np.zeros(3, np.int64)
        self.bound = -INF
        self.ended = False

    def first_slice(self) -> int:
        """Work to begin with: some hundred sets as large as the root, from ten milliseconds to half a second."""
        return min(max(FIRST_SETS * self.node.n_rows * len(self.splits), LEAST_SLICE), MOST_SLICE)

    def run(self, budget: int, work: int) -> int:
        """Work until about so many more pairs of a row and a split were seen.

        Returns the cost of the best tree it knows (INF: none). Once the bound is at least ``budget``, no tree costs
        less than that.
        """
        most = int(self.counters[SUMMED]) + work
        up = INF
        while self.counters[SUMMED] < most and self.bound < min(budget, up) and not (self.clock.stopped or self.ended):
            before = self.bound, int(self.counters[KEPT])
            root = self.path.scalars[0]
            self.path.places[0, : len(self.splits)] = self.splits
            root[N_ROWS], root[N_PLACES] = self.node.n_rows, len(self.splits)
            root[SET_KEY1], root[SET_KEY2] = self.node.keys.sum(axis=1)
            bound, up = search_row_sets(
                self.problem, self.path, self.table, self.scratch, budget, self.node.penalty, most, self.counters,
                self.clock.flag,
            )  # fmt: skip
            self.bound = max(self.bound, int(bound))
            if 10 * self.counters[KEPT] > 7 * len(self.table):
                self._grow_table()
            elif before == (self.bound, int(self.counters[KEPT])) and self.counters[SUMMED] < most:
                self.ended = True  # the path is too short
        return int(up)

    def _grow_table(self) -> None:
        size = 4 * len(self.table)
        if size > MOST_PLACES or not self.clock.fits_memory(size * KNOWN.itemsize):
            self.ended = True
            return
        larger = np.zeros(size, KNOWN)
        copy_table(self.table, larger)
        self.table = larger

    def tree(self) -> tuple[int, Splits]:
        """The best tree that the table knows, and what it costs."""
        return self._tree(np.arange(self.node.n_rows))

    def _tree(self, rows: np.ndarray) -> tuple[int, Splits]:
        part = rows_of(self.node, rows)
        leaf = part.leaf()[0] + self.node.penalty
        place = self._best_split(rows)
        if place == UNSPLIT:
            return leaf, [(-1, 0)]
        f = int(self.problem.feature[place])
        cut = place - int(self.node.rows.offset[f])
        left = self.node.codes[f, rows] <= cut
        one, other = self._tree(rows[left]), self._tree(rows[~left])
        value = one[0] + other[0]
        return (value, [(f, cut), *one[1], *other[1]]) if value < leaf else (leaf, [(-1, 0)])

    def _best_split(self, rows: np.ndarray) -> int:
        known = self.table[place_of(self.table, *self.node.keys[:, rows].sum(axis=1))]
        return int(known["split"]) if known["key1"] != 0 or known["key2"] != 0 else UNSPLIT


def _problem(node: Node) -> RowSetProblem:
    """Lay out the numbers that the search sums up."""
    n, offset = node.n_rows, node.rows.offset
    losses = np.vstack([np.zeros(n, np.int64), node.losses])
    order = np.sort(losses, axis=0)
    numbers = [*node.losses, order[0], order[-1]]
    if len(losses) > 2:
        best, regret = losses.argmin(axis=0), order[1] - order[0]
        numbers += [np.where(best == k, regret, 0) for k in range(len(losses))]
    numbers += [np.ones(n, np.int64), *node.keys]
    padded = np.zeros((n, -(-len(numbers) // LANES) * LANES), np.int64)
    padded[:, : len(numbers)] = np.transpose(numbers)
    common = np.array([np.bincount(codes).argmax() for codes in node.codes], dtype=np.int64)
    rare = node.codes != common[:, None]
    row, feature = np.nonzero(rare.T)
    return RowSetProblem(
        node.codes, offset, np.repeat(np.arange(len(node.bins), dtype=np.int32), node.bins),
        offset[:-1] + common, padded, np.concatenate([[0], np.cumsum(rare.sum(axis=0))]),
        (offset[feature] + node.codes[feature, row]).astype(np.int32), len(numbers), node.rules.n_losses, node.penalty,
    )  # fmt: skip
