"""Greedy incumbents: a tree is grown by two or three exactly solved levels at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from policytree.solvers.core.rows import Node, Splits, one_split, rows_of, two_splits
from policytree.solvers.exact.depth_search import Steps, last_of, steps_of_depth_three

MOST_GROWN = 12  # levels of a tree that is made for an incumbent
MOST_KEPT = 1 << 14  # subtrees, of some 1.5 kB each

Found = tuple[int, Splits]  # a value, and the splits that have it, as the kernels write them


def grow_incumbent(node: Node, splits: Splits, depth: int, flag: np.ndarray, exact: int = 2) -> Found:
    """Grow a tree downwards to some depth.

    The tree's own splits stay down to the last ``exact`` levels. Below, and wherever the tree ends, the next split is
    the first one of the best subtree of so many levels, and the last levels are that subtree.

    Parameters
    ----------
    node : Node
    splits : list of (column, cut)
        The tree to begin with, in preorder; ``[(-1, 0)]`` for none.
    depth : int
        Largest number of splits on a path of the tree that is made, >= 2.
    flag : ndarray
        The kernels' control array; once stopped, what is there is taken as it is.
    exact : {2, 3}
        Levels that are solved exactly at a time. Three take about as long as depth three of all rows on every level
        that is grown but the last two, and make much better trees.
    """
    return last_of(Grower(flag, exact).grow(node, splits, depth))


class Grower:
    """Grows trees in steps, and keeps subtrees of three levels that it has solved; all are dropped once too many.

    Parameters
    ----------
    flag : ndarray
    exact : {2, 3}
        As in :func:`grow_incumbent`.
    """

    def __init__(self, flag: np.ndarray, exact: int):
        self.flag, self.exact = flag, exact
        self._solved: dict[tuple[int | bytes, ...], Found] = {}  # by the rows, which their keys name, and prices

    def grow(self, node: Node, splits: Splits, depth: int) -> Steps[Found]:
        """Grow a tree; ``node`` has all rows, at the prices that hold where the tree is grown."""
        return self._follow(node, np.arange(node.n_rows), iter(splits), depth)

    def _follow(self, node: Node, rows: np.ndarray, splits: Iterator[tuple[int, int]], room: int) -> Steps[Found]:
        """Keep the next of the given splits, if there is one and more than the exact levels are left for it.

        A split that leaves one side without rows is replaced by the subtree of the other.
        """
        column, cut = next(splits)
        if column >= 0 and room > self.exact:
            left, below = node.codes[column, rows] <= cut, node.below(column)
            if left.all():
                found = yield from self._follow(node, rows, splits, room)
                self._skip(splits, 1)
                return found
            if not left.any():
                self._skip(splits, 1)
                return (yield from self._follow(node, rows, splits, room))
            one = yield from self._follow(below, rows[left], splits, room - 1)
            other = yield from self._follow(below, rows[~left], splits, room - 1)
            return self.joined(rows_of(node, rows), column, cut, one, other)
        self._skip(splits, 2 if column >= 0 else 0)
        return (yield from self._grow(node, rows, room))

    @staticmethod
    def _skip(splits: Iterator[tuple[int, int]], subtrees: int) -> None:
        while subtrees > 0:
            subtrees += 1 if next(splits)[0] >= 0 else -1

    def _grow(self, node: Node, rows: np.ndarray, room: int) -> Steps[Found]:
        part = rows_of(node, rows)
        leaf, floor = part.leaf()
        leaf += node.penalty
        if room == 0 or leaf <= floor + 2 * node.penalty:
            return leaf, [(-1, 0)]
        if room == 1:
            saved, splits = one_split(part)
            return leaf - saved, splits
        if room > 2 and self.exact > 2:
            value, splits = yield from self._three_levels(part)
            column, cut = splits[0]
            if room == 3 or column < 0:
                return value, splits
        else:
            value, column, cut = two_splits(part, 4, self.flag)
            if room == 2 or column == -1:
                return value, [(column, cut)]
            column = -2 - column
        left, below = node.codes[column, rows] <= cut, node.below(column)
        one = yield from self._grow(below, rows[left], room - 1)
        other = yield from self._grow(below, rows[~left], room - 1)
        return self.joined(part, column, cut, one, other)

    def _three_levels(self, part: Node) -> Steps[Found]:
        key = part.n_rows, part.keys.sum(axis=1).tobytes(), part.rows.groups.tobytes()
        if key not in self._solved:
            found = yield from steps_of_depth_three(part, self.flag)
            if self.flag[0]:
                return found
            if len(self._solved) >= MOST_KEPT:
                self._solved.clear()
            self._solved[key] = found
        return self._solved[key]

    @staticmethod
    def joined(part: Node, column: int, cut: int, one: Found, other: Found) -> Found:
        """The tree of a split and both its subtrees, or a leaf if that costs no more."""
        leaf, value = part.leaf()[0] + part.penalty, one[0] + other[0] + part.paid(column)
        return (value, [(column, cut), *one[1], *other[1]]) if value < leaf else (leaf, [(-1, 0)])
