"""Sixteen root cuts at once where every leaf needs so many rows: what brute force finds, and what single cuts find."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from policytree.problem.types import GATES, SearchLimits
from policytree.solvers import solve_direct
from policytree.solvers.core.compilation import load_kernels
from policytree.solvers.exact import engines
from policytree.solvers.kernels.depth_three.sweep_side import SWEEPING_KERNELS
from tests.support import checker
from tests.support.strategies import Case

ONE_BY_ONE, OF_TWO_BYTES, OF_FOUR_BYTES = 0, 2, 4
COUNTED = SearchLimits(gates=replace(GATES, loose_minimum=0))  # minima are never relaxed


class Lanes:
    """How root cuts are swept: as the solver thinks best, or as told; and how it was done."""

    def __init__(self, make_tables):
        self.make_tables, self.size, self.seen = make_tables, None, None

    def __call__(self, rows, rules, special):
        tables = self.make_tables(rows, rules, special)
        if self.size is not None:
            tables = tables._replace(in_lanes=int(self.size != ONE_BY_ONE), sum_bytes=self.size or tables.sum_bytes)
        self.seen = tables.sum_bytes if tables.in_lanes else ONE_BY_ONE
        return tables

    def solve(self, case: Case, size=None, merge=True):
        """Solve a case; its tree is walked and scored by the definitions."""
        self.size = size
        problem = case.problem()
        found = solve_direct(problem, COUNTED, merge=merge)
        assert found.gap == 0
        checker.check_solution(problem, case.X, found)
        return found


@pytest.fixture
def lanes(monkeypatch) -> Lanes:
    """Sees the tables that searches of depth three sweep; every version of the sweep is loaded."""
    load_kernels([(SWEEPING_KERNELS, "")])
    watched = Lanes(engines.make_tables)
    monkeypatch.setattr(engines, "make_tables", watched)
    return watched


def skewed(rng, n, p, codes, missing=0.0):
    """Columns of up to so many values; of most, one value is common."""
    X = rng.integers(0, rng.integers(2, codes + 1, p), (n, p)).astype(float)
    X[rng.random((n, p)) < rng.choice([0.0, 0.4, 0.8], p)] = rng.integers(0, 3)
    X[rng.random((n, p)) < missing] = np.nan
    return X


def odd_case(rng, depth=3, most_rows=60) -> Case:
    """Ties, rows of equal codes, missing values, minima of all sizes, prices, limits and forbidden roots, combined."""
    n, p = int(rng.integers(12, most_rows)), int(rng.integers(2, 5))
    largest = int(rng.choice([1, 3, 50, 40_000]))
    losses = rng.integers(-largest, largest + 1, (n, 2)) * rng.integers(0, 2, (n, 1))
    costs = rng.integers(0, 3, p) * int(rng.integers(0, largest + 1)) if rng.random() < 0.4 else None
    return Case(
        skewed(rng, n, p, int(rng.choice([3, 8, 24])), float(rng.choice([0.0, 0.0, 0.2]))),
        losses.astype(float),
        float(rng.choice([0, 0, largest])),
        depth,
        int(rng.choice([2, 3, max(2, n // 8), max(2, n // 4), n // 2, n // 2 + 1])),
        max_leaf_nodes=[None, None, 3, 5, 6][rng.integers(5)],
        feature_costs=None if costs is None else costs.astype(float),
        weights=None if costs is None else rng.integers(0, 4, n).astype(float),
        root_features=tuple(range(1, p)) if rng.random() < 0.2 else None,
    )


@pytest.mark.parametrize("seed", range(40))
def test_every_way_finds_the_optimum(seed, lanes):
    case = odd_case(np.random.default_rng(seed))
    expected = case.fast_optimum()
    merge = bool(seed % 2)
    for size in (None, OF_FOUR_BYTES, ONE_BY_ONE):
        assert lanes.solve(case, size, merge).objective == expected


@pytest.mark.parametrize("seed", range(6))
def test_depth_four_finds_the_optimum(seed, lanes):
    case = odd_case(np.random.default_rng(100 + seed), depth=4, most_rows=32)
    assert lanes.solve(case).objective == case.fast_optimum()


def test_many_cuts_are_swept_in_several_groups(rng, lanes):
    """More root cuts than lanes, tables of many cells, and a few cuts left over that go one by one."""
    n = 900
    X = np.column_stack([rng.integers(0, k, n) for k in (70, 55, 40, 6)]).astype(float)
    y = (X[:, 0] > 30) ^ (X[:, 1] > 20) ^ (rng.random(n) < 0.2)
    for m in (2, 60, 200, 299):
        losses = np.stack([y, ~y], axis=1) * rng.integers(1, 8, (n, 1))
        case = Case(X, losses.astype(float), 0.0, 3, m)
        found = {size: lanes.solve(case, size, merge=False) for size in (OF_TWO_BYTES, OF_FOUR_BYTES, ONE_BY_ONE)}
        assert len({each.objective for each in found.values()}) == 1
        assert all(each.counters["sweeps"] > 0 for each in found.values()) or m > n // 4


@pytest.mark.parametrize("beyond", [0, 1])
def test_sums_as_large_as_sixteen_bits_hold(rng, lanes, beyond):
    """Losses whose sum is just what fits, and one more; of either sign."""
    n, most = 400, 2**15 - 1 + beyond
    X = skewed(rng, n, 4, 20)
    for sign in (-1, 1):
        gain = rng.integers(60, 100, n)
        gain[1:] *= rng.choice([-1, 1, 1], n - 1)
        gain[0] += most - gain[gain > 0].sum()
        case = Case(X, np.stack([np.zeros(n), sign * gain], axis=1), 0.0, 3, int(rng.integers(2, 60)))
        values = {lanes.solve(case, size, merge=False).objective for size in (OF_FOUR_BYTES, ONE_BY_ONE)}
        values.add(lanes.solve(case, merge=False).objective)
        assert lanes.seen == (OF_FOUR_BYTES if beyond else OF_TWO_BYTES)
        assert len(values) == 1


@pytest.mark.parametrize("n", [2**15 - 1, 2**15])
def test_as_many_rows_as_sixteen_bits_count(rng, lanes, n):
    """Merged rows count many; a minimum near or beyond half of the rows is the largest that matters."""
    X = np.column_stack([rng.integers(0, k, n) for k in (9, 7, 5)]).astype(float)
    y = rng.random(n) < rng.random((9, 7, 5))[tuple(X.astype(int).T)]
    losses = np.stack([y, ~y], axis=1).astype(float)
    for m in (2, 1000, n // 4, n // 2 - 1, n // 2 + 1, n):
        problem, values, lanes.seen = Case(X, losses, 0.0, 3, m).problem(), set(), None
        for lanes.size in (ONE_BY_ONE, None):
            values.add(solve_direct(problem, COUNTED).objective)
        assert len(values) == 1
        assert lanes.seen == (OF_TWO_BYTES if n < 2**15 else OF_FOUR_BYTES) or m > n // 4


def test_real_losses_of_all_magnitudes(rng, lanes):
    """Losses that tables round are looked at again: the same optimum, bit by bit."""
    for _ in range(12):
        n = int(rng.integers(40, 120))
        X = skewed(rng, n, 4, 16, 0.1)
        losses = rng.normal(size=(n, 2)) * 10.0 ** rng.uniform(-9, 9, (n, 1) if rng.random() < 0.5 else 1)
        case = Case(X, losses, float(rng.choice([0.0, 0.1])), 3, int(rng.integers(2, n // 3)))
        assert lanes.solve(case).objective == lanes.solve(case, ONE_BY_ONE).objective
        assert lanes.seen == ONE_BY_ONE


def test_several_minima_go_one_by_one(rng, lanes):
    """Counts of each arm are planes of their own."""
    case = odd_case(rng).but(arms=rng.integers(0, 2, 60), min_leaf_per_arm=2, min_leaf=4)
    case = case.but(arms=case.arms[: len(case.X)], feature_costs=None, weights=None)
    assert lanes.solve(case).objective == case.fast_optimum()
    assert lanes.seen == ONE_BY_ONE
