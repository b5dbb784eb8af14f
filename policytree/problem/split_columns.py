"""The columns of codes that a feature becomes, one for each way to split it (``types.SplitColumn``)."""

from __future__ import annotations

import numpy as np

from policytree.problem.types import SplitColumn

MAX_BINS = 65_536  # of codes of two bytes, which nearly all searches take


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
