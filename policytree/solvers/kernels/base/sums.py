"""Sums over rows, and what leaves made of them cost.

Cost: one pass over the rows for every plane; for the sums of all features, one for every plane and feature.
Symbols: see layout.py.
"""

import numpy as np

from policytree.solvers.kernels.base.layout import INF, LARGEST, Rounded, Rows, Rules, i4
from policytree.solvers.kernels.compiling import kernel


@kernel(inline="always")
def costly(rules):
    """Whether splits have a price."""
    return rules.prices > 0


@kernel(inline="always")
def charge(rows, rules, f):
    """Return the cost of a split of all rows on a feature."""
    paid = 0
    if costly(rules):
        plane = rows.planes[rules.n_losses + len(rules.minima) + rows.groups[f]]
        for i in range(rows.n):
            paid += plane[i]
    return paid


@kernel(inline="always")
def price_below(rows, f, g):
    """Return the price of a split on feature g below one on feature f: zero if both are of one test group."""
    return 0 if rows.owners[f] >= 0 and rows.owners[f] == rows.owners[g] else rows.groups[g]


@kernel
def rows_below(rows, f):
    """The rows with the prices that hold below a split on feature f."""
    if rows.owners[f] < 0:
        return rows
    groups = np.empty(len(rows.groups), np.int64)
    for g in range(len(groups)):
        groups[g] = price_below(rows, f, g)
    return Rows(rows.codes, rows.planes, rows.bins, rows.offset, groups, rows.owners, rows.n)


@kernel(separate=True, borrows=True)
def dual_bound(rows, rules):
    """Bound the cost of any tree on all rows below by the row duals; only where these are known."""
    plane = rows.planes[rules.n_losses + len(rules.minima) + rules.prices]
    total = rules.beyond
    for i in range(rows.n):
        total += plane[i]
    return total


@kernel(takes=(Rows, Rules), separate=True, borrows=True)
def node_sums(rows, rules):
    """Value of all rows as one leaf (INF if forbidden), and the bound "every row gets its best action"."""
    planes, P, minima, n = rows.planes, rules.n_losses, rules.minima, rows.n
    value = 0
    for k in range(P + len(minima)):
        s = 0
        for i in range(n):
            s += planes[k, i]
        if k < P:
            value = min(value, s)
        elif s < minima[k - P]:
            value = INF
    low = 0
    for i in range(n):
        x = 0
        for k in range(P):
            x = min(x, planes[k, i])
        low += x
    return value, low


@kernel(separate=True)
def round_planes(rows, rules):
    """Planes in int32: losses rounded so that their sums fit, counts as they are.

    A common power of two is left out first: whole numbers stay small, and nothing is lost.
    """
    planes, P, n = rows.planes, rules.n_losses, rows.n
    n_counts = len(rules.minima)
    n_planes = P + n_counts
    to = np.empty((n_planes, n), np.int32)
    errors = np.empty(n, np.int64)
    below = 0
    above = 0
    bits = 0
    for i in range(n):
        x = 0
        y = 0
        for k in range(P):
            x = min(x, planes[k, i])
            y = max(y, planes[k, i])
            bits |= planes[k, i]
        below -= x
        above += y
    limit = LARGEST if n_counts > 0 or P > 1 else 2 * LARGEST  # gains over the worst action are larger than losses
    shift = 0
    while bits != 0 and (bits >> shift) & 1 == 0:
        shift += 1
    while (max(below, above) >> shift) + n > limit:
        shift += 1
    half = (1 << shift) >> 1
    total = 0
    exact = True
    for i in range(n):
        worst = 0
        for k in range(P):
            x = (planes[k, i] + half) >> shift
            to[k, i] = i4(x)
            worst = max(worst, (x << shift) - planes[k, i])
            exact = exact and (x << shift) == planes[k, i]
        errors[i] = worst
        total += worst
    if not exact:  # all losses may have been rounded down, which makes trees look cheaper and not dearer
        total = max(total, 1)
    for k in range(P, n_planes):
        for i in range(n):
            to[k, i] = i4(planes[k, i])
    return Rounded(to, errors, shift, total)


@kernel(inline="always")
def rounding_range(rounded, n):
    """How much a tree of depth two may cost beyond its rounded value less the errors of both sides."""
    return 2 * rounded.error + n * ((1 << rounded.shift) >> 1) if rounded.error > 0 else 0


@kernel
def prefix_sums(rows, first, n_planes):
    """Cumulated sums of planes ``first``, ... over every feature's codes, shape (n_planes, S), int64."""
    codes, planes, bins, offset, n = rows.codes, rows.planes, rows.bins, rows.offset, rows.n
    p = len(bins)
    sums = np.zeros((n_planes, offset[p]), np.int64)
    for k in range(n_planes):
        h = sums[k]
        d = planes[first + k]
        for f in range(p):
            c = codes[f]
            o = offset[f]
            for i in range(n):
                h[o + np.int64(c[i])] += d[i]
            for t in range(o + 1, o + bins[f]):
                h[t] += h[t - 1]
    return sums


@kernel(separate=True)
def charge_sums(rows, rules):
    """Cumulated charges over every feature's codes, shape (J, S): zero if splits are free."""
    if not costly(rules):
        return np.zeros((1, rows.offset[len(rows.bins)]), np.int64)
    return prefix_sums(rows, rules.n_losses + len(rules.minima), rules.prices)


@kernel(separate=True)
def rounded_sums(rows, rounded):
    """Cumulated sums of rounded planes over every feature's codes, shape (planes, S), int32."""
    codes, bins, offset = rows.codes, rows.bins, rows.offset
    K = len(rounded.planes)
    sums = np.zeros((K, offset[len(bins)]), np.int32)
    for k in range(K):
        h = sums[k]
        d = rounded.planes[k]
        for f in range(len(bins)):
            c = codes[f]
            o = offset[f]
            for i in range(len(d)):
                x = o + np.int64(c[i])
                h[x] = i4(h[x] + d[i])
            for t in range(o + 1, o + bins[f]):
                h[t] = i4(h[t] + h[t - 1])
    return sums


@kernel(borrows=True)
def two_leaves(sums, rules, at, end):
    """Values of the leaves of the codes up to place ``at`` and of the others up to ``end``; INF if forbidden."""
    P, minima = rules.n_losses, rules.minima
    x = 0
    y = 0
    for k in range(P + len(minima)):
        s = np.int64(sums[k, at])
        z = np.int64(sums[k, end]) - s
        if k < P:
            x = min(x, s)
            y = min(y, z)
        else:
            x = INF if s < minima[k - P] else x
            y = INF if z < minima[k - P] else y
    return x, y


@kernel(takes=(Rows, Rules), separate=True)
def best_one_split(rows, rules):
    """Best two leaves: value with the price of the split, without penalties (INF: none), feature, and cut.

    Ties go to the first feature and cut.
    """
    K = rules.n_losses + len(rules.minima)
    sums = prefix_sums(rows, 0, K)
    best = INF
    best_f = -1
    best_t = -1
    for f in range(len(rows.bins)):
        o = rows.offset[f]
        last = o + rows.bins[f] - 1
        paid = charge(rows, rules, f)
        for t in range(o, last):
            x, y = two_leaves(sums, rules, t, last)
            if x + y + paid < best:
                best = x + y + paid
                best_f = f
                best_t = t - o
    return best, best_f, best_t
