"""The command line from outside: what it prints, writes and refuses, and its exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from policytree import DRPolicyTree
from policytree.cli import app, main
from policytree.cli.study import Roles, study_from_dataset, study_from_file
from policytree.serialization import from_json

ROOT = Path(__file__).resolve().parents[1]
FILES = {"tree.png", "tree.pdf", "tree.json", "leaves.csv", "values.csv", "report.txt"}


def trial(n: int = 240, seed: int = 0) -> pd.DataFrame:
    """A trial with an obvious rule: the drug helps those under 40 (+4) and harms the others (-4)."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "income": rng.lognormal(10, 0.5, n).round(2),
            "region": rng.choice(["north", "south", "east"], n),
            "arm": rng.choice(["None", "drug"], n),
            "clinic": rng.integers(0, 40, n),
        }
    )
    frame["y"] = np.where(frame["age"] < 40, 4.0, -4.0) * (frame["arm"] == "drug") + rng.normal(size=n).round(3)
    return frame


def run(*arguments) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.stdout, result.stderr


def design(data, folder, *more) -> tuple[int, str, str]:
    return run("design", data, "--treatment", "arm", "--outcome", "y", "-o", folder, *more)


@pytest.fixture
def csv(tmp_path) -> Path:
    path = tmp_path / "trial.csv"
    trial().to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def designed(tmp_path_factory):
    """One whole run, shared by the tests that look at it."""
    folder = tmp_path_factory.mktemp("designed")
    trial().to_csv(folder / "trial.csv", index=False)
    code, out, err = design(
        folder / "trial.csv", folder / "out", "--cluster", "clinic", "--propensity", "0.5", "--max-depth", "1",
        "--cv", "2",
    )  # fmt: skip
    assert code == 0, err
    return folder, out, err


def refused(result: tuple[int, str, str], *words: str) -> None:
    """Exit code 2, and one sentence that holds the words, without a traceback."""
    code, _, err = result
    assert code == 2, err
    assert "Traceback" not in err
    errors = [line for line in err.splitlines() if line.startswith("Error: ")]
    assert len(errors) == 1, err
    for word in words:
        assert word in errors[0]


# What a whole run prints and writes


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
    assert "optimal: no tree of depth 1 or less is better" in out
    assert "2 of 2" in err


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
    assert set(values.index) == {*truth, "status quo", "plug-in rule"}
    for rule, value in truth.items():
        assert abs(values.loc[rule, "value"] - value) < 4 * values.loc[rule, "standard_error"]
    # From some 48 rows an arm the outcome model is a straight line, which meets the step at 40 only about.
    plug_in = values.loc["plug-in rule"]
    assert truth["always None"] < plug_in["value"] < truth["policy tree"] + 4 * plug_in["standard_error"]
    assert values.loc["status quo", "value"] == pytest.approx(data["y"].mean())
    difference = values.loc["policy tree", "value"] - values.loc["always drug", "value"]
    assert values.loc["always drug", "difference"] == pytest.approx(difference)
    for rule in values.index:
        assert rule in out.split("Value, held out")[1]


def test_report_and_picture_and_leaves(designed):
    folder, out, _ = designed
    report = (folder / "out" / "report.txt").read_text()
    assert "age ≤" in report
    assert report.count("always drug") == 1
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
    first, second = (study_from_file(str(p), Roles("arm", "y")) for p in (csv, path))
    pd.testing.assert_frame_equal(first.frame, second.frame, check_dtype=False)
    assert first.covariates == second.covariates == ("age", "income", "region", "clinic")


# What the options mean


def test_none_is_an_arm_but_no_number(tmp_path):
    data = trial()
    data["income"] = data["income"].astype(str)
    data.loc[3, "income"] = "None"
    data.to_csv(tmp_path / "trial.csv", index=False)
    study = study_from_file(str(tmp_path / "trial.csv"), Roles("arm", "y"))
    assert list(study.observed.treatments) == ["None", "drug"]
    assert study.frame["income"].dtype == np.float64
    assert np.flatnonzero(study.frame["income"].isna()).tolist() == [3]


