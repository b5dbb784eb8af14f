"""Whether rows can say anything: chance, means that move, means outside the outcomes, chances that reach the floor."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from policytree import DRPolicyTree, RewardEstimator, StudyReport, cross_val_policy_value
from policytree.diagnostics import check_rewards
from policytree.evaluation.policy_value.verdict import Reason
from policytree.study_check import KNOWN, LOOKS_RANDOMISED, check_study
from policytree.study_check.randomised import randomisation_test
from policytree.weighting.study_data import StudyData

# --- chance ---


def p_value(table, arm, **rows):
    return randomisation_test(table, StudyData.of(np.arange(len(arm), dtype=float), arm, **rows)).p_value


def covariates(rng, n):
    table = pd.DataFrame(rng.normal(size=(n, 4)) @ rng.normal(size=(4, 4)), columns=list("abcd"))
    table["town"] = rng.choice(["Oslo", "Rome", "Bari", "Lund"], p=[0.5, 0.3, 0.15, 0.05], size=n)
    table["lab"] = np.where(rng.random(n) < 0.2, np.nan, rng.exponential(size=n))
    return table


@pytest.mark.parametrize("kind", ["rows", "weights", "strata", "clusters"])
def test_under_chance_p_values_are_uniform(kind):
    found = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        table, arm, rows = covariates(rng, 240), rng.choice(["u", "v", "w"], p=[0.2, 0.3, 0.5], size=240), {}
        if kind == "weights":
            rows["sample_weight"] = rng.uniform(0.5, 2.0, size=240)
        elif kind == "strata":
            rows["strata"] = (table["a"] > 0).to_numpy().astype(int)
            arm = np.where(rng.random(240) < np.where(rows["strata"], 0.3, 0.6), "u", "v")
        elif kind == "clusters":
            rows["groups"] = np.repeat(np.arange(120), 2)
            arm, table["a"] = np.repeat(arm[:120], 2), np.repeat(table["a"].to_numpy()[:120], 2)
        found.append(p_value(table, arm, **rows))
    for level in (0.05, 0.2, 0.5):
        assert abs(np.mean(np.array(found) < level) - level) < 3.5 * np.sqrt(level * (1 - level) / 200)


@pytest.mark.parametrize("depends_on", ["a", "town", "lab"])
def test_dependence_is_found(rng, depends_on):
    """On a number, a category, and on whether a value is missing."""
    table = covariates(rng, 600)
    column = table[depends_on]
    likely = {"a": column.gt(0) if depends_on == "a" else None, "town": column.eq("Rome"), "lab": column.isna()}[
        depends_on
    ]
    arm = np.where(rng.random(600) < np.where(likely, 0.75, 0.4), "u", "v")
    assert p_value(table, arm) < 0.001


def test_chance_that_is_not_known_is_said_and_never_used(rng):
    X = covariates(rng, 300)
    T = rng.choice(["drug", "none"], size=300)
    Y = rng.normal(size=300)
    found = [f for f in check_study(Y, T, X=X).findings if f.kind == LOOKS_RANDOMISED]
    assert len(found) == 1 and found[0].severity == "note"
    share = np.mean(T == "drug")
    assert f"--propensity drug={share:.4g},none={1 - share:.4g}" in found[0].remedy
    assert not [
        f for f in check_study(StudyData.of(Y, T, X=X, known_propensity=True)).findings if f.kind == LOOKS_RANDOMISED
    ]
    sick = np.where(rng.random(300) < 1 / (1 + np.exp(-2 * X["a"])), "drug", "none")
    assert not [f for f in check_study(Y, sick, X=X).findings if f.kind == LOOKS_RANDOMISED]
    assert RewardEstimator(random_state=0, cv=2).fit(Y, T, X=X).models_propensity_ is not None


# --- rewards ---


def rewards(y, arm, labels, shift=0.0):
    """Inverse probability scores of a trial in which everybody had the same chances; the first arm's are off."""
    share = [np.mean(arm == label) for label in labels]
    frame = pd.DataFrame({k: np.where(arm == k, y, 0.0) / s for k, s in zip(labels, share, strict=True)})
    frame[labels[0]] += shift
    return frame


def kinds(check, severity):
    return {(f.kind, f.column) for f in check.of(severity)}


def test_means_that_agree_give_no_finding(rng):
    arm = rng.choice(["a", "b"], size=400)
    y = rng.normal(size=400)
    assert check_rewards(rewards(y, arm, ["a", "b"]), y, arm, by_chance=KNOWN).findings == ()


def test_a_mean_that_moves_is_serious_where_treatment_was_given_by_chance(rng):
    arm, y = rng.choice(["a", "b"], size=400), rng.uniform(size=400)
    moved = rewards(y, arm, ["a", "b"], 0.3)
    half = pd.DataFrame(0.5, index=range(400), columns=["a", "b"])
    for by_chance in (KNOWN, "treatment looks randomised"):
        check = check_rewards(moved, y, arm, propensity=half, by_chance=by_chance)
        assert kinds(check, "serious") == {("moved mean", "Treatment a")}
        assert f"though {by_chance}" in check.of("serious")[0].found and "z = " in check.of("serious")[0].found
    check = check_rewards(moved, y, arm)
    assert kinds(check, "serious") == set() and ("moved mean", "Treatment a") in kinds(check, "warning")


