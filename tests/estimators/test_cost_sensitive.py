"""Trees where mistakes differ in what they cost."""

import numpy as np
import pandas as pd
import pytest

from policytree import CostSensitiveTreeClassifier, OptimalTreeClassifier
from policytree.exceptions import InputError
from tests.support import oracles


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


def test_a_cost_matrix_is_the_costs_of_its_rows(labelled_rows):
    X, y, w = labelled_rows
    matrix = pd.DataFrame([[0.0, 1.0], [5.0, 0.0]], index=["no", "yes"], columns=["no", "yes"])
    by_matrix = CostSensitiveTreeClassifier(matrix, max_depth=2).fit(X, y, w)
    by_array = CostSensitiveTreeClassifier(matrix.to_numpy(), max_depth=2).fit(X, y, w)
    by_pairs = CostSensitiveTreeClassifier({("no", "yes"): 1.0, ("yes", "no"): 5.0}, max_depth=2).fit(X, y, w)
    by_row = CostSensitiveTreeClassifier(max_depth=2).fit(X, matrix.loc[y].reset_index(drop=True), w)
    for other in (by_array, by_pairs, by_row):
        assert other.objective_value_ == by_matrix.objective_value_
        assert (other.predict(X) == by_matrix.predict(X)).all()
    plain = OptimalTreeClassifier(regularization=0.0, max_depth=2).fit(X, y, w)
    assert (by_matrix.predict(X) == "yes").sum() > (plain.predict(X) == "yes").sum()
    assert by_array.score(X[y == "no"], y[y == "no"]) > -1  # a class may be absent when scored


def test_unit_costs_are_the_error_rate(labelled_rows):
    X, y, w = labelled_rows
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
