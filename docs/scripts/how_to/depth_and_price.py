"""
Choose the depth and the price of a leaf
========================================

Two numbers say how large a tree may be: ``max_depth``, and ``regularization``, the price of a leaf. You need not
guess the price: ``tree_path`` finds every tree that is the best one for some price.
"""

from sklearn.datasets import load_breast_cancer

from policytree import OptimalTreeClassifier, tree_path

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
tree = OptimalTreeClassifier(max_depth=3, max_bins=16)  # 16 values a column are enough for this page
path = tree_path(tree, X, y, min_regularization=0.004)
path.to_frame().round(4)

# %%
# Between ``low`` and ``high`` the same tree is best. ``value`` is the share of errors on these rows, which flatters
# large trees. Let other rows choose the price:

from sklearn.model_selection import GridSearchCV, StratifiedKFold

prices = [0.05, 0.02, 0.01, 0.005]
folds = StratifiedKFold(5, shuffle=True, random_state=0)
search = GridSearchCV(tree, {"regularization": prices}, cv=folds).fit(X, y)
for price, mean, spread in zip(
    prices, search.cv_results_["mean_test_score"], search.cv_results_["std_test_score"], strict=True
):
    print(f"price {price:5}: {mean:.3f} right on other rows (spread over folds {spread:.3f})")

# %%
# Prices whose scores differ by less than the spread are not told apart by so few rows: take the larger price, and so
# the smaller tree.
#
# For policies, ``max_depth="auto"``, the default, chooses: trees of depth one to three are learnt on four fifths of
# the rewards and judged on the last fifth. Without an effect nearly any tree looks better than the single leaf that
# the same folds choose, so it has to gain more than one standard error over the best treatment for all, judged on all
# rows. ``regularization="auto"`` adds a small price of a leaf, against splits that gain no more than chance.

from policytree import DRPolicyTree, PolicyTree, cross_val_policy_value, load_dataset

study = load_dataset("nsw").study()
model = DRPolicyTree(max_depth="auto", regularization="auto", min_samples_leaf=40, random_state=0).fit(study)
model.depth_choice_.table.round(2)

# %%
# Here the rows show no tree that is better than one treatment for all. The choice is part of ``fit``: held-out values,
# resamples and verdicts make it anew in every refit, and the proof holds for the depth that was chosen.
#
# To compare depths that you name, hand them to ``cross_val_policy_value(rivals=...)``: they are judged on the same
# people as the tree, so the differences have intervals.

model = DRPolicyTree(max_depth=1, min_samples_leaf=40, random_state=0)
rivals = {"depth 2": PolicyTree(max_depth=2, min_samples_leaf=40)}
table = cross_val_policy_value(model, study, rivals=rivals, n_repeats=2, random_state=0)  # two, to be quick
print(table.difference("policy tree", "depth 2"))

# %%
# A rule of thumb: depth 2 can be read aloud, depth 3 fits on a slide, and what is deeper needs a computer.
