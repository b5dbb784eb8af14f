"""Numbers that are whole steps above the least of them: their codes by counting, without sorting.

Cost: three passes over the numbers, and one over the steps from the least number to the largest.
Symbols: x numbers, low the least of them, codes their places among the distinct ones.
"""

import numpy as np

from policytree.solvers.kernels.base.layout import f8, int_1d, real_1d
from policytree.solvers.kernels.compiling import kernel


@kernel(takes=(real_1d, f8, int_1d, int_1d))
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
