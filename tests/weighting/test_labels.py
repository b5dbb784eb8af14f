"""Weighted labels from rewards, weights without treatment, and logistic propensities with inference."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from policytree import RewardEstimator
from policytree.exceptions import InputError
from policytree.weighting import LogitPropensity, feature_propensity_weights, weighted_labels
from policytree.weighting.label_weights import cost_matrix_losses
from policytree.weighting.logit import independent_columns

REWARDS = arrays(np.int64, st.tuples(st.integers(1, 12), st.integers(2, 5)), elements=st.integers(-20, 20))


@given(rewards=REWARDS, seed=st.integers(0, 1_000))
def test_weighted_error_is_regret_for_every_policy(rewards, seed):
    rng = np.random.default_rng(seed)
    n, n_arms = rewards.shape
    labels = np.array(list("vwxyz"))[:n_arms]
    w = rng.integers(0, 4, size=n)
    w[rng.integers(n)] = 1  # not all zero, which is refused
    rows = weighted_labels(pd.DataFrame(rewards, columns=labels), sample_weight=w)
    for _ in range(5):
        policy = rng.integers(n_arms, size=n)
        regret = (w * (rewards.max(axis=1) - rewards[np.arange(n), policy])).sum()
        error = rows.weight[labels[policy][rows.row] != rows.label].sum()
        assert error - rows.constant == regret  # integers: exact
    assert (rows.weight > 0).all()
    if n_arms == 2:
        assert rows.constant == 0


def test_bad_rewards_get_one_sentence():
    with pytest.raises(InputError, match="at least two"):
        weighted_labels(np.ones((3, 1)))
    with pytest.raises(InputError, match="first in row 1"):
        weighted_labels([[0.0, 1.0], [np.nan, 1.0]])
    with pytest.raises(InputError, match="sample_weight has 2 rows, but rewards has 1"):
        weighted_labels([[0.0, 1.0]], sample_weight=[1.0, 2.0])


def test_feature_propensity_weights_balance_the_other_features(rng):
    x = rng.normal(size=4_000)
    feature = np.where(rng.random(4_000) < 1 / (1 + np.exp(-x)), "yes", "no")
    survey = rng.integers(1, 3, size=4_000)
    w = feature_propensity_weights(feature, x[:, None], random_state=0, sample_weight=survey)
    yes = feature == "yes"
    raw_gap = x[yes].mean() - x[~yes].mean()
    gap = np.average(x[yes], weights=w[yes]) - np.average(x[~yes], weights=w[~yes])
    assert raw_gap > 0.5
    assert abs(gap) < 0.08
    assert w.min() >= 1.0
    again = feature_propensity_weights(feature, x[:, None], model=LogisticRegression(), random_state=0)
    np.testing.assert_allclose(again, feature_propensity_weights(feature, x[:, None], random_state=0), rtol=0.05)


def test_a_rare_feature_value_is_named():
    with pytest.raises(InputError, match="Feature value rare has 2 rows"):
        feature_propensity_weights(["common"] * 20 + ["rare"] * 2, np.zeros((22, 1)))


@pytest.mark.parametrize(
    "costs",
    [
        [[0, 1, 5], [2, 0, 3], [0, 0, 0]],
        pd.DataFrame([[0, 1, 5], [2, 0, 3]], index=["a", "b"], columns=["a", "b", "c"]),
        {("a", "b"): 1, ("a", "c"): 5, ("b", "a"): 2, ("b", "c"): 3},
    ],
)
def test_cost_matrices(costs):
    y = ["a", "b", "b", "c"] if not isinstance(costs, pd.DataFrame) else ["a", "b", "b"]
    losses = cost_matrix_losses(y, costs)
    assert list(losses.columns) == ["a", "b", "c"]
    assert losses.iloc[:3].to_numpy().tolist() == [[0, 1, 5], [2, 0, 3], [2, 0, 3]]
    doubled = cost_matrix_losses(y, costs, sample_weight=[2.0] * len(y))
    np.testing.assert_array_equal(doubled, 2 * losses)


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        (np.zeros((3, 3)), "with 2 classes it must be square"),
        ({("a", "z"): 1.0}, "class z, which does not occur"),
        ([[0.0, np.nan], [1.0, 0.0]], "missing or infinite"),
        (pd.DataFrame([[0.0, 1.0]], index=["a"], columns=["a", "b"]), "not seen at fit: b"),
    ],
)
def test_bad_costs_get_one_sentence(costs, message):
    with pytest.raises(InputError, match=message):
        cost_matrix_losses(["a", "b"], costs)


def test_logit_keeps_scikit_learn_conventions(rng):
    """Not by scikit-learn's checks: most of their data are separable, where the likelihood has no maximum."""
    model = clone(LogitPropensity())
    with pytest.raises(NotFittedError):
        model.predict(np.zeros((1, 2)))
    X = pd.DataFrame(rng.normal(size=(80, 2)), columns=["age", "income"])
    y = np.where(X["age"] + rng.logistic(size=80) > 0, "drug", "none")
    assert model.fit(X, y) is model
    assert model.feature_names_in_.tolist() == ["age", "income"]
    assert set(model.predict(X)) == {"drug", "none"}
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    with pytest.raises(ValueError, match="3 features"):
        LogitPropensity().fit(X.to_numpy(), y).predict(np.zeros((1, 3)))


