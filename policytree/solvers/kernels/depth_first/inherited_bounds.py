"""Bounds that one cut's sides hand on to the next cut's: similar support, two levels deep.

A node of depth four tries the cuts of a feature. Either side of a cut is a node of depth three, which bounds *its*
cuts, of every feature, by trees of depth two. From one cut to the next only a few rows D change sides. So what is known
of the inner cuts stays known, less what D can make of it (see depth_two/similarity_bounds.py):

    outer cut t:    left side L      inner cut (g, u):   V(L, g <= u) and V(L, g > u)
    outer cut t':   L + D or L - D   the same, moved by the rows of D with g <= u, and with g > u

Inner cuts that were refuted by a wide margin stay refuted: only the tight ones are solved anew. Where none is left,
the whole side is refuted before depth two is looked at.

Cost: |D| and one step for every place of all features, when the outer cut changes; a step for every place of a child,
and n steps for every feature where deep trees are needed.
Symbols: see base/layout.py and stack.py. Places are the problem's: offset[0] of a column, and the problem's cut.
"""

import numpy as np
from numba import types

from policytree.solvers.kernels.base.addresses import by_address
from policytree.solvers.kernels.base.layout import INF, UNLIMITED, Bounds, Deep, Rules, i8
from policytree.solvers.kernels.base.sums import costly
from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.depth_first.stack import (
    LEFT,
    LEFT_SIDE,
    RIGHT_SIDE,
    Levels,
    bounds_at,
    deep_at,
    rows_at,
)
from policytree.solvers.kernels.depth_two.similarity_bounds import bound_of_cut, cumulate_values, row_values, start_deep


@kernel(inline="always")
def shares_inner(levels, level):
    """Whether the sides of a node's cuts hand on their bounds."""
    node = levels.nodes[level]
    return node.useful_depth == 4 and node.leaves == UNLIMITED and levels.inner.shape[3] > 0


@kernel(inline="always")
def side_being_solved(node):
    """The side of a node's cut that is being solved."""
    return LEFT_SIDE if (node.phase == LEFT) == (node.right_first == 0) else RIGHT_SIDE


@kernel(borrows=True)
def forget_inner(levels, level):
    """Begin with a feature: nothing is known of its cuts' sides."""
    levels.inner_at[level, LEFT_SIDE] = -1
    levels.inner_at[level, RIGHT_SIDE] = -1
    levels.inner_at[level, 2 + LEFT_SIDE] = 0
    levels.inner_at[level, 2 + RIGHT_SIDE] = 0


@kernel
def values_of_moved(rows, rules, index, a, b, least):
    """Bound the cost of each of the rows index[a:b] below (``least``), or above in a tree of depth two."""
    P = rules.n_losses
    dearest = P + len(rules.minima) + rules.prices - 1
    values = np.empty(b - a, np.int64)
    for i in range(a, b):
        r = index[i]
        v = 0
        for k in range(P):
            v = min(v, rows.planes[k, r]) if least else max(v, rows.planes[k, r])
        if costly(rules) and not least:
            v += 2 * rows.planes[dearest, r]
        values[i - a] = v
    return values


@kernel(takes=(Levels, i8, i8, i8, Rules), for_python=False)
def move_inner(levels, level, side, t, rules):
    """Make the bounds that one side of an earlier cut left behind those of the same side of cut t."""
    was = levels.inner_at[level, side]
    levels.inner_at[level, side] = t
    low, high = levels.inner[level, side, 0], levels.inner[level, side, 1]
    constrained = len(rules.minima) > 0 or rules.uneven != 0  # a smaller set says nothing of a larger one
    if was < 0 or (constrained and (t > was) == (side == LEFT_SIDE)):
        for j in range(len(low)):
            low[j] = -INF
            high[j] = -INF
        return
    rows, index = rows_at(levels, level), levels.index[level]
    a = levels.ends[level, min(t, was) + 1]
    b = levels.ends[level, max(t, was) + 1]
    grows = (t > was) == (side == LEFT_SIDE)
    # D joins: V(side + D) >= V(side) + least(D). D leaves: V(side - D) >= V(side) - most(D).
    values = values_of_moved(rows, rules, index, a, b, grows)
    sign = 1 if grows else -1
    total = 0
    for i in range(b - a):
        total += values[i]
    widest = 0
    for f in range(len(rows.bins)):
        widest = max(widest, rows.bins[f])
    by_code = np.empty(widest, np.int64)
    for f in range(len(rows.bins)):
        c = rows.codes[f]
        B = rows.bins[f]
        for v in range(B):
            by_code[v] = 0
        for i in range(a, b):
            by_code[c[index[i]]] += values[i - a]
        column = levels.columns[level, f]
        o = levels.offset[0, column]
        end = levels.offset[0, column + 1]
        mine = levels.offset[level, f]
        moved = 0
        # Cuts of the problem from one of the node's codes to before the next divide the node's rows as that code does.
        # Places before the node's first code keep old bounds. The node's sides have no cut there, so none is read.
        for v in range(B):
            moved += by_code[v]
            first = o + levels.cuts[level, mine + v]
            last = o + levels.cuts[level, mine + v + 1] if v + 1 < B else end
            for j in range(first, last):
                low[j] = max(low[j] + sign * moved, -INF)
                high[j] = max(high[j] + sign * (total - moved), -INF)


