"""Kernels: how they are compiled and kept on disk."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from policytree.common import file_locks, memory, own_thread
from policytree.solvers.core.compilation import (
    ALWAYS,
    DEEPER,
    FROM_DEPTH_FOUR,
    LONG,
    LONGEST_FIRST,
    SPECIAL,
    TWO_LEVELS,
    _one_by_one,
)
from policytree.solvers.kernels import compiling, helping, precompiled, quick_numba, sharing
from policytree.solvers.kernels.depth_first.search import advance
from policytree.solvers.kernels.depth_three.sweep_side import SWEEPING_KERNELS

ROOT = Path(__file__).parents[2]
CALLEE = """
from compiling import kernel
STEP = 1
@kernel(separate={separate})
def step(x):
    return x + STEP
"""
CALLER = """
from numba import types
from compiling import kernel
from callee import step
@kernel(takes=(types.int64,))
def run(x):
    return step(x) + 0
"""


@pytest.fixture
def folder(tmp_path):
    """A folder of two kernels and the decorator."""
    source = tmp_path / "rooms"
    source.mkdir()
    (source / "compiling.py").write_text(Path(compiling.__file__).read_text(encoding="utf-8"), encoding="utf-8")
    (source / "callee.py").write_text(CALLEE.format(separate=True), encoding="utf-8")
    (source / "caller.py").write_text(CALLER, encoding="utf-8")
    return source


def without_cache_folder() -> dict[str, str]:
    """The environment, but kernels are kept beside their files."""
    return {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_CACHE")}


def run_in(folder: Path, code: str, **environment) -> str:
    done = subprocess.run(
        [sys.executable, "-c", f"from caller import run\nimport compiling\n{textwrap.dedent(code)}"],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=without_cache_folder() | environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


COUNT = """
heard = []
seconds = compiling.compile_kernels([(run, "")], lambda: heard.append(1))
print(run(1), len(heard), seconds > 0)
"""


@pytest.mark.parametrize("separate", [True, False])
def test_a_changed_callee_is_never_stale(folder, separate):
    (folder / "callee.py").write_text(CALLEE.format(separate=separate), encoding="utf-8")
    assert run_in(folder, COUNT) == "2 1 True"
    assert run_in(folder, COUNT) == "2 0 False"  # from the disk, unannounced
    changed = CALLEE.format(separate=separate).replace("STEP = 1", "STEP = 5")
    (folder / "callee.py").write_text(changed, encoding="utf-8")
    assert run_in(folder, COUNT) == "6 1 True"


def test_without_calls_by_address(folder):
    assert run_in(folder, COUNT, POLICYTREE_SEPARATE_KERNELS="0") == "2 1 True"
    assert run_in(folder, COUNT, POLICYTREE_SEPARATE_KERNELS="0") == "2 0 False"
    assert run_in(folder, COUNT) == "2 1 True"  # the two ways never share what is on disk


def test_where_nothing_can_be_written(folder):
    """A read-only install in a read-only home: kernels are compiled for the process."""
    code = """
    from numba.core.caching import _SourceFileBackedLocatorMixin as mixin
    """
    blocked = folder / "sitecustomize.py"
    blocked.write_text(
        "from numba.core import caching\n"
        "def refuse(self):\n    raise OSError('read-only')\n"
        "caching._CacheLocator.ensure_cache_path = refuse\n",
        encoding="utf-8",
    )
    assert run_in(folder, textwrap.dedent(code) + COUNT, PYTHONPATH=f"{folder}{os.pathsep}{ROOT}") == "2 1 True"
    assert not list(folder.rglob("*.nbi"))


def test_what_an_interrupted_save_leaves_is_never_read(folder):
    """The index is written first: killed in between, it would name data that older sources left."""
    assert run_in(folder, COUNT) == "2 1 True"
    changed = CALLEE.format(separate=True).replace("STEP = 1", "STEP = 5")
    (folder / "callee.py").write_text(changed, encoding="utf-8")
    stop = """
    from numba.core import caching
    def stop(*arguments):
        raise KeyboardInterrupt
    caching.IndexDataCacheFile._save_data = stop
    try:
        run(1)
    except KeyboardInterrupt:
        print("stopped")
    """
    assert run_in(folder, stop) == "stopped"
    assert run_in(folder, COUNT) == "6 1 True"


def test_sources_that_change_after_the_import_are_not_mistaken(folder):
    changed = CALLEE.format(separate=True).replace("STEP = 1", "STEP = 7")
    code = f"open('callee.py', 'w').write({changed!r})\nprint(run(1))"
    assert run_in(folder, code) == "2"
    assert run_in(folder, COUNT) == "8 1 True"
    assert len(list(folder.rglob("caller.run-*.nbi"))) == 1, "what older sources left goes"


def test_environments_that_share_a_folder_leave_each_other_what_they_compiled(folder):
    """Another release of numba has files of its own; only older sources of one's own go."""
    other = "import numba\nnumba.__version__ += '.other'\n"
    assert run_in(folder, COUNT) == "2 1 True"
    assert run_in(folder, other + textwrap.dedent(COUNT)) == "2 1 True"
    assert run_in(folder, COUNT) == "2 0 False"
    assert len(list(folder.rglob("caller.run-*.nbi"))) == 2


