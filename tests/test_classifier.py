"""The classifiers on weights, costs, solvers and guesses."""

import datetime

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.estimator_checks import parametrize_with_checks

from policytree import (
    CostSensitiveTreeClassifier,
    DRPolicyTree,
    Guesses,
    InputError,
    OptimalTreeClassifier,
    PolicyTree,
    ReferenceGuesses,
    SearchWarning,
    Status,
)
from tests import oracles


@parametrize_with_checks(
    [
        OptimalTreeClassifier(max_depth=2, objective="balanced_accuracy"),
        OptimalTreeClassifier(max_depth=2, solver="duplication", solver_options={"factor": 20}, random_state=0),
        OptimalTreeClassifier(max_depth=2, guesses=ReferenceGuesses(n_estimators=5, max_depth=2), random_state=0),
        CostSensitiveTreeClassifier(max_depth=2),
    ]
)
def test_scikit_learn_estimator_checks(estimator, check):
    check(estimator)


@pytest.fixture
def data(rng):
    """Weighted, noisy labels of a rule on two of four features."""
    X = rng.integers(0, 12, (240, 4)).astype(float)
    y = np.where(((X[:, 0] > 5) & (X[:, 2] > 3)) ^ (rng.random(240) < 0.15), "yes", "no")
    return X, y, rng.lognormal(size=240)


CLASSIFIERS = [OptimalTreeClassifier(0.01, 2), CostSensitiveTreeClassifier(regularization=0.01, max_depth=2)]
both = pytest.mark.parametrize("classifier", CLASSIFIERS, ids=["optimal", "cost-sensitive"])


# --- weights ---


@both
@pytest.mark.parametrize("solver", ["direct", "duplication", "sampling", "auto"])
def test_scaled_weights_change_nothing(data, classifier, solver):
    X, y, w = data
    trees = [
        clone(classifier).set_params(solver=solver, random_state=1).fit(X, y, w * factor) for factor in (1.0, 7.3, 1e-5)
    ]
    for tree in trees[1:]:
        assert tree.objective_value_ == pytest.approx(trees[0].objective_value_, rel=1e-12)
        assert (tree.predict(X) == trees[0].predict(X)).all()


@both
@pytest.mark.parametrize("solver", ["direct", "duplication", "auto"])
def test_weight_zero_is_absence_and_weight_two_is_twice(data, classifier, solver, rng):
    X, y, _ = data
    weight = rng.integers(0, 3, len(y))
    rows = np.repeat(np.arange(len(y)), weight)
    by_weight = clone(classifier).set_params(solver=solver).fit(X, y, weight)
    by_rows = clone(classifier).set_params(solver=solver).fit(X[rows], y[rows])
    assert by_weight.objective_value_ == pytest.approx(by_rows.objective_value_, rel=1e-12)
    assert (by_weight.predict(X) == by_rows.predict(X)).all()
    assert by_weight.status_ is Status.OPTIMAL


def test_objective_is_the_weighted_error_plus_leaves(data):
    X, y, w = data
    tree = OptimalTreeClassifier(regularization=0.02, max_depth=2).fit(X, y, w)
    error = np.average(tree.predict(X) != y, weights=w)
    assert tree.objective_value_ == pytest.approx(error + 0.02 * tree.get_n_leaves(), rel=1e-12)
    assert tree.score(X, y, w) == pytest.approx(1 - error)


def test_balanced_accuracy_counts_classes_alike(rng):
    X = rng.normal(size=(300, 2))
    y = np.where(rng.random(300) < 0.08, 1, 0)
    X[:, 0] += 1.5 * y
    w = rng.uniform(0.5, 2, 300)
    balanced = OptimalTreeClassifier(0.01, 2, objective="balanced_accuracy").fit(X, y, w)
    by_hand = OptimalTreeClassifier(0.01, 2).fit(X, y, w * compute_sample_weight("balanced", y) / _factor(y, w))
    assert (balanced.predict(X) == by_hand.predict(X)).all()
    recalls = [np.average(balanced.predict(X)[y == k] == k, weights=w[y == k]) for k in (0, 1)]
    assert balanced.objective_value_ == pytest.approx(1 - np.mean(recalls) + 0.01 * balanced.get_n_leaves())
    assert OptimalTreeClassifier(0.01, 2).fit(X, y, w).predict(X).sum() < balanced.predict(X).sum()


