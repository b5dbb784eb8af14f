"""Values of settled rules on rows that had no part in them, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from policytree.common.docstrings import shares_documentation
from policytree.common.row_labels import aligns_rows
from policytree.common.shared_arguments import JUDGED
from policytree.common.typing import Column, Table
from policytree.data.controls import recognised_control
from policytree.evaluation.estimates import Estimate
from policytree.evaluation.formatting import decimals
from policytree.evaluation.inference.best_arm import BestComparison, compare_with_best_arm
from policytree.evaluation.inputs import check_direction, known_label, policy_scores, reward_frame
from policytree.evaluation.policy_value.rule_names import AS_RANDOMIZED, POLICY, STATUS_QUO
from policytree.evaluation.policy_value.tables import rule_frame
from policytree.evaluation.policy_value.values import checked_estimate
from policytree.evaluation.policy_value.verdict import Rules, Verdict, decide
from policytree.exceptions import InputError


@dataclass(frozen=True, slots=True, eq=False)
class RuleValues:
    """Value of one fixed rule beside every single treatment, the status quo and other fixed rules.

    Attributes
    ----------
    verdict : Verdict
        Which rule to use, and why.
    estimates : mapping of str to Estimate
        Value of every rule in the outcome's unit, with its interval.
    differences : mapping of str to Estimate
        The rule's value minus each other one's, paired on the same rows.
    against_best : BestComparison
        The rule against the best single treatment, which is not known beforehand.
    direction : {"maximize", "minimize"}
    """

    verdict: Verdict
    estimates: Mapping[str, Estimate] = field(repr=False)
    differences: Mapping[str, Estimate] = field(repr=False)
    against_best: BestComparison
    direction: str

    @property
    def digits(self) -> int:
        """Decimals that show two significant digits of the smallest standard error."""
        return decimals(e.standard_error for e in [*self.estimates.values(), *self.differences.values()])

    def to_frame(self) -> pd.DataFrame:
        """One row per rule: value, standard_error, lower, upper, and the same of the rule's advantage over it."""
        return rule_frame(self.estimates, self.differences)


@aligns_rows
@shares_documentation(JUDGED)
def compare_rules(
    policy: Column | Table | Any,
    rewards: Table,
    status_quo: Column,
    *,
    others: Mapping[str, Any] | None = None,
    control: Any = None,
    randomized: bool = False,
    before_costs: tuple[Table, Column] | None = None,
    direction: str = "maximize",
    groups: Column | None = None,
    sample_weight: Column | None = None,
    level: float = 0.95,
) -> RuleValues:
    """Value of a fixed rule on new rows, compared with every single treatment, the status quo and other fixed rules.

    Only the rewards are estimated from these rows, so the intervals are those of means (of clusters). They are valid
    only if none of the rules was fitted to these rows.

    Parameters
    ----------
    policy : array of shape (n,), one label, or array of shape (n, K)
        The recommended treatment of every row, one treatment for all, or the probability of each treatment.
    rewards : DataFrame of shape (n, K)
        Doubly robust scores of the rows, net of what treatments cost.
    status_quo : array of shape (n,)
        The outcome of every row under the treatment that it received, net of costs.
    others : mapping of str to policies, optional
        Further rules by name.
    control : optional
        Label of the treatment that a rule must beat to be recommended. By default the only treatment that is named like
        a control; else the status quo or, where treatments were drawn by lot, none: then treatments are compared with
        each other.
    randomized : bool
        Whether treatments were drawn by lot: nobody would get that mixture, which is then called "as randomised".
    before_costs : (DataFrame of shape (n, K), array of shape (n,)), optional
        ``rewards`` and ``status_quo`` before costs; the verdict then states gains before costs as well.
    direction : {"maximize", "minimize"}
        Whether larger or smaller outcomes are better.

    Returns
    -------
    RuleValues

    Raises
    ------
    InputError
        If a rule names a treatment without rewards, shapes differ, values are missing or infinite, there are fewer than
        two clusters, or another rule has a name that the table has already.
    """
    check_direction(direction)
    table = reward_frame(rewards)
    arms = {f"always {label}": label for label in table.columns}
    own = AS_RANDOMIZED if randomized else STATUS_QUO
    taken = {POLICY, own, *arms} & set(others or {})
    if taken:
        raise InputError(f"others holds {min(taken)!r}, which is the name of another rule of the table.")
    rules = {POLICY: policy, **arms, **(others or {})}
    scores = _scores(rules, table, status_quo, own)
    labels = table.columns.tolist()
    control = recognised_control(labels) if control is None else known_label(control, labels, "control")

    def estimate(values: np.ndarray) -> Estimate:
        return checked_estimate(values, groups, sample_weight, level)

    def difference(a: str, b: str) -> Estimate:
        return estimate(scores[a] - scores[b])

    gross = None
    if before_costs is not None:
        before = _scores(rules, reward_frame(before_costs[0]), before_costs[1], own)

        def gross(a: str, b: str) -> Estimate:
            return estimate(before[a] - before[b])

    differences = {name: difference(POLICY, name) for name in scores if name != POLICY}
    best = compare_with_best_arm(tuple(arms), differences, difference, direction)
    reference = None if control is None else f"always {control}"
    named = Rules(POLICY, None if randomized else STATUS_QUO, tuple(arms), reference)
    verdict = decide(best, named, difference, direction, gross)
    return RuleValues(verdict, {k: estimate(v) for k, v in scores.items()}, differences, best, direction)


def _scores(rules: Mapping[str, Any], rewards: pd.DataFrame, status_quo: Column, own: str) -> dict[str, np.ndarray]:
    """The reward of every row under every rule."""
    scores = {name: policy_scores(rule, rewards, name) for name, rule in rules.items()}
    return scores | {own: np.asarray(status_quo, dtype=np.float64)}
