"""BornAgainTree: what users hand over, well formed or not."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier

from policytree import BornAgainTree
from policytree.born_again import TreeEnsemble
from policytree.born_again.faithful import check_faithfulness
from policytree.born_again.readers import own_codes, read_ensemble
from policytree.exceptions import InputError

X, Y = load_iris(return_X_y=True)
TREE = {"feature": [0, -1, -1], "threshold": [0.5, None, None], "left": [1, -1, -1], "right": [2, -1, -1]}
VOTES = {**TREE, "class": [-1, 0, 1]}


@pytest.mark.parametrize(
    "changes",
    [
        {"class": [None, 0, 1]},
        {"class": [np.nan, 0.0, 1.0]},
        {"feature": [0, None, None]},
        {"left": [1, None, None], "right": [2, None, None]},
        {"threshold": np.array([0.5, np.nan, np.nan])},
    ],
)
def test_nothing_may_be_said_where_there_is_nothing_to_say(changes):
    tree = BornAgainTree({"trees": [{**VOTES, **changes}], "n_features": 1}).fit()
    assert tree.predict([[0.5], [0.6]]).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"class": [-1, 0.7, 1]}, "class of tree 0 must be whole numbers"),
        ({"class": ["", "a", "b"]}, "class of tree 0 must be whole numbers"),
        ({"feature": [0.7, -1, -1]}, "feature of tree 0 must be whole numbers"),
        ({"left": [[1, -1, -1]]}, "left of tree 0 must be whole numbers"),
        ({"class": [-1, 0]}, "class of tree 0 must have 3 numbers"),
        ({"threshold": ["a", None, None]}, "threshold of tree 0 must be numbers"),
        ({"threshold": [None, None, None]}, "no finite number"),
    ],
)
def test_arrays_of_trees_are_checked(changes, message):
    with pytest.raises(InputError, match=message):
        TreeEnsemble.from_arrays([{**VOTES, **changes}], n_features=1, classes=["a", "b"])


@pytest.mark.parametrize("value", [[[0, 0], [1], [0, 1]], [[0, 0], [1, "x"], [0, 1]], [[0, 0], [1e200, 0], [0, 1]]])
def test_values_of_leaves_are_checked(value):
    with pytest.raises(InputError, match="value of tree 0 must be"):
        TreeEnsemble.from_arrays([{**TREE, "value": value}], n_features=1)


@pytest.mark.parametrize("trees", [VOTES, None, "trees", 3, [[1.0, 2.0]]])
def test_trees_are_a_list_of_mappings(trees):
    with pytest.raises(InputError, match="trees must be a list"):
        TreeEnsemble.from_arrays(trees, n_features=1)


def test_votes_and_values_may_be_mixed_and_trees_may_come_one_by_one():
    trees = (tree for tree in [VOTES, {**TREE, "value": [[0, 0, 0], [0, 0, 3], [0, 0, 0]]}])
    tree = BornAgainTree(TreeEnsemble.from_arrays(trees, n_features=1)).fit()
    assert tree.predict([[0.0], [1.0]]).tolist() == [2, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"classes": ["a", "a"]}, "classes must be distinct"),
        ({"classes": [["a"], ["b"]]}, "classes must be distinct"),
        ({"feature_names": ["x", "x"], "n_features": 2}, "feature_names must be 2 different names"),
        ({"class_names": ["a", "b"]}, "'class_names' is not known"),
    ],
)
def test_descriptions_are_checked(arguments, message):
    with pytest.raises(InputError, match=message):
        BornAgainTree({"trees": [VOTES], "n_features": 1, **arguments}).fit()


@pytest.mark.parametrize("classes", [[0, "a"], [(0, 1), (1, 1)], [None, 2.5], [0.5, 1.5]])
def test_labels_are_handed_back_as_they_are(classes):
    tree = BornAgainTree({"trees": [VOTES], "n_features": 1, "classes": classes}).fit()
    assert tree.predict([[0.0], [1.0]]).tolist() == classes


@pytest.mark.parametrize("labels", [np.int8, object, np.float32, bool])
def test_predictions_are_of_the_ensembles_type(labels):
    y = np.array(["a", "bb"], dtype=object)[Y // 2] if labels is object else (Y // 2).astype(labels)
    model = RandomForestClassifier(2, max_depth=2, random_state=0).fit(X, y)
    tree = BornAgainTree(model).fit()
    assert tree.predict(X).dtype == model.predict(X).dtype
    assert np.array_equal(tree.predict(X), model.predict(X))


def test_frozen_ensembles_stay_fitted_in_a_grid_search():
    models = [RandomForestClassifier(k, max_depth=2, random_state=0).fit(X, Y) for k in (1, 3)]
    grid = {"ensemble": [FrozenEstimator(model) for model in models]}
    search = GridSearchCV(BornAgainTree(grid["ensemble"][0]), grid, cv=2).fit(X, models[1].predict(X))
    assert search.best_estimator_.ensemble.estimator is models[1] and search.best_score_ == 1.0
    assert search.best_estimator_.check_faithfulness().faithful


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(5, max_depth=3, random_state=0),
        ExtraTreesClassifier(5, max_depth=3, random_state=0),
        BaggingClassifier(DecisionTreeClassifier(max_depth=2), 4, max_samples=0.2, random_state=0),
        HistGradientBoostingClassifier(max_iter=4, max_depth=3, min_samples_leaf=5),
        DecisionTreeClassifier(max_depth=2),
    ],
)
def test_ensembles_that_saw_missing_values_are_read_as_on_complete_rows(model):
    gaps = X.copy()
    gaps[::3, 1] = np.nan
    model.fit(gaps, np.where(np.isnan(gaps[:, 1]), 0, Y))  # a split may ask for nothing but a gap
    tree = BornAgainTree(model, "leaves").fit()
    assert np.array_equal(tree.predict(X), model.predict(X))
    assert tree.check_faithfulness().faithful
    assert check_faithfulness(tree.tree_, tree.ensemble_, most_cells=0).faithful
    with pytest.raises(InputError, match="missing values"):
        tree.predict(gaps)


def test_histograms_of_infinite_numbers_are_read_as_on_finite_rows():
    endless = X.copy()
    endless[::4, 1], endless[1::4, 1] = np.inf, -np.inf
    model = HistGradientBoostingClassifier(max_iter=4, max_depth=3, min_samples_leaf=5)
    model.fit(endless, np.isinf(endless[:, 1]) + (endless[:, 1] > 0))
    tree = BornAgainTree(model, "leaves").fit()
    assert np.array_equal(tree.predict(X), model.predict(X)) and tree.check_faithfulness().faithful


def test_forests_are_compared_with_as_in_one_job(monkeypatch):
    model = RandomForestClassifier(3, max_depth=2, random_state=0, n_jobs=4).fit(X, Y)
    jobs = []
    predict = RandomForestClassifier.predict
    monkeypatch.setattr(
        RandomForestClassifier, "predict", lambda self, X: (jobs.append(self.n_jobs), predict(self, X))[1]
    )
    ensemble = read_ensemble(model)
    assert np.array_equal(own_codes(model, ensemble)(X), ensemble.predict_codes(X))
    assert set(jobs) == {1} and model.n_jobs == 4


def test_the_largest_thresholds_are_checked_without_a_warning():
    arrays = {"trees": [{**VOTES, "threshold": [np.finfo(float).max, None, None]}], "n_features": 1}
    assert BornAgainTree(arrays).fit().check_faithfulness().faithful
