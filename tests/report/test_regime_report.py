"""The report of a regime: what it says is what was learnt, its checklist gives what the regime predicts."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyRegressor

from policytree import DRPolicyTree
from policytree.exceptions import InputError
from policytree.regimes import RegimeReport, Stage, TreatmentRegime, cross_val_regime_value
from policytree.regimes.checking import check_stages
from policytree.report.content import Content, Facts, Fold, Outline, Picture, Steps, Table, Words
from policytree.report.described import About
from policytree.report.html import to_html
from policytree.report.sections.regimes.rule import FEWEST
from policytree.trees.labels import Label
from tests.report.browser import ASKED, measure
from tests.report.studies import EVIL, follow, learner
from tests.report.test_page import Page
from tests.support.regimes import smart, two_stages

ORDER = [
    "verdict", "tree", "rule", "example", "warnings", "question", "limits", "values", "support", "certificate",
    "methods", "reproduce",
]  # fmt: skip


@pytest.fixture(scope="module")
def stages() -> list[Stage]:
    return smart(240)


@pytest.fixture(scope="module")
def regime(stages) -> TreatmentRegime:
    return TreatmentRegime(learner(max_depth=2, min_samples_leaf=10), random_state=0).fit(stages)


@pytest.fixture(scope="module")
def values(regime, stages):
    return cross_val_regime_value(regime, stages, cv=2, n_repeats=1, random_state=0)


@pytest.fixture(scope="module")
def report(regime, stages, values) -> RegimeReport:
    """As if the verdict had been to use the regime, so that its trees stand at the top."""
    about = About(unit="points", warnings=("Some were lost.",), command="policytree design visits.csv")
    if not values.verdict.use_tree:
        better = next(r for r in type(values.verdict.reason) if r.name == "TREE_BETTER")
        values = replace(values, verdict=replace(values.verdict, reason=better, rule="regime"))
    return RegimeReport(regime, stages, values, about=about)


def only(kind, section):
    """The first block of a kind."""
    return next(block for block in section.blocks if isinstance(block, kind))


def histories(stages) -> list[pd.DataFrame]:
    """Return the histories of the eligible people at every stage."""
    course = check_stages(stages)
    return [
        course.history(s, np.flatnonzero(each.eligible)).set_axis(np.flatnonzero(each.eligible))
        for s, each in enumerate(course.decisions)
    ]


def test_sections_stand_in_order_and_say_what_was_computed(report, regime, values):
    content = report.content
    assert [section.key for section in content.sections] == ORDER
    assert [s.key for s in content.sections if s.folded] == ORDER[ORDER.index("values") :]
    table = only(Table, content.section("values"))
    frame = values.to_frame()
    assert [row["rule"] for row in table.numbers] == list(frame.index)
    assert [row["value"] for row in table.numbers] == pytest.approx(frame["value"].tolist())
    assert table.columns[3] == "regime - rule" and table.strong == (0,)
    facts = [block for block in content.section("verdict").blocks if isinstance(block, Facts)]
    once = dict(pair for block in facts for pair in block.pairs)["decide once, or again?"]
    assert once == values.against_once_text() and "deciding once" in once
    overlap = only(Table, content.section("support"))
    by_name = {row["sequence"]: row for row in overlap.numbers}
    assert {name: row["people"] for name, row in by_name.items()} == values.sequences["people"].to_dict()
    assert [row["people"] for row in overlap.numbers] == sorted((r["people"] for r in overlap.numbers), reverse=True)
    proofs = [dict(b.pairs) for b in content.section("certificate").blocks if isinstance(b, Facts)]
    assert len(proofs) == 2 and all("no tree of depth 2 or less" in proof["status"] for proof in proofs)
    assert "the regime as a whole has no proof" in content.section("certificate").blocks[0].text
    picture = only(Picture, content.section("tree"))
    assert [stage["name"] for stage in picture.data["stages"]] == ["stage 1", "second line"]
    assert "given outcome (stage 1) = 0" in picture.data["stages"][1]["eligible"]
    data = json.loads(json.dumps(report.to_dict()))
    assert Content.from_dict(data).to_dict() == data


def test_labels_are_of_outcome_and_histories_and_of_no_treatment(regime, stages):
    labels = {"outcome": Label("Score", "points"), "severity": "Severity"}
    report = RegimeReport(regime, stages, about={"labels": labels})
    assert "mean total Score (points)" in report.content.title
    facts = dict(only(Facts, report.content.section("question")).pairs)
    assert facts["outcome"].startswith("total Score, points") and "look at Severity, " in facts["stage 1"]
    alone = RegimeReport(regime, stages, about={"labels": {"outcome": "Score"}})
    assert "mean total Score" in alone.content.title
    assert [tree.node_count for _, tree in alone.trees] == [tree.node_count for _, tree in report.trees]
    for wrong, words in (
        ({"second": Label(values={"more": "M"})}, "labels name values of the treatment 'second'"),
        ({"severity": "Severity", "agge": "Age"}, "labels name 'agge', which is no column"),
        ({"site": Label(values={"nrth": "North"})}, "labels name 'nrth', which no row has, in column 'site'"),
    ):
        with pytest.raises(InputError, match=words):
            RegimeReport(regime, stages, about={"labels": wrong})


def test_means_as_observed_are_means_of_all_that_followed(report, stages):
    table = only(Table, report.content.section("question"))
    got, total = pd.Series(stages[0].T), stages[0].Y + stages[1].Y
    for row in table.numbers:
        if row["stage"] == "stage 1":
            own = (got == row["treatment"]).to_numpy()
            assert row["mean"] == pytest.approx(total[own].mean())
        else:
            own = stages[1].T.eq(row["treatment"]).to_numpy()
            assert row["mean"] == pytest.approx(stages[1].Y[own].mean())
        assert row["people"] == own.sum()


def test_the_checklist_gives_what_the_regime_predicts(report, regime, stages):
    lists = [block.items for block in report.content.section("rule").blocks if isinstance(block, Steps)]
    assert len(lists) == 2
    predicted = [regime.predict(stages[:1]), regime.predict(stages)]
    for steps, table, given in zip(lists, histories(stages), predicted, strict=True):
        assert [follow(steps, row) for _, row in table.iterrows()] == given[table.index].tolist()
    said = [b.text for b in report.content.section("rule").blocks if isinstance(b, Words)]
    assert said[:2] == ["At stage 1, everybody:", "At second line, only given outcome (stage 1) = 0:"]


def test_the_example_is_treated_as_the_regime_says(report, regime, stages):
    """Its values, read from the page, come to the treatments that it names; enough people are behind it."""
    section = report.content.section("example")
    pairs = only(Facts, section).pairs
    assert int(section.blocks[1].text.split("the ")[1].split(" people")[0].replace(",", "")) >= FEWEST
    lists = [block.items for block in report.content.section("rule").blocks if isinstance(block, Steps)]
    assert [name for name, _ in pairs] == ["stage 1", "second line"]
    before: dict[str, str] = {}
    for (_, text), steps, table in zip(pairs, lists, histories(stages), strict=True):
        known = dict(part.split(" = ") for part in text.split(". ")[0].split(", "))
        row = pd.Series({name: _typed(known.get(name, "missing")) for name in table.columns})
        assert text.endswith(f"Give {follow(steps, row)}.")
        earlier = {name.removesuffix(" (stage 1)"): value for name, value in known.items() if "(stage 1)" in name}
        assert {name: before[name] for name in earlier if name in before} == earlier, "one person has one value"
        before = known


def _typed(text: str):
    if text == "missing":
        return np.nan
    try:
        return float(text)
    except ValueError:
        return text


def test_a_regime_that_is_not_recommended_is_folded(regime, stages, values):
    none = next(r for r in type(values.verdict.reason) if r.name == "NONE_BETTER")
    doubtful = replace(values, verdict=replace(values.verdict, reason=none, rule="status quo"))
    content = RegimeReport(regime, stages, doubtful).content
    tree = content.section("tree")
    assert tree.folded and tree.title.endswith("(not recommended)")
    assert tree.blocks[0].tone == "warning" and isinstance(tree.blocks[2], Fold)
    assert [block for block in tree.blocks[2].blocks if isinstance(block, Outline)]


def test_without_values_nothing_is_recommended(regime, stages):
    content = RegimeReport(regime, stages).content
    assert content.section("verdict").blocks[0].text.startswith("None: without held-out values")
    assert "cross_val_regime_value" in content.section("values").blocks[0].text


def test_names_are_never_markup():
    """Column, stage and treatment names that would break a page; the form of every stage is in the page."""
    rng = np.random.default_rng(0)
    x, arms = rng.normal(size=200), np.array(["</script><b>", "B & 'q'"])
    first, second = rng.integers(0, 2, 200), rng.integers(0, 2, 200)
    outcome = pd.Series(first * x + second * np.sign(x) + rng.normal(size=200), name=EVIL)
    stages = [
        Stage(arms[first], X=pd.DataFrame({EVIL: x}), propensity=0.5, name=EVIL),
        Stage(arms[second], Y=outcome, propensity=0.5, name="later"),
    ]
    fitted = TreatmentRegime(learner(max_depth=1), random_state=0).fit(stages)
    page = to_html(RegimeReport(fitted, stages).content)
    parsed = Page(page)
    tags = [tag for tag, _ in parsed.elements]
    assert tags.count("script") == 2 and "b" not in tags
    assert EVIL in "".join(parsed.texts)
    assert sum("data-form" in attributes for _, attributes in parsed.elements) == 2


def test_other_kinds_of_regimes():
    """Three stages with many sequences, a smaller outcome is better, people lost, weights, clusters, one leaf."""
    rng = np.random.default_rng(3)
    n = 300
    stages, total = [], np.zeros(n)
    for s in range(3):
        arm = rng.choice(["a", "b", "c"], n)
        total = (arm == "a") * 1.0 + rng.normal(size=n)
        outcome = np.where(rng.random(n) < 0.05 * (s == 2), np.nan, total)
        stages.append(Stage(arm, X=pd.DataFrame({"x": rng.normal(size=n)}), Y=pd.Series(outcome, name="pain")))
    weight, groups = rng.integers(0, 3, n), rng.integers(0, 60, n)
    model = learner(max_depth=0, direction="minimize")
    regime = TreatmentRegime(model).fit(stages, sample_weight=weight, groups=groups, missing_outcome="weight")
    report = RegimeReport(regime, stages, sample_weight=weight, groups=groups, about=About(further={"values": "More."}))
    content, text = report.content, report.to_text()
    assert content.title == "Which treatment for whom, and when, for the lowest mean total pain?"
    assert content.subtitle == "Rules for 3 decisions, learnt from data, not judged"
    assert "At stage 2, everybody: give " in text and "Everybody gets " in text
    assert "people were lost after it" in text and "taken to be like others" in text
    assert "was not said to be randomised at stage 1 and stage 2 and stage 3" in " ".join(text.split())
    assert f"300 in {len(np.unique(groups))} clusters" in text
    folded = [b for b in content.section("support").blocks if isinstance(b, Fold)]
    assert folded[0].title == "11 more sequences"
    assert content.section("values").blocks[-1] == Words("More.", "note")
    to_html(content)
    first = only(Table, content.section("question")).numbers[0]
    own = (np.asarray(stages[0].T) == "a") & ~np.isnan(sum(np.asarray(stage.Y) for stage in stages))
    outcome = sum(np.asarray(stage.Y) for stage in stages)[own]
    assert first["mean"] == pytest.approx(np.average(outcome, weights=weight[own]))


def test_joint_search_says_that_both_trees_are_proved():
    stages = two_stages(200, 0)
    model = DRPolicyTree(DummyRegressor(), max_depth=1, cv=2)
    regime = TreatmentRegime(model, search="joint", random_state=0).fit(stages)
    report = RegimeReport(regime, stages)
    proof = report.content.section("certificate").blocks[0].text
    assert "no pair of trees of depth one has a better mean score" in proof
    assert "sum of" not in report.content.subtitle and "Among all pairs" in report.to_text()


def test_what_does_not_belong_together_is_refused(regime, stages, values):
    with pytest.raises(InputError, match="regime must be a TreatmentRegime; got"):
        RegimeReport(learner(), stages)
    with pytest.raises(InputError, match=r"not those of the fit \(stage 1, second line; 240 people\); pass those"):
        RegimeReport(regime, stages[:1])
    with pytest.raises(InputError, match="values must be the table of cross_val_regime_value"):
        RegimeReport(regime, stages, "better")
    other = [stages[0], replace(stages[1], T=stages[1].T.replace("stop", "end"), propensity=None, costs=None)]
    with pytest.raises(InputError, match="treatments of second line are not those of the fit"):
        RegimeReport(regime, other)
    few = smart(200)
    fitted = TreatmentRegime(learner(max_depth=1), random_state=0).fit(few)
    with pytest.raises(InputError, match="not about these people"):
        RegimeReport(fitted, few, values)
    with pytest.raises(InputError, match="leave instrument out"):
        RegimeReport(regime, stages, about=About(instrument="z"))


FORMS = (
    ASKED
    + """
