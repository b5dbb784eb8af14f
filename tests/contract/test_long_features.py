"""Columns of so many values that pairs of them have no table: chosen cuts, and bounds for the cuts between."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from policytree.problem.types import Problem
from policytree.solvers import solve_direct
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.core.columns import preorder_splits, without_gaps
from policytree.solvers.kernels.base.layout import Rounded, Rules
from policytree.solvers.kernels.depth_two.plane_tiles import planes_pay
from tests.support import oracles

N = 220  # rows: a table of two columns would have more than three cells a row and forty a value


def _columns(values, rng):
    """Three columns: all values different, a few ties, or one of fewer values among them (its pairs have tables)."""
    X = rng.permuted(np.tile(np.arange(N, dtype=float), (3, 1)), axis=1).T
    if values == "ties":
        X = np.floor(X * 0.8)
    if values == "mixed":
        X[:, 2] = np.floor(X[:, 2] / 20)
    return X


def test_a_tree_whose_largest_cost_is_the_best_ones_is_evaluated():
    """It was left out, and a single leaf proved: rounding made what the tree gains half a step a row."""
    second = np.where(np.arange(200) < 10, -10_540.0, 8_650_000_001.0)
    X = np.column_stack([np.arange(200.0), np.random.default_rng(0).permutation(200)])
    for depth in (1, 2, 3):
        solution = solve_direct(Problem(bin_matrix(X), np.column_stack([np.zeros(200), second]), 0.0, depth))
        assert solution.objective == solution.lower_bound == -105_400.0


def _losses(weights, X, rng, K=2):
    """Integers, so that brute force is exact; real weights stand for themselves where sums need more than 30 bits.

    "rewards" differ under every action; the others are of labels, so that most losses of a row are equal.
    """
    if weights == "rewards":
        return rng.integers(0, 1 << 45, (N, K)) + (X[:, :1] < np.arange(K) * N // K) * (1 << 44)
    signal = (X[:, 0] > N / 3) ^ (X[:, 1] > N / 2)
    label = np.where(rng.random(N) < 0.2, ~signal, signal).astype(np.int64)
    label += np.where(rng.random(N) < 0.4, rng.integers(0, K - 1, N), 0)
    size = {
        "classes": np.ones(N, np.int64),
        "small": rng.integers(0, 4, N),
        "medium": rng.integers(1, 1000, N),
        "large": rng.integers(1, 1 << 45, N),
    }[weights]
    losses = size[:, None] * (label[:, None] != np.arange(K))
    return losses + rng.integers(-3, 4, (N, K)) if weights == "small" and K > 2 else losses


LIMITS = {
    "none": {},
    "penalty": {"penalty": 3},
    "three leaves": {"max_leaf_nodes": 3},
    "costs": {"column_costs": np.array([1, 0, 2]), "penalty": 1},
    "counts": {"min_leaf": 15},
    "arms": {"min_leaf_per_arm": 6, "max_leaf_nodes": 3},
}


def _check(losses, limits, X, rng):
    settings = dict(LIMITS[limits])
    if limits == "arms":
        settings["arms"] = rng.integers(0, losses.shape[1], N)
    codes = np.stack([np.unique(x, return_inverse=True)[1] for x in X.T], axis=1)
    optimum = oracles.best_objective_fast(codes, losses, max_depth=2, **settings)
    settings["leaf_penalty"] = settings.pop("penalty", 0.0)
    settings["feature_costs"] = settings.pop("column_costs", None)
    solution = solve_direct(Problem(bin_matrix(X), losses.astype(float), max_depth=2, **settings))
    assert solution.objective == pytest.approx(optimum, rel=1e-15)  # a number of 53 bits
    assert solution.lower_bound == solution.objective


@pytest.mark.parametrize("values", ["distinct", "ties", "mixed"])
@pytest.mark.parametrize("weights", ["classes", "small", "medium", "large", "rewards"])
@pytest.mark.parametrize("limits", LIMITS)
def test_depth_two_equals_brute_force(values, weights, limits, rng):
    X = _columns(values, rng)
    _check(_losses(weights, X, rng), limits, X, rng)


@pytest.mark.parametrize("K", [3, 6])
@pytest.mark.parametrize("weights", ["classes", "small", "large", "rewards"])
@pytest.mark.parametrize("limits", LIMITS)
def test_depth_two_with_more_actions_equals_brute_force(K, weights, limits, rng):
    values = "ties" if limits in ("none", "counts") else "mixed"
    X = _columns(values, rng)
    _check(_losses(weights, X, rng, K), limits, X, rng)


@pytest.mark.parametrize("K", [3, 7])
@pytest.mark.parametrize("least", [1, 45, 70])
@pytest.mark.parametrize("seed", range(3))
def test_leaves_become_large_enough_where_nothing_is_gained(K, least, seed):
    """Sums are compared where a lane may gain (simd_classes.py): here a count allows what no gain announces."""
    rng = np.random.default_rng([seed, K, least])
    X = _columns("distinct", rng)
    weighs = rng.random(N) < 0.2  # the others are right under every action
    label = np.where(rng.random(N) < 0.7, (X[:, 0] * K // N).astype(int), rng.integers(0, K, N))
    losses = rng.integers(1, 4, N)[:, None] * (label[:, None] != np.arange(K)) * weighs[:, None]
    codes = np.stack([np.unique(x, return_inverse=True)[1] for x in X.T], axis=1)
    optimum = oracles.best_objective_fast(codes, losses, max_depth=2, min_leaf=least)
    solution = solve_direct(Problem(bin_matrix(X), losses.astype(float), max_depth=2, min_leaf=least))
    assert solution.objective == solution.lower_bound == optimum


@pytest.mark.parametrize("limits", ["none", "costs", "counts"])
@pytest.mark.parametrize("K", [2, 3, 6])
@pytest.mark.parametrize("seed", range(4))
def test_trees_that_rounding_cannot_tell_apart(limits, K, seed):
    """Columns that are one but for neighbours that change places: trees differ by less than tables can hold."""
    rng = np.random.default_rng([seed, K])
    losses = rng.integers(0, 1 << 43, (N, K)) + (np.arange(N)[:, None] * K // N == np.arange(K)) * (1 << 42)
    same = np.arange(1, N, 2)
    losses[same] = losses[same - 1] + rng.integers(-2, 3, (len(same), K))
    X = np.repeat(np.arange(N, dtype=float)[:, None], 3, axis=1)
    for j in (1, 2):  # a few pairs of rows that cost nearly the same trade places
        moved = rng.choice(same, 30, replace=False)
        X[moved, j], X[moved - 1, j] = X[moved - 1, j], X[moved, j]
    _check(losses, limits, X, rng)


@pytest.mark.parametrize("K", [3, 6])
def test_rewards_are_passed_as_planes_and_labels_as_entries(K, rng):
    """Both ways are taken by the tests above: ``planes_pay`` says which."""

    def pays(losses):
        planes = np.ascontiguousarray((losses[:, 1:] - losses[:, :1]).T, dtype=np.int32)
        rules = Rules(K - 1, np.zeros(0, np.int64), 0, 0, -1, 0, 0)
        return planes_pay.py_func(Rounded(planes, np.zeros(N, np.int64), 0, 0), rules, N)

    X = _columns("distinct", rng)
    assert pays(_losses("rewards", X, rng, K) >> 30)  # rounded to 30 bits in all
    assert not pays(_losses("classes", X, rng, K))
    assert not pays(_losses("rewards", X, rng, K) >> 40)  # so small that twice as many lanes fit a vector
    assert pays(_losses("large", X, rng, K) >> 25) == (K == 3)


@pytest.mark.parametrize("K", [3, 5])
@pytest.mark.parametrize("seed", range(4))
def test_codes_that_no_row_has(K, seed):
    """A caller's codes may have gaps, at their beginning and end too: cuts there leave a side empty."""
    rng = np.random.default_rng(seed)
    data = bin_matrix(_columns("distinct", rng))
    kept = np.flatnonzero((data.codes > 20).all(axis=0) & (data.codes < N - 20).all(axis=0))
    data = replace(data, codes=np.ascontiguousarray(data.codes[:, kept]))
    losses = rng.integers(-100_000, 100_001, (len(kept), K))  # whole numbers whose sums tables hold exactly
    optimum = oracles.best_objective_fast(data.codes.T.astype(np.int64), losses, max_depth=2)
    solution = solve_direct(Problem(data, losses.astype(float), max_depth=2))
    assert solution.objective == solution.lower_bound == optimum


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_gaps_in_codes_are_closed_at_the_root(depth, seed):
    """Whatever engine works on it: the tree is one of the given thresholds, and a problem without gaps stays itself."""
    rng = np.random.default_rng([seed, 7])
    full = bin_matrix(rng.integers(0, 12, (40, 3)).astype(float))
    kept = np.flatnonzero((full.codes[0] > 2) & (full.codes[1] < 9) & (full.codes[2] != 4))
    data = replace(full, codes=np.ascontiguousarray(full.codes[:, kept]))
    losses = rng.integers(-9, 10, (len(kept), 2 + seed))
    rules = {"min_leaf": 1 + seed, "feature_costs": np.array([0.0, 1.0, 2.0]) * seed}
    problem = Problem(data, losses.astype(float), 1.0, depth, **rules)
    closed = without_gaps(problem)
    assert closed is not problem and without_gaps(closed) is closed
    assert all((np.unique(c) == np.arange(b)).all() for c, b in zip(closed.data.codes, closed.data.n_bins, strict=True))
    costs = {"penalty": 1, "min_leaf": 1 + seed, "column_costs": np.array([0, 1, 2]) * seed}
    optimum = oracles.best_objective_fast(data.codes.T.astype(np.int64), losses, max_depth=depth, **costs)
    solution = solve_direct(problem)
    assert solution.objective == solution.lower_bound == optimum
    assert len(preorder_splits(solution.tree, data)) == solution.tree.node_count
