"""Matching after learning to stretch: the metric finds what matters, nobody is matched to himself."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import check_grad
from sklearn.neighbors import NearestNeighbors

from policytree.exceptions import InputError
from policytree.weighting import MatchingRewards, matching
from policytree.weighting.matching import Matched, Pool, group_regressions, match
from policytree.weighting.stretch import _leave_one_out, learn_stretch, metric_columns, squared_distances


def trial(rng, n, p=6):
    X = rng.normal(size=(n, p))
    T = rng.integers(2, size=n)
    effect = 1.0 + X[:, 1]
    return X, T, 3.0 * X[:, 0] + effect * T + rng.normal(scale=0.5, size=n), effect


def columns_of(X):
    p = X.shape[1]
    return metric_columns(X, np.zeros(p, bool), np.ones(p), np.zeros(p, int))


def test_distances_of_numbers_and_categories():
    X = np.array([[0.0, 0.0], [3.0, 1.0], [3.0, np.nan]])
    columns = metric_columns(X, np.array([False, True]), np.array([1.5, 1.0]), np.array([0, 2]))
    assert columns.owner.tolist() == [0, 1, 1]
    d2 = squared_distances(columns.Z, columns.Z)
    assert d2[0, 1] == pytest.approx(4.0 + 1.0)
    assert d2[1, 1] == pytest.approx(0.0)
    assert d2[1, 2] == pytest.approx(0.5)  # an unknown value lies half a mismatch from every value


def test_the_gradient_is_the_derivative(rng):
    Z, y, w = rng.normal(size=(30, 4)), rng.normal(size=30), rng.random(30)
    blocked = np.equal.outer(np.arange(30) // 2, np.arange(30) // 2)
    error = check_grad(
        lambda s: _leave_one_out(Z, y, w, s, blocked)[0],
        lambda s: _leave_one_out(Z, y, w, s, blocked)[1],
        rng.random(4) + 0.3,
    )
    assert error < 1e-5


def test_the_stretch_finds_what_matters(rng):
    X, T, Y, _ = trial(rng, 500)
    ones = np.ones(500)
    s = learn_stretch(columns_of(X), Y, T, ones, np.arange(500), np.zeros(6, bool), n_neighbors=10, penalty=1e-3)
    assert s[0] > 5 * s[1] > 25 * max(s[2:]) / 5
    repeated = learn_stretch(
        columns_of(X), Y, T, 2 * ones, np.arange(500), np.zeros(6, bool), n_neighbors=10, penalty=1e-3
    )
    np.testing.assert_allclose(repeated, s, rtol=1e-3, atol=1e-3)  # only relative weights count


def test_matches_are_the_nearest_outside_the_own_cluster(rng, monkeypatch):
    Z, groups = rng.normal(size=(80, 3)), rng.integers(25, size=80)
    pool = Pool(np.arange(80), Z, np.zeros(80), np.ones(80), groups)
    found = match(Z, groups, pool, 4)
    for i in range(80):
        others = np.flatnonzero(groups != groups[i])
        nearest = others[np.argsort(((Z[others] - Z[i]) ** 2).sum(axis=1))[:4]]
        assert found.index[i].tolist() == nearest.tolist()
    monkeypatch.setattr(matching, "MAX_CANDIDATES", 30)  # a row or two at a time
    in_parts = match(Z, groups, pool, 4)
    np.testing.assert_array_equal(in_parts.index, found.index)
    np.testing.assert_array_equal(in_parts.distance, found.distance)
    with pytest.raises(InputError, match="fewer than n_neighbors=4"):
        match(Z[:5], groups[:5] * 0, Pool(np.arange(5), Z[:5], np.zeros(5), np.ones(5), np.zeros(5, int)), 4)


def test_nobody_is_matched_to_himself(rng):
    X, T, Y, _ = trial(rng, 200)
    marked = Y.copy()
    fitted = MatchingRewards(random_state=0).fit(marked, T, X=X)
    # one person's outcome moves everybody's estimates but, under a fixed metric, never his own
    for position in (0, 7, 50):
        group = fitted.matched_group(position)
        assert position not in set(group["row"])
        assert (group.groupby("treatment")["distance"].apply(lambda d: d.is_monotonic_increasing)).all()
        assert group["treatment"].value_counts().to_dict() == {0: 10, 1: 10}


def test_estimates_are_the_means_of_matched_groups(rng):
    X, T, Y, _ = trial(rng, 150)
    fitted = MatchingRewards(n_neighbors=5, n_splits=3, random_state=0).fit(Y, T, X=X)
    position, estimates = 11, []
    for split in range(3):
        try:
            group = fitted.matched_group(position, split=split)
        except InputError:
            continue
        estimates.append(group.groupby("treatment")["outcome"].mean())
    assert len(estimates) == 2
    np.testing.assert_allclose(fitted.rewards_.loc[position], np.mean(estimates, axis=0))
    np.testing.assert_allclose(fitted.spread_.loc[position], np.std(estimates, axis=0))


def test_local_regression_equals_the_one_by_hand(rng):
    Z, y, w = rng.normal(size=(60, 3)), rng.normal(size=60), rng.random(60) + 0.1
    pool = Pool(np.arange(60), Z, y, w, np.arange(60))
    distance, index = NearestNeighbors(n_neighbors=12).fit(Z).kneighbors(Z[:4] + 0.1)
    got = group_regressions(Z[:4] + 0.1, Matched(index, distance), pool)
    for i in range(4):
        A = np.column_stack([np.ones(12), Z[index[i]] - Z[i] - 0.1])
        W, penalty = np.diag(w[index[i]]), np.diag([0.0, 1.0, 1.0, 1.0])
        assert got[i] == pytest.approx(np.linalg.solve(A.T @ W @ A + penalty, A.T @ W @ y[index[i]])[0])


def test_many_rows_and_one_covariate_do_not_end_without_a_stretch(rng):
    """The search once began where the tenth neighbour is near, took a long step and stayed at zero."""
    x = rng.uniform(-1, 1, size=1_600)
    Y = 2.0 * x + rng.normal(size=1_600)
    ones, arm = np.ones(1_600), rng.integers(2, size=1_600)
    s = learn_stretch(
        columns_of(x[:, None]), Y, arm, ones, np.arange(1_600), np.zeros(1, bool), n_neighbors=10, penalty=1e-3
    )
    assert 1.0 < s[0] < 100.0


@pytest.mark.slow
@pytest.mark.parametrize("estimate", ["mean", "linear"])
def test_effects_are_recovered(estimate, rng):
    X, T, Y, effect = trial(rng, 2_000)
    rewards = MatchingRewards(estimate=estimate, random_state=0).fit_predict(Y, np.where(T == 1, "yes", "no"), X=X)
    got = rewards["yes"] - rewards["no"]
    assert np.corrcoef(got, effect)[0, 1] > 0.85
    assert abs(got.mean() - effect.mean()) < 0.1


def test_exact_categories_agree_and_new_rows_are_estimated(rng):
    n = 300
    frame = pd.DataFrame({"age": rng.normal(size=n), "town": rng.choice(["Oslo", "Rome"], size=n)})
    T = rng.integers(2, size=n)
    Y = 5.0 * (frame["town"] == "Rome") + rng.normal(size=n)
    fitted = MatchingRewards(n_neighbors=5, exact="categories", random_state=0).fit(Y, T, X=frame)
    for position in range(0, n, 60):
        assert set(frame["town"].iloc[fitted.matched_group(position)["row"]]) == {frame["town"].iloc[position]}
    assert list(fitted.stretch_.columns) == ["age", "town"]
    new = pd.DataFrame({"age": [0.0, 0.0], "town": ["Rome", "Oslo"]}, index=["r", "o"])
    outcomes = fitted.predict_outcomes(X=new)
    assert (np.abs(outcomes.loc["r"] - 5.0) < 1.5).all()
    assert (np.abs(outcomes.loc["o"]) < 1.5).all()
    by_name = MatchingRewards(n_neighbors=5, exact=["town"], random_state=0).fit(Y, T, X=frame)
    pd.testing.assert_frame_equal(by_name.rewards_, fitted.rewards_)


def test_weight_zero_is_absent_and_clusters_are_kept_apart(rng):
    X, T, Y, _ = trial(rng, 240)
    w = np.where(np.arange(240) % 4 == 0, 0.0, 1.0)
    fitted = MatchingRewards(n_neighbors=4, random_state=0).fit(Y, T, X=X, sample_weight=w)
    assert not set(fitted.matched_group(1)["row"]) & set(np.flatnonzero(w == 0.0))
    groups = np.arange(240) // 3
    fitted = MatchingRewards(n_neighbors=4, random_state=0).fit(Y, T, X=X, groups=groups)
    assert groups[5] not in set(groups[fitted.matched_group(5)["row"]])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"estimate": "median"}, "estimate must be"),
        ({"n_neighbors": 0}, "n_neighbors must be at least 1"),
        ({"penalty": -1.0}, "penalty must be a finite number >= 0"),
        ({"exact": "all"}, "exact must be 'none'"),
        ({"exact": ["x9"]}, "exact names column 'x9'"),
        ({"n_neighbors": 40}, "fewer than n_neighbors=40"),
        ({"n_splits": 30}, "fewer than n_splits=30"),
    ],
)
def test_bad_parameters_get_one_sentence(parameters, message, rng):
    X, T, Y, _ = trial(rng, 50)
    with pytest.raises(InputError, match=message):
        MatchingRewards(**parameters).fit(Y, T, X=X)


def test_gaps_are_refused(rng):
    X, T, Y, _ = trial(rng, 50)
    X[3, 2] = np.nan
    with pytest.raises(InputError, match="Column 'x2' of X has missing values"):
        MatchingRewards().fit(Y, T, X=X)


def test_gaps_in_new_rows_are_refused_by_name(rng):
    X, T, Y, _ = trial(rng, 50)
    fitted = MatchingRewards(n_neighbors=3, random_state=0).fit(Y, T, X=X)
    new = X[:4].copy()
    new[1, 2] = np.nan
    with pytest.raises(InputError, match="Column 'x2' of X has missing values"):
        fitted.predict_outcomes(X=new)
