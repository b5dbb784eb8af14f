"""Places in a file that only one process has at a time."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from policytree.common import file_locks
from policytree.common.file_locks import FileLocks

ROOT = Path(__file__).parents[2]
OTHER = """
import sys
from pathlib import Path
from policytree.common.file_locks import FileLocks
print(FileLocks(Path(sys.argv[1])).take(int(sys.argv[2])))
"""
fcntl = pytest.importorskip("fcntl")


def another_gets(path: Path, place: int) -> bool:
    """Whether a process of its own gets a place."""
    done = subprocess.run(
        [sys.executable, "-c", OTHER, path, str(place)], capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    return done.stdout.strip() == "True"


def test_a_place_is_free_when_it_was_given_back_as_often_as_taken(tmp_path):
    locks = FileLocks(tmp_path / "locks")
    far = 1 << 40  # far beyond the end of the file
    assert locks.work and locks.take(3) and locks.take(3) and locks.take(far)
    assert not another_gets(tmp_path / "locks", 3) and another_gets(tmp_path / "locks", 4)
    locks.give_back(3)
    assert not another_gets(tmp_path / "locks", 3)
    locks.give_back(3)
    locks.give_back(3)  # once too often: nothing happens
    assert another_gets(tmp_path / "locks", 3) and not another_gets(tmp_path / "locks", far)


def test_who_has_a_place_signs_it(tmp_path):
    locks, others = FileLocks(tmp_path / "locks"), FileLocks(tmp_path / "locks")
    locks.sign(2)
    assert others.signature(2) == f"{os.getpid()} on {socket.gethostname()}"
    assert others.signature(1) == "" == others.signature(7)


def test_where_no_file_can_be_made_nobody_is_kept_from_anything(tmp_path):
    locks = FileLocks(tmp_path / "none" / "locks")
    assert not locks.work and locks.take(0) and locks.signature(0) == ""
    locks.sign(0)
    locks.give_back(0)


def test_where_the_file_system_has_no_locks_nobody_is_kept_from_anything(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(file_locks.fcntl, "lockf", refuse)
    locks = FileLocks(tmp_path / "locks")
    assert locks.take(0) and not locks.work
    locks.give_back(0)


class Windows:
    """``msvcrt`` as documented: bytes from where the file stands, with 31 bits; taken ones are an OSError (EACCES)."""

    LK_UNLCK, LK_NBLCK = 0, 2

    def __init__(self):
        self.held: dict[int, int] = {}

    def locking(self, file, mode, n_bytes):
        at = os.lseek(file, 0, os.SEEK_CUR)
        assert n_bytes == 1 and at < 1 << 31
        if mode == self.LK_NBLCK:
            if at in self.held:
                raise PermissionError(13, "Permission denied")
            self.held[at] = file
        elif self.held.pop(at, None) != file:
            raise PermissionError(13, "Permission denied")


def test_windows(tmp_path, monkeypatch):
    windows = Windows()
    monkeypatch.setattr(file_locks, "fcntl", None)
    monkeypatch.setattr(file_locks, "msvcrt", windows)
    locks, others = FileLocks(tmp_path / "locks"), FileLocks(tmp_path / "locks")
    far = (1 << 40) + 5
    assert locks.work and locks.take(0) and locks.take(0) and locks.take(far)
    assert not others.take(0) and not others.take(far) and others.take(1)
    locks.sign(0)
    assert others.signature(0) == f"{os.getpid()} on {socket.gethostname()}"
    assert min(windows.held) >= 1 << 30  # nobody else could read a note of which a byte is locked
    locks.give_back(0)
    assert not others.take(0)
    locks.give_back(0)
    locks.give_back(far)
    assert others.take(0) and others.take(far) and len(windows.held) == 3


def test_a_system_without_record_locks(tmp_path, monkeypatch):
    monkeypatch.setattr(file_locks, "fcntl", None)
    monkeypatch.setattr(file_locks, "msvcrt", None)
    locks = FileLocks(tmp_path / "locks")
    assert not locks.work and locks.take(0) and locks.take(0)
