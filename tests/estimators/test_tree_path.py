"""The regularization path against brute force at many prices of a leaf."""

import _thread
import time
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from policytree import CostSensitiveTreeClassifier, DRPolicyTree, OptimalTreeClassifier, PolicyTree, tree_path
from policytree.exceptions import InputError, SearchWarning
from policytree.problem.types import SearchLimits, Status
from policytree.solvers import solve_direct
from policytree.solvers.approximate.sampling import solve_sampling
from policytree.solvers.exact import engines
from policytree.solvers.regularization_path import solution_path
from tests.support import checker, strategies


def check_path(case, steps, penalties):
    """Ranges join, leaves rise, and at every penalty the step that covers it is optimal."""
    assert steps[0].high == np.inf and steps[-1].low == 0
    assert [s.high for s in steps[1:]] == [s.low for s in steps[:-1]]
    leaves = [s.solution.tree.n_leaves for s in steps]
    assert leaves == sorted(set(leaves))
    for step in steps:
        checker.check_solution(replace(case.problem(), leaf_penalty=step.penalty), case.X, step.solution)
    for penalty in penalties:
        step = next(s for s in steps if s.low <= penalty <= s.high)
        optimum = case.but(penalty=penalty).optimum()
        here = Fraction(step.loss) + Fraction(penalty) * step.solution.tree.n_leaves
        assert abs(here - optimum) <= Fraction(1e-11 * (1 + checker.absolute_total(case.losses))), (penalty, case)


@settings(max_examples=100)
@given(case=strategies.cases(max_rows=7, max_features=2))
def test_path_of_drawn_problems(case):
    steps, proved = solution_path(case.problem())
    assert proved
    if case.optimum() is None:
        assert steps == []
        return
    middle = [(s.low + s.high) / 2 for s in steps[1:]]
    check_path(case, steps, [0.0, 0.3, 1.0, 2.5, 40.0, *middle, *(s.low for s in steps)])


@pytest.mark.parametrize("seed", range(5))
def test_path_finds_what_a_grid_finds(seed):
    rng = np.random.default_rng([seed, 71])
    case = strategies.planted_case(rng, 120, 3, 2 + seed % 2, 6, max_depth=3, min_leaf=1 + 4 * (seed % 2))
    problem = case.problem()
    steps, proved = solution_path(problem)
    assert proved and len(steps) >= 3
    for penalty in np.linspace(0, 1.2 * steps[0].low, 40):
        step = next(s for s in steps if s.low <= penalty <= s.high)
        solution = solve_direct(replace(problem, leaf_penalty=float(penalty)))
        expected = step.loss + penalty * step.solution.tree.n_leaves
        assert solution.objective == pytest.approx(expected, rel=1e-10, abs=1e-8)


def test_path_shares_work():
    """Fewer solves than two per tree, and shallow ones where few leaves are left."""
    case = strategies.planted_case(np.random.default_rng(72), 300, 4, 2, 8, max_depth=4)
    depths = []

    def counting(problem, limits):
        depths.append(problem.max_depth)
        return solve_direct(problem, limits)

    steps, _ = solution_path(case.problem(), solve=counting)
    assert len(steps) >= 5
    assert len(depths) <= 2 * len(steps)
    assert min(depths[2:]) < 4


def test_path_can_end_early():
    case = strategies.planted_case(np.random.default_rng(73), 120, 3, 2, 6, max_depth=3)
    whole, _ = solution_path(case.problem())
    end = (whole[2].low + whole[2].high) / 2
    part, proved = solution_path(case.problem(), min_penalty=end)
    assert proved and len(part) == 3
    assert part[-1].low == end
    assert [s.loss for s in part] == [s.loss for s in whole[:3]]


def test_path_without_depth_limit():
    case = strategies.planted_case(np.random.default_rng(74), 60, 2, 2, 4, max_depth=None)
    steps, proved = solution_path(case.problem(), min_penalty=1.0)
    assert proved
    for penalty in (1.0, 3.0, 10.0):
        step = next(s for s in steps if s.low <= penalty <= s.high)
        exact = solve_direct(replace(case.problem(), leaf_penalty=penalty)).objective
        assert exact == pytest.approx(step.loss + penalty * step.solution.tree.n_leaves)


def test_a_heuristic_path_says_so():
    case = strategies.planted_case(np.random.default_rng(75), 120, 3, 2, 6, max_depth=3)
    steps, proved = solution_path(case.problem(), solve=solve_sampling)
    assert not proved
    assert all(s.solution.status is Status.HEURISTIC for s in steps)
    exact, _ = solution_path(case.problem())
    for step in steps:
        covering = next(s for s in exact if s.low <= step.penalty <= s.high)
        best = covering.loss + step.penalty * covering.solution.tree.n_leaves
        assert step.solution.lower_bound <= best + 1e-9 <= step.solution.objective + 2e-9


# --- estimators ---


@pytest.fixture
def data(rng):
    X = pd.DataFrame(rng.integers(0, 9, (200, 3)).astype(float), columns=["age", "dose", "score"])
    y = np.where(((X["age"] > 4) & (X["dose"] > 2)) ^ (rng.random(200) < 0.1), "yes", "no")
    return X, y, rng.lognormal(size=200)


