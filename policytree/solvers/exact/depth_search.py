"""Workers of the depth-first search: each searches one root feature at a time on arrays of its own."""

from __future__ import annotations

import mmap
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from policytree.problem.types import GATES, SizeGates
from policytree.solvers.core import work_units
from policytree.solvers.core.rows import Node, Splits, depth_two, expand, names_of_codes, occurring
from policytree.solvers.kernels.base.layout import (
    COUNTERS,
    CUTS_AT_ONCE,
    INF,
    NEED_BITS,
    NODE,
    SIDE,
    SOLVED,
    UNLIMITED,
    WORD,
)
from policytree.solvers.kernels.depth_first.cache import Memory
from policytree.solvers.kernels.depth_first.search import advance
from policytree.solvers.kernels.depth_first.stack import FEATURE, Levels
from policytree.solvers.kernels.depth_three.sweep_tables import SweepTables, make_tables

PROBES = 2  # root cuts solved, or sweeps made, in every feature before any feature is searched to the end
NO_LIMIT = np.iinfo(np.int64).max
ROOT = dict.fromkeys(NODE.names or (), 0) | {"phase": FEATURE, "to_try": 1, "split_bound": INF}

Result = TypeVar("Result")
#: Work that can be left between two steps; each tells what it took, in seconds of a usual machine (see work_units.py).
Steps = Generator[float, None, Result]


@dataclass
class RootFeature:
    """Bounds of both sides of one root feature's cuts, kept between rounds.

    ``hint``: the cut to try first (-1: none); ``paid``: what the split itself costs; ``deep_left``, ``deep_right``: the
    same bounds for trees as deep as the search needs (see kernels/layout.Deep).
    """

    left: np.ndarray
    right: np.ndarray
    hint: int
    paid: int
    solved: bool = False
    deep_left: np.ndarray = field(init=False)
    deep_right: np.ndarray = field(init=False)

    def __post_init__(self):
        self.deep_left, self.deep_right = np.full((2, len(self.left)), -INF)

    def lower_bound(self) -> int:
        """Bound of every tree with this feature at the root that may be better than the incumbent."""
        left, right = np.maximum(self.left, self.deep_left), np.maximum(self.right, self.deep_right)
        return int(np.minimum(left + self.right, self.left + right).min()) + self.paid


class Stack:
    """The search stack; the root feature stands at level 0.

    ``tables``: what sweeps over all rows share, for searches of depth three (see
    solvers/kernels/depth_three/sweep_tables.py); ``need``: see :func:`least_depth`; of these very rows, so 0 for a
    search on some of a problem's rows.
    """

    def __init__(
        self, node: Node, useful: int, leaf_limit: int, tables: SweepTables, need: int = 0, gates: SizeGates = GATES
    ):
        self.node, self.leaf_limit, self.tables, self.need = node, leaf_limit, tables, need
        self.levels = _empty_levels(node, useful)
        self.counters = np.zeros(len(COUNTERS), np.int64)
        cached, sides = self._rows_kept(node, useful, gates)
        pool = np.empty((4 * cached if useful > 3 else 0, 2), np.int64)
        context = np.empty((cached, self.levels.context.shape[1]), np.int64)
        self.memory = Memory(_blank(cached, SOLVED), context, pool, np.zeros(1, np.int64), _blank(sides, SIDE))

    @staticmethod
    def bytes(node: Node, useful: int, gates: SizeGates) -> int:
        """Roughly what a stack takes."""
        p, n = node.codes.shape
        cached, sides = Stack._rows_kept(node, useful, gates)
        deep = cached * (SOLVED.itemsize + 64 + 8 * _words(node)) + sides * SIDE.itemsize
        inner = 32 * max(useful - 1, 2) * int(node.rows.offset[-1]) if useful > 3 else 0
        rows = max(useful - 1, 2) * n * (2 * p + 8 * len(node.rows.planes) + 4)
        largest = min(int(np.prod(np.sort(node.bins)[-2:])), 4 * n * p * p)  # table of two columns that pays
        vectors = 1 + len(node.rules.minima)  # for every cell; none for several losses or minima
        in_lanes = vectors * largest if node.rules.n_losses == 1 and vectors <= 2 else 0
        return rows + deep + inner + 4 * CUTS_AT_ONCE * in_lanes

    @staticmethod
    def _rows_kept(node: Node, useful: int, gates: SizeGates) -> tuple[int, int]:
        """Places for solved sets of rows and for bounds of swept sides: powers of two, as many as a search can use.

        With four places for each, few drive out one another.
        """
        if useful <= 3:  # only depth two is below the root: nothing is met twice
            return 2, 1
        sides = 2 * int((node.bins - 1).sum())  # of one split; every level multiplies
        made = [4 * sides ** min(useful - level, 8) for level in (3, 2)]
        most = (gates.most_solved_sets, gates.most_swept_sides)
        return tuple(2 ** (min(max(k, 256), limit) - 1).bit_length() for k, limit in zip(made, most, strict=True))

    def advance(self, f: int, depth: int, cutoff: int, state: RootFeature, first: bool, flag: np.ndarray):
        """Try root feature f (``first``: a few cuts only); returns its best value and tree, or the cutoff and None."""
        node, levels, cuts = self.node, self.levels, self.node.bins[f] - 1
        p, n = node.codes.shape
        levels.order[0, 0], levels.first_cuts[0, f] = f, state.hint
        levels.left[0, :cuts], levels.right[0, :cuts] = state.left, state.right
        levels.deep_left[0, :cuts], levels.deep_right[0, :cuts] = state.deep_left, state.deep_right
        leaves = self.leaf_limit if self.leaf_limit < 2 ** min(depth, 40) else UNLIMITED
        need = self.need if leaves == UNLIMITED else 0
        root = ROOT | {
            "rows": n, "features": p, "depth": depth, "useful_depth": depth, "leaves": leaves, "need": need,
            "cutoff": cutoff, "enough": cutoff, "best": cutoff,
        }  # fmt: skip
        levels.nodes[0] = tuple(root.values())  # at once: a field of a record takes as long as an array's
        most = PROBES if first else NO_LIMIT
        advance(0, levels, node.rules, most, self.tables, self.memory, self.counters, flag, node.special)
        state.left, state.right = levels.left[0, :cuts].copy(), levels.right[0, :cuts].copy()
        state.deep_left, state.deep_right = levels.deep_left[0, :cuts].copy(), levels.deep_right[0, :cuts].copy()
        state.hint = int(levels.first_cuts[0, f])
        length = int(levels.nodes["tree_length"][0])
        tree = [(f, t) for f, t in levels.tree[0, :length].tolist()] if length else None
        return int(levels.nodes["best"][0]), tree

    def take_counters(self) -> np.ndarray:
        """Work since the last call."""
        done = self.counters.copy()
        self.counters -= done
        return done


