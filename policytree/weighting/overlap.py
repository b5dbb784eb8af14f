"""Doubly robust rewards for the overlap population: the people who might well have got any of the treatments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policytree.weighting.scheme import Nuisances
from policytree.weighting.study_data import StudyData

SMALLEST = 1e-300  # so that a probability of zero has an inverse


@dataclass(frozen=True, slots=True)
class DoublyRobustOverlap:
    """Scores whose means are ``E[h(X) Y(k)] / E[h(X)]``, with the overlap weight ``h(x) = 1 / sum over j of 1 / e_j``.

    ``reward[i, k] = h(x_i) (m_k(x_i) + 1{t_i = k} (y_i - m_k(x_i)) / e_k(x_i)) / mean of h``. With two treatments
    ``h = e (1 - e)``. Since ``h / e_k <= 1``, no weight is large and no floor on propensities is needed: rows that
    could get only one treatment fade out instead.

    With right propensities the outcome models need not be right. With wrong ones, but right outcome models, the means
    are still effects, of the population that ``h`` of the wrong propensities describes.

    References
    ----------
    Li, Morgan & Zaslavsky (2018), JASA 113(521), 390-400. Li & Li (2019), Annals of Applied Statistics 13(4),
    2389-2415 (several treatments).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from policytree import RewardEstimator
    >>> X, T = np.arange(8.0).reshape(-1, 1), np.array(["drug", "none"] * 4)
    >>> model = RewardEstimator(LinearRegression(), estimand="overlap", cv=2, random_state=0)
    >>> model.fit_predict(X[:, 0] + (T == "drug"), T, X=X, propensity=0.5).mean().round(2)
    drug    4.5
    none    3.5
    dtype: float64
    """

    needs_regression: bool = True
    needs_propensity: bool = True

    def divides_by(self, treatments: np.ndarray) -> np.ndarray:
        """Which propensities stand in a denominator without a bound, (K,) bool: none."""
        return np.zeros(len(treatments), dtype=bool)

    def population(self, observed: StudyData, nuisances: Nuisances) -> np.ndarray:
        """How many people of the target population every row stands for, (n,), with (weighted) mean one."""
        h = _inverse(nuisances)[1]
        return h / np.average(h, weights=observed.sample_weight)

    def rewards(self, observed: StudyData, nuisances: Nuisances) -> np.ndarray:
        """Scores, shape (n, K), in the outcome's unit."""
        rows = np.arange(observed.n)
        inverse, h = _inverse(nuisances)
        assert nuisances.regression is not None, "needs_regression"
        scores = h[:, None] * nuisances.regression
        residual = observed.y - nuisances.regression[rows, observed.arm]
        scores[rows, observed.arm] += (h * inverse[rows, observed.arm]) * residual
        return scores / np.average(h, weights=observed.sample_weight)


def _inverse(nuisances: Nuisances) -> tuple[np.ndarray, np.ndarray]:
    """Inverse propensities (n, K) and overlap weights (n,)."""
    e = nuisances.as_estimated
    assert e is not None, "needs_propensity"
    inverse = 1.0 / np.maximum(e, SMALLEST)
    return inverse, 1.0 / inverse.sum(axis=1)
