"""Tests for heterogeneity: agreement with statsmodels, hand calculation, size without effects and power with them."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats
from scipy.stats import binom
from sklearn.linear_model import LinearRegression, LogisticRegression

from policytree import RewardEstimator, heterogeneity_test
from policytree.evaluation import best_linear_projection, calibration_test
from policytree.evaluation.heterogeneity.linear_projection import holm, independent_columns, least_squares
from policytree.exceptions import InputError

LEARNERS = {"model_regression": LinearRegression(), "model_propensity": LogisticRegression()}


def study(rng, n=400, n_arms=2, effect=0.0, size=1):
    """A trial with five covariates; arm 1's effect changes with x0; ``size`` rows a cluster."""
    X = pd.DataFrame(rng.normal(size=(n, 5)), columns=[f"x{j}" for j in range(5)])
    group = np.arange(n) // size
    T = rng.integers(n_arms, size=n)
    noise = rng.normal(size=n) + (rng.normal(size=n)[group] if size > 1 else 0.0)
    Y = X["x0"].to_numpy() + (T == 1) * (0.3 + effect * X["x0"].to_numpy()) + noise
    data = {"Y": Y, "T": T, "X": X, "propensity": np.full((n, n_arms), 1 / n_arms)}
    return data | ({"groups": group} if size > 1 else {})


def nuisances(data, rng):
    """Given, so that the test's own numbers are checked and nothing else."""
    labels = sorted(set(np.asarray(data["T"]).tolist()))
    m = pd.DataFrame(rng.normal(size=(len(data["Y"]), len(labels))), columns=labels)
    p = rng.dirichlet(np.full(len(labels), 5.0), size=len(m)).clip(0.05)
    return m, pd.DataFrame(p / p.sum(axis=1, keepdims=True), columns=labels)


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_least_squares_is_statsmodels(rng, clustered, weighted):
    A = np.column_stack([np.ones(90), rng.normal(size=(90, 3))])
    y, w = A @ [1.0, 2.0, 0.0, -1.0] + rng.normal(size=90) * (1 + A[:, 1] ** 2), rng.lognormal(size=90)
    w = w if weighted else np.ones(90)
    g = np.arange(90) // 4
    fit = least_squares(A, y, groups=g if clustered else None, sample_weight=w)
    kind = {"cov_type": "cluster", "cov_kwds": {"groups": g}} if clustered else {"cov_type": "HC1"}
    theirs = sm.WLS(y, A, weights=w).fit(**kind)
    assert fit.coefficients == pytest.approx(theirs.params, abs=1e-9)
    assert fit.covariance == pytest.approx(theirs.cov_params(), abs=1e-9)


def test_rows_of_weight_zero_are_absent(rng):
    A, y = np.column_stack([np.ones(60), rng.normal(size=60)]), rng.normal(size=60)
    w = np.r_[np.ones(40), np.zeros(20)]
    padded, plain = least_squares(A, y, sample_weight=w), least_squares(A[:40], y[:40])
    assert padded.coefficients == pytest.approx(plain.coefficients, abs=1e-12)
    assert padded.covariance == pytest.approx(plain.covariance, abs=1e-12)


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("n_arms", [2, 3])
def test_calibration_is_statsmodels(rng, n_arms, clustered):
    data = study(rng, 150, n_arms, size=3 if clustered else 1)
    m, e = nuisances(data, rng)
    w, groups = rng.lognormal(size=150), data.get("groups")
    kind = {"cov_type": "cluster", "cov_kwds": {"groups": groups}} if clustered else {"cov_type": "HC1"}
    options = {"regression": m, "propensity": e, "sample_weight": w, "groups": groups, "baseline": n_arms - 1}
    table = calibration_test(data["Y"], data["T"], **options)
    residual = calibration_test(data["Y"], data["T"], method="residuals", **options)
    Y, arm, b = data["Y"], data["T"], n_arms - 1
    others = [k for k in range(n_arms) if k != b]
    tau = {k: (m[k] - m[b]) - np.average(m[k] - m[b], weights=w) for k in others}
    for k in others:
        score = m[k] - m[b] + (arm == k) * (Y - m[k]) / e[k] - (arm == b) * (Y - m[b]) / e[b]
        theirs = sm.WLS(score, np.column_stack([np.ones(150), tau[k]]), weights=w).fit(**kind)
        row = table.loc[k]
        assert row[["effect", "slope"]].tolist() == pytest.approx(theirs.params.tolist(), abs=1e-9)
        assert row[["effect_error", "slope_error"]].tolist() == pytest.approx(theirs.bse.tolist(), abs=1e-9)
    D = np.column_stack([(arm == k) - e[k] for k in others])
    A = np.hstack([D, D * np.column_stack([tau[k] for k in others])])
    theirs = sm.WLS(Y - (e * m).sum(axis=1), A, weights=w).fit(**kind)
    half = len(others)
    assert residual["effect"].tolist() == pytest.approx(theirs.params[:half].tolist(), abs=1e-9)
    assert residual["slope_error"].tolist() == pytest.approx(theirs.bse[half:].tolist(), abs=1e-9)
    freedom = 150 // 3 - 1 if clustered else 150 - 2 * half
    assert residual["slope_p_value"].tolist() == pytest.approx(
        stats.t.sf(theirs.tvalues[half:], freedom).tolist(), abs=1e-9
    )


