"""Offers side by side, the effect on those who follow them, and whether the instrument is strong enough to tell."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.stats import chi2, t

from policytree.common.docstrings import shares_documentation
from policytree.common.row_labels import aligns_rows
from policytree.common.shared_arguments import JUDGED
from policytree.common.typing import Column, Table
from policytree.common.validation import check_level, group_codes, weights
from policytree.data.views import Shown
from policytree.evaluation.estimates import Estimate, influence_estimate, mean_estimate
from policytree.evaluation.formatting import Form, decimals, estimated, interval_text, p_text, size_text, text_frame
from policytree.evaluation.inputs import fitted_by_offers
from policytree.weighting.cluster_robust import covariance_of_means
from policytree.weighting.covariates import Covariates
from policytree.weighting.instrument import WEAK_F, FirstStage

if TYPE_CHECKING:
    from policytree.plotting.compliance import ComplianceDisplay

SMALL_COMPLIANCE = 0.1
NOTHING = 1e-9  # uptake that is as much is the rounding of zeros
QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class InstrumentSummary(Shown):
    """Offers side by side, and the effect of the treatment on those who follow them.

    Attributes
    ----------
    treatment, baseline : labels
        Effects are those of ``treatment``, the second in sorted order, over ``baseline``.
    offers : DataFrame
        One row per offer: ``rows``, ``uptake`` (share that takes the treatment) and ``outcome`` (mean under the offer),
        each with standard error and interval; what the offer changes of both against ``base_offer``; ``effect``, the
        change of outcomes over that of uptake: the effect on those whom this offer moves.
    base_offer : label
        The offer under which fewest people take the treatment.
    compliers : Estimate
        Share of people who take the treatment under the offer that brings most to it, and not under ``base_offer``
        (if no offer keeps anybody from the treatment).
    effect : Estimate
        Local average treatment effect: of the treatment on those who follow the offers. Two-stage least squares, doubly
        robust for covariates.
    robust_interval : (float, float)
        The interval of Anderson and Rubin, which holds however weak the instrument is; infinite ends where nothing can
        be excluded.
    f_statistic : float
        Of the first stage.
    overidentification : (float, int, float), or None
        Chi-square statistic, degrees of freedom and p-value of "all offers have the same effect on those they move";
        None for two offers.
    one_sided : bool
        Whether nobody takes the treatment under ``base_offer``: compliers are then all who take it, and the effect is
        that on the treated.
    compliance : Series
        Quantiles of the compliance given covariates.
    small_compliance : float
        Share of the rows where it is estimated below .1.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from policytree import RewardEstimator, Study
    >>> from policytree.evaluation import instrument_summary
    >>> from policytree.study import Offered
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"able": rng.normal(size=1000), "offer": rng.integers(2, size=1000)})
    >>> table["took"] = table["offer"] * (table["able"] > 0)
    >>> table["score"] = table["took"] + table["able"]
    >>> study = Study(table, treatment=Offered("took", by="offer"), outcome="score", propensity=0.5)
    >>> model = RewardEstimator(method="instrument", estimand="compliers", cv=2, random_state=0).fit(study)
    >>> means = instrument_summary(model).complier_means(study.X)
    >>> bool(means.loc["able", "compliers"] > means.loc["able", "everybody"] + 0.5)
    True
    """

    treatment: Any
    baseline: Any
    offers: pd.DataFrame = field(repr=False)
    base_offer: Any
    compliers: Estimate
    effect: Estimate
    robust_interval: tuple[float, float]
    f_statistic: float
    overidentification: tuple[float, int, float] | None
    one_sided: bool
    compliance: pd.Series = field(repr=False)
    small_compliance: float
    _of_rows: np.ndarray = field(repr=False)  # compliance
    _population: np.ndarray = field(repr=False)
    _groups: np.ndarray | None = field(repr=False)
    _weight: np.ndarray | None = field(repr=False)

    def complier_means(self, X: Table) -> pd.DataFrame:
        """Who the compliers are: means of covariates among them, beside those of all rows.

        Parameters
        ----------
        X : table of shape (n, p)
            Of the rows of the fit. Categories become one row per value; missing values are left out.

        Returns
        -------
        DataFrame
            ``everybody``, ``compliers`` with standard_error, lower, upper, and ``difference`` in standard deviations.
            All are missing for a covariate that nobody has a value of.

        References
        ----------
        Abadie (2003), Journal of Econometrics 113(2), 231-263, theorem 3.1.
        """
        n, level = len(self._population), self.effect.level
        covariates = Covariates.fit(X)
        Z = covariates.matrix(X, None, n)
        rows = []
        for column in Z.T:
            known = np.isfinite(column)
            value, q = np.where(known, column, 0.0), np.where(known, self._population, 0.0)
            w = np.where(known, 1.0, 0.0) if self._weight is None else np.where(known, self._weight, 0.0)
            if not w.any():
                rows.append((np.nan,) * 6)
                continue
            everybody, compliers = np.average(value, weights=w), ratio_of_means(q * value, q, self._groups, w, level)
            deviation = float(np.sqrt(np.average((value - everybody) ** 2, weights=w)))
            difference = (compliers.value - everybody) / deviation if deviation > 0.0 else np.nan
            found = (compliers.value, compliers.standard_error, compliers.lower, compliers.upper)
            rows.append((everybody, *found, difference))
        names = ["everybody", "compliers", "standard_error", "lower", "upper", "difference"]
        return pd.DataFrame(rows, columns=names, index=pd.Index(covariates.names(), name="covariate"))

    def plot(self, **options: Any) -> ComplianceDisplay:
        """Draw uptake under every offer, and what offers change about it, by person.

        Options are ``bins``, as in
        :meth:`policytree.plotting.compliance.ComplianceDisplay.plot`.
        """
        from policytree.plotting.compliance import ComplianceDisplay

        return ComplianceDisplay(self, self._of_rows).plot(**options)

    def _shown(self) -> list[Any]:
        effect, compliers = self.effect, self.compliers
        digits = decimals([effect.standard_error])
        low, high = self.robust_interval
        robust = f"[{low:,.{digits}f}, {high:,.{digits}f}]" if np.isfinite([low, high]).all() else "unbounded"
        weak = "" if self.f_statistic >= WEAK_F else f", weak (below {WEAK_F:g})"
        lines = [
            f"Effect of {self.treatment} over {self.baseline} on those who follow the instrument: "
            f"{effect.value:+,.{digits}f}, {100 * effect.level:g}% interval {interval_text(effect, digits)} "
            f"(however weak the instrument: {robust}); {size_text(effect)}.",
            f"They are {100 * compliers.value:.0f}% of people, interval [{100 * compliers.lower:.0f}%, "
            f"{100 * compliers.upper:.0f}%]; first-stage F {self.f_statistic:,.0f}{weak}; compliance is below "
            f"{SMALL_COMPLIANCE:g} in {100 * self.small_compliance:.0f}% of rows.",
        ]
        if self.one_sided:
            lines.append(f"Nobody takes {self.treatment} under {self.base_offer}: the effect is that on the treated.")
        if self.overidentification is not None:
            statistic, degrees, p = self.overidentification
            lines.append(
                f"All offers the same effect: chi-square {statistic:.2f} with {degrees} degrees of freedom, "
                f"p {p_text(p) if p < 0.001 else '= ' + p_text(p)}."
            )
        return [*lines, "Offers as they are (intention to treat):", self._offer_table(digits)]

    def _offer_table(self, digits: int) -> pd.DataFrame:
        """The table of offers: estimates with their intervals."""
        columns: dict[str, Form] = {
            "share of rows": "{share:.1%}", "uptake": ("", estimated("uptake", digits=3)),
            "outcome": ("", estimated("outcome")), "outcome change": ("", estimated("outcome_change")),
        }  # fmt: skip
        return text_frame(self.offers + 0.0, columns, digits=digits)  # no "-0.00"


@aligns_rows
@shares_documentation(JUDGED)
def instrument_summary(
    estimator: Any, *, groups: Column | None = None, sample_weight: Column | None = None, level: float = 0.95
) -> InstrumentSummary:
    """Estimate effects of offers on uptake and outcomes, and the effect on those who follow them, with intervals.

    The scores of offers are those of the fit: doubly robust, cross-fitted, on its own rows. Without covariates the
    effect is that of two-stage least squares.

    Parameters
    ----------
    estimator : RewardEstimator or DRPolicyTree
        Fitted with ``instrument=``.
    groups, sample_weight : columns of n values, optional
        As they were given at fit.

    Returns
    -------
    InstrumentSummary

    Raises
    ------
    InputError
        If the estimator was fitted without an instrument, or an argument does not fit its rows.

    References
    ----------
    Imbens and Angrist (1994), Econometrica 62(2), 467-475. Frölich (2007), Journal of Econometrics 139(1), 35-75
    (with covariates). Anderson and Rubin (1949), Annals of Mathematical Statistics 20(1), 46-63. Hansen (1982),
    Econometrica 50(4), 1029-1054 (overidentification).

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from policytree import RewardEstimator, Study
    >>> from policytree.evaluation import instrument_summary
    >>> from policytree.study import Offered
    >>> rng = np.random.default_rng(1)
    >>> table = pd.DataFrame({"age": rng.integers(20, 80, size=1000), "offer": rng.integers(2, size=1000)})
    >>> able = rng.normal(size=1000)
    >>> table["took"] = table["offer"] * (able + rng.normal(size=1000) > 0)
    >>> table["score"] = 1.0 * table["took"] + able
    >>> study = Study(table, treatment=Offered("took", by="offer"), outcome="score", propensity=0.5)
    >>> model = RewardEstimator(method="instrument", estimand="compliers", cv=2, random_state=0).fit(study)
    >>> effect = instrument_summary(model).effect
    >>> bool(effect.lower < 1.0 < effect.upper)
    True
    """
    check_level(level)
    fitted = fitted_by_offers(estimator)
    outcome, uptake = fitted.offer_rewards_.to_numpy(), fitted.uptake_rewards_.to_numpy()
    n, stage = len(outcome), fitted.first_stage_
    clusters, w = group_codes(groups, n), weights(sample_weight, n)
    options: dict[str, Any] = {"groups": clusters, "sample_weight": w, "level": level}
    moved = uptake @ stage.weights
    ratio = ratio_of_means(outcome @ stage.weights, moved, clusters, w, level)
    base = int(stage.uptake.argmin())
    compliance = np.asarray(fitted.compliance_)
    own = fitted.uptake_.to_numpy()[:, base]
    baseline, treatment = fitted.treatments_
    return InstrumentSummary(
        treatment,
        baseline,
        _offers(fitted.offers_, outcome, uptake, stage, base, options),
        fitted.offers_[base],
        mean_estimate(uptake[:, stage.uptake.argmax()] - uptake[:, base], **options),
        ratio,
        anderson_rubin(outcome @ stage.weights, moved, options),
        stage.f_statistic,
        _overidentification(outcome, uptake, base, options),
        bool(np.abs(own).max() < NOTHING),
        pd.Series(np.quantile(compliance, QUANTILES), index=list(QUANTILES), name="compliance"),
        float(np.average(compliance < SMALL_COMPLIANCE, weights=w)),
        compliance,
        moved,
        clusters,
        w,
    )


def ratio_of_means(numerator: np.ndarray, denominator: np.ndarray, groups, w, level: float) -> Estimate:
    """Ratio of two weighted means, by its influence function."""
    divisor = float(np.average(denominator, weights=w))
    value = float(np.average(numerator, weights=w)) / divisor
    weight = np.ones(len(numerator)) if w is None else w
    influence = (numerator - value * denominator) / divisor * weight * len(weight) / weight.sum()
    return influence_estimate(value, influence, groups=groups, sample_weight=w, level=level)


def _offers(
    labels: np.ndarray, outcome: np.ndarray, uptake: np.ndarray, stage: FirstStage, base: int, options: dict
) -> pd.DataFrame:
    """The table of offers."""
    rows = []
    for z in range(len(labels)):
        row: dict[str, float] = {"share": stage.shares[z]}
        changes = {"uptake_change": uptake[:, z] - uptake[:, base], "outcome_change": outcome[:, z] - outcome[:, base]}
        for name, scores in {"uptake": uptake[:, z], "outcome": outcome[:, z], **changes}.items():
            if z != base or np.abs(scores).max() >= NOTHING:
                row |= _columns(name, mean_estimate(scores, **options))
        if z != base and np.abs(changes["uptake_change"]).max() >= NOTHING:  # who moves nobody has no effect
            weight = (options["groups"], options["sample_weight"], options["level"])
            row |= _columns("effect", ratio_of_means(changes["outcome_change"], changes["uptake_change"], *weight))
        rows.append(row)
    return pd.DataFrame(rows, index=pd.Index(labels, name="offer"))


def _columns(name: str, estimate: Estimate) -> dict[str, float]:
    found = {"": estimate.value, "_error": estimate.standard_error, "_lower": estimate.lower, "_upper": estimate.upper}
    return {f"{name}{part}": value for part, value in found.items()}


def _covariance(scores: np.ndarray, options: dict) -> np.ndarray:
    """Covariance of the means of columns, clusters taken whole."""
    influence = np.column_stack([mean_estimate(column, **options).influence for column in scores.T])
    weight = np.ones(len(scores)) if options["sample_weight"] is None else options["sample_weight"]
    return covariance_of_means(influence, weight, options["groups"])


def anderson_rubin(outcome: np.ndarray, uptake: np.ndarray, options: dict[str, Any]) -> tuple[float, float]:
    """The interval of Anderson and Rubin, between the roots of a quadratic.

    It holds the effects at which outcomes less effect times uptake do not differ from zero.
    """
    both = np.column_stack([outcome, uptake])
    a, b = np.average(both, axis=0, weights=options["sample_weight"])
    v = _covariance(both, options)
    groups = options["groups"]
    units = len(both) if groups is None else len(np.unique(groups))
    critical = float(t.ppf(0.5 + options["level"] / 2, units - 1)) ** 2
    square, linear, constant = b**2 - critical * v[1, 1], a * b - critical * v[0, 1], a**2 - critical * v[0, 0]
    discriminant = linear**2 - square * constant
    if square <= 0.0 or discriminant < 0.0:
        return -np.inf, np.inf
    root = float(np.sqrt(discriminant))
    return float((linear - root) / square), float((linear + root) / square)


def _overidentification(
    outcome: np.ndarray, uptake: np.ndarray, base: int, options: dict
) -> tuple[float, int, float] | None:
    """Whether outcomes change in proportion to uptake over all offers: the minimum of a quadratic form."""
    others = [z for z in range(outcome.shape[1]) if z != base]
    if len(others) < 2:
        return None
    y = outcome[:, others] - outcome[:, [base]]
    moved = uptake[:, others] - uptake[:, [base]]
    w = options["sample_weight"]
    a, b = np.average(y, axis=0, weights=w), np.average(moved, axis=0, weights=w)
    effect = float(b @ a / (b @ b))
    for _ in range(20):  # continuously updated: the covariance at the effect itself
        inverse = np.linalg.pinv(_covariance(y - effect * moved, options))
        effect = float(b @ inverse @ a / (b @ inverse @ b))
    residual = a - effect * b
    statistic, degrees = float(residual @ inverse @ residual), len(others) - 1
    return statistic, degrees, float(chi2.sf(statistic, degrees))
