"""Constraints as values: what they refuse, by themselves, in a list and beside data; texts, JSON, registry."""

from __future__ import annotations

import json
import pickle
from dataclasses import FrozenInstanceError, fields
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import policytree.constraints as room
from policytree import DRPolicyTree, OptimalTreeClassifier, PolicyTree
from policytree.constraints import Budget, EqualShares, EqualValues, ExpectedCost, Limit, Share, WorstGroup
from policytree.constraints.checks import KINDS, asked
from policytree.constraints.constraint import Constraint
from policytree.exceptions import InputError

X = np.arange(8.0)[:, None]
REWARDS = np.column_stack([np.zeros(8), [-2.0, -1.0, 1.0, 3.0, -1.0, 2.0, 2.0, 4.0]])
HARM = np.column_stack([np.zeros(8), [0.1, 0.2, 0.0, 0.3, 0.1, 0.4, 0.2, 0.1]])
SEX = ["f", "m", "f", "m", "m", "f", "f", "m"]
DATA = {"budget_costs": [0.0, 10.0], "outcomes": {"harm": HARM}, "subgroups": SEX}
EACH = [
    Budget(4.0), Share(1, most=0.5), Share(0, least=0.25), Limit("harm", 0.1), EqualShares("group", within=0.25),
    EqualValues("group", within=0.5), ExpectedCost(3.0), WorstGroup("group"),
]  # fmt: skip


def test_the_registry_has_every_public_kind():
    public = {getattr(room, name) for name in room.__all__} - {Constraint}
    assert public == set(KINDS) == {type(each) for each in EACH}
    assert len({kind.kind for kind in KINDS}) == len(KINDS)


@pytest.mark.parametrize("each", EACH, ids=lambda each: each.kind)
def test_values_are_frozen_equal_and_survive_copies(each):
    same = type(each)(**{part.name: getattr(each, part.name) for part in fields(each)})
    assert same == each and hash(same) == hash(each) and same is not each
    assert pickle.loads(pickle.dumps(each)) == each
    with pytest.raises(FrozenInstanceError):
        setattr(each, fields(each)[0].name, 1)
    saved = json.loads(json.dumps(each.to_dict()))
    assert saved.pop("kind") == each.kind
    assert type(each)(**saved) == each
    assert clone(DRPolicyTree(constraints=[each])).constraints == [each]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Budget("ten"), "The budget, the largest spend a person, must be a finite number; got 'ten'"),
        (lambda: Budget(np.inf), "must be a finite number; got inf"),
        (lambda: Budget(True), "must be a finite number; got True"),
        (lambda: Share("drug", most=1.5), "The largest share of drug must be a share from 0 to 1; got 1.5"),
        (lambda: Share("drug", least=np.nan), "The smallest share of drug must be a share from 0 to 1; got nan"),
        (lambda: Share("drug"), r"Share of drug has no limit; give most or least, as in Share\('drug', most=0.3\)"),
        (
            lambda: Share("drug", least=0.6, most=0.5),
            "The smallest share of drug is 0.6, more than its largest, 0.5; mend one",
        ),
        (lambda: Limit("harm", "low"), "The limit of 'harm' must be a finite number; got 'low'"),
        (lambda: EqualShares("sex", within=-1), "EqualShares of 'sex' must be a finite number >= 0; got -1"),
        (
            lambda: EqualValues("sex", within=None),
            "EqualValues of 'sex' must be a finite number >= 0; got None",
        ),
        (
            lambda: ExpectedCost(-1),
            "the most that tests may cost a person, must be a finite number >= 0; got -1",
        ),
        (lambda: ExpectedCost("6"), "must be a finite number >= 0; got '6'"),
    ],
)
def test_a_value_that_cannot_be_meant_is_refused_at_construction(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ("harm", "constraints must be a list"),
        ({"budget": 3.0}, "constraints must be a list"),
        ([3.0], "constraints must be of policytree.constraints"),
        ([Budget], "constraints must be of policytree.constraints"),
        ([Budget(1.0), Budget(2.0)], "constraints holds Budget twice"),
        ([Share(1, most=0.2), Share(1, most=0.3)], "constraints holds Share of 1 twice; make one of them"),
        ([EACH[0], EACH[0]], "twice"),
        ([WorstGroup("group"), WorstGroup("site")], "constraints holds WorstGroup twice"),
        ([ExpectedCost(1.0)], "pass feature_costs as well"),
    ],
)
def test_a_list_that_cannot_be_meant_is_refused(constraints, message):
    with pytest.raises(InputError, match=message):
        PolicyTree(constraints=constraints).fit(X, REWARDS, **DATA)


