"""Sums of float64 numbers by group, without any rounding, and so the same in whatever order the numbers come.

A number is a whole number of at most 53 bits times a power of two. Its bits are added to a row of int64 *chunks* of 32
bits each, as if all numbers were written below each other in one very long fixed-point format: the small
superaccumulator of Neal (2015), "Fast exact summation using small and large superaccumulators", arXiv:1505.05571.

    chunk c of a row        worth 2**(32 * (first + c) - 1075)
    the number's exponent   says which chunk its lowest bit falls into, and where in it

A chunk takes less than 2**32 in size from every number, so that 2**31 numbers fit before it could overflow; no carry is
passed on before all have been added.

Cost: three additions a number. Symbols: P rows of numbers, n numbers of a row, G groups.
"""

from policytree.solvers.kernels.base.layout import i8, long_1d, long_2d, long_3d
from policytree.solvers.kernels.compiling import kernel

CHUNK_BITS = 32
LOWEST = 1075  # the lowest bit of a number with biased exponent e is worth 2**(e - LOWEST)
NOT_FINITE = 2047  # the biased exponent of infinity and NaN


@kernel(takes=(long_2d,), borrows=True)
def exponent_range(bits):
    """The least and the largest biased exponent of float64 numbers, given as their bits (P, n), but for zeros.

    Both are 1 if there is no other number; the largest is NOT_FINITE if one is infinite or NaN.
    """
    low, high = NOT_FINITE, 1
    for p in range(bits.shape[0]):
        row = bits[p]
        for i in range(len(row)):
            if row[i] << 1 != 0:  # neither 0.0 nor -0.0
                exponent = max((row[i] >> 52) & NOT_FINITE, 1)  # subnormal numbers: as the least normal ones
                low, high = min(low, exponent), max(high, exponent)
    return min(low, high), high


@kernel(takes=(long_2d, long_1d, i8, long_3d), borrows=True)
def add_exactly(bits, group, first, chunks):
    """Add finite float64 numbers, given as their bits (P, n), to the chunks (G, P, chunks) of their groups (n,).

    ``first``: which chunk of the long format the first one is; the last must be two beyond that of the largest number.
    """
    low_bits = (1 << CHUNK_BITS) - 1
    for p in range(bits.shape[0]):
        row = bits[p]
        for i in range(len(row)):
            number = row[i]
            if number << 1 == 0:
                continue
            exponent = (number >> 52) & NOT_FINITE
            whole = number & ((1 << 52) - 1)
            if exponent == 0:
                exponent = 1  # a subnormal number has no hidden bit
            else:
                whole |= 1 << 52
            at = (exponent >> 5) - first
            shift = exponent & 31
            low = (whole << shift) & low_bits  # bits beyond the 64th are lost: they belong to the chunks above
            middle = (whole >> (CHUNK_BITS - shift)) & low_bits
            high = (whole >> CHUNK_BITS) >> (CHUNK_BITS - shift)
            to = chunks[group[i], p]
            if number < 0:
                to[at] -= low
                to[at + 1] -= middle
                to[at + 2] -= high
            else:
                to[at] += low
                to[at + 1] += middle
                to[at + 2] += high
