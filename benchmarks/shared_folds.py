"""Refits whose nuisance models share the evaluation's folds, beside refits with folds of their own.

    python benchmarks/shared_folds.py                          # all cells, 200 draws each: two hours
    python benchmarks/shared_folds.py --cell "linear, n=300" --runs 20

Every draw is judged twice by `cross_val_policy_value`: models of pairs of folds (60 % of the rows), and five folds of
every refit's own (64 %). Draws are kept in `results/shared_folds.csv`; the table has paired differences.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pandas as pd
from reporting import Simulation, with_error, write_tables
from sklearn.linear_model import LinearRegression, LogisticRegression

from policytree import DRPolicyTree, cross_val_policy_value
from policytree.evaluation.policy_value import refits

OUTPUT = Path(__file__).parent / "results" / "shared_folds.csv"
CELLS = {
    "linear, n=300": (300, {"model_regression": LinearRegression(), "model_propensity": LogisticRegression()}),
    "linear, n=1000": (1_000, {"model_regression": LinearRegression(), "model_propensity": LogisticRegression()}),
    "default, n=400": (400, {}),
}
WAYS = ("own", "shared")
MEASURES = (
    "seconds",
    "regret",
    "value error",
    "value width",
    "value covers",
    "gain error",
    "gain width",
    "gain covers",
)
COLUMNS = ["cell", "draw", *(f"{way}: {measure}" for way in WAYS for measure in MEASURES)]
POPULATION = np.random.default_rng(99).normal(size=(20_000, 4))


def means(X: np.ndarray) -> np.ndarray:
    """Expected outcomes: the second arm is better by .3 where the first column is positive, else worse."""
    base = X[:, 1] + 0.5 * X[:, 2]
    return np.column_stack([base, base + 0.3 * np.sign(X[:, 0])])


def draw_study(n: int, draw: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Outcomes, treatments and covariates; who is treated depends on what outcomes depend on."""
    rng = np.random.default_rng([n, draw])
    X = rng.normal(size=(n, 4))
    T = (rng.random(n) < 1 / (1 + np.exp(-0.6 * X[:, 1]))).astype(int)
    return means(X)[np.arange(n), T] + rng.normal(size=n), T, X


def judged(n: int, models: dict, draw: int) -> dict:
    """Evaluate a draw in one way, and compare with the truth of the rules that were judged."""
    Y, T, X = draw_study(n, draw)
    tree = DRPolicyTree(max_depth=1, min_samples_leaf=20, direction="maximize", random_state=draw, **models)
    start = time.process_time()
    table = cross_val_policy_value(tree, Y, T, X=X, random_state=draw)
    out = {"seconds": time.process_time() - start}
    truth = means(POPULATION)
    rules = [rule.predict(POPULATION).astype(int) for repetition in table.repetitions for rule in repetition.trees]
    value = float(np.mean([truth[np.arange(len(truth)), rule].mean() for rule in rules]))
    out["regret"] = truth.max(axis=1).mean() - value
    for name, estimate, target in (
        ("value", table.estimates["policy tree"], value),
        ("gain", table.differences["always 0"], value - truth[:, 0].mean()),
    ):
        out[f"{name} error"] = estimate.value - target
        out[f"{name} width"] = estimate.upper - estimate.lower
        out[f"{name} covers"] = float(estimate.lower <= target <= estimate.upper)
    return out


def run(cell: tuple[int, dict], draw: int) -> dict:
    """Both ways, one after the other; which comes first alternates."""
    shared, out = refits.shared_folds, {}
    for way in WAYS if draw % 2 else WAYS[::-1]:
        refits.shared_folds = shared if way == "shared" else lambda *_: None
        try:
            out |= {f"{way}: {measure}": found for measure, found in judged(*cell, draw).items()}
        finally:
            refits.shared_folds = shared
    return out


def table(kept: pd.DataFrame) -> pd.DataFrame:
    """Means of both ways, and of their difference with its Monte-Carlo error."""
    rows = []
    for name, part in kept.groupby("cell", sort=False):
        for measure in MEASURES:
            own, shared = (part[f"{way}: {measure}"] for way in WAYS)
            row = {"cell": name, "draws": len(part), "measure": measure, "own": with_error(own)}
            rows.append(row | {"shared": with_error(shared), "difference": with_error(shared - own)})
    return pd.DataFrame(rows)


def main() -> None:
    """Draw what is lacking, and write the table."""
    simulation = Simulation(CELLS, run, COLUMNS)
    asked = simulation.parser(__doc__, OUTPUT).parse_args()
    kept = simulation.asked_for(asked)
    if kept is not None:
        write_tables(asked.output, "Folds of their own, and folds that refits share", [("", table(kept))])


if __name__ == "__main__":
    main()
