"""The conditional density of doses given covariates (the generalised propensity score): location, scale, residuals.

``dose = mean(x) + scale(x) * residual``, where the residual has the same distribution for everybody: that of the
standardised out-of-fold residuals. Hirano and Imbens (2004) take a normal one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from policytree.model_selection.folds import FoldPlan
from policytree.weighting.dose.outcome import Mixture, Staged, fits_of, mixed, with_weight
from policytree.weighting.stacking import boosted_stages, linear_stages, prepared

LEARNERS = ("linear", "boosted")
N_QUANTILES = 200  # representing the distribution of residuals
SCALES = 1 / 3, 3.0  # of the scale at some covariates, by that of all rows
SMALLEST = 1e-3  # of squared residuals, by their mean, before their logarithm is taken
AT_ONCE = 2_000_000  # numbers held at once
EULER = 1.2704  # mean of minus the logarithm of a squared standard normal number


def kernel(distance: np.ndarray) -> np.ndarray:
    """Epanechnikov's kernel of distances in bandwidths, one at zero and zero from one on."""
    return np.maximum(1.0 - distance**2, 0.0)


@dataclass(frozen=True, slots=True)
class DoseDensity:
    """The density of one fold, which it did not see.

    Attributes
    ----------
    location : Mixture
    log_variance : Mixture
    variance : float
        Of all residuals.
    residuals : ndarray of shape (N_QUANTILES,)
        Quantiles of the standardised residuals, at equal steps of probability.
    width, factor : float
        Bandwidth of the residuals' density, and what makes the mean of its score times the residual one.
    """

    location: Mixture
    log_variance: Mixture
    variance: float
    residuals: np.ndarray
    width: float
    factor: float

    def location_scale(self, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and scale of the dose, (n,) each."""
        return self.location.predict(Z), _scale(self.log_variance.predict(Z), self.variance)

    def near(self, Z: np.ndarray, grid: np.ndarray, bandwidth: float) -> np.ndarray:
        """Expected kernel weight of every dose of a grid, (n, K): the chance of a dose near it, closer ones count more.

        ``E[k((dose - g) / bandwidth) | x]``, by :func:`kernel`; at most one.
        """
        mean, scale = self.location_scale(Z)
        out, step = np.empty((len(Z), len(grid))), max(1, AT_ONCE // len(self.residuals))
        for start in range(0, len(Z), step):
            at = slice(start, start + step)
            doses = mean[at, None] + scale[at, None] * self.residuals
            for k, g in enumerate(grid):
                out[at, k] = kernel((doses - g) / bandwidth).mean(axis=1)
        return out

    def score(self, Z: np.ndarray, dose: np.ndarray) -> np.ndarray:
        """Minus the derivative of the logarithm of the density by the dose, (n,)."""
        mean, scale = self.location_scale(Z)
        return self.factor * residual_score((dose - mean) / scale, self.residuals, self.width) / scale


def residual_score(at: np.ndarray, residuals: np.ndarray, width: float) -> np.ndarray:
    """Minus the derivative of the logarithm of a Gaussian kernel density of ``residuals``, at some points, (n,)."""
    out, step = np.empty(len(at)), max(1, AT_ONCE // len(residuals))
    for start in range(0, len(at), step):
        u = (at[start : start + step, None] - residuals) / width
        exponent = -0.5 * u**2
        weight = np.exp(exponent - exponent.max(axis=1, keepdims=True))
        out[start : start + step] = (weight * u).sum(axis=1) / weight.sum(axis=1) / width
    return out


def _scale(log_variance: np.ndarray, variance: float) -> np.ndarray:
    return np.sqrt(variance) * np.clip(np.exp(0.5 * log_variance), *SCALES)


def _fit(kind: str, X, y, sample_weight=None, groups=None) -> Staged:
    X, y, w = with_weight(X, y, sample_weight)
    return Staged(boosted_stages(X, y, w, False) if kind == "boosted" else linear_stages(prepared(), X, y, w, False))


def cross_fit_density(
    learner: Any,
    Z: np.ndarray,
    dose: np.ndarray,
    plan: FoldPlan,
    sample_weight: np.ndarray | None,
    groups: np.ndarray | None,
) -> tuple[DoseDensity, ...]:
    """The density of doses given covariates, for every fold that did not see it.

    Parameters
    ----------
    learner : scikit-learn regressor, or None
        Of the mean; None mixes ridge regression and boosted trees. The scale is always fitted by these.
    Z : ndarray of shape (n, q)
    dose : ndarray of shape (n,)
    plan : FoldPlan
    sample_weight, groups : ndarray of shape (n,), or None
    """
    w = np.ones(len(dose)) if sample_weight is None else sample_weight
    location = mixed(fits_of(learner, LEARNERS, _fit, Z, dose, plan, sample_weight, groups), dose, w)
    residual = dose - out_of_fold(location, Z, plan)
    square = residual**2
    variance = float(np.average(square, weights=w)) or 1.0
    log_square = np.log(square / variance + SMALLEST) + EULER
    spread = mixed(fits_of(None, LEARNERS, _fit, Z, log_square, plan, sample_weight, None), log_square, w)
    standard = residual / _scale(out_of_fold(spread, Z, plan), variance)
    densities = []
    for f in range(plan.n_folds):
        own = (plan.fold != f) & (w > 0.0)
        # One scale more, so that the residuals of these rows have the variance that the model gives them.
        factor = float(np.average(standard[own] ** 2, weights=w[own])) or 1.0
        found = standard[own] / np.sqrt(factor)
        quantiles = _quantiles(found, w[own])
        width = 1.06 * max(int(own.sum()), 2) ** (-1 / 7)
        identity = float(np.average(residual_score(found, quantiles, width) * found, weights=w[own]))
        densities.append(
            DoseDensity(location[f], spread[f], variance * factor, quantiles, width, 1.0 / max(identity, 0.1))
        )
    return tuple(densities)


def out_of_fold(models: tuple[Mixture, ...], Z: np.ndarray, plan: FoldPlan) -> np.ndarray:
    """Predict every row by the model of its fold, (n,)."""
    out = np.empty(len(Z))
    for f, (_, test) in enumerate(plan.splits()):
        out[test] = models[f].predict(Z[test])
    return out


def _quantiles(values: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Quantiles at the middle of N_QUANTILES equal parts of the weight."""
    order = np.argsort(values)
    reached = (np.cumsum(w[order]) - 0.5 * w[order]) / w.sum()
    return np.interp((np.arange(N_QUANTILES) + 0.5) / N_QUANTILES, reached, values[order])
