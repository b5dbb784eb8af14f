"""Differences between rules in a reader's words: people of a hundred, or the outcome's unit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from policytree.evaluation.formatting import decimals
from policytree.evaluation.policy_value.rule_names import STATUS_QUO
from policytree.evaluation.policy_value.verdict import Verdict, label_of
from policytree.report.material import Material
from policytree.trees.text import with_unit


@dataclass(frozen=True, slots=True)
class Amounts:
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
        """Size with the word that says which way, and its interval: in that direction, or with a word at either end."""
        scale, sign = 100 if self.people else 1, 1 if difference.value >= 0 else -1
        low, high = sorted((sign * scale * difference.lower, sign * scale * difference.upper))
        digits = decimals([(high - low) / 4])
        low, high = (round(end, digits) + 0.0 for end in (low, high))  # no "-0.00"
        less = "fewer" if self.people else "less"
        word, other = ("more", less)[::sign]
        either = low < 0 < high
        ends = f"{abs(low):,.{digits}f}{f' {other}' * either} to {high:,.{digits}f}{f' {word}' * either}"
        size = f"{scale * abs(difference.value):,.{digits}f} {word}{' of 100' * self.people}"
        return size, f"{100 * self.level:g}% CI {ends}"

    def size(self, value: float, error: float) -> str:
        """Return a size that has no direction, as exact as its error: "7.3 of 100 people", "331 dollars"."""
        scale = 100 if self.people else 1
        number = f"{scale * value:,.{decimals([scale * error])}f}"
        return f"{number} of 100 people" if self.people else with_unit(number, self.unit)

    def text(self, difference: Any) -> str:
        """Both in a clause."""
        size, interval = self.parts(difference)
        number, _, word = size.partition(" ")
        return f"{number if self.people else with_unit(number, self.unit)} {word} ({interval})"


def amounts_of(material: Material, verdict: Verdict) -> Amounts:
    """How differences of a study's values are said: net of costs, a share of people is none."""
    study = material.study
    people = (study.counts_people or study.are_shares) and not study.about.costs
    return Amounts(people, study.short_unit, verdict.against_best.level)


def over_words(rule: str) -> str:
    """A rule that something is compared with, behind "than"."""
    return "what people got" if rule == STATUS_QUO else f"if everybody gets {label_of(rule)}"


def rule_words(rule: str) -> str:
    """A rule by itself."""
    return "what people got" if rule == STATUS_QUO else f"{label_of(rule)} for everybody"


def is_control(rule: str, verdict: Verdict) -> bool:
    """Whether a rule gives everybody the control, and its name does not say so."""
    return rule == verdict.reference != STATUS_QUO and label_of(rule).lower() != "control"
