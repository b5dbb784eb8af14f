"""
Decisions with costs
====================

Treatments cost money, mistakes cost money, and questions cost money. Each of the three has its own place in the
search, and the proof holds for the sum. The example is job training: 445 men of the National Supported Work
demonstration, randomised in the 1970s, and what they earned in 1978. The prices of mistakes and of
questions come later, with visits to the doctor as the example. The prices on this page are made up.
"""

# %%
# The price of a treatment
# ------------------------
# A place in the training costs 1,500 dollars, say. Earnings less the price count. Costs are in the unit of
# the outcome; they may differ by person (name a column). Your own table becomes a study by ``Study(table,
# treatment="treat", outcome="re78", arm_costs={"training": 1500.0}, ...)``.

from policytree import DRPolicyTree, cross_val_policy_value, load_dataset

study = load_dataset("nsw").study().replace(arm_costs={"training": 1500.0})
model = DRPolicyTree(max_depth=2, min_samples_per_treatment=20, random_state=0).fit(study)
print(model.export_text())
print(cross_val_policy_value(model, study, random_state=0).verdict)

# %%
# Few people, noisy earnings: no rule is shown to be better than no training, and the differences have wide
# intervals. Keep that in mind for all of what follows, which is about *how* to ask.
#
# A budget
# --------
# There may be money for some only. ``Budget`` is the most that may be spent a person on average, ``Share`` the
# largest share (``most=``) that gets a treatment. The tree is the best of those that keep to it. The multiplier says
# what a dollar more would bring on these rows.

from policytree import PolicyTree, policy_value
from policytree.constraints import Budget

X, rewards = study.X, model.rewards_  # doubly robust earnings of every man with and without training
costs = {"training": 1500.0}
within = PolicyTree(max_depth=2, constraints=[Budget(600.0)], min_samples_leaf=40).fit(X, rewards, budget_costs=costs)
print(within.export_text())
print(f"spends {within.spend_:.0f} dollars a man, {within.status_.value}, gap {within.optimality_gap_:g}")
print(f"a dollar more is worth {within.multipliers_['budget']:.2f} dollars (rows that chose the tree: flattered)")

# %%
# On these rows the budget is kept exactly. On other people it is an estimate: here on the second half of the men, by
# a tree of the first half.

half = len(X) // 2
order = X.sample(frac=1.0, random_state=0).index
first, second = order[:half], order[half:]
tree = PolicyTree(max_depth=2, constraints=[Budget(600.0)], min_samples_leaf=20)
tree.fit(X.loc[first], rewards.loc[first], budget_costs=costs)
spent = policy_value(tree.predict(X.loc[second]), costs)
print(f"on others it spends {spent.value:.0f} dollars a man, 95% interval [{spent.lower:.0f}, {spent.upper:.0f}]")

# %%
# Every budget at once: each step of the path is a tree that is the best one at some price of money.

from policytree.evaluation import budget_path

path = budget_path(PolicyTree(max_depth=2, min_samples_leaf=40), X, rewards, budget_costs=costs)
path.plot()

# %%
# The price of a mistake
# ----------------------
# Another decision, and more people: 4,680 members of the RAND Health Insurance Experiment in their first year. Some
# will see a doctor five times or more. A nurse who calls them beforehand may spare them some of it. To miss such a
# person costs 300 dollars, to call in vain costs 60. The tree of least mean cost:

import numpy as np

from policytree import CostSensitiveTreeClassifier

people = load_dataset("rand-hie").frame.drop_duplicates("person")
people = people[people["site"] != "Seattle"].reset_index(drop=True)
before = people[["age", "female", "family_size", "general_health", "mental_health", "chronic_disease"]]
need = np.where(people["visits"] >= 5, "call", "leave")

mistakes = {("call", "leave"): 300.0, ("leave", "call"): 60.0}  # (what was right, what was done): dollars
classifier = CostSensitiveTreeClassifier(mistakes, max_depth=2, min_samples_leaf=100).fit(before, need)
print(classifier.export_text())
print(f"{classifier.objective_value_:.1f} dollars a person on the rows that chose it: {classifier.status_.value}")

# %%
# What would it cost on other people? Everybody is predicted by a tree of other families, and judged by what was
# right. The rival is to do the same with everybody. Costs are losses: smaller is better, and a difference below zero
# speaks for the tree.

import pandas as pd
from sklearn.model_selection import GroupKFold, cross_val_predict

family = people["household"]
predicted = cross_val_predict(classifier, before, need, groups=family, cv=GroupKFold(10))
loss = pd.DataFrame({"call": np.where(need == "call", 0.0, 60.0), "leave": np.where(need == "call", 300.0, 0.0)})
for name, rule in {"tree": predicted, "call everybody": "call", "leave everybody": "leave"}.items():
    cost = policy_value(rule, loss, groups=family)
    print(f"{name:16} {cost.value:5.1f} dollars a person, 95% interval [{cost.lower:.1f}, {cost.upper:.1f}]")
gain = policy_value(predicted, loss, baseline="call", groups=family)
print(f"tree - call everybody: {gain.value:.1f}, 95% interval [{gain.lower:.1f}, {gain.upper:.1f}]")

# %%
# (The trees of ten folds share most of their rows, so such an interval is a little too short. For treatments
# :func:`policytree.cross_val_policy_value` has the remedy.)
#
# The price of a question
# -----------------------
# Age, sex and family size are in the files. The three scores come from one questionnaire, which takes a dollar of
# somebody's time, however many scores are read off it: it is paid for once on the way to a leaf.

cheap = CostSensitiveTreeClassifier(
    mistakes,
    max_depth=2,
    min_samples_leaf=100,
    feature_costs=dict.fromkeys(["general_health", "mental_health", "chronic_disease"], 1.0),
    feature_groups={"questionnaire": ["general_health", "mental_health", "chronic_disease"]},
    repeated_features="free",
).fit(before, need)
print(cheap.export_text())
print(f"{cheap.objective_value_:.1f} dollars a person on the rows that chose it: {cheap.status_.value}")
print(f"of these, questions cost {cheap.expected_cost_:.2f}")

# %%
# Next: :doc:`/how_to/budgets` on shares and spending, :doc:`/how_to/low_test_costs` on trees that are cheap to apply,
# :doc:`/how_to/whom_first` on rankings and what a budget buys.
