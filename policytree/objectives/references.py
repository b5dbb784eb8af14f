"""Leaf costs whose sum proves that a tree is no better than the incumbent.

Shares are p = positives of a leaf over all positives and n = negatives over all negatives; a leaf's slope is p / n. A
reference is a curve by pieces (sp, sn), which at the slope w has passed the rate ``S(w) = sum of sn over pieces steeper
than w`` of negatives. q(T) is the sum over the leaves of a tree of their costs
(solvers/kernels/subsets/ranking_costs.py).

*Areas.* Where the ROC curve of T has the slope w, it has passed ``G(w) = sum of n over leaves steeper than w``. One
minus its height at x is the integral of ``max(G - x, 0)`` over w, and so the area above it up to the rate L is the
integral of ``H(G)``, with ``H(x) = x^2 / 2`` up to L and ``L x - L^2 / 2`` beyond. H is convex: for any S <= L,

    H(x) >= S x - S^2 / 2 + (H(x) - S x + S^2 / 2 where x > S, else 0).

The last part, as a function of x >= 0, is convex and 0 at 0: of a sum it is at least the sum of what it is of the
summands. G is a sum over leaves. So the area is at least the sum of the leaves' costs, less the integral of S^2 / 2,
and with costs of several leaves together it is a bound as well. S may be any falling function; the one of a mixture of
good trees makes the bound large. The first part alone is a sum of concave functions of leaves, as loss matrices have
them: ``n times the integral of S up to p / n = sum over pieces of min(p sn, n sp)``.

A leaf costs at least what its parts cost: on the slopes below both parts' own, because costs are convex in n from 0;
what the steeper part loses on further slopes, the other part's negatives make up for on those that it gains, where S
is no lower.

*The F-score labelled by omega.* With c the loss of a good tree, the least of ``(1 - c) FP + (beta^2 + c) FN`` over
labels is q(T), of one piece and the first part alone, and with ``D = (1 + beta^2) P + FP - FN`` any labelled tree has
``loss >= c + (q(T) - c (1 + beta^2) P) / D``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction

import numpy as np

Pairs = np.ndarray  # (k, 2): shares of positives and of negatives, by falling slope


class Reference(ABC):
    """A curve, and what sums of leaf costs mean.

    Attributes
    ----------
    pairs : ndarray of shape (k, 2)
        sp and sn.
    price : float
        Charge of a leaf beside its cost, so that trees of different size can be compared.
    limit : float
        The largest rate of negatives that counts.
    offset : float
        The amount that costs are compared with: its size says how far floats round the difference.
    curved : bool
        Whether leaves with more negatives than the curve has passed cost more than in proportion.
    """

    pairs: Pairs
    price: float
    limit: float
    offset: float
    curved: bool

    @abstractmethod
    def loss_at(self, q: np.ndarray, leaves: np.ndarray) -> np.ndarray:
        """Return a lower bound of the loss of trees whose costs sum up to q, the price of their leaves included."""

    @abstractmethod
    def cutoff(self, best: float, leaves: np.ndarray) -> np.ndarray:
        """By number of leaves, what the costs of a tree that loses less than ``best`` sum up to at most."""

    def losses(self) -> np.ndarray:
        """Costs as a loss matrix (2, actions): of a negative and of a positive, ranked before any pair, or after it."""
        before = np.concatenate([[0.0], np.cumsum(self.pairs[:, 1])])
        after = self.pairs[:, 0].sum() - np.concatenate([[0.0], np.cumsum(self.pairs[:, 0])])
        return np.array([after, before])


class Area(Reference):
    """For the area under the ROC curve up to a false positive rate."""

    curved = True

    def __init__(self, curve: Pairs, leaf_price: float, limit: float):
        start = np.concatenate([[0.0], np.cumsum(curve[:, 1])])
        width = np.clip(limit - start[:-1], 0.0, curve[:, 1])
        with np.errstate(divide="ignore", invalid="ignore"):
            rise = np.where(curve[:, 1] > 0, curve[:, 0] * width / curve[:, 1], 0.0)
        self.pairs = np.column_stack([rise, width])[width > 0]
        slopes, heights = steps_of(self.pairs)
        self.constant = float((heights[:-1] ** 2 * np.diff(slopes)).sum() / 2)
        self.offset = self.constant
        self.limit, self.leaf_price, self.price = limit, leaf_price, leaf_price * limit

    def loss_at(self, q: np.ndarray, leaves: np.ndarray) -> np.ndarray:
        """The area lost, divided by the rate, and the price."""
        return (q - self.constant) / self.limit + self.leaf_price * leaves

    def cutoff(self, best: float, leaves: np.ndarray) -> np.ndarray:
        """The other way round."""
        return (best - self.leaf_price * leaves) * self.limit + self.constant


class LabelledByOmega(Reference):
    """For the F-score of leaves that omega labels; costs and D in units of all negatives."""

    limit, curved = 1.0, False

    def __init__(self, squared: Fraction, leaf_price: float, best: float, leaves: int, ratio: float):
        b = float(squared)
        self.leaf_price = leaf_price
        self.c = min(max(best - leaf_price * leaves, 0.0), 1.0)
        self.pairs = np.array([[1.0 - self.c, (b + self.c) * ratio]])
        self.threshold = self.offset = self.c * (1.0 + b) * ratio
        f = 1.0 - best + leaf_price  # F of a better tree is above it, so that D is between these two
        self.least = b * ratio * (1.0 + max(f, 0.0) / (1.0 + b - max(f, 0.0)))
        self.largest = min((1.0 + b) * ratio + 1.0, (1.0 + b) * ratio / max(f, 1e-9))
        self.price = leaf_price * (self.least + self.largest) / 2

    def loss_at(self, q: np.ndarray, leaves: np.ndarray) -> np.ndarray:
        """``c + (q - c (1 + beta^2) P) / D`` at the worst D of a better tree, and the price."""
        over = q - self.threshold
        return self.c + np.where(over < 0, over / self.least, over / self.largest) + self.leaf_price * leaves

    def cutoff(self, best: float, leaves: np.ndarray) -> np.ndarray:
        """The other way round."""
        gain = best - self.leaf_price * leaves - self.c
        return self.threshold + np.where(gain < 0, gain * self.least, gain * self.largest)


def steps_of(pairs: Pairs) -> tuple[np.ndarray, np.ndarray]:
    """Slopes where the rate of negatives that a curve has passed falls, from 0, and that rate on every step."""
    pairs = pairs[pairs[:, 1] > 0]
    slopes = pairs[:, 0] / pairs[:, 1]
    order = np.argsort(slopes, kind="stable")
    after = pairs[order, 1].sum() - np.concatenate([[0.0], np.cumsum(pairs[order, 1])])
    return np.concatenate([[0.0], slopes[order]]), np.maximum(np.append(after[:-1], 0.0), 0.0)


def by_slope(curve: Pairs, most: int) -> Pairs:
    """Pairs by falling slope; neighbours become one where that changes the curve least, until ``most`` are left."""
    curve = curve[curve.sum(axis=1) > 0]
    curve = curve[np.argsort(-curve[:, 0] / curve.sum(axis=1), kind="stable")]
    while len(curve) > most:
        one, two = curve[:-1], curve[1:]
        k = int(np.argmin(np.abs(one[:, 0] * two[:, 1] - one[:, 1] * two[:, 0])))
        curve = np.vstack([curve[:k], curve[k : k + 1] + curve[k + 1], curve[k + 2 :]])
    return curve
