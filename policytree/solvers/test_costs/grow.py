"""Greedy trees of low expected test cost: regularized impurity reduction, and the rules it is compared with.

After Zhang and Gionis, "Regularized impurity reduction: accurate decision trees with complexity guarantees", Data
Mining and Knowledge Discovery 2022, Algorithm 1. Rows that no test tells apart are one object: its probability is their
share of the weight, its class that of most of their weight (the first on ties).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from policytree.data.features import CATEGORICAL, Feature
from policytree.problem.types import BinnedData, SplitColumn
from policytree.solvers.core.compilation import LOW_COST, load_kernels
from policytree.solvers.core.merge import groups_of_equal_rows
from policytree.solvers.kernels.test_costs.layout import (
    BALANCE,
    IMPURE_PAIRS,
    IMPURITY,
    IMPURITY_PER_COST,
    MULTIWAY,
    REGULARIZED,
    NodeRows,
    Objects,
    Scoring,
    Tests,
)
from policytree.solvers.kernels.test_costs.scores import best_test, class_totals, divide

#: Scores of tests, by the name that users give.
SPLIT_RULES = {
    "regularized": REGULARIZED,
    "impurity": IMPURITY,
    "impurity_per_cost": IMPURITY_PER_COST,
    "impure_pairs": IMPURE_PAIRS,
    "balance": BALANCE,
}
CRITERIA = ("entropy", "gini")
LEAF = -1  # instead of a column


@dataclass(frozen=True, slots=True)
class GreedyRules:
    """How a tree is grown.

    Attributes
    ----------
    split_rule : one of :data:`SPLIT_RULES`
    criterion : {"entropy", "gini"}
    complexity_weight : float
        The paper's lambda: what the impurity reduction weighs beside balance and efficiency.
    min_probability : float
        The paper's theta: nodes of no more probability are leaves.
    min_distinct_split : int
        Nodes of fewer objects are leaves.
    max_depth : int or None
    """

    split_rule: str = "regularized"
    criterion: str = "entropy"
    complexity_weight: float = 10.0
    min_probability: float = 0.005
    min_distinct_split: int = 2
    max_depth: int | None = None

    def scoring(self) -> Scoring:
        """As kernels take them."""
        gini = int(self.criterion == "gini")
        return Scoring(SPLIT_RULES[self.split_rule], gini, float(self.complexity_weight), float(self.min_probability))


@dataclass(frozen=True, slots=True)
class CostTests:
    """The tests that rows can be put to, and what they cost.

    Attributes
    ----------
    data : BinnedData
        Code k of a multi-way column stands for the category ``thresholds[k]`` (-1: missing).
    multiway : ndarray of shape (n_columns,), bool
        Whether every code of the column is a branch; else its cuts are tests.
    costs : ndarray of shape (n_features,)
        Cost of a test of each feature; >= 0.
    groups : ndarray of shape (n_features,), int64, or None
        Of the features of a group, only the first on a path is paid for; None if every test is paid for.
    """

    data: BinnedData
    multiway: np.ndarray
    costs: np.ndarray
    groups: np.ndarray | None

    @property
    def column_costs(self) -> np.ndarray:
        """Cost of every column's tests."""
        return self.costs[[c.feature for c in self.data.columns]]

    @property
    def column_groups(self) -> np.ndarray:
        """Group of every column; all different if every test is paid for (none is then ever free)."""
        groups = np.arange(len(self.costs)) if self.groups is None else self.groups
        return groups[[c.feature for c in self.data.columns]]


@dataclass(frozen=True, slots=True)
class CostObjects:
    """Rows that some test tells apart.

    Attributes
    ----------
    codes : ndarray of shape (n_objects, n_columns), uint16
    labels : ndarray of shape (n_objects,), int64
    weights : ndarray of shape (n_objects,), float64
    n_classes : int
    """

    codes: np.ndarray
    labels: np.ndarray
    weights: np.ndarray
    n_classes: int

    def packed(self) -> Objects:
        """As kernels take them."""
        return Objects(self.codes, self.labels, self.weights, float(self.weights.sum()))