def _factor(y, w):
    """How far the classes' mean weights lie apart: scikit-learn balances rows, not weights."""
    return np.array([w[y == k].mean() for k in (0, 1)])[y]


# --- labels ---


@both
@pytest.mark.parametrize(
    "labels",
    [
        ["b", "a", "c"],
        [3, 1, 2],
        [True, False],
        [2.0, 1.0],
        [datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)],
        ["one", 1, "two"],
        pd.Categorical(["low", "high"], categories=["low", "high"], ordered=True),
        pd.array(["x", "y"], dtype="string"),
    ],
    ids=lambda labels: type(labels[0]).__name__,
)
def test_labels_of_any_type(classifier, labels):
    """Two rows a label, told apart by one feature."""
    k = np.repeat(np.arange(len(labels)), 20)
    values = list(labels)
    y = pd.Series([values[i] for i in k], dtype=object if not hasattr(labels, "dtype") else labels.dtype)
    tree = clone(classifier).fit(k[:, None].astype(float), y)
    assert list(tree.predict(k[:, None].astype(float))) == [values[i] for i in k]
    assert set(tree.classes_) == set(values)
    assert tree.score(k[:, None].astype(float), y) == (1.0 if isinstance(tree, OptimalTreeClassifier) else 0.0)


def test_polars_columns(data):
    import polars as pl

    X, y, w = data
    frame = pl.DataFrame(X, schema=list("abcd"))
    tree = OptimalTreeClassifier(max_depth=2).fit(frame, pl.Series(y), pl.Series(w))
    assert tree.objective_value_ == OptimalTreeClassifier(max_depth=2).fit(X, y, w).objective_value_


@both
@pytest.mark.parametrize("bad", [["a", None], [1.0, np.nan], [1.0, np.inf]])
def test_missing_labels_are_refused(classifier, bad):
    with pytest.raises(InputError, match="y contains NaN or infinity"):
        clone(classifier).fit([[1.0], [2.0]], np.array(bad, dtype=object if None in bad else float))


def test_one_class(data):
    X, y, _ = data
    for objective in ("accuracy", "balanced_accuracy"):
        tree = OptimalTreeClassifier(objective=objective).fit(X, np.full(len(y), "same"))
        assert tree.get_n_leaves() == 1 and tree.objective_value_ == pytest.approx(0.01)


# --- costs ---


def test_costs_of_every_row_are_minimised(rng):
    X = rng.integers(0, 4, (60, 2)).astype(float)
    costs = pd.DataFrame(rng.integers(0, 9, (60, 3)).astype(float), columns=["a", "b", "c"])
    tree = CostSensitiveTreeClassifier(max_depth=2, regularization=0.05).fit(X, costs)
    best = oracles.best_objective_fast(oracles.code_columns(X), costs.to_numpy().astype(int), 3, 2)
    assert tree.objective_value_ == pytest.approx(best / 60)
    mean = costs.to_numpy()[np.arange(60), costs.columns.get_indexer(tree.predict(X))].mean()
    assert tree.score(X, costs) == pytest.approx(-mean)
    assert tree.score(X, costs[["c", "a", "b"]]) == pytest.approx(-mean)
    assert tree.predict_cost(X).shape == (60, 3)
    with pytest.raises(InputError, match="class c; add it"):
        tree.score(X, costs[["a", "b"]])


def test_a_cost_matrix_is_the_costs_of_its_rows(data):
    X, y, w = data
    matrix = pd.DataFrame([[0.0, 1.0], [5.0, 0.0]], index=["no", "yes"], columns=["no", "yes"])
    by_matrix = CostSensitiveTreeClassifier(matrix, max_depth=2).fit(X, y, w)
    by_array = CostSensitiveTreeClassifier(matrix.to_numpy(), max_depth=2).fit(X, y, w)
    by_pairs = CostSensitiveTreeClassifier({("no", "yes"): 1.0, ("yes", "no"): 5.0}, max_depth=2).fit(X, y, w)
    by_row = CostSensitiveTreeClassifier(max_depth=2).fit(X, matrix.loc[y].reset_index(drop=True), w)
    for other in (by_array, by_pairs, by_row):
        assert other.objective_value_ == by_matrix.objective_value_
        assert (other.predict(X) == by_matrix.predict(X)).all()
    plain = OptimalTreeClassifier(0.0, max_depth=2).fit(X, y, w)
    assert (by_matrix.predict(X) == "yes").sum() > (plain.predict(X) == "yes").sum()
    assert by_array.score(X[y == "no"], y[y == "no"]) > -1  # a class may be absent when scored


