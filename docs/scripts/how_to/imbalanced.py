"""
Few positives: imbalanced classes
=================================

Where one row in twenty is positive, a tree that never says yes is 95% right. Ask for another objective. Each is
proved like accuracy.
"""

import pandas as pd
from sklearn.datasets import make_classification
from statsmodels.stats.proportion import proportion_confint

from policytree import OptimalTreeClassifier

X, ill = make_classification(1_500, 5, n_informative=3, n_redundant=0, weights=[0.95], class_sep=0.8, random_state=0)
X = pd.DataFrame(X.round(1), columns=list("abcde"))
train, test = slice(0, 1_000), slice(1_000, None)


def share(count, total):
    """A share with its 95% interval."""
    low, high = proportion_confint(count, total, method="wilson")
    return f"{count} of {total} [{low:.0%}, {high:.0%}]"


rows = {}
for objective in ("accuracy", "balanced_accuracy", "f_score"):
    tree = OptimalTreeClassifier(regularization=0.002, max_depth=2, objective=objective).fit(X[train], ill[train])
    said, is_ill = tree.predict(X[test]) == 1, ill[test] == 1
    rows[objective] = {
        "status": tree.status_.value,
        "ill people found": share((said & is_ill).sum(), is_ill.sum()),
        "false alarms": share((said & ~is_ill).sum(), (~is_ill).sum()),
    }
pd.DataFrame(rows).T

# %%
# The last two columns are the sensitivity and one minus the specificity, of rows that did not choose the trees, with
# 95% intervals. ``"auc"``, ``"partial_auc"``,
# ``"weighted_accuracy"`` and ``"omega_f_score"`` are there too, and objects with parameters:

from policytree.objectives import FScore, WeightedAccuracy

recall_counts_double = OptimalTreeClassifier(regularization=0.002, max_depth=2, objective=FScore(beta=2)).fit(
    X[train], ill[train]
)
three_to_one = OptimalTreeClassifier(regularization=0.002, max_depth=2, objective=WeightedAccuracy(omega=3)).fit(
    X[train], ill[train]
)
recall_counts_double.plot(title="Recall counts double")
print(recall_counts_double.certificate())
print()
print(three_to_one.certificate())

# %%
# Any function that grows with false positives and false negatives is taken by
# :class:`policytree.objectives.MonotoneObjective`. Where mistakes have prices, :doc:`prices </tutorials/costs>` are
# clearer than any score.
