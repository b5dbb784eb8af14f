"""Subsets of rows as bits, for rows of few different losses: sums are counts of bits, times what one bit is worth.

Rows that are worth the same stand side by side, in a *part* of whole words. A row that is worth 5 of a kind stands in
the parts worth 1 and 4 of it. A set keeps only its words that are not zero.

A set's name is made of four sums, over its words, of their halves times random odd numbers, modulo 2**64. The upper 32
bits of each are a strongly universal hash (Lemire and Kaser, Strongly universal string hashing is fast, 2014,
"multilinear"), so that two sets share the 128 bits with probability 2**-128. The sums of a set's two sides add up to
its own.

Cost: three vector instructions for every word of the set and eight columns, and some twenty for their names, which only
sets get that are not refuted by their sums.
Symbols: see layout.py; a part c of a level's set is its words part[c] to part[c + 1].
"""

import numpy as np
from numba import types
from numba.extending import intrinsic

from policytree.solvers.kernels.base.layout import LANES
from policytree.solvers.kernels.base.simd import VectorCode
from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.subsets.bounds import bound_bit_pairs
from policytree.solvers.kernels.subsets.layout import N_PLACES, N_ROWS

N_NAMES = 4  # sums that make a name
HALF = np.uint64(0xFFFFFFFF)


class _ScanCode(VectorCode):
    """Emits sums and names of the sides of eight columns at a time."""

    def names(self, x, w, sums):
        """Add eight words, at place w, to the sums that name their sets."""
        b = self.builder
        halves = b.and_(x, self.splat_const(int(HALF))), b.lshr(x, self.splat_const(32))
        for k, slot in enumerate(sums):
            for h, half in enumerate(halves):
                key = self.splat(self.number("keys", b.add(b.mul(w, self.const(LANES)), self.const(2 * k + h))))
                self.update(slot, b.add, b.mul(half, key))

    def packed(self, one, two):
        """The upper halves of two sums."""
        b = self.builder
        upper = self.splat_const(-(1 << 32))
        return b.or_(b.and_(one, upper), b.lshr(two, self.splat_const(32)))

    def side_one(self, q, j):
        """Return the position among all words of the set's q-th one, and its part on side 1 of eight columns."""
        words, width = self.shapes["bits"]
        at = self.at((self["d"], words), q)
        w = self.number("where", at)
        return w, self.builder.and_(self.splat(self.number("value", at)), self.load("bits", self.at((w, width), j)))

    def emit_sums(self):
        """Sums of side 1 of every column of the set of level d."""
        b, d, zero = self.builder, self["d"], self.const(0)
        (C, Q), width = self.shapes["values"], self.shape("bits", 1)
        with self.loop(zero, b.udiv(width, self.const(LANES))) as block:
            j = b.mul(block, self.const(LANES))
            with self.loop(zero, Q) as q:
                self.store("on", self.at((q, width), j), self.splat_const(0))
            with self.loop(zero, C) as c:
                first = self.at((d, b.add(C, self.const(1))), c)
                ends = self.number("part", first), self.number("part", b.add(first, self.const(1)))
                counted = self.variable(self.splat_const(0))
                with self.loop(*ends) as q:
                    self.update(counted, b.add, self.count_ones(self.side_one(q, j)[1]))
                with b.if_then(b.icmp_signed("<", *ends)), self.loop(zero, Q) as q:
                    at = self.at((q, width), j)
                    each = self.splat(self.number("values", self.at((c, Q), q)))
                    self.store("on", at, b.add(self.load("on", at), b.mul(self.value(counted), each)))

    def emit_names(self):
        """Names of both sides of every column of the set of level d."""
        b, d, zero = self.builder, self["d"], self.const(0)
        C, width = self.shape("values", 0), self.shape("bits", 1)
        n = self.number("part", self.at((d, b.add(C, self.const(1))), C))
        with self.loop(zero, b.udiv(width, self.const(LANES))) as block:
            j = b.mul(block, self.const(LANES))
            sums = [self.variable(self.splat_const(0)) for _ in range(N_NAMES)]
            with self.loop(zero, n) as q:
                w, x = self.side_one(q, j)
                self.names(x, w, sums)
            side_one = [self.value(slot) for slot in sums]
            own = [self.splat(self.number("own", self.const(k))) for k in range(N_NAMES)]
            side_zero = [b.sub(x, y) for x, y in zip(own, side_one, strict=True)]
            for v, (s0, s1, s2, s3) in enumerate((side_zero, side_one)):
                to = self.at((self.at((d, self.const(2)), self.const(v)), width), j)
                self.store("key1", to, self.packed(s0, s1))
                self.store("key2", to, self.packed(s2, s3))


