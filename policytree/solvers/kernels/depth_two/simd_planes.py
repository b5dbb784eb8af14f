"""One pass over the rows of a feature, for 32 chosen cuts side by side; see plane_tiles.py, which prepares it.

Cost: three vector steps for every row and plane, nine more for every code and plane.
Written as LLVM instructions, because LLVM does not find these vectors by itself.
Symbols: see base/layout.py and plane_tiles.py.
"""

from typing import NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from policytree.solvers.kernels.base.layout import FORBIDDEN, i8, int_1d, int_2d
from policytree.solvers.kernels.depth_two.tiles import TILE

HALF = TILE // 2  # lanes that are compared at once: four extremes and three operands fit the processor's registers


class PlaneRows(NamedTuple):
    """Rows in the order of every long feature's codes, from f * n on."""

    rows: int_1d
    places: int_1d  # of the cut behind the row, in sums; -1 where no cut stands behind it
    amounts: int_1d  # of all planes, side by side
    n: i8
    losses: i8  # planes of losses; planes of counts follow
    minima: int_1d


class PlaneLanes(NamedTuple):
    """Vectors of TILE lanes, one for every chosen cut of the first feature."""

    masks: int_2d  # (TILE + 1): which cuts have a row on their left
    totals: int_2d  # of every plane: left of the chosen cuts, and behind them right of those
    sums: int_2d  # of every plane: left of the chosen cut and left of the second one
    best: int_2d  # least loss of two leaves, two for every price


class PlanePass(NamedTuple):
    """One second feature: where its rows begin, and where its results go."""

    at: i8
    out_at: i8


