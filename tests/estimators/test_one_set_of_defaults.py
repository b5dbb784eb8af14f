"""The command line and five lines of Python say the same of the same people, to the last digit."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pandas as pd
import pytest

from policytree import DRPolicyTree, cross_val_policy_value, load_dataset
from tests.cli.running import run

SHARED = Path(__file__).parents[3] / "shared" / "data" / "trials"
#: With all defaults of the validation on the smallest; five repetitions of five folds take minutes on the others.
QUICK = {"cv": 2, "n_repeats": 1}
STUDIES = {"nsw": {}, "colon": QUICK, "actg175": QUICK, "k401k": QUICK, "rand-hie": QUICK}


def folder_of(name: str) -> str | None:
    """Where the files of a study are that no package of the tests ships; skips where they are nowhere."""
    if name != "actg175":
        return None
    folder = os.environ.get("POLICYTREE_DATA") or str(SHARED)
    if not any(Path(folder).glob("*actg175*")):
        pytest.skip("needs the file of ACTG 175: set POLICYTREE_DATA")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_the_command_line_and_five_lines_of_python_agree(name, tmp_path):
    folder, how = folder_of(name), STUDIES[name]
    options = [] if not how else ["--cv", str(how["cv"]), "--repeats", str(how["n_repeats"])]
    options += [] if folder is None else ["--data-dir", folder]
    code, out, err = run("design", "--dataset", name, *options, "--stability", "0", "--json", "-o", tmp_path / "out")
    assert code == 0, err
    said = json.loads(out)

    study = load_dataset(name, data_dir=folder).study()
    model = DRPolicyTree(cv=how.get("cv", 5), random_state=0).fit(study)
    values = cross_val_policy_value(model, study, **how, random_state=0)

    printed = pd.DataFrame(said["values"]).set_index("rule").astype(float)
    pd.testing.assert_frame_equal(printed, values.to_frame().astype(float), check_exact=True)
    verdict = json.loads(json.dumps(values.verdict.to_dict()))
    assert {**said["verdict"], "sentence": ""} == {**verdict, "sentence": ""}  # which has the unit on the command line
    tree = json.loads(json.dumps(model.to_dict()))  # features have names of values in the report
    assert {**said["tree"], "features": None} == {**tree, "features": None}
