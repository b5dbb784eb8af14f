"""Rows by their labels: the same labels in another order are aligned and said, other labels are refused."""

from __future__ import annotations

import importlib
import inspect
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import policytree
from policytree import (
    DRPolicyTree,
    OptimalTreeClassifier,
    PolicyTree,
    RewardEstimator,
    StudyReport,
    cross_val_policy_value,
    held_out_rewards,
    heterogeneity_test,
    honest_leaf_summary,
    leaf_summary,
    policy_value,
)
from policytree.common.row_labels import NAMES, aligned_rows
from policytree.constraints import Budget, Limit
from policytree.diagnostics import overlap_table
from policytree.evaluation import best_linear_projection, nuisances_without, offer_rule, policy_stability, surest_rule
from policytree.exceptions import InputError, RowOrderWarning
from policytree.regimes import Stage, TreatmentRegime, cross_val_regime_value
from policytree.study_check import check_study
from policytree.weighting import MatchingRewards
from policytree.weighting.study_data import StudyData, by_columns
from tests.support.api_pages import listed

N = 120


@pytest.fixture
def study() -> dict:
    """A study whose rows have labels, and columns of every role."""
    rng = np.random.default_rng(1)
    index = pd.Index([f"person {k}" for k in rng.permutation(N)])
    X = pd.DataFrame(rng.normal(size=(N, 2)).round(1), columns=["a", "b"], index=index)
    T = pd.Series(rng.integers(0, 2, N), index=index, name="arm")
    Y = (T * X["a"] + rng.normal(size=N) * 0.3).rename("y")
    chance = pd.Series(rng.uniform(0.3, 0.7, N), index=index)
    return {
        "Y": Y,
        "T": T,
        "X": X,
        "W": pd.DataFrame({"c": rng.normal(size=N)}, index=index),
        "propensity": pd.DataFrame({0: 1 - chance, 1: chance}),
        "sample_weight": pd.Series(rng.uniform(0.5, 2, N), index=index),
        "groups": pd.Series(rng.integers(0, 30, N), index=index),
        "strata": pd.Series(rng.integers(0, 2, N), index=index),
    }


def rewards_of(data: dict) -> pd.DataFrame:
    return by_columns(RewardEstimator(cv=2, random_state=0).fit, **data).rewards_


@pytest.mark.parametrize("name", ["Y", "T", "W", "propensity", "sample_weight", "groups", "strata"])
def test_rows_in_another_order_are_aligned_and_said(study, name):
    shuffled = {**study, name: study[name].sample(frac=1, random_state=2)}
    with pytest.warns(RowOrderWarning, match=rf"^{name} has the row labels .* of X in another order"):
        rewards = rewards_of(shuffled)
    pd.testing.assert_frame_equal(rewards, rewards_of(study))


def test_columns_of_mappings_are_aligned(study):
    chance = study["propensity"]
    study["propensity"] = {0: chance[0], 1: chance[1].sample(frac=1, random_state=2)}
    with pytest.warns(RowOrderWarning, match=r"propensity\[1\] has"):
        rewards = rewards_of(study)
    pd.testing.assert_frame_equal(rewards, rewards_of({**study, "propensity": chance}))


@pytest.mark.parametrize("name", ["Y", "T", "W", "propensity", "sample_weight", "groups", "strata"])
def test_other_labels_are_refused(study, name):
    study[name] = study[name].reset_index(drop=True)
    with pytest.raises(InputError, match=rf"^{name} and X have different row labels .*reset_index\(drop=True\)"):
        rewards_of(study)
    again = {key: value.reset_index(drop=True) for key, value in study.items()}
    rewards_of(again)


