"""Machine, date and versions for the head of every result; tables as CSV and Markdown."""

from __future__ import annotations

import csv
import datetime
import os
import platform
import subprocess
from pathlib import Path

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
    """What a reader must know to compare figures."""
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
