"""Features with two codes: one block of pair sums instead of a table for each pair.

A two-valued feature is *on* where its rarer code is. ``G[u, k, v]`` is the sum of losses (or counts) k over the rows
where features u and v are both on; its diagonal holds the sums of single features. The other three cells of a pair's
table are differences of these, so the block is all that depth two needs.

Prices of splits do not change sums. Features of one price and test group stand side by side in the block, and the best
second split is looked for in every such run apart.

Cost: a row adds one vector of all features for each feature that is on; the scan takes one step for every pair.
Symbols: ``width`` is the number of features padded to whole vectors.
"""

from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic

from policytree.solvers.kernels.base.layout import FORBIDDEN, INF, LANES, i4, i8, int_1d, int_2d, int_3d, long_2d
from policytree.solvers.kernels.base.simd import VectorCode
from policytree.solvers.kernels.base.sums import price_below
from policytree.solvers.kernels.compiling import kernel

FEWEST = 4  # two-valued features that make a block
MOST_PRODUCTS = 1 << 26  # numbers of a block's rows
MOST_WORK = 1 << 32  # additions: a block cannot be stopped while it is made


class Block(NamedTuple):
    """The two-valued features of some rows, and their pair sums over all of them."""

    features: long_2d  # (features of the block, 2): which feature, and its rarer code
    products: int_3d  # (rows, sums, width): a row's losses and counts where a feature is on
    start: int_1d  # the features that are on in row i: items[start[i] : start[i + 1]]
    items: int_1d
    sums: int_3d  # (features, sums, width): G


class BlockScratch(NamedTuple):
    """Room for the scan of a block."""

    diagonal: int_2d  # (sums, width): of single features
    values: int_2d  # (2, width): of every second feature, of the rows where the first is on, and of the others
    ends: int_1d  # where runs of features of one price and test group end; the last one with the padding
    own: int_2d  # (2, sums): of the rows where the first feature is on, and of all rows
    minima: int_1d


@kernel(separate=True, borrows=True)
def block_size(rows, rules):
    """How many two-valued features go through the block: none if they are few or make it large."""
    n = 0
    for f in range(len(rows.bins)):
        n += rows.bins[f] == 2
    K = rules.n_losses + len(rules.minima)
    products = K * rows.n * n
    fits = products <= MOST_PRODUCTS and products * n <= MOST_WORK
    return n if n >= FEWEST and fits else 0


@kernel(inline="always")
def comes_before(rows, f, g):
    """Whether feature f stands before g in a block: by price, then by test group."""
    return rows.groups[f] < rows.groups[g] or (rows.groups[f] == rows.groups[g] and rows.owners[f] < rows.owners[g])


@kernel(borrows=True)
def fill_block(rows, rounded, block):
    """Rows as products with the two-valued features, and the list of those that are on."""
    codes, features, products, start, items = rows.codes, block.features, block.products, block.start, block.items
    n = 0
    for f in range(len(rows.bins)):
        if rows.bins[f] != 2:
            continue
        ones = 0
        for i in range(rows.n):
            ones += codes[f, i]
        j = n  # in the order of prices and test groups, then of columns
        while j > 0 and comes_before(rows, f, features[j - 1, 0]):
            features[j, 0] = features[j - 1, 0]
            features[j, 1] = features[j - 1, 1]
            j -= 1
        features[j, 0] = f
        features[j, 1] = 1 if 2 * ones <= rows.n else 0
        n += 1
    # Column by column, as codes stand: rows count what is on, and then each of them moves its start along its list.
    for j in range(n):
        c = codes[features[j, 0]]
        rare = features[j, 1]
        for i in range(rows.n):
            start[i + 1] += i4(c[i] == rare)
    for i in range(rows.n):
        start[i + 1] += start[i]
    for j in range(n):
        c = codes[features[j, 0]]
        rare = features[j, 1]
        for i in range(rows.n):
            if c[i] == rare:
                items[start[i]] = j
                start[i] += 1
    for i in range(rows.n, 0, -1):
        start[i] = start[i - 1]
    start[0] = 0
    for i in range(rows.n):
        for k in range(products.shape[1]):
            loss = rounded.planes[k, i]
            for s in range(start[i], start[i + 1]):
                products[i, k, items[s]] = loss


@intrinsic
def add_vectors(typingctx, to, to_at, what, what_at, n):
    """Add ``n`` vectors of eight from ``what[what_at:]`` to ``to[to_at:]``: LLVM leaves too much of short rows over."""

    def codegen(context, builder, signature, args):
        names, bits = ("to", "to_at", "what", "what_at", "n"), signature.args[0].dtype.bitwidth
        code = VectorCode(context, builder, signature, args, names, bits)
        with code.loop(0, code["n"]) as k:
            at, other = (code.at(code[first], (k, LANES)) for first in ("to_at", "what_at"))
            code.store("to", at, builder.add(code.load("to", at), code.load("what", other)))
        return context.get_dummy_value()

    return types.void(to, types.int64, what, types.int64, types.int64), codegen


