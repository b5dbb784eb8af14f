"""The kernels that the exact search for a problem may call."""

from __future__ import annotations

import numpy as np

from policytree.problem.types import GATES, Problem, SizeGates
from policytree.solvers.core.compilation import (
    ALWAYS,
    DEEPER,
    LONG,
    ONE_FEATURE,
    PAIRS,
    PAIRS_DEEP,
    PLAIN,
    RELAXED,
    ROW_DUALS,
    SPECIAL,
    SUBSET_KERNELS,
    TWO_LEVELS,
    Needed,
    is_long,
    is_signed,
    is_special,
)
from policytree.solvers.exact.bounds.row_duals import row_duals_apply
from policytree.solvers.exact.interval_dp import one_feature_applies
from policytree.solvers.exact.subset_search import subset_search_applies


def needed_kernels(problem: Problem, block_kind: np.dtype | None, gates: SizeGates = GATES) -> Needed:
    """Kernels that the search may call.

    Parameters
    ----------
    problem : Problem
    block_kind : dtype or None
        Numbers of blocks of pair sums, if these solve the problem (see
        :func:`policytree.solvers.exact.binary_features.blocks_for`).
    gates : SizeGates, optional
    """
    if one_feature_applies(problem):
        return [(ONE_FEATURE, "")]
    depth, bins = problem.max_depth, problem.data.n_bins
    deep = depth is None or depth > 2 or problem.root_features is not None  # these are searched one by one
    needed: Needed = [(ALWAYS, "")]
    if depth is not None and depth < 2 and not deep:
        return needed
    kind = SPECIAL if is_special(problem) else PLAIN
    needed += [(TWO_LEVELS, kind)]
    if problem.min_leaf > 1 or problem.min_leaf_per_arm > 0:
        needed += [(RELAXED, "")]
    if block_kind is not None:
        return [*needed, (PAIRS + PAIRS_DEEP * (depth is None or depth > 3), block_kind.name)]
    if is_long(bins, is_signed(problem)):
        needed += [(LONG, "")]
    if deep:
        needed += [(DEEPER, kind)]
    if subset_search_applies(problem, gates):
        needed += SUBSET_KERNELS
    if deep and row_duals_apply(problem, gates):
        needed += [(ROW_DUALS, "")]
    return needed
