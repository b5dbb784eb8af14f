"""Inverse propensity rewards, plain (Horvitz-Thompson) and self-normalised (Hajek)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policytree.exceptions import InputError
from policytree.weighting.scheme import Nuisances
from policytree.weighting.study_data import StudyData


@dataclass(frozen=True, slots=True)
class InversePropensity:
    """The observed outcome, weighted by one over the probability of the treatment that led to it.

    Plain: ``reward[i, k] = 1{t_i = k} y_i / e_k(x_i)``. Unbiased with right propensities; moves with the outcome's
    origin, so that a constant outcome gives rewards that vary.

    Self-normalised: with ``w_ik = 1{t_i = k} / e_k(x_i)`` scaled to a (weighted) mean of one and ``m_k`` the mean of y
    weighted by ``w_ik``, ``reward[i, k] = m_k + w_ik (y_i - m_k)``. Its mean over rows is the Hajek estimate ``m_k``,
    and its variance is that of the ratio, numerator and denominator both; a constant outcome gives constant rewards.

    Parameters
    ----------
    normalized : bool

    References
    ----------
    Horvitz & Thompson (1952), JASA 47(260). Hajek (1971), comment on Basu. Swaminathan & Joachims (2015), NeurIPS
    (self-normalised policy values). Hirano, Imbens & Ridder (2003), Econometrica 71(4).

    Examples
    --------
    >>> import numpy as np
    >>> from policytree import RewardEstimator
    >>> X, T = np.arange(8.0).reshape(-1, 1), np.array(["drug", "none"] * 4)
    >>> model = RewardEstimator(method="ipw_normalized", cv=2, random_state=0)
    >>> model.fit_predict(X[:, 0] + (T == "drug"), T, X=X, propensity=0.5).mean().round(2)
    drug    4.0
    none    4.0
    dtype: float64
    """

    normalized: bool = False
    needs_regression: bool = False
    needs_propensity: bool = True

    @property
    def by_row(self) -> bool:
        """Whether the reward of a row depends on no other row."""
        return not self.normalized

    def rewards(self, observed: StudyData, nuisances: Nuisances) -> np.ndarray:
        """Rewards, shape (n, K), in the outcome's unit.

        Raises
        ------
        InputError
            If self-normalised and some treatment has no row (or no weight) to be averaged.
        """
        assert nuisances.propensity is not None, "needs_propensity"
        if self.normalized:
            w = normalized_weights(observed, nuisances.propensity)
            means = np.average(w * observed.y[:, None], axis=0, weights=observed.sample_weight)
            return means + w * (observed.y[:, None] - means)
        return inverse_weights(observed, nuisances.propensity) * observed.y[:, None]


def inverse_weights(observed: StudyData, propensity: np.ndarray) -> np.ndarray:
    """``1{t_i = k} / e_k(x_i)``, shape (n, K)."""
    rows = np.arange(observed.n)
    w = np.zeros((observed.n, observed.n_arms))
    w[rows, observed.arm] = 1.0 / propensity[rows, observed.arm]
    return w


def normalized_weights(observed: StudyData, propensity: np.ndarray) -> np.ndarray:
    """:func:`inverse_weights` scaled to a (weighted) mean of one for every treatment.

    Raises
    ------
    InputError
        If some treatment has no row (or no weight) to be averaged.
    """
    w = inverse_weights(observed, propensity)
    total = np.average(w, axis=0, weights=observed.sample_weight)
    if not total.all():
        empty = observed.treatments[np.flatnonzero(total == 0.0)[0]]
        raise InputError(
            f"No row has treatment {empty!s}, so self-normalised weights do not exist; use the plain ones."
        )
    return w / total
