"""Leaves and trees of one split, judged by several sums: the least bound, and all trees that are of use.

The rows are ``order[start:stop]``: sorted by a first split's feature, both its sides are such ranges.

Cost: one pass over the rows for every feature and every sum that is needed; bounds need one criterion's.
Symbols: see layout.py.
"""

import numpy as np

from policytree.solvers.kernels.base.layout import INF, i4, i8, long_1d
from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.enumeration.layout import STUMP, Criteria
from policytree.solvers.kernels.enumeration.lists import SMALLEST, make_points, thin, with_room


@kernel(separate=True)
def totals_of(c, order, start, stop):
    """Sums of all planes over the rows."""
    sums = np.zeros(len(c.planes), np.int64)
    for k in range(len(c.planes)):
        d = c.planes[k]
        s = 0
        for i in range(start, stop):
            s += d[order[i]]
        sums[k] = s
    return sums


@kernel(separate=True)
def sum_codes(c, order, start, stop, f, first, count, sums, at):
    """Cumulated sums of some planes over the codes of a feature, into ``sums[at:]``."""
    codes, B = c.codes[f], c.bins[f]
    for k in range(count):
        h = sums[at + k]
        d = c.planes[first + k]
        for b in range(B):
            h[b] = 0
        for i in range(start, stop):
            r = order[i]
            h[codes[r]] += d[r]
        for b in range(1, B):
            h[b] += h[b - 1]


@kernel(separate=True)
def allowed(c, totals):
    """Whether the rows may be a leaf."""
    first = len(c.leaf) * c.n_losses
    short = 0
    for k in range(len(c.minima)):
        short += totals[first + k] < c.minima[k]
    return short == 0


@kernel
def charge(c, v, f, totals):
    """Return a split's addition to the bound (v = 0) or to a criterion, from the rows' sums of all planes."""
    if c.prices == 0:
        return 0
    return totals[len(c.leaf) * c.n_losses + len(c.minima) + v * c.prices + c.groups[f]]


@kernel(separate=True)
def stump_bounds(c, f, totals, sums, bounds):
    """The least bound of the two leaves of every cut of a feature, with their leaves' and the split's own parts.

    ``sums`` holds the cumulated sums of the bound's planes, then of the counted ones. INF where a leaf is forbidden.
    """
    A, n_counts = c.n_losses, len(c.minima)
    first = len(c.leaf) * A
    paid = charge(c, 0, f, totals) + 2 * c.leaf[0]
    for t in range(c.bins[f] - 1):
        x = 0
        y = 0
        for a in range(A):
            x = min(x, sums[a, t])
            y = min(y, totals[a] - sums[a, t])
        for k in range(n_counts):
            s = sums[A + k, t]
            if s < c.minima[k] or totals[first + k] - s < c.minima[k]:
                x = INF
        bounds[t] = x + y + paid


@kernel(separate=True)
def scan_feature(c, order, start, stop, f, totals, sums, bounds):
    """Sums and bounds of every cut of a feature; see :func:`stump_bounds`."""
    A = c.n_losses
    sum_codes(c, order, start, stop, f, 0, A, sums, 0)
    sum_codes(c, order, start, stop, f, len(c.leaf) * A, len(c.minima), sums, A)
    stump_bounds(c, f, totals, sums, bounds)


@kernel(takes=(Criteria, long_1d, i8, i8), separate=True)
def least_bound(c, order, start, stop):
    """The least bound of a leaf or a tree of one split; INF if neither is allowed."""
    A = c.n_losses
    totals = totals_of(c, order, start, stop)
    widest = 1
    for f in range(len(c.bins)):
        widest = max(widest, c.bins[f])
    sums = np.empty((A + len(c.minima) + 1, widest), np.int64)
    bounds = np.empty(widest, np.int64)
    best = INF
    if allowed(c, totals):
        x = 0
        for a in range(A):
            x = min(x, totals[a])
        best = x + c.leaf[0]
    for f in range(len(c.bins)):
        scan_feature(c, order, start, stop, f, totals, sums, bounds)
        for t in range(c.bins[f] - 1):
            best = min(best, bounds[t])
    return best


@kernel(separate=True)
def add_leaves(c, totals, limit, points, count, control):
    """Put the leaves that are of use into a list, one for every action."""
    if not allowed(c, totals):
        return points, count
    A, V = c.n_losses, len(c.leaf)
    for a in range(A + 1):
        points, count = with_room(points, count, control)
        for v in range(V):
            points.values[count, v] = c.leaf[v] + (totals[v * A + a - 1] if a > 0 else 0)
        tree = points.trees[count]
        tree[0] = -1
        tree[1] = -1
        tree[2] = i4(a)
        tree[3] = i4(a)
        if points.values[count, 0] <= limit:
            count += 1
    return points, count


@kernel(separate=True)
def add_cut(c, f, t, totals, sums, limit, points, count, control):
    """Put the trees of one cut that are of use into a list, one for every pair of actions.

    ``sums`` holds the cumulated sums of the planes of the bound and of all criteria.
    """
    A, V = c.n_losses, len(c.leaf)
    for a in range(A + 1):
        for b in range(A + 1):
            if a == b:  # that is a leaf, but for the price
                continue
            points, count = with_room(points, count, control)
            for v in range(V):
                x = 2 * c.leaf[v] + charge(c, v, f, totals)
                if a > 0:
                    x += sums[v * A + a - 1, t]
                if b > 0:
                    x += totals[v * A + b - 1] - sums[v * A + b - 1, t]
                points.values[count, v] = x
            tree = points.trees[count]
            tree[0] = i4(f)
            tree[1] = i4(t)
            tree[2] = i4(a)
            tree[3] = i4(b)
            if points.values[count, 0] <= limit:
                count += 1
    return points, count


@kernel(takes=(Criteria, long_1d, i8, i8, i8, long_1d), separate=True)
def list_stumps(c, order, start, stop, limit, control):
    """All leaves and trees of one split whose bound is within the limit, thinned, and their number."""
    A, V = c.n_losses, len(c.leaf)
    totals = totals_of(c, order, start, stop)
    widest = 1
    for f in range(len(c.bins)):
        widest = max(widest, c.bins[f])
    sums = np.empty((V * A + len(c.minima) + 1, widest), np.int64)
    bounds = np.empty(widest, np.int64)
    points = make_points(SMALLEST, V, STUMP)
    points, count = add_leaves(c, totals, limit, points, 0, control)
    for f in range(len(c.bins)):
        scan_feature(c, order, start, stop, f, totals, sums, bounds)
        any_open = False
        for t in range(c.bins[f] - 1):
            any_open = any_open or bounds[t] <= limit
        if any_open:
            sum_codes(c, order, start, stop, f, A, (V - 1) * A, sums, A)
            for t in range(c.bins[f] - 1):
                if bounds[t] <= limit:
                    points, count = add_cut(c, f, t, totals, sums, limit, points, count, control)
    return thin(points, count, control)
