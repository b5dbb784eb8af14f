"""A report that one click on the site opens: the one that the how-to page on reports writes.

The page's script leaves its report beside itself when the gallery runs it; from there it is taken. Where the gallery
did not run it, the script runs here: like those of the galleries, only if it changed, or after ``docs/build clean``.
"""

from __future__ import annotations

import contextlib
import io
import runpy
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

SCRIPT = Path(__file__).parents[1] / "scripts" / "how_to" / "report.py"
WRITTEN = SCRIPT.with_name("report.html")
NAME = "sample_report.html"  # beside index.html


def write_sample_report(folder: Path) -> Path:
    """Write the report into a folder, unless it is there and newer than its script; returns its path."""
    target = folder / NAME
    if not target.exists() or target.stat().st_mtime < SCRIPT.stat().st_mtime:
        if not WRITTEN.exists():
            with contextlib.chdir(SCRIPT.parent), contextlib.redirect_stdout(io.StringIO()):
                runpy.run_path(str(SCRIPT))
        shutil.move(WRITTEN, target)
    return target


def _after_build(app: Sphinx, failure: Exception | None) -> None:
    if failure is None and app.builder.format == "html":
        write_sample_report(Path(app.outdir))


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the report when the pages are there."""
    app.connect("build-finished", _after_build)
    return {"parallel_read_safe": True}
