"""Mistakes are told before pandas, scikit-learn, scipy and numba are imported; and nothing is refused wrongly."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from policytree.cli.first_checks import WAYS, header_of
from policytree.cli.tables import read_table
from policytree.evaluation.estimates import DIRECTIONS
from policytree.evaluation.policy_value.validation import DEFAULT_CV
from policytree.exceptions import InputError
from tests.cli.running import ROOT, refused, run, trial

HEAVY = ("numpy", "pandas", "scipy", "sklearn", "numba", "pyarrow", "narwhals", "joblib")
ASKED = ("--treatment", "arm", "--outcome", "y")
MISTAKES = {
    "missing file": (("design", "trail.csv", *ASKED), "There is no file 'trail.csv'; did you mean 'trial.csv'?"),
    "treatment": (("design", "trial.csv", "--treatment", "am", "--outcome", "y"), "no column 'am' (--treatment)"),
    "one of two": (("design", "trial.csv", "--treatment", "arm,agee", "--outcome", "y"), "did you mean 'age'?"),
    "outcome": (("design", "trial.csv", "--treatment", "arm", "--outcome", "yy"), "no column 'yy' (--outcome)"),
    "no outcome": (("design", "trial.csv", "--treatment", "arm"), "--outcome is missing; name the column, one of age"),
    "covariate": (("design", "trial.csv", *ASKED, "--covariates", "age,incme"), "did you mean 'income'?"),
    "direction": (("design", "trial.csv", *ASKED, "--direction", "up"), "--direction must be maximize or minimize"),
    "validation": (("design", "trial.csv", *ASKED, "--validation", "x"), "--validation must be repeated, sequential"),
    "repeats": (("design", "trial.csv", *ASKED, "--repeats", "0"), "--repeats must be a whole number of at least 1"),
    "honest": (("design", "trial.csv", *ASKED, "--honest", "2"), "--honest must be a share from 0.1 to 0.9"),
    "level": (("design", "trial.csv", *ASKED, "--level", "95"), "level must lie between 0 and 1"),
    "depth": (
        ("design", "trial.csv", *ASKED, "--max-depth", "two"),
        "--max-depth must be a whole number >= 0, or auto",
    ),
    "categories": (("check", "trial.csv", *ASKED, "--categories", "all"), "--categories must be levels or groups"),
    "encoding": (("check", "trial.csv", *ASKED, "--encoding", "klingon"), "'klingon' is no encoding of texts"),
    "decimal": (("design", "trial.csv", *ASKED, "--decimal", ";"), "--decimal must be . or a comma"),
    "thousands": (("evaluate", "tree.json", "trial.csv", "--thousands", "."), "--thousands . is the decimal sign"),
    "explain": (("explain", "trial.csv", "--treatment", "am", "--outcome", "y"), "no column 'am' (--treatment)"),
    "kind of table": (("predict", "tree.json", "trial.csv", "-o", "out.xlsx"), "is written as CSV"),
    "jobs": (("design", "trial.csv", *ASKED, "--jobs", "0"), "--jobs must be a number of processes, or -1 for all"),
    "address": (("check", "https://example.org/trial.csv", *ASKED), "is an address: download the table and name"),
    "no name": (("check", "", *ASKED), "'' is no name of a file"),
    "number": (("design", "trial.csv", *ASKED, "--cv", "x"), "Invalid value for '--cv'"),
    "option": (("design", "trial.csv", *ASKED, "--treatmnt", "x"), "No such option"),
    "data set": (("design", "--dataset", "rand"), "There is no data set 'rand'; choose one of rand-hie"),
    "chance": (("design", "trial.csv", *ASKED, "--propensity", "1.5"), "must lie strictly between 0 and 1"),
    "chances": (("design", "trial.csv", *ASKED, "--propensity", "drug=0.5,None=ag"), "no column 'ag' (--propensity)"),
    "check": (("check", "trial.csv", "--treatment", "arm", "--outcome", "yy"), "no column 'yy' (--outcome)"),
    "evaluate": (("evaluate", "tree.json", "trial.csv", "--outcome", "yy"), "no column 'yy' (--outcome)"),
    "predict": (("predict", "tree.json", "trail.csv"), "There is no file 'trail.csv'"),
}
SCRIPT = """
import contextlib, io, json, sys
from policytree.cli import main
out = {}
for name, arguments in json.loads(sys.argv[1]).items():
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        code = main(arguments)
    out[name] = [code, said.getvalue(), [module for module in json.loads(sys.argv[2]) if module in sys.modules]]
print(json.dumps(out))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Message of each mistake, and the modules imported by then."""
    folder = tmp_path_factory.mktemp("mistakes")
    trial().to_csv(folder / "trial.csv", index=False)
    arguments = json.dumps({name: arguments for name, (arguments, _) in MISTAKES.items()})
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, arguments, json.dumps(HEAVY)], cwd=folder, capture_output=True, text=True,
        env={"PYTHONPATH": str(ROOT), "PATH": ""}, check=True,
    )  # fmt: skip
    return json.loads(done.stdout)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_before_anything_heavy_is_imported(told, mistake):
    code, said, imported = told[mistake]
    assert code == 2
    assert MISTAKES[mistake][1] in said and "Traceback" not in said
    assert imported == []


def test_words_are_those_of_the_whole_reading(tmp_path):
    path = tmp_path / "trial.csv"
    trial().to_csv(path, index=False)
    first = run("check", path, "--treatment", "am", "--outcome", "y")
    packed = tmp_path / "trial.csv.gz"  # left to the whole reading
    trial().to_csv(packed, index=False)
    whole = run("check", packed, "--treatment", "am", "--outcome", "y")
    assert header_of(packed) is None
    assert first[0] == whole[0] == 2 and first[2] == whole[2]


def test_constants_are_those_of_the_packages():
    assert set(DEFAULT_CV) == set(WAYS)
    assert set(DIRECTIONS) == {"maximize", "minimize"}


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("age,arm,y\n1,a,2\n", True),
        ("\ufeffage;arm;y\n1,5;a;2\n", True),
        ("age\tarm\ty\n1\ta\t2\n", True),
        (' "age", arm ,y\n1,a,2\n', True),
        ('"age, years",arm,y\n1,a,2\n', True),
        ("age,arm\n1,a,2\n", False),  # as many names as cells
        (",arm,y\n1,a,2\n", False),
        ("age,age,y\n1,a,2\n", False),
        ("\n\nage,arm,y\n1,a,2\n", False),
        ("age,arm,y\n", False),
        ('"age\nyears",arm,y\n1,a,2\n', False),
        ("y\n1\n", False),
        ("", False),
    ],
)
def test_a_header_is_read_as_the_whole_reading_does_or_not_at_all(tmp_path, text, plain):
    path = tmp_path / "table.csv"
    path.write_text(text, encoding="utf-8")
    names = header_of(path)
    assert (names is not None) == plain
    if names is not None:
        assert names == list(read_table(path).frame.columns)


def test_other_encodings_and_kinds_are_left_to_the_whole_reading(tmp_path):
    (tmp_path / "latin.csv").write_bytes("größe,arm\n1,a\n".encode("latin-1"))
    (tmp_path / "zeros.csv").write_bytes(b"a\0b,c\n1,2\n")
    assert header_of(tmp_path / "latin.csv") is None and header_of(tmp_path / "zeros.csv") is None
    assert header_of(tmp_path / "table.parquet") is None
    with pytest.raises(InputError):
        read_table(tmp_path / "zeros.csv")
    refused(run("check", tmp_path, *ASKED), "is a folder")