def test_other_places_for_what_is_compiled(folder):
    where = {"NUMBA_CACHE_LOCATOR_CLASSES": "InTreeCacheLocator"}
    assert run_in(folder, COUNT, **where) == "2 1 True"
    (folder / "callee.py").write_text(CALLEE.format(separate=True).replace("STEP = 1", "STEP = 5"), encoding="utf-8")
    assert run_in(folder, COUNT, **where) == "6 1 True"


STEP = """
from numba import types
from policytree.solvers.kernels.compiling import kernel
@kernel(takes=(types.int64,), separate=True)
def step(x):
    return x + 1
"""
TWICE = """
from numba import types
from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.low.steps import step
@kernel(takes=(types.int64,))
def twice(x):
    return step(step(x))
"""


@pytest.fixture
def packages(tmp_path):
    """Two packages of kernels, of which the second imports from the first, and one that neither imports."""
    kernels = tmp_path / "policytree" / "solvers" / "kernels"
    for part in ("low", "high", "other", "../../common"):
        (kernels / part).mkdir(parents=True)
        (kernels / part / "__init__.py").touch()
    for each in (kernels, kernels.parent, kernels.parents[1]):
        (each / "__init__.py").touch()
    for source in (compiling, helping, precompiled, quick_numba, sharing, file_locks, memory, own_thread):
        to = tmp_path.joinpath(*source.__name__.split(".")).with_suffix(".py")
        to.write_text(Path(source.__file__).read_text(encoding="utf-8"), encoding="utf-8")
    (kernels / "low" / "steps.py").write_text(STEP, encoding="utf-8")
    (kernels / "high" / "loops.py").write_text(TWICE, encoding="utf-8")
    (kernels / "other" / "steps.py").write_text(STEP, encoding="utf-8")
    return kernels


def compiled_in(packages: Path) -> tuple[str, ...]:
    """Return the kernels that a new process compiles when it needs all of them."""
    code = """
    from numba.core import event
    from policytree.solvers.kernels import compiling
    from policytree.solvers.kernels.high.loops import twice
    from policytree.solvers.kernels.low.steps import step
    from policytree.solvers.kernels.other.steps import step as other
    heard = []
    class Names(compiling._Compilations):
        def on_start(self, event):
            heard.append(event.data["dispatcher"].py_func.__module__.split(".")[3])
    compiling._Compilations = Names
    for each in (step, twice, other):
        compiling.compile_kernels([(each, "")])
    assert twice(1) == 3
    print(*sorted(set(heard)))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True, text=True, check=False, cwd=packages.parents[2], env=without_cache_folder(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return tuple(done.stdout.split())


def test_an_edit_compiles_its_package_and_those_above_it(packages):
    assert compiled_in(packages) == ("high", "low", "other")
    assert compiled_in(packages) == ()
    everything = ("high", "low", "other")
    for edited, expected in (
        ("high/loops.py", ("high",)),
        ("low/steps.py", ("high", "low")),
        ("other/new.py", ("other",)),
        ("compiling.py", everything),
    ):
        with (packages / edited).open("a", encoding="utf-8") as file:
            file.write("# a word\n")
        assert compiled_in(packages) == expected


OWNERS = """
import numpy as np
from numba import types
from compiling import kernel
ONE = (types.float64[::1],)
@kernel
def first(x):
    return x[:1]
