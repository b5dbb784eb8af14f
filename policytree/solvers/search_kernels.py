"""Kernels of the exact search: one split, two splits deep, and the bounded search over deeper trees.

Everything is int64 and relative to "action 0 for every row": ``planes[k, i]`` is what row ``i`` costs more under action
``k + 1`` than under action 0, so a leaf of the rows S costs ``min(0, min_k sum_S planes[k])`` (plus the leaf penalty).
Rows of a node lie side by side in ``codes[:, a:b]``; a feature's codes below ``bins`` are ``offset[f] .. offset[f + 1]``
in arrays that hold one number per (feature, code). ``counts[q, i]`` are row counts with a minimum per leaf each.

A kernel names only what this file defines (see CONTRIBUTING: numba's disk cache).
"""

import numba as nb
import numpy as np

INF = 1 << 60  # value of a leaf that a minimum count forbids; two of them still fit
FEASIBLE = 1 << 59  # values below are real

# Scalars of a level of the search stack.
R_PHASE, R_M, R_P, R_DEPTH, R_BUDGET, R_BEST, R_NTREE, R_LEAF, R_LOW = 0, 1, 2, 3, 4, 5, 6, 7, 8
R_LAST, R_NEXT, R_FEATURE, R_CUT, R_VL, R_NLEFT, R_SPLITLB, R_TRUNC = 9, 10, 11, 12, 13, 14, 15, 16
R_LAZY, R_LEFTLAZY = 17, 18
N_REGISTERS = 19
# Phases of a level.
ENTER, FEATURE, CUT, LEFT, RIGHT, DONE = 0, 1, 2, 3, 4, 5
# Counters of work.
C_NODES, C_CUTS, C_TWO = 0, 1, 2
N_COUNTERS = 3


@nb.njit(cache=True, nogil=True, error_model="numpy")
def node_sums(planes, counts, minima, a, b):
    """Leaf value (INF if forbidden) and the bound "every row gets its best action" of rows a..b."""
    P = planes.shape[0]
    value = 0
    for k in range(P):
        s = 0
        for i in range(a, b):
            s += planes[k, i]
        value = min(value, s)
    for q in range(counts.shape[0]):
        s = 0
        for i in range(a, b):
            s += counts[q, i]
        if s < minima[q]:
            value = INF
    low = 0
    for i in range(a, b):
        x = 0
        for k in range(P):
            x = min(x, planes[k, i])
        low += x
    return value, low


@nb.njit(cache=True, nogil=True, error_model="numpy")
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


