"""Tables over pairs of features: every pair of cuts at once.

A table of two features holds, for every pair of codes, a sum over the rows that have both. Cumulated both ways, one
cell splits the rows into the four leaves of two crossing cuts:

                 code of y <= u      code of y > u
    code of x <= t      C[t, u]        low - C[t, u]          low  = C[t, last]
    code of x >  t   last - C[t, u]    the rest               last = C[last, u]

So one scan gives, for every cut of x as the first split, the best cut of y on each side, and the same with x and y
exchanged. For two actions and no counted rows the best of two leaves is min(min_u x, low - max_u x): only the least
and the largest cell of a row or column matter.

Cost: up to n additions to fill, rows x width steps to cumulate and to scan, in vectors of int32.
Symbols: a table has R rows and W columns.
"""

from typing import NamedTuple

from policytree.solvers.kernels.base.layout import FORBIDDEN, i4, int_2d
from policytree.solvers.kernels.base.sums import price_below
from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.depth_two.sparse_tables import fill_pair

ROOM = 40  # tables with this many codes on one side always pay
ROOM_OF_PLANES = 8  # the same for several losses or counts


class TableScratch(NamedTuple):
    """Room for the largest table: its cells, summed and cumulated, and four numbers for every column."""

    cells: int_2d  # (2, sums * rows * width)
    extremes: int_2d  # (4, width)


@kernel(inline="always")
def is_signed(rules):
    """Whether one signed loss is all there is: two actions, and no counted rows."""
    return rules.n_losses == 1 and len(rules.minima) == 0


@kernel(separate=True, borrows=True)
def cumulate(H, C, R, W):
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
            above = C[t - 1]
            for u in range(W):
                s0 = i4(s0 + h0[u])
                s1 = i4(s1 + h1[u])
                s2 = i4(s2 + h2[u])
                s3 = i4(s3 + h3[u])
                x = i4(above[u] + s0)
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
            above = C[t - 1]
            for u in range(W):
                s0 = i4(s0 + h0[u])
                c0[u] = i4(above[u] + s0)


