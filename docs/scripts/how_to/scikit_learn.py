"""
Use scikit-learn's pipelines and cross-validation
=================================================

Every estimator takes scikit-learn's order of arguments, ``fit(X, y)``. Metadata routing passes on what else is needed,
such as the treatments of ``DRPolicyTree``.
"""

import sklearn

sklearn.set_config(enable_metadata_routing=True)

# %%
# ``DRPolicyTree.fit`` has two orders: EconML's, ``fit(Y, T, X=X)``, and scikit-learn's, ``fit(X, Y, T=T)``. Two
# arguments by position are ``X`` and ``Y`` if ``T`` has a name. Treatments are always passed on; everything else is
# passed on to ``fit`` and to ``score`` where the estimator requests it.

from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression

from policytree import DRPolicyTree, load_dataset

data = load_dataset("nsw")  # a trial of job training; earnings in dollars a year
X, W, T, Y = (data.frame[columns] for columns in ([*data.covariates], [*data.confounders], "treat", "re78"))
coin = DummyClassifier(strategy="prior")  # everybody had the same chances: the shares of the treatments
tree = DRPolicyTree(LinearRegression(), coin, min_samples_leaf=40, random_state=0)
tree = tree.set_fit_request(W=True).set_score_request(W=True)  # confounders that the tree may not split on

# %%
# Choose the depth
# ----------------
#
# ``score`` is the doubly robust value on rows that the fit did not see: the mean reward of what the tree gives them, by
# the nuisance models of the fit. Greater is better: with ``direction="minimize"`` the score is the *negative* value.

from sklearn.model_selection import GridSearchCV, KFold

folds = KFold(5, shuffle=True, random_state=0)
search = GridSearchCV(tree, {"max_depth": [0, 1, 2]}, cv=folds).fit(X, Y, T=T, W=W)
for depth in range(3):
    scores = [search.cv_results_[f"split{fold}_test_score"][depth] for fold in range(5)]
    print(f"depth {depth}:", " ".join(f"{score:6,.0f}" for score in scores), "dollars in the five folds")

# %%
# Folds differ by more than depths do, and the best of several scores is too good. Let ``cross_val_policy_value`` say
# what the chosen rule is worth, with an interval: :doc:`depth_and_price`.
#
# Choose how rewards are estimated
# --------------------------------
#
# ``rewards=`` takes all settings of the rewards as one object, instead of ``model_regression``, ``model_propensity``,
# ``min_propensity`` and ``cv``. Searches reach into it::
#
#     rewards = RewardEstimator(LinearRegression(), LogisticRegression(), n_repeats=3)
#     tree = DRPolicyTree(rewards=rewards, max_depth=1, random_state=0)
#     GridSearchCV(tree, {"rewards__min_propensity": [0.01, 0.05]}, cv=folds).fit(X, Y, T=T)
#
# People in clusters
# ------------------
#
# ``groups`` go to the splitter, which keeps clusters together, and to the estimator, which then keeps them together in
# its own folds::
#
#     tree.set_fit_request(groups=True).set_score_request(groups=True)
#     GridSearchCV(tree, {"max_depth": [0, 1, 2]}, cv=GroupKFold(5)).fit(X, Y, T=T, groups=family)
#
# ``propensity`` and ``sample_weight`` are requested in the same way. Arrays and frames with a row for every person are
# split with the rows; mappings by treatment are passed on whole. Costs, times to an
# event, offers and strata, which only a study says, have no place in such a search:
# :func:`policytree.cross_val_policy_value` takes the study.
#
# In a pipeline
# -------------
#
# Transformers that return data frames keep the names of columns. Text and missing values need none:
# :doc:`missing_and_categories`.

from sklearn.compose import make_column_transformer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer

ages = make_column_transformer(
    (KBinsDiscretizer(6, encode="ordinal", strategy="uniform"), ["age"]),
    remainder="passthrough",
    verbose_feature_names_out=False,
).set_output(transform="pandas")
pipe = make_pipeline(ages, tree.set_params(max_depth=1))
print(pipe.fit(X, Y, T=T, W=W)[-1].export_text())

# %%
# A search or a cross-validation *around* a pipeline needs scikit-learn 1.8: older ones pass nothing on to a pipeline's
# ``score``. *Inside* a pipeline, ``make_pipeline(ages, GridSearchCV(...))``, a search runs with any version.

print(cross_val_score(pipe, X, Y, cv=folds, params={"T": T, "W": W}).round())

# %%
# Rewards first
# -------------
#
# Every candidate above fits its nuisance models anew. To choose a tree, it is often enough to estimate the rewards
# once: they are cross-fitted, and to ``PolicyTree`` they are the target. Do not report these scores as values: the
# models behind the rewards of one fold saw the outcomes of the others.

from policytree import PolicyTree, RewardEstimator

rewards = RewardEstimator(LinearRegression(), coin, random_state=0).fit_predict(X, Y, T=T, W=W)
quick = PolicyTree(min_samples_leaf=40)
search = GridSearchCV(quick, {"max_depth": [0, 1, 2]}, cv=folds).fit(X, rewards)
print(search.cv_results_["mean_test_score"].round())

# %%
# Without routing
# ---------------
#
# A pipeline can be fitted by scikit-learn's older way, the name of the step before the argument. Scores need routing.

sklearn.set_config(enable_metadata_routing=False)
pipe.fit(X, Y, drpolicytree__T=T, drpolicytree__W=W)
