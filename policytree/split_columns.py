"""The columns of codes that a feature becomes, one for each way to split it; see ``policytree.types.SplitColumn``."""

from __future__ import annotations

import numpy as np

from policytree.types import SplitColumn

MAX_BINS = 65_536  # of codes of two bytes, which nearly all searches take
FIRST, BLOCK = 64, 2**19  # rows that are looked at first for more than two values; numbers that are in one go


def code_type(most_bins: int) -> np.dtype:
    """The least unsigned integers that so many codes fit in."""
    return np.min_scalar_type(max(int(most_bins) - 1, 0))


def quantile_ranks(n: int, max_bins: int) -> np.ndarray:
    """Places of the quantiles 1/max_bins, 2/max_bins, ... of n > 0 sorted numbers (inverted distribution function)."""
    # np.quantile takes seconds for so many quantiles.
    return np.maximum(-(-np.arange(1, max_bins, dtype=np.int64) * n // max_bins) - 1, 0)


def numeric_split_columns(j: int, thresholds: np.ndarray, codes: np.ndarray, missing: np.ndarray) -> list:
    """Split columns of one numeric feature, each with the codes of its rows.

    ``codes`` are those of the rows that ``missing`` (n,) does not mark, by the thresholds.
    """
    out = []
    gaps = bool(missing.any())
    if gaps:
        every = np.zeros(len(missing), dtype=np.int64)  # missing together with the smallest values: left
        every[~missing] = codes
        present, codes = len(codes), every
        if present:
            right = np.where(missing, len(thresholds) + 1, codes)
            out.append((SplitColumn(j, np.append(thresholds, np.inf), False), right))
    if len(thresholds):
        out.append((SplitColumn(j, thresholds, gaps), codes))
    return out


def categorical_split_columns(j: int, x: np.ndarray) -> list:
    """One column per distinguishable split "this value against the rest", the value coded 0 and everything else 1.

    Missing values may go either way, or be split off alone (threshold -1, which no category has).
    """
    missing = np.isnan(x)
    values = np.unique(x[~missing])
    found = [(SplitColumn(j, np.array([v]), False), (x != v).astype(np.int64)) for v in values]
    if missing.any():
        found.append((SplitColumn(j, np.array([-1.0]), True), (~missing).astype(np.int64)))
        if len(values) > 2:  # with two values, "this one or missing" is "not the other one"
            found += [(SplitColumn(j, np.array([v]), True), (~missing & (x != v)).astype(np.int64)) for v in values]
    elif len(values) == 2:
        found = found[:1]  # "not the first" is the second
    return [(column, code) for column, code in found if code.any()]


def midpoints(values: np.ndarray) -> np.ndarray:
    """Thresholds between sorted distinct values, ``a <= threshold < b`` also for neighbouring floats."""
    low, high = values[:-1], values[1:]
    middle = low / 2 + high / 2  # halves first: the sum of two large values may overflow
    return np.where((middle < high) & (middle >= low), middle, low)


def _thin(thresholds: np.ndarray, x: np.ndarray, max_bins: int) -> np.ndarray:
    """At most ``max_bins - 1`` of the thresholds, near quantiles of ``x``."""
    at = np.searchsorted(thresholds, np.sort(x)[quantile_ranks(len(x), max_bins)], side="left")
    return thresholds[np.unique(at[at < len(thresholds)])]


def _distinct(x: np.ndarray, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """Sorted distinct values, and the place of every number among them; whole steps in a small range are counted.

    ``low`` and ``high`` are the least and the largest number, infinity and its negative if there is none.
    """
    if high / 2 - low / 2 <= 2 * len(x):  # halves: the difference of large values may overflow
        steps = (x - low).astype(np.int64)
        if (low + steps == x).all():
            seen = np.zeros(int(high - low) + 1 if len(x) else 0, dtype=bool)
            seen[steps] = True
            places = (np.cumsum(seen) - 1).astype(np.uint16 if len(seen) < MAX_BINS else np.int64)
            return low + np.flatnonzero(seen), np.take(places, steps)
    order = np.argsort(x)
    ascending = x[order]
    new = np.concatenate([[True], ascending[1:] != ascending[:-1]])[: len(x)]
    place = np.empty(len(x), dtype=np.int64)
    place[order] = np.cumsum(new) - 1
    return ascending[new], place


def two_valued_columns(X: np.ndarray, features: list[int], low: np.ndarray, high: np.ndarray) -> dict[int, list]:
    """Split columns and codes of the numeric features with one or two values and none missing, by feature.

    Many columns at once: numpy takes longer to begin with a short column than to go through it.
    """
    found: dict[int, list] = {}
    if not len(X):
        return found
    numbers = np.array(features, dtype=np.intp)
    numbers = numbers[_at_ends(X[:FIRST].T[numbers], low[numbers], high[numbers])[1]]
    at_once = max(1, BLOCK // len(X))
    thresholds = midpoints(np.stack([low, high]))[0]
    for k in range(0, len(numbers), at_once):
        some = numbers[k : k + at_once]
        upper, two = _at_ends(X.T if len(some) == X.shape[1] else X.T[some], low[some], high[some])
        for i in np.flatnonzero(two):
            j = int(some[i])
            found[j] = [(SplitColumn(j, thresholds[j : j + 1], False), upper[i])] if low[j] < high[j] else []
    return found


def _at_ends(part: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where rows of numbers have their largest, and which rows have no number but that and their least."""
    upper = part == high[:, None]
    return upper, ((part == low[:, None]) | upper).all(axis=1)


def numeric_columns(j: int, x: np.ndarray, max_bins: int, low: float, high: float) -> tuple[list, bool]:
    """Split columns and codes of one numeric feature, and whether every threshold was kept.

    ``low`` and ``high`` are NaN where values are missing.
    """
    gaps = bool(np.isnan(low))
    missing, present = np.isnan(x) if gaps else np.zeros(len(x), dtype=bool), x
    if gaps:
        present = x[~missing]
        low, high = present.min(initial=np.inf), present.max(initial=-np.inf)
    values, codes = _distinct(present, low, high)
    thresholds = midpoints(values)
    exact = len(thresholds) < max_bins - gaps
    if not exact:  # otherwise every value has a code of its own
        thresholds = _thin(thresholds, present, max_bins - gaps)
        codes = np.searchsorted(thresholds, values, side="left")[codes]
    return numeric_split_columns(j, thresholds, codes, missing), exact
