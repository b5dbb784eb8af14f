"""Depth two, judged by several sums: the first cuts of one feature that are of use, and the trees below them.

A cut is open as long as the least bounds of its two sides may add up to what is of use. The cuts of a feature are
looked at from the middle outwards. What is known of two cuts bounds those between them ("similar support", see
depth_two/similarity_bounds.py): rows that a side gains cost at least their cheapest actions, rows that it loses saved
at most their dearest ones. Where leaves have a minimum, the second holds alone: with fewer rows fewer trees are
allowed. Features of few codes have bounds of all cuts from pair tables as well.

Cost: that of depth_two/solve.py; two passes over the rows for every feature and every cut that bounds leave open.
Symbols: see layout.py.
"""

from typing import NamedTuple

import numpy as np

from policytree.solvers.kernels.base.layout import FEASIBLE, INF, STOP, Rows, Rules, Special, i8, long_1d
from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.depth_two.first_splits import first_split_values
from policytree.solvers.kernels.depth_two.solve import FirstSplits, short_pairs
from policytree.solvers.kernels.enumeration.layout import Criteria, Points, Wanted
from policytree.solvers.kernels.enumeration.lists import join
from policytree.solvers.kernels.enumeration.stumps import least_bound, list_stumps


class Sides(NamedTuple):
    """The two sides of every cut of a feature: at ``t + 1`` of cut t, from t = -1, where all rows are on the right.

    ``least`` and ``most`` are cumulated: what the rows of the left side add to a tree's bound at least, at most.
    ``known``: what both sides cost at least, from elsewhere.
    """

    left: long_1d
    right: long_1d
    least: long_1d
    most: long_1d
    ends: long_1d  # rows of the left side
    known: long_1d


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
def extremes(c, f, splits):
    """What the rows of the left sides of a feature's cuts add to a tree's bound at least and at most, cumulated.

    At ``t + 1`` of cut t; with at most so many splits on a row's path.
    """
    A, B = c.n_losses, c.bins[f]
    least = np.zeros(B + 1, np.int64)
    most = np.zeros(B + 1, np.int64)
    first = len(c.leaf) * A + len(c.minima)
    for i in range(c.n):
        x = 0
        y = 0
        for a in range(A):
            x = min(x, c.planes[a, i])
            y = max(y, c.planes[a, i])
        dearest = 0
        for j in range(first, first + c.prices):
            dearest = max(dearest, c.planes[j, i])
        b = c.codes[f, i] + 1
        least[b] += x
        most[b] += y + splits * dearest
    for b in range(1, B + 1):
        least[b] += least[b - 1]
        most[b] += most[b - 1]
    return least, most


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
def sides_of(c, f, ends, whole, known):
    """Sides of which only those without rows, and with all of them, are known; ``whole`` is what all rows cost."""
    B = c.bins[f]
    least, most = extremes(c, f, 1)
    sides = Sides(np.zeros(B + 1, np.int64), np.zeros(B + 1, np.int64), least, most, ends, known)
    sides.left[0] = c.leaf[0]
    sides.right[0] = whole
    sides.left[B] = whole
    sides.right[B] = c.leaf[0]
    return sides


@kernel(separate=True)
def side_bound(sides, a, b, k, minima):
    """What the sides of cut k - 1 cost at least, from what is known of those at a < k and b > k.

    INF where it leaves a side without rows, or is the same as the cut before.
    """
    ends = sides.ends
    if ends[k] == ends[k - 1] or ends[k] == ends[len(ends) - 1]:
        return INF
    left = sides.left[b] - (sides.most[b] - sides.most[k])
    right = sides.right[a] - (sides.most[k] - sides.most[a])
    if minima == 0:
        left = max(left, sides.left[a] + sides.least[k] - sides.least[a])
        right = max(right, sides.right[b] + sides.least[b] - sides.least[k])
    return max(left + right, sides.known[k])


@kernel(separate=True)
def open_cut(sides, a, b, limit, minima):
    """A cut between a and b that its bound leaves open, near the middle of them; -1 if there is none."""
    first = -1
    last = -1
    for k in range(a + 1, b):
        if side_bound(sides, a, b, k, minima) <= limit:
            first = k if first < 0 else first
            last = k
    if first < 0:
        return -1
    middle = (first + last) // 2
    for k in range(middle, last + 1):
        if side_bound(sides, a, b, k, minima) <= limit:
            return k
    return last


@kernel(takes=(Criteria, i8, i8, long_1d, long_1d, Wanted, Points, i8, long_1d), separate=True)
def list_two_levels(c, f, whole, known, paid, wanted, out, count, control):
    """Put the trees of depth two whose first split is on a feature, and that are of use, into a list.

    Parameters
    ----------
    whole : int
        The least bound of a leaf or one split of all rows.
    known : (B + 1,)
        Bounds of the cuts, at ``t + 1`` of cut t, without the price of the split.
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
    sides = sides_of(c, f, ends, whole, known)
    split = np.empty(2, np.int64)
    split[0] = f
    stack = np.empty((2 * B + 2, 2), np.int64)
    stack[0, 0] = 0
    stack[0, 1] = B
    height = 1
    cuts = 0
    while height > 0 and control[STOP] == 0:
        height -= 1
        a = stack[height, 0]
        b = stack[height, 1]
        limit = wanted.caps[0] - paid[0]
        k = open_cut(sides, a, b, limit, len(c.minima))
        if k < 0:
            continue
        cuts += 1
        m = ends[k]
        x = least_bound(c, order, 0, m)
        y = least_bound(c, order, m, c.n)
        sides.left[k] = x
        sides.right[k] = y
        if x + y <= limit:
            left, n_left = list_stumps(c, order, 0, m, limit - y, control)
            right, n_right = list_stumps(c, order, m, c.n, limit - x, control)
            split[1] = k - 1
            out, count = join(left, n_left, right, n_right, paid, wanted, split, out, count, control)
        stack[height, 0] = a
        stack[height, 1] = k
        stack[height + 1, 0] = k
        stack[height + 1, 1] = b
        height += 2
    return out, count, cuts
