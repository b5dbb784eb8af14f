"""Blocks of pair sums for two-valued columns: the optimum of brute force and of the general search."""

from __future__ import annotations

import numpy as np
import pytest

from policytree.problem.types import Problem, SearchLimits, SizeGates, Status
from policytree.solvers import solve_direct
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.exact.binary_features import blocks_for
from policytree.solvers.exact.estimate import by_single_cuts
from tests.contract.solving import assert_same_tree
from tests.support import checker, oracles
from tests.support.strategies import Case

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
    for _ in range(4 if depth == 3 else 2):
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


@pytest.mark.parametrize("depth", [3, 4, 5])
@pytest.mark.parametrize("penalty", [0, 2])
def test_columns_of_few_cuts_are_solved_cut_by_cut(depth, penalty):
    """Every cut as a column of two values: the trees are the same ones, over the columns that were given."""
    always = SearchLimits(gates=SizeGates(least_bits_depth=0, bits_gain=0))
    for seed in range(6):
        rng = np.random.default_rng([depth, penalty, seed])
        X = rng.integers(0, rng.integers(2, 5, 4), (int(rng.integers(20, 70)), 4)).astype(float)
        X[0], X[1] = 0, 2
        losses = rng.integers(0, 9, (len(X), 2))
        problem = Problem(bin_matrix(X), losses.astype(float), float(penalty), depth)
        assert (by_single_cuts(problem, always.gates).data.n_bins == 2).all()
        solution = solve_direct(problem, always)
        checker.check_solution(problem, X, solution)
        assert solution.objective == oracles.best_objective_fast(X.astype(int), losses, penalty, depth)
        assert solution.lower_bound == solution.objective


def test_cuts_become_columns_where_that_is_faster(rng):
    """From depth four on, for two actions, and not where columns have many cuts."""
    few, many = rng.integers(0, 5, (500, 9)).astype(float), rng.random((500, 9))
    losses = rng.random((500, 3))
    assert by_single_cuts(Problem(bin_matrix(few), losses[:, :2], max_depth=4)).data.n_bins.max() == 2
    for X, arms, depth, rules in [
        (few, 2, 3, {}), (few, 3, 4, {}), (few, 2, 4, {"min_leaf": 9}), (few, 2, None, {}), (many, 2, 4, {}),
    ]:  # fmt: skip
        problem = Problem(bin_matrix(X), losses[:, :arms], max_depth=depth, **rules)
        assert by_single_cuts(problem) is problem


@pytest.mark.parametrize("K", [2, 3, 5])
@pytest.mark.parametrize("depth", [2, 3, 4])
@pytest.mark.parametrize("minimum", [1, 4])
def test_prices_of_questions_leave_the_pair_sums_as_they_are(K, depth, minimum):
    """Columns of one price stand side by side in the block; a price may be zero, and rows stand for several people."""
    for seed in range(8):
        rng = np.random.default_rng([K, depth, minimum, seed])
        n, p = int(rng.integers(12, 60)), int(rng.integers(5, 8 if depth < 4 else 6))
        X = (rng.random((n, p)) < rng.uniform(0.2, 0.8, p)).astype(float)
        X[:, 0] = rng.integers(0, 3, n) if seed % 3 == 0 else X[:, 0]
        X[0], X[1] = 0, 1
        losses = rng.integers(0, 1 << rng.choice([3, 38]), (n, K))
        costs, weights = rng.choice([0, 1, 1, 5], p) * (int(losses.max()) // 20 + 1), rng.integers(0, 4, n)
        problem = Problem(
            bin_matrix(X), losses.astype(float), 1.0, depth, min_leaf=minimum, feature_costs=costs.astype(float),
            weights=weights.astype(float),
        )  # fmt: skip
        solution = solve_direct(problem)
        rules = {"penalty": 1, "max_depth": depth, "min_leaf": minimum, "column_costs": costs, "weights": weights}
        assert solution.objective == solution.lower_bound == oracles.best_objective_fast(X.astype(int), losses, **rules)
