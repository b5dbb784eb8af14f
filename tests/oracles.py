"""Readable brute force: what solvers must find and kernels must compute, straight from the definitions.

Nothing here imports the search, the binning or the methods of ``Tree``: a mistake there cannot hide here. Losses are
turned into exact integers first (every finite float is an integer times a power of two), so the optima are exact
fractions and comparisons need no tolerance. Four ways to the same optimum check each other in
``contract/test_oracles.py``:

- :func:`enumerate_trees` with :func:`score_rule` writes down every tree there is (two splits deep, a handful of rows);
- :func:`best_tree` recurses over row sets, with every split and every depth (about a dozen rows);
- :func:`best_objective_fast` is the same recursion over integer codes in numpy, for some hundred rows;
- :func:`best_intervals` solves one-feature problems of any size by dynamic programming.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import product

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
        return x == self.threshold if self.categorical else x <= self.threshold


def all_splits(X, categorical=()) -> list[Split]:
    """Every question that separates some rows of ``X`` (n, p).

    Numeric features: ``x <= v`` for every observed value ``v``. Categorical ones: one category against the rest.
    Missing values (NaN) go to either side, or alone to the left.
    """
    X = np.asarray(X, dtype=np.float64)
    splits = []
    for j in range(X.shape[1]):
        values = sorted({x for x in X[:, j].tolist() if not math.isnan(x)})
        splits += [Split(j, v, j in categorical, side) for v in values for side in (False, True)]
        splits.append(Split(j, -math.inf, j in categorical, missing_left=True))
    # Of questions that all rows answer alike, one is enough.
    different = {tuple(s.goes_left(row) for row in X.tolist()): s for s in splits}
    return [s for answers, s in different.items() if len(set(answers)) == 2]


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


def best_tree(X, losses, penalty=0.0, max_depth=2, min_leaf=1, arms=None, min_leaf_per_arm=0, categorical=()):
    """The smallest ``sum of leaf losses + penalty * leaves``, exactly, and the leaves (sets of rows) that reach it.

    Returns ``(Fraction, list of (rows, action))``, or ``(None, [])`` if not even all rows together may form a leaf.
    ``max_depth=None`` means no limit.
    """
    integers, price, d = exact_losses(losses, penalty)
    n, n_arms = len(integers), len(integers[0])
    rows_of_X = np.asarray(X, dtype=np.float64).reshape(n, -1).tolist()
    splits = all_splits(np.asarray(X, dtype=np.float64).reshape(n, -1), categorical)
    lefts = {frozenset(i for i in range(n) if s.goes_left(rows_of_X[i])) for s in splits}

    @cache
    def solve(rows: frozenset, depth: int):
        if not leaf_allowed(rows, min_leaf, arms, min_leaf_per_arm, n_arms):
            return None
        loss, action = best_leaf(integers, rows)
        best, leaves = loss + price, [(rows, action)]
        if depth == 0:
            return best, leaves
        for left in lefts:
            if not 0 < len(rows & left) < len(rows):
                continue
            one, other = solve(rows & left, depth - 1), solve(rows - left, depth - 1)
            if one is not None and other is not None and one[0] + other[0] < best:
                best, leaves = one[0] + other[0], one[1] + other[1]
        return best, leaves

    # No path can hold more than n - 1 splits that all separate rows.
    answer = solve(frozenset(range(n)), n - 1 if max_depth is None else min(max_depth, n - 1))
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


def score_rule(rule, X, losses, penalty=0.0, min_leaf=1, arms=None, min_leaf_per_arm=0) -> Fraction | None:
    """Loss plus penalties of one rule, row by row; None if a leaf is empty or too small."""
    losses = np.asarray(losses, dtype=np.float64)
    reached: dict[tuple, list[int]] = {}
    total = Fraction(float(penalty)) * count_leaves(rule)
    for i, row in enumerate(np.asarray(X, dtype=np.float64).tolist()):
        path, action = leaf_of(rule, row)
        reached.setdefault(path, []).append(i)
        total += Fraction(float(losses[i, action]))
    if len(reached) < count_leaves(rule):
        return None
    if not all(leaf_allowed(rows, min_leaf, arms, min_leaf_per_arm, losses.shape[1]) for rows in reached.values()):
        return None
    return total


# --------------------------------------------------------------------------------------------------------------------
# The optimum in numpy, for some hundred rows


def code_columns(X, categorical=()) -> np.ndarray:
    """Integer codes (n, columns): the splits ``code <= b`` are those of :func:`all_splits`."""
    X = np.asarray(X, dtype=np.float64)
    columns = []
    for j in range(X.shape[1]):
        missing = np.isnan(X[:, j])
        values = np.unique(X[~missing, j])
        if j in categorical:
            columns += [(X[:, j] != v).astype(np.int64) for v in values]
            columns += [((X[:, j] != v) & ~missing).astype(np.int64) for v in values]
            columns.append((~missing).astype(np.int64))
            continue
        codes = np.searchsorted(values, X[:, j])  # NaN sorts last: missing goes right
        columns.append(np.where(missing, len(values), codes))
        columns.append(np.where(missing, 0, codes))
    return np.stack(columns, axis=1) if columns else np.zeros((len(X), 0), dtype=np.int64)


def best_objective_fast(codes, losses, penalty=0, max_depth=2, min_leaf=1, arms=None, min_leaf_per_arm=0):
    """The optimum over splits ``codes[:, j] <= b`` for integer losses (any numpy integer dtype); None if infeasible.

    Row sets met before are not solved again; the last split is found from histograms.
    """
    codes, losses = np.asarray(codes), np.asarray(losses)
    assert np.issubdtype(losses.dtype, np.integer), "this oracle is exact for integers only"
    n, K = losses.shape
    planes = [losses, np.ones((n, 1), dtype=losses.dtype)]
    floors = [max(1, min_leaf)]
    if min_leaf_per_arm:
        planes.append((np.asarray(arms)[:, None] == np.arange(K)).astype(losses.dtype))
        floors += [min_leaf_per_arm] * K
    planes = np.concatenate(planes, axis=1)  # (n, K + 1 [+ K]): losses, row counts, counts of every arm
    big = np.iinfo(np.int64).max // 4
    known: dict[tuple[bytes, int], int] = {}

    def leaf_cost(sums):
        allowed = (sums[..., K:] >= floors).all(axis=-1)
        return np.where(allowed, sums[..., :K].min(axis=-1) + penalty, big)

    def one_split(rows):
        best = int(leaf_cost(planes[rows].sum(axis=0)))
        for j in range(codes.shape[1]):
            table = np.zeros((codes[:, j].max() + 1, planes.shape[1]), dtype=losses.dtype)
            np.add.at(table, codes[rows, j], planes[rows])
            left = table.cumsum(axis=0)[:-1]
            if len(left):
                cost = leaf_cost(left) + leaf_cost(table.sum(axis=0) - left)
                best = min(best, int(cost.min()))
        return best

    def solve(rows, depth):
        key = rows.tobytes(), depth
        if key in known:
            return known[key]
        if depth <= 1:
            best = one_split(rows) if depth else int(leaf_cost(planes[rows].sum(axis=0)))
        else:
            best = int(leaf_cost(planes[rows].sum(axis=0)))
            for j in range(codes.shape[1]):
                for b in np.unique(codes[rows, j])[:-1]:
                    left = codes[rows, j] <= b
                    best = min(best, solve(rows[left], depth - 1) + solve(rows[~left], depth - 1))
        known[key] = best
        return best

    answer = solve(np.arange(n), n if max_depth is None else max_depth)
    return None if answer >= big else answer


def best_intervals(x, losses, max_leaves=None, penalty=0, min_leaf=1) -> int:
    """The optimum of a problem with one numeric feature ``x`` (n,) and integer losses (n, K), by dynamic programming.

    A tree of depth D on one feature can make every partition of the line into at most ``2 ** D`` intervals, and nothing
    else; so ``max_leaves = 2 ** D``. O(n K max_leaves).
    """
    x, losses = np.asarray(x, dtype=np.float64), np.asarray(losses)
    order = np.argsort(x, kind="stable")
    x, prefix = x[order], np.concatenate([np.zeros((1, losses.shape[1]), losses.dtype), losses[order].cumsum(axis=0)])
    n = len(x)
    big = np.iinfo(np.int64).max // 4
    may_cut = np.concatenate([[True], x[1:] > x[:-1], [True]])  # cuts fall between different values only
    cost = np.where(np.arange(n + 1) == 0, 0, big)  # cost[i]: best for the first i rows with the leaves so far
    answer = big
    for _ in range(max_leaves or n):
        # A leaf (j, i] of action k costs prefix[i, k] - prefix[j, k] + penalty: keep the best start so far.
        start = np.where((may_cut & (cost < big))[:, None], cost[:, None] - prefix, big)
        start = np.minimum.accumulate(start, axis=0)
        shifted = np.full_like(start, big)
        shifted[min_leaf:] = start[: n + 1 - min_leaf]
        cost = np.where(shifted < big // 2, prefix + shifted + penalty, big).min(axis=1)
        cost = np.where(may_cut, cost, big)
        answer = min(answer, int(cost[n]))
    return answer


# --------------------------------------------------------------------------------------------------------------------
# Twins of kernels: one split, two splits, signed losses


def best_one_split(codes, losses):
    """Best ``code <= b`` of one column: ``(objective, b)``; ``b`` is None if the leaf is as good. No penalty."""
    best, cut = min(np.sum(losses, axis=0).tolist()), None
    for b in range(int(max(codes))):
        left = [row for code, row in zip(codes, losses, strict=True) if code <= b]
        right = [row for code, row in zip(codes, losses, strict=True) if code > b]
        if left and right:
            value = min(np.sum(left, axis=0).tolist()) + min(np.sum(right, axis=0).tolist())
            if value < best:
                best, cut = value, b
    return best, cut


def best_depth_two(codes, losses, penalty=0):
    """Best tree of depth two over the columns of ``codes`` (n, columns): every root split, every split of each side."""
    codes, losses = np.asarray(codes), np.asarray(losses)

    def at_most_one_split(rows):
        leaf = min(losses[rows].sum(axis=0).tolist()) + penalty
        stumps = [best_one_split(codes[rows, j].tolist(), losses[rows].tolist())[0] for j in range(codes.shape[1])]
        return min([leaf, *(stump + 2 * penalty for stump in stumps)])

    best = at_most_one_split(np.arange(len(codes)))
    for j in range(codes.shape[1]):
        for b in range(int(codes[:, j].max())):
            left = codes[:, j] <= b
            if left.any() and not left.all():
                best = min(best, at_most_one_split(np.flatnonzero(left)) + at_most_one_split(np.flatnonzero(~left)))
    return best


def signed_deltas(losses):
    """For two actions: what every tree pays, and ``delta = loss of action 1 - loss of action 0``.

    A leaf then costs ``sum of loss of action 0 + min(0, sum of its deltas)``.
    """
    losses = np.asarray(losses)
    assert losses.shape[1] == 2
    return losses[:, 0].sum(), losses[:, 1] - losses[:, 0]


def best_one_split_signed(codes, delta):
    """As :func:`best_one_split` from deltas alone: ``min over b of min(0, left sum) + min(0, right sum)``."""
    codes, delta = np.asarray(codes), np.asarray(delta)
    best = min(0, delta.sum())
    for b in range(int(codes.max())):
        best = min(best, min(0, delta[codes <= b].sum()) + min(0, delta[codes > b].sum()))
    return best
