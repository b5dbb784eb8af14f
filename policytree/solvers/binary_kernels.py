"""Kernels of the exact search for two actions and two-valued columns: whole blocks of pair sums instead of tables.

A column is *on* where its rarer code is. ``G[u, v]`` of a set of rows is the sum of their losses (action 1 less action
0) where columns u and v are both on; its diagonal holds the sums of single columns. ``G`` alone gives the best tree of
depth two for every first split: inside {v on} a second split u leaves ``G[u, v]`` and ``G[v, v] - G[u, v]``, inside
{v off} it leaves ``G[u, u] - G[u, v]`` and the rest, so least and largest entries are all there is to keep. Blocks are
additive over rows: of the four sets that two columns k, j make of a set A, only the rows with both on are ever added
up; the other three blocks are differences of the blocks of A, of {k on} and of {j on}. That is what depth four costs:
one short sum and four scans for each pair of columns.

Blocks have the smallest type that holds every sum exactly; values of trees are int64 with the penalty ``lam``.
Literals are numbered column, and n + column where it is on.
"""

from typing import NamedTuple

import numba as nb
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

BYTES = 64  # of a vector
AT_ONCE = 6  # vectors of a row that are added at once
UNKNOWN = -(1 << 61)
INF = 1 << 60
S_STOP, S_SIMILAR, S_CACHE, S_LOOK_AHEAD = 0, 1, 2, 3  # the control array
C_NODES, C_CUTS, C_TWO, C_HITS, C_SWEEPS = 0, 1, 2, 3, 4  # counters
H_KEY1, H_KEY2, H_VALUE, H_ROOT, H_EXACT = 0, 1, 2, 3, 4  # columns of the cache of sides solved to depth three
N_CACHE = 5


class Size(NamedTuple):
    """Columns, their number padded to whole vectors, bits by which sums are shifted, and the penalty of a leaf."""

    n: int
    width: int
    shift: int
    lam: int


class Rows(NamedTuple):
    """The rows of a problem."""

    products: np.ndarray  # (m * width): a row's loss where a column is on
    floors: np.ndarray  # the same, not above zero
    items: np.ndarray  # the columns that are on: items[start[i] : start[i + 1]]
    start: np.ndarray
    losses: np.ndarray  # (m)
    on: np.ndarray  # (n, m)
    keys: np.ndarray  # (2, m), random: their sums identify a set of rows


class Upper(NamedTuple):
    """Sums, floors and values of pairs of a larger set of rows, as in :class:`Blocks`."""

    G: np.ndarray
    F: np.ndarray
    one: np.ndarray
    low: np.ndarray
    totals: np.ndarray
    P: np.ndarray


class Blocks(NamedTuple):
    """What is known of one node."""

    G: np.ndarray  # (n * width): sums of pairs
    F: np.ndarray  # the same of losses below zero: what these rows cost at least
    J: np.ndarray  # (n * n * width): the block of the rows where each column is on
    one: np.ndarray  # (width): diagonal of G
    low: np.ndarray  # (width): diagonal of F
    totals: np.ndarray  # (4): sums of losses, of floors, and of both keys
    K: np.ndarray  # (2, n): sums of keys where a column is on
    V2: np.ndarray  # (2 n): value of depth two of each literal's rows
    R: np.ndarray  # (2 n * n): the same by first split
    V3: np.ndarray  # (2 n): bounds of depth three
    root3: np.ndarray  # (2 n): first splits there
    P: np.ndarray  # (2 n * 2 n): values of depth two for pairs of literals, UNKNOWN where not met
    first: np.ndarray  # the rows where column j is on: listed[first[j] : first[j + 1]]
    listed: np.ndarray
    cube: np.ndarray  # (2 n * 2 n * 2 n): P of all nodes that are one literal's rows, shared by all searches
    literal: int  # this node's literal; -1: the node has a P of its own
    upper: Upper  # the root, where this node is one literal's rows


class Scratch(NamedTuple):
    """Arrays of one worker; see :func:`_pair_value`."""

    T: np.ndarray  # (n * n * width)
    complement: np.ndarray  # (n * width)
    diagonal: np.ndarray  # (width)
    out: np.ndarray  # (4, width)
    junk: np.ndarray  # (n)
    pair_first: np.ndarray  # (n + 1)
    pair_listed: np.ndarray
    state: np.ndarray  # (n + 1)


