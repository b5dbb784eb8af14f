"""Gradient boosting on integer codes, refitted without some of its thresholds in a fraction of a fit's time.

scikit-learn's GradientBoostingClassifier fits the same trees, up to ties and rounding (the tests hold them against each
other). This one exists for column elimination, which refits a model once for every threshold that it drops: trees that
come before the first use of a dropped threshold stay as they are, since a split that was best among more thresholds is
best among fewer; and rows that no threshold tells apart are one row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

PURE = np.finfo(float).eps  # variance of a node that is not split, as in scikit-learn
MOST_SORTED = 1_000_000
NO_CURVATURE = 1e-150  # sum of second derivatives that a leaf's value is not divided by, as in scikit-learn


@dataclass(frozen=True)
class BoostedTree:
    """One regression tree as arrays over its nodes; a child's number is larger than its parent's.

    Attributes
    ----------
    column, cut, left : ndarray of shape (n_nodes,), int64
        A node with ``column >= 0`` sends codes ``<= cut`` to node ``left``, others to ``left + 1``.
    gain : ndarray of shape (n_nodes,)
        By how much the split lowers the weighted sum of squares.
    value : ndarray of shape (n_nodes,)
        Each leaf's addition to the score, before shrinkage.
    leaf : ndarray of shape (n,)
        The leaf of every row of the fit.
    """

    column: np.ndarray
    cut: np.ndarray
    left: np.ndarray
    gain: np.ndarray
    value: np.ndarray
    leaf: np.ndarray

    def apply(self, codes: np.ndarray) -> np.ndarray:
        """Return the leaf of every row of codes (n_columns, n)."""
        node = np.zeros(codes.shape[1], dtype=np.int64)
        for k in np.flatnonzero(self.column >= 0):
            rows = np.flatnonzero(node == k)
            node[rows] = self.left[k] + (codes[self.column[k], rows] > self.cut[k])
        return node


class BoostedTrees:
    """Boosted trees for weighted labels, by the logistic or multinomial loss.

    Parameters
    ----------
    codes : ndarray of shape (n_columns, n)
        Integer codes >= 0.
    label : ndarray of shape (n,), int64
        At least two different ones.
    weight : ndarray of shape (n,), > 0
    n_estimators, max_depth, learning_rate
        As in scikit-learn's GradientBoostingClassifier.
    """

    def __init__(self, codes, label, weight, n_estimators: int, max_depth: int, learning_rate: float):
        self.classes, label = np.unique(label, return_inverse=True)
        rows, self.weight = _merged(np.vstack([codes, label[None]]).astype(np.int32), weight)
        codes, self.label = np.ascontiguousarray(rows[:-1]), rows[-1]
        self.codes, self.shape = codes, (len(codes), int(codes.max(initial=0)) + 1)
        self.n_estimators, self.max_depth, self.learning_rate = n_estimators, max_depth, learning_rate
        share = np.bincount(self.label, weights=self.weight) / self.weight.sum()
        prior = np.log(share) if len(share) > 2 else np.log(share[1:] / share[0])
        self.prior = prior - prior.mean() if len(prior) > 1 else prior
        self.target = np.arange(len(share)) == self.label[:, None] if len(share) > 2 else self.label[:, None] == 1
        self.stages: list[list[BoostedTree]] = []
        self.forbidden = np.zeros(self.shape, dtype=bool)

    def fit(self, dropped: np.ndarray | None = None) -> float:
        """Fit, or fit again with thresholds dropped, and return the weighted training accuracy.

        Parameters
        ----------
        dropped : ndarray of shape (n_columns, n_bins), bool, optional
            Codes that no split may have as its cut. If more are dropped than in the fit before, those of its trees are
            taken over that come before the first one with such a split.
        """
        forbidden = np.zeros(self.shape, dtype=bool) if dropped is None else dropped
        if (self.forbidden & ~forbidden).any():
            self.stages = []
        self.forbidden = forbidden
        valid = next((m for m, stage in enumerate(self.stages) if self._uses(stage, forbidden)), len(self.stages))
        self.stages = self.stages[:valid]
        score = np.tile(self.prior, (len(self.label), 1))
        for stage in self.stages:
            self._add(score, stage)
        while len(self.stages) < self.n_estimators:
            chance = _chance(score)
            stage = [self._tree(t - p, p, forbidden) for t, p in zip(self.target.T, chance.T, strict=True)]
            self._add(score, stage)
            self.stages.append(stage)
        return float(self.weight[_best(score) == self.label].sum() / self.weight.sum())

    def predict(self, codes: np.ndarray) -> np.ndarray:
        """Labels of rows of codes (n_columns, n)."""
        score = np.tile(self.prior, (codes.shape[1], 1))
        for stage in self.stages:
            for k, tree in enumerate(stage):
                score[:, k] += self.learning_rate * tree.value[tree.apply(codes)]
        return self.classes[_best(score)]

    def gains(self) -> np.ndarray:
        """Total gain of every column and cut, -1 where no split uses it; shape (n_columns, n_bins)."""
        gain = np.where(self.used(), 0.0, -1.0)
        for stage in self.stages:
            for tree in stage:
                split = tree.column >= 0
                np.add.at(gain, (tree.column[split], tree.cut[split]), tree.gain[split])
        return gain

    def used(self) -> np.ndarray:
        """Mark the columns and cuts that some tree splits at; shape (n_columns, n_bins), bool."""
        used = np.zeros(self.shape, dtype=bool)
        for stage in self.stages:
            for tree in stage:
                split = tree.column >= 0
                used[tree.column[split], tree.cut[split]] = True
        return used

    def _uses(self, stage: list[BoostedTree], forbidden: np.ndarray) -> bool:
        return any((forbidden[tree.column, tree.cut] & (tree.column >= 0)).any() for tree in stage)

    def _add(self, score: np.ndarray, stage: list[BoostedTree]) -> None:
        for k, tree in enumerate(stage):
            score[:, k] += self.learning_rate * tree.value[tree.leaf]

    def _tree(self, residual: np.ndarray, chance: np.ndarray, forbidden: np.ndarray) -> BoostedTree:
        """Level by level; a level's open nodes share one pass over the codes."""
        column, cut, left, gain = ([-1], [0], [0], [0.0])
        node = np.zeros(len(residual), dtype=np.int64)
        first = 0  # node of the present level with the smallest number
        for _ in range(self.max_depth):
            open_rows = np.flatnonzero(node >= first)
            level = node[open_rows] - first
            found = self._splits(residual, open_rows, level, len(column) - first, forbidden)
            last = len(column)
            for k, (place, won) in enumerate(found):
                if place >= 0:
                    (column[first + k], cut[first + k]), gain[first + k] = divmod(place, self.shape[1]), won
                    left[first + k] = len(column)
                    column += [-1, -1]
                    for values in (cut, left, gain):
                        values += [0, 0]
            if len(column) == last:
                break
            at = node[open_rows]
            j = np.array(column)[at]
            split = j >= 0
            rows, at, j = open_rows[split], at[split], j[split]
            node[rows] = np.array(left)[at] + (self.codes[j, rows] > np.array(cut)[at])
            first = last
        value = self._values(node, residual, chance, len(column))
        return BoostedTree(np.array(column), np.array(cut), np.array(left), np.array(gain), value, node)

    def _splits(self, residual, rows, level, n_nodes: int, forbidden) -> list[tuple[int, float]]:
        """The best split of every node of a level: its place among all bins (-1 for none), and its gain."""
        w, bins = self.weight[rows], self.shape[0] * self.shape[1]
        r = w * residual[rows]
        total, sums, squares = (np.bincount(level, v, n_nodes) for v in (w, r, r * residual[rows]))
        mean = np.divide(sums, total, out=np.zeros(n_nodes), where=total > 0)
        W, S = np.empty((2, n_nodes, *self.shape))
        first_bin = level * self.shape[1]
        for j, codes in enumerate(self.codes):
            place = codes[rows] + first_bin
            for table, v in ((W, w), (S, r)):
                table[:, j] = np.bincount(place, v, n_nodes * self.shape[1]).reshape(n_nodes, -1)
        # From both ends, so that a side without rows weighs exactly nothing.
        w_left, s_left = (V.cumsum(axis=2) for V in (W, S))
        w_right, s_right = (_beyond(V) for V in (W, S))
        both = (w_left > 0) & (w_right > 0) & ~forbidden
        with np.errstate(divide="ignore", invalid="ignore"):
            apart = s_left / w_left - s_right / w_right
            score = np.where(both, w_left * w_right * apart**2, -1.0).reshape(n_nodes, bins)
        best = score.argmax(axis=1)
        value = score[np.arange(n_nodes), best]
        splits = (value >= 0) & (squares / np.maximum(total, PURE) - mean**2 > PURE)
        best = np.where(splits, best, -1)
        return list(zip(best.tolist(), (value / np.maximum(total, PURE)).tolist(), strict=True))

    def _values(self, leaf, residual, chance, n_nodes: int) -> np.ndarray:
        """One Newton step in every leaf."""
        top = np.bincount(leaf, self.weight * residual, n_nodes)
        bottom = np.bincount(leaf, self.weight * chance * (1 - chance), n_nodes)
        step = np.divide(top, bottom, out=np.zeros(n_nodes), where=np.abs(bottom) > NO_CURVATURE)
        K = len(self.prior)
        return step if K == 1 else step * (K - 1) / K


def _beyond(values: np.ndarray) -> np.ndarray:
    """Sums of what comes after every entry of the last axis."""
    out = np.zeros_like(values)
    out[..., :-1] = values[..., :0:-1].cumsum(axis=-1)[..., ::-1]
    return out


def _chance(score: np.ndarray) -> np.ndarray:
    """Chances of the classes; of the second one where there are two."""
    return softmax(score, axis=1) if score.shape[1] > 1 else 1 / (1 + np.exp(-score))


def _best(score: np.ndarray) -> np.ndarray:
    """Position of the most probable class."""
    return score.argmax(axis=1) if score.shape[1] > 1 else (score[:, 0] >= 0).astype(np.int64)


def _merged(rows: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct columns of ``rows`` (values, n), and the weight of each; all of them where sorting takes long."""
    if len(weight) > MOST_SORTED:
        return rows, np.asarray(weight, dtype=np.float64)
    order = np.lexsort(rows)
    ordered = rows[:, order]
    new = np.concatenate([[True], (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)])
    return ordered[:, new], np.bincount(np.cumsum(new) - 1, weights=weight[order])
