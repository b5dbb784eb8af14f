"""Rewards for the treated and for the overlap population: by hand, doubly robust, with standard errors that count."""

from __future__ import annotations

import os
import warnings

import numpy as np
import pandas as pd
import pytest

from policytree import RewardEstimator, load_dataset, policy_value
from policytree.exceptions import InputError, OverlapWarning
from policytree.weighting.overlap import DoublyRobustOverlap
from policytree.weighting.scheme import Nuisances
from policytree.weighting.study_data import StudyData
from policytree.weighting.treated import DoublyRobustTreated
from tests.support.simulations import assert_errors_are_as_said

Y, T = [3.0, 1.0, 4.0, 2.0], [1, 0, 1, 0]
E1 = np.array([0.6, 0.2, 0.5, 0.25])
P = pd.DataFrame({0: 1 - E1, 1: E1})
M = pd.DataFrame({0: [1.0, 0.5, 2.0, 1.0], 1: [2.0, 2.0, 3.0, 3.0]})


def test_effect_on_the_treated_by_hand():
    model = RewardEstimator(estimand="treated").fit(Y, T, propensity=P, regression=M)
    effect = policy_value(1, model.rewards_, baseline=0, population=model.population_)
    terms = np.array([3 - 1, -(0.2 / 0.8) * (1 - 0.5), 4 - 2, -(0.25 / 0.75) * (2 - 1.0)])
    assert effect.value == pytest.approx(terms.sum() / 2, abs=1e-12)
    influence = (terms - np.array([1, 0, 1, 0]) * effect.value) / 0.5
    assert effect.influence == pytest.approx(influence, abs=1e-12)
    assert effect.standard_error == pytest.approx(np.sqrt(4 / 3 * (influence @ influence)) / 4, abs=1e-12)
    assert model.population_ == pytest.approx([2, 0, 2, 0])


def test_effect_in_the_overlap_population_by_hand():
    w = np.array([1.0, 2.0, 1.0, 3.0])
    model = RewardEstimator(estimand="overlap").fit(Y, T, propensity=P, regression=M, sample_weight=w)
    effect = policy_value(1, model.rewards_, baseline=0, population=model.population_, sample_weight=w)
    h = E1 * (1 - E1)
    m = M.to_numpy()
    terms = h * (m[:, 1] - m[:, 0]) + np.array(
        [(1 - 0.6) * (3 - 2), -0.2 * (1 - 0.5), (1 - 0.5) * (4 - 3), -0.25 * (2 - 1.0)]
    )
    assert effect.value == pytest.approx((w @ terms) / (w @ h), abs=1e-12)
    influence = 4 * w * (terms - h * effect.value) / (w @ h)
    assert effect.influence == pytest.approx(influence, abs=1e-12)


def test_several_arms_each_against_those_who_got_one(rng):
    arm = np.tile([0, 1, 2], 40)
    p = rng.dirichlet([3, 3, 3], size=120)
    m = rng.normal(size=(120, 3))
    y = rng.normal(size=120)
    scores = DoublyRobustTreated(2).rewards(StudyData.of(y, arm), Nuisances(m, p))
    for k in (0, 1):
        by_hand = ((arm == 2) * m[:, k] + (arm == k) * p[:, 2] / p[:, k] * (y - m[:, k])).sum() / 40
        assert scores[:, k].mean() == pytest.approx(by_hand, abs=1e-12)
    assert scores[:, 2].mean() == pytest.approx(y[arm == 2].mean(), abs=1e-12)
    scores = DoublyRobustOverlap().rewards(StudyData.of(y, arm), Nuisances(m, p))
    h = 1 / (1 / p).sum(axis=1)
    by_hand = (h * m[:, 1] + (arm == 1) * h / p[:, 1] * (y - m[:, 1])).sum() / h.sum()
    assert scores[:, 1].mean() == pytest.approx(by_hand, abs=1e-12)


def test_a_floor_never_becomes_weight(rng):
    """People with next to no chance of treatment get next to no weight, whatever the floor."""
    n = 600
    x = np.r_[np.zeros(200), np.full(400, -9.0)]
    T = np.r_[rng.permutation(np.tile([0, 1], 100)), np.zeros(400, dtype=int)]
    Y = np.where(x < -1, 1_000.0, T * 1.0) + rng.normal(size=n)
    X = pd.DataFrame({"far": (x < -1).astype(float)})
    for estimand in ("treated", "overlap"):
        effects = []
        for floor in (0.0, 0.05):
            model = RewardEstimator(
                estimand=estimand, treated=1 if estimand == "treated" else None, min_propensity=floor, random_state=0
            )
            regression = pd.DataFrame({0: np.zeros(n), 1: np.zeros(n)})
            with warnings.catch_warnings():
                warnings.simplefilter("error", OverlapWarning)
                model.fit(Y, T, X=X, regression=regression)
            effects.append(policy_value(1, model.rewards_, baseline=0, population=model.population_).value)
        assert effects[0] == effects[1]
    plain = RewardEstimator(min_propensity=0.05, random_state=0)
    with pytest.warns(OverlapWarning):
        plain.fit(Y, T, X=X, regression=regression)
    # Weighing clipped scores by clipped propensities instead: the 400 get the floor as weight and count as 20 men.
    floored = policy_value(1, plain.rewards_, baseline=0, sample_weight=plain.propensity_[1])
    assert abs(floored.value - effects[0]) > 50


