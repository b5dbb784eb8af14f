"""Sections that a report has where somebody asked: ranking, budgets, omitted variables, stability, near-ties."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from policytree import PolicyTree, StudyReport, heterogeneity_test
from policytree.evaluation import (
    budget_path,
    near_ties,
    omitted_variable_bounds,
    policy_stability,
    qini_curve,
    rank_average_treatment_effect,
)
from policytree.plotting.trees import PolicyTreeDisplay
from policytree.report.content import Picture, Table, Words
from policytree.report.described import About
from policytree.report.sections.missing import missing_section
from policytree.trees.text import export_text
from policytree.weighting.study_data import StudyData
from tests.report.studies import learner

COSTS = {"none": 0.0, "pill": 1.0}


@pytest.fixture(scope="module")
def study():
    """Covariates, treatments, outcomes: a pill helps those under 50."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.integers(20, 80, 300), "height": rng.normal(size=300).round(1)})
    T = rng.choice(["none", "pill"], 300)
    Y = np.where(X["age"] < 50, 2.0, -1.0) * (T == "pill") + rng.normal(size=300)
    return X, T, pd.Series(Y, name="score")


@pytest.fixture(scope="module")
def fitted(study):
    X, T, Y = study
    return learner(max_depth=1).fit(Y, T, X=X, propensity=0.5)


def section(study, fitted, key, *results, **about):
    X, T, Y = study
    report = StudyReport(fitted, Y, T, X=X, results=results, about=About(**about))
    found = report.content.section(key)
    html = report.to_html()
    assert all(word in html for word in ("<svg", found.title))
    return found, " ".join(report.to_text().split())


def tables(found) -> dict[str, Table]:
    return {block.caption: block for block in found.blocks if isinstance(block, Table)}


def test_rankings_and_qini_curves(study, fitted):
    X, _, _ = study
    held = fitted.rewards_
    ranking = rank_average_treatment_effect({"youth": -X["age"]}, held, held_out=True)
    predicted = pd.DataFrame({"none": 0.0, "pill": 50.0 - X["age"]})
    curve = qini_curve(predicted, held, COSTS, held_out=True)
    found, text = section(study, fitted, "ranking", ranking, curve, further={"ranking": "Say what they cost."})
    pictures = [block for block in found.blocks if isinstance(block, Picture)]
    assert [picture.data["xlabel"] for picture in pictures] == ["share treated, by priority", "budget per person"]
    toc, qini = (picture.data["lines"][0] for picture in pictures)
    assert toc["y"][-1] == pytest.approx(0.0, abs=1e-12)  # everybody gains what everybody gains
    assert qini["y"][-1] == pytest.approx(curve.gain[-1]) and qini["x"][-1] == pytest.approx(curve.spend[-1])
    assert str(curve) in text and str(ranking).splitlines()[1] in text
    assert "AUTOC: how much more those put first gain" in text and found.blocks[-1] == Words(
        "Say what they cost.", "note"
    )
    row = tables(found)["Priorities, by 300 held-out rows"].rows[0]
    assert row[0] == "youth" and float(row[1]) == pytest.approx(ranking.estimate.value, abs=0.01)


def test_averages_of_other_rows_say_which(study, fitted):
    """An average gain of half of the rows stands beside average effects of all: each says what it is of."""
    X, T, Y = study
    test = heterogeneity_test(Y, T, X=X, propensity=0.5, fitted=fitted.reward_estimator_, random_state=0)
    half = fitted.rewards_.iloc[::2]
    ranking = rank_average_treatment_effect(-X["age"].iloc[::2], half, held_out=True)
    for direction in ("maximize", "minimize"):
        found, text = section(study, fitted, "ranking", test, dataclasses.replace(ranking, direction=direction))
        assert found.blocks[0].text.startswith("pill instead of none, by 150 held-out rows: everybody gains")
        assert found.blocks[1].tone == "note" and "by all 300 rows. Here 150 rows judge" in found.blocks[1].text
        assert ("A gain above zero is so much less score." in found.blocks[1].text) == (direction == "minimize")
        assert "Average effects, by all 300 rows" in text
    rule = dataclasses.replace(ranking, treatment="Each person's best")
    assert "Here everybody has a treatment of their own." in section(study, fitted, "ranking", test, rule)[1]
    same = rank_average_treatment_effect(-X["age"], fitted.rewards_, held_out=True)
    found, _ = section(study, fitted, "ranking", test, same)
    assert not any("average effects" in block.text for block in found.blocks if isinstance(block, Words))


def test_a_plan_that_tells_nobody_apart_and_buys_nothing_is_said(study, fitted):
    predicted = pd.DataFrame({"none": 0.0, "pill": 45.0 - study[0]["age"]})
    curve = qini_curve(predicted, fitted.rewards_ - [0.0, 100.0], COSTS, held_out=True)
    found, text = section(study, fitted, "ranking", curve)
    assert len(next(b for b in found.blocks if isinstance(b, Picture)).data["lines"]) == 1
    assert "Without telling people apart nothing is predicted to be worth its cost." in text


