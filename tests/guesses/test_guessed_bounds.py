"""Lower bounds from a reference: what they promise, and what they take away."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policytree.exceptions import InputError
from policytree.guesses.lower_bounds import reference_losses
from policytree.problem.types import Guesses, Problem, Status
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.core.columns import equal_rows, group_sums
from policytree.solvers.exact.direct import solve_direct
from policytree.solvers.guided.solve import solve_with_guesses
from tests.support import checker, oracles, strategies


def test_reference_losses_of_labels_and_policies():
    losses = np.array([[0.0, 2.0, 2.0], [3.0, 0.0, 3.0], [-1.0, -4.0, 0.5]])
    np.testing.assert_array_equal(reference_losses(losses, [0, 2, 1]), [0.0, 3.0, -4.0])
    with pytest.raises(InputError, match="3 integers from 0 to 2"):
        reference_losses(losses, [0, 1, 3])


def every_objective(case):
    """Objective of every tree of two splits at most, with its losses row by row: straight from the definition."""
    splits = oracles.all_splits(case.X, case.categorical)
    for rule in oracles.enumerate_trees(splits, case.losses.shape[1], 1):
        actions = [oracles.leaf_of(rule, row)[1] for row in case.X.tolist()]
        yield case.losses[np.arange(len(actions)), actions], oracles.count_leaves(rule)


@settings(max_examples=200)
@given(case=strategies.cases(max_rows=7, max_features=2, constraints=False, costs=False), seed=st.integers(0, 2**31))
def test_theorem_1_holds(case, seed):
    """The printed inequality, for every tree of depth one as t*, and the number reported for the best of them."""
    case = case.but(max_depth=1)
    rng = np.random.default_rng(seed)
    problem = case.problem()
    reference = reference_losses(case.losses, rng.integers(0, case.losses.shape[1], len(case.X)))
    solution = solve_with_guesses(problem, Guesses(reference_losses=reference))
    best = np.inf
    for losses, leaves in every_objective(case):
        right_side = np.maximum(losses, reference).sum() + case.penalty * leaves
        assert solution.objective <= right_side + 1e-9
        best = min(best, losses.sum() + case.penalty * leaves)
    assert solution.objective - solution.guarantees["theorem_1"] <= best + 1e-9
    assert best <= solution.objective + 1e-9
    assert solution.lower_bound <= best + 1e-9
    checker.check_solution(problem, case.X, solution)


@pytest.mark.parametrize("seed", range(10))
def test_bounds_hold_for_deeper_trees_and_more_actions(seed):
    rng = np.random.default_rng([seed, 61])
    case = strategies.planted_case(rng, 120, 3, 2 + seed % 3, 6, max_depth=3, penalty=[0.0, 6.0][seed % 2])
    problem = case.problem()
    optimum = solve_direct(problem).objective
    for actions in (case.losses.argmin(axis=1), case.losses.argmax(axis=1), rng.integers(0, 2, 120)):
        reference = reference_losses(case.losses, actions)
        solution = solve_with_guesses(problem, Guesses(reference_losses=reference))
        assert solution.lower_bound <= optimum <= solution.objective
        assert solution.objective - optimum <= solution.guarantees["theorem_1"] + 1e-9
        checker.check_solution(problem, case.X, solution)


def test_a_perfect_reference_takes_nothing_away(rule_problem):
    reference = reference_losses(rule_problem.losses, rule_problem.losses.argmin(axis=1))
    solution = solve_with_guesses(rule_problem, Guesses(reference_losses=reference))
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(solve_direct(rule_problem).objective, rel=1e-13)


def test_a_reference_no_better_than_a_leaf_closes_the_search(rule_problem):
    leaf = int(rule_problem.losses.sum(axis=0).argmin())
    reference = reference_losses(rule_problem.losses, np.full(800, leaf))
    solution = solve_with_guesses(rule_problem, Guesses(reference_losses=reference))
    assert solution.counters["nodes"] == 0
    assert solution.objective <= reference.sum() + rule_problem.leaf_penalty
    assert solution.status is Status.OPTIMAL_GIVEN_GUESSES
    assert solution.guarantees["theorem_1"] >= solution.objective - solve_direct(rule_problem).objective


def test_references_of_other_shapes_are_refused(rule_problem):
    for bad in (np.zeros(2), np.full(800, np.nan)):
        with pytest.raises(InputError, match="reference_losses must be 800 finite numbers"):
            solve_with_guesses(rule_problem, Guesses(reference_losses=bad))


def test_the_best_reference_on_groups_takes_nothing_away(rng):
    """A reference that takes the best action of rows that look alike leaves the proof whole."""
    X = rng.integers(0, 4, (500, 2)).astype(float)
    losses = rng.lognormal(size=(500, 3))
    problem = Problem(bin_matrix(X), losses, 1.0, 3)
    first, group = equal_rows(problem.data)
    assert len(first) == 16 and (X[first][group] == X).all()
    best = group_sums(losses, group, 16).argmin(axis=1)[group]
    solution = solve_with_guesses(problem, Guesses(reference_losses=reference_losses(losses, best)))
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(solve_direct(problem).objective, rel=1e-13)
