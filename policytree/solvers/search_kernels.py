"""Kernels of the exact search: one split, two splits deep, and the bounded search over deeper trees.

Everything is int64 and relative to "action 0 for every row": ``planes[k, i]``, k < P, is what row ``i`` costs more
under action ``k + 1`` than under action 0, so a leaf of the rows S costs ``min(0, min_k sum_S planes[k])`` plus the
leaf penalty ``lam``. The planes after them are row counts, each with a minimum per leaf (``minima``); deep searches
append two planes of random keys, whose sums identify a set of rows in the cache. Rows of a node lie side by side in
``codes[:, a:b]``; a feature's codes below ``bins[f]`` are ``offset[f] .. offset[f + 1]`` in arrays that hold one
number per (feature, code).

A kernel names only what this file defines (see CONTRIBUTING: numba's disk cache). Slices and reshapes are kept out of
the long functions: they are what makes compilation slow.
"""

import numba as nb
import numpy as np

INF = 1 << 60  # value of a leaf that a minimum count forbids; two of them still fit
FEASIBLE = 1 << 59  # values below are real
UNLIMITED = 1 << 30  # depth without a limit: only the leaf penalty ends a path

# Scalars of a level of the search stack.
R_PHASE, R_M, R_P, R_DEPTH, R_BUDGET, R_BEST, R_NTREE, R_VR = 0, 1, 2, 3, 4, 5, 6, 7
R_LAST, R_NEXT, R_FEATURE, R_CUT, R_VL, R_NLEFT, R_SPLITLB, R_TRUNC = 8, 9, 10, 11, 12, 13, 14, 15
R_KEY1, R_KEY2 = 16, 17
N_REGISTERS = 18
# Phases of a level.
ENTER, FEATURE, CUT, LEFT, RIGHT, DONE = 0, 1, 2, 3, 4, 5
# Counters of work.
C_NODES, C_CUTS, C_TWO, C_HITS, C_POOL = 0, 1, 2, 3, 4
N_COUNTERS = 5
# Columns of the cache of solved subsets.
H_KEY1, H_KEY2, H_DEPTH, H_VALUE, H_START, H_LENGTH = 0, 1, 2, 3, 4, 5
N_CACHE = 6
# The control array: a flag that stops the search, and switches of what only saves work.
S_STOP, S_SIMILAR, S_CACHE, S_LOOK_AHEAD = 0, 1, 2, 3
N_CONTROL = 4


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
def _cumulate(T, rows, width):
    """Sum a table over all smaller codes in both directions; four rows at once hide the latency of the chain."""
    t = 0
    while t + 4 <= rows:
        s0 = 0
        s1 = 0
        s2 = 0
        s3 = 0
        for u in range(width):
            s0 += T[t, u]
            s1 += T[t + 1, u]
            s2 += T[t + 2, u]
            s3 += T[t + 3, u]
            T[t, u] = s0
            T[t + 1, u] = s1
            T[t + 2, u] = s2
            T[t + 3, u] = s3
        t += 4
    while t < rows:
        s0 = 0
        for u in range(width):
            s0 += T[t, u]
            T[t, u] = s0
        t += 1
    for t in range(1, rows):
        for u in range(width):
            T[t, u] += T[t - 1, u]


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _scan_signed(T, rows, width, f_low, f_high, g_low, g_high):
    """Two actions, no minimum counts: best split of g inside {f <= t} and {f > t} for every t, and the reverse."""
    last = T[rows - 1]
    total = last[width - 1]
    for t in range(rows - 1):
        row = T[t]
        low = row[width - 1]
        high = total - low
        m_low = 0
        m_high = 0
        for u in range(width - 1):
            x = row[u]
            y = last[u] - x
            a0 = min(x, 0)
            b0 = min(low - x, 0)
            c0 = min(y, 0)
            d0 = min(high - y, 0)
            m_low = min(m_low, a0 + b0)
            m_high = min(m_high, c0 + d0)
            g_low[u] = min(g_low[u], a0 + c0)
            g_high[u] = min(g_high[u], b0 + d0)
        f_low[t] = min(f_low[t], m_low)
        f_high[t] = min(f_high[t], m_high)


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _scan_planes(T, rows, width, P, minima, quad, f_low, f_high, g_low, g_high):
    """The same for any number of actions and minimum counts; T[k] is the cumulated table of plane k.

    ``quad`` (4, >= width) holds the values of the four leaves of one row of thresholds.
    """
    qa = quad[0]
    qb = quad[1]
    qc = quad[2]
    qd = quad[3]
    for t in range(rows - 1):
        for u in range(width - 1):
            qa[u] = 0
            qb[u] = 0
            qc[u] = 0
            qd[u] = 0
        for k in range(P + len(minima)):
            row = T[k, t]
            last = T[k, rows - 1]
            low = row[width - 1]
            high = last[width - 1] - low
            if k < P:
                for u in range(width - 1):
                    x = row[u]
                    y = last[u] - x
                    qa[u] = min(qa[u], x)
                    qb[u] = min(qb[u], low - x)
                    qc[u] = min(qc[u], y)
                    qd[u] = min(qd[u], high - y)
            else:
                least = minima[k - P]
                for u in range(width - 1):
                    x = row[u]
                    y = last[u] - x
                    qa[u] = INF if x < least else qa[u]
                    qb[u] = INF if low - x < least else qb[u]
                    qc[u] = INF if y < least else qc[u]
                    qd[u] = INF if high - y < least else qd[u]
        m_low = INF
        m_high = INF
        for u in range(width - 1):
            m_low = min(m_low, qa[u] + qb[u])
            m_high = min(m_high, qc[u] + qd[u])
            g_low[u] = min(g_low[u], qa[u] + qc[u])
            g_high[u] = min(g_high[u], qb[u] + qd[u])
        f_low[t] = min(f_low[t], m_low)
        f_high[t] = min(f_high[t], m_high)


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _pair(x, rows, codes, g, width, planes, P, minima, a, b, buffer, quad, low, high, fo, go):
    """Fill, cumulate and scan the tables of code row ``x`` (of rows a..b, < rows) and feature g (< width).

    Best values go to ``low``, ``high`` from positions ``fo`` (cuts of x) and ``go`` (cuts of g) on.
    """
    K = P + len(minima)
    T = buffer[: K * rows * width].reshape((K, rows, width))
    T[:] = 0
    y = codes[g, a:b]
    for k in range(K):
        Tk = T[k]
        d = planes[k, a:b]
        for i in range(b - a):
            Tk[x[i], y[i]] += d[i]
        _cumulate(Tk, rows, width)
    f_low = low[fo : fo + rows]
    f_high = high[fo : fo + rows]
    g_low = low[go : go + width]
    g_high = high[go : go + width]
    if P == 1 and len(minima) == 0:
        _scan_signed(T[0], rows, width, f_low, f_high, g_low, g_high)
    else:
        _scan_planes(T, rows, width, P, minima, quad, f_low, f_high, g_low, g_high)


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _prefix_sums(codes, planes, K, a, b, bins, offset):
    """Cumulated sums of the first K planes over every feature's codes, shape (K, offset[-1])."""
    p = len(bins)
    one = np.zeros((K, offset[p]), np.int64)
    for k in range(K):
        h = one[k]
        d = planes[k]
        for f in range(p):
            c = codes[f]
            o = offset[f]
            for i in range(a, b):
                h[o + np.int64(c[i])] += d[i]
            for t in range(o + 1, o + bins[f]):
                h[t] += h[t - 1]
    return one


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _part(one, P, minima, hi, lo):
    """Leaf value of the codes between prefix positions lo (excluded, -1: none) and hi (included) of one feature."""
    value = 0
    for k in range(P + len(minima)):
        s = one[k, hi]
        if lo >= 0:
            s -= one[k, lo]
        if k < P:
            value = min(value, s)
        elif s < minima[k - P]:
            value = INF
    return value


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _inside(one, P, minima, o, B, t):
    """Best two leaves of feature f itself inside {f <= t} and {f > t}; o is its offset, B its bins."""
    low = INF
    high = INF
    if P == 1 and len(minima) == 0:
        c = one[0]
        x = c[o + t]
        z = c[o + B - 1]
        for u in range(o, o + t):
            low = min(low, min(0, c[u]) + min(0, x - c[u]))
        for u in range(o + t + 1, o + B - 1):
            high = min(high, min(0, c[u] - x) + min(0, z - c[u]))
        return low, high
    for u in range(o, o + B - 1):
        if u == o + t:
            continue
        inner = -1 if u < o + t else o + t
        outer = o + t if u < o + t else o + B - 1
        v = _part(one, P, minima, u, inner) + _part(one, P, minima, outer, u)
        if u < o + t:
            low = min(low, v)
        else:
            high = min(high, v)
    return low, high


