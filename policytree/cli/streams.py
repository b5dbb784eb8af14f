"""Standard output and standard error that may break: a full disk, a reader that leaves, a terminal that is gone."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO


class Stream:
    """A text stream that remembers what broke it, and takes nothing more from then on.

    Parameters
    ----------
    stream : file
    needed : bool
        Whether those who write to it are told: of standard output they are, by the OSError; of standard error, on which
        progress and explanations are shown, they are not.

    Attributes
    ----------
    failure : OSError or None
    """

    def __init__(self, stream: TextIO, needed: bool):
        self._stream, self._needed = stream, needed
        self.failure: OSError | None = None

    def write(self, text: str) -> int:
        """Write a text."""
        if self.failure is None:
            try:
                return self._stream.write(text)
            except OSError as error:
                self._break(error)
        return len(text)

    def flush(self) -> None:
        """Flush the stream."""
        if self.failure is None:
            try:
                self._stream.flush()
            except OSError as error:
                self._break(error)

    def _break(self, error: OSError) -> None:
        self.failure = error
        # The rest of the buffer goes nowhere: Python would try again at its end, and print a traceback.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)
        if self._needed:
            raise error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def standard_streams() -> Iterator[None]:
    """Make standard output and standard error remember the error that breaks them."""
    before = sys.stdout, sys.stderr
    for stream in before:
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without these letters gets question marks, not an error
    if sys.stdout is not None:  # a program without a console has none
        sys.stdout = Stream(before[0], needed=True)
    if sys.stderr is not None:
        sys.stderr = Stream(before[1], needed=False)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def output_failure() -> OSError | None:
    """Flush standard output; returns what broke it, now or before."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        return error
    return getattr(sys.stdout, "failure", None)
