"""Processes that compile kernels for this one: on its other cores, or while it does something else.

A helper gets names of kernels, makes them ready as anybody does (``compiling.compile_kernels``), which leaves them on
the disk, and ends. It shares the work by seats and claims (``sharing.py``), knows no data of its parent, and ends
when the parent does. Without helpers nothing is missing but time.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from policytree.common.memory import free_bytes

VARIABLE = "POLICYTREE_COMPILE_HELPERS"  # "0": none; also how a helper knows not to start any
LEAST_MEMORY = 1.5e9  # bytes that must be free: a process that compiles takes half a gigabyte
CODE = """
import json, sys
sys.path[:] = json.loads(sys.stdin.readline())
from {package} import compiling, helping
helping.work(lambda needed: compiling.compile_kernels(needed, most_garbage=compiling.MOST_GARBAGE))
"""

_started: list[subprocess.Popen] = []


def start_helper(kernels: Iterable[tuple[str, str, str]]) -> bool:
    """Start a process that compiles kernels, in this order: module, name and kind of each; whether it could be.

    Not started from programs into which Python is embedded, whose executable is not Python, or where memory is short.
    """
    if os.environ.get(VARIABLE) == "0" or not Path(sys.executable or "").name.startswith("python"):
        return False
    free = free_bytes()
    if free is not None and free < LEAST_MEMORY:
        return False
    code = CODE.format(package=__name__.rpartition(".")[0])
    try:
        helper = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=os.environ | {VARIABLE: "0"}, start_new_session=True, text=True,
        )  # fmt: skip
        assert helper.stdin is not None
        helper.stdin.write(f"{json.dumps(sys.path)}\n{json.dumps(list(kernels))}\n")
        helper.stdin.flush()  # and left open: its end tells the helper that this process has ended
    except OSError:
        return False
    if not _started:
        atexit.register(end_helpers)
    _started.append(helper)
    return True


def end_helpers() -> None:
    """End the helpers that still work, and wait until they have."""
    while _started:
        helper = _started.pop()
        with suppress(OSError):
            helper.terminate()
            helper.stdin.close()
        helper.wait()


def work(compile_kernels: Callable[[list], object]) -> None:
    """Do a helper's work: make ready the kernels that its standard input names."""
    needed = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    compile_kernels([(getattr(importlib.import_module(module), name), kind) for module, name, kind in needed])


def _end_with_parent() -> None:
    """End at once when the parent closes its end: compiling heeds nothing else."""
    sys.stdin.read()
    os._exit(0)
