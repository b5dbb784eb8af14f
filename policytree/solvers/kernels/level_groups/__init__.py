"""First splits of a tree of depth two by groups of levels: all groupings, from one table for each second feature.

    first_groupings    the best tree of depth two whose first split divides the levels of one feature

A kernel calls kernels of its own file and of files before it, and of packages before this one.
"""

#: The files, each after those that it imports.
ORDER = ("first_groupings",)