@nb.njit(cache=True, nogil=True, error_model="numpy")
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


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _scan_planes(T, rows, width, P, minima, quad, f_low, f_high, g_low, g_high):
    """The same for any number of actions and minimum counts; T[k] is the cumulated table of plane k, counts last.

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
        for k in range(P):
            row = T[k, t]
            last = T[k, rows - 1]
            low = row[width - 1]
            high = last[width - 1] - low
            for u in range(width - 1):
                x = row[u]
                y = last[u] - x
                qa[u] = min(qa[u], x)
                qb[u] = min(qb[u], low - x)
                qc[u] = min(qc[u], y)
                qd[u] = min(qd[u], high - y)
        for q in range(len(minima)):
            row = T[P + q, t]
            last = T[P + q, rows - 1]
            low = row[width - 1]
            high = last[width - 1] - low
            least = minima[q]
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


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _pair(x, rows, y, width, planes, counts, minima, a, b, buffer, quad, f_low, f_high, g_low, g_high):
    """Fill, cumulate and scan the tables of two code rows ``x`` (< rows) and ``y`` (< width) over rows a..b."""
    P = planes.shape[0]
    Q = counts.shape[0]
    size = rows * width
    buffer[: (P + Q) * size] = 0
    m = b - a
    for k in range(P):
        flat = buffer[k * size : (k + 1) * size]
        d = planes[k, a:b]
        for i in range(m):
            flat[np.int64(x[i]) * width + y[i]] += d[i]
        _cumulate(flat.reshape((rows, width)), rows, width)
    for q in range(Q):
        flat = buffer[(P + q) * size : (P + q + 1) * size]
        d = counts[q, a:b]
        for i in range(m):
            flat[np.int64(x[i]) * width + y[i]] += d[i]
        _cumulate(flat.reshape((rows, width)), rows, width)
    if P == 1 and Q == 0:
        _scan_signed(buffer[:size].reshape((rows, width)), rows, width, f_low, f_high, g_low, g_high)
    else:
        T = buffer[: (P + Q) * size].reshape((P + Q, rows, width))
        _scan_planes(T, rows, width, P, minima, quad, f_low, f_high, g_low, g_high)


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _prefix_sums(codes, planes, counts, a, b, bins, offset):
    """Cumulated sums of every plane and count over every feature's codes, shape (P + Q, offset[-1])."""
    P = planes.shape[0]
    Q = counts.shape[0]
    one = np.zeros((P + Q, offset[-1]), np.int64)
    for f in range(len(bins)):
        o = offset[f]
        c = codes[f, a:b]
        for k in range(P):
            h = one[k, o : o + bins[f]]
            d = planes[k, a:b]
            for i in range(b - a):
                h[c[i]] += d[i]
        for q in range(Q):
            h = one[P + q, o : o + bins[f]]
            d = counts[q, a:b]
            for i in range(b - a):
                h[c[i]] += d[i]
        for k in range(P + Q):
            for t in range(o + 1, o + bins[f]):
                one[k, t] += one[k, t - 1]
    return one


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _part(one, P, minima, hi, lo):
    """Leaf value of the codes between prefix positions lo (excluded, -1: none) and hi (included) of one feature."""
    value = 0
    for k in range(P):
        s = one[k, hi]
        if lo >= 0:
            s -= one[k, lo]
        value = min(value, s)
    for q in range(len(minima)):
        s = one[P + q, hi]
        if lo >= 0:
            s -= one[P + q, lo]
        if s < minima[q]:
            value = INF
    return value


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _inside(one, P, minima, o, B, t):
    """Best two leaves of feature f itself inside {f <= t} and {f > t}; o is its offset, B its bins."""
    low = INF
    high = INF
    if P == 1 and len(minima) == 0:
        c = one[0, o : o + B]
        x = c[t]
        z = c[B - 1]
        for u in range(t):
            low = min(low, min(0, c[u]) + min(0, x - c[u]))
        for u in range(t + 1, B - 1):
            high = min(high, min(0, c[u] - x) + min(0, z - c[u]))
    else:
        for u in range(t):
            low = min(low, _part(one, P, minima, o + u, -1) + _part(one, P, minima, o + t, o + u))
        for u in range(t + 1, B - 1):
            high = min(high, _part(one, P, minima, o + u, o + t) + _part(one, P, minima, o + B - 1, o + u))
    return low, high


@nb.njit(cache=True, nogil=True, error_model="numpy")
def best_one_split(codes, planes, counts, minima, a, b, bins, offset):
    """Best two leaves of rows a..b: value without penalties (INF if none), feature, cut. Ties: first feature, cut."""
    P = planes.shape[0]
    one = _prefix_sums(codes, planes, counts, a, b, bins, offset)
    best = INF
    best_f = -1
    best_t = -1
    for f in range(len(bins)):
        o = offset[f]
        last = o + bins[f] - 1
        for t in range(o, last):
            v = _part(one, P, minima, t, -1)
            if v < FEASIBLE:
                v += _part(one, P, minima, last, t)
            if v < best:
                best = v
                best_f = f
                best_t = t - o
    return best, best_f, best_t


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _row_bounds(codes, planes, a, b, f, B):
    """Cumulated least and largest value of the rows with each code of f (what moving them can change)."""
    P = planes.shape[0]
    least = np.zeros(B, np.int64)
    most = np.zeros(B, np.int64)
    c = codes[f]
    for i in range(a, b):
        x = 0
        y = 0
        for k in range(P):
            x = min(x, planes[k, i])
            y = max(y, planes[k, i])
        least[c[i]] += x
        most[c[i]] += y
    for t in range(1, B):
        least[t] += least[t - 1]
        most[t] += most[t - 1]
    return least, most


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _spread_bounds(left, right, least, most, at, vl, vr, cuts, constrained):
    """Similar support: what cut ``at`` (values >= vl, vr) says of every other cut of the feature.

    Rows that move change a side's optimum by at least their least, at most their largest value. With minimum counts a
    tree may become forbidden when rows leave, so only bounds from larger to smaller sets hold.
    """
    la = least[at]
    ma = most[at]
    for t in range(at):
        left[t] = max(left[t], vl - (ma - most[t]))
    if not constrained:
        for t in range(at):
            right[t] = max(right[t], vr + (la - least[t]))
        for t in range(at + 1, cuts):
            left[t] = max(left[t], vl + (least[t] - la))
    for t in range(at + 1, cuts):
        right[t] = max(right[t], vr - (most[t] - ma))
    left[at] = max(left[at], vl)
    right[at] = max(right[at], vr)


