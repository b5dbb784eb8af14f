"""The search for incumbents: its trees obey every rule and cost what they are said to, and they get better."""

from __future__ import annotations

import itertools
import math
import threading
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from policytree.problem.types import GATES, SearchLimits, Status
from policytree.solvers import solve_direct
from policytree.solvers.core.columns import rows_of_splits
from policytree.solvers.core.compilation import load_kernels
from policytree.solvers.core.limits import Clock, stopped_by
from policytree.solvers.core.rows import costs_of_rows, depth_two, expand, new_control, prepare, size_of
from policytree.solvers.core.scoring import scored_tree
from policytree.solvers.exact import grow_incumbent as grow_incumbent_module
from policytree.solvers.exact.engine_table import Case as SearchCase
from policytree.solvers.exact.engine_table import kernels_of
from policytree.solvers.exact.engines import DepthEngine
from policytree.solvers.exact.grow_incumbent import grow_incumbent
from policytree.solvers.exact.incumbent_search import LEAF, IncumbentSearch, at_few_cuts, pruned
from policytree.solvers.exact.shared_state import STARTED, SharedState
from tests.support.strategies import Case, planted_case

#: Wherever it is possible, for as long as it finds anything.
ALWAYS = replace(GATES, least_started_depth=0, start_share=1e6, start_saving=0.0)
NEVER = replace(GATES, least_started_depth=math.inf)


def started(case: Case, most_cuts: int = GATES.most_start_cuts) -> IncumbentSearch:
    """The search at its beginning, where one leaf is the incumbent."""
    problem = case.problem()
    gates = replace(ALWAYS, most_start_cuts=most_cuts)
    searched = SearchCase.of(problem, gates)
    load_kernels(kernels_of(searched))
    clock = Clock(None, new_control())
    node = prepare(problem, searched.fixed, True, gates=gates)
    shared = SharedState(problem, node, *node.leaf(), SearchLimits(gates=gates), clock, searched.fixed)
    _, _, (order, hints) = depth_two(node, 4, clock.flag)
    return IncumbentSearch(shared, order, hints)


def to_the_end(search: IncumbentSearch) -> list[int]:
    """Values of its better and better trees."""
    values = []
    while search.advance(math.inf):
        values.append(search.best[0])
    return values


def drawn(seed: int) -> Case:
    """Classes or rewards, weights, missing values, minima of leaves, limits of leaves, costs of questions."""
    rng = np.random.default_rng(seed)
    n, p, K = int(rng.integers(10, 17)), int(rng.integers(2, 4)), int(rng.integers(2, 4))
    X = rng.integers(0, int(rng.choice([3, 5, 8])), (n, p)).astype(float)
    X[rng.random(X.shape) < rng.choice([0.0, 0.15])] = np.nan
    losses = rng.integers(1, 6, n)[:, None] * (rng.integers(0, K, n)[:, None] != np.arange(K)).astype(float)
    if rng.random() < 0.4:
        losses = rng.integers(-40, 40, (n, K)) / 8
    case = Case(X, losses, max_depth=int(rng.integers(4, 6)))
    if rng.random() < 0.3:
        case = case.but(min_leaf=int(rng.integers(2, 4)))
    if rng.random() < 0.3:
        case = case.but(max_leaf_nodes=int(rng.integers(5, 9)))
    if rng.random() < 0.3:
        case = case.but(feature_costs=rng.integers(0, 3, p) / 8)
    if rng.random() < 0.2:
        case = case.but(root_features=(int(rng.integers(p)),))
    return case


@given(seed=st.integers(0, 2**32 - 1), most_cuts=st.sampled_from([1, 3, 100]))
@settings(max_examples=60, deadline=None)
def test_trees_obey_every_rule_and_cost_what_they_are_said_to(seed, most_cuts):
    case = drawn(seed)
    search = started(case, most_cuts)
    assume(search.depth > 3)
    values = to_the_end(search)
    assert values == sorted(set(values), reverse=True)
    problem, (value, splits) = case.problem(), search.best
    splits = expand(search.node, splits)
    tree, objective = scored_tree(problem, splits)
    claimed = problem.losses[:, 0].sum() + search.shared.fixed.to_float(value)
    assert claimed == pytest.approx(objective, abs=1e-9)
    assert claimed >= case.fast_optimum(8) / 8 - 1e-9
    depth, leaves = size_of(splits)
    assert depth <= case.max_depth and leaves <= (case.max_leaf_nodes or leaves)
    assert tree.n_node_samples[tree.is_leaf].min() >= case.min_leaf
    if case.root_features is not None and splits[0][0] >= 0:
        assert problem.data.columns[splits[0][0]].feature in case.root_features


