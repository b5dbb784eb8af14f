"""A policy forest as a rival: what a black box would reach on held-out rows. Nobody is advised to use it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.impute import SimpleImputer

from policytree.common.typing import Column, Table
from policytree.weighting.covariates import Covariates

BLACK_BOX = "policy forest"


@dataclass(eq=False, repr=False)
class PolicyForestRule(BaseEstimator):
    """EconML's honest policy forest on the rewards that the tree is judged beside.

    Parameters
    ----------
    direction : {"maximize", "minimize"}
    random_state : int

    References
    ----------
    Battocchi et al. (2019), EconML; the criterion of its trees is that of Athey and Wager (2021), Econometrica 89(1).
    """

    direction: str = "maximize"
    random_state: int = 0

    def fit(self, X: Table, rewards: pd.DataFrame, sample_weight: Column | None = None) -> Self:
        """Grow the forest; rewards (n, K) are net of costs."""
        from econml.policy import PolicyForest

        self.covariates_ = Covariates.fit(X, None)
        self.imputer_ = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
        Z = self.imputer_.fit_transform(self.covariates_.matrix(X, None))
        self.treatments_ = rewards.columns.to_numpy()
        sign = 1.0 if self.direction == "maximize" else -1.0
        # one job: refits already share out the processors
        self.forest_ = PolicyForest(random_state=self.random_state, n_jobs=1)
        self.forest_.fit(Z, sign * rewards.to_numpy(dtype=np.float64), sample_weight=sample_weight)
        return self

    def predict(self, X: Table) -> np.ndarray:
        """The treatment that most trees give, (n,)."""
        Z = self.imputer_.transform(self.covariates_.matrix(X, None))
        return self.treatments_[self.forest_.predict(Z)]
