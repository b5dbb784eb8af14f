"""Do the intervals of held-out values hold for the three arms? Simulated, with and without effects.

Public interface used: DRPolicyTree, cross_val_policy_value.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from simulations.designs import Design, three_arms, three_arms_no_effect
from sklearn.linear_model import LinearRegression, LogisticRegression

from policytree import DRPolicyTree, cross_val_policy_value

POPULATION = 40_000  # rows that stand for everybody
PROCEDURES = {"repeated cross-fitting": {}, "one split": {"validation": "split"}}
LEARNT = "policy tree"
DEFAULT = (1_000, 24)  # rows, runs
WHOLE = (1_000, 200)
SMALL = (300, 2)


def light_learner(seed: int) -> DRPolicyTree:
    """Linear outcomes and logistic propensities, both wrong here, and the best tree of depth two; fast."""
    return DRPolicyTree(
        LinearRegression(), LogisticRegression(), cv=2, max_depth=2, min_samples_leaf=1, min_samples_per_treatment=0,
        random_state=seed,
    )  # fmt: skip


def true_value(table, X: pd.DataFrame, means: np.ndarray) -> float:
    """Mean true value of the trees that were judged, each by the rows that judged it."""
    rows, total = np.arange(len(means)), 0.0
    for repetition in table.repetitions:
        sizes = np.bincount(repetition.folds.fold[table.judged])
        values = [means[rows, tree.predict(X).astype(int)].mean() for tree in repetition.trees]
        total += float(np.average(values, weights=sizes[sizes > 0])) / len(table.repetitions)
    return total


def one_run(design: Design, n: int, seed: int, told: bool = False) -> list[dict]:
    """Compare every procedure's intervals with the truth of one draw; the arms' chances are told or not."""
    data = design.draw(n, np.random.default_rng([seed, n]))
    everybody = design.covariates(POPULATION, np.random.default_rng(1))
    X, means = design.table(everybody), design.means(everybody)
    arms = {f"always {k}": float(mean) for k, mean in enumerate(means.mean(axis=0))}
    given = {"propensity": design.chances(data.X.to_numpy()) if told else None, "random_state": seed}
    rows = []
    for name, options in PROCEDURES.items():
        table = cross_val_policy_value(light_learner(seed), data.Y, data.T, X=data.X, **given, **options)
        target, best = true_value(table, X, means), max(arms.values())
        value, against = table.estimates[LEARNT], table.against_best
        row = {"design": design.name, "n": n, "run": seed, "procedure": name, "target": target, "best arm": best}
        row |= {"value": value.lower <= target <= value.upper, "width": value.upper - value.lower}
        row["best single arm"] = against.lower <= target - best <= against.upper
        row |= {"shown better": against.better, "shown worse": against.worse}
        pairs = [(table.differences[arm], target - mean) for arm, mean in arms.items()]
        row["single arms"] = float(np.mean([d.lower <= true <= d.upper for d, true in pairs]))
        rows.append(row)
    return rows


def run_coverage(study, designs: list[Design], n: int, runs: int, told: bool = False) -> pd.DataFrame:
    """Share of intervals that hold what is true, in per cent, with its Monte-Carlo error."""
    rows: list[dict] = []
    for design in designs:
        study.step(f"coverage: {design.name}, n = {n:,}, {runs} runs")
        parts = Parallel(n_jobs=-1)(delayed(one_run)(design, n, seed, told) for seed in range(runs))
        rows += [row for part in parts for row in part]
    groups = pd.DataFrame(rows).groupby(["design", "n", "procedure"], sort=False)
    shares = ["value", "single arms", "best single arm", "shown better", "shown worse"]
    table = 100 * groups[shares].mean()
    table.insert(0, "runs", groups.size())
    error = 100 * np.sqrt(0.05 * 0.95 / table["runs"])
    return table.assign(**{"MC error if 95": error, "width": groups["width"].mean()}).reset_index()


def main(study) -> None:
    """Run the part."""
    n, runs = SMALL if study.quick else WHOLE if study.published else DEFAULT
    study.heading("Coverage of held-out intervals (per cent; nominal 95)")
    study.show(f"Linear outcome models and logistic propensities, trees of depth 2, {n:,} rows; {runs} runs.\n")
    table = run_coverage(study, [three_arms_no_effect(), three_arms()], n, runs)
    study.table(table, "coverage", index=False)