return [...document.querySelectorAll("form.route")].map((form) => {
  const first = () => form.querySelector("input") ? VALUE : form.querySelector("select").options[0].text;
  return [conclusion(form, first), document.querySelectorAll(".leaf.on").length];
});
"""
)


@pytest.mark.slow
def test_every_stage_has_a_form_that_answers_as_its_tree(report, tmp_path):
    outlines = [b for b in report.content.section("tree").blocks if isinstance(b, Outline)]
    for value in (-1.0, 1.0):
        found = measure(report.to_html(), tmp_path, FORMS.replace("VALUE", str(value)), 1280)
        assert [leaves for _, leaves in found] == [1, 2]  # each form lights one leaf of its own tree
        for (text, _), block in zip(found, outlines, strict=True):
            node = block.root
            while "question" in node:
                given = value if node["kind"] == "numeric" else _first_choice(block.root)
                yes = given <= node["value"] if node["kind"] == "numeric" else given == node["value"]
                node = node["yes"] if yes else node["no"]
            assert text.startswith(f"Give {node['treatment']}.")


def _first_choice(root):
    """The first category that a form offers for the one text column that is asked about."""
    todo = [root]
    while todo:
        node = todo.pop(0)
        if node.get("kind") == "category":
            return node["value"]
        todo += [node[side] for side in ("yes", "no") if side in node]
    return None


def test_scores_beyond_belief_leave_nothing_to_say():
    """An outcome model that is off by a thousand: mean scores lie outside all outcomes, whatever the intervals say."""
    stages = smart(240)
    absurd = DRPolicyTree(DummyRegressor(strategy="constant", constant=1000.0), max_depth=1, cv=2)
    regime = TreatmentRegime([learner(max_depth=1), absurd], random_state=0).fit(stages)
    values = cross_val_regime_value(regime, stages, cv=2, n_repeats=1, baselines=False, random_state=0)
    report = RegimeReport(regime, stages, values)
    found = [block.text for block in report.content.section("check").blocks]
    assert found and all(text.startswith("Serious, at second line: ") for text in found[:1])
    assert "second line" in str(report.values.verdict) and not report.values.verdict.use_tree
    lead, light = report.content.section("verdict").blocks[:2]
    assert lead.text == "These data cannot say what to do." and light.tone == "cannot-be-said"
    assert report.values.verdict.doubts[0] in light.text
