"""
Two outcomes: harm as a limit, and the whole front
==================================================

A rule that is best by one outcome may be poor by another. In ACTG 175, a trial of four HIV treatments, CD4 cells
should be many after 20 weeks; CD8 cells fall towards normal as people recover, so that fewer are taken to be better
here.
"""

import numpy as np
from sklearn.linear_model import LinearRegression

from policytree import PolicyTree, RewardEstimator, Study, load_dataset
from policytree.constraints import Limit
from policytree.evaluation import pareto_path
from policytree.study import TimeToEvent

data = load_dataset("actg175")
frame, columns = data.frame, ["age", "wtkg", "cd40", "cd80"]
frame[columns] = frame[columns].round(-1)  # to tens: few thresholds
X = frame[columns]
chooses = np.random.default_rng(0).permutation(len(frame)) < len(frame) // 2  # the other half judges


def rewards_of(outcome, rows):
    """Doubly robust rewards (n, 4) of an outcome, by models of these rows alone."""
    study = Study(frame[rows], treatment="arm", outcome=outcome, covariates=columns, propensity=data.propensity)
    return RewardEstimator(LinearRegression(), random_state=0).fit_predict(study)


cd4, cd8 = (rewards_of(outcome, chooses) for outcome in ("cd420", "cd820"))
tree = PolicyTree(max_depth=2, min_samples_leaf=50)
path = pareto_path(tree, X[chooses], cd4, outcomes={"cd8": cd8})
print(f"{len(path)} trees of depth two or less that no other is as good as in both; proved: {path.proved}")
path.to_frame()[np.isfinite(path.low)].round(2)  # those that are best at some weight

# %%
# ``low`` and ``high``: each of these trees is the best one if a CD8 cell less is worth that many CD4 cells. Choose by
# what CD8 may be at most, or by a weight. Limits reach every tree of the front, weights only these: hollow points are
# best at no weight.

chosen = path.within(np.quantile(path.outcome_means, 0.5).round(1))
print(path.estimators[chosen].export_text())
print("by a weight of 0.1:", path.weighted(0.1) + 1, "of", len(path))

# %%
# Numbers so far are of the rows that chose the trees and flatter them. On the others:

others = {"cd8": rewards_of("cd820", ~chooses)}
held_out = path.evaluate(X[~chooses], rewards_of("cd420", ~chooses), outcomes=others)
path.plot(held_out, chosen=chosen, unit="CD4 cells")

# %%
# Every interval holds by itself: who picks the point that looks best on these people needs others again. In a
# notebook, ``path.plot().to_html()`` is a picture whose points show their tree when one points at them.
#
# **Weights are the plain alternative.** Where somebody can say that a CD8 cell is worth a tenth of a CD4 cell, no path
# is needed, and the tree may be of any depth:

one = PolicyTree(max_depth=2, min_samples_leaf=50).fit(X[chooses], cd4 - 0.1 * cd8)
on_path = (path.values - 0.1 * path.outcome_means).max()
print(f"weighted sum of the tree {one.objective_value_:.4f}, of the best one on the path {on_path:.4f}")

# %%
# **A limit known beforehand** is a constraint of the tree, which is then the best of all that keep to it. The second
# outcome may be any table of rewards: here the mean days without the trial's endpoint, of 1,000, some of them
# censored. More is better, so that the limit is the least.

days = rewards_of(TimeToEvent("days", event="cens", horizon=1000), chooses)
free = PolicyTree(max_depth=2, min_samples_leaf=50)
free.fit(X[chooses], cd4, outcomes={"days": (days, "maximize")})
least = free.outcome_means_["days"] + 5
limited = PolicyTree(max_depth=2, min_samples_leaf=50, constraints=[Limit("days", least)])
limited.fit(X[chooses], cd4, outcomes={"days": (days, "maximize")})
print(f"without a limit {free.outcome_means_['days']:.1f} days, with it {limited.outcome_means_['days']:.1f}")
print(f"which costs {limited.price_of_limits_:.2f} CD4 cells on these rows; {limited.status_.value}")

# %%
# ``DRPolicyTree`` estimates the rewards of further outcomes itself, where the study names them: ``Study(...,
# further_outcomes={"cd820": "minimize"})``. ``cross_val_policy_value`` then says on people who are held out what they
# come to, and how surely a limit is kept. The command line has ``--limit cd820=900``, ``--at-least`` and ``--also``.
# Parity between groups is ``EqualShares("gender", within=0.05)`` with ``Study(..., subgroups=["gender"])`` (``--parity
# gender=0.05``): see ``case_studies/recidivism``.
