import numpy as np
import pandas as pd
import polars as pl
import pytest
import statsmodels.api as sm
from scipy import stats

from policytree import leaf_summary, policy_value
from policytree.evaluation.estimates import Estimate, mean_estimate
from policytree.exceptions import InputError
from tests.support.simulations import assert_errors_are_as_said

LABELS = ["low", "mid", "top"]


@pytest.fixture
def rewards(rng):
    """60 rows, three arms, with a common effect per row so that arms are correlated."""
    values = rng.normal(size=(60, 3)) + rng.normal(scale=2, size=(60, 1)) + [0.0, 0.5, 1.0]
    return pd.DataFrame(values, columns=LABELS)


@pytest.fixture
def policy(rng):
    return rng.choice(LABELS, size=60)


@pytest.fixture
def groups(rng):
    return rng.integers(0, 17, size=60)


def rewards_under(policy, rewards):
    return np.array([rewards.loc[i, label] for i, label in enumerate(policy)])


def assert_matches(estimate: Estimate, reference, level=0.95):
    """Compare with a statsmodels fit on a constant."""
    assert estimate.value == pytest.approx(reference.params[0], rel=1e-12)
    assert estimate.standard_error == pytest.approx(reference.bse[0], rel=1e-10)
    np.testing.assert_allclose([estimate.lower, estimate.upper], reference.conf_int(1 - level)[0], rtol=1e-10)


# Standard errors against statsmodels ------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_independent_rows_match_ols_on_a_constant(rewards, policy, level):
    scores = rewards_under(policy, rewards)
    reference = sm.OLS(scores, np.ones(60)).fit()
    estimate = policy_value(policy, rewards, level=level)
    assert_matches(estimate, reference, level)
    assert (estimate.n, estimate.n_clusters, estimate.level) == (60, 60, level)


def test_clusters_match_statsmodels(rewards, policy, groups):
    scores = rewards_under(policy, rewards)
    reference = sm.OLS(scores, np.ones(60)).fit(cov_type="cluster", cov_kwds={"groups": groups}, use_t=True)
    estimate = policy_value(policy, rewards, groups=groups)
    assert_matches(estimate, reference)
    assert estimate.n_clusters == len(np.unique(groups))
    by_name = policy_value(policy, rewards, groups=[f"person {g}" for g in groups])
    assert by_name.standard_error == pytest.approx(estimate.standard_error, rel=1e-12)


def test_weighted_clusters_match_statsmodels(rewards, policy, groups, rng):
    weight = rng.uniform(0.2, 3, size=60)
    scores = rewards_under(policy, rewards)
    model = sm.WLS(scores, np.ones(60), weights=weight)
    reference = model.fit(cov_type="cluster", cov_kwds={"groups": groups}, use_t=True)
    assert_matches(policy_value(policy, rewards, groups=groups, sample_weight=weight), reference)


def test_difference_is_paired(rewards, policy, groups):
    scores = rewards_under(policy, rewards) - rewards["low"].to_numpy()
    reference = sm.OLS(scores, np.ones(60)).fit(cov_type="cluster", cov_kwds={"groups": groups}, use_t=True)
    difference = policy_value(policy, rewards, baseline="low", groups=groups)
    assert_matches(difference, reference)
    one, other = (policy_value(p, rewards, groups=groups) for p in (policy, "low"))
    np.testing.assert_allclose(difference.influence, one.influence - other.influence, atol=1e-12)
    # the arms share a row effect, so pairing must beat adding variances
    assert difference.standard_error < np.hypot(one.standard_error, other.standard_error) / 1.5


def test_equal_policies_differ_by_exactly_zero(rewards, policy):
    difference = policy_value(policy, rewards, baseline=policy)
    assert (difference.value, difference.standard_error, difference.lower, difference.upper) == (0, 0, 0, 0)


def test_influence_sums_to_zero_and_gives_the_standard_error(rewards, policy, rng):
    estimate = policy_value(policy, rewards, sample_weight=rng.uniform(size=60))
    assert estimate.influence.sum() == pytest.approx(0, abs=1e-10)
    by_hand = np.sqrt(60 / 59 * (estimate.influence**2).sum()) / 60
    assert estimate.standard_error == pytest.approx(by_hand, rel=1e-12)


# Weights ----------------------------------------------------------------------------------------------------------


