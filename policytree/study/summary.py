"""A study at a glance, as text and for notebooks."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Mapping

import pandas as pd

WIDTH = 100


def summary_text(summary: Mapping[str, str]) -> str:
    """A line, or some, for each part."""
    indent = max(map(len, summary)) + 2
    lines = [
        textwrap.fill(text, WIDTH, initial_indent=about.ljust(indent), subsequent_indent=" " * indent)
        for about, text in summary.items()
    ]
    return "\n".join(lines)


def summary_html(summary: Mapping[str, str], counts: pd.DataFrame | None) -> str:
    """Two small tables: the parts of the study, and, where they are known, rows and raw means by treatment."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{html.escape(about)}</th>"
        f"<td style='text-align:left'>{html.escape(text)}</td></tr>"
        for about, text in summary.items()
    )
    known = "" if counts is None else counts.to_html(float_format="{:.3g}".format)
    return f"<table>{rows}</table>{known}"
