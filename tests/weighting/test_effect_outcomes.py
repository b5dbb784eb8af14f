"""Effect estimators as outcome models: cross-fitted, with weights, clusters, new rows and refits like any other."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from policytree import DRPolicyTree, RewardEstimator, Study, heterogeneity_test, policy_value
from policytree.exceptions import InputError
from policytree.study import MayBeMissing
from policytree.weighting import MatchingRewards


class Doubling:
    """Effects 2 x and 4 x of the second and third arm, and a memory of what fits were given."""

    def __init__(self):
        self.seen = []

    def fit(self, Y, T, *, X=None, sample_weight=None, groups=None):
        self.rows, self.groups, self.weight = len(Y), groups, sample_weight
        return self

    def const_marginal_effect(self, X):
        return np.column_stack([2 * X[:, 0], 4 * X[:, 0]])


@pytest.fixture
def trial(rng):
    X = rng.normal(size=(240, 2))
    arm = rng.integers(0, 3, 240)
    Y = 1 + X[:, 1] + 2 * arm * X[:, 0] + 0.01 * rng.normal(size=240)
    return {"Y": Y, "T": np.array(["a", "b", "c"])[arm], "X": X}


def test_effects_are_added_to_what_they_leave_of_outcomes(trial):
    model = RewardEstimator(Doubling(), method="regression", random_state=0).fit(**trial)
    x = trial["X"]
    np.testing.assert_allclose(model.rewards_["b"] - model.rewards_["a"], 2 * x[:, 0])
    np.testing.assert_allclose(model.rewards_["c"] - model.rewards_["a"], 4 * x[:, 0])
    assert np.abs(model.rewards_["a"] - 1 - x[:, 1]).mean() < 0.1
    new = model.predict_rewards(trial["Y"][:5], trial["T"][:5], X=x[:5])
    np.testing.assert_allclose(new["c"] - new["a"], 4 * x[:5, 0])
    assert len(model.models_regression_) == 5 and len(model.models_regression_[0]) == 3
    np.testing.assert_allclose(
        model.models_regression_[0][1].predict(x) - model.models_regression_[0][0].predict(x), 2 * x[:, 0]
    )


def test_doubly_robust_rewards_correct_wrong_effects(trial, rng):
    class Wrong(Doubling):
        def const_marginal_effect(self, X):
            return np.zeros((len(X), 2))

    model = RewardEstimator(Wrong(), random_state=0).fit(**trial, propensity=[1 / 3] * 3)
    gain = policy_value("c", model.rewards_[trial["X"][:, 0] > 0], baseline="a")
    truth = 4 * trial["X"][trial["X"][:, 0] > 0, 0].mean()
    assert abs(gain.value - truth) < 3 * gain.standard_error


def test_weights_and_clusters_reach_the_estimator(trial):
    groups = np.repeat(np.arange(60), 4)
    weight = np.linspace(1, 2, 240)
    model = RewardEstimator(Doubling(), random_state=0, cv=3).fit(**trial, groups=groups, sample_weight=weight)
    for fold, of_fold in enumerate(model.repeats_[0].regression.models):
        inside = of_fold.model
        assert not set(inside.groups) & set(groups[model.folds_ == fold]) or inside.rows == (model.folds_ != fold).sum()
        assert inside.rows == (model.folds_ != fold).sum() and len(inside.weight) == inside.rows
    assert (pd.Series(model.folds_).groupby(groups).nunique() == 1).all()


def test_refusals_name_the_remedy(trial):
    class Numbers(Doubling):
        discrete_treatment = False

    class NoWeights(Doubling):
        def fit(self, Y, T, *, X=None):
            return self

    class Two(Doubling):
        def const_marginal_effect(self, X):
            return X[:, :1]

    gaps = {**trial, "X": np.where(np.arange(240)[:, None] == 3, np.nan, trial["X"])}
    for learner, data, words in (
        (Numbers(), trial, "discrete_treatment=True"),
        (NoWeights(), {**trial, "sample_weight": np.ones(240) + np.arange(240)}, "takes no sample_weight"),
        (Two(), trial, "1 effects for 3 treatments"),
        (Doubling(), gaps, "takes no missing values"),
        (Doubling(), {k: v for k, v in trial.items() if k != "X"}, "needs covariates"),
    ):
        with pytest.raises(InputError, match=words):
            RewardEstimator(learner, random_state=0).fit(**data)


def test_missing_outcomes_need_no_weights_of_the_estimator(trial):
    class Plain(Doubling):
        def fit(self, Y, T, *, X=None):
            return super().fit(Y, T, X=X)

    table = pd.DataFrame(trial["X"], columns=["x", "z"]).assign(arm=trial["T"], y=trial["Y"])
    table.loc[::7, "y"] = np.nan
    study = Study(
        table, treatment="arm", outcome=MayBeMissing("y"), direction="maximize", propensity={k: 1 / 3 for k in "abc"}
    )
    rewards = RewardEstimator(Plain(), random_state=0).fit(study).rewards_
    assert abs((rewards["c"] - rewards["a"] - 4 * table["x"]).mean()) < 0.5
    weight = np.arange(240.0) + 1.0
    with pytest.raises(InputError, match=r"Plain\.fit takes no sample_weight"):
        RewardEstimator(Plain(), random_state=0).fit(**trial, sample_weight=weight)


@pytest.mark.parametrize("learner", [Doubling(), "curved", {"a": Doubling(), "b": Doubling(), "c": Doubling()}])
def test_one_outcome_model_is_asked_for_in_a_sentence(trial, learner):
    with pytest.raises(InputError, match="learns the outcomes of all treatments together"):
        heterogeneity_test(**trial, estimator=RewardEstimator(learner, random_state=0), propensity=[1 / 3] * 3)


@pytest.mark.parametrize("kind", ["dml", "dr", "forest", "x"])
def test_estimators_of_econml(kind, rng):
    dml, dr, metalearners = (pytest.importorskip(f"econml.{name}") for name in ("dml", "dr", "metalearners"))
    n = 600
    X = rng.normal(size=(n, 2))
    T = rng.choice(["drug", "none"], size=n)
    Y = X[:, 1] + (T == "drug") * X[:, 0] + 0.5 * rng.normal(size=n)
    line, logit = LinearRegression(), LogisticRegression()
    made = {
        "dml": lambda: dml.LinearDML(model_y=line, model_t=logit, discrete_treatment=True, random_state=0),
        "dr": lambda: dr.LinearDRLearner(model_propensity=logit, model_regression=line, random_state=0),
        "forest": lambda: dml.CausalForestDML(
            model_y=line, model_t=logit, discrete_treatment=True, n_estimators=48, random_state=0
        ),
        "x": lambda: metalearners.XLearner(models=line, propensity_model=logit),
    }[kind]()
    model = RewardEstimator(made, cv=2, random_state=0).fit(Y, T, X=X, propensity=0.5)
    effect = model.regression_["drug"] - model.regression_["none"]
    assert np.corrcoef(effect, X[:, 0])[0, 1] > 0.8
    tree = DRPolicyTree(rewards=RewardEstimator(made, cv=2, random_state=0), max_depth=1, random_state=0)
    tree.fit(Y, T, X=X, propensity=0.5)
    assert tree.tree_.feature[0] == 0 and abs(tree.tree_.threshold[0]) < 0.7


def test_matching_is_a_method_and_an_outcome_model(trial):
    model = RewardEstimator(method="matching", random_state=0).fit(**trial)
    again = RewardEstimator(MatchingRewards(random_state=0), method="regression", random_state=0).fit(**trial)
    x = trial["X"]
    gain = model.rewards_["c"] - model.rewards_["a"]
    assert np.corrcoef(gain, 4 * x[:, 0])[0, 1] > 0.9
    assert list(model.rewards_.columns) == ["a", "b", "c"] and model.propensity_ is None
    for fold, of_fold in enumerate(model.repeats_[0].regression.models):  # nobody is matched to his own fold
        held_out = model.folds_ == fold
        expected = of_fold.model.predict_outcomes(X=x[held_out])
        np.testing.assert_allclose(model.rewards_[held_out], expected)
        assert of_fold.model.rewards_.shape == ((~held_out).sum(), 3)
    new = model.predict_rewards(trial["Y"][:5], trial["T"][:5], X=x[:5])
    np.testing.assert_allclose(new, model.predict_outcomes(X=x[:5]))
    assert np.corrcoef(again.rewards_["c"], model.rewards_["c"])[0, 1] > 0.95
    few = RewardEstimator(MatchingRewards(1), method="matching", random_state=0).fit(**trial).rewards_
    assert set(few.iloc[0]) != set(model.rewards_.iloc[0])


def test_doubly_robust_rewards_by_matching_average_to_the_truth(trial):
    model = RewardEstimator(MatchingRewards(), random_state=0).fit(**trial, propensity=[1 / 3] * 3)
    gain = policy_value("c", model.rewards_[trial["X"][:, 0] > 0], baseline="a")
    truth = 4 * trial["X"][trial["X"][:, 0] > 0, 0].mean()
    assert abs(gain.value - truth) < 3 * gain.standard_error


def test_matching_refuses_in_a_sentence(trial):
    gaps = {**trial, "X": np.where(np.arange(240)[:, None] == 3, np.nan, trial["X"])}
    bare = {k: v for k, v in trial.items() if k != "X"}
    for learner, data, words in (
        ("auto", gaps, "MatchingRewards takes no missing values"),
        ("auto", bare, "method='matching' needs covariates by which people are alike; pass X or W"),
        (LinearRegression(), trial, "leave model_regression at 'auto', or make it a MatchingRewards; got LinearReg"),
        (MatchingRewards(200), trial, "Treatment a has .* rows to match to, fewer than n_neighbors=200"),
        ("auto", {**trial, "propensity": [1 / 3] * 3}, "method='matching' does not use propensity"),
    ):
        with pytest.raises(InputError, match=words):
            RewardEstimator(learner, method="matching", random_state=0).fit(**data)
