"""The material of a regime's report: the fitted regime, its people, and the table of its held-out values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from policytree.evaluation.policy_value.verdict import recommends
from policytree.evaluation.regimes.tables import RegimeValueTable
from policytree.regimes.course import Course
from policytree.regimes.stages import Stage
from policytree.regimes.treatment_regime import TreatmentRegime
from policytree.report.material import About
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
        """What values of regimes are, in words."""
        return f"mean {self.about.outcome}"

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


def outcome_name(stages: Sequence[Stage]) -> str:
    """What the summed utilities are called: the one outcome's name, or the sum of outcomes of one name."""
    given = [stage.Y for stage in stages if stage.Y is not None]
    names = {str(getattr(Y, "name", None) or "outcome") for Y in given}
    if len(names) > 1:
        return "sum of " + " and ".join(sorted(names))
    (name,) = names
    return name if len(given) == 1 else f"total {name}"
