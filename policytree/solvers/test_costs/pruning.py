"""Minimal cost-complexity pruning of greedy trees (Breiman, Friedman, Olshen and Stone 1984, chapter 3)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from policytree.solvers.test_costs.grow import LEAF, GreedyTree


def node_impurity(weights: np.ndarray, criterion: str) -> np.ndarray:
    """Impurity of every node times its share of the weight; ``weights`` (nodes, K), the root first."""
    mass = weights.sum(axis=1, keepdims=True)
    share = weights / mass
    surprise = 1.0 - share if criterion == "gini" else -np.log2(np.where(share > 0, share, 1.0))
    each = share * surprise
    return each.sum(axis=1) * mass[:, 0] / mass[0, 0]


def prune(tree: GreedyTree, strength: float, criterion: str) -> GreedyTree:
    """The smallest subtree of least impurity + strength * leaves, for one strength, in one pass from the leaves up.

    The impurity is the one the tree was grown with, summed over the leaves by their share of the weight, as for
    scikit-learn's ``ccp_alpha``.
    """
    risk = node_impurity(tree.weights, criterion)
    below = risk + strength
    column, price = list(tree.column), tree.price.copy()
    for node in range(len(column) - 1, -1, -1):  # preorder: children come after their parent
        if column[node] == LEAF:
            continue
        split = sum(below[child] for child in tree.children[node] if child >= 0)
        if below[node] <= split:
            column[node], price[node] = LEAF, 0.0
        else:
            below[node] = split
    children = [[] if c == LEAF else list(branches) for c, branches in zip(column, tree.children, strict=True)]
    return replace(tree, column=column, children=children, price=price)
