"""Time in bins: how long every row was at risk in each, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policytree.weighting.time_to_event.outcome import TimeToEvent

MOST_TIED_TIMES = 60  # distinct times up to the horizon, from which on time counts as continuous
FEWEST_BINS, MOST_BINS = 6, 24
HEAP = 0.01  # of the times before the horizon: a value that so many have, and three at least, is that of a visit
MOST_BETWEEN = 0.2, 0.05  # of the times, between all visits and between two of them, if time is to count as discrete
SHORTEST = 1e-9  # time at risk, by the horizon: events at time 0 come from somebody who was at risk


@dataclass(frozen=True, slots=True)
class Grid:
    """Bins ``(edges[j], edges[j + 1]]`` from 0 to the horizon.

    Attributes
    ----------
    edges : ndarray of shape (J + 1,)
    tied : bool
        Whether time is discrete: everything happens at the ends of bins, events before censoring, and survival is the
        product of one minus the hazards. Otherwise hazards are constant within bins, and happen at any time.
    """

    edges: np.ndarray
    tied: bool

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return len(self.edges) - 1

    @property
    def widths(self) -> np.ndarray:
        """Width of every bin, (J,); one for discrete time, whose hazards are probabilities."""
        return np.ones(self.n_bins) if self.tied else np.diff(self.edges)

    def bins(self, times: TimeToEvent) -> np.ndarray:
        """The bin in which every row's time lies, (n,); ``n_bins`` for rows that are free at the horizon."""
        found = np.searchsorted(self.edges, times.time, side="left") - 1
        return np.where(times.free, self.n_bins, np.clip(found, 0, self.n_bins - 1))


def make_grid(times: TimeToEvent) -> Grid:
    """Bins at the distinct times if these are few, or at visits if nearly all times are; otherwise at quantiles.

    Hazards that are constant within bins would let events and censoring of one visit compete, whose order is known. A
    few times between visits, such as those of deaths, count as of the next one.
    """
    h = times.horizon
    before = times.time[(times.time < h) & (times.time > 0.0)]
    ends = _discrete(before)
    if ends is not None:
        first = [-1.0] if ((times.time == 0.0) & ~times.free).any() else []  # a bin that ends at 0
        return Grid(np.concatenate([first, [0.0], ends, [h]]), tied=True)
    bins = int(np.clip(0.45 * np.sqrt(times.n), FEWEST_BINS, MOST_BINS))
    inner = np.unique(np.quantile(before, np.arange(1, bins) / bins)) if len(before) else before
    return Grid(np.concatenate([[0.0], inner[(inner > 0.0) & (inner < h)], [h]]), tied=False)


def _discrete(time: np.ndarray) -> np.ndarray | None:
    """Ends of bins of discrete time, ascending; None if time is continuous."""
    distinct, counts = np.unique(time, return_counts=True)
    if len(distinct) < MOST_TIED_TIMES and len(distinct) < len(time):
        return distinct
    visits = distinct[counts >= max(HEAP * len(time), 3)]
    between = np.bincount(np.searchsorted(visits, time[~np.isin(time, visits)]), minlength=1) / max(len(time), 1)
    of_all, of_two = MOST_BETWEEN
    few = between.sum() <= of_all and between.max() <= of_two
    return visits if few and len(visits) and len(visits) < MOST_TIED_TIMES else None


@dataclass(frozen=True, slots=True)
class PersonTime:
    """Time at risk and what it ended with, by row and bin.

    Attributes
    ----------
    at_risk : ndarray of shape (n, J)
        Of events; in units of time, or one for each bin of discrete time.
    at_risk_of_censoring : ndarray of shape (n, J)
        In discrete time without the bins in which events came.
    events, other, censored : ndarray of shape (n, J)
        One where the row ended so in that bin.
    """

    at_risk: np.ndarray
    at_risk_of_censoring: np.ndarray
    events: np.ndarray
    other: np.ndarray
    censored: np.ndarray


def person_time(times: TimeToEvent, grid: Grid) -> PersonTime:
    """Split every row's follow-up into the bins."""
    rows, bins, ends = np.arange(times.n), grid.bins(times), grid.edges[1:]
    entry = np.zeros(times.n) if times.entry is None else times.entry
    stop = np.minimum(times.time, times.horizon)
    if grid.tied:
        at_risk = (np.arange(grid.n_bins) <= bins[:, None]).astype(np.float64)
        if times.entry is not None:
            at_risk *= entry[:, None] < ends
    else:
        stop = np.maximum(stop, SHORTEST * times.horizon)
        lasted = np.minimum(stop[:, None], ends) - np.maximum(entry[:, None], grid.edges[:-1])
        at_risk = np.clip(lasted, 0.0, None)
    inside = bins < grid.n_bins
    counts = []
    for code in (1, 2, 0):
        count = np.zeros_like(at_risk)
        own = rows[inside & (times.code == code)]
        count[own, bins[own]] = 1.0
        counts.append(count)
    events, other, censored = counts
    of_censoring = at_risk * (1.0 - events - other) if grid.tied else at_risk
    return PersonTime(at_risk, of_censoring, events, other, censored)
