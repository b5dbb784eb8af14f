"""
From an EconML estimator to a tree
==================================

Effects that EconML has estimated become rewards, and the best tree for them is found.
"""

import numpy as np
import pandas as pd
from econml.dml import LinearDML
from sklearn.linear_model import LassoCV, LogisticRegression

from policytree import PolicyTree, rewards_from

rng = np.random.default_rng(0)
X = pd.DataFrame({"risk": rng.uniform(size=1_000).round(2), "age": rng.integers(20, 80, size=1_000).astype(float)})
T = rng.choice(["none", "drug"], size=1_000)
Y = np.where(T == "drug", 2 * X["risk"] - 0.8, 0.0) + rng.normal(size=1_000)

effects = LinearDML(
    model_y=LassoCV(),
    model_t=LogisticRegression(),
    discrete_treatment=True,
    categories=["none", "drug"],
    random_state=0,
).fit(Y, T, X=X)
rewards = rewards_from(effects, X, sample_treatment_costs={"drug": 0.1})
tree = PolicyTree(max_depth=1).fit(X, rewards)
print(tree.export_text())
tree.plot()

# %%
# These are predicted effects, and they are smooth: good for finding a tree, too good for judging one. Judge it by
# doubly robust rewards of people whom neither has seen (:func:`policytree.held_out_rewards`,
# :func:`policytree.cross_val_policy_value`).
