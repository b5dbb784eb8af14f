"""Names that people read: made from columns, from a file, on trees and their pictures."""

from __future__ import annotations

import json

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from policytree import PolicyTree, Study, StudyReport
from policytree.diagnostics import target_overlap
from policytree.exceptions import InputError
from policytree.plotting.trees import PolicyTreeDisplay
from policytree.report.content import Fold, Words
from policytree.serialization import save_text, to_json
from policytree.study import Population
from policytree.trees.labels import Label, as_labels, humanized, labelled, labelled_table, read_labels
from policytree.trees.short_thresholds import readable
from policytree.trees.text import export_text
from tests.cli.running import design, refused, run
from tests.report.studies import learner

FILE = 'name,label,unit,values\nage_yrs,"Age, at entry",years,\nsex,,,0=female; 1=male\narm,,,1=Drug;0=Placebo\n'


@pytest.fixture(scope="module")
def tree():
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"age_yrs": rng.integers(20, 80, 300), "sex": rng.integers(0, 2, 300)})
    gain = np.where(X["sex"] == 1, X["age_yrs"] - 50.0, -1.0)
    return readable(PolicyTree(max_depth=2).fit(X, pd.DataFrame({0: np.zeros(300), 1: gain})).tree_, X.to_numpy(float))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("age", "Age"), ("prior_admissions", "Prior admissions"), ("weight_kg", "Weight (kg)"), ("kg", "Kg"),
        ("glucose_mg_per_dl", "Glucose (mg/dl)"), ("eGFR", "eGFR"), ("BMI", "BMI"),
        ("blood.pressure", "Blood pressure"),
        ("bodyMass", "Body mass"), ("x1", "X1"), ("2.5", "2.5"), ("___", "___"), ("", ""), ("HbA1c_pct", "HbA1c (%)"),
        ("time_m", "Time m"), ("bp_min", "Bp min"), ("cost_per_kg", "Cost per kg"),
        ("flow_ml_per_min", "Flow (ml/min)"),
        ("<script>", "<script>"),
    ],
)  # fmt: skip
def test_a_name_is_made_readable(name, text):
    assert str(humanized(name)) == text