@kernel(separate=True, borrows=True)
def inherit_inner(levels, level):
    """Raise the bounds of the feature that a node has opened to what the parent's last cut left behind."""
    parent = levels.nodes[level - 1]
    node = levels.nodes[level]
    side = side_being_solved(parent)
    low, high = levels.inner[level - 1, side, 0], levels.inner[level - 1, side, 1]
    f = node.feature
    bounds = bounds_at(levels, level)
    o = levels.offset[0, levels.columns[level, f]]
    mine = levels.offset[level, f]
    for u in range(levels.bins[level, f] - 1):
        j = o + levels.cuts[level, mine + u]
        bounds.left[u] = max(bounds.left[u], low[j])
        bounds.right[u] = max(bounds.right[u], high[j])


@kernel(separate=True, borrows=True)
def keep_inner(levels, level):
    """Leave the bounds of a node's feature to the parent's next cut.

    A cut of the problem that falls between two codes of the node divides its rows as the code before it does.
    """
    parent = levels.nodes[level - 1]
    side = side_being_solved(parent)
    low, high = levels.inner[level - 1, side, 0], levels.inner[level - 1, side, 1]
    f = levels.nodes[level].feature
    bounds = bounds_at(levels, level)
    column = levels.columns[level, f]
    o = levels.offset[0, column]
    mine = levels.offset[level, f]
    B = levels.bins[level, f]
    for u in range(B - 1):
        for j in range(o + levels.cuts[level, mine + u], o + levels.cuts[level, mine + u + 1]):
            low[j] = bounds.left[u]
            high[j] = bounds.right[u]


@kernel(separate=True, borrows=True)
def inherited_bound(levels, level):
    """Bound the cost of a node's trees with a split below, by the tables of the parent's last solved cut."""
    side = side_being_solved(levels.nodes[level - 1])
    low, high = levels.inner[level - 1, side, 0], levels.inner[level - 1, side, 1]
    least = INF
    for f in range(levels.nodes[level].features):
        o = levels.offset[0, levels.columns[level, f]]
        mine = levels.offset[level, f]
        for u in range(levels.bins[level, f] - 1):
            j = o + levels.cuts[level, mine + u]
            least = min(least, low[j] + high[j])  # the price of the question would only add to it
    return least


@kernel(takes=(Levels, i8, Rules), for_python=False)
def inherited_deep_bound(levels, level, rules):
    """The same of trees as deep as the node needs; uses the arrays of the node's bounds."""
    node = levels.nodes[level]
    side = side_being_solved(levels.nodes[level - 1])
    low, high = levels.inner[level - 1, side, 0], levels.inner[level - 1, side, 1]
    rows, bounds, deep = rows_at(levels, level), bounds_at(levels, level), deep_at(levels, level)
    values = row_values(rows, rules, 0)
    least = INF
    for f in range(node.features):
        o = levels.offset[0, levels.columns[level, f]]
        mine = levels.offset[level, f]
        cuts = rows.bins[f] - 1
        cumulate_values(rows.codes[f], rows.bins[f], rows.n, values, bounds, 0)
        start_deep(bounds, deep, cuts, node.need, rules.penalty, False)
        for u in range(cuts):
            j = o + levels.cuts[level, mine + u]
            bounds.left[u] = low[j]
            bounds.right[u] = high[j]
            least = min(least, bound_of_cut(bounds, deep, u))
    return least


call_move_inner = by_address((Levels, i8, i8, i8, Rules), types.none)
call_deep_bound = by_address((Levels, i8, Rules), i8)


@kernel(takes=(Bounds, Deep, i8, i8, i8), for_python=False, separate=True, borrows=True)
def choose_near(bounds, deep, cuts, cutoff, last):
    """The middle of the run of open cuts that is nearest to the last cut solved; -1 if there is none."""
    least, most = bounds.least, bounds.most
    up = last + 1
    while up < cuts and bound_of_cut(bounds, deep, up) >= cutoff:
        up += 1
    down = last
    while down >= 0 and bound_of_cut(bounds, deep, down) >= cutoff:
        down -= 1
    if up >= cuts and down < 0:
        return -1
    near = up if down < 0 or (up < cuts and up - last <= last - down) else down
    start = near
    while start > 0 and bound_of_cut(bounds, deep, start - 1) < cutoff:
        start -= 1
    end = near
    while end + 1 < cuts and bound_of_cut(bounds, deep, end + 1) < cutoff:
        end += 1
    base = most[start] - least[start]
    half = (most[end] - least[end] - base) // 2
    u = start
    while u < end and most[u + 1] - least[u + 1] - base <= half:
        u += 1
    return u
