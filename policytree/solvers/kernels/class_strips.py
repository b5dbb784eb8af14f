"""Second splits by a feature with many codes, for 32 first cuts side by side: any number of actions, counted rows.

What a row gains under an action is how much less it loses there than under its worst action: gains are never negative,
and a labelled row has one. The best leaf of some rows gains max_k G_k, where G_k adds up their gains under action k.
The rows are passed once in the order of the second feature, one *entry* for every gain that is not zero:

    left of the second cut     G_k only grows, so that its maximum moves with the entry's own action
    right of it                total - G_k, whose maximum is taken anew wherever the cut may stand

Lane e of a vector belongs to chosen cut e of the first feature; the rows on its left and right have vectors of their
own. Counted rows are entries too: they say which cuts leave both leaves their minima. Where the entries of neighbouring
codes all have the same action, no cut between them is better than both ends of the run, so none is looked at.

Cost: four vector steps for every entry, 2 K more for every code that ends a run, for every feature and 32 chosen cuts.
Written as LLVM instructions, because LLVM does not find these vectors by itself.
Symbols: see layout.py; a slot is an action, a counted plane, or (the last one) what rows lose under their worst action.
"""

from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.layout import FORBIDDEN, i4, i8, int_1d, int_2d
from policytree.solvers.kernels.pair_tables import table_pays
from policytree.solvers.kernels.strips import STRIP

short_2d = types.int16[:, ::1]
# After an entry: another one of its run, one of another slot or action, or a place where the second cut may stand.
GO_ON, NEXT_SLOT, COMPARE = 0, 1, 2


class Entries(NamedTuple):
    """What rows add to the slots, in the order of every long feature's codes, from f * entries on."""

    rows: int_1d
    slots: types.uint8[::1]
    amounts: int_1d
    then: types.uint8[::1]  # what follows an entry: GO_ON, NEXT_SLOT, COMPARE
    first: int_1d  # of every row's, in the order of rows
    row_slots: types.uint8[::1]  # in the order of rows
    row_amounts: int_1d
    worst: int_1d  # what every row loses under its worst action
    count: i8
    actions: i8
    short: i8  # whether sums fit int16
    minima: int_1d


class LongLanes(NamedTuple):
    """Vectors of STRIP lanes: two for every slot, of the rows on the left and on the right of the chosen cuts."""

    masks: int_2d  # (STRIP + 1): which cuts have a row on their left
    totals: int_2d
    sums: int_2d  # left of the second cut, and behind them right of it
    best: int_2d  # largest gain of two leaves, two for every price


class ShortLanes(NamedTuple):
    """The same in int16."""

    masks: short_2d
    totals: short_2d
    sums: short_2d
    best: short_2d


class ClassStrips(NamedTuple):
    """What is prepared once for all strips of some rows."""

    entries: Entries
    long: LongLanes
    short: ShortLanes
    totals: int_2d  # sums of all slots by segment, then on both sides of the chosen cuts


class Pass(NamedTuple):
    """One second feature: where its entries begin, and where its results go."""

    at: i8
    out_at: i8


