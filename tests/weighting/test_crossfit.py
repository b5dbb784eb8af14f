"""Fold plans and out-of-fold predictions: nothing leaks, nothing is split, nothing is silently dropped."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, ShuffleSplit, StratifiedGroupKFold
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from policytree.exceptions import InputError
from policytree.model_selection.crossfit import (
    FoldFits,
    MeanModel,
    cross_fit_mean,
    cross_fit_probabilities,
    fit_argument,
    predict_new,
    run_fits,
)
from policytree.model_selection.folds import make_folds

UNSEEN = -1e9


class Memory(RegressorMixin, BaseEstimator):
    """Remembers every row it saw: any leak shows as a perfect prediction."""

    def fit(self, X, y):
        self.seen_ = {tuple(row): value for row, value in zip(X, y, strict=True)}
        return self

    def predict(self, X):
        return np.array([self.seen_.get(tuple(row), UNSEEN) for row in X])


class Spy(ClassifierMixin, BaseEstimator):
    """Keeps the weights and clusters it was given."""

    def fit(self, X, y, sample_weight=None, groups=None):
        self.classes_ = np.unique(y)
        self.weight_, self.groups_ = sample_weight, groups
        return self

    def predict_proba(self, X):
        return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))


@given(
    sizes=st.lists(st.integers(1, 6), min_size=12, max_size=40),
    n_arms=st.integers(2, 3),
    seed=st.integers(0, 2**31 - 1),
)
def test_every_row_is_held_out_once_and_clusters_stay_together(sizes, n_arms, seed):
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    strata = groups % n_arms  # cluster-randomised: every arm has at least four clusters
    order = rng.permutation(len(groups))
    plan = make_folds(len(groups), 3, strata=strata[order], groups=groups[order], random_state=seed)
    for cluster in range(len(sizes)):
        assert len(set(plan.fold[groups[order] == cluster])) == 1
    held_out = np.concatenate([test for _, test in plan.splits()])
    assert sorted(held_out) == list(range(len(groups)))
    for train, test in plan.splits():
        assert not set(train) & set(test)
        assert set(strata[order][train]) == set(range(n_arms))


def test_folds_are_balanced_over_arms(rng):
    strata = rng.permutation(np.repeat([0, 1, 2], [100, 50, 10]))
    plan = make_folds(160, 5, strata=strata, random_state=0)
    counts = np.array([[np.sum((plan.fold == f) & (strata == k)) for k in range(3)] for f in range(5)])
    assert (counts == [20, 10, 2]).all()


@pytest.mark.parametrize("n_arms", [1, 3, 12])
@pytest.mark.parametrize("sizes", ["equal", "households", "one town"])
def test_whole_clusters_are_balanced_over_folds_and_arms(sizes, n_arms, rng):
    n = 3_000
    groups = np.arange(n) // 3 if sizes == "equal" else rng.integers(800, size=n)
    groups[: 300 if sizes == "one town" else 0] = 0
    strata = rng.integers(n_arms, size=n)
    groups = np.unique(groups, return_inverse=True)[1]
    plan = make_folds(n, 5, strata=strata, groups=groups, random_state=0)
    counts = np.zeros((5, n_arms), dtype=int)
    np.add.at(counts, (plan.fold, strata), 1)
    assert np.abs(counts.sum(axis=1) - n / 5).max() <= 0.02 * n / 5
    assert np.abs(counts / counts.mean(axis=0) - 1).max() <= 0.12
    theirs = np.zeros((5, n_arms), dtype=int)
    reference = StratifiedGroupKFold(5, shuffle=True, random_state=0)
    for f, (_, test) in enumerate(reference.split(groups, strata, groups)):
        np.add.at(theirs, (f, strata[test]), 1)

    def unevenness(table):
        return np.std(table / table.mean(axis=0), axis=0).mean()

    assert unevenness(counts) <= unevenness(theirs) + 0.01


def test_a_rare_arm_is_spread_over_the_folds_of_whole_clusters(rng):
    for seed in range(20):
        groups = np.repeat(np.arange(200), 5)
        strata = np.zeros(1_000, dtype=int)
        strata[rng.choice(200, 5, replace=False) * 5] = 1  # five clusters have one person each of the rare arm
        plan = make_folds(1_000, 5, strata=strata, groups=groups, random_state=seed)
        assert sorted(plan.fold[strata == 1]) == [0, 1, 2, 3, 4]


def test_clusters_fall_together_at_random():
    together = [make_folds(40, 4, groups=np.arange(40) // 2, random_state=s).fold for s in range(400)]
    share = np.mean([fold[0] == fold[39] for fold in together])
    assert abs(share - 4 / 19) < 0.08  # the chance that one given of the 19 other clusters shares the fold


def test_same_seed_same_folds_and_other_seed_other_folds():
    a, b, c = (make_folds(100, 5, random_state=s).fold for s in (1, 1, 2))
    assert (a == b).all()
    assert (a != c).any()


def test_splitters_and_given_folds_are_used_as_they_are():
    fold = np.array(["b", "a", "b", "a", "c", "c"])
    assert make_folds(6, fold).fold.tolist() == [1, 0, 1, 0, 2, 2]
    plan = make_folds(6, KFold(3))
    assert plan.fold.tolist() == [0, 0, 1, 1, 2, 2]
    groups = np.array([0, 0, 1, 1, 2, 2])
    plan = make_folds(6, GroupKFold(3), groups=groups)
    assert all(len(set(plan.fold[groups == g])) == 1 for g in range(3))
    splits = list(KFold(3).split(np.zeros(6)))
    assert make_folds(6, splits).fold.tolist() == [0, 0, 1, 1, 2, 2]
    assert make_folds(6, [([5, 0, 2], [1, 3, 4]), ([1, 3, 4], [0, 2, 5])]).fold.tolist() == [1, 0, 1, 0, 0, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cv": 1}, "cv must be at least 2"),
        ({"cv": "five"}, "cv must be a number of folds"),
        ({"cv": True}, "cv must be a number of folds"),
        ({"cv": 11}, "fewer than cv=11 folds"),
        ({"cv": np.zeros(10)}, "at least two folds"),
        ({"cv": np.arange(4)}, "4 fold ids for 10 rows"),
        ({"cv": ShuffleSplit(2, test_size=0.9, random_state=0)}, "more than once"),
        ({"cv": ShuffleSplit(1, test_size=0.5, random_state=0)}, "never holds out"),
        ({"cv": [(np.arange(4), np.arange(5, 10)), (np.arange(5, 10), np.arange(5))]}, "keeps some rows out of a trai"),
        ({"cv": KFold(5), "groups": np.repeat(np.arange(5), 2)[::-1] // 2}, "rows of one cluster in different folds"),
        ({"cv": 3, "strata": np.array([0] * 8 + [1] * 2), "stratum_names": ["a", "b"]}, "Treatment b has 2 rows.*cv=2"),
        ({"cv": 3, "strata": np.array([0] * 9 + [1]), "stratum_names": ["a", "b"]}, "Treatment b has 1 rows.*merge it"),
        ({"cv": KFold(2), "strata": np.array([0] * 5 + [1] * 5), "stratum_names": "ab"}, "treatment a fall into one"),
    ],
)
def test_bad_plans_get_one_sentence(arguments, message):
    with pytest.raises(InputError, match=message):
        make_folds(10, **arguments)


def test_arms_are_counted_in_clusters_when_there_are_clusters():
    strata = np.array([0] * 50 + [1] * 50)
    groups = np.concatenate([np.arange(50), np.full(50, 99)])
    with pytest.raises(InputError, match="Treatment 1 has 1 clusters"):
        make_folds(100, 5, strata=strata, groups=groups, random_state=0)


def test_a_memorising_learner_never_meets_a_row_again(rng):
    X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    folds = make_folds(60, 4, random_state=0)
    fit = cross_fit_mean(Memory(), X, y, folds)
    assert (fit.predictions == UNSEEN).all()
    # ... and every model has seen exactly the rows outside its fold
    for f, model in enumerate(fit.models):
        assert ((model.predict(X) == UNSEEN) == (folds.fold == f)).all()


def test_a_memorising_learner_never_meets_its_cluster(rng):
    groups = np.repeat(np.arange(20), 3)
    X = np.column_stack([groups, np.zeros(60)]).astype(float)  # covariates constant within clusters
    folds = make_folds(60, 4, groups=groups, random_state=0)
    assert (cross_fit_mean(Memory(), X, rng.normal(size=60), folds).predictions == UNSEEN).all()


def test_only_the_marked_rows_train(rng):
    X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    marked = rng.random(60) < 0.5
    fit = cross_fit_mean(Memory(), X, y, make_folds(60, 4, random_state=0), train_rows=marked)
    union = (np.stack([m.predict(X) for m in fit.models]) != UNSEEN).any(axis=0)
    assert (union == marked).all()


def test_learners_of_the_same_rows_share_them_and_others_do_not(rng):
    """Rows of a fold are copied once for the learners of a mixture; other rows, outcomes or weights are their own."""
    X, y, w = rng.normal(size=(60, 2)), rng.normal(size=60), rng.random(60)
    marked, taken = rng.random(60) < 0.5, []

    def fit(X, y, sample_weight=None, groups=None):
        taken.append(X)
        return MeanModel(Memory().fit(X, y), None)

    plan = make_folds(60, 4, random_state=0)
    changes = [(X, y, None, None), (X, y, None, None), (X, y, marked, None), (X, y, None, w), (X, -y, None, None)]
    fits = [FoldFits(fit, Z, of, plan, rows, weight) for Z, of, rows, weight in changes]
    together = run_fits(fits, None)
    of_fold = [[id(part) for part in taken[5 * f : 5 * f + 5]] for f in range(4)]
    assert all(first == second and len({first, *others}) == 4 for first, second, *others in of_fold)
    for fit_alone, found in zip(fits, together, strict=True):
        np.testing.assert_array_equal(fit_alone.run().predictions, found.predictions)
        for f, model in enumerate(found.models):
            learns = (plan.fold != f) & (marked if fit_alone.train_rows is not None else True)
            assert ((model.predict(X) != UNSEEN) == learns).all()


def test_out_of_fold_predictions_equal_those_computed_by_hand(rng):
    X, y = rng.normal(size=(50, 3)), rng.normal(size=50)
    w = rng.random(50)
    folds = make_folds(50, KFold(5))
    got = cross_fit_mean(LinearRegression(), X, y, folds, sample_weight=w).predictions
    for start in range(0, 50, 10):
        rest = np.r_[0:start, start + 10 : 50]
        A = np.column_stack([np.ones(40), X[rest]])
        beta = np.linalg.solve(A.T @ (w[rest, None] * A), A.T @ (w[rest] * y[rest]))
        by_hand = beta[0] + X[start : start + 10] @ beta[1:]
        np.testing.assert_allclose(got[start : start + 10], by_hand, rtol=1e-10)


def test_classifiers_predict_expected_values_not_labels(rng):
    X = rng.normal(size=(400, 1))
    y = np.where(rng.random(400) < 1 / (1 + np.exp(-X[:, 0])), 3.0, 1.0)
    folds = make_folds(400, 4, random_state=0)
    got = cross_fit_mean(LogisticRegression(), X, y, folds).predictions
    assert got.min() > 1.0
    assert got.max() < 3.0
    assert len(np.unique(got)) > 300
    np.testing.assert_allclose(got.mean(), y.mean(), atol=0.02)


def test_an_outcome_with_one_value_is_predicted_as_such_by_a_classifier(rng):
    fit = cross_fit_mean(
        LogisticRegression(), rng.normal(size=(20, 2)), np.zeros(20), make_folds(20, 4, random_state=0)
    )
    assert (fit.predictions == 0.0).all()


def test_a_classifier_of_a_continuous_outcome_is_refused(rng):
    with pytest.raises(InputError, match=r"LogisticRegression is a classifier.*pass a regressor"):
        cross_fit_mean(LogisticRegression(), rng.normal(size=(90, 2)), rng.normal(size=90), make_folds(90, 3))


def test_probability_columns_follow_the_codes(rng):
    codes = rng.integers(3, size=90)
    X = np.eye(3)[codes] + rng.normal(scale=0.1, size=(90, 3))
    folds = make_folds(90, 3, strata=codes, random_state=0)
    got = cross_fit_probabilities(RandomForestClassifier(20, random_state=0), X, codes, 3, folds).predictions
    assert (got.argmax(axis=1) == codes).all()
    np.testing.assert_allclose(got.sum(axis=1), 1.0)


@pytest.mark.parametrize(
    ("learner", "keyword"),
    [
        (Ridge(), "sample_weight"),
        (KNeighborsRegressor(), None),
        (make_pipeline(StandardScaler(), Ridge()), "ridge__sample_weight"),
        (make_pipeline(StandardScaler(), KNeighborsRegressor()), None),
        (GridSearchCV(Ridge(), {"alpha": [1.0]}), "sample_weight"),
        (GridSearchCV(make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": [1.0]}), "ridge__sample_weight"),
    ],
)
def test_where_weights_go(learner, keyword, rng):
    assert fit_argument(learner, "sample_weight") == keyword
    X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    w = np.concatenate([np.ones(20), np.full(20, 0.01)])
    folds = make_folds(40, np.tile([0, 1], 20))
    weighted = cross_fit_mean(learner, X, y, folds, sample_weight=w).predictions
    plain = cross_fit_mean(learner, X, y, folds).predictions
    assert np.allclose(weighted, plain) == (keyword is None)
    with sklearn.config_context(enable_metadata_routing=True, transform_output="pandas"):
        same = cross_fit_mean(learner, X, y, folds, sample_weight=w).predictions
        assert sklearn.get_config()["enable_metadata_routing"]  # the caller's again
    np.testing.assert_array_equal(same, weighted)


def test_weights_and_clusters_reach_the_learner_row_by_row(rng):
    w, groups = rng.random(30), np.repeat(np.arange(10), 3)
    codes = np.tile([0, 1, 0], 10)
    folds = make_folds(30, 5, groups=groups, random_state=0)
    fit = cross_fit_probabilities(Spy(), np.zeros((30, 1)), codes, 2, folds, sample_weight=w, groups=groups)
    for (train, _), model in zip(folds.splits(), fit.models, strict=True):
        assert (model.model.weight_ == w[train]).all()
        assert (model.model.groups_ == groups[train]).all()


def test_new_rows_get_the_average_and_known_clusters_their_own_fold(rng):
    X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    folds = make_folds(40, 4, random_state=0)
    fit = cross_fit_mean(Ridge(), X, y, folds)
    each = np.stack([m.predict(X) for m in fit.models])
    np.testing.assert_allclose(predict_new(fit.models, X), each.mean(axis=0))
    np.testing.assert_allclose(predict_new(fit.models, X, folds.fold), fit.predictions)
    mixed = np.where(np.arange(40) < 20, folds.fold, -1)
    got = predict_new(fit.models, X, mixed)
    np.testing.assert_allclose(got[:20], fit.predictions[:20])
    np.testing.assert_allclose(got[20:], each.mean(axis=0)[20:])
