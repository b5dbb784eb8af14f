"""Changes of a problem that must leave the optimum where it is, or move it by a known amount."""

from __future__ import annotations

import numpy as np
import pytest

from policytree.problem.types import Status
from policytree.solvers import SOLVERS
from tests.contract.solving import solve
from tests.support import strategies

pytestmark = pytest.mark.parametrize("solver", list(SOLVERS.values()), ids=list(SOLVERS))


@pytest.fixture(params=["tiny", "tiny constrained", "larger", "larger penalised", "few leaves", "dear tests", "deep"])
def some_case(request):
    rng = np.random.default_rng(7)
    if request.param.startswith("tiny"):
        case = strategies.random_case(rng).but(max_depth=3)
        return case.but(min_leaf=2) if "constrained" in request.param else case
    if request.param == "few leaves":
        return strategies.planted_case(rng, 100, 4, 3, 6, max_depth=4, max_leaf_nodes=5, root_features=(1, 3))
    if request.param == "dear tests":
        case = strategies.planted_case(rng, 150, 5, 3, 12, max_depth=3, penalty=8.0)
        return case.but(feature_costs=rng.integers(0, 9, 5) / 8, weights=rng.integers(0, 4, 150).astype(float))
    if request.param == "deep":
        return strategies.planted_case(rng, 60, 3, 3, 4, max_depth=4, min_leaf=3)
    penalty = 25.0 if "penalised" in request.param else 0.0
    return strategies.planted_case(rng, 150, 5, 3, 12, max_depth=3, penalty=penalty)


def test_shifting_a_row_moves_the_objective_by_the_shift(solver, some_case, rng):
    before = solve(solver, some_case).objective
    shift = rng.integers(-1_000, 1_000, len(some_case.X))
    after = solve(solver, some_case.but(losses=some_case.losses + shift[:, None])).objective
    assert after == before + shift.sum()


@pytest.mark.parametrize("factor", [2.0**-30, 0.125, 3.0, 1024.0])
def test_scaling_losses_and_penalty_scales_the_objective(solver, some_case, factor):
    before = solve(solver, some_case).objective
    costs = None if some_case.feature_costs is None else some_case.feature_costs * factor
    scaled = some_case.but(losses=some_case.losses * factor, penalty=some_case.penalty * factor, feature_costs=costs)
    assert solve(solver, scaled).objective == before * factor


def test_permuting_rows_columns_and_actions_keeps_the_objective(solver, some_case, rng):
    before = solve(solver, some_case).objective
    rows, actions = rng.permutation(len(some_case.X)), rng.permutation(some_case.losses.shape[1])
    columns = rng.permutation(some_case.X.shape[1])
    permuted = some_case.but(
        X=some_case.X[rows][:, columns],
        losses=some_case.losses[rows][:, actions],
        arms=None if some_case.arms is None else np.argsort(actions)[some_case.arms[rows]],
        categorical=tuple(j for j, c in enumerate(columns) if c in some_case.categorical),
        **_scope(some_case, columns, rows),
    )
    assert solve(solver, permuted).objective == before


def _scope(case, columns, rows):
    """Costs, weights and first features of a case with other columns (places in the old ones) and rows."""
    costs, weights, roots = case.feature_costs, case.weights, case.root_features
    return {
        "feature_costs": None if costs is None else costs[columns],
        "weights": None if weights is None else weights[rows],
        "root_features": None if roots is None else tuple(j for j, c in enumerate(columns) if c in roots),
    }


def test_monotone_transforms_keep_the_objective(solver, some_case, rng):
    before = solve(solver, some_case).objective
    X = some_case.X.copy()
    for j in range(X.shape[1]):
        if j not in some_case.categorical:
            values, codes = np.unique(X[:, j], return_inverse=True)
            new = np.unique(rng.normal(scale=1e6, size=2 * len(values) + 5))[: len(values)]
            X[:, j] = np.where(np.isnan(X[:, j]), np.nan, new[codes])
    assert solve(solver, some_case.but(X=X)).objective == before


def test_mirrored_features_keep_the_objective(solver, some_case):
    mirrored = some_case.X.copy()
    numeric = [j for j in range(mirrored.shape[1]) if j not in some_case.categorical]
    mirrored[:, numeric] *= -1
    assert solve(solver, some_case.but(X=mirrored)).objective == solve(solver, some_case).objective


def test_repeating_rows_doubles_the_losses(solver, some_case):
    costs = None if some_case.feature_costs is None else 2 * some_case.feature_costs
    doubled = some_case.but(losses=2 * some_case.losses, feature_costs=costs)
    arms = None if some_case.arms is None else np.tile(some_case.arms, 2)
    repeated = some_case.but(
        X=np.tile(some_case.X, (2, 1)),
        losses=np.tile(some_case.losses, (2, 1)),
        min_leaf=2 * some_case.min_leaf,
        arms=arms,
        min_leaf_per_arm=2 * some_case.min_leaf_per_arm,
        weights=None if some_case.weights is None else np.tile(some_case.weights, 2),
    )
    assert solve(solver, repeated).objective == solve(solver, doubled).objective


def test_useless_columns_and_rows_keep_the_objective(solver, some_case):
    before = solve(solver, some_case).objective
    n = len(some_case.X)
    X = np.column_stack([some_case.X, some_case.X[:, 0], np.full(n, 3.0), np.full(n, np.nan)])
    columns = [*range(some_case.X.shape[1]), 0, 0, 0]
    wider = some_case.but(X=X, **_scope(some_case, columns, np.arange(n)))
    assert solve(solver, wider.but(categorical=())).objective <= before
    if 0 not in some_case.categorical:
        assert solve(solver, wider).objective == before


def test_deeper_is_never_worse(solver, some_case):
    tiny = len(some_case.X) < 20
    depths = [0, 1, 2, 3, 4, 5, len(some_case.X), None] if tiny else [0, 1, 2, 3]
    objectives = [solve(solver, some_case.but(max_depth=depth)).objective for depth in depths]
    assert objectives == sorted(objectives, reverse=True)
    assert not tiny or objectives[-1] == objectives[-2]


def test_a_dearer_leaf_means_fewer_leaves(solver, some_case):
    penalties = [0.0, 0.5, 4.0, 12.0, 20.0, 28.0, 1e6]
    solutions = [solve(solver, some_case.but(penalty=penalty)) for penalty in penalties]
    leaves = [s.tree.n_leaves for s in solutions[1:]]  # without a penalty, useless leaves cost nothing
    assert leaves == sorted(leaves, reverse=True)
    assert leaves[-1] == 1
    # The optimum is a smallest line among lines in the penalty: rising and concave.
    objectives = [s.objective for s in solutions]
    slopes = np.diff(objectives) / np.diff(penalties)
    assert (slopes >= 1).all() and (np.diff(slopes) <= 1e-9).all()


def test_minimum_leaf_sizes_only_cost(solver, some_case):
    objectives = [solve(solver, some_case.but(min_leaf=size)).objective for size in (1, 2, 5, 10_000)]
    assert objectives == sorted(objectives)
    assert solve(solver, some_case.but(min_leaf=10_000)).status is Status.INFEASIBLE
