"""Further outcomes of the rules of a table, and the value of its tree by group of people; all held out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pandas as pd
from scipy.special import stdtr

from policytree.estimators.limited import Subgroups
from policytree.evaluation.estimates import Estimate
from policytree.evaluation.formatting import decimals, interval_text
from policytree.evaluation.policy_value.validation import Validation
from policytree.weighting.observed import Observed

POLICY = "policy tree"
MOST_LOOKED_AT = (
    "Several outcomes are looked at, each by an interval of its own: of twenty, one misses its target on average."
)


def further_values(
    repetitions: Sequence[Repeated], seen: Observed, validation: Validation, level: float
) -> dict[str, dict[str, Estimate]]:
    """Held-out means of further outcomes under every rule."""
    return {
        name: {
            rule: validation.estimate([r.further[name][rule] for r in repetitions], seen, level)
            for rule in repetitions[0].further[name]
        }
        for name in repetitions[0].further
    }


def group_values(
    repetitions: Sequence[Repeated], subgroups: Mapping[str, Subgroups], seen: Observed, validation: Validation,
    level: float,
) -> pd.DataFrame:  # fmt: skip
    """Held-out value of the tree by group, with simultaneous intervals, and the shares of treatments.

    Every interval has the coverage ``1 - (1 - level) / m`` of Bonferroni, for ``m`` groups of all columns: with a
    probability of ``level`` at least, all of them hold their targets.
    """
    rows = validation.judged()
    count = sum(len(each.labels) for each in subgroups.values())
    each_level = 1.0 - (1.0 - level) / count
    lines: dict[tuple[str, str], dict[str, Any]] = {}
    for column, each in subgroups.items():
        for mask, label in zip(each.masks(), each.labels, strict=True):
            own = replace(seen, sample_weight=seen.weight * mask)
            weight = own.weight[rows]
            if not weight.any():
                continue
            found = validation.estimate([r.scores[POLICY] for r in repetitions], own, each_level)
            line: dict[str, Any] = {"people": int((weight > 0).sum())}
            line |= {part: getattr(found, part) for part in ("value", "standard_error", "lower", "upper")}
            for arm in seen.treatments:
                shares = [np.average(r.policy == arm, weights=weight) for r in repetitions]
                line[f"share of {arm!s}"] = float(np.mean(shares))
            lines[column, label] = line
    frame = pd.DataFrame.from_dict(lines, orient="index")
    frame.index = pd.MultiIndex.from_tuples(lines, names=["column", "group"])
    return frame


class Repeated(Protocol):
    """What is read here of one repetition of a cross-validation (``tables.Repetition``)."""

    @property
    def further(self) -> Mapping[str, Mapping[str, np.ndarray]]:
        """Scores by further outcome and rule."""

    @property
    def scores(self) -> Mapping[str, np.ndarray]:
        """Scores by rule."""

    @property
    def policy(self) -> np.ndarray:
        """Treatments by the tree."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit on the mean of a further outcome.

    Attributes
    ----------
    value : float
    at_least : bool
        Whether it is the least that the mean may be, and not the most.
    """

    value: float
    at_least: bool = False

    def kept_by(self, mean: float) -> bool:
        """Whether a mean keeps to it."""
        return mean >= self.value if self.at_least else mean <= self.value

    def __str__(self) -> str:
        return f"at {'least' if self.at_least else 'most'} {self.value:g}"


def kept_probability(limit: Limit, found: Estimate) -> float:
    """The confidence that the true mean keeps to the limit, by the Student's t of the estimate's interval."""
    if not found.standard_error > 0:
        return float(limit.kept_by(found.value))
    below = float(stdtr(max(found.degrees_of_freedom, 1), (limit.value - found.value) / found.standard_error))
    return 1.0 - below if limit.at_least else below


def limit_statement(name: str, limit: Limit, found: Estimate) -> str:
    """Whether the tree keeps to a limit on people who had no say in it."""
    digits = decimals([found.standard_error])
    kept = limit.kept_by(found.value)
    return (
        f"Held out, the tree's mean of {name} is {found.value:,.{digits}f}, {100 * found.level:g}% interval "
        f"{interval_text(found, digits)}; the limit of {limit} {'is' if kept else 'is not'} kept (confidence that it "
        f"is: {kept_probability(limit, found):.0%})."
    )


def further_lines(further: Mapping[str, Mapping[str, Estimate]], limits: Mapping[str, Limit]) -> list[str]:
    """Tables of further outcomes, as lines of text."""
    lines: list[str] = []
    for name, rules in further.items():
        digits = decimals(each.standard_error for each in rules.values())
        level = f"{100 * rules[POLICY].level:g}% interval"
        rows = {rule: [f"{each.value:.{digits}f}", interval_text(each, digits)] for rule, each in rules.items()}
        table = pd.DataFrame.from_dict(rows, orient="index", columns=["mean", level]).to_string()
        lines += [f"\n{name}, held out", table]
        if name in limits:
            lines.append(limit_statement(name, limits[name], rules[POLICY]))
    return lines + ([MOST_LOOKED_AT] if len(further) > 1 else [])


def group_lines(values: pd.DataFrame | None, level: float) -> list[str]:
    """The table of groups, as lines of text."""
    if values is None:
        return []
    digits = decimals(values["standard_error"])
    shares = [name for name in values.columns if name.startswith("share of ")]
    rows = {}
    for (column, group), line in values.iterrows():
        interval = f"[{line['lower']:.{digits}f}, {line['upper']:.{digits}f}]"
        each = [f"{line[name]:.0%}" for name in shares]
        rows[f"{column} {group}"] = [f"{int(line['people']):,}", f"{line['value']:.{digits}f}", interval, *each]
    header = ["people", "value", f"{100 * level:g}% interval", *shares]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=header).to_string()
    return ["\nValue of the tree by group, held out; the intervals hold all at once", table]
