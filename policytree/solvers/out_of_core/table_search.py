"""The best tree of depth three or less from sums over pairs and triples of features, without a row.

Sums left of a cut of f, of a cut of g and of a cut of h say what every leaf of every tree on f, g and h is worth. They
add up over parts of the rows, so rows are read once a level, in any order, from wherever they are:

    depth two     tables of all pairs of features
    depth three   tables of all triples: as many as memory holds in one reading, the others in the next ones;
                  then tables of pairs on each side of the best first cut, which say what to split on below

Every triple {f, g, h} serves three first features. Losses are int64, so that the result is exact and the same for any
order of the rows. Among trees of the same value the first stands: by feature, then cut, from the root down.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple, Protocol

import numpy as np

from policytree.problem.types import Status
from policytree.solvers.core.coded_features import CodedFeature
from policytree.solvers.core.rows import Splits
from policytree.solvers.kernels.base.layout import INF
from policytree.solvers.kernels.out_of_core.code_tables import scan_cuts

MOST_DEPTH = 3
SLICE_BYTES = 2**23  # of sums by the cuts of three features, made slice by slice: caches hold them better than all
Triple = tuple[int, int, int]


class Side(NamedTuple):
    """Rows of some codes of one feature, by its place among the coded ones."""

    feature: int
    codes: np.ndarray  # (n_codes,), bool


class TableRules(NamedTuple):
    """Prices and limits of a tree: values of a leaf are ``n_losses`` losses, then counts that have a minimum."""

    n_losses: int
    minima: np.ndarray
    penalty: int


class Tables(Protocol):
    """Whoever reads the rows. Tables have the shape (codes of each feature, values)."""

    @property
    def features(self) -> tuple[CodedFeature, ...]:
        """Those that trees may split on."""

    def pairs(self, sides: list[Side | None]) -> list[dict[tuple[int, int], np.ndarray]]:
        """Tables of all pairs f < g (of the only feature with itself, if there is one) of the rows of each side."""

    def triples(self, triples: list[Triple]) -> dict[Triple, np.ndarray]:
        """Tables of triples f < g < h."""

    def check_time(self) -> None:
        """Raise Stopped if the search must end."""


class Stopped(Exception):
    """Reading was stopped by a limit or by Ctrl-C."""

    def __init__(self, status: Status):
        super().__init__(status.value)
        self.status = status


@dataclass(frozen=True, slots=True)
class Found:
    """A tree, and how the search for it ended.

    Attributes
    ----------
    value : int
    splits : list of (int, int)
        ``(feature, cut)`` in preorder, (-1, 0) for leaves.
    status : Status
    no_split_fits : bool
        Whether leaves need so many rows that no first split leaves both sides enough.
    """

    value: int
    splits: Splits
    status: Status
    no_split_fits: bool


def search_tables(
    tables: Tables, rules: TableRules, depth: int, roots: list[int] | None = None, batch_bytes: float = 1e9
) -> Found:
    """Find the best tree.

    Parameters
    ----------
    tables : Tables
        With at least one feature.
    rules : TableRules
    depth : int
        3 at most.
    roots : list of int, optional
        Places of the features that the first split may be on; all by default.
    batch_bytes : float
        Bytes that tables of triples may take at a time.
    """
    allowed = list(range(len(tables.features))) if roots is None else roots
    sums = CutSums(tables.features, tables.pairs([None])[0])
    value, splits = best_tree(sums, rules, min(depth, 2), allowed)
    single = len(rules.minima) > 0 and not any(_some_cut_fits(sums, rules, f) for f in allowed)
    if depth < 3:
        return Found(value, splits, Status.OPTIMAL, single)
    try:
        better = _three_levels(tables, sums, rules, allowed, batch_bytes)
    except Stopped as stop:
        return Found(value, splits, stop.status, single)
    if better is not None and better[0] < value:
        value, splits = better
    return Found(value, splits, Status.OPTIMAL, single)


class CutSums:
    """Sums over a set of rows on one side of every cut, and of every pair of cuts.

    Parameters
    ----------
    features : tuple of CodedFeature
    pairs : dict of (f, g) to ndarray of shape (codes of f, codes of g, values)
        All f < g, or the only feature with itself.

    Attributes
    ----------
    by_codes : dict
        The ``pairs``.
    by_code : list of ndarray of shape (codes, values)
    whole : ndarray of shape (values,)
    of : list of ndarray of shape (cuts, values)
        Left of every cut of a feature.
    both : dict of (f, g) to ndarray of shape (cuts of f, cuts of g, values), f <= g
        Left of a cut of f and of a cut of g.
    """

    def __init__(self, features: tuple[CodedFeature, ...], pairs: dict[tuple[int, int], np.ndarray]):
        self.by_codes = pairs
        by_code: dict[int, np.ndarray] = {}
        for (f, g), table in pairs.items():
            by_code.setdefault(f, table.sum(axis=1))
            by_code.setdefault(g, table.sum(axis=0))
        self.by_code = [by_code[f] for f in range(len(features))]
        self.whole = self.by_code[0].sum(axis=0)
        self.of = [feature.at_cuts(self.by_code[f], 0) for f, feature in enumerate(features)]
        self.both = {(f, f): both_cuts(features, (f, f), on_diagonal(self.by_code[f])) for f in range(len(features))}
        self.both |= {(f, g): both_cuts(features, (f, g), table) for (f, g), table in pairs.items() if f < g}

    def cross(self, f: int, g: int) -> np.ndarray:
        """Sums left of a cut of f and of a cut of g: (cuts of f, cuts of g, values)."""
        return self.both[f, g] if f <= g else self.both[g, f].swapaxes(0, 1)


def both_cuts(features: tuple[CodedFeature, ...], places: tuple[int, ...], table: np.ndarray) -> np.ndarray:
    """Sums left of cuts of several features, from a table by their codes."""
    for axis, f in enumerate(places):
        table = features[f].at_cuts(table, axis)
    return table


def on_diagonal(table: np.ndarray) -> np.ndarray:
    """Repeat the first axis of a table: its sums by (code, same code, ...)."""
    out = np.zeros((len(table), *table.shape), dtype=table.dtype)
    every = np.arange(len(table))
    out[every, every] = table
    return out


def leaf_values(sums: np.ndarray, rules: TableRules) -> np.ndarray:
    """Return the costs of leaves with these sums (..., values), without the penalty; INF if a count is too small."""
    value = sums[..., : rules.n_losses].min(axis=-1, initial=0)
    if len(rules.minima):
        value = np.where((sums[..., rules.n_losses :] < rules.minima).any(axis=-1), INF, value)
    return value


def _some_cut_fits(sums: CutSums, rules: TableRules, f: int) -> bool:
    """Whether a cut of a feature leaves both sides the rows that leaves need."""
    left, whole = sums.of[f][:, rules.n_losses :], sums.whole[rules.n_losses :]
    return bool((np.minimum(left, whole - left) >= rules.minima).all(axis=1).any())


def _two_leaves(whole: np.ndarray, of: np.ndarray, rules: TableRules) -> np.ndarray:
    return leaf_values(of, rules) + leaf_values(whole[..., None, :] - of, rules)


def best_tree(sums: CutSums, rules: TableRules, depth: int, roots: list[int]) -> tuple[int, Splits]:
    """The best tree of depth two at most for rows whose sums are known."""
    leaf = int(leaf_values(sums.whole, rules)) + rules.penalty
    if depth == 0:
        return leaf, [(-1, 0)]
    if depth == 1:
        return _one_split(sums.whole, sums.of, rules, roots)
    second = {f: _no_split(1, len(of)) for f, of in enumerate(sums.of)}
    for (f, g), both in sums.both.items():
        _scan(both[None], sums.of[f][None], sums.of[g][None], sums.whole[None], rules, (second[f], second[g]))
    best: tuple[int, int, int] = (leaf, -1, 0)
    for f in roots:
        values = _values_of_first(sums.whole[None], sums.of[f][None], second[f], rules)[0]
        t = int(values.argmin()) if len(values) else 0
        if len(values) and values[t] < best[0]:
            best = int(values[t]), f, t
    value, f, t = best
    if f < 0:
        return leaf, [(-1, 0)]
    every = list(range(len(sums.of)))
    below = [_one_split(whole, of, rules, every)[1] for whole, of in _sides_of(sums, f, t)]
    return value, [(f, t), *below[0], *below[1]]


def _sides_of(sums: CutSums, f: int, t: int) -> list[tuple[np.ndarray, list[np.ndarray]]]:
    """Sums of the rows left and right of a cut: of all, and left of every cut."""
    low = [sums.cross(f, g)[t] for g in range(len(sums.of))]
    high = [of - part for of, part in zip(sums.of, low, strict=True)]
    return [(sums.of[f][t], low), (sums.whole - sums.of[f][t], high)]


def _one_split(whole: np.ndarray, of: list[np.ndarray], rules: TableRules, roots: list[int]) -> tuple[int, Splits]:
    """The best leaf or pair of leaves."""
    best, splits = int(leaf_values(whole, rules)) + rules.penalty, [(-1, 0)]
    for f in roots:
        values = _two_leaves(whole, of[f], rules) + 2 * rules.penalty
        t = int(values.argmin()) if len(values) else 0
        if len(values) and values[t] < best:
            best, splits = int(values[t]), [(f, t), (-1, 0), (-1, 0)]
    return best, splits


def _no_split(sets: int, cuts: int) -> np.ndarray:
    return np.full((2, sets, cuts), 2 * INF, dtype=np.int64)


def _scan(both, of_first, of_second, whole, rules: TableRules, to: tuple[np.ndarray, np.ndarray]) -> None:
    """Lower the values of second splits by those of one pair of features, for sets of rows."""
    first, second = to
    if first is second:  # a feature with itself: the kernel's arrays must not be one
        second = first.copy()
    arrays = [np.ascontiguousarray(a, dtype=np.int64) for a in (both, of_first, of_second, whole)]
    scan_cuts(*arrays, rules.n_losses, rules.minima, first, second)
    np.minimum(to[1], second, out=to[1])


def _values_of_first(whole: np.ndarray, of: np.ndarray, second: np.ndarray, rules: TableRules) -> np.ndarray:
    """Evaluate every first cut for sets of rows: (sets, cuts), penalties included."""
    sides = leaf_values(of, rules), leaf_values(whole[:, None] - of, rules)
    low, high = (
        np.minimum(leaf + rules.penalty, split + 2 * rules.penalty) for leaf, split in zip(sides, second, strict=True)
    )
    return low + high


def _three_levels(
    tables: Tables, sums: CutSums, rules: TableRules, roots: list[int], batch_bytes: float
) -> tuple[int, Splits] | None:
    """The best tree of depth three whose first split is a split; None if there is none."""
    features = tables.features
    search = _FirstCuts(features, sums, rules, roots)
    for f in range(len(features)):  # a path may ask about a feature twice or three times
        tables.check_time()
        search.add((f, f, f), on_diagonal(on_diagonal(sums.by_code[f])))
    for (f, g), table in sums.by_codes.items():
        if f < g:
            tables.check_time()
            search.add((f, f, g), on_diagonal(table))
            search.add((g, g, f), on_diagonal(table.swapaxes(0, 1)))
    for batch in batches_of_triples(features, rules.n_losses + len(rules.minima), batch_bytes):
        for triple, table in tables.triples(batch).items():
            tables.check_time()
            search.add(triple, table)
    value, f, t = search.best()
    if f < 0:
        return None
    left = features[f].goes_left()[t]
    sides = tables.pairs([Side(f, left), Side(f, ~left)])
    every = list(range(len(features)))
    found = [best_tree(CutSums(features, pairs), rules, 2, every) for pairs in sides]
    return value, [(f, t), *found[0][1], *found[1][1]]


def batches_of_triples(features: tuple[CodedFeature, ...], n_values: int, batch_bytes: float) -> list[list[Triple]]:
    """All triples f < g < h, in parts whose tables together take so many bytes, or are one table."""
    batches: list[list[Triple]] = []
    room = 0.0
    for triple in combinations(range(len(features)), 3):
        size = table_bytes(features, triple, n_values)
        if size > room:
            batches.append([])
            room = batch_bytes
        batches[-1].append(triple)
        room -= size
    return batches


def table_bytes(features: tuple[CodedFeature, ...], places: tuple[int, ...], n_values: int) -> int:
    """Return the size in bytes of a table of several features."""
    return 8 * n_values * math.prod(features[f].n_codes for f in places)


def cut_table_bytes(cuts: Sequence[int], n_values: int) -> int:
    """Return the size in bytes of sums by the cuts of several features."""
    return 8 * n_values * math.prod(cuts)


def bytes_below(codes: int, cuts: int, n_values: int) -> int:
    """The most that :class:`_FirstCuts` takes for tables of three features of so many codes and cuts.

    A table by codes; sums by the cuts of all three, what they are made from, the same of the other side, and both as
    kernels take them. In slices: beside them the table's running sums, and sums by the cuts of one feature.
    """
    pairs, whole = cut_table_bytes([codes] * 2, n_values), cut_table_bytes([cuts] * 3, n_values)
    if whole <= SLICE_BYTES:
        return pairs * codes + 4 * whole
    return pairs * (2 * codes + cuts) + 4 * max(SLICE_BYTES, cut_table_bytes([cuts] * 2, n_values))


class _FirstCuts:
    """The value of every first cut, from tables of triples that come one after the other."""

    def __init__(self, features: tuple[CodedFeature, ...], sums: CutSums, rules: TableRules, roots: list[int]):
        self.features, self.sums, self.rules, self.roots = features, sums, rules, roots
        cuts = [len(of) for of in sums.of]
        # By first feature, side of its cut, and second feature: the least value of rows that are split once more.
        self.second = {f: [[_no_split(cuts[f], c) for c in cuts] for _ in range(2)] for f in roots}

    def add(self, places: Triple, table: np.ndarray) -> None:
        """Take in what splits on these three features, in any order, are worth."""
        cuts = [len(self.sums.of[f]) for f in places]
        size = cut_table_bytes(cuts, table.shape[-1])
        every = both_cuts(self.features, places, table) if size <= SLICE_BYTES else None
        for axis, f in enumerate(places):
            if f not in self.roots or f in places[:axis]:
                continue
            g, h = (places[k] for k in range(3) if k != axis)
            if every is not None:
                self._add_below(f, g, h, slice(0, cuts[axis]), np.moveaxis(every, axis, 0))
                continue
            of_first = np.moveaxis(self.features[f].at_cuts(table, axis), axis, 0)
            step = max(1, SLICE_BYTES * cuts[axis] // size)
            for first in range(0, cuts[axis], step):
                part = slice(first, min(first + step, cuts[axis]))
                left = self.features[g].at_cuts(of_first[part], 1)
                self._add_below(f, g, h, part, self.features[h].at_cuts(left, 2))

    def _add_below(self, f: int, g: int, h: int, part: slice, both: np.ndarray) -> None:
        """Second and third splits on g and h, in both orders, on both sides of some cuts of f."""
        sums = self.sums
        low = [both, sums.cross(f, g)[part], sums.cross(f, h)[part], sums.of[f][part]]
        every = [sums.cross(g, h), sums.of[g], sums.of[h], sums.whole]
        for side in range(2):
            parts = low if side == 0 else [total[None] - left for total, left in zip(every, low, strict=True)]
            places = [self.second[f][side][k][:, part] for k in (g, h)]
            to = [np.ascontiguousarray(values) for values in places]
            if g == h:
                to[1] = to[0]
            first, second, of_both, whole = parts
            _scan(first, second, of_both, whole, self.rules, (to[0], to[1]))
            for place, values in zip(places, to, strict=True):
                place[...] = values

    def best(self) -> tuple[int, int, int]:
        """The least value of a tree whose first split is a split, with its feature and cut; feature -1 if none is."""
        best = (2 * INF, -1, 0)
        for f in self.roots:
            values = self._values(f)
            t = int(values.argmin())
            if values[t] < best[0]:
                best = int(values[t]), f, t
        return best

    def _values(self, f: int) -> np.ndarray:
        """Evaluate every first cut of a feature; shape (cuts,)."""
        sums, rules = self.sums, self.rules
        total = np.zeros(len(sums.of[f]), dtype=np.int64)
        for side in range(2):
            whole = sums.of[f] if side == 0 else sums.whole - sums.of[f]
            value = leaf_values(whole, rules) + rules.penalty
            for g, second in enumerate(self.second[f][side]):
                of = sums.cross(f, g) if side == 0 else sums.of[g][None] - sums.cross(f, g)
                value = np.minimum(value, _values_of_first(whole, of, second, rules).min(axis=1))
            total = total + value
        return total