@intrinsic
def scan_sums(typingctx, sets, scratch, d):
    """Sums of side 1 of every column of the set of level d, into scratch.on."""

    def codegen(context, builder, signature, args):
        _ScanCode(context, builder, signature, args, ("d",)).emit_sums()
        return context.get_dummy_value()

    return types.void(sets, scratch, types.int64), codegen


@intrinsic
def scan_names(typingctx, sets, path, d):
    """Names of both sides of every column of the set of level d, given its own."""

    def codegen(context, builder, signature, args):
        _ScanCode(context, builder, signature, args, ("d",)).emit_names()
        return context.get_dummy_value()

    return types.void(sets, path, types.int64), codegen


@kernel(borrows=True)
def sum_bits(sets, scratch, d):
    """Sums of the set of level d, and of the sides of every column."""
    value, part, total = sets.value[d], sets.part[d], scratch.total
    total[:] = 0
    for c in range(sets.values.shape[0]):
        ones = 0
        for q in range(part[c], part[c + 1]):
            ones += bits_set(value[q])
        for q in range(len(total)):
            total[q] += ones * sets.values[c, q]
    scan_sums(sets, scratch, d)


@kernel(borrows=True)
def name_bits(sets, path, d):
    """Names of the sides of every column of the set of level d."""
    value, where, own = sets.value[d], sets.where[d], sets.own
    own[:] = 0
    for q in range(sets.part[d, sets.values.shape[0]]):
        w = where[q]
        low = np.int64(value[q] & HALF)
        high = np.int64(value[q] >> np.uint64(32))
        for k in range(N_NAMES):
            own[k] += low * np.int64(sets.keys[w, 2 * k]) + high * np.int64(sets.keys[w, 2 * k + 1])
    scan_names(sets, path, d)


@intrinsic
def bits_set(typingctx, word):
    """Number of bits that are set in a word."""

    def codegen(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.int64(types.uint64), codegen


@kernel(borrows=True)
def descend_bits(sets, below, d, column, side):
    """Make one side of a column the set of level d + 1."""
    value, where, part = sets.value[d], sets.where[d], sets.part[d]
    to_value, to_where, to_part = sets.value[d + 1], sets.where[d + 1], sets.part[d + 1]
    flip = np.uint64(0) if side == 1 else ~np.uint64(0)
    n = 0
    for c in range(sets.values.shape[0]):
        to_part[c] = n
        for q in range(part[c], part[c + 1]):
            x = value[q] & (sets.bits[where[q], column] ^ flip)
            if x != 0:
                to_value[n] = x
                to_where[n] = where[q]
                n += 1
    to_part[sets.values.shape[0]] = n
    below[N_ROWS] = n


@kernel(borrows=True)
def look_ahead_bits(state, sets, d, first_open):
    """Bounds of the sides of open columns by their own splits; the live columns stand side by side."""
    scratch, n, order = state.scratch, state.path.scalars[d, N_PLACES], state.scratch.order
    width = scratch.live_on.shape[1]
    value, where = sets.value[d], sets.where[d]
    padded = (n + LANES - 1) // LANES * LANES
    for q in range(sets.part[d, sets.values.shape[0]]):
        row = sets.bits[where[q]]
        for t in range(n):
            sets.live[q * width + t] = value[q] & row[order[t]]
        for t in range(n, padded):
            sets.live[q * width + t] = np.uint64(0)
    for q in range(scratch.on.shape[0]):
        for t in range(n):
            scratch.live_on[q, t] = scratch.on[q, order[t]]
        for t in range(n, padded):
            scratch.live_on[q, t] = 0
    bound_bit_pairs(state.rules, sets, scratch, d, first_open, n)
