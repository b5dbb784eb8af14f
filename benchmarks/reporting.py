"""Machine, date and versions for the head of every result; tables as CSV and Markdown; draws that are kept."""

from __future__ import annotations

import argparse
import csv
import datetime
import os
import platform
import subprocess
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # scripts that are about start-up times write without it
    import pandas as pd

RESULTS = Path(__file__).resolve().parent / "results"


def processor() -> str:
    """Name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def revision() -> str:
    """Commit of the checkout, with "+" if files differ from it; "unknown" outside a checkout."""
    here = Path(__file__).resolve().parent
    asked = ["git", "-C", str(here), "describe", "--always", "--dirty=+"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else "unknown"


def machine() -> dict[str, str]:
    """Describe the machine, for readers who compare figures."""
    import numba
    import numpy

    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": f"{processor()}, {os.cpu_count()} cores, load {load} at the start",
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "policytree": revision(),
        "numpy, numba": f"{numpy.__version__}, {numba.__version__}",
    }


def write_csv(path: Path, rows: list[dict]) -> None:
    """All rows, with the columns of the first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def markdown_table(header: list[str], lines: list[list[str]], right: frozenset[str] | set[str] = frozenset()) -> str:
    """A table; the columns named in ``right`` are aligned right."""
    rule = "|".join("---:" if name in right else "---" for name in header)
    body = "".join("| " + " | ".join(cell.replace("|", "/") for cell in line) + " |\n" for line in lines)
    return f"| {' | '.join(header)} |\n|{rule}|\n{body}"


def markdown_head(title: str, about: dict[str, str]) -> str:
    """A title and what it was measured on."""
    facts = "".join(f"- {name}: {value}\n" for name, value in about.items())
    return f"# {title}\n\n{facts}\n"


def with_error(values: pd.Series, digits: int = 4) -> str:
    """A mean, with its Monte-Carlo error in brackets."""
    return f"{values.mean():.{digits}f} ({values.std() / len(values) ** 0.5:.{digits}f})"


def append_rows(rows: list[dict], columns: list[str], output: Path) -> pd.DataFrame:
    """The rows as a frame with these columns, which are added to a CSV file."""
    import pandas as pd

    frame = pd.DataFrame(rows).reindex(columns=columns)
    frame.to_csv(output, mode="a", header=not output.exists(), index=False)
    return frame


def write_tables(output: Path, title: str, parts: Iterable[tuple[str, pd.DataFrame]]) -> None:
    """Print tables, and write them as Markdown beside the CSV file, each below a text."""
    written = markdown_head(title, machine())
    for text, shown in parts:
        print(shown.to_string(index=False))
        lines = [[str(value) for value in line] for line in shown.to_numpy()]
        written += text + markdown_table(list(shown.columns), lines)
    output.with_suffix(".md").write_text(written, encoding="utf-8")


def keeping_parser(description: str | None, output: Path) -> argparse.ArgumentParser:
    """Options of a script that keeps every row: where, and whether to write its table from those alone."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--output", type=Path, default=output)
    return parser


@dataclass(frozen=True)
class Simulation:
    """Draws of several cells, of which every one is kept; a cell that is asked for again goes on where it ended.

    Attributes
    ----------
    cells : mapping of str to what is simulated there
    run : callable (cell, draw) -> dict
        What was found in one draw, by column.
    columns : list of str
        Those of the file, "cell" and "draw" first.
    """

    cells: Mapping[str, Any]
    run: Callable[[Any, int], dict]
    columns: list[str]

    def parser(self, description: str | None, output: Path, runs: int = 200) -> argparse.ArgumentParser:
        """Options for :meth:`asked_for`."""
        parser = keeping_parser(description, output)
        parser.add_argument("--cell", action="append", choices=list(self.cells))
        parser.add_argument("--runs", type=int, default=runs)
        parser.add_argument("--first", type=int, default=0)
        parser.add_argument("--list", action="store_true")
        return parser

    def asked_for(self, asked: argparse.Namespace) -> pd.DataFrame | None:
        """All draws so far, in the order of the cells, after those that are lacking; None where cells are listed."""
        if asked.list:
            print("\n".join(self.cells))
            return None
        if not asked.table:
            for name in asked.cell or self.cells:
                self._complete(name, range(asked.first, asked.first + asked.runs), asked.output)
        order = {name: k for k, name in enumerate(self.cells)}
        found = self._kept(asked.output)
        return found.sort_values("cell", key=lambda names: names.map(order), kind="stable")

    def _kept(self, output: Path) -> pd.DataFrame:
        import pandas as pd

        if not output.exists():
            return pd.DataFrame(columns=self.columns)
        return pd.read_csv(output).drop_duplicates(["cell", "draw"], keep="last")

    def _complete(self, name: str, draws: range, output: Path) -> None:
        kept = self._kept(output)
        done = set(kept.loc[kept["cell"] == name, "draw"])
        for draw in sorted(set(draws) - done):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = self.run(self.cells[name], draw)
            append_rows([{"cell": name, "draw": draw, **found}], self.columns, output)
