"""Subsets of rows as lists of rows, for any losses: a row adds its numbers to the column of its code of every feature.

The numbers of a row stand side by side, padded to whole vectors: its sums, and two random keys. Sums of the keys name a
set: two sets share the 128 bits with probability 2**-128. A code of a feature that most rows have is not added up: its
sums are what the others leave of the total. Pairs of columns: a row adds its numbers to every pair of which it is on
side 1 of both, eight of them at once.

Cost: one pass over the rows for every feature; of pairs, one for every column that rows are on side 1 of, and eight.
Symbols: see layout.py.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from policytree.solvers.kernels.base.child_rows import rows_of_side
from policytree.solvers.kernels.base.layout import LANES
from policytree.solvers.kernels.base.simd import VectorCode
from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.depth_two.binary_pairs import add_vectors
from policytree.solvers.kernels.subsets.bounds import bound_pairs
from policytree.solvers.kernels.subsets.layout import N_PLACES, N_ROWS


@kernel(separate=True, borrows=True)
def add_rows(lists, index, n):
    """Sums of a set's rows by code, and in total."""
    start, items = lists.start, lists.items
    Q = lists.numbers.shape[1]
    flat, all_sums = lists.sums.reshape(lists.sums.size), lists.all_sums.reshape(Q)
    numbers = lists.numbers.reshape(lists.numbers.size)
    lists.sums[:] = 0
    all_sums[:] = 0
    for i in range(n):
        r = np.int64(index[i])
        add_vectors(all_sums, 0, numbers, r * Q, Q // LANES)
        for s in range(start[r], start[r + 1]):
            add_vectors(flat, np.int64(items[s]) * Q, numbers, r * Q, Q // LANES)


@kernel(borrows=True)
def sum_lists(lists, rules, path, scratch, d):
    """Sums of side 1 of every column of the set of level d, and the names of both sides."""
    s, places, offset, sums, on = path.scalars[d], path.places[d], lists.offset, lists.sums, scratch.on
    total = lists.all_sums[0]
    Q = rules.n_sums
    key1, key2 = path.key1[d], path.key2[d]
    add_rows(lists, lists.index[d], s[N_ROWS])
    for q in range(Q):
        scratch.total[q] = total[q]
    last = -1
    for j in range(s[N_PLACES]):
        f = rules.feature[places[j]]
        if f == last:
            continue
        last = f
        first, end, common = offset[f], offset[f + 1], lists.common[f]
        for q in range(Q + 2):
            rest = total[q]
            for t in range(first, end):
                rest -= sums[t, q]
            sums[common, q] = rest
            for t in range(first + 1, end):
                sums[t, q] += sums[t - 1, q]
        for column in range(lists.first[f], lists.first[f + 1]):
            t = first + column - lists.first[f]
            for q in range(Q):
                on[q, column] = total[q] - sums[t, q]
            key1[0, column] = sums[t, Q]
            key2[0, column] = sums[t, Q + 1]
            key1[1, column] = total[Q] - sums[t, Q]
            key2[1, column] = total[Q + 1] - sums[t, Q + 1]


@kernel(borrows=True)
def descend_lists(lists, rules, s, below, d, column, side):
    """Make the rows of one side of a column the set of level d + 1."""
    cut = np.int64(rules.cut[column])
    codes = lists.codes[rules.feature[column]]
    below[N_ROWS] = rows_of_side(codes, cut, side, lists.index[d], s[N_ROWS], lists.index[d + 1])


@intrinsic
def add_row_pairs(typingctx, lists, scratch, row):
    """Add a row to the sums of pairs of live columns of which it is on side 1, up to the block of the first one.

    Pairs of two columns of which none is open are left out as far as that is easy.
    """

    def codegen(context, builder, signature, args):
        code = VectorCode(context, builder, signature, args, ("row",))
        b, zero, row = builder, code.splat_const(0), code["row"]
        (_, Q, width), stride = code.shapes["pairs"], code.shape("numbers", 1)
        blocks = code.shape("on_masks", 1)
        byte = ir.IntType(8)
        ends = code.number("on_start", row), code.number("on_start", b.add(row, code.const(1)))
        with code.loop(*ends) as s:
            t = code.number("on_items", s)
            block_of_t = b.udiv(t, code.const(LANES))
            bit = b.shl(ir.Constant(byte, 1), b.trunc(b.urem(t, code.const(LANES)), byte))

            def is_in(name):
                mask = b.load(b.gep(code.data[name], [block_of_t]))
                return b.icmp_unsigned("!=", b.and_(mask, bit), ir.Constant(byte, 0))

            partners = b.select(is_in("open_mask"), code.data["live_mask"], code.data["open_mask"])
            with b.if_then(is_in("live_mask")), code.loop(code.const(0), b.add(block_of_t, code.const(1))) as block:
                mask = b.load(b.gep(code.data["on_masks"], [code.at((row, blocks), block)]))
                mask = b.and_(mask, b.load(b.gep(partners, [block])))
                lanes = b.bitcast(mask, ir.VectorType(ir.IntType(1), LANES))
                some = b.icmp_unsigned("!=", mask, ir.Constant(byte, 0))
                with b.if_then(some), code.loop(code.const(0), Q) as q:
                    x = code.splat(code.number("numbers", code.at((row, stride), q)))
                    to = code.at((code.at((t, Q), q), width), b.mul(block, code.const(LANES)))
                    code.store("pairs", to, b.add(code.load("pairs", to), b.select(lanes, x, zero)))
        return context.get_dummy_value()

    return types.void(lists, scratch, types.int64), codegen


@kernel(borrows=True)
def look_ahead_lists(state, lists, d, first_open):
    """Bounds of the sides of open columns by their own splits."""
    scratch, s = state.scratch, state.path.scalars[d]
    n = s[N_PLACES]
    scratch.live_mask[:] = np.uint8(0)
    scratch.open_mask[:] = np.uint8(0)
    scratch.live_on[:] = 0
    for k in range(n):
        t = scratch.order[k]
        scratch.live_mask[t // LANES] |= np.uint8(1 << (t % LANES))
        if k >= first_open:
            scratch.open_mask[t // LANES] |= np.uint8(1 << (t % LANES))
        lists.pairs[t] = 0
        for q in range(scratch.on.shape[0]):
            scratch.live_on[q, t] = scratch.on[q, t]
    for i in range(s[N_ROWS]):
        add_row_pairs(lists, scratch, np.int64(lists.index[d, i]))
    bound_pairs(state.rules, lists, scratch, d, first_open, n)
