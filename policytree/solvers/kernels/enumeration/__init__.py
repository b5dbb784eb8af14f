"""Lists of trees within a cutoff, with or without dominance.

    side_splits    near-ties: the splits of one side of a first cut
    tied_trees     near-ties: all trees of depth two within a limit
    layout         trees judged by several sums: words and tuples
    lists          lists of such trees: thinned to those that no other is as good as, and joined under a split
    stumps         leaves and one split, judged by several sums
    cuts           depth two, judged by several sums

A kernel calls kernels of its own file and of files before it, and of packages before this one.
"""

#: The files, each after those that it imports.
ORDER = ("side_splits", "tied_trees", "layout", "lists", "stumps", "cuts")
