"""Product-limit curves (Kaplan and Meier), and the outcomes that follow from them without covariates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policytree.weighting.time_to_event.outcome import TimeToEvent


@dataclass(frozen=True, slots=True)
class ProductLimit:
    """The share without event, as a step function of time.

    Attributes
    ----------
    times : ndarray of shape (J,)
        Distinct times of events, ascending.
    survival : ndarray of shape (J,)
        Share without event after each of them.
    standard_errors : ndarray of shape (J,)
        Of Greenwood; without weights.
    """

    times: np.ndarray
    survival: np.ndarray
    standard_errors: np.ndarray

    def at(self, time: np.ndarray) -> np.ndarray:
        """Share without event after these times."""
        k = np.searchsorted(self.times, time, side="right")
        return np.append(1.0, self.survival)[k]

    def area(self, horizon: float) -> float:
        """Area under the curve up to the horizon: the restricted mean time without event."""
        edges = np.concatenate([[0.0], self.times[self.times < horizon], [horizon]])
        return float(np.append(1.0, self.survival)[: len(edges) - 1] @ np.diff(edges))


def product_limit(
    time: np.ndarray, event: np.ndarray, *, weight: np.ndarray | None = None, entry: np.ndarray | None = None
) -> ProductLimit:
    """The curve of Kaplan and Meier.

    Parameters
    ----------
    time : ndarray of shape (n,)
    event : ndarray of shape (n,), bool
    weight, entry : ndarray of shape (n,), or None
        Sampling weights; times from which on rows are under observation.

    Returns
    -------
    ProductLimit

    References
    ----------
    Kaplan and Meier (1958), Journal of the American Statistical Association 53(282), 457-481. Greenwood (1926).
    """
    weight = np.ones(len(time)) if weight is None else weight
    at = np.unique(time[event])
    at_risk = _weight_from(time, weight, at) - (0.0 if entry is None else _weight_from(entry, weight, at))
    died = _sums(np.searchsorted(at, time[event]), weight[event], len(at))
    hazard = died / at_risk
    survival = np.cumprod(1.0 - hazard)
    left = at_risk - died
    variance = np.cumsum(np.divide(hazard, left, out=np.zeros_like(hazard), where=left > 0.0))
    return ProductLimit(at, survival, survival * np.sqrt(variance))


def _weight_from(time: np.ndarray, weight: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Weight of the rows with ``time >= at``, for every one of these times."""
    order = np.argsort(time, kind="stable")
    total = np.append(0.0, np.cumsum(weight[order]))
    return total[-1] - total[np.searchsorted(time[order], at, side="left")]


def numbers_at_risk(time: np.ndarray, at: np.ndarray, entry: np.ndarray | None = None) -> np.ndarray:
    """Rows that are still followed just before each of these times, (len(at),) int."""
    ones = np.ones(len(time))
    out = _weight_from(time, ones, at)
    if entry is not None:
        out = out - _weight_from(entry, ones, at)
    return np.rint(out).astype(np.int64)


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
        Probability of not being censored by then.
    compensator : ndarray of shape (J + 1,)
        Sums of ``censoring hazard * ahead / followed`` up to and with each time.
    """

    times: np.ndarray
    ahead: np.ndarray
    followed: np.ndarray
    compensator: np.ndarray

    @property
    def mean(self) -> float:
        """Expected target at time 0."""
        return float(self.ahead[0])


def marginal_curve(times: TimeToEvent, weight: np.ndarray, floor: float) -> MarginalCurve:
    """The curve of all rows of ``times``; ``floor``: least probability of not being censored."""
    h = times.horizon
    at = np.unique(times.time[times.time <= h])
    at_risk = _weight_from(times.time, weight, at)
    if times.entry is not None:
        at_risk = at_risk - _weight_from(times.entry, weight, at)
    counts = [_counts(times, weight, at, code) for code in (1, 2)]
    ended = counts[0] + counts[1]
    lost = _counts(times, weight, at, 0)
    left = at_risk - ended
    hazards = [count / at_risk for count in counts]
    losing = np.divide(lost, left, out=np.zeros_like(lost), where=left > 0.0)
    ahead = np.empty(len(at) + 1)
    ahead[-1] = times.target.of_free(h)
    values = times.target.of_event(at, h), times.target.of_other(at, h)
    for j in range(len(at) - 1, -1, -1):
        ended_here = hazards[0][j] * values[0][j] + hazards[1][j] * values[1][j]
        ahead[j] = ended_here + (1.0 - hazards[0][j] - hazards[1][j]) * ahead[j + 1]
    followed = np.maximum(np.append(1.0, np.cumprod(1.0 - losing)), floor)
    compensator = np.append(0.0, np.cumsum(losing * ahead[1:] / followed[1:]))
    return MarginalCurve(at, ahead, followed, compensator)


def _counts(times: TimeToEvent, weight: np.ndarray, at: np.ndarray, code: int) -> np.ndarray:
    """Weight of what ends with a code at each of the times; who is free at the horizon is not lost there."""
    own = (times.code == code) & (times.time <= times.horizon) & ~times.free
    return _sums(np.searchsorted(at, times.time[own]), weight[own], len(at))


def _sums(place: np.ndarray, weight: np.ndarray, n: int) -> np.ndarray:
    """Sums of weights by place, (n,) float64; numpy counts in integers where there is nothing to sum."""
    return np.bincount(place, weights=weight, minlength=n).astype(np.float64)


def transformed_by_curve(times: TimeToEvent, curve: MarginalCurve) -> np.ndarray:
    """What takes the place of outcomes where nothing is known of rows but their arm, (n,).

    Among the rows of the curve its (weighted) mean is the area under the curve of Kaplan and Meier exactly, for the
    restricted mean time, and its value at the horizon for survival: censoring is weighted by its own product limit.
    """
    start = np.zeros(times.n, dtype=np.int64)
    if times.entry is not None:
        start = np.searchsorted(curve.times, times.entry, side="right")
    last = np.searchsorted(curve.times, np.minimum(times.time, times.horizon), side="left")  # its place, if below h
    followed, upto = curve.followed, np.where(times.free, len(curve.times), last + times.censored)
    # Events are weighted by the chance to be followed up to just before them, censored rows by that after them.
    out = np.where(times.known, times.observed_value, curve.ahead[np.minimum(upto, len(curve.times))]) / followed[upto]
    return followed[start] * (out - (curve.compensator[upto] - curve.compensator[start]))
