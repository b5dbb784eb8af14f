"""Kernels that a wheel holds: loaded without compiling, and not at all where anything differs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from llvmlite import binding
from packaging.requirements import Requirement

from policytree.solvers.kernels import compiling, precompiled
from policytree.solvers.kernels.precompiled import MANIFEST, VARIABLE, Precompiled, open_folder

ROOT = Path(__file__).parents[2]
FIT = """
import numpy as np
from policytree import PolicyTree
rng = np.random.default_rng(0)
X, rewards = rng.integers(0, 12, (300, 4)).astype(float), rng.normal(size=(300, 2))
model = PolicyTree(max_depth=2).fit(X, rewards)
import policytree
from policytree.solvers.kernels.compiling import seconds_compiling
print(policytree.__file__, seconds_compiling() > 0, model.score(X, rewards))
"""


def without(*names: str) -> dict[str, str]:
    """The environment but for these variables."""
    return {name: value for name, value in os.environ.items() if name not in names}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """A wheel with the kernels up to depth two: one recording for all tests."""
    if os.uname().machine != "x86_64" or sys.platform != "linux":
        pytest.skip("wheels hold kernels for Linux on x86-64")
    folder = tmp_path_factory.mktemp("wheel")
    built = subprocess.run(
        [ROOT / ".ci" / "wheel", folder, "--only", "depth-two"], capture_output=True, text=True, check=False,
        env=without("PYTHONPATH", "NUMBA_CACHE_DIR") | {"POLICYTREE_WHEEL_FOLDER": str(folder / "work")},
    )  # fmt: skip
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = folder.glob("*.whl")
    assert "-cp" in wheel.name and "manylinux" in wheel.name
    return wheel


@pytest.fixture(scope="module")
def installed(wheel) -> Path:
    """Where the wheel was installed, by itself."""
    site = wheel.parent / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target"]
    subprocess.run([*pip, site, wheel], check=True, capture_output=True)
    return site


def fitted(site: Path, cache: Path, **settings: str) -> tuple[bool, str]:
    """Fit at depth two from a folder of packages: whether kernels were compiled, and the value."""
    environment = without("PYTHONPATH") | {"PYTHONPATH": str(site), "NUMBA_CACHE_DIR": str(cache)} | settings
    done = subprocess.run(
        [sys.executable, "-c", FIT], capture_output=True, text=True, check=False, env=environment, cwd=cache.parent
    )
    assert done.returncode == 0, done.stderr
    file, compiled, value = done.stdout.split()
    assert file.startswith(str(site))
    return compiled == "True", value


@pytest.mark.slow
def test_only_what_was_changed_is_compiled(installed, tmp_path):
    """Nothing of a wheel as it is; then a file of code with another byte, and sources with a word more."""
    compiled, value = fitted(installed, tmp_path / "none")
    assert not compiled and not list(tmp_path.rglob("*.nbc"))

    folder = tmp_path / "compiled"
    shutil.copytree(installed / "policytree" / "solvers" / "kernels" / "compiled", folder)
    (file,) = folder.glob("*.exponent_range.*")  # which compiles in a quarter of a second
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    assert fitted(installed, tmp_path / "code", **{VARIABLE: str(folder)}) == (True, value)

    shutil.copytree(installed, tmp_path / "site")
    changed = tmp_path / "site" / "policytree" / "solvers" / "kernels" / "depth_two" / "solve.py"
    changed.write_text(changed.read_text(encoding="utf-8") + "# a word\n", encoding="utf-8")
    assert fitted(tmp_path / "site", tmp_path / "sources") == (True, value)
    names = {file.name.partition("-")[0] for file in (tmp_path / "sources").rglob("*.nbc")}
    assert any("short_pairs" in name for name in names)
    assert not any("node_sums" in name for name in names)  # of a package below, which did not change


@pytest.fixture
def folder(tmp_path) -> Path:
    """A manifest of this very process, and one file."""
    recorder = precompiled.Recorder(tmp_path, compiling.SEPARATE)
    recorder.write("kernel", b"content")
    recorder.finish()
    return tmp_path


def rewrite(folder: Path, **changes) -> None:
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    (folder / MANIFEST).write_text(json.dumps(manifest | changes), encoding="utf-8")


def test_what_fits_is_read(folder):
    found = open_folder(folder, compiling.SEPARATE)
    assert found.read("kernel") == b"content" and found.reason == ""
    assert found.read("another") is None
    (folder / "kernel.bin").write_bytes(b"contenT")
    assert found.read("kernel") is None
    (folder / "kernel.bin").unlink()
    assert found.read("kernel") is None


@pytest.mark.parametrize("what", ["python", "numba", "llvmlite", "system", "separate"])
def test_nothing_is_read_where_a_requirement_differs(folder, what):
    needs = precompiled.requirements(compiling.SEPARATE)
    rewrite(folder, requires=needs | {what: "another"})
    found = open_folder(folder, compiling.SEPARATE)
    assert found.read("kernel") is None and f"compiled for {what} another" in found.reason
    rewrite(folder, requires={name: value for name, value in needs.items() if name != what})
    assert open_folder(folder, compiling.SEPARATE).read("kernel") is None


def test_nothing_is_read_on_a_processor_without_the_instructions(folder):
    rewrite(folder, cpu_features=["sse2", "avx9000"])
    found = open_folder(folder, compiling.SEPARATE)
    assert found.read("kernel") is None and found.reason == "this processor has no avx9000"


def test_nothing_is_read_without_avx2(folder, monkeypatch):
    """As on a processor of before 2013."""
    has = dict(binding.get_host_cpu_features()) | {"avx2": False}
    monkeypatch.setattr(precompiled.binding, "get_host_cpu_features", lambda: has)
    found = open_folder(folder, compiling.SEPARATE)
    assert found.read("kernel") is None and "avx2" in found.reason.removeprefix("this processor has no ").split(", ")


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": 99, "requires": {}, "cpu_features": [], "files": {}}'])
def test_nothing_is_read_by_a_manifest_that_makes_no_sense(folder, text):
    (folder / MANIFEST).write_text(text, encoding="utf-8")
    found = open_folder(folder, compiling.SEPARATE)
    assert found.read("kernel") is None and found.reason


def test_nothing_is_read_where_there_is_nothing(tmp_path):
    assert open_folder(tmp_path / "none", compiling.SEPARATE) == Precompiled.none(tmp_path / "none", "there are none")


@pytest.mark.parametrize(
    ("name", "value"), [("NUMBA_CPU_NAME", "generic"), ("NUMBA_CPU_FEATURES", "+sse2"), (VARIABLE, "0")]
)
def test_code_of_ones_own_is_compiled(name, value):
    code = f"from {precompiled.__name__} import precompiled; print(precompiled({compiling.SEPARATE}).reason)"
    environment = {key: each for key, each in os.environ.items() if not key.startswith("NUMBA_CPU")} | {name: value}
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert name.split("_FEATURES")[0].split("_NAME")[0] in said.stdout


RECORD = """
import sys
from importlib import metadata
from pathlib import Path
from numba import types
from policytree.solvers.kernels.compiling import record_kernels
sys.path.insert(0, ".")
kept = [object() for _ in range(int(sys.argv[1]))]  # so that addresses differ
from expressions import run
record_kernels([(run, "")], Path(sys.argv[2]))
"""
EXPRESSIONS = """
from numba import types
from policytree.solvers.kernels.compiling import kernel
@kernel(separate=True)
def least(x):
    return (2 * x * x + 1).min()
