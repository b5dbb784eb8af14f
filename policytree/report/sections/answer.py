"""The answer: which rule to use, the evidence for it, and the warnings of the computation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from policytree.evaluation.formatting import decimals, short_unit
from policytree.evaluation.heterogeneity.global_tests import HeterogeneityTest
from policytree.evaluation.instruments.offer_rule import OfferRule
from policytree.evaluation.leaves.honest import HonestLeaves
from policytree.evaluation.policy_value.gate import SUPPORTED, Gate
from policytree.evaluation.policy_value.rule_names import STATUS_QUO
from policytree.evaluation.policy_value.tables import PolicyValueTable
from policytree.evaluation.policy_value.verdict import Reason, Verdict, label_of
from policytree.report.content import Block, Facts, Section, Table, Words
from policytree.report.material import Described, Material, capitalised
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
    """What a reader sees first: what to do, what it brings, how sure that is, what it assumes, and what counts."""
    values = material.only(PolicyValueTable)
    if values is None:
        return Section("verdict", "Verdict", (Words(NO_VALUE, "lead"), *_facts(material)))
    verdict = spoken(material, values.verdict)
    blocks: list[Block] = [Words(verdict.proposal, "lead")]
    if verdict.gain is not None:
        blocks.append(Facts(_glance(material, values, verdict), large=True))
    blocks += strength_words(verdict)
    blocks += [Words(text, "warning") for text in values.broken_limits()]
    blocks.append(Facts(_in_short(material, values, verdict)))
    return Section("verdict", "Verdict", tuple(blocks))


def strength_words(verdict: Verdict) -> list[Words]:
    """How strong a verdict is: the state of its weakest gate, with the reasons and remedies; then what is assumed."""
    remedies = dict.fromkeys(gate.remedy for gate in verdict.gates if gate.state == verdict.strength and gate.remedy)
    because = f": {verdict.reasons}" if verdict.reasons else ""
    state = capitalised(verdict.strength)
    if verdict.strength == SUPPORTED and verdict.assumption:
        state = "Supported by every check, if the assumption below holds"
    elif verdict.strength == SUPPORTED:
        state = "Supported by every check"
    text = " ".join([f"{state}{because}.", *remedies])
    if verdict.gain is None and verdict.strength == SUPPORTED:
        text += " Where no difference is shown, that is no proof that there is none."
    said = [Words(text, verdict.strength.replace(" ", "-"))]
    if verdict.assumption:
        said.append(Words(f"Assumption, not a finding. {verdict.assumption}", "assumption"))
    return said


@dataclass(frozen=True, slots=True)
class _Amounts:
    """Differences of values in words: of 100 people where outcomes are zeros and ones, else in the outcome's unit.

    Attributes
    ----------
    people : bool
    unit : str
    level : float
    """

    people: bool
    unit: str
    level: float

    def parts(self, difference: Any) -> tuple[str, str]:
        """Size with the word that says which way, and its interval counted in the direction of that word."""
        scale, sign = 100 if self.people else 1, 1 if difference.value >= 0 else -1
        low, high = sorted((sign * scale * difference.lower, sign * scale * difference.upper))
        digits = decimals([(high - low) / 4])
        low, high = (round(end, digits) + 0.0 for end in (low, high))  # no "-0.00"
        interval = f"{100 * self.level:g}% CI {low:,.{digits}f} to {high:,.{digits}f}"
        size = f"{scale * abs(difference.value):,.{digits}f}"
        if self.people:
            return f"{size} {'more' if sign > 0 else 'fewer'} of 100", interval
        return f"{size} {'more' if sign > 0 else 'less'}", interval

    def text(self, difference: Any) -> str:
        """Both in a clause."""
        size, interval = self.parts(difference)
        unit = f" {self.unit}" if self.unit and not self.people else ""
        number, _, word = size.partition(" ")
        return f"{number}{unit} {word} ({interval})"


def _amounts(material: Material, verdict: Verdict) -> _Amounts:
    return _Amounts(counts_people(material), verdict.words.unit, verdict.against_best.level)


def _glance(material: Material, values: PolicyValueTable, verdict: Verdict) -> tuple[tuple[str, str], ...]:
    """Who changes treatment and what that brings, in numbers."""
    gain, pairs, best = verdict.gain, [], verdict.against_best
    assert gain is not None
    amounts = _amounts(material, verdict)
    outcome = material.study.about.outcome
    about = f"people with {outcome}" if amounts.people else f"{amounts.unit or outcome} per person"
    if verdict.changed is not None:
        pairs.append(("people change treatment", f"{100 * verdict.changed:.0f} of 100"))
    size, interval = amounts.parts(gain)
    how = "; allows for the choice among rules" if gain.adjusted else ""
    before = "" if gain.gross is None else f", net of costs; before costs {amounts.text(gain.gross)}"
    pairs.append((f"{about} than {_under(gain.over, verdict)} ({interval}{how}){before}", size))
    if verdict.use_tree and not (best.best == gain.over and len(best.candidates) == 1):
        size, interval = amounts.parts(best)
        shown = "" if best.better else ": not shown better"
        pairs.append((f"{about} than under the best {verdict.words.single}{_named(verdict)} ({interval}){shown}", size))
    if amounts.people and gain.lower * gain.upper > 0:
        changed = 1.0 if verdict.changed is None else verdict.changed
        who = "follow the rule" if verdict.changed is None else "change treatment"
        ends = sorted(changed / abs(end) for end in (gain.lower, gain.upper))
        interval = f"{100 * amounts.level:g}% CI {ends[0]:,.0f} to {ends[1]:,.0f}"
        needed = f"number needed to treat: people who {who} for one {'more' if gain.value > 0 else 'fewer'} with"
        pairs.append((f"{needed} {outcome} ({interval})", f"{changed / abs(gain.value):,.0f}"))
    for further, means in values.further.items():
        if gain.rule in means and gain.over in means:
            mine, theirs = means[gain.rule], means[gain.over]
            digits = decimals([mine.standard_error, theirs.standard_error])
            interval = f"{100 * mine.level:g}% CI {mine.lower:,.{digits}f} to {mine.upper:,.{digits}f}"
            other = f"{theirs.value:,.{digits}f} {_under(gain.over, verdict)}"
            pairs.append((f"mean {further} under the rule ({interval}); {other}", f"{mine.value:,.{digits}f}"))
    return tuple(pairs)


def _under(rule: str, verdict: Verdict) -> str:
    """What a gain is over, behind "than"."""
    if rule == STATUS_QUO:
        return "what people got"
    control = ", the control" if rule == verdict.reference and label_of(rule).lower() != "control" else ""
    return f"if everybody gets {label_of(rule)}{control}"


def _named(verdict: Verdict) -> str:
    """Which single treatment is the best, as far as that is known."""
    best = verdict.against_best
    others = [label_of(rule) for rule in best.candidates if rule != best.best]
    return f", {label_of(best.best)} by its estimate" + (f" ({' or '.join(others)} may be)" if others else "")


def _in_short(material: Material, values: PolicyValueTable, verdict: Verdict) -> tuple[tuple[str, str], ...]:
    """What the first screen says beside the proposal and its numbers: what counts, what does not, and what else is."""
    study, about, amounts, best = (
        material.study,
        material.study.about,
        _amounts(material, verdict),
        verdict.against_best,
    )
    pairs = {"outcome": outcome_words(study)}
    if verdict.reference is not None:
        pairs["compared with"] = "what people got" if verdict.reference == STATUS_QUO else label_of(verdict.reference)
    if verdict.reason in (Reason.NONE_BETTER, Reason.UNCLEAR) and verdict.treatment is not None:
        single = verdict.treatment
        than = f"than {_under(single.over, verdict)}"
        pairs[f"{label_of(single.rule)} for everybody"] = f"{amounts.text(single)} {than}"
    if not verdict.use_tree and verdict.reason is not Reason.UNCLEAR:
        pairs[f"best {verdict.words.single}"] = _named(verdict).removeprefix(", ")
        if best.lower == best.upper == 0.0:
            pairs[f"a {verdict.words.short}"] = "gives everybody that treatment, whichever people it is learnt from"
        else:
            shown = "better" if best.better else "worse" if best.worse else "not shown better"
            pairs[f"a {verdict.words.short}"] = f"{shown} than that: {amounts.text(best)}"
    if verdict.gain is None and verdict.smallest_gain and verdict.reason is not Reason.UNCLEAR:
        scale = 100 if amounts.people else 1
        size = f"{scale * verdict.smallest_gain:,.{decimals([scale * verdict.smallest_gain / 4])}f}"
        unit = " of 100 people" if amounts.people else f" {amounts.unit}".rstrip()
        pairs["power"] = f"80% to show a gain of {size}{unit} by a {verdict.words.short}"
    beside = [name for name in values.further if name != about.outcome]
    shown = f" ({', '.join(beside)}: shown beside, no part of the verdict)" if beside else ""
    costs = f"; values are net of costs ({about.costs})" if about.costs else ", and what treatments cost"
    pairs["not counted"] = f"benefits and harms other than {about.outcome}{shown}{costs}"
    pairs["learnt and judged on"] = f"{values.size()} of {about.source or 'the study'}"
    return tuple(pairs.items())


def outcome_words(study: Described) -> str:
    """What values are, in which unit, and which way is better."""
    unit = f" ({study.about.unit})" if study.about.unit and study.times is None else ""
    return f"{study.value}{unit}; {study.better} is better"


def counts_people(material: Material) -> bool:
    """Whether a value is a share of people: outcomes are zeros and ones, and nothing is subtracted from them."""
    return material.study.counts_people and not material.study.about.costs


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
