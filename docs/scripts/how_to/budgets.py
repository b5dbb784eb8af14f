"""
Budgets and shares
==================

There is money, or room, for some only. The tree is the best of those that keep to the limits, with the usual proof.
"""

import numpy as np
import pandas as pd

from policytree import PolicyTree, policy_value
from policytree.constraints import Budget, Share


def people(n, seed):
    """Rewards: a pill helps those at risk, a course helps all but costs more."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"risk": rng.uniform(size=n).round(2), "age": rng.integers(20, 80, size=n)})
    means = pd.DataFrame({"none": 0.0, "pill": 2 * X["risk"] - 0.5, "course": 0.8 + (X["age"] > 60)})
    return X, means + rng.normal(size=means.shape)


costs = {"pill": 1.0, "course": 3.0}  # per person, in any unit; a table with a row per person is taken too
X, rewards = people(1_000, seed=0)
tree = PolicyTree(max_depth=2, constraints=[Budget(0.8), Share("course", most=0.2)]).fit(X, rewards, budget_costs=costs)
print(tree.export_text())
print(f"spends {tree.spend_:.3f} a person; {tree.status_.value}, gap {tree.optimality_gap_:g}")

# %%
# The limits are kept exactly on the rows that chose the tree. On others they are estimates with intervals:

others, _ = people(1_000, seed=1)
chosen = tree.predict(others)
print("spends a person:", policy_value(chosen, costs))
print("share of courses:", policy_value(chosen, {"course": 1.0}))

# %%
# ``budget_path`` has a tree for every budget, and what no tree of a budget can beat:

from policytree.evaluation import budget_path

path = budget_path(PolicyTree(max_depth=2), X, rewards, budget_costs=costs)
print(f"{len(path)} trees; no tree that spends 0.8 gains more than {path.bound_at(0.8):.3f} on these rows")
path.plot()

# %%
# ``DRPolicyTree`` takes the same constraints, where the study has ``budget_costs=``, and so does the command line:
# ``--budget``, ``--budget-cost``, ``--max-share``, ``--min-share``. ``Share("course", least=0.1)`` says to how many a
# treatment must be given. Deeper than three the gap may stay open; it is reported.
