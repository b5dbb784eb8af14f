"""Contract of solvers that need not find the optimum: valid trees, true objectives, bounds that hold."""

from __future__ import annotations

import _thread
import time
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings

from policytree.exceptions import InputError
from policytree.problem.types import SearchLimits as Limits
from policytree.problem.types import Solution, Status
from policytree.solvers import APPROXIMATE_SOLVERS, SOLVERS, get_solver
from policytree.solvers.approximate.auto import solve_auto
from policytree.solvers.approximate.duplication import solve_duplication
from policytree.solvers.approximate.sampling import solve_sampling
from policytree.solvers.core.columns import keep_rows, preorder_splits
from policytree.solvers.core.rescore import equivalent_points_bound, rescore
from tests.support import checker, strategies

VARIANTS = {
    **APPROXIMATE_SOLVERS,
    "duplication, factor 2": partial(solve_duplication, factor=2),
    "sampling": partial(solve_sampling, n_draws=2),
    "sampling, few": partial(solve_sampling, amplification=0.3),
}
each_solver = pytest.mark.parametrize("solver", list(VARIANTS.values()), ids=list(VARIANTS))


def solve_and_check(solver, case, limits=None) -> Solution:
    problem, optimum = case.problem(), case.optimum()
    solution = solver(problem, limits)
    checker.check_solution(problem, case.X, solution)
    if optimum is None:
        assert solution.status is Status.INFEASIBLE
        return solution
    scale = Fraction(1e-12 * (1 + checker.absolute_total(problem.losses, problem.leaf_penalty, 4)))
    assert Fraction(solution.lower_bound) <= optimum + scale, f"bound {solution.lower_bound} is too high: {case!r}"
    assert Fraction(solution.objective) >= optimum - scale
    if solution.status is Status.OPTIMAL:
        assert abs(Fraction(solution.objective) - optimum) <= scale, f"not optimal: {case!r}"
    return solution


@each_solver
@settings(max_examples=150)
@given(case=strategies.cases())
def test_drawn_problems(solver, case):
    solve_and_check(solver, case)


@each_solver
@pytest.mark.parametrize("seed", range(4))
def test_random_problems(solver, seed):
    rng = np.random.default_rng([seed, 51])
    for _ in range(40):
        solve_and_check(solver, strategies.random_case(rng))


@each_solver
def test_no_time_at_all(solver):
    case = strategies.planted_case(np.random.default_rng(52), 60, 3, 3, 5, max_depth=3)
    problem = case.problem()
    checker.check_solution(problem, case.X, solver(problem, Limits(time_limit=0.0)))


@each_solver
def test_threads_do_not_change_the_tree(solver):
    problem = strategies.planted_case(np.random.default_rng(53), 200, 4, 3, 9, max_depth=3).problem()
    one, two = (solver(problem, Limits(n_jobs=jobs)) for jobs in (1, 2))
    np.testing.assert_array_equal(one.tree.threshold, two.tree.threshold)
    assert (one.objective, one.lower_bound, one.guarantees) == (two.objective, two.lower_bound, two.guarantees)


@each_solver
def test_inputs_are_left_alone(solver):
    problem = strategies.planted_case(np.random.default_rng(54), 80, 3, 3, 9, max_depth=2).problem()
    for array in (problem.data.codes, problem.data.n_bins, problem.losses):
        array.flags.writeable = False
    assert solver(problem).objective == solver(replace(problem, losses=np.asfortranarray(problem.losses))).objective


@each_solver
def test_progress_is_told_in_the_problems_unit(solver):
    problem = strategies.planted_case(np.random.default_rng(55), 300, 5, 2, 30, max_depth=3).problem()
    seen = []
    solution = solver(problem, Limits(progress=seen.append))
    assert seen
    spread = (problem.losses.max(axis=1) - problem.losses.min(axis=1)).sum()
    assert abs(seen[-1].objective - solution.objective) <= 0.25 * spread
    assert all(p.lower_bound <= solution.objective for p in seen)


