"""From rewards to weighted labels, for solvers and libraries that take nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policytree.common.row_labels import aligns_rows
from policytree.common.typing import Column, Table
from policytree.common.validation import as_numbers, refuse_nonfinite, weights
from policytree.data.feature_encoder import as_pandas
from policytree.data.views import Shown
from policytree.exceptions import InputError


@dataclass(frozen=True, slots=True, repr=False)
class WeightedLabels(Shown):
    """Weighted labelled rows whose weighted error equals a policy's regret, up to a constant.

    For every policy: ``sum of rewards lost against each row's best = sum over rows j of weight[j] *
    1{policy(x[row[j]]) != label[j]} - constant``.

    Attributes
    ----------
    row : ndarray of shape (m,), int64
        Which row of the rewards each labelled row copies; ``X.iloc[row]`` are its covariates.
    label : ndarray of shape (m,)
        Treatments.
    weight : ndarray of shape (m,), float64
        Positive, in the reward's unit.
    constant : float

    Examples
    --------
    >>> from policytree.weighting import weighted_labels
    >>> labels = weighted_labels([[2.0, 0.0], [0.0, 1.0]])
    >>> labels.row.tolist(), labels.label.tolist(), labels.weight.tolist()
    ([0, 1], [0, 1], [2.0, 1.0])
    """

    row: np.ndarray
    label: np.ndarray
    weight: np.ndarray
    constant: float


def _reward_values(rewards) -> tuple[np.ndarray, np.ndarray]:
    frame = as_pandas(rewards)
    values = as_numbers(rewards if frame is None else frame, "rewards")
    if values.ndim != 2 or values.shape[1] < 2:
        raise InputError(f"rewards must have one column per treatment, at least two; got shape {values.shape}.")
    refuse_nonfinite(values, "rewards")
    with np.errstate(over="ignore"):  # refused below
        span = np.ptp(values, axis=1)
    if not np.isfinite(span).all():
        raise InputError("rewards differ by more than a number can hold; rescale them.")
    return values, np.arange(values.shape[1]) if frame is None else frame.columns.to_numpy()


@aligns_rows
def weighted_labels(rewards: Table, *, sample_weight: Column | None = None) -> WeightedLabels:
    """Rewards as weighted labelled rows, exact up to a constant for any number of treatments.

    Every row becomes one labelled row per treatment but its worst, weighted by how much better than the worst that
    treatment is; rows of weight zero are dropped. With K = 2 that is the best treatment weighted by the regret, and the
    constant is zero.

    Parameters
    ----------
    rewards : DataFrame (pandas, polars) or array of shape (n, K)
        Larger is better.
    sample_weight : array-like of shape (n,), optional
        Multiplied in.

    Returns
    -------
    WeightedLabels

    Notes
    -----
    A policy that picks k in row i pays ``sum over j != k of (r_ij - min_i)``, which is ``sum_j (r_ij - min_i) - (r_ik -
    min_i)``: the regret plus ``sum_j (r_ij - min_i) - (max_i - min_i)``, the same for every policy. This is the
    reduction of cost-sensitive to weighted classification of Abe, Zadrozny & Langford (2004, KDD), section 4.

    Examples
    --------
    >>> import pandas as pd
    >>> from policytree.weighting import weighted_labels
    >>> rewards = pd.DataFrame({"drug": [2.0, 0.0, 1.0, 3.0], "none": [0.0, 1.0, 1.0, 0.0]})
    >>> labels = weighted_labels(rewards)
    >>> labels.label.tolist(), labels.weight.tolist()
    (['drug', 'none', 'drug'], [2.0, 1.0, 3.0])
    """
    values, labels = _reward_values(rewards)
    w = weights(sample_weight, len(values), "rewards")
    excess = values - values.min(axis=1, keepdims=True)
    if w is not None:
        excess *= w[:, None]
    row, k = np.nonzero(excess > 0.0)
    constant = float((excess.sum(axis=1) - excess.max(axis=1)).sum())
    return WeightedLabels(row.astype(np.int64), labels[k], excess[row, k], constant)
