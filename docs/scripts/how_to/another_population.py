"""
My rule is for other people than those studied
==============================================

Give the study their covariates as its ``population``. Effects are learnt in the study and averaged over these people:
doubly robust, by outcome models of the study and by the odds of being one of them. Here: what hormonal therapy adds in
a trial (GBSG), and what that says about the patients of a registry (Rotterdam).
"""

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from policytree import RewardEstimator, Study, load_dataset, policy_value
from policytree.diagnostics import target_overlap
from policytree.study import Population, TimeToEvent

trial, people = load_dataset("gbsg").frame, load_dataset("rotterdam").frame
outcome = TimeToEvent("recurrence_free_years", event="recurred_or_died", horizon=5.0)
shared = ["age", "postmenopausal", "size_class", "grade", "positive_nodes"]
study = Study(trial, treatment="therapy", outcome=outcome, direction="maximize", covariates=shared)

here = RewardEstimator(random_state=0).fit(study)
there = RewardEstimator(random_state=0).fit(study.replace(population=Population(people)))
for name, model in {"the trial": here, "Rotterdam": there}.items():
    gain = policy_value("hormone", model.rewards_, baseline="none", population=model.population_)
    print(f"{name}: {gain.value:.2f} years of 5 [{gain.lower:.2f}, {gain.upper:.2f}]")

# %%
# **Does the trial know such people?** The interval is so much wider because the trial has few of them: weighted to
# Rotterdam, its 686 rows are worth far fewer (the effective sample size, below). ``columns`` says where people are
# outside the trial's range, ``balance`` which covariates differ, before and after weighting.

table = pd.concat([trial, people], ignore_index=True)[shared]
of_trial = np.arange(len(table)) < len(trial)
overlap = target_overlap(there, table, study=of_trial)
print(overlap)
print(overlap.balance.round(2))
overlap.plot()

# %%
# **Ask for people whom the trial knows.** Rotterdam's patients have higher grades. Of those with the trial's commonest
# grade, the trial can say more:

alike = Population(people[people["grade"] == 2])
same = RewardEstimator(random_state=0).fit(study.replace(population=alike))
gain = policy_value("hormone", same.rewards_, baseline="none", population=same.population_)
print(f"Grade 2: {gain.value:.2f} [{gain.lower:.2f}, {gain.upper:.2f}]")

# %%
# **A rule for them.** ``DRPolicyTree.fit``, ``cross_val_policy_value``, ``honest_leaf_summary``, ``held_out_rewards``,
# ``heterogeneity_test`` and ``policy_stability`` take such a study too: trees, values, leaves and rankings are then
# those of the population. ``min_samples_leaf`` counts rows of both.
#
# **Survey weights** say how many people of the population every row of the study stands for:
# ``Population(weights="weight")`` names their column.
#
# **A referee asks: which effects are transported?** Those given the covariates. If something else changes them (a drug
# that is dosed otherwise, say) and differs between the two populations, the answer is off; no data of the study show
# that. :func:`policytree.evaluation.transport_sensitivity` finds how far effects may differ before a gain is gone. It
# takes the table of ``cross_val_policy_value``, or a rule for everybody where outcomes are all known:

rng = np.random.default_rng(0)
everybody = pd.DataFrame(rng.normal(size=(1500, 2)), columns=["risk", "weight"])
drug, enrolled = rng.integers(2, size=1500), np.arange(1500) < 900
everybody.loc[~enrolled, "risk"] += 0.5
everybody = everybody.assign(drug=drug, score=everybody["risk"] + 0.4 * drug + rng.normal(size=1500))
half = Study(everybody[enrolled], treatment="drug", outcome="score", propensity=0.5)
simulated = RewardEstimator(model_study=LogisticRegression(), random_state=0)
simulated.fit(half.replace(population=Population(everybody[~enrolled])))

from policytree.evaluation import transport_sensitivity

outcomes = {"Y": everybody["score"], "T": everybody["drug"], "study": enrolled}  # those of the others are not read
print(transport_sensitivity(1, 0, estimator=simulated, **outcomes))

# %%
# **Was treatment assigned by chance?** In GBSG only some patients were randomised to hormones, the others chose;
# propensities are therefore estimated. Of Rotterdam neither treatments nor outcomes were read: to whom hormones were
# given there does not matter.
