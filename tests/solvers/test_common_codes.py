"""Tables without the rows of a commonest code, and sixteen root cuts at once: the same optimum as by hand."""

from __future__ import annotations

import numpy as np
import pytest

from policytree.problem.types import Problem
from policytree.solvers import solve_direct
from policytree.solvers.core.binning import bin_matrix
from tests.support import oracles


def skewed(rng, n, p, most_codes):
    """Integer columns: some mostly zero, as counts of rare events are, some even, some constant but for a few rows."""
    columns = []
    for _ in range(p):
        codes = rng.integers(1, rng.integers(2, most_codes + 1) + 1, n)
        common = rng.integers(0, codes.max() + 2)  # at an end, or among the others
        columns.append(np.where(rng.random(n) < rng.choice([0.0, 0.3, 0.6, 0.95]), common, codes))
    return np.column_stack(columns).astype(float)


@pytest.mark.parametrize("n_actions", [2, 3])
@pytest.mark.parametrize("largest", [1, 50, 40_000])  # sums of 16 bits, and of 32
@pytest.mark.parametrize("depth", [2, 3])
def test_skewed_columns(rng, n_actions, largest, depth):
    for _ in range(4):
        n = int(rng.integers(20, 60))
        X = skewed(rng, n, int(rng.integers(2, 6)), 24)
        losses = rng.integers(0, largest + 1, (n, n_actions))
        penalty = int(rng.choice([0, largest]))
        rules = {} if rng.random() < 0.5 else {"min_leaf": int(rng.integers(2, 6))}
        for merge in (False, True):
            problem = Problem(bin_matrix(X), losses.astype(float), float(penalty), depth, **rules)
            found = solve_direct(problem, merge=merge)
            expected = oracles.best_objective_fast(oracles.code_columns(X), losses, penalty, depth, **rules)
            assert found.objective == expected and found.gap == 0


def test_depth_four_reaches_the_same_optimum(rng):
    X = skewed(rng, 70, 4, 20)
    losses = rng.integers(0, 2, (70, 2))
    found = solve_direct(Problem(bin_matrix(X), losses.astype(float), 0.0, 4))
    assert found.objective == oracles.best_objective_fast(oracles.code_columns(X), losses, max_depth=4)


@pytest.mark.parametrize("merge", [False, True])
def test_losses_that_are_multiples_of_a_large_power_of_two(merge):
    """A cut that no second split is allowed below is as good as a leaf, whatever its losses are multiplied by."""
    X = np.array([[0, 1, 1], [0, 0, 2], [1, 2, 1], [0, 1, 2], [1, 0, 2], [1, 0, 2]], dtype=float)
    losses = np.array([[0, 0], [6, 0], [0, 4], [8, 0], [3, 0], [0, 3]], dtype=float)
    for depth in (2, 3, 4):
        for leaves in (None, 3, 5):
            problem = Problem(bin_matrix(X), losses, 0.5, depth, max_leaf_nodes=leaves)
            assert solve_direct(problem, merge=merge).objective == 4.0


def test_losses_that_are_all_rounded_down_are_looked_at_again():
    """Tables of 30 bits drop the last bits of such losses, and the two best trees differ by no more than these."""
    X = np.array([[2, 0], [0, 0], [1, 2], [2, 2]], dtype=float)
    losses = np.zeros((4, 2), dtype=np.int64)
    losses[:, 1] = [1, 51539607552, 17179869184, -34359738368]
    found = solve_direct(Problem(bin_matrix(X), losses.astype(float), 0.0, 2))
    assert found.objective == oracles.best_objective_fast(X.astype(int), losses) == -34359738368


@pytest.mark.parametrize("depth", [2, 3])
def test_trees_that_differ_in_the_last_bits_only(rng, depth):
    for _ in range(25):
        n = int(rng.integers(4, 20))
        X = skewed(rng, n, int(rng.integers(2, 5)), 6)
        losses = rng.integers(-3, 4, (n, 2)) * 2 ** int(rng.integers(31, 45)) + rng.integers(0, 2, (n, 2))
        found = solve_direct(Problem(bin_matrix(X), losses.astype(float), 0.0, depth))
        assert found.objective == oracles.best_objective_fast(oracles.code_columns(X), losses, max_depth=depth)


def test_questions_that_cost_and_limits_of_leaves_on_skewed_columns(rng):
    for _ in range(6):
        X = skewed(rng, 40, 4, 12)
        losses, costs = rng.integers(0, 50, (40, 2)), rng.integers(0, 4, 4)
        codes = oracles.code_columns(X)
        column_costs = costs[oracles.column_features(X)]
        for leaves in (None, 3, 5):
            problem = Problem(bin_matrix(X), losses.astype(float), 0.0, 3, feature_costs=costs.astype(float),
                              max_leaf_nodes=leaves)  # fmt: skip
            expected = oracles.best_objective_fast(
                codes, losses, max_depth=3, max_leaf_nodes=leaves, column_costs=column_costs
            )
            assert solve_direct(problem).objective == expected
