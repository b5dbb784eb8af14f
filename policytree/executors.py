"""Tasks on somebody else's workers: anything with ``submit``, as in ``concurrent.futures``; data are sent once."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from policytree.exceptions import InputError


def check_executor(executor: Any) -> None:
    """Refuse what has no ``submit``; None is no executor."""
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise InputError(
            "executor must have a method submit, as those of concurrent.futures and dask's client.get_executor(); got "
            f"{type(executor).__name__}."
        )


def submitted(executor: Any, task: Callable[[Any], Any], parts: Sequence[Any]) -> Iterator[tuple[int, Any]]:
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
    """
    client: Any = getattr(executor, "_client", None)
    with tempfile.TemporaryDirectory(prefix="policytree-") as folder:
        if client is not None and hasattr(client, "scatter"):
            task = client.scatter(task, broadcast=True, hash=False)
        elif isinstance(executor, ProcessPoolExecutor):
            path = Path(folder) / "task.pickle"
            with open(path, "wb") as file:
                pickle.dump(task, file, protocol=5)
            task = _FromFile(str(path))
        futures = [executor.submit(_numbered, k, task, part) for k, part in enumerate(parts)]
        try:
            for future in as_completed(futures):
                yield future.result()
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
