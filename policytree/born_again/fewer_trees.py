"""Fewer trees, the same decision at every point: functionally identical pruning of forests that vote.

Emine, Forel, Malek and Vidal ("Free lunch in the forest", AAAI 2025). Every tree gets a weight; trees of weight 0 are
left out. Wanted are weights with the fewest trees such that the weighted votes decide as the plain votes do at every
point of the space, whether or not there is data.

    master       the fewest trees that decide alike at the points collected so far: an integer program
    separation   a point anywhere at which these weights decide otherwise: looked for among random cells, then in all
                 cells of the grid of thresholds, or, where these are too many, by an integer program for every pair of
                 classes; what is found joins the master

It ends when separation finds nothing, which proves both that the pruned forest is identical and, since a master knows
only some of the points, that no weights of its kind do with fewer trees. Weights are whole numbers, so that leads are
counted without rounding, and a tie goes to the first class before and after.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from policytree.born_again.ensembles import LEAF, EnsembleTree, TreeEnsemble
from policytree.born_again.faithful import leaves_below
from policytree.born_again.readers import read_ensemble
from policytree.common.validation import check_count, is_real
from policytree.data.views import Shown
from policytree.exceptions import InputError, quoted
from policytree.problem.types import SearchLimits, Status
from policytree.solvers.core.limits import Stopwatch

MOST_CELLS = 1 << 20  # of the grid, whose votes are all counted; beyond, integer programs look for a point
CHUNK = 1 << 16
DRAWN = 4_096  # random cells that separation tries first
ADDED = 40  # conditions that join a master at a time, the most violated ones
HALF = 0.5  # what a solver's whole numbers are told apart by
ROUNDED = 1e-6  # of a bound
INFEASIBLE = 2  # scipy's status


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PrunedEnsemble(Shown):
    """A forest with fewer trees that decides as the whole one does, everywhere.

    Attributes
    ----------
    ensemble : TreeEnsemble
        The trees that are left, every vote times its tree's weight.
    weights : ndarray of shape (T,), int64
        Of all trees of the forest; 0: left out.
    trees : int
        How many are left.
    trees_bound : int
        No whole weights up to the largest allowed do with fewer, by HiGHS, in floating point, whatever the method.
    status : Status
        OPTIMAL: no whole weights up to the largest allowed do with fewer. TIME_LIMIT: time was up, or the solver's
        rounding left open whether fewer do; the pruned forest is identical all the same.
    method : {"every cell", "integer programs"}
        How it was proved that no point is decided otherwise. Cells are counted in whole numbers; integer programs are
        solved by HiGHS in floating point, with whole coefficients and a tolerance of a millionth of a vote.
    conditions : int
        Leads that the last master asked for.
    rounds : int
        Masters solved.
    seconds : float
        Wall time.

    Examples
    --------
    >>> from policytree.born_again import prune_ensemble
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> pruned = prune_ensemble(RandomForestClassifier(5, max_depth=1, random_state=0).fit(X, y))
    >>> pruned.trees, int(pruned.weights.sum()), pruned.method
    (1, 1, 'every cell')
    """

    ensemble: TreeEnsemble
    weights: np.ndarray
    trees: int
    trees_bound: int
    status: Status
    method: str
    conditions: int
    rounds: int
    seconds: float

    def __str__(self) -> str:
        least = (
            "no fewer do with such weights"
            if self.status is Status.OPTIMAL
            else f"at least {self.trees_bound} are needed"
        )
        return (
            f"{self.trees} of {len(self.weights)} trees decide as all of them do, everywhere ({least}; proved by "
            f"{self.method}), {self.seconds:.3g} s"
        )


def prune_ensemble(ensemble: Any, *, largest_weight: int = 10, time_limit: float | None = None) -> PrunedEnsemble:
    """Leave out trees of a forest without changing its decision anywhere.

    Parameters
    ----------
    ensemble : fitted classifier, TreeEnsemble or mapping
        As :class:`policytree.BornAgainTree` takes it, with ``voting="hard"``: every tree has one vote, ties go to the
        first class. A forest's own ``predict`` may add up shares instead, and then decides otherwise in some places.
    largest_weight : int, default 10
        Trees that are left have whole weights from 1 to this.
    time_limit : float, optional
        Seconds. The ensemble returned is identical whenever it stops; a proof of the fewest trees may be missing.

    Returns
    -------
    PrunedEnsemble

    Raises
    ------
    InputError
        If the ensemble cannot be read, its trees do not vote, or an argument is out of range.

    Examples
    --------
    >>> from policytree import BornAgainTree
    >>> from policytree.born_again import prune_ensemble
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(10, max_depth=1, random_state=0).fit(X, y)
    >>> pruned = prune_ensemble(forest)
    >>> len(pruned.weights), pruned.trees, pruned.status.value
    (10, 6, 'optimal')
    >>> whole = BornAgainTree(forest, "leaves", voting="hard").fit()
    >>> part = BornAgainTree(pruned.ensemble, "leaves").fit()
    >>> whole.get_n_leaves() == part.get_n_leaves(), bool((whole.predict(X) == part.predict(X)).all())
    (True, True)
    """
    check_count(largest_weight, "largest_weight", 1)
    if time_limit is not None and not (is_real(time_limit) and 0 < time_limit < math.inf):
        raise InputError(f"time_limit must be a number of seconds above 0, or None; got {quoted(time_limit)}.")
    forest = read_ensemble(ensemble, "hard")
    return _Pruning(forest, largest_weight, Stopwatch(SearchLimits(time_limit))).run()


def weighted(forest: TreeEnsemble, weights: np.ndarray) -> TreeEnsemble:
    """Trees of positive weight, every vote as often as its tree's weight says."""
    trees = tuple(
        EnsembleTree(t.feature, t.threshold, t.left, t.right, t.value * float(w))
        for t, w in zip(forest.trees, weights, strict=True)
        if w > 0
    )
    zeros = np.zeros(len(forest.classes))
    return TreeEnsemble(trees, forest.classes, forest.feature_names, forest.named, zeros, (len(trees),))


