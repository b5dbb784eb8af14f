"""Output, files and options of ``policytree design``."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

from policytree import DRPolicyTree
from policytree.cli.study import study_from_dataset, study_from_file
from policytree.cli.study_options import StudyOptions
from policytree.exceptions import InputError
from policytree.serialization import from_json
from tests.cli.running import FILES, ROOT, design, process, refused, run, trial

ANY_LEAF = ("--min-samples-per-treatment", "0")


def flat(text: str) -> str:
    """Without breaks of lines."""
    return " ".join(text.split())


# Output and files of a whole run


def test_design_writes_every_file_and_names_it(designed):
    folder, out, _ = designed
    assert {path.name for path in (folder / "out").iterdir()} == FILES
    for name in FILES:
        assert name in out


def test_design_prints_data_certificate_and_progress(designed):
    _, out, err = designed
    data = trial()
    assert f"240 in {data['clinic'].nunique()} clusters (clinic)" in out
    assert "covariates  age, income, region" in out
    assert "known: 0.5 for drug" in out
    for arm in ("None", "drug"):
        assert f"{data.loc[data['arm'] == arm, 'y'].mean():.3f}" in out.split("Policy tree")[0]
    assert "optimal: no tree of depth 1 or less and 16 rows or more in every leaf and 8 of every treatment" in flat(out)
    assert "10 of 10" in err  # two folds, five times


def test_designed_tree_is_the_known_rule(designed):
    folder, _, _ = designed
    tree = from_json((folder / "out" / "tree.json").read_text())
    ages = trial()["age"]
    assert tree.features[tree.feature[0]].name == "age"
    assert ages[ages < 40].max() <= tree.threshold[0] < ages[ages >= 40].min()
    assert [tree.actions[k] for k in tree.action[1:]] == ["drug", "None"]


def test_value_table_finds_the_known_values(designed):
    folder, out, _ = designed
    values = pd.read_csv(folder / "out" / "values.csv", index_col="rule")
    data = trial()
    truth = {
        "policy tree": 4.0 * (data["age"] < 40).mean(),
        "always drug": np.where(data["age"] < 40, 4.0, -4.0).mean(),
        "always None": 0.0,
    }
    assert set(values.index) == {*truth, "as randomised", "plug-in rule"}
    for rule, value in truth.items():
        assert abs(values.loc[rule, "value"] - value) < 4 * values.loc[rule, "standard_error"]
    # From some 48 rows an arm the outcome model is a straight line, which meets the step at 40 only about.
    plug_in = values.loc["plug-in rule"]
    assert truth["always None"] < plug_in["value"] < truth["policy tree"] + 4 * plug_in["standard_error"]
    assert values.loc["as randomised", "value"] == pytest.approx(data["y"].mean())
    difference = values.loc["policy tree", "value"] - values.loc["always drug", "value"]
    assert values.loc["always drug", "difference"] == pytest.approx(difference)
    for rule in values.index:
        assert rule in out.split("Value, held out")[1]


def test_report_and_picture_and_leaves(designed):
    folder, out, _ = designed
    report = (folder / "out" / "report.txt").read_text()
    assert "age ≤" in report
    page = (folder / "out" / "report.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 4 and "to people whose age is " in page
    command = "policytree design trial.csv --treatment arm --outcome y --propensity 0.5 --cluster clinic --max-depth 1"
    assert command in " ".join(report.split()).replace(f"{folder}/", "")
    assert {line for line in out.splitlines() if line != line.rstrip()} == set()
    assert (folder / "out" / "tree.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "out" / "tree.pdf").read_bytes().startswith(b"%PDF")
    leaves = pd.read_csv(folder / "out" / "leaves.csv")
    assert leaves["n"].sum() == 240
    assert list(leaves["arm"]) == ["drug", "None"] or leaves["arm"].isna().any()  # pandas reads None as missing
    assert max(map(len, out.splitlines())) <= 80


def test_tree_file_says_how_it_came_about(designed):
    folder, _, _ = designed
    saved = json.loads((folder / "out" / "tree.json").read_text())
    assert saved["certificate"]["status"] == "optimal"
    assert saved["certificate"]["gap"] == 0.0
    assert saved["design"]["covariates"] == ["age", "income", "region"]
    assert saved["design"]["options"]["max_depth"] == 1


def test_same_numbers_as_the_library(designed):
    folder, _, _ = designed
    data = trial()
    estimator = DRPolicyTree(max_depth=1, cv=2, random_state=0).fit(
        data["y"], data["arm"], X=data[["age", "income", "region"]], propensity=0.5, groups=data["clinic"]
    )
    saved = json.loads((folder / "out" / "tree.json").read_text())
    assert saved["certificate"]["objective"] == pytest.approx(estimator.objective_value_, rel=1e-12)


def test_second_run_replaces_files_and_drops_the_table_it_has_not(csv, tmp_path):
    folder = tmp_path / "deep" / "out"
    folder.mkdir(parents=True)
    for name in ("values.csv", "tree.json", "mine.txt"):
        (folder / name).write_text("old")
    code, out, err = design(csv, folder, "--no-value", "--max-depth", "1", "--cv", "2", "--propensity", "0.5")
    assert code == 0, err
    assert {path.name for path in folder.iterdir()} == (FILES - {"values.csv"}) | {"mine.txt"}
    assert from_json((folder / "tree.json").read_text()).n_leaves == 2
    assert "Not computed (--no-value)" in out


def test_minimize_is_maximize_of_the_negative(tmp_path):
    trees = []
    for sign, direction in ((1, "maximize"), (-1, "minimize")):
        data = trial()
        data["y"] *= sign
        data.to_csv(tmp_path / "trial.csv", index=False)
        code, out, err = design(
            tmp_path / "trial.csv", tmp_path / "out", "--direction", direction, "--no-value", "--cv", "2",
            "--max-depth", "1", "--propensity", "None=0.5,drug=0.5",
        )  # fmt: skip
        assert code == 0, err
        assert ("higher" if sign == 1 else "lower") + " is better" in out
        trees.append(json.loads((tmp_path / "out" / "tree.json").read_text()))
    assert trees[0]["threshold"] == trees[1]["threshold"]
    assert trees[0]["action"] == trees[1]["action"]
    assert trees[0]["certificate"]["objective"] == pytest.approx(-trees[1]["certificate"]["objective"], rel=1e-6)


@pytest.mark.parametrize("ending", ["parquet", "csv.gz", "semicolon.csv"])
def test_other_files_give_the_same_study(tmp_path, csv, ending):
    path = tmp_path / f"other.{ending}"
    if ending == "parquet":
        trial().to_parquet(path)
    else:
        trial().to_csv(path, index=False, sep=";" if "semicolon" in ending else ",")
    first, second = (study_from_file(str(p), StudyOptions("arm", "y"))[0] for p in (csv, path))
    pd.testing.assert_frame_equal(first.table, second.table, check_dtype=False)
    assert first.covariates == second.covariates == ("age", "income", "region", "clinic")


# Meaning of the options


def test_none_is_an_arm_but_no_number(tmp_path):
    data = trial()
    data["income"] = data["income"].astype(str)
    data.loc[3, "income"] = "None"
    data.to_csv(tmp_path / "trial.csv", index=False)
    study, _ = study_from_file(str(tmp_path / "trial.csv"), StudyOptions("arm", "y"))
    assert list(study.observed.treatments) == ["None", "drug"]
    assert study.table["income"].dtype == np.float64
    assert np.flatnonzero(study.table["income"].isna()).tolist() == [3]


def test_default_covariates_leave_out_roles_and_names(tmp_path):
    data = trial().assign(name=[f"person {i}" for i in range(240)], p=0.5, w=1.0, row=range(240))
    data.to_csv(tmp_path / "trial.csv", index=False)
    roles = StudyOptions("arm", "y", confounders="region", propensity="p", cluster="clinic", weights="w")
    study, origin = study_from_file(str(tmp_path / "trial.csv"), roles)
    assert study.covariates == ("age", "income", "row")
    assert study.confounders == ("region",)
    assert any("'name'" in note for note in origin.notes)
    check = study.check()
    assert [f.found for f in check.findings if f.column == "row"] == ["numbers the rows"]


def test_propensity_forms(tmp_path):
    data = trial().assign(p=0.3, q=0.7)
    data.to_csv(tmp_path / "trial.csv", index=False)

    def propensity(text):
        return study_from_file(str(tmp_path / "trial.csv"), StudyOptions("arm", "y", propensity=text))[
            0
        ].data.propensity

    assert propensity("0.5") == 0.5
    with pytest.raises(InputError, match=r"drug=0.3,None=0.7.*the shares are None 0.5"):
        propensity("0.3")
    assert propensity("drug=0.3, None=0.7") == {"drug": 0.3, "None": 0.7}
    assert (propensity("p") == 0.3).all()
    table = propensity("drug=p,None=q")
    assert table[["drug", "None"]].iloc[0].tolist() == [0.3, 0.7]
    assert propensity(None) is None


def test_every_role_reaches_the_fit(tmp_path):
    data = trial().assign(p=0.3, w=np.arange(1.0, 241.0))
    data.to_csv(tmp_path / "trial.csv", index=False)
    roles = StudyOptions(
        "arm", "y", covariates="age, income", confounders="region", propensity="p", cluster="clinic", weights="w",
        direction="minimize",
    )  # fmt: skip
    study, _ = study_from_file(str(tmp_path / "trial.csv"), roles)
    data = study.data
    assert study.direction == "minimize"
    for column, found in {"y": data.y, "p": data.propensity, "w": data.sample_weight, "clinic": data.labels}.items():
        assert found.tolist() == study.table[column].tolist()
    assert data.received().tolist() == study.table["arm"].tolist()
    assert list(data.X) == ["age", "income"]
    assert list(data.W) == ["region"]


def test_options_come_before_what_a_built_in_study_says():
    study, _ = study_from_dataset("rand-hie", None, StudyOptions())
    assert (study.treatment.column, study.outcome.column, study.direction) == ("plan", "visits", "minimize")
    assert (study.cluster, study.confounders) == ("household", ("site", "black"))
    roles = StudyOptions(treatment="coinsurance", outcome="spending", covariates="age,site", cluster="person")
    other, _ = study_from_dataset("rand-hie", None, roles)
    assert list(other.observed.treatments) == [0, 25, 50, 95, 100]
    assert (other.outcome.column, other.cluster) == ("spending", "person")
    assert (other.covariates, other.confounders) == (("age", "site"), ("black",))
    assert "dollars" in other.unit


def test_time_limit_keeps_a_tree_and_says_so(csv, tmp_path):
    code, out, err = design(
        csv,
        tmp_path / "out",
        "--time-limit",
        "0",
        "--max-depth",
        "4",
        "--no-value",
        "--cv",
        "2",
        "--propensity",
        "0.5",
        *ANY_LEAF,
    )
    assert code == 0, err
    assert "time limit: a better tree of depth 4 or less may exist" in out
    assert "Warnings" in out
    certificate = json.loads((tmp_path / "out" / "tree.json").read_text())["certificate"]
    assert certificate["status"] == "time limit"
    assert certificate["bound"] >= certificate["objective"]


@pytest.mark.slow
def test_the_readme_shows_what_its_command_prints(tmp_path):
    """Figures within half a standard error: other machines round otherwise, other versions must not tell otherwise.

    One repetition of the cross-validation instead of five: other folds move a value by some fifth of its
    standard error.
    """
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    command = re.search(r"^ +policytree (design --dataset .*)", readme, re.MULTILINE)[1].split()
    running = process(*command, "--repeats", "1", "-o", "out", cwd=tmp_path)
    out, err = running.communicate(timeout=600)
    assert running.returncode == 0, err
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES
    assert "16,154 in 1,449 clusters (household)" in out
    assert "optimal: no tree of depth 3 or less and 162 rows or more in every leaf" in flat(out)
    values = pd.read_csv(tmp_path / "out" / "values.csv", index_col="rule")
    arms = {f"always {arm}" for arm in ("25%", "50%", "95%", "deductible", "free")}
    assert set(values.index) == {"policy tree", "as randomised", "plug-in rule"} | arms
    for rule in values.index:
        shown = float(re.search(rf"^ +{rule} +(\d\.\d+) ", readme, re.MULTILINE)[1])
        assert abs(shown - values.loc[rule, "value"]) < 0.5 * values.loc[rule, "standard_error"], rule
    flattered = float(re.search(r"objective +(\d\.\d+)", readme)[1])
    assert flattered == pytest.approx(float(re.search(r"objective +(\d\.\d+)", out)[1]), abs=0.02)
    # Free care raises use (Manning et al. 1987); the tree, which seeks few visits, must beat it clearly.
    assert values.loc["always free", "difference_upper"] < 0
    assert values.loc["as randomised", "difference_upper"] < 0
    assert max(map(len, out.splitlines())) <= 80


def test_leaves_costs_of_questions_and_the_first_one(csv, tmp_path):
    code, out, err = design(
        csv, tmp_path / "out", "--no-value", "--cv", "2", "--propensity", "0.5", "--regularization", "0.01",
        "--max-leaf-nodes", "3", "--feature-cost", "age=0.25", "--feature-cost", "income = 0.5",
        "--root-feature", "income, region", *ANY_LEAF,
    )  # fmt: skip
    assert code == 0, err
    words = " ".join(out.split())
    assert "no tree of depth 2 or less and at most 3 leaves that begins with income or region is better" in words
    assert "less 0.01 per leaf and what its questions cost: flattered" in words
    saved = json.loads((tmp_path / "out" / "tree.json").read_text())
    options, tree = saved["design"]["options"], from_json((tmp_path / "out" / "tree.json").read_text())
    assert options["feature_costs"] == {"age": 0.25, "income": 0.5} and options["root_feature"] == ["income", "region"]
    assert tree.n_leaves == 3 and tree.features[tree.feature[0]].name == "region"
    asked = tree.n_node_samples[tree.feature == 0].sum() / tree.n_node_samples[0]
    assert saved["certificate"]["expected_cost"] == pytest.approx(0.25 * asked)
    assert f"cost {0.25 * asked:.4f}"[:10] in words and "held-out values leave it out" in words


def test_a_budget_and_shares(csv, tmp_path):
    code, out, err = design(
        csv, tmp_path / "out", "--no-value", "--cv", "2", "--propensity", "0.5", "--budget", "1.5", "--budget-cost",
        "drug=10", "--max-share", "drug=0.4", "--max-depth", "2", *ANY_LEAF,
    )  # fmt: skip
    assert code == 0, err
    words = " ".join(out.split())
    assert "no tree of depth 2 or less within the limits is better" in words
    assert "within 1.5" in words
    saved = json.loads((tmp_path / "out" / "tree.json").read_text())
    assert saved["design"]["options"]["budget_costs"] == {"drug": 10.0}
    tree = from_json((tmp_path / "out" / "tree.json").read_text())
    treated = tree.n_node_samples[tree.is_leaf & (np.array(tree.actions)[tree.action] == "drug")].sum()
    assert 0 < treated <= 0.15 * tree.n_node_samples[0]


def test_a_limit_of_what_questions_cost(csv, tmp_path):
    """Prices are in any unit: they are limited, not charged; a group is paid for once."""
    options = [
        "--no-value", "--cv", "2", "--propensity", "0.5", "--max-depth", "2", "--feature-cost", "age=6",
        "--feature-cost", "income=8",
    ]  # fmt: skip
    code, out, err = design(
        csv, tmp_path / "out", *options, "--feature-group", "age, income", "--max-expected-cost", "6.5", *ANY_LEAF
    )
    assert code == 0, err
    words = " ".join(out.split())
    assert "no tree of depth 2 or less within the limits is better" in words
    assert "a row on average, within 6.5" in words and "what its questions cost: flattered" not in words
    saved = json.loads((tmp_path / "out" / "tree.json").read_text())
    chosen = saved["design"]["options"]
    assert chosen["feature_groups"] == [["age", "income"]] and chosen["repeated_features"] == "free"
    assert saved["certificate"]["expected_cost"] <= 6.5
    code, out, err = design(csv, tmp_path / "again", *options, "--repeated-features", "free")
    assert code == 0, err
    assert "less what its questions cost" in " ".join(out.split())


# The verdict, and who judges


def test_the_verdict_stands_before_the_tree_and_in_the_files(designed):
    folder, out, _ = designed
    assert out.index("Verdict") < out.index("Policy tree") < out.index("Value, held out") < out.index("Certificate")
    words = " ".join(out.split())
    assert "more y per person than if everybody gets None, the control (95% CI" in words
    assert words.count("optimal") == 1, "said of the search only"
    saved = json.loads((folder / "out" / "tree.json").read_text())
    assert saved["verdict"]["rule"] == "policy tree" and "Fragile: nobody said whether more" in words
    assert "leaf_values" not in saved and "held_out_leaf_values" not in saved
    assert "cross-fitting over 2 folds, repeated 5 times" in words and "10 rules" in words


def test_the_report_says_how_rules_flatter_themselves(designed):
    folder, out, _ = designed
    assert out.index("Value, held out") < out.index("Optimism") < out.index("Files in")
    values = pd.read_csv(folder / "out" / "values.csv", index_col="rule")
    gap = values["training_value"] - values["value"]
    learnt = ["policy tree", "plug-in rule"]
    np.testing.assert_allclose(values.loc[learnt, "optimism"], gap[learnt], atol=1e-9)
    assert values["optimism"].isna().sum() == len(values) - 2 and values.loc["policy tree", "optimism_lower"] < np.inf
    row = re.search(r"^ +policy tree .*\+?-?\d.*\[.*\]$", out[out.index("Optimism") :], re.MULTILINE)[0]
    assert f"{values.loc['policy tree', 'training_value']:.2f}" in row


def test_values_of_training_rows_say_so_in_the_file(designed):
    folder, _, _ = designed
    header = (folder / "out" / "leaves.csv").read_text().splitlines()[0].split(",")
    assert "training_value_drug" in header and "training_gain_value" in header and "value_drug" not in header
    assert not any(name.startswith(("lower", "upper")) for name in header), "no interval on rows that chose the tree"


def test_honest_rows_judge_the_tree_that_is_shown(csv, tmp_path):
    code, out, err = design(
        csv, tmp_path / "out", "--honest", "0.5", "--cv", "2", "--max-depth", "1", "--propensity", "0.5"
    )
    assert code == 0, err
    words = " ".join(out.split())
    assert "Leaves, held out" in out and "By 120 rows that did not choose the tree" in words
    assert "A rule learnt from all rows, or from other rows, was not judged" in words
    leaves = pd.read_csv(tmp_path / "out" / "leaves.csv", keep_default_na=False)
    assert set(leaves["rows"]) == {"held out"} and leaves["n"].sum() == 120
    assert (leaves["gain_over_best_lower"].astype(float) > 0).all(), "drug helps the young and harms the old, by 4"
    saved = json.loads((tmp_path / "out" / "tree.json").read_text())
    values = pd.read_csv(tmp_path / "out" / "values.csv", index_col="rule")
    shares = leaves["share"] @ [saved["held_out_leaf_values"][str(leaf)]["value"] for leaf in leaves["leaf"]]
    assert values.loc["policy tree", "value"] == pytest.approx(shares, rel=1e-9), "the same tree on the same rows"
    assert saved["design"]["options"]["honest"] == 0.5
    code, _, err = run("plot", tmp_path / "out" / "tree.json", "-o", tmp_path / "again.png")
    assert code == 0, err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--validation", "sequential"], "sequential validation: 2 blocks"),
        (["--validation", "split"], "a single split"),
        (["--repeats", "2"], "repeated 2 times"),
    ],
)
def test_other_ways_to_hold_rows_out(csv, tmp_path, options, said):
    code, out, err = design(csv, tmp_path / "out", *options, "--cv", "2", "--max-depth", "1", "--propensity", "0.5")
    assert code == 0, err
    assert said in " ".join(out.split())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--validation", "nested"], ["--validation must be repeated, sequential or split", "nested"]),
        (["--repeats", "0"], ["--repeats must be a whole number of at least 1, or adaptive"]),
        (["--repeats", "many"], ["--repeats must be", "many"]),
        (["--validation", "split", "--repeats", "2"], ["--repeats goes with --validation repeated"]),
        (["--honest", "1.5"], ["--honest must be a share from 0.1 to 0.9"]),
        (["--honest", "0.5", "--no-value"], ["leave out --validation, --repeats and --no-value"]),
    ],
)
def test_ways_to_hold_rows_out_that_do_not_fit_are_refused(csv, tmp_path, options, words):
    refused(design(csv, tmp_path / "out", *options), *words)
    assert not (tmp_path / "out").exists()


def test_people_name_what_the_report_shows(csv, tmp_path):
    code, out, err = design(
        csv, tmp_path / "out", "--no-value", "--cv", "2", "--max-depth", "1", "--title", "Drugs, for whom?", "--unit",
        "points", "--outcome-label", "well-being", "--treatment-label", "medicine",
    )  # fmt: skip
    assert code == 0, err
    assert "outcome     well-being, points; higher is better" in out and "treatment   medicine, 2 treatments" in out
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["title"] == "Drugs, for whom?" and "well-being" in report["subtitle"]
    saved = json.loads((tmp_path / "out" / "tree.json").read_text())["design"]
    assert (saved["outcome"], saved["treatment"]) == ("y", "arm")  # columns keep their names


def test_the_smallest_leaves_are_said_and_can_be_any(csv, tmp_path):
    quick = ("--no-value", "--cv", "2", "--propensity", "0.5")
    code, out, err = design(csv, tmp_path / "out", *quick)
    assert code == 0, err
    assert "Every leaf holds at least 16 rows, and 8 of every treatment" in flat(out)
    saved = json.loads((tmp_path / "out" / "tree.json").read_text())
    assert min(n for n, f in zip(saved["n_node_samples"], saved["feature"], strict=True) if f < 0) >= 16
    code, out, err = design(csv, tmp_path / "any", *quick, *ANY_LEAF)
    assert code == 0, err
    options = json.loads((tmp_path / "any" / "tree.json").read_text())["design"]["options"]
    assert (options["min_samples_leaf"], options["min_samples_per_treatment"]) == (1, 0)


def test_a_tree_that_is_not_recommended_says_so_everywhere(tmp_path):
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"age": rng.integers(20, 80, 160), "arm": np.resize(["drug", "placebo"], 160)})
    frame["y"] = rng.normal(size=160)
    frame.to_csv(tmp_path / "trial.csv", index=False)
    code, out, err = run(
        "design", tmp_path / "trial.csv", "--treatment", "arm", "--outcome", "y", "--cv", "2", "--max-depth", "1",
        "--repeats", "1", "--stability", "0", "-o", tmp_path / "out",
    )  # fmt: skip
    assert code == 0, err
    assert "No treatment and no tree is shown better than placebo, the control" in flat(out)
    assert "Policy tree (not recommended)" in out and "treatment looks randomised" in flat(out).lower()
    saved = json.loads((tmp_path / "out" / "tree.json").read_text())
    assert saved["verdict"]["rule"] == "always placebo" and saved["verdict"]["reference"] == "always placebo"
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Show the tree anyway" in page and page.index("Means by treatment</h2>") < page.index(
        "(not recommended)</h2>"
    )


def test_the_depth_is_chosen_by_the_data_unless_it_is_given(csv, tmp_path):
    options = ("--propensity", "0.5", "--cv", "2", "--repeats", "1", "--stability", "0")
    code, out, err = design(csv, tmp_path / "out", *options)
    assert code == 0, err
    words = " ".join(out.split())
    assert "depth depth 1 of 0 to 3, chosen by 5-fold cross-validated value, 2 times" in words
    assert "no tree of depth 1 or less" in words and "per leaf: flattered" in words
    saved = json.loads((tmp_path / "out" / "tree.json").read_text())
    assert saved["design"]["options"]["max_depth"] == "auto"
    section = json.loads((tmp_path / "out" / "report.json").read_text())["sections"]
    depth = next(part for part in section if part["key"] == "depth")
    assert depth["folded"] and [block["block"] for block in depth["blocks"]] == ["words", "picture", "table"]
    for wrong in ("two", "-1", "1.5", "9" * 30):
        code, _, err = design(csv, tmp_path / "no", "--max-depth", wrong)
        assert code == 2 and "--max-depth must be a whole number >= 0, or auto" in err


def test_no_budget_is_drawn_where_nothing_was_said_to_cost(designed):
    folder, _, _ = designed
    report = (folder / "out" / "report.txt").read_text()
    assert "Whom first?" in report and "budget" not in report.split("Whom first?")[1].split("Hidden")[0]


def test_the_fewest_leaves_are_chosen_on_request(csv, tmp_path):
    how = ("--cv", "2", "--repeats", "1", "--propensity", "0.5")
    code, _, err = design(csv, tmp_path / "out", "--max-leaf-nodes", "auto", *how)
    assert code == 0, err
    assert from_json((tmp_path / "out" / "tree.json").read_text()).n_leaves == 2
    text = flat((tmp_path / "out" / "report.txt").read_text())
    assert "; at most 2 leaves that ask about" in text
    assert "the fewest whose value is within a quarter of a standard error" in text
    assert "The tree asks only about stable columns, those that recur in nine of ten trees" in text
    refused(design(csv, tmp_path / "no", "--max-depth", "1", "--max-leaf-nodes", "auto"), "goes with --max-depth auto")


QUICK_TREE = ("--max-depth", "2", "--no-value", "--cv", "2", "--propensity", "0.5", *ANY_LEAF)


@pytest.mark.parametrize("solver", ["duplication", "sampling", "direct"])
def test_solvers_and_guesses_are_named(csv, tmp_path, solver):
    code, _, err = design(
        csv, tmp_path / "out", "--solver", solver, "--guesses", "thresholds,lower_bounds", *QUICK_TREE
    )
    assert code == 0, err
    asked = json.loads((tmp_path / "out" / "tree.json").read_text())["design"]["options"]
    assert (asked["solver"], asked["guesses"]) == (solver, ["thresholds", "lower_bounds"])


@pytest.mark.parametrize("method", ["ipw", "regression", "matching"])
def test_methods_are_named_and_values_stay_doubly_robust(csv, tmp_path, method):
    how = ("--max-depth", "1", "--cv", "2", "--repeats", "1", "--exclude", "clinic", "--propensity", "0.5")
    code, _, err = design(csv, tmp_path / "out", "--method", method, "--solver", "duplication", *how)
    assert code == 0, err
    saved = json.loads((tmp_path / "out" / "tree.json").read_text())
    assert saved["design"]["options"]["method"] == method
    text = flat((tmp_path / "out" / "report.txt").read_text())
    assert f"found for rewards by the method {method} (--method), and its proof" in text
    tree = from_json((tmp_path / "out" / "tree.json").read_text())
    assert [tree.features[j].name for j in tree.used_features] == ["age"]
    values = pd.read_csv(tmp_path / "out" / "values.csv").set_index("rule")
    assert (values["lower"] < values["value"]).all() and values["value"].max() < 4  # rewards of ipw would reach 8


def test_a_black_box_is_judged_on_request_and_never_recommended(csv, tmp_path):
    how = ("--max-depth", "1", "--cv", "2", "--repeats", "1", "--exclude", "clinic", "--propensity", "0.5")
    code, out, err = design(csv, tmp_path / "out", "--black-box", *how)
    assert code == 0, err
    values = pd.read_csv(tmp_path / "out" / "values.csv").set_index("rule")
    forest = values.loc["policy forest"]
    assert forest["lower"] < forest["value"] < forest["upper"] and forest["value"] > values.loc["always drug", "value"]
    assert "to everybody else." in flat(out) and "Use the policy forest" not in flat(out)
    refused(
        design(csv, tmp_path / "no", "--black-box", "--no-value", *how), "--black-box judges a forest by the held-out"
    )


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--method", "weights"), "--method must be one of dr, dr_normalized, ipw, ipw_normalized, regression, match"),
        (("--solver", "magic"), "--solver must be one of direct, auto, duplication, sampling; got 'magic'"),
        (("--guesses", "threshold"), "--guesses must be some of thresholds, depth, lower_bounds"),
        (("--solver", "duplication", "--max-share", "drug=.3"), "Limits and shares, --categories groups and"),
        (("--guesses", "thresholds", "--categories", "groups"), "leave out --solver and --guesses, or these"),
    ],
)
def test_unknown_solvers_and_guesses_are_refused(csv, tmp_path, given, words):
    code, _, err = design(csv, tmp_path / "out", *given, *QUICK_TREE)
    assert code == 2 and words in " ".join(err.split())
