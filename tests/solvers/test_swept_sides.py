"""Sweeps for several losses or counts (simd_sides.py): both sides of a root cut from one table, in vectors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from policytree.problem.types import GATES, Problem, SearchLimits
from policytree.solvers import solve_direct
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.core.compilation import load_kernels, sweeping_kernels
from policytree.solvers.core.fixed_point import to_fixed_point
from policytree.solvers.core.rows import CALLED_BY_ADDRESS, new_control, prepare, rows_of
from policytree.solvers.exact import direct
from policytree.solvers.exact.depth_search import RootFeature, Stack
from policytree.solvers.exact.engine_table import Case as EngineCase
from policytree.solvers.kernels.base.layout import INF, PLACES, SWEEPERS
from policytree.solvers.kernels.conflicts.fit import call_fit_numbers, fit_numbers
from policytree.solvers.kernels.depth_first.inherited_bounds import (
    call_deep_bound,
    call_move_inner,
    inherited_deep_bound,
    move_inner,
)
from policytree.solvers.kernels.depth_first.node_bounds import call_intervals, take_intervals
from policytree.solvers.kernels.depth_three.sweep_side import (
    LANES_COUNTED,
    LANES_UNCOUNTED,
    PAIRS,
    SWEEPING_KERNELS,
    call_sweep,
)
from policytree.solvers.kernels.depth_three.sweep_tables import make_tables
from tests.support import oracles

N = 70
LARGEST_SHORT = (1 << 15) - 1
RULES = {
    "none": {},
    "penalty": {"penalty": 2},
    "costs": {"column_costs": np.array([1, 0, 2]), "penalty": 1},
    "counts": {"min_leaf": 6},
    "arms": {"min_leaf_per_arm": 2},
}


@pytest.fixture(autouse=True)
def only_what_is_asked_for(monkeypatch):
    """A search finds the addresses of kernels that it asked for, not of those that others loaded before it."""
    asked, ask, note = set(), direct.kernels_of, direct.note_addresses

    def kernels_of(case):
        needed = ask(case)
        asked.clear()
        asked.update(kernel for kernels, _ in needed for kernel in kernels)
        return needed

    def note_addresses(control):
        note(control)
        control[[place for place, kernel in CALLED_BY_ADDRESS.items() if kernel not in asked]] = 0

    monkeypatch.setattr(direct, "kernels_of", kernels_of)
    monkeypatch.setattr(direct, "note_addresses", note_addresses)


def _table(rng):
    """One column of many values beside short ones: its tables pay, and their rows take several vectors, one in part."""
    return np.column_stack([rng.permutation(N), rng.integers(0, 4, N), rng.integers(0, 3, N)]).astype(float)


def _losses(kind, X, K, rng):
    labels = np.where(rng.random(N) < 0.6, (X[:, 0] * K // N + X[:, 1]).astype(int) % K, rng.integers(0, K, N))
    wrong = (labels[:, None] != np.arange(K)).astype(np.int64)
    if kind == "labels":
        return wrong
    if kind == "signed":
        return wrong * rng.integers(0, 5, (N, 1)) + rng.integers(-4, 5, (N, K))
    return wrong * rng.integers(1, 1 << 20, (N, 1))


def _agree(X, losses, rules, rng):
    settings = dict(rules)
    if "min_leaf_per_arm" in settings:
        settings["arms"] = np.arange(N) % losses.shape[1]
    optimum = oracles.best_objective_fast(X.astype(int), losses, max_depth=3, **settings)
    settings["leaf_penalty"] = settings.pop("penalty", 0.0)
    settings["feature_costs"] = settings.pop("column_costs", None)
    problem = Problem(bin_matrix(X), losses.astype(float), max_depth=3, **settings)
    solution = solve_direct(problem)
    assert solution.counters["sweeps"] > 0
    assert solution.objective == solution.lower_bound == optimum
    return problem


def _tables(problem):
    node = prepare(problem, to_fixed_point(problem.losses, problem.leaf_penalty, problem.data.n_rows), merge=True)
    return make_tables(node.rows, node.rules, node.special)


@pytest.mark.parametrize("K", [3, 5])
@pytest.mark.parametrize("kind", ["labels", "signed", "weights"])
@pytest.mark.parametrize("rules", RULES)
def test_depth_three_equals_brute_force(K, kind, rules, rng):
    X = _table(rng)
    problem = _agree(X, _losses(kind, X, K, rng), RULES[rules], rng)
    assert _tables(problem).sum_bytes == (4 if kind == "weights" else 2)


@pytest.mark.parametrize("beyond", [0, 1])
def test_sums_as_large_as_short_numbers_hold(beyond, rng):
    """The rows of one label, which all lose under every other action, come to the largest sum there is, or one more."""
    X, K = _table(rng), 4
    wrong = _losses("labels", X, K, rng)
    weights = rng.integers(1, 40, N)
    first = np.flatnonzero(wrong[:, 0] == 0)
    weights[first] = LARGEST_SHORT // len(first)
    weights[first[0]] += LARGEST_SHORT + beyond - weights[first].sum()
    problem = _agree(X, wrong * weights[:, None], {}, rng)
    assert _tables(problem).sum_bytes == (2 if beyond == 0 else 4)


def _odd_problem(rng, depth) -> Problem:
    """Losses of all sizes, of few actions, with minima or without."""
    K, n = int(rng.integers(2, 4)), int(rng.integers(20, 80))
    X = rng.integers(0, rng.integers(2, 9), (n, 3)).astype(float)
    losses = rng.integers(0, int(rng.choice([2, 40, 900, 40_000])), (n, K)) * float(rng.choice([1.0, 0.25, 0.1]))
    rules = [{}, {"min_leaf": 3}, {"min_leaf_per_arm": 1, "arms": rng.integers(0, K, n)}][rng.integers(3)]
    return Problem(bin_matrix(X), losses, float(rng.choice([0.0, 0.5, 1e6])), depth, **rules)


@pytest.mark.parametrize("loose", [0, GATES.loose_minimum])
def test_what_a_search_loads_holds_the_sums_of_all_its_nodes(loose, rng):
    """Four bytes are left out only where the sums of every set of rows fit two."""
    left_out, gates = 0, replace(GATES, loose_minimum=loose)
    for _ in range(150):
        problem = _odd_problem(rng, int(rng.integers(3, 5)))
        case = EngineCase.of(problem, gates)
        loaded = {kernel for kernels, _ in sweeping_kernels(problem, case.short, gates) for kernel in kernels}
        node = prepare(problem, case.fixed, merge=bool(rng.integers(2)), gates=gates)
        for k in (node.n_rows, 1 + node.n_rows // 2, 1):
            part = rows_of(node, np.sort(rng.permutation(node.n_rows)[:k]))
            tables = make_tables(part.rows, part.rules, part.special)
            counted = len(tables.rules.minima) > 0
            ways = [PAIRS] if not tables.in_lanes else [PAIRS, LANES_COUNTED if counted else LANES_UNCOUNTED]
            for way in ways:
                two, four = (kernel in loaded for kernel in SWEEPING_KERNELS[way : way + 2])
                assert four or (two and tables.sum_bytes == 2)
                left_out += not four
    assert left_out > 50


def test_counts_of_many_rows_are_not_short(rng):
    """The losses' sums fit two bytes, and the rows that leaves must have so many of do not."""
    n = 33_000
    X = np.column_stack([rng.integers(0, k, n) for k in (9, 7, 5)])
    y = (X[:, 0] > 4) ^ (X[:, 1] > 3) ^ (rng.random(n) < 0.2)
    losses = np.stack([y, ~y], axis=1) * (rng.random((n, 1)) < 0.5)
    problem = Problem(bin_matrix(X.astype(float)), losses.astype(float), max_depth=3, min_leaf=1000)
    assert EngineCase.of(problem).short
    optimum = oracles.best_objective_fast(X, losses.astype(int), max_depth=3, min_leaf=1000)
    for loose in (0, GATES.loose_minimum):
        limits = SearchLimits(gates=replace(GATES, loose_minimum=loose))
        assert solve_direct(problem, limits).objective == optimum


