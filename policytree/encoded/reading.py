"""Columns of Arrow tables as plain arrays: numbers, categories, labels, rewards, weights; or one sentence why not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from policytree.common.validation import WEIGHT_RANGE
from policytree.data.feature_encoder import refuse_large_integers
from policytree.data.features import CATEGORICAL, Feature
from policytree.encoded.sources import NUMBER, arrow, kind_of
from policytree.exceptions import InputError, quoted

MOST_CLASSES = 1000


@dataclass(frozen=True, slots=True)
class Roles:
    """What the columns of a source are for.

    Attributes
    ----------
    X : tuple of str
        What trees may split on.
    rewards : tuple of str
        One column per treatment; empty if there are labels.
    y : str or None
        Labels.
    weights : str or None
    """

    X: tuple[str, ...]
    rewards: tuple[str, ...] = ()
    y: str | None = None
    weights: str | None = None

    def by_argument(self) -> dict[str, list[str]]:
        """The columns that each argument names."""
        return {
            "X": list(self.X),
            "rewards": list(self.rewards),
            "y": [] if self.y is None else [self.y],
            "weights": [] if self.weights is None else [self.weights],
        }

    @property
    def columns(self) -> list[str]:
        """All of them, each once."""
        return list(dict.fromkeys(name for names in self.by_argument().values() for name in names))


def check_column_names(columns: Any, argument: str, *, empty: bool = False) -> None:
    """Refuse what is no list of names of columns, each once; ``empty``: whether it may name none."""
    named = isinstance(columns, Sequence) and not isinstance(columns, str) and all(isinstance(c, str) for c in columns)
    if not named or not (columns or empty):
        raise InputError(f"{argument} must be a list of column names; got {quoted(columns)}.")
    if len(set(columns)) < len(columns):
        raise InputError(f"{argument} names a column twice; name each once.")


def check_column_name(column: Any, argument: str, *, none: bool = True) -> None:
    """Refuse what is no name of a column; ``none``: whether None is one."""
    if not isinstance(column, str) and not (none and column is None):
        raise InputError(f"{argument} must be the name of a column; got {quoted(column)}.")


def numbers(column: Any) -> np.ndarray:
    """A column as float64, missing values as NaN."""
    pa = arrow()
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    return column.cast(pa.float64(), safe=False).to_numpy()


def covariate(table: Any, name: str) -> np.ndarray:
    """A numeric column of X as float64, missing values as NaN; refuses infinite ones."""
    column = table.column(name)
    if arrow().types.is_integer(column.type):
        extremes = arrow().compute.min_max(column).as_py()
        refuse_large_integers(extremes["min"], extremes["max"], name, "X")
    x = numbers(column)
    if np.isinf(x).any():
        raise InputError(f"Column {name!r} of X holds infinite values; replace them by numbers or by missing values.")
    return x


def encoded_covariate(table: Any, feature: Feature) -> np.ndarray:
    """A column of X as float64: numbers, or positions of categories; NaN where missing."""
    if feature.kind != CATEGORICAL:
        return covariate(table, feature.name)
    return positions(table.column(feature.name), list(feature.categories))


def positions(column: Any, values: list) -> np.ndarray:
    """The place of every value among these, as float64; NaN for others and for missing ones."""
    pa = arrow()
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    found = pa.array(values)
    if pa.types.is_integer(column.type) and pa.types.is_integer(found.type):
        shared = pa.uint64() if pa.types.is_uint64(column.type) else pa.int64()
    else:  # other parts may hold numbers of another type, which the type of this one would cut off
        shared = pa.float64() if kind_of(column.type) == NUMBER else column.type
    column, found = column.cast(shared, safe=False), found.cast(shared, safe=False)
    return numbers(pa.compute.index_in(column, value_set=found))


def value_counts(column: Any) -> dict:
    """How often each value occurs; missing ones are left out."""
    pa = arrow()
    if pa.types.is_null(column.type):
        return {}
    found = pa.compute.value_counts(column)
    pairs = zip(found.field("values").to_pylist(), found.field("counts").to_pylist(), strict=True)
    return {value: count for value, count in pairs if value is not None and value == value}


def row_weights(table: Any, roles: Roles, first_row: int) -> np.ndarray | None:
    """Weights of the rows, >= 0; None if there are none."""
    if roles.weights is None:
        return None
    w = numbers(table.column(roles.weights))
    bad = np.flatnonzero(~np.isfinite(w) | (w < 0))
    if len(bad):
        what = "a negative value" if np.isfinite(w[bad[0]]) else "a missing or infinite value"
        raise InputError(
            f"Column {roles.weights!r} of weights has {what} in row {first_row + bad[0]}; weights must be numbers >= 0."
        )
    return w


def check_weights(largest: float) -> None:
    """Refuse weights that are all zero, or so large or small that nothing can be computed with them."""
    if largest == 0:
        raise InputError("weights are zero in all rows; give at least some rows weight.")
    if not WEIGHT_RANGE[0] <= largest <= WEIGHT_RANGE[1]:
        raise InputError(
            f"weights have a largest value of {largest:g}, beyond what can be computed with; multiply all weights by a "
            "constant, which changes no tree."
        )


def reward_columns(table: Any, roles: Roles, first_row: int) -> np.ndarray:
    """Rewards (K, m) of the rows, finite."""
    out = np.empty((len(roles.rewards), table.num_rows))
    for row, name in zip(out, roles.rewards, strict=True):
        row[:] = numbers(table.column(name))
        bad = np.flatnonzero(~np.isfinite(row))
        if len(bad):
            raise InputError(
                f"Column {name!r} of rewards contains NaN or infinity, first in row {first_row + bad[0]}; drop or mend "
                "those rows."
            )
    return out


def label_counts(table: Any, roles: Roles) -> dict:
    """How often each label occurs; refuses missing ones and numbers that are none."""
    column = table.column(roles.y)
    counts = value_counts(column)
    if sum(counts.values()) < len(column):
        raise InputError("Input y contains NaN or infinity; drop the rows without a class.")
    if any(isinstance(v, float) and not v.is_integer() for v in counts):
        raise InputError(f"Column {roles.y!r} of y holds numbers with fractions, which are no classes; give labels.")
    if len(counts) > MOST_CLASSES:
        raise InputError(f"Column {roles.y!r} of y holds more than {MOST_CLASSES:,} classes; is it the right column?")
    return counts
