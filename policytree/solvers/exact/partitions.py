"""Root features spread over partitions, and partitions over threads, so that threads never change the tree."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

Result = TypeVar("Result")

# Independent searches, whatever the number of threads, so that it cannot change the tree; deep ones have a cache each.
PARTITIONS, SWEEP_PARTITIONS = 2, 8


@dataclass
class Partition:
    """Root features that one search works on in turn; in a deep search it keeps its worker, and so its cache."""

    place: int
    features: list[int]
    worker: Any = None


class Partitions:
    """Partitions of the root features, and the workers that are free.

    Parameters
    ----------
    features : list of int
        Columns of the first split, the most promising first.
    shallow : bool
        Whether trees are three deep at most: sweeps keep nothing from one feature to the next, so that any free worker
        serves any partition.
    n_jobs : int
        Threads.
    make_worker : callable
        Makes a worker: :class:`~policytree.solvers.exact.depth_search.Stack` or ``BinaryStack``.

    Attributes
    ----------
    last_needed : int
        Partitions of a higher place are idle: an earlier one has found a value that cannot be beaten.
    """

    def __init__(self, features: list[int], shallow: bool, n_jobs: int, make_worker: Callable[[], Any]):
        number = min(self.number_of(shallow), len(features))
        self._all = [Partition(k, features[k :: self.number_of(shallow)]) for k in range(number)]
        self.last_needed = len(self._all)
        self._shallow, self._n_jobs, self._make_worker = shallow, n_jobs, make_worker
        self._free: list[Any] = []

    @staticmethod
    def number_of(shallow: bool) -> int:
        """Partitions of a search, if there are as many root features."""
        return SWEEP_PARTITIONS if shallow else PARTITIONS

    def map(self, task: Callable[[Partition, Any], Result]) -> list[Result]:
        """Call ``task(partition, worker)`` for every partition; results are in the order of the partitions."""

        def work_on(partition: Partition) -> Result:
            worker = partition.worker or self._free_worker()
            result = task(partition, worker)
            if self._shallow:
                self._free.append(worker)
            else:
                partition.worker = worker
            return result

        if self._n_jobs == 1:  # a pool would cost small searches half of their time
            return [work_on(partition) for partition in self._all]
        with ThreadPoolExecutor(self._n_jobs) as pool:
            return list(pool.map(work_on, self._all))

    def _free_worker(self) -> Any:
        try:
            return self._free.pop()  # atomic: two threads never get the same worker
        except IndexError:
            return self._make_worker()
