"""Objectives of imbalanced data: what the proof takes, and STreeD's F-score beside ours.

    python benchmarks/objectives.py [--time-limit 60] [--data FOLDER] [--only compas]

One core, whole fits with binning, kernels warm. Processor seconds, ours and STreeD's alike the median of up to nine
fits, one after the other, or of as many as take a second. STreeD gets the 0/1 column of every threshold ready-made,
which is not timed.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from reporting import RESULTS, machine, markdown_head, markdown_table
from sklearn.metrics import f1_score

from policytree import OptimalTreeClassifier
from policytree.objectives import FScore, MonotoneObjective, OmegaFScore, PartialAUC
from policytree.objectives.auc import AUC
from policytree.solvers.core.compilation import all_kernels, load_kernels


def f_loss(false_positives, missed, positives, negatives):
    """One minus F1, as a function that knows nothing of ratios."""
    return (false_positives + missed) / (2 * positives + false_positives - missed)


REPEATS, ENOUGH = 9, 1.0  # fits of which the median is taken; seconds after which there are no more
BINARY, CUTS = "born_again/COMPAS-ProPublica", "fourclass, cuts at 50, 100, ..."
CASES = (  # table, objective, depth, price of a leaf
    ("compas", FScore(), 3, 0.0),
    ("fico_heloc", FScore(), 2, 0.0),
    ("coupon_rest20_onehot", FScore(), 3, 0.0),
    ("compas", FScore(), 3, 0.005),
    ("compas", FScore(), 3, 0.001),
    (BINARY, FScore(), None, 0.01),
    (BINARY, OmegaFScore(), None, 0.01),
    (BINARY, MonotoneObjective(f_loss), 3, 0.0),
    (BINARY, FScore(), 3, 0.0),
    (BINARY, AUC(), None, 0.01),
    (BINARY, PartialAUC(0.2), None, 0.01),
    (BINARY, AUC(), 3, 0.0),
    (CUTS, AUC(), None, 0.01),
    (CUTS, PartialAUC(0.2), None, 0.01),
    ("fourclass", AUC(), 3, 0.01),
    ("fourclass", AUC(), None, 0.01),
    ("compas", AUC(), 3, 0.005),
    ("coupon_rest20_onehot", AUC(), 3, 0.01),
)


def load(name: str, data: Path) -> tuple[np.ndarray, np.ndarray]:
    """Features and labels 0 and 1."""
    if name == BINARY:
        frame = pd.read_csv(data / f"{name}.csv.gz")
        return frame.iloc[:, :12].to_numpy(float), frame["Class"].to_numpy()
    frame = pd.read_csv(data / "classification" / f"{name.partition(',')[0]}.csv.gz")
    X, y = frame.iloc[:, :-1].to_numpy(float), frame.iloc[:, -1].to_numpy()
    return (np.ceil(X / 50) if name == CUTS else X), (y == y.max()).astype(int)


def binarised(X: np.ndarray) -> np.ndarray:
    """The 0/1 column of every threshold."""
    return np.column_stack([x <= v for x in X.T for v in np.unique(x)[:-1]]).astype(np.int32)


def timed(fit) -> tuple[object, float]:
    """Return a fit's result, and its median processor seconds."""
    seconds: list[float] = []
    while not seconds or (len(seconds) < REPEATS and sum(seconds) < ENOUGH):
        start = time.process_time()
        found = fit()
        seconds.append(time.process_time() - start)
    return found, float(np.median(seconds))


def ours(X, y, objective, depth, price, limit) -> dict:
    """The fit, timed."""
    model = OptimalTreeClassifier(depth, price, objective=objective, time_limit=limit)
    tree, seconds = timed(lambda: model.fit(X, y))
    return {"score": tree.score(X, y), "leaves": tree.get_n_leaves(), "objective": tree.objective_value_,
            "gap": tree.optimality_gap_, "proved": tree.status_.proved, "seconds": seconds}  # fmt: skip


def streed(X, y, depth, limit) -> tuple[float, float]:
    """F1 of STreeD's tree and its seconds."""
    from pystreed import STreeDClassifier  # a peer, not a dependency

    columns = binarised(X)
    model = STreeDClassifier("f1-score", max_depth=depth, max_num_nodes=2**depth - 1, time_limit=limit)
    _, seconds = timed(lambda: model.fit(columns, y))
    return float(f1_score(y, model.predict(columns))), seconds


def row(case, data: Path, limit: float) -> list[str]:
    """One line of the table."""
    name, objective, depth, price = case
    X, y = load(name, data)
    ours(X[:200], y[:200], objective, min(depth or 3, 3), max(price, 0.001), 5.0)  # warms up
    found = ours(X, y, objective, depth, price, limit)
    peer = ["", "", ""]
    if type(objective) is FScore and price == 0:
        score, seconds = streed(X, y, depth, limit)
        peer = [f"{score:.6f}", f"{seconds:.4g}", f"{seconds / found['seconds']:.1f}"]
    proof = "proved" if found["proved"] else f"gap {found['gap']:.4f}"
    what = objective.name if not isinstance(objective, PartialAUC) else f"partial_auc {objective.max_fpr:g}"
    return [name, f"{len(X):,} x {X.shape[1]}", what, "none" if depth is None else str(depth), f"{price:g}",
            f"{found['score']:.6f}", str(found["leaves"]), f"{found['objective']:.6f}", proof,
            f"{found['seconds']:.4g}", *peer]  # fmt: skip


HEADER = ["table", "rows x columns", "objective", "depth", "price", "score", "leaves", "1 - score + price", "proof",
          "seconds", "STreeD's score", "seconds", "ratio"]  # fmt: skip


def main() -> None:
    """Fit every case, and keep the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data")
    parser.add_argument("--only", default="", help="part of the tables' names; the result is then only printed")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    about = machine()
    load_kernels(all_kernels())
    lines = []
    for case in CASES:
        if arguments.only in case[0]:
            lines.append(row(case, arguments.data, arguments.time_limit))
            print(" | ".join(lines[-1]), flush=True)
    text = markdown_head("Objectives of imbalanced data", about) + markdown_table(HEADER, lines, {*HEADER[5:]})
    if not arguments.only:
        (RESULTS / "objectives.md").write_text(text, encoding="utf-8")
    print(f"\n{text}")


if __name__ == "__main__":
    main()
