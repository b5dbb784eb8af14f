"""Weighted sampling: the draws, what they promise, and how fast they converge."""

import math
from dataclasses import replace

import numpy as np
import pytest

from policytree.exceptions import InputError
from policytree.problem.types import Problem, SearchLimits, Status
from policytree.solvers.approximate.sampling import sampling_radius, solve_sampling
from policytree.solvers.exact.direct import solve_direct
from tests.solvers.test_duplication import labelled_problem


def test_radius_is_hoeffdings():
    radius = sampling_radius(2_000, 0.05)
    assert 2 * math.exp(-2 * 2_000 * radius**2) == pytest.approx(0.05)
    assert sampling_radius(2_000, 0.05, n_draws=10) == pytest.approx(sampling_radius(2_000, 0.005))


def test_seeds_threads_and_scale(rng):
    problem, *_ = labelled_problem(rng)
    solutions = [
        solve_sampling(problem, SearchLimits(n_jobs=jobs), amplification=0.5, n_draws=4, random_state=3)
        for jobs in (1, 2, 4)
    ]
    assert len({s.objective for s in solutions}) == 1
    scaled = replace(problem, losses=problem.losses * 0.3, leaf_penalty=problem.leaf_penalty * 0.3)
    other = solve_sampling(scaled, amplification=0.5, n_draws=4, random_state=3)
    assert other.objective == pytest.approx(0.3 * solutions[0].objective, rel=1e-12)
    several = [solve_sampling(problem, amplification=0.3, random_state=seed).objective for seed in range(10)]
    assert len(set(several)) > 1


def test_more_draws_are_never_worse(rng):
    problem, *_ = labelled_problem(rng)
    values = [solve_sampling(problem, amplification=0.2, n_draws=k, random_state=1).objective for k in (1, 2, 4, 8, 16)]
    assert values == sorted(values, reverse=True)
    assert values[-1] < values[0]


def test_objective_is_the_full_weighted_one(rng):
    problem, X, y, w = labelled_problem(rng, penalty=0.01)
    solution = solve_sampling(problem, amplification=0.3)
    wrong = solution.tree.action[solution.tree.apply(X)] != y
    expected = w[wrong].sum() + 0.01 * w.sum() * solution.tree.n_leaves
    assert solution.objective == pytest.approx(expected, rel=1e-12)
    assert solution.status is Status.HEURISTIC
    assert solution.counters["drawn_rows"] == 60


@pytest.mark.parametrize("kind", ["labels", "three actions"])
def test_probable_bound_fails_no_more_often_than_it_says(kind):
    rng = np.random.default_rng(41)
    problem, *_ = labelled_problem(rng)
    if kind == "three actions":
        problem = Problem(problem.data, rng.normal(size=(200, 3)) * rng.lognormal(size=(200, 1)), 2.0, 2)
    optimum = solve_direct(problem).objective
    failures = 0
    for seed in range(100):
        solution = solve_sampling(problem, amplification=0.5, random_state=seed, delta=0.3)
        failures += solution.guarantees["probable_lower_bound"] > optimum + 1e-9
        assert solution.lower_bound <= optimum <= solution.objective + 1e-9
    assert failures <= 45  # 30 expected at most; 45 is beyond three standard errors


def test_theorem_3_covers_the_optimal_tree():
    rng = np.random.default_rng(42)
    problem, X, y, w = labelled_problem(rng, penalty=0.0)
    tree = solve_direct(problem).tree
    wrong = tree.action[tree.apply(X)] != y
    share, size = w / w.sum(), 100
    radius = sampling_radius(size, 0.2)
    errors = np.array([rng.multinomial(size, share) @ wrong / size for _ in range(2_000)]) - share @ wrong
    assert (np.abs(errors) > radius).mean() <= 0.2
    assert np.abs(errors).max() > radius / 2  # and it says something


def test_time_is_shared_among_draws():
    rng = np.random.default_rng(43)
    problem, *_ = labelled_problem(rng, n=3_000, n_values=500, p=10, max_depth=4, penalty=0.0)
    limits = SearchLimits(time_limit=1.0)
    solution = solve_sampling(problem, limits, n_draws=4)
    assert solution.status is Status.TIME_LIMIT
    assert solution.seconds < 2.0
    assert solution.counters["draws"] >= 2


def test_constraints_hold_on_all_rows(rng):
    problem, X, *_ = labelled_problem(rng, penalty=0.0)
    arms = rng.integers(0, 2, 200)
    constrained = replace(problem, min_leaf=30, arms=arms.astype(np.intp), min_leaf_per_arm=12)
    tree = solve_sampling(constrained, amplification=0.2).tree
    leaves = tree.apply(X)
    for leaf in np.unique(leaves):
        assert np.bincount(arms[leaves == leaf], minlength=2).min() >= 12 and (leaves == leaf).sum() >= 30
    assert solve_sampling(replace(problem, min_leaf=500)).status is Status.INFEASIBLE


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"amplification": 0}, "amplification"),
        ({"amplification": "much"}, "amplification"),
        ({"n_draws": 0}, "n_draws"),
        ({"n_draws": 1.5}, "n_draws"),
        ({"delta": 1.0}, "delta"),
    ],
)
def test_bad_options_are_named(rng, options, match):
    problem, *_ = labelled_problem(rng)
    with pytest.raises(InputError, match=match):
        solve_sampling(problem, **options)


@pytest.mark.slow
def test_mean_objective_converges_at_the_predicted_rate():
    """Over 200 seeds the mean excess stays below Hoeffding's and falls with the sample size at least like its root."""
    rng = np.random.default_rng(44)
    problem, *_ = labelled_problem(rng, n=400, n_values=12, penalty=0.0)
    total, optimum = problem.losses.sum(), solve_direct(problem).objective
    excess = []
    ratios = (0.25, 1.0, 4.0, 16.0)
    for ratio in ratios:
        values = [solve_sampling(problem, amplification=ratio, random_state=seed).objective for seed in range(200)]
        excess.append((np.mean(values) - optimum) / total)
    radii = [sampling_radius(round(400 * ratio), 0.5) for ratio in ratios]
    assert all(e <= 2 * r for e, r in zip(excess, radii, strict=True))
    slope = np.polyfit(np.log(ratios), np.log(np.maximum(excess, 1e-12)), 1)[0]
    assert slope <= -0.5 + 0.1, f"mean excess {excess} falls with exponent {slope:.2f}, predicted -0.5 or faster"
