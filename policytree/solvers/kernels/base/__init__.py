"""Layouts of arrays, sums over rows, merging and binning, SIMD.

    addresses     kernels that are called where an address says
    layout        the tuples that travel together, numbers with a meaning, symbols
    binning       codes of numbers, by counting
    merging       rows of equal codes become one
    exact_sums    sums of float64 numbers without rounding
    sums          sums over rows; the best tree of depth one; losses rounded to int32
    child_rows    the rows of a node, handed on to its children
    simd          vectors of eight int64, instruction by instruction

A kernel calls kernels of its own file and of files before it, and of packages before this one.
"""

#: The files, each after those that it imports.
ORDER = ("addresses", "layout", "binning", "merging", "exact_sums", "sums", "child_rows", "simd")
