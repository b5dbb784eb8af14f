"""The next test of a tree that is cheap to apply, by the greedy score of Zhang and Gionis (2022).

A node's objects are added up once, for all codes of all columns. Of an object i with probability p, and q the larger
of p and the threshold, two numbers are added beside its class: a = p / (p(S) - q) and b = a q. The gain of the two
submodular functions in a branch is then, for all objects together,

    p(branch) - [p(branch) > threshold] * (pairs(branch) / pairs(S)) * (p(branch) * sum a - sum b),

since an object's own truncation can only bite where the whole branch is below the threshold. So a cut costs as much as
the sums of its two sides, whatever the number of objects.

Cost: O(n m) for the sums of a node, O(S K) for the scores of its cuts.
Symbols: see layout.py.
"""

import numpy as np

from policytree.solvers.kernels.base.layout import i8, int_1d, long_1d, real_1d, real_2d
from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.test_costs.layout import (
    BALANCE,
    IMPURE_PAIRS,
    IMPURITY,
    IMPURITY_PER_COST,
    MULTIWAY,
    NodeRows,
    Objects,
    Scoring,
    Tests,
)

TIE = 1e-12  # scores that differ by less, relative to the better one, are equal: the first test wins


@kernel(inline="always")
def mixed_pairs(sums, K):
    """Pairs of objects of different classes."""
    n = 0.0
    same = 0.0
    for k in range(K):
        n += sums[k]
        same += sums[k] * sums[k]
    return 0.5 * (n * n - same)


@kernel(inline="always")
def weight_of(sums, K):
    """Summed weight of objects."""
    w = 0.0
    for k in range(K):
        w += sums[K + k]
    return w


@kernel
def impurity(sums, K, gini):
    """Weight times entropy (in bits), or times Gini index."""
    w = weight_of(sums, K)
    if w <= 0.0:
        return 0.0
    out = 0.0
    for k in range(K):
        x = sums[K + k]
        if x > 0.0 and x < w:
            out += x * (1.0 - x / w) if gini == 1 else -x * np.log2(x / w)
    return out


@kernel
def object_count(sums, K):
    """Number of objects."""
    n = 0.0
    for k in range(K):
        n += sums[k]
    return n


@kernel
def node_totals(objects, node, K):
    """Objects and weight of every class in a node: (2 K,)."""
    total = np.zeros(2 * K + 2)
    for r in range(node.start, node.end):
        i = node.rows[r]
        total[objects.labels[i]] += 1.0
        total[K + objects.labels[i]] += objects.weights[i]
    return total


@kernel(takes=(Objects, NodeRows, i8))
def class_totals(objects, node, K):
    """Number of objects and weight of every class, for Python."""
    return node_totals(objects, node, K)


@kernel
def add_up(objects, tests, node, scoring, total, sums):
    """Sums of all codes of all columns; completes the node's totals by a and b."""
    K = (sums.shape[1] - 2) // 2
    m = len(tests.offset) - 1
    sums[:] = 0.0
    mass = weight_of(total, K) / objects.total
    for r in range(node.start, node.end):
        i = node.rows[r]
        y = objects.labels[i]
        w = objects.weights[i]
        p = w / objects.total
        q = max(p, scoring.threshold)
        a = p / (mass - q) if mass > q else 0.0
        b = a * q
        total[2 * K] += a
        total[2 * K + 1] += b
        for j in range(m):
            s = tests.offset[j] + objects.codes[i, j]
            sums[s, y] += 1.0
            sums[s, K + y] += w
            sums[s, 2 * K] += a
            sums[s, 2 * K + 1] += b


