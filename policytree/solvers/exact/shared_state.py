"""State of one exact search that its engines share: the rows, the limits and the incumbent."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Iterable

import numpy as np

from policytree.problem.types import Problem, SearchLimits, Solution
from policytree.solvers.core.fixed_point import FixedPoint
from policytree.solvers.core.limits import Clock
from policytree.solvers.core.rows import Node, expand
from policytree.solvers.core.search_state import Incumbent, SearchState
from policytree.solvers.exact.bounds.root_bound import RootBound
from policytree.solvers.kernels.base.layout import COUNTERS, CUTS, INF, NODES, UNLIMITED

#: Counters of engines that are no bound, in ``Solution.counters`` beside those of kernels.
RAISED_BY_SUBSETS, CLOSED_BY_PAIRS, GENERATED_ROWS, STARTED = (
    "raised_by_subsets", "closed_by_conflict_pairs", "generated_rows", "better_trees_of_incumbent_search",
)  # fmt: skip


class SharedState(SearchState):
    """State that the engines of one search share.

    Attributes
    ----------
    node : Node
        All merged rows.
    floor : int
        The sum of the rows' least losses: no tree loses less.
    depth, leaves : int
        The largest depth and number of leaves of a tree; ``leaves`` is UNLIMITED if there is no limit.
    roots : list of int
        Columns that the first split may use.
    work : ndarray, int64
        Counters of all engines, in the order of ``kernels.base.layout.COUNTERS``.
    engines : set of str
        Names of the engines that may work, in ``engine_table.py``.
    used : Counter of str
        Counts of the work of engines beside the depth-first search, by the names of their ``counters`` there.
    lock : RLock
        Held by a partition while it counts, changes what is shared, and reports.
    """

    def __init__(
        self, problem: Problem, node: Node, leaf: int, floor: int, limits: SearchLimits, clock: Clock,
        fixed: FixedPoint, engines: Collection[str] = (), counters: Iterable[str] = (),
    ):  # fmt: skip
        incumbent = Incumbent(leaf + node.penalty, [(-1, 0)], floor + 2 * node.penalty)
        super().__init__(problem, fixed, clock, limits, incumbent)
        self.node, self.floor, self.gates = node, floor, limits.gates
        self.depth = UNLIMITED if problem.max_depth is None else min(problem.max_depth, node.n_rows - 1)
        self.leaves = UNLIMITED if problem.max_leaf_nodes is None else problem.max_leaf_nodes
        self.roots = np.flatnonzero(problem.root_columns).tolist()
        self.work = np.zeros(len(COUNTERS), dtype=np.int64)
        self.engines, self.used = engines, Counter(dict.fromkeys(counters, 0))
        self._most_leaves = min([node.n_rows, self.leaves, *(node.counts.sum(axis=1) // node.rules.minima)])
        self.lock = threading.RLock()  # of what partitions share; callbacks never overlap
        self._shown = INF  # the best value of all partitions; the incumbent itself moves only between rounds

    @property
    def any_root(self) -> bool:
        """Whether the first split may use every column."""
        return len(self.roots) == len(self.node.bins)

    @property
    def restricted_roots(self) -> list[int] | None:
        """The columns that the first split may use, if not every one."""
        return None if self.any_root else self.roots

    def useful_depth(self) -> int:
        """The largest depth at which a tree can still be better.

        A tree of h leaves costs at least ``floor + h * penalty`` and is at most h - 1 deep.
        """
        penalty, value = self.node.penalty, self.incumbent.value
        if value <= self.floor + 2 * penalty or not self.roots:
            return 0
        most = self._most_leaves - 1
        if penalty > 0:
            most = min(most, max(-(-(value - self.floor) // penalty) - 2, 0))
        return min(self.depth, most)

    def raise_bound(self, bound: int, counter: str) -> None:
        """Take a bound if it is higher, and count under that name that it was."""
        self.used[counter] += self.incumbent.raise_bound(bound)

    def improve(self, bound: RootBound, depth: int, seconds: float) -> None:
        """Give a bound its turn beside a search of so many seconds; down to ``depth`` the incumbent is proved."""
        if bound.pays(seconds):
            tree = expand(self.node, self.incumbent.tree)
            self.raise_bound(bound.work(self.incumbent.value, tree, depth, seconds), bound.counter)

    @property
    def counters(self) -> dict[str, int | float]:
        """Return the counters of the search, for the solution."""
        return {"merged_rows": self.node.n_rows, **dict(zip(COUNTERS, map(int, self.work), strict=True)), **self.used}

    def count(self, counters: np.ndarray, value: int) -> None:
        """Add up the work of a partition, and note the best value that it knows, for reports."""
        self.work += counters
        self._shown = min(self._shown, value)

    def report(self, closed: float = 0.0) -> None:
        """Call the user's callback; ``closed`` is the share of the root features that are solved."""
        work = int(self.work[NODES] + self.work[CUTS])
        self.show(min(self._shown, self.incumbent.value), closed, work)

    def result(self) -> Solution:
        """The solution that the search has come to."""
        return self.solution(expand(self.node, self.incumbent.tree), self.counters)
