"""Ctrl-C while modules are still being imported, and in the midst of predictions: exit code 130, no traceback."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys

import pandas as pd
import pytest
from typer.core import TyperGroup

from policytree import PolicyTree
from policytree.cli import predicting
from policytree.cli.frame import explain
from policytree.cli.interrupts import interrupts_remembered
from tests.cli.running import ROOT, run

# Presses Ctrl-C when a module is about to be imported.
PRESS = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
wanted = [sys.argv.pop(1)]
class Press:
    @staticmethod
    def find_spec(name, *_):
        if name in wanted:
            wanted.remove(name)
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Press)
from policytree.__main__ import main
sys.exit(main())
"""


@pytest.mark.parametrize("module", ["typer", "policytree.cli.design", "pandas", "sklearn", "policytree.cli.job"])
def test_ctrl_c_during_imports(tmp_path, module):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    (tmp_path / "yes.csv").write_text("a,y,z\n" + "p,1,2\nq,2,1\n" * 20, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", PRESS, module, "design", "yes.csv", "--treatment", "a", "--outcome", "y"],
        capture_output=True, text=True, timeout=120, env=environment, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode in (130, -2), done.stderr
    assert done.stderr == "Interrupted: no file was written.\n"


def test_ctrl_c_that_an_import_swallows(tmp_path):
    """Some packages catch everything while they are imported: the job must not go on."""
    swallowing = PRESS.replace(
        "            signal.raise_signal(signal.SIGINT)",
        "            try: signal.raise_signal(signal.SIGINT)\n            except BaseException: pass",
    )
    pd.DataFrame({"a": ["x", "y"] * 20, "y": range(40), "z": range(40)}).to_csv(tmp_path / "yes.csv")
    done = subprocess.run(
        [sys.executable, "-c", swallowing, "policytree.cli.job", "design", "yes.csv", "--treatment", "a", "--outcome",
         "y"],
        capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=tmp_path,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (130, "Interrupted: no file was written.\n")


def test_what_an_import_made_of_ctrl_c_is_ctrl_c(capsys):
    try:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as interrupt:
            raise RuntimeError("Error calling __set_name__") from interrupt
    except RuntimeError as error:
        assert explain(error, debug=False) == 130
    assert capsys.readouterr().err == "Interrupted: no file was written.\n"


def test_ctrl_c_while_the_command_line_is_read(monkeypatch):
    def press(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(TyperGroup, "parse_args", press)
    code, out, err = run("show", "tree.json")
    assert (code, out, err) == (130, "", "Interrupted: no file was written.\n")


def test_predictions_that_end_early_leave_no_file(tmp_path, monkeypatch):
    tree = PolicyTree(max_depth=1).fit(
        pd.DataFrame({"age": [1.0, 2.0]}), pd.DataFrame({"no": [0.0, 1.0], "yes": [1.0, 0.0]})
    )
    (tmp_path / "tree.json").write_text(tree.to_json())
    pd.DataFrame({"age": range(100)}).to_csv(tmp_path / "new.csv", index=False)
    (tmp_path / "out.csv").write_text("what was there")
    real, calls = predicting.actions_of, []

    def press(*arguments):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(predicting, "actions_of", press)
    monkeypatch.setattr(predicting, "BATCH_ROWS", 10)
    code, _, err = run("predict", tmp_path / "tree.json", tmp_path / "new.csv", "-o", tmp_path / "out.csv")
    assert (code, err) == (130, "Interrupted: no file was written.\n")
    assert len(calls) == 3
    assert (tmp_path / "out.csv").read_text() == "what was there"
    assert {path.name for path in tmp_path.iterdir()} == {"tree.json", "new.csv", "out.csv"}


def test_ctrl_c_where_nothing_can_be_raised_is_remembered(ctrl_c, monkeypatch):
    """In a callback from C, as compilers make them, what is raised is printed and forgotten by Python."""
    printed: list[type] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: printed.append(unraisable.exc_type))
    with pytest.raises(KeyboardInterrupt), interrupts_remembered() as interrupts:
        ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGINT))()
        interrupts.check()
    assert printed == []
    with interrupts_remembered():
        ctypes.CFUNCTYPE(None)(lambda: 1 / 0)()
    assert printed == [ZeroDivisionError]
