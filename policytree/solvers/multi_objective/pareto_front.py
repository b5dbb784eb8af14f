"""Trees judged by several sums at once: the Pareto front of all trees of depth three or less.

Made for searches under constraints (:mod:`policytree.solvers.constrained.solve`), and for objectives that are no sums
over rows but grow with several of them. A tree's vector holds its criteria: whole numbers, each a sum over rows and
leaves. The search is fast by a *bound* beside them, one more sum of which every tree of use is known to have at most so
much: cuts whose least bound is larger are skipped.

    criteria = criteria_of(data, sums)                     # sums (q, n, K): what row i costs under action k
    found = ParetoSearch(criteria, clock.flag).front(depth=2)
    found.values                                           # (trees, q); found.tree(i) has the splits and actions
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from policytree.problem.types import BinnedData
from policytree.solvers.core.columns import short_codes
from policytree.solvers.core.compilation import are_special
from policytree.solvers.core.merge import merge_equal_rows
from policytree.solvers.core.rows import Node, Splits, rows_of, two_splits
from policytree.solvers.core.shared_costs import are_uneven
from policytree.solvers.core.side_bounds import SideBounds, charged_later, row_values
from policytree.solvers.kernels.base.layout import FEASIBLE, INF, Rows, Rules
from policytree.solvers.kernels.enumeration.cuts import bound_cuts, list_two_levels
from policytree.solvers.kernels.enumeration.layout import THREE_LEVELS, TWO_LEVELS, Criteria, Points, Wanted
from policytree.solvers.kernels.enumeration.lists import SMALLEST, join, thin
from policytree.solvers.kernels.enumeration.stumps import least_bound, list_stumps

MOST_DEPTH = 3
ANY = FEASIBLE - 1  # a cap that caps nothing: what is larger is forbidden


def criteria_of(
    data: BinnedData,
    sums: np.ndarray,
    *,
    bound: np.ndarray | None = None,
    leaf: Sequence[int] | None = None,
    charges: np.ndarray | None = None,
    groups: np.ndarray | None = None,
    counts: np.ndarray | None = None,
    minima: Sequence[int] = (),
) -> Criteria:
    """Rows and what trees of them are judged by, equal rows merged.

    Parameters
    ----------
    data : BinnedData
    sums : ndarray of shape (q, n, K), int64
        Row i's share of every criterion under action k; only differences to action 0 matter, and the vectors of trees
        are relative to "action 0 for all". The absolute values of all sums stay below 2**56.
    bound : ndarray of shape (n, K), int64, optional
        The row's addition to the bound; without it there is none (zero).
    leaf : sequence of 1 + q int, optional
        Every leaf's addition to the bound and to the criteria; nothing by default. A criterion of zeros that takes one
        from every leaf is the number of leaves.
    charges : ndarray of shape (1 + q, J, n), int64, optional
        The row's addition to the bound and to the criteria for a split that it reaches, of each of J ascending prices.
    groups : ndarray of shape (n_columns,), int64, optional
        Which of the prices a split on a column has.
    counts : ndarray of shape (m, n), int64, optional
        Planes that must come to at least ``minima`` in every leaf.
    minima : sequence of m int
    """
    q, n, K = sums.shape
    relative = sums[:, :, 1:] - sums[:, :, :1]
    first = np.zeros((n, K - 1), np.int64) if bound is None else bound[:, 1:] - bound[:, :1]
    planes = [first.T, *(part.T for part in relative)]
    planes += [] if counts is None else [counts]
    planes += [] if charges is None else list(charges)
    stacked = np.ascontiguousarray(np.vstack(planes), dtype=np.int64)
    codes, stacked = merge_equal_rows(short_codes(data), stacked)
    return Criteria(
        np.require(codes, np.uint16, ["C", "W"]),
        np.require(stacked, np.int64, ["C", "W"]),
        np.array(data.n_bins, dtype=np.int64),
        K - 1,
        np.array(minima, dtype=np.int64),
        np.zeros(1 + q, np.int64) if leaf is None else np.array(leaf, dtype=np.int64),
        0 if charges is None else charges.shape[1],
        np.zeros(len(data.n_bins), np.int64) if groups is None else np.array(groups, dtype=np.int64),
        codes.shape[1],
    )


@dataclass(frozen=True)
class Found:
    """Trees and their criteria.

    Attributes
    ----------
    values : ndarray of shape (trees, q), int64
        Relative to "action 0 for all".
    bounds : ndarray of shape (trees,), int64
    records : ndarray of shape (trees, R), int32
        Splits and actions of every tree as kernels keep them; :func:`read_tree` reads one.
    """

    values: np.ndarray
    bounds: np.ndarray
    records: np.ndarray

    def __len__(self) -> int:
        return len(self.values)

    def tree(self, i: int) -> tuple[Splits, list[int]]:
        """Splits of a tree in preorder, as ``(column, cut)`` and ``(-1, 0)`` for a leaf, and its leaves' actions."""
        return read_tree(self.records[i])