@pytest.mark.parametrize("seed", range(30))
def test_trees_are_found_again_in_the_columns_they_came_from(seed):
    """Splits to tree to splits, with missing values and categories; on fewer rows as well."""
    rng = np.random.default_rng([seed, 56])
    case = strategies.random_case(rng).but(min_leaf=1, min_leaf_per_arm=0, penalty=0.0)
    problem = case.problem()
    solution = SOLVERS["direct"](problem)
    tree, objective = rescore(problem, solution.tree)
    assert objective == solution.objective
    assert tree.n_leaves <= solution.tree.n_leaves
    assert equivalent_points_bound(problem) <= objective
    rows = np.sort(rng.choice(len(case.X), size=(len(case.X) + 1) // 2, replace=False))
    weights = None if problem.weights is None else problem.weights[rows]
    part = replace(problem, data=keep_rows(problem.data, rows), losses=problem.losses[rows], weights=weights)
    few = SOLVERS["direct"](part)
    checker.check_tree_arrays(few.tree, case.X[rows], part.losses)  # missing values go where they were in the search
    assert all(data.min() == 0 and data.max() == bins - 1 for data, bins in zip(*_codes(part), strict=True))
    preorder_splits(few.tree, problem.data)  # every threshold is one of the whole data's
    whole, _ = rescore(problem, few.tree)
    checker.check_tree_arrays(whole, case.X, problem.losses)


def test_rows_that_miss_a_value_keep_their_side_among_few_rows():
    """Of some rows with one value and others without, a split that says "missing goes left" would tell nobody apart."""
    X = np.array([[0.0], [0.0], [np.nan], [1.0], [2.0], [3.0]])
    losses = np.array([[0, 5], [0, 5], [5, 0], [0, 1], [0, 1], [0, 1.0]])
    problem, rows = strategies.Case(X, losses).problem(), np.array([0, 1, 2])
    part = replace(problem, data=keep_rows(problem.data, rows), losses=losses[rows])
    few = SOLVERS["direct"](part)
    assert few.objective == 0
    checker.check_tree_arrays(few.tree, X[rows], losses[rows])
    whole = replace(problem, losses=np.where(np.isin(np.arange(6), rows)[:, None], losses, 0.0))
    assert rescore(whole, few.tree)[1] == 0


def _codes(problem):
    return problem.data.codes, problem.data.n_bins


@pytest.mark.parametrize("factor", [0.5, 3.0, 1e-7])
def test_scaled_weights_change_nothing(factor):
    rng = np.random.default_rng(57)
    case = strategies.planted_case(rng, 150, 4, 2, 8, max_depth=2, penalty=5.0)
    case = case.but(losses=case.losses * rng.lognormal(size=(150, 1)))
    scaled = case.but(losses=case.losses * factor, penalty=case.penalty * factor)
    for solver in [SOLVERS["direct"], *VARIANTS.values()]:
        before, after = solver(case.problem()), solver(scaled.problem())
        assert after.objective == pytest.approx(before.objective * factor, rel=1e-12)


def test_options_reach_the_solver():
    problem = strategies.planted_case(np.random.default_rng(58), 80, 3, 2, 9, max_depth=2).problem()
    assert get_solver("sampling", {"n_draws": 3})(problem).counters["draws"] == 3
    with pytest.raises(ValueError, match=r"'factor'.*sampling"):
        get_solver("sampling", {"factor": 3})
    with pytest.raises(ValueError, match="'magic'"):
        get_solver("magic")
    with pytest.raises(ValueError, match="not known"):
        get_solver(None)


def test_auto_says_what_it_did():
    rng = np.random.default_rng(59)
    small = strategies.planted_case(rng, 80, 3, 2, 9, max_depth=2).problem()
    chosen = solve_auto(small)
    assert chosen.guarantees["solver"] == "direct" and chosen.status is Status.OPTIMAL
    assert "proves" in chosen.guarantees["reason"]
    large = strategies.planted_case(rng, 3_000, 8, 3, 400, max_depth=5).problem()
    hurried = solve_auto(large, Limits(time_limit=1.0))
    assert hurried.guarantees["solver"] in ("direct", "sampling")
    assert "were tried first" in hurried.guarantees["reason"]
    assert hurried.seconds < 1.5
    assert hurried.status is Status.TIME_LIMIT and hurried.lower_bound <= hurried.objective


def test_auto_leaves_out_samples_that_would_be_no_smaller():
    case = strategies.planted_case(np.random.default_rng(65), 3_000, 10, 3, 3_000, max_depth=4, max_leaf_nodes=9)
    case = case.but(feature_costs=np.full(10, 0.5))
    solution = solve_auto(case.problem(), Limits(time_limit=0.5))
    checker.check_solution(case.problem(), case.X, solution)
    assert solution.status is Status.TIME_LIMIT and solution.guarantees["solver"] == "direct"
    assert "tests cost something" in solution.guarantees["reason"]


# --- extreme numbers, refusals, interrupts ---


@each_solver
@pytest.mark.parametrize("exponent", [-1_000, -300, 300, 900])
def test_huge_and_tiny_totals(solver, exponent):
    rng = np.random.default_rng(60)
    case = strategies.planted_case(rng, 60, 3, 3, 5, max_depth=2, penalty=2.0)
    problem, scaled = case.problem(), replace(case.problem(), leaf_penalty=float(np.ldexp(2.0, exponent)))
    scaled = replace(scaled, losses=np.ldexp(problem.losses, exponent))
    assert solver(scaled).objective == pytest.approx(np.ldexp(solver(problem).objective, exponent), rel=1e-12, abs=0)


@each_solver
def test_extreme_weight_ratios(solver):
    rng = np.random.default_rng(61)
    case = strategies.planted_case(rng, 60, 3, 2, 5, max_depth=2)
    case = case.but(losses=case.losses * 10.0 ** rng.integers(-12, 13, (60, 1)))
    optimum = SOLVERS["direct"](case.problem()).objective
    solution = solver(case.problem())
    checker.check_solution(case.problem(), case.X, solution)
    assert solution.lower_bound <= optimum <= solution.objective + 1e-3


@each_solver
@pytest.mark.parametrize("penalty", [1e-300, 1e12, 1e300])
def test_extreme_penalties(solver, penalty):
    case = strategies.planted_case(np.random.default_rng(62), 60, 3, 3, 5, max_depth=2, penalty=penalty)
    solution = solver(case.problem())
    checker.check_solution(case.problem(), case.X, solution)
    assert (solution.tree.n_leaves == 1) == (penalty > 1)


@each_solver
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e308])
def test_impossible_losses_are_refused(solver, bad):
    case = strategies.planted_case(np.random.default_rng(63), 60, 3, 3, 5)
    losses = case.losses.copy()
    losses[:3, 0] = bad
    with pytest.raises(InputError, match="losses"):
        solver(case.but(losses=losses).problem())
    with pytest.raises(InputError, match="penalty"):
        solver(case.but(penalty=-1.0).problem())


