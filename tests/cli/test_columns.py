"""Options that say what columns are for: outcomes in texts, costs of treatments, what the tree may not see."""

from __future__ import annotations

import io
import json

import numpy as np
import pandas as pd
import pytest

from policytree import DRPolicyTree
from policytree.cli import questions
from policytree.cli.files import for_spreadsheets
from policytree.cli.outcomes import event_meaning
from policytree.cli.study import study_from_dataset, study_from_file
from policytree.cli.study_options import StudyOptions
from policytree.exceptions import InputError
from policytree.study import Event
from tests.cli.running import design, refused, run, trial

QUICK = ("--no-value", "--cv", "2", "--max-depth", "1", "--propensity", "0.5")


@pytest.fixture
def words(tmp_path):
    """A trial whose outcome is died or alive."""
    data = trial()
    path = tmp_path / "words.csv"
    data.assign(y=np.where(data["y"] < 0, "died", "alive")).to_csv(path, index=False)
    return path


def test_an_event_in_words_is_its_zeros_and_ones(words, tmp_path):
    code, out, err = design(words, tmp_path / "out", "--event", "died", "--direction", "minimize", *QUICK)
    assert code == 0, err
    assert "y = died, 1 if died, 0 if alive; lower is better" in " ".join(out.split())
    data = trial()
    data["y"] = (data["y"] < 0).astype(float)
    data.to_csv(tmp_path / "numbers.csv", index=False)
    code, _, err = design(tmp_path / "numbers.csv", tmp_path / "other", "--direction", "minimize", *QUICK)
    assert code == 0, err
    first, second = (json.loads((tmp_path / name / "tree.json").read_text()) for name in ("out", "other"))
    assert first["threshold"] == second["threshold"] and first["action"] == second["action"]
    assert first["certificate"]["objective"] == second["certificate"]["objective"]
    assert (first["design"]["event"], second["design"]["event"]) == ("died", None)


def test_outcomes_in_words_ask_for_what_they_need(words, tmp_path):
    refused(design(words, tmp_path / "o"), "'y' (--outcome) holds texts", "--event alive or --event died")
    refused(design(words, tmp_path / "o", "--event", "dead", "--direction", "minimize"), "'dead'", "alive, died")
    refused(design(words, tmp_path / "o", "--event", "died"), "died", "--direction minimize or maximize")
    asked = ("check", words, "--treatment", "arm", "--outcome", "y", "--event", "died", "--json")
    refused(run(*asked), "--direction minimize or maximize")  # as design refuses it
    code, out, err = run(*asked, "--direction", "minimize")
    assert code == 0, err
    assert json.loads(out)["rows"] == 240


def test_events_of_numbers_and_gaps():
    column = pd.Series([1.0, 2.0, None, 2.0], name="status")
    found = Event(column.name, "2").arguments(column.to_frame())["Y"]
    assert found.tolist()[:2] == [0.0, 1.0] and np.isnan(found[2])
    assert event_meaning(column, "2", "minimize") == "1 if 2, 0 if 1"
    several = pd.Series(["yes ", "no", "unknown", None], name="a")
    found = Event("a", "yes").arguments(several.to_frame())["Y"]
    assert found.tolist()[:3] == [1.0, 0.0, 0.0] and np.isnan(found[3])
    assert event_meaning(several, "yes", "maximize") == "1 if yes, 0 if no, unknown"


def test_exclude_leaves_all_others(csv):
    study, _ = study_from_file(str(csv), StudyOptions("arm", "y", exclude="clinic, region"))
    assert study.covariates == ("age", "income")
    study, _ = study_from_file(str(csv), StudyOptions("arm", "y", exclude="clinic", confounders="region"))
    assert (study.covariates, study.confounders) == (("age", "income"), ("region",))
    refused(design(csv, "o", "--exclude", "regoin"), "'regoin' (--exclude)", "did you mean 'region'?")
    refused(design(csv, "o", "--exclude", "age", "--covariates", "income"), "leave out --exclude")
    whole, less = (study_from_dataset("nsw", None, StudyOptions(exclude=e))[0].covariates for e in (None, "age"))
    assert set(whole) - set(less) == {"age"}


