"""Costs of leaves whose sum says of a tree that its bag is no better than the best one known.

Shares are p = positives of a leaf over all positives and n = negatives over all negatives. A reference is a list of
pairs (sp, sn); a leaf costs ``c(p, n) = sum_k min(p sn[k], n sp[k])``, a tree q(T), the sum over its leaves.

*The whole area.* Leaves as vectors (n, p) generate a zonogon Z(T), whose area is ``a(T) = 2 AUC - 1``. If the reference
are the leaves of another ROC curve (of any tree, or of a mixture of trees) with area a(S), the mixed area of Z(T) and
Z(S) is ``1 - q(T)``, and by Minkowski's inequality ``a(T) a(S) <= (1 - q(T))^2``.

*A part of it.* Where the curve of S has the slope w, T's curve lies below the line of that slope that touches it:
``T's height at x <= w x + sum over leaves of max(p - w n, 0)``. Over x up to ``max_fpr`` that gives ``loss(T) >= q(T) -
C`` with the pairs of S cut off at ``max_fpr`` and ``C = sum_k sp[k] x[k]``, x[k] being the middle of piece k.

*The F-score labelled by omega.* With c the loss of a good tree, the least of ``(1 - c) FP + (beta^2 + c) FN`` over
labels is q(T), and with ``D = (1 + beta^2) P + FP - FN`` any labelled tree has ``loss >= c + (q(T) - c (1 + beta^2)
P) / D``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from policytree.objectives.f_score import OmegaFScore

Pairs = np.ndarray  # (k, 2): shares of positives and of negatives, by falling slope


class Reference(ABC):
    """Pairs, and what sums of their costs mean.

    Attributes
    ----------
    pairs : ndarray of shape (k, 2)
        sp and sn.
    price : float
        What a leaf is charged beside its cost, so that trees of different size can be compared.
    """

    pairs: Pairs
    price: float

    @abstractmethod
    def loss_at(self, q: np.ndarray, leaves: np.ndarray) -> np.ndarray:
        """What trees lose at least whose costs sum up to q, the price of their leaves included."""

    @abstractmethod
    def budget(self, best: float, leaves: np.ndarray) -> np.ndarray:
        """By number of leaves, what the costs of a tree that loses less than ``best`` sum up to at most."""

    def losses(self) -> np.ndarray:
        """Costs as a loss matrix (2, actions): of a negative and of a positive, ranked before any pair, or after it."""
        before = np.concatenate([[0.0], np.cumsum(self.pairs[:, 1])])
        after = self.pairs[:, 0].sum() - np.concatenate([[0.0], np.cumsum(self.pairs[:, 0])])
        return np.array([after, before])


class WholeArea(Reference):
    """For the area under the whole ROC curve."""

    def __init__(self, curve: Pairs, leaf_price: float, best: float, leaves: int):
        self.pairs = curve
        self.leaf_price = leaf_price
        self.area = max(2.0 * area_below(curve) - 1.0, 1e-9)
        # so that trees a little larger or smaller than the best one are judged as by their objective
        self.price = leaf_price * np.sqrt(self.area / max(1.0 - 2.0 * (best - leaf_price * leaves), 1e-3))

    def loss_at(self, q: np.ndarray, leaves: np.ndarray) -> np.ndarray:
        """``(1 - (1 - q)^2 / a(S)) / 2`` and the price."""
        return 0.5 - np.maximum(1.0 - q, 0.0) ** 2 / self.area / 2.0 + self.leaf_price * leaves

    def budget(self, best: float, leaves: np.ndarray) -> np.ndarray:
        """``1 - sqrt(a a(S))`` with the area a that a better tree needs."""
        needed = np.maximum(1.0 - 2.0 * (best - self.leaf_price * leaves), 0.0)
        return np.where(needed > 1.0 + 1e-9, -1.0, 1.0 - np.sqrt(self.area * needed))


class PartOfArea(Reference):
    """For the area under the ROC curve up to a false positive rate."""

    def __init__(self, curve: Pairs, leaf_price: float, limit: float):
        start = np.concatenate([[0.0], np.cumsum(curve[:, 1])])
        width = np.clip(limit - start[:-1], 0.0, curve[:, 1])
        with np.errstate(divide="ignore", invalid="ignore"):
            rise = np.where(curve[:, 1] > 0, curve[:, 0] * width / curve[:, 1], 0.0)
        kept = width > 0
        self.pairs = np.column_stack([rise, width])[kept] / limit
        self.constant = float((self.pairs[:, 0] * (start[:-1] + width / 2)[kept]).sum())
        self.price = self.leaf_price = leaf_price

    def loss_at(self, q: np.ndarray, leaves: np.ndarray) -> np.ndarray:
        """``q - C`` and the price."""
        return q - self.constant + self.leaf_price * leaves

    def budget(self, best: float, leaves: np.ndarray) -> np.ndarray:
        """``best - price + C``."""
        return best - self.leaf_price * leaves + self.constant


class LabelledByOmega(Reference):
    """For the F-score of leaves that omega labels; costs and D in units of all negatives."""

    def __init__(self, objective: OmegaFScore, leaf_price: float, best: float, leaves: int, ratio: float):
        b = float(objective.squared)
        self.leaf_price = leaf_price
        self.c = min(max(best - leaf_price * leaves, 0.0), 1.0)
        self.pairs = np.array([[1.0 - self.c, (b + self.c) * ratio]])
        self.threshold = self.c * (1.0 + b) * ratio
        f = 1.0 - best + leaf_price  # F of a better tree is above it, so that D is between these two
        self.least = b * ratio * (1.0 + max(f, 0.0) / (1.0 + b - max(f, 0.0)))
        self.largest = min((1.0 + b) * ratio + 1.0, (1.0 + b) * ratio / max(f, 1e-9))
        self.price = leaf_price * (self.least + self.largest) / 2

    def loss_at(self, q: np.ndarray, leaves: np.ndarray) -> np.ndarray:
        """``c + (q - c (1 + beta^2) P) / D`` at the worst D of a better tree, and the price."""
        over = q - self.threshold
        return self.c + np.where(over < 0, over / self.least, over / self.largest) + self.leaf_price * leaves

    def budget(self, best: float, leaves: np.ndarray) -> np.ndarray:
        """The other way round."""
        gain = best - self.leaf_price * leaves - self.c
        return self.threshold + np.where(gain < 0, gain * self.least, gain * self.largest)


def area_below(curve: Pairs) -> float:
    """Area under the ROC curve of pairs by falling slope."""
    heights = np.concatenate([[0.0], np.cumsum(curve[:, 0])])
    return float((curve[:, 1] * (heights[:-1] + heights[1:])).sum() / 2)


def by_slope(curve: Pairs, most: int) -> Pairs:
    """Pairs by falling slope; neighbours become one where that changes the curve least, until ``most`` are left."""
    curve = curve[curve.sum(axis=1) > 0]
    curve = curve[np.argsort(-curve[:, 0] / curve.sum(axis=1), kind="stable")]
    while len(curve) > most:
        one, two = curve[:-1], curve[1:]
        k = int(np.argmin(np.abs(one[:, 0] * two[:, 1] - one[:, 1] * two[:, 0])))
        curve = np.vstack([curve[:k], curve[k : k + 1] + curve[k + 1], curve[k + 2 :]])
    return curve
