"""The path of optimal trees as the leaf penalty falls from infinity."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from policytree.problem.types import Problem, SearchLimits, Solution, Status
from policytree.solvers.core.limits import Stopwatch
from policytree.solvers.core.rescore import equivalent_points_bound
from policytree.solvers.core.scoring import dearest_level
from policytree.solvers.exact.direct import solve_direct


@dataclass(frozen=True, slots=True)
class PathStep:
    """One tree of the path.

    Attributes
    ----------
    low, high : float
        The tree is optimal for leaf penalties from ``low`` to ``high``, in the unit of the summed losses.
    loss : float
        Its summed loss and test costs, without the penalty.
    solution : Solution
        At the penalty ``(low + high) / 2``, or ``2 low`` for the single leaf.
    """

    low: float
    high: float
    loss: float
    solution: Solution

    @property
    def penalty(self) -> float:
        """The penalty that ``solution`` is stated for."""
        return 2 * self.low if math.isinf(self.high) else (self.low + self.high) / 2


def solution_path(
    problem: Problem,
    limits: SearchLimits | None = None,
    *,
    min_penalty: float = 0.0,
    solve=solve_direct,
    floor: float | None = None,
) -> tuple[list[PathStep], bool]:
    """Every tree that is optimal over some range of leaf penalties.

    Parameters
    ----------
    problem : Problem
        Its own ``leaf_penalty`` does not matter.
    limits : SearchLimits, optional
        The time limit is for the whole path.
    min_penalty : float
        Where the path ends; 0 leads to the tree of least loss within the depth limit.
    solve : callable
        The solver, ``(Problem, SearchLimits) -> Solution``.
    floor : float, optional
        Lower bound of every tree's loss, for solvers whose objective is no sum of losses; else it is computed.

    Returns
    -------
    steps : list of PathStep
        From the single leaf to the largest tree; penalties fall. Empty if the problem is infeasible.
    proved : bool
        Whether every solve on the way ended with a proof: then every step is optimal on its range, none is lacking.

    Notes
    -----
    The objective of a tree is a line in the penalty, with its loss as intercept and its leaves as slope; the path is
    the lower envelope. Where two known lines cross, one solve tells whether a third runs below. The two lines narrow
    it: a third has a number of leaves strictly between the two (none if they are neighbours), so that it cannot be
    deeper than the larger number less two. (Parametric search as in Eisner and Severance, J. ACM 1976.) Test costs
    belong to a tree's loss; ``max_leaf_nodes`` ends the path at that many leaves.
    """
    envelope = _Envelope(problem, limits or SearchLimits(), min_penalty, solve)
    lines = envelope.lines()
    if not lines:
        return [], True
    if floor is None:
        floor = equivalent_points_bound(replace(problem, leaf_penalty=min_penalty)) - min_penalty
    steps = []
    for k, line in enumerate(lines):
        low = min_penalty if k + 1 == len(lines) else _crossing(lines[k + 1], line)
        high = math.inf if k == 0 else _crossing(line, lines[k - 1])
        step = PathStep(low, high, line.loss, line.solution)
        steps.append(replace(step, solution=_stated(step, envelope, floor)))
    return steps, envelope.proved


@dataclass(frozen=True, slots=True)
class _Line:
    leaves: int
    loss: float
    solution: Solution

    def at(self, penalty: float) -> float:
        return self.loss + penalty * self.leaves


def _crossing(large: _Line, small: _Line) -> float:
    """The penalty at which two trees cost the same."""
    return (small.loss - large.loss) / (large.leaves - small.leaves)


def _stated(step: PathStep, envelope: _Envelope, floor: float) -> Solution:
    """The solution as one of the problem at the step's own penalty."""
    leaves, penalty = step.solution.tree.n_leaves, step.penalty
    objective = step.loss + penalty * leaves
    bound, status = objective, Status.OPTIMAL_GIVEN_GUESSES if envelope.guessed else Status.OPTIMAL
    if not envelope.proved:
        bound = min(objective, floor + penalty)
        status = Status.HEURISTIC if step.solution.status.proved else step.solution.status
    return replace(step.solution, objective=objective, lower_bound=bound, status=status)


class _Envelope:
    """Lines found so far, and the solves that find them."""

    def __init__(self, problem: Problem, limits: SearchLimits, min_penalty: float, solve):
        self.problem, self.watch, self.min_penalty, self.solve = problem, Stopwatch(limits), min_penalty, solve
        self.proved, self.guessed, self.interrupted = True, False, False
        self.solves = 0
        # Losses are sums of floats: lines closer than this cannot be told apart.
        self.tolerance = 1e-13 * (float(np.abs(problem.losses).max(axis=1).sum()) + dearest_level(problem))

    def lines(self) -> list[_Line]:
        """Lines of the envelope, from the smallest tree to the largest."""
        largest = self._line(self.min_penalty, self.problem.max_depth)
        smallest = self._line(self.min_penalty, 0)
        if largest is None or smallest is None:
            return []
        if largest.leaves == 1 or largest.loss >= smallest.loss - self.tolerance:
            return [smallest]
        lines = [smallest, *self._between(largest, smallest)]
        if _crossing(largest, lines[-1]) > self.min_penalty + self.tolerance:
            lines.append(largest)
        return lines

    def _between(self, large: _Line, small: _Line) -> list[_Line]:
        """Lines that run below the crossing of two, from few leaves to many."""
        if large.leaves - small.leaves < 2:
            return []
        penalty = _crossing(large, small)
        if penalty < self.min_penalty:
            return []
        depth = large.leaves - 2
        if self.problem.max_depth is not None:
            depth = min(depth, self.problem.max_depth)
        line = self._line(penalty, depth)
        if line is None or line.at(penalty) >= small.at(penalty) - max(self.tolerance, line.solution.resolution):
            return []
        if not small.leaves < line.leaves < large.leaves:  # only where an earlier solve was cut short
            return []
        return [*self._between(line, small), line, *self._between(large, line)]

    def _line(self, penalty: float, depth: int | None) -> _Line | None:
        """Solve at one penalty; None if no tree is allowed, no time is left, or the user interrupted."""
        left = 0.0 if self.interrupted else self.watch.left()
        if left == 0.0 and self.solves >= 2:
            self.proved = False
            return None
        limits = replace(self.watch.limits, time_limit=left)
        self.solves += 1
        solution = self.solve(replace(self.problem, leaf_penalty=penalty, max_depth=depth), limits)
        if solution.status is Status.INFEASIBLE:
            return None
        self.interrupted |= solution.status is Status.INTERRUPTED
        self.proved &= solution.status.proved and solution.gap <= solution.resolution
        self.guessed |= solution.status is Status.OPTIMAL_GIVEN_GUESSES
        leaves = solution.tree.n_leaves
        return _Line(leaves, solution.objective - penalty * leaves, solution)
