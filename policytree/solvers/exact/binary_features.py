"""Search of depth three and more for two actions and columns of two values, by blocks of pair sums."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from policytree.problem.types import GATES, Problem, SizeGates
from policytree.solvers.core.fixed_point import to_fixed_point
from policytree.solvers.core.rows import Node
from policytree.solvers.kernels.base.layout import CACHE, COUNTERS, HITS, INF, NODES, OPEN, SIMILAR, STOP
from policytree.solvers.kernels.binary.layout import (
    BYTES,
    N_SOLVED,
    UNKNOWN,
    Blocks,
    PairRows,
    PairScratch,
    Size,
    Upper,
)
from policytree.solvers.kernels.binary.search import bound_across, solve_four
from policytree.solvers.kernels.binary.sums import fill_products, open_three, open_two, refill_products

Tree = list[tuple[int, int]]

OPEN_FOUR = OPEN - 4  # in trees: a subtree of depth two, to be solved


def blocks_for(problem: Problem, gates: SizeGates = GATES) -> np.dtype | None:
    """Type of the blocks' sums: the smallest that holds every sum exactly; None if blocks do not apply.

    They apply to depths from three to six (beyond, nodes are many and small, and the other search has less to do for
    each), two actions, and columns that all have two values, unless leaves are limited in number or have a minimum,
    splits cost something or the first is restricted, or the blocks would be large.
    """
    if not blocks_apply(problem, gates):
        return None
    losses = to_fixed_point(problem.losses, 0.0, 1).planes[0]
    kind = kind_for(int(np.abs(losses).sum()) >> _common_zeros(losses))
    return kind if 2 * len(problem.data.n_bins) ** 3 * kind.itemsize <= gates.most_block_bytes else None


def blocks_apply(problem: Problem, gates: SizeGates) -> bool:
    """Whether a problem is one for blocks, whatever its losses are and however large they would be."""
    bins, n_rows, depth = problem.data.n_bins, problem.data.n_rows, problem.max_depth
    n = len(bins)
    if depth is None or not 3 <= depth <= gates.most_block_depth:
        return False
    if problem.losses.shape[1] != 2 or n < 2 or (bins != 2).any():
        return False
    if problem.min_leaf > 1 or problem.min_leaf_per_arm > 0:
        return False
    if n * min(n_rows, 2 ** min(n, 60)) > gates.most_block_products:
        return False
    return problem.max_leaf_nodes is problem.feature_costs is problem.root_features is None


def kind_for(total: int) -> np.dtype:
    """The smallest type that holds every sum of numbers whose sizes add up to so much."""
    fits = [kind for kind in (np.int16, np.int32) if total <= np.iinfo(kind).max // 2]
    return np.dtype(fits[0] if fits else np.int64)


def _common_zeros(losses: np.ndarray) -> int:
    """How many of the last bits are zero in all losses."""
    bits = int(np.bitwise_or.reduce(losses))
    return max((bits & -bits).bit_length() - 1, 0)


def _aligned(shape: Iterable[int], kind: np.dtype) -> np.ndarray:
    """Zeros that start where a vector may."""
    size = int(np.prod(tuple(shape)))
    raw = np.zeros(size * kind.itemsize + BYTES, np.uint8)
    first = -raw.ctypes.data % BYTES
    return raw[first : first + size * kind.itemsize].view(kind)


class BinaryRoot:
    """Shared data of all searches of one problem: products of rows and columns, and the root's blocks.

    ``losses`` (m,) are int64, without their last ``shift`` bits. ``flat``: nothing deeper than three will be searched,
    which takes one block at a time. ``most_shared``: bytes of values that all searches below share.
    """

    first: np.ndarray  # the value of depth two with each column as the first split
    three: int  # the value of depth three

    def __init__(
        self, codes, losses: np.ndarray, keys, kind: np.dtype, *, shift=0, penalty=0, flat: bool, most_shared: float = 0
    ):
        n, m = codes.shape
        self.kind, self.flat, self.most_shared = kind, flat, most_shared
        lanes = BYTES // kind.itemsize
        width = -(-n // lanes) * lanes
        self.size = Size(n, width, shift, penalty)
        self.rare = np.where(2 * (codes == 1).sum(axis=1) <= m, 1, 0)
        self.products = _aligned((m, width), self.kind).reshape(m, width)
        on = (codes == self.rare[:, None]).view(np.uint8)
        start, items = np.empty(m + 1, np.int32), np.empty(np.count_nonzero(on), np.int32)
        fill_products(np.ascontiguousarray(on.T), losses, self.products, start, items)
        floors = _aligned((0 if flat else m * width,), self.kind)
        if not flat:
            np.minimum(self.products.reshape(-1), 0, out=floors)
        self.data = PairRows(self.products.reshape(-1), floors, items, start, losses, on, np.ascontiguousarray(keys))
        self.rows = np.arange(m, dtype=np.int32)
        self.cube: np.ndarray | None = None
        self.node = self.new_node()
        self.counters = np.zeros(len(COUNTERS), np.int64)
        self.columns = np.arange(n)
        self.work = self.new_work()

    @classmethod
    def solved(cls, node: Node, kind: np.dtype, useful: int, flag: np.ndarray, most_shared: float) -> BinaryRoot:
        """Of the rows of a search, with depth three solved."""
        losses = node.losses[0]
        shift = _common_zeros(losses) if kind != np.int64 else 0
        root = cls(
            node.codes, losses >> shift, node.keys, kind,
            shift=shift, penalty=node.penalty, flat=useful <= 3, most_shared=most_shared,
        )  # fmt: skip
        two = root.open_two()
        root.first = root.work.by_split.copy()
        root.three = min(two, root.open_three(root.columns, flag)[0])
        return root

    def open_two(self) -> int:
        """The value of depth two."""
        return open_two(self.rows, len(self.rows), self.data, self.node, self.work, self.size, self.counters)

    def open_three(self, columns: np.ndarray, flag: np.ndarray) -> tuple[int, int]:
        """The value of depth three with one of these first splits, and which."""
        shared = self.data, self.node, self.work, self.size, self.counters
        return open_three(self.rows, len(self.rows), *shared, flag, columns)

    def sides(self, k: int, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rows where column k is off, and those where it is on."""
        on = self.data.on[k, rows] != 0
        return rows[~on], rows[on]

    def join(self, k: int, off: Tree, on: Tree) -> Tree:
        """Tree with first split k; its left side has code 0."""
        return [(k, 0), *off, *on] if self.rare[k] else [(k, 0), *on, *off]

    def refill(self, losses: np.ndarray) -> None:
        """Take other losses of the same rows; only where the root is flat."""
        refill_products(self.products, self.data.start, self.data.items, losses)
        self.data = self.data._replace(losses=losses)

    @staticmethod
    def bytes(node: Node, kind: np.dtype, useful: int, most_shared: float) -> int:
        """Roughly what the root and two workers take."""
        n, m = node.codes.shape
        shared = 8 * (2 * n) ** 3 if useful > 4 and 8 * (2 * n) ** 3 <= most_shared else 0
        return 5 * kind.itemsize * n**3 + 3 * (2 * n) ** 2 * 8 + n * m * (2 * kind.itemsize + 9) + shared

    def new_node(self) -> Blocks:
        """Blocks of one node."""
        n, width = self.size.n, self.size.width
        shapes = (n, width), (n, width), (1 if self.flat else n, n, width), (width,), (width,)
        G, F, J, one, low = (_aligned(shape, self.kind) for shape in shapes)
        V2, V3, root3 = np.empty((3, 2 * n), np.int64)
        totals, K, R, P = (np.empty(s, np.int64) for s in (4, (2, n), 2 * n * n, 0 if self.flat else 4 * n * n))
        first, listed = np.empty(n + 1, np.int64), np.empty(len(self.data.items), np.int32)
        own, unshared = Upper(G, F, one, low, totals, P), np.empty(0, np.int64)
        return Blocks(G, F, J, one, low, totals, K, V2, R, V3, root3, P, first, listed, unshared, -1, own)

    def share(self, useful: int) -> None:
        """For depth five and more: let the searches below all first splits share their values of depth two."""
        size = (2 * self.size.n) ** 3
        if useful > 4 and self.cube is None and 8 * size <= self.most_shared:
            self.cube = np.full(size, UNKNOWN)

    def below(self, node: Blocks, literal: int) -> Blocks:
        """Return the node's blocks for the rows of one literal, with the values that all searches share."""
        if self.cube is None or literal < 0:
            return node
        n2 = (2 * self.size.n) ** 2
        P = self.cube[literal * n2 : (literal + 1) * n2]
        return node._replace(pair_values=P, cube=self.cube, literal=literal, upper=self.node.upper)

    def new_work(self) -> PairScratch:
        """Scratch of one worker."""
        n, width = self.size.n, self.size.width
        deep = 0 if self.flat else n
        T, complement, diagonal = (_aligned(shape, self.kind) for shape in ((deep, n, width), (deep, width), (width,)))
        out = _aligned((4, width), self.kind).reshape(4, width)
        junk, first, state = np.empty(n, np.int64), np.empty(n + 1, np.int64), np.full(n + 1, -1, np.int64)
        listed = np.empty(len(self.data.items), np.int32)
        return PairScratch(T, complement, diagonal, out, junk, first, listed, state)


