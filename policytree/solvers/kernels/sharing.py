"""How processes share the work of compiling: no kernel is compiled by two of them at once, and no core by many.

A process compiles only in a *seat*, of which there are as many as cores, and only kernels that it has *claimed*. Eight
processes that start at once on one core so need the time of one: one has the seat, the others wait for its files. On
several cores, those with a seat skip what others have claimed, so that they compile different kernels.

Nobody waits for ever. Seats and claims are file locks (``common/file_locks.py``): the system frees those of a process
that was killed. Whoever has a claim waits for none but those of kernels that its own calls, so that no two wait for
each other. After ``POLICYTREE_COMPILE_WAIT`` seconds (900; 0: at once) without a kernel, a process compiles by itself.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from policytree.common.file_locks import FileLocks

Found = TypeVar("Found")
LOCKS = "policytree_compiling.lock"
VARIABLE = "POLICYTREE_COMPILE_WAIT"
PATIENCE = 900.0  # seconds
LOOK_EVERY = 0.2
MOST_SEATS = 1_000  # places of the file: first the seats, then the kernels


def cores() -> int:
    """Cores that this process may use."""
    from joblib import cpu_count  # knows affinities and containers; only where something is compiled

    return int(cpu_count())


def patience() -> float:
    """Seconds that a process waits for others to compile a kernel."""
    chosen = os.environ.get(VARIABLE, "")
    try:
        return float(chosen) if chosen else PATIENCE
    except ValueError:
        return PATIENCE


class Sharing:
    """Seats and claims of this process.

    Parameters
    ----------
    find_folder : callable
        Returns the folder of the file of locks, beside the compiled kernels, or None: nothing is shared. Called when
        something is to be compiled, as ``count_seats`` is.
    count_seats : callable

    Attributes
    ----------
    claims : set of str
        Kernels that this process compiles.
    """

    def __init__(self, find_folder: Callable[[], Path | None], count_seats: Callable[[], int] = cores):
        self._find_folder, self._count_seats = find_folder, count_seats
        self._seat: int | None = None
        self.claims: set[str] = set()
        self._sessions: list[Session] = []
        self._guard = threading.RLock()
        self._gave_up = False

    @cached_property
    def _locks(self) -> FileLocks | None:
        folder = self._find_folder() if patience() > 0 else None
        locks = None if folder is None else FileLocks(folder / LOCKS)
        return locks if locks is not None and locks.work else None

    @cached_property
    def _seats(self) -> int:
        return min(max(1, self._count_seats()), MOST_SEATS)

    @contextmanager
    def session(self, session: Session) -> Iterator[Session]:
        """Keep the seat, once there is one, until all is compiled that this session is for."""
        with self._guard:
            self._sessions.append(session)
        try:
            yield session
        finally:
            with self._guard:
                self._sessions.remove(session)
                self._leave()

    def is_claimed_by_others(self, kernel: str) -> bool:
        """Whether another process compiles a kernel."""
        if self._locks is None or self._gave_up or kernel in self.claims:
            return False
        if not self._locks.take(place := _place(kernel)):
            return True
        self._locks.give_back(place)
        return False

    def free_seats(self) -> int:
        """How many seats nobody has, beside that of this process."""
        if self._locks is None or self._gave_up:
            return 0
        free = 0
        for seat in range(self._seats):
            if seat != self._seat and self._locks.take(seat):
                self._locks.give_back(seat)
                free += 1
        return free

    def wait_for(self, kernel: str, look: Callable[[], Found | None]) -> Found | None:
        """Wait until a kernel is found, or until it is for this process to compile it.

        Parameters
        ----------
        kernel : str
        look : callable
            Looks whether another process has left it on the disk.

        Returns
        -------
        found : result of ``look``, or None
            None: compile it, and :meth:`release` it then.
        """
        start = time.monotonic()
        while self._locks is not None and not self._gave_up:
            if self._begin(kernel):
                found = look()  # left between the last look and the claim
                if found is not None:
                    self.release(kernel)
                return found
            found = look()
            if found is not None:
                return found
            if time.monotonic() - start > patience():
                self._gave_up = True
            else:
                self._say_that_it_waits(kernel)
                time.sleep(LOOK_EVERY)
        for session in self._sessions:
            session.compile_begins()
        return None

    @contextmanager
    def exclusively(self, name: str) -> Iterator[None]:
        """Do something short while no other process does the same; after ten seconds, whatever others do."""
        place, start = _place(f"{name} is written"), time.monotonic()
        taken = False
        while self._locks is not None and not taken and time.monotonic() < start + 10:
            taken = self._locks.take(place)
            if not taken:
                time.sleep(0.01)
        try:
            yield
        finally:
            if taken and self._locks is not None:
                self._locks.give_back(place)

    def release(self, kernel: str) -> None:
        """Give a claim back, if there is one: the kernel is on the disk, or its compilation failed."""
        if self._seat is None and not self.claims:
            return
        with self._guard:
            if kernel in self.claims and self._locks is not None:
                self.claims.remove(kernel)
                self._locks.give_back(_place(kernel))
            self._leave()

    def _begin(self, kernel: str) -> bool:
        """Take a seat and claim a kernel, if nobody else has."""
        with self._guard:
            if self._locks is None or not self._sit():
                return False
            if kernel not in self.claims:
                if not self._locks.take(_place(kernel)):
                    self._leave()
                    return False
                self.claims.add(kernel)
        for session in self._sessions:
            session.compile_begins()
        return True

    def _sit(self) -> bool:
        if self._seat is None and self._locks is not None:
            self._seat = next((seat for seat in range(self._seats) if self._locks.take(seat)), None)
            if self._seat is not None:
                self._locks.sign(self._seat)
        return self._seat is not None

    def _leave(self) -> None:
        """Leave the seat, unless there is more to compile."""
        if self._seat is not None and self._locks is not None and not self.claims and not self._sessions:
            self._locks.give_back(self._seat)
            self._seat = None

    def _say_that_it_waits(self, kernel: str) -> None:
        if self._locks is None or (self._seat is not None and self.claims):
            return  # a moment within the own work
        others = [self._locks.signature(seat) for seat in range(self._seats) if seat != self._seat]
        for session in self._sessions:
            session.waits_for(", ".join(filter(None, others)))


class Session:
    """Messages and actions while kernels are made ready.

    Parameters
    ----------
    announce_wait : callable, optional
        Called once, before the first wait, with the processes that compile ("12 on host"; "" if that is not known).
    on_first : callable, optional
        Called once, when this process begins to compile.
    """

    def __init__(self, announce_wait: Callable[[str], None] | None = None, on_first: Callable[[], None] | None = None):
        self._announce_wait, self._on_first = announce_wait, on_first
        self.waited = False

    def compile_begins(self) -> None:
        """Note that this process has something to compile."""
        if self._on_first is not None:
            begin, self._on_first = self._on_first, None
            begin()

    def waits_for(self, others: str) -> None:
        """Note that this process waits for others."""
        if not self.waited:
            self.waited = True
            if self._announce_wait is not None:
                self._announce_wait(others)


def _place(kernel: str) -> int:
    return MOST_SEATS + int.from_bytes(hashlib.sha256(kernel.encode()).digest()[:5], "big")
