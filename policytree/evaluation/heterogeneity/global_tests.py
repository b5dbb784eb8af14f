"""Do effects differ between people at all? One test to look at before any tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from policytree.common.calls import StudyLike, refuses_said_by_study
from policytree.common.docstrings import shares_documentation
from policytree.common.shared_arguments import STUDY
from policytree.common.typing import Column, PerTreatment, Seed, Table
from policytree.common.validation import position_of
from policytree.data.views import Shown
from policytree.evaluation.estimates import Estimate, mean_estimate
from policytree.evaluation.heterogeneity.linear_projection import cluster_sums, holm, independent_columns
from policytree.evaluation.inputs import generator, refuse_instrument
from policytree.exceptions import InputError
from policytree.model_selection.crossfit import fit_mean
from policytree.model_selection.folds import FoldPlan
from policytree.weighting.completion import completed
from policytree.weighting.covariates import Covariates
from policytree.weighting.nuisances import resolve_regression
from policytree.weighting.reward_estimator import RewardEstimator
from policytree.weighting.stacked import per_person
from policytree.weighting.study_data import StudyData

UNITS_PER_DIRECTION = 10  # rows, or clusters, that the joint test needs for each direction
N_BLOCKS = 5
FEWEST_UNITS = 10  # in a block, for a test of its own
WEAK, STRONG = 0.05, 0.01


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class HeterogeneityTest(Shown):
    """The result of :func:`policytree.heterogeneity_test`; ``str()`` states it in a sentence.

    Attributes
    ----------
    p_value : float
        Of the hypothesis that no treatment's effect differs between people: twice the smaller of the two tests'
        p-values, at most one (Bonferroni).
    p_predicted : float
        Of the sequential test of predicted effects, over all treatments (smallest of ``table["slope_p_adjusted"]``).
    p_linear : float
        Of the joint test that effects do not change linearly with any covariate.
    table : DataFrame, one row per treatment but the baseline
        effect, standard_error (average against the baseline, of doubly robust scores); slope, slope_error (of effects
        on predicted effects: 1 if predicted differences are right in size, 0 if they say nothing), and of the slope
        slope_z, slope_p_value (one-sided) and slope_p_adjusted (Holm).
    linear : dict
        statistic (F), degrees_of_freedom (two numbers), directions (looked in) and available (in the covariates).
    baseline : label
    n, n_clusters : int
        Rows, and clusters (rows without clusters), with positive weight.

    Examples
    --------
    >>> import numpy as np
    >>> from policytree import heterogeneity_test
    >>> rng = np.random.default_rng(0)
    >>> X, T = rng.normal(size=(300, 2)), rng.integers(2, size=300)
    >>> Y = X[:, 0] + T * X[:, 1] + rng.normal(size=300)
    >>> test = heterogeneity_test(Y, T, X=X, propensity=0.5, random_state=0)
    >>> test.p_value == min(1.0, 2 * min(test.p_predicted, test.p_linear))
    True
    """

    p_value: float
    p_predicted: float
    p_linear: float
    table: pd.DataFrame
    linear: dict
    baseline: object
    n: int
    n_clusters: int

    def __str__(self) -> str:
        p = "p < 0.001" if self.p_value < 0.001 else f"p = {self.p_value:.2g}"
        if self.p_value >= WEAK:
            return (
                f"No sign that effects differ between people: {p}. There are no effect differences for a rule to use, "
                "as far as these data can tell."
            )
        how = (
            "Effects differ between people" if self.p_value < STRONG else "Some sign that effects differ between people"
        )
        return f"{how}: {p}."


@refuses_said_by_study
@shares_documentation(STUDY)
def heterogeneity_test(
    Y: Column | StudyLike,
    T: Column | None = None,
    *,
    X: Table | None = None,
    W: Table | None = None,
    propensity: PerTreatment | None = None,
    sample_weight: Column | None = None,
    groups: Column | None = None,
    baseline: Any = None,
    estimator: RewardEstimator | None = None,
    fitted: RewardEstimator | None = None,
    n_blocks: int | None = None,
    random_state: Seed = None,
) -> HeterogeneityTest:
    """Test whether any treatment's effect differs between people, before looking for a rule.

    There are two tests, because each detects what the other misses. Both use the residuals of a model with one common
    effect for everybody,
    ``Y - E[Y | X] - sum over k of tau_k (1{T = k} - e_k)``.

    *Predicted effects*: rows are assigned to blocks; outcome models fitted to the blocks before a block predict the
    effects in it, and residuals are compared with ``(1{T = k} - e_k)`` times the predictions (a one-sided test
    of their slope). Since no model has seen a later block, the blocks' statistics are a martingale: their sum over the
    root of their number is standard normal if effects are the same for everybody. Statistics pooled over ordinary
    cross-fitting are not: every fold's model has seen the other folds' noise.

    With a target (``study``), both tests are of the study's rows, which alone have outcomes, as they are: whether
    effects are the same for everybody does not depend on how people are weighted. Average effects are those in the
    target.

    *Linear*: residuals are compared with ``(1{T = k} - e_k)`` times every covariate, all treatments and covariates at
    once, by Hotelling's statistic. (The same with doubly robust scores rejects too often in small samples of many
    treatments: 11 % at n = 300 and four arms.)

    Parameters
    ----------
    X, W : DataFrame or array of shape (n, p), optional
        Covariates; the tests use both.
    baseline : label, optional
        The treatment that the others are compared with; by default the first in sorted order, whatever it is called
        (only the command line looks for a "placebo"). Only the test of predicted effects depends on it.
    estimator : RewardEstimator, optional
        Its models are the nuisances, and its outcome model predicts effects; default settings otherwise. A clone is
        fitted.
    fitted : RewardEstimator, optional
        An estimator that was fitted to exactly these rows, instead of ``estimator``; this saves half of the time.
    n_blocks : int, optional
        Blocks of the sequential test: 5, or as many as the rarest treatment has rows (clusters) if these are fewer.
    random_state : int, RandomState or None
        Draws the blocks, and seeds the default learners.

    Returns
    -------
    HeterogeneityTest

    Raises
    ------
    InputError
        If an argument cannot be used, or there are too few rows.

    References
    ----------
    Wager (2024), Sequential validation of treatment heterogeneity, arXiv:2405.05534. Luedtke & van der Laan (2016),
    Annals of Statistics 44(2), 713-742 (the martingale). Chernozhukov, Demirer, Duflo & Fernandez-Val (2018), NBER
    working paper 24678 (best linear predictor of effects). Semenova & Chernozhukov (2021), Econometrics Journal 24(2)
    (linear projections). Robinson (1988), Econometrica 56(4), 931-954 (residuals). Hotelling (1931), Annals of
    Mathematical Statistics 2(3), 360-378.

    Examples
    --------
    >>> import numpy as np
    >>> from policytree import heterogeneity_test
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 2))
    >>> T = rng.integers(2, size=600)
    >>> Y = X[:, 0] + T * X[:, 1] + rng.normal(size=600)
    >>> print(heterogeneity_test(Y, T, X=X, propensity=0.5, random_state=0))
    Effects differ between people: p < 0.001.
    """
    whole = StudyData.read(
        "heterogeneity_test", Y, T=T, X=X, W=W, propensity=propensity, groups=groups, sample_weight=sample_weight
    ).with_covariates()
    refuse_instrument(whole, "heterogeneity_test")
    if fitted is None:
        fitted = RewardEstimator(random_state=random_state) if estimator is None else clone(estimator)
        fitted.fit(whole)
    _check_fitted(fitted, whole)
    b, rng = position_of(baseline, whole.treatments, "baseline"), generator(random_state)
    Z, averages = Covariates.fit(whole.X, whole.W).matrix(whole.X, whole.W, whole.n), _average_effects(fitted, whole, b)
    own = np.ones(whole.n, dtype=bool) if whole.study is None else whole.study
    seen, Z = completed(whole.of_study(), fitted.completed_outcomes()[own]), Z[own]
    null = _NullModel.of(fitted, seen, b, own)
    plan = seen.folds(_fewest(seen) if n_blocks is None else n_blocks, rng.randint(2**31 - 1), "n_blocks")
    learner = resolve_regression(fitted.model_regression, seen.y, Z.shape[1] > 0, rng.randint(2**31 - 1))
    table = _sequential_table(list(_predicted_blocks(learner, Z, seen, plan, b)), null, averages, seen, b)
    linear = _linear_test(Z, null, seen)
    p_predicted, p_linear = float(table["slope_p_adjusted"].min()), linear.pop("p_value")
    known = [p for p in (p_predicted, p_linear) if not np.isnan(p)]
    units = len(cluster_sums(seen.weight[seen.weight > 0][:, None], _kept_groups(seen)))
    return HeterogeneityTest(
        min(1.0, len(known) * min(known)), p_predicted, p_linear, table, linear, seen.treatments[b],
        int((seen.weight > 0).sum()), units,
    )  # fmt: skip


def _kept_groups(seen: StudyData) -> np.ndarray | None:
    return None if seen.groups is None else seen.groups[seen.weight > 0]


def _fewest(seen: StudyData) -> int:
    """Rows, or clusters, of the rarest treatment; at most 5, at least 2."""
    arm = seen.arm
    if seen.groups is not None:
        arm = np.unique(np.column_stack([seen.arm, seen.groups]), axis=0)[:, 0]
    return int(np.clip(np.bincount(arm, minlength=seen.n_arms).min(), 2, N_BLOCKS))


def _check_fitted(fitted: RewardEstimator, seen: StudyData) -> None:
    check_is_fitted(fitted, "rewards_")
    if fitted.regression_ is None or fitted.propensity_ is None or fitted.estimand != "all":
        raise InputError("The estimator must fit outcome models and propensities for estimand='all'; use method='dr'.")
    if fitted.regression_.shape != (seen.n, seen.n_arms) or (fitted.treatments_ != seen.treatments).any():
        raise InputError(
            f"fitted knows {len(fitted.regression_)} rows of treatments {', '.join(map(str, fitted.treatments_))}, but "
            f"there are {seen.n} of {', '.join(map(str, seen.treatments))}; fit it on these rows."
        )


@dataclass(frozen=True, slots=True)
class _NullModel:
    """Outcomes less what covariates explain, and treatments less their probabilities.

    Attributes
    ----------
    y : ndarray of shape (n,)
        ``Y - E[Y | X]``.
    surprise : ndarray of shape (n, K - 1)
        ``1{T = k} - e_k`` for every treatment but the baseline.
    weight : ndarray of shape (n,)
    """

    y: np.ndarray
    surprise: np.ndarray
    weight: np.ndarray

    @classmethod
    def of(cls, fitted: RewardEstimator, seen: StudyData, b: int, own: np.ndarray) -> _NullModel:
        """From cross-fitted nuisances; propensities that were raised to a floor are scaled to sum to one again.

        ``own``: which rows of the fit these are.
        """
        assert fitted.propensity_ is not None and fitted.regression_ is not None  # checked by _check_fitted
        e = fitted.propensity_.to_numpy()[own]
        e = e / e.sum(axis=1, keepdims=True)
        surprise = (seen.arm[:, None] == np.arange(seen.n_arms)) - e
        y = seen.y - (e * fitted.regression_.to_numpy()[own]).sum(axis=1)
        return cls(y, np.delete(surprise, b, axis=1), seen.weight)

    def products(self, columns: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weighted products of residuals with ``columns`` (rows, q), and weighted squares of these, both (rows, q).

        Average effects are estimated from these rows; columns are made orthogonal to them (Frisch and Waugh).
        """
        root = np.sqrt(self.weight[rows])[:, None]
        known = self.surprise[rows] * root
        both = np.column_stack([self.y[rows], columns]) * root
        both = both - known @ np.linalg.lstsq(known, both, rcond=None)[0]
        return both[:, 1:] * both[:, :1], both[:, 1:] ** 2