@kernel
def make():
    return np.ones(2)
@kernel(takes=ONE, borrows=True)
def total(x):
    return x[:2].sum()
@kernel(takes=ONE)
def own(x):
    return total(make()) + make()[0] + first(x)[0]
@kernel(takes=ONE, borrows=True)
def through(x):
    return own(x)
@kernel(takes=ONE, borrows=True)
def hand_back(x):
    return 1, x
@kernel(takes=ONE, borrows=True)
def take(x):
    return first(x)[0]
"""


def test_who_borrows_arrays_gets_and_returns_none(folder):
    (folder / "owners.py").write_text(OWNERS, encoding="utf-8")
    code = """
    import sys
    import numpy as np
    import owners
    x = np.arange(5.0, 8.0)
    before = sys.getrefcount(x)
    print(owners.total(x), owners.through(x), owners.own(x), sys.getrefcount(x) == before)
    for refused in (owners.hand_back, owners.take):
        try:
            refused(x)
        except TypeError as error:
            print("borrows its arrays" in str(error))
    """
    assert run_in(folder, code).split() == ["11.0", "8.0", "8.0", "True", "True", "True"]


def test_a_full_disk_is_no_reason_to_fail(folder):
    code = """
    from numba.core import caching
    def full(*arguments):
        raise OSError(28, "No space left on device")
    caching.IndexDataCacheFile.save = full
    print(run(1))
    """
    assert run_in(folder, code) == "2"


def test_threads_and_processes_compile_at_once(folder):
    code = """
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(8) as pool:
        print(set(pool.map(run, range(8))) == set(range(1, 9)))
    """
    command = [sys.executable, "-c", f"from caller import run\n{textwrap.dedent(code)}"]
    started = [
        subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True, env=without_cache_folder())
        for _ in range(3)
    ]
    assert [process.communicate()[0].strip() for process in started] == ["True"] * 3
    assert run_in(folder, COUNT) == "2 0 False"


SHARED = """
import os, time
from pathlib import Path
from numba.core import event
from policytree.solvers.kernels import sharing
import compiling
from caller import run

class Slow(event.Listener):
    # Compiling lasts until others have met it.
    def on_start(self, event):
        Path("begun").touch()
        while event.data["dispatcher"] is run and len(list(Path().glob("waits-*"))) < {until}:
            time.sleep(.01)
    def on_end(self, event):
        pass

def wait(others):
    said.append(others)
    Path(f"waits-{{os.getpid()}}").touch()

sharing.LOOK_EVERY = 0.01
compiling.sharing()._count_seats = lambda: {seats}
said, heard = [], []
with event.install_listener("numba:compile", Slow()):
    compiling.compile_kernels([(run, "")], lambda: heard.append(1), wait)