@dataclass(frozen=True, slots=True)
class GreedyTree:
    """A tree of two-way and multi-way tests; nodes stand in preorder.

    Attributes
    ----------
    column : list of int
        The column that a node tests; LEAF in leaves.
    cut : list of int
        Codes up to it take the first branch; MULTIWAY if every code has its own.
    children : list of list of int
        A child for every branch; -1 for branches that no object takes.
    weights : ndarray of shape (nodes, K)
        Weight of the objects of every class.
    price : ndarray of shape (nodes,)
        Cost of its test for everybody who reaches the node; 0 in leaves, and where it was paid for before.
    """

    column: list[int]
    cut: list[int]
    children: list[list[int]]
    weights: np.ndarray
    price: np.ndarray

    @property
    def is_leaf(self) -> np.ndarray:
        """Mask of leaves."""
        return np.array(self.column) == LEAF

    @property
    def expected_cost(self) -> float:
        """Mean over the weight of what the tests on the way cost."""
        mass = self.weights.sum(axis=1)
        return float(self.price[self.reached()] @ mass[self.reached()] / mass[0])

    def reached(self) -> np.ndarray:
        """Mask of the nodes that the root leads to: pruning leaves others behind."""
        out = np.zeros(len(self.column), dtype=bool)
        out[0] = True
        for node, children in enumerate(self.children):
            if out[node]:
                out[[child for child in children if child >= 0]] = True
        return out

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return int((self.is_leaf & self.reached()).sum())


def with_multiway(data: BinnedData, X: np.ndarray, features: tuple[Feature, ...], at: tuple[int, ...]):
    """Add a column for every categorical feature at ``at``, a branch per category, and put all in the features' order.

    Returns
    -------
    data : BinnedData
    multiway : ndarray of shape (n_columns,), bool
    """
    columns, codes, bins = list(data.columns), [*data.codes], list(data.n_bins)
    for j in at:
        x = np.where(np.isnan(X[:, j]), np.inf, X[:, j])  # missing values come last
        values, code = np.unique(x, return_inverse=True)
        if len(values) > 1:
            missing = bool(np.isinf(values[-1]))
            columns.append(SplitColumn(j, np.where(np.isinf(values), -1.0, values), missing))
            codes.append(code.reshape(-1))
            bins.append(len(values))
    order = sorted(range(len(columns)), key=lambda c: columns[c].feature)
    out = np.empty((len(order), data.n_rows), dtype=np.uint16)
    for row, c in zip(out, order, strict=True):
        row[:] = codes[c]
    kept = tuple(columns[c] for c in order)
    multiway = np.array([features[c.feature].kind == CATEGORICAL and c.feature in at for c in kept], dtype=bool)
    return replace(data, codes=out, n_bins=np.array([bins[c] for c in order], np.int64), columns=kept), multiway


def merged_objects(codes: np.ndarray, labels: np.ndarray, weights: np.ndarray, n_classes: int) -> CostObjects:
    """Rows of equal codes (p, n) as objects, in the order of their first rows."""
    load_kernels([(LOW_COST, "")])
    n = len(labels)
    keep, group = groups_of_equal_rows(codes) if len(codes) else (np.zeros(1, np.int64), np.zeros(n, np.int64))
    order = np.argsort(keep)  # objects in the order of rows: the walk through memory is a straight one
    place = np.empty(len(keep), np.int64)
    place[order] = np.arange(len(keep))
    by_class = np.bincount(place[group] * n_classes + labels, weights=weights, minlength=len(keep) * n_classes)
    by_class = by_class.reshape(len(keep), n_classes)
    rows = np.ascontiguousarray(codes[:, keep[order]].T, dtype=np.uint16)
    return CostObjects(rows, by_class.argmax(axis=1).astype(np.int64), by_class.sum(axis=1), n_classes)


def grow(tests: CostTests, objects: CostObjects, rules: GreedyRules) -> GreedyTree:
    """Grow a tree by the best test of every node.

    A node is a leaf if its objects are of one class, if its probability is at most ``min_probability``, if it has fewer
    than ``min_distinct_split`` objects, at ``max_depth``, or if no test splits it.

    O(depth * tests * objects) where features have few codes; memory for the codes, two bytes each.
    """
    load_kernels([(LOW_COST, "")])
    return _Growth(tests, objects, rules).grow()


