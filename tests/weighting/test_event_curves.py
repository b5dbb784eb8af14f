"""Curves of events with pointwise intervals: against formulas by hand, and by leaving rows out one at a time."""

import numpy as np
import pytest

from policytree.weighting.time_to_event.curves import MOST_TIMES, at_risk, event_curve
from policytree.weighting.time_to_event.outcome import TARGETS, TimeToEvent
from policytree.weighting.time_to_event.product_limit import product_limit


def follow_up(n, rng, target="rmst", entry=False):
    """Times that often tie, a third of them censored; of causes, two."""
    time = rng.integers(1, 15, n).astype(float)
    code = rng.integers(0, 3, n) if TARGETS[target].by_cause else (rng.uniform(size=n) < 0.6).astype(int)
    start = np.floor(time * rng.uniform(0, 0.9, n)) * (rng.uniform(size=n) < 0.5) if entry else None
    return TimeToEvent(time, code.astype(np.int64), start, 10.0, TARGETS[target])


def test_errors_are_greenwoods_and_intervals_those_of_log_log(rng):
    times = follow_up(80, rng)
    curve, known = event_curve(times, 20.0), product_limit(times.time, times.code == 1)
    assert curve.time[0] == 0.0 and curve.share[0] == 1.0 and np.isnan(curve.lower[0])
    assert np.allclose(curve.share, known.at(curve.time), atol=1e-12)
    inside = np.flatnonzero((curve.share > 0) & (curve.share < 1))
    at = np.searchsorted(known.times, curve.time[inside], side="right") - 1
    p, error = known.survival[at], known.standard_errors[at]
    theta = np.log(-np.log(p))
    width = 1.959963984540054 * error / np.abs(p * np.log(p))
    assert np.allclose(curve.lower[inside], np.exp(-np.exp(theta + width)), atol=1e-10)
    assert np.allclose(curve.upper[inside], np.exp(-np.exp(theta - width)), atol=1e-10)


def test_the_interval_of_the_textbook():
    """Acute myelogenous leukaemia, maintained arm (R's survival::aml; survfit with conf.type = "log-log")."""
    time = np.array([9, 13, 13, 18, 23, 28, 31, 34, 45, 48, 161.0])
    code = np.array([1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 0])
    curve = event_curve(TimeToEvent(time, code, None, 50.0, TARGETS["rmst"]), 60.0)
    at = list(curve.time).index(23.0)
    assert curve.share[at] == pytest.approx(0.6136, abs=5e-5)
    # By hand: Greenwood's sum is 1/110 + 1/90 + 1/56 + 1/42, the standard error .1526.
    theta, width = np.log(-np.log(curve.share[at])), 1.959964 * np.sqrt(1 / 110 + 1 / 90 + 1 / 56 + 1 / 42)
    width /= abs(np.log(curve.share[at]))
    ends = np.exp(-np.exp([theta + width, theta - width]))
    assert [curve.lower[at], curve.upper[at]] == pytest.approx(ends, abs=1e-6)


@pytest.mark.parametrize("target", ["rmst", "cumulative_incidence"])
@pytest.mark.parametrize("entry", [False, True])
def test_influences_are_derivatives_in_the_weights(target, entry, rng):
    times = follow_up(60, rng, target, entry)
    weight, step = rng.uniform(0.5, 2.0, 60), 1e-6
    groups = rng.integers(0, 12, 60)
    base = event_curve(times, 8.0, weight=weight, groups=groups)
    slopes = []
    for i in range(60):
        more = weight.copy()
        more[i] += step
        slopes.append(weight[i] * (event_curve(times, 8.0, weight=more).share - base.share) / step)
    sums = np.array([np.sum([slopes[i] for i in np.flatnonzero(groups == g)], axis=0) for g in range(12)])
    error = np.sqrt((sums**2).sum(axis=0))
    inside = np.isfinite(base.lower)
    assert inside.sum() > 3
    p = base.share[inside]
    width = np.log(np.log(base.lower[inside]) / np.log(p)) / 1.959963984540054
    assert np.allclose(width * np.abs(p * np.log(p)), error[inside], rtol=1e-3)


def test_rows_without_weight_do_not_count_and_long_curves_are_thinned(rng):
    times = follow_up(50, rng)
    weight = (np.arange(50) % 5 > 0).astype(float)
    kept, bare = np.flatnonzero(weight), event_curve(times, 10.0, weight=weight)
    assert np.array_equal(bare.share, event_curve(times.rows(kept), 10.0).share)
    long = TimeToEvent(rng.exponential(size=2000), np.ones(2000, int), None, 1.0, TARGETS["rmst"])
    curve = event_curve(long, 1.0)
    assert len(curve.time) == MOST_TIMES + 2
    assert np.allclose(curve.share, [(long.time > t).mean() for t in curve.time], atol=1e-12)


def test_nobody_had_an_event(rng):
    times = TimeToEvent(rng.uniform(1, 3, 20), np.zeros(20, int), None, 2.0, TARGETS["rmst"])
    curve = event_curve(times, 2.0)
    assert curve.share.tolist() == [1.0, 1.0] and np.isnan(curve.lower).all()


def test_numbers_at_risk_know_late_entries():
    times = TimeToEvent(np.array([3.0, 4.0, 5.0]), np.ones(3, int), np.array([0.0, 1.0, 4.0]), 5.0, TARGETS["rmst"])
    assert at_risk(times, np.array([0.0, 1.0, 2.0, 4.5])).tolist() == [1, 1, 2, 1]
