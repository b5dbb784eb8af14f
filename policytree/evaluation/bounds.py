"""Bounds of a quantity that the data do not pin down, with their standard errors and an interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policytree.evaluation.cluster_bootstrap import percentile
from policytree.evaluation.estimates import Estimate

LARGEST_GAMMA = 1e6  # beyond it, bounds that do not reach zero never do


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """A quantity lies between two numbers, which are estimated.

    Attributes
    ----------
    lower, upper : float
        Estimated ends, in the outcome's unit.
    lower_standard_error, upper_standard_error : float
        From influence functions, by clusters; the nuisances are taken as given.
    interval_lower, interval_upper : float
        A percentile bootstrap interval: the lower quantile of the lower end and the upper quantile of the upper end,
        so that the quantity (not only its bounds) is covered. NaN on the rows that chose the policy.
    lower_influence, upper_influence : ndarray of shape (n,)
        Each row's influence on the ends.
    """

    lower: float
    upper: float
    lower_standard_error: float
    upper_standard_error: float
    interval_lower: float
    interval_upper: float
    lower_influence: np.ndarray
    upper_influence: np.ndarray

    @classmethod
    def of(cls, lower: Estimate, upper: Estimate, draws: tuple[np.ndarray, np.ndarray], *, shown: bool) -> Bounds:
        """From both ends' estimates and bootstrap draws; without an interval unless ``shown``."""
        tail = (1 - lower.level) / 2
        low, high = (percentile(draws[0], tail), percentile(draws[1], 1 - tail)) if shown else (np.nan, np.nan)
        return cls(
            lower.value, upper.value, lower.standard_error, upper.standard_error, low, high,
            lower.influence, upper.influence,
        )  # fmt: skip

    def to_dict(self) -> dict[str, float]:
        """Everything but the influences, by name."""
        names = ("lower", "upper", "lower_standard_error", "upper_standard_error", "interval_lower", "interval_upper")
        return {name: getattr(self, name) for name in names}
