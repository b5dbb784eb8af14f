"""The interface of objectives: the loss of a tree's leaf statistics, and the labels of its leaves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from policytree.common.validation import is_real
from policytree.exceptions import InputError, quoted
from policytree.objectives.references import Reference

Leaf = tuple[int, ...]  # the weight of every class in a leaf, as integers; of two classes: negatives, positives
LeafStatistics = Sequence[Leaf]


class Objective(ABC):
    """An objective of a classification tree.

    Attributes
    ----------
    name : str
        The name that users pass as ``objective=``.
    score_name : str
        The score that the objective is one minus of, in words.
    two_classes : bool
        Whether it is defined for two classes only; ``classes_[1]`` is then the positive one.
    additive : bool
        Whether the loss is a sum over rows: then :meth:`row_weights` turn it into an error rate.
    search : str
        Which search optimises an objective that is not additive: "ranking", "fractional" or "monotone".
    max_fpr : float or None
        The false positive rate up to which the ROC curve counts; None if all of it does, or none.

    Examples
    --------
    >>> from policytree.objectives.objective import Objective
    >>> from policytree.objectives.auc import AUC
    >>> isinstance(AUC(), Objective), AUC().score_name
    (True, 'area under the ROC curve')
    """

    name: ClassVar[str]
    score_name: ClassVar[str]
    two_classes: ClassVar[bool] = True
    additive: ClassVar[bool] = False
    search: ClassVar[str] = ""
    max_fpr: float | None = None

    @abstractmethod
    def loss(self, leaf_stats: LeafStatistics) -> Fraction:
        """One minus the score of a tree with these leaves, labelled by :meth:`labels`; exact for integer sums."""

    @abstractmethod
    def labels(self, leaf_stats: LeafStatistics) -> list[int]:
        """The class of every leaf."""

    @abstractmethod
    def score(self, codes: np.ndarray, predicted: np.ndarray, scores: np.ndarray, weight: np.ndarray) -> float:
        """The score on any rows, larger is better.

        Parameters
        ----------
        codes : ndarray of shape (n,), int
            Positions of the true classes; -1 for classes that were not seen at fit.
        predicted : ndarray of shape (n,), int
            Positions of the predicted classes.
        scores : ndarray of shape (n,), float64
            Of two classes: the share of positives in the leaf of every row.
        weight : ndarray of shape (n,), float64
        """

    def row_weights(self, codes: np.ndarray, classes: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Weights under which the objective is one minus the share of errors; shape (n,). Additive objectives only."""
        return weight

    def score_weights(self, codes: np.ndarray, classes: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Weights that :meth:`score` takes, where they depend on the class; codes of unknown classes are -1."""
        return weight

    def threshold(self, score: float) -> float | None:
        """The share of positives above which a leaf is called positive in a tree of that score; None: not known."""
        return 0.5

    def check_classes(self, classes: np.ndarray) -> None:
        """Refuse labels that the objective is not defined for."""
        if self.two_classes and len(classes) != 2:
            raise InputError(
                f"objective={self.name!r} needs two classes in y; got {len(classes)}. For several classes use "
                "'accuracy', 'balanced_accuracy' or WeightedAccuracy(class_weights=...)."
            )


class RankingObjective(Objective):
    """An objective of all leaves at once, which a reference (references.py) bounds by sums over leaves.

    Attributes
    ----------
    labels_matter : bool
        Whether the loss depends on the leaves' labels: splits between leaves of one label are then left out.
    """

    labels_matter: ClassVar[bool] = False

    @abstractmethod
    def reference(self, curve: np.ndarray, leaf_price: float, best: float, leaves: int, ratio: float) -> Reference:
        """Costs of leaves that bound the loss.

        Parameters
        ----------
        curve : ndarray of shape (k, 2)
            Shares of positives and of negatives of a mixture of good trees' leaves, by falling slope.
        leaf_price : float
        best : float
            Loss of the best tree known, the price of its ``leaves`` included.
        leaves : int
        ratio : float
            Positives over negatives.
        """

    @abstractmethod
    def leaf_numbers(
        self, positives: int, negatives: int, off: tuple[float, float] = (0.0, 0.0)
    ) -> tuple[str, list[float]]:
        """How kernels score leaf statistics: the kind of score, and its numbers.

        ``off``: by how much a leaf's positives and negatives may differ from those of the kernel once its sums are
        rounded to whole numbers, in their unit; zero where these are right.
        """

    @abstractmethod
    def moved(self, positives: float, negatives: float, ratio: float) -> float:
        """How far the loss of a tree moves at most if weights move by such shares of their class.

        Parameters
        ----------
        positives, negatives : float
            The sum of what the weights of a class move by, over its weight.
        ratio : float
            Positives over negatives.
        """

    def freely_labelled(self) -> Objective:
        """The objective under the best labels, which no rule for labels is better than."""
        return self

    def first_losses(self, ratio: float) -> np.ndarray | None:
        """A loss matrix (class, action) whose best tree is a good first one; None: that of a reference."""
        return None


def check_parameter(name: str, value: Any, low: float, high: float = float("inf")) -> None:
    """Refuse a parameter of an objective outside ``(low, high]``, in one sentence."""
    if not is_real(value) or isinstance(value, bool) or not low < value <= high or not np.isfinite(value):
        upper = "" if high == float("inf") else f" and <= {high:g}"
        raise InputError(f"{name} must be a finite number > {low:g}{upper}; got {quoted(value)}.")


def errors(leaf_stats: LeafStatistics, labels: Sequence[int]) -> tuple[int, int]:
    """False positives and false negatives of labelled leaves."""
    false_positives = sum(leaf[0] for leaf, label in zip(leaf_stats, labels, strict=True) if label == 1)
    false_negatives = sum(leaf[1] for leaf, label in zip(leaf_stats, labels, strict=True) if label == 0)
    return false_positives, false_negatives


def totals(leaf_stats: LeafStatistics) -> tuple[int, int]:
    """Negatives and positives of all leaves."""
    return sum(leaf[0] for leaf in leaf_stats), sum(leaf[1] for leaf in leaf_stats)


def majority(leaf_stats: LeafStatistics) -> list[int]:
    """The class of most weight in every leaf, the first of equal ones."""
    return [max(range(len(leaf)), key=lambda k: (leaf[k], -k)) for leaf in leaf_stats]


def from_best(leaf_stats: LeafStatistics) -> list[int]:
    """Positions of two-class leaves by their share of positives, highest first; empty leaves last."""
    share = [Fraction(p, n + p) if n + p else Fraction(-1) for n, p in leaf_stats]
    return sorted(range(len(leaf_stats)), key=lambda i: (-share[i], i))


def weighted_rates(codes: np.ndarray, predicted: np.ndarray, weight: np.ndarray) -> tuple[float, float, float, float]:
    """Weights of false positives, false negatives, positives and negatives; unknown classes count as negatives."""
    true, said = codes == 1, predicted == 1
    return (
        float(weight[said & ~true].sum()), float(weight[true & ~said].sum()),
        float(weight[true].sum()), float(weight[~true].sum()),
    )  # fmt: skip
