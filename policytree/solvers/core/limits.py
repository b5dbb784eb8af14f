"""Time and memory limits, and Ctrl-C, for searches that run inside kernels."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from policytree.common.own_thread import LOOK_EVERY, Task, run_in_own_thread
from policytree.problem.types import SearchLimits, Status
from policytree.solvers.kernels.compiling import seconds_compiling

Result = TypeVar("Result")
_ASKED: ContextVar[tuple[threading.Event, ...]] = ContextVar("policytree_stop", default=())


@contextmanager
def stopped_by(event: threading.Event) -> Iterator[None]:
    """Searches started inside, in this thread, stop as by Ctrl-C once the event is set, or one set around it.

    Ctrl-C reaches the main thread alone: whoever runs searches in other threads passes it on this way.
    """
    token = _ASKED.set((*_ASKED.get(), event))
    try:
        yield
    finally:
        _ASKED.reset(token)


def now() -> float:
    """Seconds on a clock that stands still while kernels are compiled: for work that is made of several searches."""
    return time.perf_counter() - seconds_compiling()


class Stopwatch:
    """The time of work that is made of several searches, each of which gets what is left of the limit.

    It stands still while kernels are compiled.

    Parameters
    ----------
    limits : SearchLimits
        Of the work as a whole.
    """

    def __init__(self, limits: SearchLimits):
        self.limits, self.start = limits, now()

    def seconds(self) -> float:
        """Seconds since the start."""
        return now() - self.start

    def left(self) -> float | None:
        """Seconds that are left, at least zero; None without a limit."""
        limit = self.limits.time_limit
        return None if limit is None else max(0.0, limit - self.seconds())

    def limits_left(self, **others: Any) -> SearchLimits:
        """The limits of the next search: the time that is left, and ``others`` in place of the work's."""
        return replace(self.limits, time_limit=self.left(), **others)


class Clock:
    """Runs a search in a thread, and raises the flag that its kernels poll when a limit strikes or the user interrupts.

    Attributes
    ----------
    flag : ndarray, int64
        The array that kernels release the GIL and poll between steps; ``flag[0]`` nonzero: stop as soon as possible.
    status : Status
        Why the flag was raised.
    """

    def __init__(self, time_limit: float | None, flag: np.ndarray | None = None, memory_limit: float | None = None):
        self.start = time.perf_counter()
        self.time_limit, self.memory_limit = time_limit, memory_limit
        self.memory_before = 0 if memory_limit is None else resident_bytes()
        self.flag = np.zeros(1, dtype=np.int64) if flag is None else flag
        self.status = Status.OPTIMAL
        self._asked = _ASKED.get()
        self._paused = False

    @property
    def stopped(self) -> bool:
        """Whether the flag is raised."""
        return bool(self.flag[0])

    def seconds(self) -> float:
        """Wall time since the start."""
        return time.perf_counter() - self.start

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Exclude the work done within from the search's time and memory; the search's own thread may do it, too."""
        seconds, more = self.seconds(), 0 if self.memory_limit is None else resident_bytes() - self.memory_before
        self._paused = True
        try:
            yield
        finally:
            self.start = time.perf_counter() - seconds
            self.memory_before = 0 if self.memory_limit is None else resident_bytes() - more
            self._paused = False

    def stop(self, status: Status) -> None:
        """Raise the flag; the first reason stays."""
        if not self.stopped:
            self.status = status
            self.flag[0] = 1

    def fits_memory(self, more: float) -> bool:
        """Whether what the process has grown by since the start, and ``more`` bytes, are within the limit."""
        return self.memory_limit is None or resident_bytes() - self.memory_before + more <= self.memory_limit

    def watch(self, search: Callable[[], Result], look: Callable[[], None] | None = None) -> Result:
        """Run ``search`` to its end, or until the limit or Ctrl-C stops it; returns its result, raises its exceptions.

        ``look`` is called between looks at the clock, to show how far the search is.

        Whenever this returns or raises, the search has ended. Ctrl-C stops it, and its result is returned; any other
        exception (of ``look``, or of a signal's handler) stops it too, and is raised.
        """
        return run_in_own_thread(search, wait=partial(self._look_on, look=look), stop=self._interrupt)

    def _interrupt(self) -> None:
        self.stop(Status.INTERRUPTED)

    def _look_on(self, task: Task[Any], look: Callable[[], None] | None) -> None:
        """Look at the clock, at the memory and for Ctrl-C until the task has ended or must stop."""
        while not task.wait(self._next_look()):
            if not self._paused and self.time_limit is not None and self.seconds() >= self.time_limit:
                self.stop(Status.TIME_LIMIT)
                break
            if not self._paused and not self.fits_memory(0):
                self.stop(Status.MEMORY_LIMIT)
                break
            if any(event.is_set() for event in self._asked):
                self.stop(Status.INTERRUPTED)
                break
            if look is not None:
                look()

    def _next_look(self) -> float:
        left = LOOK_EVERY if self._paused or self.time_limit is None else self.time_limit - self.seconds()
        return max(0.0, min(LOOK_EVERY, left))


def resident_bytes() -> int:
    """Memory that the process holds now; 0 where the system does not tell, so that a limit is not watched there."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
