"""ACTG 175: the best rule if ZDV+ddI is scarce, or if side effects may burden the average patient by so much at most.

Public interface used: RewardEstimator, PolicyTree (Budget, Share), budget_path,
held_out_rewards, policy_value.
"""

from __future__ import annotations

from actg175.study import arm_costs, trial
from budget_trees import Halves, show_budgets, show_path, show_share

from policytree import PolicyTree, RewardEstimator, held_out_rewards

BEST, OLD = "ZDV+ddI", "ZDV"
BURDENS = (2.0, 5.0, 10.0, 15.0)  # CD4 cells that side effects may be worth, per patient, beyond those of zidovudine
MOST = 0.3


def main(study) -> None:
    """Run the part."""
    data = trial(study)
    study.step("nuisances and rewards of one half of the patients")
    held = held_out_rewards(RewardEstimator(random_state=0), data, random_state=0)
    rewards, burden = held.estimator.rewards_, arm_costs()
    costs = {arm: cost - burden[OLD] for arm, cost in burden.items()}
    X = data.X.loc[rewards.index]
    halves = Halves(X, rewards, held, data.X.iloc[held.rows], costs)
    model = PolicyTree(max_depth=2, min_samples_leaf=50)

    study.heading("1. Every burden of side effects: the trees that are best at some price of it")
    study.show(f"{len(X):,} patients choose, {len(held.rows):,} judge; burdens beyond {OLD}'s, CD4 cells a patient.")
    study.step("the path of burdens")
    show_path(study, halves, model, "ACTG 175: what a burden of side effects buys", unit="CD4 cells",
              xlabel="side effects per patient, beyond ZDV's")  # fmt: skip
    study.heading(f"2. The best tree of some burdens, and its gain over {OLD} for all")
    study.step("trees within burdens")
    show_budgets(study, halves, model, BURDENS[:2] if study.quick else BURDENS, OLD, digits=1)
    study.heading(f"3. At most {MOST:.0%} of the patients get {BEST}")
    show_share(study, halves, model, BEST, MOST, OLD)
