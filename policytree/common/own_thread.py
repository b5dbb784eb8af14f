"""Work in a thread without signal handlers, and Ctrl-C at any bytecode of the waiting thread.

Python handles signals in the main thread, between two bytecodes. A handler that raises, as Ctrl-C does, can strike
anywhere: between taking a lock and storing that it is taken, in the ``except`` clause that answers an earlier signal,
or in the Python code that numba calls to make a kernel's result, which crashes the process. So the work is done in
another thread, and the one that waits relies on nothing that it cannot read again.
"""

from __future__ import annotations

import _thread
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")
LOOK_EVERY = 0.1  # seconds between looks for Ctrl-C: where it is simulated, it ends no wait
SHIELDS = 4  # exceptions that may come, each while the one before it is answered, and leave no work behind


class Task(Generic[Result]):
    """Work in a thread of its own.

    An exception at any bytecode of the thread that waits leaves a state that the next call understands: what was taken
    or stored is read again, and never concluded from what a call returned. It is a bare thread with a lock, which
    starts sooner than ``threading.Thread``.
    """

    def __init__(self, work: Callable[[], Result]):
        self._work = work
        self._taken_by: dict[str, str] = {}  # its one item is set once, by whoever comes first
        self._running = _thread.allocate_lock()
        self._ended = False  # set before the lock is given back: whoever gets the lock finds it set
        self._result: list[Result] = []
        self._failure: list[BaseException] = []

    def start(self) -> None:
        """Start the thread."""
        self._running.acquire()
        _thread.start_new_thread(self._run, ())

    def _run(self) -> None:
        if self._taken_by.setdefault("side", "thread") != "thread":
            return
        try:
            self._result.append(self._work())
        except BaseException as error:
            self._failure.append(error)
        finally:
            self._ended = True
            self._running.release()

    def called_off(self) -> bool:
        """Whether the work has not begun; then it never begins, even if its thread was started."""
        return self._taken_by.setdefault("side", "waiter") == "waiter"

    def wait(self, seconds: float) -> bool:
        """Wait until the work has ended, at most so long; whether it has."""
        if not self._ended:
            self._running.acquire(timeout=seconds)
        return self._ended

    def join(self) -> None:
        """Wait until work that has begun has ended, whatever Ctrl-C says."""
        while not self._ended:
            with suppress(KeyboardInterrupt):
                self.wait(LOOK_EVERY)

    def outcome(self) -> Result:
        """Return the result of the work, or raise its error."""
        if self._failure:
            raise self._failure[0]
        return self._result[0]


def run_in_own_thread(
    work: Callable[[], Result],
    *,
    wait: Callable[[Task[Any]], None] | None = None,
    stop: Callable[[], None] | None = None,
) -> Result:
    """Do work in a thread of its own: returns its result, raises its exceptions.

    Whenever this returns or raises, the work has ended. Ctrl-C stops it, and its result is returned; further ones,
    while it is stopping, change nothing. Any other exception in this thread stops it too, and is raised once it has
    ended.

    Parameters
    ----------
    work : callable
    wait : callable, optional
        Takes the task and returns when it has ended, or has been told to stop; it may look at it now and then.
    stop : callable, optional
        Tells the work to stop; may be called several times. Without it, work ends by itself, and Ctrl-C is raised once
        it has.
    """
    task = Task(work)
    _see_to_end(task, wait or _wait_to_end, stop, SHIELDS)
    return task.outcome()


def _see_to_end(
    task: Task[Any], wait: Callable[[Task[Any]], None], stop: Callable[[], None] | None, shields: int
) -> None:
    """Start a task and wait until it has ended.

    An error raised in the ``except`` clause reaches the same clause one frame further out; all that it calls may be
    called again.
    """
    try:
        if shields > 0:
            _see_to_end(task, wait, stop, shields - 1)
        else:
            task.start()
            wait(task)
            task.join()
    except BaseException as error:
        if stop is not None:
            stop()
        if task.called_off():
            raise
        task.join()
        if stop is None or not isinstance(error, KeyboardInterrupt):
            raise


def _wait_to_end(task: Task[Any]) -> None:
    while not task.wait(LOOK_EVERY):
        pass
