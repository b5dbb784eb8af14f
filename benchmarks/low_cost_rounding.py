"""The published results' choice among exact ties, in their own arithmetic.

In exact arithmetic, the tests that follow have the same score in many nodes (two even splits, two tests of one
meaning). The published results take the first of the largest *floating-point* scores, so the rounding errors of sums
choose among them. These depend on the order of the summands: shares of the rows are added one by one, in the order in
which numpy's unstable sort by the test's outcome leaves the objects, and objects stand as they first occur in the
table. The procedure can be stated and repeated, as here; it is no rule to keep, since it gives another tree for another
order of rows, or for another version of numpy. :class:`policytree.LowCostTreeClassifier` takes the first of the tests
that are equally good.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Size:
    """Size of a tree: summed costs of all rows, leaves, nodes, depth."""

    cost: float
    leaves: int
    nodes: int
    depth: int


class Rounded:
    """Grows the tree of one published result."""

    def __init__(self, X: np.ndarray, y: np.ndarray, costs: np.ndarray, rules):
        """``rules``: an unfitted LowCostTreeClassifier; two-way tests, one for each column of zeros and ones."""
        order: dict[tuple, list[int]] = {}
        for i, row in enumerate(map(tuple, X.astype(int).tolist())):
            order.setdefault(row, []).append(int(y[i]))
        self.codes = np.array(list(order))
        self.labels = np.array([np.bincount(labels).argmax() for labels in order.values()])
        self.counts = np.array([len(labels) for labels in order.values()])
        self.shares = [count / len(y) for count in self.counts.tolist()]
        self.costs, self.rules, self.theta = costs, rules, rules.min_probability
        self.all_pairs = self.pairs(np.arange(len(self.labels)))

    def weight(self, rows: np.ndarray) -> float:
        """Share of some objects, added one by one."""
        total = 0.0
        for i in rows.tolist():
            total += self.shares[i]
        return total

    def pairs(self, rows: np.ndarray) -> int:
        """Pairs of objects of different classes."""
        counts = np.bincount(self.labels[rows])
        return int(len(rows) ** 2 - (counts**2).sum()) // 2

    def impurity(self, rows: np.ndarray) -> float:
        """Entropy in bits, or Gini index."""
        rows = rows[np.argsort(self.labels[rows])]
        mass, total = self.weight(rows), 0.0
        for k in np.unique(self.labels[rows]):
            p = self.weight(rows[self.labels[rows] == k]) / mass
            total += p * p if self.rules.criterion == "gini" else -p * np.log2(p)
        return 1 - total if self.rules.criterion == "gini" else total

    def covered(self, i: int, mass: float, pairs: int) -> float:
        """How much of an object's work is done where it is together with so much weight and so many pairs."""
        by_mass = min((1 - mass) / (1 - max(self.shares[i], self.theta)), 1)
        return 1 - (1 - by_mass) * (1 - (self.all_pairs - pairs) / self.all_pairs)

    def score(self, rows: np.ndarray, branches: list[np.ndarray], cost: float) -> float:
        """Return the score that the rule maximises."""
        masses = [self.weight(branch) for branch in branches]
        if self.rules.split_rule == "balance":
            return min(masses) - max(masses) if len(branches) > 1 else -np.inf
        mass, pairs = self.weight(rows), self.pairs(rows)
        score = mass - masses[int(np.argmax([len(branch) for branch in branches]))]
        efficiency = 0.0
        for branch, share in zip(branches, masses, strict=True):
            inside, total = self.pairs(branch), 0.0
            for i in branch.tolist():
                before = self.covered(i, mass, pairs)
                total += self.shares[i] * (self.covered(i, share, inside) - before) / (1 - before)
            efficiency += total
        reduction = self.impurity(rows)
        reduction -= sum(share / mass * self.impurity(branch) for branch, share in zip(branches, masses, strict=True))
        reduction = 0.0 if abs(reduction) < 1e-7 else reduction
        return (score + efficiency + self.rules.complexity_weight * mass * reduction) / cost

    def grow(self) -> Size:
        """Grow the tree and return its size."""
        cost, leaves, nodes, deepest = 0.0, 0, 0, 0
        stack = [(np.arange(len(self.labels)), np.arange(self.codes.shape[1]), 0)]
        while stack:
            rows, tests, depth = stack.pop()
            nodes, deepest = nodes + 1, max(deepest, depth)
            mass = self.weight(rows)
            small = mass <= self.theta + 1e-7 or len(rows) < self.rules.min_distinct_split
            if small or self.pairs(rows) == 0 or not len(tests):
                leaves += 1
                continue
            parts = [self.branches(rows, t) for t in tests]
            scores = [self.score(rows, each, self.costs[t]) for t, each in zip(tests, parts, strict=True)]
            best = int(np.argmax(scores))
            cost += float(self.costs[tests[best]] * self.counts[rows].sum())
            stack += [(part, np.delete(tests, best), depth + 1) for part in parts[best]]
        return Size(cost, leaves, nodes, deepest)

    def branches(self, rows: np.ndarray, test: int) -> list[np.ndarray]:
        """The non-empty branches, objects in the order in which the sort leaves them."""
        outcome = self.codes[rows, test]
        order = np.argsort(outcome)
        rows, outcome = rows[order], outcome[order]
        return [rows[outcome == v] for v in (0, 1) if (outcome == v).any()]
