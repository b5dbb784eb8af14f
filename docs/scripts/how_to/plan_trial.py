"""
Plan a trial of a rule
======================

Values by rewards rest on models, or on a trial that had another purpose. A trial of the rule itself rests on neither:
half of the people are treated by it, and half as is usual. ``plan_trial`` says how large such a trial has to be.
"""

from policytree import DRPolicyTree, cross_val_policy_value, load_dataset
from policytree.evaluation import plan_trial

study = load_dataset("nsw").study(control="control")
model = DRPolicyTree(max_depth=2, min_samples_leaf=20, random_state=0)
values = cross_val_policy_value(model, study, random_state=0)
plan = plan_trial(values)
print(plan)

# %%
# People whom the rule treats as usual anyway add noise and no difference. The rule says beforehand who they are, so
# that only the others need to be randomised.

print(plan.designs[["per_arm", "screened", "difference", "assurance"]].round(2))

# %%
# **assurance** is the power, averaged over what the gain may truly be: a size that is planned by an estimate gives less
# power than it says, since estimates may be too large. More people raise it, and so does another study.

print(plan_trial(values, power=0.9).designs[["per_arm", "assurance"]].round(2))

# %%
# A rule that is no better on held-out rows is refused: no trial is large enough to show what is not there.

from policytree.exceptions import InputError

try:
    plan_trial(values, against=values.against_best.best)
except InputError as error:
    print(error)
