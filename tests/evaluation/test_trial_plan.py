"""Plans of trials: sizes have the power that they say, in simulated trials of the rule."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_ind
from sklearn.linear_model import LinearRegression

from policytree import DRPolicyTree, Study, cross_val_policy_value
from policytree.evaluation import plan_trial
from policytree.exceptions import InputError
from policytree.study import MayBeMissing, TimeToEvent


def people(n: int, rng: np.random.Generator, gain: float = 0.6) -> tuple[np.ndarray, np.ndarray]:
    """A covariate, and outcomes (n, 2) without and with the drug: it helps three in ten, and harms the others."""
    x = rng.uniform(size=n)
    effect = np.where(x > 0.7, gain, -gain)
    return x, np.column_stack([np.zeros(n), effect]) + rng.normal(scale=[1.0, 1.5], size=(n, 2))


def study(n: int = 2_000, seed: int = 0, **more) -> Study:
    rng = np.random.default_rng(seed)
    x, outcomes = people(n, rng)
    arm = rng.integers(2, size=n)
    table = pd.DataFrame({"x": x, "arm": np.where(arm, "drug", "none"), "y": outcomes[np.arange(n), arm]})
    given = {"outcome": "y", "direction": "maximize", "control": "none", "propensity": {"drug": 0.5, "none": 0.5}}
    return Study(table, treatment="arm", **given | more)


def judged(data: Study, **options):
    model = DRPolicyTree(LinearRegression(), max_depth=1, cv=2, random_state=0)
    return cross_val_policy_value(model, data, cv=2, **{"n_repeats": 1, "random_state": 0} | options)


@pytest.fixture(scope="module")
def well_known():
    """A plan from a study so large that its gain is known to two hundredths of itself."""
    return plan_trial(judged(study(200_000)), power=0.8)


@pytest.mark.slow
@pytest.mark.parametrize("design", ["everybody", "those treated otherwise"])
def test_a_trial_of_that_size_has_that_power(design, well_known):
    """In 1,500 simulated trials of the rule."""
    plan = well_known
    n, rng, shown = int(plan.designs.loc[design, "per_arm"]), np.random.default_rng(1), 0
    for _ in range(1_500):
        x, outcomes = people(20 * n if design != "everybody" else 2 * n, rng)
        rule = (x > 0.7).astype(int)
        if design != "everybody":
            screened = np.flatnonzero(rule == 1)[: 2 * n]
            rule, outcomes = rule[screened], outcomes[screened]
        by_rule, standard = outcomes[np.arange(n), rule[:n]], outcomes[n : 2 * n, 0]
        found = ttest_ind(by_rule, standard)
        shown += found.statistic > 0 and found.pvalue < 0.05
    assert 0.77 < shown / 1_500 < 0.83


def test_randomising_those_who_are_treated_otherwise_is_enough():
    plan = plan_trial(judged(study()))
    all_of, some = plan.designs.loc["everybody"], plan.designs.loc["those treated otherwise"]
    assert plan.against == "always none" and plan.differing == pytest.approx(0.3, abs=0.05)
    assert some["difference"] * plan.differing == pytest.approx(all_of["difference"])
    assert some["per_arm"] < all_of["per_arm"] / 4
    assert some["screened"] == pytest.approx(2 * some["per_arm"] / plan.differing, rel=0.02)
    assert str(plan).startswith("To show the policy tree better than always none with 80% power")


def test_less_is_known_of_small_studies():
    small, large = (plan_trial(judged(study(n, 3))).designs.loc["everybody", "assurance"] for n in (500, 8_000))
    assert small < large < 0.8


def test_minimised_outcomes_and_units_change_no_size():
    first = plan_trial(judged(study()))
    table = study().table.assign(harm=lambda frame: -12.0 * frame["y"])
    other = Study(
        table[["x", "arm", "harm"]], treatment="arm", outcome="harm", direction="minimize", control="none",
        propensity={"drug": 0.5, "none": 0.5},
    )  # fmt: skip
    second = plan_trial(judged(other))
    assert second.designs["per_arm"].tolist() == first.designs["per_arm"].tolist()
    assert second.gain.value == pytest.approx(-12.0 * first.gain.value)


def test_people_are_added_for_outcomes_that_will_be_lost():
    table = study().table.copy()
    table.loc[np.random.default_rng(0).random(len(table)) < 0.2, "y"] = np.nan
    lossy = Study(
        table, treatment="arm", outcome=MayBeMissing("y"), direction="maximize", control="none",
        propensity={"drug": 0.5, "none": 0.5},
    )  # fmt: skip
    plan = plan_trial(judged(lossy))
    whole = plan_trial(judged(study()))
    ratio = plan.designs.loc["everybody", "per_arm"] / whole.designs.loc["everybody", "per_arm"]
    gains = (whole.gain.value / plan.gain.value) ** 2
    assert ratio / gains == pytest.approx(1 / 0.8, rel=0.1)


def test_what_cannot_be_planned_is_said():
    values = judged(study())
    with pytest.raises(InputError, match=r"against must be 'always drug' or 'always none'; got 'status quo'"):
        plan_trial(values, "status quo")
    with pytest.raises(InputError, match="power must lie between 0 and 1"):
        plan_trial(values, power=80)
    noise = study().table.assign(y=np.random.default_rng(0).normal(size=2_000))
    worse = judged(Study(noise, treatment="arm", outcome="y", direction="maximize", control="none",
                         propensity={"drug": 0.5, "none": 0.5}))  # fmt: skip
    best = worse.against_best.best
    if worse.differences[best].value <= 0:
        with pytest.raises(InputError, match=r"is not better than .* on held-out rows"):
            plan_trial(worse, best)
    times = study().table.assign(days=lambda frame: np.exp(frame["y"]), died=1).drop(columns="y")
    survival = Study(times, treatment="arm", outcome=TimeToEvent("days", event="died", horizon=2.0), control="none",
                     propensity={"drug": 0.5, "none": 0.5})  # fmt: skip
    with pytest.raises(InputError, match="outcomes that are numbers"):
        plan_trial(judged(survival), "always none")
