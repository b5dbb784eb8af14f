"""Trees judged by several sums: Pareto fronts, and what is read off them.

    monotone.py        losses that are monotone in both kinds of errors: all non-dominated trees, then the best
                       of them
    pareto_front.py    trees judged by several sums at once: the Pareto front of all trees of depth three or less

The front serves every objective that grows with several sums. ``tests/support/pareto_oracles.py`` writes down all
trees for it.
"""
