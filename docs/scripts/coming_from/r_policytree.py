"""
From R's policytree and grf
===========================

Scores of grf go into the same search; the best tree is the same, with a certificate.

.. list-table::
   :header-rows: 1
   :widths: 46 54

   * - there
     - here
   * - ``policy_tree(X, Gamma, depth = 2)``
     - ``PolicyTree(max_depth=2).fit(X, rewards)``
   * - ``min.node.size = 50``
     - ``min_samples_leaf=50``
   * - ``split.step = 10``
     - ``max_bins=100``: quantiles; rarely needed, since depth two takes hundredths of a second
   * - ``hybrid_policy_tree(X, Gamma, depth = 3)``
     - ``PolicyTree(max_depth=3)``: exact, with ``time_limit=`` if need be
   * - ``double_robust_scores(forest)``
     - ``RewardEstimator().fit_predict(Y, T, X=X)``
   * - ``predict(tree, X)``, ``type = "node.id"``
     - ``predict(X)`` gives labels, ``apply(X)`` gives nodes
   * - ``causal_forest``, ``multi_arm_causal_forest``
     - ``DRPolicyTree().fit(Y, T, X=X)``: any learners, ``method=`` for the scheme
   * - ``causal_survival_forest``
     - ``fit(Study(..., outcome=TimeToEvent("days", event="died")))`` (:doc:`/how_to/censored_outcomes`)
   * - ``instrumental_forest``
     - ``fit(Study(..., treatment=Offered("taken", by="offer")))`` (:doc:`/how_to/offers`)
   * - ``average_treatment_effect``
     - ``policy_value(treatment, rewards, baseline=control)``
   * - ``rank_average_treatment_effect``
     - ``rank_average_treatment_effect`` (:doc:`/how_to/whom_first`)
   * - ``test_calibration``, ``best_linear_projection``
     - ``heterogeneity_test``, ``best_linear_projection``
   * - ``clusters =``, ``sample.weights =``
     - ``groups=``, ``sample_weight=``; ``Study(..., cluster=, weights=)``

Some things differ: R's actions are numbered from one, here they have your labels. R cuts at a value of the data, here
halfway to the next one; people of the study fall on the same side. Here the tree comes with a lower bound, missing
values and categories are split on, and :func:`policytree.cross_val_policy_value` says what it is worth.

Would you rather stay in R? The folder ``r/`` of the repository is a thin R package with ``policy_tree()``'s arguments,
whose search is this one.

In R, write the covariates and the scores, as CSV or as an Arrow file:

.. code-block:: r

   forest <- grf::multi_arm_causal_forest(X, Y, W)
   scores <- policytree::double_robust_scores(forest)
   table <- cbind(as.data.frame(X), as.data.frame(scores))
   write.csv(table, "scores.csv", row.names = FALSE)
   arrow::write_feather(table, "scores.arrow")      # or this

In Python, read and fit. (Here the file is made from random numbers.)
"""

import numpy as np
import pandas as pd
import pyarrow.feather

from policytree import PolicyTree

rng = np.random.default_rng(0)
age, risk = rng.integers(20, 80, 800), rng.normal(size=800).round(1)
scores = np.column_stack([np.zeros(800), (age > 50) - 0.4, risk - 0.5]) + rng.normal(size=(800, 3))
table = pd.DataFrame({"age": age, "risk": risk}).join(pd.DataFrame(scores, columns=["none", "drug", "talk"]))
table.to_csv("scores.csv", index=False)
pyarrow.feather.write_feather(table, "scores.arrow")

X, arms = ["age", "risk"], ["none", "drug", "talk"]
table = pd.read_csv("scores.csv")
tree = PolicyTree(max_depth=2, min_samples_leaf=20).fit(table[X], table[arms])
print(tree.export_text())
print(tree.certificate())

# %%
# The Arrow file gives the same tree, to the last bit:

table = pyarrow.feather.read_table("scores.arrow")
again = PolicyTree(max_depth=2, min_samples_leaf=20).fit(table.select(X), table.select(arms))
print(again.export_text() == tree.export_text(), again.objective_value_ == tree.objective_value_)

# %%
# Scores of grf rest on forests that have seen every row, out of bag. A held-out value of the *tree* needs models that
# have not seen the people it is judged on: give outcomes and treatments to :func:`policytree.cross_val_policy_value`.