@nb.njit(cache=True, nogil=True, error_model="numpy")
def best_one_split(codes, planes, P, minima, a, b, bins, offset):
    """Best two leaves of rows a..b: value without penalties (INF if none), feature, cut. Ties: first feature, cut."""
    one = _prefix_sums(codes, planes, P + len(minima), a, b, bins, offset)
    best = INF
    best_f = -1
    best_t = -1
    for f in range(len(bins)):
        o = offset[f]
        last = o + bins[f] - 1
        for t in range(o, last):
            v = _part(one, P, minima, t, -1) + _part(one, P, minima, last, t)
            if v < best:
                best = v
                best_f = f
                best_t = t - o
    return best, best_f, best_t


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _row_bounds(codes, planes, P, a, b, f, B, least, most, o):
    """Cumulated least and largest value of the rows with each code of f, into least, most from o on."""
    for t in range(o, o + B):
        least[t] = 0
        most[t] = 0
    c = codes[f]
    for i in range(a, b):
        x = 0
        y = 0
        for k in range(P):
            x = min(x, planes[k, i])
            y = max(y, planes[k, i])
        least[o + np.int64(c[i])] += x
        most[o + np.int64(c[i])] += y
    for t in range(o + 1, o + B):
        least[t] += least[t - 1]
        most[t] += most[t - 1]


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _spread_bounds(left, right, least, most, o, cuts, at, vl, vr, constrained, similar):
    """Similar support: what cut ``at`` (values >= vl, vr) says of every other cut of the feature.

    Rows that move change a side's optimum by at least their least, at most their largest value. With minimum counts a
    tree may become forbidden when rows leave, so only bounds from larger to smaller sets hold.
    """
    left[o + at] = max(left[o + at], vl)
    right[o + at] = max(right[o + at], vr)
    if not similar:
        return
    la = least[o + at]
    ma = most[o + at]
    for t in range(o, o + at):
        left[t] = max(left[t], vl - (ma - most[t]))
        if not constrained:
            right[t] = max(right[t], vr + (la - least[t]))
    for t in range(o + at + 1, o + cuts):
        right[t] = max(right[t], vr - (most[t] - ma))
        if not constrained:
            left[t] = max(left[t], vl + (least[t] - la))


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
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


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _least_bound(left, right, o, cuts):
    low = INF
    for t in range(o, o + cuts):
        low = min(low, left[t] + right[t])
    return low


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _choose_many(left, right, done, least, most, o, cuts, budget, limit, chosen):
    """Up to ``limit`` live, unsolved cuts spread by mass over all of them, ascending; returns how many."""
    n = 0
    mass = 0
    live = 0
    for trial in range(2):
        seen = 0
        for t in range(o, o + cuts):
            if done[t] or left[t] + right[t] >= budget:
                continue
            w = most[t] - least[t]
            if t > o:
                w -= most[t - 1] - least[t - 1]
            seen += max(w, 1)
            if trial == 0:
                live += 1
            elif n < limit and (live <= limit or seen * (limit + 1.0) >= mass * (n + 1.0)):
                chosen[n] = t - o
                n += 1
        mass = seen
    return n


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _table_pays(rows, width, m):
    """Whether one full table of a pair is cheaper than a few coarse ones in both directions (measured)."""
    return rows * width <= 3 * m + 40 * (rows + width)


