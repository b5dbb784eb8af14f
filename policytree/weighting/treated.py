"""Doubly robust rewards for the people who got one treatment: what each treatment would have been for *them*."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from policytree.exceptions import InputError
from policytree.weighting.scheme import Nuisances
from policytree.weighting.study_data import StudyData


@dataclass(frozen=True, slots=True)
class DoublyRobustTreated:
    """Scores whose means are ``E[Y(k) | T = treated]``.

    With ``a`` the treated arm and ``p`` its (weighted) share,
    ``reward[i, k] = (1{t_i = a} m_k(x_i) + 1{t_i = k} e_a(x_i) / e_k(x_i) (y_i - m_k(x_i))) / p`` for ``k != a``, and
    ``reward[i, a] = 1{t_i = a} y_i / p``. With two treatments the mean of the difference is the effect of treatment on
    the treated, ``[T (Y - m_0) - (1 - T) e / (1 - e) (Y - m_0)] / p``. Right if either ``m_k`` or the ratio of the
    propensities is; the outcome model of the treated arm is not used.

    A floor on propensities concerns ``e_k`` in the denominator only. In the numerator a small ``e_a`` means a person
    unlike the treated, who rightly has next to no weight; raising it would give such persons weight.

    Parameters
    ----------
    treated : label
        The treatment whose recipients the rewards are about.

    References
    ----------
    Hahn (1998), Econometrica 66(2), 315-331 (efficiency bound). Mercatanti & Li (2014), Annals of Applied Statistics
    8(4), 2485-2508 (double robustness). Li & Li (2019), Annals of Applied Statistics 13(4), 2389-2415 (several arms).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from policytree import RewardEstimator
    >>> X, T = np.arange(8.0).reshape(-1, 1), np.array(["drug", "none"] * 4)
    >>> model = RewardEstimator(LinearRegression(), estimand="treated", treated="drug", cv=2, random_state=0)
    >>> model.fit_predict(X[:, 0] + (T == "drug"), T, X=X, propensity=0.5).mean().round(2)
    drug    4.0
    none    3.0
    dtype: float64
    """

    treated: Any
    needs_regression: bool = True
    needs_propensity: bool = True

    def divides_by(self, treatments: np.ndarray) -> np.ndarray:
        """Which propensities stand in a denominator, (K,) bool."""
        return np.arange(len(treatments)) != self._position(treatments)

    def population(self, observed: StudyData, nuisances: Nuisances) -> np.ndarray:
        """How many people of the target population every row stands for, (n,), with (weighted) mean one.

        Raises
        ------
        InputError
            If nobody got the treatment.
        """
        own = observed.arm == self._position(observed.treatments)
        return own / self._share(own, observed)

    def rewards(self, observed: StudyData, nuisances: Nuisances) -> np.ndarray:
        """Scores, shape (n, K), in the outcome's unit."""
        rows, a = np.arange(observed.n), self._position(observed.treatments)
        own = observed.arm == a
        m, e = nuisances.regression, nuisances.as_estimated
        assert m is not None and e is not None and nuisances.propensity is not None
        scores = np.where(own[:, None], m, 0.0)
        ratio = e[:, a] / nuisances.propensity[rows, observed.arm]
        residual = ratio * (observed.y - m[rows, observed.arm])
        scores[rows, observed.arm] += np.where(own, 0.0, residual)
        scores[:, a] = np.where(own, observed.y, 0.0)
        return scores / self._share(own, observed)

    def _share(self, own: np.ndarray, observed: StudyData) -> float:
        share = float(np.average(own, weights=observed.sample_weight))
        if share == 0.0:
            raise InputError(f"No row has treatment {self.treated!s}, so there are no treated people to average over.")
        return share

    def _position(self, treatments: np.ndarray) -> int:
        return [str(label) for label in treatments].index(str(self.treated))
