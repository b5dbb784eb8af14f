"""Kernels that were compiled before they were installed: what a wheel holds beside the sources.

A folder has one file per compiled kernel and a manifest: for which Python, numba, llvmlite and system they were made,
which instructions the processor must have, and the hash of every file. Nothing is read where anything differs: the
kernel is then compiled, as without the folder. Names carry the stamp of the sources (``compiling.folder_stamp``), so
that an edited kernel is simply not found. A file is hashed before it is loaded.

``POLICYTREE_PRECOMPILED`` names another folder, or switches this off ("0").
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import llvmlite
import numba
from llvmlite import binding
from numba.core import config

FORMAT = 1
MANIFEST = "manifest.json"
FOLDER = Path(__file__).parent / "compiled"  # where wheels have it
VARIABLE = "POLICYTREE_PRECOMPILED"

#: The processor that kernels are compiled for, as LLVM calls it, and the instructions that it has beyond x86-64: those
#: of every Intel since Haswell (2013) and AMD since Excavator (2015).
CPU_NAME = "x86-64-v3"
CPU_FEATURES = (
    "avx", "avx2", "bmi", "bmi2", "cx16", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2",
    "ssse3", "xsave",
)  # fmt: skip


def requirements(separate: bool) -> dict[str, str]:
    """Return the properties that must be equal where kernels are compiled and where they are loaded.

    Parameters
    ----------
    separate : bool
        Whether kernels are called by address (``compiling.SEPARATE``).
    """
    return {
        "python": str(sys.implementation.cache_tag),
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "system": binding.get_process_triple(),
        "separate": str(separate),
    }


def environment() -> dict[str, str]:
    """Environment variables with which numba compiles for :data:`CPU_NAME` and nothing more, all in one process."""
    features = ",".join(f"+{feature}" for feature in CPU_FEATURES)
    alone = {"POLICYTREE_COMPILE_HELPERS": "0", "PYTHONHASHSEED": "0"}
    return {"NUMBA_CPU_NAME": CPU_NAME, "NUMBA_CPU_FEATURES": features, VARIABLE: "0"} | alone


@dataclass(frozen=True)
class Precompiled:
    """The compiled kernels that this process may load.

    Attributes
    ----------
    folder : Path
    files : mapping of str to str
        SHA-256 of every file, by the name of its kernel; empty where nothing may be loaded.
    reason : str
        Why nothing may be; "" otherwise.
    """

    folder: Path
    files: Mapping[str, str]
    reason: str = ""

    @classmethod
    def none(cls, folder: Path, reason: str) -> Precompiled:
        """Nothing to load."""
        return cls(folder, {}, reason)

    def read(self, name: str) -> bytes | None:
        """Read a kernel's file; None if there is none, or it differs from the manifest."""
        expected = self.files.get(name)
        if expected is None:
            return None
        try:
            content = (self.folder / f"{name}.bin").read_bytes()
        except OSError:
            return None
        return content if hashlib.sha256(content).hexdigest() == expected else None


def open_folder(folder: Path, separate: bool) -> Precompiled:
    """Read a manifest, and compare it with this process and this machine.

    Parameters
    ----------
    folder : Path
    separate : bool
        See :func:`requirements`.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        known, features, files = manifest["requires"], manifest["cpu_features"], manifest["files"]
        if manifest["format"] != FORMAT:
            return Precompiled.none(folder, f"they are of format {manifest['format']}, not {FORMAT}")
    except FileNotFoundError:
        return Precompiled.none(folder, "there are none")
    except (OSError, ValueError, KeyError, TypeError) as error:
        return Precompiled.none(folder, f"the manifest cannot be read ({type(error).__name__}: {error})")
    here = requirements(separate)
    for what, value in here.items():
        if known.get(what) != value:
            return Precompiled.none(folder, f"they were compiled for {what} {known.get(what)}, and this is {value}")
    has = binding.get_host_cpu_features()
    lacking = [feature for feature in features if not has.get(feature, False)]
    if lacking:
        return Precompiled.none(folder, f"this processor has no {', '.join(lacking)}")
    return Precompiled(folder, files)


@cache
def precompiled(separate: bool) -> Precompiled:
    """The compiled kernels of this installation, looked at once."""
    chosen = os.environ.get(VARIABLE, "")
    folder = Path(chosen) if chosen not in ("", "0") else FOLDER
    if chosen == "0":
        return Precompiled.none(folder, f"{VARIABLE}=0 says so")
    if config.CPU_NAME is not None or config.CPU_FEATURES is not None:
        return Precompiled.none(folder, "NUMBA_CPU_NAME or NUMBA_CPU_FEATURES asks for code of its own")
    return open_folder(folder, separate)


class Recorder:
    """Writes compiled kernels into a folder, as they come.

    Parameters
    ----------
    folder : Path
        Made if there is none.
    separate : bool
        See :func:`requirements`.
    """

    def __init__(self, folder: Path, separate: bool):
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._separate = folder, separate
        self._files: dict[str, str] = {}

    def write(self, name: str, content: bytes) -> None:
        """Keep a kernel."""
        (self._folder / f"{name}.bin").write_bytes(content)
        self._files[name] = hashlib.sha256(content).hexdigest()

    def finish(self) -> int:
        """Write the manifest, and return the bytes of all files."""
        manifest = {
            "format": FORMAT,
            "requires": requirements(self._separate),
            "cpu_name": CPU_NAME,
            "cpu_features": list(CPU_FEATURES),
            "files": dict(sorted(self._files.items())),
        }
        text = json.dumps(manifest, indent=1, sort_keys=True)
        (self._folder / MANIFEST).write_text(text + "\n", encoding="utf-8")
        return sum(file.stat().st_size for file in self._folder.iterdir())
