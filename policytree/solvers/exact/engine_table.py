"""The engines of all solvers: the problems each takes, what it buys, and the kernels it calls.

``ENGINES`` is the one statement of this. The exact search loads the kernels of the engines that apply to a problem
(:func:`kernels_of`); ``policytree explain`` and the site print the table. Engines that the direct solver chooses by
itself have a predicate; the others are chosen by an argument of the user, which ``asked_by`` names.

Measurements compare a search with and without the engine, in one run on one machine (``benchmarks/``); they are
processor seconds unless a line says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from policytree.problem.split_columns import with_every_grouping
from policytree.problem.types import GATES, Problem, SizeGates
from policytree.solvers.core.compilation import (
    ALWAYS,
    BLOCKS,
    CODES,
    CONFLICT_PAIRS,
    DEEPER,
    FROM_DEPTH_FOUR,
    GAPS,
    GROUPINGS,
    LONG,
    LOW_COST,
    ONE_FEATURE,
    PAIR_ROUNDS,
    PAIRS,
    PAIRS_DEEP,
    PLAIN,
    RANKING,
    RASHOMON,
    RELAXED,
    ROW_DUALS,
    SPECIAL,
    SUBSET_KERNELS,
    TWO_LEVELS,
    Needed,
    is_long,
    is_signed,
    is_special,
    pareto_kernels,
    streamed_kernels,
    sweeping_kernels,
    terminal_kernels,
    width_of,
)
from policytree.solvers.core.fixed_point import FixedPoint, to_fixed_point
from policytree.solvers.exact.binary_features import blocks_for
from policytree.solvers.exact.bounds.conflict_pairs import ConflictPairs, conflict_pairs_apply
from policytree.solvers.exact.bounds.root_bound import RootBound
from policytree.solvers.exact.bounds.row_duals import RowDuals, columns_are_few, row_duals_apply
from policytree.solvers.exact.constraint_generation import generation_may_apply
from policytree.solvers.exact.estimate import by_single_cuts
from policytree.solvers.exact.incumbent_search import incumbent_search_applies
from policytree.solvers.exact.interval_dp import one_feature_applies
from policytree.solvers.exact.level_groups import levels_apply
from policytree.solvers.exact.shared_state import (
    CLOSED_BY_PAIRS,
    GENERATED_ROWS,
    RAISED_BY_SUBSETS,
    STARTED,
    SharedState,
)
from policytree.solvers.exact.subset_search import subset_search_applies


@dataclass(frozen=True)
class Case:
    """A problem, with what several engines need to know about it.

    Attributes
    ----------
    problem : Problem
    block_kind : dtype or None
        Numbers of blocks of pair sums, if these solve the problem (see
        :func:`policytree.solvers.exact.binary_features.blocks_for`).
    gates : SizeGates
    without : frozenset of str
        Switches of engines that are not to work on it.
    """

    problem: Problem
    block_kind: np.dtype | None
    gates: SizeGates = GATES
    without: frozenset[str] = frozenset()

    @classmethod
    def of(cls, problem: Problem, gates: SizeGates = GATES, without: frozenset[str] = frozenset()) -> Case:
        """The case of a problem, with a column for every cut or grouping of levels where that is faster, or needed."""
        if problem.data.levels and not levels_apply(problem):
            problem = replace(problem, data=with_every_grouping(problem.data))
        problem = by_single_cuts(problem, gates)
        return cls(problem, blocks_for(problem, gates), gates, without)

    @cached_property
    def depth(self) -> float:
        """The largest depth; infinite without a limit."""
        return math.inf if self.problem.max_depth is None else self.problem.max_depth

    @cached_property
    def deep(self) -> bool:
        """Whether root features are searched one by one: beyond depth two, or where the first split is restricted."""
        return self.depth > 2 or self.problem.root_features is not None

    @cached_property
    def fixed(self) -> FixedPoint:
        """Its losses, penalty and prices as whole numbers."""
        problem = self.problem
        costs = problem.feature_costs, problem.weights
        return to_fixed_point(problem.losses, problem.leaf_penalty, problem.most_leaves, *costs)

    @cached_property
    def short(self) -> bool:
        """Whether all sums of its losses fit two bytes."""
        return self.fixed.losses_are_short()

    @cached_property
    def kind(self) -> str:
        """The version of the kernels that build tables."""
        return SPECIAL if is_special(self.problem) else PLAIN


Applies = Callable[[Case], bool]
Kernels = Callable[[Case], Needed]


@dataclass(frozen=True, slots=True)
class EngineLine:
    """One line of the table.

    Attributes
    ----------
    name : str
    module : str
        Where it is, below ``policytree.solvers``.
    takes : str
        The problems that it takes.
    buys : str
        Its gain, measured where there is another way.
    asked_by : str
        The argument of the user that chooses it; "" if the direct solver chooses it by itself.
    applies : callable or None
        Whether it may work on a problem. It leaves out facts that only the search can tell, such as the errors of a
        good tree: an engine that applies may have nothing to do. None for engines that the user chooses.
    kernels : callable
        The kernels that it may call on a problem, beside ``ALWAYS``.
    alone : bool
        Whether it solves the problem without the other engines.
    switch : str
        The argument of ``solve_direct`` that switches it off; "" if it cannot be.
    counters : tuple of str
        Names of its counters in ``Solution.counters``.
    bound : callable or None
        Makes it for a search, if it is a ``RootBound`` that ``engines.py::BoundEngine`` gives turns to.
    """

    name: str
    module: str
    takes: str
    buys: str
    asked_by: str = ""
    applies: Applies | None = None
    kernels: Kernels = lambda case: []
    alone: bool = False
    switch: str = ""
    counters: tuple[str, ...] = ()
    bound: Callable[[SharedState], RootBound] | None = None


def _terminal_kernels(case: Case) -> Needed:
    problem = case.problem
    counted = problem.min_leaf > 1 or problem.min_leaf_per_arm > 0
    data = problem.data
    return terminal_kernels(data.n_bins, is_signed(problem), data.in_parts) + [(RELAXED, "")] * counted


def _kernels_of_levels(case: Case) -> Needed:
    """Where leaves may be too small, groupings may have to become columns."""
    problem, data = case.problem, case.problem.data
    needed: Needed = [(TWO_LEVELS, SPECIAL), (GROUPINGS, ""), *terminal_kernels(data.n_bins, True, data.in_parts)[1:]]
    if problem.min_leaf > 1 or problem.min_leaf_per_arm > 0:
        groupings = sum(2 ** (levels.n_levels - 1) - 1 for levels in data.levels)
        bins = np.append(data.n_bins[: data.n_ordered], np.full(groupings, 2))
        needed += [*terminal_kernels(bins, False, data.in_parts), (RELAXED, "")]
    return needed


def _deeper_kernels(case: Case) -> Needed:
    sweeps = sweeping_kernels(case.problem, case.short, case.gates)
    long = [(LONG, "")] * is_long(case.problem.data.n_bins, is_signed(case.problem))
    return [(DEEPER, case.kind), *long, *sweeps, *[(FROM_DEPTH_FOUR, "")] * (case.depth > 3)]


def _row_duals_apply(case: Case) -> bool:
    fit = row_duals_apply(case.problem, case.gates) and columns_are_few(case.problem.data.n_bins, case.gates)
    return case.deep and case.block_kind is None and fit


def _block_kernels(case: Case) -> Needed:
    return [] if case.block_kind is None else [(PAIRS + PAIRS_DEEP * (case.depth > 3), case.block_kind.name)]


def rashomon_kernels(case: Case) -> Needed:
    """Kernels that list trees near the best one, beside those of the search for it."""
    return [(ALWAYS, ""), *_terminal_kernels(case), (DEEPER[:1] + RASHOMON, "")]


def _pareto_kernels(case: Case) -> Needed:
    problem = case.problem
    return pareto_kernels(problem.data.n_bins, is_signed(problem), 3 if case.depth > 3 else int(case.depth))


ENGINES = (
    EngineLine(
        "interval DP", "exact.interval_dp",
        "One ordered feature, any depth and number of leaves.",
        "20,000 rows, depth four: 0.01 s with, 0.43 s without; and more than 65,536 values at all.",
        applies=lambda case: one_feature_applies(case.problem),
        kernels=lambda case: [(ONE_FEATURE, "")],
        alone=True,
    ),
    EngineLine(
        "groups of levels", "exact.level_groups",
        'Two actions, depth two, categories="groups" of at most 8 levels, free splits. Where the best leaves are too '
        "small, every grouping becomes a column.",
        "20,000 rows, 8 levels: 1.1 times what 8 numbers in order take; with a column for each grouping, 7 to 250.",
        applies=lambda case: levels_apply(case.problem),
        kernels=_kernels_of_levels,
    ),
    EngineLine(
        "terminal solver", "core.rows",
        "Depth two, and the last two levels of deeper trees.",
        "The core: every tree of depth two is read off tables of pairs of columns.",
        applies=lambda case: not levels_apply(case.problem) and (case.depth >= 2 or case.deep),
        kernels=_terminal_kernels,
    ),
    EngineLine(
        "blocks of two-valued columns", "exact.binary_features",
        "Two actions, all columns of two values, depth three to six; no minimum of leaves, limit of leaves, cost of "
        "questions or given first split. From depth four on columns of few cuts too, a column of two values for each.",
        "Coupon, depth four: 0.06 s with, 0.94 s without; with a leaf penalty 0.54 s and 1.45 s. Broward, 5 cuts a "
        "column, depth four: 0.14 s with, 2.0 s without; 10 cuts 0.44 s and 5.1 s.",
        applies=lambda case: case.block_kind is not None,
        kernels=_block_kernels,
    ),
    EngineLine(
        "depth-first search", "exact.engines",
        "Depth three and more, or a given first split; not where blocks apply.",
        "The core: branch and bound above sweeps of depth two.",
        applies=lambda case: case.deep and case.block_kind is None,
        kernels=_deeper_kernels,
    ),
    EngineLine(
        "subsets", "exact.subset_search",
        "A leaf penalty and no depth limit, or one above four.",
        "Proofs without a depth limit. Where row duals alone prove, it costs: COMPAS, penalty 0.005, 0.26 s with and "
        "0.23 s without.",
        applies=lambda case: case.deep and subset_search_applies(case.problem, case.gates),
        kernels=lambda case: [*SUBSET_KERNELS],
        switch="subsets",
        counters=(RAISED_BY_SUBSETS,),
    ),
    EngineLine(
        "row duals", "exact.bounds.row_duals",
        "A leaf penalty, no depth limit or one above three, at most 16 columns, not all of two values.",
        "COMPAS, penalty 0.005, no depth limit: proved in 0.26 s; without them a time limit, bound 1889 of 2384.",
        applies=_row_duals_apply,
        kernels=lambda case: [(ROW_DUALS, "")],
        switch="row_duals",
        counters=(RowDuals.counter,),
    ),
    EngineLine(
        "conflict pairs", "exact.bounds.conflict_pairs",
        "A leaf penalty, columns that are too many for row duals, at most 4,000 cuts and some 2,900 merged rows.",
        "Coupon, penalty 0.02, no depth limit: proved in 20 s with, a gap of 138 rows of 2,653 without. 1,000 rows of "
        "FICO, 0.05: gaps of 2 to 11 rows after 10 s with, 95 to 100 without.",
        applies=lambda case: case.deep and conflict_pairs_apply(case.problem, case.gates),
        kernels=lambda case: [(CONFLICT_PAIRS, "")],
        switch="conflict_pairs",
        counters=(ConflictPairs.counter, CLOSED_BY_PAIRS),
        bound=lambda shared: ConflictPairs(shared.node, shared.clock, shared.gates, shared.incumbent),
    ),
    EngineLine(
        "constraint generation", "exact.constraint_generation",
        "Depth four and more, at least 2,000 merged rows, few errors of the best tree, no minimum of leaves.",
        "Depth four: wilt 0.22 s with, 1.07 s without; occupancy 1.48 s with, more than 4.2 s (not proved) without.",
        applies=lambda case: case.block_kind is None and generation_may_apply(case.problem, case.gates),
        kernels=_deeper_kernels,
        switch="constraint_generation",
        counters=(GENERATED_ROWS,),
    ),
    EngineLine(
        "incumbent search", "exact.incumbent_search",
        "Depth five and more, no leaf penalty; not where blocks apply.",
        "Better trees long before a proof. Depth five: Broward 558 errors after 1 s with, 572 after 10 s without; wilt "
        "proved in 0.06 s with, 0.14 s without.",
        applies=lambda case: case.block_kind is None and incumbent_search_applies(case.problem, case.gates),
        kernels=_deeper_kernels,
        switch="incumbent_search",
        counters=(STARTED,),
    ),
    EngineLine(
        "fractional programming", "nonadditive.fractional",
        "Objectives that are a ratio of sums over rows: F-score.",
        "Exact F-scores; blocks of two-valued columns take 2 instead of 10 ms, and 7 instead of 39.",
        asked_by='objective="f_score"',
        kernels=lambda case: [(PAIRS + PAIR_ROUNDS, kind) for kind in BLOCKS],
    ),
    EngineLine(
        "ranking search", "nonadditive.ranking",
        "Objectives of leaf statistics: area under the ROC curve, in whole or in part.",
        "Exact areas: no sum over rows states them.",
        asked_by='objective="auc"',
        kernels=lambda case: [(RANKING + ROW_DUALS, "")],
    ),
    EngineLine(
        "monotone objectives by Pareto fronts", "multi_objective.monotone",
        "Objectives that grow with the errors of every class; depth up to three is quick.",
        "Exact for any such function, given as Python.",
        asked_by="objective=MonotoneObjective(...)",
        kernels=_pareto_kernels,
    ),
    EngineLine(
        "budgets and shares", "constrained.solve",
        "Limits on what actions or questions cost, or on whom an action gets.",
        "The Lagrangian dual by the direct solver; Pareto fronts close its gap up to depth three.",
        asked_by="constraints=",
        kernels=_pareto_kernels,
    ),
    EngineLine(
        "near-ties", "rashomon.enumerate",
        "All trees within a slack of the optimum; depth up to three.",
        "A complete list, and how many trees there are.",
        asked_by="near_ties()",
        kernels=rashomon_kernels,
    ),
    EngineLine(
        "penalty path", "regularization_path",
        "The best tree of every leaf penalty.",
        "As many searches as there are best trees, without a grid of penalties.",
        asked_by="tree_path()",
    ),
    EngineLine(
        "guesses", "guided.solve",
        "A reference model that suggests thresholds, a depth and bounds; around any solver.",
        "Fewer cuts: the proof is for the guesses.",
        asked_by="guesses=",
    ),
    EngineLine(
        "approximate", "approximate.auto",
        "Sampling where an exact search is estimated to be long, or duplication of weighted rows.",
        "A tree in time, without a proof.",
        asked_by='solver="auto", "sampling", "duplication"',
    ),
    EngineLine(
        "greedy trees of low test cost", "test_costs.grow",
        "Tests that cost money, pain or time; any size.",
        "A low expected cost, without a proof.",
        asked_by="LowCostTreeClassifier",
        kernels=lambda case: [(LOW_COST, "")],
    ),
    EngineLine(
        "out of core", "out_of_core.table_search",
        "Encoded rows that memory does not hold, or of a cluster; depth up to three.",
        "Exact from tables of pairs and triples that stream by.",
        asked_by="fit(encode(...))",
        kernels=lambda case: [each for codes in CODES for each in streamed_kernels(codes)],
    ),
)  # fmt: skip


#: Switches of engines beside the core.
SWITCHES = tuple(engine.switch for engine in ENGINES if engine.switch)


def engines_for(case: Case) -> list[EngineLine]:
    """The engines that may work on a problem in the exact search: one that works alone, or all that apply."""
    chosen = []
    for engine in ENGINES:  # those that work alone stand first
        if engine.applies is not None and engine.switch not in case.without and engine.applies(case):
            if engine.alone:
                return [engine]
            chosen.append(engine)
    return chosen


def kernels_of(case: Case) -> Needed:
    """The kernels that the exact search for a problem may call."""
    engines = engines_for(case)
    always: Needed = [(GAPS, width_of(case.problem))]
    always += [] if any(engine.alone for engine in engines) else [(ALWAYS, "")]
    return always + [pair for engine in engines for pair in engine.kernels(case)]