@nb.njit(cache=True, nogil=True, error_model="numpy")
def depth_two(codes, planes, P, minima, a, b, bins, offset, lam, budget, roots, root_cuts, control):
    """Best tree of at most two splits on a path over rows a..b, if it is below the budget.

    Returns value, root feature (-1: a leaf is best), cut, and whether the value is exact; otherwise it is a lower
    bound >= budget. ``roots[f]``, ``root_cuts[f]`` get the best value found with root feature f, and its cut.

    Work O(p^2 (m + B^2)) for features of few codes. A pair of long features is solved at chosen cuts only, and the cuts
    between are refuted by bounds: 16 cuts a round, until none is live.
    """
    p = len(bins)
    K = P + len(minima)
    m = b - a
    limit = 16
    constrained = len(minima) > 0
    similar = control[S_SIMILAR] != 0
    value, floor = node_sums(planes, P, minima, a, b)
    best = value + lam
    best_f = -1
    best_t = -1
    widest = 1
    size = 1
    large = np.zeros(p, np.bool_)
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
    any_large = False
    for f in range(p):
        any_large = any_large or large[f]
    if any_large:
        size = max(size, (limit + 1) * widest)
    S = offset[p]
    one = _prefix_sums(codes, planes, K, a, b, bins, offset)
    low = np.full(S + widest + limit + 1, INF, np.int64)  # behind the features: a scratch feature of chosen cuts
    high = np.full(S + widest + limit + 1, INF, np.int64)
    quad = np.empty((4, widest), np.int64)
    buffer = np.empty(size * K, np.int64)
    least = np.zeros(S, np.int64)
    most = np.zeros(S, np.int64)
    left = np.zeros(S, np.int64)
    right = np.zeros(S, np.int64)
    done = np.zeros(S, np.bool_)
    chosen = np.empty(max(limit, widest), np.int64)
    segment = np.empty(widest, np.uint16)
    x = np.empty(m, np.uint16)
    bound = INF
    # Round 0 fills the tables that pay and solves all cuts of features that are in no other pair.
    rounds = 0
    live = True
    while live:
        live = False
        for f in range(p):
            B = bins[f]
            o = offset[f]
            if control[S_STOP] != 0:
                return floor + lam, -1, -1, False
            n = 0
            if rounds == 1 and large[f]:
                _row_bounds(codes, planes, P, a, b, f, B, least, most, o)
                for t in range(o, o + B):
                    left[t] = least[t] + lam
                    right[t] = least[o + B - 1] - least[t] + lam
            if rounds == 0:
                for i in range(m):
                    x[i] = codes[f, a + i]
            elif large[f]:
                n = _choose_many(left, right, done, least, most, o, B - 1, min(budget, best), limit, chosen)
                if n == 0:
                    continue
                live = True
                j = 0
                for c in range(B):
                    while j < n and chosen[j] < c:
                        j += 1
                    segment[c] = j
                for i in range(m):
                    x[i] = segment[codes[f, a + i]]
                for j in range(limit + 1):
                    low[S + j] = INF
                    high[S + j] = INF
            elif rounds == 1:
                n = B - 1
                for t in range(n):
                    chosen[t] = t
            if rounds > 0 and n == 0:
                continue
            for g in range(p):
                pays = _table_pays(B, bins[g], m)
                if rounds == 0 and pays and (bins[g] > B or (bins[g] == B and f < g)):
                    rows = B
                    fo = o
                    go = offset[g]
                elif rounds > 0 and not pays and g != f:
                    rows = n + 1
                    fo = S
                    go = S + limit + 1
                else:
                    continue
                _pair(x, rows, codes, g, bins[g], planes, P, minima, a, b, buffer, quad, low, high, fo, go)
            for j in range(n):
                t = chosen[j]
                vl, vr = _inside(one, P, minima, o, B, t)
                if large[f]:
                    vl = min(vl, low[S + j])
                    vr = min(vr, high[S + j])
                vl = min(_part(one, P, minima, o + t, -1) + lam, min(vl, low[o + t]) + 2 * lam)
                vr = min(_part(one, P, minima, o + B - 1, o + t) + lam, min(vr, high[o + t]) + 2 * lam)
                if large[f]:
                    done[o + t] = True
                    _spread_bounds(left, right, least, most, o, B - 1, t, vl, vr, constrained, similar)
                if vl + vr < roots[f]:
                    roots[f] = vl + vr
                    root_cuts[f] = t
            if roots[f] < best:
                best = roots[f]
                best_f = f
                best_t = root_cuts[f]
        live = live or rounds == 0
        rounds += 1
    for f in range(p):
        bound = min(bound, _least_bound(left, right, offset[f], bins[f] - 1) if large[f] else roots[f])
    if best < budget or bound >= best:
        return best, best_f, best_t, True
    return bound, -1, -1, False


