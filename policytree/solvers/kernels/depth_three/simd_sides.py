"""Rows of a pair's tables on both sides of a root cut, for any number of losses and counts, in vectors.

A row's cells are cumulated within vectors and from one to the next, and added to the row above:

    x = cumulated sum left of the root cut;  total - x = the same on the right

As in depth_two/pair_tables.py, two crossing cuts make four leaves on either side. Each costs the least of 0 and of its
losses, so that the planes of a cell are passed with eight vectors in registers, and nothing is stored but the best
values of columns. A leaf without its minimum costs more than any other leaf saves, so that its split is above 0, which
is where values begin; of a row, lanes behind the last column count 0: a side that is split costs one leaf more, so
neither is ever less than that side as one leaf.

Cost: about 30 vector steps for every plane of 8 cells, or of 16 where sums fit int16.
Written as LLVM instructions, because LLVM neither keeps the leaves in registers nor cumulates in vectors by itself.
Symbols: a table has R rows; x, b, y and z name leaves: low-left, low-right, high-left, high-right.
"""

from typing import NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from policytree.solvers.kernels.base.layout import FORBIDDEN, int_1d
from policytree.solvers.kernels.base.simd import VectorCode

BYTES = 32  # of a vector: eight leaves of twice as many bytes take all registers of AVX2


class BothSides(NamedTuple):
    """A pair's table for one root cut, flat, all int32 or all int16; *width* is that of rows, in whole vectors."""

    cells: int_1d  # (planes, R, width): sums of the growing side's rows
    before: int_1d  # (planes, lanes): the row's sum up to the last vector of columns, in every lane
    above: int_1d  # (planes, width): of the growing side, cumulated over the rows so far
    own: int_1d  # (planes, width): sums up to every column, of the growing side
    other: int_1d  # and of the other one
    parts: int_1d  # (planes, 4): sums of the growing side up to the row and beyond it, and of the other side
    best: int_1d  # (4, width): second splits below every column and beyond it, of the growing side and of the other
    found: int_1d  # (4,): the same of the row
    minima: int_1d


