"""The same rules, judged by other models of treatment."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression

from policytree import DRPolicyTree, RewardEstimator, cross_val_policy_value
from policytree.exceptions import InputError
from policytree.weighting.study_data import by_columns


def study(n: int = 300, strength: float = 1.0):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 3))
    T = (rng.uniform(size=n) < 1 / (1 + np.exp(-strength * X[:, 0]))).astype(int)
    return {"Y": X[:, 0] + T + rng.normal(size=n), "T": T, "X": X}


@pytest.mark.parametrize("learner", ["shares", "logit", "boosted"])
def test_one_learner_judges_as_if_it_had_been_fitted_alone(learner):
    """By its own stage; outcome models are those of the mixture, which here are not touched by propensities."""
    data, new = study(), study(80, 0.0)
    rewards = by_columns(RewardEstimator(LinearRegression(), cv=3, random_state=0).fit, **data)
    alone = by_columns(RewardEstimator(LinearRegression(), learner, cv=3, random_state=0).fit, **data)
    judged = by_columns(rewards.by_learner("treatment", learner).predict_rewards, **new)
    np.testing.assert_allclose(judged, by_columns(alone.predict_rewards, **new))
    mixture = by_columns(rewards.predict_rewards, **new)
    assert not np.allclose(judged, mixture)


def test_rules_are_judged_twice_and_learnt_once():
    data = study()
    learner = DRPolicyTree(DummyRegressor(), max_depth=1, cv=3, random_state=0)  # adjusts for nothing
    options = {"cv": 3, "n_repeats": 2, "random_state": 0, "control": 0}
    plain = by_columns(cross_val_policy_value, learner, **data, **options, second_opinion=None)
    both = by_columns(cross_val_policy_value, learner, **data, **options, second_opinion={"treatment": "shares"})
    assert not plain.second_opinions
    (opinion,) = both.second_opinions
    assert (opinion.of, opinion.model) == ("treatment", "the arms' shares, whatever the covariates")
    assert both.estimates["policy tree"].value == plain.estimates["policy tree"].value
    # Whoever got the treatment had the better outcomes anyway: by shares alone that looks like an effect.
    first, second = (v.treatment.value for v in (both.verdict, opinion.verdict))
    assert second > first + 0.3


def test_what_cannot_judge_is_refused():
    data = study(120)
    known = DRPolicyTree(LinearRegression(), LogisticRegression(), max_depth=1, cv=2, random_state=0)
    with pytest.raises(InputError, match="No 'logit' was fitted as a model of treatment"):
        by_columns(cross_val_policy_value, known, **data, cv=2, n_repeats=1, second_opinion={"treatment": "logit"})
    with pytest.raises(InputError, match="second_opinion must be 'auto'; got 'probit'"):
        by_columns(cross_val_policy_value, known, **data, second_opinion="probit")
    with pytest.raises(InputError, match="No 'logit' was fitted"):
        by_columns(
            cross_val_policy_value,
            DRPolicyTree(max_depth=1, cv=2),
            **data,
            cv=2,
            n_repeats=1,
            second_opinion={"treatment": "logit"},
            propensity=0.5,
        )


def test_automatic_second_opinions_are_of_observational_studies_only():
    """The learner of second least error in most refits, whether the estimator was fitted beforehand or not."""
    data, options = study(), {"cv": 2, "n_repeats": 1, "random_state": 0, "control": 0, "benchmarks": 0}
    learner = DRPolicyTree(LinearRegression(), max_depth=1, cv=2, random_state=0)
    found = by_columns(cross_val_policy_value, learner, **data, **options)
    assert [each.of for each in found.second_opinions] == ["treatment"]  # of outcomes there is the user's model only
    assert "other models" in {gate.name for gate in found.verdict.gates}
    fitted = by_columns(cross_val_policy_value, by_columns(learner.fit, **data), **data, **options)
    assert fitted.second_opinions[0].model == found.second_opinions[0].model
    assert fitted.verdict.gates == found.verdict.gates
    assert by_columns(cross_val_policy_value, learner, randomized=True, **data, **options).second_opinions == ()
    assert by_columns(cross_val_policy_value, learner, **data, **options, propensity=0.5).second_opinions == ()


@pytest.mark.parametrize("learner", ["linear", "boosted", "linear over arms", "boosted over arms", "curved"])
def test_one_learner_of_outcomes_judges_alone(learner):
    """Its own predictions, untargeted, take the place of the mixture's; probabilities stay those of the mixture."""
    data, new = study(), study(80, 0.0)
    rewards = by_columns(RewardEstimator("auto", LogisticRegression(), cv=3, random_state=0).fit, **data)
    other = rewards.by_learner("outcomes", learner)
    alone = by_columns(RewardEstimator(learner, LogisticRegression(), cv=3, random_state=0).fit, **data)
    stacks = [model for repeat in alone.repeats_ for model in repeat.regression.models]
    own = np.mean([stack.untargeted(new["X"]) for stack in stacks], axis=0)
    np.testing.assert_allclose(other.predict_outcomes(X=new["X"]), own)
    chance = by_columns(rewards.predict_propensity, X=new["X"]).to_numpy()
    residual = (new["Y"] - own[np.arange(80), new["T"]]) / chance[np.arange(80), new["T"]]
    by_hand = own + residual[:, None] * (new["T"][:, None] == np.arange(2))
    np.testing.assert_allclose(by_columns(other.predict_rewards, **new), by_hand)