@pytest.mark.parametrize("n_arms", [2, 3])
def test_logit_equals_an_unpenalised_logistic_regression(n_arms, rng):
    X = rng.normal(size=(400, 3))
    y = (X[:, 0] + rng.logistic(size=400) > 0).astype(int) + (n_arms == 3) * rng.integers(2, size=400)
    ours = LogitPropensity().fit(X, y).predict_proba(X)
    theirs = LogisticRegression(C=1e12, tol=1e-10, max_iter=10_000).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_logit_as_the_propensity_model(rng):
    X = rng.normal(size=(300, 2))
    T = (X[:, 0] + rng.logistic(size=300) > 0).astype(int)
    fitted = RewardEstimator(model_propensity=LogitPropensity(), method="ipw", random_state=0)
    fitted.fit(rng.normal(size=300), T, X=X)
    out = fitted.folds_ == 0
    by_hand = sm.Logit(T[~out], sm.add_constant(X[~out])).fit(disp=False).predict(sm.add_constant(X[out]))
    np.testing.assert_allclose(fitted.propensity_.loc[out, 1], by_hand, rtol=1e-6)


def test_perfect_prediction_of_treatment_gets_a_sentence(rng):
    X = rng.normal(size=(100, 2))
    T = (X[:, 0] > 0).astype(int)
    with pytest.raises(InputError, match=r"predict some treatment \(almost\) perfectly"):
        LogitPropensity().fit(X, T)
    with pytest.raises(InputError, match="takes no sample_weight"):
        LogitPropensity().fit(X, rng.integers(3, size=100), sample_weight=np.ones(100))


def test_collinear_and_constant_columns_are_left_out(rng):
    x, z = rng.normal(size=(2, 50))
    X = np.column_stack([np.ones(50), x, z, 2 * x - 3 * z + 1, 1e6 * z, x**2])
    assert independent_columns(X).tolist() == [1, 2, 5]


def test_propensity_table_equals_statsmodels(rng):
    frame = pd.DataFrame({"age": rng.normal(size=300), "town": rng.choice(["Oslo", "Rome"], size=300)})
    frame.loc[:4, "age"] = np.nan
    T = np.where(frame["age"].fillna(0) + rng.logistic(size=300) > 0, "drug", "placebo")
    table = LogitPropensity.table(T, X=frame)
    assert table.index.names == ["treatment", "term"]
    terms = table.loc["placebo"].index.tolist()
    assert terms == ["intercept", "age", "town=Oslo", "missingindicator_age"]  # town=Rome repeats town=Oslo
    design = pd.DataFrame(
        {
            "one": 1.0,
            "age": frame["age"].fillna(frame["age"].median()),
            "oslo": (frame["town"] == "Oslo").astype(float),
            "gap": frame["age"].isna().astype(float),
        }
    )
    reference = sm.Logit((T == "placebo").astype(int), design).fit(disp=False)
    np.testing.assert_allclose(table["coefficient"], reference.params, rtol=1e-6)
    np.testing.assert_allclose(table["standard_error"], reference.bse, rtol=1e-4)
    np.testing.assert_allclose(table["p_value"], reference.pvalues, rtol=1e-3)
    np.testing.assert_allclose(table[["lower", "upper"]], reference.conf_int(), rtol=1e-3, atol=1e-6)


