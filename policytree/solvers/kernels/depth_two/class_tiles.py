"""Second splits by a feature with many codes, for 32 first cuts side by side: any number of actions, counted rows.

A row's gain under an action is how much less it loses there than under its worst action: gains are never negative, and
a labelled row has one. The best leaf of some rows gains max_k G_k, where G_k adds up their gains under action k.
The rows are passed once in the order of the second feature, one *entry* for every gain that is not zero:

    left of the second cut     G_k only grows, an entry at a time
    right of it                total - G_k only falls

Lane e of a vector belongs to chosen cut e of the first feature; the rows on its left and right have vectors of their
own. Counted rows are entries too: they say which cuts leave both leaves their minima. Where the entries of neighbouring
codes all have the same action, no cut between them is better than both ends of the run, so none is looked at; nor is
one where no lane can beat its best (simd_classes.py).

Cost: four vector steps for every entry, for every feature and 32 chosen cuts; 6 K where sums are compared.
Symbols: see base/layout.py; a slot is an action, a counted plane, or (the last one) what rows lose under their worst
action.
"""

from typing import NamedTuple

import numpy as np

from policytree.solvers.kernels.base.layout import FORBIDDEN, i4, int_2d
from policytree.solvers.kernels.base.sums import price_below
from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.depth_two.pair_tables import table_pays
from policytree.solvers.kernels.depth_two.simd_classes import (
    COMPARE,
    GO_ON,
    Entries,
    LongLanes,
    Pass,
    ShortLanes,
    pass_over_entries,
)
from policytree.solvers.kernels.depth_two.tiles import TILE, aligned_zeros


class ClassTiles(NamedTuple):
    """Entries and lanes prepared once for all tiles of some rows."""

    entries: Entries
    long: LongLanes
    short: ShortLanes
    totals: int_2d  # sums of all slots by segment, then on both sides of the chosen cuts


@kernel(borrows=True)
def row_entries(rounded, rules, n, entries):
    """List what every row adds to which slot, row by row; returns how many entries there are, and their sum."""
    P, J = rules.n_losses, len(rules.minima)
    planes = rounded.planes
    first, slots, amounts, worst = entries
    count = 0
    total = 0
    for i in range(n):
        first[i] = count
        for j in range(J):
            c = planes[P + j, i]
            if c != 0:
                slots[count] = np.uint8(P + 1 + j)
                amounts[count] = c
                total += c
                count += 1
        most = i4(0)
        for k in range(P):
            most = max(most, planes[k, i])
        worst[i] = most
        for k in range(P + 1):
            gain = most if k == 0 else i4(most - planes[k - 1, i])
            if gain != 0:
                slots[count] = np.uint8(k)
                amounts[count] = gain
                total += gain
                count += 1
    first[n] = count
    return count, total


@kernel(borrows=True)
def end_runs(c, base, entries):
    """Say what follows every entry of a feature with the codes c, from ``base`` on.

    Without counted rows, codes are joined whose entries all have the same action: a cut between them is no better than
    one at an end of their run.
    """
    rows, slots, then, count = entries.rows, entries.slots, entries.then, entries.count
    joins = len(entries.minima) == 0
    only = True  # whether all entries of this code have the same slot
    waiting = -1  # the end of a code of one slot: is the next code of the same?
    for k in range(base, base + count):
        b = c[rows[k]]
        last = k + 1 == base + count or c[rows[k + 1]] != b
        if not last:
            then[k] = GO_ON
            only = only and slots[k + 1] == slots[k]
            continue
        if waiting >= 0 and only and slots[waiting] == slots[k]:
            then[waiting] = GO_ON
        then[k] = COMPARE
        waiting = k if joins and only else -1
        only = True


@kernel
def sort_entries(rows, large, entries):
    """Put the entries in the order of every long feature."""
    n, first, slots, amounts = rows.n, entries.first, entries.row_slots, entries.row_amounts
    widest = 1
    for f in range(len(rows.bins)):
        widest = max(widest, rows.bins[f])
    starts = np.empty(widest + 1, np.int64)
    next_at = np.empty(widest + 1, np.int64)
    for f in range(len(rows.bins)):
        if not large[f]:
            continue
        c = rows.codes[f]
        B = rows.bins[f]
        for b in range(B + 1):
            starts[b] = 0
        for i in range(n):
            starts[np.int64(c[i]) + 1] += first[i + 1] - first[i]
        next_at[0] = 0
        for b in range(B):
            starts[b + 1] += starts[b]
            next_at[b + 1] = starts[b + 1]
        base = f * entries.count
        for i in range(n):
            b = np.int64(c[i])
            at = base + next_at[b]
            for k in range(first[i], first[i + 1]):
                entries.rows[at] = i
                entries.slots[at] = slots[k]
                entries.amounts[at] = amounts[k]
                at += 1
            next_at[b] = at - base
        end_runs(c, base, entries)


@kernel
def vectors_of(n, like):
    """Room for ``n`` vectors of zeros of the type of ``like``, at multiples of 64 bytes."""
    return aligned_zeros(n * TILE, like).reshape((n, TILE))


