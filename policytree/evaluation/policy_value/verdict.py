"""The verdict: which rule to use, computed from held-out comparisons; and whether these rows can say it at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import Any

from scipy.special import stdtrit

from policytree.evaluation.estimates import Estimate
from policytree.evaluation.formatting import decimals, interval_text
from policytree.evaluation.inference.best_arm import BestComparison
from policytree.evaluation.policy_value.gate import FRAGILE, UNSAID, Gate, merged, strength_of

POWER = 0.8  # probability with which the smallest gain that is named would have been shown
Difference = Callable[[str, str], Estimate]


class Reason(Enum):
    """Why a rule is the one to use."""

    TREE_BETTER = "the tree is better than every single treatment"
    TREATMENT_BETTER = "one treatment for everybody is better than the reference, the tree not shown better than that"
    TREE_BETTER_THAN_REFERENCE = "the tree is better than the reference, no single treatment is shown to be"
    NONE_BETTER = "no rule is shown better than the reference"
    STATUS_QUO_BETTER = "what people got is better"
    UNCLEAR = "these rows cannot say"


@dataclass(frozen=True, slots=True)
class Gain:
    """Value of a rule minus that of the reference, with an interval that allows for the choice of the rule.

    Attributes
    ----------
    rule, over : str
        Names of the rule and of the reference.
    value, lower, upper : float
        In the outcome's unit, net of what treatments cost. The interval is Bonferroni's over all rules that could have
        been chosen.
    gross : Estimate or None
        The same before costs, for this pair alone; None if treatments cost nothing.
    smallest : float
        Size of the true difference that such rows show to be one with a probability of 80 %.
    better : bool
        Whether the rule is shown better.
    """

    rule: str
    over: str
    value: float
    lower: float
    upper: float
    gross: Estimate | None
    smallest: float
    better: bool


@dataclass(frozen=True, slots=True)
class Words:
    """What a verdict calls the learnt rule and what it is compared with.

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
    """

    rule: str = "policy tree"
    short: str = "tree"
    single: str = "single treatment"
    fixed: str = "treatment"


TREE_WORDS = Words()
OFFER_WORDS = Words(single="single offer", fixed="offer")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Which rule to use, and why; ``str()`` gives the sentence.

    The reference is the control, or what people got where no control is named. A rule is recommended only where
    held-out people show it better than the reference. The tree is, where it is also shown better than every single
    treatment, or where no single treatment is shown better than the reference. Otherwise things stay as they are.

    Attributes
    ----------
    rule : str
        The rule to use, by its name in the table ("policy tree", "always drug", "status quo"); the reference where
        nothing is shown better or these rows cannot say.
    reason : Reason
    against_best : BestComparison
        The tree against the best single treatment.
    reference : str
        "always <control>" or "status quo".
    tree : Gain
        The tree against the reference.
    treatment : Gain or None
        The most promising single treatment, or the one that is recommended, against the reference.
    against_status_quo : Estimate or None
        The recommended rule minus what people got (if that is the rule: the best alternative minus it).
    plug_in_better : Gain or None
        The plug-in rule against the recommended one, where it is shown better.
    gates : tuple of Gate
        What the verdict rests on: every gate, those that it passed too (see :class:`Gate`).
    words : Words
        What its sentence calls rules.

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
    ('policy tree', 'status quo', True)
    """

    rule: str
    reason: Reason
    against_best: BestComparison
    reference: str
    tree: Gain
    treatment: Gain | None
    against_status_quo: Estimate | None = None
    plug_in_better: Gain | None = None
    gates: tuple[Gate, ...] = ()
    words: Words = TREE_WORDS

    @property
    def use_tree(self) -> bool:
        """Whether the tree is the rule to use."""
        return self.reason in (Reason.TREE_BETTER, Reason.TREE_BETTER_THAN_REFERENCE)

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

    def __str__(self) -> str:
        if self.reason is Reason.UNCLEAR:
            remedies = [gate.remedy for gate in self.gates if gate.state == UNSAID and gate.remedy]
            return " ".join([f"What to do cannot be said from these rows: {'; '.join(self.doubts)}.", *remedies])
        return " ".join([*(f"{gate.reason}." for gate in self.gates if gate.state == FRAGILE), self._sentence()])

    def _sentence(self) -> str:
        """The recommendation, as if every gate was passed."""
        text = _SENTENCES[self.reason](self)
        if self.plug_in_better is not None:
            text += f"; a rule that is no tree is better still ({self._gain(self.plug_in_better)})"
        return text + "."

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
            if gain is not None:
                out[f"{name}_minus_reference"] = [gain.value, gain.lower, gain.upper]
                if gain.gross is not None:
                    out[f"{name}_minus_reference_gross"] = [gain.gross.value, gain.gross.lower, gain.gross.upper]
        return out

    # --- parts of the sentence ---

    @property
    def _lower(self) -> str:
        return "; lower is better" if self.against_best.direction == "minimize" else ""

    @property
    def _best_shown(self) -> str:
        what = f"{self.words.short} - best {self.words.fixed}"
        return _shown(self.against_best, what, self.against_best.level)

    @property
    def _of_reference(self) -> str:
        """The reference in words."""
        return "what people got" if not self.reference.startswith("always ") else f"the control, {self.reference}"

    def _gain(self, gain: Gain) -> str:
        """A gain with its interval, net and gross."""
        level = self.against_best.level
        rule = self.words.short if gain.rule == self.words.rule else gain.rule
        text = _shown(gain, f"{rule} - {gain.over}", level)
        if gain.gross is not None:
            text += f", net of costs; before costs {_shown(gain.gross, '', level).strip()}"
        return text

    def _others(self) -> str:
        others = [name for name in self.against_best.candidates if name != self.rule]
        return f"; {_listed(others)} may be as good" if others else ""

    def _tree_better(self) -> str:
        return (
            f"Use the {self.words.rule}: on held-out people it is better than every {self.words.single} "
            f"({self._best_shown}{self._lower}) and than {self._of_reference} ({self._gain(self.tree)})"
        )

    def _tree_better_than_reference(self) -> str:
        return (
            f"Use the {self.words.rule}: on held-out people it is better than {self._of_reference} "
            f"({self._gain(self.tree)}{self._lower}), which no {self.words.single} is shown to be; it is not shown "
            f"better than the best of them ({self._best_shown})"
        )

    def _treatment_better(self) -> str:
        assert self.treatment is not None
        how = "worse" if self.against_best.worse else "not shown better"
        return (
            f"Give {self.rule.removeprefix('always ')} to everybody: on held-out people that is better than "
            f"{self._of_reference} ({self._gain(self.treatment)}{self._lower}); the {self.words.short} is {how} than "
            f"the best {self.words.single} ({self._best_shown}){self._others()}"
        )

    def _none_better(self) -> str:
        level = self.against_best.level
        nearest = self.tree if self.treatment is None else self.treatment
        digits = decimals([self.tree.smallest / 4])
        return (
            f"No {self.words.fixed} and no {self.words.short} is shown better than {self._of_reference}: leave things "
            f"as they are ({self._gain(nearest)}; {self._best_shown}{self._lower}). At {100 * level:g}%, rows like "
            f"these show a {self.words.short}'s gain of {self.tree.smallest:,.{digits}f} or more with a probability of "
            f"{POWER:.0%}, smaller ones less often"
        )

    def _status_quo_better(self) -> str:
        assert self.against_status_quo is not None
        shown = _shown(self.against_status_quo, "the better of them - status quo", self.against_best.level)
        return (
            f"Keep the status quo: on held-out people it is better than the {self.words.short} and every "
            f"{self.words.fixed} "
            f"({shown}{self._lower})"
        )


