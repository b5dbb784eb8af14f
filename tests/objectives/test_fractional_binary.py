"""The F-score of two-valued columns at depth three: one table, rounds at falling ratios."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policytree.objectives import FScore, MonotoneObjective
from policytree.problem.types import GATES, Problem, SearchLimits, SizeGates, Status
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.core.columns import preorder_splits
from policytree.solvers.core.leaf_sums import leaf_stats_of, masses
from policytree.solvers.multi_objective.monotone import solve_monotone
from policytree.solvers.nonadditive import fractional, fractional_binary
from policytree.solvers.nonadditive.fractional import solve_fractional
from tests.support import ranking_oracles

BETAS = (1.0, 0.5, 2.0, 2.5)


def binary_problem(rng, n, p, weight=None, price=0.0) -> tuple[Problem, np.ndarray, np.ndarray, np.ndarray]:
    """Columns of very different density, many equal rows, an interaction and noise; both classes occur."""
    X = (rng.random((n, p)) < rng.uniform(0.1, 0.9, p)).astype(float)
    X[0], X[1] = 0, 1
    y = ((X[:, 0] + X[:, 1] * X[:, -1] + (rng.random(n) < 0.25)) % 2).astype(int)
    y[:2] = 0, 1
    weight = rng.integers(1, 4, n).astype(float) if weight is None else weight
    losses = np.column_stack([y, 1 - y]) * weight[:, None]
    return Problem(bin_matrix(X), losses, price * weight.sum(), 3), X, y, weight


def exact_fraction(problem, solution, objective) -> Fraction:
    """One minus F of the tree's leaves under the best labels, from integer weights."""
    leaf_stats = leaf_stats_of(problem, masses(problem), preorder_splits(solution.tree, problem.data))
    return objective.loss(leaf_stats)


@pytest.fixture
def rounds_only(monkeypatch):
    """Refuses to solve problems of a single ratio: the rounds have to do all."""

    def refuse(*_args, **_options):
        raise AssertionError("a search outside the rounds")

    monkeypatch.setattr(fractional, "solve_direct", refuse)


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("alone", [False, True])
def test_rounds_find_the_best_of_all_trees(rng, beta, alone, rounds_only):
    limits = SearchLimits(gates=SizeGates(least_ratio_table=0 if alone else math.inf))
    objective = FScore(beta)
    for _ in range(5):
        problem, X, y, weight = binary_problem(rng, int(rng.integers(4, 40)), int(rng.integers(2, 4)))
        solution = solve_fractional(problem, limits, objective=objective)
        bags = ranking_oracles.all_leaf_stats(X, y == 1, [Fraction(w) for w in weight], 3)
        best = 1 - max(ranking_oracles.best_f_score(leaf_stats, beta) for leaf_stats in bags)
        assert exact_fraction(problem, solution, objective) == best
        assert solution.status is Status.OPTIMAL
        assert solution.lower_bound == solution.objective == pytest.approx(float(best) * weight.sum(), rel=1e-12)


def one_minus_f(false_positives, missed, positives, negatives):
    """One minus F1, as a function that knows nothing of ratios."""
    return (false_positives + missed) / (2 * positives + false_positives - missed)


