"""From a search's splits to a tree with exact sums of all its nodes, by one more reading of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from policytree.encoded.store import EncodedData
from policytree.encoded.streams import Streams
from policytree.solvers.compilation import load_kernels, streamed_kernels
from policytree.solvers.node import Splits
from policytree.solvers.scoring import missing_goes_left
from policytree.tree import TREE_LEAF, TREE_UNDEFINED, Tree


def grown(streams: Streams, splits: Splits, leaf_penalty: float) -> tuple[Tree, float, np.ndarray]:
    """The tree of splits, sibling leaves with the same action made one, with exact sums; its objective; nodes' weights.

    ``splits``: (place among all coded features, cut) in preorder.
    """
    data = streams.data
    K, sign = len(data.labels), streams.sign
    shape = _Shape(splits)
    load_kernels(streamed_kernels(data.dtype.name))
    widest = max((c.n_codes for c in data.coded), default=1)
    goes_left = np.zeros((len(splits), widest), np.uint8)
    masks = {f: data.coded[f].goes_left() for f, _ in splits if f >= 0}
    for node, (f, t) in enumerate(splits):
        if f >= 0:
            goes_left[node, : data.coded[f].n_codes] = masks[f][t]
    feature = np.array([f for f, _ in splits], dtype=np.int64)
    sums: Any = streams.leaves(feature, goes_left, shape.children).astype(object)  # Python's whole numbers
    for node in reversed(range(len(splits))):
        if splits[node][0] >= 0:
            sums[node] = sums[shape.children[0, node]] + sums[shape.children[1, node]]
    kept = shape.with_rows([int(row[K + 1]) for row in sums])
    splits, sums = [splits[node] for node in kept], sums[kept]
    shape = _Shape(splits)
    losses = [[0, *(sign * int(v) for v in row[: K - 1])] for row in sums]
    action = [min(range(K), key=lambda k: (row[k], k)) for row in losses]
    keep = shape.merged(action)
    tree = _tree(data, splits, shape, keep, action, losses, sums, sign)
    leaves = [node for node in keep if node in shape.leaves]
    chosen = sum(losses[node][action[node]] for node in leaves)
    base = data.base.to_float(int(sums[0][K - 1])) * sign
    objective = base + data.relative.to_float(chosen) + leaf_penalty * len(leaves)
    return tree, objective, np.array([data.weight.to_float(int(sums[node][K])) for node in keep])


class _Shape:
    """Children of preorder splits, and which nodes are left once equal leaves are merged."""

    def __init__(self, splits: Splits):
        self.children = np.zeros((2, len(splits)), dtype=np.int64)
        self.n = len(splits)
        self.leaves = {node for node, (f, _) in enumerate(splits) if f < 0}
        inner: list[list[int]] = []  # nodes that wait for a child, and how many they have
        for node, (f, _) in enumerate(splits):
            if inner:
                parent, side = inner[-1]
                self.children[side, parent] = node
                inner[-1][1] += 1
                if side == 1:
                    inner.pop()
            if f >= 0:
                inner.append([node, 0])

    def with_rows(self, counts: list[int]) -> list[int]:
        """Nodes that stay, in preorder, where questions are left out that all rows answer alike."""
        kept: list[int] = []
        stack = [0]
        while stack:
            node = stack.pop()
            low, high = (int(c) for c in self.children[:, node])
            if node in self.leaves or (counts[low] and counts[high]):
                kept.append(node)
                stack += [] if node in self.leaves else [high, low]
            else:
                stack.append(low if counts[low] else high)
        return kept

    def merged(self, action: list[int]) -> list[int]:
        """Nodes that stay, in preorder; ``leaves`` are then those of the merged tree."""
        gone: set[int] = set()
        for node in reversed(range(self.n)):
            low, high = (int(c) for c in self.children[:, node])
            if node not in self.leaves and low in self.leaves and high in self.leaves and action[low] == action[high]:
                gone |= {low, high}
                self.leaves = (self.leaves - {low, high}) | {node}
                action[node] = action[low]
        return [node for node in range(self.n) if node not in gone]


def _tree(data: EncodedData, splits: Splits, shape: _Shape, keep, action, losses, sums, sign: int) -> Tree:
    number = {node: i for i, node in enumerate(keep)}
    K, rows = len(data.labels), []
    for node in keep:
        base = sign * data.base.to_float(int(sums[node][K - 1]))
        value = [base + data.relative.to_float(v) for v in losses[node]]
        count = int(sums[node][K + 1])
        if node in shape.leaves:
            rows.append((TREE_LEAF, TREE_LEAF, TREE_UNDEFINED, np.nan, False, action[node], count, value))
            continue
        f, t = splits[node]
        k, cut = data.coded[f].cuts[t]
        column = data.coded[f].columns[k]
        low, high = (int(c) for c in shape.children[:, node])
        left = missing_goes_left(data.features, data.columns, column, int(sums[low][K + 1]) / count)
        split = number[low], number[high], column.feature, float(column.thresholds[cut]), left
        rows.append((*split, action[node], count, value))
    columns = list(zip(*rows, strict=True))
    types = (np.int32, np.int32, np.int32, np.float64, bool, np.int32, np.int64, np.float64)
    names = (
        "children_left", "children_right", "feature", "threshold", "missing_go_to_left", "action", "n_node_samples",
        "value",
    )  # fmt: skip
    arrays: dict[str, Any] = {name: np.array(c, dtype=t) for name, c, t in zip(names, columns, types, strict=True)}
    return Tree(**arrays, features=data.features, actions=tuple(range(K)))
