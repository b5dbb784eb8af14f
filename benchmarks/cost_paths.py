"""How long do the path of a cost curve, and half-samples of it, take? And rankings of as many people.

    python benchmarks/cost_paths.py                 # a million people, five treatments beside none; a minute
    python benchmarks/cost_paths.py --n 100000

Targets, one core: the path of 1,000,000 people in under 2 s, 200 half-samples of it in under 2 minutes. Seconds are of
the processor, medians of three; half-samples are timed once.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from reporting import RESULTS, machine, markdown_head, markdown_table

from policytree.evaluation import qini_curve, rank_average_treatment_effect
from policytree.evaluation.targeting.cost_paths import cost_path

DRAWS = 200


def seconds(work, repeats: int = 1) -> tuple[float, object]:
    """Median processor seconds, and what came out."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        out = work()
        times.append(time.process_time() - start)
    return float(np.median(times)), out


def measure(n: int, n_arms: int) -> list[list[str]]:
    """Lines of the table for people with random predictions, costs and scores."""
    rng = np.random.default_rng(0)
    nothing = np.zeros((n, 1))
    predicted = np.hstack([nothing, rng.standard_normal((n, n_arms))])
    costs = np.hstack([nothing, rng.random((n, n_arms))])
    scores = predicted + rng.standard_normal(predicted.shape)
    lines = []

    def line(what: str, spent: float, note: str) -> None:
        lines.append([what, f"{n:,}", f"{spent:.2f}", note])
        print(f"{what}: {spent:.2f} s ({note})", flush=True)

    spent, path = seconds(lambda: cost_path(predicted, costs), 3)
    line("path", spent, f"{len(path.person):,} steps")
    spent, curve = seconds(lambda: qini_curve(predicted, scores, costs, held_out=True, n_bootstrap=DRAWS), 3)
    line("curve (checks, path, sums)", spent, f"{len(curve.spend):,} corners")
    spent, table = seconds(curve.to_frame)
    line(f"{DRAWS} half-samples of the curve", spent, f"at {len(table)} budgets")
    one = scores[:, :2]
    spent, ranking = seconds(lambda: rank_average_treatment_effect(predicted[:, 1], one, held_out=True))
    line(f"AUTOC, TOC, {DRAWS} half-samples", spent, f"AUTOC {ranking.estimate.value:.3f}")
    return lines


def main(arguments: list[str] | None = None) -> None:
    """Measure and save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--arms", type=int, default=5)
    parser.add_argument("--output", type=Path, default=RESULTS / "cost_paths.md")
    options = parser.parse_args(arguments)
    about = machine()
    table = markdown_table(["what", "people", "s", "note"], measure(options.n, options.arms), {"people", "s"})
    options.output.write_text(markdown_head("Cost curves and rankings: time", about) + table, encoding="utf-8")


if __name__ == "__main__":
    main()
