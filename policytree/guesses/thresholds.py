"""Guessed thresholds: from cuts of split columns to thresholds of features, and from any numbers to the data's own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from policytree.data.features import CATEGORICAL, Feature
from policytree.exceptions import InputError, quoted
from policytree.guesses.guess import Reference
from policytree.problem.split_columns import midpoints
from policytree.problem.types import BinnedData, Guesses


def suggest_thresholds(reference: Reference) -> Guesses:
    """Keep the thresholds that the reference needs; see :func:`policytree.guesses.elimination.eliminate_one_by_one`."""
    return Guesses(thresholds=feature_thresholds(reference.data, reference.cuts))


def feature_thresholds(data: BinnedData, cuts: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Thresholds of every feature that cuts of split columns stand for, as ``Guesses.thresholds`` holds them.

    Parameters
    ----------
    data : BinnedData
    cuts : list of ndarray
        Cuts kept of every column.

    Returns
    -------
    tuple of ndarray
        One sorted array per feature: thresholds of numeric features (infinity: missing against the rest), positions of
        categories (-1: missing against the rest).
    """
    out = []
    for f in range(len(data.features)):
        of_feature = [c.thresholds[cuts[j]] for j, c in enumerate(data.columns) if c.feature == f]
        out.append(np.unique(np.concatenate(of_feature)) if of_feature else np.empty(0))
    return tuple(out)


def kept_cuts(data: BinnedData, thresholds) -> list[np.ndarray]:
    """Cuts of every column of the data that guessed thresholds of the features allow.

    Both sides of missing values are kept. A feature whose entry is None keeps all its thresholds.

    Raises
    ------
    InputError
        If there is not one entry per feature.
    """
    if len(thresholds) != len(data.features):
        raise InputError(f"thresholds must have one entry per feature, {len(data.features)}; got {len(thresholds)}.")
    cuts = []
    for column in data.columns:
        allowed = thresholds[column.feature]
        every = np.arange(len(column.thresholds))
        cuts.append(every if allowed is None else every[np.isin(column.thresholds, allowed)])
    return cuts


def snap_thresholds(X: np.ndarray, features: tuple[Feature, ...], thresholds) -> tuple[np.ndarray | None, ...]:
    """Thresholds from elsewhere as those midway between values of the data that split its rows alike.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Encoded table; NaN means missing.
    features : tuple of Feature
    thresholds : sequence
        Per feature a list of numbers (for categorical features: category values), or None for all.

    Returns
    -------
    tuple of ndarray or None
        Thresholds that split no rows are left out.

    Raises
    ------
    InputError
        If there is not one entry per feature, a category is unknown, or a threshold is no number.
    """
    if not isinstance(thresholds, Sequence) or isinstance(thresholds, str):
        raise InputError(
            f"thresholds must be a list with one entry per feature, {len(features)}; got {quoted(thresholds)}."
        )
    if len(thresholds) != len(features):
        raise InputError(f"thresholds must have one entry per feature, {len(features)}; got {len(thresholds)}.")
    return tuple(
        None if wanted is None else _snap(X[:, j], feature, wanted)
        for j, (feature, wanted) in enumerate(zip(features, thresholds, strict=True))
    )


def _snap(x: np.ndarray, feature: Feature, wanted) -> np.ndarray:
    if feature.kind == CATEGORICAL:
        wanted = [wanted] if isinstance(wanted, str) else wanted
        position = {value: float(k) for k, value in enumerate(feature.categories)}
        unknown = [value for value in wanted if value not in position]
        if unknown:
            raise InputError(f"thresholds of {feature.name!r} hold {unknown[0]!r}, which is none of its categories.")
        return np.unique(np.array([position[value] for value in wanted]))
    try:
        wanted = np.asarray(wanted, dtype=np.float64).ravel()
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"thresholds of {feature.name!r} must be numbers.") from error
    if np.isnan(wanted).any():
        raise InputError(f"thresholds of {feature.name!r} must be numbers, infinity for missing values; got NaN.")
    missing = np.isnan(x)
    values = np.unique(x[~missing])
    at = np.searchsorted(values, wanted[np.isfinite(wanted)], side="right")
    own = midpoints(values)[np.unique(at[(at > 0) & (at < len(values))]) - 1]
    return np.append(own, np.inf) if missing.any() and np.isposinf(wanted).any() else own
