"""
My outcome is a time, and some are censored
===========================================

The outcome of such a study is a ``TimeToEvent``: which times ended with the event (``event``, 1 or 0), and up to which
time you ask (``horizon``). A reward is then the mean time without the event up to the horizon: the restricted mean
survival time (RMST), in the unit of the time.
"""

from policytree import PolicyTree, RewardEstimator, Study, load_dataset, policy_value
from policytree.study import TimeToEvent

frame = load_dataset("colon").frame  # two drugs, one, or neither; years to death
study = Study(
    frame,
    treatment="arm",
    outcome=TimeToEvent("years_to_death", event="died", horizon=5.0),
    direction="maximize",
    covariates=["age", "obstruction", "positive_nodes", "extent"],
)

model = RewardEstimator(random_state=0).fit(study)
print(model.rewards_.mean().round(2).to_dict())
gain = policy_value("Lev+5FU", model.rewards_, baseline="Obs")
print(f"Both drugs bring {gain.value:.2f} years of {model.horizon_:g} [{gain.lower:.2f}, {gain.upper:.2f}].")
study.plot_survival(xlabel="years")

# %%
# Times taken as they are would be wrong: whoever was censored lived on. To keep only those whose time is known is no
# remedy, since people who live long are censored more often. Everything that takes rewards goes on as usual:

tree = PolicyTree(max_depth=2, min_samples_per_treatment=40).fit(study.X, model.rewards_, frame["arm"])
print(tree.export_text())

# %%
# The same study goes to ``DRPolicyTree.fit``, ``cross_val_policy_value``, ``held_out_rewards``,
# ``honest_leaf_summary``, ``heterogeneity_test`` and ``policy_stability``. A structured array of times and events, as
# scikit-survival's ``Surv`` makes them, may be ``Y`` in ``fit(Y, T, X=X)``.
#
# **Other measures.** ``measure="survival"`` asks for the probability of no event up to the horizon. Where an event of
# another kind can come first, name the one that counts: rewards are then years lost to it, or, by
# ``measure="cumulative_incidence"``, its probability. Of either, less is better.

recurrence = TimeToEvent("years_to_recurrence_or_death", event="first_event", cause=1, horizon=5.0)
lost = RewardEstimator(random_state=0).fit(study.replace(outcome=recurrence, direction="minimize"))
print(lost.target_, lost.rewards_.mean().round(2).to_dict())

# %%
# **Assumptions.** Among people with the same covariates and confounders and the same treatment, who is censored
# does not depend on when the event would have come (conditionally independent censoring). Name whatever drives both
# as either. Of the model of events and that of censoring, one has to be right. ``model.n_raised_`` counts people
# whose chance to be followed was so small that it was raised to ``min_observed``: if they are many, choose an earlier
# horizon.
#
# **Without a horizon** it is the last time at which a tenth of every treatment's rows is still followed, or 95 % of
# their outcomes are known (``model.horizon_``). A horizon is refused to which hardly anybody of an arm was followed,
# unless nearly all outcomes are known by then, and so are treatments without an event before it.
print(model.n_raised_)