def test_projection_is_statsmodels_and_leaves_out_what_repeats(rng):
    X = pd.DataFrame({"age": rng.normal(size=120), "town": rng.choice(["Oslo", "Rome"], size=120)})
    X["twice"] = 2 * X["age"]
    rewards = pd.DataFrame(rng.normal(size=(120, 3)), columns=["a", "b", "c"])
    g = np.arange(120) // 2
    table = best_linear_projection(rewards, X, treatment="c", baseline="a", groups=g)
    assert table.index.tolist() == ["(constant)", "age", "town=Oslo"] or "twice" not in table.index
    A = np.column_stack([np.ones(120), X["age"], X["town"] == "Oslo"])
    theirs = sm.OLS(rewards["c"] - rewards["a"], A).fit(cov_type="cluster", cov_kwds={"groups": g})
    assert table["coefficient"].tolist() == pytest.approx(theirs.params.tolist(), abs=1e-9)
    assert table["standard_error"].tolist() == pytest.approx(theirs.bse.tolist(), abs=1e-9)


def test_independent_columns_by_hand():
    A = np.array([[1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 2.0, 0.0], [1.0, 1.0, 0.0, 0.0]])
    assert independent_columns(A).tolist() == [True, False, True, False]


def test_holm_by_hand():
    assert holm(np.array([0.04, 0.01, 0.03])).tolist() == pytest.approx([0.06, 0.03, 0.06])
    assert holm(np.array([0.5, 0.6])).tolist() == [1.0, 1.0]


def test_the_linear_test_is_hotelling(rng):
    """With one covariate and two arms: the square of a t statistic of the products' mean."""
    data = study(rng, 200)
    data["X"] = data["X"][["x0"]]
    model = RewardEstimator(**LEARNERS, random_state=0).fit(**data)
    found = heterogeneity_test(**data, fitted=model, random_state=0)
    x, surprise = data["X"]["x0"].to_numpy(), data["T"] - 0.5
    y = data["Y"] - model.regression_.mean(axis=1).to_numpy()
    residual = sm.OLS(y, surprise).fit().resid
    column = sm.OLS((x - x.mean()) * surprise, surprise).fit().resid
    t = stats.ttest_1samp(residual * column, 0.0)
    assert found.linear["statistic"] == pytest.approx(t.statistic**2, rel=1e-9)
    assert found.p_linear == pytest.approx(t.pvalue, rel=1e-9)


def test_heterogeneity_is_found_and_said(rng):
    found = heterogeneity_test(**study(rng, 800, effect=1.0), estimator=RewardEstimator(**LEARNERS), random_state=0)
    assert found.p_value < 1e-3 > found.p_linear
    assert str(found) == "Effects differ between people: p < 0.001."
    assert found.table.loc[1, "slope"] == pytest.approx(1.0, abs=5 * found.table.loc[1, "slope_error"])
    nothing = heterogeneity_test(**study(rng, 300), estimator=RewardEstimator(**LEARNERS), random_state=0)
    assert str(nothing).startswith(f"No sign that effects differ between people: p = {nothing.p_value:.2g}. ")
    assert nothing.p_value == pytest.approx(min(1, 2 * min(nothing.p_linear, nothing.p_predicted)))


