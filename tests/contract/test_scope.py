"""Limits of a tree beside its depth: the number of leaves, the costs of tests, and where it may begin."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from policytree import OptimalTreeClassifier
from policytree.exceptions import InputError
from policytree.problem.types import Guesses, SearchLimits, Status
from policytree.solvers import SOLVERS
from policytree.solvers.guided.solve import solve_with_guesses
from tests.contract.solving import PATIENCE, all_settings, assert_same_tree, prove, settings_in_turn, solve
from tests.support import checker, interval_oracles, strategies
from tests.support.strategies import Case

each_solver = pytest.mark.parametrize("solver", list(SOLVERS.values()), ids=list(SOLVERS))


def scoped_case(rng) -> Case:
    """Depth three or more, few leaves, tests whose costs decide: where the new bounds have most to do."""
    case = strategies.penalised_case(rng).but(penalty=float(rng.choice([0.0, 0.5, 1.0, 2.0])))
    n, p = case.X.shape
    changes = {"max_depth": int(rng.integers(2, 5))}
    if rng.random() < 0.7:
        changes["max_leaf_nodes"] = int(rng.integers(2, 8))
    if rng.random() < 0.7:
        changes["feature_costs"] = rng.integers(0, rng.choice([2, 4, 12]), p) / 8
        changes["weights"] = None if rng.random() < 0.5 else rng.integers(0, 5, n).astype(float)
    if rng.random() < 0.3:
        changes["root_features"] = (int(rng.integers(p)),)
    return case.but(**changes)


@each_solver
@pytest.mark.parametrize("seed", range(4))
def test_equals_brute_force_whatever_is_switched_off(solver, seed):
    rng = np.random.default_rng([seed, 81])
    for turn in range(120):
        case = scoped_case(rng)
        optimum = case.optimum()
        for switches in settings_in_turn(solver, case.problem(), turn):
            solution = solve(solver, case, **switches)
            assert Fraction(solution.objective) == optimum, f"{switches}: {solution.objective}, {case!r}"
            assert solution.lower_bound == solution.objective


@each_solver
@pytest.mark.parametrize("seed", range(3))
def test_costs_of_questions_without_a_depth_limit(solver, seed):
    """Weights that binary fractions cannot state, so that the search works with rounded masses."""
    rng = np.random.default_rng([seed, 83])
    for _ in range(40):
        n, p = int(rng.integers(4, 10)), int(rng.integers(2, 4))
        X = np.where(rng.random((n, p)) < 0.3, np.nan, rng.integers(0, 4, (n, p)).astype(float))
        y, weights = rng.integers(0, 2, n), np.full(n, 0.3)
        losses = 0.3 * (y[:, None] != np.arange(2)).astype(float)
        case = Case(X, losses, max_depth=None, penalty=float(rng.uniform(0.02, 0.3)))
        case = case.but(feature_costs=rng.uniform(0.02, 0.1, p), weights=weights)
        solution = prove(solver, case)
        assert abs(Fraction(solution.objective) - case.optimum()) <= Fraction(solution.resolution) + Fraction(1e-13)


def test_a_search_without_a_depth_limit_that_never_ended():
    """Unlimited depth lost one at every level, so that a bound multiplied by it overflowed."""
    X = [
        [np.nan, 0.17, np.nan], [np.nan, 0.28, 0], [1, 0.45, 1], [3, -0.59, np.nan],
        [0, -0.17, np.nan], [2, 0.98, 2], [np.nan, -0.62, np.nan], [np.nan, -1.46, np.nan],
    ]  # fmt: skip
    tree = OptimalTreeClassifier(
        max_depth=None,
        regularization=0.023925342644531524,
        feature_costs=[0.06107909, 0.04157766, 0.05646759],
        time_limit=20.0,
    ).fit(np.array(X), [1, 0, 0, 0, 0, 1, 1, 1], sample_weight=np.full(8, 0.3))
    assert tree.status_ is Status.OPTIMAL
    assert tree.objective_value_ == pytest.approx(0.18630, abs=5e-6)


def _larger_case(rng) -> Case:
    depth = int(rng.integers(2, 5))
    n, p, values = [(150, 5, 25), (100, 4, 5), (60, 3, 3)][depth - 2]
    case = strategies.planted_case(rng, n, p, int(rng.integers(2, 4)), values, max_depth=depth)
    case = case.but(penalty=float(rng.choice([0, 0, 5, 20])), min_leaf=int(rng.choice([1, 1, 4])))
    which = rng.integers(1, 8)  # at least one of three
    if which & 1:
        case = case.but(max_leaf_nodes=int(rng.integers(2, 2**depth + 1)))
    if which & 2:
        case = case.but(feature_costs=rng.integers(0, rng.choice([2, 6]), p).astype(float))
        if rng.random() < 0.5:
            case = case.but(weights=rng.integers(0, 4, n).astype(float))
    if which & 4:
        case = case.but(root_features=tuple(np.flatnonzero(rng.random(p) < 0.5).tolist()))
    return case


@each_solver
@pytest.mark.parametrize("seed", range(12))
def test_equals_the_numpy_oracle_on_larger_problems(solver, seed):
    rng = np.random.default_rng([seed, 82])
    for _ in range(2):
        case = _larger_case(rng)
        optimum = case.fast_optimum()
        solution = prove(solver, case)
        assert solution.objective == optimum, case
        assert_same_tree(solution.tree, solve(solver, case, SearchLimits(60.0, n_jobs=2)).tree)


@each_solver
def test_every_combination_of_switches_keeps_the_optimum_of_a_larger_problem(solver):
    rng = np.random.default_rng(83)
    case = strategies.planted_case(rng, 100, 4, 3, 5, max_depth=3, penalty=6.0, max_leaf_nodes=6)
    case = case.but(feature_costs=np.array([0.0, 1.0, 0.5, 2.0]), root_features=(1, 2, 3))
    optimum = case.fast_optimum(2)
    for switches in all_settings(solver):
        assert 2 * solve(solver, case, **switches).objective == optimum, switches


@each_solver
@pytest.mark.parametrize("max_depth", [2, 3, 5, None])
def test_leaves_of_one_feature_equal_dynamic_programming(solver, max_depth, rng):
    for K, leaves in ((2, 2), (2, 3), (3, 5), (3, 6), (2, 9)):
        x, losses = rng.integers(0, 14, 100).astype(float), rng.integers(-9, 10, (100, K))
        case = Case(x[:, None], losses.astype(float), 1.0, max_depth, max_leaf_nodes=leaves)
        most = leaves if max_depth is None else min(leaves, 2**max_depth)
        assert prove(solver, case).objective == interval_oracles.best_intervals(x, losses, most, 1)


@each_solver
@pytest.mark.parametrize("max_depth", [1, 2, 3, 4])
def test_one_thread_or_two_give_the_same_tree(solver, max_depth):
    rng = np.random.default_rng(84)
    case = strategies.planted_case(rng, 300, 5, 3, 25 if max_depth < 4 else 4, max_depth=max_depth)
    case = case.but(losses=case.losses * rng.lognormal(size=(300, 1)), penalty=3.0, max_leaf_nodes=7)
    case = case.but(feature_costs=0.3 * rng.random(5), weights=rng.lognormal(size=300), root_features=(0, 2, 3))
    one = solve(solver, case, SearchLimits(60.0, n_jobs=1))
    two = solve(solver, case, SearchLimits(60.0, n_jobs=2))
    assert_same_tree(one.tree, two.tree)
    assert (one.objective, one.lower_bound, one.status) == (two.objective, two.lower_bound, two.status)


@each_solver
def test_real_weights_and_costs_are_as_exact_as_losses(solver, rng):
    """A row's charge for a question is rounded by row and by price: nothing is shared between them."""
    X = rng.integers(0, 6, (400, 4)).astype(float)
    case = Case(X, rng.normal(size=(400, 2)), 0.01, 2, weights=rng.random(400), feature_costs=rng.random(4) / 50)
    solution = solve(solver, case)
    assert 0 < solution.resolution <= 1e-11 * checker.absolute_total(case.losses)


