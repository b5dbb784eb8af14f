"""Readable brute force for born-again trees: all boxes of a small grid of classes, all splits."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np

NONE = 10**6  # leaves where no tree is shallow enough


class SmallestTrees:
    """Least depth, least leaves, and least leaves within a depth of trees on a grid of classes."""

    def __init__(self, classes: np.ndarray):
        self.classes = classes
        self.whole = tuple((0, n - 1) for n in classes.shape)
        self.depth = cache(self._depth)
        self.leaves = cache(self._leaves)

    def is_pure(self, box) -> bool:
        part = self.classes[tuple(slice(a, b + 1) for a, b in box)]
        return bool((part == part.flat[0]).all())

    @staticmethod
    def splits(box):
        for j, (a, b) in enumerate(box):
            for t in range(a, b):
                yield (*box[:j], (a, t), *box[j + 1 :]), (*box[:j], (t + 1, b), *box[j + 1 :])

    def _depth(self, box) -> int:
        if self.is_pure(box):
            return 0
        return 1 + min(max(self.depth(one), self.depth(other)) for one, other in self.splits(box))

    def _leaves(self, box, within: int | None = None) -> int:
        if self.is_pure(box):
            return 1
        if within == 0:
            return NONE
        left = None if within is None else within - 1
        return min(NONE, *(self.leaves(one, left) + self.leaves(other, left) for one, other in self.splits(box)))

    def values(self) -> dict[str, tuple[int | None, int | None]]:
        """Depth and leaves by objective; None where the objective leaves them open."""
        depth = self.depth(self.whole)
        return {
            "depth": (depth, None),
            "leaves": (None, self.leaves(self.whole)),
            "depth_then_leaves": (depth, self.leaves(self.whole, depth)),
        }


def read(nodes: np.ndarray, shape) -> tuple[np.ndarray, int, int]:
    """Classes that a tree on cuts gives to all cells, its depth and its leaves."""
    out = np.full(shape, 255, dtype=np.uint8)

    def walk(node, box):
        feature, cut, left, right, action = nodes[node]
        if feature < 0:
            out[tuple(slice(a, b + 1) for a, b in box)] = action
            return 0, 1
        a, b = box[feature]
        assert a <= cut < b, "a split that separates nothing"
        low = walk(left, (*box[:feature], (a, cut), *box[feature + 1 :]))
        high = walk(right, (*box[:feature], (cut + 1, b), *box[feature + 1 :]))
        return 1 + max(low[0], high[0]), low[1] + high[1]

    return out, *walk(0, tuple((0, n - 1) for n in shape))


def cells_of(thresholds: list[np.ndarray]) -> np.ndarray:
    """A point in every cell: thresholds, and one beyond the last."""
    ends = [np.append(each, (each[-1] if len(each) else 0.0) + 1.0) for each in thresholds]
    return np.array(list(product(*ends)))
