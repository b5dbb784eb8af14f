"""Depth three: depth two on both sides of many cuts of one root feature, in a few passes over the tables.

Root cuts with few rows on their left are reached from the left, the others from the right, so that tables grow by
half of the rows at most. Results are lower bounds, and exact where rounding was.

Cost: sweep_tables.fill_cost, and cut_cost for every root cut.
Symbols: see base/layout.py and sweep_side.py.
"""

from typing import NamedTuple

import numpy as np

from policytree.solvers.kernels.base.layout import (
    CUTS_AT_ONCE,
    FEASIBLE,
    FORBIDDEN,
    INF,
    Rounded,
    Rows,
    SecondSplits,
    Special,
    Sums,
    i4,
    i8,
    int_1d,
    long_1d,
    long_2d,
)
from policytree.solvers.kernels.base.sums import costly
from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.depth_three.sweep_side import (
    LANES_COUNTED,
    LANES_UNCOUNTED,
    PAIRS,
    Side,
    call_sweep,
    sweep_singles,
    version_of,
)
from policytree.solvers.kernels.depth_three.sweep_tables import SweepTables
from policytree.solvers.kernels.depth_two.binary_pairs import add_block, block_prefix_sums, block_scratch, scan_block
from policytree.solvers.kernels.depth_two.charges import sum_units
from policytree.solvers.kernels.depth_two.first_splits import first_split_values, own_splits
from policytree.solvers.kernels.depth_two.similarity_bounds import bound_of_cut
from policytree.solvers.kernels.depth_two.sparse_tables import list_others

MOST_CUTS = 32  # of a sweep
SMALL = 256  # cells of a table
SORT_FROM = 1 << 15  # rows


class Swept(NamedTuple):
    """Root cuts that are swept together, ascending, and lower bounds of what they come to."""

    cuts: long_1d
    left: long_2d  # (cuts, 4): of the left side with at most 1, 2, 3, 4 leaves
    right: long_2d
    joint: long_1d  # of both sides together


@kernel(separate=True)
def rows_in_order(rows, tables, index):
    """Copies of the codes and of the rounded planes in the order of ``index``: quicker than gathering them.

    The exact planes stay where they are: sweeps do not read them.
    """
    p, n = len(rows.bins), rows.n
    codes = np.empty((p, n), np.uint16)
    for f in range(p):
        for i in range(n):
            codes[f, i] = rows.codes[f, index[i]]
    old = tables.rounded
    planes = np.empty((len(old.planes), n), np.int32)
    for k in range(len(planes)):
        for i in range(n):
            planes[k, i] = old.planes[k, index[i]]
    tables = SweepTables(
        tables.rules, tables.relaxed, tables.exact, Rounded(planes, old.errors, old.shift, old.error), tables.where,
        tables.totals, tables.sums, tables.charges, tables.units, tables.block, tables.pays, tables.fill_cost,
        tables.cut_cost, tables.largest, tables.pairs, tables.sum_bytes, tables.in_lanes,
    )  # fmt: skip
    return Rows(codes, rows.planes, rows.bins, rows.offset, rows.groups, rows.owners, n), tables


@kernel(separate=True)
def sweep_block(rows, rules, tables, growing, index, n_cuts, sums):
    """Two-valued features: best second splits among them, and their own sums, for all cuts of a side.

    ``index``: the rows as the block has them.
    """
    block, offset, losses, side, ends = tables.block, rows.offset, tables.rounded.planes, growing.side, growing.ends
    K = rules.n_losses + len(rules.minima)
    G = np.zeros(block.sums.shape, np.int32)
    other = np.empty(block.sums.shape, np.int32)
    of_all, grown, rest = block.sums.reshape(G.size), G.reshape(G.size), other.reshape(G.size)
    totals = np.zeros((2, K), np.int32)
    scratch = block_scratch(rows, rules, block)
    for e in range(n_cuts):
        a = min(ends[e], ends[e + 1])
        b = max(ends[e], ends[e + 1])
        add_block(G, block, index, a, b)
        for k in range(K):
            for i in range(a, b):
                totals[0, k] = i4(totals[0, k] + losses[k, growing.index[i]])
            totals[1, k] = i4(tables.sums[k, rows.bins[0] - 1] - totals[0, k])
        for x in range(len(of_all)):
            rest[x] = i4(of_all[x] - grown[x])
        for s in range(2):
            at = side if s == 0 else 1 - side
            part = G if s == 0 else other
            block_prefix_sums(part, totals[s], block, offset, sums[e, at])
            scan_block(
                part, totals[s], block, rows, rules, scratch, SecondSplits(growing.low[e, at], growing.high[e, at])
            )


