"""Checks of outcome, treatment, weights and clusters: from the user's columns to plain arrays, or one sentence."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd

from policytree.binning import as_pandas
from policytree.exceptions import InputError
from policytree.folds import FoldPlan, make_folds
from policytree.weighting.by_label import as_numbers, by_label

LARGEST = 1e100  # squares of larger numbers, summed over rows, overflow
LARGEST_OUTCOME = 1e151  # squares can still be added up over a million rows
WEIGHT_RANGE = 1e-200, 1e200  # of the largest weight: products with losses keep their digits, sums stay finite
FEW_TREATMENTS = 20  # so many may be rare; more, in most of the rows, are doses or names of persons


@dataclass(frozen=True, slots=True)
class Observed:
    """What was observed, as plain arrays.

    Attributes
    ----------
    y : ndarray of shape (n,), float64
        Outcome, in its unit; larger is better unless said otherwise downstream.
    arm : ndarray of shape (n,), int64
        Position of each row's treatment in ``treatments``.
    treatments : ndarray of shape (K,)
        The user's labels, sorted.
    sample_weight : ndarray of shape (n,), float64, or None
    groups : ndarray of shape (n,), int64, or None
        Cluster codes.
    index : pandas.Index
        Row labels of the user's data, kept for the frames that come out.
    """

    y: np.ndarray
    arm: np.ndarray
    treatments: np.ndarray
    sample_weight: np.ndarray | None
    groups: np.ndarray | None
    index: pd.Index

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.y)

    @property
    def n_arms(self) -> int:
        """Number of treatments."""
        return len(self.treatments)

    def folds(self, cv, random_state) -> FoldPlan:
        """Folds balanced over treatments that split no cluster; see :func:`policytree.folds.make_folds`."""
        return make_folds(
            self.n,
            cv,
            strata=self.arm,
            stratum_names=self.treatments,
            groups=self.groups,
            random_state=random_state,
        )

    def frame(self, values: np.ndarray) -> pd.DataFrame:
        """(n, K) values with the user's rows and one column per treatment."""
        return pd.DataFrame(values, index=self.index, columns=self.treatments)


def as_series(values, argument: str) -> pd.Series:
    """One column of the user's data as a pandas Series; its name, for messages, is the column's or the argument's.

    Accepts lists, arrays of shape (n,) or (n, 1), pandas and polars Series, and frames with one column.

    Raises
    ------
    InputError
        If ``values`` is more than one column.
    """
    native = nw.from_native(values, allow_series=True, eager_only=True, pass_through=True)
    if isinstance(native, nw.DataFrame):
        if native.shape[1] != 1:
            raise InputError(f"{argument} must be one column; got a table with {native.shape[1]} columns.")
        native = native[native.columns[0]]
    if isinstance(native, nw.Series):
        original = native.to_native()
        # Categorical and Enum columns become their values; pandas keeps its index.
        series = original if isinstance(original, pd.Series) else pd.Series(native.to_list(), name=native.name)
        label = series.name
        series = series.astype(object) if isinstance(series.dtype, pd.CategoricalDtype) else series
    else:
        array = np.asarray(values)
        if array.ndim == 2 and array.shape[1] == 1:
            array = array[:, 0]
        if array.ndim != 1:
            raise InputError(f"{argument} must be one column of values; got shape {array.shape}.")
        # A list that mixes labels of several types must not be turned into text by numpy.
        series, label = pd.Series(values if isinstance(values, (list, tuple)) else array), None
    return series.rename(argument if label is None or label == argument else f"{argument} (column {label!r})")


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
    try:
        if series.dtype.kind == "c":
            raise TypeError
        out = series.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{series.name} holds values that are not numbers; convert them to numbers.") from error
    bad = np.flatnonzero(~np.isfinite(out.to_numpy()))
    if len(bad):
        raise InputError(f"{series.name} has {len(bad)} infinite values, the first in row {bad[0]}; {remedy}")
    return out


def _check_length(series: pd.Series, n: int | None, of: str = "Y") -> None:
    if n is not None and len(series) != n:
        raise InputError(f"{series.name} has {len(series)} rows, but {of} has {n}; give one value per row.")


