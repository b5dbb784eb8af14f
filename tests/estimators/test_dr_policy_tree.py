"""From outcomes to a tree in one fit."""

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score

from policytree import DRPolicyTree, RewardEstimator, StudyReport, cross_val_policy_value
from policytree.estimators import base
from policytree.evaluation import near_ties
from policytree.exceptions import InputError, UnseenValueWarning
from policytree.problem.types import Status
from policytree.solvers.core.compilation import load_kernels
from policytree.solvers.exact import direct


@pytest.fixture
def trial():
    """Three arms with known probabilities; arm "b" is best for x0 > 0, "a" otherwise, "c" never."""
    rng = np.random.default_rng(11)
    n = 900
    X = pd.DataFrame(rng.standard_normal((n, 3)), columns=["x0", "x1", "x2"])
    T = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    Y = X["x1"] + np.where(T == "b", np.sign(X["x0"]) * 2.0, 0.0) - 1.0 * (T == "c") + rng.standard_normal(n)
    return X, T, Y, {"a": 0.5, "b": 0.3, "c": 0.2}


def test_finds_the_rule_and_knows_its_proof(trial):
    X, T, Y, propensity = trial
    model = DRPolicyTree(LinearRegression(), max_depth=1, random_state=0)
    model.fit(Y, T, X=X, propensity=propensity)
    best = np.where(X["x0"] > 0, "b", "a")
    assert (model.predict(X) == best).mean() > 0.95
    assert model.status_ is Status.OPTIMAL and model.optimality_gap_ == 0
    assert list(model.rewards_.columns) == ["a", "b", "c"] == list(model.treatments_)
    assert model.get_depth() == 1 and "x0" in model.export_text()
    assert model.score(Y, T, X=X, propensity=propensity) > 0.5


def test_direction_minimize_prefers_small_outcomes(trial):
    X, T, Y, propensity = trial
    model = DRPolicyTree(LinearRegression(), max_depth=1, direction="minimize", random_state=0)
    model.fit(-Y, T, X=X, propensity=propensity)
    assert (model.predict(X) == np.where(X["x0"] > 0, "b", "a")).mean() > 0.95


def test_confounders_in_w_are_used_but_never_split_on(trial):
    X, T, Y, propensity = trial
    model = DRPolicyTree(LinearRegression(), max_depth=2, random_state=0)
    model.fit(Y, T, X=X[["x0"]], W=X[["x1", "x2"]], propensity=propensity)
    assert [f.name for f in model.tree_.features] == ["x0"]
    assert (
        model.rewards_.to_numpy().std()
        < DRPolicyTree(LinearRegression(), max_depth=2, random_state=0)
        .fit(Y, T, X=X[["x0"]], propensity=propensity)
        .rewards_.to_numpy()
        .std()
    )


def test_clone_parameters_and_bad_arguments_before_the_nuisances(trial):
    X, T, Y, propensity = trial
    model = DRPolicyTree(max_depth=3, min_samples_leaf=5)
    assert clone(model).get_params()["min_samples_leaf"] == 5
    with pytest.raises(InputError, match="max_depth"):
        DRPolicyTree(max_depth=-1).fit(Y, T, X=X, propensity=propensity)
    with pytest.raises(AttributeError):
        _ = model.tree_


def test_score_judges_clusters_of_the_fit_by_models_that_missed_them(trial):
    X, T, Y, propensity = trial
    groups = np.arange(len(Y)) // 3
    forest = ExtraTreesRegressor(n_estimators=20, random_state=0)  # knows the rows it was fitted to by heart
    model = DRPolicyTree(forest, max_depth=1, random_state=0).fit(Y, T, X=X, propensity=propensity, groups=groups)
    held_out = model.score(Y, T, X=X, groups=groups)
    assert held_out == pytest.approx(model.policy_tree_.score(X, model.rewards_))
    assert model.score(Y, T, X=X) != pytest.approx(held_out, abs=1e-6)
    assert model.get_used_features() == ["x0"]


def test_cross_validated_value_refits_everything(trial):
    X, T, Y, propensity = trial
    model = DRPolicyTree(LinearRegression(), max_depth=1, random_state=0)
    table = cross_val_policy_value(model, Y, T, X=X, propensity=propensity, random_state=0).to_frame()
    assert set(table.index) >= {"policy tree", "always a", "always b", "always c", "as randomised"}
    assert table.loc["policy tree", "value"] > table.loc["always a", "value"]
    assert (table["lower"] < table["value"]).all() and (table["value"] < table["upper"]).all()
    assert not hasattr(model, "tree_")


