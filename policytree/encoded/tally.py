"""Tallies of a column that its coding needs, from batches in any order.

A column of few different numbers is counted value by value. One of more is cut at quantiles, which are exact: rows are
counted between edges, those edges are refined that a quantile lies between, and once few different values are left
there, they are counted one by one. Where edges lie depends on a sample; what comes out does not.

All counts add up: over batches, and over machines.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from policytree.problem.split_columns import quantile_ranks

MOST_VALUES = 1 << 16  # different numbers of a column that are counted one by one at once
MOST_COLLECTED = 1 << 22  # different numbers near quantiles, the same in the end
SAMPLE = 256  # numbers that a batch adds to the sample of a column
EDGES = 4096
FINER = 64  # parts of an interval in which a quantile lies


@dataclass
class Counts:
    """Different numbers, ascending, and how often each occurs."""

    values: np.ndarray = field(default_factory=lambda: np.empty(0))
    counts: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def add(self, values: np.ndarray, counts: np.ndarray) -> None:
        """Add other numbers and their counts."""
        if not len(self.values):
            self.values, self.counts = values, counts.astype(np.int64)
        elif len(values):
            every, place = np.unique(np.concatenate([self.values, values]), return_inverse=True)
            total = np.zeros(len(every), dtype=np.int64)
            np.add.at(total, place, np.concatenate([self.counts, counts]))
            self.values, self.counts = every, total


@dataclass
class NumberTally:
    """A numeric column: different values while they are few, a sample, the range, and its gaps."""

    present: int = 0
    missing: int = 0
    any_missing: bool = False  # also in rows of weight zero
    low: float = np.inf
    high: float = -np.inf
    distinct: Counts | None = field(default_factory=Counts)  # None: too many
    sample: list[np.ndarray] = field(default_factory=list)

    def add(self, x: np.ndarray, kept: np.ndarray | None) -> None:
        """Add numbers; ``kept`` marks the rows that count, None if all do."""
        gaps = np.isnan(x)
        self.any_missing |= bool(gaps.any())
        counted = ~gaps if kept is None else kept & ~gaps
        x = x[counted] + 0.0  # of two zeros, the positive one
        self.present += len(x)
        self.missing += int((gaps if kept is None else gaps & kept).sum())
        if not len(x):
            return
        self.low, self.high = min(self.low, float(x.min())), max(self.high, float(x.max()))
        self.sample.append(x[:: max(1, len(x) // SAMPLE)].copy())
        if self.distinct is not None:
            self.distinct.add(*np.unique(x, return_counts=True))
            self._cap()

    def merge(self, other: NumberTally) -> None:
        """Add the rows of another tally."""
        self.present += other.present
        self.missing += other.missing
        self.any_missing |= other.any_missing
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.sample += other.sample
        if self.distinct is None or other.distinct is None:
            self.distinct = None
        else:
            self.distinct.add(other.distinct.values, other.distinct.counts)
            self._cap()

    def _cap(self) -> None:
        if self.distinct is not None and len(self.distinct.values) > MOST_VALUES:
            self.distinct = None


@dataclass
class CategoryTally:
    """A column of categories: how many counted rows each has (0: only rows of weight zero), and its gaps."""

    counts: dict = field(default_factory=dict)
    missing: int = 0
    any_missing: bool = False

    def merge(self, other: CategoryTally) -> None:
        """Add the rows of another tally."""
        for value, count in other.counts.items():
            self.counts[value] = self.counts.get(value, 0) + count
        self.missing += other.missing
        self.any_missing |= other.any_missing


def cut_values(counts: Counts, present: int, most_codes: int) -> tuple[np.ndarray, bool]:
    """The largest value of every code but the last, as ``bin_matrix`` bins; and whether all stay.

    Parameters
    ----------
    counts : Counts
        Of all values.
    present : int
        Number of values.
    most_codes : int
        Most codes, without that of missing values.
    """
    if len(counts.values) <= most_codes:
        return counts.values[:-1], True
    return _at_ranks(counts, 0, quantile_ranks(present, most_codes), counts.values[-1]), False


def _at_ranks(counts: Counts, below: int, ranks: np.ndarray, largest: float) -> np.ndarray:
    """Values at these places, ``below`` of which come before the counted ones; the largest value of all is no cut."""
    ends = below + np.cumsum(counts.counts)
    values = np.unique(counts.values[np.searchsorted(ends, ranks, side="right")])
    return values[values < largest]


def keys_of(x: np.ndarray) -> np.ndarray:
    """Whole numbers in the order of float64 numbers."""
    bits = np.ascontiguousarray(x, dtype=np.float64).view(np.int64)
    return np.where(bits >= 0, bits, np.int64(-(2**63)) - bits)


def numbers_of(keys: np.ndarray) -> np.ndarray:
    """The reverse of :func:`keys_of`."""
    return np.where(keys >= 0, keys, np.int64(-(2**63)) - keys).view(np.float64)


class QuantileSearch:
    """Finds the values at some places among all numbers of a column, reading it a few times.

    ``edges`` are what the next reading counts between (:meth:`count`), or collects between (:meth:`collect`) if
    ``collecting``: the intervals ``(edges[i - 1], edges[i]]``.
    """

    def __init__(self, tally: NumberTally, most_codes: int):
        self.ranks = quantile_ranks(tally.present, most_codes)
        self.low, self.high = tally.low, tally.high
        sample = np.unique(np.concatenate(tally.sample))
        chosen = sample[np.linspace(0, len(sample) - 1, min(len(sample), EDGES - 1)).astype(np.int64)]
        self.edges = np.unique(np.append(chosen, self.high))
        self.collecting = False
        self.wanted = np.zeros(len(self.edges), dtype=bool)
        self.below = np.zeros(len(self.edges), dtype=np.int64)
        self.result = None if len(self.ranks) else np.empty(0)  # the largest value of every code but the last

    def count(self, x: np.ndarray) -> np.ndarray:
        """How many of these numbers lie in each interval; shape (len(edges),)."""
        return np.bincount(np.searchsorted(self.edges, x, side="left"), minlength=len(self.edges))

    def collect(self, x: np.ndarray) -> Counts:
        """Different numbers in the intervals that a quantile lies in."""
        wanted = x[self.wanted[np.searchsorted(self.edges, x, side="left")]]
        return Counts(*np.unique(wanted + 0.0, return_counts=True))

    def take_counts(self, counts: np.ndarray) -> None:
        """Take in the counts of all rows, and choose what to read next."""
        ends = np.cumsum(counts)
        self.wanted = np.zeros(len(self.edges), dtype=bool)
        self.wanted[np.searchsorted(ends, self.ranks, side="right")] = True
        self.below = ends - counts
        lows = keys_of(np.append(self.low, self.edges[:-1]))
        width = (keys_of(self.edges) - lows).view(np.uint64)  # may be more than int64 holds
        if counts[self.wanted & (width > 1)].sum() <= MOST_COLLECTED:
            self.collecting = True
            return
        finer = [self.edges[self.wanted]]
        for low, wide in zip(lows[self.wanted], width[self.wanted], strict=True):
            steps = {int(low) + int(wide) * k // FINER for k in range(FINER + 1)}
            finer.append(numbers_of(np.array(sorted(steps), dtype=np.int64)))
        self.edges = np.unique(np.concatenate([*finer, [self.high]]))

    def take_collected(self, collected: Counts) -> None:
        """Take in the numbers of all rows near quantiles: these are then known."""
        place = np.searchsorted(self.edges, collected.values, side="left")
        found = [
            _at_ranks(part, int(self.below[i]), self._ranks_in(int(i), part), self.high)
            for i in np.flatnonzero(self.wanted)
            for part in [Counts(collected.values[place == i], collected.counts[place == i])]
        ]
        self.result = np.unique(np.concatenate(found))

    def _ranks_in(self, i: int, part: Counts) -> np.ndarray:
        low = self.below[i]
        return self.ranks[(self.ranks >= low) & (self.ranks < low + part.counts.sum())]
