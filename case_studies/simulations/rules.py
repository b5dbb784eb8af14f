"""Rules that are learnt from rewards: exact trees, trees that look ahead less, and their values.

A tree that looks ahead one level is grown greedily. Two levels are the hybrid of Sverdrup, Kanodia, Zhou, Athey and
Wager's R package policytree: the best tree of two levels says the first split, and each side is searched again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policytree import PolicyTree


@dataclass(frozen=True)
class Split:
    """Rows with ``x[column] <= threshold`` go to ``left``; a side is a split or an arm."""

    column: int
    threshold: float
    left: Split | int
    right: Split | int


def grow(X: np.ndarray, rewards: np.ndarray, depth: int, look: int) -> Split | int:
    """Grow a tree that sees ``look`` levels ahead at every node; exact if ``look >= depth``.

    Parameters
    ----------
    X : ndarray of shape (n, p)
    rewards : ndarray of shape (n, K)
    depth : int
        Levels of the tree.
    look : int
        Levels of the exact tree that chooses a split.
    """
    if depth == 0 or len(X) < 2:
        return int(rewards.sum(axis=0).argmax())
    tree = PolicyTree(max_depth=min(look, depth)).fit(X, rewards).tree_
    if tree.node_count == 1:
        return int(tree.actions[tree.action[0]])
    if look >= depth:
        return _as_split(tree, 0)
    column, threshold = int(tree.feature[0]), float(tree.threshold[0])
    left = X[:, column] <= threshold
    sides = (grow(X[side], rewards[side], depth - 1, look) for side in (left, ~left))
    return Split(column, threshold, *sides)


def _as_split(tree, node: int) -> Split | int:
    if tree.is_leaf[node]:
        return int(tree.actions[tree.action[node]])
    sides = (_as_split(tree, int(child[node])) for child in (tree.children_left, tree.children_right))
    return Split(int(tree.feature[node]), float(tree.threshold[node]), *sides)


def arms_of(rule: Split | int, X: np.ndarray) -> np.ndarray:
    """Arm of every row, (n,)."""
    if not isinstance(rule, Split):
        return np.full(len(X), rule)
    left = X[:, rule.column] <= rule.threshold
    arms = np.empty(len(X), dtype=np.int64)
    for rows, side in ((left, rule.left), (~left, rule.right)):
        arms[rows] = arms_of(side, X[rows])
    return arms


def columns_of(rule: Split | int) -> set[int]:
    """Columns that a tree asks about."""
    return columns_of(rule.left) | columns_of(rule.right) | {rule.column} if isinstance(rule, Split) else set()
