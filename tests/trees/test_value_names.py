"""Columns of zeros and ones: their values have names in questions, and nothing else changes."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from policytree import PolicyTree, StudyReport
from policytree.exceptions import InputError
from policytree.plotting.trees import PolicyTreeDisplay
from policytree.report.described import About
from policytree.report.html import to_html
from policytree.report.outline import checklist, outline
from policytree.serialization import from_json, to_json
from policytree.trees.labels import Label, labelled
from policytree.trees.short_thresholds import with_two_values
from policytree.trees.text import export_graphviz, export_html, export_text, rule_sentence


def study(n: int = 200):
    rng = np.random.default_rng(5)
    X = pd.DataFrame({"sex": rng.integers(0, 2, n), "age": rng.integers(20, 80, n)})
    T = rng.integers(0, 2, n)
    gain = np.where(X["sex"] == 1, 1.0, -1.0)
    rewards = pd.DataFrame({"no": np.zeros(n), "yes": gain})
    return X, T, rewards, gain * T + 0.1 * rng.normal(size=n)


def report(**about):
    X, T, rewards, Y = study()
    model = PolicyTree(max_depth=1).fit(X, rewards)
    return StudyReport(model, Y, np.array(["no", "yes"])[T], X=X, about=About(**about)), X


def test_zeros_and_ones_are_values_and_no_numbers():
    shown, X = report()
    assert "sex?\n  ├─ 0: " in shown.to_text() and "sex ≤" not in shown.to_text()
    named, _ = report(labels={"sex": Label("sex", values={"0": "male", "1": "female"})})
    text = named.to_text()
    assert "sex?\n  ├─ male: " in text and "sex = female" in " ".join(text.split())
    np.testing.assert_array_equal(named.tree.apply(X.to_numpy(float)), shown.tree.apply(X.to_numpy(float)))
    page = to_html(named.content)
    assert '"kind": "category"' in page and '"value": "male"' in page  # the form offers names to choose from


def test_the_saved_tree_keeps_the_names():
    shown, _ = report()
    named = labelled(shown.tree, {"sex": Label("sex", values={"0": "male", "1": "female"})})
    again = from_json(to_json(named))
    assert again.features[0].value_names == ("male", "female") and "sex?\n├─ male:   " in export_text(again)
    assert again.features[1].value_names is None
    data = json.loads(to_json(named))
    data.pop("checksum", None)
    data["features"][0]["value_names"] = ["male"]
    with pytest.raises(
        InputError, match="'value_names' of entry 0 of field 'features' of the saved tree must be a list"
    ):
        from_json(json.dumps(data))


def test_about_is_a_mapping_of_known_names():
    assert About.of({"unit": "kg"}).unit == "kg" and About.of(None) == About()
    with pytest.raises(InputError, match=r"about must be a mapping with names of source, .*; got 'colour'"):
        About.of({"unit": "kg", "colour": "red"})
    with pytest.raises(InputError, match="about must be a mapping"):
        About.of("kg")


def test_a_question_and_the_sentence_name_a_value_alike():
    """A headline of "diabetes is yes" stood above "diabetes = no?"."""
    X = pd.DataFrame({"diabetes": [0.0, 0.0, 1.0, 1.0, np.nan], "age": [30.0, 60.0, 30.0, 60.0, 60.0]})
    drug = [0.0, 0.0, 0.0, 1.0, 1.0]
    tree = PolicyTree(max_depth=2).fit(X, pd.DataFrame({"none": [0.5] * 5, "drug": drug})).tree_
    named = labelled(
        with_two_values(tree, X.to_numpy()), {"diabetes": Label("diabetes", values={"0": "no", "1": "yes"})}
    )
    assert rule_sentence(named).startswith("Give drug to people whose ") and "diabetes is yes" in rule_sentence(named)
    text = export_text(named)
    assert "diabetes? (missing → yes)" in text and "diabetes =" not in text
    assert 'label="no"' in export_graphviz(named) and "<em>no:</em> none" in export_html(named)
    steps = checklist(outline(named, X.to_numpy(), {}).root)
    assert any("diabetes? No: give none. Yes: " in step and step.endswith("Not known: as yes.") for step in steps)


def test_notes_of_a_leaf_stand_in_lines():
    """A report's picture escaped the end of a line between who got what and the effect."""
    tree = PolicyTree(max_depth=0).fit([[1.0], [2.0]], [[1.0, 0.0], [1.0, 0.0]]).tree_
    display = PolicyTreeDisplay(tree, notes={0: "got: none 48\n2.67 days more"}).plot()
    assert display.boxes_[0].get_text().splitlines()[-2:] == ["got: none 48", "2.67 days more"]


@pytest.mark.parametrize("width", [None, "column"])
def test_long_answers_stand_clear_of_each_other_and_of_boxes(width):
    """They stand on the lines between boxes, where "yes" and "no" always had a place."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"smokes": rng.integers(0, 2, 80).astype(float), "old": rng.integers(0, 2, 80).astype(float)})
    gain = np.where((X["smokes"] > 0) == (X["old"] > 0), 1.0, -1.0)
    tree = PolicyTree(max_depth=2).fit(X, pd.DataFrame({"a": 0.1 * X["old"], "b": gain})).tree_
    labels = {
        "smokes": Label("Do you smoke?", values={"0": "has never smoked regularly in life", "1": "$5 a day or $6"}),
        "old": Label("Age", values={"0": "younger than sixty years", "1": "sixty years or older"}),
    }
    display = PolicyTreeDisplay.from_tree(labelled(with_two_values(tree, X.to_numpy()), labels), width=width)
    figure = display.figure_
    figure.canvas.draw()
    boxes = [box.get_window_extent() for box in display.boxes_.values()]
    said = [text for text in figure.axes[0].texts if text not in display.boxes_.values()]
    assert len(said) == tree.node_count - 1 and any("regularly" in text.get_text() for text in said)
    words = [text.get_window_extent() for text in said]
    for k, word in enumerate(words):
        assert not any(word.overlaps(other) for other in [*words[:k], *words[k + 1 :], *boxes])


def test_labels_that_are_questions_and_names_are_written_as_they_are():
    X = pd.DataFrame({"smokes": [0.0, 0.0, 1.0, 1.0]})
    tree = PolicyTree(max_depth=1).fit(X, pd.DataFrame({"a": [0.0] * 4, "b": [-1.0, -1.0, 1.0, 1.0]})).tree_
    labels = {"smokes": Label("Do you smoke?", values={"0": "pN0", "1": "pN+"})}
    named = labelled(with_two_values(tree, X.to_numpy()), labels)
    assert export_text(named).startswith("Do you smoke?\n├─ pN0: ")
    steps = checklist(outline(named, X.to_numpy(), {}).root)
    assert steps == ("Do you smoke? pN0: give a. pN+: give b. Not known: as pN0.",)
