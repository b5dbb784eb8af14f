"""Thresholds as short as the data allow: people copy them by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from policytree.data.features import CATEGORICAL
from policytree.exceptions import InputError
from policytree.trees.tree import Tree

MOST_DECIMALS = 12


def with_value_names(tree: Tree, X: np.ndarray, names: Mapping[str, tuple[str, str]]) -> Tree:
    """The same tree whose questions about columns of zeros and ones name a value: "sex = female", or "sex = 0".

    Parameters
    ----------
    tree : Tree
    X : ndarray of shape (n, p)
        Encoded rows.
    names : mapping of str to tuple of two str
        What 0 and 1 mean, by the names of columns.

    Raises
    ------
    InputError
        If a name is no column of zeros and ones.
    """
    known = {feature.name for feature in tree.features}
    features = []
    for feature, column in zip(tree.features, X.T, strict=True):
        two_valued = feature.kind != CATEGORICAL and set(np.unique(column[~np.isnan(column)])) <= {0.0, 1.0}
        if feature.name in names and not two_valued:
            raise InputError(f"Names of values were given for {feature.name!r}, which has other ones than 0 and 1.")
        features.append(replace(feature, value_names=names.get(feature.name, ("0", "1"))) if two_valued else feature)
    for name in names:
        if name not in known:
            raise InputError(f"Names of values were given for {name!r}, which is no covariate of the tree.")
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
