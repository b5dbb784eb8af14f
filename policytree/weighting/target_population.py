"""Rewards for another population: effects are learnt in a study, and averaged over the people of a target.

The rows of study and target stand in one table; of the target only covariates are read. With ``n_t`` people of the
target among ``n`` rows, ``m_k`` and ``e_k`` learnt from the study, and ``odds = P(target | x) / P(study | x)``:

    a row of the target    reward_k = n / n_t m_k(x)
    a row of the study     reward_k = n / n_t odds(x) 1{t = k} / e_k(x) (y - m_k(x))

The mean over all rows is the target's mean of ``m_k`` plus the residuals of the study, weighted to the target. It is
right if ``m_k`` is, or if both ``odds`` and ``e_k`` are, provided that nothing but the covariates makes effects differ
between study and target.

Averages over people divide by how many people of the target the rows stand for: ``n / n_t`` for rows of the target,
none for rows of the study. All that follows (values, leaves, rankings, regressions) divides by weights instead. So that
it need not know of this, rewards are handed on *per person*: a row of the target has ``m_k`` and its weight, a row of
the study has its weighted residual over ``CARRIED`` and ``CARRIED`` times its weight. Products of the two, which are
all that weighted means and their influences consist of, are those above; the sum of the weights is off by less than
``CARRIED`` per row of the study.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policytree.weighting.scheme import Nuisances
from policytree.weighting.stacked import share_of_target
from policytree.weighting.study_data import StudyData


@dataclass(frozen=True, slots=True)
class DoublyRobustTarget:
    """Doubly robust scores whose means are ``E[Y(k) | target]``, for people other than those of the study.

    With ``n_t`` people of the target among ``n`` rows, and outcomes and propensities learnt from the study:
    ``reward[i, k] = n / n_t m_k(x_i)`` in rows of the target, and ``n / n_t odds(x_i) 1{t_i = k} / e_k(x_i) (y_i -
    m_k(x_i))`` in rows of the study, where ``odds = P(target | x) / P(study | x)``. Right if the outcome models are, or
    if both the odds and the propensities are, provided that people with the same covariates have the same effects in
    the study and in the target (transportability). :class:`policytree.RewardEstimator` uses it where ``fit`` is given
    ``study`` or ``target_X``.

    The odds are kept as a ratio of densities (their mean over the study is one), so that they hold for other rows too,
    whatever the sizes of their two parts.

    Parameters
    ----------
    max_target_weight : float
        Larger ratios are lowered to it.

    References
    ----------
    Dahabreh, Robertson, Steingrimsson, Stuart and Hernan (2020), Statistics in Medicine 39(14), 1999-2014, section 3.4
    (the estimator and its double robustness). Kallus and Zhou (2018), NeurIPS 31, and Uehara, Kato and Yasui (2020),
    NeurIPS 33 (learning policies for another population).

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from sklearn.linear_model import LinearRegression
    >>> from policytree import RewardEstimator, Study
    >>> from policytree.study import Population
    >>> table = pd.DataFrame({"risk": np.arange(8.0), "arm": ["drug", "none"] * 4})
    >>> table["score"] = table["risk"] * (table["arm"] == "drug")
    >>> study = Study(table, treatment="arm", outcome="score", propensity=0.5, population=Population(table[4:]))
    >>> model = RewardEstimator(LinearRegression(), cv=2, random_state=0).fit(study)
    >>> float(model.rewards_["drug"].mean().round(2))
    5.5
    """

    max_target_weight: float = 50.0
    needs_regression: bool = True
    needs_propensity: bool = True

    def population(self, observed: StudyData, nuisances: Nuisances) -> np.ndarray:
        """How many people of the target every row stands for, (n,), with (weighted) mean one."""
        study = _study(observed)
        return np.where(study, 0.0, 1.0 / target_share(observed))

    def rewards(self, observed: StudyData, nuisances: Nuisances) -> np.ndarray:
        """Scores, shape (n, K), in the outcome's unit."""
        m, e, study = nuisances.regression, nuisances.propensity, _study(observed)
        assert m is not None and e is not None and nuisances.ratio is not None
        own = np.flatnonzero(study)
        scores = np.where(study[:, None], 0.0, m / target_share(observed))
        arm = observed.arm[own]
        residual = observed.y[own] - m[own, arm]
        scores[own, arm] = self.weights(observed, nuisances)[own] / e[own, arm] * residual
        return scores

    def own_outcomes(self, observed: StudyData, nuisances: Nuisances) -> np.ndarray:
        """Scores (n,) whose mean is what the study's way of assigning treatments would bring in the target."""
        m, study = nuisances.regression, _study(observed)
        assignment = nuisances.as_estimated if nuisances.assignment is None else nuisances.assignment
        assert m is not None and assignment is not None and nuisances.ratio is not None
        expected = (assignment * m).sum(axis=1)
        residual = self.weights(observed, nuisances) * (observed.y - expected)
        return np.where(study, residual, expected / target_share(observed))

    def weights(self, observed: StudyData, nuisances: Nuisances) -> np.ndarray:
        """Return the weights of residuals of the study's rows, (n,): ``odds n / n_t``; meaningless for the others."""
        assert nuisances.ratio is not None
        return np.minimum(nuisances.ratio, self.max_target_weight) / (1.0 - target_share(observed))


def target_share(observed: StudyData) -> float:
    """The (weighted) share of the target among the rows."""
    return share_of_target(_study(observed), observed.sampling_weight)


def _study(observed: StudyData) -> np.ndarray:
    assert observed.study is not None, "there is a target"
    return observed.study
