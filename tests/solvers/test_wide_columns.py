"""Numeric columns of more values than two bytes can number: every threshold, or a clear word."""

from __future__ import annotations

from itertools import pairwise
from unittest import mock

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
from policytree.solvers.core import rows as core_rows
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.exact.direct import solve_direct
from policytree.solvers.kernels.base.layout import Rows
from policytree.solvers.kernels.depth_two import whole_columns
from policytree.solvers.kernels.depth_two.pair_tables import table_pays
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


def in_parts(X: np.ndarray, most_bins: int) -> BinnedData:
    """The binned matrix, every column in parts of at most so many codes."""
    whole = bin_matrix(X)
    parts = [part for c, code in zip(whole.columns, whole.codes, strict=True) for part in parts_of(c, code, most_bins)]
    columns, codes = zip(*parts, strict=True)
    n_bins = np.array([len(c.thresholds) + 1 for c in columns])
    return BinnedData(np.array(codes, np.uint16), n_bins, columns, whole.features)


@pytest.mark.parametrize("max_depth", [2, 3])
@pytest.mark.parametrize("n_actions", [2, 3])
def test_columns_in_parts_equal_brute_force(rng, n_actions, max_depth):
    for _ in range(6):
        X = rng.integers(0, 13, (40, 2)).astype(float)
        X[rng.random(40) < 0.1, 0] = np.nan
        losses = rng.integers(0, 30, (40, n_actions))
        data = in_parts(X, 4)
        assert data.in_parts and not bin_matrix(X).in_parts
        assert len(data.columns) > 2 * len(bin_matrix(X).columns)
        solution = solve_direct(Problem(data, losses.astype(float), 2.0, max_depth))
        best = oracles.best_objective_fast(oracles.code_columns(X), losses, max_depth=max_depth, penalty=2)
        assert solution.status is Status.OPTIMAL and solution.objective == best
        np.testing.assert_allclose(losses_of(solution.tree, X, losses) + 2 * solution.tree.n_leaves, best)


KINDS_OF_LOSSES = {  # each has second splits of its own kind in long columns, see kernels/depth_two/long_pairs.py
    "numbers": lambda rng, n, K: rng.normal(size=(n, K)) * 10.0 ** rng.integers(-3, 3, (n, 1)),
    "whole numbers": lambda rng, n, K: rng.integers(0, 30, (n, K)).astype(float),
    "labels": lambda rng, n, K: 1.0 - np.eye(K)[rng.integers(0, K, n)],
}


@pytest.mark.parametrize("kind", KINDS_OF_LOSSES)
@pytest.mark.parametrize("n_actions", [2, 3])
def test_long_columns_in_parts_are_searched_as_one(rng, kind, n_actions):
    """Parts too long for tables, some with ties, beside a short column: with prices and least leaves as without."""
    n, codes = (300, 101) if n_actions == 2 else (120, 33)
    for draw in range(4):
        X = np.column_stack([rng.permutation(n), rng.integers(0, n, n), rng.random(n), rng.integers(0, 3, n)]) * 1.0
        X[: n // 10, draw % 3] = np.nan
        losses = KINDS_OF_LOSSES[kind](rng, n, n_actions)
        losses[:, 1] += np.where(X[:, 0] > n / 3, 1.0, -1.0) * np.where(X[:, 2] > 0.4, 1.0, -1.0)
        whole, parts = bin_matrix(X), in_parts(X, codes)
        assert len(parts.columns) > len(whole.columns) + 4
        for more in ({}, {"feature_costs": np.array([0.01, 0.02, 0.03, 0.0])}, {"min_leaf": 7}, {"max_leaf_nodes": 3}):
            expected = solve_direct(Problem(whole, losses, 0.5, 2, **more))
            with mock.patch.object(core_rows, "long_parts", wraps=core_rows.long_parts) as as_one:
                found = solve_direct(Problem(parts, losses, 0.5, 2, **more))
            assert as_one.called
            assert found.status is expected.status is Status.OPTIMAL
            assert found.objective == expected.objective and found.lower_bound == expected.lower_bound, (draw, more)


@pytest.mark.parametrize(("n_actions", "codes", "values", "n"), [(2, 101, 60, 300), (3, 33, 12, 120)])
def test_a_column_with_tables_beside_parts_but_not_beside_the_whole(rng, n_actions, codes, values, n):
    """Such a column is long only where parts are one: its rows have an order by then."""
    X = np.column_stack([rng.permutation(n), rng.permutation(np.arange(n) % values)]) * 1.0
    whole, parts = bin_matrix(X), in_parts(X, codes)
    signed = n_actions == 2
    assert table_pays.py_func(parts.n_bins[:-1].max(), values, n, signed)
    assert not table_pays.py_func(whole.n_bins[0], values, n, signed)
    for _ in range(3):
        losses = rng.integers(0, 30, (n, n_actions))
        losses[:, 1] += np.where(X[:, 0] > n / 3, 9, -9) * np.where(X[:, 1] > values / 2, 1, -1)
        found = solve_direct(Problem(parts, losses.astype(float), 2.0, 2))
        assert found.status is Status.OPTIMAL
        assert found.objective == oracles.best_objective_fast(oracles.code_columns(X), losses, max_depth=2, penalty=2)


def test_columns_that_continue_each_other_are_one(rng):
    """Codes as one are places: what a part's last code holds is told apart by the next part."""
    X = np.column_stack([rng.permutation(60), rng.integers(0, 40, 60), rng.permutation(60)]) * 1.0
    data = in_parts(X, 21)
    offset = np.concatenate([[0], np.cumsum(data.n_bins)])
    q = len(data.columns)
    groups = np.array([f == q - 1 for f in range(q)], np.int64)  # the last part has a price of its own
    rows = Rows(data.codes, np.zeros((1, 60), np.int64), data.n_bins, offset, groups, np.full(q, -1), 60)
    as_python = mock.patch.object(whole_columns, "continues", whole_columns.continues.py_func)
    with as_python:
        whole, first = whole_columns.whole_columns.py_func(rows, np.ones(q, bool), q)
    features = [c.feature for c in data.columns]
    assert first.tolist() == [*(features.index(j) for j in range(3)), q - 1, q]
    for w, (f, end) in enumerate(pairwise(first)):
        assert (whole.offset[w], whole.bins[w]) == (offset[f], offset[end] - offset[f])
        for part in range(f, end):
            for t in range(data.n_bins[part] - 1):
                left = whole.codes[w] <= offset[part] + t - offset[f]
                np.testing.assert_array_equal(left, data.codes[part] <= t)
    with as_python:
        alone, first = whole_columns.whole_columns.py_func(rows, np.arange(q) % 2 == 0, q)
    assert first.tolist() == list(range(q + 1))
    np.testing.assert_array_equal(alone.codes, data.codes)


def losses_of(tree, X, losses) -> float:
    """Return the loss of the rows of a tree's leaves under the best action of each."""
    leaves = tree.apply(X)
    return sum(losses[leaves == leaf].sum(axis=0).min() for leaf in np.unique(leaves))
