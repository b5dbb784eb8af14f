"""Statements of a report; its text, page and JSON say the same."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from policytree import (
    DRPolicyTree,
    OptimalTreeClassifier,
    PolicyTree,
    RewardEstimator,
    Study,
    StudyReport,
    cross_val_policy_value,
)
from policytree.common.safe_text import visible
from policytree.constraints import Share
from policytree.evaluation import near_ties, rank_average_treatment_effect
from policytree.exceptions import InputError
from policytree.report.content import Code, Content, Facts, Fold, Steps, Table, Words
from policytree.report.described import About
from policytree.report.html import to_html
from policytree.report.text import to_text
from policytree.study.outcomes import Outcome
from policytree.weighting import LogitPropensity
from policytree.weighting.study_data import StudyData
from tests.report.studies import ARABIC, ARMS, CONTROL, EVIL, LONG, flow_of, follow, hostile_frame, learner

FIRST = ["verdict", "tree", "rule", "evidence", "warnings", "question"]  # for who decides
ORDER = [
    *FIRST, "prices", "check", "values", "optimism", "means", "people", "support", "heterogeneity", "sensitivity",
    "certificate", "methods", "reproduce",
]  # fmt: skip


def blocks_of(content: Content):
    """Every block, those in folds too."""
    todo = [block for section in content.sections for block in section.blocks]
    while todo:
        block = todo.pop(0)
        yield block
        if isinstance(block, Fold):
            todo = [*block.blocks, *todo]


def table_of(content: Content, key: str) -> Table:
    return next(block for block in content.section(key).blocks if isinstance(block, Table))


@pytest.fixture(scope="module")
def plain():
    """A PolicyTree of given rewards: no nuisances, no values."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.integers(20, 80, 300), "town": rng.choice(["A", "B"], 300)})
    rewards = pd.DataFrame({"no": np.zeros(300), "yes": np.where(X["age"] <= 40, 1.0, -1.0) + rng.normal(size=300)})
    model = PolicyTree(max_depth=1).fit(X, rewards)
    return model, rewards["yes"].rename("score"), rng.choice(["no", "yes"], 300), X, rewards


def test_sections_stand_in_their_order_and_say_what_the_results_say(hostile):
    report, (honest, values, test) = hostile
    content = report.content
    assert [section.key for section in content.sections] == ORDER
    assert [section.key for section in content.sections if not section.folded] == FIRST
    assert [s.folded for s in Content.from_dict(content.to_dict()).sections] == [s.folded for s in content.sections]
    assert content.section("verdict").blocks[0] == Words(report.verdict.proposal, "lead")
    assert report.verdict.rule == values.verdict.rule
    frame, shown = values.to_frame(), table_of(content, "values")
    assert [row[0] for row in shown.rows] == [row["rule"] for row in shown.numbers] == list(frame.index)
    assert [row["value"] for row in shown.numbers] == pytest.approx(frame["value"].tolist())
    words, *tables = (block for block in content.section("tree").blocks if isinstance(block, Table))
    assert not words.numbers, "the leaves in words"
    leaves = next(table for table in tables if table.numbers)
    assert [row[1] for row in words.rows] == [row[1] for row in leaves.rows], "a leaf's treatment stands with its path"
    assert [row["n"] for row in leaves.numbers] == honest.leaves["n", ""].tolist()
    assert [row[5] for row in leaves.rows] == honest.leaves["second_best", ""].tolist()
    assert content.section("heterogeneity").blocks[0].text == str(test)
    averages, slopes = (block for block in content.section("heterogeneity").blocks if isinstance(block, Table))
    assert not any("p" in name.split() for name in averages.columns)  # it would look like that of the average
    assert (slopes.columns[1], slopes.columns[-1]) == ("slope", "p (Holm)")
    status = dict(content.section("certificate").blocks[0].pairs)["status"]
    grid = honest.estimator.search_grid_
    assert status.startswith("optimal: no tree of depth 3 or less and 10 rows or more in every leaf")
    assert f"{grid.n_splits:,} possible splits of 4 covariates" in status
    assert f"the {len(honest.estimator.rewards_):,} rows that the tree was learnt from" in str(
        content.section("support")
    )


