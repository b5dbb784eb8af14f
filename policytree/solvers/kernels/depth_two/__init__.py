"""The terminal solver: the best tree of depth two from tables over pairs of features.

    interval_dp          one feature: the best partition of its values
    sparse_tables        tables of two features without the rows of a commonest code
    pair_tables          two features: a table answers every pair of cuts
    binary_pairs         features with two codes: one block instead of many tables
    charges              what rows pay for splits, for all prices at once
    first_splits         what each first split is worth, given the best second ones
    level_tables         second splits by groups of levels of a category
    similarity_bounds    bounds of all cuts of a feature from a few ("similar support")
    tiles                second splits by long features: 32 first cuts side by side
    simd_classes         one pass over rows of any number of actions, in vectors
    class_tiles          the same for more than two actions, or with counted rows
    simd_planes          one pass over rows that lose under every action, in vectors
    plane_tiles          the same for such rows
    solve                the best tree of depth two from tables
    open_cuts            the cuts of a long feature that no bound has refuted
    rounding_errors      how far rounded sums can be from exact ones, where errors of rows cancel
    whole_columns        columns of codes that continue each other, as one column
    long_pairs           the best tree of depth two with long features

A kernel calls kernels of its own file and of files before it, and of packages before this one.
"""

#: The files, each after those that it imports.
ORDER = (
    "interval_dp",
    "sparse_tables",
    "pair_tables",
    "binary_pairs",
    "charges",
    "first_splits",
    "level_tables",
    "similarity_bounds",
    "tiles",
    "simd_classes",
    "class_tiles",
    "simd_planes",
    "plane_tiles",
    "solve",
    "open_cuts",
    "rounding_errors",
    "whole_columns",
    "long_pairs",
)
