"""Solvers without a proof of optimality, and the one that chooses.

    auto.py           the solver that chooses among the others, and states its reason
    duplication.py    the duplication solver: weights become integer counts; the tree is scored by the weights again
    sampling.py       the weighted sampling solver: trees of samples drawn by weight, the best by the full weighted
                      objective

Losses of any kind become weighted labelled rows (``core/labelled.py``). Duplication rounds weights to integer counts;
its effect on the loss is bounded group by group of rows that no split separates. Sampling draws rows by weight. Both
solve the result directly, and ``core/rescore.py`` scores the tree by the problem's own losses.
"""
