"""Directives that show tables of `benchmarks/results`, so that no number of the site is typed by hand.

    .. benchmark-table:: exact_trees.md
       :columns: case, solver, seconds
       :rows: ^FICO
       :command: python benchmarks/exact_trees.py

``:rows:`` is a regular expression on the first column (default: all), ``:columns:`` are names of columns (default:
all), ``:table:`` says which table of the file (default: the first, 0), ``:mark:`` a text whose rows are set in bold,
``:grouped:`` writes the first column once, as a line above the rows that share it, ``:sweeps:`` shows the ends of the
sweeps of `scaling.csv`. Below the table stand the file, the date and the machine
that its head names, and the command. A CSV file is taken too. A missing file, row or column is an error: results that
move are noticed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import directives
from result_tables import Table, chosen, csv_table, ends_of_sweeps, facts, markdown_tables, plain
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"


def table_node(table: Table, mark: str | None = None, grouped: bool = False) -> nodes.table:
    """A docutils table; rows that hold the marked text in bold, or rows below a line with what they share first."""
    head, rows = table
    width = len(head) - grouped
    body, above = nodes.tbody(""), None
    for row in rows:
        if grouped and row[0] != above:
            above = row[0]
            body += _row([above], nodes.inline, span=width, classes=["group"])
        body += _row(row[grouped:], nodes.strong if mark and mark in row else nodes.inline)
    group = nodes.tgroup(cols=width)
    group += [nodes.colspec(colwidth=1) for _ in range(width)]
    group += nodes.thead("", _row(head[grouped:], nodes.inline))
    group += body
    return nodes.table("", group, classes=["benchmark"])


def _row(cells: Iterable[str], style, span: int = 1, classes: Sequence[str] = ()) -> nodes.row:
    made = [nodes.entry("", nodes.paragraph("", "", style("", plain(cell)))) for cell in cells]
    if span > 1:
        made[0]["morecols"] = span - 1
    return nodes.row("", *made, classes=list(classes))


class BenchmarkTable(SphinxDirective):
    """A table of a file in `benchmarks/results`, with where it comes from."""

    required_arguments = 1
    option_spec = {  # noqa: RUF012
        "columns": directives.unchanged,
        "rows": directives.unchanged,
        "table": directives.nonnegative_int,
        "mark": directives.unchanged,
        "command": directives.unchanged_required,
        "grouped": directives.flag,
        "sweeps": directives.flag,
    }

    def run(self) -> list[nodes.Node]:
        """The table and the line below it."""
        path = RESULTS / self.arguments[0]
        if not path.is_file():
            raise self.error(f"There is no file {path}.")
        self.env.note_dependency(str(path))
        try:
            table = self._table(path)
        except ValueError as error:
            raise self.error(str(error)) from None
        shown = table_node(table, self.options.get("mark"), "grouped" in self.options)
        return [scrolling(shown), self._source(path)]

    def _table(self, path: Path) -> Table:
        text = path.read_text(encoding="utf-8")
        table = csv_table(path) if path.suffix == ".csv" else markdown_tables(text)[self.options.get("table", 0)]
        if "sweeps" in self.options:
            return ends_of_sweeps(table)
        columns = self.options.get("columns")
        names = [name.strip() for name in columns.split(",")] if columns else None
        return chosen(table, names, self.options.get("rows"), path.name)

    def _source(self, path: Path) -> nodes.Node:
        notes = path.with_suffix(".md")
        told = facts(notes.read_text(encoding="utf-8")) if notes.is_file() else {}
        paragraph = nodes.paragraph("", "", nodes.Text("From "), nodes.literal("", f"benchmarks/results/{path.name}"))
        if "command" in self.options:
            paragraph += [nodes.Text(", made by "), nodes.literal("", self.options["command"])]
        paragraph += nodes.Text("".join(f"; {name}: {value}" for name, value in told.items()) + ".")
        return nodes.container("", paragraph, classes=["source"])


def scrolling(table: nodes.table) -> nodes.container:
    """A wide table scrolls within its box on a phone."""
    return nodes.container("", table, classes=["pst-scrollable-table-container"])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("benchmark-table", BenchmarkTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
