"""Shortcuts within numba leave what it compiles as it is, and are gone when kernels are compiled."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
from llvmlite.binding.object_file import ObjectFileRef
from numba.core import event

from policytree.solvers.kernels import precompiled, quick_numba

RECORD = """
import sys
from pathlib import Path
from policytree.solvers.core import compilation
from policytree.solvers.kernels import compiling, quick_numba
if sys.argv[2] == "without":
    quick_numba.SHORTCUTS = ()
needed = compilation.MERGING + compilation.EXACT_SUMS + compilation.CODING + (compilation.best_one_split,)
compiling.record_kernels([(kernel, "") for kernel in needed], Path(sys.argv[1]))
"""


def machine_code(file: Path) -> list[bytes]:
    """The machine code of a kernel; the code beside it, for its callers, may name its values otherwise."""
    _, (library, *_) = pickle.loads(file.read_bytes())
    code = ObjectFileRef.from_data(library[2][0])
    return [bytes(section.data()) for section in code.sections() if section.is_text()]


def test_the_same_machine_code_with_and_without_shortcuts(tmp_path):
    """Kernels that count references and such that borrow, with arrays in tuples, loops and numpy's functions."""
    written = {}
    for which in ("with", "without"):
        folder = tmp_path / which
        subprocess.run(
            [sys.executable, "-c", RECORD, folder, which], check=True, cwd=Path(__file__).parents[2],
            env=os.environ | precompiled.environment() | {"NUMBA_CACHE_DIR": str(tmp_path / f"cache {which}")},
        )  # fmt: skip
        written[which] = {file.name: machine_code(file) for file in folder.glob("*.bin")}
    assert len(written["with"]) >= 8  # the kernels and the separate ones that they call
    assert sum(len(part) for code in written["with"].values() for part in code) > 5_000
    assert written["with"] == written["without"]


def of_numba() -> list:
    return [vars(owner)[name] for owner, name, _ in quick_numba.SHORTCUTS]


def test_shortcuts_end(monkeypatch):
    """Other functions are compiled by numba as it is, whatever happened to kernels."""
    monkeypatch.setattr(quick_numba, "TRIED", (numba.version_info.short, numba.version_info.short))
    before = of_numba()
    try:
        with quick_numba.shortcuts():
            assert all(new is not old for new, old in zip(of_numba(), before, strict=True))
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    assert of_numba() == before


def test_numpys_functions_are_compiled_once_for_callers_of_several_kinds(monkeypatch):
    monkeypatch.setattr(quick_numba, "TRIED", (numba.version_info.short, numba.version_info.short))

    def one(n):
        return np.empty((n, n, n, n, n, n), np.complex64)[0, 0, 0, 0, 0].size

    def two(n):
        return np.empty((n, n, n, n, n, n), np.complex64)[0, 0].shape[1]

    with quick_numba.shortcuts(), event.install_recorder("numba:compile") as recorder:
        assert numba.njit(nogil=True, no_cfunc_wrapper=True)(one)(3) == 3
        numba.njit("int64(int64)", no_cpython_wrapper=True)(two)
    compiled = [seen.data["dispatcher"] for _, seen in recorder.buffer if seen.is_start]
    (empty,) = (each for each in compiled if each.py_func.__qualname__ == "ol_np_empty.<locals>.impl")
    assert empty.targetoptions["no_cfunc_wrapper"] and empty.targetoptions["no_cpython_wrapper"]
    assert {one, two} <= {each.py_func for each in compiled}


def test_other_releases_of_numba_are_left_alone(monkeypatch):
    monkeypatch.setattr(quick_numba, "TRIED", ((0, 1), (0, 2)))
    before = of_numba()
    with quick_numba.shortcuts():
        assert of_numba() == before
