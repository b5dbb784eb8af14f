"""A bound by pairs of rows that want different actions: brute force, exact limits, whole searches."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize
from scipy.stats import rankdata
from sklearn.datasets import load_breast_cancer

from policytree.problem.types import Problem, SearchLimits, SizeGates, Status
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.core.columns import columns_of
from policytree.solvers.core.compilation import CONFLICT_PAIRS, SUBSET_KERNELS, load_kernels
from policytree.solvers.core.fixed_point import to_fixed_point
from policytree.solvers.core.limits import Clock
from policytree.solvers.core.rows import new_control, prepare
from policytree.solvers.core.search_state import Incumbent
from policytree.solvers.exact.bounds import conflict_pairs
from policytree.solvers.exact.bounds.conflict_pairs import ConflictPairs, make_conflicts, pair_bound
from policytree.solvers.exact.direct import solve_direct
from policytree.solvers.exact.shared_state import SharedState
from policytree.solvers.exact.subset_search import start_subset_search
from policytree.solvers.kernels.base.layout import INF
from policytree.solvers.kernels.conflicts.fit import fit_numbers
from policytree.solvers.kernels.subsets.layout import CLOSED, ENTERED
from tests.solvers.test_row_duals import noisy_case
from tests.support.kernel_oracles import conflict_sums
from tests.support.strategies import Case, random_case

KERNELS = [*SUBSET_KERNELS, (CONFLICT_PAIRS, "")]


def node_of(problem: Problem, merge: bool = True):
    """All rows of a problem, and its fixed point."""
    costs = problem.feature_costs, problem.weights
    fixed = to_fixed_point(problem.losses, problem.leaf_penalty, problem.data.n_rows, *costs)
    return prepare(problem, fixed, merge), fixed


@pytest.mark.parametrize("seed", range(4))
def test_no_tree_with_a_split_costs_less(seed):
    """Beside brute force with every constraint together, down to any depth."""
    load_kernels(KERNELS)
    rng = np.random.default_rng([seed, 310])
    strong = 0
    for k in range(24):
        case = noisy_case(rng) if k % 2 else random_case(rng, max_rows=12)
        case = case.but(penalty=case.penalty or 0.25, max_depth=None if rng.random() < 0.7 else case.max_depth)
        problem, optimum = case.problem(), case.optimum()
        if optimum is None or not len(problem.data.n_bins) or problem.losses.shape[1] < 2:
            continue
        node, fixed = node_of(problem, merge=bool(rng.random() < 0.5))
        if not len(node.bins):
            continue
        bound, (leaf, floor) = pair_bound(node, make_conflicts(node)), node.leaf()
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


def fitted(node, conflicts, rows, columns, fewest, rounds=30):
    """Fit the pairs within some rows, if trees may split on these columns; returns whole numbers of all pairs."""
    features, cuts = (x.astype(np.int32) for x in columns_of(node.bins - 1))
    conflicts.rows[: len(rows)] = rows
    given = columns.astype(np.int32), len(columns), features, cuts
    fit_numbers(conflicts, len(rows), *given, node.penalty, fewest, rounds)
    inside = np.isin(conflicts.pairs, rows).all(axis=1)
    numbers = np.zeros(len(conflicts.pairs), np.int64)
    numbers[conflicts.kept[: inside.sum()]] = conflicts.number[: inside.sum()]
    assert not numbers[~inside].any() and not conflicts.inside.any()
    return numbers


def best_by_linear_programme(node, conflicts, rows, columns, fewest):
    """The most that (all numbers) - (fewest - 1) * allowance can be, in leaf penalties."""
    features, cuts = columns_of(node.bins - 1)
    pairs = conflicts.pairs[np.isin(conflicts.pairs, rows).all(axis=1)]
    side = (node.codes[features[columns]] > cuts[columns, None]).T
    separated = (side[pairs[:, 0]] != side[pairs[:, 1]]).T.astype(float)
    in_row = (pairs[:, :, None] == np.arange(node.n_rows)).any(axis=1).T.astype(float)
    A = np.vstack(
        [np.hstack([separated, -np.ones((len(columns), 1))]), np.hstack([in_row, np.zeros((len(in_row), 1))])]
    )
    limits = np.concatenate([np.zeros(len(columns)), conflicts.regret / node.penalty])
    cost = np.append(-np.ones(len(pairs)), fewest - 1.0)
    solved = scipy.optimize.linprog(cost, A_ub=A, b_ub=limits, bounds=[(0, None)] * len(pairs) + [(0, 1)])
    return -solved.fun


@pytest.mark.parametrize("seed", range(3))
def test_limits_are_kept_exactly_and_numbers_are_nearly_the_best(seed):
    """Of subsets of rows and of columns one after the other, whatever the numbers are before rounding."""
    load_kernels(KERNELS)
    rng = np.random.default_rng([seed, 311])
    node, _ = node_of(many_columns([seed, 311], rows=60, columns=6, rate=0.06))
    conflicts, shares = make_conflicts(node), []
    for k in range(12):
        rows = np.sort(rng.choice(node.n_rows, int(rng.integers(20, node.n_rows + 1)), replace=False))
        every = columns_of(node.bins - 1)
        columns = np.flatnonzero(rng.random(len(every[0])) < 0.8)
        fewest = int(rng.integers(2, 5))
        if k % 3 == 2:  # what was fitted is not trusted
            conflicts.share[:] = rng.random(len(conflicts.share)) * rng.choice([0.0, 1.0, 1e6])
            conflicts.cut_price[:] = conflicts.row_price[:] = 0.0
        rounds = 0 if k % 3 == 2 else 2_000
        numbers = fitted(node, conflicts, rows, columns, fewest, rounds)
        allowance, total, slots = map(int, conflicts.result)
        pairs, cuts = conflicts.pairs.tolist(), list(zip(*(x[columns].tolist() for x in every), strict=True))
        of_row, separated, within = conflict_sums(node.codes.T.tolist(), pairs, numbers.tolist(), cuts)
        assert numbers.min() >= 0 and numbers.sum() == total and 0 <= allowance <= node.penalty
        assert (np.array(of_row) <= conflicts.regret).all() and max(separated) <= allowance
        at = conflicts.column[:slots] >= 0
        assert conflicts.column[:slots][at].tolist() == columns.tolist()
        for v in range(2):
            assert conflicts.left[v * slots : (v + 1) * slots][at].tolist() == within[v]
        if rounds:
            best = best_by_linear_programme(node, conflicts, rows, columns, fewest)
            reached = (total - (fewest - 1) * allowance) / node.penalty
            assert reached <= best + 1e-6
            shares.append((reached + fewest - 1) / (best + fewest - 1))
    assert min(shares) > 0.8 and np.mean(shares) > 0.93


def test_searches_that_it_bounds_find_the_same(monkeypatch):
    """Subsets are bounded by pairs from the second slice on, as if their bound of all rows had been the better one."""

    def improved(shared, bound, depth, seconds, original=SharedState.improve):
        pays = bound.pays(seconds)
        original(shared, bound, depth, seconds)
        if pays:
            bound.conflicts = make_conflicts(bound.node)
        shared.used[bound.counter] += bound.conflicts is not None

    monkeypatch.setattr(SharedState, "improve", improved)
    limits, closed = SearchLimits(time_limit=20.0), 0
    for seed in range(3):
        problem = many_columns([312, seed], rows=120, columns=17, rate=0.05)
        gates = SizeGates(pair_share=math.inf, least_set_slice=1 << 8, most_set_slice=1 << 10)
        without = solve_direct(problem, replace(limits, gates=gates), conflict_pairs=False)
        solution = solve_direct(problem, replace(limits, gates=gates))
        assert without.counters["closed_by_conflict_pairs"] == 0
        closed += solution.counters["closed_by_conflict_pairs"]
        assert solution.status is without.status is Status.OPTIMAL
        assert solution.objective == without.objective and solution.lower_bound == without.lower_bound
    assert closed > 0


@pytest.mark.parametrize("kind", ["plain", "weights", "three actions", "minimum"])
def test_a_small_real_table_with_rare_categories_and_repeated_rows(kind):
    """150 patients, some of them twice, their measurements in fifths, and a category that five of them have."""
    X, y = load_breast_cancer(return_X_y=True)
    rng = np.random.default_rng(316)
    rows = np.concatenate([np.arange(140), rng.integers(0, 140, 10)])
    X = np.ceil(5 * rankdata(X[rows][:, 4:22], axis=0) / 150)
    X = np.column_stack([X, np.where(np.arange(150) < 5, 2.0, rows % 2)])
    y = np.where(rng.random(150) < 0.15, 1 - y[rows], y[rows])
    if kind == "three actions":
        y[rng.permutation(150)[:12]] = 2  # a rare one
    weights = rng.choice([0.5, 1.0, 3.0], 150) if kind == "weights" else np.ones(150)
    losses = weights[:, None] * (y[:, None] != np.arange(y.max() + 1))
    load_kernels(KERNELS)
    minimum = 10 if kind == "minimum" else 1
    problem = Case(
        X, losses, max_depth=None, penalty=6.0 * weights.mean(), min_leaf=minimum, categorical=(18,)
    ).problem()
    node, _ = node_of(problem)
    values, entered = [], []
    for used in (True, False):
        search = start_subset_search(node, problem.data.n_rows, Clock(None, new_control()))
        if used:
            search.use_conflicts(make_conflicts(node))
        value = INF
        while search.bound < value:
            value = min(value, search.advance(INF, 1 << 20))
            assert not search.ended or search.bound == value
        assert (search.counters[CLOSED] > 0) == used
        values.append(value)
        entered.append(int(search.counters[ENTERED]))
    assert values[0] == values[1] and entered[0] < entered[1]


def test_noisy_rows_of_many_columns_have_a_bound_far_above_the_floor():
    load_kernels(KERNELS)
    node, _ = node_of(many_columns(313, rows=600, rate=0.02))
    leaf, floor = node.leaf()
    assert floor + 5 * node.penalty < pair_bound(node, make_conflicts(node)) <= leaf + node.penalty


def test_a_fit_that_would_not_raise_the_bound_ends_early(monkeypatch):
    """Whatever is returned holds; pairs are kept for subsets only where they raise the bound, and by enough."""
    load_kernels(KERNELS)
    node, clock = node_of(many_columns(317, rows=300))[0], Clock(None, new_control())
    (leaf, floor), best = node.leaf(), pair_bound(node, make_conflicts(node))
    rounds = []

    def counted(*args, original=conflict_pairs.pair_bound):
        rounds.append(args[2] if len(args) > 2 else conflict_pairs.ROUNDS)
        return original(*args)

    monkeypatch.setattr(conflict_pairs, "pair_bound", counted)
    value = leaf + node.penalty
    far = floor + 20 * (best - floor)
    for share, value_of_tree, ends in ((0.5, value, False), (1.5, value, True), (0.0, far, True)):
        proved = floor + round(share * (best - floor))
        pairs = ConflictPairs(node, clock, incumbent=Incumbent(value_of_tree, [(-1, 0)], proved))
        bound = pairs.work(value_of_tree, [(-1, 0)], 3, 1e3)
        assert (len(rounds) == 1) == ends == (pairs.conflicts is None)
        assert bound <= best if ends else bound - floor >= 0.95 * (best - floor)
        assert not pairs.pays(1e3)
        rounds.clear()


@pytest.mark.parametrize("largest", [9, 2**40])
def test_nearest_rows_are_the_first_among_equals(largest):
    rng = np.random.default_rng(318)
    values = rng.integers(0, 4, (30, 40)) * (largest // 9)
    for most in (1, 8, 40, 50):
        expected = np.sort(np.argsort(values, axis=1, kind="stable")[:, :most], axis=1)
        assert np.array_equal(np.sort(conflict_pairs._least(values, most), axis=1), expected)


def test_where_it_pays():
    load_kernels(KERNELS)
    node, clock = node_of(many_columns(314))[0], Clock(None, new_control())
    assert ConflictPairs(node, clock).pays(1e3)
    assert not ConflictPairs(node, clock).pays(1e-3)  # the search is short
    pairs = ConflictPairs(node, clock)
    assert pairs.work(0, [(-1, 0)], 3, 1e3) == pair_bound(node, make_conflicts(node))
    assert not pairs.pays(1e3)  # it is found once
    assert not ConflictPairs(node_of(many_columns(314, columns=5))[0], clock).pays(1e3)  # prices of rows do better
    clock.fits_memory = lambda more: False
    assert not ConflictPairs(node, clock).pays(1e3)


def test_rows_that_agree_have_no_pairs():
    load_kernels(KERNELS)
    X = np.arange(8.0)[:, None] % 3
    problem = Problem(bin_matrix(X), np.column_stack([np.zeros(8), np.ones(8)]), 0.5, None)
    node, _ = node_of(problem)
    assert pair_bound(node, make_conflicts(node)) == node.leaf()[1] + 2 * node.penalty
