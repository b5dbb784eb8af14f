"""Trees as SQL, as Python and as scikit-learn's trees give every row what the tree gives it."""

import datetime
import pickle
import sqlite3

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policytree import BornAgainTree, InputError, OptimalTreeClassifier, PolicyTree
from policytree.source_code import export_python, export_sql

HOSTILE = ["plain", 'it\'s "odd"', "; DROP TABLE people --", "a\nb", "\\", "é", "%s", "{x}", "# no"]


def people(rng, n=60):
    """A table with gaps, texts and hostile names, and rewards."""
    names = rng.permutation(HOSTILE)[:4]
    X = pd.DataFrame(
        {
            names[0]: np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            names[1]: rng.integers(0, 4, n).astype(float),
            names[2]: np.where(rng.random(n) < 0.2, None, rng.choice(HOSTILE[:4], n)),
            names[3]: rng.choice(["x", "y"], n),
        }
    )
    return X, pd.DataFrame(rng.normal(size=(n, 3)), columns=rng.permutation(HOSTILE)[:3])


def strangers(X, rng):
    """Rows with texts and gaps that the fit did not see."""
    new = X.sample(frac=1.0, random_state=1).reset_index(drop=True).copy()
    for name in new.columns:
        new.loc[rng.random(len(new)) < 0.2, name] = None if new[name].dtype.kind in "OUTS" else np.nan
        if new[name].dtype.kind not in "fi":
            new.loc[rng.random(len(new)) < 0.2, name] = "unheard of"
    return new


seeds = st.integers(0, 2**32 - 1)


@pytest.mark.filterwarnings("ignore::policytree.exceptions.UnseenValueWarning")
@settings(max_examples=20, deadline=None)
@given(seed=seeds)
def test_code_gives_every_row_what_the_tree_gives(seed):
    rng = np.random.default_rng(seed)
    X, rewards = people(rng)
    model = PolicyTree(max_depth=3).fit(X, rewards)
    new = pd.concat([X, strangers(X, rng)], ignore_index=True)
    expected = model.predict(new).tolist()

    space: dict = {}
    exec(compile(model.export_python(name="rule"), "rule", "exec"), space)
    assert [space["rule"](row) for row in new.to_dict("records")] == expected

    with sqlite3.connect(":memory:") as database:
        new.to_sql("people", database, index=False)
        found = database.execute(f"SELECT {model.export_sql()} FROM people").fetchall()
    assert [row[0] for row in found] == expected


@pytest.mark.filterwarnings("ignore::policytree.exceptions.UnseenValueWarning")
@settings(max_examples=20, deadline=None)
@given(seed=seeds)
def test_scikit_learns_tree_has_the_same_leaves(seed):
    rng = np.random.default_rng(seed)
    X, rewards = people(rng)
    for column in X.select_dtypes("number"):
        X[column] = 1e6 + X[column] / 8  # 32-bit floats know steps of 1/16 there
        X[column] = (X[column] * 4).round() / 4
    model = PolicyTree(max_depth=3).fit(X, rewards)
    equal = model.to_sklearn(X)
    table = model.sklearn_table(X)
    assert (equal.predict(table) == model.predict(X)).all()
    pairs = pd.DataFrame({"ours": model.apply(X), "theirs": equal.apply(table)}).drop_duplicates()
    assert len(pairs) == model.get_n_leaves() == equal.get_n_leaves()
    assert equal.get_depth() == model.get_depth()
    new = strangers(X, rng)
    assert (equal.predict(model.sklearn_table(new)) == model.predict(new)).all()


def test_probabilities_are_the_classifiers():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(80, 3)), rng.integers(0, 3, 80)
    model = OptimalTreeClassifier(max_depth=2).fit(X, y)
    equal = pickle.loads(pickle.dumps(model.to_sklearn(X)))
    assert np.allclose(equal.predict_proba(model.sklearn_table(X)), model.predict_proba(X), rtol=0, atol=1e-12)
    assert equal.tree_.n_node_samples[0] == 80


def test_values_that_32_bit_floats_merge_are_refused():
    X = pd.DataFrame({"year": 2**30 + np.arange(20.0)})
    model = PolicyTree(max_depth=1).fit(X, np.eye(2)[(np.arange(20) > 7).astype(int)])
    with pytest.raises(InputError, match=r"'year' has values around .* 32-bit floats"):
        model.to_sklearn(X)


def test_thresholds_that_32_bit_floats_would_cross_are_moved():
    step = np.float64(np.spacing(np.float32(1.0)))
    X = pd.DataFrame({"x": np.repeat([1.0, 1.0 + 0.6 * step], 10)})  # the second becomes 1 + step: above the threshold
    model = PolicyTree(max_depth=1).fit(X, np.repeat(np.eye(2), 10, axis=0))
    assert (model.to_sklearn(X).predict(model.sklearn_table(X)) == model.predict(X)).all()


@pytest.mark.parametrize("export", [export_sql, export_python])
def test_labels_that_no_source_code_states_are_refused(export):
    labels = [datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)]
    model = PolicyTree(max_depth=1).fit([[0.0], [1.0]], pd.DataFrame(np.eye(2), columns=labels))
    with pytest.raises(InputError, match="of type date cannot be written in"):
        export(model.tree_)


def test_a_function_needs_a_name():
    model = PolicyTree(max_depth=1).fit([[0.0], [1.0]], np.eye(2))
    with pytest.raises(InputError, match="name must be"):
        model.export_python(name="class")


def test_rules_are_a_table():
    model = PolicyTree(max_depth=1).fit(pd.DataFrame({"age": [0.0, 1.0]}), np.eye(2))
    assert model.to_rules()["rule"].tolist() == ["age ≤ 0.5", "not (age ≤ 0.5)"]


def test_trees_made_without_rows_have_exports_too():
    from sklearn.ensemble import RandomForestClassifier

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 2, 60)
    forest = RandomForestClassifier(3, max_depth=2, random_state=0).fit(X, y)
    model = BornAgainTree(forest).fit()
    space: dict = {}
    exec(model.export_python(), space)
    rows = [dict(zip([f.name for f in model.tree_.features], row, strict=True)) for row in X.tolist()]
    assert [space["policy"](row) for row in rows] == forest.predict(X).tolist()
