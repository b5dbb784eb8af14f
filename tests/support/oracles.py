"""Readable brute force: what solvers must find and kernels must compute, straight from the definitions.

Nothing here imports the search, the binning or the methods of ``Tree``: a mistake there cannot hide here. Losses are
turned into exact integers first (every finite float is an integer times a power of two), so the optima are exact
fractions and comparisons need no tolerance. Four ways to the same optimum check each other in
``contract/test_oracles.py``:

- :func:`enumerate_trees` with :func:`score_rule` writes down every tree there is (two splits deep, a handful of rows);
- :func:`best_tree` recurses over row sets, with every split and every depth (about a dozen rows);
- :func:`best_objective_fast` is the same recursion over integer codes in numpy, for some hundred rows;
- :func:`tests.support.interval_oracles.best_intervals` solves one-feature problems of any size by dynamic programming.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations, product

import numpy as np

# --------------------------------------------------------------------------------------------------------------------
# Exact numbers and splits


def exact_integers(*values) -> tuple[list[int], int]:
    """Integers ``m`` and one denominator ``d`` with ``values == m / d`` exactly."""
    fractions = [v if isinstance(v, Fraction) else Fraction(float(v)) for v in values]
    d = math.lcm(*(f.denominator for f in fractions)) if fractions else 1
    return [f.numerator * (d // f.denominator) for f in fractions], d


def exact_losses(losses, penalty=0.0) -> tuple[list[list[int]], int, int]:
    """Rows of integer losses, the integer leaf penalty and their common denominator."""
    losses = np.asarray(losses, dtype=np.float64)
    n, K = losses.shape
    flat, d = exact_integers(penalty, *losses.ravel())
    return [flat[1 + i * K : 1 + (i + 1) * K] for i in range(n)], flat[0], d


@dataclass(frozen=True)
class Split:
    """One question about one feature; rows that answer yes go left."""

    feature: int
    threshold: float
    categorical: bool = False
    missing_left: bool = False

    def goes_left(self, row) -> bool:
        x = row[self.feature]
        if math.isnan(x):
            return self.missing_left
        if self.categorical and self.threshold <= -3:  # a group: minus the sum of 2**k over its categories k
            return int(-self.threshold) >> int(x) & 1 == 1
        return x == self.threshold if self.categorical else x <= self.threshold


def all_splits(X, categorical=(), grouped=False) -> list[Split]:
    """Every question that separates some rows of ``X`` (n, p).

    Numeric features: ``x <= v`` for every observed value ``v``. Categorical ones: one category against the rest, or if
    ``grouped`` any group of them.
    Missing values (NaN) go to either side, or alone to the left.
    """
    X = np.asarray(X, dtype=np.float64)
    splits = []
    for j in range(X.shape[1]):
        values = sorted({x for x in X[:, j].tolist() if not math.isnan(x)})
        splits += [Split(j, v, j in categorical, side) for v in values for side in (False, True)]
        if grouped and j in categorical:
            groups = [g for size in range(2, len(values)) for g in combinations(map(int, values), size)]
            splits += [Split(j, -float(sum(2**k for k in g)), True, side) for g in groups for side in (False, True)]
        splits.append(Split(j, -1.0 if j in categorical else -math.inf, j in categorical, missing_left=True))
    # Of questions about one feature that all rows answer alike, one is enough.
    different = {(s.feature, *(s.goes_left(row) for row in X.tolist())): s for s in splits}
    return [s for (_, *answers), s in different.items() if len(set(answers)) == 2]


# --------------------------------------------------------------------------------------------------------------------
# The optimum by memoised recursion over row sets


def best_leaf(losses, rows) -> tuple[int, int]:
    """The smallest summed loss of the rows under one action, and the first action that reaches it."""
    sums = [sum(losses[i][k] for i in rows) for k in range(len(losses[0]))]
    return min(sums), sums.index(min(sums))


def leaf_allowed(rows, min_leaf=1, arms=None, min_leaf_per_arm=0, n_arms=0) -> bool:
    """Whether these rows may form a leaf."""
    if len(rows) < max(1, min_leaf):
        return False
    if min_leaf_per_arm == 0:
        return True
    return all(sum(1 for i in rows if arms[i] == a) >= min_leaf_per_arm for a in range(n_arms))


def split_charges(n_features: int, n: int, feature_costs=None, weights=None) -> list[list[Fraction]]:
    """Return the cost of a split on a feature for a row that reaches it: ``feature_costs[j] * weights[i]``, exactly."""
    costs = [0.0] * n_features if feature_costs is None else np.asarray(feature_costs, dtype=np.float64).tolist()
    masses = [1.0] * n if weights is None else np.asarray(weights, dtype=np.float64).tolist()
    return [[Fraction(c) * Fraction(w) for w in masses] for c in costs]


def best_tree(
    X,
    losses,
    penalty=0.0,
    max_depth=2,
    min_leaf=1,
    arms=None,
    min_leaf_per_arm=0,
    categorical=(),
    max_leaf_nodes=None,
    feature_costs=None,
    weights=None,
    root_features=None,
    grouped=False,
):
    """The smallest ``sum of leaf losses + penalty * leaves + test costs``, and the leaves (sets of rows) that reach it.

    Returns ``(Fraction, list of (rows, action))``, or ``(None, [])`` if not even all rows together may form a leaf.
    ``max_depth=None`` means no limit, nor does ``max_leaf_nodes=None``. A split on feature j costs ``feature_costs[j]``
    times the weights of the rows that reach it; the first split must be on one of ``root_features``.
    """
    losses = np.asarray(losses, dtype=np.float64)
    n, n_arms = losses.shape
    X = np.asarray(X, dtype=np.float64).reshape(n, -1)
    charges = split_charges(X.shape[1], n, feature_costs, weights)
    whole, d = exact_integers(penalty, *losses.ravel(), *(c for row in charges for c in row))
    price, whole = whole[0], whole[1:]
    integers = [whole[i * n_arms : (i + 1) * n_arms] for i in range(n)]
    charges = [whole[n_arms * n + j * n : n_arms * n + (j + 1) * n] for j in range(X.shape[1])]
    questions = {
        (
            frozenset(i for i in range(n) if s.goes_left(X[i].tolist())),
            tuple(charges[s.feature]),
            root_features is None or s.feature in root_features,
        )
        for s in all_splits(X, categorical, grouped)
    }

    @cache
    def solve(rows: frozenset, depth: int, most: int, first: bool):
        if not leaf_allowed(rows, min_leaf, arms, min_leaf_per_arm, n_arms):
            return None
        loss, action = best_leaf(integers, rows)
        best, leaves = loss + price, [(rows, action)]
        if depth == 0 or most == 1:
            return best, leaves
        for left, charge, may_be_first in questions:
            if not 0 < len(rows & left) < len(rows) or (first and not may_be_first):
                continue
            paid = sum(charge[i] for i in rows)
            for here, there in shares(rows & left, rows - left, depth, most):
                one, other = solve(rows & left, depth - 1, here, False), solve(rows - left, depth - 1, there, False)
                if one is not None and other is not None and one[0] + other[0] + paid < best:
                    best, leaves = one[0] + other[0] + paid, one[1] + other[1]
        return best, leaves

    def shares(left, right, depth, most):
        """Numbers of leaves for the two sides; one pair if each side may have as many as it can use."""
        a, b = (min(len(side), 2 ** (depth - 1), most - 1) for side in (left, right))
        return [(a, b)] if a + b <= most else [(k, min(b, most - k)) for k in range(1, a + 1)]

    # No path can hold more than n - 1 splits that all separate rows.
    depth = n - 1 if max_depth is None else min(max_depth, n - 1)
    answer = solve(frozenset(range(n)), depth, n if max_leaf_nodes is None else min(max_leaf_nodes, n), True)
    if answer is None:
        return None, []
    return Fraction(answer[0], d), answer[1]


# --------------------------------------------------------------------------------------------------------------------
# The optimum by writing down every tree


def enumerate_trees(splits, n_actions: int, depth: int):
    """Every rule of at most ``depth`` splits on a path: an action, or ``(split, left, right)``. There are very many."""
    rules = list(range(n_actions))
    if depth > 0:
        smaller = list(enumerate_trees(splits, n_actions, depth - 1))
        rules += product(splits, smaller, smaller)
    return rules


def leaf_of(rule, row) -> tuple[tuple[bool, ...], int]:
    """The turns a row takes through a rule, and the action at the end."""
    turns = []
    while not isinstance(rule, int):
        split, left, right = rule
        turns.append(split.goes_left(row))
        rule = left if turns[-1] else right
    return tuple(turns), rule


def count_leaves(rule) -> int:
    """Leaves of a rule, reached or not."""
    return 1 if isinstance(rule, int) else count_leaves(rule[1]) + count_leaves(rule[2])


def score_rule(
    rule,
    X,
    losses,
    penalty=0.0,
    min_leaf=1,
    arms=None,
    min_leaf_per_arm=0,
    max_leaf_nodes=None,
    feature_costs=None,
    weights=None,
    root_features=None,
) -> Fraction | None:
    """Loss, penalties and test costs of one rule, row by row; None if it is not allowed."""
    losses = np.asarray(losses, dtype=np.float64)
    X = np.asarray(X, dtype=np.float64)
    if max_leaf_nodes is not None and count_leaves(rule) > max_leaf_nodes:
        return None
    if root_features is not None and not isinstance(rule, int) and rule[0].feature not in root_features:
        return None
    charges = split_charges(X.shape[1], len(X), feature_costs, weights)
    reached: dict[tuple, list[int]] = {}
    total = Fraction(float(penalty)) * count_leaves(rule)
    for i, row in enumerate(X.tolist()):
        path, action = leaf_of(rule, row)
        reached.setdefault(path, []).append(i)
        total += Fraction(float(losses[i, action])) + sum(charges[j][i] for j in tested_features(rule, path))
    if len(reached) < count_leaves(rule):
        return None
    if not all(leaf_allowed(rows, min_leaf, arms, min_leaf_per_arm, losses.shape[1]) for rows in reached.values()):
        return None
    return total


def tested_features(rule, turns) -> list[int]:
    """The features that a row is asked about which takes these turns, with repetitions."""
    found = []
    for left in turns:
        split, one, other = rule
        found.append(split.feature)
        rule = one if left else other
    return found


# --------------------------------------------------------------------------------------------------------------------
# The optimum in numpy, for some hundred rows


def code_columns(X, categorical=()) -> np.ndarray:
    """Integer codes (n, columns): the splits ``code <= b`` are those of :func:`all_splits`."""
    columns = [column for found in _columns_by_feature(X, categorical) for column in found]
    return np.stack(columns, axis=1) if columns else np.zeros((len(X), 0), dtype=np.int64)


def column_features(X, categorical=()) -> list[int]:
    """The feature of every column of :func:`code_columns`."""
    return [j for j, found in enumerate(_columns_by_feature(X, categorical)) for _ in found]


def _columns_by_feature(X, categorical) -> list[list[np.ndarray]]:
    X = np.asarray(X, dtype=np.float64)
    out = []
    for j in range(X.shape[1]):
        missing = np.isnan(X[:, j])
        values = np.unique(X[~missing, j])
        if j in categorical:
            columns = [(X[:, j] != v).astype(np.int64) for v in values]
            columns += [((X[:, j] != v) & ~missing).astype(np.int64) for v in values]
            out.append([*columns, (~missing).astype(np.int64)])
            continue
        codes = np.searchsorted(values, X[:, j])  # NaN sorts last: missing goes right
        out.append([np.where(missing, len(values), codes), np.where(missing, 0, codes)])
    return out


def best_objective_fast(
    codes,
    losses,
    penalty=0,
    max_depth=2,
    min_leaf=1,
    arms=None,
    min_leaf_per_arm=0,
    max_leaf_nodes=None,
    column_costs=None,
    weights=None,
    root_columns=None,
):
    """The optimum over splits ``codes[:, j] <= b`` for integer losses (any numpy integer dtype); None if infeasible.

    Row sets met before are not solved again; the last split is found from histograms. ``column_costs`` (columns,) and
    ``weights`` (n,) are integers too; ``root_columns`` lists those that the first split may be on.
    """
    codes, losses = np.asarray(codes), np.asarray(losses)
    assert np.issubdtype(losses.dtype, np.integer), "this oracle is exact for integers only"
    (n, K), p = losses.shape, codes.shape[1]
    weights = np.ones(n, dtype=np.int64) if weights is None else np.asarray(weights)
    costs = np.zeros(p, dtype=np.int64) if column_costs is None else np.asarray(column_costs)
    assert np.issubdtype(weights.dtype, np.integer) and np.issubdtype(costs.dtype, np.integer)
    planes = [losses, np.ones((n, 1), dtype=losses.dtype)]
    floors = [max(1, min_leaf)]
    if min_leaf_per_arm:
        planes.append((np.asarray(arms)[:, None] == np.arange(K)).astype(losses.dtype))
        floors += [min_leaf_per_arm] * K
    planes = np.concatenate(planes, axis=1)  # (n, K + 1 [+ K]): losses, row counts, counts of every arm
    big = np.iinfo(np.int64).max // 4
    known: dict[tuple[bytes, int, int], int] = {}

    def leaf_cost(sums):
        allowed = (sums[..., K:] >= floors).all(axis=-1)
        return np.where(allowed, sums[..., :K].min(axis=-1) + penalty, big)

    def one_split(rows, columns):
        best, mass = int(leaf_cost(planes[rows].sum(axis=0))), int(weights[rows].sum())
        for j in columns:
            table = np.zeros((codes[:, j].max() + 1, planes.shape[1]), dtype=losses.dtype)
            np.add.at(table, codes[rows, j], planes[rows])
            left = table.cumsum(axis=0)[:-1]
            if len(left):
                cost = leaf_cost(left) + leaf_cost(table.sum(axis=0) - left)
                best = min(best, int(cost.min()) + int(costs[j]) * mass)
        return best

    def solve(rows, depth, most, columns=range(p)):
        key = rows.tobytes(), depth, most
        if columns == range(p) and key in known:
            return known[key]
        best = int(leaf_cost(planes[rows].sum(axis=0)))
        if depth == 1 or most == 2:
            best = one_split(rows, columns) if depth and most > 1 else best
        elif depth and most > 1:
            paid = costs * int(weights[rows].sum())
            for j in columns:
                for b in np.unique(codes[rows, j])[:-1]:
                    left = codes[rows, j] <= b
                    best = min(best, both(rows[left], rows[~left], depth - 1, most) + int(paid[j]))
        if columns == range(p):
            known[key] = best
        return best

    def both(left, right, depth, most):
        a, b = (min(len(side), 2**depth, most - 1) for side in (left, right))
        shares = [(a, b)] if a + b <= most else [(k, min(b, most - k)) for k in range(1, a + 1)]
        return min(solve(left, depth, here) + solve(right, depth, there) for here, there in shares)

    columns = range(p) if root_columns is None else list(root_columns)
    answer = solve(np.arange(n), n if max_depth is None else max_depth, min(max_leaf_nodes or n, n), columns)
    return None if answer >= big else answer