def test_rows_that_chose_and_that_judged_are_counted_and_tables_are_frames(hostile):
    report, (honest, *_) = hostile
    flow = flow_of(report)
    assert flow.loc["judged the rule", "all"] == len(honest.rows)
    assert flow.loc["chose the rule", "all"] + len(honest.rows) == flow.loc["received", "all"] == 500
    captions = [caption for caption, _ in report.tables()]
    assert "Covariates by treatment" in captions and "Flow of rows" in captions
    assert report.to_latex().count("\\begin{tabular}") == len(captions)


def test_rule_and_checklist_give_what_the_tree_predicts(hostile):
    """The steps, followed by somebody who knows nothing else, end with the tree's treatment for every row."""
    report, (honest, _, _) = hostile
    X, _, _ = hostile_frame()
    steps = next(b for b in report.content.section("rule").blocks if isinstance(b, Steps)).items

    assert [follow(steps, row) for _, row in X.iterrows()] == honest.estimator.predict(X).tolist()


def test_text_says_all_that_the_data_structure_says(hostile):
    report, _ = hostile
    text = "".join(report.to_text(width=3_000).split())
    for block in blocks_of(report.content):
        said = {
            Words: lambda b: [b.text], Facts: lambda b: [t for pair in b.pairs for t in pair], Code: lambda b: [b.text],
            Table: lambda b: [t for row in b.rows for t in row], Steps: lambda b: b.items,
        }.get(type(block), lambda b: [])(block)  # fmt: skip
        for words in said:
            assert "".join(visible(words).split()) in text


def test_text_keeps_its_width_and_its_lines_have_no_trailing_blanks(hostile):
    report, _ = hostile
    for width in (80, 96, 120):
        lines = report.to_text(width=width).splitlines()
        assert max(map(len, lines)) <= width
        assert all(line == line.rstrip() for line in lines)
    text = report.to_text()
    assert not set(text) & {"\x1b", "\u202e", "\x07"} and r"\x1b[31mb\u202ec\x07" in text


