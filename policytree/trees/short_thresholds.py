"""Thresholds as short as the data allow: people copy them by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from policytree.data.features import CATEGORICAL
from policytree.trees.tree import Tree

MOST_DECIMALS = 12


def readable(tree: Tree, X: np.ndarray) -> Tree:
    """The same tree with the shortest thresholds for encoded rows (n, p), and values in questions on zeros and ones."""
    return with_two_values(with_short_thresholds(tree, X), X)


def with_two_values(tree: Tree, X: np.ndarray) -> Tree:
    """The same tree whose questions about zeros and ones, by encoded rows (n, p), have the answers 0 and 1."""
    features = []
    for feature, column in zip(tree.features, X.T, strict=True):
        two_valued = feature.kind != CATEGORICAL and set(np.unique(column[~np.isnan(column)])) <= {0.0, 1.0}
        features.append(replace(feature, value_names=("0", "1")) if two_valued else feature)
    return replace(tree, features=tuple(features))


def with_short_thresholds(tree: Tree, X: np.ndarray) -> Tree:
    """The same tree with the shortest thresholds that send every row of a table the same way.

    Parameters
    ----------
    tree : Tree
    X : ndarray of shape (n, p)
        Encoded rows, those that the tree was learnt from among them.

    Returns
    -------
    Tree
        It predicts the same for all these rows, whatever question they meet; and others for those only that lie between
        two of their values.
    """
    threshold = tree.threshold.copy()
    for node in np.flatnonzero(~tree.is_leaf):
        j, value = int(tree.feature[node]), float(threshold[node])
        if tree.features[j].kind == CATEGORICAL or not np.isfinite(value):
            continue
        column = X[:, j]
        below, above = column[column <= value], column[column > value]
        if len(below) and len(above):
            threshold[node] = shortest_between(float(below.max()), float(above.min()), value)
    return replace(tree, threshold=threshold)


def shortest_between(low: float, high: float, near: float) -> float:
    """The number with the fewest decimals in ``[low, high)``, and of these the one nearest to ``near``, which is there.

    Whole numbers of tens, hundreds and so on count as having fewer decimals still.
    """
    largest = int(np.floor(np.log10(max(abs(low), abs(high), 1.0))))
    for decimals in range(-largest, MOST_DECIMALS + 1):
        below = np.floor(near * 10.0**decimals)
        candidates = [float(f"{(below + k) * 10.0**-decimals:.{max(decimals, 0)}f}") for k in (0, 1)]
        inside = [c for c in candidates if low <= c < high]
        if inside:
            return float(min(inside, key=lambda c: abs(c - near)))
    return near
