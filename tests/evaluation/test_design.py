"""Design-aware folds, weights and calibration: what strata and clusters of a trial do to folds, tables and warnings."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom
from sklearn.linear_model import LinearRegression

from policytree import DRPolicyTree, RewardEstimator, cross_val_policy_value, policy_value
from policytree.common.validation import stratum_codes
from policytree.diagnostics import overlap_table
from policytree.diagnostics.calibration import calibration_table
from policytree.exceptions import InputError, OverlapWarning
from policytree.model_selection.folds import make_folds
from policytree.weighting.study_data import by_columns


def spread(fold, codes, n_folds):
    """Largest difference between folds in the number of rows of any code."""
    counts = np.zeros((n_folds, codes.max() + 1), dtype=int)
    np.add.at(counts, (fold, codes), 1)
    return int((counts.max(axis=0) - counts.min(axis=0)).max())


@given(
    n=st.integers(30, 120),
    n_blocks=st.integers(1, 9),
    n_folds=st.integers(2, 5),
    seed=st.integers(0, 2**31 - 1),
)
def test_rows_are_balanced_over_blocks_arms_and_in_all(n, n_blocks, n_folds, seed):
    rng = np.random.default_rng(seed)
    arm = np.r_[np.repeat([0, 1, 2], n_folds), rng.integers(3, size=n)]
    block = rng.integers(n_blocks, size=len(arm))
    plan = make_folds(len(arm), n_folds, strata=arm, design=block, random_state=seed)
    assert spread(plan.fold, arm * n_blocks + block, n_folds) <= 1
    assert spread(plan.fold, arm, n_folds) <= 1
    assert spread(plan.fold, np.zeros(len(arm), dtype=int), n_folds) <= 1


def test_clusters_of_a_small_cell_are_spread_over_the_folds():
    # 99 person-years of one arm at one site, from 30 persons: without strata most can fall into one fold
    shares = {True: [], False: []}
    for seed in range(30):
        rng = np.random.default_rng(seed)
        person = np.repeat(np.arange(1_000), rng.integers(1, 6, size=1_000))
        site = rng.integers(6, size=1_000)[person]
        arm = rng.integers(2, size=1_000)
        arm[rng.permutation(np.flatnonzero(np.unique(person) % 6 == 0))[:30]] = 2
        arm = arm[person]
        for aware in (True, False):
            design = site if aware else None
            plan = make_folds(len(arm), 5, strata=arm, design=design, groups=person, random_state=seed)
            assert all(len(set(plan.fold[person == p])) == 1 for p in range(0, 1_000, 100))
            cell = plan.fold[(arm == 2) & (site == 0)]
            if len(cell) >= 15:
                shares[aware].append(np.bincount(cell, minlength=5).max() / len(cell))
    assert len(shares[True]) > 5
    assert np.max(shares[True]) < 0.55
    assert np.mean(shares[True]) < np.mean(shares[False]) - 0.05


def test_small_blocks_are_no_error_and_arms_still_are():
    arm, block = np.tile([0, 1], 10), np.arange(20)
    assert make_folds(20, 5, strata=arm, design=block, random_state=0).n_folds == 5
    arm[2::2] = 1
    with pytest.raises(InputError, match="Treatment 0 has 1 rows, fewer than cv=5 folds"):
        make_folds(20, 5, strata=arm, design=block, random_state=0)


def test_strata_are_one_column_or_several():
    frame = pd.DataFrame({"site": list("aabb"), "block": [1, 2, 1, 1]})
    assert stratum_codes(frame, 4).tolist() == [0, 1, 2, 2]
    assert stratum_codes(frame.to_numpy(dtype=object), 4).tolist() == [0, 1, 2, 2]
    assert stratum_codes(frame["site"], 4).tolist() == [0, 0, 1, 1]
    assert stratum_codes(None, 4) is None
    with pytest.raises(InputError, match=r"strata .*has 1 missing value"):
        stratum_codes(["a", None, "b", "b"], 4)
    with pytest.raises(InputError, match="strata has 3 rows, but Y has 4"):
        stratum_codes(["a", "b", "b"], 4)


@pytest.fixture
def trial(rng):
    n = 240
    site = np.repeat(np.arange(6), 40)
    X = pd.DataFrame({"x": rng.normal(size=n)})
    T = np.tile(["drug", "placebo"], n // 2)
    return {"Y": X["x"].to_numpy() + site + rng.normal(size=n), "T": T, "X": X, "strata": site}


def test_strata_reach_the_folds_of_rewards_trees_and_values(trial):
    cell = np.unique(trial["T"], return_inverse=True)[1] * 6 + trial["strata"]
    model = by_columns(RewardEstimator(LinearRegression(), random_state=0).fit, **trial, propensity=0.5)
    assert spread(model.folds_, cell, 5) == 0
    tree = DRPolicyTree(LinearRegression(), max_depth=1, random_state=0)
    assert spread(by_columns(tree.fit, **trial, propensity=0.5).reward_estimator_.folds_, cell, 5) == 0
    values = by_columns(cross_val_policy_value, tree, **trial, propensity=0.5, random_state=0, cv=4)
    assert all(spread(repetition.folds.fold, cell, 4) == 0 for repetition in values.repetitions)


def test_normalised_weights_by_hand():
    Y, T = [1.0, 2.0, 4.0, 8.0], ["a", "a", "b", "b"]
    m = pd.DataFrame({"a": [1.0, 1.0, 2.0, 2.0], "b": [3.0, 3.0, 3.0, 3.0]})
    p = pd.DataFrame({"a": [0.5, 0.8, 0.5, 0.4], "b": [0.5, 0.2, 0.5, 0.6]})
    rewards = RewardEstimator(method="dr_normalized").fit_predict(Y, T, propensity=p, regression=m)
    w = np.array([2.0, 1.25, 2.0, 1 / 0.6])
    hajek_a = (w[0] * 0.0 + w[1] * 1.0) / (w[0] + w[1])
    hajek_b = (w[2] * 1.0 + w[3] * 5.0) / (w[2] + w[3])
    assert rewards["a"].mean() == pytest.approx(1.5 + hajek_a, abs=1e-12)
    assert rewards["b"].mean() == pytest.approx(3.0 + hajek_b, abs=1e-12)
    wa = w[:2] / (w[:2].sum() / 4)
    assert rewards["a"].to_numpy() == pytest.approx(
        [1 + hajek_a + wa[0] * (0 - hajek_a), 1 + hajek_a + wa[1] * (1 - hajek_a), 2 + hajek_a, 2 + hajek_a], abs=1e-12
    )


def test_normalised_rewards_do_not_move_with_a_shift_of_the_outcome_model(rng):
    """The plain scores do: their mean moves by one minus the mean weight."""
    Y, T = rng.normal(size=60), np.tile(["a", "b", "b"], 20)
    p = pd.DataFrame({"a": rng.uniform(0.2, 0.5, size=60)})
    p["b"] = 1 - p["a"]
    m = pd.DataFrame({"a": np.zeros(60), "b": np.zeros(60)})
    for method, moves in (("dr_normalized", False), ("dr", True)):
        model = RewardEstimator(method=method)
        means = [model.fit_predict(Y, T, propensity=p, regression=m + shift).mean() for shift in (0.0, 100.0)]
        assert bool((means[1] - means[0]).abs().max() > 1e-9) == moves


def test_overlap_table_has_the_mean_weight_by_hand():
    p = pd.DataFrame({"a": [0.5, 0.25, 0.5, 0.5], "b": [0.5, 0.75, 0.5, 0.5]})
    table = overlap_table(p, ["a", "b", "a", "b"], sample_weight=[1, 1, 1, 2])
    assert table.loc["a", "mean_weight"] == pytest.approx((2 + 2) / 5)
    assert table.loc["b", "mean_weight"] == pytest.approx((4 / 3 + 2 * 2) / 5)
    assert table.loc["a", "mean_weight_error"] == pytest.approx(np.sqrt(1 * 1 + 1 * 3 + 1 * 1 + 4 * 1) / 5)
    clustered = overlap_table(p, ["a", "b", "a", "b"], groups=[0, 1, 0, 1])
    assert clustered.loc["a", "mean_weight_error"] == pytest.approx(np.sqrt(max(1 + 3 + 1 + 1, 2**2 + 2**2)) / 4)


def test_propensities_that_do_not_fit_are_warned_about(rng):
    p = pd.DataFrame({"a": np.full(1_000, 0.5), "b": np.full(1_000, 0.5)})
    T = np.where(rng.random(1_000) < 0.7, "a", "b")
    with pytest.warns(OverlapWarning, match=r"weights of treatment [ab] have mean .* the propensities do not fit"):
        overlap_table(p, T)


def clustered_trial(rng, n_clusters=60, size=40):
    """Villages randomised with known, differing chances; everybody in a village gets the same."""
    chance = rng.choice([0.3, 0.5, 0.6, 0.7], size=n_clusters)
    got = rng.random(n_clusters) < chance
    cluster = np.repeat(np.arange(n_clusters), rng.poisson(size, size=n_clusters) + 1)
    p = pd.DataFrame({"control": 1 - chance[cluster], "treated": chance[cluster]})
    return p, np.where(got[cluster], "treated", "control"), cluster


def warned(call):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        call()
    return bool(heard)


def test_calibration_by_hand_with_clusters_and_weights():
    p = pd.DataFrame({"a": [0.5, 0.5, 0.5, 0.5], "b": [0.5, 0.5, 0.5, 0.5]})
    table = calibration_table(p, list("aabb"), sample_weight=[1, 2, 1, 0], groups=[7, 7, 8, 8])
    row = table.loc[("a", 0)]
    assert row[["rows", "clusters", "predicted", "observed"]].tolist() == [3, 2, 0.5, pytest.approx(0.75)]
    assert row["standard_error"] == pytest.approx(np.sqrt((3 * 0.5) ** 2 + (1 * -0.5) ** 2) / 4)


def test_true_propensities_of_clustered_trials_do_not_warn(rng):
    """They did in nearly every trial as long as rows counted as independent."""
    draws = [clustered_trial(rng) for _ in range(40)]
    blind = np.mean([warned(lambda d=d: calibration_table(d[0], d[1])) for d in draws])
    aware = np.mean([warned(lambda d=d: calibration_table(d[0], d[1], groups=d[2])) for d in draws])
    overlap = np.mean([warned(lambda d=d: overlap_table(d[0], d[1], groups=d[2])) for d in draws])
    assert blind > 0.8
    assert aware <= 0.05
    assert overlap <= 0.05


def test_wrong_propensities_of_clustered_trials_do_warn(rng):
    p, T, cluster = clustered_trial(rng, n_clusters=400)
    wrong = pd.DataFrame({"control": p["treated"], "treated": p["control"]})
    with pytest.warns(UserWarning, match="bins the share that got a treatment"):
        calibration_table(wrong, T, groups=cluster)


@pytest.mark.slow
def test_size_of_the_calibration_warning(rng):
    """Of tables of right propensities one in a hundred at most warns, also with clusters, weights and skew."""
    alarms = {"rows": [], "clusters": [], "weights": []}
    for _ in range(60):
        p = rng.beta(1, 4, size=1_500)
        frame, T = pd.DataFrame({"a": p, "b": 1 - p}), np.where(rng.random(1_500) < p, "a", "b")
        w = rng.lognormal(size=1_500)
        alarms["rows"].append(warned(lambda f=frame, T=T: calibration_table(f, T)))
        alarms["weights"].append(warned(lambda f=frame, T=T, w=w: calibration_table(f, T, sample_weight=w)))
        q, T, cluster = clustered_trial(rng, n_clusters=40, size=20)
        alarms["clusters"].append(warned(lambda q=q, T=T, c=cluster: calibration_table(q, T, groups=c)))
    counts = {name: np.sum(said) for name, said in alarms.items()}
    assert max(counts.values()) <= binom.ppf(0.999, 60, 0.01), counts


@pytest.mark.slow
def test_normalised_values_cover(rng):
    """Three arms with weights up to twenty: intervals of the normalised scores cover as they say."""
    inside = []
    for _ in range(800):
        x = rng.normal(size=400)
        p = np.column_stack([np.full(400, 0.05), 0.15 + 0.3 / (1 + np.exp(-x))])
        p = np.column_stack([p, 1 - p.sum(axis=1)])
        arm = (rng.random(400)[:, None] > p.cumsum(axis=1)).sum(axis=1)
        Y = x + arm + rng.normal(size=400)
        m = np.tile(0.3 * x[:, None], (1, 3))  # wrong outcome models
        model = RewardEstimator(method="dr_normalized")
        value = policy_value(0, model.fit_predict(Y, arm, propensity=p, regression=m))
        inside.append(value.lower <= 0.0 <= value.upper)
    assert 0.90 <= np.mean(inside) <= 0.975  # twenty rows of the rare arm
