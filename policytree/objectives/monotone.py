"""Any loss that does not fall as false positives or false negatives rise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from policytree.common.validation import is_real
from policytree.exceptions import InputError, quoted
from policytree.objectives.objective import LeafStatistics, Objective, errors, from_best, totals, weighted_rates


@dataclass(frozen=True)
class MonotoneObjective(Objective):
    """A loss of false positives and false negatives, as a function of Python.

    Parameters
    ----------
    function : callable
        ``function(false_positives, false_negatives, positives, negatives)`` gives what the tree loses, a number; all
        four are sums of weights. It must not fall where one of the first two rises; leaves are labelled as is best.

    Examples
    --------
    >>> from policytree.objectives import MonotoneObjective
    >>> cost = MonotoneObjective(lambda fp, fn, p, n: max(fp / n, fn / p))  # the worse of two error rates
    """

    function: Callable[[float, float, float, float], float]

    name: ClassVar[str] = "monotone"
    score_name: ClassVar[str] = "one minus the given loss"
    search: ClassVar[str] = "monotone"

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InputError(
                f"function must be a function of false positives and negatives; got {quoted(self.function)}."
            )

    def of_errors(self, false_positives: float, false_negatives: float, positives: float, negatives: float) -> float:
        """What the function says, as a finite number."""
        value = self.function(false_positives, false_negatives, positives, negatives)
        if not is_real(value) or not np.isfinite(value):
            raise InputError(
                f"The objective's function gave {value!r} for {false_positives:g} false positives and "
                f"{false_negatives:g} false negatives; it must give finite numbers."
            )
        return float(value)

    def labels(self, leaf_stats: LeafStatistics) -> list[int]:
        """The best labels: positive leaves are those of the highest shares of positives, as many as is best."""
        order, (N, P) = from_best(leaf_stats), totals(leaf_stats)
        labels, best, chosen = [0] * len(leaf_stats), self.of_errors(0, P, P, N), [0] * len(leaf_stats)
        for i in order:
            labels[i] = 1
            loss = self.of_errors(*errors(leaf_stats, labels), P, N)
            if loss < best:
                best, chosen = loss, list(labels)
        return chosen

    def loss(self, leaf_stats: LeafStatistics) -> Fraction:
        """What the function says of the best labels."""
        N, P = totals(leaf_stats)
        return Fraction(self.of_errors(*errors(leaf_stats, self.labels(leaf_stats)), P, N))

    def threshold(self, score: float) -> float | None:
        """Not known of a function; any share between positive and negative leaves is one."""
        return None

    def score(self, codes: np.ndarray, predicted: np.ndarray, scores: np.ndarray, weight: np.ndarray) -> float:
        """One minus what the function says of the predictions."""
        return 1.0 - self.of_errors(*weighted_rates(codes, predicted, weight))
