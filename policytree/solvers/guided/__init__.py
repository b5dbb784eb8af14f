"""Guesses around any solver, with the guarantees of McTavish et al. (2022).

    bounded.py     a problem whose rows lose no less than a reference does: how lower bounds are guessed
    polish.py      better subtrees for a tree found for other losses
    solve.py       any solver with guesses: fewer thresholds, less depth, and losses bounded from below by a
                   reference's
    theorems.py    what guesses cost at most, in numbers: Theorems 4.1 and A.1 of McTavish et al

Guessed thresholds become fewer cuts, a guessed depth a depth limit, and a reference's losses a lower bound of every
subset, so that Theorem 1 holds by construction. ``Solution.guarantees`` states the theorems for the data at hand.
"""
