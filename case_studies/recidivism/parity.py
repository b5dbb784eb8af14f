"""Recidivism: what it costs to supervise equal shares of groups, beside what it costs not to ask about columns.

Public interface used: PolicyTree. The tree sees neither race, nor sex, nor age; groups are compared all the same.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from decisions import FOLDS, REPEATS, Decisions, triple
from recidivism.study import KEPT_OUT, WITHOUT, defendants, question

from policytree import PolicyTree
from policytree.evaluation.estimates import influence_estimate, repeated_estimate

LIMITS = (None, 0.10, 0.05, 0.02)
DEPTH, SMALLEST = 2, 50
LARGEST_RACES = ("African-American", "Caucasian")
PAIRS = {"race": LARGEST_RACES, "sex": ("Male", "Female")}  # whose difference is estimated on others


def groups_of(frame: pd.DataFrame) -> pd.DataFrame:
    """Race in three groups, and sex."""
    race = frame["race"].where(frame["race"].isin(LARGEST_RACES), "other")
    return pd.DataFrame({"race": race, "sex": frame["sex"]}).reset_index(drop=True)


def costs_of(task: Decisions) -> np.ndarray:
    """What leaving alone and supervising cost everybody, (n, 2)."""
    everybody = np.zeros(len(task.y), dtype=int)
    return np.column_stack([task.losses(everybody), task.losses(everybody + 1)])


def fitted(task: Decisions, groups: pd.DataFrame, limit: float | None, column: str, rows=slice(None)) -> PolicyTree:
    """The tree of least cost whose shares supervised differ by at most so much between the groups of a column."""
    gap = None if limit is None else {column: limit}
    tree = PolicyTree(max_depth=DEPTH, min_samples_leaf=SMALLEST, direction="minimize", max_share_gap=gap)
    X = task.X.drop(columns=list(WITHOUT[KEPT_OUT])).iloc[rows]
    return tree.fit(X, costs_of(task)[rows], subgroups=groups[[column]].iloc[rows])


def held_out(task: Decisions, groups: pd.DataFrame, limit: float | None, column: str, repeats: int) -> np.ndarray:
    """Decisions for everybody by trees that have not seen them, (repeats, n)."""
    decided = np.empty((repeats, len(task.y)), dtype=int)
    for repetition in range(repeats):
        for learn, judge in task.folds(repetition):
            tree = fitted(task, groups, limit, column, learn)
            decided[repetition, judge] = tree.predict(task.X.drop(columns=list(WITHOUT[KEPT_OUT])).iloc[judge])
    return decided


def share_gap(task: Decisions, decided: np.ndarray, a: np.ndarray, b: np.ndarray):
    """Share of one group that is supervised less that of another."""
    pairs = [[(d == 1)[group].mean() for group in (a, b)] for d in decided]
    parts = []
    for d, (one, other) in zip(decided, pairs, strict=True):
        hit = (d == 1).astype(float)
        influence = a * (hit - one) / a.mean() - b * (hit - other) / b.mean()
        parts.append(influence_estimate(one - other, influence))
    return repeated_estimate(parts, FOLDS)


def show_here(study, task: Decisions, groups: pd.DataFrame, column: str) -> None:
    """Price and shares of every limit, on the people who chose the trees."""
    rows = []
    for limit in LIMITS:
        study.step(f"{column} within {limit}")
        tree = fitted(task, groups, limit, column)
        shares = tree.subgroup_values_.loc[column]["share of 1"]
        price = 0.0 if limit is None else 100 * tree.price_of_limits_
        rows.append({"limit": "none" if limit is None else f"{100 * limit:g}", "cost": 100 * tree.objective_value_,
                     "costs here": price + 0.0, "proved": tree.status_.proved,
                     **{f"supervised, {name}": 100 * share for name, share in shares.items()},
                     "asks about": ", ".join(sorted(tree.get_used_features())) or "nothing"})  # fmt: skip
    study.table(pd.DataFrame(rows), f"parity_{column}", digits=2, index=False)


def show_others(study, task: Decisions, groups: pd.DataFrame, column: str, pair: tuple[str, str]) -> None:
    """The same on people who did not choose the trees."""
    repeats = 2 if study.quick else REPEATS
    a, b = ((groups[column] == name).to_numpy() for name in pair)
    free, rows = held_out(task, groups, None, column, repeats), []
    for limit in LIMITS:
        study.step(f"{column} within {limit}, held out")
        decided = free if limit is None else held_out(task, groups, limit, column, repeats)
        cost = {} if limit is None else {
            key: 100 * value for key, value in triple(task.gap(decided, free), "costs others").items()
        }  # fmt: skip
        gap = {key: 100 * value for key, value in triple(share_gap(task, decided, a, b), "gap").items()}
        rows.append({"limit": "none" if limit is None else f"{100 * limit:g}", **gap, **cost})
    study.table(pd.DataFrame(rows), f"parity_{column}_others", digits=2, index=False)


def main(study) -> None:
    """Run the part."""
    frame = defendants(study)
    frame = (frame.iloc[:1_500] if study.quick else frame).reset_index(drop=True)
    task, groups = question(frame, DEPTH), groups_of(frame)
    for k, (column, pair) in enumerate(PAIRS.items()):
        study.heading(
            f"{2 * k + 1}. Limits on differences by {column} of shares supervised (depth {DEPTH}, these people, %)"
        )
        show_here(study, task, groups, column)
        study.heading(f"{2 * k + 2}. The same on people who did not choose the trees; gap: {pair[0]} - {pair[1]}")
        show_others(study, task, groups, column, pair)
    study.heading(f"{2 * len(PAIRS) + 1}. Beside it: what not asking about columns costs (these people, per 100)")
    asked = {"nothing": (), **WITHOUT}
    costs = {name: 100 * task.tree(left_out).fit(task.X, task.y).objective_value_ for name, left_out in asked.items()}
    prices = {name: cost - costs["nothing"] for name, cost in costs.items()}
    study.table(pd.Series(prices, name="costs here").to_frame(), "parity_exclusions", digits=2)
