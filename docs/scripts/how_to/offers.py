"""
Offers and treatments: people may refuse
========================================

Some get a voucher and do not use it; others join without one. Those who take a treatment differ from those who do not,
in ways that nobody recorded, and comparing them says little. *Offers* were given by chance: such a
study's treatment is ``Offered``. Rewards are then learnt from the offers, for those who follow them.
"""

import numpy as np
import pandas as pd

from policytree import DRPolicyTree, Study
from policytree.evaluation import instrument_summary, offer_rule
from policytree.study import Offered

rng = np.random.default_rng(0)
n = 1200
table = pd.DataFrame({"age": rng.integers(18, 70, n), "urban": rng.choice(["yes", "no"], n)})
table["offer"] = rng.choice(["none", "voucher"], n)
keen = rng.normal(size=n)  # not recorded: the keen join more often, and earn more without the programme
joins = (table["offer"] == "voucher") & (rng.normal(size=n) < 0.4 + keen) | (rng.random(n) < 0.1)
table["taken"] = np.where(joins, "programme", "alone")
brings = np.where(table["age"] < 40, 6.0, -3.0)  # on average .8
table["earnings"] = 20 + 4 * keen + brings * joins + rng.normal(size=n)

naive = table["earnings"][joins].mean() - table["earnings"][~joins].mean()
study = Study(
    table, treatment=Offered("taken", by="offer"), outcome="earnings", direction="maximize",
    propensity={"none": 0.5, "voucher": 0.5},  # the chances of the offers
)  # fmt: skip
model = DRPolicyTree(max_depth=1, min_samples_leaf=50, random_state=0).fit(study)
found = instrument_summary(model)
print(f"who joined against who did not: {naive:.1f}")
print(found)
found.plot()

# %%
# **Meaning of the numbers.** *Uptake* is the share that takes the programme under every offer; *outcome* the mean under
# it: what offers bring as they are (intention to treat). The *effect* is what the programme changes for those who
# follow the offers (the *compliers*): the change of outcomes over the change of uptake, two-stage least squares with
# adjustment. The first interval needs a strong instrument (first-stage *F* of 10 or more), the second, of Anderson and
# Rubin, none. With three offers or more, *all offers the same effect* tests whether they agree. Where *compliance* is
# small for many rows, offers say little about these people.

print(found.complier_means(study.X).round(2)[["everybody", "compliers", "lower", "upper"]])

# %%
# **The tree** gives the programme or nothing. Its rewards are gains over the first treatment per person of all, where
# those who do not follow the offers count as zero. ``cross_val_policy_value`` and the others take the same study.
# ``RewardEstimator(method="instrument", estimand="all")`` counts everybody with the effect on the compliers among
# people like them instead: an extrapolation, with larger errors.

print(model.export_text())

# %%
# **Two assumptions** are made, which no data can show:
#
# - *Exclusion.* The voucher bears on earnings only through the programme. One that comes with advice may not.
# - *Monotonicity.* Nobody joins because they got no voucher, or stays away because they got one (no defiers).
#
# And offers were given by chance among people with the same covariates: known chances go to ``propensity``.
#
# **The choice of an offer** is often the only decision, and needs neither assumption. A voucher costs .1 to hand out,
# and a programme 1 for everybody who joins:

rule = offer_rule(model, study, offer_costs={"voucher": 0.1}, treatment_cost=1.0, cv=2, n_repeats=1, random_state=0)
print(rule.values.verdict)

# %%
# ``StudyReport(model, study, results=rule)`` shows both side by side, with the
# picture above. On the command line::
#
#     policytree design study.csv --treatment taken --outcome earnings --instrument offer \
#         --offer-cost voucher=0.1 --taker-cost 1
