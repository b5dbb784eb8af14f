"""Trees as SQL, as Python and as scikit-learn's trees give every row what the tree gives it."""

import datetime
import decimal
import enum
import math
import pickle
import sqlite3

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policytree import BornAgainTree, OptimalTreeClassifier, PolicyTree
from policytree.data.features import Feature
from policytree.exceptions import InputError
from policytree.serialization import check_tree
from policytree.trees.source_code import export_python, export_sql
from policytree.trees.text import export_graphviz, export_text, to_rules
from policytree.trees.to_sklearn import SklearnColumns, to_sklearn
from policytree.trees.tree import Tree

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


CATEGORIES = (("x", "it's", "a\\", "NaN", "1", ""), (1, 2, 10), (1.5, 0.1, -2.0), ("1", 2, "b", 2.5))
ACTIONS = (("no", 'y"es', "\\'"), (0, 1, 2), (0.1, 2, None), ("a", 1, 2.5, None), (True, False, True), (True, "a", 7))
NUMBERS = [0.0, -0.0, 1.0, -1.5, 2.0**53, 1e-300, 5e-324, 1.7976931348623157e308, -1.7976931348623157e308, 0.1, 47.5]


def any_tree(rng, levels=4):
    """A tree with every kind of question, which need not serve anybody, over hostile names."""
    names = rng.permutation(HOSTILE)[:4].tolist()
    features = tuple(
        Feature(name, "categorical", CATEGORIES[rng.integers(len(CATEGORIES))]) if rng.random() < 0.5 else Feature(name)
        for name in names
    )
    nodes: list[list] = []

    def grow(level):
        node = len(nodes)
        nodes.append([-1, -1, -2, np.nan, False])
        if level < levels and rng.random() < 0.85:
            j = int(rng.integers(4))
            kinds = len(features[j].categories)
            threshold = float(rng.integers(-1, kinds)) if kinds else float(rng.choice([*NUMBERS, np.inf, -np.inf]))
            asked = kinds and threshold < 0, not kinds and threshold == np.inf
            missing_left = True if asked[0] else False if asked[1] else bool(rng.random() < 0.5)
            nodes[node] = [grow(level + 1), grow(level + 1), j, threshold, missing_left]
        return node

    grow(0)
    actions = tuple(dict.fromkeys(ACTIONS[rng.integers(len(ACTIONS))]))
    left, right, feature, threshold, missing = zip(*nodes, strict=True)
    n = len(nodes)
    tree = Tree(
        children_left=np.array(left, dtype=np.int32),
        children_right=np.array(right, dtype=np.int32),
        feature=np.array(feature, dtype=np.int32),
        threshold=np.array(threshold),
        missing_go_to_left=np.array(missing),
        action=rng.integers(0, len(actions), n).astype(np.int32),
        n_node_samples=np.zeros(n, dtype=np.int64),
        value=np.zeros((n, len(actions))),
        features=features,
        actions=actions,
    )
    check_tree(tree)
    return tree


def nasty_rows(tree, rng, n=40):
    """Rows with numbers around the thresholds, infinite ones, gaps of every kind and categories that no row had."""
    gaps = [None, np.nan, np.float64("nan"), pd.NA, pd.NaT]
    columns = {}
    for feature in tree.features:
        numbers = [*NUMBERS, *(math.nextafter(number, end) for number in NUMBERS for end in (-np.inf, np.inf))]
        other = ["unheard of", "X", "2.0"] if any(isinstance(c, str) for c in feature.categories) else [3, 99]
        values = [*feature.categories, *other] if feature.categories else numbers
        picks = rng.integers(0, len(values) + 3, n)
        columns[feature.name] = [values[k] if k < len(values) else gaps[rng.integers(len(gaps))] for k in picks]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def encoded(tree, rows):
    """The numbers of rows as the tree takes them."""
    X = np.full((len(rows), len(tree.features)), np.nan)
    for i, row in enumerate(rows):
        for j, feature in enumerate(tree.features):
            value = row[feature.name]
            if value is None or value is pd.NA or value is pd.NaT or value != value:
                continue
            position = dict(zip(feature.categories, range(99), strict=False)).get(value, np.nan)
            X[i, j] = position if feature.categories else value
    return X