def test_default_covariates_leave_out_roles_and_names(tmp_path):
    data = trial().assign(name=[f"person {i}" for i in range(240)], p=0.5, w=1.0, row=range(240))
    data.to_csv(tmp_path / "trial.csv", index=False)
    roles = Roles("arm", "y", confounders="region", propensity="p", cluster="clinic", weights="w")
    study = study_from_file(str(tmp_path / "trial.csv"), roles)
    assert study.covariates == ("age", "income", "row")
    assert study.confounders == ("region",)
    assert any("'name'" in note for note in study.notes)
    assert any("'row' numbers the rows" in note for note in study.notes)


def test_propensity_forms(tmp_path):
    data = trial().assign(p=0.3, q=0.7)
    data.to_csv(tmp_path / "trial.csv", index=False)

    def propensity(text):
        return study_from_file(str(tmp_path / "trial.csv"), Roles("arm", "y", propensity=text)).propensity

    assert propensity("0.3") == 0.3
    assert propensity("drug=0.3, None=0.7") == {"drug": 0.3, "None": 0.7}
    assert (propensity("p") == 0.3).all()
    table = propensity("drug=p,None=q")
    assert table[["drug", "None"]].iloc[0].tolist() == [0.3, 0.7]
    assert propensity(None) is None


def test_every_role_reaches_the_fit(tmp_path):
    data = trial().assign(p=0.3, w=np.arange(1.0, 241.0))
    data.to_csv(tmp_path / "trial.csv", index=False)
    roles = Roles("arm", "y", "age, income", "region", "p", "clinic", "w", "minimize")
    study = study_from_file(str(tmp_path / "trial.csv"), roles)
    arguments = study.fit_arguments()
    assert study.direction == "minimize"
    for name, column in {"Y": "y", "T": "arm", "propensity": "p", "sample_weight": "w", "groups": "clinic"}.items():
        assert arguments[name].tolist() == study.frame[column].tolist()
    assert list(arguments["X"]) == ["age", "income"]
    assert list(arguments["W"]) == ["region"]


def test_options_come_before_what_a_built_in_study_says():
    study = study_from_dataset("rand-hie", None, Roles())
    assert (study.treatment, study.outcome, study.direction) == ("plan", "visits", "minimize")
    assert (study.cluster, study.confounders) == ("person", ("site", "black"))
    roles = Roles(treatment="coinsurance", outcome="spending", covariates="age,site", cluster="household")
    other = study_from_dataset("rand-hie", None, roles)
    assert list(other.observed.treatments) == [0, 25, 50, 95, 100]
    assert (other.outcome, other.cluster) == ("spending", "household")
    assert (other.covariates, other.confounders) == (("age", "site"), ("black",))
    assert "dollars" in other.unit


def test_time_limit_keeps_a_tree_and_says_so(csv, tmp_path):
    code, out, err = design(
        csv, tmp_path / "out", "--time-limit", "0", "--max-depth", "4", "--no-value", "--cv", "2", "--propensity", "0.5"
    )
    assert code == 0, err
    assert "time limit: a better tree of depth 4 or less may exist" in out
    assert "Warnings" in out
    certificate = json.loads((tmp_path / "out" / "tree.json").read_text())["certificate"]
    assert certificate["status"] == "time limit"
    assert certificate["bound"] >= certificate["objective"]


# What is refused


def change(tmp_path, **columns) -> Path:
    path = tmp_path / "trial.csv"
    trial().assign(**columns).to_csv(path, index=False)
    return path


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", ["is empty"]), (b"a,b\n", ["no rows"]), (b"\x89PNG\r\n\x1a\n\x00\xff\xfe", ["not a CSV file"]),
     (b"a,a,y\n1,2,3\n", ["more than one column 'a'"]), (b"a,b\n1,2\n1,2,3,4\n", ["cannot be read as CSV"])],
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


