"""Can the data carry the question? Overlap, trimming and balance, as tables with warnings."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from policytree.common.row_labels import aligns_rows
from policytree.common.validation import group_codes, observed_propensity, refuse_weightless, treatment_codes, weights
from policytree.exceptions import BalanceWarning, InputError, OverlapWarning
from policytree.weighting.covariates import Covariates
from policytree.weighting.target_support import FEW_EFFECTIVE, effective_sample_size

LARGE_DIFFERENCE = 0.1  # standard deviations; the usual line, Austin (2009)
LARGE_RATIO = 2.0  # of variances, or its inverse; Rubin (2001)
LARGE_MEAN_WEIGHT = 0.1  # how far the mean inverse weight may be from one before it is worth a word
CERTAIN = 3.0  # standard errors


@aligns_rows
def overlap_table(propensity: pd.DataFrame, T, *, floor: float = 0.01, sample_weight=None, groups=None) -> pd.DataFrame:
    """Describe every treatment's propensities, over all rows and over those that received it.

    Parameters
    ----------
    propensity : DataFrame of shape (n, K)
        Before or after clipping; entries equal to the floor count as at it.
    T : column of n labels
    floor : float
        The clip, ``min_propensity``.
    sample_weight : column of n numbers, optional
    groups : column of n cluster labels, optional
        Rows of one cluster got their treatments together; for ``mean_weight_error`` only.

    Returns
    -------
    DataFrame, one row per treatment
        rows, share; smallest, 1 %, 50 % and largest propensity of that treatment over all rows; share_at_floor;
        effective_rows: Kish's effective sample size of the inverse propensity weights of the rows that got it;
        mean_weight: the mean over all rows of 1[T = k] / propensity of k, one if all is well; mean_weight_error: its
        standard error if the propensities are right.

    Warns
    -----
    OverlapWarning
        If more than one row in a hundred is at the floor for some treatment; if the weighted rows of some treatment are
        as good as less than a tenth of their number; or if some mean_weight is more than a tenth off one, beyond three
        standard errors.

    Examples
    --------
    >>> import pandas as pd
    >>> from policytree.diagnostics import overlap_table
    >>> T = ["drug", "drug", "none", "none"]
    >>> propensity = pd.DataFrame({"drug": [0.8, 0.6, 0.4, 0.2], "none": [0.2, 0.4, 0.6, 0.8]})
    >>> overlap_table(propensity, T)[["rows", "share", "mean_weight"]].round(2)
               rows  share  mean_weight
    treatment
    drug          2    0.5         0.73
    none          2    0.5         0.73
    """
    p, arm, labels = observed_propensity(propensity, T)
    w = weights(sample_weight, len(p))
    w = np.ones(len(p)) if w is None else w
    cluster = group_codes(groups, len(p))
    records = []
    for k in range(len(labels)):
        own = arm == k
        inverse = np.where(own, 1.0 / np.where(own, p[:, k], 1.0), 0.0)
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
                "mean_weight": np.average(inverse, weights=w),
                "mean_weight_error": _mean_weight_error(inverse, p[:, k], w, cluster),
            }
        )
    table = pd.DataFrame(records, index=pd.Index(labels, name="treatment"))
    _warn_overlap(table, floor)
    return table


def _mean_weight_error(inverse, p, w, cluster) -> float:
    """Standard error of the mean inverse weight under these propensities.

    For independent rows ``sum w^2 (1 / p - 1)``, as they imply; with clusters at least what their sums show.
    """
    if (p <= 0.0).any():
        return np.inf
    variance = (w**2 * (1.0 / p - 1.0)).sum()
    if cluster is not None:
        sums = np.bincount(cluster, weights=w * (inverse - 1.0))
        variance = max(variance, sums @ sums)
    return float(np.sqrt(variance) / w.sum())


def _warn_overlap(table: pd.DataFrame, floor: float) -> None:
    worst = table["share_at_floor"].idxmax()
    if table.loc[worst, "share_at_floor"] > 0.01:
        warnings.warn(
            f"Treatment {worst!s} has a propensity of at most {floor:g} for "
            f"{table.loc[worst, 'share_at_floor']:.1%} of the rows: what it would do for them is extrapolated. "
            "Consider crump_trimming.",
            OverlapWarning,
            stacklevel=3,
        )
    effective = table["effective_rows"] / table["rows"]
    worst = effective.idxmin()
    if effective[worst] < FEW_EFFECTIVE:
        warnings.warn(
            f"Weighted by inverse propensity, the {table.loc[worst, 'rows']} rows of treatment {worst!s} are as good "
            f"as {table.loc[worst, 'effective_rows']:.1f}: a few rows decide. Consider crump_trimming.",
            OverlapWarning,
            stacklevel=3,
        )
    off = (table["mean_weight"] - 1.0).abs()
    off = off.where((off > LARGE_MEAN_WEIGHT) & (off > CERTAIN * table["mean_weight_error"]), 0.0)
    worst = off.idxmax()
    if off[worst] > 0.0:
        warnings.warn(
            f"The inverse weights of treatment {worst!s} have mean {table.loc[worst, 'mean_weight']:.2f} (standard "
            f"error {table.loc[worst, 'mean_weight_error']:.2f}) instead of 1: the propensities do not fit. Use "
            "another propensity model, name the design's strata, or method='dr_normalized'.",
            OverlapWarning,
            stacklevel=3,
        )


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


@aligns_rows
def crump_trimming(propensity: pd.DataFrame, T) -> Trimming:
    """Select the rows for which average effects can be estimated most precisely.

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

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from policytree.diagnostics import crump_trimming
    >>> chance = np.array([0.5, 0.4, 0.6, 0.001])
    >>> T = ["drug", "none", "drug", "none"]
    >>> crump_trimming(pd.DataFrame({"drug": chance, "none": 1 - chance}), T).keep.tolist()
    [True, True, True, False]
    """
    p, arm, labels = observed_propensity(propensity, T)
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


@aligns_rows
def balance_table(T, *, X, propensity: pd.DataFrame | None = None, sample_weight=None) -> pd.DataFrame:
    """Differences in covariates between treatments, before and after inverse propensity weighting.

    Parameters
    ----------
    T : column of n labels
    X : table of shape (n, p)
        Categories become one row per value; missing values are left out.
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
    BalanceWarning
        If a difference after weighting exceeds 0.1 standard deviations, or a variance ratio lies outside 0.5 to 2.

    References
    ----------
    Austin (2009), Statistics in Medicine 28(25). Rubin (2001), for variance ratios (0.5 to 2).

    Examples
    --------
    >>> import pandas as pd
    >>> from policytree.diagnostics import balance_table
    >>> X = pd.DataFrame({"age": [30, 40, 50, 60], "female": [0, 1, 0, 1]})
    >>> balance_table(["drug", "drug", "none", "none"], X=X)
                           difference_before  variance_ratio_before
    comparison  covariate
    none - drug age                      4.0                    1.0
                female                   0.0                    1.0
    """
    arm, labels = treatment_codes(T)
    if X is None:
        raise InputError("X is missing; pass the covariates to compare.")
    covariates = Covariates.fit(X)
    Z = covariates.matrix(X, None, len(arm))
    base = weights(sample_weight, len(arm))
    refuse_weightless(arm, labels, base)
    base = np.ones(len(arm)) if base is None else base
    schemes = {"before": base}
    if propensity is not None:
        p, arm, labels = observed_propensity(propensity, T)
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
    said = []
    size, ratio = table["difference_after"].abs(), table["variance_ratio_after"]
    count = int((size > LARGE_DIFFERENCE).sum())
    if count:
        comparison, covariate = size.idxmax()
        said.append(
            f"{count} of {len(table)} differences exceed {LARGE_DIFFERENCE} standard deviations; the largest is "
            f"{table.loc[(comparison, covariate), 'difference_after']:.2f} in {covariate} ({comparison})"
        )
    unequal = np.maximum(ratio, 1.0 / ratio.where(ratio > 0.0))  # no variance on one side is no ratio to speak of
    count = int((unequal > LARGE_RATIO).sum())
    if count:
        comparison, covariate = unequal.idxmax()
        said.append(
            f"{count} of {len(table)} variance ratios lie outside {1 / LARGE_RATIO:g} to {LARGE_RATIO:g}; the farthest "
            f"is {ratio[(comparison, covariate)]:.2f} in {covariate} ({comparison})"
        )
    if said:
        warnings.warn(f"After weighting, {'; '.join(said)}.", BalanceWarning, stacklevel=3)
