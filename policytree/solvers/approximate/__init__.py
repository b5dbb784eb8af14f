"""Heuristics without a proof, and the solver that chooses between them."""
