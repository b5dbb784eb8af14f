"""Weighting schemes: frozen values that turn outcomes and nuisances into an (n, K) matrix of rewards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from policytree.weighting.study_data import StudyData


@dataclass(frozen=True, slots=True)
class Nuisances:
    """Nuisances of the schemes, estimated out of fold or given.

    Attributes
    ----------
    regression : ndarray of shape (n, K), or None
        Expected outcome of each row under each treatment, in the outcome's unit.
    propensity : ndarray of shape (n, K), or None
        Probability of each treatment for each row, bounded away from zero: what schemes divide by.
    unclipped : ndarray of shape (n, K), or None
        The same as it was estimated or given, for what is multiplied by a propensity: there, raising small ones would
        give weight to rows that should have next to none. None means that nothing was raised.
    observation : ndarray of shape (n,), or None
        Probability that the row's outcome is seen, under the treatment that it got; None where none is missing.
    uptake : ndarray of shape (n, M), or None
        Where arms are offers: probability of taking the second treatment under every offer.
    ratio : ndarray of shape (n,), or None
        How often the row's covariates occur in the target, over how often in the study: the odds of being of the
        target, times a constant; where rewards are about another population.
    assignment : ndarray of shape (n, K), or None
        Estimated probabilities of treatment in the study, for all rows, where known ones differ between its rows.
    """

    regression: np.ndarray | None = None
    propensity: np.ndarray | None = None
    unclipped: np.ndarray | None = None
    observation: np.ndarray | None = None
    uptake: np.ndarray | None = None
    ratio: np.ndarray | None = None
    assignment: np.ndarray | None = None

    @property
    def as_estimated(self) -> np.ndarray | None:
        """Propensities before small ones were raised, (n, K)."""
        return self.propensity if self.unclipped is None else self.unclipped


class Scheme(Protocol):
    """From observations and nuisances to rewards; larger is better if a larger outcome is better.

    A scheme may also have ``by_row``, true if the reward of a row does not depend on the other rows, so that rows may
    come in batches; and if its rewards are about other people than everybody, ``population`` and ``divides_by``
    (:class:`policytree.weighting.treated.DoublyRobustTreated`).
    """

    @property
    def needs_regression(self) -> bool:
        """Whether ``nuisances.regression`` is read."""

    @property
    def needs_propensity(self) -> bool:
        """Whether ``nuisances.propensity`` is read."""

    def rewards(self, observed: StudyData, nuisances: Nuisances) -> np.ndarray:
        """Rewards, shape (n, K), in the outcome's unit; column k averages to the mean outcome under treatment k."""
