"""Readable brute force for objectives of whole bags: every tree's leaves, every labelling, from the definitions."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np

from tests.support import oracles


def all_leaf_stats(X, positive, weight, depth, min_leaf=1, max_leaf_nodes=None, root_features=None) -> set:
    """Leaf sums ``(negatives, positives)``, sorted, of every tree of at most that depth.

    ``weight`` (n,) integers or fractions; ``X`` (n, p) numbers with NaN for missing.
    """
    X = np.asarray(X, dtype=np.float64)
    n = len(X)
    splits = {}
    for s in oracles.all_splits(X):
        left = frozenset(i for i in range(n) if s.goes_left(X[i].tolist()))
        splits.setdefault((left, root_features is None or s.feature in root_features), s)

    @cache
    def all_stats(rows: frozenset, depth: int, first: bool) -> frozenset:
        negatives = sum((weight[i] for i in rows if not positive[i]), Fraction(0))
        positives = sum((weight[i] for i in rows if positive[i]), Fraction(0))
        found = {((negatives, positives),)} if len(rows) >= min_leaf else set()
        if depth > 0:
            for left, allowed in splits:
                one, other = rows & left, rows - left
                if one and other and (allowed or not first):
                    for a, b in product(all_stats(one, depth - 1, False), all_stats(other, depth - 1, False)):
                        found.add(tuple(sorted(a + b)))
        return frozenset(found)

    return {
        leaf_stats
        for leaf_stats in all_stats(frozenset(range(n)), depth, True)
        if len(leaf_stats) <= (max_leaf_nodes or n)
    }


def area(leaf_stats, limit=Fraction(1)) -> Fraction:
    """Area under the ROC curve up to a rate, divided by it: the mean height of the curve, integrated piece by piece."""
    N, P = sum(n for n, _ in leaf_stats), sum(p for _, p in leaf_stats)
    ranked = sorted(leaf_stats, key=lambda leaf: Fraction(leaf[1]) / (leaf[0] + leaf[1]), reverse=True)
    x = y = whole = Fraction(0)
    for n, p in ranked:
        dx, dy = Fraction(n) / N, Fraction(p) / P
        if dx and x < limit:
            end = min(x + dx, limit)
            whole += (end - x) * (y + (y + dy * (end - x) / dx)) / 2
        x, y = x + dx, y + dy
    return whole / limit


def concordance(leaf_stats) -> Fraction:
    """Share of the pairs of a positive and a negative that are ranked rightly; ties count half."""
    N, P = sum(n for n, _ in leaf_stats), sum(p for _, p in leaf_stats)
    share = [Fraction(p) / (n + p) for n, p in leaf_stats]
    right = Fraction(0)
    for i, (_, p) in enumerate(leaf_stats):
        for j, (n, _) in enumerate(leaf_stats):
            right += p * n * (1 if share[i] > share[j] else Fraction(1, 2) if share[i] == share[j] else 0)
    return right / (N * P)


def f_score(leaf_stats, labels, beta) -> Fraction:
    """F_beta of labelled leaves."""
    b = Fraction(beta) ** 2
    hits = sum(p for (_, p), label in zip(leaf_stats, labels, strict=True) if label)
    missed = sum(p for (_, p), label in zip(leaf_stats, labels, strict=True) if not label)
    false = sum(n for (n, _), label in zip(leaf_stats, labels, strict=True) if label)
    return (1 + b) * hits / ((1 + b) * hits + b * missed + false)


def best_f_score(leaf_stats, beta) -> Fraction:
    """The largest F_beta over all labellings."""
    return max(f_score(leaf_stats, labels, beta) for labels in product((0, 1), repeat=len(leaf_stats)))


def omega_f_score(leaf_stats, beta, omega) -> Fraction:
    """F_beta of leaves labelled by omega."""
    return f_score(leaf_stats, [Fraction(omega) * p > n for n, p in leaf_stats], beta)


def weighted_error(leaf_stats, omega) -> Fraction:
    """``(FP + omega FN) / (omega P + N)`` under the best labels."""
    omega = Fraction(omega)
    N, P = sum(n for n, _ in leaf_stats), sum(p for _, p in leaf_stats)
    return sum((min(omega * p, Fraction(n)) for n, p in leaf_stats), Fraction(0)) / (omega * P + N)


def balanced_error(leaf_stats) -> Fraction:
    """Half the sum of the two error rates under the best labels."""
    N, P = sum(n for n, _ in leaf_stats), sum(p for _, p in leaf_stats)
    return sum((min(Fraction(p) / P, Fraction(n) / N) for n, p in leaf_stats), Fraction(0)) / 2


def errors_of(leaf_stats, function):
    """The least value of a function of false positives and negatives, positives, negatives, over all labellings."""
    N, P = sum(n for n, _ in leaf_stats), sum(p for _, p in leaf_stats)
    values = []
    for labels in product((0, 1), repeat=len(leaf_stats)):
        false = sum(n for (n, _), label in zip(leaf_stats, labels, strict=True) if label)
        missed = sum(p for (_, p), label in zip(leaf_stats, labels, strict=True) if not label)
        values.append(function(float(false), float(missed), float(P), float(N)))
    return min(values)
