"""Omitted-variable bounds: formulas by hand, a simulated variable that is really left out, benchmarks."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from policytree import DRPolicyTree, RewardEstimator
from policytree.evaluation import nuisances_without, omitted_variable_bounds
from policytree.evaluation.sensitivity.omitted_variables import Benchmark
from policytree.exceptions import InputError
from tests.support.simulations import three_arms


@pytest.fixture
def study(rng):
    made = three_arms(rng, 300, 3)
    del made["x"]
    return made | {"regression": made["regression"].to_numpy()}


def analyse(study, **options):
    options = {"held_out": True, "random_state": 0, "n_bootstrap": 200, **study, **options}
    return omitted_variable_bounds(options.pop("policy"), options.pop("Y"), options.pop("T"), **options)


@pytest.mark.parametrize("baseline", [None, "a"])
def test_the_formula_by_hand(study, baseline):
    found = analyse(study, baseline=baseline, rho=-0.8)
    p, w = study["propensity"].to_numpy(), study["sample_weight"]
    arm = pd.Index(list("abc")).get_indexer(study["T"])
    chosen = pd.Index(list("abc")).get_indexer(study["policy"])
    change = np.eye(3)[chosen] - (0 if baseline is None else np.eye(3)[0])
    rows = np.arange(300)
    alpha = change[rows, arm] / p[rows, arm]
    residual = study["Y"] - study["regression"][rows, arm]
    theta = np.average((change * study["regression"]).sum(axis=1) + alpha * residual, weights=w)
    sigma2 = np.average(residual**2, weights=w)
    nu2 = np.average(2 * (change**2 / p).sum(axis=1) - alpha**2, weights=w)
    half = 0.8 * np.sqrt(sigma2 * nu2 * 0.1 * 0.2 / 0.8)
    bounds = found.bounds(0.1, 0.2)
    assert found.estimate.value == pytest.approx(theta, rel=1e-12)
    assert found.scale == pytest.approx(np.sqrt(sigma2 * nu2), rel=1e-12)
    assert (bounds.lower, bounds.upper) == pytest.approx((theta - half, theta + half), rel=1e-12)
    if baseline is None:
        assert np.isnan(found.robustness_value) and found.statements() == ()
    else:
        at = found.bounds(found.robustness_value, found.robustness_value)
        assert min(abs(at.lower), abs(at.upper)) == pytest.approx(0.0, abs=1e-9)
        share = found.interval_robustness_value
        at = found.bounds(share, share)
        assert share == 0.0 or min(abs(at.interval_lower), abs(at.interval_upper)) == pytest.approx(0.0, abs=1e-6)


def test_nothing_omitted_moves_nothing(study):
    found = analyse(study, baseline="a")
    for strength in ((0.0, 0.5), (0.5, 0.0), (0.0, 0.0)):
        bounds = found.bounds(*strength)
        assert bounds.lower == bounds.upper == pytest.approx(found.estimate.value, rel=1e-12)
        assert bounds.lower_standard_error == pytest.approx(found.estimate.standard_error, rel=1e-12)


def test_influences_are_derivatives(study):
    weight, step = study["sample_weight"], 1e-6
    influence = analyse(study, baseline="a").bounds(0.2, 0.1).upper_influence
    for row in (3, 50, 200):
        ends = []
        for sign in (1, -1):
            moved = weight.copy()
            moved[row] += sign * step
            ends.append(analyse(study, baseline="a", sample_weight=moved).bounds(0.2, 0.1).upper)
        slope = (ends[0] - ends[1]) / (2 * step)
        assert influence[row] / 300 == pytest.approx(slope * weight[row], abs=1e-6)


def test_a_variable_that_is_left_out_moves_the_estimate_by_what_the_bound_says(rng):
    """A linear model with a hidden normal variable; strengths by their definitions from the true functions."""
    n = 40_000
    hidden = rng.choice([-1.0, 1.0], n)
    e = np.where(hidden > 0, 0.7, 0.4)
    T = (rng.random(n) < e).astype(int)
    y = 1.0 * T + 0.6 * hidden + rng.normal(size=n)
    means = np.array([y[k == T].mean() for k in (0, 1)])
    found = omitted_variable_bounds(
        1, y, T, propensity=np.full(n, T.mean()), regression=np.tile(means, (n, 1)), baseline=0, n_bootstrap=20,
        random_state=0,
    )  # fmt: skip
    long = T / e - (1 - T) / (1 - e)
    short = T / T.mean() - (1 - T) / (1 - T.mean())
    cf_d = 1 - np.mean(short**2) / np.mean(long**2)
    cf_y = np.mean((1.0 * T + 0.6 * hidden - means[T]) ** 2) / np.mean((y - means[T]) ** 2)
    bounds = found.bounds(cf_y, cf_d)
    assert found.estimate.lower > 1.0, "the estimate is confounded"
    assert bounds.lower <= 1.0, "the true effect is within the bounds"
    correlation = np.mean((1.0 * T + 0.6 * hidden - means[T]) * (long - short)) / np.sqrt(
        np.mean((1.0 * T + 0.6 * hidden - means[T]) ** 2) * np.mean((long - short) ** 2)
    )
    half = abs(correlation) * (found.estimate.value - bounds.lower)
    assert found.estimate.value - half == pytest.approx(1.0, abs=4 * found.estimate.standard_error)


@pytest.fixture
def confounded(rng):
    """Treatment depends on "strong" much more than on "weak"; so does the outcome. "none" does nothing."""
    n = 3_000
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["strong", "weak", "none"])
    T = (rng.random(n) < 1 / (1 + np.exp(-X["strong"] - 0.4 * X["weak"]))).astype(int)
    Y = X["strong"] + 0.4 * X["weak"] + 0.5 * T + rng.normal(size=n)
    return {"Y": Y, "T": T, "X": X}


def test_benchmarks_measure_what_is_omitted(confounded):
    learner = RewardEstimator(LinearRegression(), LogisticRegression(), cv=2, random_state=0).fit(**confounded)
    groups = {"strong": ["strong"], "weak": ["weak"], "both": ["strong", "weak"], "none": ["none"]}
    without = nuisances_without(learner, **confounded, covariates=groups)
    assert list(without) == list(groups)
    found = omitted_variable_bounds(
        1, confounded["Y"], confounded["T"], propensity=learner.propensity_, regression=learner.regression_,
        baseline=0, benchmarks=without, multiples=(1, 3), random_state=0,
    )  # fmt: skip
    strong, weak, both, none = found.benchmarks
    # the residual variance is 1; without a covariate it rises by what is left of that, given arm and the others
    for benchmark, name, slope in ((strong, "strong", 1.0), (weak, "weak", 0.4)):
        others, left = confounded["X"].drop(columns=name), 0.0
        for k in (0, 1):
            own, x = confounded["T"] == k, confounded["X"][name]
            fit = LinearRegression().fit(others[own], x[own])
            left += slope**2 * ((x[own] - fit.predict(others[own])) ** 2).sum() / len(x)
        assert benchmark.outcome_gain == pytest.approx(left, rel=0.12)
    assert both.outcome_gain > strong.outcome_gain > weak.outcome_gain > none.outcome_gain
    assert both.treatment_gain > strong.treatment_gain > weak.treatment_gain > none.treatment_gain >= 0.0
    assert strong.change > weak.change > 0, "leaving a confounder out makes treatment look better"
    assert 0.5 < strong.correlation <= 1.0
    frame = found.to_frame()
    assert list(frame.index) == [(b, m) for b in groups for m in (1.0, 3.0)]
    row = frame.loc[("weak", 3.0)]
    gain = 3 * weak.treatment_gain
    assert (row["cf_y"], row["cf_d"]) == pytest.approx((3 * weak.outcome_gain, gain / (1 + gain)))
    needed = found.multiple_needed("weak")
    at = found.bounds(*weak.strength(needed))
    assert min(abs(at.lower), abs(at.upper)) == pytest.approx(0.0, abs=1e-9)
    assert f"{needed:.3g} times as strong as weak" in str(found) and "3 x weak" in str(found)


def test_in_a_trial_covariates_say_nothing_about_who_is_treated(rng):
    """Propensities are estimated all the same; a strong predictor of the outcome barely moves the weights."""
    X = pd.DataFrame(rng.normal(size=(1_500, 3)), columns=["strong", "weak", "none"])
    T = rng.permutation(np.arange(1_500) % 2)
    Y = X["strong"] + 0.4 * X["weak"] + 0.5 * T + rng.normal(size=1_500)
    learner = RewardEstimator(LinearRegression(), LogisticRegression(), cv=5, random_state=0).fit(Y, T, X=X)
    without = nuisances_without(learner, Y, T, X=X, covariates=["strong", "weak"])
    found = omitted_variable_bounds(
        1, Y, T, propensity=learner.propensity_, regression=learner.regression_, baseline=0, benchmarks=without,
        random_state=0,
    )  # fmt: skip
    strong, weak = found.benchmarks
    assert strong.outcome_gain > 0.8 > weak.outcome_gain
    assert 0.0 <= max(strong.treatment_gain, weak.treatment_gain) < 0.005
    assert found.multiple_needed("strong") > 1, "nothing as strong as this would undo a randomised comparison"


def test_shares_of_a_very_strong_variable_end_at_one():
    benchmark = Benchmark("x", 0.6, 0.5, 1.0, 0.1)
    assert benchmark.strength(3.0) == pytest.approx((1.0, 0.6))


def test_trees_bring_their_own_nuisances(confounded):
    part = {k: v[:300] for k, v in confounded.items()}
    tree = DRPolicyTree(LinearRegression(), LogisticRegression(), max_depth=1, cv=2, random_state=0).fit(**part)
    found = nuisances_without(tree, **part, covariates=["weak"])
    alone = RewardEstimator(LinearRegression(), LogisticRegression(), cv=2, random_state=0)
    alone.fit(part["Y"], part["T"], X=part["X"].drop(columns="weak"))
    pd.testing.assert_frame_equal(found["weak"][0], alone.propensity_)
    pd.testing.assert_frame_equal(found["weak"][1], alone.regression_)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"covariates": ["zzz"]}, "covariates names 'zzz', which is no column; they are strong, weak, none"),
        ({"covariates": "weak"}, r"covariates must be a list of columns; write \['weak'\]"),
        ({"estimator": LinearRegression()}, "LinearRegression is no RewardEstimator"),
        ({"estimator": RewardEstimator(method="ipw", cv=2)}, "has not both nuisances"),
    ],
)
def test_bad_benchmarks_are_one_sentence(confounded, change, words):
    options = {"estimator": RewardEstimator(LinearRegression(), cv=2), "covariates": ["weak"], **change}
    with pytest.raises(InputError, match=words):
        nuisances_without(options["estimator"], **confounded, covariates=options["covariates"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rho": 2}, "rho must lie between -1 and 1"),
        ({"multiples": [0]}, "multiples must be finite numbers above 0"),
        ({"regression": None}, "regression"),
    ],
)
def test_bad_arguments_are_one_sentence(study, change, words):
    with pytest.raises(InputError, match=words):
        analyse(study, **change)


def test_strengths_are_shares(study):
    found = analyse(study, baseline="a")
    for strength in ((-0.1, 0.1), (1.1, 0.1), (0.1, 1.0)):
        with pytest.raises(InputError, match="must lie in"):
            found.bounds(*strength)
    with pytest.raises(InputError, match="There is no benchmark 'x'"):
        found.multiple_needed("x")


def test_rows_that_chose_the_policy_have_no_intervals(study):
    found = analyse(study, baseline="a", held_out=False)
    assert np.isnan(found.bounds(0.1, 0.1).interval_lower) and np.isnan(found.interval_robustness_value)
    assert "flattered, so without intervals" in str(found) and "interval (" not in str(found)


def test_a_propensity_that_contradicts_the_data_is_no_robustness(rng):
    """Its representer has a negative mean square by the formula: no bound follows, least of all a perfect one."""
    T = np.where(rng.random(300) < 0.9, "b", "a")
    propensity = {"a": 0.95, "b": 0.05}
    regression = pd.DataFrame(0.0, index=range(300), columns=["a", "b"])
    with pytest.raises(InputError, match="propensity is far from"):
        omitted_variable_bounds(
            "b", rng.normal(size=300), T, propensity=propensity, regression=regression, baseline="a", held_out=True
        )
