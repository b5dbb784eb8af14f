"""Work units beside the clock: what depth three of some rows of a table takes, and what it is counted as.

    python benchmarks/work_units.py [--data ../shared/data] [--tables contree_wilt contree_rice compas broward]

Processor seconds, the least of two, kernels warm. Parts of a search take turns by counted work
(``solvers/core/work_units.py``), so the ratio of both should be near one, and alike for few and many cuts.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from cases import data_directory, table

from policytree.problem.types import Problem, SearchLimits
from policytree.solvers import solve_direct
from policytree.solvers.core.binning import bin_matrix
from policytree.solvers.core.compilation import is_special
from policytree.solvers.core.fixed_point import to_fixed_point
from policytree.solvers.core.rows import Node, new_control, occurring, prepare, rows_of
from policytree.solvers.exact.depth_search import steps_of_depth_three

MOST_ROWS, LEAST_ROWS = 6_000, 40


def counted_and_taken(node: Node) -> tuple[float, float]:
    """Seconds that depth three of a node is counted as, and those of a processor that it takes."""
    taken = []
    for _ in range(2):
        start, counted, steps = time.thread_time(), 0.0, steps_of_depth_three(node, new_control())
        for seconds in steps:
            counted += seconds
        taken.append(time.thread_time() - start)
    return counted, min(taken)


def main() -> None:
    """Print a row for every table and number of rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data")
    parser.add_argument("--tables", nargs="+", default=["contree_wilt", "contree_rice", "compas", "broward"])
    given = parser.parse_args()
    print("| table | rows | cuts that occur | seconds | counted / taken |\n|---|---:|---:|---:|---:|")
    for name in given.tables:
        arrays = table(data_directory(given.data), name)
        problem = Problem(bin_matrix(arrays.X), arrays.losses, 0.0, 3)
        small = Problem(bin_matrix(arrays.X[:300]), arrays.losses[:300], 0.0, 3)
        solve_direct(small)  # loads kernels
        fixed = to_fixed_point(problem.losses, 0.0, problem.most_leaves, problem.feature_costs, problem.weights)
        node = prepare(problem, fixed, True, is_special(problem), SearchLimits().gates)
        rng = np.random.default_rng(0)
        for part in (1, 4, 16, 64):
            n = node.n_rows // part
            if not LEAST_ROWS <= n <= MOST_ROWS:
                continue
            some = rows_of(node, np.sort(rng.choice(node.n_rows, n, replace=False)))
            counted, taken = counted_and_taken(some)
            cuts = int((occurring(some)[0].bins - 1).sum())
            print(f"| {name} | {n:,} | {cuts:,} | {taken:.4f} | {counted / taken:.2f} |", flush=True)


if __name__ == "__main__":
    main()
