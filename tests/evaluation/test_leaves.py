"""Leaves: on whose rows, with intervals that hold together, and by rows that had no say."""

from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.stats import binom
from sklearn.linear_model import LinearRegression

from policytree import DRPolicyTree, PolicyTree, honest_leaf_summary, leaf_summary, policy_value
from policytree.evaluation.inference.simultaneous import critical_values, smallest
from policytree.evaluation.leaves.summary import LeafValue
from policytree.exceptions import InputError
from tests.evaluation.test_cross_validation import Fake
from tests.support.simulations import benchmark_script


@pytest.fixture
def judged(rng):
    """120 rows in three leaves, three arms, clusters that reach into several leaves."""
    leaves = np.repeat([2, 3, 6], 40)
    rewards = pd.DataFrame(rng.normal(size=(120, 3)), columns=["low", "mid", "top"]) + rng.normal(size=(120, 1))
    policy = pd.Series(leaves).map({2: "mid", 3: "top", 6: "low"})
    return leaves, policy, rewards, {"groups": rng.integers(0, 30, 120), "sample_weight": rng.uniform(0.5, 2, 120)}


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_gains_against_every_other_arm(judged, direction):
    leaves, policy, rewards, rows = judged
    frame = leaf_summary(leaves, policy, rewards, held_out=True, direction=direction, **rows)
    sign = 1 if direction == "maximize" else -1
    for leaf in (2, 3, 6):
        here = np.flatnonzero(leaves == leaf)
        table, inside = rewards.iloc[here].reset_index(drop=True), {k: v[here] for k, v in rows.items()}
        arm = frame.loc[leaf, ("arm", "")]
        ends = []
        for other in rewards:
            value = policy_value(other, table, **inside)
            low, high = frame.loc[leaf, ("lower", other)], frame.loc[leaf, ("upper", other)]
            assert low < value.lower < value.upper < high, "all at once is wider than one by one"
            if other == arm:
                assert np.isnan(frame.loc[leaf, ("gain_over", other)])
                continue
            gain = policy_value(arm, table, baseline=other, **inside)
            assert frame.loc[leaf, ("gain_over", other)] == pytest.approx(gain.value, rel=1e-9)
            low, high = frame.loc[leaf, ("gain_lower", other)], frame.loc[leaf, ("gain_upper", other)]
            assert low < gain.lower < gain.upper < high
            ends.append((sign * gain.value, *sorted((sign * low, sign * high))))
        best = frame.loc[leaf, "gain_over_best"]
        smallest_ends = sorted(sign * min(e[k] for e in ends) for k in (1, 2))
        assert (best["lower"], best["upper"]) == pytest.approx(tuple(smallest_ends), rel=1e-9)
        assert sign * best["value"] >= min(e[0] for e in ends) - 1e-12, "the luckiest other arm is no fair opponent"
        assert best["lower"] <= best["value"] <= best["upper"]


def test_one_interval_needs_no_correction():
    """A single estimate: the critical value is Student's own; two independent ones: Sidak's."""
    assert critical_values(np.array([[4.0]]), np.array([30]), 0.95)[0] == pytest.approx(
        stats.t.ppf(0.975, 30), rel=0.02
    )
    pair = critical_values(np.diag([1.0, 9.0]), np.array([10**6] * 2), 0.95)
    assert pair == pytest.approx([stats.norm.ppf((1 + np.sqrt(0.95)) / 2)] * 2, rel=0.02)
    same = critical_values(np.ones((2, 2)), np.array([10**6] * 2), 0.95)
    assert same == pytest.approx([stats.norm.ppf(0.975)] * 2, rel=0.02)


def test_the_smallest_of_equals_is_right_half_of_the_time(rng):
    errors = np.array([1.0, 0.5, 1.0, 2.0])
    draws = rng.normal(size=(300, 4)) * errors
    found = np.array([smallest(d, np.diag(errors**2), 500) for d in draws])
    assert 0.41 < (found > 0).mean() < 0.59
    assert (draws.min(axis=1) > 0).mean() < 0.15, "the plain minimum is too small nearly always"
    clear = smallest(np.array([0.0, 50.0, 60.0]), np.eye(3), 500)
    assert clear == pytest.approx(0.0, abs=0.03), "where one is clearly the smallest there is nothing to correct"