@nb.njit(cache=True, nogil=True, error_model="numpy")
def compress(codes, planes, a, b, bins, offset, col, cutmap, to_codes, to_planes, to_bins, to_offset, to_col,
             to_cutmap):  # fmt: skip
    """Copy rows a..b, dropping codes and features that do not occur there; returns the number of features kept."""
    m = b - a
    p = 0
    widest = 1
    for f in range(len(bins)):
        widest = max(widest, bins[f])
    new = np.empty(widest, np.int64)
    to_offset[0] = 0
    for f in range(len(bins)):
        B = bins[f]
        for v in range(B):
            new[v] = -1
        for i in range(a, b):
            new[codes[f, i]] = 0
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
            to_codes[p, i] = new[codes[f, a + i]]
        to_bins[p] = n
        to_offset[p + 1] = o + n
        to_col[p] = col[f]
        p += 1
    for k in range(planes.shape[0]):
        for i in range(m):
            to_planes[k, i] = planes[k, a + i]
    return p


@nb.njit(cache=True, nogil=True, error_model="numpy")
def sort_by(codes, planes, m, p, f, B, to_codes, to_planes, ends):
    """Copy m rows in the order of feature f's codes; ends[t] = number of rows with code <= t."""
    at = np.zeros(B + 1, np.int64)
    for i in range(m):
        at[np.int64(codes[f, i]) + 1] += 1
    for t in range(B):
        at[t + 1] += at[t]
        ends[t] = at[t + 1]
    place = np.empty(m, np.int64)
    for i in range(m):
        place[i] = at[codes[f, i]]
        at[codes[f, i]] += 1
    for g in range(p):
        for i in range(m):
            to_codes[g, place[i]] = codes[g, i]
    for k in range(planes.shape[0]):
        for i in range(m):
            to_planes[k, place[i]] = planes[k, i]


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _first_bounds(planes, P, minima, m, ends, least, left, right, cuts, lam, keep, look_ahead):
    """Bounds of every cut before any is solved: a side is a leaf, or pays for two leaves at least."""
    run = np.zeros(P + len(minima), np.int64)
    total = np.zeros(P + len(minima), np.int64)
    for k in range(P + len(minima)):
        for i in range(m):
            total[k] += planes[k, i]
    i = 0
    for t in range(cuts):
        while i < ends[t]:
            for k in range(P + len(minima)):
                run[k] += planes[k, i]
            i += 1
        x = 0
        y = 0
        for k in range(P + len(minima)):
            if k < P:
                x = min(x, run[k])
                y = min(y, total[k] - run[k])
            else:
                x = INF if run[k] < minima[k - P] else x
                y = INF if total[k] - run[k] < minima[k - P] else y
        # A forbidden side forbids the cut: none of its leaves could be larger.
        if x < FEASIBLE:
            x = min(x + lam, least[t] + 2 * lam) if look_ahead else least[t] + lam
        if y < FEASIBLE:
            rest = least[cuts] - least[t]
            y = min(y + lam, rest + 2 * lam) if look_ahead else rest + lam
        left[t] = max(left[t], x) if keep else x
        right[t] = max(right[t], y) if keep else y


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _look_up(cache, key1, key2, depth):
    """Row of the cache for a set of rows and a depth; -1 if it is not there."""
    h = (key1 ^ (depth * 40503)) & (cache.shape[0] - 1)
    if cache[h, H_DEPTH] == depth and cache[h, H_KEY1] == key1 and cache[h, H_KEY2] == key2:
        return h
    return -1


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _remember(cache, pool, counters, key1, key2, depth, value, tree, length):
    """Store a lower bound (length 0) or an exact value with its tree, in place of whatever had that slot."""
    h = (key1 ^ (depth * 40503)) & (cache.shape[0] - 1)
    start = counters[C_POOL]
    if start + length > pool.shape[0]:
        length = 0  # the pool is full: what is exact is a lower bound as well
    for i in range(length):
        pool[start + i, 0] = tree[i, 0]
        pool[start + i, 1] = tree[i, 1]
    counters[C_POOL] += length
    cache[h, H_KEY1] = key1
    cache[h, H_KEY2] = key2
    cache[h, H_DEPTH] = depth
    cache[h, H_VALUE] = value
    cache[h, H_START] = start
    cache[h, H_LENGTH] = length


