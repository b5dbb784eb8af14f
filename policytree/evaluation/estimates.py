"""Means with standard errors from influence functions: of one sample, of blocks, of repeated cross-fittings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from policytree.common.docstrings import shares_documentation
from policytree.common.row_labels import aligns_rows
from policytree.common.validation import check_level
from policytree.evaluation.formatting import estimate_text
from policytree.weighting.cluster_robust import degrees_of_variance, mean_and_influence, n_units, variance_of_mean
from policytree.weighting.stacked import averages_over_target

DIRECTIONS = ("maximize", "minimize")


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """A mean with its standard error and confidence interval, in the outcome's unit.

    Attributes
    ----------
    value : float
    standard_error : float
        NaN if there are fewer than two clusters.
    lower, upper : float
        Ends of the confidence interval.
    level : float
        Its coverage, for example 0.95.
    n : int
        Rows with positive weight.
    n_clusters : int
        Clusters with positive weight; equal to ``n`` without clusters.
    influence : ndarray of shape (n_rows,)
        Each row's influence on ``value``; they sum to zero. Subtract those of two estimates on the same rows to get the
        influence of their difference. A repeated cross-fitting has the mean over its repetitions; its standard error is
        larger than these influences imply.
    degrees_of_freedom : int
        Those of Student's t in the interval.
    between_variance : float
        Variance of the estimate between repetitions of a cross-fitting (b); part of the standard error. Zero where
        nothing was repeated.

    Examples
    --------
    >>> import pandas as pd
    >>> from policytree import policy_value
    >>> rewards = pd.DataFrame({"drug": [2.0, 0.0, 1.0, 3.0], "none": [0.0, 1.0, 1.0, 0.0]})
    >>> policy_value(["drug", "none", "none", "drug"], rewards)
    Estimate(value=1.75, standard_error=0.479, 95% interval [0.22652, 3.27348], n=4, n_clusters=4)
    >>> print(policy_value(["drug", "none", "none", "drug"], rewards))
    1.75 (95% CI 0.23 to 3.27)
    """

    value: float
    standard_error: float
    lower: float
    upper: float
    level: float
    n: int
    n_clusters: int
    influence: np.ndarray
    degrees_of_freedom: int
    between_variance: float = 0.0

    @property
    def numbers(self) -> dict[str, float]:
        """Value, standard_error, lower and upper, by these names."""
        return {name: getattr(self, name) for name in ("value", "standard_error", "lower", "upper")}

    def to_frame(self) -> pd.DataFrame:
        """Return one row with every attribute except the influence and the numbers of repetitions."""
        columns = ("value", "standard_error", "lower", "upper", "level", "n", "n_clusters")
        return pd.DataFrame({column: [getattr(self, column)] for column in columns})

    def quantile(self, probability: float) -> float:
        """``value`` plus the quantile of Student's t times the standard error; NaN without a standard error."""
        return self.value + float(stdtrit(self.degrees_of_freedom, probability)) * self.standard_error

    def __repr__(self) -> str:
        return (
            f"Estimate(value={self.value:.6g}, standard_error={self.standard_error:.3g}, "
            f"{100 * self.level:g}% interval [{self.lower:.6g}, {self.upper:.6g}], n={self.n}, "
            f"n_clusters={self.n_clusters})"
        )

    def __str__(self) -> str:
        return estimate_text(self, [self.standard_error])


def _estimate(value, standard_error, level, n, n_clusters, influence, degrees) -> Estimate:
    """Put the interval around a value, by Student's t: with few clusters, normal intervals are too short."""
    half_width = float(stdtrit(degrees, 0.5 + level / 2)) * standard_error if degrees > 0 else np.nan
    return Estimate(
        value, standard_error, value - half_width, value + half_width, level, n, n_clusters, influence, max(degrees, 0)
    )


