"""Greedy trees of low expected test cost; no proof of optimality.

    grow.py              greedy trees of low expected test cost: regularized impurity reduction, and the rules it is
                         compared with
    guarantee.py         the approximation factor of a greedy tree's expected test cost, as a number
    pruning.py           minimal cost-complexity pruning of greedy trees (Breiman, Friedman, Olshen and Stone 1984,
                         chapter 3)
    to_binary_tree.py    a greedy tree as the binary Tree that all views, exports and files read

Rows that no test separates become objects; nodes are split one after the other, and ``kernels/test_costs/scores.py``
scores all tests of a node in one pass over its objects. ``tests/support/cost_oracles.py`` has the definitions.
"""