def test_the_second_opinion_on_outcomes_is_of_another_family():
    data = study()
    rewards = by_columns(RewardEstimator(cv=3, random_state=0).fit, **data)
    best = rewards.repeats_[0].regression.models[0]
    second = rewards.second_best_learners_["outcomes"]
    best_learner = best.learners[int(np.argmin(best.errors))]
    assert second.startswith("boosted") != best_learner.startswith("boosted")
    options = {"cv": 2, "n_repeats": 1, "random_state": 0, "control": 0, "benchmarks": 0}
    learner = DRPolicyTree(max_depth=1, cv=2, random_state=0)
    both = by_columns(cross_val_policy_value, learner, **data, **options)
    assert [each.of for each in both.second_opinions] == ["treatment", "outcomes"]
    asked = {"outcomes": "linear"}
    (one,) = by_columns(cross_val_policy_value, learner, **data, **options, second_opinion=asked).second_opinions
    assert (one.of, one.model) == ("outcomes", "penalised linear models")


def test_outcomes_that_one_family_misses_make_a_verdict_fragile():
    """Shares cannot see a confounder: where one model of outcomes misses it too, the verdict rests on the other."""
    rng = np.random.default_rng(5)
    X = rng.uniform(size=(600, 2))
    high = np.sin(8.0 * np.pi * X[:, 0]) > 0.0  # more turns than curves have hinges
    T = (rng.uniform(size=600) < np.where(high, 0.9, 0.3)).astype(int)
    data = {"Y": 2.0 * high - 0.7 * T + 0.5 * rng.normal(size=600), "T": T, "X": X}
    learner = DRPolicyTree("auto", DummyClassifier(strategy="prior"), max_depth=1, cv=3, random_state=0)
    options = {"cv": 3, "n_repeats": 1, "random_state": 0, "control": 0, "benchmarks": 0}
    found = by_columns(cross_val_policy_value, learner, **data, **options)
    gate = next(gate for gate in found.verdict.gates if gate.name == "other models")
    assert gate.state == "fragile" and "as the model of outcomes" in gate.reason
    assert found.verdict.strength != "supported"


def test_fits_with_hidden_covariates_are_told_of():
    """Where no rule is recommended there are none, and the last report says that all is done."""
    learner, told = DRPolicyTree(LinearRegression(), LogisticRegression(), max_depth=1, cv=2, random_state=0), []
    options = {"cv": 2, "n_repeats": 1, "random_state": 0, "control": 0, "progress": lambda *each: told.append(each)}
    found = by_columns(cross_val_policy_value, learner, **study(), **options, benchmarks=2)
    assert found.hidden is not None and told == [(k, 5) for k in range(1, 6)]
    told.clear()
    nothing = study() | {"Y": np.random.default_rng(0).normal(size=300)}
    assert by_columns(cross_val_policy_value, learner, **nothing, **options, benchmarks=2).hidden is None
    assert told == [(1, 5), (2, 5), (5, 5)]


def test_models_of_ones_own_choice_are_no_second_opinion():
    """One learner by its name has nobody beside it: the gate says nothing, and does not repeat the verdict."""
    options = {"cv": 2, "n_repeats": 1, "random_state": 0, "control": 0, "benchmarks": 0}
    learner = DRPolicyTree("linear", "logit", max_depth=1, cv=2, random_state=0)
    found = by_columns(cross_val_policy_value, learner, **study(), **options)
    assert found.second_opinions == () and "other models" not in {gate.name for gate in found.verdict.gates}
