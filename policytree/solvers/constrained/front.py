"""Trees judged by their loss and one further sum: all that no other tree is as good as in both, down to depth two.

Deeper, the corners of the convex hull (hull.py), each the best tree at some price of the sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from policytree.problem.types import Problem, SearchLimits, Solution, Status
from policytree.solvers.constrained.hull import budget_hull, price_between, solution_of
from policytree.solvers.constrained.lagrangian import Corner, Relaxation, criteria_of_relaxation
from policytree.solvers.constrained.lagrangian_dual import strict_hull
from policytree.solvers.core.compilation import load_kernels, pareto_kernels
from policytree.solvers.core.constraints import Constraint, with_limit
from policytree.solvers.core.limits import Clock
from policytree.solvers.core.shared_costs import shared_groups
from policytree.solvers.exact.direct import solve_direct
from policytree.solvers.multi_objective.pareto_front import Found, ParetoSearch

MOST_LEVELS = 2  # down to which all trees of the front are listed


@dataclass(frozen=True)
class FrontTree:
    """A tree that no other is as good as, in loss and in the sum.

    Attributes
    ----------
    mean : float
        The sum per person, in the user's unit.
    low, high : float
        The tree is the best one for prices of a unit of the sum (per person) in this range, in summed losses; NaN where
        it is the best at no price, since it lies above the line between two others.
    solution : Solution
        For the problem with just this sum as its limit.
    """

    mean: float
    low: float
    high: float
    solution: Solution


def front_of_two(
    problem: Problem, constraint: Constraint, limits: SearchLimits | None = None, *, solve=solve_direct
) -> tuple[list[FrontTree], bool, bool]:
    """Trees from the least sum to the least loss.

    Parameters
    ----------
    problem : Problem
    constraint : Constraint
        Its limit does not matter.
    limits : SearchLimits, optional
        For all of the work.
    solve : callable
        An exact solver, ``(Problem, SearchLimits) -> Solution``, for what is deeper than two levels.

    Returns
    -------
    trees : list of FrontTree
        Empty if not even one leaf is allowed.
    every : bool
        Whether the list is meant to hold all trees of the front, one of every pair of numbers, and not only the corners
        of its hull.
    proved : bool
        Whether the search ended with a proof: then none of them is lacking.
    """
    limits = limits or SearchLimits()
    if depth_of(problem) > MOST_LEVELS:
        trees, proved = budget_hull(problem, constraint, limits, solve=solve)
        return [FrontTree(t.spend, t.low, t.high, t.solution) for t in trees], False, proved
    relaxation = Relaxation(problem, [with_limit(constraint, 0)], solve)
    front, status = _all(relaxation, depth_of(problem), limits)
    if not front:
        return [], True, status.proved
    hull = strict_hull(front)
    free = front[-1]
    out = []
    for corner in front:
        low = high = math.nan
        if corner in hull:
            k = hull.index(corner)
            high = math.inf if k == 0 else price_between(relaxation, hull[k - 1], corner)
            low = 0.0 if k + 1 == len(hull) else price_between(relaxation, corner, hull[k + 1])
        solution = solution_of(relaxation, corner, status)
        without = solution.objective - relaxation.fixed.to_float(corner.loss - free.loss)
        solution = replace(solution, guarantees={**solution.guarantees, "without_limits": without})
        mean = constraint.in_units(corner.sums[0] - relaxation.limits[0])
        out.append(FrontTree(mean, low, high, solution))
    return out, True, status.proved


def depth_of(problem: Problem) -> int:
    """The largest depth of a useful tree."""
    most = problem.data.n_rows if problem.max_leaf_nodes is None else problem.max_leaf_nodes
    return most - 1 if problem.max_depth is None else min(problem.max_depth, most - 1)


def _all(relaxation: Relaxation, depth: int, limits: SearchLimits) -> tuple[list[Corner], Status]:
    """All trees of the front, from the least sum to the least loss, and how the search ended."""
    problem, data = relaxation.problem, relaxation.data
    signed = relaxation.losses.shape[1] == 2 and not relaxation.counted
    load_kernels(pareto_kernels(problem.data.n_bins, signed, depth))
    clock = Clock(limits.time_limit, memory_limit=limits.memory_limit)
    roots = np.flatnonzero(data.columns_of(problem.root_features))
    criteria = criteria_of_relaxation(relaxation, data, None)
    search = ParetoSearch(criteria, clock.flag, roots.tolist(), shared_groups(problem, relaxation.is_priced, data))
    found: list[Found] = []
    clock.watch(lambda: found.append(search.front(depth)))
    corners: list[Corner] = []
    for each in found:
        few = each.values[:, -1] <= problem.max_leaf_nodes if problem.max_leaf_nodes is not None else slice(None)
        for i in np.arange(len(each))[few]:
            corners.append(relaxation.corner(*each.tree(int(i))))
    status = clock.status if clock.stopped else Status.OPTIMAL
    return not_as_good(corners), status


def not_as_good(corners: Sequence[Corner]) -> list[Corner]:
    """Trees that no other is as good as in loss and sum, one of every pair, from the least sum to the least loss."""
    kept: list[Corner] = []
    for corner in sorted(corners, key=lambda c: (c.sums[0], c.loss)):
        if not kept or corner.loss < kept[-1].loss:
            kept.append(corner)
    return kept
