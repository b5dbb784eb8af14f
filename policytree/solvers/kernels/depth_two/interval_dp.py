"""One feature: the best partition of its values into intervals, by dynamic programming.

A tree on one feature makes intervals of its values, and any intervals can be made. Rows without a value form a leaf
of their own or join one interval, whichever: every split may send them either way.

    state 0: the first i values are in leaves          state 1: and so are the rows without a value
    V(i) = least over j < i and k of V(j) + loss of action k on values j .. i - 1, plus the price of a leaf

Neighbouring values are one where no two actions are strictly better on either: wherever a leaf ends between them, its
end can be moved to one side without loss. So it is only where leaves need no number of rows.

The terms that depend on j are kept as a running least for every action, so that every value is read once. A leaf must
come to its minima: as i grows, more and more starts j are far enough away.

Cost: n K^2 steps to find values that are one; n K steps for a price per leaf, however many leaves; n K for every
further leaf where their number is limited.
Symbols: n values, K actions, C counted minima; j is the start of a leaf, i its end.
"""

from typing import NamedTuple

import numpy as np
from numba import types

from policytree.solvers.kernels.base.layout import FEASIBLE, INF, i8, int_2d, long_1d, long_2d, long_3d
from policytree.solvers.kernels.compiling import kernel

VALUE, LEAVES, START = 0, 1, 2
ALONE = -1  # start of the leaf of rows without a value


class Intervals(NamedTuple):
    """Sums over the first values, and of the rows without a value."""

    sums: long_2d  # (n + 1, K)
    counts: long_2d  # (n + 1, C)
    minima: long_1d  # (C,)
    missing_sums: long_1d  # (K,)
    missing_counts: long_1d  # (C,)
    any_missing: types.boolean


@kernel(takes=(long_2d,))
def useful_ends(sums):
    """Where leaves may end: after how many values, from 0 to all of them. ``sums`` (n + 1, K) are of the first ones."""
    n, K = len(sums) - 1, sums.shape[1]
    ends = np.empty(n + 1, np.int64)
    ends[0] = 0
    found = 1
    for i in range(1, n):
        start, differ = ends[found - 1], False
        for a in range(K - 1):
            for b in range(a + 1, K):
                before = (sums[i, a] - sums[start, a]) - (sums[i, b] - sums[start, b])
                after = (sums[i + 1, a] - sums[i, a]) - (sums[i + 1, b] - sums[i, b])
                differ = differ or (before < 0 and after > 0) or (before > 0 and after < 0)
            if differ:
                break
        if differ:
            ends[found] = i
            found += 1
    if n > 0:
        ends[found] = n
        found += 1
    return ends[:found].copy()


