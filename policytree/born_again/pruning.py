"""Pruning of born-again trees where there is no data (BA+P), and its effect.

Vidal and Schiffer (ICML 2020): from the bottom up, a split with a side that no training row reaches is replaced by its
other side; leaves of one class that become siblings are merged. The tree is no longer faithful everywhere: how often it
differs is counted on the ensemble's cells and on the volume of the box that the data span.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from policytree.born_again.ensembles import TreeEnsemble
from policytree.born_again.trees import LEFT, RIGHT, collapsed, make_tree, nodes_of
from policytree.data.views import Shown
from policytree.trees.tree import Tree


@dataclass(frozen=True, slots=True, repr=False)
class PruningReport(Shown):
    """Size before and after pruning, and its errors.

    Attributes
    ----------
    leaves, depth : int
        Before.
    pruned_leaves, pruned_depth : int
        After.
    share_of_cells : float
        Share of the ensemble's cells whose class the pruned tree gets wrong.
    share_of_volume : float
        Share of the volume, within the range of the data, whose class it gets wrong.
    """

    leaves: int
    depth: int
    pruned_leaves: int
    pruned_depth: int
    share_of_cells: float
    share_of_volume: float

    def __str__(self) -> str:
        return (
            f"pruned from {self.leaves:,} to {self.pruned_leaves:,} leaves; differs from the ensemble in "
            f"{self.share_of_cells:.2%} of its cells and {self.share_of_volume:.2%} of the volume that the data span"
        )


def prune(tree: Tree, ensemble: TreeEnsemble, X: np.ndarray) -> tuple[Tree, PruningReport]:
    """Prune a faithful tree where there is no data.

    Parameters
    ----------
    tree : Tree
        Faithful to the ensemble.
    ensemble : TreeEnsemble
    X : ndarray of shape (n, p), float64, n > 0

    Returns
    -------
    Tree
        With ``n_node_samples`` of the rows of X.
    PruningReport
    """
    nodes = nodes_of(tree, ensemble)
    rows = [len(each) for each in tree.rows_of_nodes(X)]
    replaced = {}
    for node in np.flatnonzero(~tree.is_leaf).tolist():
        for side, other in ((LEFT, RIGHT), (RIGHT, LEFT)):
            if rows[nodes[node, side]] == 0:
                replaced[node] = int(nodes[node, other])
    pruned = make_tree(collapsed(nodes, replaced), ensemble)
    cells, volume = _changes(tree, pruned, ensemble, X)
    report = PruningReport(tree.n_leaves, tree.max_depth, pruned.n_leaves, pruned.max_depth, cells, volume)
    return with_counts(pruned, X), report


def with_counts(tree: Tree, X: np.ndarray) -> Tree:
    """A tree with the number of rows of every node."""
    return replace(tree, n_node_samples=np.array([len(rows) for rows in tree.rows_of_nodes(X)], dtype=np.int64))


def _changes(tree: Tree, pruned: Tree, ensemble: TreeEnsemble, X: np.ndarray) -> tuple[float, float]:
    """Share of cells, and of volume, in which two trees differ: leaves of the one are sent through the other."""
    thresholds = ensemble.thresholds()
    low, high = X.min(axis=0), X.max(axis=0)
    p = len(low)
    cells, volume = 0.0, 0.0
    todo = [(0, 0, np.full(p, -np.inf), np.full(p, np.inf))]
    while todo:
        a, b, lower, upper = todo.pop()
        first, node = (tree, a) if not tree.is_leaf[a] else (pruned, b)
        if first.is_leaf[node]:
            if tree.action[a] != pruned.action[b]:
                cells += _share_of_cells(thresholds, lower, upper)
                volume += _share_of_volume(low, high, lower, upper)
            continue
        j, t = int(first.feature[node]), float(first.threshold[node])
        for child, begin, end in (
            (int(first.children_left[node]), lower[j], min(upper[j], t)),
            (int(first.children_right[node]), max(lower[j], t), upper[j]),
        ):
            if begin < end:
                below, above = lower.copy(), upper.copy()
                below[j], above[j] = begin, end
                todo.append((child, b, below, above) if first is tree else (a, child, below, above))
    return cells, volume


def _share_of_cells(thresholds: list[np.ndarray], lower: np.ndarray, upper: np.ndarray) -> float:
    """Share of the grid's cells in a box; cells end at thresholds, and one lies above the last."""
    share = 1.0
    for each, begin, end in zip(thresholds, lower, upper, strict=True):
        if len(each):
            ends = np.append(each, np.inf)
            share *= np.count_nonzero((ends > begin) & (ends <= end)) / len(ends)
    return share


def _share_of_volume(low: np.ndarray, high: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> float:
    """Share of the box low .. high; a column without variation only has to lie inside."""
    width = np.minimum(upper, high) - np.maximum(lower, low)
    flat = high == low
    if (width[~flat] <= 0).any() or (flat & ~((low > lower) & (low <= upper))).any():
        return 0.0
    return float(np.prod(width[~flat] / (high - low)[~flat]))
