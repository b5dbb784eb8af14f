"""The kernels of born-again trees: a folder, and a stamp of what is kept on disk, of their own.

    layout     the tuples that travel together, and the words
    cells      the class of every cell
    blocks     the blocks that splits at live cuts lead to
    vectors    values of 64 boxes at once
    values     least depth and least leaves of every box
    layers     least leaves within a depth
    trees      an optimal tree, read off the values

A kernel calls kernels of its own file and of files before it. ``tests/solvers/test_kernels.py`` checks it.
"""

#: The files, each after those that it imports.
ORDER = ("layout", "cells", "blocks", "vectors", "values", "layers", "trees")
