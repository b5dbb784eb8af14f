"""Can the data carry the question? Overlap, balance, calibration and fit of the nuisances, as tables and pictures."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from policytree.exceptions import InputError, OverlapWarning
from policytree.weighting.covariates import Covariates
from policytree.weighting.inputs import numbers, treatment_codes, weights

LARGE_DIFFERENCE = 0.1  # standard deviations; the usual line, Austin (2009)


def effective_sample_size(weight) -> float:
    """Kish's ``(sum w)^2 / sum w^2``: how many equally weighted rows are as precise; zero without any weight."""
    weight = np.asarray(weight, dtype=np.float64)
    squares = float((weight**2).sum())
    return float(weight.sum() ** 2 / squares) if squares > 0.0 else 0.0


def _propensity(propensity, T) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values (n, K), arm codes and labels from a frame of propensities such as ``RewardEstimator.propensity_``."""
    if not isinstance(propensity, pd.DataFrame):
        raise InputError("propensity must be a frame with a column per treatment, as RewardEstimator.propensity_.")
    arm, labels = treatment_codes(T, len(propensity), propensity.columns.to_numpy())
    return propensity.to_numpy(dtype=np.float64), arm, labels


def overlap_table(propensity: pd.DataFrame, T, *, floor: float = 0.01, sample_weight=None) -> pd.DataFrame:
    """How likely every treatment was, for everybody and for those who got it.

    Parameters
    ----------
    propensity : DataFrame of shape (n, K)
        Before or after clipping; entries equal to the floor count as at it.
    T : column of n labels
    floor : float
        The clip, ``min_propensity``.
    sample_weight : column of n numbers, optional

    Returns
    -------
    DataFrame, one row per treatment
        rows, share; smallest, 1 %, 50 % and largest propensity of that treatment over all rows; share_at_floor; and
        effective_rows: Kish's effective sample size of the inverse propensity weights of the rows that got it.

    Warns
    -----
    OverlapWarning
        If more than one row in a hundred is at the floor for some treatment.
    """
    p, arm, labels = _propensity(propensity, T)
    w = weights(sample_weight, len(p))
    w = np.ones(len(p)) if w is None else w
    records = []
    for k in range(len(labels)):
        own = arm == k
        low, percentile, middle, high = np.quantile(p[:, k], [0.0, 0.01, 0.5, 1.0])
        records.append(
            {
                "rows": int(own.sum()),
                "share": w[own].sum() / w.sum(),
                "smallest": low,
                "1%": percentile,
                "median": middle,
                "largest": high,
                "share_at_floor": np.average(p[:, k] <= floor, weights=w),
                "effective_rows": effective_sample_size(w[own] / p[own, k]),
            }
        )
    table = pd.DataFrame(records, index=pd.Index(labels, name="treatment"))
    worst = table["share_at_floor"].idxmax()
    if table.loc[worst, "share_at_floor"] > 0.01:
        warnings.warn(
            f"Treatment {worst!s} has a propensity of at most {floor:g} for "
            f"{table.loc[worst, 'share_at_floor']:.1%} of the rows: what it would do for them is extrapolated. "
            "Consider crump_trimming.",
            OverlapWarning,
            stacklevel=2,
        )
    return table


@dataclass(frozen=True, slots=True)
class Trimming:
    """Which rows have enough overlap to be learnt from, and what leaving out the others does.

    Attributes
    ----------
    keep : ndarray of shape (n,), bool
    threshold : float
        Rows are kept where ``sum over treatments of 1 / propensity <= threshold``.
    alpha : float or None
        With two treatments, the same rule as ``alpha <= propensity <= 1 - alpha``.
    table : DataFrame, one row per treatment
        rows, kept, dropped.
    """

    keep: np.ndarray
    threshold: float
    alpha: float | None
    table: pd.DataFrame


def crump_trimming(propensity: pd.DataFrame, T) -> Trimming:
    """The rows for which average effects can be estimated most precisely.

    Trimming changes whom the answer is about: report ``table``, and learn and value the policy on the kept rows only.

    Parameters
    ----------
    propensity : DataFrame of shape (n, K)
        Not clipped.
    T : column of n labels

    Returns
    -------
    Trimming

    References
    ----------
    Crump, Hotz, Imbens & Mitnik (2009), Biometrika 96(1): the set of rows that minimises ``mean of g / share kept``,
    ``g = 1 / (e (1 - e))``, found by trying every threshold rather than by their first-order condition; for several
    treatments with ``g = sum of 1 / e_k``, Yang, Imbens, Cui, Faries & Kadziola (2016), Biometrics 72(4).
    """
    p, arm, labels = _propensity(propensity, T)
    if not (p > 0.0).all():
        raise InputError("propensity holds zeros; leave out rows that could not get every treatment first.")
    g = (1.0 / p).sum(axis=1)
    ordered = np.sort(g)
    # The variance bound of the average effect over the m rows with the smallest g, up to a factor.
    bound = ordered.cumsum() / np.arange(1, len(g) + 1) ** 2
    threshold = float(ordered[bound.argmin()])
    keep = g <= threshold
    rows, kept = (np.bincount(a, minlength=len(labels)) for a in (arm, arm[keep]))
    table = pd.DataFrame({"rows": rows, "kept": kept, "dropped": rows - kept}, index=pd.Index(labels, name="treatment"))
    alpha = 0.5 - np.sqrt(0.25 - 1.0 / threshold) if len(labels) == 2 and threshold >= 4.0 else None
    return Trimming(keep, threshold, None if alpha is None else float(alpha), table)


def _moments(Z, w) -> tuple[np.ndarray, np.ndarray]:
    """Weighted means and variances of columns, missing values left out."""
    present = ~np.isnan(Z)
    weight = w[:, None] * present
    total = np.maximum(weight.sum(axis=0), np.finfo(float).tiny)
    mean = (weight * np.where(present, Z, 0.0)).sum(axis=0) / total
    variance = (weight * np.where(present, Z - mean, 0.0) ** 2).sum(axis=0) / total
    return mean, variance


def balance_table(X, T, *, propensity: pd.DataFrame | None = None, sample_weight=None) -> pd.DataFrame:
    """Differences in covariates between treatments, before and after inverse propensity weighting.

    Parameters
    ----------
    X : table of shape (n, p)
        Categories become one row per value; missing values are left out.
    T : column of n labels
    propensity : DataFrame of shape (n, K), optional
        Without it only the differences before weighting are given.
    sample_weight : column of n numbers, optional
        Multiplied into both.

    Returns
    -------
    DataFrame with index (comparison, covariate)
        For every pair of treatments "b - a": difference (of means, in standard deviations: the root of the average of
        both variances before weighting) and variance_ratio, before and after.

    Warns
    -----
    UserWarning
        If a difference after weighting exceeds 0.1 standard deviations.

    References
    ----------
    Austin (2009), Statistics in Medicine 28(25). Rubin (2001), for variance ratios (0.5 to 2).
    """
    arm, labels = treatment_codes(T)
    covariates = Covariates.fit(X)
    Z = covariates.matrix(X, None, len(arm))
    base = weights(sample_weight, len(arm))
    base = np.ones(len(arm)) if base is None else base
    schemes = {"before": base}
    if propensity is not None:
        p, arm, labels = _propensity(propensity, T)
        schemes["after"] = base / p[np.arange(len(arm)), arm]
    before = [_moments(Z[arm == k], base[arm == k]) for k in range(len(labels))]
    frames = {}
    for a, b in combinations(range(len(labels)), 2):
        scale = np.sqrt((before[a][1] + before[b][1]) / 2)
        columns = {}
        for name, w in schemes.items():
            (mean_a, var_a), (mean_b, var_b) = (_moments(Z[arm == k], w[arm == k]) for k in (a, b))
            columns[f"difference_{name}"] = _ratio(mean_b - mean_a, scale)
            columns[f"variance_ratio_{name}"] = _ratio(var_b, var_a)
        frames[f"{labels[b]} - {labels[a]}"] = pd.DataFrame(columns, index=covariates.names())
    table = pd.concat(frames, names=["comparison", "covariate"])
    _warn_unbalanced(table)
    return table


def _ratio(a, b) -> np.ndarray:
    """``a / b``; missing where a covariate does not vary."""
    return np.divide(a, b, out=np.full(len(a), np.nan), where=b > 0.0)


def _warn_unbalanced(table: pd.DataFrame) -> None:
    if "difference_after" not in table:
        return
    size = table["difference_after"].abs()
    count = int((size > LARGE_DIFFERENCE).sum())
    if count:
        comparison, covariate = size.idxmax()
        warnings.warn(
            f"After weighting, {count} of {len(table)} differences exceed {LARGE_DIFFERENCE} standard deviations; the "
            f"largest is {table.loc[(comparison, covariate), 'difference_after']:.2f} in {covariate} ({comparison}).",
            UserWarning,
            stacklevel=3,
        )


def calibration_table(propensity: pd.DataFrame, T, *, n_bins: int = 10) -> pd.DataFrame:
    """Whether those said to have a 30 % chance of a treatment got it in 30 % of the cases.

    Parameters
    ----------
    propensity : DataFrame of shape (n, K)
        Out of fold.
    T : column of n labels
    n_bins : int
        Bins of equal size by propensity (fewer where values tie).

    Returns
    -------
    DataFrame with index (treatment, bin)
        rows, predicted (mean propensity), observed (share that got it), standard_error (of observed, if
        predicted is true).
    """
    p, arm, labels = _propensity(propensity, T)
    frames = {}
    for k, label in enumerate(labels):
        edges = np.unique(np.quantile(p[:, k], np.arange(1, n_bins) / n_bins))
        part = pd.DataFrame({"predicted": p[:, k], "observed": arm == k, "noise": p[:, k] * (1 - p[:, k])})
        grouped = part.groupby(np.unique(np.searchsorted(edges, p[:, k]), return_inverse=True)[1])
        rows = grouped.size()
        frames[label] = pd.DataFrame(
            {
                "rows": rows,
                "predicted": grouped["predicted"].mean(),
                "observed": grouped["observed"].mean(),
                "standard_error": np.sqrt(grouped["noise"].sum()) / rows,
            }
        )
    return pd.concat(frames, names=["treatment", "bin"])


def outcome_fit_table(Y, T, regression: pd.DataFrame, *, sample_weight=None) -> pd.DataFrame:
    """How well the outcome models predict, out of fold, those who got each treatment.

    Parameters
    ----------
    Y : column of n numbers
    T : column of n labels
    regression : DataFrame of shape (n, K)
        ``RewardEstimator.regression_``.
    sample_weight : column of n numbers, optional

    Returns
    -------
    DataFrame, one row per treatment
        rows, r2 (share of the outcome's variance explained; negative is worse than the mean), rmse, bias (mean
        residual) and its standard_error, in the outcome's unit.
    """
    y = numbers(Y, "Y", len(regression)).to_numpy()
    arm, labels = treatment_codes(T, len(y), regression.columns.to_numpy())
    w = weights(sample_weight, len(y))
    w = np.ones(len(y)) if w is None else w
    records = []
    for k, label in enumerate(labels):
        own = arm == k
        residual, weight = y[own] - regression[label].to_numpy()[own], w[own]
        bias, mse = np.average(residual, weights=weight), np.average(residual**2, weights=weight)
        variance = np.average((y[own] - np.average(y[own], weights=weight)) ** 2, weights=weight)
        error = np.sqrt((weight**2 * (residual - bias) ** 2).sum()) / weight.sum()
        r2 = 1.0 - mse / variance if variance > 0.0 else np.nan
        records.append({"rows": own.sum(), "r2": r2, "rmse": np.sqrt(mse), "bias": bias, "standard_error": error})
    return pd.DataFrame(records, index=pd.Index(labels, name="treatment"))
