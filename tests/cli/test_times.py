"""Times to an event and missing outcomes on the command line: what is asked, printed, saved, judged and refused."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest

from policytree import DRPolicyTree, RewardEstimator, policy_value
from policytree.cli.questions import merge_warnings
from policytree.exceptions import OverlapWarning
from policytree.study.outcomes import event_codes
from policytree.weighting.study_data import StudyData
from policytree.weighting.time_to_event.product_limit import product_limit
from tests.cli.running import FILES, refused, run

QUICK = ("--max-depth", "1", "--cv", "2", "--repeats", "1")
CAUSES = {"censored": 0, "relapse": 1, "dead": 2}


def study(n: int = 240, seed: int = 0) -> pd.DataFrame:
    """A small trial: days until death, a third lost before, one arm rare, a rare category, missing values."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(30, 85, n),
            "stage": rng.choice(["I", "II", "III", "rare"], n, p=[0.5, 0.3, 0.17, 0.03]),
            "marker": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n).round(2)),
            "arm": rng.choice(["drug", "placebo", "surgery"], n, p=[0.4, 0.4, 0.2]),
        }
    )
    better = (frame["arm"] == "drug") & (frame["age"] < 60) | (frame["arm"] == "surgery") & (frame["age"] >= 60)
    dead = rng.exponential(np.where(better, 1200, 500)).round() + 1
    lost = rng.uniform(100, 1500, n).round()
    cause = np.where(rng.random(n) < 0.3, "relapse", "dead")
    frame["days"] = np.minimum(dead, lost)
    frame["end"] = np.where(dead <= lost, cause, "censored")
    frame["status"] = 1 + (dead <= lost)
    return frame


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("times")
    study().drop(columns="end").to_csv(folder / "trial.csv", index=False)
    study().drop(columns="status").to_csv(folder / "causes.csv", index=False)
    study(seed=5).drop(columns="end").to_csv(folder / "new.csv", index=False)
    return folder


def design(data, *more):
    return run("design", data, "--treatment", "arm", "--outcome", "days", *more, "-o", data.parent / "out")


EVENT = ("--event-column", "status", "--event", "2")


@pytest.fixture(scope="module")
def designed(files):
    """One whole run, by a horizon that nobody named."""
    code, out, err = design(files / "trial.csv", *EVENT, *QUICK, "--stability", "2")
    assert code == 0, err
    return files, out, json.loads((files / "out" / "tree.json").read_text())["design"]


def flat(text: str) -> str:
    return " ".join(text.split())


def test_a_whole_run_says_horizon_and_events_and_shows_areas_under_the_curves(designed):
    folder, out, saved = designed
    data, said = study(), flat(out)
    assert {path.name for path in (folder / "out").iterdir()} == FILES
    dead, horizon = data["status"] == 2, saved["horizon"]
    assert f"The event (status = 2) was seen in {dead.sum()} of 240 rows; {(~dead).sum()} are censored" in said
    assert f"it is days = {horizon:,.6g}, the last time at which 10% of every treatment's rows are at risk" in said
    assert "if the event is good, say --direction minimize" in said
    assert "covariates age, stage, marker" in said and "censored outcome" not in said
    followed = [(rows["days"] >= horizon).sum() / max(5, 0.1 * len(rows)) for _, rows in data.groupby("arm")]
    assert min(followed) == 1.0
    for arm, rows in data.groupby("arm"):
        area = product_limit(rows["days"].to_numpy(), (rows["status"] == 2).to_numpy()).area(horizon)
        assert f"{area:,.0f} " in out.split("Data check")[0], arm
    assert "Not answered" not in said
    values = pd.read_csv(folder / "out" / "values.csv", index_col="rule")
    assert values["value"].between(0, horizon).all() and values.loc["policy tree", "standard_error"] > 0


def test_the_tree_is_that_of_the_library(designed):
    folder, _, saved = designed
    data = study()
    tree = DRPolicyTree(max_depth=1, cv=2, random_state=0, min_samples_leaf=24, min_samples_per_treatment=8)
    tree.fit(
        StudyData.of(
            data["days"],
            data["arm"],
            X=data[["age", "stage", "marker"]],
            event=data["status"] == 2,
            horizon=saved["horizon"],
        )
    )
    found = json.loads((folder / "out" / "tree.json").read_text())["certificate"]["objective"]
    assert found == pytest.approx(tree.objective_value_, rel=1e-9)
    asked = {"event": "2", "event_column": "status", "target": "rmst", "cause": None, "entry_column": None}
    assert {name: saved[name] for name in asked} == asked


