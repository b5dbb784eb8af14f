"""Sparse trees: accuracy against leaves for all 29 prices of the paper.

Public interface used: OptimalTreeClassifier.
"""

from __future__ import annotations

from sparse_trees.study import show_sparsity

PRICES = (0.2, *(k / unit for unit, most in ((100, 10), (1000, 9), (10_000, 9)) for k in range(most, 0, -1)))


def main(study) -> None:
    """Run the part."""
    show_sparsity(study, PRICES, "prices")