@nb.njit(cache=True, nogil=True, error_model="numpy")
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


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _least_bound(left, right, cuts):
    low = INF
    for t in range(cuts):
        low = min(low, left[t] + right[t])
    return low


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _choose_many(left, right, done, least, most, cuts, budget, limit, chosen):
    """Up to ``limit`` live, unsolved cuts spread by mass over all of them, ascending; returns how many."""
    mass = 0
    live = 0
    for t in range(cuts):
        if not done[t] and left[t] + right[t] < budget:
            live += 1
            w = most[t] - least[t]
            if t > 0:
                w -= most[t - 1] - least[t - 1]
            mass += max(w, 1)
    n = 0
    seen = 0
    for t in range(cuts):
        if not done[t] and left[t] + right[t] < budget:
            w = most[t] - least[t]
            if t > 0:
                w -= most[t - 1] - least[t - 1]
            seen += max(w, 1)
            if live <= limit or seen * (limit + 1.0) >= mass * (n + 1.0):
                if n < limit:
                    chosen[n] = t
                    n += 1
    return n


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _table_pays(rows, width, m):
    """Whether one full table of a pair is cheaper than a few coarse ones in both directions (measured)."""
    return rows * width <= 3 * m + 40 * (rows + width)


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _two_deep_value(one, P, minima, low2, high2, lam, o, B, t):
    """Value of the best tree with root cut t of a feature and at most one split on either side: (left, right)."""
    left = min(_part(one, P, minima, o + t, -1) + lam, low2[o + t] + 2 * lam)
    right = min(_part(one, P, minima, o + B - 1, o + t) + lam, high2[o + t] + 2 * lam)
    return left, right


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _full_pairs(codes, planes, counts, minima, a, b, bins, offset, low2, high2, large, quad, stop):
    """All pairs of features whose full table pays; marks the features of the others as large."""
    p = len(bins)
    m = b - a
    size = 1
    for f in range(p):
        for g in range(f + 1, p):
            if _table_pays(bins[f], bins[g], m):
                size = max(size, bins[f] * bins[g])
            else:
                large[f] = True
                large[g] = True
    buffer = np.empty(size * (planes.shape[0] + counts.shape[0]), np.int64)
    for f in range(p):
        if stop[0] != 0:
            return
        for g in range(f + 1, p):
            if not _table_pays(bins[f], bins[g], m):
                continue
            x = f
            y = g
            if bins[f] > bins[g]:  # long rows: they are what is scanned by vector instructions
                x = g
                y = f
            i = offset[x]
            j = offset[y]
            _pair(
                codes[x, a:b],
                bins[x],
                codes[y, a:b],
                bins[y],
                planes,
                counts,
                minima,
                a,
                b,
                buffer,
                quad,
                low2[i : i + bins[x]],
                high2[i : i + bins[x]],
                low2[j : j + bins[y]],
                high2[j : j + bins[y]],
            )