def test_weight_two_is_a_row_twice_within_its_cluster(rewards, policy, groups, rng):
    """Sampling weights: the copies are one piece of evidence, so they must share a cluster for errors to agree."""
    weight = rng.integers(1, 4, size=60)
    rows = np.repeat(np.arange(60), weight)
    copies = policy_value(policy[rows], rewards.iloc[rows].reset_index(drop=True), groups=groups[rows])
    weighted = policy_value(policy, rewards, groups=groups, sample_weight=weight)
    assert weighted.value == pytest.approx(copies.value, rel=1e-12)
    assert weighted.standard_error == pytest.approx(copies.standard_error, rel=1e-12)


def test_zero_weight_is_absence_and_scale_is_free(rewards, policy, groups):
    weight = (groups > 5) * 1.0
    kept = np.flatnonzero(weight)
    absent = policy_value(policy[kept], rewards.iloc[kept].reset_index(drop=True), groups=groups[kept])
    weighted = policy_value(policy, rewards, groups=groups, sample_weight=weight * 1e6)
    assert weighted.value == pytest.approx(absent.value, rel=1e-12)
    assert weighted.standard_error == pytest.approx(absent.standard_error, rel=1e-12)
    assert (weighted.n, weighted.n_clusters) == (absent.n, absent.n_clusters)


# Forms of policies and labels -------------------------------------------------------------------------------------


def test_constant_arm_is_its_label(rewards):
    assert policy_value("mid", rewards).value == pytest.approx(rewards["mid"].mean(), rel=1e-12)


@pytest.mark.parametrize("labels", [[0, 25, 95], [0.0, 2.5, 9.5], ["a", 1, 2.5], [False, True, "x"]], ids=str)
def test_labels_of_any_type(rewards, labels):
    table = rewards.set_axis(labels, axis=1)
    policy = [labels[i % 3] for i in range(60)]
    expected = np.mean([rewards.iloc[i, i % 3] for i in range(60)])
    assert policy_value(policy, table).value == pytest.approx(expected, rel=1e-12)
    assert policy_value(pd.Series(policy, dtype=object), table).value == pytest.approx(expected, rel=1e-12)
    assert policy_value(labels[2], table).value == pytest.approx(rewards["top"].mean(), rel=1e-12)


def test_array_rewards_are_numbered(rewards):
    codes = np.arange(60) % 3
    expected = np.mean([rewards.iloc[i, i % 3] for i in range(60)])
    assert policy_value(codes, rewards.to_numpy()).value == pytest.approx(expected, rel=1e-12)


def test_categorical_column_and_polars(rewards, policy, groups):
    expected = policy_value(policy, rewards, groups=groups)
    for same in (
        policy_value(pd.Categorical(policy), rewards, groups=pd.Series(groups, index=rewards.index)),
        policy_value(policy.reshape(-1, 1), rewards, groups=groups),
        policy_value(pl.Series(policy), pl.DataFrame(rewards.to_dict("list")), groups=pl.Series(groups)),
    ):
        assert (same.value, same.standard_error) == (expected.value, expected.standard_error)


def test_probability_policies(rewards, policy, rng):
    certain = pd.DataFrame({label: (policy == label) * 1.0 for label in LABELS})
    expected = policy_value(policy, rewards)
    assert policy_value(certain.to_numpy(), rewards).value == pytest.approx(expected.value, rel=1e-12)
    # a frame's columns are matched by name
    assert policy_value(certain[LABELS[::-1]], rewards).value == pytest.approx(expected.value, rel=1e-12)
    even = np.full((60, 3), 1 / 3)
    assert policy_value(even, rewards).value == pytest.approx(rewards.to_numpy().mean(), rel=1e-12)
    assert policy_value(even, rewards, baseline=even).standard_error == 0


def test_estimate_as_a_frame_and_as_text(rewards, policy):
    estimate = policy_value(policy, rewards)
    frame = estimate.to_frame()
    assert list(frame) == ["value", "standard_error", "lower", "upper", "level", "n", "n_clusters"]
    assert frame.loc[0, "upper"] == estimate.upper
    assert "95% interval" in repr(estimate)


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((6247.83, 577.3, 5112.53, 7383.13, 0.95), "6,248 (95% CI 5,113 to 7,383)"),
        ((-0.01234, 0.0031, -0.0174, -0.0072, 0.9), "-0.0123 (90% CI -0.0174 to -0.0072)"),
        ((0.5, np.nan, np.nan, np.nan, 0.95), "0.5 (no interval)"),
    ],
)
def test_an_estimate_is_printed_as_exactly_as_it_is_known(numbers, text):
    assert str(Estimate(*numbers, n=60, n_clusters=60, influence=np.zeros(60), degrees_of_freedom=59)) == text


