"""One pass over the rows of a feature, for 32 chosen cuts side by side; see plane_tiles.py, which prepares it.

Cost: three vector steps for every row and plane, nine more for every code and plane.
Written as LLVM instructions, because LLVM does not find these vectors by itself.
Symbols: see base/layout.py and plane_tiles.py.
"""

from typing import NamedTuple

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from policytree.solvers.kernels.base.layout import FORBIDDEN, i8, int_1d, int_2d
from policytree.solvers.kernels.depth_two.tiles import TILE, TileCode

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


class _PlaneCode(TileCode):
    """Emits :func:`pass_over_planes`."""

    def __init__(self, context, builder, signature, args):
        super().__init__(context, builder, signature, args, ("x", "leaves"))
        self.half = ir.VectorType(self.vector.element, HALF)
        forbidden = self.splat_const(2 * FORBIDDEN, self.half)
        self.best = [[self.variable(forbidden) for _ in range(2)] for _ in range(2)]  # by half, then by side
        self.n_minima = self.shape("minima", 0)
        self.planes = self.at(self["losses"], self.n_minima)

    def half_of(self, name, k, half):
        """One half of the k-th vector of an array."""
        return self.load(name, self.nth(k, half * HALF), self.half)

    def add_row(self, at):
        """A row's amounts, to the sums of the chosen cuts that have it on their left."""
        mask = self.mask_of(self.number("rows", at), "masks")
        first = self.builder.mul(at, self.planes)
        with self.loop(0, self.planes) as plane:
            amount, to = self.splat(self.number("amounts", self.at(first, plane))), self.nth(plane)
            self.store("sums", to, self.builder.add(self.load("sums", to), self.builder.and_(mask, amount)))

    def quarters(self, plane, place, half):
        """A plane's sums in the four parts: left and right of the second cut, left of the chosen cuts and then right.

        Right of the chosen cuts are the feature's own sums less those on the left.
        """
        sub = self.builder.sub
        left, total = (self.half_of(name, plane, half) for name in ("sums", "totals"))
        other = self.half_of("totals", self.at(plane, self.planes), half)
        own = self.splat(self.number("leaves", self.at((plane, self.shape("leaves", 1)), place)), self.half)
        right = sub(own, left)
        return left, sub(total, left), right, sub(other, right)

    def compare(self, place):
        """The second split may stand here: the least losses of both leaves, where both have their minima."""
        builder = self.builder
        zero, never = (self.splat_const(value, self.half) for value in (0, FORBIDDEN))
        for half in range(2):
            leaves = [self.variable(zero) for _ in range(4)]
            with self.loop(0, self["losses"]) as plane:
                for leaf, part in zip(leaves, self.quarters(plane, place, half), strict=True):
                    self.update(leaf, self.least, part)
            with self.loop(0, self.n_minima) as k:
                least = self.splat(self.number("minima", k), self.half)
                for leaf, part in zip(leaves, self.quarters(self.at(self["losses"], k), place, half), strict=True):
                    enough = builder.icmp_signed(">=", part, least)
                    self.set(leaf, builder.select(enough, self.value(leaf), never))
            values = [self.value(leaf) for leaf in leaves]
            for best, first, second in zip(self.best[half], values[::2], values[1::2], strict=True):
                self.update(best, self.least, builder.add(first, second))

    def run(self):
        builder = self.builder
        with self.loop(0, self["n"]) as k:
            at = self.at(self["at"], k)
            self.add_row(at)
            place = self.number("places", at)
            with builder.if_then(builder.icmp_signed(">=", place, self.const(0))):
                self.compare(place)
        for half in range(2):
            for side, best in enumerate(self.best[half]):
                k = self.at(self["out_at"], side)
                value = self.least(self.half_of("best", k, half), self.value(best))
                self.store("best", self.nth(k, half * HALF), value)


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
