"""Kernels: the rules they are written by, and that no search waits for the compiler."""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import policytree
from policytree.born_again import kernels as born_again_kernels
from policytree.born_again.needed_kernels import BORN_AGAIN
from policytree.solvers import kernels
from policytree.solvers.core import compilation
from policytree.solvers.kernels.compiling import Kernel
from policytree.solvers.kernels.depth_two.pair_tables import table_pays

PACKAGES = [*(f"{kernels.__name__}.{name}" for name in kernels.PACKAGES), born_again_kernels.__name__]
COMPILER = f"{kernels.__name__}.compiling"
MOST_ARGUMENTS = 10


def folder_of(package: str) -> Path:
    return Path(importlib.import_module(package).__file__).parent


def order_of(package: str) -> tuple[str, ...]:
    return importlib.import_module(package).ORDER


TREES = {
    f"{package}.{name}": ast.parse((folder_of(package) / f"{name}.py").read_text(encoding="utf-8"))
    for package in PACKAGES
    for name in order_of(package)
}


def imported(tree) -> set[str]:
    """Modules of the project that a file imports from."""
    modules = {node.module for node in tree.body if isinstance(node, ast.ImportFrom)}
    return {module for module in modules if module.startswith("policytree")}


def compiled(tree) -> list[ast.FunctionDef]:
    """Functions under ``@kernel``."""
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and any(isinstance(n, ast.Name) and n.id == "kernel" for d in node.decorator_list for n in ast.walk(d))
    ]


# --- the rules ---


def test_every_package_has_its_place():
    found = {path.parent.name for path in Path(kernels.__file__).parent.glob("*/__init__.py")}
    assert found == set(kernels.PACKAGES)
    lines = [line.split()[0] for line in kernels.__doc__.splitlines() if line.startswith("    ")]
    assert tuple(lines) == kernels.PACKAGES


@pytest.mark.parametrize("package", PACKAGES)
def test_every_file_has_its_place_and_is_described(package):
    assert {path.stem for path in folder_of(package).glob("*.py")} - {"__init__"} == set(order_of(package))
    doc = importlib.import_module(package).__doc__
    lines = [line.split()[0] for line in doc.splitlines() if line.startswith("    ")]
    assert tuple(lines) == order_of(package)


def test_files_import_only_files_and_packages_before_them():
    """One order of all kernels, so that a stamp reaches what a file uses and nothing depends on itself.

    Constants from elsewhere would be in no stamp.
    """
    before = {COMPILER}
    for name, tree in TREES.items():
        if name.startswith(born_again_kernels.__name__):
            before = {each for each in before if each == COMPILER or each.startswith(born_again_kernels.__name__)}
        assert imported(tree) <= before, name
        before.add(name)


@pytest.mark.parametrize("name", [name for name, tree in TREES.items() if compiled(tree)])
def test_files_begin_with_what_they_compute_and_what_it_costs(name):
    text = ast.get_docstring(TREES[name])
    assert "Cost:" in text and "Symbols:" in text


def too_many_arguments(tree):
    return [f.name for f in compiled(tree) if len(f.args.args) > MOST_ARGUMENTS]


def recursive(tree):
    """Kernels that reach themselves: they crash when loaded from numba's disk cache."""
    calls = {f.name: {n.id for n in ast.walk(f) if isinstance(n, ast.Name)} - {f.name} for f in compiled(tree)}
    own = {f.name for f in compiled(tree) if any(isinstance(n, ast.Name) and n.id == f.name for n in ast.walk(f))}
    for start in calls:
        reached, todo = set(), [start]
        while todo:
            new = {name for name in calls[todo.pop()] if name in calls} - reached
            reached |= new
            todo += new
        if start in reached:
            own.add(start)
    return sorted(own)


@pytest.mark.parametrize("rule", [too_many_arguments, recursive])
def test_rules(rule):
    assert {name: found for name, tree in TREES.items() if (found := rule(tree))} == {}


def test_rules_see_violations():
    many = ast.parse(f"@kernel\ndef f({', '.join('abcdefghijk')}):\n    return a")
    assert too_many_arguments(many) == ["f"]
    assert recursive(
        ast.parse("@kernel\ndef f(a):\n    return g(a)\n@kernel(inline='never')\ndef g(a):\n    return f(a)")
    )
    assert recursive(ast.parse("@kernel\ndef f(a):\n    return f(a)")) == ["f"]


def test_numba_is_compiled_by_kernels_alone():
    """No other decorator of numba's anywhere: it would not heed changes in other files."""
    found = []
    for path in Path(policytree.__file__).parent.rglob("*.py"):
        if path.name == "compiling.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute | ast.Name) and ast.unparse(node).split(".")[-1] in ("njit", "jit"):
                found.append(f"{path}:{node.lineno}")
    assert found == []


