"""Values of depth two and three from blocks of pair sums.

Cost: a block of m rows takes one row of the block for each column that is on; a scan takes n * width steps in
vectors.
Symbols: see layout.py; ``s``, ``t`` say whether column k, j is on (1) or off (0).
"""

import numpy as np

from policytree.solvers.kernels.base.layout import INF, STOP, SWEEPS, TWO, i8, int_1d, long_1d
from policytree.solvers.kernels.binary.layout import UNKNOWN, Blocks, PairRows, PairScratch, Size, byte_2d, sums_2d
from policytree.solvers.kernels.binary.simd import add_rows_to_block, scan_less, scan_one, scan_three
from policytree.solvers.kernels.compiling import kernel


@kernel(takes=(byte_2d, long_1d, sums_2d, int_1d, int_1d))
def fill_products(on, losses, products, start, items):
    """Each row's loss beside the columns that are on (a row of ``on`` says which), and the list of those columns."""
    m, n = on.shape
    at = 0
    for i in range(m):
        start[i] = at
        for j in range(n):
            if on[i, j] != 0:
                products[i, j] = losses[i]
                items[at] = j
                at += 1
    start[m] = at


@kernel(takes=(sums_2d, int_1d, int_1d, long_1d))
def refill_products(products, start, items, losses):
    """The same for other losses of the same rows, whose columns that are on are listed."""
    for i in range(len(losses)):
        for s in range(start[i], start[i + 1]):
            products[i, items[s]] = losses[i]


@kernel(separate=True)
def fill(to, at, products, width, rows, a, b, start, items):
    """Add the blocks of rows[a:b] to the block at ``to[at]``; arrays are flat."""
    for i in range(a, b):
        r = np.int64(rows[i])
        add_rows_to_block(to, at, products, r * width, items, np.int64(start[r]), np.int64(start[r + 1]), width)


@kernel(separate=True)
def value_of_scan(out, diagonal, total, n, shift, penalty, roots, at):
    """Value of the best tree of depth two from a scan; roots[at + v]: the same with first split v."""
    best = (min(np.int64(0), total) << shift) + penalty
    low, high, off_low, off_high = out[0], out[1], out[2], out[3]
    for v in range(n):
        g = np.int64(diagonal[v])
        h = total - g
        a = min(np.int64(low[v]), g - np.int64(high[v]))
        b = min(np.int64(off_low[v]), h - np.int64(off_high[v]))
        x = min(min(np.int64(0), g) << shift, (a << shift) + penalty)
        y = min(min(np.int64(0), h) << shift, (b << shift) + penalty)
        z = x + y + 2 * penalty
        roots[at + v] = z
        best = min(best, z)
    return best


@kernel(separate=True)
def list_by_column(rows, a, b, start, items, n, first, listed):
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


@kernel(inline="always")
def part(x, a, b, total, s, t):
    """Sum of {a is s and b is t} from the sums of both on, of a on, of b on, and of all."""
    if s == 1:
        return x if t == 1 else a - x
    return b - x if t == 1 else total - a - b + x


@kernel(separate=True)
def ascending(values, at, n):
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


@kernel(takes=(int_1d, i8, PairRows, Blocks, PairScratch, Size, long_1d))
def open_two(rows, m, data, node, work, size, counters):
    """Blocks of sums and floors of a node's rows, and its best tree of depth two: returns its value.

    Without floors of the rows (length zero), there are none of the node.
    """
    products, floors, start = data.products, data.floors, data.start
    items, losses, keys = data.items, data.losses, data.keys
    G, F, one, low, totals = node.sums, node.floors, node.diagonal, node.floor_diagonal, node.totals
    out, junk, state = work.out, work.by_split, work.state
    n, width, shift, penalty = size.n, size.width, size.shift, size.penalty
    G[:] = 0
    F[:] = 0
    fill(G, 0, products, width, rows, 0, m, start, items)
    if len(floors) > 0:
        fill(F, 0, floors, width, rows, 0, m, start, items)
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
    counters[TWO] += 1
    scan_one(one, out, n, width, G, 0)
    return value_of_scan(out, one, totals[0], n, shift, penalty, junk, 0)


