"""Rewards from scores that fitted estimators of DoubleML and EconML hold, and effects of CausalML's metalearners.

DoubleML and CausalML are no dependencies: tests of the real packages run where they are installed, and stand-ins with
the same attributes elsewhere.
"""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from policytree import PolicyTree, rewards_from
from policytree.exceptions import InputError
from policytree.weighting import cate_effects

ARMS = ["usual", "a", "b"]


@pytest.fixture(scope="module")
def study():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(1500, 3))
    T = np.array(ARMS)[rng.integers(0, 3, len(X))]
    Y = X[:, 1] + (1 + X[:, 0]) * (T == "a") + 0.5 * (T == "b") + rng.normal(size=len(X))
    return X, T, Y


def quietly(fit, *data, **arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other libraries warn about their own use of scikit-learn
        return fit(*data, **arguments)


# --- DoubleML ---


def apo(scores, weights=1.0):
    """As a fitted DoubleMLAPO: scores of shape (n, repetitions)."""
    scores = np.asarray(scores, dtype=float)[:, :, None]
    return SimpleNamespace(psi_elements={"psi_a": np.full(scores.shape, -weights), "psi_b": scores})


def test_scores_of_potential_outcomes_are_averaged_over_repetitions():
    model = SimpleNamespace(modellist=[apo([[1, 3], [0, 0]]), apo([[5, 5], [-1, 1]])], treatment_levels=["z", "a"])
    expected = pd.DataFrame({"a": [5.0, 0.0], "z": [2.0, 0.0]})
    pd.testing.assert_frame_equal(rewards_from(model), expected)


def test_the_score_of_an_effect_is_a_gain_over_the_control():
    model = apo([[1.0], [-2.0]])
    model.score, model.params_names = "ATE", ["ml_g0", "ml_g1", "ml_m"]
    assert rewards_from(model).to_numpy().tolist() == [[0.0, 1.0], [0.0, -2.0]]
    model.score = "ATTE"
    with pytest.raises(InputError, match="score='ATE'"):
        rewards_from(model)


@pytest.mark.parametrize(
    ("level", "message"),
    [
        (apo([[1.0], [2.0]], weights=2.0), "fitted with weights"),
        (apo([[np.nan], [2.0]]), "is not fitted; call its fit"),
        (SimpleNamespace(psi_elements=None), "is not fitted; call its fit"),
        (apo([[np.inf], [2.0]]), "not finite; clip its propensities"),
    ],
)
def test_scores_that_mean_something_else_are_refused(level, message):
    with pytest.raises(InputError, match=message):
        rewards_from(SimpleNamespace(modellist=[level], treatment_levels=[0]))


def test_doubleml_itself(study):
    doubleml = pytest.importorskip("doubleml")
    X, T, Y = study
    codes = np.unique(T, return_inverse=True)[1]
    data = doubleml.DoubleMLData.from_arrays(X, Y, codes)
    learners = {"ml_g": LinearRegression(), "ml_m": LogisticRegression()}
    apos = doubleml.DoubleMLAPOS(data, **learners, treatment_levels=[2, 0, 1], n_rep=1)
    with pytest.raises(InputError, match="not fitted"):
        rewards_from(quietly(doubleml.DoubleMLAPOS, data, **learners, treatment_levels=[2, 0, 1]))
    quietly(apos.fit)
    rewards = rewards_from(apos)
    assert list(rewards.columns) == [0, 1, 2]
    np.testing.assert_allclose(rewards[[2, 0, 1]].mean(), apos.coef)
    binary = doubleml.DoubleMLData.from_arrays(X, Y, (codes == 0) * 1)
    irm = quietly(doubleml.DoubleMLIRM(binary, **learners, n_rep=1).fit)
    np.testing.assert_allclose(rewards_from(irm)[1].mean(), irm.coef)


# --- EconML ---


def learner(**arguments):
    from econml.dr import LinearDRLearner

    return LinearDRLearner(
        model_regression=LinearRegression(),
        model_propensity=LogisticRegression(),
        categories=ARMS,
        random_state=0,
        **arguments,
    )


def forest(**arguments):
    from econml.dml import CausalForestDML

    settings = {"model_y": LinearRegression(), "model_t": LogisticRegression(), "n_estimators": 40} | arguments
    return CausalForestDML(discrete_treatment=True, categories=ARMS, random_state=0, **settings)


def test_pseudo_outcomes_of_a_doubly_robust_learner(study):
    X, T, Y = study
    rewards = rewards_from(quietly(learner().fit, Y, T, X=X, cache_values=True))
    assert list(rewards.columns) == ["a", "b", "usual"]
    truth = np.array([1.0, 0.5, 0.0])
    assert np.all(np.abs(rewards.mean() - truth) < 4 * rewards.std() / np.sqrt(len(X)))
    tree = PolicyTree(max_depth=1).fit(X, rewards)
    assert tree.tree_.feature[0] == 0  # the only column on which effects depend


def test_scores_of_a_causal_forest_by_hand(study):
    X, T, Y = study
    fitted = quietly(forest().fit, Y, T, X=X, cache_values=True)
    rewards = rewards_from(fitted)
    y, t, *_ = fitted.residuals_
    tau = fitted.model_cate.oob_predict(X).reshape(len(X), 2)
    for i in range(0, len(X), 97):
        chance = {arm: (T[i] == arm) - t[i, k] for k, arm in enumerate(ARMS[1:])}
        chance["usual"] = 1.0 - chance["a"] - chance["b"]
        effect = {"usual": 0.0, "a": tau[i, 0], "b": tau[i, 1]}
        at = {arm: effect[arm] - sum(chance[other] * effect[other] for other in ARMS) for arm in ARMS}
        score = {arm: at[arm] + (T[i] == arm) * (np.ravel(y)[i] - at[arm]) / chance[arm] for arm in ARMS}
        for arm in ARMS:
            assert rewards.loc[i, arm] == pytest.approx(score[arm] - score["usual"])
    truth, spread = np.array([1.0, 0.5]), rewards.std() / np.sqrt(len(X))
    assert np.all(np.abs(rewards[["a", "b"]].mean() - truth) < 4 * spread[["a", "b"]])


def test_a_featurizer_stands_before_the_forest(study):
    from sklearn.preprocessing import PolynomialFeatures

    X, T, Y = study
    fitted = quietly(forest(featurizer=PolynomialFeatures(2, include_bias=False)).fit, Y, T, X=X, cache_values=True)
    assert rewards_from(fitted)["a"].mean() == pytest.approx(1.0, abs=0.3)


@pytest.mark.parametrize("make", [learner, forest])
def test_scores_that_were_not_kept(make, study):
    X, T, Y = study
    with pytest.raises(InputError, match="fit it with cache_values=True"):
        rewards_from(quietly(make().fit, Y, T, X=X))


def test_a_propensity_of_zero_names_the_row(study):
    X, T, Y = study
    fitted = quietly(forest().fit, Y, T, X=X, cache_values=True)
    _, t = fitted._cached_values.nuisances
    t[7] = 0.0  # of whoever had the control: not so by the model's probabilities of the others
    t[7, 0] = -1.0
    with pytest.raises(InputError, match="row 7 cannot have the treatment that it had"):
        rewards_from(fitted)


@pytest.mark.parametrize("other", [LinearRegression(), object(), None])
def test_what_holds_no_scores_is_refused(other):
    with pytest.raises(InputError, match="holds no doubly robust scores"):
        rewards_from(other)


# --- CausalML ---


def metalearner():
    """As a fitted metalearner of CausalML."""
    predict = lambda X: np.column_stack([np.asarray(X)[:, 0], np.asarray(X)[:, 0] - 1])  # noqa: E731
    return SimpleNamespace(t_groups=np.array(["a", "b"]), control_name="usual", predict=predict)


@pytest.mark.parametrize("table", [np.asarray, pd.DataFrame, pl.DataFrame])
def test_effects_of_a_metalearner(table):
    rewards = rewards_from(metalearner(), table(np.array([[2.0], [5.0]])), sample_treatment_costs={"b": 0.5})
    assert rewards.to_dict("list") == {"a": [2.0, 5.0], "b": [0.5, 3.5], "usual": [0.0, 0.0]}


def test_a_metalearner_has_no_inference():
    effects = cate_effects(metalearner(), np.array([[2.0], [5.0]]))
    assert effects.reference == "usual"
    assert effects.lower is None
    assert effects.effects["b"].tolist() == [1.0, 4.0]


def test_causalml_itself(study):
    meta = pytest.importorskip("causalml.inference.meta")
    X, T, Y = study
    for kind in (meta.BaseTRegressor, meta.BaseXRegressor, meta.BaseDRRegressor):
        fitted = kind(LinearRegression(), control_name="usual")
        quietly(fitted.fit, X=X, treatment=T, y=Y)
        rewards = quietly(rewards_from, fitted, X)
        assert list(rewards.columns) == ["a", "b", "usual"]
        np.testing.assert_array_equal(rewards[["a", "b"]], quietly(fitted.predict, X))
        if (
            kind is not meta.BaseDRRegressor
        ):  # 0.18's own effects of several arms are far off: +3 to +6 where +1 is true
            assert rewards["a"].mean() == pytest.approx(1.0, abs=0.2)
            assert np.corrcoef(rewards["a"], X[:, 0])[0, 1] > 0.9
