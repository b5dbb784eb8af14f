"""Values of 64 boxes at once, written as LLVM instructions: LLVM does not find these vectors by itself.

Values are uint8 (depths) or uint16 (leaves) in flat arrays, and are addressed by their place. Their type says which.
"""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from policytree.born_again.kernels.layout import NO_LEAVES

LANES = 64  # boxes in a step, and blocks side by side
REGISTER = 16  # bytes of a register in which values are turned


class _Code:
    """Emits instructions on vectors of one kind of numbers."""

    def __init__(self, context, builder, signature, args, width):
        self.builder = builder
        self.data = [
            context.make_array(ty)(context, builder, x).data if isinstance(ty, types.Array) else x
            for ty, x in zip(signature.args, args, strict=True)
        ]
        self.width = width

    def _pointer(self, array, place):
        pointer = self.builder.gep(self.data[array], [place])
        return self.builder.bitcast(pointer, ir.VectorType(pointer.type.pointee, self.width).as_pointer())

    def load(self, array, place):
        """Numbers of the ``array``-th argument."""
        return self.builder.load(self._pointer(array, place), align=1)

    def store(self, array, place, vector):
        """Put numbers into the ``array``-th argument."""
        self.builder.store(vector, self._pointer(array, place), align=1)

    def least(self, a, b):
        """The smaller one, lane by lane."""
        return self.builder.select(self.builder.icmp_unsigned("<", a, b), a, b)

    def largest(self, a, b):
        """The larger one, lane by lane."""
        return self.builder.select(self.builder.icmp_unsigned(">", a, b), a, b)

    def same(self, a, b):
        """Where two vectors are equal."""
        return self.builder.icmp_unsigned("==", a, b)

    @staticmethod
    def const(vector, number):
        """A number in every lane of a vector of this type."""
        return ir.Constant(vector.type, [number] * vector.type.count)

    def deeper(self, left, right):
        """Depth of a split."""
        depth = self.largest(left, right)
        return self.builder.add(depth, self.const(depth, 1))

    def joined(self, left, right):
        """Leaves of a split."""
        leaves = self.builder.add(left, right)
        return self.least(leaves, self.const(leaves, NO_LEAVES))

    def place(self, place, k):
        """A place further on."""
        return self.builder.add(place, ir.Constant(ir.IntType(64), k))


KINDS = {8: ("deeper", 0), 16: ("joined", 1)}  # by the bits of a value: how sides are put together, and a leaf


@intrinsic
def lower_split(typingctx, target, at, ones, left, others, right):
    """A split into ``ones`` and ``others``, if it gives less than ``target`` has."""
    operation, _ = KINDS[target.dtype.bitwidth]

    def emit(context, builder, signature, args):
        code = _Code(context, builder, signature, args, LANES)
        _, at, _, left, _, right = code.data
        split = getattr(code, operation)(code.load(2, left), code.load(4, right))
        code.store(0, at, code.least(code.load(0, at), split))
        return context.get_dummy_value()

    return types.none(target, at, ones, left, others, right), emit


@intrinsic
def first_split(typingctx, values, at, left, right, classes, one, other):
    """The first split; leaves with one class in ``classes``, at ``one`` and ``other``, are one leaf."""
    operation, leaf = KINDS[values.dtype.bitwidth]

    def emit(context, builder, signature, args):
        code = _Code(context, builder, signature, args, LANES)
        _, at, left, right, _, one, other = code.data
        a, b = code.load(0, left), code.load(0, right)
        leaves = builder.and_(code.same(a, code.const(a, leaf)), code.same(b, code.const(b, leaf)))
        leaves = builder.and_(leaves, code.same(code.load(4, one), code.load(4, other)))
        split = getattr(code, operation)(a, b)
        code.store(0, at, builder.select(leaves, code.const(a, leaf), split))
        return context.get_dummy_value()

    return types.none(values, at, left, right, classes, one, other), emit


@intrinsic
def keep_leaves(typingctx, target, at, leaves, place):
    """``target[at + k]``: 1 where a box is a leaf, NO_LEAVES elsewhere."""

    def emit(context, builder, signature, args):
        code = _Code(context, builder, signature, args, LANES)
        _, at, _, place = code.data
        x = code.load(2, place)
        leaf = code.same(x, code.const(x, 1))
        code.store(0, at, builder.select(leaf, x, code.const(x, NO_LEAVES)))
        return context.get_dummy_value()

    return types.none(target, at, leaves, place), emit


def _turned(builder, vectors):
    """The transpose of a square of numbers, row by row: halves are interleaved until all is turned."""
    n = len(vectors)
    low = [x for k in range(n // 2) for x in (k, n + k)]
    masks = [ir.Constant(ir.VectorType(ir.IntType(32), n), [x + half for x in low]) for half in (0, n // 2)]
    for _ in range(n.bit_length() - 1):
        pairs = zip(vectors[: n // 2], vectors[n // 2 :], strict=True)
        vectors = [builder.shuffle_vector(a, b, mask) for a, b in pairs for mask in masks]
    return vectors


def _turn(to_lanes):
    """``turn(values, rows, first, i, lanes)``: a square of values into ``lanes``, or back.

    Row k of the square: boxes i, i + 1, ... of the block whose values begin at ``rows[first + k]``. In ``lanes`` box i
    of the k-th block stands at ``LANES * i + k``.
    """

    @intrinsic
    def turn(typingctx, values, rows, first, i, lanes):
        n = REGISTER * 8 // values.dtype.bitwidth

        def emit(context, builder, signature, args):
            code = _Code(context, builder, signature, args, n)
            _, begins, first, i, _ = code.data
            begin = [builder.load(builder.gep(begins, [code.place(first, k)])) for k in range(n)]
            own = [builder.add(b, i) for b in begin]
            side = builder.add(builder.mul(i, ir.Constant(i.type, LANES)), first)
            beside = [code.place(side, LANES * k) for k in range(n)]
            sources, targets = (own, beside) if to_lanes else (beside, own)
            square = _turned(builder, [code.load(0 if to_lanes else 4, place) for place in sources])
            for place, vector in zip(targets, square, strict=True):
                code.store(4 if to_lanes else 0, place, vector)
            return context.get_dummy_value()

        return types.none(values, rows, first, i, lanes), emit

    return turn


turn_to_lanes, turn_from_lanes = _turn(True), _turn(False)
