"""Any loss that does not fall as false positives or false negatives rise."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from policytree.common.validation import is_real
from policytree.exceptions import InputError, quoted
from policytree.objectives.objective import LeafStatistics, Objective, errors, from_best, totals, weighted_rates


class ErrorObjective(Objective):
    """A loss of false positives and false negatives that does not fall as either rises.

    Its trees come from Pareto fronts (:func:`policytree.solvers.multi_objective.monotone.solve_monotone`).
    """

    search: ClassVar[str] = "monotone"

    @abstractmethod
    def of_errors(self, false_positives: float, false_negatives: float, positives: float, negatives: float) -> float:
        """The loss of a tree, finite; all four arguments are sums of weights.

        :meth:`score` passes the sums of any rows, so that a class may be absent and its sum zero.
        """

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
        """:meth:`of_errors` of the best labels."""
        N, P = totals(leaf_stats)
        return Fraction(self.of_errors(*errors(leaf_stats, self.labels(leaf_stats)), P, N))

    def threshold(self, score: float) -> float | None:
        """None: the loss implies no threshold; any share between those of positive and negative leaves is one."""
        return None

    def score(self, codes: np.ndarray, predicted: np.ndarray, scores: np.ndarray, weight: np.ndarray) -> float:
        """One minus :meth:`of_errors` of the predictions."""
        return 1.0 - self.of_errors(*weighted_rates(codes, predicted, weight))


@dataclass(frozen=True)
class MonotoneObjective(ErrorObjective):
    """A loss of false positives and false negatives, as a function of Python.

    Parameters
    ----------
    function : callable
        ``function(false_positives, false_negatives, positives, negatives)`` gives what the tree loses, a number; all
        four are sums of weights. It must not fall where one of the first two rises; leaves are labelled as is best.
        ``score`` on rows of one class passes a zero for the other: a function that divides by it is refused there.

    Examples
    --------
    >>> from policytree.objectives import MonotoneObjective
    >>> cost = MonotoneObjective(lambda fp, fn, p, n: max(fp / n, fn / p))  # the worse of two error rates
    """

    function: Callable[[float, float, float, float], float]

    name: ClassVar[str] = "monotone"
    score_name: ClassVar[str] = "one minus the given loss"

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InputError(
                f"function must be a function of false positives and negatives; got {quoted(self.function)}."
            )

    def of_errors(self, false_positives: float, false_negatives: float, positives: float, negatives: float) -> float:
        """Evaluate the function as a finite number; refuse anything else, and a division by zero."""
        cause: ZeroDivisionError | None = None
        try:
            value = self.function(false_positives, false_negatives, positives, negatives)
        except ZeroDivisionError as error:
            given, cause = "divides by zero", error
        else:
            if is_real(value) and np.isfinite(value):
                return float(value)
            given = f"gave {value!r}"
        rows = f"{false_positives:g} false positives and {false_negatives:g} false negatives"
        if positives > 0 and negatives > 0:
            raise InputError(f"The objective's function {given} for {rows}; it must give finite numbers.") from cause
        raise InputError(
            f"The objective's function {given} for {rows} among rows of one class only: pass rows of both classes, or "
            "a function that gives a finite number where the weight of a class is zero."
        ) from cause
