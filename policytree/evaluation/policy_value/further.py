"""Further outcomes of the rules of a table, and the value of its tree by group of people; all held out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Protocol

import numpy as np
import pandas as pd
from scipy.special import stdtr

from policytree.constraints.amounts import Limit
from policytree.constraints.constraint import Constraint
from policytree.constraints.people import Subgroups
from policytree.evaluation.estimates import Estimate
from policytree.evaluation.formatting import BOUNDS, NUMBER, Form, decimals, interval_text, of_column, text_frame
from policytree.evaluation.policy_value.rule_names import POLICY, fixed_rules
from policytree.evaluation.policy_value.validation import Validation
from policytree.weighting.study_data import StudyData

WITHOUT_LIMITS = "tree without limits"  # a rival: it shows the held-out cost of limits on outcomes and groups


def further_values(
    repetitions: Sequence[Repeated], seen: StudyData, validation: Validation, level: float
) -> dict[str, dict[str, Estimate]]:
    """Held-out means of further outcomes under every rule."""
    return {
        name: {
            rule: validation.estimate(
                [r.further[name][rule] for r in repetitions], seen, level, learnt=rule not in fixed_rules(seen)
            )
            for rule in repetitions[0].further[name]
        }
        for name in repetitions[0].further
    }


class Judging(Protocol):
    """Estimates a mean over judged people from their scores, one array per repetition, with weights and a level."""

    def __call__(self, scores: list[np.ndarray], weight: np.ndarray, level: float) -> Estimate:
        """The mean with its interval; people of weight 0 are absent."""


@dataclass(frozen=True, slots=True, eq=False)
class JudgedGroups:
    """Judged people, what a rule gives them and brings them, and the groups that they are in.

    Attributes
    ----------
    subgroups : mapping of str to Subgroups
        Of the judged people.
    weight : ndarray of shape (n_judged,)
    treatments : sequence of K labels
    policies : sequence of ndarray of shape (n_judged,)
        Treatments by the rule, in every repetition.
    scores : sequence of ndarray of shape (n_judged,)
        Scores of the rule, in every repetition.
    judge : callable
        See :class:`Judging`.
    """

    subgroups: Mapping[str, Subgroups]
    weight: np.ndarray
    treatments: Sequence[Any]
    policies: Sequence[np.ndarray]
    scores: Sequence[np.ndarray]
    judge: Judging

    def values(self, level: float) -> pd.DataFrame:
        """Value of the rule by group, with simultaneous intervals, and the shares of treatments.

        Every interval has the coverage ``1 - (1 - level) / m`` of Bonferroni, for ``m`` groups of all columns: with a
        probability of ``level`` at least, all of them hold their targets.
        """
        count = sum(len(each.labels) for each in self.subgroups.values())
        each_level = 1.0 - (1.0 - level) / count
        lines: dict[tuple[str, str], dict[str, Any]] = {}
        for column, each in self.subgroups.items():
            for mask, label in zip(each.masks(), each.labels, strict=True):
                weight = self.weight * mask
                if not weight.any():
                    continue
                found = self.judge(list(self.scores), weight, each_level)
                line: dict[str, Any] = {"people": int((weight > 0).sum())}
                line |= found.numbers
                for arm in self.treatments:
                    shares = [np.average(policy == arm, weights=weight) for policy in self.policies]
                    line[f"share of {arm!s}"] = float(np.mean(shares))
                lines[column, label] = line
        frame = pd.DataFrame.from_dict(lines, orient="index")
        frame.index = pd.MultiIndex.from_tuples(lines, names=["column", "group"])
        return frame

    def gaps(self, constraints: Sequence[Constraint], level: float) -> tuple[GroupGap, ...]:
        """Compare every two groups of limited columns; intervals hold for all of a limit at once."""
        out: list[GroupGap] = []
        for each in constraints:
            if measures := each.measures(self.treatments, self.policies, self.scores):
                out += self._gaps(each, measures, level)
        return tuple(out)

    def _gaps(self, constraint: Any, measures: Mapping[str, list[np.ndarray]], level: float) -> list[GroupGap]:
        column, limit = constraint.column, constraint.within
        each = self.subgroups[column]
        masks = [mask for mask in each.masks()]
        present = [g for g, mask in enumerate(masks) if self.weight[mask].any()]
        pairs = list(combinations(present, 2))
        if not pairs:
            return []
        each_level = 1.0 - (1.0 - level) / (len(pairs) * len(measures))
        return [
            GroupGap(
                column, what, each.labels[g], each.labels[h], limit, len(pairs) * len(measures),
                self.judge([self._difference(s, masks[g], masks[h]) for s in scores], self.weight, each_level),
            )
            for what, scores in measures.items()
            for g, h in pairs
        ]  # fmt: skip

    def _difference(self, scores: np.ndarray, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Scores whose mean is the difference of two groups' means, and whose spread is that of its influence."""
        total, parts, means = self.weight.sum(), np.zeros(len(scores)), []
        for mask, sign in ((one, 1.0), (other, -1.0)):
            weight = self.weight[mask]
            means.append(float(np.average(scores[mask], weights=weight)))
            parts[mask] += sign * (scores[mask] - means[-1]) * (total / weight.sum())
        return parts + (means[0] - means[1])