def _vector_of(array):
    """LLVM's vector type for an array's numbers, how many it holds, and their size in bytes."""
    size = array.dtype.bitwidth // 8
    return ir.VectorType(ir.IntType(array.dtype.bitwidth), BYTES // size), BYTES // size, size


@intrinsic
def _add_rows(typingctx, to, to_at, what, what_at, items, a, b, width):
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


_scan_one, _scan_less, _scan_three = _scan_of(1), _scan_of(1, -1), _scan_of(1, -1, 1)


@nb.njit(cache=True, nogil=True, error_model="numpy")
def fill_products(codes, losses, rare, products, start, items, on):
    """Each row's loss beside the columns that are on, and the list of those columns."""
    n, m = codes.shape
    at = 0
    for i in range(m):
        start[i] = at
        for j in range(n):
            here = codes[j, i] == rare[j]
            on[j, i] = here
            if here:
                products[i, j] = losses[i]
                items[at] = j
                at += 1
    start[m] = at


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _fill(to, at, products, width, rows, a, b, start, items):
    """Add the blocks of rows[a:b] to the block at ``to[at]``; arrays are flat."""
    for i in range(a, b):
        r = np.int64(rows[i])
        _add_rows(to, at, products, r * width, items, np.int64(start[r]), np.int64(start[r + 1]), width)


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _value(out, diagonal, total, n, shift, lam, roots, at):
    """Value of the best tree of depth two from a scan; roots[at + v]: the same with first split v."""
    best = (min(np.int64(0), total) << shift) + lam
    low, high, off_low, off_high = out[0], out[1], out[2], out[3]
    for v in range(n):
        g = np.int64(diagonal[v])
        h = total - g
        a = min(np.int64(low[v]), g - np.int64(high[v]))
        b = min(np.int64(off_low[v]), h - np.int64(off_high[v]))
        x = min(min(np.int64(0), g) << shift, (a << shift) + lam)
        y = min(min(np.int64(0), h) << shift, (b << shift) + lam)
        z = x + y + 2 * lam
        roots[at + v] = z
        best = min(best, z)
    return best


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _by_column(rows, a, b, start, items, n, first, listed):
    """List the rows[a:b] of every column: listed[first[j] : first[j + 1]]."""
    for j in range(n + 1):
        first[j] = 0
    for i in range(a, b):
        r = rows[i]
        for s in range(start[r], start[r + 1]):
            first[items[s]] += 1
    at = 0
    for j in range(n):
        x = first[j]
        first[j] = at
        at += x
    for i in range(a, b):
        r = rows[i]
        for s in range(start[r], start[r + 1]):
            j = items[s]
            listed[first[j]] = r
            first[j] += 1
    for j in range(n, 0, -1):
        first[j] = first[j - 1]
    first[0] = 0


@nb.njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _part(x, a, b, total, s, t):
    """Sum of {a is s and b is t} from the sums of both on, of a on, of b on, and of all."""
    if s == 1:
        return x if t == 1 else a - x
    return b - x if t == 1 else total - a - b + x


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _sort(values, at, n):
    """Order of ``n`` values from ``at`` on, ascending (insertion sort: ties keep their order)."""
    order = np.empty(n, np.int64)
    for i in range(n):
        v = values[at + i]
        j = i
        while j > 0 and values[at + order[j - 1]] > v:
            order[j] = order[j - 1]
            j -= 1
        order[j] = i
    return order


@nb.njit(cache=True, nogil=True, error_model="numpy")
def open_two(rows, m, data, node, work, size, counters):
    """Blocks of sums and floors of a node's rows, and its best tree of depth two: returns its value."""
    products, floors, start = data.products, data.floors, data.start
    items, losses, keys = data.items, data.losses, data.keys
    G, F, one, low, totals = node.G, node.F, node.one, node.low, node.totals
    out, junk, state = work.out, work.junk, work.state
    n, width, shift, lam = size.n, size.width, size.shift, size.lam
    G[:] = 0
    F[:] = 0
    _fill(G, 0, products, width, rows, 0, m, start, items)
    _fill(F, 0, floors, width, rows, 0, m, start, items)
    totals[:] = 0
    for i in range(m):
        r = rows[i]
        totals[0] += losses[r]
        totals[1] += min(losses[r], 0)
        totals[2] += keys[0, r]
        totals[3] += keys[1, r]
    one[:] = 0
    low[:] = 0
    for j in range(n):
        one[j] = G[j * width + j]
        low[j] = F[j * width + j]
    state[0] = -1
    counters[C_TWO] += 1
    _scan_one(one, out, n, width, G, 0)
    return _value(out, one, totals[0], n, shift, lam, junk, 0)


@nb.njit(cache=True, nogil=True, error_model="numpy")
def open_three(rows, m, data, node, work, size, counters, control):
    """Both sides of every first split of an opened node, solved to depth two; returns the best sum and its column."""
    products, start, items, keys = data.products, data.start, data.items, data.keys
    G, J, one, K, V2, R = node.G, node.J, node.one, node.K, node.V2, node.R
    V3, root3, P, first, listed, totals = node.V3, node.root3, node.P, node.first, node.listed, node.totals
    diagonal, out = work.diagonal, work.out
    n, width, shift, lam = size.n, size.width, size.shift, size.lam
    block = n * width
    _by_column(rows, 0, m, start, items, n, first, listed)
    if node.literal < 0:
        P[:] = UNKNOWN
    V3[:] = UNKNOWN
    root3[:] = -1
    best = INF
    at = -1
    for j in range(n):
        if control[S_STOP] != 0:
            return INF, -1
        K[0, j] = 0
        K[1, j] = 0
        for i in range(first[j], first[j + 1]):
            K[0, j] += keys[0, listed[i]]
            K[1, j] += keys[1, listed[i]]
        own = J[j * block : (j + 1) * block]
        own[:] = 0
        _fill(own, 0, products, width, listed, first[j], first[j + 1], start, items)
        row = G[j * width : (j + 1) * width]
        _scan_one(row, out, n, width, own, 0)
        g = np.int64(one[j])
        V2[n + j] = _value(out, row, g, n, shift, lam, R, (n + j) * n)
        for u in range(width):
            diagonal[u] = one[u] - row[u]
        _scan_less(diagonal, out, n, width, G, 0, own, 0)
        V2[j] = _value(out, diagonal, totals[0] - g, n, shift, lam, R, j * n)
        counters[C_TWO] += 2
        v = V2[j] + V2[n + j]
        if v < best:
            best = v
            at = j
    return best, at


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _pair_value(k, s, j, t, data, node, work, size, counters):
    """Best tree of depth two of the node's rows with column k on or off (s) and column j on or off (t).

    T holds the blocks of the rows with both on, for one k at a time; ``state`` says which k, and which j are there.
    """
    products, start, items = data.products, data.start, data.items
    G, F, J, one = node.G, node.F, node.J, node.one
    P, first, listed, totals = node.P, node.first, node.listed, node.totals
    T, complement, diagonal, out = work.T, work.complement, work.diagonal, work.out
    junk, pair_first, pair_listed, state = work.junk, work.pair_first, work.pair_listed, work.state
    n, width, shift, lam = size.n, size.width, size.shift, size.lam
    at = 2 * n * (s * n + k) + t * n + j
    if P[at] != UNKNOWN:
        return P[at]
    x = k * width + j
    g = _part(np.int64(G[x]), np.int64(one[k]), np.int64(one[j]), totals[0], s, t)
    f = _part(np.int64(F[x]), np.int64(node.low[k]), np.int64(node.low[j]), totals[1], s, t)
    leaf = (min(np.int64(0), g) << shift) + lam
    if leaf <= (f << shift) + 2 * lam:
        value = leaf
    else:
        block = n * width
        if state[0] != k:
            state[:] = 0
            state[0] = k
            _by_column(listed, first[k], first[k + 1], start, items, n, pair_first, pair_listed)
            for i in range(block):
                complement[i] = G[i] - J[k * block + i]
        if state[1 + j] == 0:
            state[1 + j] = 1
            for i in range(j * block, (j + 1) * block):
                T[i] = 0
            counters[C_SWEEPS] += 1
            _fill(T, j * block, products, width, pair_listed, pair_first[j], pair_first[j + 1], start, items)
        counters[C_TWO] += 1
        both = J[k * block + j * width : k * block + (j + 1) * width]  # diagonal of the rows with both on
        if s == 1 and t == 1:
            for u in range(width):
                diagonal[u] = both[u]
            _scan_one(diagonal, out, n, width, T, j * block)
        elif s == 1:
            for u in range(width):
                diagonal[u] = G[k * width + u] - both[u]
            _scan_less(diagonal, out, n, width, J, k * block, T, j * block)
        elif t == 1:
            for u in range(width):
                diagonal[u] = G[j * width + u] - both[u]
            _scan_less(diagonal, out, n, width, J, j * block, T, j * block)
        else:
            for u in range(width):
                diagonal[u] = one[u] - G[k * width + u] - G[j * width + u] + both[u]
            _scan_three(diagonal, out, n, width, complement, 0, J, j * block, T, j * block)
        value = _value(out, diagonal, g, n, shift, lam, junk, 0)
    a = s * n + k
    b = t * n + j
    P[2 * n * a + b] = value
    P[2 * n * b + a] = value
    if node.literal >= 0:  # the same rows, whichever literal comes first
        c = node.literal
        cube, N = node.cube, 2 * n
        cube[(a * N + b) * N + c] = value
        cube[(a * N + c) * N + b] = value
        cube[(b * N + a) * N + c] = value
        cube[(b * N + c) * N + a] = value
    return value


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _pair_bounds(k, s, node, size, control, bounds):
    """Bounds of the same for every column j, bounds[t * n + j].

    The value where it is known; else a leaf or two leaves, and larger sets less what their other rows can cost: each
    column's own side, and the root's pair.
    """
    G, F, one, low, V2, P, totals = node.G, node.F, node.one, node.low, node.V2, node.P, node.totals
    n, width, shift, lam = size.n, size.width, size.shift, size.lam
    g_on, f_on = np.int64(one[k]), np.int64(low[k])
    gs = g_on if s == 1 else totals[0] - g_on
    fs = f_on if s == 1 else totals[1] - f_on
    side = s * n + k
    up = node.upper
    us = np.int64(up.one[k] - up.low[k])
    us = us if s == 1 else up.totals[0] - up.totals[1] - us
    above = V2[side] if control[S_SIMILAR] != 0 else UNKNOWN
    look_ahead = control[S_LOOK_AHEAD] != 0
    for j in range(n):
        gj, fj = np.int64(one[j]), np.int64(low[j])
        g1 = (1 - s) * gj + (2 * s - 1) * np.int64(G[k * width + j])
        f1 = (1 - s) * fj + (2 * s - 1) * np.int64(F[k * width + j])
        g0 = gs - g1
        f0 = fs - f1
        x = max(P[2 * n * side + j], above - ((g1 - f1) << shift))
        y = max(P[2 * n * side + n + j], above - ((g0 - f0) << shift))
        if control[S_SIMILAR] != 0:
            x = max(x, V2[j] - ((totals[0] - gj - g0 - totals[1] + fj + f0) << shift))
            y = max(y, V2[n + j] - ((gj - g1 - fj + f1) << shift))
            if node.literal >= 0:  # the root's pair, less what its rows elsewhere can cost
                q1 = (1 - s) * np.int64(up.one[j] - up.low[j]) + (2 * s - 1) * np.int64(
                    up.G[k * width + j] - up.F[k * width + j]
                )
                q0 = us - q1
                x = max(x, up.P[2 * n * side + j] - ((q0 - g0 + f0) << shift))
                y = max(y, up.P[2 * n * side + n + j] - ((q1 - g1 + f1) << shift))
        two = lam if look_ahead else 0
        x = max(x, min(min(np.int64(0), g0) << shift, (f0 << shift) + two) + lam)
        y = max(y, min(min(np.int64(0), g1) << shift, (f1 << shift) + two) + lam)
        bounds[j] = x
        bounds[n + j] = y


@nb.njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True)
def bound_across(k, s, V, node, size):
    """Bound for the rows with column k on or off (s) from the bounds V of all other literals' rows.

    Rows that leave those cost their most, rows that come their least.
    """
    G, F, one, low, totals = node.G, node.F, node.one, node.low, node.totals
    n, width, shift = size.n, size.width, size.shift
    best = UNKNOWN
    g_on, f_on = np.int64(one[k]), np.int64(low[k])
    gs = g_on if s == 0 else totals[0] - g_on  # the other side
    fs = f_on if s == 0 else totals[1] - f_on
    for j in range(n):
        fj = np.int64(low[j])
        g1 = s * np.int64(one[j]) + (1 - 2 * s) * np.int64(G[k * width + j])
        f1 = s * fj + (1 - 2 * s) * np.int64(F[k * width + j])
        g0 = gs - g1
        f0 = fs - f1
        best = max(best, V[j] + ((fj - f1 - g0 + f0) << shift))
        best = max(best, V[n + j] + ((totals[1] - fj - f0 - g1 + f1) << shift))
    return best


