"""A report as text: on a terminal, and as lines of fixed width."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Iterable
from typing import Any

from rich import table as rich_table
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.text import Text

from policytree.common.safe_text import visible
from policytree.report.content import (
    Block,
    Choices,
    Code,
    Content,
    Facts,
    Fold,
    Outline,
    Picture,
    Prices,
    Section,
    Steps,
    Table,
    Words,
)
from policytree.trees.text import branches

TEXT_WIDTH = 96  # columns of a report file
INDENT = (0, 0, 0, 2)
UNLIMITED = 10_000
SHORTEST = 12  # letters: longer words at the head of a column are broken into lines


def to_text(content: Content, width: int = TEXT_WIDTH) -> str:
    """The whole report in lines of this width."""
    head = [Text(visible(content.title), style="bold"), Text(visible(content.subtitle))] if content.title else []
    return plain_text([*head, *(part for s in content.sections for part in section_parts(s))], width)


def plain_text(parts: Iterable[RenderableType], width: int = TEXT_WIDTH) -> str:
    """Return what would be printed, without colours and without trailing blanks."""
    plain = io.StringIO()
    console = Console(file=plain, width=width, color_system=None, highlight=False, emoji=False, markup=False)
    for part in parts:
        console.print(part)
    return "\n".join(line.rstrip() for line in plain.getvalue().splitlines()).lstrip("\n") + "\n"


def section_parts(section: Section) -> list[RenderableType]:
    """A section for a terminal: an empty line, its title, and its blocks with empty lines where they belong."""
    parts: list[RenderableType] = [Text(), Text(visible(section.title), style="bold")]
    before: Block | None = None
    for block in section.blocks:
        if isinstance(block, Picture | Prices):
            continue  # said in words, or in a table, beside it
        if before is not None and not (isinstance(block, Words) and isinstance(before, Words)):
            parts.append(Text())
        if isinstance(block, Table) and block.caption != section.title:
            parts.append(Padding(Text(visible(block.caption), style="italic"), INDENT, expand=False))
        parts.append(Padding(_shown(block), INDENT, expand=False))
        before = block
    return parts


def _shown(block: Any) -> RenderableType:
    shown: dict[type, Callable[[Any], RenderableType]] = {
        Words: lambda b: Text(("Note: " if b.tone == "note" else "") + visible(b.text)),
        Facts: _facts,
        Table: _FittingTable,
        Outline: lambda b: Text("\n".join(_lines(b.root, "", "")), overflow="fold"),
        Steps: lambda b: _facts(Facts(tuple((f"{k}.", item) for k, item in enumerate(b.items, 1)))),
        Code: lambda b: Text(visible(b.text), overflow="fold"),
        Choices: lambda b: _FittingTable(b.table),
        Fold: _fold,
    }
    return shown[type(block)](block)


def _facts(block: Facts) -> RenderableType:
    grid = rich_table.Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, text in block.pairs:
        first, second = (text, name) if block.large else (name, text)  # large numbers stand before what they count
        grid.add_row(Text(visible(first)), Text(visible(second)))
    return grid


class _FittingTable:
    """A table whose intervals stay on one line where there is room, and are broken, not cut, where there is none."""

    def __init__(self, block: Table):
        self._block = block

    def _fitting(self, console: Console, options: ConsoleOptions) -> rich_table.Table:
        whole = _table(self._block, broken=False)
        room = options.max_width >= Measurement.get(console, options.update(width=UNLIMITED), whole).minimum
        return whole if room else _table(self._block, broken=True)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self._fitting(console, options)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, self._fitting(console, options))


def _table(block: Table, broken: bool) -> rich_table.Table:
    """A table; ``broken`` says whether intervals may be broken into two lines."""
    table = rich_table.Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="", collapse_padding=True)
    for k, column in enumerate(block.columns):
        numeric = k > 0 and block.is_numeric(k)
        widest = max((len(row[k]) for row in block.rows), default=0)
        head = "\n".join(textwrap.wrap(visible(column), max(widest, SHORTEST), break_long_words=False))
        least = min(SHORTEST, max(widest, *map(len, head.split("\n"))))
        if broken:
            words = [word for text in (column, *(row[k] for row in block.rows)) for word in visible(text).split()]
            least = min(SHORTEST, max(map(len, words), default=1))
        style: dict[str, Any] = {"justify": "right"} if numeric else {}
        table.add_column(Text(head), overflow="fold", no_wrap=numeric and not broken, min_width=least, **style)
    for k, row in enumerate(block.rows):
        table.add_row(*(Text(visible(cell)) for cell in row), style="bold" if k in block.strong else None)
    return table


def _fold(block: Fold) -> RenderableType:
    grid = rich_table.Table.grid()
    grid.add_column(overflow="fold")
    grid.add_row(Text(visible(block.title) + ":"))
    for inner in block.blocks:
        if not isinstance(inner, Picture | Prices):
            grid.add_row(_shown(inner))
    return grid


def _lines(node: dict[str, Any], first: str, rest: str) -> list[str]:
    """A tree as indented lines."""
    if "treatment" in node:
        said = [f"{rest}    {visible(line)}" for line in node["lines"]]
        return [f"{first}{visible(node['treatment'])}  ({node['rows']})", *said]
    missing = f" ({visible(node['missing'])})" if node["missing"] else ""
    first_answer, second_answer = map(visible, node["answers"])
    yes, no = branches(first_answer, second_answer, rest)
    return [f"{first}{visible(node['asked'])}{missing}", *_lines(node["yes"], *yes), *_lines(node["no"], *no)]
