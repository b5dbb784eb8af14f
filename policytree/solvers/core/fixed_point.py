"""Losses as int64 fixed point: sums are exact, independent of order, and pruning needs no tolerance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policytree.exceptions import InputError
from policytree.solvers.core.exact_sums import rounded_sum

HEADROOM_BITS = 56  # every sum of losses stays below 2**56; "forbidden" is 2**60
MOST_PRICED = 20  # splits on a path whose price at most enters a bound
COARSEST = 1e-6  # resolution that is still good enough, relative to what losses may differ by


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
    groups : ndarray of shape (n_features,), int64, or None
        Which of the different prices, ascending, a split on a feature has; None if splits are free.
    charges : ndarray of shape (n_prices, n), int64, or None
        Charge of every row for a split of each price that it reaches.
    """

    planes: np.ndarray
    leaf_penalty: int
    exponent: int
    resolution: float
    groups: np.ndarray | None = None
    charges: np.ndarray | None = None

    def to_float(self, value: float) -> float:
        """A scaled number in the losses' unit."""
        return float(np.ldexp(float(value), -self.exponent))

    def losses_are_short(self) -> bool:
        """Whether all sums of losses fit int16, under any actions and of any rows, in units of a power of two.

        At least as strict as ``sums_are_short`` of kernels/depth_three, which looks at the rows of a node.
        """
        bits = int(np.bitwise_or.reduce(self.planes, axis=None))
        unit = max(bits & -bits, 1)
        below = -(self.planes.min(axis=0, initial=0) // unit).sum()
        above = (self.planes.max(axis=0, initial=0) // unit).sum()
        return bool(max(below, above) < 1 << 15)


def to_fixed_point(
    losses: np.ndarray, leaf_penalty: float, most_leaves: int, costs=None, weights=None, *, all_trees: bool = False
) -> FixedPoint:
    """Scale losses (n, K) and the leaf penalty to integers, for trees of up to ``most_leaves`` leaves.

    ``costs`` (n_features,): what a split on each feature costs for every unit of the rows' ``weights`` (n,).
    ``all_trees``: trees matter that are far from the best one, because they are compared or because constraints force
    them to pay more than they save, so that no price is cut down.

    Raises
    ------
    InputError
        If losses or penalty are not finite, or so large that their sum overflows. With ``all_trees``, if prices are so
        much larger than losses that these would be rounded away.
    """
    if not np.isfinite(losses).all():
        raise InputError("losses must be finite; replace or drop rows with missing or infinite losses.")
    if not (np.isfinite(leaf_penalty) and leaf_penalty >= 0):
        raise InputError(f"The leaf penalty (regularization) must be a finite number >= 0; got {leaf_penalty}.")
    with np.errstate(over="ignore"):
        relative = losses[:, 1:] - losses[:, :1]
        total = rounded_sum(np.abs(relative).max(axis=1, initial=0.0))  # the scale must not depend on the order of rows
    penalty = float(leaf_penalty) if all_trees else min(float(leaf_penalty), 2.0 * total)
    costs, weights = _useful_costs(relative, costs, weights, all_trees)
    largest = total + MOST_PRICED * float(costs.max(initial=0.0) * weights.sum()) + all_trees * most_leaves * penalty
    exponent = exponent_of(largest)
    scaled = np.rint(np.ldexp(relative, exponent))
    error = float(np.abs(np.ldexp(relative, exponent) - scaled).max(axis=1, initial=0.0).sum())
    scaled_penalty = round(float(np.ldexp(penalty, exponent)))
    # Rounding moves two trees' objectives apart by at most twice its sum, and a leaf by the penalty's own rounding.
    error = 2.0 * error + most_leaves * abs(float(np.ldexp(penalty, exponent)) - scaled_penalty)
    planes = np.ascontiguousarray(scaled.T, dtype=np.int64)
    groups = charges = None
    if costs.any():
        groups, charges, more = _charges(costs, weights, exponent)
        error += 2.0 * min(most_leaves - 1, MOST_PRICED) * more
    resolution = float(np.ldexp(error, -exponent)) if error else 0.0
    if all_trees:
        _refuse_coarse(resolution, total)
    return FixedPoint(planes, scaled_penalty, exponent, resolution, groups, charges)


def exponent_of(total: float) -> int:
    """The power of two that numbers are multiplied by whose sizes add up to so much."""
    return HEADROOM_BITS - 1 - int(np.ceil(np.log2(total))) if total > 0 else 0


def _refuse_coarse(resolution: float, total: float) -> None:
    """Refuse prices that leave too few digits to losses that differ by ``total``."""
    if resolution > COARSEST * total > 0:
        raise InputError(
            "regularization or feature_costs are so much larger than rewards or losses that trees cannot be told "
            "apart; lower them, or forbid by max_leaf_nodes or split_features."
        )


def useful_costs(losses: np.ndarray, costs: np.ndarray, weights) -> np.ndarray:
    """Costs of features, cut down to more than a split can ever save where they are larger."""
    return np.minimum(costs, _useful_costs(losses[:, 1:] - losses[:, :1], costs, weights, False)[0])


def _useful_costs(relative: np.ndarray, costs, weights, all_trees: bool) -> tuple[np.ndarray, np.ndarray]:
    """Costs and weights as float64, costs cut down to what surely forbids a split: more than it can ever save.

    With ``all_trees`` they stay as they are.
    """
    if costs is None or not len(costs) or relative.shape[1] == 0:
        return np.zeros(1), np.zeros(1)
    weights = np.ones(len(relative)) if weights is None else np.asarray(weights, dtype=np.float64)
    if not weights.any():
        return np.zeros(1), weights
    range_ = np.maximum(relative.max(axis=1), 0.0) - np.minimum(relative.min(axis=1), 0.0)
    if all_trees or (range_[weights == 0] > 0).any():
        return np.asarray(costs, dtype=np.float64), weights
    most = float((range_[weights > 0] / weights[weights > 0]).max(initial=0.0))
    return np.minimum(costs, 2.0 * most), weights


def _charges(costs: np.ndarray, weights: np.ndarray, exponent: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Every feature's price among the different ones, what rows pay for each, and the largest error of one level.

    Products are rounded one by one, so that real weights are as exact as losses are.
    """
    prices, groups = np.unique(costs, return_inverse=True)
    exact = np.ldexp(prices[:, None] * weights, exponent)
    charges = np.rint(exact)
    error = float(np.abs(exact - charges).sum(axis=1).max())
    return groups.astype(np.int64), charges.astype(np.int64), error
