"""
Few positives: imbalanced classes
=================================

Where one row in twenty is positive, a tree that never says yes is 95% right. Ask for another objective. Each is
proved like accuracy.
"""

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification

from policytree import OptimalTreeClassifier

X, y = make_classification(1_500, 5, n_informative=3, n_redundant=0, weights=[0.95], class_sep=0.8, random_state=0)
X, y = pd.DataFrame(X.round(1), columns=list("abcde")), np.where(y, "ill", "well")
classes = ["well", "ill"]  # only for the table below; the larger label in sorting order is the positive one
y = pd.Series(y).map({"well": 0, "ill": 1})
train, test = slice(0, 1_000), slice(1_000, None)

rows = {}
for objective in ("accuracy", "balanced_accuracy", "f_score"):
    tree = OptimalTreeClassifier(0.002, max_depth=2, objective=objective).fit(X[train], y[train])
    said = tree.predict(X[test])
    positives = y[test] == 1
    rows[objective] = {
        "status": tree.status_.value,
        "ill people found": f"{(said[positives] == 1).sum()} of {positives.sum()}",
        "false alarms": f"{(said[~positives] == 1).sum()} of {(~positives).sum()}",
    }
pd.DataFrame(rows).T

# %%
# The last two columns are counts on rows that did not choose the trees. ``"auc"``, ``"partial_auc"``,
# ``"weighted_accuracy"`` and ``"omega_f_score"`` are there too, and objects with parameters:

from policytree.objectives import FScore, WeightedAccuracy

recall_counts_double = OptimalTreeClassifier(0.002, max_depth=2, objective=FScore(beta=2)).fit(X[train], y[train])
three_to_one = OptimalTreeClassifier(0.002, max_depth=2, objective=WeightedAccuracy(omega=3)).fit(X[train], y[train])
print(recall_counts_double.certificate())
print()
print(three_to_one.certificate())

# %%
# Any function that grows with false positives and false negatives is taken by
# :class:`policytree.objectives.MonotoneObjective`. Where mistakes have prices, :doc:`prices </tutorials/costs>` are
# clearer than any score.
