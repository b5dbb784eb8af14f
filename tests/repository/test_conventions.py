"""The rules of the house as scripts on the syntax tree; each rule also proves on a snippet that it sees a violation."""

from __future__ import annotations

import ast
import graphlib
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import policytree

PACKAGE = Path(policytree.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

# A package may import from packages of smaller rank only.
ORDER = [
    ("exceptions",),
    ("data",),
    ("trees",),
    ("problem",),
    ("common",),
    ("serialization",),
    ("model_selection",),
    ("weighting",),
    ("study_check",),
    ("study",),
    ("objectives",),
    ("guesses",),
    ("solvers",),
    ("born_again",),
    ("constraints",),
    ("encoded",),
    ("estimators",),
    ("regimes",),
    ("evaluation", "datasets", "on_dask"),
    ("diagnostics",),
    ("plotting",),
    ("report",),
    ("cli",),
    ("__main__",),
]
RANK = {room: rank for rank, rooms in enumerate(ORDER) for room in rooms}
ONLY_FROM = {"datasets": {"exceptions", "data", "study"}}  # rooms that may import less than their rank allows
# `estimator.plot()`, `study.plot_survival()` and `result.plot()` are one lazy line to the pictures, as scikit-learn's
# users expect; so is a tree's value on rows of any number, `tree.streamed_values()`. Nothing else may look upwards.
DRAWN = ("trees", "weighting", "study", "estimators", "regimes", "evaluation", "diagnostics")
DELEGATIONS = {(room, "plotting") for room in DRAWN} | {("estimators", "evaluation")}

LAZY = {"econml", "statsmodels", "matplotlib", "pyarrow", "duckdb", "dask", "distributed"}


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE.parent).as_posix()


def violations(*rules) -> list[str]:
    """Collect the rules' findings in each file of the package, read once."""
    trees = ((path, parse(path)) for path in FILES)  # one at a time: together they take longer, and 200 MB
    return [f"{name_of(path)}:{found}" for path, tree in trees for rule in rules for found in rule(tree)]


def functions(tree):
    return [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]


# --- manners ---


