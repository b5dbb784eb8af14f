"""Bounds of a quantity that the data do not pin down, with their standard errors and an interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LARGEST_GAMMA = 1e6  # beyond it, bounds that do not reach zero never do


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """A quantity lies between two numbers, which are estimated.

    Attributes
    ----------
    lower, upper : float
        Estimated ends, in the outcome's unit.
    lower_standard_error, upper_standard_error : float
        From influence functions, by clusters; the nuisances are taken as given. Of a repeated cross-fitting, with the
        variance between its repetitions (``N + kappa b``, as in :func:`policytree.cross_val_policy_value`).
    interval_lower, interval_upper : float
        A percentile bootstrap interval (by Student's t where bounds are means of scores): the lower quantile of the
        lower end and the upper quantile of the upper end, so that the quantity (not only its bounds) is covered; of a
        repeated cross-fitting, widened likewise. NaN on the rows that chose the policy.
    lower_influence, upper_influence : ndarray of shape (n,)
        Each row's influence on the ends; of a repeated cross-fitting, the mean over its repetitions.
    """

    lower: float
    upper: float
    lower_standard_error: float
    upper_standard_error: float
    interval_lower: float
    interval_upper: float
    lower_influence: np.ndarray
    upper_influence: np.ndarray

    def to_dict(self) -> dict[str, float]:
        """Everything but the influences, by name."""
        names = ("lower", "upper", "lower_standard_error", "upper_standard_error", "interval_lower", "interval_upper")
        return {name: getattr(self, name) for name in names}