def test_classifiers_know_no_treatments():
    with pytest.raises(InputError, match="Share is about treatments, which a OptimalTreeClassifier does not give"):
        OptimalTreeClassifier(1, 0.0, constraints=[Share(1, most=0.5)]).fit(X, [0, 1] * 4)


@cache
def in_one_order() -> PolicyTree:
    """The tree within all constraints but that of tests."""
    return PolicyTree(max_depth=1, constraints=asked(PolicyTree(constraints=EACH[:6] + EACH[7:]))).fit(
        X, REWARDS, **DATA
    )


@settings(max_examples=12, deadline=None)
@given(st.permutations([each for each in EACH if not isinstance(each, ExpectedCost)]))
def test_the_order_of_the_list_does_not_matter(constraints):
    first, other = in_one_order(), PolicyTree(max_depth=1, constraints=constraints).fit(X, REWARDS, **DATA)
    assert first.to_dict() == other.to_dict()
    assert repr(first.multipliers_) == repr(other.multipliers_)


numbers = st.floats(0.0, 1.0).map(lambda x: round(x, 2))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.builds(Budget, numbers.map(lambda x: 10 * x)),
            st.builds(lambda share: Share(1, most=share), numbers),
            st.builds(Limit, st.just("harm"), numbers.map(lambda x: x / 5)),
            st.builds(EqualShares, st.just("group"), numbers),
            st.builds(EqualValues, st.just("group"), numbers.map(lambda x: 4 * x)),
        ),
        unique_by=type,
    )
)
def test_the_best_stump_within_any_list_is_that_of_brute_force(constraints):
    """Every rule "treat those on this side of a cut" is looked at, and kept if it is within all limits."""
    sides = [X[:, 0] > cut for cut in (-1.0, *np.arange(0.5, 7.5), 9.0)]
    women = np.array(SEX) == "f"
    best = -np.inf
    for treated in [*sides, *(~side for side in sides)]:
        gained, harm = treated * REWARDS[:, 1], treated * HARM[:, 1]
        within = {
            Budget: lambda c, t=treated: 10.0 * t.mean() <= c.most + 1e-9,
            Share: lambda c, t=treated: t.mean() <= c.most + 1e-9,
            Limit: lambda c, h=harm: h.mean() <= c.value + 1e-9,
            EqualShares: lambda c, t=treated: abs(t[women].mean() - t[~women].mean()) <= c.within + 1e-9,
            EqualValues: lambda c, g=gained: abs(g[women].mean() - g[~women].mean()) <= c.within + 1e-9,
        }
        if all(within[type(c)](c) for c in constraints):
            best = max(best, gained.mean())
    data = DATA if any(isinstance(c, Budget) for c in constraints) else {**DATA, "budget_costs": None}
    tree = PolicyTree(max_depth=1, constraints=constraints).fit(X, REWARDS, **data)
    assert tree.objective_value_ == pytest.approx(best, abs=1e-12)
    assert tree.optimality_gap_ == 0


def test_the_direction_of_a_limit_is_that_of_its_outcome_unless_it_says_so():
    harm = {"harm": (HARM, "maximize")}
    by_outcome = PolicyTree(max_depth=1, constraints=[Limit("harm", 0.15)]).fit(X, -REWARDS, outcomes=harm)
    assert by_outcome.outcome_means_["harm"] >= 0.15
    most = PolicyTree(max_depth=1, constraints=[Limit("harm", 0.15, at_least=False)]).fit(X, REWARDS, outcomes=harm)
    assert most.outcome_means_["harm"] <= 0.15
    assert (Limit("harm", 0.1).settled(True).option, Limit("harm", 0.1).settled(False).option) == (
        "--at-least", "--limit",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("each", "text"),
    [
        (Limit("harm", 0.1, at_least=True), "--at-least harm=0.1"),
        (EqualShares("race", within=0.05), "--parity race=0.05"),
        (WorstGroup("race"), "--worst-group race"),
    ],
)
def test_a_constraint_says_its_option(each, text):
    assert f"{each.option} {each.typed()}" == text
