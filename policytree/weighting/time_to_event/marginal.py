"""Events and censoring of an arm whatever the covariates, and the outcomes that follow from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policytree.weighting.time_to_event.outcome import TimeToEvent
from policytree.weighting.time_to_event.product_limit import ratio, sums, weight_from


@dataclass(frozen=True, slots=True)
class MarginalCurve:
    """Events and censoring of one arm as step functions, whatever the covariates.

    At tied times events come before censoring.

    Attributes
    ----------
    times : ndarray of shape (J,)
        Distinct times up to the horizon.
    ahead : ndarray of shape (J + 1,)
        Expected target of who is free of events at 0, and after each of the times.
    followed : ndarray of shape (J + 1,)
        Probability of not being censored by then, raised to the floor.
    raised : ndarray of shape (J + 1,), bool
        Whether it was.
    compensator : ndarray of shape (J + 1,)
        Sums of ``censoring hazard * ahead / followed`` up to and with each time; where ``followed`` is raised to the
        floor, with the hazards that lead to that.
    """

    times: np.ndarray
    ahead: np.ndarray
    followed: np.ndarray
    raised: np.ndarray
    compensator: np.ndarray

    @property
    def mean(self) -> float:
        """Expected target at time 0."""
        return float(self.ahead[0])


def marginal_curve(times: TimeToEvent, weight: np.ndarray, floor: float) -> MarginalCurve:
    """The curve of all rows of ``times``; ``floor``: least probability of not being censored."""
    h = times.horizon
    at = np.unique(times.time[times.time <= h])
    at_risk = weight_from(times.time, weight, at)
    if times.entry is not None:
        at_risk = at_risk - weight_from(times.entry, weight, at)
    counts = [_counts(times, weight, at, code) for code in (1, 2)]
    ended = counts[0] + counts[1]
    lost = _counts(times, weight, at, 0)
    left = at_risk - ended
    hazards = [ratio(count, at_risk) for count in counts]
    losing = ratio(lost, left)
    ahead = np.empty(len(at) + 1)
    ahead[-1] = times.target.of_free(h)
    values = times.target.of_event(at, h), times.target.of_other(at, h)
    for j in range(len(at) - 1, -1, -1):
        ended_here = hazards[0][j] * values[0][j] + hazards[1][j] * values[1][j]
        ahead[j] = ended_here + (1.0 - hazards[0][j] - hazards[1][j]) * ahead[j + 1]
    chance = np.append(1.0, np.cumprod(1.0 - losing))
    followed = np.maximum(chance, floor)
    # 1 / followed rises by what the compensator takes away, so that means stay those of the curve at every floor.
    losing = 1.0 - ratio(followed[1:], followed[:-1])
    compensator = np.append(0.0, np.cumsum(ratio(losing * ahead[1:], followed[1:])))
    return MarginalCurve(at, ahead, followed, chance < floor, compensator)


def _counts(times: TimeToEvent, weight: np.ndarray, at: np.ndarray, code: int) -> np.ndarray:
    """Weight of what ends with a code at each of the times; who is free at the horizon is not lost there."""
    own = (times.code == code) & (times.time <= times.horizon) & ~times.free
    return sums(np.searchsorted(at, times.time[own]), weight[own], len(at))


def transformed_by_curve(times: TimeToEvent, curve: MarginalCurve) -> tuple[np.ndarray, np.ndarray]:
    """Transform outcomes where nothing is known of rows but their arm, (n,).

    Among the rows of the curve its (weighted) mean is the area under the curve of Kaplan and Meier exactly, for the
    restricted mean time, and its value at the horizon for survival: censoring is weighted by its own product limit.
    Rows that entered late count from their entry on, so that the mean is then about who is free of events at that time,
    and is not the curve's, which begins at 0.

    Returns
    -------
    outcome : ndarray of shape (n,)
    raised : ndarray of shape (n,), bool
        Rows whose probability of not being censored, at the end of their follow-up, was raised to the floor.
    """
    start = np.zeros(times.n, dtype=np.int64)
    if times.entry is not None:
        start = np.searchsorted(curve.times, times.entry, side="right")
    last = np.searchsorted(curve.times, np.minimum(times.time, times.horizon), side="left")  # its place, if below h
    followed, upto = curve.followed, np.where(times.free, len(curve.times), last + times.censored)
    # Events are weighted by the chance to be followed up to just before them, censored rows by that after them.
    out = np.where(times.known, times.observed_value, curve.ahead[np.minimum(upto, len(curve.times))]) / followed[upto]
    out = followed[start] * (out - (curve.compensator[upto] - curve.compensator[start]))
    return out, curve.raised[upto]
