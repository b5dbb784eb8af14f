"""Ranking objectives: the area under the ROC curve, and the F-score labelled by omega."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from policytree.exceptions import InputError
from policytree.objectives.objective import RankingObjective, totals
from policytree.objectives.references import Reference, by_slope
from policytree.problem.types import Problem, Progress, SearchLimits, SizeGates, Solution, Status
from policytree.solvers.core.columns import preorder_splits, rows_of_splits, without_gaps
from policytree.solvers.core.compilation import RANKING, ROW_DUALS, load_kernels
from policytree.solvers.core.leaf_sums import FINE_BITS, exact_leaf_stats, leaf_stats_of, masses, siblings, with_leaf
from policytree.solvers.core.limits import Clock
from policytree.solvers.core.rows import Splits
from policytree.solvers.core.search_state import ScoreSearch
from policytree.solvers.exact.bounds.row_duals import row_duals_apply
from policytree.solvers.exact.direct import solve_direct
from policytree.solvers.exact.estimate import estimated_seconds
from policytree.solvers.kernels.subsets.ranking_layout import CoarseBoxes
from policytree.solvers.nonadditive.ranking_bounds import coarse_boxes, cuts_between_strips, fill, least_tree, no_boxes
from policytree.solvers.nonadditive.ranking_search import (
    MergedRows,
    RankingSearch,
    costs_by,
    largest_growth,
    merge_rows,
)

FLOATS, SAFE = 1e-12, 1.001  # what a handful of operations on losses rounds; a sum of what weights moved
ROUNDS, DEPTHS = 10, (4, 3, 2)  # searches for incumbents; their depths
MOST_ACTIONS, MOST_PAIRS = 9, 24  # of a reference as a loss matrix; otherwise
ROUNDS_OF_CURVES, WORTHWHILE = 3, 0.1  # references that are tried; the share of the gap that one has to close
LEAST_STEP = 0.25  # of the mixture towards a new tree
ROUNDS_OF_STRIPS, STEP_OF_STRIPS = 12, 0.08  # to fit a curve to trees between strips
MOST_PLACES = 5_000_000  # rows and codes on all levels of the search, some hundred bytes each
ROUNDING = 1e-10  # trees that lose so much less are not looked for


def solve_ranking(problem: Problem, limits: SearchLimits | None = None, *, objective: RankingObjective) -> Solution:
    """Find the tree whose leaf statistics have the least loss, leaf penalties included, with a proof.

    Parameters
    ----------
    problem : Problem
        Two actions; its losses are the weights of rows that are labelled wrongly. ``leaf_penalty`` is in their unit.
    limits : SearchLimits, optional
    objective : AUC, PartialAUC or OmegaFScore

    Returns
    -------
    Solution
        ``objective`` is ``loss * total weight + leaf_penalty * leaves``, from exact sums. Stopped searches have a valid
        tree and a valid bound.

    Raises
    ------
    InputError
        If nothing limits the size of trees: no price per leaf, no depth, no number of leaves.

    Notes
    -----
    Three steps. (1) Incumbents: the concave part of a reference (objectives/references.py) makes the objective a sum
    over leaves, so that the direct solver finds the best tree for it with a loss matrix; its leaves make the next
    reference, as a mixture (as Frank and Wolfe do). Tables of few columns have one more source, trees whose cuts lie
    between strips of codes (ranking_bounds.py). (2) A reference's least cost bounds all trees, and the tree that has it
    is mixed into the next one while that pays; sets of rows seen before, boxes of strips, or numbers of rows
    (row_duals.py) make it quick. (3) Trees within the best reference's budget are written down and scored as what they
    are, until none is left.

    *Scope of the proof.* Trees are compared by exact sums of the weights as they were given. Bounds and the scores that
    kernels give are of weights rounded to integers, and of sums of floats. A reference's inequality holds for the
    rounded weights and any labels, the exact ones among them; floats move its costs by ``_slop`` at most, which is
    subtracted from bounds and added to budgets. A tree's loss with its exact labels differs from that with rounded
    weights by ``objective.moved``, and floats move the score that a kernel gives it by as much again for their part. So
    no tree loses less than the best one by more than ``resolution``, the sum of ``ROUNDING`` and these two.
    """
    return _RankingRun(without_gaps(problem), objective, limits or SearchLimits()).solve()


@dataclass(frozen=True, slots=True)
class _Best:
    value: Fraction
    splits: Splits
    leaf_stats: list[tuple[int, int]]


class _RankingRun(ScoreSearch):
    """The incumbent, the bound, and the steps that move them."""

    clock: Clock
    best: _Best
    bound: float

    def __init__(self, problem: Problem, objective: RankingObjective, limits: SearchLimits):
        super().__init__(problem, limits)
        self.objective, self.gates = objective, limits.gates
        self.sums = masses(problem, FINE_BITS)
        self.compiled = load_kernels([(RANKING, "")] + [(ROW_DUALS, "")] * row_duals_apply(problem, self.gates))
        self.control = np.zeros(4, dtype=np.int64)
        self.clock = Clock(limits.time_limit, self.control, limits.memory_limit)
        self.rows: MergedRows = merge_rows(problem, self.sums)
        self.search: RankingSearch | None = None
        self.sets = 0  # that the searches for incumbents entered
        self.counters: dict[str, int | float] = {"merged_rows": self.rows.n}
        ratio = self.sums.P / self.sums.N
        self.moved = objective.moved(SAFE * self.sums.moved[1], SAFE * self.sums.moved[0], ratio)
        if not objective.labels_matter or not self.rows.whole:  # areas are sums of products, never whole numbers
            self.moved += objective.moved(self.rows.rounding, self.rows.rounding, ratio)
        self.rounding = ROUNDING + self.moved
        self.floor = self._floor()

    def _slop(self, reference: Reference) -> float:
        """How far floats move the sum of a tree's costs by a reference.

        A leaf's shares are off by ``rounding`` of those of the set that it was cut from, whose sums over leaves are the
        depth at most; costs grow with shares by ``largest_growth``.
        """
        growth = float(largest_growth(costs_by(reference)).sum()) + abs(reference.offset)
        return (self._depth() + 2) * self.rows.rounding * growth

    def _floor(self) -> float:
        """The loss of a tree whose leaves are the rows that no split tells apart, labelled as is best."""
        leaf_stats = [(int(n), int(p)) for n, p in zip(self.rows.negative, self.rows.positive, strict=True)]
        return max(float(self.objective.freely_labelled().loss(leaf_stats)) - self.rounding, 0.0)

    def optimise(self) -> None:
        """Search until the bound meets the incumbent, or a limit strikes."""
        self._take([(-1, 0)])
        if self.problem.min_leaf > self.problem.data.n_rows:
            self.status = Status.INFEASIBLE
            return
        self.bound = self.floor + float(self.price)
        self._report()
        if self.price == 0:  # with a price, a good tree says how many leaves others may have
            self._refuse_huge_trees()
        self._look_for_incumbents()
        if not self.clock.stopped:
            self._refuse_huge_trees()
            self.clock.watch(self._prove, self._report)
        if not self.proved:
            self.status = self.clock.status

    def _refuse_huge_trees(self) -> None:
        if self._depth() * (int(self.problem.data.n_bins.sum()) + self.rows.n) > MOST_PLACES:
            raise InputError(
                f"objective={self.objective.name!r} needs a limit on the size of trees: with these, some have "
                f"{self._most_leaves():,} leaves; set max_depth or max_leaf_nodes, or raise regularization."
            )

    def _most_leaves(self) -> int:
        """The largest number of leaves of a better tree."""
        problem = self.problem
        most = min(problem.most_leaves, self.rows.n, problem.data.n_rows // max(problem.min_leaf, 1))
        if self.price > 0:
            most = min(most, int((float(self.value) - self.floor) / float(self.price) + 1e-9))
        return max(most, 1)

    def _depth(self) -> int:
        most = self._most_leaves() - 1
        return most if self.problem.max_depth is None else min(most, self.problem.max_depth)

    def _take(self, splits: Splits) -> bool:
        """Keep a tree if it is better than the best one; whether it is."""
        splits, leaf_stats = self._pruned(splits, self._leaf_stats(splits))
        value = self.objective.loss(leaf_stats) + self.price * len(leaf_stats)
        if value >= self.value:
            return False
        self.best = _Best(value, splits, leaf_stats)
        return True

    def _leaf_stats(self, splits: Splits) -> list[tuple[int, int]]:
        """Weights of negatives and positives in every leaf as they were given, in one unit."""
        if max(self.sums.moved) == 0:
            return leaf_stats_of(self.problem, self.sums, splits)
        return exact_leaf_stats(self.problem, splits)

    def _pruned(self, splits: Splits, leaf_stats: list) -> tuple[Splits, list]:
        """Without splits that are not worth their leaf."""
        best, before = self.objective.loss(leaf_stats) + self.price * len(leaf_stats), None
        while before is not splits:
            before = splits
            for k, leaf in siblings(splits):
                joined = (leaf_stats[leaf][0] + leaf_stats[leaf + 1][0], leaf_stats[leaf][1] + leaf_stats[leaf + 1][1])
                fewer = [*leaf_stats[:leaf], joined, *leaf_stats[leaf + 2 :]]
                value = self.objective.loss(fewer) + self.price * len(fewer)
                if value <= best:
                    splits, leaf_stats, best = with_leaf(splits, k), fewer, value
                    break
        return splits, leaf_stats

    def _curve(self) -> np.ndarray:
        """The incumbent's leaves as shares."""
        N, P = totals(self.best.leaf_stats)
        return np.array([[p / P, n / N] for n, p in self.best.leaf_stats])

    def _reference(self, curve: np.ndarray, most: int) -> Reference:
        best, leaves = float(self.value), len(self.best.leaf_stats)
        return self.objective.reference(
            by_slope(curve, most), float(self.price), best, leaves, self.sums.P / self.sums.N
        )

    def _proxy(self, losses: np.ndarray, price: float, depth: int | None) -> Problem:
        """The problem with a loss matrix for negatives and positives."""
        each = np.column_stack([self.sums.negative / self.sums.N, self.sums.positive / self.sums.P])
        return replace(self.problem, losses=each @ losses, leaf_penalty=price, max_depth=depth)

    def _look_for_incumbents(self) -> None:
        """Best trees for a reference, whose leaves make the next one."""
        curve = np.array([[0.7, 0.2], [0.3, 0.8]])
        for k in range(ROUNDS):
            losses = self.objective.first_losses(self.sums.P / self.sums.N) if k == 0 else None
            if losses is None:
                losses = self._reference(curve, MOST_ACTIONS).losses()
            problem = self._proxy(losses, float(self.price), None)
            problem = replace(problem, max_depth=_quick_depth(problem, self.problem.max_depth, self.gates))
            left = None if self.clock.time_limit is None else self.clock.time_limit - self.clock.seconds()
            if left is not None and left <= 0:
                self.clock.stop(Status.TIME_LIMIT)
            if self.clock.stopped:
                break
            solution = solve_direct(problem, self._limits_of_one(None if left is None else left / 4))
            self.compiled += solution.compile_seconds
            self.clock.start += solution.compile_seconds
            if solution.status in (Status.INTERRUPTED, Status.MEMORY_LIMIT):
                self.clock.stop(solution.status)
            splits = preorder_splits(solution.tree, self.problem.data)
            if self._take(splits):
                self._report()
            curve = self._mixed(curve, splits, 1.0 if k == 0 else max(2.0 / (k + 2), LEAST_STEP))
        self.curve = curve

    def _prove(self) -> None:
        """Bound all trees, then write down those that the bound leaves."""
        if self._most_leaves() == 1 or float(self.value - 2 * self.price) <= self.floor + self.rounding:
            self.proved = True
            return
        search = self._best_search()
        while search is not None and not self.clock.stopped:
            most, cutoff = self._cutoff(search.reference)
            splits = search.better_tree(float(self.value) - ROUNDING / 10, most, cutoff, self._take)
            self.counters.update(search.work())
            if splits is None:
                self.proved = not self.clock.stopped
                return

    def _best_search(self) -> RankingSearch | None:
        """The search of the best reference: each one's least tree is mixed into the next. None: all is proved."""
        # Trees and their mixture have curves of many corners; with few, the single leaf's is a line without an area.
        curve = self.curve if len(self.curve) > 1 else self._curve()
        boxes = no_boxes(len(self.rows.codes))
        # Shallow searches are so quick that boxes and further references cost more than they save.
        shallow = self._depth() <= self.gates.most_shallow_bag_depth
        if self.price > 0 and not shallow:
            boxes = self._boxes(self.gates.most_bag_boxes)
        if len(boxes.least):
            curve = self._fitted(curve)
        best: RankingSearch | None = None
        proven = -np.inf
        for k in range(1 if shallow else ROUNDS_OF_CURVES):
            self.search = search = self._new_search(curve, boxes)
            least = search.least_cost(self._cutoff(search.reference)[0])
            bound = self._bound(search.reference, least)
            self.bound = max(self.bound, bound)
            if self.clock.stopped:  # what was proved until then is a bound all the same
                return None
            if self.bound >= float(self.value) - self.rounding:
                self.proved = True
                return None
            splits = search.best_known()  # whatever its number of leaves and its first column
            if self._allowed(splits):
                self._take(splits)
            gap, gain = float(self.value) - bound, bound - proven
            if gain > 0:
                best, proven = search, bound
            if not search.reference.curved or (k > 0 and gain < WORTHWHILE * gap):
                break
            curve = self._mixed(curve, splits, 1.0 / (k + 4))
        self.search = best
        return best

    def _boxes(self, most: float) -> CoarseBoxes:
        """Boxes of strips of the merged rows."""
        bins = np.asarray(self.problem.data.n_bins, dtype=np.int64)
        return coarse_boxes(self.rows.codes, bins, self.clock, most, self.gates)

    def _fitted(self, curve: np.ndarray) -> np.ndarray:
        """A curve that bounds the trees well whose cuts lie between strips; they are found in next to no time."""
        codes, boxes = self.rows.codes, cuts_between_strips(self._boxes(self.gates.most_fitted_boxes))
        shares = np.column_stack([self.rows.positive / self.sums.P, self.rows.negative / self.sums.N])
        best, proven = curve, -np.inf
        for k in range(ROUNDS_OF_STRIPS if len(boxes.least) else 0):
            reference = self._reference(curve, MOST_PAIRS)
            costs = costs_by(reference)
            boxes = fill(boxes, costs, reference.price, codes, shares, self.clock.flag)
            if self.clock.stopped or not reference.curved:
                break
            least = float(self._bounds(reference, float(boxes.least[-1])).min())
            if least > proven:
                best, proven = curve, least
            splits = least_tree(boxes, costs, reference.price, codes, shares)
            if self._allowed(splits):
                self._take(splits)
            curve = self._mixed(curve, splits, max(1.0 / (k + 3), STEP_OF_STRIPS))
        return best

    def _allowed(self, splits: Splits) -> bool:
        """Whether a tree obeys the problem's limits; those of strips know none."""
        problem, depth, nodes = self.problem, 0, [0]
        counts = [len(rows) for rows in rows_of_splits(problem.data, splits)]
        for column, _ in splits:
            at = nodes.pop()
            depth = max(depth, at)
            nodes += [at + 1] * 2 if column >= 0 else []
        leaves = [count for count, (column, _) in zip(counts, splits, strict=True) if column < 0]
        if splits[0][0] >= 0 and not problem.root_columns[splits[0][0]]:
            return False
        most = len(leaves) if problem.max_leaf_nodes is None else problem.max_leaf_nodes
        return depth <= self._depth() and len(leaves) <= most and min(leaves) >= problem.min_leaf

    def _new_search(self, curve: np.ndarray, boxes: CoarseBoxes) -> RankingSearch:
        reference = self._reference(curve, MOST_PAIRS)
        search = RankingSearch(
            self.rows, reference, self.objective, float(self.price), self.problem, self._depth(), self.clock, boxes,
            self.gates,
        )  # fmt: skip
        if search.boxes_are_few():
            search.fit_row_duals(self._proxy(reference.losses(), reference.price, None), self._cutoff(reference)[0],
                              len(self.best.leaf_stats))  # fmt: skip
        return search

    def _mixed(self, curve: np.ndarray, splits: Splits, step: float) -> np.ndarray:
        """A mixture of a curve and that of a tree."""
        found = [[p / self.sums.P, n / self.sums.N] for n, p in leaf_stats_of(self.problem, self.sums, splits)]
        return by_slope(np.vstack([(1.0 - step) * curve, step * np.array(found)]), MOST_PAIRS)

    def _cutoff(self, reference: Reference) -> tuple[float, np.ndarray]:
        """Bound a better tree's costs and prices above together; and by number of leaves, its costs alone."""
        h = np.arange(self._most_leaves() + 1)
        cutoff = reference.cutoff(float(self.value), h) + max(ROUNDING, self._slop(reference))
        return float((cutoff + reference.price * h)[1:].max()), cutoff

    def _bound(self, reference: Reference, least: float) -> float:
        """Bound all trees' loss below by their least cost, prices included; at most the incumbent's value."""
        proved = self._bounds(reference, least - self._slop(reference))
        return min(float(proved.min()) - self.moved - FLOATS, float(self.value))

    def _bounds(self, reference: Reference, least: float) -> np.ndarray:
        """By number of leaves, what trees lose at least if their costs and prices sum up to ``least`` or more."""
        h = np.arange(1, self._most_leaves() + 1)
        return reference.loss_at(least - reference.price * h, h)

    def _report(self) -> None:
        """Report: of the proof from the thread that waits, of searches for incumbents from theirs, which take turns."""
        if self.limits.progress is not None:
            search = self.search
            known = self.bound if search is None else self._bound(search.reference, search.least_so_far())
            self.report(self._entered(), known)

    def _entered(self) -> int:
        """Sets and unfinished trees so far."""
        work = self.search.work() if self.search is not None else {}
        return self.sets + int(work.get("sets", 0)) + int(work.get("states", 0))

    def _limits_of_one(self, seconds: float | None) -> SearchLimits:
        """Limits of one search for incumbents."""
        progress = None if self.limits.progress is None else self._beside
        return replace(self.limits, time_limit=seconds, progress=progress)

    def _beside(self, progress: Progress) -> None:
        """Show that a search for incumbents goes on; its bound is not one of the objective."""
        self.sets = progress.subproblems
        self._report()

    def solution(self) -> Solution:
        """The best tree and what was proved of it."""
        labels = self.objective.labels(self.best.leaf_stats)
        rounding, merge = self.rounding + FLOATS, self.objective.labels_matter
        return self.made_solution(self.best.splits, labels, rounding, self.counters, self.compiled, merge=merge)


def _quick_depth(problem: Problem, limit: int | None, gates: SizeGates) -> int:
    """The largest depth at which a search looks quick."""
    for depth in DEPTHS:
        seconds = estimated_seconds(replace(problem, max_depth=depth), gates)
        if (limit is None or depth <= limit) and seconds <= gates.quick_seconds:
            return depth
    return DEPTHS[-1] if limit is None else min(limit, DEPTHS[-1])
