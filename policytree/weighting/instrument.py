"""Rewards where people may refuse what they are offered: offers are instruments for the treatment.

Everything is made of two doubly robust scores of *offers* (an instrument Z of M values): of outcomes, ``G^Y_z``, and of
taking the treatment, ``G^T_z``, each right if either its regression or the probabilities of offers are. A contrast of
offers ``c_z`` (summing to zero) of the first over that of the second is a local average treatment effect.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from policytree.common.callers import stacklevel_outside
from policytree.data.feature_encoder import as_pandas
from policytree.exceptions import InputError, WeakInstrumentWarning
from policytree.weighting.cluster_robust import covariance_of_means, mean_and_influence
from policytree.weighting.doubly_robust import DoublyRobust
from policytree.weighting.scheme import Nuisances
from policytree.weighting.study_data import StudyData

COMPLIERS = "compliers"
WEAK_F, USELESS_F = 10.0, 4.0  # of the first stage: below, intervals are too short; nothing is identified
ROUNDING = 1e-24  # variances of shares below are sums of rounding errors
LOOKED_AT = 1_000  # rows that show whether a column has more values than there are offers
WARN_SHARE = 0.05  # of rows with little compliance


@dataclass(frozen=True, slots=True)
class OfferScores:
    """Doubly robust scores of offers.

    Attributes
    ----------
    outcome : ndarray of shape (n, M)
        Their means are what the offers bring, in the outcome's unit (intention to treat).
    uptake : ndarray of shape (n, M)
        Their means are the shares that take the second treatment under the offers.
    """

    outcome: np.ndarray
    uptake: np.ndarray

    def contrast(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of outcomes and of uptake, (n,) each; ``weights`` (M,) or (n, M)."""
        return (weights * self.outcome).sum(axis=1), (weights * self.uptake).sum(axis=1)


def offer_scores(observed: StudyData, nuisances: Nuisances) -> OfferScores:
    """Scores of offers; ``observed`` as :meth:`StudyData.by_offer` has it."""
    assert observed.took is not None and nuisances.uptake is not None, "arms are offers"
    scheme = DoublyRobust()
    of_uptake = scheme.rewards(replace(observed, y=observed.took), replace(nuisances, regression=nuisances.uptake))
    return OfferScores(scheme.rewards(observed, nuisances), of_uptake)


@dataclass(frozen=True, slots=True)
class FirstStage:
    """Effect of the offers on uptake, on average over the rows of a fit.

    Attributes
    ----------
    uptake, shares : ndarray of shape (M,)
        Share that takes the second treatment under every offer, and share of rows with that offer.
    f_statistic : float
        Wald statistic of "no offer changes uptake" over its degrees of freedom, robust to clusters.
    """

    uptake: np.ndarray
    shares: np.ndarray
    f_statistic: float

    @property
    def compliance(self) -> float:
        """Uptake under the offer that brings most people to the second treatment, less that under the least one."""
        return float(self.uptake.max() - self.uptake.min())

    @property
    def moved(self) -> np.ndarray:
        """Under every offer, the share of them that takes the second treatment, (M,)."""
        return (self.uptake - self.uptake.min()) / self.compliance

    @property
    def weights(self) -> np.ndarray:
        """The contrast of offers of two-stage least squares, (M,), such that it moves uptake by ``compliance``."""
        if len(self.uptake) == 2:  # no share of rows, which is an estimate, has a part in it
            return np.array([-1.0, 1.0]) if self.uptake[1] > self.uptake[0] else np.array([1.0, -1.0])
        weights = self.shares * (self.uptake - self.shares @ self.uptake)
        return weights * (self.compliance / (weights @ self.uptake))


def first_stage(scores: OfferScores, observed: StudyData) -> FirstStage:
    """How strong the instrument is.

    Raises
    ------
    InputError
        If offers do not change uptake, as far as can be seen.

    Warns
    -----
    WeakInstrumentWarning
        If they hardly do.
    """
    w, n = observed.weight, observed.n
    shares = np.bincount(observed.arm, weights=w, minlength=observed.n_arms) / w.sum()
    means, influences = zip(*(mean_and_influence(column, w) for column in scores.uptake.T), strict=True)
    uptake, influence = np.array(means), np.column_stack(influences)
    stage = FirstStage(uptake, shares, f_statistic(uptake, influence, observed))
    if not stage.f_statistic >= USELESS_F:
        raise InputError(
            f"instrument hardly changes which treatment people get (first-stage F {stage.f_statistic:.2g} of {n:,} "
            f"rows; below {USELESS_F:g} nothing can be said about effects). Judge the offers themselves: pass the "
            "instrument as T."
        )
    if stage.f_statistic < WEAK_F:
        warnings.warn(
            f"instrument is weak: first-stage F {stage.f_statistic:.2g}, below {WEAK_F:g}; effects are biased towards "
            "those without an instrument, and their intervals are too short.",
            WeakInstrumentWarning,
            stacklevel=stacklevel_outside(),
        )
    return stage


