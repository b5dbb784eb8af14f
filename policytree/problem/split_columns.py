"""The columns of codes that a feature becomes, one for each way to split it (``types.SplitColumn``)."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np

from policytree.data.features import MOST_GROUPED, level_threshold
from policytree.problem.types import BinnedData, Levels, SplitColumn

MAX_BINS = 65_536  # of codes of two bytes, which nearly all searches take
LEVELS, GROUPS = "levels", "groups"  # how categories are split
LEVELS_TO_GROUP = 4  # of fewer levels, one against the rest is every grouping
MOST_ENUMERATED = 8  # levels, missing values among them, of which every grouping becomes a column: 127


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


def parts_of(column: SplitColumn, codes: np.ndarray, most_bins: int = MAX_BINS) -> list:
    """Columns of at most ``most_bins`` codes that together have the cuts of one column, each with its rows' codes.

    A part has some neighbouring cuts. Rows before its first cut share its first code, rows behind its last cut its last
    code, so that ``codes <= b`` divides the rows as the cut does in the whole column.
    """
    cuts = len(column.thresholds)
    if cuts < most_bins:
        return [(column, codes)]
    ends = np.linspace(0, cuts, -(-cuts // (most_bins - 1)) + 1).astype(np.int64)
    return [
        (
            replace(column, thresholds=column.thresholds[first:end]),
            np.clip(codes - first, 0, end - first).astype(np.uint16),
        )
        for first, end in pairwise(ends)
    ]


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


def grouped_split_columns(
    j: int,
    x: np.ndarray,
    losses: np.ndarray | None,
    min_leaf: int,
    last: bool,
    arms: np.ndarray | None = None,
    min_leaf_per_arm: int = 0,
) -> tuple[list, bool, int]:
    """Columns of groupings: two-way divisions of a feature's levels, missing values being a level of their own.

    Up to ``MOST_ENUMERATED`` levels, each of the ``2**(L - 1) - 1`` groupings is a column, so that trees of any depth
    and any number of actions choose from all of them. Of more levels, the
    columns are one level against the rest, and the best groupings of pairs of actions for all rows.
    ``benchmarks/category_groups.py`` measures what that takes beside numbers in order; for two actions at depth two,
    :func:`level_column` takes next to nothing more.

    Parameters
    ----------
    j : int
        Position of the feature.
    x : ndarray of shape (n,), float64
        Positions of categories, below ``MOST_GROUPED`` to be grouped; NaN where missing.
    losses : ndarray of shape (n, K), float64, or None
        Weighted losses; None: unknown.
    min_leaf : int
        Smallest number of rows in a leaf.
    last : bool
        Whether the tree has one split at most, nothing is asked of its leaves but their size, and the objective is
        the sum of losses and a price for each leaf. The best groupings of pairs of actions then suffice: a tree with
        any other grouping is matched by one of them.
    arms : ndarray of shape (n,), int, or None
        The arm of every row, which ``min_leaf_per_arm`` needs.
    min_leaf_per_arm : int
        Smallest number of rows of every arm in a leaf. Where the best grouping by sign keeps to it, nothing is lost;
        otherwise the columns prove nothing.

    Returns
    -------
    columns : list of (SplitColumn, codes)
    whole : bool
        Whether no grouping is better than all columns.
    n_groupings : int
        How many groupings the columns stand for.
    """
    levels, level = levels_of(x)
    L = levels.n_levels
    if L < 2:
        return [], True, 0
    can_group = _can_group(levels)
    few = L <= MOST_ENUMERATED and (can_group or L < LEVELS_TO_GROUP)
    pairs: list = []
    if losses is not None and can_group and (last or not few):
        sums = np.stack([np.bincount(level, weights=loss, minlength=L) for loss in losses.T], axis=1)
        sizes, per_arm = np.bincount(level, minlength=L), np.zeros((L, 1), dtype=np.int64)
        if arms is not None and min_leaf_per_arm:
            per_arm = np.stack([np.bincount(level[arms == k], minlength=L) for k in range(sums.shape[1])], axis=1)
        for a, b in combinations(range(sums.shape[1]), 2):
            side = best_grouping(sums[:, a], sums[:, b], sizes, min_leaf)
            if side is not None:
                pairs.append(_grouping(j, side, levels, level))
                smallest = min(int(per_arm[part].sum(axis=0).min()) for part in (side, ~side))
                last &= not per_arm.any() or smallest >= min_leaf_per_arm
        if last:
            return _different(pairs), True, 2 ** (L - 1) - 1
    if few:
        found = [_grouping(j, side, levels, level) for side in _every_side(L)]
        return found, True, len(found)
    found = _different(categorical_split_columns(j, x) + pairs)
    return found, False, len(found)


def levels_of(x: np.ndarray) -> tuple[Levels, np.ndarray]:
    """The levels of a categorical feature, and the level of every row: its category's place, the last if missing."""
    missing = np.isnan(x)
    at = np.where(missing, 0, x).astype(np.intp)
    values = np.flatnonzero(np.bincount(at[~missing]))
    place = np.zeros(int(at.max(initial=0)) + 1, dtype=np.int64)
    place[values] = np.arange(len(values))
    level = place[at]
    level[missing] = len(values)
    return Levels(values.astype(np.float64), bool(missing.any())), level


