"""The kernels: what numba compiles, in packages whose compiled code is kept on disk and renewed package by package.

    base           layouts of arrays, sums over rows, merging and binning, SIMD.
    depth_two      the terminal solver: the best tree of depth two from tables over pairs of features.
    level_groups   depth two where the first split divides the levels of a category at will.
    depth_three    depth two on both sides of many root cuts at once.
    depth_first    branch and bound from depth three on, above these sweeps.
    binary         the same for columns of two values, from blocks of pair sums.
    conflicts      lower bounds from pairs of rows that want different actions.
    subsets        dynamic programming over subsets of rows, for two kinds of leaf costs.
    pricing        maximum-box pricing and dual fitting.
    test_costs     splits by features that are paid for: once on a path, or in greedy trees.
    enumeration    lists of trees within a cutoff, with or without dominance.
    out_of_core    tables of codes from rows that stream by.

A kernel calls kernels of its own file, of files before it in its package, and of packages before its own;
``tests/solvers/test_kernels.py`` checks this. ``compiling.py`` says how kernels are compiled, called and kept on disk,
``precompiled.py`` what a wheel holds of them, ``sharing.py`` how processes share the work of compiling,
``helping.py`` how a process has others compile for it, and ``quick_numba.py`` what is left out of numba's own work.

CONTRIBUTING's recipe "A bound" says which file a new bound goes to; those of the whole problem are in ``exact/bounds``.
"""

#: The packages, each after those that it imports.
PACKAGES = (
    "base",
    "depth_two",
    "level_groups",
    "depth_three",
    "depth_first",
    "binary",
    "conflicts",
    "subsets",
    "pricing",
    "test_costs",
    "enumeration",
    "out_of_core",
)