def test_every_kernel_says_what_it_does():
    for name, tree in TREES.items():
        for function in compiled(tree):
            assert ast.get_docstring(function), f"{name}.{function.name}"


def test_only_declared_types_are_compiled():
    taken = compilation.ALWAYS[0]
    with pytest.raises(TypeError, match="hash_rows takes"):
        taken(np.zeros((2, 3), np.int64))


# --- nothing is compiled in the midst of a search ---

PROBLEMS = """
import itertools
from fractions import Fraction
import numpy as np
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.core import compilation
from policytree.solvers.exact.direct import solve_direct
from policytree.solvers.rashomon.enumerate import enumerate_rashomon
from policytree.solvers.exact.engine_table import Case, kernels_of, rashomon_kernels
from policytree.problem.types import Problem, SearchLimits

def entries():
    return {kernel: set(kernel.overloads) for part, _ in compilation.all_kernels() for kernel in part}

def problem(n, p, values, K, depth, weights, **rules):
    rng = np.random.default_rng(n + p)
    X = rng.normal(size=(n, p)) if values is None else rng.integers(0, values, (n, p)).astype(float)
    losses = rng.normal(size=(n, K)) if weights else rng.integers(0, 2, (n, K)).astype(float)
    if "min_leaf_per_arm" in rules:
        rules["arms"] = rng.integers(0, K, n)
    return Problem(bin_matrix(X), losses, rules.pop("penalty", 0.0), depth, **rules)

CASES = {cases}
for shape, rules in CASES:
    each = problem(*shape, **rules)
    compilation.load_kernels(kernels_of(Case.of(each)))
    before = entries()
    solve_direct(each, SearchLimits(time_limit=5.0))
    late = [kernel.py_func.__name__ for kernel, known in entries().items() if known != before[kernel]]
    assert not late, (shape, rules, late)
    if each.max_depth in (1, 2, 3):
        compilation.load_kernels(rashomon_kernels(Case.of(each)))
        before = entries()
        enumerate_rashomon(each, lambda best, leaf: Fraction(0), 5)
        late = [kernel.py_func.__name__ for kernel, known in entries().items() if known != before[kernel]]
        assert not late, ("near-ties", shape, rules, late)
print("none")
"""
COSTS = "np.array([.1, .2, .3, .1])"
CASES = {
    "depth two": "[((60, 4, v, K, 2, w), {}) for v, K, w in itertools.product((3, 9, None), (2, 3), (0, 1))]",
    "given roots": "[((60, 4, 7, 2, d, 1), {'root_features': (2,)}) for d in (0, 1, 2, 3)]",
    "long features": "[((300, 4, None, K, d, 1), {}) for K, d in itertools.product((2, 3), (2, 3))]",
    "depth three": "[((60, 4, 7, K, 3, w), {}) for K, w in itertools.product((2, 3), (0, 1))]",
    "constraints": "[((60, 4, 7, 2, d, 1), r) for d in (2, 3, 4) for r in ({'min_leaf': 4}, {'min_leaf_per_arm': 2}, "
    f"{{'feature_costs': {COSTS}}}, {{'max_leaf_nodes': 3}}, {{'max_leaf_nodes': 5}}, {{'root_features': (1,)}})]",
    "two-valued": "[((90, 6, 2, 2, d, w), {}) for d in (3, 4, 5) for w in (0, 1)] + [((90, 6, 2, 3, 4, 1), {})]"
    " + [((90, 6, 2, 2, 5, 1), {'penalty': 2.0})]",
    "no depth limit": "[((40, 3, 4, K, None, 1), {'penalty': 2.0}) for K in (2, 3)] + [((40, 3, 4, 2, None, 1), {})]",
}


@pytest.mark.parametrize("cases", CASES.values(), ids=CASES)
def test_no_kernel_is_loaded_or_compiled_within_a_search(cases):
    code = PROBLEMS.replace("{cases}", cases)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "none"


def test_warming_up_takes_all_that_python_may_call():
    declared = {
        kernel
        for name in TREES
        for kernel in vars(importlib.import_module(name)).values()
        if isinstance(kernel, Kernel) and kernel.takes is not None
    }
    assert declared == {kernel for part, _ in compilation.all_kernels() for kernel in part} | set(BORN_AGAIN)
    for kernel in declared:
        assert len(inspect.signature(kernel.py_func).parameters) == len(next(iter(kernel.takes.values())))


@given(bins=st.lists(st.integers(1, 400), max_size=6), n=st.integers(0, 2000), signed=st.booleans())
def test_plain_kernels_are_chosen_only_where_tables_always_pay(bins, n, signed):
    """A node below the root has at most as many codes of every feature, and any number of rows."""
    if not compilation.is_long(np.array(bins, dtype=np.int64), signed):
        for one, other in itertools.combinations(bins, 2):
            for fewer in (1, 2, 7):
                assert table_pays.py_func(max(one // fewer, 1), other, n, signed)
