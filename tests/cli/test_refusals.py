"""Refusals of the command line: one sentence that names the remedy, exit code 2, and nothing written."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from policytree import DRPolicyTree
from tests.cli.running import design, refused, run, trial


def change(tmp_path, **columns) -> Path:
    path = tmp_path / "trial.csv"
    trial().assign(**columns).to_csv(path, index=False)
    return path


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", ["is empty"]), (b"a,b\n", ["no rows"]), (b"\x89PNG\r\n\x1a\n\x00\xff\xfe", ["is no CSV file but a picture"]),
     (b"a,a,y\n1,2,3\n", ["more than one column 'a'"]), (b"arm,y\n1,2\n1,2,3,4\n", ["cannot be read as CSV"])],
)  # fmt: skip
def test_bad_files(tmp_path, content, words):
    path = tmp_path / "bad.csv"
    path.write_bytes(content)
    refused(design(path, tmp_path / "out"), "bad.csv", *words)
    assert not (tmp_path / "out").exists()


def test_missing_file_suggests_its_neighbour(csv, tmp_path):
    refused(design(tmp_path / "trail.csv", tmp_path / "out"), "There is no file", "did you mean 'trial.csv'?")
    refused(design(tmp_path, tmp_path / "out"), "is a folder")


def test_bad_parquet(tmp_path):
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 but no more")
    refused(design(tmp_path / "bad.parquet", tmp_path / "out"), "cannot be read as Parquet")


def test_missing_column_suggests_close_names(csv, tmp_path):
    refused(run("design", csv, "--treatment", "Arm", "--outcome", "y"), "'Arm' (--treatment)", "did you mean 'arm'?")
    refused(design(csv, tmp_path / "out", "--covariates", "age,incme"), "'incme'", "did you mean 'income'")
    refused(design(csv, tmp_path / "out", "--cluster", "zzz"), "the columns are age, income")
    refused(run("design", csv, "--treatment", "arm"), "--outcome is missing")


def test_one_column_in_two_roles(tmp_path):
    path = change(tmp_path, size=np.arange(240) + 1.0)
    out = tmp_path / "out"
    refused(
        run("design", path, "--treatment", "arm", "--outcome", "size", "--weights", "size"), "'size'", "the outcome"
    )
    refused(design(path, out, "--cluster", "arm"), "--cluster names 'arm'", "the treatment")
    refused(run("design", path, "--treatment", "arm", "--outcome", "arm"), "'arm'")


BAD_COLUMNS = {
    "missing treatment": ({"arm": ["None", None] * 120}, ["'arm'", "no value in 120 of 240 rows"]),
    "missing outcome": ({"y": [1.0, np.nan] * 120}, ["'y'", "no value in 120 of 240 rows"]),
    "one arm": ({"arm": "drug"}, ["'arm'", "only one treatment"]),
    "text outcome": ({"y": ["good", "bad"] * 120}, ["'y'", "not numbers"]),
    "infinite outcome": ({"y": [1.0, np.inf] * 120}, ["'y'", "infinite"]),
    "infinite covariate": ({"income": [1.0, np.inf] * 120}, ["'income'", "infinite"]),
    "rare arm": ({"arm": ["drug"] * 234 + ["None"] * 6}, ["None of column 'arm' has 6 rows", "--cv 5 needs 7"]),
}


@pytest.mark.parametrize("case", BAD_COLUMNS)
def test_bad_columns(tmp_path, case):
    columns, words = BAD_COLUMNS[case]
    refused(design(change(tmp_path, **columns), tmp_path / "out"), *words)
    assert not (tmp_path / "out").exists()


BAD_OPTIONS = {
    "propensity above one": (["--propensity", "1.5"], ["--propensity is 1.5", "between 0 and 1"]),
    "propensity of zero": (["--propensity", "drug=0,None=1"], ["--propensity of drug", "between 0 and 1"]),
    "propensities that sum to more": (["--propensity", "drug=0.6,None=0.6"], ["sum to 1.2"]),
    "propensity of an unknown arm": (["--propensity", "drug=0.5,placebo=0.5"], ["'placebo'", "None, drug"]),
    "propensity of one arm only": (["--propensity", "drug=0.5"], ["no probability for treatment None"]),
    "propensity column": (["--propensity", "age"], ["'age' (--propensity)", "between 0 and 1"]),
    "direction": (["--direction", "up"], ["--direction", "'up'"]),
    "depth": (["--max-depth", "-1"], ["--max-depth"]),
    "leaf": (["--min-samples-leaf", "500"], ["--min-samples-leaf 500 asks for more than the 240 rows"]),
    "folds": (["--cv", "1"], ["--cv"]),
    "leaves": (["--max-leaf-nodes", "0"], ["--max-leaf-nodes"]),
    "cost without a column": (["--feature-cost", "2"], ["--feature-cost '2'", "COLUMN=X"]),
    "column without a cost": (["--feature-cost", "age"], ["--feature-cost 'age'", "COLUMN=X"]),
    "cost of no covariate": (["--feature-cost", "agee=2"], ["'agee' (--feature-cost)", "did you mean 'age'?"]),
    "cost of the outcome": (["--feature-cost", "y=2"], ["'y' (--feature-cost)"]),
    "cost in words": (["--feature-cost", "age=dear"], ["cost of 'age' as 'dear'", "age=2"]),
    "negative cost": (["--feature-cost", "age=-1"], ["cost of 'age' as '-1'"]),
    "cost twice": (["--feature-cost", "age=1", "--feature-cost", "age=2"], ["cost of 'age' twice"]),
    "limit of no cost": (["--max-expected-cost", "3"], ["--max-expected-cost", "pass --feature-cost"]),
    "negative limit": (["--max-expected-cost", "-3", "--feature-cost", "age=1"], ["--max-expected-cost", ">= 0"]),
    "repeated": (["--repeated-features", "no"], ["--repeated-features must be 'charged' or 'free'"]),
    "group of no covariate": (["--feature-group", "age,incme"], ["'incme' (--feature-group)"]),
    "group without costs": (["--feature-group", "age,income"], ["pass --feature-cost"]),
    "share without a treatment": (["--max-share", "0.3"], ["--max-share '0.3' cannot be read", "drug=0.3"]),
    "share in words": (["--max-share", "drug=few"], ["--max-share 'drug=few'"]),
    "share of nobody": (["--max-share", "zzz=0.3"], ["--max-share names treatment zzz"]),
    "share beyond the most": (
        ["--min-share", "drug=0.6", "--max-share", "drug=0.4"],
        ["--min-share of drug is 0.6, more than its largest, 0.4"],
    ),
    "shares beyond everybody": (["--min-share", "drug=0.6", "--min-share", "None=0.6"], ["asks for 1.2 of the people"]),
    "share twice": (["--min-share", "drug=0.3", "--min-share", "drug=0.4"], ["--min-share names 'drug' twice"]),
    "budget without costs": (["--budget", "3"], ["--budget needs", "--budget-cost drug=1"]),
    "costs without a budget": (["--budget-cost", "drug=3"], ["no budget"]),
    "budget cost in words": (["--budget-cost", "drug=dear"], ["--budget-cost 'drug=dear'", "a column"]),
    "first question": (["--root-feature", "age,incme"], ["'incme' (--root-feature)", "did you mean 'income'?"]),
    "level": (["--level", "95"], ["level must lie between 0 and 1"]),
    "no number": (["--max-depth", "two"], ["--max-depth"]),
    "unknown option": (["--depth", "2"], ["--depth"]),
    "outcome as covariate": (["--covariates", "age,y"], ["'y'", "is the outcome"]),
    "treatment as confounder": (["--confounders", "arm"], ["'arm'", "is the treatment"]),
    "jobs": (["--jobs", "0"], ["--jobs must be a number of processes"]),
    "data twice": (["--dataset", "nsw"], ["not both"]),
    "data directory alone": (["--data-dir", "x"], ["--data-dir"]),
    "weights": (["--weights", "region"], ["'region'", "not numbers"]),
}


@pytest.mark.parametrize("case", BAD_OPTIONS)
def test_bad_options(csv, tmp_path, case):
    options, words = BAD_OPTIONS[case]
    refused(design(csv, tmp_path / "out", *options), *words)
    assert not (tmp_path / "out").exists()


def test_smallest_arm_that_folds_inside_folds_can_use(tmp_path):
    data = trial(60)
    data["arm"] = ["rare"] * 4 + ["drug", "None"] * 28
    data.to_csv(tmp_path / "trial.csv", index=False)
    code, _, err = design(tmp_path / "trial.csv", tmp_path / "out", "--cv", "2", "--max-depth", "1")
    assert code == 0, err
    data["arm"] = ["rare"] * 3 + ["drug"] + ["drug", "None"] * 28
    data.to_csv(tmp_path / "trial.csv", index=False)
    refused(design(tmp_path / "trial.csv", tmp_path / "out", "--cv", "2"), "has 3 rows", "needs 4")


def test_unknown_dataset():
    refused(run("design", "--dataset", "rand"), "'rand'", "rand-hie")


def test_output_that_cannot_be_written_is_refused_before_the_work(csv, tmp_path, monkeypatch):
    def no_work(*_args, **_kwargs):
        raise AssertionError("the computation began")

    monkeypatch.setattr(DRPolicyTree, "fit", no_work)
    (tmp_path / "file").write_text("mine")
    refused(design(csv, tmp_path / "file" / "out"), "Cannot write", "is a file", "--output")
    (tmp_path / "out" / "tree.json").mkdir(parents=True)
    refused(design(csv, tmp_path / "out"), "tree.json", "is a folder")
    if os.geteuid() != 0:  # root may write anywhere
        locked = tmp_path / "locked"
        locked.mkdir(mode=0o500)
        refused(design(csv, locked), "Cannot write")
    elif os.path.isdir("/proc"):
        refused(design(csv, "/proc/policytree"), "Cannot write")


@pytest.mark.parametrize("column", ["arm", "y", "clinic"])
def test_gaps_where_every_row_needs_a_value(tmp_path, column):
    data = trial(40)
    data[column] = data[column].astype(object).where(data.index != 2)
    data.to_csv(tmp_path / "gaps.csv", index=False)
    words = [repr(column), "no value in 1 of 40 rows", "row 3 below the header", "leave these rows out"]
    refused(design(tmp_path / "gaps.csv", tmp_path / "out", "--cluster", "clinic"), *words)


def test_all_that_must_be_named_is_asked_for_at_once(csv):
    refused(run("check", csv), "--treatment and --outcome are missing; name the columns, two of age, income")
    refused(run("check", csv, "--treatment", "arm"), "--outcome is missing; name the column, one of age, income")


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--min-samples-leaf", "--min-samples-leaf 500 asks for more than the 240 rows that there are; lower it."),
        ("--min-samples-per-treatment", "asks for more than the 1"),
    ],
)
def test_leaves_that_all_rows_would_not_fill(csv, tmp_path, option, words):
    """Said before anything is fitted, in the command line's words."""
    result = design(csv, tmp_path / "out", option, "500")
    refused(result, words)
    assert "Outcome models" not in result[2]
