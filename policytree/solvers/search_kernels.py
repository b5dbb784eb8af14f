"""Kernels of the exact search: one split, two splits deep, and the bounded search over deeper trees.

Everything is int64 and relative to "action 0 for every row": ``planes[k, i]``, k < P, is what row ``i`` costs more
under action ``k + 1`` than under action 0, so a leaf of the rows S costs ``min(0, min_k sum_S planes[k])`` plus the
leaf penalty ``lam``. The planes after them are row counts, each with a minimum per leaf (``minima``), the rows' mass if
splits have a price, and two planes of random keys, whose sums identify a set of rows in the cache. Rows of a node lie
side by side in ``codes[:, a:b]``; a feature's codes below ``bins[f]`` are ``offset[f] .. offset[f + 1]`` in arrays that
hold one number per (feature, code).

A split on a column of group j costs ``price[j]`` for every unit of mass that reaches it; ``price`` ascends, and is
(0,) if splits are free. Tables keep the best second split of every group apart: what it costs depends on the rows.

A kernel names only what this file defines (see CONTRIBUTING: numba's disk cache). Slices and reshapes are kept out of
the long functions: they are what makes compilation slow.
"""

import numba as nb
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

INF = 1 << 60  # value of a leaf that a minimum count forbids; two of them still fit
FEASIBLE = 1 << 59  # values below are real
FORBIDDEN = (1 << 30) - 1  # INF of the int32 tables: two of them fit, and no real leaf makes up for one
LARGEST = (1 << 30) - 2  # bound of sums in int32 tables beside FORBIDDEN; twice that without
i4 = np.int32  # without it, numba computes in int64
MOST_CUTS = 32  # cuts of a sweep
LANES = 8  # numbers in a vector: root cuts whose tables stand side by side; twice that if sums fit int16
CHOSEN = 8  # cuts of a long feature in one table
STRIP = 32  # the same without tables, for two actions without minimum counts
FEW_WEIGHTS = 4  # different weights that strips have tables for
SORT_FROM = 1 << 15  # rows
OPEN = -(1 << 40)  # in trees: OPEN - h is a subtree of at most h leaves and of depth two or less, to be solved
UNLIMITED = 1 << 30  # depth without a limit: only the leaf penalty ends a path; leaves without a limit

# Scalars of a level of the search stack.
R_PHASE, R_M, R_P, R_DEPTH, R_BUDGET, R_BEST, R_NTREE, R_USE = 0, 1, 2, 3, 4, 5, 6, 7
R_LAST, R_NEXT, R_FEATURE, R_CUT, R_VL, R_NLEFT, R_SPLITLB, R_TRUNC = 8, 9, 10, 11, 12, 13, 14, 15
R_KEY1, R_KEY2, R_LEAVES, R_SHARE, R_FIRST, R_PRICE = 16, 17, 18, 19, 20, 21
N_REGISTERS = 22
BOTH = -1  # as R_SHARE: either side may have all leaves but one
# Phases of a level.
ENTER, FEATURE, CUT, LEFT, RIGHT, DONE = 0, 1, 2, 3, 4, 5
# Counters of work.
C_NODES, C_CUTS, C_TWO, C_HITS, C_SWEEPS, C_POOL = 0, 1, 2, 3, 4, 5
N_COUNTERS = 6
# Columns of the cache of solved subsets.
H_KEY1, H_KEY2, H_SIZE, H_VALUE, H_START, H_LENGTH = 0, 1, 2, 3, 4, 5
N_CACHE = 6
SIDE_KEY1, SIDE_KEY2, SIDE_VALUE = 0, 1, 2  # columns of the bounds of swept sides
# Entries of what make_tables returns: the scalars' place, and the scalars.
SCALARS = 9
X_BLOCK, X_SHIFT, X_ERROR, X_PAYS, X_FILL, X_PER_CUT, X_LARGEST, X_PAIRS, X_LANES = 0, 1, 2, 3, 4, 5, 6, 7, 8
# The control array: a flag that stops the search, and switches of what only saves work.
S_STOP, S_SIMILAR, S_CACHE, S_LOOK_AHEAD = 0, 1, 2, 3