@nb.njit(cache=True, nogil=True, error_model="numpy")
def depth_two(codes, planes, counts, minima, a, b, bins, offset, lam, budget, roots, root_cuts, stop):
    """Best tree of at most two splits on a path over rows a..b, if it is below the budget.

    Returns value, root feature (-1: a leaf is best), cut, and whether the value is exact; otherwise it is a lower
    bound >= budget. ``roots[f]``, ``root_cuts[f]`` get the best value found with root feature f, and its cut.

    Work O(p^2 (m + B^2)) for features of few codes. A pair of long features is solved at chosen cuts only, and the cuts
    between are refuted by bounds.
    """
    p = len(bins)
    P = planes.shape[0]
    value, floor = node_sums(planes, counts, minima, a, b)
    best = value + lam
    best_f = -1
    best_t = -1
    widest = 1
    for f in range(p):
        roots[f] = INF
        root_cuts[f] = -1
        widest = max(widest, bins[f])
    one = _prefix_sums(codes, planes, counts, a, b, bins, offset)
    low2 = np.full(offset[p], INF, np.int64)
    high2 = np.full(offset[p], INF, np.int64)
    quad = np.empty((4, widest), np.int64)
    large = np.zeros(p, np.bool_)
    _full_pairs(codes, planes, counts, minima, a, b, bins, offset, low2, high2, large, quad, stop)
    if stop[0] != 0:
        return floor + lam, -1, -1, False
    any_large = False
    for f in range(p):
        if large[f]:
            any_large = True
            continue
        o = offset[f]
        for t in range(bins[f] - 1):
            x, y = _inside(one, P, minima, o, bins[f], t)
            low2[o + t] = min(low2[o + t], x)
            high2[o + t] = min(high2[o + t], y)
            x, y = _two_deep_value(one, P, minima, low2, high2, lam, o, bins[f], t)
            if x + y < roots[f]:
                roots[f] = x + y
                root_cuts[f] = t
        if roots[f] < best:
            best = roots[f]
            best_f = f
            best_t = root_cuts[f]
    bound = best
    if any_large:
        best, best_f, best_t, bound = _large_roots(
            codes,
            planes,
            counts,
            minima,
            a,
            b,
            bins,
            offset,
            lam,
            budget,
            roots,
            root_cuts,
            stop,
            one,
            low2,
            high2,
            large,
            quad,
            best,
            best_f,
            best_t,
        )
        if stop[0] != 0:
            return floor + lam, -1, -1, False
    if best < budget or bound >= best:
        return best, best_f, best_t, True
    return bound, -1, -1, False


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _large_roots(
    codes, planes, counts, minima, a, b, bins, offset, lam, budget, roots, root_cuts, stop,
    one, low2, high2, large, quad, best, best_f, best_t,
):  # fmt: skip
    """Root cuts of long features: solve some, refute those between by bounds, until none is live."""
    p = len(bins)
    P = planes.shape[0]
    m = b - a
    limit = 16
    constrained = len(minima) > 0
    S = offset[p]
    widest = quad.shape[1]
    least = np.zeros(S, np.int64)
    most = np.zeros(S, np.int64)
    left = np.zeros(S, np.int64)
    right = np.zeros(S, np.int64)
    done = np.zeros(S, np.bool_)
    chosen = np.empty(limit, np.int64)
    segment = np.empty(widest, np.uint16)
    x = np.empty(m, np.uint16)
    seg_low = np.empty(limit + 1, np.int64)
    seg_high = np.empty(limit + 1, np.int64)
    unused = np.full((2, widest), INF, np.int64)
    buffer = np.empty((limit + 1) * widest * (P + counts.shape[0]), np.int64)
    for f in range(p):
        if large[f]:
            o = offset[f]
            e = o + bins[f]
            least[o:e], most[o:e] = _row_bounds(codes, planes, a, b, f, bins[f])
            for t in range(o, e):
                left[t] = least[t] + lam
                right[t] = least[e - 1] - least[t] + lam
    live = True
    while live:
        live = False
        for f in range(p):
            if not large[f]:
                continue
            o = offset[f]
            e = o + bins[f]
            B = bins[f]
            n = _choose_many(
                left[o:e], right[o:e], done[o:e], least[o:e], most[o:e], B - 1, min(budget, best), limit, chosen
            )
            if n == 0:
                continue
            if stop[0] != 0:
                return best, best_f, best_t, best
            live = True
            j = 0
            for c in range(B):
                while j < n and chosen[j] < c:
                    j += 1
                segment[c] = j
            cf = codes[f, a:b]
            for i in range(m):
                x[i] = segment[cf[i]]
            seg_low[:] = INF
            seg_high[:] = INF
            for g in range(p):
                if g != f and not _table_pays(B, bins[g], m):
                    _pair(
                        x,
                        n + 1,
                        codes[g, a:b],
                        bins[g],
                        planes,
                        counts,
                        minima,
                        a,
                        b,
                        buffer,
                        quad,
                        seg_low,
                        seg_high,
                        unused[0],
                        unused[1],
                    )
            for j in range(n):
                t = chosen[j]
                vl, vr = _inside(one, P, minima, o, B, t)
                low2[o + t] = min(low2[o + t], vl, seg_low[j])
                high2[o + t] = min(high2[o + t], vr, seg_high[j])
                vl, vr = _two_deep_value(one, P, minima, low2, high2, lam, o, B, t)
                done[o + t] = True
                _spread_bounds(left[o:e], right[o:e], least[o:e], most[o:e], t, vl, vr, B - 1, constrained)
                if vl + vr < roots[f]:
                    roots[f] = vl + vr
                    root_cuts[f] = t
            if roots[f] < best:
                best = roots[f]
                best_f = f
                best_t = root_cuts[f]
    bound = best
    for f in range(p):
        if large[f]:
            bound = min(bound, _least_bound(left[offset[f] :], right[offset[f] :], bins[f] - 1))
    return best, best_f, best_t, bound


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _emit_side(codes, planes, counts, minima, a, b, bins, offset, lam, f, t, high, col, cutmap, tree, pos):
    """Write the best subtree with at most one split of the rows of a..b on one side of cut t of f; new end."""
    p = len(bins)
    m = 0
    for i in range(a, b):
        if (codes[f, i] > t) == high:
            m += 1
    sub = np.empty((p, m), np.uint16)
    sp = np.empty((planes.shape[0], m), np.int64)
    sc = np.empty((counts.shape[0], m), np.int64)
    n = 0
    for i in range(a, b):
        if (codes[f, i] > t) == high:
            for g in range(p):
                sub[g, n] = codes[g, i]
            for k in range(planes.shape[0]):
                sp[k, n] = planes[k, i]
            for q in range(counts.shape[0]):
                sc[q, n] = counts[q, i]
            n += 1
    leaf, low = node_sums(sp, sc, minima, 0, m)
    split, g, u = best_one_split(sub, sp, sc, minima, 0, m, bins, offset)
    if split + lam < leaf:
        tree[pos, 0] = col[g]
        tree[pos, 1] = cutmap[offset[g] + u]
        tree[pos + 1, 0] = -1
        tree[pos + 2, 0] = -1
        return pos + 3
    tree[pos, 0] = -1
    return pos + 1


