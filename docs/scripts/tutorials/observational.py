"""
An observational study: what if nobody was randomised?
======================================================

1,566 American smokers were weighed in 1971 and in 1982; 403 of them quit in between. How much weight does quitting add,
and is there somebody to whom it adds more? People chose for themselves. So two questions come before any tree, and one
after it:

1. Could everybody have done either? (overlap)
2. Do the two groups look alike once they are weighted? (balance)
3. What if something that nobody measured drove both the choice and the outcome? (sensitivity)

The data come with the package causaldata. Nothing here is a reason to keep smoking: fear of gaining weight keeps
people from quitting, and that is why it is looked at.
"""

# %%
# Only what was known before the choice
# -------------------------------------
# Covariates must be measured before the decision. ``study.check()`` looks for columns that know too much. If the weight
# of 1982 slipped in, it would say so: together with the weight of 1971 it *is* the outcome.

import pandas as pd

from policytree import DRPolicyTree, RewardEstimator, load_dataset

smokers = load_dataset("nhefs")
study = smokers.study(control="smoke on")  # a table, and which columns are what; less weight is better
Y, T, X, W = study.table[smokers.outcome], study.table[smokers.treatment], study.X, study.W

print(study.check())
print()
later = study.table.assign(weight_1982=X["weight"] + Y)
print(study.replace(table=later, covariates=[*study.covariates, "weight_1982"]).check())

# %%
# Rewards
# -------
# For every person and both choices: what would be the change of weight? Two models are learnt, each without the
# people it is used for (cross-fitting): one for the choice, one for the change of weight. One of them may be wrong,
# and averages are still right; that is what "doubly robust" means.

rewards = RewardEstimator(random_state=0).fit(study)
rewards.rewards_.head().round(1)

# %%
# Could everybody have done either?
# ---------------------------------

from policytree.diagnostics import overlap_table

rewards.plot_overlap(T)

# %%
overlap_table(rewards.propensity_, T).T.round(2)

# %%
# Nobody's estimated chance of either choice is near zero. Where it is, the library warns: rewards there lean on the
# outcome model alone. ``effective_rows`` says how many people the weighted group is worth.
#
# Do the groups look alike?
# -------------------------

covariates = pd.concat([X, W], axis=1)
rewards.plot_balance(T, covariates)

# %%
# Before weighting, those who quit were older and smoked less. After weighting no difference is larger than a tenth of
# a standard deviation, which is the usual limit.
#
# How much does quitting add?
# ---------------------------

from scipy.stats import ttest_ind

from policytree import heterogeneity_test, policy_value

raw = ttest_ind(Y[T == "quit"], Y[T == "smoke on"], equal_var=False).confidence_interval()
effect = policy_value("quit", rewards.rewards_, baseline="smoke on")
print(f"without adjustment {(raw.low + raw.high) / 2:.2f} kg, 95% interval [{raw.low:.2f}, {raw.high:.2f}]")
print(f"adjusted           {effect.value:.2f} kg, 95% interval [{effect.lower:.2f}, {effect.upper:.2f}]")
print(heterogeneity_test(study, fitted=rewards, random_state=0))

# %%
# The adjusted estimate is the larger one; the two intervals overlap. There is no
# sign that quitting adds more to some people than to others. An honest study could stop here. The rest shows what
# happens if one does not.
#
# A tree all the same
# -------------------
# Say that help with weight undoes what quitting adds, and that a place in the course is worth 3.5 kg (both are
# assumptions). Whom should the course be offered? Charging 3.5 kg to "smoke on" makes it stand for "quit with help".
# Every leaf holds at least 40 people of both kinds.

from policytree import cross_val_policy_value

priced = study.replace(arm_costs={"smoke on": 3.5})
model = DRPolicyTree(max_depth=2, min_samples_per_treatment=40, random_state=0).fit(priced)
print(model.export_text())
print(model.status_, model.optimality_gap_)

# %%
# The tree looks plausible, and it is proved to be the best of its size *on these people*. What is it worth on others?

table = cross_val_policy_value(model, priced, n_repeats=2, random_state=0)  # two, to be quick
print(table)

# %%
# The tree is not shown to be better than treating everybody alike. This agrees with the test above.
#
# What if something was not measured?
# -----------------------------------
# Suppose that a hidden trait made some people more likely to quit, by odds that are Gamma times as large, and that
# the same people put on more weight. How large must Gamma be to undo that quitting adds weight at all?

from policytree.evaluation import marginal_sensitivity

fitted = {"propensity": rewards.propensity_, "regression": rewards.regression_, "baseline": "smoke on"}
bounds = marginal_sensitivity("quit", Y, T, **fitted, random_state=0)
for sentence in bounds.statements():
    print(sentence)
bounds.plot()

# %%
# Another way to ask: how much of the outcome and of the choice must an unmeasured variable explain? Variables that
# you do have are the measure. Each is left out in turn, and everything is learnt again.

from policytree.evaluation import nuisances_without, omitted_variable_bounds

without = nuisances_without(
    rewards, study, covariates={"age": ["age"], "smoking": ["cigarettes", "years_smoked"], "weight": ["weight"]}
)
omitted = omitted_variable_bounds("quit", Y, T, benchmarks=without, **fitted, random_state=0)
for sentence in omitted.statements():
    print(sentence)

# %%
# Conclusions to write down
# -------------------------
# Quitting adds some three kilograms, with the interval above. No rule that tells people apart is supported. The first
# conclusion survives hidden confounding up to the Gamma above, and not beyond.
#
# Next: :doc:`costs` puts prices on treatments, mistakes and questions. :doc:`/how_to/sensitivity` does the same for a
# rule that was learnt. The full study, with pictures and rankings, is ``case_studies/nhefs`` in the repository.
