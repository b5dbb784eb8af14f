"""The largest cost of a guessed depth: Theorem A.1 of McTavish et al. (AAAI 2022)."""

from __future__ import annotations

import math

from policytree.problem.types import Problem, Solution
from policytree.solvers.core.rescore import equivalent_points_bound


def theorem_a_1(problem: Problem, solution: Solution) -> dict[str, float]:
    """By how much at most a deeper tree is better than the one that was found, for the guarantees of a solution.

    Parameters
    ----------
    problem : Problem
        With the guessed thresholds and depth.
    solution : Solution
        Of it.

    Returns
    -------
    dict
        ``theorem_a_1``, in the unit of summed losses: no tree of any depth on the same thresholds has an objective that
        is smaller by more.

    Notes
    -----
    Let t* be the optimum without the guessed limit d, H its leaves, and E what rows lose that no split tells apart and
    that therefore get the same action. If t* is deeper than d, the theorem bounds what is lost by ``L(t') - E - penalty
    * (H - leaves of t')``, t' being t* without what is below depth d. t* is not known, but the tree found, t, is no
    worse than t', and a tree deeper than d has at least ``d + 2`` leaves. So the loss is at most ``L(t) - E - penalty *
    (d + 2 - leaves of t)``. If t* is not deeper, it is at most the gap of the search.
    """
    assert problem.max_depth is not None, "the depth was guessed"
    fewest = problem.max_depth + 2
    deeper = math.inf
    if fewest <= (problem.max_leaf_nodes or problem.data.n_rows):
        deeper = equivalent_points_bound(problem) + problem.leaf_penalty * (fewest - 1)  # one leaf is in it
    return {"theorem_a_1": max(0.0, solution.objective - min(solution.lower_bound, deeper))}
