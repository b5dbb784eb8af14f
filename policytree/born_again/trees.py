"""Nodes with cuts of a grid -> :class:`policytree.trees.tree.Tree` with thresholds."""

from __future__ import annotations

import numpy as np

from policytree.born_again.ensembles import TreeEnsemble
from policytree.data.features import Feature
from policytree.trees.tree import TREE_LEAF, TREE_UNDEFINED, Tree

FEATURE, CUT, LEFT, RIGHT, CLASS = range(5)


def make_tree(nodes: np.ndarray, ensemble: TreeEnsemble) -> Tree:
    """A tree from nodes in preorder: feature (-1 in leaves), cut of the full grid, left, right, class.

    Splits whose leaves all have one class are left out. Without data, counts and losses are zero, and an inner node's
    action is that of most leaves below it.
    """
    thresholds = ensemble.thresholds()
    nodes = collapsed(nodes)
    leaf = nodes[:, FEATURE] < 0
    n, K = len(nodes), len(ensemble.classes)
    cuts = [np.nan if f < 0 else thresholds[f][t] for f, t in nodes[:, :2].tolist()]
    return Tree(
        children_left=np.where(leaf, TREE_LEAF, nodes[:, LEFT]).astype(np.int32),
        children_right=np.where(leaf, TREE_LEAF, nodes[:, RIGHT]).astype(np.int32),
        feature=np.where(leaf, TREE_UNDEFINED, nodes[:, FEATURE]).astype(np.int32),
        threshold=np.array(cuts, dtype=np.float64),
        missing_go_to_left=np.zeros(n, dtype=bool),
        action=_most_leaves(nodes, K).argmax(axis=1).astype(np.int32),
        n_node_samples=np.zeros(n, dtype=np.int64),
        value=np.zeros((n, K)),
        features=tuple(Feature(name, has_missing=False) for name in ensemble.feature_names),
        actions=ensemble.classes,
    )


def collapsed(nodes: np.ndarray, replaced: dict[int, int] | None = None) -> np.ndarray:
    """Nodes in preorder without splits whose leaves all have one class; the order of what is left stays.

    ``replaced``: nodes in whose place one of their children stands.
    """
    replaced = replaced or {}
    rows = nodes.tolist()
    only = nodes[:, CLASS].tolist()  # the class of all leaves below, or -1
    at = list(range(len(rows)))  # where a node's place is taken from
    for node in range(len(rows) - 1, -1, -1):
        feature, _, left, right, _ = rows[node]
        if feature < 0:
            continue
        if node in replaced:
            at[node] = at[replaced[node]]
            only[node] = only[replaced[node]]
        elif only[left] == only[right]:
            only[node] = only[left]
    out: list[list[int]] = []
    todo = [(0, -1, LEFT)]
    while todo:
        node, parent, side = todo.pop()
        node = at[node]
        if parent >= 0:
            out[parent][side] = len(out)
        if only[node] >= 0:
            out.append([-1, -1, -1, -1, only[node]])
            continue
        feature, cut, left, right, _ = rows[node]
        todo += [(right, len(out), RIGHT), (left, len(out), LEFT)]
        out.append([feature, cut, -1, -1, -1])
    return np.array(out, dtype=np.int64)


def _most_leaves(nodes: np.ndarray, K: int) -> np.ndarray:
    """Leaves of every class below every node."""
    beyond = list(range(1, len(nodes) + 1))  # the first node after a node and all below it
    for node, right in reversed(list(enumerate(nodes[:, RIGHT].tolist()))):
        if right >= 0:
            beyond[node] = beyond[right]
    leaves = nodes[:, CLASS, None] == np.arange(K)
    before = np.concatenate([np.zeros((1, K), np.int64), leaves.cumsum(axis=0)])
    return before[beyond] - before[:-1]


def nodes_of(tree: Tree, ensemble: TreeEnsemble) -> np.ndarray:
    """The inverse of :func:`make_tree`."""
    thresholds = ensemble.thresholds()
    leaf = tree.is_leaf
    cuts = [
        -1 if end else int(np.searchsorted(thresholds[j], x))
        for j, x, end in zip(tree.feature, tree.threshold, leaf, strict=True)
    ]
    feature, action = np.where(leaf, -1, tree.feature), np.where(leaf, tree.action, -1)
    return np.stack([feature, cuts, tree.children_left, tree.children_right, action], axis=1).astype(np.int64)