def test_path_of_a_classifier(data):
    X, y, w = data
    path = tree_path(OptimalTreeClassifier(max_depth=3), X, y, sample_weight=w)
    assert path.proved and len(path) == len(path.estimators) >= 3
    for tree, low, high in zip(path.estimators, path.low, path.high, strict=True):
        assert low <= tree.regularization <= high
        again = OptimalTreeClassifier(3, tree.regularization).fit(X, y, w)
        assert again.objective_value_ == pytest.approx(tree.objective_value_, rel=1e-12)
        assert tree.status_ is Status.OPTIMAL and tree.optimality_gap_ == 0
        assert tree.get_n_leaves() == again.get_n_leaves()
        assert list(tree.classes_) == ["no", "yes"] and list(tree.feature_names_in_) == list(X.columns)
    errors = [1 - tree.score(X, y, w) for tree in path.estimators]
    np.testing.assert_allclose(path.values, errors, atol=1e-12)
    frame = path.to_frame()
    assert frame["n_leaves"].is_monotonic_increasing and frame["value"].is_monotonic_decreasing
    assert frame.columns.tolist() == ["low", "high", "n_leaves", "depth", "value"]


def test_path_of_a_policy_and_of_costs(data, rng):
    X, y, w = data
    rewards = pd.DataFrame({"none": np.zeros(200), "drug": np.where(y == "yes", 1.0, -1.0) * w})
    path = tree_path(PolicyTree(2, direction="maximize"), X, rewards, sample_weight=w)
    for tree, value in zip(path.estimators, path.values, strict=True):
        assert tree.score(X, rewards, w) == pytest.approx(value)
        assert tree.objective_value_ == pytest.approx(value - tree.regularization * tree.get_n_leaves())
    assert path.values[-1] == pytest.approx(PolicyTree(2).fit(X, rewards, sample_weight=w).objective_value_)
    costs = CostSensitiveTreeClassifier({("yes", "no"): 5.0, ("no", "yes"): 1.0}, max_depth=2)
    by_cost = tree_path(costs, X, y, min_regularization=0.05)
    assert by_cost.low[-1] == 0.05
    np.testing.assert_allclose(by_cost.values, [-tree.score(X, y) for tree in by_cost.estimators])


def test_path_within_guesses(data):
    X, y, _ = data
    path = tree_path(OptimalTreeClassifier(max_depth=2, guesses="thresholds", random_state=0), X, y)
    assert path.proved
    assert {tree.status_ for tree in path.estimators} == {Status.OPTIMAL_GIVEN_GUESSES}
    with pytest.warns(SearchWarning, match="without a proof"):
        bounded = tree_path(OptimalTreeClassifier(max_depth=2, guesses="lower_bounds", random_state=0), X, y)
    assert not bounded.proved


def test_path_obeys_the_time_limit():
    rng = np.random.default_rng(76)
    X, y = rng.normal(size=(2_000, 12)), rng.integers(0, 3, 2_000)
    start = time.process_time()
    with pytest.warns(SearchWarning, match="without a proof"):
        path = tree_path(OptimalTreeClassifier(max_depth=4, time_limit=1.0), X, y)
    assert time.process_time() - start < 3.0
    assert not path.proved
    assert path.estimators[0].get_n_leaves() == 1
    assert all(tree.optimality_gap_ >= 0 for tree in path.estimators)


@pytest.mark.usefixtures("ctrl_c")
def test_an_interrupt_ends_the_whole_path(monkeypatch):
    rng = np.random.default_rng(78)
    X, y = rng.normal(size=(3_000, 12)), rng.integers(0, 3, 3_000)
    OptimalTreeClassifier(max_depth=4).fit(X[:50], y[:50])  # compile first
    pressed, grow = [], engines.grow_incumbent

    def press(*given):
        if not pressed:
            pressed.append(True)
            _thread.interrupt_main()
        return grow(*given)

    monkeypatch.setattr(engines, "grow_incumbent", press)  # in the midst of the first search
    start = time.process_time()
    with pytest.warns(SearchWarning, match="without a proof"):
        path = tree_path(OptimalTreeClassifier(max_depth=4, time_limit=30.0), X, y)
    assert pressed and time.process_time() - start < 6.0
    assert not path.proved and len(path) >= 1


def test_what_has_no_path(data):
    X, y, _ = data
    with pytest.raises(InputError, match="DRPolicyTree"):
        tree_path(DRPolicyTree(), X, y)
    with pytest.raises(InputError, match="min_regularization"):
        tree_path(OptimalTreeClassifier(), X, y, min_regularization=-1)
    with pytest.raises(InputError, match="min_samples_leaf"):
        tree_path(OptimalTreeClassifier(min_samples_leaf=500), X, y)


def test_limits_are_passed_on(data):
    seen = []

    def solve(problem, limits):
        seen.append(limits)
        return solve_direct(problem, limits)

    case = strategies.planted_case(np.random.default_rng(77), 60, 3, 2, 6, max_depth=2)
    solution_path(case.problem(), SearchLimits(time_limit=30.0, n_jobs=2), solve=solve)
    assert all(0 < limits.time_limit <= 30.0 and limits.n_jobs == 2 for limits in seen)
