"""The table that :func:`policytree.cross_val_policy_value` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from policytree.evaluation import Estimate
from policytree.folds import FoldPlan

POLICY, STATUS_QUO, PLUG_IN = "policy tree", "status quo", "plug-in rule"


@dataclass(frozen=True, slots=True, eq=False)
class PolicyValueTable:
    """Held-out value of a learnt policy beside what else one could do.

    Attributes
    ----------
    estimates : mapping of str to Estimate
        Value of every rule, in the outcome's unit: "policy tree", "always <treatment>" for every treatment, "status
        quo" (what people got: the mean outcome) and "plug-in rule" (no tree: everybody gets the treatment whose
        predicted outcome is best), and the rivals by their names.
    differences : mapping of str to Estimate
        The policy tree's value minus each other rule's, paired on the same rows.
    direction : {"maximize", "minimize"}
        Which way outcomes are better; signs are never turned.
    folds : FoldPlan
        Fold each row was held out in.
    policy, plug_in : ndarray of shape (n,)
        Treatment that each rule, learnt without the row's fold, recommends to the row.
    rivals : mapping of str to ndarray of shape (n,)
        The same for every rival; ``policy_difference(a, b, table.rewards)`` compares any two.
    rewards : DataFrame of shape (n, K)
        Rewards of every row, net of treatment costs, by nuisances that saw neither the row nor its cluster.
    trees : tuple
        The fitted tree of every fold (``policy_tree_`` of the estimator, or the estimator if it has none).
    """

    estimates: Mapping[str, Estimate]
    differences: Mapping[str, Estimate]
    direction: str
    folds: FoldPlan = field(repr=False)
    policy: np.ndarray = field(repr=False)
    plug_in: np.ndarray = field(repr=False)
    rivals: Mapping[str, np.ndarray] = field(repr=False)
    rewards: pd.DataFrame = field(repr=False)
    trees: tuple[Any, ...] = field(repr=False)

    def to_frame(self) -> pd.DataFrame:
        """One row per rule: value, standard_error, lower, upper, and difference, difference_standard_error, ... .

        A difference is the policy tree's value minus the row's; NaN in the policy tree's own row.
        """
        columns = ("value", "standard_error", "lower", "upper")
        rows = {}
        for rule, estimate in self.estimates.items():
            row = {column: getattr(estimate, column) for column in columns}
            difference = self.differences.get(rule)
            for column in columns:
                name = "difference" if column == "value" else f"difference_{column}"
                row[name] = np.nan if difference is None else getattr(difference, column)
            rows[rule] = row
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("rule")

    def to_text(self) -> str:
        """Show the table in fixed width, standard errors with two significant digits or more, and say what it is."""
        digits = _decimals([*self.estimates.values(), *self.differences.values()])
        policy = self.estimates[POLICY]
        interval = f"{100 * policy.level:g}% interval"
        rows = {}
        for rule, estimate in self.estimates.items():
            difference = self.differences.get(rule)
            rows[rule] = [
                f"{estimate.value:.{digits}f}",
                f"{estimate.standard_error:.{digits}f}",
                _interval(estimate, digits),
                "" if difference is None else f"{difference.value:+.{digits}f}",
                "" if difference is None else _interval(difference, digits),
            ]
        header = ["value", "std. error", interval, "tree - rule", f"{interval} "]
        table = pd.DataFrame.from_dict(rows, orient="index", columns=header).to_string()
        better = "higher" if self.direction == "maximize" else "lower"
        clusters = f" in {policy.n_clusters:,} clusters" if policy.n_clusters != policy.n else ""
        return (
            f"{table}\n"
            f"Held-out values over {self.folds.n_folds} folds, {policy.n:,} rows{clusters}; {better} is better.\n"
            "Each fold is judged by a tree and nuisance models that were learnt from the other folds."
        )

    def __str__(self) -> str:
        return self.to_text()


def _decimals(estimates: list[Estimate]) -> int:
    """Decimals that show two significant digits of the smallest positive standard error."""
    errors = [e.standard_error for e in estimates if e.standard_error > 0]
    return int(np.clip(1 - np.floor(np.log10(min(errors))), 0, 12)) if errors else 3


def _interval(estimate: Estimate, digits: int) -> str:
    return f"[{estimate.lower:.{digits}f}, {estimate.upper:.{digits}f}]"
