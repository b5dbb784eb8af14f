"""The lower bound of trees by their number of leaves: the envelope of all proved bounds."""

from __future__ import annotations

import numpy as np

from policytree.problem.types import GATES

LARGEST = 1 << 60


class LeafCountEnvelope:
    """Bounds of the form: a tree of h leaves loses at least ``total - h p``, for every h.

    Where p is more than the price of a leaf, that says something of few leaves only; where p is less, it says most of
    many. So every number of leaves has the bound that says most of it, and what no bound refutes are some numbers of
    leaves only.

    Parameters
    ----------
    penalty : int
        Price of a leaf.
    unit : int
        What trees lose is a multiple of it.
    most : int
        Leaves that a tree can have.
    counted : int
        The largest number of leaves that has a bound of its own.
    """

    def __init__(self, penalty: int, unit: int, most: int, counted: int = GATES.most_counted_leaves):
        self.penalty, self.unit = penalty, unit
        self.h = np.arange(1, max(min(most, counted, LARGEST // (2 * max(penalty, 1))), 1) + 1, dtype=np.int64)
        self.losses = np.zeros(len(self.h), np.int64)
        self.beyond = int(self.h[-1]) * penalty  # cost of trees of so many leaves and more

    def add(self, total: int, p: int) -> None:
        """Note a bound; those of ``p`` of twice the price of a leaf and more say little and are left out."""
        if p < 2 * self.penalty:
            self.losses = np.maximum(self.losses, total - self.h * p)
        if p <= self.penalty:  # grows with the number of leaves
            self.beyond = max(self.beyond, total + int(self.h[-1]) * (self.penalty - p))

    def bound(self, fewest: int) -> int:
        """What trees of at least ``fewest`` leaves cost at least."""
        costs = -(-self.losses // self.unit) * self.unit + self.h * self.penalty
        return int(costs[fewest - 1 :].min(initial=self.beyond))

    def still_open(self, fewest: int, best: int) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of leaves of which trees may cost less than ``best``, and what such trees lose at most."""
        most = (best - self.h * self.penalty - 1) // self.unit * self.unit
        is_open = (self.h >= fewest) & (most >= 0) & (self.losses <= most)
        return self.h[is_open], most[is_open]
