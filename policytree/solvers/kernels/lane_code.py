"""The tables of one pair for eight or sixteen root cuts at once, in vectors (two actions, no counted rows).

Along a root feature the left tables only grow, and the right ones are the total less the left. Lane e of every vector
belongs to root cut e, so one pass over the cells of a pair's table serves all cuts:

    cell x = cumulated sum left of the root cut;  total - x = the same on the right
    best second split inside {f <= t} = min(min_u x, low - max_u x)      (see pair_tables.py)

Least and largest cells are kept: of rows in registers, of columns in an array.

Cost: eight vector steps for every cell.
Written as LLVM instructions, because LLVM does not find these vectors by itself. Two rows are done in one pass: they
share the loads of the column's numbers.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from policytree.solvers.kernels.layout import LANES


class _LaneCode:
    """Emits one pass over ``rows`` rows of a pair's tables for all root cuts at once; see :func:`_lane_rows`."""

    def __init__(self, context, builder, signature, args, rows):
        self.builder, self.rows = builder, rows
        self.data = {}
        for ty, value in zip(signature.args, args, strict=True):
            if isinstance(ty, types.BaseNamedTuple):
                for k, (name, part) in enumerate(zip(ty.fields, ty, strict=True)):
                    self.take(context, name, part, builder.extract_value(value, k))
        for name, ty, value in zip(("totals", "all_sums", "t"), signature.args[2:], args[2:], strict=True):
            self.take(context, name, ty, value)
        self.number = ir.IntType(signature.args[0][0].dtype.bitwidth)
        self.lanes = LANES * 32 // self.number.width
        self.vector = ir.VectorType(self.number, self.lanes)
        self.places = ir.VectorType(ir.IntType(32), self.lanes)
        self.zero = ir.Constant(self.vector, [0] * self.lanes)
        self.locate()
        self.lows = []
        for r in range(rows):
            left = self.load("one", self.plus(self.low_at, self.lanes * r))
            self.lows.append((left, builder.sub(self.splat("all_sums", self.plus(self.all_at, r)), left)))
        self.extremes = [[self.slots(4), self.slots(4)] for _ in range(rows)]
        self.sums = self.slots(rows)

    def take(self, context, name, ty, value):
        """Keep an argument: a number, or where an array's numbers begin."""
        is_array = isinstance(ty, types.Array)
        self.data[name] = context.make_array(ty)(context, self.builder, value).data if is_array else value

    def locate(self):
        """Where the row's numbers stand in each array."""
        add, mul, t = self.builder.add, self.builder.mul, self.data["t"]
        lanes, W = self.const(self.lanes), self.data["W"]
        self.width = mul(W, lanes)
        self.h_at = mul(t, self.width)
        self.total_at = add(self.data["at"], mul(t, W))
        self.last_at = add(self.data["at"], mul(self.builder.sub(self.data["R"], self.const(1)), W))
        self.one_at = mul(self.data["g_sums"], lanes)
        self.all_at = add(self.data["f_sums"], t)
        self.low_at = mul(self.all_at, lanes)
        self.out_at = [mul(add(self.data[name], t), lanes) for name in ("f_own", "f_other")]

    @staticmethod
    def const(k):
        return ir.Constant(ir.IntType(64), k)

    def plus(self, index, k):
        return self.builder.add(index, self.const(k))

    def slots(self, n):
        """Return ``n`` vectors of zeros that live across the loop (LLVM makes registers of them)."""
        slots = [cgutils.alloca_once_value(self.builder, self.zero) for _ in range(n)]
        for slot in slots:
            self.builder.store(self.zero, slot)
        return slots

    def pointer(self, name, index):
        return self.builder.bitcast(self.builder.gep(self.data[name], [index]), self.vector.as_pointer())

    def load(self, name, index):
        return self.builder.load(self.pointer(name, index), align=4)

    def store(self, name, index, value):
        self.builder.store(value, self.pointer(name, index), align=4)

    def splat(self, name, index):
        undefined = ir.Constant(self.vector, ir.Undefined)
        scalar = self.builder.load(self.builder.gep(self.data[name], [index]))
        scalar = self.builder.trunc(scalar, self.number)
        first = self.builder.insert_element(undefined, scalar, ir.Constant(ir.IntType(32), 0))
        return self.builder.shuffle_vector(first, undefined, ir.Constant(self.places, [0] * self.lanes))

    def least(self, a, b):
        return self.builder.select(self.builder.icmp_signed("<", a, b), a, b)

    def largest(self, a, b):
        return self.builder.select(self.builder.icmp_signed(">", a, b), a, b)

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
        last = self.load("one", self.builder.add(self.one_at, first))
        margins = (last, sub(self.splat("totals", self.builder.add(self.last_at, u)), last))
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
        end = self.load("one", add(self.one_at, sub(self.width, self.const(self.lanes))))
        end_at = add(self.last_at, sub(self.data["W"], self.const(1)))
        ends = ((end, self.out_at[0]), (sub(self.splat("totals", end_at), end), self.out_at[1]))
        for r in range(self.rows):
            for side, (total, first) in enumerate(ends):
                at, row = add(first, self.const(self.lanes * r)), self.lows[r][side]
                k0, k1, k2, k3 = (self.builder.load(slot) for slot in self.extremes[r][side])
                self.store("low", at, self.least(self.load("low", at), self.least(k0, sub(row, k1))))
                rest = self.least(k2, sub(sub(total, row), k3))
                self.store("high", at, self.least(self.load("high", at), rest))


def _lane_rows(rows):
    """Build the intrinsic that does ``rows`` rows of one pair's tables, from row t on, for all root cuts at once.

    Lane e holds cut e, of eight, or of sixteen if numbers are int16. scratch.H (R, W, lanes) are the sums of all rows
    up to cut e, left zeroed; scratch.run (W, lanes) the cumulated row before; scratch.Q (8, W, lanes) the extremes of
    columns; see sweep_side.py for the rest.
    """

    def typed(typingctx, scratch, pair, totals, all_sums, t):
        signature = types.void(scratch, pair, totals, all_sums, types.int64)

        def codegen(context, builder, signature, args):
            code = _LaneCode(context, builder, signature, args, rows)
            with cgutils.for_range(builder, code.data["W"]) as loop:
                code.column(loop.index)
            code.finish()
            return context.get_dummy_value()

        return signature, codegen

    return intrinsic(typed)


@intrinsic
def add_lanes(typingctx, H, cell, weight, masks, e):
    """Add a row of this weight to vector ``cell`` of H, in the lanes that vector ``e`` of ``masks`` has set."""

    def codegen(context, builder, signature, args):
        number = ir.IntType(signature.args[0].dtype.bitwidth)
        lanes = LANES * 32 // number.width
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
