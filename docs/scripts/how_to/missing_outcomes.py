"""
Some outcomes are missing
=========================

Rows without an outcome are refused by default: in general, leaving them out is safe only if outcomes are missing
completely at random. ``missing_outcome="weight"`` keeps them. Outcomes are learnt from the rows that have one, and
residuals are divided by the probability of being seen, given the covariates and the treatment.
"""

import numpy as np
import pandas as pd

from policytree import RewardEstimator, policy_difference

rng = np.random.default_rng(0)
n = 800
X = pd.DataFrame({"severity": rng.normal(size=n), "age": rng.integers(20, 80, n)})
T = rng.choice(["drug", "placebo"], n)
score = (T == "drug") * (1.0 - 1.5 * X["severity"]) - X["severity"] + rng.normal(size=n)  # on average, the drug adds 1
lost = rng.random(n) < 1 / (1 + np.exp(1.0 - 1.5 * X["severity"] * (T == "drug")))  # ill people on the drug stay away
Y = score.mask(lost)
print(f"{Y.isna().mean():.0%} are missing")

model = RewardEstimator(random_state=0).fit(Y, T, X=X, propensity=0.5, missing_outcome="weight")
seen = Y.notna().to_numpy()
naive = Y[seen & (T == "drug")].mean() - Y[seen & (T == "placebo")].mean()
effect = policy_difference("drug", "placebo", model.rewards_)
print(
    f"those who are seen: {naive:.2f}; weighted: {effect.value:.2f} [{effect.lower:.2f}, {effect.upper:.2f}]; truth: 1"
)

# %%
# ``observation_`` is every row's probability of being seen. A row that would hardly ever be seen says little about
# others like it: probabilities below ``min_observed`` are raised to it, and counted.

print(model.observation_.describe().round(2).to_dict(), model.n_raised_)

# %%
# **What is assumed.** Among people with the same covariates and treatment, who is missing does not depend on the
# outcome (missing at random). No data can show that; put into X or W what predicts both.
#
# ``DRPolicyTree.fit``, ``cross_val_policy_value`` and the others take ``missing_outcome`` as well. A time that is not
# known to the end is censored rather than missing (:doc:`censored_outcomes`).
