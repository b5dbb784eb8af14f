"""The default nuisance models: their parts against definitions, and what they do to small and awkward trials."""

from __future__ import annotations

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge
from threadpoolctl import threadpool_limits

from policytree import RewardEstimator
from policytree.model_selection.folds import make_folds
from policytree.weighting import stacking
from policytree.weighting.boosting import boost
from policytree.weighting.learners import imputer
from policytree.weighting.nuisances import cross_fit
from policytree.weighting.stacking import (
    OUTCOME_LEARNERS,
    CovariateScaler,
    Curves,
    MissingFiller,
    OutcomeStack,
    PropensityStack,
    convex_weights,
    one_blas_thread,
    prepared,
    ridge_path,
)
from policytree.weighting.study_data import StudyData


def test_rare_categories_stay_small_on_the_scale_of_penalties(rng):
    numeric, rare = rng.normal(3.0, 5.0, size=500), (np.arange(500) < 3).astype(float)
    scaled = CovariateScaler().fit_transform(np.column_stack([numeric, rare, np.full(500, 7.0)]))
    assert scaled[:, 0].std() == pytest.approx(1.0) and scaled[:, 0].mean() == pytest.approx(0.0, abs=1e-12)
    assert np.ptp(scaled[:, 1]) == 2.0, "as an indicator of half the rows; its own standard deviation gives 26"
    assert (scaled[:, 2] == 0.0).all()


@pytest.mark.parametrize(("n", "p"), [(1, 3), (2, 1), (60, 1), (61, 5)])
@pytest.mark.parametrize("order", ["C", "F", "slice"])
def test_missing_values_are_filled_as_the_imputer_does(rng, n, p, order):
    """To the last bit and in the same layout, since the order of numbers in memory decides the order of sums."""
    wide = rng.normal(size=(n, p + 1)).round(1)
    whole = wide[:, :-1] if order == "slice" else np.array(wide[:, :-1], order=order)
    holes = whole.copy()
    holes[0, 0] = np.nan
    for learnt in (whole, holes):
        for new in (whole, holes):
            before = new.copy()
            expected, found = (f.fit(learnt).transform(new) for f in (imputer(), MissingFiller()))
            assert found.tobytes() == expected.tobytes()
            assert (found.shape, found.strides) == (expected.shape, expected.strides)
            assert not np.shares_memory(found, new) and before.tobytes() == new.tobytes()


@pytest.mark.parametrize(("n", "p"), [(60, 5), (20, 40), (10, 1)])
@pytest.mark.parametrize("weighted", [False, True])
def test_ridges_of_all_penalties_are_scikit_learns(rng, n, p, weighted):
    X, y = rng.normal(2.0, 1.0, size=(n, p)), rng.normal(5.0, 1.0, size=n)
    w = rng.uniform(0.1, 3.0, size=n) if weighted else None
    penalties = np.array([1e-3, 0.1, 10.0])
    intercepts, coefficients = ridge_path(X, y, w, penalties)
    total = n if w is None else w.sum()
    for s, penalty in enumerate(penalties):
        other = Ridge(alpha=penalty * total, solver="svd").fit(X, y, w)
        np.testing.assert_allclose(coefficients[:, s], other.coef_, rtol=1e-6, atol=1e-9)
        assert intercepts[s] == pytest.approx(other.intercept_)


def test_curves_are_hinges_at_quantiles_and_products(rng):
    X = np.column_stack([rng.permutation(np.arange(60.0)), rng.normal(size=60), rng.integers(0, 2, size=60)])
    X[3, 1] = np.nan
    curves = Curves().fit(X)
    Z = prepared().fit_transform(X)  # three columns, and which values of the second are missing
    hinges = [np.maximum(Z[:, j, None] - np.sort(Z[:, j])[9:59:10], 0.0) for j in (0, 1)]  # tenth of 60, twentieth, ...
    pairs = [Z[:, [i]] * Z[:, [j]] for i in range(4) for j in range(i + 1, 4)]
    np.testing.assert_allclose(curves.transform(X), np.hstack([Z, *hinges, *pairs]), atol=1e-12)
    beyond, edge = X[:1].copy(), X[:1].copy()
    beyond[0, 0], edge[0, 0] = 1e6, 59.0
    np.testing.assert_array_equal(curves.transform(beyond), curves.transform(edge))
    assert Curves().fit(rng.normal(size=(50, 30))).transform(np.zeros((1, 30))).shape == (1, 180), "hinges only"


