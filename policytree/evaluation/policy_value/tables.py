"""The table that :func:`policytree.cross_val_policy_value` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from policytree.constraints.amounts import Limit
from policytree.data.views import Shown, as_text
from policytree.evaluation.estimates import Estimate
from policytree.evaluation.formatting import decimals, interval_text, rule_columns, size_text, text_frame
from policytree.evaluation.inference.best_arm import BestComparison
from policytree.evaluation.policy_value.confounding import Hidden
from policytree.evaluation.policy_value.further import (
    GroupGap,
    broken_limits,
    further_lines,
    group_lines,
    kept_probability,
    limit_statement,
)
from policytree.evaluation.policy_value.optimism import Judgement, Optimism
from policytree.evaluation.policy_value.refits import Support
from policytree.evaluation.policy_value.rule_names import POLICY, fixed_rules
from policytree.evaluation.policy_value.validation import SPLIT, Validation
from policytree.evaluation.policy_value.verdict import SecondOpinion, Verdict
from policytree.exceptions import InputError
from policytree.model_selection.folds import FoldPlan
from policytree.weighting.study_data import StudyData

if TYPE_CHECKING:
    from policytree.plotting.values import PolicyValueDisplay

OPTIMISM = (
    "The interval is about the optimism to be expected of rules learnt from this many rows; that of these particular "
    "rules may lie outside."
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Repetition(Shown):
    """Results of one draw of the folds, for the judged rows.

    Attributes
    ----------
    folds : FoldPlan
        Fold of every row of the data.
    policy, plug_in : ndarray of shape (n_judged,)
        Treatment that each rule, learnt without the row, recommends to the row.
    rivals : mapping of str to ndarray of shape (n_judged,)
        The same for every rival.
    rewards : DataFrame of shape (n_judged, K)
        Rewards, net of treatment costs, by nuisances that saw neither the row nor its cluster.
    scores : mapping of str to ndarray of shape (n_judged,)
        Scores of every row under every rule of the table.
    trees : tuple
        The fitted tree of every refit (``policy_tree_`` of the estimator, or the estimator if it has none).
    judgements : mapping of str to tuple of Judgement
        For every rule that is learnt, what each refit brings the rows that chose it and those that judge it; empty if
        the estimator does not show the rewards it learnt from.
    further : mapping of str to mapping of str to ndarray of shape (n_judged,)
        Scores of every row under every rule by further outcomes.
    support : Support or None
        Estimated chances of treatment in the first refit; None where they were known.
    """

    folds: FoldPlan = field(repr=False)
    policy: np.ndarray = field(repr=False)
    plug_in: np.ndarray = field(repr=False)
    rivals: Mapping[str, np.ndarray] = field(repr=False)
    rewards: pd.DataFrame = field(repr=False)
    scores: Mapping[str, np.ndarray] = field(repr=False)
    trees: tuple[Any, ...] = field(repr=False)
    judgements: Mapping[str, tuple[Judgement, ...]] = field(repr=False)
    further: Mapping[str, Mapping[str, np.ndarray]] = field(default_factory=dict, repr=False)
    support: Support | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PolicyValueTable(Shown):
    """Held-out value of a learnt policy beside what else one could do.

    Attributes
    ----------
    verdict : Verdict
        Which rule to use, and why; ``str(table.verdict)`` is the sentence.
    estimates : mapping of str to Estimate
        Value of every rule, in the outcome's unit: "policy tree", "always <treatment>" for every treatment, "status
        quo" (what people got: the mean outcome; "as randomised" where treatments were drawn by lot) and "plug-in rule"
        (no tree: everybody gets the treatment whose predicted outcome is best; with ``model_effects``, whose predicted
        effect is), and the rivals by their names. For rules that are learnt, the value is the weighted mean of the true
        values of the rules as trained, each by the rows that it is judged on. Fixed rules are judged by the mean of
        every row's scores over all repetitions.
    differences : mapping of str to Estimate
        The policy tree's value minus each other rule's, paired on the same rows.
    against_best : BestComparison
        The policy tree against the best "always <treatment>", which is not known beforehand.
    direction : {"maximize", "minimize"}
        Which way outcomes are better; signs are never turned.
    repetitions : tuple of Repetition
        Results of each draw of the folds.
    judged : ndarray of shape (n_judged,)
        Positions of the rows that were judged: all in cross-fitting, fewer otherwise.
    validation : Validation
        How rows were held out.
    observed : StudyData
        Observed data of all rows.
    agreement : float or None
        If the estimator was fitted on these rows beforehand: the share (of weight) of judged rows to which that rule,
        the one you would show, gives the same treatment as the rules that are judged here. None otherwise.
    second_opinions : tuple of SecondOpinion
        The verdicts by other models of treatment and of outcomes, where there are any.
    hidden : Hidden or None
        How far what the verdict says moves where covariates are hidden; None where treatments were drawn by lot, or no
        rule is recommended.
    optimism : mapping of str to Optimism
        For every rule that is learnt (the tree, the plug-in rule, rivals): its value on the rows that chose it less its
        held-out value. Empty if the estimator has no ``rewards_``.
    further : mapping of str to mapping of str to Estimate
        Held-out means of further outcomes, by outcome and rule.
    limits : mapping of str to Limit
        The limits on them that the estimator was given.
    group_values : DataFrame or None
        By column and group of ``subgroups``: people, held-out value of the tree with a simultaneous interval (for all
        groups of all columns together), and the shares that get each treatment.
    gaps : tuple of GroupGap
        Differences between groups that the estimator was to limit (``EqualShares``, ``EqualValues``).

    Examples
    --------
    >>> import numpy as np
    >>> from policytree import DRPolicyTree, cross_val_policy_value
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(20, 80, size=(200, 1))
    >>> T = rng.permutation(np.repeat(["drug", "none"], 100))
    >>> Y = (T == "drug") * np.where(X[:, 0] > 50, 1.0, -1.0) + rng.normal(size=200)
    >>> model = DRPolicyTree(max_depth=1, cv=2, random_state=0)
    >>> values = cross_val_policy_value(model, Y, T, X=X, propensity=0.5, cv=2, n_repeats=1, random_state=0)
    >>> list(values.estimates)
    ['policy tree', 'always drug', 'always none', 'as randomised', 'plug-in rule']
    >>> values.differences["always none"].lower > 0.0  # the tree is better than no drug for anybody
    True
    """

    verdict: Verdict
    estimates: Mapping[str, Estimate] = field(repr=False)
    differences: Mapping[str, Estimate] = field(repr=False)
    against_best: BestComparison
    direction: str
    repetitions: tuple[Repetition, ...] = field(repr=False)
    judged: np.ndarray = field(repr=False)
    validation: Validation = field(repr=False)
    observed: StudyData = field(repr=False)
    agreement: float | None = None
    second_opinions: tuple[SecondOpinion, ...] = ()
    optimism: Mapping[str, Optimism] = field(default_factory=dict, repr=False)
    further: Mapping[str, Mapping[str, Estimate]] = field(default_factory=dict, repr=False)
    limits: Mapping[str, Limit] = field(default_factory=dict, repr=False)
    group_values: pd.DataFrame | None = field(default=None, repr=False)
    gaps: tuple[GroupGap, ...] = field(default=(), repr=False)
    hidden: Hidden | None = field(default=None, repr=False)

    @property
    def folds(self) -> FoldPlan:
        """Folds of the first repetition."""
        return self.repetitions[0].folds

    @property
    def policy(self) -> np.ndarray:
        """Treatment that the policy tree of the first repetition recommends to each judged row."""
        return self.repetitions[0].policy

    @property
    def plug_in(self) -> np.ndarray:
        """Treatment that the plug-in rule of the first repetition recommends to each judged row."""
        return self.repetitions[0].plug_in

    @property
    def rivals(self) -> Mapping[str, np.ndarray]:
        """Treatment that each rival of the first repetition recommends to each judged row."""
        return self.repetitions[0].rivals

    @property
    def rewards(self) -> pd.DataFrame:
        """Held-out rewards of the first repetition, (n_judged, K)."""
        return self.repetitions[0].rewards

    @property
    def trees(self) -> tuple[Any, ...]:
        """The fitted trees of all refits, repetition after repetition."""
        return tuple(tree for repetition in self.repetitions for tree in repetition.trees)

    @property
    def n_repeats(self) -> int:
        """Repetitions that were done."""
        return len(self.repetitions)

    def difference(self, a: str, b: str) -> Estimate:
        """Value of rule ``a`` of the table minus that of rule ``b``, paired, with the same variance as all others.

        Raises
        ------
        InputError
            If the table has no such rule.
        """
        for name in (a, b):
            if name not in self.estimates:
                raise InputError(f"The table has no rule {name!r}; it has {', '.join(self.estimates)}.")
        scores = [repetition.scores[a] - repetition.scores[b] for repetition in self.repetitions]
        fixed = fixed_rules(self.observed)
        return self.validation.estimate(scores, self.observed, self.estimates[a].level, learnt=not {a, b} <= fixed)

    def to_frame(self) -> pd.DataFrame:
        """One row per rule: value, standard_error, lower, upper, and difference, difference_standard_error, ... .

        A difference is the policy tree's value minus the row's; NaN in the policy tree's own row.
        """
        return rule_frame(self.estimates, self.differences)

    def optimism_frame(self) -> pd.DataFrame:
        """One row per rule that is learnt: its value on the rows that chose it, and how far that is off.

        ``training_value``, ``held_out_value``, ``optimism`` (the first minus the second), ``optimism_standard_error``,
        ``optimism_lower``, ``optimism_upper``. No rows if the estimator has no ``rewards_``.
        """
        rows = {}
        for rule, found in self.optimism.items():
            gap, row = found.difference, {"training_value": found.training_value}
            row |= {"held_out_value": self.estimates[rule].value, "optimism": gap.value}
            row |= {f"optimism_{part}": number for part, number in gap.numbers.items() if part != "value"}
            rows[rule] = row
        names = ["training_value", "held_out_value", "optimism"]
        names += ["optimism_standard_error", "optimism_lower", "optimism_upper"]
        return pd.DataFrame.from_dict(rows, orient="index", columns=names).rename_axis("rule")

    def further_frame(self) -> pd.DataFrame:
        """One row per further outcome and rule: value, standard_error, lower, upper."""
        lines = {(name, rule): e.numbers for name, rules in self.further.items() for rule, e in rules.items()}
        frame = pd.DataFrame.from_dict(lines, orient="index")
        if lines:
            frame.index = pd.MultiIndex.from_tuples(lines, names=["outcome", "rule"])
        return frame

    def limit_statements(self) -> tuple[str, ...]:
        """Whether the tree keeps to each limit on people who had no say in it, in a sentence each."""
        return tuple(limit_statement(name, limit, self.further[name][POLICY]) for name, limit in self.limits.items())

    def broken_limits(self) -> list[str]:
        """A sentence for every limit that the recommended rule does not keep to, held out."""
        return broken_limits(self.verdict.rule, self.further, self.limits)

    def kept_probabilities(self) -> dict[str, float]:
        """By limited outcome, the confidence that the tree's true mean keeps to the limit."""
        return {name: kept_probability(limit, self.further[name][POLICY]) for name, limit in self.limits.items()}

    @property
    def digits(self) -> int:
        """Decimals that show two significant digits of the smallest standard error."""
        return decimals(e.standard_error for e in [*self.estimates.values(), *self.differences.values()])

    def plot(self, **options: Any) -> PolicyValueDisplay:
        """Draw the held-out value of every rule with its interval.

        Options are ``ax``, ``differences``, ``title``, ``xlabel``, ``limits`` and ``marked``, as in
        :meth:`policytree.plotting.values.PolicyValueDisplay.plot`.
        """
        from policytree.plotting.values import PolicyValueDisplay

        return PolicyValueDisplay(self).plot(**options)

    def to_text(self) -> str:
        """Show verdict and table in fixed width, and say what they are."""
        return as_text(self._shown())

    def _shown(self) -> list[Any]:
        policy = self.estimates[POLICY]
        table = text_frame(self.to_frame(), rule_columns("tree", policy.level), digits=self.digits).rename_axis(None)
        better = "higher" if self.direction == "maximize" else "lower"
        lines: list[Any] = [
            f"{self.verdict}\n" + "".join(f"{text}\n" for text in self.broken_limits()),
            table,
            *self.statements(),
            *self.optimism_statements(),
        ]
        lines += [OPTIMISM] if self.optimism else []
        lines += further_lines(self.further, self.limits) + group_lines(self.group_values, self.gaps, policy.level)
        lines.insert(2, f"Held-out values, {better} is better; {self.size()}.")
        return lines

    def size(self) -> str:
        """How many rows, and clusters, were judged; with a target, how many of them are its people."""
        judged, study = self.estimates[POLICY], self.observed.study
        if study is None:
            return size_text(judged)
        if judged.n != len(study):
            return f"{size_text(judged)} of study and target"
        return f"{size_text(judged)}, {study.sum():,} of the study and {(~study).sum():,} of the target"

    def statements(self) -> tuple[str, ...]:
        """Describe the numbers in sentences: the best treatment, the rules judged, the rule shown."""
        refits = len(self.trees)
        rules = "one rule was learnt" if refits == 1 else f"{refits} rules were learnt"
        judged = "judged" if refits == 1 else "each judged"
        lines = [
            self.against_best.statement(self.digits),
            f"By {self.validation.describe(self.n_repeats)}: {rules} (nuisance models and tree), {judged} on people "
            "who had no part in it.",
        ]
        if self.validation.kind == SPLIT and self.agreement is None:
            lines.append("A rule learnt from all rows, or from other rows, was not judged.")
        elif self.agreement is None:
            lines.append("A rule learnt from all rows cannot be judged: no row is left for that.")
        else:
            lines.append(
                "The rule learnt from all rows cannot be judged itself, since no row is left for that; it gives "
                f"{self.agreement:.0%} of people the same treatment as the rules judged here."
            )
        if self.observed.instrument is not None:
            lines.append(
                f"Values are gains over {self.observed.treatments[0]!s}, known through the instrument; with rewards of "
                "compliers per person of all, of whom the others count as zero."
            )
        if self.observed.study is not None:
            lines.append("Values are of the people of the target, not of those of the study.")
        return tuple(lines)

    def optimism_statements(self) -> tuple[str, ...]:
        """State the value of each rule on the rows that chose it, in a sentence each."""
        digits, lines = self.digits, []
        for rule, found in self.optimism.items():
            gap = found.difference
            lines.append(
                f"On the rows that chose it the {rule} appears to bring {found.training_value:,.{digits}f}: its "
                f"optimism is {gap.value:+,.{digits}f}, {100 * gap.level:g}% interval {interval_text(gap, digits)}."
            )
        return tuple(lines)


def rule_frame(estimates: Mapping[str, Estimate], differences: Mapping[str, Estimate]) -> pd.DataFrame:
    """One row per rule: value, standard_error, lower, upper, and the same of its difference (NaN: none)."""
    frame = pd.DataFrame({rule: e.numbers for rule, e in estimates.items()}).T
    ahead = pd.DataFrame({rule: e.numbers for rule, e in differences.items()}, list(frame)).T
    ahead = ahead.add_prefix("difference_").rename(columns={"difference_value": "difference"})
    return frame.join(ahead).rename_axis("rule")