def answers(tree, rows):
    return [tree.actions[k] for k in tree.action[tree.apply(encoded(tree, rows))]]


def stored(tree, rows):
    """Rows as a database has them: types of columns, and values; NaN stays, texts are those of Python."""
    types, columns = [], []
    for feature in tree.features:
        kinds = {type(category) for category in feature.categories}
        kind = float if not kinds else str if len(kinds) > 1 else kinds.pop()
        types.append({float: "DOUBLE", int: "BIGINT", str: "VARCHAR"}[kind])
        values = [row[feature.name] for row in rows]
        gap = [v is None or v is pd.NA or v is pd.NaT or (kind is not float and v != v) for v in values]
        columns.append([None if g else kind(v) for v, g in zip(values, gap, strict=True)])
    return types, list(zip(*columns, strict=True))


def same_labels(tree, found, expected):
    """Whether a database's answers are the labels: as they are, or all of them texts where some are."""
    given = {tree.actions[k] for k in tree.action[tree.is_leaf].tolist()} - {None}
    mixed = len({str if isinstance(a, str) else bool if isinstance(a, bool) else float for a in given}) > 1
    return found == [None if label is None else str(label) if mixed else label for label in expected]


@settings(max_examples=150, deadline=None)
@given(seed=seeds)
def test_every_question_has_its_python(seed):
    rng = np.random.default_rng(seed)
    tree = any_tree(rng)
    rows = nasty_rows(tree, rng)
    rows += [{**rows[0], f.name: v} for f in tree.features if not f.categories for v in (np.inf, -np.inf)]
    space: dict = {}
    exec(compile(export_python(tree), "rule", "exec"), space)
    assert [space["policy"](row) for row in rows] == answers(tree, rows)
    assert [space["policy"](pd.Series(row, dtype=object)) for row in rows] == answers(tree, rows)


@settings(max_examples=100, deadline=None)
@given(seed=seeds)
def test_every_question_has_its_sql(seed):
    rng = np.random.default_rng(seed)
    tree = any_tree(rng)
    rows = nasty_rows(tree, rng)
    rows += [{**rows[0], f.name: v} for f in tree.features if not f.categories for v in (np.inf, -np.inf)]
    types, values = stored(tree, rows)
    names = ['"' + f.name.replace('"', '""') + '"' for f in tree.features]
    with sqlite3.connect(":memory:") as database:
        columns = ", ".join(f"{name} {kind}" for name, kind in zip(names, types, strict=True))
        database.execute(f"CREATE TABLE rows ({columns})")
        database.executemany("INSERT INTO rows VALUES (?, ?, ?, ?)", values)
        found = database.execute(f"SELECT {export_sql(tree)} FROM rows ORDER BY rowid").fetchall()
    assert same_labels(tree, [row[0] for row in found], answers(tree, rows))


@settings(max_examples=60, deadline=None)
@given(seed=seeds)
def test_every_question_has_its_sql_where_nan_is_not_null(seed):
    duckdb = pytest.importorskip("duckdb")
    rng = np.random.default_rng(seed)
    tree = any_tree(rng)
    rows = nasty_rows(tree, rng)
    rows += [{**rows[0], f.name: v} for f in tree.features if not f.categories for v in (np.inf, -np.inf, np.nan)]
    types, values = stored(tree, rows)
    with duckdb.connect(":memory:") as database:
        database.execute(f"CREATE TABLE rows (i INTEGER, {', '.join(f'x{j} {kind}' for j, kind in enumerate(types))})")
        database.executemany("INSERT INTO rows VALUES (?, ?, ?, ?, ?)", [(i, *row) for i, row in enumerate(values)])
        named = ", ".join(f'x{j} AS "{f.name.replace(chr(34), chr(34) * 2)}"' for j, f in enumerate(tree.features))
        found = database.execute(
            f"SELECT {export_sql(tree)} FROM (SELECT i, {named} FROM rows) t ORDER BY i"
        ).fetchall()
    assert same_labels(tree, [row[0] for row in found], answers(tree, rows))