# Coverage ---------------------------------------------------------------------------------------------------------


def errors_of_one_trial(rng, n_clusters, rows_each=3):
    """Value and gain of a fixed policy in a simulated trial with known nuisances, less the truth, and their errors."""
    n = n_clusters * rows_each
    groups = np.repeat(np.arange(n_clusters), rows_each)
    x = np.repeat(rng.normal(size=n_clusters), rows_each)
    treated = np.repeat(rng.random(n_clusters) < 0.4, rows_each)
    noise = rng.standard_t(6, size=n) + np.repeat(rng.normal(size=n_clusters), rows_each)
    y = 1 + x + 0.5 * x * treated + noise
    mean = np.column_stack([1 + x, 1 + 1.5 * x])
    probability = np.where(treated, 0.4, 0.6)
    rewards = mean.copy()
    rewards[np.arange(n), treated.astype(int)] += (y - mean[np.arange(n), treated.astype(int)]) / probability
    policy = (x > 0).astype(int)
    truth = 1 + 0.5 * np.sqrt(1 / (2 * np.pi))  # E[1 + x + 0.5 max(x, 0)]
    value = policy_value(policy, rewards, groups=groups)
    gain = policy_value(policy, rewards, baseline=0, groups=groups)
    return value.value - truth, value.standard_error, gain.value - (truth - 1), gain.standard_error


def test_errors_are_as_said():
    generator = np.random.default_rng(17)
    value, value_error, gain, gain_error = np.array([errors_of_one_trial(generator, 100) for _ in range(600)]).T
    assert_errors_are_as_said(value, value_error, 0.0)
    assert_errors_are_as_said(gain, gain_error, 0.0)


def test_few_clusters_take_students_t():
    estimate = mean_estimate(np.array([1.0, 2.0, 4.0]))
    assert (estimate.upper - estimate.value) / estimate.standard_error == pytest.approx(stats.t.ppf(0.975, 2))


# Leaves -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_leaf_summary_agrees_with_policy_value_in_each_leaf(rewards, groups, rng, direction):
    leaves = rng.choice([1, 3, 4], size=60)
    policy = pd.Series(leaves).map({1: "mid", 3: "top", 4: "low"})
    weight = rng.uniform(0.5, 2, size=60)
    summary = leaf_summary(leaves, policy, rewards, groups=groups, sample_weight=weight, direction=direction)
    assert list(summary.index) == [1, 3, 4]
    assert summary["share"].sum() == pytest.approx(1)
    assert summary["arm"].to_dict() == {1: "mid", 3: "top", 4: "low"}
    for leaf in (1, 3, 4):
        rows = np.flatnonzero(leaves == leaf)
        inside = {"groups": groups[rows], "sample_weight": weight[rows]}
        table = rewards.iloc[rows].reset_index(drop=True)
        assert summary.loc[leaf, ("n", "")] == len(rows)
        values = {label: policy_value(label, table, **inside) for label in LABELS}
        for label, estimate in values.items():
            assert summary.loc[leaf, ("value", label)] == pytest.approx(estimate.value, rel=1e-12)
            assert summary.loc[leaf, ("standard_error", label)] == pytest.approx(estimate.standard_error, rel=1e-12)
        chosen = summary.loc[leaf, ("arm", "")]
        others = sorted((values[label].value, label) for label in LABELS if label != chosen)
        second = others[-1 if direction == "maximize" else 0][1]
        assert summary.loc[leaf, ("second_best", "")] == second
        gain = policy_value(chosen, table, baseline=second, **inside)
        assert summary.loc[leaf, ("gain", "value")] == pytest.approx(gain.value, rel=1e-12)
        assert summary.loc[leaf, ("gain", "standard_error")] == pytest.approx(gain.standard_error, rel=1e-12)