def held_out_groups(
    repetitions: Sequence[Repeated], subgroups: Mapping[str, Subgroups], seen: StudyData, validation: Validation
) -> JudgedGroups:
    """The groups of people whom refits of the tree were judged on."""
    rows = validation.judged()

    def judge(scores: list[np.ndarray], weight: np.ndarray, level: float) -> Estimate:
        everybody = np.zeros(seen.n)
        everybody[rows] = weight
        return validation.estimate(scores, replace(seen, sample_weight=everybody), level)

    return JudgedGroups(
        {name: Subgroups(each.code[rows], each.labels) for name, each in subgroups.items()}, seen.weight[rows],
        seen.treatments.tolist(), [r.policy for r in repetitions], [r.scores[POLICY] for r in repetitions], judge,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class GroupGap:
    """Difference between two groups of people under a rule.

    Attributes
    ----------
    column : str
    what : str
        "value", or "share of <treatment>".
    one, other : str
        Groups; the estimate is of the first less the second.
    limit : float
        The most that the difference may be, either way.
    looked_at : int
        Differences that the same limit is about.
    estimate : Estimate
        With an interval that holds for all of these at once.
    """

    column: str
    what: str
    one: str
    other: str
    limit: float
    looked_at: int
    estimate: Estimate

    def missed_probability(self) -> float:
        """One less the confidence that the true difference is within the limit, by the estimate's Student's t."""
        found = self.estimate
        if not found.standard_error > 0:
            return float(abs(found.value) > self.limit)
        ends = ((sign * self.limit - found.value) / found.standard_error for sign in (1.0, -1.0))
        above, below = (float(stdtr(max(found.degrees_of_freedom, 1), end)) for end in ends)
        return min(1.0, 1.0 - above + below)


def gaps_by_limit(gaps: Sequence[GroupGap]) -> list[list[GroupGap]]:
    """Differences that the same limit is about."""
    found: dict[tuple[str, bool], list[GroupGap]] = {}
    for gap in gaps:
        found.setdefault((gap.column, gap.what == "value"), []).append(gap)
    return list(found.values())


def gap_statement(gaps: Sequence[GroupGap]) -> str:
    """The largest of the differences that one limit is about, and whether people who had no say in the rule keep it."""
    most = max(gaps, key=lambda gap: abs(gap.estimate.value))
    e, digits = most.estimate, decimals([most.estimate.standard_error])
    kept = "is" if abs(e.value) <= most.limit else "is not"
    confidence = max(0.0, 1.0 - sum(gap.missed_probability() for gap in gaps))
    least = "at least " if len(gaps) > 1 else ""
    all_of = f" (for {len(gaps)} differences at once)" if len(gaps) > 1 else ""
    return (
        f"Held out, groups of {most.column} differ most in the {most.what} between {most.one} and {most.other}: by "
        f"{e.value:+,.{digits}f}, {100 * e.level:.4g}% interval {interval_text(e, digits)}{all_of}; the limit of "
        f"{most.limit:g} {kept} kept (confidence that it is: {least}{confidence:.0%})."
    )


def several_outcomes(n_further: int) -> str:
    """Say what intervals of several outcomes cover."""
    return (
        f"Several outcomes are looked at ({n_further + 1}, with the main one), each by an interval of its own: of "
        "twenty such intervals, one misses its target on average. The verdict is about the main outcome alone."
    )


class Repeated(Protocol):
    """The part of one repetition of a cross-validation (``tables.Repetition``) that is read here."""

    @property
    def further(self) -> Mapping[str, Mapping[str, np.ndarray]]:
        """Scores by further outcome and rule."""

    @property
    def scores(self) -> Mapping[str, np.ndarray]:
        """Scores by rule."""

    @property
    def policy(self) -> np.ndarray:
        """Treatments by the tree."""


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
        f"{interval_text(found, digits)}; the limit of {limit.bound} {'is' if kept else 'is not'} kept (confidence "
        f"that it is: {kept_probability(limit, found):.0%})."
    )


