"""Exact trees with shared test costs: a column, or a group of columns, is paid for once on a path.

What was paid for is part of every subproblem: the best tree for some rows depends on the columns that are free there.
So a subproblem is (rows, depth left, groups paid for). Nodes with two levels left are solved outright, by sums over
pairs of columns (``solvers/kernels/test_costs/shared_cost_pairs.py``); above that, cuts of every column are tried by
bisection, under bounds:

- Losses are counted from every row's best action. Restrict a tree for a larger set of rows to a smaller one, dropping
  splits that leave one side empty, and no loss or leaf is added. Nor is a charge, where all columns of a group have one
  price. Where they differ, a split that is dropped may have been the cheap one that paid for its group, and a dearer
  one further down now pays. So a side's value, less that difference (:func:`charge_spreads`), bounds the same side of
  all cuts that give it more rows. (Minimum counts break this argument.)
- Fewer rows save no more than what the others cost at their dearest: give a tree for the smaller set to the larger one,
  and leaves only gain rows. So a side's value, less that, bounds the same side of all cuts that give it fewer rows.
- Any tree costs at least a leaf; any split costs at least two leaves and its charge.

It is exact: integers, as in the direct solver; the bound meets the tree, or the status says what ended the search. It
costs more than the search in which every split is charged: the number of subproblems grows with the sets of groups that
paths have paid for, two levels take O(p^2 (n + B^2 K)) for rows n, columns p and codes B, and depth 3 tries up to pB
first cuts, depth 4 up to (pB)^2 pairs.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from policytree.exceptions import InputError
from policytree.problem.types import Problem, SearchLimits, Solution, Status
from policytree.solvers.core.compilation import SHARED_COSTS, load_kernels
from policytree.solvers.core.fixed_point import FixedPoint, to_fixed_point
from policytree.solvers.core.limits import Clock
from policytree.solvers.core.rows import Node, Splits, new_control, occurring, prepare, refuse_memory, rows_of
from policytree.solvers.core.scoring import leaf_only
from policytree.solvers.core.search_state import Incumbent, SearchState
from policytree.solvers.core.side_bounds import SideBounds, row_values
from policytree.solvers.kernels.base.layout import COUNTERS, FEASIBLE, INF, NODES, TWO
from policytree.solvers.kernels.test_costs.shared_cost_pairs import solve_two

MOST_DEPTH = 4
LEAF: Splits = [(-1, 0)]


def shares_test_costs(problem: Problem, costs: np.ndarray | None = None) -> bool:
    """Whether being paid for once makes a difference: some path could ask a priced group a second time.

    ``costs`` (n_features,) stand in for those of the problem.
    """
    groups, costs = problem.feature_groups, problem.feature_costs if costs is None else costs
    if groups is None or costs is None or (problem.max_depth is not None and problem.max_depth < 2):
        return False
    cuts = np.zeros(groups.max(initial=0) + 1)
    priced = np.zeros(len(cuts), dtype=bool)
    for column, bins in zip(problem.data.columns, problem.data.n_bins, strict=True):
        cuts[groups[column.feature]] += bins - 1
        priced[groups[column.feature]] |= costs[column.feature] > 0
    return bool((priced & (cuts > 1)).any())


def refuse_shared_costs(problem: Problem, what: str) -> None:
    """One sentence where trees are asked for in a way that charges every split."""
    if shares_test_costs(problem):
        raise InputError(f"{what} charge every split; set repeated_features='charged'.")


def check_size(problem: Problem) -> None:
    """One sentence where no search that pays once is made for the trees that are allowed."""
    if problem.max_depth is None or problem.max_depth > MOST_DEPTH:
        raise InputError(
            f"repeated_features='free' needs a max_depth of at most {MOST_DEPTH}, got {problem.max_depth}: what was "
            "paid for is part of every subproblem. Set max_depth, or repeated_features='charged'."
        )
    if problem.max_leaf_nodes is not None and problem.max_leaf_nodes < 2**problem.max_depth:
        raise InputError(
            "repeated_features='free' takes no max_leaf_nodes; leave it at None, or set repeated_features='charged'."
        )


def charge_spreads(prices: np.ndarray, price_of: np.ndarray, owner: np.ndarray) -> dict[int, np.ndarray]:
    """How much more the dearest column of a group costs a row than the cheapest one.

    Parameters
    ----------
    prices : ndarray of shape (J, n), int64
        What each row is charged for a split, by the price.
    price_of : ndarray of shape (n_columns,), int64
        The price of every column.
    owner : ndarray of shape (n_columns,), int64
        Its group.

    Returns
    -------
    dict of group to ndarray of shape (n,), int64
        Only of groups whose columns differ in price.
    """
    if not len(prices):
        return {}
    used = {int(g): np.unique(price_of[owner == g]) for g in np.unique(owner)}
    return {g: np.ptp(prices[of_group], axis=0) for g, of_group in used.items() if len(of_group) > 1}


def charged_later(spreads: dict[int, np.ndarray], paid: Collection[int], n: int) -> np.ndarray:
    """What each of n rows pays more, at most, if splits of a tree of at most three levels are dropped.

    That concerns a group with two splits on the row's path, a cheap one that is dropped above a dear one that stays:
    at most one group in three levels, and none of those that are paid for already.
    """
    unpaid = [spread for group, spread in spreads.items() if group not in paid]
    return np.max(unpaid, axis=0) if unpaid else np.zeros(n, np.int64)


def solve_shared_costs(problem: Problem, limits: SearchLimits | None = None) -> Solution:
    """Find the best tree, with a proof, where groups of features are charged once on a path.

    Parameters
    ----------
    problem : Problem
        With ``feature_groups`` and ``feature_costs``.
    limits : SearchLimits, optional
        Threads are not used.

    Raises
    ------
    InputError
        If there is no limit of depth, one above 4, or one of leaves.
    """
    limits = limits or SearchLimits()
    check_size(problem)
    compile_seconds = load_kernels([(SHARED_COSTS, "")])
    refuse_memory(problem, limits)
    clock = Clock(limits.time_limit, new_control(), limits.memory_limit)
    costs = problem.feature_costs, problem.weights
    fixed = to_fixed_point(problem.losses, problem.leaf_penalty, problem.most_leaves, *costs)
    node = prepare(problem, fixed, merge=True, special=False)
    leaf, _ = node.leaf()
    if leaf >= FEASIBLE:
        solution = leaf_only(problem, fixed, Status.INFEASIBLE, clock.seconds())
    else:
        search = _Search(problem, node, clock, limits, fixed)
        clock.watch(search.run)
        counters = {"merged_rows": node.n_rows, **dict(zip(COUNTERS, map(int, search.work), strict=True))}
        solution = search.solution(search.incumbent.tree, counters)
    return replace(solution, compile_seconds=compile_seconds)


class _Search(SearchState):
    """Depth first through columns and cuts; subproblems that were met before are remembered."""

    def __init__(self, problem: Problem, node: Node, clock: Clock, limits: SearchLimits, fixed: FixedPoint):
        leaf, floor = node.leaf()
        super().__init__(problem, fixed, clock, limits, Incumbent(leaf + node.penalty, LEAF, floor + 2 * node.penalty))
        self.node = node
        columns = problem.data.columns
        assert problem.feature_groups is not None and problem.max_depth is not None, "shares_test_costs says so"
        self.owner = np.array([problem.feature_groups[c.feature] for c in columns], dtype=np.int64)
        self.depth = int(problem.max_depth)
        self.roots = problem.root_columns
        self.spreads = charge_spreads(node.charges, node.rows.groups, self.owner)
        self.penalty = node.penalty
        self.solved: dict[tuple, tuple[int, Splits | None]] = {}
        self.work = np.zeros(len(COUNTERS), dtype=np.int64)

    def run(self) -> None:
        """Search until the bound meets the tree or a limit strikes."""
        rows = np.arange(self.node.n_rows)
        for depth in range(min(self.depth, 2), self.depth + 1):  # shallower trees are incumbents
            value, tree = self._solve(rows, depth, frozenset(), self.incumbent.value, True)
            if tree is not None:
                self.incumbent.offer(value, tree)
            if self.clock.stopped:
                return
            self.show(self.incumbent.value, depth / (self.depth + 1), int(self.work[NODES]))
        self.incumbent.raise_bound(self.incumbent.value)

    def _solve(self, rows, depth: int, paid: frozenset, cutoff: int, root: bool = False) -> tuple[int, Splits | None]:
        """The best value and its tree; or, without a tree, a lower bound that is at least the budget.

        When the search was stopped, the best tree so far.
        """
        keys = self.node.keys[:, rows].sum(axis=1)
        name = (int(keys[0]), int(keys[1]), depth, paid)
        known = None if root else self.solved.get(name)
        if known is not None and (known[1] is not None or known[0] >= cutoff):
            return known
        self.work[NODES] += 1
        found = self._search(rows, depth, paid, cutoff, root)
        if not root and not self.clock.stopped:
            self.solved[name] = found
        return found

    def _search(self, rows, depth: int, paid: frozenset, cutoff: int, root: bool) -> tuple[int, Splits | None]:
        part = rows_of(self.node, rows)
        leaf, floor = part.leaf()
        best, tree = (leaf + self.penalty, LEAF) if leaf < FEASIBLE else (INF, None)
        if depth == 0 or best <= floor + 2 * self.penalty:
            return best, tree
        if floor + self.penalty >= cutoff:
            return floor + self.penalty, None
        packed, columns, codes = occurring(part)
        if not len(columns):
            return best, tree
        if root and not self.roots.all():
            order = columns  # two levels are solved below the first split
        else:
            value, splits, firsts = self._two_levels(packed, columns, codes, min(depth, 2), paid)
            if value < best:
                best, tree = value, splits
            if depth <= 2:
                return best, tree
            order = columns[np.argsort(firsts, kind="stable")]
        return _Cuts(self, part, rows, depth, paid, min(best, cutoff), best, tree).run(order, root)

    def _two_levels(self, packed: Node, columns, codes, depth: int, paid: frozenset):
        """The best tree of depth one or two in the problem's columns and cuts, and the value of every first split."""
        self.work[TWO] += 1
        owner = self.owner[columns]
        firsts, found = np.empty(len(columns), np.int64), np.empty(6, np.int64)
        free = np.isin(owner, list(paid))
        value = int(solve_two(packed.rows, packed.rules, free, owner, depth, firsts, found, self.clock.flag))
        offset = packed.rows.offset
        pairs = [
            (int(columns[f]), int(codes[offset[f] + t])) if f >= 0 else (-1, 0) for f, t in found.reshape(3, 2).tolist()
        ]
        splits = LEAF
        if pairs[0][0] >= 0:
            splits = [pairs[0]]
            for second in pairs[1:]:
                splits += [second] if second[0] < 0 else [second, *LEAF, *LEAF]
        return (value, splits, firsts) if value < FEASIBLE else (INF, None, firsts)