@pytest.mark.parametrize(
    ("arguments", "labels", "message"),
    [
        ({"estimand": "everybody"}, [0, 1], "must be 'all', 'treated', 'overlap' or 'compliers'; got 'everybody'"),
        ({"estimand": "treated"}, ["a", "b"], "must know who the treated are; set treated= to one of a, b"),
        ({"estimand": "treated"}, [0, 1, 2], "must know who the treated are; set treated= to one of 0, 1, 2"),
        ({"estimand": "treated", "treated": "c"}, ["a", "b"], "treated='c' is not among the treatments; they are a, b"),
        ({"estimand": "overlap", "treated": "a"}, ["a", "b"], "treated='a' goes with estimand='treated'"),
        ({"treated": "a"}, ["a", "b"], "treated='a' goes with estimand='treated'"),
        ({"estimand": "overlap", "method": "regression"}, ["a", "b"], "has doubly robust scores only"),
    ],
)
def test_what_has_no_meaning_is_refused(arguments, labels, message):
    with pytest.raises(InputError, match=message):
        RewardEstimator(**arguments).fit(np.arange(60.0), np.resize(labels, 60))


def test_nobody_treated_among_new_rows_is_refused(rng):
    model = RewardEstimator(estimand="treated", random_state=0).fit(rng.normal(size=60), np.tile([0, 1], 30))
    with pytest.raises(InputError, match="No row has treatment 1"):
        model.predict_rewards([1.0, 2.0], [0, 0])


def test_population_must_be_the_rewards_own():
    model = RewardEstimator(estimand="treated").fit(Y, T, propensity=P, regression=M)
    with pytest.raises(InputError, match="population has mean 2, not one"):
        policy_value(1, model.rewards_, baseline=0, population=2 * model.population_)
    with pytest.raises(InputError, match="population has 3 rows, but rewards has 4"):
        policy_value(1, model.rewards_, baseline=0, population=[1.0, 1.0, 1.0])


def draw(rng, n):
    """Confounded data; effect 1 + x, treated people have larger x."""
    x = rng.normal(size=n)
    e = 1 / (1 + np.exp(-0.8 * x))
    t = (rng.random(n) < e).astype(int)
    m = np.column_stack([2 * x, 2 * x + 1 + x])
    return x, e, t, m, m[np.arange(n), t] + rng.normal(size=n)


@pytest.mark.slow
@pytest.mark.parametrize("right", ["both", "outcome models", "propensities"])
def test_double_robustness_and_coverage(rng, right):
    """Right if either nuisance is; intervals cover."""
    big, e, t, _, _ = draw(rng, 2_000_000)
    truth = {"treated": 1 + big[t == 1].mean(), "overlap": 1 + (e * (1 - e) * big).sum() / (e * (1 - e)).sum()}
    found = {"treated": [], "overlap": []}
    for _ in range(100):
        x, e, t, m, y = draw(rng, 1600)
        wrong_m, wrong_e = np.column_stack([0.5 * x, 0.5 * x]), np.full(1600, 0.4)
        used_m = wrong_m if right == "propensities" else m
        used_e = wrong_e if right == "outcome models" else e
        for estimand, known in truth.items():
            model = RewardEstimator(estimand=estimand)
            model.fit(y, t, propensity=np.column_stack([1 - used_e, used_e]), regression=used_m)
            effect = policy_value(1, model.rewards_, baseline=0, population=model.population_)
            if estimand == "overlap" and right == "outcome models":
                known = 1.0  # constant weights: the average over everybody, of whom the mean x is 0
            found[estimand].append((effect.value, effect.standard_error, known))
    for estimand in truth:
        assert_errors_are_as_said(*np.transpose(found[estimand]))


def test_lalonde_with_survey_controls():
    """Weighing clipped scores by clipped propensities gave -3,337 (351) here: a third of the weight was the floor."""
    folder = os.environ.get("POLICYTREE_DATA")
    if not folder:
        pytest.skip("needs the trials' files: set POLICYTREE_DATA")
    data = load_dataset("lalonde-cps", data_dir=folder).study()
    model = RewardEstimator(estimand="treated", treated="training", random_state=0).fit(data)
    effect = policy_value("training", model.rewards_, baseline="control", population=model.population_)
    # The score written out, with the same nuisances and without any floor.
    T, Y = (data.T == "training").to_numpy(), data.Y.to_numpy()
    m0, e = model.regression_["control"].to_numpy(), model.propensity_["training"].to_numpy()
    terms = np.where(T, Y - m0, -e / (1 - e) * (Y - m0))
    assert model.n_clipped_ == 0
    assert effect.value == pytest.approx(terms.sum() / T.sum(), abs=1e-6)
    assert -900 < effect.value < -100
    assert 450 < effect.standard_error < 560
