"""Estimates of the time left do not swing: sequences of times of a real job, and some made up."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from policytree.common.time_left import PartsLeft

# Seconds at which the models of RAND's first stage were done, fold by fold: seven learners, of .01 to 2 seconds.
RAND = [
    2.363, 3.25, 5.436, 5.795, 5.808, 7.726, 8.686, 9.01, 9.701, 10.286, 10.905, 10.906, 12.486, 13.35, 13.598, 14.268,
    15.632, 16.358, 16.359, 18.299, 18.999, 19.199, 19.826, 21.016, 21.792, 21.806, 23.444, 24.2, 24.433, 25.131,
    27.764, 28.249, 28.25, 29.758, 30.524,
]  # fmt: skip
# Refits one after the other, made up: the first compiles.
COMPILES = [27.4, 32.1, 36.6, 41.5, 46.0, 50.9, 55.3, 60.1, 64.8, 69.2, 74.0, 78.5, 83.3, 87.9, 92.4, 97.2, 101.8]


def ends(times, kinds=None, at_once=1) -> tuple[list[float], int]:
    """When the job is expected to end, at many moments; and how many parts were done when this was first said."""
    kinds = list(kinds) if kinds is not None else [None] * len(times)
    found, first = [], len(times)
    parts, left = PartsLeft(at_once), Counter(kinds)
    for k, (now, after) in enumerate(zip(times, [*times[1:], times[-1]], strict=True)):
        parts.done(now, kinds[k])
        left[kinds[k]] -= 1
        for moment in np.linspace(now, after, 4)[:-1]:  # a display asks again and again
            expected = parts.left(moment, +left)
            if expected is not None:
                assert expected >= 0.0
                found.append(moment + expected)
                first = min(first, k + 1)
    return found, first


def in_bursts(rng, jobs: int, parts: int) -> list[float]:
    """Parts of nearly equal length, so many side by side after a first one alone, as refits are."""
    free = [first := rng.uniform(1.5, 3.0)] * jobs
    times = [first]
    for _ in range(parts - 1):
        free.sort()
        free[0] += rng.uniform(0.9, 1.1)
        times.append(free[0])
    return sorted(times)


@pytest.mark.parametrize(
    ("times", "kinds", "at_once", "latest"),
    [
        (RAND, [*range(7)] * 5, 1, 9),
        (COMPILES, None, 1, 2),
        (np.cumsum([12.0, *[1.0] * 19]), None, 1, 2),  # slow first
        (np.cumsum([1.0] * 200), None, 1, 20),
        (np.cumsum([5.0, 0.2] * 30), [0, 1] * 30, 1, 6),  # two kinds of steps
        (in_bursts(np.random.default_rng(0), 2, 20), None, 2, 4),
        (in_bursts(np.random.default_rng(1), 4, 60), None, 4, 8),
        (in_bursts(np.random.default_rng(2), 8, 50), None, 8, 16),
    ],
    ids=["rand", "compiles", "slow first", "even", "two kinds", "two jobs", "four jobs", "eight jobs"],
)
def test_the_expected_end_does_not_swing(times, kinds, at_once, latest):
    found, first = ends(times, kinds, at_once)
    assert first <= latest
    assert max(found) <= 4 / 3 * min(found)
    assert found[-1] == pytest.approx(times[-1], rel=0.05)


@pytest.mark.parametrize("seed", range(5))
def test_noisy_parts(seed):
    durations = np.random.default_rng(seed).lognormal(0.0, 0.2, 40)
    found, _ = ends(np.cumsum(durations))
    assert max(found) <= 4 / 3 * min(found)


def test_it_counts_down_and_what_is_overdue_is_not_taken_from_the_others():
    parts = PartsLeft()
    for seconds in (10.0, 12.0, 14.0):
        parts.done(seconds)
    assert parts.left(14.0, {None: 5}) == pytest.approx(10.0)
    assert parts.left(15.0, {None: 5}) == pytest.approx(9.0)
    assert parts.left(90.0, {None: 5}) == pytest.approx(8.0)
    assert parts.left(14.0, {None: 0}) is None


def test_nothing_is_said_of_kinds_that_nobody_has_seen():
    parts = PartsLeft()
    for seconds in (1.0, 2.0, 3.0):
        parts.done(seconds, "quick")
    assert parts.left(3.0, {"quick": 3}) == pytest.approx(3.0)
    assert parts.left(3.0, {"quick": 3, "slow": 1}) is None
