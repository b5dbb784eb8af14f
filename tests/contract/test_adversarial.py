"""Problems made to break solvers: degenerate shapes, extreme numbers, nonsense."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import policytree
from policytree.exceptions import InputError
from policytree.problem.types import SearchLimits, Status
from policytree.solvers import SOLVERS
from tests.contract.solving import prove
from tests.support import checker, interval_oracles, oracles
from tests.support.strategies import NAN, Case, random_case

PATIENCE = SearchLimits(time_limit=60.0)

each_solver = pytest.mark.parametrize("solver", list(SOLVERS.values()), ids=list(SOLVERS))


def within_resolution(solution, optimum: Fraction, losses) -> bool:
    """Whether an objective is the optimum up to the solver's stated resolution and the rounding of one float sum."""
    error = abs(Fraction(solution.objective) - optimum)
    return error <= Fraction(solution.resolution) + Fraction(1e-14 * checker.absolute_total(losses))


# --- shapes ---


@each_solver
@pytest.mark.parametrize("max_depth", [0, 1, 2, 3, 5, None])
@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_one_row(solver, max_depth, penalty):
    case = Case(np.array([[1.0, NAN, -3.0]]), np.array([[4.0, -2.5, 7.0]]), penalty, max_depth)
    assert prove(solver, case).objective == -2.5 + penalty


@each_solver
@pytest.mark.parametrize("max_depth", [0, 2, 3, None])
def test_nothing_to_split_on(solver, max_depth, rng):
    """No columns, constant columns, only missing values, all rows equal: the tree is the best single action."""
    losses = rng.integers(-9, 10, (12, 3)).astype(float)
    best = losses.sum(axis=0).min()
    for X in (
        np.empty((12, 0)),
        np.full((12, 1), 5.0),
        np.full((12, 2), NAN),
        np.tile([[1.0, -7.0, NAN]], (12, 1)),
        np.tile([[0.0, -0.0]], (12, 1)),
        np.where(np.arange(12)[:, None] % 2, 0.0, -0.0),  # zero and minus zero are one value
    ):
        solution = prove(solver, Case(X, losses, 0.0, max_depth))
        assert solution.objective == best
        assert solution.tree.n_leaves == 1


@each_solver
@pytest.mark.parametrize("max_depth", [0, 1, 2, 3, None])
@pytest.mark.parametrize("value", [0.0, 1.0, -3.0, 1e-300, 1e300 / 50])
def test_all_losses_equal(solver, max_depth, value, rng):
    """Nothing to win: one leaf if leaves cost anything, and the objective is the losses' sum either way."""
    case = Case(rng.normal(size=(40, 3)), np.full((40, 3), value), 0.0, max_depth)
    assert prove(solver, case).objective == pytest.approx(40 * value, rel=1e-14, abs=0)
    priced = prove(solver, case.but(penalty=abs(value) / 64 + 1e-6))
    assert priced.tree.n_leaves == 1


@each_solver
def test_one_action(solver, rng):
    losses = rng.integers(-9, 10, (50, 1)).astype(float)
    for max_depth in (0, 1, 2, 3, None):
        solution = prove(solver, Case(rng.normal(size=(50, 4)), losses, 0.0, max_depth))
        assert solution.objective == losses.sum()
        assert solution.tree.n_leaves == 1


@each_solver
@pytest.mark.parametrize("max_depth", [1, 2])
def test_fifty_actions(solver, max_depth, rng):
    X, losses = rng.integers(0, 6, (120, 3)).astype(float), rng.integers(-50, 50, (120, 50))
    X[rng.random(X.shape) < 0.1] = NAN
    expected = oracles.best_objective_fast(oracles.code_columns(X), losses, max_depth=max_depth)
    assert prove(solver, Case(X, losses.astype(float), 0.0, max_depth)).objective == expected


@each_solver
def test_fifty_actions_depth_three(solver, rng):
    X, losses = rng.integers(0, 3, (80, 3)).astype(float), rng.integers(-50, 50, (80, 50))
    expected = oracles.best_objective_fast(oracles.code_columns(X), losses, max_depth=3)
    assert prove(solver, Case(X, losses.astype(float), 0.0, 3)).objective == expected


