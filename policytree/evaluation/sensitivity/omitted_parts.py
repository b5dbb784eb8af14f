"""What omitted-variable bounds are made of: scores of the estimate, of sigma^2 and of nu^2, by repetitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from policytree.common.validation import is_real
from policytree.evaluation.estimates import Estimate
from policytree.evaluation.inference.cluster_bootstrap import ClusterBootstrap
from policytree.evaluation.sensitivity.contrasts import Contrast
from policytree.evaluation.sensitivity.repeated_bounds import Repetitions
from policytree.exceptions import InputError, quoted

LARGEST_SHARE = 1.0 - 1e-9  # an omitted variable cannot explain more


@dataclass(frozen=True, slots=True, eq=False)
class OmittedPart:
    """One repetition.

    In a single repetition a rule may differ from the baseline for few people, whose mean squared weight is hardly known
    and may come out negative. So the scale is that of the mean over all repetitions (``centre``), and each one's own is
    the linear expansion around it: their mean is the scale, and they differ as the repetitions do.

    Attributes
    ----------
    contrast : Contrast
    scores : ndarray of shape (n, 3)
        Every row's score of the estimate, of sigma^2 and of nu^2.
    means : ndarray of shape (3,)
    centre : ndarray of shape (3,)
        Mean of the means over all repetitions.
    draws : ndarray of shape (n_draws, 3)
        Bootstrapped means.
    """

    contrast: Contrast
    scores: np.ndarray
    means: np.ndarray
    centre: np.ndarray
    draws: np.ndarray

    @property
    def scale(self) -> float:
        """``sigma nu`` of all repetitions."""
        return float(_scale(self.centre[None])[0])

    @property
    def _slope(self) -> np.ndarray:
        """Of the scale, by sigma^2 and nu^2."""
        _, variance, square = self.centre
        return np.array([square, variance]) / (2 * self.scale) if self.scale else np.zeros(2)

    @property
    def own_scale(self) -> float:
        """``sigma nu`` of this repetition, to first order."""
        return self.scale + float((self.means - self.centre)[1:] @ self._slope)

    def end(self, strength: float, level: float) -> Estimate:
        """The lower end of the bounds for a negative strength, the upper one for a positive."""
        moved = self.scores[:, 0] + strength * (self.scores[:, 1:] - self.centre[1:]) @ self._slope
        return self.contrast.estimate(moved + strength * self.scale, level)

    def drawn_end(self, strength: float) -> np.ndarray:
        """The same in every draw."""
        around = self.draws - self.means + self.centre
        return self.draws[:, 0] + strength * (_scale(around) + self.own_scale - self.scale)


def omitted_parts(contrasts: Sequence[Contrast], bootstrap: ClusterBootstrap) -> tuple[OmittedPart, ...]:
    """One per repetition.

    Raises
    ------
    InputError
        If propensities contradict the data.
    """
    scores = [_scores(contrast) for contrast in contrasts]
    centre = mean_parts(contrasts)
    return tuple(
        OmittedPart(c, s, np.average(s, axis=0, weights=c.weight), centre, bootstrap.means(s))
        for c, s in zip(contrasts, scores, strict=True)
    )


def mean_parts(contrasts: Sequence[Contrast]) -> np.ndarray:
    """Estimate, sigma^2 and nu^2 on all rows, mean over the repetitions; (3,)."""
    means = np.mean([np.average(_scores(c), axis=0, weights=c.weight) for c in contrasts], axis=0)
    if means[2] <= 0:
        raise InputError(
            f"propensity is far from the shares that were treated: the mean square of the representer comes out at "
            f"{means[2]:.3g}, not above 0; estimate it anew or check it with overlap_table."
        )
    return means


def interval_robustness(parts: Sequence[OmittedPart], repetitions: Repetitions, rho: float, guess: float) -> float:
    """The smallest share of both at which the interval holds zero; likely less than ``guess``, the bounds' own."""
    values, scales = np.array([p.means[0] for p in parts]), np.array([p.own_scale for p in parts])
    upper = bool(values.mean() < 0)  # the end that faces zero
    sign = -1.0 if upper else 1.0

    def left(share: float) -> float:
        strength = -sign * rho * strength_of(share, share)
        draws = [part.drawn_end(strength) for part in parts]
        return sign * repetitions.interval_end(values + strength * scales, draws, upper=upper)

    if left(0.0) <= 0:
        return 0.0
    end = min(guess, LARGEST_SHARE)
    end = end if left(end) <= 0 else LARGEST_SHARE
    return 1.0 if left(end) > 0 else float(brentq(left, 0.0, end, xtol=1e-12))


def robustness(distance: float, scale: float) -> float:
    """The share ``r`` with ``scale r / sqrt(1 - r) = distance``: 0 where zero is held already."""
    if distance <= 0.0:
        return 0.0
    if scale == 0.0:
        return 1.0
    square = (distance / scale) ** 2
    return float(2.0 / (1.0 + np.sqrt(1.0 + 4.0 / square)))  # (sqrt(s^2 + 4 s) - s) / 2, without cancellation


def strength_of(cf_y: float, cf_d: float) -> float:
    """What the scale is multiplied by."""
    for name, value, end in (("cf_y", cf_y, "1]"), ("cf_d", cf_d, "1)")):
        if not is_real(value) or not (0.0 <= value < 1.0 or (value == 1.0 and end == "1]")):
            raise InputError(f"{name} must lie in [0, {end}; got {quoted(value)}.")
    return float(np.sqrt(cf_y * cf_d / (1.0 - cf_d)))


def _scores(contrast: Contrast) -> np.ndarray:
    """Every row's score of the estimate, of sigma^2 and of nu^2; (n, 3)."""
    seen, change, p = contrast.observed, contrast.change, contrast.propensity
    assert contrast.regression is not None
    if (p[change != 0] <= 0).any():
        raise InputError("propensity is zero for a treatment that is to be given; use a positive min_propensity.")
    rows = np.arange(seen.n)
    safe = np.where(change != 0, p, 1.0)
    alpha = change[rows, seen.arm] / safe[rows, seen.arm]
    residual = seen.y - contrast.regression[rows, seen.arm]
    return np.column_stack([contrast.scores(), residual**2, 2 * (change**2 / safe).sum(axis=1) - alpha**2])


def _scale(means: np.ndarray) -> np.ndarray:
    """``sigma nu`` of rows of (estimate, sigma^2, nu^2)."""
    return np.sqrt(np.clip(means[:, 1] * means[:, 2], 0.0, None))
