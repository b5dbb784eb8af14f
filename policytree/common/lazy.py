"""Packages whose names are imported on first use, so that each name costs only its own imports.

The names stand once, in the package's ``__init__.pyi``: type checkers and editors read it as it is, and
:func:`lazy_names` reads from it where each name is defined.
"""

from __future__ import annotations

import ast
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path


@contextmanager
def ended_by_ctrl_c() -> Iterator[None]:
    """Let Ctrl-C end the process at once, for imports of the command line: nothing is open yet.

    Some packages swallow what is raised while they are imported, and the job would go on for minutes. Nothing changes
    where Ctrl-C is ignored or handled otherwise, or outside the main thread.
    """
    usual = signal.getsignal(signal.SIGINT)
    if usual is not signal.default_int_handler or threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(*_: object) -> None:
        os.write(2, b"Interrupted: no file was written.\n")
        os._exit(130)

    signal.signal(signal.SIGINT, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)


def homes_in(stub: Path) -> dict[str, str]:
    """Module of every name that a stub's lines ``from module import name as name`` export."""
    tree = ast.parse(stub.read_text(encoding="utf-8"))
    lines = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module]
    return {alias.asname: str(node.module) for node in lines for alias in node.names if alias.asname}


def lazy_names(package: str, file: str) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package.

    Packages within it that the stub lists (``from package import room as room``) are attributes before anybody has
    imported them; ``__all__`` has names only.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    file : str
        Its ``__file__``; the stub stands beside it.
    """
    homes = homes_in(Path(file).with_suffix(".pyi"))
    names = sorted(name for name, home in homes.items() if home != package)

    def load(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        return import_module(f"{package}.{name}") if home == package else getattr(import_module(home), name)

    return load, lambda: sorted({*names, *homes}), names
