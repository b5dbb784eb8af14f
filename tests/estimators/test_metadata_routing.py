"""Estimators in scikit-learn's tools: the order of arguments, and treatments, clusters and the rest by routing."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.fixes import parse_version
from sklearn.utils.validation import _num_samples

from policytree import (
    CostSensitiveTreeClassifier,
    DRPolicyTree,
    LowCostTreeClassifier,
    OptimalTreeClassifier,
    PolicyTree,
    RewardEstimator,
    Study,
)
from policytree.constraints import Share
from policytree.exceptions import InputError
from policytree.weighting import DoseRewards, MatchingRewards
from policytree.weighting.study_data import StudyData

CHANCES = {"drug": 0.6, "none": 0.4}
needs_scores_through_pipelines = pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.8"),
    reason="older searches pass no metadata on to the score of a pipeline",
)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture
def trial():
    """People in pairs and sites; the drug helps the old, and a further confounder drives outcomes."""
    rng = np.random.default_rng(3)
    n = 240
    X = pd.DataFrame({"age": rng.integers(20, 80, n), "weight": rng.normal(70, 10, n).round(1)})
    W = pd.DataFrame({"severity": rng.normal(size=n)})
    T = rng.choice([*CHANCES], n, p=[*CHANCES.values()])
    Y = W["severity"] + np.where(T == "drug", np.where(X["age"] > 50, 1.5, -1.5), 0.0) + rng.normal(size=n)
    return {"X": X, "W": W, "T": T, "Y": Y, "groups": np.arange(n) // 2, "site": np.arange(n) // 2 % 4}


def simple(**settings) -> DRPolicyTree:
    settings = {"max_depth": 1, "min_samples_leaf": 20, "random_state": 0, "cv": 2} | settings
    return DRPolicyTree(LinearRegression(), DummyClassifier(strategy="prior"), **settings)


def rows(data, at, *names):
    """Those rows of some of the data."""
    return {name: data[name].iloc[at] if hasattr(data[name], "iloc") else data[name][at] for name in names}


# --- two orders of arguments, and nothing between them ---


def test_both_orders_mean_the_same(trial):
    X, Y, T, more = trial["X"], trial["Y"], trial["T"], {"W": trial["W"], "groups": trial["groups"]}
    calls = [
        lambda method: method(Y, T, X=X, **more),
        lambda method: method(Y, T=T, X=X, **more),
        lambda method: method(X=X, Y=Y, T=T, **more),
        lambda method: method(X, Y, T=T, **more),
        lambda method: method(X, Y=Y, T=T, **more),
    ]
    models = [call(simple().fit) for call in calls]
    texts = {model.export_text() for model in models}
    assert len(texts) == 1 and "age" in texts.pop()
    assert len({call(models[0].score) for call in calls}) == 1
    for estimator in (models[0].reward_estimator_, RewardEstimator(LinearRegression(), random_state=0)):
        for method in (clone(estimator).fit_predict, models[0].reward_estimator_.predict_rewards):
            first, *others = (call(method) for call in calls)
            assert all(first.equals(other) for other in others)


def test_matching_takes_both_orders(trial):
    X, Y, T = trial["X"], trial["Y"], trial["T"]
    model = MatchingRewards(random_state=0)
    first = model.fit_predict(Y, T, X=X)
    assert first.equals(model.fit_predict(X, Y, T=T)) and first.equals(model.fit(X, Y, T=T).rewards_)
    with pytest.raises(InputError, match=r"fit takes Y, T by position and the rest by name: fit\(Y, T, X=X\)"):
        model.fit(Y, T, X)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m, X, Y, T: m(X, Y), r"two arguments by position.*\(Y, T, X=X\), or .*\(X, Y, T=T\).*metadata_routing"),
        (lambda m, X, Y, T: m(Y, T), "two arguments by position, and neither X nor T by name"),
        (lambda m, X, Y, T: m(X, Y, T), "takes Y, T by position and the rest by name.*or X, Y in scikit-learn's order"),
        (lambda m, X, Y, T: m(X, Y, T=T, X=X), "needs Y, T and X, and is given 2 by position and T, X by name"),
        (lambda m, X, Y, T: m(Y, T, Y=Y, X=X), "given 2 by position and Y, X by name"),
        (lambda m, X, Y, T: m(X, T=T), r"given 1 by position and T by name; write \w+\(Y, T, X=X\)"),
        (lambda m, X, Y, T: m(Y, X=X), "given 1 by position and X by name"),
        (lambda m, X, Y, T: m(X, Y=Y, X=X), "given 1 by position and Y, X by name"),
        (lambda m, X, Y, T: m(X=X, Y=Y), "given none by position and Y, X by name"),
        (lambda m, X, Y, T: m(), "none by position and none by name"),
        (lambda m, X, Y, T: m(Y, X, T=T), "Y must be one column of values; got shape"),  # X and Y in turn
        (lambda m, X, Y, T: m(X, X, T=T), "Y must be one column"),
        (lambda m, X, Y, T: m(X, Y, T=None), "T is missing: give the treatment of every row"),
    ],
)
def test_calls_in_neither_order_are_refused(trial, call, words):
    data = trial["X"].to_numpy(dtype=float), trial["Y"].to_numpy(), trial["T"]
    fitted = simple().fit(data[0], data[1], T=data[2])
    for method in (simple().fit, fitted.score):
        with pytest.raises(InputError, match=words):
            call(method, *data)


def test_what_scikit_learn_may_pass_on():
    of_rows = {"W", "propensity", "sample_weight", "groups"}
    expected = {
        DRPolicyTree: {"fit": {"T", *of_rows}, "score": {"T", *of_rows}},
        PolicyTree: {
            "fit": {"T", "sample_weight", "sample_treatment_costs", "budget_costs", "groups", "outcomes", "subgroups"},
            "score": {"sample_weight", "sample_treatment_costs"},
        },
        RewardEstimator: {"fit": {"T", *of_rows, "regression"}},
        MatchingRewards: {"fit": {"T", "sample_weight", "groups"}},
        DoseRewards: {"fit": {"T", "W", "sample_weight", "groups"}},
        OptimalTreeClassifier: {"fit": {"sample_weight"}, "score": {"sample_weight"}},
        CostSensitiveTreeClassifier: {"fit": {"sample_weight"}, "score": {"sample_weight"}},
        LowCostTreeClassifier: {"fit": {"sample_weight"}, "score": {"sample_weight"}},
    }
    for estimator, methods in expected.items():
        request = estimator().get_metadata_routing()
        for method, names in methods.items():
            asked = getattr(request, method).requests
            assert set(asked) == names, (estimator, method)
            always = {"T"} if estimator is not PolicyTree and "T" in names else set()
            assert {name for name, value in asked.items() if value} == always


class ByTurns(DRPolicyTree):
    """A trial in which every other row is treated, so that ``fit(X, y)`` is enough for scikit-learn's checks."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y, T=np.arange(_num_samples(X)) % 2, propensity=0.5, sample_weight=sample_weight)

    def score(self, X, y, sample_weight=None):
        return super().score(X, y, T=np.arange(_num_samples(X)) % 2, sample_weight=sample_weight)


