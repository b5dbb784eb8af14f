"""Further outcomes, limits and groups on the command line: roles, results, files, and refusals."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

from policytree.cli.study import study_from_dataset
from policytree.cli.study_options import StudyOptions
from tests.cli.running import FILES, design, refused, run

QUICK = ("--max-depth", "1", "--cv", "2", "--repeats", "1", "--propensity", "0.5", "--exclude", "clinic")


def trial_of_harm(n: int = 240, seed: int = 0) -> pd.DataFrame:
    """The drug helps those under 50 and makes some of them sick; men are older; three sites, one of them rare."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n)
    age = rng.integers(20, 70, n) + 8 * (sex == "m")
    arm = rng.choice(["None", "drug"], n)
    frame = pd.DataFrame(
        {
            "age": age, "income": rng.lognormal(10, 0.5, n).round(2), "sex": sex,
            "site": rng.choice(["a", "b", "c"], n, p=[0.6, 0.36, 0.04]), "clinic": rng.integers(0, 40, n), "arm": arm,
        }
    )  # fmt: skip
    young = age < 50
    frame["y"] = ((arm == "drug") * np.where(young, 3.0, -2.0) + rng.normal(size=n)).round(3)
    frame["toxic"] = rng.random(n) < 0.05 + 0.4 * (arm == "drug") * young
    frame["wellbeing"] = (rng.normal(5, 1, n) - 2 * frame["toxic"]).round(1)
    return frame


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("limits")
    trial_of_harm().to_csv(folder / "trial.csv", index=False)
    trial_of_harm(seed=9).to_csv(folder / "new.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def designed(files):
    asked = ("--limit", "toxic=0.15", "--at-least", "wellbeing=4.2", "--also", "income", "--parity", "sex=0.2",
             "--subgroups", "site")  # fmt: skip
    quick = (*QUICK[:-1], "clinic,site")
    options = ("--no-value",)
    code, _, err = design(files / "trial.csv", files / "fit", *quick, *asked, *options)
    assert code == 0, err
    return files / "fit"


def saved(folder) -> dict:
    return json.loads((folder / "tree.json").read_text())["design"]


def test_columns_have_their_roles(designed):
    """Outcomes are no covariates; the tree does not ask about groups that it is to treat alike, models adjust."""
    found = saved(designed)
    assert found["covariates"] == ["age"]
    assert found["confounders"] == ["sex"]
    assert found["options"]["constraints"] == [
        {"kind": "limit", "outcome": "toxic", "value": 0.15, "at_least": False},
        {"kind": "limit", "outcome": "wellbeing", "value": 4.2, "at_least": True},
        {"kind": "share_gap", "column": "sex", "within": 0.2},
    ]
    assert (found["limit"], found["at_least"], found["also"]) == (["toxic=0.15"], ["wellbeing=4.2"], ["income"])
    text = " ".join((designed / "report.txt").read_text().split())
    assert "The tree does not ask about sex, whose groups are compared; the outcome models adjust for it" in text
    assert "Further outcomes (toxic, wellbeing, income) are no covariates" in text
    assert "On the 240 rows that chose the tree, the limits cost" in text
    beside = re.search(r"not to ask about sex costs (\S+) of the mean y on these 240 rows, .* \(proved\)\.", text)
    assert float(beside[1]) >= 0.0


def test_a_named_column_of_groups_may_be_asked_about(files):
    code, _, err = design(
        files / "trial.csv",
        files / "seen",
        *QUICK[:-2],
        "--covariates",
        "age,sex",
        "--worst-group",
        "sex",
        "--no-value",
    )
    assert code == 0, err
    assert saved(files / "seen")["covariates"] == ["age", "sex"]
    assert saved(files / "seen")["options"]["constraints"] == [{"kind": "worst_group", "column": "sex"}]
    assert "The tree may ask about sex" in " ".join((files / "seen" / "report.txt").read_text().split())


def test_columns_of_a_built_in_study_change_their_roles():
    """Its own list of covariates does not keep a further outcome, or groups that are compared, among them."""
    pytest.importorskip("causaldata")
    plain, _ = study_from_dataset("nsw", None, StudyOptions())
    asked, _ = study_from_dataset("nsw", None, StudyOptions(parity=("marr=0.1",), also="re75"))
    assert {"marr", "re75"} <= set(plain.covariates)
    assert set(asked.covariates) == set(plain.covariates) - {"marr", "re75"}
    assert "marr" in asked.confounders
    assert "re75" not in asked.confounders
    given = asked.data
    assert list(given.outcomes) == ["re75"]
    assert list(given.subgroups) == ["marr"]
    assert plain.data.outcomes is None


@pytest.fixture(scope="module")
def judged(files):
    """With held-out values; the limit binds."""
    code, out, err = design(
        files / "trial.csv",
        files / "out",
        *QUICK[:-1],
        "clinic,wellbeing",
        "--limit",
        "toxic=0.15",
        "--parity",
        "sex=0.1",
        "--json",
    )
    assert code == 0, err
    return files / "out", json.loads(out)


def test_harm_and_groups_are_judged_on_rows_that_are_held_out(judged):
    folder, data = judged
    assert {path.name for path in folder.iterdir()} == FILES
    rules = {(row["outcome"], row["rule"]): row for row in data["further_outcomes"]}
    frame = trial_of_harm()
    assert rules["toxic", "as randomised"]["value"] == pytest.approx(frame["toxic"].mean())
    assert rules["toxic", "always None"]["value"] < rules["toxic", "tree without limits"]["value"]
    assert 0.0 <= data["limits"]["kept_probability"]["toxic"] <= 1.0
    assert data["limits"]["outcome_means"]["toxic"] <= 0.15
    assert data["limits"]["price"] > 0
    assert {(row["column"], row["group"]) for row in data["groups"]} == {("sex", "f"), ("sex", "m")}
    assert sum(row["people"] for row in data["groups"]) == len(frame)
    text = " ".join((folder / "report.txt").read_text().split())
    for said in (
        "Held out, the tree's mean of toxic is", "the limit of at most 0.15", "Held out they cost",
        "the value of the tree without limits", "By group of people", "groups of sex differ most in the share of None",
        "Several outcomes are looked at (2, with the main one)",
    ):  # fmt: skip
        assert said in text


def test_new_rows_are_judged_by_what_the_design_asked(files, judged):
    code, out, err = run("evaluate", judged[0] / "tree.json", files / "new.csv", "--cv", "2")
    assert code == 0, err
    text = " ".join(out.split())
    assert "toxic under every rule, held out, limit at most 0.15; by 240 rows" in text
    assert "groups of sex differ most in the share of" in text
    code, out, err = run("evaluate", judged[0] / "tree.json", files / "new.csv", "--cv", "2", "--json",
                         "--limit", "toxic=0.9", "--also", "wellbeing", "--subgroups", "site")  # fmt: skip
    assert code == 0, err
    data = json.loads(out)
    assert data["kept_probability"]["toxic"] == pytest.approx(1.0)
    assert {row["outcome"] for row in data["further_outcomes"]} == {"toxic", "wellbeing"}
    assert {row["column"] for row in data["groups"]} == {"sex", "site"}
    frame = trial_of_harm(seed=9)
    found = {(row["outcome"], row["rule"]): row["value"] for row in data["further_outcomes"]}
    assert found["wellbeing", "as randomised"] == pytest.approx(frame["wellbeing"].mean())


def test_the_front_of_one_limit_stands_in_the_report(files):
    """One limit and nothing else: all trees that no other is as good as are listed."""
    code, _, err = design(
        files / "trial.csv", files / "front", *QUICK[2:-1], "clinic,wellbeing", "--limit", "toxic=0.15",
        "--no-value", "--max-depth", "1",
    )  # fmt: skip
    assert code == 0, err
    text = " ".join((files / "front" / "report.txt").read_text().split())
    assert "Trees that are best at some weight, on the rows that chose them" in text
    page = (files / "front" / "report.html").read_text()
    assert "Which limits cost what: every tree of depth 1 or less that no other is as good as in both" in page
    assert page.count("<title>") > 3


REFUSED = {
    "no number": (["--limit", "toxic"], ["--limit 'toxic' cannot be read", "toxicity=0.1"]),
    "words": (["--limit", "toxic=little"], ["--limit 'toxic=little' cannot be read"]),
    "no column": (["--limit", "toxid=0.1"], ["'toxid' (--limit)", "did you mean 'toxic'?"]),
    "twice": (["--limit", "toxic=0.1", "--limit", "toxic=0.2"], ["names 'toxic' twice"]),
    "infinite": (["--at-least", "toxic=inf"], ["--at-least gives 'toxic' the number inf", "finite"]),
    "both": (["--limit", "toxic=0.1", "--at-least", "toxic=0"], ["--limit and --at-least both name 'toxic'"]),
    "text outcome": (["--limit", "sex=0.1"], ["'sex' (--limit) holds texts (", "make a column of numbers"]),
    "negative gap": (["--parity", "sex=-0.1"], ["--parity gives 'sex' the number -0.1", "at least 0"]),
    "many groups": (["--parity", "income=0.1"], ["--parity: Column 'income'", "cut numbers into a few classes"]),
    "rare group": (["--parity", "site=0.1"], ["Group 'c' of column 'site'", "join it to another group"]),
    "the outcome": (["--also", "y"], ["--also names 'y', which is the outcome"]),
    "the treatment": (["--worst-group", "arm"], ["--worst-group names 'arm', which is the treatment"]),
    "two roles": (["--limit", "toxic=1", "--subgroups", "toxic"], ["--limit names 'toxic'", "one role"]),
    "a covariate": (["--limit", "toxic=1", "--covariates", "age,toxic"], ["--covariates names 'toxic'", "further"]),
    "a confounder": (["--limit", "toxic=1", "--confounders", "toxic"], ["--confounders names 'toxic'", "further"]),
    "too strict": (["--limit", "toxic=-0.5"], ["has a mean of 'toxic' below", "change it to that"]),
}


@pytest.mark.parametrize(("options", "words"), REFUSED.values(), ids=REFUSED)
def test_refusals_name_column_and_remedy(files, tmp_path, options, words):
    quick = QUICK[:-2] if "--covariates" in options else QUICK
    refused(design(files / "trial.csv", tmp_path / "out", *quick, *options), *words)
    assert not (tmp_path / "out").exists()


def test_gaps_of_a_further_outcome_are_counted_as_the_file_has_them(files, tmp_path):
    frame = trial_of_harm()
    frame["wellbeing"] = frame["wellbeing"].where(frame.index % 50 != 7)
    frame.to_csv(tmp_path / "gaps.csv", index=False)
    refused(
        design(tmp_path / "gaps.csv", tmp_path / "out", *QUICK, "--also", "wellbeing"),
        "'wellbeing' (--also) has no value in 5 of 240 rows", "row 8 below the header", "--missing-outcome weight",
    )  # fmt: skip