@nb.njit(cache=True, nogil=True, error_model="numpy")
def advance(
    level, ncodes, nplanes, scodes, splanes, nbins, noffset, ncol, ncut, ends, least, most, left, right, reg, tree,
    ltree, order, roots, root_cuts, P, minima, lam, slack, max_cuts, cache, pool, counters, control,
):  # fmt: skip
    """Run the search stack until level 0 is done, ``max_cuts`` of its cuts are solved, or the stop flag is set.

    Level 0 is set up by the caller. Every level holds a node: its rows (n...), the same rows in the order of the
    feature being tried as root (s...), bounds of that feature's cuts (left, right) and the best tree so far. Returns
    the level to resume from (level 0 and phase DONE: finished).

    Trees are rows (column, cut) in preorder, column -1 for a leaf, and -2 - column for the root of a subtree of depth
    two, whose lower splits are left to the caller.
    """
    constrained = len(minima) > 0
    cuts_solved = 0
    while True:
        if control[S_STOP] != 0:
            return level
        r = reg[level]
        p = r[R_P]
        m = r[R_M]
        phase = r[R_PHASE]
        f = r[R_FEATURE]
        t = r[R_CUT]
        budget = min(r[R_BUDGET], r[R_BEST])
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
                ncut,
                reg,
                tree,
                order,
                roots,
                root_cuts,
                P,
                minima,
                lam,
                cache,
                pool,
                counters,
                control,
            )
        elif phase == FEATURE:
            if r[R_NEXT] == r[R_LAST]:
                r[R_PHASE] = DONE
                continue
            f = order[level, r[R_NEXT]]
            r[R_FEATURE] = f
            B = nbins[level, f]
            sort_by(ncodes[level], nplanes[level], m, p, f, B, scodes[level], splanes[level], ends[level])
            _row_bounds(scodes[level], splanes[level], P, 0, m, f, B, least[level], most[level], 0)
            _first_bounds(
                splanes[level],
                P,
                minima,
                m,
                ends[level],
                least[level],
                left[level],
                right[level],
                B - 1,
                lam,
                level == 0,
                control[S_LOOK_AHEAD] != 0,
            )
            r[R_PHASE] = CUT
        elif phase == CUT:
            cuts = nbins[level, f] - 1
            if level == 0 and cuts_solved >= max_cuts:
                r[R_PHASE] = DONE
                continue
            t = root_cuts[level, f]
            root_cuts[level, f] = -1
            if t < 0 or left[level, t] + right[level, t] >= budget:
                t = _choose_cut(left[level], right[level], least[level], most[level], cuts, budget)
            if t < 0:
                r[R_SPLITLB] = min(r[R_SPLITLB], _least_bound(left[level], right[level], 0, cuts))
                r[R_NEXT] += 1
                r[R_PHASE] = FEATURE
                continue
            r[R_CUT] = t
            counters[C_CUTS] += 1
            r[R_PHASE] = LEFT
            push = 0
        elif phase in (LEFT, RIGHT):
            child = reg[level + 1]
            n = child[R_NTREE]
            v = child[R_BEST]
            if phase == LEFT:
                r[R_VL] = v
                r[R_NLEFT] = n
                for i in range(n):
                    ltree[level, i, 0] = tree[level + 1, i, 0]
                    ltree[level, i, 1] = tree[level + 1, i, 1]
            _spread_bounds(
                left[level],
                right[level],
                least[level],
                most[level],
                0,
                nbins[level, f] - 1,
                t,
                v if phase == LEFT else -INF,
                v if phase == RIGHT else -INF,
                constrained,
                control[S_SIMILAR] != 0,
            )
            r[R_PHASE] = CUT
            if phase == LEFT and left[level, t] + right[level, t] < budget:
                r[R_PHASE] = RIGHT
                push = 1
            elif phase == RIGHT and n > 0 and r[R_VL] + v < budget:
                r[R_BEST] = r[R_VL] + v
                k = r[R_NLEFT]
                tree[level, 0, 0] = ncol[level, f]
                tree[level, 0, 1] = ncut[level, noffset[level, f] + t]
                for i in range(k):
                    tree[level, 1 + i, 0] = ltree[level, i, 0]
                    tree[level, 1 + i, 1] = ltree[level, i, 1]
                for i in range(n):
                    tree[level, 1 + k + i, 0] = tree[level + 1, i, 0]
                    tree[level, 1 + k + i, 1] = tree[level + 1, i, 1]
                r[R_NTREE] = 1 + k + n
            if push < 0 and level == 0:
                cuts_solved += 1
        else:
            if level == 0:
                return 0
            if r[R_LAST] > 0 and r[R_BEST] >= r[R_BUDGET]:  # searched, and nothing below the budget: a lower bound
                r[R_BEST] = min(r[R_BEST], r[R_SPLITLB], r[R_TRUNC])
                r[R_NTREE] = 0
            if r[R_LAST] != -1 and m > 1:  # -1: it came from the cache
                _remember(cache, pool, counters, r[R_KEY1], r[R_KEY2], r[R_DEPTH], r[R_BEST], tree[level], r[R_NTREE])
            level -= 1
        if push >= 0:
            depth = r[R_DEPTH] if r[R_DEPTH] == UNLIMITED else r[R_DEPTH] - 1
            a = 0 if push == 0 else ends[level, t]
            b = ends[level, t] if push == 0 else m
            other = right[level, t] if push == 0 else r[R_VL]
            q = compress(
                scodes[level],
                splanes[level],
                a,
                b,
                nbins[level, :p],
                noffset[level],
                ncol[level],
                ncut[level],
                ncodes[level + 1],
                nplanes[level + 1],
                nbins[level + 1],
                noffset[level + 1],
                ncol[level + 1],
                ncut[level + 1],
            )
            level += 1
            r = reg[level]
            r[R_PHASE] = ENTER
            r[R_M] = b - a
            r[R_P] = q
            r[R_DEPTH] = depth
            r[R_BUDGET] = INF if depth <= 2 else budget - other + slack


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _enter(level, ncodes, nplanes, nbins, noffset, ncol, ncut, reg, tree, order, roots, root_cuts, P, minima, lam,
           cache, pool, counters, control):  # fmt: skip
    """Solve a node outright where cache, bounds or depth allow it, else order its features; returns the next phase.

    R_BEST, R_NTREE hold the result: an exact value and its tree, or a lower bound >= budget and no tree.
    """
    r = reg[level]
    p = r[R_P]
    m = r[R_M]
    budget = r[R_BUDGET]
    depth = r[R_DEPTH]
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
    K = P + len(minima)
    for i in range(m):
        key1 += nplanes[level, K, i]
        key2 += nplanes[level, K + 1, i]
    r[R_KEY1] = key1
    r[R_KEY2] = key2
    h = _look_up(cache, key1, key2, depth) if control[S_CACHE] != 0 else -1
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
    bins = nbins[level, :p]
    offset = noffset[level, : p + 1]
    if depth == 1:
        v, f, t = best_one_split(ncodes[level], nplanes[level], P, minima, 0, m, bins, offset)
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
            0,
            m,
            bins,
            offset,
            lam,
            INF,
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