@parametrize_with_checks(
    [ByTurns(LinearRegression(), max_depth=1, cv=2, random_state=0)],
    expected_failed_checks=lambda _: {
        "check_fit2d_1sample": "one row has one treatment, and so the message says",
        "check_sample_weight_equivalence_on_dense_data": "treatments go by the number of the row; tested below",
    },
)
def test_scikit_learn_estimator_checks(estimator, check):
    check(estimator)


def test_a_row_of_weight_two_is_the_row_twice(trial):
    weight = np.random.default_rng(0).integers(0, 3, len(trial["T"]))
    fold, twice = np.arange(len(weight)) % 3, np.repeat(np.arange(len(weight)), weight)
    by_weight = simple(cv=fold).fit(**rows(trial, slice(None), "X", "Y", "T", "W"), sample_weight=weight)
    by_rows = simple(cv=fold[twice]).fit(**rows(trial, twice, "X", "Y", "T", "W"))
    assert by_weight.objective_value_ == pytest.approx(by_rows.objective_value_, rel=1e-9)
    assert (by_weight.predict(trial["X"]) == by_rows.predict(trial["X"])).all()


# --- the README's sentence: clone, Pipeline, GridSearchCV, cross_val_score, cross_validate ---


def test_a_pipeline_without_routing(trial):
    X, Y, T = trial["X"], trial["Y"], trial["T"]
    pipe = make_pipeline(StandardScaler(), simple()).fit(X, Y, drpolicytree__T=T, drpolicytree__W=trial["W"])
    assert (pipe.predict(X) == simple().fit(X, Y, T=T, W=trial["W"]).predict(X)).all()
    with pytest.raises(InputError, match="enable_metadata_routing"):
        pipe.score(X, Y)
    arms = PolicyTree(max_depth=1, min_samples_per_treatment=20)
    rewards = pipe[-1].rewards_
    least = make_pipeline(StandardScaler(), arms).fit(X, rewards, policytree__T=T)
    assert pd.crosstab(least[-1].apply(least[0].transform(X)), T).to_numpy().min() >= 20


