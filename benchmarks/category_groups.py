"""Measure what splits by groups of levels take, beside one level against the rest and beside numbers in order.

    python benchmarks/category_groups.py            # results/category_groups.md; a few minutes

One column of L levels and four or ten of 64 numbers, two or three treatments. Every row fits three trees: the column
as text (a pandas category) with categories="groups", the same with "levels", and as L numbers. Processor seconds are
medians of fits after one that is not counted, the three alternating; compare ratios, never seconds of two runs. Value
is the mean reward on the rows of the fit, where half of the levels gain. "Noise" is the standard deviation of rewards
around what they are on average: with little of it levels alone decide, and many trees are as good as the best.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import pandas as pd
from reporting import RESULTS, machine, markdown_head, markdown_table, write_csv

from policytree import PolicyTree

CASES = [
    (100_000, 6, 2, 1, 4, 1.0),
    (100_000, 8, 2, 1, 4, 1.0),
    (100_000, 26, 2, 1, 4, 1.0),
    (100_000, 50, 3, 1, 4, 1.0),
    (20_000, 6, 2, 2, 4, 1.0),
    (20_000, 8, 2, 2, 4, 1.0),
    (20_000, 8, 3, 2, 4, 1.0),
    (5_000, 8, 2, 2, 10, 3.0),
    (20_000, 8, 2, 2, 10, 3.0),
    (5_000, 8, 2, 3, 4, 1.0),
]
WAYS = ("groups", "levels", "numbers")
HEADER = ["rows", "levels", "treatments", "depth", "other columns", "noise"]
HEADER += [f"{way}: {what}" for way in WAYS for what in ("value", "proof", "seconds")] + ["groups / numbers"]


def table(n: int, L: int, K: int, others: int, noise: float) -> tuple[pd.DataFrame, np.ndarray]:
    """A column "level" of L whole numbers, of which every other one gains by the second treatment; rewards (n, K)."""
    rng = np.random.default_rng(L + 10 * K)
    X = pd.DataFrame(rng.integers(0, 64, (n, others)), columns=list("abcdefghij")[:others])
    X["level"] = rng.integers(0, L, n)
    gain = np.where(X["level"] % 2, 1.0, -1.0) * (1.0 + 0.5 * (X["a"] > 31))
    rewards = (noise * rng.normal(size=(n, K))).round(2)
    rewards[:, 1] += gain
    return X, rewards


def measured(n: int, L: int, K: int, depth: int, others: int, noise: float, repeats: int) -> list[str]:
    """One row of the table."""
    X, rewards = table(n, L, K, others, noise)
    texts = X.assign(level=pd.Series([f"v{k:02d}" for k in X["level"]], dtype="category"))
    tables = {"groups": texts, "levels": texts, "numbers": X}
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    cells: dict[str, list[str]] = {}
    for k in range(repeats + 1):
        for way in WAYS:
            tree = PolicyTree(max_depth=depth, categories="levels" if way == "numbers" else way)
            start = time.process_time()
            tree.fit(tables[way], rewards)
            if k:
                seconds[way].append(time.process_time() - start)
            cells[way] = [f"{tree.objective_value_:.4f}", tree.status_.value]
    middle = {way: float(np.median(times)) for way, times in seconds.items()}
    found = [cell for way in WAYS for cell in (*cells[way], f"{middle[way]:.3f}")]
    return [
        f"{n:,}",
        str(L),
        str(K),
        str(depth),
        str(others),
        f"{noise:g}",
        *found,
        f"{middle['groups'] / middle['numbers']:.2f}",
    ]


def main() -> None:
    """Measure all cases and write them down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5, help="fits that are counted")
    args = parser.parse_args()
    about, lines = machine(), []
    for case in CASES:
        lines.append(measured(*case, args.repeats))
        print(*lines[-1], sep="  ", flush=True)
    text = markdown_head("Groups of levels", about) + "Medians of processor seconds.\n\n"
    (RESULTS / "category_groups.md").write_text(text + markdown_table(HEADER, lines), encoding="utf-8")
    write_csv(RESULTS / "category_groups.csv", [dict(zip(HEADER, line, strict=True)) for line in lines])


if __name__ == "__main__":
    main()
