"""Processor seconds of `policytree design` in this checkout, and in another one in turn.

    python benchmarks/design_seconds.py --beside ../before   # another checkout, three runs of each
    python benchmarks/design_seconds.py --dataset nsw --runs 1

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

from reporting import RESULTS, machine, markdown_head, markdown_table

HERE = Path(__file__).resolve().parents[1]


def seconds(checkout: Path, dataset: str, depth: int) -> float:
    """Measure the processor seconds of one run, the user's and the system's."""
    environment = {**os.environ, "PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "policytree", "design", "--dataset", dataset, "--max-depth", str(depth)]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [*command, "--jobs", "1", "--output", folder], check=True, capture_output=True, env=environment, cwd=folder
        )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beside", type=Path, help="another checkout, measured in turn")
    parser.add_argument("--dataset", default="rand-hie")
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--output", type=Path, default=RESULTS / "design_seconds.md")
    asked = parser.parse_args()
    checkouts = {"this": HERE} | ({"beside": asked.beside.resolve()} if asked.beside else {})
    found: dict[str, list[float]] = {name: [] for name in checkouts}
    for k in range(-1, asked.runs):
        for name, checkout in checkouts.items():
            took = seconds(checkout, asked.dataset, asked.depth)
            print(f"{name}: {took:.1f} s" + ("" if k >= 0 else ", not counted"), flush=True)
            if k >= 0:
                found[name].append(took)
    of_this = median(found["this"])
    lines = [
        [name, f"{min(each):.1f}", f"{median(each):.1f}", f"{of_this / median(each):.2f}"]
        for name, each in found.items()
    ]
    head = markdown_head(f"Processor seconds of design --dataset {asked.dataset} --max-depth {asked.depth}", machine())
    table = markdown_table(["checkout", "least", "median", "this over it"], lines, {"least", "median", "this over it"})
    asked.output.write_text(head + table, encoding="utf-8")
    print(table)


if __name__ == "__main__":
    main()
