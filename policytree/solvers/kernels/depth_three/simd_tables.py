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

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from policytree.solvers.kernels.base.layout import CUTS_AT_ONCE


class LaneCode:
    """Emits vector instructions on what a pair's tables and their scratch hold; ``names`` are the other arguments.

    The last of these is ``minimum``: None, or how many rows every leaf needs. Then there are two *planes*, losses and
    counts, and every place of a vector's array holds two vectors.
    """

    def __init__(self, context, builder, signature, args, names):
        self.builder = builder
        self.data = {}
        for ty, value in zip(signature.args, args, strict=True):
            if isinstance(ty, types.BaseNamedTuple):
                for k, (name, part) in enumerate(zip(ty.fields, ty, strict=True)):
                    self.take(context, name, part, builder.extract_value(value, k))
        for name, ty, value in zip(names, signature.args[2:], args[2:], strict=True):
            self.take(context, name, ty, value)
        self.planes = 1 if isinstance(signature.args[-1], types.NoneType) else 2
        self.number = ir.IntType(signature.args[0][0].dtype.bitwidth)
        self.lanes = CUTS_AT_ONCE
        self.place = self.const(self.lanes * self.planes)
        self.vector = ir.VectorType(self.number, self.lanes)
        self.places = ir.VectorType(ir.IntType(32), self.lanes)
        self.zero = ir.Constant(self.vector, [0] * self.lanes)
        self.width = builder.mul(self.data["W"], self.place)
        self.size = builder.mul(self.data["R"], self.data["W"])
        self.last_at = builder.add(self.data["at"], builder.mul(self.minus_one("R"), self.data["W"]))
        self.one_at = builder.mul(self.data["g_sums"], self.place)

    def take(self, context, name, ty, value):
        """Keep an argument: a number, or where an array's numbers begin."""
        is_array = isinstance(ty, types.Array)
        self.data[name] = context.make_array(ty)(context, self.builder, value).data if is_array else value

    @staticmethod
    def const(k):
        """Return an index that is known."""
        return ir.Constant(ir.IntType(64), k)

    def plus(self, index, k):
        """Add a known number to an index."""
        return self.builder.add(index, self.const(k))

    def minus_one(self, name):
        """Return the last index below an argument."""
        return self.builder.sub(self.data[name], self.const(1))

    def slots(self, n, zero=None):
        """Return ``n`` vectors of zeros that live across the loop (LLVM makes registers of them)."""
        zero = self.zero if zero is None else zero
        slots = [cgutils.alloca_once_value(self.builder, zero) for _ in range(n)]
        for slot in slots:
            self.builder.store(zero, slot)
        return slots

    def pointer(self, name, index):
        """Return where the vector begins that starts at a number of an array."""
        return self.builder.bitcast(self.builder.gep(self.data[name], [index]), self.vector.as_pointer())

    def load(self, name, index):
        """Read a vector of an array."""
        return self.builder.load(self.pointer(name, index), align=4)

    def store(self, name, index, value):
        """Write a vector to an array."""
        self.builder.store(value, self.pointer(name, index), align=4)

    def splat(self, name, index):
        """Return a vector of one number of an array."""
        return self.spread(self.builder.load(self.builder.gep(self.data[name], [index])))

    def spread(self, scalar):
        """Return a vector of one number."""
        undefined = ir.Constant(self.vector, ir.Undefined)
        scalar = self.builder.trunc(scalar, self.number)
        first = self.builder.insert_element(undefined, scalar, ir.Constant(ir.IntType(32), 0))
        return self.builder.shuffle_vector(first, undefined, ir.Constant(self.places, [0] * self.lanes))

    def least(self, a, b):
        """Return the smaller numbers of two vectors."""
        return self.builder.select(self.builder.icmp_signed("<", a, b), a, b)

    def largest(self, a, b):
        """Return the larger numbers of two vectors."""
        return self.builder.select(self.builder.icmp_signed(">", a, b), a, b)

    def total(self, index, plane):
        """Return sums of all rows, from the table of a plane."""
        return self.splat("totals", self.builder.add(index, self.size) if plane else index)

    def margins(self, u, plane=0):
        """Return sums of the rows up to column ``u``, of both sides."""
        at = self.plus(self.builder.add(self.one_at, self.builder.mul(u, self.place)), plane * self.lanes)
        left = self.load("one", at)
        return left, self.builder.sub(self.total(self.builder.add(self.last_at, u), plane), left)

    def ends(self, plane=0):
        """Return sums of all rows of both sides."""
        return self.margins(self.minus_one("W"), plane)

    def finish(self):
        """Do what is left when every column was done: nothing, if a kind of code does not say so."""


