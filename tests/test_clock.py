"""Searches under a clock: in a thread of their own, so that signals never reach a kernel's call."""

from __future__ import annotations

import _thread
import threading
import time

import pytest

from policytree.export import to_rules
from policytree.solvers import direct, solve_direct
from policytree.solvers.binning import bin_matrix
from policytree.solvers.clock import Clock
from policytree.types import Problem, Status


def test_searches_run_in_a_thread_that_handles_no_signals():
    found: list[bool] = []
    clock = Clock(None)
    clock.watch(lambda: found.append(threading.current_thread() is threading.main_thread()))
    assert found == [False] and clock.status == Status.OPTIMAL and not clock.stopped


def test_a_limit_ends_a_search():
    clock = Clock(0.01)

    def search():
        while not clock.stopped:
            pass

    clock.watch(search)
    assert clock.status == Status.TIME_LIMIT


def test_errors_are_raised_where_the_search_was_started():
    def fail():
        raise ValueError("no such cut")

    with pytest.raises(ValueError, match="no such cut"):
        Clock(None).watch(fail)


def test_ctrl_c_while_looking_waits_for_the_search_to_end():
    clock, ended = Clock(None), []

    def search():
        while not clock.stopped:
            pass
        ended.append(True)

    def look():
        raise KeyboardInterrupt

    clock.watch(search, look)
    assert clock.status == Status.INTERRUPTED and ended == [True]


def test_what_a_search_returns_is_returned():
    assert Clock(None).watch(lambda: 3) == 3


@pytest.mark.parametrize("part", ["prepare", "expand"])
def test_ctrl_c_before_and_after_the_search_itself_leaves_a_tree(part, rng, monkeypatch):
    """All kernels run in the search's thread, so that a signal finds none of them in the main one."""
    original = getattr(direct, part)

    def interrupt(*given, **named):
        _thread.interrupt_main()
        time.sleep(0.3)
        return original(*given, **named)

    X, losses = rng.random((300, 4)), rng.integers(0, 2, (300, 2)).astype(float)
    problem = Problem(bin_matrix(X), losses, 0.0, 3)
    optimum = solve_direct(problem)
    with monkeypatch.context() as patch:
        patch.setattr(direct, part, interrupt)
        found = solve_direct(problem)
    if part == "prepare":
        assert found.status == Status.INTERRUPTED and found.objective - found.gap <= optimum.objective
    else:
        assert found.status == Status.OPTIMAL and to_rules(found.tree).equals(to_rules(optimum.tree))
