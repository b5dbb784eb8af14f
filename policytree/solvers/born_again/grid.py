"""The grid of cells that an ensemble's thresholds make, and the class of every cell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policytree.solvers.born_again.ensembles import LARGEST, LEAF, NONNEGATIVE, TreeEnsemble
from policytree.solvers.born_again.kernels import cells as codes
from policytree.solvers.born_again.kernels.cells import Scores, classify_cells, cut_matters

ROW = 512  # cells of the last features that are gone through together, at most
_DECISIONS = {LARGEST: codes.LARGEST, NONNEGATIVE: codes.NONNEGATIVE}


@dataclass(frozen=True, slots=True)
class Grid:
    """Thresholds of an ensemble, and which leaves of its trees a cell of a feature can reach.

    Attributes
    ----------
    ensemble : TreeEnsemble
    thresholds : list of ndarray
        Of every feature, ascending; cell c of a feature lies above ``thresholds[c - 1]`` and not above
        ``thresholds[c]``.
    offset : ndarray of shape (p,), int64
        Where a feature's cells begin among the rows of ``reach``.
    reach : ndarray of shape (cells of all features, trees, words), int64
        Bits of the leaves of a tree that a cell can reach as far as its feature is asked for.
    first_leaf : ndarray of shape (trees,), int64
        Row of a tree's first leaf in ``values``.
    values : ndarray of shape (leaves, K)
        Scores of the leaves, tree after tree.
    """

    ensemble: TreeEnsemble
    thresholds: list[np.ndarray]
    offset: np.ndarray
    reach: np.ndarray
    first_leaf: np.ndarray
    values: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells of every feature."""
        return tuple(len(each) + 1 for each in self.thresholds)

    def whole(self) -> list[np.ndarray]:
        """All cells of every feature."""
        return [np.arange(n) for n in self.shape]

    def classes(self, cells: list[np.ndarray], flag: np.ndarray | None = None) -> np.ndarray:
        """Class of every cell of a sub-grid, given its cells of every feature; uint8."""
        shape = [len(each) for each in cells]
        parts = [self.reach[start + each] for start, each in zip(self.offset, cells, strict=True)]
        while len(parts) > 1 and len(parts[-2]) * len(parts[-1]) <= ROW:  # the last features become one
            last = parts.pop()
            parts[-1] = (parts[-1][:, None] & last).reshape(-1, *last.shape[1:])
        reach, rows = np.concatenate(parts), np.array([len(part) for part in parts])
        p, T, W, K = len(parts), reach.shape[1], reach.shape[2], self.values.shape[1]
        scores = Scores(
            rows, np.concatenate([[0], np.cumsum(rows)[:-1]]), reach, self.first_leaf, self.values,
            np.array(self.ensemble.ends, np.int64), self.ensemble.base, float(self.ensemble.divisor),
            _DECISIONS.get(self.ensemble.decision, codes.POSITIVE),
        )  # fmt: skip
        out = np.empty(int(np.prod(shape)), dtype=np.uint8)
        work = np.empty((p, T, W), np.int64), np.empty(p, np.int64), np.empty((2, rows[-1], K))
        classify_cells(scores, out, *work, np.zeros(1, np.int64) if flag is None else flag)
        return out.reshape(shape)


def make_grid(ensemble: TreeEnsemble) -> Grid:
    """Lay out the thresholds of an ensemble."""
    thresholds = ensemble.thresholds()
    offset = np.concatenate([[0], np.cumsum([len(each) + 1 for each in thresholds])]).astype(np.int64)
    sizes = [len(tree.leaves) for tree in ensemble.trees]
    words = max(1, -(-max(sizes) // 64))
    reach = np.zeros((offset[-1], len(sizes), words), dtype=np.uint64)
    for t, tree in enumerate(ensemble.trees):
        for k, ranges in enumerate(_ranges_of_leaves(tree, thresholds)):
            word, bit = divmod(k, 64)
            reach[:, t, word] |= np.uint64(1 << bit)
            for j, (low, high) in ranges.items():
                outside = reach[offset[j] : offset[j + 1], t, word]
                outside[:low] &= ~np.uint64(1 << bit)
                outside[high + 1 :] &= ~np.uint64(1 << bit)
    first_leaf = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    values = np.ascontiguousarray(np.concatenate([tree.value[tree.leaves] for tree in ensemble.trees]))
    return Grid(ensemble, thresholds, offset[:-1], reach.view(np.int64), first_leaf, values)


def _ranges_of_leaves(tree, thresholds) -> list[dict[int, tuple[int, int]]]:
    """For every leaf of a tree, in the order of ``tree.leaves``, the cells that its path leaves of a feature."""
    found: dict[int, dict[int, tuple[int, int]]] = {}
    todo: list[tuple[int, dict[int, tuple[int, int]]]] = [(0, {})]
    while todo:
        node, ranges = todo.pop()
        j = int(tree.feature[node])
        if j == LEAF:
            found[node] = ranges
            continue
        cut = int(np.searchsorted(thresholds[j], tree.threshold[node]))
        low, high = ranges.get(j, (0, len(thresholds[j])))
        todo.append((int(tree.left[node]), {**ranges, j: (low, min(high, cut))}))
        todo.append((int(tree.right[node]), {**ranges, j: (max(low, cut + 1), high)}))
    return [found[int(leaf)] for leaf in tree.leaves]


@dataclass(frozen=True, slots=True)
class Essence:
    """A grid without the cuts that never matter.

    Attributes
    ----------
    classes : ndarray, uint8
        One dimension for every feature that has a cut left.
    features : list of int
        Which features these are.
    cuts : list of ndarray
        Which cuts of the full grid are left, for each of them.
    """

    classes: np.ndarray
    features: list[int]
    cuts: list[np.ndarray]


def essence(classes: np.ndarray) -> Essence:
    """Leave out cuts across which the class never changes; they need not be split on.

    Two slabs beside such a cut have the same classes, so one of them stands for both.
    """
    kept = []
    for j in range(classes.ndim):
        n, stride = classes.shape[j], int(np.prod(classes.shape[j + 1 :]))
        flat = classes.reshape(-1)
        cuts = np.array([t for t in range(n - 1) if cut_matters(flat, n, stride, t)], dtype=np.int64)
        kept.append(cuts)
        if len(cuts) < n - 1:
            classes = np.ascontiguousarray(np.take(classes, [*cuts, n - 1], axis=j))
    features = [j for j, cuts in enumerate(kept) if len(cuts)]
    return Essence(classes.reshape([classes.shape[j] for j in features]), features, [kept[j] for j in features])
