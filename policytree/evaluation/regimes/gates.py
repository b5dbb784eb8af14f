"""The gates of a regime's verdict: what can be asked of several decisions without fitting anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from policytree.evaluation.policy_value.gate import SUPPORTED, Gate
from policytree.evaluation.policy_value.gates import assignment_gate, chances_gate, direction_gate, rows_gate
from policytree.evaluation.regimes.rules import is_randomized
from policytree.regimes.course import Course, Decision
from policytree.regimes.stages import Stage
from policytree.study_check.directions import direction_of, name_of
from policytree.weighting.propensities import propensity_matrix
from policytree.weighting.study_data import StudyData


def regime_gates(course: Course, stages: Sequence[Stage], direction: str | None) -> tuple[Gate, ...]:
    """Direction, assignment, stated probabilities of every decision, and whether people are enough to estimate others.

    Parameters
    ----------
    course : Course
    stages : sequence of Stage
        The same decisions as the user gave them: their outcomes may have names.
    direction : {"maximize", "minimize"} or None
        As somebody said it; None if nobody did.
    """
    drawn = is_randomized(course)
    named = dict.fromkeys(name for stage in stages if (name := name_of(stage.Y)) is not None)
    people = _people(course, course.decisions[0])
    gates = [direction_gate(direction_of(direction, *named)), assignment_gate(people, drawn, drawn)]
    gates += [_chances_gate(course, each) for each in course.decisions if each.propensity is not None]
    if not drawn:
        gates.append(rows_gate(people))
    return tuple(gates)


def _chances_gate(course: Course, decision: Decision) -> Gate:
    """Of those who were eligible and got a known treatment."""
    seen = _people(course, decision)
    rows = np.flatnonzero(decision.arm >= 0)
    gate = chances_gate(seen, propensity_matrix(decision.chances(rows), seen.n, seen.treatments))
    if gate.state == SUPPORTED:
        return gate
    return replace(gate, reason=f"at {decision.name} {gate.reason}")


def _people(course: Course, decision: Decision) -> StudyData:
    """Those of a decision whose treatment is known, as a study of that decision alone."""
    rows = np.flatnonzero(decision.arm >= 0)
    weight, groups, strata = (
        None if each is None else each[rows] for each in (course.sample_weight, course.groups, course.strata)
    )
    none = np.zeros(len(rows))  # gates ask nothing of outcomes
    return StudyData(none, decision.arm[rows], decision.treatments, weight, groups, course.index[rows], strata)
