"""Second splits by a feature with many codes, for 32 first cuts side by side (two actions, no counted rows).

A table of two long features is larger than the rows are many. Instead, some cuts of the first feature are chosen, and
the rows are passed once in the order of the second: lane e of a vector holds the sum of the rows seen so far on the
left of chosen cut e, another vector that on the right. The best second split of rows with cumulated sums s_u is
min(min_u s_u, total - max_u s_u), so least and largest sums are all there is to keep.

Cost: one vector step for every row, feature and 32 chosen cuts.
Written as LLVM instructions, because LLVM does not find these vectors by itself.
Symbols: see base/layout.py.
"""

from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic

from policytree.solvers.kernels.base.layout import i4, i8, int_1d, int_2d
from policytree.solvers.kernels.base.simd import VectorCode
from policytree.solvers.kernels.base.sums import price_below
from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.depth_two.pair_tables import table_pays

TILE = 32  # chosen cuts side by side
FEW_WEIGHTS = 4  # different weights that there are tables for


class Tiles(NamedTuple):
    """Orders and weights prepared once for all tiles of some rows."""

    order: int_1d  # rows in the order of feature f's codes, from f * n on
    weights: int_1d  # their losses, in that order
    starts: int_1d  # feature f's codes, or runs of them, begin at starts[offset[f] + f] of its order
    groups: int_1d  # how many codes or runs every feature has
    lightest: i8  # least loss, and
    kinds: i8  # how many whole numbers there are from there to the largest: 0 if tables of them would not pay
    masks: int_2d  # (STRIP + 1, STRIP): which cuts have a row on their left; none if there are tables
    masks_short: types.int16[:, ::1]  # the same, if sums fit
    tables: types.int16[:, :, ::1]  # the same for the losses lightest, lightest + 1, ...: added left, and right
    found: int_2d  # results of a pass: (2 * prices, STRIP)
    found_short: types.int16[:, ::1]


class TileCode(VectorCode):
    """Emits a pass over rows or entries, for all chosen cuts: arrays of vectors have one lane for each."""

    def __init__(self, context, builder, signature, args, names, bits=32):
        super().__init__(context, builder, signature, args, names, bits, TILE)

    def nth(self, k, part=0):
        """Where the k-th vector of an array begins, or a number within it."""
        return self.at((k, TILE), part) if part else self.at((k, TILE))

    def mask_of(self, row, masks):
        """Load the mask of the chosen cuts that have a row on their left: a vector of ones or zeros."""
        return self.load(masks, self.nth(self.natural("x", row)))


class _TileCode(TileCode):
    """Emits the pass of :func:`pass_over_rows`."""

    def __init__(self, context, builder, signature, args):
        bits = signature.args[-1].dtype.bitwidth
        super().__init__(context, builder, signature, args, ("x", "table", "out"), bits)
        self.tables = signature.args[3].ndim == 3
        self.left, self.right, *self.extremes = (self.variable(self.splat_const(0)) for _ in range(6))

    def parts(self, at, row):
        """Return the amounts that the row at ``at`` adds on the left and on the right of every cut."""
        builder = self.builder
        if self.tables:
            first = builder.mul(self.natural("x", row), self.const(2))
            return [self.load("table", self.nth(self.at(first, k) if k else first)) for k in range(2)]
        weight, mask = self.splat(self.number("weights", at)), self.mask_of(row, "table")
        return builder.and_(mask, weight), builder.and_(builder.not_(mask), weight)

    def add_row(self, k):
        at = self.at(self["at"], k)
        for slot, part in zip((self.left, self.right), self.parts(at, self.natural("order", at)), strict=True):
            self.update(slot, self.builder.add, part)

    def compare(self):
        """Extremes of the sums so far: the second split may stand here."""
        for slot, operation, side in zip(
            self.extremes, [self.least, self.largest] * 2, (self.left, self.left, self.right, self.right), strict=True
        ):
            self.update(slot, operation, self.value(side))

    def emit(self):
        """All rows, code by code; without the inner loop if every code has one row."""
        builder = self.builder
        with builder.if_else(builder.icmp_signed("==", self["B"], self["n"])) as (distinct, tied):
            with distinct, self.loop(0, self["n"]) as k:
                self.add_row(k)
                self.compare()
            with tied, self.loop(0, self["B"]) as b:
                c = self.at(self["first_code"], b)
                with self.loop(self.natural("starts", c), self.natural("starts", self.at(c, 1))) as k:
                    self.add_row(k)
                self.compare()
        for side, total in enumerate((self.left, self.right)):
            least, largest = (self.value(slot) for slot in self.extremes[2 * side : 2 * side + 2])
            at = self.nth(self.at(self["out_at"], side))
            best = self.least(self.least(self.load("out", at), least), builder.sub(self.value(total), largest))
            self.store("out", at, best)


