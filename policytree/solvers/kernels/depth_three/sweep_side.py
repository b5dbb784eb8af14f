"""One side of a sweep: best second splits for all root cuts, while the side grows.

Two ways: :func:`sweep_lanes` does sixteen root cuts at once in vectors, for two actions and at most one minimum count
(simd_tables.py, simd_counted.py); :func:`sweep_pairs` one after the other for any losses and counts (simd_sides.py).
Each is compiled for sums of two and of four bytes, under names of its own at the end of this file, which all take the
same: a search loads those that it may need, and calls them by their addresses (:func:`version_of`). Tables grow from
one cut to the next; in lanes, without the rows of a commonest code (depth_two/sparse_tables.py).

Cost: every row at most once for every pair; every cell once for every root cut (or sixteen of them).
Symbols: root cut e of this side has the rows index[ends[0]:ends[e + 1]] on the growing side. Results of the growing
side stand in low[e, side], high[e, side], those of the other one in [e, 1 - side].
"""

from typing import NamedTuple

import numpy as np
from numba import types

from policytree.solvers.kernels.base.addresses import by_address, loaded
from policytree.solvers.kernels.base.layout import (
    CUTS_AT_ONCE,
    STOP,
    SWEEPERS,
    Rows,
    SecondSplits,
    i4,
    i8,
    int_1d,
    int_3d,
    int_4d,
    long_1d,
)
from policytree.solvers.kernels.base.sums import price_below
from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.depth_three.simd_counted import (
    COLUMN,
    begin_counted,
    counted_one,
    counted_two,
    end_counted,
)
from policytree.solvers.kernels.depth_three.simd_sides import BYTES, BothSides, scan_row
from policytree.solvers.kernels.depth_three.simd_tables import (
    add_lanes,
    lane_columns,
    lane_one,
    lane_rest_column,
    lane_rest_row,
    lane_two,
)
from policytree.solvers.kernels.depth_three.sweep_tables import SweepTables, shorter_first
from policytree.solvers.kernels.depth_two.sparse_tables import Others, shortest_list
from policytree.solvers.kernels.depth_two.tiles import aligned_zeros


class Side(NamedTuple):
    """The root cuts of one side, and what they come to."""

    side: i8  # 0: the left side grows; 1: the right one
    index: int_1d  # rows in the order of the root feature
    ends: long_1d
    low: int_3d  # (cuts, 2, places by price): as in SecondSplits
    high: int_3d
    others: Others  # of the rows that this side comes to have, in parts from one root cut to the next


@kernel(separate=True)
def sweep_singles(rows, tables, sums, growing, n_cuts, from_block):
    """Cumulated sums of single features, sums[e, side, k, place]; those ``from_block`` are left out."""
    losses, all_sums, side, index, ends = tables.rounded.planes, tables.sums, growing.side, growing.index, growing.ends
    K = len(all_sums)
    p = len(rows.bins)
    h = np.zeros((K, rows.offset[p]), np.int32)
    # The growing side only gains rows from one cut to the next, so that h never has to be emptied; the other side has
    # what it lacks of all rows.
    for e in range(n_cuts):
        a = min(ends[e], ends[e + 1])
        b = max(ends[e], ends[e + 1])
        for f in range(p):
            if from_block and rows.bins[f] == 2:
                continue
            o = rows.offset[f]
            c = rows.codes[f]
            for k in range(K):
                hk = h[k]
                d = losses[k]
                for i in range(a, b):
                    r = index[i]
                    x = o + np.int64(c[r])
                    hk[x] = i4(hk[x] + d[r])
                s = i4(0)
                for t in range(o, o + rows.bins[f]):
                    s = i4(s + hk[t])
                    sums[e, side, k, t] = s
                    sums[e, 1 - side, k, t] = i4(all_sums[k, t] - s)


