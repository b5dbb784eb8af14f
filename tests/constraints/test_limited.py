"""Limits on further outcomes, parity between groups and the worst-served group: against every tree there is."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression

from policytree import DRPolicyTree, PolicyTree, RewardEstimator, cross_val_policy_value, honest_leaf_summary
from policytree.constraints import Budget, EqualShares, EqualValues, Limit, WorstGroup
from policytree.constraints.people import Subgroups
from policytree.estimators.policy import without_limits
from policytree.evaluation import pareto_path, policy_stability
from policytree.evaluation.estimates import mean_estimate
from policytree.evaluation.policy_value.further import WITHOUT_LIMITS, JudgedGroups, kept_probability
from policytree.exceptions import InputError
from policytree.problem.types import Status
from policytree.weighting.study_data import StudyData, by_columns


def all_trees(codes: np.ndarray, depth: int, n_arms: int):
    """Yield every row's actions under every tree of some depth."""
    n = len(codes)
    if depth == 0 or n == 0:
        yield from (np.full(n, a) for a in range(n_arms))
        return
    below = list(all_trees(codes, 0, n_arms))
    yield from below
    for j in range(codes.shape[1]):
        for cut in np.unique(codes[:, j])[:-1]:
            left = codes[:, j] <= cut
            sides = [list(all_trees(codes[side], depth - 1, n_arms)) for side in (left, ~left)]
            for one, other in product(*sides):
                out = np.empty(n, dtype=int)
                out[left], out[~left] = one, other
                yield out