class _Growth:
    """The nodes of a tree that is being grown, and the objects in the order of its leaves."""

    def __init__(self, tests: CostTests, objects: CostObjects, rules: GreedyRules):
        self.tests, self.rules = tests, rules
        self.objects, self.scoring, self.K = objects.packed(), rules.scoring(), objects.n_classes
        bins = np.asarray(tests.data.n_bins, dtype=np.int64)
        offset = np.concatenate([[0], np.cumsum(bins)]).astype(np.int64)
        self.columns = Tests(offset, tests.multiway)
        self.sums = np.empty((offset[-1], 2 * self.K + 2))
        self.rows = np.arange(len(objects.labels), dtype=np.int32)
        self.room = np.empty_like(self.rows)
        self.ends = np.zeros(max(2, bins.max(initial=2)), dtype=np.int64)
        self.costs, self.groups = tests.column_costs, tests.column_groups
        each = np.where(tests.multiway, 1, bins - 1) if tests.groups is not None else np.zeros(len(bins))
        self.askable_again = set(np.flatnonzero(np.bincount(self.groups, weights=each) > 1).tolist())
        positive = self.costs[self.costs > 0]
        self.cheapest = float(positive.min()) if len(positive) else 1.0
        self.full_prices = np.where(self.costs > 0, self.costs, self.cheapest)
        self.column: list[int] = []
        self.cut: list[int] = []
        self.children: list[list[int]] = []
        self.weights: list[np.ndarray] = []
        self.price: list[float] = []

    def grow(self) -> GreedyTree:
        """Depth first, so that nodes stand in preorder."""
        stack: list[tuple[int, int, int, frozenset, int, int]] = [(0, len(self.rows), 0, frozenset(), -1, 0)]
        while stack:
            start, end, depth, paid, parent, branch = stack.pop()
            node = self._append(start, end)
            if parent >= 0:
                self.children[parent][branch] = node
            if self._is_leaf(node, start, end, depth):
                continue
            at = NodeRows(self.rows, start, end)
            column, cut, _ = best_test(self.objects, self.columns, at, self.scoring, self._prices(paid), self.sums)
            if column < 0:
                continue
            ends = self._split(node, at, int(column), int(cut), paid)
            below = paid | {int(self.groups[column])} if int(self.groups[column]) in self.askable_again else paid
            starts = [start, *ends[:-1]]
            self.children[node] = [-1] * len(ends)
            for v in range(len(ends) - 1, -1, -1):
                if ends[v] > starts[v]:
                    stack.append((starts[v], ends[v], depth + 1, below, node, v))
        return GreedyTree(self.column, self.cut, self.children, np.array(self.weights), np.array(self.price))

    def _append(self, start: int, end: int) -> int:
        total = class_totals(self.objects, NodeRows(self.rows, start, end), self.K)
        self.column.append(LEAF)
        self.cut.append(0)
        self.children.append([])
        self.weights.append(total[self.K : 2 * self.K])
        self.price.append(0.0)
        return len(self.column) - 1

    def _is_leaf(self, node: int, start: int, end: int, depth: int) -> bool:
        weights, rules = self.weights[node], self.rules
        pure = np.count_nonzero(weights) <= 1
        small = weights.sum() / self.objects.total <= rules.min_probability or end - start < rules.min_distinct_split
        return bool(pure or small or depth == rules.max_depth)

    def _prices(self, paid: frozenset) -> np.ndarray:
        """Return the prices that scores are divided by. A test that is free counts as the cheapest one.

        Else it would win against every other test, however little it tells.
        """
        if not paid:
            return self.full_prices
        free = np.isin(self.groups, np.fromiter(paid, np.int64, len(paid)))
        return np.where(free, self.cheapest, self.full_prices)

    def _split(self, node: int, at: NodeRows, column: int, cut: int, paid: frozenset) -> list[int]:
        """Note the test and put the node's objects in order; returns where each branch ends."""
        n_branches = int(self.tests.data.n_bins[column]) if cut == MULTIWAY else 2
        divide(self.objects, at, column, cut, n_branches, self.room, self.ends[:n_branches])
        self.column[node], self.cut[node] = column, cut
        free = int(self.groups[column]) in paid
        self.price[node] = 0.0 if free else float(self.costs[column])
        return self.ends[:n_branches].tolist()
