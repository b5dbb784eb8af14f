"""The exact search, in files that each do one thing. A kernel calls kernels of its own file and of files before it.

    compiling        how kernels are compiled, called and kept on disk
    layout           the tuples that travel together, numbers with a meaning, symbols
    whole_steps      codes of numbers, by counting
    merging          rows of equal codes become one
    exact_sums       sums of float64 numbers without rounding
    sums             sums over rows; the best tree of depth one; losses rounded to int32
    intervals        one feature: the best partition of its values
    common_codes     tables of two features without the rows of a commonest code
    pair_tables      two features: a table answers every pair of cuts
    two_valued       features with two codes: one block in place of many tables
    first_splits     what each first split is worth, given the best second ones
    cut_bounds       bounds of all cuts of a feature from a few ("similar support")
    strips           second splits by long features: 32 first cuts side by side
    class_code       one pass over rows of any number of actions, in vectors
    class_strips     the same for more than two actions, or with counted rows
    depth_two        the best tree of depth two from tables
    live_cuts        the cuts of a long feature that no bound has refuted
    long_pairs       the best tree of depth two with long features
    lane_code        tables of one pair for sixteen root cuts at once, in vectors
    counted_lanes    the same where every leaf needs so many rows
    sweep_tables     what all sweeps over one set of rows share
    sweep_side       one side of a sweep, while it grows
    sweep            depth two on both sides of many root cuts: depth three
    subset_cache     what is known of sets of rows
    rows_of_nodes    the rows of a node, handed on to its children
    levels           the search stack, and the steps that change one level
    inner_bounds     what one cut's sides hand on to the next cut's
    enter            a node is solved outright, or its features are put in order
    search           depth three and more: depth first through features and cuts
    block_layout     two actions and two-valued columns: words and tuples
    block_vectors    vectors for blocks of pair sums
    block_sums       values of depth two and three from blocks
    block_search     depth four from blocks
    row_set_layout   proofs without a depth limit: words and tuples
    row_set_table    what was proved of each set of rows
    vector_code      vectors of eight int64, instruction by instruction
    set_bounds       bounds of row sets from their sums, and from the sums of pairs of splits
    row_lists        row sets as lists of rows
    bit_sets         row sets as bits
    row_sets         depth first within thresholds, over row sets
    box_layout       prices per row: words and tuples
    box_tables       the largest sum of a rectangle in a table of two features
    box_pricing      the boxes of rows with the largest sums
    price_fitting    numbers of rows that boxes do not exceed
    paid_pairs       depth two where a group of columns is paid for once on a path
    cost_layout      trees that are cheap to apply: words and tuples
    cost_scores      their next test, by a greedy score
    tied_sides       near-ties: the splits of one side of a first cut
    tied_trees       near-ties: all trees of depth two within a limit
    bag_layout       trees judged by their bag of leaves: words and tuples
    bag_costs        what leaves cost by a reference curve
    bag_boxes        the least costs of all boxes of strips of codes
    bag_bounds       the least cost of a tree on a set of rows
    bag_search       all trees of little enough cost, scored as bags
    pareto_layout    trees judged by several sums: words and tuples
    pareto_lists     lists of such trees: thinned to those that no other is as good as, and joined under a split
    pareto_stumps    leaves and one split, judged by several sums
    pareto_cuts      depth two, judged by several sums
    code_tables      rows that stream by, added up by codes of two or three features

A new bound goes where its kind is: of cuts of one feature into cut_bounds, of a whole node into enter, of sets of
rows met before into subset_cache. The searches by blocks, over row sets and over boxes have their own in block_search,
row_sets and box_pricing; bounds of the whole problem are Python's (``direct._useful_depth``, ``binary._capped``).
``tests/test_kernels.py`` holds the order above against the imports.
"""

#: The files, each after those that it imports.
ORDER = (
    "compiling",
    "layout",
    "whole_steps",
    "merging",
    "exact_sums",
    "sums",
    "intervals",
    "common_codes",
    "pair_tables",
    "two_valued",
    "first_splits",
    "cut_bounds",
    "strips",
    "class_code",
    "class_strips",
    "depth_two",
    "live_cuts",
    "long_pairs",
    "lane_code",
    "counted_lanes",
    "sweep_tables",
    "sweep_side",
    "sweep",
    "subset_cache",
    "rows_of_nodes",
    "levels",
    "inner_bounds",
    "enter",
    "search",
    "block_layout",
    "block_vectors",
    "block_sums",
    "block_search",
    "row_set_layout",
    "row_set_table",
    "vector_code",
    "set_bounds",
    "row_lists",
    "bit_sets",
    "row_sets",
    "box_layout",
    "box_tables",
    "box_pricing",
    "price_fitting",
    "paid_pairs",
    "cost_layout",
    "cost_scores",
    "tied_sides",
    "tied_trees",
    "bag_layout",
    "bag_costs",
    "bag_boxes",
    "bag_bounds",
    "bag_search",
    "pareto_layout",
    "pareto_lists",
    "pareto_stumps",
    "pareto_cuts",
    "code_tables",
)