class _PassCode:
    """Emits :func:`pass_over_entries`."""

    def __init__(self, context, builder, signature, args):
        self.builder, self.data = builder, {}
        for ty, value in zip(signature.args, args, strict=True):
            if not isinstance(ty, types.BaseNamedTuple):
                self.take(context, "x", ty, value)
                continue
            for k, (name, part) in enumerate(zip(ty.fields, ty, strict=True)):
                self.take(context, name, part, builder.extract_value(value, k))
        self.number = ir.IntType(signature.args[1][0].dtype.bitwidth)
        self.vector = ir.VectorType(self.number, STRIP)
        self.zero = ir.Constant(self.vector, [0] * STRIP)
        self.never = ir.Constant(self.vector, [-1] * STRIP)
        self.places = ir.Constant(ir.VectorType(ir.IntType(32), STRIP), [0] * STRIP)
        self.most = [self.slot(self.zero) for _ in range(2)]
        self.added = [self.slot(self.zero) for _ in range(2)]
        self.best = [self.slot(self.never) for _ in range(2)]

    def take(self, context, name, ty, value):
        """Keep an argument: a number, or where an array's numbers begin."""
        is_array = isinstance(ty, types.Array)
        self.data[name] = context.make_array(ty)(context, self.builder, value).data if is_array else value

    def slot(self, value):
        at = cgutils.alloca_once(self.builder, self.vector)
        self.builder.store(value, at)
        return at

    def load(self, name, index):
        return self.builder.load(self.builder.gep(self.data[name], [index]))

    def pointer(self, name, index):
        at = self.builder.mul(index, ir.Constant(ir.IntType(64), STRIP))
        return self.builder.bitcast(self.builder.gep(self.data[name], [at]), self.vector.as_pointer())

    def splat(self, scalar):
        undefined = ir.Constant(self.vector, ir.Undefined)
        number = scalar if scalar.type == self.number else self.builder.trunc(scalar, self.number)
        first = self.builder.insert_element(undefined, number, ir.Constant(ir.IntType(32), 0))
        return self.builder.shuffle_vector(first, undefined, self.places)

    def largest(self, a, b):
        return self.builder.select(self.builder.icmp_signed(">", a, b), a, b)

    @staticmethod
    def const(k):
        return ir.Constant(ir.IntType(64), k)

    def slots(self):
        """How many slots the sums have."""
        return self.builder.add(self.data["actions"], self.data["n_minima"])

    def places_of(self, slot, side):
        """Where a slot's sums stand: left of the second cut, and right of it."""
        left = self.builder.add(self.builder.mul(slot, self.const(2)), self.const(side))
        return left, self.builder.add(left, self.builder.mul(self.slots(), self.const(2)))

    def add_entry(self, at):
        """An entry's amount, on the left and on the right of every chosen cut, to what its run comes to."""
        builder = self.builder
        row = builder.sext(self.load("rows", at), ir.IntType(64))
        amount = self.splat(self.load("amounts", at))
        mask = builder.load(self.pointer("masks", builder.zext(self.load("x", row), ir.IntType(64))), align=4)
        for side, added in enumerate(self.added):
            part = builder.and_(mask if side == 0 else builder.not_(mask), amount)
            builder.store(builder.add(builder.load(added), part), added)

    def end_run(self, at):
        """Move what a run comes to from the right of the second cut to its left."""
        builder = self.builder
        slot = builder.zext(self.load("slots", at), ir.IntType(64))
        is_action = builder.icmp_signed("<", slot, self.data["actions"])
        for side, added in enumerate(self.added):
            part = builder.load(added)
            builder.store(self.zero, added)
            left, right = (self.pointer("sums", place) for place in self.places_of(slot, side))
            grown = builder.add(builder.load(left, align=4), part)
            builder.store(grown, left, align=4)
            builder.store(builder.sub(builder.load(right, align=4), part), right, align=4)
            old = builder.load(self.most[side])
            builder.store(builder.select(is_action, self.largest(old, grown), old), self.most[side])

    def compare(self):
        """The second split may stand here: both leaves' largest gains, where both have their minima."""
        builder = self.builder
        others = [self.slot(self.zero) for _ in range(2)]
        for other in others:
            builder.store(self.zero, other)
        with cgutils.for_range(builder, self.data["actions"]) as loop:
            for side, other in enumerate(others):
                right = builder.load(self.pointer("sums", self.places_of(loop.index, side)[1]), align=4)
                builder.store(self.largest(builder.load(other), right), other)
        values = [builder.add(builder.load(m), builder.load(o)) for m, o in zip(self.most, others, strict=True)]
        for value, other in zip(values, others, strict=True):
            builder.store(value, other)
        with cgutils.for_range(builder, self.data["n_minima"]) as loop:
            slot = builder.add(self.data["actions"], loop.index)
            least = self.splat(self.load("minima", loop.index))
            for side, other in enumerate(others):
                for place in self.places_of(slot, side):
                    count = builder.load(self.pointer("sums", place), align=4)
                    enough = builder.icmp_signed(">=", count, least)
                    builder.store(builder.select(enough, builder.load(other), self.never), other)
        for best, other in zip(self.best, others, strict=True):
            builder.store(self.largest(builder.load(best), builder.load(other)), best)

    def run(self):
        builder = self.builder
        with cgutils.for_range(builder, self.data["count"]) as loop:
            at = builder.add(self.data["at"], loop.index)
            self.add_entry(at)
            then = self.load("then", at)
            with builder.if_then(builder.icmp_unsigned("!=", then, then.type(GO_ON))):
                self.end_run(at)
                with builder.if_then(builder.icmp_unsigned("==", then, then.type(COMPARE))):
                    self.compare()
        for side, best in enumerate(self.best):
            at = self.pointer("best", builder.add(self.data["out_at"], self.const(side)))
            builder.store(self.largest(builder.load(at, align=4), builder.load(best)), at, align=4)


