"""Verdicts: what is recommended against what, how often that is wrong, and where nothing can be said."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from policytree import DRPolicyTree, cross_val_policy_value
from policytree.evaluation import Reason, compare_rules, mean_estimate
from policytree.evaluation.inference.best_arm import compare_with_best_arm
from policytree.evaluation.policy_value.gate import Gate
from policytree.evaluation.policy_value.verdict import Rules, decide

ARMS = ("always a", "always b", "always c")
TREE, QUO, PLUG = "policy tree", "status quo", "plug-in rule"


def decided(means, *, control="always a", n=400, noise=1.0, direction="maximize", seed=0, plug_in=None, costs=None):
    """The verdict where rules bring these means on average, each with noise of its own."""
    rng = np.random.default_rng(seed)
    scores = {name: mean + noise * rng.normal(size=n) for name, mean in means.items()}
    gross = {name: values + (costs or {}).get(name, 0.0) for name, values in scores.items()}

    def difference(a, b, of=scores):
        return mean_estimate(of[a] - of[b])

    differences = {name: difference(TREE, name) for name in ARMS}
    best = compare_with_best_arm(ARMS, differences, difference, direction)
    before = None if costs is None else (lambda a, b: difference(a, b, gross))
    return decide(best, Rules(TREE, QUO, ARMS, control, plug_in), difference, direction, before)


def means(tree=0.0, a=0.0, b=0.0, c=0.0, quo=0.0, plug=0.0):
    return {TREE: tree, **dict(zip(ARMS, (a, b, c), strict=True)), QUO: quo, PLUG: plug}


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

    def difference(a, b):
        return mean_estimate(scores[a] - scores[b])

    best = compare_with_best_arm(ARMS, {name: difference(TREE, name) for name in ARMS}, difference, "maximize")
    found = decide(best, Rules(TREE, QUO, ARMS, ARMS[0]), difference, "maximize")
    assert found.reason is Reason.TREE_BETTER_THAN_REFERENCE and found.use_tree
    assert "which no single treatment is shown to be" in str(found)


def test_sentences_name_the_control_the_interval_and_what_could_have_been_seen():
    nothing = str(decided(means()))
    assert nothing.startswith("No treatment and no tree is shown better than the control, always a: leave things as")
    assert "95% interval" in nothing and "with a probability of 80%" in nothing and "Use" not in nothing
    treatment = str(decided(means(b=1.0)))
    assert treatment.startswith("Give b to everybody: on held-out people that is better than the control, always a")
    for sentence in (nothing, treatment):
        assert "always always" not in sentence and "None" not in sentence and "nan" not in sentence


def test_gains_are_said_net_and_before_costs():
    found = decided(means(b=1.0), costs={"always b": 2.0})
    assert found.treatment.gross.value == pytest.approx(found.treatment.value + 2.0)
    assert "net of costs; before costs +" in str(found)
    assert found.to_dict()["treatment_minus_reference_gross"][0] == pytest.approx(found.treatment.gross.value)


def test_a_failed_gate_takes_the_place_of_a_recommendation():
    good = decided(means(tree=2.0))
    passed = Gate("data check", "supported", "nothing was found")
    assert (good.through([passed]).strength, str(good.through([passed]))) == ("supported", str(good))
    found = good.through([passed, Gate("data check", "cannot be said", "nobody in Seattle got c", "Leave c out.")])
    assert (found.rule, found.reason, found.use_tree) == ("always a", Reason.UNCLEAR, False)
    assert str(found) == "What to do cannot be said from these rows: nobody in Seattle got c. Leave c out."
    assert found.to_dict()["doubts"] == ["nobody in Seattle got c"] and found.strength == "cannot be said"
    assert [gate["state"] for gate in found.to_dict()["gates"]] == ["cannot be said"]


def test_a_fragile_verdict_begins_with_the_reason():
    good = decided(means(tree=2.0))
    found = good.through([Gate("direction", "fragile", "Nobody said whether more y is better", "Say it.")])
    assert (found.strength, found.rule, found.use_tree) == ("fragile", good.rule, True)
    assert str(found) == f"Nobody said whether more y is better. {good}"
    assert found.through([Gate("rows", "supported", "enough")]).strength == "fragile"


def test_the_smallest_gain_is_shown_as_often_as_is_said():
    """A tree that is better by the smallest gain is shown better than the control in four of five samples."""
    smallest = decided(means()).smallest_gain
    tree = [decided(means(tree=smallest), seed=seed).tree.better for seed in range(300)]
    assert 0.72 < np.mean(tree) < 0.88


@pytest.mark.slow
@pytest.mark.parametrize("control", ["always a", None])
def test_where_nothing_works_something_is_recommended_in_a_fortieth_of_the_samples(control):
    """The level of 95 % leaves 2.5 % for "better"; the tree against the best treatment adds nothing to it."""
    wrong = [
        decided(means(), control=control, seed=seed, plug_in=PLUG).reason is not Reason.NONE_BETTER
        for seed in range(2000)
    ]
    assert np.mean(wrong) < 0.025 + 3 * np.sqrt(0.025 * 0.975 / 2000) + 0.007  # the status quo has a test of its own


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
    found = cross_val_policy_value(model, **data, cv=2, n_repeats=1, control=0, random_state=0).verdict
    assert found.reference == "always 0.0"
    with pytest.raises(ValueError, match=r"control is 2; the treatments are 0.0, 1.0"):
        cross_val_policy_value(model, **data, cv=2, n_repeats=1, control=2, random_state=0)
