"""Names that harm: of a column, a treatment or a category, through the whole command line, without exit code 1."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from policytree.study_check.names import later_than_baseline, later_words
from tests.cli.running import design, run

NAMES = {
    "digits": "x" + "1" * 5000,
    "beyond float": "1" + "0" * 400,
    "right to left": "\u202eage\u200f",
    "page": "<script>alert(1)</script>&amp;",
    "markup": "[bold red]x[/bold red][/nope]",
}


@pytest.mark.parametrize("place", ["column", "label", "category"])
@pytest.mark.parametrize("kind", NAMES)
def test_check_shows_them(tmp_path, kind, place):
    table = names_in(place, NAMES[kind])
    table.to_csv(tmp_path / "d.csv", index=False)
    code, _, err = run("check", tmp_path / "d.csv", "--treatment", "arm", "--outcome", "y")
    assert code == 0, err


def test_a_whole_design_with_all_of_them(tmp_path):
    """One table whose column, treatment and category are markup, digits and a page at once."""
    table = names_in("column", NAMES["markup"], NAMES["digits"], NAMES["page"])
    table.to_csv(tmp_path / "d.csv", index=False)
    more = ("--propensity", "0.5", "--cv", "2", "--max-depth", "1", "--direction", "maximize", "--control", "control")
    code, _, err = design(tmp_path / "d.csv", tmp_path / "out", *more)
    assert code == 0, err
    for command in (
        ("show", tmp_path / "out" / "tree.json"),
        ("predict", tmp_path / "out" / "tree.json", tmp_path / "d.csv", "-o", tmp_path / "p.csv"),
        ("report", tmp_path / "out" / "report.json", "-o", tmp_path / "r.html"),
    ):
        code, _, err = run(*command)
        assert code == 0, err
    assert "<script>alert(1)" not in (tmp_path / "r.html").read_text()


def names_in(place: str, name: str, label: str = "drug", category: str = "blue") -> pd.DataFrame:
    """A small trial in which something is called so."""
    column, rng = "age", np.random.default_rng(0)
    if place == "column":
        column = name
    elif place == "label":
        label = name
    else:
        category = name
    frame = pd.DataFrame({column: rng.integers(0, 50, 80), "colour": np.where(rng.random(80) < 0.5, category, "other")})
    frame["arm"] = np.where(rng.random(80) < 0.5, label, "control")
    frame["y"] = (frame[column] > 25) * (frame.arm == label) * 2 + rng.normal(size=80).round(2)
    return frame


def test_numbers_at_the_ends_of_names_are_read_as_before():
    assert later_than_baseline(["cd40", "cd420", "x10", "x11", "x1_2"]) == {"cd420": "cd40"}
    assert later_words("weight_2", "weight_1", number=True) == "counts on from the outcome's, 'weight_1'"
    assert later_words("weight_1", "weight_2", number=True) == ""
    assert later_than_baseline(["n" * 1_000_000, "x" + "1" * 1_000_000, "n1" * 500_000]) == {}
