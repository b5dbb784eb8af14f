"""The evidence for a regime: the verdict, held-out values, and who followed which sequence of treatments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from policytree.evaluation.policy_value.gate import SUPPORTED, Gate
from policytree.evaluation.policy_value.gates import rewards_gate
from policytree.evaluation.regimes.rules import REGIME
from policytree.regimes.course import Course
from policytree.regimes.treatment_regime import TreatmentRegime
from policytree.report.content import Block, Facts, Fold, Section, Table, Words
from policytree.report.material import capitalised
from policytree.report.regime_material import RegimeMaterial
from policytree.report.sections.first_screen import Told, first_screen
from policytree.report.sections.question import TONES
from policytree.report.sections.values import picture_of_values, rules_table
from policytree.study_check import KNOWN, StudyCheck, check_rewards
from policytree.weighting.study_data import REFUSE, WEIGHT, StudyData

NO_VALUE = "None: without held-out values nobody knows whether this regime is worth using."
NOT_COMPUTED = (
    "Not computed (--no-value). In Python, pass the table of cross_val_regime_value: RegimeReport(regime, stages, "
    "values)."
)
MOST_SEQUENCES = 16  # in the table; others are folded


def score_checks(regime: TreatmentRegime, course: Course) -> list[tuple[str, StudyCheck]]:
    """Checks of the scores of every stage for suspicious values: (name of the stage, what was found).

    Left out are stages at which not everybody may get every treatment, and with joint search all but the last, whose
    outcomes are those of backward induction.
    """
    out = []
    last = len(course) - 1
    for s, (each, model) in enumerate(zip(course.decisions, regime.stages_, strict=True)):
        if each.allowed is not None or (regime.joint_value_ is not None and s < last):
            continue
        rows, rewards = np.flatnonzero(each.eligible), model.reward_estimator_
        later = regime.scores_.iloc[:, s + 1].to_numpy() if s < last else np.zeros(course.n)
        outcome = (each.outcome + later)[rows]
        parts = (None if part is None else part[rows] for part in (course.groups, course.sample_weight))
        groups, weight = parts
        known = REFUSE if not np.isnan(outcome).any() else WEIGHT
        data = StudyData.of(outcome, each.given(rows), groups=groups, sample_weight=weight, missing_outcome=known)
        found = check_rewards(
            rewards.rewards_, data, propensity=rewards.propensity_, min_propensity=rewards.min_propensity,
            by_chance=KNOWN if each.propensity is not None else "",
        )  # fmt: skip
        out.append((each.name, found))
    return out


def gates(checks: Sequence[tuple[str, StudyCheck]]) -> tuple[Gate, ...]:
    """Whether the scores of all stages support a verdict."""
    found = [(name, rewards_gate(check)) for name, check in checks]
    failing = [replace(gate, reason=f"at {name}, {gate.reason}") for name, gate in found if gate.state != SUPPORTED]
    return tuple(failing or [gate for _, gate in found[:1]])


def check_section(checks: Sequence[tuple[str, StudyCheck]]) -> Section | None:
    """List suspicious findings about the scores of any stage; None if there are none."""
    found = tuple(
        Words(f"{finding.severity.capitalize()}, at {name}: {finding}", TONES[finding.severity])
        for name, check in checks
        for finding in check.findings
    )
    return Section("check", "Check of the scores", found) if found else None


def verdict_section(material: RegimeMaterial) -> Section:
    """The verdict, the values of all rules as a picture, and what else bears on it."""
    values, about = material.values, material.about
    if values is None:
        return Section("verdict", "Verdict", (Words(NO_VALUE, "lead"),))
    judged = f"{values.estimates[REGIME].n:,} people; {values.validation.describe(len(values.scores))}"
    facts = []
    if values.against_once is not None:
        facts.append(("decide once, or again?", values.against_once_text()))
    if about.warnings:
        facts.append(("mind", f"{len(about.warnings)} warning{'s' * (len(about.warnings) > 1)}, see Warnings"))
    verdict = replace(values.verdict, in_words=material.in_words)
    asks = any(tree.node_count > 1 for _, tree in material.trees)
    outcome = f"{material.aim_value}, summed over all stages; {material.better} is better"
    told = Told(
        verdict, material.amounts, about, outcome, judged, about.outcome, {}, asks, coverage=values.validation.caution
    )
    picture = picture_of_values(values, material.value, about.unit, None)
    blocks = [Words(verdict.proposal, "lead"), *first_screen(told), picture]
    return Section("verdict", "Verdict", (*blocks, Facts(tuple(facts))) if facts else tuple(blocks))


def values_section(material: RegimeMaterial) -> Section:
    """Value of every rule with its interval, and on which people."""
    values = material.values
    if values is None:
        return Section("values", "Value, held out", (Words(NOT_COMPUTED),))
    sign = "above" if material.direction == "maximize" else "below"
    about = (
        f"{capitalised(material.value)} of everybody, summed over all stages, if they were treated by the rule; "
        f"{material.better} is better, and a difference {sign} zero favours the regime. Status quo: what people "
        "got. Decide at one stage only: a rule there, and what people got at the others."
    )
    table = rules_table(values, material.about.unit, own=REGIME, short="regime")
    return Section("values", "Value, held out", (table, Words(" ".join((about, *values.statements())))))


def sequences_section(material: RegimeMaterial) -> Section:
    """How many people followed each fixed sequence of treatments, and what they are worth as evidence."""
    values, regime = material.values, material.regime
    frame = regime.sequences_ if values is None else values.sequences
    frame = frame.sort_values("people", ascending=False, kind="stable")
    how = (
        "by probabilities that were known, or estimated without these people"
        if values is not None
        else "by the probabilities of the fit"
    )
    lead = (
        "A sequence is followed by everybody who got its treatments wherever there was something to decide, so that "
        "people who left early follow several. They are weighted by one over the product of the probabilities of what "
        f"they got, {how}. Where the effective sample size is small, the value of the sequence comes from outcome "
        "models."
    )
    blocks: list[Block] = [Words(lead), _table(frame.iloc[:MOST_SEQUENCES], "Who followed which sequence")]
    if len(rest := frame.iloc[MOST_SEQUENCES:]):
        blocks.append(Fold(f"{len(rest)} more sequences", (_table(rest, "Sequences that fewer people followed"),)))
    if values is not None and values.unknown:
        blocks.append(Words(f"Nobody got {'; '.join(values.unknown)} to the end: nothing is known of that.", "warning"))
    return Section("support", "Overlap of sequences", tuple(blocks))


def _table(frame: pd.DataFrame, caption: str) -> Table:
    columns = {
        "sequence": "{sequence}", "people": "{people:,.0f}", "share": "{share:.1%}",
        "effective size": "{effective_sample_size:,.0f}", "largest weight": "{largest_weight:,.1f}",
    }  # fmt: skip
    return Table.of(frame, columns, caption)
