"""Every scheme: unbiased with true nuisances, equal to published software where definitions meet."""

from __future__ import annotations

import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import KFold

from policytree import RewardEstimator, Study, load_dataset, rewards_from
from policytree.diagnostics.calibration import calibration_table
from policytree.exceptions import InputError, OverlapWarning
from policytree.model_selection.crossfit import median_rule
from policytree.study import MayBeMissing
from policytree.weighting import MatchingRewards
from policytree.weighting.inverse_propensity import InversePropensity
from policytree.weighting.registry import SCHEMES
from policytree.weighting.scheme import Nuisances
from policytree.weighting.study_data import StudyData

LINEAR = {"model_regression": LinearRegression(), "model_propensity": LogisticRegression()}


def three_arms(rng, n):
    """Confounded data with three arms, true propensities and true means."""
    x = rng.uniform(-1, 1, size=n)
    p = np.column_stack([np.exp(-x), np.exp(x), np.ones(n)])
    p /= p.sum(axis=1, keepdims=True)
    arm = (rng.random(n)[:, None] > p.cumsum(axis=1)).sum(axis=1)
    means = np.column_stack([x, 2.0 - x, 1.0 + 0 * x])
    return x[:, None], arm, means[np.arange(n), arm] + rng.normal(size=n), p, means


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SCHEMES))
def test_unbiased_with_true_nuisances(name, rng):
    draws = []
    for _ in range(2_000):
        _, T, Y, p, means = three_arms(rng, 150)
        draws.append(SCHEMES[name].rewards(StudyData.of(Y, T), Nuisances(means, p)).mean(axis=0))
    # the self-normalised estimate is a ratio, biased by O(1/n): allow that much
    slack = 0.01 if name == "ipw_normalized" else 0.0
    error = np.abs(np.mean(draws, axis=0) - [0.0, 2.0, 1.0])
    assert (error <= 3.5 * np.std(draws, axis=0) / np.sqrt(len(draws)) + slack).all()


class TrueEffects:
    """An effect estimator in EconML's form that knows the truth of :func:`three_arms`."""

    transformer = SimpleNamespace(categories_=[np.array([0, 1, 2])])

    def const_marginal_effect(self, X):
        x = X[:, 0]
        return np.column_stack([2.0 - 2.0 * x, 1.0 - x])


@pytest.mark.slow
def test_plug_in_of_true_effects_is_unbiased(rng):
    draws = []
    for _ in range(2_000):
        X, *_ = three_arms(rng, 150)
        draws.append(rewards_from(TrueEffects(), X).mean(axis=0))
    error = np.abs(np.mean(draws, axis=0) - [0.0, 2.0, 1.0])
    assert (error <= 3.5 * np.std(draws, axis=0) / np.sqrt(len(draws))).all()
    X, *_ = three_arms(rng, 50)
    expected = np.column_stack([0.0 * X[:, 0], 2.0 - 2.0 * X[:, 0], 1.0 - X[:, 0]])
    np.testing.assert_allclose(rewards_from(TrueEffects(), X), expected)


@pytest.mark.slow
def test_matching_is_unbiased_where_matches_are_exact(rng):
    """Its limit: with one confounder of three values, everybody's matches have his own value."""
    errors = []
    for _ in range(80):
        x = rng.integers(3, size=240)
        T = (rng.random(240) < np.array([0.3, 0.5, 0.7])[x]).astype(int)
        truth = np.column_stack([x, 2.0 * x - 1.0])
        Y = truth[np.arange(240), T] + rng.normal(size=240)
        matching = MatchingRewards(5, exact="categories", random_state=rng.integers(2**31))
        rewards = matching.fit_predict(Y, T, X=pd.DataFrame({"x": np.array(["a", "b", "c"])[x]}))
        errors.append((rewards.to_numpy() - truth).mean(axis=0))
    z = np.mean(errors, axis=0) / (np.std(errors, axis=0) / np.sqrt(len(errors)))
    assert (np.abs(z) < 3.5).all()
    assert (np.std(errors, axis=0) < 0.2).all()


