"""From the user's table in memory to numbers: names, kinds and categories of columns, missing values.

Rows that are larger than memory have a reader of their own, ``encoded/``, which dask's workers share. A table in memory
is no third source of it: its steps need pyarrow, which is an extra, and take 30 times as long for 20 columns of 100,000
numbers (.24 s of processor, .008 here): they count values, find quantiles and write codes, where a table in memory
keeps its numbers as they are.
"""

from __future__ import annotations

import decimal
import numbers
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from policytree.data.features import CATEGORICAL, Feature
from policytree.exceptions import InputError

LARGEST_INTEGER = 2**53  # beyond, neighbouring integers are one float64


def first_repeated(names: Iterable[str]) -> str | None:
    """A name that stands more than once among some, the first in alphabetical order; None if all are different."""
    return min((name for name, times in Counter(names).items() if times > 1), default=None)


def collected(X):
    """A lazy frame as one in memory, what narwhals wraps unwrapped, a batch of Arrow as a table; all else as it is."""
    X = nw.to_native(X, pass_through=True)
    if nw.dependencies.is_polars_lazyframe(X):
        return X.collect()
    arrow = nw.dependencies.get_pyarrow()  # None unless it was imported
    return arrow.Table.from_batches([X]) if arrow is not None and isinstance(X, arrow.RecordBatch) else X


def _named_frame(X, argument: str = "The table"):
    """A narwhals DataFrame if ``X`` is a frame of a known library, else None; messages call it ``argument``."""
    if type(X) is np.ndarray:
        return None
    X = collected(X)
    if hasattr(X, "columns"):
        _refuse_repeated(X.column_names if nw.dependencies.is_pyarrow_table(X) else X.columns, argument)
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def _refuse_repeated(names: Iterable, argument: str) -> None:
    names = list(names)
    for compared in (map(str, names), names):  # 1 and 1.0 are equal, but not as text
        twice = first_repeated(compared)
        if twice is not None:
            raise InputError(f"{argument} has more than one column {str(twice)!r}; give every column its own name.")


def _named_columns(X, argument: str) -> dict[str, Any] | None:
    """The columns of a frame of a known library by name, None if ``X`` is no frame.

    They are narwhals' Series, but pandas' of pandas: wrapping takes three times as long as a short column itself.
    """
    pandas = nw.dependencies.get_pandas()  # None unless it was imported
    if pandas is not None and isinstance(X, pandas.DataFrame):
        _refuse_repeated(X.columns, argument)
        return {str(name): column for name, column in X.items()}
    frame = _named_frame(X, argument)
    return None if frame is None else {str(name): frame.get_column(name) for name in frame.columns}


def as_pandas(X, argument: str = "The table"):
    """Return the pandas DataFrame of a frame of any known library, None if ``X`` is no frame.

    Messages call it ``argument``.
    """
    frame = _named_frame(X, argument)
    return None if frame is None else frame.to_pandas()