def test_paths_of_budgets_are_marked_as_of_training_rows(study, fitted):
    X, _, _ = study
    path = budget_path(PolicyTree(max_depth=1), X, fitted.rewards_, budget_costs=COSTS)
    found, _ = section(study, fitted, "ranking", path)
    table = tables(found)["Best trees by budget"]
    assert table.columns[2] == "value (training rows)" and len(table.rows) == len(path)
    for row, spend, value in zip(table.rows, path.spend, path.values, strict=True):
        assert float(row[1]) == pytest.approx(spend, abs=1e-4) and float(row[2]) == pytest.approx(value, abs=1e-4)


def test_omitted_variables(study, fitted):
    _, T, Y = study
    rewards = fitted.reward_estimator_
    given = {"propensity": rewards.propensity_, "regression": rewards.regression_, "random_state": 0}
    benchmark = {"age": (rewards.propensity_, rewards.regression_ * 0.5)}
    bounds = omitted_variable_bounds("pill", Y, T, baseline="none", benchmarks=benchmark, held_out=True, **given)
    found, text = section(study, fitted, "sensitivity", bounds)
    assert f"{bounds.robustness_value:.1%} of both outcome and weights" in text
    rows = tables(found)["Covariates to compare an omitted variable with"].rows
    assert [row[0] for row in rows] == ["age"]
    assert float(rows[0][1]) == pytest.approx(bounds.benchmarks[0].outcome_gain, abs=1e-3)
    assert "a hidden confounder is no concern" not in text


def test_stability_and_near_ties(study, fitted):
    X, T, Y = study
    stability = policy_stability(fitted, Y, T, X=X, propensity=0.5, n_resamples=4, random_state=0)
    ties = near_ties(fitted, X, slack=0.05)
    found, text = section(study, fitted, "stability", stability, ties, further={"stability": "More of them."})
    assert "The whole pipeline again on 4 bootstrap samples." in text
    for sentence in (*stability.statements(unit="rows"), *ties.statements(unit="rows")):
        assert " ".join(sentence.split()) in text
    recur = tables(found)["How often the splits of this tree recur"]
    shares = stability.shown_split_shares()
    assert [row[1:] for row in recur.rows] == [
        (str(row.level), *(f"{share:.0%}" for share in row[3:])) for row in shares.itertuples()
    ]
    shown = StudyReport(fitted, Y, T, X=X).tree
    assert [row[0] for row in recur.rows] == [export_text(shown).partition("?")[0]] == ["age ≤ 49"]
    assert shares["split"].tolist() == ["age ≤ 49.5"], "the search's own threshold"
    assert found.blocks[-1] == Words("More of them.", "note")


def test_leaves_that_come_again_in_few_resamples_are_marked(study, fitted):
    """In the picture, in words and in the data; others are not."""
    X, T, Y = study
    stability = policy_stability(fitted, Y, T, X=X, propensity=0.5, n_resamples=4, random_state=0)
    leaves, policy = fitted.apply(X), fitted.predict(X)
    first = int(leaves[0])
    own, code = leaves == first, list(stability.treatments).index(policy[0])
    policies = np.tile(pd.Index(stability.treatments).get_indexer(pd.Index(policy)), (4, 1))
    policies[:3, own] = 1 - code  # three of four resamples give them the other treatment
    report = StudyReport(fitted, Y, T, X=X, results=dataclasses.replace(stability, policies=policies))
    assert report.fragile_leaves == {first: 0.25}
    tree = report.content.section("tree")
    picture = next(block for block in tree.blocks if isinstance(block, Picture))
    unsure = f"unsure: learnt again, {policy[0]} only 25 times in 100"
    assert picture.data["fragile"] == {str(first): unsure}
    text = report.to_text()
    assert text.count(unsure) == 1 and "Unsure: 1 leaf." in text
    drawn = PolicyTreeDisplay(report.tree, fragile={first: "fragile"}).plot().boxes_
    dashed = {node for node, box in drawn.items() if box.get_bbox_patch().get_linestyle() in ("--", "dashed")}
    assert dashed == {first} and drawn[first].get_text().endswith("fragile")
    steady = StudyReport(
        fitted, Y, T, X=X, results=dataclasses.replace(stability, policies=policies[3:].repeat(4, axis=0))
    )
    assert steady.fragile_leaves == {} and "unsure" not in steady.to_text().lower()


def test_what_was_not_asked_has_no_section(study, fitted):
    X, T, Y = study
    keys = [part.key for part in StudyReport(fitted, Y, T, X=X).content.sections]
    assert not {"ranking", "stability"} & set(keys)


def test_an_arm_without_a_row_stands_in_the_table_of_missing_outcomes():
    missing = np.array([False, True, False])
    seen = StudyData.of(np.zeros(3), ["a", "c", "c"], treatments=np.array(["a", "b", "c"]))
    study = SimpleNamespace(missing=missing, seen=seen, about=About(outcome="score"))
    section = missing_section(SimpleNamespace(study=study, rewards=None))
    (table,) = (block for block in section.blocks if isinstance(block, Table))
    assert table.rows == (("a", "1", "1", "100.0%"), ("b", "0", "0", "-"), ("c", "2", "1", "50.0%"))
