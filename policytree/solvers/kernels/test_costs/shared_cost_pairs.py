"""The best tree of depth two where a group of columns is paid for once on a path.

Below a first split by f, columns of f's group are free, and so are those that were paid for before. Along the codes of
f one side only grows; its sums by the codes of h answer all second splits by h, on both sides:

    rows in the order of f:   | code 0 | code 1 | ... | code t || code t + 1 | ... |
    sums by the codes of h:   <------ left of cut t ----------><----- the rest ---->

Cost: O(p^2 (n + B^2 K)).
Symbols: see base/layout.py.
"""

import numpy as np

from policytree.solvers.kernels.base.layout import INF, STOP, Rows, Rules, flags_1d, i8, long_1d
from policytree.solvers.kernels.compiling import kernel


@kernel
def leaf_value(sums, rules):
    """A leaf of these sums (losses, counts), without its penalty; INF if a count is below its minimum."""
    value = 0
    for k in range(rules.n_losses):
        value = min(value, sums[k])
    for k in range(len(rules.minima)):
        if sums[rules.n_losses + k] < rules.minima[k]:
            return INF
    return value


@kernel
def in_order(rows, f, order, ends):
    """Rows in the order of their codes of f; ``ends`` of every code."""
    codes = rows.codes[f]
    B = rows.bins[f]
    ends[: B + 1] = 0
    for i in range(rows.n):
        ends[codes[i] + 1] += 1
    for b in range(B):
        ends[b + 1] += ends[b]
    for i in range(rows.n):
        order[ends[codes[i]]] = i
        ends[codes[i]] += 1


@kernel
def sums_of_codes(rows, n_planes):
    """Sums of the first planes for every code of every feature: (S, n_planes)."""
    out = np.zeros((rows.offset[len(rows.bins)], n_planes), np.int64)
    for f in range(len(rows.bins)):
        for i in range(rows.n):
            s = rows.offset[f] + rows.codes[f, i]
            for k in range(n_planes):
                out[s, k] += rows.planes[k, i]
    return out


@kernel
def second_splits(rows, rules, pair, order, ends, totals, sides, which, charges, control):
    """Improve, for every cut of f, the best of either side by second splits of h; ``pair`` is (f, h).

    ``sides`` (2, B) values, ``which`` (2, 2, B) column and cut, ``charges`` (2, B) what h costs on either side. What a
    stopped search leaves behind are valid values, if not the best.
    """
    f, h = pair
    M = rules.n_losses + len(rules.minima)
    B = rows.bins[h]
    first = rows.offset[h]
    left = np.zeros((B, M), np.int64)
    part = np.zeros((4, M), np.int64)  # left of h and right of h, of either side of f
    whole = np.zeros((2, M), np.int64)
    for b in range(B):
        for k in range(M):
            whole[1, k] += totals[first + b, k]
    at = 0
    for t in range(rows.bins[f] - 1):
        if control[STOP]:
            return
        while at < ends[t]:
            i = order[at]
            for k in range(M):
                x = rows.planes[k, i]
                left[rows.codes[h, i], k] += x
                whole[0, k] += x
                whole[1, k] -= x
            at += 1
        part[:] = 0
        for s in range(B - 1):
            for k in range(M):
                part[0, k] += left[s, k]
                part[2, k] += totals[first + s, k] - left[s, k]
                part[1, k] = whole[0, k] - part[0, k]
                part[3, k] = whole[1, k] - part[2, k]
            for side in range(2):
                value = leaf_value(part[2 * side], rules) + leaf_value(part[2 * side + 1], rules)
                value += charges[side, t] + 2 * rules.penalty
                if value < sides[side, t]:
                    sides[side, t] = value
                    which[side, 0, t], which[side, 1, t] = h, s


@kernel(takes=(Rows, Rules, flags_1d, long_1d, i8, long_1d, long_1d, long_1d))
def solve_two(rows, rules, free, owner, depth, values, tree, control):
    """The best tree of depth one or two, its value with penalties and charges.

    ``free`` (p,): columns that were paid for. ``owner`` (p,): their groups. Into ``values`` (p,) goes the best value of
    every first split; into ``tree`` (6,) column and cut of the first split, of the left one, of the right one; column
    -1 for a leaf. When the search was stopped, the tree is the best so far.
    """
    p = len(rows.bins)
    M = rules.n_losses + len(rules.minima)
    totals = sums_of_codes(rows, M + rules.prices)
    whole = np.zeros(M + rules.prices, np.int64)
    for k in range(M + rules.prices):
        for i in range(rows.n):
            whole[k] += rows.planes[k, i]
    best = leaf_value(whole, rules) + rules.penalty
    tree[:] = -1
    widest = 1
    for f in range(p):
        widest = max(widest, rows.bins[f])
    order = np.empty(rows.n, np.int64)
    ends = np.empty(widest + 1, np.int64)
    sides = np.empty((2, widest), np.int64)
    which = np.empty((2, 2, widest), np.int64)
    charges = np.zeros((2, widest), np.int64)
    cumulated = np.zeros((widest, M + rules.prices), np.int64)
    for f in range(p):
        in_order(rows, f, order, ends)
        total = np.zeros(M + rules.prices, np.int64)
        for t in range(rows.bins[f] - 1):
            total += totals[rows.offset[f] + t]
            cumulated[t] = total
            sides[0, t] = leaf_value(total, rules) + rules.penalty
            sides[1, t] = leaf_value(whole - total, rules) + rules.penalty
            which[:, 0, t] = -1
        for h in range(p if depth > 1 else 0):
            charges[:] = 0
            if rules.prices > 0 and not free[h] and owner[h] != owner[f]:
                for t in range(rows.bins[f] - 1):
                    charges[0, t] = cumulated[t, M + rows.groups[h]]
                    charges[1, t] = whole[M + rows.groups[h]] - charges[0, t]
            second_splits(rows, rules, (f, h), order, ends, totals, sides, which, charges, control)
        values[f] = INF
        price = whole[M + rows.groups[f]] if rules.prices > 0 and not free[f] else 0
        for t in range(rows.bins[f] - 1):
            value = sides[0, t] + sides[1, t] + price
            values[f] = min(values[f], value)
            if value < best:
                best = value
                tree[0], tree[1] = f, t
                for side in range(2):
                    tree[2 + 2 * side], tree[3 + 2 * side] = which[side, 0, t], which[side, 1, t]
    return best
