"""The area under the ROC curve of a tree whose leaves are ranked by their share of positives."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from policytree.exceptions import InputError
from policytree.objectives.objective import LeafStatistics, RankingObjective, from_best, majority, totals
from policytree.objectives.references import Area, Reference


@dataclass(frozen=True)
class AUC(RankingObjective):
    """The area under the ROC curve; ranked by their shares of positives, leaves give its convex hull.

    Lin et al. (ICML 2020), section 2.1. Predictions are the majority of the leaf; ``decision_function`` and
    ``predict_proba`` have the ranking.

    Examples
    --------
    >>> from policytree import OptimalTreeClassifier
    >>> X, y = [[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1]
    >>> tree = OptimalTreeClassifier(max_depth=1, regularization=0.0, objective="auc").fit(X, y)
    >>> round(tree.score(X, y), 3)
    0.75
    """

    name: ClassVar[str] = "auc"
    score_name: ClassVar[str] = "area under the ROC curve"
    search: ClassVar[str] = "ranking"

    def loss(self, leaf_stats: LeafStatistics) -> Fraction:
        """Share of the pairs of a positive and a negative that are ranked wrongly; ties count half."""
        N, P = totals(leaf_stats)
        lost, below = 0, P
        for i in from_best(leaf_stats):
            n, p = leaf_stats[i]
            below -= p
            lost += n * (2 * below + p)
        return Fraction(lost, 2 * P * N)

    def labels(self, leaf_stats: LeafStatistics) -> list[int]:
        """The majority of the leaf."""
        return majority(leaf_stats)

    def reference(self, curve: np.ndarray, leaf_price: float, best: float, leaves: int, ratio: float) -> Reference:
        """Return the reference of the whole area."""
        return Area(curve, leaf_price, 1.0)

    def leaf_numbers(
        self, positives: int, negatives: int, off: tuple[float, float] = (0.0, 0.0)
    ) -> tuple[str, list[float]]:
        """The area up to the rate 1."""
        return "area", [1.0]

    def moved(self, positives: float, negatives: float, ratio: float) -> float:
        """Bound how far weights that move change the area up to the rate 1."""
        return area_moved(positives, negatives, 1.0)

    def score(self, codes: np.ndarray, predicted: np.ndarray, scores: np.ndarray, weight: np.ndarray) -> float:
        """Area under the ROC curve of ``scores``."""
        from sklearn.metrics import roc_auc_score

        return float(roc_auc_score(two_kinds(codes, weight), scores, sample_weight=weight))


def area_moved(positives: float, negatives: float, limit: float) -> float:
    """How far the area above a ROC curve up to a rate, divided by that rate, moves with the weights.

    The curve of ranked leaves with shares (p, n) is at x the most that a linear programme reaches: the sum of z p over
    z in [0, 1] with the sum of z n at most x. Weights that move by a share d of their class move the shares of leaves
    by at most 2 d in all, of which one half is gained and the other lost, so that any sum of z p moves by at most d.
    The curve thus moves up or down by ``positives`` at most, and to the left or right by ``negatives``, which changes
    the area below a curve of height 1 by no more than that.
    """
    return positives + negatives / limit


def two_kinds(codes: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Whether each row is positive; refuses rows of which all, or none, are."""
    positive = codes == 1
    if not (weight[positive].sum() > 0 and weight[~positive].sum() > 0):
        raise InputError("y has one class only, of which no ROC curve can be drawn; pass rows of both classes.")
    return positive


def roc_corners(leaf_stats: LeafStatistics) -> list[tuple[Fraction, Fraction]]:
    """Corners (false positive rate, true positive rate) of the ROC curve of ranked leaves, from (0, 0) to (1, 1)."""
    N, P = totals(leaf_stats)
    corners, x, y = [(Fraction(0), Fraction(0))], 0, 0
    for i in from_best(leaf_stats):
        x, y = x + leaf_stats[i][0], y + leaf_stats[i][1]
        corners.append((Fraction(x, N), Fraction(y, P)))
    return corners