def test_known_chances_that_differ_between_rows_move_raw_means_and_that_is_no_finding(rng):
    x = rng.random(2000)
    chance = np.where(x < 0.5, 0.2, 0.8)
    arm = np.where(rng.random(2000) < chance, "a", "b")
    y = x + 0.1 * rng.normal(size=2000)
    known = pd.DataFrame({"a": chance, "b": 1 - chance})
    scores = pd.DataFrame({k: np.where(arm == k, y / known[k], 0.0) for k in "ab"})
    assert check_rewards(scores, y, arm, propensity=known, by_chance=KNOWN).findings == ()


@pytest.mark.parametrize("binary", [True, False])
def test_a_mean_outside_the_outcomes_is_serious(rng, binary):
    arm = rng.choice(["a", "b"], size=300)
    y = rng.integers(0, 2, size=300).astype(float) if binary else rng.normal(5.0, 1.0, size=300)
    far = rewards(y, arm, ["a", "b"], 1.5 if binary else 20.0)
    check = check_rewards(far, y, arm)
    assert ("outside range", "Treatment a") in kinds(check, "serious")


def test_chances_at_the_floor_are_serious_from_one_row_in_a_hundred(rng):
    arm = rng.choice(["a", "b"], size=1000)
    y = rng.normal(size=1000)
    for at_floor, severity in ((5, "note"), (30, "serious")):
        a = np.full(1000, 0.5)
        a[:at_floor] = 0.01
        chances = pd.DataFrame({"a": a, "b": 1 - a})
        check = check_rewards(rewards(y, arm, ["a", "b"]), y, arm, propensity=chances)
        assert ("no overlap", "Treatment a") in kinds(check, severity)
        assert f"{at_floor} of 1,000 rows" in str(check)


def test_few_rows_that_decide_are_serious(rng):
    arm = np.where(np.arange(1000) < 500, "a", "b")
    chance = np.where(np.arange(1000) < 495, 0.98, 0.02)
    chances = pd.DataFrame({"a": chance, "b": 1 - chance})
    y = rng.normal(size=1000)
    check = check_rewards(rewards(y, arm, ["a", "b"]), y, arm, propensity=chances)
    assert ("few effective rows", "Treatment a") in kinds(check, "serious")


# --- verdicts ---


@pytest.fixture
def seattle(rng):
    """Four towns, two treatments that could be had everywhere, a third one that nobody in Seattle could get."""
    n = 400
    X = pd.DataFrame({"age": rng.integers(20, 80, n), "town": rng.choice(["Seattle", "Bonn", "Lund", "Pisa"], size=n)})
    T = rng.choice(["none", "drug", "both"], size=n)
    T = np.where((X["town"] == "Seattle") & (T == "both"), "none", T)
    return X, pd.Series(T, name="arm"), pd.Series(rng.normal(size=n) + 2.0 * (T == "both"), name="score")


def test_a_report_cannot_say_what_to_do_where_some_could_not_be_treated(seattle):
    X, T, Y = seattle
    model = DRPolicyTree(max_depth=1, cv=2, random_state=0).fit(Y, T, X=X)
    values = cross_val_policy_value(model, StudyData.of(Y, T, X=X, control="none"), cv=2, n_repeats=1, random_state=0)
    lead, light, *_ = StudyReport(model, Y, T, X=X, results=values).content.section("verdict").blocks
    assert lead.text == "These data cannot say what to do."
    assert light.tone == "cannot-be-said" and light.text.startswith("Cannot be said: town is Seattle in ")
    there = (X["town"] != "Seattle").to_numpy()
    X, T, Y = X[there], T[there], Y[there]
    model = DRPolicyTree(max_depth=1, cv=2, random_state=0).fit(Y, T, X=X)
    values = cross_val_policy_value(model, StudyData.of(Y, T, X=X, control="none"), cv=2, n_repeats=1, random_state=0)
    lead = StudyReport(model, Y, T, X=X, results=values).content.section("verdict").blocks[0].text
    assert values.verdict.reason is not Reason.UNCLEAR and lead == values.verdict.proposal


def test_a_report_has_means_by_treatment(seattle):
    X, T, Y = seattle
    model = DRPolicyTree(max_depth=1, cv=2, random_state=0).fit(Y, T, X=X)
    section = StudyReport(model, Y, T, X=X).content.section("means")
    rows = {cells[0]: row for cells, row in zip(section.blocks[0].rows, section.blocks[0].numbers, strict=True)}
    for label in ("none", "drug", "both"):
        assert rows[label]["observed"] == pytest.approx(Y[label == T].mean())
        assert rows[label]["estimated"] == pytest.approx(model.reward_estimator_.rewards_[label].mean())
    assert "were estimated" in section.blocks[-1].text
