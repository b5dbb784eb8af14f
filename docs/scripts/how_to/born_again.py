"""
The one tree that is the forest
===============================

You trust a forest and must explain it. A born-again tree predicts what the forest predicts, everywhere, and is proved
to be the smallest such tree.
"""

from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

from policytree import BornAgainTree

X, y = load_iris(return_X_y=True, as_frame=True)
forest = RandomForestClassifier(5, max_depth=2, random_state=0).fit(X, y)
tree = BornAgainTree(forest, objective="leaves").fit()
print(f"{tree.get_n_leaves()} leaves, depth {tree.get_depth()}: {tree.status_.value}")
print(tree.check_faithfulness())  # every cell of the space, by a routine that knows nothing of the search

# %%
# Faithful trees are large where the forest is complicated on combinations that no row has. ``prune=True`` gives up
# what no row reaches, and says how much of the space that changes.

pruned = BornAgainTree(forest, prune=True).fit(X)
print(pruned.pruning_)
pruned.plot()

# %%
# Random forests, extra trees, bagging, gradient boosting (exact and by histograms) and arrays
# (:meth:`policytree.born_again.TreeEnsemble.from_arrays`) are read. Where a proof takes too long, a faithful greedy
# tree and its bounds are returned.

# %%
# A forest of many trees may need only some of them. :func:`policytree.born_again.prune_ensemble` leaves out trees, and
# gives whole weights to the others, such that the votes decide alike at every point (every tree has one vote:
# ``voting="hard"``).

from policytree.born_again import prune_ensemble

fewer = prune_ensemble(RandomForestClassifier(10, max_depth=1, random_state=0).fit(X, y))
print(fewer)
print(fewer.weights)
