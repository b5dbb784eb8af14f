"""The largest sum of a rectangle in a table of two features.

Rectangles are searched by their first row, from the last one upwards. The best run of columns is found by Kadane's
algorithm, in vectors of rectangles that share the first row and differ in the last one. A rectangle is its first row's
part and a rectangle that begins in the next row (or nothing), so its sum is at most the best run of that row alone and
the best sum from the next row; most first rows are skipped by that bound.

    row p1       . . . r r r r .    at most the best run of this row alone
    row p1 + 1   . . . r r r r .    a rectangle that begins here: at most ``below``,
    row p1 + 2   . . . r r r r .    whatever there is of those that begin further down

Cost: P A / LANES vector steps for the bound, and as many for every first row that is not skipped.
Written as LLVM instructions, because LLVM does not find these vectors by itself.
Symbols: see layout.py; sums of rows ``p1 .. p2`` are differences of the table's entries ``p2 + 1`` and ``p1``.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from policytree.solvers.kernels.base.simd import VectorCode
from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.pricing.layout import N_ALL, N_BEFORE, N_INSIDE

RUNS = 16  # runs of columns that are followed side by side: two registers, as each waits for the one before


class _RunningSumCode(VectorCode):
    """Emits running sums along the columns of a table, LANES at a time."""

    def shifted(self, x, k):
        """The vector moved up by k lanes, with zeros below."""
        places = ir.VectorType(ir.IntType(32), self.lanes)
        lanes = [self.lanes - k + lane for lane in range(self.lanes)]  # the last ones of zeros, then those of x
        return self.builder.shuffle_vector(self.splat_const(0), x, ir.Constant(places, lanes))

    def last(self, x):
        """The last lane, in every lane."""
        places = ir.VectorType(ir.IntType(32), self.lanes)
        return self.builder.shuffle_vector(x, x, ir.Constant(places, [self.lanes - 1] * self.lanes))

    def emit(self):
        """Store the running sums of every column of one table in another one."""
        b, stride = self.builder, self.shape("table", 1)
        with self.loop(0, self["columns"]) as a:
            carried = self.variable(self.splat_const(0))
            with self.loop(0, stride, self.lanes) as p:
                at = self.at((a, stride), p)
                x = self.load("inside", at)
                # Sums of 1, 2, 4, then 8 neighbours:      a   b   c   d ...
                #                           moved by 1     a  ab  bc  cd
                #                           moved by 2     a  ab abc abcd
                for k in (1, 2, 4):
                    x = b.add(x, self.shifted(x, k))
                x = b.add(x, self.value(carried))
                self.store("table", at, x)
                self.set(carried, self.last(x))


@intrinsic
def running_sums(typingctx, inside, table, columns):
    """Running sums along the columns of ``inside``, to ``table``."""

    def codegen(context, builder, signature, args):
        _RunningSumCode(context, builder, signature, args, ("inside", "table", "columns")).emit()
        return context.get_dummy_value()

    return types.void(inside, table, columns), codegen


class _RunCode(VectorCode):
    """Emits Kadane's algorithm along the columns of a table, for RUNS sums of rows at a time."""

    def __init__(self, context, builder, signature, args, names):
        super().__init__(context, builder, signature, args, names, lanes=RUNS)

    def emit(self, before):
        """Store the best runs of the columns' entries less ``before(at, block)``, for blocks of RUNS entries."""
        b, zero = self.builder, self.splat_const(0)
        stride = self.shape("table", 1)
        with self.loop(self["first"], self["end"], RUNS) as block:
            total, best = self.variable(zero), self.variable(zero)
            with self.loop(0, self["columns"]) as a:
                at = b.mul(a, stride)
                value = b.sub(self.load("table", b.add(at, self.at(block, self.shift))), before(at, block))
                self.set(total, b.add(self.largest(self.value(total), zero), value))
                self.update(best, self.largest, self.value(total))
            self.store("best", block, self.value(best))