def test_training_rows_are_marked_and_have_no_intervals(rng):
    X, rewards = rng.normal(size=(80, 2)), pd.DataFrame(rng.normal(size=(80, 2)), columns=["a", "b"])
    model = PolicyTree(max_depth=1, direction="minimize").fit(X, rewards)
    training = leaf_summary(model, X, rewards)
    assert set(training["rows", ""]) == {"training rows"} and "lower" not in training.columns.get_level_values(0)
    pd.testing.assert_frame_equal(
        training, leaf_summary(model.apply(X), model.predict(X), rewards, direction="minimize")
    )
    held_out = leaf_summary(model, X, rewards, held_out=True)
    assert set(held_out["rows", ""]) == {"held out"} and "lower" in held_out.columns.get_level_values(0)


def test_few_rows_of_an_arm_are_said(rng):
    leaves, T = np.repeat([1, 2], [100, 45]), np.array(["a"] * 50 + ["b"] * 50 + ["a"] * 40 + ["b"] * 5)
    rewards = pd.DataFrame(rng.normal(size=(145, 2)), columns=["a", "b"])
    frame = leaf_summary(leaves, "a", rewards, T=T)
    assert frame["rows_of"].to_numpy().tolist() == [[50, 50], [40, 5]]
    assert frame["warning", ""].tolist() == ["", "only 5 of b"]


def test_a_leaf_of_one_cluster_has_no_interval(rng):
    leaves = np.r_[7, np.zeros(59, dtype=int)]
    rewards = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
    frame = leaf_summary(leaves, "a", rewards, held_out=True)
    assert frame.loc[7, ["lower", "upper", "gain_lower", "gain_over_best"]].isna().all()
    assert frame.loc[0, "gain_over_best"].notna().all() and frame.loc[0, "lower"].notna().all()


# --- sample splitting ---


