"""The best tree within budgets and shares: the Lagrangian dual first, then a search of the duality gap.

    1. the best tree without constraints: if it is within the limits, that is all 2. the least that can be spent: if it
    is too much, nothing is 3. prices for which the bound is largest (lagrangian_dual.py); every tree met is relabelled
    as well as the limits allow 4. what is left between the best tree and the bound is searched: trees whose priced loss
    lies in that gap are few,
       and of these only those that no other is as good as in loss and sums (pareto_front.py)

Trees that are best at some price lie on the hull of (spend, loss); step 4 finds those between. It is exact up to depth
three. Deeper trees keep the bound of step 3, and the gap is reported.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from policytree.problem.types import BinnedData, Problem, Progress, SearchLimits, Solution, Status
from policytree.solvers.constrained.lagrangian import Corner, Relaxation, pareto_search
from policytree.solvers.constrained.lagrangian_dual import Dual, Stopped
from policytree.solvers.core.columns import coarser
from policytree.solvers.core.compilation import is_signed, load_kernels, pareto_kernels
from policytree.solvers.core.constraints import Constraint
from policytree.solvers.core.fixed_point import useful_costs
from policytree.solvers.core.limits import Clock, Stopwatch
from policytree.solvers.core.rows import Splits
from policytree.solvers.core.scoring import scored_tree
from policytree.solvers.exact.direct import solve_direct
from policytree.solvers.kernels.enumeration.layout import Points
from policytree.solvers.kernels.enumeration.lists import thin
from policytree.solvers.multi_objective.pareto_front import MOST_DEPTH, read_tree


@dataclass(eq=False)
class Infeasible(Exception):
    """No tree meets the constraints.

    Attributes
    ----------
    constraint : Constraint or None
        One that no tree meets, whatever the others are; None if only together they cannot be met, or nothing was found
        before a limit struck.
    least : float or None
        The least that its sum can be, in the user's unit.
    status : Status
        INFEASIBLE if that is proved; else what ended the search.
    """

    constraint: Constraint | None
    least: float | None
    status: Status


@dataclass(frozen=True)
class Budgeted:
    """The best tree within the limits, and its certificate.

    Attributes
    ----------
    solution : Solution
        ``guarantees`` hold the bound by prices alone ("dual_bound") and the objective of the best tree without
        constraints ("without_limits"), in summed losses.
    sums : tuple of float
        The tree's amount for every constraint, in the user's unit.
    multipliers : tuple of float
        The prices with the largest bound: what one unit more of each limit (per person) is worth in mean loss.
    """

    solution: Solution
    sums: tuple[float, ...]
    multipliers: tuple[float, ...]


def solve_within(
    problem: Problem, constraints: Sequence[Constraint], limits: SearchLimits | None = None, *, solve=solve_direct
) -> Budgeted:
    """The best tree that meets all constraints.

    Parameters
    ----------
    problem : Problem
    constraints : sequence of Constraint
        At least one.
    limits : SearchLimits, optional
        For all of the work; the best tree found is returned with its gap.
    solve : callable
        An exact solver, ``(Problem, SearchLimits) -> Solution``.

    Raises
    ------
    Infeasible
        If no tree meets them, or none was found in time. Where leaves have a minimum that all rows together do not
        reach, the solution's status is INFEASIBLE, as without constraints.
    """
    watch = Stopwatch(limits or SearchLimits())
    if problem.feature_costs is not None:
        # Prices that are meant to forbid a question would leave no digits to the losses. Cut down, they bound all trees
        # from below, and a tree that does not pay them is as good as it seems.
        costs = useful_costs(problem.losses, problem.feature_costs, problem.weights)
        found = _ConstrainedSearch(replace(problem, feature_costs=costs), constraints, watch.limits, solve).solve()
        cut = np.flatnonzero(costs < problem.feature_costs)
        if not np.isin(cut, found.solution.tree.used_features).any():
            return found
    return _ConstrainedSearch(problem, constraints, watch.limits_left(), solve).solve()


class _ConstrainedSearch:
    """Incumbent, bound, clock; the parts do the work."""

    def __init__(self, problem: Problem, constraints, limits: SearchLimits, solve):
        self.problem, self.limits = problem, limits
        self.watch = Stopwatch(limits)
        self.relaxation = Relaxation(problem, constraints, solve)
        self.dual = Dual(self.relaxation, limits, self.offer)
        self.best: Corner | None = None
        self.bound: Fraction | None = None
        self.status = Status.OPTIMAL
        self.cuts = 0
        self.free: Corner | None = None  # the best tree without constraints

    def solve(self) -> Budgeted:
        """Do all steps."""
        load_kernels(pareto_kernels(self.problem.data.n_bins, is_signed(self.problem), self.problem.most_depth))
        try:
            self._first_trees()
            self._prices()
        except Stopped:
            self.status = Status.INTERRUPTED if self.dual.status.proved else self.dual.status
            if self.status is Status.INFEASIBLE and self.dual.stopped_at is not None:  # not even one leaf is allowed
                return Budgeted(self.dual.stopped_at, (), ())
        except KeyboardInterrupt:
            self.status = Status.INTERRUPTED
        self.bound = self.dual.bound
        if self.status.proved and not self._closed():
            self._close()
        if self.best is None:
            raise Infeasible(None, None, Status.INFEASIBLE if self.status.proved else self.status)
        return self._result()

    def offer(self, corner: Corner) -> None:
        """Take a tree if it is within the limits and better, or its splits with other labels."""
        corners = [corner, _best_labels(self.relaxation, corner.splits, self.limits.gates.most_labellings)]
        for each in corners:
            if each is None or (self.best is not None and each.loss >= self.best.loss):
                continue
            if self.relaxation.feasible(each):
                self.best = each
        self._report()

    def _first_trees(self) -> None:
        """Find trees to return whatever happens: one leaf; and where a single search may be long, a small tree.

        The small tree is the best one of few cuts, or, where prices are all there is, of fewer levels.
        """
        self.offer(self.relaxation.corner([(-1, 0)], [0]))
        problem, data = self.problem, self.problem.data
        cuts = [(j, np.arange(bins)) for j, bins in enumerate(data.n_bins)]
        coarse = self.limits.gates.coarse_cuts
        if self.problem.most_depth > MOST_DEPTH:
            problem = replace(problem, max_depth=MOST_DEPTH - 1)
        elif self.problem.most_depth == MOST_DEPTH and coarse and (data.n_bins > 2 * coarse[0]).any():
            data, cuts = coarser(data, coarse[0])
            problem = replace(problem, data=data)
        else:
            return
        limit = self.limits.time_limit
        limits = replace(self.limits, time_limit=None if limit is None else limit / 4, progress=None)
        small = _ConstrainedSearch(problem, self.relaxation.constraints, limits, self.relaxation.solve)
        with suppress(Infeasible):  # of few trees: that says nothing
            small.solve()
        if small.best is not None:
            self.offer(self.relaxation.corner(_among_all(small.best.splits, cuts), small.best.actions))
        if small.status is Status.INTERRUPTED:
            raise Stopped

    def _prices(self) -> None:
        relaxation, dual = self.relaxation, self.dual
        free, _ = dual.solve([0.0] * len(relaxation.constraints))
        self.free = free
        if relaxation.feasible(free):
            return
        decides, least = dual.deciding(free), {}
        for m, constraint in enumerate(relaxation.constraints):
            if decides not in (None, m):
                continue
            least[m] = dual.least(m)
            if dual.infeasible:
                raise Infeasible(constraint, self._in_units(m, least[m].sums[m]), Status.INFEASIBLE)
        dual.maximise(free, least)

    def _closed(self) -> bool:
        """Whether no tree within the limits can be better than the best."""
        if self.dual.infeasible:
            return True
        if self.best is None or self.bound is None:
            return False
        return math.ceil(self.bound) + self._rounding() >= self.best.loss

    def _rounding(self) -> int:
        """Bound above what rounding losses down has taken from the bound, where no exact search follows."""
        if self.problem.most_depth <= MOST_DEPTH or self.dual.priced is None:
            return 0
        return (self.relaxation.data.n_rows << self.dual.priced.shift) if self.dual.priced.shift else 0

    def _close(self) -> None:
        """Search the trees whose priced loss lies between the bound and the best tree's."""
        depth = self.problem.most_depth
        clock = Clock(self.watch.left(), memory_limit=self.limits.memory_limit)
        clock.watch(lambda: self._search_all(clock, depth if depth <= MOST_DEPTH else MOST_DEPTH - 1))
        if clock.stopped:
            self.status = clock.status
        elif depth > MOST_DEPTH:
            self.status = Status.HEURISTIC
        elif self.best is not None:
            self.bound = Fraction(self.best.loss)

    def _search_all(self, clock: Clock, depth: int) -> None:
        """First among few cuts of long features: a better tree leaves fewer open among all cuts."""
        data = self.relaxation.data
        for most in self.limits.gates.coarse_cuts:
            if (data.n_bins > 2 * most).any():
                self._search(clock, depth, *coarser(data, most))
        self._search(clock, depth, data, [(j, np.arange(bins)) for j, bins in enumerate(data.n_bins)])

    def _search(self, clock: Clock, depth: int, data: BinnedData, cuts: list[tuple[int, np.ndarray]]) -> None:
        """Search the trees of some cuts (for every column of the data: which it was, and which cuts it has)."""
        search = pareto_search(self.relaxation, data, self.dual.priced, clock.flag)
        caps = self._caps()
        before = self.cuts
        for points in search.parts(depth, caps, self._shift()):
            useful = np.flatnonzero((points.values[:, 2:] <= caps[2:]).all(axis=1))
            if len(useful):
                splits, actions = read_tree(points.trees[useful[np.argmin(points.values[useful, 1])]])
                self.offer(self.relaxation.corner(_among_all(splits, cuts), actions))
                caps[:] = np.minimum(caps, self._caps())
            self.cuts = before + search.cuts
            self._report()

    def _shift(self) -> int:
        assert self.dual.priced is not None
        return self.dual.priced.shift

    def _caps(self) -> np.ndarray:
        """Return upper limits of every sum of a tree within the limits and better than the best."""
        relaxation, priced = self.relaxation, self.dual.priced
        assert priced is not None
        below = relaxation.largest if self.best is None else self.best.loss - 1
        bound = math.floor((below + relaxation.allowance(priced)) / 2**priced.shift)
        caps = [bound, below, *relaxation.limits]
        if self.problem.max_leaf_nodes is not None:
            caps.append(self.problem.max_leaf_nodes)
        return np.array([max(-(2**58), min(each, 2**58)) for each in caps], dtype=np.int64)

    def _in_units(self, m: int, total: int) -> float:
        """A relative sum as what a user asks for."""
        constraint = self.relaxation.constraints[m]
        return constraint.in_units(total - self.relaxation.limits[m] + constraint.limit)

    def _report(self) -> None:
        if self.limits.progress is None or self.best is None or self.dual.bound is None:
            return
        base, fixed = float(self.problem.losses[:, 0].sum()), self.relaxation.fixed
        bound = min(self.dual.bound, Fraction(self.best.loss))
        best, below = (base + fixed.to_float(float(v)) for v in (self.best.loss, bound))
        self.limits.progress(Progress(self.watch.seconds(), best, below, 0.0, self.dual.solves + self.cuts))

    def _result(self) -> Budgeted:
        best, relaxation, problem = self.best, self.relaxation, self.problem
        assert best is not None
        fixed = relaxation.fixed
        tree, objective = scored_tree(problem, best.splits, best.actions)
        bound = Fraction(-(relaxation.largest)) if self.bound is None else self.bound
        gap = max(0.0, fixed.to_float(float(best.loss - min(bound, Fraction(best.loss)))))
        status = self.status
        if status.proved:
            status = problem.proved_status
        sums, multipliers = [], []
        prices = () if self.dual.priced is None else self.dual.priced.prices
        for m, constraint in enumerate(relaxation.constraints):
            sums.append(self._in_units(m, best.sums[m]))
            multipliers.append(fixed.to_float(prices[m]) / float(constraint.per_person) if prices else math.nan)
        dual_gap = fixed.to_float(float(best.loss - (self.dual.bound or bound)))
        counters: dict[str, int | float] = {
            "multipliers": self.dual.solves,
            "cuts": self.cuts,
            "merged_rows": relaxation.data.n_rows,
        }
        guarantees: dict[str, float | str] = {"dual_bound": objective - dual_gap}
        if self.free is not None:
            guarantees["without_limits"] = objective - fixed.to_float(float(best.loss - self.free.loss))
        solution = Solution(
            tree, objective, objective - gap, status, self.watch.seconds(), fixed.resolution, counters, guarantees
        )
        return Budgeted(solution, tuple(sums), tuple(multipliers))