@st.composite
def studies(draw):
    n, n_arms, depth = draw(st.integers(6, 12)), draw(st.integers(2, 3)), draw(st.integers(1, 2))
    X = np.array(draw(st.lists(st.integers(0, 3), min_size=2 * n, max_size=2 * n)), dtype=float).reshape(n, 2)
    numbers = st.integers(-4, 4)
    rewards, harm = (
        np.array(draw(st.lists(numbers, min_size=n * n_arms, max_size=n * n_arms)), dtype=float).reshape(n, n_arms)
        for _ in range(2)
    )
    group = np.array(draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    group[:4] = [0, 0, 1, 1]
    weight = np.array(draw(st.lists(st.sampled_from([1.0, 1.0, 2.0, 0.5]), min_size=n, max_size=n)))
    return X, rewards, harm, group, weight, depth


def means(chosen, values, group, weight):
    each = values[np.arange(len(chosen)), chosen]
    return [np.average(each[group == g], weights=weight[group == g]) for g in (0, 1)]


def tolerant(a, b):
    return a <= b + 1e-9


@settings(max_examples=60)
@given(studies(), st.integers(-3, 3))
def test_a_limit_on_an_outcome_by_brute_force(study, limit):
    X, rewards, harm, _, weight, depth = study
    every = np.arange(len(X))
    kept = [
        np.average(rewards[every, t], weights=weight)
        for t in all_trees(X, depth, rewards.shape[1])
        if tolerant(np.average(harm[every, t], weights=weight), limit)
    ]
    tree = PolicyTree(max_depth=depth, constraints=[Limit("harm", limit)])
    data = {"sample_weight": weight, "outcomes": {"harm": harm}}
    if not kept:
        with pytest.raises(InputError, match=r"has a mean of 'harm' below .*, but its limit is"):
            tree.fit(X, rewards, **data)
        return
    tree.fit(X, rewards, **data)
    assert tree.status_ is Status.OPTIMAL
    assert tree.objective_value_ == pytest.approx(max(kept), abs=1e-9)
    assert tolerant(tree.outcome_means_["harm"], limit)
    free = PolicyTree(max_depth=depth).fit(X, rewards, sample_weight=weight).objective_value_
    assert tree.price_of_limits_ == pytest.approx(free - tree.objective_value_, abs=1e-9)
    turned = PolicyTree(max_depth=depth, constraints=[Limit("good", -limit)])
    turned.fit(X, rewards, sample_weight=weight, outcomes={"good": (-harm, "maximize")})
    assert turned.objective_value_ == pytest.approx(max(kept), abs=1e-9)


@settings(max_examples=60)
@given(studies(), st.sampled_from([0.0, 0.2, 0.5]))
def test_parity_of_shares_by_brute_force(study, gap):
    X, rewards, _, group, weight, depth = study
    every, kept = np.arange(len(X)), []
    for t in all_trees(X, depth, rewards.shape[1]):
        one_hot = np.eye(rewards.shape[1])[t]
        shares = [np.average(one_hot[group == g], axis=0, weights=weight[group == g]) for g in (0, 1)]
        if tolerant(np.abs(shares[0] - shares[1]).max(), gap):
            kept.append(np.average(rewards[every, t], weights=weight))
    tree = PolicyTree(max_depth=depth, constraints=[EqualShares("sex", gap)])
    tree.fit(X, rewards, sample_weight=weight, subgroups=pd.DataFrame({"sex": group}))
    assert tree.status_ is Status.OPTIMAL
    assert tree.objective_value_ == pytest.approx(max(kept), abs=1e-9)  # one treatment for all is always allowed
    shares = tree.subgroup_values_.loc["sex"].filter(like="share of")
    assert tolerant(np.ptp(shares.to_numpy(), axis=0).max(), gap)


@settings(max_examples=60)
@given(studies(), st.sampled_from([0.0, 0.5, 2.0]))
def test_parity_of_values_by_brute_force(study, gap):
    X, rewards, _, group, weight, depth = study
    every, kept = np.arange(len(X)), []
    for t in all_trees(X, depth, rewards.shape[1]):
        if tolerant(abs(np.subtract(*means(t, rewards, group, weight))), gap):
            kept.append(np.average(rewards[every, t], weights=weight))
    tree = PolicyTree(max_depth=depth, constraints=[EqualValues("sex", gap)])
    data = {"sample_weight": weight, "subgroups": pd.DataFrame({"sex": group})}
    if not kept:
        with pytest.raises(InputError, match=r"has a gap of sex: |keeps to all constraints at once"):
            tree.fit(X, rewards, **data)
        return
    tree.fit(X, rewards, **data)
    assert tree.objective_value_ == pytest.approx(max(kept), abs=1e-9)


@settings(max_examples=60)
@given(studies(), st.booleans())
def test_the_worst_served_group_by_brute_force(study, minimize):
    X, rewards, _, group, weight, depth = study
    sign = -1.0 if minimize else 1.0
    best = max(min(means(t, rewards, group, weight)) for t in all_trees(X, depth, rewards.shape[1]))
    tree = PolicyTree(
        max_depth=depth, constraints=[WorstGroup("sex")], direction="minimize" if minimize else "maximize"
    )
    tree.fit(X, sign * rewards, sample_weight=weight, subgroups=pd.DataFrame({"sex": group}))
    assert tree.status_ is Status.OPTIMAL
    assert sign * tree.objective_value_ == pytest.approx(best, abs=1e-9)
    assert min(sign * tree.subgroup_values_["value"]) == pytest.approx(best, abs=1e-9)
    assert "of the worst-served sex" in tree.certificate()


def test_limits_join_budgets_and_prices_of_leaves():
    rng = np.random.default_rng(0)
    X, rewards, harm = rng.normal(size=(120, 3)).round(1), rng.normal(size=(120, 2)), rng.normal(size=(120, 2))
    sex, cost = rng.choice(["f", "m"], 120), {1: 1.0}
    tree = PolicyTree(
        max_depth=2, constraints=[Budget(0.4), Limit("harm", 0.0), EqualShares("sex", 0.1), WorstGroup("sex")],
        regularization=0.01,
    )  # fmt: skip
    tree.fit(X, rewards, budget_costs=cost, outcomes={"harm": harm}, subgroups=pd.DataFrame({"sex": sex}))
    assert tree.spend_ <= 0.4
    assert tree.outcome_means_["harm"] <= 1e-12
    assert np.ptp(tree.subgroup_values_["share of 1"]) <= 0.1 + 1e-12
    worst = tree.subgroup_values_["value"].min()
    assert tree.objective_value_ == pytest.approx(worst - 0.01 * tree.tree_.n_leaves)
    assert tree.objective_bound_ >= tree.objective_value_ - 1e-12
    assert set(tree.multipliers_) >= {"budget", "limit", "share_gap"}


def test_groups_are_described_without_any_limit():
    rng = np.random.default_rng(1)
    X, rewards = rng.normal(size=(60, 2)), rng.normal(size=(60, 2))
    site = rng.choice(["a", "b", "c"], 60)
    tree = PolicyTree(max_depth=1).fit(X, rewards, subgroups=pd.DataFrame({"site": site}))
    assert list(tree.subgroup_values_.index) == [("site", "a"), ("site", "b"), ("site", "c")]
    assert tree.subgroup_values_["people"].sum() == 60
    value = np.average(tree.subgroup_values_["value"], weights=tree.subgroup_values_["weight"])
    assert value == pytest.approx(tree.objective_value_)
    assert PolicyTree(max_depth=1).fit(X, rewards).subgroup_values_ is None


@pytest.mark.parametrize(
    ("arguments", "data", "message"),
    [
        ({"constraints": [Limit("harm", 1.0)]}, {}, "Limit names 'harm', which is not among the outcomes"),
        ({}, {"outcomes": np.ones((20, 2))}, "outcomes must be a mapping"),
        ({}, {"outcomes": {"harm": np.ones(20)}}, r"outcomes\['harm'\] has shape \(20,\)"),
        ({}, {"outcomes": {"harm": np.full((20, 2), np.nan)}}, "has a missing or infinite reward in row 0"),
        ({}, {"outcomes": {"harm": (np.ones((20, 2)), "up")}}, "The direction of outcome 'harm' must be"),
        ({"constraints": [EqualShares("sex", 0.1)]}, {}, "EqualShares names 'sex', which is no column of subgroups"),
        (
            {"constraints": [WorstGroup("age")]},
            {"subgroups": pd.DataFrame({"sex": [0, 1] * 10})},
            "WorstGroup names 'age'",
        ),
        ({}, {"subgroups": pd.DataFrame({"sex": [0, 1] * 9})}, "subgroups has 18 rows, but there are 20 people"),
        ({}, {"subgroups": pd.DataFrame({"sex": [0, None] * 10})}, "is missing for 10 people"),
        ({}, {"subgroups": pd.DataFrame({"sex": ["f"] * 20})}, "has 1 groups; groups that are compared must be 2"),
        (
            {"constraints": [WorstGroup("sex")]},
            {"subgroups": pd.DataFrame({"sex": [0] * 19 + [1]})},
            "Group '1' of 'sex' has 1 people of positive weight, too few",
        ),
        (
            {"constraints": [WorstGroup("sex")], "solver": "sampling"},
            {"subgroups": pd.DataFrame({"sex": [0, 1] * 10})},
            "need the exact search",
        ),
    ],
)
def test_bad_limits_are_refused(arguments, data, message):
    X, rewards = np.arange(20.0)[:, None], np.tile([0.0, 1.0], (20, 1))
    with pytest.raises(InputError, match=message):
        PolicyTree(max_depth=1, **arguments).fit(X, rewards, **data)


def study_of_harm(n: int = 240, seed: int = 0):
    """A drug that helps the young and harms some of them, in a trial with a rare site."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"age": rng.integers(20, 80, n), "site": rng.choice(["a", "b", "c"], n, p=[0.6, 0.37, 0.03])})
    T = rng.choice(["drug", "none"], n)
    young = X["age"].to_numpy() < 55
    Y = (T == "drug") * np.where(young, 2.0, -1.0) + rng.normal(size=n)
    toxic = (rng.random(n) < 0.05 + 0.35 * (T == "drug") * young).astype(float)
    return X, T, Y, toxic, pd.DataFrame({"sex": rng.choice(["f", "m"], n)})


def test_harm_of_a_trial_is_limited_by_its_own_rewards():
    X, T, Y, toxic, sex = study_of_harm()
    tree = DRPolicyTree(max_depth=2, constraints=[Limit("toxic", 0.15)], random_state=0)
    tree.fit(StudyData.of(Y, T, X=X, propensity=0.5, outcomes={"toxic": toxic}, subgroups=sex))
    own = RewardEstimator(random_state=0).fit_predict(toxic, T, X=X, propensity=0.5)
    np.testing.assert_allclose(tree.outcome_estimators_["toxic"].rewards_, own)
    chosen = tree.predict(X)
    assert np.mean([own.loc[i, arm] for i, arm in enumerate(chosen)]) == pytest.approx(tree.outcome_means_["toxic"])
    assert tree.outcome_means_["toxic"] <= 0.15
    assert tree.price_of_limits_ > 0
    free = DRPolicyTree(max_depth=2, random_state=0).fit(Y, T, X=X, propensity=0.5)
    assert tree.price_of_limits_ == pytest.approx(free.objective_value_ - tree.objective_value_)


def test_outcomes_of_trials_that_are_refused():
    X, T, Y, toxic, _ = study_of_harm()
    tree = DRPolicyTree(max_depth=1, constraints=[Limit("toxic", 0.15)])
    with pytest.raises(InputError, match="Limit names 'toxic'"):
        tree.fit(Y, T, X=X)
    with pytest.raises(InputError, match=r"outcomes\['toxic'\]: .*120"):
        tree.fit(StudyData.of(Y, T, X=X, outcomes={"toxic": toxic[:120]}))
    with pytest.raises(InputError, match="know no instrument"):
        tree.fit(StudyData.of(Y, T, X=X, outcomes={"toxic": toxic}, instrument=T))


def test_held_out_harm_and_values_by_group():
    X, T, Y, toxic, sex = study_of_harm()
    tree = DRPolicyTree(
        LinearRegression(), max_depth=1, constraints=[Limit("toxic", 0.15), Limit("wellbeing", 0.7)], random_state=0
    )
    further = {"toxic": toxic, "wellbeing": (1 - toxic, "maximize")}
    values = cross_val_policy_value(
        tree,
        StudyData.of(Y, T, X=X, propensity=0.5, outcomes=further, subgroups=sex),
        cv=3,
        n_repeats=1,
        random_state=0,
    )
    repetition = values.repetitions[0]
    harm = values.further["toxic"]
    rewards = np.zeros((len(Y), 2))
    for train, test in repetition.folds.splits():
        own = RewardEstimator(LinearRegression(), random_state=0)
        own.fit(toxic[train], T[train], X=X.iloc[train], propensity=0.5)
        rewards[test] = own.predict_rewards(toxic[test], T[test], X=X.iloc[test], propensity=0.5)
    by_hand = rewards[np.arange(len(Y)), (repetition.policy == "none").astype(int)]
    assert harm["policy tree"].value == pytest.approx(by_hand.mean())
    assert harm["always drug"].value == pytest.approx(rewards[:, 0].mean())
    assert harm["as randomised"].value == pytest.approx(toxic.mean())
    frame = values.further_frame()
    assert frame.loc[("toxic", "policy tree"), "value"] == pytest.approx(by_hand.mean())
    groups = values.group_values
    women = (sex["sex"] == "f").to_numpy()
    assert groups.loc[("sex", "f"), "value"] == pytest.approx(repetition.scores["policy tree"][women].mean())
    assert groups.loc[("sex", "f"), "people"] == women.sum()
    assert groups.loc[("sex", "f"), "share of drug"] == pytest.approx((repetition.policy[women] == "drug").mean())
    text = values.to_text()
    assert "toxic, held out" in text
    assert "the limit of at most 0.15" in text
    assert "the limit of at least 0.7" in text
    assert "Value of the tree by group, held out; the intervals hold all at once" in text
    assert "Several outcomes are looked at" in text


def test_confidence_in_a_limit_is_that_of_its_interval():
    found = mean_estimate(np.random.default_rng(0).normal(size=80))
    assert kept_probability(Limit("harm", found.upper), found) == pytest.approx(0.975)
    assert kept_probability(Limit("harm", found.lower), found) == pytest.approx(0.025)
    assert kept_probability(Limit("good", found.lower, at_least=True), found) == pytest.approx(0.975)


def groups_of(n: int = 120, seed: int = 0):
    """People of three groups, one of them rare, some of weight zero; what a rule gives and brings them."""
    rng = np.random.default_rng(seed)
    code = rng.choice(3, n, p=[0.5, 0.45, 0.05])
    weight = rng.choice([0.0, 1.0, 2.0], n, p=[0.1, 0.6, 0.3])
    policy, scores = rng.choice(["drug", "none"], n), rng.normal(size=n) + code
    clusters = rng.integers(0, 30, n)

    def judge(each, weight, level):
        return mean_estimate(each[0], groups=clusters, sample_weight=weight, level=level)

    subgroups = {"site": Subgroups(code, ("a", "b", "c"))}
    return JudgedGroups(subgroups, weight, ["drug", "none"], [policy], [scores], judge), clusters


def test_gaps_between_groups_are_coefficients_of_a_clustered_regression():
    """The difference of two groups' means, with the errors of statsmodels' weighted regression on their indicators."""
    judged, clusters = groups_of()
    gaps = judged.gaps([EqualValues("site", 0.5)], 0.95)
    assert [(gap.one, gap.other) for gap in gaps] == [("a", "b"), ("a", "c"), ("b", "c")]
    code, weight = judged.subgroups["site"].code, judged.weight
    design = np.eye(3)[code]
    kept = weight > 0
    fitted = sm.WLS(judged.scores[0][kept], design[kept], weights=weight[kept]).fit(
        cov_type="cluster", cov_kwds={"groups": clusters[kept], "use_correction": False}
    )
    count = len(np.unique(clusters[kept]))
    for gap, (g, h) in zip(gaps, [(0, 1), (0, 2), (1, 2)], strict=True):
        contrast = np.eye(3)[g] - np.eye(3)[h]
        assert gap.estimate.value == pytest.approx(contrast @ fitted.params)
        error = np.sqrt(contrast @ fitted.cov_params() @ contrast * count / (count - 1))
        assert gap.estimate.standard_error == pytest.approx(error)
        assert gap.estimate.level == pytest.approx(1 - 0.05 / 3)


def test_confidence_in_a_gap_is_that_of_its_interval():
    judged, _ = groups_of()
    (gap, *_) = judged.gaps([EqualShares("site", 0.1)], 0.95)
    assert gap.what == "share of drug"
    e = gap.estimate
    far = replace(gap, limit=abs(e.value) + 100 * e.standard_error)
    assert far.missed_probability() == pytest.approx(0.0, abs=1e-9)
    edge = replace(gap, estimate=replace(e, value=gap.limit, standard_error=1e-6))
    assert edge.missed_probability() == pytest.approx(0.5)


def test_values_by_group_leave_out_groups_without_weight():
    judged, _ = groups_of()
    nobody = replace(judged, weight=judged.weight * (judged.subgroups["site"].code != 2))
    assert list(nobody.values(0.95).index) == [("site", "a"), ("site", "b")]
    assert [(gap.one, gap.other) for gap in nobody.gaps([EqualValues("site", 1.0)], 0.95)] == [("a", "b")]


def test_a_recommended_rule_that_breaks_a_limit_is_named():
    """The drug for everybody is best by the main outcome and makes twice as many sick as allowed."""
    X, T, Y, toxic, sex = study_of_harm()
    tree = DRPolicyTree(
        LinearRegression(), max_depth=1, constraints=[Limit("toxic", 0.1), EqualShares("sex", 0.3)], random_state=0
    )
    values = cross_val_policy_value(
        tree,
        StudyData.of(Y + 2.0 * (T == "drug"), T, X=X, propensity=0.5, outcomes={"toxic": toxic}, subgroups=sex),
        cv=3,
        n_repeats=1,
        random_state=0,
        rivals={WITHOUT_LIMITS: without_limits(tree)},
    )
    assert values.verdict.rule == "always drug"
    assert values.further["toxic"]["always drug"].value > 0.1
    (said,) = values.broken_limits()
    assert said.startswith("The verdict is about the main outcome and knows no limits: under always drug, the mean of")
    assert said in values.to_text()
    assert values.kept_probabilities() == {
        "toxic": kept_probability(values.limits["toxic"], values.further["toxic"]["policy tree"])
    }
    assert values.differences[WITHOUT_LIMITS].value < 0
    assert values.further["toxic"][WITHOUT_LIMITS].value > values.further["toxic"]["policy tree"].value
    assert "groups of sex differ most in the share of drug between f and m" in values.to_text()


def test_a_limit_that_parts_of_the_rows_cannot_keep_is_said_to_be_one():
    X, T, Y, toxic, _ = study_of_harm()
    tree = DRPolicyTree(LinearRegression(), max_depth=1, cv=2, random_state=0)
    data = {"X": X, "propensity": 0.5, "outcomes": {"toxic": toxic}}
    harm = by_columns(tree.fit, Y=Y, T=T, **data).outcome_estimators_["toxic"].rewards_
    least = pareto_path(PolicyTree(max_depth=1), X, tree.rewards_, outcomes={"toxic": harm}).outcome_means[0]
    tight = by_columns(tree.set_params(constraints=[Limit("toxic", least + 1e-9)]).fit, Y=Y, T=T, **data)
    assert tight.outcome_means_["toxic"] == pytest.approx(least)
    with pytest.raises(InputError, match=r"Learning again from 120 of 240 rows: .* has a mean of 'toxic' below"):
        by_columns(cross_val_policy_value, tight, Y=Y, T=T, cv=2, n_repeats=1, random_state=0, **data)


def test_resamples_and_honest_trees_keep_to_limits():
    X, T, Y, toxic, sex = study_of_harm()
    tree = DRPolicyTree(LinearRegression(), max_depth=1, constraints=[Limit("toxic", 0.12)], cv=2, random_state=0)
    data = {"X": X, "propensity": 0.5, "outcomes": {"toxic": toxic}, "subgroups": sex}
    honest = by_columns(honest_leaf_summary, tree, Y=Y, T=T, random_state=0, **data)
    assert honest.estimator.outcome_means_["toxic"] <= 0.12
    assert honest.estimator.subgroup_values_ is not None
    stable = by_columns(policy_stability, tree, Y=Y, T=T, n_resamples=3, random_state=0, **data)
    assert stable.n_resamples == 3
    with pytest.raises(InputError, match="Limit names 'toxic'"):
        policy_stability(tree, Y, T, n_resamples=3, random_state=0, X=X, propensity=0.5)
