"""Shared state of searches: a clock, an incumbent with a bound, reports, and the solution they end in."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from policytree.problem.types import Problem, Progress, SearchLimits, Solution, Status
from policytree.solvers.core.fixed_point import FixedPoint
from policytree.solvers.core.leaf_sums import exact_price
from policytree.solvers.core.limits import Clock, Stopwatch
from policytree.solvers.core.rows import Splits
from policytree.solvers.core.scoring import finish, scored_tree


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

    Proofs hold whenever a search stops: no tree costs less than the incumbent's bound, which never exceeds its value.

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


class ScoreSearch:
    """Shared state of searches whose objective is a score of classification, and no sum over rows.

    Each consists of several searches, which stop by themselves on Ctrl-C. Values are one minus the score, with the
    price of the leaves, ``price`` each, as a share of the total weight.

    Attributes
    ----------
    best : Any
        The best tree, with a ``value``; None before there is one.
    bound : Fraction or float
        No tree has a smaller value.
    proved : bool
        Whether the best tree is proved to be that.
    status : Status
    """

    clock: Clock | Stopwatch
    best: Any
    bound: Fraction | float

    def __init__(self, problem: Problem, limits: SearchLimits):
        self.problem, self.limits, self.price = problem, limits, exact_price(problem)
        self.best, self.bound, self.proved = None, 0.0, False
        self.status, self._total = problem.proved_status, float(problem.losses.sum())

    def optimise(self) -> None:
        """Search to the end, or until a limit strikes."""
        raise NotImplementedError

    def solution(self) -> Solution:
        """The best tree and what was proved of it."""
        raise NotImplementedError

    def solve(self) -> Solution:
        """Search; Ctrl-C between two of its parts ends it with what is known, if there is a tree."""
        try:
            self.optimise()
        except KeyboardInterrupt:
            if self.best is None:
                raise
            if not self.proved:
                self.status = Status.INTERRUPTED
        return self.solution()

    @property
    def value(self) -> Any:
        """Of the best tree; infinite before there is one."""
        return math.inf if self.best is None else self.best.value

    def report(self, work: int, known: float = 0.0) -> None:
        """Call the user's callback with the value, the bound (``known``, if it is higher), and subproblems so far."""
        if self.limits.progress is not None:
            value = self.value  # read once: another thread may find a better tree meanwhile
            bound = min(max(self.bound, known), value)
            value, bound = self._total * float(value), self._total * float(bound)
            self.limits.progress(Progress(self.clock.seconds(), value, bound, 0.0, work))

    def made_solution(
        self, splits: Splits, labels: list[int], rounding: float, counters: Mapping[str, int | float],
        compiled: float = 0.0, *, score: str = "score", merge: bool = True,
    ) -> Solution:  # fmt: skip
        """The best tree, whose splits and labels these are, as a solution; values are up to ``rounding``.

        ``score``: what the guarantees call it.
        """
        tree, _ = scored_tree(self.problem, splits, labels, merge=merge)
        value, bound = self.value, self.value if self.proved else min(self.bound, self.value)
        return Solution(
            tree, self._total * float(value), self._total * float(bound), self.status, self.clock.seconds(),
            self._total * rounding, dict(counters), {score: float(1 - value + self.price * len(labels))}, compiled,
        )  # fmt: skip