@pytest.mark.parametrize("seed", range(4))
def test_better_than_the_tree_that_is_grown_once(seed):
    case = planted_case(np.random.default_rng([seed, 41]), 400, 6, 2 + seed % 2, 12, max_depth=5)
    search = started(case)
    once = grow_incumbent(search.node, [LEAF], 5, new_control(), exact=3)[0]
    assert to_the_end(search)[-1] < once


@pytest.mark.parametrize("rules", [{}, {"min_leaf": 4}, {"max_leaf_nodes": 12}, {"feature_costs": np.arange(5) / 4}])
def test_whole_searches_prove_the_same_with_and_without(rules):
    """With one thread and two: the same objective and the same tree."""
    rng = np.random.default_rng(42)
    case = planted_case(rng, 90, 5, 2, 5, max_depth=5, **rules)
    one, two = (solve_direct(case.problem(), SearchLimits(n_jobs=jobs, gates=ALWAYS)) for jobs in (1, 2))
    without = solve_direct(case.problem(), SearchLimits(gates=NEVER))
    assert one.counters["better_trees_of_incumbent_search"] > 0 == without.counters["better_trees_of_incumbent_search"]
    assert one.status is two.status is without.status is Status.OPTIMAL
    assert one.objective == two.objective == pytest.approx(without.objective, abs=1e-9)
    np.testing.assert_array_equal(one.tree.feature, two.tree.feature)
    np.testing.assert_array_equal(one.tree.threshold, two.tree.threshold)


def test_two_levels_are_chosen_anew_for_the_subtrees_below():
    """As good as the best pair of levels by brute force, and no change where there is none."""
    case = planted_case(np.random.default_rng(43), 120, 3, 2, 5, max_depth=5)
    search = started(case)
    node, depth_three = search.node, [(0, 1), LEAF, (1, 2), LEAF, LEAF]
    poor = [(2, 0), (0, 0), *depth_three, LEAF, (1, 0), LEAF, *depth_three]
    better = search._rerouted(node, poor, 5)
    rows = [rows for rows, _ in zip(rows_of_splits(node, poor), poor, strict=True)]
    subtrees = [(2, depth_three), (7, [LEAF]), (9, [LEAF]), (10, depth_three)]
    costs = np.array([costs_of_rows(node, tree, rows[at])[1] for at, tree in subtrees])
    splits = [(f, t) for f in range(3) for t in range(node.bins[f] - 1)]

    def best(rows):
        sides = (node.codes[f, rows] <= t for f, t in splits)
        return min([costs[:, rows].sum(axis=1).min(), *(least(rows[s]) + least(rows[~s]) for s in sides)])

    def least(rows):
        return costs[:, rows].sum(axis=1).min() if len(rows) else 0

    everything = np.arange(node.n_rows)
    optimum = min(best(everything[side]) + best(everything[~side]) for side in (node.codes[f] <= t for f, t in splits))
    assert costs_of_rows(node, better, everything)[0] <= optimum
    assert search._rerouted(node, better, 5) == better


@pytest.mark.parametrize("most", range(1, 9))
def test_pruning_finds_the_best_tree_of_so_many_leaves(most):
    case = planted_case(np.random.default_rng(44), 80, 3, 2, 6, max_depth=3, feature_costs=np.array([0.5, 0.0, 1.0]))
    node = started(case.but(max_depth=4)).node
    _, splits = grow_incumbent(node, [LEAF], 3, new_control(), exact=3)

    def every(splits):
        """All trees that are left if subtrees become leaves."""
        column, end, open_ = splits[0][0], 1, 1
        if column < 0:
            return [[LEAF]]
        while open_ > 0:
            open_, end = open_ + (1 if splits[end][0] >= 0 else -1), end + 1
        pairs = itertools.product(every(splits[1:end]), every(splits[end:]))
        return [[LEAF], *([splits[0], *one, *other] for one, other in pairs)]

    def cost(tree):
        return costs_of_rows(node, tree, np.arange(node.n_rows))[0]

    value, tree = pruned(node, splits, most)
    assert value == cost(tree) == min(cost(tree) for tree in every(splits) if size_of(tree)[1] <= most)
    assert size_of(tree)[1] <= most


