"""Rows of equal codes: named by a hash, compared, and added up.

Cost: one pass over the codes for each of the three steps.
Symbols: see layout.py.
"""

import numpy as np

from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.layout import codes_2d, i8, long_1d, long_2d


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


@kernel(takes=(codes_2d, long_1d, long_1d))
def same_as(codes, keep, group):
    """Whether every row equals the kept row of its group."""
    for f in range(codes.shape[0]):
        row = codes[f]
        for i in range(len(group)):
            if row[i] != row[keep[group[i]]]:
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