def test_json_gives_the_same_report_again(hostile, page, tmp_path):
    report, _ = hostile
    data = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    again = Content.from_dict(data)
    assert again.to_dict() == data
    assert to_text(again) == report.to_text(tmp_path / "r.txt") == (tmp_path / "r.txt").read_text(encoding="utf-8")
    assert to_html(again) == page == report.to_html(tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == page


def changes(data: dict):
    """The saved report, broken in many ways."""
    tree = next(k for k, section in enumerate(data["sections"]) if section["key"] == "tree")
    outline = next(k for k, block in enumerate(data["sections"][tree]["blocks"]) if block["block"] == "outline")
    table = next(k for k, block in enumerate(data["sections"][tree]["blocks"]) if block["block"] == "table")
    for path, value in (
        (["format"], "other"), (["title"], 3), (["sections"], None), (["sections", 0, "blocks", 0, "block"], "iframe"),
        (["sections", 0, "blocks", 0, "text"], ["x"]), (["sections", 0, "blocks", 0, "style"], "color: red"),
        (["sections", tree, "blocks", outline, "root"], {}),
        (["sections", tree, "blocks", outline, "root", "kind"], "x"),
        (["sections", tree, "blocks", outline, "root", "yes"], "no node"),
        (["sections", tree, "blocks", table, "rows", 0], ["too", "short"]),
    ):  # fmt: skip
        broken = copy.deepcopy(data)
        part = broken
        for step in path[:-1]:
            part = part[step]
        part[path[-1]] = value
        yield broken


def test_broken_reports_are_refused_in_a_sentence(hostile):
    data = hostile[0].to_dict()
    for broken in [*changes(data), [], None, "x", 3]:
        with pytest.raises(InputError, match="no saved report"):
            Content.from_dict(broken)
    for k, section in enumerate(data["sections"]):
        for j, block in enumerate(section["blocks"]):
            if block["block"] != "picture":
                continue
            for wrong in ({"kind": "other"}, {"data": {}}):
                broken = copy.deepcopy(data)
                broken["sections"][k]["blocks"][j] |= wrong
                with pytest.raises(InputError, match="picture"):
                    to_html(Content.from_dict(broken))


def test_a_tree_of_given_rewards_has_a_report_without_nuisances(plain):
    model, Y, T, X, rewards = plain
    ties = near_ties(model, X, rewards, max_depth=1)
    ranking = rank_average_treatment_effect({"youth <b>": -X["age"]}, rewards, held_out=True)
    report = StudyReport(model, Y, T, X=X, results=[ties, ranking], about=About(treatment="drug"))
    keys = [section.key for section in report.content.sections]
    assert {"ranking", "stability", "certificate"} < set(keys) and "support" not in keys and "warnings" not in keys
    text = " ".join(report.to_text().split())
    assert (
        "None: without held-out values nobody knows" in text
        and "Which treatment for whom, for the highest mean score?" in text
    )
    assert ranking.estimate.value == pytest.approx(float(table_of(report.content, "ranking").rows[0][1]), abs=0.01)
    assert "youth &lt;b&gt;" in report.to_html() and "youth <b>" not in report.to_html()
    assert "<StudyReport: Verdict" in repr(report) and 'class="policytree-report"' in report._repr_html_()
    assert "<script>" not in report._repr_html_()


def test_settings_stand_on_one_line_each(plain):
    _, Y, T, X, _ = plain
    steps = [(f"step_{k}", FunctionTransformer(np.asarray, check_inverse=False)) for k in range(12)]
    rewards = RewardEstimator(Pipeline([*steps, ("last", DummyRegressor())]), DummyClassifier(), cv=2)
    model = DRPolicyTree(rewards=rewards, max_depth=1, random_state=3, constraints=[Share("yes", most=0.5)]).fit(
        Y, T, X=X
    )
    facts = dict(StudyReport(model, Y, T, X=X).content.section("reproduce").blocks[0].pairs)
    assert (
        facts["seed"] == "3"
        and facts["max_depth"] == "1"
        and facts["constraints"] == "[Share(treatment='yes', most=0.5, least=None)]"
    )
    assert facts["rewards"].startswith("RewardEstimator(cv=2, model_propensity=DummyClassifier(), model_regression=")
    assert facts["rewards"].endswith("('last', DummyRegressor())]))")
    assert {*facts} == {"versions", "seed", "rewards", "max_depth", "constraints"}
    assert not any("\n" in text or "  " in text for text in facts.values())


def test_thresholds_are_short_and_send_every_row_the_same_way(plain):
    model, Y, T, X, _ = plain
    report = StudyReport(model, Y, T, X=X)
    assert report.tree.threshold[0] == 40.0 and model.tree_.threshold[0] == 40.5
    encoded = model.encoder_.encode(X)
    assert (report.tree.apply(encoded) == model.tree_.apply(encoded)).all()
    assert "age ≤ 40?" in report.to_text()


def test_what_cannot_be_reported_is_said_in_a_sentence(plain):
    model, Y, T, X, _ = plain
    with pytest.raises(InputError, match="results holds a str"):
        StudyReport(model, Y, T, X=X, results=["values"])
    with pytest.raises(InputError, match="more than one NearTies"):
        ties = near_ties(model, X, plain[4], max_depth=1)
        StudyReport(model, Y, T, X=X, results=[ties, ties])
    with pytest.raises(InputError, match="OptimalTreeClassifier"):
        StudyReport(OptimalTreeClassifier().fit(X[["age"]], T), Y, T, X=X)
    with pytest.raises(InputError, match="lacks the column"):
        StudyReport(model, Y, T, X=X[["age"]])
    with pytest.raises(Exception, match="not fitted"):
        StudyReport(DRPolicyTree(), Y, T, X=X)
    with pytest.raises(InputError, match="no section 'x'"):
        StudyReport(model, Y, T, X=X).content.section("x")


def test_known_chances_are_no_bars(plain):
    _, _, _, X, _ = plain
    rng = np.random.default_rng(3)
    T, Y = rng.choice(["no", "yes"], 300), rng.normal(size=300)
    model = learner(max_depth=0).fit(Y, T, X=X, propensity=0.5)
    content = StudyReport(model, Y, T, X=X).content
    kinds = [getattr(block, "kind", "") for block in content.section("support").blocks]
    assert "overlap" not in kinds and "balance" in kinds
    assert "Everybody had the same chances (no 0.5, yes 0.5)" in str(content.section("support"))
    balance = next(b for b in content.section("support").blocks if getattr(b, "kind", "") == "balance")
    assert sorted(balance.data["covariates"]) == ["age", "town=A"] and "after" not in balance.data
    assert content.section("rule").blocks[0].text.startswith("Everybody gets ")
    assert "with propensities known by design" in content.section("methods").blocks[0].text
    assert "a hidden confounder is no concern" in content.section("sensitivity").blocks[0].text


def test_a_logistic_model_of_propensities_has_its_table_with_clustered_errors():
    rng = np.random.default_rng(0)
    age = rng.normal(size=300)
    frame = pd.DataFrame({
        "age": age, "sex": np.resize(["f", "m"], 300), "arm": np.where(rng.logistic(size=300) < age, "drug", "none"),
        "y": age + rng.normal(size=300), "clinic": np.arange(300) % 30,
    })  # fmt: skip
    study = Study(frame, treatment="arm", outcome="y", cluster="clinic", direction="maximize", control="none")
    model = DRPolicyTree(LinearRegression(), LogitPropensity(), max_depth=1, cv=2, random_state=0).fit(study)
    support = StudyReport(model, study).content.section("support")
    (fold,) = (b for b in support.blocks if isinstance(b, Fold) and b.title == "The model of propensities")
    expected = LogitPropensity.table(frame["arm"], X=frame[["age", "sex"]], groups=frame["clinic"]).reset_index()
    pd.testing.assert_frame_equal(pd.DataFrame(list(fold.blocks[0].numbers)), expected)
    assert "against drug, with clustered standard errors" in fold.blocks[0].caption


def test_a_tree_of_other_rewards_is_said_to_be_one(plain):
    """It was found for them; its value, and its depth, are by doubly robust ones."""
    _, _, _, X, rewards = plain
    rng = np.random.default_rng(3)
    T = rng.choice(["no", "yes"], 300)
    Y = pd.Series(np.where(T == "yes", rewards["yes"], rewards["no"]), name="score")
    model = learner(method="ipw", direction="maximize").fit(Y, T, X=X, propensity=0.5)
    content = StudyReport(model, Y, T, X=X).content
    assert (
        "of doubly robust rewards (trees learnt from those by the method ipw)"
        in content.section("depth").blocks[0].text
    )
    said = content.section("methods").blocks[0].text
    assert "augmented inverse propensity weighting" in said and "with propensities known by design" in said
    assert "These judge rules; the tree was learnt from rewards of the same rows by the method ipw." in said
    assert "with the best mean of the rewards that it learnt from" in said and "best mean reward" not in said


@pytest.mark.parametrize("effect", [0.0, 1.0])
def test_where_no_tree_is_better_none_is_shown(effect):
    """One treatment for all: no tree, no rule in words, no interval of nothing, no power to find nothing."""
    rng = np.random.default_rng(0)
    n = 240
    X = pd.DataFrame({"age": rng.integers(20, 80, n)})
    T = pd.Series(rng.permutation(["no", "yes"] * (n // 2)), name="a")
    Y = pd.Series(effect * (T == "yes") + rng.normal(size=n), name="score")
    model = learner(max_depth=0, direction="maximize").fit(Y, T, X=X, propensity=0.5)
    values = cross_val_policy_value(
        model, StudyData.of(Y, T, X=X, propensity=0.5, control="no"), cv=2, n_repeats=1, random_state=0
    )
    content = StudyReport(model, Y, T, X=X, results=values).content
    assert not {"tree", "rule"} & {section.key for section in content.sections}
    text = to_text(content)
    assert "[0.000, 0.000]" not in text and "[0.00, 0.00]" not in text and "not recommended" not in text.lower()
    assert "The best tree on these rows asks nothing: it gives everybody" in " ".join(text.split())
    if effect:
        cells = {row[0]: row[3:] for row in table_of(content, "values").rows}
        assert cells["always yes"] == ("same", "") and cells["always no"][0].startswith("+")
        assert "yes" in str(values) and "same" in str(values)


def test_names_are_those_of_the_study(hostile):
    names = {EVIL, CONTROL, ARABIC, LONG}
    root = next(b for b in hostile[0].content.section("tree").blocks if type(b).__name__ == "Outline").root
    asked, given, todo = set(), set(), [root]
    while todo:
        node = todo.pop()
        if "treatment" in node:
            given.add(node["treatment"])
        else:
            asked.add(node["feature"])
            todo += [node["yes"], node["no"]]
    assert asked <= names and len(asked) >= 2 and given <= set(ARMS) and len(given) >= 2


def test_a_report_says_what_its_study_says():
    """Names, costs, chances and notes of a study, which nobody has to say again; ``about`` comes before them."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(20, 80, 200), "site": rng.integers(40, size=200), "load": 1.5})
    frame = frame.assign(arm=np.resize(["drug", "none"], 200), half="a", score=rng.normal(size=200))
    study = Study(
        frame, treatment="arm", outcome="score", direction="maximize", cluster="site", weights="load", strata=["half"],
        propensity={"drug": 0.5, "none": 0.5}, arm_costs={"drug": 0.25}, control="none", unit="points", name="A trial",
    )  # fmt: skip
    model = DRPolicyTree(max_depth=1, cv=2, random_state=0).fit(study)
    facts = dict(StudyReport(model, study).content.section("question").blocks[0].pairs)
    assert facts["data"] == "A trial" and facts["rows"] == "200 in 40 clusters (site)"
    assert facts["outcome"] == "score, points; higher is better" and facts["control"] == "none"
    assert facts["weights"] == "load" and facts["strata"].startswith("half (")
    assert facts["costs"].startswith("drug 0.25 (") and facts["propensity"] == "known: drug 0.5, none 0.5"
    said = StudyReport(model, study, about=About(source="Here", unit="marks")).content.section("question")
    assert dict(said.blocks[0].pairs)["data"] == "Here" and "score, marks" in dict(said.blocks[0].pairs)["outcome"]
    assert any("Nobody named the covariates" in getattr(block, "text", "") for block in said.blocks)
    with pytest.raises(InputError, match="StudyReport is given a study, which says X already; leave X out"):
        StudyReport(model, study, X=study.X)


@dataclass(frozen=True)
class PerYear(Outcome):
    """A count over the years in which it was counted."""

    column: str
    years: str

    def columns(self):
        return {"outcome": self.column, "years": self.years}

    def arguments(self, table):
        return {"Y": (table[self.column] / table[self.years]).rename(self.column)}

    def mean(self, observed, name=""):
        return f"mean {name or self.column} per year"


def test_a_report_names_the_average_outcome_as_its_kind_does():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(20, 80, 200), "falls": rng.integers(9, size=200), "years": 2.0})
    frame = frame.assign(arm=np.resize(["drug", "none"], 200))
    study = Study(
        frame, treatment="arm", outcome=PerYear("falls", "years"), direction="minimize", covariates=["age"],
        propensity=0.5,
    )  # fmt: skip
    model = DRPolicyTree(max_depth=1, cv=2, random_state=0).fit(study)
    report = StudyReport(model, study)
    arms = next(block for block in report.content.section("question").blocks if isinstance(block, Table))
    assert arms.columns[3] == study.mean_outcome == "mean falls per year"
    assert "for the lowest mean falls per year" in report.content.title
    renamed = StudyReport(model, study, about=About(outcome="falls at home"))
    assert "for the lowest mean falls at home per year" in renamed.content.title
