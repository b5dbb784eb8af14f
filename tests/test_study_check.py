"""The data check: every kind of leak and every untidy column is found, with numbers; honest data give no alarm."""

from __future__ import annotations

import os
import time

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LinearRegression

from policytree import InputError, RewardEstimator, check_rewards, check_study, load_dataset
from policytree.datasets import DATASET_NAMES


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
    assert check_study(X.iloc[people], T[people], rng.normal(size=600), groups=people).findings == ()


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
    assert check_rewards(Y, T, honest).findings == ()
    leaky = X[["age"]].assign(copy=Y)
    found = check_rewards(Y, T, estimator.fit_predict(Y, T, X=leaky, propensity=0.5)).findings
    assert {f.column for f in found} == {"Treatment drug", "Treatment placebo"}
    assert all("95% interval" in f.found for f in found)
    with pytest.raises(InputError, match="a row per row of Y and a column per treatment"):
        check_rewards(Y, T, honest.iloc[:10])


@pytest.mark.parametrize("name", DATASET_NAMES)
def test_no_false_alarm_on_the_built_in_studies(name):
    folder = None if name in ("rand-hie", "nsw", "nhefs") else os.environ.get("POLICYTREE_DATA", "")
    if folder == "":
        pytest.skip("needs the trials' files: set POLICYTREE_DATA")
    data = load_dataset(name, data_dir=folder).fit_arguments()
    check = check_study(data["X"], data["T"], data["Y"], W=data["W"], groups=data["groups"])
    # The PSID file does hold men twice: neighbouring rows with the same earnings to the cent in three years.
    assert kinds(check) == ({"repeated rows"} if name == "lalonde-psid" else set())


@pytest.mark.slow
def test_false_alarms_are_rare_and_leaks_are_found_at_every_size(rng):
    alarms = {n: np.mean([bool(check_study(*trial(rng, n)).findings) for _ in range(60)]) for n in (40, 100, 1_000)}
    assert max(alarms.values()) <= 0.02, alarms
    for n in (60, 200, 5_000):
        X, T, Y = trial(rng, n)
        assert "determines outcome" in kinds(check_study(X.assign(copy=Y), T, Y), "copy")


def test_a_hundred_thousand_rows_take_seconds(rng):
    n = 100_000
    X = pd.DataFrame(rng.normal(size=(n, 40)), columns=[f"x{j}" for j in range(40)])
    for j in range(10):
        X[f"c{j}"] = rng.choice([f"value {k}" for k in range(20)], size=n)
    start = time.perf_counter()
    check = check_study(X, rng.integers(3, size=n), rng.normal(size=n))
    assert check.findings == ()
    assert time.perf_counter() - start < 15  # about four on an idle core


def test_labels_that_only_case_or_blanks_tell_apart(rng):
    """Hand-typed tables have 'Placebo', 'placebo' and 'placebo ': three treatments, unless somebody says so."""
    T = np.resize(["drug", "Placebo", "placebo", "placebo "], 80)
    X = pd.DataFrame({"sex": np.resize(["f", "m", "F", "x y", "x  Y"], 80), "ok": np.resize(["p", "q"], 80)})
    found = {f.column: f for f in check_study(X, T, rng.normal(size=80)).findings if f.kind == "alike"}
    assert set(found) == {"Treatment", "sex"}
    assert found["Treatment"].severity == "serious" and found["sex"].severity == "warning"
    assert "'Placebo' and 'placebo' and 'placebo '" in found["Treatment"].found and "drug" not in str(found)
    assert "'F' and 'f'; 'x  Y' and 'x y'" in found["sex"].found