def read_tree(record: np.ndarray) -> tuple[Splits, list[int]]:
    """Splits in preorder and the leaves' actions of a tree as kernels keep it."""
    splits: Splits = []
    actions: list[int] = []
    _read(record.tolist(), splits, actions)
    return splits, actions


def _read(record: list[int], splits: Splits, actions: list[int]) -> None:
    if len(record) == 1:
        splits.append((-1, 0))
        actions.append(record[0])
        return
    half = (len(record) - 2) // 2
    if record[0] < 0:
        _read(record[2 : 2 + half], splits, actions)
        return
    splits.append((record[0], record[1]))
    _read(record[2 : 2 + half], splits, actions)
    _read(record[2 + half :], splits, actions)


def _deeper(trees: np.ndarray) -> np.ndarray:
    """The same trees, kept as trees of one more level."""
    n, R = trees.shape
    if R == 1:
        return np.hstack([np.full((n, 2), -1, np.int32), trees, trees])
    half = (R - 2) // 2
    sides = [_deeper(trees[:, at : at + half]) for at in (2, 2 + half)]
    return np.hstack([trees[:, :2], *sides])


class ParetoSearch:
    """Search all trees of one set of rows.

    Parameters
    ----------
    criteria : Criteria
    flag : ndarray of shape (1,), int64
        Raised (nonzero) by whoever wants the search to stop: what was found so far is then incomplete.
    roots : sequence of int, optional
        Columns that the first split may be on; any by default.
    owners : ndarray of shape (n_columns,), int64, optional
        Their test groups, which a path pays for once, as :func:`policytree.solvers.core.shared_costs.shared_groups` has
        them; then the first of the prices is zero, in the bound and in every criterion. By default every split is
        charged.
    """

    def __init__(
        self,
        criteria: Criteria,
        flag: np.ndarray,
        roots: Sequence[int] | None = None,
        owners: np.ndarray | None = None,
    ):
        self.criteria, self.flag = criteria, flag
        self.owners = np.full(len(criteria.bins), -1) if owners is None else owners
        self.roots = list(range(len(criteria.bins))) if roots is None else list(roots)
        self.cuts = 0  # looked at, on the first level
        self._bound = bound_as_node(criteria, self.owners)  # the bound of all rows as an objective

    @property
    def stopped(self) -> bool:
        """Whether the search was told to stop."""
        return bool(self.flag[0])

    def front(self, depth: int, largest: int | None = None) -> Found:
        """All trees that no other is as good as in every criterion, one of every vector.

        Parameters
        ----------
        depth : int
            Largest number of splits on a path, 0 to 3.
        largest : int, optional
            The largest bound that is of use. A tree with a larger one may be found all the same; none with a smaller
            one is lacking, unless another that is found is as good, or the search was stopped.
        """
        caps = np.full(len(self.criteria.leaf), ANY, np.int64)
        caps[0] = ANY if largest is None else min(largest, ANY)
        found = list(self.parts(depth, caps))
        points = Points(*(np.concatenate(each) for each in zip(*found, strict=True)))
        points, count = thin(points, len(points.values), self.flag)
        return Found(points.values[:count, 1:], points.values[:count, 0], points.trees[:count])

    def parts(self, depth: int, caps: np.ndarray, shift: int = -1) -> Iterator[Points]:
        """Trees in parts, as the search comes to them; each part is thinned.

        Parameters
        ----------
        depth : int
        caps : ndarray of shape (1 + q,), int64
            The largest bound and criteria that are of use. It may be lowered between two parts.
        shift : int
            If the tree with the least first criterion is all that is wanted: one of the bound counts ``2**shift`` of
            it. The search then lowers the caps itself. Trees within the criteria's caps must be within the bound's.
        """
        wanted = Wanted(caps, shift)
        if not 0 <= depth <= MOST_DEPTH:
            raise ValueError(f"depth must be from 0 to {MOST_DEPTH}; got {depth}.")
        c = self.criteria
        everything = np.arange(c.n)
        yield self._stumps(depth, int(caps[0]))
        if depth < 2 or not self.roots or c.n_losses == 0:
            return
        if depth == 2:
            for f, whole, known in self._first_splits(c, self.roots):
                if self.stopped:
                    return
                yield self._thinned(*self._two_levels(c, f, whole, known, wanted, *room_for(len(caps), TWO_LEVELS)))
        else:
            wholes: dict[bytes, int] = {}
            for f in self.roots:
                below = self._below(c, f)
                prices = below.groups.tobytes()
                if prices not in wholes:
                    wholes[prices] = self._least_of_two(below, everything)
                yield from self._three_levels(f, below, wholes[prices], wanted)

    def _below(self, c: Criteria, f: int) -> Criteria:
        """Rows and criteria as they are below a split on a column: its test group is paid for."""
        owner = self.owners[f]
        return c if owner < 0 else c._replace(groups=np.where(self.owners == owner, 0, c.groups))

    def _stumps(self, depth: int, limit: int) -> Points:
        """Leaves, and trees of one split on a column that it may be on, kept as trees of a depth."""
        c = self.criteria
        on = np.array(self.roots if depth > 0 else [], dtype=np.int64)
        part = c._replace(codes=c.codes[on], bins=c.bins[on], groups=c.groups[on])
        points, count = list_stumps(part, np.arange(c.n), 0, c.n, limit, self.flag)
        trees = points.trees[:count]
        splits = trees[:, 0] >= 0
        trees[splits, 0] = on[trees[splits, 0]]
        for _ in range(depth - 1):
            trees = _deeper(trees)
        return Points(points.values[:count], trees)

    def _thinned(self, points: Points, count: int) -> Points:
        points, count = thin(points, count, self.flag)
        return Points(points.values[:count], points.trees[:count])

    def _first_splits(self, c: Criteria, columns: Sequence[int]) -> Iterator[tuple[int, int, np.ndarray]]:
        """Columns, the most promising first, the least bound of one split at most, and bounds of the first cuts."""
        node = bound_as_node(c, self.owners)
        wholes: dict[bytes, int] = {}
        values = bound_cuts(node.rows, node.rules, self.flag, node.special)
        known = {}
        for f in columns:
            at = values[node.rows.offset[f] : node.rows.offset[f + 1]]
            known[f] = np.where(at <= -INF, at, at - node.paid(f))
        for f in sorted(columns, key=lambda f: int(known[f][:-1].min(initial=INF))):
            below = self._below(c, f)
            prices = below.groups.tobytes()
            if prices not in wholes:
                wholes[prices] = int(least_bound(below, np.arange(c.n), 0, c.n))
            yield f, wholes[prices], known[f]

    def _two_levels(self, c: Criteria, f: int, whole: int, known, wanted: Wanted, points: Points, count: int):
        below, paid = self._below(c, f), price_of_split(c, f)
        points, count, cuts = list_two_levels(below, f, whole, known, paid, wanted, points, count, self.flag)
        self.cuts += int(cuts)
        return points, count

    def _three_levels(self, f: int, c: Criteria, whole: int, wanted: Wanted) -> Iterator[Points]:
        """Root cuts of one feature: those whose sides' best bounds are not too much, each side's trees of depth two.

        ``c`` is what holds below the root, ``whole`` the least bound of a tree of depth two of all rows there.
        """
        paid, node = price_of_split(self.criteria, f), self._node(c)
        bounds = SideBounds(node, f, row_values(node, splits=2), whole, charged_later(node))

        def room() -> int:
            return int(min(wanted.caps[0] - paid[0], ANY))

        for t in bounds.solve_cuts(room, lambda rows: self._least_of_two(c, rows)):
            self.cuts += 1
            if self.stopped:
                return
            if bounds.at(t) <= room():
                yield self._joined(c, bounds, paid, wanted, (f, t))

    def _joined(self, c: Criteria, bounds: SideBounds, paid: np.ndarray, wanted: Wanted, cut: tuple[int, int]):
        """All trees under one root cut that are of use."""
        f, t = cut
        room, goes_left, points = wanted.caps[0] - paid[0], c.codes[f] <= t, []
        for rows, other in ((goes_left, bounds.right[t]), (~goes_left, bounds.left[t])):
            points += self._side(c, np.flatnonzero(rows), min(room - other, ANY))
        to = room_for(len(paid), THREE_LEVELS)
        return self._thinned(*join(*points, paid, wanted, np.array(cut, dtype=np.int64), *to, self.flag))

    def _side(self, c: Criteria, rows: np.ndarray, limit: int):
        """Trees of depth two of some rows with at most that bound, and their number."""
        part = c._replace(
            codes=np.ascontiguousarray(c.codes[:, rows]), planes=np.ascontiguousarray(c.planes[:, rows]), n=len(rows)
        )
        caps = np.full(len(c.leaf), ANY, np.int64)
        caps[0] = limit
        order = np.arange(part.n)
        stumps, count = list_stumps(part, order, 0, part.n, limit, self.flag)
        points = Points(stumps.values, _deeper(stumps.trees))
        for f, whole, known in self._first_splits(part, range(len(c.bins))):
            points, count = self._two_levels(part, f, whole, known, Wanted(caps, -1), points, count)
        return thin(points, count, self.flag)

    def _least_of_two(self, c: Criteria, rows: np.ndarray) -> int:
        """The least bound of a tree of depth two at most; meaningless if stopped."""
        return int(two_splits(rows_of(self._node(c), rows), 4, self.flag)[0])

    def _node(self, c: Criteria) -> Node:
        """The bound of all rows as an ordinary objective, at the prices of some criteria."""
        return replace(self._bound, rows=self._bound.rows._replace(groups=c.groups))