def test_labels_of_a_file_stand_in_the_tree_and_its_picture(tree, tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text(FILE, encoding="utf-8-sig")
    shown = labelled(tree, read_labels(path), treatment="arm")
    text = export_text(shown)
    assert "Sex?" in text and "├─ female: " in text and "Age, at entry (years) ≤ " in text
    assert "Drug" in text and "Placebo" in text
    assert "sex" not in text and "_" not in text
    display = PolicyTreeDisplay.from_tree(tree, labels=path)
    assert "Sex?" in {box.get_text() for box in display.boxes_.values()}
    assert display.alt_.startswith("Decision tree. Age, at entry") and "Sex is male" in display.caption_
    plt.close(display.figure_)


def test_a_labelled_tree_gives_every_row_the_same(tree):
    X = np.array([[30.0, 0.0], [30.0, 1.0], [70.0, 1.0], [np.nan, 1.0]])
    np.testing.assert_array_equal(labelled(tree, as_labels({"age_yrs": "Age"})).apply(X), tree.apply(X))


def test_columns_that_would_be_called_the_same_keep_their_names(tree):
    shown = labelled(tree, as_labels({"age_yrs": "Covariate", "sex": Label("Covariate")}))
    assert [feature.name for feature in shown.features] == ["age_yrs", "sex"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("label,unit\nAge,years\n", "must have a column 'name'"),
        ("name,label,colour\nage_yrs,Age,red\n", "must have a column 'name'"),
        ("name,label\nage_yrs,Age\nage_yrs,Years\n", "Line 3 of the labels .* names 'age_yrs' again"),
        ("name,label\n,Age\n", "Line 2 of the labels .* has no name"),
        ("name,label\nage_yrs,Age,years,more\n", "Line 2 of the labels .* too many cells"),
        ("name,values\nsex,female;male\n", "Line 2 of the labels has values 'female;male'; write them as in"),
        ("name,values\nsex,0=f;1=m;0=g\n", "Line 2 of the labels has values '0=f;1=m;0=g', of which one is"),
        ("name,values\nsex,0=f;1=f\n", r"Line 2 of the labels has values '0=f;1=f', .* give every value a meaning"),
        ("", "they have none"),
    ],
)
def test_a_file_that_holds_no_labels_is_refused_with_its_line(text, message, tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_labels(path)


def test_labels_that_fit_nothing_are_refused(tree, tmp_path):
    with pytest.raises(InputError, match="labels name 'agge', and none of the columns, which are 'age_yrs', 'sex'"):
        PolicyTreeDisplay.from_tree(tree, labels={"agge": "Age"})
    with pytest.raises(InputError, match="labels must be 'humanize', the path of a file, or a mapping"):
        as_labels({"age": 3})
    with pytest.raises(InputError, match="labels is empty; give the path of a file, or 'humanize', or leave it out"):
        as_labels(" ")
    with pytest.raises(InputError, match="cannot be read"):
        as_labels(tmp_path / "none.csv")


def test_a_column_with_more_values_than_two_takes_no_names_of_two():
    X = pd.DataFrame({"sex": [0, 1, 2] * 20})
    rewards = pd.DataFrame({"none": np.zeros(60), "drug": np.where(X["sex"] == 0, -1.0, 1.0)})
    model, labels = PolicyTree(max_depth=1).fit(X, rewards), {"sex": Label("Sex", values={"0": "f", "1": "m"})}
    for table in (None, X):
        with pytest.raises(InputError, match="labels name 0 and 1 of column 'sex', of which this tree does not know"):
            PolicyTreeDisplay.from_estimator(model, X=table, labels=labels)
    two = X["sex"] < 2
    model = PolicyTree(max_depth=1).fit(X[two], rewards[two])
    display = PolicyTreeDisplay.from_estimator(model, X=X[two], labels=labels)
    assert "Sex?" in {box.get_text() for box in display.boxes_.values()}
    plt.close(display.figure_)


@pytest.mark.parametrize("values", [{"f": "same", "m": "same"}, {"m": "f"}])
def test_two_values_are_never_called_the_same(values):
    X = pd.DataFrame({"sex": ["f", "m", "o"] * 20})
    rewards = pd.DataFrame({"none": np.zeros(60), "drug": np.where(X["sex"] == "f", -1.0, 1.0)})
    tree = PolicyTree(max_depth=1).fit(X, rewards).tree_
    with pytest.raises(InputError, match=r"labels call two values of column 'sex' '(same|f)'; give every value a mean"):
        labelled(tree, {"sex": Label(values=values)})
    with pytest.raises(InputError, match="labels call two values of column 'sex'"):
        labelled_table(X, {"sex": Label("Sex", values=values)})
    with pytest.raises(InputError, match="labels call two values of column 'arm' 'drug'"):
        labelled(tree, {"arm": Label(values={"none": "drug"})}, treatment="arm")


def test_the_command_prints_what_is_copied_with_the_picture(tree, tmp_path):
    saved, path = tmp_path / "tree.json", tmp_path / "labels.csv"
    save_text(saved, to_json(tree))
    path.write_text(FILE)
    options = ("--width", "column", "--labels", path)
    code, out, err = run("plot", saved, "-o", tmp_path / "tree.pdf", *options)
    assert code == 0 and "The picture is" in err and "The tree has no column 'arm', which the labels name." in err
    assert (
        out.startswith("Caption: Give 1 to people whose Age, at entry (years) is over ")
        and "In words: Decision tree. Age, at entry" in out
    )
    assert "Sex?" in out and "├─ female: " in out
    assert (tmp_path / "tree.pdf").read_bytes().startswith(b"%PDF")
    code, out, _ = run("plot", saved, "-o", tmp_path / "tree.svg", "--labels", "humanize", "--width", "5.5")
    assert code == 0 and "Age (years)" in out and "Sex?" in out and "├─ 0:" in out
    refused(run("plot", saved, "-o", tmp_path / "tree.pdf", "--width", "wide"), "width must be 'column', 'page' or")
    refused(run("plot", saved, "-o", tmp_path / "tree.pdf", "--labels", tmp_path / "no.csv"), "cannot be read")


def labelled_report(**labels):
    rng = np.random.default_rng(8)
    X = pd.DataFrame(
        {
            "age_yrs": rng.integers(20, 80, 300), "sex": rng.integers(0, 2, 300), "stage": rng.integers(1, 4, 300),
            "site": rng.choice(["A", "B"], 300),
        }
    )  # fmt: skip
    gain = np.where(X["sex"] == 1, X["age_yrs"] - 50.0, -1.0)
    T = rng.choice(["drug", "none"], 300)
    Y = pd.Series(gain * (T == "drug") + rng.normal(size=300), name="pain_score")
    model = PolicyTree(max_depth=2).fit(X, pd.DataFrame({"drug": gain, "none": np.zeros(300)}))
    return StudyReport(model, Y, pd.Series(T, name="arm"), X=X, about={"labels": labels}), X


def test_a_report_is_in_words_and_its_tree_in_names(tmp_path):
    report, X = labelled_report(
        age_yrs=Label("Age", "years"), sex=Label(values={"0": "female", "1": "male"}),
        pain_score=Label("pain", "points"),
        stage=Label("Stage", values={"1": "I", "2": "II", "3": "III"}), site=Label("Clinic", values={"A": "Aachen"}),
    )  # fmt: skip
    text, page = " ".join(report.to_text().split()), report.to_html()
    assert "Sex?" in text and "├─ female: " in text and "Age (years) ≤ " in text and "give none" in text
    assert "pain, points" in text and "pain_score" not in text
    assert '"feature": "Sex"' in page and '"value": "female"' in page, "the questionnaire asks in words"
    rows = ["Age (years)", "Clinic=Aachen", "Clinic=B", "Sex=female", "Sex=male"]
    people = dict(report.tables())["Covariates by treatment"]
    assert sorted(people.index) == [*rows, "Stage=I", "Stage=II", "Stage=III", "n"]
    assert [feature.name for feature in report.tree.features] == [*X]


def test_the_tables_of_a_target_are_in_words():
    rng = np.random.default_rng(4)
    people = pd.DataFrame({"age_yrs": rng.integers(20, 80, 300), "town": rng.choice(["A", "B"], 300)})
    people["arm"], people["y"] = rng.choice(["drug", "none"], 300), rng.normal(size=300)
    inside = np.arange(300) < 200
    study = Study(people[inside], treatment="arm", outcome="y", propensity=0.5, population=Population(people[~inside]))
    model = learner(max_depth=1).fit(study)
    overlap = target_overlap(model, people[["age_yrs", "town"]], study=inside)
    labels = {"age_yrs": Label("Age", "years"), "town": Label("Town", values={"A": "Aachen"})}
    section = StudyReport(model, study, results=overlap, about={"labels": labels}).content.section("target")
    balance, columns = next(block for block in section.blocks if isinstance(block, Fold)).blocks
    assert [row[0] for row in columns.rows] == ["Age (years)", "Town"]
    assert {row[0] for row in balance.rows} == {"Age (years)", "Town=Aachen", "Town=B"}
    assert "age_yrs" not in " ".join(block.text for block in section.blocks if isinstance(block, Words))


def test_a_report_refuses_labels_that_it_could_not_show():
    with pytest.raises(InputError, match="labels name 'agge', which is no column; the covariates are 'age_yrs', 'sex'"):
        labelled_report(agge="Age", sex="Sex")
    for name, values, words in (
        ("age_yrs", {"1000": "old"}, "labels name '1000', which no row has, in column 'age_yrs', and do not name '"),
        ("age_yrs", {"30": "thirty"}, "labels name some values, in column 'age_yrs', and do not name '"),
        ("stage", {"1": "I", "2": "II"}, "labels name some values, in column 'stage', and do not name '3', which it"),
        (
            "sex",
            {"1": "male"},
            "labels name some values, in column 'sex', and do not name '0', which it holds; name all",
        ),
        ("site", {"a": "Aachen"}, "labels name 'a', which no row has, in column 'site', and do not name '[AB]'"),
    ):
        with pytest.raises(InputError, match=words):
            labelled_report(**{name: Label(values=values)})
    labelled_report(sex=Label(values={"0": "female", "1": "male", "9": "unknown"}))
    with pytest.raises(InputError, match="labels name values of the treatment 'arm'"):
        labelled_report(arm=Label("Arm", values={"drug": "Aspirin"}))
    report, _ = labelled_report(arm="regimen")
    assert "regimen, 2 treatments" in report.to_text()


def test_design_takes_labels(tmp_path):
    rng = np.random.default_rng(5)
    X = pd.DataFrame({"age_yrs": rng.integers(20, 80, 200), "sex": rng.integers(0, 2, 200)})
    arm = rng.choice(["drug", "none"], 200)
    y = np.where(X["sex"] == 1, 1.0, -1.0) * (arm == "drug") + 0.1 * rng.normal(size=200)
    X.assign(group=arm, y=y).to_csv(tmp_path / "trial.csv", index=False)
    (tmp_path / "labels.csv").write_text(FILE.replace("arm,,,1=Drug;0=Placebo\n", ""))
    options = ("--treatment", "group", "--no-value", "--cv", "2", "--max-depth", "1", "--labels")
    code, out, err = design(tmp_path / "trial.csv", tmp_path / "out", *options, tmp_path / "labels.csv")
    assert code == 0 and "Sex?" in out and "├─ female: " in out, err
    saved = (tmp_path / "out" / "tree.json").read_text()
    assert '"sex"' in saved and "female" not in saved, "predict reads the columns' names"
    assert "Sex=female" in (tmp_path / "out" / "people.csv").read_text()
    coded = X.assign(group=(arm == "drug").astype(int), y=y)
    coded.to_csv(tmp_path / "coded.csv", index=False)
    (tmp_path / "words.csv").write_text("name,label,values\nsex,Sex,0=female; 1=male\ngroup,Therapy,0=none; 1=drug\n")
    named = (*options, tmp_path / "words.csv", "--arm-cost", "drug=0.1")
    code, out, err = design(tmp_path / "coded.csv", tmp_path / "coded", *named)
    assert code == 0 and "Therapy, 2 treatments" in out, err
    tree = json.loads((tmp_path / "coded" / "tree.json").read_text())
    assert sorted(tree["actions"]) == ["drug", "none"], "predict says the words"
    page = json.loads((tmp_path / "coded" / "report.json").read_text())
    (shown,) = (b for s in page["sections"] for b in s["blocks"] if b["block"] == "outline")
    assert {shown["root"][side]["treatment"] for side in ("yes", "no")} == {"drug", "none"}, (
        "the questionnaire's leaves"
    )
    (tmp_path / "words.csv").write_text("name,values\ngroup,1=drug\n")
    refused(design(tmp_path / "coded.csv", tmp_path / "no", *named), "labels name some values, in column 'group'")
    code, _, err = design(tmp_path / "trial.csv", tmp_path / "no", *options, tmp_path / "none.csv")
    assert code == 2 and "cannot be read" in err
    refused(design(tmp_path / "trial.csv", tmp_path / "no", *options, ""), "labels is empty")
    (tmp_path / "labels.csv").write_text("name,label\nsex,Sex\nagge,Age\n")
    refused(design(tmp_path / "trial.csv", tmp_path / "no", *options, tmp_path / "labels.csv"), "labels name 'agge'")
