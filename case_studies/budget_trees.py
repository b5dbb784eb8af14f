"""Shared code of the parts called budgets: half of the people chooses trees within limits, the other half judges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from policytree import PolicyTree, policy_value
from policytree.constraints import Budget, Share
from policytree.evaluation import budget_path
from policytree.evaluation.policy_value.sample_split import HeldOutRewards


@dataclass(frozen=True)
class Halves:
    """Covariates and rewards of those who choose, and of those who judge."""

    X: pd.DataFrame
    rewards: pd.DataFrame
    held: HeldOutRewards
    judges: pd.DataFrame
    costs: dict[str, float]

    @property
    def options(self) -> dict[str, Any]:
        """Clusters and weights of those who judge."""
        return {"groups": self.held.groups, "sample_weight": self.held.sample_weight}


def show_path(study, halves: Halves, model: PolicyTree, title: str, **labels: str) -> None:
    """The corners, on both halves, and the picture."""
    path = budget_path(model, halves.X, halves.rewards, budget_costs=halves.costs)
    table = path.evaluate(halves.judges, halves.held.rewards, budget_costs=halves.costs, **halves.options)
    shown = path.to_frame()[["spend", "value", "low", "n_leaves"]]
    shown.columns = ["spend", "value, training", "price", "leaves"]
    for name, part in (("spend", "spend, held out"), ("value", "value, held out")):
        shown[part] = table[name, "value"]
        shown[f"{part} lower"], shown[f"{part} upper"] = table[name, "lower"], table[name, "upper"]
    study.show(f"Corners of the path: {len(path)}, proved: {path.proved}.\n")
    study.table(shown.iloc[:: max(1, len(shown) // 8)], "budget_path", digits=2)
    study.figure(path.plot(table, title=title, **labels).figure_, "budget_path")


def show_budgets(study, halves: Halves, model: PolicyTree, budgets, baseline: str, digits: int = 2) -> None:
    """The best tree of each budget, with its certificate, and what others say of it."""
    rows = []
    for budget in budgets:
        tree = PolicyTree(**{**model.get_params(), "constraints": [Budget(budget)]})
        tree.fit(halves.X, halves.rewards, budget_costs=halves.costs)
        chosen = tree.predict(halves.judges)
        spend = policy_value(chosen, halves.costs, **halves.options)
        gain = policy_value(chosen, halves.held.rewards, baseline=baseline, **halves.options)
        prices = -tree.solution_.guarantees["dual_bound"]
        rows.append({"budget": budget, "spent": tree.spend_, "value": tree.objective_value_,
                     "bound": tree.objective_bound_, "bound by prices": prices, "status": tree.status_.value,
                     "spent, held out": spend.value, "spent lower": spend.lower, "spent upper": spend.upper,
                     "gain, held out": gain.value, "gain lower": gain.lower, "gain upper": gain.upper})  # fmt: skip
    study.table(pd.DataFrame(rows), "budgets", digits=digits, index=False)


def show_share(study, halves: Halves, model: PolicyTree, arm: str, most: float, baseline: str, digits: int = 1) -> None:
    """The best tree that gives an arm to a share at most, and what the limit costs."""
    free = PolicyTree(**model.get_params()).fit(halves.X, halves.rewards)
    tree = PolicyTree(**{**model.get_params(), "constraints": [Share(arm, most=most)]}).fit(halves.X, halves.rewards)
    study.show(tree.export_text() + "\n")
    given = float((free.predict(halves.X) == arm).mean())
    study.show(
        f"Without the limit {given:.0%} of those who chose would get {arm}; with it {tree.shares_[arm]:.1%}, and the "
        f"mean reward (flattered) falls from {free.objective_value_:.{digits}f} to {tree.objective_value_:.{digits}f} "
        f"({tree.status_.value})."
    )
    chosen = tree.predict(halves.judges)
    share = policy_value(chosen, {arm: 1.0}, **halves.options)
    gain = policy_value(chosen, halves.held.rewards, baseline=baseline, **halves.options)
    lost = policy_value(free.predict(halves.judges), halves.held.rewards, baseline=chosen, **halves.options)
    study.show(
        f"On the others it gives {arm} to {share.value:.1%} [{share.lower:.1%}, {share.upper:.1%}], gains "
        f"{gain.value:.{digits}f} [{gain.lower:.{digits}f}, {gain.upper:.{digits}f}] over {baseline} for all, and the "
        f"tree without the limit {lost.value:.{digits}f} [{lost.lower:.{digits}f}, {lost.upper:.{digits}f}] more."
    )
