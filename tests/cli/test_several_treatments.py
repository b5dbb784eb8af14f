"""Several treatments at once on the command line: design, evaluate, predict and check of a factorial trial."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from tests.cli.running import refused, run

OPTIONS = ("--treatment", "drug,physio", "--outcome", "y")


def factorial(n: int, seed: int) -> pd.DataFrame:
    """A trial of 2 x 2: the drug helps the young, physiotherapy the old."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"age": rng.integers(20, 80, n), "weight": rng.normal(75, 12, n).round()})
    frame["drug"], frame["physio"] = rng.integers(0, 2, n), rng.choice(["yes", "no"], n)
    old = frame["age"] >= 50
    effects = frame["drug"] * np.where(old, -2.0, 3.0) + (frame["physio"] == "yes") * np.where(old, 3.0, -2.0)
    frame["y"] = (effects + rng.normal(size=n)).round(3)
    return frame


@pytest.fixture(scope="module")
def designed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("factorial")
    factorial(400, 0).to_csv(folder / "trial.csv", index=False)
    result = run(
        "design", folder / "trial.csv", *OPTIONS, "--propensity", "drug=0.5,physio=0.5", "--max-depth", "1", "--cv",
        "2", "--honest", "0.5", "--stability", "0", "-o", folder / "out",
    )  # fmt: skip
    assert result[0] == 0, result[2]
    return folder, result[1]


def test_design_has_combined_arms_and_the_effect_of_each_treatment(designed):
    folder, out = designed
    words = " ".join(out.split())
    assert "treatment drug and physio, 4 treatments" in words
    assert "control neither, where every treatment is at its control" in words
    assert "covariates age, weight" in words
    assert "propensity known: neither 0.25, physio 0.25, drug 0.25, drug + physio 0.25" in words
    assert "Effect of each treatment in the leaf against its control" in words
    leaves = pd.read_csv(folder / "out" / "leaves.csv")
    assert leaves["arm"].tolist() == ["drug", "physio"]
    assert (leaves["effect_lower_drug"] > 0).tolist() == (leaves["effect_upper_physio"] < 0).tolist() == [True, False]
    page = (folder / "out" / "report.html").read_text(encoding="utf-8")
    assert "Effects of each treatment in the leaves, held out" in page


def test_the_saved_tree_is_applied_and_judged_on_files_with_the_columns(designed):
    folder, _ = designed
    new = factorial(300, 1)
    new.to_csv(folder / "new.csv", index=False)
    tree = folder / "out" / "tree.json"
    design = json.loads(tree.read_text(encoding="utf-8"))["design"]
    assert design["factors"] == ["drug", "physio"]
    code, out, err = run("predict", tree, folder / "new.csv")
    assert code == 0, err
    given = out.splitlines()[1:]
    assert [line.split(",")[-1] for line in given] == ["drug" if age < 50 else "physio" for age in new["age"]]
    for more in ((), ("--treatment", "physio,drug", "--propensity", "physio=0.5,drug=0.5")):
        code, out, err = run("evaluate", tree, folder / "new.csv", "--cv", "2", *more)
        assert code == 0, err
        assert "always drug + physio" in out and "Use the policy tree" in " ".join(out.split())
        assert "The shares of treatments fit the stated probabilities" in " ".join(out.split())
    refused(run("evaluate", tree, folder / "trial.csv"), "holds the very rows that chose this tree")
    new[new["drug"] == 0].to_csv(folder / "half.csv", index=False)
    refused(run("evaluate", tree, folder / "half.csv"), "gives 'drug', which nobody in column 'drug and physio'")


def test_check_finds_empty_combinations(designed):
    folder, _ = designed
    frame = factorial(400, 0)
    frame[(frame["drug"] == 0) | (frame["physio"] == "no")].to_csv(folder / "empty.csv", index=False)
    code, out, err = run("check", folder / "empty.csv", *OPTIONS)
    assert code == 0, err
    assert "Warning: Treatment has nobody who got drug + physio. No tree can recommend it" in " ".join(out.split())


def test_names_with_commas_are_quoted(designed):
    folder, _ = designed
    frame = factorial(400, 0).rename(columns={"drug": "drug, oral"})
    frame.to_csv(folder / "comma.csv", index=False)
    code, out, err = run("check", folder / "comma.csv", "--treatment", '"drug, oral",physio', "--outcome", "y")
    assert code == 0, err
    assert "treatment drug, oral and physio, 4 treatments" in " ".join(out.split())
    code, out, err = run("check", folder / "comma.csv", "--treatment", "drug, oral", "--outcome", "y")
    assert code == 0 and "treatment drug, oral, 2 treatments" in " ".join(out.split()), err
    refused(
        run("check", folder / "comma.csv", "--treatment", "drug,physio", "--outcome", "y"),
        "write a name that holds a comma in double quotes",
    )


def test_refusals(designed):
    folder, _ = designed
    path = folder / "trial.csv"
    for options, words in (
        (("--treatment", "drug,phisio", "--outcome", "y"), "There is no column 'phisio' (--treatment); did you mean"),
        ((*OPTIONS, "--covariates", "age,drug"), "--covariates names 'drug', which is the treatment"),
        ((*OPTIONS, "--confounders", "physio"), "--confounders names 'physio', which is the treatment"),
        (("--treatment", "drug,y", "--outcome", "y"), "--outcome names 'y', which is the treatment"),
        ((*OPTIONS, "--propensity", "drug=0.5,physio=1.5"), "--propensity of physio is 1.5; it must lie strictly"),
        ((*OPTIONS, "--propensity", "drug=0.5"), "There is no chance of physio; give one for each treatment"),
    ):
        refused(run("design", path, *options, "-o", folder / "no"), words)
    frame = factorial(400, 0)
    frame.loc[3, "physio"] = None
    frame.to_csv(folder / "gap.csv", index=False)
    refused(run("check", folder / "gap.csv", *OPTIONS), "Column 'physio' (--treatment) has no value in 1 of 400 rows")


def test_chances_of_levels(tmp_path):
    rng = np.random.default_rng(0)
    frame = factorial(300, 2).drop(columns="drug").assign(dose=rng.choice(["none", "low", "high"], 300))
    frame.to_csv(tmp_path / "trial.csv", index=False)
    chances = "dose:none=0.5,dose:low=0.3,dose:high=0.2,physio=0.5"
    code, out, err = run(
        "design", tmp_path / "trial.csv", "--treatment", "dose,physio", "--outcome", "y", "--propensity", chances,
        "--max-depth", "0", "--cv", "2", "--no-value", "--stability", "0", "-o", tmp_path / "out",
    )  # fmt: skip
    assert code == 0, err
    assert "high + physio 0.1" in " ".join(out.split()) and "control neither" in " ".join(out.split())
    design = json.loads((tmp_path / "out" / "tree.json").read_text(encoding="utf-8"))["design"]
    assert "high + physio=0.1" in design["propensity_option"]
    assert not (tmp_path / "out" / "tree.png").exists(), "there is no tree to draw"
