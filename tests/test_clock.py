"""Searches under a clock: in a thread of their own, so that signals never reach a kernel's call."""

from __future__ import annotations

import threading

import pytest

from policytree.solvers.clock import Clock
from policytree.types import Status


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
