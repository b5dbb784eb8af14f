"""What every solver must do on every problem: prove the optimum, with a tree and a bound that stand up to checking."""

from __future__ import annotations

import _thread
import threading
import time
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings

from policytree.solvers import SOLVERS, get_solver
from policytree.types import Progress, SearchLimits, Status
from tests import checker, oracles, strategies
from tests.strategies import Case

pytestmark = pytest.mark.parametrize("solver", list(SOLVERS.values()), ids=list(SOLVERS))


PATIENCE = SearchLimits(time_limit=20.0)  # a search that should take milliseconds must fail a test, not hang it


def solve(solver, case: Case, limits: SearchLimits = PATIENCE, **switches):
    """Solve, and check all that can be checked without the optimum."""
    problem = case.problem()
    solution = solver(problem, limits, **switches)
    checker.check_solution(problem, case.X, solution)
    return solution


def assert_optimal(solver, case: Case, **switches):
    """The solver proves the optimum that brute force finds."""
    solution, optimum = solve(solver, case, **switches), case.optimum()
    if optimum is None:
        assert solution.status is Status.INFEASIBLE, case
    else:
        assert solution.status is Status.OPTIMAL, case
        assert Fraction(solution.objective) == optimum, f"{solution.objective} is not {float(optimum)}: {case!r}"
    return solution