def test_rewards_as_one_object_give_what_the_short_form_gives(trial):
    X, T, Y, propensity = trial
    short = DRPolicyTree(LinearRegression(), cv=3, max_depth=1, random_state=0).fit(Y, T, X=X, propensity=propensity)
    rewards = RewardEstimator(LinearRegression(), cv=3)
    model = DRPolicyTree(rewards=rewards, max_depth=1, random_state=0).fit(Y, T, X=X, propensity=propensity)
    pd.testing.assert_frame_equal(model.rewards_, short.rewards_)
    assert model.objective_value_ == short.objective_value_
    assert not hasattr(rewards, "rewards_") and rewards.random_state is None  # cloned, as arguments are
    seeded = DRPolicyTree(rewards=RewardEstimator(LinearRegression(), cv=3, random_state=5), max_depth=1)
    repeated = seeded.set_params(rewards__n_repeats=2).fit(Y, T, X=X, propensity=propensity)
    assert len(repeated.reward_estimator_.repeats_) == 2
    assert repeated.reward_estimator_.random_state == 5


def test_parameter_searches_reach_into_rewards(trial):
    X, T, Y, _ = trial
    model = DRPolicyTree(rewards=RewardEstimator(LinearRegression(), LogisticRegression(), cv=2), max_depth=1)
    assert clone(model).get_params()["rewards__min_propensity"] == 0.01
    with config_context(enable_metadata_routing=True):
        search = GridSearchCV(model, {"rewards__min_propensity": [0.001, 0.01]}, cv=2).fit(X, Y, T=T)
    assert search.best_estimator_.reward_estimator_.min_propensity == search.best_params_["rewards__min_propensity"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cv": 3}, r"^cv is given beside rewards; set it there: rewards=RewardEstimator\(cv=\.\.\.\)\.$"),
        ({"model_regression": LinearRegression()}, "^model_regression is given beside rewards"),
        ({"rewards": LinearRegression()}, r"^rewards must be a RewardEstimator or None; got LinearRegression\(\)\.$"),
        ({"rewards": RewardEstimator(method="direct_method")}, "^rewards must be doubly robust and of everybody"),
        ({"rewards": RewardEstimator(estimand="overlap")}, "^rewards must be doubly robust and of everybody"),
    ],
)
def test_rewards_that_cannot_be_meant_are_refused_in_one_sentence(trial, arguments, message):
    X, T, Y, propensity = trial
    with pytest.raises(InputError, match=message):
        DRPolicyTree(**{"rewards": RewardEstimator(), **arguments}).fit(Y, T, X=X, propensity=propensity)


def test_held_out_values_and_the_report_take_rewards_as_one_object(trial):
    X, T, Y, propensity = trial
    rewards = RewardEstimator(LinearRegression(), cv=2)
    repeats = {"propensity": propensity, "cv": 2, "n_repeats": 2, "random_state": 0}
    tables, texts = [], []
    for model in (
        DRPolicyTree(LinearRegression(), cv=2, max_depth=1, random_state=0),
        DRPolicyTree(rewards=rewards, max_depth=1, random_state=0),
    ):
        tables.append(cross_val_policy_value(model, Y, T, X=X, **repeats))
        texts.append(StudyReport(model.fit(Y, T, X=X, propensity=propensity), Y, T, X=X, results=tables[-1]).to_text())
    pd.testing.assert_frame_equal(tables[0].to_frame(), tables[1].to_frame())
    assert "RewardEstimator" in texts[1] and "RewardEstimator" not in texts[0]


@pytest.mark.filterwarnings("ignore:The search ended by time limit")
@pytest.mark.parametrize(
    "settings",
    [
        {"max_depth": 2},
        {"max_depth": 3},
        {"max_depth": 3, "min_samples_per_treatment": 5, "max_leaf_nodes": 6, "columns": "rounded"},
        {"max_depth": 3, "columns": "two-valued"},
        {"max_depth": 2, "columns": "rounded", "feature_costs": [0.01, 0.0, 0.02]},
        {"max_depth": None, "regularization": 0.5},
    ],
)
def test_kernels_are_asked_for_before_the_outcome_models(trial, settings, monkeypatch):
    """All that the search loads was to be compiled beside the outcome models, judged without their rewards."""
    X, T, Y, propensity = trial
    columns = settings.pop("columns", "")
    if columns:
        X = (X > 0).astype(float) if columns == "two-valued" else X.round()
    two = np.isin(T, ["a", "b"]) if columns == "two-valued" else np.ones(len(T), bool)  # blocks take two treatments
    early, searched = [], []
    model = DRPolicyTree(LinearRegression(), **settings, time_limit=2, random_state=0)

    def in_background(needed):
        assert not searched
        early.extend((kernel, kind) for kernels, kind in needed for kernel in kernels)

    def load(needed, **then):
        both = [*needed, *then.get("then", ())]  # the second where no other test has loaded a search over subsets
        searched.extend((kernel, kind) for kernels, kind in both for kernel in kernels)
        return load_kernels(needed, **then)

    monkeypatch.setattr(base, "load_in_background", in_background)
    monkeypatch.setattr(direct, "load_kernels", load)
    chances = {arm: propensity[arm] / (0.8 if columns == "two-valued" else 1.0) for arm in np.unique(T[two])}
    model.fit(Y[two], T[two], X=X[two], propensity=chances)
    assert searched and set(searched) <= set(early)


