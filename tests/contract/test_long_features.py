"""Columns of so many values that pairs of them have no table: chosen cuts, and bounds for the cuts between."""

from __future__ import annotations

import numpy as np
import pytest

from policytree.problem.types import Problem
from policytree.solvers import solve_direct
from policytree.solvers.core.binning import bin_matrix
from tests import oracles

N = 220  # rows: a table of two columns would have more than three cells a row and forty a value


def _columns(values, rng):
    """Three columns: all values different, a few ties, or one of fewer values among them (its pairs have tables)."""
    X = rng.permuted(np.tile(np.arange(N, dtype=float), (3, 1)), axis=1).T
    if values == "ties":
        X = np.floor(X * 0.8)
    if values == "mixed":
        X[:, 2] = np.floor(X[:, 2] / 20)
    return X


def _losses(weights, X, rng, K=2):
    """Integers, so that brute force is exact; real weights stand for themselves where sums need more than 30 bits."""
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
@pytest.mark.parametrize("weights", ["classes", "small", "medium", "large"])
@pytest.mark.parametrize("limits", LIMITS)
def test_depth_two_equals_brute_force(values, weights, limits, rng):
    X = _columns(values, rng)
    _check(_losses(weights, X, rng), limits, X, rng)


@pytest.mark.parametrize("K", [3, 6])
@pytest.mark.parametrize("weights", ["classes", "small", "large"])
@pytest.mark.parametrize("limits", LIMITS)
def test_depth_two_with_more_actions_equals_brute_force(K, weights, limits, rng):
    values = "ties" if limits in ("none", "counts") else "mixed"
    X = _columns(values, rng)
    _check(_losses(weights, X, rng, K), limits, X, rng)
