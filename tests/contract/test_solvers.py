"""Contract of every solver on every problem: prove the optimum, with a tree and a bound that stand up to checking."""

from __future__ import annotations

import os
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings

from policytree.problem.types import SearchLimits, Status
from policytree.solvers import SOLVERS, get_solver
from tests.contract.solving import PATIENCE, all_settings, settings_in_turn, solve
from tests.support import checker, interval_oracles, strategies
from tests.support.strategies import Case

#: How many times fewer problems are drawn: the run with bounds checks (test_adversarial.py) needs some of every kind.
FEWER = int(os.environ.get("FEWER_PROBLEMS", "1"))

pytestmark = pytest.mark.parametrize("solver", list(SOLVERS.values()), ids=list(SOLVERS))


def assert_optimal(solver, case: Case, **switches):
    """The solver proves the optimum that brute force finds."""
    solution, optimum = solve(solver, case, **switches), case.optimum()
    if optimum is None:
        assert solution.status is Status.INFEASIBLE, case
    else:
        assert solution.status is Status.OPTIMAL, case
        assert Fraction(solution.objective) == optimum, f"{solution.objective} is not {float(optimum)}: {case!r}"
    return solution


def test_registry(solver):
    assert next(iter(SOLVERS)) == "direct"
    name = next(name for name, value in SOLVERS.items() if value is solver)
    assert get_solver(name) is solver


# --- the optimum ---


