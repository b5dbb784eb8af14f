"""The Rashomon set: all trees of depth three or less within a slack of the optimum (near-ties)."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from policytree.data.features import CATEGORICAL
from policytree.exceptions import InputError
from policytree.problem.types import BinnedData, Problem, SearchLimits, Status
from policytree.solvers.core.columns import preorder_splits, without_gaps
from policytree.solvers.core.compilation import is_special, load_kernels
from policytree.solvers.core.exact_sums import exact_sum
from policytree.solvers.core.fixed_point import FixedPoint, to_fixed_point
from policytree.solvers.core.limits import Clock
from policytree.solvers.core.rows import Node, Splits, new_control, prepare, refuse_memory, rows_of, two_splits
from policytree.solvers.core.shared_costs import refuse_shared_costs
from policytree.solvers.core.side_bounds import SideBounds, row_values
from policytree.solvers.exact.direct import solve_direct
from policytree.solvers.exact.engine_table import Case, kernels_of, rashomon_kernels
from policytree.solvers.kernels.base.layout import FEASIBLE
from policytree.solvers.kernels.enumeration.side_splits import (
    CATEGORY,
    IDLE,
    MISSING,
    MISSING_LEFT,
    OR_MISSING,
    PLAIN,
    Questions,
)
from policytree.solvers.kernels.enumeration.tied_trees import (
    CARRIED,
    COUNTED,
    CUTOFF,
    KEPT,
    NOTHING,
    Goal,
    Ties,
    tied_trees,
)
from policytree.solvers.rashomon.value_lists import TreesByValue, Values, equal_leaves, shares_of_leaves

DEEPEST = 3
SLOTS = 2 ** (DEEPEST + 1) - 1  # nodes of a full tree
LEFT, RIGHT = [1, 3, 4, 7, 8, 9, 10], [2, 5, 6, 11, 12, 13, 14]  # where the sides of a first split stand
MOST_VALUES = 50_000_000  # of one side's trees that are kept to be counted

Allowed = Callable[[Fraction, Fraction], Fraction]  # (best objective, objective of one leaf) -> slack


@dataclass(frozen=True, slots=True)
class TiedTrees:
    """Trees found within the limit, best first.

    Attributes
    ----------
    best, limit : Fraction
        The least objective, and the largest that was allowed: sums of losses, penalties and costs of splits.
    n_trees : int
        Trees within the limit. If the search was stopped, at least so many.
    objectives : ndarray of shape (m,), float64
        Of the best trees, ascending.
    trees : ndarray of shape (m, 15), int32
        These trees, a node's children at 2 i + 1 and 2 i + 2. A split is its place (:meth:`split` has column and cut),
        a leaf is -1 - action.
    offset : ndarray of shape (columns + 1,)
        Where each column's places begin.
    status : Status
        OPTIMAL if all trees were counted.
    seconds : float
    """

    best: Fraction
    limit: Fraction
    n_trees: int
    objectives: np.ndarray
    trees: np.ndarray
    offset: np.ndarray
    status: Status
    seconds: float

    @property
    def complete(self) -> bool:
        """Whether all trees were counted."""
        return self.status is Status.OPTIMAL

    def split(self, place: int) -> tuple[int, int]:
        """Column and cut of a place."""
        column = int(np.searchsorted(self.offset, place, side="right")) - 1
        return column, int(place - self.offset[column])

    def columns(self) -> np.ndarray:
        """The column that each node of each tree splits on, -1 for none; shape (m, 15)."""
        return np.where(self.trees < 0, -1, np.searchsorted(self.offset, self.trees, side="right") - 1)

    def n_leaves(self) -> np.ndarray:
        """Leaves of each tree, shape (m,)."""
        return ((self.trees < 0) & (self.trees > NOTHING)).sum(axis=1)

    def preorder(self, i: int) -> Splits:
        """Tree ``i`` as (column, cut) in preorder; leaves are (-1, action)."""
        out: Splits = []
        todo = [0]
        while todo:
            at = todo.pop()
            entry = int(self.trees[i, at])
            if entry < 0:
                out.append((-1, -1 - entry))
            else:
                out.append(self.split(entry))
                todo += [2 * at + 2, 2 * at + 1]
        return out


def enumerate_rashomon(
    problem: Problem,
    allowed: Allowed,
    most: int,
    limits: SearchLimits | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> TiedTrees:
    """Count all trees that cost at most so much more than the best one, and write down the best of them.

    Two trees differ if they ask different questions or give different actions in their leaves. Two questions about one
    feature are one question at a node if they divide its rows alike. No leaf is empty, and two leaves of one split
    have different actions (otherwise the question would be idle).

    Parameters
    ----------
    problem : Problem
        Of depth three or less.
    allowed : callable
        Takes the best objective and that of the best single leaf, exact fractions; returns the slack.
    most : int
        How many trees to write down, at least one: the best ones; of equal ones the first found.
    limits : SearchLimits, optional
        For everything: the best tree and the trees near it. ``progress`` and ``n_jobs`` are for the former.
    progress : callable, optional
        Called as ``progress(done, total)`` with numbers of first cuts; only at depth three.

    Returns
    -------
    TiedTrees

    Raises
    ------
    InputError
        If the best tree was not proved within the limits, or no tree is allowed.
    KeyboardInterrupt
        On Ctrl-C before the best tree is proved.

    Notes
    -----
    Values are int64 fixed point (:mod:`policytree.solvers.core.fixed_point`), so that no tolerance decides. Depth two
    is counted in solvers/kernels/enumeration/tied_trees.py. At depth three, both sides of a first split have a best
    tree of depth two; where the two exceed the limit, the split is done with. Otherwise each side's trees are listed
    within what the other side's best one leaves, and pairs are counted by their sorted values.
    """
    refuse_shared_costs(problem, "near_ties")
    limits = limits or SearchLimits()
    gates, problem = limits.gates, without_gaps(problem)
    case = Case.of(problem, gates)
    load_kernels(kernels_of(case) + rashomon_kernels(case))
    clock = Clock(limits.time_limit, new_control(), limits.memory_limit)
    best = solve_direct(problem, limits)
    if best.status is Status.INFEASIBLE:
        raise InputError("min_samples_leaf or min_samples_per_treatment asks for more rows than there are; lower it.")
    if not best.status.proved:
        if best.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        raise InputError(f"The search for the best tree ended by {best.status.value}, unproved; raise that limit.")
    refuse_memory(problem, limits)
    affording = affordable(problem, best.objective, allowed)
    search = _RashomonSet(affording, allowed, most, clock, progress, gates.first_tied_values)
    search.start(preorder_splits(best.tree, problem.data))
    clock.watch(search.enumerate)
    values, _, _ = search.kept()
    if len(values) and values[0] < search.best:  # the solver rounds otherwise where prices are huge
        search.restart(int(values[0]))
        clock.watch(search.enumerate)
    return search.result()


class FirstCut(NamedTuple):
    """A first cut, and the best trees of depth two on its sides."""

    least: int
    column: int
    at: int
    left: int
    right: int


class _RashomonSet:
    """Counts and keeps; one limit at a time."""

    def __init__(self, problem: Problem, allowed: Allowed, most: int, clock: Clock, progress, first_room: int):
        self.problem, self.allowed, self.most, self.clock, self.progress = problem, allowed, most, clock, progress
        self.first_room = first_room
        self.leaves = min(2**DEEPEST, problem.max_leaf_nodes or 2**DEEPEST)
        self.fixed: FixedPoint = to_fixed_point(
            problem.losses, problem.leaf_penalty, 2**DEEPEST, problem.feature_costs, problem.weights, all_trees=True
        )
        self.base = exact_sum(problem.losses[:, 0])
        self.unit = Fraction(2) ** -self.fixed.exponent
        self.node = prepare(problem, self.fixed, merge=True, special=is_special(problem))
        # No path asks more than there are rows to tell apart.
        self.depth = min(problem.max_depth if problem.max_depth is not None else DEEPEST, self.node.n_rows - 1)
        self.questions = questions_of(problem.data, self.node.rows.offset)
        self.row_values = row_values(self.node, splits=2)
        self.best = self.limit = 0
        self.restart(0)

    def start(self, splits: Splits) -> None:
        """Set the limit from the best tree, given by its splits, and keep it in case that nothing else is found."""
        node, entries = self.node, iter(splits)
        tree = np.full((1, SLOTS), NOTHING, np.int32)

        def walk(rows: np.ndarray, at: int) -> int:
            column, cut = next(entries)
            part = rows_of(node, rows)
            if column < 0:
                tree[0, at] = -1 - int(np.argmin(np.append(0, part.losses.sum(axis=1))))
                return part.leaf()[0] + node.penalty
            tree[0, at] = node.rows.offset[column] + cut
            left = node.codes[column, rows] <= cut
            return part.paid(column) + walk(rows[left], 2 * at + 1) + walk(rows[~left], 2 * at + 2)

        value = walk(np.arange(node.n_rows), 0)
        sizes = np.array([np.count_nonzero((tree < 0) & (tree > NOTHING))], np.int32)
        self.known = TreesByValue(np.array([value], np.int64), sizes, tree)
        self.restart(value)

    def restart(self, best: int) -> None:
        """Forget what was found, and set the limit from the best tree's value."""
        leaf = self.node.leaf()[0] + self.node.penalty
        slack = self.allowed(self.exact(best), self.exact(leaf))
        self.largest = self.exact(best) + slack
        self.best, self.limit = best, min(best + math.floor(slack / self.unit), FEASIBLE - 1)
        self.n_trees, self.cutoff = 0, self.limit
        self.found: list[TreesByValue] = []

    def exact(self, value: int) -> Fraction:
        """An objective from its value in fixed point."""
        return self.base + value * self.unit

    # --- what is kept ---

    def take(self, new: TreesByValue) -> None:
        """Keep more trees; beyond the stated number the worst go, and the budget falls."""
        self.found.append(new)
        if sum(len(each.values) for each in self.found) >= 2 * self.most:
            self.kept()

    def kept(self) -> TreesByValue:
        """The best trees so far, ascending."""
        found = [TreesByValue.empty(SLOTS), *self.found]
        every = TreesByValue(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
        order = np.argsort(every.values, kind="stable")[: self.most]
        every = TreesByValue(*(part[order] for part in every))
        self.found = [every]
        if len(order) == self.most:
            self.cutoff = min(self.cutoff, int(every.values[-1]) - 1)
        return every

    def result(self) -> TiedTrees:
        """Return the trees found so far; the best tree is known in any case."""
        values, _, trees = self.kept()
        if self.clock.stopped and self.best <= self.limit and not (len(values) and values[0] == self.best):
            self.n_trees += 1
            self.found.append(self.known)
            values, _, trees = self.kept()
        objectives = np.array([float(self.exact(v)) for v in values.tolist()])
        status = self.clock.status if self.clock.stopped else Status.OPTIMAL
        return TiedTrees(
            self.exact(self.best), self.largest, self.n_trees, objectives, trees, self.node.rows.offset,
            status, self.clock.seconds(),
        )  # fmt: skip

    # --- the search ---

    def enumerate(self) -> None:
        """Count and keep until the end, or until a limit strikes."""
        K, places = self.problem.losses.shape[1], int(self.node.rows.offset[-1])
        if not self.clock.fits_memory(8 * places * (4 * K * K + 5 * len(self.node.rows.planes)) + 80 * self.most):
            self.clock.stop(Status.MEMORY_LIMIT)
            return
        first = self.problem.root_columns
        shallow = min(self.depth, 2) if self.depth < DEEPEST else 0  # deeper trees: leaves alone
        count, trees = self._list(self.node, shallow, self.leaves, self.limit, self.cutoff, first)
        self.n_trees += count
        wide = np.full((len(trees.values), SLOTS), NOTHING, np.int32)
        wide[:, :7] = trees.trees
        self.take(trees._replace(trees=wide))
        if self.depth == DEEPEST and self.leaves > 1:
            self._all_first_cuts(np.flatnonzero(first))

    def _all_first_cuts(self, columns: np.ndarray) -> None:
        """Count and keep the trees of depth three by their first cut, those of the best tree's first column first."""
        total, done = int((self.node.bins[columns] - 1).sum()), 0
        place = int(self.known.trees[0, 0])
        best = int(np.searchsorted(self.node.rows.offset, place, side="right")) - 1
        for f in sorted(columns.tolist(), key=lambda f: f != best):
            cuts = sorted(self._open_cuts(f), key=lambda cut: cut.least)
            done += int(self.node.bins[f]) - 1 - len(cuts)
            for cut in cuts:
                if self.clock.stopped:
                    return
                self._deepen(cut)
                done += 1
                if self.progress is not None:
                    self.progress(done, total)

    def _list(self, node: Node, depth: int, leaves: int, limit: int, cutoff: int, first=None):
        """Count a node's trees within the limit, and list the best of them within the budget, ascending."""
        questions = self.questions if first is None else self.questions._replace(first=first)
        ties = _room(2 * self.most, 2 * self.most, min(cutoff, limit))
        goal = Goal(limit, depth, min(leaves, 4), self.most, 0, len(node.bins))
        tied_trees(node.rows, node.rules, questions, goal, ties, self.clock.flag)
        order = np.argsort(ties.values[: ties.state[KEPT]], kind="stable")[: self.most]
        return _count(ties), TreesByValue(ties.values[order], ties.sizes[order], ties.trees[order])

    def _values(self, node: Node, leaves: int, limit: int) -> Values | None:
        """Values of all trees of depth two within the limit; None if they are too many to be kept."""
        found: list[Values] = []
        for f in range(len(node.bins)):
            room = self.first_room
            while True:
                ties = _room(room, 0, limit)
                goal = Goal(limit, 2, leaves, 0, f, f + 1)
                tied_trees(node.rows, node.rules, self.questions, goal, ties, self.clock.flag)
                count = _count(ties)
                if count + sum(len(v.values) for v in found) > MOST_VALUES or not self.clock.fits_memory(36 * count):
                    self.clock.stop(Status.MEMORY_LIMIT)
                if self.clock.stopped:
                    return None
                if count <= room:
                    break
                room = count
            found.append(Values.of(ties.values[:count], ties.sizes[:count]))
        return Values.join(found)

    def _open_cuts(self, f: int) -> list[FirstCut]:
        """First cuts of a column with trees within the limit, and the best tree of depth two on either side."""
        if self.questions.kind[f] == IDLE:
            return []
        room, out = self.limit - self.node.paid(f), []
        bounds = SideBounds(self.node, f, self.row_values)
        for t in bounds.solve_cuts(lambda: room, self._least_of_two):
            if self.clock.stopped:  # the last values prove nothing
                break
            if bounds.at(t) <= room:
                out.append(FirstCut(bounds.at(t), f, t, int(bounds.left[t]), int(bounds.right[t])))
        return out

    def _least_of_two(self, rows: np.ndarray) -> int:
        """The best tree of depth two of some rows; meaningless if the search was stopped."""
        return two_splits(rows_of(self.node, rows), 4, self.clock.flag)[0]

    def _deepen(self, cut: FirstCut) -> None:
        """Count and keep the trees with one first cut."""
        node = self.node
        goes_left = node.codes[cut.column] <= cut.at
        left, right = (rows_of(node, np.flatnonzero(rows)) for rows in (goes_left, ~goes_left))
        rest = self.limit - node.paid(cut.column)
        spare = self.limit - self.cutoff
        n_trees, new = 0, []
        for exactly, others in shares_of_leaves(self.leaves):
            one, other = rest - cut.right, rest - cut.left  # what each side may cost
            n_left, a = self._list(left, 2, exactly or 4, one, one - spare)
            n_right, b = self._list(right, 2, others, other, other - spare)
            x = Values.of(*a[:2]) if n_left == len(a.values) else self._values(left, exactly or 4, one)
            y = Values.of(*b[:2]) if n_right == len(b.values) else self._values(right, others, other)
            if x is None or y is None or self.clock.stopped:
                return
            if exactly:
                a, x = a.of_size(exactly), x.of_size(exactly)
            n_trees += x.pairs(y, rest) - (exactly in (0, 1)) * equal_leaves(left, right, rest)
            new.append(self._pairs(a, b, cut, rest))
        self.n_trees += n_trees
        for each in new:
            self.take(each)

    def _pairs(self, a: TreesByValue, b: TreesByValue, cut: FirstCut, rest: int) -> TreesByValue:
        """Trees of one first cut within the budget, from the ascending lists of its sides' trees."""
        cutoff = rest - (self.limit - self.cutoff)
        reach = np.searchsorted(b.values, cutoff - a.values, side="right")
        # Pair (i, j) is no better than (i + 1) (j + 1) - 1 others, but pairs of leaves with one action are no trees.
        most = self.most + len(self.node.losses) + 1
        reach = np.minimum(reach, most // np.arange(1, len(reach) + 1))
        i = np.repeat(np.arange(len(reach)), reach)
        j = np.arange(len(i)) - np.repeat(np.cumsum(reach) - reach, reach)
        same = (a.sizes[i] == 1) & (b.sizes[j] == 1) & (a.trees[i, 0] == b.trees[j, 0])
        i, j = i[~same], j[~same]
        values = a.values[i] + b.values[j] + self.limit - rest
        order = np.argsort(values, kind="stable")[: self.most]
        i, j = i[order], j[order]
        trees = np.full((len(i), SLOTS), NOTHING, np.int32)
        trees[:, 0] = self.node.rows.offset[cut.column] + cut.at
        trees[:, LEFT], trees[:, RIGHT] = a.trees[i], b.trees[j]
        return TreesByValue(values[order], a.sizes[i] + b.sizes[j], trees)


def _room(values: int, trees: int, cutoff: int) -> Ties:
    """Room for values, and for as many trees or none."""
    state = np.zeros(4, np.int64)
    state[CUTOFF] = cutoff
    return Ties(np.empty(values, np.int64), np.empty(values, np.int32), np.empty((trees, 7), np.int32), state)


def _count(ties: Ties) -> int:
    """How many trees were counted."""
    return int(ties.state[COUNTED]) + (int(ties.state[CARRIED]) << 62)


def affordable(problem: Problem, best: float, allowed: Callable[[Fraction, Fraction], Fraction]) -> Problem:
    """The problem with prices of questions that no near-tie can pay cut down to just that.

    Prices that are meant to forbid a question would leave no digits to the losses. ``best`` is the least objective;
    ``allowed`` as in :func:`enumerate_rashomon`.
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
    """Describe the questions of the columns; any may come first."""
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
