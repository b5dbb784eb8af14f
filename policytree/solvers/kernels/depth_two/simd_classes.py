"""One pass over the entries of a feature, for 32 chosen cuts side by side; see class_tiles.py, which prepares it.

Cost: four vector steps for every entry, 2 K more for every code that ends a run.
Written as LLVM instructions, because LLVM does not find these vectors by itself.
Symbols: see base/layout.py and class_tiles.py.
"""

from typing import NamedTuple

from numba import types
from numba.extending import intrinsic

from policytree.solvers.kernels.base.layout import i8, int_1d, int_2d
from policytree.solvers.kernels.depth_two.tiles import TileCode

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


class _PassCode(TileCode):
    """Emits :func:`pass_over_entries`; pairs are of the left and the right of the chosen cuts."""

    def __init__(self, context, builder, signature, args):
        super().__init__(context, builder, signature, args, ("x",), signature.args[1][0].dtype.bitwidth)
        self.zero, self.never = self.splat_const(0), self.splat_const(-1)
        self.most = [self.variable(self.zero) for _ in range(2)]
        self.added = [self.variable(self.zero) for _ in range(2)]
        self.best = [self.variable(self.never) for _ in range(2)]
        self.n_minima = self.shape("minima", 0)
        self.right = self.at((self.at(self["actions"], self.n_minima), 2))  # where sums right of the second cut begin

    def places_of(self, slot, side):
        """Where a slot's sums stand: left of the second cut, and right of it."""
        left = self.at((slot, 2), side)
        return self.nth(left), self.nth(self.at(left, self.right))

    def add_entry(self, at):
        """An entry's amount, on the left and on the right of every chosen cut, to what its run comes to."""
        builder = self.builder
        amount, mask = self.splat(self.number("amounts", at)), self.mask_of(self.number("rows", at), "masks")
        for added, lanes in zip(self.added, (mask, builder.not_(mask)), strict=True):
            self.update(added, builder.add, builder.and_(lanes, amount))

    def end_run(self, at):
        """Move what a run comes to from the right of the second cut to its left."""
        builder = self.builder
        slot = self.number("slots", at)
        is_action = builder.icmp_signed("<", slot, self["actions"])
        for side, added in enumerate(self.added):
            part = self.value(added)
            self.set(added, self.zero)
            left, right = self.places_of(slot, side)
            grown = builder.add(self.load("sums", left), part)
            self.store("sums", left, grown)
            self.store("sums", right, builder.sub(self.load("sums", right), part))
            old = self.value(self.most[side])
            self.set(self.most[side], builder.select(is_action, self.largest(old, grown), old))

    def compare(self):
        """The second split may stand here: both leaves' largest gains, where both have their minima."""
        builder = self.builder
        others = [self.variable(self.zero) for _ in range(2)]
        with self.loop(0, self["actions"]) as k:
            for side, other in enumerate(others):
                self.update(other, self.largest, self.load("sums", self.places_of(k, side)[1]))
        for most, other in zip(self.most, others, strict=True):
            self.update(other, builder.add, self.value(most))
        with self.loop(0, self.n_minima) as k:
            least = self.splat(self.number("minima", k))
            for side, other in enumerate(others):
                for place in self.places_of(self.at(self["actions"], k), side):
                    enough = builder.icmp_signed(">=", self.load("sums", place), least)
                    self.set(other, builder.select(enough, self.value(other), self.never))
        for best, other in zip(self.best, others, strict=True):
            self.update(best, self.largest, self.value(other))

    def run(self):
        builder = self.builder
        with self.loop(0, self["count"]) as k:
            at = self.at(self["at"], k)
            self.add_entry(at)
            then = self.number("then", at)
            with builder.if_then(builder.icmp_unsigned("!=", then, self.const(GO_ON))):
                self.end_run(at)
                with builder.if_then(builder.icmp_unsigned("==", then, self.const(COMPARE))):
                    self.compare()
        for side, best in enumerate(self.best):
            at = self.nth(self.at(self["out_at"], side))
            self.store("best", at, self.largest(self.load("best", at), self.value(best)))


@intrinsic
def pass_over_entries(typingctx, entries, lanes, second, x):
    """Largest gain of two leaves by one feature on both sides of each chosen cut: lanes.best[out_at], [out_at + 1].

    lanes.sums begins as zeros, and the totals behind them. ``x[i]`` says which chosen cuts have row i on their left.
    """

    def codegen(context, builder, signature, args):
        _PassCode(context, builder, signature, args).run()
        return context.get_dummy_value()

    return types.void(entries, lanes, second, x), codegen
