"""Whether intervals of optimism cover: value on the rows that chose a rule less its true value.

    python benchmarks/optimism_coverage.py            # all cells, 300 runs each: half an hour on one core

Every run draws a study as in `held_out_coverage.py`, calls `cross_val_policy_value` and compares the interval of the
tree's optimism with the expected optimism: the mean over all runs of (value on the rows that chose the trees) - (true
value of these trees). "own draw": with the optimism of that very run's trees, which the intervals are not made for.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd
from held_out_coverage import targets
from reporting import RESULTS, machine, markdown_head, markdown_table
from simulated import Cell, LinearLearner, cells, unwatched

from policytree import cross_val_policy_value

CHOSEN = ("no effect, n=300, 2 arms", "no effect, n=300, 4 arms", "no effect, n=1000, 2 arms", "effects, n=300, 2 arms",
          "effects, n=1000, 2 arms", "effects, n=1000, 4 arms", "60 clusters of 25", "weights, n=1000")  # fmt: skip


def one_run(cell: Cell, seed: int) -> dict:
    """Estimate, interval and the run's own truth."""
    rng = np.random.default_rng([seed, sum(map(ord, cell.name))])
    study, (means, weight) = cell.draw(rng), cell.truth()
    Y, T = study.pop("Y"), study.pop("T")
    table = cross_val_policy_value(LinearLearner(cell.depth), Y, T, **study, random_state=seed)
    found = table.optimism["policy tree"]
    truth = found.training_value - targets(table, means, weight, table.repetitions)
    gap = found.difference
    return {"estimate": gap.value, "lower": gap.lower, "upper": gap.upper, "se": gap.standard_error, "truth": truth}


def summary(cell: Cell, records: pd.DataFrame) -> dict:
    """Coverage in percent, and how estimates scatter."""
    expected = records["truth"].mean()
    covered = (records["lower"] <= expected) & (expected <= records["upper"])
    own = (records["lower"] <= records["truth"]) & (records["truth"] <= records["upper"])
    p = covered.mean()
    return {
        "cell": cell.name, "runs": len(records), "expected optimism": expected, "mean estimate":
        records["estimate"].mean(), "coverage": 100 * p, "own draw": 100 * own.mean(),
        "shown above 0": 100 * (records["lower"] > 0).mean(), "SE / SD": records["se"].mean() /
        records["estimate"].std(), "MC error": 100 * np.sqrt(p * (1 - p) / len(records)),
    }  # fmt: skip


def save(rows: list[dict], stem: Path) -> None:
    """All cells so far."""
    frame = pd.DataFrame(rows)
    frame.to_csv(stem.with_suffix(".csv"), index=False, float_format="%.6g")
    digits = {"runs": 0, "coverage": 1, "own draw": 1, "shown above 0": 1, "SE / SD": 2, "MC error": 1}
    lines = [
        [row["cell"], *(f"{value:.{digits.get(name, 3)}f}" for name, value in list(row.items())[1:])]
        for row in frame.to_dict("records")
    ]
    head = markdown_head("Coverage of intervals of optimism (percent; nominal 95)", machine())
    stem.with_suffix(".md").write_text(
        head + markdown_table(list(frame.columns), lines, set(frame.columns[1:])), encoding="utf-8"
    )


def main(arguments: list[str] | None = None) -> None:
    """Run all cells."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--output", type=Path, default=RESULTS / "optimism_coverage")
    parser.add_argument("--resume", action="store_true", help="skip cells that the output has already")
    options = parser.parse_args(arguments)
    rows, saved = [], options.output.with_suffix(".csv")
    if options.resume and saved.is_file():
        rows = pd.read_csv(saved).to_dict("records")
    for cell in (c for c in cells() if c.name in CHOSEN and c.name not in {row["cell"] for row in rows}):
        start = time.perf_counter()
        with unwatched():
            rows.append(summary(cell, pd.DataFrame([one_run(cell, seed) for seed in range(options.runs)])))
        print(rows[-1], f"{time.perf_counter() - start:.0f} s", flush=True)
        save(rows, options.output)


if __name__ == "__main__":
    main()
