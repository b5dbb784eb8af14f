"""The best tree of depth two whose first split divides the levels of one feature, among all groupings of these.

Which levels are best together depends on the second splits, so that no order of levels holds the best first grouping
(``problem/split_columns.py::best_grouping``): all of them are looked at. Groupings share their tables, however. With
T[l, u] the sum of the rows of level l that a second feature's cut u sends left, a grouping's sums are those of its
levels, and in the order of a Gray code neighbours differ by one level:

    groupings      {0}    {0, 1}    {1}    {1, 2}    {0, 1, 2}  ...
    sums of u      T[0]   + T[1]    - T[0] + T[2]    + T[0]     ...       what is left over: T[all] less the sums

So a grouping costs what one cut of an ordered feature costs: one step for every cell of a row of a table. The last
level is on the side that is not written down: a grouping and its complement are one question.

Sums are int64, so that the many groupings that tie where levels alone decide need no second look.

Cost: n additions for every second feature, and ``2**(L - 1)`` steps for every code of these.
Symbols: L levels; two actions, whose losses differ by one signed number a row.
"""

import numpy as np

from policytree.solvers.kernels.base.layout import INF, STOP, Rows, Rules, i8, long_1d
from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.depth_two.level_tables import table_of_levels


@kernel(borrows=True)
def next_grouping(k, T, x):
    """Move one level: from the sums x of the grouping before the k-th to those of the k-th, whose bits are returned."""
    level = 0
    while (k >> level) & 1 == 0:
        level += 1
    bits = k ^ (k >> 1)
    row = T[level]
    if (bits >> level) & 1 == 1:
        for u in range(len(x)):
            x[u] += row[u]
    else:
        for u in range(len(x)):
            x[u] -= row[u]
    return bits


@kernel(separate=True, borrows=True)
def seconds_by_cuts(T, all_levels, x, inside, outside):
    """Lower inside[S] and outside[S] to the best second split by a table's cuts, within a grouping S and beside it.

    Two leaves of different actions lose what one cut leaves on its low side, or on its high side.
    """
    W = len(x)
    x[:] = 0
    for k in range(1, len(inside)):
        S = next_grouping(k, T, x)
        a0 = 0
        a1 = 0
        c0 = 0
        c1 = 0
        for u in range(W):
            y = x[u]
            z = all_levels[u] - y
            a0 = min(a0, y)
            a1 = max(a1, y)
            c0 = min(c0, z)
            c1 = max(c1, z)
        inside[S] = min(inside[S], min(a0, x[W - 1] - a1))
        outside[S] = min(outside[S], min(c0, all_levels[W - 1] - x[W - 1] - c1))


@kernel(separate=True, borrows=True)
def seconds_by_levels(T, all_levels, x, inside, outside):
    """The same by the best grouping of the levels of a table's other feature."""
    x[:] = 0
    for k in range(1, len(inside)):
        S = next_grouping(k, T, x)
        a = 0
        c = 0
        for u in range(len(x)):
            y = x[u]
            a += min(0, y)
            c += min(0, all_levels[u] - y)
        inside[S] = min(inside[S], a)
        outside[S] = min(outside[S], c)


@kernel(takes=(Rows, Rules, i8, i8, i8, long_1d), separate=True)
def best_first_grouping(rows, rules, leaves, ordered, f, control):
    """The least value of trees whose first split divides the levels of f, and the levels of one side as bits.

    Codes of features from ``ordered`` on are levels, f among them. ``leaves`` of 3 allows a second split on one side
    only. If stopped, some second splits were not looked at: the tree is worth no more than the value.
    """
    L = rows.bins[f]
    own = table_of_levels(rows, f, f, False)
    inside = np.zeros(1 << (L - 1), np.int64)
    outside = np.zeros(1 << (L - 1), np.int64)
    levels = np.zeros(L, np.int64)
    for level in range(L):
        levels[level] = own[level, level]
    seconds_by_levels(own, levels, np.empty(L, np.int64), inside, outside)
    for g in range(len(rows.bins)):
        if g == f:
            continue
        if control[STOP] != 0:
            break
        T = table_of_levels(rows, f, g, g < ordered)
        all_levels = np.zeros(rows.bins[g], np.int64)
        for level in range(L):
            for u in range(len(all_levels)):
                all_levels[u] += T[level, u]
        x = np.empty(len(all_levels), np.int64)
        if g < ordered:
            seconds_by_cuts(T, all_levels, x, inside, outside)
        else:
            seconds_by_levels(T, all_levels, x, inside, outside)
    total = 0
    for level in range(L):
        total += levels[level]
    best = INF
    best_bits = 0
    for S in range(1, 1 << (L - 1)):
        within = 0
        for level in range(L - 1):
            if (S >> level) & 1 == 1:
                within += levels[level]
        leaf = min(0, within) + rules.penalty
        other = min(0, total - within) + rules.penalty
        split = min(leaf, inside[S] + 2 * rules.penalty)
        other_split = min(other, outside[S] + 2 * rules.penalty)
        value = min(split + other, leaf + other_split) if leaves == 3 else split + other_split
        if value < best:
            best = value
            best_bits = S
    return best, best_bits