@pytest.fixture
def trial(rng):
    n = 400
    X = pd.DataFrame(rng.normal(size=(n, 2)), columns=["u", "v"])
    T = rng.choice(["a", "b"], size=n)
    Y = 1.5 * (T == "b") * np.sign(X["u"]) + rng.normal(size=n)
    return {"Y": Y, "T": T, "X": X, "propensity": 0.5, "groups": np.arange(n) // 2}


def test_honest_leaves_are_those_of_the_other_rows(trial):
    model = DRPolicyTree(LinearRegression(), max_depth=1, cv=2, random_state=0)
    found = honest_leaf_summary(model, **trial, honest=0.5, random_state=0)
    judged = found.rows
    assert abs(len(judged) - 200) <= 4 and not hasattr(model, "policy_tree_")
    groups = trial["groups"]
    learners = np.setdiff1d(np.arange(400), judged)
    assert not set(groups[judged]) & set(groups[learners])
    parts = {
        k: (v[learners] if isinstance(v, np.ndarray) else v.iloc[learners])
        for k, v in trial.items()
        if k != "propensity"
    }
    by_hand = DRPolicyTree(LinearRegression(), max_depth=1, cv=2, random_state=0).fit(**parts, propensity=0.5)
    assert by_hand.export_text() == found.estimator.export_text()
    rewards = by_hand.reward_estimator_.predict_rewards(
        trial["Y"].iloc[judged], trial["T"][judged], X=trial["X"].iloc[judged]
    )
    np.testing.assert_allclose(found.rewards, rewards, rtol=1e-9)
    assert found.leaves["n", ""].sum() == len(judged) and set(found.leaves["rows", ""]) == {"held out"}
    value = policy_value(by_hand.predict(trial["X"].iloc[judged]), rewards, groups=groups[judged])
    assert found.value.standard_error == pytest.approx(value.standard_error, rel=1e-9)
    assert found.against_best.better
    again = honest_leaf_summary(model, **trial, honest=judged)
    pd.testing.assert_frame_equal(again.leaves, found.leaves)


def test_learners_without_outcomes_or_leaves_are_named(trial):
    with pytest.raises(InputError, match="PolicyTree does not estimate its own rewards"):
        honest_leaf_summary(PolicyTree(), **trial)

    class NoLeaves(Fake):
        pass

    with pytest.raises(InputError, match="NoLeaves has no leaves"):
        honest_leaf_summary(NoLeaves(), **trial)


@pytest.mark.parametrize(
    ("honest", "message"),
    [
        (1.0, "share from 0.1 to 0.9"),
        ("half", "honest must be a share"),
        (np.array([0, 400]), "honest must be a share"),
        (np.arange(400) % 2, "more than once"),
        (0.01, "from 0.1 to 0.9"),
        (np.arange(400) % 2 == 0, "rows of one cluster on both sides"),
        (np.arange(0), "honest must be a share"),
    ],
)
def test_bad_shares_and_rows_are_named(trial, honest, message):
    model = DRPolicyTree(LinearRegression(), max_depth=1, cv=2, random_state=0)
    with pytest.raises(InputError, match=message):
        honest_leaf_summary(model, **trial, honest=honest)


@pytest.mark.slow
def test_intervals_of_honest_leaves_cover_all_at_once():
    """Limits leave out one in a thousand of 80 runs; ``benchmarks/leaf_coverage.py`` has more."""
    with benchmark_script("leaf_coverage") as script, script.unwatched():
        cell, smallest_leaf = script.cells()[0]
        records = pd.DataFrame([script.one_run(cell, smallest_leaf, seed) for seed in range(80)])
    assert (records[["values", "gains", "best"]].sum() >= binom.ppf(0.001, 80, 0.95)).all()
    assert binom.ppf(0.001, 80, 0.5) <= records["best too high"].sum() <= binom.ppf(0.999, 80, 0.5)
    assert records["naive beyond"].mean() > 0.5, "on the rows that chose the tree most leaves look significant"


def test_an_arm_that_nobody_in_a_leaf_got_is_not_estimable_there(rng):
    """By held-out rows: the outcome model alone would say something."""
    leaves = np.repeat([1, 2], 60)
    T = np.where((leaves == 2) & (np.arange(120) % 3 == 0), "b", np.where(np.arange(120) % 3 == 1, "c", "a"))
    T = np.where((leaves == 1) & (T == "b"), "a", T)
    rewards = pd.DataFrame(np.add(rng.normal(size=(120, 3)), [0.0, 5.0, 1.0]), columns=["a", "b", "c"])
    policy = np.where(leaves == 1, "b", "c")
    summary = leaf_summary(leaves, policy, rewards, T=T, held_out=True)
    first, second = summary.loc[1], summary.loc[2]
    assert np.isnan(
        [first["value", "b"], first["lower", "b"], first["gain_over_best", "value"], first["gain_over", "a"]]
    ).all()
    assert first["second_best", ""] == "c" and "nobody got b: not estimable" in first["warning", ""]
    assert np.isfinite([first["value", "a"], first["lower", "a"], first["value", "c"]]).all()
    assert np.isfinite([second["value", "b"], second["gain_over", "b"], second["gain_over_best", "lower"]]).all()
    summary = leaf_summary(leaves, np.where(leaves == 1, "c", "c"), rewards, T=T, held_out=True)
    assert np.isnan(summary.loc[1]["gain_over", "b"]) and summary.loc[1]["second_best", ""] == "a"
    assert np.isfinite(summary.loc[1]["gain_over_best", "upper"])
    training = leaf_summary(leaves, policy, rewards, T=T)
    assert np.isfinite(training.loc[1]["value", "b"]) and "only 0 of b" in training.loc[1]["warning", ""]


def test_what_is_not_estimable_is_said_in_pictures_and_files():
    value = LeafValue(None, held_out=True, second_best="a")
    assert value.lines("value", 2) == ["value: not estimable"] and value.within((0.0, 1.0)) is value
    assert LeafValue.from_dict(asdict(value)) == value
