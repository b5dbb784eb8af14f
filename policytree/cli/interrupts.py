"""Ctrl-C during a job: remembered, though searches answer it by keeping their best tree."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Interrupts:
    """Remembers Ctrl-C: searches answer it by keeping their best tree, but here it ends the whole job."""

    def __init__(self) -> None:
        self.seen = False
        self._held = False

    def handle(self, *_) -> None:
        """Of the signal: end the job, unless its end is held back."""
        self.seen = True
        if not self._held:
            raise KeyboardInterrupt

    def check(self) -> None:
        """End the job if Ctrl-C was pressed, though something caught it."""
        if self.seen:
            raise KeyboardInterrupt

    @contextmanager
    def held(self) -> Iterator[None]:
        """Finish what is inside (moments) whatever is pressed, so that files of one run stay together."""
        self.check()
        self._held = True
        yield


@contextmanager
def interrupts_remembered() -> Iterator[Interrupts]:
    """Remember Ctrl-C while a job runs; handlers are as they were afterwards."""
    interrupts, before = Interrupts(), signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield interrupts
        return
    if before is signal.SIG_IGN or before is None:  # a shell's background job; a handler that is not Python's
        yield interrupts
        return
    reported = sys.unraisablehook

    def remembered(unraisable: Any) -> None:
        """Where nothing can be raised, as in callbacks of a compiler, Python would print a traceback and go on."""
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            reported(unraisable)

    try:
        sys.unraisablehook = remembered
        signal.signal(signal.SIGINT, interrupts.handle)
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, before)
        sys.unraisablehook = reported
