"""The rules that a regime is judged beside, by their names in the table of values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from policytree.evaluation.policy_value.rule_names import AS_RANDOMIZED, STATUS_QUO
from policytree.evaluation.regimes.sequential import ARM, OBSERVED, ONCE, Q_LEARNING, TREE, WEIGHTED, Rule, Rules
from policytree.regimes.course import Course
from policytree.regimes.sequences import sequence_name, sequences

REGIME, Q_RULE, WEIGHTED_TREES = "regime", "plug-in rule (Q-learning)", "weighted trees (IPW)"


def is_randomized(course: Course) -> bool:
    """Whether treatments of all stages were drawn by lot: their probabilities are given."""
    return all(each.propensity is not None for each in course.decisions)


def only_at(name: str) -> str:
    """Name the rule that decides at one stage only."""
    return f"decide at {name} only"


def rules_to_judge(course: Course, asked: Any, baselines: bool) -> dict[str, Rules]:
    """One rule per stage, by name: the regime, fixed sequences, what people got, one decision only, greedy rules.

    Parameters
    ----------
    course : Course
    asked : list of sequences of labels, optional
        Fixed sequences; see :func:`policytree.regimes.sequences.sequences`.
    baselines : bool
        Whether to learn Q-learning's rule and trees on inverse probability weights as well.
    """
    n = len(course)
    out: dict[str, Rules] = {REGIME: (Rule(TREE),) * n}
    for codes in sequences(course, asked):
        out[f"always {sequence_name(course, codes)}"] = tuple(Rule(ARM, k) for k in codes)
    out[AS_RANDOMIZED if is_randomized(course) else STATUS_QUO] = (Rule(OBSERVED),) * n
    if n > 1:
        for s, each in enumerate(course.decisions):
            decided = Rule(TREE) if s == n - 1 else Rule(ONCE)
            out[only_at(each.name)] = tuple(decided if r == s else Rule(OBSERVED) for r in range(n))
    if baselines:
        out[Q_RULE] = (Rule(Q_LEARNING),) * n
        if not any(np.isnan(each.outcome).any() for each in course.decisions):
            out[WEIGHTED_TREES] = (Rule(WEIGHTED),) * n
    return out


def fixed_sequences(rules: Mapping[str, Rules]) -> tuple[str, ...]:
    """Names of the rules that give everybody the same sequence."""
    return tuple(name for name, each in rules.items() if all(rule.kind == ARM for rule in each))


def single_decisions(rules: Mapping[str, Rules]) -> tuple[str, ...]:
    """Names of the rules of somebody who decides at one stage only."""
    return tuple(
        name for name, each in rules.items() if len(each) > 1 and sum(r.kind == OBSERVED for r in each) == len(each) - 1
    )