@dataclass(frozen=True, slots=True)
class FeatureEncoder:
    """Turns a table into float64 numbers the way the training table was turned.

    Numbers and booleans stay numbers (missing is NaN); text and categorical columns become the position of the value in
    ``Feature.categories`` (missing, or not seen at fit, is NaN).

    Attributes
    ----------
    features : tuple of Feature
    named : bool
        Whether the training table carried column names, so that new tables are matched by name.
    argument : str
        Name of the table in messages.
    """

    features: tuple[Feature, ...]
    named: bool
    argument: str = "X"

    @classmethod
    def fit(cls, X, *, argument: str = "X") -> FeatureEncoder:
        """Learn names, kinds and categories of the columns of a frame (pandas, polars) or an (n, p) array."""
        return cls._learn(X, argument)[0]

    @classmethod
    def fit_encode(cls, X, *, argument: str = "X") -> tuple[FeatureEncoder, np.ndarray]:
        """:meth:`fit` and :meth:`encode` of the same table, in one pass over its columns."""
        X = collected(X)
        encoder, columns = cls._learn(X, argument)
        if isinstance(columns, np.ndarray):
            if encoder.named:
                encoder._refuse_infinite(columns)
            return encoder, columns
        if columns is None:
            return encoder, encoder.encode(X)
        encoded = np.stack(columns).T if columns else np.empty((len(X), 0))  # read column by column from here on
        encoder._refuse_infinite(encoded)
        return encoder, encoded

    @classmethod
    def _learn(cls, X, argument: str) -> tuple[FeatureEncoder, list[np.ndarray] | np.ndarray | None]:
        """The encoder of a table, and the numbers of its columns where it is a frame, or an array of finite ones."""
        X = collected(X)
        whole = _numbers_of_frame(X)
        if whole is not None:
            _refuse_repeated(X.columns, argument)
            gaps = np.isnan(whole).any(axis=0).tolist()
            features = tuple(Feature(str(name), has_missing=gap) for name, gap in zip(X.columns, gaps, strict=True))
            return cls(features, True, argument), whole
        named = _named_columns(X, argument)
        if named is None:
            _refuse_sparse(X, argument)
            array = np.asarray(X)
            if array.ndim != 2:
                raise InputError(f"{argument} must be a table with rows and columns; got {array.ndim} dimension(s).")
            finite = array.dtype.kind == "f" and _all_finite(array)
            gaps = np.isnan(array).any(axis=0) if array.dtype.kind == "f" and not finite else [False] * array.shape[1]
            features = tuple(Feature(f"x{j}", has_missing=bool(gap)) for j, gap in enumerate(gaps))
            return cls(features, False, argument), array if finite and array.dtype == np.float64 else None
        learnt = [_learn_feature(name, column, argument) for name, column in named.items()]
        return cls(tuple(feature for feature, _ in learnt), True, argument), [numbers for _, numbers in learnt]

    def encode(self, X) -> np.ndarray:
        """Numbers of a table, shape (n, p), float64; NaN means missing.

        Raises
        ------
        InputError
            If a column is missing, holds infinite values, or cannot be read as numbers.
        """
        X = collected(X)
        columns = _named_columns(X, self.argument)
        if columns is None or not self.named:
            array = _as_float(X, self.argument) if columns is None else _by_place(columns, self.argument)
            if array.ndim != 2 or array.shape[1] != len(self.features):
                raise InputError(
                    f"{self.argument} must have {len(self.features)} columns, as at fit; got shape {array.shape}."
                )
            self._refuse_infinite(array)
            return array
        lacking = [f.name for f in self.features if f.name not in columns]
        if lacking:
            raise InputError(
                f"{self.argument} lacks the column(s) {', '.join(map(repr, lacking))} that were there at fit; add them."
            )
        out = np.empty((len(X), len(self.features)))
        for j, feature in enumerate(self.features):
            out[:, j] = _encode_column(feature, columns[feature.name], self.argument)
        self._refuse_infinite(out)
        return out

    def values(self, X, j: int) -> list:
        """The values of column ``j`` as the user gave them."""
        columns = _named_columns(X, "The table")
        if columns is None or not self.named:
            return np.asarray(X)[:, j].tolist()
        return columns[self.features[j].name].to_list()

    def encode_part(self, X, needed: np.ndarray) -> np.ndarray | None:
        """As :meth:`encode` of a frame without some of the columns, NaN there; None of any other table.

        Parameters
        ----------
        X : table of shape (n, q)
            Its columns must stand in the order of the training table, as in scikit-learn.
        needed : ndarray of positions in ``features``
            Columns that must be there.
        """
        columns = _named_columns(X, self.argument) if self.named else None
        if columns is None or len(columns) >= len(self.features) or not len(X):
            return None
        there = [j for j, feature in enumerate(self.features) if feature.name in columns]
        if [self.features[j].name for j in there] != [*columns] or not {*needed.tolist()} <= {*there}:
            return None
        encoded = np.full((len(X), len(self.features)), np.nan)
        part = FeatureEncoder(tuple(self.features[j] for j in there), True, self.argument)
        encoded[:, there] = part.encode(X)
        return encoded

    def _refuse_infinite(self, X: np.ndarray) -> None:
        if _all_finite(X):
            return
        bad = np.flatnonzero(np.isinf(X).any(axis=0))
        if len(bad):
            raise InputError(
                f"Column {self.features[bad[0]].name!r} of {self.argument} holds infinite values; replace them by "
                "numbers or by missing values."
            )


def _all_finite(X: np.ndarray) -> bool:
    """Whether numbers are surely finite, by their sum: False says nothing where they are large."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(X.sum(dtype=np.float64)))


def _refuse_sparse(X, argument: str) -> None:
    """One sentence for scipy's sparse matrices, which some transformers return."""
    sparse = sys.modules.get("scipy.sparse")  # who has such a matrix has imported it
    if sparse is not None and sparse.issparse(X):
        raise InputError(
            f"{argument} is a sparse matrix, but a dense table is required; pass {argument}.toarray(), or tell its "
            "transformer so, such as OneHotEncoder(sparse_output=False)."
        )


