"""Noisy tables without a depth limit: row duals, beside the search without them and beside the sketch.

    python benchmarks/row_duals.py [--time-limit 20] [--data ../shared/data] [--only compas] [--sketch FILE]

One core, whole fits with binning, kernels warm. Objective, bound and gap are errors plus price x rows x leaves. The
sketch is a research prototype of the same idea (two classes, unit weights): its time has the fit of depth four in it.
"""

import argparse
import importlib.util
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from policytree import OptimalTreeClassifier
from policytree.solvers.core.compilation import all_kernels, load_kernels
from policytree.solvers.exact import direct

CASES = {  # table: (rows, prices)
    "classification/compas": (None, (0.02, 0.01, 0.005, 0.004, 0.002)),
    "classification/broward": (None, (0.02, 0.01, 0.005)),
    "classification/breast_w": (None, (0.01, 0.005)),
    "classification/fourclass": (None, (0.02, 0.005)),
    "born_again/Pima-Diabetes": (None, (0.02, 0.01)),
    "born_again/COMPAS-ProPublica": (None, (0.005, 0.002)),
    "classification/fico_heloc": (1000, (0.05,)),
    "classification/coupon_rest20_onehot": (None, (0.02,)),
}
SKETCHED = "classification/compas"


def fit(X, y, price, time_limit, depth=None):
    """A fitted tree and the seconds that it took."""
    model = OptimalTreeClassifier(max_depth=depth, regularization=price, time_limit=time_limit)
    start = time.perf_counter()
    model.fit(X, y)
    return model, time.perf_counter() - start


def fit_without(X, y, price, time_limit):
    """The same without row duals."""
    applies, direct.row_duals_apply = direct.row_duals_apply, lambda problem, gates: False
    try:
        return fit(X, y, price, time_limit)
    finally:
        direct.row_duals_apply = applies


def sketched(module, X, y, price, time_limit):
    """Seconds of the sketch and of the fit that it begins with; NaN if it does not prove the tree."""
    model, seconds = fit(X, y, price, time_limit, depth=4)
    value = model.objective_value_ * len(y)
    leaves = int(np.sum(model.tree_.is_leaf))
    start = time.perf_counter()
    bound, _, _ = module.prove(module.Rows(X, y), price * len(y), value, leaves, 6, time_limit)
    return seconds + time.perf_counter() - start if bound >= value else np.nan


def loaded(path):
    """The sketch as a module, its kernels compiled."""
    spec = importlib.util.spec_from_file_location("row_prices_sketch", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its recursive kernel is looked up there
    spec.loader.exec_module(module)
    X = np.random.default_rng(0).integers(0, 3, (50, 3)).astype(float)
    module.prove(module.Rows(X, X[:, 0].astype(int) % 2), 1.0, 20.0, 2, 4, 1.0)
    return module


def table(path, rows):
    """Columns and a label 0, 1."""
    frame = pd.read_csv(path).iloc[:rows].drop(columns="test_fold", errors="ignore")
    return frame.iloc[:, :-1].to_numpy(float), (frame.iloc[:, -1] == frame.iloc[:, -1].max()).to_numpy().astype(int)


def main():
    """Fit every table and print a line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--time-limit", type=float, default=20.0)
    parser.add_argument("--data", default=str(Path(__file__).parents[2] / "shared" / "data"))
    parser.add_argument("--sketch", default=str(Path(__file__).parents[2] / "shared" / "sketch" / "row_duals.py"))
    parser.add_argument("--only", default="", help="part of the tables' names")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    load_kernels(all_kernels())
    sketch = loaded(arguments.sketch) if Path(arguments.sketch).exists() else None
    print("| table | rows x columns | price | objective | leaves | gap | seconds | gap without | seconds | sketch, s |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for name, (rows, prices) in CASES.items():
        if arguments.only not in name:
            continue
        X, y = table(Path(arguments.data) / f"{name}.csv.gz", rows)
        for price in prices:
            model, seconds = fit(X, y, price, arguments.time_limit)
            other, other_seconds = fit_without(X, y, price, arguments.time_limit)
            beside = np.nan
            if sketch is not None and name == SKETCHED:
                beside = sketched(sketch, X, y, price, 2 * arguments.time_limit)
            print(
                f"| {name} | {len(X)} x {X.shape[1]} | {price} | {model.objective_value_ * len(y):.3f} "
                f"| {int(np.sum(model.tree_.is_leaf))} | {model.optimality_gap_ * len(y):.2f} | {seconds:.2f} "
                f"| {other.optimality_gap_ * len(y):.2f} | {other_seconds:.2f} | {beside:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
