"""Lists of trees within a cutoff, with or without dominance.

    side_splits    near-ties: the splits of one side of a first cut
    tied_trees     near-ties: all trees of depth two within a limit
    layout         trees judged by several sums: words and tuples
    lists          lists of such trees: thinned to those that no other is as good as, and joined under a split
    stumps         leaves and one split, judged by several sums
    cuts           depth two, judged by several sums

Near-ties and the others bound first cuts and list both sides within what the other side leaves, and yet are two
enumerations. One was tried, near-ties on ``cuts`` with the bound as the only sum. A list of depth two took, in seconds
of processor, here and there: FICO (10,459 rows, 1,917 thresholds) .04 and .28 for 486 trees, .23 and 2.8 for 14.8
million; 10,000 x 10 continuous columns with three arms 2.6 and 2.4, 2,500 of these rows .4 and .3. Near-ties have many
open cuts: sums of all places move from each cut to the next, and pairs are counted without a list of them. A front
looks at few cuts, the middle ones first, and sums up the rows that it finds there, for as many sums as a tree has.

A kernel calls kernels of its own file and of files before it, and of packages before this one.
"""

#: The files, each after those that it imports.
ORDER = ("side_splits", "tied_trees", "layout", "lists", "stumps", "cuts")