@each_solver
@pytest.mark.parametrize("seed", range(6))
def test_real_valued_weights_and_costs_within_the_resolution(solver, seed):
    rng = np.random.default_rng([seed, 85])
    for _ in range(20):
        case = scoped_case(rng)
        n, p = case.X.shape
        case = case.but(losses=case.losses * rng.lognormal(size=(n, 1)), penalty=0.3 * case.penalty)
        case = case.but(feature_costs=0.4 * rng.random(p), weights=rng.lognormal(size=n))
        solution, optimum = solve(solver, case), case.optimum()
        error = Fraction(1e-14 * (checker.absolute_total(case.losses) + 4 * checker.dearest_level(case.problem())))
        assert solution.status is Status.OPTIMAL
        assert abs(Fraction(solution.objective) - optimum) <= Fraction(solution.resolution) + error, case
        assert Fraction(solution.lower_bound) <= optimum + Fraction(solution.resolution) + error, case


@each_solver
def test_more_is_never_worse(solver):
    """More leaves, cheaper tests, more features to begin with."""
    rng = np.random.default_rng(86)
    case = strategies.planted_case(rng, 120, 4, 3, 6, max_depth=3, feature_costs=np.full(4, 0.5))
    leaves = [solve(solver, case.but(max_leaf_nodes=h)).objective for h in (1, 2, 3, 4, 5, 6, 7, 8, 9, None)]
    assert leaves == sorted(leaves, reverse=True) and leaves[-1] == leaves[-3]
    costs = [solve(solver, case.but(feature_costs=np.full(4, c))).objective for c in (0.0, 0.25, 1.0, 4.0, 64.0)]
    assert costs == sorted(costs)
    assert costs[0] == solve(solver, case.but(feature_costs=None)).objective
    assert costs[-1] == solve(solver, case.but(max_depth=0)).objective
    roots = [solve(solver, case.but(root_features=r)).objective for r in ((), (2,), (0, 2), (0, 1, 2), None)]
    assert roots == sorted(roots, reverse=True) and roots[0] == costs[-1]
    each = [solve(solver, case.but(root_features=(j,))).objective for j in range(4)]
    assert min(each) == roots[-1]