def _can_group(levels: Levels) -> bool:
    """Whether thresholds can stand for all groups of the levels."""
    return bool(len(levels.values)) and int(levels.values[-1]) < MOST_GROUPED


def level_column(j: int, x: np.ndarray) -> tuple[SplitColumn, np.ndarray, Levels] | None:
    """One column for all groupings of a feature: a code for every level. None if there are too few or too many.

    Its cuts are the first levels against the others.
    """
    levels, level = levels_of(x)
    L = levels.n_levels
    if not 3 <= L <= MOST_ENUMERATED or not _can_group(levels):
        return None
    firsts = [level_threshold(levels.values[:k].astype(np.int64).tolist()) for k in range(1, L)]
    return SplitColumn(j, np.array(firsts)), level, levels


def with_groupings(data: BinnedData, sides: list[list[np.ndarray]]) -> BinnedData:
    """The same rows, where each column of levels is replaced by a column for each of these groupings, in order.

    ``sides``: for every column of levels some masks (L,), the levels on one side.
    """
    first = data.n_ordered
    each = [
        _grouping(column.feature, side, levels, level)
        for column, levels, level, wanted in zip(
            data.columns[first:], data.levels, data.codes[first:], sides, strict=True
        )
        for side in wanted
    ]
    codes = np.empty((first + len(each), data.n_rows), data.codes.dtype)
    codes[:first] = data.codes[:first]
    for row, (_, code) in zip(codes[first:], each, strict=True):
        row[:] = code
    n_bins = np.concatenate([data.n_bins[:first], np.full(len(each), 2, dtype=np.int64)])
    columns = (*data.columns[:first], *(column for column, _ in each))
    implied = data.implied + int((data.n_bins[first:] - 1).sum()) - len(each)
    return replace(data, codes=codes, n_bins=n_bins, columns=columns, implied=implied, levels=())


def with_every_grouping(data: BinnedData) -> BinnedData:
    """The same rows and splits without columns of levels: a column for every grouping of these."""
    return with_groupings(data, [list(_every_side(levels.n_levels)) for levels in data.levels]) if data.levels else data


def _every_side(L: int) -> np.ndarray:
    """One side of every grouping of L levels, (groupings, L).

    The last level is never on that side: a grouping and its complement are one question.
    """
    return (np.arange(1, 2 ** (L - 1))[:, None] >> np.arange(L) & 1).astype(bool)


def _different(columns: list) -> list:
    """The columns without those that ask what an earlier one asks."""
    return list({(c.thresholds[0], c.missing_left): (c, code) for c, code in reversed(columns)}.values())[::-1]


