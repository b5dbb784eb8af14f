"""The same rules, judged by other models of treatment."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression

from policytree import DRPolicyTree, RewardEstimator, cross_val_policy_value
from policytree.common.study_columns import by_columns
from policytree.exceptions import InputError


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
    judged = by_columns(rewards.by_propensity_learner(learner).predict_rewards, **new)
    np.testing.assert_allclose(judged, by_columns(alone.predict_rewards, **new))
    mixture = by_columns(rewards.predict_rewards, **new)
    assert not np.allclose(judged, mixture)


def test_rules_are_judged_twice_and_learnt_once():
    data = study()
    learner = DRPolicyTree(DummyRegressor(), max_depth=1, cv=3, random_state=0)  # adjusts for nothing
    options = {"cv": 3, "n_repeats": 2, "random_state": 0, "control": 0}
    plain = by_columns(cross_val_policy_value, learner, **data, **options, second_opinion=None)
    both = by_columns(cross_val_policy_value, learner, **data, **options, second_opinion="shares")
    assert plain.second_opinion is None and both.second_opinion.model == "the arms' shares, whatever the covariates"
    assert both.estimates["policy tree"].value == plain.estimates["policy tree"].value
    # Whoever got the treatment had the better outcomes anyway: by shares alone that looks like an effect.
    first, second = (v.treatment.value for v in (both.verdict, both.second_opinion.verdict))
    assert second > first + 0.3


def test_what_cannot_judge_is_refused():
    data = study(120)
    known = DRPolicyTree(LinearRegression(), LogisticRegression(), max_depth=1, cv=2, random_state=0)
    with pytest.raises(InputError, match="No 'logit' was fitted as a model of treatment"):
        by_columns(cross_val_policy_value, known, **data, cv=2, n_repeats=1, second_opinion="logit")
    with pytest.raises(InputError, match="second_opinion must be 'auto', 'shares', 'logit' or 'boosted'"):
        by_columns(cross_val_policy_value, known, **data, second_opinion="probit")
    with pytest.raises(InputError, match="No 'logit' was fitted"):
        by_columns(
            cross_val_policy_value,
            DRPolicyTree(max_depth=1, cv=2),
            **data,
            cv=2,
            n_repeats=1,
            second_opinion="logit",
            propensity=0.5,
        )


def test_automatic_second_opinions_are_of_observational_studies_only():
    """The learner of second least error in most refits, whether the estimator was fitted beforehand or not."""
    data, options = study(), {"cv": 2, "n_repeats": 1, "random_state": 0, "control": 0, "benchmarks": 0}
    learner = DRPolicyTree(LinearRegression(), max_depth=1, cv=2, random_state=0)
    found = by_columns(cross_val_policy_value, learner, **data, **options)
    assert found.second_opinion is not None and "other models" in {gate.name for gate in found.verdict.gates}
    fitted = by_columns(cross_val_policy_value, by_columns(learner.fit, **data), **data, **options)
    assert (fitted.second_opinion.model, fitted.verdict.gates) == (found.second_opinion.model, found.verdict.gates)
    assert by_columns(cross_val_policy_value, learner, randomized=True, **data, **options).second_opinion is None
    assert by_columns(cross_val_policy_value, learner, **data, **options, propensity=0.5).second_opinion is None
