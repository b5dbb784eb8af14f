"""First screen of a report: a proposal, its numbers, its assumptions, and the outcome that counts."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from policytree import DRPolicyTree, Study, StudyReport, cross_val_policy_value
from policytree.evaluation import policy_stability
from policytree.evaluation.policy_value.given_effects import given_effects
from policytree.report.amounts import Amounts
from policytree.report.content import Facts, Table, Words
from policytree.report.sections.first_screen import _needed
from policytree.study import Event, MayBeMissing


def table(n: int = 600, *, seed: int = 0) -> pd.DataFrame:
    """A drug that prevents relapse in people over fifty, and brings it about in others."""
    rng = np.random.default_rng(seed)
    age, arm = rng.integers(20, 80, n).astype(float), rng.permutation(np.resize(["drug", "placebo"], n))
    chance = 0.5 + (arm == "drug") * np.where(age > 50, -0.35, 0.3)
    return pd.DataFrame({"age": age, "arm": arm, "relapse": (rng.random(n) < chance).astype(float)})


def reported(study: Study, n_repeats: int = 2):
    model = DRPolicyTree(LinearRegression(), LogisticRegression(), max_depth=1, cv=2, random_state=0).fit(study)
    values = cross_val_policy_value(model, study, cv=2, n_repeats=n_repeats, random_state=0, second_opinion=None)
    return StudyReport(model, study, results=values), values


@pytest.fixture(scope="module")
def trial():
    return reported(
        Study(table(), treatment="arm", outcome="relapse", direction="minimize", control="placebo", propensity=0.5)
    )


def verdict_blocks(report):
    return report.content.section("verdict").blocks


def test_the_proposal_is_the_rule_path_by_path(trial):
    lead = verdict_blocks(trial[0])[0]
    assert lead.tone == "lead" and lead.text.startswith("Give placebo to people whose age is at most ")
    assert lead.text.endswith("; give drug to everybody else.")
    assert trial[0].content.title == "Which treatment for whom, for the lowest share of people with relapse = 1?"


def test_one_effect_has_one_number_and_people_needed_are_those_who_change(trial):
    report, _ = trial
    gain, changed = report.verdict.gain, report.verdict.changed
    large, facts = (dict(b.pairs) for b in verdict_blocks(report) if isinstance(b, Facts))
    (against,) = (name for name in large if name.startswith("people with relapse = 1 than if everybody gets placebo"))
    assert large[against] == f"{-100 * gain.value:.1f} fewer of 100"
    assert against.endswith(f"; {100 * changed:.0f} of 100 people get drug instead of placebo")
    assert f"95% CI {-100 * gain.upper:.1f} to {-100 * gain.lower:.1f}" in against, "counted as the word counts"
    number, fewest, most = (int(np.ceil(changed / -each)) for each in (gain.value, gain.lower, gain.upper))
    assert facts["number needed to treat"] == (
        f"{number} people who change, against placebo for everybody (95% CI {fewest} to {most})"
    )


def test_people_needed_are_rounded_up():
    """The example of the Cochrane Handbook 5.1, 12.5.4.1: a difference of .12 needs 9 people, one of .22 needs 5."""
    gain = SimpleNamespace(value=-0.12, lower=-0.22, upper=-0.08, over="always placebo")
    verdict = SimpleNamespace(changed=1.0)
    told = SimpleNamespace(verdict=verdict, amounts=Amounts(True, "", 0.95))
    assert _needed(told, gain) == "9 people who change, against placebo for everybody (95% CI 5 to 13)"
    verdict.changed, gain.value = 0.6, -0.1  # 0.6 / 0.1 is 5.999..., and 0.27 / 0.03 is 9.000...02
    assert _needed(told, gain).startswith("6 people")
    verdict.changed, gain.value = 0.27, -0.03
    assert _needed(told, gain).startswith("9 people")


@pytest.fixture(scope="module")
def rivalled():
    """A trial of a drug that helps most people, so that the drug for everybody is the real alternative."""
    frame = table(1200, seed=3)
    rng = np.random.default_rng(4)
    helped = np.where(frame["age"] > 35, -0.35, 0.3)
    frame["relapse"] = (rng.random(1200) < 0.5 + (frame["arm"] == "drug") * helped).astype(float)
    return reported(
        Study(frame, treatment="arm", outcome="relapse", direction="minimize", control="placebo", propensity=0.5)
    )


def test_a_tree_is_told_against_the_best_single_treatment_too(rivalled):
    """Its gain over the control flatters it: the proposal rests on the smaller gain over the drug for everybody."""
    report, values = rivalled
    verdict, best = report.verdict, values.against_best
    assert verdict.use_tree and best.best == "always drug" and verdict.gain.over == "always placebo"
    assert -verdict.gain.upper > -best.upper > 0
    large, facts = (dict(b.pairs) for b in verdict_blocks(report) if isinstance(b, Facts))
    over_best, over_control = large
    assert over_control.endswith(f"; {100 * verdict.changed:.0f} of 100 people get drug instead of placebo")
    assert large[over_control] == f"{-100 * verdict.gain.value:.1f} fewer of 100"
    assert over_best == (
        "people with relapse = 1 than if everybody gets drug, the best single treatment "
        f"(95% CI {-100 * best.upper:.1f} to {-100 * best.lower:.1f}); "
        f"{100 * (1 - verdict.changed):.0f} of 100 people get placebo instead of drug"
    )
    assert large[over_best] == f"{-100 * best.value:.1f} fewer of 100"
    assert facts["could overturn it"] == (
        f"other harms, or costs, that weigh as much as {-100 * best.upper:.1f} of 100 people with relapse = 1 (the "
        "gain's lower limit against drug for everybody); people unlike those studied"
    ), "drawn by lot: no hidden confounder"
    assert verdict.to_dict()["other_than_best"] == pytest.approx(1 - verdict.changed)


def test_intervals_that_cover_less_than_stated_are_told_where_the_proposal_rests_on_them():
    """Those of a rule learnt in one cross-fitting; one treatment for everybody is learnt from nobody."""
    study = Study(table(), treatment="arm", outcome="relapse", direction="minimize", control="placebo", propensity=0.5)
    report, values = reported(study, n_repeats=1)
    caution = "intervals of learnt rules cover about 90 % where 95 % are stated"
    assert values.validation.caution == caution and report.verdict.use_tree
    light = verdict_blocks(report)[2].text
    assert light.startswith(f"Supported. I{caution[1:]} (see below). Nothing speaks against the proposal as a whole: ")
    facts = dict(pair for b in verdict_blocks(report) if isinstance(b, Facts) for pair in b.pairs)
    assert f" for everybody; {caution}); people unlike" in facts["could overturn it"]


def test_a_treatment_for_everybody_has_one_gain():
    frame = table(800, seed=1)
    rng = np.random.default_rng(2)
    frame["relapse"] = (rng.random(800) < 0.6 - 0.3 * (frame["arm"] == "drug")).astype(float)
    study = Study(frame, treatment="arm", outcome="relapse", direction="minimize", control="placebo", propensity=0.5)
    report, _ = reported(study, n_repeats=1)
    assert "Supported. Nothing speaks against it: " in verdict_blocks(report)[2].text
    assert report.verdict.rule == "always drug" and report.verdict.other_than_best is None
    large, facts = (dict(b.pairs) for b in verdict_blocks(report) if isinstance(b, Facts))
    assert len(large) == 2 and large["people get drug instead of placebo"] == "100 of 100"
    least = -100 * report.verdict.gain.upper
    assert (
        f"{least:.1f} of 100 people with relapse = 1 (the gain's lower limit against placebo for everybody)"
        in (facts["could overturn it"])
    )


def test_people_for_whom_the_rule_is_unsure_are_counted_on_page_one(trial):
    assert not [b for b in verdict_blocks(trial[0]) if getattr(b, "tone", "") == "warning"]
    study = Study(table(), treatment="arm", outcome="relapse", direction="minimize", control="placebo", propensity=0.5)
    model = DRPolicyTree(LinearRegression(), LogisticRegression(), max_depth=1, cv=2, random_state=0).fit(study)
    stability = policy_stability(model, study, n_resamples=4, random_state=0)
    leaves = model.apply(study.X)
    own, codes = leaves == leaves[0], pd.Index(stability.treatments).get_indexer(pd.Index(model.predict(study.X)))
    codes = np.tile(codes, (4, 1))
    codes[:3, own] = 1 - codes[:3, own]  # three of four resamples give them the other treatment
    report = StudyReport(model, study, results=[trial[1], replace(stability, policies=codes)])
    (said,) = (b.text for b in verdict_blocks(report) if getattr(b, "tone", "") == "warning")
    assert said.startswith(f"Unsure for {own.sum()} of 600 rows (1 leaf, hatched in the tree): ")
    given = model.predict(study.X)[own][0]
    assert said.endswith(
        f": the rule's advice on all data, {given}, came again only 25 times in 100 when it was learnt without some of "
        "the people. Do not follow the rule for them: choose their treatment as you would if there were no rule."
    )
    light = verdict_blocks(report)[2]
    assert light.tone == "supported" and light.text.startswith(
        f"Supported. Unsure for {own.sum()} of 600 rows (see below). Nothing speaks against the proposal as a whole: "
    )
    assert "Nothing speaks against it: " in verdict_blocks(trial[0])[2].text, "no caution, no exception"


def test_an_assumption_is_no_finding(trial):
    (assumed,) = (b.text for b in verdict_blocks(trial[0]) if getattr(b, "tone", "") == "assumption")
    assert assumed.endswith("who will be treated respond as those studied did (600 rows of the study)."), "drawn by lot"
    report, _ = reported(Study(table(), treatment="arm", outcome="relapse", direction="minimize", control="placebo"))
    light, assumption = (b for b in verdict_blocks(report) if isinstance(b, Words) and b.tone != "lead")
    assert assumption.tone == "assumption" and "no unmeasured confounding" in assumption.text
    assert "as good as random" not in light.text and light.text.startswith("Supported, if the assumption below holds.")
    states = {
        row[0]: row[1] for b in report.content.section("evidence").blocks if isinstance(b, Table) for row in b.rows
    }
    assert states["assignment"] == "assumed"


def test_a_lottery_with_unknown_chances_is_told_as_a_lottery():
    study = Study(table(), treatment="arm", outcome="relapse", direction="minimize", control="placebo", randomized=True)
    content = reported(study)[0].content
    said = " ".join(getattr(block, "text", "") for block in content.section("question").blocks)
    assert "they are no effects" not in said
    assert dict(content.section("question").blocks[0].pairs)["propensity"].startswith("drawn by lot; estimated")
    assert content.section("sensitivity").blocks[0].text.startswith("Treatment was drawn by lot")


def test_held_out_effects_are_those_of_people_whom_rules_give_a_treatment(trial):
    """By hand, of one split: the mean difference of rewards among the judged people who are given the drug."""
    study = Study(table(), treatment="arm", outcome="relapse", direction="minimize", control="placebo", propensity=0.5)
    model = DRPolicyTree(LinearRegression(), max_depth=1, cv=2, random_state=0)
    values = cross_val_policy_value(model, study, validation="split", random_state=0)
    (repetition,) = values.repetitions
    for found in given_effects(values):
        own = repetition.policy == found.treatment
        rewards = repetition.rewards.to_numpy()[own]
        k = list(repetition.rewards.columns).index(found.treatment)
        differences = rewards[:, k] - rewards[:, 1 - k]
        assert found.effect.value == pytest.approx(differences.mean())
        assert found.effect.standard_error == pytest.approx(differences.std() / np.sqrt(own.sum()), rel=0.01)
        assert found.share == pytest.approx(own.mean()) and found.effect.level == pytest.approx(0.975)
    report, values = trial
    shown = next(b for b in report.content.section("tree").blocks if isinstance(b, Table) and "rule gives" in b.caption)
    assert [row["effect"] for row in shown.numbers] == [each.effect.value for each in given_effects(values)]
    assert report.to_text().count("than if everybody gets placebo, held out") == 1, (
        "in the one leaf that gives the drug"
    )


def test_an_interval_across_zero_has_a_word_at_either_end():
    across = SimpleNamespace(value=-64.0, lower=-303.0, upper=175.0)
    assert Amounts(False, "dollars", 0.95).text(across) == "64 dollars less (95% CI 175 more to 303 less)"
    single = SimpleNamespace(value=-1.2, lower=-19.6, upper=22.6)
    assert Amounts(False, "days", 0.95).text(single) == "1 day less (95% CI 23 more to 20 less)"
    share = SimpleNamespace(value=0.01, lower=-0.029, upper=0.049)
    assert Amounts(True, "", 0.95).parts(share) == ("1.0 more of 100", "95% CI 2.9 fewer to 4.9 more")


@pytest.mark.parametrize("outcome", [Event("status", "relapsed"), MayBeMissing(Event("status", "relapsed"))])
def test_an_event_is_named_with_its_value(outcome):
    frame = table()
    frame["status"] = np.where(frame.pop("relapse") == 1, "relapsed", "well")
    study = Study(frame, treatment="arm", outcome=outcome, direction="minimize", control="placebo", propensity=0.5)
    report, _ = reported(study)
    assert report.content.title == "Which treatment for whom, for the lowest share of people with status = relapsed?"