@kernel(separate=True, borrows=True)
def add_block(G, block, index, a, b):
    """Add the products of rows index[a:b] to the pair sums G."""
    size = G.shape[1] * G.shape[2]
    g = G.reshape(G.size)
    w = block.products.reshape(block.products.size)
    for i in range(a, b):
        r = np.int64(index[i])
        for s in range(block.start[r], block.start[r + 1]):
            add_vectors(g, np.int64(block.items[s]) * size, w, r * size, size // LANES)


@kernel(separate=True)
def make_block(rows, rounded, rules, size):
    """The block of ``size`` two-valued features (0: an empty one), with the sums of all rows."""
    n = rows.n
    K = rules.n_losses + len(rules.minima)
    width = (size + LANES - 1) // LANES * LANES
    block = Block(
        np.empty((size, 2), np.int64),
        np.zeros((n if size > 0 else 0, K, width), np.int32),
        np.zeros(n + 1, np.int32),
        np.empty(n * size // 2 + size, np.int32),
        np.zeros((size, K, width), np.int32),
    )
    if size > 0:
        fill_block(rows, rounded, block)
        add_block(block.sums, block, np.arange(n).astype(np.int32), 0, n)
    return block


@kernel
def no_block():
    """A block without features."""
    empty = np.empty(0, np.int32)
    return Block(np.empty((0, 2), np.int64), np.empty((0, 0, 0), np.int32), empty, empty, np.empty((0, 0, 0), np.int32))


@kernel(borrows=True)
def mark_runs(rows, block, ends):
    """Note where runs of features of one price and test group end; returns how many there are."""
    features = block.features
    runs = 0
    for j in range(1, len(features) + 1):
        f = features[j - 1, 0]
        g = features[min(j, len(features) - 1), 0]
        if j == len(features) or rows.groups[f] != rows.groups[g] or rows.owners[f] != rows.owners[g]:
            ends[runs] = j
            runs += 1
    return runs


@kernel(separate=True)
def block_scratch(rows, rules, block):
    """Scratch for :func:`scan_block` of these rows, or of some of them."""
    size = len(block.features)
    K = rules.n_losses + len(rules.minima)
    width = (size + LANES - 1) // LANES * LANES
    minima = np.empty(len(rules.minima), np.int32)
    for k in range(len(minima)):
        minima[k] = min(rules.minima[k], FORBIDDEN)
    ends = np.empty(size, np.int32)
    runs = mark_runs(rows, block, ends)
    ends[runs - 1] = width  # whole vectors, the last ones of zeros
    return BlockScratch(
        np.zeros((K, width), np.int32), np.zeros((2, width), np.int32), ends[:runs], np.empty((2, K), np.int32), minima
    )


@kernel(borrows=True)
def keep_block_values(splits, place, rare_code, rare, other):
    """Note the best second splits of the rows of the rarer code and of the others."""
    low = rare if rare_code == 0 else other
    high = other if rare_code == 0 else rare
    splits.low[place] = min(splits.low[place], low)
    splits.high[place] = min(splits.high[place], high)


class PlaneRow(NamedTuple):
    """Where the first feature's pair sums begin, how far those of the next loss or count are, and how many they are."""

    at: i8
    stride: i8
    width: i8
    losses: i8


class _RowCode(VectorCode):
    """Emits :func:`two_leaves_of_row`."""

    def __init__(self, context, builder, signature, args):
        super().__init__(context, builder, signature, args, ("sums", "diagonal", "own", "minima", "values"), 32)

    def parts(self, plane, u):
        """A plane's sums of the four leaves: both on, the first only, the second only, neither."""
        sub = self.builder.sub
        both = self.load("sums", self.at(self["at"], (plane, self["stride"]), u))
        second = self.load("diagonal", self.at((plane, self["width"]), u))
        first = self.splat(self.number("own", plane))
        every = self.splat(self.number("own", self.at(self.planes, plane)))
        alone = sub(second, both)
        return both, sub(first, both), alone, sub(sub(every, first), alone)

    def emit(self):
        builder = self.builder
        counts = self.shape("minima", 0)
        self.planes = self.at(self["losses"], counts)
        leaves = [self.variable(self.splat_const(0)) for _ in range(4)]
        with self.loop(0, self["width"], LANES) as u:
            for leaf in leaves:
                self.set(leaf, self.splat_const(0))
            with self.loop(0, self["losses"]) as plane:
                for leaf, part in zip(leaves, self.parts(plane, u), strict=True):
                    self.update(leaf, self.least, part)
            with self.loop(0, counts) as k:
                least = self.splat(self.number("minima", k))
                for leaf, part in zip(leaves, self.parts(self.at(self["losses"], k), u), strict=True):
                    enough = builder.icmp_signed(">=", part, least)
                    self.set(leaf, builder.select(enough, self.value(leaf), self.splat_const(FORBIDDEN)))
            a, b, c, d = (self.value(leaf) for leaf in leaves)
            self.store("values", u, builder.add(a, b))
            self.store("values", self.at(self["width"], u), builder.add(c, d))


@intrinsic
def two_leaves_of_row(typingctx, sums, row, diagonal, own, minima, values):
    """Least losses of two leaves by every second feature, where the first is on, values[0], and where it is not, [1].

    ``sums`` is the block's G, of which ``row`` is the first feature's; ``own`` (2, K): sums of the rows where it is on,
    and of all rows.
    """

    def codegen(context, builder, signature, args):
        _RowCode(context, builder, signature, args).emit()
        return context.get_dummy_value()

    return types.void(sums, row, diagonal, own, minima, values), codegen


@kernel(inline="always")
def place_of(rows, f, g):
    """Where the values of first splits on f stand if the second ones have the price of g."""
    return price_below(rows, f, g) * rows.offset[len(rows.bins)] + rows.offset[f]


@kernel(separate=True, borrows=True)
def scan_block_planes(G, sums, block, rows, rules, scratch, splits):
    """:func:`scan_block` for any losses and counts."""
    n, K, width = G.shape
    diagonal, values, ends = scratch.diagonal, scratch.values, scratch.ends
    for u in range(n):
        for k in range(K):
            diagonal[k, u] = G[u, k, u]
    own = scratch.own
    for k in range(K):
        own[1, k] = sums[k]
    for j in range(n):
        for k in range(K):
            own[0, k] = diagonal[k, j]
        two_leaves_of_row(
            G, PlaneRow(j * K * width, width, width, rules.n_losses), diagonal, own, scratch.minima, values
        )
        f, rare_code = block.features[j, 0], block.features[j, 1]
        start = 0
        for r in range(len(ends)):
            rare = i4(2 * FORBIDDEN)
            other = i4(2 * FORBIDDEN)
            for u in range(start, ends[r]):
                rare = min(rare, values[0, u])
                other = min(other, values[1, u])
            keep_block_values(splits, place_of(rows, f, block.features[start, 0]), rare_code, rare, other)
            start = ends[r]


@kernel(borrows=True)
def scan_block_signed(G, total, block, rows, scratch, splits):
    """:func:`scan_block` for two actions without counted rows."""
    n = len(G)
    diagonal, ends = scratch.diagonal[0], scratch.ends
    for u in range(n):
        diagonal[u] = G[u, u]
    for j in range(n):
        row = G[j]
        f, rare_code = block.features[j, 0], block.features[j, 1]
        start = 0
        for r in range(len(ends)):
            a0 = i4(0)
            a1 = i4(0)
            c0 = i4(0)
            c1 = i4(0)
            for u in range(start, ends[r]):
                x = row[u]
                y = i4(diagonal[u] - x)
                a0 = min(a0, x)
                a1 = max(a1, x)
                c0 = min(c0, y)
                c1 = max(c1, y)
            rare = min(a0, i4(diagonal[j] - a1))
            other = min(c0, i4(i4(total - diagonal[j]) - c1))
            keep_block_values(splits, place_of(rows, f, block.features[start, 0]), rare_code, rare, other)
            start = ends[r]


@kernel(separate=True, borrows=True)
def scan_block(G, sums, block, rows, rules, scratch, splits):
    """Best second split among the two-valued features for each of them as the first."""
    if rules.n_losses == 1 and len(rules.minima) == 0:
        scan_block_signed(G.reshape((len(G), G.shape[2])), sums[0], block, rows, scratch, splits)
    else:
        scan_block_planes(G, sums, block, rows, rules, scratch, splits)


@kernel(separate=True, borrows=True)
def mark_near_in_block(block, j, sums, last, rules, least, shift, wanted, slack):
    """Mark the second features of a block that may be best below its j-th one, in exact numbers.

    Those are the ones whose rounded value is at most ``slack`` above the ``least`` (2,) of the sides {code 0} and
    {code 1}. ``wanted`` (2 p): of the first side, then of the other. ``sums[:, last]`` are those of all rows. For
    splits that cost nothing.
    """
    G, features = block.sums, block.features
    P, minima = rules.n_losses, rules.minima
    p = len(wanted) // 2
    rare_code = features[j, 1]
    for u in range(len(features)):
        for s in range(2):
            x = 0
            y = 0
            for k in range(P + len(minima)):
                both, here, there = np.int64(G[j, k, u]), np.int64(G[j, k, j]), np.int64(G[u, k, u])
                if s == rare_code:
                    a, b = both, here - both
                else:
                    a = there - both
                    b = np.int64(sums[k, last]) - here - a
                if k < P:
                    x = min(x, a)
                    y = min(y, b)
                elif a < minima[k - P] or b < minima[k - P]:
                    x = INF
                    y = 0
            wanted[s * p + features[u, 0]] = x <= 0 and ((x + y) << shift) <= least[s] + slack


@kernel(separate=True, borrows=True)
def block_prefix_sums(G, sums, block, offset, one):
    """Cumulated sums of the two-valued features themselves, from the diagonal, into one[k, place]."""
    for j in range(len(G)):
        o = offset[block.features[j, 0]]
        rare_code = block.features[j, 1]
        for k in range(G.shape[1]):
            one[k, o] = G[j, k, j] if rare_code == 0 else i4(sums[k] - G[j, k, j])
            one[k, o + 1] = sums[k]
