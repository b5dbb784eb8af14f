"""
From scikit-learn
=================

``DecisionTreeClassifier`` grows a tree question by question. ``OptimalTreeClassifier`` finds the best of all trees.

.. list-table::
   :header-rows: 1
   :widths: 46 54

   * - there
     - here
   * - ``DecisionTreeClassifier(max_depth=3)``
     - ``OptimalTreeClassifier(max_depth=3, regularization=0)``
   * - ``ccp_alpha=0.01``
     - ``regularization=0.01``: a price per leaf, in the objective and proved
   * - ``criterion="gini"``
     - ``objective=``: what counts in the end (errors, ``"balanced_accuracy"``, ``"f_score"``, ``"auc"``)
   * - ``class_weight="balanced"``, ``sample_weight``
     - ``class_weight="balanced"``, ``sample_weight``
   * - ``min_samples_leaf``, ``max_leaf_nodes``
     - ``min_samples_leaf``, ``max_leaf_nodes``
   * - ``GridSearchCV`` over ``ccp_alpha``
     - ``max_depth="auto"``, ``regularization="auto"``, or ``GridSearchCV`` (:doc:`/how_to/scikit_learn`)
   * - ``export_text(tree)``, ``plot_tree(tree)``
     - ``tree.export_text()``, ``tree.plot()``; also SQL and Python (:doc:`/how_to/export`)
   * - ``tree_.children_left`` and so on
     - ``tree_.children_left`` and so on; ``to_sklearn(X)`` gives scikit-learn's own tree
   * - one-hot columns for categories
     - categories as they are
   * - ``feature_importances_``
     - ``get_used_features()``, ``near_ties`` (:doc:`/how_to/near_ties`)

Some things differ: there are no importances, no regression, no ``splitter="random"``; a search can take long, and says
beforehand when (``time_limit=``). ``clone``, ``Pipeline``, ``cross_validate`` and metadata routing work as usual.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score
from sklearn.tree import DecisionTreeClassifier

from policytree import OptimalTreeClassifier

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
greedy = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
best = OptimalTreeClassifier(max_depth=2, regularization=0.0).fit(X, y)
for name, tree in [("greedy", greedy), ("best", best)]:
    errors = int((tree.predict(X) != y).sum())
    held_out = cross_val_score(tree, X, y, cv=5)
    print(f"{name}: {errors} errors on the rows that chose it; held out {held_out.mean():.3f} ({held_out.std():.3f})")
print(best.export_text())
print(best.certificate())

# %%
# Fewer errors on the rows that chose the tree are certain; fewer on others are not. The brackets are standard
# deviations over five folds.