@kernel(takes=(types.float64[::1],))
def run(x):
    return least(x) + (x * x).sum()
"""


def test_two_recordings_are_the_same_bytes(tmp_path):
    (tmp_path / "expressions.py").write_text(EXPRESSIONS, encoding="utf-8")
    for k in ("1", "200000"):
        settings = precompiled.environment() | {"NUMBA_CACHE_DIR": str(tmp_path / f"cache{k}"), "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", RECORD, k, tmp_path / k]
        done = subprocess.run(
            command, cwd=tmp_path, env=os.environ | settings, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    one, two = ({file.name: file.read_bytes() for file in (tmp_path / k).iterdir()} for k in ("1", "200000"))
    assert sorted(name.split(".")[1] for name in one) == ["json", "least", "run"]
    assert one == two


FIRST_FITS = """
import numpy as np
import policytree.estimators
from policytree import PolicyTree
from policytree.solvers.kernels.compiling import seconds_compiling
rng = np.random.default_rng(0)
X, rewards = rng.integers(0, 12, (600, 5)).astype(float), rng.normal(size=(600, 3))
T = rng.integers(0, 3, 600)
PolicyTree(max_depth=2).fit(X, rewards)
PolicyTree(max_depth=2, min_samples_per_treatment=5, feature_costs=[.001] * 5, max_leaf_nodes=3).fit(X, rewards, T=T)
print(policytree.__file__, seconds_compiling())
"""


def link_dependencies(requires: list[str], folder: Path) -> None:
    """Link what these requirements need, and nothing else that is installed here, into a folder."""
    for requirement in map(Requirement, requires):
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        needed = metadata.distribution(requirement.name)
        tops = {file.parts[0] for file in needed.files or () if file.parts[0] not in ("..", "__pycache__")}
        if any((folder / top).is_symlink() for top in tops):
            continue
        for top in tops:
            (folder / top).symlink_to(needed.locate_file(top))
        link_dependencies(needed.requires or [], folder)


@pytest.mark.slow
def test_the_first_trees_of_a_wheel(installed, tmp_path):
    """With its dependencies only, with three arms and under constraints. Releases try depth three of whole wheels."""
    folder = tmp_path / "dependencies"
    folder.mkdir()
    (own,) = metadata.distributions(path=[str(installed)])
    link_dependencies(own.requires, folder)
    assert not (folder / "pytest").exists()
    done = subprocess.run(
        [sys.executable, "-S", "-c", FIRST_FITS], capture_output=True, text=True, check=False, cwd=tmp_path,
        env=without("PYTHONPATH") | {
            "PYTHONPATH": os.pathsep.join([str(installed), str(folder)]), "NUMBA_CACHE_DIR": str(tmp_path / "cache")
        },
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    file, seconds = done.stdout.split()
    assert file.startswith(str(installed)) and float(seconds) == 0