def for_each_column(make, step="column"):
    """What an intrinsic emits: ``make`` its code, do a step of it for every column of the pair's tables, and finish."""

    def codegen(context, builder, signature, args):
        code = make(context, builder, signature, args)
        with cgutils.for_range(builder, code.data["W"]) as loop:
            getattr(code, step)(loop.index)
        code.finish()
        return context.get_dummy_value()

    return codegen


class _LaneRows(LaneCode):
    """One pass over ``rows`` rows of a pair's tables for all root cuts at once; see :func:`_lane_rows`."""

    def __init__(self, context, builder, signature, args, rows):
        super().__init__(context, builder, signature, args, ("totals", "all_sums", "t", "minimum"))
        self.rows = rows
        mul, t, lanes = builder.mul, self.data["t"], self.const(self.lanes)
        self.h_at = mul(t, self.width)
        self.total_at = builder.add(self.data["at"], mul(t, self.data["W"]))
        all_at = builder.add(self.data["f_sums"], t)
        self.out_at = [mul(builder.add(self.data[name], t), lanes) for name in ("f_own", "f_other")]
        self.lows = []
        for r in range(rows):
            left = self.load("one", self.plus(mul(all_at, lanes), self.lanes * r))
            self.lows.append((left, builder.sub(self.splat("all_sums", self.plus(all_at, r)), left)))
        self.extremes = [[self.slots(4), self.slots(4)] for _ in range(rows)]
        self.sums = self.slots(rows)

    def cell(self, r, u, first, x):
        """Cumulated left and right cells of row ``r``, given the left cell above."""
        add = self.builder.add
        at = add(add(self.h_at, self.builder.mul(self.width, self.const(r))), first)
        h = self.load("H", at)
        self.store("H", at, self.zero)
        total = add(self.builder.load(self.sums[r]), h)
        self.builder.store(total, self.sums[r])
        x = add(x, total)
        t_at = add(add(self.total_at, self.builder.mul(self.data["W"], self.const(r))), u)
        return x, self.builder.sub(self.splat("totals", t_at), x)

    def column(self, u):
        """All rows of column ``u``."""
        sub, both = self.builder.sub, (self.least, self.largest)
        first = self.builder.mul(u, self.const(self.lanes))
        x = self.load("run", first)
        margins = self.margins(u)
        columns = [[[], [], [], []], [[], [], [], []]]
        for r in range(self.rows):
            cells = self.cell(r, u, first, x)
            x = cells[0]
            for side, v in enumerate(cells):
                y, b = sub(margins[side], v), sub(self.lows[r][side], v)
                for slot, op, w in zip(self.extremes[r][side], both + both, (v, v, y, y), strict=True):
                    self.builder.store(op(self.builder.load(slot), w), slot)
                for values, w in zip(columns[side], (v, v, b, b), strict=True):
                    values.append(w)
        self.store("run", first, x)
        for j, (op, values) in enumerate(zip((both + both) * 2, columns[0] + columns[1], strict=True)):
            q = self.builder.add(self.builder.mul(self.width, self.const(j)), first)
            w = self.load("Q", q)
            for other in values:
                w = op(w, other)
            self.store("Q", q, w)

    def finish(self):
        """Best values of the rows themselves, from their extremes."""
        sub, add = self.builder.sub, self.builder.add
        ends = self.ends()
        for r in range(self.rows):
            for side, (total, first) in enumerate(zip(ends, self.out_at, strict=True)):
                at, row = add(first, self.const(self.lanes * r)), self.lows[r][side]
                k0, k1, k2, k3 = (self.builder.load(slot) for slot in self.extremes[r][side])
                self.store("low", at, self.least(self.load("low", at), self.least(k0, sub(row, k1))))
                rest = self.least(k2, sub(sub(total, row), k3))
                self.store("high", at, self.least(self.load("high", at), rest))


