"""Text, DOT, rules and JSON of trees."""

import datetime as dt
import hashlib
import json
import re
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pytest

import policytree
from policytree import PolicyTree
from policytree.data.features import Feature
from policytree.exceptions import InputError
from policytree.serialization import check_tree, from_dict, from_json, save_text, to_dict, to_json
from policytree.trees.text import (
    counted,
    export_graphviz,
    export_text,
    format_threshold,
    split_label,
    to_rules,
    with_unit,
)
from policytree.trees.tree import Tree


@pytest.fixture
def fitted():
    rng = np.random.default_rng(8)
    X = pd.DataFrame(
        {
            "age": rng.integers(18, 70, 200).astype(float),
            'the "region"': rng.choice(["north", "south", "west"], 200),
            "score": np.where(rng.random(200) < 0.3, np.nan, rng.standard_normal(200)),
        }
    )
    gain = np.where(X['the "region"'] == "south", 2.0, -1.0) + np.where(X["score"].isna(), 1.5, 0.0)
    return X, PolicyTree(max_depth=2).fit(X, pd.DataFrame({"no": np.zeros(200), "yes": gain}))


def test_json_follows_its_published_schema(fitted):
    schema = json.loads((Path(policytree.__file__).parent / "serialization/tree.schema.json").read_text())
    judge = jsonschema.Draft202012Validator(schema)
    judge.check_schema(schema)
    days = pd.DataFrame(np.eye(2), columns=[dt.date(2020, 1, 1), np.float64("nan")])
    for model in (fitted[1], PolicyTree(max_depth=1).fit([[0.0], [1.0]], days)):
        saved = json.loads(to_json(model.tree_))
        assert not list(judge.iter_errors(saved))
        assert {*schema["required"], "checksum"} == {*saved}
        for name in saved:
            lacking = {key: value for key, value in saved.items() if key != name}
            assert judge.is_valid(lacking) == (name == "checksum")  # which files of earlier versions have not
            assert not judge.is_valid({**saved, name: {}})


def test_text_names_questions_arms_and_counts(fitted):
    X, model = fitted
    text = export_text(model.tree_)
    assert 'the "region" = south?' in text and "score is known?" in text
    counts = [int(n.replace(",", "")) for n in re.findall(r"\(([\d,]+) rows?", text)]
    assert sum(counts) == len(X) and len(counts) == model.get_n_leaves()
    assert model.export_text() == text


def test_dot_is_balanced_and_escaped(fitted):
    _, model = fitted
    dot = export_graphviz(model.tree_)
    assert dot.startswith("digraph") and dot.rstrip().endswith("}")
    assert r"the \"region\" = south?" in dot
    assert dot.count("->") == model.tree_.node_count - 1


def test_rules_reproduce_the_leaves(fitted):
    X, model = fitted
    rules = to_rules(model.tree_)
    counts = pd.Series(model.apply(X)).value_counts()
    assert rules["n"].to_dict() == counts.to_dict()
    assert rules["share"].sum() == pytest.approx(1.0)


def test_json_round_trip_predicts_the_same(fitted):
    X, model = fitted
    text = to_json(model.tree_)
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    tree = from_json(text)
    encoded = model.encoder_.encode(X)
    assert (tree.apply(encoded) == model.tree_.apply(encoded)).all()
    np.testing.assert_array_equal(tree.threshold, model.tree_.threshold)
    assert tree.actions == model.tree_.actions and tree.features == model.tree_.features


@pytest.mark.parametrize("broken", ["", "[]", "{}", '{"format": "other"}', "not json"])
def test_broken_json_is_refused_in_one_sentence(broken):
    with pytest.raises(InputError):
        from_json(broken)


def test_a_changed_text_is_told_from_a_saved_one(fitted):
    tree = fitted[1].tree_
    text = to_json(tree)
    saved = json.loads(text)
    key = text.index('"checksum"')
    rng = np.random.default_rng(5)
    for place in rng.choice(len(text), 300, replace=False).tolist():
        damaged = text[:place] + chr(ord(text[place]) ^ (1 << int(rng.integers(0, 7)))) + text[place + 1 :]
        try:
            same = json.loads(damaged) == saved  # a space that became another, or a letter's other escape
        except ValueError:
            same = False
        if same or key < place < key + len('"checksum"') - 1:  # without a checksum it is a file as earlier ones were
            continue
        with pytest.raises(InputError):
            from_json(damaged)


