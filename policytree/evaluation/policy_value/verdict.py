"""The verdict: which rule to use, computed from held-out comparisons; and whether these rows can say it at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import Any

from scipy.special import ndtri, stdtrit

from policytree.data.views import Shown
from policytree.evaluation.estimates import Estimate
from policytree.evaluation.formatting import confidence_text, decimals
from policytree.evaluation.inference.best_arm import BestComparison
from policytree.evaluation.inference.step_down import (
    Difference,
    Ranking,
    against_reference,
    probability,
    rank_treatments,
)
from policytree.evaluation.policy_value.gate import ASSIGNMENT, ASSUMED, FRAGILE, UNSAID, Gate, merged, strength_of
from policytree.trees.text import with_unit
from policytree.trees.tree import Tree

POWER = 0.8  # probability with which the smallest gain that is named would have been shown
ADJUSTED = 0.9  # of the tail of one comparison alone: below this an interval is called wider


class Reason(Enum):
    """Why a rule is the one to use."""

    TREE_BETTER = "the tree is better than every single treatment"
    TREATMENT_BETTER = "one treatment for everybody is better than the reference, the tree not shown better than that"
    TREATMENT_BEST = "one treatment for everybody is better than every other one, the tree not shown better than that"
    TREE_BETTER_THAN_REFERENCE = "the tree is better than the reference, no single treatment is shown to be"
    NONE_BETTER = "no rule is shown better than the reference"
    NONE_BEST = "no rule is shown better than all others, and nothing says which one is the standard"
    STATUS_QUO_BETTER = "what people got is better"
    UNCLEAR = "these rows cannot say"


LEARNT_RULE = (Reason.TREE_BETTER, Reason.TREE_BETTER_THAN_REFERENCE)


def recommends(rule: str | None, reason: Reason, trees: Sequence[Tree]) -> bool:
    """Whether a verdict says to use these trees, one per decision, or what they give everybody.

    Parameters
    ----------
    rule, reason
        Those of the verdict.
    trees : sequence of Tree
    """
    if reason in LEARNT_RULE or reason is Reason.UNCLEAR:
        return reason in LEARNT_RULE
    given = [{str(tree.actions[k]) for k in tree.action[tree.is_leaf]} for tree in trees]
    return all(len(labels) == 1 for labels in given) and rule == f"always {' then '.join(map(min, given))}"


@dataclass(frozen=True, slots=True, repr=False)
class Gain(Shown):
    """Value of a rule minus that of the reference, with an interval that allows for the choice of the rule.

    Attributes
    ----------
    rule, over : str
        Names of the rule and of what it is compared with.
    value, lower, upper : float
        In the outcome's unit, net of what treatments cost. The interval excludes zero where the closed test of
        :func:`policytree.evaluation.inference.step_down.against_reference` shows a difference.
    gross : Estimate or None
        The same before costs, for this pair alone; None if treatments cost nothing.
    smallest : float
        Size of the true difference that such rows show to be one with a probability of at least 80 %.
    better : bool
        Whether the rule is shown better.
    adjusted : bool
        Whether the interval is wider than that of this pair alone, since other rules could have been named.
    """

    rule: str
    over: str
    value: float
    lower: float
    upper: float
    gross: Estimate | None
    smallest: float
    better: bool
    adjusted: bool = False


@dataclass(frozen=True, slots=True)
class Words:
    """Names that a verdict uses for the learnt rule and its comparisons.

    Attributes
    ----------
    rule : str
        The learnt rule, by its name in the table.
    short : str
        The same in a few letters.
    single : str
        One of the rules that give everybody the same.
    fixed : str
        The same in a word.
    unit : str
        Of the outcome; "" if nobody said it.
    """

    rule: str = "policy tree"
    short: str = "tree"
    single: str = "single treatment"
    fixed: str = "treatment"
    unit: str = ""


TREE_WORDS = Words()
OFFER_WORDS = Words(single="single offer", fixed="offer")


@dataclass(frozen=True, slots=True, repr=False)
class Verdict(Shown):
    """Which rule to use, and why; ``str()`` gives the sentences.

    The reference is the control. Without one it is what people got, unless treatments were drawn by lot: nobody gets
    the mixture that was drawn, so treatments are then compared with each other. A rule is recommended only where
    held-out people show it better than the reference, or, without one, than every treatment. The tree is, where it is
    shown better than the reference and than every single treatment, or where it is shown better than the reference and
    no single treatment is. Otherwise things stay as they are.

    Attributes
    ----------
    rule : str or None
        The rule to use, by its name in the table ("policy tree", "always drug", "status quo"); the reference where
        nothing is shown better or these rows cannot say; None then if there is no reference.
    reason : Reason
    against_best : BestComparison
        The tree against the best single treatment.
    reference : str or None
        "always <control>" or "status quo"; None where treatments are compared with each other.
    tree : Gain
        The tree against the reference; without one, against the treatment of the best estimate.
    treatment : Gain or None
        The most promising single treatment, or the one that is recommended, against the reference; without one, the
        treatment of the best estimate against the other one that comes closest.
    against_status_quo : Estimate or None
        The recommended rule minus what people got (if that is the rule: the best alternative minus it); None where
        treatments were drawn by lot.
    ranking : Ranking or None
        Where there is no reference: which treatments the one of the best estimate is shown better than.
    gates : tuple of Gate
        All gates of the verdict (:mod:`policytree.evaluation.policy_value.gate`), those passed too.
    words : Words
        Names of rules in its sentence, and the unit of the outcome.
    in_words : str
        The tree that was learnt from all rows, as a sentence; "" if it is not known.
    changed : float or None
        Share of people whom the recommended treatment, else that tree, gives another treatment than the reference does;
        None if it is not known.
    other_than_best : float or None
        Share of people whom the tree that is recommended gives another treatment than the best single one; None if it
        is not recommended, or not known.

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
    >>> values.verdict.rule, values.verdict.reference, values.verdict.use_tree
    ('policy tree', 'always none', True)
    """

    rule: str | None
    reason: Reason
    against_best: BestComparison
    reference: str | None
    tree: Gain
    treatment: Gain | None
    against_status_quo: Estimate | None = None
    ranking: Ranking | None = None
    gates: tuple[Gate, ...] = ()
    words: Words = TREE_WORDS
    in_words: str = ""
    changed: float | None = None
    other_than_best: float | None = None

    @property
    def use_tree(self) -> bool:
        """Whether the tree is the rule to use."""
        return self.reason in LEARNT_RULE

    @property
    def beats_status_quo(self) -> bool:
        """Whether the rule to use is shown better than what people got."""
        against = self.against_status_quo
        return against is not None and _shown_better(against, self.against_best.direction)

    @property
    def smallest_gain(self) -> float:
        """The smallest gain of a tree over the reference that such rows show with a probability of 80 %."""
        return self.tree.smallest

    @property
    def strength(self) -> str:
        """The state of the weakest gate: "supported", "fragile" or "cannot be said"."""
        return strength_of(self.gates)

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why these rows cannot say what to do; empty if they can."""
        return tuple(gate.reason for gate in self.gates if gate.state == UNSAID)

    def through(self, gates: Iterable[Gate]) -> Verdict:
        """The same with these gates as well; withheld if one of them says that these rows cannot say what to do."""
        held = replace(self, gates=merged((*self.gates, *gates)))
        return replace(held, rule=self.reference, reason=Reason.UNCLEAR) if held.strength == UNSAID else held

    @property
    def reasons(self) -> str:
        """Why the verdict is as strong as it is, as a clause; "" where it was asked of no gate."""
        return "; ".join(_lowered(gate.reason) for gate in self.gates if gate.state == self.strength)

    @property
    def assumption(self) -> str:
        """Assumptions of the verdict that no data can show, in a sentence; "" where treatments were drawn by lot."""
        return " ".join(f"{gate.reason[:1].upper()}{gate.reason[1:]}." for gate in self.gates if gate.state == ASSUMED)

    @property
    def proposal(self) -> str:
        """The action to take, without a number."""
        if self.use_tree:
            return self.in_words or f"Use the {self.words.rule}."
        if self.reason in (Reason.TREATMENT_BETTER, Reason.TREATMENT_BEST):
            assert self.treatment is not None
            return f"Give {label_of(self.treatment.rule)} to everybody."
        if self.reason is Reason.NONE_BETTER:
            of = f"No {self.words.fixed} and no {self.words.short} is shown better than {self._of_reference}"
            return f"{of}: leave things as they are."
        if self.reason is Reason.NONE_BEST:
            return f"No {self.words.fixed} and no {self.words.short} is shown better than all others."
        if self.reason is Reason.STATUS_QUO_BETTER:
            return f"Keep what people got: it is better than the {self.words.short} and every {self.words.fixed}."
        return "These data cannot say what to do."

    @property
    def recommendation(self) -> str:
        """The action to take and its gain, without the strength of the evidence."""
        if self.reason is Reason.UNCLEAR:
            return self.proposal
        return " ".join([self._sentence(), *self._rests_on()])

    @property
    def gain(self) -> Gain | None:
        """Gain of the rule to use over the one it is compared with; None where nothing is shown better."""
        if self.use_tree:
            return self.tree
        return self.treatment if self.reason in (Reason.TREATMENT_BETTER, Reason.TREATMENT_BEST) else None

    def __str__(self) -> str:
        if self.reason is Reason.UNCLEAR:
            remedies = [gate.remedy for gate in self.gates if gate.state == UNSAID and gate.remedy]
            return " ".join([f"{self.recommendation.rstrip('.')}: {'; '.join(self.doubts)}.", *remedies])
        first = [f"This is fragile: {self.reasons}."] if self.strength == FRAGILE else []
        return " ".join([*first, self.recommendation])

    def _rests_on(self) -> list[str]:
        """How treatments were assigned, which a recommendation rests on, in a sentence, if gates say it."""
        if self.rule in (None, self.reference):
            return []
        return [f"{gate.reason[:1].upper()}{gate.reason[1:]}." for gate in self.gates if gate.name == ASSIGNMENT]

    def _sentence(self) -> str:
        """The recommendation, as if every gate was passed."""
        return _SENTENCES[self.reason](self)

    def to_dict(self) -> dict[str, Any]:
        """Plain values that JSON can hold."""
        best = self.against_best
        out: dict[str, Any] = {
            "rule": self.rule,
            "reason": self.reason.value,
            "sentence": str(self),
            "reference": self.reference,
            "tree_minus_best_treatment": [best.value, best.lower, best.upper],
            "level": best.level,
            "possibly_best_treatments": list(best.candidates),
            "beats_status_quo": self.beats_status_quo,
            "smallest_gain_shown": self.smallest_gain,
            "doubts": list(self.doubts),
            "strength": self.strength,
            "gates": [asdict(gate) for gate in self.gates],
        }
        for name, gain in (("tree", self.tree), ("treatment", self.treatment)):
            if gain is not None and self.reference is not None:
                out[f"{name}_minus_reference"] = [gain.value, gain.lower, gain.upper]
                if gain.gross is not None:
                    out[f"{name}_minus_reference_gross"] = [gain.gross.value, gain.gross.lower, gain.gross.upper]
        if self.ranking is not None:
            out["best_estimate"] = self.ranking.best
            out["better_than"], out["not_told_apart"] = (
                list(names) for names in (self.ranking.better_than, self.ranking.not_told_apart)
            )
        if self.changed is not None:
            out["changed"] = self.changed
        if self.other_than_best is not None:
            out["other_than_best"] = self.other_than_best
        return out

    # --- parts of the sentences ---

    @property
    def _of_reference(self) -> str:
        """The reference in words."""
        reference = self.reference or ""
        control = reference.removeprefix("always ")
        if control == reference:
            return "what people got"
        return control if control.lower() == "control" else f"{control}, the control"

    @property
    def _than_reference(self) -> str:
        """The same after "more than"."""
        return self._than(self.reference or "")

    def _than(self, rule: str) -> str:
        """Name the comparison of a value: "under placebo", "what people got"."""
        if rule == self.reference:
            named = self._of_reference
            return named if named == "what people got" else f"under {named}"
        return f"under {label_of(rule)}"

    def size(self, estimate: Gain | BestComparison | Estimate) -> str:
        """A difference in the outcome's unit, with the word that says which way."""
        digits = decimals([(estimate.upper - estimate.lower) / 4])
        size = with_unit(f"{abs(estimate.value):,.{digits}f}", self.words.unit)
        return f"{size} {'more' if estimate.value >= 0 else 'less'}"

    def interval(self, estimate: Gain | BestComparison | Estimate) -> str:
        """A confidence interval, with its level."""
        digits = decimals([(estimate.upper - estimate.lower) / 4])
        return confidence_text(estimate.lower, estimate.upper, digits, self.against_best.level)

    def _gain(self, gain: Gain, over: str) -> str:
        """A gain with its interval, net and before costs."""
        how = ", which allows for the choice among rules" if gain.adjusted else ""
        text = f"{self.size(gain)} than {over} ({self.interval(gain)}{how})"
        if gain.gross is not None:
            text += f", net of costs; {self.size(gain.gross)} before costs ({self.interval(gain.gross)})"
        return text

    @property
    def _best_single(self) -> str:
        """The tree against the best of the others, in words."""
        best, words = self.against_best, self.words
        if best.lower == best.upper == 0.0:  # in every refit
            return f"The {words.short} gives everybody the best {words.single}, whichever people it is learnt from"
        how = "worse" if best.worse else "better" if best.better else "not shown better"
        return f"The {words.short} is {how} than the best {words.single} ({self.size(best)}, {self.interval(best)})"

    @property
    def _use(self) -> str:
        """The tree in a sentence, and how many people change treatment, as far as that is known."""
        return f"Use the {self.words.rule}{self._rule}{self._people}"

    @property
    def _rule(self) -> str:
        return f": {_lowered(self.in_words)}" if self.in_words else "."

    @property
    def _people(self) -> str:
        return "" if self.changed is None else f" {100 * self.changed:.0f} of 100 people change {self.words.fixed}."

    @property
    def _lower(self) -> str:
        return " Lower is better." if self.against_best.direction == "minimize" else ""

    def _others(self) -> str:
        others = [label_of(name) for name in self.against_best.candidates if name != self.rule]
        return f" {_listed(others, 'or')} may be as good." if others else ""

    def _tree_better(self) -> str:
        best = f"the best {self.words.single}"
        what = f"{self.size(self.against_best)} than {best} ({self.interval(self.against_best)})"
        if self.reference is not None:
            what += f" and {self._gain(self.tree, self._than_reference)}"
        return f"{self._use} On people who had no part in learning it, it brings {what}.{self._lower}"

    def _tree_better_than_reference(self) -> str:
        return (
            f"{self._use} On people who had no part in learning it, it brings "
            f"{self._gain(self.tree, self._than_reference)}. No {self.words.single} is shown better than that. "
            f"{self._best_single}.{self._lower}"
        )

    def _treatment_better(self) -> str:
        assert self.treatment is not None
        people = self._people if self._of_reference == "what people got" else ""
        return (
            f"Give {label_of(self.treatment.rule)} to everybody: {self._gain(self.treatment, self._than_reference)}."
            f"{people} {self._best_single}.{self._others()}{self._lower}"
        )

    def _treatment_best(self) -> str:
        assert self.treatment is not None and self.ranking is not None
        nearest = self._than(self.treatment.over)
        every = "" if len(self.ranking.better_than) == 1 else f" It is better than every other {self.words.fixed}."
        return (
            f"Give {label_of(self.treatment.rule)} to everybody: {self._gain(self.treatment, nearest)}.{every} "
            f"{self._best_single}.{self._lower}"
        )

    @property
    def _power(self) -> str:
        if not self.tree.smallest:  # the rule gives everybody what they are compared with
            return ""
        digits = decimals([self.tree.smallest / 4])
        size = with_unit(f"{self.tree.smallest:,.{digits}f}", self.words.unit)
        return f" This study has {POWER:.0%} power to detect a gain of {size} by a {self.words.short}."

    def _none_better(self) -> str:
        nearest = self.tree if self.treatment is None else self.treatment
        rule = f"The {self.words.short}" if nearest is self.tree else label_of(nearest.rule)
        return (
            f"{self.proposal} {rule}: {self._gain(nearest, self._than_reference)}. {self._best_single}.{self._lower}"
            f"{self._power}"
        )

    def _none_best(self) -> str:
        assert self.ranking is not None
        found = self.ranking
        parts = []
        if found.better_than:
            parts.append(f"better than {_listed([label_of(name) for name in found.better_than], 'and')}")
        parts.append(f"not shown different from {_listed([label_of(name) for name in found.not_told_apart], 'or')}")
        return (
            f"{self.proposal} {label_of(found.best)} has the best estimate; it is {', and '.join(parts)}. "
            f"{self._best_single}.{self._lower}{self._power} To have all tested against the {self.words.fixed} that is "
            "usual today, name it as the control."
        )

    def _status_quo_better(self) -> str:
        assert self.against_status_quo is not None
        against = self.against_status_quo
        return (
            f"Keep what people got: it is better than the {self.words.short} and every {self.words.fixed} (the best of "
            f"them has {self.size(against)}, {self.interval(against)}).{self._lower}"
        )


