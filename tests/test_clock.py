"""Searches under a clock: in a thread, or at once where they are over before anybody would look."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from policytree.binning import bin_matrix
from policytree.solvers import direct, solve_direct
from policytree.solvers.clock import QUICK, Clock
from policytree.types import Problem, SearchLimits, Status


def names_of_threads(clock: Clock, **options) -> list[str]:
    names: list[str] = []
    clock.watch(lambda: names.append(threading.current_thread().name), **options)
    return names


@pytest.mark.parametrize("limit", [None, 5.0])
def test_only_quick_searches_go_without_a_thread(limit):
    here = threading.current_thread().name
    assert names_of_threads(Clock(limit), seconds=QUICK) == [here]
    assert names_of_threads(Clock(limit), seconds=2 * QUICK) != [here]
    assert names_of_threads(Clock(limit)) != [here]


def test_a_limit_that_is_about_to_strike_is_watched():
    clock = Clock(0.01)

    def search():
        while not clock.stopped:
            pass

    clock.watch(search, seconds=0.0)
    assert clock.status == Status.TIME_LIMIT


@pytest.mark.parametrize("seconds", [0.0, 1.0])
def test_errors_are_raised_where_the_search_was_started(seconds):
    def fail():
        raise ValueError("no such cut")

    with pytest.raises(ValueError, match="no such cut"):
        Clock(None).watch(fail, seconds=seconds)


def test_ctrl_c_ends_a_quick_search_with_its_best_tree(rng, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(direct, "depth_two", interrupted)
    losses = rng.integers(0, 2, (40, 2)).astype(float)
    found = solve_direct(Problem(bin_matrix(rng.normal(size=(40, 2))), losses, 0.0, 2), SearchLimits())
    assert found.status == Status.INTERRUPTED
    assert found.objective == np.min(losses.sum(axis=0)) and found.gap > 0