def _predicted_blocks(learner, Z: np.ndarray, seen: StudyData, plan: FoldPlan, b: int):
    """Rows of every block but the first, and effects predicted for them from the blocks before, (rows, K)."""
    for block in range(1, plan.n_folds):
        rows, before = np.flatnonzero(plan.fold == block), plan.fold < block
        train = [np.flatnonzero(before & (seen.arm == k) & (seen.weight > 0)) for k in range(seen.n_arms)]
        if min(len(t) for t in train) < FEWEST_UNITS:
            continue
        outcomes = []
        for t in train:
            w, g = (None if part is None else part[t] for part in (seen.sample_weight, seen.groups))
            outcomes.append(fit_mean(learner, Z[t], seen.y[t], sample_weight=w, groups=g).predict(Z[rows]))
        predicted = np.column_stack(outcomes)
        yield rows, predicted - predicted[:, [b]]


def _average_effects(fitted: RewardEstimator, seen: StudyData, b: int) -> list[Estimate]:
    """Of every treatment but the baseline, over everybody the rewards are about."""
    scores, weight = fitted.rewards_.to_numpy(), seen.sample_weight
    if seen.study is not None:
        scores = per_person(scores, seen.study, seen.sampling_weight)
    others = [k for k in range(seen.n_arms) if k != b]
    return [mean_estimate(scores[:, k] - scores[:, b], groups=seen.groups, sample_weight=weight) for k in others]