@pytest.mark.slow
def test_matching_approaches_the_truth_with_more_rows(rng):
    def error(n):
        X, T, Y, _, means = three_arms(rng, n)
        gaps = MatchingRewards(random_state=0).fit_predict(Y, T, X=X) - means
        return np.sqrt((gaps.to_numpy() ** 2).mean())

    assert error(8_000) < 0.35  # ten matches leave a noise of 1 / sqrt(10), whatever the number of rows
    assert error(150) > 0.35


@pytest.mark.parametrize("name", sorted(SCHEMES))
def test_end_to_end_with_cross_fitted_models(name, rng):
    X, T, Y, _, _ = three_arms(rng, 6_000)
    rewards = RewardEstimator(**LINEAR, method=name, random_state=0).fit_predict(Y, np.array(["a", "b", "c"])[T], X=X)
    assert list(rewards.columns) == ["a", "b", "c"]
    assert (np.abs(rewards.mean() - [0.0, 2.0, 1.0]) < 0.15).all()


def test_inverse_propensity_by_hand():
    observed = StudyData.of([2.0, 4.0, 6.0], ["a", "b", "a"])
    p = np.array([[0.5, 0.5], [0.2, 0.8], [0.25, 0.75]])
    plain = InversePropensity().rewards(observed, Nuisances(propensity=p))
    assert plain.tolist() == [[4.0, 0.0], [0.0, 5.0], [24.0, 0.0]]
    hajek = InversePropensity(normalized=True).rewards(observed, Nuisances(propensity=p))
    np.testing.assert_allclose(hajek.mean(axis=0), [(2 * 2 + 4 * 6) / 6, 4.0])


def test_self_normalised_rewards_move_with_the_outcome_and_honour_weights(rng):
    _, T, Y, p, _ = three_arms(rng, 200)
    w = rng.integers(1, 4, size=200)
    scheme, nuisances = InversePropensity(normalized=True), Nuisances(propensity=p)
    rewards = scheme.rewards(StudyData.of(Y, T, sample_weight=w), nuisances)
    shifted = scheme.rewards(StudyData.of(Y + 100.0, T, sample_weight=w), nuisances)
    np.testing.assert_allclose(shifted, rewards + 100.0, atol=1e-9)
    np.testing.assert_allclose(scheme.rewards(StudyData.of(np.ones(200), T), nuisances), 1.0)
    twice = np.repeat(np.arange(200), w)
    repeated = scheme.rewards(StudyData.of(Y[twice], T[twice]), Nuisances(propensity=p[twice]))
    np.testing.assert_allclose(repeated, rewards[twice])


def test_self_normalised_standard_error_is_that_of_the_ratio(rng):
    """The spread of the rewards gives the standard error of the Hajek mean (delta method), checked by simulation."""
    means, errors = [], []
    for _ in range(400):
        _, T, Y, p, _ = three_arms(rng, 400)
        r = InversePropensity(normalized=True).rewards(StudyData.of(Y + 5.0, T), Nuisances(propensity=p))
        means.append(r.mean(axis=0))
        errors.append(r.std(axis=0) / 20)
    np.testing.assert_allclose(np.mean(errors, axis=0), np.std(means, axis=0), rtol=0.12)


def test_self_normalised_weights_need_every_treatment():
    observed = StudyData.of([1.0, 2.0], [0, 0], treatments=np.array([0, 1]))
    with pytest.raises(InputError, match="No row has treatment 1"):
        InversePropensity(normalized=True).rewards(observed, Nuisances(propensity=np.full((2, 2), 0.5)))


