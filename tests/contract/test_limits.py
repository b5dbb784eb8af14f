"""Manners of a search: the same tree whatever the threads, inputs left alone, limits kept, progress told, Ctrl-C."""

from __future__ import annotations

import _thread
import time
from itertools import pairwise

import numpy as np
import pytest

from policytree.problem.types import Progress, SearchLimits, Status
from policytree.solvers import SOLVERS
from tests.contract.solving import assert_same_tree, solve
from tests.support import checker, oracles, strategies
from tests.support.strategies import Case

pytestmark = pytest.mark.parametrize("solver", list(SOLVERS.values()), ids=list(SOLVERS))


# --- determinism and manners ---


@pytest.mark.parametrize("max_depth", [1, 2, 3])
def test_one_thread_or_two_give_the_same_tree(solver, max_depth):
    rng = np.random.default_rng(8)
    case = strategies.planted_case(rng, 700, 6, 3, 25, max_depth=max_depth)
    case = case.but(losses=case.losses * rng.lognormal(size=(700, 1)))
    one = solve(solver, case, SearchLimits(n_jobs=1))
    two = solve(solver, case, SearchLimits(n_jobs=2))
    assert_same_tree(one.tree, two.tree)
    assert (one.objective, one.lower_bound, one.status) == (two.objective, two.lower_bound, two.status)
    assert_same_tree(one.tree, solve(solver, case, SearchLimits(n_jobs=1)).tree)


def test_inputs_are_left_alone_and_may_have_any_layout(solver):
    rng = np.random.default_rng(9)
    case = strategies.planted_case(rng, 80, 4, 3, 9, max_depth=2)
    expected = solve(solver, case)
    losses = np.asfortranarray(case.losses)
    losses.flags.writeable = False
    problem = case.but(X=np.asfortranarray(case.X), losses=losses).problem()
    for array in (problem.data.codes, problem.data.n_bins):
        array.flags.writeable = False
    solution = solver(problem, SearchLimits())
    checker.check_solution(problem, case.X, solution)
    assert_same_tree(solution.tree, expected.tree)
    wide = np.repeat(case.losses, 2, axis=1)[:, ::2]  # strided view
    assert_same_tree(solve(solver, case.but(losses=wide)).tree, expected.tree)
    assert_same_tree(solve(solver, case.but(losses=case.losses.astype(np.float32))).tree, expected.tree)


# --- limits ---


@pytest.fixture(scope="module")
def hard_case():
    """Continuous features and mostly noise: nobody proves depth four of this in seconds."""
    rng = np.random.default_rng(10)
    X = rng.normal(size=(3_000, 10))
    losses = rng.normal(size=(3_000, 3))
    losses[:, 0] -= X[:, 0] * X[:, 1] > 0
    return Case(X, losses, max_depth=4)


def _check_stopped(solution, easier):
    assert solution.objective <= oracles.best_leaf(easier.losses.tolist(), range(len(easier.X)))[0] + 1e-6
    assert np.isfinite(solution.lower_bound)


def test_no_time_at_all_still_gives_one_split(solver, hard_case):
    """Depth two is stopped before it has a tree, but the best single split costs next to nothing."""
    solution = solve(solver, hard_case, SearchLimits(time_limit=0.0))
    assert solution.objective <= solve(solver, hard_case.but(max_depth=1)).objective


def test_a_memory_limit_ends_a_search_with_its_best_tree(solver):
    """Ten megabytes hold the rows and depth two, but not what depth four keeps."""
    rng = np.random.default_rng(12)
    case = strategies.planted_case(rng, 5_000, 8, 2, 60, max_depth=4)
    problem = case.problem()
    solution = solver(problem, SearchLimits(memory_limit=1e7))
    checker.check_solution(problem, case.X, solution)
    assert solution.status is Status.MEMORY_LIMIT
    assert solution.gap > 0
    assert solution.objective < min(case.losses.sum(axis=0))


@pytest.mark.parametrize("time_limit", [0.0, 1e-9, 0.02, 0.3])
def test_time_limit_gives_a_valid_tree_and_bound(solver, hard_case, time_limit):
    solve(solver, hard_case.but(X=hard_case.X[:50], losses=hard_case.losses[:50], max_depth=3))  # compile first
    start = time.process_time()
    problem = hard_case.problem()
    binned = time.process_time()
    solution = solver(problem, SearchLimits(time_limit=time_limit))
    seconds = time.process_time() - binned
    checker.check_solution(problem, hard_case.X, solution)
    assert solution.status in (Status.TIME_LIMIT, Status.OPTIMAL)
    assert seconds <= 1.05 * time_limit + 0.2 + (binned - start), f"{seconds:.2f} s with a limit of {time_limit} s"
    _check_stopped(solution, hard_case)


def test_bound_of_a_stopped_search_holds(solver, hard_case):
    """The bound at any stop is at most the optimum, which the unlimited search proves."""
    case = hard_case.but(X=hard_case.X[:600, :4], losses=hard_case.losses[:600], max_depth=3)
    optimum = solve(solver, case)
    assert optimum.status is Status.OPTIMAL
    for time_limit in (0.0, 0.01, 0.05, 0.2):
        stopped = solve(solver, case, SearchLimits(time_limit=time_limit))
        assert stopped.lower_bound <= optimum.objective + optimum.resolution
        assert stopped.objective >= optimum.objective - optimum.resolution


def test_progress_is_reported_and_consistent(solver, hard_case):
    reports: list[Progress] = []
    solution = solve(solver, hard_case, SearchLimits(time_limit=1.5, progress=reports.append))
    assert reports, "a search of 1.5 s says nothing"
    for report in reports:
        assert report.lower_bound <= report.objective
        assert 0 <= report.share_closed <= 1
        assert report.subproblems >= 0
    for earlier, later in pairwise(reports):
        assert earlier.seconds <= later.seconds
        assert earlier.objective >= later.objective
        assert earlier.lower_bound <= later.lower_bound
    assert solution.objective <= reports[-1].objective + solution.resolution
    assert solution.lower_bound >= reports[-1].lower_bound


@pytest.mark.usefixtures("ctrl_c")
def test_interrupt_returns_the_best_tree(solver, hard_case):
    problem, pressed = hard_case.problem(), []

    def press(_):
        if not pressed:
            pressed.append(True)
            _thread.interrupt_main()

    solution = solver(problem, SearchLimits(time_limit=20.0, progress=press))
    checker.check_solution(problem, hard_case.X, solution)
    assert solution.status is Status.INTERRUPTED
    assert solution.seconds < 5
    _check_stopped(solution, hard_case)
