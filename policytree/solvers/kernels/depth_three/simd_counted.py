"""The tables of one pair for sixteen root cuts at once, where every leaf needs so many rows.

As in simd_tables.py, with two vectors for every cell: x, the cumulated sum of losses, and c, how many rows that counts.
Inside a first cut, two cuts that cross make four leaves of losses x, b = low - x, y = margin - x and z = high - y
(low, high: sums of the first cut's sides; margin: of the other cut's lower side). A second split of the lower side
leaves two of them:

    best second split inside {f <= t} = min(x, b), least of all u for which both leaves have their minimum

The value of one leaf instead of two, min(0, low), is left out, and forbidden cells count 0: a side that is split costs
one leaf more, so neither is ever less than that side as one leaf.

Of two leaves that share s rows, both have their minimum m if one has m to s - m. This takes one comparison for each of
the four pairs of leaves: numbers are shifted so that less than m wraps around to the largest numbers.

Cost: 19 vector steps for every cell and side, two to three times as much as without counts.
Symbols: as in simd_tables.py; x, b, y and z name leaves. *Own* is the growing side.
"""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from policytree.solvers.kernels.depth_three.simd_tables import LaneCode, for_each_column

LOSSES, COUNTS = 0, 1  # planes
# Where vectors begin among those of a column in scratch.running, and how many it has: the row before (x, c); then,
# of both sides each, the column's best values (low and high) and its margins (x, c).
BEFORE, BEST, MARGINS, COLUMN = 0, 2, 6, 10


