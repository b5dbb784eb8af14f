"""At predict, what no training row had is said: which column, how many rows, and where they go."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from policytree import OptimalTreeClassifier, PolicyTree
from policytree.exceptions import InputError, UnseenValueWarning
from policytree.serialization import from_dict, from_json, to_dict, to_json
from tests.cli.running import run


@pytest.fixture
def towns(rng):
    """Drug for the old in Oslo and for everybody in Rome; the tree asks about town and age."""
    X = pd.DataFrame({"town": rng.choice(["Oslo", "Rome", "Kyiv"], size=300), "age": rng.integers(20, 80, size=300)})
    X["height"] = rng.normal(size=300)
    better = (X["town"] == "Rome") | ((X["town"] == "Oslo") & (X["age"] > 50))
    return X, pd.DataFrame({"drug": np.where(better, 1.0, -1.0), "none": 0.0})


@pytest.fixture
def tree(towns):
    return PolicyTree(max_depth=2).fit(*towns)


def said(call) -> list[str]:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        call()
    assert all(w.category is UnseenValueWarning for w in heard)
    return [str(w.message) for w in heard]


def test_training_rows_say_nothing(tree, towns):
    assert said(lambda: tree.predict(towns[0])) == []
    assert said(lambda: tree.score(*towns)) == []


def test_a_new_category_is_named_with_its_rows_and_its_side(tree, towns):
    new = towns[0].head(6).assign(town=["Bonn", "Bonn", "Ghent", "Oslo", "Rome", "Kyiv"], age=70)
    (sentence,) = said(lambda: tree.predict(new))
    assert sentence.startswith("Column 'town': 3 rows have a value that no row had at fit ('Bonn', 'Ghent'). ")
    assert "they go to 'no'" in sentence and "town = " in sentence
    # The sentence is true: unknown towns go the way of a town that no question names.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenValueWarning)
        leaves = tree.apply(new.head(3))
    asked = {line.split("= ")[1].split("?")[0] for line in tree.export_text().splitlines() if "town = " in line}
    (other,) = {"Oslo", "Rome", "Kyiv"} - asked
    assert leaves.tolist() == tree.apply(new.head(3).assign(town=other)).tolist()


def test_new_gaps_are_named_and_old_ones_are_not(tree, towns):
    X, rewards = towns
    new = X.head(4).assign(town="Oslo", age=[np.nan, np.nan, 70, 20], height=np.nan)
    (sentence,) = said(lambda: tree.predict(new))
    assert sentence.startswith("Column 'age': 2 rows have a missing value, which no row had at fit.")
    gone = X.head(3).assign(town=[None, "Oslo", "Rome"])
    assert "Column 'town': 1 row has a missing value" in said(lambda: tree.predict(gone))[0]
    X = X.assign(age=X["age"].where(X.index % 9 > 0), town=X["town"].where(X.index % 7 > 0))
    with_gaps = PolicyTree(max_depth=2).fit(X, rewards)
    assert said(lambda: with_gaps.predict(new)) == []


def test_columns_and_rows_that_are_not_asked_about_say_nothing(tree, towns):
    new = towns[0].head(4).assign(height=np.nan)
    assert said(lambda: tree.predict(new)) == []
    first = tree.tree_.features[tree.tree_.feature[0]].name
    assert first == "town"
    away = towns[0][towns[0]["town"] == "Rome"].head(3).assign(age=np.nan)  # Rome is never asked for an age
    if len(set(tree.apply(towns[0][towns[0]["town"] == "Rome"]))) == 1:
        assert said(lambda: tree.predict(away)) == []


def test_polars_arrays_and_classifiers_too(towns, rng):
    X, rewards = towns
    tree = PolicyTree(max_depth=2).fit(pl.from_pandas(X), rewards)
    assert "('Bonn')" in said(lambda: tree.predict(pl.from_pandas(X.head(2).assign(town="Bonn"))))[0]
    numbers = X[["age", "height"]].to_numpy(dtype=float)
    y = np.where(numbers[:, 0] > 50, "old", "young")
    classifier = OptimalTreeClassifier(max_depth=1).fit(numbers, y)
    assert said(lambda: classifier.predict([[np.nan, 0.0]]))[0].startswith("Column 'x0': 1 row has a missing value")
    assert said(lambda: classifier.predict([[30.0, np.nan]])) == []


def test_saved_trees_remember_and_old_files_do_not_know(tree):
    again = from_json(to_json(tree.tree_))
    assert [f.has_missing for f in again.features] == [False, False, False]
    old = to_dict(tree.tree_)
    for feature in old["features"]:
        del feature["has_missing"]
    assert [f.has_missing for f in from_dict(old).features] == [None, None, None]
    old["features"][0]["has_missing"] = "no"
    with pytest.raises(InputError, match="Field 'has_missing' of entry 0 of field 'features' of the saved tree"):
        from_dict(old)


def test_the_command_line_says_so_too(tree, towns, tmp_path):
    (tmp_path / "tree.json").write_text(tree.to_json())
    towns[0].head(3).assign(town="Bonn").to_csv(tmp_path / "new.csv", index=False)
    code, out, err = run("predict", tmp_path / "tree.json", tmp_path / "new.csv")
    assert code == 0
    assert err.startswith("Warning: Column 'town': 3 rows have a value that no row had at fit ('Bonn'). ")
    assert len(out.splitlines()) == 4


def test_objects_that_are_numbers_are_numbers(rng):
    """A column of Python objects is what it would be after a CSV file."""
    values = rng.integers(0, 9, size=120)
    y = np.where(values > 4, "high", "low")
    objects = pd.DataFrame({"x": pd.Series([int(v) for v in values], dtype=object)})
    gaps = pd.DataFrame({"x": pd.Series([None, True, *(int(v) for v in values[2:])], dtype=object)})
    tree = OptimalTreeClassifier(max_depth=1).fit(objects, y)
    assert tree.export_text().startswith("x ≤ 4.5?")
    assert OptimalTreeClassifier(max_depth=1).fit(gaps, y).tree_.features[0].kind == "numeric"
    assert (tree.predict(objects.astype(float)) == y).all()
    mixed = pd.DataFrame({"x": pd.Series([1, "one"] * 60, dtype=object)})
    assert OptimalTreeClassifier(max_depth=1).fit(mixed, y).tree_.features[0].kind == "categorical"
    with pytest.raises(InputError, match="held numbers at fit and holds text now"):
        tree.predict(mixed)


@pytest.mark.parametrize(
    ("values", "type_"),
    [(np.arange(6) + 1j, "complex128"), (pd.date_range("2020-01-01", periods=6), "datetime64")],
)
def test_types_that_are_no_numbers_are_refused_at_fit_and_at_prediction(values, type_):
    X = pd.DataFrame({"age": np.arange(6.0)})
    model = PolicyTree(max_depth=1).fit(X, pd.DataFrame({"no": [0.0] * 6, "yes": X["age"] - 3}))
    for call in (model.predict, lambda rows: PolicyTree().fit(rows, pd.DataFrame({"no": [0.0] * 6, "yes": [1.0] * 6}))):
        with pytest.raises(InputError, match=f"Column 'age' of X has type {type_}"):
            call(X.assign(age=values))