def f_statistic(uptake: np.ndarray, influence: np.ndarray, observed: StudyData) -> float:
    """Wald statistic of equal means (M,) over M - 1; ``influence`` (n, M) of each on its mean."""
    covariance = covariance_of_means(influence[:, 1:] - influence[:, :1], observed.weight, observed.groups)
    difference = uptake[1:] - uptake[0]
    if not difference.any():
        return 0.0
    covariance = np.where(np.abs(covariance) < ROUNDING, 0.0, covariance)  # where everybody does as offered
    rank = int(np.linalg.matrix_rank(covariance))
    if rank < len(difference):
        return np.inf if rank == 0 else float(difference @ np.linalg.pinv(covariance) @ difference) / rank
    return float(difference @ np.linalg.solve(covariance, difference)) / len(difference)


@dataclass(frozen=True, slots=True)
class InstrumentalVariable:
    """Rewards of two treatments, the first as zero, from who was offered what.

    With ``estimand="all"`` the reward of the second treatment is the score of Athey and Wager's equation (44),
    ``tau(x) + (S^Y - tau(x) S^T) / V(x)``: ``S^Y`` and ``S^T`` are the scores of offers contrasted by
    ``c_z(x) = e_z(x) (p_z(x) - t(x))``, with probabilities of offers e, uptake p and mean uptake t, and
    ``V(x) = sum_z c_z p_z``; for an offer and none that is their difference over the compliance
    ``p_1(x) - p_0(x)``. Every person counts with the effect on the compliers among those alike, so that the rest must
    be alike as well.

    With ``estimand="compliers"`` the reward is ``S^Y`` itself, by the same contrast of offers for everybody: what the
    second treatment brings to those who follow the instrument, per person of all; the others count as zero. Nothing is
    divided by compliance, rewards vary far less, and trees learnt from them are better. The mean reward over the share
    of compliers is the local average treatment effect (:func:`policytree.evaluation.instrument_summary`).

    Parameters
    ----------
    of_compliers : bool
    min_compliance : float
        Least compliance that scores divide by.
    stage : FirstStage, optional
        Of the fit, for new rows.

    References
    ----------
    Athey and Wager (2021), Econometrica 89(1), section 4, eq. (44). Imbens and Angrist (1994), Econometrica 62(2)
    (effects on compliers). Tan (2006), JASA 101(476) (doubly robust scores of both parts). Abadie (2003), Journal of
    Econometrics 113(2) (who they are).

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from policytree import RewardEstimator, Study
    >>> from policytree.study import Offered
    >>> table = pd.DataFrame({"offer": np.repeat(["none", "voucher"], 100), "age": np.arange(200) // 20 * 10})
    >>> table["took"] = (table["offer"] == "voucher") & (np.arange(200) % 2 == 0)
    >>> table["score"] = 3.0 * table["took"]
    >>> study = Study(table, treatment=Offered("took", by="offer"), outcome="score", propensity=0.5)
    >>> model = RewardEstimator(method="instrument", estimand="compliers", cv=2, random_state=0)
    >>> model.fit_predict(study).mean().round(1)
    False    0.0
    True     1.5
    dtype: float64
    """

    of_compliers: bool
    min_compliance: float
    stage: FirstStage | None = None
    needs_regression: bool = True
    needs_propensity: bool = True

    def compliance(self, nuisances: Nuisances) -> np.ndarray:
        """Return the effect of offers on uptake, (n,): ``p_1 - p_0`` of two; in general the root of ``V / (e_1 e_0)``.

        With more than two, the standard deviation of uptake over offers, in units of that of an even chance.
        """
        e, p = _offers(nuisances)
        if p.shape[1] == 2:
            return (p[:, 1] - p[:, 0]) * self._sign
        return 2.0 * np.sqrt(np.maximum((e * (p - (e * p).sum(axis=1, keepdims=True)) ** 2).sum(axis=1), 0.0))

    @property
    def _sign(self) -> float:
        """-1 where the second of two offers is the one that keeps people from the treatment."""
        assert self.stage is not None, "after fitted"
        return 1.0 if self.stage.uptake[-1] >= self.stage.uptake[0] else -1.0

    def effects(
        self, observed: StudyData, nuisances: Nuisances, scores: OfferScores | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Scores of the second treatment's effect, and of what people's own treatments brought beyond the first's.

        Both (n,), in the outcome's unit; ``scores`` are those of these rows' offers, where they are known already.
        """
        assert self.stage is not None and observed.took is not None and nuisances.regression is not None
        scores = offer_scores(observed, nuisances) if scores is None else scores
        (e, p), m = _offers(nuisances), nuisances.regression
        if self.of_compliers:
            outcome, _ = scores.contrast(self.stage.weights)
            expected = e @ self.stage.moved
            own = expected * outcome + (self.stage.moved[observed.arm] - expected) * (m @ self.stage.weights)
            return outcome, own
        weights, divisor = self._contrast(nuisances)
        mean_uptake, tau = (e * p).sum(axis=1), (weights * m).sum(axis=1) / divisor
        outcome, uptake = scores.contrast(weights)
        effect = tau + (outcome - tau * uptake) / divisor
        return effect, mean_uptake * effect + (observed.took - mean_uptake) * tau

    def expected(self, nuisances: Nuisances) -> np.ndarray:
        """Predict the treatments by the outcome models, (n, 2): the first is zero, the second the effect.

        Where chances of the offers are known, and not those of these rows, several offers are contrasted by their
        shares in the fit.
        """
        assert nuisances.regression is not None, "needs_regression"
        assert self.stage is not None, "after fitted"
        if self.of_compliers:
            tau = nuisances.regression @ self.stage.weights
        else:
            if nuisances.as_estimated is None:
                shares = np.tile(self.stage.shares, (len(nuisances.regression), 1))
                nuisances = replace(nuisances, propensity=shares)
            weights, divisor = self._contrast(nuisances)
            tau = (weights * nuisances.regression).sum(axis=1) / divisor
        return over_first(tau)

    def _contrast(self, nuisances: Nuisances) -> tuple[np.ndarray, np.ndarray]:
        """Weights of offers (n, M) given the covariates, and what they change about uptake (n,), not next to zero."""
        (e, p), compliance = _offers(nuisances), self.compliance(nuisances)
        if p.shape[1] == 2:
            return np.tile([-1.0, 1.0], (len(p), 1)), self._sign * np.maximum(compliance, self.min_compliance)
        weights = e * (p - (e * p).sum(axis=1, keepdims=True))
        return weights, np.maximum((weights * p).sum(axis=1), (self.min_compliance / 2.0) ** 2)

    def largest_bias(self, nuisances: Nuisances) -> np.ndarray:
        """Of the second treatment's reward, (n,), given the covariates, by direct effects of offers that differ by one.

        If offers change outcomes by ``d_z(x)`` at a given treatment, the expected reward is off by ``sum_z c_z d_z``
        over what the contrast c divides by. As c sums to zero, d between 0 and 1 makes that at most the sum of the
        positive c.
        """
        weights, divisor = self._contrast(nuisances)
        if self.of_compliers:
            assert self.stage is not None, "after fitted"
            weights, divisor = np.tile(self.stage.weights, (len(divisor), 1)), np.ones(len(divisor))
        return np.maximum(weights, 0.0).sum(axis=1) / np.abs(divisor)

    def rewards(self, observed: StudyData, nuisances: Nuisances) -> np.ndarray:
        """Scores, shape (n, 2), in the outcome's unit: what each treatment brings beyond the first."""
        return over_first(self.effects(observed, nuisances)[0])


def refuse_as_covariate(observed: StudyData, **tables: Any) -> None:
    """Refuse covariates that are the instrument, or the treatment: given such a column nobody had another one.

    Parameters
    ----------
    observed : StudyData
        Of n rows, with an instrument.
    **tables : table of shape (n, p), or None
        By the argument's name.

    Raises
    ------
    InputError
        If a column has another value for every offer (every treatment), and one only.
    """
    assert observed.instrument is not None, "there are offers"
    known = {
        "the instrument's value": (observed.instrument.code, len(observed.instrument.offers)),
        "the treatment": (observed.arm, observed.n_arms),
    }
    for argument, table in tables.items():
        if table is None:
            continue
        frame = as_pandas(table, argument)
        frame = pd.DataFrame(np.asarray(table)) if frame is None else frame
        if len(frame) != observed.n:
            continue  # refused for its length
        for name in frame.columns:
            if frame[name].iloc[:LOOKED_AT].nunique() > max(n for _, n in known.values()):
                continue
            codes, values = pd.factorize(frame[name])
            for what, (code, n) in known.items():
                if len(values) == n == len(np.unique(codes * n + code)) and codes.min() >= 0:
                    raise InputError(
                        f"Column {name!r} of {argument} tells {what} in every row; leave it out: covariates are what "
                        "was known before anybody was offered anything."
                    )


def over_first(effect: np.ndarray) -> np.ndarray:
    """Rewards (n, 2) of two treatments from the second's effect (n,): gains over the first."""
    return np.column_stack([np.zeros(len(effect)), effect])


def _offers(nuisances: Nuisances) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of offers, and of uptake under them, (n, M) each."""
    e, p = nuisances.as_estimated, nuisances.uptake
    assert e is not None and p is not None, "arms are offers"
    return e, p


def warn_of_little_compliance(compliance: np.ndarray, floor: float) -> int:
    """Rows (n,) whose compliance was raised to the floor, and a warning where they are many."""
    n_weak = int((compliance < floor).sum())
    if n_weak > WARN_SHARE * len(compliance):
        warnings.warn(
            f"Of {len(compliance)} rows, {n_weak} are estimated to follow the instrument with a probability below "
            f"min_compliance={floor:g}; it was raised to that, so effects are not known there. "
            "estimand='compliers' divides by the mean only.",
            WeakInstrumentWarning,
            stacklevel=stacklevel_outside(),
        )
    return n_weak
