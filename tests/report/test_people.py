"""Who was studied: Table 1 against hand calculation, the flow of rows by kind of study, and tables for a paper."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from policytree import DRPolicyTree, Study
from policytree.diagnostics import baseline_table
from policytree.exceptions import InputError
from policytree.report.content import Content, Fold, Section, Table
from policytree.report.latex import to_latex
from policytree.report.study_report import StudyReport

FRAME = pd.DataFrame({
    "arm": ["b", "a", "b", "a", "b"], "age": [20.0, 30.0, np.nan, 50.0, 70.0], "sick": [0, 1, 1, 1, 0],
    "town": ["X", "Y", "Z", "X", None],
})  # fmt: skip


def test_table_1_is_what_pandas_counts():
    table = baseline_table(FRAME["arm"], X=FRAME[["age", "sick", "town"]])
    assert list(table.columns) == ["all", "a", "b", "largest difference"]
    assert table.loc["n"].tolist() == ["5", "2", "3", ""]
    mean, deviation = FRAME["age"].mean(), FRAME["age"].std()
    assert table.loc["age", "all"] == f"{mean:.1f} ({deviation:.1f})" == "42.5 (22.2)"
    assert table.loc["age, missing"].tolist() == ["1 (20.0%)", "0 (0.0%)", "1 (33.3%)", ""]
    assert table.loc["sick"].tolist()[:3] == ["3 (60.0%)", "2 (100.0%)", "1 (33.3%)"]
    assert table.loc["town=missing", "b"] == "1 (33.3%)" and table.loc["town=X", "a"] == "1 (50.0%)"
    spread = np.sqrt((np.var([30.0, 50.0]) + np.var([20.0, 70.0])) / 2)
    assert table.loc["age", "largest difference"] == f"{5.0 / spread:.2f}"


def test_weights_count_in_means_and_shares_and_not_in_rows():
    weight = np.array([1.0, 3.0, 1.0, 1.0, 2.0])
    table = baseline_table(FRAME["arm"], X=FRAME[["age", "sick"]], sample_weight=weight)
    assert table.loc["sick", "a"] == "2 (100.0%)" and table.loc["sick", "all"] == "3 (62.5%)"
    assert table.loc["age", "a"].startswith("35.0 (")
    equal = baseline_table(FRAME["arm"], X=FRAME[["age", "sick"]], sample_weight=np.full(5, 7.0))
    pd.testing.assert_frame_equal(equal, baseline_table(FRAME["arm"], X=FRAME[["age", "sick"]]))


def test_without_covariates_there_is_no_table():
    with pytest.raises(InputError, match="X is missing; pass the covariates to describe"):
        baseline_table(FRAME["arm"], X=None)


def test_a_treatment_may_be_called_as_everybody_is():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"arm": np.repeat(["all", "few"], 60), "age": rng.normal(size=120), "y": rng.normal(size=120)})
    study = Study(table, treatment="arm", outcome="y", propensity=0.5, direction="maximize")
    report = StudyReport(DRPolicyTree(max_depth=0, cv=2, random_state=0).fit(study), study)
    flow = next(block for block in report.content.section("people").blocks if isinstance(block, Table))
    assert flow.columns == ("rows", "all", "all", "few") and flow.rows[0] == ("received", "120", "60", "60")


def test_signs_of_latex_are_printed_and_not_obeyed():
    table = Table(("50% & more", "a_b"), (("\\input{x}", "$1"), ("#2", "~^{}")), "Caption \\ of {50%}")
    text = to_latex(Content("t", "s", (Section("k", "K", (Fold("f", (table,)),)),)))
    assert r"\textbackslash input\{x\}" in text and r"50\% \& more" in text and r"a\_b" in text and r"\$1" in text
    assert r"\caption{Caption \textbackslash{} of \{50\%\}}" in text and r"\toprule" in text
    assert "\\input" not in text.replace(r"\textbackslash input", "")
