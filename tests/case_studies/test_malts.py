"""The part of Lalonde that asks the authors' matching: its design, and its answer where pymalts2 is there."""

import importlib
import os
import sys

import numpy as np
import pytest

from tests.case_studies.test_case_studies import STUDIES, run_script


@pytest.fixture
def part(monkeypatch):
    monkeypatch.syspath_prepend(str(STUDIES))
    yield importlib.import_module("lalonde.malts")
    for name in [name for name in sys.modules if name.partition(".")[0] == "lalonde"]:
        del sys.modules[name]


def test_without_pymalts2_one_sentence_says_what_to_install(tmp_path):
    done = run_script("lalonde", "--part", "malts", "--quick", "--results", tmp_path, POLICYTREE_MALTS_PYTHON="")
    assert done.returncode == 2
    assert done.stderr.startswith("lalonde: pymalts2 runs in a Python of its own: ")
    assert len(done.stderr.splitlines()) == 1


def test_a_python_that_lacks_pymalts2_is_said(part, monkeypatch, tmp_path):
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho \"No module named 'pymalts2'\" >&2; exit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv(part.PYTHON, str(broken))
    with pytest.raises(part.InputError, match=r"pymalts2 failed: No module named 'pymalts2' pymalts2 runs in"):
        part.asked_of_peer([], tmp_path / "asked")


def test_yes_and_no_stay_as_they_are_and_numbers_lose_their_unit(part):
    men = part.the_men()
    scaled = part.standardised(men)
    same = [*part.DISCRETE, "outcome", "treated"]
    assert scaled[same].equals(men[same])
    np.testing.assert_allclose(scaled.drop(columns=same).std(ddof=0), 1.0)


def test_a_process_that_is_killed_is_said(part, monkeypatch, tmp_path):
    killed = tmp_path / "python"
    killed.write_text("#!/bin/sh\nkill -9 $$\n")
    killed.chmod(0o755)
    monkeypatch.setenv(part.PYTHON, str(killed))
    with pytest.raises(part.InputError, match=r"pymalts2 failed: it ended with code -9\."):
        part.asked_of_peer([], tmp_path / "asked")


def test_answers_of_two_processes_return_to_their_fits(part, monkeypatch, tmp_path):
    answers = "json.dump([{'effects': [f['seed']], 'seconds': 1.0} for f in json.load(open(sys.argv[1]))]"
    stand_in = tmp_path / "python"
    stand_in.write_text(
        f'#!/bin/sh\nexec {sys.executable} -c "import json, sys; {answers}, open(sys.argv[2], \'w\'))" "$2" "$3"\n'
    )
    stand_in.chmod(0o755)
    monkeypatch.setenv(part.PYTHON, str(stand_in))
    given = part.theirs([{"seed": k} for k in range(5)], tmp_path)
    assert [effects[0] for effects, _ in given] == [0, 1, 2, 3, 4]


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("POLICYTREE_MALTS_PYTHON"), reason="pymalts2 needs a Python of its own")
def test_the_small_version_asks_pymalts2(tmp_path):
    done = run_script("lalonde", "--part", "malts", "--quick", "--results", tmp_path)
    assert done.returncode == 0, done.stderr
    made = {path.name for path in tmp_path.iterdir()}
    assert made >= {"malts.txt", "malts_men.csv", "malts_between.csv"}
