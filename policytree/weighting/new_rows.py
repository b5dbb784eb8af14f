"""Rewards of rows that the fit did not see: read as the fit's were, and judged by its models."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from policytree.common.calls import StudyLike
from policytree.common.validation import as_series
from policytree.exceptions import InputError, quoted
from policytree.weighting.averages import Averages
from policytree.weighting.completion import by_curves, complete_missing, completed
from policytree.weighting.instrument import InstrumentalVariable
from policytree.weighting.nuisances import median_of_repeats
from policytree.weighting.propensities import is_constant, propensity_matrix
from policytree.weighting.reward_arguments import given_nuisances, resolve_scheme
from policytree.weighting.reward_cross_fit import completed_nuisances
from policytree.weighting.scheme import Nuisances, Scheme
from policytree.weighting.study_data import WEIGHT, StudyData, outcome_matrix
from policytree.weighting.target_population import DoublyRobustTarget
from policytree.weighting.time_to_event.outcome import is_structured

NUMBERS_AT_FIT = "No event was given at fit, where outcomes were numbers; leave event and entry out."


@dataclass(frozen=True, slots=True, eq=False)
class Remembered:
    """Facts of a fit that new rows need beside its models.

    Attributes
    ----------
    missing_outcome : str
        "weight" where rows of the fit without an outcome were weighted for.
    has_entry : bool
        Whether rows were followed from a later time on.
    given : frozenset of str
        Which of ``propensity`` and ``regression`` were given.
    constant_propensity : optional
        Known probabilities that are the same for every row.
    group_labels : ndarray of shape (n,), or None
        Clusters of the rows of the fit.
    averages : Averages
    """

    missing_outcome: str
    has_entry: bool
    given: frozenset[str]
    constant_propensity: Any
    group_labels: np.ndarray | None
    averages: Averages = field(default_factory=Averages)

    @classmethod
    def of(cls, data: StudyData, n_arms: int) -> Remembered:
        """Collect the facts of a fit to these columns; ``n_arms``: treatments, or offers."""
        given = frozenset(name for name in ("propensity", "regression") if getattr(data, name) is not None)
        constant = "propensity" in given and is_constant(data.propensity, data.n, n_arms)
        has_entry = data.times is not None and data.times.entry is not None
        return cls(data.missing_outcome, has_entry, given, data.propensity if constant else None, data.labels)


@dataclass(frozen=True, slots=True, eq=False)
class NewRows:
    """New rows as a fitted estimator reads them.

    Attributes
    ----------
    fitted : RewardEstimator
    data : StudyData
    """

    fitted: Any
    data: StudyData

    @property
    def memory(self) -> Remembered:
        """Of the fit."""
        return self.fitted._memory

    def judged(self) -> tuple[Scheme, StudyData, Nuisances]:
        """The scheme, what was observed, outcomes completed, and the rows' nuisances."""
        fitted, data, memory = self.fitted, self.data, self.memory
        observed = self.observed()
        Z, cluster = self.matrix(observed.n), row_of_cluster(fitted, self.data.labels, observed.n)
        scheme, regression = scheme_of(fitted), data.regression
        by_curves_at_fit = memory.averages.curves is not None and "regression" not in memory.given
        if by_curves_at_fit and scheme.needs_regression and regression is None:
            regression = memory.averages.means(observed.n)
        propensity = memory.constant_propensity if data.propensity is None else data.propensity
        self.refuse_missing(propensity=propensity, regression=regression)
        given = memory.averages.filled(given_nuisances(fitted, propensity, regression, observed, scheme), observed.n)
        repeats = [r.predict_new(Z, cluster, given) for r in fitted.repeats_]
        nuisances, _ = completed_nuisances(fitted, scheme, given, repeats, observed)
        return scheme, self.completed(observed, Z, cluster, nuisances.regression), nuisances

    def own_outcomes(self) -> pd.Series:
        """Return outcomes under the own treatments, completed where they are censored or missing."""
        fitted, regression = self.fitted, self.data.regression
        if fitted.offers_ is not None:
            scheme, observed, nuisances = self.judged()
            assert isinstance(scheme, InstrumentalVariable), "there are offers"
            return pd.Series(scheme.effects(observed, nuisances)[1], index=observed.index)
        observed = self.observed()
        Z, cluster = self.matrix(observed.n), row_of_cluster(fitted, self.data.labels, observed.n)
        scheme = scheme_of(fitted)
        if self.memory.missing_outcome == WEIGHT:
            self.refuse_missing(regression=regression)
        elif regression is not None and not isinstance(scheme, DoublyRobustTarget):
            raise InputError("regression is used only where outcomes may be missing; leave it out.")
        if regression is not None:
            regression = outcome_matrix(regression, observed.n, fitted.treatments_)
        if not isinstance(scheme, DoublyRobustTarget):
            return pd.Series(self.completed(observed, Z, cluster, regression).y, index=observed.index)
        nuisances = of_status_quo(fitted, observed, Z, cluster, regression)
        observed = self.completed(observed, Z, cluster, regression)
        return pd.Series(scheme.own_outcomes(observed, nuisances), index=observed.index)

    def matrix(self, n: int) -> np.ndarray:
        """Covariates and confounders as the models read them."""
        return self.fitted.covariates_.matrix(self.data.X, self.data.W, n)

    def observed(self) -> StudyData:
        """Return the observed data, with the fit's target of times; arms are offers, if there are some.

        Raises
        ------
        InputError
            If outcomes and treatments were observed in another way than at fit.
        """
        fitted, data = self.fitted, self.data
        for name, was_given in (("instrument", fitted.offers_), ("study", fitted.participation_)):
            if (getattr(data, name) is not None) is not (was_given is not None):
                was = "was not" if was_given is None else "was"
                raise InputError(f"{name} {was} given at fit; do the same for the new rows.")
        if fitted._asked is None and data.times is not None:
            raise InputError(NUMBERS_AT_FIT)
        if data.seen is not None and self.memory.missing_outcome != WEIGHT:
            raise InputError(
                "Outcomes of new rows are missing, as none might at fit; leave these rows out, or fit to a study with "
                "outcome=MayBeMissing(...)."
            )
        if fitted._asked is not None and data.times is None:
            raise InputError(
                "Outcomes were times to an event at fit; give the new rows as a study with outcome=TimeToEvent(...)."
            )
        if data.times is not None and (data.times.entry is not None) is not self.memory.has_entry:
            was = "was" if self.memory.has_entry else "was not"
            raise InputError(f"entry {was} given at fit; do the same for the new rows.")
        if data.times is not None:
            fitted._asked.refuse_other(data.times, "the new rows ask")
        observed = data.arrays().as_at_fit(fitted.treatments_, fitted.offers_, fitted._asked)
        return observed if observed.instrument is None else observed.by_offer()

    def completed(self, observed: StudyData, Z: np.ndarray, cluster: np.ndarray | None, regression: Any) -> StudyData:
        """The same, outcomes completed; ``regression`` (n, K): expected ones if known."""
        fitted = self.fitted
        if observed.times is not None:
            if self.memory.averages.curves is not None:
                return completed(observed, by_curves(observed, self.memory.averages.curves)[0])
            parts = [(r.completed, r.held_out_of(cluster)) for r in fitted.repeats_]
            each = [part.of_new(observed, Z, held_out) for part, held_out in parts if part is not None]
            return completed(observed, np.median(each, axis=0))
        if self.memory.missing_outcome != WEIGHT:
            return observed
        known = Nuisances(regression)
        repeats = [r.predict_new(Z, cluster, known, observed.arm) for r in fitted.repeats_]
        nuisances = median_of_repeats(repeats) if repeats else Nuisances()
        if regression is not None:
            nuisances = replace(nuisances, regression=known.regression)
        return complete_missing(observed, nuisances, fitted.min_observed)

    def refuse_missing(self, **given: Any) -> None:
        """Refuse to do without what was given row by row at fit."""
        for name, value in given.items():
            if value is None and name in self.memory.given:
                raise InputError(f"{name} was given row by row at fit; pass it for the new rows as well.")