@kernel(separate=True)
def make_class_tiles(rows, rules, rounded, large, wanted):
    """Prepare tiles: entries in order, masks, and room for the sums; nothing if they are not ``wanted``."""
    n, p, J = rows.n if wanted else 0, len(rows.bins), len(rules.minima)
    K = rules.n_losses + 1
    first = np.empty(n + 1, np.int32)
    slots = np.empty(n * (K + J), np.uint8)
    amounts = np.empty(n * (K + J), np.int32)
    worst = np.empty(n, np.int32)
    count, total = row_entries(rounded, rules, n, (first, slots, amounts, worst))
    minima = np.empty(J, np.int32)
    for j in range(J):
        minima[j] = min(rules.minima[j], FORBIDDEN)
    short = total < 1 << 15
    for j in range(J):
        short = short and minima[j] < 1 << 15
    entries = Entries(
        np.empty(p * count, np.int32), np.empty(p * count, np.uint8), np.empty(p * count, np.int32),
        np.empty(p * count, np.uint8), first, slots, amounts, worst, count, K, 1 if short else 0, minima,
    )  # fmt: skip
    if wanted:
        sort_entries(rows, large, entries)
    a, b = (0, 1) if short else (1, 0)
    vectors, prices = 2 * (K + J), max(rules.prices, 1)
    i32, i16 = np.empty(0, np.int32), np.empty(0, np.int16)
    long = LongLanes(
        vectors_of(a * (TILE + 1), i32), vectors_of(a * vectors, i32), vectors_of(a * vectors, i32),
        vectors_of(2 * a * prices, i32),
    )  # fmt: skip
    brief = ShortLanes(
        vectors_of(b * (TILE + 1), i16), vectors_of(b * vectors, i16), vectors_of(b * vectors, i16),
        vectors_of(2 * b * prices, i16),
    )  # fmt: skip
    for j in range(TILE + 1):
        for e in range(j, TILE):
            if short:
                brief.masks[j, e] = -1
            else:
                long.masks[j, e] = -1
    return ClassTiles(entries, long, brief, np.zeros((2 * (K + J + 1), TILE), np.int32))


@kernel(separate=True)
def add_segments(rows, tiles, x):
    """Sums of all slots on the left of the chosen cuts, tiles.totals[2 s], and on the right, [2 s + 1]."""
    entries, totals = tiles.entries, tiles.totals
    n_slots = len(totals) // 2
    segments = np.zeros((n_slots, TILE + 1), np.int64)
    for i in range(rows.n):
        s = np.int64(x[i])
        segments[n_slots - 1, s] += entries.worst[i]
        for k in range(entries.first[i], entries.first[i + 1]):
            segments[np.int64(entries.row_slots[k]), s] += entries.row_amounts[k]
    for k in range(n_slots):
        total = 0
        for s in range(TILE + 1):
            total += segments[k, s]
        left = 0
        for e in range(TILE):
            left += segments[k, e]
            totals[2 * k, e] = i4(left)
            totals[2 * k + 1, e] = i4(total - left)


@kernel(separate=True, borrows=True)
def pass_features(f, rows, rules, lanes, entries, totals, x):
    """Pass the entries in the order of every long second feature; gains go to lanes.best by price."""
    bins = rows.bins
    vectors = len(lanes.totals)
    for j in range(vectors):
        for e in range(TILE):
            lanes.totals[j, e] = totals[j, e]
    for j in range(len(lanes.best)):
        for e in range(TILE):
            lanes.best[j, e] = -1
    for g in range(len(bins)):
        if g != f and table_pays(bins[f], bins[g], rows.n, False):
            continue
        for j in range(vectors):
            for e in range(TILE):
                lanes.sums[j, e] = 0
        second = Pass(g * entries.count, 2 * price_below(rows, f, g))
        pass_over_entries(entries, lanes, second, x, len(entries.minima))


@kernel(separate=True, borrows=True)
def scan_classes(f, rows, rules, tiles, x, seconds, splits, at):
    """Best second splits by long features for all chosen cuts of f at once, into ``splits`` from ``at`` on by price.

    ``x[i]`` says which of the chosen cuts have row i on their left. ``seconds[g]`` takes a bound of the losses by
    feature g: the least of all features of its price.
    """
    entries, totals = tiles.entries, tiles.totals
    add_segments(rows, tiles, x)
    if entries.short != 0:
        pass_features(f, rows, rules, tiles.short, entries, totals, x)
    else:
        pass_features(f, rows, rules, tiles.long, entries, totals, x)
    worst = len(totals) - 2
    for j in range(max(rules.prices, 1)):
        for e in range(TILE):
            for side in range(2):
                gain = tiles.short.best[2 * j + side, e] if entries.short != 0 else tiles.long.best[2 * j + side, e]
                value = i4(2 * FORBIDDEN) if gain < 0 else i4(totals[worst + side, e] - gain)
                if side == 0:
                    splits.low[at + j * TILE + e] = value
                else:
                    splits.high[at + j * TILE + e] = value
    for g in range(len(seconds)):
        first = at + price_below(rows, f, g) * TILE
        for e in range(TILE):
            seconds[g, 0, e] = splits.low[first + e]
            seconds[g, 1, e] = splits.high[first + e]
