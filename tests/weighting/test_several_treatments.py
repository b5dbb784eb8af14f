"""Several treatments at once: labels of their combinations, arms, chances, checks, and each treatment's effect."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression, LogisticRegression

from policytree import DRPolicyTree, RewardEstimator, Study, cross_val_policy_value, honest_leaf_summary, leaf_summary
from policytree.common.validation import factors_of
from policytree.data.combined_treatments import combine_frame, combine_treatments
from policytree.exceptions import InputError
from policytree.study_check import check_study
from policytree.weighting.study_data import StudyData

FAST = {"model_regression": LinearRegression(), "model_propensity": LogisticRegression(), "cv": 2, "random_state": 0}
TWO_BY_TWO = ["neither", "physio", "drug", "drug + physio"]


@pytest.fixture(scope="module")
def factorial():
    """A trial of 2 x 2: the drug helps the young (and harms the old), physiotherapy the old (and harms the young)."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.integers(20, 80, 1_600), "weight": rng.normal(75, 12, 1_600).round()})
    T = pd.DataFrame({"drug": rng.integers(0, 2, 1_600), "physio": rng.choice(["yes", "no"], 1_600)})
    old = X["age"] >= 50
    y = T["drug"] * np.where(old, -0.5, 1.0) + (T["physio"] == "yes") * np.where(old, 1.0, -0.5)
    return X, T, y + rng.normal(size=1_600)


@pytest.mark.parametrize(
    ("columns", "labels", "control"),
    [
        ({"drug": [0, 0, 1, 1], "physio": ["no", "yes"] * 2}, TWO_BY_TWO, "neither"),
        ({"drug": [0.0, 0, 1, 1], "physio": [False, True] * 2}, TWO_BY_TWO, "neither"),
        ({"a": [0, 1], "b": [0, 1], "c": [0, 1]}, ["none", "a + b + c"], "none"),
        ({"dose": ["none", "high dose"], "physio": [1, 0]}, ["physio", "high dose"], "neither"),
        ({"dose": [0, 1, 2], "physio": [1, 0, 1]}, ["physio", "dose 1", "dose 2 + physio"], "neither"),
        ({"a": ["low", "high"], "b": ["high", "low"]}, ["a low + b high", "a high + b low"], "a high + b high"),
        (
            {"pill": ["placebo", "drug A"], "care": ["physio", "usual care"]},
            ["placebo + physio", "drug A + usual care"],
            "placebo + usual care",
        ),
        ({"a": ["no", "neither"], "b": [1, 0]}, ["a=no + b=1", "a=neither + b=0"], "a=no + b=0"),
        (
            {"a": [1, 0], "b": [1, 0], "a + b": [0, 1]},
            ["a=1 + b=1 + a + b=0", "a=0 + b=0 + a + b=1"],
            "a=0 + b=0 + a + b=0",
        ),
    ],
)  # fmt: skip
def test_labels_can_be_read_and_do_not_clash(columns, labels, control):
    arms = combine_treatments(pd.DataFrame(columns))
    assert arms.labels.tolist() == labels
    assert arms.control == control
    assert arms.cells.index.is_unique


LEVELS = st.sampled_from(["yes", "no", "none", "drug", "physio", "neither", "drug + physio", "low", "0", "1", "2"])


