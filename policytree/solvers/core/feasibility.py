"""Whether any split leaves enough rows on both sides: one count per column."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from policytree.problem.split_columns import with_every_grouping
from policytree.problem.types import Problem


def no_split_fits(problem: Problem) -> bool:
    """Whether the tree must be a single leaf, because no split leaves both sides the rows that leaves need.

    False where no number of rows is asked for, and where there is nothing to split for anyway.

    Cost: O(columns x n x arms).
    """
    if problem.max_depth == 0 or problem.max_leaf_nodes == 1 or not problem.data.n_bins.size:
        return False
    if problem.losses.shape[1] == 1:
        return False
    if problem.min_leaf <= 1 and problem.min_leaf_per_arm <= 0:
        return False
    problem = replace(problem, data=with_every_grouping(problem.data))
    return not any(_some_cut_fits(problem, int(j)) for j in np.flatnonzero(problem.root_columns))


def _some_cut_fits(problem: Problem, j: int) -> bool:
    """Whether a cut of a column leaves enough rows, of every arm, on both sides."""
    codes, bins = problem.data.codes[j], int(problem.data.n_bins[j])
    left = np.cumsum(np.bincount(codes, minlength=bins))[:-1]
    fits = (left >= problem.min_leaf) & (len(codes) - left >= problem.min_leaf)
    if problem.min_leaf_per_arm > 0 and fits.any():
        assert problem.arms is not None
        K = problem.losses.shape[1]
        table = np.bincount(codes.astype(np.int64) * K + problem.arms, minlength=bins * K).reshape(bins, K)
        sides = np.cumsum(table, axis=0)
        least = np.minimum(sides[:-1], sides[-1] - sides[:-1]).min(axis=1)
        fits &= least >= problem.min_leaf_per_arm
    return bool(fits.any())