def pressing():
    """A callback that presses Ctrl-C when a search has begun to say how far it is."""
    pressed = []

    def press(_):
        if not pressed:
            pressed.append(True)
            _thread.interrupt_main()

    return press


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_returns_the_best_tree(n_jobs):
    rng = np.random.default_rng(64)
    case = strategies.planted_case(rng, 3_000, 10, 3, 3_000, max_depth=4)
    problem = case.problem()
    solve_sampling(problem, Limits(time_limit=0.1))  # compile first
    start = time.process_time()
    solution = solve_sampling(problem, Limits(time_limit=40.0, n_jobs=n_jobs, progress=pressing()), n_draws=4)
    seconds = time.process_time() - start
    checker.check_solution(problem, case.X, solution)
    assert solution.status is Status.INTERRUPTED
    assert solution.tree.n_leaves > 1  # what was found by then is kept
    assert seconds < 6  # each of four draws has ten seconds or more


@pytest.mark.usefixtures("ctrl_c")
def test_an_interrupt_ends_both_halves_of_auto():
    case = strategies.planted_case(np.random.default_rng(64), 3_000, 10, 3, 3_000, max_depth=4)
    problem = case.problem()
    # Samples until second 10, the direct solver afterwards.
    solution = solve_auto(problem, Limits(time_limit=40.0, progress=pressing()))
    checker.check_solution(problem, case.X, solution)
    assert solution.status is Status.INTERRUPTED
    assert solution.seconds < 5
