"""Inputs that the classifiers refuse, each in one sentence, and inputs that they take as they are."""

import numpy as np
import pandas as pd
import pytest

from policytree import CostSensitiveTreeClassifier, OptimalTreeClassifier
from policytree.exceptions import InputError
from policytree.guesses import Guesses, ReferenceGuesses


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"objective": "kappa"}, "objective"),
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
def test_bad_arguments_are_named(labelled_rows, arguments, match):
    X, y, _ = labelled_rows
    with pytest.raises(InputError, match=match):
        OptimalTreeClassifier(**arguments).fit(X, y)


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
        ({"min_samples_leaf": 10**30}, "min_samples_leaf asks for more rows"),
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
        one, other = (OptimalTreeClassifier(2, 0.02, objective=objective).fit(X, y, weight * s) for s in (1.0, scale))
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
