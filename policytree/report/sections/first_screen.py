"""The first screen, for a director: a rule's gain, certainty and assumptions, what counts and what does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from policytree.evaluation.formatting import confidence_text, decimals
from policytree.evaluation.inference.step_down import Ranking
from policytree.evaluation.policy_value.gate import SUPPORTED
from policytree.evaluation.policy_value.rule_names import STATUS_QUO
from policytree.evaluation.policy_value.verdict import OFFER_WORDS, Gain, Reason, Verdict, label_of
from policytree.report.amounts import Amounts, is_control, over_words, rule_words
from policytree.report.content import Block, Facts, Words
from policytree.report.described import About
from policytree.report.material import capitalised

TRANSPORTED = "Assumed, which no data can show: people who will be treated respond as those studied did ({})."


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
    given : tuple of str
        Treatments that this tree gives; empty where there is one tree per stage.
    broken : tuple of str
        Sentences on limits that the rule does not keep.
    unsure : (str, str) or None
        For how many people the rule is unsure: as a clause, and as a sentence with the reason.
    coverage : str
        The shortcoming of the intervals of learnt rules, as a clause; "" where they cover as stated.
    """

    verdict: Verdict
    amounts: Amounts
    about: About
    outcome: str
    judged: str
    met: str
    further: Mapping[str, Mapping[str, Any]]
    asks: bool
    given: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    unsure: tuple[str, str] | None = None
    coverage: str = ""


def first_screen(told: Told) -> list[Block]:
    """All that stands below the proposal."""
    glance = [Facts(_glance(told), large=True)] if told.verdict.gain is not None else []
    warnings = [*told.broken, *(() if told.unsure is None else told.unsure[1:])]
    return [*glance, *_strength(told), *(Words(text, "warning") for text in warnings), Facts(_in_short(told))]


def _strength(told: Told) -> list[Words]:
    """How strong a verdict is: the state of its weakest gate, with the reasons and remedies; then what is assumed."""
    verdict = told.verdict
    state, reasons = capitalised(verdict.strength), verdict.reasons
    weakest = [gate for gate in verdict.gates if gate.state == verdict.strength]
    if verdict.strength == SUPPORTED:
        text = f"{state}{', if the assumption below holds' if verdict.assumption else ''}."
        broken = ["the rule does not keep a limit"] if told.broken else []
        cautions = [*broken, *(() if told.unsure is None else told.unsure[:1]), *_coverage(told)]
        remains = f"{capitalised('; '.join(cautions))} (see below). " if cautions else ""
        against = "the proposal as a whole" if remains else "it"
        nothing = "Otherwise nothing" if broken else "Nothing"  # a limit speaks against the whole
        text += f" {remains}{nothing} speaks against {against}: {reasons}." if reasons else f" {remains}".rstrip()
        if verdict.gain is None and verdict.reason is not Reason.STATUS_QUO_BETTER:
            text += " Where no difference is shown, that is no proof that there is none."
    else:
        text = " ".join([f"{state}: {reasons}.", *dict.fromkeys(gate.remedy for gate in weakest if gate.remedy)])
    said = [Words(text, verdict.strength.replace(" ", "-"))]
    if verdict.gain is not None or verdict.assumption:
        said.append(Words(f"{TRANSPORTED.format(told.judged)} {verdict.assumption}".rstrip(), "assumption"))
    return said


def _coverage(told: Told) -> list[str]:
    """Shortcoming of the proposal's intervals: those of a learnt rule, and of no other."""
    return [told.coverage] if told.coverage and told.verdict.use_tree else []


