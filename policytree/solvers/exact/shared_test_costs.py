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

from dataclasses import replace

import numpy as np

from policytree.exceptions import InputError
from policytree.problem.types import Problem, Progress, SearchLimits, Solution, Status
from policytree.solvers.core.compilation import SHARED_COSTS, load_kernels
from policytree.solvers.core.fixed_point import to_fixed_point
from policytree.solvers.core.limits import Clock
from policytree.solvers.core.rows import Node, Splits, new_control, occurring, prepare, refuse_memory, rows_of
from policytree.solvers.core.scoring import finish, leaf_only
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
        search = _Search(problem, node, clock, limits.progress, fixed)
        clock.watch(search.run)
        status = problem.proved_status
        if search.bound < search.best:
            status = clock.status
        gap = fixed.to_float(search.best - search.bound)
        counters = {"merged_rows": node.n_rows, **dict(zip(COUNTERS, map(int, search.work), strict=True))}
        solution = finish(problem, fixed, search.tree, gap, status, clock.seconds(), counters)
    return replace(solution, compile_seconds=compile_seconds)


class _Search:
    """Depth first through columns and cuts; subproblems that were met before are remembered."""

    def __init__(self, problem: Problem, node: Node, clock: Clock, progress, fixed):
        self.node, self.clock, self.progress = node, clock, progress
        self.to_float, self.base = fixed.to_float, float(problem.losses[:, 0].sum())
        columns = problem.data.columns
        assert problem.feature_groups is not None and problem.max_depth is not None, "shares_test_costs says so"
        self.owner = np.array([problem.feature_groups[c.feature] for c in columns], dtype=np.int64)
        self.depth = int(problem.max_depth)
        self.roots = problem.root_columns
        self.floors = node.least_losses
        self.monotone = len(node.rules.minima) == 0
        first = node.rules.n_losses + len(node.rules.minima)
        self.dearest = np.maximum(node.losses, 0).max(axis=0, initial=0)  # of every row, relative to action 0
        prices = node.rows.planes[first : first + node.rules.prices]
        self.charges = prices.max(axis=0, initial=0)  # for one split
        self.spreads = charge_spreads(prices, node.rows.groups, self.owner)
        self.penalty = node.penalty
        leaf, floor = node.leaf()
        self.best, self.tree = leaf + self.penalty, LEAF
        self.bound = min(self.best, floor + 2 * self.penalty)
        self.solved: dict[tuple, tuple[int, Splits | None]] = {}
        self.work = np.zeros(len(COUNTERS), dtype=np.int64)

    def run(self) -> None:
        """Search until the bound meets the tree or a limit strikes."""
        rows = np.arange(self.node.n_rows)
        for depth in range(min(self.depth, 2), self.depth + 1):  # shallower trees are incumbents
            value, tree = self._solve(rows, depth, frozenset(), self.best, True)
            if value < self.best and tree is not None:
                self.best, self.tree = value, tree
            if self.clock.stopped:
                return
            self._report(depth)
        self.bound = self.best

    def _report(self, depth: int) -> None:
        if self.progress is not None:
            low, best = (self.base + self.to_float(v) for v in (self.bound, self.best))
            self.progress(Progress(self.clock.seconds(), best, low, depth / (self.depth + 1), int(self.work[NODES])))

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
        self.floors = search.floors[rows]

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
        """Bisect the cuts of a column."""
        code = self.part.codes[column]
        cuts = np.unique(code)[:-1].astype(np.int64)
        owner = int(self.search.owner[column])
        self.price = 0 if owner in self.paid else self.part.paid(column)
        self.below = self.paid | {owner}
        by_code = np.zeros(int(code.max()) + 1, dtype=np.int64)
        np.add.at(by_code, code, self.floors)
        floor_left = np.cumsum(by_code)[cuts]
        floor_right = self.floors.sum() - floor_left
        search, rows = self.search, self.rows
        by_code[:] = 0
        np.add.at(by_code, code, search.dearest[rows] - self.floors + (self.depth - 1) * search.charges[rows])
        saved = np.cumsum(by_code)[cuts]  # by the rows of the left side, at most, beyond their floors
        by_code[:] = 0
        np.add.at(by_code, code, self._paid_later())
        later_left = np.cumsum(by_code)[cuts]
        later_right = by_code.sum() - later_left
        lefts, rights = np.full((2, len(cuts)), search.penalty)  # what sides cost at least beyond their floors
        stack = [(0, len(cuts) - 1)]
        while stack and not search.clock.stopped:
            first, last = stack.pop()
            if first > last or self._least(lefts[first:], rights[first:], last - first + 1) >= self.limit:
                continue
            middle = (first + last) // 2
            if self._least(lefts[middle:], rights[middle:], 1) < self.limit:
                floors = int(floor_left[middle]), int(floor_right[middle])
                left, right = self._cut(
                    column, int(cuts[middle]), code, floors, int(lefts[middle]), int(rights[middle])
                )
                np.maximum(lefts[:middle], left - (saved[middle] - saved[:middle]), out=lefts[:middle])
                np.maximum(
                    rights[middle + 1 :], right - (saved[middle + 1 :] - saved[middle]), out=rights[middle + 1 :]
                )
                if search.monotone:
                    np.maximum(lefts[middle:], left - later_left[middle], out=lefts[middle:])
                    np.maximum(rights[: middle + 1], right - later_right[middle], out=rights[: middle + 1])
            stack += [(middle + 1, last), (first, middle - 1)]

    def _paid_later(self) -> np.ndarray:
        """What every row pays more, at most, if splits of a tree of the sides are dropped; see the module docstring.

        A group is concerned that has two splits on the row's path, a cheap one that is dropped above a dear one that
        stays. Sides have at most three levels, so that there is at most one such group, and none with one level.
        """
        open_groups = [g for g in self.search.spreads if g not in self.below]
        if self.depth - 1 < 2 or not open_groups:
            return np.zeros(len(self.rows), dtype=np.int64)
        return np.max([self.search.spreads[g][self.rows] for g in open_groups], axis=0)

    def _least(self, lefts: np.ndarray, rights: np.ndarray, count: int) -> int:
        """What the cheapest of the first so many cuts costs at least."""
        return self.price + int((lefts[:count] + rights[:count]).min()) + int(self.floors.sum())

    def _cut(self, column: int, cut: int, code, floors: tuple[int, int], low: int, high: int) -> tuple[int, int]:
        """Solve both sides of a cut; returns what they cost at least beyond their floors."""
        search, depth = self.search, self.depth - 1
        left = code <= cut
        cutoff = self.limit - self.price - high - floors[1]
        a, first = search._solve(self.rows[left], depth, self.below, cutoff)
        at_least = max(low, a - floors[0])
        if first is None or a >= cutoff:
            return at_least, high
        b, second = search._solve(self.rows[~left], depth, self.below, self.limit - self.price - a)
        value = self.price + a + b
        if second is not None and value < self.limit:
            self.best = self.limit = value
            self.tree = [(column, cut), *first, *second]
        return at_least, max(high, b - floors[1])
