"""Depth four and five over columns of many values: sides hand their bounds on, depth two is refuted where it can be."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policytree.problem.types import Problem, SearchLimits
from policytree.solvers import solve_direct
from policytree.solvers.core.binning import bin_matrix
from tests.support import oracles

SWITCHES = ("similar_support", "cache", "look_ahead", "merge", "constraint_generation")


def planted(rng, n: int, p: int, K: int, wrong: int):
    """Columns of mostly different values, some missing, and labels of a random tree of depth four with few errors."""
    X = np.floor(rng.permuted(np.tile(np.arange(n, dtype=float), (p, 1)), axis=1).T * rng.choice([1, 0.7]))

    def labels(rows, depth):
        if depth == 0 or len(rows) < 2:
            return np.full(len(rows), rng.integers(K))
        x = X[rows, rng.integers(p)]
        left = x <= rng.choice(x)
        out = np.empty(len(rows), np.int64)
        out[left], out[~left] = labels(rows[left], depth - 1), labels(rows[~left], depth - 1)
        return out

    y = labels(np.arange(n), 4)
    y[rng.permutation(n)[:wrong]] = rng.integers(0, K, wrong)
    return X, y


def small_problem(rng):
    """A problem for brute force: as users have it, and as the oracle takes it."""
    n, p, K = int(rng.integers(8, 15)), int(rng.integers(1, 4)), int(rng.integers(2, 4))
    X, y = planted(rng, n, p, K, int(rng.integers(0, 4)))
    weights = rng.integers(1, 6, n) if rng.random() < 0.5 else np.ones(n, np.int64)
    losses = weights[:, None] * (y[:, None] != np.arange(K))
    ours: dict = {"max_depth": int(rng.integers(3, 7))}
    theirs = dict(ours)
    if rng.random() < 0.4:
        ours["leaf_penalty"] = theirs["penalty"] = int(rng.integers(1, 4))
    if rng.random() < 0.3:
        ours["min_leaf"] = theirs["min_leaf"] = 2
    if rng.random() < 0.2:
        ours["max_leaf_nodes"] = theirs["max_leaf_nodes"] = int(rng.integers(4, 9))
    if rng.random() < 0.3:
        ours["feature_costs"] = costs = rng.integers(0, 2, p).astype(float) / 4
        losses, theirs["column_costs"] = 4 * losses, (4 * costs).astype(np.int64)
        theirs["penalty"] = 4 * theirs.get("penalty", 0)
    if rng.random() < 0.3:
        X[rng.random(X.shape) < 0.15] = np.nan
    scale = 4 if "column_costs" in theirs else 1
    return X, losses, scale, ours, theirs


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_equals_brute_force(seed):
    X, losses, scale, ours, theirs = small_problem(np.random.default_rng(seed))
    codes = oracles.code_columns(X)
    if "column_costs" in theirs:
        theirs["column_costs"] = theirs["column_costs"][oracles.column_features(X)]
    optimum = oracles.best_objective_fast(codes, losses, **theirs)
    problem = Problem(bin_matrix(X), losses / scale, **ours)
    for jobs, switch in itertools.product((1, 2), (None, *SWITCHES)):
        if jobs == 2 and switch is not None:
            continue
        off = {} if switch is None else {switch: False}
        solution = solve_direct(problem, SearchLimits(n_jobs=jobs), **off)
        assert solution.objective * scale == optimum, (jobs, switch)
        assert solution.lower_bound == solution.objective


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("weights", ["unit", "small", "real"])
def test_two_actions_equal_three_of_which_one_never_pays(seed, weights):
    """Two actions have ways of their own through long columns: of few weights, of small sums, of any."""
    rng = np.random.default_rng(seed)
    n = 260
    X, y = planted(rng, n, 2, 2, 4)
    w = {"unit": np.ones(n), "small": rng.integers(1, 20, n), "real": rng.lognormal(size=n)}[weights]
    losses = w[:, None] * (y[:, None] != np.arange(2))
    more = np.column_stack([losses, losses.max(axis=1) + 1])
    rules = {"max_depth": 4, "leaf_penalty": 0.25 * (seed % 2)}
    one, other = (solve_direct(Problem(bin_matrix(X), each, **rules)) for each in (losses, more))
    assert one.objective == pytest.approx(other.objective, rel=1e-12)
    assert one.lower_bound == one.objective
    again = solve_direct(Problem(bin_matrix(X), losses, **rules), SearchLimits(n_jobs=2))
    assert again.objective == one.objective
    np.testing.assert_array_equal(again.tree.feature, one.tree.feature)
    np.testing.assert_array_equal(again.tree.threshold, one.tree.threshold)
