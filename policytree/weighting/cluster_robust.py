"""Weighted means of per-row scores and their variance, robust to dependence within clusters."""

from __future__ import annotations

import numpy as np


def mean_and_influence(scores: np.ndarray, weight: np.ndarray) -> tuple[float, np.ndarray]:
    """Weighted mean of scores, and each row's influence on it.

    Parameters
    ----------
    scores : ndarray of shape (n,)
    weight : ndarray of shape (n,)
        At least 0; their sum is positive.

    Returns
    -------
    mean : float
        ``m = sum(w s) / sum(w)``.
    influence : ndarray of shape (n,)
        ``n w_i (s_i - m) / sum(w)``.
    """
    total = weight.sum()
    mean = float(weight @ scores / total)
    return mean, len(scores) * weight * (scores - mean) / total


def n_units(weight: np.ndarray, groups: np.ndarray | None) -> int:
    """Clusters of positive weight; rows where ``groups`` is None."""
    return int((weight > 0).sum()) if groups is None else len(np.unique(groups[weight > 0]))


def variance_of_mean(influence: np.ndarray, groups: np.ndarray | None, n_clusters: int) -> float:
    """Variance of a mean from its influences, summed within clusters; NaN for fewer than two clusters.

    ``G / (G - 1)`` times the sum of squared cluster sums, over ``n ** 2``; ``groups`` (n,) are codes 0, 1, ...
    """
    if n_clusters < 2:
        return np.nan
    sums = influence if groups is None else np.bincount(groups, weights=influence)
    return n_clusters / (n_clusters - 1) * float(sums @ sums) / len(influence) ** 2


def degrees_of_variance(influence: np.ndarray, groups: np.ndarray | None, n_clusters: int) -> int:
    """Degrees of freedom of :func:`variance_of_mean` where rows differ in how much they may move the mean.

    With cluster sums ``s``, ``3 (sum s^2)^2 / sum s^4``, and at most ``G - 1``: the degrees of Satterthwaite's
    approximation if the sums are normal, each with a variance of its own. A few rows that make up most of the variance
    then count as few, and of two samples that are added the one that varies more decides (Welch).
    """
    sums = influence if groups is None else np.bincount(groups, weights=influence)
    largest = np.abs(sums).max(initial=0.0)
    if largest == 0.0:
        return n_clusters - 1
    squares = (sums / largest) ** 2
    return min(n_clusters - 1, int(3.0 * squares.sum() ** 2 / (squares @ squares)))


def covariance_of_means(influence: np.ndarray, weight: np.ndarray, groups: np.ndarray | None) -> np.ndarray:
    """Covariance (M, M) of means from their influences (n, M), summed within clusters, as :func:`variance_of_mean`."""
    units = n_units(weight, groups)
    sums = influence
    if groups is not None:
        sums = np.column_stack([np.bincount(groups, weights=column) for column in influence.T])
    return units / max(units - 1, 1) * (sums.T @ sums) / len(influence) ** 2