@each_solver
def test_the_weight_of_a_row_is_its_share_of_the_cost(solver):
    """Rows that stand for several persons are those persons one by one; for nobody, their tests are free."""
    rng = np.random.default_rng(87)
    case = strategies.planted_case(rng, 60, 3, 2, 5, max_depth=3, feature_costs=np.array([1.0, 0.5, 2.0]))
    times = rng.integers(1, 4, 60)
    weighted = case.but(losses=case.losses * times[:, None], weights=times.astype(float))
    rows = np.repeat(np.arange(60), times)
    one_by_one = case.but(X=case.X[rows], losses=case.losses[rows])
    assert solve(solver, weighted).objective == solve(solver, one_by_one).objective
    free = solve(solver, case.but(weights=np.zeros(60)))
    assert free.objective == solve(solver, case.but(feature_costs=None)).objective


@each_solver
@pytest.mark.parametrize("time_limit", [0.0, 0.4])
def test_a_search_cut_short_keeps_the_scope(solver, time_limit):
    rng = np.random.default_rng(88)
    X, losses = rng.normal(size=(2_000, 8)), rng.normal(size=(2_000, 3))
    case = Case(X, losses, 1.0, 4, max_leaf_nodes=9, feature_costs=rng.random(8) / 50, root_features=(3, 5))
    solution = solve(solver, case, SearchLimits(time_limit))
    assert solution.status is Status.TIME_LIMIT and solution.gap > 0


@pytest.mark.parametrize("seed", range(5))
def test_guessed_lower_bounds_hold_and_keep_the_scope(seed):
    rng = np.random.default_rng([seed, 91])
    for draw in range(60):
        case = scoped_case(rng) if draw % 2 else strategies.random_case(rng, max_rows=9)
        problem, optimum = case.problem(), case.optimum()
        chosen = rng.integers(0, case.losses.shape[1], len(case.X))
        reference = case.losses[np.arange(len(case.X)), chosen]
        solution = solve_with_guesses(problem, Guesses(reference_losses=reference))
        assert (optimum is None) == (solution.status is Status.INFEASIBLE)
        if optimum is not None:
            checker.check_solution(problem, case.X, solution)
            error = 1e-12 * (1 + checker.absolute_total(case.losses))
            assert solution.lower_bound - error <= optimum <= solution.objective + error, case
            assert solution.objective - optimum <= solution.guarantees["theorem_1"] + error, case


def test_what_problems_refuse():
    problem = strategies.planted_case(np.random.default_rng(89), 20, 2, 2, 4).problem()
    for changes, words in (
        ({"max_leaf_nodes": 0}, "max_leaf_nodes must be >= 1"),
        ({"feature_costs": np.array([1.0])}, "feature_costs must be 2"),
        ({"feature_costs": np.array([1.0, -1.0])}, "feature_costs"),
        ({"weights": np.full(20, np.nan)}, "weights must be 20"),
        ({"root_features": (2,)}, "root_features .* from 0 to 1"),
    ):
        with pytest.raises(InputError, match=words):
            replace(problem, **changes)


def test_patience_is_enough_for_a_tree_of_few_leaves_without_a_depth():
    """A largest number of leaves alone bounds the search."""
    case = strategies.planted_case(np.random.default_rng(90), 200, 4, 2, 6, max_depth=None, max_leaf_nodes=5)
    shallow = prove(SOLVERS["direct"], case.but(max_depth=4))
    assert solve(SOLVERS["direct"], case, PATIENCE).objective == shallow.objective
