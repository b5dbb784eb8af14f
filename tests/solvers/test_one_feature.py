"""One feature: dynamic programming against brute force, at any size and under every limit."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from policytree.problem.types import Problem, SearchLimits, SizeGates, Status
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.core.columns import rows_of_splits
from policytree.solvers.core.compilation import ONE_FEATURE, load_kernels
from policytree.solvers.core.fixed_point import to_fixed_point
from policytree.solvers.core.limits import Clock
from policytree.solvers.core.rows import new_control, prepare
from policytree.solvers.core.scoring import scored_tree
from policytree.solvers.exact import direct, engine_table, interval_dp
from policytree.solvers.exact.bounds.row_duals import RowDuals
from policytree.solvers.exact.direct import solve_direct
from policytree.solvers.exact.engines import DualEngine, SubsetEngine
from policytree.solvers.exact.interval_dp import _Partition, one_feature_applies
from policytree.solvers.exact.subset_search import SubsetSearch, start_subset_search
from policytree.solvers.kernels.base.layout import INF
from policytree.solvers.kernels.depth_two.interval_dp import best_intervals, useful_ends
from tests.contract.solving import assert_same_tree
from tests.support import interval_oracles
from tests.support.strategies import Case, random_case


def one_feature_case(rng) -> Case:
    """One column with repeats and gaps; every constraint that dynamic programming takes."""
    case = random_case(rng, max_rows=11, costs=False)
    x = rng.integers(0, rng.choice([2, 4, 12]), len(case.losses)).astype(float)
    x[rng.random(len(x)) < rng.choice([0.0, 0.2, 0.6])] = np.nan
    return case.but(X=x[:, None], categorical=(), root_features=None, feature_costs=None, weights=None)


@pytest.mark.parametrize("seed", range(8))
def test_it_agrees_with_brute_force(seed):
    rng = np.random.default_rng([seed, 141])
    taken = 0
    for _ in range(250):
        case = one_feature_case(rng)
        problem = case.problem()
        taken += one_feature_applies(problem)
        solution, optimum = solve_direct(problem), case.optimum()
        if optimum is None:
            assert solution.status is Status.INFEASIBLE
            continue
        assert solution.status is Status.OPTIMAL, f"{case!r}"
        assert abs(solution.objective - float(optimum)) <= 1e-9 + 2 * solution.resolution, f"{case!r}"
        assert abs(solution.lower_bound - float(optimum)) <= 1e-9 + 2 * solution.resolution
        assert case.max_depth is None or solution.tree.max_depth <= case.max_depth, f"{case!r}"
        assert case.max_leaf_nodes is None or solution.tree.n_leaves <= case.max_leaf_nodes
        rows = solution.tree.n_node_samples[solution.tree.is_leaf]
        assert rows.min() >= case.min_leaf
    assert taken > 150


@pytest.mark.parametrize("seed", range(3))
def test_it_agrees_with_the_general_search(seed, monkeypatch):
    """Some hundred values, real weights, limits of depth and minimum counts."""
    rng = np.random.default_rng([seed, 142])
    for _ in range(12):
        n, K = int(rng.integers(20, 150)), int(rng.integers(2, 4))
        x = rng.normal(size=n).round(int(rng.integers(1, 4)))
        x[rng.random(n) < rng.choice([0.0, 0.1])] = np.nan
        losses = rng.normal(size=(n, K))
        arms = rng.integers(0, K, n)
        rules = {"min_leaf": int(rng.choice([1, 7])), "min_leaf_per_arm": int(rng.choice([0, 2])), "arms": arms}
        penalty, depth = float(rng.choice([0.0, 0.4])), int(rng.integers(1, 4))
        problem = Problem(bin_matrix(x[:, None]), losses, penalty, depth, **rules)
        assert one_feature_applies(problem)
        found = solve_direct(problem)
        with monkeypatch.context() as patch:
            for room in (direct, engine_table):
                patch.setattr(room, "one_feature_applies", lambda problem: False)
            other = solve_direct(problem)
        assert found.status is other.status
        if found.status is Status.OPTIMAL:
            assert abs(found.objective - other.objective) <= 1e-9 * n
            assert found.tree.max_depth <= problem.max_depth


@pytest.mark.parametrize("seed", range(3))
def test_it_agrees_with_plain_dynamic_programming(seed):
    rng = np.random.default_rng([seed, 143])
    for most in (None, 3, 7, 40):
        n, K = 800, int(rng.integers(2, 5))
        x, losses = rng.integers(0, 300, n), rng.integers(-9, 10, (n, K))
        penalty, least = int(rng.integers(0, 30)), int(rng.choice([1, 1, 20]))
        problem = Problem(
            bin_matrix(x[:, None]), losses.astype(float), penalty, None, min_leaf=least, max_leaf_nodes=most
        )
        solution = solve_direct(problem)
        assert solution.objective == interval_oracles.best_intervals(x, losses, most, penalty, least)
        assert solution.status is Status.OPTIMAL
        assert 2 ** (solution.tree.max_depth - 1) < max(solution.tree.n_leaves, 1) + 1


def partition(problem, limit=None, most_bytes=math.inf):
    load_kernels([(ONE_FEATURE, "")])
    fixed = to_fixed_point(problem.losses, problem.leaf_penalty, problem.data.n_rows)
    return _Partition(problem, fixed, Clock(limit), SearchLimits(gates=SizeGates(most_layer_bytes=most_bytes)))


def partition_of(problem):
    found = partition(problem)
    found.solve()
    return found


def test_limits_end_it_with_a_tree_and_a_bound():
    rng = np.random.default_rng(144)
    x, losses = rng.normal(size=3000), rng.normal(size=(3000, 3))
    problem = Problem(bin_matrix(x[:, None]), losses, 0.0, None, max_leaf_nodes=100)
    whole = partition(problem)
    whole.solve()
    assert whole.incumbent.bound == whole.incumbent.value and len(whole.incumbent.tree) <= 100
    short = partition(problem)
    short.clock.fits_memory = lambda more: False
    short.solve()
    assert short.incumbent.bound <= whole.incumbent.value <= short.incumbent.value and len(short.incumbent.tree) <= 100
    assert short.incumbent.bound == short.incumbent.value or short.clock.status is Status.MEMORY_LIMIT
    stopped = partition(problem)
    stopped.clock.stop(Status.INTERRUPTED)
    stopped.solve()
    assert stopped.incumbent.bound <= whole.incumbent.value <= stopped.incumbent.value < 1 << 59
    solution = solve_direct(problem, SearchLimits(time_limit=0.0))
    assert solution.lower_bound <= solution.objective and solution.tree.n_leaves >= 1


@pytest.mark.parametrize("seed", range(4))
def test_starts_that_memory_does_not_hold_are_computed_again(seed):
    rng = np.random.default_rng([seed, 146])
    n, K = 400, int(rng.integers(2, 4))
    x, losses = rng.integers(0, 300, n).astype(float), rng.integers(-9, 10, (n, K)).astype(float)
    x[rng.random(n) < rng.choice([0.0, 0.2])] = np.nan
    for most in (11, 17, 64):
        rules = {"min_leaf": int(rng.choice([1, 3])), "max_leaf_nodes": most}
        problem = Problem(bin_matrix(x[:, None]), losses, 0.0, None, **rules)
        whole = solve_direct(problem)
        search = partition(problem, most_bytes=0)
        search._limited()
        again = solve_direct(problem, SearchLimits(gates=SizeGates(most_layer_bytes=0)))
        assert again.objective == whole.objective
        assert_same_tree(again.tree, whole.tree)
        assert search.incumbent.value == search.incumbent.bound and search.passes > search.most  # blocks were needed
        assert interval_dp._Layers(search).bytes < 60 * len(search.ends) * most


def test_a_stop_while_starts_are_computed_again_leaves_a_tree():
    rng = np.random.default_rng(147)
    x, losses = rng.normal(size=500), rng.normal(size=(500, 3))
    x[:50] = np.nan
    problem = Problem(bin_matrix(x[:, None]), losses, 0.0, None, max_leaf_nodes=40)
    search = partition(problem, most_bytes=0)
    search._take([(0, len(search.ends) - 1, True)])
    before, add = search.incumbent.value, search.add

    def stop_after(costs, count):
        if search.passes == search.most + 2:
            search.clock.stop(Status.TIME_LIMIT)
        return add(costs, count)

    search.add = stop_after
    search._limited()
    assert (
        search.passes > search.most
        and search.incumbent.value == before > search.incumbent.bound == partition_of(problem).incumbent.value
    )


def test_a_stop_after_the_first_pass_leaves_its_bound(monkeypatch):
    rng = np.random.default_rng(148)
    x, losses = rng.normal(size=300), rng.integers(0, 5, (300, 3)).astype(float)
    problem = Problem(bin_matrix(x[:, None]), losses, 0.0, 3)
    search = partition(problem)
    monkeypatch.setattr(search, "_multiplier", lambda: search.clock.stop(Status.TIME_LIMIT))
    search.solve()
    fixed = to_fixed_point(problem.losses, problem.leaf_penalty, problem.data.n_rows)
    bound = losses[:, 0].sum() + fixed.to_float(search.incumbent.bound)
    assert search.incumbent.bound < search.incumbent.value and bound == losses.min(axis=1).sum()


@pytest.mark.parametrize("seed", range(4))
def test_rows_of_leaves_are_where_the_tree_sends_them(seed):
    rng = np.random.default_rng([seed, 149])
    for _ in range(60):
        n, K = int(rng.integers(2, 200)), int(rng.integers(2, 4))
        x = rng.integers(0, rng.choice([3, 40]), n).astype(float)
        x[rng.random(n) < rng.choice([0.0, 0.2, 0.6])] = np.nan
        data = bin_matrix(x[:, None])
        if not len(data.columns):
            continue
        problem = Problem(data, rng.normal(size=(n, K)), 0.05, None, min_leaf=int(rng.choice([1, 4])))
        search = partition_of(problem)
        if not search.incumbent.tree:
            continue
        leaves = [(int(search.ends[a]), int(search.ends[b]), missing) for a, b, missing in search.incumbent.tree]
        splits, values = interval_dp.balanced_splits(leaves, int(search.ends[-1])), int(search.ends[-1])
        given = interval_dp._rows_of_leaves(problem, leaves, values)
        followed = [r for r, (c, _) in zip(rows_of_splits(data, splits), splits, strict=True) if c < 0]
        assert [r.tolist() for r in given] == [r.tolist() for r in followed]


def test_values_between_which_no_leaf_ends_are_one():
    sums = np.cumsum([[0, 0], [1, 2], [3, 3], [0, 1], [2, 1], [0, 0], [5, 1], [1, 1], [0, 2]], axis=0)
    assert useful_ends.py_func(sums).tolist() == [0, 3, 7, 8]
    three = np.cumsum([[0, 0, 0], [0, 1, 2], [0, 3, 3], [0, 2, 1], [0, 2, 1]], axis=0)
    assert useful_ends.py_func(three).tolist() == [0, 2, 4]  # the first two together do prefer the second action
    assert useful_ends.py_func(np.cumsum([[0, 0, 0], [0, 1, 2], [0, 2, 1]], axis=0)).tolist() == [0, 1, 2]
    assert useful_ends.py_func(np.zeros((1, 2), np.int64)).tolist() == [0]


@pytest.mark.parametrize("seed", range(6))
def test_intervals_within_a_search_are_the_best(seed):
    rng = np.random.default_rng([seed, 150])
    for _ in range(40):
        n, K = int(rng.integers(1, 60)), int(rng.integers(2, 4))
        x, losses = np.sort(rng.integers(0, 30, n)), rng.integers(-9, 10, (n, K))
        penalty, least, most = int(rng.integers(0, 9)), int(rng.choice([1, 3])), int(rng.choice([1, 2, 5, 100]))
        values, ends = np.unique(x, return_index=True)
        ends = np.append(ends, n)
        sums = np.vstack([np.zeros((1, K), np.int64), losses.cumsum(axis=0)])[ends]
        counts = np.array(ends[:, None] if least > 1 else np.empty((len(ends), 0)), np.int64)
        minima = np.array([least] if least > 1 else [], np.int64)
        best, parts = best_intervals.py_func(sums, counts, minima, penalty, most)
        if n < least:
            assert best == INF
            continue
        assert best == interval_oracles.best_intervals(x, losses, most, penalty, least)
        assert parts[-1] == len(values) and len(parts) <= most
        cost = sum(int((sums[j] - sums[i]).min()) + penalty for i, j in pairwise([0, *parts.tolist()]))
        assert cost == best


@pytest.mark.parametrize("way", ["all", "depths", "sets", "worth"])
@pytest.mark.parametrize("seed", range(3))
def test_searches_with_one_feature_left(seed, way, monkeypatch):
    """A long column beside a 0/1 column: after that one is split on, or alone in a part, one feature is left."""
    rng = np.random.default_rng([seed, 151])
    rebuilt, gates = [], SizeGates()
    if way == "worth":  # prices come first and prove nothing themselves, but bound nodes and sets

        def with_duals(sets, node, original=SubsetSearch.with_duals):
            rebuilt.append(node.rules.beyond >= 0)
            return original(sets, node)

        def work(engine, *turn, original=SubsetEngine.work):
            if engine.duals.bounded().rules.beyond >= 0:
                original(engine, *turn)

        monkeypatch.setattr(SubsetSearch, "with_duals", with_duals)
        monkeypatch.setattr(SubsetEngine, "work", work)
        monkeypatch.setattr(DualEngine, "seconds", lambda engine, ahead: 0.05 * engine.applies)
        monkeypatch.setattr(RowDuals, "work", lambda *a, original=RowDuals.work: min(original(*a), -INF))
    if way == "depths":
        gates = replace(gates, most_setless_depth=math.inf)
    if way in ("depths", "sets"):
        gates = replace(gates, most_unpriced_depth=math.inf)
    for _ in range(6):
        n, K = 60, int(rng.integers(2, 4))
        x, b = rng.integers(0, 22, n), rng.integers(0, 2, n)
        losses = rng.integers(0, 12, (n, K)) + 9 * ((x // 5 + b)[:, None] % K != np.arange(K))
        least, penalty = int(rng.choice([1, 4])), int(rng.choice([20, 35]))
        data = bin_matrix(np.column_stack([x, b]).astype(float))
        rules = {"min_leaf": least, "max_leaf_nodes": None}
        solution = solve_direct(Problem(data, losses.astype(float), penalty, None, **rules), SearchLimits(gates=gates))
        assert solution.status is Status.OPTIMAL
        assert solution.objective == interval_oracles.best_beside_binary(x, b, losses, penalty, least)
    assert any(rebuilt) == (way == "worth")


@pytest.mark.parametrize("keep", ["lists", "bits"])
def test_sets_with_one_feature_left_give_their_trees(keep):
    rng = np.random.default_rng(152)
    for _ in range(8):
        x, b = rng.integers(0, 20, 50), rng.integers(0, 2, 50)
        wrong = (x // 4 + b) % 2 == np.arange(2)[:, None]
        losses = np.where(rng.random((2, 50)) < 0.1, ~wrong, wrong).T.astype(np.int64) * 10
        problem = Problem(bin_matrix(np.column_stack([x, b]).astype(float)), losses.astype(float), 7.0, None)
        load_kernels(engine_table.kernels_of(engine_table.Case(problem, None)))
        node = prepare(problem, to_fixed_point(problem.losses, problem.leaf_penalty, 50), merge=True)
        search = start_subset_search(node, 50, Clock(None, new_control()), None, keep)
        value = search.advance(INF, search.first_slice())
        while search.bound < value:
            assert not search.ended
            value = search.advance(INF, search.first_slice())
        cost, tree = search.tree()
        assert cost == value == search.bound
        assert scored_tree(problem, tree)[1] == interval_oracles.best_beside_binary(x, b, losses, 7)


def test_what_it_does_not_take():
    data = bin_matrix(np.array([[0.0], [1.0], [2.0]]))
    losses = np.eye(2)[[0, 1, 0]]
    assert one_feature_applies(Problem(data, losses))
    assert not one_feature_applies(Problem(data, losses, feature_costs=np.array([0.1])))
    assert not one_feature_applies(Problem(data, losses, root_features=()))
    two = bin_matrix(np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]]))
    assert not one_feature_applies(Problem(two, losses))


def test_many_values_take_no_time():
    rng = np.random.default_rng(145)
    n = 10_000
    x = rng.permutation(n).astype(float)
    problem = Problem(bin_matrix(x[:, None]), rng.normal(size=(n, 2)), 2.0, None)
    solve_direct(problem)
    start = time.process_time()
    solution = solve_direct(problem)
    assert time.process_time() - start < 1.0  # some hundredths
    assert solution.status is Status.OPTIMAL and solution.tree.n_leaves > 100
