"""Regressions of effects: on predicted effects (are they calibrated?) and on covariates (a linear summary)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from policytree.common.row_labels import aligns_rows
from policytree.common.typing import Column, Table
from policytree.common.validation import (
    check_choice,
    columns_by_label,
    group_codes,
    per_treatment,
    position_of,
    weights,
)
from policytree.exceptions import InputError
from policytree.weighting.covariates import Covariates
from policytree.weighting.scheme import Nuisances
from policytree.weighting.study_data import StudyData

REPEATED = 1e-10  # share of a column's variance that earlier columns leave: below, it is a combination of them


@dataclass(frozen=True, slots=True)
class LeastSquares:
    """Weighted least squares with a covariance that holds under heteroscedasticity or within-cluster dependence.

    Attributes
    ----------
    coefficients : ndarray of shape (k,)
    covariance : ndarray of shape (k, k)
        HC1 without clusters, CR1 with them: statsmodels' ``cov_type="HC1"`` and ``"cluster"``.
    degrees_of_freedom : int
        Rows less k, or clusters less one.
    """

    coefficients: np.ndarray
    covariance: np.ndarray
    degrees_of_freedom: int

    @property
    def standard_errors(self) -> np.ndarray:
        """Roots of the covariance's diagonal, (k,)."""
        return np.sqrt(np.diag(self.covariance))


def least_squares(A: np.ndarray, y: np.ndarray, *, groups=None, sample_weight=None) -> LeastSquares:
    """Regress ``y`` (n,) on the columns of ``A`` (n, k), no constant added; ``groups`` are codes 0, 1, ...

    Raises
    ------
    InputError
        If there are too few rows or clusters, or a column is a linear combination of others.

    References
    ----------
    MacKinnon & White (1985), Journal of Econometrics 29(3), 305-325 (HC1). Liang & Zeger (1986), Biometrika 73(1);
    Cameron & Miller (2015), Journal of Human Resources 50(2), 317-372 (CR1).
    """
    w = np.ones(len(y)) if sample_weight is None else sample_weight
    kept = w > 0.0
    A, y, w = A[kept], y[kept], w[kept]
    n, k = A.shape
    if n <= k or not independent_columns(A).all():
        raise InputError(
            f"{n} rows with positive weight cannot tell {k} coefficients apart; leave out constant or repeated columns."
        )
    bread = np.linalg.inv(A.T @ (A * w[:, None]))
    coefficients = bread @ (A.T @ (w * y))
    influence = A * (w * (y - A @ coefficients))[:, None]
    correction, freedom = n / (n - k), n - k
    if groups is not None:
        influence = cluster_sums(influence, groups[kept])
        if len(influence) < 2:
            raise InputError("All rows are in one cluster; a standard error needs at least two.")
        correction = len(influence) / (len(influence) - 1) * (n - 1) / (n - k)
        freedom = len(influence) - 1
    return LeastSquares(coefficients, correction * bread @ (influence.T @ influence) @ bread, freedom)


def cluster_sums(values: np.ndarray, groups: np.ndarray | None) -> np.ndarray:
    """Sums of the rows of ``values`` (n, k) by cluster, (clusters, k); the rows themselves without clusters."""
    if groups is None:
        return values
    codes = np.unique(groups, return_inverse=True)[1]
    return np.column_stack([np.bincount(codes, weights=column) for column in values.T])


def independent_columns(A: np.ndarray) -> np.ndarray:
    """Mask of the columns that are linearly independent of the columns before them, (k,) bool."""
    scale = np.sqrt((A**2).sum(axis=0))
    scaled = A / np.where(scale > 0.0, scale, 1.0)
    left = scaled.T @ scaled
    mask = np.zeros(A.shape[1], dtype=bool)
    for j in range(A.shape[1]):  # Cholesky elimination; columns without remaining variance are skipped
        if left[j, j] > REPEATED:
            mask[j] = True
            left = left - np.outer(left[:, j], left[j]) / left[j, j]
    return mask


