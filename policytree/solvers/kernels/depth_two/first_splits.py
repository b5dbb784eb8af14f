"""Values of first splits, given the best second splits on either side of each.

A side of a first cut is a leaf, or is split once more: by another feature (from the pair tables) or by the feature of
the first cut itself, which needs no table because its codes are already in order.

Cost: one step for every place, sum of a leaf and price; :func:`exact_value` n steps for every feature that is wanted.
Symbols: see base/layout.py.
"""

from typing import NamedTuple

import numpy as np

from policytree.solvers.kernels.base.layout import FEASIBLE, FORBIDDEN, INF, long_1d
from policytree.solvers.kernels.base.sums import costly, price_below, two_leaves
from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.depth_two.pair_tables import is_signed


class OwnSplits(NamedTuple):
    """Best second splits by the feature of the first split: of {code <= t} and of {code > t} for every cut t."""

    low: long_1d
    high: long_1d
    best: long_1d  # scratch, one number for every action


@kernel(separate=True)
def own_splits(widest, rules):
    """Room for the splits by the feature itself, up to ``widest`` codes; none is known yet."""
    own = OwnSplits(np.empty(widest, np.int64), np.empty(widest, np.int64), np.empty(rules.n_losses + 1, np.int64))
    for t in range(widest):
        own.low[t] = INF
        own.high[t] = INF
    return own


@kernel(separate=True, borrows=True)
def split_by_itself(sums, rules, o, B, own):
    """Best two leaves of one feature inside both sides of each of its cuts, in O(B K); to own.low and own.high.

    ``sums[k, o + t]`` are cumulated. With m[u] the best leaf of the codes up to u, {code <= t} costs
    min over u < t, b of m[u] + c_b[t] - c_b[u] = min_b (c_b[t] + min_u (m[u] - c_b[u])): a running minimum per action.
    Counts only grow with u, so the u that leave the second leaf its minima are a prefix that grows with t.
    """
    P, minima, best = rules.n_losses, rules.minima, own.best
    n_counts = len(minima)
    for t in range(B - 1):
        own.low[t] = INF
        own.high[t] = INF
    if B < 3:
        return
    e = o + B - 1
    for side in range(2):
        for b in range(P + 1):
            best[b] = INF
        u = 0 if side == 0 else B - 2
        for step in range(B - 1):
            t = step if side == 0 else B - 2 - step
            while (u < t) if side == 0 else (u > t):
                fits = True
                for j in range(P, P + n_counts):
                    d = np.int64(sums[j, o + t]) - np.int64(sums[j, o + u])
                    fits = fits and (d if side == 0 else -d) >= minima[j - P]
                if not fits:
                    break
                leaf = 0
                for k in range(P + n_counts):
                    c = np.int64(sums[k, o + u]) if side == 0 else np.int64(sums[k, e]) - np.int64(sums[k, o + u])
                    if k < P:
                        leaf = min(leaf, c)
                    elif c < minima[k - P]:
                        leaf = INF
                if leaf < FEASIBLE:
                    best[P] = min(best[P], leaf)
                    for b in range(P):
                        c = np.int64(sums[b, o + u])
                        best[b] = min(best[b], leaf - c if side == 0 else leaf + c)
                u += 1 if side == 0 else -1
            v = best[P]
            for b in range(P):
                if best[b] < FEASIBLE:
                    c = np.int64(sums[b, o + t])
                    v = min(v, best[b] + c if side == 0 else best[b] - c)
            if side == 0:
                own.low[t] = v
            else:
                own.high[t] = v


@kernel(inline="always")
def second_split(inner, table, at, stride, charges, own, a, b, shift):
    """Least value of a side that splits once more, without leaf penalties (INF: none).

    ``inner``: by the feature of the first split, of price ``own``; table[at + j * stride]: by features of price j.
    The side has the rows up to place ``a`` without those up to place ``b`` (-1: none).
    """
    value = INF
    if inner <= 0:
        value = (inner << shift) + charges[own, a] - (charges[own, b] if b >= 0 else 0)
    for j in range(len(charges)):
        x = np.int64(table[at + j * stride])
        if x <= 0:
            value = min(value, (x << shift) + charges[j, a] - (charges[j, b] if b >= 0 else 0))
    return value


