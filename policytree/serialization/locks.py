"""Folders that one process at a time writes to."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

LOCK = ".lock"  # the file that stands for the folder where folders cannot be locked
_locked: set[int] = set()  # descriptors of folders that this process writes to


def _forget_locks() -> None:
    """In a process that was forked: a lock must end with the process that took it."""
    for folder in _locked:
        with suppress(OSError):
            os.close(folder)
    _locked.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_locks)


def lock_folder(directory: Path) -> int | None:
    """Lock a folder until :func:`unlock_folder`, or until this process ends; None where the file system has no locks.

    Raises
    ------
    BlockingIOError
        If another process, or another part of this one, holds the lock.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        return _lock_file(directory / LOCK)
    folder = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(folder)
        raise
    except OSError:  # a file system without locks
        os.close(folder)
        return None
    _locked.add(folder)
    return folder


def _lock_file(path: Path) -> int:
    """Windows cannot lock a folder: a file in it, which may stay after a kill, is locked in its place."""
    import msvcrt

    file = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except OSError as error:
        os.close(file)
        raise BlockingIOError(error.errno, "locked by another process") from error
    return file


def unlock_folder(directory: Path, lock: int | None) -> None:
    """Undo what :func:`lock_folder` did."""
    if lock is None:
        return
    try:
        import fcntl
    except ImportError:  # Windows: closing unlocks
        os.close(lock)
        with suppress(OSError):  # another process has just opened it
            (directory / LOCK).unlink()
        return
    _locked.discard(lock)
    fcntl.flock(lock, fcntl.LOCK_UN)  # also for a process that was forked behind Python's back
    os.close(lock)