def test_depth_four_and_more_find_what_they_call(rng):
    for K in (2, 3):
        X = rng.integers(0, 6, (60, 3))
        losses = rng.integers(0, 1000, (60, K))
        for penalty in (0, 40):
            expected = oracles.best_objective_fast(X, losses, max_depth=4, penalty=penalty)
            problem = Problem(bin_matrix(X.astype(float)), losses.astype(float), float(penalty), 4)
            assert solve_direct(problem).objective == expected


def test_kernels_take_and_return_what_their_callers_expect():
    load_kernels([(tuple(CALLED_BY_ADDRESS.values()), "")])
    calls = dict.fromkeys(SWEEPING_KERNELS, call_sweep)
    calls |= {take_intervals: call_intervals, move_inner: call_move_inner, inherited_deep_bound: call_deep_bound}
    calls[fit_numbers] = call_fit_numbers
    assert set(calls) == set(CALLED_BY_ADDRESS.values())
    assert sorted(CALLED_BY_ADDRESS) == list(range(SWEEPERS, PLACES))
    for kernel, call in calls.items():
        takes, returns = call.expects
        assert kernel.overloads[takes].signature.return_type == returns


def test_a_sweep_that_is_not_loaded_is_never_called(rng):
    """An address of nothing would end the process."""
    problem = Problem(bin_matrix(_table(rng)), _losses("labels", _table(rng), 3, rng).astype(float), max_depth=3)
    node = prepare(problem, to_fixed_point(problem.losses, 0.0, N), merge=True)
    solve_direct(problem)  # loads the kernels
    stack = Stack(node, 3, 8, make_tables(node.rows, node.rules, node.special))
    low = np.full(node.bins[0] - 1, -INF)
    control = new_control()
    control[SWEEPERS:] = 0
    with pytest.raises(RuntimeError, match="not loaded"):
        stack.advance(0, 3, INF, RootFeature(low, low.copy(), -1, 0), False, control)