def _sequential_table(blocks, null: _NullModel, averages: list[Estimate], seen: StudyData, b: int) -> pd.DataFrame:
    """Average effects, slopes on predicted effects, and the martingale tests of the slopes."""
    records = []
    others = [k for k in range(seen.n_arms) if k != b]
    for j, (k, average) in enumerate(zip(others, averages, strict=True)):
        found = [_Block.of(null, j, predicted[:, k], seen, rows) for rows, predicted in blocks]
        parts = [part for part in found if part is not None]
        z = float(np.sum([part.z for part in parts])) / np.sqrt(len(parts)) if parts else 0.0
        spread = sum(part.squares.sum() for part in parts)
        slope = sum(part.sums.sum() for part in parts) / spread if parts else np.nan
        noise = sum(((part.sums - slope * part.squares) ** 2).sum() for part in parts)
        records.append(
            {
                "effect": average.value,
                "standard_error": average.standard_error,
                "slope": slope,
                "slope_error": np.sqrt(noise) / spread if parts else np.nan,
                "slope_z": z,
                "slope_p_value": float(stats.norm.sf(z)) if parts else 1.0,
            }
        )
    table = pd.DataFrame(records, index=pd.Index(seen.treatments[others], name="treatment"))
    table["slope_p_adjusted"] = holm(table["slope_p_value"].to_numpy())
    return table


