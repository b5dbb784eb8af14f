"""Outcome models of all arms at once from an effect estimator of EconML, or from matching.

An effect estimator says how outcomes differ between arms, not what they are. An outcome less the effect of the arm that
the row got is an outcome under the first arm, whichever arm it was; a regression of it on the covariates is that arm's
outcome model, and effects added to it are the others'. Matching
(:class:`policytree.weighting.matching.MatchingRewards`) predicts the outcomes themselves. Cross-fitted like any outcome
model, either is a nuisance of doubly robust rewards, or by itself the rewards of the regression method.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from policytree.exceptions import InputError
from policytree.model_selection.crossfit import CrossFit, FoldFits, by_default_settings, fit_mean
from policytree.model_selection.folds import FoldPlan
from policytree.weighting.learners import OutcomeRegressor
from policytree.weighting.matching import MatchingRewards
from policytree.weighting.study_data import StudyData


def is_effect_estimator(learner: Any) -> bool:
    """Whether it is an estimator of EconML (or one like it) of effects of treatments."""
    return hasattr(learner, "const_marginal_effect") and hasattr(learner, "fit")


@dataclass(frozen=True, slots=True)
class EffectModel:
    """One fold's effect estimator and outcome model of the first arm: a model of all arms.

    Attributes
    ----------
    model : fitted effect estimator
    base : fitted model of the outcome under the first arm
    n_columns : int
        Covariates, the last columns of the tables that fits are given.
    n_arms : int
    """

    model: Any
    base: Any
    n_columns: int
    n_arms: int

    @by_default_settings
    def predict(self, table: np.ndarray) -> np.ndarray:
        """Expected outcomes under every arm, (n, K)."""
        Z = table[:, -self.n_columns :]
        return self.base.predict(Z)[:, None] + effects_of(self.model, Z, self.n_arms)


def effects_of(model: Any, Z: np.ndarray, n_arms: int) -> np.ndarray:
    """Effects against the first arm, zero for itself, (n, K)."""
    effects = np.asarray(model.const_marginal_effect(Z), dtype=np.float64).reshape(len(Z), -1)
    if effects.shape[1] != n_arms - 1:
        raise InputError(
            f"{type(model).__name__} has {effects.shape[1]} effects for {n_arms} treatments; construct it with "
            "discrete_treatment=True and without categories of its own."
        )
    return np.column_stack([np.zeros(len(Z)), effects])


@dataclass(frozen=True, slots=True)
class MatchedModel:
    """One fold's matching: a model of all arms.

    Attributes
    ----------
    model : MatchingRewards
        Fitted.
    n_columns : int
        Covariates, the last columns of the tables that fits are given.
    n_arms : int
    """

    model: MatchingRewards
    n_columns: int
    n_arms: int

    @by_default_settings
    def predict(self, table: np.ndarray) -> np.ndarray:
        """Expected outcomes under every arm, (n, K)."""
        return self.model.predict_outcomes(X=table[:, -self.n_columns :]).to_numpy()


@dataclass(frozen=True, slots=True)
class EffectOutcomes:
    """An unfitted effect estimator, or matching, as a learner of outcomes under every arm.

    Attributes
    ----------
    estimator : effect estimator or MatchingRewards
    random_state : int
        Of matching that has none of its own.
    """

    estimator: Any
    random_state: int = 0

    def fits(self, Z: np.ndarray, observed: StudyData, plan: FoldPlan) -> list[FoldFits]:
        """List the fits, one per fold; the arm is the first column of the table."""
        table = np.column_stack([observed.arm, Z])
        seen = None if observed.seen is None else np.asarray(observed.seen)
        kind: Any = _FitMatching if isinstance(self.estimator, MatchingRewards) else _FitEffects
        fit = kind(self.estimator, observed.treatments, self.random_state)
        return [FoldFits(fit, table, observed.y, plan, seen, observed.sample_weight, observed.groups)]

    def joined(self, done: list[CrossFit]) -> tuple[np.ndarray, tuple[Any, ...]]:
        """Out-of-fold predictions (n, K) and the folds' models."""
        return done[0].predictions, done[0].models


@dataclass(frozen=True, slots=True)
class _Fit:
    """Fitter of the models of one fold; processes are sent it.

    Attributes
    ----------
    estimator : effect estimator or MatchingRewards
    treatments : ndarray of shape (K,)
    random_state : int
    """

    estimator: Any
    treatments: np.ndarray
    random_state: int

    def _read(self, table: np.ndarray, sample_weight: Any) -> tuple[np.ndarray, np.ndarray, Any]:
        """Arms, covariates and weights; None where all weigh the same.

        Raises
        ------
        InputError
            If an arm has no row, or a covariate a gap.
        """
        arm, Z, name = table[:, 0].astype(np.int64), table[:, 1:], type(self.estimator).__name__
        if sample_weight is not None and np.ptp(sample_weight) == 0.0:
            sample_weight = None  # rows that were seen weigh the same, if nobody gave weights
        lacking = np.flatnonzero(np.bincount(arm, minlength=len(self.treatments)) == 0)
        if len(lacking):
            label = self.treatments[lacking[0]]
            raise InputError(f"Some fold has no row of treatment {label!s} for {name}; use fewer folds (cv).")
        if np.isnan(Z).any():
            raise InputError(f"{name} takes no missing values; fill them, or learn outcomes by another model.")
        return arm, Z, sample_weight


class _FitEffects(_Fit):
    """Of an effect estimator."""

    __slots__ = ()

    @by_default_settings
    def __call__(self, table, y, sample_weight=None, groups=None) -> EffectModel:
        arm, Z, sample_weight = self._read(table, sample_weight)
        name, n_arms = type(self.estimator).__name__, len(self.treatments)
        model = _of_arms(copy.deepcopy(self.estimator))  # which has no parameters that clone could read
        given = {"sample_weight": sample_weight, "groups": groups}
        taken = {k: v for k, v in given.items() if v is not None and has_fit_parameter(model, k)}
        if sample_weight is not None and "sample_weight" not in taken:
            raise InputError(f"{name}.fit takes no sample_weight; leave it out, or use another estimator of effects.")
        model.fit(y, arm, X=Z, **taken)
        left = y - effects_of(model, Z, n_arms)[np.arange(len(y)), arm]
        base = fit_mean(OutcomeRegressor(random_state=0), Z, left, sample_weight=sample_weight, groups=groups)
        return EffectModel(model, base, Z.shape[1], n_arms)


class _FitMatching(_Fit):
    """Of matching, which holds apart by itself those who choose the metric and those who are matched."""

    __slots__ = ()

    @by_default_settings
    def __call__(self, table, y, sample_weight=None, groups=None) -> MatchedModel:
        arm, Z, sample_weight = self._read(table, sample_weight)
        model = clone(self.estimator)
        if model.random_state is None:
            model.set_params(random_state=self.random_state)
        model.fit(y, self.treatments[arm], X=Z, sample_weight=sample_weight, groups=groups)
        return MatchedModel(model, Z.shape[1], len(self.treatments))


def _of_arms(model: Any) -> Any:
    """The estimator for arms as categories; those that let users choose must have chosen so."""
    if getattr(model, "discrete_treatment", True) is False:
        raise InputError(
            f"{type(model).__name__} takes treatments as numbers; construct it with discrete_treatment=True."
        )
    return model
