"""The tables of one pair for sixteen root cuts at once, where every leaf needs so many rows.

As in lane_code.py, with two vectors for every cell: x, the cumulated sum of losses, and c, how many rows that counts.
Inside a first cut, two cuts that cross make four leaves of losses x, b = low - x, y = margin - x and z = high - y
(low, high: sums of the first cut's sides; margin: of the other cut's lower side). A second split of the lower side
leaves two of them:

    best second split inside {f <= t} = min(x, b), least of all u for which both leaves have their minimum

The value of one leaf in place of two, min(0, low), is left out, and forbidden cells count 0: a side that is split costs
one leaf more, so neither is ever less than that side as one leaf.

Of two leaves that share s rows, both have their minimum m if one has m to s - m. That is one comparison for each of the
four pairs of leaves: numbers are shifted so that less than m wraps around to the largest numbers. The left and the
right side of the root cut stand in one wide vector.

Cost: 19 vector steps for every cell and side, two to three times as much as without counts.
Symbols: as in lane_code.py; x, b, y and z name leaves. *Own* is the growing side, the first half of wide vectors.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from policytree.solvers.kernels.lane_code import LaneCode

LOSSES, COUNTS = 0, 1  # planes
# Where vectors begin among those of a column in scratch.run, and how many a column has. All but the first are wide:
# the row before (x, c), the column's best values (low and high side), margins of x, and those of c: shifted, and the
# largest counts of its low and high side.
BEFORE, BEST, MARGINS, COLUMN = 0, 2, 6, 14


class _CountedCode(LaneCode):
    """What rows and columns share."""

    def __init__(self, context, builder, signature, args, names):
        super().__init__(context, builder, signature, args, names)
        self.wide = ir.VectorType(self.number, 2 * self.lanes)
        self.none = ir.Constant(self.wide, [0] * 2 * self.lanes)
        lowest = ir.Constant(self.vector, [-(1 << (self.number.width - 1))] * self.lanes)
        minimum, too_few = self.spread(self.data["minimum"]), self.spread(self.minus_one("minimum"))
        self.minimum, self.too_few = self.join(minimum, minimum), self.join(too_few, too_few)
        self.lowest = self.join(lowest, lowest)

    def join(self, own, other):
        """Make one wide vector of both sides."""
        return self.builder.shuffle_vector(own, other, self.numbers(0, 2 * self.lanes))

    def halves(self, both):
        """Return the two sides of a wide vector."""
        of_side = (self.numbers(side * self.lanes, self.lanes) for side in range(2))
        return [self.builder.shuffle_vector(both, both, part) for part in of_side]

    @staticmethod
    def numbers(first, n):
        """Return the numbers from ``first`` on."""
        return ir.Constant(ir.VectorType(ir.IntType(32), n), list(range(first, first + n)))

    def of_column(self, u, k):
        """Return where the vector ``k`` of column ``u`` begins."""
        return self.plus(self.builder.mul(u, self.const(COLUMN * self.lanes)), k * self.lanes)

    def wide_pointer(self, u, k):
        """Return where the wide vector ``k`` of column ``u`` begins."""
        return self.builder.bitcast(self.pointer("run", self.of_column(u, k)), self.wide.as_pointer())

    def shifted(self, counts):
        """Counts less the minimum, so that comparisons see negative ones as the largest."""
        return self.builder.add(self.builder.sub(counts, self.minimum), self.lowest)

    def window(self, counts):
        """How many counts of a leaf there are that leave both their minimum, shifted alike."""
        sub = self.builder.sub
        most = sub(self.largest(sub(counts, self.minimum), self.too_few), self.too_few)
        return self.builder.add(most, self.lowest)

    def keep(self, feature, place, low_and_high):
        """Note the values of a cut."""
        for name, value in zip(("low", "high"), low_and_high, strict=True):
            for side, part in zip(("own", "other"), self.halves(value), strict=True):
                first = self.data[f"{feature}_{side}"]
                at = self.builder.mul(self.builder.add(first, place), self.const(self.lanes))
                self.store(name, at, self.least(self.load(name, at), part))


class _CountedRows(_CountedCode):
    """One pass over ``rows`` rows of a pair's tables for all root cuts at once; see :func:`_counted_rows`."""

    def __init__(self, context, builder, signature, args, rows):
        super().__init__(context, builder, signature, args, ("totals", "all_losses", "all_counts", "t", "minimum"))
        self.rows = rows
        t = self.data["t"]
        self.h_at = builder.mul(t, self.width)
        self.total_at = builder.add(self.data["at"], builder.mul(t, self.data["W"]))
        self.sums = [self.slots(2) for _ in range(rows)]
        self.best = [self.slots(2, self.none) for _ in range(rows)]
        ends = [self.join(*self.ends(plane)) for plane in (LOSSES, COUNTS)]
        self.sides = [self.sides_of_row(r, ends) for r in range(rows)]

    def sides_of_row(self, r, ends):
        """Sums of losses up to row ``r`` and beyond it; of counts, those up to it shifted, and the windows of both."""
        sub = self.builder.sub
        place = self.plus(self.builder.add(self.data["f_sums"], self.data["t"]), r)
        low, high = [], []
        for plane, name in enumerate(("all_losses", "all_counts")):
            own = self.load("one", self.plus(self.builder.mul(place, self.place), plane * self.lanes))
            low.append(self.join(own, sub(self.splat(name, place), own)))
            high.append(sub(ends[plane], low[plane]))
        counts = self.shifted(low[COUNTS]), self.window(low[COUNTS]), self.window(high[COUNTS])
        return low[LOSSES], high[LOSSES], *counts

    def cell(self, r, u, plane, above):
        """Cumulated own cell of row ``r`` given the one above, and both sides of it."""
        builder = self.builder
        row, column = builder.mul(self.width, self.const(r)), builder.mul(u, self.place)
        at = self.plus(builder.add(builder.add(self.h_at, row), column), plane * self.lanes)
        h = self.load("H", at)
        self.store("H", at, self.zero)
        slot = self.sums[r][plane]
        builder.store(builder.add(builder.load(slot), h), slot)
        own = builder.add(above, builder.load(slot))
        at = builder.add(builder.add(self.total_at, builder.mul(self.data["W"], self.const(r))), u)
        return own, self.join(own, builder.sub(self.total(at, plane), own))

    def splits(self, x, c, margins, sides):
        """Values of one cell's second splits: of the row's low and high side, and of the column's."""
        builder = self.builder
        low, high, low_counts, in_low, in_high = sides
        margin, margin_counts, in_margin, in_rest = margins
        b, y = builder.sub(low, x), builder.sub(margin, x)
        z = builder.sub(high, y)
        count_b, count_y = builder.sub(low_counts, c), builder.sub(margin_counts, c)
        return [
            builder.select(builder.icmp_signed("<", count, window), self.least(v, w), self.none)
            for count, window, v, w in (
                (count_b, in_low, x, b), (count_y, in_high, y, z), (count_y, in_margin, x, y), (count_b, in_rest, b, z),
            )
        ]  # fmt: skip

    def column(self, u):
        """All rows of column ``u``."""
        builder = self.builder
        above = [self.load("run", self.of_column(u, BEFORE + plane)) for plane in (LOSSES, COUNTS)]
        places = [self.wide_pointer(u, k) for k in range(BEST, COLUMN, 2)]
        low, high, *margins = (builder.load(place, align=4) for place in places)
        for r in range(self.rows):
            cells = [self.cell(r, u, plane, above[plane]) for plane in (LOSSES, COUNTS)]
            above = [own for own, _ in cells]
            *of_row, of_low, of_high = self.splits(*(both for _, both in cells), margins, self.sides[r])
            for slot, value in zip(self.best[r], of_row, strict=True):
                builder.store(self.least(builder.load(slot), value), slot)
            low, high = self.least(low, of_low), self.least(high, of_high)
        for plane in (LOSSES, COUNTS):
            self.store("run", self.of_column(u, BEFORE + plane), above[plane])
        for place, value in zip(places, (low, high), strict=False):
            builder.store(value, place, align=4)

    def finish(self):
        """Note the best values of the rows themselves."""
        for r in range(self.rows):
            self.keep("f", self.plus(self.data["t"], r), map(self.builder.load, self.best[r]))


