"""The area under the ROC curve up to a false positive rate."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar

import numpy as np

from policytree.objectives.auc import area_moved, roc_corners, two_kinds
from policytree.objectives.objective import LeafStatistics, RankingObjective, check_parameter, majority
from policytree.objectives.references import Area, Reference


@dataclass(frozen=True)
class PartialAUC(RankingObjective):
    """The area under the ROC curve up to a false positive rate, divided by that rate: a mean true positive rate.

    :meth:`standardized` turns it into scikit-learn's ``roc_auc_score(max_fpr=...)``, which rises with it.

    Parameters
    ----------
    max_fpr : float, default 0.2
        The false positive rate up to which the area counts; > 0 and <= 1. With 1 it is the whole area.

    Examples
    --------
    >>> from policytree import OptimalTreeClassifier
    >>> from policytree.objectives import PartialAUC
    >>> X, y = [[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1]
    >>> objective = PartialAUC(max_fpr=0.5)
    >>> tree = OptimalTreeClassifier(max_depth=1, regularization=0.0, objective=objective).fit(X, y)
    >>> round(tree.score(X, y), 3)
    0.625
    """

    max_fpr: float = 0.2

    name: ClassVar[str] = "partial_auc"
    score_name: ClassVar[str] = "partial area under the ROC curve"
    search: ClassVar[str] = "ranking"

    def __post_init__(self) -> None:
        check_parameter("max_fpr", self.max_fpr, 0, 1)

    def loss(self, leaf_stats: LeafStatistics) -> Fraction:
        """One minus the area up to ``max_fpr``, divided by ``max_fpr``."""
        limit, corners, area = Fraction(self.max_fpr), roc_corners(leaf_stats), Fraction(0)
        for (x0, y0), (x1, y1) in pairwise(corners):
            end = min(x1, limit)
            if end <= x0:
                continue
            # a trapezoid: y0 at its left end, and half of what is gained on the way to its right end
            area += (end - x0) * (y0 + (y1 - y0) * (end - x0) / (x1 - x0) / 2)
        return 1 - area / limit

    def labels(self, leaf_stats: LeafStatistics) -> list[int]:
        """The majority of the leaf."""
        return majority(leaf_stats)

    def reference(self, curve: np.ndarray, leaf_price: float, best: float, leaves: int, ratio: float) -> Reference:
        """Return the reference of the area up to ``max_fpr``."""
        return Area(curve, leaf_price, self.max_fpr)

    def leaf_numbers(
        self, positives: int, negatives: int, off: tuple[float, float] = (0.0, 0.0)
    ) -> tuple[str, list[float]]:
        """The area up to ``max_fpr``."""
        return "area", [self.max_fpr]

    def moved(self, positives: float, negatives: float, ratio: float) -> float:
        """Bound how far weights that move change the area up to ``max_fpr``."""
        return area_moved(positives, negatives, self.max_fpr)

    def score(self, codes: np.ndarray, predicted: np.ndarray, scores: np.ndarray, weight: np.ndarray) -> float:
        """Area under the ROC curve of ``scores`` up to ``max_fpr``, divided by ``max_fpr``."""
        from sklearn.metrics import roc_curve

        x, y, _ = roc_curve(two_kinds(codes, weight), scores, sample_weight=weight)
        stop = int(np.searchsorted(x, self.max_fpr, side="right"))
        ends = np.append(x[:stop], self.max_fpr)
        heights = np.append(y[:stop], np.interp(self.max_fpr, x, y))
        return float(np.trapezoid(heights, ends) / self.max_fpr)

    def standardized(self, score: float) -> float:
        """The same as scikit-learn has it (McClish 1989): 0.5 for a ranking by chance, 1 for a perfect one."""
        least = self.max_fpr / 2
        return 0.5 * (1 + (score - least) / (1 - least))
