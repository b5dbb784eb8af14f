"""Rewards and inference from EconML's estimators, and costs of treatments."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from policytree import rewards_from
from policytree.exceptions import InputError
from policytree.weighting import cate_effects, row_costs
from policytree.weighting.costs import subtract_costs, treatment_costs


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    X = pd.DataFrame(rng.normal(size=(900, 2)), columns=["age", "income"], index=np.arange(900) + 3)
    T = rng.choice(["b", "a", "c"], size=900)
    effect = np.select([T == "b", T == "c"], [1.0 + X["age"], -1.0], 0.0)
    return X, T, effect + X["income"] + rng.normal(scale=0.5, size=900)


def fit(name, data, **arguments):
    from econml import dml, dr, metalearners

    X, T, Y = data
    make = {
        "LinearDML": lambda: dml.LinearDML(
            model_y=LinearRegression(),
            model_t=LogisticRegression(),
            discrete_treatment=True,
            random_state=0,
            **arguments,
        ),
        "CausalForestDML": lambda: dml.CausalForestDML(
            model_y=LinearRegression(),
            model_t=LogisticRegression(),
            discrete_treatment=True,
            n_estimators=80,
            random_state=0,
            **arguments,
        ),
        "LinearDRLearner": lambda: dr.LinearDRLearner(
            model_regression=LinearRegression(), model_propensity=LogisticRegression(), random_state=0, **arguments
        ),
        "TLearner": lambda: metalearners.TLearner(models=LinearRegression(), **arguments),
        "XLearner": lambda: metalearners.XLearner(models=LinearRegression(), **arguments),
    }[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # EconML warns about its own use of scikit-learn
        return make().fit(Y, T, X=X)


@pytest.mark.parametrize("name", ["LinearDML", "CausalForestDML", "LinearDRLearner", "TLearner", "XLearner"])
def test_any_estimator_gives_named_rewards(name, data):
    estimator = fit(name, data)
    rewards = rewards_from(estimator, data[0])
    assert list(rewards.columns) == ["a", "b", "c"]
    assert rewards.index.equals(data[0].index)
    assert (rewards["a"] == 0.0).all()
    truth = np.column_stack([1.0 + data[0]["age"], np.full(900, -1.0)])
    assert np.abs(rewards[["b", "c"]].to_numpy() - truth).mean() < 0.35
    np.testing.assert_allclose(rewards[["b", "c"]].to_numpy(), estimator.const_marginal_effect(data[0]))


def test_polars_covariates_go_to_the_estimator(data):
    estimator, theirs = fit("LinearDML", data), pl.from_pandas(data[0])
    np.testing.assert_allclose(rewards_from(estimator, theirs), rewards_from(estimator, data[0]))
    np.testing.assert_allclose(cate_effects(estimator, theirs).upper, cate_effects(estimator, data[0]).upper)


@pytest.mark.parametrize("categories", [["c", "a", "b"], ["b", "c", "a"]])
def test_another_reference_keeps_labels_with_their_effects(categories, data):
    estimator = fit("LinearDRLearner", data, categories=categories)
    effects = cate_effects(estimator, data[0])
    assert effects.reference == categories[0]
    assert list(effects.effects.columns) == ["a", "b", "c"]
    assert (effects.effects[categories[0]] == 0.0).all()
    gap = effects.effects["b"] - effects.effects["c"]
    assert np.abs(gap - (2.0 + data[0]["age"])).mean() < 0.2


def test_inference_is_kept(data):
    estimator = fit("LinearDRLearner", data)
    effects = cate_effects(estimator, data[0], level=0.9)
    theirs = estimator.const_marginal_effect_inference(data[0])
    lower, upper = theirs.conf_int(alpha=0.1)
    np.testing.assert_allclose(effects.standard_errors[["b", "c"]], theirs.stderr)
    np.testing.assert_allclose(effects.lower[["b", "c"]], lower)
    np.testing.assert_allclose(effects.upper[["b", "c"]], upper)
    assert (effects.standard_errors["a"] == 0.0).all()


def test_without_inference_only_effects(data):
    effects = cate_effects(fit("TLearner", data), data[0])
    assert effects.standard_errors is None
    assert effects.effects.shape == (900, 3)


def test_what_is_no_effect_estimator_is_refused(data):
    from econml.dml import LinearDML

    X, T, Y = data
    with pytest.raises(InputError, match="LinearRegression is not a fitted EconML effect estimator"):
        rewards_from(LinearRegression(), X)
    continuous = LinearDML(model_y=LinearRegression(), model_t=LinearRegression()).fit(Y, (T == "b") * 1.0, X=X)
    with pytest.raises(InputError, match="discrete_treatment=True"):
        rewards_from(continuous, X)
    with pytest.raises(InputError, match="level must lie between"):
        cate_effects(continuous, X, level=95)


def test_costs_lower_the_rewards_of_their_treatment(data):
    estimator = fit("TLearner", data)
    plain, net = rewards_from(estimator, data[0]), rewards_from(estimator, data[0], sample_treatment_costs={"b": 0.5})
    pd.testing.assert_frame_equal(net[["a", "c"]], plain[["a", "c"]])
    np.testing.assert_allclose(net["b"], plain["b"] - 0.5)


@pytest.mark.parametrize(
    "costs",
    [
        {"b": 2.0, "c": [1.0, 2.0, 3.0]},
        [[0.0, 2.0, 1.0], [0.0, 2.0, 2.0], [0.0, 2.0, 3.0]],
        pd.DataFrame({"c": [1.0, 2.0, 3.0], "b": 2.0, "a": 0.0}),
        pl.DataFrame({"c": [1.0, 2.0, 3.0], "b": [2.0] * 3, "a": [0.0] * 3}),
    ],
)
def test_forms_of_costs(costs):
    got = treatment_costs(costs, 3, ["a", "b", "c"])
    assert got.tolist() == [[0.0, 2.0, 1.0], [0.0, 2.0, 2.0], [0.0, 2.0, 3.0]]


def test_forms_of_costs_with_two_treatments():
    assert treatment_costs(3.0, 2, [0, 1]).tolist() == [[0.0, 3.0]] * 2
    assert treatment_costs([1.0, 2.0, 3.0], 3, [0, 1]).tolist() == [[0.0, 1.0], [0.0, 2.0], [0.0, 3.0]]
    assert treatment_costs([1.0, 2.0], 3, [0, 1]).tolist() == [[1.0, 2.0]] * 3


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ({"d": 1.0}, "costs names treatment d, which does not occur; the treatments are a, b, c"),
        (1.0, "costs has shape"),
        (np.ones((3, 2)), "costs has shape"),
        ({"a": np.inf}, "The cost of treatment a is inf in row 0"),
        ({"a": "much"}, "not numbers"),
        (pd.DataFrame({"a": [1.0] * 3}), "costs has no cost for treatment b"),
        ({"a": [1.0, 2.0]}, "costs gives 2 values for treatment a and 3 rows"),
    ],
)
def test_bad_costs_get_one_sentence(costs, message):
    with pytest.raises(InputError, match=message):
        treatment_costs(costs, 3, ["a", "b", "c"])


def test_subtracting_costs_keeps_labels():
    rewards = pd.DataFrame([[1.0, 2.0]], columns=["no", "yes"], index=["Ann"])
    assert subtract_costs(rewards, {"yes": 0.5}).loc["Ann"].to_dict() == {"no": 1.0, "yes": 1.5}


def test_the_costs_of_the_lalonde_study():
    table = pd.DataFrame({"age": [20, 50]})
    rules = {"a": lambda d: 200 + 3 * d["age"], "b": lambda d: 100 + 3 * d["age"], "c": 300}
    assert row_costs(table, rules).to_numpy().tolist() == [[260, 160, 300], [350, 250, 300]]
    scaled = row_costs(table, rules, scale=(1, 100))
    # 160 -> 1, 350 -> 100
    np.testing.assert_allclose(scaled.loc[0], [1 + 99 * 100 / 190, 1, 1 + 99 * 140 / 190])
    np.testing.assert_allclose(scaled.loc[1], [100, 1 + 99 * 90 / 190, 1 + 99 * 140 / 190])
    with pytest.raises(InputError, match="cannot be scaled"):
        row_costs(table, {"a": 1.0}, scale=(1, 100))
    with pytest.raises(InputError, match="column 'wage', which the table lacks"):
        row_costs(table, {"a": "wage"})
