"""Rewards of doses: by hand, right if one of two models is; overlap, merging, nudges; small dirty data; bad input."""

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.stats import kstest, norm
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression

from policytree import PolicyTree, policy_value
from policytree.exceptions import InputError, OverlapWarning
from policytree.weighting import DoseRewards
from policytree.weighting.dose.density import cross_fit_density, kernel, residual_score
from policytree.weighting.dose.merging import MergedDoses, merge_doses, p_of_difference
from policytree.weighting.dose.outcome import Products, Splines
from tests.support.simulations import benchmark_script

GRID = [2.0, 4.0, 6.0, 8.0]


def study(n=600, seed=0, binary=False):
    """Doses that depend on age, outcomes that are best at a dose that depends on age."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"age": rng.uniform(20, 80, n), "noise": rng.normal(size=n)})
    dose = np.clip(5 + (X["age"] - 50) / 20 + 2 * rng.normal(size=n), 0, 10).to_numpy()
    mean = -0.1 * (dose - best(X)) ** 2 + 0.04 * (X["age"] - 50)
    Y = (rng.random(n) < norm.cdf(mean)).astype(float) if binary else mean + rng.normal(size=n)
    return X, dose, np.asarray(Y)


def best(X):
    return np.where(X["age"] > 50, 3.0, 7.0)


@pytest.fixture(scope="module")
def fitted():
    X, dose, Y = study()
    return DoseRewards(GRID, random_state=0).fit(Y, dose, X=X)


def test_rewards_are_the_formula_of_what_is_shown():
    X, dose, Y = study()
    fitted = DoseRewards(GRID, bandwidth=1.5, random_state=0).fit(Y, dose, X=X)
    close = np.maximum(1 - ((dose[:, None] - np.array(GRID)) / fitted.bandwidth_) ** 2, 0)
    correction = (fitted.rewards_ - fitted.regression_).to_numpy()
    assert (correction[close == 0] == 0).all() and (correction[close > 0] != 0).all()
    residual = correction * fitted.propensity_.to_numpy() / np.where(close > 0, close, 1)
    near_two = (close > 0.05).sum(axis=1) == 2  # one residual, whichever dose of the grid it is near
    both = residual[near_two][close[near_two] > 0.05].reshape(-1, 2)
    assert len(both) > 20
    np.testing.assert_allclose(both[:, 0], both[:, 1])
    assert list(fitted.rewards_.columns) == GRID and fitted.rewards_.shape == (600, 4)
    for f in range(5):  # out of fold: the model of the fold says what stands there
        own = fitted.folds_ == f
        Z = X.to_numpy()[own]
        np.testing.assert_allclose(
            fitted.models_outcome_[f].at_dose(Z, 4.0), fitted.regression_.to_numpy()[own, 1], rtol=1e-10
        )


def test_the_rule_of_the_bandwidth_is_said(fitted):
    residual = study()[1] - 5 - (study()[0]["age"] - 50) / 20
    assert fitted.bandwidth_ == pytest.approx(3.5 * residual.std() * 600 ** (-1 / 5), rel=0.1)
    assert "600 rows ^ (-1/5)" in fitted.bandwidth_rule_
    X, dose, Y = study()
    given = DoseRewards(GRID, bandwidth=1.5, random_state=0).fit(Y, dose, X=X)
    assert given.bandwidth_ == 1.5 and given.bandwidth_rule_ == "given"
    clustered = DoseRewards(GRID, random_state=0).fit(Y, dose, X=X, groups=np.arange(600) // 6)
    assert "100 clusters ^ (-1/5)" in clustered.bandwidth_rule_ and clustered.bandwidth_ > fitted.bandwidth_


def test_the_expected_kernel_weight_is_the_integral_over_the_density():
    rng = np.random.default_rng(1)
    Z = rng.normal(size=(4000, 1))
    scale = np.exp(0.3 * Z[:, 0])
    dose = 2 * Z[:, 0] + scale * rng.normal(size=4000)
    from policytree.model_selection.folds import make_folds

    plan = make_folds(4000, 2, random_state=0)
    density = cross_fit_density(None, Z, dose, plan, None, None)[0]
    at = np.array([[-1.0], [0.0], [1.0]])
    found = density.near(at, np.array([0.0, 1.5]), 0.8)
    for i, z in enumerate(at[:, 0]):
        for k, g in enumerate((0.0, 1.5)):
            true = quad(
                lambda t, z=z, g=g: kernel((t - g) / 0.8) * norm.pdf(t, 2 * z, np.exp(0.3 * z)), g - 0.8, g + 0.8
            )
            assert found[i, k] == pytest.approx(true[0], rel=0.15, abs=0.01)
    true_score = (np.array([0.5, 0.5, 0.5]) - 2 * at[:, 0]) / np.exp(0.6 * at[:, 0])
    np.testing.assert_allclose(density.score(at, np.full(3, 0.5))[1:], true_score[1:], atol=0.3)


def test_the_score_of_a_density_is_minus_its_logarithmic_derivative():
    residuals, at = np.array([-1.0, 0.2, 0.9]), np.array([-2.0, 0.0, 0.5])

    def density(t):
        return norm.pdf((t[:, None] - residuals) / 0.4).mean(axis=1)

    slope = (np.log(density(at + 1e-5)) - np.log(density(at - 1e-5))) / 2e-5
    np.testing.assert_allclose(residual_score(at, residuals, 0.4), -slope, rtol=1e-6)


@pytest.mark.parametrize("wrong", ["outcome", "dose", "neither"])
def test_means_are_right_if_one_of_the_models_is(wrong):
    """Mean rewards against the truth, in standard errors of 4,000 people; both models wrong are far off."""
    X, dose, Y = study(4000, seed=2)
    options = {"model_outcome": DummyRegressor()} if wrong == "outcome" else {}
    options |= {"model_dose": DummyRegressor()} if wrong == "dose" else {}
    found = DoseRewards([3.0, 5.0, 7.0], bandwidth=0.6, random_state=0, **options).fit(Y, dose, X=X)
    truth = [(-0.1 * (g - best(X)) ** 2 + 0.04 * (X["age"] - 50)).mean() for g in (3.0, 5.0, 7.0)]
    errors = [policy_value(g, found.rewards_).standard_error for g in (3.0, 5.0, 7.0)]
    assert np.abs((found.rewards_.mean().to_numpy() - truth) / errors).max() < 3.5
    assert found.overlap_["effective_rows"].min() > 200


def test_both_wrong_is_biased():
    X, dose, Y = study(4000, seed=2)
    neither = DoseRewards(
        [3.0, 7.0], bandwidth=0.6, random_state=0, model_outcome=DummyRegressor(), model_dose=DummyRegressor()
    ).fit(Y, dose, X=X)
    truth = np.array([(-0.1 * (g - best(X)) ** 2 + 0.04 * (X["age"] - 50)).mean() for g in (3.0, 7.0)])
    errors = [policy_value(g, neither.rewards_).standard_error for g in (3.0, 7.0)]
    assert np.abs((neither.rewards_.mean().to_numpy() - truth) / errors).max() > 4


def test_leaves_of_the_tree_are_doses(fitted):
    X, _, _ = study()
    tree = PolicyTree(max_depth=1, min_samples_leaf=50).fit(X, fitted.rewards_)
    given = tree.predict(pd.DataFrame({"age": [25.0, 75.0], "noise": [0.0, 0.0]}))
    assert given[0] >= 6.0 and given[1] <= 4.0
    new, dose, Y = study(seed=5)
    judged = fitted.predict_rewards(Y, dose, X=new)
    assert judged.shape == (600, 4) and list(judged.columns) == GRID
    value = policy_value(tree.predict(new), judged)
    true = (-0.1 * (tree.predict(new) - best(new)) ** 2 + 0.04 * (new["age"] - 50)).mean()
    assert abs(value.value - true) < 3.5 * value.standard_error
    assert value.value > max(policy_value(g, judged).value for g in GRID)


def test_probabilities_stay_within_and_orders_of_arguments_agree():
    X, dose, Y = study(800, binary=True)
    estimator = DoseRewards([3.0, 5.0, 7.0], random_state=0)
    found = estimator.fit_predict(Y, dose, X=X)
    assert estimator.regression_.to_numpy().min() >= 0 and estimator.regression_.to_numpy().max() <= 1
    assert found.equals(clone(estimator).fit_predict(X, Y, T=dose))
    assert found.equals(clone(estimator).fit(Y, dose, X=X[["age"]], W=X[["noise"]]).rewards_)


def test_a_grid_of_so_many_doses_is_where_people_are():
    X, dose, Y = study()
    found = DoseRewards(4, random_state=0).fit(Y, dose, X=X)
    np.testing.assert_allclose(found.grid_, np.quantile(dose, [0.125, 0.375, 0.625, 0.875]), atol=0.06)
    assert all(len(f"{g:g}") <= 4 for g in found.grid_)


def test_weights_and_clusters():
    X, dose, Y = study(300)
    weight = np.random.default_rng(0).integers(0, 3, 300).astype(float)
    groups = np.arange(300) // 3
    one = DoseRewards([3.0, 5.0, 7.0], random_state=0).fit(Y, dose, X=X, sample_weight=weight, groups=groups)
    again = DoseRewards([3.0, 5.0, 7.0], random_state=0).fit(Y, dose, X=X, sample_weight=7 * weight, groups=groups)
    pd.testing.assert_frame_equal(one.rewards_, again.rewards_)
    assert (pd.Series(one.folds_).groupby(groups).nunique() == 1).all()
    changed = np.where(weight == 0, 1e6, Y)  # outcomes of rows without weight teach nothing
    other = DoseRewards([3.0, 5.0, 7.0], random_state=0).fit(changed, dose, X=X, sample_weight=weight, groups=groups)
    pd.testing.assert_frame_equal(one.regression_, other.regression_)
    assert one.overlap_["near"].equals(other.overlap_["near"])


def test_a_dose_that_nobody_got_near_is_refused_and_a_rare_one_named():
    X, dose, Y = study()
    gap = (dose < 5.5) | (dose > 7.5)
    with pytest.raises(InputError, match=r"Only 0 rows have a dose within 0.5 of 6.5; take it out of grid"):
        DoseRewards([3.0, 6.5], bandwidth=0.5, random_state=0).fit(Y[gap], dose[gap], X=X[gap])
    with pytest.warns(OverlapWarning, match=r"10: \d+ effective rows, \d+% of people with next to no chance"):
        found = DoseRewards([3.0, 5.0, 10.0], random_state=0).fit(Y, dose, X=X)
    assert found.overlap_["effective_rows"].idxmin() == 10.0
    assert found.overlap_.loc[10.0, "effective_rows"] < 40 < found.overlap_.loc[5.0, "effective_rows"]
    assert found.n_clipped_ == (found.propensity_ <= found.min_propensity).any(axis=1).sum() > 0


def flat(n=800, seed=0):
    """More than 5 does no more."""
    rng = np.random.default_rng(seed)
    X, dose = rng.uniform(size=(n, 2)), rng.uniform(0, 10, n)
    return X, dose, np.minimum(dose, 5.0) + rng.normal(size=n)


def test_doses_that_do_not_differ_become_one():
    X, dose, Y = flat()
    estimator = DoseRewards([1.0, 3.0, 6.0, 7.0, 8.0, 9.0], random_state=1).fit(Y, dose, X=X)
    merged = estimator.merge(0.01)
    assert isinstance(merged, MergedDoses)
    assert merged.groups.index.tolist() == [1.0, 3.0, 7.0]
    assert merged.groups.loc[7.0, ["lowest", "highest"]].tolist() == [6.0, 9.0]
    pd.testing.assert_frame_equal(merged.rewards, estimator.rewards_[[1.0, 3.0, 7.0]])
    step = merged.steps.loc[(1.0, 3.0)]
    assert step["difference"] == pytest.approx(2.0, abs=3.5 * step["standard_error"]) and step["p_value"] < 1e-6
    assert "Doses 6 to 9 are not shown to differ" in str(merged) and "that they are the same is not shown" in str(
        merged
    )
    assert estimator.merge(0.999).groups.index.tolist() == [1.0, 3.0, 6.0, 7.0, 8.0, 9.0]


def test_effects_that_cancel_are_differences():
    """Half gain what the others lose: the mean difference is zero, the doses differ."""
    rng = np.random.default_rng(4)
    x = np.where(np.arange(500) % 2, 1.0, -1.0)
    difference = x + rng.normal(size=500) - 0.0
    difference -= difference.mean()
    ones = np.ones(500)
    assert p_of_difference(difference, np.zeros(500), None, ones) > 0.9
    assert p_of_difference(difference, x, None, ones) < 1e-6


def test_a_long_slope_is_not_one_dose():
    """No step is significant, the ends are: complete linkage keeps at least two groups."""
    rng = np.random.default_rng(5)
    base = rng.normal(size=(300, 1))
    steps = 0.08 * np.arange(6) + rng.normal(size=(300, 6)) * 0.7
    rewards = pd.DataFrame(base + steps, columns=np.arange(6.0))
    found = merge_doses(rewards, np.zeros((300, 6)), np.arange(300) % 5, None, np.ones(300), 0.05)
    assert (found.steps["p_value"] > 0.05).sum() >= 4
    assert len(found.groups) >= 2


def test_p_values_are_uniform_where_nothing_differs():
    rng = np.random.default_rng(6)
    groups = np.arange(400) // 2
    p = [
        p_of_difference(
            np.repeat(rng.normal(size=200), 2) + rng.standard_exponential(400) - 1, rng.normal(size=400), groups,
            rng.uniform(0.5, 1.5, 400),
        )
        for _ in range(300)
    ]  # fmt: skip
    assert kstest(p, "uniform").pvalue > 0.001
    assert 0.02 < np.mean(np.array(p) < 0.05) < 0.09


def test_nudges_are_effects_of_a_unit_more():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(2000, 2))
    dose = X[:, 0] + rng.normal(size=2000)
    Y = dose * (1 + X[:, 1]) + X[:, 0] + rng.normal(size=2000)  # one unit more brings 1 + x1
    for options in ({}, {"model_outcome": DummyRegressor()}, {"model_dose": DummyRegressor()}):
        found = DoseRewards([-1.0, 1.0], random_state=0, **options).fit(Y, dose, X=X)
        error = found.nudges_.std() / np.sqrt(2000)
        assert found.nudges_.mean() == pytest.approx(1.0, abs=3.5 * error + 0.02)
    found = DoseRewards([-1.0, 1.0], random_state=0).fit(Y, dose, X=X)
    rewards = found.nudge_rewards(1.5)
    np.testing.assert_allclose(rewards["raise"], found.nudges_ - 1.5)
    assert (rewards["keep"] == 0).all()
    tree = PolicyTree(max_depth=1).fit(X, rewards)
    assert tree.predict([[0.0, 2.0], [0.0, -1.0]]).tolist() == ["raise", "keep"]
    with pytest.raises(InputError, match="cost must be a finite number"):
        found.nudge_rewards("much")


def dirty(n=220):
    """Rare categories, missing covariates, persons with several rows, rounded doses, rows without weight."""
    rng = np.random.default_rng(8)
    X = pd.DataFrame({
        "age": np.where(rng.random(n) < 0.1, np.nan, rng.integers(20, 80, n)),
        "town": rng.choice(["Rome", "Oslo", "Bern"], n).astype(object),
        "constant": 1.0,
    })  # fmt: skip
    X.loc[3, "town"] = "Ur"
    X.loc[7, "town"] = None
    dose = np.round(5 + 2 * rng.normal(size=n) + (X["town"] == "Oslo"), 0)
    dose = dose.to_numpy()
    Y = 0.3 * np.minimum(dose, 5) + rng.standard_t(3, n)
    weight = rng.uniform(0.5, 2, n)
    weight[:4] = 0.0
    index = [f"p{i % 90}" for i in range(n)]
    return (
        X.set_axis(index),
        pd.Series(dose, index=index),
        pd.Series(Y, index=index),
        weight,
        np.arange(n) % 90,
    )


@pytest.mark.filterwarnings("ignore::policytree.exceptions.OverlapWarning")
def test_small_dirty_data():
    X, dose, Y, weight, groups = dirty()
    estimator = DoseRewards([3.0, 5.0, 7.0], cv=3, random_state=0)
    rewards = estimator.fit_predict(Y, dose, X=X, sample_weight=weight, groups=groups)
    assert np.isfinite(rewards.to_numpy()).all() and rewards.index.equals(Y.index)
    plain = np.array([Y[np.abs(dose - g) <= 1].mean() for g in (3.0, 5.0, 7.0)])
    assert np.abs(np.average(rewards, axis=0, weights=weight) - plain).max() < 1.0
    merged = estimator.merge()
    assert 1 <= len(merged.groups) <= 3
    tree = PolicyTree(max_depth=2, min_samples_leaf=20).fit(X, rewards, sample_weight=weight)
    assert set(tree.predict(X)) <= {3.0, 5.0, 7.0}


@pytest.mark.parametrize(
    ("grid", "options", "message"),
    [
        ([5.0], {}, "grid must hold at least two doses to choose from; got"),
        (1, {}, "grid must hold at least two doses"),
        (5.5, {}, "grid must be a number of doses, or increasing doses; got 5.5"),
        ("auto", {}, "grid must be a number of doses"),
        ([3.0, 12.0], {}, r"grid holds 12, but the doses of T run from .* to 10; nobody shows"),
        ([7.0, 3.0], {}, "The doses of grid must increase"),
        ([3.0, np.nan], {}, "grid holds missing or infinite values"),
        (["low", "high"], {}, "grid holds values that are not numbers"),
        (GRID, {"bandwidth": -1.0}, "bandwidth must be 'auto' or a positive number in the unit of T; got -1.0"),
        (GRID, {"bandwidth": "wide"}, "bandwidth must be 'auto' or a positive number"),
        (GRID, {"min_propensity": 0.0}, "min_propensity must lie between 0 and 0.5"),
        (GRID, {"cv": 1}, "cv must be at least 2"),
        (GRID, {"cv": 601}, "The data have 600 rows, fewer than cv=601 folds"),
        (GRID, {"model_outcome": "forest"}, "model_outcome must be 'auto' or a scikit-learn estimator"),
        (GRID, {"model_dose": LinearRegression}, r"model_dose must be an instance; write LinearRegression\(\)"),
    ],
)  # fmt: skip
def test_bad_arguments_are_named(grid, options, message):
    X, dose, Y = study()
    with pytest.raises(InputError, match=message):
        DoseRewards(grid, random_state=0, **options).fit(Y, dose, X=X)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda dose: np.full(600, 5.0), "T holds one dose only, 5; at least two are needed"),
        (lambda dose: np.round(dose / 5), "T holds only 3 different doses; treat them as treatments"),
        (lambda dose: np.where(dose > 9, np.nan, dose), r"T has \d+ missing value\(s\), the first in row"),
        (lambda dose: np.where(dose > 9, np.inf, dose), "T has .* infinite values"),
        (lambda dose: np.array(["much", "little"])[(dose > 5).astype(int)], "T holds values that are not numbers"),
        (lambda dose: dose[:-1], "T has 599 rows, but Y has 600"),
    ],
)
def test_bad_doses_are_named(change, message):
    X, dose, Y = study()
    with pytest.raises(InputError, match=message):
        DoseRewards(GRID, random_state=0).fit(Y, change(dose), X=X)


def test_terms_of_the_smooth_models():
    rng = np.random.default_rng(9)
    table = np.column_stack([rng.normal(size=(200, 2)), rng.uniform(0, 4, 200)])
    assert Products().fit(table).transform(table).shape == (200, 9)  # three, and six products
    many = np.column_stack([rng.normal(size=(200, 30)), table[:, -1]])
    assert Products().fit(many).transform(many).shape == (200, 62)  # only those with the dose
    splines = Splines().fit(table)
    line = np.column_stack([np.zeros((3, 2)), [10.0, 20.0, 30.0]])  # far beyond the knots: straight
    terms = splines.transform(line)[:, 3:-4]
    np.testing.assert_allclose(terms[2] - terms[1], terms[1] - terms[0], atol=1e-9)
    rounded = np.column_stack([rng.normal(size=(50, 1)), np.repeat([1.0, 2.0], [49, 1])])
    assert np.isfinite(Splines().fit(rounded).transform(rounded)).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::policytree.exceptions.OverlapWarning")  # the ends of the grid, in some draws
def test_nudges_of_athey_and_wager():
    """Three draws of 600 people in setup 2: the published mean is .018, ours about .027; one draw varies by .008."""
    with benchmark_script("dose_rewards") as benchmark:
        draws = pd.DataFrame([benchmark.one_run((2, 600), draw) for draw in range(500, 503)])
    assert draws["value"].mean() > 0.014
    assert abs((draws["effect"] - draws["true_effect"]).mean()) < 0.02
    assert draws["regret"].mean() < draws["regret_one_dose"].mean()
