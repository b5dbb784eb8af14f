"""
A trial: who should get which treatment?
========================================

Families were randomised to one of five insurance plans: the RAND Health Insurance Experiment, 1974-82. Which plan,
for whom, keeps visits to the doctor low? You need a quarter of an hour, and nothing but this page: the data come with
the package statsmodels.

The steps are the same for every trial:

1. look at the data;
2. say how treatments were assigned;
3. ask what a rule would be worth on people that it has not seen;
4. look at the best tree, and at its proof;
5. look at the people in its leaves;
6. hand over a report.
"""

# %%
# The data
# --------
# One row is one person in their first year. A study knows which columns are treatment, outcome and covariates. ``X``
# is what a rule may ask about. ``W`` is for adjustment only: the site, within which families were randomised, and
# race, which a rule shall not look at.
#
# Nobody in Seattle could get the 50% plan. What a plan does to people who cannot get it is not in the data, so
# Seattle is left out.

import pandas as pd

from policytree import DRPolicyTree, check_study, cross_val_policy_value, load_dataset

study = load_dataset("rand-hie")
people = study.frame.drop_duplicates("person")
people = people[people["site"] != "Seattle"].reset_index(drop=True)

X = people[list(study.covariates)]
W = people[["site", "black"]]
Y, T = people["visits"], people["plan"]
family = people["household"]

print(f"{len(people):,} people in {family.nunique():,} families; they may be asked about")
print(", ".join(X.columns))

# %%
visits = Y.groupby(T)
pd.DataFrame({"people": visits.size(), "mean visits": visits.mean(), "standard error": visits.sem()}).round(2)

# %%
# Before anything is fitted: does a covariate know the outcome, is there an id among the columns, are numbers stored
# as text? It takes a second, and finds what no method would tell you.

print(check_study(X, T, Y, W=W, groups=family))

# %%
# How treatments were assigned
# ----------------------------
# In a trial the probabilities of the treatments are known, or nearly so. Here families were drawn within sites, so
# the probability of a plan is its share at the site. Hand them over: nothing has to be estimated that is known.
# (Without them they are estimated, see :doc:`observational`.)

share_at_site = pd.crosstab(people["site"], T, normalize="index")
propensity = share_at_site.loc[people["site"]].set_axis(people.index)
share_at_site.round(3)

# %%
# What is a rule worth?
# ---------------------
# Ask this first. A tree always looks good on the people who chose it. So the rule is learnt again and again from some
# people and judged by others. Families stay together, since they were randomised together: that is what ``groups``
# says.
#
# Rewards are doubly robust: a model of visits by covariates, mended by what was really seen, weighted by the known
# probabilities. Least squares is used here as that model to be quick; leave ``model_regression`` out, and a better
# one is chosen for you.

from sklearn.linear_model import LinearRegression

model = DRPolicyTree(
    model_regression=LinearRegression(), max_depth=2, min_samples_leaf=200, direction="minimize", random_state=0
)
given = {"X": X, "W": W, "propensity": propensity, "groups": family}
model.fit(Y, T, **given)
table = cross_val_policy_value(model, Y, T, **given, random_state=0)
print(table)

# %%
# The first sentence is the answer. Read the last columns of the table next: the tree less every other rule, with an
# interval. An interval that holds zero says that these data do not tell the two apart.
#
# The last lines say by how much the rule flatters itself on the people who chose it. That is why no value of those
# people is shown without a mark.

from policytree import PolicyValueDisplay

PolicyValueDisplay.from_table(table, title="Visits a year, on people who did not choose the rule")

# %%
# The best tree, and its proof
# ----------------------------
# A fitted model shows its tree and its certificate. "Optimal" means: among all trees of this size, over all these
# splits, none is better on these rows. It does not mean that the tree is better than no tree. The table above answers
# that.

model

# %%
# Do effects differ between people at all? If they do not, every rule is noise.

from policytree import heterogeneity_test

print(heterogeneity_test(Y, T, **given, fitted=model.reward_estimator_, random_state=0))

# %%
# The people in the leaves
# ------------------------
# Half of the families choose the tree, and the other half says what is in its leaves. The intervals hold for all
# leaves at once. The tree is another one than above, because fewer people chose it.

from policytree import honest_leaf_summary

honest = honest_leaf_summary(model, Y, T, **given, random_state=0)
honest.estimator.plot(leaf_summary=honest.leaves, title=table.verdict, value_name="visits")

# %%
# The report
# ----------
# One page with all of it, for the person who decides: verdict, data check, tree in words and as a checklist, values,
# overlap and balance, what is proved, a paragraph on methods. It needs no network and no script.

import tempfile
from pathlib import Path

from policytree import About, StudyReport

about = About(source="RAND Health Insurance Experiment, first years", unit="visits a year", cluster="household")
report = StudyReport(model, Y, T, X=X, W=W, groups=family, results=[table, honest], about=about)
page = report.to_html(Path(tempfile.mkdtemp()) / "report.html")
print(report.to_text()[:900])

# %%
# The same from the command line
# ------------------------------
# ``policytree design --dataset rand-hie`` does all of this in one go, with all years of the people. For your own file
# see :doc:`/start`.
#
# What to try next: :doc:`/how_to/people_can_use` holds the rule to what can be asked at a desk,
# :doc:`/how_to/near_ties` counts the other trees that do as well, :doc:`/how_to/whom_first` asks who should come
# first if there is not enough for everybody.
