"""Trees near the optimum as lists by value: kept, counted and paired."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from policytree.solvers.core.rows import Node


class TreesByValue(NamedTuple):
    """Trees: their values, how many leaves they have, and their nodes."""

    values: np.ndarray
    sizes: np.ndarray
    trees: np.ndarray

    @classmethod
    def empty(cls, slots: int) -> TreesByValue:
        """No tree, of so many nodes at most."""
        return cls(np.empty(0, np.int64), np.empty(0, np.int32), np.empty((0, slots), np.int32))

    def of_size(self, leaves: int) -> TreesByValue:
        """Those with so many leaves."""
        return TreesByValue(*(part[self.sizes == leaves] for part in self))


class Values(NamedTuple):
    """How many trees of each size have each value."""

    values: np.ndarray
    sizes: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray, sizes: np.ndarray) -> Values:
        """Count trees."""
        return cls.join([cls(values, sizes, np.ones(len(values), np.int64))])

    @classmethod
    def join(cls, parts: list[Values]) -> Values:
        """Add up counts, ascending by value."""
        values, sizes, counts = (np.concatenate(each) for each in zip(*parts, strict=True))
        order = np.lexsort((sizes, values))
        values, sizes, counts = values[order], sizes[order], counts[order]
        new = np.flatnonzero(np.concatenate([[True], (np.diff(values) != 0) | (np.diff(sizes) != 0)])[: len(values)])
        return cls(values[new], sizes[new], np.add.reduceat(counts, new) if len(new) else counts)

    def of_size(self, leaves: int) -> Values:
        """Those with so many leaves."""
        return Values(*(part[self.sizes == leaves] for part in self))

    def pairs(self, other: Values, rest: int) -> int:
        """Pairs of trees with a sum up to ``rest``."""
        up_to = np.concatenate([[0], np.cumsum(other.counts)])
        within = up_to[np.searchsorted(other.values, rest - self.values, side="right")]
        if int(self.counts.sum()) * int(up_to[-1]) < 2**62:
            return int(self.counts @ within)
        return sum(x * y for x, y in zip(self.counts.tolist(), within.tolist(), strict=True))


def equal_leaves(left: Node, right: Node, rest: int) -> int:
    """How many pairs of leaves with the same action are within ``rest``: no trees of their own."""
    if any((side.counts.sum(axis=1) < side.rules.minima).any() for side in (left, right)):
        return 0
    sums = [np.append(0, side.losses.sum(axis=1)) + side.penalty for side in (left, right)]
    return int(np.count_nonzero(sums[0] + sums[1] <= rest))


def shares_of_leaves(leaves: int) -> list[tuple[int, int]]:
    """(exact leaves of the left side, most leaves of the right side); one pair, 0 for any, if all may have four."""
    if leaves >= 8:
        return [(0, 4)]
    return [(k, min(4, leaves - k)) for k in range(1, min(4, leaves - 1) + 1)]