def test_a_search_without_routing_says_what_is_missing(trial):
    search = GridSearchCV(simple(), {"max_depth": [0, 1]}, cv=2)
    with pytest.raises(InputError, match=r"set_config\(enable_metadata_routing=True\)"):
        search.fit(trial["X"], trial["Y"], T=trial["T"])


def test_a_search_of_a_study_says_what_to_pass(trial, routing):
    table = trial["X"].assign(arm=np.asarray(trial["T"]), score=np.asarray(trial["Y"]))
    study = Study(table, treatment="arm", outcome="score", covariates=list(trial["X"].columns))
    search = GridSearchCV(simple(), {"max_depth": [0, 1]}, cv=2)
    with pytest.raises(InputError, match=r"take columns instead: search.fit\(study.X, study.Y, T=study.T\), after"):
        search.fit(study)
    assert np.isfinite(search.fit(study.X, study.Y, T=study.T).best_score_)


def test_cross_val_score_is_the_held_out_value(trial, routing):
    model = simple().set_fit_request(W=True, groups=True).set_score_request(W=True, groups=True)
    params = {name: trial[name] for name in ("T", "W", "groups")}
    got = cross_val_score(model, trial["X"], trial["Y"], cv=GroupKFold(3), params=params)
    expected = []
    for train, test in GroupKFold(3).split(trial["X"], groups=trial["groups"]):
        fitted = simple().fit(**rows(trial, train, "Y", "T", "X", "W", "groups"))
        held_out = fitted.reward_estimator_.predict_rewards(**rows(trial, test, "Y", "T", "X", "W"))
        chosen = fitted.predict(trial["X"].iloc[test])
        expected.append(np.where(chosen == "drug", held_out["drug"], held_out["none"]).mean())
    np.testing.assert_allclose(got, expected, rtol=1e-12)
    assert min(got) > 0.3  # of .75 for the rule that is true


def test_clusters_reach_the_splitter_and_the_estimator(trial, routing):
    model = simple().set_fit_request(groups=True).set_score_request(groups=False)
    given = {"T": trial["T"], "groups": trial["groups"]}
    found = cross_validate(
        model, trial["X"], trial["Y"], cv=GroupKFold(3), params=given, return_estimator=True, return_indices=True
    )
    for fitted, train, test in zip(found["estimator"], *found["indices"].values(), strict=True):
        assert not {*trial["groups"][train]} & {*trial["groups"][test]}
        fold_of = pd.Series(fitted.reward_estimator_.folds_).groupby(trial["groups"][train])
        assert (fold_of.nunique() == 1).all()
    unaware = cross_validate(simple().set_fit_request(groups=False).set_score_request(groups=False),
                             trial["X"], trial["Y"], cv=GroupKFold(3), params=given)  # fmt: skip
    assert not np.allclose(unaware["test_score"], found["test_score"])


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_a_search_finds_the_depth_in_either_direction(trial, routing, direction):
    sign = 1.0 if direction == "maximize" else -1.0
    model = simple(direction=direction).set_fit_request(W=True).set_score_request(W=True)
    search = GridSearchCV(model, {"max_depth": [0, 1], "regularization": [0.0, 5.0]}, cv=KFold(3))
    search.fit(trial["X"], sign * trial["Y"], T=trial["T"], W=trial["W"])
    assert search.best_params_ == {"max_depth": 1, "regularization": 0.0}
    assert search.best_score_ > 0.3 and search.best_estimator_.get_used_features() == ["age"]
    value = search.score(trial["X"], sign * trial["Y"], T=trial["T"], W=trial["W"])
    assert value == search.best_estimator_.score(sign * trial["Y"], trial["T"], X=trial["X"], W=trial["W"])
    rewards = search.best_estimator_.reward_estimator_.predict_rewards(
        sign * trial["Y"], trial["T"], X=trial["X"], W=trial["W"]
    )
    given = search.predict(trial["X"]) == "drug"
    assert value == pytest.approx(sign * np.where(given, rewards["drug"], rewards["none"]).mean(), rel=1e-12)