def sorted_labels(values: np.ndarray) -> np.ndarray:
    """Distinct labels, sorted as :func:`numpy.unique` does; labels of mixed types are sorted as text."""
    try:
        return np.unique(values)
    except TypeError:
        found = sorted(pd.unique(pd.Series(values, dtype=object)), key=lambda v: (str(v), type(v).__name__))
        out = np.empty(len(found), dtype=object)
        out[:] = found
        return out


def treatment_codes(
    T, n: int | None = None, treatments: np.ndarray | None = None, *, argument: str = "T", what: str = "treatment"
) -> tuple[np.ndarray, np.ndarray]:
    """Arms as codes, and the sorted labels.

    Parameters
    ----------
    T : column of labels of any type, shape (n,)
    n : int, optional
        Required length.
    treatments : ndarray of shape (K,), optional
        Labels known from fit; others are refused.
    argument, what : str
        What messages call the column and its labels.

    Returns
    -------
    arm : ndarray of shape (n,), int64
    treatments : ndarray of shape (K,)

    Raises
    ------
    InputError
        If labels are missing, only one occurs, or (with ``treatments``) a label is unknown.
    """
    series = as_series(T, argument)
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
    series = as_series(groups, "groups")
    _check_length(series, n)
    _refuse_missing(series, "give every row a cluster.")
    return pd.factorize(series)[0].astype(np.int64)


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
    empty = [] if w is None else np.flatnonzero(np.bincount(arm, weights=w, minlength=len(labels)) == 0)
    if len(empty):
        raise InputError(
            f"All rows of {what} {labels[empty[0]]!s} have sample_weight zero; leave the {what} out or weight it."
        )


def check_level(level: float) -> None:
    """Refuse a coverage that is none."""
    if not isinstance(level, Real) or not 0.0 < level < 1.0:
        raise InputError(f"level must lie between 0 and 1, for example 0.95; got {level!r}.")


def refuse_nonfinite(values: np.ndarray, argument: str, remedy: str = "leave these rows out.") -> None:
    """One sentence that names the first row of an (n, K) matrix with a missing or infinite value."""
    bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(bad):
        raise InputError(f"{argument} has missing or infinite values, the first in row {bad[0]}; {remedy}")


def observe(Y, T, *, sample_weight=None, groups=None, treatments: np.ndarray | None = None) -> Observed:
    """Check and encode what was observed; see :class:`Observed`.

    Raises
    ------
    InputError
        For empty data, missing or infinite values, unequal lengths, a single treatment, or unknown treatments.
    """
    y = numbers(Y, "Y")
    if not len(y):
        raise InputError("Y has no rows; pass data with at least a few rows per treatment.")
    if np.abs(y.to_numpy()).max() > LARGEST_OUTCOME:
        raise InputError(f"Y holds values beyond {LARGEST_OUTCOME:g}, too large to compute with; rescale it.")
    arm, labels = treatment_codes(T, len(y), treatments)
    if treatments is None and len(labels) > max(FEW_TREATMENTS, len(y) / 2):
        raise InputError(
            f"T holds {len(labels)} different treatments in {len(y)} rows, too few of each to learn from; group doses "
            "or rare treatments into a few."
        )
    w = weights(sample_weight, len(y))
    if treatments is None:
        refuse_weightless(arm, labels, w)
    return Observed(y.to_numpy(), arm, labels, w, group_codes(groups, len(y)), y.index)


def outcome_matrix(regression, n: int, treatments: np.ndarray) -> np.ndarray:
    """Expected outcomes from elsewhere, shape (n, K), in the order of ``treatments``.

    Parameters
    ----------
    regression : array, frame or mapping
        Of shape (n, K) with columns in sorted order of the labels; or with labels, as columns or keys, in any order.

    Raises
    ------
    InputError
        If the shape differs, a label is unknown or lacking, or a value is missing or infinite.
    """
    values = by_label(regression, n, treatments, argument="regression", what="expected outcome")
    if values.shape != (n, len(treatments)):
        raise InputError(
            f"regression has shape {values.shape}; it must be ({n}, {len(treatments)}): a row per "
            "person, a column per treatment."
        )
    refuse_nonfinite(values, "regression", "give finite numbers.")
    return np.array(values)


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
    """As :func:`per_treatment`, for probabilities that are to be divided by where the treatment was received.

    Raises
    ------
    InputError
        Also if a probability lies outside 0 to 1, or is zero for a treatment that was received.
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