@nb.njit(cache=True, nogil=True, error_model="numpy")
def emit_depth_two(codes, planes, counts, minima, a, b, bins, offset, lam, f, t, col, cutmap, tree):
    """Write the depth-two tree with root (f, t) in preorder as rows (column, cut), -1 for a leaf; its length."""
    if f < 0:
        tree[0, 0] = -1
        return 1
    tree[0, 0] = col[f]
    tree[0, 1] = cutmap[offset[f] + t]
    pos = _emit_side(codes, planes, counts, minima, a, b, bins, offset, lam, f, t, False, col, cutmap, tree, 1)
    return _emit_side(codes, planes, counts, minima, a, b, bins, offset, lam, f, t, True, col, cutmap, tree, pos)


@nb.njit(cache=True, nogil=True, error_model="numpy")
def compress(codes, planes, counts, a, b, bins, offset, col, cutmap, to_codes, to_planes, to_counts, to_bins, to_offset,
             to_col, to_cutmap):  # fmt: skip
    """Copy rows a..b, dropping codes and features that do not occur there; returns the number of features kept."""
    m = b - a
    p = 0
    to_offset[0] = 0
    for f in range(len(bins)):
        B = bins[f]
        new = np.full(B, -1, np.int64)
        c = codes[f, a:b]
        for i in range(m):
            new[c[i]] = 0
        n = 0
        o = to_offset[p]
        for v in range(B):
            if new[v] == 0:
                new[v] = n
                to_cutmap[o + n] = cutmap[offset[f] + v]
                n += 1
        if n < 2:
            continue
        to = to_codes[p]
        for i in range(m):
            to[i] = new[c[i]]
        to_bins[p] = n
        to_offset[p + 1] = o + n
        to_col[p] = col[f]
        p += 1
    for k in range(planes.shape[0]):
        for i in range(m):
            to_planes[k, i] = planes[k, a + i]
    for q in range(counts.shape[0]):
        for i in range(m):
            to_counts[q, i] = counts[q, a + i]
    return p


