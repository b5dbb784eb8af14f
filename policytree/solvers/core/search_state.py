"""What every search in fixed point has: a clock, an incumbent with a bound, reports, and the solution they end in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from policytree.problem.types import Problem, Progress, SearchLimits, Solution
from policytree.solvers.core.fixed_point import FixedPoint
from policytree.solvers.core.limits import Clock
from policytree.solvers.core.rows import Splits
from policytree.solvers.core.scoring import finish


class Incumbent:
    """The best tree found so far, and the lower bound of all trees.

    Attributes
    ----------
    value : int
        Cost of the tree, leaf penalties included, in fixed point.
    tree : list
        Its splits in preorder, as kernels state them (see ``core.rows.expand``), or as the search keeps them.
    bound : int
        No tree costs less. It never exceeds ``value``.
    """

    def __init__(self, value: int, tree: list[Any], bound: int):
        self.value, self.tree = value, tree
        self.bound = min(value, bound)

    @property
    def proved(self) -> bool:
        """Whether the bound meets the value."""
        return self.bound == self.value

    def offer(self, value: int, tree: list[Any]) -> bool:
        """Take a tree if it is better; among equals the first one stays. Returns whether it was taken."""
        if value >= self.value:
            return False
        self.value, self.tree = int(value), tree
        return True

    def raise_bound(self, bound: int) -> bool:
        """Take a bound if it is higher; a bound above the value proves the value. Returns whether it was raised."""
        before = self.bound
        self.bound = min(self.value, max(before, int(bound)))
        return self.bound > before


class SearchState:
    """The part that searches of additive objectives share.

    What was proved holds whenever a search stops: no tree costs less than the incumbent's bound, which never exceeds
    its value.

    Attributes
    ----------
    problem : Problem
    fixed : FixedPoint
        Turns integers into the unit of the losses.
    clock : Clock
        Its flag stops kernels; its limits bound time and memory.
    limits : SearchLimits
    incumbent : Incumbent
    """

    def __init__(self, problem: Problem, fixed: FixedPoint, clock: Clock, limits: SearchLimits, incumbent: Incumbent):
        self.problem, self.fixed, self.clock, self.limits, self.incumbent = problem, fixed, clock, limits, incumbent

    @cached_property
    def _base(self) -> float:
        """The loss of the first action, to which integers are relative."""
        return float(self.problem.losses[:, 0].sum())

    @property
    def done(self) -> bool:
        """Whether the incumbent is proved, or a limit has struck."""
        return self.clock.stopped or self.incumbent.proved

    def show(self, value: int, closed: float, work: int) -> None:
        """Call the user's callback with a value, the bound, the share that is closed, and subproblems so far."""
        if self.limits.progress is not None:
            base = self._base
            shown, bound = (base + self.fixed.to_float(each) for each in (value, self.incumbent.bound))
            self.limits.progress(Progress(self.clock.seconds(), shown, bound, closed, work))

    def solution(
        self, splits: Splits, counters: Mapping[str, int | float], leaves: Iterable[np.ndarray] | None = None
    ) -> Solution:
        """The incumbent, whose splits these are, with its gap, and the limit that struck unless it is proved.

        ``leaves``: the rows of every leaf, where these are known.
        """
        best, clock = self.incumbent, self.clock
        status = self.problem.proved_status if best.proved or not clock.stopped else clock.status
        gap = self.fixed.to_float(best.value - best.bound)
        return finish(self.problem, self.fixed, splits, gap, status, clock.seconds(), dict(counters), leaves)
