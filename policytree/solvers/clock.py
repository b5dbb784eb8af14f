"""Wall time, limits of time and memory, and Ctrl-C for searches that run inside kernels."""

from __future__ import annotations

import _thread
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np

from policytree.solvers.kernels.compiling import seconds_compiling
from policytree.types import Status

Result = TypeVar("Result")
LOOK_EVERY = 0.1  # seconds between looks at the clock and for Ctrl-C
SHIELDS = 4  # exceptions that may come, each while the one before it is answered, and leave no search behind
_ASKED: ContextVar[threading.Event | None] = ContextVar("policytree_stop", default=None)


@contextmanager
def stopped_by(event: threading.Event) -> Iterator[None]:
    """Searches started inside, in this thread, stop as by Ctrl-C once the event is set.

    Ctrl-C reaches the main thread alone: whoever runs searches in other threads passes it on this way.
    """
    token = _ASKED.set(event)
    try:
        yield
    finally:
        _ASKED.reset(token)


def now() -> float:
    """Seconds on a clock that stands still while kernels are compiled: for work that is made of several searches."""
    return time.perf_counter() - seconds_compiling()


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

    @property
    def stopped(self) -> bool:
        """Whether the flag is raised."""
        return bool(self.flag[0])

    def seconds(self) -> float:
        """Wall time since the start."""
        return time.perf_counter() - self.start

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

        The search has a thread of its own because signals are handled in the main one: an exception that a handler
        raises while numba makes a kernel's result would crash the process. Whenever this returns or raises, the search
        has ended. Ctrl-C stops it, and its result is returned; further ones, while it is stopping, change nothing. Any
        other exception (of ``look``, or of a signal's handler) stops it too, and is raised once it has ended.
        """
        task = _Task(search)
        self._see_to_end(task, look, SHIELDS)
        return task.outcome()

    def _see_to_end(self, task: _Task, look: Callable[[], None] | None, shields: int) -> None:
        """Start a task and wait until it has ended; Ctrl-C at any moment stops it.

        A signal's handler may raise at any bytecode, so also in the ``except`` clause that answers an earlier signal.
        What is raised there reaches the same clause one frame further out; all that they call may be called again.
        """
        try:
            if shields > 0:
                self._see_to_end(task, look, shields - 1)
            else:
                task.start()
                self._look_on(task, look)
                task.join()
        except BaseException as error:
            self.stop(Status.INTERRUPTED)
            if task.called_off():
                raise
            task.join()
            if not isinstance(error, KeyboardInterrupt):
                raise

    def _look_on(self, task: _Task, look: Callable[[], None] | None) -> None:
        """Look at the clock, at the memory and for Ctrl-C until the task has ended or must stop."""
        while not task.wait(self._next_look()):
            if self.time_limit is not None and self.seconds() >= self.time_limit:
                self.stop(Status.TIME_LIMIT)
                break
            if not self.fits_memory(0):
                self.stop(Status.MEMORY_LIMIT)
                break
            if self._asked is not None and self._asked.is_set():
                self.stop(Status.INTERRUPTED)
                break
            if look is not None:
                look()

    def _next_look(self) -> float:
        left = LOOK_EVERY if self.time_limit is None else self.time_limit - self.seconds()
        return max(0.0, min(LOOK_EVERY, left))


class _Task(Generic[Result]):
    """A search in a thread of its own.

    An exception at any bytecode of the thread that waits leaves a state that the next call understands: what was taken
    or stored is read again, and never concluded from what a call returned. It is a bare thread with a lock, which
    starts sooner than ``threading.Thread``.
    """

    def __init__(self, search: Callable[[], Result]):
        self._search = search
        self._taken_by: dict[str, str] = {}  # its one item is set once, by whoever comes first
        self._running = _thread.allocate_lock()
        self._ended = False  # set before the lock is given back: whoever gets the lock finds it set
        self._result: list[Result] = []
        self._failure: list[BaseException] = []

    def start(self) -> None:
        """Start the thread."""
        self._running.acquire()
        _thread.start_new_thread(self._work, ())

    def _work(self) -> None:
        if self._taken_by.setdefault("side", "thread") != "thread":
            return
        try:
            self._result.append(self._search())
        except BaseException as error:
            self._failure.append(error)
        finally:
            self._ended = True
            self._running.release()

    def called_off(self) -> bool:
        """Whether the search has not begun; then it never begins, even if its thread was started."""
        return self._taken_by.setdefault("side", "waiter") == "waiter"

    def wait(self, seconds: float) -> bool:
        """Wait until the search has ended, at most so long; whether it has."""
        if not self._ended:
            self._running.acquire(timeout=seconds)
        return self._ended

    def join(self) -> None:
        """Wait until a search that has begun, and has been told to stop, has ended; Ctrl-C tells it nothing new."""
        while not self._ended:
            with suppress(KeyboardInterrupt):
                self.wait(LOOK_EVERY)  # short: a simulated Ctrl-C ends no wait

    def outcome(self) -> Result:
        """What the search returned; raises what it raised."""
        if self._failure:
            raise self._failure[0]
        return self._result[0]


def resident_bytes() -> int:
    """Memory that the process holds now; 0 where the system does not tell, so that a limit is not watched there."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