def test_labels_that_stand_twice_pass_only_where_indexes_are_equal(study):
    twice = pd.Index(np.arange(N) // 2)
    study = {key: value.set_axis(twice) for key, value in study.items()}
    rewards_of(study)
    study["Y"] = study["Y"].sort_values()
    with pytest.raises(InputError, match=r"Y and X .* of which \d+ stands more than once"):
        rewards_of(study)


def test_columns_without_labels_are_paired_by_position(study):
    expected = rewards_of(study).to_numpy()
    arrays = {key: value.to_numpy() for key, value in study.items() if key not in ("X", "W", "propensity")}
    mixed = rewards_of({**study, **arrays})
    assert mixed.index.equals(study["X"].index)  # rewards fit the covariates that they are given with next
    np.testing.assert_array_equal(mixed, expected)
    frames = {"X": pl.from_pandas(study["X"]), "W": pl.from_pandas(study["W"]).lazy()}
    chances = study["propensity"].to_numpy()
    np.testing.assert_array_equal(rewards_of({**arrays, **frames, "propensity": chances}), expected)


def test_subsets_by_label_go_on_working(study):
    rows = study["X"].index[::2]
    part = {key: value.loc[rows] for key, value in study.items()}
    model = by_columns(DRPolicyTree(max_depth=1, cv=2, random_state=0).fit, **part)
    PolicyTree(max_depth=1).fit(part["X"], model.rewards_)
    with pytest.raises(InputError, match=r"T \(column .*\) has 60 rows, but Y has 120"):
        RewardEstimator(cv=2).fit(study["Y"], part["T"], X=part["X"])


def _shuffled(column):
    return column.sample(frac=1, random_state=3)


CALLS = {
    "DRPolicyTree": lambda d, y: DRPolicyTree(max_depth=1, cv=2, random_state=0).fit(y, d["T"], X=d["X"]).rewards_,
    "PolicyTree": lambda d, y: PolicyTree(max_depth=1).fit(d["X"], pd.DataFrame({0: 0 * y, 1: y})).objective_value_,
    "score": lambda d, y: (
        PolicyTree(max_depth=1)
        .fit(d["X"], pd.DataFrame({0: 0 * d["Y"], 1: d["Y"]}))
        .score(d["X"], pd.DataFrame({0: 0 * y, 1: y}))
    ),
    "classifier": lambda d, y: OptimalTreeClassifier(max_depth=1).fit(d["X"], y > 0).objective_value_,
    "check_study": lambda d, y: [f.column for f in check_study(y, d["T"], X=d["X"].assign(copy=d["Y"])).findings].index(
        "copy"
    ),
    "heterogeneity_test": lambda d, y: (
        heterogeneity_test(
            y, d["T"], X=d["X"], estimator=RewardEstimator(cv=2, random_state=0), n_blocks=2, random_state=0
        ).p_value
    ),
    "cross_val": lambda d, y: cross_val_policy_value(
        DRPolicyTree(max_depth=1, cv=2, random_state=0),
        y,
        d["T"],
        X=d["X"],
        cv=2,
        n_repeats=1,
        random_state=0,
    ).to_frame()["value"],
    "policy_value": lambda d, y: policy_value(d["T"], pd.DataFrame({0: 0 * y, 1: y})).value,
    "effect": lambda d, y: (
        policy_value(1, pd.DataFrame({0: 0 * y, 1: y}), baseline=0, sample_weight=d["sample_weight"]).value
    ),
    "projection": lambda d, y: best_linear_projection(pd.DataFrame({0: 0 * y, 1: y}), d["X"], treatment=1, baseline=0),
    "leaf_summary": lambda d, y: leaf_summary(
        PolicyTree(max_depth=1).fit(d["X"], pd.DataFrame({0: 0 * d["Y"], 1: d["Y"]})),
        d["X"],
        pd.DataFrame({0: 0 * y, 1: y}),
    ).select_dtypes("number"),
    "overlap_table": lambda d, y: overlap_table(d["propensity"], _shuffled(d["T"]) if y is not d["Y"] else d["T"])[
        "mean_weight"
    ],
}


@pytest.mark.parametrize("name", CALLS)
def test_everything_that_takes_columns_pairs_them_by_label(study, name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "This search", category=UserWarning)
        expected = CALLS[name](study, study["Y"])
    with pytest.warns(RowOrderWarning):
        found = CALLS[name](study, _shuffled(study["Y"]))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_stages_pair_people_by_label(study):
    rng = np.random.default_rng(0)
    later = pd.Series(rng.integers(0, 2, N), index=study["X"].index)
    regime = TreatmentRegime(DRPolicyTree(max_depth=1, cv=2, random_state=0))

    def stages(T, Y) -> list[Stage]:
        first = Stage(study["T"], X=study["X"], propensity=0.5)
        return [first, Stage(T, X=study["X"], Y=Y, propensity=0.5)]

    with pytest.warns(RowOrderWarning, match="T of stage 2 and Y of stage 2 have .* of X of stage 1"):
        found = regime.fit(stages(_shuffled(later), _shuffled(study["Y"]))).export_text()
    assert found == regime.fit(stages(later, study["Y"])).export_text()


def test_nothing_public_pairs_rows_by_itself():
    """Every public function and method of several columns is decorated, but for files, dask and leaf statistics."""
    exempt = {
        "About", "encode", "stream_rewards", "InstrumentalVariable",
        "SurvivalModel",
    }  # fmt: skip
    seen, bare = 0, []
    for home, name in sorted(listed()):
        if name in exempt or name.startswith("Dask") or home.startswith("policytree.objectives"):
            continue
        thing = getattr(importlib.import_module(home), name)
        methods = {} if not inspect.isclass(thing) else {
            each: inspect.getattr_static(thing, each) for each in dir(thing) if not each.startswith("_")
        }  # fmt: skip
        for where, function in (methods or {"": thing}).items():
            function = getattr(function, "__func__", function)
            if not inspect.isfunction(function) or not function.__module__.startswith("policytree"):
                continue  # such as scikit-learn's score, which asks predict
            if where in ("difference", "status_quo_of_costs"):
                continue
            if len(NAMES & set(inspect.signature(function).parameters)) > 1 and where != "self":
                seen += 1
                if not _decorated(function):
                    bare.append(f"{name}.{where}")
    assert seen > 60
    assert bare == []


def _decorated(function) -> bool:
    while function is not None:
        source = inspect.getsource(function)
        if getattr(function, "aligns_rows", False) or "StudyData.read(" in source:
            return True
        if "self._read(" in source:
            return _decorated(RewardEstimator._read)
        function = getattr(function, "__wrapped__", None)
    return False


def test_families_are_not_paired_with_each_other():
    own, other = pd.DataFrame({"a": [1.0, 2.0]}), pd.DataFrame({"a": [3.0, 4.0]}, index=[5, 6])
    found = aligned_rows({"X": own, "target_X": other})
    assert found["X"] is own and found["target_X"] is other
    assert policytree.exceptions.RowOrderWarning is RowOrderWarning


WHOLE = {  # calls whose parts pass columns on: none may lose the labels on the way
    "honest": lambda d: by_columns(honest_leaf_summary, model(), **d, random_state=0),
    "held out": lambda d: by_columns(held_out_rewards, model(), **d, random_state=0),
    "cross_val": lambda d: by_columns(cross_val_policy_value, model(), **d, cv=2, n_repeats=1, random_state=0),
    "second opinion": lambda d: by_columns(
        cross_val_policy_value,
        model(),
        **but(d, "propensity"),
        cv=2,
        n_repeats=1,
        random_state=0,
        second_opinion={"treatment": "logit"},
    ),
    "outcomes": lambda d: by_columns(
        cross_val_policy_value,
        model(constraints=[Limit("harm", 10.0)]),
        outcomes={"harm": (d["Y"] ** 2, "minimize")},
        cv=2,
        n_repeats=1,
        random_state=0,
        **d,
    ),
    "costs": lambda d: by_columns(
        cross_val_policy_value,
        model(constraints=[Budget(0.7)]),
        sample_treatment_costs={1: d["sample_weight"]},
        budget_costs={1: d["sample_weight"]},
        cv=2,
        n_repeats=1,
        random_state=0,
        **d,
    ),
    "subgroups": lambda d: by_columns(
        cross_val_policy_value, model(), subgroups=d["strata"].to_frame("block"), cv=2, n_repeats=1, random_state=0, **d
    ),
    "stability": lambda d: by_columns(policy_stability, model(), **d, n_resamples=4, random_state=0),
    "surest": lambda d: by_columns(surest_rule, model(), **d, n_candidates=3, random_state=0),
    "heterogeneity": lambda d: by_columns(heterogeneity_test, **d, n_blocks=2, random_state=0),
    "target": lambda d: by_columns(
        cross_val_policy_value,
        model(),
        target_X=d["X"][:60] + 0.01,
        target_W=d["W"][:60],
        cv=2,
        n_repeats=1,
        random_state=0,
        **but(d, "propensity", "strata"),
    ),
    "report": lambda d: by_columns(
        StudyReport,
        by_columns(model().fit, **d),
        **but(d, "propensity"),
        results=[by_columns(cross_val_policy_value, model(), **d, cv=2, n_repeats=1)],
    ),
    "without": lambda d: by_columns(nuisances_without, RewardEstimator(cv=2, random_state=0), covariates=["a"], **d),
    "matching": lambda d: MatchingRewards().fit(**{name: d[name] for name in ("Y", "T", "X", "groups")}),
    "regime": lambda d: cross_val_regime_value(
        TreatmentRegime(model()),
        [
            Stage(d["T"], X=d["X"], propensity=0.5),
            Stage(1 - d["T"].sample(frac=1, random_state=0).set_axis(d["T"].index), X=d["X"], Y=d["Y"], propensity=0.5),
        ],
        cv=2,
        n_repeats=1,
        random_state=0,
    ),
    "offers": lambda d: offer_rule(
        DRPolicyTree(max_depth=1, cv=2, random_state=0),
        StudyData.of(d["Y"], (d["T"] * (d["W"]["c"] > -1)).astype(int), X=d["X"], instrument=d["T"]),
        value=False,
        random_state=0,
    ),
    "times": lambda d: by_columns(
        cross_val_policy_value,
        model(),
        event=(d["W"]["c"] < 1).astype(int),
        horizon=1.3,
        cv=2,
        n_repeats=1,
        random_state=0,
        **{**but(d, "propensity"), "Y": d["Y"].abs() + 1},
    ),
}


def model(**arguments) -> DRPolicyTree:
    return DRPolicyTree(max_depth=1, cv=2, random_state=0, **arguments)


def but(data: dict, *names: str) -> dict:
    return {name: value for name, value in data.items() if name not in names}


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.filterwarnings(
    "ignore::policytree.exceptions.OverlapWarning", "ignore::policytree.exceptions.BalanceWarning"
)
def test_labels_are_kept_on_the_way(study, name):
    WHOLE[name](study)