@dataclass
class _Votes:
    """Votes of all trees at some points, all different, and the class that they decide for.

    Attributes
    ----------
    classes : ndarray of shape (m, T), unsigned
        The class that every tree votes for.
    winner : ndarray of shape (m,), int64
    """

    classes: np.ndarray
    winner: np.ndarray = field(init=False)
    K: int

    def __post_init__(self) -> None:
        self.classes = np.unique(self.classes, axis=0)
        counts = [np.count_nonzero(self.classes == k, axis=1) for k in range(self.K)]
        self.winner = np.argmax(np.stack(counts, axis=1), axis=1)

    def violated(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Conditions that weights violate, the most violated first: leads of trees (m, T), and what they must reach."""
        rows, needs, leads = [], [], []
        for k in range(self.K):
            others = np.flatnonzero(self.winner != k)
            lead = lead_of(self.classes[others], self.winner[others], k)
            need = (k < self.winner[others]).astype(np.int64)  # the first of several classes wins
            reached = lead.astype(np.int64) @ weights
            bad = reached < need
            rows.append(lead[bad])
            needs.append(need[bad])
            leads.append((reached - need)[bad])
        order = np.argsort(np.concatenate(leads), kind="stable")
        return np.concatenate(rows)[order], np.concatenate(needs)[order]


def lead_of(classes: np.ndarray, winner: np.ndarray, k: int) -> np.ndarray:
    """Return each tree's contribution to the winner's lead over class k: 1, 0 or -1; shape (m, T), int8."""
    return (classes == winner[:, None]).astype(np.int8) - (classes == k).astype(np.int8)


class _Pruning:
    """Masters and separation in turn."""

    def __init__(self, forest: TreeEnsemble, largest: int, clock: Stopwatch):
        self.forest, self.largest, self.clock = forest, largest, clock
        self.T, self.K = len(forest.trees), len(forest.classes)
        # The last point of every cell of a feature: its thresholds, and a point beyond the last.
        self.edges = [np.append(t, np.nextafter(t[-1], np.inf)) if len(t) else np.zeros(1) for t in forest.thresholds()]
        self.shape = tuple(len(each) for each in self.edges)
        self.cells = math.prod(self.shape)
        self.rng = np.random.default_rng(0)
        self.leads = np.zeros((0, self.T), dtype=np.int8)
        self.needs = np.zeros(0, dtype=np.int64)
        self.known: set[bytes] = set()  # conditions that are in them
        self.bound, self.rounds = 1, 0
        self.by_cells = self.cells <= MOST_CELLS
        self.every = self._every_cell() if self.by_cells else None  # None, too, if there was no time
        self.space = None if self.by_cells else _Space(forest)

    def run(self) -> PrunedEnsemble:
        best = np.ones(self.T, dtype=np.int64)
        if (lighter := self._lighter()) is not None and np.count_nonzero(lighter) < self.T:
            best = lighter
        status = Status.TIME_LIMIT
        while self.clock.left() != 0.0 and status is not Status.OPTIMAL:
            trees = int(np.count_nonzero(best))
            weights, least = self._fewest(trees - 1) if trees > self.bound else (None, trees)
            self.bound = max(self.bound, min(least, trees))
            if self.bound == trees:
                status = Status.OPTIMAL
            elif (
                weights is None  # no time is left
                or np.count_nonzero(weights) >= trees  # the solver's rounding let them pass
                or not (found := self._identical(weights)).known
            ):
                break
            elif found.holds:
                best = weights
        return PrunedEnsemble(
            weighted(self.forest, best), best, int(np.count_nonzero(best)), self.bound, status,
            "every cell" if self.by_cells else "integer programs", len(self.leads), self.rounds,
            self.clock.seconds(),
        )  # fmt: skip

    def _lighter(self) -> np.ndarray | None:
        """Identical weights of the least sum, which leaves trees out and is soon found; None if not found in time."""
        while self.clock.left() != 0.0:
            weights, _ = self._solve(np.ones(self.T), [])
            if weights is None:
                return None
            found = self._identical(weights)
            if found.holds:
                return weights
            if not found.known:
                return None
        return None

    def _identical(self, weights: np.ndarray) -> _Found:
        """Whether weights decide alike everywhere; conditions that they violate join the others."""
        found = self._separate(weights)
        if found is None:
            return _Found(False, False)
        before, holds = len(self.leads), not len(found[0])
        self._add(*found)
        new = len(self.leads) > before  # else weights violate what they were to meet: rounding, and nothing is known
        return _Found(holds or new, holds)

    def _votes(self, cells: list[np.ndarray]) -> _Votes:
        """Votes at cells, given as positions of every feature."""
        X = np.column_stack([edges[at] for edges, at in zip(self.edges, cells, strict=True)])
        votes = [tree.value[tree.apply(X)].argmax(axis=1) for tree in self.forest.trees]
        return _Votes(np.stack(votes, axis=1).astype(np.min_scalar_type(self.K)), K=self.K)

    def _every_cell(self) -> _Votes | None:
        """Votes in all cells; None once the time is up."""
        parts = []
        for start in range(0, self.cells, CHUNK):
            if self.clock.left() == 0.0:
                return None
            cells = np.unravel_index(np.arange(start, min(self.cells, start + CHUNK)), self.shape)
            parts.append(self._votes(list(cells)).classes)
        return _Votes(np.concatenate(parts), K=self.K)

    def _separate(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Conditions that some point of the space violates, none if there is no such point; None if unknown."""
        if self.every is not None:
            return self.every.violated(weights)
        drawn = self._votes([self.rng.integers(0, n, DRAWN) for n in self.shape])
        found = drawn.violated(weights)
        if len(found[0]):
            return found
        assert self.space is not None
        for winner in range(self.K):
            for k in range(self.K):
                if k == winner:
                    continue
                cell = self.space.point(weights, winner, k, self.clock.left())
                if cell is None:
                    return None
                if len(cell):
                    found = self._votes([np.array([at]) for at in cell]).violated(weights)
                    return found if len(found[0]) else None  # the point was one by the solver's tolerance only
        return found

    def _add(self, leads: np.ndarray, needs: np.ndarray) -> None:
        """Let new conditions join, most violated first."""
        added = []
        for k, key in enumerate(map(bytes, np.column_stack([leads, needs]).astype(np.int8))):
            if key not in self.known:
                self.known.add(key)
                added.append(k)
                if len(added) == ADDED:
                    break
        self.leads = np.concatenate([self.leads, leads[added]])
        self.needs = np.concatenate([self.needs, needs[added]])

    def _fewest(self, most_trees: int) -> tuple[np.ndarray | None, int]:
        """Weights of so many trees at most that meet the conditions so far, and a lower bound of their number."""
        T, M = self.T, self.largest
        kept = np.append(np.zeros(T), np.ones(T))  # a variable for every tree that is left, after those of weights
        rows = [
            LinearConstraint(np.hstack([np.eye(T), -M * np.eye(T)]), -np.inf, 0),  # without which its weight is 0
            LinearConstraint(kept, 1, most_trees),
        ]
        weights, bound = self._solve(kept, rows)
        return weights, most_trees + 1 if bound == np.inf else math.ceil(max(1.0, bound) - ROUNDED)

    def _solve(self, prices: np.ndarray, rows: list[LinearConstraint]) -> tuple[np.ndarray | None, float]:
        """Whole weights of least price that meet the conditions so far, and ``rows``; and a lower bound.

        The bound is infinite if there are none. ``prices`` are of the weights, and of 0/1 variables that may follow.
        """
        self.rounds += 1
        more = len(prices) - self.T
        conditions = np.hstack([self.leads, np.zeros((len(self.leads), more))])
        most = np.append(np.full(self.T, self.largest), np.ones(more))
        found = milp(
            prices, integrality=1, bounds=Bounds(0, most), options=limited(self.clock.left()),
            constraints=[*rows, LinearConstraint(conditions, self.needs, np.inf), LinearConstraint(
                np.append(np.ones(self.T), np.zeros(more)), 1, np.inf)],
        )  # fmt: skip
        if found.status == INFEASIBLE:
            return None, np.inf
        bound = -np.inf if found.mip_dual_bound is None else float(found.mip_dual_bound)
        return (None if found.x is None else np.rint(found.x[: self.T]).astype(np.int64)), bound


@dataclass(frozen=True, slots=True)
class _Found:
    """Result of a separation: whether it ended, and whether no point is decided otherwise."""

    known: bool
    holds: bool


class _Space:
    """All points of the space as an integer program: which thresholds a point is above, and so the leaves it reaches.

    A leaf's variable is 1 where the point reaches it: it may be real, since the sides of all thresholds leave one leaf
    of every tree. Threshold variables are 1 for a point that is not above the threshold.
    """

    def __init__(self, forest: TreeEnsemble):
        self.K, thresholds = len(forest.classes), forest.thresholds()
        self.sizes = [len(each) for each in thresholds]
        starts = np.concatenate([[0], np.cumsum(self.sizes)]).astype(int)
        counts = [len(tree.leaves) for tree in forest.trees]
        first = starts[-1] + np.concatenate([[0], np.cumsum(counts)]).astype(int)
        self.start, self.n = starts, int(first[-1])
        self.real_from = int(starts[-1])
        rows: list[tuple[list[int], list[float], float, float]] = []  # columns, factors, least, most
        for j, size in enumerate(self.sizes):
            rows += [([starts[j] + i, starts[j] + i + 1], [1.0, -1.0], -np.inf, 0.0) for i in range(size - 1)]
        self.votes = np.zeros((len(forest.trees), self.n), dtype=np.int64)  # class + 1 of a tree's own leaves
        for t, tree in enumerate(forest.trees):
            place = dict(zip(tree.leaves.tolist(), range(first[t], first[t + 1]), strict=True))
            self.votes[t, list(place.values())] = tree.value[tree.leaves].argmax(axis=1) + 1
            rows.append((list(place.values()), [1.0] * counts[t], 1.0, 1.0))
            for node in np.flatnonzero(tree.feature != LEAF).tolist():
                j = int(tree.feature[node])
                at = int(starts[j] + np.searchsorted(thresholds[j], tree.threshold[node]))
                left, right = (
                    [place[leaf] for leaf in leaves_below(tree, int(side[node]))] for side in (tree.left, tree.right)
                )
                rows.append(([*left, at], [1.0] * len(left) + [-1.0], -np.inf, 0.0))
                rows.append(([*right, at], [1.0] * (len(right) + 1), -np.inf, 1.0))
        columns, factors, least, most = zip(*rows, strict=True)
        ends = np.cumsum([0, *map(len, columns)])
        table = csr_array((np.concatenate(factors), np.concatenate(columns), ends), shape=(len(rows), self.n))
        self.structure = LinearConstraint(table, least, most)

    def point(self, weights: np.ndarray, winner: int, k: int, seconds: float | None) -> np.ndarray | None:
        """A cell that all trees give to ``winner``, and the weighted ones not, for k has as much or more.

        Returns
        -------
        ndarray
            Its position in every feature; empty if there is none. None if the time ended before that was known.
        """
        plain = np.ones(len(weights), dtype=np.int64)
        rows = [self.structure]
        for other in range(self.K):
            if other != winner:
                rows.append(LinearConstraint(self._lead(plain, winner, other), float(other < winner), np.inf))
        lead = self._lead(weights, winner, k)
        rows.append(LinearConstraint(lead, -np.inf, float(k < winner) - 1.0))
        integral = np.arange(self.n) < self.real_from
        found = milp(
            lead,
            integrality=integral,
            bounds=Bounds(0, 1),
            constraints=rows,
            options=limited(seconds) | {"mip_rel_gap": 1},
        )
        if found.x is None:
            return np.zeros(0, dtype=np.int64) if found.status == INFEASIBLE else None
        above = found.x[: self.real_from] < HALF
        return np.array([np.count_nonzero(above[a:b]) for a, b in pairwise(self.start)])

    def _lead(self, weights: np.ndarray, winner: int, k: int) -> np.ndarray:
        """Weighted votes for one class less those for another, a number for every leaf; shape (variables,)."""
        signs = (self.votes == winner + 1).astype(np.int64) - (self.votes == k + 1)
        return (weights @ signs).astype(float)


def limited(seconds: float | None) -> dict[str, float]:
    """Options of a solver that has so many seconds left."""
    return {} if seconds is None else {"time_limit": max(seconds, 0.01)}