def best_grouping(one: np.ndarray, other: np.ndarray, sizes: np.ndarray, min_leaf: int = 1) -> np.ndarray | None:
    """The levels that get the first of two actions in the split that loses least; None if no division is needed.

    A split whose sides are leaves with the actions a and b loses the sum, over levels l, of A_l (the level's summed
    weighted loss under a) for those on one side and of B_l for the others. Each level's term depends on its own side
    only, so the sum is at least that of min(A_l, B_l), and the grouping by the sign of A_l - B_l attains it. Two
    consequences follow; the second is the classical one:

    - For K actions, the K (K - 1) / 2 groupings by sign hold a best last split: no enumeration is needed.
    - Sorted by the level's mean difference (A_l - B_l) / w_l, with any positive weights w_l, the best grouping is a
      prefix (Fisher 1958; Breiman et al. 1984, for concave impurities).

    If all levels have one sign, one action for everybody loses no more, and no split is needed. Where the grouping by
    sign leaves fewer than ``min_leaf`` rows on a side, the best grouping need not be a prefix of any order of means: it
    is found by dynamic programming over numbers of rows on one side, one level at a time.

    Neither argument holds above the last split, where the sides are trees. Let two levels gain by the second action
    where x = 1 (by 3 and by 2) and lose where x = 0 (2 and 3), and two others the other way round (lose 1.9 and 2.1
    where x = 1, gain 2.1 and 1.9 where x = 0). The best tree of depth two divides these pairs first, and its gain is
    what all cells gain; by mean gain the levels stand as -.5, -.1, .1 and .5, so that no prefix is that division
    (``tests/solvers/test_groups.py::test_above_the_last_split_no_prefix_is_best``). Nor do they hold where leaves
    need rows of every arm or a limit binds the leaves together. Sums that are no integers are rounded: the grouping is
    then best up to rounding.

    Parameters
    ----------
    one, other : ndarray of shape (L,)
        Summed losses of the levels under the two actions.
    sizes : ndarray of shape (L,), int
        Rows of the levels.
    min_leaf : int

    Returns
    -------
    ndarray of shape (L,), bool, or None
        Levels on the side of the first action.
    """
    side = one < other
    if side.all() or not side.any():
        return None
    n = int(sizes.sum())
    if min_leaf <= sizes[side].sum() <= n - min_leaf:
        return side
    if n < 2 * min_leaf:
        return None
    # best[c]: the least loss of the levels so far with c rows on the side of the first action.
    best = np.full(n + 1, np.inf)
    best[0] = 0.0
    first = np.zeros((len(sizes), n + 1), dtype=bool)
    for k, size in enumerate(sizes.tolist()):
        with_it = np.full(n + 1, np.inf)
        with_it[size:] = best[: n + 1 - size] + one[k]
        best = best + other[k]
        first[k] = with_it < best
        best = np.minimum(best, with_it)
    rows = min_leaf + int(np.argmin(best[min_leaf : n - min_leaf + 1]))
    if not np.isfinite(best[rows]):
        return None
    side = np.zeros(len(sizes), dtype=bool)
    for k in range(len(sizes) - 1, -1, -1):
        side[k] = first[k, rows]
        rows -= int(sizes[k]) if side[k] else 0
    return side


def _grouping(j: int, side: np.ndarray, levels: Levels, level: np.ndarray) -> tuple:
    """The column of one grouping: the side with fewer categories is named and coded 0, of equal ones the first.

    Categories without rows, and those not seen at fit, are with the side that is not named.
    """
    values, gaps = levels.values, levels.missing
    n = len(values)
    named = int(side[:n].sum())
    if 2 * named > n or (2 * named == n and n and not side[0]):
        side, named = ~side, n - named
    if gaps and not named and not side[n]:
        side = ~side
    threshold = level_threshold(values[side[:n]].astype(np.int64).tolist())
    return SplitColumn(j, np.array([threshold]), bool(gaps and side[n])), (~side[level]).astype(np.int64)


def midpoints(values: np.ndarray) -> np.ndarray:
    """Thresholds between sorted distinct values, ``a <= threshold < b`` also for neighbouring floats."""
    low, high = values[:-1], values[1:]
    middle = low / 2 + high / 2  # halves first: the sum of two large values may overflow
    return np.where((middle < high) & (middle >= low), middle, low)
