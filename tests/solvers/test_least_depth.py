"""Searches for deep trees only, where shallower ones are known to be no better: the same optimum as by hand."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from policytree.problem.types import Problem, SearchLimits, SizeGates, Status
from policytree.solvers import solve_direct
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.exact import depth_search, engines
from policytree.solvers.exact.depth_search import least_depth
from policytree.solvers.kernels.base.layout import INF, Bounds, Deep, Rules
from policytree.solvers.kernels.depth_two.similarity_bounds import spread_deep, start_deep
from tests.support import oracles
from tests.support.strategies import random_case

#: Nothing but the search over depths.
ALONE = SearchLimits(gates=SizeGates(most_setless_depth=math.inf, most_unpriced_depth=math.inf, most_pair_cuts=0))


@pytest.fixture
def needed_depths(monkeypatch):
    """The depths that trees needed."""
    needed = []

    def note(*given):
        needed.append(least_depth(*given))
        return needed[-1]

    monkeypatch.setattr(engines, "least_depth", note)
    return needed


def deep_case(rng, n, p):
    """Columns of many values whose classes lie in cells, with a little noise: trees of several leaves pay."""
    X = rng.permuted(np.tile(np.arange(n), (p, 1)), axis=1).T.astype(float)
    if rng.random() < 0.5:
        X = np.floor(X / rng.integers(1, 4))
    cells = (X // rng.integers(2, 6)).sum(axis=1).astype(int)
    K = int(rng.integers(2, 4))
    label = np.where(rng.random(n) < 0.1, rng.integers(0, K, n), cells % K)
    weight = rng.integers(1, 5, n) if rng.random() < 0.4 else np.ones(n, dtype=int)
    return X, 4 * weight[:, None] * (label[:, None] != np.arange(K))


@pytest.mark.parametrize("seed", range(4))
def test_the_optimum_of_deep_trees(seed, needed_depths):
    rng = np.random.default_rng([seed, 11])
    for _ in range(8):
        X, losses = deep_case(rng, int(rng.integers(8, 16)), 2 if rng.random() < 0.7 else 3)
        penalty = int(rng.integers(1, 5))
        depth = None if rng.random() < 0.6 else int(rng.integers(4, 7))
        rules = {"min_leaf": int(rng.integers(2, 4))} if rng.random() < 0.3 else {}
        leaves = int(rng.integers(5, 9)) if rng.random() < 0.2 else None
        problem = Problem(
            bin_matrix(X), losses.astype(float), float(penalty), depth, max_leaf_nodes=leaves, **rules
        )  # fmt: skip
        found = solve_direct(problem, ALONE, similar_support=rng.random() < 0.8, cache=rng.random() < 0.8)
        expected = oracles.best_objective_fast(
            oracles.code_columns(X), losses, penalty, depth, max_leaf_nodes=leaves, **rules
        )  # fmt: skip
        assert found.objective == expected and found.gap == 0
    assert max(needed_depths) > 3


def test_swept_cuts_that_rounding_leaves_open_are_taken_up_once(needed_depths):
    """Losses of more than 30 bits: a cut that only what deep sides cost had closed was taken up again, for ever."""
    rng = np.random.default_rng(9)
    for _ in range(40):
        X, losses = deep_case(rng, int(rng.integers(10, 16)), 2)
        losses = losses * int(rng.integers(2**28, 2**33)) + rng.integers(0, 2, losses.shape)
        penalty = int(rng.integers(1, 8)) * int(np.median(losses.max(axis=1)) // 4)
        found = solve_direct(
            Problem(bin_matrix(X), losses.astype(float), float(penalty), None), replace(ALONE, time_limit=5)
        )
        assert found.status == Status.OPTIMAL
        assert found.objective == oracles.best_objective_fast(oracles.code_columns(X), losses, penalty, None)
    assert max(needed_depths) > 3


@pytest.mark.parametrize("seed", range(4))
def test_cases_of_every_kind(seed, needed_depths):
    """Prices of questions, forbidden first splits, arms, missing values and categories."""
    rng = np.random.default_rng([seed, 12])
    for _ in range(60):
        case = random_case(rng, max_rows=12)
        case = case.but(max_depth=None if rng.random() < 0.6 else 5, penalty=float(rng.choice([0.125, 0.5, 1.0])))
        optimum, solution = case.optimum(), solve_direct(case.problem(), ALONE)
        if optimum is not None:
            assert abs(solution.objective - float(optimum)) <= 1e-9 + 2 * solution.resolution, f"{case!r}"
            assert solution.gap <= 2 * solution.resolution
    assert max(needed_depths) > 2


@pytest.mark.parametrize("seed", range(3))
def test_the_same_as_when_any_tree_is_of_interest(seed, needed_depths, monkeypatch):
    """Larger tables, whose optimum takes four levels and more."""
    rng = np.random.default_rng([seed, 13])
    for _ in range(4):
        n = int(rng.integers(40, 60))
        X, losses = deep_case(rng, n, 2)
        if rng.random() < 0.5:
            X = np.column_stack([X, rng.integers(0, 3, n)])
        data, penalty = bin_matrix(X), float(rng.integers(8, 20)) / (8 if rng.random() < 0.5 else 1)
        problem = Problem(data, losses.astype(float), max(penalty, 6.0), 5, min_leaf=int(rng.choice([1, 1, 3])))
        found = solve_direct(problem, ALONE)
        with monkeypatch.context() as patch:
            patch.setattr(engines, "least_depth", lambda *given: 0)
            assert solve_direct(problem, ALONE).objective == found.objective
        assert found.gap == 0
    assert max(needed_depths) > 3


@pytest.mark.parametrize("seed", range(2))
def test_prices_of_questions_and_first_splits_on_deep_trees(seed, needed_depths, monkeypatch):
    """With a cap on the depth that is needed, which searches of so few levels do not reach, and without."""
    rng = np.random.default_rng([seed, 15])
    for _ in range(16):
        X, losses = deep_case(rng, int(rng.integers(10, 15)), 2)
        penalty, prices = int(rng.integers(1, 4)), rng.integers(0, 2, 2)
        roots = [int(rng.integers(0, 2))] if rng.random() < 0.5 else [0, 1]
        problem = Problem(
            bin_matrix(X), 4.0 * losses, 4.0 * penalty, None, feature_costs=1.0 * prices, root_features=tuple(roots)
        )  # fmt: skip
        features = np.array(oracles.column_features(X))
        first = np.flatnonzero(np.isin(features, roots))
        optimum = oracles.best_objective_fast(
            oracles.code_columns(X), 4 * losses, 4 * penalty, None, column_costs=prices[features], root_columns=first
        )  # fmt: skip
        bounds: list[float] = []
        limits = replace(ALONE, progress=lambda state, bounds=bounds: bounds.append(state.lower_bound))
        with monkeypatch.context() as patch:
            if rng.random() < 0.5:
                patch.setattr(depth_search, "NEED_BITS", 2)
            found = solve_direct(problem, limits)
        assert found.objective == optimum and found.gap == 0
        assert all(bound <= optimum + 1e-9 for bound in bounds)
    assert max(needed_depths) > 3


def trees_of_rows(x, losses, penalty):
    """Return the least cost of a tree for rows (a frozenset) that is at least so deep, and at most four levels.

    ``x`` (n, p). Every split leaves rows on both sides; INF if no tree is that deep.
    """

    @functools.cache
    def best(rows, need, depth):
        leaf = min(losses[sorted(rows)].sum(axis=0).tolist()) + penalty
        value = leaf if need <= 0 else INF
        if depth == 0:
            return value
        for f in range(x.shape[1]):
            for t in {x[i, f] for i in rows}:
                left = frozenset(i for i in rows if x[i, f] <= t)
                right = rows - left
                if not right:
                    continue
                for deep, other in ((left, right), (right, left)):
                    value = min(value, best(deep, need - 1, depth - 1) + best(other, 0, depth - 1))
        return value

    return best


@pytest.mark.parametrize("seed", range(5))
def test_bounds_of_deep_sides_hold_for_every_cut(seed):
    """Bounds of other cuts' sides from one side as a deep tree hold, beside the values of all trees that there are."""
    rng = np.random.default_rng([seed, 14])
    n, need, penalty = 7, int(rng.integers(2, 4)), int(rng.integers(1, 4))
    x = np.column_stack([np.arange(n), rng.integers(0, 4, n)])
    losses = np.column_stack([np.zeros(n, dtype=np.int64), rng.integers(-3, 4, n)])
    best = trees_of_rows(x, losses, penalty)
    every = frozenset(range(n))
    sides = [[frozenset(range(t + 1)) for t in range(n - 1)], [every - frozenset(range(t + 1)) for t in range(n - 1)]]
    least = np.minimum(losses[:, 1], 0).cumsum()
    most = np.maximum(losses[:, 1], 0).cumsum()
    rules = Rules(1, np.empty(0, np.int64), 0, penalty, -1, 0, 0)
    deep_values = [[best(rows, need - 1, 3) for rows in each] for each in sides]
    for side, at in itertools.product(range(2), range(n - 1)):
        any_left, any_right = ([best(rows, 0, 3) for rows in each] for each in sides)
        bounds = Bounds(np.array(any_left), np.array(any_right), least, most)
        deep = Deep(np.full(n - 1, -INF), np.full(n - 1, -INF))
        start_deep.py_func(bounds, deep, n - 1, need, penalty, False)
        assert (deep.left <= deep_values[0]).all() and (deep.right <= deep_values[1]).all()
        spread_deep.py_func(bounds, deep, n - 1, at, deep_values[side][at], side == 0, rules, True)
        assert (deep.left <= deep_values[0]).all() and (deep.right <= deep_values[1]).all()


def test_depth_is_needed_only_where_it_is_known():
    assert least_depth(4, True, 100, 10) == 4
    assert least_depth(4, False, 100, 10) == 0  # shallower trees were not all looked at
    assert least_depth(4, True, 100, 0) == 0  # deep trees cost no more
    assert least_depth(4, True, 1_000, 10) == 0  # a few leaves are nothing beside what rows may lose
    assert least_depth(60, True, 100, 10) < 60
