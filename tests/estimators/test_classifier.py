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

from policytree import CostSensitiveTreeClassifier, DRPolicyTree, OptimalTreeClassifier, PolicyTree
from policytree.exceptions import InputError, SearchWarning
from policytree.guesses import Guesses, ReferenceGuesses
from policytree.problem.types import Status


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


CLASSIFIERS = [OptimalTreeClassifier(2, 0.01), CostSensitiveTreeClassifier(regularization=0.01, max_depth=2)]
both = pytest.mark.parametrize("classifier", CLASSIFIERS, ids=["optimal", "cost-sensitive"])


# --- weights ---


@both
@pytest.mark.parametrize("solver", ["direct", "duplication", "sampling", "auto"])
def test_scaled_weights_change_nothing(labelled_rows, classifier, solver):
    X, y, w = labelled_rows
    trees = [
        clone(classifier).set_params(solver=solver, random_state=1).fit(X, y, w * factor) for factor in (1.0, 7.3, 1e-5)
    ]
    for tree in trees[1:]:
        assert tree.objective_value_ == pytest.approx(trees[0].objective_value_, rel=1e-12)
        assert (tree.predict(X) == trees[0].predict(X)).all()


@both
@pytest.mark.parametrize("solver", ["direct", "duplication", "auto"])
def test_weight_zero_is_absence_and_weight_two_is_twice(labelled_rows, classifier, solver, rng):
    X, y, _ = labelled_rows
    weight = rng.integers(0, 3, len(y))
    rows = np.repeat(np.arange(len(y)), weight)
    by_weight = clone(classifier).set_params(solver=solver).fit(X, y, weight)
    by_rows = clone(classifier).set_params(solver=solver).fit(X[rows], y[rows])
    assert by_weight.objective_value_ == pytest.approx(by_rows.objective_value_, rel=1e-12)
    assert (by_weight.predict(X) == by_rows.predict(X)).all()
    assert by_weight.status_ is Status.OPTIMAL


def test_objective_is_the_weighted_error_plus_leaves(labelled_rows):
    X, y, w = labelled_rows
    tree = OptimalTreeClassifier(regularization=0.02, max_depth=2).fit(X, y, w)
    error = np.average(tree.predict(X) != y, weights=w)
    assert tree.objective_value_ == pytest.approx(error + 0.02 * tree.get_n_leaves(), rel=1e-12)
    assert tree.score(X, y, w) == pytest.approx(1 - error)


def test_balanced_accuracy_counts_classes_alike(rng):
    X = rng.normal(size=(300, 2))
    y = np.where(rng.random(300) < 0.08, 1, 0)
    X[:, 0] += 1.5 * y
    w = rng.uniform(0.5, 2, 300)
    balanced = OptimalTreeClassifier(2, 0.01, objective="balanced_accuracy").fit(X, y, w)
    by_hand = OptimalTreeClassifier(2, 0.01).fit(X, y, w * compute_sample_weight("balanced", y) / _factor(y, w))
    assert (balanced.predict(X) == by_hand.predict(X)).all()
    recalls = [np.average(balanced.predict(X)[y == k] == k, weights=w[y == k]) for k in (0, 1)]
    assert balanced.objective_value_ == pytest.approx(1 - np.mean(recalls) + 0.01 * balanced.get_n_leaves())
    assert OptimalTreeClassifier(2, 0.01).fit(X, y, w).predict(X).sum() < balanced.predict(X).sum()


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


def test_polars_columns(labelled_rows):
    import polars as pl

    X, y, w = labelled_rows
    frame = pl.DataFrame(X, schema=list("abcd"))
    tree = OptimalTreeClassifier(max_depth=2).fit(frame, pl.Series(y), pl.Series(w))
    assert tree.objective_value_ == OptimalTreeClassifier(max_depth=2).fit(X, y, w).objective_value_


@both
@pytest.mark.parametrize("bad", [["a", None], [1.0, np.nan], [1.0, np.inf]])
def test_missing_labels_are_refused(classifier, bad):
    with pytest.raises(InputError, match="y contains NaN or infinity"):
        clone(classifier).fit([[1.0], [2.0]], np.array(bad, dtype=object if None in bad else float))


def test_one_class(labelled_rows):
    X, y, _ = labelled_rows
    for objective in ("accuracy", "balanced_accuracy"):
        tree = OptimalTreeClassifier(objective=objective).fit(X, np.full(len(y), "same"))
        assert tree.get_n_leaves() == 1 and tree.objective_value_ == pytest.approx(0.01)


