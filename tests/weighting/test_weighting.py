"""RewardEstimator with doubly robust scores: unbiased, doubly robust, no leaks, any labels, clear refusals."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeRegressor

from policytree import RewardEstimator
from policytree.exceptions import InputError, OverlapWarning
from policytree.weighting.doubly_robust import DoublyRobust
from policytree.weighting.registry import SCHEMES
from policytree.weighting.scheme import Nuisances
from policytree.weighting.study_data import StudyData
from tests.support.simulations import assert_errors_are_as_said

LINEAR = {"model_regression": LinearRegression(), "model_propensity": LogisticRegression()}


def expit(z):
    return 1 / (1 + np.exp(-z))


def confounded(rng, n):
    """Two arms, confounded by the first covariate: data, true propensities and true means."""
    X = rng.normal(size=(n, 2))
    p = expit(0.8 * X[:, 0])
    T = (rng.random(n) < p).astype(int)
    means = np.column_stack([X[:, 0], 1.0 + 0.5 * X[:, 0] + X[:, 1]])
    Y = means[np.arange(n), T] + rng.normal(size=n)
    return X, T, Y, np.column_stack([1 - p, p]), means


class Wrong(RegressorMixin, BaseEstimator):
    """An outcome model that is simply wrong."""

    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        return 5.0 - 3.0 * X[:, 0]


def test_aipw_by_hand():
    observed = StudyData.of([1.0, 4.0], ["a", "b"])
    nuisances = Nuisances(np.array([[0.5, 2.0], [1.0, 3.0]]), np.array([[0.25, 0.75], [0.5, 0.5]]))
    got = DoublyRobust().rewards(observed, nuisances)
    # row 0: 0.5 + (1 - 0.5) / 0.25 = 2.5; row 1: 3 + (4 - 3) / 0.5 = 5
    assert got.tolist() == [[2.5, 2.0], [1.0, 5.0]]


@pytest.mark.slow
@pytest.mark.parametrize("outcome_model_is_right", [True, False])
def test_unbiased_with_true_propensities(rng, outcome_model_is_right):
    truth, draws = np.array([0.0, 1.0]), []
    for _ in range(1_000):
        _, T, Y, p, means = confounded(rng, 200)
        m = means if outcome_model_is_right else np.zeros_like(means)
        draws.append(DoublyRobust().rewards(StudyData.of(Y, T), Nuisances(m, p)).mean(axis=0))
    z = (np.mean(draws, axis=0) - truth) / (np.std(draws, axis=0) / np.sqrt(len(draws)))
    assert (np.abs(z) < 3.5).all()


@pytest.mark.slow
@pytest.mark.parametrize("wrong", ["regression", "propensity"])
def test_doubly_robust_with_either_model_wrong(rng, wrong):
    X, T, Y, _, _ = confounded(rng, 40_000)
    models = dict(LINEAR)
    if wrong == "regression":
        models["model_regression"] = Wrong()
    else:
        models["model_propensity"] = DummyClassifier(strategy="uniform")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OverlapWarning)
        rewards = RewardEstimator(**models, random_state=0).fit_predict(Y, T, X=X)
    se = rewards.std() / np.sqrt(len(rewards))
    assert (np.abs(rewards.mean() - [0.0, 1.0]) < 4 * se).all()


@pytest.mark.slow
def test_coverage_of_the_average_effect(rng):
    """With two folds: half of the rows for every model, and so more error of the nuisances than with five."""
    found = []
    for seed in range(120):
        X, T, Y, _, _ = confounded(rng, 300)
        r = RewardEstimator(**LINEAR, cv=2, random_state=seed).fit_predict(Y, T, X=X)
        effect = r[1] - r[0]
        found.append((effect.mean(), effect.std() / np.sqrt(len(effect))))
    assert_errors_are_as_said(*np.transpose(found), 1.0)


def test_a_memorising_outcome_model_does_not_leak(rng):
    X, T, Y, p, _ = confounded(rng, 300)
    groups = np.arange(300) // 3
    X = np.column_stack([groups, groups]).astype(float)  # a deep tree would recognise the cluster
    deep = RewardEstimator(DecisionTreeRegressor(random_state=0), random_state=0)
    fitted = deep.fit(Y, T, X=X, propensity=p, groups=groups)
    own = fitted.regression_.to_numpy()[np.arange(300), T]
    assert np.mean(own == Y) < 0.02
    for f, models in enumerate(fitted.models_regression_):
        seen = set(Y[(fitted.folds_ != f)])
        assert all(set(model.predict(X).round(12)) <= _tree_means(seen, model) for model in models)
    assert fitted.rewards_.to_numpy().std() > 0


def _tree_means(seen, model):
    """All values a fully grown tree can predict: the means in its leaves."""
    return set(model.model.tree_.value.ravel().round(12))


def test_clusters_are_never_split(rng):
    X, T, Y, _, _ = confounded(rng, 400)
    groups = rng.integers(60, size=400)
    fitted = RewardEstimator(**LINEAR, random_state=0).fit(Y, T, X=X, groups=groups)
    assert pd.Series(fitted.folds_).groupby(groups).nunique().max() == 1


@pytest.mark.parametrize(
    "labels",
    [
        ["control", "treated"],
        [False, True],
        [10, 2],
        [0.5, 1.5],
        [None, None],  # replaced below by labels of mixed types
        [pd.Timestamp("2020-01-01"), pd.Timestamp("2021-01-01")],
    ],
)
def test_labels_of_any_type_name_the_columns(labels, rng):
    labels = [3, "three"] if labels[0] is None else labels
    X, T, Y, _, _ = confounded(rng, 200)
    T = [labels[t] for t in T]
    expected = sorted(labels, key=str) if labels == [3, "three"] else sorted(labels)
    rewards = RewardEstimator(**LINEAR, random_state=0).fit_predict(Y, T, X=X)
    assert list(rewards.columns) == expected


@pytest.mark.parametrize("wrap", [list, np.array, pd.Series, pl.Series, lambda t: pd.Series(t, dtype="category")])
def test_containers_of_labels_agree(wrap, rng):
    X, T, Y, _, _ = confounded(rng, 200)
    names = np.array(["no", "yes"])[T].tolist()
    rewards = RewardEstimator(**LINEAR, random_state=0).fit_predict(Y, wrap(names), X=X)
    reference = RewardEstimator(**LINEAR, random_state=0).fit_predict(Y, T, X=X)
    assert list(rewards.columns) == ["no", "yes"]
    np.testing.assert_array_equal(rewards.to_numpy(), reference.to_numpy())


def test_frames_with_categories_text_booleans_and_gaps(rng):
    X, T, Y, _, _ = confounded(rng, 300)
    town = rng.choice(["Rome", "Paris", "Oslo"], size=300)
    Y = Y + 4.0 * (town == "Rome")
    columns = {"age": X[:, 0], "town": town, "member": X[:, 1] > 0}
    frame = pd.DataFrame(columns, index=np.arange(300) + 7)
    frame.loc[frame.index[:5], "age"] = np.nan
    frame.loc[frame.index[5:9], "town"] = None
    estimator = RewardEstimator(**LINEAR, random_state=0)
    Y = pd.Series(Y, index=frame.index)
    rewards = estimator.fit_predict(Y, T, X=frame[["age"]], W=frame[["town", "member"]])
    assert rewards.index.equals(frame.index)
    assert np.isfinite(rewards.to_numpy()).all()
    # the town's effect, 4, must have been learnt from W
    outcomes = estimator.predict_outcomes(X=frame[["age"]], W=frame[["town", "member"]])
    gap = outcomes[frame["town"] == "Rome"].mean() - outcomes[frame["town"] == "Oslo"].mean()
    assert (np.abs(gap - 4.0) < 1.0).all()
    as_polars = estimator.fit_predict(
        Y.to_numpy(), T, X=pl.from_pandas(frame[["age"]]), W=pl.from_pandas(frame[["town", "member"]])
    )
    np.testing.assert_allclose(as_polars.to_numpy(), rewards.to_numpy())


@pytest.mark.parametrize(
    "form",
    [
        lambda n: {"b": 0.3, "a": 0.7},
        lambda n: pd.Series({"b": 0.3, "a": 0.7}),
        lambda n: [0.7, 0.3],
        lambda n: np.full(n, 0.3),
        lambda n: pd.Series(np.full(n, 0.3), index=np.arange(n) + 5),
        lambda n: np.tile([0.7, 0.3], (n, 1)),
        lambda n: pd.DataFrame({"b": np.full(n, 0.3), "a": np.full(n, 0.7)}),
        lambda n: pl.DataFrame({"b": np.full(n, 0.3), "a": np.full(n, 0.7)}),
    ],
)
def test_known_propensities_in_every_form(form, rng):
    X = rng.normal(size=(100, 2))
    T = np.where(rng.random(100) < 0.3, "b", "a")
    Y = rng.normal(size=100)
    fitted = RewardEstimator(LinearRegression(), random_state=0).fit(Y, T, X=X, propensity=form(100))
    assert (fitted.propensity_["b"] == 0.3).all()
    assert (fitted.propensity_["a"] == 0.7).all()
    assert fitted.models_propensity_ is None


def test_rows_in_another_order_give_the_same_rewards(rng):
    X, T, Y, p, _ = confounded(rng, 200)
    fold = rng.integers(4, size=200)
    order = rng.permutation(200)
    one = RewardEstimator(LinearRegression(), cv=fold).fit_predict(Y, T, X=X, propensity=p)
    two = RewardEstimator(LinearRegression(), cv=fold[order]).fit_predict(
        Y[order], T[order], X=X[order], propensity=p[order]
    )
    np.testing.assert_allclose(two.to_numpy(), one.to_numpy()[order], rtol=1e-9)


def test_weight_two_is_the_row_twice(rng):
    X, T, Y, _, _ = confounded(rng, 150)
    fold, w = rng.integers(3, size=150), rng.integers(1, 3, size=150)
    twice = np.repeat(np.arange(150), w)
    models = {"model_regression": LinearRegression(), "model_propensity": LogisticRegression(tol=1e-10)}
    weighted = RewardEstimator(**models, cv=fold).fit_predict(Y, T, X=X, sample_weight=w)
    repeated = RewardEstimator(**models, cv=fold[twice]).fit_predict(Y[twice], T[twice], X=X[twice])
    np.testing.assert_allclose(repeated.to_numpy(), weighted.to_numpy()[twice], rtol=1e-5)


def test_without_covariates_the_nuisances_are_averages_of_other_folds(rng):
    _, T, Y, _, _ = confounded(rng, 100)
    fitted = RewardEstimator(random_state=0).fit(Y, T)
    for f in range(5):
        out = fitted.folds_ == f
        expected = [Y[~out & (k == T)].mean() for k in (0, 1)]
        np.testing.assert_allclose(fitted.regression_[out].to_numpy(), np.tile(expected, (out.sum(), 1)))
        np.testing.assert_allclose(fitted.propensity_.loc[out, 1], T[~out].mean())


def test_default_learners_on_a_trial_with_a_binary_outcome(rng):
    n = 600
    X = rng.normal(size=(n, 3))
    T = rng.choice(["a", "b", "c"], size=n)
    Y = (rng.random(n) < expit(X[:, 0] + (T == "b"))).astype(int)
    fitted = RewardEstimator(random_state=1).fit(Y, T, X=X, propensity={"a": 1 / 3, "b": 1 / 3, "c": 1 / 3})
    assert fitted.regression_.to_numpy().min() >= 0.0
    assert fitted.regression_.to_numpy().max() <= 1.0
    assert fitted.rewards_["b"].mean() > fitted.rewards_["a"].mean()
    again = RewardEstimator(random_state=1).fit(Y, T, X=X, propensity=[1 / 3] * 3)
    pd.testing.assert_frame_equal(again.rewards_, fitted.rewards_)


def test_new_rows_are_scored_by_averaged_models(rng):
    X, T, Y, _, _ = confounded(rng, 300)
    fitted = RewardEstimator(**LINEAR, random_state=0).fit(Y[:200], T[:200], X=X[:200])
    new = fitted.predict_rewards(Y[200:], T[200:], X=X[200:])
    m = np.mean([[model.predict(X[200:]) for model in fold] for fold in fitted.models_regression_], axis=0).T
    p = np.mean([model.predict(X[200:]) for model in fitted.models_propensity_], axis=0)
    rows = np.arange(100)
    expected = m.copy()
    expected[rows, T[200:]] += (Y[200:] - m[rows, T[200:]]) / p[rows, T[200:]]
    np.testing.assert_allclose(new.to_numpy(), expected)
    pd.testing.assert_frame_equal(
        fitted.predict_outcomes(X=X[200:]), pd.DataFrame(m, columns=fitted.treatments_), check_column_type=False
    )


def test_known_clusters_are_scored_only_by_models_that_missed_them(rng):
    X, T, Y, _, _ = confounded(rng, 200)
    groups = np.array([f"family {g}" for g in rng.integers(40, size=200)])
    fitted = RewardEstimator(**LINEAR, random_state=0).fit(Y, T, X=X, groups=groups)
    again = fitted.predict_rewards(Y, T, X=X, groups=groups)
    np.testing.assert_allclose(again.to_numpy(), fitted.rewards_.to_numpy())
    other = fitted.predict_rewards(Y, T, X=X, groups=np.full(200, "newcomers"))
    pd.testing.assert_frame_equal(other, fitted.predict_rewards(Y, T, X=X))


def test_one_known_distribution_need_not_be_repeated(rng):
    X, T, Y, p, _ = confounded(rng, 200)
    fitted = RewardEstimator(LinearRegression(), random_state=0).fit(Y, T, X=X, propensity=0.5)
    pd.testing.assert_frame_equal(
        fitted.predict_rewards(Y, T, X=X), fitted.predict_rewards(Y, T, X=X, propensity={0: 0.5, 1: 0.5})
    )
    fitted = RewardEstimator(LinearRegression(), random_state=0).fit(Y, T, X=X, propensity=p)
    with pytest.raises(InputError, match="row by row"):
        fitted.predict_rewards(Y, T, X=X)


def test_many_clipped_rows_are_counted_and_warned_about(rng):
    X = rng.normal(size=(500, 1))
    T = (X[:, 0] + 0.1 * rng.normal(size=500) > 0).astype(int)  # almost determined
    estimator = RewardEstimator(LinearRegression(), LogisticRegression(C=1e6), min_propensity=0.05, random_state=0)
    with pytest.warns(OverlapWarning, match=r"Of 500 rows, \d+ have an estimated propensity below min_propensity=0.05"):
        fitted = estimator.fit(rng.normal(size=500), T, X=X)
    assert fitted.n_clipped_ > 300
    assert fitted.propensity_.to_numpy().min() == 0.05
    assert np.isfinite(fitted.rewards_.to_numpy()).all()


def test_a_perfect_predictor_of_treatment_is_said_and_gives_numbers(rng):
    X = rng.normal(size=(400, 2))
    T = np.where(X[:, 0] > 0, "treated", "control")
    with pytest.warns(OverlapWarning, match="rows for control"):
        fitted = RewardEstimator(LinearRegression(), random_state=0).fit(rng.normal(size=400), T, X=X)
    assert fitted.n_clipped_ > 100
    assert np.isfinite(fitted.rewards_.to_numpy()).all()


def test_default_learners_take_weights_and_clusters(rng):
    X, T, Y, _, _ = confounded(rng, 400)
    groups, w = np.arange(400) // 4, rng.random(400)
    estimator = RewardEstimator(cv=2, random_state=0)
    one = estimator.fit_predict(Y, T, X=X, sample_weight=w, groups=groups)
    ten = estimator.fit_predict(Y, T, X=X, sample_weight=10 * w, groups=groups)
    assert np.abs(one - ten).to_numpy().mean() < 0.1  # the logistic penalty knows the total weight, nothing else does
    unweighted = estimator.fit_predict(Y, T, X=X, groups=groups)
    assert np.abs(one - unweighted).to_numpy().mean() > np.abs(one - ten).to_numpy().mean()


def test_known_small_propensities_are_kept_and_warned_about(rng):
    T = np.array([0] * 90 + [1] * 10)
    with pytest.warns(OverlapWarning, match="treatment 1 is below min_propensity=0.01 in 100 of 100 rows"):
        fitted = RewardEstimator(random_state=0).fit(rng.normal(size=100), T, propensity={0: 0.995, 1: 0.005})
    assert fitted.n_clipped_ == 0
    assert (fitted.propensity_[1] == 0.005).all()


def test_scikit_learn_conventions():
    estimator = RewardEstimator(LinearRegression(), cv=3, min_propensity=0.02)
    copy = clone(estimator)
    assert copy.get_params()["cv"] == 3
    assert repr(estimator) == repr(copy)
    assert isinstance(SCHEMES["dr"], DoublyRobust)


def test_own_learners_without_covariates_are_refused():
    with pytest.raises(InputError, match="model_regression needs covariates"):
        RewardEstimator(LinearRegression()).fit(np.arange(20.0), np.tile([0, 1], 10))


def test_new_rows_must_fit_the_fitted_data(rng):
    X, T, Y, _, _ = confounded(rng, 100)
    frame = pd.DataFrame(X, columns=["age", "income"])
    fitted = RewardEstimator(**LINEAR, random_state=0).fit(Y, T, X=frame)
    with pytest.raises(InputError, match="not seen at fit: 7; the known ones are 0, 1"):
        fitted.predict_rewards(Y, np.where(T == 1, 7, 0), X=frame)
    with pytest.raises(InputError, match=r"X lacks the column\(s\) 'income'"):
        fitted.predict_rewards(Y, T, X=frame[["age"]])
    with pytest.raises(InputError, match="X was given at fit"):
        fitted.predict_outcomes()
    with pytest.raises(InputError, match="W was not given at fit"):
        fitted.predict_outcomes(X=frame, W=frame)
    with pytest.raises(InputError, match="groups was not given at fit"):
        fitted.predict_outcomes(X=frame, groups=np.zeros(100))