def test_tables_of_curves_stay_small(rng):
    many = rng.normal(size=(stacking.MOST_CURVES // 6 + 1, 1))
    assert "curved" not in OutcomeStack(False)._affordable(many, 2)
    assert "curved" in OutcomeStack(False)._affordable(many[:-1], 2)
    assert OutcomeStack(False, ("curved",))._affordable(many, 2) == ("curved",)


def test_curved_confounding_leaves_little_bias_in_few_rows():
    """Who is treated and the outcome depend on the same curve; without that learner the effect is off by .32 (.05)."""
    off = []
    for seed in range(8):
        rng = np.random.default_rng([5201, seed])
        X = rng.normal(size=(300, 6))
        curve = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 2]
        T = (rng.uniform(size=300) < 1 / (1 + np.exp(-1.5 * curve))).astype(int)
        Y = 2.25 * curve + (T - 0.5) * 0.5 * np.sign(X[:, 3]) + rng.normal(size=300)
        rewards = RewardEstimator(random_state=seed).fit(Y, T, X=X).rewards_.to_numpy()
        off.append((rewards[:, 1] - rewards[:, 0]).mean())
    assert abs(np.mean(off)) < 0.2


@given(seed=st.integers(0, 10_000), n_columns=st.integers(1, 3), weighted=st.booleans())
def test_weights_of_mixtures_are_the_best_convex_ones(seed, n_columns, weighted):
    rng = np.random.default_rng(seed)
    y = rng.normal(100.0, 3.0, size=30)
    predictions = y[:, None] + rng.normal(0.5, 1.0 + np.arange(n_columns), size=(30, n_columns))
    w = rng.uniform(0.1, 2.0, size=30) if weighted else np.ones(30)
    found = convex_weights(predictions, y, w)
    assert found.min() >= 0.0 and found.sum() == pytest.approx(1.0)

    def error(weights):
        return w @ (predictions @ weights - y) ** 2

    others = rng.dirichlet(np.ones(n_columns), size=300)
    assert error(found) <= min(error(other) for other in [*others, *np.eye(n_columns)]) * (1 + 1e-6)


def test_equal_predictions_share_the_weight_somehow(rng):
    y = np.full(20, 3.0)
    assert convex_weights(np.full((20, 4), 3.0), y, np.ones(20)).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("objective", ["regression", "binary", "multiclass"])
@pytest.mark.parametrize("weighted", [False, True])
def test_stages_are_what_the_booster_says_after_so_many_rounds(rng, objective, weighted):
    Z = rng.normal(size=(300, 3))
    Z[::7, 1] = np.nan
    y = {
        "regression": 1e9 + 1e3 * Z[:, 0] + rng.normal(size=300),
        "binary": (Z[:, 0] + rng.normal(size=300) > 0).astype(float),
        "multiclass": np.digitize(Z[:, 0] + 0.3 * rng.normal(size=300), [-0.5, 0.5]),
    }[objective]
    w = rng.uniform(0.5, 2.0, size=300) if weighted else None
    fitted = boost(Z, y, w, objective, 12)
    rounds = (1, 2, 5, 12)
    for found, r in zip(fitted.stages(Z, rounds), rounds, strict=True):
        expected = fitted.centre + fitted.scale * fitted.booster.predict(Z, num_iteration=r)
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    if objective == "regression":
        assert np.abs(fitted.stages(Z, (12,))[0] - y).mean() < np.abs(y - y.mean()).mean() / 2


def test_boosting_that_ends_early_stays_where_it_is(rng):
    """Thirty rows cannot be split into leaves of twenty: one constant for any number of rounds."""
    Z, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    stages = boost(Z, y, None, "regression", 50).stages(Z, (1, 10, 50))
    np.testing.assert_allclose(stages, y.mean(), rtol=1e-5)


def study(rng, n=240, n_arms=3, binary=False):
    Z = rng.normal(size=(n, 4))
    T = np.arange(n) % n_arms
    mean = Z[:, 0] + (T == 1) * (Z[:, 1] > 0)
    Y = (rng.random(n) < 1 / (1 + np.exp(-mean))).astype(float) if binary else mean + rng.normal(size=n)
    return Z, T, Y


@pytest.mark.parametrize("binary", [False, True])
def test_no_learner_sees_the_fold_that_it_predicts(rng, binary):
    Z, T, Y = study(rng, binary=binary)
    seen = StudyData.of(Y, T)
    plan = make_folds(len(Y), 4, strata=T, random_state=0)
    other = np.where(plan.fold == 2, 1.0 - Y if binary else Y + 100.0 * rng.normal(size=len(Y)), Y)
    for own, changed in zip(
        OutcomeStack(binary).fits(Z, seen, plan),
        OutcomeStack(binary).fits(Z, StudyData.of(other, T), plan),
        strict=True,
    ):
        np.testing.assert_array_equal(own.of_fold(2)[1], changed.of_fold(2)[1])
        assert (own.of_fold(1)[1] != changed.of_fold(1)[1]).any()


@pytest.mark.parametrize("binary", [False, True])
def test_fold_models_predict_their_fold_as_out_of_fold(rng, binary):
    """New rows get the predictions that the rows of a fold got from the models that missed them."""
    Z, T, Y = study(rng, binary=binary)
    seen = StudyData.of(Y, T)
    plan = make_folds(len(Y), 4, strata=T, random_state=0)
    stack, chances = OutcomeStack(binary), PropensityStack()
    arms = chances.mixed([fit.run() for fit in chances.fits(Z, seen, plan)], seen)
    np.testing.assert_allclose(arms.predictions.sum(axis=1), 1.0)
    predictions, models = stack.mixed([fit.run() for fit in stack.fits(Z, seen, plan)], Z, seen, arms.predictions)
    for f, (_, test) in enumerate(plan.splits()):
        np.testing.assert_allclose(models[f].predict(Z[test]), predictions[test], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(arms.models[f].predict(Z[test]), arms.predictions[test], rtol=1e-9)
    assert predictions.shape == (240, 3) and len(models[0].models) == len(OUTCOME_LEARNERS)
    if binary:
        assert predictions.min() >= 0.0 and predictions.max() <= 1.0


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("kind", ["linear over arms", "boosted over arms"])
@pytest.mark.parametrize("q", [0, 4])
def test_arms_at_once_are_arms_one_by_one(rng, binary, kind, q):
    """To the last bit, in any order, and with arms that are left out."""
    Z, T, Y = study(rng, binary=binary)
    Z[::9, :1] = np.nan
    Z = Z[:, :q]
    model = stacking._fit_outcomes(kind, 3, binary, np.column_stack([Z, T.astype(float)]), Y)
    stages = np.array([1, 0, 1])
    for arms in ([0, 1, 2], [2, 0], [1], []):
        found = [values.copy() for values in model.of_arms(Z, arms, stages)]
        assert len(found) == len(arms)
        for k, values in zip(arms, found, strict=True):
            assert values.tobytes() == model.of_arm(Z, k, int(stages[k])).tobytes()


@pytest.mark.parametrize(("slope", "most"), [(0.0, 10), (0.6, 30), (0.7, 126)])
def test_boosted_propensities_of_few_rounds_are_those_of_many(monkeypatch, slope, most):
    """Rounds are fitted as far as they may be used, and no further; which are used does not change."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(600, 3))
    T = (rng.random(600) < 1 / (1 + np.exp(-slope * np.sign(Z[:, 0] * Z[:, 1])))).astype(int)
    seen, plan = StudyData.of(Z[:, 0], T), make_folds(600, 3, random_state=0)
    asked = []

    def counted(*arguments):
        asked.append(arguments[4])
        return boost(*arguments)

    monkeypatch.setattr(stacking, "boost", counted)
    (found,) = cross_fit(Z, seen, [plan], None, PropensityStack())
    assert max(asked) == most
    monkeypatch.setattr(stacking, "RUNGS", (len(stacking.PROPENSITY_ROUNDS),))
    (whole,) = cross_fit(Z, seen, [plan], None, PropensityStack())
    np.testing.assert_array_equal(found.propensity.predictions, whole.propensity.predictions)


def test_rows_of_weight_zero_say_nothing(rng):
    Z, T, Y = study(rng)
    w = np.where(np.arange(240) % 10 == 9, 0.0, rng.uniform(0.5, 2.0, size=240))
    fold = np.arange(240) // 3 % 4
    far = np.where(w == 0.0, 1e6, Y)
    own = RewardEstimator(cv=fold, random_state=0).fit(Y, T, X=Z, sample_weight=w)
    other = RewardEstimator(cv=fold, random_state=0).fit(far, T, X=Z, sample_weight=w)
    kept = w > 0.0
    np.testing.assert_allclose(own.rewards_[kept], other.rewards_[kept], rtol=1e-9)
    alone = RewardEstimator(cv=fold[kept], random_state=0).fit(Y[kept], T[kept], X=Z[kept], sample_weight=w[kept])
    np.testing.assert_allclose(own.rewards_[kept], alone.rewards_, rtol=1e-7)


def test_outcomes_in_other_units_give_rewards_in_those(rng):
    Z, T, Y = study(rng)
    one = RewardEstimator(random_state=0).fit(Y, T, X=Z)
    other = RewardEstimator(random_state=0).fit(1e6 + 1e-3 * Y, T, X=Z)
    np.testing.assert_allclose((other.rewards_ - 1e6) * 1e3, one.rewards_, rtol=1e-4, atol=1e-4)


def test_targeting_leaves_the_weighted_residuals_without_a_mean(rng):
    """Confounded by what the outcome depends on: the mixture shrinks, so residuals differ by chances before."""
    n = 2_000
    Z = rng.normal(size=(n, 5))
    e = 1 / (1 + np.exp(-1.5 * np.sign(Z[:, 0] * Z[:, 1])))
    T = (rng.random(n) < e).astype(int)
    Y = 3.0 * np.sign(Z[:, 0] * Z[:, 1]) + rng.normal(size=n)
    seen, plan = StudyData.of(Y, T), make_folds(n, 5, strata=T, random_state=0)
    stack, chances = OutcomeStack(False), np.column_stack([1 - e, e])
    fits = [fit.run() for fit in stack.fits(Z, seen, plan)]
    plain, targeted = (stack.mixed(fits, Z, seen, by)[0] for by in (None, chances))
    for k in range(2):
        own = seen.arm == k
        before, after = (
            np.average(Y[own] - predicted[own, k], weights=1 / chances[own, k]) for predicted in (plain, targeted)
        )
        assert abs(after) < min(0.02, abs(before))


@pytest.mark.parametrize("binary", [False, True])
def test_arms_of_a_few_rows_and_constant_arms(rng, binary):
    n = 40
    X = pd.DataFrame({"x": rng.normal(size=n), "g": rng.choice(["a", "b", None], size=n)})
    T = np.repeat(["usual", "rare", "same"], [28, 5, 7])
    Y = rng.integers(0, 2, size=n).astype(float) if binary else rng.normal(size=n)
    Y[T == "same"] = 1.0
    fitted = RewardEstimator(random_state=0, min_propensity=0.0).fit(Y, T, X=X)
    assert np.isfinite(fitted.rewards_).all(axis=None)
    assert (fitted.propensity_.sum(axis=1) - 1.0).abs().max() < 1e-9 and fitted.propensity_.min(axis=None) > 0.01
    if binary:
        assert fitted.regression_.min(axis=None) >= 0.0 and fitted.regression_.max(axis=None) <= 1.0


def test_small_trials_with_rare_categories_are_believable(rng):
    """Three arms at random, 200 rows, categories of a few rows: rewards' means are the arms' means, within noise."""
    off = []
    for _ in range(10):
        n = 200
        X = pd.DataFrame(
            {
                "age": rng.normal(60, 10, size=n),
                "nodes": rng.poisson(3, size=n),
                "extent": rng.choice(["1", "2", "3", "4"], size=n, p=[0.02, 0.1, 0.84, 0.04]),
                "perforated": (rng.random(n) < 0.03).astype(int),
            }
        )
        T = rng.choice(["a", "b", "c"], size=n)
        Y = (rng.random(n) < 1 / (1 + np.exp(0.2 * X["nodes"] - 0.9))).astype(int)
        fitted = RewardEstimator(random_state=0).fit(Y, T, X=X)
        assert fitted.n_clipped_ == 0 and fitted.propensity_.min(axis=None) > 0.05
        off.append((fitted.rewards_.mean() - Y.groupby(T).mean()).abs())
    assert np.mean(off) < 0.025 and np.max(off) < 0.1


def test_fitted_rewards_are_pickled(rng):
    Z, T, Y = study(rng)
    fitted = RewardEstimator(random_state=0, cv=2).fit(Y, T, X=Z)
    again = pickle.loads(pickle.dumps(fitted))
    pd.testing.assert_frame_equal(again.predict_rewards(Y, T, X=Z), fitted.predict_rewards(Y, T, X=Z))
    pd.testing.assert_frame_equal(again.predict_outcomes(X=Z), fitted.predict_outcomes(X=Z))


def test_the_same_seed_gives_the_same_rewards(rng):
    Z, T, Y = study(rng)
    one, two = (RewardEstimator(random_state=3).fit_predict(Y, T, X=Z) for _ in range(2))
    pd.testing.assert_frame_equal(one, two)


def test_targeting_carries_no_row_far_away(rng):
    """Few rows whose predictions are nearly constant in some folds: corrections stay of the outcomes' size."""
    for seed in range(40):
        own = np.random.default_rng(seed)
        n = 120
        X = pd.DataFrame({"age": own.integers(18, 80, n), "noise": own.lognormal(size=n)})
        T = own.integers(0, 2, n)
        Y = np.where(X["age"] < 40, 4.0, -4.0) * T + own.normal(size=n)
        fitted = RewardEstimator(cv=2, random_state=seed).fit(Y, T, X=X, propensity=0.5)
        assert fitted.regression_.abs().max(axis=None) < 30.0, "a ridge of the log-normal column alone reaches 13"


def test_weights_where_scipy_goes_round_in_circles(rng, monkeypatch):
    """Releases before 1.15 give up where columns are nearly the same: then another solver finds the same point."""
    signal = rng.normal(size=60)
    A = np.column_stack([*(signal + rng.normal(scale=s, size=60) for s in (0.5, 0.5, 2.0)), -signal])
    expected = stacking.on_simplex(A, signal)

    def nnls(A, b):
        raise RuntimeError("Maximum number of iterations reached.")

    monkeypatch.setattr(stacking, "nnls", nnls)
    found = stacking.on_simplex(A, signal)
    assert found == pytest.approx(expected, abs=1e-6) and (found >= 0).all()


def test_a_learner_of_few_columns_uses_one_thread():
    def threads():
        return {each["num_threads"] for each in stacking._blas().info()}

    with threadpool_limits(2, user_api="blas"):  # tests have one thread to begin with
        if threads() != {2}:
            pytest.skip("This library of linear algebra has one thread.")
        assert one_blas_thread(threads)() == {1}


def test_threads_that_overlap_leave_the_number_of_threads_as_it_was(monkeypatch):
    """With a library of its own: other tests' threads may set that of the process."""
    library = {"num_threads": 2}

    class Limiter:
        def __init__(self, limits):
            self.found = library["num_threads"]
            library["num_threads"] = limits

        def restore_original_limits(self):
            library["num_threads"] = self.found

    monkeypatch.setattr(stacking, "_blas", lambda: SimpleNamespace(limit=Limiter))

    def threads():
        return [library["num_threads"]]

    before, inside, both = threads(), threading.Barrier(2), []

    @one_blas_thread
    def fit(waits):
        inside.wait(timeout=30)
        both.extend(threads())
        if waits:
            gone.wait(timeout=30)
        return threads()

    gone = threading.Event()
    with ThreadPoolExecutor(2) as pool:
        last, first = pool.submit(fit, True), pool.submit(fit, False)
        assert set(first.result()) == {1}
        gone.set()
        assert set(last.result()) == {1} == set(both)
    assert threads() == before
