"""Second splits by groups of levels, in exact sums: what each side of every cut of an ordered feature loses with them.

Each level goes to the action that is better for it on that side, so that two leaves lose the sum of the negative parts
of the levels' sums. One grouping is best, it differs from cut to cut, and a table is read once to know its value at all
cuts of a feature. Where levels alone decide, many first splits tie: exact sums tell so at once.

Cost: n additions and one step for every cell, for each pair of a feature of levels and an ordered one.
Symbols: T[l, u] is the sum over the rows of level l whose code is at most u; one signed loss.
"""

import numpy as np

from policytree.solvers.kernels.base.layout import INF
from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.depth_two.first_splits import own_splits_signed

LOW, HIGH, SUM = 0, 1, 2  # rows of what level_seconds fills


@kernel(separate=True)
def table_of_levels(rows, f, g, cumulated):
    """Sums of the rows by level of f and code of g, (L, codes), cumulated over codes if these are in order."""
    T = np.zeros((rows.bins[f], rows.bins[g]), np.int64)
    c, d, losses = rows.codes[f], rows.codes[g], rows.planes[0]
    for i in range(rows.n):
        T[np.int64(c[i]), np.int64(d[i])] += losses[i]
    if cumulated:
        for level in range(len(T)):
            row = T[level]
            for u in range(1, len(row)):
                row[u] += row[u - 1]
    return T


@kernel(separate=True)
def level_seconds(rows, ordered, long):
    """Return the losses of all cuts' sides with the best second split by levels, and cumulated sums; (3, places).

    All are exact. Codes of features from ``ordered`` on are levels. Cuts of ``long`` features are left out.
    """
    p = len(rows.bins)
    out = np.zeros((3, rows.offset[p]), np.int64)
    for f in range(ordered, p):
        for g in range(ordered):
            if long[g]:
                continue
            T = table_of_levels(rows, f, g, True)
            o, last = rows.offset[g], rows.bins[g] - 1
            for t in range(last + 1):
                low = 0
                high = 0
                total = 0
                for level in range(len(T)):
                    x = T[level, t]
                    low += min(0, x)
                    high += min(0, T[level, last] - x)
                    total += x
                out[LOW, o + t] = min(out[LOW, o + t], low)
                out[HIGH, o + t] = min(out[HIGH, o + t], high)
                out[SUM, o + t] = total
    return out


@kernel(separate=True, borrows=True)
def bounds_with_levels(rows, rules, leaves, work, by_levels, values):
    """values[place]: a bound of the trees with this first split; exact where no rounded second split comes near.

    ``by_levels``: from :func:`level_seconds`. Other second splits are known in rounded sums (``work.splits``). First
    splits by levels are forbidden here: they are solved elsewhere (kernels/level_groups/).
    """
    splits, own, ordered, long = work.splits, work.own, work.ordered, work.long
    sums = work.sums.leaves[0]
    penalty, shift, error = rules.penalty, work.rounded.shift, work.rounded.error
    for t in range(rows.offset[ordered], rows.offset[len(rows.bins)]):
        values[t] = INF
    for f in range(ordered):
        if long[f]:
            continue
        o, last = rows.offset[f], rows.offset[f + 1] - 1
        own_splits_signed(sums[o : last + 1], own)
        total = by_levels[SUM, last]
        for t in range(last - o):
            x = by_levels[SUM, o + t]
            leaf_0 = min(0, x) + penalty
            leaf_1 = min(0, total - x) + penalty
            a = np.int64(min(splits.low[o + t], 0))
            b = np.int64(min(splits.high[o + t], 0))
            a = min(by_levels[LOW, o + t], (min(a, own.low[t]) << shift) - error) + 2 * penalty
            b = min(by_levels[HIGH, o + t], (min(b, own.high[t]) << shift) - error) + 2 * penalty
            a = min(a, leaf_0)
            b = min(b, leaf_1)
            values[o + t] = min(a + leaf_1, leaf_0 + b) if leaves == 3 else a + b
