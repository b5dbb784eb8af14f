"""Greedy trees beside proved ones: the same depth, the same tests, the same prices."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
from test_costs import data

from policytree import LowCostTreeClassifier, OptimalTreeClassifier

SMALL = (
    ("classification", "iris"), ("classification", "ilpd"), ("classification", "breast_w"), ("classification", "monk1"),
    ("classification", "balance_scale"), ("classification", "contree_bank"), ("born_again", "Pima-Diabetes"),
    ("born_again", "Seeds"),
)  # fmt: skip
DEPTH, MOST_BINS = 3, 10
PRICES = (0.001, 0.01)  # errors per person that a unit of cost is worth
# Of greedy trees, of which the best one counts.
GREEDY = tuple(
    {"complexity_weight": weight, "ccp_alpha": strength}
    for weight, strength in product((100.0, 10.0, 1.0, 0.0), (0.0, 0.003, 0.01, 0.03))
)


def show(study) -> None:
    """Error plus price * expected cost on the rows that grew the tree: what both try to make small."""
    study.heading(f"Greedy beside exact, depth {DEPTH}, costs 1 to 10 per column, a column is paid for once on a path")
    rows = []
    for folder, name in SMALL[:1] if study.quick else SMALL:
        table = data.read(folder, name, study.data_dir)
        study.step(f"exact: {table.name}")
        costs = np.random.default_rng(0).integers(1, 11, table.X.shape[1]).astype(float)
        for price in PRICES:
            rows.append({"table": table.name, "price": price, **compare(table, costs, price)})
    frame = pd.DataFrame(rows)
    study.table(frame, "exact", digits=3, index=False)
    better = (frame["greedy"] - frame["exact"]) / frame["greedy"]
    study.show(
        f"The proved objective is {better.mean():.1%} below the greedy one on average, {better.max():.1%} at most; "
        f"{int(frame['proved'].sum())} of {len(frame)} searches ended with a proof."
    )


def compare(table: data.Table, costs: np.ndarray, price: float) -> dict:
    """The best greedy tree over weights of impurity reduction, and the proved best tree."""
    shared = {"max_depth": DEPTH, "max_bins": MOST_BINS}
    found = []
    for setting in GREEDY:
        tree = LowCostTreeClassifier(costs, **setting, **shared).fit(table.X, table.y)
        error = 1 - tree.score(table.X, table.y)
        found.append((error + price * tree.expected_cost_, error, tree.expected_cost_))
    greedy = min(found)
    best = OptimalTreeClassifier(
        regularization=0.0, feature_costs=price * costs, repeated_features="free", time_limit=120, **shared
    ).fit(table.X, table.y)
    cost = best.expected_cost_ / price
    return {
        "greedy": greedy[0], "its error": greedy[1], "its cost": greedy[2],
        "exact": best.objective_value_, "error": best.objective_value_ - best.expected_cost_, "cost": cost,
        "proved": best.status_.proved, "seconds": best.solution_.seconds,
    }  # fmt: skip
