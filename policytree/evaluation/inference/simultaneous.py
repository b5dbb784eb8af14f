"""Intervals that hold together: critical values and medians of the largest of several correlated estimates."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student_t

DRAWS = 20_000
SEED = 20_160_411  # draws of a given size are the same in every call: intervals do not change from run to run


def gaussian_draws(covariance: np.ndarray) -> np.ndarray:
    """Draws of standardised estimates, shape (DRAWS, q), from their covariance (q, q); a zero variance gives zeros.

    This is the Gaussian multiplier bootstrap: the sum of influences, each (cluster) times an independent standard
    normal number, is normal with just this covariance, so it need not be done row by row.

    References
    ----------
    Chernozhukov, Chetverikov and Kato (2013), Annals of Statistics 41(6), 2786-2819.
    """
    scale = np.sqrt(np.diag(covariance))
    safe = np.where(scale > 0, scale, 1.0)
    values, vectors = np.linalg.eigh(covariance / np.outer(safe, safe))
    root = vectors * np.sqrt(np.clip(values, 0.0, None))
    normal = np.random.default_rng(SEED).standard_normal((DRAWS, len(scale)))
    return normal @ root.T


def critical_values(covariance: np.ndarray, degrees: np.ndarray, level: float) -> np.ndarray:
    """Half-widths, in standard errors, of two-sided intervals that hold all at once with probability ``level``.

    The largest absolute value of the Gaussian draws gives one number; each estimate then takes the quantile of
    Student's t, by its own degrees of freedom, that has the same two-sided tail.

    Parameters
    ----------
    covariance : ndarray of shape (q, q)
    degrees : ndarray of shape (q,)
        Degrees of freedom, >= 1.
    level : float

    Returns
    -------
    ndarray of shape (q,)
    """
    largest = np.quantile(np.abs(gaussian_draws(covariance)).max(axis=1), level)
    return student_t.isf(norm.sf(largest), degrees)


def upper_critical_values(covariance: np.ndarray, degrees: np.ndarray, probability: float) -> np.ndarray:
    """Half-widths, in standard errors, of lower bounds that hold all at once with this probability.

    The one-sided form of :func:`critical_values`: the largest of the Gaussian draws gives one number, and each estimate
    takes the quantile of Student's t that has the same tail. Estimates without variance have no error.

    Parameters
    ----------
    covariance : ndarray of shape (q, q)
    degrees : ndarray of shape (q,)
        Degrees of freedom, >= 1.
    probability : float

    Returns
    -------
    ndarray of shape (q,)
    """
    varying = np.diag(covariance) > 0
    if not varying.any():
        return np.zeros(len(degrees))
    draws = gaussian_draws(covariance[np.ix_(varying, varying)])
    largest = np.quantile(draws.max(axis=1), probability)
    return np.where(varying, student_t.isf(norm.sf(largest), degrees), 0.0)


def smallest(values: np.ndarray, covariance: np.ndarray, n: int) -> float:
    """A half-median-unbiased estimate of the smallest of several true values.

    The smallest estimate is too small on average: the luckiest one is picked. This adds to every estimate the median of
    the largest standardised error, in its own standard errors, and takes the smallest of the sums; estimates that are
    clearly not the smallest are left out first.

    Parameters
    ----------
    values : ndarray of shape (q,)
        Estimates.
    covariance : ndarray of shape (q, q)
    n : int
        Rows behind them; it sets what "clearly" is.

    References
    ----------
    Chernozhukov, Lee and Rosen (2013), Intersection bounds, Econometrica 81(2), 667-737, section 3 and algorithm 1.
    """
    error = np.sqrt(np.diag(covariance))
    draws = gaussian_draws(covariance)
    cut = np.quantile(draws.max(axis=1), 1 - 0.1 / np.log(max(n, 3)))
    near = values <= (values + cut * error).min() + 2 * cut * error
    middle = float(np.median(draws[:, near].max(axis=1)))
    return float((values[near] + middle * error[near]).min())