class _LaneColumns(LaneCode):
    """Best values of a pair's columns, from their extremes."""

    def __init__(self, context, builder, signature, args):
        super().__init__(context, builder, signature, args, ("totals", "minimum"))
        self.of_all = self.ends()

    def column(self, u):
        """Both sides of column ``u``."""
        sub, mul, add = self.builder.sub, self.builder.mul, self.builder.add
        first = mul(u, self.const(self.lanes))
        for side, (margin, total) in enumerate(zip(self.margins(u), self.of_all, strict=True)):
            k0, k1, k2, k3 = (self.load("Q", add(mul(self.width, self.const(4 * side + j)), first)) for j in range(4))
            at = mul(add(self.data[("g_own", "g_other")[side]], u), self.const(self.lanes))
            self.store("low", at, self.least(self.load("low", at), self.least(k0, sub(margin, k1))))
            rest = self.least(k2, sub(sub(total, margin), k3))
            self.store("high", at, self.least(self.load("high", at), rest))


class _LaneRest(LaneCode):
    """What the rows of one code come to, which the tables of a pair leave out; see :func:`_lane_rest`."""

    def __init__(self, context, builder, signature, args, by_row):
        super().__init__(context, builder, signature, args, ("common", "minimum"))
        names = ("g_sums", "W", "R") if by_row else ("f_sums", "R", "W")
        self.sums, self.n_lines, self.n_others = (self.data[name] for name in names)
        self.step, self.next_one = (self.place, self.width) if by_row else (self.width, self.place)
        self.before, self.rest = self.slots(self.planes), self.slots(self.planes)

    def line(self, k):
        """Fill one cell with what the others leave of the sum by the other feature."""
        builder = self.builder
        own = builder.mul(builder.add(self.sums, k), self.place)
        first = builder.mul(k, self.step)
        for plane in range(self.planes):
            one = self.load("one", self.plus(own, plane * self.lanes))
            builder.store(builder.sub(one, builder.load(self.before[plane])), self.rest[plane])
            builder.store(one, self.before[plane])
        with cgutils.for_range(builder, self.n_others) as other:
            at = builder.add(first, builder.mul(other.index, self.next_one))
            for plane, rest in enumerate(self.rest):
                cell = self.load("H", self.plus(at, plane * self.lanes))
                builder.store(builder.sub(builder.load(rest), cell), rest)
        at = builder.add(first, builder.mul(self.data["common"], self.next_one))
        for plane, rest in enumerate(self.rest):
            self.store("H", self.plus(at, plane * self.lanes), builder.load(rest))


def _lane_rows(rows):
    """Build the intrinsic that does ``rows`` rows of one pair's tables, from row t on, for all root cuts at once.

    Lane e holds cut e; numbers are int32, or int16 where sums fit. scratch.H (R, W, lanes) are the sums of all rows
    up to cut e, left zeroed; scratch.run (W, lanes) the cumulated row before; scratch.Q (8, W, lanes) the extremes of
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
            with cgutils.for_range(builder, code.n_lines) as loop:
                code.line(loop.index)
            return context.get_dummy_value()

        return types.void(scratch, pair, types.int64, minimum), codegen

    return intrinsic(typed)


@intrinsic
def add_lanes(typingctx, H, cell, weight, masks, e):
    """Add a row of this weight to vector ``cell`` of H, in the lanes that vector ``e`` of ``masks`` has set."""

    def codegen(context, builder, signature, args):
        number = ir.IntType(signature.args[0].dtype.bitwidth)
        lanes = CUTS_AT_ONCE
        vector = ir.VectorType(number, lanes)
        places = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
        pointers = []
        for k in (0, 3):
            array = context.make_array(signature.args[k])(context, builder, args[k]).data
            at = builder.mul(args[k + 1], ir.Constant(ir.IntType(64), lanes))
            pointers.append(builder.bitcast(builder.gep(array, [at]), vector.as_pointer()))
        undefined = ir.Constant(vector, ir.Undefined)
        weight = args[2] if number.width == 32 else builder.trunc(args[2], number)
        weight = builder.insert_element(undefined, weight, ir.Constant(ir.IntType(32), 0))
        weight = builder.shuffle_vector(weight, undefined, places)
        part = builder.and_(builder.load(pointers[1], align=4), weight)
        builder.store(builder.add(builder.load(pointers[0], align=4), part), pointers[0], align=4)
        return context.get_dummy_value()

    return types.void(H, types.uint64, types.int32, masks, types.int64), codegen


lane_one, lane_two = _lane_rows(1), _lane_rows(2)
lane_rest_row, lane_rest_column = _lane_rest(True), _lane_rest(False)
