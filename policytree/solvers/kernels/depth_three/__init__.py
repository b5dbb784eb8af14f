"""Depth two on both sides of many root cuts at once.

    simd_tables     tables of one pair for sixteen root cuts at once, in vectors
    simd_counted    the same where every leaf needs so many rows
    simd_sides      tables of one pair on both sides of a root cut, in vectors, for any losses and counts
    sweep_tables    what all sweeps over one set of rows share
    sweep_side      one side of a sweep, while it grows
    sweep           depth two on both sides of many root cuts: depth three

A kernel calls kernels of its own file and of files before it, and of packages before this one.
"""

#: The files, each after those that it imports.
ORDER = ("simd_tables", "simd_counted", "simd_sides", "sweep_tables", "sweep_side", "sweep")
