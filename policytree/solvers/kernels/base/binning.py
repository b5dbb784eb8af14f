"""Codes by counting: those of numbers that are whole steps above the least of them, and whether all codes occur.

Cost: three passes over the numbers, and one over the steps from the least number to the largest; one pass over the
codes of a column, as far as the row in which the last of its codes occurs first.
Symbols: x numbers, low the least of them, codes their places among the distinct ones.
"""

import numpy as np
from numba import types

from policytree.solvers.kernels.base.layout import f8, int_1d, long_1d, real_1d
from policytree.solvers.kernels.compiling import OneOf, kernel

Codes = OneOf({"uint8": types.uint8[:, ::1], "uint16": types.uint16[:, ::1], "uint32": types.uint32[:, ::1]})


@kernel(takes=(real_1d, f8, int_1d, int_1d), borrows=True)
def code_steps(x, low, places, codes):
    """Code numbers, and return how many distinct ones there are; -1 if some number is no whole step above ``low``.

    places : (steps + 1,), becomes the code of the number at every step; -1 where there is none.
    codes : (n,), become the codes of the numbers.
    """
    n = len(x)
    whole = True
    for i in range(n):
        step = np.int32(x[i] - low)
        codes[i] = step
        whole &= low + step == x[i]
    if not whole:
        return -1
    places[:] = -1
    for i in range(n):
        places[codes[i]] = 0
    found = 0
    for t in range(len(places)):
        if places[t] == 0:
            places[t] = found
            found += 1
    if found < len(places):
        for i in range(n):
            codes[i] = places[codes[i]]
    return found


@kernel(takes=(Codes, long_1d))
def all_codes_occur(codes, bins):
    """Whether every column f, codes[f], has each of its codes 0, ..., bins[f] - 1 in some row."""
    widest = 1
    for f in range(len(bins)):
        widest = max(widest, bins[f])
    seen = np.full(widest, -1, np.int64)  # the last column in which a code was seen
    for f in range(len(bins)):
        missing = bins[f]
        c = codes[f]
        for i in range(len(c)):
            if seen[c[i]] != f:
                seen[c[i]] = f
                missing -= 1
                if missing == 0:
                    break
        if missing > 0:
            return False
    return True