def test_prediction_needs_the_columns_of_the_rule_only(trial):
    X, T, Y, propensity = trial
    X = X.assign(city=np.where(X["x2"] > 0, "Bern", "Chur"))
    model = DRPolicyTree(LinearRegression(), max_depth=1, random_state=0).fit(Y, T, X=X, propensity=propensity)
    assert model.get_used_features() == ["x0"]
    whole = model.predict(X)
    for part in (X[["x0"]], X[["x0", "city"]], X[["x0", "x2"]]):
        assert (model.predict(part) == whole).all()
        assert (model.apply(part) == model.apply(X)).all()
    for part in (X[["x1", "x2"]], X[["city", "x0"]], X[["x0"]].assign(more=1.0)):
        with pytest.raises(InputError, match="feature names should match"):
            model.predict(part)
    asked = DRPolicyTree(LinearRegression(), max_depth=1, split_features=["city"], random_state=0)
    asked.fit(Y, T, X=X, propensity=propensity)
    if asked.get_used_features():
        with pytest.warns(UnseenValueWarning, match="Basel"):
            asked.predict(pd.DataFrame({"city": ["Basel"]}))


def test_fitted_attributes_are_attributes(trial):
    X, T, Y, propensity = trial
    model = DRPolicyTree(LinearRegression(), max_depth=1, random_state=0)
    assert not hasattr(model, "tree_") and not hasattr(model, "feature_names_in_")
    model.fit(Y, T, X=X, propensity=propensity)
    for name in ("tree_", "status_", "optimality_gap_", "feature_names_in_", "treatments_", "max_depth_", "predict"):
        assert name in dir(model)
    assert model.feature_names_in_.tolist() == ["x0", "x1", "x2"] and model.tree_ is model.policy_tree_.tree_
    model.fit(Y, T, X=X.to_numpy(), propensity=propensity)
    assert not hasattr(model, "feature_names_in_") and model.n_features_in_ == 3
    with pytest.raises(AttributeError, match="spend_"):
        _ = model.spend_


@pytest.mark.parametrize("search", [
    lambda model, X, Y, T: GridSearchCV(model, {"max_depth": [0, 1]}).fit(X, Y, T=T),
    lambda model, X, Y, T: cross_val_score(model, X, Y, params={"T": T}),
])  # fmt: skip
def test_searches_without_routing_are_told_what_to_set(trial, search):
    """Without it, scikit-learn turned every score into NaN, and chose the first tree."""
    X, T, Y, _ = trial
    with pytest.raises(InputError, match=r"only after sklearn.set_config\(enable_metadata_routing=True\)"):
        search(DRPolicyTree(LinearRegression(), max_depth=1, cv=2), X, Y, T)


@pytest.mark.parametrize("method", ["ipw", "regression", "matching", "dr_normalized"])
def test_a_tree_for_other_rewards_is_judged_by_doubly_robust_ones(trial, method):
    X, T, Y, propensity = trial
    given = {"X": X, "propensity": propensity}
    model = DRPolicyTree(LinearRegression(), method=method, max_depth=1, random_state=0).fit(Y, T, **given)
    plain = DRPolicyTree(LinearRegression(), max_depth=1, random_state=0).fit(Y, T, **given)
    pd.testing.assert_frame_equal(model.rewards_, plain.rewards_)
    assert plain.tree_rewards_ is plain.rewards_
    learner = "auto" if method == "matching" else LinearRegression()
    known = given if method in ("ipw", "dr_normalized") else {"X": X}
    alone = RewardEstimator(learner, method=method, random_state=0).fit(Y, T, **known)
    pd.testing.assert_frame_equal(model.tree_rewards_, alone.rewards_)
    assert not np.allclose(model.tree_rewards_, model.rewards_)
    assert model.objective_value_ == pytest.approx(model.policy_tree_.score(X, model.tree_rewards_))
    assert model.score(Y, T, X=X, propensity=propensity) == pytest.approx(
        model.policy_tree_.score(X, model.reward_estimator_.predict_rewards(Y, T, **given))
    )
    best = np.where(X["x0"] > 0, "b", "a")
    assert (model.predict(X) == best).mean() > 0.75  # ipw is noisy here


def test_near_ties_are_those_of_the_rewards_that_the_tree_was_found_for(trial):
    X, T, Y, propensity = trial
    model = DRPolicyTree(LinearRegression(), method="ipw", max_depth=1, min_samples_per_treatment=0, random_state=0)
    model.fit(Y, T, X=X, propensity=propensity)
    ties = near_ties(model, X, epsilon=0.0)
    assert ties.objective == pytest.approx(model.objective_value_)


def test_methods_that_have_no_meaning_are_refused_before_models_are_fitted(trial):
    X, T, Y, propensity = trial
    for method, words in (("weights", "method must be .*; got 'weights'"), ("instrument", "without saying where")):
        with pytest.raises(InputError, match=words):
            DRPolicyTree(method=method).fit(Y, T, X=X, propensity=propensity)