@pytest.fixture(scope="module")
def births():
    """Cattaneo's births, with the nuisances that statsmodels' own test uses."""
    import statsmodels.treatment.tests as folder
    from statsmodels.discrete.discrete_model import Probit
    from statsmodels.regression.linear_model import OLS
    from statsmodels.treatment.treatment_effects import TreatmentEffect

    frame = pd.read_csv(Path(folder.__file__).parent / "results" / "cataneo2.csv")
    select = Probit.from_formula("mbsmoke_ ~ mmarried_ + mage + mage2 + fbaby_ + medu", frame).fit(disp=False)
    outcome = OLS.from_formula("bweight ~ prenatal1_ + mmarried_ + mage + fbaby_", frame)
    effect = TreatmentEffect(outcome, frame["mbsmoke_"].to_numpy(), results_select=select)
    fitted = [r.predict(outcome.exog) for r in (effect.results0, effect.results1)]
    return frame, np.asarray(select.predict()), np.column_stack(fitted), effect


@pytest.mark.parametrize(("method", "theirs"), [("dr", "aipw"), ("ipw_normalized", "ipw"), ("regression", "ra")])
def test_agrees_with_statsmodels_on_births(births, method, theirs):
    frame, p, m, effect = births
    given = {"propensity": p, "regression": m}
    if method == "regression":
        del given["propensity"]
    if method == "ipw_normalized":
        del given["regression"]
    estimator = RewardEstimator(method=method, min_propensity=0.001)
    ours = estimator.fit_predict(frame["bweight"], frame["mbsmoke_"], **given).mean()
    ate, without, with_smoking = getattr(effect, theirs)(return_results=False)
    np.testing.assert_allclose([ours[1] - ours[0], ours[0], ours[1]], [ate, without, with_smoking], rtol=1e-9)


def test_scores_equal_econml(rng):
    from econml.dr import LinearDRLearner

    X, T, Y, _, _ = three_arms(rng, 300)
    splitter = KFold(3)
    theirs = LinearDRLearner(
        model_propensity=LogisticRegression(),
        model_regression=LinearRegression(),
        cv=list(splitter.split(X)),
        min_propensity=0.01,
    )
    theirs.fit(Y, T, X=X, cache_values=True)
    # EconML fits one outcome model with treatment indicators: give its out-of-fold predictions as external ones
    indicators, regression = np.eye(3)[T][:, 1:], np.empty((300, 3))
    for train, test in splitter.split(X):
        model = LinearRegression().fit(np.column_stack([X, indicators])[train], Y[train])
        for k in range(3):
            as_if = np.tile(np.eye(3)[k, 1:], (len(test), 1))
            regression[test, k] = model.predict(np.column_stack([X[test], as_if]))
    ours = RewardEstimator(model_propensity=LogisticRegression(), cv=splitter).fit_predict(
        Y, T, X=X, regression=regression
    )
    np.testing.assert_allclose(
        ours.to_numpy(), theirs._cached_values.nuisances[0].reshape(300, 3), rtol=1e-9, atol=1e-9
    )


def test_external_predictions_replace_both_models(rng):
    X, T, Y, p, means = three_arms(rng, 90)
    labels = np.array(["x", "y", "z"])
    regression = pd.DataFrame(means[:, ::-1], columns=["z", "y", "x"])
    fitted = RewardEstimator().fit(Y, labels[T], propensity=p, regression=regression)
    assert fitted.folds_ is None
    assert fitted.models_regression_ is None
    np.testing.assert_array_equal(fitted.regression_.to_numpy(), means)
    expected = SCHEMES["dr"].rewards(StudyData.of(Y, T), Nuisances(means, p))
    np.testing.assert_array_equal(fitted.rewards_.to_numpy(), expected)
    again = fitted.predict_rewards(Y, labels[T], propensity=p, regression=means)
    np.testing.assert_array_equal(again.to_numpy(), expected)
    with pytest.raises(InputError, match="regression was given row by row"):
        fitted.predict_rewards(Y, labels[T], propensity=p)
    with pytest.raises(InputError, match="No outcome model was fitted"):
        fitted.predict_outcomes(X=X)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"regression": np.ones((6, 3))}, r"regression has shape \(6, 3\)"),
        ({"regression": np.full((6, 2), np.nan)}, "first in row 0"),
        ({"regression": [["a", "b"]] * 6}, "not numbers"),
        ({"regression": pd.DataFrame(np.ones((6, 2)), columns=["a", "c"])}, "no expected outcome for treatment b"),
        ({"method": "regression", "propensity": 0.5}, "method='regression' does not use propensity"),
        ({"method": "ipw", "regression": np.ones((6, 2))}, "does not use regression"),
        ({"n_repeats": 0}, "n_repeats must be a whole number"),
        ({"n_repeats": 2, "cv": np.tile([0, 1], 3)}, "every repetition would be the same"),
    ],
)
def test_bad_external_predictions_get_one_sentence(given, message):
    parameters = {k: given.pop(k) for k in ("method", "n_repeats", "cv") if k in given}
    with pytest.raises(InputError, match=message):
        RewardEstimator(**{"cv": 2, **parameters}).fit(np.arange(6.0), list("aabbab"), **given)


