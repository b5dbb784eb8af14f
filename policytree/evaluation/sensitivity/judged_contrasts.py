"""Subjects of a sensitivity analysis: a fixed rule, or the learnt rules of a held-out table, by repetitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from policytree.common.validation import arm_column, group_codes, weights
from policytree.evaluation.inputs import refuse_instrument
from policytree.evaluation.policy_value.tables import PolicyValueTable
from policytree.evaluation.sensitivity.contrasts import Contrast, make_contrast
from policytree.evaluation.sensitivity.repeated_bounds import Repetitions
from policytree.exceptions import InputError


@dataclass(frozen=True, slots=True, eq=False)
class JudgedContrasts:
    """One contrast per repetition: the same rows, clusters and weights, the rules learnt from other folds.

    Attributes
    ----------
    contrasts : tuple of Contrast
        A single one for a fixed rule, a split or sequential validation.
    n_folds : int
        Of every repetition; 1 for a fixed rule.
    held_out_by : str
        How the rules of a table were kept from the rows that judge them, in words; empty for a fixed rule.
    """

    contrasts: tuple[Contrast, ...]
    n_folds: int = 1
    held_out_by: str = ""

    @property
    def first(self) -> Contrast:
        """Contrast of the first repetition; its rows, clusters and weights are those of all."""
        return self.contrasts[0]

    def repetitions(self, level: float) -> Repetitions:
        """How their bounds are put together."""
        used = self.first.clusters[self.first.weight > 0]
        return Repetitions(self.n_folds, level, len(np.unique(used)) - 1)


def held_out_note(held_out_by: str) -> list[str]:
    """A line on whose bounds these are; none for a fixed rule."""
    return [f"By {held_out_by}. Bounds are of rules learnt without the rows they are judged on."] if held_out_by else []


def judged_contrasts(
    policy: Any, Y, T, propensity, *, regression=None, baseline=None, groups=None, sample_weight=None, held_out=False
) -> JudgedContrasts:
    """Check the arguments of a sensitivity analysis, and encode one contrast of rules a repetition.

    ``policytree.common.shared_arguments.SENSITIVITY`` describes the arguments; ``propensity`` and ``regression`` are
    predictions for every row and treatment, (n, K).

    Raises
    ------
    InputError
        If an argument cannot be used, too few rows or clusters have weight, the rows are not those of the table, or the
        policy and the baseline treat everybody alike.
    """
    if isinstance(baseline, PolicyValueTable):
        raise InputError("baseline must be a fixed rule, such as one treatment for all; got a table of learnt rules.")
    given = {"regression": regression, "baseline": baseline, "groups": groups, "held_out": held_out}
    given["sample_weight"] = sample_weight
    if isinstance(policy, PolicyValueTable):
        rules, validation = _rules(policy, T), policy.validation
        given |= _rows_of(policy, groups, sample_weight)
        contrasts = tuple(make_contrast(rule, Y, T, propensity, **given) for rule in rules)
        found = JudgedContrasts(contrasts, validation.plans[0].n_folds, validation.describe(policy.n_repeats))
    else:
        found = JudgedContrasts((make_contrast(policy, Y, T, propensity, **given),))
    if baseline is not None and not any(c.change[c.weight > 0].any() for c in found.contrasts):
        raise InputError("policy and baseline treat everybody alike, so there is nothing to compare.")
    return found


def _rules(table: PolicyValueTable, T) -> list[np.ndarray]:
    """Treatment of every row by the rules of every repetition; rows that were not judged get anything."""
    seen = table.observed
    refuse_instrument(seen, "a bound on hidden confounding")
    if seen.study is not None:
        raise InputError(
            "The table was made for a target, of whose people no outcome is seen; bounds for hidden confounding are of "
            "the study: pass a table without target, or use transport_sensitivity."
        )
    received = arm_column(T, table.observed.treatments).to_numpy()
    if len(received) != seen.n or not (received == seen.treatments[seen.arm]).all():
        raise InputError(
            f"T holds other rows than those of the table ({seen.n:,}); pass the Y and T that cross_val_policy_value "
            "got, with propensity and regression of the same rows."
        )
    rules = []
    for repetition in table.repetitions:
        rule = np.full(seen.n, repetition.policy[0], dtype=repetition.policy.dtype)
        rule[table.judged] = repetition.policy
        rules.append(rule)
    return rules


def _rows_of(table: PolicyValueTable, groups, sample_weight) -> dict[str, Any]:
    """Clusters and weights, the table's own unless given; rows that were not judged have no weight."""
    seen, own = table.observed, table.observed.clusters
    if groups is not None:
        codes = group_codes(groups, seen.n)
        assert codes is not None
        pairs = len(np.unique(np.column_stack([codes, own]), axis=0))
        if not pairs == len(np.unique(codes)) == len(np.unique(own)):
            raise InputError("groups are other clusters than those of the table; leave them out, its own are used.")
    weight = weights(sample_weight, seen.n)
    weight = seen.weight if weight is None else weight
    judged = np.zeros(seen.n)
    judged[table.judged] = weight[table.judged]
    kept = sample_weight is None and seen.sample_weight is None and len(table.judged) == seen.n
    return {"groups": seen.groups, "sample_weight": None if kept else judged, "held_out": True}