@nb.njit(cache=True, nogil=True, error_model="numpy")
def sort_by(codes, planes, counts, m, p, f, B, to_codes, to_planes, to_counts, ends):
    """Copy m rows in the order of feature f's codes; ends[t] = number of rows with code <= t."""
    c = codes[f]
    ends[:B] = 0
    for i in range(m):
        ends[c[i]] += 1
    for t in range(1, B):
        ends[t] += ends[t - 1]
    at = np.empty(B, np.int64)
    at[0] = 0
    for t in range(1, B):
        at[t] = ends[t - 1]
    place = np.empty(m, np.int64)
    for i in range(m):
        place[i] = at[c[i]]
        at[c[i]] += 1
    for g in range(p):
        row = codes[g]
        to = to_codes[g]
        for i in range(m):
            to[place[i]] = row[i]
    for k in range(planes.shape[0]):
        for i in range(m):
            to_planes[k, place[i]] = planes[k, i]
    for q in range(counts.shape[0]):
        for i in range(m):
            to_counts[q, place[i]] = counts[q, i]


@nb.njit(cache=True, nogil=True, error_model="numpy")
def advance(
    level, ncodes, nplanes, ncounts, scodes, splanes, scounts, nbins, noffset, ncol, ncut, ends, least, most, left,
    right, reg, tree, ltree, order, roots, root_cuts, minima, lam, slack, max_cuts, counters, stop,
):  # fmt: skip
    """Run the search stack until level 0 is done, ``max_cuts`` of its cuts are solved, or ``stop`` is set.

    Level 0 is set up by the caller. Every level holds a node: its rows (n...), the same rows in the order of the feature
    being tried as root (s...), bounds of that feature's cuts (left, right) and the best tree so far. Returns the level
    to resume from (level 0 and phase DONE: finished).
    """
    constrained = len(minima) > 0
    cuts_solved = 0
    while True:
        if stop[0] != 0:
            return level
        r = reg[level]
        p = r[R_P]
        m = r[R_M]
        bins = nbins[level, :p]
        offset = noffset[level, : p + 1]
        phase = r[R_PHASE]
        if phase == ENTER:
            counters[C_NODES] += 1
            r[R_PHASE] = _enter(
                r,
                ncodes[level, :p],
                nplanes[level],
                ncounts[level],
                minima,
                bins,
                offset,
                lam,
                tree[level],
                ncol[level],
                ncut[level],
                order[level],
                roots[level],
                root_cuts[level],
                counters,
                stop,
                False,
            )
        elif phase == FEATURE:
            if r[R_NEXT] == r[R_LAST]:
                r[R_PHASE] = DONE
                continue
            f = order[level, r[R_NEXT]]
            r[R_FEATURE] = f
            B = bins[f]
            sort_by(
                ncodes[level],
                nplanes[level],
                ncounts[level],
                m,
                p,
                f,
                B,
                scodes[level],
                splanes[level],
                scounts[level],
                ends[level],
            )
            lo, hi = _row_bounds(scodes[level], splanes[level], 0, m, f, B)
            for t in range(B):
                least[level, t] = lo[t]
                most[level, t] = hi[t]
                if level > 0:
                    left[level, t] = lo[t] + lam
                    right[level, t] = lo[B - 1] - lo[t] + lam
                else:  # level 0 keeps what earlier rounds found
                    left[level, t] = max(left[level, t], lo[t] + lam)
                    right[level, t] = max(right[level, t], lo[B - 1] - lo[t] + lam)
            r[R_PHASE] = CUT
        elif phase == CUT:
            f = r[R_FEATURE]
            cuts = bins[f] - 1
            budget = min(r[R_BUDGET], r[R_BEST])
            if level == 0 and cuts_solved >= max_cuts:
                r[R_PHASE] = DONE
                continue
            t = root_cuts[level, f]
            root_cuts[level, f] = -1
            if t < 0 or left[level, t] + right[level, t] >= budget:
                t = _choose_cut(left[level], right[level], least[level], most[level], cuts, budget)
            if t < 0:
                r[R_SPLITLB] = min(r[R_SPLITLB], _least_bound(left[level], right[level], cuts))
                r[R_NEXT] += 1
                r[R_PHASE] = FEATURE
                continue
            r[R_CUT] = t
            counters[C_CUTS] += 1
            r[R_PHASE] = LEFT
            _child(
                level,
                0,
                ends[level, t],
                r[R_DEPTH] - 1,
                budget - right[level, t],
                slack,
                ncodes,
                nplanes,
                ncounts,
                scodes,
                splanes,
                scounts,
                nbins,
                noffset,
                ncol,
                ncut,
                reg,
            )
            level += 1
        elif phase == LEFT:
            f = r[R_FEATURE]
            cuts = bins[f] - 1
            t = r[R_CUT]
            child = reg[level + 1]
            vl = child[R_BEST]
            r[R_VL] = vl
            r[R_NLEFT] = child[R_NTREE]
            r[R_LEFTLAZY] = child[R_LAZY]
            ltree[level, : child[R_NTREE]] = tree[level + 1, : child[R_NTREE]]
            _spread_bounds(left[level], right[level], least[level], most[level], t, vl, -INF, cuts, constrained)
            budget = min(r[R_BUDGET], r[R_BEST])
            if left[level, t] + right[level, t] >= budget:
                cuts_solved += 1
                r[R_PHASE] = CUT
                continue
            r[R_PHASE] = RIGHT
            _child(
                level,
                ends[level, t],
                m,
                r[R_DEPTH] - 1,
                budget - vl,
                slack,
                ncodes,
                nplanes,
                ncounts,
                scodes,
                splanes,
                scounts,
                nbins,
                noffset,
                ncol,
                ncut,
                reg,
            )
            level += 1
        elif phase == RIGHT:
            f = r[R_FEATURE]
            t = r[R_CUT]
            child = reg[level + 1]
            vr = child[R_BEST]
            _spread_bounds(left[level], right[level], least[level], most[level], t, -INF, vr, bins[f] - 1, constrained)
            v = r[R_VL] + vr
            if child[R_NTREE] > 0 and v < min(r[R_BUDGET], r[R_BEST]):
                r[R_BEST] = v
                n_right = child[R_NTREE]
                rtree = tree[level + 1, :n_right].copy()
                for side in range(2):  # depth-two children gave their values only: now their trees are wanted
                    if (r[R_LEFTLAZY] if side == 0 else child[R_LAZY]) == 0:
                        continue
                    right_lazy = child[R_LAZY]
                    _child(
                        level,
                        0 if side == 0 else ends[level, t],
                        ends[level, t] if side == 0 else m,
                        2,
                        INF,
                        slack,
                        ncodes,
                        nplanes,
                        ncounts,
                        scodes,
                        splanes,
                        scounts,
                        nbins,
                        noffset,
                        ncol,
                        ncut,
                        reg,
                    )
                    q = child[R_P]
                    _enter(
                        child,
                        ncodes[level + 1, :q],
                        nplanes[level + 1],
                        ncounts[level + 1],
                        minima,
                        nbins[level + 1, :q],
                        noffset[level + 1, : q + 1],
                        lam,
                        tree[level + 1],
                        ncol[level + 1],
                        ncut[level + 1],
                        order[level + 1],
                        roots[level + 1],
                        root_cuts[level + 1],
                        counters,
                        stop,
                        True,
                    )
                    if stop[0] != 0:
                        r[R_BEST] = INF
                        return level
                    if side == 0:
                        r[R_NLEFT] = child[R_NTREE]
                        ltree[level, : child[R_NTREE]] = tree[level + 1, : child[R_NTREE]]
                        child[R_LAZY] = right_lazy
                    else:
                        n_right = child[R_NTREE]
                        rtree = tree[level + 1, :n_right].copy()
                n = r[R_NLEFT]
                tree[level, 0, 0] = ncol[level, f]
                tree[level, 0, 1] = ncut[level, offset[f] + t]
                tree[level, 1 : n + 1] = ltree[level, :n]
                tree[level, n + 1 : n + 1 + n_right] = rtree
                r[R_NTREE] = n + 1 + n_right
            cuts_solved += level == 0
            r[R_PHASE] = CUT
        else:
            if level == 0:
                return 0
            if r[R_LAST] > 0 and r[R_BEST] >= r[R_BUDGET]:  # searched, and nothing below the budget: a lower bound
                r[R_BEST] = min(r[R_BEST], r[R_SPLITLB], r[R_TRUNC])
                r[R_NTREE] = 0
            level -= 1


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _child(level, a, b, depth, budget, slack, ncodes, nplanes, ncounts, scodes, splanes, scounts, nbins, noffset, ncol,
           ncut, reg):  # fmt: skip
    """Set up rows a..b of the sorted node as the node of the next level."""
    p = reg[level, R_P]
    nxt = level + 1
    q = compress(
        scodes[level],
        splanes[level],
        scounts[level],
        a,
        b,
        nbins[level, :p],
        noffset[level],
        ncol[level],
        ncut[level],
        ncodes[nxt],
        nplanes[nxt],
        ncounts[nxt],
        nbins[nxt],
        noffset[nxt],
        ncol[nxt],
        ncut[nxt],
    )
    r = reg[nxt]
    r[R_PHASE] = ENTER
    r[R_M] = b - a
    r[R_P] = q
    r[R_DEPTH] = depth
    r[R_BUDGET] = INF if depth <= 2 else budget + slack


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _enter(r, codes, planes, counts, minima, bins, offset, lam, tree, col, cutmap, order, roots, root_cuts, counters,
           stop, emit):  # fmt: skip
    """Solve a node outright where bounds or depth allow it, else order its features; returns the next phase.

    R_BEST, R_NTREE hold the result: an exact value and its tree, or a lower bound >= budget and no tree.
    """
    p = len(bins)
    m = r[R_M]
    budget = r[R_BUDGET]
    depth = r[R_DEPTH]
    leaf, floor = node_sums(planes, counts, minima, 0, m)
    leaf += lam
    r[R_BEST] = leaf
    r[R_NTREE] = 1
    tree[0, 0] = -1
    r[R_LAST] = 0
    r[R_NEXT] = 0
    r[R_SPLITLB] = INF
    r[R_TRUNC] = INF
    r[R_LAZY] = 0
    if p == 0 or depth == 0 or leaf <= floor + 2 * lam:
        return DONE
    if lam > 0:  # a tree of h leaves costs at least floor + h * lam, and has depth at most h - 1
        most = (min(budget, leaf) - floor + lam - 1) // lam - 1
        if most - 1 < depth:
            depth = max(most - 1, 0)
            r[R_TRUNC] = floor + (max(most, 1) + 1) * lam
    if depth == 0:
        r[R_BEST] = min(leaf, r[R_TRUNC])
        r[R_NTREE] = 1 if leaf <= r[R_TRUNC] else 0
        return DONE
    if depth == 1:
        v, f, t = best_one_split(codes, planes, counts, minima, 0, m, bins, offset)
        v += 2 * lam
        if v < leaf:
            r[R_BEST] = v
            r[R_NTREE] = 3
            tree[0, 0] = col[f]
            tree[0, 1] = cutmap[offset[f] + t]
            tree[1, 0] = -1
            tree[2, 0] = -1
    else:
        counters[C_TWO] += 1
        v, f, t, _exact = depth_two(codes, planes, counts, minima, 0, m, bins, offset, lam, INF, roots, root_cuts, stop)
        if stop[0] != 0:
            return ENTER
        r[R_BEST] = v
        if depth == 2 and not emit and f >= 0:
            r[R_LAZY] = 1
        else:
            r[R_NTREE] = emit_depth_two(codes, planes, counts, minima, 0, m, bins, offset, lam, f, t, col, cutmap, tree)
    if depth <= 2:
        if r[R_BEST] >= budget and r[R_TRUNC] < r[R_BEST]:
            r[R_BEST] = r[R_TRUNC]
            r[R_NTREE] = 0
        return DONE
    r[R_DEPTH] = depth
    r[R_LAST] = p
    _order_by(roots, order, p)
    return FEATURE


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _order_by(values, order, p):
    """Insertion sort of feature indices by value, stable."""
    for f in range(p):
        j = f
        while j > 0 and values[order[j - 1]] > values[f]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = f