_SENTENCES: dict[Reason, Callable[[Verdict], str]] = {
    Reason.TREE_BETTER: Verdict._tree_better,
    Reason.TREE_BETTER_THAN_REFERENCE: Verdict._tree_better_than_reference,
    Reason.TREATMENT_BETTER: Verdict._treatment_better,
    Reason.NONE_BETTER: Verdict._none_better,
    Reason.STATUS_QUO_BETTER: Verdict._status_quo_better,
}


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " or " + names[-1]


def _shown(estimate, what: str, level: float) -> str:
    """A difference with its interval."""
    width = estimate.upper - estimate.lower
    digits = decimals([width / 4])
    return f"{what} {estimate.value:+,.{digits}f}, {100 * level:g}% interval {interval_text(estimate, digits)}"


@dataclass(frozen=True, slots=True)
class SecondOpinion:
    """The verdict by other models of the probabilities of treatment.

    Attributes
    ----------
    model : str
        What they are, in words.
    verdict : Verdict
    """

    model: str
    verdict: Verdict

    def compared_with(self, first: Verdict, what: str = "treatment") -> str:
        """What it says beside another verdict; ``what`` was assigned with probabilities by these models."""
        models = f"By {self.model}, the models of {what} of second least error"
        same = self.verdict.rule == first.rule
        return f"{models}, the verdict is the same." if same else f"{models}, it is another one: {self.verdict}"


