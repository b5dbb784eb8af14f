"""Thumbnails of pages without a picture: the first lines that the page printed, set as on a screen.

The gallery takes a page's first picture as its thumbnail, and one generic picture for all pages that have none. After
the gallery, this extension draws those anew.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from printed_sentences import are_sentences

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PRINTED = re.compile(r"sphx-glr-script-out\n\n \.\. code-block:: none\n\n((?: {4}.*\n|[ ]*\n)+)")
COLUMNS, LINES = 29, 8  # legible where a thumbnail is 160 pixels wide
AFTER_THE_GALLERY = 900  # its listener has Sphinx's usual priority, 500


def first_lines(page: str) -> list[str]:
    """The first lines that a page printed, wrapped and cut to the size of a thumbnail; none if it printed nothing."""
    printed = PRINTED.search(page)
    lines = textwrap.dedent(printed[1]).strip("\n").splitlines() if printed else []
    wrapped = [part for line in lines for part in _wrap(line)]
    return wrapped[:LINES]


def _wrap(line: str) -> list[str]:
    """Sentences wrap; lines of tables and trees are cut, so that columns and branches stay below each other."""
    if not are_sentences(line.strip()):
        return [line[:COLUMNS]]
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.wrap(line, COLUMNS, subsequent_indent=indent, drop_whitespace=True) or [""]


def draw(lines: list[str], target: Path, size: tuple[int, int]) -> None:
    """Draw lines of text as a picture of so many pixels."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(size[0] / 100, size[1] / 100), dpi=100, facecolor="#f6f8fa")
    FigureCanvasAgg(figure)
    height = 0.94 / LINES
    for i, line in enumerate(lines):
        place = {"x": 0.03, "y": 0.97 - i * height, "va": "top", "family": "monospace", "fontsize": 15.5}
        figure.text(s=line.replace("$", r"\$"), color="#1f5f7a" if i == 0 else "#222222", **place)
    figure.savefig(target)


def _after_gallery(app: Sphinx) -> None:
    conf = app.config.sphinx_gallery_conf
    for folder in (Path(app.srcdir) / name for name in conf["gallery_dirs"]):
        for script in folder.glob("*.py"):
            images = folder / "images"
            page = script.with_suffix(".rst").read_text(encoding="utf-8")
            if f"sphx_glr_{script.stem}_001.png" not in page:  # such a file may be there from an earlier build
                lines = first_lines(page)
                if lines:
                    draw(lines, images / "thumb" / f"sphx_glr_{script.stem}_thumb.png", conf["thumbnail_size"])


def setup(app: Sphinx) -> dict[str, bool]:
    """Draw thumbnails when the gallery has run."""
    app.connect("builder-inited", _after_gallery, priority=AFTER_THE_GALLERY)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