class _PlaneCode:
    """Emits :func:`pass_over_planes`."""

    def __init__(self, context, builder, signature, args):
        self.builder, self.data = builder, {}
        arrays = iter(("x", "leaves"))
        for ty, value in zip(signature.args, args, strict=True):
            if not isinstance(ty, types.BaseNamedTuple):
                self.take(context, next(arrays), ty, value)
                continue
            for k, (name, part) in enumerate(zip(ty.fields, ty, strict=True)):
                self.take(context, name, part, builder.extract_value(value, k))
        self.number = ir.IntType(32)
        self.whole, self.half = ir.VectorType(self.number, TILE), ir.VectorType(self.number, HALF)
        zero = ir.Constant(self.half, [0] * HALF)
        self.best = [[self.slot(zero) for _ in range(2)] for _ in range(2)]  # by half, then by side

    def take(self, context, name, ty, value):
        """Keep an argument: a number, or where an array's numbers begin, and how long its rows are."""
        if not isinstance(ty, types.Array):
            self.data[name] = value
            return
        array = context.make_array(ty)(context, self.builder, value)
        self.data[name] = array.data
        self.data["n_" + name] = self.builder.extract_value(array.shape, ty.ndim - 1)

    def slot(self, value):
        at = cgutils.alloca_once(self.builder, value.type)
        self.builder.store(value, at)
        return at

    def load(self, name, index):
        return self.builder.load(self.builder.gep(self.data[name], [index]))

    def pointer(self, name, index, half=None):
        """Where vector ``index`` of an array is, or one half of it."""
        at = self.builder.mul(index, self.const(TILE))
        if half is not None:
            at = self.builder.add(at, self.const(half * HALF))
        kind = self.whole if half is None else self.half
        return self.builder.bitcast(self.builder.gep(self.data[name], [at]), kind.as_pointer())

    def splat(self, scalar, kind):
        undefined = ir.Constant(kind, ir.Undefined)
        first = self.builder.insert_element(undefined, scalar, ir.Constant(self.number, 0))
        places = ir.Constant(ir.VectorType(self.number, kind.count), [0] * kind.count)
        return self.builder.shuffle_vector(first, undefined, places)

    def least(self, a, b):
        return self.builder.select(self.builder.icmp_signed("<", a, b), a, b)

    @staticmethod
    def const(k):
        return ir.Constant(ir.IntType(64), k)

    def planes(self):
        """How many planes there are."""
        return self.builder.add(self.data["losses"], self.data["n_minima"])

    def add_row(self, at):
        """A row's amounts, to the sums of the chosen cuts that have it on their left."""
        builder = self.builder
        row = builder.sext(self.load("rows", at), ir.IntType(64))
        mask = builder.load(self.pointer("masks", builder.zext(self.load("x", row), ir.IntType(64))), align=4)
        first = builder.mul(at, self.planes())
        with cgutils.for_range(builder, self.planes()) as loop:
            amount = self.splat(self.load("amounts", builder.add(first, loop.index)), self.whole)
            to = self.pointer("sums", loop.index)
            builder.store(builder.add(builder.load(to, align=4), builder.and_(mask, amount)), to, align=4)

    def quarters(self, plane, place, half):
        """A plane's sums in the four parts: left and right of the second cut, left of the chosen cuts and then right.

        Right of the chosen cuts are the feature's own sums less those on the left.
        """
        builder = self.builder
        left = builder.load(self.pointer("sums", plane, half), align=4)
        total = builder.load(self.pointer("totals", plane, half), align=4)
        other = builder.load(self.pointer("totals", builder.add(plane, self.planes()), half), align=4)
        own = self.splat(self.load("leaves", builder.add(builder.mul(plane, self.data["n_leaves"]), place)), self.half)
        right = builder.sub(own, left)
        return left, builder.sub(total, left), right, builder.sub(other, right)

    def compare(self, place):
        """The second split may stand here: the least losses of both leaves, where both have their minima."""
        builder = self.builder
        zero, never = (ir.Constant(self.half, [value] * HALF) for value in (0, FORBIDDEN))
        for half in range(2):
            leaves = [self.slot(zero) for _ in range(4)]
            for leaf in leaves:
                builder.store(zero, leaf)
            with cgutils.for_range(builder, self.data["losses"]) as loop:
                for leaf, part in zip(leaves, self.quarters(loop.index, place, half), strict=True):
                    builder.store(self.least(builder.load(leaf), part), leaf)
            with cgutils.for_range(builder, self.data["n_minima"]) as loop:
                least = self.splat(self.load("minima", loop.index), self.half)
                plane = builder.add(self.data["losses"], loop.index)
                for leaf, part in zip(leaves, self.quarters(plane, place, half), strict=True):
                    enough = builder.icmp_signed(">=", part, least)
                    builder.store(builder.select(enough, builder.load(leaf), never), leaf)
            values = [builder.load(leaf) for leaf in leaves]
            for best, first, second in zip(self.best[half], values[::2], values[1::2], strict=True):
                builder.store(self.least(builder.load(best), builder.add(first, second)), best)

    def run(self):
        builder = self.builder
        forbidden = ir.Constant(self.half, [2 * FORBIDDEN] * HALF)
        for best in (*self.best[0], *self.best[1]):
            builder.store(forbidden, best)
        with cgutils.for_range(builder, self.data["n"]) as loop:
            at = builder.add(self.data["at"], loop.index)
            self.add_row(at)
            place = self.load("places", at)
            with builder.if_then(builder.icmp_signed(">=", place, place.type(0))):
                self.compare(builder.sext(place, ir.IntType(64)))
        for half in range(2):
            for side, best in enumerate(self.best[half]):
                to = self.pointer("best", builder.add(self.data["out_at"], self.const(side)), half)
                builder.store(self.least(builder.load(to, align=4), builder.load(best)), to, align=4)


@intrinsic
def pass_over_planes(typingctx, sorted_rows, lanes, second, x, leaves):
    """Least loss of two leaves by one feature on both sides of each chosen cut: lanes.best[out_at], [out_at + 1].

    lanes.sums begins as zeros. ``x[i]`` says which chosen cuts have row i on their left; ``leaves[k, place]`` are plane
    k's sums up to every place of every feature (:class:`~policytree.solvers.kernels.base.layout.Sums`).
    """

    def codegen(context, builder, signature, args):
        _PlaneCode(context, builder, signature, args).run()
        return context.get_dummy_value()

    return types.void(sorted_rows, lanes, second, x, leaves), codegen
