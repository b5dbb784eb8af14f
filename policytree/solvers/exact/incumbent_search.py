r"""Search for incumbents: from several first splits, trees are grown by three exact levels, and changed above these.

Trees of depth five and more are grown from the splits of shallower ones, which are not always good first splits. So
growing begins anew from the best splits on other columns; then splits below the first one are replaced by the next best
ones, wherever more than three levels follow; and two levels are chosen anew for the subtrees below them, all rows
of a subtree having the action of its leaves. Columns of many codes are grown at few cuts, near quantiles, first, and
the best of these trees at all cuts.

    the first splits          the next best split          two splits for four subtrees
          (f)                        f                            (f)
        /     \                    /   \                         /   \
       ?       ?                 (g)     h                      (g)    (h)
     three exact levels        three exact levels              /   \   /   \

All trees obey the problem's rules; none of this proves anything. It works beside the depth-first search, for a share of
its work, and is left and taken up after a root feature of one subtree of three levels.

Cost: about depth three of all rows for every level above the last two that is grown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from itertools import chain

import numpy as np

from policytree.problem.types import Problem, SizeGates
from policytree.solvers.core import work_units
from policytree.solvers.core.columns import cuts_near_quantiles
from policytree.solvers.core.compilation import is_long
from policytree.solvers.core.rows import (
    Node,
    Splits,
    costs_of_rows,
    depth_two,
    expand,
    occurring,
    rows_of,
    size_of,
    two_splits,
)
from policytree.solvers.core.scoring import right_children
from policytree.solvers.exact.depth_search import Steps, last_of
from policytree.solvers.exact.grow_incumbent import MOST_GROWN, Found, Grower
from policytree.solvers.exact.shared_state import STARTED, SharedState
from policytree.solvers.kernels.base.layout import FEASIBLE

LEAF = (-1, 0)
EXACT = 3  # levels that are solved exactly at a time
STARTS_AT_ONCE = 3  # of which the best one is changed before others are grown
SPARE_LEVELS = 1  # of a tree that is pruned to a limit of leaves
MOST_RANKS = 2  # splits that are tried in place of one below the first


def incumbent_search_applies(problem: Problem, gates: SizeGates) -> bool:
    """Whether trees are so deep that the depth-first search comes late to them, and leaves are free."""
    deep = problem.most_depth >= max(gates.least_started_depth, EXACT + 1)
    return deep and problem.leaf_penalty == 0


def at_few_cuts(node: Node, most: int) -> Node:
    """The same rows, whose codes are the last ones up to the next of at most so many cuts; the node if all are kept."""
    if not (node.bins - 1 > most).any():
        return node
    codes = node.codes.copy()
    for row, bins in zip(codes, node.bins, strict=True):
        last = np.append(cuts_near_quantiles(row, bins, most), bins - 1)
        row[:] = last[np.searchsorted(last, row)]
    return replace(node, rows=node.rows._replace(codes=codes))


class IncumbentSearch:
    """Better and better trees of one problem, for a share of the work of its proof.

    Parameters
    ----------
    shared : SharedState
    order, hints : ndarray
        Of every column: the value of the best tree that is known with this first split, and its cut.

    Attributes
    ----------
    best : tuple
        Value and splits of the last tree found that was better than the incumbent, or of the first incumbent.
    """

    def __init__(self, shared: SharedState, order: np.ndarray, hints: np.ndarray):
        self.shared, self.node, self.order, self.hints = shared, shared.node, order, hints
        self.depth = min(shared.useful_depth(), MOST_GROWN)
        if shared.leaves < 1 << self.depth:
            self.depth = min(self.depth, max(shared.leaves.bit_length() + SPARE_LEVELS, EXACT + 1))
        self.best: Found = shared.incumbent.value, shared.incumbent.tree
        self.grower = Grower(shared.clock.flag, EXACT)
        self._tried: set[int] = set()  # columns of first splits
        self._balance = -shared.gates.start_saving  # seconds of work that may be spent
        self._steps: Iterator[float] = self._search()

    @cached_property
    def coarse(self) -> Node:
        """The rows with few cuts of every column; all cuts where there are no more."""
        return at_few_cuts(self.node, self.shared.gates.most_start_cuts)

    @cached_property
    def quick(self) -> Grower:
        """Grows trees of these cuts."""
        return self.grower if self.coarse is self.node else Grower(self.shared.clock.flag, EXACT)

    def grow(self, splits: Splits) -> bool:
        """Grow one tree downwards, whatever that takes; returns whether it is the best one."""
        before = self.best[0]
        self._offer(last_of(self.grower.grow(self.node, splits, self.depth)))
        return self.best[0] < before

    def begin(self) -> bool:
        """Grow a few trees from nothing, at few cuts first; returns whether one is the best.

        After ``most_start_seconds`` of work they are left, to be taken up beside the search: on some of the rows it may
        prove a depth sooner than one tree is grown of all rows at all cuts.
        """
        before, left, first = self.best[0], self.shared.gates.most_start_seconds, self._first_trees()
        while left > 0 and (spent := next(first, None)) is not None:
            left -= spent
        self._steps = chain(first, self._steps)
        return self.best[0] < before

    def _first_trees(self) -> Steps[None]:
        for splits in self._from_nothing(), self._next_starts():
            grown: list[Found] = []
            for start in splits:
                grown.append((yield from self.quick.grow(self.coarse, start, self.depth)))
            yield from self._refine(min(grown, key=lambda found: found[0], default=self.best)[1])
            if self._ended:
                break

    def reorder(self, order: np.ndarray) -> None:
        """Take other values of the first splits, of deeper trees, for those that were not tried."""
        self.order = order

    def advance(self, seconds: float) -> bool:
        """Work for so many seconds of a usual machine more, up to a better tree; returns whether there is one.

        Seconds that are left then are for the next time.
        """
        before = self.best[0]
        self._balance += seconds
        while self._balance > 0 and self.best[0] == before and not self._ended:
            spent = next(self._steps, None)
            if spent is None:
                break
            self._balance -= spent
        return self.best[0] < before

    @property
    def _ended(self) -> bool:
        """Whether the search was stopped, or no tree is better than the best one."""
        shared = self.shared
        return shared.clock.stopped or min(self.best[0], shared.incumbent.value) <= shared.incumbent.bound

    def _offer(self, found: Found) -> None:
        column, _ = found[1][0]
        if column >= 0 and column not in self.shared.roots:  # the first split was chosen anew
            return
        if size_of(found[1])[1] > self.shared.leaves:
            found = pruned(self.node, found[1], self.shared.leaves)
        if found[0] < min(self.best[0], self.shared.incumbent.value, FEASIBLE):
            self.best = found
            self.shared.used[STARTED] += 1

    def _search(self) -> Steps[None]:
        """Grow trees from all first splits, a few at a time; the best of these is changed, and grown at all cuts."""
        incumbent, starts = expand(self.node, self.shared.incumbent.tree), self._from_nothing() or self._next_starts()
        grown: list[Found] = []
        while starts or grown:
            for splits in starts:
                grown.append((yield from self.quick.grow(self.coarse, splits, self.depth)))
                self._offer_coarse(grown[-1])
            grown.sort(key=lambda found: found[0])
            _, tree = grown.pop(0)
            for rank in range(MOST_RANKS if self._tried else 0):  # the first tree is needed soon
                _, tree = yield from self._change(self.coarse, tree, self.depth, rank)
            found = yield from self._improve(self.coarse, self.quick, tree)
            self._offer_coarse(found)
            yield from self._refine(found[1])
            if incumbent and self._tried:
                self._offer((yield from self._improve(self.node, self.grower, incumbent)))
                incumbent = []
            starts = self._next_starts()

    def _from_nothing(self) -> list[Splits]:
        """The start whose first split is that of the best tree of depth three, if it may be on any column."""
        return [[LEAF]] if self.shared.any_root else []

    def _next_starts(self) -> list[Splits]:
        """The best first splits on columns that were not tried."""
        starts: list[Splits] = []
        for f in np.argsort(self.order, kind="stable").tolist():
            if len(starts) < STARTS_AT_ONCE and f in self.shared.roots and f not in self._tried:
                self._tried.add(f)
                starts.append([(f, int(self.hints[f])), LEAF, LEAF])
        return starts

    def _offer_coarse(self, found: Found) -> None:
        if self.coarse is self.node:  # otherwise its splits are grown at all cuts
            self._offer(found)

    def _refine(self, splits: Splits) -> Steps[None]:
        """Grow a tree at all cuts below its upper splits, and improve it."""
        if self.coarse is not self.node:
            self._offer((yield from self._improve(self.node, self.grower, splits)))

    def _improve(self, node: Node, grower: Grower, splits: Splits) -> Steps[Found]:
        """Choose upper splits anew for the subtrees below, and these for them, until nothing is better."""
        best = yield from grower.grow(node, splits, self.depth)
        while True:
            splits = self._rerouted(node, best[1], self.depth)
            if splits == best[1]:
                return best
            found = yield from grower.grow(node, splits, self.depth)
            if found[0] >= best[0]:
                return best
            best = found

    def _change(self, part: Node, splits: Splits, room: int, rank: int) -> Steps[Found]:
        """Try the next best splits, of one rank, below the first split, wherever more than three levels follow."""
        column, cut = splits[0]
        if room <= EXACT or column < 0:
            return (yield from self.quick.grow(part, splits, room))
        (one, left), (other, right) = sides(part, splits)
        first = yield from self._change(left, one, room - 1, rank)
        second = yield from self._change(right, other, room - 1, rank)
        best = Grower.joined(part, column, cut, first, second)
        if room < self.depth:
            split = self._split_of_rank(part, rank)
            yield work_units.A_SUBTREE
            if split is not None:
                found = yield from self.quick.grow(part, [split, LEAF, LEAF], room)
                best = min(best, found, key=lambda each: each[0])
        return best

    def _split_of_rank(self, part: Node, rank: int) -> tuple[int, int] | None:
        """The best first split of two levels on the column of that rank."""
        packed, columns, codes = occurring(part)
        if rank >= len(columns):
            return None
        _, _, (order, hints) = depth_two(packed, 4, self.shared.clock.flag)
        f = np.argsort(order, kind="stable")[rank]
        return (int(columns[f]), int(codes[packed.rows.offset[f] + hints[f]])) if order[f] < FEASIBLE else None

    def _rerouted(self, part: Node, splits: Splits, room: int) -> Splits:
        """The tree with two levels chosen anew for the subtrees below, the uppermost where that is better."""
        column, _ = splits[0]
        if room < EXACT + 2 or column < 0 or part.shares_costs or not self._may_reroute():
            return splits
        lower, all_rows = [], np.arange(part.n_rows)
        (one, left), (other, right) = sides(part, splits)
        at = part.codes[column] <= splits[0][1]
        now = part.paid(column)
        for (tree, side), rows in zip(((one, left), (other, right)), (all_rows[at], all_rows[~at]), strict=True):
            if tree[0][0] < 0:
                lower.append((tree, rows))
                continue
            below = side.codes[tree[0][0]] <= tree[0][1]
            now += side.paid(tree[0][0])
            lower += [(sub, rows[mask]) for (sub, _), mask in zip(sides(side, tree), (below, ~below), strict=True)]
        costs = np.array([costs_of_rows(part, tree, rows)[1] for tree, rows in lower])
        now += sum(int(of_tree[rows].sum()) for of_tree, (_, rows) in zip(costs, lower, strict=True))
        planes = np.ascontiguousarray(np.vstack([costs[1:] - costs[0], part.charges, part.keys]))
        rules = part.rules._replace(n_losses=len(lower) - 1, minima=part.rules.minima[:0], beyond=-1)
        choice = replace(part, rows=part.rows._replace(planes=planes), rules=rules)
        value, column, cut = two_splits(choice, 4, self.shared.clock.flag)
        if int(costs[0].sum()) + value < now:
            upper = expand(choice, [(column, cut)])
            return with_subtrees(upper, choice, costs, [tree for tree, _ in lower])
        return [splits[0], *self._rerouted(left, one, room - 1), *self._rerouted(right, other, room - 1)]

    def _may_reroute(self) -> bool:
        """Whether the kernels of depth two that are loaded take several losses at a time."""
        rules, bins = self.node.rules, self.node.bins
        return not is_long(bins) or is_long(bins, rules.n_losses == 1 and not len(rules.minima))


def with_subtrees(upper: Splits, node: Node, costs: np.ndarray, subtrees: list[Splits]) -> Splits:
    """The upper splits with the best of some subtrees in place of every leaf; ``costs``: of the rows, by subtree."""
    entries = iter(upper)

    def walk(rows: np.ndarray) -> Splits:
        column, cut = next(entries)
        if column < 0:
            return subtrees[int(costs[:, rows].sum(axis=1).argmin())]
        left = node.codes[column, rows] <= cut
        return [(column, cut), *walk(rows[left]), *walk(rows[~left])]

    return walk(np.arange(node.n_rows))


def pruned(node: Node, splits: Splits, most: int) -> Found:
    """The best tree of at most so many leaves that is left of a tree if subtrees become leaves."""

    def walk(part: Node, splits: Splits) -> list[Found]:
        """The best ones of at most 1, 2, ... leaves."""
        best: list[Found] = [(part.leaf()[0] + part.penalty, [LEAF])]
        column, _ = splits[0]
        if column < 0:
            return best
        one, other = (walk(side, tree) for tree, side in sides(part, splits))
        paid = part.paid(column)
        for leaves in range(2, min(len(one) + len(other), most) + 1):
            shares = range(max(1, leaves - len(other)), min(len(one), leaves - 1) + 1)
            value, i = min((one[i - 1][0] + other[leaves - i - 1][0], i) for i in shares)
            found = value + paid, [splits[0], *one[i - 1][1], *other[leaves - i - 1][1]]
            best.append(found if found[0] < best[-1][0] else best[-1])
        return best

    return walk(node, splits)[-1]


def sides(part: Node, splits: Splits) -> list[tuple[Splits, Node]]:
    """Both subtrees of a tree's first split, and their rows at the prices that hold there."""
    column, cut = splits[0]
    end = right_children([each for each, _ in splits])[0]
    left, below = part.codes[column] <= cut, part.below(column)
    rows = np.flatnonzero(left), np.flatnonzero(~left)
    return [(tree, rows_of(below, of)) for tree, of in zip((splits[1:end], splits[end:]), rows, strict=True)]