@pytest.mark.parametrize(
    "chances",
    [
        CHANCES,
        [0.6, 0.4],
        lambda T: np.where(T == "none", 0.4, 0.6)[:, None] * [1, 0] + [0, 0.4],
        lambda T: pd.DataFrame({"none": np.full(len(T), 0.4), "drug": np.full(len(T), 0.6)}),
    ],
    ids=["mapping", "list", "array", "frame"],
)
def test_known_chances_are_split_where_they_have_rows(trial, routing, chances):
    if callable(chances):
        chances = chances(np.full(len(trial["T"]), "drug"))
    model = simple().set_fit_request(propensity=True).set_score_request(propensity=True)
    params = {"T": trial["T"], "propensity": chances}
    got = cross_val_score(model, trial["X"], trial["Y"], cv=3, params=params)
    params["propensity"] = CHANCES
    np.testing.assert_allclose(got, cross_val_score(model, trial["X"], trial["Y"], cv=3, params=params), rtol=1e-9)


@pytest.mark.parametrize("dear", [{"drug": 9.0}, "by row"])
def test_costs_count_in_the_fit_and_in_the_value(trial, dear):
    costs = pd.DataFrame({"none": 0.0, "drug": np.full(len(trial["T"]), 9.0)}) if dear == "by row" else dear
    priced = StudyData.of(trial["Y"], trial["T"], X=trial["X"], sample_treatment_costs=costs)
    assert (simple().fit(priced).predict(trial["X"]) == "none").all()
    everybody = simple(constraints=[Share("drug", least=1.0)]).fit(trial["X"], trial["Y"], T=trial["T"])
    gross = everybody.score(trial["X"], trial["Y"], T=trial["T"])
    assert everybody.score(priced) == pytest.approx(gross - 9.0, rel=1e-12)
    lost = simple(constraints=[Share("drug", least=1.0)], direction="minimize").fit(
        trial["X"], -trial["Y"], T=trial["T"]
    )
    priced = StudyData.of(-trial["Y"], trial["T"], X=trial["X"], sample_treatment_costs=costs)
    assert lost.score(priced) == pytest.approx(lost.score(trial["X"], -trial["Y"], T=trial["T"]) - 9.0, rel=1e-12)


def test_weights_are_passed_on_to_trees_with_limits(trial, routing):
    weight = np.where(trial["X"]["age"] > 50, 3.0, 1.0)
    model = simple(max_depth=2, constraints=[Share("drug", most=0.3)]).set_fit_request(sample_weight=True)
    model.set_score_request(sample_weight=True)
    params = {"T": trial["T"], "sample_weight": weight}
    found = cross_validate(
        model, trial["X"], trial["Y"], cv=3, params=params, return_estimator=True, return_indices=True
    )
    for fitted, train in zip(found["estimator"], found["indices"]["train"], strict=True):
        given = fitted.predict(trial["X"].iloc[train]) == "drug"
        assert np.average(given, weights=weight[train]) <= 0.3 and given.any()


def test_predictions_of_all_rows_by_trees_that_did_not_see_them(trial, routing):
    given = cross_val_predict(simple(), trial["X"], trial["Y"], cv=3, params={"T": trial["T"]})
    assert ((given == "drug") == (trial["X"]["age"] > 50)).mean() > 0.85


