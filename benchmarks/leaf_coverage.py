"""Whether the intervals of honest leaves cover, all at once; and how far off values on training rows are.

    python benchmarks/leaf_coverage.py               # all cells, 1,000 runs each: some ten minutes on one core

Every run draws a study as in `held_out_coverage.py`, calls `honest_leaf_summary` (half of the rows choose the tree,
half judge its leaves) and compares with the true means within these leaves; and, for contrast, takes naive intervals on
the rows that chose the tree.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from reporting import RESULTS, machine, markdown_head, markdown_table
from simulated import POPULATION, Cell, LinearLearner, linear_effects, no_effect, unwatched
from sklearn.base import clone

from policytree import honest_leaf_summary, leaf_summary

SHOWN = ("values", "gains", "best", "best too high", "naive beyond", "gain z", "training z")


def cells() -> list[tuple[Cell, int]]:
    """List the settings to simulate, with the smallest leaf of each."""
    base = Cell("no effect, n=300, 2 arms", 300, effects=no_effect)
    several = Cell("effects, n=1000, 4 arms", 1_000, 4, linear_effects)
    return [
        (base, 1),
        (replace(base, name="no effect, n=1000, 2 arms", n=1_000), 1),
        (replace(base, name="no effect, n=1000, 4 arms, leaves of 50", n=1_000, n_arms=4), 50),
        (replace(base, name="effects, n=1000, 2 arms", n=1_000, effects=linear_effects), 1),
        (several, 1),
        (replace(several, name="effects, n=1000, 4 arms, leaves of 50"), 50),
        (Cell("60 clusters of 25, leaves of 50", 1_500, cluster_size=25), 50),
        (Cell("weights, n=1000, leaves of 50", 1_000, weighted=True), 50),
    ]


def true_values(fitted, leaves: np.ndarray, means: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Mean outcome of every arm in these leaves, (L, K); NaN for a leaf without a point of the population."""
    at = fitted.apply(POPULATION)
    rows = [at == leaf for leaf in leaves]
    total = [weight[r].sum() for r in rows]
    return np.array([weight[r] @ means[r] / w if w > 0 else np.full(means.shape[1], np.nan)
                     for r, w in zip(rows, total, strict=True)])  # fmt: skip


def one_run(cell: Cell, smallest_leaf: int, seed: int) -> dict:
    """Whether the intervals of one study's leaves all hold."""
    rng = np.random.default_rng([seed, sum(map(ord, cell.name))])
    study, (means, weight) = cell.draw(rng), cell.truth()
    learner = LinearLearner(cell.depth, min_samples_leaf=smallest_leaf)
    Y, T = study.pop("Y"), study.pop("T")
    honest = honest_leaf_summary(learner, Y, T, **study, random_state=seed)
    frame, arms = honest.leaves, list(range(cell.n_arms))
    truth = true_values(honest.estimator, frame.index, means, weight)
    chosen = frame["arm", ""].to_numpy()
    gain = truth[np.arange(len(truth)), chosen][:, None] - truth
    gain[np.arange(len(truth)), chosen] = np.nan
    best = np.nanmin(gain, axis=1)
    over = {name: frame["gain_over_best", name].to_numpy() for name in ("value", "lower", "upper")}

    def inside(lower, upper, true):
        return bool(np.all((lower <= true) & (true <= upper) | np.isnan(true) | np.isnan(lower)))

    outside = {f"gain_{end}": frame[f"gain_{end}"][arms].to_numpy() for end in ("lower", "upper")}
    return {
        "values": inside(frame["lower"][arms].to_numpy(), frame["upper"][arms].to_numpy(), truth),
        "gains": inside(outside["gain_lower"], outside["gain_upper"], gain),
        "best": inside(over["lower"], over["upper"], best),
        "best too high": np.nanmean(np.where(np.isnan(over["value"] + best), np.nan, over["value"] > best)),
        **_naive(learner, Y, T, study, frame, best, cell, means, weight),
    }


def _naive(learner, Y, T, study, frame, best, cell, means, weight) -> dict:
    """Judge as a reader of ordinary tables would: on the training rows, and with the runner-up of the same rows."""
    error = frame["gain", "standard_error"].to_numpy()
    z = (frame["gain", "value"].to_numpy() - best) / np.where(error > 0, error, np.nan)
    whole = clone(learner).fit(Y, T, W=None, **{"sample_weight": None, "groups": None, **study})
    rows = {name: study.get(name) for name in ("groups", "sample_weight")}
    training = leaf_summary(whole, study["X"], whole.rewards_, **rows)
    truth = true_values(whole, training.index, means, weight)
    chosen = training["arm", ""].to_numpy()
    at = np.arange(len(truth))
    gains = truth[at, chosen] - truth[at, training["second_best", ""].to_numpy()]
    spread = training["gain", "standard_error"].to_numpy()
    t = (training["gain", "value"].to_numpy() - gains) / np.where(spread > 0, spread, np.nan)
    return {
        "naive beyond": np.nanmean(np.where(np.isnan(t), np.nan, np.abs(t) > 1.96)),
        "gain z": np.nanmean(z) if np.isfinite(z).any() else np.nan, "training z": np.nanmean(t),
    }  # fmt: skip


def main(arguments: list[str] | None = None) -> None:
    """Run all cells."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--output", type=Path, default=RESULTS / "leaf_coverage")
    options = parser.parse_args(arguments)
    rows = []
    for cell, smallest_leaf in cells():
        start = time.perf_counter()
        with unwatched():
            records = pd.DataFrame([one_run(cell, smallest_leaf, seed) for seed in range(options.runs)])
        shares = {name: (100 if " z" not in name else 1) * records[name].astype(float).mean() for name in SHOWN}
        error = 100 * np.sqrt(max(records["gains"].mean() * (1 - records["gains"].mean()), 0) / len(records))
        rows.append({"cell": cell.name, "runs": len(records), **shares, "MC error": error})
        print(rows[-1], f"{time.perf_counter() - start:.0f} s", flush=True)
        table = pd.DataFrame(rows)
        table.to_csv(options.output.with_suffix(".csv"), index=False, float_format="%.6g")
        lines = [[row["cell"], str(row["runs"]), *(f"{v:.2f}" if " z" in k or k == "MC error" else f"{v:.1f}"
                  for k, v in list(row.items())[2:])] for row in rows]  # fmt: skip
        head = markdown_head("Coverage of honest leaves (percent; nominal 95, all leaves and arms at once)", machine())
        text = head + markdown_table(list(table.columns), lines, set(table.columns[1:]))
        options.output.with_suffix(".md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
