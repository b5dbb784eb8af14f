"""Sweeps for several losses or counts (simd_sides.py): both sides of a root cut from one table, in vectors."""

from __future__ import annotations

import numpy as np
import pytest

from policytree.problem.types import Problem
from policytree.solvers import solve_direct
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.core.fixed_point import to_fixed_point
from policytree.solvers.core.rows import prepare
from policytree.solvers.kernels.depth_three.sweep_tables import make_tables
from tests import oracles

N = 70
LARGEST_SHORT = (1 << 15) - 1
RULES = {
    "none": {},
    "penalty": {"penalty": 2},
    "costs": {"column_costs": np.array([1, 0, 2]), "penalty": 1},
    "counts": {"min_leaf": 6},
    "arms": {"min_leaf_per_arm": 2},
}


def _table(rng):
    """One column of many values beside short ones: its tables pay, and their rows take several vectors, one in part."""
    return np.column_stack([rng.permutation(N), rng.integers(0, 4, N), rng.integers(0, 3, N)]).astype(float)


def _losses(kind, X, K, rng):
    labels = np.where(rng.random(N) < 0.6, (X[:, 0] * K // N + X[:, 1]).astype(int) % K, rng.integers(0, K, N))
    wrong = (labels[:, None] != np.arange(K)).astype(np.int64)
    if kind == "labels":
        return wrong
    if kind == "signed":
        return wrong * rng.integers(0, 5, (N, 1)) + rng.integers(-4, 5, (N, K))
    return wrong * rng.integers(1, 1 << 20, (N, 1))


def _agree(X, losses, rules, rng):
    settings = dict(rules)
    if "min_leaf_per_arm" in settings:
        settings["arms"] = np.arange(N) % losses.shape[1]
    optimum = oracles.best_objective_fast(X.astype(int), losses, max_depth=3, **settings)
    settings["leaf_penalty"] = settings.pop("penalty", 0.0)
    settings["feature_costs"] = settings.pop("column_costs", None)
    problem = Problem(bin_matrix(X), losses.astype(float), max_depth=3, **settings)
    solution = solve_direct(problem)
    assert solution.counters["sweeps"] > 0
    assert solution.objective == solution.lower_bound == optimum
    return problem


def _tables(problem):
    node = prepare(problem, to_fixed_point(problem.losses, problem.leaf_penalty, problem.data.n_rows), merge=True)
    return make_tables(node.rows, node.rules, node.special)


@pytest.mark.parametrize("K", [3, 5])
@pytest.mark.parametrize("kind", ["labels", "signed", "weights"])
@pytest.mark.parametrize("rules", RULES)
def test_depth_three_equals_brute_force(K, kind, rules, rng):
    X = _table(rng)
    problem = _agree(X, _losses(kind, X, K, rng), RULES[rules], rng)
    assert _tables(problem).sum_bytes == (4 if kind == "weights" else 2)


@pytest.mark.parametrize("beyond", [0, 1])
def test_sums_as_large_as_short_numbers_hold(beyond, rng):
    """The rows of one label, which all lose under every other action, come to the largest sum there is, or one more."""
    X, K = _table(rng), 4
    wrong = _losses("labels", X, K, rng)
    weights = rng.integers(1, 40, N)
    first = np.flatnonzero(wrong[:, 0] == 0)
    weights[first] = LARGEST_SHORT // len(first)
    weights[first[0]] += LARGEST_SHORT + beyond - weights[first].sum()
    problem = _agree(X, wrong * weights[:, None], {}, rng)
    assert _tables(problem).sum_bytes == (2 if beyond == 0 else 4)
