"""The F-score: with the best labels of the leaves, and with labels fixed by a ratio of costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from policytree.objectives.objective import (
    LeafStatistics,
    Objective,
    RankingObjective,
    check_parameter,
    errors,
    from_best,
    totals,
    weighted_rates,
)
from policytree.objectives.references import LabelledByOmega, Reference

EXACT_BITS, UNIT = 52, 2.0**-51  # bits of an exact product; what others are rounded by, with what is added to them
LARGEST = 1e6  # of beta and of 1 / beta: beyond, one of the two errors is all that counts


@lru_cache
def _squared(beta: float) -> Fraction:
    return Fraction(beta) ** 2


@dataclass(frozen=True)
class FScore(Objective):
    """F_beta, ``(1 + beta^2) TP / ((1 + beta^2) TP + beta^2 FN + FP)``, with the best label of every leaf.

    Which label of a leaf is best depends on the other leaves (Lin et al., ICML 2020, lemma D.1). For given leaf
    statistics the positive ones are those of the highest shares of positives, as many as is best.

    Parameters
    ----------
    beta : float > 0, default 1
        How many times as much recall counts as precision.

    Examples
    --------
    >>> from policytree import OptimalTreeClassifier
    >>> from policytree.objectives import FScore
    >>> X, y = [[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1]
    >>> objective = FScore(beta=2.0)
    >>> tree = OptimalTreeClassifier(max_depth=1, regularization=0.0, objective=objective).fit(X, y)
    >>> round(tree.score(X, y), 3)
    0.909
    """

    beta: float = 1.0

    name: ClassVar[str] = "f_score"
    score_name: ClassVar[str] = "F-score"
    search: ClassVar[str] = "fractional"

    def __post_init__(self) -> None:
        check_parameter("beta", self.beta, 0, LARGEST)
        check_parameter("1 / beta", 1 / self.beta, 0, LARGEST)

    @property
    def squared(self) -> Fraction:
        """``beta`` squared, exactly."""
        return _squared(self.beta)

    def ratio(self, false_positives: int, false_negatives: int, positives: int) -> Fraction:
        """``1 - F``: ``(FP + beta^2 FN) / ((1 + beta^2) P + FP - FN)``."""
        b, q = self.squared.numerator, self.squared.denominator
        whole = (b + q) * positives + q * (false_positives - false_negatives)
        return Fraction(q * false_positives + b * false_negatives, whole)

    def loss_of(self, leaf_stats: LeafStatistics, labels: Sequence[int]) -> Fraction:
        """``1 - F`` of labelled leaves."""
        return self.ratio(*errors(leaf_stats, labels), totals(leaf_stats)[1])

    def labels(self, leaf_stats: LeafStatistics) -> list[int]:
        """The best labels; of equal ones, those with fewest positive leaves."""
        order, P = from_best(leaf_stats), totals(leaf_stats)[1]
        false_positives, false_negatives = 0, P
        best, most = self.ratio(0, P, P), 0
        for k, i in enumerate(order, 1):
            false_positives += leaf_stats[i][0]
            false_negatives -= leaf_stats[i][1]
            loss = self.ratio(false_positives, false_negatives, P)
            if loss < best:
                best, most = loss, k
        labels = [0] * len(leaf_stats)
        for i in order[:most]:
            labels[i] = 1
        return labels

    def loss(self, leaf_stats: LeafStatistics) -> Fraction:
        """``1 - F`` under the best labels."""
        return self.loss_of(leaf_stats, self.labels(leaf_stats))

    def threshold(self, score: float) -> float | None:
        """``F / (1 + beta^2)``: of a tree with the best labels, where calling one more row positive changes nothing."""
        return score / (1 + float(self.squared))

    def score(self, codes: np.ndarray, predicted: np.ndarray, scores: np.ndarray, weight: np.ndarray) -> float:
        """F of the predictions, 0 where there is nothing to find and nothing is found (as in scikit-learn)."""
        false_positives, false_negatives, positives, _ = weighted_rates(codes, predicted, weight)
        b = float(self.squared)
        hits = (1 + b) * (positives - false_negatives)
        whole = hits + b * false_negatives + false_positives
        return hits / whole if whole > 0 else 0.0


@dataclass(frozen=True)
class OmegaFScore(FScore, RankingObjective):
    """F_beta where a leaf is positive if ``omega`` times its positives outweigh its negatives.

    The restricted labelling that Lin et al. (ICML 2020, appendix D) optimise in place of the F-score itself. The best
    tree is never better than that of :class:`FScore`.

    Parameters
    ----------
    beta : float > 0, default 1
    omega : float > 0, default 1

    Examples
    --------
    >>> from policytree import OptimalTreeClassifier
    >>> from policytree.objectives import OmegaFScore
    >>> X, y = [[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1]
    >>> objective = OmegaFScore(beta=1.0, omega=2.0)
    >>> tree = OptimalTreeClassifier(max_depth=1, regularization=0.0, objective=objective).fit(X, y)
    >>> round(tree.score(X, y), 3)
    0.8
    """

    omega: float = 1.0

    name: ClassVar[str] = "omega_f_score"
    score_name: ClassVar[str] = "F-score (leaves labelled by omega)"
    search: ClassVar[str] = "ranking"
    labels_matter: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_parameter("omega", self.omega, 0)

    def labels(self, leaf_stats: LeafStatistics) -> list[int]:
        """Positive where ``omega`` times the positives outweigh the negatives."""
        omega = Fraction(self.omega)
        return [int(omega * p > n) for n, p in leaf_stats]

    def threshold(self, score: float) -> float | None:
        """Where ``omega`` times the positives equal the negatives."""
        return 1 / (1 + self.omega)

    def freely_labelled(self) -> Objective:
        """The F-score itself."""
        return FScore(self.beta)

    def first_losses(self, ratio: float) -> np.ndarray:
        """Errors as omega weighs them."""
        return np.array([[0.0, 1.0], [self.omega * ratio, 0.0]])

    def reference(self, curve: np.ndarray, leaf_price: float, best: float, leaves: int, ratio: float) -> Reference:
        """Errors at the ratio of the best tree, whatever the curve."""
        return LabelledByOmega(self.squared, leaf_price, best, leaves, ratio)

    def leaf_numbers(
        self, positives: int, negatives: int, off: tuple[float, float] = (0.0, 0.0)
    ) -> tuple[str, list[float]]:
        """omega, beta squared, both totals, and how close to a tie a leaf's label is in doubt."""
        doubt = self.omega * off[0] + off[1]
        if Fraction(self.omega).numerator.bit_length() + positives.bit_length() > EXACT_BITS:
            doubt += UNIT * (self.omega * positives + negatives)
        return "omega", [self.omega, float(self.squared), positives, negatives, doubt]

    def moved(self, positives: float, negatives: float, ratio: float) -> float:
        """How far ``1 - F`` of given labels moves.

        F is A / D with ``A = (1 + beta^2) TP`` and ``D = beta^2 P + TP + FP``, and 1 at most. If TP and P move by e at
        most and FP by d, then A moves by ``(1 + beta^2) e`` and D by ``(1 + beta^2) e + d``, and F by no more than the
        sum of both over D, since ``A / D - A' / D' = (A - A' + F' (D' - D)) / D``. D is at least ``beta^2 P``.
        """
        b = float(self.squared)
        return (2 * (1 + b) * positives + negatives / ratio) / b
