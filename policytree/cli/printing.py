"""Sections of a report on a terminal, as they come."""

from __future__ import annotations

from pathlib import Path

import typer
from rich.console import Console

from policytree.report.content import Facts, Section
from policytree.report.text import plain_text, section_parts

# What a terminal shows; the files hold everything.
PRINTED = ("verdict", "tree", "values", "optimism", "heterogeneity", "certificate", "warnings")


def print_sections(console: Console, *sections: Section) -> None:
    """Print them one after the other; into files and pipes without blanks at the end of lines."""
    parts = [part for section in sections for part in section_parts(section)]
    if not console.is_terminal:
        typer.echo("\n" + plain_text(parts, console.width), nl=False)
        return
    for part in parts:
        console.print(part)


def files_section(written: list[tuple[Path, str]]) -> Section:
    """The files and what they are for."""
    pairs = tuple((path.name, purpose) for path, purpose in written)
    return Section("files", f"Files in {written[0][0].parent}", (Facts(pairs),))
