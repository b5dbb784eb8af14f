"""Text, DOT, rules and JSON of trees."""

import datetime as dt
import json
import re
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pytest

import policytree
from policytree import InputError, PolicyTree
from policytree.export import export_graphviz, export_text, format_threshold, to_rules
from policytree.serialization import from_json, save_text, to_json


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
        assert {*schema["required"]} == {*saved}
        for name in saved:
            lacking = {key: value for key, value in saved.items() if key != name}
            assert not judge.is_valid(lacking)
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
