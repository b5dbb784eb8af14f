"""
Combine several treatments
==========================

In a factorial trial everybody is randomised more than once: to a drug or not, and to physiotherapy or not. Name one
column for each treatment. Their combinations become the arms of the tree, and the table of leaves says what each
treatment does by itself.
"""

import numpy as np
import pandas as pd

from policytree import DRPolicyTree, Study, honest_leaf_summary

rng = np.random.default_rng(0)
n = 1_000
table = pd.DataFrame({"age": rng.integers(20, 80, n), "weight": rng.normal(75, 12, n).round()})
table["drug"], table["physio"] = rng.integers(0, 2, n), rng.choice(["yes", "no"], n)
old, physio = table["age"] >= 50, table["physio"] == "yes"
table["score"] = table["drug"] * np.where(old, -0.5, 1.0) + physio * np.where(old, 1.0, -0.5) + rng.normal(size=n)

# %%
# Levels that mean no are left out of the labels, and "neither" is the control. Each treatment was drawn by itself with
# a known chance; the chance of a combination is their product.

chances = {"drug": 0.5, "physio": 0.5}
study = Study(table, treatment=["drug", "physio"], outcome="score", direction="maximize", propensity=chances)
print(study)
print(study.counts())

# %%
# The tree gives combinations.

model = DRPolicyTree(max_depth=1, min_samples_leaf=50, cv=3, random_state=0).fit(study)
print(model.export_text())
print(model.predict(study.X.head(3)))

# %%
# The effect of each treatment in a leaf is the mean difference between its levels, over the combinations of the other
# treatments. Rows that chose the tree flatter it, so intervals need rows that did not: half of them judge here, and the
# intervals hold for all effects at once.

leaves = honest_leaf_summary(model, study, random_state=0).leaves
print(leaves[["effect", "effect_lower", "effect_upper"]].round(2).T)

# %%
# A combination that nobody got, or hardly anybody, is a finding of the check. The tree cannot recommend it.

apart = study.replace(table=table[(table["drug"] == 0) | ~physio], propensity=None)
print(apart.check())

# %%
# On the command line, ``policytree design trial.csv --treatment drug,physio --outcome y --propensity
# drug=0.5,physio=0.5`` does all of it; treatments of more than two levels have chances such as ``dose:low=0.3``.