@each_solver
def test_a_thousand_columns(solver, rng):
    X, losses = rng.integers(0, 2, (40, 1_000)).astype(float), rng.integers(-9, 10, (40, 2))
    expected = oracles.best_objective_fast(oracles.code_columns(X), losses, max_depth=1)
    assert prove(solver, Case(X, losses.astype(float), 0.0, 1)).objective == expected
    # At depth two, so many random columns leave the oracle with 1,000 roots; that is still quick.
    expected = _depth_two_of_binary_columns(X == 1, losses)
    assert prove(solver, Case(X, losses.astype(float), 0.0, 2)).objective == expected


def _depth_two_of_binary_columns(ones, losses):
    """Best depth-two tree over binary columns (n, p): all pairs at once by matrix products, exact on small integers."""
    best = losses.sum(axis=0).min()
    half = np.zeros((2, ones.shape[1]), dtype=np.int64)  # best of each side of each root
    for side, rows in enumerate((ones, ~ones)):
        there = [rows.T.astype(np.int64) @ (losses[:, [k]] * ones) for k in range(losses.shape[1])]
        total = rows.T.astype(np.int64) @ losses
        both = np.minimum.reduce(there) + np.minimum.reduce([total[:, [k]] - t for k, t in enumerate(there)])
        half[side] = np.minimum(both.min(axis=1), total.min(axis=1))
    return min(best, half.sum(axis=0).min())


@each_solver
def test_identical_columns(solver, rng):
    x, losses = rng.integers(0, 9, 90).astype(float), rng.integers(-9, 10, (90, 3))
    for max_depth in (1, 2, 3):
        expected = interval_oracles.best_intervals(x, losses, 2**max_depth)
        copies = np.column_stack([x, x, -x, np.exp(x), x])
        assert prove(solver, Case(copies, losses.astype(float), 0.0, max_depth)).objective == expected


@each_solver
@pytest.mark.parametrize(
    ("K", "max_depth", "n"),
    [(2, 1, 65_535), (3, 1, 65_535), (2, 2, 65_535), (3, 2, 65_535)],
)
def test_many_distinct_values(solver, K, max_depth, n, rng):
    x, losses = rng.permutation(n).astype(float), rng.integers(-9, 10, (n, K))
    losses[:, 0] += np.where(np.abs(x - n / 2) < n / 8, -1, 1)
    case = Case(x[:, None], losses.astype(float), 0.0, max_depth)
    problem = case.problem()
    assert problem.data.exact and problem.data.n_bins.tolist() == [n]
    solution = solver(problem, PATIENCE)
    assert solution.status is Status.OPTIMAL
    assert solution.objective == interval_oracles.best_intervals(x, losses, 2**max_depth)
    assert checker.score_tree(solution.tree, case.X, case.losses) == Fraction(solution.objective)


@each_solver
def test_two_columns_of_many_distinct_values(solver, rng):
    """One column is the other upside down: a table of all pairs of their thresholds would not fit in memory."""
    n = 20_000
    x, losses = rng.permutation(n).astype(float), rng.integers(-9, 10, (n, 2))
    losses[:, 0] += np.where(np.abs(x - n / 2) < n / 8, -1, 1)
    case = Case(np.column_stack([x, -x]), losses.astype(float), 0.0, 2)
    assert solver(case.problem(), PATIENCE).objective == interval_oracles.best_intervals(x, losses, 4)


# --- numbers ---


@each_solver
@pytest.mark.parametrize("seed", range(4))
def test_extreme_loss_ratios(solver, seed):
    """Losses between 1e-12 and 1e12: the optimum within the stated resolution, which is tiny beside the total."""
    rng = np.random.default_rng(seed)
    n, K = 9, 2 + seed % 2
    losses = 10 ** rng.uniform(-12, 12, (n, 1)) * rng.normal(size=(n, K))
    case = Case(rng.integers(0, 4, (n, 2)).astype(float), losses, 0.0, 2 + seed % 2)
    assert within_resolution(prove(solver, case), case.optimum(), losses)


