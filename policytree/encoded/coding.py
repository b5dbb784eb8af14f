"""Codes of a column's values, and their meaning."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policytree.data.feature_encoder import in_order
from policytree.data.features import CATEGORICAL, Feature
from policytree.encoded.tally import CategoryTally
from policytree.problem.split_columns import categorical_split_columns, midpoints, numeric_split_columns
from policytree.solvers.core.coded_features import CodedFeature


@dataclass(frozen=True, slots=True)
class Coding:
    """How a feature's numbers (float64, NaN: missing) become codes.

    Attributes
    ----------
    feature : int
        Its place in the table.
    n_values : int
        Codes of values: bins, or categories. Missing values have the next one.
    has_missing : bool
        Whether rows miss it.
    cut_values : ndarray of shape (n_values - 1,) or None
        Numeric: the largest value of every code but the last.
    present : ndarray or None
        Categorical: positions of the categories that rows have.
    """

    feature: int
    n_values: int
    has_missing: bool
    cut_values: np.ndarray | None = None
    present: np.ndarray | None = None

    @property
    def n_codes(self) -> int:
        """Codes in use."""
        return self.n_values + self.has_missing

    def codes(self, x: np.ndarray, dtype: type | np.dtype) -> np.ndarray:
        """Codes of numbers; shape (m,)."""
        gaps = np.isnan(x)
        if self.cut_values is not None:
            out = np.searchsorted(self.cut_values, x, side="left").astype(dtype)
        else:
            out = np.where(gaps, 0.0, x).astype(dtype)
        if self.has_missing:
            out[gaps] = self.n_values
        return out

    def least(self, x: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """The smallest value of every code, infinity where there is none; empty for categories."""
        if self.cut_values is None:
            return np.empty(0)
        out = np.full(self.n_codes, np.inf)
        order = np.argsort(codes, kind="stable")  # of bytes: a counting sort
        begins = np.searchsorted(codes[order], np.arange(self.n_codes))
        some = np.flatnonzero(np.diff(np.append(begins, len(codes))))
        if len(some):
            out[some] = np.minimum.reduceat(x[order], begins[some])
        return out[: self.n_values]

    def coded_feature(self, least: np.ndarray) -> CodedFeature:
        """Its cuts, given the smallest value of every code."""
        gaps = [True] if self.has_missing else []
        missing = np.array([False] * self.n_values + gaps, dtype=bool)
        if self.cut_values is not None:
            thresholds = midpoints_between(self.cut_values, least[1:])
            found = numeric_split_columns(self.feature, thresholds, np.arange(self.n_values), missing)
            codes = np.array([c for _, c in found])
        else:
            assert self.present is not None
            x = np.append(self.present.astype(np.float64), [np.nan] * self.has_missing)
            found = categorical_split_columns(self.feature, x)
            codes = np.ones((len(found), self.n_codes), dtype=np.int64)  # categories without a row go with the rest
            codes[:, np.append(self.present, [self.n_values] * self.has_missing).astype(np.int64)] = [
                c for _, c in found
            ]
        columns = tuple(column for column, _ in found)
        last = self.n_values if self.has_missing else -1
        return CodedFeature(self.feature, self.n_codes, columns, codes, self.cut_values is not None, last)


def midpoints_between(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Thresholds between the largest value of a code and the smallest of the next, as in memory."""
    return np.array([midpoints(np.array(pair))[0] for pair in zip(low, high, strict=True)], dtype=np.float64)


def category_coding(j: int, feature: Feature, tally: CategoryTally) -> Coding | None:
    """The coding of a categorical feature; None if it has no cut."""
    present = np.array([k for k, value in enumerate(feature.categories) if tally.counts[value]], dtype=np.int64)
    if len(present) + bool(tally.missing) < 2:
        return None
    return Coding(j, len(feature.categories), tally.missing > 0, present=present)


def number_coding(j: int, cut_values: np.ndarray, present: int, missing: int) -> Coding | None:
    """The coding of a numeric feature; None if it has no cut."""
    if present == 0 or (len(cut_values) == 0 and missing == 0):
        return None
    return Coding(j, len(cut_values) + 1, missing > 0, cut_values=cut_values)


def category_feature(name: str, tally: CategoryTally) -> Feature:
    """The feature of a column of categories, as :class:`policytree.data.feature_encoder.FeatureEncoder` makes it."""
    return Feature(name, CATEGORICAL, in_order(tally.counts), tally.any_missing)
