"""Vectors of integers, written as LLVM instructions where LLVM does not find them by itself."""

from contextlib import contextmanager

from llvmlite import ir
from numba import types
from numba.core import cgutils

from policytree.solvers.kernels.base.layout import LANES

LONG = ir.IntType(64)


class VectorCode:
    """Emits vector instructions of one intrinsic; ``names`` are those of its arguments that are no tuples.

    Arguments are numbers and arrays in C order, by name; the fields of a tuple count as arguments of their own. An
    array's numbers are addressed by their place in memory, whatever its dimensions; ``shape(name, k)`` are its lengths.
    Vectors have so many ``lanes`` of so many ``bits``, unless another type of vectors is given.
    """

    def __init__(self, context, builder, signature, args, names, bits=64, lanes=LANES):
        self.builder, self.context, self.lanes = builder, context, lanes
        self.data, self.shapes, self.unsigned = {}, {}, set()
        self.vector = ir.VectorType(ir.IntType(bits), lanes)
        names = iter(names)
        for ty, value in zip(signature.args, args, strict=True):
            if isinstance(ty, types.BaseNamedTuple):
                for k, (field, part) in enumerate(zip(ty.fields, ty, strict=True)):
                    self._take(field, part, builder.extract_value(value, k))
            else:
                self._take(next(names), ty, value)

    def _take(self, name, ty, value):
        if isinstance(ty, types.Array):
            array = self.context.make_array(ty)(self.context, self.builder, value)
            self.data[name] = array.data
            self.shapes[name] = cgutils.unpack_tuple(self.builder, array.shape)
            if not getattr(ty.dtype, "signed", True):
                self.unsigned.add(name)
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
        """The sum of products of numbers: ``at((d, width), k)`` is ``d * width + k``; integers are known now."""
        total = None
        for term in terms:
            x = self.builder.mul(*map(self._long, term)) if isinstance(term, tuple) else self._long(term)
            total = x if total is None else self.builder.add(total, x)
        return total

    def _long(self, x):
        return self.const(x) if isinstance(x, int) else x

    def number(self, name, index):
        """A number of an array, as int64."""
        x = self.builder.load(self.builder.gep(self.data[name], [index]))
        if x.type == LONG:
            return x
        return self.builder.zext(x, LONG) if name in self.unsigned else self.builder.sext(x, LONG)

    def natural(self, name, index):
        """A number of an array that is never negative, as int64: it costs less than :meth:`number`."""
        x = self.builder.load(self.builder.gep(self.data[name], [index]))
        return x if x.type == LONG else self.builder.zext(x, LONG)

    def put_number(self, name, index, value):
        """Store a number."""
        self.builder.store(value, self.builder.gep(self.data[name], [index]))

    # --- vectors ---

    def _pointer(self, name, index, kind):
        return self.builder.bitcast(self.builder.gep(self.data[name], [index]), kind.as_pointer())

    def load(self, name, index, kind=None):
        """The vector of an array that begins at a number."""
        kind = kind or self.vector
        return self.builder.load(self._pointer(name, index, kind), align=kind.element.width // 8)

    def store(self, name, index, vector):
        """Put a vector into an array, from a number on."""
        kind = vector.type
        self.builder.store(vector, self._pointer(name, index, kind), align=kind.element.width // 8)

    def splat(self, number, kind=None):
        """A number in every lane."""
        kind = kind or self.vector
        if number.type.width > kind.element.width:
            number = self.builder.trunc(number, kind.element)
        undefined, places = ir.Constant(kind, ir.Undefined), ir.VectorType(ir.IntType(32), kind.count)
        first = self.builder.insert_element(undefined, number, ir.Constant(ir.IntType(32), 0))
        return self.builder.shuffle_vector(first, undefined, ir.Constant(places, [0] * kind.count))

    def splat_const(self, k, kind=None):
        """A number that is known now, in every lane."""
        kind = kind or self.vector
        return ir.Constant(kind, [k] * kind.count)

    def least(self, a, b):
        """The smaller one, lane by lane."""
        return self.builder.select(self.builder.icmp_signed("<", a, b), a, b)

    def largest(self, a, b):
        """The larger one, lane by lane."""
        return self.builder.select(self.builder.icmp_signed(">", a, b), a, b)

    def count_ones(self, words):
        """Bits that are set in each of eight words."""
        name = f"llvm.ctpop.v{LANES}i64"
        kind = ir.FunctionType(self.vector, [self.vector])
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        return self.builder.call(function, [words])

    # --- variables and loops ---

    def variable(self, value):
        """A place in a register, set to a value here."""
        slot = cgutils.alloca_once(self.builder, value.type)
        self.builder.store(value, slot)
        return slot

    def value(self, slot):
        """Load a variable."""
        return self.builder.load(slot)

    def set(self, slot, value):
        """Give a variable a value."""
        self.builder.store(value, slot)

    def update(self, slot, operation, vector):
        """Replace a variable by ``operation(variable, vector)``."""
        self.builder.store(operation(self.builder.load(slot), vector), slot)

    @contextmanager
    def loop(self, first, end, step=1):
        """Loop over ``first .. end - 1``; yields the index."""
        with cgutils.for_range_slice(self.builder, self._long(first), end, self.const(step)) as (index, _):
            yield index
