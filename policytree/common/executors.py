"""Tasks on external executors (anything with ``submit``, as in ``concurrent.futures``); data are sent once.

Dask waits for workers without end: whoever waits for its tasks looks after a while whether anybody is left to do them.
"""

from __future__ import annotations

import math
import pickle
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from policytree.exceptions import InputError

NO_WORKERS_TIMEOUT = 45.0  # seconds without a worker, after which dask's tasks are given up
LOOK_EVERY = 1.0  # seconds between looks at dask's workers
ANSWER_WITHIN, BUSY = 5.0, 300.0  # seconds that a scheduler has for an answer, and may be too busy for any
REMEDY = (
    "Workers are often killed for lack of memory, which their logs say: start workers with more of it, or cut the rows "
    "into more partitions, and call this again"
)


class WorkerWatch:
    """Waits for tasks of a dask cluster, and notices if nobody is left to do them.

    Parameters
    ----------
    client : distributed.Client
    timeout : float or None
        Seconds without a worker after which to give up; None: never.
    """

    def __init__(self, client: Any, timeout: float | None):
        self.client, self.timeout = client, timeout
        self.every = LOOK_EVERY if timeout is None else min(LOOK_EVERY, timeout / 4)
        self.seen = self.looked = self.answered = time.monotonic()
        self.most = 0  # workers at a time

    def look(self) -> None:
        """Count the workers, if that was not done just before.

        Raises
        ------
        InputError
            If there has been none for as long as ``timeout``, or no answer from the scheduler for far longer: it does
            not answer while it reads a large graph.
        """
        if self.timeout is None or time.monotonic() < self.looked + self.every:
            return
        try:
            workers = len(self.client.nthreads(callback_timeout=ANSWER_WITHIN))
        except OSError as error:  # no connection, or no answer in time
            self.looked = time.monotonic()
            if self.looked - self.answered >= max(self.timeout, BUSY):
                raise InputError(self._no_answer()) from error
            return
        self.looked = self.answered = time.monotonic()
        if workers:
            self.most, self.seen = max(self.most, workers), self.looked
        elif self.looked - self.seen >= self.timeout:
            raise InputError(self._no_workers())

    def result(self, future: Any) -> Any:
        """The result of a task that is done; raises what it raised.

        Raises
        ------
        InputError
            If dask called it off because workers died again and again, or took along what was sent to them, or because
            the scheduler is gone.
        """
        from distributed import KilledWorker

        try:
            return future.result()
        except KilledWorker as error:
            raise InputError(
                f"Dask gave up after several workers of the cluster at {self._address} had died of one task. {REMEDY}."
            ) from error
        except CancelledError as error:
            if self._lost:
                raise InputError(self._no_answer()) from error
            raise InputError(
                f"Workers of the dask cluster at {self._address} died with data that they had been sent. {REMEDY}."
            ) from error

    def sent(self, data: Any) -> Any:
        """Data that all workers were sent.

        Raises
        ------
        InputError
            If there is no worker to send them to within ``timeout``.
        """
        patience = math.inf if self.timeout is None else self.timeout
        try:
            return self.client.scatter(data, broadcast=True, hash=False, timeout=patience)
        except OSError as error:  # it waits for a first worker
            raise InputError(self._no_answer() if self._lost else self._no_workers_yet()) from error

    @property
    def _lost(self) -> bool:
        """Whether the client has lost its scheduler."""
        return self.client.status != "running"

    @property
    def _address(self) -> str:
        return str(getattr(self.client.scheduler, "address", "an unknown address"))

    def _no_answer(self) -> str:
        return (
            f"The dask scheduler at {self._address} does not answer: it was stopped, or the network is down. Start a "
            "cluster, make a client for it, and call this again."
        )

    def _no_workers_yet(self) -> str:
        return (
            f"The dask cluster at {self._address} has no worker; start some, wait for them with "
            "client.wait_for_workers(), and call this again."
        )

    def _no_workers(self) -> str:
        if not self.most:
            return self._no_workers_yet()
        return (
            f"All workers of the dask cluster at {self._address} have left or died, and none came back within "
            f"{self.timeout:g} s. {REMEDY}."
        )


def check_executor(executor: Any) -> None:
    """Refuse what has no ``submit``; None is no executor."""
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise InputError(
            "executor must have a method submit, as those of concurrent.futures and dask's client.get_executor(); got "
            f"{type(executor).__name__}."
        )


def submitted(
    executor: Any,
    task: Callable[[Any], Any],
    parts: Sequence[Any],
    *,
    no_workers_timeout: float | None = NO_WORKERS_TIMEOUT,
) -> Iterator[tuple[int, Any]]:
    """Position and result of every part, as they come; what is left is called off if one fails.

    Parameters
    ----------
    executor : object with ``submit``
        Threads share the task. Dask's workers are sent it once. Processes of this machine read it from a file, once
        each. Others are sent it with every part.
    task : callable
        Holds the data; picklable, unless the executor's workers are threads.
    parts : sequence
        Small things that say what to do.
    no_workers_timeout : float or None
        Seconds after which dask's tasks are given up if it has no workers; None: never.

    Raises
    ------
    InputError
        If dask has no workers for so long, or its scheduler is gone.
    """
    client: Any = getattr(executor, "_client", None)
    watch = None
    with tempfile.TemporaryDirectory(prefix="policytree-") as folder:
        if client is not None and hasattr(client, "scatter"):
            watch = WorkerWatch(client, no_workers_timeout)
            task = watch.sent(task)
        elif isinstance(executor, ProcessPoolExecutor):
            path = Path(folder) / "task.pickle"
            with open(path, "wb") as file:
                pickle.dump(task, file, protocol=5)
            task = _FromFile(str(path))
        futures = [executor.submit(_numbered, k, task, part) for k, part in enumerate(parts)]
        try:
            pending: set[Future] = set(futures)
            while pending:
                done, pending = wait(pending, None if watch is None else watch.every, FIRST_COMPLETED)
                for future in done:
                    yield future.result() if watch is None else watch.result(future)
                if watch is not None and pending:
                    watch.look()
        finally:
            for future in futures:
                future.cancel()


def _numbered(position: int, task: Callable[[Any], Any], part: Any) -> tuple[int, Any]:
    return position, task(part)


@dataclass(frozen=True)
class _FromFile:
    """A task that stands in a file."""

    path: str

    def __call__(self, part: Any) -> Any:
        return _read(self.path)(part)


@lru_cache(maxsize=1)
def _read(path: str) -> Callable[[Any], Any]:
    with open(path, "rb") as file:
        return pickle.load(file)
