"""The material of a regime's report: the fitted regime, its people, and the table of its held-out values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from policytree.evaluation.formatting import short_unit
from policytree.evaluation.policy_value.verdict import recommends
from policytree.evaluation.regimes.tables import RegimeValueTable
from policytree.regimes.course import Course
from policytree.regimes.stages import Stage
from policytree.regimes.treatment_regime import TreatmentRegime
from policytree.report.amounts import Amounts
from policytree.report.described import About, column_names
from policytree.trees.labels import Label, as_labels
from policytree.trees.text import rule_sentence
from policytree.trees.tree import Tree


@dataclass(frozen=True, slots=True, eq=False)
class RegimeMaterial:
    """A fitted regime, the people of its fit, and what it is worth.

    Attributes
    ----------
    regime : TreatmentRegime
    course : Course
        The people of the fit.
    about : About
    trees : list of (str, Tree)
        Name and tree of every stage, with the shortest thresholds that send all people the same way.
    eligible : list of str
        Who is eligible at every stage, in words.
    encoded : list of ndarray of shape (n_eligible, p)
        By stage, the histories of the eligible people as its tree reads them.
    values : RegimeValueTable or None
    """

    regime: TreatmentRegime
    course: Course
    about: About
    trees: list[tuple[str, Tree]]
    eligible: list[str]
    encoded: list[np.ndarray] = field(repr=False)
    values: RegimeValueTable | None = None

    @property
    def direction(self) -> str:
        """Whether larger outcomes are better ("maximize") or smaller ones ("minimize")."""
        return self.regime.direction

    @property
    def better(self) -> str:
        """The word for better outcomes."""
        return "higher" if self.direction == "maximize" else "lower"

    @property
    def value(self) -> str:
        """The value of regimes, in words."""
        return f"mean {self.about.outcome}"

    @property
    def aim_value(self) -> str:
        """The name of the value, with its unit."""
        return f"{self.value} ({self.about.unit})" if self.about.unit else self.value

    @property
    def aim(self) -> str:
        """The aim of a regime, such as "the highest mean score (points)"."""
        return f"the {'highest' if self.direction == 'maximize' else 'lowest'} {self.aim_value}"

    @property
    def amounts(self) -> Amounts:
        """How differences of values are said."""
        assert self.values is not None
        return Amounts(False, short_unit(self.about.unit), self.values.verdict.against_best.level)

    @property
    def in_words(self) -> str:
        """The rule of every stage in a sentence, about those who are eligible; "" where one is too long for that."""
        said = [(name, rule_sentence(tree, self.about.units)) for name, tree in self.trees]
        if not all(rule for _, rule in said):
            return ""
        whom = ["" if each.eligible.all() else ", for people who are eligible" for each in self.course.decisions]
        return " ".join(
            f"At {name}{of}: {rule[:1].lower()}{rule[1:]}" for (name, rule), of in zip(said, whom, strict=True)
        )

    @property
    def recommended(self) -> bool:
        """Whether the verdict recommends the regime, or nobody knows."""
        if self.values is None:
            return True
        verdict = self.values.verdict
        return recommends(verdict.rule, verdict.reason, [tree for _, tree in self.trees])

    def titled(self, title: str) -> str:
        """A section's title, which says so where the regime is not recommended."""
        return title if self.recommended else f"{title} (not recommended)"

    def rows(self, s: int) -> np.ndarray:
        """Positions of the people who are eligible at a stage."""
        return np.flatnonzero(self.course.decisions[s].eligible)


def named_after(about: About, stages: Sequence[Stage], table: pd.DataFrame) -> About:
    """Names of columns where names are missing, in the words of labels; ``table``: all histories.

    Summed utilities are called by the one outcome's name, or as the sum of outcomes.
    """
    outcomes = [str(getattr(stage.Y, "name", None) or "outcome") for stage in stages if stage.Y is not None]
    treatments = [column_names(stage.T) for stage in stages if stage.T is not None]
    given = {} if about.labels is None else as_labels(about.labels)
    outcome, unit = about.outcome or outcomes[0], about.unit
    if not about.outcome and len(outcomes) > 1:
        names = sorted({given.get(name, Label()).text or name for name in outcomes})
        units = {given.get(name, Label()).unit for name in outcomes}
        outcome = f"total {names[0]}" if len(names) == 1 else f"sum of {' and '.join(names)}"
        unit = unit or (units.pop() if len(units) == 1 else "")
    named = replace(about, outcome=outcome, unit=unit, treatment=about.treatment or "treatment")
    return named.in_labels(table, treatments, outcomes)
