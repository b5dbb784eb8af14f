"""Numeric columns of more values than two bytes can number: every threshold, or a clear word."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from policytree import CostSensitiveTreeClassifier, OptimalTreeClassifier, PolicyTree, tree_path
from policytree.constraints import Budget
from policytree.evaluation import near_ties
from policytree.exceptions import InputError
from policytree.problem.split_columns import MAX_BINS, parts_of
from policytree.problem.types import BinnedData, Problem, Status
from policytree.solvers.core import binning
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.exact.direct import solve_direct
from tests.support import interval_oracles, oracles

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
    assert both.codes.dtype == np.uint16 and both.exact
    alone = bin_matrix(two, wide=True, split_on=[1])
    assert alone.codes.dtype == np.uint32 and alone.exact and alone.n_bins.tolist() == [N]
    assert not bin_matrix(two, split_on=[1]).exact
    assert bin_matrix(two, wide=True, split_on=[1], max_bins=7).n_bins.max() == 7


def test_several_columns_keep_their_cuts_in_parts(column, rng):
    column[::9] = np.nan
    X = np.column_stack([column, rng.random(N), rng.integers(0, 5, N)])
    data = bin_matrix(X, wide=True)
    assert [c.feature for c in data.columns] == [0, 0, 1, 1, 2] and data.n_bins.max() <= MAX_BINS
    for f, missing_left in ((0, False), (0, True), (1, False)):
        own = [c for c in data.columns if (c.feature, c.missing_left) == (f, missing_left)]
        cuts = np.concatenate([c.thresholds for c in own])
        present = np.unique(X[~np.isnan(X[:, f]), f])
        middle = (present[:-1] + present[1:]) / 2
        np.testing.assert_allclose(cuts, np.append(middle, np.inf) if f == 0 and not missing_left else middle)
    for column_of_codes, split in zip(data.codes, data.columns, strict=True):
        x = X[:, split.feature]
        for b in (0, len(split.thresholds) // 2, len(split.thresholds) - 1):
            left = (x <= split.thresholds[b]) | (np.isnan(x) & split.missing_left)
            np.testing.assert_array_equal(column_of_codes <= b, left)


def test_more_parts_than_pay_are_thinned(monkeypatch, column, rng):
    monkeypatch.setattr(binning, "MOST_KEPT", N - 2)
    data = bin_matrix(np.column_stack([column, rng.random(N)]), wide=True)
    assert not data.exact and data.thinned and len(data.columns) == 2 and data.n_bins.max() <= MAX_BINS


def test_neighbouring_values_of_two_columns_decide(column, rng):
    """A tree without errors exists, at cuts of which quantiles know none: it is found, and proved."""
    other = rng.random(N)
    X = np.column_stack([column, other])
    kept = [split.thresholds for split in bin_matrix(X).columns]
    lost = [np.setdiff1d(bin_matrix(x[:, None], wide=True).columns[0].thresholds, kept[j]) for j, x in enumerate(X.T)]
    low, high = lost[1][900], lost[1][3_000]
    order = np.argsort(column)
    apart = (other[order] < low) | (other[order] > high)  # rows that are wrong on the other side of the first cut
    below = np.searchsorted(column[order], lost[0]) - 1
    deciding = lost[0][apart[below] & apart[below + 1]]
    first = deciding[len(deciding) // 2]
    labels = np.where(column <= first, other <= low, other > high).astype(int)
    tree = OptimalTreeClassifier(regularization=0, max_depth=2).fit(X, labels)
    assert tree.status_ is Status.OPTIMAL and tree.score(X, labels) == 1.0
    assert tree.search_grid_.exact and tree.search_grid_.n_splits == 2 * (N - 1)
    thinned = OptimalTreeClassifier(regularization=0, max_depth=2, max_bins=MAX_BINS).fit(X, labels)
    assert thinned.status_ is Status.OPTIMAL_GIVEN_GUESSES and thinned.score(X, labels) < 1.0


@pytest.mark.parametrize("max_depth", [2, 3])
@pytest.mark.parametrize("n_actions", [2, 3])
def test_columns_in_parts_equal_brute_force(rng, n_actions, max_depth):
    for _ in range(6):
        X = rng.integers(0, 13, (40, 2)).astype(float)
        X[rng.random(40) < 0.1, 0] = np.nan
        losses = rng.integers(0, 30, (40, n_actions))
        whole = bin_matrix(X)
        parts = [part for c, code in zip(whole.columns, whole.codes, strict=True) for part in parts_of(c, code, 4)]
        columns, codes = zip(*parts, strict=True)
        assert len(columns) > 2 * len(whole.columns)
        data = BinnedData(
            np.array(codes, np.uint16), np.array([len(c.thresholds) + 1 for c in columns]), columns, whole.features
        )
        solution = solve_direct(Problem(data, losses.astype(float), 2.0, max_depth))
        best = oracles.best_objective_fast(oracles.code_columns(X), losses, max_depth=max_depth, penalty=2)
        assert solution.status is Status.OPTIMAL and solution.objective == best
        np.testing.assert_allclose(losses_of(solution.tree, X, losses) + 2 * solution.tree.n_leaves, best)


def losses_of(tree, X, losses) -> float:
    """Return the loss of the rows of a tree's leaves under the best action of each."""
    leaves = tree.apply(X)
    return sum(losses[leaves == leaf].sum(axis=0).min() for leaf in np.unique(leaves))
