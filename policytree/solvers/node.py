"""The merged rows of a search's root, and trees that need no bounds."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from policytree.exceptions import InputError
from policytree.solvers import search_kernels as kernels
from policytree.solvers.fixed_point import FixedPoint
from policytree.solvers.merge import merge_equal_rows
from policytree.types import Problem, SearchLimits

Splits = list[tuple[int, int]]  # (column, cut) in preorder, (-1, 0) for a leaf


@dataclass
class Node:
    """The root node's merged rows and what every kernel needs of it."""

    codes: np.ndarray
    planes: np.ndarray
    n_actions: int
    minima: np.ndarray
    bins: np.ndarray
    offset: np.ndarray
    groups: np.ndarray
    price: np.ndarray
    lam: int

    @property
    def n_rows(self) -> int:
        """Number of distinct rows."""
        return self.codes.shape[1]

    def rows(self) -> tuple:
        """Return the leading arguments of all kernels."""
        return self.codes, self.planes, self.n_actions - 1, self.minima, self.n_rows, self.bins, self.offset

    def arrays(self) -> tuple:
        """Return the leading arguments of kernels that price splits."""
        return (*self.rows(), self.groups, self.price)

    def leaf(self) -> tuple[int, int]:
        """Value of all rows as one leaf, without its penalty, and what no tree can go below."""
        value, floor = kernels.node_sums(self.planes, self.n_actions - 1, self.minima, 0, self.n_rows)
        return int(value), int(floor)

    def paid(self, column: int) -> int:
        """What a split of all rows on a column costs."""
        if self.price[-1] == 0:
            return 0
        return int(self.price[self.groups[column]] * self.planes[self.n_actions - 1 + len(self.minima)].sum())


def new_control(similar_support: bool = True, cache: bool = True, look_ahead: bool = True) -> np.ndarray:
    """The kernels' control array: not stopped, and what saves work switched on or off."""
    return np.array([0, similar_support, cache, look_ahead], dtype=np.int64)


def prepare(problem: Problem, fixed: FixedPoint, merge: bool) -> Node:
    """Merge equal rows and lay out codes, planes and counted constraints."""
    data = problem.data
    codes = np.ascontiguousarray(data.codes, dtype=np.uint16)
    rows, minima = [], []
    if problem.min_leaf > 1:
        rows.append(np.ones(data.n_rows, dtype=np.int64))
        minima.append(problem.min_leaf)
    if problem.min_leaf_per_arm > 0:
        for arm in range(problem.losses.shape[1]):
            rows.append((problem.arms == arm).astype(np.int64))
            minima.append(problem.min_leaf_per_arm)
    prices, groups = np.zeros(1, np.int64), np.zeros(len(codes), np.int64)
    if fixed.prices is not None:
        rows.append(fixed.mass)
        prices, groups = np.unique(fixed.prices[[c.feature for c in data.columns]], return_inverse=True)
        groups = groups.astype(np.int64)
    values = np.vstack([fixed.planes, *rows]) if rows else fixed.planes
    codes, planes = merge_equal_rows(codes, values) if merge else (codes, values)
    keys = np.random.default_rng(0).integers(-(2**62), 2**62, size=(2, codes.shape[1]))  # name the rows in the cache
    offset = np.concatenate([[0], np.cumsum(data.n_bins)]).astype(np.int64)
    return Node(
        codes,
        np.ascontiguousarray(np.vstack([planes, keys])),
        problem.losses.shape[1],
        np.array(minima, dtype=np.int64),
        data.n_bins,
        offset,
        groups,
        prices,
        fixed.leaf_penalty,
    )


def rows_of(node: Node, rows: np.ndarray) -> Node:
    """Return some rows of a node."""
    codes, planes = node.codes[:, rows], node.planes[:, rows]
    return replace(node, codes=np.ascontiguousarray(codes), planes=np.ascontiguousarray(planes))


def grow_fully(node: Node) -> tuple[int, Splits]:
    """Split until the rows of a leaf agree on the best action or cannot be told apart: no tree costs less.

    Returns the value and the tree. Only for free leaves without a limit of depth or size.
    """
    total = 0
    out: Splits = []
    stack = [np.arange(node.n_rows)]
    while stack:
        rows = stack.pop()
        part = rows_of(node, rows)
        leaf, floor = part.leaf()
        differ = np.flatnonzero(part.codes.min(axis=1) < part.codes.max(axis=1))
        if leaf == floor or len(differ) == 0:
            total += int(leaf)
            out.append((-1, 0))
            continue
        _, f, t = kernels.best_one_split(*part.arrays())
        if not part.codes[f].min() <= t < part.codes[f].max():  # no gain by one split: any split that separates rows
            f, t = differ[0], part.codes[differ[0]].min()
        out.append((int(f), int(t)))
        left = part.codes[f] <= t
        stack += [rows[~left], rows[left]]
    return total, out


