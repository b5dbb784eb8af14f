"""The rules of the house as scripts on the syntax tree; each rule also proves on a snippet that it sees a violation."""

from __future__ import annotations

import ast
import builtins
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import policytree

PACKAGE = Path(policytree.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
MAX_FILE_LINES, MAX_FUNCTION_LINES = 400, 40

# A room may import from rooms of smaller rank only. The design's order; what came later stands where its imports allow.
ORDER = [
    ("exceptions", "types"),
    ("binning",),
    ("tree", "checks"),
    ("serialization", "export", "progress"),
    ("folds",),
    ("crossfit",),
    ("weighting",),
    ("objectives",),
    ("guesses",),
    ("solvers",),
    ("estimators",),
    ("evaluation", "datasets"),
    ("policy_values", "effects", "effect_regressions"),
    ("calibration", "cross_validation", "diagnostics", "heterogeneity", "study_check"),
    ("plotting",),
    ("diagnostic_displays",),
    ("report",),
    ("cli",),
    ("__main__",),
]
RANK = {room: rank for rank, rooms in enumerate(ORDER) for room in rooms}
ONLY_FROM = {"datasets": {"exceptions"}}  # rooms that may import less than their rank allows
SAME_RANK = {("types", "exceptions")}
# `estimator.plot()` is one lazy line to the pictures, as scikit-learn's users expect; nothing else may look upwards.
DELEGATIONS = {("estimators", "plotting")}

LAZY = {"econml", "statsmodels", "matplotlib"}


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE.parent).as_posix()


def violations(rule, paths=None) -> list[str]:
    """What a rule has to say about each file of the package."""
    return [f"{name_of(path)}:{found}" for path in paths or FILES for found in rule(parse(path))]


def is_kernel_file(path: Path) -> bool:
    return "kernels" in path.stem


def functions(tree):
    return [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]


# --- numba kernels ---

REQUIRED = {"cache": True, "nogil": True, "error_model": "numpy"}
# None of these changes a result: no entry points for Python, inlining, threads over independent outputs.
PERMITTED = {"no_cpython_wrapper", "no_cfunc_wrapper", "inline", "parallel"}


def numba_decorator(function, aliases) -> tuple[str, ast.expr] | None:
    """The numba decorator of a function, as (name, node)."""
    for node in function.decorator_list:
        target = node.func if isinstance(node, ast.Call) else node
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            if aliases.get(target.value.id) == "numba":
                return target.attr, node
        elif isinstance(target, ast.Name) and aliases.get(target.id, "").startswith("numba."):
            return aliases[target.id].removeprefix("numba."), node
    return None


def import_aliases(tree) -> dict[str, str]:
    """What module-level imports call which module or member."""
    aliases = {}
    for node in tree.body:
        if isinstance(node, ast.Import):
            aliases |= {a.asname or a.name.split(".")[0]: a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            aliases |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    return aliases


def kernels(tree):
    aliases = import_aliases(tree)
    return [f for f in functions(tree) if (found := numba_decorator(f, aliases)) and found[0] == "njit"]


def kernel_options(tree):
    """Every numba function is ``@njit(cache=True, nogil=True, error_model="numpy")`` or an intrinsic."""
    aliases = import_aliases(tree)
    for function in functions(tree):
        found = numba_decorator(function, aliases)
        if found is None or found[0].split(".")[-1] == "intrinsic":
            continue
        kind, node = found
        options = {k.arg: getattr(k.value, "value", None) for k in node.keywords} if isinstance(node, ast.Call) else {}
        given = {name: options.pop(name, None) for name in REQUIRED}
        if kind != "njit" or given != REQUIRED or set(options) - PERMITTED:
            yield f"{function.lineno} {function.name}: {ast.unparse(node)}"


def global_names(function) -> set[str]:
    """Names a function reads that it does not bind itself; annotations and decorators do not count."""
    read, bound = set(), {a.arg for n in ast.walk(function) if isinstance(n, ast.arguments) for a in _arguments(n)}
    for statement in [*function.body, *function.args.defaults, *filter(None, function.args.kw_defaults)]:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name):
                (read if isinstance(node.ctx, ast.Load) else bound).add(node.id)
            elif isinstance(node, ast.FunctionDef):
                bound.add(node.name)
    return read - bound


