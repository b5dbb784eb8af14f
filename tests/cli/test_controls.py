"""The control: the user's, the one that is named like one, or the first; and what was taken is said."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from policytree import DRPolicyTree, cross_val_policy_value, load_dataset
from policytree.cli.controls import chosen_control
from policytree.cli.study import Roles, study_of_table
from tests.cli.running import design, run


def study_with(labels):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(20, 80, 60), "arm": np.resize(np.array(labels, dtype=object), 60)})
    frame["arm"] = frame["arm"].infer_objects()
    return study_of_table("trial.csv", frame.assign(y=rng.normal(size=60)), Roles("arm", "y"))


@pytest.mark.parametrize(
    ("labels", "control"),
    [
        (["drug", "placebo"], "placebo"),
        (["A", "Placebo", "Z"], "Placebo"),
        (["advice", "UNTREATED"], "UNTREATED"),
        (["course", "none", "pill"], "none"),
        ([-1, 0, 1], "0"),
        ([-1.0, 0.0, 1.0], "0.0"),
        (["Yes", "NO", "Maybe"], "NO"),
        (["drug", "no drug"], "drug"),  # whole labels only
        (["drug", "none", "placebo"], "drug"),  # two are named like a control
        ([1, 2], "1"),
        (["Lev", "Lev+5FU", "Obs"], "Obs"),
        (["experimental", "SOC"], "SOC"),
        (["new", "standard"], "standard"),
        (["new", "Standard_of_care"], "Standard_of_care"),
        (["acupuncture", "sham"], "sham"),
        (["app", "usual  care"], "usual  care"),
        (["app", "Wait-list"], "Wait-list"),
        (["app", "waitlist"], "waitlist"),
        (["chemo", "observation"], "observation"),
        (["drug", "observations"], "drug"),
        (["drug", "obs", "soc"], "drug"),  # two again
        (["drug", "-1"], "-1"),  # a sign is no name
    ],
)
def test_the_one_that_is_named_like_a_control_or_the_first(labels, control):
    found, said, is_named = chosen_control(None, study_with(labels))
    assert found == control and said.startswith(control) and "--control names another one" in said
    by_name = "by its name" in said
    assert by_name == is_named != ("the first in sorted order" in said)


def test_two_that_are_named_like_a_control_are_said():
    said = chosen_control(None, study_with(["drug", "none", "placebo"]))[1]
    assert "since none and placebo are named like a control" in said


def test_the_users_own_comes_first():
    assert chosen_control("drug", study_with(["drug", "placebo"])) == ("drug", "drug", True)


def test_a_run_says_what_it_compares_with(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(20, 80, 80), "arm": np.resize(["drug", "placebo"], 80)})
    frame["y"] = 3.0 * (frame["arm"] == "drug") + rng.normal(size=80)
    frame.to_csv(tmp_path / "trial.csv", index=False)
    quick = ("--propensity", "0.5", "--no-value", "--cv", "2", "--max-depth", "1")
    code, out, err = design(tmp_path / "trial.csv", tmp_path / "o", *quick)
    assert code == 0, err
    assert "placebo, taken by its name; --control names another one" in " ".join(out.split())
    report = " ".join((tmp_path / "o" / "report.txt").read_text().split())
    assert "drug - placebo" in report and "placebo - drug" not in report
    assert json.loads((tmp_path / "o" / "tree.json").read_text())["design"]["options"]["control"] == "placebo"


def test_the_command_line_and_python_agree_to_the_sentence(tmp_path):
    """The same 445 men and the same settings: one control, one reference, one verdict."""
    code, out, err = run(
        "design", "--dataset", "nsw", "--max-depth", "1", "--min-samples-leaf", "20",
        "--min-samples-per-treatment", "2", "--cv", "2", "--repeats", "2", "--seed", "0", "--json", "-o",
        tmp_path / "out",
    )  # fmt: skip
    assert code == 0, err
    said, study = json.loads(out)["verdict"], load_dataset("nsw").study()
    model = DRPolicyTree(max_depth=1, min_samples_leaf=20, min_samples_per_treatment=2, cv=2, random_state=0).fit(study)
    table = cross_val_policy_value(model, study, cv=2, n_repeats=2, random_state=0)
    found = table.verdict
    assert (said["rule"], said["reference"]) == (found.rule, found.reference) and found.reference == "always control"
    words = replace(found, words=replace(found.words, unit="dollars"))
    assert said["sentence"] == str(words)
    assert "status quo" not in table.estimates and "what people got" not in said["sentence"]
