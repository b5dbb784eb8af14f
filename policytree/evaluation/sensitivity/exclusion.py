"""How large a direct effect of offers on outcomes must be to undo a conclusion that rests on an instrument."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from policytree.common.docstrings import shares_documentation
from policytree.common.row_labels import aligns_rows
from policytree.common.shared_arguments import SENSITIVITY
from policytree.common.typing import Column, Table
from policytree.common.validation import as_numbers, check_flag, check_level, is_real
from policytree.data.views import Shown, as_text
from policytree.evaluation.estimates import Estimate, mean_estimate
from policytree.evaluation.formatting import BOUNDS, INTERVAL, decimals, interval_text, size_text, text_frame
from policytree.evaluation.inference.partial_identification import Bounds
from policytree.evaluation.inputs import fitted_by_offers, policy_probabilities, rows_arguments
from policytree.evaluation.instruments.summary import anderson_rubin, ratio_of_means
from policytree.evaluation.leaves.summary import HELD_OUT, TRAINING_ROWS
from policytree.evaluation.policy_value.tables import POLICY, PolicyValueTable
from policytree.evaluation.sensitivity.judged_contrasts import held_out_note
from policytree.exceptions import InputError, quoted


@dataclass(frozen=True, slots=True)
class BoundedBias:
    """A gain whose bias is bounded: at most so much a person.

    The gain of a rule over another, for people of the covariates x, is off by b(x), of which only
    ``|b(x)| <= size * exposure(x)`` is known. The gain then lies between its estimate less and plus ``size`` times the
    mean exposure. No narrower bounds hold, since b may have either sign wherever the rules differ.

    Attributes
    ----------
    gains : list of ndarray of shape (n,)
        Gain of every row under the rule over the other, one array per repetition of a cross-fitting.
    exposures : list of ndarray of shape (n,)
        Largest bias of every row, in units of ``size``; 0 where both rules agree.
    combine : function of a list like ``gains`` to an Estimate
        Counts clusters, weights and repetitions.
    """

    gains: list[np.ndarray]
    exposures: list[np.ndarray]
    combine: Callable[[list[np.ndarray]], Estimate]

    @property
    def estimate(self) -> Estimate:
        """The gain without any bias."""
        return self.combine(self.gains)

    @property
    def exposure(self) -> float:
        """Mean of the exposures: by how much the gain moves per unit of ``size``."""
        return self.combine(self.exposures).value

    def end(self, size: float, *, upper: bool) -> Estimate:
        """One end of the bounds."""
        sign = 1.0 if upper else -1.0
        return self.combine([g + sign * size * e for g, e in zip(self.gains, self.exposures, strict=True)])

    def bounds(self, size: float, *, with_interval: bool) -> Bounds:
        """Both ends, and the interval: the lower end's lower limit and the upper end's upper limit."""
        low, high = self.end(size, upper=False), self.end(size, upper=True)
        ends = (low.lower, high.upper) if with_interval else (np.nan, np.nan)
        return Bounds(
            low.value, high.value, low.standard_error, high.standard_error, *ends, low.influence, high.influence
        )

    def tipping(self) -> tuple[float, float]:
        """The smallest size at which the bounds, and the interval, hold zero; inf where no row is exposed."""
        estimate, exposure = self.estimate, self.exposure
        point = 0.0 if estimate.value == 0.0 else abs(estimate.value) / exposure if exposure > 0.0 else np.inf
        upper = estimate.value < 0.0  # the end that faces zero

        def left(size: float) -> float:
            end = self.end(size, upper=upper)
            return -end.upper if upper else end.lower

        if not left(0.0) > 0.0:
            return point, 0.0
        if not np.isfinite(point):
            return point, np.inf
        # The value falls linearly and the standard error is convex in the size, so that this is concave: one root.
        return point, float(brentq(left, 0.0, point, xtol=1e-12 * max(1.0, point)))


@dataclass(frozen=True, slots=True)
class ComplierEffect:
    """The effect on compliers in place of a gain: its numerator is biased, its denominator is not.

    Attributes
    ----------
    numerator : BoundedBias
        The contrast of offers of outcomes.
    uptake : ndarray of shape (n,)
        The contrast of offers of uptake.
    options : dict
        groups, sample_weight and level.
    """

    numerator: BoundedBias
    uptake: np.ndarray
    options: dict[str, Any]

    @property
    def estimate(self) -> Estimate:
        """Without a direct effect of offers."""
        return ratio_of_means(self.numerator.gains[0], self.uptake, *self._rest)

    @property
    def exposure(self) -> float:
        """By how much the effect moves per unit of the direct effect of offers."""
        return ratio_of_means(self.numerator.exposures[0], self.uptake, *self._rest).value

    @property
    def _rest(self) -> tuple[Any, Any, float]:
        return self.options["groups"], self.options["sample_weight"], self.options["level"]

    def bounds(self, size: float, *, with_interval: bool) -> Bounds:
        """Both ends, and the outer ends of their Anderson-Rubin intervals, which hold for weak instruments, too."""
        shift = size * self.numerator.exposures[0]
        scores = [self.numerator.gains[0] - shift, self.numerator.gains[0] + shift]
        low, high = (ratio_of_means(score, self.uptake, *self._rest) for score in scores)
        lower, upper = (anderson_rubin(score, self.uptake, self.options) for score in scores)
        ends = (lower[0], upper[1]) if with_interval else (np.nan, np.nan)
        return Bounds(
            low.value, high.value, low.standard_error, high.standard_error, *ends, low.influence, high.influence
        )

    def tipping(self) -> tuple[float, float]:
        """The effect is zero where its numerator is."""
        return self.numerator.tipping()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExclusionSensitivity(Shown):
    """How large a direct effect of the offers would undo a conclusion.

    Attributes
    ----------
    estimate : Estimate
        The gain (or effect) if offers change outcomes through the treatment only.
    gamma, interval_gamma : float
        The smallest direct effect, in the outcome's unit per person offered, at which the bounds (the interval) hold
        zero: 0 where they do without any, inf where the rules treat everybody alike. The second is NaN on the rows
        that chose the policy.
    exposure : float
        By how much the estimate moves per unit of the direct effect, at most. With two offers and rewards of
        compliers, the share of people whom the rules treat differently.
    what : str
        The bounded quantity.
    rows : str
        "held out", or "training rows": then numbers flatter the policy, and there are no intervals.
    held_out_by : str
        How the rules of a held-out table were kept from the rows that judge them; empty for a fixed rule.

    Examples
    --------
    >>> import numpy as np
    >>> from policytree import RewardEstimator
    >>> from policytree.evaluation import exclusion_sensitivity
    >>> import numpy as np, pandas as pd
    >>> from policytree import RewardEstimator, Study
    >>> from policytree.evaluation import exclusion_sensitivity
    >>> from policytree.study import Offered
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"age": rng.integers(20, 80, size=1000), "offer": rng.integers(2, size=1000)})
    >>> able = rng.normal(size=1000)
    >>> table["took"] = table["offer"] * (able + rng.normal(size=1000) > 0)
    >>> table["score"] = 1.0 * table["took"] + able
    >>> study = Study(table, treatment=Offered("took", by="offer"), outcome="score", propensity=0.5)
    >>> model = RewardEstimator(method="instrument", estimand="compliers", cv=2, random_state=0).fit(study)
    >>> found = exclusion_sensitivity(1, model)
    >>> abs(found.gamma * found.exposure - found.estimate.value) < 1e-9  # so large a direct effect undoes the estimate
    True
    """

    estimate: Estimate
    gamma: float
    interval_gamma: float
    exposure: float
    what: str
    rows: str
    held_out_by: str
    _source: BoundedBias | ComplierEffect = field(repr=False)

    def bounds(self, gamma: float) -> Bounds:
        """Bounds if offers change outcomes by at most so much by themselves.

        Parameters
        ----------
        gamma : float >= 0
            In the outcome's unit, per person offered.

        Returns
        -------
        Bounds

        Raises
        ------
        InputError
            If ``gamma`` is no such number.
        """
        if not is_real(gamma) or not 0.0 <= gamma < np.inf:
            raise InputError(
                f"gamma must be a finite number of at least 0, in the outcome's unit; got {quoted(gamma)}."
            )
        return self._source.bounds(float(gamma), with_interval=self.rows == HELD_OUT)

    def to_frame(self, gammas: Sequence[float] | None = None) -> pd.DataFrame:
        """One row per size of the direct effect: bounds, standard errors, interval, and on which rows.

        Parameters
        ----------
        gammas : sequence of float >= 0, optional
            0, half of ``gamma``, ``gamma`` and twice as much, unless given.
        """
        reach = self.gamma if np.isfinite(self.gamma) else 0.0
        sizes = np.unique(np.multiply(reach, [0.0, 0.5, 1.0, 2.0]) if gammas is None else as_numbers(gammas, "gammas"))
        records = [{"gamma": size, **self.bounds(float(size)).to_dict(), "rows": self.rows} for size in sizes]
        return pd.DataFrame(records).set_index("gamma")

    def to_text(self) -> str:
        """Show the number and what it means."""
        return as_text(self._shown())

    def _shown(self) -> list[Any]:
        e, held_out = self.estimate, self.rows == HELD_OUT
        digits = decimals([e.standard_error])
        size = f"{size_text(e)}, {'held out' if held_out else 'those that chose the policy: flattered, no intervals'}"
        known = f", {100 * e.level:g}% interval {interval_text(e, digits)}" if held_out else ""
        lines: list[Any] = [f"{self.what}: {e.value:+,.{digits}f}{known}; {size}.", *self.statements()]
        frame = self.to_frame()
        if len(frame) > 1:
            columns = {"direct effect": f"{{gamma:,.{digits + 1}f}}", "bounds": BOUNDS}
            columns |= {f"{100 * e.level:g}% interval": INTERVAL} if held_out else {}
            lines.append(text_frame(frame.reset_index(), columns, digits=digits))
        return [*lines, *held_out_note(self.held_out_by)]

    def statements(self) -> tuple[str, ...]:
        """State the direct effect of offers that would overturn the result, in sentences."""
        if np.isinf(self.gamma):
            return ("The rules treat everybody alike, so no direct effect of the offers bears on their difference.",)
        digits = decimals([self.estimate.standard_error]) + 1
        text = "To bring it to zero, offers would have to change outcomes other than through the treatment by "
        text += f"{self.gamma:,.{digits}f} per person"
        if self.interval_gamma == 0.0:
            text += "; the interval holds zero without any such effect"
        elif not np.isnan(self.interval_gamma):
            text += f", to bring zero into the interval by {self.interval_gamma:,.{digits}f}"
        return (f"{text} (in the outcome's unit, wherever that hurts the conclusion most).",)


@aligns_rows
@shares_documentation(SENSITIVITY)
def exclusion_sensitivity(
    policy: Column | Table | Any,
    estimator: Any,
    *,
    baseline: Column | Table | Any = None,
    groups: Column | None = None,
    sample_weight: Column | None = None,
    held_out: bool = False,
    level: float = 0.95,
) -> ExclusionSensitivity:
    """How large a direct effect of offers on outcomes, other than through the treatment, would undo a conclusion.

    An instrument tells something about the treatment only if offers have no other way to change outcomes (the exclusion
    restriction). Let them do so, by amounts ``d_z(x)`` that depend on the covariates in any way and differ by at most
    ``gamma`` between offers. A contrast ``c`` of offers, which sums to zero, is then off by at most ``gamma`` times the
    sum of its positive weights, 1 for two offers. So the gain of a policy over a baseline is off by at most ``gamma``
    times the mean of ``|change(x)| s(x)``, where ``change`` is the difference of their probabilities of the treatment,
    and ``s`` that sum: of the common contrast with ``estimand="compliers"``, of the contrast given the covariates over
    the compliance with ``estimand="all"``. The bound is sharp: ``d`` may favour the policy wherever it differs. The
    number reported is the ``gamma`` at which nothing is left of the gain, or of the end of its interval.

    Parameters
    ----------
    policy : PolicyValueTable, array of shape (n,), one label, array of shape (n, K), or None
        None stands for the effect of the treatment on compliers (:func:`policytree.evaluation.instrument_summary`),
        whose interval is that of Anderson and Rubin.
    estimator : RewardEstimator or DRPolicyTree
        Fitted with ``instrument=`` on all rows, with the settings that a table was made with.
    baseline : policy, optional
        The rule that the policy is to be better than: the best treatment for all of a table, or the first treatment for
        all, unless given.

    Returns
    -------
    ExclusionSensitivity

    Raises
    ------
    InputError
        If the estimator was fitted without an instrument, or an argument does not fit its rows.

    References
    ----------
    Conley, Hansen and Rossi (2012), Review of Economics and Statistics 94(1), 260-272 (instruments that are plausibly
    exogenous). Anderson and Rubin (1949), Annals of Mathematical Statistics 20(1), 46-63.

    Examples
    --------
    >>> import numpy as np
    >>> from policytree import RewardEstimator
    >>> from policytree.evaluation import exclusion_sensitivity
    >>> import numpy as np, pandas as pd
    >>> from policytree import RewardEstimator, Study
    >>> from policytree.evaluation import exclusion_sensitivity
    >>> from policytree.study import Offered
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"age": rng.integers(20, 80, size=1000), "offer": rng.integers(2, size=1000)})
    >>> able = rng.normal(size=1000)
    >>> table["took"] = table["offer"] * (able + rng.normal(size=1000) > 0)
    >>> table["score"] = 1.0 * table["took"] + able
    >>> study = Study(table, treatment=Offered("took", by="offer"), outcome="score", propensity=0.5)
    >>> model = RewardEstimator(method="instrument", estimand="compliers", cv=2, random_state=0).fit(study)
    >>> found = exclusion_sensitivity(1, model)
    >>> 0.0 < found.interval_gamma < found.gamma < 1.0
    True
    """
    check_level(level)
    check_flag(held_out, "held_out")
    fitted = fitted_by_offers(estimator)
    if isinstance(baseline, PolicyValueTable):
        raise InputError("baseline must be a fixed rule, such as one treatment for all; got a table of learnt rules.")
    if isinstance(policy, PolicyValueTable):
        return _of_table(policy, fitted, baseline, groups, sample_weight, level)
    codes, weight = rows_arguments(groups, sample_weight, len(fitted.rewards_))
    options: dict[str, Any] = {"groups": codes, "sample_weight": weight, "level": level}
    first, treatment = fitted.treatments_
    if policy is None:
        if baseline is not None:
            raise InputError("The effect on compliers has no baseline; leave baseline out, or name a policy.")
        return _of_effect(fitted, options, f"Effect of {treatment!s} over {first!s} on compliers")
    baseline = first if baseline is None else baseline
    rewards = fitted.rewards_
    change = _share_treated(policy, rewards, "policy") - _share_treated(baseline, rewards, "baseline")
    source = BoundedBias(
        [change * (rewards[treatment] - rewards[first]).to_numpy()],
        [np.abs(change) * fitted.exclusion_bias_.to_numpy()],
        lambda scores: mean_estimate(scores[0], **options),
    )
    fixed = np.ndim(policy) == 0 and np.ndim(baseline) == 0
    what = f"{_name(policy, 'policy')} - {_name(baseline, 'baseline')}"
    return _found(source, what, HELD_OUT if held_out or fixed else TRAINING_ROWS, "")


def _of_effect(fitted: Any, options: dict[str, Any], what: str) -> ExclusionSensitivity:
    """For the effect on compliers."""
    weights = fitted.first_stage_.weights
    outcome, uptake = (scores.to_numpy() @ weights for scores in (fitted.offer_rewards_, fitted.uptake_rewards_))
    exposure = np.full(len(outcome), np.maximum(weights, 0.0).sum())
    numerator = BoundedBias([outcome], [exposure], lambda scores: mean_estimate(scores[0], **options))
    return _found(ComplierEffect(numerator, uptake, options), what, HELD_OUT, "")


def _of_table(
    table: PolicyValueTable, fitted: Any, baseline: Any, groups: Any, sample_weight: Any, level: float
) -> ExclusionSensitivity:
    """For the learnt rules of a held-out table, by their repetitions."""
    seen, offers = table.observed, table.observed.instrument
    if groups is not None or sample_weight is not None:
        raise InputError("A table counts its own clusters and weights; leave groups and sample_weight out.")
    if offers is None:
        raise InputError("The table was made without an instrument; make it of a study with treatment=Offered(...).")
    alike = np.array_equal(offers.offers, fitted.offers_) and np.array_equal(seen.treatments, fitted.treatments_)
    if len(fitted.rewards_) != seen.n or not alike:
        raise InputError(
            f"estimator was fitted on other rows than those of the table ({seen.n:,}); fit it on the rows that "
            "cross_val_policy_value got."
        )
    first, treatment = fitted.treatments_
    baseline = table.against_best.best.removeprefix("always ") if baseline is None else baseline
    known = {str(label): label for label in fitted.treatments_}
    baseline = known.get(baseline, baseline) if isinstance(baseline, str) else baseline
    bias = fitted.exclusion_bias_.to_numpy()[table.judged]
    gains, exposures = [], []
    for repetition in table.repetitions:
        rewards = repetition.rewards
        chosen = baseline if np.ndim(baseline) == 0 else np.asarray(baseline)[table.judged]
        change = _share_treated(repetition.policy, rewards, "policy") - _share_treated(chosen, rewards, "baseline")
        gains.append(change * (rewards[treatment] - rewards[first]).to_numpy())
        exposures.append(np.abs(change) * bias)
    source = BoundedBias(gains, exposures, lambda scores: table.validation.estimate(scores, seen, level))
    what = f"{POLICY} - {_name(baseline, 'baseline')}"
    return _found(source, what, HELD_OUT, table.validation.describe(table.n_repeats))


def _share_treated(rule: Any, rewards: pd.DataFrame, argument: str) -> np.ndarray:
    """Probability of the second treatment under a rule, (n,)."""
    return policy_probabilities(rule, rewards, argument, "rewards")[:, 1]


def _name(rule: Any, otherwise: str) -> str:
    return f"always {rule}" if np.ndim(rule) == 0 else otherwise


def _found(source: BoundedBias | ComplierEffect, what: str, rows: str, held_out_by: str) -> ExclusionSensitivity:
    gamma, by_interval = source.tipping()
    if rows != HELD_OUT:
        by_interval = np.nan
    return ExclusionSensitivity(source.estimate, gamma, by_interval, source.exposure, what, rows, held_out_by, source)
