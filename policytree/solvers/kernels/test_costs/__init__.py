"""Splits by features that are paid for: once on a path, or in greedy trees.

    shared_cost_pairs    depth two where a group of columns is paid for once on a path
    layout               trees that are cheap to apply: words and tuples
    scores               their next test, by a greedy score

A kernel calls kernels of its own file and of files before it, and of packages before this one.
"""

#: The files, each after those that it imports.
ORDER = ("shared_cost_pairs", "layout", "scores")
