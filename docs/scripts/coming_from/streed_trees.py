"""
From STreeD
===========

The same exact search, without making columns of zeros and ones, and with a bound when it is stopped.

.. list-table::
   :header-rows: 1
   :widths: 46 54

   * - there
     - here
   * - ``STreeDClassifier(max_depth=3)``
     - ``OptimalTreeClassifier(max_depth=3, regularization=0)``
   * - ``cost_complexity=0.01`` (per split)
     - ``regularization=0.01`` (per leaf: the same trees, a constant apart)
   * - ``max_num_nodes=3``
     - ``max_leaf_nodes=4``
   * - ``continuous_binarize_strategy``, ``n_thresholds``
     - nothing: all thresholds; ``max_bins=`` for fewer
   * - ``STreeDInstanceCostSensitiveClassifier``
     - ``CostSensitiveTreeClassifier().fit(X, costs)``, ``PolicyTree().fit(X, rewards)``
   * - ``STreeDPrescriptivePolicyGenerator``
     - ``DRPolicyTree().fit(Y, T, X=X)``
   * - ``optimization_task="f1-score"``
     - ``objective="f_score"`` (:doc:`/how_to/imbalanced`)
   * - ``STreeDCostSensitiveClassifier`` (costs of tests)
     - ``feature_costs=``, ``LowCostTreeClassifier`` (:doc:`/how_to/low_test_costs`)
   * - ``time_limit``, ``fit_result.is_optimal()``
     - ``time_limit``, ``status_``, ``optimality_gap_`` (:doc:`/how_to/stopping`)

Some things differ: STreeD also has regression, survival and group fairness, which are not here. Its negative costs are
searched wrongly (1.4.0): it was given regrets in our comparison. :doc:`/comparison` has the seconds of both in one
run.

Costs per person and action, with continuous columns:
"""

import numpy as np

from policytree import CostSensitiveTreeClassifier

rng = np.random.default_rng(0)
X = rng.normal(size=(2_000, 5))
costs = np.column_stack([np.full(2_000, 0.5), (X[:, 0] < 0.3) * 1.0, (X[:, 1] > 0) * 1.0])
costs += rng.uniform(size=(2_000, 3))
tree = CostSensitiveTreeClassifier(max_depth=2).fit(X, costs)
print(tree.export_text())
print(tree.certificate())