def _glance(told: Told) -> tuple[tuple[str, str], ...]:
    """Who changes treatment and what that brings, in numbers."""
    verdict, amounts, outcome = told.verdict, told.amounts, told.about.outcome
    gain, pairs = verdict.gain, []
    assert gain is not None
    about = f"people with {told.met}" if amounts.people else f"{amounts.unit or outcome} per person"
    rivalled = _has_rival(verdict)
    if verdict.changed is not None and not rivalled:
        pairs.append((_change(told, gain.rule, gain.over), _share(verdict.changed)))
    size, interval = amounts.parts(gain)
    how = "; allows for the choice among rules" if gain.adjusted else ""
    before = "" if gain.gross is None else f", net of costs; before costs {amounts.text(gain.gross)}"
    who = _changed(told, verdict.changed, gain.rule, gain.over) if rivalled else ""
    against = (f"{about} than {_under(gain.over, verdict)} ({interval}{how}){before}{who}", size)
    if rivalled:  # the price of asking people anything stands first
        best = verdict.against_best
        who = _changed(told, verdict.other_than_best, gain.rule, best.best) if best.best != gain.over else ""
        known = f"the best {verdict.words.single}{f' by its estimate{others}' if (others := _others(verdict)) else ''}"
        size, interval = amounts.parts(best)
        shown = "" if best.better else "; not shown better"
        pairs.append((f"{about} than {over_words(best.best)}, {known} ({interval}{shown}){who}", size))
    pairs.append(against)
    for further, means in told.further.items():
        if gain.rule in means and gain.over in means:
            mine, theirs = means[gain.rule], means[gain.over]
            digits = decimals([mine.standard_error, theirs.standard_error])
            interval = confidence_text(mine.lower, mine.upper, digits, mine.level)
            other = f"{theirs.value:,.{digits}f} {_under(gain.over, verdict)}"
            pairs.append((f"mean {further} under the rule ({interval}); {other}", f"{mine.value:,.{digits}f}"))
    return tuple(pairs)


def _share(part: float) -> str:
    """A share of people."""
    return f"{100 * part:.0f} of 100"


def _has_rival(verdict: Verdict) -> bool:
    """Whether a tree is proposed where one treatment for all, other than it is compared with, may be the best."""
    best, gain = verdict.against_best, verdict.gain
    return gain is not None and verdict.use_tree and not (best.best == gain.over and len(best.candidates) == 1)


def _change(told: Told, rule: str, over: str) -> str:
    """Who is treated otherwise by a rule than by another one, behind a number."""
    own = told.given if told.verdict.use_tree else (label_of(rule),)
    new = [label for label in own if label != label_of(over)]
    if over == STATUS_QUO or len(new) != 1:
        return f"people change {told.verdict.words.fixed}, compared with {rule_words(over)}"
    get = "are offered" if told.verdict.words is OFFER_WORDS else "get"
    return f"people {get} {new[0]} instead of {label_of(over)}"


def _changed(told: Told, share: float | None, rule: str, over: str) -> str:
    """How many people are treated otherwise by a rule than by another one, behind a gain; "" if it is not known."""
    return "" if share is None else f"; {_share(share)} {_change(told, rule, over)}"


def _needed(told: Told, gain: Gain) -> str:
    """Number needed to treat for one event more or fewer, with its interval.

    It is rounded up to whole people by convention (Cochrane Handbook 5.1, 12.5.4.1); so are its limits, which those of
    the gain give (Altman 1998, BMJ 317:1309): the interval is that of the number as it is stated.
    """
    changed = 1.0 if told.verdict.changed is None else told.verdict.changed
    who = "follow the rule" if told.verdict.changed is None else "change"
    number, *ends = (ceil(round(changed / abs(of), 9)) for of in (gain.value, gain.lower, gain.upper))  # floats
    interval = confidence_text(min(ends), max(ends), 0, told.amounts.level)
    return f"{number:,} people who {who}, against {rule_words(gain.over)} ({interval})"


def _under(rule: str, verdict: Verdict) -> str:
    """Name the comparison of a gain, behind "than"."""
    return over_words(rule) + (", the control" if is_control(rule, verdict) else "")


def _named(verdict: Verdict) -> str:
    """Which single treatment is the best, as far as that is known."""
    return f"{label_of(verdict.against_best.best)} by its estimate{_others(verdict)}"


