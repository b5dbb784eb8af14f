"""A rule for other people than those studied, on the command line: what is asked, printed, saved and refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.cli.running import FILES, design, refused, trial

QUICK = ("--max-depth", "1", "--cv", "2", "--repeats", "1", "--exclude", "clinic")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A trial, and older people, some of them from a place that the trial lacks."""
    folder = tmp_path_factory.mktemp("target")
    study, people = trial(), trial(160, seed=9).drop(columns=["arm", "y"])
    people["age"] = people["age"] + 8
    study.to_csv(folder / "trial.csv", index=False)
    people.to_csv(folder / "people.csv", index=False)
    people.assign(region="west").to_csv(folder / "west.csv", index=False)
    people.drop(columns="income").to_csv(folder / "short.csv", index=False)
    people[:0].to_csv(folder / "nobody.csv", index=False)
    people[:1].to_csv(folder / "one.csv", index=False)
    people.assign(age="old").to_csv(folder / "words.csv", index=False)
    people.rename(columns={"income": "age"}).to_csv(folder / "twice.csv", index=False)
    rows = np.random.default_rng(0).permutation(400)
    both = study.assign(enrolled=1).merge(people.assign(enrolled=0), how="outer").iloc[rows]
    both.to_csv(folder / "both.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def designed(files):
    people = ("--target-people", files / "people.csv")
    code, out, err = design(files / "trial.csv", files / "out", "--propensity", "0.5", *QUICK, *people)
    assert code == 0, err
    return files / "out", out


def test_the_report_says_whom_it_is_about(designed):
    folder, out = designed
    assert {path.name for path in folder.iterdir()} == FILES
    text = " ".join((folder / "report.txt").read_text().split())
    assert "The people this is about" in text and "are about the people of the target" in text
    assert "Weighted to the 160 people of the target, the 240 rows of the study are as good as" in text
    assert "effects are learnt from the 240 rows of the study" in text
    assert "would be undone if, at the same covariates, effects in the target were smaller by" in text
    assert "As randomised: the mixture of treatments in the trial" in text
    assert "to everybody else." in " ".join(out.split()) and "400 rows" in out
    assert "of study and target together" in text and "for people of the target" not in text
    assert text.count("outside the study's range in some column (most in age") == 1  # and where else it was heard
    assert "(Likewise in the refits.)" in text and "target_overlap" not in text
    assert '"The people this is about"' in json.dumps(json.loads((folder / "report.json").read_text()))


def test_values_are_those_of_the_target(designed):
    """Helped are those under 40 (+4), others harmed: fewer of the target are that young."""
    table = (designed[0] / "values.csv").read_text().splitlines()
    rows = {line.split(",")[0]: line.split(",") for line in table}
    young = (trial(160, seed=9)["age"] + 8 < 40).mean()
    assert 0.0 < float(rows["policy tree"][1]) < 4 * young
    truth, (value, error) = 4 * young - 4 * (1 - young), map(float, rows["always drug"][1:3])
    assert abs(value - truth) < 3 * error < 1.0


def test_the_depth_is_chosen_for_the_target(files):
    people = ("--target-people", files / "people.csv", "--no-value", "--exclude", "clinic")
    code, out, err = design(files / "trial.csv", files / "auto", "--propensity", "0.5", *people)
    assert code == 0, err
    assert "depth 1 of 0 to 3, chosen by 5-fold" in out
    tree = json.loads((files / "auto" / "tree.json").read_text())
    assert [f for f, left in zip(tree["feature"], tree["children_left"], strict=True) if left > 0] == [0]  # age
    assert "Average effects in the target, by all 240 rows of the study" in " ".join(out.split())


def test_one_file_of_both(files):
    code, _, err = design(
        files / "both.csv", files / "one", "--propensity", "0.5", *QUICK, "--study-column", "enrolled", "--no-value"
    )
    assert code == 0, err
    text = " ".join((files / "one" / "report.txt").read_text().split())
    assert "--study-column enrolled" in text and "240 rows of the study" in text


def test_some_rows_judge(files):
    people = ("--target-people", files / "people.csv")
    quick = ("--max-depth", "1", "--cv", "2", "--exclude", "clinic", "--honest", "0.5")
    code, _, err = design(files / "trial.csv", files / "honest", "--propensity", "0.5", *quick, *people)
    assert code == 0, err
    assert "held out" in (files / "honest" / "leaves.csv").read_text()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--target-people", "short.csv"), "no column 'income', which is a covariate"),
        (("--target-people", "nobody.csv"), "has a header but no rows"),
        (("--target-people", "west.csv"), "holds 'west' (160 rows), which nobody in the study has"),
        (("--target-people", "people.csv", "--study-column", "clinic"), "give one of them"),
        (("--target-people", "people.csv", "--min-samples-per-treatment", "5"), "rule is for the target"),
        (("--target-people", "people.csv", "--instrument", "region"), "--instrument and a target"),
        (("--target-people", "people.csv", "--method", "ipw"), "--method ipw knows no other population; leave it out."),
        (("--target", "people.csv"), "people whom the rule is for goes with --target-people"),
        (("--target-people", "twice.csv"), "has more than one column 'age'"),
        (("--target-people", "words.csv"), "words.csv does not hold numbers, as it does in the study; convert"),
        (("--target-people", "one.csv"), "The target has 1 people, but --cv 2 needs 4; lower --cv or add people"),
        (("--target-people", "absent.csv"), "There is no file"),
        (("--target-people", "rmst"), "rmst"),
        (("--study-column", "clinic"), "must be True (1) for rows of the study"),
        (("--study-column", "enrolled"), "enrolled"),
    ],
)
def test_bad_targets_are_refused(files, more, words):
    named = [files / each if each.endswith(".csv") else each for each in more]
    found = design(files / "trial.csv", files / "refused", *QUICK, *named)
    refused(found, words)
    assert found[1] == "", "before anything is shown"
