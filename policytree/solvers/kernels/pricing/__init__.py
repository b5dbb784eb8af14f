"""Maximum-box pricing and dual fitting.

    layout             prices per row: words and tuples
    max_rectangle      the largest sum of a rectangle in a table of two features
    max_box            the boxes of rows with the largest sums
    dual_projection    numbers of rows that boxes do not exceed

A kernel calls kernels of its own file and of files before it, and of packages before this one.
"""

#: The files, each after those that it imports.
ORDER = ("layout", "max_rectangle", "max_box", "dual_projection")