_SENTENCES: dict[Reason, Callable[[Verdict], str]] = {
    Reason.TREE_BETTER: Verdict._tree_better,
    Reason.TREE_BETTER_THAN_REFERENCE: Verdict._tree_better_than_reference,
    Reason.TREATMENT_BETTER: Verdict._treatment_better,
    Reason.TREATMENT_BEST: Verdict._treatment_best,
    Reason.NONE_BETTER: Verdict._none_better,
    Reason.NONE_BEST: Verdict._none_best,
    Reason.STATUS_QUO_BETTER: Verdict._status_quo_better,
}


def _lowered(reason: str) -> str:
    """A clause within a sentence: the first letter is small, unless it begins a name such as "DNA"."""
    return reason[:1].lower() + reason[1:] if reason[1:2].islower() or reason[1:2] == " " else reason


def label_of(rule: str) -> str:
    """The treatment that a rule gives everybody."""
    return rule.removeprefix("always ")


def _listed(names: list[str], last: str) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + f" {last} {names[-1]}"


@dataclass(frozen=True, slots=True)
class SecondOpinion:
    """The verdict by other models.

    Attributes
    ----------
    of : {"treatment", "outcomes"}
        Whose models were replaced.
    about : str
        The same in words: "treatment", "the offer", "outcomes".
    model : str
        Their kind, in words.
    verdict : Verdict
    """

    of: str
    about: str
    model: str
    verdict: Verdict

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {"of": self.of, "model": self.model, "verdict": self.verdict.to_dict()}

    def compared_with(self, first: Verdict) -> str:
        """Whether the conclusion changes."""
        if self.verdict.rule == first.rule:
            return f"The conclusion is the same under {self.model} as the model of {self.about}."
        return f"The conclusion changes under {self.model} as the model of {self.about}: {self.verdict}"


