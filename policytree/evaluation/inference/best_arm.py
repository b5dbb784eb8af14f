"""Comparisons with the best of several alternatives when the best is not known beforehand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from policytree.data.views import Shown
from policytree.evaluation.estimates import Estimate
from policytree.evaluation.formatting import decimals, interval_text

WHY_WIDER = (
    "This interval is not the one beside that treatment: it allows for the best having been picked by the same rows."
)


@dataclass(frozen=True, slots=True, repr=False)
class BestComparison(Shown):
    """A rule against the best of several alternatives, which the same rows had to name.

    Attributes
    ----------
    value : float
        Estimated value of the rule minus that of the alternative with the best estimate: flattering to that alternative
        and so too pessimistic for the rule; read the interval.
    lower, upper : float
        Interval of (value of the rule) - (value of the truly best alternative), in the outcome's unit.
    level : float
        Its coverage, which is at least this.
    best : str
        The alternative with the best estimate.
    candidates : tuple of str
        The alternatives that may be the best: not shown worse than ``best`` at this level, the best first.
    direction : {"maximize", "minimize"}

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
    >>> values.against_best.candidates  # these rows do not tell which treatment is best for everybody
    ('always none', 'always drug')
    >>> 0.0 < values.against_best.lower < values.against_best.value < values.against_best.upper
    True
    """

    value: float
    lower: float
    upper: float
    level: float
    best: str
    candidates: tuple[str, ...]
    direction: str

    def __str__(self) -> str:
        return self.statement(decimals([(self.upper - self.lower) / 4]))

    @property
    def better(self) -> bool:
        """Whether the rule is shown better than every alternative."""
        return self.lower > 0 if self.direction == "maximize" else self.upper < 0

    @property
    def worse(self) -> bool:
        """Whether the rule is shown worse than some alternative."""
        return self.upper < 0 if self.direction == "maximize" else self.lower > 0

    def statement(self, digits: int, rule: str = "Tree", single: str = "single treatment") -> str:
        """The comparison in a sentence, with so many decimals; what the rule and its alternatives are called."""
        known = f"by these rows, {self.best}"
        if len(self.candidates) > 1:
            known = f"which one is best is not known: it may be {', '.join(self.candidates)}"
        if self.lower == self.upper == 0.0:
            return f"{rule} and best {single} are the same for everybody ({known})."
        return (
            f"{rule} - best {single}: {self.value:+.{digits}f}, {100 * self.level:g}% interval "
            f"{interval_text(self, digits)} ({known})."
        )


def compare_with_best(
    differences: Mapping[str, Estimate], direction: str, candidates: tuple[str, ...] | None = None
) -> BestComparison:
    """Interval of a rule's value minus that of the best alternative, from the differences to each of them.

    For rewards to maximise and the estimated differences ``d_k`` (rule minus alternative ``k``, standard error ``s_k``)
    of ``A`` alternatives, the target is the smallest true difference. ``L = min_k (d_k - t_(1 - a/2) s_k)``: the rule
    beats the best only if it beats all, so no correction is needed (intersection-union). ``U = min_k (d_k + t_(1 -
    a/(2A)) s_k)`` (Bonferroni). When minimising, signs turn. Choosing the best alternative by its estimate and taking
    its own interval would call the rule worse too often: the best estimate is the luckiest one.

    Parameters
    ----------
    differences : mapping of str to Estimate
        Rule minus each alternative, paired, all at one level.
    direction : {"maximize", "minimize"}
    candidates : tuple of str, optional
        Sets :attr:`BestComparison.candidates`; just the best estimate by default.

    Returns
    -------
    BestComparison

    References
    ----------
    Hsu (1996), Multiple Comparisons: Theory and Methods, chapter 4. Berger (1982), Technometrics 24(4), 295-300.
    """
    sign = 1.0 if direction == "maximize" else -1.0
    names = list(differences)
    level = differences[names[0]].level
    tail = (1 - level) / 2
    gains = np.array([sign * differences[name].value for name in names])
    low = [_end(differences[name], sign, tail) for name in names]
    high = [_end(differences[name], sign, 1 - tail / len(names)) for name in names]
    best = names[int(np.argmin(gains))]
    ends = sorted((sign * float(np.min(low)), sign * float(np.min(high))))
    return BestComparison(float(sign * gains.min()), ends[0], ends[1], level, best, candidates or (best,), direction)


def _end(difference: Estimate, sign: float, probability: float) -> float:
    """A quantile of the gain, which is the difference in the direction that is better."""
    return sign * difference.quantile(probability if sign > 0 else 1 - probability)


def possibly_best(
    names: tuple[str, ...], differences: Mapping[tuple[str, str], Estimate], best: str, direction: str
) -> tuple[str, ...]:
    """The alternatives that are not shown worse than the one with the best estimate, that one first.

    Each difference (alternative minus best) takes the quantile ``1 - a / A`` of Student's t: with this probability at
    least the truly best alternative stays.

    Parameters
    ----------
    names : tuple of str
    differences : mapping of (name, best) to Estimate
    best : str
    direction : {"maximize", "minimize"}
    """
    kept = [best]
    sign = 1.0 if direction == "maximize" else -1.0
    for name in names:
        if name == best:
            continue
        difference = differences[name, best]
        if _end(difference, sign, 1 - (1 - difference.level) / len(names)) >= 0:
            kept.append(name)
    return tuple(kept)


def compare_with_best_arm(
    arms: tuple[str, ...],
    differences: Mapping[str, Estimate],
    difference: Callable[[str, str], Estimate],
    direction: str,
) -> BestComparison:
    """The rule of ``differences`` against the best of the arms, and which of them that may be.

    Parameters
    ----------
    arms : tuple of str
    differences : mapping of str to Estimate
        The rule minus each arm, and perhaps minus others.
    difference : callable (a, b) -> Estimate
        Value of arm a minus that of arm b.
    direction : {"maximize", "minimize"}
    """
    own = {name: differences[name] for name in arms}
    best = compare_with_best(own, direction).best
    to_best = {(name, best): difference(name, best) for name in arms if name != best}
    return compare_with_best(own, direction, possibly_best(arms, to_best, best, direction))
