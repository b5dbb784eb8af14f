"""Second splits by a feature with many codes, for 32 first cuts side by side: rows that lose under every action.

Rewards of treatments are all different numbers, so that a row has something to add under every action. The sums of the
four parts that two crossing cuts make follow from one of them: with L the sums left of both cuts,

                      left of the chosen cut     right of it
    left of second            L                   own - L           own: the feature's own sums up to the second cut
    right of second       total - L           other - (own - L)     total, other: left and right of the chosen cut

So the rows are passed once in the order of the second feature, and only L is added up, in lane e for chosen cut e of
the first feature. Counted rows are planes too: they say which cuts leave both leaves their minima.

Adding up costs less than comparing. So rows come in blocks, and sums are compared at a block's last cut. The rows of a
block lose so much at least, those before it what the best leaf up to there loses, those behind it likewise: where that
is no better than the best of each lane, the cuts within the block are passed over.

Blocks are looked at where a run of them may hold a better cut: the same bound for 16 blocks. Within a run, a row is
added to the one segment between chosen cuts that it is in.

Cost: for every second feature and 32 chosen cuts, one step for every row; in runs that may be better, three vector
steps for every row and plane, nine more for every block and plane, and for every code of blocks that may be. Where rows
add to one or two of many actions only (labels), class_tiles.py is cheaper.
Symbols: see base/layout.py; a plane is what rows lose under an action, or counted rows.
"""

from typing import NamedTuple

import numpy as np

from policytree.solvers.kernels.base.child_rows import order_rows
from policytree.solvers.kernels.base.layout import FORBIDDEN, i4, i8, int_3d, long_1d
from policytree.solvers.kernels.base.sums import price_below
from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.depth_two.class_tiles import vectors_of
from policytree.solvers.kernels.depth_two.pair_tables import table_pays
from policytree.solvers.kernels.depth_two.simd_planes import PARTS, PlaneLanes, PlanePass, PlaneRows, pass_over_planes
from policytree.solvers.kernels.depth_two.tiles import TILE, keep_least

BLOCK = 8  # rows between the cuts that are always compared
LEAST_ORDERED = 1024  # rows from which the order of the second features matters
LEAST_DENSITY = 2  # planes pay if one in so many losses is not zero


class PlaneTiles(NamedTuple):
    """Sorted rows and lanes prepared once for all tiles of some rows."""

    sorted: PlaneRows
    lanes: PlaneLanes
    order: long_1d  # of the second features: those first that were best below most cuts
    wins: long_1d  # below how many each was


class TileCuts(NamedTuple):
    """The chosen cuts of the first feature, and how many they are."""

    cuts: long_1d
    n: i8


class NearSeconds(NamedTuple):
    """The losses of both sides of the chosen cuts by every second feature, where they are near the least.

    Those that are ``range`` or more above the least of the features before it are only known to be so.
    """

    losses: int_3d  # (features, 2, TILE)
    range: i8


@kernel(borrows=True)
def planes_pay(rounded, rules, n):
    """Whether rows have so many losses that passing all of them is cheaper than listing those that are not zero."""
    planes, P = rounded.planes, rules.n_losses
    there = 0
    total = 0
    for i in range(n):
        most = i4(0)
        least = i4(0)
        equal = 0  # losses that are the row's largest: gains of zero
        for k in range(P + 1):
            x = i4(0) if k == 0 else planes[k - 1, i]
            if k == 0 or x > most:
                most = x
                equal = 1
            elif x == most:
                equal += 1
            least = min(least, x)
        there += P + 1 - equal
        total += most - least
    small = total < 1 << 15  # class_tiles.py then has twice as many lanes in a vector
    return LEAST_DENSITY * there >= n * P and not small


@kernel(borrows=True)
def divide_rows(at, n, width, to):
    """Divide a feature's rows into blocks that end at cuts; returns how many. Rows behind the last cut are left out."""
    end = n
    while end > 0 and to.places[at + end - 1] < 0:
        end -= 1
    blocks = 0
    rows = 0
    cuts = 0
    least = 0
    for i in range(end):
        rows += 1
        least += to.amounts[(at + i) * width + width - 1]
        if to.places[at + i] < 0:
            continue
        cuts += 1
        if rows >= BLOCK or i + 1 == end:
            to.ends[at + blocks] = i + 1
            to.least[at + blocks] = least if cuts > 1 else 1
            blocks += 1
            rows = 0
            cuts = 0
            least = 0
    return blocks


@kernel
def sort_planes(rows, planes, n_losses, large, to):
    """Put the rows, and their amounts, in the order of every long feature, and divide them into blocks."""
    n, Q = rows.n, len(planes)
    widest = 1
    for f in range(len(rows.bins)):
        widest = max(widest, rows.bins[f])
    ends = np.empty(widest + 1, np.int64)
    for f in range(len(rows.bins)):
        if not large[f]:
            continue
        o = rows.offset[f]
        order = to.rows[f * n : (f + 1) * n]
        order_rows(rows, f, order, ends)
        for i in range(n):
            at = f * n + i
            to.places[at] = -1
            least = i4(0)
            for k in range(Q):
                x = planes[k, order[i]]
                to.amounts[at * (Q + 1) + k] = x
                least = min(least, x) if k < n_losses else least
            to.amounts[at * (Q + 1) + Q] = least
        # Rows up to code b end at ends[b + 1]. Codes without rows have the same cut, named by the last of them; below
        # the first row there is none.
        for b in range(rows.bins[f] - 1):
            if ends[b + 1] > 0:
                to.places[f * n + ends[b + 1] - 1] = o + b
        to.blocks[f] = divide_rows(f * n, n, Q + 1, to)