class _CountedCode(LaneCode):
    """Code for rows and columns alike. Both sides of a root cut are a list: one vector where it fits, else two."""

    def __init__(self, context, builder, signature, args, names):
        super().__init__(context, builder, signature, args, names)
        bits = self.vector.element.width
        self.parts = 1 if bits == 16 else 2
        self.part = ir.VectorType(self.vector.element, 2 * self.lanes // self.parts)
        self.none = self.splat_const(0, self.part)
        lowest = self.splat_const(-(1 << (bits - 1)), self.part)
        self.minimum, self.too_few = (self.splat(x, self.part) for x in (self["minimum"], self.minus_one("minimum")))
        self.minimum_to_lowest = builder.sub(self.minimum, lowest)
        self.too_few_to_lowest = builder.sub(self.too_few, lowest)

    def join(self, own, other):
        """Make both sides of a vector each."""
        if self.parts == 2:
            return [own, other]
        return [self.builder.shuffle_vector(own, other, self.numbers(0, 2 * self.lanes))]

    def halves(self, both):
        """Return a vector for each side."""
        if self.parts == 2:
            return both
        of_side = (self.numbers(side * self.lanes, self.lanes) for side in range(2))
        return [self.builder.shuffle_vector(both[0], both[0], numbers) for numbers in of_side]

    @staticmethod
    def numbers(first, n):
        """Return the numbers from ``first`` on."""
        return ir.Constant(ir.VectorType(ir.IntType(32), n), list(range(first, first + n)))

    def of_column(self, u, k):
        """Return where the vector ``k`` of column ``u`` begins."""
        return self.at((u, COLUMN * self.lanes), k * self.lanes)

    def places(self, u, k):
        """Return where both sides begin that are kept from vector ``k`` of column ``u`` on."""
        return [self.of_column(u, k + part) for part in range(self.parts)]

    def shifted(self, counts):
        """Counts less the minimum, so that comparisons see negative ones as the largest."""
        return self.builder.sub(counts, self.minimum_to_lowest)

    def window(self, counts):
        """How many counts of one leaf there are that leave both leaves their minimum, shifted alike."""
        most = self.largest(self.builder.sub(counts, self.minimum), self.too_few)
        return self.builder.sub(most, self.too_few_to_lowest)

    def keep(self, feature, place, low_and_high):
        """Note the values of a cut."""
        for name, both in zip(("low", "high"), low_and_high, strict=True):
            for side, value in zip(("own", "other"), self.halves(both), strict=True):
                at = self.at((self.at(self[f"{feature}_{side}"], place), self.lanes))
                self.store(name, at, self.least(self.load(name, at), value))


class _CountedRows(_CountedCode):
    """One pass over ``rows`` rows of a pair's tables for all root cuts at once; see :func:`_counted_rows`."""

    def __init__(self, context, builder, signature, args, rows):
        super().__init__(context, builder, signature, args, ("totals", "all_losses", "all_counts", "t", "minimum"))
        self.rows = rows
        self.h_at = builder.mul(self["t"], self.width)
        self.total_at = self.at(self["at"], (self["t"], self["W"]))
        self.sums = [self.slots(2) for _ in range(rows)]
        self.best = [[self.slots(2, self.none) for _ in range(self.parts)] for _ in range(rows)]
        self.all_rows = [self.join(*self.ends(plane)) for plane in (LOSSES, COUNTS)]
        self.sides = [self.sides_of_row(r) for r in range(rows)]

    def sides_of_row(self, r):
        """Sums of losses up to row ``r`` and beyond it; of counts, those up to it shifted, and the windows of both."""
        sub = self.builder.sub
        place = self.at(self["f_sums"], self["t"], r)
        low = []
        for plane, name in enumerate(("all_losses", "all_counts")):
            own = self.load("one", self.at((place, self.place), plane * self.lanes))
            low.append(self.join(own, sub(self.splat(self.number(name, place)), own)))
        return [
            (x, sub(x_end, x), self.shifted(c), self.window(c), self.window(sub(c_end, c)))
            for x, c, x_end, c_end in zip(*low, *self.all_rows, strict=True)
        ]

    def cell(self, r, u, plane, above):
        """Cumulated own cell of row ``r`` given the one above, and both sides of it."""
        at = self.at(self.h_at, (self.width, r), (u, self.place), plane * self.lanes)
        slot = self.sums[r][plane]
        self.update(slot, self.builder.add, self.load("H", at))
        self.store("H", at, self.zero)
        own = self.builder.add(above, self.value(slot))
        of_all = self.total(self.at(self.total_at, (self["W"], r), u), plane)
        return own, self.join(own, self.builder.sub(of_all, own))

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
        above = [self.load("running", self.of_column(u, BEFORE + plane)) for plane in (LOSSES, COUNTS)]
        places = list(zip(*(self.places(u, k) for k in range(BEST, COLUMN, 2)), strict=True))
        kept, margins = [], []
        for of_part, all_counts in zip(places, self.all_rows[COUNTS], strict=True):
            low, high, x, c = (self.load("running", place, self.part) for place in of_part)
            kept.append([low, high])
            margins.append((x, self.shifted(c), self.window(c), self.window(self.builder.sub(all_counts, c))))
        for r in range(self.rows):
            above, cells = zip(*(self.cell(r, u, plane, above[plane]) for plane in (LOSSES, COUNTS)), strict=True)
            for part in range(self.parts):
                found = self.splits(*(of[part] for of in cells), margins[part], self.sides[r][part])
                for slot, value in zip(self.best[r][part], found[:2], strict=True):
                    self.update(slot, self.least, value)
                kept[part] = [self.least(v, w) for v, w in zip(kept[part], found[2:], strict=True)]
        for plane in (LOSSES, COUNTS):
            self.store("running", self.of_column(u, BEFORE + plane), above[plane])
        for part in range(self.parts):
            for k in range(2):
                self.store("running", places[part][k], kept[part][k])

    def finish(self):
        """Note the best values of the rows themselves."""
        for r in range(self.rows):
            found = [[self.value(slots[k]) for slots in self.best[r]] for k in range(2)]
            self.keep("f", self.at(self["t"], r), found)


class _CountedColumns(_CountedCode):
    """Code for columns: margins and zeros of scratch.running before the rows, and results after them."""

    def begin(self, u):
        """Put the margins of column ``u`` in place, and zeros."""
        for k in range(BEFORE, MARGINS):
            self.store("running", self.of_column(u, k), self.zero)
        for plane in (LOSSES, COUNTS):
            for side, margin in enumerate(self.margins(u, plane)):
                self.store("running", self.of_column(u, MARGINS + 2 * plane + side), margin)

    def end(self, u):
        """Note the best values of column ``u``."""
        places = [self.places(u, k) for k in range(BEST, MARGINS, 2)]
        self.keep("g", u, [[self.load("running", place, self.part) for place in both] for both in places])


def _counted_rows(rows):
    """Build the intrinsic that does ``rows`` rows of one pair's tables, from row t on, for all root cuts at once.

    Arrays are those of :func:`simd_tables._lane_rows` with two planes, but for scratch.running. ``minimum`` is above 0
    and fits the type of the sums.
    """

    def typed(typingctx, scratch, pair, totals, all_losses, all_counts, t, minimum):
        signature = types.void(scratch, pair, totals, all_losses, all_counts, types.int64, minimum)
        return signature, for_each_column(lambda *given: _CountedRows(*given, rows))

    return intrinsic(typed)


def _counted_columns(step):
    """Build the intrinsic that does one step of :class:`_CountedColumns` for all columns."""

    def typed(typingctx, scratch, pair, totals, minimum):
        codegen = for_each_column(lambda *given: _CountedColumns(*given, ("totals", "minimum")), step)
        return types.void(scratch, pair, totals, minimum), codegen

    return intrinsic(typed)


counted_one, counted_two = _counted_rows(1), _counted_rows(2)
begin_counted, end_counted = _counted_columns("begin"), _counted_columns("end")
