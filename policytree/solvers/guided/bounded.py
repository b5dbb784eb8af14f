"""A problem whose rows lose no less than a reference does: how lower bounds are guessed, and what that costs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from policytree.guesses.lower_bounds import bounded_losses
from policytree.problem.types import GATES, Problem, SearchLimits, Solution, Status
from policytree.solvers.core.columns import equal_rows, group_sums
from policytree.solvers.core.limits import now
from policytree.solvers.core.rescore import equivalent_points_bound
from policytree.solvers.exact.direct import solve_direct
from policytree.solvers.guided.polish import polish

OVERRUN = 0.02  # share of a time limit


def solve_bounded(
    problem: Problem, reference: np.ndarray | None, limits: SearchLimits | None = None, *, solve=solve_direct
) -> Solution:
    """Solve a problem with lower bounds guessed from a reference's losses.

    Parameters
    ----------
    problem : Problem
    reference : ndarray of shape (n,) or None
        The reference's loss in every row; None guesses nothing.
    limits : SearchLimits, optional
    solve : callable
        The solver, ``(Problem, SearchLimits) -> Solution``. It sees one row per group of rows that no split tells
        apart, so that it must not count rows.

    Returns
    -------
    Solution
        ``objective`` and ``lower_bound`` are of the problem's own losses. ``guarantees["theorem_1"]``: no tree's
        objective is smaller by more (:func:`policytree.solvers.guided.solve.solve_with_guesses`); where it is zero, the
        status is the solver's.
    """
    if reference is None:
        return solve(problem, limits)
    bounded, slack = _bound(problem, reference)
    found = solve(replace(problem, losses=bounded), limits)
    if found.status is Status.INFEASIBLE:  # found at once, whatever the losses: the answer is to speak of the problem's
        return solve(problem, limits)
    start = now()
    gates = GATES if limits is None else limits.gates
    tree, objective = polish(problem, found.tree, time_limit=_time_to_polish(found, limits), gates=gates)
    bound = max(found.lower_bound - slack, equivalent_points_bound(problem))
    resolution = found.resolution + 1e-14 * float(np.abs(problem.losses).max(axis=1).sum())
    bound = min(objective, bound - resolution)
    lost = objective - bound
    unproved = found.status is Status.OPTIMAL and lost > 2 * resolution
    return replace(
        found,
        tree=tree,
        objective=objective,
        lower_bound=bound,
        status=Status.OPTIMAL_GIVEN_GUESSES if unproved else found.status,
        seconds=found.seconds + now() - start,
        resolution=2 * resolution,
        guarantees={**found.guarantees, "theorem_1": float(lost)},
    )


def _time_to_polish(found: Solution, limits: SearchLimits | None) -> float | None:
    """Return the time that the search left, or the little by which a limit may be overrun; none after Ctrl-C."""
    if found.status is Status.INTERRUPTED:
        return 0.0
    if limits is None or limits.time_limit is None:
        return None
    return max(limits.time_limit - found.seconds, OVERRUN * limits.time_limit)


def _bound(problem: Problem, reference: np.ndarray) -> tuple[np.ndarray, float]:
    """Bounded losses of the problem, and the most by which they can raise the objective of any tree."""
    first, group = equal_rows(problem.data)
    sums = group_sums(problem.losses, group, len(first))
    bounded = bounded_losses(sums, np.bincount(group, weights=reference, minlength=len(first)))
    losses = np.zeros_like(problem.losses, dtype=np.float64)
    losses[first] = bounded  # where in its group a loss stands makes no difference
    return losses, float((bounded - sums).max(axis=1).sum())
