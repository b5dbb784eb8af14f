"""
Rules that people can use
=========================

A rule is applied by somebody at a desk. It can be held to what they can ask. The proof is then for the trees that are
left.
"""

from policytree import PolicyTree, RewardEstimator, load_dataset

study = load_dataset("nhefs").study()
X, rewards = study.X, RewardEstimator(random_state=0).fit_predict(study)

rule = PolicyTree(
    max_depth=3,
    direction="minimize",
    max_leaf_nodes=4,  # at most four leaves
    root_feature="age",  # the first question is known at the desk
    split_features=["age", "female", "weight", "height", "cigarettes"],  # nothing else may be asked
    feature_costs={"weight": 0.02, "height": 0.02},  # a scale takes time: kilograms, for everybody who is asked
    min_samples_leaf=50,
).fit(X, rewards)
print(rule.export_text())
rule.plot(X=X)

# %%
# The certificate says which trees were searched:

print(rule.certificate())

# %%
# A column that is kept from a rule is a confounder of the study: the models adjust for it, and the tree never sees it.
# Race is handled like this in all built-in studies.
#
# ``min_samples_per_treatment`` asks for so many people of every treatment in every leaf (hand the treatments over to
# ``fit``, too: ``fit(X, rewards, T)``).
