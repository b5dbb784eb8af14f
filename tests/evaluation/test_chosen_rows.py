"""Values on the rows that chose the rule warn; values on any other rows do not."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest

from policytree import (
    DRPolicyTree,
    OptimalTreeClassifier,
    PolicyTree,
    load_dataset,
    policy_value,
)
from policytree.estimators import chosen_rows
from policytree.weighting import weighted_labels

FLATTERED = re.escape("These rows chose the rule, so its value on them is flattered; pass rewards of rows that had")


@pytest.fixture
def people(rng):
    X = pd.DataFrame({"age": rng.integers(20, 60, 400), "sick": rng.integers(0, 2, 400)})
    gain = np.where(X["age"] > 40, 1.0, -1.0) + rng.normal(size=400)
    return X, pd.DataFrame({"drug": gain, "none": 0.3 * rng.normal(size=400)})


def test_policy_trees_on_their_own_rows(people):
    X, rewards = people
    tree = PolicyTree(max_depth=2).fit(X, rewards)
    with pytest.warns(UserWarning, match=FLATTERED) as heard:
        policy_value(tree.predict(X), rewards)
    assert heard[0].filename == __file__
    with pytest.warns(UserWarning, match=FLATTERED):
        policy_value(tree.predict(X), rewards[["none", "drug"]], baseline="none")
    three = rewards.assign(half=rewards["drug"] / 2 + 0.1)
    third = PolicyTree(max_depth=1).fit(X, three)
    with pytest.warns(UserWarning, match=FLATTERED):
        policy_value(third.predict(X), three)
    worst = PolicyTree(max_depth=2, direction="minimize").fit(X, rewards)
    with pytest.warns(UserWarning, match=FLATTERED):
        policy_value(worst.predict(X), rewards)


def test_labels_with_weights_from_the_same_rewards(people):
    X, rewards = people
    rewards[np.arange(400) % 7 == 0] = 1.0  # some people to whom all is one: they have no label
    made = weighted_labels(rewards)
    tree = OptimalTreeClassifier(max_depth=2).fit(X.iloc[made.row], made.label, sample_weight=made.weight)
    with pytest.warns(UserWarning, match=FLATTERED):
        policy_value(tree.predict(X), rewards)


def test_the_whole_chain_on_its_own_rows():
    men = load_dataset("lalonde").study()
    model = DRPolicyTree(max_depth=2, random_state=0).fit(men)
    with pytest.warns(UserWarning, match=FLATTERED):
        policy_value(model.predict(men.X), model.rewards_)


def test_other_rows_other_rewards_and_other_rules_say_nothing(people):
    chosen_rows._chosen.clear()  # of the same people, by the tests above
    X, rewards = people
    tree = PolicyTree(max_depth=2).fit(X[:200], rewards[:200])
    chosen = tree.predict(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        policy_value(chosen[200:], rewards[200:])
        policy_value(chosen, rewards)  # half of them are new: not known to be flattered by a digest
        policy_value(chosen[:200], rewards[:200] + np.random.default_rng(0).normal(size=(200, 2)))
        policy_value("drug", rewards[:200])
        policy_value(np.where(X["age"][:200] > 30, "drug", "none"), rewards[:200])
        policy_value(chosen[200:], rewards[200:], baseline="none")
        PolicyTree(max_depth=0).fit(X, rewards)
        policy_value(["drug"] * 400, rewards)  # a leaf for all is chosen among two