def test_32_bit_columns_are_compared_as_64_bit_floats():
    duckdb = pytest.importorskip("duckdb")
    low = np.float32(1.0)
    X = pd.DataFrame({"x": np.repeat([low, np.nextafter(low, np.float32(2.0))], 10)})
    model = PolicyTree(max_depth=1).fit(X, np.repeat(np.eye(2), 10, axis=0))
    with duckdb.connect(":memory:") as database:
        database.execute("CREATE TABLE people (x REAL)")
        database.executemany("INSERT INTO people VALUES (?)", [(float(x),) for x in X["x"]])
        found = database.execute(f"SELECT {model.export_sql()} FROM people").fetchall()
    assert [row[0] for row in found] == model.predict(X).tolist()


def test_how_names_and_texts_are_written_in_other_databases():
    table = {"na`me": ["back\\slash", "it's\nme"] * 4}
    model = PolicyTree(max_depth=1).fit(pd.DataFrame(table), pd.DataFrame({"n'o": [0, 1.0] * 4, "\\": [1.0, 0] * 4}))
    assert model.export_sql(column=None, dialect="standard").splitlines() == [
        "CASE WHEN \"na`me\" = 'back\\slash' THEN", "  '\\'", "ELSE", "  'n''o'", "END",
    ]  # fmt: skip
    assert model.export_sql(column="a`b", dialect="mysql").splitlines() == [
        "CASE WHEN `na``me` = 'back\\\\slash' THEN", "  '\\\\'", "ELSE", "  'n''o'", "END AS `a``b`",
    ]  # fmt: skip
    assert model.export_sql(column=None, dialect="bigquery").splitlines() == [
        "CASE WHEN `na\\`me` = 'back\\\\slash' THEN", "  '\\\\'", "ELSE", "  'n\\'o'", "END",
    ]  # fmt: skip
    gaps = Tree(
        **{name: getattr(model.tree_, name) for name in Tree.__slots__} | {"missing_go_to_left": np.ones(3, bool)}
    )
    assert r"'it\'s\nme'" in export_sql(gaps, dialect="bigquery") and "\n" in export_sql(gaps, dialect="mysql")
    with pytest.raises(InputError, match="dialect must be one of 'standard', 'mysql', 'bigquery'; got 'oracle'"):
        model.export_sql(dialect="oracle")


@pytest.mark.parametrize(
    ("categories", "words"),
    [
        ((1, "1"), "two are the same text in SQL"),
        ((True, "a"), "truth values and others"),
        (("a\0b", "c"), "null character"),
        (("\ud800", "c"), "half a letter"),
    ],
)
def test_categories_that_sql_cannot_tell_apart_are_refused(categories, words):
    X = pd.DataFrame({"site": pd.Series([*categories] * 4, dtype=object)})
    model = PolicyTree(max_depth=1).fit(X, np.resize(np.eye(2), (8, 2)))
    with pytest.raises(InputError, match=words):
        model.export_sql()
    space: dict = {}
    exec(model.export_python(), space)
    assert [space["policy"](row) for row in X.to_dict("records")] == model.predict(X).tolist()


def test_labels_of_subclasses_are_written_as_the_plain_ones():
    class Arm(enum.StrEnum):
        CONTROL = "control"
        DRUG = "it's"

    class Dose(enum.IntEnum):
        LOW = 1
        HIGH = 2

    for labels, shown in ((Arm, "'it''s'"), (Dose, "2")):
        rewards = pd.DataFrame(np.eye(2), columns=pd.Index(list(labels), dtype=object))
        model = PolicyTree(max_depth=1).fit([[0.0], [1.0]], rewards)
        assert f"  {shown}\n" in model.export_sql()
        space: dict = {}
        exec(model.export_python(), space)
        assert [space["policy"]({"x0": x}) for x in (0.0, 1.0)] == list(labels)


def test_functions_take_every_kind_of_number_and_no_text():
    model = PolicyTree(max_depth=1).fit(pd.DataFrame({"x": [0.1, 0.2, 0.3, 0.4]}), np.eye(2)[[0, 1, 1, 1]])
    just_above = decimal.Decimal(float(model.tree_.threshold[0])) + decimal.Decimal(
        "1e-30"
    )  # as a float, the threshold
    numbers = [True, np.bool_(False), 0, np.int8(1), np.float32(0.1), decimal.Decimal("0.1"), just_above]
    for name in ("policy", "float", "type", "missing", "number", "row"):
        space: dict = {}
        exec(model.export_python(name=name), space)
        found = [space[name]({"x": value}) for value in numbers]
        assert found == model.predict(pd.DataFrame({"x": pd.Series(numbers, dtype=object)})).tolist()
        with pytest.raises(AttributeError):
            space[name]({"x": "0.1"})


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


