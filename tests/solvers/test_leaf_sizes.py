"""Smallest leaves that nothing can meet are said: an error where no leaf can, a warning where no split can."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policytree import OptimalTreeClassifier, PolicyTree
from policytree.estimators.leaf_sizes import default_leaf_sizes
from policytree.exceptions import InputError, SearchWarning
from policytree.problem.types import GATES, Problem, SearchLimits, Status
from policytree.solvers import solve_direct
from policytree.solvers.core.binning import bin_matrix

X = pd.DataFrame({"age": np.arange(30.0)})
REWARDS = pd.DataFrame({"x": np.zeros(30), "y": np.where(np.arange(30) < 10, 1.0, -1.0)})
ARMS = np.where(np.arange(30) < 5, "x", "y")


def test_more_rows_than_there_are():
    with pytest.raises(InputError, match=r"min_samples_leaf asks for more rows .* \(31, but there are 30\); lower it"):
        PolicyTree(min_samples_leaf=31).fit(X, REWARDS)
    with pytest.raises(InputError, match=r"more rows than there are \(10, but treatment x has 5\)"):
        PolicyTree(min_samples_per_treatment=10).fit(X, REWARDS, T=ARMS)


def test_no_split_leaves_enough():
    with pytest.warns(
        SearchWarning, match=r"No split leaves 16 rows on both sides \(30 rows in all\).*min_samples_leaf"
    ):
        assert PolicyTree(min_samples_leaf=16).fit(X, REWARDS).get_n_leaves() == 1
    said = r"No split leaves 3 of every treatment on both sides \(30 rows in all, 5 of x\)"
    with pytest.warns(SearchWarning, match=said):
        PolicyTree(min_samples_per_treatment=3).fit(X, REWARDS, T=ARMS)
    with pytest.warns(SearchWarning, match="No split leaves 16 rows"):
        OptimalTreeClassifier(min_samples_leaf=16).fit(X, ARMS)


def test_a_leaf_that_is_best_is_no_matter():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert PolicyTree(min_samples_leaf=15).fit(X, REWARDS - [0.0, 5.0]).get_n_leaves() == 1
        assert PolicyTree(max_depth=0, min_samples_leaf=20).fit(X, REWARDS).get_n_leaves() == 1


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_it_warns_where_no_split_of_any_column_fits(data):
    """Against all splits, one by one; rewards that ask for a single leaf, so that only the counts decide."""
    n = data.draw(st.integers(2, 14))
    columns = data.draw(st.lists(st.lists(st.sampled_from([0.0, 1.0, 2.0, np.nan]), min_size=n, max_size=n), min_size=1,
                                 max_size=2))  # fmt: skip
    arms = np.array([*data.draw(st.lists(st.sampled_from([0, 1]), min_size=n - 2, max_size=n - 2)), 0, 1])
    leaf, per_arm = data.draw(st.integers(1, n)), data.draw(st.integers(0, 3))
    if per_arm > np.bincount(arms, minlength=2).min():
        return
    table = np.array(columns).T
    sides = []
    for j in range(table.shape[1]):
        known = ~np.isnan(table[:, j])
        for cut in (0.0, 1.0, 2.0):
            low = known & (table[:, j] <= cut)
            sides += [low, low | ~known]
        sides.append(known)

    def large(side):
        return side.sum() >= leaf and all((arms[side] == k).sum() >= per_arm for k in (0, 1)) and side.any()

    possible = any(large(side) and large(~side) for side in sides)
    trivial = not any(side.any() and (~side).any() for side in sides) or (leaf == 1 and per_arm == 0)
    tree = PolicyTree(min_samples_leaf=leaf, min_samples_per_treatment=per_arm, max_depth=1)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        tree.fit(table, np.column_stack([np.ones(n), np.zeros(n)]), T=arms)
    said = any("No split leaves" in str(w.message) for w in heard)
    assert said == (not possible and not trivial)


# --- where minima hardly bind, sides are bounded without them first ---


def limited_problem(seed: int, n: int, depth: int, least: int, arms: bool) -> tuple[np.ndarray, Problem]:
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(0, 30, n), rng.integers(0, 8, n), rng.normal(size=n).round(1)]).astype(float)
    data = bin_matrix(X)
    T = rng.integers(0, 2, n)
    losses = rng.normal(size=(n, 2)) if seed % 2 else rng.integers(-9, 10, (n, 2)).astype(float)
    per_arm = dict(arms=T, min_leaf_per_arm=max(1, least // 3)) if arms else {}
    return X, Problem(data, losses, max_depth=depth, min_leaf=least, **per_arm)


def leaves_keep(problem: Problem, leaves: np.ndarray) -> bool:
    counts = pd.crosstab(leaves, problem.arms if problem.arms is not None else np.zeros(len(leaves)))
    least_of_arm = counts.to_numpy().min() if problem.min_leaf_per_arm else problem.min_leaf_per_arm
    return counts.sum(axis=1).min() >= problem.min_leaf and least_of_arm >= problem.min_leaf_per_arm


@pytest.mark.parametrize("depth", [2, 3, 4])
@pytest.mark.parametrize("arms", [False, True])
def test_the_same_optimum_whether_minima_are_relaxed_first_or_not(depth, arms):
    """Also where the best tree without minima has a leaf that is too small."""
    broken = 0
    for seed in range(8):
        X, problem = limited_problem(seed, 150, depth, (3, 12, 25)[seed % 3], arms)
        plain, relaxed = (
            solve_direct(problem, SearchLimits(gates=replace(GATES, loose_minimum=loose))) for loose in (0, 1)
        )
        assert relaxed.status is plain.status is Status.OPTIMAL
        assert relaxed.objective == plain.objective == pytest.approx(relaxed.lower_bound)
        assert leaves_keep(problem, relaxed.tree.apply(X))
        free = solve_direct(replace(problem, min_leaf=1, min_leaf_per_arm=0))
        broken += not leaves_keep(problem, free.tree.apply(X))
    assert broken > 0


@pytest.mark.parametrize("depth", [2, 3])
def test_a_stopped_search_keeps_the_minima(depth):
    X, problem = limited_problem(1, 400, depth, 20, True)
    limits = SearchLimits(gates=replace(GATES, loose_minimum=1))
    optimum = solve_direct(problem, limits).objective
    for seconds in (0.0, 0.01, 0.1):
        found = solve_direct(problem, replace(limits, time_limit=seconds))
        assert leaves_keep(problem, found.tree.apply(X))
        assert found.lower_bound <= optimum + 1e-9 <= found.objective + 2e-9


# --- sizes by default ---


def test_default_sizes(rng):
    arm = np.repeat([0, 1, 2], [500, 300, 200])
    assert default_leaf_sizes(rng.normal(size=1000), arm, 3) == (24, 8)
    assert default_leaf_sizes((np.arange(1000) % 2).astype(float), arm, 3) == (24, 8)
    assert default_leaf_sizes((np.arange(1000) % 20 == 0).astype(float), arm, 3) == (120, 40)  # a rare event
    assert default_leaf_sizes((np.arange(1000) % 500 == 0).astype(float), arm, 3) == (150, 50)  # a quarter of an arm
    assert default_leaf_sizes(rng.normal(size=12), np.repeat([0, 1, 2], 4), 3) == (3, 1)
    assert default_leaf_sizes(np.ones(100), np.repeat([0, 1], 50), 2) == (16, 8)
    assert default_leaf_sizes(rng.normal(size=100_000), np.arange(100_000) % 2, 2) == (1000, 8)
