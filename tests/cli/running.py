"""The command line run from outside: in this process, or in one of its own; and a trial for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from policytree.cli import app

ROOT = Path(__file__).resolve().parents[2]
FILES = {
    "report.html", "report.txt", "report.json", "tree.png", "tree.pdf", "tree.json", "leaves.csv", "values.csv",
    "people.csv", "tables.tex",
}  # fmt: skip


def trial(n: int = 240, seed: int = 0) -> pd.DataFrame:
    """A trial with an obvious rule: the drug helps those under 40 (+4) and harms the others (-4)."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "income": rng.lognormal(10, 0.5, n).round(2),
            "region": rng.choice(["north", "south", "east"], n),
            "arm": rng.choice(["None", "drug"], n),
            "clinic": rng.integers(0, 40, n),
        }
    )
    frame["y"] = np.where(frame["age"] < 40, 4.0, -4.0) * (frame["arm"] == "drug") + rng.normal(size=n).round(3)
    return frame


def run(*arguments) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.stdout, result.stderr


def design(data, folder, *more) -> tuple[int, str, str]:
    """``policytree design``; without resamples unless they are asked for: they take most of the time."""
    more = more if "--stability" in more else (*more, "--stability", "0")
    return run("design", data, "--treatment", "arm", "--outcome", "y", "-o", folder, *more)


def refused(result: tuple[int, str, str], *words: str) -> None:
    """Exit code 2, and one sentence that holds the words, without a traceback."""
    code, _, err = result
    assert code == 2, err
    assert "Traceback" not in err
    errors = [line for line in err.splitlines() if line.startswith("Error: ")]
    assert len(errors) == 1, err
    for word in words:
        assert word in errors[0]


def process(*arguments, encoding="utf-8", **options) -> subprocess.Popen:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80", "PYTHONIOENCODING": encoding}
    return subprocess.Popen(
        [sys.executable, "-m", "policytree", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, env=environment, **options,
    )  # fmt: skip