def steps_of_depth_three(node: Node, flag: np.ndarray) -> Steps[tuple[int, Splits]]:
    """The best tree of three levels on the rows of a node, in steps of a root feature; once stopped, the best one seen.

    It is given with all its splits.
    """
    best, tree = node.leaf()[0] + node.penalty, [(-1, 0)]
    part, columns, codes = occurring(node)  # a cut must leave rows on both sides
    if not len(columns):
        return best, tree
    (value, column, cut), _, (order, hints) = depth_two(part, 4, flag)
    yield work_units.A_SUBTREE + work_units.of_nodes(part, 1)
    if column >= 0:
        best, tree = int(value), [(-2 - int(column), int(cut))]
    features: list[int] = []
    if not flag[0]:  # tables take their time and look at no flag
        stack = Stack(part, 3, UNLIMITED, make_tables(part.rows, part.rules, part.special))
        features = np.argsort(order, kind="stable").tolist()
    for f in features:
        if flag[0]:
            break
        low = np.full(part.bins[f] - 1, -INF, np.int64)
        state = RootFeature(low, low.copy(), int(hints[f]), part.paid(f))
        value, found = stack.advance(f, 3, best, state, False, flag)
        if found is not None:
            best, tree = value, found
        yield work_units.OF_A_ROOT + work_units.of_depth(part, stack.take_counters())
    offset = part.rows.offset
    splits = [(f, t) if f < 0 else (int(columns[f]), int(codes[offset[f] + t])) for f, t in expand(part, tree)]
    return best, splits


def last_of(steps: Steps[Result]) -> Result:
    """Take all steps, and return what they come to."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def least_depth(
    depth: int, proved: bool, above_floor: int, penalty: int, most_prices: float = GATES.most_needed_prices
) -> int:
    """The least depth of trees of interest in a search of depth ``depth``: 0 for any.

    It is that depth if all shallower trees are ``proved`` to be no better than the best one, and leaves have a price
    that bounds deep trees: the best one is at most ``most_prices`` of them above the floor.
    """
    bounds = proved and penalty > 0 and above_floor <= most_prices * penalty
    return min(depth, (1 << NEED_BITS) - 1) if bounds else 0


def _words(node: Node) -> int:
    """Numbers that have a bit for every test group."""
    return -(-int(node.rows.owners.max(initial=-1) + 1) // WORD)


def _blank(places: int, kind: np.dtype) -> np.ndarray:
    """Zeros of which only what is touched takes time and memory: ``np.zeros`` may write all of them."""
    private = {"flags": mmap.MAP_PRIVATE} if hasattr(mmap, "MAP_PRIVATE") else {}
    return np.frombuffer(mmap.mmap(-1, places * kind.itemsize, **private), kind)


def _empty_levels(node: Node, useful: int) -> Levels:
    """A level for every split above the last two; the problem's rows stand at level 0."""
    levels = max(useful - 1, 2)
    p, n = node.codes.shape
    places, widest = int(node.rows.offset[-1]), int(node.bins.max(initial=1))
    leaves = min(2 ** min(useful, 40), n)
    bins, groups, owners, columns, order, first_values, first_cuts = np.empty((7, levels, p), np.int64)
    ends, left, right, least, most, deep_left, deep_right = np.empty((7, levels, widest + 1), np.int64)
    tree, first_tree = np.empty((2, levels, 2 * leaves + 8, 2), np.int64)
    offset, cuts = np.zeros((levels, p + 1), np.int64), np.empty((levels, places), np.int64)
    codes, planes = np.empty((levels, p, n), np.uint16), np.empty((levels, len(node.rows.planes), n), np.int64)
    codes[0], planes[0], bins[0], offset[0], groups[0], owners[0] = node.rows[:6]
    columns[0] = np.arange(p)
    cuts[0] = names_of_codes(node)
    return Levels(
        np.zeros(levels, NODE), codes, planes, bins, offset, groups, owners, columns, cuts,
        np.empty((levels, n), np.int32), ends, left, right, least, most, deep_left, deep_right, order, first_values,
        first_cuts, tree, first_tree, np.full((levels, 4), -1), np.zeros((levels, _words(node)), np.int64),
        np.empty((levels, 2, 2, places if useful > 3 else 0), np.int64),
    )  # fmt: skip
