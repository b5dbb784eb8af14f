"""Input validation for all packages: columns become plain arrays and labels codes, or one sentence says why not.

pandas is imported inside the functions that need it, so that importing an estimator does not load it.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeGuard

import narwhals.stable.v2 as nw
import numpy as np

from policytree.common.number_texts import OTHER, python_remedy, unread
from policytree.data.combined_treatments import CombinedTreatments, combine_frame
from policytree.data.feature_encoder import as_pandas
from policytree.exceptions import InputError, quoted

if TYPE_CHECKING:
    import pandas as pd

LARGEST = 1e100  # squares of larger numbers, summed over rows, overflow
FEW, LARGEST_COUNTED = 1_000, 2**62  # integers in so small a range are counted rather than sorted
WEIGHT_RANGE = 1e-200, 1e200  # of the largest weight: products with losses keep their digits, sums stay finite


def is_real(value: object) -> TypeGuard[float]:
    """Whether something is one real number, of Python's types or numpy's."""
    return isinstance(value, Real)


def is_whole(value: object) -> TypeGuard[int]:
    """Whether something is one integer, of Python's types or numpy's."""
    return isinstance(value, Integral)


def check_count(value: object, argument: str, least: int, such_as: str = "") -> None:
    """Refuse what is no whole number, or less than the least one; ``such_as`` is an example."""
    if not is_whole(value) or isinstance(value, bool) or value < least:
        example = f", such as {such_as}" if such_as else ""
        raise InputError(f"{argument} must be a whole number of at least {least}{example}; got {quoted(value)}.")


def check_choice(value: object, argument: str, choices: Iterable[str]) -> None:
    """Refuse what is none of some texts."""
    if not isinstance(value, str) or value not in choices:
        *names, last = map(repr, choices)
        known = f"{', '.join(names)} or {last}" if names else last
        raise InputError(f"{argument} must be {known}; got {quoted(value)}.")


def check_flag(value: object, argument: str) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"{argument} must be True or False; got {quoted(value)}.")


def check_verbose(value: object) -> None:
    """Refuse what does not say how much is to be shown."""
    if not is_whole(value):
        raise InputError(f"verbose must be 0 (silent) or 1 (shows progress); got {quoted(value)}.")


def columns_by_label(frame: pd.DataFrame, labels: Iterable[Any]) -> pd.DataFrame:
    """The columns in the order of labels, which may be True and False: pandas takes a list of these for a mask."""
    at = frame.columns.get_indexer(list(labels))
    assert (at >= 0).all(), "callers refuse frames that lack a treatment"
    return frame.iloc[:, at]


def as_series(values, argument: str) -> pd.Series:
    """One column of the user's data as a pandas Series; its name, for messages, is the column's or the argument's.

    Accepts lists, arrays of shape (n,) or (n, 1), pandas and polars Series, and frames with one column.

    Raises
    ------
    InputError
        If ``values`` is more than one column.
    """
    import pandas as pd

    # narwhals looks for a dozen libraries, which takes longer than a short column.
    known = type(values) in (np.ndarray, pd.Series)
    native = values if known else nw.from_native(values, allow_series=True, eager_only=True, pass_through=True)
    if isinstance(native, nw.DataFrame):
        if native.shape[1] != 1:
            raise InputError(f"{argument} must be one column; got a table with {native.shape[1]} columns.")
        native = native[native.columns[0]]
    if isinstance(native, (nw.Series, pd.Series)):
        original = native.to_native() if isinstance(native, nw.Series) else native
        # Categorical and Enum columns become their values; pandas keeps its index.
        series = original if isinstance(original, pd.Series) else pd.Series(native.to_list(), name=native.name)
        label = series.name
        series = series.astype(object) if isinstance(series.dtype, pd.CategoricalDtype) else series
    else:
        if values is None:
            raise InputError(f"{argument} must be one column of values; got None.")
        refuse_odd_arrays(values, argument)
        array = _column_array(values, argument)
        if array.ndim == 2 and array.shape[1] == 1:
            array = array[:, 0]
        if array.ndim != 1:
            raise InputError(f"{argument} must be one column of values; got shape {array.shape}.")
        # A list that mixes labels of several types must not be turned into text by numpy.
        series, label = pd.Series(values if isinstance(values, (list, tuple)) else array), None
    if isinstance(series.dtype, np.dtype) and series.dtype.kind == "f" and series.dtype.itemsize not in (4, 8):
        series = series.astype(np.float64)  # pandas has indexes of these floats
    return series.rename(argument if label is None or label == argument else f"{argument} (column {label!r})")


def arm_column(T, treatments: Iterable | None = None) -> pd.Series:
    """The arm of every row: T itself, or the combination of its columns (``treatments``: the labels of a fit)."""
    found = factors_of(T, treatments)
    labels = as_series(T if found is None else found.labels, "T")
    if labels.dtype == object and not all(isinstance(label, Hashable) for label in labels):
        raise InputError(f"{labels.name} holds lists or tables; give one label a row.")
    return labels


def factors_of(T, treatments: Iterable | None = None) -> CombinedTreatments | None:
    """The combined treatments of a frame of two or more columns; None of a single treatment."""
    frame = as_pandas(T)
    if frame is None or frame.shape[1] < 2:
        return None
    return combine_frame(frame, None if treatments is None else list(treatments))


def _column_array(values, argument: str) -> np.ndarray:
    """An array of whatever shape, or one sentence: of values of several lengths there is none."""
    try:
        return np.asarray(values)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{argument} must be one column of values, but holds lists or tuples of several lengths; give one number "
            "or text a row."
        ) from error


def _refuse_missing(series: pd.Series, remedy: str) -> None:
    bad = np.flatnonzero(series.isna().to_numpy())
    if len(bad):
        raise InputError(f"{series.name} has {len(bad)} missing value(s), the first in row {bad[0]}; {remedy}")


def numbers(
    values, argument: str, n: int | None = None, remedy: str = "leave these rows out.", of: str = "Y"
) -> pd.Series:
    """A column of finite float64 numbers of length ``n``, the number of rows of ``of``.

    Raises
    ------
    InputError
        If values are missing, infinite or no numbers, or the length differs.
    """
    series = as_series(values, argument)
    _check_length(series, n, of)
    _refuse_missing(series, remedy)
    if series.dtype.kind == "c":
        raise InputError(f"Complex data not supported: {series.name} holds complex numbers; give real ones.")
    try:
        out = series.astype(np.float64)
    except OverflowError as error:
        raise InputError(f"{series.name} holds integers that no floating-point number can be; divide them.") from error
    except (TypeError, ValueError) as error:
        raise InputError(_no_numbers(series, argument)) from error
    bad = np.flatnonzero(~np.isfinite(out.to_numpy()))
    if len(bad):
        raise InputError(f"{series.name} has {len(bad)} infinite values, the first in row {bad[0]}; {remedy}")
    return out


def _no_numbers(series: pd.Series, argument: str) -> str:
    """One sentence on a column that holds other values than numbers: the first of them, how many, the likely cause."""
    found = unread(series)
    if found is None:
        return f"{series.name} holds values that are not numbers; {python_remedy(OTHER, argument)}"
    return (
        f"{series.name} holds values that are not numbers in {found.count:,} of {found.n:,} rows, the first "
        f"{quoted(found.value)} in row {found.row} ({found.looks}); {python_remedy(found.cause, argument)}"
    )


def _check_length(series: pd.Series, n: int | None, of: str = "Y") -> None:
    if n is not None and len(series) != n:
        raise InputError(f"{series.name} has {len(series)} rows, but {of} has {n}; give one value per row.")


def sorted_labels(values: np.ndarray) -> np.ndarray:
    """Distinct labels, sorted as :func:`numpy.unique` does; labels of mixed types are sorted as text."""
    import pandas as pd

    if values.dtype.kind in "iu" and values.size:
        low, high = int(values.min()), int(values.max())
        if high - low < FEW and -LARGEST_COUNTED < low <= high < LARGEST_COUNTED:  # a fifth of the time
            return (np.flatnonzero(np.bincount(values.astype(np.int64) - low)) + low).astype(values.dtype)
    try:
        return np.unique(values)
    except TypeError:
        found = sorted(pd.unique(pd.Series(values, dtype=object)), key=lambda v: (str(v), type(v).__name__))
        out = np.empty(len(found), dtype=object)
        out[:] = found
        return out


def place_of(label: Any, labels: Iterable[Any]) -> int | None:
    """Where a label stands among others: that which equals it, as 1 does 1.0, or else that whose text it is, "1"."""
    known = list(labels)
    if label in known:
        return known.index(label)
    names = [str(each) for each in known]
    return names.index(str(label)) if str(label) in names else None


def position_of(label, labels: np.ndarray, argument: str) -> int:
    """Where a label stands among treatments (:func:`place_of`); the first position if it is None.

    Raises
    ------
    InputError
        If it is none of them.
    """
    at = 0 if label is None else place_of(label, labels.tolist())
    if at is None:
        raise InputError(f"{argument}={label!r} is not among the treatments; they are {', '.join(map(str, labels))}.")
    return at


def treatment_codes(
    T, n: int | None = None, treatments: np.ndarray | None = None, *, argument: str = "T", what: str = "treatment"
) -> tuple[np.ndarray, np.ndarray]:
    """Arms as codes, and the sorted labels.

    Parameters
    ----------
    T : column of labels of any type, shape (n,); or, for ``argument="T"``, a frame of several treatments to combine
    n : int, optional
        Required length.
    treatments : ndarray of shape (K,), optional
        Labels known from fit; others are refused.
    argument, what : str
        Names of the column and its labels in messages.

    Returns
    -------
    arm : ndarray of shape (n,), int64
    treatments : ndarray of shape (K,)

    Raises
    ------
    InputError
        If labels are missing, only one occurs, or (with ``treatments``) a label is unknown.
    """
    import pandas as pd

    series = arm_column(T, treatments) if argument == "T" else as_series(T, argument)
    _check_length(series, n)
    _refuse_missing(series, "leave these rows out.")
    values = series.to_numpy()
    labels = sorted_labels(values) if treatments is None else treatments
    if treatments is None and len(labels) < 2:
        only = f"only one {what}, {labels[0]!s}" if len(labels) else f"no {what}"
        raise InputError(f"{series.name} holds {only}; at least two are needed to choose from.")
    arm = pd.Index(labels).get_indexer(pd.Index(values)).astype(np.int64)
    if (arm < 0).any():
        unknown = sorted({str(v) for v in values[arm < 0]})
        known = ", ".join(map(str, labels))
        raise InputError(
            f"{series.name} holds {what}(s) not seen at fit: {', '.join(unknown[:5])}; the known ones are {known}."
        )
    return arm, labels


def group_codes(groups, n: int) -> np.ndarray | None:
    """Clusters as codes 0, 1, ... in order of appearance; shape (n,), int64, or None."""
    if groups is None:
        return None
    import pandas as pd

    series = as_series(groups, "groups")
    _check_length(series, n)
    _refuse_missing(series, "give every row a cluster.")
    return pd.factorize(series)[0].astype(np.int64)


def stratum_codes(strata, n: int) -> np.ndarray | None:
    """Blocks within which treatment was assigned as codes 0, 1, ...; shape (n,), int64, or None.

    Parameters
    ----------
    strata : column of n labels, or table of several such columns
        With several columns, every combination that occurs is a block.
    n : int

    Raises
    ------
    InputError
        If values are missing or there are not n of them.
    """
    if strata is None:
        return None
    columns = [strata]
    frame = as_pandas(strata)
    if frame is not None and frame.shape[1] > 1:
        columns = [frame.iloc[:, j] for j in range(frame.shape[1])]
    elif frame is None and np.ndim(strata) == 2:
        columns = list(np.asarray(strata).T)
    codes = np.zeros(n, dtype=np.int64)
    for column in columns:
        series = as_series(column, "strata")
        _check_length(series, n)
        _refuse_missing(series, "give every row a stratum, for instance one of its own for 'unknown'.")
        found = np.unique(series.astype(str).to_numpy(dtype=str), return_inverse=True)[1]
        codes = np.unique(codes * (found.max() + 1) + found, return_inverse=True)[1].astype(np.int64)
    return codes


def weights(sample_weight, n: int, of: str = "Y") -> np.ndarray | None:
    """Row weights, shape (n,), float64 >= 0 and not all zero, or None.

    Raises
    ------
    InputError
        If there are not n of them, one is missing, infinite or negative, or all are zero.
    """
    if sample_weight is None:
        return None
    out = numbers(sample_weight, "sample_weight", n, "give every row a weight.", of).to_numpy()
    if (out < 0).any():
        raise InputError(f"sample_weight has {(out < 0).sum()} negative values; weights must be zero or larger.")
    largest = float(out.max(initial=0.0))
    if largest == 0:
        raise InputError("sample_weight is zero in all rows; give at least some rows weight.")
    if not WEIGHT_RANGE[0] <= largest <= WEIGHT_RANGE[1]:
        raise InputError(
            f"sample_weight has a largest value of {largest:g}, beyond what can be computed with; multiply all weights "
            "by a constant, which changes no tree."
        )
    return out


def refuse_weightless(arm: np.ndarray, labels: np.ndarray, w: np.ndarray | None, what: str = "treatment") -> None:
    """One sentence if all rows of some label have weight zero."""
    if w is None:
        return
    empty = np.flatnonzero(np.bincount(arm, weights=w, minlength=len(labels)) == 0)
    if len(empty):
        raise InputError(
            f"All rows of {what} {labels[empty[0]]!s} have sample_weight zero; leave the {what} out or weight it."
        )


def check_level(level: float, argument: str = "level", such_as: float = 0.95) -> None:
    """Refuse a coverage, or a power, that is none."""
    if not is_real(level) or not 0.0 < level < 1.0:
        raise InputError(f"{argument} must lie between 0 and 1, for example {such_as}; got {quoted(level)}.")


def refuse_odd_arrays(values, argument: str) -> None:
    """One sentence for numpy's masked arrays, in which what is below a mask would count, and for those of records."""
    fields = getattr(getattr(values, "dtype", None), "names", None)
    if fields:
        raise InputError(
            f"{argument} is a structured array with the fields {', '.join(fields)}, as survival times often are; give "
            f"one column of numbers or labels, such as {argument}[{fields[0]!r}], or a DataFrame."
        )
    if isinstance(values, np.ma.MaskedArray):
        raise InputError(
            f"{argument} is a masked array, and what is below the mask would count; pass {argument}.filled(...), with "
            "NaN where missing values may stand."
        )