class _Cuts:
    """All first splits of one node, column after column."""

    def __init__(self, search: _Search, part: Node, rows, depth: int, paid: frozenset, limit: int, best: int, tree):
        self.search, self.part, self.rows = search, part, rows
        self.depth, self.paid = depth, paid
        self.limit = limit  # what a tree must cost less than
        self.best, self.tree = best, tree
        self.values = row_values(part, depth - 1)

    def run(self, columns, root: bool) -> tuple[int, Splits | None]:
        """Try the columns in this order."""
        for column in map(int, columns):
            if root and not self.search.roots[column]:
                continue
            self._column(column)
            if self.search.clock.stopped:
                return self.best, self.tree
        return (self.best, self.tree) if self.best <= self.limit else (self.limit, None)

    def _column(self, column: int) -> None:
        """Solve the cuts of a column that bounds leave open."""
        search = self.search
        owner = int(search.owner[column])
        price = 0 if owner in self.paid else self.part.paid(column)
        below = self.paid | {owner}
        # Sides have at most three levels; one level has no split below another one.
        later = charged_later(search.spreads, below, search.node.n_rows)[self.rows] if self.depth > 2 else None
        bounds = SideBounds(self.part, column, self.values, later=later)
        for t in bounds.open_cuts(lambda: self.limit - price - 1):
            self._cut(bounds, column, t, price, below)
            if search.clock.stopped:
                return

    def _cut(self, bounds: SideBounds, column: int, t: int, price: int, below: frozenset) -> None:
        """Solve both sides of a cut, the right one only if the left one leaves room for it."""
        search, depth = self.search, self.depth - 1
        goes_left = bounds.codes <= t
        cutoff = self.limit - price - int(bounds.right[t])
        a, first = search._solve(self.rows[goes_left], depth, below, cutoff)
        bounds.raise_left(t, a)
        if first is None or a >= cutoff:
            return
        b, second = search._solve(self.rows[~goes_left], depth, below, self.limit - price - a)
        bounds.raise_right(t, b)
        if second is not None and price + a + b < self.limit:
            self.best = self.limit = price + a + b
            self.tree = [(column, t), *first, *second]
