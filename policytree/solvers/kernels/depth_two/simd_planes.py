"""One pass over the rows of a feature, for 32 chosen cuts side by side; see plane_tiles.py, which prepares it.

Cost: one step for every row, and for every run of blocks some forty for every plane; in runs that may be better, three
vector steps for every row and plane, nine more for every block and plane, and for every code of blocks that may be.
Written as LLVM instructions, because LLVM does not find these vectors by itself.
Symbols: see base/layout.py and plane_tiles.py.
"""

from typing import NamedTuple

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from policytree.solvers.kernels.base.layout import FORBIDDEN, i8, int_1d, int_2d, long_1d
from policytree.solvers.kernels.depth_two.tiles import TILE, TileCode

RUN = 16  # blocks that are added up at once, by segments
LEAST_RUN = 64  # rows of a run for which that pays
PARTS = 8  # amounts of a row that are added in one go
HALF = TILE // 2  # lanes that are compared at once: four extremes and three operands fit the processor's registers


class PlaneRows(NamedTuple):
    """Rows in the order of every long feature's codes, from f * n on."""

    rows: int_1d
    places: int_1d  # of the cut behind the row, in sums; -1 where no cut stands behind it
    amounts: int_1d  # of all planes, side by side, and what the row loses at least
    ends: int_1d  # of blocks, from f * n on
    least: int_1d  # what the rows of a block lose at least (never more than 0); 1 where its last row has its only cut
    blocks: long_1d  # how many every feature has
    losses: i8  # planes of losses; planes of counts follow
    minima: int_1d


class PlaneLanes(NamedTuple):
    """Vectors of TILE lanes, one for every chosen cut of the first feature."""

    masks: int_2d  # (TILE + 1): which cuts have a row on their left
    totals: int_2d  # of every plane: left of the chosen cuts, and behind them right of those
    sums: int_2d  # of every plane: left of the chosen cut and left of the second one; then what a block loses at least
    before: int_2d  # the same where a block begins
    best: int_2d  # least loss of two leaves, left of the chosen cuts and right of them
    origin: int_2d  # the sums where a run of blocks begins
    segments: int_1d  # amounts of a run's rows by segment: PARTS numbers for so many planes, TILE + 1 times


class PlanePass(NamedTuple):
    """One second feature: where its rows begin, and how many blocks they have."""

    at: i8
    n_blocks: i8


