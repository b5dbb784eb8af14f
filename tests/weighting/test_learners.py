"""The default nuisance learners: sensible where a statistician would look."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from policytree import RewardEstimator
from policytree.weighting.learners import (
    OutcomeClassifier,
    OutcomeRegressor,
    imputed,
    propensity_learner,
    stacking_share,
)


def known_differences(estimator):
    """Return the checks that these learners fail by design, and why."""
    return {
        "check_sample_weight_equivalence_on_dense_data": "inner folds are drawn over rows, so repeated rows get others"
    }


@parametrize_with_checks(
    [OutcomeRegressor(max_rounds=10), OutcomeClassifier(max_rounds=10)], expected_failed_checks=known_differences
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_linear_truth_is_left_to_the_ridge(rng):
    X = rng.normal(size=(1_000, 5))
    y = X @ [1.0, -2.0, 0.5, 0.0, 0.0] + rng.normal(size=1_000)
    model = OutcomeRegressor(random_state=0).fit(X, y)
    assert model.boosted_share_ < 0.2
    new = rng.normal(size=(2_000, 5))
    assert np.mean((model.predict(new) - new @ [1.0, -2.0, 0.5, 0.0, 0.0]) ** 2) < 0.02


def test_interactions_are_left_to_the_trees(rng):
    X = rng.normal(size=(2_000, 4))
    truth = 2.0 * ((X[:, 0] > 0) ^ (X[:, 1] > 0))
    model = OutcomeRegressor(random_state=0).fit(X, truth + rng.normal(size=2_000))
    assert model.boosted_share_ > 0.8
    assert np.mean((model.predict(X) - truth) ** 2) < 0.2  # the variance of the truth is 1


def test_noise_is_predicted_by_almost_a_constant(rng):
    X, y = rng.normal(size=(500, 8)), rng.normal(size=500)
    assert OutcomeRegressor(random_state=0).fit(X, y).predict(X).std() < 0.2


def test_small_arms_a_constant_outcome_and_gaps(rng):
    X = rng.normal(size=(6, 12))
    X[0, 0], X[:, 3] = np.nan, np.nan
    assert np.isfinite(OutcomeRegressor().fit(X, rng.normal(size=6)).predict(X)).all()
    np.testing.assert_allclose(OutcomeRegressor().fit(X, np.full(6, 7.0)).predict(X), 7.0)
    probabilities = OutcomeClassifier().fit(X, [0, 0, 0, 0, 0, 1]).predict_proba(X)
    np.testing.assert_allclose(probabilities[:, 1], 1 / 6)


def test_probabilities_are_calibrated(rng):
    X = rng.normal(size=(4_000, 3))
    p = 1 / (1 + np.exp(-X[:, 0] - (X[:, 1] > 0)))
    y = rng.random(4_000) < p
    got = OutcomeClassifier(random_state=0).fit(X, y).predict_proba(X)[:, 1]
    assert np.abs(got - p).mean() < 0.04


def test_clusters_stay_together_when_rounds_are_chosen(rng):
    # four copies per cluster: with clusters torn apart, long boosting looks good and overfits
    X = np.repeat(rng.normal(size=(150, 3)), 4, axis=0)
    y = np.repeat(rng.normal(size=150), 4)
    groups = np.repeat(np.arange(150), 4)
    assert OutcomeRegressor(random_state=0).fit(X, y, groups=groups).predict(X).std() < 0.35
    assert OutcomeRegressor(random_state=0).fit(X, y).predict(X).std() > 0.35


def test_stacking_share_is_the_least_squares_share(rng):
    linear, boosted, target, w = rng.normal(size=(4, 50))
    w = w**2
    share, rounds = stacking_share(linear, np.column_stack([boosted + 9.0, boosted]), target, w)
    grid = np.linspace(0, 1, 10_001)
    errors = [(w * (target - (1 - a) * linear - a * boosted) ** 2).sum() for a in grid]
    assert rounds == 2
    assert abs(share - grid[np.argmin(errors)]) < 1e-4


def test_columns_without_a_value_are_learnt_nothing_from(rng):
    """All missing, or missing in some fold's training rows: boosting itself ends in an error there."""
    n = 300
    X = pd.DataFrame({"nothing": np.full(n, np.nan), "rare": np.where(np.arange(n) == 7, 1.0, np.nan)})
    T = rng.integers(0, 2, n)
    Y = T + rng.normal(size=n)
    for table in (X, X.assign(x=rng.normal(size=n)), X[["nothing"]]):
        rewards = RewardEstimator(random_state=0).fit_predict(Y, T, X=table, propensity=0.5)
        assert rewards.mean()[1] - rewards.mean()[0] == pytest.approx(1.0, abs=0.4)
        assert np.isfinite(OutcomeRegressor(random_state=0).fit(table, Y).predict(table)).all()


def test_only_learners_that_need_it_are_imputed():
    assert imputed(LinearRegression()) is not None
    assert len(imputed(LinearRegression()).steps) == 2
    blend = OutcomeRegressor()
    assert imputed(blend) is blend


@pytest.mark.parametrize("n_arms", [2, 5])
def test_propensities_follow_the_covariates(n_arms, rng):
    X = rng.normal(size=(3_000, 2))
    logits = np.outer(X[:, 0], np.linspace(-1, 1, n_arms))
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    arm = (rng.random(3_000)[:, None] > p.cumsum(axis=1)).sum(axis=1)
    assert np.abs(propensity_learner().fit(X, arm).predict_proba(X) - p).mean() < 0.02
