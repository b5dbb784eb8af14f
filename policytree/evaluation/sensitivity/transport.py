"""How far effects in a target may differ from those of the study before the verdict falls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq

from policytree.common.row_labels import aligns_rows
from policytree.common.typing import Column
from policytree.common.validation import check_level, group_codes, weights
from policytree.data.views import Shown
from policytree.evaluation.estimates import Estimate, mean_estimate
from policytree.evaluation.inputs import arm_codes, check_direction, known_label, reward_frame
from policytree.evaluation.policy_value.tables import POLICY, PolicyValueTable
from policytree.exceptions import InputError
from policytree.weighting.reward_estimator import RewardEstimator
from policytree.weighting.stacked import averaging_weight, per_person, share_of_target, study_mask

LARGEST_ODDS = 100.0  # beyond which no violation is looked for


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TransportSensitivity(Shown):
    """How strong a violation of transportability would undo a gain in the target; ``str()`` says it.

    Attributes
    ----------
    gain : Estimate
        Gain of the policy over the baseline in the target, larger being better, if effects given covariates are the
        same in study and target.
    changed : Estimate
        Share of the target to whom policy and baseline give different treatments.
    delta : float
        In the outcome's unit: if, at the same covariates, effects in the target differ by less than this from those in
        the study, the lower end of the gain's interval stays above zero. Zero if it is below zero anyhow.
    delta_of_estimate : float
        The same for the gain itself, without its interval.
    odds : float or None
        If people with the same covariates differ in how often they occur in the target, relative to the study, by a
        factor between ``1 / odds`` and ``odds``, whatever their outcomes, the lower end stays above zero; at most 100.
        One if it is below zero anyhow; None where models of outcomes are not at hand (of a table).
    odds_of_estimate : float or None
    baseline : label

    Examples
    --------
    >>> import numpy as np
    >>> from policytree import RewardEstimator
    >>> from policytree.evaluation import transport_sensitivity
    >>> import numpy as np, pandas as pd
    >>> from policytree import RewardEstimator, Study
    >>> from policytree.evaluation import transport_sensitivity
    >>> from policytree.study import Population
    >>> rng = np.random.default_rng(0)
    >>> everybody = pd.DataFrame({"risk": rng.normal(size=800), "arm": rng.integers(2, size=800)})
    >>> everybody["score"], inside = everybody["risk"] + rng.normal(size=800), np.arange(800) < 500
    >>> study = Study(everybody[inside], treatment="arm", outcome="score", population=Population(everybody[~inside]))
    >>> model = RewardEstimator(random_state=0).fit(study)
    >>> rows = {"Y": everybody["score"], "T": everybody["arm"], "study": inside}
    >>> transport_sensitivity(1, 0, estimator=model, **rows).delta  # no effect, so nothing to undo
    0.0
    """

    gain: Estimate
    changed: Estimate
    delta: float
    delta_of_estimate: float
    odds: float | None
    odds_of_estimate: float | None
    baseline: Any

    def __str__(self) -> str:
        gain = self.gain
        interval = f"{100 * gain.level:g}% interval [{gain.lower:.4g}, {gain.upper:.4g}]"
        said = f"The policy gains {gain.value:.4g} over {self.baseline} in the target, {interval}"
        if self.delta == 0.0:
            return f"{said}: no gain is shown, even if effects are those of the study."
        said += (
            f". This would be undone if, at the same covariates, effects in the target were smaller by "
            f"{self.delta:.4g} than those in the study ({self.delta_of_estimate:.4g} for the estimate alone)"
        )
        if self.odds is not None:
            said += (
                f"; or if people with the same covariates, but other outcomes, were {self.odds:.3g} times as likely to "
                "be of the target"
            )
        return f"{said}."


@aligns_rows
def transport_sensitivity(
    policy: PolicyValueTable | Column | Any,
    baseline: Any = None,
    *,
    estimator: RewardEstimator | Any = None,
    Y: Column | None = None,
    T: Column | None = None,
    study: Column | None = None,
    groups: Column | None = None,
    sample_weight: Column | None = None,
    direction: str = "maximize",
    level: float = 0.95,
) -> TransportSensitivity:
    """Find the smallest violation of transportability that undoes what a policy gains in a target.

    Rewards of a target assume that effects at the same covariates are those of the study. Two ways of being wrong are
    measured, each by one number:

    *Effects differ.* If every effect at the same covariates differs by at most ``delta``, the gain over the baseline
    differs by at most ``delta`` times the share of people who are given another treatment; the bound is attained.

    *People differ.* If people with the same covariates are up to ``odds`` times as likely (or as unlikely) to be of the
    target, relative to the study, whatever their outcomes, the mean outcome under a treatment lies between ``m -+ (1 -
    1 / odds) c``, where ``c`` is the mean distance to ``m`` of the share ``1 / (1 + odds)`` of extreme outcomes. This
    mean is estimated by residuals beyond a quantile, weighted to the target; by a wrong quantile the bound is too wide,
    never too narrow. Both treatments may be as bad as that at once, since nobody knows how their outcomes go together.

    Parameters
    ----------
    policy : PolicyValueTable, or array of shape (n,), or one label
        A table that was made with a target (its learnt rules, held out), or a rule that these rows' outcomes did not
        choose, such as one treatment for everybody.
    baseline : label, optional
        The treatment for everybody that the policy is to be better than. Of a table, by default the best in it.
    estimator : fitted RewardEstimator, optional
        Unless ``policy`` is a table: fitted to a study with a population; with outcomes that are all known.
    Y, T, study : columns of shape (n,), optional
        Unless ``policy`` is a table: outcomes and treatments, the study's rows first, and which rows these are; those
        of the people of the population are not read.
    groups, sample_weight : columns of shape (n,), optional
        Of the fit, unless ``policy`` is a table.
    direction : {"maximize", "minimize"}
        Whether larger or smaller outcomes are better, unless ``policy`` is a table.
    level : float
        Coverage of the interval, unless ``policy`` is a table.

    Returns
    -------
    TransportSensitivity

    Raises
    ------
    InputError
        If there is no target, or an argument cannot be used.

    References
    ----------
    Nguyen, Ebnesajjad, Cole and Stuart (2017), Annals of Applied Statistics 11(1), 225-247, and Dahabreh, Robins,
    Haneuse, Saeed, Robertson, Stuart and Hernan (2023), Statistics in Medicine 42(13), 2029-2043 (effects that differ).
    Dorn and Guo (2023), Journal of the American Statistical Association 118(544), 2645-2657 (bounds by quantiles). Nie,
    Imbens and Wager (2021), arXiv:2112.04723 (odds of being of the target).

    Examples
    --------
    >>> import numpy as np
    >>> from policytree import RewardEstimator
    >>> from policytree.evaluation import transport_sensitivity
    >>> import numpy as np, pandas as pd
    >>> from policytree import RewardEstimator, Study
    >>> from policytree.evaluation import transport_sensitivity
    >>> from policytree.study import Population
    >>> rng = np.random.default_rng(0)
    >>> everybody = pd.DataFrame({"risk": rng.normal(size=800), "arm": rng.integers(2, size=800)})
    >>> everybody["score"], inside = everybody["risk"] + everybody["arm"] + rng.normal(size=800), np.arange(800) < 500
    >>> study = Study(everybody[inside], treatment="arm", outcome="score", population=Population(everybody[~inside]))
    >>> model = RewardEstimator(random_state=0).fit(study)
    >>> rows = {"Y": everybody["score"], "T": everybody["arm"], "study": inside}
    >>> found = transport_sensitivity(1, 0, estimator=model, **rows)
    >>> bool(0 < found.delta < found.delta_of_estimate), bool(found.odds > 1)
    (True, True)
    """
    if isinstance(policy, PolicyValueTable):
        given = {
            "estimator": estimator, "Y": Y, "T": T, "study": study, "groups": groups, "sample_weight": sample_weight,
        }  # fmt: skip
        for name, value in given.items():
            if value is not None:
                raise InputError(f"The table knows its rows already; leave {name} out.")
        return _of_table(policy, baseline)
    check_level(level)
    check_direction(direction)
    return _of_rule(policy, baseline, estimator, Y, T, study, groups, sample_weight, direction, level)


def _of_table(table: PolicyValueTable, baseline: Any) -> TransportSensitivity:
    """The learnt rules of a table, held out, in all repetitions."""
    if table.observed.study is None:
        raise InputError(
            "The table was made without a target; pass cross_val_policy_value a study with population=Population(...)."
        )
    labels, sign = table.observed.treatments.tolist(), 1.0 if table.direction == "maximize" else -1.0
    if baseline is None:
        baseline = max(labels, key=lambda label: sign * table.estimates[f"always {label}"].value)
    baseline = known_label(baseline, labels, "baseline")
    level = table.estimates[POLICY].level
    scores = [sign * (r.scores[POLICY] - r.scores[f"always {baseline}"]) for r in table.repetitions]
    changed = [(r.policy != baseline).astype(float) for r in table.repetitions]

    def estimate(delta: float) -> Estimate:
        rows = [s - delta * c for s, c in zip(scores, changed, strict=True)]
        return table.validation.estimate(rows, table.observed, level)

    share = table.validation.estimate(changed, table.observed, level)
    return _found(estimate, share, baseline, None)


def _of_rule(policy, baseline, estimator, Y, T, study, groups, sample_weight, direction, level) -> TransportSensitivity:
    """A rule that these rows did not choose."""
    rewards = getattr(estimator, "reward_estimator_", estimator)
    if not isinstance(rewards, RewardEstimator) or getattr(rewards, "participation_", None) is None:
        raise InputError(
            "estimator must be a RewardEstimator that was fitted to a study with population=Population(...)."
        )
    if baseline is None or Y is None or T is None or study is None:
        raise InputError("Without a table, transport_sensitivity needs baseline, estimator, Y, T and study.")
    if rewards.horizon_ is not None or rewards.observation_ is not None:
        raise InputError("Outcomes must all be known for this; pass the table of cross_val_policy_value instead.")
    frame = reward_frame(rewards.rewards_)
    n, labels = len(frame), frame.columns
    own = study_mask(study, n)
    sampling, clusters = weights(sample_weight, n), group_codes(groups, n)
    sign = 1.0 if direction == "maximize" else -1.0
    chosen = arm_codes(policy, labels, n, "policy")
    base = arm_codes(known_label(baseline, labels.tolist(), "baseline"), labels, n, "baseline")
    differs, every = chosen != base, np.arange(n)
    values = sign * per_person(frame.to_numpy(), own, sampling)
    difference = values[every, chosen] - values[every, base]
    options: dict[str, Any] = {
        "groups": clusters, "sample_weight": averaging_weight(own, sampling), "level": level,
    }  # fmt: skip
    penalty = _Extremes.of(rewards, Y, T, own, sampling, chosen, base, differs, sign)

    def by_delta(delta: float) -> Estimate:
        return mean_estimate(difference - delta * differs, **options)

    def by_odds(odds: float) -> Estimate:
        return mean_estimate(difference - per_person(penalty.at(odds), own, sampling), **options)

    return _found(by_delta, mean_estimate(differs.astype(float), **options), baseline, by_odds)


@dataclass(frozen=True, slots=True)
class _Extremes:
    """Residuals of the study's rows that got what the policy, or the baseline, gives them, where the two differ.

    Attributes
    ----------
    residual : ndarray of shape (n,)
        Turned so that larger is worse: outcomes of the policy's treatment below, of the baseline's above expectation.
    weight : ndarray of shape (n,)
        Of the row in the target; zero in all other rows.
    sampling : ndarray of shape (n,)
    part : ndarray of shape (n,), int
        0: the row got the policy's treatment, 1: the baseline's.
    """

    residual: np.ndarray
    weight: np.ndarray
    sampling: np.ndarray
    part: np.ndarray

    @classmethod
    def of(cls, rewards: RewardEstimator, Y, T, own, sampling, chosen, base, differs, sign: float) -> _Extremes:
        """From the nuisances of a fit."""
        n = len(own)
        m, e, ratio = rewards.regression_, rewards.propensity_, rewards.target_ratio_
        assert m is not None and e is not None and ratio is not None, "doubly robust, with a target"
        outcome = np.where(own, np.asarray(rewards.completed_outcomes()), 0.0)
        if len(np.asarray(Y)) != n or len(np.asarray(T)) != n:
            raise InputError(f"Y and T must have the {n} rows that the estimator was fitted on.")
        given = np.asarray(Y, dtype=object)[own].astype(float)
        if not np.allclose(given, outcome[own]):
            raise InputError("Y has other outcomes than the estimator was fitted on; pass the same rows.")
        arm = np.zeros(n, dtype=np.int64)
        arm[own] = arm_codes(list(np.asarray(T, dtype=object)[own]), m.columns, int(own.sum()), "T")
        every = np.arange(n)
        residual = sign * (outcome - m.to_numpy()[every, arm])
        counted = own & differs & ((arm == chosen) | (arm == base))
        of_policy = arm == chosen
        share = 1.0 - share_of_target(own, sampling)
        lowered = np.minimum(ratio.to_numpy(), rewards.max_target_weight)
        weight = np.where(counted, lowered / share / e.to_numpy()[every, arm], 0.0)
        each = np.ones(n) if sampling is None else sampling
        return cls(np.where(of_policy, -residual, residual), weight, each, np.where(of_policy, 0, 1))

    def at(self, odds: float) -> np.ndarray:
        """Return the contributions of rows to the largest loss of gain, (n,); the loss is their mean over all rows."""
        out = np.zeros(len(self.weight))
        for part in (0, 1):
            rows = np.flatnonzero((self.weight > 0) & (self.part == part))
            if len(rows):
                residual = self.residual[rows]
                cut = _quantile(residual, self.weight[rows] * self.sampling[rows], odds / (1.0 + odds))
                out[rows] = self.weight[rows] * (cut + (1.0 + odds) * np.maximum(residual - cut, 0.0) - residual)
        return (1.0 - 1.0 / odds) * out


def _quantile(values: np.ndarray, weight: np.ndarray, probability: float) -> float:
    order = np.argsort(values, kind="stable")
    reached = weight[order].cumsum() / weight.sum()
    return float(values[order][min(int(np.searchsorted(reached, probability)), len(values) - 1)])


def _found(
    by_delta: Callable[[float], Estimate], changed: Estimate, baseline: Any, by_odds: Callable[[float], Estimate] | None
) -> TransportSensitivity:
    """The violations at which the gain, and the lower end of its interval, reach zero."""
    gain = by_delta(0.0)
    delta = of_estimate = 0.0
    if gain.value > 0.0:
        of_estimate = gain.value / changed.value
    if gain.lower > 0.0:
        # At ``of_estimate`` the gain is zero, so that the lower end of its interval is not above it.
        delta = float(brentq(lambda d: by_delta(d).lower, 0.0, of_estimate, xtol=1e-12 * max(of_estimate, 1e-12)))
    odds = odds_of_estimate = None
    if by_odds is not None:
        odds = _root(lambda odds: by_odds(odds).lower)
        odds_of_estimate = _root(lambda odds: by_odds(odds).value)
    return TransportSensitivity(gain, changed, delta, of_estimate, odds, odds_of_estimate, baseline)


def _root(bound: Callable[[float], float]) -> float:
    """The odds, from one to ``LARGEST_ODDS``, at which a bound that falls in them reaches zero."""
    if not bound(1.0) > 0.0:
        return 1.0
    if bound(LARGEST_ODDS) > 0.0:
        return LARGEST_ODDS
    return float(brentq(bound, 1.0, LARGEST_ODDS, xtol=1e-6))