@kernel(borrows=True)
def own_splits_signed(c, own):
    """:func:`split_by_itself` for one signed loss, whose cumulated sums ``c`` are.

    With two actions the leaves inside {code <= t} cost min_u m[u] or c[t] + min_u (m[u] - c[u]), whichever is less.
    """
    B = len(c)
    total = np.int64(c[B - 1])
    # No leaf yet: 4 * FORBIDDEN stays positive whatever sum of 32 bits is added, and positive values are forbidden.
    a = np.int64(4 * FORBIDDEN)
    b = np.int64(4 * FORBIDDEN)
    for t in range(B - 1):
        x = np.int64(c[t])
        own.low[t] = min(a, b + x)
        leaf = min(0, x)
        a = min(a, leaf)
        b = min(b, leaf - x)
    a = np.int64(4 * FORBIDDEN)
    b = np.int64(4 * FORBIDDEN)
    for t in range(B - 2, -1, -1):
        x = np.int64(c[t])
        own.high[t] = min(a, b - x)
        leaf = min(0, total - x)
        a = min(a, leaf)
        b = min(b, leaf + x)


@kernel(borrows=True)
def values_signed(c, o, splits, own, penalty, shift, leaves, values):
    """:func:`first_split_values` of one feature, from place ``o`` on, for one signed loss and splits that cost nothing.

    Returns the least values with two, three and four leaves.
    """
    low, high = splits.low[o : o + len(c)], splits.high[o : o + len(c)]
    to = values[o : o + len(c)]
    total = np.int64(c[len(c) - 1])
    two = INF
    three = INF
    four = INF
    for t in range(len(c) - 1):
        left = np.int64(c[t])
        x = (min(0, left) << shift) + penalty
        y = (min(0, total - left) << shift) + penalty
        # Second splits that are forbidden are positive, and become 0: no more than that is a leaf.
        u = min(x, (min(0, own.low[t], np.int64(low[t])) << shift) + 2 * penalty)
        v = min(y, (min(0, own.high[t], np.int64(high[t])) << shift) + 2 * penalty)
        w = min(u + y, x + v)
        two = min(two, x + y)
        three = min(three, w)
        if leaves != 3:
            w = u + v
            four = min(four, w)
        to[t] = w
    return two, three, four


@kernel(separate=True, borrows=True)
def first_split_values(sums, splits, rows, rules, shift, leaves, own, skip, values, by_leaves):
    """values[place]: the value with this first split and at most one more on each side (INF: forbidden).

    Table values count ``1 << shift``, penalties and charges are exact. ``leaves`` of 3 allows a second split on one
    side only. by_leaves[h - 1] becomes the least value of a tree of at most h leaves, h = 1 .. 4. Features to
    ``skip`` are left out.
    """
    minima, penalty, bins, offset = rules.minima, rules.penalty, rows.bins, rows.offset
    leaves_of, charges = sums
    P = rules.n_losses
    p = len(bins)
    S = offset[p]
    leaf = 0
    for k in range(P + len(minima)):
        s = np.int64(leaves_of[k, bins[0] - 1])
        if k < P:
            leaf = min(leaf, s)
        elif s < minima[k - P]:
            for h in range(4):
                by_leaves[h] = INF
            return
    simple = is_signed(rules) and not costly(rules)
    two = INF
    three = INF
    four = INF
    for f in range(p):
        if skip[f]:
            continue
        o = offset[f]
        B = bins[f]
        end = o + B - 1
        if simple:
            c = leaves_of[0, o : o + B]
            own_splits_signed(c, own)
            x, y, w = values_signed(c, o, splits, own, penalty, shift, leaves, values)
            two = min(two, x)
            three = min(three, y)
            four = min(four, w)
            continue
        again = price_below(rows, f, f)
        paid = charges[rows.groups[f], end]
        split_by_itself(leaves_of, rules, o, B, own)
        for t in range(B - 1):
            x, y = two_leaves(leaves_of, rules, o + t, end)
            values[o + t] = INF
            if x > 0 or y > 0:
                continue
            u = second_split(own.low[t], splits.low, o + t, S, charges, again, o + t, -1, shift) + 2 * penalty
            v = second_split(own.high[t], splits.high, o + t, S, charges, again, end, o + t, shift) + 2 * penalty
            x = (x << shift) + penalty
            y = (y << shift) + penalty
            two = min(two, x + y + paid)
            u = min(u, x)
            v = min(v, y)
            w = min(u + y, x + v) + paid
            three = min(three, w)
            if leaves != 3:
                w = u + v + paid
                four = min(four, w)
            values[o + t] = w
    by_leaves[0] = (leaf << shift) + penalty
    by_leaves[1] = min(by_leaves[0], two)
    by_leaves[2] = min(by_leaves[1], three)
    by_leaves[3] = min(by_leaves[2], four)


