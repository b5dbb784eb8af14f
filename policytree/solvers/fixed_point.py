"""Losses as int64 fixed point: sums become exact, independent of order, and ties become visible."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policytree.exceptions import InputError

HEADROOM_BITS = 56  # every sum of losses stays below 2**56; "forbidden" is 2**60


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
    """

    planes: np.ndarray
    leaf_penalty: int
    exponent: int
    resolution: float

    def to_float(self, value: int) -> float:
        """A scaled number in the losses' unit."""
        return float(np.ldexp(float(value), -self.exponent))


def to_fixed_point(losses: np.ndarray, leaf_penalty: float, most_leaves: int) -> FixedPoint:
    """Scale losses (n, K) and the leaf penalty to integers, for trees of up to ``most_leaves`` leaves.

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
    penalty = min(float(leaf_penalty), 2.0 * total)
    exponent = HEADROOM_BITS - 1 - int(np.ceil(np.log2(total))) if total > 0 else 0
    scaled = np.rint(np.ldexp(relative, exponent))
    error = float(np.abs(np.ldexp(relative, exponent) - scaled).max(axis=1, initial=0.0).sum())
    scaled_penalty = round(float(np.ldexp(penalty, exponent)))
    # Rounding moves two trees' objectives apart by at most twice its sum, and a leaf by the penalty's own rounding.
    error = 2.0 * error + most_leaves * abs(float(np.ldexp(penalty, exponent)) - scaled_penalty)
    resolution = float(np.ldexp(error, -exponent)) if error else 0.0
    planes = np.ascontiguousarray(scaled.T, dtype=np.int64)
    return FixedPoint(planes, scaled_penalty, exponent, resolution)
