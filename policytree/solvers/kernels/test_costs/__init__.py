"""Greedy trees that are cheap to apply.

    layout    words and tuples
    scores    the next test, by a greedy score

A kernel calls kernels of its own file and of files before it, and of packages before this one.
"""

#: The files, each after those that it imports.
ORDER = ("layout", "scores")
