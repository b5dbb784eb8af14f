"""Calibration of nuisance models: propensities and outcome models against out-of-fold observations."""

from __future__ import annotations

import warnings
from numbers import Integral

import numpy as np
import pandas as pd
from scipy.stats import t as student_t

from policytree.common.row_labels import aligns_rows
from policytree.common.validation import group_codes, numbers, per_treatment, weights
from policytree.exceptions import InputError, quoted

LARGE_MISCALIBRATION = 0.2  # of the propensity: inverse weights are then off by a fifth
CERTAIN = 4.0  # standard errors: beyond chance, however many treatments are looked at
FALSE_ALARMS = 0.01  # of tables of right propensities, however many bins and treatments they have
ENOUGH_ROWS = 10  # of a treatment, to say anything about its outcome model


@aligns_rows
def calibration_table(
    propensity: pd.DataFrame, T, *, n_bins: int = 10, sample_weight=None, groups=None
) -> pd.DataFrame:
    """Compare predicted propensities with the shares that received each treatment, in bins.

    Parameters
    ----------
    propensity : DataFrame of shape (n, K)
        Out of fold. Rows raised to ``min_propensity`` look too likely to get the treatment, as they are said to be.
    T : column of n labels
    n_bins : int
        Bins of equal size by propensity (fewer where values tie).
    sample_weight : column of n numbers >= 0, optional
        Weights of the rows in the means.
    groups : column of n cluster labels, optional
        Rows of one cluster got their treatments together, as in a trial that randomises villages.

    Returns
    -------
    DataFrame with index (treatment, bin)
        rows, clusters (both with positive weight), predicted (mean propensity), observed (share that got it),
        standard_error (of observed, if predicted is true; with groups, from the clusters' sums).

    Raises
    ------
    InputError
        If an argument cannot be used; the message names it.

    Warns
    -----
    UserWarning
        If some bin's share that got the treatment is more than a fifth off its propensity, beyond chance: of tables of
        right propensities, about one in a hundred warns, however many bins there are (Bonferroni, by Student's t with
        the bin's clusters less one as degrees of freedom).

    Examples
    --------
    >>> import pandas as pd
    >>> from policytree.diagnostics.calibration import calibration_table
    >>> T = ["drug", "drug", "none", "none"]
    >>> propensity = pd.DataFrame({"drug": [0.8, 0.6, 0.4, 0.2], "none": [0.2, 0.4, 0.6, 0.8]})
    >>> calibration_table(propensity, T, n_bins=2)[["predicted", "observed"]]
                   predicted  observed
    treatment bin
    drug      0          0.3       0.0
              1          0.7       1.0
    none      0          0.3       0.0
              1          0.7       1.0
    """
    p, arm, labels = per_treatment(propensity, T)
    w = weights(sample_weight, len(p))
    cluster = group_codes(groups, len(p))
    frames = {}
    for k, label in enumerate(labels):
        columns = {"predicted": p[:, k], "observed": arm == k, "bin": _equal_bins(p[:, k], n_bins)}
        columns["weight"] = np.ones(len(p)) if w is None else w
        columns["cluster"] = np.arange(len(p)) if cluster is None else cluster
        frame = pd.DataFrame(columns)
        frames[label] = _calibration_of_bins(frame[frame["weight"] > 0.0], len(labels), clustered=cluster is not None)
    table = pd.concat(frames, names=["treatment", "bin"])
    _warn_miscalibrated(table)
    return table.drop(columns="certain")


