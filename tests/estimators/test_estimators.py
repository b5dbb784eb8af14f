"""The estimators keep scikit-learn's promises, and their own."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from policytree import OptimalTreeClassifier, PolicyTree
from policytree.exceptions import InputError, SearchWarning, UnseenValueWarning
from policytree.problem.types import Status


def _named_rewards(estimator):
    """Checks that pass the target as ``y=``: the second argument of ``fit`` is named ``rewards``, for what it is."""
    by_keyword = (
        "check_fit_score_takes_y",
        "check_n_features_in_after_fitting",
        "check_dataframe_column_names_consistency",
        "check_sample_weight_equivalence_on_dense_data",
    )
    return dict.fromkeys(by_keyword, "named 'rewards'") if isinstance(estimator, PolicyTree) else {}


@parametrize_with_checks(
    [
        PolicyTree(),
        PolicyTree(direction="minimize"),
        OptimalTreeClassifier(max_depth=2, time_limit=None),
        OptimalTreeClassifier(3, 0.0, time_limit=None, max_leaf_nodes=5, feature_costs={0: 0.0001}, root_feature=[0]),
    ],
    expected_failed_checks=_named_rewards,
)
def test_scikit_learn_estimator_checks(estimator, check):
    check(estimator)


@pytest.fixture
def trial():
    """A table with a number, a text column and missing values, whose best arm depends on both."""
    rng = np.random.default_rng(5)
    n = 300
    X = pd.DataFrame(
        {
            "age": rng.integers(18, 70, n).astype(float),
            "region": rng.choice(["north", "south", "west"], n),
            "score": np.where(rng.random(n) < 0.2, np.nan, rng.standard_normal(n)),
        }
    )
    gain = np.where(X["region"] == "south", 2.0, -1.0) + np.where(X["age"] > 50, 1.5, 0.0)
    rewards = pd.DataFrame({"control": np.zeros(n), "drug": gain + 0.1 * rng.standard_normal(n)})
    return X, rewards


def test_labels_names_and_values_survive(trial):
    X, rewards = trial
    tree = PolicyTree(max_depth=2).fit(X, rewards)
    assert list(tree.treatments_) == ["control", "drug"]
    assert set(tree.predict(X)) == {"control", "drug"}
    assert list(tree.feature_names_in_) == ["age", "region", "score"]
    best = np.where((X["region"] == "south") | (X["age"] > 50), "drug", "control")
    assert (tree.predict(X) == best).mean() > 0.97
    assert tree.status_ is Status.OPTIMAL and tree.optimality_gap_ == 0
    assert tree.objective_value_ == pytest.approx(tree.score(X, rewards), rel=1e-12)
    assert tree.predict_value(X).shape == (len(X), 2)


def test_used_features_are_those_of_the_splits(trial):
    X, rewards = trial
    tree = PolicyTree(max_depth=2).fit(X, rewards)
    assert tree.get_used_features() == ["age", "region"]
    assert tree.tree_.used_features.tolist() == [0, 1]
    assert PolicyTree(max_depth=0).fit(X, rewards).get_used_features() == []


def test_minimising_is_maximising_the_negative(trial):
    X, rewards = trial
    up = PolicyTree(max_depth=2).fit(X, rewards)
    down = PolicyTree(max_depth=2, direction="minimize").fit(X, -rewards)
    assert (up.predict(X) == down.predict(X)).all()
    assert down.objective_value_ == -up.objective_value_
    assert down.score(X, -rewards) == pytest.approx(up.score(X, rewards), rel=1e-12)


def test_weight_two_is_the_row_twice_and_weight_zero_is_absence(trial):
    X, rewards = trial
    weight = np.random.default_rng(1).integers(0, 3, len(X))
    by_weight = PolicyTree(max_depth=2).fit(X, rewards, sample_weight=weight)
    rows = np.repeat(np.arange(len(X)), weight)
    by_rows = PolicyTree(max_depth=2).fit(X.iloc[rows], rewards.iloc[rows])
    assert by_weight.objective_value_ == pytest.approx(by_rows.objective_value_, rel=1e-12)
    assert (by_weight.predict(X) == by_rows.predict(X)).all()


def test_treatment_costs_are_subtracted_in_the_rewards_unit(trial):
    X, rewards = trial
    dear = PolicyTree(max_depth=2).fit(X, rewards, sample_treatment_costs={"drug": 100.0})
    assert set(dear.predict(X)) == {"control"}
    shifted = PolicyTree(max_depth=2).fit(X, rewards - [0.0, 1.0])
    costed = PolicyTree(max_depth=2).fit(X, rewards, sample_treatment_costs=[0.0, 1.0])
    assert costed.objective_value_ == shifted.objective_value_


def test_minimum_leaf_sizes_hold(trial):
    X, rewards = trial
    T = np.random.default_rng(2).choice(["control", "drug"], len(X), p=[0.8, 0.2])
    tree = PolicyTree(max_depth=3, min_samples_leaf=40, min_samples_per_treatment=10).fit(X, rewards, T)
    leaves = tree.apply(X)
    counts = pd.crosstab(leaves, T)
    assert counts.to_numpy().min() >= 10 and counts.sum(axis=1).min() >= 40
    with pytest.raises(InputError, match="min_samples"):
        PolicyTree(min_samples_leaf=len(X) + 1).fit(X, rewards)
    with pytest.raises(InputError, match="pass T"):
        PolicyTree(min_samples_per_treatment=3).fit(X, rewards)


def test_missing_and_unseen_values_at_predict_have_a_leaf(trial):
    X, rewards = trial
    tree = PolicyTree(max_depth=2).fit(X, rewards)
    new = pd.DataFrame({"age": [np.nan, 30.0], "region": ["east", None], "score": [np.nan, 0.0]})
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        assert tree.predict(new).shape == (2,)
    assert {w.category for w in heard} == {UnseenValueWarning}  # test_unseen.py has what they say


def test_grid_search_and_pipeline():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    rewards = np.column_stack([np.zeros(200), np.sign(X[:, 0]) + rng.standard_normal(200)])
    search = GridSearchCV(PolicyTree(), {"max_depth": [0, 1, 2], "regularization": [0.0, 0.5]}, cv=3)
    search.fit(X, rewards)
    assert search.best_params_["max_depth"] >= 1
    pipe = make_pipeline(StandardScaler(), PolicyTree(max_depth=1)).fit(X, rewards)
    assert (pipe.predict(X) == (X[:, 0] > 0)).mean() > 0.8


def test_number_and_names_of_columns_are_checked_at_predict(trial):
    X, rewards = trial
    tree = PolicyTree(max_depth=1).fit(X[["age", "score"]].to_numpy(), rewards)
    assert tree.n_features_in_ == 2
    with pytest.raises(ValueError, match="3 features, but PolicyTree is expecting 2"):
        tree.predict(np.zeros((4, 3)))
    named = PolicyTree(max_depth=1).fit(X[["age", "score"]], rewards)
    with pytest.raises(ValueError, match="in the same order"):
        named.predict(X[["score", "age"]])
    with pytest.raises(ValueError, match="unseen at fit time"):
        named.score(X.rename(columns={"age": "years"})[["years", "score"]], rewards)


def test_polars_frames_are_read_like_pandas(trial):
    import polars as pl

    X, rewards = trial
    tree = PolicyTree(max_depth=2).fit(X, rewards)
    other = PolicyTree(max_depth=2).fit(pl.from_pandas(X), pl.from_pandas(rewards))
    assert other.objective_value_ == tree.objective_value_
    assert (other.predict(pl.from_pandas(X)) == tree.predict(X)).all()


def test_classifier_labels_weights_and_probabilities():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((120, 2))
    y = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")
    w = rng.uniform(0.5, 2.0, 120)
    tree = OptimalTreeClassifier(regularization=0.02, max_depth=3).fit(X, y, sample_weight=w)
    error = np.average(tree.predict(X) != y, weights=w)
    assert tree.objective_value_ == pytest.approx(error + 0.02 * tree.get_n_leaves(), rel=1e-12)
    proba = tree.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert (tree.classes_[proba.argmax(axis=1)] == tree.predict(X)).all()


def test_time_limit_warns_and_keeps_a_valid_tree():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((3000, 12))
    rewards = rng.standard_normal((3000, 4))
    with pytest.warns(SearchWarning, match="optimality gap"):
        tree = PolicyTree(max_depth=4, time_limit=0.5).fit(X, rewards)
    assert tree.status_ is Status.TIME_LIMIT
    assert tree.objective_bound_ >= tree.objective_value_ == pytest.approx(tree.score(X, rewards), rel=1e-9)
    assert tree.optimality_gap_ > 0


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"max_depth": -1}, "max_depth"),
        ({"max_depth": 1.5}, "max_depth"),
        ({"regularization": -0.1}, "regularization"),
        ({"regularization": np.nan}, "regularization"),
        ({"min_samples_leaf": 0}, "min_samples_leaf"),
        ({"direction": "up"}, "direction"),
        ({"solver": "magic"}, "solver"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"time_limit": -1}, "time_limit"),
    ],
)
def test_bad_arguments_are_named(arguments, match):
    with pytest.raises(InputError, match=match):
        PolicyTree(**arguments).fit(np.zeros((3, 1)), np.zeros((3, 2)))


@pytest.mark.parametrize(
    ("rewards", "match"),
    [
        (np.zeros(3), r"shape \(n, K\)"),
        (np.zeros((4, 2)), "4 rows"),
        (np.array([[0, np.nan]] * 3), "Column 1 of rewards"),
        (np.array([["a", "b"]] * 3), "not numbers"),
        (pd.DataFrame(np.zeros((3, 2)), columns=["a", "a"]), "more than one column 'a'"),
    ],
)
def test_bad_rewards_are_named(rewards, match):
    with pytest.raises(InputError, match=match):
        PolicyTree().fit(np.zeros((3, 1)), rewards)


def test_bad_tables_are_named(trial):
    X, rewards = trial
    with pytest.raises(InputError, match=r"'age'.*infinite"):
        PolicyTree().fit(X.assign(age=np.inf), rewards)
    with pytest.raises(InputError, match="'when'"):
        PolicyTree().fit(X.assign(when=pd.Timestamp("2020-01-01")), rewards)
    with pytest.raises(ValueError, match="region"):
        PolicyTree().fit(X, rewards).predict(X.drop(columns="region"))


def test_clone_keeps_parameters():
    tree = PolicyTree(max_depth=3, regularization=0.1, direction="minimize")
    assert clone(tree).get_params() == tree.get_params()
