"""Objectives that are error rates by weights: accuracy, balanced and weighted accuracy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from policytree.exceptions import InputError, quoted
from policytree.objectives.objective import LeafStatistics, Objective, check_parameter, majority


@dataclass(frozen=True)
class Accuracy(Objective):
    """The share of rows whose class is predicted; every unit of weight counts alike.

    Examples
    --------
    >>> from policytree import OptimalTreeClassifier
    >>> X, y = [[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1]
    >>> tree = OptimalTreeClassifier(max_depth=1, regularization=0.0, objective="accuracy").fit(X, y)
    >>> round(tree.score(X, y), 3)
    0.75
    """

    name: ClassVar[str] = "accuracy"
    score_name: ClassVar[str] = "accuracy"
    two_classes: ClassVar[bool] = False
    additive: ClassVar[bool] = True

    def loss(self, leaf_stats: LeafStatistics) -> Fraction:
        """Share of the weight that is not of its leaf's class."""
        return Fraction(sum(sum(leaf) - max(leaf) for leaf in leaf_stats), sum(sum(leaf) for leaf in leaf_stats))

    def labels(self, leaf_stats: LeafStatistics) -> list[int]:
        """The class of most weight."""
        return majority(leaf_stats)

    def score(self, codes: np.ndarray, predicted: np.ndarray, scores: np.ndarray, weight: np.ndarray) -> float:
        """Weighted share of hits."""
        return float(np.average(codes == predicted, weights=weight))


@dataclass(frozen=True)
class BalancedAccuracy(Objective):
    """The mean over classes of the share of their rows that is predicted (of two classes: (TPR + TNR) / 2).

    Examples
    --------
    >>> from policytree import OptimalTreeClassifier
    >>> X, y = [[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1]
    >>> tree = OptimalTreeClassifier(max_depth=1, regularization=0.0, objective="balanced_accuracy").fit(X, y)
    >>> round(tree.score(X, y), 3)
    0.75
    """

    name: ClassVar[str] = "balanced_accuracy"
    score_name: ClassVar[str] = "balanced accuracy"
    two_classes: ClassVar[bool] = False
    additive: ClassVar[bool] = True

    def _shares(self, leaf_stats: LeafStatistics) -> list[list[Fraction]]:
        sums = [sum(column) for column in zip(*leaf_stats, strict=True)]
        return [[Fraction(v, total) for v, total in zip(leaf, sums, strict=True)] for leaf in leaf_stats]

    def loss(self, leaf_stats: LeafStatistics) -> Fraction:
        """Mean over classes of the share that is lost."""
        shares = self._shares(leaf_stats)
        return 1 - sum((max(leaf) for leaf in shares), Fraction(0)) / len(shares[0])

    def labels(self, leaf_stats: LeafStatistics) -> list[int]:
        """The class of which the leaf has the largest share."""
        return [max(range(len(leaf)), key=lambda k: (leaf[k], -k)) for leaf in self._shares(leaf_stats)]

    def row_weights(self, codes: np.ndarray, classes: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Weights divided by their class's total, with the same sum as before; shape (n,)."""
        per_class = np.bincount(codes, weights=weight, minlength=len(classes))
        out = weight / per_class[codes]
        return out * (weight.sum() / out.sum())

    def score(self, codes: np.ndarray, predicted: np.ndarray, scores: np.ndarray, weight: np.ndarray) -> float:
        """Mean recall of the classes that occur."""
        recalls = [
            np.average(predicted[codes == k] == k, weights=weight[codes == k]) for k in _with_weight(codes, weight)
        ]
        return float(np.mean(recalls))


def _with_weight(codes: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return np.unique(codes[weight > 0])


@dataclass(frozen=True)
class WeightedAccuracy(Objective):
    """One minus the share of errors where classes differ in what a missed row counts.

    Of two classes, ``1 - (FP + omega FN) / (omega P + N)`` (Lin et al., ICML 2020, Table 1).

    Parameters
    ----------
    omega : float, default 1
        Weight of a missed positive, a false alarm counting one. Two classes only, unless it is 1.
    class_weights : mapping of label to number > 0, optional
        Weight of a missed row of each class, for any number of classes; classes that are left out count one.

    Examples
    --------
    >>> from policytree import OptimalTreeClassifier
    >>> from policytree.objectives import WeightedAccuracy
    >>> X, y = [[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1]
    >>> objective = WeightedAccuracy(class_weights={0: 1.0, 1: 5.0})
    >>> tree = OptimalTreeClassifier(max_depth=1, regularization=0.0, objective=objective).fit(X, y)
    >>> round(tree.score(X, y), 3)
    0.917
    """

    omega: float = 1.0
    class_weights: Mapping[Any, float] | None = None

    name: ClassVar[str] = "weighted_accuracy"
    score_name: ClassVar[str] = "weighted accuracy"
    two_classes: ClassVar[bool] = False
    additive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_parameter("omega", self.omega, 0)
        if self.class_weights is None:
            return
        if not isinstance(self.class_weights, Mapping):
            raise InputError(f"class_weights must be a mapping from label to number; got {quoted(self.class_weights)}.")
        if self.omega != 1:
            raise InputError("omega and class_weights say the same thing in two ways; give one of them.")
        for label, value in self.class_weights.items():
            check_parameter(f"the class weight of {label!r}", value, 0)

    def check_classes(self, classes: np.ndarray) -> None:
        """Refuse ``omega`` for more than two classes, and weights of classes that y lacks."""
        if self.omega != 1 and len(classes) != 2:
            raise InputError(
                f"WeightedAccuracy(omega=...) needs two classes in y; got {len(classes)}. Use class_weights instead."
            )
        unknown = [label for label in self.class_weights or () if label not in classes.tolist()]
        if unknown:
            raise InputError(f"class_weights names the class {unknown[0]!r}, which does not occur in y.")

    def of_classes(self, classes: np.ndarray) -> list[float]:
        """Return the weight of a missed row of each class."""
        if self.class_weights is None:
            return [1.0, float(self.omega)] if len(classes) == 2 else [1.0] * len(classes)
        return [float(self.class_weights.get(label, 1.0)) for label in classes.tolist()]

    def _weighted(self, leaf_stats: LeafStatistics) -> list[list[Fraction]]:
        each = [Fraction(1), Fraction(self.omega)] if len(leaf_stats[0]) == 2 else [Fraction(1)] * len(leaf_stats[0])
        return [[v * w for v, w in zip(leaf, each, strict=True)] for leaf in leaf_stats]

    def loss(self, leaf_stats: LeafStatistics) -> Fraction:
        """Share of the counted weight that is not of its leaf's class; for ``omega``, whose classes have an order."""
        leaves = self._weighted(leaf_stats)
        return Fraction(sum(sum(leaf) - max(leaf) for leaf in leaves), sum(sum(leaf) for leaf in leaves))

    def labels(self, leaf_stats: LeafStatistics) -> list[int]:
        """The class of most counted weight."""
        return [max(range(len(leaf)), key=lambda k: (leaf[k], -k)) for leaf in self._weighted(leaf_stats)]

    def row_weights(self, codes: np.ndarray, classes: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Weights times what the row's class counts; shape (n,)."""
        return weight * np.array(self.of_classes(classes))[codes]

    def score_weights(self, codes: np.ndarray, classes: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Weights times what the row's class counts; rows of an unknown class count one."""
        return np.where(codes < 0, weight, self.row_weights(codes, classes, weight))

    def score(self, codes: np.ndarray, predicted: np.ndarray, scores: np.ndarray, weight: np.ndarray) -> float:
        """Weighted share of hits; the weights are those of :meth:`row_weights`."""
        return float(np.average(codes == predicted, weights=weight))
