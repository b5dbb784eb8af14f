"""Trees as scikit-learn's own, for the many tools that draw, explain or convert those."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.tree import DecisionTreeClassifier
from sklearn.tree._tree import NODE_DTYPE
from sklearn.tree._tree import Tree as SklearnTree

from policytree.data.features import CATEGORICAL, named_apart
from policytree.exceptions import InputError
from policytree.trees.tree import IS_MISSING, Tree


@dataclass(frozen=True, slots=True)
class SklearnColumns:
    """The numeric columns on which scikit-learn's tree asks the questions of ours.

    Numeric features are columns as they are; each question about a category is a 0/1 column, "site = Paris", and a
    question whether a text is missing is "site is missing". A name that another column has gets a number behind it.
    Where there would be no column, which scikit-learn refuses, there is one that no node asks about.

    Attributes
    ----------
    names : tuple of str
    of_node : ndarray of shape (node_count,), int64
        The column that every node asks about; -2 in leaves.
    questions : tuple of (int, float)
        Of every column: the feature, and the threshold of the categories (-1: missing); NaN for numbers.
    levels : tuple
        Of every column: the positions of these categories; None for numbers.
    """

    names: tuple[str, ...]
    of_node: np.ndarray
    questions: tuple[tuple[int, float], ...]
    levels: tuple[tuple[int, ...] | None, ...]

    @classmethod
    def of(cls, tree: Tree) -> SklearnColumns:
        """All numeric features, then the questions about categories in the order of the nodes."""
        questions = [(j, np.nan) for j, feature in enumerate(tree.features) if feature.kind != CATEGORICAL]
        names = [tree.features[j].name for j, _ in questions]
        position = {j: k for k, (j, _) in enumerate(questions)}
        of_node = np.full(tree.node_count, -2, dtype=np.int64)
        asked: dict[tuple[int, float], int] = {}
        for node in np.flatnonzero(~tree.is_leaf):
            j, threshold = int(tree.feature[node]), float(tree.threshold[node])
            feature = tree.features[j]
            if feature.kind != CATEGORICAL:
                of_node[node] = position[j]
                continue
            if (j, threshold) not in asked:
                asked[j, threshold] = len(names)
                questions.append((j, threshold))
                chosen = [named_apart(feature.categories[k], feature.categories) for k in feature.levels_at(threshold)]
                several = f"is one of {', '.join(chosen)}" if len(chosen) > 1 else f"= {chosen[0]}" if chosen else ""
                names.append(_unused(f"{feature.name} {several or IS_MISSING}", names))
            of_node[node] = asked[j, threshold]
        if not names:
            questions.append((0, -1.0))
            names.append(f"{tree.features[0].name} {IS_MISSING}")
        levels = (None if np.isnan(t) else () if t == -1 else tree.features[j].levels_at(t) for j, t in questions)
        return cls(tuple(names), of_node, tuple(questions), tuple(levels))

    def table(self, X: np.ndarray, index=None) -> pd.DataFrame:
        """The columns of encoded rows (n, p), float64; missing values stay missing."""
        columns = []
        for (j, _), levels in zip(self.questions, self.levels, strict=True):
            x = X[:, j]
            if levels is None:
                columns.append(x)
            elif not levels:
                columns.append(np.isnan(x).astype(np.float64))
            else:
                columns.append(np.where(np.isnan(x), np.nan, np.isin(x, levels).astype(np.float64)))
        values = np.stack(columns, axis=1) if columns else np.empty((len(X), 0))
        return pd.DataFrame(values, columns=list(self.names), index=index)


def _unused(name: str, names: Sequence[str]) -> str:
    """The name, with a number behind it if others have it."""
    tried = itertools.chain([name], (f"{name} ({k})" for k in itertools.count(2)))
    return next(candidate for candidate in tried if candidate not in names)


def to_sklearn(tree: Tree, X: np.ndarray, classes: np.ndarray, shares: np.ndarray | None) -> DecisionTreeClassifier:
    """A scikit-learn tree that sends every row of ``X`` to the leaf of ours.

    Parameters
    ----------
    tree : Tree
    X : ndarray of shape (n, p), float64
        Encoded rows, NaN where missing.
    classes : ndarray of shape (K,)
        Names of actions.
    shares : ndarray of shape (node_count, K) or None
        Probabilities of the nodes; None: those of the actions that rows get.

    Raises
    ------
    InputError
        If 32-bit floats, which scikit-learn's trees compare, cannot separate the rows as the tree does.
    """
    columns = SklearnColumns.of(tree)
    rows = tree.rows_of_nodes(X)
    order, new = _other_preorder(tree)
    nodes = np.zeros(tree.node_count, dtype=NODE_DTYPE)
    values = np.empty((tree.node_count, 1, len(classes)))
    for old in order:
        node, here = new[old], rows[old]
        chosen = np.bincount(tree.action[tree.apply(X[here])], minlength=len(classes)) if len(here) else None
        values[node, 0] = _node_value(tree, old, chosen, shares)
        nodes[node]["impurity"] = 1.0 - (values[node, 0] ** 2).sum()
        nodes[node]["n_node_samples"] = nodes[node]["weighted_n_node_samples"] = len(here)
        if tree.is_leaf[old]:
            for field, mark in (("left_child", -1), ("right_child", -1), ("feature", -2), ("threshold", -2.0)):
                nodes[node][field] = mark
            continue
        swapped = _swapped(tree, old)
        left, right = int(new[tree.children_left[old]]), int(new[tree.children_right[old]])
        nodes[node]["left_child"], nodes[node]["right_child"] = (right, left) if swapped else (left, right)
        nodes[node]["feature"] = columns.of_node[old]
        nodes[node]["threshold"] = 0.5 if swapped else _threshold(tree, old, X[here])
        nodes[node]["missing_go_to_left"] = bool(tree.missing_go_to_left[old]) != swapped
    return _estimator(nodes, values, classes, columns, tree.max_depth)


def _swapped(tree: Tree, node: int) -> bool:
    """Questions about categories: "yes" is 1 in a 0/1 column, so it goes right."""
    return tree.features[tree.feature[node]].kind == CATEGORICAL


def _other_preorder(tree: Tree) -> tuple[list[int], np.ndarray]:
    """Nodes in the order that scikit-learn's tree has them, and the new place of every node."""
    order, waiting = [], [0]
    while waiting:
        node = waiting.pop()
        order.append(node)
        if not tree.is_leaf[node]:
            children = [int(tree.children_left[node]), int(tree.children_right[node])]
            waiting += children if _swapped(tree, node) else children[::-1]
    new = np.empty(tree.node_count, dtype=np.int64)
    new[order] = np.arange(tree.node_count)
    return order, new


