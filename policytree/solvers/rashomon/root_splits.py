"""First cuts of trees near the optimum, and lower bounds of both sides of each."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from policytree.data.features import CATEGORICAL
from policytree.problem.types import BinnedData, Problem
from policytree.solvers.core.rows import Node
from policytree.solvers.kernels.enumeration.side_splits import (
    CATEGORY,
    IDLE,
    MISSING,
    MISSING_LEFT,
    OR_MISSING,
    PLAIN,
    Questions,
)


class FirstCut(NamedTuple):
    """A first cut, and the best trees of depth two on its sides."""

    least: int
    column: int
    at: int
    left: int
    right: int


class SideBounds:
    """What the sides of one column's cuts cost at least, from cuts that were solved; prices of two splits at most."""

    def __init__(self, node: Node, f: int):
        planes, bins = node.losses, int(node.bins[f])
        best, worst = np.minimum(planes.min(axis=0, initial=0), 0), np.maximum(planes.max(axis=0, initial=0), 0)
        if node.priced:
            dearest = len(planes) + len(node.rules.minima) + node.rules.prices - 1
            worst = worst + 2 * node.rows.planes[dearest]
        self.counted = len(node.rules.minima) > 0
        self.best, self.worst = (_summed(node.codes[f], part, bins) for part in (best, worst))
        self.left = self.best + node.penalty
        self.right = self.best[-1] - self.best + node.penalty

    def learn_left(self, t: int, value: int) -> None:
        """The left side of cut ``t`` costs so much."""
        gained = np.where(np.arange(len(self.left)) >= t, self.best - self.best[t], self.worst - self.worst[t])
        self._learn(self.left, t, value, gained)

    def learn_right(self, t: int, value: int) -> None:
        """The right side of cut ``t`` costs so much."""
        gained = np.where(np.arange(len(self.right)) <= t, self.best[t] - self.best, self.worst[t] - self.worst)
        self._learn(self.right, t, value, gained)

    def _learn(self, bound: np.ndarray, t: int, value: int, gained: np.ndarray) -> None:
        """``gained``: what each cut's side costs at least more than cut t's."""
        if not self.counted:
            np.maximum(bound, value + gained, out=bound)
        bound[t] = max(bound[t], value)


def _summed(codes: np.ndarray, values: np.ndarray, bins: int) -> np.ndarray:
    """Sums of values over the rows up to each code."""
    out = np.zeros(bins, np.int64)
    np.add.at(out, codes, values)
    return out.cumsum()


def middle_first(cuts: np.ndarray) -> list[int]:
    """Cuts in an order in which each halves what is left."""
    out, todo = [], [(0, len(cuts))]
    for first, end in todo:
        if first < end:
            middle = (first + end) // 2
            out.append(int(cuts[middle]))
            todo += [(first, middle), (middle + 1, end)]
    return out


def affordable(problem: Problem, best: float, allowed: Callable[[Fraction, Fraction], Fraction]) -> Problem:
    """The problem with prices of questions that no near-tie can pay cut down to just that.

    Prices that are meant to forbid a question would leave no digits to the losses. ``best`` is the least objective;
    ``allowed`` as in :func:`policytree.solvers.rashomon.enumerate.enumerate_rashomon`.
    """
    losses, costs = problem.losses, problem.feature_costs
    if costs is None or len(losses) < 2:
        return problem
    least, span = float(losses.min(axis=1).sum()), float(np.ptp(losses, axis=1).sum())
    leaf = float(losses.sum(axis=0).min()) + problem.leaf_penalty
    slack = min(allowed(Fraction(best), Fraction(leaf)), Fraction(sys.float_info.max) / 16)
    weights = np.ones(len(losses)) if problem.weights is None else problem.weights
    two = float(np.partition(weights, 1)[:2].sum())  # the weight that asks a question at least
    room = max(best - least, 0.0) + max(float(slack), 0.0) + span
    if two <= 0 or room <= 0:
        return problem
    return replace(problem, feature_costs=np.minimum(costs, 2.0 * room / two))


def questions_of(data: BinnedData, offset: np.ndarray) -> Questions:
    """What the columns ask; any may come first."""
    columns, p = data.columns, len(data.columns)
    kind, begin, end = np.zeros((3, p), np.int64)
    missing, category = np.full((2, p), -1, np.int64)
    for feature in {column.feature for column in columns}:
        own = [j for j, column in enumerate(columns) if column.feature == feature]
        if data.features[feature].kind != CATEGORICAL:
            for j in own[1:]:  # the first one sends missing values right
                kind[j], missing[j] = MISSING_LEFT, offset[own[0]] + data.n_bins[own[0]] - 2
            continue
        alone = [j for j in own if columns[j].thresholds[0] < 0]
        each = {float(columns[j].thresholds[0]): j for j in own if not columns[j].missing_left}
        for j in own:
            begin[j], end[j] = min(each.values()), max(each.values()) + 1
            missing[j] = offset[alone[0]] if alone else -1
            kind[j] = OR_MISSING if columns[j].missing_left else CATEGORY
            category[j] = offset[each.get(float(columns[j].thresholds[0]), j)]
        for j in alone:
            kind[j] = MISSING if len(each) > 1 else IDLE
        if len(own) == 1:  # of two categories without missing values
            kind[own] = PLAIN
    return Questions(kind, missing, category, begin, end, np.ones(p, bool))