@kernel(borrows=True)
def scan_signed(C, R, W, extremes, splits, f_at, g_at):
    """Scan one cumulated table for two actions without counted rows.

    ``splits`` takes the best values of the cuts of the rows from ``f_at`` on, of the columns from ``g_at`` on. Two rows
    at once share the loads of the last row.
    """
    low_to, high_to = splits.low, splits.high
    g_low = low_to[g_at : g_at + W]
    g_high = high_to[g_at : g_at + W]
    zero = i4(0)
    last = C[R - 1]
    total = last[W - 1]
    q0 = extremes[0]
    q1 = extremes[1]
    q2 = extremes[2]
    q3 = extremes[3]
    for u in range(W):
        q0[u] = zero
        q1[u] = zero
        q2[u] = zero
        q3[u] = zero
    for k in range((R - 1) // 2):
        t = 2 * k
        row = C[t]
        next_row = C[t + 1]
        low = row[W - 1]
        next_low = next_row[W - 1]
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
            v = next_row[u]
            w = i4(z - v)
            h = i4(next_low - v)
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
        at = f_at + t
        low_to[at] = min(low_to[at], min(a0, i4(low - a1)))
        high_to[at] = min(high_to[at], min(c0, i4(i4(total - low) - c1)))
        low_to[at + 1] = min(low_to[at + 1], min(e0, i4(next_low - e1)))
        high_to[at + 1] = min(high_to[at + 1], min(g0, i4(i4(total - next_low) - g1)))
    if (R - 1) % 2 == 1:
        row = C[R - 2]
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
        at = f_at + R - 2
        low_to[at] = min(low_to[at], min(a0, i4(low - a1)))
        high_to[at] = min(high_to[at], min(c0, i4(i4(total - low) - c1)))
    for u in range(W):
        g_low[u] = min(g_low[u], min(q0[u], i4(last[u] - q1[u])))
        g_high[u] = min(g_high[u], min(q2[u], i4(i4(total - last[u]) - q3[u])))


@kernel(borrows=True)
def scan_planes(T, R, W, rules, extremes, splits, f_at, g_at):
    """Scan the cumulated tables of several losses and counts, T[k]; results as in :func:`scan_signed`."""
    low_to, high_to = splits.low, splits.high
    g_low = low_to[g_at : g_at + W]
    g_high = high_to[g_at : g_at + W]
    P, minima = rules.n_losses, rules.minima
    zero = i4(0)
    never = i4(FORBIDDEN)
    qa = extremes[0]
    qb = extremes[1]
    qc = extremes[2]
    qd = extremes[3]
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
        low_to[f_at + t] = min(low_to[f_at + t], m_low)
        high_to[f_at + t] = min(high_to[f_at + t], m_high)


@kernel(separate=True, borrows=True)
def scan(C, R, W, rules, extremes, splits, f_at, g_at):
    """Best second splits from cumulated tables C[k]; see :func:`scan_signed`."""
    if is_signed(rules):
        scan_signed(C[0], R, W, extremes, splits, f_at, g_at)
    else:
        scan_planes(C, R, W, rules, extremes, splits, f_at, g_at)


@kernel(borrows=True)
def scan_levels(C, levels, level_step, B, step, extremes, splits, at):
    """Best second splits by groups of levels on either side of the cuts of a feature of B codes, from ``at`` on.

    ``C``: a cumulated table of one signed loss, as numbers in a row; a level's next one stands ``level_step`` behind
    it, a code's next one ``step``. Each level goes to the action that is best for it there, so that two leaves lose the
    sum of the negative parts of the levels' sums: one grouping is best, and it differs from cut to cut.
    """
    low = extremes[0]
    high = extremes[1]
    for t in range(B - 1):
        low[t] = i4(0)
        high[t] = i4(0)
    for level in range(levels):
        here = level * level_step
        before = here - level_step
        total = C[here + (B - 1) * step]
        if level > 0:
            total = i4(total - C[before + (B - 1) * step])
        for t in range(B - 1):
            x = C[here + t * step]
            if level > 0:
                x = i4(x - C[before + t * step])
            low[t] = i4(low[t] + min(i4(0), x))
            high[t] = i4(high[t] + min(i4(0), i4(total - x)))
    for t in range(B - 1):
        splits.low[at + t] = min(splits.low[at + t], low[t])
        splits.high[at + t] = min(splits.high[at + t], high[t])


@kernel(separate=True, borrows=True)
def fill_and_scan(f, g, rows, rounded, rules, sums, others, scratch, splits, ordered):
    """Fill, cumulate and scan the tables of features f and g; ``others`` lists all rows.

    Codes of features from ``ordered`` on are levels, of which tables are for first splits on the other feature only;
    None: no feature has levels.
    """
    K = rules.n_losses + len(rules.minima)
    R, W = rows.bins[f], rows.bins[g]
    S = rows.offset[len(rows.bins)]
    size = K * R * W
    H = scratch.cells[0, :size].reshape((K, R, W))
    C = scratch.cells[1, :size].reshape((K, R, W))
    H[:] = i4(0)
    for k in range(K):
        fill_pair(H[k], f, g, rows, rounded.planes[k], others, sums.leaves[k])
        cumulate(H[k], C[k], R, W)
    offset = rows.offset
    f_at, g_at = price_below(rows, f, g) * S + offset[f], price_below(rows, g, f) * S + offset[g]
    if ordered is None or (f < ordered and g < ordered):
        scan(C, R, W, rules, scratch.extremes, splits, f_at, g_at)
    elif f < ordered:
        scan_levels(C.reshape(C.size), W, 1, R, W, scratch.extremes, splits, f_at)
    elif g < ordered:
        scan_levels(C.reshape(C.size), R, W, W, 1, scratch.extremes, splits, g_at)


@kernel(borrows=True)
def table_pays(R, W, n, signed):
    """Whether a table of a pair is cheaper than tiles in both directions (measured); see :func:`is_signed`."""
    if signed:
        return 3 * n + ROOM * (R + W) >= R * W
    return n + ROOM_OF_PLANES * (R + W) >= R * W