def expand(node: Node, tree: Splits) -> Splits:
    """Write out the lower splits that the kernels leave implicit (see :func:`search_kernels.advance`)."""
    out: Splits = []
    entries = iter(tree)

    def walk(rows: np.ndarray) -> None:
        column, cut = next(entries)
        if column < kernels.OPEN:
            part, leaves = rows_of(node, rows), kernels.OPEN - column
            if leaves <= 2:
                out.extend(one_split(part)[1] if leaves == 2 else [(-1, 0)])
                return
            _, column, cut = two_splits(part, leaves)
        if column == -1:
            out.append((-1, 0))
            return
        c = column if column >= 0 else -2 - column
        left = node.codes[c, rows] <= (cut if cut >= 0 else -1 - cut)
        parts = rows[left], rows[~left]
        out.append((c, cut if cut >= 0 else -1 - cut))
        if column >= 0:
            for part in parts:
                walk(part)
            return
        saved, sides = zip(*(one_split(rows_of(node, part)) for part in parts), strict=True)
        if cut < 0:  # three leaves: the side that saves more may split
            sides = (sides[0], [(-1, 0)]) if saved[0] >= saved[1] else ([(-1, 0)], sides[1])
        out.extend(sides[0] + sides[1])

    walk(np.arange(node.n_rows))
    return out


def one_split(node: Node) -> tuple[int, Splits]:
    """What at most one split saves, and the splits."""
    value, f, t = kernels.best_one_split(*node.arrays())
    saved = node.leaf()[0] - int(value) - node.lam
    return (saved, [(int(f), int(t)), (-1, 0), (-1, 0)]) if saved > 0 else (0, [(-1, 0)])


def two_splits(node: Node, leaves: int, flag: np.ndarray | None = None) -> tuple[int, int, int]:
    """The best tree of depth two and 3 or 4 leaves: value, and first split as kernels state it, -1, 0 for a leaf."""
    part, columns, codes = _occurring(node)  # a cut must leave rows on both sides
    if not len(columns):
        return node.leaf()[0] + node.lam, -1, 0
    roots, cuts = np.empty((2, len(columns)), np.int64)
    flag = new_control() if flag is None else flag
    value, f, t, _ = kernels.depth_two(*part.arrays(), node.lam, leaves, roots, cuts, flag)
    if f < 0:
        return int(value), -1, 0
    t = int(codes[part.offset[f] + t])
    return int(value), -2 - int(columns[f]), t if leaves > 3 else -1 - t


def _occurring(node: Node) -> tuple[Node, np.ndarray, np.ndarray]:
    """The node without columns and codes that its rows lack, its columns, and its codes, as they were before."""
    p, n = node.codes.shape
    S = int(node.offset[-1])
    codes, planes = np.empty((p, n), np.uint16), np.empty((len(node.planes), n), np.int64)
    bins, columns, groups = np.empty((3, p), np.int64)
    offset, names = np.empty(p + 1, np.int64), np.concatenate([np.arange(b) for b in node.bins])
    kept = np.empty(S, np.int64)
    q = kernels.compress(
        node.codes, node.planes, np.arange(n, dtype=np.int32), 0, n, node.bins, node.offset, np.arange(p), node.groups,
        names, codes, planes, bins, offset, columns, groups, kept,
    )  # fmt: skip
    part = replace(node, codes=codes[:q], planes=planes, bins=bins[:q], offset=offset[: q + 1], groups=groups[:q])
    return part, columns[:q], kept


def refuse_memory(problem: Problem, limits: SearchLimits) -> None:
    """Refuse a search whose merged rows alone exceed the memory limit, before they are made."""
    if limits.memory_limit is None:
        return
    p, n = problem.data.codes.shape
    K = problem.losses.shape[1]
    planes = K + 2 + (problem.min_leaf > 1) + K * (problem.min_leaf_per_arm > 0) + (problem.feature_costs is not None)
    need = 2 * n * (2 * p + 8 * planes)
    if need > limits.memory_limit:
        raise InputError(
            f"memory_limit is {limits.memory_limit:.3g} bytes, but rows and columns alone take about {need:.3g}; raise "
            "the limit, or use fewer rows."
        )
