"""Direct method rewards: what the outcome model predicts, nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from policytree.weighting.scheme import Nuisances
from policytree.weighting.study_data import StudyData


@dataclass(frozen=True, slots=True)
class DirectMethod:
    """``reward[i, k] = m_k(x_i)``: little variance, and biased wherever the outcome model is.

    References
    ----------
    Qian & Murphy (2011), Annals of Statistics 39(2), eq. (2.3); "direct method" in Dudik, Langford & Li (2011), ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from policytree import RewardEstimator
    >>> X, T = np.arange(8.0).reshape(-1, 1), np.array(["drug", "none"] * 4)
    >>> model = RewardEstimator(LinearRegression(), method="regression", cv=2, random_state=0)
    >>> model.fit_predict(X[:, 0] + (T == "drug"), T, X=X).mean().round(2)
    drug    4.5
    none    3.5
    dtype: float64
    """

    needs_regression: bool = True
    needs_propensity: bool = False
    by_row: ClassVar[bool] = True

    def rewards(self, observed: StudyData, nuisances: Nuisances) -> np.ndarray:
        """Predicted outcomes, shape (n, K), in the outcome's unit."""
        return np.array(nuisances.regression, dtype=np.float64)
