"""The rows of a node: put in order, and handed on to its children.

Cost: n steps for every feature and plane.
Symbols: see layout.py.
"""

from typing import NamedTuple

import numpy as np

from policytree.solvers.kernels.base.layout import Rows, codes_2d, i8, int_1d, long_1d, long_2d
from policytree.solvers.kernels.compiling import kernel


class Packed(NamedTuple):
    """Rows of a node, and the columns and cuts of the problem that its features and codes stand for."""

    codes: codes_2d
    planes: long_2d
    bins: long_1d
    offset: long_1d
    groups: long_1d
    owners: long_1d
    columns: long_1d
    cuts: long_1d


@kernel(takes=(Rows, long_1d, long_1d, int_1d, i8, i8, Packed), separate=True)
def pack_rows(rows, columns, cuts, index, a, b, to):
    """Copy rows index[a:b], dropping codes and features that do not occur there; returns the number of features.

    ``columns`` and ``cuts`` are what the features and places of ``rows`` stand for.
    """
    bins, offset = rows.bins, rows.offset
    n = b - a
    p = 0
    widest = 1
    for f in range(len(bins)):
        widest = max(widest, bins[f])
    new = np.empty(widest, np.int64)
    to.offset[0] = 0
    for f in range(len(bins)):
        B = bins[f]
        c = rows.codes[f]
        for v in range(B):
            new[v] = -1
        for i in range(a, b):
            new[c[index[i]]] = 0
        found = 0
        o = to.offset[p]
        for v in range(B):
            if new[v] == 0:
                new[v] = found
                to.cuts[o + found] = cuts[offset[f] + v]
                found += 1
        if found < 2:
            continue
        for i in range(n):
            to.codes[p, i] = new[c[index[a + i]]]
        to.bins[p] = found
        to.offset[p + 1] = o + found
        to.columns[p] = columns[f]
        to.groups[p] = rows.groups[f]
        to.owners[p] = rows.owners[f]
        p += 1
    for k in range(to.planes.shape[0]):
        for i in range(n):
            to.planes[k, i] = rows.planes[k, index[a + i]]
    return p


@kernel(borrows=True)
def rows_of_side(codes, cut, side, index, n, to):
    """Copy those of n rows whose codes are on one side of a cut; returns their number."""
    count = 0
    for i in range(n):
        r = index[i]
        if (np.int64(codes[r]) <= cut) == (side == 0):
            to[count] = r
            count += 1
    return count


@kernel(separate=True, borrows=True)
def order_rows(rows, f, index, ends):
    """Rows in the order of feature f's codes; ends[t] = number of rows with code < t."""
    c = rows.codes[f]
    B = rows.bins[f]
    for t in range(B + 1):
        ends[t] = 0
    for i in range(rows.n):
        ends[np.int64(c[i]) + 1] += 1
    for t in range(B):
        ends[t + 1] += ends[t]
    for i in range(rows.n):
        x = np.int64(c[i])
        index[ends[x]] = i
        ends[x] += 1
    for t in range(B, 0, -1):
        ends[t] = ends[t - 1]
    ends[0] = 0
