"""Depth three and four over continuous columns beside ConTree: nearly separable tables, and many classes.

    python benchmarks/depth_four.py [--time-limit 120] [--repeats 3] [--data FOLDER] [--only bank]

One core, whole fits with binning, kernels warm, all thresholds, no leaf penalty. Processor seconds, the median of the
repeats, ours and ConTree's in turn in one process.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from policytree import OptimalTreeClassifier
from policytree.solvers.core.compilation import all_kernels, load_kernels

CASES = (
    ("contree_bank", 3),
    ("contree_bank", 4),
    ("contree_wilt", 3),
    ("contree_wilt", 4),
    ("contree_occupancy", 3),
    ("contree_occupancy", 4),
    ("contree_rice", 3),
    ("contree_rice", 4),
    ("contree_fault", 2),
    ("contree_fault", 3),
)


def ours(X, y, depth, limit):
    """Errors, and whether they are proved to be fewest."""
    model = OptimalTreeClassifier(max_depth=depth, regularization=0.0, time_limit=limit).fit(X, y)
    return int((model.predict(X) != y).sum()), model.status_.value == "optimal"


def contree(X, y, depth, limit):
    """The same; its status is not told, so that only the time says whether it was finished."""
    from pycontree import ConTree  # a peer, not a dependency

    start = time.perf_counter()
    model = ConTree(max_depth=depth, time_limit=limit)
    model.fit(X, y.astype(np.int32))
    return int((model.predict(X) != y).sum()), time.perf_counter() - start < limit


def timed(solve, *arguments):
    """Return a solver's answer, and its processor seconds."""
    start = time.process_time()
    said = solve(*arguments)
    return said, time.process_time() - start


def ratio_text(ours: float, proved: bool, theirs: float, ended: bool) -> str:
    """ConTree's seconds over ours, as in the other tables: a bound if one of the two proved, empty if neither did."""
    if not (proved or ended):
        return ""
    return f"{'>= ' if not ended else '<= ' if not proved else ''}{theirs / ours:.3g}"


def main():
    """Fit every table and print a line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--time-limit", type=float, default=120.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--data", default=str(Path(__file__).parents[2] / "shared" / "data" / "classification"))
    parser.add_argument("--only", default="", help="part of the tables' names")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    load_kernels(all_kernels())
    print(f"Load when the run began: {os.getloadavg()[0]:.1f}\n")
    print(
        "| table | rows x columns | classes | depth | errors | proved | seconds | ConTree's errors | seconds | ratio |"
    )
    print("|---|---|---:|---:|---:|---|---:|---:|---:|---:|")
    for name, depth in CASES:
        if arguments.only not in name:
            continue
        frame = pd.read_csv(Path(arguments.data) / f"{name}.csv.gz")
        X, y = frame.drop(columns="label").to_numpy(float), np.unique(frame["label"], return_inverse=True)[1]
        each = []
        for _ in range(arguments.repeats):
            each.append([timed(solve, X, y, depth, arguments.time_limit) for solve in (ours, contree)])
            if sum(seconds for _, seconds in each[0]) > arguments.time_limit / 4:
                break
        one, other = (statistics.median(run[k][1] for run in each) for k in (0, 1))
        (errors, proved), _ = each[0][0]
        (peer, ended), _ = each[0][1]
        ratio = ratio_text(one, proved, other, ended)
        print(
            f"| {name} | {len(X)} x {X.shape[1]} | {y.max() + 1} | {depth} | {errors} | {'yes' if proved else 'no'} "
            f"| {one:.3f} | {peer}{'' if ended else ' (limit)'} | {other:.3f} | {ratio} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