def test_few_cuts_are_cuts_of_the_table():
    """Trees at few cuts are trees of all rows, with the same value."""
    case = planted_case(np.random.default_rng(45), 500, 3, 2, 60, max_depth=4)
    node = started(case).node
    coarse = at_few_cuts(node, 5)
    for few, all_codes in zip(coarse.codes, node.codes, strict=True):
        assert len(np.unique(few)) <= 6
        order = np.argsort(all_codes, kind="stable")
        assert (np.diff(few[order].astype(int)) >= 0).all() and (few >= all_codes).all()
    value, splits = grow_incumbent(coarse, [LEAF], 4, new_control(), exact=3)
    assert value == costs_of_rows(node, splits, np.arange(node.n_rows))[0]
    assert at_few_cuts(node, 59) is node


def test_work_that_is_not_paid_for_is_not_done():
    search = started(planted_case(np.random.default_rng(46), 300, 4, 2, 9, max_depth=5))
    assert not search.advance(0.0) and search.best[1] == [LEAF]
    for _ in range(10_000):
        if search.advance(1e-4):
            return
    raise AssertionError("shares add up")


def test_a_raised_flag_ends_it():
    search = started(planted_case(np.random.default_rng(47), 300, 4, 2, 9, max_depth=5))
    search.shared.clock.stop(Status.INTERRUPTED)
    assert not search.advance(math.inf)


def test_interrupted_beside_the_search_of_depth_four():
    """The tree shown is the tree kept, and Ctrl-C ends the search within a step."""
    case = planted_case(np.random.default_rng(48), 2_000, 8, 2, 40, max_depth=5)
    seen, enough = [], threading.Event()

    def look(state):
        seen.append(state.objective)
        if len(set(seen)) > 1:
            enough.set()

    with stopped_by(enough):
        found = solve_direct(case.problem(), SearchLimits(time_limit=60.0, progress=look))
    assert found.status is Status.INTERRUPTED
    assert found.objective <= min(seen) + 1e-9


def test_subtrees_that_are_kept_are_bounded(monkeypatch):
    """Dropping them costs work and changes nothing."""
    case = planted_case(np.random.default_rng(49), 200, 4, 2, 9, max_depth=6)
    expected = to_the_end(started(case))
    monkeypatch.setattr(grow_incumbent_module, "MOST_KEPT", 5)
    search = started(case)
    assert to_the_end(search) == expected
    assert 0 < len(search.grower._solved) <= 5


def test_nothing_is_done_once_no_tree_can_be_better():
    """A tree without errors ends the search, whatever work is left to it."""
    rng = np.random.default_rng(50)
    X = rng.integers(0, 9, (200, 4)).astype(float)
    wrong = ((X[:, 0] > 3) ^ (X[:, 1] > 5) ^ (X[:, 2] > 4))[:, None] != np.arange(2)
    search = started(Case(X, wrong.astype(float), max_depth=5))
    assert to_the_end(search)[-1] == search.shared.incumbent.bound
    assert not search.advance(math.inf) and next(search._steps, None) is not None


def test_trees_that_are_worse_than_the_incumbent_are_not_counted():
    """The depth-first search may have found a better one since."""
    search = started(planted_case(np.random.default_rng(46), 300, 4, 2, 9, max_depth=5))
    search.shared.incumbent.value = search.shared.incumbent.bound + 1
    assert not to_the_end(search) and search.shared.used[STARTED] == 0


def test_beside_constraint_generation_its_share_is_of_the_work_on_some_rows(monkeypatch):
    """The rows inside take a small part of the work of all rows."""
    rng = np.random.default_rng(51)
    X = rng.integers(0, 30, (3_000, 4)).astype(float)
    wrong = ((X[:, 0] > 9) ^ (X[:, 1] > 15) ^ (rng.random(3_000) < 0.02))[:, None] != np.arange(2)
    turns = []
    take_turn = DepthEngine.take_turn

    def watch(engine, node, counters):
        turns.append((node.n_rows, engine.shared.node.n_rows))
        take_turn(engine, node, counters)

    monkeypatch.setattr(DepthEngine, "take_turn", watch)
    case = Case(X, wrong.astype(float), max_depth=5)
    solve_direct(case.problem(), SearchLimits(time_limit=20.0, gates=replace(GATES, start_saving=0.0)))
    assert turns and all(inside < rows for inside, rows in turns)


def test_first_trees_are_left_and_taken_up_beside_the_search():
    """So a large table of few errors is not grown at all cuts before some of its rows are searched."""
    case = planted_case(np.random.default_rng(52), 400, 4, 2, 40, max_depth=5)
    whole, little, nothing = (started(case) for _ in range(3))
    for search, seconds in (whole, math.inf), (little, 1e-3), (nothing, 0.0):
        search.shared.gates = replace(search.shared.gates, most_start_seconds=seconds)
    assert whole.begin() and not little.begin() and not nothing.begin()
    expected = whole.best[0]
    for search in little, nothing:
        assert expected in to_the_end(search)
