"""Exact trees where a column, or a group of columns, is paid for once on a path."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policytree import CostSensitiveTreeClassifier, OptimalTreeClassifier, PolicyTree, tree_path
from policytree.evaluation import near_ties
from policytree.exceptions import InputError, SearchWarning
from policytree.problem.types import Problem, SearchLimits, SizeGates, Status
from policytree.solvers import solve_direct
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.core.compilation import is_long, is_signed
from policytree.solvers.core.shared_costs import shares_test_costs
from policytree.solvers.exact.direct import SWITCHES
from tests.support.cost_oracles import best_shared_costs


def tiny_problem(seed, n_most=20):
    """Everything at once: ties, weights, indifferent rows, missing values, minimum counts, free columns, groups."""
    rng = np.random.default_rng(seed)
    n, p, K = int(rng.integers(2, n_most)), int(rng.integers(1, 4)), int(rng.integers(2, 4))
    X = rng.integers(0, rng.integers(2, 5), (n, p)).astype(float)
    if rng.random() < 0.3:
        X[rng.random((n, p)) < 0.15] = np.nan
    losses = [
        rng.integers(0, 4, (n, K)).astype(float),
        rng.standard_normal((n, K)),
        rng.integers(0, 2, (n, K)) * rng.lognormal(size=(n, 1)),
    ][rng.integers(3)]
    losses[rng.random(n) < rng.choice([0.0, 0.3])] = 1.0
    weights = [None, rng.integers(1, 4, n).astype(float), rng.lognormal(size=n)][rng.integers(3)]
    costs = rng.choice([0.0, 0.05, 0.1, 0.25, 0.5], p) if rng.random() < 0.5 else 0.5 * rng.random(p)
    return Problem(
        bin_matrix(X),
        losses,
        leaf_penalty=float(rng.choice([0.0, 0.1, 0.5])),
        max_depth=int(rng.integers(2, 4)) if n * p < 45 else 2,
        min_leaf=int(rng.choice([1, 1, 2, 3])),
        arms=rng.integers(0, K, n),
        min_leaf_per_arm=int(rng.choice([0, 0, 0, 1])),
        feature_costs=costs,
        weights=weights,
        root_features=tuple(sorted(set(rng.integers(0, p, 2).tolist()))) if rng.random() < 0.2 else None,
        feature_groups=np.arange(p) if rng.random() < 0.5 else rng.integers(0, p, p),
    )


def assert_optimal(solution, truth):
    if np.isinf(truth):
        assert solution.status is Status.INFEASIBLE
        return
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(truth, abs=1e-8)
    assert solution.lower_bound == pytest.approx(truth, abs=1e-8)


@pytest.mark.parametrize("block", range(10))
def test_the_best_tree_of_tiny_problems(block):
    """300 problems against brute force; about half of them could ask a priced group twice."""
    ask_twice = 0
    for seed in range(30 * block, 30 * (block + 1)):
        problem = tiny_problem(seed)
        truth = best_shared_costs(problem)
        assert_optimal(solve_direct(problem), truth)
        ask_twice += shares_test_costs(problem)
    assert ask_twice > 5


def problem_of_copies(seed, depth, n_most=14):
    """A free column, a copy of it that is the cheap member of a group, and dear members of that group.

    The copy separates nobody where the free column was asked before, and then no longer pays for its group.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, n_most))
    free, rare = rng.integers(0, 3, n).astype(float), (rng.random(n) < 0.3).astype(float)
    copy = np.minimum(free, rng.choice([1.0, 2.0]))
    copy[rng.integers(n)] += rng.integers(2)  # not always quite a copy
    other = rng.integers(0, 3, n).astype(float) if rng.random() < 0.5 else rare[rng.permutation(n)]
    y = (free == free[0]) & (rare == rare[0])
    if rng.random() < 0.5:
        y |= (other == other[0]) & (free != free[0])
    y ^= rng.random(n) < rng.choice([0.0, 0.1])
    losses = np.column_stack([y, ~y]).astype(float)
    if rng.random() < 0.3:
        losses *= rng.integers(1, 5, (n, 1))
    cheap, dear = rng.choice([0.0, 0.005, 0.01, 0.02]), rng.choice([0.03, 0.05, 0.1, 0.2], 2)
    return Problem(
        bin_matrix(np.column_stack([free, copy, rare, other])),
        losses,
        leaf_penalty=float(rng.choice([0.0, 0.0, 0.05])),
        max_depth=depth,
        min_leaf=int(rng.choice([1, 1, 1, 2])),
        feature_costs=np.array([rng.choice([0.0, 0.0, 0.01]), cheap, *dear]),
        weights=[None, rng.integers(1, 4, n).astype(float)][rng.integers(2)],
        feature_groups=np.array([[0, 1, 1, 2], [0, 1, 1, 1], [0, 0, 1, 1]][rng.integers(3)]),
    )