@dataclass(frozen=True, slots=True)
class _Block:
    """One block's test: sums by cluster of products of residuals with predictions, and of these' squares."""

    sums: np.ndarray
    squares: np.ndarray
    z: float

    @classmethod
    def of(cls, null: _NullModel, j: int, predicted, seen: StudyData, rows: np.ndarray) -> _Block | None:
        """None where predictions do not vary or clusters are too few for a test."""
        kept = null.weight[rows] > 0
        rows, predicted = rows[kept], predicted[kept]
        if len(rows) < FEWEST_UNITS or np.ptp(predicted) == 0.0:
            return None
        column = (predicted - predicted.mean()) * null.surprise[rows, j]
        both = np.hstack(null.products(column[:, None], rows))
        sums, squares = cluster_sums(both, None if seen.groups is None else seen.groups[rows]).T
        deviation = sums.std(ddof=1) if len(sums) >= FEWEST_UNITS else 0.0
        if deviation == 0.0:
            return None
        t = sums.mean() / deviation * np.sqrt(len(sums))
        # Student's t with its own degrees of freedom becomes a standard normal number, so that blocks can be summed.
        tail = stats.t.logsf(abs(t), len(sums) - 1)
        return cls(sums, squares, float(np.sign(t) * stats.norm.isf(np.exp(max(tail, -700.0)))))


def _linear_test(Z: np.ndarray, null: _NullModel, seen: StudyData) -> dict:
    """Hotelling's test that residuals do not vary with any product of a treatment and a covariate."""
    kept = np.flatnonzero(null.weight > 0)
    directions, groups = _directions(Z, null.weight), _kept_groups(seen)
    n_units = len(cluster_sums(null.weight[kept, None], groups))
    n_effects = null.surprise.shape[1]
    used = directions[:, : n_units // (UNITS_PER_DIRECTION * n_effects)]
    result = {"statistic": np.nan, "degrees_of_freedom": (0, 0), "directions": used.shape[1],
              "available": directions.shape[1], "p_value": np.nan}  # fmt: skip
    if not used.shape[1]:
        return result
    columns = (used[:, :, None] * null.surprise[:, None, :]).reshape(len(used), -1)
    sums = cluster_sums(null.products(columns[kept], kept)[0], groups)
    sums = sums[:, independent_columns(sums - sums.mean(axis=0))]
    q = sums.shape[1]
    if not 0 < q < n_units:
        return result
    mean = sums.mean(axis=0)
    squared = n_units * mean @ np.linalg.solve(np.cov(sums.T).reshape(q, q), mean)
    F = squared * (n_units - q) / (q * (n_units - 1))
    return result | {
        "statistic": float(F), "degrees_of_freedom": (q, n_units - q), "p_value": float(stats.f.sf(F, q, n_units - q)),
    }  # fmt: skip


def _directions(Z: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Principal components of the standardised covariates, those with most variance first; (n, rank).

    A missing number becomes the column's mean; an indicator of missing values becomes another column.
    """
    missing = np.isnan(Z)
    gaps = missing[:, missing.any(axis=0)].astype(np.float64)
    total = np.maximum((w[:, None] * ~missing).sum(axis=0), np.finfo(float).tiny)
    mean = (w[:, None] * np.where(missing, 0.0, Z)).sum(axis=0) / total
    columns = np.hstack([np.where(missing, mean, Z), gaps])
    columns = columns - np.average(columns, axis=0, weights=w)
    scale = np.sqrt(np.average(columns**2, axis=0, weights=w))
    columns = columns[:, scale > 0] / scale[scale > 0]
    if not columns.shape[1]:
        return columns
    values, vectors = np.linalg.eigh((columns * w[:, None]).T @ columns / w.sum())
    order = np.argsort(-values, kind="stable")
    order = order[values[order] > 1e-8 * values.max()]
    return columns @ vectors[:, order]