@dataclass(frozen=True, slots=True)
class Rules:
    """Names of the rules that a verdict is about.

    Attributes
    ----------
    tree, status_quo : str
    arms : tuple of str
        "always <treatment>" for every treatment.
    control : str or None
        The one of ``arms`` that others are compared with; None if there is none, and the status quo takes its place.
    plug_in : str or None
    words : Words
    """

    tree: str
    status_quo: str
    arms: tuple[str, ...]
    control: str | None = None
    plug_in: str | None = None
    words: Words = TREE_WORDS


def decide(
    against_best: BestComparison, rules: Rules, difference: Difference, direction: str, gross: Difference | None = None
) -> Verdict:
    """Decide between the tree, the single treatments, the control and what people got.

    The rules that could be named are the tree, every single treatment but the control, and the plug-in rule, ``m`` in
    all. Each is shown
    better than the reference if its interval of coverage ``1 - (1 - level) / m`` says so (Bonferroni): the probability
    that some rule is wrongly shown better is at most ``(1 - level) / 2``.

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
    reference = rules.control or rules.status_quo
    candidates = [name for name in rules.arms if name != rules.control]
    count, sign = len(candidates) + 1 + (rules.plug_in is not None), 1.0 if direction == "maximize" else -1.0

    def gain(rule: str, over: str = reference) -> Gain:
        estimate = difference(rule, over)
        tail = (1 - estimate.level) / (2 * count)
        low, high = estimate.quantile(tail), estimate.quantile(1 - tail)
        steps = [float(stdtrit(max(estimate.degrees_of_freedom, 1), p)) for p in (1 - tail, POWER)]
        before = None if gross is None or rules.plug_in in (rule, over) else gross(rule, over)
        return Gain(
            rule, over, estimate.value, low, high, before, sum(steps) * estimate.standard_error,
            low > 0 if direction == "maximize" else high < 0,
        )  # fmt: skip

    tree = gain(rules.tree)
    gains = {name: gain(name) for name in candidates}
    promising = max(candidates, key=lambda name: sign * gains[name].value, default=None)
    shown = [name for name in candidates if gains[name].better]
    treatment = None if promising is None else gains[promising]
    if against_best.better and (rules.control is not None or tree.better):
        rule, reason = rules.tree, Reason.TREE_BETTER
    elif shown:
        rule, reason = max(shown, key=lambda name: sign * gains[name].value), Reason.TREATMENT_BETTER
        treatment = gains[rule]
    elif tree.better:
        rule, reason = rules.tree, Reason.TREE_BETTER_THAN_REFERENCE
    else:
        rule, reason = reference, Reason.NONE_BETTER
    others = max((rules.tree, *rules.arms), key=lambda name: sign * difference(name, rules.status_quo).value)
    against = difference(others if rule == rules.status_quo else rule, rules.status_quo)
    kept = [difference(rules.status_quo, name) for name in (rules.tree, against_best.best)]
    if all(_shown_better(estimate, direction) for estimate in kept):
        rule, reason = rules.status_quo, Reason.STATUS_QUO_BETTER
    plug = None if rules.plug_in is None else gain(rules.plug_in, rule)
    plug = plug if plug is not None and plug.better else None
    return Verdict(rule, reason, against_best, reference, tree, treatment, against, plug, words=rules.words)


def _shown_better(difference: Estimate, direction: str) -> bool:
    return difference.lower > 0 if direction == "maximize" else difference.upper < 0