@aligns_rows
def mean_estimate(scores, *, groups=None, sample_weight=None, level: float = 0.95) -> Estimate:
    """Weighted mean of per-row scores, with a cluster-robust standard error.

    With weights ``w`` and scores ``s`` the mean is ``m = sum(w s) / sum(w)`` and row ``i`` has the influence
    ``n w_i (s_i - m) / sum(w)``. Influences are summed within clusters; the variance is ``G / (G - 1)`` times the sum
    of the squared cluster sums, over ``n ** 2``: the sandwich variance of a regression on a constant, as statsmodels'
    ``cov_type="cluster"`` computes it. Without clusters, every row is a cluster. The interval takes Student's t with
    ``G - 1`` degrees of freedom; over a target, with those of :func:`degrees_of_variance`.

    Parameters
    ----------
    scores : ndarray of shape (n,), float64
    groups : ndarray of shape (n,), int, optional
        Cluster codes.
    sample_weight : ndarray of shape (n,), optional
        Sampling weights, >= 0. Weight 2 counts a row twice in the mean, but stays one piece of evidence.
    level : float
        Coverage of the interval, between 0 and 1.

    Returns
    -------
    Estimate

    References
    ----------
    Liang and Zeger (1986), Biometrika 73(1), 13-22. Cameron and Miller (2015), Journal of Human Resources 50(2),
    317-372, section II.B.
    """
    check_level(level)
    weight = np.ones(len(scores)) if sample_weight is None else sample_weight
    value, influence = mean_and_influence(scores, weight)
    n, n_clusters = _counts(weight, groups)
    standard_error = float(np.sqrt(variance_of_mean(influence, groups, n_clusters)))
    degrees = _degrees(influence, weight, groups, n_clusters)
    return _estimate(value, standard_error, level, n, n_clusters, influence, degrees)


@aligns_rows
@shares_documentation(mean_estimate)
def estimate_with_error(
    value: float, standard_error: float, influence: np.ndarray, *, groups=None, sample_weight=None, level: float = 0.95
) -> Estimate:
    """An estimate whose standard error is known from elsewhere, such as a bootstrap; NaN where there is none.

    Parameters
    ----------
    value, standard_error : float
    influence : ndarray of shape (n,)
        Each row's influence on ``value``.

    Returns
    -------
    Estimate
        Its interval takes Student's t with the degrees of freedom of :func:`mean_estimate`.
    """
    check_level(level)
    weight = np.ones(len(influence)) if sample_weight is None else sample_weight
    n, n_clusters = _counts(weight, groups)
    degrees = _degrees(influence, weight, groups, n_clusters)
    return _estimate(float(value), float(standard_error), level, n, n_clusters, influence, degrees)


def by_unequal_rows(estimate: Estimate, groups=None) -> Estimate:
    """The same value and standard error, with the degrees of freedom of :func:`degrees_of_variance`."""
    degrees = min(estimate.degrees_of_freedom, degrees_of_variance(estimate.influence, groups, estimate.n_clusters))
    whole = _estimate(
        estimate.value, estimate.standard_error, estimate.level, estimate.n, estimate.n_clusters, estimate.influence,
        degrees,
    )  # fmt: skip
    return replace(whole, between_variance=estimate.between_variance)


def _counts(weight: np.ndarray, groups) -> tuple[int, int]:
    """Rows and clusters of positive weight."""
    return n_units(weight, None), n_units(weight, groups)


def _degrees(influence: np.ndarray, weight: np.ndarray, groups, n_clusters: int) -> int:
    """Clusters less one; over a target, whose few people of the study have most of the variance, fewer."""
    return degrees_of_variance(influence, groups, n_clusters) if averages_over_target(weight) else n_clusters - 1


@aligns_rows
@shares_documentation(mean_estimate)
def blocked_estimate(scores, blocks, *, groups=None, sample_weight=None, level: float = 0.95) -> Estimate:
    """Mean of scores in blocks, each of which evaluates its own rule; the variance is that within the blocks.

    The mean of block ``j`` estimates the value of the rule of block ``j``; their mean, weighted by the blocks' weights
    ``W_j``, estimates the weighted mean of these values, with the variance ``sum_j (W_j / W)^2 s_j^2``, where ``s_j^2``
    is the cluster-robust variance within the block. Degrees of freedom: clusters less blocks.

    Parameters
    ----------
    blocks : ndarray of shape (n,), int
        The block of every row; no cluster may have rows in two blocks.

    Returns
    -------
    Estimate
    """
    check_level(level)
    n_rows = len(scores)
    weight = np.ones(n_rows) if sample_weight is None else sample_weight
    total = weight.sum()
    influence, value, variance, n, n_clusters, used = np.zeros(n_rows), 0.0, 0.0, 0, 0, 0
    for block in np.unique(blocks[weight > 0]):
        rows = np.flatnonzero(blocks == block)
        codes = None if groups is None else np.unique(groups[rows], return_inverse=True)[1]
        part = mean_estimate(scores[rows], groups=codes, sample_weight=weight[rows], level=level)
        share = weight[rows].sum() / total
        value, variance = value + share * part.value, variance + share**2 * part.standard_error**2
        influence[rows] = part.influence * share * n_rows / len(rows)
        n, n_clusters, used = n + part.n, n_clusters + part.n_clusters, used + 1
    standard_error = float(np.sqrt(variance))
    degrees = min(n_clusters - used, _degrees(influence, weight, groups, n_clusters))
    return _estimate(float(value), standard_error, level, n, n_clusters, influence, degrees)


