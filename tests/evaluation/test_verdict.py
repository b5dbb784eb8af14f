"""Verdicts: what is recommended against what, how often that is wrong, and where nothing can be said."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression

from policytree import DRPolicyTree, PolicyTree, RewardEstimator, cross_val_policy_value
from policytree.cli.controls import control_among
from policytree.data.controls import recognised_control
from policytree.evaluation.estimates import mean_estimate
from policytree.evaluation.inference.best_arm import compare_with_best_arm
from policytree.evaluation.inference.step_down import against_reference
from policytree.evaluation.policy_value.fixed_rules import compare_rules
from policytree.evaluation.policy_value.gate import Gate
from policytree.evaluation.policy_value.verdict import Reason, Rules, decide, recommends
from policytree.report.sections.values import other_interval
from policytree.trees.labels import Label, labelled
from policytree.trees.text import rule_sentence
from policytree.weighting.study_data import by_columns

ARMS = ("always a", "always b", "always c")
TREE, QUO = "policy tree", "status quo"


def differences_of(scores):
    """A function that estimates the difference of two rules, once."""
    return cache(lambda a, b: mean_estimate(scores[a] - scores[b]))


def decided(means, *, control="always a", n=400, noise=1.0, direction="maximize", seed=0, drawn=False, costs=None):
    """The verdict where rules bring these means on average, each with noise of its own; drawn: in a trial."""
    rng = np.random.default_rng(seed)
    scores = {name: mean + noise * rng.normal(size=n) for name, mean in means.items()}
    gross = {name: values + (costs or {}).get(name, 0.0) for name, values in scores.items()}
    difference, before = differences_of(scores), None if costs is None else differences_of(gross)
    arms = tuple(name for name in means if name.startswith("always "))
    best = compare_with_best_arm(arms, {name: difference(TREE, name) for name in arms}, difference, direction)
    return decide(best, Rules(TREE, None if drawn else QUO, arms, control), difference, direction, before)


def means(tree=0.0, a=0.0, b=0.0, c=0.0, quo=0.0):
    return {TREE: tree, **dict(zip(ARMS, (a, b, c), strict=True)), QUO: quo}


@pytest.mark.parametrize(
    ("labels", "control"),
    [
        (["drug", "usual care"], "usual care"), ([0, 1], 0), ([0.0, 1.0], 0.0), (["Placebo", "drug"], "Placebo"),
        (["none", "placebo", "x"], None), (["a", "b"], None), (["training", "control"], "control"),
    ],
)  # fmt: skip
def test_one_rule_recognises_the_control(labels, control):
    assert recognised_control(labels) == control
    said, _, named = control_among(None, labels, "treatment")
    assert named == (control is not None) and (said == str(control) or not named)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("given", "control", "rule", "reason"),
    [
        (means(tree=2.0), "always a", TREE, Reason.TREE_BETTER),
        (means(tree=2.0), None, TREE, Reason.TREE_BETTER),
        (means(tree=2.0, quo=2.0), None, QUO, Reason.NONE_BETTER),  # better than every treatment, not than doctors
        (means(tree=1.0, b=1.0), "always a", "always b", Reason.TREATMENT_BETTER),
        (means(tree=-1.0, b=1.0), "always a", "always b", Reason.TREATMENT_BETTER),
        (means(tree=1.0, b=1.0, a=1.0, quo=0.5), "always a", "always a", Reason.NONE_BETTER),
        (means(), "always a", "always a", Reason.NONE_BETTER),
        (means(), None, QUO, Reason.NONE_BETTER),
        (means(quo=3.0), "always a", QUO, Reason.STATUS_QUO_BETTER),
    ],
)
def test_what_is_recommended(given, control, rule, reason, sign):
    direction = "maximize" if sign == 1 else "minimize"
    found = decided({name: sign * mean for name, mean in given.items()}, control=control, direction=direction)
    assert (found.rule, found.reason) == (rule, reason)
    assert found.use_tree == (rule == TREE)
    assert found.to_dict()["sentence"] == str(found) and str(found).endswith(".")


def test_a_tree_may_be_shown_better_than_the_control_where_no_treatment_is():
    """The best treatment is nearly as good as the tree, and too uncertain to be shown better than the control."""
    rng = np.random.default_rng(0)
    n = 400
    scores = {TREE: 0.3 + rng.normal(size=n), ARMS[0]: rng.normal(size=n), QUO: rng.normal(size=n)}
    scores[ARMS[1]], scores[ARMS[2]] = 0.25 + 9.0 * rng.normal(size=n), -1.0 + rng.normal(size=n)
    difference = differences_of(scores)
    best = compare_with_best_arm(ARMS, {name: difference(TREE, name) for name in ARMS}, difference, "maximize")
    found = decide(best, Rules(TREE, QUO, ARMS, ARMS[0]), difference, "maximize")
    assert found.reason is Reason.TREE_BETTER_THAN_REFERENCE and found.use_tree
    assert "No single treatment is shown better than that." in str(found)


def test_sentences_name_the_control_the_interval_and_what_could_have_been_seen():
    nothing = str(decided(means()))
    assert nothing.startswith("No treatment and no tree is shown better than a, the control: leave things as")
    assert "95% CI" in nothing and "80% power to detect a gain of" in nothing and "Use" not in nothing
    treatment = str(decided(means(b=1.0)))
    assert treatment.startswith("Give b to everybody: ") and " more than under a, the control (95% CI " in treatment
    for sentence in (nothing, treatment):
        assert "always always" not in sentence and "None" not in sentence and "nan" not in sentence


def test_gains_are_said_net_and_before_costs():
    found = decided(means(b=1.0), costs={"always b": 2.0})
    assert found.treatment.gross.value == pytest.approx(found.treatment.value + 2.0)
    assert ", net of costs; " in str(found) and " more before costs (95% CI" in str(found)
    assert found.to_dict()["treatment_minus_reference_gross"][0] == pytest.approx(found.treatment.gross.value)


def test_a_failed_gate_takes_the_place_of_a_recommendation():
    good = decided(means(tree=2.0))
    passed = Gate("data check", "supported", "nothing was found")
    assert (good.through([passed]).strength, str(good.through([passed]))) == ("supported", str(good))
    found = good.through([passed, Gate("data check", "cannot be said", "nobody in Seattle got c", "Leave c out.")])
    assert (found.rule, found.reason, found.use_tree) == ("always a", Reason.UNCLEAR, False)
    assert str(found) == "These data cannot say what to do: nobody in Seattle got c. Leave c out."
    assert found.to_dict()["doubts"] == ["nobody in Seattle got c"] and found.strength == "cannot be said"
    assert [gate["state"] for gate in found.to_dict()["gates"]] == ["cannot be said"]


def test_a_fragile_verdict_begins_with_the_reason():
    good = decided(means(tree=2.0))
    found = good.through([Gate("direction", "fragile", "Nobody said whether more y is better", "Say it.")])
    assert (found.strength, found.rule, found.use_tree) == ("fragile", good.rule, True)
    assert str(found) == f"This is fragile: nobody said whether more y is better. {good}"
    assert found.through([Gate("rows", "supported", "enough")]).strength == "fragile"


def test_the_smallest_gain_is_shown_as_often_as_is_said():
    """A tree better by the smallest gain is shown better than the control in at least four of five samples."""
    smallest = decided(means()).smallest_gain
    tree = [decided(means(tree=smallest), seed=seed).tree.better for seed in range(300)]
    assert 0.8 - 2 * np.sqrt(0.8 * 0.2 / 300) < np.mean(tree) < 0.95  # more, as it may beat all treatments instead


@pytest.mark.slow
@pytest.mark.parametrize("control", ["always a", None])
def test_where_nothing_works_something_is_recommended_in_a_fortieth_of_the_samples(control):
    """The level of 95 % leaves 2.5 % for "better"; the tree against the best treatment adds nothing to it."""
    wrong = [
        decided(means(), control=control, seed=seed).reason not in (Reason.NONE_BETTER, Reason.STATUS_QUO_BETTER)
        for seed in range(1000)
    ]
    assert np.mean(wrong) < 0.025 + 3 * np.sqrt(0.025 * 0.975 / 1000)


# --- trials: the mixture that was drawn is no standard ---

FIVE = {TREE: 0.0} | {f"always {name}": 0.0 for name in "abcde"}
HARMFUL = FIVE | {"always e": -0.8}


def drawn(given, **how):
    return decided(given, control=None, drawn=True, **how)


def test_a_lottery_with_a_harmful_arm_recommends_none_and_says_which_is_worse():
    """The mixture has the harmful arm in it: any other one is better than that, and no better than the rest."""
    found = [drawn(HARMFUL, seed=seed) for seed in range(60)]
    assert sum(each.rule is not None for each in found) <= 6  # 5 % and two standard errors
    assert all(each.reference is None and each.against_status_quo is None for each in found)
    nothing = [each for each in found if each.rule is None]
    assert np.mean(["always e" in each.ranking.better_than for each in nothing]) > 0.95
    text = str(nothing[0])
    assert text.startswith("No treatment and no tree is shown better than all others. ")
    assert "better than e, and not shown different from" in text and "what people got" not in text


def test_the_best_of_several_arms_is_told_from_those_it_is_no_better_than():
    best = drawn(FIVE | {"always c": 1.0})
    assert (best.rule, best.reason) == ("always c", Reason.TREATMENT_BEST)
    assert set(best.ranking.better_than) == {f"always {name}" for name in "abde"}
    assert str(best).startswith("Give c to everybody: ") and "better than every other treatment" in str(best)
    two = drawn(FIVE | {"always c": 1.0, "always d": 1.0}, seed=1)
    assert (two.rule, two.reason) == (None, Reason.NONE_BEST)
    assert set(two.ranking.better_than) == {"always a", "always b", "always e"}
    tied = {"always c", "always d"} - {two.ranking.best}
    assert two.ranking.not_told_apart == tuple(tied)
    assert two.to_dict()["better_than"] == list(two.ranking.better_than)
    tree = drawn(FIVE | {TREE: 1.0})
    assert (tree.rule, tree.reason) == (TREE, Reason.TREE_BETTER)
    assert "what people got" not in str(tree) and "control" not in str(tree)


@pytest.mark.slow
@pytest.mark.parametrize(
    "given", [FIVE, HARMFUL, {TREE: 0.0, "always a": 0.0, "always b": 0.0}, {**FIVE, "always c": 3}]
)
def test_claims_among_arms_are_false_in_a_twentieth_of_the_samples(given):
    """Ties, one harmful arm, two arms, one best arm."""
    runs, wrong = 400, 0
    for seed in range(runs):
        found = drawn(given, seed=seed)
        ranking = found.ranking
        if found.reason is Reason.TREE_BETTER:
            wrong += 1
        elif found.reason is Reason.TREATMENT_BEST:
            wrong += any(given[name] >= given[found.rule] for name in given if name not in (found.rule, TREE))
        else:
            wrong += any(given[name] >= given[ranking.best] for name in ranking.better_than)
    assert wrong / runs < 0.05 + 2 * np.sqrt(0.05 * 0.95 / runs)


# --- power: fixed order, and no correction for what cannot be recommended ---


def two_arms(effect, seed, treated=0.5, n=400):
    """A trial of control and drug, scored, and a rule that gives the drug to a part of the people."""
    rng = np.random.default_rng(seed)
    none, drug = rng.normal(size=n), effect + rng.normal(size=n)
    scores = {TREE: np.where(rng.random(n) < treated, drug, none), "always drug": drug, "always none": none}
    difference = differences_of(scores)
    arms = ("always drug", "always none")
    best = compare_with_best_arm(arms, {name: difference(TREE, name) for name in arms}, difference, "maximize")
    return decide(best, Rules(TREE, None, arms, "always none"), difference, "maximize")


def test_the_treatment_is_tested_at_almost_all_of_the_level():
    """Bonferroni over tree, treatment and plug-in rule would take 2.39; all of the level is 1.96."""
    found = two_arms(0.0, 0)
    half_width = (found.treatment.upper - found.treatment.lower) / 2
    alone = mean_estimate(np.random.default_rng(1).normal(size=400) * np.sqrt(2)).standard_error
    assert 1.9 < half_width / alone < 2.2


@pytest.mark.slow
def test_a_trial_designed_for_80_percent_power_recommends_in_78():
    runs, n = 1000, 400
    effect = (1.959964 + 0.841621) * np.sqrt(2 / n)
    power = np.mean([two_arms(effect, seed).rule != "always none" for seed in range(runs)])
    error = np.mean([two_arms(0.0, seed).rule != "always none" for seed in range(runs)])
    assert power > 0.78 - 0.013  # one standard error
    assert error < 0.025 + 2 * np.sqrt(0.025 * 0.975 / runs)


def by_errors(values, errors):
    """Differences of rules by their values and the standard errors of pairs."""

    def difference(a, b):
        error = errors[frozenset((a, b))] if a != b else 0.0
        return SimpleNamespace(value=values[a] - values[b], standard_error=error, level=0.95, degrees_of_freedom=10**6)

    return difference


@pytest.mark.parametrize(("differs", "needed"), [(0.0, 1.96), (1e-4, 2.06), (0.05, 2.06)])
def test_a_rule_that_spares_nearly_everybody_takes_a_fifth_of_the_level_at_most(differs, needed):
    """Repetitions add to the error of a learnt rule less a treatment, not to that of the treatment less the control."""
    values = {TREE: 0.0, "always drug": -3.7, "always none": 0.0}
    errors = {
        frozenset((TREE, "always none")): differs, frozenset(("always drug", "always none")): 1.0,
        frozenset((TREE, "always drug")): 1.02,
    }  # fmt: skip
    found = against_reference(TREE, ["always drug"], "always none", by_errors(values, errors), "maximize")
    assert found.critical["always drug"] == pytest.approx(needed, abs=0.01)


def test_a_rule_that_helps_some_and_spares_the_others_needs_no_treatment_to_win():
    rng = np.random.default_rng(0)
    n = 1000
    helped = rng.random(n) < 0.5
    none, drug = rng.normal(size=n), np.where(helped, 0.4, -0.4) + rng.normal(size=n)
    scores = {TREE: np.where(helped, drug, none), "always drug": drug, "always none": none}
    difference = differences_of(scores)
    arms = ("always drug", "always none")
    best = compare_with_best_arm(arms, {name: difference(TREE, name) for name in arms}, difference, "maximize")
    found = decide(best, Rules(TREE, None, arms, "always none"), difference, "maximize")
    assert found.reason is Reason.TREE_BETTER and not found.treatment.better


def test_the_recommended_gains_exclude_zero():
    """The interval in the sentence agrees with the test."""
    for seed in range(40):
        found = decided(means(tree=0.1, b=0.15, c=0.1), seed=seed)
        if found.reason is Reason.TREATMENT_BETTER:
            assert found.treatment.lower > 0.0
        if found.use_tree:
            assert found.tree.lower > 0.0


def test_settled_rules_are_compared_with_the_control(rng):
    n = 300
    rewards = pd.DataFrame({"drug": 1.0 + rng.normal(size=n), "none": rng.normal(size=n)})
    found = compare_rules("drug", rewards, rng.normal(size=n), control="none").verdict
    assert (found.rule, found.reference, found.reason) == ("always drug", "always none", Reason.TREATMENT_BETTER)
    with pytest.raises(ValueError, match="control is 'pill'; the treatments are drug, none"):
        compare_rules("drug", rewards, rng.normal(size=n), control="pill")
    before = compare_rules(
        "drug", rewards - 0.3, rng.normal(size=n), control="none", before_costs=(rewards, rng.normal(size=n))
    ).verdict
    assert before.treatment.gross.value == pytest.approx(found.treatment.value)


def test_the_control_is_named_as_python_compares(rng):
    """A column of 0 and 1 with gaps is of floats."""
    n = 200
    X, T = pd.DataFrame({"x": rng.normal(size=n)}), rng.integers(0, 2, n).astype(float)
    data = {"Y": rng.normal(size=n), "T": T, "X": X, "propensity": 0.5}
    model = DRPolicyTree(LinearRegression(), max_depth=1, cv=2, random_state=0)
    found = by_columns(cross_val_policy_value, model, control=0, cv=2, n_repeats=1, random_state=0, **data).verdict
    assert found.reference == "always 0.0"
    with pytest.raises(ValueError, match=r"control is 2; the treatments are 0.0, 1.0"):
        by_columns(cross_val_policy_value, model, control=2, cv=2, n_repeats=1, random_state=0, **data)


def test_treatments_are_judged_by_the_scores_of_all_repetitions_averaged(rng):
    """Repetitions only move the models of a fixed rule's scores: its error is that of one pass over the rows."""
    n = 300
    X, T = pd.DataFrame({"x": rng.normal(size=n)}), rng.permutation(np.repeat(["drug", "none"], n // 2))
    Y = np.exp(X["x"].to_numpy()) + rng.normal(size=n)
    data = {"X": X, "propensity": 0.5}
    model = DRPolicyTree(RandomForestRegressor(20, random_state=0), max_depth=1, cv=2, random_state=0)
    found = cross_val_policy_value(model, Y, T, **data, cv=2, n_repeats=3, random_state=0)
    estimate = found.difference("always drug", "always none")
    scores = np.mean([r.scores["always drug"] - r.scores["always none"] for r in found.repetitions], axis=0)
    assert estimate.standard_error == pytest.approx(mean_estimate(scores).standard_error)
    assert estimate.value == pytest.approx(scores.mean()) and estimate.between_variance == 0.0
    one = RewardEstimator(RandomForestRegressor(20, random_state=0), cv=5, random_state=0).fit(Y, T, **data).rewards_
    once = mean_estimate((one["drug"] - one["none"]).to_numpy()).standard_error
    assert estimate.standard_error < 1.05 * once
    assert found.differences["always none"].between_variance > 0.0 or found.trees[0].node_count == 1


def test_what_was_drawn_by_lot_is_never_what_people_got(rng):
    n = 120
    X, T = pd.DataFrame({"x": rng.normal(size=n)}), rng.permutation(np.repeat(["a", "b", "c"], n // 3))
    data = {"Y": rng.normal(size=n), "T": T, "X": X}
    model = DRPolicyTree(LinearRegression(), max_depth=1, cv=2, random_state=0)
    how = {"cv": 2, "n_repeats": 1, "random_state": 0}
    trial = cross_val_policy_value(model, **data, propensity=dict.fromkeys("abc", 1 / 3), **how)
    assert "as randomised" in trial.estimates and QUO not in trial.estimates and trial.verdict.reference is None
    told = by_columns(cross_val_policy_value, model, randomized=True, **data, **how)
    assert list(told.estimates) == list(trial.estimates)
    observed = cross_val_policy_value(model, **data, **how)
    assert QUO in observed.estimates and observed.verdict.reference == QUO
    assert 0.0 < observed.verdict.changed < 1.0 and trial.verdict.changed is None


def test_a_rule_is_said_in_a_sentence():
    X = pd.DataFrame({"age": [20.0, 30.0, 60.0, 70.0], "sex": ["f", "m", "f", "m"]})
    rewards = pd.DataFrame({"drug": [1.0, 1.0, 0.0, 0.0], "none": [0.0, 0.0, 1.0, 1.0]})
    tree = PolicyTree(max_depth=1).fit(X, rewards).tree_
    assert rule_sentence(tree) == "Give drug to people whose age is at most 45; give none to everybody else."
    by_sex = pd.DataFrame({"drug": [1.0, 0.0, 0.0, 0.0], "none": [0.0, 1.0, 1.0, 1.0]})
    assert rule_sentence(PolicyTree(max_depth=2).fit(X, by_sex).tree_) == (
        "Give drug to people whose age is at most 25; give none to everybody else."
    )
    assert rule_sentence(PolicyTree(max_depth=0).fit(X, rewards.assign(drug=9.0)).tree_) == "Give drug to everybody."
    wards = pd.DataFrame({"ward": list("abca")})
    found = rule_sentence(PolicyTree(max_depth=1).fit(wards, by_sex.assign(drug=[1.0, 0.0, 0.0, 1.0])).tree_)
    assert found == "Give drug to people whose ward is a; give none to everybody else."


def test_paths_to_one_treatment_stand_together():
    X = pd.DataFrame({"age": [20.0, 30.0, 60.0, 70.0] * 2, "sex": ["f"] * 4 + ["m"] * 4})
    old = pd.DataFrame({"drug": [0.0, 0, 1, 0, 0, 0, 0, 0], "none": [1.0, 1, 0, 1, 1, 1, 1, 1]})
    found = rule_sentence(PolicyTree(max_depth=3).fit(X, old).tree_)
    assert "age is over 45 and at most 65" in found and "sex is" in found
    assert found.endswith("; give none to everybody else.")
    shown = labelled(PolicyTree(max_depth=3).fit(X, old).tree_, {"age": Label("Age", "years")})
    assert "people whose Age is over 45 and at most 65 years and" in rule_sentence(shown, {"Age (years)": "years"})


def test_a_recommended_rule_is_said_whole():
    """The rule, who changes, the gain with its interval in the unit, and what all of that rests on."""
    lot = Gate("assignment", "supported", "treatments were assigned at random")
    found = decided(means(tree=2.0), direction="maximize").through([lot])
    found = replace(
        found, in_words="Give b to those with age ≤ 45, a to the others.", changed=0.42,
        words=replace(found.words, unit="visits"),
    )  # fmt: skip
    gain, best = found.tree, found.against_best
    assert str(found) == (
        "Use the policy tree: give b to those with age ≤ 45, a to the others. 42 of 100 people change treatment. On "
        f"people who had no part in learning it, it brings {best.value:.3f} visits more than the best single treatment "
        f"(95% CI {best.lower:.3f} to {best.upper:.3f}) and {gain.value:.3f} visits more than under a, the control "
        f"(95% CI {gain.lower:.3f} to {gain.upper:.3f}). Treatments were assigned at random."
    )
    assert found.gain == gain


def leaf(label):
    """A tree that gives everybody the same."""
    return PolicyTree(max_depth=0).fit(np.zeros((4, 1)), pd.DataFrame({label: np.ones(4), "other": np.zeros(4)})).tree_


def test_a_verdict_recommends_a_tree_and_whatever_gives_the_same():
    """Beside what is to be used nobody reads "not recommended", and beside nothing else."""
    X, rewards = np.arange(4.0)[:, None], pd.DataFrame({"drug": [1.0, 1, 0, 0], "none": [0.0, 0, 1, 1]})
    split = PolicyTree(max_depth=1).fit(X, rewards).tree_
    for reason in Reason:
        learnt = reason in (Reason.TREE_BETTER, Reason.TREE_BETTER_THAN_REFERENCE)
        assert recommends("policy tree" if learnt else "always drug", reason, [split]) == learnt
        assert recommends("always drug", reason, [leaf("drug")]) == (reason is not Reason.UNCLEAR)
        assert recommends("always none", reason, [leaf("drug")]) == learnt
    assert not recommends(None, Reason.NONE_BEST, [leaf("drug")])
    assert not recommends("status quo", Reason.STATUS_QUO_BETTER, [leaf("drug")])
    assert recommends("always drug then more", Reason.NONE_BETTER, [leaf("drug"), leaf("more")])
    assert not recommends("always drug then less", Reason.NONE_BETTER, [leaf("drug"), leaf("more")])


def test_a_rule_that_differs_from_nothing_has_no_interval_and_no_power():
    found = decided(means(), noise=0.0)
    assert "power to detect" not in str(found) and "gives everybody the best single treatment" in str(found)
    assert found.against_best.statement(2).startswith("Tree and best single treatment are the same for everybody")


def test_the_verdict_says_what_it_rests_on_only_where_something_is_recommended():
    lot = Gate("assignment", "supported", "treatments were assigned at random")
    assert str(decided(means(b=1.0)).through([lot])).endswith(" Treatments were assigned at random.")
    assert "at random" not in str(decided(means()).through([lot]))


@pytest.mark.parametrize("harm", [0.0, 2.0])
def test_a_report_says_why_the_verdict_has_another_interval_than_the_table(rng, harm):
    """Several rules could have been recommended: the verdict's interval of the tree is wider than the pair's own."""
    n = 300
    rewards = pd.DataFrame({name: rng.normal(size=n) for name in ("a", "b", "c", "none")})
    policy = np.where(rng.random(n) < 0.5, "a", "b")
    found = compare_rules(policy, rewards - harm * (rewards.columns == "none"), rng.normal(size=n), control="none")
    gain, own = found.verdict.tree, found.differences["always none"]
    said = other_interval(found)
    assert gain.adjusted == bool(said) == (gain.lower < own.lower - 1e-6 and gain.upper > own.upper + 1e-6)
    if said:
        assert f"[{gain.lower:.{found.digits}f}, {gain.upper:.{found.digits}f}], is wider than the table's" in said[0]
