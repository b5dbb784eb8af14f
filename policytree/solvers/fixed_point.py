"""Losses as int64 fixed point: sums become exact, independent of order, and ties become visible."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policytree.exceptions import InputError

HEADROOM_BITS = 56  # every sum of losses stays below 2**56; "forbidden" is 2**60
MASS_BITS = 28  # the mass of all rows stays below 2**28: tables hold int32
MOST_PRICED = 20  # splits on a path whose price at most enters a bound


@dataclass(frozen=True, slots=True)
class FixedPoint:
    """Losses relative to action 0, scaled by a power of two (so that integer losses stay exact).

    Attributes
    ----------
    planes : ndarray of shape (K - 1, n), int64
        ``round((losses[:, k] - losses[:, 0]) * 2**exponent)`` for k = 1 .. K - 1.
    leaf_penalty : int
        The penalty on the same scale; more than any tree can save is cut down to just that.
    exponent : int
    resolution : float
        The largest difference, in the losses' unit, that rounding can make to any tree's objective.
    prices : ndarray of shape (n_features,), int64, or None
        What a split costs for every unit of ``mass`` that reaches it; None if splits are free.
    mass : ndarray of shape (n,), int64, or None
    """

    planes: np.ndarray
    leaf_penalty: int
    exponent: int
    resolution: float
    prices: np.ndarray | None = None
    mass: np.ndarray | None = None

    def to_float(self, value: int) -> float:
        """A scaled number in the losses' unit."""
        return float(np.ldexp(float(value), -self.exponent))


def to_fixed_point(
    losses: np.ndarray, leaf_penalty: float, most_leaves: int, costs=None, weights=None, *, forced: bool = False
) -> FixedPoint:
    """Scale losses (n, K) and the leaf penalty to integers, for trees of up to ``most_leaves`` leaves.

    ``costs`` (n_features,): what a split on each feature costs for every unit of the rows' ``weights`` (n,).
    ``forced``: whether constraints may force a tree to pay for leaves and splits more than they can save: then prices
    are not cut down to just that.

    Raises
    ------
    InputError
        If losses or penalty are not finite, or so large that their sum overflows.
    """
    if not np.isfinite(losses).all():
        raise InputError("losses must be finite; replace or drop rows with missing or infinite losses.")
    if not (np.isfinite(leaf_penalty) and leaf_penalty >= 0):
        raise InputError(f"The leaf penalty (regularization) must be a finite number >= 0; got {leaf_penalty}.")
    with np.errstate(over="ignore"):
        relative = losses[:, 1:] - losses[:, :1]
        total = float(np.abs(relative).max(axis=1, initial=0.0).sum())
    if not np.isfinite(total):
        raise InputError("losses are too large to be added up; divide them by a constant.")
    penalty = float(leaf_penalty) if forced else min(float(leaf_penalty), 2.0 * total)
    costs, weights = _useful_costs(relative, costs, weights, forced)
    largest = total + MOST_PRICED * float(costs.max(initial=0.0) * weights.sum())
    largest += most_leaves * penalty if forced else 0.0
    exponent = HEADROOM_BITS - 1 - int(np.ceil(np.log2(largest))) if largest > 0 else 0
    scaled = np.rint(np.ldexp(relative, exponent))
    error = float(np.abs(np.ldexp(relative, exponent) - scaled).max(axis=1, initial=0.0).sum())
    scaled_penalty = round(float(np.ldexp(penalty, exponent)))
    # Rounding moves two trees' objectives apart by at most twice its sum, and a leaf by the penalty's own rounding.
    error = 2.0 * error + most_leaves * abs(float(np.ldexp(penalty, exponent)) - scaled_penalty)
    planes = np.ascontiguousarray(scaled.T, dtype=np.int64)
    prices = mass = None
    if costs.any():
        prices, mass, more = _scaled_costs(costs, weights, exponent)
        error += 2.0 * min(most_leaves - 1, MOST_PRICED) * more
    resolution = float(np.ldexp(error, -exponent)) if error else 0.0
    return FixedPoint(planes, scaled_penalty, exponent, resolution, prices, mass)


def _useful_costs(relative: np.ndarray, costs, weights, forced: bool) -> tuple[np.ndarray, np.ndarray]:
    """Costs and weights as float64, unless forced cut down to what surely forbids a split: more than it can save."""
    if costs is None or not len(costs) or relative.shape[1] == 0:
        return np.zeros(1), np.zeros(1)
    weights = np.ones(len(relative)) if weights is None else np.asarray(weights, dtype=np.float64)
    if not weights.any():
        return np.zeros(1), weights
    if forced:
        return np.asarray(costs, dtype=np.float64), weights
    range_ = np.maximum(relative.max(axis=1), 0.0) - np.minimum(relative.min(axis=1), 0.0)
    if (range_[weights == 0] > 0).any():
        return np.asarray(costs, dtype=np.float64), weights
    most = float((range_[weights > 0] / weights[weights > 0]).max(initial=0.0))
    return np.minimum(costs, 2.0 * most), weights


def _scaled_costs(costs: np.ndarray, weights: np.ndarray, exponent: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Integer prices and masses whose products are scaled costs, and the largest error of one level of splits."""
    whole = bool((weights == np.rint(weights)).all())
    shift = 0 if whole and weights.sum() < 2**MASS_BITS else MASS_BITS - 1 - int(np.ceil(np.log2(weights.sum())))
    mass = np.rint(np.ldexp(weights, shift))
    prices = np.rint(np.ldexp(costs, exponent - shift))
    wrong_mass = float(np.abs(np.ldexp(weights, shift) - mass).sum()) * float(np.ldexp(costs.max(), exponent - shift))
    wrong_price = float(np.abs(np.ldexp(costs, exponent - shift) - prices).max() * mass.sum())
    return prices.astype(np.int64), mass.astype(np.int64), wrong_mass + wrong_price
