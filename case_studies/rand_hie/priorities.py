"""RAND: whom to give free care first, and how many more visits a dollar buys where spending is an outcome itself.

Public interface used: held_out_rewards, rank_average_treatment_effect, qini_curve.
"""

from __future__ import annotations

import pandas as pd
from whom_first import compared

from policytree import RewardEstimator, held_out_rewards, policy_value
from policytree.evaluation import qini_curve
from policytree.evaluation.policy_value.sample_split import HeldOutRewards

FIRST, OTHERS = "free", "95%"
BUDGETS = (10.0, 20.0, 40.0, 60.0)  # dollars a person-year more than under the 95% plan
GOAL = 0.5  # visits a person-year


def show_priorities(study, frame: pd.DataFrame, given: dict) -> None:
    """Learn from one half of the households; judge orders and plans by the other."""
    held, rows = {}, 0.5
    for outcome in ("visits", "spending"):
        study.step(f"whom first: nuisance models of {outcome}, one half of the households")
        held[outcome] = held_out_rewards(
            RewardEstimator(cv=3, random_state=0), frame[outcome], frame["plan"], **given, groups=frame["household"],
            honest=rows, random_state=0,
        )  # fmt: skip
        rows = held[outcome].rows
    _show_order(study, held["visits"], given["X"].iloc[rows])
    _show_budgets(study, held["visits"], held["spending"])
    _show_noise(study, held["visits"], held["spending"], frame.iloc[rows])


def _show_order(study, visits: HeldOutRewards, X: pd.DataFrame) -> None:
    study.heading(f"5. Whom to give {FIRST} care first, if the others have the {OTHERS} plan (visits a person-year)")
    priorities = {
        "predicted gain in visits": visits.predicted_gain(FIRST, OTHERS),
        "sickest first (chronic_disease)": X["chronic_disease"],
        "poorest first": -X["income"],
        "oldest first": X["age"],
    }
    autoc, table = compared(priorities, visits, FIRST, OTHERS)
    mean = autoc.average_gain
    study.show(
        f"{len(visits.rows):,} person-years of {mean.n_clusters} households judge what the others taught. Free care "
        f"for all: {mean.value:.2f} visits more [{mean.lower:.2f}, {mean.upper:.2f}].\n"
    )
    study.table(table, "priorities", digits=2)
    difference = autoc.difference("predicted gain in visits", "sickest first (chronic_disease)")
    study.show(
        f"AUTOC by predicted gain less that of the sickest first: {difference.value:.2f} [{difference.lower:.2f}, "
        f"{difference.upper:.2f}], paired."
    )
    title = "RAND: free care instead of the 95% plan, whom first (held out)"
    study.figure(autoc.plot(title=title, unit="visits a year").figure_, "whom_first")


def _show_budgets(study, visits: HeldOutRewards, spending: HeldOutRewards) -> None:
    study.heading("6. What a dollar buys: visits over the 95% plan for all, where what a plan spends is estimated too")
    # Plans go by what each insurance plan costs on average: predictions by person are mostly noise, and who looks cheap
    # by them is not. Spending is read off the scores in any case.
    average = spending.outcomes.mean()
    study.show(
        "Predicted spending, dollars a person-year: " + ", ".join(f"{k} {v:.0f}" for k, v in average.items()) + ".\n"
    )
    plan = qini_curve(visits.outcomes, visits, average, cost_scores=spending, baseline=OTHERS)
    lots = plan.untargeted
    rows, least = [], max(plan.spend[0], lots.spend[0])  # more than nothing where another plan is predicted cheapest
    for budget in (b for b in BUDGETS if b >= least):
        gain, blind, over = plan.value_at(budget), lots.value_at(budget), plan.difference(lots, budget)
        rows.append({"dollars": budget, "visits": gain.value, "lower": gain.lower, "upper": gain.upper})
        rows[-1] |= {"by lots": blind.value, "lots lower": blind.lower, "lots upper": blind.upper}
        rows[-1] |= {"difference": over.value, "difference lower": over.lower, "difference upper": over.upper}
    table = pd.DataFrame(rows)
    study.table(table, "dollars", digits=2, index=False)
    for name, curve in (("most predicted visits per dollar first", plan), ("by lots", lots)):
        needed = curve.budget_for(GOAL)
        study.show(
            f"Least dollars for {GOAL:g} more visits a person-year, {name}: {needed.value:.0f} [{needed.lower:.0f}, "
            f"{needed.upper:.0f}]."
        )
    shares = plan.policy_at(max(BUDGETS[1], least)).mean()
    study.show(
        f"At {max(BUDGETS[1], least):g} dollars the plan gives "
        + ", ".join(f"{arm} to {s:.0%}" for arm, s in shares.items())
        + "."
    )
    display = plan.plot(
        "most predicted visits per dollar first",
        beside={"without telling people apart": lots},
        title="RAND: what a dollar buys (held out)",
        unit="visits a year",
        xlabel="dollars a person-year beyond the 95% plan",
    )
    study.figure(display.figure_, "dollars")


def _show_noise(study, visits: HeldOutRewards, spending: HeldOutRewards, frame: pd.DataFrame) -> None:
    """Show the cause of the curve's steps, and why plans do not go by each person's own predicted spending."""
    scores = spending.rewards.to_numpy()
    row, plan = divmod(int(scores.argmax()), scores.shape[1])
    somebody, largest = frame.iloc[row], scores[row, plan]
    study.show(
        f"The largest score of spending, {largest:,.0f} dollars, weighs {largest / len(scores):.0f} dollars a "
        f"person-year: somebody in {somebody['site']} on the {somebody['plan']} plan, who spent "
        f"{somebody['spending']:,.0f}."
    )
    own = qini_curve(visits.outcomes, visits, spending.outcomes, cost_scores=spending, baseline=OTHERS)
    cheapest = own.policy_at(own.spend[0])
    more = policy_value(cheapest, spending.rewards, baseline=OTHERS, groups=spending.groups)
    study.show(
        f"Everybody on the plan that looks cheapest for them by predicted spending: {more.value:.0f} dollars a "
        f"person-year [{more.lower:.0f}, {more.upper:.0f}] more than the {OTHERS} plan for all."
    )
