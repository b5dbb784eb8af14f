"""Columns of tables: a heading and a format each."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from policytree.evaluation.formatting import BOUNDS, NUMBER, cell, of_column, records, rule_columns, text_frame


@pytest.mark.parametrize("missing", [None, np.nan, np.inf, -np.inf, np.float32("nan")])
def test_a_cell_shows_nothing_where_a_number_is_missing(missing):
    row = {"value": 1234.5, "lower": missing, "upper": 2.0}
    assert cell(NUMBER, row, digits=1) == "1,234.5"
    assert cell(BOUNDS, row, digits=1) == "-"
    assert cell((NUMBER, f" {BOUNDS}"), row, digits=1) == "1,234.5"  # further parts are left out by themselves
    assert cell(("", BOUNDS), row, digits=1) == ""


@pytest.mark.parametrize("name", ["1%", "gain.value", "a[0]", "x{y}", "a:b", "a!r", "0"])
def test_a_column_may_have_any_name(name):
    assert cell(of_column(name, ",.{digits}f"), {name: 1000.0}, digits=1) == "1,000.0"
    if not set("{}:!") & set(name):
        assert cell(f"{{{name}:.2f}}", {name: 0.5}) == "0.50"


def test_rows_of_a_frame_have_their_named_index():
    frame = pd.DataFrame({"n": [1, 2]}, index=pd.Index(["a", "b"], name="arm"))
    assert records(frame) == [{"arm": "a", "n": 1}, {"arm": "b", "n": 2}]
    assert records(frame.reset_index(drop=True)) == [{"n": 1}, {"n": 2}]
    shown = text_frame(frame, {"rows": "{n} of {arm}"})
    assert shown["rows"].tolist() == ["1 of a", "2 of b"] and shown.index.equals(frame.index)


def test_numbers_of_rules_have_marks_between_thousands_throughout():
    frame = pd.DataFrame({
        "value": [5400.0, 5300.0, 5400.0], "standard_error": 12.0, "lower": 5000.0, "upper": 6000.0,
        "difference": [np.nan, 1100.0, 0.0], "difference_standard_error": [np.nan, 10.0, 0.0],
        "difference_lower": [np.nan, 1000.0, 0.0], "difference_upper": [np.nan, 1200.0, 0.0],
    }, index=["tree", "other", "twin"])  # fmt: skip
    shown = text_frame(frame, rule_columns("tree", 0.9), digits=0)
    assert shown.columns.tolist() == ["value", "std. error", "90% interval", "tree - rule", "90% interval "]
    assert shown.loc["other"].tolist() == ["5,300", "12", "[5,000, 6,000]", "+1,100", "[1,000, 1,200]"]
    assert shown.loc["tree"].tolist()[3:] == ["", ""] and shown.loc["twin"].tolist()[3:] == ["same", ""]