class LaneScratch(NamedTuple):
    """Vectors of all lanes, flat; where rows are counted, H and one have two for each place (see simd_counted.py)."""

    H: int_1d
    running: int_1d
    Q: int_1d
    one: int_1d
    low: int_1d
    high: int_1d
    masks: int_1d


class Pair(NamedTuple):
    """A pair's table: its shape, where it begins in the totals, its features' places, and where results go."""

    R: i8
    W: i8
    at: i8
    f_sums: i8  # places of the sums of single features
    g_sums: i8
    f_own: i8  # results: of the growing side
    f_other: i8
    g_own: i8
    g_other: i8


@kernel(separate=True, borrows=True)
def scan_lanes(pair, tables, scratch, minimum):
    """Scan one pair's tables for all root cuts; the result of cut t of f goes to low[(f_own + t) * 16] and so on.

    ``minimum`` is that of a leaf's count; None if nothing is counted.
    """
    R, W = pair.R, pair.W
    totals, sums = tables.totals, tables.sums
    if minimum is None:
        n = W * CUTS_AT_ONCE
        running, Q = scratch.running, scratch.Q
        for i in range(n):
            running[i] = 0
        for i in range(8 * n):
            Q[i] = 0
        for k in range(R // 2):
            lane_two(scratch, pair, totals, sums[0], 2 * k, minimum)
        if R % 2 == 1:
            lane_one(scratch, pair, totals, sums[0], R - 1, minimum)
        lane_columns(scratch, pair, totals, minimum)
    else:
        begin_counted(scratch, pair, totals, minimum)
        for k in range(R // 2):
            counted_two(scratch, pair, totals, sums[0], sums[1], 2 * k, minimum)
        if R % 2 == 1:
            counted_one(scratch, pair, totals, sums[0], sums[1], R - 1, minimum)
        end_counted(scratch, pair, totals, minimum)


@kernel
def lane_scratch(like, widest, S, places, largest, planes):
    """Scratch of the type of ``like``; a value starts at that of a leaf, 0."""
    lanes = CUTS_AT_ONCE
    masks = aligned_zeros(lanes * lanes, like)
    for e in range(lanes):  # cut e has the rows of all cuts before it as well
        for k in range(e, lanes):
            masks[e * lanes + k] = -1
    return LaneScratch(
        aligned_zeros(largest * lanes, like),
        aligned_zeros((1 if planes == 1 else COLUMN) * widest * lanes, like),
        aligned_zeros((8 if planes == 1 else 0) * widest * lanes, like),
        aligned_zeros(planes * S * lanes, like),
        aligned_zeros(2 * places * lanes, like),
        aligned_zeros(2 * places * lanes, like),
        masks,
    )


@kernel(borrows=True)
def lane_pairs(rows, tables, growing, first, n, scratch, minimum, control):
    """Fill and scan the tables of all pairs for cuts first, ..., first + n - 1; False if stopped."""
    bins, offset, where = rows.bins, rows.offset, tables.where
    others, H, masks = growing.others, scratch.H, scratch.masks
    p = len(bins)
    S = offset[p]
    d, counts = tables.rounded.planes[0], tables.rounded.planes[-1]
    own = growing.side * growing.low.shape[2]
    other = growing.low.shape[2] - own
    for f0 in range(p):
        for g0 in range(f0 + 1, p):
            if control[STOP] != 0:
                return False
            if where[f0, g0] < 0:
                continue
            f, g = shorter_first(bins, f0, g0)
            cf = rows.codes[f]
            cg = rows.codes[g]
            W = np.uint64(bins[g])
            of = shortest_list(others, f, g)
            begin = others.start[of]
            parts = others.parts[of]
            # Lane e is the table of cut e. A row that joins at cut e is added to the lanes e, e + 1, ... by masks, as
            # later cuts have it too: every row is read once for all lanes. The first cut of this group takes over all
            # rows of the groups before it.
            #
            #     lane                       0  1  2  3
            #     a row that joins at cut 0  d  d  d  d
            #                             1  .  d  d  d
            #                             2  .  .  d  d
            for e in range(n):
                for j in range(begin + (0 if e == 0 else parts[first + e]), begin + parts[first + e + 1]):
                    r = others.rows[j]
                    x = np.uint64(cf[r]) * W + np.uint64(cg[r])
                    if minimum is None:
                        add_lanes(H, x, d[r], masks, e)
                    else:
                        add_lanes(H, x + x, d[r], masks, e)
                        add_lanes(H, x + x + np.uint64(1), counts[r], masks, e)
            f_at = price_below(rows, f, g) * S + offset[f]
            g_at = price_below(rows, g, f) * S + offset[g]
            pair = Pair(bins[f], bins[g], where[f0, g0], offset[f], offset[g], own + f_at, other + f_at, own + g_at,
                        other + g_at)  # fmt: skip
            # The lists leave out the rows of the commonest code of f (or g). Their cells are what the sums of single
            # features have more than the table: exact, since both are sums of the same integers.
            if of == f:
                lane_rest_row(scratch, pair, others.common[f], minimum)
            elif of == g:
                lane_rest_column(scratch, pair, others.common[g], minimum)
            scan_lanes(pair, tables, scratch, minimum)
    return True


@kernel
def sweep_lanes(like, rows, tables, growing, first, n, sums, widest, minimum, control):
    """Cuts first, first + 1, ..., n of them at most as many as there are lanes. False if stopped.

    Sums, and the ``minimum`` of a leaf's count if there is one, fit the type of ``like``, int32 or int16.
    """
    lanes = CUTS_AT_ONCE
    planes = 1 if minimum is None else 2
    S = rows.offset[len(rows.bins)]
    places = growing.low.shape[2]
    scratch = lane_scratch(like, widest, S, places, tables.largest, planes)
    for t in range(S):
        for k in range(planes):
            for e in range(lanes):  # lanes without a cut repeat the last one; their results are not read
                scratch.one[(t * planes + k) * lanes + e] = sums[first + min(e, n - 1), growing.side, k, t]
    if not lane_pairs(rows, tables, growing, first, n, scratch, minimum, control):
        return False
    for e in range(n):
        for s in range(2):
            for t in range(places):
                low, high = growing.low, growing.high
                low[first + e, s, t] = min(low[first + e, s, t], scratch.low[(s * places + t) * lanes + e])
                high[first + e, s, t] = min(high[first + e, s, t], scratch.high[(s * places + t) * lanes + e])
    return True


@kernel(separate=True, borrows=True)
def add_rows(cells, width, x, y, losses, index, a, b):
    """Add rows index[a:b] to a table of the codes x and y."""
    for i in range(a, b):
        r = index[i]
        cells[np.uint64(x[r]) * np.uint64(width) + np.uint64(y[r])] += losses[r]


@kernel(separate=True, borrows=True)
def place_margins(sides, W, width, g_at, all_sums, sums):
    """Sums up to every column of both sides; ``sums``: the growing side's, by plane and place."""
    for k in range(len(sums)):
        own, other = sides.own[k * width :], sides.other[k * width :]
        mine, both = sums[k, g_at:], all_sums[k, g_at:]
        for u in range(W):
            own[u] = mine[u]
            other[u] = both[u] - mine[u]


@kernel(separate=True, borrows=True)
def scan_sides(sides, pair, width, n_losses, tables, sums, own, other):
    """Scan a pair's table for one root cut; results go to ``own`` and ``other``. ``sums``: the growing side's."""
    K = len(sums)
    R, W = pair.R, pair.W
    all_sums = tables.sums
    place_margins(sides, W, width, pair.g_sums, all_sums, sums)
    sides.above[: K * width] = 0
    sides.best[: 4 * width] = 0
    parts, found = sides.parts, sides.found
    last = pair.f_sums + R - 1
    for t in range(R - 1):
        at = pair.f_sums + t
        for k in range(K):
            low, high = sums[k, at], sums[k, last] - sums[k, at]
            parts[4 * k] = low
            parts[4 * k + 1] = high
            parts[4 * k + 2] = all_sums[k, at] - low
            parts[4 * k + 3] = all_sums[k, last] - all_sums[k, at] - high
        sides.before[:] = 0
        scan_row(sides, tables.totals, pair.at, t, R, W, width, n_losses)
        to = pair.f_own + t
        own.low[to] = min(own.low[to], i4(found[0]))
        own.high[to] = min(own.high[to], i4(found[1]))
        other.low[to] = min(other.low[to], i4(found[2]))
        other.high[to] = min(other.high[to], i4(found[3]))
    best = sides.best
    for u in range(W - 1):
        to = pair.g_own + u
        own.low[to] = min(own.low[to], i4(best[u]))
        own.high[to] = min(own.high[to], i4(best[width + u]))
        other.low[to] = min(other.low[to], i4(best[2 * width + u]))
        other.high[to] = min(other.high[to], i4(best[3 * width + u]))


@kernel
def room_for_sides(like, rows, rules, widest, where):
    """Room of the type of ``like`` for the tables of the largest pair, and how many columns a vector has."""
    lanes = BYTES // like.itemsize
    bins = rows.bins
    K = rules.n_losses + len(rules.minima)
    cells = 1
    for f in range(len(bins)):
        for g in range(f + 1, len(bins)):
            if where[f, g] >= 0:
                width = (max(bins[f], bins[g]) + lanes - 1) // lanes * lanes
                cells = max(cells, K * min(bins[f], bins[g]) * width)
    width = (widest + lanes - 1) // lanes * lanes
    minima = aligned_zeros(len(rules.minima), like)
    most = (1 << (8 * like.itemsize - 1)) - 1
    for j in range(len(minima)):
        minima[j] = min(rules.minima[j], most)
    return BothSides(
        aligned_zeros(cells, like), aligned_zeros(K * lanes, like), aligned_zeros(K * width, like),
        aligned_zeros(K * width, like), aligned_zeros(K * width, like), aligned_zeros(4 * K, like),
        aligned_zeros(4 * width, like), aligned_zeros(4, like), minima,
    ), lanes  # fmt: skip


@kernel
def sweep_pairs(like, rows, tables, growing, first, n, sums, widest, control):
    """Cuts first, first + 1, ..., n of them one after the other, for any losses and counts. False if stopped.

    Sums fit the type of ``like``, int32 or int16.
    """
    rules, n_cuts = tables.rules, first + n
    bins, offset, where, index, ends = rows.bins, rows.offset, tables.where, growing.index, growing.ends
    K = rules.n_losses + len(rules.minima)
    S = offset[len(bins)]
    sides, lanes = room_for_sides(like, rows, rules, widest, where)
    for f0 in range(len(bins)):
        for g0 in range(f0 + 1, len(bins)):
            if control[STOP] != 0:
                return False
            if where[f0, g0] < 0:
                continue
            f, g = shorter_first(bins, f0, g0)
            R = bins[f]
            W = bins[g]
            width = (W + lanes - 1) // lanes * lanes
            size = R * width
            f_at = price_below(rows, f, g) * S + offset[f]
            g_at = price_below(rows, g, f) * S + offset[g]
            pair = Pair(R, W, where[f0, g0], offset[f], offset[g], f_at, f_at, g_at, g_at)
            sides.cells[: K * size] = 0
            # The cells hold the rows of the growing side of cut e, index[ends[0]:ends[e + 1]]; those of the other side
            # are what the totals have more. Both are exact, so that both sides' results are.
            for e in range(first, n_cuts):
                start = ends[0] if e == first else ends[e]
                a = min(start, ends[e + 1])
                b = max(start, ends[e + 1])
                for k in range(K):
                    add_rows(sides.cells[k * size : (k + 1) * size], width, rows.codes[f], rows.codes[g],
                             tables.rounded.planes[k], index, a, b)  # fmt: skip
                side = growing.side
                own = SecondSplits(growing.low[e, side], growing.high[e, side])
                other = SecondSplits(growing.low[e, 1 - side], growing.high[e, 1 - side])
                scan_sides(sides, pair, width, rules.n_losses, tables, sums[e, side], own, other)
    return True


#: Arguments of every version: rows, tables, the side, its first cut, the number of cuts, cumulated sums of single
#: features, the most codes of a feature, and the control array.
SWEEPS_TAKE = (Rows, SweepTables, Side, i8, i8, int_4d, i8, long_1d)


@kernel(borrows=True)
def only_minimum(tables, most):
    """Return the least count of a leaf, capped at ``most``: no split leaves both sides more."""
    return min(tables.rules.minima[0], most)


@kernel(takes=SWEEPS_TAKE, for_python=False)
def pairs_of_int16(rows, tables, growing, first, n, sums, widest, control):
    """:func:`sweep_pairs`, sums of two bytes."""
    return sweep_pairs(np.empty(0, np.int16), rows, tables, growing, first, n, sums, widest, control)


@kernel(takes=SWEEPS_TAKE, for_python=False)
def pairs_of_int32(rows, tables, growing, first, n, sums, widest, control):
    """:func:`sweep_pairs`, sums of four bytes."""
    return sweep_pairs(np.empty(0, np.int32), rows, tables, growing, first, n, sums, widest, control)


@kernel(takes=SWEEPS_TAKE, for_python=False)
def lanes_of_int16(rows, tables, growing, first, n, sums, widest, control):
    """:func:`sweep_lanes` without counts, sums of two bytes."""
    return sweep_lanes(np.empty(0, np.int16), rows, tables, growing, first, n, sums, widest, None, control)


@kernel(takes=SWEEPS_TAKE, for_python=False)
def lanes_of_int32(rows, tables, growing, first, n, sums, widest, control):
    """:func:`sweep_lanes` without counts, sums of four bytes."""
    return sweep_lanes(np.empty(0, np.int32), rows, tables, growing, first, n, sums, widest, None, control)


@kernel(takes=SWEEPS_TAKE, for_python=False)
def counted_lanes_of_int16(rows, tables, growing, first, n, sums, widest, control):
    """:func:`sweep_lanes` with a minimum count, sums of two bytes."""
    minimum = only_minimum(tables, (1 << 15) - 1)
    return sweep_lanes(np.empty(0, np.int16), rows, tables, growing, first, n, sums, widest, minimum, control)


@kernel(takes=SWEEPS_TAKE, for_python=False)
def counted_lanes_of_int32(rows, tables, growing, first, n, sums, widest, control):
    """:func:`sweep_lanes` with a minimum count, sums of four bytes."""
    minimum = only_minimum(tables, (1 << 31) - 1)
    return sweep_lanes(np.empty(0, np.int32), rows, tables, growing, first, n, sums, widest, minimum, control)


#: The versions in the order of their places in the control array, from SWEEPERS on.
SWEEPING_KERNELS = (
    pairs_of_int16, pairs_of_int32, lanes_of_int16, lanes_of_int32, counted_lanes_of_int16, counted_lanes_of_int32,
)  # fmt: skip
PAIRS, LANES_UNCOUNTED, LANES_COUNTED = 0, 2, 4  # where the two versions of each way begin in that order
call_sweep = by_address(SWEEPS_TAKE, types.boolean)


@kernel(borrows=True)
def version_of(control, way, tables):
    """The address of a way of sweeping for sums as long as the tables', or for longer ones where only that is loaded.

    Sums that are short at the root are so everywhere: a search without the version of four bytes never asks for it.
    """
    at = SWEEPERS + way
    return loaded(control, at + 1 if tables.sum_bytes == 4 or control[at] == 0 else at)
