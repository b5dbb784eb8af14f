"""Intervals of shares in leaves: score intervals, and that honest leaves have them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.dummy import DummyClassifier, DummyRegressor

from policytree import DRPolicyTree, honest_leaf_summary, leaf_summary
from policytree.evaluation.inference.binary_intervals import effective_rows, score_ends


@given(st.floats(0, 1), st.integers(1, 500), st.floats(0.5, 4))
def test_ends_are_the_shares_that_make_the_estimate_just_surprising(share, rows, critical):
    low, high = (float(end) for end in score_ends(np.array(share), np.array(float(rows)), np.array(critical)))
    assert 0 <= low <= share + 1e-12 and share - 1e-12 <= high <= 1
    for end in (low, high):
        if 1e-6 < end < 1 - 1e-6:
            assert abs(share - end) == pytest.approx(critical * np.sqrt(end * (1 - end) / rows), abs=1e-9)


def test_a_known_interval_and_no_rows():
    """None of 20: Wilson's upper end at 95 % is z^2 / (n + z^2)."""
    low, high = score_ends(np.array([0.0]), np.array([20.0]), np.array([1.959964]))
    assert (low[0], high[0]) == (0.0, pytest.approx(0.16113, abs=1e-5))
    low, high = score_ends(np.array([0.3]), np.array([0.0]), np.array([2.0]))
    assert (low[0], high[0]) == (0.0, 1.0)


def test_effective_rows():
    leaf, arm = np.array([0, 0, 0, 1, 1]), np.array([0, 0, 1, 1, 1])
    assert effective_rows(leaf, arm, (2, 2), None, None).tolist() == [[2, 1], [0, 2]]
    assert effective_rows(leaf, arm, (2, 2), ["a", "a", "a", "b", "b"], None).tolist() == [[1, 1], [0, 1]]
    assert effective_rows(leaf, arm, (2, 2), None, np.array([1.0, 3, 1, 0, 2])).tolist() == [[1.6, 1], [0, 1]]


@pytest.fixture(scope="module")
def rare():
    """A rare event, of which one side of a split has none; quick nuisances."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.integers(0, 2, 400).astype(float)})
    T = np.arange(400) % 2
    Y = ((X["age"] == 1) & (rng.random(400) < np.where(T == 1, 0.1, 0.4))).astype(float)
    model = DRPolicyTree(DummyRegressor(), DummyClassifier(strategy="prior"), max_depth=1, cv=2, random_state=0,
                         direction="minimize")  # fmt: skip
    return model, Y, T, X


def test_where_nobody_had_the_event_the_interval_is_no_point(rare):
    model, Y, T, X = rare
    honest = honest_leaf_summary(model, Y, T, X=X, propensity=0.5, random_state=0)
    tree, rows = honest.estimator, honest.rows
    plain = leaf_summary(tree, X.iloc[rows], honest.rewards, T=T[rows], held_out=True)
    found = honest.leaves
    for leaf in found.index:
        for arm in (0, 1):
            assert found.loc[leaf, ("lower", arm)] <= plain.loc[leaf, ("lower", arm)] + 1e-12
            assert found.loc[leaf, ("upper", arm)] >= plain.loc[leaf, ("upper", arm)] - 1e-12
            n = found.loc[leaf, ("rows_of", arm)]
            width = found.loc[leaf, ("upper", arm)] - found.loc[leaf, ("lower", arm)]
            assert width >= 1.96**2 / (n + 1.96**2) - 1e-12  # that of none, or all, of n rows
    gains = found["gain_over"].to_numpy(dtype=float)
    known = ~np.isnan(gains)
    assert (found["gain_lower"].to_numpy(dtype=float)[known] <= plain["gain_lower"].to_numpy(dtype=float)[known]).all()
    for end in ("lower", "upper"):  # smaller is better: the gain over the best other is the largest
        expected = np.nanmax(found[f"gain_{end}"].to_numpy(dtype=float), axis=1)
        assert found["gain_over_best", end].to_numpy() == pytest.approx(expected)


def test_other_outcomes_keep_their_intervals(rare):
    model, Y, T, X = rare
    rng = np.random.default_rng(1)
    honest = honest_leaf_summary(model, Y + rng.normal(size=400), T, X=X, propensity=0.5, random_state=0)
    rows = honest.rows
    plain = leaf_summary(honest.estimator, X.iloc[rows], honest.rewards, T=T[rows], held_out=True)
    pd.testing.assert_frame_equal(honest.leaves, plain)
