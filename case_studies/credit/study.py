"""Credit: whom to lend to if a bad loan costs more than a lost customer, and what doing without some columns costs.

Public interface used: CostSensitiveTreeClassifier, near_ties. Code shared by both studies of decisions is in
../decisions.py.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from as_good import show_near_ties
from decisions import Decisions, show_depths, show_exclusions, show_people, show_rates, show_tree, show_values
from tables import read_table

SOURCE = "the FICO Explainable Machine Learning Challenge (HELOC)"
HISTORY = ("MSinceOldestTradeOpen", "AverageMInFile")  # how long somebody has had credit: near to age
SCORE = ("ExternalRiskEstimate",)  # bought, and nobody outside knows how it is made
WITHOUT = {"the bought score": SCORE, "length of credit history": HISTORY, "both": (*SCORE, *HISTORY)}
KEPT_OUT = "length of credit history"
WORDS = ("lend", "decline")
BAD = 2.0  # what a loan that goes bad costs, in what a good loan earns
LOST = 1.0  # declining somebody who would have paid
RATIOS = (1.0, 2.0, 5.0)
SLACK = 0.005  # half a good loan's earnings per 100 people
TREE = "tree without history"
RATE_NAMES = {"false alarms": "declined, of those who would have paid", "missed": "lent to, of those who did not pay"}


def applicants(study) -> pd.DataFrame:
    """The challenge's table; the codes -9, -8, -7 (no file, no such account, never happened) stay numbers."""
    return read_table("fico_heloc", SOURCE, study.data_dir)


def question(frame: pd.DataFrame, depth: int = 2) -> Decisions:
    """Decline (1) or lend (0)."""
    X = frame.drop(columns="PoorRiskPerformance").astype(float)
    return Decisions(X, frame["PoorRiskPerformance"].to_numpy(dtype=int), {(1, 0): BAD, (0, 1): LOST}, depth)


def groups_of(frame: pd.DataFrame) -> dict[str, np.ndarray]:
    """Thirds by months since the oldest account, and those without a usable date; the file knows nothing else."""
    months = frame["MSinceOldestTradeOpen"]
    known = months >= 0
    low, high = np.quantile(months[known], [1 / 3, 2 / 3])
    cut = {"shortest third": known & (months <= low), "middle third": known & (months > low) & (months <= high)}
    cut |= {"longest third": months > high, "no usable history": ~known}
    return {name: mask.to_numpy() for name, mask in cut.items()}


def told(task: Decisions) -> str:
    """Who they are, and the costs in words."""
    return (
        f"{len(task.y):,} people with a home equity line; {100 * task.y.mean():.1f} % did not pay as agreed.\n"
        f"Decline, or lend? A loan that goes bad costs {BAD:g} times what a good one earns; declining somebody\n"
        f"who would have paid costs {LOST:g}, the loan's earnings.\n"
    )


def show_prices(study, task: Decisions) -> None:
    """How tree and exclusion move with the price of a bad loan."""
    study.heading("7. Other prices of a bad loan (in earnings of a good one; per 100 people)")
    rows = []
    for ratio in RATIOS:
        priced = replace(task, costs={(1, 0): ratio, (0, 1): LOST})
        best = {name: priced.tree(columns).fit(priced.X, priced.y) for name, columns in {"": (), **WITHOUT}.items()}
        row = {"price": ratio, "declined %": 100 * float((best[""].predict(priced.X) == 1).mean())}
        row["cost"] = 100 * best[""].objective_value_
        row |= {f"without {name}": 100 * (best[name].objective_value_ - best[""].objective_value_) for name in WITHOUT}
        rows.append(row)
    study.show("The columns 'without' say what the exclusion adds, proved on these people.")
    study.table(pd.DataFrame(rows), "prices", digits=2, index=False)


def main(study) -> None:
    """Run the study."""
    frame = applicants(study)
    frame = frame.iloc[:1_500] if study.quick else frame
    task = question(frame)
    groups = groups_of(frame)
    study.heading("1. The applicants and the decision")
    months = {"median months since the oldest account": frame["MSinceOldestTradeOpen"]}
    show_people(study, task, told(task), groups, "bad %", months)
    study.heading(f"2. The best tree of depth {task.depth}")
    show_tree(study, task, WITHOUT[KEPT_OUT], WORDS, "Length of credit history kept out", "tree")
    study.heading("3. What leaving columns out costs (by the stated costs, per 100 people)")
    decided = show_exclusions(study, task, WITHOUT, "good loans' earnings")
    rules = {TREE: decided[KEPT_OUT], "tree with all columns": decided["nothing"], "tree without both": decided["both"]}
    rules |= {"nobody gets a loan": np.ones((1, len(frame)), int), "everybody gets one": np.zeros((1, len(frame)), int)}
    study.heading("4. What rules cost on people who did not choose them (per 100 people)")
    show_values(study, task, rules, TREE)
    study.heading("5. Who bears the mistakes (per cent, held out)")
    learnt = {name: rules[name] for name in list(rules)[:3]}
    title = "Who bears the mistakes, by length of credit history"
    show_rates(study, task, learnt, groups, [("shortest third", "longest third")], title, RATE_NAMES)
    study.heading(f"6. Trees within {SLACK:g} of the best: who can do without what?")
    without = [list(columns) for columns in WITHOUT.values()]
    show_near_ties(study, task.tree().fit(task.X, task.y), task.X, SLACK, without, "people", "FICO, depth 2", y=task.y)
    show_prices(study, task)
    study.heading("8. What leaving columns out costs at other depths (per 100 of these people)")
    show_depths(study, task, WITHOUT, (1, 2) if study.quick else (1, 2, 3))
