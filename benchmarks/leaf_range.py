"""Whether leaf intervals that are cut to the outcome's range still cover, all leaves of a tree at once.

    python benchmarks/leaf_range.py                  # all cells, 1,000 runs each: some ten minutes on one core

Reports and pictures show the interval of a leaf's value only as far as outcomes go in the data (shares from 0 to 1,
say; `LeafValue.within`). Outcomes here are zeros and ones whose chances come close to the range's edge, with effects
and without. Every run calls `honest_leaf_summary` (half of the rows choose the tree, half judge its leaves) and
compares the intervals, as they are and cut, with the true means within the leaves.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from leaf_coverage import true_values
from reporting import RESULTS, machine, markdown_head, markdown_table
from simulated import N_FEATURES, POPULATION, LinearLearner, unwatched

from policytree import honest_leaf_summary
from policytree.evaluation.leaves.summary import leaf_values

SHOWN = ("values", "values, cut", "gains", "gains, cut", "cut", "width")


@dataclass(frozen=True)
class Chances:
    """A trial of two treatments whose outcome is 1 with a chance of ``rate`` plus or minus ``effect``."""

    name: str
    n: int
    rate: float
    effect: float = 0.0

    def means(self, X: np.ndarray) -> np.ndarray:
        """Chance of every row under either treatment, (n, 2): the second helps where the first column is positive."""
        base = np.clip(self.rate + 0.02 * np.clip(X[:, 1], -1, 1), 0.0, 1.0)
        other = np.clip(base + self.effect * np.sign(X[:, 0]), 0.0, 1.0)
        return np.column_stack([base, other])


CELLS = (
    Chances("no effect, rate .5, n=300", 300, 0.5),
    Chances("no effect, rate .95, n=300", 300, 0.95),
    Chances("no effect, rate .98, n=300", 300, 0.98),
    Chances("no effect, rate .98, n=1000", 1_000, 0.98),
    Chances("effect .15, rate .85, n=300", 300, 0.85, 0.15),
    Chances("effect .05, rate .05, n=1000", 1_000, 0.05, 0.05),
)


def one_run(cell: Chances, seed: int) -> dict:
    """Whether the intervals of one study's leaves all hold, as they are and cut."""
    rng = np.random.default_rng([seed, sum(map(ord, cell.name))])
    X = rng.standard_normal((cell.n, N_FEATURES))
    T = rng.permuted(np.arange(cell.n) % 2)
    Y = (rng.random(cell.n) < cell.means(X)[np.arange(cell.n), T]).astype(float)
    learner = LinearLearner(2, min_samples_leaf=10)
    honest = honest_leaf_summary(learner, Y, T, X=X, propensity={0: 0.5, 1: 0.5}, random_state=seed)
    shown = leaf_values(honest.estimator.policy_tree_.tree_, honest.leaves)
    nodes = list(shown)
    weight = np.full(len(POPULATION), 1 / len(POPULATION))
    truth = dict(
        zip(nodes, true_values(honest.estimator, np.array(nodes), cell.means(POPULATION), weight), strict=True)
    )
    chosen = dict(zip(honest.leaves.index, honest.leaves["arm", ""], strict=True))
    out = {name: True for name in ("values", "values, cut", "gains", "gains, cut")}
    cut, width = [], []
    for node, value in shown.items():
        arm, within = int(chosen[node]), value.within((float(Y.min()), float(Y.max())))
        mean, gain = truth[node][arm], truth[node][arm] - truth[node][1 - arm]
        if np.isnan(mean) or value.lower is None or not np.isfinite(value.lower):
            continue
        for name, each in (("", value), (", cut", within)):
            out[f"values{name}"] &= bool(each.lower <= mean <= each.upper)
            out[f"gains{name}"] &= bool(each.gain_lower <= gain <= each.gain_upper)
        cut.append(within != value)
        width.append((within.upper - within.lower) / max(value.upper - value.lower, 1e-12))
    return {**out, "cut": np.mean(cut) if cut else np.nan, "width": np.mean(width) if width else np.nan}


def main(arguments: list[str] | None = None) -> None:
    """Run all cells."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--output", type=Path, default=RESULTS / "leaf_range")
    options = parser.parse_args(arguments)
    rows = []
    for cell in CELLS:
        start = time.process_time()
        with unwatched():
            records = pd.DataFrame([one_run(cell, seed) for seed in range(options.runs)])
        rows.append({"cell": cell.name, "runs": len(records)}
                    | {name: 100 * records[name].astype(float).mean() for name in SHOWN})  # fmt: skip
        print(rows[-1], f"{time.process_time() - start:.0f} s", flush=True)
        table = pd.DataFrame(rows)
        table.to_csv(options.output.with_suffix(".csv"), index=False, float_format="%.6g")
        lines = [[str(v) if k in ("cell", "runs") else f"{v:.1f}" for k, v in row.items()] for row in rows]
        head = markdown_head(
            "Coverage of leaf intervals cut to the outcome's range (percent; nominal 95, all leaves at once)", machine()
        )
        text = head + markdown_table(list(table.columns), lines, set(table.columns[1:]))
        text += (
            "\nvalues, gains: share of trees all of whose intervals hold the truth, as they are and cut; cut: share of "
            "leaves whose intervals are cut; width: mean width of the cut intervals of values, of those as they are.\n"
        )
        options.output.with_suffix(".md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