def _by_place(columns: dict[str, Any], argument: str) -> np.ndarray:
    """The numbers of a frame's columns, whatever these are called: for what was fitted on an array."""
    numbers_of = [_encode_column(Feature(name), column, argument) for name, column in columns.items()]
    return np.column_stack(numbers_of) if numbers_of else np.empty((0, 0))


def _as_float(X, argument: str) -> np.ndarray:
    """A float64 array, or one sentence."""
    _refuse_sparse(X, argument)
    if getattr(getattr(X, "dtype", None), "kind", "") == "c":
        raise InputError(f"{argument} holds complex numbers; give real ones.")
    try:
        return np.asarray(X, dtype=np.float64)
    except OverflowError as error:
        raise InputError(f"{argument} holds integers that no floating-point number can be; divide them.") from error
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{argument} holds values that are not numbers; pass a DataFrame, whose text columns are treated as "
            "categories."
        ) from error


def is_missing(value) -> bool:
    """Whether a value of a table's column is none: None, NaN, or pandas' marks."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def object_numbers(values) -> np.ndarray | None:
    """Numbers and booleans that stand in a list, perhaps with gaps (None, NaN), as float64; None if others stand there.

    A table's column of Python objects is what the same column is after a CSV file: numbers, if all are.
    """
    out = np.full(len(values), np.nan)
    for i, value in enumerate(values):
        if isinstance(value, (numbers.Real, decimal.Decimal, np.bool_)):
            out[i] = _as_float64(value)
        elif not is_missing(value):
            return None
    return out


def _as_float64(value) -> float:
    """A number as float64, infinite where it is beyond all of them."""
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf


def _plain_numbers(column) -> np.ndarray | None:
    """A column that is numpy's integers, floats or booleans anyway, as float64; None if it is of another type."""
    return column.to_numpy(dtype=np.float64) if _is_plain(getattr(column, "dtype", None)) else None


def _is_plain(dtype) -> bool:
    """Whether a type is one of numpy's integers, floats or booleans: libraries but pandas have types of their own."""
    return isinstance(dtype, np.dtype) and dtype.kind in "iufb"


def _numbers_of_frame(X) -> np.ndarray | None:
    """A pandas frame whose columns are all plain numbers as float64; None of any other table.

    At once: to take a short column out of a frame takes longer than to read it. Where integers may be too large for
    floats, columns are read one by one, so that the one to refuse is known.
    """
    pandas = nw.dependencies.get_pandas()  # None unless it was imported
    if pandas is None or not isinstance(X, pandas.DataFrame) or not X.shape[1]:
        return None
    types = set(X.dtypes)
    if not all(map(_is_plain, types)):
        return None
    numbers = np.asfortranarray(X.to_numpy(dtype=np.float64, copy=True))  # read column by column from here on
    wide = any(dtype.kind in "iu" and dtype.itemsize == 8 for dtype in types)
    large = wide and ((numbers >= LARGEST_INTEGER).any() or (numbers <= -LARGEST_INTEGER).any())
    return None if large else numbers


def _is_categorical(column) -> bool:
    """Whether a column has pandas' type of categories."""
    pandas = nw.dependencies.get_pandas()  # None unless it was imported
    return pandas is not None and isinstance(getattr(column, "dtype", None), pandas.CategoricalDtype)


def _ends(values) -> tuple[Any, Any]:
    """The smallest and the largest of some integers; None if there are none."""
    values = np.asarray(values)
    return (values.min(), values.max()) if values.size else (None, None)


def refuse_large_integers(smallest, largest, name: str, argument: str) -> None:
    """One sentence where a column's integers (None if it has none) would be rounded to floats."""
    if any(value is not None and abs(int(value)) > LARGEST_INTEGER for value in (smallest, largest)):
        raise InputError(
            f"Column {name!r} of {argument} holds integers beyond 2**53, which floating-point numbers cannot tell "
            "apart; subtract a constant, or turn them into text if they are labels."
        )


def _wrapped(column) -> nw.Series:
    """A column as narwhals' Series."""
    return nw.from_native(column, series_only=True)


def _is_category(column) -> bool:
    if _is_categorical(column):
        return True
    column = _wrapped(column)
    return isinstance(column.dtype, (nw.String, nw.Categorical, nw.Enum, nw.Object)) and not _object_numbers(column)


