"""Columns of zeros and ones: their values have names in questions, and nothing else changes."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from policytree import PolicyTree, StudyReport
from policytree.exceptions import InputError
from policytree.report.html import to_html
from policytree.report.material import About
from policytree.serialization import from_json, to_json
from policytree.trees.short_thresholds import with_value_names
from policytree.trees.text import export_text
from tests.cli.running import design


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
    assert "sex = 0?" in shown.to_text() and "sex ≤" not in shown.to_text()
    named, _ = report(value_names={"sex": ("male", "female")})
    text = named.to_text()
    assert "sex = male?" in text and "sex = female" in " ".join(text.split())
    np.testing.assert_array_equal(named.tree.apply(X.to_numpy(float)), shown.tree.apply(X.to_numpy(float)))
    page = to_html(named.content)
    assert '"kind": "category"' in page and '"value": "male"' in page  # the form offers names to choose from


def test_the_saved_tree_keeps_the_names():
    named, _ = report(value_names={"sex": ("male", "female")})
    text = named.tree

    again = from_json(to_json(text))
    assert again.features[0].value_names == ("male", "female") and "sex = male" in export_text(again)
    assert again.features[1].value_names is None
    data = json.loads(to_json(text))
    data.pop("checksum", None)
    data["features"][0]["value_names"] = ["male"]
    with pytest.raises(
        InputError, match="'value_names' of entry 0 of field 'features' of the saved tree must be a list"
    ):
        from_json(json.dumps(data))


def test_other_columns_have_no_such_names():
    X, _, rewards, _ = study()
    tree = PolicyTree(max_depth=1).fit(X, rewards).tree_
    with pytest.raises(InputError, match="'age', which has other ones than 0 and 1"):
        with_value_names(tree, X.to_numpy(float), {"age": ("young", "old")})
    with pytest.raises(InputError, match="'height', which is no covariate"):
        with_value_names(tree, X.to_numpy(float), {"height": ("low", "tall")})


def test_the_command_line_takes_them(tmp_path):
    X, T, _, Y = study()
    X.assign(arm=np.array(["no", "yes"])[T], y=Y).to_csv(tmp_path / "trial.csv", index=False)
    options = ("--no-value", "--cv", "2", "--max-depth", "1")
    code, out, err = design(tmp_path / "trial.csv", tmp_path / "out", *options, "--value-names", "sex=male,female")
    assert code == 0, err
    assert "sex = male?" in out and '"male"' in (tmp_path / "out" / "tree.json").read_text()
    for wrong, why in (
        ("sex=male", "must be COLUMN=ZERO,ONE"), ("sex=a,a", "must be COLUMN=ZERO,ONE"), ("age=a,b", "has other ones"),
        ("height=a,b", "height"),
    ):  # fmt: skip
        code, _, err = design(tmp_path / "trial.csv", tmp_path / "no", *options, "--value-names", wrong)
        assert code == 2 and why in err


def test_about_is_a_mapping_of_known_names():
    assert About.of({"unit": "kg"}).unit == "kg" and About.of(None) == About()
    with pytest.raises(InputError, match=r"about must be a mapping with names of source, .*; got 'colour'"):
        About.of({"unit": "kg", "colour": "red"})
    with pytest.raises(InputError, match="about must be a mapping"):
        About.of("kg")
