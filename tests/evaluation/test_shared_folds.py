"""Refits of the cross-validated value whose nuisance models have the evaluation's folds, and share them in pairs."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.linear_model import LinearRegression, LogisticRegression

from policytree import DRPolicyTree, RewardEstimator, cross_val_policy_value
from policytree.evaluation.policy_value import refits
from policytree.evaluation.policy_value.refits import shared_folds
from policytree.evaluation.policy_value.validation import Fit, draw_validation
from policytree.model_selection import crossfit
from policytree.weighting.study_data import StudyData

N = 150
FITS: list[tuple[int, ...]] = []  # rows that the learners below learnt from


def trial(seed=0, n=N, **more) -> dict:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"row": np.arange(n, dtype=float), "x": rng.normal(size=n)})
    T = rng.permutation(np.arange(n) % 2)
    return {"Y": X["x"] * T + rng.normal(size=n), "T": T, "X": X, **more}


class Mean(RegressorMixin, BaseEstimator):
    """The mean outcome; notes its rows."""

    def fit(self, X, y):
        FITS.append(tuple(X[:, 0].astype(int)))
        self.mean_ = y.mean()
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)


class Shares(ClassifierMixin, BaseEstimator):
    """The shares of classes; notes its rows."""

    def fit(self, X, y):
        FITS.append(tuple(X[:, 0].astype(int)))
        self.classes_, counts = np.unique(y, return_counts=True)
        self.shares_ = counts / counts.sum()
        return self

    def predict_proba(self, X):
        return np.tile(self.shares_, (len(X), 1))

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def learner(**more) -> DRPolicyTree:
    own = {"model_regression": Mean(), "model_propensity": Shares()} | more
    return DRPolicyTree(max_depth=1, random_state=0, direction="maximize", **own)


def value(estimator, data, **options):
    options = {"n_repeats": 1, "random_state": 1, "benchmarks": 0, **data, **options}
    return cross_val_policy_value(estimator, options.pop("Y"), options.pop("T"), **options)


def test_ten_pairs_of_folds_have_ten_models():
    FITS.clear()
    table = value(learner(), trial())
    fold, arm = table.folds.fold, trial()["T"]
    assert len(FITS) == 10 * 3  # outcomes of two arms, propensities
    expected = []
    for a in range(5):
        for b in range(a):
            kept = (fold != a) & (fold != b)
            expected += [tuple(np.flatnonzero(kept & who)) for who in (arm == 0, arm == 1, np.ones(N, dtype=bool))]
    assert sorted(FITS) == sorted(expected)
    assert not crossfit._SHARED._models


def test_values_are_those_of_refits_with_the_evaluations_folds():
    """By hand: every refit anew, with each row's fold as its ``cv``."""
    data = trial()
    own = {"model_regression": LinearRegression(), "model_propensity": LogisticRegression()}
    table = value(learner(**own), data)
    fold, rewards = table.folds.fold, table.repetitions[0].rewards.to_numpy()
    for f in range(5):
        train, test = (
            {name: np.asarray(column)[rows] for name, column in data.items()} for rows in (fold != f, fold == f)
        )
        fitted = learner(**own, cv=fold[fold != f]).fit(**train)
        np.testing.assert_array_equal(rewards[fold == f], fitted.reward_estimator_.predict_rewards(**test))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("clustered", [False, True])
def test_sharing_changes_no_bit(monkeypatch, weighted, clustered):
    """Default learners, fitted anew in every refit or once for every two."""
    data = trial()
    if weighted:
        data["sample_weight"] = np.random.default_rng(2).uniform(0.5, 2.0, size=N)
    if clustered:
        data["groups"] = np.arange(N) // 2
    shared = value(learner(model_regression="auto", model_propensity="auto"), data)
    fitted = []
    monkeypatch.setattr(crossfit, "MOST_SHARED", 0)
    monkeypatch.setattr(crossfit._SharedModels, "taken", lambda self, key: fitted.append(key))
    anew = value(learner(model_regression="auto", model_propensity="auto"), data)
    pd.testing.assert_frame_equal(shared.repetitions[0].rewards, anew.repetitions[0].rewards, check_exact=True)
    twice = [key for key, count in Counter(fitted).items() if count == 2]
    assert len(twice) >= 10 * 6 and max(Counter(fitted).values()) == 2  # beside boosted arms that one refit fits again


def test_values_do_not_depend_on_the_number_of_processes():
    own = {"model_regression": LinearRegression(), "model_propensity": LogisticRegression()}
    one, two = (value(learner(**own), trial(), n_jobs=n_jobs) for n_jobs in (1, 2))
    pd.testing.assert_frame_equal(one.repetitions[0].rewards, two.repetitions[0].rewards, check_exact=True)


def test_learners_that_cannot_be_pickled_are_fitted_in_every_refit():
    class Local(Mean):
        pass

    FITS.clear()
    value(learner(model_regression=Local()), trial())
    assert len(FITS) == 20 * 2 + 10


def test_models_that_nobody_asks_for_again_are_dropped(monkeypatch):
    models = crossfit._SharedModels()
    monkeypatch.setattr(crossfit, "MOST_SHARED", 2)
    for key in (b"a", b"b", b"c"):
        models.keep(key, key)
    assert [models.taken(key) for key in (b"a", b"b", b"c", b"c")] == [None, b"b", b"c", None]


def first_fit(cv=5, **more) -> tuple:
    data = trial(**more)
    seen = StudyData.of(data["Y"], data["T"])
    return seen, next(draw_validation("repeated", cv, 1, seen, 0).fits(0))


def test_folds_are_shared_where_both_have_as_many():
    seen, fit = first_fit()
    for estimator in (learner(), DRPolicyTree(rewards=RewardEstimator()), RewardEstimator()):
        np.testing.assert_array_equal(shared_folds(estimator, seen, fit), fit.folds)
    for estimator in (
        learner(cv=4),
        learner(cv=seen.arm),
        DRPolicyTree(rewards=RewardEstimator(cv=3)),
        DRPolicyTree(rewards=RewardEstimator(n_repeats=2)),
        Mean(),
    ):
        assert shared_folds(estimator, seen, fit) is None
    seen, fit = first_fit(cv=4)
    assert shared_folds(learner(cv=4), seen, fit) is None  # half of the rows would be left
    seen, fit = first_fit()
    assert shared_folds(learner(), seen, Fit(0, fit.train, fit.test)) is None  # sequential, or a split


def test_an_arm_within_two_folds_has_folds_of_its_own():
    seen, fit = first_fit()
    within = np.isin(draw_validation("repeated", 5, 1, seen, 0).plans[0].fold, [0, 1])
    rare = StudyData.of(trial()["Y"], np.where(within & (np.arange(N) % 3 == 0), 2, seen.arm))
    assert shared_folds(learner(), rare, fit) is None


def test_nested_rewards_are_given_the_folds():
    data = trial()
    own = {"model_regression": LinearRegression(), "model_propensity": LogisticRegression()}
    inside = DRPolicyTree(max_depth=1, random_state=0, direction="maximize", rewards=RewardEstimator(**own))
    one, other = (value(estimator, data).repetitions[0].rewards for estimator in (inside, learner(**own)))
    pd.testing.assert_frame_equal(one, other, check_exact=True)
    assert inside.rewards.cv == 5
    assert refits.FEWEST_TO_SHARE == 5
