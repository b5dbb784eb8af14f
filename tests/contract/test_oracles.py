"""The oracles check each other: a checker that is wrong certifies anything."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings

from policytree.data.features import Feature
from policytree.trees.tree import Tree
from tests.support import checker, interval_oracles, kernel_oracles, oracles, strategies
from tests.support.strategies import NAN, Case


@settings(max_examples=60)
@given(strategies.cases(max_rows=5, max_features=2, max_actions=2))
def test_recursion_agrees_with_writing_down_every_tree(case):
    splits = oracles.all_splits(case.X, case.categorical)[:5]
    depth = min(case.max_depth if case.max_depth is not None else 2, 2)
    fields = (case.penalty, case.min_leaf, case.arms, case.min_leaf_per_arm)
    scope = (case.max_leaf_nodes, case.feature_costs, case.weights, case.root_features)
    scores = [
        oracles.score_rule(rule, case.X, case.losses, *fields, *scope)
        for rule in oracles.enumerate_trees(splits, case.losses.shape[1], depth)
    ]
    best = min((s for s in scores if s is not None), default=None)
    if len(splits) == len(oracles.all_splits(case.X, case.categorical)):
        assert case.but(max_depth=depth).optimum() == best
    else:  # fewer splits can only be worse
        assert best is None or case.but(max_depth=depth).optimum() <= best


@pytest.mark.parametrize("seed", range(3))
def test_recursion_agrees_with_the_numpy_recursion(seed):
    rng = np.random.default_rng(seed)
    for _ in range(60):
        case = strategies.random_case(rng, max_rows=9)
        fast = case.fast_optimum(unit=2**10)
        assert case.optimum() == (None if fast is None else Fraction(fast, 2**10)), case


def test_recursion_agrees_with_intervals_on_one_feature(rng):
    for _ in range(60):
        n, K, depth = int(rng.integers(1, 10)), int(rng.integers(1, 4)), int(rng.integers(0, 4))
        x, losses = rng.integers(0, 8, n).astype(float), rng.integers(-5, 6, (n, K))
        penalty, min_leaf = int(rng.integers(0, 3)), int(rng.integers(1, 3))
        if n < min_leaf:
            continue
        case = Case(x[:, None], losses.astype(float), penalty, depth, min_leaf)
        assert interval_oracles.best_intervals(x, losses, 2**depth, penalty, min_leaf) == case.optimum(), case


def test_twins_of_the_kernels_agree_with_the_recursion(rng):
    for _ in range(40):
        n, p = int(rng.integers(2, 8)), int(rng.integers(1, 4))
        codes, losses = rng.integers(0, 4, (n, p)), rng.integers(-5, 6, (n, 2))
        X = codes.astype(float)
        case = Case(X, losses.astype(float), 1.0, 2)
        assert kernel_oracles.best_depth_two(codes, losses, penalty=1) == case.optimum()
        stump = min(kernel_oracles.best_one_split(codes[:, j].tolist(), losses.tolist())[0] for j in range(p))
        assert stump == case.but(penalty=0.0, max_depth=1).optimum()
        base, delta = kernel_oracles.signed_deltas(losses)
        assert stump == base + min(kernel_oracles.best_one_split_signed(codes[:, j], delta) for j in range(p))


def test_known_optima_by_hand():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    losses = np.array([[0, 1], [1, 0], [0, 1], [1, 0]], dtype=float)
    assert [Case(X, losses, max_depth=d).optimum() for d in (0, 1, 2, None)] == [2, 1, 0, 0]
    assert [Case(X, losses, 0.25, max_depth=d).optimum() for d in (0, 1, 2, None)] == [2.25, 1.5, 1, 1]
    assert Case(X, losses, max_depth=2, min_leaf=2).optimum() == 2
    assert Case(X, losses, max_depth=2, min_leaf=5).optimum() is None
    halves = Case(X, np.array([[0, 1], [0, 1], [1, 0], [1, 0]], dtype=float), min_leaf_per_arm=1)
    assert halves.but(arms=np.array([0, 1, 0, 1])).optimum() == 0
    assert halves.but(arms=np.array([0, 0, 1, 1])).optimum() == 2
    assert halves.but(arms=np.array([0, 0, 0, 0])).optimum() is None


def test_known_optima_with_few_leaves_and_test_costs_by_hand():
    X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
    losses = np.array([[0, 4], [4, 0], [0, 4], [4, 0]], dtype=float)
    assert [Case(X[:, :1], losses, max_leaf_nodes=h).optimum() for h in (1, 2, 3, 4)] == [8, 4, 4, 0]
    assert Case(X[:, :1], losses, max_depth=3, max_leaf_nodes=3).optimum() == 4
    dear = Case(X, losses, feature_costs=np.array([0.25, 1.5]))
    # The second column tells all apart for 4 * 1.5; the first needs two levels of 4 * 0.25.
    assert [dear.but(max_depth=d).optimum() for d in (1, 2)] == [5, 2]
    assert dear.but(max_depth=1, weights=np.array([1.0, 0, 0, 1])).optimum() == 3
    assert dear.but(max_depth=1, root_features=(1,)).optimum() == 6
    assert dear.but(max_depth=1, root_features=()).optimum() == 8


def test_missing_values_go_to_the_better_side_and_can_be_split_off():
    losses = np.array([[0, 1], [1, 0], [0, 1]], dtype=float)
    with_low = Case(np.array([[0.0], [1.0], [NAN]]), losses, max_depth=1)
    assert with_low.optimum() == 0
    alone = Case(np.array([[0.0], [NAN], [1.0]]), losses, max_depth=1)
    assert alone.optimum() == 0
    category = Case(np.array([[0.0], [1.0], [0.0]]), losses, max_depth=1, categorical=(0,))
    assert category.optimum() == 0


def _stump(**changes):
    arrays = dict(
        children_left=np.array([1, -1, -1], np.int32),
        children_right=np.array([2, -1, -1], np.int32),
        feature=np.array([0, -2, -2], np.int32),
        threshold=np.array([0.5, NAN, NAN]),
        missing_go_to_left=np.array([False, False, False]),
        action=np.array([0, 0, 1], np.int32),
        n_node_samples=np.array([3, 1, 2]),
        value=np.array([[1.0, 2.0], [0.0, 1.0], [1.0, 1.0]]),
    )
    return Tree(**(arrays | changes), features=(Feature("x0"),), actions=(0, 1))


X_STUMP = np.array([[0.0], [1.0], [NAN]])
LOSSES_STUMP = np.array([[0, 1], [0, 1], [1, 0]], dtype=float)


def test_score_tree_by_hand():
    assert checker.score_tree(_stump(), X_STUMP, LOSSES_STUMP, 0.5) == 2
    missing_left = _stump(missing_go_to_left=np.array([True, False, False]))
    assert checker.score_tree(missing_left, X_STUMP, LOSSES_STUMP) == 2
    checker.check_tree_arrays(_stump(), X_STUMP, LOSSES_STUMP)
    assert checker.score_tree(_stump(), X_STUMP, LOSSES_STUMP, 0.5, [0.25]) == 2.75
    assert checker.score_tree(_stump(), X_STUMP, LOSSES_STUMP, 0.5, [0.25], [1.0, 0.0, 3.0]) == 3


def test_the_checker_sees_trees_beyond_the_scope():
    problem = Case(X_STUMP, LOSSES_STUMP, max_leaf_nodes=2, root_features=(0,)).problem()
    checker.check_constraints(problem, _stump(), X_STUMP)
    for changes in ({"max_leaf_nodes": 1}, {"root_features": ()}):
        with pytest.raises(AssertionError):
            checker.check_constraints(replace(problem, **changes), _stump(), X_STUMP)


@pytest.mark.parametrize(
    "changes",
    [
        {"n_node_samples": np.array([3, 2, 1])},
        {"value": np.array([[1.0, 2.0], [0.0, 1.0], [1.0, 0.0]])},
        {"action": np.array([0, 1, 1], np.int32)},
        {"threshold": np.array([2.0, NAN, NAN]), "missing_go_to_left": np.array([True, False, False])},
        {"children_left": np.array([2, -1, -1], np.int32), "children_right": np.array([1, -1, -1], np.int32)},
        {"feature": np.array([0, 0, -2], np.int32)},
    ],
)
def test_the_checker_sees_wrong_trees(changes):
    with pytest.raises(AssertionError):
        checker.check_tree_arrays(_stump(**changes), X_STUMP, LOSSES_STUMP)
