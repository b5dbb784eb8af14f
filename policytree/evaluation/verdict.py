"""The verdict: which rule to use, computed from held-out comparisons."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from policytree.evaluation.best_arm import BestComparison
from policytree.evaluation.estimates import Estimate
from policytree.evaluation.numbers import decimals, interval_text


class Reason(Enum):
    """Why a rule is the one to use."""

    TREE_BETTER = "the tree is better than every single treatment"
    TREE_NOT_BETTER = "the tree is not shown better than the best single treatment"
    TREE_WORSE = "the tree is worse than the best single treatment"
    STATUS_QUO_BETTER = "what people got is better"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Which rule to use, and why; ``str()`` gives the sentence.

    A tree is recommended only where held-out people show it better than every single treatment: otherwise the best
    single treatment is simpler. What people got is recommended where it is shown better than either.

    Attributes
    ----------
    rule : str
        The rule to use, by its name in the table ("policy tree", "always drug", "status quo").
    reason : Reason
    against_best : BestComparison
        The tree against the best single treatment.
    against_status_quo : Estimate or None
        The recommended rule minus what people got (if that is the rule: the best alternative minus it).
    plug_in_better : Estimate or None
        The plug-in rule minus the recommended one, where it is shown better at the same level.
    """

    rule: str
    reason: Reason
    against_best: BestComparison
    against_status_quo: Estimate | None = None
    plug_in_better: Estimate | None = None

    @property
    def use_tree(self) -> bool:
        """Whether the tree is the rule to use."""
        return self.reason is Reason.TREE_BETTER

    @property
    def beats_status_quo(self) -> bool:
        """Whether the rule to use is shown better than what people got."""
        against = self.against_status_quo
        return against is not None and _shown_better(against, self.against_best.direction)

    def __str__(self) -> str:
        best = self.against_best
        lower = "; lower is better" if best.direction == "minimize" else ""
        shown = _shown(best, "tree - best treatment", best.level) + lower
        if self.reason is Reason.TREE_BETTER:
            text = f"Use the policy tree: on held-out people it is better than every single treatment ({shown})"
        elif self.reason is Reason.STATUS_QUO_BETTER and self.against_status_quo is not None:
            shown = _shown(self.against_status_quo, "the better of them - status quo", best.level) + lower
            text = f"Keep the status quo: on held-out people it is better than the tree and every treatment ({shown})"
        else:
            how = "worse than" if self.reason is Reason.TREE_WORSE else "not shown better than"
            text = f"Use {self.rule}: on held-out people the tree is {how} the best single treatment ({shown})"
            others = [name for name in best.candidates if name != self.rule]
            if others:
                text += f"; {_listed(others)} may be as good"
        if self.reason is not Reason.STATUS_QUO_BETTER and not self.beats_status_quo:
            text += f"; {self.rule} is not shown better than what people got"
        if self.plug_in_better is not None:
            plug = _shown(self.plug_in_better, f"plug-in rule - {self.rule}", best.level)
            text += f"; a rule that is no tree is better still ({plug})"
        return text + "."

    def to_dict(self) -> dict:
        """Plain values that JSON can hold."""
        best = self.against_best
        return {
            "rule": self.rule,
            "reason": self.reason.value,
            "sentence": str(self),
            "tree_minus_best_treatment": [best.value, best.lower, best.upper],
            "level": best.level,
            "possibly_best_treatments": list(best.candidates),
            "beats_status_quo": self.beats_status_quo,
        }


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " or " + names[-1]


def _shown(estimate, what: str, level: float) -> str:
    """A difference with its interval."""
    width = estimate.upper - estimate.lower
    digits = decimals([width / 4])
    return f"{what} {estimate.value:+,.{digits}f}, {100 * level:g}% interval {interval_text(estimate, digits)}"


def decide(against_best: BestComparison, names: tuple[str, str, str | None], difference, direction: str) -> Verdict:
    """Decide between the tree, the best single treatment and what people got.

    Parameters
    ----------
    against_best : BestComparison
    names : (tree, status quo, plug-in rule)
        Their names in the table; None where there is no plug-in rule.
    difference : callable (a, b) -> Estimate
        Value of rule a minus that of rule b.
    direction : {"maximize", "minimize"}

    Returns
    -------
    Verdict
    """
    tree, status_quo, plug_in = names
    if against_best.better:
        rule, reason = tree, Reason.TREE_BETTER
    else:
        rule = against_best.best
        reason = Reason.TREE_WORSE if against_best.worse else Reason.TREE_NOT_BETTER
    against = difference(rule, status_quo)
    if _shown_better(difference(status_quo, rule), direction) and _shown_better(
        difference(status_quo, tree), direction
    ):
        return Verdict(status_quo, Reason.STATUS_QUO_BETTER, against_best, against)
    if plug_in is None:
        return Verdict(rule, reason, against_best, against)
    plug = difference(plug_in, rule)
    return Verdict(rule, reason, against_best, against, plug if _shown_better(plug, direction) else None)


def _shown_better(difference: Estimate, direction: str) -> bool:
    return difference.lower > 0 if direction == "maximize" else difference.upper < 0