def test_clusters_weights_categories_gaps_and_three_arms(rng):
    data = study(rng, 360, 3, effect=0.5, size=3)
    data["X"]["town"] = rng.choice(["Oslo", "Rome", None], size=360)
    data["X"].loc[::7, "x1"] = np.nan
    weight = np.where(np.arange(360) < 30, 0.0, rng.lognormal(size=360))
    estimator = RewardEstimator(**LEARNERS, random_state=0)
    found = heterogeneity_test(**data, sample_weight=weight, estimator=estimator, baseline=2, random_state=0)
    assert found.table.index.tolist() == [0, 1]
    assert (found.n, found.n_clusters, found.baseline) == (330, 110, 2)
    assert (found.table["slope_p_adjusted"] >= found.table["slope_p_value"]).all()
    assert 0 <= found.p_value <= 1
    scaled = heterogeneity_test(**data, sample_weight=7 * weight, estimator=estimator, baseline=2, random_state=0)
    assert scaled.p_value == pytest.approx(found.p_value, rel=1e-6)


def test_covariates_that_do_not_vary_are_no_evidence(rng):
    data = study(rng, 200)
    data["X"] = pd.DataFrame({"same": np.ones(200)})
    found = heterogeneity_test(**data, estimator=RewardEstimator(random_state=0), random_state=0)
    assert found.p_value == 1.0
    assert np.isnan(found.p_linear)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"baseline": 7}, "baseline=7 is not among the treatments; they are 0, 1"),
        ({"estimator": RewardEstimator(estimand="overlap", **LEARNERS)}, "for estimand='all'; use method='dr'"),
        ({"estimator": RewardEstimator(LinearRegression(), method="regression"), "propensity": None}, "dr"),
    ],
)
def test_what_cannot_be_used_is_refused(rng, change, message):
    with pytest.raises(InputError, match=message):
        heterogeneity_test(**study(rng, 100) | change)


def test_a_fit_of_other_rows_is_refused(rng):
    model = RewardEstimator(**LEARNERS).fit(**study(rng, 90))
    with pytest.raises(InputError, match="fitted knows 90 rows of treatments 0, 1, but there are 100 of 0, 1, 2"):
        heterogeneity_test(**study(rng, 100, 3), fitted=model)


def test_calibration_refuses(rng):
    data = study(rng, 60)
    m, e = nuisances(data, rng)
    with pytest.raises(InputError, match="method must be 'scores' or 'residuals'; got 'forest'"):
        calibration_test(data["Y"], data["T"], regression=m, propensity=e, method="forest")
    with pytest.raises(InputError, match="Predicted effects are the same for everybody"):
        calibration_test(data["Y"], data["T"], regression=0 * m, propensity=e)
    with pytest.raises(InputError, match="propensity has no column for treatment 1"):
        calibration_test(data["Y"], data["T"], regression=m, propensity=e[[0]])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "n_arms", "size", "runs"),
    [(300, 2, 1, 60), (300, 4, 1, 30), (1_500, 2, 25, 30)],
    ids=["two arms", "four arms", "clusters"],
)
def test_size_and_power(rng, n, n_arms, size, runs):
    """Without differences each test rejects in 5 % of samples, with clear ones mostly; ``benchmarks/`` has 400 of each.

    Limits leave out one in a thousand; a test that never rejects is told by its power.
    """
    p = {0.0: [], 0.4: []}
    for effect, values in p.items():
        for run in range(runs if effect == 0.0 else 12):
            data = study(rng, n, n_arms, effect, size)
            model = RewardEstimator(**LEARNERS, random_state=run).fit(**data)
            found = heterogeneity_test(**data, fitted=model, random_state=run)
            values.append((found.p_value, found.p_predicted, found.p_linear))
    rejected = {effect: (np.array(values) < 0.05).sum(axis=0) for effect, values in p.items()}
    assert (rejected[0.0] <= binom.ppf(0.999, runs, 0.05)).all(), rejected
    assert rejected[0.4][0] > (6 if n_arms == 2 else 3) and rejected[0.4].min() > 0, rejected


def test_no_warning_on_the_way(rng):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        heterogeneity_test(**study(rng, 300), random_state=0)
