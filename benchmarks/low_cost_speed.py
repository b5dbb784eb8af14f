"""Time and memory of greedy trees that are cheap to apply, on large tables.

    python benchmarks/low_cost_speed.py             # three synthetic tables; two minutes
    python benchmarks/low_cost_speed.py --part 50   # a fiftieth of the rows

Targets, one core: 581,012 rows x 94 tests x 7 classes (the size of covertype) and 4,000 x 5,000 in under 20 s,
1,000,000 x 100 in under 40 s and 4 GB. Seconds are of the processor, so that they mean the same on a machine that is
shared; a small fit comes first, so that compiling is not in them. Labels are noisy, so that trees are deep.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
from reporting import RESULTS, machine, markdown_head, markdown_table

from policytree import LowCostTreeClassifier

SIZES = ((581_012, 94, 7, 20.0), (4_000, 5_000, 2, 20.0), (1_000_000, 100, 2, 40.0))  # rows, tests, classes, seconds


def table(n: int, m: int, K: int) -> tuple[np.ndarray, np.ndarray]:
    """Two-valued tests of different frequency; classes by a sum of some of them, a fifth of the rows at random."""
    rng = np.random.default_rng(n)
    X = np.empty((n, m))
    for j in range(m):
        X[:, j] = rng.random(n) < rng.uniform(0.05, 0.5)
    score = X[:, :20] @ rng.standard_normal(20) + 0.5 * X[:, 3] * X[:, 5]
    y = np.digitize(score, np.quantile(score, np.arange(1, K) / K))
    noise = rng.random(n) < 0.2
    y[noise] = rng.integers(0, K, noise.sum())
    return X, y


def main() -> None:
    """Measure and keep the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", type=int, default=1, help="measure this fraction of the rows (nothing is kept)")
    options = parser.parse_args()
    LowCostTreeClassifier().fit(*table(100, 20, 2))
    lines = []
    for n, m, K, limit in SIZES:
        X, y = table(n // options.part, m, K)
        costs = np.random.default_rng(0).integers(1, 11, m)
        start, wall = time.process_time(), time.perf_counter()
        tree = LowCostTreeClassifier(costs).fit(X, y)
        seconds, wall = time.process_time() - start, time.perf_counter() - wall
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        size = f"{tree.get_n_leaves():,}", str(tree.get_depth()), f"{tree.n_distinct_rows_:,}"
        lines.append(
            [f"{len(X):,} x {m:,} x {K}", f"{seconds:.1f}", f"{wall:.1f}", f"{limit:.0f}", f"{peak:.1f}", *size]
        )
        print(*lines[-1], sep="\t", flush=True)
    header = ["rows x tests x classes", "seconds (processor)", "seconds (clock)", "target", "peak GB so far", "leaves",
              "depth", "distinct rows"]  # fmt: skip
    text = markdown_head("Greedy trees that are cheap to apply: time and memory", machine())
    text += markdown_table(header, lines, set(header[1:]))
    text += "\nDefault settings, costs 1 to 10. The peak is of the whole process, the table (float64) included.\n"
    if options.part == 1:
        (RESULTS / "low_cost_speed.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