def _object_numbers(column) -> bool:
    return isinstance(column.dtype, nw.Object) and object_numbers(column.to_list()) is not None


def _factorize(column) -> tuple[np.ndarray, list]:
    """The code of every row, -1 where a value is missing, and the values that codes stand for."""
    import pandas as pd  # a table is here: only now, so that importing an estimator stays quick

    if _is_categorical(column):
        return column.array.codes, column.array.categories.tolist()
    values = np.empty(len(column), dtype=object)
    values[:] = column.to_list()
    codes, distinct = pd.factorize(values)
    return codes, distinct.tolist()


def _learn_feature(name: str, column, argument: str) -> tuple[Feature, np.ndarray]:
    """Tell the kind of a column, and return its numbers."""
    plain = _plain_numbers(column)
    if plain is not None:
        if column.dtype.kind in "iu" and column.dtype.itemsize == 8:
            refuse_large_integers(*_ends(column.to_numpy()), name, argument)
        return Feature(name, has_missing=column.dtype.kind == "f" and bool(np.isnan(plain).any())), plain
    if _is_category(column):
        try:
            codes, distinct = _factorize(column)
            present = [distinct[k] for k in np.unique(codes[codes >= 0])]
            values = {v for v in present if not is_missing(v)}
        except (TypeError, ValueError) as error:
            raise InputError(
                f"Column {name!r} of {argument} holds lists or tables; turn it into numbers or text, or leave it out."
            ) from error
        gaps = bool((codes < 0).any()) or any(map(is_missing, present))
        feature = Feature(name, CATEGORICAL, in_order(values), gaps)
        return feature, _positions(feature, codes, distinct)
    column = _wrapped(column)
    if column.dtype.is_integer():
        present = column.drop_nulls()  # numpy has no integers of 128 bits
        if len(present):
            refuse_large_integers(present.min(), present.max(), name, argument)
    encoded = _encode_column(Feature(name), column, argument)
    if isinstance(column.dtype, nw.Object):
        whole = [value for value in column.to_list() if isinstance(value, numbers.Integral)]
        refuse_large_integers(*_ends(whole), name, argument)
    return Feature(name, has_missing=bool(np.isnan(encoded).any())), encoded


def in_order(values: Iterable) -> tuple:
    """Categories in order; those of several types by type, and as text."""
    try:
        return tuple(sorted(values))
    except TypeError:
        return tuple(sorted(values, key=lambda v: (str(type(v)), str(v))))


def _positions(feature: Feature, codes: np.ndarray, distinct: list) -> np.ndarray:
    """Position of every row's value in the feature's categories; NaN for others."""
    position = {value: float(k) for k, value in enumerate(feature.categories)}
    # A NaN in a text column is a float that equals nothing, so it is "not seen" as well.
    return np.array([*(position.get(v, np.nan) for v in distinct), np.nan])[codes]


def _encode_column(feature: Feature, column, argument: str) -> np.ndarray:
    if feature.kind == CATEGORICAL:
        _refuse_numbers_for_text(feature, column, argument)
        return _positions(feature, *_factorize(column))
    numbers = _plain_numbers(column)
    if numbers is not None:
        return numbers
    if _is_category(column):
        raise InputError(
            f"Column {feature.name!r} of {argument} held numbers at fit and holds text now; convert it to numbers."
        )
    column = _wrapped(column)
    if isinstance(column.dtype, nw.Object):
        values = object_numbers(column.to_list())
        assert values is not None, "checked above"
        return values
    _refuse_other_types(feature.name, column, argument)
    return column.cast(nw.Float64).to_numpy().astype(np.float64)


def _refuse_other_types(name: str, column, argument: str) -> None:
    """One sentence for dates, complex numbers and whatever else is neither a number nor text."""
    if not (column.dtype.is_numeric() or isinstance(column.dtype, nw.Boolean)):
        native = getattr(column.to_native(), "dtype", column.dtype)
        raise InputError(
            f"Column {name!r} of {argument} has type {native}; turn it into numbers or text, or leave it out."
        )


def _refuse_numbers_for_text(feature: Feature, column, argument: str) -> None:
    """One sentence where no number can be one of the categories; columns without any value have no text either."""
    text_only = feature.categories and all(isinstance(value, str) for value in feature.categories)
    if text_only and not _is_category(column) and any(v is not None and v == v for v in column.to_list()):
        raise InputError(
            f"Column {feature.name!r} of {argument} held text at fit and holds numbers now; convert it to text."
        )