@needs_scores_through_pipelines
def test_a_search_around_a_pipeline(trial, routing):
    model = simple().set_fit_request(W=True, groups=True).set_score_request(W=True, groups=False)
    pipe = make_pipeline(StandardScaler().set_output(transform="pandas"), model)
    search = GridSearchCV(pipe, {"drpolicytree__max_depth": [0, 1]}, cv=GroupKFold(3))
    search.fit(trial["X"], trial["Y"], T=trial["T"], W=trial["W"], groups=trial["groups"])
    assert search.best_params_ == {"drpolicytree__max_depth": 1}
    assert search.best_estimator_[-1].get_used_features() == ["age"]
    assert search.score(trial["X"], trial["Y"], T=trial["T"], W=trial["W"]) > 0.3
    scores = cross_val_score(pipe, trial["X"], trial["Y"], cv=GroupKFold(3),
                             params={name: trial[name] for name in ("T", "W", "groups")})  # fmt: skip
    assert max(scores) == pytest.approx(max(search.cv_results_[f"split{k}_test_score"][1] for k in range(3)))


def test_a_search_inside_a_pipeline(trial, routing):
    search = GridSearchCV(simple(), {"max_depth": [0, 1]}, cv=GroupKFold(3))
    search.estimator.set_fit_request(groups=True).set_score_request(groups=False)
    pipe = make_pipeline(StandardScaler(), search).fit(trial["X"], trial["Y"], T=trial["T"], groups=trial["groups"])
    assert pipe[-1].best_params_ == {"max_depth": 1}
    assert ((pipe.predict(trial["X"]) == "drug") == (trial["X"]["age"] > 50)).mean() > 0.9


def test_rewards_at_the_end_of_a_pipeline(trial, routing):
    pipe = make_pipeline(StandardScaler(), RewardEstimator(LinearRegression(), random_state=0))
    rewards = pipe.fit_predict(trial["X"], trial["Y"], T=trial["T"])
    assert list(rewards.columns) == ["drug", "none"] and len(rewards) == len(trial["T"])
    pd.testing.assert_frame_equal(rewards, pipe[-1].rewards_)


def test_metadata_that_nobody_asked_for_are_refused_by_scikit_learn(trial, routing):
    with pytest.raises(UnsetMetadataPassedError, match="W"):
        cross_val_score(simple(), trial["X"], trial["Y"], params={"T": trial["T"], "W": trial["W"]})
    with pytest.raises(UnsetMetadataPassedError, match="set_fit_request"):
        GridSearchCV(PolicyTree(), {"max_depth": [1]}).fit(trial["X"], np.zeros((240, 2)), T=trial["T"])


def test_policy_trees_take_rewards_as_the_target(trial, routing):
    rewards = simple().fit(trial["X"], trial["Y"], T=trial["T"]).rewards_
    arms = PolicyTree(max_depth=1, min_samples_per_treatment=15)
    arms.set_fit_request(T=True, sample_weight=True, sample_treatment_costs=True)
    arms.set_score_request(sample_weight=True, sample_treatment_costs=True)
    params = {"T": trial["T"], "sample_weight": np.ones(240), "sample_treatment_costs": {"drug": 0.5}}
    scores = cross_val_score(arms, trial["X"], rewards, cv=3, params=params)
    for (train, test), score in zip(KFold(3).split(rewards), scores, strict=True):
        net = rewards - [0.5, 0.0]
        tree = clone(arms).fit(trial["X"].iloc[train], net.iloc[train], trial["T"][train])
        assert score == pytest.approx(tree.score(trial["X"].iloc[test], net.iloc[test]), rel=1e-9)
    found = cross_validate(arms, trial["X"], rewards, cv=GroupKFold(3), params=params | {"groups": trial["groups"]})
    assert (found["test_score"] > 0).all()
    chosen = clone(arms).set_params(max_depth="auto", random_state=0).set_fit_request(groups=True)
    cross_validate(chosen, trial["X"], rewards, cv=GroupKFold(3), params=params | {"groups": trial["groups"]})
    pipe = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), arms)
    pipe.fit(trial["X"], rewards, **params)
    search = GridSearchCV(arms, {"max_depth": [0, 1]}, cv=3).fit(trial["X"], rewards, **params)
    assert search.best_params_ == {"max_depth": 1}
    assert (pipe.predict(trial["X"]) == search.predict(trial["X"])).all()


