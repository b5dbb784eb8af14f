"""Ctrl-C at chosen bytecodes of the thread that runs the test, and what it must leave behind."""

from __future__ import annotations

import _thread
import sys
import threading
import time
from collections.abc import Callable, Collection, Sequence
from types import FrameType
from typing import Any

PATIENCE = 60.0  # seconds after which something hangs; it should take milliseconds


class CtrlC:
    """Raises KeyboardInterrupt before chosen bytecodes of some files, as the handler of a signal may.

    Parameters
    ----------
    inside : callable
        Whether bytecodes of a source file count, by the file's name.
    at : sequence of int
        How many bytecodes pass before each is raised. After one is raised, bytecodes up to the next call or return do
        not count: a tracing function that raises is dropped, and set again then.

    Attributes
    ----------
    passed : int
        Bytecodes that counted so far.
    raised : list of str
        Function and line of every exception.
    """

    def __init__(self, inside: Callable[[str], bool], at: Sequence[int] = ()):
        self._inside, self._at = inside, sorted(at)
        self._known: dict[str, bool] = {}
        self.passed, self.raised = 0, []

    def __enter__(self) -> CtrlC:
        self._before = sys.gettrace(), sys.getprofile()
        sys.setprofile(self._resume)
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_) -> None:
        sys.setprofile(self._before[1])  # first: it sets the other one again
        sys.settrace(self._before[0])

    def _counts(self, frame: FrameType) -> bool:
        name = frame.f_code.co_filename
        if name not in self._known:
            self._known[name] = self._inside(name)
        return self._known[name]

    def _trace(self, frame: FrameType, event: str, _: Any):
        if not self._counts(frame):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            self.passed += 1
            if len(self.raised) < len(self._at) and self.passed > self._at[len(self.raised)]:
                self.raised.append(f"{frame.f_code.co_name}:{frame.f_lineno}")
                raise KeyboardInterrupt
        return self._trace

    def _resume(self, frame: FrameType | None, *_) -> None:
        """A tracing function that raises is dropped: set it again."""
        if sys.gettrace() is not None or len(self.raised) == len(self._at):
            return
        sys.settrace(self._trace)
        while frame is not None:
            if self._counts(frame):
                frame.f_trace, frame.f_trace_opcodes = self._trace, True
            frame = frame.f_back


def ended(threads_before: int) -> bool:
    """Whether all threads that were started since then end; a search that nobody waited for does not."""
    deadline = time.monotonic() + PATIENCE
    while _thread._count() > threads_before:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.0002)  # the last bytecodes of a thread that has said that it is done
    return True


def guarded(run: Callable[[], Any]) -> Any:
    """Return a function's result from a thread of its own; fail if it hangs."""
    done: list[Any] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            done.append(run())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive(), "it hangs"
    if failed:
        raise failed[0]
    return done[0]


def files(*names: str) -> Callable[[str], bool]:
    """Bytecodes of these files count."""
    chosen: Collection[str] = set(names)
    return lambda name: name in chosen
