"""Vectors for blocks of pair sums, written as LLVM instructions: LLVM widens short integers if left to itself.

Cost: a row adds a whole row of the block for each column that is on; a scan reads every entry once.
Symbols: see layout.py.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from policytree.solvers.kernels.binary.layout import BYTES

AT_ONCE = 6  # vectors of a row that are added at once


def _vector_of(array):
    """LLVM's vector type for an array's numbers, how many it holds, and their size in bytes."""
    size = array.dtype.bitwidth // 8
    return ir.VectorType(ir.IntType(array.dtype.bitwidth), BYTES // size), BYTES // size, size


@intrinsic
def add_rows_to_block(typingctx, to, to_at, what, what_at, items, a, b, width):
    """Add ``what[what_at : what_at + width]`` to the rows ``items[a:b]`` of the block at ``to[to_at]``."""

    def codegen(context, builder, signature, args):
        vector, lanes, size = _vector_of(to)
        data = [context.make_array(signature.args[k])(context, builder, args[k]).data for k in (0, 2, 4)]
        i64 = ir.IntType(64)

        def pointer(array, first, k):
            at = builder.add(first, ir.Constant(i64, k * lanes))
            return builder.bitcast(builder.gep(array, [at]), vector.as_pointer())

        def add(column, count):
            """Add ``count`` vectors from a column on; they stay in registers."""
            own = builder.add(args[3], column)
            values = [builder.load(pointer(data[1], own, k), align=size) for k in range(count)]
            with cgutils.for_range_slice(builder, args[5], args[6], ir.Constant(i64, 1)) as (s, _):
                row = builder.zext(builder.load(builder.gep(data[2], [s])), i64)
                first = builder.add(builder.add(args[1], builder.mul(row, args[7])), column)
                for k, value in enumerate(values):
                    p = pointer(data[0], first, k)
                    builder.store(builder.add(builder.load(p, align=size), value), p, align=size)

        step = ir.Constant(i64, AT_ONCE * lanes)
        with cgutils.for_range_slice(builder, ir.Constant(i64, 0), args[7], step) as (column, _):
            left = builder.udiv(builder.sub(args[7], column), ir.Constant(i64, lanes))
            for count in range(1, AT_ONCE + 1):
                order = "==" if count < AT_ONCE else ">="
                with builder.if_then(builder.icmp_unsigned(order, left, ir.Constant(i64, count))):
                    add(column, count)
        return context.get_dummy_value()

    return types.void(to, types.int64, what, types.int64, items, types.int64, types.int64, types.int64), codegen


class _ScanCode:
    """Emits the scan of one block that is a sum of others; see :func:`_scan_of`."""

    def __init__(self, context, builder, signature, args, signs):
        self.builder = builder
        self.vector, self.lanes, self.size = _vector_of(signature.args[0])
        self.i64 = ir.IntType(64)
        self.zero = ir.Constant(self.vector, [0] * self.lanes)

        def data(k):
            return context.make_array(signature.args[k])(context, builder, args[k]).data

        self.diagonal, self.out = data(0), data(1)
        self.n, self.width = args[2], args[3]
        self.terms = [(sign, data(4 + 2 * k), args[5 + 2 * k]) for k, sign in enumerate(signs)]

    def pointer(self, array, index):
        return self.builder.bitcast(self.builder.gep(array, [index]), self.vector.as_pointer())

    def entry(self, at):
        """A vector of the block."""
        x = None
        for sign, array, first in self.terms:
            y = self.builder.load(self.pointer(array, self.builder.add(first, at)), align=self.size)
            x = y if x is None else self.builder.add(x, y) if sign > 0 else self.builder.sub(x, y)
        return x

    def splat(self, index):
        undefined = ir.Constant(self.vector, ir.Undefined)
        scalar = self.builder.load(self.builder.gep(self.diagonal, [index]))
        first = self.builder.insert_element(undefined, scalar, ir.Constant(ir.IntType(32), 0))
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), [0] * self.lanes)
        return self.builder.shuffle_vector(first, undefined, lanes)

    def emit(self):
        b = self.builder
        slots = [cgutils.alloca_once_value(b, self.zero) for _ in range(4)]
        with cgutils.for_range(b, b.udiv(self.width, ir.Constant(self.i64, self.lanes))) as block:
            column = b.mul(block.index, ir.Constant(self.i64, self.lanes))
            for slot in slots:
                b.store(self.zero, slot)
            with cgutils.for_range(b, self.n) as row:
                x = self.entry(b.add(b.mul(row.index, self.width), column))
                y = b.sub(self.splat(row.index), x)
                for slot, value, order in zip(slots, (x, x, y, y), "<><>", strict=True):
                    old = b.load(slot)
                    b.store(b.select(b.icmp_signed(order, value, old), value, old), slot)
            for k, slot in enumerate(slots):
                at = b.add(b.mul(self.width, ir.Constant(self.i64, k)), column)
                b.store(b.load(slot), self.pointer(self.out, at), align=self.size)


def _scan_of(*signs):
    """Build the intrinsic that scans a block, the sum of ``len(signs)`` blocks with these signs.

    ``out`` (4, width) gets, for each column v, least and largest sum of {u on, v on} and of {u on, v off} over all
    columns u, and zero. ``diagonal`` is the block's. Vectors are written by hand, because LLVM widens short integers.
    """

    def typed(context, signature, *arrays):
        def codegen(context, builder, signature, args):
            _ScanCode(context, builder, signature, args, signs).emit()
            return context.get_dummy_value()

        return signature, codegen

    i = types.int64
    if len(signs) == 1:

        def scan(typingctx, diagonal, out, n, width, A, a):
            return typed(typingctx, types.void(diagonal, out, i, i, A, i))
    elif len(signs) == 2:

        def scan(typingctx, diagonal, out, n, width, A, a, B, b):
            return typed(typingctx, types.void(diagonal, out, i, i, A, i, B, i))
    else:

        def scan(typingctx, diagonal, out, n, width, A, a, B, b, C, c):
            return typed(typingctx, types.void(diagonal, out, i, i, A, i, B, i, C, i))

    return intrinsic(scan)


scan_one, scan_less, scan_three = _scan_of(1), _scan_of(1, -1), _scan_of(1, -1, 1)
