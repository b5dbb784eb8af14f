"""Depth four by blocks of pair sums: every column as the first of four splits, with bounds.

Cost: two values of depth two for each pair of columns that bounds leave open.
Symbols: see layout.py; ``s`` says whether column k is on (1) or off (0).
"""

import numpy as np

from policytree.solvers.kernels.base.layout import (
    CACHE,
    CUTS,
    HITS,
    INF,
    LOOK_AHEAD,
    NODES,
    SIMILAR,
    STOP,
    i8,
    long_1d,
    long_2d,
)
from policytree.solvers.kernels.binary.layout import (
    EXACT,
    KEY1,
    KEY2,
    ROOT,
    UNKNOWN,
    VALUE,
    Blocks,
    PairRows,
    PairScratch,
    Size,
)
from policytree.solvers.kernels.binary.sums import ascending, pair_value
from policytree.solvers.kernels.compiling import kernel


@kernel(separate=True)
def pair_bounds(k, s, node, size, control, bounds):
    """Bounds of what :func:`pair_value` would return for column k (side s) with every column j, bounds[t * n + j].

    The value where it is known; else a leaf or two leaves, and larger sets less what their other rows can cost: each
    column's own side, and the root's pair.
    """
    G, F, one, low, V2, P, totals = (
        node.sums,
        node.floors,
        node.diagonal,
        node.floor_diagonal,
        node.two,
        node.pair_values,
        node.totals,
    )
    n, width, shift, penalty = size.n, size.width, size.shift, size.penalty
    g_on, f_on = np.int64(one[k]), np.int64(low[k])
    gs = g_on if s == 1 else totals[0] - g_on
    fs = f_on if s == 1 else totals[1] - f_on
    side = s * n + k
    up = node.upper
    us = np.int64(up.diagonal[k] - up.floor_diagonal[k])
    us = us if s == 1 else up.totals[0] - up.totals[1] - us
    above = V2[side] if control[SIMILAR] != 0 else UNKNOWN
    look_ahead = control[LOOK_AHEAD] != 0
    for j in range(n):
        gj, fj = np.int64(one[j]), np.int64(low[j])
        g1 = (1 - s) * gj + (2 * s - 1) * np.int64(G[k * width + j])
        f1 = (1 - s) * fj + (2 * s - 1) * np.int64(F[k * width + j])
        g0 = gs - g1
        f0 = fs - f1
        x = max(P[2 * n * side + j], above - ((g1 - f1) << shift))
        y = max(P[2 * n * side + n + j], above - ((g0 - f0) << shift))
        if control[SIMILAR] != 0:
            x = max(x, V2[j] - ((totals[0] - gj - g0 - totals[1] + fj + f0) << shift))
            y = max(y, V2[n + j] - ((gj - g1 - fj + f1) << shift))
            if node.literal >= 0:  # the root's pair, less what its rows elsewhere can cost
                q1 = (1 - s) * np.int64(up.diagonal[j] - up.floor_diagonal[j]) + (2 * s - 1) * np.int64(
                    up.sums[k * width + j] - up.floors[k * width + j]
                )
                q0 = us - q1
                x = max(x, up.pair_values[2 * n * side + j] - ((q0 - g0 + f0) << shift))
                y = max(y, up.pair_values[2 * n * side + n + j] - ((q1 - g1 + f1) << shift))
        two = penalty if look_ahead else 0
        x = max(x, min(min(np.int64(0), g0) << shift, (f0 << shift) + two) + penalty)
        y = max(y, min(min(np.int64(0), g1) << shift, (f1 << shift) + two) + penalty)
        bounds[j] = x
        bounds[n + j] = y


