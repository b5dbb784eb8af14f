"""Branch and bound for losses that add up over rows, with a proof.

    binary_features.py          search of depth three and more for two actions and columns of two values, by blocks of
                                pair sums
    constraint_generation.py    constraint generation: where errors are few, a proof from some of the rows holds for all
                                rows
    depth_search.py             workers of the depth-first search: each searches one root feature at a time on arrays of
                                its own
    direct.py                   the direct solver: exact search over trees for real-valued losses, by bounds and pair
                                tables
    engine_table.py             the engines of all solvers: the problems each takes, what it buys, and the kernels it
                                calls
    engines.py                  the engines of the exact search: each works on a ``SharedState``, offers trees
                                to its incumbent and raises its bound
    estimate.py                 an estimate of the direct solver's time before it starts
    grow_incumbent.py           greedy incumbents: a tree is grown by two or three exactly solved levels at a time
    incumbent_search.py         search for incumbents: from several first splits, trees are grown by three exact levels,
                                and changed above these
    interval_dp.py              dynamic programming for one ordered feature: every partition of its values into
                                intervals is a tree
    level_groups.py             trees of depth two for two actions that divide the levels of categories at will, as
                                cheaply as numbers in order
    partitions.py               root features spread over partitions, and partitions over threads, so that threads never
                                change the tree
    shared_state.py             state of one exact search that its engines share: the rows, the limits and the incumbent
    subset_search.py            dynamic programming over subsets of rows: proofs without a depth limit, for trees with a
                                leaf penalty
    subset_storage.py           how subsets are kept: as bits where rows have few distinct losses, otherwise as lists of
                                rows

    solve_direct -> one feature?   interval_dp
                 -> levels?        level_groups
                 -> depth <= 2     core.rows.depth_two (the terminal solver)
                 -> otherwise      a SharedState, and for every depth turns by rate (engines.give_turns):
                      TreeEngine, BoundEngine -> SubsetEngine, DualEngine -> DepthEngine
                                                                             Partitions -> Stack | BinaryStack

A tree of depth two is read off tables over pairs of features. Depth three is many trees of depth two, one on each side
of every root cut: the tables grow along the root feature, so that one pass serves many cuts (a sweep). Deeper trees are
searched depth first above that. Bounds show which cuts need no work at all. Root features are searched in partitions
that are fixed in number and merged in order, so threads never change the tree. A search that is stopped returns its
best tree and its bound.

Which engine solves what, and what that buys: ``engine_table.py``, which ``policytree explain`` prints.
"""
