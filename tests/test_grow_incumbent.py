"""Trees that the search starts from: what they are said to cost is what they cost, and they keep to the depth."""

import numpy as np
import pytest

from policytree.problem.types import SearchLimits
from policytree.solvers import solve_direct
from policytree.solvers.core.fixed_point import to_fixed_point
from policytree.solvers.core.rows import expand, new_control, prepare
from policytree.solvers.core.scoring import scored_tree
from policytree.solvers.exact.grow_incumbent import grow_incumbent
from tests.strategies import planted_case


def grown(problem, splits, depth):
    """The tree, its objective from the losses, and the objective that is claimed for it."""
    fixed = to_fixed_point(problem.losses, problem.leaf_penalty, 64, problem.feature_costs, problem.weights)
    node = prepare(problem, fixed, merge=True)
    value, tree = grow_incumbent(node, splits, depth, new_control())
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
