"""Trials whose best tree starts with a split that brings nothing by itself: exact, hybrid and greedy trees.

Public interface used: RewardEstimator, PolicyTree.
"""

from __future__ import annotations

import pandas as pd
from simulations.designs import own_designs
from simulations.learning import Plan, draw_regret, paired, run_all, summary

DEFAULT = ((500, 2_000), 40)  # rows, runs
WHOLE = ((500, 1_000, 2_000, 4_000), 200)
SMALL = ((300,), 2)
PAIRS = (("greedy", 2), ("greedy", 3), ("hybrid", 3))


def main(study) -> None:
    """Run the part."""
    sizes, runs = SMALL if study.quick else WHOLE if study.published else DEFAULT
    study.heading("Designs of our own where greedy fails")
    study.show(
        "Two arms at random; the second brings +1 or -1, the noise has standard deviation 2; six covariates of 20 "
        "values.\nexclusive or: +1 if exactly one of x1, x2 is above 1/2. decoy: and x3 above 1/2 adds .4, below takes "
        f".4.\nparity of three: the sign of (1/2 - x1) (x2 - 1/2) (x3 - 1/2) (depth 3 is needed).\n"
        f"Rewards: doubly robust with linear outcome models, chances known. {runs} runs.\n"
    )
    frame = run_all(study, [Plan(design, n, learner="linear") for design in own_designs() for n in sizes], runs)
    table = summary(frame)
    study.table(table.drop(columns=["learner", "runs"]), "own_regret", digits=3, index=False)
    gaps = [paired(frame, ("exact", depth), (name, depth)).assign(rule=name, depth=depth) for name, depth in PAIRS]
    study.show("Regret less that of the exact tree of the same depth, same draws:")
    columns = ["rule", "depth", "design", "n", "difference", "MC error"]
    study.table(pd.concat(gaps)[columns], "own_gaps", digits=3, index=False)
    kept = table[(table["depth"] >= 2) & table["rule"].isin(["exact", "hybrid", "greedy"])]
    draw_regret(study, kept, "own_regret", "Where greedy fails: regret against rows")
