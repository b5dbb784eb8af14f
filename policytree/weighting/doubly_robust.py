"""Doubly robust rewards: the outcome model, corrected by the weighted residual of the treatment that was observed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policytree.weighting.inverse_propensity import normalized_weights
from policytree.weighting.scheme import Nuisances
from policytree.weighting.study_data import StudyData


@dataclass(frozen=True, slots=True)
class DoublyRobust:
    """Augmented inverse propensity weighted (AIPW) scores.

    ``reward[i, k] = m_k(x_i) + 1{t_i = k} (y_i - m_k(x_i)) / e_k(x_i)``

    Unbiased if either the outcome models m or the propensities e are right; with cross-fitted nuisances, errors enter
    only as the product of the two models' errors.

    Normalised (Hajek): with ``w_ik = 1{t_i = k} / e_k(x_i)`` scaled to a (weighted) mean of one, ``r_k`` the mean
    residual weighted by ``w_ik``, ``reward[i, k] = m_k(x_i) + r_k + w_ik (y_i - m_k(x_i) - r_k)``. Few rows with large
    weights then move the mean less: it stays within what the outcome models and the residuals say. The variance of the
    rewards is that of the ratio.

    Parameters
    ----------
    normalized : bool

    References
    ----------
    Robins, Rotnitzky & Zhao (1994), JASA 89(427), the augmented estimating equation. Athey & Wager (2021), Econometrica
    89(1), eq. (14) and Zhou, Athey & Wager (2023), Operations Research 71(1), eq. (4): scores for policy learning.
    Robins, Sued, Lei-Gomez & Rotnitzky (2007), Statistical Science 22(4), 544-559 (normalised weights).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from policytree import RewardEstimator
    >>> X, T = np.arange(8.0).reshape(-1, 1), np.array(["drug", "none"] * 4)
    >>> model = RewardEstimator(LinearRegression(), method="dr_normalized", cv=2, random_state=0)
    >>> model.fit_predict(X[:, 0] + (T == "drug"), T, X=X, propensity=0.5).mean().round(2)
    drug    4.5
    none    3.5
    dtype: float64
    """

    normalized: bool = False
    needs_regression: bool = True
    needs_propensity: bool = True

    @property
    def by_row(self) -> bool:
        """Whether the reward of a row depends on no other row."""
        return not self.normalized

    def rewards(self, observed: StudyData, nuisances: Nuisances) -> np.ndarray:
        """Scores, shape (n, K), in the outcome's unit.

        Raises
        ------
        InputError
            If normalised and some treatment has no row (or no weight).
        """
        assert nuisances.propensity is not None, "needs_propensity"
        scores = np.array(nuisances.regression, dtype=np.float64)
        if self.normalized:
            w = normalized_weights(observed, nuisances.propensity)
            residual = observed.y[:, None] - scores
            mean = np.average(w * residual, axis=0, weights=observed.sample_weight)
            return scores + mean + w * (residual - mean)
        rows = np.arange(observed.n)
        residual = observed.y - scores[rows, observed.arm]
        scores[rows, observed.arm] += residual / nuisances.propensity[rows, observed.arm]
        return scores