def test_leaf_values_add_up_to_the_policy_value(rewards, rng):
    leaves = rng.integers(0, 4, size=60)
    policy = np.array(LABELS)[leaves % 3]
    summary = leaf_summary(leaves, policy, rewards)
    chosen = [summary.loc[leaf, ("value", arm)] for leaf, arm in summary["arm"].items()]
    assert summary["share"] @ chosen == pytest.approx(policy_value(policy, rewards).value, rel=1e-12)


def test_a_leaf_of_one_row_has_no_standard_error(rewards):
    leaves = np.r_[7, np.zeros(59, dtype=int)]
    summary = leaf_summary(leaves, "top", rewards)
    assert np.isnan(summary.loc[7, ("standard_error", "top")])
    assert summary.loc[7, ("value", "top")] == rewards.loc[0, "top"]
    assert np.isfinite(summary.loc[0, ("standard_error", "top")])


def test_leaf_summary_refuses_mixed_leaves(rewards, policy):
    with pytest.raises(InputError, match="leaf 0 more than one treatment"):
        leaf_summary(np.zeros(60, dtype=int), policy, rewards)
    with pytest.raises(InputError, match="direction must be"):
        leaf_summary(np.zeros(60, dtype=int), "top", rewards, direction="max")
    with pytest.raises(InputError, match="leaf 1 have sample_weight zero"):
        leaf_summary(np.arange(60) % 2, "top", rewards, sample_weight=np.arange(60) % 2 == 0)


# Bad input --------------------------------------------------------------------------------------------------------


def with_cell(rewards, value):
    out = rewards.copy()
    out.loc[4, "mid"] = value
    return out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p, r: {"policy": "none"}, "recommends 'none', which has no rewards; the treatments are low, mid, top"),
        (lambda p, r: {"policy": np.where(p == "low", "Low", p)}, "recommends 'Low'"),
        (lambda p, r: {"policy": np.r_[p[:-1].astype(object), None]}, "recommends (None|nan)"),
        (lambda p, r: {"policy": p[:-1]}, "policy has 59 rows, but rewards has 60"),
        (lambda p, r: {"policy": np.full((60, 2), 0.5)}, "has shape .60, 2., but rewards has"),
        (lambda p, r: {"policy": np.full((60, 3), 0.5)}, "every row summing to one"),
        (lambda p, r: {"policy": np.tile([1.5, -0.5, 0], (60, 1))}, "none negative"),
        (lambda p, r: {"policy": pd.DataFrame(np.full((60, 3), 1 / 3))}, "must have the columns of rewards: low, mid"),
        (lambda p, r: {"rewards": with_cell(r, np.nan)}, "reward of treatment mid is missing or infinite in row 4"),
        (lambda p, r: {"rewards": with_cell(r, np.inf)}, "reward of treatment mid is missing or infinite in row 4"),
        (lambda p, r: {"rewards": r["low"].to_numpy()}, r"shape \(n, K\)"),
        (lambda p, r: {"rewards": r[["low"]]}, "at least two treatments"),
        (lambda p, r: {"rewards": r.iloc[:0]}, "must have rows"),
        (lambda p, r: {"rewards": r.astype(str) + "x"}, "not numbers"),
        (lambda p, r: {"rewards": r.set_axis(["a", "a", "b"], axis=1)}, "two columns named a"),
        (lambda p, r: {"groups": np.arange(59)}, "groups has 59 rows, but rewards has 60"),
        (lambda p, r: {"groups": np.r_[np.nan, np.arange(59)]}, "groups has missing values, the first in row 0"),
        (lambda p, r: {"groups": np.zeros(60)}, "at least two clusters"),
        (lambda p, r: {"sample_weight": -np.ones(60)}, "sample_weight has 60 negative values"),
        (lambda p, r: {"sample_weight": np.zeros(60)}, "sample_weight is zero"),
        (lambda p, r: {"sample_weight": np.r_[np.ones(1), np.zeros(59)]}, "at least two rows"),
        (lambda p, r: {"level": 95}, "level must lie between 0 and 1"),
    ],
)
def test_bad_input_is_named(policy, rewards, change, message):
    arguments = {"policy": policy, "rewards": rewards, **change(policy, rewards)}
    with pytest.raises(InputError, match=message):
        policy_value(arguments.pop("policy"), arguments.pop("rewards"), **arguments)


def test_difference_names_the_side(rewards, policy):
    with pytest.raises(InputError, match=r"^baseline recommends 'none'"):
        policy_value(policy, rewards, baseline="none")
