"""A bound by pairs of rows that want different actions: brute force, exact limits, whole searches."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize

from policytree.problem.types import Problem, SearchLimits, SizeGates, Status
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.core.fixed_point import to_fixed_point
from policytree.solvers.core.limits import Clock
from policytree.solvers.core.rows import new_control, prepare
from policytree.solvers.exact.bounds import conflict_pairs
from policytree.solvers.exact.bounds.conflict_pairs import ConflictPairs, pair_bound
from policytree.solvers.exact.direct import solve_direct
from tests.strategies import random_case
from tests.test_row_duals import noisy_case


def node_of(problem: Problem, merge: bool = True):
    """All rows of a problem, and its fixed point."""
    costs = problem.feature_costs, problem.weights
    fixed = to_fixed_point(problem.losses, problem.leaf_penalty, problem.data.n_rows, *costs)
    return prepare(problem, fixed, merge), fixed


@pytest.mark.parametrize("seed", range(4))
def test_no_tree_with_a_split_costs_less(seed):
    """Beside brute force with every constraint together, down to any depth."""
    rng = np.random.default_rng([seed, 310])
    strong = 0
    for k in range(60):
        case = noisy_case(rng) if k % 2 else random_case(rng, max_rows=12)
        case = case.but(penalty=case.penalty or 0.25, max_depth=None if rng.random() < 0.7 else case.max_depth)
        problem, optimum = case.problem(), case.optimum()
        if optimum is None or not len(problem.data.n_bins) or problem.losses.shape[1] < 2:
            continue
        node, fixed = node_of(problem, merge=bool(rng.random() < 0.5))
        if not len(node.bins):
            continue
        bound, (leaf, floor) = pair_bound(node), node.leaf()
        least = min(bound, leaf + node.penalty)
        scale = 2.0**-fixed.exponent
        tolerance = 1e-9 + problem.data.n_rows * scale
        assert problem.losses[:, 0].sum() + least * scale <= float(optimum) + tolerance, f"{case!r}"
        strong += bound > floor + 2 * node.penalty
    assert strong > 3


def many_columns(seed, rows=160, columns=20, rate=0.03) -> Problem:
    """Noisy rows of many ordered columns, of which two say something."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (rows, columns)).astype(float)
    y = ((X[:, 0] > 1) == (X[:, 1] > 0)) != (rng.random(rows) < 0.3)
    weights = rng.choice([0.5, 1.0, 1.75], rows)
    losses = weights[:, None] * (y[:, None] != np.arange(2))
    return Problem(bin_matrix(X), losses, rate * rows, None)


def test_the_limits_of_rows_and_cuts_are_kept_exactly(monkeypatch):
    """What the linear programme returns is not trusted: too large numbers are scaled down."""
    node, _ = node_of(many_columns(311))
    seen = []

    def too_large(*args, original=scipy.optimize.linprog, **kwargs):
        solved = original(*args, **kwargs)
        solved.x = solved.x * 1.5 + 1e-3
        return solved

    def checked(pairs, separated, regret, penalty, original=conflict_pairs._numbers):
        numbers = original(pairs, separated, regret, penalty)
        of_rows = np.zeros(len(regret), np.int64)
        np.add.at(of_rows, pairs.ravel(), np.repeat(numbers, 2))
        assert numbers.min() >= 0 and (of_rows <= regret).all()
        crossing = [
            int(numbers[row.indices].sum()) for row in (separated[[k]].tocsr() for k in range(separated.shape[0]))
        ]
        assert max(crossing) <= penalty
        seen.append(int(numbers.sum()))
        return numbers

    monkeypatch.setattr(conflict_pairs, "_numbers", checked)
    pair_bound(node)
    monkeypatch.setattr(scipy.optimize, "linprog", too_large)
    pair_bound(node)
    assert seen[0] > seen[1] > 0


def test_searches_that_it_bounds_find_the_same(monkeypatch):
    limits = SearchLimits(time_limit=20.0)
    bounds = []

    def counted(node, original=conflict_pairs.pair_bound):
        bounds.append(original(node))
        return bounds[-1]

    monkeypatch.setattr(conflict_pairs, "pair_bound", counted)
    for seed in range(3):
        problem = many_columns([312, seed], rows=50, columns=17, rate=0.08)
        without = solve_direct(problem, replace(limits, gates=SizeGates(most_pair_cuts=0)))
        solution = solve_direct(problem, replace(limits, gates=SizeGates(pair_share=math.inf)))
        assert len(bounds) == seed + 1  # once a search
        assert solution.status is without.status is Status.OPTIMAL
        assert solution.objective == without.objective and solution.lower_bound == without.lower_bound


def test_noisy_rows_of_many_columns_have_a_bound_far_above_the_floor():
    node, _ = node_of(many_columns(313, rows=600, rate=0.02))
    leaf, floor = node.leaf()
    assert floor + 5 * node.penalty < pair_bound(node) <= leaf + node.penalty


def test_where_it_pays():
    node, clock = node_of(many_columns(314))[0], Clock(None, new_control())
    assert ConflictPairs(node, clock).pays(1e3)
    assert not ConflictPairs(node, clock).pays(1e-3)  # the search is short
    pairs = ConflictPairs(node, clock)
    assert pairs.work(0, [(-1, 0)], 3, 1e3) == pair_bound(node)
    assert not pairs.pays(1e3)  # it is found once
    assert not ConflictPairs(node_of(many_columns(314, columns=5))[0], clock).pays(1e3)  # prices of rows do better
    clock.fits_memory = lambda more: False
    assert not ConflictPairs(node, clock).pays(1e3)


def test_rows_that_agree_have_no_pairs():
    X = np.arange(8.0)[:, None] % 3
    problem = Problem(bin_matrix(X), np.column_stack([np.zeros(8), np.ones(8)]), 0.5, None)
    node, _ = node_of(problem)
    assert pair_bound(node) == node.leaf()[1] + node.penalty