@intrinsic
def pass_over_entries(typingctx, entries, lanes, second, x, n_minima):
    """Largest gain of two leaves by one feature on both sides of each chosen cut: lanes.best[out_at], [out_at + 1].

    lanes.sums begins as zeros, and the totals behind them. ``x[i]`` says which chosen cuts have row i on their left.
    """

    def codegen(context, builder, signature, args):
        code = _PassCode(context, builder, signature.replace(args=signature.args[:-1]), args[:-1])
        code.data["n_minima"] = args[-1]
        code.run()
        return context.get_dummy_value()

    return types.void(entries, lanes, second, x, n_minima), codegen


@kernel
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


@kernel
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
            same = slots[k + 1] == slots[k]
            then[k] = GO_ON if same else NEXT_SLOT
            only = only and same
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
    flat = np.zeros(n * STRIP + 64, like.dtype)
    skip = (-flat.ctypes.data % 64) // flat.itemsize
    return flat[skip : skip + n * STRIP].reshape((n, STRIP))


@kernel(separate=True)
def make_class_strips(rows, rules, rounded, large, wanted):
    """Prepare strips: entries in order, masks, and room for the sums; nothing if they are not ``wanted``."""
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
    vectors, prices = 2 * (K + J), len(rules.prices)
    i32, i16 = np.empty(0, np.int32), np.empty(0, np.int16)
    long = LongLanes(
        vectors_of(a * (STRIP + 1), i32), vectors_of(a * vectors, i32), vectors_of(2 * a * vectors, i32),
        vectors_of(2 * a * prices, i32),
    )  # fmt: skip
    brief = ShortLanes(
        vectors_of(b * (STRIP + 1), i16), vectors_of(b * vectors, i16), vectors_of(2 * b * vectors, i16),
        vectors_of(2 * b * prices, i16),
    )  # fmt: skip
    for j in range(STRIP + 1):
        for e in range(j, STRIP):
            if short:
                brief.masks[j, e] = -1
            else:
                long.masks[j, e] = -1
    return ClassStrips(entries, long, brief, np.zeros((2 * (K + J + 1), STRIP), np.int32))


@kernel(separate=True)
def add_segments(rows, strips, x):
    """Sums of all slots on the left of the chosen cuts, strips.totals[2 s], and on the right, [2 s + 1]."""
    entries, totals = strips.entries, strips.totals
    n_slots = len(totals) // 2
    segments = np.zeros((n_slots, STRIP + 1), np.int64)
    for i in range(rows.n):
        s = np.int64(x[i])
        segments[n_slots - 1, s] += entries.worst[i]
        for k in range(entries.first[i], entries.first[i + 1]):
            segments[np.int64(entries.row_slots[k]), s] += entries.row_amounts[k]
    for k in range(n_slots):
        total = 0
        for s in range(STRIP + 1):
            total += segments[k, s]
        left = 0
        for e in range(STRIP):
            left += segments[k, e]
            totals[2 * k, e] = i4(left)
            totals[2 * k + 1, e] = i4(total - left)


@kernel(separate=True)
def pass_features(f, rows, rules, lanes, entries, totals, x):
    """Pass the entries in the order of every long second feature; gains go to lanes.best by price."""
    bins, groups = rows.bins, rows.groups
    vectors = len(lanes.totals)
    for j in range(vectors):
        for e in range(STRIP):
            lanes.totals[j, e] = totals[j, e]
    for j in range(len(lanes.best)):
        for e in range(STRIP):
            lanes.best[j, e] = -1
    for g in range(len(bins)):
        if g != f and table_pays(bins[f], bins[g], rows.n, False):
            continue
        for j in range(vectors):
            for e in range(STRIP):
                lanes.sums[j, e] = 0
                lanes.sums[vectors + j, e] = lanes.totals[j, e]
        second = Pass(g * entries.count, 2 * groups[g])
        pass_over_entries(entries, lanes, second, x, len(entries.minima))


@kernel(separate=True)
def scan_classes(f, rows, rules, strips, x, splits, at):
    """Best second splits by long features for all chosen cuts of f at once, into ``splits`` from ``at`` on by price.

    ``x[i]`` says which of the chosen cuts have row i on their left.
    """
    entries, totals = strips.entries, strips.totals
    add_segments(rows, strips, x)
    if entries.short != 0:
        pass_features(f, rows, rules, strips.short, entries, totals, x)
    else:
        pass_features(f, rows, rules, strips.long, entries, totals, x)
    worst = len(totals) - 2
    for j in range(len(rules.prices)):
        for e in range(STRIP):
            for side in range(2):
                gain = strips.short.best[2 * j + side, e] if entries.short != 0 else strips.long.best[2 * j + side, e]
                value = i4(2 * FORBIDDEN) if gain < 0 else i4(totals[worst + side, e] - gain)
                if side == 0:
                    splits.low[at + j * STRIP + e] = value
                else:
                    splits.high[at + j * STRIP + e] = value
