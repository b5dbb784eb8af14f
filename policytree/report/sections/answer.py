"""The answer: which rule to use, the evidence for it, and the warnings of the computation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

import numpy as np

from policytree.evaluation.formatting import bounds_text, decimals, short_unit
from policytree.evaluation.heterogeneity.global_tests import HeterogeneityTest
from policytree.evaluation.instruments.offer_rule import OfferRule
from policytree.evaluation.leaves.honest import HonestLeaves
from policytree.evaluation.policy_value.gate import SUPPORTED, Gate
from policytree.evaluation.policy_value.rule_names import STATUS_QUO
from policytree.evaluation.policy_value.tables import PolicyValueTable
from policytree.evaluation.policy_value.verdict import Gain, Verdict
from policytree.report.content import Block, Facts, Section, Table, Words
from policytree.report.material import Material, capitalised
from policytree.report.sections.tree import gives_all_the_same
from policytree.report.sections.values import values_picture
from policytree.trees.text import action_label, rule_sentence

NO_VALUE = "None: without held-out values nobody knows whether this tree is worth using."


def spoken(material: Material, verdict: Verdict) -> Verdict:
    """A verdict with the outcome's unit, and the rule in words as the report shows the tree."""
    words = replace(verdict.words, unit=short_unit(material.study.about.unit))
    in_words = rule_sentence(material.tree) if verdict.in_words else ""
    return replace(verdict, words=words, in_words=in_words)


def verdict_section(material: Material) -> Section:
    """The verdict, how strong it is and why, and its numbers: what a reader sees first."""
    values = material.only(PolicyValueTable)
    if values is None:
        return Section("verdict", "Verdict", (Words(NO_VALUE, "lead"), *_facts(material)))
    verdict = spoken(material, values.verdict)
    blocks = [Words(verdict.recommendation, "lead"), *_glance(material, values, verdict), strength_words(verdict)]
    blocks += [Words(text, "warning") for text in values.broken_limits()]
    return Section("verdict", "Verdict", tuple(blocks))


def strength_words(verdict: Verdict) -> Words:
    """How strong a verdict is: the state of its weakest gate, with the reasons and what to do about them."""
    remedies = dict.fromkeys(gate.remedy for gate in verdict.gates if gate.state == verdict.strength and gate.remedy)
    because = f": {verdict.reasons}" if verdict.reasons else ""
    if verdict.gain is None and verdict.strength == SUPPORTED:
        text = f"The data pass every check{because}. Where no difference is shown, that is no proof that there is none."
        return Words(text, "supported")
    text = " ".join([f"{capitalised(verdict.strength)}{because}.", *remedies])
    return Words(text, verdict.strength.replace(" ", "-"))


def _glance(material: Material, values: PolicyValueTable, verdict: Verdict) -> list[Block]:
    """Who changes treatment and what that brings, in numbers; nothing where no rule is recommended."""
    gain, pairs = verdict.gain, []
    level = f"{100 * verdict.against_best.level:g}% CI"
    if gain is None:
        return []
    over = f"than under {gain.over.removeprefix('always ')}" if gain.over != STATUS_QUO else "than what people got"
    if verdict.changed is not None:
        pairs.append(("people change treatment", f"{100 * verdict.changed:.0f} of 100"))
    if _counts_people(material, gain):
        more = "more" if gain.value > 0 else "fewer"
        low, high = sorted((abs(gain.lower), abs(gain.upper)))
        about = f"people with {material.study.about.outcome}"
        least, most = (gain.lower, gain.upper) if gain.value > 0 else (-gain.upper, -gain.lower)  # as the word counts
        interval = f"{level} {100 * least:.0f} to {100 * most:.0f}"
        pairs.append((f"{about} {over} ({interval})", f"{100 * abs(gain.value):.0f} {more} of 100"))
        if gain.lower * gain.upper > 0:
            needed = (
                f"number needed to treat: people who follow the rule for one {more} with {material.study.about.outcome}"
            )
            interval = f"{level} {1 / high:,.0f} to {1 / low:,.0f}"
            pairs.append((f"{needed} ({interval})", f"{1 / abs(gain.value):,.0f}"))
    else:
        per_person = f"per person {over} ({verdict.interval(gain)})"
        pairs.append((per_person, verdict.size(gain)))
    for outcome, means in values.further.items():
        if gain.rule in means and gain.over in means:
            mine, theirs = means[gain.rule], means[gain.over]
            digits = decimals([mine.standard_error, theirs.standard_error])
            said = (
                f"mean {outcome} ({level} {bounds_text(mine.lower, mine.upper, digits)}); {theirs.value:,.{digits}f} "
            )
            pairs.append((f"{said}{over.removeprefix('than ')}", f"{mine.value:,.{digits}f}"))
    return [Facts(tuple(pairs), large=True)]


