"""The least budget that reaches a gain: the inverse of a cost curve, with its confidence set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from policytree.evaluation.formatting import estimate_text


@dataclass(frozen=True, slots=True)
class BudgetEstimate:
    """The least budget that reaches a gain, with its confidence set.

    Attributes
    ----------
    value : float
        Infinite where the estimated curve does not reach the gain.
    lower, upper : float
        Ends of the set of budgets at which the curve's interval holds the gain; infinite where no budget may suffice.
    level : float

    Examples
    --------
    >>> import numpy as np
    >>> from policytree.evaluation import qini_curve
    >>> rng = np.random.default_rng(0)
    >>> effects = np.column_stack([np.zeros(2_000), rng.normal(size=(2_000, 2))])
    >>> scores = effects + rng.normal(size=effects.shape)
    >>> curve = qini_curve(effects, scores, {1: 1.0, 2: 3.0}, held_out=True)
    >>> curve.budget_for(0.5)
    BudgetEstimate(value=0.472415, 95% interval [0.384657, 0.55069])
    """

    value: float
    lower: float
    upper: float
    level: float

    def __repr__(self) -> str:
        interval = f"{100 * self.level:g}% interval [{self.lower:.6g}, {self.upper:.6g}]"
        return f"BudgetEstimate(value={self.value:.6g}, {interval})"

    def __str__(self) -> str:
        finite = [end for end in (self.lower, self.upper) if np.isfinite([end, self.value]).all()]
        return estimate_text(self, [abs(end - self.value) / 2 for end in finite])

    @classmethod
    def of(cls, value: float, ends: tuple[float, float], level: float) -> BudgetEstimate:
        """An estimate always lies in its own set, which is computed on a grid; NaN ends stay."""
        return cls(value, float(np.minimum(ends[0], value)), float(np.maximum(ends[1], value)), level)


def first_reach(spend: np.ndarray, gain: np.ndarray, wanted: float) -> float:
    """The spend at which a curve, straight between its corners, first reaches a gain; infinite if it never does."""
    if not (gain >= wanted).any():
        return np.inf
    k = int(np.argmax(gain >= wanted))
    if k == 0:
        return float(spend[0])
    return float(spend[k - 1] + (wanted - gain[k - 1]) / (gain[k] - gain[k - 1]) * (spend[k] - spend[k - 1]))


def budgets_that_may_give(gain: float, curve: pd.DataFrame) -> tuple[float, float]:
    """Ends of the set of budgets whose intervals hold a gain; between two budgets of the table by straight lines.

    Parameters
    ----------
    gain : float
    curve : DataFrame
        Columns budget, lower, upper, by rising budget.
    """
    budget, lower, upper = (curve[name].to_numpy() for name in ("budget", "lower", "upper"))
    outside = np.maximum(lower - gain, gain - upper)  # negative inside
    held = np.flatnonzero(outside <= 0)
    if not len(held):
        shown = np.flatnonzero(lower > gain)  # the first budget that gives more for sure, if any
        return (np.inf, np.inf) if not len(shown) else (budget[max(shown[0] - 1, 0)], budget[shown[0]])

    def crossing(i: int, j: int) -> float:
        part = outside[i] / (outside[i] - outside[j])
        return float(budget[i] + part * (budget[j] - budget[i]))

    first, last = held[0], held[-1]
    low = float(budget[0]) if first == 0 else crossing(first - 1, first)
    return low, np.inf if last == len(budget) - 1 else crossing(last, last + 1)
