"""Planning a trial that compares a rule with one treatment for all, from what its held-out evaluation says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from policytree.common.validation import check_level
from policytree.data.views import Shown
from policytree.evaluation.estimates import Estimate
from policytree.evaluation.formatting import decimals, interval_text
from policytree.evaluation.policy_value.rule_names import POLICY
from policytree.evaluation.policy_value.tables import PolicyValueTable
from policytree.exceptions import InputError, quoted

EVERYBODY, DIFFERING = "everybody", "those treated otherwise"
QUANTILES = (np.arange(200) + 0.5) / 200  # of what the gain may truly be


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TrialPlan(Shown):
    """How many people a trial of a rule needs.

    Attributes
    ----------
    against : str
        Comparison of the rule, such as "always placebo".
    gain : Estimate
        Held-out value of the rule less that of ``against``, per person of all.
    differing : float
        Share of people whom the rule treats otherwise.
    power, level : float
        As asked for.
    designs : DataFrame
        A row for each design: "everybody" is randomised, or only "those treated otherwise", whose mean difference is
        the gain over their share. ``per_arm``: people in each of two arms of equal size; ``screened``: people who are
        looked at until both arms are full; ``difference`` and ``spread``: the mean difference and the standard
        deviation within arms that sizes follow from; ``assurance``: the power, averaged over what the gain may truly
        be (O'Hagan, Stevens and Campbell 2005).

    Examples
    --------
    >>> import numpy as np
    >>> from policytree import DRPolicyTree, cross_val_policy_value
    >>> from policytree.evaluation import plan_trial
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(20, 80, size=(400, 1))
    >>> T = rng.permutation(np.repeat(["drug", "none"], 200))
    >>> Y = (T == "drug") * np.where(X[:, 0] > 50, 1.0, -1.0) + rng.normal(size=400)
    >>> model = DRPolicyTree(max_depth=1, cv=2, random_state=0)
    >>> values = cross_val_policy_value(model, Y, T, X=X, propensity=0.5, cv=2, n_repeats=1, random_state=0)
    >>> plan = plan_trial(values, "always none")
    >>> plan.differing > 0.4  # half of the people are treated otherwise
    True
    """

    against: str
    gain: Estimate
    differing: float
    power: float
    level: float
    designs: pd.DataFrame = field(repr=False)

    def __str__(self) -> str:
        all_of, some = (self.designs.loc[name] for name in (EVERYBODY, DIFFERING))
        digits = decimals([self.gain.standard_error])
        return (
            f"To show the {POLICY} better than {self.against} with {self.power:.0%} power at a two-sided level of "
            f"{1 - self.level:.2g}, a trial needs {all_of['per_arm']:,.0f} people in each arm if everybody is "
            f"randomised. It needs {some['per_arm']:,.0f} in each arm if only those are whom the rule treats otherwise "
            f"({self.differing:.0%} of people, so that {some['screened']:,.0f} are screened). Both sizes take the "
            f"held-out gain of {abs(self.gain.value):,.{digits}f} for the true one; averaged over its uncertainty "
            f"({100 * self.gain.level:g}% interval {interval_text(self.gain, digits)}) the power is "
            f"{some['assurance']:.0%}."
        )

    def _shown(self) -> Iterable[Any]:
        return [str(self), self.designs.round({"difference": 4, "spread": 4, "assurance": 2})]


def plan_trial(
    values: PolicyValueTable, against: str | None = None, *, power: float = 0.8, level: float = 0.95
) -> TrialPlan:
    """Plan a trial in which half of the people are treated by the rule, and half get one treatment.

    People are randomised one by one to two arms of equal size, and means of the outcome are compared by a two-sided
    t-test. The difference to detect is the held-out gain; how much outcomes vary within arms is read off the people of
    the study who by chance, or choice, got what that arm would give them.

    Whom the rule gives what they would get anyway adds noise and no difference. It is enough to randomise the others:
    the difference among them is the gain over their share, and trials are smaller by about the square of that share.

    Parameters
    ----------
    values : PolicyValueTable
        Of :func:`policytree.cross_val_policy_value`.
    against : str, optional
        A rule of the table that gives one treatment to all, such as "always placebo"; by default the control, without
        one the best treatment.
    power : float in (0, 1)
    level : float in (0, 1)
        One less the two-sided level of the test.

    Returns
    -------
    TrialPlan

    Raises
    ------
    InputError
        If the rule is not better than ``against`` on held-out rows, outcomes are times, values are gains or of another
        population, or nobody got what an arm of the trial would give.

    Notes
    -----
    A gain that was estimated may be too large: look at ``assurance``. Outcomes that the study lost are expected to be
    lost again, and people are added for them. Values net of costs ask for outcomes net of costs.

    References
    ----------
    O'Hagan, Stevens and Campbell (2005), Assurance in clinical trial design, Pharmaceutical Statistics 4(3), 187-201.

    Examples
    --------
    >>> import numpy as np
    >>> from policytree import DRPolicyTree, cross_val_policy_value
    >>> from policytree.evaluation import plan_trial
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(20, 80, size=(400, 1))
    >>> T = rng.permutation(np.repeat(["drug", "none"], 200))
    >>> Y = (T == "drug") * np.where(X[:, 0] > 50, 1.0, -1.0) + rng.normal(size=400)
    >>> model = DRPolicyTree(max_depth=1, cv=2, random_state=0)
    >>> values = cross_val_policy_value(model, Y, T, X=X, propensity=0.5, cv=2, n_repeats=1, random_state=0)
    >>> plan_trial(values, "always none").designs["per_arm"].tolist()
    [48, 12]
    """
    check_level(level)
    check_level(power, "power", 0.8)
    name = _reference(values, against)
    seen = values.observed
    if seen.times is not None or seen.instrument is not None or seen.study is not None:
        raise InputError("plan_trial takes outcomes that are numbers, of the people of the study and without offers.")
    sign = 1.0 if values.direction == "maximize" else -1.0
    gain = values.difference(POLICY, name)
    if sign * gain.value <= 0.0:
        raise InputError(
            f"The {POLICY} is not better than {name} on held-out rows ({gain.value:+.3g}), so that no trial is large "
            "enough to show it; name another rule by against=."
        )
    label = seen.treatments[[f"always {each}" for each in seen.treatments].index(name)]
    weight = seen.weight[values.judged]
    otherwise = np.array([each.policy != label for each in values.repetitions])
    differing = float(np.average(otherwise, axis=1, weights=weight).mean())
    lost = 0.0 if seen.seen is None else 1.0 - float(np.average(seen.seen[values.judged], weights=weight))
    rows = {}
    for design, share in ((EVERYBODY, 1.0), (DIFFERING, differing)):
        spread = _spread(values, label, None if design == EVERYBODY else otherwise)
        effect = sign * gain.value / share / spread
        n = _people(effect, power, 1.0 - level)
        truths = effect + norm.ppf(QUANTILES) * gain.standard_error / share / spread
        rows[design] = {
            "per_arm": ceil(n / (1.0 - lost)),
            "screened": ceil(2 * ceil(n / (1.0 - lost)) / share),
            "difference": gain.value / share,
            "spread": spread,
            "assurance": float(np.mean([_power(truth, n, 1.0 - level) for truth in truths])),
        }
    return TrialPlan(name, gain, differing, float(power), float(level), pd.DataFrame.from_dict(rows, orient="index"))


def _reference(values: PolicyValueTable, against: str | None) -> str:
    """The rule of one treatment that the trial compares with."""
    constant = [f"always {label}" for label in values.observed.treatments]
    if against is None:
        against = values.verdict.reference if values.verdict.reference in constant else values.against_best.best
    if against not in constant:
        raise InputError(f"against must be {' or '.join(map(repr, constant))}; got {quoted(against)}.")
    return against


def _spread(values: PolicyValueTable, label: Any, otherwise: np.ndarray | None) -> float:
    """Root of the mean of both arms' variances, by the people who got what the arm gives them.

    Treatments count by one over their shares, as if all had been equally frequent. ``otherwise``: by repetition, the
    people who are randomised; None: all.
    """
    seen, rows = values.observed, values.judged
    known = np.ones(len(rows), dtype=bool) if seen.seen is None else seen.seen[rows]
    shares = np.bincount(seen.arm[rows], weights=seen.weight[rows], minlength=seen.n_arms)
    y, got = seen.y[rows], seen.treatments[seen.arm[rows]]
    weight = seen.weight[rows] / shares[seen.arm[rows]]
    found = []
    for r, repetition in enumerate(values.repetitions):
        people = known if otherwise is None else known & otherwise[r]
        for given in (repetition.policy, label):
            own = people & (got == given)
            if own.sum() < 2:
                raise InputError(f"Fewer than two people got what an arm of the trial would give them ({label}).")
            centred = y[own] - np.average(y[own], weights=weight[own])
            found.append(np.average(centred**2, weights=weight[own]) * own.sum() / (own.sum() - 1))
    return float(np.sqrt(np.mean(found)))


def _people(effect: float, power: float, alpha: float) -> int:
    """People in each arm, two at least."""
    if _power(effect, 2, alpha) >= power:
        return 2
    return ceil(float(_t_test().solve_power(effect, None, alpha / 2.0, power, alternative="larger")))


def _power(effect: float, n: float, alpha: float) -> float:
    """Probability that a two-sided test shows the rule to be better, with so many people in each arm."""
    return float(_t_test().power(effect, n, alpha / 2.0, alternative="larger"))


def _t_test() -> Any:
    """Powers of t-tests of two arms; only plans need them, and they load slowly."""
    from statsmodels.stats.power import TTestIndPower

    return TTestIndPower()