def broken_limits(
    rule: str | None, further: Mapping[str, Mapping[str, Estimate]], limits: Mapping[str, Limit]
) -> list[str]:
    """A sentence for every limit that a recommended rule, by its name in the table, does not keep to, held out.

    A verdict is about the main outcome: one treatment for all, or what people got, may break limits that the tree was
    made to keep.
    """
    lines: list[str] = []
    if rule is None:
        return lines
    for name, limit in limits.items():
        found = further[name][rule]
        if not limit.kept_by(found.value):
            digits = decimals([found.standard_error])
            lines.append(
                f"The verdict is about the main outcome and knows no limits: under {rule}, the mean of {name} is "
                f"{found.value:,.{digits}f}, {100 * found.level:g}% interval {interval_text(found, digits)}, beyond "
                f"the limit of {limit.bound}."
            )
    return lines


def further_lines(further: Mapping[str, Mapping[str, Estimate]], limits: Mapping[str, Limit]) -> list[Any]:
    """Tables of further outcomes, and what is said of them."""
    lines: list[Any] = []
    for name, rules in further.items():
        frame, level = pd.DataFrame({rule: e.numbers for rule, e in rules.items()}).T, rules[POLICY].level
        columns = {"mean": NUMBER, f"{100 * level:g}% interval": BOUNDS}
        table = text_frame(frame, columns, digits=decimals(frame["standard_error"]))
        lines += [f"\n{name}, held out", table]
        if name in limits:
            lines.append(limit_statement(name, limits[name], rules[POLICY]))
    return lines + ([several_outcomes(len(further))] if further else [])


def group_columns(values: pd.DataFrame, level: float) -> dict[str, Form]:
    """Columns of the table of groups: people, value, interval and shares of treatments."""
    shares: dict[str, Form] = {name: of_column(name, ".0%") for name in values if name.startswith("share of ")}
    return {"people": "{people:,}", "value": NUMBER, f"{100 * level:g}% interval": BOUNDS} | shares


def group_lines(values: pd.DataFrame | None, gaps: Sequence[GroupGap], level: float) -> list[Any]:
    """The table of groups, and what limits on their differences come to."""
    if values is None:
        return []
    table = text_frame(values, group_columns(values, level), digits=decimals(values["standard_error"]))
    return [
        "\nValue of the tree by group, held out; the intervals hold all at once",
        table.set_axis([f"{name} {group}" for name, group in table.index]),
        *map(gap_statement, gaps_by_limit(gaps)),
    ]
