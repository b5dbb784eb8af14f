"""Optimism: by hand, by its variance, in the table and in the report."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from policytree import DRPolicyTree, PolicyTree, cross_val_policy_value
from policytree.evaluation.estimates import mean_estimate
from policytree.evaluation.policy_value.optimism import Judgement, optimism
from policytree.evaluation.policy_value.rule_names import PLUG_IN, POLICY
from policytree.weighting.study_data import StudyData, by_columns
from tests.evaluation.test_cross_validation import Fake
from tests.evaluation.test_cross_validation import trial as trial  # a fixture
from tests.support.simulations import benchmark_script


def seen(n, **options):
    return StudyData.of(np.arange(n), np.resize([0, 1], n), **options)


def test_folds_by_hand(rng):
    n, weight, groups = 30, rng.uniform(0.5, 2, 30), np.arange(30) // 2
    observed, fold = seen(n, sample_weight=weight, groups=groups), (np.arange(30) // 2) % 3
    chosen, judged, parts = np.zeros(n), rng.normal(size=n), []
    value = 0.0
    for f in range(3):
        train, test = np.flatnonzero(fold != f), np.flatnonzero(fold == f)
        own = rng.normal(size=len(train)) + 1
        parts.append(Judgement(train, test, own, judged[test]))
        share = weight[test].sum() / weight.sum()
        value += share * (np.average(own, weights=weight[train]) - np.average(judged[test], weights=weight[test]))
        centred = weight[train] * (own - np.average(own, weights=weight[train]))
        np.add.at(chosen, train, share * centred / weight[train].sum() * n)
    found = optimism([parts], observed, 3)
    held_out = mean_estimate(judged, groups=groups, sample_weight=weight)
    expected = chosen - held_out.influence
    assert found.difference.value == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(found.difference.influence, expected, atol=1e-12)
    sums = np.bincount(groups, weights=expected)
    assert found.difference.standard_error == pytest.approx(np.sqrt(15 / 14 * sums @ sums) / n, rel=1e-12)
    assert found.training_value == pytest.approx(value + held_out.value, rel=1e-12)


def test_what_a_row_brings_to_both_sides_cancels():
    """A rule that is the same in every fold, with the same scores: no optimism, and no error."""
    scores, fold = np.random.default_rng(0).normal(size=40), np.arange(40) % 4
    parts = [Judgement(np.flatnonzero(fold != f), np.flatnonzero(fold == f), scores[fold != f], scores[fold == f])
             for f in range(4)]  # fmt: skip
    found = optimism([parts, parts], seen(40), 4).difference
    assert found.value == pytest.approx(0.0, abs=1e-12)
    assert found.standard_error < 0.15 * mean_estimate(scores).standard_error


@pytest.fixture
def learnt(trial):
    model = DRPolicyTree(LinearRegression(), max_depth=2, cv=2, random_state=0)
    options = {"cv": 3, "n_repeats": 2, "random_state": 0, "rivals": {"no tree": PolicyTree(max_depth=0)}}
    data = {k: v for k, v in trial.items() if k not in ("Y", "T")}
    return cross_val_policy_value(model, trial["Y"], trial["T"], **data, **options), model, trial


def test_the_table_has_the_values_of_the_training_rows(learnt):
    table = learnt[0]
    assert list(table.optimism) == [POLICY, PLUG_IN, "no tree"]
    frame = table.optimism_frame()
    np.testing.assert_allclose(frame["training_value"] - frame["held_out_value"], frame["optimism"], atol=1e-12)
    np.testing.assert_allclose(frame["held_out_value"], [table.estimates[rule].value for rule in frame.index])
    values = [tree.objective_value_ for tree in table.trees]
    folds = [r.folds.fold for r in table.repetitions]
    shares = np.concatenate([np.bincount(fold) / len(fold) for fold in folds]) / 2
    assert frame.loc[POLICY, "training_value"] == pytest.approx(shares @ values, rel=1e-9), "what the search maximised"
    assert frame.loc[POLICY, "optimism"] > frame.loc["no tree", "optimism"]
    assert "On the rows that chose it the policy tree appears to bring" in str(table)
    assert "to be expected of rules learnt from this many rows; that of these particular rules may lie outside." in str(
        table
    )
    assert "optimism" not in table.to_frame()


@pytest.mark.parametrize("validation", ["split", "sequential"])
def test_other_ways_to_hold_rows_out(learnt, validation):
    _, model, trial = learnt
    data = {k: v for k, v in trial.items() if k not in ("Y", "T")}
    table = cross_val_policy_value(model, trial["Y"], trial["T"], **data, validation=validation, random_state=0)
    row = table.optimism_frame().loc[POLICY]
    assert row["training_value"] - table.estimates[POLICY].value == pytest.approx(row["optimism"], abs=1e-12)
    assert row["optimism_standard_error"] > 0


def test_costs_and_direction_are_those_of_the_values(trial):
    data = {k: v for k, v in trial.items() if k not in ("Y", "T")}
    options = {"cv": 3, "n_repeats": 1, "random_state": 0}
    up = by_columns(
        cross_val_policy_value,
        DRPolicyTree(LinearRegression(), cv=2, random_state=0),
        Y=trial["Y"],
        T=trial["T"],
        sample_treatment_costs={"right": 0.4},
        **data,
        **options,
    )
    down = by_columns(
        cross_val_policy_value,
        DRPolicyTree(LinearRegression(), cv=2, random_state=0, direction="minimize"),
        Y=-trial["Y"],
        T=trial["T"],
        sample_treatment_costs={"right": 0.4},
        **data,
        **options,
    )
    np.testing.assert_allclose(up.optimism_frame().iloc[:, :4], down.optimism_frame().iloc[:, :4] * [-1, -1, -1, 1])
    assert up.optimism_frame().loc[POLICY, "optimism"] > 0


def test_without_rewards_there_is_none(trial):
    data = {k: v for k, v in trial.items() if k not in ("Y", "T")}
    table = cross_val_policy_value(Fake(), trial["Y"], trial["T"], **data, cv=3, n_repeats=1, random_state=0)
    assert table.optimism == {} and len(table.optimism_frame()) == 0 and "optimism" not in str(table)


@pytest.mark.slow
def test_intervals_cover_the_expected_optimism():
    with benchmark_script("optimism_coverage") as script, script.unwatched():
        cell = next(c for c in script.cells() if c.name == "no effect, n=300, 2 arms")
        row = script.summary(cell, pd.DataFrame([script.one_run(cell, seed) for seed in range(30)]))
    assert row["expected optimism"] > 0.2, "nothing works, and the tree seems to"
    assert row["mean estimate"] == pytest.approx(row["expected optimism"], abs=0.03)
    assert row["coverage"] >= 90