@pytest.mark.parametrize("method", ["regression", "matching"])
def test_known_chances_of_a_study_are_a_fact_and_no_argument(method, rng):
    """They were refused, so that one study could not be fitted by every method."""
    X, T, Y, _, _ = three_arms(rng, 120)
    table = pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])]).assign(arm=T, y=Y)
    study = Study(table, treatment="arm", outcome="y", propensity=dict.fromkeys(range(3), 1 / 3))
    learner = LinearRegression() if method == "regression" else "auto"
    model = RewardEstimator(learner, method=method, random_state=0).fit(study)
    without = RewardEstimator(learner, method=method, random_state=0).fit(Y, T, X=study.X)
    assert model.propensity_ is None
    np.testing.assert_array_equal(model.rewards_, without.rewards_)
    np.testing.assert_array_equal(model.predict_rewards(study), without.predict_rewards(Y, T, X=study.X))
    for call in (without.fit, without.fit_predict, without.predict_rewards):
        with pytest.raises(InputError, match="does not use propensity"):
            call(Y, T, X=study.X, propensity=[1 / 3] * 3)


@pytest.mark.parametrize("method", [*SCHEMES, "matching", InversePropensity()])
def test_one_fit_has_the_rewards_of_every_method(method, rng):
    X, T, Y, _, _ = three_arms(rng, 150)
    study = StudyData.of(Y, T, X=X)
    settings = {"cv": 2, "n_repeats": 2, "random_state": 0}
    both = RewardEstimator("linear", "logit", **settings).fit(study)
    alone = RewardEstimator("auto" if method == "matching" else "linear", "logit", method=method, **settings).fit(study)
    np.testing.assert_allclose(both.rewards_by(method, study), alone.rewards_, rtol=1e-9)
    if method == "ipw":
        for rows in (slice(None, None, -1), slice(None, None, 2)):
            others = StudyData.of(Y[rows], T[rows], X=X[rows])
            with pytest.raises(InputError, match="those of the rows of the fit"):
                both.rewards_by(method, others)
    with pytest.raises(InputError, match="fit with method='dr'"):
        RewardEstimator("linear", method="regression", random_state=0).fit(study).rewards_by("ipw", study)


@pytest.mark.parametrize("kind", ["censored", "missing"])
def test_rewards_of_other_methods_complete_outcomes_too(kind, rng):
    """Rows are told by outcomes as they came: those of the fit are completed, known ones among them."""
    study = load_dataset("colon").study()
    if kind == "missing":
        score = np.where(rng.random(929) < 0.2, np.nan, rng.normal(size=929))
        table = load_dataset("colon").frame[["arm", "age", "male"]].assign(score=score)
        study = Study(table, treatment="arm", outcome=MayBeMissing("score"), direction="maximize")
    model = RewardEstimator("linear", "logit", cv=2, random_state=0).fit(study)
    found = model.rewards_by("ipw", study)
    assert np.isfinite(found).all().all() and not np.allclose(found, model.rewards_)
    with pytest.raises(InputError, match="those of the rows of the fit"):
        model.rewards_by("ipw", study[::-1])


