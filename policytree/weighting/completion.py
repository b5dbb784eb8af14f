"""Outcomes that are known for everybody on average, in place of censored and of missing ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from policytree.weighting.scheme import Nuisances
from policytree.weighting.study_data import StudyData
from policytree.weighting.time_to_event.marginal import MarginalCurve, marginal_curve, transformed_by_curve
from policytree.weighting.time_to_event.outcome import TimeToEvent


def completed(observed: StudyData, outcome: np.ndarray) -> StudyData:
    """Return the observed data with outcomes (n,) that are known for everybody."""
    return replace(observed, y=outcome, times=None, seen=None)


def of_missing(observed: StudyData, expected: np.ndarray, chance: np.ndarray) -> np.ndarray:
    """Expected outcomes (n,), corrected by the residuals of those that are seen over their chance (n,) of it."""
    seen = np.ones(observed.n, dtype=bool) if observed.seen is None else observed.seen
    return expected + np.where(seen, (observed.y - expected) / chance, 0.0)


def complete_missing(observed: StudyData, nuisances: Nuisances, floor: float) -> StudyData:
    """Missing outcomes by the outcome model, corrected by the residuals of those that are seen.

    Parameters
    ----------
    observed : StudyData
    nuisances : Nuisances
        Without outcome models expected outcomes are zero; without ``observation`` everybody is seen.
    floor : float
        Least probability of being seen.
    """
    own = np.arange(observed.n), observed.arm
    expected = np.zeros(observed.n) if nuisances.regression is None else nuisances.regression[own]
    chance = np.ones(observed.n) if nuisances.observation is None else nuisances.observation
    return completed(observed, of_missing(observed, expected, np.maximum(chance, floor)))


def curves_of(observed: StudyData, floor: float) -> tuple[MarginalCurve, ...]:
    """Product-limit curves of events and of censoring, of every arm."""
    times, curves = _times(observed), []
    for k in range(observed.n_arms):
        own = np.flatnonzero(observed.arm == k)
        curves.append(marginal_curve(times.rows(own), observed.weight[own], floor))
    return tuple(curves)


def by_curves(observed: StudyData, curves: tuple[MarginalCurve, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Outcomes of rows by the curves of their arms, (n,), and whose chance to be followed was raised, (n,) bool."""
    times, out, raised = _times(observed), np.empty(observed.n), np.zeros(observed.n, dtype=bool)
    for k, curve in enumerate(curves):
        own = np.flatnonzero(observed.arm == k)
        out[own], raised[own] = transformed_by_curve(times.rows(own), curve)
    return out, raised


def unadjusted(observed: StudyData, floor: float = 0.02) -> StudyData:
    """Outcomes completed without covariates, so that means of arms are what is seen of these.

    Of times the (weighted) mean of an arm is what its curve of Kaplan and Meier says, with its standard error, and
    that of rows that entered late is about who is free of events at that time; of outcomes some of which are missing it
    is the mean of the others. Outcomes known for everybody stay.

    Parameters
    ----------
    observed : StudyData
    floor : float
        Least probability of not being censored.
    """
    if observed.times is not None:
        return completed(observed, by_curves(observed, curves_of(observed, floor))[0])
    if observed.seen is None:
        return observed
    weight = observed.weight
    of_seen, of_all = (
        np.bincount(observed.arm, weights=w, minlength=observed.n_arms) for w in (weight * observed.seen, weight)
    )
    total = np.bincount(observed.arm, weights=weight * observed.seen * observed.y, minlength=observed.n_arms)
    return completed(observed, of_missing(observed, (total / of_seen)[observed.arm], (of_seen / of_all)[observed.arm]))


def rows_by_arm(seen: StudyData) -> pd.DataFrame:
    """Rows of every arm, their share, and the mean of outcomes that are completed; NaN where an arm has no row."""
    rows, weights, sums = (
        np.bincount(seen.arm, weights=w, minlength=seen.n_arms) for w in (None, seen.weight, seen.weight * seen.y)
    )
    mean = np.divide(sums, weights, out=np.full(seen.n_arms, np.nan), where=weights > 0)
    index = pd.Index(seen.treatments, name="arm")
    return pd.DataFrame({"rows": rows, "share": rows / seen.n, "mean": mean}, index=index)


def _times(observed: StudyData) -> TimeToEvent:
    assert observed.times is not None, "outcomes are times"
    return observed.times
