"""Weights against rows that are repeated up to a hundred times: the conclusion drawn from Fig. 1, tested."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from weighted_trees import data, peers
from weighted_trees.data import binary, reference
from weighted_trees.duplication_time import DEPTH, OURS, PEER, ours
from weighted_trees.fitting import SECONDS

from policytree import OptimalTreeClassifier

COPIES = (1, 2, 5, 10, 20, 50, 100)  # times as many rows
PEER_LIMIT = 60


def main(study) -> None:
    """Seconds of both ways at every size."""
    table, y = data.table("fico_heloc", study.data_dir)
    study.heading(f"Fig. 1's conclusion: is duplication faster below a hundred times the rows? (FICO, depth {DEPTH})")
    study.show("Every row stands from once to twice as often as the mean, so that weights differ; the same columns as\n"
               f"in Fig. 1. A fit of DL8.5's may take {PEER_LIMIT} s. {SECONDS}\n")  # fmt: skip
    guess = OptimalTreeClassifier(max_depth=1, guesses=reference(30, 2)).fit(table, y).guesses_
    X = binary(table.to_numpy(), guess.thresholds)
    random = np.random.default_rng(3)
    rows = []
    for times in COPIES[:2] if study.quick else COPIES:
        study.step(f"{times} times the rows")
        copies = random.integers(1, 2 * times, len(X)) if times > 1 else np.ones(len(X), dtype=int)
        repeated = np.repeat(np.arange(len(X)), copies)
        row = {"rows / rows of the data": len(repeated) / len(X)}
        for method in (OURS[0], OURS[2]):
            row[method] = ours(method, X, y, copies.astype(float), repeated, repeats=2)["seconds"]
        if peers.installed("DL8.5"):
            fit = peers.Fit("DL8.5", X, y, DEPTH, PEER_LIMIT)
            with_weight, by_rows = peers.run([replace(fit, weight=copies.astype(float)), replace(fit, rows=repeated)])
            row |= {PEER[0]: with_weight.seconds, PEER[1]: by_rows.seconds}
        rows.append(row)
    found = pd.DataFrame(rows)
    found["ours: rows / weights"] = found[OURS[2]] / found[OURS[0]]
    if PEER[0] in found:
        found["DL8.5: rows / weights"] = found[PEER[1]] / found[PEER[0]]
    study.table(found, "repeats", digits=2, index=False)
    for name in [column for column in found if "rows / weights" in column]:
        slower = found.loc[found[name] > 1, "rows / rows of the data"]
        study.show(f"{name}: weights are faster at {len(slower)} of {len(found)} sizes"
                   + (f", from {slower.min():.1f} times the rows on" if len(slower) else ""))  # fmt: skip
    study.show()
