"""Proofs without a depth limit: depth first within thresholds, over row sets.

A set works on the split whose two sides' bounds have the least sum, on the side with the wider gap, and lets it run
until that sum passes the second least by ``slack``, the set's best tree, or its budget. So the search goes where the
bound is weakest, and comes back as soon as another split is weaker: an AO* search that keeps one path and a table
(Korf's recursive best first search, for trees).

Bounds of a set R, of which V(R) is the value:

    leaf       V <= penalty + the least sum of losses of an action
    floor      V >= the leaf, or two penalties and the least loss of every row
    actions    every action has a leaf or its rows lose it: V >= floor + sum over k of min(penalty, regret of k)
    support    a leaf must save more than a penalty over the worst that its rows can lose, or the tree without it is no
               worse: a side that cannot is never made, and its split is out for the whole subtree
    siblings   V(R') >= V(R) - worst(R without R') + floor(R' without R) for any two sets: R's sums hold what it shares
               with each side R' of its parent, so every result improves all siblings at no cost
    known      what the table holds

Cost: one pass over the rows for every feature that is left, and a few passes over the splits.
Symbols: see row_set_layout.py.
"""

import numpy as np

from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.layout import INF, LANES, STOP, i8, long_1d
from policytree.solvers.kernels.row_set_layout import (
    BEST,
    BUDGET,
    ENTERED,
    KEPT,
    LEAST,
    N_PLACES,
    N_ROWS,
    PLACE,
    SET_KEY1,
    SET_KEY2,
    SIDE,
    SPLIT,
    SUMMED,
    TOTAL_WORST,
    UNSPLIT,
    Path,
    RowSetProblem,
    SumScratch,
    known_1d,
)
from policytree.solvers.kernels.row_set_table import place_of
from policytree.solvers.kernels.two_valued import add_vectors


