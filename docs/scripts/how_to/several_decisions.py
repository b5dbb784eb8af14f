"""
Decide more than once
=====================

First line, and then by response: most treatments are decided on several times. A *treatment regime* is a rule for
every decision, and each may look at all that is known by then: covariates, what was given before, and what it brought.
"""

import numpy as np
import pandas as pd

from policytree import DRPolicyTree
from policytree.regimes import RegimeReport, Stage, TreatmentRegime, cross_val_regime_value, stages_from_long

# %%
# **The table** has one row per person and decision. Whoever responded to the first treatment has no second visit, and
# brings nothing from then on (here simulated, so that the truth is known: at the second visit the severe should
# switch).

rng = np.random.default_rng(0)
n = 500
severity, first, second = rng.normal(size=n), rng.choice(["drug", "talk"], n), rng.choice(["more", "switch"], n)
responds = severity * (first == "drug") + rng.normal(size=n) > 0.4
later = severity + rng.normal(size=n)
gain = np.where(second == "switch", 1.5, -1.5) * np.sign(later) + rng.normal(size=n)
people = {"patient": np.arange(n)}
visits = pd.concat(
    [
        pd.DataFrame({**people, "visit": 1, "drug": first, "score": responds * 1.0, "severity": severity}),
        pd.DataFrame({**people, "visit": 2, "drug": second, "score": gain, "severity": later})[~responds],
    ]
).round(2)
print(visits.sort_values(["patient", "visit"]).head(4).to_string(index=False))

# %%
# **Learn the rules,** the last one first: every tree is the best one for the scores of its stage, which say what a
# treatment brings and what the later trees bring after it. A trial knows the chances of its treatments; for two
# treatments ``propensity`` is that of the second one in sorted order.

stages = stages_from_long(visits, id="patient", stage="visit", treatment="drug", outcome="score")
stages = [Stage(s.T, X=s.X, Y=s.Y, eligible=s.eligible, propensity=0.5, name=s.name) for s in stages]
regime = TreatmentRegime(DRPolicyTree(max_depth=1, cv=2, min_samples_leaf=40), random_state=0).fit(stages)
regime.plot(stages=stages)

# %%
# **The proof** is about the tree of every stage given its scores. The regime as a whole has no proof, unless both trees
# are stumps and ``search="joint"`` looked at all pairs of them:

print(regime.certificate().splitlines()[0])

# %%
# **What is it worth?** Whole people are held out, with all their visits. The regime stands beside every fixed sequence
# that somebody followed, what people got, one decision only, Q-learning's rule and trees on inverse probability
# weights. Where deciding twice is not shown to be better than deciding once, the verdict says so.

values = cross_val_regime_value(regime, stages, cv=2, n_repeats=1, baselines=False, random_state=0)
print(values)

# %%
# **Who followed what?** With every decision fewer people have followed any one sequence, and their weights grow:

print(values.sequences.round(1))

# %%
# **The next decision** for somebody: the history, and then the covariates of the decision.

person = [
    Stage(["drug"], X=pd.DataFrame({"severity": [0.2]}), Y=[0.0]),
    Stage(X=pd.DataFrame({"severity": [0.9]})),
]
print(regime.predict(person))

# %%
# **Other cases.** People for whom nothing is to be decided have no treatment there (or ``eligible=``). Those who were
# lost have a missing outcome, and ``missing_outcome="weight"`` weights for them. ``allowed=`` says who may get what,
# ``costs=`` what it costs, and every stage may have an estimator of its own: ``TreatmentRegime([first, second])``.
# Without known chances, they are estimated from the histories.
#
# ``RegimeReport(regime, stages, values)`` puts all of it on one page. On the command line::
#
#     policytree design visits.csv --id patient --stage visit --treatment drug --outcome score \
#         --propensity drug=0.5,talk=0.5,more=0.5,switch=0.5
#     policytree predict policytree-output/regime.json visits.csv

report = RegimeReport(regime, stages, values)
print(report.content.section("example").blocks[0].pairs)