def test_repeats_take_the_median_of_nuisances(rng):
    X, T, Y, _, _ = three_arms(rng, 150)
    fitted = RewardEstimator(**LINEAR, n_repeats=5, random_state=0).fit(Y, T, X=X)
    assert len(fitted.repeats_) == 5
    assert len(fitted.models_regression_) == 25
    each = np.stack([r.regression.predictions for r in fitted.repeats_])
    assert (each.std(axis=0) > 0).all()
    np.testing.assert_array_equal(fitted.regression_.to_numpy(), np.median(each, axis=0))
    np.testing.assert_allclose(fitted.propensity_.to_numpy().sum(axis=1), 1.0)
    groups = np.arange(150)
    clustered = RewardEstimator(**LINEAR, n_repeats=3, random_state=0).fit(Y, T, X=X, groups=groups)
    again = clustered.predict_rewards(Y, T, X=X, groups=groups)
    np.testing.assert_allclose(again.to_numpy(), clustered.rewards_.to_numpy())


@pytest.mark.slow
def test_repeats_make_results_depend_less_on_the_folds(rng):
    X, T, Y, _, _ = three_arms(rng, 200)

    def spread(n_repeats):
        """How much a row's reward depends on the draw of folds, averaged over rows and arms."""
        estimators = [RewardEstimator(**LINEAR, cv=3, n_repeats=n_repeats, random_state=s) for s in range(6)]
        return np.std([e.fit_predict(Y, T, X=X) for e in estimators], axis=0).mean()

    assert spread(5) < 0.75 * spread(1)


def test_median_rule_by_hand():
    value, error = median_rule([1.0, 2.0, 4.0], [1.0, 0.5, 1.0])
    assert value == 2.0
    assert error == pytest.approx(np.sqrt(np.median([1 + 1, 0.25, 1 + 4])))
    with pytest.raises(InputError, match="same length"):
        median_rule([1.0], [1.0, 2.0])


def test_many_arms_with_five_rows_each(rng):
    T = np.repeat([f"arm {k:02d}" for k in range(20)], 5)
    X = rng.normal(size=(100, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rewards = RewardEstimator(LinearRegression(), random_state=0).fit_predict(
            rng.normal(size=100), T, X=X, propensity=np.full(20, 0.05)
        )
    assert rewards.shape == (100, 20)
    assert np.isfinite(rewards.to_numpy()).all()


@pytest.mark.parametrize("method", ["regression", "dr", "ipw_normalized"])
def test_a_constant_outcome_is_worth_that_constant(method, rng):
    X, T, _, _, _ = three_arms(rng, 120)
    rewards = RewardEstimator(**LINEAR, method=method, random_state=0).fit_predict(np.full(120, 7.0), T, X=X)
    np.testing.assert_allclose(rewards.to_numpy(), 7.0)


def test_a_forest_gives_better_propensities_when_calibrated(rng):
    """The documented way: scikit-learn calibrates inside every training part, so nothing leaks."""
    X, T, Y, p, _ = three_arms(rng, 1_500)
    forest = RandomForestClassifier(40, min_samples_leaf=2, random_state=0)
    labels = np.array(["a", "b", "c"])[T]

    def fitted(model, **arguments):
        estimator = RewardEstimator(LinearRegression(), model, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OverlapWarning)  # the raw forest says zero where it never saw an arm
            return estimator.fit(Y, labels, X=X, **arguments)

    calibrated = CalibratedClassifierCV(forest, method="sigmoid", cv=3)
    raw, mended = fitted(forest), fitted(calibrated, sample_weight=np.ones(1_500))
    errors = [np.abs(f.propensity_.to_numpy() - p).mean() for f in (raw, mended)]
    assert errors[1] < 0.6 * errors[0]
    assert list(mended.propensity_.columns) == ["a", "b", "c"]
    with pytest.warns(UserWarning, match=r"calibrate it \(CalibratedClassifierCV\)"):
        calibration_table(raw.propensity_, labels)
    calibration_table(mended.propensity_, labels)  # without a warning
    gaps = np.where(rng.random((1_500, 1)) < 0.1, np.nan, X)
    again = RewardEstimator(LinearRegression(), calibrated, random_state=0).fit(Y, labels, X=gaps)
    assert np.isfinite(again.rewards_.to_numpy()).all()