def as_numbers(values, argument: str) -> np.ndarray:
    """A float64 array, or one sentence."""
    if type(values) is np.ndarray and values.dtype == np.float64:
        return values
    refuse_odd_arrays(values, argument)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", np.exceptions.ComplexWarning)
            return np.asarray(values, dtype=np.float64)
    except np.exceptions.ComplexWarning as error:
        raise InputError(f"{argument} holds complex numbers; give real ones.") from error
    except OverflowError as error:
        raise InputError(f"{argument} holds integers that no floating-point number can be; divide them.") from error
    except (TypeError, ValueError) as error:
        raise InputError(f"{argument} holds values that are not numbers; give numbers.") from error


def refuse_nonfinite(values: np.ndarray, argument: str, remedy: str = "leave these rows out.") -> None:
    """One sentence that names the first row of an (n, K) matrix with a missing or infinite value."""
    bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(bad):
        raise InputError(f"{argument} has missing or infinite values, the first in row {bad[0]}; {remedy}")


def per_treatment(table, T, argument: str = "propensity") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values (n, K), arm codes and labels from a frame (pandas, polars) such as ``RewardEstimator.propensity_``.

    Raises
    ------
    InputError
        If ``table`` is no frame, lacks a treatment that occurs in ``T``, or holds values that are no finite numbers.
    """
    frame = as_pandas(table)
    if frame is None:
        raise InputError(f"{argument} must be a frame with a column per treatment, as RewardEstimator.{argument}_.")
    if not len(frame):
        raise InputError(f"{argument} has no rows; pass those that were judged.")
    labels = frame.columns.to_numpy()
    present = set(as_series(T, "T"))
    if not set(labels) & present:  # polars knows only text names
        text = {str(label): label for label in present}
        labels = np.array([text.get(name, name) for name in labels], dtype=object)
    arm, labels = treatment_codes(T, len(frame), labels)
    values = as_numbers(frame, argument)
    refuse_nonfinite(values, argument)
    return values, arm, labels


def observed_propensity(propensity, T) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Probabilities of the treatments (n, K), the codes of those received and their labels, as :func:`per_treatment`.

    They are divided by where a treatment was received, and must be positive there.

    Raises
    ------
    InputError
        If the frame does not fit ``T``, a value is missing or infinite, or a probability lies outside 0 to 1 or is zero
        for a treatment that was received.
    """
    p, arm, labels = per_treatment(propensity, T)
    bad = np.argwhere((p < 0.0) | (p > 1.0))
    if len(bad):
        row, k = bad[0]
        raise InputError(f"propensity of treatment {labels[k]!s} is {p[row, k]:g} in row {row}; it must lie in 0 to 1.")
    never = np.flatnonzero(p[np.arange(len(p)), arm] == 0.0)
    if len(never):
        raise InputError(
            f"propensity says that row {never[0]} could not get treatment {labels[arm[never[0]]]!s}, but it did; use a "
            "positive min_propensity, or leave such rows out."
        )
    return p, arm, labels