@shares_documentation(mean_estimate)
def influence_estimate(value: float, influence, *, groups=None, sample_weight=None, level: float = 0.95) -> Estimate:
    """An estimate from its influences, with the variance of :func:`mean_estimate`.

    Parameters
    ----------
    value : float
    influence : ndarray of shape (n,)
        Each row's influence on ``value``, which includes its sampling weight; influences sum to zero.
    sample_weight : ndarray of shape (n,), optional
        Rows of weight zero do not count; other weights make no difference, since ``influence`` contains them.

    Returns
    -------
    Estimate
    """
    check_level(level)
    weight = np.ones(len(influence)) if sample_weight is None else sample_weight
    n, n_clusters = _counts(weight, groups)
    standard_error = float(np.sqrt(variance_of_mean(influence, groups, n_clusters)))
    degrees = _degrees(influence, weight, groups, n_clusters)
    return _estimate(float(value), standard_error, level, n, n_clusters, influence, degrees)


def repeated_estimate(estimates: Sequence[Estimate], n_folds: int, kappa: float | None = None) -> Estimate:
    """One estimate from repetitions of a cross-fitting on other draws of the folds ("N + b").

    With the pooled estimate ``theta_r`` of repetition ``r`` and its variance ``s_r^2``: the mean ``theta`` of the
    ``theta_r``, ``N`` = mean of the ``s_r^2``, ``b = sum_r (theta_r - theta)^2 / (R - 1)``; the variance is ``N +
    kappa b`` with ``kappa = 1`` for up to five folds and ``K / 2 - 1 + 1 / R`` beyond.

    ``N`` alone is too small: the rule of each fold has seen the other folds' noise, so the folds are dependent. One
    draw of the folds does not show the covariance between them, but draws differ by just such terms. ``kappa`` comes
    from an expansion to second order (every pair of rows interacts alike) and not from a theorem; simulations confirm
    it (``benchmarks/held_out_coverage.py``).

    Parameters
    ----------
    estimates : sequence of Estimate
        One per repetition, of the same rows; a single one is returned as it is.
    n_folds : int
        Folds (K) of every repetition.
    kappa : float, optional
        Another factor of ``b``, such as :func:`value_factor` for values of rules.

    Returns
    -------
    Estimate
        Its influence is the mean of the influences.
    """
    if len(estimates) == 1:
        return estimates[0]
    values = np.array([e.value for e in estimates])
    between = float(values.var(ddof=1)) if np.ptp(values) > 0 else 0.0
    kappa = between_factor(n_folds, len(values)) if kappa is None else kappa
    within = float(np.mean([e.standard_error**2 for e in estimates]))
    first = estimates[0]
    whole = _estimate(
        float(values.mean()), float(np.sqrt(within + kappa * between)), first.level, first.n, first.n_clusters,
        np.mean([e.influence for e in estimates], axis=0), int(np.mean([e.degrees_of_freedom for e in estimates])),
    )  # fmt: skip
    return replace(whole, between_variance=between)


def between_factor(n_folds: int, repetitions: int) -> float:
    """The factor ``kappa`` of the variance between repetitions; :func:`repeated_estimate` explains it."""
    return 1.0 if n_folds <= 5 else n_folds / 2 - 1 + 1 / repetitions


def value_factor(n_folds: int, repetitions: int) -> float:
    """``kappa`` for held-out values of learnt rules and their differences: ``.3 + 1 / R`` for three to five folds.

    ``b / R`` is what is left of the draws of folds in the mean of ``R`` repetitions. The rest stands for the covariance
    between folds. The expansion of :func:`between_factor` counts every pair of rows, as if a rule were linear in the
    noise; trees jump, so that less of the noise of one fold returns in another: with ``kappa = 1`` intervals cover 97
    to 98 % where nothing works, with this factor 93 to 97 %, at standard errors of .9 to 1.1 times the true ones.
    Neither ``N`` alone, nor the variance of each row's mean over the repetitions plus ``b``, nor that of folds' means
    with Nadeau and Bengio's factor does better: where seven in ten got one arm they cover 90 to 91 %, and the power to
    be regained is two to four points in a hundred (``benchmarks/power.py``).
    """
    return 0.3 + 1 / repetitions if 3 <= n_folds <= 5 else between_factor(n_folds, repetitions)