def _arguments(node):
    return [*node.posonlyargs, *node.args, *node.kwonlyargs, *filter(None, (node.vararg, node.kwarg))]


def foreign_names(tree) -> set[str]:
    """Module-level names whose value comes from files other than this one, numpy, math and numba."""
    aliases = import_aliases(tree)
    foreign = {name for name, source in aliases.items() if source.split(".")[0] not in ("numpy", "math", "numba")}
    before = -1
    while before != len(foreign):  # a constant computed from a foreign name is foreign as well
        before = len(foreign)
        for node in tree.body:
            if not isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) or node.value is None:
                continue
            if {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)} & foreign:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                foreign |= {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
    return foreign


def kernel_names(tree):
    """A kernel names only what its own file defines, plus numpy, math, numba: the disk cache is keyed on the file."""
    own = set(import_aliases(tree)) | set(dir(builtins))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            own.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.For | ast.AugAssign):
            own |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    foreign = foreign_names(tree)
    for function in kernels(tree):
        names = global_names(function)
        if bad := sorted((names & foreign) | (names - own)):
            yield f"{function.lineno} {function.name} names {', '.join(bad)}"
        if any(isinstance(n, ast.Import | ast.ImportFrom | ast.Global) for n in ast.walk(function)):
            yield f"{function.lineno} {function.name} imports or declares globals"


def kernel_recursion(tree):
    """No kernel reaches itself: recursive kernels crash when loaded from numba's disk cache (numba 0.68)."""
    calls = {f.name: global_names(f) for f in kernels(tree)}
    for start in calls:
        reached, todo = set(), [start]
        while todo:
            new = {name for name in calls[todo.pop()] if name in calls} - reached
            reached |= new
            todo += new
        if start in reached:
            yield f" {start} is recursive"


@pytest.mark.parametrize("rule", [kernel_options, kernel_names, kernel_recursion])
def test_kernels(rule):
    assert any(kernels(parse(path)) for path in FILES), "no kernel found: the rule would hold for nothing"
    assert violations(rule) == []


SNIPPET = """
import numba as nb, numpy as np
from numba import njit
from policytree.solvers.other import LIMIT
HALF = LIMIT // 2
QUARTER = HALF / 2
OWN = 3
@nb.njit(cache=True, nogil=True, error_model="numpy")
def good(x):
    total = np.float64(OWN)
    for i in range(len(x)):
        total += x[i]
    return total
@njit(cache=True, nogil=True, error_model="numpy")
def bad(x):
    return good(x) + QUARTER
"""


def test_kernel_rules_see_violations():
    assert list(kernel_names(ast.parse(SNIPPET))) == ["15 bad names QUARTER"]
    assert list(kernel_options(ast.parse(SNIPPET))) == []
    for broken in ("@njit", "@njit()", '@njit(cache=True, nogil=True, error_model="numpy", fastmath=True)', "@nb.jit"):
        tree = ast.parse(SNIPPET.replace('@njit(cache=True, nogil=True, error_model="numpy")', broken))
        assert len(list(kernel_options(tree))) == 1, broken
    missing = ast.parse(SNIPPET.replace("return good(x) + QUARTER", "return good(x) + nowhere"))
    assert list(kernel_names(missing)) == ["15 bad names nowhere"]
    assert list(kernel_recursion(ast.parse(SNIPPET.replace("total = np.float64(OWN)", "total = bad(x)"))))


# --- size ---


def length_of_code(function) -> int:
    """Lines of a function's body; signature and docstring declare what it is for, however long."""
    first = function.body[ast.get_docstring(function) is not None :]
    return function.end_lineno - first[0].lineno + 1 if first else 0


