"""
From DoubleML
=============

The scores of ``DoubleMLAPOS`` are rewards.

.. list-table::
   :header-rows: 1
   :widths: 46 54

   * - there
     - here
   * - ``DoubleMLAPOS(data, ml_g, ml_m, treatment_levels=...)``
     - ``RewardEstimator(model_regression=ml_g, model_propensity=ml_m)``
   * - ``apos.fit()`` and its scores ``psi_b``
     - ``rewards_from(apos)``: a table of rewards, averaged over ``n_rep``
   * - ``DoubleMLIRM(data, ml_g, ml_m).fit()``
     - ``rewards_from(irm)``: gains over treatment 0
   * - ``irm.policy_tree(features, depth=2)``
     - ``PolicyTree(max_depth=2).fit(X, rewards)``
   * - ``apos.causal_contrast(reference_levels=0)``
     - ``policy_value(treatment, rewards, baseline=control)``
   * - ``irm.gate(groups)``, ``irm.cate(basis)``
     - ``honest_leaf_summary``, ``best_linear_projection``
   * - ``sensitivity_analysis(cf_y, cf_d)``
     - ``omitted_variable_bounds`` (:doc:`/how_to/sensitivity`)
   * - ``n_folds``, ``n_rep``
     - ``cv``; ``n_repeats`` of :func:`policytree.cross_val_policy_value`
   * - ``DoubleMLData(..., cluster_cols=)``
     - ``groups=``, ``Study(..., cluster=)``
   * - ``DoubleMLIIVM``
     - ``fit(Study(..., treatment=Offered("taken", by="offer")))`` (:doc:`/how_to/offers`)

Some things differ: DoubleML takes the median over repetitions of sample splitting; here their scores are averaged,
since a tree needs one number per person and treatment. Scores with weights or for the treated are refused: their mean
is another estimand. DoubleML's tree is a weighted classification tree of scikit-learn, grown greedily for two
treatments; here any number of them, and exact.

With a fitted model of DoubleML it is two lines:

.. code-block:: python

   import doubleml
   import numpy as np
   from sklearn.linear_model import LinearRegression, LogisticRegression

   from policytree import PolicyTree, rewards_from

   rng = np.random.default_rng(0)
   x = rng.normal(size=(900, 2)).round(1)
   d = rng.integers(0, 3, size=900)
   y = (d == 1) * x[:, 0] + (d == 2) * x[:, 1] + rng.normal(size=900)

   data = doubleml.DoubleMLData.from_arrays(x, y, d)
   apos = doubleml.DoubleMLAPOS(data, LinearRegression(), LogisticRegression(), treatment_levels=[0, 1, 2], n_rep=2)
   apos.fit()
   rewards = rewards_from(apos)
   tree = PolicyTree(max_depth=2).fit(x, rewards)

Without DoubleML, the same scores from the same learners:
"""

import numpy as np
from sklearn.linear_model import LinearRegression, LogisticRegression

from policytree import PolicyTree, RewardEstimator

rng = np.random.default_rng(0)
x = rng.normal(size=(900, 2)).round(1)
d = rng.integers(0, 3, size=900)
y = (d == 1) * x[:, 0] + (d == 2) * x[:, 1] + rng.normal(size=900)

estimator = RewardEstimator(
    model_regression=LinearRegression(), model_propensity=LogisticRegression(), cv=5, random_state=0
)
rewards = estimator.fit_predict(y, d, X=x)
print(rewards.agg(["mean", "sem"]).round(3))  # average potential outcomes, as a DoubleMLAPOS reports them

tree = PolicyTree(max_depth=2).fit(x, rewards)
print(tree.export_text())
print(tree.certificate())