def test_the_saved_tree_is_judged_by_new_times(designed):
    folder, _, saved = designed
    code, out, err = run("evaluate", folder / "out" / "tree.json", folder / "new.csv", "--cv", "2", "--json")
    assert code == 0, err
    found, new = json.loads(out), study(seed=5)
    rewards = RewardEstimator(cv=2, random_state=0).fit(
        StudyData.of(
            new["days"],
            new["arm"],
            X=new[["age", "stage", "marker"]],
            event=new["status"] == 2,
            horizon=saved["horizon"],
        )
    )
    values = {row["rule"]: row for row in found["values"]}
    assert values["status quo"]["value"] == pytest.approx(rewards.outcome_.mean(), rel=1e-9)
    expected = policy_value("drug", rewards.rewards_)
    assert values["always drug"]["value"] == pytest.approx(expected.value, rel=1e-9)
    assert f"Mean days up to {saved['horizon']:,.6g} if everybody followed the rule" in found["about"]
    study(seed=5).drop(columns=["end", "status"]).to_csv(folder / "none.csv", index=False)
    lacking = run("evaluate", folder / "out" / "tree.json", folder / "none.csv")
    refused(lacking, "outcomes were times with --event-column status", "name it by --event-column")


def test_a_share_without_event_is_judged_leaf_by_leaf(files):
    asked = ("--target", "survival", "--horizon", "400", "--honest", "0.5", "--stability", "0", "--json")
    code, out, err = design(files / "trial.csv", *EVENT, "--max-depth", "1", "--cv", "2", *asked)
    assert code == 0, err
    asked = {"column": "days", "value": "share without event at days = 400", "target": "survival", "horizon": 400.0}
    assert asked.items() <= json.loads(out)["outcome"].items()
    saved = json.loads((files / "out" / "tree.json").read_text())
    for leaf in saved["held_out_leaf_values"].values():
        assert leaf["lower"] < leaf["value"] < leaf["upper"] and 0.0 < leaf["value"] < 1.0
    assert (saved["design"]["target"], saved["design"]["horizon"]) == ("survival", 400.0)


def test_of_several_causes_one_is_asked_about(files):
    asked = ("--event-column", "end", "--cause", "dead", "--direction", "minimize", "--horizon", "500")
    code, out, err = design(files / "causes.csv", *asked, *QUICK[:4], "--no-value")
    assert code == 0, err
    data = study()
    assert f"The event (end = dead) was seen in {(data['end'] == 'dead').sum()} of 240 rows, an event of another" in (
        flat(out)
    )
    rewards = RewardEstimator(random_state=0, cv=2).fit_predict(
        StudyData.of(
            data["days"],
            data["arm"],
            X=data[["age", "stage", "marker"]],
            event=data["end"].map(CAUSES),
            cause=2,
            horizon=500,
        )
    )
    leaves = pd.read_csv(files / "out" / "leaves.csv")
    own = [leaf[f"training_value_{leaf['arm']}"] for _, leaf in leaves.iterrows()]
    assert np.average(own, weights=leaves["n"]) <= rewards.mean().min() + 1e-9
    assert json.loads((files / "out" / "tree.json").read_text())["design"]["cause"] == "dead"


def test_entries_are_no_covariates(files):
    rows = study().assign(since=lambda d: (d["days"] * 0.2).round(), status=lambda d: d["status"] - 1)
    rows.drop(columns="end").to_csv(files / "late.csv", index=False)
    asked = ("--treatment", "arm", "--outcome", "days", "--event-column", "status", "--horizon", "400")
    code, out, err = run("check", files / "late.csv", *asked, "--entry-column", "since")
    assert code == 0, err
    assert "covariates age, stage, marker" in flat(out)


