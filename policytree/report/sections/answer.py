"""The answer: which rule to use, the evidence for it, and the warnings of the computation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

import numpy as np

from policytree.evaluation.formatting import Form
from policytree.evaluation.heterogeneity.global_tests import HeterogeneityTest
from policytree.evaluation.instruments.offer_rule import OfferRule
from policytree.evaluation.leaves.honest import HonestLeaves
from policytree.evaluation.policy_value.gate import Gate
from policytree.evaluation.policy_value.tables import PolicyValueTable
from policytree.evaluation.policy_value.verdict import Verdict
from policytree.report.amounts import amounts_of
from policytree.report.content import Block, Facts, Section, Table, Words
from policytree.report.material import Material, capitalised
from policytree.report.sections.first_screen import Told, first_screen
from policytree.report.sections.tree import gives_all_the_same, unsure_people
from policytree.report.sections.values import values_picture
from policytree.trees.text import action_label, rule_sentence

NO_VALUE = "None: without held-out values nobody knows whether this tree is worth using."


def spoken(material: Material, verdict: Verdict) -> Verdict:
    """A verdict with the outcome's unit, and the rule in words as the report shows the tree."""
    words = replace(verdict.words, unit=material.study.short_unit)
    in_words = rule_sentence(material.tree, material.study.about.units) if verdict.in_words else ""
    return replace(verdict, words=words, in_words=in_words)


def verdict_section(material: Material) -> Section:
    """Build the first section: the action to take, its gain, certainty and assumptions, and what counts."""
    values = material.only(PolicyValueTable)
    if values is None:
        return Section("verdict", "Verdict", (Words(NO_VALUE, "lead"), *_facts(material)))
    verdict = spoken(material, values.verdict)
    study = material.study
    unsure, tree = unsure_people(material) if verdict.use_tree else None, material.tree
    given = tuple(sorted({action_label(tree, int(leaf)) for leaf in np.flatnonzero(tree.is_leaf)}))
    told = Told(
        verdict, amounts_of(material, verdict), study.counted, f"{study.aim_value}; {study.better} is better",
        f"{values.size()} of {study.about.source or 'the study'}", study.met, values.further,
        not gives_all_the_same(material), given, tuple(values.broken_limits()), unsure,
        values.validation.caution,
    )  # fmt: skip
    return Section("verdict", "Verdict", (Words(verdict.proposal, "lead"), *first_screen(told)))


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
        facts.append(("the tree", f"The best tree on these rows asks nothing: it gives everybody {everybody}."))
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
    """Tabulate every gate of a verdict, those that it passed too."""
    columns: dict[str, Form] = {
        "check": "{name}", "state": "{state}",
        "what was found": lambda gate: f"{capitalised(gate['reason'])}. {gate['remedy']}".rstrip(),
    }  # fmt: skip
    return Table.of(map(asdict, gates), columns, "Checks behind the verdict")


def warnings_section(material: Material) -> Section | None:
    """The warnings of the computation."""
    heard = material.study.about.warnings
    return Section("warnings", "Warnings", tuple(Words(text, "warning") for text in heard)) if heard else None
