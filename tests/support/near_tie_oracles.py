"""Every tree there is, by brute force: counted by value and leaves, or written down with what it gives every row.

Two trees differ if they ask different questions or give different actions. Two questions about one feature are one at a
node if they divide its rows alike. No leaf is empty, and two leaves of one split have different actions.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np

from tests.support import oracles


class Trees:
    """The trees of one case; values are integers, of which ``denominator`` make one."""

    def __init__(self, case):
        self.case = case
        self.losses = np.asarray(case.losses, dtype=np.float64)
        n, self.n_actions = self.losses.shape
        charges = oracles.split_charges(case.X.shape[1], n, case.feature_costs, case.weights)
        flat, self.denominator = oracles.exact_integers(
            case.penalty, *self.losses.ravel(), *(c for row in charges for c in row)
        )
        self.price, flat = flat[0], flat[1:]
        cells = n * self.n_actions
        self.whole = [flat[i * self.n_actions : (i + 1) * self.n_actions] for i in range(n)]
        self.charges = [flat[cells + j * n : cells + (j + 1) * n] for j in range(case.X.shape[1])]
        self.rows = frozenset(range(n))
        self.leaves = case.max_leaf_nodes or n
        splits = oracles.all_splits(case.X, case.categorical)
        sides = [(s.feature, frozenset(i for i in self.rows if s.goes_left(case.X[i].tolist()))) for s in splits]
        # All that a question about part of the rows can be: "this category", which others do not show in the whole.
        for j in case.categorical:
            for v in set(case.X[~np.isnan(case.X[:, j]), j].tolist()):
                for also in (frozenset(), frozenset(np.flatnonzero(np.isnan(case.X[:, j])).tolist())):
                    sides.append((j, frozenset(np.flatnonzero(case.X[:, j] == v).tolist()) | also))
        self.questions = sorted({(j, tuple(sorted(left))) for j, left in sides})

    def allowed(self, rows) -> bool:
        c = self.case
        return oracles.leaf_allowed(rows, c.min_leaf, c.arms, c.min_leaf_per_arm, self.n_actions)

    def splits(self, rows, first: bool):
        """(feature, left, right, price) of every question that separates these rows."""
        seen = set()
        for j, every in self.questions:
            left = rows & set(every)
            may = not first or self.case.root_features is None or j in self.case.root_features
            if 0 < len(left) < len(rows) and may and (j, frozenset([left, rows - left])) not in seen:
                seen.add((j, frozenset([left, rows - left])))
                yield j, left, rows - left, sum(self.charges[j][i] for i in rows)

    def write(self, rows, depth: int, first: bool = True):
        """Yield (value, leaves, action of every row, features asked) of every tree; an action alone is a leaf."""
        if not self.allowed(rows):
            return
        for k in range(self.n_actions):
            yield sum(self.whole[i][k] for i in rows) + self.price, 1, {i: k for i in rows}, frozenset()
        if depth == 0:
            return
        for j, left, right, paid in self.splits(rows, first):
            others = list(self.write(right, depth - 1, False))
            for v, a, gives, asks in self.write(left, depth - 1, False):
                for w, b, also, more in others:
                    if a == b == 1 and set(gives.values()) == set(also.values()):
                        continue
                    if a + b <= self.leaves:
                        yield v + w + paid, a + b, gives | also, asks | more | {j}

    def count(self, rows, depth: int, first: bool = True) -> Counter:
        """How many trees have each (value, leaves, action if a leaf else -1)."""
        out: Counter = Counter()
        if not self.allowed(rows):
            return out
        for k in range(self.n_actions):
            out[sum(self.whole[i][k] for i in rows) + self.price, 1, k] += 1
        if depth == 0:
            return out
        for _, left, right, paid in self.splits(rows, first):
            others = self.count(right, depth - 1, False)
            for (v, a, k), x in self.count(left, depth - 1, False).items():
                for (w, b, m), y in others.items():
                    if a + b <= self.leaves and (k < 0 or k != m):
                        out[v + w + paid, a + b, -1] += x * y
        return out

    def value(self, number: Fraction) -> Fraction:
        """A number in the unit of the values."""
        return number * self.denominator