class _CountedColumns(_CountedCode):
    """What stands in scratch.run before and after the rows."""

    def __init__(self, context, builder, signature, args):
        super().__init__(context, builder, signature, args, ("totals", "minimum"))
        self.all_rows = self.join(*self.ends(COUNTS))

    def begin(self, u):
        """Put the margins of column ``u`` in place, and zeros."""
        for k in range(BEFORE, MARGINS):
            self.store("run", self.of_column(u, k), self.zero)
        losses, counts = (self.join(*self.margins(u, plane)) for plane in (LOSSES, COUNTS))
        rest = self.builder.sub(self.all_rows, counts)
        values = losses, self.shifted(counts), self.window(counts), self.window(rest)
        for k, value in zip(range(MARGINS, COLUMN, 2), values, strict=True):
            self.builder.store(value, self.wide_pointer(u, k), align=4)

    def end(self, u):
        """Note the best values of column ``u``."""
        self.keep("g", u, [self.builder.load(self.wide_pointer(u, k), align=4) for k in range(BEST, MARGINS, 2)])


def _counted_rows(rows):
    """Build the intrinsic that does ``rows`` rows of one pair's tables, from row t on, for all root cuts at once.

    Arrays are those of :func:`lane_code._lane_rows` with two planes, but for scratch.run. ``minimum`` is at least 1 and
    fits the type of the sums.
    """

    def typed(typingctx, scratch, pair, totals, all_losses, all_counts, t, minimum):
        signature = types.void(scratch, pair, totals, all_losses, all_counts, types.int64, minimum)

        def codegen(context, builder, signature, args):
            code = _CountedRows(context, builder, signature, args, rows)
            with cgutils.for_range(builder, code.data["W"]) as loop:
                code.column(loop.index)
            code.finish()
            return context.get_dummy_value()

        return signature, codegen

    return intrinsic(typed)


def _counted_columns(step):
    """Build the intrinsic that does one step of :class:`_CountedColumns` for all columns."""

    def typed(typingctx, scratch, pair, totals, minimum):
        def codegen(context, builder, signature, args):
            code = _CountedColumns(context, builder, signature, args)
            with cgutils.for_range(builder, code.data["W"]) as loop:
                getattr(code, step)(loop.index)
            return context.get_dummy_value()

        return types.void(scratch, pair, totals, minimum), codegen

    return intrinsic(typed)


counted_one, counted_two = _counted_rows(1), _counted_rows(2)
begin_counted, end_counted = _counted_columns("begin"), _counted_columns("end")