class _PlaneCode(TileCode):
    """Emits :func:`pass_over_planes`."""

    def __init__(self, context, builder, signature, args):
        super().__init__(context, builder, signature, args, ("x", "leaves"))
        self.half = ir.VectorType(self.vector.element, HALF)
        self.zero, self.never = (self.splat_const(value, self.half) for value in (0, FORBIDDEN))
        self.best = [[self.variable(self.known(half, side)) for side in range(2)] for half in range(2)]
        # The best leaves left of the second cut where a block begins, without minima.
        self.left = [[self.variable(self.zero) for _ in range(2)] for _ in range(2)]
        self.near = self.variable(ir.Constant(ir.IntType(1), 0))  # whether a block of the last run was open
        self.n_minima = self.shape("minima", 0)
        self.planes = self.at(self["losses"], self.n_minima)
        self.width = self.at(self.planes, 1)

    def half_of(self, name, k, half):
        """One half of the k-th vector of an array."""
        return self.load(name, self.nth(k, half * HALF), self.half)

    def known(self, half, side):
        """The best values that passes before this one left behind."""
        return self.half_of("best", self.const(side), half)

    def add_row(self, at):
        """A row's amounts, to the sums of the chosen cuts that have it on their left."""
        mask = self.mask_of(self.number("rows", at), "masks")
        first = self.builder.mul(at, self.width)
        with self.loop(0, self.planes) as plane:
            amount, to = self.splat(self.number("amounts", self.at(first, plane))), self.nth(plane)
            self.store("sums", to, self.builder.add(self.load("sums", to), self.builder.and_(mask, amount)))

    def add_block(self, first, end):
        """The rows of a block, plane by plane; sums of planes are kept as they were before it."""
        builder = self.builder
        self.store("sums", self.nth(self.planes), self.splat_const(0))
        with self.loop(0, self.width) as plane:
            to = self.nth(plane)
            total = self.load("sums", to)
            self.store("before", to, total)
            total = self.variable(total)
            with self.loop(first, end) as at:
                mask = self.mask_of(self.natural("rows", at), "masks")
                amount = self.splat(self.number("amounts", self.at((at, self.width), plane)))
                self.update(total, builder.add, builder.and_(mask, amount))
            self.store("sums", to, self.value(total))

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

    def compare(self, place, half):
        """The second split may stand here: the least losses of both leaves, where both have their minima.

        Returns the four leaves without minima.
        """
        builder = self.builder
        leaves = [self.variable(self.zero) for _ in range(4)]
        with self.loop(0, self["losses"]) as plane:
            for leaf, part in zip(leaves, self.quarters(plane, place, half), strict=True):
                self.update(leaf, self.least, part)
        free = [self.value(leaf) for leaf in leaves]
        with self.loop(0, self.n_minima) as k:
            least = self.splat(self.number("minima", k), self.half)
            for leaf, part in zip(leaves, self.quarters(self.at(self["losses"], k), place, half), strict=True):
                enough = builder.icmp_signed(">=", part, least)
                self.set(leaf, builder.select(enough, self.value(leaf), self.never))
        values = [self.value(leaf) for leaf in leaves]
        for best, first, second in zip(self.best[half], values[::2], values[1::2], strict=True):
            self.update(best, self.least, builder.add(first, second))
        return free

    def end_block(self, place, least):
        """Compare at a block's last cut; returns whether a cut within the block may be better, in some lane.

        Left of such a cut are the rows before the block, right of it those behind the block, and its own rows lose
        what they must.
        """
        add, all_rows = self.builder.add, self.splat(least, self.half)
        better = []
        for half in range(2):
            left, right, other_left, other_right = self.compare(place, half)
            lost = self.half_of("sums", self.planes, half)
            parts = ((left, right, lost), (other_left, other_right, self.builder.sub(all_rows, lost)))
            for before, best, (now, behind, own) in zip(self.left[half], self.best[half], parts, strict=True):
                bound = add(add(self.value(before), behind), own)
                better.append(self.builder.icmp_signed("<", bound, self.value(best)))
                self.set(before, now)
        lanes = self.builder.or_(self.builder.or_(*better[:2]), self.builder.or_(*better[2:]))
        bits = self.builder.bitcast(lanes, ir.IntType(HALF))
        return self.builder.icmp_unsigned("!=", bits, bits.type(0))

    def compare_within(self, first, end):
        """Pass the rows of a block once more, and compare at every cut."""
        with self.loop(0, self.planes) as plane:
            self.store("sums", self.nth(plane), self.load("before", self.nth(plane)))
        with self.loop(first, end) as at:
            self.add_row(at)
            place = self.number("places", at)
            with self.builder.if_then(self.builder.icmp_signed(">=", place, self.const(0))):
                for half in range(2):
                    self.compare(place, half)

    def add_run(self, first, end):
        """The rows of a run of blocks, by segment, then to the sums; returns what all its rows lose at least.

        Row i adds to the segment x[i] only, whatever the number of chosen cuts; sums of segments up to e are what cut e
        has on its left.
        """
        builder, kind = self.builder, ir.VectorType(ir.IntType(32), PARTS)
        parts = builder.sdiv(self.at(self.width, PARTS - 1), self.const(PARTS))
        stride = builder.mul(parts, self.const(PARTS))
        with self.loop(0, builder.mul(parts, self.const(TILE + 1))) as k:
            self.store("segments", self.at((k, PARTS)), self.splat_const(0, kind))
        with self.loop(0, parts) as part:
            with self.loop(first, end) as at:
                to = self.at((self.natural("x", self.natural("rows", at)), stride), (part, PARTS))
                amounts = self.load("amounts", self.at((at, self.width), (part, PARTS)), kind)
                self.store("segments", to, builder.add(self.load("segments", to, kind), amounts))
            total = self.variable(self.splat_const(0, kind))
            with self.loop(0, self.const(TILE + 1)) as e:
                to = self.at((e, stride), (part, PARTS))
                self.update(total, builder.add, self.load("segments", to, kind))
                self.store("segments", to, self.value(total))
        self.store("sums", self.nth(self.planes), self.splat_const(0))
        with self.loop(0, self.width) as plane:
            self.store("origin", self.nth(plane), self.load("sums", self.nth(plane)))
            with self.loop(0, self.const(TILE)) as e:
                to = self.at((plane, TILE), e)
                total = builder.add(self.number("sums", to), self.number("segments", self.at((e, stride), plane)))
                self.put_number("sums", to, builder.trunc(total, ir.IntType(32)))
        return self.number("segments", self.at((TILE, stride), self.planes))

    def run_is_open(self, first, end):
        """Add up a run of blocks and compare at its end; returns whether a cut within it may be better.

        Then everything stands as it did before the run. Behind a run with an open block, that is taken for granted.
        """
        builder = self.builder
        slots = [slot for half in self.left for slot in half]
        before = [self.value(slot) for slot in slots]
        is_open = self.variable(ir.Constant(ir.IntType(1), 1))
        pays = builder.icmp_signed(">=", builder.sub(end, first), self.const(LEAST_RUN))
        with builder.if_then(builder.and_(pays, builder.not_(self.value(self.near)))):
            least = self.add_run(first, end)
            self.set(is_open, self.end_block(self.number("places", self.at(end, -1)), least))
            with builder.if_then(self.value(is_open)):
                for slot, value in zip(slots, before, strict=True):
                    self.set(slot, value)
                with self.loop(0, self.planes) as plane:
                    self.store("sums", self.nth(plane), self.load("origin", self.nth(plane)))
        return self.value(is_open)

    def pass_blocks(self, first_block, end_block, first):
        """Pass the blocks of a run, whose rows begin at ``first``, one by one."""
        builder = self.builder
        start = self.variable(first)
        self.set(start, first)
        self.set(self.near, ir.Constant(ir.IntType(1), 0))
        with self.loop(first_block, end_block) as block:
            k = self.at(self["at"], block)
            first, end = self.value(start), self.at(self["at"], self.number("ends", k))
            least = self.number("least", k)
            self.add_block(first, end)
            better = self.end_block(self.number("places", self.at(end, -1)), least)
            self.update(self.near, builder.or_, better)
            divided = builder.icmp_signed("<=", least, self.const(0))
            with builder.if_then(builder.and_(divided, better)):
                self.compare_within(first, end)
            self.set(start, end)

    def emit(self):
        builder = self.builder
        start = self.variable(self["at"])
        runs = builder.sdiv(self.at(self["n_blocks"], RUN - 1), self.const(RUN))
        with self.loop(0, runs) as k:
            first_block = self.at((k, RUN))
            last = self.at(first_block, RUN)
            short = builder.icmp_signed("<", self["n_blocks"], last)
            end_block = builder.select(short, self["n_blocks"], last)
            first, end = self.value(start), self.at(self["at"], self.number("ends", self.at(self["at"], end_block, -1)))
            with builder.if_then(self.run_is_open(first, end)):
                self.pass_blocks(first_block, end_block, first)
            self.set(start, end)
        for half in range(2):
            for side, best in enumerate(self.best[half]):
                self.store("best", self.nth(self.const(side), half * HALF), self.value(best))


@intrinsic
def pass_over_planes(typingctx, sorted_rows, lanes, second, x, leaves):
    """Least loss of two leaves by one feature on both sides of each chosen cut: lanes.best[0], [1].

    Losses that are there already are improved.

    lanes.sums begins as zeros. ``x[i]`` says which chosen cuts have row i on their left; ``leaves[k, place]`` are plane
    k's sums up to every place of every feature (:class:`~policytree.solvers.kernels.base.layout.Sums`).
    """

    def codegen(context, builder, signature, args):
        _PlaneCode(context, builder, signature, args).emit()
        return context.get_dummy_value()

    return types.void(sorted_rows, lanes, second, x, leaves), codegen
