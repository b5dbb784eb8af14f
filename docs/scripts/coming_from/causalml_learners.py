"""
From CausalML
=============

A metalearner's effects become rewards; its uplift curve becomes a Qini curve with an interval.

.. list-table::
   :header-rows: 1
   :widths: 46 54

   * - there
     - here
   * - ``BaseTRegressor``, ``BaseXRegressor``, ..., fitted
     - ``rewards_from(learner, X)``: the column of ``control_name`` is zero
   * - ``BaseDRRegressor(control_name="none")``
     - ``DRPolicyTree()``, ``RewardEstimator()``: scores, cross-fitted
   * - ``UpliftTreeClassifier``, ``UpliftRandomForestClassifier``
     - ``PolicyTree``, ``DRPolicyTree``: the value is maximised, not a distance between arms
   * - ``PolicyLearner``
     - ``DRPolicyTree().fit(Y, T, X=X)``
   * - ``CounterfactualValueEstimator``, unit costs
     - ``Study(..., arm_costs=)``, ``Budget`` (:doc:`/how_to/budgets`)
   * - ``plot_qini``, ``qini_score``, ``auuc_score``
     - ``qini_curve``, ``rank_average_treatment_effect`` (:doc:`/how_to/whom_first`)
   * - ``ElasticNetPropensityModel``
     - ``model_propensity=``
   * - ``SensitivityAnalysis``
     - ``marginal_sensitivity``, ``omitted_variable_bounds``

Some things differ: treatments may have any labels, and the reference is named by ``Study(..., control=)``. Curves are
computed from held-out doubly robust rewards, so that they hold in observational data too, and have intervals.

With a fitted metalearner:

.. code-block:: python

   import numpy as np
   import pandas as pd
   from causalml.inference.meta import BaseTRegressor
   from sklearn.linear_model import LinearRegression

   from policytree import PolicyTree, rewards_from

   rng = np.random.default_rng(0)
   X = pd.DataFrame({"visits": rng.integers(0, 20, 900), "tenure": rng.integers(0, 60, 900)})
   T = rng.choice(["none", "mail", "call"], size=900)
   Y = (T == "mail") * (X["visits"] > 8) + (T == "call") * (X["tenure"] > 30) * 1.2 + rng.normal(size=900)

   learner = BaseTRegressor(LinearRegression(), control_name="none")
   learner.fit(X=X, treatment=T, y=Y)
   rewards = rewards_from(learner, X, sample_treatment_costs={"call": 0.4})
   tree = PolicyTree(max_depth=2).fit(X, rewards)

The same study from outcomes, with doubly robust rewards in the place of a metalearner's effects:
"""

import numpy as np
import pandas as pd

from policytree import DRPolicyTree, Study, cross_val_policy_value

rng = np.random.default_rng(0)
X = pd.DataFrame({"visits": rng.integers(0, 20, 900), "tenure": rng.integers(0, 60, 900)})
T = rng.choice(["none", "mail", "call"], size=900)
Y = (T == "mail") * (X["visits"] > 8) + (T == "call") * (X["tenure"] > 30) * 1.2 + rng.normal(size=900)

study = Study(
    X.assign(contact=T, spent=Y), treatment="contact", outcome="spent", direction="maximize",
    propensity=dict.fromkeys(["none", "mail", "call"], 1 / 3), control="none", arm_costs={"call": 0.4},
)  # fmt: skip
model = DRPolicyTree(max_depth=2, min_samples_leaf=30, random_state=0).fit(study)
print(model.export_text())
print(cross_val_policy_value(model, study, cv=3, n_repeats=2, random_state=0))
