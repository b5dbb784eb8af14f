"""Recidivism: whom to supervise if mistakes cost, without race, sex and age, and what leaving them out costs.

Public interface used: CostSensitiveTreeClassifier, near_ties. Code shared by both studies of decisions is in
../decisions.py; other prices of mistakes, and Broward County, are in others.py.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from as_good import show_near_ties, show_slacks
from decisions import Decisions, show_depths, show_exclusions, show_people, show_rates, show_tree, show_values
from recidivism.others import show_broward, show_prices
from tables import read_table

SOURCE = "the repository propublica/compas-analysis on GitHub (compas-scores-two-years.csv, without names)"
COLUMNS = {
    "race": "race", "sex": "sex", "age": "age", "juv_fel_count": "juvenile_felonies",
    "juv_misd_count": "juvenile_misdemeanors", "juv_other_count": "juvenile_other", "priors_count": "priors",
    "c_charge_degree": "charge_degree",
}  # fmt: skip
WITHOUT = {
    "race": ("race",),
    "sex": ("sex",),
    "age": ("age",),
    "race and sex": ("race", "sex"),
    "race, sex and age": ("race", "sex", "age"),
}
KEPT_OUT = "race, sex and age"
WORDS = ("leave alone", "supervise")
MISSED, ALARM = 1.0, 1.0  # what not supervising somebody who is rearrested costs; supervising somebody who is not
MEDIUM = 5  # COMPAS deciles from here on are called medium or high
SLACK = 0.005  # half a mistake per 100 people
SLACKS = (0.0025, 0.005, 0.01, 0.02)
TREE, SCORE, NOBODY = "tree without race, sex, age", "COMPAS medium or high", "nobody supervised"
PAIRS = (("African-American", "Caucasian"), ("men", "women"), ("under 25", "over 45"))
RATE_NAMES = {"false alarms": "supervised, of those not rearrested", "missed": "not supervised, of those rearrested"}


def defendants(study) -> pd.DataFrame:
    """ProPublica's table by ProPublica's own filter: 6,172 people screened within 30 days of their arrest."""
    raw = read_table("compas_two_years", SOURCE, study.data_dir)
    kept = (raw["days_b_screening_arrest"].abs() <= 30) & (raw["is_recid"] != -1)
    kept &= (raw["c_charge_degree"] != "O") & raw["score_text"].isin(["Low", "Medium", "High"])
    return raw[kept].reset_index(drop=True)


def question(frame: pd.DataFrame, depth: int = 3) -> Decisions:
    """Supervise (1) or not, by what is known at the screening; scores and what came later are left out."""
    X = frame[list(COLUMNS)].rename(columns=COLUMNS)
    costs = {(1, 0): MISSED, (0, 1): ALARM}
    return Decisions(X, frame["two_year_recid"].to_numpy(dtype=int), costs, depth)


def groups_of(frame: pd.DataFrame) -> dict[str, np.ndarray]:
    """Whose error rates are looked at."""
    age = pd.cut(frame["age"], [0, 24, 45, 200], labels=["under 25", "25 to 45", "over 45"])
    named = {
        "African-American": frame["race"] == "African-American",
        "Caucasian": frame["race"] == "Caucasian",
        "Hispanic": frame["race"] == "Hispanic",
        "women": frame["sex"] == "Female",
        "men": frame["sex"] == "Male",
    }
    return {
        name: mask.to_numpy() for name, mask in (named | {label: age == label for label in age.cat.categories}).items()
    }


def told(task: Decisions) -> str:
    """Who they are, what was counted, and the costs in words."""
    return (
        f"{len(task.y):,} people; {100 * task.y.mean():.1f} % were rearrested within two years. Supervise, or not?\n"
        f"Not supervising somebody who is rearrested costs {MISSED:g}; supervising somebody who is not costs\n"
        f"{ALARM:g}; anything else costs nothing.\n"
    )


def show_cuts(study, frame: pd.DataFrame, task: Decisions) -> None:
    """Whether the score does better when cut elsewhere; nothing is learnt, so there is nothing to hold out."""
    deciles = frame["decile_score"].to_numpy()
    costs = {cut: 100 * task.losses((deciles >= cut).astype(int)).mean() for cut in range(2, 11)}
    told = ", ".join(f"{cut}: {cost:.2f}" for cut, cost in costs.items())
    study.show(f"COMPAS on these people, supervised from a decile of so much on: {told}\n")


def main(study) -> None:
    """Run the study."""
    frame = defendants(study)
    frame = frame.iloc[:1_500] if study.quick else frame
    task = question(frame, 2 if study.quick else 3)
    groups = groups_of(frame)
    study.heading("1. The people and the decision")
    means = {"mean priors": frame["priors_count"], "mean age": frame["age"]}
    show_people(study, task, told(task), groups, "rearrested %", means)
    study.heading(f"2. The best trees of depth {task.depth}")
    show_tree(study, task, WITHOUT[KEPT_OUT], WORDS, "Race, sex and age kept out", "tree")
    show_tree(study, task, (), WORDS, "All columns", "")
    study.heading("3. What leaving columns out costs (mistakes, by their costs, per 100 people)")
    decided = show_exclusions(study, task, WITHOUT, "mistakes")
    fixed = {SCORE: (frame["decile_score"] >= MEDIUM).to_numpy(dtype=int)[None], NOBODY: np.zeros((1, len(frame)), int)}
    rules = {TREE: decided[KEPT_OUT], "tree with all columns": decided["nothing"], **fixed}
    study.heading("4. What rules cost on people who did not choose them (per 100 people)")
    show_values(study, task, rules, TREE)
    show_cuts(study, frame, task)
    study.heading("5. Who bears the mistakes (per cent, held out)")
    judged = {name: rules[name] for name in rules if name != NOBODY}
    show_rates(study, task, judged, groups, PAIRS, "Who bears the mistakes", RATE_NAMES)
    study.heading(f"6. Trees of depth 2 within {SLACK:g} of the best: who can do without what?")
    near = question(frame, 2)
    without = [list(columns) for columns in WITHOUT.values()]
    show_near_ties(
        study, near.tree().fit(near.X, near.y), near.X, SLACK, without, "people", "Recidivism, depth 2", y=near.y
    )
    show_slacks(study, near.tree(), near.X, SLACKS, y=near.y)
    show_prices(study, task, WITHOUT[KEPT_OUT])
    show_broward(study)
    study.heading("9. What leaving columns out costs at other depths (ProPublica's people, per 100 of them)")
    show_depths(study, task, WITHOUT, (1, 2) if study.quick else (1, 2, 3, 4))
