"""Bounds from the repetitions of a cross-fitting, put together as held-out values are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri, stdtrit

from policytree.evaluation.estimates import Estimate, between_factor, repeated_estimate
from policytree.evaluation.inference.cluster_bootstrap import ClusterBootstrap, percentile
from policytree.evaluation.inference.partial_identification import LARGEST_GAMMA, Bounds


class ContrastBounds(Protocol):
    """Bounds of one contrast for every Gamma."""

    def value(self, gamma: float, largest: bool) -> float:
        """One end."""
        ...

    def estimate(self, gamma: float, largest: bool, level: float) -> Estimate:
        """The same with its influences."""
        ...

    def bootstrap(self, gammas: np.ndarray, bootstrap: ClusterBootstrap) -> np.ndarray:
        """Both ends for every Gamma in every draw: (n_draws, n_gammas, 2)."""
        ...


@dataclass(frozen=True, slots=True)
class Repetitions:
    """The rule that combines the ends of bounds, and of intervals, over repetitions.

    Attributes
    ----------
    n_folds : int
        Of every repetition.
    level : float
    degrees : int
        Degrees of freedom, clusters less one.
    """

    n_folds: int
    level: float
    degrees: int

    def bounds(self, ends: Sequence[tuple[Estimate, Estimate]], draws: Sequence[np.ndarray] | None) -> Bounds:
        """Means of both ends, and the interval.

        Parameters
        ----------
        ends : sequence of (Estimate, Estimate)
            Lower and upper end of every repetition.
        draws : sequence of ndarray of shape (n_draws, 2), or None
            Their bootstrap draws; None for no interval.
        """
        lower, upper = (repeated_estimate([pair[k] for pair in ends], self.n_folds) for k in (0, 1))
        low = high = np.nan
        if draws is not None:
            values = np.array([[estimate.value for estimate in pair] for pair in ends])
            low = self.interval_end(values[:, 0], [d[:, 0] for d in draws], upper=False)
            high = self.interval_end(values[:, 1], [d[:, 1] for d in draws], upper=True)
        return Bounds(
            lower.value, upper.value, lower.standard_error, upper.standard_error, low, high,
            lower.influence, upper.influence,
        )  # fmt: skip

    def interval_end(self, values: np.ndarray, draws: Sequence[np.ndarray], *, upper: bool) -> float:
        """One end of the interval, from the ends of the bounds (R,) and their bootstrap draws.

        Of one repetition, the percentile of its draws. Of several, the draws less the value of their repetition are
        pooled: their variance is ``N``, and their percentile gives a half-width. The folds' rules have seen each
        other's noise, which no draw with fixed rules shows; ``kappa b`` stands for it, as in held-out values, and gives
        another half-width. The interval takes the root of the sum of their squares, both by Student's t.
        """
        tail = (1 - self.level) / 2
        probability = 1 - tail if upper else tail
        if len(values) == 1:
            return percentile(draws[0], probability)
        offset = percentile(np.concatenate([d - v for d, v in zip(draws, values, strict=True)]), probability)
        t = float(stdtrit(self.degrees, 1 - tail))
        within = max(0.0, offset if upper else -offset) * t / float(ndtri(1 - tail))
        between = t * np.sqrt(between_factor(self.n_folds, len(values)) * values.var(ddof=1))
        return float(values.mean() + (1 if upper else -1) * np.hypot(within, between))


@dataclass(frozen=True, slots=True)
class RepeatedBounds:
    """One kind of bounds, by all repetitions.

    Attributes
    ----------
    parts : sequence of ContrastBounds
        One per repetition.
    repetitions : Repetitions
    bootstrap : ClusterBootstrap, or None
        None on the rows that chose the policy: no intervals.
    """

    parts: Sequence[ContrastBounds]
    repetitions: Repetitions
    bootstrap: ClusterBootstrap | None

    def at(self, gammas: np.ndarray) -> tuple[Bounds, ...]:
        """Bounds for every Gamma."""
        draws = None
        if self.bootstrap is not None:
            draws = [part.bootstrap(gammas, self.bootstrap) for part in self.parts]
        out, level = [], self.repetitions.level
        for j, gamma in enumerate(gammas):
            ends = [
                (part.estimate(float(gamma), False, level), part.estimate(float(gamma), True, level))
                for part in self.parts
            ]
            out.append(self.repetitions.bounds(ends, None if draws is None else [d[:, j] for d in draws]))
        return tuple(out)

    def tipping(self) -> tuple[float, float]:
        """The smallest Gamma at which bounds and interval hold zero; inf if none does, NaN without an interval."""
        upper = self._mean(1.0, False) < 0  # the end that faces zero
        sign = -1.0 if upper else 1.0
        point = smallest_gamma(lambda gamma: sign * self._mean(gamma, upper), LARGEST_GAMMA)
        if self.bootstrap is None:
            return point, np.nan
        return point, smallest_gamma(lambda gamma: sign * self._interval_end(gamma, upper), point)

    def _mean(self, gamma: float, largest: bool) -> float:
        return float(np.mean([part.value(gamma, largest) for part in self.parts]))

    def _interval_end(self, gamma: float, upper: bool) -> float:
        assert self.bootstrap is not None
        draws = [part.bootstrap(np.array([gamma]), self.bootstrap)[:, 0, int(upper)] for part in self.parts]
        values = np.array([part.value(gamma, upper) for part in self.parts])
        return self.repetitions.interval_end(values, draws, upper=upper)


def smallest_gamma(distance: Callable[[float], float], guess: float) -> float:
    """Where a distance from zero that falls with Gamma is gone: 1 where it is at once, inf where it never is.

    ``guess`` is likely beyond it, which saves steps.
    """

    def left(log_gamma: float) -> float:
        return distance(float(np.exp(log_gamma)))

    if left(0.0) <= 0:
        return 1.0
    end = float(np.log(min(guess, LARGEST_GAMMA)))
    if left(end) > 0:
        end = float(np.log(LARGEST_GAMMA))
        if left(end) > 0:
            return np.inf
    return float(np.exp(brentq(left, 0.0, end, xtol=1e-9)))
