"""Reports of times to an event and of outcomes some of which are missing: what they say is what was computed."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from policytree import StudyReport, cross_val_policy_value
from policytree.diagnostics import check_rewards
from policytree.exceptions import InputError
from policytree.report.content import Facts, Fold, Picture, Table
from policytree.report.described import About
from policytree.weighting.extreme_rewards import ExtremeRewards
from policytree.weighting.study_data import StudyData, by_columns
from policytree.weighting.time_to_event.product_limit import product_limit
from tests.report.studies import flow_of, learner

ABOUT = About(unit="days", treatment="arm")


@pytest.fixture(scope="module")
def study():
    """A small dirty trial: a rare category, gaps, a rare arm, a third censored."""
    rng = np.random.default_rng(2)
    n = 240
    X = pd.DataFrame(
        {"age": rng.integers(20, 80, n).astype(float), "site": rng.choice(["A", "B", "C"], n, p=[0.6, 0.37, 0.03])}
    )
    X.loc[::11, "age"] = np.nan
    T = pd.Series(rng.choice(["none", "pill", "rare"], n, p=[0.45, 0.4, 0.15]), name="arm")
    until = rng.exponential(np.where((T == "pill") & (X["age"] < 50), 900, 400))
    lost = rng.uniform(100, 1500, n)
    return X, T, pd.Series(np.ceil(np.minimum(until, lost)), name="days"), (until <= lost).astype(int)


@pytest.fixture(scope="module")
def fitted(study):
    X, T, Y, event = study
    chances = {"none": 0.45, "pill": 0.4, "rare": 0.15}
    return learner(max_depth=1, min_samples_leaf=40).fit(
        StudyData.of(Y, T, X=X, event=event, horizon=600, propensity=chances)
    )


@pytest.fixture(scope="module")
def report(study, fitted):
    X, T, Y, event = study
    return StudyReport(fitted, StudyData.of(Y, T, X=X, event=event), about=ABOUT)


def test_means_are_areas_under_the_curves_in_the_times_unit(study, report):
    _, T, Y, event = study
    section = report.content.section("survival")
    facts = dict(next(b for b in section.blocks if isinstance(b, Facts)).pairs)
    table = next(b for b in section.blocks if isinstance(b, Table))
    for row, numbers in zip(table.rows, table.numbers, strict=True):
        own = (row[0] == T).to_numpy()
        area = product_limit(Y[own].to_numpy(), event[own] == 1).area(600.0)
        assert numbers["mean"] == pytest.approx(area, abs=1e-9)
        assert facts[row[0]].startswith(f"{area:,.0f} days of 600 (")
        assert numbers["events"] == ((Y[own] <= 600) & (event[own] == 1)).sum()
        assert numbers["censored before"] == ((Y[own] < 600) & (event[own] == 0)).sum()
        assert numbers["events"] + numbers["censored before"] + numbers["followed to it"] == own.sum()
    means = next(b for b in report.content.section("question").blocks if isinstance(b, Table))
    assert [n["mean"] for n in means.numbers] == pytest.approx([n["mean"] for n in table.numbers])


def test_pictures_are_the_curves_of_arms_and_leaves(study, report):
    _, T, Y, event = study
    section = report.content.section("survival")
    picture = next(b for b in section.blocks if isinstance(b, Picture))
    for line in picture.data["lines"]:
        own = (line["name"] == T).to_numpy()
        known = product_limit(Y[own].to_numpy(), event[own] == 1)
        assert line["y"] == pytest.approx(known.at(np.array(line["x"])).tolist())
        assert line["at_risk"] == [int((Y[own] >= t).sum()) for t in (0, 150, 300, 450, 600)]
    fold = next(b for b in section.blocks if isinstance(b, Fold))
    assert fold.title == "Curves within the leaves, by rows that chose the tree"
    leaves = [b for b in fold.blocks if isinstance(b, Picture)]
    assert len(leaves) == 2 and all("lower" not in line for leaf in leaves for line in leaf.data["lines"])
    assert all(sum(line["strong"] for line in leaf.data["lines"]) == 1 for leaf in leaves)
    assert sum(sum(line["at_risk"][0] for line in leaf.data["lines"]) for leaf in leaves) == 240
    html = report.to_html()
    assert "number at risk" in html and "(recommended)" in html


def test_horizon_unit_and_floor_are_said(report):
    text = " ".join(report.to_text().split())
    for words in (
        "Which treatment for whom, for the highest mean days up to 600 days?", "horizon 600 days",
        "restricted means: the mean time",
        "Time after the horizon does not count.", "None of the 240 rows had an estimated probability",
        "Rubin D, van der Laan MJ", "Hidden causes of censoring are another matter",
    ):  # fmt: skip
        assert words in text
    tree = next(b for b in report.content.section("tree").blocks if isinstance(b, Picture))
    assert tree.data["limits"] == [0.0, 600.0]


def test_another_question_than_that_of_the_fit_is_refused(study, fitted):
    X, T, Y, event = study
    with pytest.raises(InputError, match="fitted to times to an event; give the report that study"):
        StudyReport(fitted, Y, T, X=X)
    with pytest.raises(InputError, match=r"fitted with horizon=600.0, the report asks for 500.0; use the same\."):
        StudyReport(fitted, StudyData.of(Y, T, X=X, event=event, horizon=500))
    numbers = learner(max_depth=1).fit(Y, T, X=X)
    with pytest.raises(InputError, match="fit it to this study, or leave the events out"):
        StudyReport(numbers, StudyData.of(Y, T, X=X, event=event))


def test_means_outside_what_the_target_can_be_are_found(study, fitted):
    _, T, Y, event = study
    data = StudyData.of(Y, T, event=event, horizon=600)
    kinds = {f.kind for f in check_rewards(fitted.rewards_, data).findings}
    assert "outside range" not in kinds
    far = check_rewards(fitted.rewards_ + 400.0, data).findings
    assert any(f.kind == "outside range" and "between 0 and 600" in f.found for f in far)


def test_rows_are_followed_to_the_event_the_horizon_or_censoring(study, report):
    _, T, Y, event = study
    flow = flow_of(report)
    died = (Y <= 600) & (event == 1)
    free = (Y > 600) | ((Y == 600) & (event == 0))
    steps = {"received": Y > -1, "any event up to the horizon": died, "censored before": ~died & ~free}
    for step, rows in steps.items():
        assert flow.loc[step].to_dict() == {"all": rows.sum(), **rows.groupby(T).sum().to_dict()}
    assert flow.loc["received", "all"] == flow.loc["analysed", "all"] == flow.iloc[1:-1]["all"].sum()


def test_missing_outcomes_are_counted_by_arm(study):
    X, T, Y, _ = study
    gaps = Y.mask(np.arange(240) % 7 == 0)
    model = learner(max_depth=1).fit(StudyData.of(gaps, T, X=X, missing_outcome="weight"))
    report = StudyReport(model, StudyData.of(gaps, T, X=X, missing_outcome="weight"), about=ABOUT)
    section = report.content.section("missing")
    table = next(b for b in section.blocks if isinstance(b, Table))
    seen = gaps.notna().groupby(T).sum()
    assert [n["seen"] for n in table.numbers] == seen.tolist()
    text = " ".join(report.to_text().split())
    chance = model.reward_estimator_.observation_
    assert f"lies between {chance.min():.3f} and {chance.max():.3f}" in text
    assert f"missing in {gaps.isna().sum()} of 240 rows" in text
    assert flow_of(report).loc["outcome known"].tolist()[1:] == seen.tolist()
    means = next(b for b in report.content.section("question").blocks if isinstance(b, Table))
    assert [n["mean"] for n in means.numbers] == pytest.approx(gaps.groupby(T).mean().tolist())
    assert "survival" not in [part.key for part in report.content.sections]


def test_rewards_that_few_rows_decide_are_said_once(study, fitted):
    X, T, Y, event = study
    asked = {"X": X, "event": event, "horizon": 600}
    assert "To rely less on them" not in by_columns(StudyReport, fitted, Y=Y, T=T, **asked, about=ABOUT).to_text()
    model = copy.copy(fitted)
    model.reward_estimator_ = copy.copy(fitted.reward_estimator_)
    found = model.reward_estimator_.extreme_rewards_ = ExtremeRewards(
        3, 2, 240, 0.4, -5000.0, 7000.0, (0.0, 600.0), True
    )
    plain = " ".join(by_columns(StudyReport, model, Y=Y, T=T, **asked, about=ABOUT).to_text().split())
    assert plain.count(str(found)) == 1
    assert (
        "3 of 240 rows (2 unlikely to be followed for as long as they were and 1 unlikely to get their treatment) make "
        "up 40% of the variance of a treatment's mean reward. To rely less on them, choose an earlier horizon or raise "
        "min_observed or leave out people who could hardly get every treatment (crump_trimming)."
    ) in plain
    told = replace(ABOUT, warnings=(f"{found} (Heard in the ranking.)",))
    assert (
        " ".join(by_columns(StudyReport, model, Y=Y, T=T, **asked, about=told).to_text().split()).count(str(found)) == 1
    )


def test_no_horizon_stands_for_a_unit_that_nobody_named(study):
    X, T, Y, event = study
    model, asked = learner(max_depth=1), {"X": X, "event": event, "horizon": 600}
    values = by_columns(cross_val_policy_value, model, Y=Y, T=T, cv=2, n_repeats=1, random_state=0, **asked)
    by_columns(model.fit, Y=Y, T=T, **asked)
    captions = {}
    for unit in ("", "days"):
        about = About(outcome="time", unit=unit, treatment="arm")
        section = by_columns(StudyReport, model, Y=Y, T=T, results=[values], **asked, about=about).content.section(
            "values"
        )
        captions[unit] = next(b for b in section.blocks if isinstance(b, Table)).caption
    assert captions == {
        "": "Held-out values of all rules, by 240 rows",
        "days": "Held-out values of all rules (days of 600), by 240 rows",
    }


def test_an_arm_that_all_had_the_event_has_no_error_of_zero(study):
    X, T, Y, event = study
    own = (T == "rare").to_numpy()
    Y, event = Y.where(~own, np.minimum(Y, 90.0)), np.where(own, 1, event)
    model = learner(max_depth=1).fit(StudyData.of(Y, T, X=X, event=event, horizon=600, target="survival"))
    section = StudyReport(
        model, StudyData.of(Y, T, X=X, event=event, horizon=600, target="survival"), about=ABOUT
    ).content.section("survival")
    facts = dict(next(b for b in section.blocks if isinstance(b, Facts)).pairs)
    assert facts["rare"] == "0%" or facts["rare"] == "0.0%"
    assert facts["none"].endswith(")")