@kernel(borrows=True)
def best_of_side(sums, B, o, totals, rules):
    """Least loss of two leaves of one side, whose sums up to code u stand at ``sums[u, o:]`` (INF: forbidden)."""
    P, minima = rules.n_losses, rules.minima
    best = INF
    for u in range(B - 1):
        x = 0
        y = 0
        for k in range(P):
            z = sums[u, o + k]
            x = min(x, z)
            y = min(y, totals[o + k] - z)
        for j in range(len(minima)):
            z = sums[u, o + P + j]
            if z < minima[j] or totals[o + P + j] - z < minima[j]:
                x = INF
                y = 0
        best = min(best, x + y)
    return best


@kernel(borrows=True)
def best_levels_of_side(sums, B, at):
    """Least loss of two leaves of one side that divide its levels at will, for one signed loss; not cumulated sums."""
    best = 0
    for level in range(B):
        best += min(0, sums[level, at])
    return best


@kernel(separate=True, borrows=True)
def exact_value(rows, rules, leaves, f, t, wanted, sums, ordered):
    """Value with first split ``t`` of ``f`` and the best second splits, if any, in int64.

    ``wanted`` (2 p): the features that the second split of the low side may be by, then those of the high side. The
    others must be known to be no better. ``sums`` (codes + 1, 2 (K + prices)) is scratch: both sides' sums of a code
    stand side by side, so that a row touches one line of memory. ``leaves`` of 3 allows a second split on one side
    only. Codes of features from ``ordered`` on are levels, which second splits divide at will; None: no feature has
    levels.
    """
    planes, n = rows.planes, rows.n
    P, minima, penalty = rules.n_losses, rules.minima, rules.penalty
    K = P + len(minima)
    n_sums = K + rules.prices
    p = len(rows.bins)
    c = rows.codes[f]
    totals = sums[len(sums) - 1]
    totals[:] = 0
    for i in range(n):
        o = 0 if c[i] <= t else n_sums
        for k in range(n_sums):
            totals[o + k] += planes[k, i]
    value = 0
    leaf_0 = 0
    leaf_1 = 0
    for k in range(K):
        x, y = totals[k], totals[n_sums + k]
        if k < P:
            leaf_0 = min(leaf_0, x)
            leaf_1 = min(leaf_1, y)
        elif x < minima[k - P] or y < minima[k - P]:
            return INF
    leaf_0 += penalty
    leaf_1 += penalty
    if n_sums > K:
        value += totals[K + rows.groups[f]] + totals[n_sums + K + rows.groups[f]]
    side_0 = leaf_0
    side_1 = leaf_1
    for g in range(p):
        if not (wanted[g] or wanted[p + g]):
            continue
        B = rows.bins[g]
        d = rows.codes[g]
        sums[:B] = 0
        for i in range(n):
            o = 0 if c[i] <= t else n_sums
            to = sums[np.int64(d[i])]
            for k in range(n_sums):
                to[o + k] += planes[k, i]
        if ordered is None or g < ordered:
            for u in range(1, B):
                for k in range(2 * n_sums):
                    sums[u, k] += sums[u - 1, k]
        for s in range(2):
            if not wanted[s * p + g]:
                continue
            if ordered is None or g < ordered:
                best = best_of_side(sums, B, s * n_sums, totals, rules) + 2 * penalty
            else:
                best = best_levels_of_side(sums, B, s * n_sums) + 2 * penalty
            if n_sums > K:
                best += totals[s * n_sums + K + price_below(rows, f, g)]
            if s == 0:
                side_0 = min(side_0, best)
            else:
                side_1 = min(side_1, best)
    if leaves == 3:
        return value + min(side_0 + leaf_1, leaf_0 + side_1)
    return value + side_0 + side_1