print(run(1), len(heard), len(said), *said)
"""


def start(folder: Path, code: str, **environment) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", code], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=without_cache_folder() | {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"} | environment,
    )  # fmt: skip


def said_by(process: subprocess.Popen) -> list[str]:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out.split()


def wait_for_file(path: Path) -> None:
    end = time.monotonic() + 120
    while not path.exists():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_one_process_compiles_and_the_others_wait_for_its_files(folder):
    code = SHARED.format(until=2, seats=1)
    first = start(folder, code)
    wait_for_file(folder / "begun")
    others = [start(folder, code) for _ in range(2)]
    assert said_by(first) == ["2", "1", "0"]
    for other in others:
        assert said_by(other) == ["2", "0", "1", str(first.pid), "on", socket.gethostname()]


def test_a_killed_process_keeps_nobody_waiting(folder):
    first = start(folder, SHARED.format(until=10**9, seats=1))
    wait_for_file(folder / "begun")
    second = start(folder, SHARED.format(until=0, seats=1))
    while not list(folder.glob("waits-*")):
        assert second.poll() is None
        time.sleep(0.01)
    first.kill()
    first.communicate()
    value, compiled, *_ = said_by(second)
    assert (value, compiled) == ("2", "1")


@pytest.mark.parametrize(("seconds", "waited"), [("0.5", "1"), ("0", "0")])
def test_nobody_waits_for_ever(folder, seconds, waited):
    hung = start(folder, SHARED.format(until=10**9, seats=1))
    try:
        wait_for_file(folder / "begun")
        other = start(folder, SHARED.format(until=0, seats=1), POLICYTREE_COMPILE_WAIT=seconds)
        assert said_by(other)[:3] == ["2", "1", waited]
    finally:
        hung.kill()
        hung.communicate()


def test_two_cores_compile_different_kernels(folder):
    """With two seats, the second process compiles what the first one has not claimed, and loads what it has."""
    (folder / "caller.py").write_text(
        CALLER + "@kernel(takes=(types.int64,))\ndef more(x):\n    return step(x) + 1\n", encoding="utf-8"
    )
    code = SHARED.replace("import run", "import more, run").replace('(run, "")', '(run, ""), (more, "")')
    names = "names = []\nSlow.on_end = lambda self, event: names.append(event.data['dispatcher'].py_func.__name__)\n"
    code = code.replace("sharing.LOOK", names + "sharing.LOOK") + "\nprint(more(1), *sorted(names))"
    first = start(folder, code.format(until=1, seats=2))
    wait_for_file(folder / "begun")
    second = start(folder, code.format(until=0, seats=2))
    compiled = [said_by(first)[-1:], said_by(second)[-2:]]
    assert compiled == [["run"], ["more", "step"]] or compiled == [["run"], ["3", "more"]]


def test_a_helper_compiles_what_its_parent_names(folder):
    code = """
import caller, compiling, time
from pathlib import Path
from policytree.solvers.kernels import helping
assert compiling.compile_in_background([(caller.run, "")])
assert helping._started[0].wait(120) == 0
seconds = compiling.compile_kernels([(caller.run, "")])
print(caller.run(1), seconds, compiling.compile_in_background([(caller.run, "")]))
"""
    assert said_by(start(folder, code)) == ["2", "0.0", "False"]
    none = code.replace("assert compiling", "assert not compiling").replace("assert helping", "# ")
    (folder / "callee.py").write_text(CALLEE.format(separate=True) + "# a word\n", encoding="utf-8")
    assert said_by(start(folder, none, POLICYTREE_COMPILE_HELPERS="0"))[0] == "2"


def kernels_called_by(kernel):
    """Kernels that a kernel's own code names, and those that they name."""
    f = kernel.py_func
    named = [f.__globals__.get(name) for name in f.__code__.co_names]
    found = {each for each in named if isinstance(each, compiling.Kernel)}
    return found.union(*map(kernels_called_by, found))


def test_what_others_call_is_compiled_before_its_callers():
    shared = [kernel for kernel in LONGEST_FIRST if not kernel.for_python]
    assert shared
    by_address = {*SWEEPING_KERNELS, *FROM_DEPTH_FOUR}
    needed = [(ALWAYS, ""), (TWO_LEVELS + DEEPER, SPECIAL), (LONG + tuple(by_address), "")]
    order = [kernel for kernel, _ in _one_by_one(needed)]
    assert len(order) == len(set(order)) == len({*ALWAYS, *TWO_LEVELS, *DEEPER, *LONG, *by_address})
    for place, kernel in enumerate(order):
        if kernel in LONGEST_FIRST:
            assert kernels_called_by(kernel).isdisjoint(set(order[place + 1 :]) & set(LONGEST_FIRST))
    assert kernels_called_by(advance) >= set(shared) - by_address
