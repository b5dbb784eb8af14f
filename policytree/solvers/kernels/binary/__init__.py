"""Trees of depth two to four for columns of two values and two actions, from sums over pairs of columns in blocks.

    layout    two actions and two-valued columns: words and tuples
    simd      vectors for blocks of pair sums
    sums      values of depth two and three from blocks
    search    depth four from blocks

A kernel calls kernels of its own file and of files before it, and of packages before this one.
"""

#: The files, each after those that it imports.
ORDER = ("layout", "simd", "sums", "search")
