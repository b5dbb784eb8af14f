"""The merged rows of a search's root, and trees that need no bounds."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from policytree.exceptions import InputError
from policytree.solvers import search_kernels as kernels
from policytree.solvers.fixed_point import FixedPoint
from policytree.solvers.merge import merge_equal_rows
from policytree.types import Problem, SearchLimits


@dataclass
class Node:
    """The root node's merged rows and what every kernel needs of it."""

    codes: np.ndarray
    planes: np.ndarray
    n_actions: int
    minima: np.ndarray
    bins: np.ndarray
    offset: np.ndarray
    lam: int

    @property
    def n_rows(self) -> int:
        """Number of distinct rows."""
        return self.codes.shape[1]

    def arrays(self) -> tuple:
        """Return the leading arguments of the kernels."""
        return self.codes, self.planes, self.n_actions - 1, self.minima, self.n_rows, self.bins, self.offset


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
        fixed.leaf_penalty,
    )


def rows_of(node: Node, rows: np.ndarray) -> Node:
    """Return some rows of a node."""
    codes, planes = node.codes[:, rows], node.planes[:, rows]
    return replace(node, codes=np.ascontiguousarray(codes), planes=np.ascontiguousarray(planes))


def grow_fully(node: Node) -> tuple[int, list[tuple[int, int]]]:
    """Split until the rows of a leaf agree on the best action or cannot be told apart: no tree costs less.

    Returns the value and the tree. Only for free leaves without a limit of depth or size.
    """
    total = 0
    out: list[tuple[int, int]] = []
    stack = [np.arange(node.n_rows)]
    while stack:
        rows = stack.pop()
        part = rows_of(node, rows)
        leaf, floor = kernels.node_sums(part.planes, part.n_actions - 1, part.minima, 0, part.n_rows)
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


def expand(node: Node, tree: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Write out the lower splits that the kernels leave implicit (see :func:`search_kernels.advance`)."""
    out: list[tuple[int, int]] = []
    entries = iter(tree)

    def side(rows: np.ndarray) -> list[tuple[int, int]]:
        part = rows_of(node, rows)
        leaf, _ = kernels.node_sums(part.planes, part.n_actions - 1, part.minima, 0, part.n_rows)
        value, f, t = kernels.best_one_split(*part.arrays())
        return [(int(f), int(t)), (-1, 0), (-1, 0)] if value + node.lam < leaf else [(-1, 0)]

    def walk(rows: np.ndarray) -> None:
        column, cut = next(entries)
        if column == kernels.OPEN:
            column, cut = solve_two(rows_of(node, rows))
        if column == -1:
            out.append((-1, 0))
            return
        c = column if column >= 0 else -2 - column
        left = node.codes[c, rows] <= cut
        out.append((c, cut))
        for part in (rows[left], rows[~left]):
            if column >= 0:
                walk(part)
            else:
                out.extend(side(part))

    walk(np.arange(node.n_rows))
    return out


def solve_two(node: Node) -> tuple[int, int]:
    """First split of the best tree of depth two as the kernels state it: (-2 - column, cut), or (-1, 0) for a leaf."""
    occurring = [np.unique(codes, return_inverse=True) for codes in node.codes]  # a cut must leave rows on both sides
    columns = [f for f, (values, _) in enumerate(occurring) if len(values) > 1]
    if not columns:
        return -1, 0
    bins = np.array([len(occurring[f][0]) for f in columns], dtype=np.int64)
    codes = np.array([occurring[f][1] for f in columns], dtype=np.uint16)
    part = replace(node, codes=codes, bins=bins, offset=np.concatenate([[0], np.cumsum(bins)]).astype(np.int64))
    roots, cuts = np.empty((2, len(columns)), np.int64)
    switches = np.array([0, 1, 1, 1], dtype=np.int64)
    _, f, t, _ = kernels.depth_two(*part.arrays(), node.lam, roots, cuts, switches)
    return (-2 - columns[f], int(occurring[columns[f]][0][t])) if f >= 0 else (-1, 0)


def refuse_memory(problem: Problem, limits: SearchLimits) -> None:
    """Refuse a search whose arrays alone exceed the memory limit, before they are made."""
    if limits.memory_limit is None:
        return
    p, n = problem.data.codes.shape
    planes = (
        problem.losses.shape[1] + 2 + (problem.min_leaf > 1) + problem.losses.shape[1] * (problem.min_leaf_per_arm > 0)
    )
    levels = 0 if (problem.max_depth or 3) < 3 else 2 * ((problem.max_depth or 8) - 1) * limits.n_jobs
    need = n * (2 * p + 8 * planes) * (2 + levels)
    if need > limits.memory_limit:
        raise InputError(
            f"memory_limit is {limits.memory_limit:.3g} bytes, but the search needs about {need:.3g}; raise the limit, "
            "lower max_depth or n_jobs, or use fewer rows."
        )