@given(st.lists(st.tuples(LEVELS, LEVELS, LEVELS), min_size=2, max_size=12))
def test_different_combinations_have_different_labels_in_any_order(rows):
    frame = pd.DataFrame(rows, columns=["drug", "physio", "diet"])
    if frame.nunique().min() < 2:
        return
    arms = combine_treatments(frame)
    pairs = set(zip(map(tuple, rows), arms.labels, strict=True))
    assert len(pairs) == len({row for row, _ in pairs}) == len({label for _, label in pairs})
    mixed = frame.sample(frac=1.0, random_state=0)
    assert combine_treatments(mixed).labels.sort_index().tolist() == arms.labels.tolist()
    some = frame.iloc[: max(1, len(frame) // 2)]  # new rows, with some of the levels
    again = combine_frame(some, sorted(set(arms.labels))).labels
    known = set(arms.labels)
    assert set(again) <= known


def test_new_rows_that_lack_levels_keep_the_labels_of_the_fit():
    frame = pd.DataFrame({"dose": [0, 1, 2, 0, 1, 2], "physio": [0, 0, 0, 1, 1, 1]})
    known = sorted(set(combine_treatments(frame).labels))
    some = frame[frame["dose"] < 2]
    assert combine_treatments(some).labels.tolist() == ["neither", "dose", "physio", "dose + physio"]
    assert combine_frame(some, known).labels.tolist() == ["neither", "dose 1", "physio", "dose 1 + physio"]
    assert combine_frame(some[["physio", "dose"]], known).labels.tolist()[-1] == "dose 1 + physio"
    arm = StudyData.of(np.zeros(4), some, treatments=np.array(known)).arm
    assert [known[k] for k in arm] == ["neither", "dose 1", "physio", "dose 1 + physio"]


@pytest.mark.parametrize("library", [lambda frame: frame, pl.from_pandas])
def test_one_door(factorial, library):
    _, T, y = factorial
    seen = StudyData.of(y, library(T))
    assert seen.treatments.tolist() == ["drug", "drug + physio", "neither", "physio"]
    assert (seen.treatments[seen.arm] == combine_treatments(T).labels).all()
    assert factors_of(seen.received(), seen.treatments).labels.tolist() == combine_treatments(T).labels.tolist()


def test_rewards_are_those_of_the_combined_labels(factorial):
    X, T, y = factorial
    chances = combine_treatments(T).propensity({"drug": 0.5, "physio": 0.5})
    assert chances == dict.fromkeys(["neither", "physio", "drug", "drug + physio"], 0.25)
    table = X.assign(**{name: T[name].to_numpy() for name in T}, y=np.asarray(y))
    roles = {"treatment": list(T), "outcome": "y", "direction": "maximize"}
    assert Study(table, **roles, propensity={"drug": 0.5, "physio": 0.5}).propensity == chances
    by_level = {"drug": dict.fromkeys(table["drug"].unique(), 0.5), "physio": 0.5}
    assert Study(table, **roles, propensity=by_level).propensity == chances
    with pytest.raises(InputError, match="'water' is none of"):
        Study(table, **roles, propensity={"drug": 0.5, "water": 0.5})
    of_arms = Study(table, **roles, propensity=chances)
    assert of_arms.propensity == chances == of_arms.replace(control="neither").propensity == of_arms[:300].propensity
    one = table[(table["drug"] == 1) != (table["physio"] == "yes")]
    exclusive = Study(one, **roles, propensity={"drug": 0.5, "physio": 0.5})
    assert set(exclusive.treatments) == {"drug", "physio"} and exclusive.propensity == {"drug": 0.5, "physio": 0.5}
    both = RewardEstimator(**FAST).fit(y, T, X=X, propensity=chances)
    labels = RewardEstimator(**FAST).fit(y, combine_treatments(T).labels, X=X, propensity=chances)
    pd.testing.assert_frame_equal(both.rewards_, labels.rewards_)
    new = both.predict_rewards(y[:40], T[:40], X=X[:40], propensity=chances)
    assert list(new.columns) == ["drug", "drug + physio", "neither", "physio"]


def test_a_target_of_other_people(factorial):
    X, T, y = factorial
    fitted = RewardEstimator(**FAST).fit(StudyData.of(y, T, X=X, target_X=X[X["age"] > 60].reset_index(drop=True)))
    means = fitted.rewards_[~fitted.rewards_.isna().any(axis=1)]
    assert list(means.columns) == ["drug", "drug + physio", "neither", "physio"]
    stacked = StudyData.of(y, T, study=np.arange(len(y)) < 1_500)
    assert stacked.treatments.tolist() == list(means.columns) and stacked.factors is not None


def test_the_tree_and_the_effects_of_each_treatment(factorial):
    X, T, y = factorial
    model = DRPolicyTree(max_depth=1, **FAST).fit(y, T, X=X)
    assert 48 <= model.tree_.threshold[0] <= 51
    assert model.predict(pd.DataFrame({"age": [30, 70], "weight": [70.0, 70.0]})).tolist() == ["drug", "physio"]
    own = leaf_summary(model, X, model.rewards_, T=T)
    assert "effect_lower" not in own.columns.get_level_values(0)  # rows that chose the tree have no intervals
    leaf = model.apply(X)
    for k in own.index:  # the effect of a treatment by its definition, from the same rewards
        rewards = model.rewards_[leaf == k].mean()
        drug = ((rewards["drug"] - rewards["neither"]) + (rewards["drug + physio"] - rewards["physio"])) / 2
        assert own.loc[k, ("effect", "drug")] == pytest.approx(drug)
        contrast = model.rewards_[leaf == k] @ pd.Series(
            {"drug": 0.5, "drug + physio": 0.5, "neither": -0.5, "physio": -0.5}
        )
        error = contrast.std(ddof=1) / np.sqrt(len(contrast))
        assert own.loc[k, ("effect_standard_error", "drug")] == pytest.approx(error)
    held_out = honest_leaf_summary(model, y, T, X=X, random_state=0).leaves
    young, old = held_out.index
    for k, truth in ((young, {"drug": 1.0, "physio": -0.5}), (old, {"drug": -0.5, "physio": 1.0})):
        for factor, effect in truth.items():
            assert held_out.loc[k, ("effect_lower", factor)] < effect < held_out.loc[k, ("effect_upper", factor)]
            assert np.sign(held_out.loc[k, ("effect_lower", factor)]) == np.sign(effect)


def test_intervals_of_effects_on_shares_are_no_narrower(factorial):
    X, T, y = factorial
    model = DRPolicyTree(max_depth=1, **FAST)
    found = honest_leaf_summary(model, (y > 0).astype(float), T, X=X, random_state=0)
    x, rows = X.iloc[found.rows], T.iloc[found.rows]
    plain = leaf_summary(found.estimator, x, found.rewards, T=rows, held_out=True)
    assert (found.leaves["effect_lower"] <= plain["effect_lower"]).all(axis=None)
    assert (found.leaves["effect_upper"] >= plain["effect_upper"]).all(axis=None)
    assert (found.leaves["effect_upper"] - found.leaves["effect_lower"] < 0.6).all(axis=None)


def test_held_out_values_name_the_combinations(factorial):
    X, T, y = factorial
    table = cross_val_policy_value(DRPolicyTree(max_depth=1, **FAST), y, T, X=X, n_repeats=1, random_state=0)
    assert "always drug + physio" in str(table) and table.verdict.use_tree


def test_three_levels_by_two(rng):
    T = pd.DataFrame({"dose": rng.choice(["none", "low", "high"], 900), "physio": rng.integers(0, 2, 900)})
    X = pd.DataFrame({"age": rng.integers(20, 80, 900)})
    y = T["dose"].map({"none": 0.0, "low": 1.0, "high": 3.0}) + 2.0 * T["physio"] + rng.normal(size=900) / 10
    arms = combine_treatments(T)
    chances = arms.propensity({"dose": {"none": 0.5, "low": 0.25, "high": 0.25}, "physio": 0.4})
    assert chances["high + physio"] == pytest.approx(0.1) and sum(chances.values()) == pytest.approx(1.0)
    fitted = RewardEstimator(**FAST).fit(y, T, X=X)
    leaves = leaf_summary(np.ones(900), "high + physio", fitted.rewards_, T=T, held_out=True)
    effects = leaves.loc[1, "effect"]
    assert effects.index.tolist() == ["high - none", "low - none", "physio"]
    assert effects.tolist() == pytest.approx([3.0, 1.0, 2.0], abs=0.05)


def test_an_empty_and_a_thin_combination_are_found(factorial):
    X, T, y = factorial
    both = ((T["drug"] == 1) & (T["physio"] == "yes")).to_numpy()
    few = both & (np.cumsum(both) > 7)
    for gone, kind, words in (
        (both, "empty combination", "Treatment has nobody who got drug + physio. No tree can recommend it"),
        (few, "thin combination", "Treatment has only 7 rows of drug + physio. Outcome models decide"),
    ):
        found = [f for f in check_study(y[~gone], T[~gone], X=X[~gone]).findings if f.kind.endswith("combination")]
        assert [f.kind for f in found] == [kind]
        assert str(found[0]).startswith(words) and found[0].treatment == "drug + physio"
    assert not [f for f in check_study(y, T, X=X).findings if f.kind.endswith("combination")]
    arms = combine_treatments(T[~both])
    with pytest.raises(InputError, match=r"Nobody got drug \+ physio, so the treatments were not drawn independently"):
        arms.propensity({"drug": 0.5, "physio": 0.5})
    seen = StudyData.of(y[~both], T[~both])
    assert seen.treatments.tolist() == ["drug", "neither", "physio"]
    effects = arms.contrasts(seen.treatments)  # without the other treatment, where both levels occur
    assert effects == {"drug": [1.0, -1.0, 0.0], "physio": [0.0, -1.0, 1.0]}


@pytest.mark.parametrize("fit", [
    lambda X, T, y: DRPolicyTree(**FAST).fit(y, T, X=X),
    lambda X, T, y: RewardEstimator(**FAST).fit(y, T, X=X),
    lambda X, T, y: check_study(y, T, X=X),
    lambda X, T, y: combine_treatments(T),
])  # fmt: skip
def test_a_gap_in_one_treatment_names_its_column(factorial, fit):
    X, T, y = factorial
    T = T.astype(object)
    T.loc[[4, 9], "physio"] = None
    with pytest.raises(InputError, match=r"T \(column 'physio'\) has 2 missing value\(s\), the first in row 4"):
        fit(X, T, y)


def test_refusals(factorial):
    X, T, y = factorial
    with pytest.raises(InputError, match=r"T \(column 'physio'\) holds only yes; at least two levels"):
        combine_treatments(T.assign(physio="yes"))
    with pytest.raises(InputError, match=r"T \(column 'age'\) holds 60 different values, too many to combine"):
        StudyData.of(y, T[["drug"]].assign(age=X["age"]))
    with pytest.raises(InputError, match="two or more columns"):
        combine_treatments(T[["drug"]])
    with pytest.raises(InputError, match="more than one column 'drug'"):
        combine_treatments(T.set_axis(["drug", "drug"], axis=1))
    arms = combine_treatments(T)
    for chances, words in (
        ({"drug": 0.5}, "There is no chance of physio"),
        ({"drug": 0.5, "physio": 1.0}, "must lie between 0 and 1 and sum to 1"),
        ({"drug": 0.5, "diet": 0.5}, "'diet' is none of the treatments drug, physio"),
        ({"drug": 0.5, "physio": {"yes": 1.0}}, "are needed for no, yes; 'no' is amiss"),
    ):
        with pytest.raises(InputError, match=words):
            arms.propensity(chances)
    with pytest.raises(InputError, match="not seen at fit: drug 2; the known ones are drug, drug"):
        StudyData.of(y[:2], T[:2].assign(drug=[1, 2]), treatments=np.array(sorted(set(arms.labels))))