@aligns_rows
def calibration_test(
    Y: Column,
    T: Column,
    *,
    regression: pd.DataFrame,
    propensity: pd.DataFrame,
    predicted: pd.DataFrame | None = None,
    baseline: Any = None,
    method: str = "scores",
    groups: Column | None = None,
    sample_weight: Column | None = None,
) -> pd.DataFrame:
    """Regress effects on predicted effects (best linear predictor), to see whether large predictions mean large gains.

    Effects are those of every treatment against ``baseline``. "scores" regresses doubly robust effect scores on a
    constant and on the predicted effect less its mean, one regression a treatment. "residuals" regresses
    ``Y - E[Y | X]`` on ``1{T = k} - e_k`` and on its product with the predicted effect less its mean, all treatments in
    one regression: less noise where propensities are small, but an average over the people with overlap.

    The p-value of the slope is right for predictions by models that did not depend on these rows: another sample, or a
    split. With predictions by cross-fitting every fold's model has seen the other folds' noise, and the test may reject
    too often or too rarely: :func:`policytree.heterogeneity_test` is built for one sample.

    Parameters
    ----------
    Y : column of n numbers
    T : column of n labels
    regression, propensity : DataFrames of shape (n, K)
        Out-of-fold nuisances, as ``RewardEstimator.regression_`` and ``propensity_``.
    predicted : DataFrame of shape (n, K), optional
        Predicted outcomes, whose differences are the predicted effects; ``regression`` by default.
    baseline : label, optional
        The first in sorted order by default.
    method : {"scores", "residuals"}
    groups, sample_weight : columns of shape (n,), optional

    Returns
    -------
    DataFrame, one row per treatment but the baseline
        effect (average effect), effect_error; slope (1: predicted differences are right in size; 0: they say nothing),
        slope_error, and of the slope slope_t, slope_p_value (one-sided: against one above zero) and slope_p_adjusted
        (Holm, over the treatments).

    Raises
    ------
    InputError
        If an argument cannot be used, or predicted effects do not vary.

    References
    ----------
    Chernozhukov, Demirer, Duflo & Fernandez-Val (2018), NBER working paper 24678, section 3 (best linear predictor);
    ``test_calibration`` in the R package grf (residuals). Semenova & Chernozhukov (2021), Econometrics Journal 24(2),
    264-289 (regressions on doubly robust scores).

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from policytree.evaluation import calibration_test
    >>> rng = np.random.default_rng(0)
    >>> effect, T = rng.normal(size=400), rng.integers(2, size=400)
    >>> regression = pd.DataFrame({0: np.zeros(400), 1: effect})
    >>> propensity = pd.DataFrame({0: np.full(400, 0.5), 1: np.full(400, 0.5)})
    >>> Y = effect * T + rng.normal(size=400)
    >>> test = calibration_test(Y, T, regression=regression, propensity=propensity)
    >>> test.loc[1, ["slope", "slope_error"]].round(2).tolist()
    [1.12, 0.08]
    """
    check_choice(method, "method", ("scores", "residuals"))
    m, arm, labels = per_treatment(regression, T, "regression")
    e = _like(propensity, regression, T, "propensity")
    s = m if predicted is None else _like(predicted, regression, T, "predicted")
    seen = StudyData.of(Y, labels[arm], sample_weight=sample_weight, groups=groups, treatments=labels)
    b = position_of(baseline, labels, "baseline")
    others = np.flatnonzero(np.arange(len(labels)) != b)
    effect = s[:, others] - s[:, [b]]
    effect = effect - np.average(effect, axis=0, weights=seen.sample_weight)
    if (np.abs(effect).max(axis=0) == 0.0).any():
        raise InputError("Predicted effects are the same for everybody; there is nothing to calibrate.")
    fit = _calibrate_scores if method == "scores" else _calibrate_residuals
    table = pd.DataFrame(
        fit(seen, Nuisances(m, e), effect, others, b), index=pd.Index(labels[others], name="treatment")
    )
    table["slope_t"] = table["slope"] / table["slope_error"]
    table["slope_p_value"] = stats.t.sf(table["slope_t"], table.pop("freedom"))
    table["slope_p_adjusted"] = holm(table["slope_p_value"].to_numpy())
    return table


def _like(table, regression, T, argument: str) -> np.ndarray:
    """Values of a second table, columns in the order of the first."""
    lacking = [str(label) for label in regression.columns if label not in table.columns]
    if lacking:
        raise InputError(f"{argument} has no column for treatment {lacking[0]}; it must have those of regression.")
    values = per_treatment(columns_by_label(table, regression.columns), T, argument)[0]
    if len(values) != len(regression):
        raise InputError(f"{argument} has {len(values)} rows, but regression has {len(regression)}.")
    return values


