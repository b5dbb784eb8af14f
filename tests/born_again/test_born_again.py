"""BornAgainTree: reading ensembles, predicting as they do, checks of that, pruning."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from joblib import parallel_config
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from policytree import BornAgainTree, OptimalTreeClassifier
from policytree.born_again import TreeEnsemble
from policytree.born_again.faithful import check_faithfulness
from policytree.born_again.pruning import prune
from policytree.born_again.readers import float64_threshold, read_ensemble
from policytree.born_again.solve import solve_born_again
from policytree.exceptions import InputError, SearchWarning
from policytree.problem.types import Status
from policytree.serialization import from_json
from tests.support.born_again_oracles import cells_of

IRIS = load_iris(return_X_y=True)
ENSEMBLES = {
    "forest": RandomForestClassifier(5, max_depth=3, random_state=0),
    "forest of weights": RandomForestClassifier(6, max_depth=4, min_samples_leaf=3, class_weight="balanced"),
    "extra trees": ExtraTreesClassifier(4, max_depth=3, random_state=0),
    "bagging": BaggingClassifier(n_estimators=5, max_features=0.5, max_samples=0.1, random_state=0),
    "bagging in two jobs": BaggingClassifier(n_estimators=5, random_state=0, n_jobs=2),
    "bagging of shallow trees": BaggingClassifier(DecisionTreeClassifier(max_depth=2), 7, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=5, max_depth=2, random_state=0),
    "boosting from zero": GradientBoostingClassifier(n_estimators=3, max_depth=2, init="zero", random_state=0),
    "histograms": HistGradientBoostingClassifier(max_iter=4, max_depth=3, min_samples_leaf=5),
    "one tree": DecisionTreeClassifier(max_depth=4, random_state=0),
}
LABELS = {"three": lambda y: np.array(["setosa", "versicolor", "virginica"])[y], "two": lambda y: y == 1}


def near_thresholds(rng, ensemble: TreeEnsemble, rows: int) -> np.ndarray:
    """Points on thresholds, next to them in float64 and in float32, and between them."""
    X = rng.normal(size=(rows, ensemble.n_features))
    for j, thresholds in enumerate(ensemble.thresholds()):
        if len(thresholds):
            t = rng.choice(thresholds, rows)
            small = t.astype(np.float32)
            near = [t, np.nextafter(t, np.inf), np.nextafter(t, -np.inf), small, t + rng.normal(size=rows)]
            near += [np.nextafter(small, np.float32(s * np.inf)) for s in (-1, 1)]
            X[:, j] = np.choose(rng.integers(0, len(near), rows), [np.asarray(each, float) for each in near])
    return X


@pytest.fixture
def threads():
    """Jobs as threads: processes take seconds to start."""
    with parallel_config(backend="threading"):
        yield


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("name", ENSEMBLES)
@pytest.mark.usefixtures("threads")
def test_predicts_what_the_ensemble_predicts(name, labels):
    X, y = IRIS
    model = clone(ENSEMBLES[name]).fit(X, LABELS[labels](y))
    tree = BornAgainTree(model, "leaves").fit()
    assert tree.status_ is Status.OPTIMAL
    Z = near_thresholds(np.random.default_rng(0), tree.ensemble_, 20_000)
    assert np.array_equal(tree.predict(Z), model.predict(Z))
    assert tree.predict(Z).dtype == model.predict(Z).dtype
    assert tree.check_faithfulness().faithful
    assert check_faithfulness(tree.tree_, tree.ensemble_, most_cells=0).faithful  # by reachability
    assert np.array_equal(np.array(tree.ensemble_.classes)[tree.ensemble_.predict_codes(Z)], model.predict(Z))


def test_hard_votes_are_those_of_the_trees():
    X, y = IRIS
    model = RandomForestClassifier(4, max_depth=2, random_state=1).fit(X, y)
    tree = BornAgainTree(model, voting="hard").fit()
    Z = near_thresholds(np.random.default_rng(0), tree.ensemble_, 5000)
    votes = np.stack([one.predict(Z).astype(int) for one in model.estimators_])
    counts = np.stack([(votes == k).sum(axis=0) for k in range(3)])
    assert np.array_equal(tree.predict(Z), counts.argmax(axis=0))
    assert not np.array_equal(tree.predict(Z), model.predict(Z))
    assert tree.check_faithfulness().faithful
    with pytest.raises(InputError, match="boosted trees add scores"):
        read_ensemble(GradientBoostingClassifier(n_estimators=2).fit(X, y), "hard")


def test_ties_go_to_the_first_class_as_in_the_ensemble():
    votes = {"feature": [0, -1, -1], "left": [1, -1, -1], "right": [2, -1, -1]}
    trees = [{**votes, "threshold": [t, None, None], "class": [-1, *c]} for t, c in ((0.0, (0, 1)), (1.0, (1, 0)))]
    ensemble = TreeEnsemble.from_arrays(trees, n_features=2, classes=["a", "b"])
    tree = BornAgainTree(ensemble, "leaves").fit()
    assert tree.predict([[-1.0, 0.0], [0.5, 0.0], [2.0, 0.0]]).tolist() == ["a", "b", "a"]


@given(st.floats(-1e30, 1e30))
@example(0.1)
@example(float(np.float32(0.1)))
@example(1e-45)
@example(16777217.0)
def test_float64_thresholds_send_rounded_numbers_the_same_way(t):
    cut = float(float64_threshold(np.array(t)))
    above = np.nextafter(cut, np.inf)
    with np.errstate(over="ignore"):
        assert np.float64(np.float32(cut)) <= t < np.float64(np.float32(above))


def test_named_columns_clone_pickle_and_views():
    data = load_iris(as_frame=True)
    X = data.data
    model = RandomForestClassifier(4, max_depth=2, random_state=0).fit(X, data.target)
    tree = BornAgainTree(model, "depth_then_leaves").fit(X)
    assert np.array_equal(tree.predict(X[X.columns]), model.predict(X))
    assert tree.feature_names_in_.tolist() == list(X.columns) and tree.n_features_in_ == 4
    assert tree.score(X, model.predict(X)) == 1.0
    assert tree.tree_.n_node_samples[0] == 150 and "rows" in tree.export_text()
    assert tree.get_depth() == tree.solution_.depth and tree.get_n_leaves() == tree.solution_.leaves
    with pytest.raises(ValueError, match="feature names"):
        tree.predict(X.rename(columns={"petal width (cm)": "width"}))
    fresh = clone(tree)
    assert fresh.ensemble is model and fresh.get_params(deep=False) == tree.get_params(deep=False)
    assert np.array_equal(pickle.loads(pickle.dumps(tree)).predict(X), model.predict(X))
    assert np.array_equal(fresh.fit().tree_.threshold, tree.tree_.threshold, equal_nan=True)
    assert "rows" not in fresh.export_text() and "rows" not in fresh.export_graphviz()
    assert np.array_equal(from_json(fresh.to_json()).action, fresh.tree_.action)
    assert len(fresh.plot().boxes_) == fresh.tree_.node_count


def test_constant_ensembles_are_one_leaf():
    X, _ = IRIS
    model = RandomForestClassifier(3).fit(X, np.ones(len(X)))
    tree = BornAgainTree(model, "leaves").fit()
    assert tree.get_n_leaves() == 1 and (tree.predict(X) == 1).all() and tree.check_faithfulness().faithful


@pytest.mark.parametrize(
    ("ensemble", "message"),
    [
        (RandomForestClassifier(), "is not fitted"),
        (LogisticRegression(), "ensemble must be a random forest"),
        ({"trees": []}, "needs the keys"),
        ({"trees": [], "n_features": 2}, "no tree"),
        (BaggingClassifier(LogisticRegression(max_iter=500), 2).fit(*IRIS), "only bagging of trees"),
        (RandomForestClassifier(2).fit(IRIS[0], np.stack([IRIS[1]] * 2, axis=1)), "several targets"),
        (GradientBoostingClassifier(n_estimators=1, init=LogisticRegression(max_iter=500)).fit(*IRIS), "begins with"),
        (HistGradientBoostingClassifier(max_iter=1, categorical_features=[0]).fit(IRIS[0] // 1, IRIS[1]), "categories"),
    ],
)
def test_what_cannot_be_read_is_refused_in_a_sentence(ensemble, message):
    with pytest.raises(InputError, match=message):
        BornAgainTree(ensemble).fit()


TREE = {"feature": [0, -1, -1], "threshold": [0.5, None, None], "left": [1, -1, -1], "right": [2, -1, -1]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "either class or value"),
        ({"class": [-1, 0, 2]}, "votes for a class"),
        ({"class": [-1, 0, 1], "feature": [3, -1, -1]}, "asks for a feature"),
        ({"class": [-1, 0, 1], "left": [0, -1, -1]}, "form no tree"),
        ({"class": [-1, 0, 1], "right": [1, -1, -1]}, "form no tree"),
        ({"class": [-1, 0, 1], "threshold": [np.inf, None, None]}, "no finite number"),
        ({"value": [[0, 0], [1, 0], [np.nan, 1]]}, "finite numbers"),
    ],
)
def test_arrays_that_are_no_trees_are_refused(changes, message):
    with pytest.raises(InputError, match=message):
        TreeEnsemble.from_arrays([{**TREE, **changes}], n_features=2, classes=[0, 1])


def test_arguments_and_rows_are_checked():
    X, y = IRIS
    model = RandomForestClassifier(2, max_depth=2, random_state=0).fit(X, y)
    for name, value in (("objective", "size"), ("voting", "loud"), ("time_limit", -1), ("prune", "yes")):
        with pytest.raises(InputError, match=name):
            BornAgainTree(model).set_params(**{name: value}).fit()
    with pytest.raises(InputError, match=r"call fit\(X\)"):
        BornAgainTree(model, prune=True).fit()
    tree = BornAgainTree(model).fit()
    gap = X.copy()
    gap[3, 2] = np.nan
    with pytest.raises(InputError, match="'x2' of X has missing values"):
        tree.predict(gap)
    with pytest.raises(InputError, match="missing values"):
        BornAgainTree(model, prune=True).fit(gap)
    with pytest.raises(ValueError, match="features"):
        tree.predict(X[:, :2])


def test_large_ensembles_get_a_faithful_tree_and_a_warning():
    X, y = load_breast_cancer(return_X_y=True)
    model = RandomForestClassifier(4, max_depth=3, random_state=0).fit(X[:, :12], y)
    with pytest.warns(SearchWarning, match="not proved smallest"):
        tree = BornAgainTree(model, "leaves", memory_limit=1.0).fit()
    assert tree.status_ is Status.MEMORY_LIMIT
    assert tree.solution_.leaves_bound <= tree.get_n_leaves()
    Z = near_thresholds(np.random.default_rng(0), tree.ensemble_, 20_000)
    assert np.array_equal(tree.predict(Z), model.predict(Z))
    assert check_faithfulness(tree.tree_, tree.ensemble_, most_cells=0).faithful


# --- the check ---


@pytest.mark.parametrize("most_cells", [0, 10**6])
def test_the_check_sees_one_wrong_leaf_and_a_threshold_that_is_next_to_it(most_cells):
    X, y = IRIS
    ensemble = read_ensemble(RandomForestClassifier(4, max_depth=3, random_state=0).fit(X, y))
    tree = solve_born_again(ensemble, "leaves").tree
    rng = np.random.default_rng(0)
    for node in rng.choice(np.flatnonzero(tree.is_leaf), 5, replace=False):
        action = tree.action.copy()
        action[node] = (action[node] + 1) % 3
        found = check_faithfulness(replace(tree, action=action), ensemble, most_cells=most_cells)
        assert not found.faithful and "differs at" in str(found)
        point = found.counterexample[None]
        assert action[tree.apply(point)[0]] != ensemble.predict_codes(point)[0]
    for node in rng.choice(np.flatnonzero(~tree.is_leaf), 5, replace=False):
        threshold = tree.threshold.copy()
        threshold[node] = np.nextafter(threshold[node], rng.choice([-np.inf, np.inf]))
        found = check_faithfulness(replace(tree, threshold=threshold), ensemble, most_cells=most_cells)
        assert not found.faithful
    assert str(check_faithfulness(tree, ensemble, most_cells=most_cells)).startswith("faithful: checked on")


# --- pruning ---


@pytest.mark.parametrize("objective", ["depth", "leaves"])
def test_pruning_changes_nothing_where_data_is_and_says_what_it_changes(objective):
    X, y = IRIS
    model = RandomForestClassifier(5, max_depth=3, random_state=2).fit(X, y)
    tree = BornAgainTree(model, objective, prune=True).fit(X)
    full = BornAgainTree(model, objective).fit(X)
    report = tree.pruning_
    assert np.array_equal(tree.predict(X), model.predict(X))
    assert (tree.tree_.n_node_samples > 0).all()
    assert report.leaves == full.get_n_leaves() > report.pruned_leaves == tree.get_n_leaves()
    inner = np.flatnonzero(~tree.tree_.is_leaf)
    leaves, action = tree.tree_.is_leaf, tree.tree_.action
    one, other = tree.tree_.children_left[inner], tree.tree_.children_right[inner]
    assert not (leaves[one] & leaves[other] & (action[one] == action[other])).any()
    cells = cells_of(full.ensemble_.thresholds())
    assert report.share_of_cells == pytest.approx((tree.predict(cells) != model.predict(cells)).mean())
    Z = np.random.default_rng(0).uniform(X.min(axis=0), X.max(axis=0), size=(100_000, 4))
    differs = (tree.predict(Z) != model.predict(Z)).mean()
    assert report.share_of_volume == pytest.approx(differs, abs=4 * np.sqrt(differs / len(Z)))
    assert "pruned from" in str(report)


def test_pruning_with_rows_everywhere_changes_nothing():
    X, y = IRIS
    ensemble = read_ensemble(RandomForestClassifier(3, max_depth=2, random_state=0).fit(X, y))
    tree = solve_born_again(ensemble, "leaves").tree
    pruned, report = prune(tree, ensemble, cells_of(ensemble.thresholds()))
    assert report.share_of_cells == report.share_of_volume == 0.0
    assert pruned.n_leaves == tree.n_leaves


def test_a_column_without_variation_only_has_to_be_inside():
    X, y = IRIS
    model = RandomForestClassifier(3, max_depth=2, random_state=0).fit(X, y)
    flat = X[X[:, 3] == 0.2]
    tree = BornAgainTree(model, prune=True).fit(pd.DataFrame(flat).to_numpy())
    assert 0.0 <= tree.pruning_.share_of_volume <= 1.0


# --- what it says of optimal trees ---


@pytest.mark.parametrize("bounds", [False, True])
def test_theorem_4_1_bounds_the_objective_of_the_optimal_tree(bounds):
    X, y = IRIS
    labels = np.array(["b", "a", "c"])[y]
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y))
    model = RandomForestClassifier(3, max_depth=2, random_state=0).fit(X, labels, sample_weight=weight)
    born_again = BornAgainTree(model, "leaves").fit()
    wrong = weight * (model.predict(X) != labels)
    guesses = born_again.as_guesses(X, lower_bounds=wrong if bounds else None)
    tree = OptimalTreeClassifier(regularization=0.01, guesses=guesses).fit(X, labels, sample_weight=weight)
    H = BornAgainTree(model, "leaves", prune=True).fit(X).get_n_leaves()
    stated = tree.solution_.guarantees
    assert stated["reference_tree_leaves"] == H
    assert stated["theorem_4_1"] == pytest.approx(wrong.sum() / weight.sum() + 0.01 * H)
    assert tree.solution_.objective <= stated["theorem_4_1"] + 1e-9


def test_theorem_4_1_says_when_it_does_not_apply():
    X, y = IRIS
    model = RandomForestClassifier(3, max_depth=2, random_state=0).fit(X, y)
    guesses = BornAgainTree(model).fit().as_guesses(X)
    for arguments, why in (
        ({"max_depth": 1}, "has depth"),
        ({"max_leaf_nodes": 2}, "leaves, and 2"),
        ({"min_samples_leaf": 30}, "fewer rows"),
        ({"feature_costs": {0: 1.0}}, "have a price"),
    ):
        tree = OptimalTreeClassifier(regularization=0.05, guesses=guesses, **arguments).fit(X, y)
        assert why in tree.solution_.guarantees["theorem_4_1"]
    with pytest.raises(InputError, match="actions of reference_tree"):
        OptimalTreeClassifier(guesses=guesses).fit(X[:100], y[:100])
