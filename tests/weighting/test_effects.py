"""Conditional average effects by RewardEstimator.predict_effects: definitions, consistency, small and awkward data."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression

from policytree import DRPolicyTree, RewardEstimator, Study, cross_val_policy_value
from policytree.encoded import stream_rewards
from policytree.exceptions import InputError
from policytree.model_selection.folds import make_folds
from policytree.weighting.boosting import grow_forest
from policytree.weighting.doubly_robust import DoublyRobust
from policytree.weighting.effects import PENALTIES, _lassos, fit_effects, shrunken_weights
from policytree.weighting.study_data import StudyData


def trial(rng, n=1_000, p=5):
    """Outcomes of which the first covariate decides most, and the second whether the drug helps."""
    X, T = rng.normal(size=(n, p)), rng.integers(2, size=n)
    effect = np.where(X[:, 1] > 0, 1.0, -1.0)
    return X, T, 3.0 * X[:, 0] + effect * T + rng.normal(size=n)


def dirty(rng, n=220):
    """Text with rare values, missing numbers, three arms of which one has hardly anybody."""
    X = pd.DataFrame({
        "age": rng.normal(60, 10, size=n), "site": rng.choice(["A", "B", "C"], size=n, p=[0.6, 0.38, 0.02]),
        "score": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)), "same": 1.0,
    })  # fmt: skip
    T = rng.choice(["usual", "new", "rare"], size=n, p=[0.5, 0.44, 0.06])
    return X, T, 0.1 * X["age"].to_numpy() + (T == "new") * (X["site"] == "A") + rng.normal(size=n)


def test_lassos_of_all_penalties_are_scikit_learns(rng):
    Z, y, w = rng.normal(size=(80, 4)), rng.normal(size=80), rng.uniform(0.2, 2.0, size=80)
    found = _lassos(Z, y, w).predict(Z)
    assert np.ptp(found[:, 0]) < 1e-9 and found[0, 0] == pytest.approx(np.average(y, weights=w))
    scaled, weight = (Z - Z.mean(axis=0)) / Z.std(axis=0), w / w.mean()
    centred = scaled - np.average(scaled, axis=0, weights=w)
    largest = np.abs(centred.T @ (weight * (y - np.average(y, weights=w)))).max() / 80
    other = Lasso(alpha=largest * PENALTIES[20], tol=1e-8).fit(scaled, y, w)
    np.testing.assert_allclose(found[:, 20], other.predict(scaled), atol=1e-3)


def test_forests_need_rows_for_two_leaves_and_forget_units(rng):
    Z, w = rng.normal(size=(400, 3)), np.ones(400)
    y = np.where(Z[:, 0] > 0, 1.0, 0.0) + 0.1 * rng.normal(size=400)
    few = grow_forest(Z[:200], y[:200], w[:200], 50)
    assert few.booster is not None and grow_forest(Z[:199], y[:199], w[:199], 50).booster is None
    found, moved = (grow_forest(Z, values, w, 50).predict(Z) for values in (y, 1e6 + 1e3 * y))
    np.testing.assert_allclose(moved, 1e6 + 1e3 * found, rtol=1e-9)
    assert found[Z[:, 0] > 0.5].mean() - found[Z[:, 0] < -0.5].mean() > 0.4, (
        "a third of the nodes may ask for the column that matters"
    )
    assert (grow_forest(Z, np.full(400, 2.0), w, 50).predict(Z) == 2.0).all()


def test_weights_are_equal_unless_held_out_errors_speak_against_it(rng):
    score, w = rng.normal(size=500), np.ones(500)
    alike = 0.05 * rng.normal(size=(500, 3))
    np.testing.assert_allclose(shrunken_weights(alike, score, w), 1 / 3)
    best = shrunken_weights(np.column_stack([score * 2, 5 * rng.normal(size=500), score]), score + 0.1, w)
    assert best[2] > 0.95 and best.min() >= 0.0 and best.sum() == pytest.approx(1.0)


def test_two_arms_are_a_regression_of_the_difference_of_rewards(rng):
    X, T, Y = trial(rng)
    given = {0: 0.7, 1: 0.3}
    model = RewardEstimator(random_state=0, model_effects=LinearRegression()).fit(Y, T, X=X, propensity=given)
    rewards = model.rewards_.to_numpy()
    by_hand = LinearRegression().fit(X, rewards[:, 1] - rewards[:, 0])
    found = model.predict_effects(X=X)
    np.testing.assert_allclose(found[1], by_hand.predict(X), atol=1e-9)
    assert (found[0] == 0.0).all()
    np.testing.assert_allclose(model.predict_effects(X=X, reference=1)[0], -found[1], atol=1e-12)


def test_precise_rows_weigh_more(rng):
    X, T, Y = trial(rng)
    e = np.where(X[:, 2] > 0, 0.5, 0.1)
    weight = rng.uniform(0.5, 2.0, size=len(Y))
    model = RewardEstimator(random_state=0, model_effects=DummyRegressor())
    found = model.fit(Y, T, X=X, propensity=e, sample_weight=weight).predict_effects(X=X[:3])[1]
    rewards, w = model.rewards_.to_numpy(), weight * e * (1 - e)
    np.testing.assert_allclose(found, np.average(rewards[:, 1] - rewards[:, 0], weights=_by_variance(e, weight)))
    np.testing.assert_allclose(found, np.average(rewards[:, 1] - rewards[:, 0], weights=w))


def _by_variance(e, weight):
    """One over the variance of the difference of two rewards whose residuals are alike."""
    return weight / (1 / e + 1 / (1 - e))


def test_effects_of_several_arms_agree_for_every_reference(rng):
    X, T, Y = dirty(rng)
    model = RewardEstimator(random_state=0, model_effects="auto").fit(Y, T, X=X)
    of_new, of_usual = model.predict_effects(X=X), model.predict_effects(X=X, reference="usual")
    assert list(of_new.columns) == ["new", "rare", "usual"] and (of_new["new"] == 0).all()
    assert of_new.index.equals(X.index) and np.isfinite(of_new.to_numpy()).all()
    np.testing.assert_allclose(of_usual, of_new.sub(of_new["usual"], axis=0), atol=1e-9)


def test_the_sign_is_found_where_the_outcome_is_about_something_else(rng):
    X, T, Y = trial(rng, n=2_000)
    new = rng.normal(size=(2_000, 5))
    found = RewardEstimator(random_state=0, model_effects="auto").fit(Y, T, X=X, propensity=0.5).predict_effects(X=new)
    truth = np.where(new[:, 1] > 0, 1.0, -1.0)
    assert ((found[1] > 0) == (truth > 0)).mean() > 0.93
    assert np.sqrt(np.mean((found[1] - truth) ** 2)) < 0.5, "strong effects are not shrunk to nothing"


def test_rewards_do_not_depend_on_the_model_of_effects(rng):
    X, T, Y = trial(rng, n=300)
    without = RewardEstimator(random_state=0).fit(Y, T, X=X)
    auto = RewardEstimator(random_state=0, model_effects="auto").fit(Y, T, X=X)
    pd.testing.assert_frame_equal(without.rewards_, auto.rewards_, check_exact=True)
    again = pickle.loads(pickle.dumps(auto)).predict_effects(X=X)
    pd.testing.assert_frame_equal(again, auto.predict_effects(X=X), check_exact=True)
    assert clone(auto).model_effects == "auto"


@pytest.mark.parametrize("settings", [{"estimand": "overlap"}, {"method": DoublyRobust(normalized=True)}])
def test_effects_are_of_people_whatever_population_rewards_are_about(rng, settings):
    X, T, Y = trial(rng, n=300)
    plain, other = (
        RewardEstimator(random_state=0, model_effects=LinearRegression(), **each).fit(Y, T, X=X, propensity=0.5)
        for each in ({}, settings)
    )
    np.testing.assert_allclose(other.predict_effects(X=X), plain.predict_effects(X=X), atol=1e-9)


def test_times_and_missing_outcomes(rng):
    X, T, Y = trial(rng, n=300)
    time = np.exp(0.3 * Y)
    censoring = rng.exponential(4.0, size=300)
    linear = {"model_regression": LinearRegression(), "model_propensity": LogisticRegression(), "cv": 2}
    model = RewardEstimator(**linear, random_state=0, model_effects="auto", n_repeats=2)
    model.fit(StudyData.of(np.minimum(time, censoring), T, X=X, event=(time <= censoring).astype(int), horizon=2.0))
    assert np.isfinite(model.predict_effects(X=X).to_numpy()).all()
    Y = np.where(rng.random(300) < 0.2, np.nan, Y)
    model = RewardEstimator(**linear, random_state=0, model_effects="auto")
    model.fit(StudyData.of(Y, T, X=X, missing_outcome="weight"))
    assert np.isfinite(model.predict_effects(X=X).to_numpy()).all()


def test_outcomes_that_are_given_have_no_model_to_mix_in(rng):
    X, T, Y = trial(rng, n=300)
    model = RewardEstimator(random_state=0, model_effects="auto")
    given = np.column_stack([3.0 * X[:, 0], 3.0 * X[:, 0]])
    found = model.fit(Y, T, X=X, propensity=0.5, regression=given).predict_effects(X=X)
    assert np.corrcoef(found[1], X[:, 1])[0, 1] > 0.5


def test_rows_of_weight_zero_say_nothing():
    rng = np.random.default_rng(3)
    Z, rewards, e = rng.normal(size=(200, 3)), rng.normal(size=(200, 2)), np.full((200, 2), 0.5)
    weight, plan = np.ones(200), make_folds(200, 5, random_state=0)
    weight[:40] = 0.0
    loud = rewards.copy()
    loud[:40] = 1e9
    one, other = (fit_effects(None, Z, each, e, weight, plan, None).predict(Z, None, 0) for each in (rewards, loud))
    np.testing.assert_allclose(one, other)


def test_bad_input(rng):
    X, T, Y = trial(rng, n=100)
    fitted = RewardEstimator(random_state=0, model_effects="auto").fit(Y, T, X=X)
    with pytest.raises(InputError, match=r"pass model_effects='auto' to RewardEstimator"):
        RewardEstimator(random_state=0).fit(Y, T, X=X).predict_effects(X=X)
    with pytest.raises(InputError, match=r"reference='drug' is not among the treatments; they are 0, 1"):
        fitted.predict_effects(X=X, reference="drug")
    with pytest.raises(InputError, match="X has no rows"):
        fitted.predict_effects(X=X[:0])
    with pytest.raises(InputError, match="use method='dr'"):
        RewardEstimator(random_state=0, model_effects="auto", method="regression").fit(Y, T, X=X)
    with pytest.raises(InputError, match="model_effects must be 'auto' or a regressor; got RandomForestClassifier"):
        RewardEstimator(model_effects=RandomForestClassifier()).fit(Y, T, X=X)
    with pytest.raises(InputError, match="model_effects must be 'auto' or a scikit-learn estimator; got 'best'"):
        RewardEstimator(model_effects="best").fit(Y, T, X=X)
    with pytest.raises(InputError, match="write LinearRegression"):
        RewardEstimator(model_effects=LinearRegression).fit(Y, T, X=X)
    with pytest.raises(InputError, match="model_effects needs covariates"):
        RewardEstimator(model_effects=LinearRegression()).fit(Y, T)


def test_batches_refuse_what_they_would_ignore(rng, tmp_path):
    rows = pd.DataFrame({"x": rng.normal(size=50), "arm": rng.integers(2, size=50), "y": rng.normal(size=50)})
    with pytest.raises(InputError, match="leave model_effects at None"):
        stream_rewards(
            RewardEstimator(LinearRegression(), model_effects="auto"),
            Study(rows, covariates=["x"], outcome="y", treatment="arm"),
            directory=tmp_path,
        )


def test_the_plug_in_rule_follows_the_model_of_effects(rng):
    X, T = rng.normal(size=(300, 3)), rng.integers(2, size=300)
    Y = (1.0 + 2.0 * X[:, 1]) * T + 0.5 * rng.normal(size=300)
    without, by_constant = (
        cross_val_policy_value(
            DRPolicyTree(rewards=rewards, max_depth=1, min_samples_leaf=20, random_state=0), Y, T, X=X, cv=2,
            n_repeats=1, random_state=0,
        )
        for rewards in (
            RewardEstimator(LinearRegression(), LogisticRegression()),
            RewardEstimator(LinearRegression(), LogisticRegression(), model_effects=DummyRegressor()),
        )
    )  # fmt: skip
    assert set(without.plug_in) == {0, 1} and set(by_constant.plug_in) == {1}
    found, other = by_constant.estimates, without.estimates
    assert found["plug-in rule"].value == pytest.approx(found["always 1"].value)
    assert found["policy tree"].value == other["policy tree"].value
