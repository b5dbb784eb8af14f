"""Brute force for trees judged by several sums: all their vectors, straight from the definition."""

from __future__ import annotations

from functools import cache

import numpy as np

from tests.support.oracles import all_splits, leaf_allowed


def not_covered(vectors) -> list[tuple[int, ...]]:
    """Those that no other vector is as good as in every number, each once, sorted."""
    kept: list[tuple[int, ...]] = []
    for vector in sorted(set(vectors)):
        if not any(all(x <= y for x, y in zip(other, vector, strict=True)) for other in kept):
            kept.append(vector)
    return kept


def all_vectors(
    X, sums, max_depth, *, leaf=None, prices=None, mass=None, min_leaf=1, arms=None, min_leaf_per_arm=0,
    categorical=(), root_features=None, covered=True, groups=None,
) -> list[tuple[int, ...]]:  # fmt: skip
    """Vectors of all trees of a depth at most, or with ``covered=False`` only those that no other is as good as.

    ``sums`` (q, n, K): what row i adds to every number under action k. ``leaf`` (q,): what a leaf adds. ``prices``
    (q, n_features): what a split adds for every unit of ``mass`` (n,) that reaches it. ``groups`` (n_features,): only
    the first split of a group on a path adds something.
    """
    sums = np.asarray(sums, dtype=object)
    q, n, K = sums.shape
    X = np.asarray(X, dtype=np.float64).reshape(n, -1)
    leaf = [0] * q if leaf is None else [int(x) for x in leaf]
    prices = np.zeros((q, X.shape[1]), dtype=object) if prices is None else np.asarray(prices, dtype=object)
    mass = [1] * n if mass is None else [int(m) for m in mass]
    questions = {
        (frozenset(i for i in range(n) if s.goes_left(X[i].tolist())), s.feature)
        for s in all_splits(X, categorical)
    }  # fmt: skip
    thinned = (lambda vectors: sorted(set(vectors))) if covered else not_covered

    @cache
    def vectors_of(rows: frozenset, depth: int, first: bool, known: frozenset = frozenset()):
        found = []
        if leaf_allowed(rows, min_leaf, arms, min_leaf_per_arm, K):
            found += [tuple(leaf[v] + sum(sums[v, i, k] for i in rows) for v in range(q)) for k in range(K)]
        if depth > 0:
            here = {(rows & yes, f) for yes, f in questions if 0 < len(rows & yes) < len(rows)}
            for left, f in here:
                if first and root_features is not None and f not in root_features:
                    continue
                again = groups is not None and groups[f] in known
                paid = [0 if again else prices[v, f] * sum(mass[i] for i in rows) for v in range(q)]
                below = known if groups is None else known | {groups[f]}
                others = vectors_of(rows - left, depth - 1, False, below)
                found += [
                    tuple(x + y + z for x, y, z in zip(a, b, paid, strict=True))
                    for a in vectors_of(left, depth - 1, False, below)
                    for b in others
                ]
        return thinned(found)

    return [tuple(int(x) for x in v) for v in vectors_of(frozenset(range(n)), max_depth, True)]