@kernel(separate=True)
def sweep_tabled(rows, rules, tables, growing, n_cuts, sums, widest, control):
    """Pairs that have a table, for all cuts of a side. False if stopped."""
    few = 2 if len(rules.minima) > 0 else 3  # all at once cost as much as so many one by one
    if len(tables.totals) <= SMALL * tables.pairs:
        few = 1
    if tables.in_lanes == 0:
        few = n_cuts + 1
    e = 0
    while n_cuts - e >= few:
        group = min(n_cuts - e, CUTS_AT_ONCE)
        lanes = version_of(control, LANES_UNCOUNTED if len(rules.minima) == 0 else LANES_COUNTED, tables)
        if not call_sweep(lanes, (rows, tables, growing, e, group, sums, widest, control)):
            return False
        e += group
    if e >= n_cuts:
        return True
    one_by_one = version_of(control, PAIRS, tables)
    return call_sweep(one_by_one, (rows, tables, growing, e, n_cuts - e, sums, widest, control))


@kernel(borrows=True)
def split_cuts(cuts, n_cuts, row_ends, n, at_once):
    """How many cuts are reached from the left: about those with less than half of the rows there."""
    middle = 0
    while middle < n_cuts and 2 * row_ends[cuts[middle] + 1] <= n:
        middle += 1
    if at_once and n_cuts <= CUTS_AT_ONCE:
        return n_cuts if row_ends[cuts[n_cuts - 1] + 1] <= n - row_ends[cuts[0] + 1] else 0
    # In lanes a group of cuts costs the same whether it is full or not: the left side has whole groups, to the nearest.
    if at_once:
        return min((middle + CUTS_AT_ONCE // 2) // CUTS_AT_ONCE * CUTS_AT_ONCE, n_cuts)
    return middle


@kernel
def error_sums(rounded, index):
    """Cumulated rounding errors of the rows in the order of ``index``; only zero if there are none."""
    n = len(index)
    wrong = np.empty(n + 1 if rounded.error > 0 else 1, np.int64)
    wrong[0] = 0
    if rounded.error > 0:
        for i in range(n):
            wrong[i + 1] = wrong[i] + rounded.errors[index[i]]
    return wrong


@kernel(separate=True, borrows=True)
def grow_charges(rows, rules, tables, index, by_code, charges):
    """Add the rows of ``index`` to the charges by code, and cumulate those: of the growing side, and of the other."""
    if len(tables.units.units) > 0:
        units, factors = tables.units
        sum_units(rows, units, tables.block, index, by_code[0])
        for f in range(len(rows.bins)):
            s = 0
            for t in range(rows.offset[f], rows.offset[f + 1]):
                s += by_code[0, t]
                for j in range(rules.prices):
                    charges[0, j, t] = factors[j] * s
                    charges[1, j, t] = tables.charges[j, t] - factors[j] * s
        return
    first = rules.n_losses + len(rules.minima)
    for j in range(rules.prices):
        plane = rows.planes[first + j]
        for f in range(len(rows.bins)):
            o = rows.offset[f]
            c = rows.codes[f]
            for i in index:
                by_code[j, o + np.int64(c[i])] += plane[i]
            s = 0
            for t in range(o, o + rows.bins[f]):
                s += by_code[j, t]
                charges[0, j, t] = s
                charges[1, j, t] = tables.charges[j, t] - s


@kernel(separate=True)
def keep_swept(rows, rules, tables, growing, n_cuts, sums, swept, own, wrong, index):
    """Turn what the cuts of a side came to into bounds, less what rounding may have added.

    ``index``: the rows in the order of the root feature.
    """
    by_code = np.zeros(tables.charges.shape, np.int64)
    charges = np.zeros((2, len(by_code), by_code.shape[1]), np.int64)
    none = np.zeros(len(rows.bins), np.bool_)
    values = np.empty(rows.offset[len(rows.bins)], np.int64)
    error = tables.rounded.error
    last = len(swept.joint) - 1
    for e in range(n_cuts):
        c = e if growing.side == 0 else last - e
        start = growing.ends[e]
        at = growing.ends[e + 1]
        if costly(rules):
            grow_charges(rows, rules, tables, index[min(start, at) : max(start, at)], by_code, charges)
        for s in range(2):
            to = swept.left[c] if s == 0 else swept.right[c]
            splits = SecondSplits(growing.low[e, s], growing.high[e, s])
            of_side = Sums(sums[e, s], charges[0 if s == growing.side else 1])
            first_split_values(of_side, splits, rows, rules, tables.rounded.shift, 4, own, none, values, to)
            if error > 0:
                for h in range(4):
                    if to[h] < FEASIBLE:
                        # Whichever side grew, the first ``at`` rows of the index are on the left.
                        to[h] -= wrong[at] if s == 0 else error - wrong[at]


@kernel(separate=True)
def others_of_side(rows, tables, side, index, ends):
    """Lists of the rows that a side comes to have, without common codes, for the sweeps in lanes."""
    m = len(ends) - 1 if tables.in_lanes != 0 and tables.pairs > 0 else 0
    counts = np.empty(m, np.int64)
    for e in range(m):
        counts[e] = abs(ends[e + 1] - ends[0])
    part = index[: counts[m - 1]] if m > 0 else index[:0]
    if m > 0 and side == 1:
        part = index[ends[m] :][::-1].copy()
    return list_others(rows, part, counts)


@kernel(
    takes=(Rows, SweepTables, int_1d, long_1d, Swept, i8, long_1d, Special),
    for_python=False,
    separate=True,
)
def sweep(rows, tables, index, row_ends, swept, n_cuts, control, special):
    """Bounds of depth two on both sides of ``swept.cuts[:n_cuts]``; False if stopped.

    ``index``: the rows in the order of the root feature, of which those of code < t are the first row_ends[t].
    """
    n, rules = rows.n, tables.rules
    index = index[:n]
    n_block = len(tables.block.features)
    cuts = swept.cuts
    wrong = error_sums(tables.rounded, index)
    in_place, whole = index, rows  # the block and the exact planes stay where they are
    if n > SORT_FROM:
        rows, tables = rows_in_order(rows, tables, index)
        index = np.arange(n).astype(np.int32)
    widest = 1
    for f in range(len(rows.bins)):
        widest = max(widest, rows.bins[f])
    places = max(rules.prices, 1) * rows.offset[len(rows.bins)]
    sums = np.empty((n_cuts, 2, len(tables.sums), rows.offset[len(rows.bins)]), np.int32)
    low = np.empty((n_cuts, 2, places), np.int32)
    high = np.empty((n_cuts, 2, places), np.int32)
    own = own_splits(widest, rules)
    part = Swept(cuts[:n_cuts], swept.left[:n_cuts], swept.right[:n_cuts], swept.joint[:n_cuts])
    middle = split_cuts(cuts, n_cuts, row_ends, n, tables.in_lanes != 0)
    for side in range(2):
        m = middle if side == 0 else n_cuts - middle
        if m == 0:
            continue
        # Nothing found yet: as dear as two forbidden leaves, which just fits four bytes.
        low[:m] = i4(2 * FORBIDDEN)
        high[:m] = i4(2 * FORBIDDEN)
        ends = np.empty(m + 1, np.int64)
        ends[0] = 0 if side == 0 else n
        for e in range(m):
            ends[e + 1] = row_ends[cuts[e if side == 0 else n_cuts - 1 - e] + 1]
        growing = Side(side, index, ends, low, high, others_of_side(rows, tables, side, index, ends[: m + 1]))
        sweep_singles(rows, tables, sums, growing, m, n_block > 0)
        if special is not None and n_block > 0:
            sweep_block(rows, rules, tables, growing, in_place, m, sums)
        if tables.pairs > 0 and not sweep_tabled(rows, rules, tables, growing, m, sums, widest, control):
            return False
        keep_swept(whole, rules, tables, growing, m, sums, part, own, wrong, in_place)
    return True


@kernel(borrows=True)
def cuts_per_round(bounds, deep, cuts, cutoff, tables):
    """How many cuts to sweep at once: one a live run, more where filling tables costs more than reading them."""
    runs = 0
    live = 0
    before = False
    for t in range(cuts):
        now = bound_of_cut(bounds, deep, t) < cutoff
        live += now
        runs += now and not before
        before = now
    n = max(3, runs, tables.fill_cost // tables.cut_cost)
    if tables.in_lanes != 0:
        n = (n + CUTS_AT_ONCE - 1) // CUTS_AT_ONCE * CUTS_AT_ONCE
    n = min(MOST_CUTS, n)
    return live if live <= min(MOST_CUTS, 2 * n) else n


@kernel(borrows=True)
def best_share(left, right, leaves):
    """Least value of both sides of a cut, and the left side's leaves, if together they may have ``leaves`` (>= 4)."""
    best = 4 * INF
    share = 0
    # A side has four leaves at most. Where the right one is left more, one more for the left side costs nothing: such
    # shares are passed over, but for four and four.
    for h in range(1, min(leaves, 5)):
        if leaves - h <= 4 or h == 4:
            v = left[h - 1] + right[min(leaves - h, 4) - 1]
            if v < best:
                best = v
                share = h
    return best, share
