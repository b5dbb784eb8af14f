"""Doubly robust rewards: the outcome model, corrected by the weighted residual of the treatment that was observed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policytree.weighting.observed import Observed
from policytree.weighting.scheme import Nuisances


@dataclass(frozen=True, slots=True)
class DoublyRobust:
    """Augmented inverse propensity weighted (AIPW) scores.

    ``reward[i, k] = m_k(x_i) + 1{t_i = k} (y_i - m_k(x_i)) / e_k(x_i)``

    Unbiased if either the outcome models m or the propensities e are right; with cross-fitted nuisances, errors enter
    only as the product of the two models' errors.

    References
    ----------
    Robins, Rotnitzky & Zhao (1994), JASA 89(427), the augmented estimating equation. Athey & Wager (2021), Econometrica
    89(1), eq. (14) and Zhou, Athey & Wager (2023), Operations Research 71(1), eq. (4): scores for policy learning.
    """

    needs_regression: bool = True
    needs_propensity: bool = True

    def rewards(self, observed: Observed, nuisances: Nuisances) -> np.ndarray:
        """Scores, shape (n, K), in the outcome's unit."""
        assert nuisances.propensity is not None, "needs_propensity"
        scores = np.array(nuisances.regression, dtype=np.float64)
        rows = np.arange(observed.n)
        residual = observed.y - scores[rows, observed.arm]
        scores[rows, observed.arm] += residual / nuisances.propensity[rows, observed.arm]
        return scores
