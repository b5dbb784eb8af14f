"""Simulated studies with a known truth: regret of exact, hybrid, greedy and plug-in rules against the number of rows.

Public interface used: RewardEstimator, PolicyTree. Designs are in designs.py, rules in rules.py, one simulated study in
learning.py. The parts greedy_fails.py and coverage.py ask two more questions.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
from simulations.designs import NEW_ROWS, three_arms
from simulations.learning import Plan, draw_regret, half_width, paired, run_all, summary

PUBLISHED_TAKES = "about forty minutes on two cores, its parts perhaps an hour"
# Mean and median regret of R's policytree with grf's multi-arm causal forests, depth 2, 400 runs: two published reruns.
PUBLISHED = {
    "first run, mean": (0.153, 0.094, 0.058, 0.045),
    "second run, mean": (0.154, 0.086, 0.058, 0.038),
    "medians": (0.154, 0.071, 0.034, 0.031),
}
SIZES = (1_000, 1_500, 2_000, 2_500)


@dataclass(frozen=True)
class Size:
    """How much is run.

    Attributes
    ----------
    sizes : tuple of int
        Rows of a study.
    runs : int
    deep : int
        Rows up to which trees of depth three are searched for.
    default : tuple of int
        Sizes at which the library's own learners, which are slower, are run too.
    costly_runs : int
        Runs with trees of depth three and the library's own learners; the published runs have neither.
    """

    sizes: tuple[int, ...]
    runs: int
    deep: int
    default: tuple[int, ...]
    costly_runs: int


DEFAULT = Size(SIZES, 16, 1_000, (1_000,), 16)
WHOLE = Size(SIZES, 400, 2_500, SIZES, 60)
SMALL = Size((300, 400), 2, 300, (300,), 1)


def plans_of(size: Size) -> list[Plan]:
    """The published design at every size."""
    return [
        Plan(three_arms(), n, (1, 2, 3) if n <= size.deep else (1, 2), n in size.default, costly_runs=size.costly_runs)
        for n in size.sizes
    ]


def beside(table: pd.DataFrame) -> pd.DataFrame:
    """Our exact trees of depth two beside the published numbers, by n."""
    rows = []
    exact = table[(table["rule"] == "exact") & (table["depth"] == 2)]
    for n in dict.fromkeys(exact["n"]):
        row = {"n": n}
        for learner in ("forests", "default"):
            chosen = exact[(exact["n"] == n) & (exact["learner"] == learner)]
            if chosen.empty:
                continue
            ours = chosen.iloc[0]
            half = half_width(ours["MC error"], ours["runs"])
            row |= {learner: ours["mean"], f"{learner} lower": ours["mean"] - half}
            row[f"{learner} upper"] = ours["mean"] + half
        row |= {name: values[SIZES.index(n)] for name, values in PUBLISHED.items() if n in SIZES}
        rows.append(row)
    return pd.DataFrame(rows)


def main(study) -> None:
    """Run the study."""
    size = SMALL if study.quick else WHOLE if study.published else DEFAULT
    study.heading("Zhou, Athey and Wager's three arms: regret against the number of rows")
    study.show(
        f"Mean outcome of the best tree of depth 2 less that of the learnt rule, on {NEW_ROWS:,} new rows; "
        f"{size.runs} runs, {size.costly_runs} of depth 3 and with default learners.\n"
        "Rewards: doubly robust, random forests and logistic propensities (default: the library's own learners).\n"
    )
    frame = run_all(study, plans_of(size), size.runs)
    table = summary(frame)
    study.table(table.drop(columns=["design"]), "regret", digits=3, index=False)
    study.show("Exact trees of depth 2 beside the published reruns (mean, 95% interval of the simulation):")
    study.table(beside(table), "published", digits=3, index=False)
    gaps = [paired(frame, ("exact", 2), rule).assign(rule=rule[0]) for rule in (("greedy", 2), ("plug-in tree", 2))]
    study.show("Regret less that of the exact tree, depth 2, same draws:")
    study.table(pd.concat(gaps)[["rule", "n", "difference", "MC error"]], "gaps", digits=3, index=False)
    draw_regret(study, table[table["learner"] == "forests"], "regret", "Three arms: regret against rows")