def _calibration_of_bins(frame: pd.DataFrame, n_tables: int, *, clustered: bool) -> pd.DataFrame:
    """One treatment's bins: means, the standard error of the share that got it if its propensity is true.

    ``certain`` says how many standard errors are beyond chance.
    """
    w, p = frame["weight"], frame["predicted"]
    parts = {"total": w, "predicted": w * p, "observed": w * frame["observed"], "noise": w**2 * p * (1.0 - p)}
    parts["cubed"] = w**3 * p * (1.0 - p) * np.abs(1.0 - 2.0 * p)
    summed = pd.DataFrame(parts).groupby(frame["bin"]).sum()
    variance = summed["noise"]
    keys = [frame["bin"], frame["cluster"]]
    if clustered:
        gaps = (w * (frame["observed"] - p)).groupby(keys).sum()
        variance = (gaps**2).groupby(level="bin").sum()
    table = pd.DataFrame({"rows": frame.groupby("bin").size()})
    table["clusters"] = frame.groupby("bin")["cluster"].nunique()
    table["predicted"] = summed["predicted"] / summed["total"]
    table["observed"] = summed["observed"] / summed["total"]
    table["standard_error"] = np.sqrt(variance) / summed["total"]
    # Few expected rows, or few heavy ones, make shares skewed: by the second term of Cornish and Fisher's expansion.
    certain = student_t.ppf(1.0 - FALSE_ALARMS / (2 * n_tables * len(table)), np.maximum(table["clusters"] - 1, 1))
    skewness = np.divide(summed["cubed"], summed["noise"] ** 1.5, where=summed["noise"] > 0, out=np.zeros(len(table)))
    table["certain"] = certain + (certain**2 - 1.0) / 6.0 * skewness
    return table.rename_axis(None)


def _equal_bins(values: np.ndarray, n_bins: int) -> np.ndarray:
    """Numbers 0, 1, ... of bins of nearly equal size in ascending order; equal values share one."""
    if not isinstance(n_bins, Integral) or isinstance(n_bins, bool) or n_bins < 1:
        raise InputError(f"n_bins must be an integer >= 1; got {quoted(n_bins)}.")
    n_bins = min(n_bins, len(values))
    edges = np.unique(np.quantile(values, np.arange(1, n_bins) / n_bins))
    return np.unique(np.searchsorted(edges, values), return_inverse=True)[1]


def _warn_miscalibrated(table: pd.DataFrame) -> None:
    gap = (table["observed"] - table["predicted"]).abs()
    off = gap.where(gap > table["certain"] * table["standard_error"], 0.0) / table["predicted"]
    count = int((off > LARGE_MISCALIBRATION).sum())
    if count:
        treatment, part = off.idxmax()
        worst = table.loc[(treatment, part)]
        warnings.warn(
            f"In {count} of {len(table)} bins the share that got a treatment is more than {LARGE_MISCALIBRATION:.0%} "
            f"off its propensity; the farthest: {worst['rows']:.0f} rows with propensity {worst['predicted']:.3f} of "
            f"{treatment!s}, of which {worst['observed']:.3f} got it. Use another propensity model, or calibrate it "
            "(CalibratedClassifierCV).",
            UserWarning,
            stacklevel=3,
        )


@aligns_rows
def outcome_fit_table(regression, Y, T, *, sample_weight=None) -> pd.DataFrame:
    """Measure how well outcome models predict, out of fold, the rows that received each treatment.

    Parameters
    ----------
    regression : DataFrame of shape (n, K)
        ``RewardEstimator.regression_``.
    Y : column of n numbers
    T : column of n labels
    sample_weight : column of n numbers, optional

    Returns
    -------
    DataFrame, one row per treatment
        rows, r2 (share of the outcome's variance explained; negative is worse than the mean), rmse, bias (mean
        residual) and its standard_error, in the outcome's unit.

    Warns
    -----
    UserWarning
        If, for a treatment of ten rows or more, the predictions are clearly worse than the treatment's mean, or the
        bias exceeds four standard errors.

    Examples
    --------
    >>> import pandas as pd
    >>> from policytree.diagnostics.calibration import outcome_fit_table
    >>> T = ["drug", "drug", "none", "none"]
    >>> regression = pd.DataFrame({"drug": [1.0, 3.0, 1.0, 3.0], "none": [0.0, 2.0, 0.0, 2.0]})
    >>> outcome_fit_table(regression, [1.5, 3.5, 0.0, 2.0], T)
               rows    r2  rmse  bias  standard_error
    treatment
    drug          2  0.75   0.5   0.5             0.0
    none          2  1.00   0.0   0.0             0.0
    """
    m, arm, labels = per_treatment(regression, T, "regression")
    y = numbers(Y, "Y", len(m)).to_numpy()
    w = weights(sample_weight, len(y))
    w = np.ones(len(y)) if w is None else w
    records = [_fit_record(y[own], m[own, k], w[own]) for k, own in enumerate(arm == np.arange(len(labels))[:, None])]
    table = pd.DataFrame(records, index=pd.Index(labels, name="treatment"))
    _warn_misfit(table)
    return table.drop(columns="worse_by")


