"""A policy forest as an upper reference: a row of the table of held-out values, and nothing else."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from policytree import DRPolicyTree, PolicyTree, cross_val_policy_value
from policytree.evaluation.policy_value.black_box import PolicyForestRule
from policytree.exceptions import InputError


@pytest.fixture
def waves(rng):
    """The drug helps in every second of six bands of x, which no tree of one question tells apart."""
    n = 1_500
    X = pd.DataFrame({"x": rng.uniform(0, 6, n), "site": rng.choice(["north", "south"], n), "gap": rng.normal(size=n)})
    X.loc[::5, "gap"] = np.nan
    gain = np.where(np.floor(X["x"]) % 2 == 0, 2.0, -2.0)
    T = rng.choice(["drug", "none"], n)
    return X, T, (T == "drug") * gain + rng.normal(size=n), gain


def judged(waves, direction="maximize", **more):
    X, T, Y, _ = waves
    tree = DRPolicyTree(LinearRegression(), max_depth=1, cv=2, direction=direction, random_state=0)
    sign = 1.0 if direction == "maximize" else -1.0
    return cross_val_policy_value(
        tree, sign * Y, T, X=X[["x", "site"]], propensity=0.5, cv=2, n_repeats=1, random_state=0, **more
    )


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_it_is_a_row_of_the_table_and_changes_nothing_else(waves, direction):
    table, without = judged(waves, direction, black_box=True), judged(waves, direction)
    sign = 1.0 if direction == "maximize" else -1.0
    gap = sign * (table.estimates["policy forest"].value - table.estimates["policy tree"].value)
    assert gap > 3 * table.differences["policy forest"].standard_error  # it follows the bands
    assert sign * table.estimates["policy forest"].value <= 1.0 + 0.2  # what the best rule brings
    assert {**table.estimates}.keys() - {**without.estimates}.keys() == {"policy forest"}
    shown = ["value", "standard_error", "lower", "upper"]
    pd.testing.assert_frame_equal(table.to_frame().drop("policy forest")[shown], without.to_frame()[shown])
    assert str(table.verdict) == str(without.verdict) and "forest" not in str(table.verdict)


def test_the_forest_reads_any_table_and_follows_rewards(waves, rng):
    X, _, _, gain = waves
    rewards = pd.DataFrame({"drug": gain, "none": 0.0})
    rule = PolicyForestRule().fit(X, rewards)
    assert (rule.predict(X) == np.where(gain > 0, "drug", "none")).mean() > 0.9
    again = PolicyForestRule(direction="minimize").fit(X, -rewards)
    assert (again.predict(X) == rule.predict(X)).all()
    helped = rng.random(len(X)) < 0.5  # which no covariate tells
    rewards["drug"] = np.where(helped, 1.0, -1.0)
    for weight, share in ((np.where(helped, 10.0, 1.0), 1.0), (np.where(helped, 1.0, 10.0), 0.0)):
        heavy = PolicyForestRule().fit(X, rewards, sample_weight=weight)
        assert (heavy.predict(X) == "drug").mean() == pytest.approx(share, abs=0.05)


class Noting(PolicyTree):
    """A rival that notes the rewards it was given."""

    given: ClassVar[list] = []

    def fit(self, X, rewards):
        self.given.append(rewards)
        return super().fit(X, rewards)


def test_rivals_learn_from_the_rewards_that_the_tree_was_found_for(waves):
    X, T, Y, _ = waves
    model = DRPolicyTree(LinearRegression(), method="ipw", max_depth=1, cv=2, direction="maximize", random_state=0)
    Noting.given.clear()
    how = {"rivals": {"noting": Noting(1)}, "validation": "split", "random_state": 0}
    cross_val_policy_value(model, Y, T, X=X[["x", "site"]], propensity=0.5, **how)
    (rewards,) = Noting.given
    assert ((rewards == 0.0).sum(axis=1) == 1).all(), "weighting gives a treatment that a row did not get a reward of 0"


def test_its_name_is_taken(waves):
    with pytest.raises(InputError, match="'policy forest', which is the name of another rule"):
        judged(waves, rivals={"policy forest": PolicyTree(max_depth=0)})
