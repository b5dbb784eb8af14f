"""Blocks of pair sums for two-valued columns: the optimum of brute force and of the general search."""

from __future__ import annotations

import numpy as np
import pytest

from policytree.problem.types import Problem, SearchLimits, SizeGates, Status
from policytree.solvers import solve_direct
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.exact.binary_features import blocks_for
from tests import checker, oracles
from tests.contract.solving import assert_same_tree
from tests.strategies import Case

SCALES = {"int16": 1, "int32": 30_001, "int64": 3 * 10**12 + 1}


def binary_case(rng, n, p, depth, kind="int16", penalty=0) -> Case:
    """Columns of very different density, an interaction, noise, and integer losses that need the given type."""
    X = (rng.random((n, p)) < rng.uniform(0.1, 0.9, p)).astype(float)
    X[0], X[1] = 0, 1
    action = (X[:, 0] + X[:, 1] * X[:, 2 % p] + (rng.random(n) < 0.2)) % 2
    losses = np.column_stack([action, 1 - action]) * rng.integers(1, 4, (n, 1)) * SCALES[kind]
    return Case(X, losses, penalty=penalty * SCALES[kind], max_depth=depth)


@pytest.mark.parametrize("kind", list(SCALES))
@pytest.mark.parametrize("depth", [3, 4, 5])
@pytest.mark.parametrize("penalty", [0, 1, 4])
def test_blocks_find_the_optimum_of_brute_force(kind, depth, penalty):
    rng = np.random.default_rng(100 * depth + penalty)
    for _ in range(4):
        case = binary_case(rng, int(rng.integers(6, 90)), int(rng.integers(3, 7)), depth, kind, penalty)
        problem = case.problem()
        solution = solve_direct(problem)
        assert str(blocks_for(problem)) == kind
        assert solution.status is Status.OPTIMAL
        checker.check_solution(problem, case.X, solution)
        losses = case.losses.astype(np.int64)
        assert solution.objective == oracles.best_objective_fast(case.X.astype(int), losses, case.penalty, depth)
        assert solution.lower_bound == solution.objective


@pytest.mark.parametrize("weights", [False, True], ids=["labels", "real weights"])
@pytest.mark.parametrize(("depth", "p"), [(3, 30), (4, 20), (5, 12), (6, 7)])
def test_blocks_agree_with_the_general_search(weights, depth, p):
    rng = np.random.default_rng(depth)
    case = binary_case(rng, 150, p, depth, penalty=1.5)
    if weights:
        case = case.but(losses=case.losses * rng.lognormal(size=(150, 1)))
    problem = case.problem()
    solutions = [solve_direct(problem)]
    solutions += [solve_direct(problem, **{name: False}) for name in solve_direct.switches if name != "look_ahead"]
    expected = solve_direct(problem, SearchLimits(gates=SizeGates(most_block_depth=0)))
    for solution in solutions:
        assert solution.objective == pytest.approx(expected.objective, rel=1e-12)
        assert solution.status is Status.OPTIMAL


@pytest.mark.parametrize("depth", [3, 4, 5])
def test_two_threads_share_what_they_learn_and_find_the_same_tree(depth):
    """Threads read each other's pair values at any moment; neither value nor tree may depend on when."""
    for seed in range(6):
        case = binary_case(np.random.default_rng(seed), 250, 12, depth, penalty=1)
        problem = case.problem()
        one = solve_direct(problem)
        for _ in range(3):
            two = solve_direct(problem, SearchLimits(n_jobs=2))
            assert_same_tree(one.tree, two.tree)
            assert one.lower_bound == two.lower_bound == two.objective


def test_a_stopped_search_has_a_valid_bound():
    case = binary_case(np.random.default_rng(5), 2_000, 60, 5, penalty=3)
    problem = case.problem()
    three = solve_direct(case.but(max_depth=3).problem()).objective
    for time_limit in (0.0, 0.05, 0.5):
        solution = solve_direct(problem, SearchLimits(time_limit=time_limit))
        checker.check_solution(problem, case.X, solution)
        assert solution.lower_bound <= solution.objective
        assert solution.seconds < time_limit + 0.5
        assert solution.lower_bound <= three


def test_where_blocks_do_not_apply():
    case = binary_case(np.random.default_rng(1), 40, 5, 3)
    codes = np.column_stack([case.X, np.arange(40) % 3])
    assert blocks_for(case.problem()) is not None
    for other in (
        case.but(max_depth=2),
        case.but(max_depth=None),
        case.but(min_leaf=2),
        case.but(X=codes),
        case.but(losses=np.column_stack([case.losses, case.losses[:, 0]])),
    ):
        assert blocks_for(other.problem()) is None
    wide = np.random.default_rng(2).integers(0, 2, (50, 600)).astype(float)
    assert blocks_for(Problem(bin_matrix(wide), np.eye(2)[np.arange(50) % 2], 0.0, 3)) is None
