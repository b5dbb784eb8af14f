"""Rows that stream by: their values are added up by the codes of two or three features; and the leaves they reach.

A table of two features holds, for every pair of codes, the sums of the rows' values; one of three features holds such a
table for every code of the first. Tables of parts of the rows add up to the tables of all rows, so rows may come in any
order and from anywhere. Sums are int64: exact whatever the order.

Rows of a table of three features are first put in the order of the first feature's code. Then all that is added to at
a time is one table of two features, which fits the processor's nearest cache.

Cost: one addition a row for each table and each value.
Symbols: m rows, p features, V values of a row; R, W codes of the features of a table.
"""

import numpy as np
from numba import types

from policytree.solvers.kernels.base.layout import INF, i8, long_1d, long_2d, long_3d, long_4d
from policytree.solvers.kernels.compiling import OneOf, kernel

BLOCK = 1 << 15  # rows added to one table before the next: their codes and values stay in the second cache

#: Codes of rows as they stand on the disk, (features, rows).
Codes = OneOf({"uint8": types.uint8[:, ::1], "uint16": types.uint16[:, ::1]})
bytes_2d = types.uint8[:, ::1]


@kernel
def add_pair(x, y, width, values, first, last, to):
    """Add the values (rows, V) of rows ``first`` .. ``last`` to a flat table of cells (code of x, code of y, value)."""
    V = values.shape[1]
    W = np.uint64(width)
    for i in range(first, last):
        at = (np.uint64(x[i]) * W + np.uint64(y[i])) * np.uint64(V)
        for k in range(V):
            to[at + np.uint64(k)] += values[i, k]


@kernel
def add_one_pair(x, y, width, values, first, last, to):
    """The same of one value (rows,)."""
    W = np.uint64(width)
    for i in range(first, last):
        to[np.uint64(x[i]) * W + np.uint64(y[i])] += values[i]


@kernel
def add_two_pairs(x, y, z, widths, values, first, last, to, other):
    """The same to the tables of x and y and of x and z: a code and a value are loaded for two additions."""
    Y = np.uint64(widths[0])
    Z = np.uint64(widths[1])
    for i in range(first, last):
        code = np.uint64(x[i])
        value = values[i]
        to[code * Y + np.uint64(y[i])] += value
        other[code * Z + np.uint64(z[i])] += value


@kernel(separate=True)
def add_to_tables(codes, values, bins, pairs, starts, rows, at, tables):
    """Add rows ``rows[0]`` .. ``rows[1]`` to the tables of all pairs, two at a time that share their first feature.

    ``at``: the part of every table to add to, by the code of a third feature; its size is that of the pair's table.
    """
    m, V = values.shape
    one = values.reshape(m * V)
    first, last = rows
    k = 0
    while k < len(pairs):
        f, g = pairs[k]
        size = bins[f] * bins[g] * V
        to = tables[starts[k] + at * size : starts[k] + (at + 1) * size]
        if V == 1 and k + 1 < len(pairs) and pairs[k + 1, 0] == f:
            h = pairs[k + 1, 1]
            size = bins[f] * bins[h]
            other = tables[starts[k + 1] + at * size : starts[k + 1] + (at + 1) * size]
            add_two_pairs(codes[f], codes[g], codes[h], (bins[g], bins[h]), one, first, last, to, other)
            k += 2
        elif V == 1:
            add_one_pair(codes[f], codes[g], bins[g], one, first, last, to)
            k += 1
        else:
            add_pair(codes[f], codes[g], bins[g], values, first, last, to)
            k += 1


@kernel(takes=(Codes, long_2d, long_1d, long_2d, long_1d, long_1d))
def add_pairs(codes, values, bins, pairs, starts, tables):
    """Add rows to the tables of pairs of features.

    ``values`` (m, V); ``pairs`` (n_pairs, 2); the cells of pair k begin at ``tables[starts[k]]`` and end at
    ``starts[k + 1]``.
    """
    m = codes.shape[1]
    for first in range(0, m, BLOCK):
        last = min(first + BLOCK, m)
        add_to_tables(codes, values, bins, pairs, starts, (first, last), 0, tables)


@kernel
def rows_by_code(x, n_codes):
    """Rows in the order of a feature's code, and where each code begins."""
    begins = np.zeros(n_codes + 1, np.int64)
    for i in range(len(x)):
        begins[np.int64(x[i]) + 1] += 1
    for c in range(n_codes):
        begins[c + 1] += begins[c]
    at = begins[:n_codes].copy()
    order = np.empty(len(x), np.int32)
    for i in range(len(x)):
        c = np.int64(x[i])
        order[at[c]] = i
        at[c] += 1
    return order, begins


