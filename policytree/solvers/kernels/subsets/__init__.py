"""Dynamic programming over subsets of rows, for two kinds of leaf costs.

    table             what was proved of each set of rows, and the choice of a split: shared by both searches
    layout            proofs without a depth limit: words and tuples
    bounds            bounds of subsets of rows from their sums, and from the sums of pairs of splits
    index_sets        subsets of rows as lists of rows
    bit_sets          subsets of rows as bits
    search            depth first within thresholds, over subsets of rows
    ranking_layout    trees judged by their leaf statistics: words and tuples
    ranking_costs     what leaves cost by a reference curve
    ranking_boxes     the least costs of all boxes of strips of codes
    ranking_bounds    the least cost of a tree on a set of rows
    ranking_search    all trees of little enough cost, scored as bags

Both searches keep one table, and choose splits and tighten bounds by its kernels. Their loops (53 and 35 lines) stay
apart: beyond these calls a dozen lines are alike (a side's cutoff, the way back), in other layouts: integers, where
splits have prices and siblings share bounds, and floats with rounding, where a set's name has the depth left.

A kernel calls kernels of its own file and of files before it, and of packages before this one.
"""

#: The files, each after those that it imports.
ORDER = (
    "table",
    "layout",
    "bounds",
    "index_sets",
    "bit_sets",
    "search",
    "ranking_layout",
    "ranking_costs",
    "ranking_boxes",
    "ranking_bounds",
    "ranking_search",
)
