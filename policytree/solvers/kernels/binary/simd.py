"""Vectors for blocks of pair sums, written as LLVM instructions: LLVM widens short integers if left to itself.

Cost: a row adds a whole row of the block for each column that is on; a scan reads every entry once.
Symbols: see layout.py.
"""

from numba import types
from numba.extending import intrinsic

from policytree.solvers.kernels.base.simd import VectorCode
from policytree.solvers.kernels.binary.layout import BYTES

AT_ONCE = 6  # vectors of a row that are added at once


class _BlockCode(VectorCode):
    """Emits instructions on whole rows of blocks; the first argument has their numbers."""

    def __init__(self, context, builder, signature, args, names):
        bits = signature.args[0].dtype.bitwidth
        super().__init__(context, builder, signature, args, names, bits, 8 * BYTES // bits)


@intrinsic
def add_rows_to_block(typingctx, to, to_at, what, what_at, items, a, b, width):
    """Add ``what[what_at : what_at + width]`` to the rows ``items[a:b]`` of the block at ``to[to_at]``."""

    def codegen(context, builder, signature, args):
        names = ("to", "to_at", "what", "what_at", "items", "a", "b", "width")
        code = _BlockCode(context, builder, signature, args, names)

        def add(column, count):
            """Add ``count`` vectors from a column on; they stay in registers."""
            own = code.at(code["what_at"], column)
            values = [code.load("what", code.at(own, k * code.lanes)) for k in range(count)]
            with code.loop(code["a"], code["b"]) as s:
                first = code.at(code["to_at"], (code.natural("items", s), code["width"]), column)
                for k, value in enumerate(values):
                    at = code.at(first, k * code.lanes)
                    code.store("to", at, builder.add(code.load("to", at), value))

        with code.loop(0, code["width"], AT_ONCE * code.lanes) as column:
            left = builder.udiv(builder.sub(code["width"], column), code.const(code.lanes))
            for count in range(1, AT_ONCE + 1):
                order = "==" if count < AT_ONCE else ">="
                with builder.if_then(builder.icmp_unsigned(order, left, code.const(count))):
                    add(column, count)
        return context.get_dummy_value()

    return types.void(to, types.int64, what, types.int64, items, types.int64, types.int64, types.int64), codegen


class _ScanCode(_BlockCode):
    """Emits the scan of one block that is a sum of others; see :func:`_scan_of`."""

    def __init__(self, context, builder, signature, args, signs):
        self.terms = [(sign, f"block{k}", f"first{k}") for k, sign in enumerate(signs)]
        names = ["diagonal", "out", "n", "width", *(name for _, *two in self.terms for name in two)]
        super().__init__(context, builder, signature, args, names)

    def entry(self, at):
        """A vector of the block."""
        x = None
        for sign, block, first in self.terms:
            y = self.load(block, self.at(self[first], at))
            x = y if x is None else self.builder.add(x, y) if sign > 0 else self.builder.sub(x, y)
        return x

    def emit(self):
        b, zero, width = self.builder, self.splat_const(0), self["width"]
        with self.loop(0, b.udiv(width, self.const(self.lanes))) as block:
            column = self.at((block, self.lanes))
            slots = [self.variable(zero) for _ in range(4)]
            with self.loop(0, self["n"]) as row:
                x = self.entry(self.at((row, width), column))
                y = b.sub(self.splat(self.number("diagonal", row)), x)
                for slot, value, operation in zip(slots, (x, x, y, y), [self.least, self.largest] * 2, strict=True):
                    self.update(slot, operation, value)
            for k, slot in enumerate(slots):
                self.store("out", self.at((width, k), column), self.value(slot))


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