def assert_same_tree(one, other):
    """Every array of two trees is identical."""
    for name in ("children_left", "children_right", "feature", "threshold", "missing_go_to_left", "action"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    np.testing.assert_array_equal(one.value, other.value)
    np.testing.assert_array_equal(one.n_node_samples, other.n_node_samples)


def test_registry(solver):
    assert next(iter(SOLVERS)) == "direct"
    name = next(name for name, value in SOLVERS.items() if value is solver)
    assert get_solver(name) is solver


# --- the optimum ---


@pytest.mark.parametrize("seed", range(16))
def test_equals_brute_force(solver, seed):
    rng = np.random.default_rng([seed, 1])
    for _ in range(50):
        assert_optimal(solver, strategies.random_case(rng))


@settings(max_examples=300)
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
    for switches in _all_settings(solver):
        assert_optimal(solver, FOUND[name], **switches)


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


def _fast_optimum(case, unit=1):
    whole = np.rint(case.losses * unit).astype(np.int64)
    assert (whole == case.losses * unit).all()
    return oracles.best_objective_fast(
        oracles.code_columns(case.X, case.categorical),
        whole,
        int(case.penalty * unit),
        case.max_depth,
        case.min_leaf,
        case.arms,
        case.min_leaf_per_arm,
    )


@pytest.mark.parametrize("seed", range(10))
def test_equals_the_numpy_oracle_on_larger_problems(solver, seed):
    rng = np.random.default_rng([seed, 2])
    for _ in range(3):
        case = _larger_case(rng)
        solution = solve(solver, case)
        assert solution.status is Status.OPTIMAL
        assert solution.objective == _fast_optimum(case), case


@pytest.mark.parametrize("seed", range(4))
def test_equals_the_numpy_oracle_with_missing_values_and_categories(solver, seed):
    rng = np.random.default_rng([seed, 3])
    case = strategies.planted_case(rng, 90, 4, 3, 5, max_depth=2)
    X = case.X.copy()
    X[rng.random(X.shape) < 0.15] = np.nan
    case = case.but(X=X, categorical=(1, 3))
    assert solve(solver, case).objective == _fast_optimum(case)


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
    error = abs(Fraction(solution.objective) - Fraction(_fast_optimum(case, unit), unit))
    assert error <= Fraction(solution.resolution) + Fraction(1e-14 * checker.absolute_total(losses))


@pytest.mark.parametrize("max_depth", [2, 3, 4, None])
def test_one_feature_equals_dynamic_programming(solver, max_depth, rng):
    for K in (1, 2, 3, 5):
        x, losses = rng.integers(0, 30, 150).astype(float), rng.integers(-9, 10, (150, K))
        for penalty, min_leaf in ((0, 1), (7, 1), (3, 12)):
            case = Case(x[:, None], losses.astype(float), float(penalty), max_depth, min_leaf)
            leaves = None if max_depth is None else 2**max_depth
            assert solve(solver, case).objective == oracles.best_intervals(x, losses, leaves, penalty, min_leaf)


# --- switching off bounds and caches ---


def _all_settings(solver):
    names = solver.switches
    return [dict(zip(names, values, strict=True)) for values in product([True, False], repeat=len(names))]


def test_direct_has_switches(solver):
    if solver is SOLVERS["direct"]:
        assert solver.switches
    assert all(isinstance(name, str) for name in solver.switches)
    with pytest.raises(TypeError):
        solver(strategies.random_case(np.random.default_rng(0)).problem(), SearchLimits(), no_such_switch=False)


def test_every_combination_of_switches_keeps_the_optimum(solver):
    settings_ = _all_settings(solver)
    rng = np.random.default_rng(5)
    for _ in range(max(20, 2_000 // len(settings_))):
        case = strategies.random_case(rng, max_rows=9)
        optimum, problem = case.optimum(), case.problem()
        for switches in settings_:
            solution = solver(problem, PATIENCE, **switches)
            checker.check_solution(problem, case.X, solution)
            assert optimum is None or Fraction(solution.objective) == optimum, f"{switches}: {case!r}"


def test_each_switch_keeps_the_optimum_of_penalised_problems(solver):
    """Many problems, since a bound that is wrong for one in 300 would pass the test above."""
    rng = np.random.default_rng(11)
    names = solver.switches
    settings_ = [{}, *({name: False} for name in names), dict.fromkeys(names, False)]
    for _ in range(1_200):
        case = strategies.penalised_case(rng)
        optimum, problem = case.optimum(), case.problem()
        for switches in settings_:
            solution = solver(problem, PATIENCE, **switches)
            assert Fraction(solution.objective) == optimum, f"{switches}: {solution.objective}, {case!r}"
            assert solution.lower_bound == solution.objective


@pytest.mark.parametrize("seed", range(3))
def test_every_combination_of_switches_keeps_the_optimum_of_larger_problems(solver, seed):
    rng = np.random.default_rng([seed, 6])
    case = strategies.planted_case(rng, 120, 4, 2 + seed % 2, 6, max_depth=3, penalty=[0.0, 30.0, 0.0][seed])
    optimum = _fast_optimum(case)
    for switches in _all_settings(solver):
        assert solve(solver, case, **switches).objective == optimum, switches


# --- what must change nothing, or change it by a known amount ---


@pytest.fixture(params=["tiny", "tiny constrained", "larger", "larger penalised", "deep"])
def some_case(request):
    rng = np.random.default_rng(7)
    if request.param.startswith("tiny"):
        case = strategies.random_case(rng).but(max_depth=3)
        return case.but(min_leaf=2) if "constrained" in request.param else case
    if request.param == "deep":
        return strategies.planted_case(rng, 60, 3, 3, 4, max_depth=4, min_leaf=3)
    penalty = 25.0 if "penalised" in request.param else 0.0
    return strategies.planted_case(rng, 150, 5, 3, 12, max_depth=3, penalty=penalty)


def test_shifting_a_row_moves_the_objective_by_the_shift(solver, some_case, rng):
    before = solve(solver, some_case).objective
    shift = rng.integers(-1_000, 1_000, len(some_case.X))
    after = solve(solver, some_case.but(losses=some_case.losses + shift[:, None])).objective
    assert after == before + shift.sum()


@pytest.mark.parametrize("factor", [2.0**-30, 0.125, 3.0, 1024.0])
def test_scaling_losses_and_penalty_scales_the_objective(solver, some_case, factor):
    before = solve(solver, some_case).objective
    scaled = some_case.but(losses=some_case.losses * factor, penalty=some_case.penalty * factor)
    assert solve(solver, scaled).objective == before * factor


def test_permuting_rows_columns_and_actions_keeps_the_objective(solver, some_case, rng):
    before = solve(solver, some_case).objective
    rows, actions = rng.permutation(len(some_case.X)), rng.permutation(some_case.losses.shape[1])
    columns = rng.permutation(some_case.X.shape[1])
    permuted = some_case.but(
        X=some_case.X[rows][:, columns],
        losses=some_case.losses[rows][:, actions],
        arms=None if some_case.arms is None else np.argsort(actions)[some_case.arms[rows]],
        categorical=tuple(j for j, c in enumerate(columns) if c in some_case.categorical),
    )
    assert solve(solver, permuted).objective == before


def test_monotone_transforms_keep_the_objective(solver, some_case, rng):
    before = solve(solver, some_case).objective
    X = some_case.X.copy()
    for j in range(X.shape[1]):
        if j not in some_case.categorical:
            values, codes = np.unique(X[:, j], return_inverse=True)
            new = np.unique(rng.normal(scale=1e6, size=2 * len(values) + 5))[: len(values)]
            X[:, j] = np.where(np.isnan(X[:, j]), np.nan, new[codes])
    assert solve(solver, some_case.but(X=X)).objective == before


def test_mirrored_features_keep_the_objective(solver, some_case):
    mirrored = some_case.X.copy()
    numeric = [j for j in range(mirrored.shape[1]) if j not in some_case.categorical]
    mirrored[:, numeric] *= -1
    assert solve(solver, some_case.but(X=mirrored)).objective == solve(solver, some_case).objective


def test_repeating_rows_doubles_the_losses(solver, some_case):
    doubled = some_case.but(losses=2 * some_case.losses)
    arms = None if some_case.arms is None else np.tile(some_case.arms, 2)
    repeated = some_case.but(
        X=np.tile(some_case.X, (2, 1)),
        losses=np.tile(some_case.losses, (2, 1)),
        min_leaf=2 * some_case.min_leaf,
        arms=arms,
        min_leaf_per_arm=2 * some_case.min_leaf_per_arm,
    )
    assert solve(solver, repeated).objective == solve(solver, doubled).objective


def test_useless_columns_and_rows_keep_the_objective(solver, some_case):
    before = solve(solver, some_case).objective
    n = len(some_case.X)
    wider = some_case.but(X=np.column_stack([some_case.X, np.full(n, 3.0), some_case.X[:, 0], np.full(n, np.nan)]))
    assert solve(solver, wider.but(categorical=())).objective <= before
    if 0 not in some_case.categorical:
        assert solve(solver, wider).objective == before


def test_deeper_is_never_worse(solver, some_case):
    tiny = len(some_case.X) < 20
    depths = [0, 1, 2, 3, 4, 5, len(some_case.X), None] if tiny else [0, 1, 2, 3]
    objectives = [solve(solver, some_case.but(max_depth=depth)).objective for depth in depths]
    assert objectives == sorted(objectives, reverse=True)
    assert not tiny or objectives[-1] == objectives[-2]


def test_a_dearer_leaf_means_fewer_leaves(solver, some_case):
    penalties = [0.0, 0.5, 4.0, 12.0, 20.0, 28.0, 1e6]
    solutions = [solve(solver, some_case.but(penalty=penalty)) for penalty in penalties]
    leaves = [s.tree.n_leaves for s in solutions[1:]]  # without a penalty, useless leaves cost nothing
    assert leaves == sorted(leaves, reverse=True)
    assert leaves[-1] == 1
    # The optimum is a smallest line among lines in the penalty: rising and concave.
    objectives = [s.objective for s in solutions]
    slopes = np.diff(objectives) / np.diff(penalties)
    assert (slopes >= 1).all() and (np.diff(slopes) <= 1e-9).all()


def test_minimum_leaf_sizes_only_cost(solver, some_case):
    objectives = [solve(solver, some_case.but(min_leaf=size)).objective for size in (1, 2, 5, 10_000)]
    assert objectives == sorted(objectives)
    assert solve(solver, some_case.but(min_leaf=10_000)).status is Status.INFEASIBLE


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


@pytest.mark.parametrize("time_limit", [0.0, 1e-9, 0.02, 0.3])
def test_time_limit_gives_a_valid_tree_and_bound(solver, hard_case, time_limit):
    solve(solver, hard_case.but(X=hard_case.X[:50], losses=hard_case.losses[:50], max_depth=3))  # compile first
    start = time.perf_counter()
    problem = hard_case.problem()
    binned = time.perf_counter()
    solution = solver(problem, SearchLimits(time_limit=time_limit))
    seconds = time.perf_counter() - binned
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


def test_interrupt_returns_the_best_tree(solver, hard_case):
    solve(solver, hard_case, SearchLimits(time_limit=0.1))  # compile first
    timer = threading.Timer(0.5, _thread.interrupt_main)
    problem = hard_case.problem()
    timer.start()
    try:
        solution = solver(problem, SearchLimits(time_limit=20.0))
    finally:
        timer.cancel()
    checker.check_solution(problem, hard_case.X, solution)
    assert solution.status is Status.INTERRUPTED
    assert solution.seconds < 5
    _check_stopped(solution, hard_case)
