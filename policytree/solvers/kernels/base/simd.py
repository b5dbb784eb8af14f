"""Vectors of eight int64, written as LLVM instructions where LLVM does not find them by itself."""

from contextlib import contextmanager

from llvmlite import ir
from numba import types
from numba.core import cgutils

from policytree.solvers.kernels.base.layout import LANES

LONG = ir.IntType(64)
VECTOR = ir.VectorType(LONG, LANES)
_PLACES = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)


class VectorCode:
    """Emits vector instructions of one intrinsic; ``arguments`` are numbers and arrays in C order, by name.

    The fields of a tuple count as arguments of their own. An array's numbers are addressed by their place in memory,
    whatever its dimensions; ``shape(name)`` are its lengths.
    """

    def __init__(self, context, builder, signature, args, names):
        self.builder, self.context = builder, context
        self.data, self.shapes = {}, {}
        for name, ty, value in zip(names, signature.args, args, strict=True):
            if isinstance(ty, types.BaseNamedTuple):
                for k, (field, part) in enumerate(zip(ty.fields, ty, strict=True)):
                    self._take(field, part, builder.extract_value(value, k))
            else:
                self._take(name, ty, value)

    def _take(self, name, ty, value):
        if isinstance(ty, types.Array):
            array = self.context.make_array(ty)(self.context, self.builder, value)
            self.data[name] = array.data
            self.shapes[name] = cgutils.unpack_tuple(self.builder, array.shape)
        else:
            self.data[name] = value

    # --- numbers ---

    def __getitem__(self, name):
        """An argument that is a number."""
        return self.data[name]

    def shape(self, name, k):
        """Length of an array's dimension."""
        return self.shapes[name][k]

    @staticmethod
    def const(k):
        """A number that is known now."""
        return ir.Constant(LONG, k)

    def at(self, *terms):
        """The sum of products of numbers: ``at((d, width), k)`` is ``d * width + k``."""
        total = None
        for term in terms:
            x = self.builder.mul(*term) if isinstance(term, tuple) else term
            total = x if total is None else self.builder.add(total, x)
        return total

    def number(self, name, index):
        """A number of an array, as int64."""
        x = self.builder.load(self.builder.gep(self.data[name], [index]))
        return x if x.type == LONG else self.builder.sext(x, LONG)

    def put_number(self, name, index, value):
        """Store a number."""
        self.builder.store(value, self.builder.gep(self.data[name], [index]))

    # --- vectors ---

    def _pointer(self, name, index):
        return self.builder.bitcast(self.builder.gep(self.data[name], [index]), VECTOR.as_pointer())

    def load(self, name, index):
        """Eight numbers of an array."""
        return self.builder.load(self._pointer(name, index), align=8)

    def store(self, name, index, vector):
        """Put eight numbers into an array."""
        self.builder.store(vector, self._pointer(name, index), align=8)

    def splat(self, number):
        """A number eight times."""
        undefined = ir.Constant(VECTOR, ir.Undefined)
        first = self.builder.insert_element(undefined, number, ir.Constant(ir.IntType(32), 0))
        return self.builder.shuffle_vector(first, undefined, _PLACES)

    def splat_const(self, k):
        """A number that is known now, eight times."""
        return ir.Constant(VECTOR, [k] * LANES)

    def least(self, a, b):
        """The smaller one, lane by lane."""
        return self.builder.select(self.builder.icmp_signed("<", a, b), a, b)

    def largest(self, a, b):
        """The larger one, lane by lane."""
        return self.builder.select(self.builder.icmp_signed(">", a, b), a, b)

    def count_ones(self, words):
        """Bits that are set in each of eight words."""
        name = f"llvm.ctpop.v{LANES}i64"
        kind = ir.FunctionType(VECTOR, [VECTOR])
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        return self.builder.call(function, [words])

    # --- variables and loops ---

    def variable(self, value):
        """A place in a register, set to a value here."""
        slot = cgutils.alloca_once(self.builder, value.type)
        self.builder.store(value, slot)
        return slot

    def value(self, slot):
        """What a variable holds."""
        return self.builder.load(slot)

    def update(self, slot, operation, vector):
        """Replace a variable by ``operation(variable, vector)``."""
        self.builder.store(operation(self.builder.load(slot), vector), slot)

    @contextmanager
    def loop(self, first, end):
        """Loop over ``first .. end - 1``; yields the index."""
        with cgutils.for_range_slice(self.builder, first, end, self.const(1)) as (index, _):
            yield index
