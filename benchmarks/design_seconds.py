"""Processor seconds of `policytree design`, or `check`, in this checkout, and in another one in turn.

    python benchmarks/design_seconds.py --beside ../before   # another checkout, three runs of each
    python benchmarks/design_seconds.py --dataset nsw --runs 1
    python benchmarks/design_seconds.py --check --beside ../before --runs 5   # of a file of 10,000 rows, 30 columns

Every run is a process of its own on one core (`--jobs 1`), after one of each that is not counted, which compiles. The
ratio is of medians in this very run; seconds of different runs compare with nothing.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd
from reporting import RESULTS, machine, markdown_head, markdown_table

HERE = Path(__file__).resolve().parents[1]
TABLE = "table.csv"


def write_table(path: Path) -> None:
    """Write 10,000 rows: 27 numbers, a category, a treatment by lot and an outcome that nothing explains."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({f"x{k}": rng.normal(size=10_000).round(4) for k in range(27)})
    table["town"] = rng.choice(["Bath", "Hull", "York"], 10_000)
    table.assign(treatment=rng.choice(["a", "b"], 10_000), y=rng.normal(size=10_000)).to_csv(path, index=False)


def seconds(checkout: Path, arguments: list[str]) -> float:
    """Measure the processor seconds of one run, the user's and the system's."""
    environment = {**os.environ, "PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
    with tempfile.TemporaryDirectory() as folder:
        if TABLE in arguments:
            write_table(Path(folder) / TABLE)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "policytree", *arguments]
        subprocess.run(command, check=True, capture_output=True, env=environment, cwd=folder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beside", type=Path, help="another checkout, measured in turn")
    parser.add_argument("--dataset", default="rand-hie")
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--check", action="store_true", help="check a file instead of a whole design")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--output", type=Path, help="default: results/design_seconds.md, results/check_seconds.md")
    asked = parser.parse_args()
    arguments = f"design --dataset {asked.dataset} --max-depth {asked.depth} --jobs 1 --output .".split()
    title = f"design --dataset {asked.dataset} --max-depth {asked.depth}"
    if asked.check:
        arguments = ["check", TABLE, "--outcome", "y", "--treatment", "treatment"]
        title = "check of 10,000 rows and 30 columns"
    checkouts = {"this": HERE} | ({"beside": asked.beside.resolve()} if asked.beside else {})
    found: dict[str, list[float]] = {name: [] for name in checkouts}
    for k in range(-1, asked.runs):
        for name, checkout in checkouts.items():
            took = seconds(checkout, arguments)
            print(f"{name}: {took:.2f} s" + ("" if k >= 0 else ", not counted"), flush=True)
            if k >= 0:
                found[name].append(took)
    of_this = median(found["this"])
    lines = [
        [name, f"{min(each):.2f}", f"{median(each):.2f}", f"{of_this / median(each):.2f}"]
        for name, each in found.items()
    ]
    head = markdown_head(f"Processor seconds of {title}", machine())
    table = markdown_table(["checkout", "least", "median", "this over it"], lines, {"least", "median", "this over it"})
    output = asked.output or RESULTS / ("check_seconds.md" if asked.check else "design_seconds.md")
    output.write_text(head + table, encoding="utf-8")
    print(table)


if __name__ == "__main__":
    main()