def _fit_record(y, predicted, w) -> dict:
    """Fit of one treatment's rows; NaN without rows or weight."""
    if not w.any():
        names = ("r2", "rmse", "bias", "standard_error", "worse_by")
        return {"rows": len(y), **dict.fromkeys(names, np.nan)}
    residual, share = y - predicted, w / w.sum()
    bias, mse = share @ residual, share @ residual**2
    deviation = y - share @ y
    excess = residual**2 - deviation**2
    noise = np.sqrt((share**2 * (excess - share @ excess) ** 2).sum())
    variance = share @ deviation**2
    return {
        "rows": len(y),
        "r2": 1.0 - mse / variance if variance > 0.0 else np.nan,
        "rmse": np.sqrt(mse),
        "bias": bias,
        "standard_error": np.sqrt((share**2 * (residual - bias) ** 2).sum()),
        "worse_by": (share @ excess) / noise if noise > 0.0 else 0.0,  # in standard errors
    }


def _warn_misfit(table: pd.DataFrame) -> None:
    enough = table["rows"] >= ENOUGH_ROWS
    failed = []
    for label, row in table[enough & (table["worse_by"] > CERTAIN / 2) & (table["r2"] < -0.01)].iterrows():
        failed.append(f"for {label!s} it predicts worse than the mean (R2 {row['r2']:.2f})")
    for label, row in table[enough & (table["bias"].abs() > CERTAIN * table["standard_error"])].iterrows():
        failed.append(f"for {label!s} it is off by {row['bias']:.3g} (standard error {row['standard_error']:.2g})")
    if failed:
        warnings.warn(
            f"The outcome model does not fit: {'; '.join(failed)}. Use another model_regression, or rely on the "
            "propensities.",
            UserWarning,
            stacklevel=3,
        )


@aligns_rows
def outcome_calibration_table(regression, Y, T, *, n_bins: int = 10) -> pd.DataFrame:
    """Compare predicted with mean observed outcomes under the treatment received, in bins.

    Parameters
    ----------
    regression : DataFrame of shape (n, K)
        Out of fold, as ``RewardEstimator.regression_``.
    Y : column of n numbers
    T : column of n labels
    n_bins : int
        Bins of equal size by prediction (fewer where values tie).

    Returns
    -------
    DataFrame with index (treatment, bin)
        rows, predicted and observed (means, in the outcome's unit), standard_error (of observed).

    Raises
    ------
    InputError
        If an argument cannot be used; the message names it.

    Examples
    --------
    >>> import pandas as pd
    >>> from policytree.diagnostics.calibration import outcome_calibration_table
    >>> T = ["drug", "drug", "none", "none"]
    >>> regression = pd.DataFrame({"drug": [1.0, 3.0, 1.0, 3.0], "none": [0.0, 2.0, 0.0, 2.0]})
    >>> outcome_calibration_table(regression, [1.5, 3.5, 0.0, 2.0], T, n_bins=2)
                   rows  predicted  observed  standard_error
    treatment bin
    drug      0       1        1.0       1.5             NaN
              1       1        3.0       3.5             NaN
    none      0       1        0.0       0.0             NaN
              1       1        2.0       2.0             NaN
    """
    m, arm, labels = per_treatment(regression, T, "regression")
    y = numbers(Y, "Y", len(m)).to_numpy()
    frames = {}
    for k, label in enumerate(labels):
        own = arm == k
        if not own.any():
            continue
        grouped = pd.DataFrame({"predicted": m[own, k], "observed": y[own]}).groupby(_equal_bins(m[own, k], n_bins))
        frames[label] = grouped.mean()
        frames[label].insert(0, "rows", grouped.size())
        frames[label]["standard_error"] = grouped["observed"].sem()
    return pd.concat(frames, names=["treatment", "bin"])
