"""The search over row sets: values, bounds at any time, and what it is used for."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from policytree import OptimalTreeClassifier
from policytree.binning import bin_matrix
from policytree.solvers.clock import Clock
from policytree.solvers.compilation import ROW_SETS, load_kernels
from policytree.solvers.direct import solve_direct
from policytree.solvers.fixed_point import to_fixed_point
from policytree.solvers.kernels.row_set_layout import KEPT
from policytree.solvers.node import new_control, prepare
from policytree.solvers.row_sets import RowSetSearch, row_sets_apply
from policytree.types import Problem, SearchLimits, Status
from tests.strategies import Case

NO_BUDGET = 1 << 59


def random_case(rng) -> Case:
    """Few rows and values, losses of any sign, missing values; prices that make a handful of leaves pay."""
    n, p, K = int(rng.integers(2, 13)), int(rng.integers(1, 4)), int(rng.integers(2, 5))
    X = rng.integers(0, rng.choice([2, 3, 5]), (n, p)).astype(float)
    X[rng.random((n, p)) < 0.15] = np.nan
    losses = rng.integers(-6, 7, (n, K)) if rng.random() < 0.5 else rng.integers(0, K, n)[:, None] != np.arange(K)
    return Case(X, losses.astype(float), max_depth=None, penalty=float(rng.choice([0.25, 0.5, 1.0, 2.5])))


def started(problem: Problem, merge: bool = True):
    load_kernels([(ROW_SETS, "")])
    fixed = to_fixed_point(problem.losses, problem.leaf_penalty, problem.data.n_rows)
    node = prepare(problem, fixed, merge)
    search = RowSetSearch(node, problem.data.n_rows, Clock(None, new_control()))

    def exact(value: int) -> Fraction:
        return Fraction(value, 1) / Fraction(2) ** fixed.exponent + Fraction(problem.losses[:, 0].sum())

    return search, exact


@pytest.mark.parametrize("seed", range(6))
def test_values_and_bounds_at_any_time(seed):
    rng = np.random.default_rng([seed, 91])
    for _ in range(60):
        case = random_case(rng)
        optimum = case.optimum()
        search, exact = started(case.problem(), merge=bool(rng.random() < 0.7))
        value = NO_BUDGET
        for _ in range(10_000):
            value = min(value, search.run(NO_BUDGET, int(rng.integers(1, 40))))
            assert exact(search.bound) <= optimum <= exact(value), f"{case!r}"
            if search.bound == value:
                break
        assert exact(search.bound) == optimum == exact(value) == exact(search.tree()[0]), f"{case!r}"


@pytest.mark.parametrize("seed", range(3))
def test_a_budget_ends_the_work_and_never_the_truth(seed):
    rng = np.random.default_rng([seed, 92])
    for _ in range(60):
        case = random_case(rng)
        optimum = case.optimum()
        search, exact = started(case.problem())
        scale = Fraction(1, 1) / (exact(1) - exact(0))
        goal = int((optimum - exact(0)) * scale) + int(rng.integers(-2, 3)) * int(scale * Fraction(case.penalty)) // 4
        value = search.run(goal, 1 << 40)
        assert exact(search.bound) <= optimum
        assert search.bound >= goal or exact(search.bound) == exact(value) == optimum


def test_the_table_grows_and_nothing_is_lost():
    rng = np.random.default_rng(93)
    X, y = rng.integers(0, 2, (300, 9)).astype(float), rng.integers(0, 2, 300)
    problem = Problem(bin_matrix(X), (y[:, None] != np.arange(2)).astype(float), 1.5, None)
    search, exact = started(problem)
    small = len(search.table)
    value = search.run(NO_BUDGET, 1 << 33)
    assert len(search.table) > small and search.counters[KEPT] == np.count_nonzero(search.table["key1"])
    assert search.bound == value
    assert float(exact(value)) == solve_direct(problem).objective


def test_a_memory_limit_ends_it_with_a_valid_bound():
    rng = np.random.default_rng(94)
    X, y = rng.integers(0, 2, (200, 14)).astype(float), rng.integers(0, 2, 200)
    problem = Problem(bin_matrix(X), (y[:, None] != np.arange(2)).astype(float), 0.5, None)
    search, exact = started(problem)
    search.clock.fits_memory = lambda more: False
    value = search.run(NO_BUDGET, 1 << 40)
    assert search.ended and exact(search.bound) < exact(value)
    other, _ = started(problem)
    assert search.bound <= other.run(NO_BUDGET, 1 << 40)


def test_what_it_does_not_take():
    data, losses = bin_matrix(np.arange(6.0)[:, None]), np.eye(2)[[0, 1, 0, 1, 1, 0]]
    assert row_sets_apply(Problem(data, losses, 0.5, None))
    for rules in (
        {"max_depth": 9},
        {"leaf_penalty": 0.0},
        {"min_leaf": 2},
        {"max_leaf_nodes": 3},
        {"feature_costs": np.array([0.1])},
        {"root_features": (0,)},
    ):
        assert not row_sets_apply(
            Problem(**{"data": data, "losses": losses, "leaf_penalty": 0.5, "max_depth": None} | rules)
        )


def test_threads_and_repetition_change_nothing():
    rng = np.random.default_rng(95)
    X, y = rng.integers(0, 3, (50, 4)).astype(float), rng.integers(0, 3, 50)
    trees = [
        OptimalTreeClassifier(max_depth=None, regularization=0.02, n_jobs=jobs).fit(X, y).export_text()
        for jobs in (1, 2, 1)
    ]
    assert trees[0] == trees[1] == trees[2]


def test_a_proof_that_the_search_over_depths_does_not_find():
    """Twelve leaves pay, and the floor of equal rows says nothing: closed in well under a second."""
    rng = np.random.default_rng(96)
    X = rng.integers(0, 2, (400, 8)).astype(float)
    y = ((X[:, 0] + X[:, 1] + X[:, 2]) % 2 != (rng.random(400) < 0.1)).astype(int)
    problem = Problem(bin_matrix(X), (y[:, None] != np.arange(2)).astype(float), 4.0, None)
    solution = solve_direct(problem, SearchLimits(time_limit=60.0))
    assert solution.status is Status.OPTIMAL and solution.tree.n_leaves >= 8
