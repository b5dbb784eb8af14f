"""Locks between processes: places in a file, which the system frees when their holder ends, however it ends.

They are POSIX record locks (``fcntl.lockf``): they work over NFS, forked children do not inherit them, and what a
killed holder leaves is a byte that nobody holds. On Windows ``msvcrt.locking`` does the same. A process never excludes
itself. Where there are none (a file system without them, a folder that may not be written to), nobody is kept from
anything.
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
try:
    import msvcrt
except ImportError:
    msvcrt = None  # type: ignore[assignment]

NOTE = 64  # bytes in which the holder of a numbered place says who it is
# Windows lets nobody else read a byte that is locked, so locks are kept off the notes; and it counts 31 bits. Places
# that share a byte by chance (two of 200 kernels, once in 50,000 versions) exclude each other: that costs time only.
FIRST_LOCKED = 1 << 30


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
        if fcntl is not None or msvcrt is not None:
            further = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
            with contextlib.suppress(OSError):
                self._file = os.open(path, os.O_RDWR | os.O_CREAT | further, 0o666)

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
                        _unlock(self._file, place)

    def sign(self, place: int) -> None:
        """Write into the file who holds a place, for people: the process and its machine."""
        text = f"{os.getpid()} on {socket.gethostname()}".encode()[: NOTE - 1]
        if self._file is not None:
            with self._guard, contextlib.suppress(OSError):
                os.lseek(self._file, place * NOTE, os.SEEK_SET)
                os.write(self._file, text.ljust(NOTE - 1) + b"\n")

    def signature(self, place: int) -> str:
        """Who signed a place last; "" if nobody did."""
        if self._file is None:
            return ""
        try:
            with self._guard:
                os.lseek(self._file, place * NOTE, os.SEEK_SET)
                return os.read(self._file, NOTE).decode(errors="replace").strip("\0 \n")
        except OSError:
            return ""

    def _lock(self, place: int) -> bool:
        if self._file is None:
            return True
        try:
            _lock(self._file, place)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN):
                return False
            self._file = None  # a file system without locks
        return True

    def _forget_before_fork(self) -> None:
        if self._process != os.getpid():
            self._process, self._held = os.getpid(), {}


def _lock(file: int, place: int) -> None:
    """Lock a byte, or raise an OSError at once: EACCES or EAGAIN where another process has it."""
    if fcntl is not None:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
    else:
        os.lseek(file, FIRST_LOCKED + place % FIRST_LOCKED, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)


def _unlock(file: int, place: int) -> None:
    if fcntl is not None:
        fcntl.lockf(file, fcntl.LOCK_UN, 1, place)
    else:
        os.lseek(file, FIRST_LOCKED + place % FIRST_LOCKED, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)
