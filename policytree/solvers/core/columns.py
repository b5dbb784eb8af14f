"""Fewer rows or fewer cuts of binned data; splits of such data as cuts of the original columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

import numpy as np

from policytree.exceptions import InputError
from policytree.problem.split_columns import MAX_BINS
from policytree.problem.types import BinnedData, Problem
from policytree.solvers.core.compilation import GAPS, load_kernels, width_of
from policytree.solvers.kernels.base.binning import all_codes_occur
from policytree.trees.tree import Tree


class Coded(Protocol):
    """Rows of codes, one line of codes for every column."""

    @property
    def codes(self) -> np.ndarray:
        """Shape (p, n)."""

    @property
    def n_rows(self) -> int:
        """How many rows there are."""


def short_codes(data: BinnedData) -> np.ndarray:
    """Codes of two bytes, as kernels take them.

    Raises
    ------
    InputError
        If the data's one feature has more values than that.
    """
    if data.codes.dtype.itemsize > 2:
        name, most = data.features[data.columns[0].feature].name, int(data.n_bins.max())
        raise InputError(
            f"Column {name!r} has {most:,} different values (missing is one), more than the {MAX_BINS:,} that this "
            f"search takes; set max_bins={MAX_BINS}, or less."
        )
    return np.require(data.codes, np.uint16, ["C", "W"])


def keep_cuts(data: BinnedData, cuts: list[np.ndarray], *, exact: bool) -> BinnedData:
    """The same rows with fewer cuts; columns without a cut are left out.

    Parameters
    ----------
    data : BinnedData
    cuts : list of ndarray
        For every column the cuts (0 .. n_bins - 2, sorted) to keep.
    exact : bool
        Whether the rows are told apart as well as before.
    """
    kept = [j for j, c in enumerate(cuts) if len(c)]
    codes = np.empty((len(kept), data.n_rows), dtype=data.codes.dtype)
    for row, j in zip(codes, kept, strict=True):
        row[:] = np.searchsorted(cuts[j], np.arange(data.n_bins[j]), side="left")[data.codes[j]]
    columns = tuple(replace(data.columns[j], thresholds=data.columns[j].thresholds[cuts[j]]) for j in kept)
    n_bins = np.array([len(cuts[j]) + 1 for j in kept], dtype=np.int64)
    return replace(data, codes=codes, n_bins=n_bins, columns=columns, exact=data.exact and exact)


def single_cuts(data: BinnedData) -> BinnedData:
    """The same rows and cuts, every cut as a column of two values."""
    columns = [replace(c, thresholds=c.thresholds[b : b + 1]) for c in data.columns for b in range(len(c.thresholds))]
    cuts = [(row, b) for row, bins in zip(data.codes, data.n_bins, strict=True) for b in range(bins - 1)]
    codes = np.empty((len(columns), data.n_rows), dtype=data.codes.dtype)
    for to, (row, b) in zip(codes, cuts, strict=True):
        to[:] = row > b
    return replace(data, codes=codes, n_bins=np.full(len(columns), 2, dtype=np.int64), columns=tuple(columns))


def keep_rows(data: BinnedData, rows: np.ndarray) -> BinnedData:
    """Some rows of the data, with those cuts that still tell rows apart.

    Of cuts that the remaining rows cannot tell apart, the middle one is kept; but "missing against the rest" (threshold
    infinity) for rows with and without a value, from which alone one sees where missing values go.
    """
    part = replace(data, codes=np.ascontiguousarray(data.codes[:, rows]))
    cuts = []
    for codes, column in zip(part.codes, data.columns, strict=True):
        present = np.unique(codes).astype(np.int64)
        kept = (present[:-1] + present[1:] - 1) // 2
        last = len(column.thresholds)
        if len(kept) and present[-1] == last and np.isposinf(column.thresholds[-1]):
            kept[-1] = last - 1
        cuts.append(kept)
    return keep_cuts(part, cuts, exact=True)


def without_gaps(problem: Problem) -> Problem:
    """The same problem, where every code of every column occurs; the problem itself, unless its codes have gaps.

    Kernels rely on it (``kernels/base/layout.py::Rows``). A cut at a code that no row has divides the rows as another
    cut does, or not at all, so that no tree is lost.
    """
    data = problem.data
    kind = width_of(problem)
    load_kernels([(GAPS, kind)])
    if all_codes_occur(np.require(data.codes, kind, ["C", "W"]), np.require(data.n_bins, np.int64, ["C", "W"])):
        return problem
    return replace(problem, data=keep_rows(data, np.arange(data.n_rows)))


def coarser(data: BinnedData, most: int) -> tuple[BinnedData, list[tuple[int, np.ndarray]]]:
    """The same rows with at most so many cuts of every column, near its quantiles.

    Returns
    -------
    data : BinnedData
    kept : list of (int, ndarray)
        For every column of the new data: which it was, and which of its cuts were kept.
    """
    cuts = [cuts_near_quantiles(codes, bins, most) for codes, bins in zip(data.codes, data.n_bins, strict=True)]
    return keep_cuts(data, cuts, exact=False), [(j, chosen) for j, chosen in enumerate(cuts) if len(chosen)]


def cuts_near_quantiles(codes: np.ndarray, bins: int, most: int) -> np.ndarray:
    """At most so many of the cuts of one column, near quantiles of its rows; ascending."""
    chosen = np.arange(bins - 1)
    if len(chosen) > most:
        rows = np.cumsum(np.bincount(codes, minlength=bins))
        chosen = np.unique(np.searchsorted(rows, np.arange(1, most + 1) * (rows[-1] / (most + 1))))
        chosen = chosen[chosen < bins - 1]
    return chosen


def rows_of_splits(data: Coded, splits: list[tuple[int, int]]) -> Iterator[np.ndarray]:
    """Rows that reach every node of a tree given by ``(column, cut)`` in preorder, column -1 for a leaf."""
    stack = [np.arange(data.n_rows)]
    for column, cut in splits:
        rows = stack.pop()
        if column >= 0:
            left = np.take(data.codes[column], rows) <= cut
            stack += [np.take(rows, np.flatnonzero(~left)), np.take(rows, np.flatnonzero(left))]
        yield rows


def equal_rows(data: BinnedData) -> tuple[np.ndarray, np.ndarray]:
    """Groups of rows that no split can tell apart.

    Returns
    -------
    first : ndarray of shape (n_groups,), int64
        A row of every group.
    group : ndarray of shape (n,), int64
        The group of every row.
    """
    if not len(data.codes):
        return np.zeros(1, dtype=np.int64), np.zeros(data.n_rows, dtype=np.int64)
    rows = np.ascontiguousarray(data.codes.T)
    keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()  # compared as plain memory
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    return first.astype(np.int64), group.reshape(-1).astype(np.int64)


def group_sums(values: np.ndarray, group: np.ndarray, n_groups: int) -> np.ndarray:
    """Sums of the rows of ``values`` (n, K) over groups; shape (n_groups, K)."""
    return np.stack([np.bincount(group, weights=column, minlength=n_groups) for column in values.T], axis=1)


def preorder_splits(tree: Tree, data: BinnedData) -> list[tuple[int, int]]:
    """``(column, cut)`` of every node in preorder, ``(-1, 0)`` for leaves, in the columns of ``data``.

    Raises
    ------
    InputError
        If a threshold of the tree is no cut of the data.
    """
    splits = []
    for node in range(tree.node_count):
        if tree.is_leaf[node]:
            splits.append((-1, 0))
        else:
            f, threshold, left = tree.feature[node], tree.threshold[node], bool(tree.missing_go_to_left[node])
            splits.append(_find_cut(data, int(f), float(threshold), left))
    return splits


def _find_cut(data: BinnedData, feature: int, threshold: float, missing_left: bool) -> tuple[int, int]:
    """Where no row of the data misses the feature, the side of missing values is free."""
    found = []
    for j, column in enumerate(data.columns):
        if column.feature == feature:
            hits = np.flatnonzero(column.thresholds == threshold)
            found += [(column.missing_left != missing_left, j, int(b)) for b in hits[:1]]
    if not found:
        raise InputError(f"The tree splits feature {feature} at {threshold}, which is no threshold of the data.")
    return min(found)[1:]


def columns_of(sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Feature and cut of every column, if features have so many."""
    return np.repeat(np.arange(len(sizes)), sizes), np.concatenate([np.arange(0), *map(np.arange, sizes)])
