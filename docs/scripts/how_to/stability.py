"""
Would the tree come again?
==========================

The whole pipeline is repeated on resamples of the people: models, rewards, tree. Who gets the same treatment each
time?
"""

from sklearn.linear_model import LinearRegression

from policytree import DRPolicyTree, load_dataset
from policytree.evaluation import policy_stability

study = load_dataset("nsw").study()
model = DRPolicyTree(LinearRegression(), max_depth=2, min_samples_leaf=40, random_state=0).fit(study)
stability = policy_stability(model, study, n_resamples=20, random_state=0)
for sentence in stability.statements():
    print(sentence)
stability.plot()

# %%
# Twenty resamples show how it works; take a hundred for a paper. Rules that look different may be worth the same:
# that is what :doc:`near_ties` counts. If a person's treatment changes from sample to sample, say so to whoever
# applies the rule.
