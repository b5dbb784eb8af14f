"""Locks between processes: places in a file, which the system frees when their holder ends, however it ends.

They are POSIX record locks (``fcntl.lockf``): they work over NFS, forked children do not inherit them, and what a
killed holder leaves is a byte that nobody holds. A process never excludes itself. Where there are none (Windows, a
file system without them, a folder that may not be written to), nobody is kept from anything.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import threading
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

NOTE = 64  # bytes in which the holder of a numbered place says who it is


class FileLocks:
    """The locks of one file: place k for every integer k from 0.

    Parameters
    ----------
    path : Path
        The file; made if there is none, and never removed, since others may have it open.
    """

    def __init__(self, path: Path):
        self._guard = threading.Lock()
        self._held: dict[int, int] = {}  # place -> how often this process took it
        self._file: int | None = None
        self._process = os.getpid()
        if fcntl is not None:
            with contextlib.suppress(OSError):
                self._file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)

    @property
    def work(self) -> bool:
        """Whether there are locks here."""
        return self._file is not None

    def take(self, place: int) -> bool:
        """Take a place unless another process has it; whether it is ours now.

        Takes it again if it was ours; it is then to be given back as often.
        """
        with self._guard:
            self._forget_before_fork()
            if place not in self._held and not self._lock(place):
                return False
            self._held[place] = self._held.get(place, 0) + 1
            return True

    def give_back(self, place: int) -> None:
        """Give back what :meth:`take` took."""
        with self._guard:
            self._forget_before_fork()
            if place not in self._held:  # taken before a fork, by the parent
                return
            self._held[place] -= 1
            if self._held[place] == 0:
                del self._held[place]
                if self._file is not None:
                    with contextlib.suppress(OSError):
                        fcntl.lockf(self._file, fcntl.LOCK_UN, 1, place)

    def sign(self, place: int) -> None:
        """Write into the file who holds a place, for people: the process and its machine."""
        text = f"{os.getpid()} on {socket.gethostname()}".encode()[: NOTE - 1]
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.pwrite(self._file, text.ljust(NOTE - 1) + b"\n", place * NOTE)

    def signature(self, place: int) -> str:
        """Who signed a place last; "" if nobody did."""
        if self._file is None:
            return ""
        try:
            return os.pread(self._file, NOTE, place * NOTE).decode(errors="replace").strip("\0 \n")
        except OSError:
            return ""

    def _lock(self, place: int) -> bool:
        if self._file is None:
            return True
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN):
                return False
            self._file = None  # a file system without locks
        return True

    def _forget_before_fork(self) -> None:
        if self._process != os.getpid():
            self._process, self._held = os.getpid(), {}
