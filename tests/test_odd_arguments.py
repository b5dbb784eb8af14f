"""Arguments of types that nobody expects: one sentence that names the argument, for rankings, curves, sensitivity."""

import numpy as np
import pandas as pd
import pytest

from policytree import (
    DRPolicyTree,
    InputError,
    QiniCurveDisplay,
    held_out_rewards,
    marginal_sensitivity,
    omitted_variable_bounds,
    policy_agreement,
    policy_stability,
    qini_curve,
    rank_average_treatment_effect,
)

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
        (lambda: QiniCurveDisplay.from_curves([1, 2]), "curves must be"),
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
        (lambda: policy_agreement([T, T]), "policies must be a mapping"),
    ],
)
def test_one_sentence(call, words):
    with pytest.raises(InputError, match=words):
        call()
