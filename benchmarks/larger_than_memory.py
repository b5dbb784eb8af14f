"""Rows of any number on one machine: Parquet, codes on disk, trees of depth two and three; time, memory, a plot.

    python benchmarks/larger_than_memory.py --rows 100000000 --directory /tmp/larger_than_memory

Ten numbers a row (the first five continuous, cut into 64 bins; the others of 64 values) and rewards of two treatments.
Parquet files are made in the folder, encoded and fitted; the folder is deleted at the end unless ``--keep`` is given.
For the plot of cost per row, ``--rows`` takes several numbers. Memory is the process's own (anonymous pages); mapped
files are told apart. The table goes to ``results/larger_than_memory.csv``.
"""

from __future__ import annotations

import argparse
import csv
import shutil
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from policytree import PolicyTree, encode
from policytree.encoded import solve

FEATURES = [f"x{j}" for j in range(10)]
FILE_ROWS = 1_000_000
RESULTS = Path(__file__).parent / "results"
FIELDS = ("rows", "step", "seconds", "cpu_seconds", "own_GB", "mapped_GB", "disk_GB", "objective")


def make_file(path: Path, rows: int, seed: int) -> None:
    """Write a Parquet file of random rows; the second treatment is better for some rectangles of x0, x5 and x6."""
    rng = np.random.default_rng(seed)
    columns = {name: rng.normal(size=rows) for name in FEATURES[:5]}
    columns |= {name: rng.integers(0, 64, rows).astype(np.float64) for name in FEATURES[5:]}
    gain = np.where((columns["x0"] > 0.3) & (columns["x5"] > 20), 1.0, -0.4) + np.where(columns["x6"] > 40, 0.3, -0.1)
    columns["none"] = rng.normal(size=rows)
    columns["drug"] = columns["none"] + gain + rng.normal(size=rows)
    pq.write_table(pa.table(columns), path)


class Memory:
    """The largest own and mapped memory of this process, looked at ten times a second."""

    def __enter__(self) -> Memory:
        self.own = self.mapped = 0.0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(0.1):
            lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
            sizes = {line.split(":")[0]: float(line.split()[1]) / 1e6 for line in lines if line.startswith("Rss")}
            self.own = max(self.own, sizes["RssAnon"])
            self.mapped = max(self.mapped, sizes["RssFile"])


def measured(rows: int, step: str, work) -> tuple[dict, object]:
    """Run one step; its time and memory, and its result."""
    start, cpu = time.perf_counter(), time.process_time()
    with Memory() as memory:
        out = work()
    record = {
        "rows": rows,
        "step": step,
        "seconds": round(time.perf_counter() - start, 2),
        "cpu_seconds": round(time.process_time() - cpu, 2),
        "own_GB": round(memory.own, 3),
        "mapped_GB": round(memory.mapped, 3),
    }
    return record, out


def run(rows: int, folder: Path, n_jobs: int) -> list[dict]:
    """Make, encode and fit so many rows."""
    source, codes = folder / "parquet", folder / "codes"
    source.mkdir(parents=True)

    def make() -> None:
        for k, first in enumerate(range(0, rows, FILE_ROWS)):
            make_file(source / f"part-{k:05d}.parquet", min(FILE_ROWS, rows - first), k)

    record, _ = measured(rows, "make Parquet", make)
    size = sum(f.stat().st_size for f in source.iterdir())
    records = [record | {"disk_GB": round(size / 1e9, 3)}]
    record, data = measured(
        rows,
        "encode",
        lambda: encode(source, FEATURES, rewards=["none", "drug"], directory=codes, n_jobs=n_jobs, verbose=1),
    )
    records.append(record | {"disk_GB": round(data.nbytes / 1e9, 3)})
    PolicyTree(max_depth=0).fit(data)  # compiles
    for depth in (2, 3):
        tree = PolicyTree(max_depth=depth, n_jobs=n_jobs)
        record, _ = measured(rows, f"fit depth {depth}", lambda tree=tree: tree.fit(data))
        records.append(record | {"objective": f"{tree.objective_value_:.9f}"})
        print(tree.export_text())
    return records


def plot(records: list[dict], path: Path) -> None:
    """Nanoseconds a row of every step."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    for step in ("encode", "fit depth 2", "fit depth 3"):
        points = sorted((float(r["rows"]), float(r["seconds"])) for r in records if r["step"] == step)
        ax.plot([n for n, _ in points], [1e9 * s / n for n, s in points], marker="o", label=step)
    ax.set(xscale="log", yscale="log", xlabel="rows", ylabel="nanoseconds a row (wall time)")
    ax.set_title("Cost per row: 10 features x 64 bins, two treatments")
    ax.grid(alpha=0.3)
    ax.legend()
    figure.savefig(path, dpi=150)


def main() -> None:
    """Run all numbers of rows, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--directory", type=Path, default=Path("/tmp/larger_than_memory"))
    parser.add_argument("--n-jobs", type=int, default=2)
    parser.add_argument("--keep", action="store_true", help="leave the files of the last number of rows")
    parser.add_argument("--results", type=Path, default=RESULTS / "larger_than_memory.csv")
    options = parser.parse_args()
    solve.FEW_ROWS = 0  # tables, however few the rows
    records: list[dict] = []
    for rows in options.rows:
        folder = options.directory / str(rows)
        shutil.rmtree(folder, ignore_errors=True)
        try:
            records += run(rows, folder, options.n_jobs)
        finally:
            if not options.keep:
                shutil.rmtree(folder, ignore_errors=True)
        with open(options.results, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, FIELDS)
            writer.writeheader()
            writer.writerows(records)
        for record in records:
            print(record)
    plot(records, options.results.with_suffix(".png"))


if __name__ == "__main__":
    main()
