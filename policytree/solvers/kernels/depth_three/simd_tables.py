"""The tables of one pair for sixteen root cuts at once, in vectors (two actions, no counted rows).

With rows that are counted, see simd_counted.py: there, every cell has a second vector behind the first.

Along a root feature the left tables only grow, and the right ones are the total less the left. Lane e of every vector
belongs to root cut e, so one pass over the cells of a pair's table serves all cuts:

    cell x = cumulated sum left of the root cut;  total - x = the same on the right
    best second split inside {f <= t} = min(min_u x, low - max_u x)      (see depth_two/pair_tables.py)

Least and largest cells are kept: of rows in registers, of columns in an array.

Cost: eight vector steps for every cell.
Written as LLVM instructions, because LLVM does not find these vectors by itself. Two rows are done in one pass: they
share the loads of the column's numbers.
"""

from numba import types
from numba.extending import intrinsic

from policytree.solvers.kernels.base.layout import CUTS_AT_ONCE
from policytree.solvers.kernels.base.simd import VectorCode


class LaneCode(VectorCode):
    """Emits vector instructions on what a pair's tables and their scratch hold; ``names`` are the other arguments.

    The last of these is ``minimum``: None, or how many rows every leaf needs. Then there are two *planes*, losses and
    counts, and every place of a vector's array holds two vectors.
    """

    def __init__(self, context, builder, signature, args, names):
        bits = signature.args[0][0].dtype.bitwidth
        super().__init__(context, builder, signature, args, names, bits, CUTS_AT_ONCE)
        self.planes = 1 if isinstance(signature.args[-1], types.NoneType) else 2
        self.place = self.const(self.lanes * self.planes)
        self.zero = self.splat_const(0)
        self.width = builder.mul(self["W"], self.place)
        self.size = builder.mul(self["R"], self["W"])
        self.last_at = self.at(self["at"], (self.minus_one("R"), self["W"]))
        self.one_at = builder.mul(self["g_sums"], self.place)

    def minus_one(self, name):
        """Return the last index below an argument."""
        return self.builder.sub(self[name], self.const(1))

    def slots(self, n, zero=None):
        """Return ``n`` vectors of zeros that live across the loop (LLVM makes registers of them)."""
        return [self.variable(self.zero if zero is None else zero) for _ in range(n)]

    def total(self, index, plane):
        """Return sums of all rows, from the table of a plane."""
        return self.splat(self.number("totals", self.builder.add(index, self.size) if plane else index))

    def margins(self, u, plane=0):
        """Return sums of the rows up to column ``u``, of both sides."""
        left = self.load("one", self.at(self.one_at, (u, self.place), plane * self.lanes))
        return left, self.builder.sub(self.total(self.at(self.last_at, u), plane), left)

    def ends(self, plane=0):
        """Return sums of all rows of both sides."""
        return self.margins(self.minus_one("W"), plane)

    def keep_best(self, at, extremes, low, total):
        """Note the best values of a cut: from the extremes of the cells up to it, of what they leave of the others."""
        sub, (k0, k1, k2, k3) = self.builder.sub, extremes
        self.store("low", at, self.least(self.load("low", at), self.least(k0, sub(low, k1))))
        rest = self.least(k2, sub(sub(total, low), k3))
        self.store("high", at, self.least(self.load("high", at), rest))

    def finish(self):
        """Do what is left when every column was done: nothing, if a kind of code does not say so."""


def for_each_column(make, step="column"):
    """Emit an intrinsic: ``make`` its code, do a step of it for every column of the pair's tables, and finish."""

    def codegen(context, builder, signature, args):
        code = make(context, builder, signature, args)
        with code.loop(0, code["W"]) as u:
            getattr(code, step)(u)
        code.finish()
        return context.get_dummy_value()

    return codegen


class _LaneRows(LaneCode):
    """One pass over ``rows`` rows of a pair's tables for all root cuts at once; see :func:`_lane_rows`."""

    def __init__(self, context, builder, signature, args, rows):
        super().__init__(context, builder, signature, args, ("totals", "all_sums", "t", "minimum"))
        self.rows = rows
        t = self["t"]
        self.h_at = builder.mul(t, self.width)
        self.total_at = self.at(self["at"], (t, self["W"]))
        all_at = self.at(self["f_sums"], t)
        self.out_at = [self.at((self.at(self[name], t), self.lanes)) for name in ("f_own", "f_other")]
        self.lows = []
        for r in range(rows):
            left = self.load("one", self.at((all_at, self.lanes), self.lanes * r))
            self.lows.append((left, builder.sub(self.splat(self.number("all_sums", self.at(all_at, r))), left)))
        self.extremes = [[self.slots(4), self.slots(4)] for _ in range(rows)]
        self.sums = self.slots(rows)

    def cell(self, r, u, first, x):
        """Cumulated left and right cells of row ``r``, given the left cell above."""
        add = self.builder.add
        at = self.at(self.h_at, (self.width, r), first)
        h = self.load("H", at)
        self.store("H", at, self.zero)
        total = add(self.value(self.sums[r]), h)
        self.set(self.sums[r], total)
        x = add(x, total)
        return x, self.builder.sub(self.total(self.at(self.total_at, (self["W"], r), u), 0), x)

    def column(self, u):
        """All rows of column ``u``."""
        sub, both = self.builder.sub, (self.least, self.largest)
        first = self.at((u, self.lanes))
        x = self.load("running", first)
        margins = self.margins(u)
        columns = [[[], [], [], []], [[], [], [], []]]
        for r in range(self.rows):
            cells = self.cell(r, u, first, x)
            x = cells[0]
            for side, v in enumerate(cells):
                y, b = sub(margins[side], v), sub(self.lows[r][side], v)
                for slot, op, w in zip(self.extremes[r][side], both + both, (v, v, y, y), strict=True):
                    self.update(slot, op, w)
                for values, w in zip(columns[side], (v, v, b, b), strict=True):
                    values.append(w)
        self.store("running", first, x)
        for j, (op, values) in enumerate(zip((both + both) * 2, columns[0] + columns[1], strict=True)):
            q = self.at((self.width, j), first)
            w = self.load("Q", q)
            for other in values:
                w = op(w, other)
            self.store("Q", q, w)

    def finish(self):
        """Best values of the rows themselves, from their extremes."""
        ends = self.ends()
        for r in range(self.rows):
            for side, (total, first) in enumerate(zip(ends, self.out_at, strict=True)):
                extremes = [self.value(slot) for slot in self.extremes[r][side]]
                self.keep_best(self.at(first, self.lanes * r), extremes, self.lows[r][side], total)


