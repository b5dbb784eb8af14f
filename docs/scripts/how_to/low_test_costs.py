"""
Trees whose tests are cheap
===========================

A question may cost money, pain or time. ``LowCostTreeClassifier`` grows trees that ask cheap questions first, for any
number of rows. The exact estimators prove the tree of least error *plus* cost, for few levels.
"""

import numpy as np
import pandas as pd

from policytree import LowCostTreeClassifier, OptimalTreeClassifier

rng = np.random.default_rng(0)  # two values of one blood sample decide; a scan says nearly the same
blood = pd.DataFrame(rng.normal(size=(1_000, 2)).round(1), columns=["bilirubin", "albumin"])
scan = (blood["bilirubin"] - blood["albumin"] + 0.3 * rng.normal(size=1_000)).round(1)
X = blood.assign(age=rng.integers(20, 80, 1_000), scan=scan)
y = np.where(blood["bilirubin"] - blood["albumin"] > 0.5, "ill", "well")
train, test = slice(0, 600), slice(600, None)

prices = {"bilirubin": 6.0, "albumin": 4.0, "scan": 80.0}  # dollars; age is known
sample = {"blood sample": ["bilirubin", "albumin"]}  # the first of them is paid for, the second comes with it
accurate = LowCostTreeClassifier.named("CART", feature_costs=prices, feature_groups=sample).fit(X[train], y[train])
cheap = LowCostTreeClassifier(prices, feature_groups=sample).fit(X[train], y[train])

# %%
# The proved tree of depth two, where a wrong answer is worth 1,000 dollars:

in_errors = {test_name: dollars / 1_000 for test_name, dollars in prices.items()}
best = OptimalTreeClassifier(
    regularization=0.001, max_depth=2, feature_costs=in_errors, repeated_features="free", feature_groups=sample
).fit(X[train], y[train])
print(best.export_text())
best.plot()

# %%
# On people who did not choose the trees:

for name, tree, dollars in (("CART", accurate, 1), ("low cost", cheap, 1), ("proved", best, 1_000)):
    right = (tree.predict(X[test]) == y[test]).mean()
    error = 1.96 * np.sqrt(right * (1 - right) / 400)
    cost = dollars * tree.measurement_cost(X[test]).mean()
    print(f"{name:8} {cost:6.2f} dollars a person, {right:.3f} right (95% interval +- {error:.3f})")

# %%
# ``constraints=[ExpectedCost(5.0)]`` in place of a price of errors: the best tree whose tests cost at most five
# dollars a person.
# ``complexity_weight`` of the low-cost tree moves between cheap and accurate;
# :func:`policytree.choose_complexity_weight` sets it.