def prints(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("print", "pprint"):
            yield f"{node.lineno} print"


def bare_excepts(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and node.type is None:
            yield f"{node.lineno} bare except"


def is_overload(node) -> bool:
    """Whether a definition is one signature of several, whose docstring stands with the function itself."""
    return any(isinstance(each, ast.Name) and each.id == "overload" for each in node.decorator_list)


def lacking_docstrings(tree):
    """The module, and every public function, class and method in it."""
    if ast.get_docstring(tree) is None:
        yield "1 module"
    todo = list(tree.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            if ast.get_docstring(node) is None and not is_overload(node):
                yield f"{node.lineno} {node.name}"
            if isinstance(node, ast.ClassDef):
                todo += node.body


def eager_imports(tree, slow=frozenset(LAZY)):
    """Slow packages imported while the module loads, that is outside functions."""
    lazy = {id(n) for f in functions(tree) for n in ast.walk(f)} | type_checking_nodes(tree)
    for module, node in imported_modules(tree, "policytree"):
        if module.split(".")[0] in slow and id(node) not in lazy:
            yield f"{node.lineno} {module}"


def test_manners():
    """Slow packages are imported lazily, too."""
    assert violations(prints, bare_excepts, lacking_docstrings, eager_imports) == []


def test_manners_see_violations():
    tree = ast.parse(
        "def f():\n    try:\n        print(1)\n    except:\n        pass\nclass C:\n    def g(self): pass\n"
        "    @overload\n    def h(self): ...\n"
    )
    assert list(prints(tree)) == ["3 print"]
    assert list(bare_excepts(tree)) == ["4 bare except"]
    assert sorted(lacking_docstrings(tree)) == ["1 f", "1 module", "6 C", "7 g"]
    assert list(eager_imports(ast.parse("import econml.dml\ndef f():\n    import matplotlib"))) == ["1 econml.dml"]


# --- imports ---


def type_checking_nodes(tree) -> set[int]:
    """Ids of what stands under ``if TYPE_CHECKING``."""
    blocks = [n for n in ast.walk(tree) if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.unparse(n.test)]
    return {id(n) for block in blocks for n in ast.walk(block)}


def imported_modules(tree, package: str):
    """Every import, lazy ones and those for type checking too: (module, node). Relative ones made absolute."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*base, *filter(None, [node.module])])
            yield from ((f"{module}.{a.name}" if module == "policytree" else module, node) for a in node.names)


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def upward_imports(path: Path):
    room, package = room_of(path), ".".join(path.relative_to(PACKAGE.parent).parent.parts)
    for module, node in imported_modules(parse(path), package):
        parts = module.split(".")
        if parts[0] != "policytree" or module in ("policytree", "policytree.__version__") or parts[1] == room:
            continue
        other = parts[1]
        allowed = RANK[other] < RANK[room] or (room, other) in DELEGATIONS
        if (room, other) in DELEGATIONS and node.col_offset == 0:
            allowed = False
        if room in ONLY_FROM:
            allowed = other in ONLY_FROM[room]
        if not allowed:
            yield f"{name_of(path)}:{node.lineno} {room} imports {other}"


MODULES = {".".join(p.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): p for p in FILES}


def import_graph(sources: dict[str, str]) -> dict[str, set[str]]:
    """Collect the modules that each module imports, but for delegations, and ``policytree``, whose names are lazy."""
    graph = {name: set() for name in sources}
    for name, source in sources.items():
        package = name if MODULES.get(name, Path()).name == "__init__.py" else name.rpartition(".")[0]
        for module, node in imported_modules(ast.parse(source), package):
            names = [f"{module}.{alias.name}" for alias in node.names] if isinstance(node, ast.ImportFrom) else []
            found = [full if full in sources else module for full in names] or [module]
            upwards = {each for each in found if (*name.split(".")[1:2], *each.split(".")[1:2]) in DELEGATIONS}
            graph[name] |= (set(found) & set(sources)) - {"policytree"} - upwards
    return graph


def import_circle(sources: dict[str, str]) -> list[str]:
    """Some circle of imports, lazy ones and those for type checking too; empty if there is none."""
    try:
        graphlib.TopologicalSorter(import_graph(sources)).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def test_no_modules_import_each_other():
    stubs = {name: path.with_suffix(".pyi") for name, path in MODULES.items()}  # what lazy packages import
    files = {name: stubs[name] if stubs[name].exists() else path for name, path in MODULES.items()}
    assert files["policytree.weighting"].suffix == ".pyi", "the stub of a lazy package is not read"
    sources = {name: path.read_text(encoding="utf-8") for name, path in files.items()}
    assert import_circle(sources) == []


def test_circles_of_imports_are_seen():
    hint = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from a.two import x"
    lazy = "def f():\n    from a import one"
    circle = import_circle({"a.one": hint, "a.two": lazy})
    assert set(circle) == {"a.one", "a.two"}
    assert import_circle({"a.one": hint, "a.two": "import numpy"}) == []


def test_every_room_has_a_place():
    rooms = {room_of(path) for path in FILES} - {"__init__"}
    assert rooms - set(RANK) == set(), "give the new room its place in ORDER"


def test_imports_go_downwards():
    found = [v for path in FILES if room_of(path) != "__init__" for v in upward_imports(path)]
    assert found == []


# The same within packages that have packages of their own.
WITHIN = {
    "solvers": (
        "kernels", "core", "exact.bounds", "test_costs", "out_of_core", "exact", "guided", "approximate",
        "multi_objective", "rashomon", "regularization_path", "nonadditive", "constrained",
    ),
    "evaluation": (
        "formatting", "estimates", "inputs", "inference", "heterogeneity", "policy_value", "instruments", "leaves",
        "regimes", "stability", "sensitivity", "targeting", "streaming",
    ),
}  # fmt: skip


def part_of(module: str, parts: tuple[str, ...]) -> str | None:
    """The part of a package that a module belongs to, the longest name that fits."""
    fitting = [part for part in parts if module == part or module.startswith(f"{part}.")]
    return max(fitting, key=len, default=None)


@pytest.mark.parametrize("package", WITHIN)
def test_imports_go_downwards_within_packages(package):
    parts, prefix = WITHIN[package], f"policytree.{package}."
    found, seen = [], set()
    for name, path in MODULES.items():
        if not name.startswith(prefix) or path.name == "__init__.py":
            continue
        own = part_of(name.removeprefix(prefix), parts)
        assert own is not None, f"give {name} its place in WITHIN"
        seen.add(own)
        others = {module for module, _ in imported_modules(parse(path), name.rpartition(".")[0])}
        for module in sorted(each.removeprefix(prefix) for each in others if each.startswith(prefix)):
            other = part_of(module, parts)
            if other is None or parts.index(other) > parts.index(own):
                found.append(f"{name} imports {module}")
    assert found == []
    assert seen == set(parts)


def run_python(code: str) -> str:
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=PACKAGE.parent)
    assert run.returncode == 0, run.stderr
    return run.stdout


LOADED = f"print(sorted({{m.split('.')[0] for m in sys.modules}} & {LAZY!r}))"


def test_importing_policytree_loads_no_slow_package():
    assert run_python(f"import sys, policytree; {LOADED}").strip() == "[]"


IMPORTED = """
import sys
import numpy, numba, sklearn.base
before = set(sys.modules)
from policytree import PolicyTree
print(*sorted(set(sys.modules) - before))
"""
# Only the wider house needs these: their schemes, learners, tables and displays.
NOT_FOR_A_TREE = ("crossfit", "folds", "progress", "weighting.learners", "weighting.reward_estimator", "plotting")


def test_importing_an_estimator_loads_nothing_that_its_search_does_without():
    """Nothing beyond numpy, numba and sklearn.base, which take a second already; pandas once there is a frame."""
    loaded = run_python(IMPORTED).split()
    known = {"policytree", "narwhals", "numba", "llvmlite", *sys.stdlib_module_names}
    assert {name.split(".")[0] for name in loaded} - known == set()
    assert {f"policytree.{name}" for name in NOT_FOR_A_TREE} & set(loaded) == set()
    own = [parse(MODULES[name]) for name in loaded if name in MODULES]
    assert len(own) > 20
    # scikit-learn's newer versions import pandas themselves, so the modules' own lines are read.
    assert [line for tree in own for line in eager_imports(tree, {"pandas"})] == []


CHECKED = """
import sys
import numpy, pandas
from policytree import Study
from policytree.study_check import check_study
random = numpy.random.default_rng(0)
table = pandas.DataFrame(random.normal(size=(200, 3)), columns=["age", "weight", "outcome"])
table["arm"] = random.choice(["drug", "placebo"], size=200)
found = check_study(Study(table, treatment="arm", outcome="outcome", covariates=["age", "weight"]))
print(type(found).__name__, *sys.modules)
"""
NOT_FOR_A_CHECK = ("sklearn", "scipy.stats", "numba", "joblib", "policytree.solvers", "policytree.estimators")


def test_checking_a_study_loads_nothing_that_fits_or_searches():
    result, *loaded = run_python(CHECKED).split()
    assert result == "StudyCheck"
    assert {*NOT_FOR_A_CHECK} & {*loaded} == set()


@pytest.mark.parametrize("module", ["cli.beginning", "cli.tree_options", "evaluation.policy_value.validation"])
def test_options_are_read_without_what_fits_or_searches(module):
    """All that begins a job and is not about the report of it; constraints are values, whose sums searches ask for."""
    loaded = run_python(f"import sys, policytree.{module}; print(*sys.modules)").split()
    assert f"policytree.{module}" in loaded
    own = {name for name in NOT_FOR_A_CHECK if name != "policytree.estimators"}  # which is a package of small modules
    assert {*own, "policytree.estimators.policy"} & {*loaded} == set()


def test_help_loads_no_slow_package():
    code = f"""
import sys
sys.argv = ["policytree", "--help"]
from policytree.cli import main
try:
    main()
except SystemExit as stop:
    assert not stop.code
{LOADED}
"""
    assert run_python(code).strip().splitlines()[-1] == "[]"


def test_every_listed_name_exists():
    modules = ["policytree" if p.parent == PACKAGE else ".".join(p.parent.relative_to(PACKAGE.parent).parts)
               for p in FILES if p.name == "__init__.py"]  # fmt: skip
    modules += [".".join(p.relative_to(PACKAGE.parent).with_suffix("").parts) for p in FILES if p.stem[0] != "_"]
    for name in modules:
        module = importlib.import_module(name)
        lacking = [item for item in getattr(module, "__all__", ()) if not hasattr(module, item)]
        assert lacking == [], f"{name}.__all__ lists {lacking}"
    assert set(policytree.__all__) <= set(dir(policytree))