class _LaneColumns(LaneCode):
    """Best values of a pair's columns, from their extremes."""

    def __init__(self, context, builder, signature, args):
        super().__init__(context, builder, signature, args, ("totals", "minimum"))
        self.of_all = self.ends()

    def column(self, u):
        """Both sides of column ``u``."""
        first = self.at((u, self.lanes))
        for side, (margin, total) in enumerate(zip(self.margins(u), self.of_all, strict=True)):
            extremes = [self.load("Q", self.at((self.width, 4 * side + j), first)) for j in range(4)]
            at = self.at((self.at(self[("g_own", "g_other")[side]], u), self.lanes))
            self.keep_best(at, extremes, margin, total)


class _LaneRest(LaneCode):
    """Sums of the rows of one code, which the tables of a pair leave out; see :func:`_lane_rest`."""

    def __init__(self, context, builder, signature, args, by_row):
        super().__init__(context, builder, signature, args, ("common", "minimum"))
        names = ("g_sums", "W", "R") if by_row else ("f_sums", "R", "W")
        self.sums, self.n_lines, self.n_others = (self[name] for name in names)
        self.step, self.next_one = (self.place, self.width) if by_row else (self.width, self.place)
        self.before, self.rest = self.slots(self.planes), self.slots(self.planes)

    def line(self, k):
        """Fill one cell with what the others leave of the sum by the other feature."""
        sub = self.builder.sub
        own = self.builder.mul(self.at(self.sums, k), self.place)
        first = self.builder.mul(k, self.step)
        for plane in range(self.planes):
            one = self.load("one", self.at(own, plane * self.lanes))
            self.set(self.rest[plane], sub(one, self.value(self.before[plane])))
            self.set(self.before[plane], one)
        with self.loop(0, self.n_others) as other:
            at = self.at(first, (other, self.next_one))
            for plane, rest in enumerate(self.rest):
                self.update(rest, sub, self.load("H", self.at(at, plane * self.lanes)))
        at = self.at(first, (self["common"], self.next_one))
        for plane, rest in enumerate(self.rest):
            self.store("H", self.at(at, plane * self.lanes), self.value(rest))


def _lane_rows(rows):
    """Build the intrinsic that does ``rows`` rows of one pair's tables, from row t on, for all root cuts at once.

    Lane e holds cut e; numbers are int32, or int16 where sums fit. scratch.H (R, W, lanes) are the sums of all rows
    up to cut e, left zeroed; scratch.running (W, lanes) the cumulated row before; scratch.Q (8, W, lanes) extremes of
    columns; see sweep_side.py for the rest.
    """

    def typed(typingctx, scratch, pair, totals, all_sums, t, minimum):
        signature = types.void(scratch, pair, totals, all_sums, types.int64, minimum)
        return signature, for_each_column(lambda *given: _LaneRows(*given, rows))

    return intrinsic(typed)


@intrinsic
def lane_columns(typingctx, scratch, pair, totals, minimum):
    """Note the best values of a pair's columns for all root cuts at once, when its rows are done."""
    return types.void(scratch, pair, totals, minimum), for_each_column(_LaneColumns)


def _lane_rest(by_row):
    """Build the intrinsic that makes up for rows left out of a pair's tables: those of one code.

    It fills line ``common`` of scratch.H, which is zero: what is missing from the sums of single features.
    """

    def typed(typingctx, scratch, pair, common, minimum):
        def codegen(context, builder, signature, args):
            code = _LaneRest(context, builder, signature, args, by_row)
            with code.loop(0, code.n_lines) as k:
                code.line(k)
            return context.get_dummy_value()

        return types.void(scratch, pair, types.int64, minimum), codegen

    return intrinsic(typed)


@intrinsic
def add_lanes(typingctx, H, cell, weight, masks, e):
    """Add a row of this weight to vector ``cell`` of H, in the lanes that vector ``e`` of ``masks`` has set."""

    def codegen(context, builder, signature, args):
        names, bits = ("H", "cell", "weight", "masks", "e"), signature.args[0].dtype.bitwidth
        code = VectorCode(context, builder, signature, args, names, bits, CUTS_AT_ONCE)
        to, mask = code.at((code["cell"], code.lanes)), code.load("masks", code.at((code["e"], code.lanes)))
        part = builder.and_(mask, code.splat(code["weight"]))
        code.store("H", to, builder.add(code.load("H", to), part))
        return context.get_dummy_value()

    return types.void(H, types.uint64, types.int32, masks, types.int64), codegen


lane_one, lane_two = _lane_rows(1), _lane_rows(2)
lane_rest_row, lane_rest_column = _lane_rest(True), _lane_rest(False)