@nb.njit(cache=True, nogil=True, error_model="numpy")
def solve_four(columns, three, best, data, node, work, size, cache, counters, control):
    """Best of an opened node's columns as the first of four splits; ``three``: the node's own value of depth three.

    Returns the best value below ``best`` and its column (-1: none), and a bound for the other columns. V3 gets bounds
    of both sides of every column, exact where their sum is below ``best``, and root3 the splits there (-1: depth two
    is enough).
    """
    one, K, V2 = node.one, node.K, node.V2
    R, V3, root3, totals = node.R, node.V3, node.root3, node.totals
    n, shift, lam = size.n, size.shift, size.lam
    found = -1
    left_out = INF
    bound = np.empty(2, np.int64)
    pairs = np.empty(2 * n, np.int64)
    for k in columns:
        for s in range(2):
            gk, fk = np.int64(one[k]), np.int64(node.low[k])
            f = fk if s == 1 else totals[1] - fk
            low = max(V3[s * n + k], min(V2[s * n + k], (f << shift) + 4 * lam))
            if control[S_SIMILAR] != 0:
                most = gk - fk if s == 0 else totals[0] - totals[1] - (gk - fk)  # what the rows elsewhere can cost
                low = max(low, three - (most << shift))
                low = max(low, bound_across(k, s, V3, node, size))
            bound[s] = low
        for z in range(2):
            s = 1 - z
            side = s * n + k
            budget = best - bound[z]
            if bound[s] >= budget:
                break
            key1 = K[0, k] if s == 1 else totals[2] - K[0, k]
            key2 = K[1, k] if s == 1 else totals[3] - K[1, k]
            h = key1 & (cache.shape[0] - 1)
            if control[S_CACHE] != 0 and cache[h, H_KEY1] == key1 and cache[h, H_KEY2] == key2:
                bound[s] = max(bound[s], cache[h, H_VALUE])
                if cache[h, H_EXACT] != 0 or cache[h, H_VALUE] >= budget:
                    counters[C_HITS] += 1
                    root3[side] = cache[h, H_ROOT]
                    continue
            counters[C_NODES] += 1
            value = V2[side]
            root = -1
            rest = INF
            order = _sort(R, side * n, n)
            _pair_bounds(k, s, node, size, control, pairs)
            for i in range(n):
                j = order[i]
                if j == k:
                    continue
                if control[S_STOP] != 0:
                    return INF, -1, -INF
                off, on = pairs[j], pairs[n + j]
                limit = min(value, budget)
                if off + on < limit:
                    counters[C_CUTS] += 1
                    on = _pair_value(k, s, j, 1, data, node, work, size, counters)
                    if off + on < limit:
                        off = _pair_value(k, s, j, 0, data, node, work, size, counters)
                v = off + on
                if v < limit:
                    value = v
                    root = j
                else:
                    rest = min(rest, v)
            exact = value < budget
            bound[s] = value if exact else max(bound[s], min(value, rest))
            root3[side] = root
            cache[h, H_KEY1] = key1
            cache[h, H_KEY2] = key2
            cache[h, H_VALUE] = bound[s]
            cache[h, H_ROOT] = root
            cache[h, H_EXACT] = exact
        V3[k] = bound[0]
        V3[n + k] = bound[1]
        v = bound[0] + bound[1]
        if v < best:
            best = v
            found = k
        else:
            left_out = min(left_out, v)
    return best, found, left_out
