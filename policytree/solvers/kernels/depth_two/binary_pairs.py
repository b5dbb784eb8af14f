"""Features with two codes: one block of pair sums instead of a table for each pair.

A two-valued feature is *on* where its rarer code is. ``G[k, u, v]`` is the sum of losses (or counts) k over the rows
where features u and v are both on; its diagonal holds the sums of single features. The other three cells of a pair's
table are differences of these, so the block is all that depth two needs.

Cost: a row adds one vector of all features for each feature that is on; the scan takes one step for every pair.
Symbols: ``width`` is the number of features padded to whole vectors.
"""

from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic

from policytree.solvers.kernels.base.layout import FORBIDDEN, LANES, SecondSplits, i4, int_1d, int_2d, int_3d, long_2d
from policytree.solvers.kernels.base.simd import VectorCode
from policytree.solvers.kernels.base.sums import costly
from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.depth_two.pair_tables import scan

FEWEST = 4  # two-valued features that make a block
MOST_PRODUCTS = 1 << 26  # numbers of a block's rows
MOST_WORK = 1 << 32  # additions: a block cannot be stopped while it is made


class Block(NamedTuple):
    """The two-valued features of some rows, and their pair sums over all of them."""

    features: long_2d  # (features of the block, 2): which feature, and its rarer code
    products: int_3d  # (sums, rows, width): a row's losses and counts where a feature is on
    start: int_1d  # the features that are on in row i: items[start[i] : start[i + 1]]
    items: int_1d
    sums: int_3d  # (sums, features, width): G


class BlockScratch(NamedTuple):
    """Room for a pair's 2 x (features + 1) table at a time, and for its results."""

    table: int_3d
    extremes: int_2d
    splits: SecondSplits


@kernel(separate=True, borrows=True)
def block_size(rows, rules):
    """How many two-valued features go through the block: none if they are few, costly or make it large."""
    n = 0
    for f in range(len(rows.bins)):
        n += rows.bins[f] == 2
    K = rules.n_losses + len(rules.minima)
    products = K * rows.n * n
    fits = products <= MOST_PRODUCTS and products * n <= MOST_WORK
    return n if n >= FEWEST and not costly(rules) and fits else 0


@kernel(borrows=True)
def fill_block(rows, rounded, block):
    """Rows as products with the two-valued features, and the list of those that are on."""
    codes, features, products = rows.codes, block.features, block.products
    n = 0
    for f in range(len(rows.bins)):
        if rows.bins[f] != 2:
            continue
        ones = 0
        for i in range(rows.n):
            ones += codes[f, i]
        features[n, 0] = f
        features[n, 1] = 1 if 2 * ones <= rows.n else 0
        n += 1
    at = 0
    for i in range(rows.n):
        block.start[i] = at
        for j in range(n):
            on = codes[features[j, 0], i] == features[j, 1]
            if on:
                block.items[at] = j
                at += 1
            for k in range(products.shape[0]):
                products[k, i, j] = rounded.planes[k, i] if on else i4(0)
    block.start[rows.n] = at


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
    K, n, width = G.shape
    g = G.reshape(G.size)
    w = block.products.reshape(block.products.size)
    m = block.products.shape[1]
    for i in range(a, b):
        r = np.int64(index[i])
        for s in range(block.start[r], block.start[r + 1]):
            j = np.int64(block.items[s])
            for k in range(K):
                add_vectors(g, (k * n + j) * width, w, (k * m + r) * width, width // LANES)


@kernel(separate=True)
def make_block(rows, rounded, rules, size):
    """The block of ``size`` two-valued features (0: an empty one), with the sums of all rows."""
    n = rows.n
    K = rules.n_losses + len(rules.minima)
    width = (size + LANES - 1) // LANES * LANES
    block = Block(
        np.empty((size, 2), np.int64),
        np.zeros((K, n if size > 0 else 0, width), np.int32),
        np.zeros(n + 1, np.int32),
        np.empty(n * size // 2 + size, np.int32),
        np.zeros((K, size, width), np.int32),
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


@kernel(separate=True)
def block_scratch(rules, size):
    """Scratch for :func:`scan_block`."""
    K = rules.n_losses + len(rules.minima)
    return BlockScratch(
        np.empty((K, 2, size + 1), np.int32),
        np.empty((4, size + 1), np.int32),
        SecondSplits(np.zeros(size + 3, np.int32), np.zeros(size + 3, np.int32)),
    )


@kernel(borrows=True)
def keep_block_values(splits, place, rare_code, rare, other):
    """Note the best second splits of the rows of the rarer code and of the others."""
    low = rare if rare_code == 0 else other
    high = other if rare_code == 0 else rare
    splits.low[place] = min(splits.low[place], low)
    splits.high[place] = min(splits.high[place], high)


@kernel(borrows=True)
def scan_block_planes(G, sums, block, offset, rules, scratch, splits):
    """:func:`scan_block` for any losses and counts."""
    K, n = G.shape[0], G.shape[1]
    table, found = scratch.table, scratch.splits
    for k in range(K):
        for u in range(n):
            table[k, 1, u] = G[k, u, u]
        table[k, 1, n] = sums[k]
    for j in range(n):
        for k in range(K):
            for u in range(n):
                table[k, 0, u] = G[k, j, u]
            table[k, 0, n] = G[k, j, j]
        found.low[0] = i4(2 * FORBIDDEN)
        found.high[0] = i4(2 * FORBIDDEN)
        scan(table, 2, n + 1, rules, scratch.extremes, found, 0, 2)
        keep_block_values(splits, offset[block.features[j, 0]], block.features[j, 1], found.low[0], found.high[0])


@kernel
def scan_block_signed(G, total, block, offset, splits):
    """:func:`scan_block` for two actions without counted rows."""
    n, width = G.shape
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
        keep_block_values(splits, offset[block.features[j, 0]], block.features[j, 1], rare, other)


@kernel(separate=True, borrows=True)
def scan_block(G, sums, block, offset, rules, scratch, splits):
    """Best second split among the two-valued features for each of them as the first."""
    if rules.n_losses == 1 and len(rules.minima) == 0:
        scan_block_signed(G[0], sums[0], block, offset, splits)
    else:
        scan_block_planes(G, sums, block, offset, rules, scratch, splits)


@kernel(separate=True, borrows=True)
def block_prefix_sums(G, sums, block, offset, one):
    """Cumulated sums of the two-valued features themselves, from the diagonal, into one[k, place]."""
    for j in range(G.shape[1]):
        o = offset[block.features[j, 0]]
        rare_code = block.features[j, 1]
        for k in range(G.shape[0]):
            one[k, o] = G[k, j, j] if rare_code == 0 else i4(sums[k] - G[k, j, j])
            one[k, o + 1] = sums[k]