@kernel(takes=(Codes, long_2d, long_1d, i8, long_2d, long_1d, long_1d))
def add_triples(codes, values, bins, f, pairs, starts, tables):
    """Add rows to tables of three features, the first of which is ``f``.

    ``pairs`` (n_pairs, 2): the other two; the cells of k (code of f, code, code, value) begin at ``tables[starts[k]]``.
    """
    p, m = codes.shape
    V = values.shape[1]
    order, begins = rows_by_code(codes[f], bins[f])
    needed = np.zeros(p, np.bool_)
    for k in range(len(pairs)):
        needed[pairs[k, 0]] = True
        needed[pairs[k, 1]] = True
    x = np.empty_like(codes)
    for g in range(p):
        if needed[g]:
            from_, to = codes[g], x[g]
            for i in range(m):
                to[i] = from_[order[i]]
    v = np.empty((m, V), np.int64)
    for i in range(m):
        for k in range(V):
            v[i, k] = values[order[i], k]
    for c in range(bins[f]):
        for first in range(begins[c], begins[c + 1], BLOCK):
            last = min(first + BLOCK, begins[c + 1])
            add_to_tables(x, v, bins, pairs, starts, (first, last), c, tables)


@kernel(takes=(Codes, long_1d, bytes_2d, long_2d, long_1d))
def find_leaves(codes, feature, goes_left, children, leaves):
    """Write down the node (m,) in which every row ends.

    ``feature`` (nodes,): -1 in leaves. ``goes_left`` (nodes, codes): whether a code goes left. ``children`` (2, nodes).
    """
    for i in range(len(leaves)):
        node = 0
        while feature[node] >= 0:
            node = children[0, node] if goes_left[node, codes[feature[node], i]] else children[1, node]
        leaves[i] = node


@kernel(inline="always")
def leaf(row, column, both, whole, quarter, n_losses, minima):
    """Value of one of the four leaves of two crossing cuts, by the sums left of each cut, of both and of all rows.

    ``quarter``: 0 left of both, 1 left of the first only, 2 left of the second only, 3 right of both.
    """
    value = 0
    for k in range(len(both)):
        s = both[k]
        if quarter == 1:
            s = row[k] - both[k]
        elif quarter == 2:
            s = column[k] - both[k]
        elif quarter == 3:
            s = whole[k] - row[k] - column[k] + both[k]
        if k < n_losses:
            value = min(value, s)
        elif s < minima[k - n_losses]:
            value = INF
    return value


@kernel(takes=(long_4d, long_3d, long_3d, long_2d, i8, long_1d, long_3d, long_3d))
def scan_cuts(both, of_first, of_second, whole, n_losses, minima, first_to, second_to):
    """Best second splits of sets of rows: by cuts of one feature on either side of a cut of the other, and the reverse.

    ``both`` (sets, cuts, cuts, V): sums left of both cuts; ``of_first``, ``of_second`` (sets, cuts, V): left of one;
    ``whole`` (sets, V). ``first_to`` (2, sets, cuts) takes the least value of two leaves left and right of the first
    feature's cut, ``second_to`` the same of the second's; both keep what is less.
    """
    S, G, H, V = both.shape
    for s in range(S):
        w = whole[s]
        for t in range(G):
            row = of_first[s, t]
            low = first_to[0, s, t]
            high = first_to[1, s, t]
            for u in range(H):
                x, column = both[s, t, u], of_second[s, u]
                if V == 1:
                    q = x[0]
                    ll = min(0, q)
                    lh = min(0, row[0] - q)
                    hl = min(0, column[0] - q)
                    hh = min(0, w[0] - row[0] - column[0] + q)
                else:
                    ll = leaf(row, column, x, w, 0, n_losses, minima)
                    lh = leaf(row, column, x, w, 1, n_losses, minima)
                    hl = leaf(row, column, x, w, 2, n_losses, minima)
                    hh = leaf(row, column, x, w, 3, n_losses, minima)
                low = min(low, ll + lh)
                high = min(high, hl + hh)
                second_to[0, s, u] = min(second_to[0, s, u], ll + hl)
                second_to[1, s, u] = min(second_to[1, s, u], lh + hh)
            first_to[0, s, t] = low
            first_to[1, s, t] = high
