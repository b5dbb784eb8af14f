"""Guesses around any solver, with the guarantees of McTavish et al. (2022).

    depth_theorem.py        the largest cost of a guessed depth: Theorem A.1 of McTavish et al
    polish.py               better subtrees for a tree found for other losses
    reference_theorem.py    bounds by a single tree as reference: Theorem 4.1 of McTavish et al
    solve.py                any solver with guesses: fewer thresholds, less depth, and losses bounded from below by a
                            reference's

Guessed thresholds become fewer cuts, a guessed depth a depth limit, and a reference's losses a lower bound of every
subset, so that Theorem 1 holds by construction. ``Solution.guarantees`` states the theorems for the data at hand.
"""