class _View:
    """Order of a node's columns, and bounds of its literals' rows (column, and n + column where it is on)."""

    def __init__(self, node: Blocks, size: Size):
        n = size.n
        on = node.floor_diagonal[:n].astype(np.int64)
        floors = np.concatenate([node.totals[1] - on, on]) << size.shift
        self.V = np.minimum(node.two, floors + 4 * size.penalty)  # a tree deeper than two has four leaves
        self.order = np.argsort(node.two[:n] + node.two[n:], kind="stable")
        kept = ("sums", "floors", "diagonal", "floor_diagonal", "totals")
        self.node = node._replace(**{name: getattr(node, name).copy() for name in kept})
        self.size = size

    def tighten(self, k: int) -> None:
        """Bounds of column k's sides from all others."""
        for s in range(2):
            side = s * self.size.n + k
            self.V[side] = max(self.V[side], bound_across(k, s, self.V, self.node, self.size))


class BinaryStack:
    """A worker as :class:`policytree.solvers.exact.depth_search.Stack`, for problems of two-valued columns.

    Depth four is a kernel's work; what is above it is searched here. ``places``: for sets of rows that are kept, and
    for sides, a power of two.
    """

    def __init__(self, root: BinaryRoot, useful: int, places: int):
        self.root, self.useful, self.places = root, useful, places
        self.counters = np.zeros(len(COUNTERS), np.int64)
        self.work = root.new_work()
        self.sides = np.zeros((places if useful > 4 else 1, N_SOLVED), np.int64)
        self.solved: dict[tuple[int, int, int], tuple[int, Tree | None]] = {}
        if useful > 4:
            self.node, self.view = root.new_node(), _View(root.node, root.size)

    def advance(self, f: int, depth: int, cutoff: int, state, first: bool, flag: np.ndarray):
        """Search root column f, to the end even if ``first``: returns value and tree, or the cutoff and None."""
        self.flag = flag
        root, n = self.root, self.root.size.n
        V2, V3, root3 = root.node.two, root.node.three, root.node.three_splits
        if self.useful <= 3:
            off, on = int(V2[f]), int(V2[n + f])
            tree = self._splits(f) if on + off < cutoff else None
            value = on + off
        elif self.useful == 4:
            value, found, _ = self._four(np.array([f]), root.three, cutoff, root.node)
            off, on = int(V3[f]), int(V3[n + f])
            tree = self._splits(f, root3) if found >= 0 else None
        else:
            value, tree = self._column(f, self.view, root.rows, depth, cutoff)
            off, on = int(self.view.V[f]), int(self.view.V[n + f])
        left, right = (off, on) if root.rare[f] else (on, off)
        state.left[0], state.right[0] = max(state.left[0], left), max(state.right[0], right)
        return (int(value), tree) if tree is not None else (cutoff, None)

    def take_counters(self) -> np.ndarray:
        """Work since the last call."""
        done = self.counters.copy()
        self.counters -= done
        return done

    def _stopped(self) -> bool:
        return self.flag[STOP] != 0

    def _four(self, columns: np.ndarray, three: int, cutoff: int, node: Blocks):
        root = self.root
        return solve_four(
            columns, three, cutoff, root.data, node, self.work, root.size, self.sides, self.counters, self.flag
        )

    def _splits(self, k: int, second: np.ndarray | None = None) -> Tree:
        """Tree with root k and the second splits of its sides (-1: none stated)."""
        roots = (-1, -1) if second is None else (int(second[k]), int(second[self.root.size.n + k]))
        return self.root.join(
            k, *([(OPEN_FOUR, 0)] if j < 0 else [(j, 0), (OPEN_FOUR, 0), (OPEN_FOUR, 0)] for j in roots)
        )

    def _column(self, k: int, view: _View, rows: np.ndarray, depth: int, cutoff: int):
        """Solve both sides of a split: its value and tree if they are below the cutoff, else a bound and None."""
        n, V = self.root.size.n, view.V
        trees: list = [None, None]
        if self.flag[SIMILAR] != 0:
            view.tighten(k)
        parts = self.root.sides(k, rows)
        for s in (1, 0):  # the smaller side first
            rest = int(V[(1 - s) * n + k])
            if int(V[s * n + k]) + rest >= cutoff or self._stopped():
                break
            literal = s * n + k if view is self.view else -1
            value, trees[s] = self._solve(parts[s], depth - 1, cutoff - rest, literal)
            V[s * n + k] = max(value, int(V[s * n + k]))
        value = int(V[k] + V[n + k])
        if value < cutoff and trees[0] is not None and trees[1] is not None:
            return value, self.root.join(k, *trees)
        return value, None

    def _solve(self, rows: np.ndarray, depth: int, cutoff: int, literal: int) -> tuple[int, Tree | None]:
        """Solve a node: an exact value below the cutoff and its tree, or a lower bound and None.

        ``literal``: the one whose rows these are, -1 after more than one split.
        """
        losses, keys = self.root.data.losses, self.root.data.keys
        shift, penalty = self.root.size.shift, self.root.size.penalty
        self.counters[NODES] += 1
        total, floor = int(losses[rows].sum()) << shift, int(np.minimum(losses[rows], 0).sum()) << shift
        best, tree = min(0, total) + penalty, [(-1, 0)]
        if best <= floor + 2 * penalty:
            return best, tree
        key = (int(keys[0, rows].sum()), int(keys[1, rows].sum()), depth)
        if self.flag[CACHE] != 0 and key in self.solved:
            value, known = self.solved[key]
            if known is not None or value >= cutoff:
                self.counters[HITS] += 1
                return value, known
        value, tree = self._open(rows, depth, cutoff, best, tree, floor, literal)
        if self._stopped():  # nothing was proved
            return floor + penalty, None
        if len(self.solved) >= self.places:
            self.solved.clear()
        self.solved[key] = value, tree
        return value, tree

    def _open(self, rows, depth, cutoff, best, tree, floor, literal):
        """Solve a node that is no leaf and was not met before, by depth two, three and so on."""
        root, penalty = self.root, self.root.size.penalty
        node = root.below(self.node, literal)
        shared = root.data, node, self.work, root.size, self.counters
        value = int(open_two(rows, len(rows), *shared))
        if value < best:
            best, tree = value, [(OPEN_FOUR, 0)]
        useful, rest = _capped(min(cutoff, best), floor, depth, penalty)
        if useful >= 3:
            three, k = open_three(rows, len(rows), *shared, self.flag, root.columns)
            if not self._stopped() and three < best:
                best, tree = int(three), self._splits(int(k))
            three = best
            useful, rest = _capped(min(cutoff, best), floor, depth, penalty)
        if not self._stopped() and useful > 3:
            view = _View(node, root.size)
            if useful == 4:
                value, k, bound = self._four(view.order, three, min(cutoff, best), node)
                if not self._stopped() and k >= 0:
                    best, tree = int(value), self._splits(int(k), node.three_splits)
                rest = min(rest, int(bound))
            else:
                for k in map(int, view.order):
                    value, found = self._column(k, view, rows, depth, min(cutoff, best))
                    best, tree, rest = (value, found, rest) if found is not None else (best, tree, min(rest, value))
        return (best, tree) if best < cutoff else (min(best, rest), None)


def _capped(top: int, floor: int, depth: int, penalty: int) -> tuple[int, int]:
    """Depth that can pay, and the least cost of what is cut off.

    A tree of h leaves costs at least ``floor + h * penalty``, and has depth at most h - 1.
    """
    leaves = depth if penalty == 0 else max(-(-(top - floor) // penalty) - 1, 1)
    if leaves - 1 < depth and penalty > 0:
        return leaves - 1, floor + (leaves + 1) * penalty
    return depth, INF
