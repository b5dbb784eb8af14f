"""Sections of a report on a terminal, as they come."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from policytree.report.content import Facts, Section
from policytree.report.text import plain_text, section_parts

# Sections shown on a terminal; the files hold everything.
PRINTED = (
    "verdict", "tree", "offers", "further", "groups", "values", "means", "optimism", "heterogeneity", "certificate",
    "warnings",
)  # fmt: skip


def print_sections(console: Console, *sections: Section) -> None:
    """Print them one after the other; into files and pipes without blanks at the end of lines."""
    parts = [part for section in sections for part in section_parts(section)]
    if not console.is_terminal:
        typer.echo("\n" + plain_text(parts, console.width), nl=False)
        return
    for part in parts:
        console.print(part)


def print_json(data: Any) -> None:
    """Print plain values as JSON, for scripts; numbers that JSON lacks become null."""
    typer.echo(json.dumps(finite(data), allow_nan=False, ensure_ascii=False, indent=1))


def finite(value: Any) -> Any:
    """Plain values with None in place of what JSON cannot hold."""
    if isinstance(value, Mapping):
        return {str(name): finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    if hasattr(value, "item"):  # numpy's numbers
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def files_section(written: list[tuple[Path, str]]) -> Section:
    """The files and what they are for."""
    pairs = tuple((path.name, purpose) for path, purpose in written)
    return Section("files", f"Files in {written[0][0].parent}", (Facts(pairs),))
