"""Curves of events over time with pointwise intervals, whatever rows weigh and however they belong together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from policytree.weighting.time_to_event.outcome import TimeToEvent
from policytree.weighting.time_to_event.product_limit import numbers_at_risk, weight_from

MOST_TIMES = 200  # at which a curve is drawn


@dataclass(frozen=True, slots=True)
class EventCurve:
    """The share of people without event, or with an event of the cause, as a step function of time.

    Attributes
    ----------
    time : ndarray of shape (J,)
        Ascending from 0; the last is the end of follow-up, or the end that was asked for.
    share : ndarray of shape (J,)
        From each of these times on: without event (Kaplan and Meier), or, where a cause is asked about, with an event
        of that cause (Aalen and Johansen).
    lower, upper : ndarray of shape (J,)
        Ends of the pointwise interval; NaN where there is none, before the first event and where nobody is left.
    """

    time: np.ndarray
    share: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


def event_curve(
    times: TimeToEvent,
    end: float,
    *,
    weight: np.ndarray | None = None,
    groups: np.ndarray | None = None,
    level: float = 0.95,
) -> EventCurve:
    """Curve of these rows up to a time.

    Intervals are symmetric for log(-log(share)), so that they stay between 0 and 1. Standard errors come from every
    row's influence (the infinitesimal jackknife), summed within clusters. Without weights, clusters and late entries
    they are Greenwood's for the share without event.

    Parameters
    ----------
    times : TimeToEvent
    end : float
        Last time of the curve, if follow-up lasts as long.
    weight : ndarray of shape (n,), or None
        Sampling weights.
    groups : ndarray of shape (n,), int64, or None
        Clusters.
    level : float
        Coverage at every single time.

    References
    ----------
    Kaplan and Meier (1958), Journal of the American Statistical Association 53(282), 457-481. Aalen and Johansen
    (1978), Scandinavian Journal of Statistics 5(3), 141-150. Kalbfleisch and Prentice (2002), The Statistical Analysis
    of Failure Time Data, section 1.4 (intervals).
    """
    if weight is None:
        weight = np.ones(times.n)
    counted = np.flatnonzero(weight > 0.0)
    times, weight = times.rows(counted), weight[counted]
    if groups is not None:
        groups = groups[counted]
    steps = _Steps.of(times, weight)
    end = min(end, float(times.time.max()))
    at = steps.at[(steps.at > 0.0) & (steps.at < end)]
    if len(at) > MOST_TIMES:
        at = at[np.unique(np.linspace(0, len(at) - 1, MOST_TIMES).round().astype(np.int64))]
    at = np.concatenate([[0.0], at, [end]])
    k = np.searchsorted(steps.at, at, side="right")
    share = (np.append(0.0, steps.incidence) if times.target.by_cause else np.append(1.0, steps.survival))[k]
    errors = np.array([_error(steps.influence(times, weight, int(j)), groups) for j in k])
    return EventCurve(at, share, *_log_log_interval(share, errors, level))


def at_risk(times: TimeToEvent, at: np.ndarray) -> np.ndarray:
    """Rows under observation and without event just before each of these times, (len(at),) int; at 0, right then."""
    found = numbers_at_risk(times.time, at, times.entry)
    if times.entry is None:
        return found
    return np.where(at > 0.0, found, (times.entry == 0.0).sum())


def _error(influence: np.ndarray, groups: np.ndarray | None) -> float:
    """Standard error from what every row adds to an estimate, (n,)."""
    if groups is not None:
        influence = np.bincount(groups, weights=influence)
    return float(np.sqrt(influence @ influence))


def _log_log_interval(share: np.ndarray, errors: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Ends of intervals that are symmetric for log(-log(share)); NaN where the share is 0 or 1."""
    inside = (share > 0.0) & (share < 1.0)
    p = np.where(inside, share, 0.5)
    width = ndtri(0.5 + level / 2) * errors / np.abs(p * np.log(p))
    lower, upper = (np.where(inside, p ** np.exp(sign * width), np.nan) for sign in (1.0, -1.0))
    return lower, upper


@dataclass(frozen=True, slots=True)
class _Steps:
    """Counting process at the distinct times of events, (J,) each, and where rows (n,) stand among them.

    The influence of a row is made of three sums over the times at which it is exposed: of its own events (``jumps``)
    less what was to be expected (``drifts``). The first is about events of the cause, the others about all events.

    Attributes
    ----------
    at : ndarray
        Times of events of any cause.
    survival, incidence : ndarray
        Share without event after each, and with an event of the cause by then.
    jumps, drifts : tuple of three ndarrays
    first, last : ndarray of shape (n,), int64
        A row is exposed at the times ``at[first:last]``.
    """

    at: np.ndarray
    survival: np.ndarray
    incidence: np.ndarray
    jumps: tuple[np.ndarray, ...]
    drifts: tuple[np.ndarray, ...]
    first: np.ndarray
    last: np.ndarray

    @classmethod
    def of(cls, times: TimeToEvent, weight: np.ndarray) -> _Steps:
        """Of rows of positive weight."""
        at = np.unique(times.time[times.code > 0])
        exposed = weight_from(times.time, weight, at)
        if times.entry is not None:
            exposed = exposed - weight_from(times.entry, weight, at)
        own, every = (
            np.bincount(np.searchsorted(at, times.time[of]), weights=weight[of], minlength=len(at))
            for of in (times.code == 1, times.code > 0)
        )
        survival = np.cumprod(1.0 - every / exposed)
        before = np.append(1.0, survival)[:-1]
        incidence = np.cumsum(before * own / exposed)
        left = exposed - every
        # Where nobody is left the share without event is 0, whoever the last rows are.
        by_left = np.divide(1.0, left, out=np.zeros_like(left), where=left > 1e-12 * exposed)
        jumps = (before / exposed, by_left, incidence * by_left)
        hazards = (own / exposed, every / exposed, every / exposed)
        drifts = tuple(np.cumsum(jump * hazard) for jump, hazard in zip(jumps, hazards, strict=True))
        first = np.zeros(times.n, dtype=np.int64)
        if times.entry is not None:
            first = np.searchsorted(at, times.entry, side="right")
        return cls(at, survival, incidence, jumps, drifts, first, np.searchsorted(at, times.time, side="right"))

    def influence(self, times: TimeToEvent, weight: np.ndarray, k: int) -> np.ndarray:
        """Return every row's influence on the share after the first ``k`` times of events, (n,)."""
        if k == 0:
            return np.zeros(times.n)
        first, last = np.minimum(self.first, k), np.minimum(self.last, k)
        sums = []
        for jump, drift, of in zip(
            self.jumps, self.drifts, (times.code == 1, times.code > 0, times.code > 0), strict=True
        ):
            drifted = np.append(0.0, drift)
            own = np.where(of & (self.last <= k), jump[last - 1], 0.0)  # an event is the last time of its row
            sums.append(own - (drifted[last] - drifted[first]))
        by_cause, by_all, before_it = sums
        if times.target.by_cause:
            return weight * (by_cause - self.incidence[k - 1] * by_all + before_it)
        return -weight * self.survival[k - 1] * by_all