def test_propensity_table_with_three_arms_and_name_clash(rng):
    X = pd.DataFrame({"age": rng.normal(size=200)})
    W = pd.DataFrame({"age": rng.normal(size=200)})
    T = rng.choice(["a", "b", "c"], size=200)
    table = LogitPropensity.table(T, X=X, W=W)
    assert table.loc["c"].index.tolist() == ["intercept", "age", "W:age"]
    reference = sm.MNLogit(T, np.column_stack([np.ones(200), X, W])).fit(disp=False)
    np.testing.assert_allclose(table.loc["c", "coefficient"], reference.params[:, 1], rtol=1e-6)
    with pytest.raises(InputError, match="needs covariates"):
        LogitPropensity.table(T)


def test_weighted_logit_is_the_repeated_one_with_robust_errors(rng):
    X = rng.normal(size=(200, 1))
    T = (X[:, 0] + rng.logistic(size=200) > 0).astype(int)
    w = rng.integers(1, 4, size=200)
    weighted = LogitPropensity.table(T, X=X, sample_weight=w)
    twice = np.repeat(np.arange(200), w)
    repeated = LogitPropensity.table(T[twice], X=X[twice])
    np.testing.assert_allclose(weighted["coefficient"], repeated["coefficient"], rtol=1e-6)
    assert (weighted["standard_error"] > repeated["standard_error"]).all()  # 200 people, not 400


@pytest.mark.parametrize("n_arms", [2, 3])
def test_clustered_propensity_table_is_the_sandwich_of_clusters(rng, n_arms):
    """By hand: Hessian and scores of the logit, scores added up within clusters, statsmodels' correction."""
    n, n_clusters = 240, 40
    clusters = rng.permutation(np.arange(n) % n_clusters)
    x = rng.normal(size=n_clusters)[clusters]
    utilities = np.outer(x, np.arange(n_arms)) + rng.normal(size=(n_clusters, n_arms))[clusters]
    T = (utilities + rng.gumbel(size=(n, n_arms))).argmax(axis=1)
    table = LogitPropensity.table(T, X=x[:, None], groups=[f"village {c}" for c in clusters])
    plain = LogitPropensity.table(T, X=x[:, None])
    np.testing.assert_allclose(table["coefficient"], plain["coefficient"], rtol=1e-6)
    design = np.column_stack([np.ones(n), x])
    odds = np.exp(np.column_stack([np.zeros(n), design @ table["coefficient"].to_numpy().reshape(n_arms - 1, 2).T]))
    p = (odds / odds.sum(axis=1, keepdims=True))[:, 1:]
    got = (T[:, None] == np.arange(1, n_arms)) - p
    scores = np.concatenate([got[:, [k]] * design for k in range(n_arms - 1)], axis=1)
    hessian = np.block(
        [[design.T @ (design * (p[:, j] * ((j == k) - p[:, k]))[:, None]) for k in range(n_arms - 1)]
         for j in range(n_arms - 1)]
    )  # fmt: skip
    sums = np.array([scores[clusters == c].sum(axis=0) for c in range(n_clusters)])
    bread = np.linalg.inv(hessian)
    k = hessian.shape[0]
    correction = n_clusters / (n_clusters - 1) * (n - 1) / (n - k)
    errors = np.sqrt(np.diag(bread @ (sums.T @ sums) @ bread) * correction)
    np.testing.assert_allclose(table["standard_error"], errors, rtol=1e-4)
    with pytest.raises(InputError, match="one cluster only"):
        LogitPropensity.table(T, X=x[:, None], groups=["a"] * n)
