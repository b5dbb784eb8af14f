"""Trees that are best at some price of a unit of money: corners of the convex hull of (spend, loss)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from policytree.problem.types import Problem, SearchLimits, Solution, Status
from policytree.solvers.constrained.lagrangian import Corner, Relaxation
from policytree.solvers.constrained.lagrangian_dual import Dual, Stopped, lower_hull, strict_hull
from policytree.solvers.core.constraints import Constraint, with_limit
from policytree.solvers.core.scoring import scored_tree
from policytree.solvers.exact.direct import solve_direct


@dataclass(frozen=True)
class HullTree:
    """A corner of the hull.

    Attributes
    ----------
    spend : float
        Per person.
    low, high : float
        The tree is the best one for prices of a unit of spend (per person) in this range, in summed losses.
    solution : Solution
        For the problem within a budget of just this spend.
    """

    spend: float
    low: float
    high: float
    solution: Solution


def budget_hull(
    problem: Problem, constraint: Constraint, limits: SearchLimits | None = None, *, solve=solve_direct
) -> tuple[list[HullTree], bool]:
    """Trees from the cheapest to the one that is best without a budget.

    Parameters
    ----------
    problem : Problem
    constraint : Constraint
        Of a budget; its limit does not matter.
    limits : SearchLimits, optional
        For all of the work.
    solve : callable
        An exact solver, ``(Problem, SearchLimits) -> Solution``.

    Returns
    -------
    trees : list of HullTree
        Empty if not even one leaf is allowed.
    proved : bool
        Whether every search ended with a proof: then no corner is lacking.

    Notes
    -----
    Between two corners, a straight line bounds what any tree can reach, and lots between the two trees reach it.
    """
    limits = limits or SearchLimits()
    relaxation = Relaxation(problem, [with_limit(constraint, 0)], solve)
    met: list[Corner] = []
    dual = Dual(relaxation, limits, met.append)
    hull: list[Corner] = []
    try:
        free, _ = dual.solve([0.0])
        hull = lower_hull(dual, free, dual.least(0))
    except (Stopped, KeyboardInterrupt):
        if dual.status is Status.INFEASIBLE:
            return [], True
        if dual.status.proved:
            dual.status = Status.INTERRUPTED
        hull = strict_hull(met)
    return [_tree(relaxation, hull, k, dual.status) for k in range(len(hull))], dual.status.proved


def _tree(relaxation: Relaxation, hull: list[Corner], k: int, status: Status) -> HullTree:
    corner = hull[k]
    high = math.inf if k == 0 else price_between(relaxation, hull[k - 1], corner)
    low = 0.0 if k + 1 == len(hull) else price_between(relaxation, corner, hull[k + 1])
    spend = relaxation.constraints[0].in_units(corner.sums[0] - relaxation.limits[0])
    return HullTree(spend, low, high, solution_of(relaxation, corner, status))


def price_between(relaxation: Relaxation, a: Corner, b: Corner) -> float:
    """The price of a unit of the sum (per person) at which two trees are as good, in summed losses."""
    per_person = float(relaxation.constraints[0].per_person)
    return relaxation.fixed.to_float(a.loss - b.loss) / (per_person * (b.sums[0] - a.sums[0]))


def solution_of(relaxation: Relaxation, corner: Corner, status: Status) -> Solution:
    """A tree as the solution of the problem within its own sum; ``status`` of the search that found it."""
    problem, fixed = relaxation.problem, relaxation.fixed
    tree, objective = scored_tree(problem, corner.splits, corner.actions)
    bound = objective if status.proved else objective - fixed.to_float(corner.loss + relaxation.largest)
    if status is Status.OPTIMAL and not problem.data.exact:
        status = Status.OPTIMAL_GIVEN_GUESSES
    counters: dict[str, int | float] = {"merged_rows": relaxation.data.n_rows}
    return Solution(tree, objective, bound, status, 0.0, fixed.resolution, counters)