def _calibrate_scores(seen: StudyData, nuisances: Nuisances, effect, others, b) -> list[dict]:
    from policytree.weighting.doubly_robust import DoublyRobust

    scores = DoublyRobust().rewards(seen, nuisances)
    rows = []
    for j, k in enumerate(others):
        A = np.column_stack([np.ones(seen.n), effect[:, j]])
        fit = least_squares(A, scores[:, k] - scores[:, b], groups=seen.groups, sample_weight=seen.sample_weight)
        rows.append(_calibration_row(fit, 0, 1))
    return rows


def _calibrate_residuals(seen: StudyData, nuisances: Nuisances, effect, others, b) -> list[dict]:
    m, e = nuisances.regression, nuisances.propensity
    assert m is not None and e is not None
    surprise = (seen.arm[:, None] == others) - e[:, others]
    A = np.hstack([surprise, surprise * effect])
    y = seen.y - (e * m).sum(axis=1)
    fit = least_squares(A, y, groups=seen.groups, sample_weight=seen.sample_weight)
    return [_calibration_row(fit, j, len(others) + j) for j in range(len(others))]


def _calibration_row(fit: LeastSquares, effect: int, slope: int) -> dict:
    value, error = fit.coefficients, fit.standard_errors
    row = {"effect": value[effect], "effect_error": error[effect], "slope": value[slope], "slope_error": error[slope]}
    return {**row, "freedom": fit.degrees_of_freedom}


def holm(p: np.ndarray) -> np.ndarray:
    """Holm's adjusted p-values of several tests: Holm (1979), Scandinavian Journal of Statistics 6(2), 65-70."""
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate((len(p) - np.arange(len(p))) * p[order])
    out = np.empty(len(p))
    out[order] = np.minimum(stepped, 1.0)
    return out


@aligns_rows
def best_linear_projection(
    rewards: pd.DataFrame,
    X: Table,
    *,
    treatment: Any,
    baseline: Any,
    groups: Column | None = None,
    sample_weight: Column | None = None,
) -> pd.DataFrame:
    """Linear regression of one treatment's effect on covariates.

    Parameters
    ----------
    rewards : DataFrame of shape (n, K)
        Doubly robust, as ``RewardEstimator.rewards_``.
    X : table of shape (n, p)
        Without missing numbers; categories become indicators, and columns that repeat earlier ones are left out.
    treatment, baseline : labels
        Columns of ``rewards``.
    groups, sample_weight : columns of shape (n,), optional

    Returns
    -------
    DataFrame
        One row for ``"(constant)"`` and each column of covariates: coefficient, standard_error (HC1, with clusters
        CR1), t, p_value (two-sided).

    Raises
    ------
    InputError
        If an argument cannot be used.

    References
    ----------
    Semenova & Chernozhukov (2021), Econometrics Journal 24(2), 264-289; ``best_linear_projection`` in the R package
    grf.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from policytree.evaluation import best_linear_projection
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"age": rng.uniform(20, 80, size=400)})
    >>> rewards = pd.DataFrame({"drug": X["age"] / 10 + rng.normal(size=400), "none": 0.0})
    >>> best_linear_projection(rewards, X, treatment="drug", baseline="none")["coefficient"].round(1)
    covariate
    (constant)    0.0
    age           0.1
    Name: coefficient, dtype: float64
    """
    values, _, labels = per_treatment(rewards, [treatment] * len(rewards), "rewards")
    k, b = position_of(treatment, labels, "treatment"), position_of(baseline, labels, "baseline")
    covariates = Covariates.fit(X)
    Z, names = covariates.matrix(X, None, len(values)), ["(constant)", *covariates.names()]
    missing = np.isnan(Z).any(axis=0)
    if missing.any():
        raise InputError(f"Column {names[1 + int(missing.argmax())]!r} of X has missing values; fill them.")
    A = np.column_stack([np.ones(len(Z)), Z])
    kept = np.flatnonzero(independent_columns(A))
    options = {"groups": group_codes(groups, len(Z)), "sample_weight": weights(sample_weight, len(Z), "rewards")}
    fit = least_squares(A[:, kept], values[:, k] - values[:, b], **options)
    table = pd.DataFrame({"coefficient": fit.coefficients, "standard_error": fit.standard_errors})
    table.index = pd.Index([names[j] for j in kept], name="covariate")
    table["t"] = table["coefficient"] / table["standard_error"]
    table["p_value"] = 2.0 * stats.t.sf(table["t"].abs(), fit.degrees_of_freedom)
    return table