@pytest.mark.parametrize("depth", [3, 4])
@pytest.mark.parametrize("block", range(5))
def test_copies_of_columns_in_groups_of_unequal_prices(block, depth):
    """A split that restricting a tree drops may have been the cheap one that paid for the group."""
    for seed in range(40 * block, 40 * (block + 1)):
        problem = problem_of_copies(seed, depth)
        assert_optimal(solve_direct(problem), best_shared_costs(problem))


@settings(max_examples=25)
@given(st.integers(1_000, 10**9))
def test_depth_four(seed):
    problem = replace(tiny_problem(seed, n_most=9), max_depth=4)
    assert_optimal(solve_direct(problem), best_shared_costs(problem))


def exact_problem(seed):
    """Limits of depth and of leaves, or none; losses and prices whose sums have no rounding."""
    rng = np.random.default_rng(seed)
    n, p, K = int(rng.integers(3, 9)), int(rng.integers(1, 5)), int(rng.integers(2, 5))
    X = rng.integers(0, rng.integers(2, 4), (n, p)).astype(float)
    costs = rng.choice([0.0, 0.125, 0.25, 0.5], p)
    return Problem(
        bin_matrix(X),
        rng.integers(0, 4, (n, K)) / rng.choice([1.0, 8.0]),
        leaf_penalty=float(rng.choice([0.0, 0.125, 0.5])),
        max_depth=[None, 2, 3, 5][rng.integers(4)],
        max_leaf_nodes=[None, 3, 4, 5, 6][rng.integers(5)],
        min_leaf=int(rng.choice([1, 1, 1, 2])),
        feature_costs=costs if rng.random() < 0.7 else np.full(p, costs[0]),
        weights=[None, rng.integers(0, 4, n).astype(float)][rng.integers(2)],
        root_features=tuple(sorted(set(rng.integers(0, p, 2).tolist()))) if rng.random() < 0.1 else None,
        feature_groups=np.arange(p) if rng.random() < 0.3 else rng.integers(0, 1 + p // 2, p),
    )


@settings(max_examples=150)
@given(st.integers(0, 10**9))
def test_limits_of_depth_and_leaves(seed):
    problem = exact_problem(seed)
    solution, truth = solve_direct(problem), best_shared_costs(problem)
    if np.isinf(truth):
        assert solution.status is Status.INFEASIBLE
    else:
        assert solution.objective == truth == solution.lower_bound


def noisy_problem(rng, n, p, values, depth, K=2, groups=None, **rules):
    """Whole losses; every group has one price, or its features differ."""
    X = rng.integers(0, values, (n, p)).astype(float)
    groups = np.arange(p) // 2 if groups is None else groups
    costs = (rng.choice([1.0, 2.0, 4.0], p) if rng.random() < 0.5 else np.full(p, 2.0)) / 64
    losses = rng.integers(0, 3, (n, K)).astype(float)
    return Problem(bin_matrix(X), losses, 0.0, depth, feature_costs=costs, feature_groups=groups, **rules)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("K", [2, 3])
def test_columns_too_long_for_tables(K, seed):
    """Depth two by tiles, where the first split of a group pays for the second one."""
    rng = np.random.default_rng([seed, K])
    n, values, p = (130, 10**6, 2) if K == 2 else (40, 10**6, 3)
    problem = noisy_problem(rng, n, p, values, 2, K, rng.integers(0, 2, p), min_leaf=1 + 2 * int(rng.integers(2)))
    assert is_long(problem.data.n_bins, is_signed(problem))
    assert solve_direct(problem).objective == best_shared_costs(problem)


@pytest.mark.parametrize("seed", range(12))
def test_engines_and_bounds_only_save_work(seed):
    """Depths three to five, with and without every switch, sweeps, cache and threads."""
    rng = np.random.default_rng([seed, 5])
    depth, n = [(3, 60), (4, 40), (5, 25)][seed % 3]
    rules = {"max_leaf_nodes": int(rng.integers(4, 9))} if rng.random() < 0.3 else {}
    problem = noisy_problem(rng, n, 4, 5, depth, int(rng.integers(2, 4)), **rules)
    found = solve_direct(problem)
    assert found.status is Status.OPTIMAL and found.lower_bound == found.objective
    plain = dict.fromkeys(SWITCHES, False)
    for switches in (plain, *({name: False} for name in SWITCHES)):
        assert solve_direct(problem, **switches).objective == found.objective
    assert solve_direct(problem, SearchLimits(n_jobs=2)).objective == found.objective


def test_results_of_other_paths_are_known_by_the_groups_that_were_paid_for():
    """More groups than bits of a number, and a cache in which most results have the same place."""
    rng, hits = np.random.default_rng(0), 0
    for p, n_groups, n in [(68, 66, 12), (5, 2, 60), (5, 3, 60), (5, 3, 60)]:
        problem = noisy_problem(rng, n, p, 3, 5, groups=np.arange(p) % n_groups)
        without = solve_direct(problem, cache=False, similar_support=False).objective
        for gates in (SizeGates(), SizeGates(most_solved_sets=2)):
            found = solve_direct(problem, SearchLimits(gates=gates))
            assert found.objective == without
            hits += found.counters["cache_hits"]
    assert hits > 10


def test_a_column_is_charged_once_and_not_again():
    """Two cuts of one column on a path: charged twice they are not worth it."""
    X = np.repeat([[1.0], [2.0], [3.0]], 10, axis=0)
    y = np.repeat([0, 1, 0], 10)
    arguments = {"regularization": 0.0, "max_depth": 2, "feature_costs": [0.25]}
    once = OptimalTreeClassifier(**arguments, repeated_features="free").fit(X, y)
    again = OptimalTreeClassifier(**arguments).fit(X, y)
    assert once.get_n_leaves() == 3 and once.objective_value_ == pytest.approx(0.25) == once.expected_cost_
    assert again.get_n_leaves() == 1 and again.objective_value_ == pytest.approx(1 / 3)
    assert once.measurement_cost(X).tolist() == [0.25] * 30
    assert sorted(once.node_costs_) == [0.0, 0.0, 0.0, 0.0, 0.25]


@pytest.fixture
def blood(rng):
    """A label that needs two of three values, two of them of one blood sample."""
    X = pd.DataFrame(rng.integers(0, 4, (200, 3)).astype(float), columns=["albumin", "bilirubin", "scan"])
    y = np.where((X["albumin"] > 1) & (X["bilirubin"] > 1), "ill", "well")
    return X, y


COSTS = {"albumin": 0.06, "bilirubin": 0.08, "scan": 0.5}


def test_the_first_of_a_group_pays(blood):
    X, y = blood
    arguments = {"max_depth": 2, "feature_costs": COSTS, "repeated_features": "free"}
    alone = OptimalTreeClassifier(regularization=0.001, **arguments).fit(X, y)
    together = OptimalTreeClassifier(
        regularization=0.001, **arguments, feature_groups={"blood": ["albumin", "bilirubin"]}
    ).fit(X, y)
    assert together.expected_cost_ == pytest.approx(0.06) and together.get_used_features() == ["albumin", "bilirubin"]
    assert alone.expected_cost_ > 0.08
    assert together.measurement_cost(X).mean() == pytest.approx(together.expected_cost_)
    same = OptimalTreeClassifier(regularization=0.001, **arguments, feature_groups=[[0, 1], ["scan"]]).fit(X, y)
    assert same.objective_value_ == together.objective_value_


def test_other_estimators_pay_once_too(blood):
    X, y = blood
    arguments = {"max_depth": 2, "feature_costs": COSTS, "repeated_features": "free",
                 "feature_groups": [["albumin", "bilirubin"]]}  # fmt: skip
    rewards = pd.DataFrame({"wait": np.where(y == "ill", -1.0, 0.0), "treat": np.where(y == "ill", 0.0, -1.0)})
    policy = PolicyTree(**arguments).fit(X, rewards)
    assert policy.objective_value_ == pytest.approx(-0.06) and policy.status_ is Status.OPTIMAL
    sensitive = CostSensitiveTreeClassifier(**arguments).fit(X, y)
    assert sensitive.objective_value_ == pytest.approx(0.06)
    path = tree_path(OptimalTreeClassifier(**arguments), X, y)
    assert path.values[-1] == pytest.approx(0.06) and path.proved


def test_a_stopped_search_has_a_valid_tree_and_bound(rng):
    X = rng.standard_normal((600, 6))
    y = (X[:, 0] * X[:, 1] + rng.standard_normal(600) > 0).astype(int)
    tree = OptimalTreeClassifier(4, 0.0, feature_costs=[0.01] * 6, repeated_features="free")
    job = tree._prepare(X, y)
    solution = solve_direct(job.problem, SearchLimits(time_limit=0.3))
    assert solution.status is Status.TIME_LIMIT
    assert solution.lower_bound <= solution.objective and solution.gap > 0


def test_two_levels_of_many_values_can_be_stopped(rng):
    X = rng.standard_normal((50_000, 20))
    y = (X[:, 0] * X[:, 1] + rng.standard_normal(len(X)) > 0).astype(int)
    tree = OptimalTreeClassifier(2, 0.0, feature_costs=[0.01] * 20, repeated_features="free", time_limit=0.05)
    with pytest.warns(SearchWarning, match="The search ended by time limit"):
        tree.fit(X, y)
    assert tree.solution_.seconds < 5.0 and tree.objective_bound_ < tree.objective_value_ <= y.mean()


def test_near_ties_charge_every_split(blood):
    X, y = blood
    arguments = {"max_depth": 2, "feature_costs": COSTS, "repeated_features": "free"}
    with pytest.raises(InputError, match=r"near_ties charge every split"):
        near_ties(OptimalTreeClassifier(**arguments), X, y)


REFUSED = {
    "solver": ({"solver": "sampling"}, "takes solver='direct' without guesses"),
    "guesses": ({"guesses": "thresholds"}, "takes solver='direct' without guesses"),
    "neither": ({"repeated_features": "paid"}, "repeated_features must be 'charged' or 'free'; got 'paid'"),
    "charged groups": ({"repeated_features": "charged", "feature_groups": [["scan"]]}, "set repeated_features='free'"),
    "groups of nothing": ({"feature_costs": None, "feature_groups": [["scan"]]}, "pass feature_costs as well"),
    "twice": ({"feature_groups": [["scan", "albumin"], [2]]}, "feature_groups holds the column 'scan' twice"),
    "unknown": ({"feature_groups": {"blood": ["sugar"]}}, "feature_groups names the column 'sugar'"),
    "a name": ({"feature_groups": "scan"}, "feature_groups must be a mapping of names to lists of columns"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_had_is_refused(blood, case):
    arguments, message = REFUSED[case]
    arguments = {"max_depth": 2, "feature_costs": COSTS, "repeated_features": "free", **arguments}
    with pytest.raises(InputError, match=message):
        OptimalTreeClassifier(**arguments).fit(*blood)


def test_two_valued_columns_need_no_other_search(blood):
    X, y = blood
    flags = (X > 1).astype(float)
    free = OptimalTreeClassifier(None, 0.001, feature_costs=COSTS, repeated_features="free").fit(flags, y)
    assert free.status_ is Status.OPTIMAL
    assert (
        free.objective_value_ == OptimalTreeClassifier(None, 0.001, feature_costs=COSTS).fit(flags, y).objective_value_
    )