@pytest.mark.parametrize("scale", [1, 3_001, 40_000_001])
def test_rounds_agree_with_searches_that_know_nothing_of_them(rng, scale, monkeypatch):
    """In int32, in int64, and where the numbers outgrow it in the midst."""
    kinds = set()
    kind_for = fractional_binary.kind_for
    monkeypatch.setattr(fractional_binary, "kind_for", lambda total: kinds.add(kind_for(total).name) or kind_for(total))
    for n, p in ((40, 3), (200, 9), (600, 14)):
        weight = rng.integers(1, 4, n).astype(float) * scale
        if scale > 1:
            weight[n // 2] += 1  # no common divisor
        problem, *_ = binary_problem(rng, n, p, weight)
        solution = solve_fractional(problem, objective=FScore())
        general = solve_fractional(problem, SearchLimits(gates=SizeGates(most_ratio_entries=0)), objective=FScore())
        assert exact_fraction(problem, solution, FScore()) == exact_fraction(problem, general, FScore())
        pareto = solve_monotone(problem, objective=MonotoneObjective(one_minus_f))
        assert solution.objective == pytest.approx(pareto.objective, rel=1e-9)
    assert kinds == {1: {"int16", "int32"}, 3_001: {"int32", "int64"}, 40_000_001: {"int64"}}[scale]


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_weights_are_repeated_rows(data):
    """Equal rows of any weights are added up exactly; a price per leaf, other depths and real weights go other ways."""
    n, p = data.draw(st.integers(3, 9)), data.draw(st.integers(2, 3))
    X = np.array(data.draw(st.lists(st.lists(st.integers(0, 1), min_size=p, max_size=p), min_size=n, max_size=n)))
    y = np.array([0, 1, *data.draw(st.lists(st.integers(0, 1), min_size=n - 2, max_size=n - 2))])
    weight = np.array(data.draw(st.lists(st.integers(1, 5), min_size=n, max_size=n)))
    price, depth = data.draw(st.sampled_from([0.0, 0.0, 0.02])), data.draw(st.sampled_from([3, 3, 2]))
    unit = data.draw(st.sampled_from([1.0, 0.3]))
    objective = FScore(data.draw(st.sampled_from(BETAS)))
    losses = np.column_stack([y, 1 - y]).astype(float)
    whole = Problem(bin_matrix(X), losses * weight[:, None] * unit, price * unit * weight.sum(), depth)
    rows = np.repeat(np.arange(n), weight)
    repeated = Problem(bin_matrix(X[rows]), losses[rows], price * len(rows), depth)
    one, two = (solve_fractional(problem, objective=objective) for problem in (whole, repeated))
    assert one.objective / (unit * weight.sum()) == pytest.approx(two.objective / len(rows), abs=1e-9)
    assert one.status is two.status is Status.OPTIMAL
    bags = ranking_oracles.all_leaf_stats(X.astype(float), y == 1, [Fraction(int(w)) for w in weight], depth)
    best = min(
        1 - ranking_oracles.best_f_score(leaf_stats, objective.beta) + Fraction(price) * len(leaf_stats)
        for leaf_stats in bags
    )
    assert two.objective == pytest.approx(float(best) * len(rows), abs=1e-9)


@pytest.mark.parametrize("watched", [False, True])
def test_stopped_rounds_have_a_valid_tree_and_bound(rng, watched):
    gates = SizeGates(most_unwatched_seconds=0 if watched else math.inf)
    problem, *_ = binary_problem(rng, 3_000, 60)
    reports = []
    best = solve_fractional(problem, SearchLimits(progress=reports.append, gates=gates), objective=FScore())
    assert best.status is Status.OPTIMAL
    assert len(reports) > 1
    for report in reports:
        assert report.lower_bound <= best.objective <= report.objective
    for limit in (0.0, 0.002, 0.01):
        stopped = solve_fractional(problem, SearchLimits(time_limit=limit, gates=gates), objective=FScore())
        assert stopped.lower_bound <= best.objective <= stopped.objective
        assert stopped.status in (Status.TIME_LIMIT, Status.OPTIMAL)


def test_where_rounds_do_not_apply(rng):
    problem, *_ = binary_problem(rng, 40, 5)
    assert fractional_binary.pair_rounds_apply(problem, GATES)
    ternary = replace(problem, data=bin_matrix(rng.integers(0, 3, (40, 3)).astype(float)))
    others = {"max_depth": 4}, {"max_depth": None}, {"leaf_penalty": 0.1}, {"min_leaf": 2}, {"max_leaf_nodes": 5}
    for other in (ternary, *(replace(problem, **changes) for changes in (*others, {"root_features": (1,)}))):
        assert not fractional_binary.pair_rounds_apply(other, GATES)


def test_losses_at_a_ratio_have_no_common_divisor():
    for c, b in ((Fraction(3, 7), Fraction(1)), (Fraction(5, 6), Fraction(4)), (Fraction(1), Fraction(1, 4))):
        wrong, missed = fractional_binary.whole_losses(c, b)
        assert np.gcd(wrong, missed) == 1
        assert wrong * (b + c) == missed * (1 - c)
