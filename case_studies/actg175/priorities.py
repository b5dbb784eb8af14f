"""ACTG 175: which patients first if the better drugs are scarce, and what a tolerable burden of side effects buys.

Public interface used: held_out_rewards, rank_average_treatment_effect, qini_curve.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from whom_first import compared

from policytree import DRPolicyTree, held_out_rewards
from policytree.evaluation import qini_curve
from policytree.evaluation.policy_value.sample_split import HeldOutRewards

FIRST, OTHERS = "ZDV+ddI", "ZDV"
BURDENS = (2.0, 5.0, 10.0, 15.0)  # CD4 cells that side effects may be worth, per patient, beyond those of zidovudine
GOAL = 30.0  # CD4 cells


def show_priorities(study, data, costs: Mapping[str, float], smallest: int) -> None:
    """Learn from one half of the patients; judge orders and plans by the other."""
    study.step("whom first: nuisances and tree of one half of the patients")
    tree = DRPolicyTree(max_depth=2, min_samples_per_treatment=smallest // 2, random_state=0)
    held = held_out_rewards(tree, data, random_state=0)
    X = data.X.iloc[held.rows]
    promised = pd.DataFrame(held.estimator.predict_value(X), index=X.index, columns=held.rewards.columns)
    _show_order(study, held, X, promised)
    _show_budgets(study, held, promised, costs)


def _show_order(study, held: HeldOutRewards, X: pd.DataFrame, promised: pd.DataFrame) -> None:
    study.heading(f"7. Whom first, if {FIRST} is scarce and the others get {OTHERS}")
    priorities = {
        "predicted gain": held.predicted_gain(FIRST, OTHERS),
        "what the tree's leaf promises": promised[FIRST] - promised[OTHERS],
        "lowest CD4 count first": -X["cd40"],
        "longest treated before first": X["preanti"],
        "oldest first": X["age"],
    }
    autoc, table = compared(priorities, held, FIRST, OTHERS)
    mean = autoc.average_gain
    study.show(
        f"{len(held.rows):,} patients judge what {len(data_rows(held)):,} others taught. {FIRST} for all instead of "
        f"{OTHERS}: {mean.value:.1f} CD4 cells [{mean.lower:.1f}, {mean.upper:.1f}].\n"
    )
    study.table(table, "priorities")
    difference = autoc.difference("predicted gain", "lowest CD4 count first")
    study.show(
        f"AUTOC by predicted gain less that by lowest CD4 count: {difference.value:.1f} "
        f"[{difference.lower:.1f}, {difference.upper:.1f}], paired."
    )
    curve = autoc.toc.set_index(["priority", "share"]).loc["predicted gain"].loc[0.3]
    study.show(
        f"The 30 % with the largest predicted gain gain {curve['value']:.1f} cells [{curve['lower']:.1f}, "
        f"{curve['upper']:.1f}] more than the average patient."
    )
    title = f"ACTG 175: {FIRST} instead of {OTHERS}, whom first (held out)"
    study.figure(autoc.plot(title=title, unit="CD4 cells").figure_, "whom_first")


def data_rows(held: HeldOutRewards) -> pd.Index:
    """Rows that taught the estimator."""
    return held.estimator.rewards_.index


def _show_budgets(study, held: HeldOutRewards, promised: pd.DataFrame, costs: Mapping[str, float]) -> None:
    study.heading("8. What a burden of side effects buys (prices of side effects as above, beyond zidovudine's)")
    curves = {"by predicted outcomes": qini_curve(held.outcomes, held, costs, baseline=OTHERS)}
    curves["by the tree's leaves"] = qini_curve(promised, held, costs, baseline=OTHERS)
    plan = curves["by predicted outcomes"]
    lots = plan.untargeted
    rows = []
    for budget in BURDENS:
        gain, over_lots = plan.value_at(budget), plan.difference(lots, budget)
        over_tree = plan.difference(curves["by the tree's leaves"], budget)
        rows.append({"burden": budget, "gain": gain.value, "lower": gain.lower, "upper": gain.upper,
                     "by lots": lots.value_at(budget).value})  # fmt: skip
        for name, e in (("less lots", over_lots), ("less tree", over_tree)):
            rows[-1] |= {name: e.value, f"{name} lower": e.lower, f"{name} upper": e.upper}
        shares = plan.policy_at(budget).mean()
        rows[-1] |= {f"share {arm}": shares[arm] for arm in held.rewards.columns}
    table = pd.DataFrame(rows)
    table.to_csv(study.results / "burdens.csv", index=False, float_format="%.10g", lineterminator="\n")
    study.show("Gain over zidovudine for all, CD4 cells per patient, held out:")
    study.show(table.iloc[:, :11].to_string(index=False, float_format=lambda v: f"{v:,.1f}") + "\n")
    study.show("Share of patients per arm under the plan:")
    shown = table.iloc[:, [0, *range(11, table.shape[1])]].set_index("burden")
    study.show(shown.rename(columns=lambda c: c.removeprefix("share ")).to_string(float_format="{:.2f}".format) + "\n")
    for name, curve in (("by predicted outcomes", plan), ("by lots", lots)):
        needed = curve.budget_for(GOAL)
        study.show(
            f"Least burden that gains {GOAL:g} cells per patient, {name}: {needed.value:.1f} [{needed.lower:.1f}, "
            f"{needed.upper:.1f}]."
        )
    title = "ACTG 175: what a burden of side effects buys (held out)"
    display = plan.plot(
        "by predicted outcomes", beside={"by the tree's leaves": curves["by the tree's leaves"], "by lots": lots},
        title=title, unit="CD4 cells", xlabel="side effects per patient, beyond ZDV's",
    )  # fmt: skip
    study.figure(display.figure_, "burdens")
