"""Numbers as integer codes, with thresholds midway between neighbouring distinct values."""

from __future__ import annotations

import numpy as np

from policytree.data.features import CATEGORICAL, Feature
from policytree.exceptions import InputError
from policytree.problem.split_columns import (
    GROUPS,
    LEVELS,
    MAX_BINS,
    categorical_split_columns,
    code_type,
    grouped_split_columns,
    level_column,
    midpoints,
    numeric_split_columns,
    parts_of,
    quantile_ranks,
)
from policytree.problem.types import BinnedData, SplitColumn
from policytree.solvers.core.compilation import CODING, load_kernels
from policytree.solvers.kernels.base.binning import code_steps

FIRST, BLOCK = 64, 2**19  # rows that are looked at first for more than two values; numbers that are in one go
MOST_STEPS = 2**31 - 2  # that codes of four bytes number
MOST_KEPT = 4 * (MAX_BINS - 1)  # thresholds of a feature beside others: pairs of parts become more with their square


def bin_matrix(
    X,
    features: tuple[Feature, ...] | None = None,
    *,
    max_bins: int | None = None,
    split_on=None,
    wide: bool = False,
    categories: str = LEVELS,
    losses: np.ndarray | None = None,
    min_leaf: int = 1,
    last: bool = False,
    arms: np.ndarray | None = None,
    min_leaf_per_arm: int = 0,
    as_levels: bool = False,
) -> BinnedData:
    """Integer codes of an encoded matrix, with thresholds midway between neighbouring distinct values.

    Parameters
    ----------
    X : array-like of shape (n, p)
        Numbers as made by :meth:`FeatureEncoder.encode`; NaN means missing.
    features : tuple of Feature, optional
        Names and kinds of the columns; numeric ``x0, x1, ...`` by default.
    max_bins : int, optional
        Most codes a feature may have, 2 to 65,536 (also the default); features with more distinct values keep the
        thresholds nearest to quantiles, and ``exact`` is False.
    split_on : collection of int, optional
        Positions of the features that get cuts; all by default.
    wide : bool, default False
        Whether numeric features keep more thresholds than codes of two bytes tell apart, if ``max_bins`` is None. The
        only feature with cuts keeps all: its codes are uint32 beyond 65,536 values, which only the direct solver's
        search over one feature takes. Of several features, those with at most ``MOST_KEPT`` thresholds keep all, in
        columns of 65,536 codes at most (:func:`policytree.problem.split_columns.parts_of`).
    categories : {"levels", "groups"}, default "levels"
        Whether a categorical feature splits off one level, or any group of them.
    losses, min_leaf, last, arms, min_leaf_per_arm
        Of groups: as in :func:`policytree.problem.split_columns.grouped_split_columns`.
    as_levels : bool, default False
        Whether all groupings of a feature of few levels may be one column (``BinnedData.levels``).

    Returns
    -------
    BinnedData
        Constant columns have no cut and are left out of ``codes``, as are those that are not split on.
    """
    load_kernels([(CODING, "")])
    X = np.asfortranarray(X, dtype=np.float64)  # columns are read one by one
    features = features or tuple(Feature(f"x{j}") for j in range(X.shape[1]))
    limit = MAX_BINS if max_bins is None else max_bins
    wide &= max_bins is None
    if not 2 <= limit <= MAX_BINS:
        raise InputError(f"max_bins must lie between 2 and {MAX_BINS}; got {max_bins}.")
    found, exact, partly, implied = [], True, [], 0
    used = [j for j in range(len(features)) if split_on is None or j in split_on]
    low, high = X.min(axis=0, initial=np.inf), X.max(axis=0, initial=-np.inf)
    by_level: list = []
    two_valued = two_valued_columns(X, [j for j in used if features[j].kind != CATEGORICAL], low, high)
    for j in used:
        if features[j].kind == CATEGORICAL and categories == GROUPS:
            whole_column = level_column(j, X[:, j]) if as_levels else None
            if whole_column is not None:
                by_level.append(whole_column)
                L = whole_column[2].n_levels
                implied += 2 ** (L - 1) - L
                continue
            offered, whole, n_groupings = grouped_split_columns(
                j, X[:, j], losses, min_leaf, last, arms, min_leaf_per_arm
            )
            found += offered
            implied += n_groupings - len(offered)
            partly += [] if whole else [j]
        elif features[j].kind == CATEGORICAL:
            found += categorical_split_columns(j, X[:, j])
        elif j in two_valued:
            found += two_valued[j]
        else:
            numeric, kept = numeric_columns(j, X[:, j], limit, low[j], high[j], MOST_KEPT + 1 if wide else 0)
            found += numeric
            exact &= bool(kept)
    found += [(column, code) for column, code, _ in by_level]
    if wide and len({column.feature for column, _ in found}) > 1:
        found = [part for column, code in found for part in parts_of(column, code)]
    elif wide and not exact:
        j = found[0][0].feature
        found, exact = numeric_columns(j, X[:, j], len(X) + 2, low[j], high[j])
    n_bins = np.array([len(column.thresholds) + 1 for column, _ in found], dtype=np.int64)
    codes = np.empty((len(found), len(X)), dtype=code_type(n_bins.max(initial=1)))
    for row, (_, code) in zip(codes, found, strict=True):
        row[:] = code
    split_columns = tuple(column for column, _ in found)
    return BinnedData(
        codes, n_bins, split_columns, tuple(features), exact and not partly, tuple(partly), implied, not exact,
        tuple(levels for _, _, levels in by_level),
    )  # fmt: skip


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


