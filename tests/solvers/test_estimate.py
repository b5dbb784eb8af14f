"""Estimates of the time before a search, the warning they give, and thinned thresholds."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from policytree import OptimalTreeClassifier, PolicyTree, solvers
from policytree.exceptions import InputError, SearchWarning
from policytree.problem.types import Problem, Status
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.exact.direct import solve_direct
from policytree.solvers.exact.estimate import estimated_seconds, in_words


def problem(n, p, depth, values=None, penalty=0.0, rng=None):
    rng = rng or np.random.default_rng(0)
    X = rng.normal(size=(n, p)) if values is None else rng.integers(0, values, (n, p)).astype(float)
    return Problem(bin_matrix(X), rng.normal(size=(n, 2)), penalty, depth)


def test_estimates_grow_with_everything_that_costs_time():
    base = estimated_seconds(problem(500, 5, 3, values=20))
    for larger in (
        problem(5_000, 5, 3, values=20),
        problem(500, 10, 3, values=20),
        problem(500, 5, 4, values=20),
        problem(500, 5, None, values=20, penalty=0.01),
    ):
        assert estimated_seconds(larger) > base
    assert estimated_seconds(problem(500, 5, 3, values=2)) < base


@pytest.mark.parametrize(("depth", "p"), [(0, 3), (1, 3), (2, 1), (None, 2)])
def test_estimates_of_small_problems_are_small(depth, p):
    assert 0 <= estimated_seconds(problem(30, p, depth, values=3, penalty=5.0)) < 1


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(90, "90 seconds"), (600, "10 minutes"), (4 * 3600, "4 hours"), (1e7, "116 days"), (1e300, "thousands of years")],
)
def test_durations_in_words(seconds, words):
    assert in_words(seconds) == words


def test_a_hopeless_search_says_so_before_it_starts(rng, monkeypatch):
    monkeypatch.setattr("policytree.estimators.base.LONG", 0.0)
    X, rewards = rng.normal(size=(50, 2)), rng.normal(size=(50, 2))
    with pytest.warns(SearchWarning, match=r"may take about .* \(50 rows, 98 possible splits\); set time_limit"):
        PolicyTree(max_depth=2).fit(X, rewards)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PolicyTree(max_depth=2, time_limit=60).fit(X, rewards)  # what was asked for needs no warning
        PolicyTree(max_depth=2, guesses="thresholds").fit(X, rewards)


def test_max_bins_thins_and_the_status_says_so(rng):
    X, y = rng.normal(size=(300, 2)), rng.integers(0, 2, 300)
    full = OptimalTreeClassifier(regularization=0, max_depth=2).fit(X, y)
    thin = OptimalTreeClassifier(regularization=0, max_depth=2, max_bins=10).fit(X, y)
    assert full.status_ is Status.OPTIMAL
    assert thin.status_ is Status.OPTIMAL_GIVEN_GUESSES
    assert thin.objective_value_ >= full.objective_value_
    assert OptimalTreeClassifier(max_depth=3, max_bins=400).fit(X, y).status_ is Status.OPTIMAL
    with pytest.raises(InputError, match="max_bins"):
        OptimalTreeClassifier(max_bins=1).fit(X, y)


def test_the_solver_says_how_its_time_is_estimated(monkeypatch):
    """The warning before a long search asks the solver's function, whatever its name."""
    big = problem(200, 3, 2, values=9)
    X, rewards = np.arange(200.0)[:, None], -big.losses

    def stand_in(problem, limits=None):
        return solve_direct(problem, limits)

    monkeypatch.setitem(solvers.ALL_SOLVERS, "stand_in", stand_in)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PolicyTree(solver="stand_in").fit(X, rewards)
        stand_in.estimated_seconds = lambda problem: 3_000.0
        with pytest.warns(SearchWarning, match="about 50 minutes"):
            PolicyTree(solver="stand_in").fit(X, rewards)
    assert solvers.time_estimate("direct") is estimated_seconds
    assert [name for name in solvers.ALL_SOLVERS if solvers.draws(name)] == ["auto", "sampling"]
    assert not solvers.draws("nonsense") and not solvers.draws(["direct"])