def test_the_checksum_is_of_all_fields_but_itself(fitted):
    tree = fitted[1].tree_
    saved = json.loads(to_json(tree))
    old = {name: value for name, value in saved.items() if name != "checksum"}
    assert old == to_dict(tree)
    held = json.dumps(old, sort_keys=True, separators=(",", ":"))
    assert saved["checksum"] == hashlib.sha256(held.encode("ascii")).hexdigest()
    for same in (old, {**old, "note": "mine"}, dict(reversed(saved.items()))):
        assert to_dict(from_json(json.dumps(same, indent=2))) == old
    swapped = {**saved, "actions": saved["actions"][::-1]}  # a tree, but not the one that was saved
    for changed in (swapped, {**saved, "note": "mine"}, {**saved, "checksum": None}, {**saved, "note": float("inf")}):
        with pytest.raises(InputError, match="saved tree was changed or damaged after it was saved"):
            from_dict(changed)
    assert from_dict({**old, "actions": swapped["actions"]}).actions == tree.actions[::-1]
    assert to_json(from_json(to_json(tree, indent=1)), indent=1) == to_json(tree, indent=1)


def test_fields_that_stand_twice_are_named():
    with pytest.raises(InputError, match=r"the field 'a\\u0301' stands twice"):
        from_json('{"a\u0301": 1, "a\u0301": 1}')


def chain(levels, **arrays):
    """A tree of splits of one feature, each with a leaf on its left."""
    inner = np.arange(2 * levels + 1) % 2 == 0
    inner[-1] = False
    node, n = np.arange(len(inner)), len(inner)
    fields = {
        "children_left": np.where(inner, node + 1, -1).astype(np.int32),
        "children_right": np.where(inner, node + 2, -1).astype(np.int32),
        "feature": np.where(inner, 0, -2).astype(np.int32),
        "threshold": np.where(inner, node, np.nan),
        "missing_go_to_left": np.zeros(n, dtype=bool),
        "action": np.resize([0, 1], n).astype(np.int32),
        "n_node_samples": np.zeros(n, dtype=np.int64),
        "value": np.zeros((n, 2)),
    }
    return Tree(**{**fields, "features": (Feature("x"),), "actions": ("a", "b"), **arrays})


def test_chains_of_200_000_levels_take_no_time_per_level():
    tree = chain(200_000)
    assert tree.max_depth == 200_000
    with pytest.raises(InputError, match="more than 500 levels"):
        check_tree(tree)
    assert from_json(to_json(chain(500))).max_depth == 500


@pytest.mark.parametrize("categories", [None, ("u", "v")])
@pytest.mark.parametrize("left", [False, True])
def test_questions_whether_a_value_is_missing_must_send_it_there(categories, left):
    known = categories is None
    feature = Feature("x") if known else Feature("x", "categorical", categories)
    threshold = np.array([np.inf if known else -1.0, np.nan, np.nan])
    tree = chain(1, features=(feature,), threshold=threshold, missing_go_to_left=np.array([left, False, False]))
    if left != known:
        check_tree(tree)
        assert split_label(tree, 0) == f"x is {'known' if known else 'missing'}"
        return
    with pytest.raises(InputError, match=f"asks whether feature 'x' is .*, .* must be {'false' if known else 'true'}"):
        to_dict(tree)


@pytest.mark.parametrize("change", [{"children_left": [0]}, {"threshold": ["x"]}, {"feature": []}])
def test_tampered_trees_are_refused(fitted, change):
    data = json.loads(to_json(fitted[1].tree_))
    with pytest.raises(InputError):
        from_json(json.dumps({**data, **change}))


def test_files_are_written_whole(tmp_path):
    path = tmp_path / "a.txt"
    save_text(path, "one")
    save_text(path, "two")
    assert path.read_text() == "two" and [p.name for p in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("value", [1234567.5, 123457.5, 2.9999999, 31.5, -0.5, 1e-9])
def test_a_shown_threshold_parts_whole_numbers_as_the_real_one(value):
    assert np.floor(float(format_threshold(value))) == np.floor(value)


@pytest.mark.parametrize(
    ("unit", "one"),
    [
        ("days", "1 day"),
        ("days to the trial's endpoint", "1 day to the trial's endpoint"),
        ("school days", "1 school day"),
        ("degrees Celsius", "1 degree Celsius"),
        ("injuries", "1 injury"),
        ("calories", "1 calorie"),
        ("mg", "1 mg"),
        ("s", "1 s"),
        ("mass", "1 mass"),
        ("million dollars", "1 million dollars"),
        ("% of days", "1 % of days"),
        ("falls per 1,000 days", "1 fall per 1,000 days"),
        ("deaths per 1,000 days", "1 deaths per 1,000 days"),
        ("series", "1 series"),
        ("analyses", "1 analyses"),
        ("", "1"),
    ],
)
def test_one_of_a_unit_is_singular(unit, one):
    assert with_unit("1", unit) == one
    assert with_unit("1.0", unit) == f"1.0 {unit}".rstrip() and with_unit("21", unit) == f"21 {unit}".rstrip()


@pytest.mark.parametrize(
    ("unit", "one"), [("people", "person"), ("lung glasses", "lung glass"), ("boxes", "box"), ("families", "family")]
)
def test_one_thing_is_singular(unit, one):
    assert counted(1, unit) == f"1 {one}" and counted(1_204, unit) == f"1,204 {unit}"
