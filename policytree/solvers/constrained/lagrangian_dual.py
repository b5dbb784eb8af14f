"""The Lagrangian dual: multipliers with the largest bound, and the trees met on the way.

One constraint needs no search for the price: between a tree that spends too much and one that does not, the price at
which both are worth the same is either the best one, or leads to a third tree below their line (the two-point method
of parametric programming: Eisner and Severance, J. ACM 1976). Several constraints take cutting planes (Kelley 1960):
each tree found is a plane above the dual function, a small linear programme (HiGHS) gives the highest point under all
of them, and one more exact search either cuts it off or proves it. Two that limit one sum from both sides, as parity of
two groups does, have one price between them. The optimum equals the linear relaxation over all trees, that is lots
between trees.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction

import numpy as np

from policytree.problem.types import SearchLimits, Solution, Status
from policytree.solvers.constrained.lagrangian import Corner, Priced, Relaxation
from policytree.solvers.core.limits import Stopwatch

MOST_PLANES = 200  # of several constraints; the bound holds wherever it ends
CLOSE = 1e-11  # of the losses' size: planes and dual function agree
WIDER = 16.0  # as much further where the box is in the way
BOX = 64.0  # how far prices may go at first, times the mean loss for the mean amount


class Stopped(Exception):
    """A limit struck, or the user interrupted."""


class Dual:
    """Bounds and trees at prices that are found one after the other.

    Attributes
    ----------
    corners : list of Corner
        All trees met.
    bound : Fraction or None
        The largest bound so far of what trees within the limits lose.
    priced : Priced or None
        The prices that it was proved for.
    infeasible : bool
        Whether it is proved that no tree is within the limits.
    status : Status
        Why it ended, if it was stopped; how the exact searches ended otherwise.
    stopped_at : Solution or None
        Of the search that was stopped.
    """

    def __init__(self, relaxation: Relaxation, limits: SearchLimits, found: Callable[[Corner], None]):
        self.relaxation, self.watch, self.found = relaxation, Stopwatch(limits), found
        self.corners: list[Corner] = []
        self.bound: Fraction | None = None
        self.priced: Priced | None = None
        self.infeasible = False
        self.status = Status.OPTIMAL
        self.stopped_at: Solution | None = None
        self.solves = 0

    def solve(self, prices: Sequence[float], on_loss: int = 1) -> tuple[Corner, Fraction]:
        """The best tree at some prices, and the bound; raises Stopped once it is known."""
        relaxation = self.relaxation
        priced = relaxation.priced(prices, on_loss)
        corner, bound, solution = relaxation.best(priced, self.watch.limits_left(progress=None))
        self.solves += 1
        self.corners.append(corner)
        if on_loss and (self.bound is None or bound > self.bound):
            self.bound, self.priced = bound, priced
        self.found(corner)
        if solution.status is Status.OPTIMAL_GIVEN_GUESSES:
            self.status = solution.status
        if not solution.status.proved:
            self.status, self.stopped_at = solution.status, solution
            raise Stopped
        self.infeasible |= bound > (relaxation.largest if on_loss else 0)
        return corner, bound

    def least(self, m: int) -> Corner:
        """The tree with the least sum of a constraint."""
        return self.solve([float(k == m) for k in range(len(self.relaxation.constraints))], on_loss=0)[0]

    def maximise(self, free: Corner, least: Mapping[int, Corner]) -> None:
        """Find the best prices, from the tree that is best without constraints, and those with the least sums.

        ``least`` holds the constraints that may have a price: all, or the one that decides (:meth:`deciding`).
        """
        if len(least) == 1:
            ((m, within),) = least.items()
            self._one(m, free, within)
        else:
            self._several()

    def deciding(self, free: Corner) -> int | None:
        """The only constraint that has a price, where the best tree without constraints breaks one; None if unknown.

        Of two that limit the same sum from above and from below, one is broken. The dual function of the difference of
        their prices is concave, and rises where it is zero towards the price of that one; the other one's is zero.
        """
        relaxation = self.relaxation
        if len(relaxation.constraints) == 1:
            return 0
        if not relaxation.opposite or sum(relaxation.limits) < 0:
            return None
        return next(m for m in range(2) if free.sums[m] > relaxation.limits[m])

    def _one(self, m: int, over: Corner, within: Corner) -> None:
        limit = self.relaxation.limits[m]
        while True:
            corner = self.between(over, within, m)
            if corner is None:
                return
            if corner.sums[m] > limit:
                over = corner
            else:
                within = corner

    def between(self, over: Corner, within: Corner, m: int = 0) -> Corner | None:
        """A tree below the line of two, of which the first spends more and loses less; None if there is none.

        ``m``: the constraint that has a price.
        """
        more, less = over.sums[m] - within.sums[m], within.loss - over.loss
        if more <= 0 or less <= 0:
            return None
        corner, _ = self.solve([less / more if k == m else 0.0 for k in range(len(over.sums))])
        exact = Fraction(less, more)
        if corner.loss + exact * corner.sums[m] < over.loss + exact * over.sums[m]:
            return corner
        return None

    def _several(self) -> None:
        box, before = self._first_box(), -math.inf
        close = CLOSE * max(1.0, float(self.relaxation.largest))
        for _ in range(MOST_PLANES):
            highest = self._highest(box)
            if highest is None:
                return
            prices, height = highest
            known = {(c.loss, c.sums) for c in self.corners}
            corner, _ = self.solve(prices)
            if self.infeasible:
                return
            if (corner.loss, corner.sums) in known or height - float(self.bound or 0) <= close:
                at_end = np.array(prices) >= 0.999 * box
                if not at_end.any() or height <= before + close:  # or the dual function is flat out there
                    return
                box, before = np.where(at_end, WIDER * box, box), height

    def _first_box(self) -> np.ndarray:
        losses = float(np.abs(self.relaxation.losses).max(axis=1).sum())
        sizes = np.array([float(np.abs(part).max(axis=1).sum()) for part in self.relaxation.amounts])
        return BOX * max(losses, 1.0) / np.maximum(sizes, 1.0)

    def _highest(self, box: np.ndarray) -> tuple[list[float], float] | None:
        """The highest point under all planes, with prices inside a box; None where it cannot be computed."""
        from scipy.optimize import linprog

        limits = self.relaxation.limits
        loss = np.array([float(c.loss) for c in self.corners])
        excess = np.array([[float(s - b) for s, b in zip(c.sums, limits, strict=True)] for c in self.corners])
        size = max(float(np.abs(loss).max()), 1.0)
        # height <= loss + prices @ excess, in units of size and box
        rows = np.hstack([np.ones((len(loss), 1)), -excess * (box / size)])
        aim = np.zeros(1 + len(box))
        aim[0] = -1.0
        bounds = [(None, None), *[(0.0, 1.0)] * len(box)]
        found = linprog(aim, A_ub=rows, b_ub=loss / size, bounds=bounds, method="highs")
        if found.status != 0:  # numbers too far apart: what was proved so far holds
            return None
        return list(found.x[1:] * box), float(found.x[0]) * size


def lower_hull(dual: Dual, over: Corner, within: Corner) -> list[Corner]:
    """Trees on the lower hull of (sum, loss) between two of its ends, from little spent to much, both ends included."""
    stack, hull = [(over, within)], [within]
    while stack:
        right, left = stack.pop()
        corner = dual.between(right, left)
        if corner is None:
            hull.append(right)
        else:
            stack += [(right, corner), (corner, left)]
    return strict_hull(hull)


def not_as_good(trees: Iterable[Corner]) -> list[Corner]:
    """Trees that no other is as good as in loss and sum, one of every pair, from the least sum to the least loss."""
    kept: list[Corner] = []
    for corner in sorted(trees, key=lambda c: (c.sums[0], c.loss)):
        if not kept or corner.loss < kept[-1].loss:
            kept.append(corner)
    return kept


def strict_hull(trees: Iterable[Corner]) -> list[Corner]:
    """The corners of the lower hull of trees, from little spent to much: without trees on a line between two others."""
    kept: list[Corner] = []
    for corner in not_as_good(trees):
        while len(kept) > 1 and _slope(kept[-2], kept[-1]) >= _slope(kept[-1], corner):
            kept.pop()
        kept.append(corner)
    return kept


def _slope(a: Corner, b: Corner) -> Fraction:
    return Fraction(b.loss - a.loss, b.sums[0] - a.sums[0])