def known_at_fit(fitted: Any, Y: Any) -> dict[str, Any]:
    """Return arguments that read columns of new rows as the fit did; none for a study, which says it."""
    if isinstance(Y, StudyLike):
        return {}
    if is_structured(Y):
        if fitted._asked is None:
            raise InputError(NUMBERS_AT_FIT)
        if fitted._asked.cause is not None:
            raise InputError(
                f"The model was fitted with cause={quoted(fitted._asked.cause)}, and a structured array tells no "
                "causes apart; give the new rows as a study with outcome=TimeToEvent(...)."
            )
        return {"treatments": fitted.treatments_, **fitted._asked.arguments()}
    return {"treatments": fitted.treatments_, "missing_outcome": fitted._memory.missing_outcome}


def row_of_cluster(fitted: Any, groups: Any, n: int) -> np.ndarray | None:
    """A row of the fit from each row's cluster (its fold tells which models missed it); -1 for new clusters."""
    if groups is None:
        return None
    series, labels = as_series(groups, "groups"), fitted._memory.group_labels
    if len(series) != n:
        raise InputError(f"groups has {len(series)} rows, but {n} are needed; give every row a cluster.")
    if labels is None or fitted.folds_ is None:
        raise InputError("groups was not given at fit, so no model is known to have missed a cluster; leave it out.")
    first = pd.Series(labels).drop_duplicates()
    row_of = pd.Series(first.index, index=first.to_numpy())
    return series.map(row_of).fillna(-1).to_numpy().astype(np.int64)


def scheme_of(fitted: Any) -> Scheme:
    """The scheme of a fit, with what it learnt there."""
    scheme = resolve_scheme(fitted, fitted.treatments_, fitted.participation_ is not None)
    return replace(scheme, stage=fitted.first_stage_) if isinstance(scheme, InstrumentalVariable) else scheme


def of_status_quo(
    fitted: Any, observed: StudyData, Z: np.ndarray, cluster: np.ndarray | None, regression: Any
) -> Nuisances:
    """Nuisances of new rows, with the probabilities of treatment that anybody in the study had."""
    constant = None
    if fitted._memory.constant_propensity is not None:
        constant = propensity_matrix(fitted._memory.constant_propensity, observed.n, fitted.treatments_)
    known = None if regression is None else outcome_matrix(regression, observed.n, fitted.treatments_)
    given = Nuisances(known, constant)
    estimated = median_of_repeats([r.predict_new(Z, cluster, given) for r in fitted.repeats_])
    return replace(
        estimated,
        regression=estimated.regression if known is None else known,
        propensity=estimated.propensity if constant is None else constant,
    )