def numeric_columns(
    j: int, x: np.ndarray, max_bins: int, low: float, high: float, most_kept: int = 0
) -> tuple[list, bool]:
    """Split columns and codes of one numeric feature, and whether every threshold was kept.

    ``low`` and ``high`` are NaN where values are missing. A feature keeps all its thresholds where that makes at most
    ``max_bins`` codes, or ``most_kept``; otherwise ``max_bins`` codes are left.
    """
    gaps = bool(np.isnan(low))
    missing, present = np.isnan(x) if gaps else np.zeros(len(x), dtype=bool), x
    if gaps:
        present = x[~missing]
        low, high = present.min(initial=np.inf), present.max(initial=-np.inf)
    values, codes = _distinct(present, low, high)
    thresholds = midpoints(values)
    exact = len(thresholds) < max(max_bins, most_kept) - gaps
    if not exact:  # otherwise every value has a code of its own
        thresholds = _thin(thresholds, present, max_bins - gaps)
        codes = np.searchsorted(thresholds, values, side="left")[codes]
    return numeric_split_columns(j, thresholds, codes, missing), exact


def _distinct(x: np.ndarray, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """Sorted distinct values, and the place of every number among them; whole steps in a small range are counted.

    ``low`` and ``high`` are the least and the largest number, infinity and its negative if there is none.
    """
    if len(x) and high / 2 - low / 2 <= min(2 * len(x), MOST_STEPS / 2):  # the difference of large values may overflow
        places, codes = np.empty(int(high - low) + 1, np.int32), np.empty(len(x), np.int32)
        if code_steps(np.require(x, requirements=["C", "A", "W"]), low, places, codes) >= 0:  # as kernels take arrays
            return low + np.flatnonzero(places >= 0), codes
    order = np.argsort(x)
    ascending = x[order]
    new = np.concatenate([[True], ascending[1:] != ascending[:-1]])[: len(x)]
    place = np.empty(len(x), dtype=np.int64)
    place[order] = np.cumsum(new) - 1
    return ascending[new], place


def _thin(thresholds: np.ndarray, x: np.ndarray, max_bins: int) -> np.ndarray:
    """At most ``max_bins - 1`` of the thresholds, near quantiles of ``x``."""
    at = np.searchsorted(thresholds, np.sort(x)[quantile_ranks(len(x), max_bins)], side="left")
    return thresholds[np.unique(at[at < len(thresholds)])]
