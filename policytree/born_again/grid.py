"""The grid of cells that an ensemble's thresholds make, and the class of every cell."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from policytree.born_again.ensembles import LARGEST, LEAF, NONNEGATIVE, TreeEnsemble
from policytree.born_again.kernels import cells as codes
from policytree.born_again.kernels.cells import Leads, Path, Scores, classify_cells, cut_matters

ROUNDING = 1e-9  # of the size of scores: a lead of more is none of rounding
WHOLE = 2.0**50  # whole numbers that add up to less are summed without rounding, and told apart after a division
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
        """Class of every cell of a sub-grid, given its cells of every feature; uint8.

        In memory features stand in the order that suits the work; :func:`essence` makes no copy of that.
        """
        rows = [self.reach[start + each] for start, each in zip(self.offset, cells, strict=True)]
        asked = [np.count_nonzero((part != part[0]).any(axis=(0, 2))) for part in rows]  # trees that ask for a feature
        order = sorted(range(len(cells)), key=lambda j: -asked[j])  # so that few trees are left for the last ones
        shape = [len(cells[j]) for j in order]
        reach = np.concatenate([rows[j] for j in order])
        sizes, (p, T, W) = np.array(shape, np.int64), (len(order), *reach.shape[1:])
        scores = Scores(
            sizes, np.cumsum(sizes) - sizes, reach, self.first_leaf, self.values,
            np.array(self.ensemble.ends, np.int64), self.ensemble.base, float(self.ensemble.divisor),
            _DECISIONS.get(self.ensemble.decision, codes.POSITIVE),
        )  # fmt: skip
        leads = self._leads()
        path = Path(
            np.zeros(p + 1, np.int64), np.zeros((p + 1, T, W), np.int64), np.zeros((p + 1, T), np.int64),
            np.zeros(p + 1, np.int64), np.zeros((p + 1, len(leads.base))), np.zeros(T, np.int64),
        )  # fmt: skip
        path.shared[0] = np.bitwise_or.reduce(reach[: shape[0]], axis=0)
        path.open[0], path.count[0], path.sums[0] = np.arange(T), T, leads.base
        out = np.empty(math.prod(shape), dtype=np.uint8)
        stride = np.array([math.prod(shape[j + 1 :]) for j in range(p)], np.int64)
        work = np.empty((2, self.values.shape[1]))
        classify_cells(scores, leads, path, out, stride, work, np.zeros(1, np.int64) if flag is None else flag)
        return out.reshape(shape).transpose(np.argsort(order))

    def _leads(self) -> Leads:
        """Scores as far as their order matters."""
        ensemble = self.ensemble
        scores, base = self.values, ensemble.base
        size = np.abs(base) + np.maximum.reduceat(np.abs(scores), self.first_leaf, axis=0).sum(axis=0)
        margin = 0.0 if _exact(scores, base) else ROUNDING * float(size.max())
        if ensemble.decision == LARGEST and len(base) == 2:
            scores, base = scores[:, 1:] - scores[:, :1], base[1:] - base[:1]
        elif ensemble.decision == LARGEST and len(base) == 1:
            base = np.array([-np.inf])  # there is no second class that could lead
        low = np.minimum.reduceat(scores, self.first_leaf, axis=0)
        high = np.maximum.reduceat(scores, self.first_leaf, axis=0)
        return Leads(np.ascontiguousarray(scores), np.ascontiguousarray(base), low, high, margin)


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


def _exact(values: np.ndarray, base: np.ndarray) -> bool:
    """Whether sums of scores are the same in any order: votes are whole numbers."""
    return bool((values % 1 == 0).all() and (base % 1 == 0).all() and np.abs(values).sum() + np.abs(base).sum() < WHOLE)


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
    order = sorted(range(classes.ndim), key=lambda j: -classes.strides[j])
    table, kept = np.ascontiguousarray(classes.transpose(order)), {}
    for axis, j in enumerate(order):
        n, stride = table.shape[axis], math.prod(table.shape[axis + 1 :])
        flat = table.reshape(-1)
        cuts = np.array([t for t in range(n - 1) if cut_matters(flat, n, stride, t)], dtype=np.int64)
        if len(cuts) < n - 1:
            table = np.ascontiguousarray(np.take(table, [*cuts, n - 1], axis=axis))
        if len(cuts):
            kept[j] = cuts
    features = sorted(kept)
    table = table.transpose(np.argsort(order)).reshape([len(kept[j]) + 1 for j in features])
    return Essence(np.ascontiguousarray(table), features, [kept[j] for j in features])
