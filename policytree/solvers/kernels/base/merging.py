"""Rows of equal codes: named by a hash, compared, and added up.

Cost: one pass over the codes for each step; of those that compare, over the rows that repeat another one.
Symbols: see layout.py.
"""

import numpy as np
from numba import types

from policytree.solvers.kernels.base.layout import codes_2d, i8, long_1d, long_2d
from policytree.solvers.kernels.compiling import kernel

hashes_1d = types.uint64[::1]


@kernel(takes=(codes_2d,))
def hash_rows(codes):
    """A 64-bit hash of every row (column of ``codes``), by multiplication and shifts feature after feature."""
    p, n = codes.shape
    out = np.full(n, np.uint64(0x9E3779B97F4A7C15), np.uint64)
    for f in range(p):
        row = codes[f]
        for i in range(n):
            x = (out[i] ^ np.uint64(row[i])) * np.uint64(0xBF58476D1CE4E5B9)
            out[i] = x ^ (x >> np.uint64(29))
    return out


@kernel(takes=(hashes_1d,))
def group_hashes(hashes):
    """Groups of equal hashes: the first row of each, in their order, and the group of every row."""
    n = len(hashes)
    size = 16
    while size < 2 * n:
        size *= 2
    last = np.uint64(size - 1)
    slots = np.full(size, -1, np.int32)
    keep, group = np.empty(n, np.int64), np.empty(n, np.int64)
    found = 0
    for i in range(n):
        h = hashes[i]
        at = (h ^ (h >> np.uint64(32))) & last
        while slots[at] >= 0 and hashes[keep[slots[at]]] != h:
            at = (at + np.uint64(1)) & last
        if slots[at] < 0:
            slots[at] = found
            keep[found] = i
            found += 1
        group[i] = slots[at]
    return keep[:found].copy(), group


@kernel(takes=(codes_2d, long_1d, long_1d))
def same_as(codes, keep, group):
    """Whether every row equals the kept row of its group."""
    n = len(group)
    again, other = np.empty(n, np.int64), np.empty(n, np.int64)
    m = 0
    for i in range(n):
        again[m], other[m] = i, keep[group[i]]
        m += other[m] != i
    for f in range(codes.shape[0]):
        row = codes[f]
        for k in range(m):
            if row[again[k]] != row[other[k]]:
                return False
    return True


@kernel(takes=(long_2d, long_1d, i8))
def add_columns(values, group, n_groups):
    """Sum the columns of ``values`` by group, shape (rows, n_groups)."""
    out = np.zeros((values.shape[0], n_groups), np.int64)
    for k in range(values.shape[0]):
        to = out[k]
        row = values[k]
        for i in range(len(group)):
            to[group[i]] += row[i]
    return out