class Second(NamedTuple):
    """The feature of the second splits: where it stands in the tiles' arrays, and where its results go.

    ``B``: codes, or runs of codes.
    """

    at: i8  # in order and weights
    first_code: i8  # in starts
    B: i8
    n: i8
    out_at: i8


@intrinsic
def pass_over_rows(typingctx, tiles, second, x, table, out):
    """Best split by one feature on both sides of each of STRIP chosen cuts of another: out[out_at], out[out_at + 1].

    Row i is on the left of cut e where ``table[x[i], e]``, and weighs tiles.weights at its place in the order; int16
    tables of three axes hold what a row adds on the left, ``table[x[i], 0, e]``, and on the right.
    """

    def codegen(context, builder, signature, args):
        _TileCode(context, builder, signature, args).emit()
        return context.get_dummy_value()

    return types.void(tiles, second, x, table, out), codegen


@kernel
def aligned_zeros(n, like):
    """``n`` zeros of the type of ``like``, from a multiple of 64 bytes on: vectors are read faster there."""
    flat = np.zeros(n + 64 // like.itemsize, like.dtype)
    skip = (-flat.ctypes.data % 64) // flat.itemsize
    return flat[skip : skip + n]


@kernel(borrows=True)
def few_weights(losses):
    """Least loss and how many up to the largest, if tables of them pay (else 0, 0); whether sums fit int16."""
    least = np.int64(losses[0])
    most = least
    below = 0
    above = 0
    for i in range(len(losses)):
        x = np.int64(losses[i])
        least = min(least, x)
        most = max(most, x)
        below -= min(x, 0)
        above += max(x, 0)
    short = max(below, above) < 1 << 15
    if most - least < FEW_WEIGHTS and short:
        return least, most - least + 1, short
    return 0, 0, short


@kernel(borrows=True)
def few_runs(losses):
    """Whether most neighbours are of one sign in any order, so that runs are long."""
    above = 0
    below = 0
    for i in range(len(losses)):
        above += losses[i] > 0
        below += losses[i] < 0
    return 8 * min(above, below) < len(losses)


@kernel
def join_runs(c, B, once, losses, starts, o):
    """Join codes whose rows all have losses of one sign: a cut between them is no better than one at an end of the run.

    ``starts`` of a feature with the codes c, from ``o`` on, become those of the runs; returns how many there are.
    ``once``: whether every code has one row; ``starts`` are not known then.
    """
    n = len(losses)  # codes may be longer
    signs = np.zeros(B, np.int8)  # 1: losses above 0; 2: below; 3: both
    for i in range(n):
        signs[c[i]] |= (losses[i] > 0) + 2 * (losses[i] < 0)
    runs = 0
    sign = 3
    for b in range(B):
        together = sign | signs[b]
        if b > 0 and together != 3:
            sign = together
            continue
        starts[o + runs] = b if once else starts[o + b]
        sign = signs[b]
        runs += 1
    starts[o + runs] = n
    return runs


@kernel(borrows=True)
def drop_empty(B, starts, o):
    """Drop codes without rows from the starts of B codes, from ``o`` on; returns how many are left."""
    k = o
    for t in range(o, o + B):
        starts[k] = starts[t]
        k += starts[t + 1] > starts[t]
    starts[k] = starts[o + B]
    return k - o


@kernel(borrows=True)
def sort_rows(rows, parts, losses, large, tiles):
    """Put the rows, and their losses, in the order of every long feature, of the given ``parts``."""
    n, order, starts = rows.n, tiles.order, tiles.starts
    joins = few_runs(losses)
    for f in range(len(rows.bins)):
        if not large[f]:
            continue
        c = rows.codes[f]
        B = rows.bins[f]
        o = rows.offset[f] + f
        seams = parts[f + 1] - parts[f] - 1  # codes without rows
        once = n == B and seams == 0
        if once:
            for i in range(n):
                order[f * n + np.int64(c[i])] = i
        else:
            for t in range(o, o + B + 1):
                starts[t] = 0
            for i in range(n):
                starts[o + 1 + np.int64(c[i])] += 1
            for t in range(o + 1, o + B + 1):
                starts[t] += starts[t - 1]
            for i in range(n):
                at = starts[o + np.int64(c[i])]
                starts[o + np.int64(c[i])] = at + 1
                order[f * n + at] = i
            for t in range(o + B, o, -1):
                starts[t] = starts[t - 1]
            starts[o] = 0
        if joins:
            tiles.groups[f] = join_runs(c, B, once, losses, starts, o)
        else:
            tiles.groups[f] = drop_empty(B, starts, o) if seams > 0 else B
        if len(tiles.weights) > 0:
            for i in range(f * n, (f + 1) * n):
                tiles.weights[i] = losses[order[i]]


@kernel(borrows=True)
def fill_masks(tiles):
    """Tabulate a row's amounts on both sides, by how many chosen cuts have it on their right: by weight or as masks."""
    for j in range(TILE + 1):
        for k in range(tiles.kinds):
            left, right = tiles.tables[j * tiles.kinds + k]
            left[:j] = np.int16(0)
            right[:j] = np.int16(tiles.lightest + k)
            left[j:] = np.int16(tiles.lightest + k)
            right[j:] = np.int16(0)
        if len(tiles.masks) > 0:
            tiles.masks[j, :j] = i4(0)
            tiles.masks[j, j:] = i4(-1)
        if len(tiles.masks_short) > 0:
            tiles.masks_short[j, :j] = np.int16(0)
            tiles.masks_short[j, j:] = np.int16(-1)


@kernel(separate=True)
def make_tiles(rows, parts, losses, large, n_prices):
    """Prepare tiles: rows in order, masks, tables of the losses if these are few; ``parts``: see whole_columns.py."""
    n, p = rows.n, len(rows.bins)
    lightest, kinds, short = few_weights(losses)
    ordered = p * n if n_prices > 0 else 0  # no tiles are asked for
    step = max(kinds, 1)
    tiles = Tiles(
        np.empty(ordered, np.int32),
        np.empty(ordered if kinds == 0 else 0, np.int32),
        np.empty(rows.offset[p] + p, np.int32),
        np.empty(p, np.int32),
        lightest,
        kinds,
        np.empty((TILE + 1 if kinds == 0 else 0, TILE), np.int32),
        np.empty((TILE + 1 if kinds == 0 and short else 0, TILE), np.int16),
        np.empty(((TILE + 1) * step, 2, TILE), np.int16),
        np.empty((2 * n_prices, TILE), np.int32),
        np.empty((2 * n_prices, TILE), np.int16),
    )
    if n_prices == 0:
        return tiles
    sort_rows(rows, parts, losses, large, tiles)
    fill_masks(tiles)
    return tiles


@kernel(inline="always")
def keep_least(splits, at, values):
    """Lower what is known of the chosen cuts to the values of both sides."""
    for e in range(TILE):
        splits.low[at + e] = min(splits.low[at + e], values[0, e])
        splits.high[at + e] = min(splits.high[at + e], values[1, e])


@kernel(separate=True, borrows=True)
def scan_tiles(f, rows, tiles, x, seconds, splits, at):
    """Best second splits by long features for all chosen cuts of f at once, into ``splits`` from ``at`` on by price.

    ``x[i]`` says which of the chosen cuts have row i on their left. ``seconds[g]`` takes the losses by feature g.
    """
    n, bins = rows.n, rows.bins
    found, found_short = tiles.found, tiles.found_short
    apart = len(seconds) > 0
    for j in range(len(found)):
        for e in range(TILE):
            found[j, e] = i4(0)
            found_short[j, e] = np.int16(0)
    for j in range(len(found) // 2):
        for e in range(TILE):
            splits.low[at + j * TILE + e] = i4(0)
            splits.high[at + j * TILE + e] = i4(0)
    for g in range(len(bins)):
        if g != f and table_pays(bins[f], bins[g], n, True):
            continue
        price = price_below(rows, f, g)
        second = Second(g * n, rows.offset[g] + g, np.int64(tiles.groups[g]), n, 2 * price)
        if tiles.kinds > 0:
            pass_over_rows(tiles, second, x, tiles.tables, found_short)
        elif len(tiles.masks_short) > 0:
            pass_over_rows(tiles, second, x, tiles.masks_short, found_short)
        else:
            pass_over_rows(tiles, second, x, tiles.masks, found)
        if apart:
            for s in range(2):
                for e in range(TILE):
                    seconds[g, s, e] = min(found[2 * price + s, e], i4(found_short[2 * price + s, e]))
                    found[2 * price + s, e] = i4(0)
                    found_short[2 * price + s, e] = np.int16(0)
            keep_least(splits, at + price * TILE, seconds[g])
    for j in range(0 if apart else len(found) // 2):
        for e in range(TILE):
            splits.low[at + j * TILE + e] = min(found[2 * j, e], i4(found_short[2 * j, e]))
            splits.high[at + j * TILE + e] = min(found[2 * j + 1, e], i4(found_short[2 * j + 1, e]))