def test_rows_without_an_outcome_stay_if_they_are_weighted(tmp_path):
    data = study()
    data["score"] = (data["age"] / 10 + (data["arm"] == "drug") + np.random.default_rng(1).normal(size=240)).round(2)
    data.loc[(data["age"] > 60) & (np.arange(240) % 2 == 0), "score"] = np.nan
    data[["age", "stage", "arm", "score"]].to_csv(tmp_path / "trial.csv", index=False)
    asked = ("design", tmp_path / "trial.csv", "--treatment", "arm", "--outcome", "score", "-o", tmp_path / "out")
    missing = int(data["score"].isna().sum())
    refused(run(*asked), f"no value in {missing} of 240 rows", "--missing-outcome weight")
    code, out, err = run(*asked, *QUICK, "--missing-outcome", "weight", "--stability", "0")
    assert code == 0, err
    assert f"Column 'score' has no value in {missing} of 240 rows (drug " in flat(out)
    for _, seen in data.groupby("arm")["score"]:
        assert f"{seen.mean():.2f}" in out.split("Data check")[0]
    assert json.loads((tmp_path / "out" / "tree.json").read_text())["design"]["missing_outcome"] == "weight"


# Refusals


REFUSED = {
    "an event among the covariates": ([], ["looks like the time until the event in status", "say " + " ".join(EVENT)]),
    "codes 1 and 2": (["--event-column", "status"], ["holds 1, 2", "--event 2 (all others are then censored)"]),
    "another value": (["--event-column", "status", "--event", "7"], ["'status' never holds '7'", "1, 2"]),
    "a time as event": (["--event-column", "age"], ["different values", "by 1 or 0"]),
    "no such column": (["--event-column", "state"], ["'state' (--event-column)"]),
    "the treatment": (["--event-column", "arm"], ["is the treatment"]),
    "beyond follow-up": ([*EVENT, "--horizon", "9999"], ["horizon=9999 lies beyond all follow-up"]),
    "too few followed": ([*EVENT, "--horizon", "1200"], ["rows of treatment", "still followed"]),
    "too early": ([*EVENT, "--horizon", "5"], ["up to horizon=5"]),
    "no horizon": ([*EVENT, "--horizon", "0"], ["horizon must be a time greater than 0"]),
    "no target": ([*EVENT, "--target", "life"], ["--target must be 'rmst', 'survival', 'years_lost' or"]),
    "a target of causes": ([*EVENT, "--target", "years_lost"], ["about one of several causes", "--cause 1"]),
    "a cause without direction": (["--event-column", "status", "--cause", "2"], ["--direction minimize"]),
    "a cause and an event": ([*EVENT, "--cause", "2"], ["--event and --cause"]),
    "no censored rows": (
        ["--event-column", "status", "--cause", "2", "--direction", "minimize"], ["0 in column 'status'", "1, 2"],
    ),
    "a horizon alone": (["--horizon", "500"], ["--horizon is about times to an event", "--event-column"]),
    "missing and censored": ([*EVENT, "--missing-outcome", "weight"], ["--missing-outcome weight is for outcomes"]),
    "no way": (["--missing-outcome", "drop"], ["--missing-outcome must be refuse or weight"]),
    "the event as covariate": ([*EVENT, "--covariates", "age,status"], ["'status', which is the event"]),
    "the time as entry": ([*EVENT, "--entry-column", "days"], ["'days', which is the outcome"]),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(files, tmp_path, case):
    more, words = REFUSED[case]
    asked = ("--treatment", "arm", "--outcome", "days", "-o", tmp_path / "no")
    refused(run("design", files / "trial.csv", *asked, *more), *words)
    assert not (tmp_path / "no").exists()


CHANGED = {
    "negative times": (
        {"days": study()["days"].where(study().index != 7, -1.0)},
        ["Column 'days' (--outcome) has 1 negative times, the first in row 8 below the header; leave these rows out"],
    ),
    "all censored": ({"status": 0}, ["nothing but 0, so that every time is censored"]),
    "one code": ({"status": 2}, ["nothing but 2"]),
    "events with gaps": ({"status": [1.0, np.nan] * 120}, ["'status' (--event-column) has no value in 120 of 240"]),
    "times with gaps": ({"days": [1.0, np.nan] * 120}, ["'days' (--outcome) has no value", "leave these rows out."]),
    "texts": ({"status": study()["end"]}, ["censored, dead, relapse", "--event dead", "--cause dead"]),
    "an arm without events": (
        {"status": (study()["status"] - 1) * (study()["arm"] != "surgery")}, ["Treatment surgery has no event"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CHANGED)
def test_bad_times_are_refused_in_a_sentence(tmp_path, case):
    columns, words = CHANGED[case]
    path = tmp_path / "bad.csv"
    study().drop(columns="end").assign(status=lambda d: d["status"] - 1).assign(**columns).to_csv(path, index=False)
    refused(design(path, "--event-column", "status"), *words)


def test_a_built_in_study_knows_its_event_and_horizon(tmp_path):
    done = run(
        "design", "--dataset", "colon", "--max-depth", "1", "--no-value", "--stability", "0", "-o", tmp_path / "out"
    )
    assert done[0] == 0, done
    kept = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    data = next(section for section in kept["sections"] if section["key"] == "question")
    facts = dict(data["blocks"][0]["pairs"])
    assert facts["horizon"] == "5 years"
    assert facts["outcome"].startswith("mean years_to_death up to 5 years")
    # survival::colon, death: areas under the curves of Kaplan and Meier up to five years (lifelines 0.30).
    means = {row[0]: float(row[3]) for row in data["blocks"][1]["rows"]}
    assert means == pytest.approx({"Lev": 3.622, "Lev+5FU": 3.972, "Obs": 3.667}, abs=0.006)


def test_the_event_may_be_left_out_by_name(files, tmp_path):
    """Whoever knows that all times are known to the end is not kept from taking them as numbers."""
    asked = ("--treatment", "arm", "--outcome", "days", *QUICK, "--no-value", "-o", tmp_path)
    code, out, err = run("design", files / "trial.csv", *asked, "--covariates", "age,stage")
    assert code == 0, err
    assert "Serious: days looks like the time until the event in status" in flat(out)
    backwards = ("--treatment", "arm", "--outcome", "status", "--event", "2", "--direction", "minimize")
    refused(run("design", files / "trial.csv", *backwards), "say --outcome days --event-column status")


@pytest.mark.parametrize(
    ("values", "event", "cause", "codes"),
    [([1, 0, 1], None, None, [1, 0, 1]), ([True, False, True], None, None, [1, 0, 1]),
     (["true", "FALSE ", "True"], None, None, [1, 0, 1]), ([1, 2, 1], "2", None, [0, 1, 0]),
     ([0.0, 1.0, 2.0], "2", None, [0, 0, 1]), ([0, 1, 2], None, "2", [0, 2, 1]),
     (["Censored", "a", "b"], None, "a", [0, 1, 2]), ([" dead", "alive", "dead"], "dead", None, [1, 0, 1])],
)  # fmt: skip
def test_codes_of_events(values, event, cause, codes):
    assert event_codes(pd.Series(values, name="status"), event, cause).tolist() == codes


def test_late_and_negative_entries_are_refused_by_their_place_in_the_file(tmp_path):
    known = study().drop(columns="end").assign(since=0.0)
    for row, value, words in (
        (
            3,
            9999.0,
            "'since' (--entry-column) is not before 'days' in 1 rows, the first of them row 4 below the header",
        ),
        (5, -2.0, "Column 'since' (--entry-column) has 1 negative times, the first in row 6 below the header"),
    ):
        path = tmp_path / "bad.csv"
        known.assign(since=known["since"].where(known.index != row, value)).to_csv(path, index=False)
        refused(design(path, *EVENT, "--entry-column", "since"), words)


def test_who_said_the_direction_is_not_warned_of_it(files, tmp_path):
    asked = ("--event-column", "end", "--cause", "dead", "--direction", "maximize")
    code, out, err = design(files / "causes.csv", *asked, *QUICK, "--no-value", "--stability", "0")
    assert code == 0, err
    assert "pass direction='minimize'" not in flat(out + err)


def test_warnings_of_one_class_that_say_different_things_are_all_kept():
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        for rows in (7, 12):
            warnings.warn(f"Of 240 rows, {rows} have an estimated propensity below 0.01.", OverlapWarning, stacklevel=1)
        warnings.warn("Rewards reach from -3 to 4, where the target lies between.", OverlapWarning, stacklevel=1)
    said: dict[str, str] = {}
    merge_warnings(heard, said)
    assert [text[:12] for text in said.values()] == ["Of 240 rows,", "Rewards reac"]
    merge_warnings(heard[:2], said, "in the ranking")
    assert next(iter(said.values())).endswith("0.01. (Likewise in the ranking, 2 times.)")
    later: dict[str, str] = {}
    merge_warnings(heard[:1], later, "in the ranking")
    assert next(iter(later.values())).endswith("0.01. (Heard in the ranking.)")
