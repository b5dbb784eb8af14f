"""Nuisances without covariates: averages of all rows of an arm, of which nothing is left to learn out of fold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from policytree.weighting.completion import by_curves, completed, curves_of
from policytree.weighting.nuisances import refuse_own_models
from policytree.weighting.scheme import Nuisances, Scheme
from policytree.weighting.study_data import StudyData
from policytree.weighting.time_to_event.marginal import MarginalCurve


@dataclass(frozen=True, slots=True, eq=False)
class Averages:
    """Averages by arm where there are no covariates.

    Attributes
    ----------
    curves : tuple of MarginalCurve, or None
        Where outcomes are times: product-limit curves of every treatment.
    shares : mapping of str to ndarray of shape (M,)
        With an instrument: averages of offers, by the name of the nuisance.
    """

    curves: tuple[MarginalCurve, ...] | None = None
    shares: Mapping[str, np.ndarray] = field(default_factory=dict)

    def means(self, n: int) -> np.ndarray:
        """Repeat the curves' mean of every arm for so many rows, (n, K)."""
        assert self.curves is not None, "outcomes are times, and there are no covariates"
        return np.tile([curve.mean for curve in self.curves], (n, 1))

    def filled(self, given: Nuisances, n: int) -> Nuisances:
        """Nuisances of so many rows, with shares in place of what was not given."""
        lacking = {name: np.tile(mean, (n, 1)) for name, mean in self.shares.items() if getattr(given, name) is None}
        return replace(given, **lacking)


def average(
    estimator: Any, observed: StudyData, scheme: Scheme, given: Nuisances
) -> tuple[Averages, StudyData, Nuisances, int]:
    """Averages of rows without covariates, outcomes completed by them, nuisances, and how many chances were raised."""
    averages, n_raised = Averages(), 0
    if observed.times is not None:
        refuse_own_models(model_event=estimator.model_event, model_censoring=estimator.model_censoring)
        by_means = scheme.needs_regression and given.regression is None
        if by_means:
            refuse_own_models(model_regression=estimator.model_regression)
        curves = curves_of(observed, estimator.min_observed)
        averages = Averages(curves)
        if by_means:
            given = replace(given, regression=averages.means(observed.n))
        outcome, raised = by_curves(observed, curves)
        observed, n_raised = completed(observed, outcome), int(raised.sum())
    if observed.took is not None and observed.seen is None:
        w, counts = observed.weight, partial(np.bincount, observed.arm, minlength=observed.n_arms)
        total = counts(weights=w)
        means = {
            "propensity": total / total.sum(),
            "regression": counts(weights=w * observed.y) / total,
            "uptake": counts(weights=w * observed.took) / total,
        }
        averages = replace(averages, shares={name: m for name, m in means.items() if getattr(given, name) is None})
        given = averages.filled(given, observed.n)
    return averages, observed, given, n_raised