@each_solver
def test_one_enormous_loss_does_not_swallow_the_rest(solver):
    """The enormous loss is common to both actions of its row, so it must not cost the others their precision."""
    losses = np.array([[2.0**40, 2.0**40], [0, 2.0**-12], [2.0**-12, 0], [0, 2.0**-12]])
    case = Case(np.arange(4.0)[:, None], losses, 0.0, 2)
    assert Fraction(prove(solver, case).objective) == case.optimum() == 2**40


@each_solver
@pytest.mark.parametrize("exponent", [-1_060, -1_000, -600, -100, 100, 600, 950])
@pytest.mark.parametrize("max_depth", [1, 2, 3])
def test_huge_and_tiny_totals(solver, exponent, max_depth, rng):
    """Multiplying by a power of two is exact in float64 and must stay so in the answer."""
    X, losses = rng.integers(0, 5, (60, 2)).astype(float), rng.integers(-9, 10, (60, 3))
    expected = oracles.best_objective_fast(oracles.code_columns(X), losses, max_depth=max_depth)
    solution = prove(solver, Case(X, np.ldexp(losses.astype(float), exponent), 0.0, max_depth))
    assert solution.objective == np.ldexp(float(expected), exponent)


@each_solver
def test_totals_below_the_smallest_normal_number(solver, rng):
    X, losses = rng.integers(0, 5, (60, 2)).astype(float), rng.integers(-9, 10, (60, 3))
    expected = oracles.best_objective_fast(oracles.code_columns(X), losses, max_depth=2)
    losses = np.ldexp(losses.astype(float), -1_060)
    assert within_resolution(prove(solver, Case(X, losses, 0.0, 2)), Fraction(expected, 2**1_060), losses)


@each_solver
@pytest.mark.parametrize("offset", [1e6, -1e12, 2.0**45])
def test_large_common_offsets(solver, offset, rng):
    """Small differences on large losses: 60 rows of 2 ** 45 leave seven bits, and all of them count."""
    X, losses = rng.integers(0, 5, (60, 2)).astype(float), rng.integers(-9, 10, (60, 3))
    expected = oracles.best_objective_fast(oracles.code_columns(X), losses, max_depth=2)
    assert prove(solver, Case(X, losses + offset, 0.0, 2)).objective == expected + 60 * offset


@each_solver
@pytest.mark.parametrize("penalty", [1e-12, 1e12])
def test_extreme_penalties(solver, penalty, rng):
    X, losses = rng.integers(0, 5, (60, 2)).astype(float), rng.integers(-9, 10, (60, 2))
    solution = prove(solver, Case(X, losses.astype(float), penalty, 2))
    if penalty > 1:
        assert solution.objective == losses.sum(axis=0).min() + penalty
    else:
        expected = oracles.best_objective_fast(oracles.code_columns(X), losses, max_depth=2)
        assert expected < solution.objective <= expected + 5 * penalty


@each_solver
@pytest.mark.parametrize("penalty", [2.0**-70, 1e-16, 1 / 3_000])
def test_the_resolution_covers_the_rounding_of_the_penalty(solver, penalty, rng):
    """Whole losses are exact in fixed point, a tiny penalty is not: what is proved must hold up to ``resolution``."""
    for _ in range(100):
        case = random_case(rng).but(penalty=penalty)
        optimum = case.optimum()
        if optimum is not None:
            solution = prove(solver, case)
            costs = case.feature_costs, case.weights
            excess = checker.score_tree(solution.tree, case.X, case.losses, penalty, *costs) - optimum
            assert excess <= Fraction(solution.resolution), f"{float(excess)} > {solution.resolution}: {case!r}"


@each_solver
@pytest.mark.parametrize("n", [1_000, 20_000])
def test_real_losses_of_many_rows_keep_their_resolution(solver, n, rng):
    losses = rng.lognormal(size=(n, 2))
    case = Case(rng.integers(0, 50, (n, 2)).astype(float), losses, 0.0, 2)
    solution = solver(case.problem(), PATIENCE)
    assert 0 < solution.resolution <= 1e-12 * checker.absolute_total(losses)


