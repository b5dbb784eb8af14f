"""
Does a saving plan at work raise savings?
=========================================

Some employers offer a 401(k) plan, and people may save in it or not. Those who do would have saved more anyway. Whether
an employer offers a plan is as good as chance among people of the same income, age and family: it is an *instrument*.
"""

from policytree import RewardEstimator, load_dataset
from policytree.evaluation import instrument_summary

data = load_dataset("k401k")
study = data.study()  # its treatment is Offered: a plan that people may refuse
means = study.table.groupby(data.treatment)[data.outcome].mean()
print(f"{study.n:,} people; savers own {means['plan'] - means['none']:.1f} thousand dollars more than the others")

# %%
# **Without covariates** the effect is that of two-stage least squares, with the offer as the only instrument: what the
# offer changes about assets over what it changes about saving.

alike = study.replace(table=study.table.assign(nothing=0.0), covariates=["nothing"])
plain = RewardEstimator(method="instrument").fit(alike)
print(instrument_summary(plain))

# %%
# **With covariates** offers are compared among people alike, doubly robust: right if either the models of assets and
# saving are, or that of who is offered a plan. The effect halves: employers who offer plans employ richer people.

model = RewardEstimator(method="instrument", estimand="compliers", random_state=0)
found = instrument_summary(model.fit(study))
print(found)
found.plot()

# %%
# **Beside DoubleML** (``DoubleMLIIVM``, with the same covariates), in dollars:
#
# .. benchmark-table:: complier_effects.md
#    :columns: study, estimator, effect, error, 95 % interval
#    :rows: k401ksubs
#
# **Who they are.** Nobody can save in a plan that is not offered, so that the effect is that on all who save in one.

print(found.complier_means(study.X).round(2)[["everybody", "compliers", "lower", "upper"]])

# %%
# :doc:`offers` goes on to a tree, and to what to offer whom. ``load_dataset("card")`` is another study of this kind:
# what college does to wages, with a college nearby as an instrument that is weak.
