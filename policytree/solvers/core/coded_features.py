"""Features with one code per value, and the cuts between codes: for sums by code instead of rows.

In memory a feature with missing values, or of categories, is several columns of codes, one for each way to split it
(:class:`policytree.problem.types.SplitColumn`). Sums over rows need one code a feature only: what lies left of a cut of
a column is a sum over its codes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policytree.problem.types import SplitColumn


@dataclass(frozen=True, slots=True)
class CodedFeature:
    """A feature with at least one cut.

    Attributes
    ----------
    feature : int
        Its place in the user's table.
    n_codes : int
        Values, categories or bins; missing values have a code of their own, the last one.
    columns : tuple of SplitColumn
        The ways to split it, as in memory.
    codes_of_columns : ndarray of shape (n_columns, n_codes), int64
        The code in each column of every code here.
    ordered : bool
        Whether cuts are between neighbouring codes; otherwise they split off one code.
    missing : int
        The code of missing values; -1 if there are none.
    """

    feature: int
    n_codes: int
    columns: tuple[SplitColumn, ...]
    codes_of_columns: np.ndarray
    ordered: bool
    missing: int

    @property
    def cuts(self) -> list[tuple[int, int]]:
        """``(column, cut)`` of every cut, in the order of columns."""
        return [(k, b) for k, column in enumerate(self.columns) for b in range(len(column.thresholds))]

    def goes_left(self) -> np.ndarray:
        """Mark the codes that go left at every cut; shape (n_cuts, n_codes), bool."""
        return np.array([self.codes_of_columns[k] <= b for k, b in self.cuts], dtype=bool)

    def at_cuts(self, table: np.ndarray, axis: int) -> np.ndarray:
        """Sums left of every cut from sums by code, along one axis of a table; int64."""
        left = self.goes_left()
        missing = left[:, self.missing] if self.missing >= 0 else np.zeros(len(left), dtype=bool)
        table = np.moveaxis(table, axis, 0)
        if self.ordered:
            values = self.n_codes - (self.missing >= 0)
            out = np.cumsum(table[:values], axis=0)[left[:, :values].sum(axis=1) - 1]
        else:
            first = left.argmax(axis=1)
            out = table[first]
            missing = missing & (first != self.missing)
        out[missing] += table[self.missing]
        return np.moveaxis(out, 0, axis)