@pytest.mark.parametrize("seed", range(16))
def test_equals_brute_force(solver, seed):
    rng = np.random.default_rng([seed, 1])
    for _ in range(50 // FEWER):
        assert_optimal(solver, strategies.random_case(rng))


@pytest.mark.parametrize("seed", range(4))
def test_equals_brute_force_over_groupings(solver, seed):
    rng = np.random.default_rng([seed, 2])
    for _ in range(20 // FEWER):
        assert_optimal(solver, strategies.grouped_case(rng))
    case = strategies.grouped_case(rng)
    for switches in all_settings(solver):
        assert_optimal(solver, case, **switches)


@settings(max_examples=300 // FEWER)
@given(case=strategies.cases())
def test_equals_brute_force_on_drawn_problems(solver, case):
    assert_optimal(solver, case)


NAN = np.nan
FOUND = {
    # A tiny penalty beside large losses pays for a million leaves, but two rows cannot fill them: this search hung.
    "penalty without limit": Case(
        X=np.array([[0.0], [1.0]]),
        losses=np.array([[935053.0, 378673.0], [-872984.0, 940180.0]]),
        penalty=0.5,
        max_depth=None,
        min_leaf=2,
    ),
    # Written out of bounds, and the process aborted, when depth was unlimited and leaves had a smallest size.
    "minimum leaf without limit": Case(
        X=np.array(
            [
                [1, -0.5, 1],
                [0.9, -1, 0.1],
                [NAN, 0, 0.3],
                [NAN, 1, 0],
                [NAN, 1, 0.8],
                [0.3, -1, 0.2],
                [0.1, 1, 0.6],
                [0.8, 0.5, 0.4],
                [0.6, -1, 0.5],
                [0.2, 1, 0.9],
                [0.7, -1, 0.7],
            ]
        ),
        losses=np.array(
            [
                [-4.125, -2.25, -4.5],
                [3.25, -3.125, 0.75],
                [-0.5, 3.25, 1.75],
                [1.375, -1.625, -3.5],
                [2.125, -2.25, 0.375],
                [0.875, 0, -1.625],
                [-1, -5, -4.125],
                [-3.5, 2.875, -1.375],
                [4.25, -4.75, 0.75],
                [4.625, -4.5, -0.875],
                [1.75, -1.875, 2.625],
            ]
        ),
        max_depth=None,
        min_leaf=2,
    ),
    # Without the look-ahead bound, an objective of 9 was "proved" where 8 is possible.
    "no look-ahead": Case(
        X=np.array([[2, 1], [2, 0], [0, 0], [1, 0], [1, 0], [0, 1.0]]),
        losses=np.array([[0, 1], [3, 0], [4, 0], [0, 2], [0, 3], [0, 2.0]]),
        penalty=2.0,
        max_depth=3,
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_cases_that_once_failed(solver, name):
    """All switches on, each off by itself, all off."""
    names = getattr(solver, "switches", ())
    for off in ((), *((name,) for name in names), names):
        assert_optimal(solver, FOUND[name], **dict.fromkeys(off, False))


def _larger_case(rng):
    """A case of some hundred rows, small enough in cuts for the numpy oracle at its depth."""
    n, p, K = int(rng.integers(60, 201)), int(rng.integers(3, 7)), int(rng.integers(2, 5))
    depth = int(rng.integers(2, 4))
    n_values = int(rng.integers(2, 6)) if depth == 3 else int(rng.integers(2, 40))
    case = strategies.planted_case(rng, n, p, K, n_values, max_depth=depth, penalty=float(rng.choice([0, 0, 5, 40])))
    if rng.random() < 0.4:
        case = case.but(min_leaf=int(rng.integers(2, 15)))
    if rng.random() < 0.3:
        case = case.but(arms=rng.integers(0, K, n).astype(np.intp), min_leaf_per_arm=int(rng.integers(1, 4)))
    return case


@pytest.mark.parametrize("seed", range(10))
def test_equals_the_numpy_oracle_on_larger_problems(solver, seed):
    rng = np.random.default_rng([seed, 2])
    for _ in range(3):
        case = _larger_case(rng)
        solution = solve(solver, case)
        assert solution.status is Status.OPTIMAL
        assert solution.objective == case.fast_optimum(), case


@pytest.mark.parametrize("seed", range(4))
def test_equals_the_numpy_oracle_with_missing_values_and_categories(solver, seed):
    rng = np.random.default_rng([seed, 3])
    case = strategies.planted_case(rng, 90, 4, 3, 5, max_depth=2)
    X = case.X.copy()
    X[rng.random(X.shape) < 0.15] = np.nan
    case = case.but(X=X, categorical=(1, 3))
    assert solve(solver, case).objective == case.fast_optimum()


@pytest.mark.parametrize("seed", range(6))
def test_real_valued_losses(solver, seed):
    """Log-normal weights, rounded to multiples of 2 ** -40 so that an integer oracle knows the optimum exactly."""
    rng = np.random.default_rng([seed, 4])
    case = strategies.planted_case(rng, 80, 3, 2 + seed % 2, 12, max_depth=2)
    unit = 2**40
    losses = np.rint(rng.lognormal(size=(80, 1)) * rng.normal(size=case.losses.shape) * unit) / unit
    case = case.but(losses=losses)
    solution = solve(solver, case)
    assert solution.status is Status.OPTIMAL
    error = abs(Fraction(solution.objective) - Fraction(case.fast_optimum(unit), unit))
    assert error <= Fraction(solution.resolution) + Fraction(1e-14 * checker.absolute_total(losses))


@pytest.mark.parametrize("max_depth", [2, 3, 4, None])
def test_one_feature_equals_dynamic_programming(solver, max_depth, rng):
    for K in (1, 2, 3, 5):
        x, losses = rng.integers(0, 30, 150).astype(float), rng.integers(-9, 10, (150, K))
        for penalty, min_leaf in ((0, 1), (7, 1), (3, 12)):
            case = Case(x[:, None], losses.astype(float), float(penalty), max_depth, min_leaf)
            leaves = None if max_depth is None else 2**max_depth
            assert solve(solver, case).objective == interval_oracles.best_intervals(
                x, losses, leaves, penalty, min_leaf
            )


# --- switching off bounds and caches ---


def test_direct_has_switches(solver):
    if solver is SOLVERS["direct"]:
        assert solver.switches
    assert all(isinstance(name, str) for name in getattr(solver, "switches", ()))
    with pytest.raises(TypeError):
        solver(strategies.random_case(np.random.default_rng(0)).problem(), SearchLimits(), no_such_switch=False)


def test_every_combination_of_switches_keeps_the_optimum(solver):
    settings_ = all_settings(solver)
    rng = np.random.default_rng(5)
    for _ in range(max(20, 2_400 // len(settings_)) // FEWER):
        case = strategies.random_case(rng, max_rows=9)
        optimum, problem = case.optimum(), case.problem()
        for switches in settings_:
            solution = solver(problem, PATIENCE, **switches)
            checker.check_solution(problem, case.X, solution)
            assert optimum is None or Fraction(solution.objective) == optimum, f"{switches}: {case!r}"


def test_each_switch_keeps_the_optimum_of_penalised_problems(solver):
    """Many problems, since a bound that is wrong for one in 300 would pass the test above."""
    rng = np.random.default_rng(11)
    for turn in range(1_200 // FEWER):
        case = strategies.penalised_case(rng)
        optimum, problem = case.optimum(), case.problem()
        for switches in settings_in_turn(solver, problem, turn):
            solution = solver(problem, PATIENCE, **switches)
            assert Fraction(solution.objective) == optimum, f"{switches}: {solution.objective}, {case!r}"
            assert solution.lower_bound == solution.objective


@pytest.mark.parametrize("seed", range(3))
def test_every_combination_of_switches_keeps_the_optimum_of_larger_problems(solver, seed):
    rng = np.random.default_rng([seed, 6])
    case = strategies.planted_case(rng, 120, 4, 2 + seed % 2, 6, max_depth=3, penalty=[0.0, 30.0, 0.0][seed])
    optimum = case.fast_optimum()
    for switches in all_settings(solver):
        assert solve(solver, case, **switches).objective == optimum, switches
