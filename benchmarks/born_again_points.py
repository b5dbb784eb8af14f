"""Do born-again trees predict what their ensembles predict: ten million points a kind of ensemble.

    python benchmarks/born_again_points.py [--points 10000000] [--data ../shared/data] [--save]

For every kind of ensemble that can be read, fitted to Pima-Diabetes (two classes) or Seeds (three), whose bins are
spread to numbers that float32 rounds: half of the points are uniform over the range of the data and beyond, half have
coordinates on thresholds, next to them in float64, and next to them in float32. They are compared by the ensemble's own
``predict``.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)

from policytree import BornAgainTree

HERE = Path(__file__).parent
CHUNK = 500_000
KINDS = {
    "random forest": RandomForestClassifier(4, max_depth=3, random_state=0),
    "extra trees": ExtraTreesClassifier(4, max_depth=3, random_state=0),
    "bagging": BaggingClassifier(n_estimators=2, max_samples=0.1, random_state=0),
    "gradient boosting": GradientBoostingClassifier(n_estimators=6, max_depth=2, random_state=0),
    "histogram gradient boosting": HistGradientBoostingClassifier(max_iter=5, max_leaf_nodes=8, random_state=0),
}


def points(rng, X: np.ndarray, thresholds: list[np.ndarray], rows: int) -> np.ndarray:
    """Half uniform, half on and next to thresholds."""
    low, high = X.min(axis=0), X.max(axis=0)
    Z = rng.uniform(low - 0.2 * (high - low), high + 0.2 * (high - low), size=(rows, X.shape[1]))
    half = rows // 2
    for j, cuts in enumerate(thresholds):
        if len(cuts):
            t = rng.choice(cuts, half)
            small = t.astype(np.float32)
            near = [t, np.nextafter(t, np.inf), np.nextafter(t, -np.inf), small.astype(float)]
            near += [np.nextafter(small, np.float32(sign * np.inf)).astype(float) for sign in (-1, 1)]
            Z[:half, j] = np.choose(rng.integers(0, len(near), half), near)
    return Z


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--points", type=int, default=10_000_000)
    parser.add_argument("--data", type=Path, default=HERE.parents[1] / "shared" / "data")
    parser.add_argument("--save", action="store_true", help="keep the result in results/")
    options = parser.parse_args()
    lines = [
        "| data | ensemble | leaves | depth | points | differ | check of the whole space | s |",
        "|---|---|" + "---:|" * 6,
    ]
    rng = np.random.default_rng(0)
    for name in ("Pima-Diabetes", "Seeds"):
        frame = pd.read_csv(options.data / "born_again" / f"{name}.csv.gz")
        X, y = frame.drop(columns=["Class", "test_fold"]).to_numpy(dtype=float), frame["Class"].to_numpy()
        X = X + rng.normal(scale=0.1, size=X.shape)
        for kind, model in KINDS.items():
            start = time.perf_counter()
            tree = BornAgainTree(model.fit(X, y), "leaves").fit()
            differ = 0
            for begin in range(0, options.points, CHUNK):
                Z = points(rng, X, tree.ensemble_.thresholds(), min(CHUNK, options.points - begin))
                differ += int((tree.predict(Z) != model.predict(Z)).sum())
            lines.append(
                f"| {name} | {kind} | {tree.get_n_leaves():,} | {tree.get_depth()} | {options.points:,} | {differ} | "
                f"{tree.check_faithfulness()} | {time.perf_counter() - start:.0f} |"
            )
            print(lines[-1], flush=True)
    if options.save:
        (HERE / "results" / "born_again_points.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
