"""Bounds of the sides of a column's cuts against the values of all sides."""

import numpy as np
import pytest

from policytree.problem.types import Problem
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.core.compilation import ALWAYS, PLAIN, RELAXED, TWO_LEVELS, load_kernels
from policytree.solvers.core.fixed_point import to_fixed_point
from policytree.solvers.core.rows import prepare, rows_of, two_splits
from policytree.solvers.core.side_bounds import SideBounds, row_values
from policytree.solvers.kernels.base.child_rows import pack_rows


def drawn_node(seed):
    """Rows of losses, some of them with prices of splits and minimum counts."""
    rng = np.random.default_rng(seed)
    data = bin_matrix(rng.integers(0, 6, (60, 3)).astype(float))
    costs = rng.integers(0, 3, 3) / 4.0 if seed % 2 else None
    problem = Problem(
        data, rng.integers(-9, 10, (60, 3)).astype(float), 1.0, 3, feature_costs=costs, min_leaf=1 + 4 * (seed % 3 == 0)
    )
    load_kernels([(ALWAYS + RELAXED, ""), (TWO_LEVELS, PLAIN), ((pack_rows,), "")])
    fixed = to_fixed_point(problem.losses, problem.leaf_penalty, 8, costs, None, all_trees=True)
    return prepare(problem, fixed, merge=False, special=False)


@pytest.mark.parametrize("seed", range(12))
def test_bounds_hold_and_no_cut_within_the_limit_is_left_out(seed):
    node = drawn_node(seed)
    whole = two_splits(node, 4)[0]
    for f in range(len(node.bins)):

        def least_of(rows):
            return two_splits(rows_of(node, rows), 4)[0]

        sides = [node.codes[f] <= t for t in range(int(node.bins[f]) - 1)]
        values = np.array([[least_of(np.flatnonzero(rows)) for rows in (left, ~left)] for left in sides])
        limit = int(np.median(values.sum(axis=1)))
        for known in (None, whole):
            bounds = SideBounds(node, f, row_values(node, splits=2), known)
            within = []
            for t in bounds.solve_cuts(lambda limit=limit: limit, least_of):
                assert (bounds.left[:-1] <= values[:, 0]).all() and (bounds.right[:-1] <= values[:, 1]).all()
                if bounds.at(t) <= limit:
                    within.append(t)
            assert sorted(within) == np.flatnonzero(values.sum(axis=1) <= limit).tolist()


def test_rows_that_are_charged_later_weaken_bounds_of_larger_sides_alone():
    node = drawn_node(1)
    values = row_values(node, splits=2)
    free, charged = (SideBounds(node, 0, values, later=later) for later in (None, np.full(node.n_rows, 2)))
    t = int(free.cuts[1])
    for bounds in (free, charged):
        bounds.raise_left(t, 2**58)
    n_left = np.count_nonzero(node.codes[0] <= t)
    assert (free.left[:t] == charged.left[:t]).all()
    assert (free.left[t + 1 :] - charged.left[t + 1 :] == 2 * n_left).all()