@each_solver
def test_thresholds_between_neighbouring_and_extreme_values(solver):
    """Midpoints that would overflow, or fall on the upper value, must still split the training rows as planned."""
    big = np.finfo(float).max
    values = [-big, -1.0, -5e-324, 0.0, 5e-324, 1.0, np.nextafter(1.0, 2), np.nextafter(np.nextafter(1.0, 2), 2), big]
    x = np.array(values)
    losses = np.zeros((len(x), 2), dtype=np.int64)
    losses[np.arange(len(x)), (np.arange(len(x)) // 2) % 2] = 1  # 0 0 1 1 0 0 1 1 0
    for max_depth in (1, 2, 3):
        expected = interval_oracles.best_intervals(x, losses, 2**max_depth)
        assert prove(solver, Case(x[:, None], losses.astype(float), 0.0, max_depth)).objective == expected


# --- what no solver may accept ---


@each_solver
@pytest.mark.parametrize(
    "changes",
    [
        {"max_depth": -1},
        {"penalty": -1.0},
        {"penalty": NAN},
        {"penalty": np.inf},
        {"losses": np.full((6, 2), NAN)},
        {"losses": np.array([[np.inf, 0.0]] * 6)},
        {"losses": np.array([[1e308, -1e308]] * 6)},
        {"losses": np.empty((6, 0))},
        {"X": np.empty((0, 2)), "losses": np.empty((0, 2))},
        {"min_leaf_per_arm": 1},
        {"min_leaf_per_arm": 1, "arms": np.zeros(5, dtype=np.intp)},
        {"min_leaf_per_arm": 1, "arms": np.array([0, 1, 2, 0, 1, 2])},
        {"min_leaf_per_arm": 1, "arms": np.array([0, 1, -1, 0, 1, 0])},
    ],
    ids=str,
)
def test_bad_problems_are_refused_in_one_sentence(solver, changes):
    case = Case(np.arange(12.0).reshape(6, 2), np.tile([[0.0, 1.0], [1.0, 0.0]], (3, 1)))
    with pytest.raises(InputError) as caught:
        solver(case.but(**changes).problem(), PATIENCE)
    assert "\n" not in str(caught.value) and str(caught.value).endswith(".")


@each_solver
def test_a_memory_limit_is_obeyed_or_refused(solver, rng):
    """A kilobyte is not enough for anything: stop with a valid tree, or say that the limit cannot be kept."""
    case = Case(rng.normal(size=(2_000, 8)), rng.normal(size=(2_000, 2)), 0.0, 4)
    problem = case.problem()
    try:
        solution = solver(problem, SearchLimits(memory_limit=1e3, time_limit=1.0))
    except InputError:
        return
    checker.check_solution(problem, case.X, solution)
    assert solution.status is Status.MEMORY_LIMIT


@pytest.mark.slow
def test_kernels_stay_inside_their_arrays(tmp_path):
    """Without bounds checks a kernel that writes beyond an array corrupts memory in silence: run once with them.

    Problems of every kind are drawn, a fifth as many as in the run without checks; compiling, which takes most of the
    time, optimises less.
    """
    chosen = "brute_force or numpy_oracle or one_feature or switches or once_failed"
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-k", chosen, "test_solvers.py"],
        cwd=Path(__file__).parent,
        env={
            **os.environ,
            "NUMBA_BOUNDSCHECK": "1",
            "NUMBA_OPT": "1",
            "NUMBA_CACHE_DIR": str(tmp_path),
            "FEWER_PROBLEMS": "5",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-3_000:]


# --- labels ---


@pytest.mark.parametrize(
    "labels", [[0, 1], [0.0, 1.0], [1.5, -2.0], ["b", "a"], [True, False], [10**12, 7]], ids=lambda labels: str(labels)
)
@pytest.mark.parametrize("name", list(SOLVERS))
def test_labels_come_back_as_they_were(name, labels, rng):
    """Whatever the labels are, prediction returns them, and the rule is the same."""
    X = pd.DataFrame({"x": rng.normal(size=60)})
    good = (X["x"] > 0.2).to_numpy()
    rewards = pd.DataFrame({labels[0]: np.where(good, 1.0, 0.0), labels[1]: np.where(good, 0.0, 1.0)})
    policy = policytree.PolicyTree(max_depth=2, solver=name).fit(X, rewards)
    predicted = policy.predict(X)
    expected = np.array(labels)[np.where(good, 0, 1)]
    assert list(predicted) == list(expected)
    assert policy.objective_value_ == 1.0
    assert set(policy.treatments_) == set(labels)
