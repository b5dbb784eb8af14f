"""Known assignment probabilities in any of the forms users have them, and the clipping of estimated ones."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np

from policytree.common.callers import stacklevel_outside
from policytree.common.option_words import typed_list
from policytree.exceptions import InputError, OverlapWarning
from policytree.weighting.by_label import by_label

SUM_TOLERANCE = 1e-6
WARN_SHARE = 0.01  # clipping more than one row in a hundred of an arm changes what is estimated


def is_constant(propensity, n: int, n_arms: int) -> bool:
    """Whether ``propensity`` is one distribution for all rows, so that it also holds for new rows."""
    if isinstance(propensity, Mapping):
        return all(np.ndim(value) == 0 for value in propensity.values())
    if np.ndim(propensity) == 0:
        return True
    shape = np.shape(propensity)
    return len(shape) == 1 and shape[0] == n_arms and shape[0] != n


def propensity_matrix(
    propensity,
    n: int,
    treatments: np.ndarray,
    arm: str = "treatment",
    shares: np.ndarray | None = None,
    first_row: int = 0,
) -> np.ndarray:
    """Known propensities as an (n, K) matrix in the order of ``treatments``.

    Parameters
    ----------
    propensity : float, mapping, array, Series or DataFrame
        - the number 1/2, with two treatments; another one needs a label, since it may be that of either;
        - a mapping (or a Series indexed by label) from every label to its probability, or to n probabilities;
        - an array of shape (K,): one probability per treatment, in sorted order;
        - an array of shape (n,), with two treatments: each row's probability of the second in sorted order;
        - an array of shape (n, K), columns in sorted order, or a frame whose columns are the labels, in any order.
    n : int
        Number of rows.
    treatments : ndarray of shape (K,)
        Sorted labels.
    arm : str
        Name of one of them in messages: "treatment" or "offer".
    shares : ndarray of shape (K,), optional
        Shares of the rows that got them, for a message.
    first_row : int
        Number of the first of these rows in messages: where it is in all rows, if these are a part of them.

    Returns
    -------
    ndarray of shape (n, K), float64

    Raises
    ------
    InputError
        If labels are missing or unknown, the shape fits none of the forms, a probability is not strictly between 0
        and 1, or the probabilities of a row do not sum to one (within 1e-6).
    """
    n_arms = len(treatments)
    values = by_label(propensity, n, treatments, argument="propensity", what="probability", arm=arm)
    if values.ndim == 0 and n_arms == 2 and 0.0 < float(values) < 1.0 and abs(float(values) - 0.5) > SUM_TOLERANCE:
        raise InputError(f"propensity={float(values):g} {needs_label(float(values), treatments, arm, shares)}")
    if values.ndim == 0 or (values.shape == (n,) and not is_constant(propensity, n, n_arms)):
        if n_arms != 2:
            raise InputError(
                f"propensity gives one probability per row, but there are {n_arms} {arm}s; give one per {arm}, "
                "as a mapping from label to probability or as a table with a column per label."
            )
        second = np.broadcast_to(values, (n,))
        matrix = np.column_stack([1.0 - second, second])
    elif values.shape == (n_arms,):
        matrix = np.tile(values, (n, 1))
    elif values.shape == (n, n_arms):
        matrix = values.copy()
    else:
        raise InputError(
            f"propensity has shape {values.shape}; with {n} rows and {n_arms} {arm}s it must be a number (two "
            f"{arm}s), a mapping from label to probability, or have shape ({n_arms},), ({n},) or ({n}, {n_arms})."
        )
    _check_probabilities(matrix, treatments, arm, first_row)
    return matrix


def needs_label(value: float, treatments: np.ndarray, arm: str = "treatment", shares: np.ndarray | None = None) -> str:
    """The end of a sentence that refuses one number other than 1/2, with both readings of it."""
    first, second = (str(label) for label in treatments)
    both = ((first, second), (second, first))
    readings = " or ".join(typed_list([f"{a}={value:g}", f"{b}={1 - value:g}"]) for a, b in both)
    text = f"may be the probability of the {arm} {first} or of {second}; say which, by label: {readings}."
    if shares is None:
        return text
    return f"{text} In these rows the shares are {first} {shares[0]:.4g}, {second} {shares[1]:.4g}."


def _check_probabilities(matrix: np.ndarray, treatments: np.ndarray, arm: str, first_row: int) -> None:
    bad = np.argwhere(~((matrix > 0.0) & (matrix < 1.0)))  # also catches NaN
    if len(bad):
        row, k = bad[0]
        raise InputError(
            f"propensity of {arm} {treatments[k]!s} is {matrix[row, k]} in row {first_row + row}; it must lie strictly "
            f"between 0 and 1: leave out the rows that could not get every {arm}."
        )
    total = matrix.sum(axis=1)
    off = np.flatnonzero(np.abs(total - 1.0) > SUM_TOLERANCE)
    if len(off):
        raise InputError(
            f"The propensities of row {first_row + off[0]} sum to {total[off[0]]:.6g}, not to 1; give each {arm}'s "
            "probability."
        )


def clip(
    propensity: np.ndarray, floor: float, treatments: np.ndarray, divided_by: np.ndarray | None = None
) -> tuple[np.ndarray, int]:
    """Raise estimated propensities below ``floor`` to it, and warn when that concerns many rows.

    Parameters
    ----------
    propensity : ndarray of shape (n, K)
    floor : float in [0, 1 / K)
    treatments : ndarray of shape (K,)
    divided_by : ndarray of shape (K,), bool, optional
        Treatments whose propensity a score divides by; the others stay as they are. All by default.

    Returns
    -------
    clipped : ndarray of shape (n, K)
        Not rescaled to sum to one: only the observed arm's entry enters a score, and rescaling would move entries that
        needed no change.
    n_clipped : int
        Rows with at least one entry raised.

    Warns
    -----
    OverlapWarning
        If more than 1 % of the rows were raised for some treatment.
    """
    low = propensity < floor
    if divided_by is not None:
        low &= divided_by
    n_low = int(low.any(axis=1).sum())
    warn_if_clipped(low.sum(axis=0), n_low, len(propensity), floor, treatments)
    return np.where(low, floor, propensity), n_low


def warn_if_clipped(counts: np.ndarray, n_low: int, n: int, floor: float, treatments: np.ndarray) -> None:
    """Warn where many estimated propensities were raised: ``counts`` (K,) by treatment, ``n_low`` rows of ``n``."""
    if counts.max() > WARN_SHARE * n:
        each = ", ".join(f"{counts[k]} rows for {treatments[k]!s}" for k in np.flatnonzero(counts))
        warnings.warn(
            f"Of {n} rows, {n_low} have an estimated propensity below min_propensity={floor:g} ({each}); it was raised "
            "to that, so the rewards there lean on the outcome model.",
            OverlapWarning,
            stacklevel=stacklevel_outside(),
        )


def warn_if_small(
    propensity: np.ndarray,
    floor: float,
    treatments: np.ndarray,
    divided_by: np.ndarray | None = None,
    arm: str = "treatment",
) -> None:
    """Warn when known propensities, which are never changed, lie below the floor in more than 1 % of the rows."""
    low = (propensity < floor).sum(axis=0)
    if divided_by is not None:
        low = low * divided_by
    warn_of_small(low, propensity.min(axis=0), len(propensity), floor, treatments, arm)


def warn_of_small(
    counts: np.ndarray, least: np.ndarray, n: int, floor: float, treatments: np.ndarray, arm: str = "treatment"
) -> None:
    """The same from counts of such rows among ``n`` and the smallest propensity, by treatment (K,)."""
    if counts.max() > WARN_SHARE * n:
        k = int(counts.argmax())
        warnings.warn(
            f"The given propensity of {arm} {treatments[k]!s} is below min_propensity={floor:g} in {counts[k]} of "
            f"{n} rows (smallest {least[k]:.3g}); given propensities are used as they are, so the rewards will vary a "
            "lot.",
            OverlapWarning,
            stacklevel=stacklevel_outside(),
        )


def warn_if_unobserved(n_raised: int, n: int, floor: float) -> None:
    """Warn where many estimated probabilities of being observed were raised: ``n_raised`` rows of ``n``."""
    if n_raised > WARN_SHARE * n:
        warnings.warn(
            f"Of {n} rows, {n_raised} have an estimated probability of being observed (not censored, not missing) "
            f"below min_observed={floor:g}; it was raised to that, so the rewards there lean on the models of events "
            "or outcomes. An earlier horizon needs less of that.",
            OverlapWarning,
            stacklevel=stacklevel_outside(),
        )


def warn_if_lowered(n_lowered: int, n: int, largest: float) -> None:
    """Warn where the study has few people like many of the target: ``n_lowered`` of its ``n`` rows were lowered."""
    if n_lowered > WARN_SHARE * n:
        warnings.warn(
            f"Of {n} rows of the study, {n_lowered} stand for so many people of the target that their weight was "
            f"lowered to max_target_weight={largest:g}; for people like them the rewards lean on the outcome model.",
            OverlapWarning,
            stacklevel=stacklevel_outside(),
        )