def test_a_table_of_costs_is_a_target(trial, routing):
    X, cost = trial["X"], pd.DataFrame({"keep": np.zeros(240), "drop": np.where(trial["X"]["age"] > 50, -1.0, 1.0)})
    tree = CostSensitiveTreeClassifier(max_depth=1).set_fit_request(sample_weight=True)
    tree.set_score_request(sample_weight=True)
    weight = np.where(X["age"] > 50, 2.0, 1.0)
    search = GridSearchCV(tree, {"max_depth": [0, 1]}, cv=KFold(3)).fit(X, cost, sample_weight=weight)
    assert search.best_params_ == {"max_depth": 1}
    scores = cross_val_score(tree, X, cost, cv=KFold(3), params={"sample_weight": weight})
    np.testing.assert_allclose(scores, search.cv_results_["mean_test_score"][1], atol=0.2)
    labels = np.where(X["age"] > 50, "drop", "keep")
    missed = {("drop", "keep"): 3.0, ("keep", "drop"): 1.0}
    found = cross_validate(CostSensitiveTreeClassifier(missed, max_depth=1), X, labels, cv=StratifiedKFold(3))
    assert (found["test_score"] > -0.1).all()


# --- what scikit-learn does to estimators besides ---


def test_clones_keep_arguments_and_requests(routing):
    model = simple(max_depth=3).set_fit_request(W=True, groups="household").set_score_request(W=True)
    copy = clone(model)
    assert copy.get_metadata_routing().fit.requests == model.get_metadata_routing().fit.requests
    assert copy.get_metadata_routing().fit.requests["groups"] == "household"
    assert copy.set_params(max_depth=1).get_params()["max_depth"] == 1 and model.max_depth == 3


def test_a_transformer_that_keeps_names_shows_them_in_the_tree(trial):
    X = trial["X"].assign(sex=np.where(np.arange(240) % 3 == 0, "f", "m"))
    columns = make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (OneHotEncoder(drop="if_binary", sparse_output=False), ["sex"]),
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    pipe = make_pipeline(columns, simple()).fit(X, trial["Y"], drpolicytree__T=trial["T"])
    model = pipe[-1]
    assert list(model.feature_names_in_) == ["age", "weight", "sex_m"] and model.n_features_in_ == 3
    assert "age" in model.export_text()
    plain = make_pipeline(clone(columns).set_output(transform="default"), simple())
    plain.fit(X, trial["Y"], drpolicytree__T=trial["T"])
    assert not hasattr(plain[-1], "feature_names_in_") and (plain.predict(X) == pipe.predict(X)).all()


def test_sparse_tables_are_refused_with_the_remedy(trial):
    sex = pd.DataFrame({"sex": np.resize(["f", "m", "f"], 240)})
    sparse = OneHotEncoder().fit_transform(sex)
    with pytest.raises(TypeError, match=r"Sparse data was passed for X.*toarray"):
        simple().fit(sparse, trial["Y"], T=trial["T"])
    for arguments in ({"X": sparse}, {"X": trial["X"], "W": sparse}):
        with pytest.raises(InputError, match=r"[XW] is a sparse matrix.*sparse_output=False"):
            RewardEstimator(LinearRegression()).fit(trial["Y"], trial["T"], **arguments)


def test_complex_covariates_are_not_cut_to_their_real_part(trial):
    with pytest.raises(InputError, match="W holds complex numbers"):
        RewardEstimator(LinearRegression()).fit(trial["Y"], trial["T"], X=trial["X"], W=trial["W"].to_numpy() * 1j)


@pytest.mark.parametrize("config", [{"enable_metadata_routing": True}, {"transform_output": "pandas"}])
def test_rewards_do_not_depend_on_how_scikit_learn_is_set(trial, config):
    """The default learners too are pipelines, which get weights."""
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 240)
    given = {**rows(trial, slice(None), "X", "Y", "T", "groups"), "sample_weight": weight}
    given["X"] = given["X"].assign(sex=np.resize(["f", None, "m"], 240), dose=np.where(weight > 1, np.nan, weight))
    for model in (RewardEstimator(random_state=0, cv=2), RewardEstimator(LinearRegression(), random_state=0, cv=2)):
        expected = model.fit_predict(**given), model.predict_rewards(given["X"], given["Y"], T=given["T"])
        with sklearn.config_context(**config):
            inside = clone(model)
            got = inside.fit_predict(**given), model.predict_rewards(given["X"], given["Y"], T=given["T"])
        after = inside.predict_rewards(given["X"], given["Y"], T=given["T"])
        for frame, same in zip((*got, after), (*expected, expected[1]), strict=True):
            pd.testing.assert_frame_equal(frame, same)