def _among_all(splits: Splits, cuts: list[tuple[int, np.ndarray]]) -> Splits:
    """Splits of some cuts as splits of all; ``cuts`` holds for every column which it was, and which cuts it has."""
    return [(f, t) if f < 0 else (cuts[f][0], int(cuts[f][1][t])) for f, t in splits]


def _best_labels(relaxation: Relaxation, splits: Splits, most: int) -> Corner | None:
    """The labels with the least loss within the limits; None if there are none, or too many choices to follow.

    Leaf by leaf, choices that another is as good as in loss and in every sum are left out; at most ``most`` are
    followed.
    """
    leaves, paid = relaxation.leaves(splits)
    K = relaxation.losses.shape[1]
    sums = np.concatenate([relaxation.losses[None], relaxation.amounts])
    each = np.stack([sums[:, rows].sum(axis=1) for rows in leaves])  # (leaves, 1 + M, K)
    later = np.cumsum(each.min(axis=2)[::-1], axis=0)[::-1]  # the least that this leaf and those after it come to
    limits = np.array(relaxation.limits) - paid[1:]
    values, labels = np.zeros((1, 1 + len(limits)), np.int64), np.zeros((1, 0), np.int32)
    for k, leaf in enumerate(each):
        values = (values[:, :, None] + leaf[None]).transpose(0, 2, 1).reshape(-1, values.shape[1])
        labels = np.hstack([np.repeat(labels, K, axis=0), np.tile(np.arange(K, dtype=np.int32), len(labels))[:, None]])
        rest = later[k + 1, 1:] if k + 1 < len(each) else 0
        useful = (values[:, 1:] + rest <= limits).all(axis=1)
        values, labels = _thinned(values[useful], labels[useful])
        if not len(values) or len(values) > most:
            return None
    best = int(np.argmin(values[:, 0]))
    return relaxation.corner(splits, labels[best].tolist())


def _thinned(values: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if not len(values):
        return values, labels
    padded = np.ascontiguousarray(np.hstack([np.zeros((len(values), 1), np.int64), values]))
    points, count = thin(Points(padded, np.ascontiguousarray(labels)), len(padded), np.zeros(1, np.int64))
    return points.values[:count, 1:], points.trees[:count]
