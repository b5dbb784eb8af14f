"""The first screen, for a director: a rule's gain, certainty and assumptions, what counts and what does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from policytree.evaluation.formatting import decimals
from policytree.evaluation.inference.step_down import Ranking
from policytree.evaluation.policy_value.gate import ASSIGNMENT, HIDDEN, SUPPORTED, Gate
from policytree.evaluation.policy_value.verdict import Reason, Verdict, label_of
from policytree.report.amounts import Amounts, is_control, over_words, rule_words
from policytree.report.content import Block, Facts, Words
from policytree.report.described import About
from policytree.report.material import capitalised

IN_FULL = (ASSIGNMENT, HIDDEN)  # gates that say how far a reader may believe effects


@dataclass(frozen=True, slots=True)
class Told:
    """Material of a first screen.

    Attributes
    ----------
    verdict : Verdict
    amounts : Amounts
    about : About
    outcome : str
        Name of values, their unit, and which way is better.
    judged : str
        On how many rows of which data.
    met : str
        Event that people are counted with, where outcomes are zeros and ones.
    further : mapping of str to mapping of str to Estimate
        Means of other outcomes under every rule.
    asks : bool
        Whether the tree of all rows asks anything; refits may not.
    """

    verdict: Verdict
    amounts: Amounts
    about: About
    outcome: str
    judged: str
    met: str
    further: Mapping[str, Mapping[str, Any]]
    asks: bool


def first_screen(told: Told, broken: Sequence[Words] = ()) -> list[Block]:
    """All that stands below the proposal; ``broken``: limits that the rule does not keep."""
    glance = [Facts(_glance(told), large=True)] if told.verdict.gain is not None else []
    return [*glance, *_strength(told.verdict), *broken, Facts(_in_short(told))]


def _strength(verdict: Verdict) -> list[Words]:
    """How strong a verdict is: the state of its weakest gate, with the reasons and remedies; then what is assumed."""
    state = capitalised(verdict.strength)
    weakest = [gate for gate in verdict.gates if gate.state == verdict.strength]
    if verdict.strength == SUPPORTED:
        text = " ".join(
            [f"{state}{', if the assumption below holds' if verdict.assumption else ''}.", *_passed(weakest)]
        )
        if verdict.gain is None and verdict.reason is not Reason.STATUS_QUO_BETTER:
            text += " Where no difference is shown, that is no proof that there is none."
    else:
        text = " ".join(
            [f"{state}: {verdict.reasons}.", *dict.fromkeys(gate.remedy for gate in weakest if gate.remedy)]
        )
    said = [Words(text, verdict.strength.replace(" ", "-"))]
    if verdict.assumption:
        said.append(Words(f"Assumption, not a finding. {verdict.assumption}", "assumption"))
    return said


def _passed(gates: Sequence[Gate]) -> list[str]:
    """Gates that were passed, by their names; in full those that say how far a reader may believe effects."""
    named = [gate.name for gate in gates if gate.name not in IN_FULL]
    full = [f"{capitalised(gate.reason)}." for gate in gates if gate.name in IN_FULL]
    checks = [f"These checks found nothing against it: {', '.join(named)} (see Evidence)."] if named else []
    return [*full, *checks]


def _glance(told: Told) -> tuple[tuple[str, str], ...]:
    """Who changes treatment and what that brings, in numbers."""
    verdict, amounts, outcome = told.verdict, told.amounts, told.about.outcome
    gain, best, pairs = verdict.gain, verdict.against_best, []
    assert gain is not None
    about = f"people with {told.met}" if amounts.people else f"{amounts.unit or outcome} per person"
    if verdict.changed is not None:
        pairs.append(
            (f"people change treatment, compared with {rule_words(gain.over)}", f"{100 * verdict.changed:.0f} of 100")
        )
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
        pairs.append((f"{needed} {told.met} ({interval})", f"{changed / abs(gain.value):,.0f}"))
    for further, means in told.further.items():
        if gain.rule in means and gain.over in means:
            mine, theirs = means[gain.rule], means[gain.over]
            digits = decimals([mine.standard_error, theirs.standard_error])
            interval = f"{100 * mine.level:g}% CI {mine.lower:,.{digits}f} to {mine.upper:,.{digits}f}"
            other = f"{theirs.value:,.{digits}f} {_under(gain.over, verdict)}"
            pairs.append((f"mean {further} under the rule ({interval}); {other}", f"{mine.value:,.{digits}f}"))
    return tuple(pairs)


def _under(rule: str, verdict: Verdict) -> str:
    """Name the comparison of a gain, behind "than"."""
    return over_words(rule) + (", the control" if is_control(rule, verdict) else "")


def _named(verdict: Verdict) -> str:
    """Which single treatment is the best, as far as that is known."""
    best = verdict.against_best
    others = [label_of(rule) for rule in best.candidates if rule != best.best]
    return f", {label_of(best.best)} by its estimate" + (f" ({' or '.join(others)} may be)" if others else "")


def _ranked(found: Ranking) -> str:
    """Which treatment has the best estimate, what it is shown better than, and how to ask more of the rows."""
    better, same = (", ".join(map(label_of, names)) for names in (found.better_than, found.not_told_apart))
    shown = f"better than {better}; " if better else ""
    remedy = "name the one that is usual today as the control, to have all tested against it"
    return f"{label_of(found.best)}: {shown}not shown different from {same} ({remedy})"


def _overturned(told: Told) -> str:
    """How much may speak against the rule before it is no longer better; and what the study cannot say."""
    verdict, amounts, about = told.verdict, told.amounts, told.about
    assert verdict.gain is not None
    least, most = sorted(abs(end) for end in (verdict.gain.lower, verdict.gain.upper))
    size, of_outcome = amounts.size(least, (most - least) / 4), "" if amounts.unit else f" of {about.outcome}"
    size += f" with {told.met}" if amounts.people else f"{of_outcome} per person"
    harms = "harms" if about.costs else "harms or costs"
    hidden = "a hidden confounder (see Hidden confounding); " if verdict.assumption else ""
    return (
        f"{harms} that are not counted, if they weigh as much as {size} (the gain's lower limit); {hidden}people "
        "unlike those studied"
    )


def _in_short(told: Told) -> tuple[tuple[str, str], ...]:
    """List the facts beside the proposal and its numbers: what counts, what does not, and further results."""
    verdict, amounts, about = told.verdict, told.amounts, told.about
    best, pairs = verdict.against_best, {"outcome": told.outcome}
    kept = verdict.against_status_quo if verdict.reason is Reason.STATUS_QUO_BETTER else None
    if kept is not None:
        pairs["compared with"] = f"what people got: the best rule brings {amounts.text(kept)}"
    elif verdict.reference is not None:
        pairs["compared with"] = rule_words(verdict.reference)
    if verdict.reason is Reason.NONE_BETTER and verdict.treatment is not None:
        single = verdict.treatment
        than = f"than {_under(single.over, verdict)}"
        pairs[f"{label_of(single.rule)} for everybody"] = f"{amounts.text(single)} {than}"
    if verdict.ranking is not None and verdict.reason is Reason.NONE_BEST:
        pairs["best estimate"] = _ranked(verdict.ranking)
    elif not verdict.use_tree and verdict.reason is not Reason.UNCLEAR:
        pairs[f"best {verdict.words.single}"] = _named(verdict).removeprefix(", ")
    if not verdict.use_tree and verdict.reason is not Reason.UNCLEAR:
        if best.lower == best.upper == 0.0:
            again = "learnt again without some of the people, it gives everybody that treatment"
            pairs[f"a {verdict.words.short}"] = again if told.asks else f"asks nothing: {again}"
        else:
            shown = "better" if best.better else "worse" if best.worse else "not shown better"
            pairs[f"a {verdict.words.short}"] = f"{shown} than the best {verdict.words.single}: {amounts.text(best)}"
    if kept is None and verdict.gain is None and verdict.smallest_gain and verdict.reason is not Reason.UNCLEAR:
        size = amounts.size(verdict.smallest_gain, verdict.smallest_gain / 4)
        pairs["power"] = f"80% to show a gain of {size} by a {verdict.words.short}"
    beside = [name for name in told.further if name != about.outcome]
    shown = f" ({', '.join(beside)}: shown beside, no part of the verdict)" if beside else ""
    costs = f"; values are net of costs ({about.costs})" if about.costs else ", and what treatments cost"
    pairs["not counted"] = f"benefits and harms other than {about.outcome}{shown}{costs}"
    if verdict.gain is not None and verdict.gain.lower * verdict.gain.upper > 0:
        pairs["could overturn it"] = _overturned(told)
    pairs["learnt and judged on"] = told.judged
    return tuple(pairs.items())