@dataclass(frozen=True, slots=True)
class Rules:
    """Names of the rules that a verdict is about.

    Attributes
    ----------
    tree : str
    status_quo : str or None
        The treatments that people got; None where these were drawn by lot, so that nobody gets that mixture.
    arms : tuple of str
        "always <treatment>" for every treatment.
    control : str or None
        The one of ``arms`` that others are compared with; None if there is none, and the status quo takes its place.
    words : Words
    """

    tree: str
    status_quo: str | None
    arms: tuple[str, ...]
    control: str | None = None
    words: Words = TREE_WORDS


def decide(
    against_best: BestComparison, rules: Rules, difference: Difference, direction: str, gross: Difference | None = None
) -> Verdict:
    """Decide between the tree, the single treatments, the control and what people got.

    With a reference, by the closed test of :func:`against_reference`, which also has the proof that a rule which is no
    better than the reference is recommended with a probability of at most ``(1 - level) / 2``. Without one, by
    :func:`rank_treatments`. The status quo is kept as such where it is shown better than the tree and every treatment.

    Parameters
    ----------
    against_best : BestComparison
        The tree against the best of the arms.
    rules : Rules
    difference : callable (a, b) -> Estimate
        Value of rule a minus that of rule b, net of costs.
    direction : {"maximize", "minimize"}
    gross : callable (a, b) -> Estimate, optional
        The same before costs.

    Returns
    -------
    Verdict
    """
    sign = 1.0 if direction == "maximize" else -1.0

    def gain(rule: str, over: str, critical: float) -> Gain:
        estimate = difference(rule, over)
        tail, alone = 1 - probability(critical), (1 - estimate.level) / 2
        low, high = estimate.quantile(tail), estimate.quantile(1 - tail)
        steps = [float(stdtrit(max(estimate.degrees_of_freedom, 1), p)) for p in (1 - tail, POWER)]
        before = None if gross is None else gross(rule, over)
        return Gain(
            rule, over, estimate.value, low, high, before, sum(steps) * estimate.standard_error,
            low > 0 if direction == "maximize" else high < 0, tail < ADJUSTED * alone,
        )  # fmt: skip

    reference = rules.control or rules.status_quo or (rules.arms[0] if len(rules.arms) == 1 else None)
    if reference is None:
        return _without_reference(against_best, rules, difference, direction, gain)
    candidates = [name for name in rules.arms if name != reference]
    found = against_reference(rules.tree, candidates, reference, difference, direction)
    gains = {name: gain(name, reference, found.critical[name]) for name in candidates}
    promising = max(found.shown or candidates, key=lambda name: sign * gains[name].value, default=None)
    treatment = None if promising is None else gains[promising]
    if found.tree_best:
        rule, reason = rules.tree, Reason.TREE_BETTER
    elif found.shown and promising is not None:
        rule, reason = promising, Reason.TREATMENT_BETTER
    elif found.tree:
        rule, reason = rules.tree, Reason.TREE_BETTER_THAN_REFERENCE
    else:
        rule, reason = reference, Reason.NONE_BETTER
    against = None
    if rules.status_quo is not None:
        names = (rules.tree, *rules.arms)
        kept = [difference(rules.status_quo, name) for name in names]
        if all(_shown_better(estimate, direction) for estimate in kept):
            rule, reason = rules.status_quo, Reason.STATUS_QUO_BETTER
        others = max(names, key=lambda name: sign * difference(name, rules.status_quo or "").value)
        against = difference(others if rule == rules.status_quo else rule, rules.status_quo)
    tree = gain(rules.tree, reference, found.critical[rules.tree])
    return Verdict(rule, reason, against_best, reference, tree, treatment, against, words=rules.words)


def _without_reference(
    against_best: BestComparison, rules: Rules, difference: Difference, direction: str,
    gain: Callable[[str, str, float], Gain],
) -> Verdict:  # fmt: skip
    """Decide where no rule is the one that people would get anyway."""
    ranking = rank_treatments(rules.tree, rules.arms, difference, direction)
    alone = -float(ndtri((1 - against_best.level) / 2))
    tree, treatment = gain(rules.tree, ranking.best, alone), gain(ranking.best, ranking.rival, ranking.critical)
    rule: str | None = None
    reason = Reason.NONE_BEST
    if ranking.tree_best:
        rule, reason = rules.tree, Reason.TREE_BETTER
    elif ranking.is_best:
        rule, reason = ranking.best, Reason.TREATMENT_BEST
    return Verdict(rule, reason, against_best, None, tree, treatment, ranking=ranking, words=rules.words)


def _shown_better(difference: Estimate, direction: str) -> bool:
    return difference.lower > 0 if direction == "maximize" else difference.upper < 0