def test_unit_costs_are_the_error_rate(data):
    X, y, w = data
    costs = CostSensitiveTreeClassifier(regularization=0.01, max_depth=2).fit(X, y, w)
    labels = OptimalTreeClassifier(regularization=0.01, max_depth=2).fit(X, y, w)
    assert costs.objective_value_ == labels.objective_value_
    assert costs.score(X, y, w) == pytest.approx(labels.score(X, y, w) - 1)


def test_classes_that_are_never_true_can_be_predicted(rng):
    """Reject option: "ask" costs little whatever is true."""
    X = rng.normal(size=(200, 1))
    y = np.where(X[:, 0] + rng.normal(size=200) > 0, "yes", "no")
    costs = pd.DataFrame({"no": [0.0, 1.0], "yes": [1.0, 0.0], "ask": [0.3, 0.3]}, index=["no", "yes"])
    tree = CostSensitiveTreeClassifier(costs, max_depth=2).fit(X, y)
    assert set(tree.predict(X)) == {"no", "yes", "ask"}


@pytest.mark.parametrize(
    ("costs", "y", "match"),
    [
        (np.zeros((3, 3)), ["a", "b"], "square"),
        ({("a", "z"): 1.0}, ["a", "b"], "'?z'?, which does not occur"),
        ([[0.0, np.nan], [1.0, 0.0]], ["a", "b"], "missing or infinite"),
        (np.zeros((2, 2)), np.zeros((2, 2)), "leave the argument costs at None"),
        (None, np.array([[0.0, np.nan], [1.0, 2.0]]), "Column 1 of costs contains NaN"),
        (None, np.zeros((3, 2)), "costs has 3 rows, but X has 2"),
    ],
)
def test_bad_costs_are_named(costs, y, match):
    with pytest.raises(InputError, match=match):
        CostSensitiveTreeClassifier(costs).fit([[1.0], [2.0]], y)


# --- solvers, guesses and searches over parameters ---


def test_grid_search_and_pipeline(data):
    X, y, _ = data
    search = GridSearchCV(
        OptimalTreeClassifier(random_state=0),
        {"regularization": [0.2, 0.01], "solver": ["direct", "sampling"], "guesses": [None, "thresholds"]},
        cv=3,
    ).fit(X, y)
    assert search.best_score_ > 0.7
    assert search.best_params_["regularization"] == 0.01
    pipe = make_pipeline(StandardScaler(), OptimalTreeClassifier(0.01, 2)).fit(X, y)
    assert pipe.score(X, y) == OptimalTreeClassifier(0.01, 2).fit(X, y).score(X, y)
    costs = pd.DataFrame({"no": (y == "yes") * 3.0, "yes": (y == "no") * 1.0})
    by_cost = GridSearchCV(CostSensitiveTreeClassifier(), {"max_depth": [0, 2]}, cv=3).fit(X, costs)
    assert by_cost.best_params_ == {"max_depth": 2}
    by_matrix = CostSensitiveTreeClassifier({("yes", "no"): 3.0, ("no", "yes"): 1.0}, max_depth=2)
    assert cross_val_score(by_matrix, X, y, cv=3).mean() == pytest.approx(by_cost.best_score_, abs=0.3)


def test_guesses_are_named_and_kept(data):
    X, y, w = data
    reference = ReferenceGuesses(lower_bounds=True, n_estimators=20, max_depth=2)
    tree = OptimalTreeClassifier(0.005, 3, guesses=reference).fit(X, y, w)
    assert tree.status_ is Status.OPTIMAL_GIVEN_GUESSES
    said = tree.solution_.guarantees
    assert "thresholds" in said["guessed"] and "reference loss" in said["reference"]
    assert tree.guesses_.reference_losses.sum() / w.sum() == pytest.approx(said["reference_loss"])
    exact = OptimalTreeClassifier(0.005, 3).fit(X, y, w)
    assert exact.guesses_ is None
    assert exact.objective_value_ <= tree.objective_value_ <= exact.objective_value_ + 0.05