def _others(verdict: Verdict) -> str:
    """Which others may be the best single treatment."""
    best = verdict.against_best
    others = [label_of(rule) for rule in best.candidates if rule != best.best]
    return f" ({' or '.join(others)} may be)" if others else ""


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
    rests: list[tuple[Any, str]] = [(verdict.gain, verdict.gain.over)]
    if _has_rival(verdict) and verdict.against_best.better:
        rests.append((verdict.against_best, verdict.against_best.best))
    ends = [(*sorted((abs(found.lower), abs(found.upper))), over) for found, over in rests]
    least, most, over = min(ends)
    size, of_outcome = amounts.size(least, (most - least) / 4), "" if amounts.unit else f" of {about.outcome}"
    size += f" with {told.met}" if amounts.people else f"{of_outcome} per person"
    harms = "other harms" if about.costs else "other harms, or costs,"
    hidden = "; a hidden confounder (see Hidden confounding)" if verdict.assumption else ""
    limit = "; ".join([f"the gain's lower limit against {rule_words(over)}", *_coverage(told)])
    return f"{harms} that weigh as much as {size} ({limit}); people unlike those studied{hidden}"


def _in_short(told: Told) -> tuple[tuple[str, str], ...]:
    """List the facts beside the proposal and its numbers: what may overturn it, what counts, and further results."""
    verdict, amounts, about = told.verdict, told.amounts, told.about
    best, gain, pairs = verdict.against_best, verdict.gain, dict[str, str]()
    if gain is None:
        pairs["outcome"] = told.outcome
    elif gain.lower * gain.upper > 0:
        pairs["could overturn it"] = _overturned(told)
    if gain is not None and amounts.people and gain.lower * gain.upper > 0:
        pairs["number needed to treat"] = _needed(told, gain)
    kept = verdict.against_status_quo if verdict.reason is Reason.STATUS_QUO_BETTER else None
    if kept is not None:
        pairs["compared with"] = f"what people got: the best rule brings {amounts.text(kept)}"
    elif verdict.reference is not None and gain is None:
        pairs["compared with"] = rule_words(verdict.reference)
    if verdict.reason is Reason.NONE_BETTER and verdict.treatment is not None:
        single = verdict.treatment
        than = f"than {_under(single.over, verdict)}"
        pairs[f"{label_of(single.rule)} for everybody"] = f"{amounts.text(single)} {than}"
    if verdict.ranking is not None and verdict.reason is Reason.NONE_BEST:
        pairs["best estimate"] = _ranked(verdict.ranking)
    elif not verdict.use_tree and verdict.reason is not Reason.UNCLEAR and (gain is None or _others(verdict)):
        pairs[f"best {verdict.words.single}"] = _named(verdict)
    if not verdict.use_tree and verdict.reason is not Reason.UNCLEAR:
        if best.lower == best.upper == 0.0:
            again = "learnt again without some of the people, "
            if told.asks:
                pairs[f"a {verdict.words.short}"] = f"{again}it gives everybody that treatment"
            else:
                pairs["checked"] = f"{again}the advice is the same"
        else:
            how = "better" if best.better else "worse" if best.worse else "not shown better"
            pairs[f"a {verdict.words.short}"] = f"{how} than the best {verdict.words.single}: {amounts.text(best)}"
    if kept is None and gain is None and verdict.smallest_gain and verdict.reason is not Reason.UNCLEAR:
        size = amounts.size(verdict.smallest_gain, verdict.smallest_gain / 4)
        pairs["power"] = f"80% to show a gain of {size} by a {verdict.words.short}"
    if about.costs:
        pairs["net of costs"] = about.costs
    if beside := ", ".join(name for name in told.further if name != about.outcome):
        pairs["no part of the verdict"] = beside
    if gain is None:
        costs = "" if about.costs else ", and what treatments cost"
        pairs["not counted"] = f"benefits and harms other than {about.outcome}{costs}"
        pairs["learnt and judged on"] = told.judged
    return tuple(pairs.items())
