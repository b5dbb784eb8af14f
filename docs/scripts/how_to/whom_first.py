"""
Whom first, and what a budget buys
==================================

If there is not enough for everybody, an order may serve better than a rule. Does the order put those first who gain
most? Half of the people learn, and the other half judges.
"""

import numpy as np
import pandas as pd

from policytree import RewardEstimator, Study, held_out_rewards
from policytree.evaluation import rank_average_treatment_effect

rng = np.random.default_rng(0)  # a trial: a pill that helps those at risk, a course that helps all, at a price
n = 2_000
table = pd.DataFrame({"risk": rng.uniform(size=n), "age": rng.integers(20, 80, size=n)})
arm = rng.choice(["none", "pill", "course"], size=n)
gain = np.select([arm == "pill", arm == "course"], [2 * table["risk"] - 0.5, 0.8], 0.0)
table = table.assign(arm=arm, score=gain + rng.normal(size=n))

known = {"none": 1 / 3, "pill": 1 / 3, "course": 1 / 3}
study = Study(table, treatment="arm", outcome="score", direction="maximize", propensity=known)
held = held_out_rewards(RewardEstimator(random_state=0), study, random_state=0)
priorities = {"predicted gain": held.predicted_gain("pill", "none"), "age": table["age"].iloc[held.rows]}
ranking = rank_average_treatment_effect(priorities, held, treatment="pill", baseline="none")
print(ranking)
ranking.plot()

# %%
# The curve says how much more than the average those gain who come first. AUTOC is the area under it, which is zero on
# average for an order that knows nothing.
#
# Several treatments with prices: the best plan for every budget, and drawing lots for comparison.

from policytree.evaluation import qini_curve

curve = qini_curve(held.outcomes, held, {"pill": 1.0, "course": 3.0}, baseline="none")
print("a budget of 1 buys", curve.value_at(1.0))
print("lots would buy    ", curve.untargeted.value_at(1.0))
print("least budget for a gain of 0.4:", curve.budget_for(0.4))
curve.plot()