@kernel
def add_branch(branch, K, objects, scoring, pairs, terms):
    """Add a branch to a test's terms.

    terms: probability of the branch with most objects, its objects; efficiency; impurity; weighted pairs; heaviest
    branch, lightest branch; branches with objects.
    """
    n = object_count(branch, K)
    if n < 0.5:
        return
    w = weight_of(branch, K)
    p = w / objects.total
    if n > terms[1]:
        terms[0], terms[1] = p, n
    mixed = mixed_pairs(branch, K)
    terms[2] += p
    if p > scoring.threshold:
        terms[2] -= mixed / pairs * (p * branch[2 * K] - branch[2 * K + 1])
    terms[3] += impurity(branch, K, scoring.gini) / objects.total
    terms[4] += p * mixed
    terms[5] = max(terms[5], p)
    terms[6] = min(terms[6], p)
    terms[7] += 1.0


@kernel
def score(terms, scoring, price, mass, before, pairs):
    """Score a test with these terms, in a node of this probability, impurity and mixed pairs."""
    reduction = before - terms[3]
    if reduction < TIE * before:
        reduction = 0.0
    if scoring.rule == IMPURITY:
        return reduction
    if scoring.rule == IMPURITY_PER_COST:
        return reduction / price
    if scoring.rule == IMPURE_PAIRS:
        return (mass * pairs - terms[4]) / price
    if scoring.rule == BALANCE:
        return terms[6] - terms[5]
    return (mass - terms[0] + terms[2] + scoring.complexity * reduction) / price


@kernel(takes=(Objects, Tests, NodeRows, Scoring, real_1d, real_2d))
def best_test(objects, tests, node, scoring, prices, sums):
    """The first of the best tests of a node: its column, its cut (MULTIWAY) and its score; column -1 if none splits.

    ``prices`` (m,), positive, divide the scores; ``sums`` (S, 2 K + 2) is room to work in.
    """
    K = (sums.shape[1] - 2) // 2
    total = node_totals(objects, node, K)
    add_up(objects, tests, node, scoring, total, sums)
    mass = weight_of(total, K) / objects.total
    before = impurity(total, K, scoring.gini) / objects.total
    pairs = max(mixed_pairs(total, K), 0.5)
    count = object_count(total, K)
    low = np.zeros(2 * K + 2)
    high = np.zeros(2 * K + 2)
    terms = np.zeros(8)
    column = -1
    at = 0
    best = -np.inf
    for j in range(len(prices)):
        first, last = tests.offset[j], tests.offset[j + 1]
        low[:] = 0.0
        steps = 1 if tests.multiway[j] else last - first - 1
        for t in range(steps):
            terms[:] = 0.0
            terms[6] = np.inf
            if tests.multiway[j]:
                for s in range(first, last):
                    add_branch(sums[s], K, objects, scoring, pairs, terms)
            else:
                if object_count(sums[first + t], K) < 0.5:
                    continue  # as the cut before
                low += sums[first + t]
                if object_count(low, K) > count - 0.5:
                    break  # nothing is left on the other side
                high[:] = total - low
                add_branch(low, K, objects, scoring, pairs, terms)
                add_branch(high, K, objects, scoring, pairs, terms)
            if terms[7] < 1.5:
                continue
            z = score(terms, scoring, prices[j], mass, before, pairs)
            if column < 0 or z > best + TIE * abs(best):
                column, at, best = j, MULTIWAY if tests.multiway[j] else t, z
    return column, at, best


@kernel(takes=(Objects, NodeRows, i8, i8, i8, int_1d, long_1d))
def divide(objects, node, column, cut, n_branches, room, ends):
    """Put a node's objects in the order of their branches, each in the order it had; ``ends`` (n_branches,)."""
    ends[:] = 0
    for r in range(node.start, node.end):
        code = objects.codes[node.rows[r], column]
        ends[code if cut == MULTIWAY else (1 if code > cut else 0)] += 1
    at = node.start
    for v in range(n_branches):
        at, ends[v] = at + ends[v], at
    for r in range(node.start, node.end):
        i = node.rows[r]
        code = objects.codes[i, column]
        v = code if cut == MULTIWAY else (1 if code > cut else 0)
        room[ends[v]] = i
        ends[v] += 1
    node.rows[node.start : node.end] = room[node.start : node.end]