@pytest.mark.parametrize("years", [2**30 + np.arange(20.0), 1e39 * np.arange(1.0, 21.0)])
def test_values_that_32_bit_floats_merge_are_refused(years):
    X = pd.DataFrame({"year": years})
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


@pytest.mark.filterwarnings("ignore::policytree.exceptions.UnseenValueWarning")
def test_labels_and_categories_that_are_text_and_numbers_stay_apart():
    rng = np.random.default_rng(0)
    n = 200
    site, x = rng.choice(np.array([1, "1", "a"], dtype=object), n), rng.normal(size=n)
    gain = {"1": np.where([s == 1 for s in site], 1.0, -1.0), 1: np.where([s == "1" for s in site], 2.0, -1.0)}
    X = pd.DataFrame({"site": site, "site = 1": np.where(rng.random(n) < 0.2, np.nan, x), "'1'": x})
    X.loc[::7, "site"] = pd.NA
    rewards = np.c_[gain["1"], gain[1], np.where(X["site = 1"].isna(), 0.7, -0.5)]
    model = PolicyTree(max_depth=3).fit(X, pd.DataFrame(rewards, columns=pd.Index(["z", 1, 1.5], dtype=object)))
    expected = model.predict(X).tolist()
    assert {"z", 1, 1.5} == {*expected}
    text = model.export_text()
    assert "site = 1?" in text or "site = '1'?" in text
    assert len({*model.sklearn_table(X).columns}) == len(model.sklearn_table(X).columns)
    assert model.to_sklearn(X).predict(model.sklearn_table(X)).tolist() == expected
    space: dict = {}
    exec(model.export_python(), space)
    assert [space["policy"](row) for row in X.to_dict("records")] == expected
    with pytest.raises(InputError, match="categories of feature 'site' have several types, and two are the same text"):
        model.export_sql()


def test_texts_name_labels_apart():
    features = (Feature("site", "categorical", ("1", 1, "a")),)
    tree = Tree(
        children_left=np.array([1, -1, -1], dtype=np.int32),
        children_right=np.array([2, -1, -1], dtype=np.int32),
        feature=np.array([0, -2, -2], dtype=np.int32),
        threshold=np.array([0.0, np.nan, np.nan]),
        missing_go_to_left=np.zeros(3, dtype=bool),
        action=np.array([0, 0, 1], dtype=np.int32),
        n_node_samples=np.zeros(3, dtype=np.int64),
        value=np.zeros((3, 3)),
        features=features,
        actions=(np.int64(2), "2", "a"),
    )
    assert export_text(tree).splitlines() == ["site = '1'?", "├─ yes: 2", "└─ no:  '2'"]
    assert "label=\"'2'\"" in export_graphviz(tree)
    assert to_rules(tree)["rule"].tolist() == ["site = '1'", "not (site = '1')"]


def test_trees_of_one_leaf_over_texts_have_a_scikit_learn_tree():
    X = pd.DataFrame({"site": ["x", "y"] * 10})
    model = PolicyTree(max_depth=1).fit(X, np.c_[np.zeros(20), np.ones(20)])
    assert model.get_n_leaves() == 1
    assert model.to_sklearn(X).predict(model.sklearn_table(X)).tolist() == model.predict(X).tolist()
    assert "return 1" in model.export_python() and model.export_sql(column=None) == "1"


@settings(max_examples=60, deadline=None)
@given(seed=seeds)
def test_every_question_is_one_of_scikit_learns(seed):
    rng = np.random.default_rng(seed)
    tree = any_tree(rng)
    X = encoded(tree, nasty_rows(tree, rng))
    X[np.abs(X) > 1e38] = np.nan  # beyond the range of 32-bit floats
    try:
        model = to_sklearn(tree, X, np.arange(len(tree.actions)), None)
    except InputError as error:
        assert "32-bit floats" in str(error)
        return
    assert model.predict(SklearnColumns.of(tree).table(X)).tolist() == tree.action[tree.apply(X)].tolist()
