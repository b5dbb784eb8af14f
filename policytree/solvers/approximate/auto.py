"""The solver that chooses among the others, and states its reason."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from policytree.problem.types import Problem, SearchLimits, Solution, Status
from policytree.solvers.approximate.sampling import solve_sampling
from policytree.solvers.exact.estimate import LONG, estimated_seconds
from policytree.solvers.guided.bounded import solve_bounded

FEWEST_ROWS = 1_000
DRAWS = 4
SAMPLING_SHARE = 0.25  # of the time


def solve_auto(
    problem: Problem,
    limits: SearchLimits | None = None,
    reference_losses: np.ndarray | None = None,
    *,
    random_state=0,
) -> Solution:
    """Choose a solver by an estimate of the direct solver's time.

    Direct alone, if that fits into the time limit (600 s where none is set): it takes real weights at the price of
    integers, so duplication is never chosen here. Otherwise trees of samples, of a size cut by the factor that is
    lacking, for a quarter of the time, and the direct solver for the rest: the better tree is returned, with the
    direct solver's certified bound. Where tests cost something, samples would keep all rows: direct alone, again.

    Parameters
    ----------
    problem : Problem
    limits : SearchLimits, optional
    reference_losses : ndarray of shape (n,), optional
        A reference's loss in every row: lower bounds are guessed from it.
    random_state : int or None
        Seed of the samples.

    Returns
    -------
    Solution
        ``guarantees["solver"]`` names whose tree it is, ``guarantees["reason"]`` says why in one sentence.

    Examples
    --------
    >>> import numpy as np
    >>> from policytree.problem.types import Problem
    >>> from policytree.solvers import solve_auto
    >>> from policytree.solvers.core.binning import bin_matrix
    >>> losses = np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    >>> problem = Problem(bin_matrix(np.array([[1.0], [2.0], [3.0]])), losses, max_depth=1)
    >>> solution = solve_auto(problem)
    >>> solution.objective, solution.status.name
    (0.0, 'OPTIMAL')
    """
    limits = limits or SearchLimits()
    budget = LONG if limits.time_limit is None else limits.time_limit
    estimate = estimated_seconds(problem)
    if estimate <= budget:
        reason = f"The direct solver should take about {estimate:.2g} s, within {budget:g} s: it proves the optimum."
        return _because(solve_bounded(problem, reference_losses, limits), "direct", reason)
    if problem.feature_costs is not None:
        reason = f"The direct solver could take {estimate:.2g} s, more than {budget:g} s, but samples would have as "
        reason += "many rows: everybody's tests cost something."
        direct = solve_bounded(problem, reference_losses, replace(limits, time_limit=budget))
        return _because(direct, "direct", reason)
    share = min(1.0, max(SAMPLING_SHARE * budget / estimate, FEWEST_ROWS / problem.data.n_rows))
    sampled = solve_sampling(
        problem,
        replace(limits, time_limit=SAMPLING_SHARE * budget),
        reference_losses,
        amplification=share,
        n_draws=DRAWS,
        random_state=random_state,
    )
    interrupted = sampled.status is Status.INTERRUPTED  # Ctrl-C ends everything, not just the first half
    left = 0.0 if interrupted else max(0.0, budget - sampled.seconds)
    direct = solve_bounded(problem, reference_losses, replace(limits, time_limit=left))
    if interrupted:
        direct = replace(direct, status=Status.INTERRUPTED)
    seconds = sampled.seconds + direct.seconds
    reason = f"The direct solver could take {estimate:.2g} s, more than {budget:g} s: samples of {share:.2g} times the "
    reason += "rows were tried first, and "
    if sampled.objective >= direct.objective:
        best = replace(direct, seconds=seconds)
        return _because(best, "direct", f"{reason}the direct solver's tree was no worse.")
    best = replace(
        sampled,
        lower_bound=min(sampled.objective, max(direct.lower_bound, sampled.lower_bound)),
        seconds=seconds,
        status=direct.status,
        resolution=direct.resolution,
    )
    return _because(best, "sampling", f"{reason}had a better tree than the direct solver.")


def _because(solution: Solution, solver: str, reason: str) -> Solution:
    return replace(solution, guarantees={**solution.guarantees, "solver": solver, "reason": reason})