BAD_COLUMNS = {
    "missing treatment": ({"arm": ["None", None] * 120}, ["'arm'", "missing value"]),
    "missing outcome": ({"y": [1.0, np.nan] * 120}, ["'y'", "missing value"]),
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
    "leaf": (["--min-samples-leaf", "500"], ["min_samples_leaf"]),
    "folds": (["--cv", "1"], ["--cv"]),
    "level": (["--level", "95"], ["level must lie between 0 and 1"]),
    "no number": (["--max-depth", "two"], ["--max-depth"]),
    "unknown option": (["--depth", "2"], ["--depth"]),
    "outcome as covariate": (["--covariates", "age,y"], ["'y'", "is the outcome"]),
    "treatment as confounder": (["--confounders", "arm"], ["'arm'", "is the treatment"]),
    "jobs": (["--jobs", "0"], ["n_jobs"]),
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


# Other commands


def test_predict_gives_the_rule_and_keeps_cells_as_they_stand(designed, tmp_path):
    folder, _, _ = designed
    data = tmp_path / "new.csv"
    data.write_text("id,age,note\n007,25,None\n008,39,1.10\n009,63,\n")
    code, out, _ = run("predict", folder / "out" / "tree.json", data)
    assert code == 0
    assert out == "id,age,note,policy\n007,25,None,drug\n008,39,1.10,drug\n009,63,,None\n"
    code, out, _ = run("predict", folder / "out" / "tree.json", data, "-o", tmp_path / "out.csv", "--column", "arm")
    assert (code, out) == (0, "")
    assert (tmp_path / "out.csv").read_text().splitlines()[0] == "id,age,note,arm"


def test_predict_refuses(designed, tmp_path):
    folder, _, _ = designed
    tree = folder / "out" / "tree.json"
    (tmp_path / "new.csv").write_text("Age,policy\n1,2\n")
    refused(run("predict", tree, tmp_path / "new.csv"), "already has a column 'policy'")
    refused(run("predict", tree, tmp_path / "new.csv", "--column", "x"), "'age'", "did you mean 'Age'")
    (tmp_path / "text.csv").write_text("age\nold\n")
    refused(run("predict", tree, tmp_path / "text.csv"), "'age'", "numbers")
    refused(run("predict", tree, tmp_path / "none.csv"), "There is no file")
    refused(run("predict", tmp_path / "new.csv", tree), "not a saved tree")
    refused(run("predict", tree, folder / "trial.csv", "-o", tmp_path / "no" / "out.csv"), "Cannot write")


def test_show_and_plot(designed, tmp_path):
    folder, _, _ = designed
    tree = folder / "out" / "tree.json"
    code, out, _ = run("show", tree)
    assert code == 0
    assert "age ≤" in out
    assert "optimal" in out
    for kind, magic in (("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")):
        code, _, err = run("plot", tree, "-o", tmp_path / f"t.{kind}", "--title", "Rule")
        assert code == 0, err
        assert (tmp_path / f"t.{kind}").read_bytes().startswith(magic)
    refused(run("plot", tree, "-o", tmp_path / "t.bmp"), "must end in")
    refused(run("show", tmp_path / "no.json"), "There is no file")


# Exit codes, help, and errors that should not happen


def test_without_data_it_explains_itself():
    code, out, _ = run()
    assert code == 0
    assert "design" in out
    code, _, err = run("design")
    assert code == 2
    assert "policytree design --dataset rand-hie" in err


def test_help_and_version():
    code, out, _ = run("--help")
    assert code == 0
    assert "Exit codes" in out
    code, out, _ = run("design", "--help")
    assert code == 0
    for option in ("--treatment", "--min-samples-per-treatment", "--time-limit", "--no-value"):
        assert option in out
    code, out, _ = run("--version")
    assert (code, out.split()[0]) == (0, "policytree")


def test_unexpected_error_is_one_sentence_and_a_traceback_with_debug(csv, tmp_path, monkeypatch):
    def fail(*_args, **_kwargs):
        raise ZeroDivisionError("boom")

    monkeypatch.setattr(DRPolicyTree, "fit", fail)
    code, _, err = design(csv, tmp_path / "out")
    assert code == 1
    assert "ZeroDivisionError: boom" in err
    assert "--debug" in err
    assert "Traceback" not in err
    code, _, err = design(csv, tmp_path / "out", "--debug")
    assert code == 1
    assert "Traceback" in err


def test_interrupt_that_a_search_swallowed_still_ends_the_run(csv, tmp_path, monkeypatch):
    def interrupted_search(self, *_args, **_kwargs):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            return self
        raise AssertionError("no interrupt came")

    monkeypatch.setattr(DRPolicyTree, "fit", interrupted_search)
    before = signal.getsignal(signal.SIGINT)
    code, _, err = design(csv, tmp_path / "out")
    assert code == 130
    assert "Interrupted" in err
    assert not (tmp_path / "out").exists()
    assert signal.getsignal(signal.SIGINT) is before


def test_main_returns_the_code(capsys):
    assert main(["show", "/no/such/tree.json"]) == 2
    assert "There is no file" in capsys.readouterr().err


def process(*arguments, encoding="utf-8", **options) -> subprocess.Popen:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80", "PYTHONIOENCODING": encoding}
    return subprocess.Popen(
        [sys.executable, "-m", "policytree", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, env=environment, **options,
    )  # fmt: skip


def test_help_is_quick_and_imports_nothing_heavy():
    code = (
        "import sys, policytree.cli; "
        "print(sorted({'numpy', 'pandas', 'numba', 'sklearn', 'scipy', 'matplotlib'} & set(sys.modules)))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert out.stdout.strip() == "[]"
    start = time.perf_counter()
    running = process("--help")
    running.communicate(timeout=30)
    assert running.returncode == 0
    assert time.perf_counter() - start < 1.0


def test_real_processes_exit_with_their_codes(tmp_path):
    bad = process("design", tmp_path / "no.csv", "--treatment", "a", "--outcome", "b")
    _, err = bad.communicate(timeout=60)
    assert bad.returncode == 2
    assert err.startswith("Error: There is no file")
    assert err.count("\n") == 1


def test_terminals_without_our_letters_and_readers_that_leave(designed):
    folder, _, _ = designed
    ascii_only = process("show", folder / "out" / "tree.json", encoding="ascii")
    out, err = ascii_only.communicate(timeout=60)
    assert (ascii_only.returncode, err) == (0, "")
    assert "age" in out
    gone = process("show", folder / "out" / "tree.json")
    gone.stdout.close()
    assert gone.stderr.read() == ""
    gone.stderr.close()
    assert gone.wait(timeout=60) == 141


def test_interrupt_of_a_real_process_leaves_nothing_behind(tmp_path):
    trial(4_000).to_csv(tmp_path / "trial.csv", index=False)
    running = process("design", "trial.csv", "--treatment", "arm", "--outcome", "y", cwd=tmp_path)
    assert "rewards and tree" in running.stderr.readline()  # the long computation has begun
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "Interrupted" in err
    assert "Traceback" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["trial.csv"]


@pytest.mark.slow
def test_rand_health_insurance_experiment(tmp_path):
    running = process("design", "--dataset", "rand-hie", "-o", "out", cwd=tmp_path)
    out, err = running.communicate(timeout=600)
    assert running.returncode == 0, err
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES
    assert "20,190 in 5,912 clusters (person)" in out
    assert "optimal: no tree of depth 2 or less is better" in out
    values = pd.read_csv(tmp_path / "out" / "values.csv", index_col="rule")
    arms = {f"always {arm}" for arm in ("25%", "50%", "95%", "deductible", "free")}
    assert set(values.index) == {"policy tree", "status quo", "plug-in rule"} | arms
    # free care raises use (Manning et al. 1987); the tree, which seeks few visits, must beat it clearly
    assert values.loc["always free", "difference_upper"] < 0
    assert values.loc["status quo", "difference_upper"] < 0
    assert max(map(len, out.splitlines())) <= 80
