"""Trees that the search starts from: what they are said to cost is what they cost, and they keep to the depth."""

import threading
from dataclasses import replace

import numpy as np
import pytest

from policytree.problem.types import Problem, SearchLimits
from policytree.solvers import solve_direct
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.core.compilation import load_kernels
from policytree.solvers.core.fixed_point import to_fixed_point
from policytree.solvers.core.limits import stopped_by
from policytree.solvers.core.rows import expand, new_control, prepare
from policytree.solvers.core.scoring import scored_tree
from policytree.solvers.exact.depth_search import last_of, steps_of_depth_three
from policytree.solvers.exact.engine_table import Case, kernels_of
from policytree.solvers.exact.grow_incumbent import grow_incumbent
from tests.support.strategies import planted_case


def grown(problem, splits, depth, exact=2):
    """The tree, its objective from the losses, and the objective that is claimed for it."""
    fixed = to_fixed_point(problem.losses, problem.leaf_penalty, 64, problem.feature_costs, problem.weights)
    load_kernels(kernels_of(Case.of(replace(problem, max_depth=depth))))
    node = prepare(problem, fixed, merge=True)
    value, tree = grow_incumbent(node, splits, depth, new_control(), exact)
    return *scored_tree(problem, expand(node, tree)), problem.losses[:, 0].sum() + fixed.to_float(value)


@pytest.mark.parametrize("seed", range(6))
def test_value_depth_and_two_levels_that_are_optimal(seed):
    rng = np.random.default_rng([seed, 31])
    case = planted_case(rng, 300, 5, 2 + seed % 2, 2 + 5 * (seed % 3), max_depth=2, penalty=float(seed % 3 * 7))
    if seed >= 3:
        case = case.but(min_leaf=11, feature_costs=rng.integers(0, 3, 5) / 8)
    problem = case.problem()
    two = solve_direct(problem).objective
    for depth in (2, 3, 4, 5):
        tree, objective, claimed = grown(problem, [(-1, 0)], depth)
        assert claimed == pytest.approx(objective, abs=1e-9)
        assert tree.max_depth <= depth
        assert tree.n_node_samples[tree.is_leaf].min() >= problem.min_leaf
        assert objective <= two if depth > 2 else objective == two


@pytest.mark.parametrize("seed", range(6))
def test_three_levels_that_are_optimal(seed):
    rng = np.random.default_rng([seed, 34])
    case = planted_case(rng, 250, 5, 2 + seed % 2, 2 + 5 * (seed % 3), max_depth=3, penalty=float(seed % 3 * 7))
    if seed >= 3:
        case = case.but(min_leaf=11, feature_costs=rng.integers(0, 3, 5) / 8)
    problem = case.problem()
    three = solve_direct(problem).objective
    for depth in (2, 3, 4, 5, 6):
        tree, objective, claimed = grown(problem, [(-1, 0)], depth, exact=3)
        assert claimed == pytest.approx(objective, abs=1e-9)
        assert tree.max_depth <= depth
        assert tree.n_node_samples[tree.is_leaf].min() >= problem.min_leaf
        if depth == 2:
            assert objective == pytest.approx(grown(problem, [(-1, 0)], 2)[1])
        else:
            assert objective == pytest.approx(three) if depth == 3 else objective <= three + 1e-9


def test_subtrees_of_three_levels_below_kept_splits_are_the_best_there_are():
    case = planted_case(np.random.default_rng(35), 400, 4, 2, 9, max_depth=3)
    problem = case.problem()
    _, objective, _ = grown(problem, [(3, 2), (-1, 0), (-1, 0)], 4, exact=3)
    left = problem.data.codes[3] <= 2
    sides = [
        solve_direct(Problem(bin_matrix(problem.data.codes[:, rows].T.astype(float)), problem.losses[rows], 0.0, 3))
        for rows in (left, ~left)
    ]
    assert objective == pytest.approx(sum(side.objective for side in sides))


def test_rows_that_agree_or_cannot_be_told_apart_stay_a_leaf():
    X = np.zeros((30, 2))
    for losses in (np.tile([0.0, 1.0], (30, 1)), np.eye(2)[np.arange(30) % 2]):
        problem = Problem(bin_matrix(X), losses, max_depth=5)
        tree, objective, _ = grown(problem, [(-1, 0)], 5, exact=3)
        assert (tree.max_depth, objective) == (0, losses.sum(axis=0).min())


def test_depth_five_has_three_exact_levels_in_hand_once_depth_three_is_proved():
    case = planted_case(np.random.default_rng(36), 2_000, 8, 2, 40, max_depth=5)
    problem, values = case.problem(), []
    reached = threading.Event()

    def look(state):
        values.append(state.objective)
        if len(values) > 1 and state.objective <= best:
            reached.set()

    node = prepare(problem, to_fixed_point(problem.losses, 0.0, 64), merge=True)
    upper = last_of(steps_of_depth_three(node, new_control()))[1]
    best = grown(problem, upper, 5, exact=3)[1]
    assert best < grown(problem, upper, 5, exact=2)[1]
    with stopped_by(reached):
        found = solve_direct(problem, SearchLimits(time_limit=60.0, progress=look))
    assert found.objective <= best


def test_the_upper_splits_of_a_good_tree_are_kept():
    case = planted_case(np.random.default_rng(32), 400, 4, 2, 9, max_depth=2)
    _, objective, _ = grown(case.problem(), [(3, 2), (-1, 0), (0, 4), (-1, 0), (-1, 0)], 4)
    tree, deeper, _ = grown(case.problem(), [(3, 2), (-1, 0), (0, 4), (-1, 0), (-1, 0)], 5)
    assert (tree.feature[0], tree.threshold[0]) == (3, case.problem().data.columns[3].thresholds[2])
    assert deeper <= objective


def test_a_search_without_time_for_depth_five_has_more_than_depth_two():
    case = planted_case(np.random.default_rng(33), 4_000, 10, 2, 300, max_depth=5)
    first = solve_direct(case.problem(), SearchLimits(time_limit=1.0))
    assert first.tree.max_depth >= 4
    assert first.objective < solve_direct(case.but(max_depth=2).problem()).objective
