"""
Count the trees that do as well
===============================

A proof says that no tree is better. It does not say that no other is as good. ``near_ties`` counts all trees within a
slack of the best one, and lists the best of them.
"""

from policytree import DRPolicyTree, load_dataset
from policytree.evaluation import near_ties

study = load_dataset("nsw").study()
model = DRPolicyTree(max_depth=2, min_samples_leaf=30, random_state=0).fit(study)
print(model.export_text())

# %%
# Which difference would nobody care about? Here 50 dollars a man.

found = near_ties(model, study.X, slack=50.0, without=["age", ["re74", "re75"]])
print(found)

# %%
# All of this is about the rows that chose the trees: how many rules look as good on them, whom all of these rules
# treat alike, and what doing without a column costs, which is proved. Whether another rule does as well on *other*
# people is what :func:`policytree.cross_val_policy_value` asks, and whether the tree would come again what
# :doc:`stability` asks.

found.plot()

# %%
# Among rules that are equally good, take the one that is easiest to apply:


found.simplest.plot(title="The simplest of them")
