"""Depth two, judged by several sums: the first cuts of one feature that are of use, and the trees below them.

A cut is open as long as the least bounds of its two sides may add up to what is of use. Open cuts are solved in the
middle of the heaviest run of them, and each bounds the others by similarity (depth_two/similarity_bounds.py). Features
of few codes have bounds of all cuts from pair tables as well.

Cost: that of depth_two/solve.py; two passes over the rows for every feature and every cut that bounds leave open.
Symbols: see layout.py.
"""

import numpy as np

from policytree.solvers.kernels.base.layout import FEASIBLE, INF, STOP, Bounds, Deep, Rows, Rules, Special, i8, long_1d
from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.depth_two.first_splits import first_split_values
from policytree.solvers.kernels.depth_two.similarity_bounds import choose_cut, cumulate_values, spread_bounds
from policytree.solvers.kernels.depth_two.solve import FirstSplits, short_pairs
from policytree.solvers.kernels.enumeration.layout import Criteria, Points, Wanted
from policytree.solvers.kernels.enumeration.lists import join
from policytree.solvers.kernels.enumeration.stumps import least_bound, list_stumps


@kernel(separate=True)
def sort_rows(c, f):
    """The rows in the order of a feature's codes, and how many have at most each code."""
    codes, B = c.codes[f], c.bins[f]
    ends = np.zeros(B + 1, np.int64)
    for i in range(c.n):
        ends[codes[i] + 1] += 1
    for b in range(1, B + 1):
        ends[b] += ends[b - 1]
    at = ends[:B].copy()
    order = np.empty(c.n, np.int64)
    for i in range(c.n):
        order[at[codes[i]]] = i
        at[codes[i]] += 1
    return order, ends


@kernel(separate=True)
def value_range(c):
    """Bound every row's share of a tree's bound below, and above with one split; prices need not ascend."""
    A = c.n_losses
    low = np.zeros(c.n, np.int64)
    high = np.zeros(c.n, np.int64)
    first = len(c.leaf) * A + len(c.minima)
    for i in range(c.n):
        for a in range(A):
            low[i] = min(low[i], c.planes[a, i])
            high[i] = max(high[i], c.planes[a, i])
        dearest = 0
        for j in range(first, first + c.prices):
            dearest = max(dearest, c.planes[j, i])
        high[i] += dearest
    return low, high


@kernel(takes=(Rows, Rules, long_1d, Special), separate=True)
def bound_cuts(rows, rules, control, special):
    """Bounds of the trees of depth two with each first cut, at their places, from pair tables.

    -INF where there is none. The price of the split is in them. ``special``: None if tables are all that is needed.
    """
    p = len(rows.bins)
    S = rows.offset[p]
    values = np.full(S, -INF, np.int64)
    by_leaves = np.empty(4, np.int64)
    first = FirstSplits(np.empty(p, np.int64), np.empty(p, np.int64))
    _, finished, _, work = short_pairs(rows, rules, 4, first, control, special)
    if finished:
        first_split_values(work.sums, work.splits, rows, rules, work.rounded.shift, 4, work.own, work.long, values,
                           by_leaves)  # fmt: skip
        for k in range(S):
            if -FEASIBLE < values[k] < FEASIBLE:
                values[k] -= work.rounded.error
    return values


@kernel(separate=True)
def first_bounds(c, f, ends, whole, known, limit):
    """Bounds of the sides of every cut of a feature, where ``whole`` is what all rows cost at least.

    INF where a side has no rows, where the cut before divides the rows alike, and where what is known of the cut
    exceeds the limit.
    """
    B, leaf = c.bins[f], c.leaf[0]
    bounds = Bounds(np.empty(B, np.int64), np.empty(B, np.int64), np.empty(B, np.int64), np.empty(B, np.int64))
    cumulate_values(c.codes[f], B, c.n, value_range(c), bounds, 0)
    least, most = bounds.least, bounds.most
    for t in range(B):
        bounds.left[t] = max(least[t] + leaf, whole - (most[B - 1] - most[t]))
        bounds.right[t] = max(least[B - 1] - least[t] + leaf, whole - most[t])
        if ends[t + 1] == ends[t] or ends[t + 1] == c.n or known[t] > limit:
            bounds.left[t] = INF
    return bounds


@kernel(takes=(Criteria, i8, i8, long_1d, long_1d, Wanted, Points, i8, long_1d), separate=True)
def list_two_levels(c, f, whole, known, paid, wanted, out, count, control):
    """Put the trees of depth two whose first split is on a feature, and that are of use, into a list.

    Parameters
    ----------
    whole : int
        The least bound of a leaf or one split of all rows.
    known : (B,)
        Bounds of the cuts, without the price of the split.
    paid : (V,)
        What the first split adds; ``c`` holds below it, where its feature may be free.
    wanted : Wanted
        Its caps are changed if one tree is all that is wanted.
    out : Points
    count : int
        How many trees are in it.

    Returns
    -------
    out : Points
        Not thinned.
    count : int
    cuts : int
        How many cuts were looked at.
    """
    B = c.bins[f]
    order, ends = sort_rows(c, f)
    bounds = first_bounds(c, f, ends, whole, known, wanted.caps[0] - paid[0])
    rules = Rules(c.n_losses, c.minima, c.prices, c.leaf[0], -1, 0, 0)
    no_bound = np.full(B, -INF, np.int64)
    deep = Deep(no_bound, no_bound)
    split = np.empty(2, np.int64)
    split[0] = f
    cuts = 0
    while control[STOP] == 0:
        limit = wanted.caps[0] - paid[0]
        t = choose_cut(bounds, deep, B - 1, limit + 1)
        if t < 0:
            break
        if known[t] <= limit:
            cuts += 1
            m = ends[t + 1]
            x = least_bound(c, order, 0, m)
            y = least_bound(c, order, m, c.n)
            spread_bounds(bounds, B - 1, t, x, y, rules, True)
            if x + y <= limit:
                left, n_left = list_stumps(c, order, 0, m, limit - y, control)
                right, n_right = list_stumps(c, order, m, c.n, limit - x, control)
                split[1] = t
                out, count = join(left, n_left, right, n_right, paid, wanted, split, out, count, control)
        bounds.left[t] = INF  # solved: it is not chosen again
    return out, count, cuts
