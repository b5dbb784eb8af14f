"""Transformed censored outcomes: right on average if the model of events or that of censoring is right.

With the target's value ``y`` of known outcomes, ``Q(u)`` the expected target of who is free of events at ``u``,
``G(u)`` the probability of not being censored by ``u`` and ``C`` the cumulative hazard of censoring, a row that was
followed up to ``U`` gets

    known * y / G(U-) + censored * Q(U) / G(U) - integral over the time at risk of Q(u) / G(u) dC(u).

Its mean given the covariates and the arm is the expected target if the hazards of events (in Q) or those of censoring
(in G and C) are right (Robins and Rotnitzky 1992; Rubin and van der Laan 2007, International Journal of Biostatistics
3(1), equation 3). Rows that entered late count from their entry on: G is then the probability given that they were
followed at their entry, and the mean is that of who is free of events at that time.

Where ``G`` falls below a floor it stays there, and ``C`` with it: 1/G rises by what the integral takes away, so that
the mean is still right if the hazards of events are, and no row counts for more than the floor allows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policytree.weighting.time_to_event.grid import Grid, PersonTime
from policytree.weighting.time_to_event.outcome import Target, TimeToEvent

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(3)
NODES, NODE_WEIGHTS = (_NODES + 1.0) / 2.0, _WEIGHTS / 2.0  # of the integral within a bin, for [0, 1]
LARGEST_PROBABILITY = 0.999  # of an event or of censoring within a bin of discrete time
SMALLEST = 1e-300  # hazard that one is divided by


@dataclass(frozen=True, slots=True)
class Hazards:
    """Hazards of rows in every bin, of events of the cause, of other causes and of censoring.

    Attributes
    ----------
    event, other : ndarray of shape (n, J)
        Per unit of time; probabilities in discrete time. ``other`` is None where there is one cause only.
    censoring : ndarray of shape (n, J)
    """

    event: np.ndarray
    other: np.ndarray | None
    censoring: np.ndarray


def expected_target(event: np.ndarray, other: np.ndarray | None, grid: Grid, target: Target, horizon: float):
    """Expected target given no event up to every edge of the bins, (n, J + 1); at 0 in the first column."""
    n, n_bins = event.shape
    ahead = np.empty((n, n_bins + 1))
    ahead[:, -1] = target.of_free(horizon)
    first, second = _capped(event, other) if grid.tied else (event, other)
    for j in range(n_bins - 1, -1, -1):
        one, two = first[:, j], None if second is None else second[:, j]
        if not grid.tied:
            ahead[:, j] = _within(one, two, grid.edges[j], grid.edges[j + 1], ahead[:, j + 1], target, horizon)
            continue
        end = grid.edges[j + 1]
        ahead[:, j] = one * target.of_event(end, horizon) + (1.0 - one) * ahead[:, j + 1]
        if two is not None:
            ahead[:, j] += two * (target.of_other(end, horizon) - ahead[:, j + 1])
    return ahead


def _capped(event: np.ndarray, other: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Probabilities within bins that sum to less than one."""
    total = event if other is None else event + other
    by = np.minimum(1.0, LARGEST_PROBABILITY / np.maximum(total, LARGEST_PROBABILITY))
    return event * by, None if other is None else other * by


def _within(one, two, start, end, ahead, target: Target, horizon: float) -> np.ndarray:
    """Expected target given no event up to ``start``, from that at the end of the bin in which hazards are constant."""
    hazard = one if two is None else one + two
    width = end - start
    x = hazard * width
    lasting = np.exp(-x)
    # The probability of an event until the end, and the mean time from the start to it times that probability, both
    # divided by the hazard, so that they are defined where it is zero.
    chance, delay = width * _share(x), width**2 * _delay(x)
    out = ahead * lasting
    for h, line in ((one, target.of_event), (two, target.of_other)):
        if h is not None:
            at_start, at_end = line(start, horizon), line(start + 1.0, horizon)
            out = out + h * (at_start * chance + (at_end - at_start) * delay)
    return out