@kernel(separate=True)
def sum_up(problem, index, n, places, n_places, scratch):
    """Sums of a set's rows by place, cumulated, of all features that have a split left; and in total."""
    offset, start, items = problem.offset, problem.start, problem.items
    Q = problem.numbers.shape[1]
    sums, total = scratch.sums, scratch.total
    flat, all_sums = sums.reshape(sums.size), total.reshape(Q)
    numbers = problem.numbers.reshape(problem.numbers.size)
    sums[:] = 0
    total[:] = 0
    for i in range(n):
        r = np.int64(index[i])
        add_vectors(all_sums, 0, numbers, r * Q, Q // LANES)
        for s in range(start[r], start[r + 1]):
            add_vectors(flat, np.int64(items[s]) * Q, numbers, r * Q, Q // LANES)
    last = -1
    for j in range(n_places):
        f = problem.feature[places[j]]
        if f == last:
            continue
        last = f
        first, end, common = offset[f], offset[f + 1], problem.common[f]
        for q in range(problem.n_sums):
            rest = total[0, q]
            for t in range(first, end):
                rest -= sums[t, q]
            sums[common, q] = rest
            for t in range(first + 1, end):
                sums[t, q] += sums[t - 1, q]


@kernel(separate=True)
def bounds_of(w, problem):
    """Of a set with the sums w: the value of the leaf, a bound of any tree, and whether a leaf may save its penalty."""
    P, penalty = problem.n_losses, problem.penalty
    leaf = 0
    for k in range(P):
        leaf = min(leaf, w[k])
    floor = w[P]
    least = floor + 2 * penalty
    if P > 1:
        actions = floor
        for k in range(P + 1):
            actions += min(penalty, w[P + 2 + k])
        least = max(least, actions)
    leaf += penalty
    return leaf, min(leaf, least), w[P + 1] - (leaf - penalty) > penalty


@kernel
def enter_set(problem, path, d, table, scratch):
    """Sum up the set of level d and bound the sides of its splits; those that are of no use in any part of it go."""
    s = path.scalars[d]
    places, low, up = path.places[d], path.low[d], path.up[d]
    total, sums, part = scratch.total[0], scratch.sums, scratch.part
    Q = problem.n_sums
    P = problem.n_losses
    count, key = Q - 3, Q - 2
    sum_up(problem, path.index[d], s[N_ROWS], places, s[N_PLACES], scratch)
    leaf, least, _ = bounds_of(total, problem)
    known = table[place_of(table, s[SET_KEY1], s[SET_KEY2])]
    s[BEST] = leaf
    s[SPLIT] = UNSPLIT
    s[TOTAL_WORST] = total[P + 1]
    if known.key1 != 0 or known.key2 != 0:
        least = max(least, known.low)
        if known.up < leaf:
            s[BEST] = known.up
            s[SPLIT] = known.split
    s[LEAST] = least
    kept = 0
    for j in range(s[N_PLACES]):
        t = places[j]
        o = problem.offset[problem.feature[t]]
        for q in range(Q):
            part[0, q] = sums[t, q]
            part[1, q] = total[q] - part[0, q]
        for v in range(2):  # what siblings need, also of splits that go
            path.worst[d, v, t] = part[v, P + 1]
            path.floor[d, v, t] = part[v, P]
        new = part[0, count] > 0 if t == o else part[0, count] > sums[t - 1, count]
        if not new or part[1, count] == 0:  # one side is empty, or the split is the same as the one before
            continue
        useful = True
        for v in range(2):
            leaf, least, saves = bounds_of(part[v], problem)
            useful = useful and saves
            # the set without the rows of the other side: siblings' bound from the set itself
            low[v, t] = min(leaf, max(least, s[LEAST] - part[1 - v, P + 1]))
            up[v, t] = leaf
            path.key1[d, v, t] = part[v, key]
            path.key2[d, v, t] = part[v, key + 1]
        if useful:
            places[kept] = t
            kept += 1
    s[N_PLACES] = kept


@kernel
def look_up_sides(path, d, table):
    """Take over what the table knows of the sides of splits that are still open."""
    s = path.scalars[d]
    low, up = path.low[d], path.up[d]
    for j in range(s[N_PLACES]):
        t = path.places[d, j]
        if low[0, t] + low[1, t] < min(s[BUDGET], s[BEST]):
            for v in range(2):
                if low[v, t] < up[v, t]:
                    known = table[place_of(table, path.key1[d, v, t], path.key2[d, v, t])]
                    if known.key1 != 0 or known.key2 != 0:
                        up[v, t] = min(up[v, t], known.up)
                        low[v, t] = min(up[v, t], max(low[v, t], known.low))
        if up[0, t] + up[1, t] < s[BEST]:
            s[BEST] = up[0, t] + up[1, t]
            s[SPLIT] = t


@kernel
def least_two(path, d):
    """The least and the second least sum of both sides' bounds, and the split that has the least."""
    one, two, best = INF, INF, -1
    for j in range(path.scalars[d, N_PLACES]):
        t = path.places[d, j]
        v = path.low[d, 0, t] + path.low[d, 1, t]
        if v < one:
            two = one
            one = v
            best = t
        elif v < two:
            two = v
    return one, two, best


@kernel
def descend(problem, path, d, t, side):
    """Make the rows of one side of a split the set of the next level."""
    s, below = path.scalars[d], path.scalars[d + 1]
    f = problem.feature[t]
    cut = t - problem.offset[f]
    c = problem.codes[f]
    index, to = path.index[d], path.index[d + 1]
    n = 0
    for i in range(s[N_ROWS]):
        r = index[i]
        if (np.int64(c[r]) <= cut) == (side == 0):
            to[n] = r
            n += 1
    for j in range(s[N_PLACES]):
        path.places[d + 1, j] = path.places[d, j]
    s[PLACE] = t
    s[SIDE] = side
    below[N_ROWS] = n
    below[N_PLACES] = s[N_PLACES]
    below[SET_KEY1] = path.key1[d, side, t]
    below[SET_KEY2] = path.key2[d, side, t]


@kernel
def keep_set(path, d, table, low, counters):
    """Note what was proved of the set of level d."""
    s = path.scalars[d]
    known = table[place_of(table, s[SET_KEY1], s[SET_KEY2])]
    if known.key1 == 0 and known.key2 == 0:
        known.key1 = s[SET_KEY1]
        known.key2 = s[SET_KEY2]
        known.low = low
        known.up = s[BEST]
        known.split = s[SPLIT]
        counters[KEPT] += 1
        return
    known.low = max(known.low, low)
    if s[BEST] < known.up:
        known.up = s[BEST]
        known.split = s[SPLIT]


@kernel
def take_result(path, d, low):
    """Use what was proved of the side of level d that was worked on, for itself and for its siblings."""
    s, child = path.scalars[d], path.scalars[d + 1]
    lows, ups = path.low[d], path.up[d]
    t, v = s[PLACE], s[SIDE]
    ups[v, t] = min(ups[v, t], child[BEST])
    lows[v, t] = min(ups[v, t], max(lows[v, t], low))
    if ups[0, t] + ups[1, t] < s[BEST]:
        s[BEST] = ups[0, t] + ups[1, t]
        s[SPLIT] = t
    spare = lows[v, t] - child[TOTAL_WORST]
    for j in range(s[N_PLACES]):
        u = path.places[d, j]
        for side in range(2):
            shared = path.worst[d + 1, side, u] - path.floor[d + 1, side, u]
            bound = spare + shared + path.floor[d, side, u]
            if bound > lows[side, u]:
                lows[side, u] = min(bound, ups[side, u])


@kernel(takes=(RowSetProblem, Path, known_1d, SumScratch, i8, i8, i8, long_1d, long_1d))
def search_row_sets(problem, path, table, scratch, budget, slack, most, counters, control):
    """Work on the root for about ``most`` rows summed up; returns its bound and the cost of its best tree.

    Trees that cost ``budget`` or more are of no interest: work ends when the bound gets there. The root's rows stand at
    level 0 of the path. Every level closes with the bounds it has when the work is done, the table is full, or the stop
    flag is raised; the next call goes on where the table says.
    """
    d = 0
    fresh = True
    path.scalars[0, BUDGET] = budget
    goes_on = True
    least = counters[ENTERED] + len(path.scalars)  # a whole path at least: then some set's bound has risen
    while True:
        s = path.scalars[d]
        if fresh:
            fresh = False
            counters[ENTERED] += 1
            counters[SUMMED] += s[N_ROWS] * s[N_PLACES]
            enter_set(problem, path, d, table, scratch)
            look_up_sides(path, d, table)
        one, two, t = least_two(path, d)
        bound = max(one, s[LEAST])
        full = 10 * counters[KEPT] > 7 * len(table) or d + 2 >= len(path.scalars)
        goes_on = goes_on and (counters[SUMMED] < most or counters[ENTERED] < least) and control[STOP] == 0
        if bound < min(s[BUDGET], s[BEST]) and goes_on and not full:
            low, up = path.low[d], path.up[d]
            side = 0 if up[0, t] - low[0, t] >= up[1, t] - low[1, t] else 1
            limit = min(min(s[BUDGET], s[BEST]), max(two, bound) + slack)
            path.scalars[d + 1, BUDGET] = limit - low[1 - side, t]
            descend(problem, path, d, t, side)
            d += 1
            fresh = True
            continue
        bound = min(bound, s[BEST])
        keep_set(path, d, table, bound, counters)
        if d == 0:
            return bound, s[BEST]
        d -= 1
        take_result(path, d, bound)
