"""Constraint generation: where errors are few, a proof from some of the rows holds for all rows.

Whatever a tree loses on some rows more than the best actions would, it loses on all rows too, and more. So if no tree
on a few hundred well-chosen rows costs as little as the incumbent does on all, the incumbent is best. They are chosen
as in constraint generation: the search runs on some rows; a tree that it finds there is looked at on all rows, where it
is a better incumbent, or goes wrong on rows that are added. Refuted trees stay refuted, since rows only add cost.
Where the best tree has few errors, the search ends with a small part of the rows, and the others are never needed.

Cost: that of the search on the rows chosen (it grows with their number, squared for shared codes), and for every tree
found a pass over all rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from policytree.problem.types import Problem, SizeGates
from policytree.solvers.core.rows import Node, Splits, costs_of_rows, expand, occurring, rows_of
from policytree.solvers.core.shared_costs import shares_test_costs
from policytree.solvers.core.side_bounds import sums_up_to
from policytree.solvers.exact.depth_search import RootFeature, Stack
from policytree.solvers.exact.grow_incumbent import MOST_GROWN, grow_incumbent
from policytree.solvers.exact.shared_state import SharedState
from policytree.solvers.kernels.base.layout import UNLIMITED
from policytree.solvers.kernels.depth_three.sweep_tables import make_tables


def constraint_generation_applies(node: Node, depth: int, value: int, gates: SizeGates) -> bool:
    """Whether depth four and more is to be proved from some of the rows, given the incumbent's value."""
    if depth < 4 or node.rules.beyond >= 0 or len(node.rules.minima):  # a tree may be allowed on all rows only
        return False
    if node.shares_costs:
        return False
    return _rows_are_many(node.n_rows, len(node.bins), gates) and errors_are_few(node, value, gates)


def generation_may_apply(problem: Problem, gates: SizeGates) -> bool:
    """Whether it may apply, as far as can be told before rows are merged and a good tree is known."""
    deep = problem.max_depth is None or problem.max_depth >= 4
    counted = problem.min_leaf > 1 or problem.min_leaf_per_arm > 0
    many = _rows_are_many(problem.data.n_rows, len(problem.data.n_bins), gates)
    return deep and not counted and many and not shares_test_costs(problem)


def _rows_are_many(n: int, p: int, gates: SizeGates) -> bool:
    """Whether some of the rows are quicker than all of them."""
    return n >= gates.least_generation_rows and 2 * p <= gates.most_generation_columns * n


def errors_are_few(node: Node, value: int, gates: SizeGates) -> bool:
    """Whether a tree of this value loses little, beside what the worst actions would."""
    least = node.least_losses
    wrong = float((node.losses.max(axis=0, initial=0) - least).sum())
    return value - int(least.sum()) <= gates.most_generation_errors * wrong


def least_by_code(node: Node) -> list[np.ndarray]:
    """Add up the costs of the rows' best actions up to every code, for every column."""
    low = node.least_losses
    return [sums_up_to(low, codes, bins) for codes, bins in zip(node.codes, node.bins, strict=True)]


@dataclass
class _Part:
    """Some rows as a node of its own, and what its columns and codes are among all rows."""

    node: Node
    columns: dict[int, int]  # of the part, by column of the problem
    codes: list[np.ndarray]  # of the problem, by column of the part
    least: list[np.ndarray]  # cumulated least losses, by column of the part
    names: np.ndarray  # columns of the problem

    @classmethod
    def of(cls, node: Node, inside: np.ndarray) -> _Part:
        """The rows that a mask has."""
        part, names, codes = occurring(rows_of(node, np.flatnonzero(inside)))
        offset = part.rows.offset
        own = [codes[offset[f] : offset[f + 1]] for f in range(len(names))]
        return cls(part, {int(c): f for f, c in enumerate(names)}, own, least_by_code(part), names)

    def among_all(self, tree: Splits) -> Splits:
        """A tree of the part as one of all rows."""
        splits = expand(self.node, tree)
        return [(-1, 0) if f < 0 else (int(self.names[f]), int(self.codes[f][t])) for f, t in splits]


class Search(Protocol):
    """The search over all rows, whose incumbent and bounds the one over some of them uses and improves."""

    shared: SharedState
    depth: int
    useful: int
    features: dict[int, RootFeature]  # of the root, in the order in which they are tried

    def report(self) -> None:
        """Report progress."""

    def take_turn(self, node: Node, counters: np.ndarray) -> None:
        """Let others work beside this search, which has done so much on the rows of a node."""