@kernel(separate=True)
def make_plane_tiles(rows, rules, rounded, large, wanted):
    """Prepare tiles: rows in order, masks, and room for the sums; nothing if they are not ``wanted``."""
    n, p, J = rows.n if wanted else 0, len(rows.bins), len(rules.minima)
    Q = rules.n_losses + J
    minima = np.empty(J, np.int32)
    for j in range(J):
        minima[j] = min(rules.minima[j], FORBIDDEN)
    in_order = PlaneRows(
        np.empty(p * n, np.int32), np.empty(p * n, np.int32), np.zeros(p * n * (Q + 1) + PARTS, np.int32),
        np.empty(p * n, np.int32), np.empty(p * n, np.int32), np.empty(p, np.int64), rules.n_losses, minima,
    )  # fmt: skip
    if wanted:
        sort_planes(rows, rounded.planes, rules.n_losses, large, in_order)
    a, i32 = 1 if wanted else 0, np.empty(0, np.int32)
    lanes = PlaneLanes(
        vectors_of(a * (TILE + 1), i32), vectors_of(2 * a * Q, i32), vectors_of(a * (Q + 1), i32),
        vectors_of(a * (Q + 1), i32), vectors_of(2 * a, i32), vectors_of(a * (Q + 1), i32),
        np.empty((TILE + 1) * (Q + PARTS), np.int32),
    )  # fmt: skip
    for j in range(len(lanes.masks)):
        for e in range(j, TILE):
            lanes.masks[j, e] = i4(-1)
    return PlaneTiles(in_order, lanes, np.arange(p), np.zeros(p, np.int64))


@kernel(borrows=True)
def order_by_wins(f, n_chosen, rows, seconds, splits, at, order, wins):
    """Move features forward that are best below more of the chosen cuts: what they find lets others skip runs."""
    p = len(order)
    for g in range(p):
        wins[g] = 0
        if g != f and table_pays(rows.bins[f], rows.bins[g], rows.n, False):
            continue
        to = at + price_below(rows, f, g) * TILE
        for e in range(n_chosen):
            wins[g] += (seconds[g, 0, e] == splits.low[to + e]) + (seconds[g, 1, e] == splits.high[to + e])
    for i in range(1, p):
        g = order[i]
        j = i
        while j > 0 and wins[order[j - 1]] < wins[g]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = g


@kernel(separate=True, borrows=True)
def scan_planes_of(f, cuts, rows, rules, tiles, x, leaves, near, splits, at):
    """Best second splits by long features for the chosen cuts of f at once, into ``splits`` from ``at`` on by price.

    ``x[i]`` says which of the chosen cuts have row i on their left; lanes without a cut have all rows there.
    """
    bins, lanes, chosen, n_chosen, seconds = rows.bins, tiles.lanes, cuts.cuts, cuts.n, near.losses
    o = rows.offset[f]
    Q = len(lanes.before) - 1
    for k in range(Q):
        total = leaves[k, o + bins[f] - 1]
        for e in range(TILE):
            left = leaves[k, o + chosen[e]] if e < n_chosen else total
            lanes.totals[k, e] = left
            lanes.totals[Q + k, e] = i4(total - left)
    for e in range(at, at + max(rules.prices, 1) * TILE):
        splits.low[e] = i4(2 * FORBIDDEN)
        splits.high[e] = i4(2 * FORBIDDEN)
    most = 2 * FORBIDDEN - near.range
    for g in tiles.order:
        if g != f and table_pays(bins[f], bins[g], rows.n, False):
            continue
        for k in range(Q):
            for e in range(TILE):
                lanes.sums[k, e] = i4(0)
        to = at + price_below(rows, f, g) * TILE
        for e in range(TILE):  # what is not better than this is of no interest
            lanes.best[0, e] = i4(min(np.int64(splits.low[to + e]), most) + near.range)
            lanes.best[1, e] = i4(min(np.int64(splits.high[to + e]), most) + near.range)
        pass_over_planes(tiles.sorted, lanes, PlanePass(g * rows.n, tiles.sorted.blocks[g]), x, leaves)
        keep_least(splits, to, lanes.best)
        if len(seconds) > 0:
            for e in range(TILE):
                seconds[g, 0, e] = lanes.best[0, e]
                seconds[g, 1, e] = lanes.best[1, e]
    if len(seconds) > 0 and rows.n >= LEAST_ORDERED:
        order_by_wins(f, n_chosen, rows, seconds, splits, at, tiles.order, tiles.wins)
