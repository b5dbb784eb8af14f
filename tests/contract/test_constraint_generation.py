"""Depth four and more from some of the rows: the same proofs as from all of them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policytree.problem.types import Problem, SearchLimits, SizeGates, Status
from policytree.solvers import solve_direct
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.exact import constraint_generation
from tests.contract.test_depth_four import planted
from tests.support import oracles

#: Row generation wherever it is possible, from few rows on, one at a time.
SOME_ROWS = SizeGates(
    least_generation_rows=0, most_generation_errors=1.0, most_generation_columns=math.inf, most_generation_rows=1.0,
    generation_first_rows=2, generation_added_rows=1,
)  # fmt: skip
ALL_ROWS = SizeGates(least_generation_rows=math.inf)


@pytest.fixture
def runs(monkeypatch):
    """The searches on some rows that there were."""
    runs, run = [], constraint_generation.ConstraintGeneration.generate

    def counted(self):
        run(self)
        runs.append(self)

    monkeypatch.setattr(constraint_generation.ConstraintGeneration, "generate", counted)
    return runs


def noisy_problem(rng):
    """A problem for brute force whose best tree has errors: as users have it, and as the oracle takes it."""
    n, p, K = int(rng.integers(14, 25)), int(rng.integers(1, 3)), int(rng.integers(2, 4))
    X = rng.integers(0, rng.integers(5, 20), (n, p)).astype(float)
    X[rng.random(X.shape) < rng.choice([0.0, 0.15])] = np.nan
    weights = rng.integers(1, 6, n) if rng.random() < 0.5 else np.ones(n, np.int64)
    losses = weights[:, None] * (rng.integers(0, K, n)[:, None] != np.arange(K))
    ours: dict = {"max_depth": int(rng.integers(4, 6))}
    if rng.random() < 0.4:
        ours["leaf_penalty"] = 1
    if rng.random() < 0.1:
        ours["min_leaf"] = 2
    if rng.random() < 0.2:
        ours["max_leaf_nodes"] = int(rng.integers(5, 10))
    theirs = {"penalty" if key == "leaf_penalty" else key: value for key, value in ours.items()}
    if rng.random() < 0.3:
        ours["feature_costs"] = rng.integers(0, 2, p) / 8
        losses, theirs["penalty"] = 8 * losses, 8 * theirs.get("penalty", 0)
        theirs["column_costs"] = (8 * ours["feature_costs"]).astype(np.int64)[oracles.column_features(X)]
    return X, losses, 8 if "column_costs" in theirs else 1, ours, theirs


def test_equals_brute_force(runs):
    """Weights, prices, minimum counts, limits of leaves, costs of questions and missing values, together."""

    @given(seed=st.integers(0, 2**32 - 1))
    @settings(max_examples=60)
    def check(seed):
        X, losses, scale, ours, theirs = noisy_problem(np.random.default_rng(seed))
        gates = replace(SOME_ROWS, most_generation_rows=1.0 if seed % 3 else 0.6)  # given up on the way
        optimum = oracles.best_objective_fast(oracles.code_columns(X), losses, **theirs)
        problem = Problem(bin_matrix(X), losses / scale, **ours)
        for jobs in (1, 2):
            solution = solve_direct(problem, SearchLimits(n_jobs=jobs, gates=gates))
            assert solution.objective * scale == optimum
            assert solution.lower_bound == solution.objective

    check()
    assert sum(each.inside.sum() < each.node.n_rows for each in runs) > 10


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", ["labels", "weights", "three actions", "prices", "few leaves"])
def test_same_as_from_all_rows(seed, kind, runs):
    """The same objective with and without, the same tree for any number of threads, from a small part of the rows."""
    rng = np.random.default_rng(seed)
    n, K = {"three actions": (200, 3), "few leaves": (50, 2)}.get(kind, (400, 2))
    X, y = planted(rng, n, 3, K, 3)
    X[rng.random(X.shape) < 0.02 * seed] = np.nan
    weights = np.ones(n) if kind == "labels" else rng.lognormal(size=n)
    rules = {"max_depth": 4}
    if kind == "few leaves":
        rules |= {"max_leaf_nodes": 8 - seed}
    if kind == "prices":
        rules |= {"leaf_penalty": 0.5, "feature_costs": np.array([0.0, 0.001, 0.0005])}
    problem = Problem(bin_matrix(X), weights[:, None] * (y[:, None] != np.arange(K)), **rules)
    gates = replace(SOME_ROWS, generation_first_rows=40, generation_added_rows=64)
    one, two = (solve_direct(problem, SearchLimits(n_jobs=jobs, gates=gates)) for jobs in (1, 2))
    assert runs
    all_rows = solve_direct(problem, SearchLimits(gates=ALL_ROWS))
    assert one.objective == pytest.approx(all_rows.objective, rel=1e-12, abs=1e-12)
    assert one.lower_bound == one.objective and one.status is Status.OPTIMAL
    np.testing.assert_array_equal(one.tree.feature, two.tree.feature)
    np.testing.assert_array_equal(one.tree.threshold, two.tree.threshold)


def test_first_questions_are_obeyed(runs):
    """Only the first split is held to some features, on all rows and on some."""
    rng = np.random.default_rng(5)
    X, y = planted(rng, 150, 3, 2, 15)
    problem = Problem(bin_matrix(X), 1.0 * (y[:, None] != np.arange(2)), max_depth=4, root_features=(2,))
    solution = solve_direct(problem, SearchLimits(gates=SOME_ROWS))
    assert runs
    assert solution.tree.feature[0] == 2
    assert solution.objective == solve_direct(problem, SearchLimits(gates=ALL_ROWS)).objective


def test_few_rows_are_enough(monkeypatch):
    """As users have it: a table with few errors, of which most rows are never needed."""
    rng = np.random.default_rng(1)
    X, y = planted(rng, 4000, 4, 2, 6)
    losses = 1.0 * (y[:, None] != np.arange(2))
    seen, step = [], constraint_generation.ConstraintGeneration._may_go_on
    monkeypatch.setattr(
        constraint_generation.ConstraintGeneration,
        "_may_go_on",
        lambda self: seen.append(int(self.inside.sum())) or step(self),
    )
    solution = solve_direct(Problem(bin_matrix(X), losses, max_depth=4))
    assert solution.status is Status.OPTIMAL and solution.lower_bound == solution.objective <= 6
    assert 0 < seen[-1] < 1000


@pytest.mark.parametrize("seconds", [0.0, 0.02, 0.1])
def test_what_is_left_when_time_is_up_is_true(seconds):
    """The bound holds, and the tree has the objective that is told."""
    rng = np.random.default_rng(2)
    X, y = planted(rng, 600, 3, 2, 10)
    losses = 1.0 * (y[:, None] != np.arange(2))
    problem = Problem(bin_matrix(X), losses, max_depth=4)
    cut_short = solve_direct(problem, SearchLimits(time_limit=seconds, gates=SOME_ROWS))
    whole = solve_direct(problem, SearchLimits(gates=SOME_ROWS))
    assert cut_short.lower_bound <= whole.objective <= cut_short.objective
    assert whole.lower_bound == whole.objective