class ConstraintGeneration:
    """The search on some rows, beginning with the incumbent and the bounds of a search over all.

    It leaves a better incumbent there, and bounds that hold for all rows.
    """

    def __init__(self, search: Search):
        self.search, self.node, self.gates = search, search.shared.node, search.shared.gates
        self.losses, self.low = self.node.all_losses, self.node.least_losses
        self.floor, self.least = int(self.low.sum()), least_by_code(self.node)
        # Bounds of both sides of every cut beyond the best actions, on some rows: they only grow as rows are added.
        self.left = {f: np.zeros(self.node.bins[f] - 1, np.int64) for f in search.features}
        self.right = {f: np.zeros(self.node.bins[f] - 1, np.int64) for f in search.features}
        self.random = np.random.default_rng(0)
        self.inside = self._first_rows()
        self.part: _Part | None = None
        self.stack: Stack | None = None

    def generate(self) -> None:
        """Search until every root cut is refuted, too many rows are needed, or a limit strikes."""
        self._grow_incumbent()
        features = self.search.features
        for first in (True, False):
            for f in features:
                while not features[f].solved and self._may_go_on():
                    if not self._advance(f, first) and first:
                        break

    def _may_go_on(self) -> bool:
        most = self.gates.most_generation_rows * self.node.n_rows
        return not self.search.shared.clock.stopped and self.inside.sum() <= most

    def _first_rows(self) -> np.ndarray:
        """Rows of each best action in equal numbers, those that the incumbent gets wrong, and both ends of columns."""
        node = self.node
        inside = self.judge(expand(node, self.search.shared.incumbent.tree), np.arange(node.n_rows))[1] > 0
        actions = self.losses.argmin(axis=0)
        kinds, counts = np.unique(actions, return_counts=True)
        for kind in kinds[np.argsort(counts, kind="stable")]:
            rows = np.flatnonzero(actions == kind)
            inside[self._some(rows, self.gates.generation_first_rows // len(kinds))] = True
        for f in range(len(node.bins)):  # every cut leaves rows on both sides
            inside[[node.codes[f].argmin(), node.codes[f].argmax()]] = True
        return inside

    def _some(self, rows: np.ndarray, most: int) -> np.ndarray:
        return rows if len(rows) <= most else self.random.choice(rows, most, replace=False)

    def judge(self, tree: Splits, known: np.ndarray) -> tuple[int, np.ndarray]:
        """Judge a tree on all rows.

        Returns its value, and what every row costs beyond its best action where leaves have the action that is best for
        the ``known`` rows.
        """
        value, costs = costs_of_rows(self.node, tree, known)
        return value, costs - self.low

    def _look_at(self, tree: Splits) -> bool:
        """Take a tree that is good on the rows inside as incumbent, or add rows; returns whether any was added."""
        value, beyond = self.judge(tree, np.flatnonzero(self.inside))
        self.search.shared.incumbent.offer(value, tree)
        wrong = np.flatnonzero((beyond > 0) & ~self.inside)
        self.inside[self._some(wrong, self.gates.generation_added_rows)] = True
        return len(wrong) > 0

    def _grow_incumbent(self) -> None:
        """Add rows as long as quick trees are better on those inside than the incumbent is on all."""
        search = self.search
        if search.shared.leaves != UNLIMITED or len(search.features) < len(self.node.bins):
            return
        while self._may_go_on():
            part = _Part.of(self.node, self.inside)
            value, tree = grow_incumbent(part.node, [(-1, 0)], min(search.depth, MOST_GROWN), search.shared.clock.flag)
            if value >= self._cutoff(part) or not self._look_at(part.among_all(tree)):
                return

    def _cutoff(self, part: _Part) -> int:
        """Return the cost on some rows that a tree must stay below to be possibly better than the incumbent on all."""
        return self.search.shared.incumbent.value - self.floor + int(part.node.least_losses.sum())

    def _prepared(self) -> tuple[_Part, Stack]:
        """The rows inside, and a stack to search them."""
        if self.part is None or self.stack is None:
            self.part = _Part.of(self.node, self.inside)
            one = rows_of(self.part.node, np.arange(1))
            tables = make_tables(one.rows, one.rules, one.special)
            self.stack = Stack(self.part.node, self.search.useful, self.search.shared.leaves, tables, gates=self.gates)
        return self.part, self.stack

    def _advance(self, f: int, first: bool) -> bool:
        """Search a root feature on the rows inside (``first``: a few cuts only); returns whether rows were added."""
        search, (part, stack) = self.search, self._prepared()
        own, state = part.columns[f], search.features[f]
        classes = part.codes[own][:-1]  # the first of the problem's cuts that divide the part's rows alike
        low = part.least[own]
        some = RootFeature(
            np.maximum.reduceat(self.left[f], classes) + low[:-1],
            np.maximum.reduceat(self.right[f], classes) + low[-1] - low[:-1],
            int(np.searchsorted(classes, state.hint, side="right")) - 1,
            part.node.paid(own),
        )
        state.hint = -1
        _, tree = stack.advance(own, search.depth, self._cutoff(part), some, first, search.shared.clock.flag)
        # With a limit of leaves, bounds of both sides hold together only, and only below the last tree found.
        if tree is None or search.shared.leaves == UNLIMITED:
            sizes = np.diff(np.append(classes, self.node.bins[f] - 1))
            self.left[f] = np.maximum(self.left[f], np.repeat(some.left - low[:-1], sizes))
            self.right[f] = np.maximum(self.right[f], np.repeat(some.right - low[-1] + low[:-1], sizes))
        added = tree is not None and self._look_at(part.among_all(tree))
        if added:
            self.part = None
        counters = stack.take_counters()
        search.shared.work += counters
        search.take_turn(part.node, counters)
        self._raise_bounds(f)
        search.report()
        return added

    def _raise_bounds(self, f: int) -> None:
        """State the bounds of a root feature's cuts for all rows."""
        state, least = self.search.features[f], self.least[f]
        state.left = np.maximum(state.left, self.left[f] + least[:-1])
        state.right = np.maximum(state.right, self.right[f] + least[-1] - least[:-1])
        for each in self.search.features.values():
            each.solved = each.lower_bound() >= self.search.shared.incumbent.value
