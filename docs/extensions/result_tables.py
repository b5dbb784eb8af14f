"""Tables of result files: read, and cut to what a page shows. Knows nothing of Sphinx."""

from __future__ import annotations

import csv
import re
from pathlib import Path

FACTS = ("date", "machine", "limits", "limit")
SCALING = ("rows", "features", "actions", "depth", "thresholds", "seconds")
HEADS = ("rows", "features", "arms", "depth", "distinct values", "seconds")

Table = tuple[list[str], list[list[str]]]


def markdown_tables(text: str) -> list[Table]:
    """Heads and rows of the tables in a Markdown text."""
    found = re.findall(r"(?:^\|.*\|[ ]*\n)+", text + "\n", re.MULTILINE)
    tables = [[[cell.strip() for cell in line.strip().strip("|").split("|")] for line in t.splitlines()] for t in found]
    return [(head, [row + [""] * (len(head) - len(row)) for row in rows]) for head, _, *rows in tables]


def csv_table(path: Path) -> Table:
    """Head and rows of a CSV file."""
    head, *rows = csv.reader(path.read_text(encoding="utf-8").splitlines())
    return head, rows


def facts(text: str) -> dict[str, str]:
    """Read the facts about a run from the head of its Markdown file."""
    lines = re.findall(r"^- (\w+): (.*(?:\n  .*)*)", text, re.MULTILINE)
    return {name: " ".join(value.split()) for name, value in lines if name in FACTS}


def chosen(table: Table, columns: list[str] | None, rows: str | None, of: str) -> Table:
    """Some columns and rows of a table; a ValueError if there are none."""
    head, body = table
    missing = [name for name in columns or () if name not in head]
    if missing:
        raise ValueError(f"{of} has no column {missing[0]!r}; it has {', '.join(head)}.")
    at = [head.index(name) for name in columns] if columns else list(range(len(head)))
    kept = [[row[j] for j in at] for row in body if rows is None or re.search(rows, row[0])]
    if not kept:
        raise ValueError(f"{of} has no row whose first column matches {rows!r}.")
    return [head[j] for j in at], kept


def plain(cell: str) -> str:
    """A cell without backticks, and large numbers without exponents: 4,190 for 4.19e+03."""
    return re.sub(r"\d(?:\.\d+)?e\+\d+", lambda found: f"{float(found[0]):,.0f}", cell.replace("`", ""))


def ends_of_sweeps(table: Table) -> Table:
    """The smallest and the largest size of every sweep of `scaling.csv`, as the landing page shows them."""
    head, body = table
    runs = [dict(zip(head, row, strict=True)) for row in body]
    shown: list[list[str]] = []
    for base, sweep in sorted({(run["base"], run["sweep"]) for run in runs}):
        sizes = [run for run in runs if (run["base"], run["sweep"]) == (base, sweep)]
        shown += [line for line in map(_cells, (sizes[0], sizes[-1])) if line not in shown]
    return list(HEADS), sorted(shown, key=lambda line: (line[3], int(line[0].replace(",", ""))))


def _cells(run: dict[str, str]) -> list[str]:
    *sizes, seconds = (run[name] for name in SCALING)
    sizes[-1] = str(int(sizes[-1]) + 1)  # so many thresholds part one value more
    taken = f"{float(seconds):.2g}" if run["proved"] == "True" else f"not proved in {float(seconds):.0f}"
    return [f"{int(size):,}" for size in sizes] + [taken]
