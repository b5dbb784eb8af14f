"""
Take the rule that is surest
============================

The best tree is the luckiest of many that are nearly as good. ``surest_rule`` lets some rows learn near-ties and judges
them on the others: the one whose gain has the largest lower bound is the surest.
"""

from policytree import DRPolicyTree, load_dataset
from policytree.evaluation import surest_rule

study = load_dataset("nsw").study(control="control")
model = DRPolicyTree(max_depth=2, min_samples_leaf=20, random_state=0)
found = surest_rule(model, study, epsilon=0.1, random_state=0)
print(found)

# %%
# The bounds of all candidates hold together: the surest one was chosen for its bound, and keeps it. One treatment for
# everybody is among the candidates, and so is the control, whose gain is zero for sure. Where nothing is shown to gain
# anything, the control stays the surest.

print(found.candidates.loc[["always control", "always training", found.largest.name], ["gain", "lower"]].round(0))

# %%
# Without ``control``, gains are over the best single treatment, whichever it is. This is much to ask of so few people.

print(surest_rule(model, study.replace(control=None), epsilon=0.1, random_state=0).statements()[0])

# %%
# It is a tree like any other.

found.tree.plot(title="The surest rule")