@nb.njit(cache=True, nogil=True, error_model="numpy")
def node_sums(planes, P, minima, a, b):
    """Leaf value (INF if forbidden) and the bound "every row gets its best action" of rows a..b."""
    value = 0
    for k in range(P + len(minima)):
        s = 0
        for i in range(a, b):
            s += planes[k, i]
        if k < P:
            value = min(value, s)
        elif s < minima[k - P]:
            value = INF
    low = 0
    for i in range(a, b):
        x = 0
        for k in range(P):
            x = min(x, planes[k, i])
        low += x
    return value, low


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _cumulate(H, C, R, W):
    """C[t, u] = sum of H[:t + 1, :u + 1]; four rows at once hide the latency of the running sums."""
    zero = i4(0)
    for k in range(R // 4):
        t = 4 * k
        h0 = H[t]
        h1 = H[t + 1]
        h2 = H[t + 2]
        h3 = H[t + 3]
        c0 = C[t]
        c1 = C[t + 1]
        c2 = C[t + 2]
        c3 = C[t + 3]
        s0 = zero
        s1 = zero
        s2 = zero
        s3 = zero
        if k == 0:
            for u in range(W):
                s0 = i4(s0 + h0[u])
                s1 = i4(s1 + h1[u])
                s2 = i4(s2 + h2[u])
                s3 = i4(s3 + h3[u])
                x = s0
                c0[u] = x
                x = i4(x + s1)
                c1[u] = x
                x = i4(x + s2)
                c2[u] = x
                c3[u] = i4(x + s3)
        else:
            p = C[t - 1]
            for u in range(W):
                s0 = i4(s0 + h0[u])
                s1 = i4(s1 + h1[u])
                s2 = i4(s2 + h2[u])
                s3 = i4(s3 + h3[u])
                x = i4(p[u] + s0)
                c0[u] = x
                x = i4(x + s1)
                c1[u] = x
                x = i4(x + s2)
                c2[u] = x
                c3[u] = i4(x + s3)
    for t in range(R - R % 4, R):
        h0 = H[t]
        c0 = C[t]
        s0 = zero
        if t == 0:
            for u in range(W):
                s0 = i4(s0 + h0[u])
                c0[u] = s0
        else:
            p = C[t - 1]
            for u in range(W):
                s0 = i4(s0 + h0[u])
                c0[u] = i4(p[u] + s0)


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _scan_signed(C, R, W, f_low, f_high, g_low, g_high, quad):
    zero = i4(0)
    last = C[R - 1]
    total = last[W - 1]
    q0 = quad[0]
    q1 = quad[1]
    q2 = quad[2]
    q3 = quad[3]
    for u in range(W):
        q0[u] = zero
        q1[u] = zero
        q2[u] = zero
        q3[u] = zero
    for k in range((R - 1) // 2):
        t = 2 * k
        row = C[t]
        sow = C[t + 1]
        low = row[W - 1]
        mow = sow[W - 1]
        a0 = zero
        a1 = zero
        c0 = zero
        c1 = zero
        e0 = zero
        e1 = zero
        g0 = zero
        g1 = zero
        for u in range(W):
            z = last[u]
            x = row[u]
            y = i4(z - x)
            b = i4(low - x)
            v = sow[u]
            w = i4(z - v)
            h = i4(mow - v)
            a0 = min(a0, x)
            a1 = max(a1, x)
            c0 = min(c0, y)
            c1 = max(c1, y)
            e0 = min(e0, v)
            e1 = max(e1, v)
            g0 = min(g0, w)
            g1 = max(g1, w)
            q0[u] = min(q0[u], min(x, v))
            q1[u] = max(q1[u], max(x, v))
            q2[u] = min(q2[u], min(b, h))
            q3[u] = max(q3[u], max(b, h))
        f_low[t] = min(f_low[t], min(a0, i4(low - a1)))
        f_high[t] = min(f_high[t], min(c0, i4(i4(total - low) - c1)))
        f_low[t + 1] = min(f_low[t + 1], min(e0, i4(mow - e1)))
        f_high[t + 1] = min(f_high[t + 1], min(g0, i4(i4(total - mow) - g1)))
    if (R - 1) % 2 == 1:
        t = R - 2
        row = C[t]
        low = row[W - 1]
        a0 = zero
        a1 = zero
        c0 = zero
        c1 = zero
        for u in range(W):
            x = row[u]
            y = i4(last[u] - x)
            b = i4(low - x)
            a0 = min(a0, x)
            a1 = max(a1, x)
            c0 = min(c0, y)
            c1 = max(c1, y)
            q0[u] = min(q0[u], x)
            q1[u] = max(q1[u], x)
            q2[u] = min(q2[u], b)
            q3[u] = max(q3[u], b)
        f_low[t] = min(f_low[t], min(a0, i4(low - a1)))
        f_high[t] = min(f_high[t], min(c0, i4(i4(total - low) - c1)))
    for u in range(W):
        g_low[u] = min(g_low[u], min(q0[u], i4(last[u] - q1[u])))
        g_high[u] = min(g_high[u], min(q2[u], i4(i4(total - last[u]) - q3[u])))


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _scan_planes(T, R, W, P, minima, quad, f_low, f_high, g_low, g_high):
    zero = i4(0)
    never = i4(FORBIDDEN)
    qa = quad[0]
    qb = quad[1]
    qc = quad[2]
    qd = quad[3]
    for t in range(R - 1):
        for u in range(W - 1):
            qa[u] = zero
            qb[u] = zero
            qc[u] = zero
            qd[u] = zero
        for k in range(P + len(minima)):
            row = T[k, t]
            last = T[k, R - 1]
            low = row[W - 1]
            high = i4(last[W - 1] - low)
            if k < P:
                for u in range(W - 1):
                    x = row[u]
                    y = i4(last[u] - x)
                    qa[u] = min(qa[u], x)
                    qb[u] = min(qb[u], i4(low - x))
                    qc[u] = min(qc[u], y)
                    qd[u] = min(qd[u], i4(high - y))
            else:
                least = i4(minima[k - P])
                for u in range(W - 1):
                    x = row[u]
                    y = i4(last[u] - x)
                    qa[u] = never if x < least else qa[u]
                    qb[u] = never if i4(low - x) < least else qb[u]
                    qc[u] = never if y < least else qc[u]
                    qd[u] = never if i4(high - y) < least else qd[u]
        m_low = i4(2 * FORBIDDEN)
        m_high = i4(2 * FORBIDDEN)
        for u in range(W - 1):
            m_low = min(m_low, i4(qa[u] + qb[u]))
            m_high = min(m_high, i4(qc[u] + qd[u]))
            g_low[u] = min(g_low[u], i4(qa[u] + qc[u]))
            g_high[u] = min(g_high[u], i4(qb[u] + qd[u]))
        f_low[t] = min(f_low[t], m_low)
        f_high[t] = min(f_high[t], m_high)


@nb.njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _scan(C, R, W, P, minima, quad, f_low, f_high, g_low, g_high):
    if P == 1 and len(minima) == 0:
        _scan_signed(C[0], R, W, f_low, f_high, g_low, g_high, quad)
    else:
        _scan_planes(C, R, W, P, minima, quad, f_low, f_high, g_low, g_high)


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _pair(x, rows, y, width, q, m, P, minima, buffer, quad, low, high, fo, go):
    """Fill, cumulate and scan the tables of codes ``x`` (< rows) and ``y`` (< width).

    Best values go to ``low``, ``high`` from positions ``fo`` (cuts of x) and ``go`` (cuts of y) on.
    """
    K = P + len(minima)
    n = K * rows * width
    H = buffer[0, :n].reshape((K, rows, width))
    C = buffer[1, :n].reshape((K, rows, width))
    H[:] = i4(0)
    for k in range(K):
        h = H[k]
        d = q[k]
        for i in range(m):
            h[x[i], y[i]] = i4(h[x[i], y[i]] + d[i])
        _cumulate(h, C[k], rows, width)
    _scan(
        C,
        rows,
        width,
        P,
        minima,
        quad,
        low[fo : fo + rows],
        high[fo : fo + rows],
        low[go : go + width],
        high[go : go + width],
    )


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _two_leaves(one, P, minima, at, end):
    """Values of the leaves of the codes up to position ``at`` and of the others; INF if forbidden."""
    x = 0
    y = 0
    for k in range(P + len(minima)):
        s = np.int64(one[k, at])
        z = np.int64(one[k, end]) - s
        if k < P:
            x = min(x, s)
            y = min(y, z)
        else:
            x = INF if s < minima[k - P] else x
            y = INF if z < minima[k - P] else y
    return x, y


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _inside_all(one, P, minima, o, B, low, high, best):
    """Best two leaves of one feature inside {code <= t} and {code > t} for every cut t, in O(B K).

    ``one[k, o + t]``: cumulated sums. With m[u] the best leaf of the codes up to u, {code <= t} costs
    min over u < t, b of m[u] + c_b[t] - c_b[u] = min_b (c_b[t] + min_u (m[u] - c_b[u])): a running minimum per action.
    Counts only grow with u, so the u that leave the second leaf its minima are a prefix that grows with t.
    """
    n = len(minima)
    for t in range(B - 1):
        low[t] = INF
        high[t] = INF
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
                for j in range(P, P + n):
                    d = np.int64(one[j, o + t]) - np.int64(one[j, o + u])
                    fits = fits and (d if side == 0 else -d) >= minima[j - P]
                if not fits:
                    break
                leaf = 0
                for k in range(P + n):
                    c = np.int64(one[k, o + u]) if side == 0 else np.int64(one[k, e]) - np.int64(one[k, o + u])
                    if k < P:
                        leaf = min(leaf, c)
                    elif c < minima[k - P]:
                        leaf = INF
                if leaf < FEASIBLE:
                    best[P] = min(best[P], leaf)
                    for b in range(P):
                        c = np.int64(one[b, o + u])
                        best[b] = min(best[b], leaf - c if side == 0 else leaf + c)
                u += 1 if side == 0 else -1
            v = best[P]
            for b in range(P):
                if best[b] < FEASIBLE:
                    c = np.int64(one[b, o + t])
                    v = min(v, best[b] + c if side == 0 else best[b] - c)
            if side == 0:
                low[t] = v
            else:
                high[t] = v


@nb.njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _second_split(inner, table, at, stride, price, own, mass, shift):
    """Least value of a side that splits once more, without leaf penalties (INF: none).

    ``inner``: by the feature of the first split; table[at + j * stride]: by features of group j.
    """
    value = INF
    if inner <= 0:
        value = (inner << shift) + own * mass
    for j in range(len(price)):
        x = np.int64(table[at + j * stride])
        if x <= 0:
            value = min(value, (x << shift) + price[j] * mass)
    return value


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _root_values(one, low, high, P, minima, p, bins, offset, groups, price, lam, shift, leaves, in_low, in_high, best,
                 skip, W, by_leaves):  # fmt: skip
    """W[o + t]: the value with first split t of each feature and at most one more on each side (INF: forbidden).

    Table values count ``1 << shift``, penalties and prices are exact. ``leaves`` of 3 allows a second split on one side
    only. by_leaves[h - 1] becomes the least value of a tree of at most h leaves, h = 1 .. 4. Features to ``skip`` are
    left out.
    """
    K = P + len(minima)
    S = offset[p]
    costly = price[len(price) - 1] > 0
    leaf = 0
    for k in range(K):
        s = np.int64(one[k, bins[0] - 1])
        if k < P:
            leaf = min(leaf, s)
        elif s < minima[k - P]:
            for h in range(4):
                by_leaves[h] = INF
            return
    two = INF
    three = INF
    four = INF
    mass = np.int64(one[K, bins[0] - 1]) if costly else 0
    for f in range(p):
        if skip[f]:
            continue
        o = offset[f]
        B = bins[f]
        own = price[groups[f]]
        paid = own * mass
        _inside_all(one, P, minima, o, B, in_low, in_high, best)
        for t in range(B - 1):
            x, y = _two_leaves(one, P, minima, o + t, o + B - 1)
            W[o + t] = INF
            if x > 0 or y > 0:
                continue
            m_low = np.int64(one[K, o + t]) if costly else 0
            u = _second_split(in_low[t], low, o + t, S, price, own, m_low, shift) + 2 * lam
            v = _second_split(in_high[t], high, o + t, S, price, own, mass - m_low, shift) + 2 * lam
            x = (x << shift) + lam
            y = (y << shift) + lam
            two = min(two, x + y + paid)
            u = min(u, x)
            v = min(v, y)
            w = min(u + y, x + v) + paid
            three = min(three, w)
            if leaves != 3:
                w = u + v + paid
                four = min(four, w)
            W[o + t] = w
    by_leaves[0] = (leaf << shift) + lam
    by_leaves[1] = min(by_leaves[0], two)
    by_leaves[2] = min(by_leaves[1], three)
    by_leaves[3] = min(by_leaves[2], four)


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _prefix_sums(codes, planes, K, m, bins, offset):
    """Cumulated sums of the first K planes over every feature's codes, shape (K, offset[-1]), int64."""
    p = len(bins)
    one = np.zeros((K, offset[p]), np.int64)
    for k in range(K):
        h = one[k]
        d = planes[k]
        for f in range(p):
            c = codes[f]
            o = offset[f]
            for i in range(m):
                h[o + np.int64(c[i])] += d[i]
            for t in range(o + 1, o + bins[f]):
                h[t] += h[t - 1]
    return one


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _quantise(planes, P, n_counts, n_mass, m, q, errors):
    """Loss planes rounded so that int32 holds their sums, the others as they are; returns shift and the sum of errors.

    Row i's rounding makes no leaf look dearer than it is by more than ``errors[i]``: table values less the errors of
    their rows are lower bounds.
    """
    below = 0
    above = 0
    bits = 0
    for i in range(m):
        x = 0
        y = 0
        for k in range(P):
            x = min(x, planes[k, i])
            y = max(y, planes[k, i])
            bits |= planes[k, i]
        below -= x
        above += y
    limit = LARGEST if n_counts > 0 else 2 * LARGEST
    shift = 0
    while bits != 0 and (bits >> shift) & 1 == 0:  # a common power of two: small numbers, and nothing lost
        shift += 1
    while (max(below, above) >> shift) + m > limit:
        shift += 1
    half = (1 << shift) >> 1
    total = 0
    for i in range(m):
        worst = 0
        for k in range(P):
            x = (planes[k, i] + half) >> shift
            q[k, i] = i4(x)
            worst = max(worst, (x << shift) - planes[k, i])
        errors[i] = worst
        total += worst
    for k in range(P, P + n_counts + n_mass):
        for i in range(m):
            q[k, i] = i4(planes[k, i])
    return shift, total


@nb.njit(cache=True, nogil=True, error_model="numpy")
def best_one_split(codes, planes, P, minima, m, bins, offset, groups, price):
    """Best two leaves of rows 0..m: value without penalties (INF if none), feature, cut. Ties: first feature, cut."""
    K = P + len(minima)
    costly = price[len(price) - 1] > 0
    one = _prefix_sums(codes, planes, K + costly, m, bins, offset)
    best = INF
    best_f = -1
    best_t = -1
    for f in range(len(bins)):
        o = offset[f]
        last = o + bins[f] - 1
        paid = price[groups[f]] * one[K, last] if costly else 0
        for t in range(o, last):
            x, y = _two_leaves(one, P, minima, t, last)
            if x + y + paid < best:
                best = x + y + paid
                best_f = f
                best_t = t - o
    return best, best_f, best_t


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _exact_value(codes, planes, P, minima, m, bins, offset, groups, price, lam, leaves, f, t, one):
    """Value with first split ``t`` of ``f`` and the best second splits, if any; one (2, K (+ 1: mass), S) is scratch.

    ``leaves`` of 3 allows a second split on one side only.
    """
    K = P + len(minima)
    costly = price[len(price) - 1] > 0
    p = len(bins)
    one[:] = 0
    c = codes[f]
    for g in range(p):
        d = codes[g]
        o = offset[g]
        for i in range(m):
            s = 0 if c[i] <= t else 1
            for k in range(K + costly):
                one[s, k, o + np.int64(d[i])] += planes[k, i]
        for s in range(2):
            for k in range(K + costly):
                for u in range(o + 1, o + bins[g]):
                    one[s, k, u] += one[s, k, u - 1]
    value = 0
    least = INF
    for s in range(2):
        leaf = 0
        for k in range(K):
            x = one[s, k, bins[0] - 1]
            if k < P:
                leaf = min(leaf, x)
            elif x < minima[k - P]:
                return INF
        leaf += lam
        side = leaf
        mass = one[s, K, bins[0] - 1] if costly else 0
        value += mass * price[groups[f]]
        for g in range(p):
            more = mass * price[groups[g]] + 2 * lam
            for u in range(offset[g], offset[g + 1] - 1):
                x, y = _two_leaves(one[s], P, minima, u, offset[g + 1] - 1)
                if x < FEASIBLE and y < FEASIBLE:
                    side = min(side, x + y + more)
        value += side
        least = min(least, leaf - side)
    return value + least if leaves == 3 else value


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _block_size(bins, m, K, price):
    """How many two-valued features go through the binary block: none if they are few, costly or the products large."""
    n = 0
    for f in range(len(bins)):
        n += bins[f] == 2
    return n if n >= 4 and price[len(price) - 1] == 0 and K * m * n <= 1 << 26 else 0


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _fill_block(codes, q, K, m, bins, block, W, start, items):
    """Rows as products with the binary features (of which block[j] says the code that is rare), and their rare ones."""
    n = 0
    for f in range(len(bins)):
        if bins[f] != 2:
            continue
        ones = 0
        for i in range(m):
            ones += codes[f, i]
        rare = 1 if 2 * ones <= m else 0
        block[n, 0] = f
        block[n, 1] = rare
        n += 1
    at = 0
    for i in range(m):
        start[i] = at
        for j in range(n):
            on = codes[block[j, 0], i] == block[j, 1]
            if on:
                items[at] = j
                at += 1
            for k in range(K):
                W[k, i, j] = q[k, i] if on else i4(0)
    start[m] = at


@intrinsic
def _add_vectors(typingctx, to, to_at, what, what_at, n):
    """Add ``n`` vectors of eight from ``what[what_at:]`` to ``to[to_at:]``: LLVM leaves too much of short rows over."""

    def codegen(context, builder, signature, args):
        vector = ir.VectorType(ir.IntType(32), LANES)
        arrays = [context.make_array(signature.args[k])(context, builder, args[k]).data for k in (0, 2)]
        with cgutils.for_range(builder, args[4]) as loop:
            at = builder.mul(loop.index, ir.Constant(ir.IntType(64), LANES))
            pointers = [
                builder.bitcast(builder.gep(array, [builder.add(first, at)]), vector.as_pointer())
                for array, first in zip(arrays, (args[1], args[3]), strict=True)
            ]
            x, y = (builder.load(pointer, align=4) for pointer in pointers)
            builder.store(builder.add(x, y), pointers[0], align=4)
        return context.get_dummy_value()

    return types.void(to, types.int64, what, types.int64, types.int64), codegen


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _add_block(G, W, K, n, index, a, b, start, items):
    """Add the products of rows index[a:b]; rows of G and W are padded to whole vectors."""
    width = G.shape[2]
    g = G.reshape(G.size)
    w = W.reshape(W.size)
    m = W.shape[1]
    for i in range(a, b):
        r = np.int64(index[i])
        for s in range(start[r], start[r + 1]):
            j = np.int64(items[s])
            for k in range(K):
                _add_vectors(g, (k * n + j) * width, w, (k * m + r) * width, width // LANES)


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _scan_block(G, all_sums, n, K, P, minima, block, offset, C2, quad, junk, low, high):
    """Best second split among the binary features for each of them as the first; C2 (K, 2, n + 1) is scratch."""
    for k in range(K):
        for u in range(n):
            C2[k, 1, u] = G[k, u, u]
        C2[k, 1, n] = all_sums[k]
    for j in range(n):
        for k in range(K):
            for u in range(n):
                C2[k, 0, u] = G[k, j, u]
            C2[k, 0, n] = G[k, j, j]
        for s in range(2):
            junk[s, 0] = i4(2 * FORBIDDEN)
        _scan(C2, 2, n + 1, P, minima, quad, junk[0], junk[1], junk[2], junk[3])
        o = offset[block[j, 0]]
        rare, other = junk[0, 0], junk[1, 0]
        if block[j, 1] == 0:
            low[o] = min(low[o], rare)
            high[o] = min(high[o], other)
        else:
            low[o] = min(low[o], other)
            high[o] = min(high[o], rare)


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _single_block(G, sums, n, K, block, offset, one):
    """Cumulated sums of the binary features themselves, from the diagonal."""
    for j in range(n):
        o = offset[block[j, 0]]
        for k in range(K):
            one[k, o] = G[k, j, j] if block[j, 1] == 0 else i4(sums[k] - G[k, j, j])
            one[k, o + 1] = sums[k]


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _scan_block_signed(G, total, n, block, offset, low, high):
    """_scan_block for two actions without minimum counts."""
    width = G.shape[1]
    diagonal = np.zeros(width, np.int32)
    for u in range(n):
        diagonal[u] = G[u, u]
    for j in range(n):
        row = G[j]
        a0 = i4(0)
        a1 = i4(0)
        c0 = i4(0)
        c1 = i4(0)
        for u in range(width):
            x = row[u]
            y = i4(diagonal[u] - x)
            a0 = min(a0, x)
            a1 = max(a1, x)
            c0 = min(c0, y)
            c1 = max(c1, y)
        rare = min(a0, i4(diagonal[j] - a1))
        other = min(c0, i4(i4(total - diagonal[j]) - c1))
        o = offset[block[j, 0]]
        if block[j, 1] == 0:
            low[o] = min(low[o], rare)
            high[o] = min(high[o], other)
        else:
            low[o] = min(low[o], other)
            high[o] = min(high[o], rare)


@nb.njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _make_block(codes, q, K, m, bins, n_block):
    """The arrays of the binary block: block, W, start, items (see _fill_block) and the sums of all rows."""
    block = np.empty((n_block, 2), np.int64)
    width = (n_block + LANES - 1) // LANES * LANES
    W = np.zeros((K, m if n_block > 0 else 0, width), np.int32)
    start = np.zeros(m + 1, np.int32)
    items = np.empty(m * n_block // 2 + n_block, np.int32)
    G = np.zeros((K, n_block, width), np.int32)
    if n_block > 0:
        _fill_block(codes, q, K, m, bins, block, W, start, items)
        _add_block(G, W, K, n_block, np.arange(m).astype(np.int32), 0, m, start, items)
    return block, W, start, items, G


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _row_bounds(c, planes, P, n_counts, m, B, dearest, least, most, o):
    """Cumulated least and largest value of the rows with each code c, into least, most from o on.

    ``dearest``: the largest sum of prices on a path below, which rows may have to pay as well.
    """
    for t in range(o, o + B):
        least[t] = 0
        most[t] = 0
    for i in range(m):
        x = 0
        y = 0
        for k in range(P):
            x = min(x, planes[k, i])
            y = max(y, planes[k, i])
        if dearest > 0:
            y += dearest * planes[P + n_counts, i]
        least[o + np.int64(c[i])] += x
        most[o + np.int64(c[i])] += y
    for t in range(o + 1, o + B):
        least[t] += least[t - 1]
        most[t] += most[t - 1]


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _spread_bounds(left, right, least, most, cuts, at, vl, vr, constrained, similar):
    """Similar support: what cut ``at`` (values >= vl, vr) says of every other cut of the feature.

    Rows that move change a side's optimum by at least their least, at most their largest value. With minimum counts a
    tree may become forbidden when rows leave, so only bounds from larger to smaller sets hold.
    """
    left[at] = max(left[at], vl)
    right[at] = max(right[at], vr)
    if not similar:
        return
    la = least[at]
    ma = most[at]
    for t in range(at):
        left[t] = max(left[t], vl - (ma - most[t]))
        if not constrained:
            right[t] = max(right[t], vr + (la - least[t]))
    for t in range(at + 1, cuts):
        right[t] = max(right[t], vr - (most[t] - ma))
        if not constrained:
            left[t] = max(left[t], vl + (least[t] - la))


@nb.njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _choose_cut(left, right, least, most, cuts, budget):
    """The middle, by mass, of the heaviest run of cuts whose bound is below the budget; -1 if there is none."""
    best = -1
    best_mass = -1
    t = 0
    while t < cuts:
        if left[t] + right[t] >= budget:
            t += 1
            continue
        start = t
        while t < cuts and left[t] + right[t] < budget:
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


@nb.njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _least_bound(left, right, cuts):
    low = INF
    for t in range(cuts):
        low = min(low, left[t] + right[t])
    return low


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _choose_many(left, right, least, most, cuts, budget, limit, chosen):
    """Up to ``limit`` live cuts spread by mass over all of them, ascending; returns how many."""
    n = 0
    mass = 0
    live = 0
    for trial in range(2):
        seen = 0
        for t in range(cuts):
            if left[t] + right[t] >= budget:
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


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _table_pays(rows, width, m):
    """Whether one full table of a pair is cheaper than a few coarse ones in both directions (measured)."""
    return rows * width <= 3 * m + 40 * (rows + width)


class _StripCode:
    """Emits the pass of :func:`_strip`."""

    def __init__(self, context, builder, signature, args):
        self.builder = builder
        names = ("order", "weights", "at", "starts", "c", "B", "m", "x", "table", "out", "out_at")
        self.data = {}
        for name, ty, value in zip(names, signature.args, args, strict=True):
            is_array = isinstance(ty, types.Array)
            self.data[name] = context.make_array(ty)(context, builder, value).data if is_array else value
        number = ir.IntType(signature.args[-2].dtype.bitwidth)
        self.tables = number.width == 16
        self.vector = ir.VectorType(number, STRIP)
        self.zero = ir.Constant(self.vector, [0] * STRIP)
        self.left, self.right, *self.extremes = (cgutils.alloca_once_value(builder, self.zero) for _ in range(6))
        for slot in (self.left, self.right, *self.extremes):
            builder.store(self.zero, slot)

    def load(self, name, index):
        return self.builder.load(self.builder.gep(self.data[name], [index]))

    def pointer(self, name, index):
        """Where vector ``index`` of an array is."""
        at = self.builder.mul(index, ir.Constant(ir.IntType(64), STRIP))
        return self.builder.bitcast(self.builder.gep(self.data[name], [at]), self.vector.as_pointer())

    def parts(self, at, x):
        """What the row at ``at`` adds on the left and on the right of every cut."""
        builder, two = self.builder, ir.Constant(ir.IntType(64), 2)
        if self.tables:
            first = builder.mul(x, two)
            places = (first, builder.add(first, ir.Constant(ir.IntType(64), 1)))
            return [builder.load(self.pointer("table", place), align=4) for place in places]
        undefined = ir.Constant(self.vector, ir.Undefined)
        weight = builder.insert_element(undefined, self.load("weights", at), ir.Constant(ir.IntType(32), 0))
        weight = builder.shuffle_vector(weight, undefined, self.zero)
        mask = builder.load(self.pointer("table", x), align=4)
        return builder.and_(mask, weight), builder.and_(builder.not_(mask), weight)

    def add_row(self, k):
        at = self.builder.add(self.data["at"], k)
        row = self.builder.zext(self.load("order", at), ir.IntType(64))
        x = self.builder.zext(self.load("x", row), ir.IntType(64))
        for slot, part in zip((self.left, self.right), self.parts(at, x), strict=True):
            self.builder.store(self.builder.add(self.builder.load(slot), part), slot)

    def update(self, slot, sign, value):
        old = self.builder.load(slot, align=4)
        self.builder.store(self.builder.select(self.builder.icmp_signed(sign, old, value), old, value), slot, align=4)

    def compare(self):
        """Extremes of the sums so far: the second split may stand here."""
        for slot, sign, side in zip(self.extremes, "<><>", (self.left, self.left, self.right, self.right), strict=True):
            self.update(slot, sign, self.builder.load(side))

    def run(self):
        """All rows, code by code; without the inner loop if every code has one row."""
        builder, one = self.builder, ir.Constant(ir.IntType(64), 1)
        with builder.if_else(builder.icmp_signed("==", self.data["B"], self.data["m"])) as (distinct, tied):
            with distinct, cgutils.for_range(builder, self.data["m"]) as loop:
                self.add_row(loop.index)
                self.compare()
            with tied, cgutils.for_range(builder, self.data["B"]) as loop:
                c = builder.add(self.data["c"], loop.index)
                ends = (self.load("starts", c) for c in (c, builder.add(c, one)))
                first, end = (builder.zext(c, ir.IntType(64)) for c in ends)
                with cgutils.for_range_slice(builder, first, end, one) as (k, _):
                    self.add_row(k)
                self.compare()
        for side, total in enumerate((self.left, self.right)):
            least, largest = (builder.load(slot) for slot in self.extremes[2 * side : 2 * side + 2])
            at = self.pointer("out", builder.add(self.data["out_at"], ir.Constant(ir.IntType(64), side)))
            for value in (least, builder.sub(builder.load(total), largest)):
                self.update(at, "<", value)


@intrinsic
def _strip(typingctx, order, weights, at, starts, c, B, m, x, table, out, out_at):
    """Best split by one feature on both sides of each of STRIP chosen cuts of another: out[out_at], out[out_at + 1].

    ``order[at:]`` are the m rows in the order of the feature's B codes, which begin at ``starts[c:]``. Row i is on the
    left of cut e where ``table[x[i], e]``, and weighs ``weights`` at its place in the order; int16 tables hold what a
    row adds on the left, ``table[x[i], 0, e]``, and on the right. For two actions the best split of rows with sums s_u
    is min(min_u s_u, total - max_u s_u).
    """
    i8 = types.int64
    signature = types.void(order, weights, i8, starts, i8, i8, i8, x, table, out, i8)

    def codegen(context, builder, signature, args):
        _StripCode(context, builder, signature, args).run()
        return context.get_dummy_value()

    return signature, codegen


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _order_long(codes, q, m, bins, offset, large, order, weights, starts):
    """Rows and their weights in the order of every long feature, at f * m; its codes begin at starts[offset[f] + f]."""
    for f in range(len(bins)):
        if not large[f]:
            continue
        c = codes[f]
        B = bins[f]
        o = offset[f] + f
        if m == B:  # every code once
            for i in range(m):
                order[f * m + np.int64(c[i])] = i
        else:
            for t in range(o, o + B + 1):
                starts[t] = 0
            for i in range(m):
                starts[o + 1 + np.int64(c[i])] += 1
            for t in range(o + 1, o + B + 1):
                starts[t] += starts[t - 1]
            for i in range(m):
                at = starts[o + np.int64(c[i])]
                starts[o + np.int64(c[i])] = at + 1
                order[f * m + at] = i
            for t in range(o + B, o, -1):
                starts[t] = starts[t - 1]
            starts[o] = 0
        if len(weights) > 0:
            for i in range(f * m, (f + 1) * m):
                weights[i] = q[0, order[i]]


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _few_weights(q, m):
    """Least weight and how many there may be up to the largest, if strips may have int16 tables of them; else 0, 0."""
    least = np.int64(q[0, 0])
    most = least
    below = 0
    above = 0
    for i in range(m):
        x = np.int64(q[0, i])
        least = min(least, x)
        most = max(most, x)
        below -= min(x, 0)
        above += max(x, 0)
    if most - least < FEW_WEIGHTS and max(below, above) < 1 << 15:
        return least, most - least + 1
    return 0, 0


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _strip_tables(lightest, kinds, masks, tables):
    """Fill the tables of :func:`_strip`; of weights lightest, lightest + 1, ... if those are few."""
    for j in range(STRIP + 1):
        for e in range(STRIP):
            masks[j, e] = i4(-1) if e >= j else i4(0)
            for k in range(kinds):
                w = np.int16(lightest + k)
                tables[j * kinds + k, 0, e] = w if e >= j else np.int16(0)
                tables[j * kinds + k, 1, e] = np.int16(0) if e >= j else w


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _strips(f, m, bins, offset, groups, J, order, weights, starts, kinds, x, masks, tables, out, out16, low, high, at):
    """Best second splits by long features for all chosen cuts of f at once, from low[at], high[at] on by group."""
    for j in range(2 * J):
        for e in range(STRIP):
            out[j, e] = i4(0)
            out16[j, e] = np.int16(0)
    for g in range(len(bins)):
        if g != f and _table_pays(bins[f], bins[g], m):
            continue
        c = offset[g] + g
        if kinds > 0:
            _strip(order, weights, g * m, starts, c, bins[g], m, x, tables, out16, 2 * groups[g])
        else:
            _strip(order, weights, g * m, starts, c, bins[g], m, x, masks, out, 2 * groups[g])
    for j in range(J):
        for e in range(STRIP):
            low[at + j * STRIP + e] = min(out[2 * j, e], i4(out16[2 * j, e]))
            high[at + j * STRIP + e] = min(out[2 * j + 1, e], i4(out16[2 * j + 1, e]))


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _choose_first(least, most, o, cuts, limit, chosen):
    """Up to ``limit`` cuts of a feature, spread by mass, ascending; returns how many."""
    n = min(cuts, limit)
    total = most[o + cuts] - least[o + cuts]
    t = 0
    for j in range(n):
        while t < cuts - n + j and (most[o + t] - least[o + t]) * (n + 1.0) < total * (j + 1.0):
            t += 1
        chosen[j] = t
        t += 1
    return n


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _first_live(live, left, right, o, cuts, least, most, lam, chosen, n, vl, vr, budget, constrained, similar):
    """List the cuts that the bounds of the n chosen ones (similar support: see :func:`_spread_bounds`) do not refute.

    live[o:], with bounds left[o:], right[o:] of both sides; returns how many they are.
    """
    alive = 0
    j = 0  # the next chosen cut
    la, ra = -INF, -INF
    for t in range(cuts):
        if j < n and t == chosen[j]:
            j += 1
            la, ra = vl[j - 1], vr[j - 1]
            continue
        x = least[o + t] + lam
        y = least[o + cuts] - least[o + t] + lam
        if similar:
            if j > 0:
                s = o + chosen[j - 1]
                y = max(y, ra - (most[o + t] - most[s]))
                if not constrained:
                    x = max(x, la + least[o + t] - least[s])
            if j < n:
                s = o + chosen[j]
                x = max(x, vl[j] - (most[s] - most[o + t]))
                if not constrained:
                    y = max(y, vr[j] + least[s] - least[o + t])
        live[o + alive] = t
        left[o + alive] = x
        right[o + alive] = y
        alive += x + y < budget
    return alive


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _choose_live(live, left, right, o, n, least, most, budget, limit, chosen, at):
    """Keep in the list live[o : o + n] what no bound refutes, and choose up to ``limit`` of it, spread by mass.

    ``at`` gets the places of the chosen cuts in the list. Returns how many are chosen and how many are live.
    """
    alive = o
    mass = 0
    for j in range(o, o + n):
        t = o + np.int64(live[j])
        x, y = left[j], right[j]
        live[alive] = live[j]
        left[alive] = x
        right[alive] = y
        if x + y < budget:
            alive += 1
            w = most[t] - least[t]
            if t > o:
                w -= most[t - 1] - least[t - 1]
            mass += max(w, 1)
    n = 0
    seen = 0
    for j in range(o, alive):
        t = o + np.int64(live[j])
        w = most[t] - least[t]
        if t > o:
            w -= most[t - 1] - least[t - 1]
        seen += max(w, 1)
        if n < limit and (alive - o <= limit or seen * (limit + 1.0) >= mass * (n + 1.0)):
            chosen[n] = live[j]
            at[n] = j
            n += 1
    return n, alive - o


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _spread_live(live, left, right, o, n, least, most, constrained):
    """Similar support from every cut of the list live[o : o + n] to every other."""
    for j in range(o + 1, o + n):
        s = o + np.int64(live[j - 1])
        t = o + np.int64(live[j])
        right[j] = max(right[j], right[j - 1] - (most[t] - most[s]))
        if not constrained:
            left[j] = max(left[j], left[j - 1] + (least[t] - least[s]))
    for j in range(o + n - 2, o - 1, -1):
        s = o + np.int64(live[j + 1])
        t = o + np.int64(live[j])
        left[j] = max(left[j], left[j + 1] - (most[s] - most[t]))
        if not constrained:
            right[j] = max(right[j], right[j + 1] + (least[s] - least[t]))


@nb.njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _long_pairs(codes, planes, q, P, minima, m, bins, offset, groups, price, lam, leaves, shift, error, one, low, high,
                large, buffer, quad, exact, roots, root_cuts, best, best_f, best_t, control):  # fmt: skip
    """First splits by features that are long: cuts chosen among those that no bound refutes, until there is none.

    Arguments and results are as in :func:`depth_two`, ``best`` what it has found so far; ``low``, ``high`` hold what
    its tables say of the pairs that are short.
    """
    p = len(bins)
    K = P + len(minima)
    J = len(price)
    S = offset[p]
    costly = price[J - 1] > 0
    constrained = len(minima) > 0
    similar = control[S_SIMILAR] != 0
    signed = P == 1 and not constrained
    limit = STRIP if signed else CHOSEN
    few = J * S  # where values of chosen cuts stand
    junk_at = few + J * STRIP
    widest = 1
    least = np.zeros(S, np.int64)
    most = np.zeros(S, np.int64)
    left = np.empty(S, np.int64)
    right = np.empty(S, np.int64)
    live = np.empty(S, np.int32)
    n_live = np.full(p, -1, np.int64)  # -1: all, and none chosen yet
    for f in range(p):
        widest = max(widest, bins[f])
        if large[f]:
            _row_bounds(codes[f], planes, P, len(minima), m, bins[f], price[J - 1], least, most, offset[f])
    chosen = np.empty(limit, np.int64)
    at = np.empty(limit, np.int64)
    values = np.empty(limit, np.int64)
    vl = np.empty(limit, np.int64)
    vr = np.empty(limit, np.int64)
    segment = np.empty(widest, np.uint8)
    kind = np.zeros(m, np.uint8)
    x = np.empty(m, np.uint8)
    in_low = np.full(widest, INF, np.int64)
    in_high = np.full(widest, INF, np.int64)
    bests = np.empty(P + 1, np.int64)
    lightest, kinds = _few_weights(q, m) if signed else (0, 0)
    order = np.empty(p * m if signed else 0, np.int32)
    weights = np.empty(p * m if signed and kinds == 0 else 0, np.int32)
    starts = np.empty(S + p, np.int32)
    masks = np.empty((STRIP + 1, STRIP), np.int32)
    step = max(kinds, 1)
    tables = np.empty(((STRIP + 1) * step, 2, STRIP), np.int16)
    out = np.empty((2 * J, STRIP), np.int32)
    out16 = np.empty((2 * J, STRIP), np.int16)
    if signed:
        _order_long(codes, q, m, bins, offset, large, order, weights, starts)
        _strip_tables(lightest, kinds, masks, tables)
    if kinds > 0:
        for i in range(m):
            kind[i] = q[0, i] - lightest
    again = True
    while again:
        again = False
        for f in range(p):
            if not large[f]:
                continue
            B = bins[f]
            o = offset[f]
            own = price[groups[f]]
            mass = one[K, o + B - 1] if costly else 0
            paid = own * mass
            first = n_live[f] < 0
            if first:
                n = _choose_first(least, most, o, B - 1, limit, chosen)
            else:
                n, n_live[f] = _choose_live(
                    live, left, right, o, n_live[f], least, most, best - paid, limit, chosen, at
                )
            if n == 0:
                continue
            again = True
            j = 0
            for c in range(B):
                while j < n and chosen[j] < c:
                    j += 1
                segment[c] = j * step
            for i in range(m):
                x[i] = segment[codes[f, i]] + kind[i]
            if control[S_STOP] != 0:
                return best, best_f, best_t, False
            if signed:
                _strips(f, m, bins, offset, groups, J, order, weights, starts, kinds, x, masks, tables, out, out16, low,
                        high, few)  # fmt: skip
            else:
                for j in range(few, junk_at):
                    low[j] = 2 * FORBIDDEN
                    high[j] = 2 * FORBIDDEN
                for g in range(p):
                    if control[S_STOP] != 0:
                        return best, best_f, best_t, False
                    if g != f and not _table_pays(B, bins[g], m):
                        _pair(x, n + 1, codes[g], bins[g], q, m, P, minima, buffer, quad, low, high,
                              few + groups[g] * STRIP, junk_at)  # fmt: skip
                _inside_all(one, P, minima, o, B, in_low, in_high, bests)
            for j in range(n):
                t = chosen[j]
                x_leaf, y_leaf = _two_leaves(one, P, minima, o + t, o + B - 1)
                m_low = one[K, o + t] if costly else 0
                vl[j] = INF
                vr[j] = INF
                if x_leaf < FEASIBLE:
                    x_leaf = (x_leaf << shift) + lam - error
                    v = min(_second_split(in_low[t], low, o + t, S, price, own, m_low, shift),
                            _second_split(1, low, few + j, STRIP, price, own, m_low, shift))  # fmt: skip
                    vl[j] = min(x_leaf, v + 2 * lam - error)
                if y_leaf < FEASIBLE:
                    y_leaf = (y_leaf << shift) + lam - error
                    v = min(_second_split(in_high[t], high, o + t, S, price, own, mass - m_low, shift),
                            _second_split(1, high, few + j, STRIP, price, own, mass - m_low, shift))  # fmt: skip
                    vr[j] = min(y_leaf, v + 2 * lam - error)
                values[j] = (min(vl[j] + y_leaf, x_leaf + vr[j]) if leaves == 3 else vl[j] + vr[j]) + paid
                if values[j] < roots[f]:
                    roots[f] = values[j]
                    root_cuts[f] = t
            while True:  # the most promising first: what is exact saves the evaluation of others
                j = 0
                for e in range(1, n):
                    j = e if values[e] < values[j] else j
                v = values[j]
                if v >= best:
                    break
                values[j] = INF
                t = chosen[j]
                if error > 0:
                    v = _exact_value(codes, planes, P, minima, m, bins, offset, groups, price, lam, leaves, f, t,
                                     exact)  # fmt: skip
                if v < best:
                    best = v
                    best_f = f
                    best_t = t
            if first:
                n_live[f] = _first_live(live, left, right, o, B - 1, least, most, lam, chosen, n, vl, vr, best - paid,
                                        constrained, similar)  # fmt: skip
                continue
            for j in range(n):
                left[at[j]] = max(left[at[j]], vl[j])
                right[at[j]] = max(right[at[j]], vr[j])
            if similar:
                _spread_live(live, left, right, o, n_live[f], least, most, constrained)
            for j in range(n):  # solved, whatever the bounds say
                left[at[j]] = INF
    return best, best_f, best_t, True


@nb.njit(cache=True, nogil=True, error_model="numpy")
def depth_two(codes, planes, P, minima, m, bins, offset, groups, price, lam, leaves, roots, root_cuts, control):
    """Best tree of at most two splits on a path over rows 0..m; of at most three leaves, if ``leaves`` is 3.

    Returns value, first feature (-1: a leaf is best), cut, and whether the value is exact (else the search was
    stopped: it is the best so far). ``roots[f]``, ``root_cuts[f]`` get the least bound of a tree with first feature f,
    and its cut.

    Work O(p^2 (m + B^2)) for features of few codes. A pair of long features is solved at chosen cuts only, and the cuts
    between are refuted by bounds (see :func:`_long_pairs`). Tables hold 30-bit sums: what they cannot refute is
    evaluated exactly.
    """
    p = len(bins)
    K = P + len(minima)
    value, _ = node_sums(planes, P, minima, 0, m)
    best = value + lam
    best_f = -1
    best_t = -1
    widest = 1
    size = 1
    J = len(price)
    costly = price[J - 1] > 0
    n_block = _block_size(bins, m, K, price)
    large = np.zeros(p, np.bool_)
    any_large = False
    for f in range(p):
        roots[f] = INF
        root_cuts[f] = -1
        widest = max(widest, bins[f])
        for g in range(f + 1, p):
            if _table_pays(bins[f], bins[g], m):
                size = max(size, bins[f] * bins[g])
            else:
                large[f] = True
                large[g] = True
                any_large = True
    if any_large:
        size = max(size, (CHOSEN + 1) * widest)
    S = offset[p]
    q = np.empty((K + costly, m), np.int32)
    errors = np.empty(m, np.int64)
    shift, error = _quantise(planes, P, len(minima), costly, m, q, errors)
    one = _prefix_sums(codes, q, K + costly, m, bins, offset)
    end = J * (S + STRIP) + widest  # behind the features: one of chosen cuts only, and a place for what is not read
    low = np.full(end, 2 * FORBIDDEN, np.int32)
    high = np.full(end, 2 * FORBIDDEN, np.int32)
    quad = np.empty((4, max(widest, n_block + 1)), np.int32)
    buffer = np.empty((2, size * K), np.int32)
    W = np.empty(S, np.int64)
    exact = np.empty((2, K + costly, S), np.int64)
    by_leaves = np.empty(4, np.int64)
    in_low = np.empty(widest, np.int64)
    in_high = np.empty(widest, np.int64)
    bests = np.empty(P + 1, np.int64)
    block, _, _, _, G = _make_block(codes, q, K, m, bins, n_block)
    if n_block > 0:
        junk = np.zeros((4, n_block + 1), np.int32)
        _scan_block(
            G,
            one[:, bins[0] - 1],
            n_block,
            K,
            P,
            minima,
            block,
            offset,
            np.empty((K, 2, n_block + 1), np.int32),
            quad,
            junk,
            low,
            high,
        )
    for f in range(p):
        for g in range(p):
            if control[S_STOP] != 0:
                return best, best_f, best_t, False
            B = bins[f]
            if n_block > 0 and B == 2 and bins[g] == 2:
                continue
            if _table_pays(B, bins[g], m) and (bins[g] > B or (bins[g] == B and f < g)):
                _pair(codes[f], B, codes[g], bins[g], q, m, P, minima, buffer, quad, low, high,
                      groups[g] * S + offset[f], groups[f] * S + offset[g])  # fmt: skip
    _root_values(one, low, high, P, minima, p, bins, offset, groups, price, lam, shift, leaves, in_low, in_high, bests,
                 large, W, by_leaves)  # fmt: skip
    for f in range(p):
        if large[f]:
            continue
        for t in range(offset[f], offset[f + 1] - 1):
            if W[t] < FEASIBLE:
                W[t] -= error
            if W[t] < roots[f]:
                roots[f] = W[t]
                root_cuts[f] = t - offset[f]
    # Evaluate the most promising first splits until no bound is below the best.
    while True:
        f = -1
        for g in range(p):
            if not large[g] and roots[g] < best and (f < 0 or roots[g] < roots[f]):
                f = g
        if f < 0:
            break
        t = root_cuts[f]
        value = roots[f]
        if error > 0:
            value = _exact_value(codes, planes, P, minima, m, bins, offset, groups, price, lam, leaves, f, t, exact)
        if value < best:
            best = value
            best_f = f
            best_t = t
        if error == 0:
            continue
        W[offset[f] + t] = value
        roots[f] = INF
        for u in range(offset[f], offset[f + 1] - 1):
            if W[u] < roots[f]:
                roots[f] = W[u]
                root_cuts[f] = u - offset[f]
    if not any_large:
        return best, best_f, best_t, True
    return _long_pairs(codes, planes, q, P, minima, m, bins, offset, groups, price, lam, leaves, shift, error, one, low,
                       high, large, buffer, quad, exact, roots, root_cuts, best, best_f, best_t, control)  # fmt: skip


@nb.njit(cache=True, nogil=True, error_model="numpy")
def compress(codes, planes, index, a, b, bins, offset, col, groups, cutmap, to_codes, to_planes, to_bins, to_offset,
             to_col, to_groups, to_cutmap):  # fmt: skip
    """Copy rows index[a..b], dropping codes and features that do not occur there; returns the number of features."""
    m = b - a
    p = 0
    widest = 1
    for f in range(len(bins)):
        widest = max(widest, bins[f])
    new = np.empty(widest, np.int64)
    to_offset[0] = 0
    for f in range(len(bins)):
        B = bins[f]
        c = codes[f]
        for v in range(B):
            new[v] = -1
        for i in range(a, b):
            new[c[index[i]]] = 0
        n = 0
        o = to_offset[p]
        for v in range(B):
            if new[v] == 0:
                new[v] = n
                to_cutmap[o + n] = cutmap[offset[f] + v]
                n += 1
        if n < 2:
            continue
        for i in range(m):
            to_codes[p, i] = new[c[index[a + i]]]
        to_bins[p] = n
        to_offset[p + 1] = o + n
        to_col[p] = col[f]
        to_groups[p] = groups[f]
        p += 1
    for k in range(to_planes.shape[0]):
        for i in range(m):
            to_planes[k, i] = planes[k, index[a + i]]
    return p


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _order_rows(codes, f, B, m, index, ends):
    """Rows in the order of feature f's codes; ends[t] = number of rows with code < t."""
    for t in range(B + 1):
        ends[t] = 0
    c = codes[f]
    for i in range(m):
        ends[np.int64(c[i]) + 1] += 1
    for t in range(B):
        ends[t + 1] += ends[t]
    for i in range(m):
        x = np.int64(c[i])
        index[ends[x]] = i
        ends[x] += 1
    for t in range(B, 0, -1):
        ends[t] = ends[t - 1]
    ends[0] = 0


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _first_bounds(c, planes, P, minima, m, B, least, left, right, lam, keep, look_ahead):
    """Bounds of every cut before any is solved: a side is a leaf, or pays for two leaves at least."""
    K = P + len(minima)
    sums = np.zeros((K, B), np.int64)
    for k in range(K):
        for i in range(m):
            sums[k, c[i]] += planes[k, i]
        for t in range(1, B):
            sums[k, t] += sums[k, t - 1]
    for t in range(B - 1):
        x, y = _two_leaves(sums, P, minima, t, B - 1)
        # A forbidden side forbids the cut: none of its leaves could be larger.
        if x < FEASIBLE:
            x = min(x + lam, least[t] + 2 * lam) if look_ahead else least[t] + lam
        if y < FEASIBLE:
            rest = least[B - 1] - least[t]
            y = min(y + lam, rest + 2 * lam) if look_ahead else rest + lam
        left[t] = max(left[t], x) if keep else x
        right[t] = max(right[t], y) if keep else y


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _layout(bins, p, K, few, where):
    """Offsets of the pair tables, f < g at where[f, g] (-1: both in the binary block).

    Returns the size of all, of the largest, and how many there are.
    """
    size = 0
    largest = 1
    pairs = 0
    for f in range(p):
        for g in range(f + 1, p):
            where[f, g] = -1
            if few and bins[f] == 2 and bins[g] == 2:
                continue
            where[f, g] = size
            cells = K * bins[f] * bins[g]
            size += cells
            largest = max(largest, cells)
            pairs += 1
    return size, largest, pairs


@nb.njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _rows_first(bins, f, g):
    """Put the feature of a pair that gives the rows of its table first: the shorter one, so that rows are long."""
    return (g, f) if bins[f] > bins[g] else (f, g)


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _fill(H, W, cf, cg, d, index, a, b):
    for i in range(a, b):
        r = index[i]
        x = np.uint64(cf[r]) * np.uint64(W) + np.uint64(cg[r])
        H[x] = i4(H[x] + d[r])


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _total_tables(codes, q, K, m, p, bins, where, T):
    """Cumulated tables of all rows, of every pair."""
    index = np.arange(m).astype(np.int32)
    for f0 in range(p):
        for g0 in range(f0 + 1, p):
            at = where[f0, g0]
            if at < 0:
                continue
            f, g = _rows_first(bins, f0, g0)
            R = bins[f]
            B = bins[g]
            h = np.zeros(R * B, np.int32)
            for k in range(K):
                h[:] = i4(0)
                t2 = T[at + k * R * B : at + (k + 1) * R * B].reshape((R, B))
                _fill(h, B, codes[f], codes[g], q[k], index, 0, m)
                _cumulate(h.reshape((R, B)), t2, R, B)


@nb.njit(cache=True, nogil=True, error_model="numpy")
def make_tables(codes, planes, P, minima, m, bins, offset, price):
    """What sweeps over one set of rows share: rounded planes, cumulated tables of all rows, and the binary block.

    The last but one entry holds the size of the block, the rounding (shift, sum of errors), whether sweeping pays at
    all, the cost in ns of filling the tables and of reading them for a cut (measured), the largest table, how many
    pairs have one, and how many cuts go side by side (0: one by one).
    """
    p = len(bins)
    K = P + len(minima)
    costly = price[len(price) - 1] > 0
    n_block = _block_size(bins, m, K, price)
    where = np.empty((p, p), np.int64)
    size, largest, pairs = _layout(bins, p, K, n_block > 0, where)
    fill = (K * m * (pairs + p)) // 2
    per_cell = 5 if P == 1 and len(minima) == 0 else 12  # tenths of ns
    per_cut = per_cell * size // 10 + 200 * pairs + 5 * offset[p] + 2 * n_block * (n_block + 100) + 1
    pays = size <= 8 * K * m * max(pairs, 1) and size <= 1 << 27
    if not pays:
        size = 0
        n_block = 0
    q = np.empty((K + costly, m), np.int32)
    errors = np.empty(m, np.int64)
    shift, error = _quantise(planes, P, len(minima), costly, m, q, errors)
    below = 0
    above = 0
    for i in range(m):
        below -= min(0, np.int64(q[0, i]))
        above += max(0, np.int64(q[0, i]))
    lanes = 0
    if P == 1 and len(minima) == 0:
        lanes = 2 * LANES if max(below, above) < 1 << 15 else LANES
    T = np.empty(size, np.int32)
    one_all = _prefix_sums(codes, q, K + costly, m, bins, offset).astype(np.int32)
    block, W, start, items, G = _make_block(codes, q, K, m, bins, n_block)
    if pays:
        _total_tables(codes, q, K, m, p, bins, where, T)
    return (
        q,
        where,
        T,
        one_all,
        G,
        W,
        block,
        start,
        items,
        np.array([n_block, shift, error, pays, fill, per_cut, largest, pairs, lanes]),
        errors,
    )


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _subtract(T, C, D, n):
    for i in range(n):
        D[i] = i4(T[i] - C[i])


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _sweep_single(codes, q, K, p, bins, offset, one_all, index, ends, n_ends, side, one, h, n_block):
    """Cumulated sums of single features, one[e, side, k, S], as _sweep_pairs does for pairs; not of the block."""
    h[:] = i4(0)
    for e in range(n_ends):
        a = min(ends[e], ends[e + 1])
        b = max(ends[e], ends[e + 1])
        for f in range(p):
            if n_block > 0 and bins[f] == 2:
                continue
            o = offset[f]
            c = codes[f]
            for k in range(K):
                hk = h[k]
                d = q[k]
                for i in range(a, b):
                    r = index[i]
                    x = o + np.int64(c[r])
                    hk[x] = i4(hk[x] + d[r])
                s = i4(0)
                for t in range(o, o + bins[f]):
                    s = i4(s + hk[t])
                    one[e, side, k, t] = s
                    one[e, 1 - side, k, t] = i4(one_all[k, t] - s)


LANE_ARGUMENTS = (
    "H", "h_at", "run", "T", "t_at", "last_at", "one", "one_at", "low_at", "one_all", "all_at", "Q", "W", "low", "high",
    "out_at", "out_other",
)  # fmt: skip


class _LaneCode:
    """Emits one pass over ``rows`` rows of a pair's tables for all root cuts at once; see :func:`_lane_rows`."""

    def __init__(self, context, builder, signature, args, rows):
        self.builder, self.rows = builder, rows
        self.number = ir.IntType(signature.args[0].dtype.bitwidth)
        self.lanes = LANES * 32 // self.number.width
        self.vector = ir.VectorType(self.number, self.lanes)
        self.places = ir.VectorType(ir.IntType(32), self.lanes)
        self.zero = ir.Constant(self.vector, [0] * self.lanes)
        self.data = {}
        for name, ty, value in zip(LANE_ARGUMENTS, signature.args, args, strict=True):
            is_array = isinstance(ty, types.Array)
            self.data[name] = context.make_array(ty)(context, builder, value).data if is_array else value
        self.width = builder.mul(self.data["W"], self.const(self.lanes))
        self.lows = []
        for r in range(rows):
            left = self.load("one", self.plus("low_at", self.lanes * r))
            self.lows.append((left, builder.sub(self.splat("one_all", self.plus("all_at", r)), left)))
        self.extremes = [[self.slots(4), self.slots(4)] for _ in range(rows)]
        self.sums = self.slots(rows)

    @staticmethod
    def const(k):
        return ir.Constant(ir.IntType(64), k)

    def plus(self, name, k):
        return self.builder.add(self.data[name], self.const(k))

    def slots(self, n):
        """Return ``n`` vectors of zeros that live across the loop (LLVM makes registers of them)."""
        slots = [cgutils.alloca_once_value(self.builder, self.zero) for _ in range(n)]
        for slot in slots:
            self.builder.store(self.zero, slot)
        return slots

    def pointer(self, name, index):
        return self.builder.bitcast(self.builder.gep(self.data[name], [index]), self.vector.as_pointer())

    def load(self, name, index):
        return self.builder.load(self.pointer(name, index), align=4)

    def store(self, name, index, value):
        self.builder.store(value, self.pointer(name, index), align=4)

    def splat(self, name, index):
        undefined = ir.Constant(self.vector, ir.Undefined)
        scalar = self.builder.load(self.builder.gep(self.data[name], [index]))
        scalar = self.builder.trunc(scalar, self.number)
        first = self.builder.insert_element(undefined, scalar, ir.Constant(ir.IntType(32), 0))
        return self.builder.shuffle_vector(first, undefined, ir.Constant(self.places, [0] * self.lanes))

    def least(self, a, b):
        return self.builder.select(self.builder.icmp_signed("<", a, b), a, b)

    def largest(self, a, b):
        return self.builder.select(self.builder.icmp_signed(">", a, b), a, b)

    def cell(self, r, u, u8, x):
        """Cumulated left and right cells of row ``r``, given the left cell above."""
        add = self.builder.add
        at = add(add(self.data["h_at"], self.builder.mul(self.width, self.const(r))), u8)
        h = self.load("H", at)
        self.store("H", at, self.zero)
        for shift in (1, 2, 4) if self.lanes == LANES else ():  # cut e has the rows of all cuts before it as well
            mask = [LANES if k < shift else k - shift for k in range(LANES)]
            h = add(h, self.builder.shuffle_vector(h, self.zero, ir.Constant(self.places, mask)))
        total = add(self.builder.load(self.sums[r]), h)
        self.builder.store(total, self.sums[r])
        x = add(x, total)
        t_at = add(add(self.data["t_at"], self.builder.mul(self.data["W"], self.const(r))), u)
        return x, self.builder.sub(self.splat("T", t_at), x)

    def column(self, u):
        """All rows of column ``u``."""
        sub, both = self.builder.sub, (self.least, self.largest)
        u8 = self.builder.mul(u, self.const(self.lanes))
        x = self.load("run", u8)
        last = self.load("one", self.builder.add(self.data["one_at"], u8))
        margins = (last, sub(self.splat("T", self.builder.add(self.data["last_at"], u)), last))
        columns = [[[], [], [], []], [[], [], [], []]]
        for r in range(self.rows):
            cells = self.cell(r, u, u8, x)
            x = cells[0]
            for side, v in enumerate(cells):
                y, b = sub(margins[side], v), sub(self.lows[r][side], v)
                for slot, op, w in zip(self.extremes[r][side], both + both, (v, v, y, y), strict=True):
                    self.builder.store(op(self.builder.load(slot), w), slot)
                for values, w in zip(columns[side], (v, v, b, b), strict=True):
                    values.append(w)
        self.store("run", u8, x)
        for j, (op, values) in enumerate(zip((both + both) * 2, columns[0] + columns[1], strict=True)):
            q = self.builder.add(self.builder.mul(self.width, self.const(j)), u8)
            w = self.load("Q", q)
            for other in values:
                w = op(w, other)
            self.store("Q", q, w)

    def finish(self):
        """Best values of the rows themselves, from their extremes."""
        sub, add = self.builder.sub, self.builder.add
        end = self.load("one", add(self.data["one_at"], sub(self.width, self.const(self.lanes))))
        end_at = add(self.data["last_at"], sub(self.data["W"], self.const(1)))
        ends = ((end, self.data["out_at"]), (sub(self.splat("T", end_at), end), self.data["out_other"]))
        for r in range(self.rows):
            for side, (total, first) in enumerate(ends):
                at, row = add(first, self.const(self.lanes * r)), self.lows[r][side]
                k0, k1, k2, k3 = (self.builder.load(slot) for slot in self.extremes[r][side])
                self.store("low", at, self.least(self.load("low", at), self.least(k0, sub(row, k1))))
                rest = self.least(k2, sub(sub(total, row), k3))
                self.store("high", at, self.least(self.load("high", at), rest))


def _lane_rows(rows):
    """Build the intrinsic that does ``rows`` rows of one pair's tables for all root cuts at once.

    Written in vectors by hand, because LLVM does not find them: lane e holds cut e, of eight, or of sixteen if H is
    int16. ``H`` (rows, W, lanes) are the sums of the rows between cuts e - 1 and e (of eight) or of all rows up to cut
    e (of sixteen), left zeroed; ``run`` (W, lanes) the cumulated row before. A cell x of the cumulated table splits a
    pair into four leaves, x, low - x, last - x and the rest; for two actions the best split inside {f <= t} is
    min(min_u x, low - max_u x), so that least and largest cells are all there is to keep: of rows here, of columns in
    ``Q`` (8, W, lanes). The other side of each cut is the total ``T`` less this one.
    """

    def typed(typingctx, H, h_at, run, T, t_at, last_at, one, one_at, low_at, one_all, all_at, Q, W, low, high, out_at,
              out_other):  # fmt: skip
        arrays = {0: H, 2: run, 3: T, 6: one, 9: one_all, 11: Q, 13: low, 14: high}
        signature = types.void(*(arrays.get(i, types.int64) for i in range(len(LANE_ARGUMENTS))))

        def codegen(context, builder, signature, args):
            code = _LaneCode(context, builder, signature, args, rows)
            with cgutils.for_range(builder, code.data["W"]) as loop:
                code.column(loop.index)
            code.finish()
            return context.get_dummy_value()

        return signature, codegen

    return intrinsic(typed)


@intrinsic
def _add_lanes(typingctx, H, cell, weight, masks, e):
    """Add a row of this weight to vector ``cell`` of H, in the lanes that vector ``e`` of ``masks`` has set."""

    def codegen(context, builder, signature, args):
        number = ir.IntType(signature.args[0].dtype.bitwidth)
        lanes = LANES * 32 // number.width
        vector = ir.VectorType(number, lanes)
        places = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
        pointers = []
        for k in (0, 3):
            array = context.make_array(signature.args[k])(context, builder, args[k]).data
            at = builder.mul(args[k + 1], ir.Constant(ir.IntType(64), lanes))
            pointers.append(builder.bitcast(builder.gep(array, [at]), vector.as_pointer()))
        undefined = ir.Constant(vector, ir.Undefined)
        weight = args[2] if number.width == 32 else builder.trunc(args[2], number)
        weight = builder.insert_element(undefined, weight, ir.Constant(ir.IntType(32), 0))
        weight = builder.shuffle_vector(weight, undefined, places)
        part = builder.and_(builder.load(pointers[1], align=4), weight)
        builder.store(builder.add(builder.load(pointers[0], align=4), part), pointers[0], align=4)
        return context.get_dummy_value()

    return types.void(H, types.uint64, types.int32, masks, types.int64), codegen


_lane_one, _lane_two = _lane_rows(1), _lane_rows(2)


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _lane_pair(lanes, H, run, T, base, one, fo, go, one_all, Q, R, W, low, high, f_own, f_other, g_own, g_other):
    """Scan one pair's tables for all root cuts; results of cut t of f go to low[(f_own + t) * lanes ...] and so on."""
    n = W * lanes
    for i in range(n):
        run[i] = 0
    for i in range(8 * n):
        Q[i] = 0
    last = base + (R - 1) * W
    for k in range(R // 2):
        t = 2 * k
        _lane_two(H, t * n, run, T, base + t * W, last, one, go * lanes, (fo + t) * lanes, one_all, fo + t, Q, W, low,
                  high, (f_own + t) * lanes, (f_other + t) * lanes)  # fmt: skip
    if R % 2 == 1:
        t = R - 1
        _lane_one(H, t * n, run, T, base + t * W, last, one, go * lanes, (fo + t) * lanes, one_all, fo + t, Q, W, low,
                  high, (f_own + t) * lanes, (f_other + t) * lanes)  # fmt: skip
    end = (go + W - 1) * lanes
    for side in range(2):
        to = (g_own if side == 0 else g_other) * lanes
        for u in range(W):
            for e in range(lanes):
                i = u * lanes + e
                margin = one[go * lanes + i]
                total = one[end + e]
                if side == 1:
                    margin = i4(T[last + u] - margin)
                    total = i4(T[last + W - 1] - total)
                x = min(Q[4 * side * n + i], i4(margin - Q[(4 * side + 1) * n + i]))
                low[to + i] = min(low[to + i], x)
                y = min(Q[(4 * side + 2) * n + i], i4(i4(total - margin) - Q[(4 * side + 3) * n + i]))
                high[to + i] = min(high[to + i], y)


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _sweep_lanes(lanes, like, codes, q, p, bins, offset, groups, where, T, index, ends, first, n, side, one, one_all,
                 low, high, pair, control):  # fmt: skip
    """_sweep_pairs for two actions without minimum counts: up to ``lanes`` cuts first, first + 1, ... at once.

    Sums fit the type of ``like``.
    """
    S = offset[p]
    places = low.shape[2]
    widest = 1
    for f in range(p):
        widest = max(widest, bins[f])
    H = np.zeros(pair * lanes, like.dtype)
    run = np.empty(widest * lanes, like.dtype)
    Q = np.empty(8 * widest * lanes, like.dtype)
    ones = np.empty(S * lanes, like.dtype)
    lows = np.empty(2 * places * lanes, like.dtype)
    highs = np.empty(2 * places * lanes, like.dtype)
    for t in range(S):
        for e in range(lanes):
            ones[t * lanes + e] = one[first + min(e, n - 1), side, 0, t]
    masks = np.zeros(lanes * lanes, like.dtype)
    for e in range(lanes):  # cut e has the rows of all cuts before it as well
        for k in range(e, lanes):
            masks[e * lanes + k] = -1
    for i in range(2 * places * lanes):
        lows[i] = 0  # no more than a leaf
        highs[i] = 0
    d = q[0]
    for f0 in range(p):
        for g0 in range(f0 + 1, p):
            if control[S_STOP] != 0:
                return False
            if where[f0, g0] < 0:
                continue
            f, g = _rows_first(bins, f0, g0)
            cf = codes[f]
            cg = codes[g]
            W = np.uint64(bins[g])
            for e in range(n):
                start = ends[0] if e == 0 else ends[first + e]
                stop = ends[first + e + 1]
                lane = np.uint64(e)
                for i in range(min(start, stop), max(start, stop)):
                    r = index[i]
                    x = np.uint64(cf[r]) * W + np.uint64(cg[r])
                    if lanes == LANES:
                        x = x * np.uint64(LANES) + lane
                        H[x] = H[x] + d[r]
                    else:
                        _add_lanes(H, x, d[r], masks, e)
            f_at = groups[g] * S + offset[f]
            g_at = groups[f] * S + offset[g]
            own = side * places
            other = places - own
            _lane_pair(lanes, H, run, T, where[f0, g0], ones, offset[f], offset[g], one_all[0], Q, bins[f], bins[g],
                       lows, highs, own + f_at, other + f_at, own + g_at, other + g_at)  # fmt: skip
    for e in range(n):
        for s in range(2):
            for t in range(places):
                low[first + e, s, t] = min(low[first + e, s, t], lows[(s * places + t) * lanes + e])
                high[first + e, s, t] = min(high[first + e, s, t], highs[(s * places + t) * lanes + e])
    return True


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _sweep_pairs(codes, q, K, P, minima, p, bins, offset, groups, where, T, index, ends, first, n_ends, side, low, high,
                 H, C, D, quad, control):  # fmt: skip
    """Tables of every pair for one side growing by rows index[ends[e]:ends[e + 1]]; the other side by difference."""
    for f0 in range(p):
        for g0 in range(f0 + 1, p):
            if control[S_STOP] != 0:
                return False
            at = where[f0, g0]
            if at < 0:
                continue
            f, g = _rows_first(bins, f0, g0)
            R = bins[f]
            B = bins[g]
            n = K * R * B
            h = H[:n]
            c = C[:n]
            d = D[:n]
            total = T[at : at + n]
            h[:] = i4(0)
            cf = codes[f]
            cg = codes[g]
            h3 = h.reshape((K, R, B))
            c3 = c.reshape((K, R, B))
            d3 = d.reshape((K, R, B))
            fo = groups[g] * offset[p] + offset[f]
            go = groups[f] * offset[p] + offset[g]
            for e in range(first, n_ends):
                start = ends[0] if e == first else ends[e]
                a = min(start, ends[e + 1])
                b = max(start, ends[e + 1])
                for k in range(K):
                    _fill(h[k * R * B : (k + 1) * R * B], B, cf, cg, q[k], index, a, b)
                    _cumulate(h3[k], c3[k], R, B)
                _subtract(total, c, d, n)
                for z in range(2):
                    s = side if z == 0 else 1 - side
                    _scan(
                        c3 if z == 0 else d3,
                        R,
                        B,
                        P,
                        minima,
                        quad,
                        low[e, s, fo : fo + R],
                        high[e, s, fo : fo + R],
                        low[e, s, go : go + B],
                        high[e, s, go : go + B],
                    )
    return True


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _sweep(codes, P, minima, m, bins, offset, groups, price, lam, tables, index, cuts, n_cuts, row_ends, vl, vr,
           control):  # fmt: skip
    """Lower bounds (exact when rounding is) of depth two on both sides of ascending cuts; False if stopped.

    vl[c, h - 1], vr[c, h - 1]: of the sides of cut c, with at most h leaves.
    """
    p = len(bins)
    K = P + len(minima)
    costly = price[len(price) - 1] > 0
    q, where, T, one_all, G_all, W, block, start, items, scalars, errors = tables
    n_block, shift, error = scalars[X_BLOCK], scalars[X_SHIFT], scalars[X_ERROR]
    rows = index  # of the block, which stays where it is
    if m > SORT_FROM:  # gathering rows from all over the memory costs more than putting them in order once
        ordered = np.empty((p, m), np.uint16)
        for f in range(p):
            for i in range(m):
                ordered[f, i] = codes[f, index[i]]
        planes = np.empty((K + costly, m), np.int32)
        for k in range(K + costly):
            for i in range(m):
                planes[k, i] = q[k, index[i]]
        codes = ordered
        q = planes
        index = np.empty(m, np.int32)
        for i in range(m):
            index[i] = i
    S = offset[p]
    pair = scalars[X_LARGEST]
    widest = 1
    for f in range(p):
        widest = max(widest, bins[f])
    quad = np.empty((4, max(widest, n_block + 1)), np.int32)
    H = np.empty(pair, np.int32)
    C = np.empty(pair, np.int32)
    D = np.empty(pair, np.int32)
    h = np.empty((K + costly, S), np.int32)
    low = np.empty((n_cuts, 2, len(price) * S), np.int32)
    high = np.empty((n_cuts, 2, len(price) * S), np.int32)
    one = np.empty((n_cuts, 2, K + costly, S), np.int32)
    G = np.empty(G_all.shape, np.int32)
    D2 = np.empty(G_all.shape, np.int32)
    C2 = np.empty((K, 2, n_block + 1), np.int32)
    junk = np.empty((4, n_block + 1), np.int32)
    sums = np.empty((2, K), np.int32)
    signed = P == 1 and len(minima) == 0
    in_low = np.empty(widest, np.int64)
    in_high = np.empty(widest, np.int64)
    best = np.empty(P + 1, np.int64)
    values = np.empty(S, np.int64)
    nothing = np.zeros(p, np.bool_)
    like = np.empty(0, np.int32)
    like16 = np.empty(0, np.int16)
    if n_block > 0:
        for x in range(4):
            for u in range(n_block + 1):
                junk[x, u] = i4(0)
    ends = np.empty(n_cuts + 1, np.int64)
    middle = 0  # cuts below are reached from the left, the others from the right
    while middle < n_cuts and 2 * row_ends[cuts[middle] + 1] <= m:
        middle += 1
    lanes = scalars[X_LANES]
    if signed and n_cuts <= lanes:
        middle = n_cuts if row_ends[cuts[n_cuts - 1] + 1] <= m - row_ends[cuts[0] + 1] else 0
    elif signed:
        middle = min((middle + lanes // 2) // lanes * lanes, n_cuts)
    wrong = np.empty(m + 1 if error > 0 else 1, np.int64)
    wrong[0] = 0
    if error > 0:
        for i in range(m):
            wrong[i + 1] = wrong[i] + errors[rows[i]]
    for side in range(2):
        first = 0 if side == 0 else middle
        n = middle if side == 0 else n_cuts - middle
        if n == 0:
            continue
        low[:n] = i4(2 * FORBIDDEN)
        high[:n] = i4(2 * FORBIDDEN)
        ends[0] = 0 if side == 0 else m
        for e in range(n):
            c = first + e if side == 0 else n_cuts - 1 - e
            ends[e + 1] = row_ends[cuts[c] + 1]
        _sweep_single(codes, q, K + costly, p, bins, offset, one_all, index, ends, n, side, one, h, n_block)
        if n_block > 0:
            G[:] = i4(0)
            sums[:] = i4(0)
            for e in range(n):
                a = min(ends[e], ends[e + 1])
                b = max(ends[e], ends[e + 1])
                _add_block(G, W, K, n_block, rows, a, b, start, items)
                for k in range(K):
                    for i in range(a, b):
                        sums[0, k] = i4(sums[0, k] + q[k, index[i]])
                    sums[1, k] = i4(one_all[k, bins[0] - 1] - sums[0, k])
                    for j in range(n_block):
                        for u in range(G.shape[2]):
                            D2[k, j, u] = i4(G_all[k, j, u] - G[k, j, u])
                for s in range(2):
                    z = side if s == 0 else 1 - side
                    g = G if s == 0 else D2
                    _single_block(g, sums[s], n_block, K, block, offset, one[e, z])
                    if signed:
                        _scan_block_signed(g[0], sums[s, 0], n_block, block, offset, low[e, z], high[e, z])
                    else:
                        _scan_block(
                            g, sums[s], n_block, K, P, minima, block, offset, C2, quad, junk, low[e, z], high[e, z]
                        )
        e = 0 if scalars[X_PAIRS] > 0 else n  # the block may be all there is
        while signed and n - e >= 3:  # eight at once cost as much as three one by one
            group = min(n - e, lanes)
            if lanes == LANES:
                done = _sweep_lanes(lanes, like, codes, q, p, bins, offset, groups, where, T, index, ends, e, group,
                                    side, one, one_all, low, high, pair, control)  # fmt: skip
            else:
                done = _sweep_lanes(lanes, like16, codes, q, p, bins, offset, groups, where, T, index, ends, e, group,
                                    side, one, one_all, low, high, pair, control)  # fmt: skip
            if not done:
                return False
            e += group
        if e < n and not _sweep_pairs(codes, q, K, P, minima, p, bins, offset, groups, where, T, index, ends, e, n,
                                      side, low, high, H, C, D, quad, control):  # fmt: skip
            return False
        for e in range(n):
            c = first + e if side == 0 else n_cuts - 1 - e
            at = ends[e + 1]
            for s in range(2):
                to = vl[c] if s == 0 else vr[c]
                _root_values(one[e, s], low[e, s], high[e, s], P, minima, p, bins, offset, groups, price, lam, shift,
                             4, in_low, in_high, best, nothing, values, to)  # fmt: skip
                if error > 0:
                    for k in range(4):
                        if to[k] < FEASIBLE:
                            to[k] -= wrong[at] if s == 0 else error - wrong[at]
    return True


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _cuts_per_round(left, right, cuts, budget, fill, per_cut, lanes):
    """How many cuts to sweep at once: one a live run, more where filling tables costs more than reading them."""
    runs = 0
    live = 0
    before = False
    for t in range(cuts):
        now = left[t] + right[t] < budget
        live += now
        runs += now and not before
        before = now
    n = max(3, runs, fill // per_cut)
    if lanes > 0:
        n = (n + lanes - 1) // lanes * lanes
    n = min(MOST_CUTS, n)
    return live if live <= min(MOST_CUTS, 2 * n) else n


@nb.njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _include(chosen, n, t):
    """Make ``t`` one of the ascending ``chosen[:n]``, in place of its neighbour if they are full; returns how many."""
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


@nb.njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _size_key(depth, leaves):
    """Name of the trees of a depth and number of leaves in the cache."""
    return depth + (leaves << 31)


@nb.njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _look_up(cache, key1, key2, size):
    """Row of the cache for a set of rows and a size of trees; -1 if it is not there."""
    h = (key1 ^ (size * 40503)) & (cache.shape[0] - 1)
    if cache[h, H_SIZE] == size and cache[h, H_KEY1] == key1 and cache[h, H_KEY2] == key2:
        return h
    return -1


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _side_keys(c, planes, first_plane, m, B, keys):
    """Key sums of the rows up to each code, keys[0] and keys[1], and of the others, keys[2] and keys[3]."""
    for j in range(2):
        d = planes[first_plane + j]
        k = keys[j]
        for t in range(B):
            k[t] = 0
        for i in range(m):
            k[c[i]] += d[i]
        for t in range(1, B):
            k[t] += k[t - 1]
        for t in range(B):
            keys[2 + j, t] = k[B - 1] - k[t]


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _recall_sides(sides, keys, cuts, left, right):
    """Raise the bounds of cuts whose sides were swept before, in another order of splits."""
    for t in range(cuts):
        for j in range(2):
            key = keys[2 * j, t]
            h = key & (sides.shape[0] - 1)
            if sides[h, SIDE_KEY1] == key and sides[h, SIDE_KEY2] == keys[2 * j + 1, t]:
                if j == 0:
                    left[t] = max(left[t], sides[h, SIDE_VALUE])
                else:
                    right[t] = max(right[t], sides[h, SIDE_VALUE])


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _remember_side(sides, key1, key2, value):
    h = key1 & (sides.shape[0] - 1)
    sides[h, SIDE_KEY1] = key1
    sides[h, SIDE_KEY2] = key2
    sides[h, SIDE_VALUE] = value


@nb.njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _remember(cache, pool, counters, key1, key2, size, value, tree, length):
    """Store a lower bound (length 0) or an exact value with its tree, in place of whatever had that slot."""
    h = (key1 ^ (size * 40503)) & (cache.shape[0] - 1)
    start = counters[C_POOL]
    if start + length > pool.shape[0]:
        length = 0  # the pool is full: what is exact is a lower bound as well
    for i in range(length):
        pool[start + i, 0] = tree[i, 0]
        pool[start + i, 1] = tree[i, 1]
    counters[C_POOL] += length
    cache[h, H_KEY1] = key1
    cache[h, H_KEY2] = key2
    cache[h, H_SIZE] = size
    cache[h, H_VALUE] = value
    cache[h, H_START] = start
    cache[h, H_LENGTH] = length


@nb.njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _best_share(left, right, leaves):
    """Least value of both sides of a cut, and the left side's leaves, if together they may have ``leaves`` (>= 4)."""
    best = 4 * INF
    share = 0
    for h in range(1, min(leaves, 5)):
        if leaves - h <= 4 or h == 4:
            v = left[h - 1] + right[min(leaves - h, 4) - 1]
            if v < best:
                best = v
                share = h
    return best, share


@nb.njit(cache=True, nogil=True, error_model="numpy")
def advance(
    level, ncodes, nplanes, index, nbins, noffset, ncol, ngroups, ncut, ends, least, most, left, right, reg, tree,
    ltree, order, roots, root_cuts, P, minima, price, lam, max_cuts, tables, cache, pool, sides, counters, control,
):  # fmt: skip
    """Run the search stack until level 0 is done, ``max_cuts`` of its cuts are solved, or the stop flag is set.

    Level 0 is set up by the caller. Every level holds a node: its rows (n...), their order by the
    feature being tried as root (index), bounds of that feature's cuts (left, right) and the best tree so far. Returns
    the level to resume from (level 0 and phase DONE: finished).

    Trees are rows (column, cut) in preorder, column -1 for a leaf, -2 - column for the root of a subtree of depth two,
    whose lower splits are left to the caller (cut -1 - t: only one side may have one), and OPEN - h for such a subtree
    of which only the largest number h of leaves is stated.

    With a limit L of leaves that binds (R_LEAVES), bounds of a cut's sides are those of at most L - 1 leaves each: they
    come first (R_SHARE: BOTH). Where they do not refute a cut, it is solved share by share (R_SHARE: leaves of its left
    side), the smaller side first, and then closed: its bounds add up to the budget.
    """
    constrained = len(minima) > 0
    cuts_solved = 0
    batch = 0  # cuts of the last sweep, in chosen
    chosen = np.empty(MOST_CUTS, np.int64)
    swept_left = np.empty((MOST_CUTS, 4), np.int64)
    swept_right = np.empty((MOST_CUTS, 4), np.int64)
    joint = np.empty(MOST_CUTS, np.int64)  # bounds of both sides of swept cuts together
    keys = np.empty((4, left.shape[1]), np.int64)
    recall = False
    while True:
        if control[S_STOP] != 0:
            return level
        r = reg[level]
        p = r[R_P]
        m = r[R_M]
        phase = r[R_PHASE]
        f = r[R_FEATURE]
        t = r[R_CUT]
        budget = min(r[R_BUDGET], r[R_BEST]) - r[R_PRICE]
        leaves = r[R_LEAVES]
        limited = leaves != UNLIMITED
        widest_side = leaves - 1
        if r[R_USE] < 30:
            widest_side = min(widest_side, 1 << (r[R_USE] - 1))
        push = -1
        if phase == ENTER:
            counters[C_NODES] += 1
            r[R_PHASE] = _enter(
                level,
                ncodes,
                nplanes,
                nbins,
                noffset,
                ncol,
                ngroups,
                ncut,
                reg,
                tree,
                order,
                roots,
                root_cuts,
                P,
                minima,
                price,
                lam,
                cache,
                pool,
                counters,
                control,
            )
            if r[R_PHASE] == FEATURE and r[R_USE] == 3:
                tables = make_tables(ncodes[level], nplanes[level], P, minima, m, nbins[level, : r[R_P]],
                                     noffset[level, : r[R_P] + 1], price)  # fmt: skip
        elif phase == FEATURE:
            if r[R_NEXT] == r[R_LAST]:
                r[R_PHASE] = DONE
                continue
            f = order[level, r[R_NEXT]]
            r[R_FEATURE] = f
            B = nbins[level, f]
            _order_rows(ncodes[level], f, B, m, index[level], ends[level])
            below = ncodes.shape[0] - level + 2 if r[R_USE] == UNLIMITED else r[R_USE] - 1
            dearest = price[len(price) - 1] * below
            _row_bounds(ncodes[level, f], nplanes[level], P, len(minima), m, B, dearest, least[level], most[level], 0)
            r[R_PRICE] = 0
            if price[len(price) - 1] > 0:
                for i in range(m):
                    r[R_PRICE] += nplanes[level, P + len(minima), i]
                r[R_PRICE] *= price[ngroups[level, f]]
            _first_bounds(
                ncodes[level, f],
                nplanes[level],
                P,
                minima,
                m,
                B,
                least[level],
                left[level],
                right[level],
                lam,
                level == 0,
                control[S_LOOK_AHEAD] != 0,
            )
            r[R_PHASE] = CUT
            batch = 0
            recall = r[R_USE] == 3 and tables[SCALARS][X_PAYS] != 0 and sides.shape[0] > 1 and control[S_CACHE] != 0
            if recall:
                _side_keys(ncodes[level, f], nplanes[level], nplanes.shape[1] - 2, m, B, keys)
                _recall_sides(sides, keys, B - 1, left[level], right[level])
        elif phase == CUT:
            cuts = nbins[level, f] - 1
            if r[R_SHARE] > widest_side:  # all shares were tried
                right[level, t] = max(right[level, t], budget - left[level, t])
                r[R_SHARE] = 0
                cuts_solved += level == 0 and batch == 0
            if r[R_SHARE] == 0:
                if level == 0 and cuts_solved >= max_cuts:
                    r[R_PHASE] = DONE
                    continue
                sweeps = r[R_USE] == 3 and tables[SCALARS][X_PAYS] != 0
                hint = root_cuts[level, f]
                root_cuts[level, f] = -1
                if hint >= 0 and left[level, hint] + right[level, hint] >= budget:
                    hint = -1
                t = -1
                which = -1
                for j in range(batch):  # of swept cuts, the least bound below the budget
                    u = chosen[j]
                    v = max(left[level, u] + right[level, u], joint[j])
                    if v >= budget:
                        right[level, u] = max(right[level, u], budget - left[level, u])
                    elif which < 0 or v < max(left[level, t] + right[level, t], joint[which]):
                        t = u
                        which = j
                if t < 0 and not sweeps:
                    t = hint
                    if t < 0:
                        t = _choose_cut(left[level], right[level], least[level], most[level], cuts, budget)
                elif t < 0:
                    batch = _cuts_per_round(
                        left[level], right[level], cuts, budget, tables[SCALARS][X_FILL], tables[SCALARS][X_PER_CUT],
                        tables[SCALARS][X_LANES],
                    )  # fmt: skip
                    batch = _choose_many(
                        left[level], right[level], least[level], most[level], cuts, budget, batch, chosen
                    )
                    if hint >= 0:
                        batch = _include(chosen, batch, hint)
                    if batch > 0:
                        bins = nbins[level, :p]
                        offset = noffset[level, : p + 1]
                        if not _sweep(
                            ncodes[level], P, minima, m, bins, offset, ngroups[level], price, lam, tables, index[level],
                            chosen, batch, ends[level], swept_left, swept_right, control,
                        ):  # fmt: skip
                            return level
                        counters[C_CUTS] += batch
                        counters[C_SWEEPS] += 1
                        most_leaves = min(leaves - 1, 4)
                        for j in range(batch):
                            vl = swept_left[j, most_leaves - 1]
                            vr = swept_right[j, most_leaves - 1]
                            joint[j] = vl + vr
                            if limited:
                                joint[j] = _best_share(swept_left[j], swept_right[j], leaves)[0]
                            if recall:
                                _remember_side(sides, keys[0, chosen[j]], keys[1, chosen[j]], swept_left[j, 3])
                                _remember_side(sides, keys[2, chosen[j]], keys[3, chosen[j]], swept_right[j, 3])
                            _spread_bounds(left[level], right[level], least[level], most[level], cuts, chosen[j], vl,
                                           vr, constrained, control[S_SIMILAR] != 0)  # fmt: skip
                        if level == 0:
                            cuts_solved += 1
                        continue
                elif tables[SCALARS][X_ERROR] == 0:  # swept bounds are exact: the sides need no search for their values
                    share = 4
                    if limited:
                        share = _best_share(swept_left[which], swept_right[which], leaves)[1]
                    r[R_BEST] = joint[which] + r[R_PRICE]
                    r[R_NTREE] = 3
                    tree[level, 0, 0] = ncol[level, f]
                    tree[level, 0, 1] = ncut[level, noffset[level, f] + t]
                    tree[level, 1, 0] = OPEN - share
                    tree[level, 2, 0] = OPEN - min(leaves - share, 4)
                    continue
                if t < 0:
                    low = _least_bound(left[level], right[level], cuts)
                    r[R_SPLITLB] = min(r[R_SPLITLB], low + r[R_PRICE])
                    r[R_NEXT] += 1
                    r[R_PHASE] = FEATURE
                    continue
                r[R_CUT] = t
                if limited:
                    r[R_SHARE] = leaves - widest_side if sweeps else BOTH
                counters[C_CUTS] += not sweeps
            r[R_FIRST] = 1 if 2 * r[R_SHARE] > leaves else 0
            r[R_PHASE] = LEFT
            push = r[R_FIRST]
        elif phase in (LEFT, RIGHT):
            child = reg[level + 1]
            n = child[R_NTREE]
            v = child[R_BEST]
            on_left = (phase == LEFT) == (r[R_FIRST] == 0)
            if phase == LEFT:
                r[R_VL] = v
                r[R_NLEFT] = n
                for i in range(n):
                    ltree[level, i, 0] = tree[level + 1, i, 0]
                    ltree[level, i, 1] = tree[level + 1, i, 1]
            both = not limited or r[R_SHARE] == BOTH
            if both or (r[R_SHARE] if on_left else leaves - r[R_SHARE]) == leaves - 1:
                _spread_bounds(left[level], right[level], least[level], most[level], nbins[level, f] - 1, t,
                               v if on_left else -INF, -INF if on_left else v, constrained,
                               control[S_SIMILAR] != 0)  # fmt: skip
            r[R_PHASE] = CUT
            own = max(v, left[level, t] if on_left else right[level, t])
            if phase == LEFT and own + (right[level, t] if on_left else left[level, t]) < budget:
                r[R_PHASE] = RIGHT
                push = 1 - r[R_FIRST]
            elif phase == RIGHT and r[R_SHARE] != BOTH and n > 0 and r[R_VL] + v < budget:
                r[R_BEST] = r[R_VL] + v + r[R_PRICE]
                k = r[R_NLEFT]
                tree[level, 0, 0] = ncol[level, f]
                tree[level, 0, 1] = ncut[level, noffset[level, f] + t]
                a = 1 if r[R_FIRST] == 0 else 1 + n
                for i in range(k):
                    tree[level, a + i, 0] = ltree[level, i, 0]
                    tree[level, a + i, 1] = ltree[level, i, 1]
                a = 1 if r[R_FIRST] == 1 else 1 + k
                for i in range(n):
                    tree[level, a + i, 0] = tree[level + 1, i, 0]
                    tree[level, a + i, 1] = tree[level + 1, i, 1]
                r[R_NTREE] = 1 + k + n
            if push < 0 and r[R_SHARE] > 0:
                r[R_SHARE] += 1
            elif push < 0 and limited and left[level, t] + right[level, t] < budget:
                r[R_SHARE] = leaves - widest_side
            elif push < 0 and limited:
                r[R_SHARE] = 0
                cuts_solved += level == 0
            elif push < 0 and level == 0 and batch == 0:
                cuts_solved += 1
        else:
            if level == 0:
                return 0
            if r[R_LAST] > 0 and r[R_BEST] >= r[R_BUDGET]:  # searched, and nothing below the budget: a lower bound
                r[R_BEST] = min(r[R_BEST], r[R_SPLITLB], r[R_TRUNC])
                r[R_NTREE] = 0
            if r[R_LAST] != -1 and m > 1:  # -1: it came from the cache
                size = _size_key(r[R_DEPTH], leaves)
                _remember(cache, pool, counters, r[R_KEY1], r[R_KEY2], size, r[R_BEST], tree[level], r[R_NTREE])
            level -= 1
        if push >= 0:
            depth = r[R_USE] if r[R_USE] == UNLIMITED else r[R_USE] - 1
            a = 0 if push == 0 else ends[level, t + 1]
            b = ends[level, t + 1] if push == 0 else m
            other = right[level, t] if push == 0 else left[level, t]
            if phase == LEFT:
                other = r[R_VL]
            q = compress(
                ncodes[level],
                nplanes[level],
                index[level],
                a,
                b,
                nbins[level, :p],
                noffset[level],
                ncol[level],
                ngroups[level],
                ncut[level],
                ncodes[level + 1],
                nplanes[level + 1],
                nbins[level + 1],
                noffset[level + 1],
                ncol[level + 1],
                ngroups[level + 1],
                ncut[level + 1],
            )
            if limited and r[R_SHARE] == BOTH:
                leaves -= 1
            elif limited:
                leaves = r[R_SHARE] if push == 0 else leaves - r[R_SHARE]
            level += 1
            r = reg[level]
            r[R_LEAVES] = leaves
            r[R_SHARE] = 0
            r[R_PRICE] = 0
            r[R_PHASE] = ENTER
            r[R_M] = b - a
            r[R_P] = q
            r[R_DEPTH] = depth
            r[R_BUDGET] = INF if min(depth, leaves - 1) <= 2 else budget - other


@nb.njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _enter(level, ncodes, nplanes, nbins, noffset, ncol, ngroups, ncut, reg, tree, order, roots, root_cuts, P, minima,
           price, lam, cache, pool, counters, control):  # fmt: skip
    """Solve a node outright where cache, bounds or depth allow it, else order its features; returns the next phase.

    R_BEST, R_NTREE hold the result: an exact value and its tree, or a lower bound >= budget and no tree.
    """
    r = reg[level]
    p = r[R_P]
    m = r[R_M]
    budget = r[R_BUDGET]
    depth = min(r[R_DEPTH], r[R_LEAVES] - 1)
    if depth < 30 and r[R_LEAVES] >= 1 << depth:
        r[R_LEAVES] = UNLIMITED
    r[R_DEPTH] = depth
    leaf, floor = node_sums(nplanes[level], P, minima, 0, m)
    leaf += lam
    r[R_BEST] = leaf
    r[R_NTREE] = 1
    tree[level, 0, 0] = -1
    r[R_LAST] = -1
    r[R_NEXT] = 0
    r[R_SPLITLB] = INF
    r[R_TRUNC] = INF
    if p == 0 or depth == 0 or leaf <= floor + 2 * lam:
        return DONE
    key1 = 0
    key2 = 0
    keys = nplanes.shape[1] - 2
    for i in range(m):
        key1 += nplanes[level, keys, i]
        key2 += nplanes[level, keys + 1, i]
    r[R_KEY1] = key1
    r[R_KEY2] = key2
    h = _look_up(cache, key1, key2, _size_key(depth, r[R_LEAVES])) if control[S_CACHE] != 0 else -1
    if h >= 0 and (cache[h, H_LENGTH] > 0 or cache[h, H_VALUE] >= budget):
        counters[C_HITS] += 1
        r[R_BEST] = cache[h, H_VALUE]
        r[R_NTREE] = cache[h, H_LENGTH]
        for i in range(cache[h, H_LENGTH]):
            tree[level, i, 0] = pool[cache[h, H_START] + i, 0]
            tree[level, i, 1] = pool[cache[h, H_START] + i, 1]
        return DONE
    if lam > 0:  # a tree of h leaves costs at least floor + h * lam, and has depth at most h - 1
        leaves = (min(budget, leaf) - floor + lam - 1) // lam - 1
        if leaves - 1 < depth:
            depth = max(leaves - 1, 0)
            r[R_TRUNC] = floor + (max(leaves, 1) + 1) * lam
    r[R_USE] = depth if depth <= 3 else r[R_DEPTH]
    bins = nbins[level, :p]
    offset = noffset[level, : p + 1]
    if depth == 1:
        v, f, t = best_one_split(ncodes[level], nplanes[level], P, minima, m, bins, offset, ngroups[level], price)
        if v + 2 * lam < leaf:
            r[R_BEST] = v + 2 * lam
            r[R_NTREE] = 3
            tree[level, 0, 0] = ncol[level, f]
            tree[level, 0, 1] = ncut[level, offset[f] + t]
            tree[level, 1, 0] = -1
            tree[level, 2, 0] = -1
    elif depth >= 2:
        counters[C_TWO] += 1
        v, f, t, exact = depth_two(
            ncodes[level],
            nplanes[level],
            P,
            minima,
            m,
            bins,
            offset,
            ngroups[level],
            price,
            lam,
            r[R_LEAVES],
            roots[level],
            root_cuts[level],
            control,
        )
        if not exact:  # interrupted
            return ENTER
        r[R_BEST] = v
        if f >= 0:
            tree[level, 0, 0] = -2 - ncol[level, f]
            tree[level, 0, 1] = ncut[level, offset[f] + t]
            if r[R_LEAVES] == 3:
                tree[level, 0, 1] = -1 - tree[level, 0, 1]
        if lam > 0 and depth > 2:  # the same with what depth two costs: three leaves need no more than that
            leaves = (min(budget, v) - floor + lam - 1) // lam - 1
            if leaves - 1 < depth:
                depth = max(leaves - 1, 2)
                r[R_TRUNC] = min(r[R_TRUNC], floor + (max(leaves, 3) + 1) * lam)
                r[R_USE] = depth if depth <= 3 else r[R_DEPTH]
    r[R_LAST] = 0
    if depth <= 2:
        if r[R_BEST] >= budget and r[R_TRUNC] < r[R_BEST]:
            r[R_BEST] = r[R_TRUNC]
            r[R_NTREE] = 0
        return DONE
    r[R_LAST] = p
    for f in range(p):  # by the best value of depth two, insertion sort
        j = f
        while j > 0 and roots[level, order[level, j - 1]] > roots[level, f]:
            order[level, j] = order[level, j - 1]
            j -= 1
        order[level, j] = f
    return FEATURE