def _node_value(tree: Tree, node: int, chosen: np.ndarray | None, shares: np.ndarray | None) -> np.ndarray:
    """Probabilities of a node, so that the largest one of a leaf is its action's."""
    if shares is not None:
        return shares[node]
    if tree.is_leaf[node] or chosen is None:
        return np.eye(len(tree.actions))[tree.action[node]]
    return chosen / chosen.sum()


def _threshold(tree: Tree, node: int, X: np.ndarray) -> float:
    """A threshold that sends the rows of a node as ours does once they are 32-bit floats."""
    j, threshold = int(tree.feature[node]), float(tree.threshold[node])
    if np.isposinf(threshold):
        return threshold
    x = X[:, j]
    left = x <= threshold
    with np.errstate(over="ignore"):  # beyond the range of 32-bit floats: infinite, which scikit-learn refuses
        low = np.float64(np.float32(x[left].max(initial=-np.inf)))
        high = np.float64(np.float32(x[~left & ~np.isnan(x)].min(initial=np.inf)))
    if low <= threshold < high:
        return threshold
    if low >= high:
        raise InputError(
            f"Column {tree.features[j].name!r} has values around {threshold:.17g} that 32-bit floats, which "
            "scikit-learn's trees compare, cannot tell apart; subtract a constant from the column, or round it."
        )
    return float(low)


def _estimator(nodes, values, classes, columns: SklearnColumns, max_depth: int) -> DecisionTreeClassifier:
    """A fitted DecisionTreeClassifier with these nodes."""
    n_features = len(columns.names)
    inner = SklearnTree(n_features, np.array([len(classes)], dtype=np.intp), 1)
    inner.__setstate__({"max_depth": max_depth, "node_count": len(nodes), "nodes": nodes, "values": values})
    model = DecisionTreeClassifier()
    model.tree_, model.classes_ = inner, np.asarray(classes)
    model.n_classes_, model.n_outputs_, model.max_features_ = len(classes), 1, n_features
    model.n_features_in_ = n_features
    model.feature_names_in_ = np.array(columns.names, dtype=object)
    return model
