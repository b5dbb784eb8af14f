"""Row sets as bits, for rows of few different losses: sums are counts of bits, times what one bit is worth.

Rows that are worth the same stand side by side, in a *part* of whole words. A row that is worth 5 of a kind stands in
the parts worth 1 and 4 of it. A set keeps only its words that are not zero.

A set's name is made of four sums, over its words, of their halves times random odd numbers, modulo 2**64. The upper 32
bits of each are a strongly universal hash (Lemire and Kaser, Strongly universal string hashing is fast, 2014,
"multilinear"), so that two sets share the 128 bits with probability 2**-128. The sums of a set's two sides add up to
its own.

Cost: three vector instructions for every word of the set and eight columns, and some twenty for their names.
Symbols: see row_set_layout.py; a part c of a level's set is its words part[c] to part[c + 1].
"""

import numpy as np
from numba import types
from numba.extending import intrinsic

from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.layout import LANES
from policytree.solvers.kernels.row_set_layout import N_PLACES, N_ROWS
from policytree.solvers.kernels.set_bounds import bound_bit_pairs
from policytree.solvers.kernels.vector_code import VectorCode

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

    def emit(self):
        """Scan the words of the set of level d."""
        b, d, zero = self.builder, self["d"], self.const(0)
        (C, Q), (words, width) = self.shapes["values"], self.shapes["bits"]
        with self.loop(zero, b.udiv(width, self.const(LANES))) as block:
            j = b.mul(block, self.const(LANES))
            sums = [self.variable(self.splat_const(0)) for _ in range(N_NAMES)]
            with self.loop(zero, Q) as q:
                self.store("on", self.at((q, width), j), self.splat_const(0))
            with self.loop(zero, C) as c:
                first = self.at((d, b.add(C, self.const(1))), c)
                ends = self.number("part", first), self.number("part", b.add(first, self.const(1)))
                counted = self.variable(self.splat_const(0))
                with self.loop(*ends) as q:
                    at = self.at((d, words), q)
                    w = self.number("where", at)
                    x = b.and_(self.splat(self.number("value", at)), self.load("bits", self.at((w, width), j)))
                    self.update(counted, b.add, self.count_ones(x))
                    self.names(x, w, sums)
                with b.if_then(b.icmp_signed("<", *ends)), self.loop(zero, Q) as q:
                    at = self.at((q, width), j)
                    each = self.splat(self.number("values", self.at((c, Q), q)))
                    self.store("on", at, b.add(self.load("on", at), b.mul(self.value(counted), each)))
            side_one = [self.value(slot) for slot in sums]
            own = [self.splat(self.number("own", self.const(k))) for k in range(N_NAMES)]
            side_zero = [b.sub(x, y) for x, y in zip(own, side_one, strict=True)]
            for v, (s0, s1, s2, s3) in enumerate((side_zero, side_one)):
                to = self.at((self.at((d, self.const(2)), self.const(v)), width), j)
                self.store("key1", to, self.packed(s0, s1))
                self.store("key2", to, self.packed(s2, s3))


@intrinsic
def scan_words(typingctx, sets, path, scratch, d):
    """Sums of side 1 of every column of the set of level d, into scratch.on, and the names of both sides."""

    def codegen(context, builder, signature, args):
        _ScanCode(context, builder, signature, args, ("sets", "path", "scratch", "d")).emit()
        return context.get_dummy_value()

    return types.void(sets, path, scratch, types.int64), codegen


@kernel
def sum_bits(sets, path, scratch, d):
    """Name and sums of the set of level d, and of the sides of every column."""
    value, where, part, own, total = sets.value[d], sets.where[d], sets.part[d], sets.own, scratch.total
    own[:] = 0
    total[:] = 0
    for c in range(sets.values.shape[0]):
        ones = 0
        for q in range(part[c], part[c + 1]):
            x = value[q]
            w = where[q]
            low = np.int64(x & HALF)
            high = np.int64(x >> np.uint64(32))
            for k in range(N_NAMES):
                own[k] += low * np.int64(sets.keys[w, 2 * k]) + high * np.int64(sets.keys[w, 2 * k + 1])
            ones += bits_set(x)
        for q in range(len(total)):
            total[q] += ones * sets.values[c, q]
    scan_words(sets, path, scratch, d)


@intrinsic
def bits_set(typingctx, word):
    """Number of bits that are set in a word."""

    def codegen(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.int64(types.uint64), codegen


@kernel
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


@kernel
def look_ahead_bits(state, sets, d):
    """Bounds of the sides of every live column by their own splits; the live columns stand side by side."""
    scratch, s, places = state.scratch, state.path.scalars[d], state.path.places[d]
    n = s[N_PLACES]
    width = scratch.live_on.shape[1]
    value, where = sets.value[d], sets.where[d]
    padded = (n + LANES - 1) // LANES * LANES
    for q in range(sets.part[d, sets.values.shape[0]]):
        row = sets.bits[where[q]]
        for t in range(n):
            sets.live[q * width + t] = value[q] & row[places[t]]
        for t in range(n, padded):
            sets.live[q * width + t] = np.uint64(0)
    for q in range(scratch.on.shape[0]):
        for t in range(n):
            scratch.live_on[q, t] = scratch.on[q, places[t]]
        for t in range(n, padded):
            scratch.live_on[q, t] = 0
    for t in range(n):
        scratch.order[t] = t
    bound_bit_pairs(state.rules, sets, scratch, d, n)
