"""Fractional programming for the F-score: a short sequence of exact searches with a loss matrix (Dinkelbach)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from policytree.objectives.f_score import FScore
from policytree.objectives.objective import errors, totals
from policytree.problem.types import Problem, Progress, SearchLimits, Solution, Status
from policytree.solvers.core.columns import equal_rows, preorder_splits
from policytree.solvers.core.leaf_sums import exact_leaf_stats, join_siblings, leaf_stats_of, merged_rows
from policytree.solvers.core.limits import Clock, Stopwatch
from policytree.solvers.core.rows import Splits
from policytree.solvers.core.search_state import ScoreSearch
from policytree.solvers.exact.direct import solve_direct
from policytree.solvers.nonadditive.fractional_binary import PairRounds, pair_rounds_apply, whole_losses

EXACT = 2**52  # integer losses of all rows stay below it: then floats hold them as they are
ROUNDING = 1e-14  # of all losses: what float64 sums may be off
SHALLOW = 2  # a depth that takes next to no time


def solve_fractional(problem: Problem, limits: SearchLimits | None = None, *, objective: FScore) -> Solution:
    """Find the tree of largest F-score less the price of its leaves, leaf labels included, with a proof.

    Parameters
    ----------
    problem : Problem
        Two actions; its losses are the weights of rows that are labelled wrongly. ``leaf_penalty`` is in their unit.
    limits : SearchLimits, optional
    objective : FScore

    Returns
    -------
    Solution
        ``objective`` is ``(1 - F) * total weight + leaf_penalty * leaves``. ``guarantees["f_score"]`` is F.

    Notes
    -----
    Why it is optimal. With b = beta^2, P positives and D = (1 + b) P + FP - FN > 0, ``1 - F = (FP + b FN) / D``. A
    labelled tree with h leaves has ``1 - F + price * h < v`` if and only if, for c = v - price * h,

        (1 - c) FP + (b + c) FN  <  c (1 + b) P,

    and the left side is a sum over rows. Without a price one exact search for its least value therefore either finds a
    better labelled tree, whose ratio is the next v (Dinkelbach, Management Science 1967), or proves that there is none.
    As D > 0, the left side less the right one grows as c falls: what is refuted at one ratio stays refuted at the next,
    so that only those first splits are searched again that were not (fractional_binary.py, for two-valued columns).

    With a price, c depends on h. Trees of h >= a leaves are refuted by one search at c = v - price * a in which
    every leaf costs ``price * D_low``: the inequality differs from that of h itself by ``price * (h - a) * D``, and
    every better tree has D >= D_low. Trees of h <= a leaves are refuted in the same way with an upper bound of D.
    Where a search leaves a range of h open it is cut in two; for one h alone the search is limited to h leaves (with
    ``D_low = b P``, which no tree is below), and then trees with fewer leaves, which were refuted before, cannot keep
    it open.
    Ratios are compared as fractions of integers.
    """
    return _FractionalSearch(problem, objective, limits or SearchLimits()).solve()


@dataclass(frozen=True, slots=True)
class _Found:
    """A labelled tree: one minus F, the number of its leaves, its D."""

    value: Fraction  # with the price of the leaves
    leaves: int
    denominator: Fraction
    splits: Splits
    labels: list[int]


class _FractionalSearch(ScoreSearch):
    """The incumbent, the bound, and the searches that move them."""

    clock: Stopwatch
    best: _Found
    bound: Fraction

    def __init__(self, problem: Problem, objective: FScore, limits: SearchLimits):
        super().__init__(problem, limits)
        self.objective, self.clock = objective, Stopwatch(limits)
        self.merged, self.sums = merged_rows(problem)
        self.N, self.P, self.b = self.sums.N, self.sums.P, objective.squared
        self.stopped = False
        self.searches, self.resolution = 0, 0.0
        self.subproblems = self.finished = 0  # of the present search too, and of those before it
        self.floor = self._floor()

    def optimise(self) -> None:
        """Search until the bound meets the incumbent, or a limit strikes."""
        self.bound = self.floor + self.price
        self._take([(-1, 0)])
        if self.status is Status.INFEASIBLE:
            return
        if pair_rounds_apply(self.merged, self.limits.gates):
            self._work_on_pairs()
        elif self.problem.max_depth is None or self.problem.max_depth > SHALLOW:
            self._improve(SHALLOW)  # in next to no time; then few searches of all depths are needed
        while not (self.stopped or self.proved):
            if self.price > 0:
                self._improve(self.problem.max_depth)
            if self.stopped:
                break
            improved = False
            for first, last in self._ranges():
                improved = self._refute(first, last, self._most_leaves())
                if improved or self.stopped:
                    break
            self.proved = not (improved or self.stopped)

    def _work_on_pairs(self) -> None:
        """Search two-valued columns at once; where their numbers get too large, what was found is a good start."""
        clocks: list[Clock] = []

        def clock() -> Clock:
            clocks.append(Clock(self.clock.left(), memory_limit=self.limits.memory_limit))
            return clocks[-1]

        rounds = PairRounds(self.merged, self.sums, self.b, self.limits.gates)
        if not clock().fits_memory(rounds.bytes()):
            return
        self.proved = rounds.iterate(lambda: self.value, self._take, self._bound_all, clock)
        self.searches += rounds.rounds
        if clocks[-1].stopped:
            self.status, self.stopped = clocks[-1].status, True

    def _floor(self) -> Fraction:
        """One minus the F-score of a tree whose leaves are the rows that no split tells apart: no tree is below."""
        sums = np.column_stack([self.sums.negative, self.sums.positive])
        if self.merged is self.problem:  # else they are merged
            first, group = equal_rows(self.merged.data)
            each, sums = sums, np.zeros((len(first), 2), dtype=np.int64)
            np.add.at(sums, group, each)
        share = sums[:, 1] / np.maximum(sums.sum(axis=1), 1)
        sums = np.cumsum(sums[np.argsort(-share, kind="stable")], axis=0)
        b = float(self.b)
        loss = (sums[:, 0] + b * (self.P - sums[:, 1])) / (b * self.P + sums[:, 0] + sums[:, 1])
        return max(Fraction(0), Fraction(float(loss.min())) - Fraction(1, 2**40))

    def _most_leaves(self) -> int:
        """The largest number of leaves of a tree that is better than the best one."""
        most = self.problem.most_leaves
        if self.price > 0:
            most = min(most, int((self.value - self.floor) / self.price))
        return max(most, 1)

    def _ranges(self) -> list[tuple[int, int]]:
        """Numbers of leaves to be refuted, all together."""
        most = self._most_leaves()
        if self.price == 0:
            return [(1, most)]
        h = min(self.best.leaves, most)
        return [(1, h), (h, most)]

    def _take(self, splits: Splits) -> bool:
        """Label a tree as is best, and keep it if it is better than the best one; whether it is."""
        leaf_stats = leaf_stats_of(self.merged, self.sums, splits)
        joined, labels = join_siblings(splits, self.objective.labels(leaf_stats))
        if len(joined) < len(splits):
            splits, leaf_stats = joined, leaf_stats_of(self.merged, self.sums, joined)
        false_positives, false_negatives = errors(leaf_stats, labels)
        value = self.objective.loss_of(leaf_stats, labels) + self.price * len(leaf_stats)
        if value >= self.value:
            return False
        D = (1 + self.b) * totals(leaf_stats)[1] + false_positives - false_negatives
        self.best = _Found(value, len(leaf_stats), D, splits, labels)
        self._report()
        return True

    def _improve(self, depth: int | None) -> None:
        """Searches at the incumbent's own ratio and number of leaves, as long as they find better trees."""
        better = True
        while better and not self.stopped:
            best = self.best
            if depth == self.problem.max_depth:
                better = self._search(best.leaves, best.denominator, None)[1]
                continue
            c = best.value - self.price * best.leaves
            inner = self._inner(c, best.denominator, self.problem.max_leaf_nodes)[0]
            better = c > 0 and self._take(self._splits(self._solve(replace(inner, max_depth=depth))))

    def _search(self, leaves: int, D: Fraction, most: int | None) -> tuple[Fraction, bool]:
        """One exact search for better trees of about that many leaves.

        Returns how far below the threshold a tree may be (at most zero: no tree is), and whether a better one was
        found.
        """
        c = self.value - self.price * leaves
        if c <= 0:  # nothing loses less than nothing
            return Fraction(0), False
        cap = self.problem.max_leaf_nodes if most is None else min(most, self.problem.max_leaf_nodes or most)
        inner, scale = self._inner(c, D, cap)
        losses, solution = inner.losses, self._solve(inner)
        if solution.status is Status.INFEASIBLE:
            return Fraction(0), False
        whole = self.price == 0 and losses.sum() < EXACT and bool((losses == np.rint(losses)).all())
        tolerance = solution.resolution + (0.0 if whole else ROUNDING * float(losses.max(axis=1).sum()))
        threshold = c * (1 + self.b) * self.P + self.price * D * leaves
        short = threshold - Fraction(solution.lower_bound + tolerance) / scale
        self.resolution = max(self.resolution, float(Fraction(2 * tolerance) / scale / (self.b * self.P)))
        if cap == self.problem.max_leaf_nodes:
            self._bound_all(short, leaves, D)
        return short, self._take(self._splits(solution))

    def _inner(self, c: Fraction, D: Fraction, cap: int | None) -> tuple[Problem, Fraction]:
        """The problem of one search at ratio c, where a leaf costs its price times D; and its scale."""
        losses, scale = self._losses(c)
        penalty = float(self.price * D * scale)
        return replace(self.merged, losses=losses, leaf_penalty=penalty, max_leaf_nodes=cap), scale

    def _solve(self, inner: Problem) -> Solution:
        progress = None if self.limits.progress is None else self._beside
        solution = solve_direct(inner, self.clock.limits_left(progress=progress))
        self.searches += 1
        self.finished = self.subproblems
        if not solution.status.proved:
            self.status, self.stopped = solution.status, True
        return solution

    def _splits(self, solution: Solution) -> Splits:
        return preorder_splits(solution.tree, self.problem.data)

    def _losses(self, c: Fraction) -> tuple[np.ndarray, Fraction]:
        """The loss matrix at ratio c times a scale; whole numbers where floats hold them."""
        wrong, missed = whole_losses(c, self.b)
        scale = missed / (self.b + c)
        of_true, of_false = float(missed), float(wrong)
        if wrong * self.N + missed * self.P >= EXACT:
            scale, of_true, of_false = Fraction(1), float(self.b + c), float(max(1 - c, Fraction(0)))
        return np.column_stack([self.sums.positive * of_true, self.sums.negative * of_false]), scale

    def _refute(self, first: int, last: int, most: int) -> bool:
        """Prove that no tree of ``first`` to ``last`` leaves is better; whether a better one was found instead."""
        if first == last or last == most:
            leaves, D, cap = first, self._least_denominator(first, first == last), None if last == most else last
        elif first == 1:
            leaves, D, cap = last, self._largest_denominator(), None
        else:
            leaves, D, cap = first, self._least_denominator(first, False), last
        short, improved = self._search(leaves, D, cap)
        if improved or self.stopped or short <= 0:
            return improved
        if first == last:  # only trees of other sizes, which are refuted elsewhere, can be what keeps it open
            return False if self.price == 0 or cap is not None else self._refute_exactly(first)
        middle = (first + last + 1) // 2
        return self._refute(first, middle - 1, most) or (not self.stopped and self._refute(middle, last, most))

    def _refute_exactly(self, leaves: int) -> bool:
        return self._search(leaves, self.b * self.P, leaves)[1]

    def _bound_all(self, short: Fraction, leaves: int = 1, D: Fraction = Fraction(0)) -> None:
        """Raise the bound of every better tree, of each D and number of leaves, by a search among all trees."""
        low, high = self._least_denominator(1, False), self._largest_denominator()
        more = max(self._most_leaves() - leaves, 0) * max(D / low - 1, Fraction(0))
        fewer = (leaves - 1) * max(1 - D / high, Fraction(0))
        below = max(short, Fraction(0)) / low + self.price * max(more, fewer)
        self.bound = max(self.bound, min(self.value - below, self.value))
        self._report()

    def _least_denominator(self, leaves: int, exact: bool) -> Fraction:
        """Bound D below for better trees with at least that many leaves; for any tree, if ``exact``."""
        f = 1 - self.value + self.price * leaves
        if exact or f <= 0:
            return self.b * self.P
        return self.b * self.P * (1 + f / (1 + self.b - f)) if f < 1 + self.b else self.b * self.P

    def _largest_denominator(self) -> Fraction:
        """Bound D above for better trees."""
        all_positive = (1 + self.b) * self.P + self.N
        f = 1 - self.value + self.price
        return min(all_positive, (1 + self.b) * self.P / f) if f > 0 else all_positive

    def _beside(self, progress: Progress) -> None:
        """Show that one of the searches goes on; its bound is not one of the objective."""
        self.subproblems = self.finished + progress.subproblems
        self._report()

    def _report(self) -> None:
        self.report(self.subproblems)

    def solution(self) -> Solution:
        """The best tree and what was proved of it; its value is that of the weights as they were given, exactly."""
        best = self.best
        value = self.objective.loss_of(exact_leaf_stats(self.problem, best.splits), best.labels)
        self.best = replace(best, value=value + self.price * len(best.labels))
        rounding = self.resolution + self._moved_by_rounding()
        return self.made_solution(best.splits, best.labels, rounding, {"searches": self.searches}, score="f_score")

    def _moved_by_rounding(self) -> float:
        """Bound how far rounded weights move a tree's ratio.

        With A = FP + b FN and D = b P + TP + FP, the ratio A / D <= 1 moves by (dA - A / D dD) / (D + dD), where the
        numerator is at most the weight of negatives that rounding moved and (1 + b) times that of positives, and the
        denominator at least b P.
        """
        scaled = np.ldexp(self.problem.losses, self.sums.exponent)
        positive, negative = np.abs(scaled - np.rint(scaled)).sum(axis=0)
        b = float(self.b)
        return float((negative + (1 + b) * positive) / (b * self.P))