@kernel(takes=(int_1d, i8, PairRows, Blocks, PairScratch, Size, long_1d, long_1d, long_1d))
def open_three(rows, m, data, node, work, size, counters, control, columns):
    """Both sides of first splits of an opened node, solved to depth two; returns the best sum and its column.

    ``columns`` are the first splits. Where the node has room for one block only, each takes the place of the one before
    (then nothing deeper can be searched).
    """
    products, start, items, keys = data.products, data.start, data.items, data.keys
    G, J, one, K, V2, R = node.sums, node.sums_on, node.diagonal, node.keys_on, node.two, node.two_by_split
    V3, root3, P, first, listed, totals = (
        node.three,
        node.three_splits,
        node.pair_values,
        node.first,
        node.listed,
        node.totals,
    )
    diagonal, out = work.diagonal, work.out
    n, width, shift, penalty = size.n, size.width, size.shift, size.penalty
    block = n * width
    apart = block if len(J) >= n * block else 0  # from one column's block to the next
    list_by_column(rows, 0, m, start, items, n, first, listed)
    if node.literal < 0:
        P[:] = UNKNOWN
    V3[:] = UNKNOWN
    root3[:] = -1
    best = INF
    at = -1
    for k in range(len(columns)):
        j = columns[k]
        if control[STOP] != 0:
            return INF, -1
        K[0, j] = 0
        K[1, j] = 0
        for i in range(first[j], first[j + 1]):
            K[0, j] += keys[0, listed[i]]
            K[1, j] += keys[1, listed[i]]
        own = J[j * apart : j * apart + block]
        own[:] = 0
        fill(own, 0, products, width, listed, first[j], first[j + 1], start, items)
        row = G[j * width : (j + 1) * width]
        scan_one(row, out, n, width, own, 0)
        g = np.int64(one[j])
        V2[n + j] = value_of_scan(out, row, g, n, shift, penalty, R, (n + j) * n)
        for u in range(width):
            diagonal[u] = one[u] - row[u]
        scan_less(diagonal, out, n, width, G, 0, own, 0)
        V2[j] = value_of_scan(out, diagonal, totals[0] - g, n, shift, penalty, R, j * n)
        counters[TWO] += 2
        v = V2[j] + V2[n + j]
        if v < best:
            best = v
            at = j
    return best, at


@kernel(takes=(int_1d, PairRows, i8))
def best_column(rows, data, n):
    """The best split of some rows into two leaves: the sum of its losses and its column, -1 where a leaf is as good."""
    items, start, losses = data.items, data.start, data.losses
    on = np.zeros(n, np.int64)
    total = np.int64(0)
    for i in range(len(rows)):
        r = rows[i]
        total += losses[r]
        for s in range(start[r], start[r + 1]):
            on[items[s]] += losses[r]
    best, at = min(np.int64(0), total), -1
    for j in range(n):
        value = min(np.int64(0), on[j]) + min(np.int64(0), total - on[j])
        if value < best:
            best, at = value, j
    return best, at


@kernel(separate=True)
def pair_value(k, s, j, t, data, node, work, size, counters):
    """Best tree of depth two of the node's rows with column k on or off (s) and column j on or off (t).

    work.sums_both holds the blocks of the rows with both on, for one k at a time; work.state says which k, and which j.
    """
    products, start, items = data.products, data.start, data.items
    G, F, J, one = node.sums, node.floors, node.sums_on, node.diagonal
    P, first, listed, totals = node.pair_values, node.first, node.listed, node.totals
    T, complement, diagonal, out = work.sums_both, work.complement, work.diagonal, work.out
    junk, pair_first, pair_listed, state = work.by_split, work.pair_first, work.pair_listed, work.state
    n, width, shift, penalty = size.n, size.width, size.shift, size.penalty
    at = 2 * n * (s * n + k) + t * n + j
    if P[at] != UNKNOWN:
        return P[at]
    x = k * width + j
    g = part(np.int64(G[x]), np.int64(one[k]), np.int64(one[j]), totals[0], s, t)
    f = part(np.int64(F[x]), np.int64(node.floor_diagonal[k]), np.int64(node.floor_diagonal[j]), totals[1], s, t)
    leaf = (min(np.int64(0), g) << shift) + penalty
    if leaf <= (f << shift) + 2 * penalty:
        value = leaf
    else:
        block = n * width
        if state[0] != k:
            state[:] = 0
            state[0] = k
            list_by_column(listed, first[k], first[k + 1], start, items, n, pair_first, pair_listed)
            for i in range(block):
                complement[i] = G[i] - J[k * block + i]
        if state[1 + j] == 0:
            state[1 + j] = 1
            for i in range(j * block, (j + 1) * block):
                T[i] = 0
            counters[SWEEPS] += 1
            fill(T, j * block, products, width, pair_listed, pair_first[j], pair_first[j + 1], start, items)
        counters[TWO] += 1
        both = J[k * block + j * width : k * block + (j + 1) * width]  # diagonal of the rows with both on
        if s == 1 and t == 1:
            for u in range(width):
                diagonal[u] = both[u]
            scan_one(diagonal, out, n, width, T, j * block)
        elif s == 1:
            for u in range(width):
                diagonal[u] = G[k * width + u] - both[u]
            scan_less(diagonal, out, n, width, J, k * block, T, j * block)
        elif t == 1:
            for u in range(width):
                diagonal[u] = G[j * width + u] - both[u]
            scan_less(diagonal, out, n, width, J, j * block, T, j * block)
        else:
            for u in range(width):
                diagonal[u] = one[u] - G[k * width + u] - G[j * width + u] + both[u]
            scan_three(diagonal, out, n, width, complement, 0, J, j * block, T, j * block)
        value = value_of_scan(out, diagonal, g, n, shift, penalty, junk, 0)
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
