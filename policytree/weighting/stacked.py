"""A study and the people of a target in one table: which rows are whose, and their weights in averages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from policytree.common.validation import as_series, numbers
from policytree.exceptions import InputError

CARRIED = 1e-9  # how many people of the target a row of the study stands for, in place of none


def share_of_target(study: np.ndarray, sampling_weight: np.ndarray | None) -> float:
    """The (weighted) share of the target among the rows.

    Raises
    ------
    InputError
        If there is none.
    """
    share = float(np.average(~study, weights=sampling_weight))
    if share == 0.0:
        raise InputError("No row is of the target, so there is nobody to average over; pass some with study=False.")
    return share


def per_person(scores: np.ndarray, study: np.ndarray, sampling_weight: np.ndarray | None) -> np.ndarray:
    """Scores, (n,) or (n, K), for averages with :func:`averaging_weight`."""
    divisor = np.where(study, CARRIED, 1.0) / share_of_target(study, sampling_weight)
    return scores / (divisor if scores.ndim == 1 else divisor[:, None])


def averaging_weight(study: np.ndarray, sampling_weight: np.ndarray | None) -> np.ndarray:
    """Weights (n,) of averages over the target."""
    weight = np.where(study, CARRIED, 1.0)
    return weight if sampling_weight is None else weight * sampling_weight


def averages_over_target(weight: np.ndarray) -> bool:
    """Whether weights (n,) are those of :func:`averaging_weight`: rows of the study stand for next to nobody."""
    return bool(((weight > 0.0) & (weight < np.sqrt(CARRIED) * weight.max())).any())


def study_mask(study: Any, n: int, both: bool = True) -> np.ndarray:
    """Which rows are of the study, (n,) bool, from booleans or zeros and ones.

    Raises
    ------
    InputError
        If it is anything else, or (where ``both``) all rows are of one part.
    """
    series = as_series(study, "study")
    values = numbers(series, "study", n, "write True (1) for rows of the study, False (0) for the target.").to_numpy()
    if not np.isin(values, (0.0, 1.0)).all():
        raise InputError(
            f"{series.name} must be True (1) for rows of the study and False (0) for people of the target."
        )
    mask = values == 1.0
    if both and (mask.all() or not mask.any()):
        which, lacks = ("study", "target") if mask.all() else ("target", "study")
        raise InputError(f"{series.name} says that all rows are of the {which}; pass rows of the {lacks} as well.")
    return mask


def expanded(part: np.ndarray, study: np.ndarray, fill: Any) -> np.ndarray:
    """Values of the study's rows, (n_study, ...), with ``fill`` for the rows of the target."""
    out = np.full((len(study), *part.shape[1:]), fill, dtype=part.dtype)
    out[study] = part
    return out


def weights_of_target(target_weights: Any, n: int) -> np.ndarray | None:
    """Checked ``target_weights`` with mean one, (n,); None where all are equal, so that there is nothing to weight."""
    series = as_series(target_weights, "target_weights")
    values = numbers(series, "target_weights", n, "say how many people of the target every row stands for.").to_numpy()
    if (values < 0).any():
        raise InputError(f"target_weights has {(values < 0).sum()} negative values; nobody stands for less than none.")
    if not values.any():
        raise InputError("target_weights is zero in all rows; give at least some rows weight.")
    return None if np.ptp(values) == 0.0 else values / values.mean()


def rows_of_study(values: Any, study: np.ndarray, argument: str) -> Any:
    """The study's rows of what is given row by row: a column, a table, or a mapping to columns."""
    if isinstance(values, Mapping):
        return {label: rows_of_study(column, study, argument) for label, column in values.items()}
    if np.ndim(values) == 0:  # of a label, the same for everybody
        return values
    native = nw.from_native(values, eager_only=True, allow_series=True, pass_through=True)
    table = native if isinstance(native, (nw.DataFrame, nw.Series)) else np.asarray(values)
    if len(table) != len(study):
        raise InputError(f"{argument} has {len(table)} rows, but there are {len(study)}; give one row per row of Y.")
    part = table[np.flatnonzero(study)]
    return part.to_native() if isinstance(part, (nw.DataFrame, nw.Series)) else part