def _counts_people(material: Material, gain: Gain) -> bool:
    """Whether a gain is a share of people: outcomes are zeros and ones, and nothing is subtracted from them."""
    seen = material.study.observed
    if gain.gross is not None or material.study.about.costs or material.study.times is not None:
        return False
    return bool(np.isin(seen.y[np.isfinite(seen.y)], (0.0, 1.0)).all())


def evidence_section(material: Material) -> Section | None:
    """The values of all rules, what else was asked, and every gate; None without held-out values."""
    values = material.only(PolicyValueTable)
    if values is None:
        return None
    blocks: list[Block] = [values_picture(material, values), *_facts(material)]
    if values.verdict.gates:
        blocks.append(gates_table(values.verdict.gates))
    return Section("evidence", "Evidence", tuple(blocks))


def _facts(material: Material) -> list[Block]:
    """The evidence, a line each."""
    values, test = material.only(PolicyValueTable), material.only(HeterogeneityTest)
    facts = []
    if values is not None:
        facts.append(("judged by", f"{values.size()}; {values.validation.describe(values.n_repeats)}"))
    elif (honest := material.only(HonestLeaves)) is not None:
        facts.append(("judged by", f"{honest.value.n:,} rows that did not choose the tree"))
    if values is not None and gives_all_the_same(material):
        everybody = action_label(material.tree, 0)
        facts.append(
            ("the tree", f"No question is worth asking: the best tree on these rows gives everybody {everybody}.")
        )
    if test is not None:
        facts.append(("do effects differ?", str(test)))
    if values is not None:
        for other in values.second_opinions:
            said = replace(other, verdict=spoken(material, other.verdict)).compared_with(values.verdict)
            facts.append((f"other models of {other.about}", said))
    if (offers := material.only(OfferRule)) is not None and offers.values is not None:
        facts.append(("what to offer", f"{capitalised(offers.costs_text())}: {offers.values.verdict}"))
    check = material.study.check
    heard = len(material.study.about.warnings) + len(check.of("serious")) + len(check.of("warning"))
    if heard:
        facts.append(("mind", f"{heard} warning{'s' if heard > 1 else ''}, see Data check and Warnings"))
    return [Facts(tuple(facts))] if facts else []


def gates_table(gates: Sequence[Gate]) -> Table:
    """What a verdict rests on: every gate, those that it passed too."""
    said = [" ".join(part for part in (f"{capitalised(gate.reason)}.", gate.remedy) if part) for gate in gates]
    cells = tuple((gate.name, gate.state, text) for gate, text in zip(gates, said, strict=True))
    title = "What the verdict rests on"
    return Table((title.lower(), "state", "what was found"), cells, title, numbers=tuple(map(asdict, gates)))


def warnings_section(material: Material) -> Section | None:
    """The warnings of the computation."""
    heard = material.study.about.warnings
    return Section("warnings", "Warnings", tuple(Words(text, "warning") for text in heard)) if heard else None