def test_the_tree_asks_about_split_features_only_and_the_models_see_all(csv, tmp_path):
    code, _, err = design(csv, tmp_path / "out", "--split-features", "income,region", *QUICK)
    assert code == 0, err
    saved = json.loads((tmp_path / "out" / "tree.json").read_text())
    data = trial()
    model = DRPolicyTree(max_depth=1, cv=2, random_state=0, split_features=["income", "region"])
    model.fit(data["y"], data["arm"], X=data[["age", "income", "region", "clinic"]], propensity=0.5)
    assert saved["certificate"]["objective"] == pytest.approx(model.objective_value_, rel=1e-12)
    assert saved["features"][saved["feature"][0]]["name"] in ("income", "region")
    refused(design(csv, tmp_path / "o", "--split-features", "y"), "'y' (--split-features)")


def test_arm_costs_are_charged(csv, tmp_path):
    code, out, err = design(csv, tmp_path / "out", "--arm-cost", "drug=100", *QUICK)
    assert code == 0, err
    assert "costs       drug 100.0 (values are net of them)" in out
    saved = json.loads((tmp_path / "out" / "tree.json").read_text())
    assert [saved["actions"][k] for k in saved["action"]] == ["None"]  # nobody gains so much
    assert saved["design"]["arm_costs"] == {"drug": 100.0}
    refused(design(csv, tmp_path / "o", "--arm-cost", "pill=2"), "'pill'", "None, drug")
    refused(design(csv, tmp_path / "o", "--arm-cost", "drug=dear"), "--arm-cost 'drug=dear' cannot be read")
    trial().assign(price=100.0).to_csv(tmp_path / "price.csv", index=False)
    study, _ = study_from_file(str(tmp_path / "price.csv"), StudyOptions("arm", "y", arm_cost=("drug=price",)))
    assert "price" not in study.covariates
    assert study.data.sample_treatment_costs["drug"].tolist() == [100.0] * 240


def test_json_is_all_that_stands_on_standard_output(csv, tmp_path):
    code, out, err = design(csv, tmp_path / "out", "--json", *QUICK)
    assert code == 0, err
    found = json.loads(out)
    assert found["certificate"]["status"] == "optimal" and found["values"] is None
    assert found["files"]["tree.json"] == str(tmp_path / "out" / "tree.json")
    assert sum(leaf["n"] for leaf in found["leaves"]) == 240
    code, out, _ = run("show", tmp_path / "out" / "tree.json", "--json")
    assert code == 0 and json.loads(out)["tree"]["threshold"] == found["tree"]["threshold"]
    code, out, _ = run("report", tmp_path / "out" / "report.json", "--section", "certificate", "--json")
    assert [section["key"] for section in json.loads(out)["sections"]] == ["certificate"]


def test_an_unknown_control_is_refused(csv, tmp_path):
    refused(design(csv, tmp_path / "o", "--control", "placebo"), "'placebo'", "None, drug")


def test_a_question_that_cannot_be_answered_costs_nothing_else(tmp_path, monkeypatch):
    """No bounds for hidden confounders; the report says so and has the rest, of an arm of four rows, too."""

    def cannot(*_, **__):
        raise InputError("propensity is far from the shares that were treated.")

    monkeypatch.setattr(questions, "sensitivity", cannot)
    data = trial(60)
    data["arm"] = ["rare"] * 4 + ["drug", "None"] * 28
    data.to_csv(tmp_path / "few.csv", index=False)
    code, out, err = design(tmp_path / "few.csv", tmp_path / "out", "--cv", "2", "--max-depth", "1", "--repeats", "1")
    assert code == 0, err
    said = " ".join(out.split())
    assert "Could hidden confounding undo it? Not answered: propensity is far from the shares" in said
    assert "Would the tree come again" not in said and "Value, held out" in said


def test_tables_for_spreadsheets():
    table = pd.DataFrame({"arm": ["=1+1", "-5 mg", "+SUM(A1)", "Ålesund"], "@x": [-1.0, 2.0, 3.0, 4.0]})
    written = for_spreadsheets(table)
    assert written.startswith(b"\xef\xbb\xbf") and not for_spreadsheets(table[:3]).startswith(b"\xef")
    again = pd.read_csv(io.BytesIO(written), index_col=0)
    assert again["arm"].tolist() == ["'=1+1", "-5 mg", "'+SUM(A1)", "Ålesund"]
    assert again["'@x"].tolist() == [-1.0, 2.0, 3.0, 4.0]