class _BothCode(VectorCode):
    """Emits :func:`scan_row`."""

    def __init__(self, context, builder, signature, args):
        bits = signature.args[0][0].dtype.bitwidth
        super().__init__(context, builder, signature, args, ("totals", "at", "t", "R", "W", "width", "n_losses"), bits,
                         8 * BYTES // bits)  # fmt: skip
        self.zero = self.splat_const(0)
        self.long = ir.VectorType(ir.IntType(32), self.lanes)
        self.dear = self.splat_const(FORBIDDEN if bits == 32 else (1 << 15) - 1)
        self.n_minima = self.shape("minima", 0)

    def cumulate(self, cells, k):
        """Cumulate a vector of the row, from what plane ``k`` came to before it."""
        builder, n = self.builder, self.lanes
        step = 1
        while step < n:  # lanes first .. first + n - 1 of zeros and cells: the cells, moved up
            places = ir.Constant(self.long, [n - step + lane for lane in range(n)])
            cells = builder.add(cells, builder.shuffle_vector(self.zero, cells, places))
            step *= 2
        at = self.at((k, n))
        cells = builder.add(cells, self.load("before", at))
        self.store("before", at, builder.shuffle_vector(cells, cells, ir.Constant(self.long, [n - 1] * n)))
        return cells

    def move_down(self, k, u):
        """Cumulated cells of plane ``k`` of both sides: the row's own cells added to those above."""
        to, row = self.at((k, self["width"]), u), self.at((k, self["R"]), self["t"])
        cells = self.cumulate(self.load("cells", self.at((row, self["width"]), u)), k)
        x = self.builder.add(self.load("above", to), cells)
        self.store("above", to, x)
        total = self.load("totals", self.at(self["at"], (row, self["W"]), u), self.long)
        if self.vector != self.long:
            total = self.builder.trunc(total, self.vector)
        return x, self.builder.sub(total, x)

    def are_columns(self, u):
        """Mark the lanes that have a cut between two columns."""
        builder = self.builder
        left = builder.sub(builder.sub(self["W"], self.const(1)), u)
        most = self.const(self.lanes)
        left = builder.select(builder.icmp_signed("<", left, most), left, most)
        numbers = ir.Constant(self.vector, list(range(self.lanes)))
        return builder.icmp_signed("<", numbers, self.splat(left))

    def leaves(self, k, u):
        """Sums of plane ``k`` in the four leaves of the growing side, and in those of the other one."""
        sub, found = self.builder.sub, []
        for side, x in enumerate(self.move_down(k, u)):
            margin = self.load(("own", "other")[side], self.at((k, self["width"]), u))
            low, high = (self.splat(self.number("parts", self.at((k, 4), 2 * side + j))) for j in range(2))
            y = sub(margin, x)
            found += [x, sub(low, x), y, sub(high, y)]
        return found

    def columns(self, u, found):
        """All planes of the columns from ``u`` on; ``found`` keeps the row's best splits."""
        builder = self.builder
        least = [self.variable(self.zero) for _ in range(8)]
        with self.loop(0, self["n_losses"]) as k:
            for slot, leaf in zip(least, self.leaves(k, u), strict=True):
                self.update(slot, self.least, leaf)
        with self.loop(0, self.n_minima) as j:
            enough = self.splat(self.number("minima", j))
            for slot, count in zip(least, self.leaves(self.at(self["n_losses"], j), u), strict=True):
                allowed = builder.icmp_signed(">=", count, enough)
                builder.store(builder.select(allowed, self.value(slot), self.dear), slot)
        columns = self.are_columns(u)
        for side in range(2):
            x, b, y, z = map(self.value, least[4 * side : 4 * side + 4])
            for j, leaves in enumerate(((x, b), (y, z))):
                self.update(found[2 * side + j], self.least, builder.select(columns, self.both(*leaves), self.zero))
            for j, leaves in enumerate(((x, y), (b, z))):
                to = self.at((self["width"], 2 * side + j), u)
                self.store("best", to, self.least(self.load("best", to), self.both(*leaves)))

    def both(self, leaf, other):
        """The cost of two leaves; at the end of the type's range where that is beyond it."""
        if self.vector == self.long:  # two forbidden leaves fit
            return self.builder.add(leaf, other)
        kind = ir.FunctionType(self.vector, [self.vector, self.vector])
        name = f"llvm.sadd.sat.v{self.lanes}i16"
        return self.builder.call(cgutils.get_or_insert_function(self.builder.module, kind, name), [leaf, other])

    def smallest(self, vector):
        """The least number of a vector."""
        kind = ir.FunctionType(vector.type.element, [vector.type])
        name = f"llvm.vector.reduce.smin.v{self.lanes}i{vector.type.element.width}"
        return self.builder.call(cgutils.get_or_insert_function(self.builder.module, kind, name), [vector])

    def emit(self):
        found = [self.variable(self.zero) for _ in range(4)]
        with self.loop(0, self["width"], self.lanes) as u:
            self.columns(u, found)
        for j, slot in enumerate(found):
            self.put_number("found", self.const(j), self.smallest(self.value(slot)))


@intrinsic
def scan_row(typingctx, sides, totals, at, t, R, W, width, n_losses):
    """Best second splits inside both sides of cut ``t`` of the rows: sides.found, and of the columns: sides.best.

    Rows are scanned from the first one on. ``sides``: :class:`BothSides`, with zeros in above and best at first, and in
    before for every row. The cumulated table of all rows, (planes, R, W), begins at totals[at]; up to a vector of what
    stands behind it is read, and not used.
    """

    def codegen(context, builder, signature, args):
        _BothCode(context, builder, signature, args).emit()
        return context.get_dummy_value()

    return types.void(sides, totals, *[types.int64] * 6), codegen