class _RowRunCode(_RunCode):
    """One row each: differences of neighbouring entries."""

    shift = 1

    def previous(self, at, block):
        """The entries before."""
        return self.load("table", self.builder.add(at, block))


class _RowsRunCode(_RunCode):
    """Rows from a first one on."""

    shift = 0

    def start(self, at, block):
        """The entry of the first row."""
        return self.splat(self.number("table", self.builder.add(at, self["row"])))


@intrinsic
def runs_of_rows(typingctx, table, columns, first, end, best):
    """The best run of columns in every row ``first .. end - 1``, or 0, in vectors of RUNS from ``first`` on."""

    def codegen(context, builder, signature, args):
        code = _RowRunCode(context, builder, signature, args, ("table", "columns", "first", "end", "best"))
        code.emit(code.previous)
        return context.get_dummy_value()

    return types.void(table, columns, first, end, best), codegen


@intrinsic
def runs_from_row(typingctx, table, columns, row, first, end, best):
    """The best run of columns in the rows from ``row`` to before each entry ``first .. end - 1``, or 0."""

    def codegen(context, builder, signature, args):
        code = _RowsRunCode(context, builder, signature, args, ("table", "columns", "row", "first", "end", "best"))
        code.emit(code.start)
        return context.get_dummy_value()

    return types.void(table, columns, row, first, end, best), codegen


def stride_of(height: int) -> int:
    """Length of a column of the table: an entry before every row and behind the last, in vectors of RUNS."""
    return (height // RUNS + 1) * RUNS


@kernel(separate=True)
def fill_table(rows, reduced_costs, stack, s, scratch):
    """Sums of the rows above every place, at level s as it was entered; open rows count if positive."""
    table, inside, index, cell = scratch.table, scratch.inside, stack.index[s], rows.cell
    before = stack.numbers[s, N_BEFORE]
    n_inside, n_all = stack.numbers[s, N_INSIDE] - before, stack.numbers[s, N_ALL] - before
    for q in range(n_inside, n_all):
        i = index[q]
        inside[np.int64(cell[i])] += max(reduced_costs[i], 0)
    running_sums(inside, table, rows.width)
    # ``inside`` is kept from level to level (enter_level), so that the open rows go out again.
    for q in range(n_inside, n_all):
        i = index[q]
        inside[np.int64(cell[i])] -= max(reduced_costs[i], 0)
    runs_of_rows(table, rows.width, 0, rows.height, scratch.of_row)


@kernel(separate=True)
def next_rectangle(rows, scratch, p1, below, floor):
    """The best rectangle that begins with row p1, or the next one above it, if its sum exceeds ``floor``.

    ``below``: no rectangle that begins in row p1 + 1 has more; one that begins further down may. Returns the first row,
    -1 if there is none; the rectangle and its sum stand in ``scratch.rectangle``.
    """
    table, of_row, best, found = scratch.table, scratch.of_row, scratch.best, scratch.rectangle
    height, width = rows.height, rows.width
    while p1 >= 0:
        below += of_row[p1]
        if of_row[p1] > 0 and below > floor:  # a row without positive sums begins no best rectangle
            runs_from_row(table, width, p1, (p1 + 1) // RUNS * RUNS, height + 1, best)
            end = p1 + 1
            for p in range(p1 + 2, height + 1):
                if best[p] > best[end]:
                    end = p
            below = best[end]
            if below > floor:
                break
        p1 -= 1
    if p1 < 0:
        return -1
    # The same algorithm once more, for the columns. Sums are integers, so that the best one is met exactly.
    total, start = 0, 0
    for a in range(width):
        if total <= 0:
            total = 0
            start = a
        total += table[a, end] - table[a, p1]
        if total == below:
            found[3] = a
            break
    found[0] = p1
    found[1] = end - 1
    found[2] = start
    found[4] = below
    return p1
