"""Lower bounds from pairs of rows that want different actions.

    layout    the bound, its words and tuples
    fit       numbers of the pairs of a subset of rows, by a first-order method, and what they bound

A kernel calls kernels of its own file and of files before it, and of packages before this one.
"""

#: The files, each after those that it imports.
ORDER = ("layout", "fit")
