"""
A trial: who should get which treatment?
========================================

Families were randomised to one of five insurance plans: the RAND Health Insurance Experiment, 1974-82. Which plan,
for whom, keeps visits to the doctor low? This is the study of the first page, step by step: ``policytree design
--dataset rand-hie --max-depth 3`` does all of it in one go. The data come with the package statsmodels.

The steps are the same for every trial:

1. look at the data;
2. look at the best tree, and at its proof;
3. compare the treatments, and know what moves a raw mean;
4. ask what a rule would be worth on people that it has not seen;
5. look at the people in its leaves;
6. hand over a report.
"""

# %%
# The data -------- One row is a person's year. The outcome are the visits, the treatment is the plan. *Covariates*
# are what a rule may ask about. *Confounders* are for adjustment only: the site, within which families were
# randomised, and race, which a rule shall not look at. Households are *clusters*, for they were randomised as a whole
# and their members are alike.
#
# Nobody in Seattle could get the 50% plan. Its effect on people who cannot get it is not in the data, so
# ``load_dataset`` leaves Seattle out.

import pandas as pd

from policytree import DRPolicyTree, load_dataset, policy_value

study = load_dataset("rand-hie").study()
print(study)

# %%
# Before anything is fitted: does a covariate know the outcome, is there an id among the columns, are numbers stored as
# text? It takes a second, and finds what no method would tell you.

print(study.check())

# %%
# Rewards, and the best tree
# --------------------------
# ``fit`` makes a reward of every person and plan: what a model of visits expects, mended by what was really seen,
# weighted by how seldom people like this one get the plan (doubly robust, :doc:`/guide`). Then it searches for the
# tree of depth three whose mean reward is best. A leaf has at least 162 rows (one in a hundred) and 8 of every plan;
# these are the defaults.

model = DRPolicyTree(max_depth=3, random_state=0).fit(study)
model

# %%
# "Optimal" means: among all trees of this size, over all these splits, none is better on these rows. It does not mean
# that the tree is better than no tree; that comes below. A leaf's value may even be below zero: it is a mean of
# weighted rewards, chosen because it was low.
#
# From a raw mean to an adjusted one
# ----------------------------------
# First the plans themselves. The raw mean of a plan is the mean visits of those who had it. Why not compare these?
# Because sites differ in visits, and plans were not given in equal shares at every site:

visits, plan, site = (study.table[column] for column in ("visits", "plan", "site"))
share = pd.crosstab(site, plan, normalize="index")
pd.concat([visits.groupby(site).mean().rename("mean visits"), share], axis=1).round(2)

# %%
# In Dayton people see a doctor most, and half of all rows with the 50% plan are from there; the deductible was mostly
# given elsewhere. So the raw mean of the 50% plan is too high, that of the deductible too low. Two steps mend it:
#
# 1. **by site**: every row counts with one over the plan's share at its site, as if plans had been given in equal
#    shares everywhere. This is the design of the trial, and needs no model.
# 2. **adjusted**: the doubly robust mean also takes out what chance left: households of a plan that are a little
#    older, or sicker. This is the value of "always" that plan.

weight = 1.0 / pd.Series([share.loc[pair] for pair in zip(site, plan, strict=True)], index=plan.index)
by_site = (weight * visits).groupby(plan).sum() / weight.groupby(plan).sum()
steps = pd.DataFrame({"raw": visits.groupby(plan).mean(), "by site": by_site})
adjusted = {each: policy_value(each, model.rewards_, groups=study.table["household"]) for each in steps.index}
steps["adjusted"] = pd.Series({each: found.value for each, found in adjusted.items()})
steps["standard error"] = pd.Series({each: found.standard_error for each, found in adjusted.items()})
steps.round(2)

# %%
# By raw means the 50% plan is like the 25% plan; adjusted, it is close to the deductible. No order among these is
# shown: look at the standard errors, which are clustered by household (by person they would be too
# small).
#
# These are values of rules that were fixed beforehand, so their intervals hold on all rows. A tree is another matter:
# these rows chose it.
#
# What is the tree worth?
# -----------------------
# The tree, and the models behind its rewards, are learnt again and again from some households and judged by the
# others.
#
# .. code-block:: python
#
#    from policytree import cross_val_policy_value
#
#    print(cross_val_policy_value(model, study, random_state=0))
#
# These are 25 fits. They take some minutes, so they are not made anew when this page is built: the lines below are
# what the command of the first page prints.
#
# .. literalinclude:: /snippets/rand_hie.txt
#    :language: text
#    :class: wrapped
#    :end-before: Value, held out
#
# .. literalinclude:: /snippets/rand_hie.txt
#    :language: text
#    :class: columns
#    :start-at: Value, held out
#    :end-before: Certificate
#
# The first sentences are the answer: of the plans only the free one is shown worse, and the tree is not shown better
# than one plan for everybody. Read the last columns next: the tree minus every other rule. An interval that contains
# zero says that these data do not tell the two apart. Means of the plans are nearly those of "adjusted" above: they
# are averaged over five repetitions of the cross-fitting.
#
# On the rows that chose it the tree has 1.51 visits a year, on others 2.29. This is how optimistic a tree's own rows
# are, and why no value of those rows is shown without a mark.
#
# Do effects differ between people at all? If they do not, every rule is noise.

from policytree import heterogeneity_test

print(heterogeneity_test(study, fitted=model.reward_estimator_, random_state=0))

# %%
# The people in the leaves
# ------------------------
# Half of the households choose a tree, and the other half says what is in its leaves. The intervals hold for all
# leaves at once. This tree is another one than above, because fewer people chose it; the title is about this one.

from policytree import honest_leaf_summary

honest = honest_leaf_summary(model, study, random_state=0)
honest.estimator.plot(
    leaf_summary=honest.leaves, title=honest.against_best.statement(2, "This tree"), value_name="visits"
)

# %%
# The report
# ----------
# ``policytree-output/report.html`` has all of it on one page, for the person who decides: verdict, data check, tree in
# words and as a checklist, values, overlap and balance, what is proved, a paragraph on methods. `A sample report
# <../sample_report.html>`__ of a smaller trial shows what it looks like, and :doc:`/how_to/report` has the code. For
# your own file see :doc:`/start`.
#
# ``case_studies/rand_hie`` asks more of the same rows: which plan at which price of a visit, how fragile the answer
# is, and what the published analysis said.
#
# Other pages go further: :doc:`tree_wins` is a trial in which a tree wins. :doc:`/how_to/people_can_use` holds the rule
# to what can be asked at a desk, :doc:`/how_to/near_ties` counts the other trees that do as well,
# :doc:`/how_to/whom_first` asks who should come first if there is not enough for everybody.
