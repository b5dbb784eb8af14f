"""The table of the held-out values of a regime and of what it is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from policytree.data.views import Shown, as_text
from policytree.evaluation.estimates import Estimate
from policytree.evaluation.formatting import decimals, interval_text, rule_columns, size_text, text_frame
from policytree.evaluation.inference.best_arm import BestComparison
from policytree.evaluation.policy_value.rule_names import AS_RANDOMIZED, STATUS_QUO
from policytree.evaluation.policy_value.tables import rule_frame
from policytree.evaluation.policy_value.validation import Validation
from policytree.evaluation.policy_value.verdict import Verdict
from policytree.evaluation.regimes.rules import REGIME
from policytree.exceptions import InputError
from policytree.weighting.study_data import StudyData

if TYPE_CHECKING:
    from policytree.plotting.values import PolicyValueDisplay

WORDS = {
    "dr": "sequentially doubly robust scores",
    "ipw": "inverse probability weights",
    "plug_in": "outcome models alone, whose errors no interval counts",
}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RegimeValueTable(Shown):
    """Held-out value of a treatment regime beside fixed sequences, what people got, and one decision only.

    Attributes
    ----------
    verdict : Verdict
        Which rule to use, and why; ``str(table.verdict)`` is the sentence.
    estimates : mapping of str to Estimate
        Value of every rule, the summed utilities of all stages: "regime", "always <sequence>", "status quo" (what
        people got; "as randomised" where that was drawn by lot), "decide at <stage> only" (a rule there, otherwise
        that), and the greedy rules.
    differences : mapping of str to Estimate
        The regime's value minus each other rule's, paired on the same people.
    against_best : BestComparison
        The regime against the best fixed sequence.
    against_once : BestComparison or None
        The regime against the best rule that decides at one stage only; None for one stage.
    direction : {"maximize", "minimize"}
    scores : tuple of mappings of str to ndarray of shape (n_judged,)
        Scores of every judged person under every rule, one mapping per repetition.
    sequences : DataFrame
        How many people followed each fixed sequence, with their effective sample size.
    unknown : tuple of str
        Fixed sequences that nobody followed to the end; nothing is known of them.
    estimator : {"dr", "ipw", "plug_in"}
    validation : Validation
    observed : StudyData
    agreement : float or None
        If the regime was fitted on these people beforehand: the share of decisions in which it gives the same as the
        regimes that are judged here.
    restricted : bool
        Whether some people may not get every treatment.

    Examples
    --------
    >>> import numpy as np
    >>> from policytree import DRPolicyTree
    >>> from policytree.regimes import Stage, TreatmentRegime, cross_val_regime_value
    >>> rng = np.random.default_rng(0)
    >>> x, first, second = rng.normal(size=(200, 1)), rng.permutation([0, 1] * 100), rng.permutation([0, 1] * 100)
    >>> outcome = first * x[:, 0] + second + rng.normal(size=200)
    >>> stages = [Stage(first, X=x, propensity=0.5), Stage(second, X=x, Y=outcome, propensity=0.5)]
    >>> regime = TreatmentRegime(DRPolicyTree(max_depth=1, cv=2), random_state=0)
    >>> table = cross_val_regime_value(regime, stages, cv=2, n_repeats=1, baselines=False, random_state=0)
    >>> list(table.estimates)[:3]
    ['regime', 'always 0 then 0', 'always 0 then 1']
    """

    verdict: Verdict
    estimates: Mapping[str, Estimate] = field(repr=False)
    differences: Mapping[str, Estimate] = field(repr=False)
    against_best: BestComparison
    against_once: BestComparison | None
    direction: str
    scores: tuple[Mapping[str, np.ndarray], ...] = field(repr=False)
    sequences: pd.DataFrame = field(repr=False)
    unknown: tuple[str, ...]
    estimator: str
    validation: Validation = field(repr=False)
    observed: StudyData = field(repr=False)
    agreement: float | None = None
    restricted: bool = False

    def difference(self, a: str, b: str) -> Estimate:
        """Value of rule ``a`` of the table minus that of rule ``b``, paired.

        Raises
        ------
        InputError
            If the table has no such rule.
        """
        for name in (a, b):
            if name not in self.estimates:
                raise InputError(f"The table has no rule {name!r}; it has {', '.join(self.estimates)}.")
        settled = {rule for rule in self.estimates if rule.startswith("always ")} | {STATUS_QUO, AS_RANDOMIZED}
        scores = [each[a] - each[b] for each in self.scores]
        return self.validation.estimate(scores, self.observed, self.level, learnt=not {a, b} <= settled)

    @property
    def level(self) -> float:
        """Coverage of the intervals."""
        return self.estimates[REGIME].level

    @property
    def digits(self) -> int:
        """Decimals that show two significant digits of the smallest standard error."""
        return decimals(e.standard_error for e in [*self.estimates.values(), *self.differences.values()])

    def to_frame(self) -> pd.DataFrame:
        """One row per rule: its value and the regime's difference from it, with standard errors and intervals."""
        return rule_frame(self.estimates, self.differences)

    def statements(self) -> tuple[str, ...]:
        """State the results, and the people and rules they are of, in sentences."""
        lines = [self.against_best.statement(self.digits, "Regime", "fixed sequence")]
        if self.against_once is not None:
            lines.append(self.against_once_text())
        rules = len(self.scores) * self.validation.n_fits
        lines.append(
            f"By {self.validation.describe(len(self.scores))}: {rules} regimes were learnt (models and trees of all "
            f"stages), each judged on people who had no part in it, by {WORDS[self.estimator]}."
        )
        if self.agreement is not None:
            lines.append(
                "The regime learnt from all people cannot be judged itself, since nobody is left for that; it gives "
                f"the same treatment as the regimes judged here in {self.agreement:.0%} of the decisions."
            )
        if self.restricted:
            lines.append(
                "Where a rule gives somebody what they may not get, they count as getting the treatment of the best "
                "expected outcome among those that they may."
            )
        if self.unknown:
            lines.append(f"Nobody got {'; '.join(self.unknown)} to the end: nothing is known of that.")
        return tuple(lines)

    def against_once_text(self) -> str:
        """Whether deciding at every stage is shown better than at one only; "" for one stage."""
        best = self.against_once
        if best is None:
            return ""
        shown = f"{best.value:+,.{self.digits}f}, {100 * best.level:g}% interval {interval_text(best, self.digits)}"
        is_better = "is better" if best.better else "is worse" if best.worse else "is not shown better"
        return (
            f"Deciding at every stage {is_better} than deciding once (difference to the best of that, {best.best}: "
            f"{shown})."
        )

    def plot(self, **options: Any) -> PolicyValueDisplay:
        """Draw the held-out value of every rule with its interval.

        Options are ``ax``, ``differences``, ``title``, ``xlabel``, ``limits`` and ``marked``, as in
        :meth:`policytree.plotting.values.PolicyValueDisplay.plot`.
        """
        from policytree.plotting.values import PolicyValueDisplay

        return PolicyValueDisplay(self, subject=REGIME).plot(**options)

    def to_text(self) -> str:
        """Show verdict and table in fixed width, and say what they are."""
        return as_text(self._shown())

    def _shown(self) -> list[Any]:
        table = text_frame(self.to_frame(), rule_columns("regime", self.level), digits=self.digits).rename_axis(None)
        better = "higher" if self.direction == "maximize" else "lower"
        size = size_text(self.estimates[REGIME])
        return [f"{self.verdict}\n", f"Held-out values, {better} is better; {size}.", table, *self.statements()]
