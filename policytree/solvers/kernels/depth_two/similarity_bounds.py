"""Bounds of all cuts of a feature from a few that were solved: "similar support".

Along one feature the left side only grows. If rows D move from right to left, the best tree of the left side changes
by no less than what D costs at least, and by no more than what D can cost at most:

    V(L) + least(D) <= V(L + D) <= V(L) + most(D)

(Angelino et al., CORELS, JMLR 2018; Brita et al., ConTree, AAAI 2025). With minimum counts a tree may become
forbidden when rows leave, so only the bounds from larger to smaller sets hold.

The first inequality leaves out the splits of a tree that no longer divide the rows when D leaves. Where test costs are
shared, such a split may have paid for its test group. If all features of a group have one price, a later split on the
group pays no more than that. If they differ (``rules.uneven``), it may pay more, so that the inequality does not hold
for sides of two levels and more. A side of one level has no later split.

Say all trees of a depth below ``need`` are known to be no better than the best one. Then one side of every cut has the
depth need - 1 at least: it is *deep*. It has ``need`` leaves at least, and each has its price. Both sides cost at least
what a deep tree on one side and any tree on the other cost.

Cost: n steps to make, B to spread from one cut.
Symbols: see base/layout.py; ``cutoff`` is what the best tree so far leaves.
"""

import numpy as np

from policytree.solvers.kernels.base.layout import FEASIBLE, INF, Bounds, Deep, i8
from policytree.solvers.kernels.base.sums import costly, two_leaves
from policytree.solvers.kernels.compiling import kernel


@kernel(separate=True)
def row_values(rows, rules, splits):
    """Bound every row's cost below, and above where a path has so many splits, each of the largest price."""
    planes, P = rows.planes, rules.n_losses
    low = np.empty(rows.n, np.int64)
    high = np.empty(rows.n, np.int64)
    for i in range(rows.n):
        low[i] = min(0, planes[0, i]) if P > 0 else 0
        high[i] = max(0, planes[0, i]) if P > 0 else 0
    for k in range(1, P):
        for i in range(rows.n):
            low[i] = min(low[i], planes[k, i])
            high[i] = max(high[i], planes[k, i])
    if costly(rules):
        dearest = planes[P + len(rules.minima) + rules.prices - 1]
        for i in range(rows.n):
            high[i] += splits * dearest[i]
    return low, high


@kernel(separate=True, borrows=True)
def cumulate_values(c, B, n, values, bounds, o):
    """Cumulate what rows with the codes c cost, into bounds.least, bounds.most from o on."""
    low, high = values
    least, most = bounds.least, bounds.most
    for t in range(o, o + B):
        least[t] = 0
        most[t] = 0
    for i in range(n):
        t = o + np.int64(c[i])
        least[t] += low[i]
        most[t] += high[i]
    x = np.int64(0)
    y = np.int64(0)
    for t in range(o, o + B):
        x += least[t]
        y += most[t]
        least[t] = x
        most[t] = y


@kernel(separate=True)
def row_bounds(rows, rules, f, splits, bounds, o):
    """Cumulated least and largest value of the rows with each code of f, into bounds.least, bounds.most from o on.

    ``splits``: how many there may be on a path below, which rows may have to pay as well.
    """
    cumulate_values(rows.codes[f], rows.bins[f], rows.n, row_values(rows, rules, splits), bounds, o)


@kernel(separate=True)
def bound_by_duals(rows, rules, f, bounds):
    """Sides of every cut of f cost no less than the sum of their rows' duals."""
    plane = rows.planes[rules.n_losses + len(rules.minima) + rules.prices]
    c = rows.codes[f]
    B = rows.bins[f]
    sums = np.zeros(B, np.int64)
    total = 0
    for i in range(rows.n):
        sums[c[i]] += plane[i]
        total += plane[i]
    left = 0
    for t in range(B - 1):
        left += sums[t]
        bounds.left[t] = max(bounds.left[t], left + rules.beyond)
        bounds.right[t] = max(bounds.right[t], total - left + rules.beyond)


@kernel(separate=True)
def start_bounds(rows, rules, f, bounds, keep, look_ahead):
    """Bounds of every cut of f before any is solved: a side is a leaf, or pays for two leaves at least, or its worth.

    ``keep``: bounds that stand there already stay where they are better.
    """
    P, penalty, least = rules.n_losses, rules.penalty, bounds.least
    planes = rows.planes
    c = rows.codes[f]
    B = rows.bins[f]
    K = P + len(rules.minima)
    sums = np.zeros((K, B), np.int64)
    for k in range(K):
        for i in range(rows.n):
            sums[k, c[i]] += planes[k, i]
        for t in range(1, B):
            sums[k, t] += sums[k, t - 1]
    for t in range(B - 1):
        x, y = two_leaves(sums, rules, t, B - 1)
        # A forbidden side forbids the cut: none of its leaves could be larger.
        if x < FEASIBLE:
            x = min(x + penalty, least[t] + 2 * penalty) if look_ahead else least[t] + penalty
        if y < FEASIBLE:
            rest = least[B - 1] - least[t]
            y = min(y + penalty, rest + 2 * penalty) if look_ahead else rest + penalty
        bounds.left[t] = max(bounds.left[t], x) if keep else x
        bounds.right[t] = max(bounds.right[t], y) if keep else y
    if rules.beyond >= 0:
        bound_by_duals(rows, rules, f, bounds)


