"""Budgets and shares: the best tree within limits on sums.

    front.py              trees that no other is as good as in loss and sum: all down to depth two, else the corners of
                          the convex hull of (sum, loss)
    lagrangian.py         the Lagrangian relaxation of constraints: trees that are best at given multipliers, and the
                          bounds they prove
    lagrangian_dual.py    the Lagrangian dual: multipliers with the largest bound, and the trees met on the way
    solve.py              the best tree within budgets and shares: the Lagrangian dual first, then a search of the
                          duality gap

``core/constraints.py`` makes integers of amounts, rounded so that promises hold. A multiplier instead of a limit gives
an ordinary problem for the direct solver; the dual finds the best multipliers (two points for one constraint, cutting
planes for several); every tree met is relabelled within the limits; a Pareto search closes the duality gap, down to
depth three. A limit on test costs (``ExpectedCost``) is a constraint whose sum comes from splits.
"""
