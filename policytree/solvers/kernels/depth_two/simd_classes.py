"""One pass over the entries of a feature, for 32 chosen cuts side by side; see class_tiles.py, which prepares it.

Cost: four vector steps for every entry, 2 K more for every code that ends a run.
Written as LLVM instructions, because LLVM does not find these vectors by itself.
Symbols: see base/layout.py and class_tiles.py.
"""

from typing import NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from policytree.solvers.kernels.base.layout import i8, int_1d, int_2d
from policytree.solvers.kernels.depth_two.tiles import TILE

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
        self.vector = ir.VectorType(self.number, TILE)
        self.zero = ir.Constant(self.vector, [0] * TILE)
        self.never = ir.Constant(self.vector, [-1] * TILE)
        self.places = ir.Constant(ir.VectorType(ir.IntType(32), TILE), [0] * TILE)
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
        at = self.builder.mul(index, ir.Constant(ir.IntType(64), TILE))
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
