"""Direct method rewards: what the outcome model predicts, nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policytree.weighting.observed import Observed
from policytree.weighting.scheme import Nuisances


@dataclass(frozen=True, slots=True)
class DirectMethod:
    """``reward[i, k] = m_k(x_i)``: little variance, and biased wherever the outcome model is.

    References
    ----------
    Qian & Murphy (2011), Annals of Statistics 39(2), eq. (2.3); "direct method" in Dudik, Langford & Li (2011), ICML.
    """

    needs_regression: bool = True
    needs_propensity: bool = False

    def rewards(self, observed: Observed, nuisances: Nuisances) -> np.ndarray:
        """Predicted outcomes, shape (n, K), in the outcome's unit."""
        return np.array(nuisances.regression, dtype=np.float64)