@kernel(takes=(i8, i8, long_1d, Blocks, Size))
def bound_across(k, s, V, node, size):
    """Bound for the rows with column k on or off (s) from the bounds V of all other literals' rows.

    Rows that leave those cost their most, rows that come their least.
    """
    G, F, one, low, totals = node.sums, node.floors, node.diagonal, node.floor_diagonal, node.totals
    n, width, shift = size.n, size.width, size.shift
    best = UNKNOWN
    g_on, f_on = np.int64(one[k]), np.int64(low[k])
    gs = g_on if s == 0 else totals[0] - g_on  # the other side
    fs = f_on if s == 0 else totals[1] - f_on
    for j in range(n):
        fj = np.int64(low[j])
        g1 = s * np.int64(one[j]) + (1 - 2 * s) * np.int64(G[k * width + j])
        f1 = s * fj + (1 - 2 * s) * np.int64(F[k * width + j])
        g0 = gs - g1
        f0 = fs - f1
        best = max(best, V[j] + ((fj - f1 - g0 + f0) << shift))
        best = max(best, V[n + j] + ((totals[1] - fj - f0 - g1 + f1) << shift))
    return best


@kernel(takes=(long_1d, i8, i8, PairRows, Blocks, PairScratch, Size, long_2d, long_1d, long_1d))
def solve_four(columns, three, best, data, node, work, size, cache, counters, control):
    """Best of an opened node's columns as the first of four splits; ``three``: the node's own value of depth three.

    Returns the best value below ``best`` and its column (-1: none), and a bound for the other columns. node.three gets
    bounds of both sides of every column, exact where their sum is below ``best``, and node.three_splits the splits
    there (-1: depth two is enough).
    """
    one, K, V2 = node.diagonal, node.keys_on, node.two
    R, V3, root3, totals = node.two_by_split, node.three, node.three_splits, node.totals
    n, shift, penalty = size.n, size.shift, size.penalty
    found = -1
    left_out = INF
    bound = np.empty(2, np.int64)
    pairs = np.empty(2 * n, np.int64)
    for k in columns:
        for s in range(2):
            gk, fk = np.int64(one[k]), np.int64(node.floor_diagonal[k])
            f = fk if s == 1 else totals[1] - fk
            low = max(V3[s * n + k], min(V2[s * n + k], (f << shift) + 4 * penalty))
            if control[SIMILAR] != 0:
                most = gk - fk if s == 0 else totals[0] - totals[1] - (gk - fk)  # what the rows elsewhere can cost
                low = max(low, three - (most << shift))
                low = max(low, bound_across(k, s, V3, node, size))
            bound[s] = low
        for z in range(2):
            s = 1 - z
            side = s * n + k
            cutoff = best - bound[z]
            if bound[s] >= cutoff:
                break
            key1 = K[0, k] if s == 1 else totals[2] - K[0, k]
            key2 = K[1, k] if s == 1 else totals[3] - K[1, k]
            h = key1 & (cache.shape[0] - 1)
            if control[CACHE] != 0 and cache[h, KEY1] == key1 and cache[h, KEY2] == key2:
                bound[s] = max(bound[s], cache[h, VALUE])
                if cache[h, EXACT] != 0 or cache[h, VALUE] >= cutoff:
                    counters[HITS] += 1
                    root3[side] = cache[h, ROOT]
                    continue
            counters[NODES] += 1
            value = V2[side]
            root = -1
            rest = INF
            order = ascending(R, side * n, n)
            pair_bounds(k, s, node, size, control, pairs)
            for i in range(n):
                j = order[i]
                if j == k:
                    continue
                if control[STOP] != 0:
                    return INF, -1, -INF
                off, on = pairs[j], pairs[n + j]
                limit = min(value, cutoff)
                if off + on < limit:
                    counters[CUTS] += 1
                    on = pair_value(k, s, j, 1, data, node, work, size, counters)
                    if off + on < limit:
                        off = pair_value(k, s, j, 0, data, node, work, size, counters)
                v = off + on
                if v < limit:
                    value = v
                    root = j
                else:
                    rest = min(rest, v)
            exact = value < cutoff
            bound[s] = value if exact else max(bound[s], min(value, rest))
            root3[side] = root
            cache[h, KEY1] = key1
            cache[h, KEY2] = key2
            cache[h, VALUE] = bound[s]
            cache[h, ROOT] = root
            cache[h, EXACT] = exact
        V3[k] = bound[0]
        V3[n + k] = bound[1]
        v = bound[0] + bound[1]
        if v < best:
            best = v
            found = k
        else:
            left_out = min(left_out, v)
    return best, found, left_out
