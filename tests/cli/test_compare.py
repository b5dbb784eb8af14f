"""`policytree compare`: solvers side by side on a file."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from policytree import DRPolicyTree, Study
from tests.cli.running import refused, run

ASKED = (
    "--treatment",
    "arm",
    "--outcome",
    "y",
    "--propensity",
    "0.5",
    "--direction",
    "maximize",
    "--exclude",
    "clinic",
)


def test_the_table_has_what_each_solver_found_and_guarantees(csv):
    code, out, err = run("compare", csv, *ASKED, "--max-depth", 1, "--cv", 2, "--json")
    assert code == 0, err
    told = {each["solver"]: each for each in json.loads(out)["solvers"]}
    assert list(told) == ["direct", "duplication", "sampling"]
    frame = pd.read_csv(csv, keep_default_na=False)
    study = Study(
        frame.drop(columns="clinic"), treatment="arm", outcome="y", propensity=0.5, direction="maximize", control="None"
    )
    for solver, row in told.items():
        model = DRPolicyTree(
            max_depth=1, cv=2, random_state=0, solver=solver, min_samples_per_treatment=8, min_samples_leaf=16
        ).fit(study)
        assert row["objective"] == pytest.approx(model.objective_value_)
        assert row["gap"] == pytest.approx(model.optimality_gap_) and row["status"] == model.status_.value
        assert row["bound"] >= told["direct"]["objective"] - 1e-9 >= row["objective"] - 2e-9
    assert told["direct"]["gap"] == 0 and told["direct"]["guarantee"] == "no tree is better"
    assert "theorem 2: rounding weights" in told["duplication"]["guarantee"]
    assert "theorem 3: with probability 0.95" in told["sampling"]["guarantee"]


def test_what_is_printed(csv):
    asked = ("--solvers", "sampling,direct", "--method", "ipw", "--guesses", "thresholds,lower_bounds", "--cv", 2)
    code, out, err = run("compare", csv, *ASKED, "--max-depth", 1, *asked)
    assert code == 0, err
    words = " ".join(out.split())
    assert "solver objective gap seconds leaves status sampling" in words and "rewards by the method ipw" in words
    assert "duplication" not in words and "theorem 1: guessed lower bounds may hide" in words
    assert "no tree is better" not in words, "the gap is not zero"
    assert "Without --covariates" in words and "values are by doubly robust" not in words
    assert "mean y, higher is better, under the tree" in words


def test_bad_files_and_options_are_refused_in_a_sentence(csv, tmp_path):
    bad = tmp_path / "bad.csv"
    bad.write_text("arm,y,age\na,1,2\na,x,3\nb\n")
    refused(run("compare", bad, "--treatment", "arm", "--outcome", "y"))
    refused(run("compare", tmp_path / "none.csv", *ASKED), "There is no file")
    refused(run("compare", csv), "--treatment and --outcome are missing")
    refused(run("compare", csv, *ASKED, "--solvers", "direct,magic"), "--solvers must be some of direct, auto")
    refused(run("compare", csv, *ASKED, "--solvers", "direct,direct"), "each once")
    refused(run("compare", csv, *ASKED, "--method", "weights"), "--method must be one of dr")
    refused(run("compare", csv, *ASKED, "--limit", "income=3"), "which the direct one alone keeps to")
    refused(run("compare", csv, *ASKED, "--jobs", 0), "--jobs must be a number of threads")
    refused(run("compare", csv, *ASKED, "--dataset", "nsw"), "Give a data file or --dataset")
    holes = pd.read_csv(csv, keep_default_na=False)
    holes["income"] = np.where(np.arange(len(holes)) % 9 == 0, np.nan, holes["income"])
    holes.to_csv(bad, index=False)
    refused(run("compare", bad, *ASKED, "--method", "matching", "--cv", 2), "takes no missing values")
