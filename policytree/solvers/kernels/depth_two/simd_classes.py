"""One pass over the entries of a feature, for 32 chosen cuts side by side; see class_tiles.py, which prepares it.

Sums are compared only where a lane may beat its best. Gains right of the second cut only fall from one comparison to
the next, so until an action gains more on its left than the best less the largest gain on its right was then (the
lane's *threshold*), no comparison can bring anything. Best gains go from one second feature to the next, so that a
feature of little use is passed with few comparisons.

Cost: four vector steps for every entry, 6 K for every comparison.
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
# After an entry: another one that no second cut of use separates from it, or a place where the second cut may stand.
GO_ON, COMPARE = 0, 1


class Entries(NamedTuple):
    """Amounts that rows add to the slots, in the order of every long feature's codes, from f * entries on."""

    rows: int_1d
    slots: types.uint8[::1]
    amounts: int_1d
    then: types.uint8[::1]  # what follows an entry: GO_ON, COMPARE
    first: int_1d  # of every row's, in the order of rows
    row_slots: types.uint8[::1]  # in the order of rows
    row_amounts: int_1d
    worst: int_1d  # what every row loses under its worst action
    count: i8
    actions: i8
    short: i8  # whether sums fit int16
    minima: int_1d


class LongLanes(NamedTuple):
    """Vectors of TILE lanes, one for every chosen cut."""

    masks: int_2d  # (TILE + 1): which cuts have a row on their left
    totals: int_2d  # two for every slot: of the rows on the left and on the right of the chosen cuts
    sums: int_2d  # two for every slot, left of the second cut
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
        self.context, self.builder, self.data = context, builder, {}
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
        self.best = [self.slot(self.never) for _ in range(2)]
        self.threshold = [self.slot(self.never) for _ in range(2)]
        self.due = self.slot(ir.Constant(ir.IntType(1), 0))  # whether some lane may beat its best

    def take(self, context, name, ty, value):
        """Keep an argument: a number, or where an array's numbers begin."""
        is_array = isinstance(ty, types.Array)
        self.data[name] = context.make_array(ty)(context, self.builder, value).data if is_array else value

    def slot(self, value):
        at = cgutils.alloca_once(self.builder, value.type)
        self.builder.store(value, at)
        return at

    def load(self, name, index):
        return self.builder.load(self.builder.gep(self.data[name], [index]))

    def pointer(self, name, index):
        """Where vector ``index`` of an array is."""
        at = self.builder.mul(index, self.const(TILE))
        return self.builder.bitcast(self.builder.gep(self.data[name], [at]), self.vector.as_pointer())

    def vector_at(self, name, index):
        return self.builder.load(self.pointer(name, index), align=4)

    def splat(self, number):
        undefined = ir.Constant(self.vector, ir.Undefined)
        first = self.builder.insert_element(undefined, number, ir.Constant(ir.IntType(32), 0))
        return self.builder.shuffle_vector(first, undefined, self.places)

    def as_number(self, scalar):
        return scalar if scalar.type == self.number else self.builder.trunc(scalar, self.number)

    def largest(self, a, b):
        return self.builder.select(self.builder.icmp_signed(">", a, b), a, b)

    @staticmethod
    def const(k):
        return ir.Constant(ir.IntType(64), k)

    def any(self, lanes):
        """Whether some lane of some vectors of conditions is true."""
        either = self.builder.or_(*lanes)
        bits = self.builder.bitcast(either, ir.IntType(TILE))
        return self.builder.icmp_unsigned("!=", bits, bits.type(0))

    def add_entry(self, at):
        """Move an entry's amount to the left of the second cut."""
        builder = self.builder
        row = builder.sext(self.load("rows", at), ir.IntType(64))
        place = builder.mul(builder.zext(self.load("slots", at), ir.IntType(64)), self.const(2))
        amount = self.splat(self.as_number(self.load("amounts", at)))
        mask = self.vector_at("masks", builder.zext(self.load("x", row), ir.IntType(64)))
        beyond = []
        for side, threshold in enumerate(self.threshold):
            to = self.pointer("sums", builder.add(place, self.const(side)))
            part = builder.and_(mask if side == 0 else builder.not_(mask), amount)
            grown = builder.add(builder.load(to, align=4), part)
            builder.store(grown, to, align=4)
            beyond.append(builder.icmp_signed(">", grown, builder.load(threshold)))
        builder.store(builder.or_(builder.load(self.due), self.any(beyond)), self.due)

    def parts(self, slot, side):
        """A slot's sums on one side of the chosen cuts: left and right of the second cut."""
        at = self.builder.add(self.builder.mul(slot, self.const(2)), self.const(side))
        left = self.vector_at("sums", at)
        return left, self.builder.sub(self.vector_at("totals", at), left)

    def compare(self):
        """The second split may stand here: both leaves' largest gains, where both have their minima."""
        builder = self.builder
        left_over = []
        for side, (best, threshold) in enumerate(zip(self.best, self.threshold, strict=True)):
            leaves = [self.slot(self.zero) for _ in range(2)]
            for leaf in leaves:
                builder.store(self.zero, leaf)
            with cgutils.for_range(builder, self.data["actions"]) as loop:
                for leaf, part in zip(leaves, self.parts(loop.index, side), strict=True):
                    builder.store(self.largest(builder.load(leaf), part), leaf)
            left, right = (builder.load(leaf) for leaf in leaves)
            gain = builder.add(left, right)
            allowed = self.slot(gain)
            builder.store(gain, allowed)
            with cgutils.for_range(builder, self.data["n_minima"]) as loop:
                least = self.splat(self.as_number(self.load("minima", loop.index)))
                for count in self.parts(builder.add(self.data["actions"], loop.index), side):
                    enough = builder.icmp_signed(">=", count, least)
                    builder.store(builder.select(enough, builder.load(allowed), self.never), allowed)
            most = self.largest(builder.load(best), builder.load(allowed))
            builder.store(most, best)
            builder.store(builder.sub(most, right), threshold)
            left_over.append(builder.icmp_signed(">", gain, most))
        # Where a leaf lacks its minimum, a count may allow at the next place what no gain announces.
        builder.store(self.any(left_over), self.due)

    def emit(self):
        builder = self.builder
        targets = [self.pointer("best", builder.add(self.data["out_at"], self.const(side))) for side in range(2)]
        for best, threshold, at in zip(self.best, self.threshold, targets, strict=True):
            builder.store(builder.load(at, align=4), best)
            builder.store(self.never, threshold)
        builder.store(ir.Constant(ir.IntType(1), 0), self.due)
        with cgutils.for_range(builder, self.data["count"]) as loop:
            at = builder.add(self.data["at"], loop.index)
            self.add_entry(at)
            then = self.load("then", at)
            stands = builder.icmp_unsigned("!=", then, then.type(GO_ON))
            with builder.if_then(builder.and_(stands, builder.load(self.due)), likely=False):
                self.compare()
        for best, at in zip(self.best, targets, strict=True):
            builder.store(builder.load(best), at, align=4)


@intrinsic
def pass_over_entries(typingctx, entries, lanes, second, x, n_minima):
    """Largest gain of two leaves by one feature on both sides of each chosen cut: lanes.best[out_at], [out_at + 1].

    lanes.best holds what is known, -1 if nothing is; lanes.sums begins as zeros. ``x[i]`` says which chosen cuts have
    row i on their left.
    """

    def codegen(context, builder, signature, args):
        code = _PassCode(context, builder, signature.replace(args=signature.args[:-1]), args[:-1])
        code.data["n_minima"] = args[-1]
        code.emit()
        return context.get_dummy_value()

    return types.void(entries, lanes, second, x, n_minima), codegen
