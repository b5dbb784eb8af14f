"""Arguments of types that nobody expects: one sentence that names the argument, for rankings, curves, sensitivity."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

from policytree import DRPolicyTree, OptimalTreeClassifier, RewardEstimator, cross_val_policy_value, held_out_rewards
from policytree.evaluation import (
    marginal_sensitivity,
    omitted_variable_bounds,
    policy_stability,
    qini_curve,
    rank_average_treatment_effect,
)
from policytree.exceptions import InputError
from policytree.weighting.study_data import by_columns

N = 40
WAVES = np.sin(np.outer(np.arange(1, N + 1), [1.0, 2.0, 3.0]))
Y, T = WAVES[:, 0], np.resize(["a", "b"], N)
X = pd.DataFrame(WAVES[:, 1:], columns=["x", "z"])
REWARDS = pd.DataFrame(WAVES[:, :2], columns=["a", "b"])
GIVEN = {"propensity": pd.DataFrame(0.5, index=range(N), columns=["a", "b"]), "regression": REWARDS}
MODEL = DRPolicyTree(max_depth=1, cv=2)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: rank_average_treatment_effect(Y, REWARDS, treatment="a", random_state="x"), "random_state must be"),
        (lambda: rank_average_treatment_effect(Y, REWARDS, baseline=np.array(["a", "b"])), "treatment"),
        (lambda: qini_curve(REWARDS, REWARDS, {"b": 1.0}, random_state="x"), "random_state must be"),
        (lambda: qini_curve(REWARDS, REWARDS, {"b": 1.0}, baseline=np.array(["a", "b"])), "baseline is"),
        (lambda: marginal_sensitivity("a", Y, T, **GIVEN, random_state="x"), "random_state must be"),
        (lambda: marginal_sensitivity("a", Y, T, **GIVEN, baseline={"a": 1}), "baseline must be a label"),
        (lambda: omitted_variable_bounds("a", Y, T, **GIVEN, baseline="b", random_state=1.5), "random_state must be"),
        (lambda: omitted_variable_bounds("a", Y, T, **GIVEN, baseline="b", benchmarks=[1, 2]), "benchmarks must be"),
        (
            lambda: omitted_variable_bounds("a", Y, T, **GIVEN, baseline="b", benchmarks={"x": [1]}),
            "benchmarks must be",
        ),
        (lambda: policy_stability(MODEL, Y, T, X=X, propensity=0.5, random_state="x"), "random_state must be"),
        (lambda: held_out_rewards(MODEL, Y, T, X=X, propensity=0.5, random_state="x"), "random_state must be"),
    ],
)
def test_one_sentence(call, words):
    with pytest.raises(InputError, match=words):
        call()


LABELS = np.resize([0, 1], N)
SURVIVAL = np.array([(True, 1.0)] * N, dtype=[("event", bool), ("time", float)])
PAIRS = np.repeat(np.arange(8), 5)  # eight clusters, of which two have treatment "b"
CLUSTERED = {"X": X, "groups": PAIRS}
RARE = np.where(PAIRS % 4 == 0, "b", "a")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: OptimalTreeClassifier(2, 1e308).fit(X, LABELS),
            r"regularization=1e\+308 .* larger than numbers can be",
        ),
        (lambda: OptimalTreeClassifier(2, 0.1).fit(X, [(k, 1) for k in LABELS]), "y must be one column of labels"),
        (lambda: OptimalTreeClassifier(2, 0.1).fit(X, [[1], [2, 3]] * (N // 2)), "y must be one column of labels"),
        (lambda: OptimalTreeClassifier(2, 0.1).fit(X, LABELS + 0.5), "y holds fractions, such as 0.5 in row 0"),
        (lambda: OptimalTreeClassifier(2, 0.1).fit(X, SURVIVAL), "y is a structured array with the fields event, time"),
        (lambda: DRPolicyTree().fit(SURVIVAL[["time"]], T, X=X), "Y is a structured array with the fields time"),
        (
            lambda: RewardEstimator(model_propensity=Ridge()).fit(Y, T, X=X),
            "model_propensity must be a classifier with predict_proba; got Ridge",
        ),
        (lambda: by_columns(DRPolicyTree(cv=3).fit, Y=Y, T=RARE, **CLUSTERED), "set cv=2 of DRPolicyTree"),
        (
            lambda: by_columns(cross_val_policy_value, DRPolicyTree(cv=2), Y=Y, T=RARE, cv=3, **CLUSTERED),
            "Treatment b has 2 clusters, but cv=3 of the evaluation with cv=2 of DRPolicyTree needs 3; lower cv",
        ),
    ],
)
def test_one_sentence_names_what_was_given_and_whose_it_is(call, words):
    with pytest.raises(InputError, match=words):
        call()


@pytest.mark.parametrize(
    "objective", ["accuracy", "balanced_accuracy", "auc", "partial_auc", "f_score", "omega_f_score"]
)
@pytest.mark.parametrize("values", [2, 3])
@pytest.mark.parametrize("depth", [2, 3, 4])
def test_numbers_of_numpy_are_numbers(objective, values, depth):
    """As a grid of numpy's makes them: the same tree, whatever search that takes."""
    rng = np.random.default_rng(depth)
    features, labels = rng.integers(0, values, (40, 3)), rng.integers(0, 2, 40)
    given = {"regularization": 0.02, "max_depth": depth, "min_samples_leaf": 1}
    types = {"regularization": np.float64, "max_depth": np.int64, "min_samples_leaf": np.int32}
    plain = OptimalTreeClassifier(objective=objective, **given).fit(features, labels)
    numpys = {name: types[name](value) for name, value in given.items()}
    same = OptimalTreeClassifier(objective=objective, **numpys).fit(features, labels)
    assert same.export_text() == plain.export_text()
    assert same.objective_bound_ == plain.objective_bound_
