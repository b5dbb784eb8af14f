"""One numeric column of more values than two bytes can number: every threshold, or a clear word."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from policytree import CostSensitiveTreeClassifier, OptimalTreeClassifier, PolicyTree, tree_path
from policytree.constraints import Budget
from policytree.evaluation import near_ties
from policytree.exceptions import InputError
from policytree.problem.split_columns import MAX_BINS
from policytree.problem.types import Problem, Status
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.exact.direct import solve_direct
from tests import interval_oracles

N = 70_000


@pytest.fixture
def column(rng) -> np.ndarray:
    """More distinct values than codes of two bytes, in no order."""
    return rng.permutation(N) * 0.37 - 900.0


@pytest.fixture
def labels(column, rng) -> np.ndarray:
    """Intervals of the column, between which two neighbouring values alone decide, and noise."""
    place = np.argsort(np.argsort(column))
    y = ((place > 12_345) ^ (place > 40_001) ^ (place > 66_666)).astype(int)
    return np.where(rng.random(N) < 0.02, 1 - y, y)


def test_every_threshold_is_searched(column, labels):
    X = column[:, None]
    for arguments, leaves in (({"max_depth": 2}, 4), ({"max_depth": None}, None), ({"max_leaf_nodes": 3}, 3)):
        tree = OptimalTreeClassifier(regularization=0.001, **arguments).fit(X, labels)
        assert tree.status_ is Status.OPTIMAL and tree.search_grid_.n_splits == N - 1
        wrong = np.eye(2, dtype=np.int64)[1 - labels]
        best = interval_oracles.best_intervals(column, wrong, leaves or 8, 70)
        assert round(tree.objective_value_ * N, 6) == best
        assert round((1 - tree.score(X, labels)) * N) + 70 * tree.tree_.n_leaves == best
    assert "among 69,999 possible splits of 1 covariate" in tree.certificate()


def test_missing_values_go_to_the_better_side(column, labels):
    column[labels == 1] = np.where(np.arange((labels == 1).sum()) % 50 == 0, np.nan, column[labels == 1])
    frame = pd.DataFrame({"empty": np.nan, "x": column, "one": 3.0})
    rewards = np.column_stack([1.0 - labels, labels, np.full(N, 0.4)])
    for tree in (
        PolicyTree(max_depth=3, regularization=0.001).fit(frame, rewards),
        CostSensitiveTreeClassifier(max_depth=3, regularization=0.001).fit(frame, pd.DataFrame(1.0 - rewards)),
    ):
        assert tree.status_ is Status.OPTIMAL and tree.search_grid_.n_splits > MAX_BINS
        price = 0.001 * tree.tree_.n_leaves
        value = rewards[np.arange(N), np.asarray(tree.predict(frame)).astype(int)].mean()
        expected = value - price if isinstance(tree, PolicyTree) else 1.0 - value + price
        assert tree.objective_value_ == pytest.approx(expected, abs=1e-12)
        assert tree.predict(frame[np.isnan(column)])[0] == 1


def test_a_path_has_them_all(column, labels):
    path = tree_path(OptimalTreeClassifier(max_depth=2), column[:, None], labels, min_regularization=0.01)
    assert path.n_leaves.max() == 4
    assert all(tree.status_ is Status.OPTIMAL for tree in path.estimators)


def test_other_searches_thin_the_column_and_say_so(column, labels):
    X = column[:, None]
    for estimator in (
        OptimalTreeClassifier(max_depth=2, objective="balanced_accuracy", max_bins=MAX_BINS),
        OptimalTreeClassifier(max_depth=1, objective="f_score"),
        OptimalTreeClassifier(max_depth=1, feature_costs=[0.001]),
        OptimalTreeClassifier(max_depth=1, root_feature=0),
        OptimalTreeClassifier(max_depth=2, max_bins=MAX_BINS),
    ):
        tree = estimator.fit(X, labels)
        assert not tree.search_grid_.exact and tree.search_grid_.n_splits < MAX_BINS
        assert tree.status_ is Status.OPTIMAL_GIVEN_GUESSES, estimator
    spending = PolicyTree(max_depth=1, constraints=[Budget(0.5)]).fit(
        X, np.column_stack([1 - labels, labels]), budget_costs=[0, 1]
    )
    assert not spending.search_grid_.exact and spending.spend_ <= 0.5


def test_near_ties_are_those_among_fewer_thresholds(column):
    X = column[:, None]
    kept, every = (bin_matrix(X, wide=wide).columns[0].thresholds for wide in (False, True))
    lost = np.setdiff1d(every, kept)
    labels = (column > lost[len(lost) // 2]).astype(int)
    for arguments in ({}, {"max_bins": MAX_BINS}):
        tree = OptimalTreeClassifier(max_depth=1, **arguments).fit(X, labels)
        assert (tree.objective_value_ == 0.02) == (not arguments)
        ties = near_ties(tree, X, labels, slack=0.0)
        assert not ties.exact and ties.objective > 0.02


def test_one_class_is_one_leaf(column):
    tree = OptimalTreeClassifier().fit(column[:, None], np.full(N, "a"))
    assert tree.tree_.n_leaves == 1 and tree.status_.proved


def test_searches_over_two_bytes_refuse_wide_codes(column, labels):
    X = column[:, None]
    data = bin_matrix(X, wide=True)
    assert data.codes.dtype == np.uint32 and data.exact
    losses = np.eye(2)[1 - labels]
    assert solve_direct(Problem(data, losses, 70.0, 2)).status is Status.OPTIMAL
    with pytest.raises(InputError, match=r"'x0' has 70,000 different values.*max_bins=65536"):
        solve_direct(Problem(data, losses, 70.0, 2, feature_costs=np.array([0.1])))


def test_wide_codes_are_for_one_feature_alone(column, rng):
    two = np.column_stack([column, rng.random(N)])
    both = bin_matrix(two, wide=True)
    assert both.codes.dtype == np.uint16 and not both.exact
    alone = bin_matrix(two, wide=True, split_on=[1])
    assert alone.codes.dtype == np.uint32 and alone.exact and alone.n_bins.tolist() == [N]
    assert not bin_matrix(two, split_on=[1]).exact
    assert bin_matrix(two, wide=True, split_on=[1], max_bins=7).n_bins.max() == 7
