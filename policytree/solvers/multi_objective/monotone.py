"""Losses that are monotone in both kinds of errors: all non-dominated trees, then the best of them."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace

import numpy as np

from policytree.exceptions import InputError
from policytree.objectives.monotone import ErrorObjective
from policytree.objectives.objective import errors
from policytree.problem.types import Problem, SearchLimits, Solution, Status
from policytree.solvers.core.columns import preorder_splits
from policytree.solvers.core.compilation import load_kernels, pareto_kernels
from policytree.solvers.core.leaf_sums import leaf_stats_of, masses
from policytree.solvers.core.limits import Clock
from policytree.solvers.core.rows import Splits, counted_rows
from policytree.solvers.core.search_state import ScoreSearch
from policytree.solvers.exact.direct import solve_direct
from policytree.solvers.kernels.enumeration.layout import Points
from policytree.solvers.multi_objective.pareto_front import ANY, MOST_DEPTH, ParetoSearch, criteria_of, read_tree

ANGLES, STEPS = 7, 256  # weights of the two errors that are tried; steps along what they leave reachable
SHARE_OF_TIME = 0.03  # of a time limit, that one of them may take
LEAST_FALL = 1e-9  # of a value, by which it may fall through rounding


def solve_monotone(problem: Problem, limits: SearchLimits | None = None, *, objective: ErrorObjective) -> Solution:
    """Find the tree of least loss, price of the leaves included, with a proof.

    Parameters
    ----------
    problem : Problem
        Two actions; its losses are the weights of rows that are labelled wrongly. ``max_depth`` is 3 at most.
    limits : SearchLimits, optional
    objective : ErrorObjective

    Returns
    -------
    Solution
        ``objective`` is ``loss * total weight + leaf_penalty * leaves``.

    Raises
    ------
    InputError
        If trees may be deeper, or the function gives no finite number, or falls where errors rise.

    Notes
    -----
    Of two labelled trees, the one with no more false positives, no more false negatives and no more leaves is no worse,
    whatever the function. All others are dropped as they come up; of those that are left the function chooses.

    First, the least sums of both errors under a few weights are found. They bound the errors that any tree makes, and
    so the loss: the bound of a search that is stopped, and a limit of the number of leaves where these have a price.
    """
    if problem.max_depth is None or problem.max_depth > MOST_DEPTH:
        raise InputError(
            f"objective={objective.name!r} searches all trees that may be best for any function, which is for "
            f"max_depth up to {MOST_DEPTH}; got {problem.max_depth}."
        )
    return _Monotone(problem, objective, limits or SearchLimits()).solve()


@dataclass(frozen=True, slots=True)
class _Best:
    value: float
    splits: Splits
    labels: list[int]


class _Monotone(ScoreSearch):
    """The best tree among those that came up so far."""

    clock: Clock
    best: _Best
    bound: float

    def __init__(self, problem: Problem, objective: ErrorObjective, limits: SearchLimits):
        super().__init__(problem, limits)
        self.objective = objective
        self.sums = masses(problem)
        sums = np.zeros((3, problem.data.n_rows, 2), np.int64)  # false positives, false negatives, leaves
        sums[0, :, 1], sums[1, :, 0] = self.sums.negative, self.sums.positive
        counts, minima = counted_rows(problem)
        self.criteria = criteria_of(
            problem.data, sums, leaf=[0, 0, 0, 1], minima=minima,
            counts=np.stack(counts) if counts else None,
        )  # fmt: skip
        depth = int(problem.max_depth or 0)
        self.compiled = load_kernels(pareto_kernels(self.criteria.bins, not counts, depth))
        self.clock = Clock(limits.time_limit, np.zeros(1, np.int64), limits.memory_limit)
        self.known: dict[tuple[int, int], float] = {}
        self._raise_bound(self._loss(0, 0))
        self.points = 0

    def _loss(self, false_positives: int, false_negatives: int) -> float:
        """Return the function's value, evaluated once for every pair."""
        pair = (false_positives, false_negatives)
        if pair not in self.known:
            self.known[pair] = self._value(*pair)
        return self.known[pair]

    def _value(self, false_positives: float, false_negatives: float) -> float:
        errors_and_totals = (false_positives, false_negatives, self.sums.P, self.sums.N)
        return self.objective.of_errors(*map(self._scaled, errors_and_totals))

    def _scaled(self, mass: float) -> float:
        """In the unit of the weights."""
        return float(np.ldexp(float(mass), -self.sums.exponent))

    def optimise(self) -> None:
        """Search all trees, or until a limit strikes."""
        if self.problem.min_leaf > self.problem.data.n_rows:
            self.status, self.best = Status.INFEASIBLE, _Best(float("inf"), [(-1, 0)], [0])
            return
        for label in (0, 1):
            self._take((self.sums.N * label, self.sums.P * (1 - label), 1), lambda label=label: ([(-1, 0)], [label]))
        self._bound()
        if not self.clock.stopped and self.bound < self.value:
            self.clock.watch(self._search, lambda: self.report(self.points))
        self._refuse_falls()
        self.proved = not self.clock.stopped
        if self.clock.stopped:
            self.status = self.clock.status

    def _bound(self) -> None:
        """Raise the lower bound by the least weighted sums of a tree's errors; collect good trees."""
        if self.problem.max_depth == 0 or self.problem.max_leaf_nodes == 1:
            return
        limit = self.limits.time_limit
        limits = replace(self.limits, time_limit=None if limit is None else SHARE_OF_TIME * limit, progress=None)
        lines = []  # a, b and c: of every tree, a FP + b FN >= c
        for angle in (np.arange(ANGLES) + 0.5) * np.pi / (2 * ANGLES):
            a, b = np.cos(angle) / self.sums.N, np.sin(angle) / self.sums.P
            losses = np.column_stack([b * self.sums.positive, a * self.sums.negative])
            solution = solve_direct(replace(self.problem, losses=losses, leaf_penalty=0.0), limits)
            self.clock.start += solution.compile_seconds
            self.compiled += solution.compile_seconds
            lines.append((a, b, solution.lower_bound - solution.resolution - 1e-12))
            self._take_labelled(solution)
            if solution.status in (Status.INTERRUPTED, Status.MEMORY_LIMIT):
                self.clock.stop(solution.status)
            if limit is not None and self.clock.seconds() >= limit:
                self.clock.stop(Status.TIME_LIMIT)
            if self.clock.stopped:
                break
        a, b, c = np.array(lines).T
        x = np.linspace(0.0, self.sums.N, STEPS + 1)
        missed = np.clip(((c - a * x[1:, None]) / b).max(axis=1), 0.0, self.sums.P)  # at the right end of every step
        steps = zip(x[:-1].tolist(), missed.tolist(), strict=True)
        self._raise_bound(max(self.least, min(self._value(*step) for step in steps)))
        self.report(self.points)

    def _raise_bound(self, least: float) -> None:
        """Take what no tree loses less than, without the price of its leaves."""
        self.least, self.bound = least, least + float(self.price)

    def _take_labelled(self, solution: Solution) -> None:
        """Keep the tree of an additive search if it is better."""
        splits = preorder_splits(solution.tree, self.problem.data)
        labels = solution.tree.action[solution.tree.is_leaf].tolist()
        self._take(
            (*errors(leaf_stats_of(self.problem, self.sums, splits), labels), len(labels)), lambda: (splits, labels)
        )

    def _refuse_falls(self) -> None:
        """Refuse a function that fell, on the errors that it was asked about, where both of them rose or stayed."""
        missed: list[int] = []  # rising, with the largest values so far
        worst: list[tuple[float, int]] = []  # values, and false positives
        for (false_positives, fn), value in sorted(self.known.items()):
            k = bisect_right(missed, fn)
            if k and worst[k - 1][0] > value + LEAST_FALL * (1 + abs(value)):
                one, two = (worst[k - 1][1], missed[k - 1]), (false_positives, fn)
                words = " to ".join(f"({self._scaled(x):g}, {self._scaled(y):g})" for x, y in (one, two))
                raise InputError(
                    f"The objective's function falls from {worst[k - 1][0]:g} to {value:g} where (false positives, "
                    f"false negatives) go from {words}; it must not fall where one of them rises."
                )
            if k and worst[k - 1][0] >= value:
                continue
            end = k
            while end < len(missed) and worst[end][0] <= value:
                end += 1
            missed[k:end], worst[k:end] = [fn], [(value, false_positives)]

    def _search(self) -> None:
        roots = np.flatnonzero(self.problem.root_columns).tolist()
        search = ParetoSearch(self.criteria, self.clock.flag, roots)
        caps = np.full(4, ANY, np.int64)
        caps[3] = self._most_leaves()
        for points in search.parts(int(self.problem.max_depth or 0), caps):
            self._look_at(points)
            caps[3] = self._most_leaves()
            if self.bound >= self.value:
                break

    def _most_leaves(self) -> int:
        """The largest number of leaves of a better tree."""
        most = self.problem.most_leaves
        if self.price > 0:
            most = min(most, int((self.value - self.least) / float(self.price) + 1e-9))
        return max(most, 1)

    def _look_at(self, points: Points) -> None:
        """Keep the best of these trees; progress is told by the thread that waits, so that reports never overlap."""
        self.points += len(points.values)
        for i, (_, false_positives, missed, leaves) in enumerate(points.values.tolist()):
            self._take((false_positives, missed + self.sums.P, leaves), lambda i=i: read_tree(points.trees[i]))

    def _take(self, criteria: tuple[int, int, int], tree) -> None:
        """Keep a tree if it is better than the best one."""
        false_positives, missed, leaves = criteria
        if self.problem.max_leaf_nodes is not None and leaves > self.problem.max_leaf_nodes:
            return
        value = self._loss(false_positives, missed) + float(self.price) * leaves
        if value < self.value:
            self.best = _Best(value, *tree())

    def solution(self) -> Solution:
        """The best tree and what was proved of it."""
        best, counters = self.best, {"points": self.points, "functions": len(self.known)}
        return self.made_solution(best.splits, best.labels, self.sums.rounding, counters, self.compiled)
