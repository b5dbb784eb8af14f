"""The kernels of born-again trees obey the rules of all kernels."""

import ast
from pathlib import Path

import pytest

from policytree.solvers.born_again import kernels
from tests.test_kernels import compiled, recursive, too_many_arguments

FOLDER = Path(kernels.__file__).parent
PACKAGE = "policytree.solvers.born_again.kernels."
TREES = {name: ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8")) for name in kernels.ORDER}


def test_every_file_has_its_place_and_is_described():
    assert {path.stem for path in FOLDER.glob("*.py")} - {"__init__"} == set(kernels.ORDER)
    lines = [line.split()[0] for line in kernels.__doc__.splitlines() if line.startswith("    ")]
    assert tuple(lines) == kernels.ORDER


@pytest.mark.parametrize("name", kernels.ORDER)
def test_files_import_only_files_before_them(name):
    modules = [n.module for n in TREES[name].body if isinstance(n, ast.ImportFrom)]
    own = {m.removeprefix(PACKAGE) for m in modules if m.startswith(PACKAGE)}
    assert own <= set(kernels.ORDER[: kernels.ORDER.index(name)])
    # Constants of another folder would not be in the stamp of this one.
    others = {m for m in modules if m.startswith("policytree") and not m.startswith(PACKAGE)}
    assert others <= {"policytree.solvers.kernels.compiling"}


@pytest.mark.parametrize("name", [n for n in kernels.ORDER if compiled(TREES[n])])
def test_files_say_what_they_compute_and_what_it_costs(name):
    text = ast.get_docstring(TREES[name])
    assert "Cost:" in text and "Symbols:" in text
    assert all(ast.get_docstring(function) for function in compiled(TREES[name]))


@pytest.mark.parametrize("rule", [too_many_arguments, recursive])
def test_rules(rule):
    assert {name: found for name, tree in TREES.items() if (found := rule(tree))} == {}