def long_functions(tree):
    exempt = {id(f) for f in kernels(tree)}
    for function in functions(tree):
        if id(function) not in exempt and length_of_code(function) > MAX_FUNCTION_LINES:
            yield f"{function.lineno} {function.name} has {length_of_code(function)} lines"


def test_no_file_is_too_long():
    lines = {name_of(p): len(p.read_text(encoding="utf-8").splitlines()) for p in FILES if not is_kernel_file(p)}
    assert {name: count for name, count in lines.items() if count > MAX_FILE_LINES} == {}


def test_no_function_is_too_long():
    assert violations(long_functions) == []


# --- manners ---


def prints(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("print", "pprint"):
            yield f"{node.lineno} print"


def bare_excepts(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and node.type is None:
            yield f"{node.lineno} bare except"


def lacking_docstrings(tree):
    """The module, and every public function, class and method in it."""
    if ast.get_docstring(tree) is None:
        yield "1 module"
    todo = list(tree.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            if ast.get_docstring(node) is None:
                yield f"{node.lineno} {node.name}"
            if isinstance(node, ast.ClassDef):
                todo += node.body


@pytest.mark.parametrize("rule", [prints, bare_excepts, lacking_docstrings])
def test_manners(rule):
    assert violations(rule) == []


def test_manners_see_violations():
    tree = ast.parse(
        "def f():\n    try:\n        print(1)\n    except:\n        pass\nclass C:\n    def g(self): pass\n"
    )
    assert list(prints(tree)) == ["3 print"]
    assert list(bare_excepts(tree)) == ["4 bare except"]
    assert sorted(lacking_docstrings(tree)) == ["1 f", "1 module", "6 C", "7 g"]
    body = "\n".join("    x = 1" for _ in range(41))
    assert list(long_functions(ast.parse(f"def f():\n{body}"))) == ["1 f has 41 lines"]
    assert list(long_functions(ast.parse(f'def f():\n    """Long\n    story."""\n{body}'))) == ["1 f has 41 lines"]


# --- imports ---


def imported_modules(tree, package: str):
    """Every import outside ``if TYPE_CHECKING``, lazy ones included: (module, node). Relative ones made absolute."""
    hidden = {
        id(n)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test)
        for n in ast.walk(block)
    }
    for node in ast.walk(tree):
        if id(node) in hidden:
            continue
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
        allowed = RANK[other] < RANK[room] or (room, other) in SAME_RANK | DELEGATIONS
        if (room, other) in DELEGATIONS and node.col_offset == 0:
            allowed = False
        if room in ONLY_FROM:
            allowed = other in ONLY_FROM[room]
        if not allowed:
            yield f"{name_of(path)}:{node.lineno} {room} imports {other}"


def test_every_room_has_a_place():
    rooms = {room_of(path) for path in FILES} - {"__init__"}
    assert rooms - set(RANK) == set(), "give the new room its place in ORDER"


def test_imports_go_downwards():
    found = [v for path in FILES if room_of(path) != "__init__" for v in upward_imports(path)]
    assert found == []


def eager_imports(tree):
    """Slow packages imported while the module loads, that is outside functions."""
    lazy = {id(n) for f in functions(tree) for n in ast.walk(f)}
    for module, node in imported_modules(tree, "policytree"):
        if module.split(".")[0] in LAZY and id(node) not in lazy:
            yield f"{node.lineno} {module}"


def test_slow_packages_are_imported_lazily():
    assert violations(eager_imports) == []
    assert list(eager_imports(ast.parse("import econml.dml\ndef f():\n    import matplotlib"))) == ["1 econml.dml"]


def run_python(code: str) -> str:
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=PACKAGE.parent)
    assert run.returncode == 0, run.stderr
    return run.stdout


LOADED = f"print(sorted({{m.split('.')[0] for m in sys.modules}} & {LAZY!r}))"


def test_importing_policytree_loads_no_slow_package():
    assert run_python(f"import sys, policytree; {LOADED}").strip() == "[]"


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
