"""The public interface is typed: every argument and every result of what the package exports."""

import importlib
import inspect
import subprocess
import sys

import pytest

from tests.support.api_pages import HOMES

# Being rewritten; nothing else may join them.
OPEN = {"policytree.diagnostics.calibration", "policytree.diagnostics.overlap_balance"}


def public_functions():
    """Qualified name and function: exported functions, and constructors and public methods of exported classes."""
    for home, name in [(each, name) for each in HOMES for name in importlib.import_module(each).__all__]:
        item = getattr(importlib.import_module(home), name)
        if inspect.isfunction(item):
            yield name, item
        if inspect.isclass(item):
            members = inspect.getmembers(item, lambda m: inspect.isfunction(m) or inspect.ismethod(m))
            yield from ((f"{name}.{m}", f) for m, f in members if m == "__init__" or not m.startswith("_"))


def lacking(function):
    """Arguments without a type, and the result if it has none."""
    signature = inspect.signature(function)
    arguments = [p for p in signature.parameters.values() if p.name not in ("self", "cls")]
    without = [p.name for p in arguments if p.annotation is p.empty]
    no_result = signature.return_annotation is signature.empty and function.__name__ != "__init__"
    return without + ["return"] * no_result


def test_public_names_are_typed():
    ours = [(n, f) for n, f in public_functions() if f.__module__.split(".")[0] == "policytree"]
    assert len(ours) > 200
    assert {name: lacking(f) for name, f in ours if lacking(f) and f.__module__ not in OPEN} == {}


def test_untyped_functions_are_seen():
    def half(self, a, b: int, *rest):
        pass

    assert lacking(half) == ["a", "rest", "return"]


TYPED = """
from policytree import DRPolicyTree, PolicyTree, policy_value
tree: PolicyTree = PolicyTree(max_depth=2, n_jobs=None).fit([[1.0]], [[0.0, 1.0]])
depth: int = tree.get_depth()
PolicyTree(max_depth="two")
tree.get_depth().strip()
model: DRPolicyTree = DRPolicyTree().fit([0.0], ["a"], X=[[1.0]], W=None, groups=[1])
value: float = model.fit([[1.0]], [0.0], T=["a"], groups=[1]).score([[1.0]], [0.0], T=["a"])
model.fit([[1.0]], [0.0])
model.fit([0.0], ["a"], X=[[1.0]], clusters=[1])
"""

USER_CODE = """
import numpy as np
import pandas as pd

from policytree import DRPolicyTree, PolicyTree, Study, cross_val_policy_value
from policytree.problem.types import Status
from policytree.trees.tree import Tree

table = pd.DataFrame({"age": [1.0], "arm": ["a"], "score": [0.0]})
study = Study(table, treatment="arm", outcome="score")
model = DRPolicyTree(max_depth=1).fit(study)
tree: Tree = model.tree_
status: Status = model.status_
gap: float = model.optimality_gap_
names: list[str] = [str(name) for name in model.feature_names_in_]
given: np.ndarray = model.predict(table)
text: str = model.export_text()
depth: int = model.get_depth()
other = PolicyTree(max_depth=1).fit(table, table)
gap = other.optimality_gap_ + other.objective_value_
given = other.predict(table)
values = cross_val_policy_value(model, study)
use: bool = values.verdict.use_tree
model.status_.leaves
"""


@pytest.mark.slow
def test_strict_type_checkers_see_fitted_attributes(tmp_path):
    """Only the last line, which asks for what no status has, is wrong."""
    pytest.importorskip("mypy")
    pytest.importorskip("basedpyright")
    file = tmp_path / "use.py"
    file.write_text(USER_CODE)
    last = str(USER_CODE.count("\n"))
    by_mypy = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--ignore-missing-imports",
        "--follow-imports=silent",
        "use.py",
    ]
    (tmp_path / "pyrightconfig.json").write_text(
        '{"include": ["use.py"], "typeCheckingMode": "strict", "reportMissingTypeStubs": false, '
        '"reportUnusedExpression": false}'
    )
    by_pyright = [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable]
    for command in (by_mypy, by_pyright):
        run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
        errors = [line for line in run.stdout.splitlines() if "error:" in line or "- error" in line]
        assert errors and all(f"use.py:{last}:" in line for line in errors), run.stdout + run.stderr


@pytest.mark.slow
def test_a_type_checker_sees_the_public_interface(tmp_path):
    """Through the lazy package: right uses pass, wrong ones are found, at the lines where they stand."""
    pytest.importorskip("mypy")
    file = tmp_path / "use.py"
    file.write_text(TYPED)
    command = [sys.executable, "-m", "mypy", "--ignore-missing-imports", "--follow-imports=silent", str(file)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    found = list(dict.fromkeys(line.split(":")[1] for line in run.stdout.splitlines() if ": error:" in line))
    assert found == ["5", "6", "9", "10"], run.stdout + run.stderr
