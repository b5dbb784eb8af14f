"""RAND: the rule that brings most visits to a doctor if it may cost so many dollars more than the 95% plan for all.

Public interface used: RewardEstimator, PolicyTree (Budget, Share), budget_path,
held_out_rewards, policy_value.
"""

from __future__ import annotations

from budget_trees import Halves, show_budgets, show_path, show_share
from rand_hie.study import persons, ridge, smallest_leaf, tables

from policytree import PolicyTree, RewardEstimator, held_out_rewards

FIRST, OTHERS = "free", "95%"
BUDGETS = (10.0, 20.0, 40.0)  # dollars a person-year more than under the 95% plan
MOST = 0.2


def main(study) -> None:
    """Run the part."""
    dataset, _, frame = persons(study)
    given = tables(dataset, frame)
    held, rows = {}, 0.5
    for outcome in ("visits", "spending"):
        study.step(f"nuisance models of {outcome}, one half of the households")
        held[outcome] = held_out_rewards(
            RewardEstimator(ridge(), cv=3, random_state=0), frame[outcome], frame["plan"], **given,
            groups=frame["household"], honest=rows, random_state=0,
        )  # fmt: skip
        rows = held[outcome].rows
    spending = held["spending"].estimator.rewards_.mean()
    costs = {plan: round(float(cost - spending[OTHERS]), 2) for plan, cost in spending.items()}
    rewards = held["visits"].estimator.rewards_
    X = given["X"].loc[rewards.index]
    halves = Halves(X, rewards, held["visits"], given["X"].iloc[rows], costs)
    model = PolicyTree(max_depth=2, min_samples_leaf=smallest_leaf(study))

    study.heading("1. Every budget: the trees that are best at some price of a dollar (visits a person-year)")
    beyond = ", ".join(f"{plan} {cost:.0f}" for plan, cost in costs.items())
    study.show(
        f"{len(X):,} person-years choose, {len(rows):,} of other households judge. What plans cost beyond the {OTHERS} "
        f"plan,\non average among those who choose, dollars: {beyond}."
    )
    study.step("the path of budgets")
    show_path(study, halves, model, "RAND: what a dollar buys", unit="visits a year",
              xlabel="dollars a person-year beyond the 95% plan")  # fmt: skip
    study.heading(f"2. The best tree of some budgets, and its gain over the {OTHERS} plan for all")
    study.step("trees within budgets")
    show_budgets(study, halves, model, BUDGETS[:1] if study.quick else BUDGETS, OTHERS)
    study.heading(f"3. At most {MOST:.0%} of the person-years get {FIRST} care")
    study.step("the tree within a share")
    show_share(study, halves, model, FIRST, MOST, OTHERS, digits=2)
