"""Limits on further outcomes, parity between groups and the worst-served group: against every tree there is."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policytree import InputError, PolicyTree, Status


def all_trees(codes: np.ndarray, depth: int, n_arms: int):
    """What every tree of some depth gives every row."""
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
    tree = PolicyTree(max_depth=depth, limits={"harm": limit})
    data = {"sample_weight": weight, "outcomes": {"harm": harm}}
    if not kept:
        with pytest.raises(InputError, match=r"has a mean of 'harm' below .*, but limits ask for"):
            tree.fit(X, rewards, **data)
        return
    tree.fit(X, rewards, **data)
    assert tree.status_ is Status.OPTIMAL
    assert tree.objective_value_ == pytest.approx(max(kept), abs=1e-9)
    assert tolerant(tree.outcome_means_["harm"], limit)
    turned = PolicyTree(max_depth=depth, limits={"good": -limit})
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
    tree = PolicyTree(max_depth=depth, max_share_gap={"sex": gap})
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
    tree = PolicyTree(max_depth=depth, max_value_gap={"sex": gap})
    data = {"sample_weight": weight, "subgroups": pd.DataFrame({"sex": group})}
    if not kept:
        with pytest.raises(InputError, match=r"has a gap of sex: |keeps to all limits at once"):
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
    tree = PolicyTree(max_depth=depth, worst_group="sex", direction="minimize" if minimize else "maximize")
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
        max_depth=2, budget=0.4, limits={"harm": 0.0}, max_share_gap={"sex": 0.1}, worst_group="sex",
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
        ({"limits": {"harm": 1.0}}, {}, "limits names 'harm', which is not among the outcomes"),
        ({"limits": {"harm": "low"}}, {"outcomes": {"harm": np.ones((20, 2))}}, "limits of 'harm' must be a finite"),
        ({"limits": 0.1}, {"outcomes": {"harm": np.ones((20, 2))}}, "limits must be a mapping"),
        ({}, {"outcomes": np.ones((20, 2))}, "outcomes must be a mapping"),
        ({}, {"outcomes": {"harm": np.ones(20)}}, r"outcomes\['harm'\] has shape \(20,\)"),
        ({}, {"outcomes": {"harm": np.full((20, 2), np.nan)}}, "has a missing or infinite reward in row 0"),
        ({}, {"outcomes": {"harm": (np.ones((20, 2)), "up")}}, "The direction of outcome 'harm' must be"),
        ({"max_share_gap": {"sex": 0.1}}, {}, "max_share_gap names 'sex', which is no column of subgroups"),
        ({"max_share_gap": {"sex": -1}}, {"subgroups": pd.DataFrame({"sex": [0, 1] * 10})}, "must be a number of at"),
        ({"worst_group": "age"}, {"subgroups": pd.DataFrame({"sex": [0, 1] * 10})}, "worst_group names 'age'"),
        ({}, {"subgroups": pd.DataFrame({"sex": [0, 1] * 9})}, "subgroups has 18 rows, but there are 20 people"),
        ({}, {"subgroups": pd.DataFrame({"sex": [0, None] * 10})}, "is missing for 10 people"),
        ({}, {"subgroups": pd.DataFrame({"sex": ["f"] * 20})}, "has 1 groups; groups that are compared must be 2"),
        (
            {"worst_group": "sex"},
            {"subgroups": pd.DataFrame({"sex": [0] * 19 + [1]})},
            "Group '1' of 'sex' has 1 people of positive weight, too few",
        ),
        (
            {"worst_group": "sex", "solver": "sampling"},
            {"subgroups": pd.DataFrame({"sex": [0, 1] * 10})},
            "need the exact search",
        ),
    ],
)
def test_bad_limits_are_refused(arguments, data, message):
    X, rewards = np.arange(20.0)[:, None], np.tile([0.0, 1.0], (20, 1))
    with pytest.raises(InputError, match=message):
        PolicyTree(max_depth=1, **arguments).fit(X, rewards, **data)