def bound_as_node(c: Criteria, owners: np.ndarray) -> Node:
    """The bound as an ordinary objective, for the kernels of depth two; ``owners``: test groups of the columns."""
    A, first = c.n_losses, len(c.leaf) * c.n_losses
    charges = c.planes[first + len(c.minima) :][: c.prices]
    keys = np.zeros((2, c.n), np.int64)
    planes = np.ascontiguousarray(np.vstack([c.planes[:A], c.planes[first : first + len(c.minima)], charges, keys]))
    offset = np.concatenate([[0], np.cumsum(c.bins)]).astype(np.int64)
    rows = Rows(c.codes, planes, c.bins, offset, c.groups, owners, c.n)
    uneven = int(are_uneven(owners, c.groups))
    signed = A == 1 and not len(c.minima)
    special = 1 if are_special(c.bins, signed) else None
    return Node(rows, Rules(A, c.minima, c.prices, int(c.leaf[0]), -1, uneven, 0), special)


def price_of_split(c: Criteria, f: int) -> np.ndarray:
    """Return the amounts that a split of all rows on a column adds to the bound and to the criteria."""
    if c.prices == 0:
        return np.zeros(len(c.leaf), np.int64)
    first = len(c.leaf) * c.n_losses + len(c.minima)
    return c.planes[first:].sum(axis=1).reshape(len(c.leaf), c.prices)[:, c.groups[f]].copy()


def room_for(V: int, R: int) -> tuple[Points, int]:
    """An empty list, and the number of trees in it."""
    return Points(np.empty((SMALLEST, V), np.int64), np.empty((SMALLEST, R), np.int32)), 0