# --- solvers, guesses and searches over parameters ---


def test_grid_search_and_pipeline(labelled_rows):
    X, y, _ = labelled_rows
    search = GridSearchCV(
        OptimalTreeClassifier(max_depth=3, random_state=0),
        {"regularization": [0.2, 0.01], "solver": ["direct", "sampling"], "guesses": [None, "thresholds"]},
        cv=3,
    ).fit(X, y)
    assert search.best_score_ > 0.7
    assert search.best_params_["regularization"] == 0.01
    pipe = make_pipeline(StandardScaler(), OptimalTreeClassifier(2, 0.01)).fit(X, y)
    assert pipe.score(X, y) == OptimalTreeClassifier(2, 0.01).fit(X, y).score(X, y)
    costs = pd.DataFrame({"no": (y == "yes") * 3.0, "yes": (y == "no") * 1.0})
    by_cost = GridSearchCV(CostSensitiveTreeClassifier(), {"max_depth": [0, 2]}, cv=3).fit(X, costs)
    assert by_cost.best_params_ == {"max_depth": 2}
    by_matrix = CostSensitiveTreeClassifier({("yes", "no"): 3.0, ("no", "yes"): 1.0}, max_depth=2)
    assert cross_val_score(by_matrix, X, y, cv=3).mean() == pytest.approx(by_cost.best_score_, abs=0.3)


def test_guesses_are_named_and_kept(labelled_rows):
    X, y, w = labelled_rows
    reference = ReferenceGuesses(lower_bounds=True, n_estimators=20, max_depth=2)
    tree = OptimalTreeClassifier(3, 0.005, guesses=reference).fit(X, y, w)
    assert tree.status_ is Status.OPTIMAL_GIVEN_GUESSES
    said = tree.solution_.guarantees
    assert "thresholds" in said["guessed"] and "reference loss" in said["reference"]
    assert tree.guesses_.reference_losses.sum() / w.sum() == pytest.approx(said["reference_loss"])
    exact = OptimalTreeClassifier(3, 0.005).fit(X, y, w)
    assert exact.guesses_ is None
    assert exact.objective_value_ <= tree.objective_value_ <= exact.objective_value_ + 0.05


def test_given_thresholds_are_snapped_to_the_data(labelled_rows):
    X, y, _ = labelled_rows
    tree = OptimalTreeClassifier(2, 0.0, guesses=Guesses(thresholds=([5.1], [], [3.9, 100.0], None))).fit(X, y)
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


def test_sampling_follows_the_seed(labelled_rows):
    X, y, w = labelled_rows
    options = {"amplification": 0.15}
    fits = [
        OptimalTreeClassifier(3, 0.0, solver="sampling", solver_options=options, random_state=seed).fit(X, y, w)
        for seed in (0, 0, 1, 2)
    ]
    assert fits[0].objective_value_ == fits[1].objective_value_
    assert len({fit.objective_value_ for fit in fits}) > 1


def test_without_arguments_there_is_a_price_and_a_time_limit_but_no_depth_limit(rng):
    X = rng.integers(0, 2, (400, 7)).astype(float)
    y = X[:, :5].sum(axis=1) % 2
    tree = OptimalTreeClassifier()
    assert (tree.regularization, tree.max_depth, tree.time_limit) == (0.01, None, 60.0)
    tree.fit(X, y)
    assert tree.status_ is Status.OPTIMAL and tree.get_depth() == 5
    assert tree.objective_value_ == pytest.approx(0.01 * 32)
    noise = rng.standard_normal((600, 12))
    with pytest.warns(SearchWarning, match="gap"):
        tree.set_params(regularization=0.002, time_limit=0.5).fit(noise, rng.integers(0, 2, 600))
    assert tree.status_ is Status.TIME_LIMIT and tree.optimality_gap_ > 0


def test_auto_says_why(labelled_rows):
    X, y, w = labelled_rows
    tree = OptimalTreeClassifier(max_depth=3, solver="auto").fit(X, y, w)
    assert tree.status_ is Status.OPTIMAL and "direct" in tree.solution_.guarantees["reason"]


def test_a_poor_reference_is_a_warning(rng):
    X = rng.normal(size=(200, 2))
    y = (rng.random(200) < 0.03).astype(int)
    with pytest.warns(SearchWarning, match="reference loss"):
        OptimalTreeClassifier(guesses=ReferenceGuesses(n_estimators=3)).fit(X, y)