def _share(x: np.ndarray) -> np.ndarray:
    """``(1 - exp(-x)) / x``, and 1 at 0."""
    small = np.abs(x) < 1e-5
    safe = np.where(small, 1.0, x)
    return np.where(small, 1.0 - x / 2.0, -np.expm1(-safe) / safe)


def _delay(x: np.ndarray) -> np.ndarray:
    """``(1 - exp(-x) (1 + x)) / x^2``, and 1/2 at 0."""
    small = np.abs(x) < 1e-2
    safe = np.where(small, 1.0, x)
    series = 0.5 - x / 3.0 + x**2 / 8.0 - x**3 / 30.0 + x**4 / 144.0
    return np.where(small, series, (-np.expm1(-safe) - safe * np.exp(-safe)) / safe**2)


def transformed(
    times: TimeToEvent, grid: Grid, at_risk: PersonTime, hazards: Hazards, floor: float
) -> tuple[np.ndarray, np.ndarray]:
    """The outcomes that take the place of times (module docstring).

    Parameters
    ----------
    times : TimeToEvent
    grid : Grid
    at_risk : PersonTime
        Of the same rows.
    hazards : Hazards
        Of the same rows, under the arm that each got.
    floor : float
        Probabilities of not being censored below this are raised to it; the hazard of censoring is then zero.

    Returns
    -------
    outcome : ndarray of shape (n,)
    raised : ndarray of shape (n,), bool
        Rows whose probability of not being censored, at the end of their follow-up, was raised.
    """
    rows, horizon = np.arange(times.n), times.horizon
    ahead = expected_target(hazards.event, hazards.other, grid, times.target, horizon)
    bins = grid.bins(times)
    inside = np.minimum(bins, grid.n_bins - 1)
    if grid.tied:
        losing = np.minimum(hazards.censoring, LARGEST_PROBABILITY)
        if times.entry is not None:  # who had not entered could not be censored
            losing = losing * (times.entry[:, None] < grid.edges[1:])
        followed = np.column_stack([np.ones(times.n), np.cumprod(1.0 - losing, axis=1)])
        upto = np.where(times.free, grid.n_bins, bins + times.censored)
        raised = followed[rows, upto] < floor
        followed = np.maximum(followed, floor)
        value = np.where(times.known, times.observed_value, ahead[rows, upto])
        losing = 1.0 - followed[:, 1:] / followed[:, :-1]
        lost = (at_risk.at_risk_of_censoring * losing * ahead[:, 1:] / followed[:, 1:]).sum(axis=1)
        return value / followed[rows, upto] - lost, raised
    # From here on hazards are constant within bins. Follow-up begins at the entry.
    entry = np.zeros(times.n) if times.entry is None else times.entry
    starts = np.maximum(entry[:, None], grid.edges[:-1])
    before = np.cumsum(hazards.censoring * at_risk.at_risk, axis=1) - hazards.censoring * at_risk.at_risk
    least = -np.log(floor) if floor > 0.0 else np.inf
    # Of the time at risk, what passes until the floor is reached.
    losing = np.maximum(hazards.censoring, SMALLEST)
    held = np.clip((least - before) / losing, 0.0, at_risk.at_risk)
    lost = np.zeros(times.n)
    second = hazards.other
    for node, weight in zip(NODES, NODE_WEIGHTS, strict=True):
        passed = node * held
        followed = np.exp(-(before + hazards.censoring * passed))
        at = np.minimum(starts + passed, grid.edges[1:])
        expected = _within(hazards.event, second, at, grid.edges[1:], ahead[:, 1:], times.target, horizon)
        lost += weight * (held * hazards.censoring * expected / np.maximum(followed, floor)).sum(axis=1)
    at_end = np.exp(-(hazards.censoring * at_risk.at_risk).sum(axis=1))
    stop = np.minimum(times.time, horizon)
    other = None if second is None else second[rows, inside]
    expected = _within(
        hazards.event[rows, inside], other, stop, grid.edges[inside + 1], ahead[rows, inside + 1], times.target, horizon
    )
    value = np.where(times.known, times.observed_value, expected)
    return value / np.maximum(at_end, floor) - lost, at_end < floor