@kernel(takes=(Intervals, i8, long_3d, long_3d, int_2d, long_3d), borrows=True)
def add_leaf(intervals, price, source, target, start, least):
    """Costs of the first i values for every i, with one leaf more than in ``source``.

    With ``source`` and ``target`` the same array, which holds the costs of no value: with any number of leaves.

    source, target : (2, 2, n + 1), the value and the number of leaves of both states; ties go to fewer leaves.
    start : (2, n + 1), where the last leaf begins: 2 j, or 2 j + 1 if rows without a value are in it.
    least : (3, K, 3), work space: of leaves in state 0, in state 1, and of those that take the missing rows in.
    """
    sums, counts, minima, missing_counts = intervals.sums, intervals.counts, intervals.minima, intervals.missing_counts
    n, K, C = len(sums) - 1, sums.shape[1], len(minima)
    kinds = 3 if intervals.any_missing else 1
    for kind in range(3):
        for k in range(K):
            least[kind, k, VALUE] = INF
    first, first_with = 0, 0  # starts before these are far enough from i
    for i in range(1, n + 1):
        # Starts lie before i: where ``source`` is ``target``, their costs are final already.
        while first < i:
            enough = True
            for c in range(C):
                enough &= counts[i, c] - counts[first, c] >= minima[c]
            if not enough:
                break
            for state in range(1 if kinds == 1 else 2):
                v, leaves = source[state, VALUE, first], source[state, LEAVES, first]
                if v < FEASIBLE:
                    for k in range(K):
                        w = v - sums[first, k]
                        if w < least[state, k, VALUE] or (
                            w == least[state, k, VALUE] and leaves < least[state, k, LEAVES]
                        ):
                            least[state, k, VALUE] = w
                            least[state, k, LEAVES] = leaves
                            least[state, k, START] = 2 * first
            first += 1
        while kinds == 3 and first_with < i:
            enough = True
            for c in range(C):
                enough &= counts[i, c] - counts[first_with, c] + missing_counts[c] >= minima[c]
            if not enough:
                break
            v, leaves = source[0, VALUE, first_with], source[0, LEAVES, first_with]
            if v < FEASIBLE:
                for k in range(K):
                    w = v - sums[first_with, k] + intervals.missing_sums[k]
                    if w < least[2, k, VALUE] or (w == least[2, k, VALUE] and leaves < least[2, k, LEAVES]):
                        least[2, k, VALUE] = w
                        least[2, k, LEAVES] = leaves
                        least[2, k, START] = 2 * first_with + 1
            first_with += 1
        target[0, VALUE, i] = INF
        target[1, VALUE, i] = INF
        for kind in range(kinds):
            state = min(kind, 1)
            best, leaves, at = target[state, VALUE, i], target[state, LEAVES, i], start[state, i]
            for k in range(K):
                if least[kind, k, VALUE] < FEASIBLE:
                    w = least[kind, k, VALUE] + sums[i, k] + price
                    if w < best or (w == best and least[kind, k, LEAVES] + 1 < leaves):
                        best = w
                        leaves = least[kind, k, LEAVES] + 1
                        at = np.int32(least[kind, k, START])
            target[state, VALUE, i] = best
            target[state, LEAVES, i] = leaves
            start[state, i] = at


@kernel(takes=(long_2d, long_2d, long_1d, i8, i8), separate=True)
def best_intervals(sums, counts, minima, price, most):
    """The best intervals of values of which none is missing, at most ``most`` of them.

    sums, counts : (n + 1, K) and (n + 1, C), of the first values.

    Returns what they cost (INF if none will do), and after how many values each of them ends.
    """
    K, C = sums.shape[1], counts.shape[1]
    ends = useful_ends(sums) if len(minima) == 0 else np.arange(len(sums))
    n = len(ends) - 1
    few, few_counts = np.empty((n + 1, K), np.int64), np.empty((n + 1, C), np.int64)
    for i in range(n + 1):
        for k in range(K):
            few[i, k] = sums[ends[i], k]
        for c in range(C):
            few_counts[i, c] = counts[ends[i], c]
    values = Intervals(few, few_counts, minima, np.zeros(K, np.int64), np.zeros(C, np.int64), False)
    least = np.empty((3, K, 3), np.int64)
    costs, start = np.full((2, 2, n + 1), INF, np.int64), np.zeros((2, n + 1), np.int32)
    costs[0, :, 0] = 0
    add_leaf(values, price, costs, costs, start, least)
    best, leaves = costs[0, VALUE, n], costs[0, LEAVES, n]
    if best >= FEASIBLE:
        return INF, np.empty(0, np.int64)
    out = np.empty(leaves, np.int64)
    at = n
    if leaves <= most:
        for j in range(leaves - 1, -1, -1):
            out[j] = ends[at]
            at = np.int64(start[0, at]) // 2
        return best, out
    most = min(most, n)
    starts = np.zeros((most, 2, n + 1), np.int32)
    costs[:] = INF
    costs[0, :, 0] = 0
    best, leaves = INF, 0
    for j in range(most):
        more = np.full((2, 2, n + 1), INF, np.int64)
        add_leaf(values, price, costs, more, starts[j], least)
        costs = more
        if costs[0, VALUE, n] < best:
            best = costs[0, VALUE, n]
            leaves = j + 1
    for j in range(leaves - 1, -1, -1):
        out[j] = ends[at]
        at = np.int64(starts[j, 0, at]) // 2
    return best, out[:leaves]
