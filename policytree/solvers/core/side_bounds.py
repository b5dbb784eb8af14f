"""Similarity bounds of both sides of a column's cuts, for searches that branch in Python above depth two.

Along a column the left side only grows. If rows D join a side, its best tree costs at least ``least(D)`` more, and at
most ``most(D)`` more; ``kernels/depth_two/similarity_bounds.py`` states the same for kernels. Cuts are solved from the
middle outwards, so that every solved cut bounds as many others as it can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from policytree.solvers.core.rows import Node
from policytree.solvers.core.shared_costs import are_uneven


def sums_up_to(values: np.ndarray, codes: np.ndarray, bins: int) -> np.ndarray:
    """Sums of integers of rows, up to each code of a column; shape (bins,)."""
    out = np.zeros(bins, np.int64)
    np.add.at(out, codes, values)
    return out.cumsum()


def row_values(node: Node, splits: int) -> tuple[np.ndarray, np.ndarray]:
    """Bound each row's cost below, and above where a path has so many splits, each of the largest price."""
    most = np.maximum(node.losses, 0).max(axis=0, initial=0)
    if node.priced:
        most = most + splits * node.charges.max(axis=0)
    return node.least_losses, most


def charged_later(node: Node) -> np.ndarray | None:
    """Bound each row's extra charge if splits of a tree of at most three levels are dropped; None if there is none.

    A split that is dropped may have been the cheap one that paid for its test group, and a dearer one further down now
    pays. This takes two splits of the group on the row's path: in three levels, it concerns one group at most. Columns
    of groups that are paid for have one price already.
    """
    owners, prices = node.rows.owners, node.rows.groups
    if not are_uneven(owners, prices):
        return None
    groups = [np.unique(prices[owners == owner]) for owner in range(owners.max() + 1)]
    return np.max([np.ptp(node.charges[used], axis=0) for used in groups if len(used)], axis=0)


class SideBounds:
    """Lower bounds of the sides of every cut of one column.

    Parameters
    ----------
    node : Node
        The rows that are split.
    column : int
    values : tuple of ndarray of shape (n_rows,)
        Bounds of each row's cost, below and above, in any tree of the node (:func:`row_values`).
    whole : int, optional
        Lower bound of all rows' cost as one side.
    later : ndarray of shape (n_rows,), int64, optional
        Upper bound of a row's extra charge by a tree that loses splits when it is restricted to the row's side
        (see :func:`charged_later`); zero by default.

    Attributes
    ----------
    cuts : ndarray of int64
        Cuts with rows on both sides, one of those that divide the rows alike.
    left, right : ndarray of shape (bins,), int64
        Lower bounds of either side of each cut, without the split's own charge.
    """

    def __init__(
        self, node: Node, column: int, values: tuple[np.ndarray, np.ndarray], whole: int | None = None, later=None
    ):
        self.codes, bins = node.codes[column], int(node.bins[column])
        self.cuts = np.flatnonzero(np.bincount(self.codes, minlength=bins))[:-1]
        self._least, self._most = (sums_up_to(part, self.codes, bins) for part in values)
        self._later = np.zeros(bins, np.int64) if later is None else sums_up_to(later, self.codes, bins)
        # With fewer rows fewer trees keep the minima, so that only bounds from a larger side to a smaller one hold.
        self._counted = len(node.rules.minima) > 0
        self.left = self._least + node.penalty
        self.right = self._least[-1] - self._least + node.penalty
        if whole is not None:
            np.maximum(self.left, whole - (self._most[-1] - self._most), out=self.left)
            np.maximum(self.right, whole - self._most, out=self.right)

    def raise_left(self, t: int, value: int) -> None:
        """Take what the left side of cut ``t`` costs at least, and what follows for the other cuts."""
        left, least, most = self.left, self._least, self._most
        np.maximum(left[:t], value - (most[t] - most[:t]), out=left[:t])
        left[t] = max(left[t], value)
        if not self._counted:
            gained = least[t + 1 :] - least[t] - self._later[t]
            np.maximum(left[t + 1 :], value + gained, out=left[t + 1 :])

    def raise_right(self, t: int, value: int) -> None:
        """Take what the right side of cut ``t`` costs at least, and what follows for the other cuts."""
        right, least, most = self.right, self._least, self._most
        np.maximum(right[t + 1 :], value - (most[t + 1 :] - most[t]), out=right[t + 1 :])
        right[t] = max(right[t], value)
        if not self._counted:
            gained = least[t] - least[:t] - (self._later[-1] - self._later[t])
            np.maximum(right[:t], value + gained, out=right[:t])

    def at(self, t: int) -> int:
        """Bound the cost of both sides of cut ``t`` below."""
        return int(self.left[t] + self.right[t])

    def open_cuts(self, limit: Callable[[], int]) -> Iterator[int]:
        """Cuts whose bounds are within the limit, each in the middle of those between two earlier ones.

        The caller raises the bounds of each before it takes the next; ``limit`` is asked again for every cut.
        """
        stack = [(0, len(self.cuts))]
        while stack:
            first, end = stack.pop()
            between = self.cuts[first:end]
            still_open = np.flatnonzero(self.left[between] + self.right[between] <= limit())
            if len(still_open):
                middle = first + int(still_open[len(still_open) // 2])
                yield int(self.cuts[middle])
                stack += [(middle + 1, end), (first, middle)]

    def solve_cuts(self, limit: Callable[[], int], least_of: Callable[[np.ndarray], int]) -> Iterator[int]:
        """Solve the cuts that bounds leave open; ``least_of`` takes the rows of a side and returns its least value.

        The right side is solved only where the left one leaves the cut open. So the bounds of a cut that is yielded
        are within the limit only if they are the values of its sides.
        """
        for t in self.open_cuts(limit):
            goes_left = self.codes <= t
            self.raise_left(t, least_of(np.flatnonzero(goes_left)))
            if self.at(t) <= limit():
                self.raise_right(t, least_of(np.flatnonzero(~goes_left)))
            yield t
