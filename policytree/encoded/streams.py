"""Sums over encoded rows: files are read one after the other, in threads, and leave only tables behind."""

from __future__ import annotations

import functools
import operator
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from policytree.encoded.store import CodedRows, EncodedData
from policytree.problem.types import Status
from policytree.solvers.core.coded_features import CodedFeature
from policytree.solvers.core.exact_sums import ExactSums, exact_sums
from policytree.solvers.core.limits import Clock
from policytree.solvers.kernels.out_of_core.code_tables import add_pairs, add_triples, find_leaves
from policytree.solvers.out_of_core.table_search import Side, Stopped, Triple

Report = Callable[[str, int, int], None]  # name of the step, rows done, rows in all


@dataclass
class Streams:
    """The tables of encoded rows; see :class:`policytree.solvers.out_of_core.table_search.Tables`.

    Attributes
    ----------
    data : EncodedData
    used : list of int
        Which of its coded features trees may split on.
    counted : bool
        Whether rows are counted beside their losses.
    sign : int
        -1 turns rewards into losses.
    n_jobs : int
    clock : Clock
        Its flag ends a reading.
    report : callable, optional
    """

    data: EncodedData
    used: list[int]
    counted: bool
    sign: int
    n_jobs: int
    clock: Clock
    report: Report | None = None
    read_rows: int = field(default=0, init=False)  # of all readings

    @property
    def features(self) -> tuple[CodedFeature, ...]:
        """Those that trees may split on."""
        return tuple(self.data.coded[f] for f in self.used)

    @property
    def n_values(self) -> int:
        """Numbers in a cell of a table."""
        return len(self.data.labels) - 1 + self.counted

    @property
    def bins(self) -> np.ndarray:
        """Codes of each feature, shape (p,), int64."""
        return np.array([f.n_codes for f in self.features], dtype=np.int64)

    def pairs(self, sides: list[Side | None]) -> list[dict[tuple[int, int], np.ndarray]]:
        """Tables of all pairs of features, of the rows of each side."""
        pairs = pairs_of(len(self.used))
        starts = starts_of(self.bins, pairs, self.n_values)
        owned: list[list[np.ndarray]] = []  # tables of each thread
        own = threading.local()

        def add(k: int) -> None:
            codes, values = self._rows(k)
            if not hasattr(own, "tables"):
                own.tables = [np.zeros(starts[-1], np.int64) for _ in sides]
                owned.append(own.tables)
            for side, tables in zip(sides, own.tables, strict=True):
                add_rows_to_pairs(codes, values, self.bins, pairs, starts, side, tables)

        self._read(f"Adding up {len(pairs)} pairs of features", add)
        out = []
        for i in range(len(sides)):
            total = np.sum([tables[i] for tables in owned], axis=0)
            out.append(self._tables(total, [tuple(pair) for pair in pairs.tolist()], starts))
        return out

    def triples(self, triples: list[Triple]) -> dict[Triple, np.ndarray]:
        """Tables of triples of features."""
        plans = {f: [t for t in triples if t[0] == f] for f in sorted({t[0] for t in triples})}
        pairs = {f: np.array([t[1:] for t in each], dtype=np.int64) for f, each in plans.items()}
        starts = {f: starts_of(self.bins, np.array(each), self.n_values) for f, each in plans.items()}
        tables = {f: np.zeros(starts[f][-1], np.int64) for f in plans}
        by_work = sorted(plans, key=lambda f: -len(plans[f]))
        with ThreadPoolExecutor(self.n_jobs) as pool:

            def add(k: int) -> None:  # no two threads add to the tables of one first feature
                codes, values = self._rows(k)
                work = [
                    pool.submit(add_triples, codes, values, self.bins, f, pairs[f], starts[f], tables[f])
                    for f in by_work
                ]
                for each in work:
                    each.result()

            self._read(f"Adding up {len(triples)} triples of features", add, n_jobs=1)
        out: dict[Triple, np.ndarray] = {}
        for f, each in plans.items():
            out |= self._tables(tables[f], each, starts[f])
        return out

    def leaves(self, feature: np.ndarray, goes_left: np.ndarray, children: np.ndarray) -> LeafSums:
        """Add up the rows that end in every node.

        ``feature`` (nodes,): the place among all coded features, -1 in leaves; see ``find_leaves``.
        """
        found: list[LeafSums] = []  # appending is atomic, and the order of exact sums does not matter

        def add(k: int) -> None:
            found.append(sums_of_leaves(self.data, self.data.rows(k), feature, goes_left, children))

        self._read("Adding up leaves", add, stoppable=False)
        return functools.reduce(operator.add, found)

    def least(self) -> int:
        """Return a lower bound for all trees: every row's least loss, added up; scaled."""
        total = 0
        for k in range(len(self.data.stored)):
            losses = self.sign * self.data.losses(self.data.rows(k))
            total += int(losses.min(axis=0, initial=0).sum())
        return total

    def _tables(self, flat: np.ndarray, places: list, starts: np.ndarray) -> dict:
        """Flat tables in their shapes, as losses."""
        if self.sign < 0:
            losses = flat.reshape(-1, self.n_values)[:, : self.n_values - self.counted]
            np.negative(losses, out=losses)
        bins = self.bins
        return {
            each: flat[starts[k] : starts[k + 1]].reshape(*(bins[f] for f in each), self.n_values)
            for k, each in enumerate(places)
        }

    def _rows(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Codes (features, m) and values (m, n_values) of a file."""
        rows = self.data.rows(k)
        codes, losses = rows.codes, self.data.losses(rows)
        if len(self.used) < len(codes):
            codes = np.ascontiguousarray(codes[self.used])
        if len(losses) == 1 and not self.counted:
            return codes, losses.reshape(-1, 1)  # no copy
        every = [*losses, np.ones(codes.shape[1], np.int64)] if self.counted else [*losses]
        return codes, np.ascontiguousarray(np.stack(every, axis=1))

    def _read(self, what: str, add: Callable[[int], None], n_jobs: int | None = None, stoppable: bool = True) -> None:
        """Call ``add`` for every file; ends early if the clock's flag is up."""
        stored = self.data.stored
        lock, done = threading.Lock(), 0

        def one(k: int) -> None:
            nonlocal done
            if stoppable and self._out_of_time():
                return
            add(k)
            with lock:
                done += stored[k].rows
                self.read_rows += stored[k].rows
                if self.report is not None:
                    self.report(what, done, self.data.n_rows)

        if n_jobs is None and self.n_jobs > 1:
            with ThreadPoolExecutor(self.n_jobs) as pool:
                list(pool.map(one, range(len(stored))))
        else:
            for k in range(len(stored)):
                one(k)
        if stoppable:
            self.check_time()

    def check_time(self) -> None:
        """Raise Stopped if a limit or Ctrl-C has struck."""
        if self._out_of_time():
            raise Stopped(self.clock.status)

    def _out_of_time(self) -> bool:
        """Whether a limit or Ctrl-C has struck; looks at the clock itself: files may be small."""
        limit = self.clock.time_limit
        if limit is not None and self.clock.seconds() >= limit:
            self.clock.stop(Status.TIME_LIMIT)
        return self.clock.stopped


@dataclass(frozen=True)
class LeafSums:
    """Sums over the rows that end in every node.

    Attributes
    ----------
    values : ExactSums of shape (nodes, K)
        Rewards of every action times the weight; of labels, the weight of every class.
    weights : ExactSums of shape (nodes,)
    counts : ndarray of shape (nodes,), int64
    """

    values: ExactSums
    weights: ExactSums
    counts: np.ndarray

    def __add__(self, other: LeafSums) -> LeafSums:
        """Sums of both."""
        return LeafSums(self.values + other.values, self.weights + other.weights, self.counts + other.counts)


def sums_of_leaves(data: EncodedData, rows: CodedRows, feature, goes_left, children) -> LeafSums:
    """Sums of some rows by the leaf in which they end; see :meth:`Streams.leaves`."""
    K, nodes = len(data.labels), len(feature)
    weight, leaf = data.weights(rows), np.empty(rows.codes.shape[1], np.int64)
    find_leaves(rows.codes, feature, goes_left, children, leaf)
    if rows.classes is None:
        values = exact_sums(rows.numbers[:K], leaf, nodes)
    else:
        by_class = exact_sums(weight[None], leaf * K + rows.classes, nodes * K)
        values = ExactSums(by_class.whole.reshape(nodes, K), by_class.exponent)
    return LeafSums(values, exact_sums(weight[None], leaf, nodes)[:, 0], np.bincount(leaf, minlength=nodes))


def pairs_of(p: int) -> np.ndarray:
    """All pairs f < g of so many features; of one feature, it with itself."""
    return np.array(list(combinations(range(p), 2)) or [(0, 0)], dtype=np.int64)


def starts_of(bins: np.ndarray, others: np.ndarray, n_values: int) -> np.ndarray:
    """Where the table of each of these pairs or triples begins in a flat array, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(n_values * bins[others].prod(axis=1))]).astype(np.int64)


def add_rows_to_pairs(codes, values, bins, pairs, starts, side: Side | None, tables: np.ndarray) -> None:
    """Add the rows of a side to flat tables."""
    if side is not None:
        rows = np.flatnonzero(side.codes[codes[side.feature]])
        codes, values = np.ascontiguousarray(codes[:, rows]), np.ascontiguousarray(values[rows])
    add_pairs(codes, values, bins, pairs, starts, tables)
