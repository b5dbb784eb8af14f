"""The direct solver: exact search over trees for real-valued losses, by bounds and pair tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from policytree.problem.split_columns import with_every_grouping
from policytree.problem.types import Problem, SearchLimits, Solution, Status
from policytree.solvers.core.columns import without_gaps
from policytree.solvers.core.compilation import (
    ALWAYS,
    SUBSET_VERSIONS,
    SUBSETS,
    Needed,
    are_loaded,
    is_special,
    load_kernels,
)
from policytree.solvers.core.limits import Clock
from policytree.solvers.core.rows import (
    depth_two,
    grow_fully,
    new_control,
    note_addresses,
    prepare,
    refuse_memory,
)
from policytree.solvers.core.scoring import leaf_only
from policytree.solvers.exact.binary_features import BinaryRoot
from policytree.solvers.exact.bounds.root_bound import RootBound
from policytree.solvers.exact.bounds.row_duals import boxes_are_few
from policytree.solvers.exact.engine_table import ENGINES, Case, engines_for, kernels_of
from policytree.solvers.exact.engine_table import SWITCHES as ENGINE_SWITCHES
from policytree.solvers.exact.engines import (
    BoundEngine,
    DepthEngine,
    DualEngine,
    Engine,
    SubsetEngine,
    TreeEngine,
    give_turns,
)
from policytree.solvers.exact.estimate import estimated_seconds
from policytree.solvers.exact.interval_dp import one_feature_applies, solve_one_feature
from policytree.solvers.exact.level_groups import levels_apply, solve_levels
from policytree.solvers.exact.shared_state import SharedState
from policytree.solvers.exact.subset_search import choose_sets
from policytree.solvers.exact.subset_storage import BitMaker, ListMaker
from policytree.solvers.kernels.base.layout import FEASIBLE, TWO, UNLIMITED
from policytree.solvers.kernels.base.sums import best_one_split


def solve_direct(
    problem: Problem,
    limits: SearchLimits | None = None,
    *,
    similar_support: bool = True,
    cache: bool = True,
    look_ahead: bool = True,
    leaf_counts: bool = True,
    merge: bool = True,
    **engines: bool,
) -> Solution:
    """Find the best tree, with a proof.

    Parameters
    ----------
    problem : Problem
    limits : SearchLimits, optional
    similar_support, cache, look_ahead, leaf_counts, merge : bool
        Switches that only save work, and never change the objective: bounds from neighbouring cuts; the cache of solved
        sets; the price of two leaves for a side that is no leaf; the price of a deep tree's leaves; merging equal rows.
    **engines : bool
        Switches of the engines and bounds beside the depth-first search, where they apply: ``row_duals``, ``subsets``
        and the others of ``exact/engine_table.py::SWITCHES``. They never change the objective of a search that ends
        with a proof.

    Returns
    -------
    Solution
        ``status`` is OPTIMAL (OPTIMAL_GIVEN_GUESSES if thresholds were thinned), or says which limit ended the
        search; the tree and the lower bound are valid either way.

    Notes
    -----
    Losses become int64 fixed point, so sums are exact and pruning needs no tolerance. Subtrees of depth two are solved
    by tables over pairs of features (after the specialised depth-two solver of Demirovic et al., MurTree, JMLR 2022);
    root cuts are refuted by similar-support bounds (Angelino et al., CORELS, JMLR 2018; Brita et al., ConTree, AAAI
    2025), and a branch ends when the leaf penalty of its next split exceeds what is left to gain.

    Examples
    --------
    >>> import numpy as np
    >>> from policytree.problem.types import Problem
    >>> from policytree.solvers import solve_direct
    >>> from policytree.solvers.core.binning import bin_matrix
    >>> losses = np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    >>> problem = Problem(bin_matrix(np.array([[1.0], [2.0], [3.0]])), losses, max_depth=1)
    >>> solution = solve_direct(problem)
    >>> solution.objective, solution.status.name
    (0.0, 'OPTIMAL')
    """
    unknown = engines.keys() - {*ENGINE_SWITCHES}
    if unknown:
        raise TypeError(f"solve_direct() has no switch {min(unknown)!r}; it has {', '.join(SWITCHES)}.")
    problem = without_gaps(problem)
    limits = limits or SearchLimits()
    case = Case.of(problem, limits.gates, frozenset(name for name, used in engines.items() if not used))
    clock = Clock(limits.time_limit, memory_limit=limits.memory_limit)
    clock.flag = new_control(similar_support, cache, look_ahead, leaf_counts)
    return _load_and_search(case, limits, clock, merge)


#: Switches of bounds inside the kernels, of the merging of equal rows, and of engines.
SWITCHES = ("similar_support", "cache", "look_ahead", "leaf_counts", "merge", *ENGINE_SWITCHES)
vars(solve_direct).update(estimated_seconds=estimated_seconds, switches=SWITCHES)  # a long search is warned of


def _load_and_search(case: Case, limits: SearchLimits, clock: Clock, merge: bool) -> Solution:
    """Load the kernels that the search may call, then search.

    One of two versions of the search over subsets will do, and merged rows tell which. Where neither is loaded yet,
    rows are merged first; otherwise that search loads the one that it needs.
    """
    begun: _IterativeDeepening | Solution | None = None
    compile_seconds, every = 0.0, kernels_of(case)
    needed = [pair for pair in every if pair not in SUBSET_VERSIONS]
    if len(needed) < len(every) and not any(are_loaded([pair]) for pair in SUBSET_VERSIONS):
        with clock.paused():
            compile_seconds = load_kernels([(ALWAYS, "")], then=needed)
        begun = clock.watch(lambda: _begin(case, limits, clock, merge, choose_sets=True))
        needed += begun.version_of_subsets() if isinstance(begun, _IterativeDeepening) else []
    with clock.paused():
        compile_seconds += load_kernels(needed)
    note_addresses(clock.flag)
    solution = clock.watch(lambda: _end(begun or _begin(case, limits, clock, merge)))
    return replace(solution, compile_seconds=compile_seconds) if compile_seconds else solution


def _begin(
    case: Case, limits: SearchLimits, clock: Clock, merge: bool, choose_sets: bool = False
) -> _IterativeDeepening | Solution:
    """Merge the rows; returns the search to be made, or the solution where there is none to make."""
    problem, fixed = case.problem, case.fixed
    if one_feature_applies(problem):
        return solve_one_feature(problem, fixed, clock, limits)
    refuse_memory(problem, limits)
    if levels_apply(problem):
        solution = solve_levels(problem, fixed, clock, limits, merge)
        if solution is not None:
            return solution
        problem = replace(problem, data=with_every_grouping(problem.data))
    node = prepare(problem, fixed, merge, is_special(problem), limits.gates)
    leaf, floor = node.leaf()
    if leaf >= FEASIBLE:
        return leaf_only(problem, fixed, Status.INFEASIBLE, clock.seconds())
    chosen = engines_for(case)
    counters = [counter for engine in ENGINES for counter in engine.counters]
    shared = SharedState(problem, node, leaf, floor, limits, clock, fixed, {engine.name for engine in chosen}, counters)
    bounds = [engine.bound(shared) for engine in chosen if engine.bound is not None]
    search = _IterativeDeepening(shared, problem, case.block_kind, bounds)
    if choose_sets:
        search.choose_sets()
    return search


def _end(begun: _IterativeDeepening | Solution) -> Solution:
    return begun if isinstance(begun, Solution) else begun.solve()


class _IterativeDeepening:
    """Decides which engine works when: shallow problems outright, then depth after depth, with the others in turns."""

    def __init__(self, shared: SharedState, problem: Problem, kind: np.dtype | None, bounds: Sequence[RootBound]):
        self.shared, self.gates, self.kind, self.bounds = shared, shared.gates, kind, bounds
        # The most that subsets may take where blocks of pair sums do the depths.
        self.by_blocks = math.inf if kind is None else estimated_seconds(problem, self.gates)
        # The penalty may have been rounded to nothing.
        self.by_subsets = "subsets" in shared.engines and shared.node.penalty > 0
        self.by_duals = "row duals" in shared.engines and boxes_are_few(shared.node, self.gates)
        self.blocks: BinaryRoot | None = None
        self.sets: ListMaker | BitMaker | None = None

    def choose_sets(self) -> None:
        """Choose how the search over subsets keeps them, before it begins."""
        if self.by_subsets:
            self.sets = choose_sets(self.shared.node, self.shared.restricted_roots, gates=self.gates)

    def version_of_subsets(self) -> Needed:
        """The kernels that keep subsets as was chosen; none if they are not searched."""
        return [] if self.sets is None else [(SUBSETS, self.sets.keeps)]

    def solve(self) -> Solution:
        """Search until the bound meets the incumbent or a limit strikes."""
        shared = self.shared
        if shared.useful_depth() == 0:
            shared.incumbent.raise_bound(shared.incumbent.value)
        elif self._splits_are_free():
            shared.incumbent.offer(*grow_fully(shared.node))
            shared.incumbent.raise_bound(shared.incumbent.value)
        elif shared.useful_depth() == 1 and shared.any_root:
            self._try_one_split()
            shared.incumbent.raise_bound(shared.incumbent.value)
        else:
            self._search_depths()
        return shared.result()

    def _splits_are_free(self) -> bool:
        shared = self.shared
        free = shared.node.penalty == 0 and len(shared.node.rules.minima) == 0 and not shared.node.priced
        return free and shared.depth == shared.leaves == UNLIMITED and shared.any_root

    def _try_one_split(self) -> None:
        value, f, t = best_one_split(self.shared.node.rows, self.shared.node.rules)
        if f >= 0:
            self.shared.incumbent.offer(value + 2 * self.shared.node.penalty, [(int(f), int(t)), (-1, 0), (-1, 0)])

    def _search_depths(self) -> None:
        """Solve depth two outright; beyond, its tree is the first incumbent and its values order the root features."""
        shared = self.shared
        if self.kind is not None:
            value, f, t, order, hints = self._make_blocks(self.kind)
        else:
            (value, f, t), _, (order, hints) = depth_two(shared.node, min(shared.leaves, 4), shared.clock.flag)
        first = 3
        if shared.any_root:
            f, t = int(f), int(t)  # as core.rows.expand reads them
            tree = [(-1, 0) if f < 0 else (-2 - f, -1 - t if shared.leaves == 3 else t)]
            shared.incumbent.value, shared.incumbent.tree = int(value), tree
        else:  # the search below starts at every root feature that is allowed
            first = min(shared.useful_depth(), 2)
        if shared.clock.stopped:
            if shared.any_root:
                self._try_one_split()  # takes no time, and may be better than what the first splits have come to
            return
        shared.work[TWO] += 1
        if shared.useful_depth() < first:
            shared.incumbent.raise_bound(shared.incumbent.value)
            return
        self._deepen(first, order, hints)

    def _deepen(self, first: int, order: np.ndarray, hints: np.ndarray) -> None:
        """Search depths from ``first`` on, with turns of the other engines before each.

        Shallower problems are cheap and leave an incumbent behind; their bounds do not hold for deeper trees.
        """
        shared = self.shared
        duals = DualEngine(shared, self.by_duals)
        depths = DepthEngine(shared, order, hints, first, duals, self.blocks)
        engines: list[Engine] = [TreeEngine(depths), *(BoundEngine(shared, bound) for bound in self.bounds)]
        if self.by_subsets:
            engines.append(SubsetEngine(shared, self.bounds, duals, self.by_blocks, self.sets))
        engines += [duals, depths]
        for depth in range(depths.first, depths.target + 1):
            give_turns(shared, engines, depths.ahead(depth))
            if shared.done:
                return
            if shared.useful_depth() <= depth:  # an incumbent so good that deeper trees cannot pay, or none are left
                break
        shared.incumbent.raise_bound(shared.incumbent.value)

    def _make_blocks(self, kind: np.dtype) -> tuple[int, int, int, np.ndarray, np.ndarray]:
        """Solve depth two by blocks of two-valued columns, with which the search beyond goes on."""
        shared, node = self.shared, self.shared.node
        best, hints = shared.incumbent.value, np.zeros(len(node.bins), np.int64)
        useful, most_shared = shared.useful_depth(), self.gates.most_shared_bytes
        if not shared.clock.fits_memory(BinaryRoot.bytes(node, kind, useful, most_shared)):
            shared.clock.stop(Status.MEMORY_LIMIT)
            return best, -1, 0, hints, hints
        self.blocks = BinaryRoot.solved(node, kind, useful, shared.clock.flag, most_shared)
        shared.work += self.blocks.counters
        order = self.blocks.first
        f = int(np.argmin(order))
        return (int(order[f]), f, 0, order, hints) if order[f] < best else (best, -1, 0, order, hints)
