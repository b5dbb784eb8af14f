"""Cost of treating equal shares of groups that the tree does not see, for the parts "parity" of two studies.

Public interface used: PolicyTree.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from decisions import FOLDS, REPEATS, Decisions, triple

from policytree import PolicyTree
from policytree.constraints import EqualShares
from policytree.evaluation.estimates import influence_estimate, repeated_estimate

LIMITS = (None, 0.10, 0.05, 0.02)
SMALLEST = 50  # rows of a leaf


@dataclass(frozen=True)
class Shares:
    """A question, and whose shares are compared.

    Attributes
    ----------
    task : Decisions
    groups : DataFrame of shape (n, q)
        Columns of groups.
    unseen : tuple of str
        Columns of the task that the tree does not see.
    word : str
        What happens to people whose decision is 1: "supervised".
    pairs : dict of str to tuple of str
        Two groups of every column, whose difference is estimated on others.
    """

    task: Decisions
    groups: pd.DataFrame
    unseen: tuple[str, ...]
    word: str
    pairs: dict[str, tuple[str, str]]

    @property
    def X(self) -> pd.DataFrame:
        """Columns that the tree may ask about."""
        return self.task.X.drop(columns=list(self.unseen))


def costs_of(task: Decisions) -> np.ndarray:
    """Return the costs of the decisions 0 and 1 for everybody, (n, 2)."""
    everybody = np.zeros(len(task.y), dtype=int)
    return np.column_stack([task.losses(everybody), task.losses(everybody + 1)])


def fitted(shares: Shares, limit: float | None, column: str, rows=slice(None)) -> PolicyTree:
    """The tree of least cost whose shares of decision 1 differ by at most so much between the groups of a column."""
    gap = [] if limit is None else [EqualShares(column, within=limit)]
    tree = PolicyTree(max_depth=shares.task.depth, min_samples_leaf=SMALLEST, direction="minimize", constraints=gap)
    return tree.fit(shares.X.iloc[rows], costs_of(shares.task)[rows], subgroups=shares.groups[[column]].iloc[rows])


def held_out(shares: Shares, limit: float | None, column: str, repeats: int) -> np.ndarray:
    """Decisions for everybody by trees that have not seen them, (repeats, n)."""
    decided = np.empty((repeats, len(shares.task.y)), dtype=int)
    for repetition in range(repeats):
        for learn, judge in shares.task.folds(repetition):
            tree = fitted(shares, limit, column, learn)
            decided[repetition, judge] = tree.predict(shares.X.iloc[judge])
    return decided


def share_gap(decided: np.ndarray, a: np.ndarray, b: np.ndarray):
    """Share of one group whose decision is 1 less that of another."""
    pairs = [[(d == 1)[group].mean() for group in (a, b)] for d in decided]
    parts = []
    for d, (one, other) in zip(decided, pairs, strict=True):
        hit = (d == 1).astype(float)
        influence = a * (hit - one) / a.mean() - b * (hit - other) / b.mean()
        parts.append(influence_estimate(one - other, influence))
    return repeated_estimate(parts, FOLDS)


def show_here(study, shares: Shares, column: str) -> None:
    """Price and shares of every limit, on the people who chose the trees."""
    rows = []
    for limit in LIMITS:
        study.step(f"{column} within {limit}")
        tree = fitted(shares, limit, column)
        of_groups = tree.subgroup_values_.loc[column]["share of 1"]
        price = 0.0 if limit is None else 100 * tree.price_of_limits_
        rows.append({"limit": "none" if limit is None else f"{100 * limit:g}", "cost": 100 * tree.objective_value_,
                     "costs here": price + 0.0, "proved": tree.status_.proved,
                     **{f"{shares.word}, {name}": 100 * share for name, share in of_groups.items()},
                     "asks about": ", ".join(sorted(tree.get_used_features())) or "nothing"})  # fmt: skip
    study.table(pd.DataFrame(rows), f"parity_{column}", digits=2, index=False)


def show_others(study, shares: Shares, column: str, pair: tuple[str, str]) -> None:
    """The same on people who did not choose the trees."""
    repeats = 2 if study.quick else REPEATS
    a, b = ((shares.groups[column] == name).to_numpy() for name in pair)
    free, rows = held_out(shares, None, column, repeats), []
    for limit in LIMITS:
        study.step(f"{column} within {limit}, held out")
        decided = free if limit is None else held_out(shares, limit, column, repeats)
        cost = {} if limit is None else {
            key: 100 * value for key, value in triple(shares.task.gap(decided, free), "costs others").items()
        }  # fmt: skip
        gap = {key: 100 * value for key, value in triple(share_gap(decided, a, b), "gap").items()}
        rows.append({"limit": "none" if limit is None else f"{100 * limit:g}", **gap, **cost})
    study.table(pd.DataFrame(rows), f"parity_{column}_others", digits=2, index=False)


def show(study, shares: Shares, exclusions: dict[str, tuple[str, ...]]) -> None:
    """All sections: limits by every column of groups, here and on others, and what not asking about columns costs."""
    task = shares.task
    for k, (column, pair) in enumerate(shares.pairs.items()):
        study.heading(
            f"{2 * k + 1}. Limits on differences by {column} of shares {shares.word} "
            f"(depth {task.depth}, these people, %)"
        )
        show_here(study, shares, column)
        study.heading(f"{2 * k + 2}. The same on people who did not choose the trees; gap: {pair[0]} - {pair[1]}")
        show_others(study, shares, column, pair)
    study.heading(
        f"{2 * len(shares.pairs) + 1}. Beside it: what not asking about columns costs (these people, per 100)"
    )
    asked = {"nothing": (), **exclusions}
    costs = {name: 100 * task.tree(left_out).fit(task.X, task.y).objective_value_ for name, left_out in asked.items()}
    prices = {name: cost - costs["nothing"] for name, cost in costs.items()}
    study.table(pd.Series(prices, name="costs here").to_frame(), "parity_exclusions", digits=2)
