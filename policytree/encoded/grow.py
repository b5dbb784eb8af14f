"""From a search's splits to a tree with exact sums of all its nodes, by one more reading of the rows."""

from __future__ import annotations

import numpy as np

from policytree.encoded.streams import Streams
from policytree.solvers.core.compilation import load_kernels, streamed_kernels
from policytree.solvers.core.exact_sums import ExactSums
from policytree.solvers.core.rows import Splits
from policytree.solvers.core.scoring import right_children, sums_of_nodes, tree_of_leaves
from policytree.trees.tree import Tree


def grown(streams: Streams, splits: Splits, leaf_penalty: float) -> tuple[Tree, float, np.ndarray]:
    """The tree of splits, sibling leaves with the same action made one, with exact sums; its objective; nodes' means.

    ``splits``: (place among all coded features, cut) in preorder. Means (nodes, K) are those of rewards, or shares of
    classes. Of the same splits and rows, all are what a fit in memory makes of them, to the last bit.
    """
    data = streams.data
    load_kernels(streamed_kernels(data.dtype.name))
    feature = np.array([f for f, _ in splits], dtype=np.int64)
    right = right_children(feature.tolist())
    children = np.vstack([np.arange(1, len(splits) + 1), right])
    widest = max((c.n_codes for c in data.coded), default=1)
    goes_left = np.zeros((len(splits), widest), np.uint8)
    masks = {f: data.coded[f].goes_left() for f, _ in splits if f >= 0}
    for node, (f, t) in enumerate(splits):
        if f >= 0:
            goes_left[node, : data.coded[f].n_codes] = masks[f][t]
    found = streams.leaves(feature, goes_left, children)
    kept = _with_rows(feature, right, sums_of_nodes(feature, right, found.counts[feature < 0]))
    first = np.cumsum([0, *(len(each.columns) for each in data.coded)])  # each feature's first column
    shown = [(-1, 0) if f < 0 else _column(data.coded[f].cuts[t], int(first[f])) for f, t in (splits[k] for k in kept)]
    leaves = [node for node in kept if feature[node] < 0]
    values, weights = found.values[leaves], found.weights[leaves]
    if data.of_labels:  # giving a class to a row of another one loses the row's weight
        together = ExactSums(np.zeros_like(values.whole), values.exponent) + weights[:, None]
        losses = together + ExactSums(-values.whole, values.exponent)
    else:
        losses = ExactSums(streams.sign * values.whole, values.exponent)
    tree = tree_of_leaves(data.features, data.columns, shown, losses, found.counts[leaves])
    column = np.array([column for column, _ in shown])
    right = right_children(column.tolist())
    of_nodes = [
        ExactSums(sums_of_nodes(column, right, sums.whole)[tree.kept], sums.exponent).to_float()
        for sums in (values, weights)
    ]
    objective = tree.loss + leaf_penalty * tree.tree.n_leaves
    return tree.tree, objective, of_nodes[0] / of_nodes[1][:, None]


def _column(cut: tuple[int, int], first: int) -> tuple[int, int]:
    """A cut of a feature as one of its columns, of which the first has this number."""
    return first + cut[0], cut[1]


def _with_rows(feature: np.ndarray, right: np.ndarray, counts: np.ndarray) -> list[int]:
    """Nodes that stay, in preorder, where questions are left out that all rows answer alike."""
    kept: list[int] = []
    stack = [0]
    while stack:
        node = stack.pop()
        if feature[node] < 0:
            kept.append(node)
            continue
        low, high = node + 1, int(right[node])
        if counts[low] and counts[high]:
            kept.append(node)
            stack += [high, low]
        else:
            stack.append(low if counts[low] else high)
    return kept
