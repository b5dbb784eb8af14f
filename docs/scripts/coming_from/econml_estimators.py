"""
From EconML
===========

Keep your estimator; replace the tree that is grown greedily, and judge it on people it has not seen.

.. list-table::
   :header-rows: 1
   :widths: 46 54

   * - there
     - here
   * - ``policy.PolicyTree(max_depth=2).fit(X, Gamma)``
     - ``PolicyTree(max_depth=2).fit(X, rewards)``: the best tree, with a proof
   * - ``policy.DRPolicyTree().fit(Y, T, X=X, W=W)``
     - ``DRPolicyTree().fit(Y, T, X=X, W=W)``: the same order of arguments
   * - ``min_samples_leaf``, ``min_propensity``, ``categories``
     - ``min_samples_leaf``, ``min_propensity``, ``Study(..., control=)``
   * - ``const_marginal_effect(X)``
     - ``rewards_from(estimator, X)``: smooth effects, of any rows
   * - ``DRLearner``, ``CausalForestDML``, with ``cache_values=True``
     - ``rewards_from(estimator)``: doubly robust scores of the rows fitted on
   * - ``SingleTreePolicyInterpreter``
     - ``PolicyTree().fit(X, rewards_from(estimator, X))``
   * - ``sample_treatment_costs=``
     - ``PolicyTree.fit(..., sample_treatment_costs=)``, ``Study(..., arm_costs=)``
   * - ``policy_value``, ``score``
     - ``cross_val_policy_value``: held out, with intervals

Some things differ: the minimum balancedness, honest splitting and feature importances of EconML's trees have no
counterpart; effects and their intervals are EconML's business (:func:`policytree.weighting.cate_effects` keeps them).

A forest that EconML has fitted holds scores; the tree is searched on them, and nothing is fitted twice:
"""

import warnings

import numpy as np
import pandas as pd
from econml.dml import CausalForestDML
from sklearn.linear_model import LassoCV, LogisticRegression

from policytree import DRPolicyTree, PolicyTree, cross_val_policy_value, rewards_from

rng = np.random.default_rng(0)
X = pd.DataFrame({"risk": rng.uniform(size=800).round(2), "age": rng.integers(20, 80, size=800).astype(float)})
T = rng.choice(["none", "drug"], size=800)
Y = np.where(T == "drug", 2 * X["risk"] - 0.8, 0.0) + rng.normal(size=800)

forest = CausalForestDML(
    model_y=LassoCV(),
    model_t=LogisticRegression(),
    discrete_treatment=True,
    categories=["none", "drug"],
    n_estimators=200,
    random_state=0,
)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # EconML's own use of scikit-learn
    forest.fit(Y, T, X=X, cache_values=True)

rewards = rewards_from(forest)
tree = PolicyTree(max_depth=1, min_samples_leaf=40).fit(X, rewards)
print(tree.export_text())
print(
    rewards["drug"].mean().round(3),
    "is the mean effect, with a standard error of",
    (rewards["drug"].std() / 800**0.5).round(3),
)

# %%
# The value of that tree on its own rows is flattered. Ask what learning such a tree is worth:

model = DRPolicyTree(max_depth=1, min_samples_leaf=40, direction="maximize", random_state=0)
table = cross_val_policy_value(model, Y, T, X=X, cv=3, n_repeats=2, propensity=0.5, random_state=0)
print(table)