def test_given_thresholds_are_snapped_to_the_data(data):
    X, y, _ = data
    tree = OptimalTreeClassifier(0.0, 2, guesses=Guesses(thresholds=([5.1], [], [3.9, 100.0], None))).fit(X, y)
    assert tree.status_ is Status.OPTIMAL_GIVEN_GUESSES
    used = {(int(f), float(t)) for f, t in zip(tree.tree_.feature, tree.tree_.threshold, strict=True) if f in (0, 1, 2)}
    assert used <= {(0, 5.5), (2, 3.5)} and used


@pytest.mark.parametrize("guesses", ["all", ["thresholds", "depth"], ReferenceGuesses(n_estimators=10)])
def test_policy_trees_take_guesses_and_solvers(rng, guesses):
    X = rng.integers(0, 20, (300, 3)).astype(float)
    rewards = np.column_stack([np.zeros(300), np.sign(X[:, 0] - 9.5), np.sign(X[:, 1] - 14.5)])
    rewards += 0.5 * rng.normal(size=(300, 3))
    exact = PolicyTree(2).fit(X, rewards)
    for solver in ("direct", "duplication", "sampling"):
        tree = PolicyTree(2, guesses=guesses, solver=solver, random_state=3).fit(X, rewards)
        assert tree.objective_value_ <= exact.objective_value_ + 1e-12
        assert tree.objective_value_ >= 0.8 * exact.objective_value_
        assert tree.objective_bound_ >= tree.objective_value_
        assert tree.score(X, rewards) == pytest.approx(tree.objective_value_)


def test_dr_policy_tree_passes_guesses_and_solvers_on(rng):
    n = 400
    X = rng.normal(size=(n, 2))
    T = rng.integers(0, 2, n)
    Y = T * np.sign(X[:, 0]) + rng.normal(size=n)
    tree = DRPolicyTree(
        max_depth=1, solver="sampling", solver_options={"n_draws": 3}, guesses="thresholds", random_state=0
    ).fit(Y, T, X=X)
    assert tree.status_ is Status.HEURISTIC
    assert tree.solution_.counters["draws"] == 3
    assert tree.guesses_.thresholds is not None
    assert tree.get_depth() == 1


def test_sampling_follows_the_seed(data):
    X, y, w = data
    options = {"amplification": 0.15}
    fits = [
        OptimalTreeClassifier(0.0, 3, solver="sampling", solver_options=options, random_state=seed).fit(X, y, w)
        for seed in (0, 0, 1, 2)
    ]
    assert fits[0].objective_value_ == fits[1].objective_value_
    assert len({fit.objective_value_ for fit in fits}) > 1


def test_auto_says_why(data):
    X, y, w = data
    tree = OptimalTreeClassifier(solver="auto").fit(X, y, w)
    assert tree.status_ is Status.OPTIMAL and "direct" in tree.solution_.guarantees["reason"]


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"objective": "auc"}, "objective"),
        ({"solver": "gosdt"}, "solver='gosdt'"),
        ({"solver_options": {"factor": 3}}, "'factor'"),
        ({"solver_options": 3}, "mapping"),
        ({"guesses": "all of it"}, "guesses="),
        ({"guesses": Guesses(thresholds=([1.0],))}, "one entry per feature"),
        ({"guesses": Guesses(reference_losses=np.zeros(3))}, "reference_losses must be 240"),
        ({"memory_limit": -1}, "memory_limit"),
        ({"solver": "duplication", "solver_options": {"factor": 0}}, "factor"),
    ],
)
def test_bad_arguments_are_named(data, arguments, match):
    X, y, _ = data
    with pytest.raises(InputError, match=match):
        OptimalTreeClassifier(**arguments).fit(X, y)


def test_a_poor_reference_is_a_warning(rng):
    X = rng.normal(size=(200, 2))
    y = (rng.random(200) < 0.03).astype(int)
    with pytest.warns(SearchWarning, match="reference loss"):
        OptimalTreeClassifier(guesses=ReferenceGuesses(n_estimators=3)).fit(X, y)


# Bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "y, classes",
    [
        ([1, "a"] * 10, {1, "a"}),
        ([True, "True"] * 10, {True, "True"}),
        (pd.array([0, 1] * 10, dtype="Int64"), {0, 1}),
        (pd.array([False, True] * 10, dtype="boolean"), {False, True}),
    ],
)
def test_labels_keep_their_types(y, classes):
    X = np.arange(20.0)[:, None] % 2
    tree = OptimalTreeClassifier().fit(X, y)
    assert {type(c) for c in tree.classes_.tolist()} == {type(c) for c in classes}
    assert set(tree.classes_.tolist()) == classes
    assert tree.predict(X).tolist() == list(y)
    assert tree.score(X, y) == 1.0


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"guesses": 3}, "guesses=3 is not known"),
        ({"guesses": ReferenceGuesses}, "is not known; use 'thresholds'"),
        ({"guesses": Guesses(max_depth=1.5)}, "max_depth of Guesses must be an integer"),
        ({"guesses": Guesses(thresholds=5)}, "thresholds must be a list with one entry per feature"),
        ({"guesses": Guesses(thresholds=[[np.nan]])}, "thresholds of 'x0' must be numbers, infinity"),
        ({"guesses": Guesses(reference_losses="a")}, "reference_losses holds values that are not numbers"),
        ({"random_state": "a"}, "random_state must be an integer from 0"),
        ({"random_state": -1}, "random_state must be an integer from 0"),
        ({"random_state": 2**32, "guesses": "all"}, "random_state must be an integer from 0"),
        ({"solver": "sampling", "solver_options": {"random_state": "a"}}, "random_state must be an integer >= 0"),
        ({"solver": "sampling", "solver_options": {"n_draws": 10**9}}, "n_draws must be an integer from 1 to 100,000"),
        ({"solver": "sampling", "solver_options": {"solve": "direct"}}, "solve must be a solver"),
        ({"min_samples_leaf": 10**30}, "min_samples_leaf .* asks for more rows"),
    ],
)
def test_arguments_are_refused_in_one_sentence(arguments, message):
    with pytest.raises(InputError, match=message):
        OptimalTreeClassifier(**arguments).fit([[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1])


@pytest.mark.parametrize("largest", [1e308, 1e-308, 5e-324])
@pytest.mark.parametrize("solver", ["direct", "duplication", "sampling"])
def test_weights_beyond_arithmetic_are_refused(largest, solver):
    tree = OptimalTreeClassifier(solver=solver)
    with pytest.raises(InputError, match="sample_weight has a largest value of"):
        tree.fit([[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1], [largest] * 4)


@pytest.mark.parametrize("scale", [1e-199, 1e199])
def test_extreme_scales_of_weights_change_nothing(rng, scale):
    X, weight = rng.normal(size=(60, 2)), rng.uniform(0.1, 1.0, size=60)
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    for objective in ("accuracy", "balanced_accuracy"):
        one, other = (OptimalTreeClassifier(0.02, 2, objective=objective).fit(X, y, weight * s) for s in (1.0, scale))
        assert other.tree_.threshold.tolist() == pytest.approx(one.tree_.threshold.tolist(), nan_ok=True)
        assert other.objective_value_ == pytest.approx(one.objective_value_, rel=1e-9)


@pytest.mark.parametrize("weight, said", [([1, 2], "has 2 rows"), ([-1] * 4, "negative"), ([0] * 4, "zero in all")])
def test_scores_check_their_weights(weight, said):
    X, y = [[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1]
    for tree in (OptimalTreeClassifier().fit(X, y), CostSensitiveTreeClassifier().fit(X, y)):
        with pytest.raises(InputError, match=said):
            tree.score(X, y, sample_weight=weight)


def test_tables_are_refused_by_column():
    X, y = pd.DataFrame({"a": [1.0, 2.0], "c": ["u", "v"]}), [0, 1]
    with pytest.raises(InputError, match="Column 'd' of X holds lists"):
        OptimalTreeClassifier().fit(X.assign(d=[[1], [2]]), y)
    with pytest.raises(InputError, match="more than one column 'a'"):
        OptimalTreeClassifier().fit(pd.concat([X, X], axis=1), y)
    tree = OptimalTreeClassifier().fit(X, y)
    with pytest.raises(InputError, match="Column 'c' of X held text at fit and holds numbers now"):
        tree.predict(X.assign(c=1.0))
    assert len(tree.predict(X.assign(c=np.nan))) == 2  # no value is no text, either
