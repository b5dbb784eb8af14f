"""
Would a hidden confounder undo it?
==================================

No data can show that nothing is hidden. But one can say how strong a hidden confounder would have to be. This page does
it for a rule that was learnt; the :doc:`tutorial </tutorials/observational>` does it for an average effect.
"""

from sklearn.linear_model import LinearRegression

from policytree import DRPolicyTree, cross_val_policy_value, load_dataset
from policytree.evaluation import marginal_sensitivity

study = load_dataset("nsw").study()
model = DRPolicyTree(LinearRegression(), max_depth=2, min_samples_per_treatment=20, random_state=0).fit(study)
table = cross_val_policy_value(model, study, n_repeats=2, random_state=0)  # two, to be quick
print(table.difference("policy tree", "always control"))

# %%
# Hand over the whole table, not one of its rules: then the bounds are of the people who did not choose the rule, and
# the intervals know that the folds share rows. ``Gamma`` is how many times larger the odds of training may be for
# somebody because of what is hidden. At Gamma = 1 the bounds are the value once more, but with intervals of another
# kind (a bootstrap of the held-out rows), which need not hold zero where the table's do.

nuisances = model.reward_estimator_
bounds = marginal_sensitivity(
    table,
    study.table["re78"],
    study.table["treat"],
    propensity=nuisances.propensity_,
    regression=nuisances.regression_,
    baseline="control",
    gammas=(1.0, 1.25, 1.5, 2.0),
    random_state=0,
)
for sentence in bounds.statements():
    print(sentence)
bounds.plot()

# %%
# (This was an experiment, so nothing *should* be hidden. In an observational study, compare Gamma with how strongly
# the covariates that you do have move the odds: :func:`policytree.evaluation.omitted_variable_bounds` makes that
# comparison.)
