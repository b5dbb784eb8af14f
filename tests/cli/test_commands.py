"""The other commands, help, exit codes, and real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from policytree import DRPolicyTree
from policytree.cli import main
from policytree.datasets import DATASET_NAMES
from tests.cli.running import ROOT, design, process, refused, run, trial

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
    verdict, _, facts = out.strip().partition("\n\n")[0], *out.strip().rpartition("\n\n")[1:]
    assert verdict.startswith("Verdict: ")
    facts = facts.splitlines()
    assert [line.split()[0] for line in facts] == ["status", "objective", "bound", "gap", "seconds"], "no costs of 0"
    assert len({line.index(line.split()[1], 9) for line in facts}) == 1, "values are aligned"
    for kind, magic in (("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")):
        code, _, err = run("plot", tree, "-o", tmp_path / f"t.{kind}", "--title", "Rule")
        assert code == 0 and f"t.{kind}" in err, err
        assert (tmp_path / f"t.{kind}").read_bytes().startswith(magic)
    refused(run("plot", tree, "-o", tmp_path / "t.bmp"), "must end in")
    refused(run("show", tmp_path / "no.json"), "There is no file")


def test_a_saved_report_is_shown_again(designed, tmp_path):
    folder, _, _ = designed
    saved = folder / "out" / "report.json"
    for name in ("report.html", "report.txt"):
        code, out, err = run("report", saved, "-o", tmp_path / name)
        assert (code, out) == (0, ""), err
        assert (tmp_path / name).read_bytes() == (folder / "out" / name).read_bytes()
    code, out, _ = run("report", saved, "--section", "values", "--section", "verdict")
    assert code == 0 and out.index("Value, held out") < out.index("Verdict") and "Certificate" not in out
    refused(run("report", saved, "--section", "value"), "no section 'value'", "verdict, tree, rule, evidence")
    refused(run("report", saved, "-o", tmp_path / "report.pdf"), "must end in .html, .txt or .tex")
    refused(run("report", folder / "out" / "tree.json"), "is no saved report")
    refused(run("report", folder / "trial.csv"), "not a saved report: it is not valid JSON")
    refused(run("report", tmp_path / "none.json"), "There is no file", "design")


def test_files_that_were_changed_after_a_design_are_refused(designed, tmp_path):
    out = designed[0] / "out"
    changes = [  # of the tree itself, and of what stands beside it
        ("tree.json", "show", lambda data: data["threshold"].__setitem__(0, data["threshold"][0] + 1)),
        ("tree.json", "show", lambda data: data["certificate"].update(gap=0.5)),
        ("tree.json", "show", lambda data: data["design"]["options"].update(seed=7)),
        ("report.json", "report", lambda data: data.update(title="Another")),
        ("report.json", "report", lambda data: data["sections"].pop()),
    ]
    for name, command, change in changes:
        data = json.loads((out / name).read_text())
        change(data)
        (tmp_path / name).write_text(json.dumps(data))
        what = {"tree.json": "saved tree", "report.json": "saved report"}[name]
        refused(run(command, tmp_path / name), name, f"The {what} was changed or damaged after it was saved")
        data = json.loads((out / name).read_text())
        del data["checksum"]  # as earlier versions wrote it
        (tmp_path / name).write_text(json.dumps(data))
        assert run(command, tmp_path / name) == run(command, out / name)


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
    words = out.replace(",", " ").split()
    assert set(DATASET_NAMES) <= {word.rstrip(".") for word in words}
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


@pytest.mark.usefixtures("ctrl_c")
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


def test_help_imports_nothing_heavy():
    code = """
import sys
from policytree.cli import main
try:
    main(["--help"])
except SystemExit as stop:
    assert not stop.code
heavy = {"numpy", "pandas", "numba", "sklearn", "scipy", "matplotlib", "statsmodels"}
own = {name for name in sys.modules if name.startswith("policytree")}
print(sorted(heavy & set(sys.modules)), len(own), file=sys.stderr)
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert "Usage: policytree" in found.stdout
    heavy, own = found.stderr.rsplit(maxsplit=1)
    assert heavy == "[]"
    assert int(own) < 40, "modules of policytree itself: help must not read the house"


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


@pytest.mark.usefixtures("ctrl_c")
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


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.slow
def test_interrupt_of_refits_in_processes_leaves_nothing_behind(tmp_path):
    trial(600).to_csv(tmp_path / "trial.csv", index=False)
    options = ("--treatment", "arm", "--outcome", "y", "--cv", "2", "--max-depth", "1", "--jobs", "2")
    running = process("design", "trial.csv", *options, cwd=tmp_path)
    assert any("2 of 14" in line for line in running.stderr), "the processes are at work"
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=120)
    assert running.returncode == 130
    assert "Interrupted" in err and "Traceback" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["trial.csv"]
