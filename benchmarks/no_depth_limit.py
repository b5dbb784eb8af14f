"""Trees with a price per leaf and no depth limit: is the best one proved, and how long does that take.

    python benchmarks/no_depth_limit.py [--time-limit 60] [--data ../shared/data/sparse] [--only car]

One core, whole fits with binning, kernels warm. The value is accuracy less price x (leaves - 1).
"""

import argparse
import time
import warnings
from pathlib import Path

import pandas as pd

from policytree import OptimalTreeClassifier
from policytree.solvers.compilation import all_kernels, load_kernels

CASES = {  # table: (price, best known value)
    "zoo": (0.001, 0.992),
    "monk2_f": (0.001, 0.933),
    "tic_tac_toe_f": (0.005, 0.8507),
    "tic_tac_toe_onehot": (0.005, 0.8507),
    "car_f": (0.005, 0.7992),
    "car_onehot": (0.005, 0.8527),
    "nursery_f": (0.01, 0.7726),
    "nursery_onehot": (0.01, 0.8127),
    "mushroom_f": (0.01, 0.9452),
    "kr_vs_kp": (0.01, 0.9009),
    "balance_f": (0.005, 0.6732),
    "balance_onehot": (0.005, 0.7692),
    "lymph": (0.01, 0.8462),
}


def main():
    """Fit every table and print a line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--data", default=str(Path(__file__).parents[2] / "shared" / "data" / "sparse"))
    parser.add_argument("--only", default="", help="part of the tables' names")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    load_kernels(all_kernels())
    print("| table | rows x columns | price | value | best known | status | gap | seconds | sets and nodes |")
    print("|---|---|---:|---:|---:|---|---:|---:|---:|")
    for name, (price, known) in CASES.items():
        if arguments.only not in name:
            continue
        frame = pd.read_csv(Path(arguments.data) / f"{name}.csv.gz")
        X, y = frame.iloc[:, :-1].to_numpy(float), frame.iloc[:, -1].astype(str)
        model = OptimalTreeClassifier(max_depth=None, regularization=price, time_limit=arguments.time_limit)
        start = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - start
        print(
            f"| {name} | {len(X)} x {X.shape[1]} | {price} | {1 + price - model.objective_value_:.4f} | {known} "
            f"| {model.status_.value} | {model.optimality_gap_:.4f} | {seconds:.2f} "
            f"| {model.solution_.counters['nodes']:,} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
