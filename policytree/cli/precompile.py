"""``python -m policytree.cli.precompile FOLDER``: compile the kernels that a wheel holds.

Kernels are compiled in one process and one order, for a processor that is named and no other, so that two runs write
the same bytes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from policytree.solvers.kernels.precompiled import environment


def main() -> None:
    """Compile into the folder; in a process of its own, since numba reads its environment when it is imported."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", choices=["depth-two"], help="kernels of trees up to this depth, for tests")
    arguments = parser.parse_args()
    wanted = environment()
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        again = [sys.executable, "-m", "policytree.cli.precompile", *sys.argv[1:]]
        with tempfile.TemporaryDirectory() as empty:
            settings = os.environ | wanted | {"NUMBA_CACHE_DIR": empty}
            sys.exit(subprocess.run(again, env=settings, check=False).returncode)
    from policytree.born_again.needed_kernels import BORN_AGAIN
    from policytree.solvers.core.compilation import (
        ALWAYS,
        CODING,
        GAPS,
        PLAIN,
        RELAXED,
        TWO_LEVELS,
        WIDTHS,
        all_kernels,
    )
    from policytree.solvers.kernels.compiling import record_kernels

    needed = [*all_kernels(), (BORN_AGAIN, "")]
    if arguments.only:
        needed = [(ALWAYS + CODING + RELAXED, ""), (TWO_LEVELS, PLAIN), *((GAPS, codes) for codes in WIDTHS)]
    size = record_kernels([(kernel, kind) for kernels, kind in needed for kernel in kernels], arguments.folder)
    files = len(list(arguments.folder.glob("*.bin")))
    sys.stdout.write(f"{files} kernels, {size / 1e6:.1f} MB in {arguments.folder}\n")


if __name__ == "__main__":
    main()
