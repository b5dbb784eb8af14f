"""
Some outcomes are missing
=========================

Rows without an outcome are refused by default: in general, leaving them out is safe only if outcomes are missing
completely at random. An outcome that is said to be ``MayBeMissing`` keeps them. Outcomes are learnt from the rows
that have one, and residuals are divided by the probability of being seen, given the covariates and the treatment.
"""

import numpy as np
import pandas as pd

from policytree import RewardEstimator, Study, policy_value
from policytree.study import MayBeMissing

rng = np.random.default_rng(0)
n = 800
table = pd.DataFrame({"severity": rng.normal(size=n), "age": rng.integers(20, 80, n)})
table["arm"] = rng.choice(["drug", "placebo"], n)
severity, drug = table["severity"], table["arm"] == "drug"
score = drug * (1.0 - 1.5 * severity) - severity + rng.normal(size=n)  # on average, the drug adds 1
lost = rng.random(n) < 1 / (1 + np.exp(1.0 - 1.5 * severity * drug))  # ill people on the drug stay away
table["score"] = score.mask(lost)
print(f"{lost.mean():.0%} are missing")

study = Study(table, treatment="arm", outcome=MayBeMissing("score"), direction="maximize", propensity=0.5)
model = RewardEstimator(random_state=0).fit(study)
means = table.groupby("arm")["score"].mean()  # of those who are seen
naive = means["drug"] - means["placebo"]
effect = policy_value("drug", model.rewards_, baseline="placebo")
print(
    f"those who are seen: {naive:.2f}; weighted: {effect.value:.2f} [{effect.lower:.2f}, {effect.upper:.2f}]; truth: 1"
)

# %%
# ``observation_`` is every row's probability of being seen. A row that would hardly ever be seen says little about
# others like it: probabilities below ``min_observed`` are raised to it, and counted.

print(model.observation_.describe().round(2).to_dict(), model.n_raised_)

# %%
# **Assumption.** Among people with the same covariates and treatment, who is missing does not depend on the
# outcome (missing at random). No data can show that; name what predicts both as a covariate or a confounder.
#
# ``DRPolicyTree.fit``, ``cross_val_policy_value`` and the others take the same study. A time that is not
# known to the end is censored rather than missing (:doc:`censored_outcomes`).