@kernel(separate=True, borrows=True)
def spread_bounds(bounds, cuts, at, left_value, right_value, rules, similar):
    """Note what the sides of cut ``at`` cost at least, and what that says of every other cut of the feature."""
    left, right, least, most = bounds.left, bounds.right, bounds.least, bounds.most
    left[at] = max(left[at], left_value)
    right[at] = max(right[at], right_value)
    if not similar:
        return
    constrained = len(rules.minima) > 0 or rules.uneven != 0
    least_at = least[at]
    most_at = most[at]
    for t in range(at):
        left[t] = max(left[t], left_value - (most_at - most[t]))
        if not constrained:
            right[t] = max(right[t], right_value + (least_at - least[t]))
    for t in range(at + 1, cuts):
        right[t] = max(right[t], right_value - (most[t] - most_at))
        if not constrained:
            left[t] = max(left[t], left_value + (least[t] - least_at))


@kernel(separate=True, borrows=True)
def start_deep(bounds, deep, cuts, need, penalty, keep):
    """Bounds of both sides of every cut if the side is deep: it has at least as many leaves as the node needs levels.

    ``keep``: bounds that stand there already stay where they are better.
    """
    least = bounds.least
    for t in range(cuts):
        x = least[t] + need * penalty
        y = least[cuts] - least[t] + need * penalty
        deep.left[t] = max(deep.left[t], x) if keep else x
        deep.right[t] = max(deep.right[t], y) if keep else y


@kernel(separate=True, borrows=True)
def spread_deep(bounds, deep, cuts, at, value, on_left, rules, similar):
    """Note what a side of cut ``at`` costs at least if it is deep, and what that says of every other cut.

    A deep tree of a smaller side is as deep on this one. A deep tree of a larger side either is as deep on this one, or
    some of its splits do not divide the rows that are here: then it has a leaf more than a tree that will do here.
    """
    least, most = bounds.least, bounds.most
    to = deep.left if on_left else deep.right
    known = bounds.left[at] if on_left else bounds.right[at]
    to[at] = max(to[at], value)
    if not similar:
        return
    larger = min(value, known + rules.penalty)
    constrained = len(rules.minima) > 0 or rules.uneven != 0
    for t in range(cuts):
        if t == at:
            continue
        a = min(t, at)
        b = max(t, at)
        if (t < at) == on_left:
            to[t] = max(to[t], value - (most[b] - most[a]))
        elif not constrained:
            to[t] = max(to[t], larger + (least[b] - least[a]))


@kernel(inline="always")
def bounds_by_deep_side(bounds, deep, t):
    """Bound the cost of a tree with cut t below if its left side is deep, and if its right side is."""
    left = bounds.left[t]
    right = bounds.right[t]
    return max(left, deep.left[t]) + right, left + max(right, deep.right[t])


@kernel(inline="always")
def bound_of_cut(bounds, deep, t):
    """Bound the cost of a tree with cut t below."""
    left, right = bounds_by_deep_side(bounds, deep, t)
    return min(left, right)


@kernel(takes=(Bounds, Deep, i8, i8), for_python=False, separate=True, borrows=True)
def choose_cut(bounds, deep, cuts, cutoff):
    """The middle, by mass, of the heaviest run of cuts whose bound is below the cutoff; -1 if there is none."""
    least, most = bounds.least, bounds.most
    best = -1
    best_mass = -1
    t = 0
    while t < cuts:
        if bound_of_cut(bounds, deep, t) >= cutoff:
            t += 1
            continue
        start = t
        while t < cuts and bound_of_cut(bounds, deep, t) < cutoff:
            t += 1
        base = most[start] - least[start]
        mass = most[t - 1] - least[t - 1] - base
        if mass > best_mass:
            best_mass = mass
            u = start
            while u + 1 < t and most[u + 1] - least[u + 1] - base <= mass // 2:
                u += 1
            best = u
    return best


@kernel(separate=True, borrows=True)
def choose_many(bounds, deep, cuts, cutoff, limit, chosen):
    """Up to ``limit`` live cuts spread by mass over all of them, ascending; returns how many."""
    least, most = bounds.least, bounds.most
    n = 0
    mass = 0
    live = 0
    for trial in range(2):
        seen = 0
        for t in range(cuts):
            if bound_of_cut(bounds, deep, t) >= cutoff:
                continue
            w = most[t] - least[t]
            if t > 0:
                w -= most[t - 1] - least[t - 1]
            seen += max(w, 1)
            if trial == 0:
                live += 1
            elif n < limit and (live <= limit or seen * (limit + 1.0) >= mass * (n + 1.0)):
                chosen[n] = t
                n += 1
        mass = seen
    return n


@kernel(borrows=True)
def include(chosen, n, t):
    """Make ``t`` one of the ascending ``chosen[:n]``, instead of its neighbour if they are full; returns how many."""
    j = 0
    while j < n and chosen[j] < t:
        j += 1
    if j < n and chosen[j] == t:
        return n
    if n == len(chosen):
        chosen[min(j, n - 1)] = t
        return n
    for i in range(n, j, -1):
        chosen[i] = chosen[i - 1]
    chosen[j] = t
    return n + 1


@kernel(borrows=True)
def least_bound(bounds, deep, cuts):
    """The least of the bounds of all cuts."""
    low = INF
    for t in range(cuts):
        low = min(low, bound_of_cut(bounds, deep, t))
    return low
