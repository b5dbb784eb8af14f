"""Bounds of a gain that is biased by at most so much a person, and the size of the bias at which nothing is left.

What people of the covariates x gain by a rule over another is off by b(x), and all that is known is ``|b(x)| <= size *
exposure(x)``. Then the gain lies between its estimate less and plus ``size`` times the mean exposure, and no nearer
bounds hold, for b may have the one sign or the other wherever the rules differ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from policytree.evaluation.estimates import Estimate
from policytree.evaluation.inference.partial_identification import Bounds


@dataclass(frozen=True, slots=True)
class BoundedBias:
    """A gain with a bias of bounded size.

    Attributes
    ----------
    gains : list of ndarray of shape (n,)
        What the rule brings every row beyond the other, one array per repetition of a cross-fitting.
    exposures : list of ndarray of shape (n,)
        Largest bias of every row, in units of ``size``; 0 where both rules agree.
    combine : function of a list like ``gains`` to an Estimate
        Counts clusters, weights and repetitions.
    """

    gains: list[np.ndarray]
    exposures: list[np.ndarray]
    combine: Callable[[list[np.ndarray]], Estimate]

    @property
    def estimate(self) -> Estimate:
        """The gain without any bias."""
        return self.combine(self.gains)

    @property
    def exposure(self) -> float:
        """Mean of the exposures: by how much the gain moves per unit of ``size``."""
        return self.combine(self.exposures).value

    def end(self, size: float, *, upper: bool) -> Estimate:
        """One end of the bounds."""
        sign = 1.0 if upper else -1.0
        return self.combine([g + sign * size * e for g, e in zip(self.gains, self.exposures, strict=True)])

    def bounds(self, size: float, *, with_interval: bool) -> Bounds:
        """Both ends, and the interval: the lower end's lower limit and the upper end's upper limit."""
        low, high = self.end(size, upper=False), self.end(size, upper=True)
        ends = (low.lower, high.upper) if with_interval else (np.nan, np.nan)
        return Bounds(
            low.value, high.value, low.standard_error, high.standard_error, *ends, low.influence, high.influence
        )

    def tipping(self) -> tuple[float, float]:
        """The smallest size at which the bounds, and the interval, hold zero; inf where no row is exposed."""
        estimate, exposure = self.estimate, self.exposure
        point = 0.0 if estimate.value == 0.0 else abs(estimate.value) / exposure if exposure > 0.0 else np.inf
        upper = estimate.value < 0.0  # the end that faces zero

        def left(size: float) -> float:
            end = self.end(size, upper=upper)
            return -end.upper if upper else end.lower

        if not left(0.0) > 0.0:
            return point, 0.0
        if not np.isfinite(point):
            return point, np.inf
        # The value falls linearly and the standard error is convex in the size, so that this is concave: one root.
        return point, float(brentq(left, 0.0, point, xtol=1e-12 * max(1.0, point)))
