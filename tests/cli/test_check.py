"""`policytree check`, and the data check and the test for differing effects in the report of `policytree design`."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from policytree.study_check import LOOKS_RANDOMISED, check_study
from policytree.weighting import LogitPropensity
from tests.cli.running import design, refused, run, trial


@pytest.fixture
def leaky(tmp_path):
    """A trial in which somebody left traces of the outcome."""
    frame = trial()
    rng = np.random.default_rng(1)
    frame["score_rounded"] = frame["y"].round(1)
    frame["crp"] = np.where(rng.random(len(frame)) < 0.2, "<0.5", rng.uniform(1, 9, len(frame)).round(1).astype(str))
    path = tmp_path / "leaky.csv"
    frame.to_csv(path, index=False)
    return path


def test_check_says_what_design_says_before_the_tree(leaky, tmp_path):
    code, out, err = run("check", leaky, "--treatment", "arm", "--outcome", "y", "--cluster", "clinic")
    assert code == 0, err
    words = " ".join(out.split())
    assert "Data check Serious: score_rounded nearly determines the outcome: it explains" in words
    assert "was left out of the covariates. It holds numbers stored as text, because of values such as '<0.5'." in words
    code, out, err = design(leaky, tmp_path / "out", "--max-depth", "1", "--no-value", "--cv", "2")
    assert code == 0, err
    report = (tmp_path / "out" / "report.txt").read_text(encoding="utf-8")
    assert "Serious: score_rounded nearly determines the outcome" in " ".join(report.split())
    order = ["Data check", "Policy tree", "Do effects differ between people?"]
    assert sorted(order, key=report.index) == order


def test_an_honest_trial_is_told_so(designed):
    _, out, _ = designed
    words = " ".join(out.split())
    # Both arms in most clinics: treatment was given to people, as in an honest trial.
    checked = words[words.index("Data check") : words.index("Policy tree")]
    assert "Note: Treatment varies within" in checked and "Serious" not in checked and "Warning" not in checked
    assert "Effects differ between people: p < 0.001." in words


def test_check_refuses(csv, tmp_path):
    refused(run("check"), "Give a data file or --dataset")
    refused(run("check", csv, "--dataset", "nsw"), "Give a data file or --dataset")
    refused(run("check", csv, "--treatment", "arm"), "--outcome is missing")
    refused(run("check", csv, "--treatment", "arm", "--outcome", "yy"), "There is no column 'yy'")


def test_the_check_names_the_control(csv):
    asked = ("check", csv, "--treatment", "arm", "--outcome", "y", "--exclude", "clinic")
    code, out, err = run(*asked)
    assert code == 0, err
    assert "control None, taken by its name; --control names another one" in " ".join(out.split())
    code, out, _ = run(*asked, "--control", "drug", "--json")
    assert code == 0 and json.loads(out)["control"] == "drug"
    refused(run(*asked, "--control", "pill"), "--control names the treatment 'pill'; the treatments are None, drug.")


def test_the_model_of_treatment_has_its_table_with_clustered_errors(csv, tmp_path):
    asked = ("check", csv, "--treatment", "arm", "--outcome", "y", "--cluster", "clinic", "--treatment-model")
    code, out, err = run(*asked)
    assert code == 0, err
    assert "Model of the treatment Logistic regression of the treatment on covariates" in " ".join(out.split())
    assert "with clustered standard errors" in " ".join(out.split())
    told = json.loads(run(*asked, "--json")[1])["treatment_model"]
    frame = pd.read_csv(csv, keep_default_na=False)
    X = frame.drop(columns=["arm", "y", "clinic"])
    expected = LogitPropensity.table(frame["arm"], X=X, groups=frame["clinic"]).reset_index()
    assert [line["term"] for line in told] == expected["term"].tolist()
    for column in ("coefficient", "standard_error", "lower", "upper"):
        np.testing.assert_allclose([line[column] for line in told], expected[column], rtol=1e-6)
    frame.assign(told=(frame["arm"] == "drug") * 1.0).to_csv(tmp_path / "told.csv", index=False)
    refused(run("check", tmp_path / "told.csv", *asked[2:]), "--treatment-model shows nothing", "(almost) perfectly")


@pytest.fixture
def repeated(tmp_path):
    """Two rows a person, as survival::colon has them: times, whether the event was seen, ids as texts."""
    rng, n = np.random.default_rng(3), 300
    person = np.repeat(np.arange(n // 2), 2)
    frame = pd.DataFrame(
        {
            "patient": [f"P{number:03d}" for number in person],
            "age": rng.integers(30, 80, n // 2)[person],
            "arm": rng.choice(["Obs", "drug"], n // 2)[person],
            "time": rng.exponential(900, n).round(),
            "died": rng.integers(2, size=n),
        }
    )
    path = tmp_path / "repeated.csv"
    frame.to_csv(path, index=False)
    return path


def found_in(*arguments, expected=0):
    code, out, err = run("check", *arguments, "--treatment", "arm", "--json")
    assert code == expected, err
    return [
        (f["severity"], f["kind"], f["column"]) for f in json.loads(out)["findings"] if f["kind"] != LOOKS_RANDOMISED
    ]


def test_columns_left_out_still_tell_of_censoring_and_of_persons(repeated):
    """Texts of many values are no covariates, and the event was left out: what both say of the rows holds."""
    expected = [("serious", "censored outcome", "time"), ("warning", "repeated ids", "patient")]
    assert found_in(repeated, "--outcome", "time", "--exclude", "died") == expected
    clustered = found_in(repeated, "--outcome", "time", "--exclude", "died", "--cluster", "patient")
    assert clustered == [expected[0], ("note", "assigned by cluster", "Treatment")]
    seen = found_in(repeated, "--outcome", "time", "--cluster", "patient", expected=2)  # as design refuses it
    assert seen[:2] == [expected[0], ("serious", "knows the event", "died")]


def test_an_outcome_of_two_values_asks_for_a_direction(repeated):
    asked = (repeated, "--outcome", "died", "--exclude", "time", "--cluster", "patient")
    harm = "Nobody said whether more 'died' is better, and the name sounds like harm"
    refused(run("check", *asked, "--treatment", "arm"), harm, "--direction minimize")
    way = ("--direction", "minimize")
    refused(run("check", *asked, "--treatment", "arm", "--event", "1"), "Say whether fewer or more rows")
    for given in (way, ("--direction", "maximize"), ("--event", "1", *way)):
        assert "direction" not in {kind for _, kind, _ in found_in(*asked, *given)}, given
    refused(run("check", *asked, "--treatment", "arm", "--direction", "up"), "--direction must be maximize or minimize")


def test_a_design_says_it_before_the_tree(repeated, tmp_path):
    code, out, err = run(
        "design", repeated, "--treatment", "arm", "--outcome", "died", "--exclude", "time,patient", "--no-value",
        "--cv", "2", "--max-depth", "1", "--stability", "0", "--direction", "minimize", "-o", tmp_path / "out",
    )  # fmt: skip
    assert code == 0, err
    words = " ".join(out.split())
    assert "Warning: died looks like an event whose time, or the time without it, is in time" in words
    assert "Warning: patient holds 150 ids in 300 rows" in words
    assert "control Obs, taken by its name" in words
    # Columns that the design names, or takes, are no question any more.
    table = pd.read_csv(repeated).iloc[:200]
    table.to_csv(tmp_path / "new.csv", index=False)
    code, out, err = run("evaluate", tmp_path / "out" / "tree.json", tmp_path / "new.csv", "--cluster", "patient")
    assert code == 0, err
    assert "sounds like harm" not in out and "Data check" in out


def test_built_in_studies_are_checked(capsys):
    code, out, _ = run("check", "--dataset", "nsw")
    assert code == 0
    assert "Nothing suspicious in 445 rows and 8 columns." in out


def test_strata_reach_the_folds_and_the_report(csv, tmp_path):
    code, out, err = design(csv, tmp_path / "out", "--strata", "region", "--max-depth", "1", "--no-value", "--cv", "2")
    assert code == 0, err
    assert "strata" in out and "region (folds are balanced over them)" in " ".join(out.split())
    assert json.loads((tmp_path / "out" / "tree.json").read_text())["design"]["strata"] == ["region"]
    refused(design(csv, tmp_path / "o", "--strata", "arm"), "--strata names 'arm', which is the treatment")
    refused(design(csv, tmp_path / "o", "--strata", "site"), "There is no column 'site' (--strata)")


def test_a_file_is_checked_like_the_frame_it_was_written_from(tmp_path):
    """Columns of objects, booleans or nullable numbers in pandas are the same after a CSV file."""
    rng = np.random.default_rng(0)
    frame = trial()
    n = len(frame)
    frame["objects"] = pd.Series(list(rng.integers(0, 50, n)), dtype=object).where(rng.random(n) < 0.9)
    frame["flags"] = pd.Series(list(rng.random(n) < 0.5), dtype=object).where(rng.random(n) < 0.9)
    frame["nullable"] = pd.array(rng.integers(0, 50, n), dtype="Int64")
    frame["copy"] = pd.Series(list(frame["y"] * 2), dtype=object)
    path = tmp_path / "objects.csv"
    frame.to_csv(path, index=False)
    from policytree.cli.tables import read_table

    again = read_table(path).frame
    names = ["age", "income", "region", "objects", "flags", "nullable", "copy"]
    ours = check_study(frame["y"], frame["arm"], X=frame[names])
    theirs = check_study(again["y"], again["arm"], X=again[names])
    assert str(ours) == str(theirs)
    assert {f.column for f in ours.of("serious")} == {"copy"}
