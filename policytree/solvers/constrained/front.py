"""Trees judged by their loss and one further sum, such as what they spend.

Down to depth two all that no other tree is as good as in both; deeper, the corners of the convex hull of (sum, loss),
each the best tree at some price of the sum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from policytree.problem.types import Problem, SearchLimits, Solution, Status
from policytree.solvers.constrained.lagrangian import Corner, Relaxation, pareto_search
from policytree.solvers.constrained.lagrangian_dual import Dual, Stopped, lower_hull, not_as_good, strict_hull
from policytree.solvers.core.compilation import is_signed, load_kernels, pareto_kernels
from policytree.solvers.core.constraints import Constraint, with_limit
from policytree.solvers.core.limits import Clock
from policytree.solvers.core.scoring import scored_tree
from policytree.solvers.exact.direct import solve_direct
from policytree.solvers.multi_objective.pareto_front import Found

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
    if problem.most_depth > MOST_LEVELS:
        trees, proved = hull_of_two(problem, constraint, limits, solve=solve)
        return trees, False, proved
    relaxation = Relaxation(problem, [with_limit(constraint, 0)], solve)
    front, status = _all(relaxation, limits or SearchLimits())
    return _front_trees(relaxation, front, status), True, status.proved


def hull_of_two(
    problem: Problem, constraint: Constraint, limits: SearchLimits | None = None, *, solve=solve_direct
) -> tuple[list[FrontTree], bool]:
    """Trees that are best at some price of the sum, from the least sum to the tree that is best without a limit.

    Parameters
    ----------
    problem, constraint, limits, solve
        As for :func:`front_of_two`.

    Returns
    -------
    trees : list of FrontTree
        Empty if not even one leaf is allowed.
    proved : bool
        Whether every search ended with a proof: then no corner is lacking.

    Notes
    -----
    Between two corners, a straight line bounds what any tree can reach, and lots between the two trees reach it.
    """
    relaxation = Relaxation(problem, [with_limit(constraint, 0)], solve)
    met: list[Corner] = []
    dual = Dual(relaxation, limits or SearchLimits(), met.append)
    try:
        free, _ = dual.solve([0.0])
        hull = lower_hull(dual, free, dual.least(0))
    except (Stopped, KeyboardInterrupt):
        if dual.status is Status.INFEASIBLE:
            return [], True
        if dual.status.proved:
            dual.status = Status.INTERRUPTED
        hull = strict_hull(met)
    return _front_trees(relaxation, hull, dual.status), dual.status.proved


def _front_trees(relaxation: Relaxation, front: list[Corner], status: Status) -> list[FrontTree]:
    """Trees from the least sum to the least loss, with the prices between which each is best."""
    if not front:
        return []
    hull, constraint = strict_hull(front), relaxation.constraints[0]
    prices = [math.inf, *(_price_between(relaxation, *two) for two in pairwise(hull)), 0.0]
    best_at = {corner.sums: (low, high) for corner, (high, low) in zip(hull, pairwise(prices), strict=True)}
    out = []
    for corner in front:
        low, high = best_at.get(corner.sums, (math.nan, math.nan))
        mean = constraint.in_units(corner.sums[0] - relaxation.limits[0])
        out.append(FrontTree(mean, low, high, _solution_of(relaxation, corner, front[-1], status)))
    return out


def _price_between(relaxation: Relaxation, a: Corner, b: Corner) -> float:
    """The price of a unit of the sum (per person) at which two trees are as good, in summed losses."""
    per_person = float(relaxation.constraints[0].per_person)
    return relaxation.fixed.to_float(a.loss - b.loss) / (per_person * (b.sums[0] - a.sums[0]))


def _solution_of(relaxation: Relaxation, corner: Corner, free: Corner, status: Status) -> Solution:
    """A tree as the solution of the problem within its own sum; ``status`` of the search that found it.

    ``free``: the tree that is best without a limit.
    """
    problem, fixed = relaxation.problem, relaxation.fixed
    tree, objective = scored_tree(problem, corner.splits, corner.actions)
    guarantees: dict[str, float | str] = {}
    bound = objective - fixed.to_float(corner.loss + relaxation.largest)
    if status.proved:
        bound, guarantees = objective, {"without_limits": objective - fixed.to_float(corner.loss - free.loss)}
    return Solution(
        tree, objective, bound, problem.proved_status if status is Status.OPTIMAL else status, 0.0, fixed.resolution,
        {"merged_rows": relaxation.data.n_rows}, guarantees,
    )  # fmt: skip


def _all(relaxation: Relaxation, limits: SearchLimits) -> tuple[list[Corner], Status]:
    """All trees of the front, from the least sum to the least loss, and how the search ended."""
    problem = relaxation.problem
    load_kernels(pareto_kernels(problem.data.n_bins, is_signed(problem), problem.most_depth))
    clock = Clock(limits.time_limit, memory_limit=limits.memory_limit)
    search = pareto_search(relaxation, relaxation.data, None, clock.flag)
    found: list[Found] = []
    clock.watch(lambda: found.append(search.front(problem.most_depth)))
    corners: list[Corner] = []
    for each in found:
        few = each.values[:, -1] <= problem.max_leaf_nodes if problem.max_leaf_nodes is not None else slice(None)
        for i in np.arange(len(each))[few]:
            corners.append(relaxation.corner(*each.tree(int(i))))
    return not_as_good(corners), clock.status if clock.stopped else Status.OPTIMAL
