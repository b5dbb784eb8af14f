"""Leaves, costs of tests, columns to split on and to begin with, as the estimators take them."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from policytree import CostSensitiveTreeClassifier, DRPolicyTree, OptimalTreeClassifier, PolicyTree, tree_path
from policytree.exceptions import InputError
from policytree.problem.types import Problem, Status
from policytree.serialization import from_json
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.exact.estimate import estimated_seconds

ESTIMATORS = {
    "policy": lambda **options: PolicyTree(3, **options),
    "minimised policy": lambda **options: PolicyTree(3, direction="minimize", **options),
    "labels": lambda **options: OptimalTreeClassifier(regularization=0.0, **({"max_depth": 3} | options)),
    "costs": lambda **options: CostSensitiveTreeClassifier(**options),
}
each_estimator = pytest.mark.parametrize("name", ESTIMATORS)


@pytest.fixture
def data(rng):
    """A number that matters much, one that matters less, a text that matters, a useless number."""
    n = 300
    X = pd.DataFrame(
        {
            "age": rng.integers(20, 60, n).astype(float),
            "scan": rng.integers(0, 12, n).astype(float),
            "region": rng.choice(["north", "south", "west"], n),
            "noise": rng.integers(0, 9, n).astype(float),
        }
    )
    good = (X["age"] > 40) ^ ((X["scan"] > 7) & (X["region"] == "south")) ^ (rng.random(n) < 0.1)
    return X, np.where(good, "yes", "no"), rng.integers(1, 4, n).astype(float)


def target(name, y):
    """Rewards (n, 2), labels or costs, whichever the estimator takes."""
    if name == "labels":
        return y
    loss = pd.DataFrame({"no": y == "yes", "yes": y == "no"}).astype(float) * 2.0
    return -loss if name == "policy" else loss


def mean_loss(name, tree, X, y, w):
    wrong = tree.predict(X) != y
    return np.average(wrong * (1.0 if name == "labels" else 2.0), weights=w)


def as_loss(name, value):
    return -value if name == "policy" else value


def test_cost(tree, X, costs, w):
    """Return the weighted mean cost of tests per person, walking the tree by its rules."""
    t, total = tree.tree_, np.zeros(len(X))
    for i in range(len(X)):
        node = 0
        while not t.is_leaf[node]:
            feature = t.features[t.feature[node]]
            total[i] += costs.get(feature.name, 0.0)
            value = X[feature.name].iloc[i]
            left = (
                value == feature.categories[int(t.threshold[node])]
                if feature.categories
                else value <= t.threshold[node]
            )
            node = t.children_left[node] if left else t.children_right[node]
    return np.average(total, weights=w)


test_cost.__test__ = False


@each_estimator
def test_the_objective_is_loss_and_leaves_and_tests(name, data):
    X, y, w = data
    costs = {"scan": 0.04, "region": 0.01}
    tree = ESTIMATORS[name](feature_costs=costs, max_leaf_nodes=4).set_params(regularization=0.005)
    tree.fit(X, target(name, y), sample_weight=w)
    assert tree.status_ is Status.OPTIMAL and tree.get_n_leaves() <= 4
    paid = test_cost(tree, X, costs, w)
    assert tree.expected_cost_ == pytest.approx(paid, rel=1e-12) and paid > 0
    expected = mean_loss(name, tree, X, y, w) + 0.005 * tree.get_n_leaves() + paid
    assert as_loss(name, tree.objective_value_) == pytest.approx(expected, rel=1e-12)


@each_estimator
def test_every_form_of_costs_and_columns_means_the_same(name, data):
    X, y, w = data
    by_name = ESTIMATORS[name](
        feature_costs={"age": 0.01, "scan": 0.02}, split_features=["age", "scan", "region"], root_feature="scan"
    ).fit(X, target(name, y), sample_weight=w)
    assert by_name.tree_.feature[0] == 1
    for costs in ([0.01, 0.02, 0, 0], np.array([0.01, 0.02, 0, 0]), {0: 0.01, "scan": 0.02},
                  pd.Series({"age": 0.01, "scan": 0.02}), pd.Series([0.01, 0.02, 0.0, 0.0])):  # fmt: skip
        for splits, root in (([0, 1, 2], 1), (np.array([0, 1, 2]), ["scan"]), (pd.Index(["region", "scan", 0]), [1])):
            tree = ESTIMATORS[name](feature_costs=costs, split_features=splits, root_feature=root)
            tree.fit(X, target(name, y), sample_weight=w)
            assert tree.export_text() == by_name.export_text()
            assert tree.objective_value_ == by_name.objective_value_


@each_estimator
def test_what_is_unset_changes_nothing(name, data):
    X, y, w = data
    plain = ESTIMATORS[name]().fit(X, target(name, y), sample_weight=w)
    free = ESTIMATORS[name](
        max_leaf_nodes=8, feature_costs={"age": 0.0}, split_features=list(X), root_feature=list(X)
    ).fit(X, target(name, y), sample_weight=w)
    assert plain.objective_value_ == free.objective_value_
    assert plain.expected_cost_ == free.expected_cost_ == 0.0


def test_columns_that_may_not_be_split_on_stay_in_the_table(data):
    X, y, _ = data
    tree = OptimalTreeClassifier(3, 0.0, split_features=["scan", "region"]).fit(X, y)
    assert set(tree.get_used_features()) <= {"scan", "region"}
    assert tree.status_ is Status.OPTIMAL
    small = OptimalTreeClassifier(3, 0.0).fit(X[["scan", "region"]], y)
    assert tree.objective_value_ == small.objective_value_
    assert (tree.predict(X) == small.predict(X[["scan", "region"]])).all()
    with pytest.raises(ValueError, match="region"):
        tree.predict(X[["scan", "age"]])
    read = from_json(tree.to_json())
    assert [f.name for f in read.features] == list(X)
    np.testing.assert_array_equal(read.apply(tree.encoder_.encode(X)), tree.apply(X))


def test_thinned_columns_that_are_left_out_do_not_matter(data, rng):
    X, y, _ = data
    X = X.assign(noise=rng.normal(size=len(X)))
    assert OptimalTreeClassifier(max_depth=3, max_bins=50).fit(X, y).status_ is Status.OPTIMAL_GIVEN_GUESSES
    tree = OptimalTreeClassifier(max_depth=3, max_bins=50, split_features=["age", "scan", "region"]).fit(X, y)
    assert tree.status_ is Status.OPTIMAL


def test_root_features(data):
    X, y, _ = data
    best = OptimalTreeClassifier(3, 0.0).fit(X, y)
    values = []
    for name in X:
        tree = OptimalTreeClassifier(3, 0.0, root_feature=name).fit(X, y)
        assert tree.tree_.features[tree.tree_.feature[0]].name == name
        assert tree.optimality_gap_ == 0
        values.append(tree.objective_value_)
    assert min(values) == best.objective_value_ < max(values)
    assert (
        OptimalTreeClassifier(regularization=1.0, root_feature="noise").fit(X, y).get_n_leaves() == 1
    )  # no split is no first one


def test_dear_tests_are_avoided_and_few_leaves_are_kept(data):
    X, y, _ = data
    leaves = [
        OptimalTreeClassifier(regularization=0.0, max_leaf_nodes=h, max_depth=None).fit(X, y).get_n_leaves()
        for h in (1, 2, 3, 5)
    ]
    assert leaves == [1, 2, 3, 5]
    used = [
        set(OptimalTreeClassifier(3, 0.001, feature_costs={"scan": c}).fit(X, y).get_used_features()) for c in (0, 0.5)
    ]
    assert "scan" in used[0] and "scan" not in used[1]


def test_names_of_arrays_and_of_integer_columns(data):
    X, y, _ = data
    numbers = X[["age", "scan", "noise"]].to_numpy()
    tree = OptimalTreeClassifier(3, 0.0, split_features=["x0"], feature_costs={0: 0.01}).fit(numbers, y)
    assert tree.get_used_features() == ["x0"] and tree.expected_cost_ > 0
    frame = pd.DataFrame(numbers, columns=[1, 0, 2])  # names, though they are integers, come before positions
    assert OptimalTreeClassifier(3, 0.0, split_features=[1]).fit(frame, y).tree_.feature[0] == 0


@pytest.mark.parametrize("solver", ["duplication", "sampling", "auto"])
def test_other_solvers_keep_the_scope(solver, data):
    X, y, w = data
    scope = {"max_leaf_nodes": 4, "root_feature": "scan", "split_features": ["age", "scan"]}
    scope["feature_costs"] = {"age": 0.02, "scan": 0.01}
    exact = OptimalTreeClassifier(3, 0.0, **scope).fit(X, y, w)
    tree = OptimalTreeClassifier(3, 0.0, solver=solver, random_state=0, **scope).fit(X, y, w)
    assert tree.get_n_leaves() <= 4 and tree.tree_.features[tree.tree_.feature[0]].name == "scan"
    assert set(tree.get_used_features()) <= {"age", "scan"}
    assert tree.objective_bound_ <= exact.objective_value_ + 1e-12 <= tree.objective_value_ + 2e-12
    paid = test_cost(tree, X, scope["feature_costs"], w)
    assert tree.objective_value_ == pytest.approx(mean_loss("labels", tree, X, y, w) + paid, rel=1e-12)
    if solver != "sampling":  # whole weights up to the factor are exact as counts
        assert tree.objective_value_ == pytest.approx(exact.objective_value_, rel=1e-12)


@pytest.mark.parametrize("guesses", ["thresholds", "depth", "lower_bounds", "all"])
def test_guesses_keep_the_scope(guesses, data):
    X, y, w = data
    scope = {"max_leaf_nodes": 5, "root_feature": ["scan", "region"], "feature_costs": {"age": 0.02, "noise": 0.1}}
    exact = OptimalTreeClassifier(3, 0.002, **scope).fit(X, y, w)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a gap that guessed lower bounds leave
        tree = OptimalTreeClassifier(3, 0.002, guesses=guesses, random_state=0, **scope).fit(X, y, w)
    assert tree.get_n_leaves() <= 5 and tree.tree_.feature[0] in (1, 2)
    assert tree.objective_value_ >= exact.objective_value_ - 1e-12
    paid = test_cost(tree, X, scope["feature_costs"], w)
    expected = mean_loss("labels", tree, X, y, w) + 0.002 * tree.get_n_leaves() + paid
    assert tree.objective_value_ == pytest.approx(expected, rel=1e-12)


def test_path_ends_at_the_largest_number_of_leaves_and_its_loss_holds_test_costs(data):
    X, y, w = data
    scope = {"max_leaf_nodes": 5, "feature_costs": {"age": 0.01, "scan": 0.02, "noise": 0.01}, "root_feature": "age"}
    path = tree_path(OptimalTreeClassifier(max_depth=4, **scope), X, y, sample_weight=w)
    assert path.proved and len(path) > 2 and path.n_leaves[-1] <= 5
    for tree, value in zip(path.estimators, path.values, strict=True):
        assert value == pytest.approx(mean_loss("labels", tree, X, y, w) + tree.expected_cost_, rel=1e-12)
        again = clone(tree).fit(X, y, w)
        assert again.objective_value_ == pytest.approx(tree.objective_value_, rel=1e-12)
    for regularization in (0.001, 0.004, 0.015, 0.05):
        best = OptimalTreeClassifier(4, regularization, **scope).fit(X, y, w).objective_value_
        covering = next(k for k in range(len(path)) if path.low[k] <= regularization <= path.high[k])
        assert best == pytest.approx(path.values[covering] + regularization * path.n_leaves[covering], rel=1e-12)


def test_grid_search_over_leaves(data):
    X, y, _ = data
    search = GridSearchCV(OptimalTreeClassifier(3, 0.0), {"max_leaf_nodes": [1, 2, 5, None]}, cv=3).fit(X, y)
    assert search.best_params_["max_leaf_nodes"] in (2, 5, None)
    copy = clone(search.best_estimator_.set_params(feature_costs={"age": 1.0}, root_feature=["age"]))
    assert copy.get_params()["feature_costs"] == {"age": 1.0} and copy.root_feature == ["age"]


def test_a_policy_from_outcomes_keeps_the_scope(rng):
    X = pd.DataFrame(rng.integers(0, 10, (200, 3)).astype(float), columns=["age", "scan", "home"])
    T = rng.integers(0, 2, 200)
    Y = np.where(X["age"] > 4, 2.0, -2.0) * T + np.where(X["scan"] > 4, 1.0, -1.0) * T + rng.normal(size=200)
    scope = {"max_depth": 2, "max_leaf_nodes": 3, "feature_costs": {"scan": 0.1}, "split_features": ["age", "scan"]}
    anywhere = {"min_samples_per_treatment": 0}
    model = DRPolicyTree(cv=2, random_state=0, root_feature="age", **scope, **anywhere).fit(Y, T, X=X, propensity=0.5)
    assert model.get_n_leaves() <= 3 and model.tree_.feature[0] == 0
    again = PolicyTree(root_feature="age", **scope).fit(X, model.rewards_)
    assert again.objective_value_ == model.objective_value_ and again.expected_cost_ == model.expected_cost_
    with pytest.raises(InputError, match="'weight'"):  # before any nuisance model
        DRPolicyTree("no model", root_feature="weight").fit(Y, T, X=X)


BAD = {
    "leaves of zero": ({"max_leaf_nodes": 0}, r"max_leaf_nodes must be an integer >= 1 or None; got 0"),
    "leaves of truth": ({"max_leaf_nodes": True}, "max_leaf_nodes"),
    "leaves in part": ({"max_leaf_nodes": 2.5}, "max_leaf_nodes"),
    "cost of an unknown": ({"feature_costs": {"weight": 1}}, r"feature_costs names the column 'weight'.*age, scan"),
    "negative cost": ({"feature_costs": {"age": -1}}, "column 'age' costs -1; give a finite number >= 0"),
    "no cost": ({"feature_costs": {"age": np.nan}}, "column 'age' costs nan"),
    "infinite cost": ({"feature_costs": [0, np.inf, 0, 0]}, "column 'scan' costs inf"),
    "true cost": ({"feature_costs": {"age": True}}, "column 'age' costs True"),
    "true costs": ({"feature_costs": np.ones(4, dtype=bool)}, "column 'age' costs"),
    "cost in words": ({"feature_costs": {"age": "dear"}}, "costs 'dear'"),
    "too few costs": ({"feature_costs": [1.0, 2.0]}, "or 4 numbers, one a column of X; got 2"),
    "one cost": ({"feature_costs": 0.5}, "or 4 numbers, one a column of X; got 0.5"),
    "one cost in an array": ({"feature_costs": np.array(0.5)}, "or 4 numbers, one a column of X"),
    "split on a number in an array": ({"split_features": np.array(1)}, "split_features names the column"),
    "cost twice": ({"feature_costs": {"age": 1, 0: 2}}, "names a column twice"),
    "split on an unknown": ({"split_features": ["age", "weight"]}, "split_features names the column 'weight'"),
    "split on nothing": ({"split_features": []}, "split_features names no column"),
    "split beyond": ({"split_features": [4]}, "split_features names the column 4.*positions from 0 to 3"),
    "split on truth": ({"split_features": [True]}, "split_features names the column True"),
    "begin before": ({"root_feature": -1}, "root_feature names the column -1"),
    "begin with a fraction": ({"root_feature": 1.0}, "root_feature names the column 1.0"),
    "begin elsewhere": ({"root_feature": "scan", "split_features": ["age"]}, "'scan', which split_features leaves out"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("name", ["policy", "labels"])
def test_what_cannot_be_used_is_named(name, case, data):
    X, y, _ = data
    options, words = BAD[case]
    with pytest.raises(InputError, match=words):
        ESTIMATORS[name](**options).fit(X, target(name, y))


def test_estimates_know_leaves_and_first_features(rng):
    data = bin_matrix(rng.integers(0, 20, (500, 5)).astype(float))
    losses = rng.normal(size=(500, 2))

    def seconds(**changes):
        return estimated_seconds(Problem(data, losses, **changes))

    assert seconds(max_depth=None, max_leaf_nodes=3) == seconds(max_depth=2)
    assert seconds(max_depth=4, max_leaf_nodes=4) == seconds(max_depth=3)
    assert seconds(max_depth=3, max_leaf_nodes=8) == seconds(max_depth=3)
    assert seconds(max_depth=3, root_features=(2,)) == pytest.approx(seconds(max_depth=3) / 5)
    assert 0 <= seconds(max_depth=3, root_features=()) < 1e-6
