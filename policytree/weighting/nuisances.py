"""Cross-fitted nuisances: what each treatment would bring, and how likely it was."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor

from policytree.common.executors import submitted
from policytree.exceptions import InputError, quoted
from policytree.model_selection.crossfit import (
    CrossFit,
    FittedModel,
    FoldFits,
    fit_mean,
    fit_probabilities,
    predict_new,
)
from policytree.model_selection.folds import FoldPlan
from policytree.weighting.learners import OutcomeClassifier, OutcomeRegressor, imputed, propensity_learner
from policytree.weighting.observed import Observed
from policytree.weighting.scheme import Nuisances
from policytree.weighting.stacking import PROPENSITY_LEARNERS, OutcomeStack, PropensityStack, StackedOutcomes

NOTHING_GIVEN = Nuisances()


@dataclass(frozen=True, slots=True)
class ArmModels:
    """One fold's outcome models where every arm has its own.

    Attributes
    ----------
    models : tuple of K fitted models
    """

    models: tuple[FittedModel, ...]

    def predict(self, Z: np.ndarray) -> np.ndarray:
        """Expected outcomes under every arm, (n, K)."""
        return np.column_stack([model.predict(Z) for model in self.models])


@dataclass(frozen=True, slots=True)
class ArmOfStack:
    """One arm of a fold's default outcome models, as a model by itself."""

    model: StackedOutcomes
    arm: int

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Expected outcomes, (n,)."""
        return self.model.predict(X)[:, self.arm]


@dataclass(frozen=True, slots=True)
class CrossFittedRegression:
    """Outcome models of every fold.

    Attributes
    ----------
    predictions : ndarray of shape (n, K)
        Out-of-fold expected outcomes, in the outcome's unit.
    models : tuple (one per fold) of models of all arms
    """

    predictions: np.ndarray
    models: tuple[ArmModels | StackedOutcomes, ...]

    def predict_new(self, Z: np.ndarray, held_out_of: np.ndarray | None = None) -> np.ndarray:
        """Expected outcomes of new rows, shape (n, K): averaged over fold models."""
        return predict_new(self.models, Z, held_out_of)

    def by_arm(self) -> tuple[tuple[FittedModel, ...], ...]:
        """The models, for every fold one per arm."""
        return tuple(
            m.models if isinstance(m, ArmModels) else tuple(ArmOfStack(m, k) for k in range(m.weights.shape[1]))
            for m in self.models
        )


def _resolve(learner, auto, argument: str, has_covariates: bool, intercept):
    """The learner to use: the default for "auto", an intercept without covariates, the user's own otherwise."""
    if isinstance(learner, str):
        if learner != "auto":
            raise InputError(f"{argument} must be 'auto' or a scikit-learn estimator; got {quoted(learner)}.")
        return auto if has_covariates else intercept
    if not has_covariates:
        raise InputError(f"{argument} needs covariates; pass X or W, or leave {argument}='auto' for arm averages.")
    if isinstance(learner, type):
        raise InputError(f"{argument} must be an instance; write {learner.__name__}() instead of {learner.__name__}.")
    if not hasattr(learner, "fit"):
        raise InputError(f"{argument} must be 'auto' or a scikit-learn estimator; got {type(learner).__name__}.")
    return imputed(learner)


def _is_auto(learner: Any) -> bool:
    return isinstance(learner, str) and learner == "auto"


def resolve_regression(learner: Any, y: np.ndarray, has_covariates: bool, random_state):
    """The outcome learner: a classifier by default if all outcomes are 0 or 1. A mapping has one per treatment."""
    if isinstance(learner, Mapping):
        return {arm: resolve_regression(own, y, has_covariates, random_state) for arm, own in learner.items()}
    auto = (OutcomeClassifier if _is_binary(y) else OutcomeRegressor)(random_state=random_state)
    return _resolve(learner, auto, "model_regression", has_covariates, DummyRegressor())


def resolve_outcomes(learner: Any, y: np.ndarray, has_covariates: bool, random_state):
    """As :func:`resolve_regression`, but the default is one stack for all treatments."""
    if _is_auto(learner) and has_covariates:
        return OutcomeStack(_is_binary(y))
    return resolve_regression(learner, y, has_covariates, random_state)


def _is_binary(y: np.ndarray) -> bool:
    return bool(np.isin(y, (0.0, 1.0)).all())


def resolve_propensity(learner: Any, has_covariates: bool):
    """The propensity learner; must be a classifier with probabilities."""
    named = type(learner).__name__  # as the user knows it, without what is put around it
    learner = _resolve(
        learner, propensity_learner(), "model_propensity", has_covariates, DummyClassifier(strategy="prior")
    )
    if not is_classifier(learner) or not hasattr(learner, "predict_proba"):
        raise InputError(
            f"model_propensity must be a classifier with predict_proba; got {named}, use for instance "
            "LogisticRegression()."
        )
    return learner


def resolve_arms(learner: Any, has_covariates: bool):
    """As :func:`resolve_propensity`, but the default is a stack, or one learner of it by its name."""
    if has_covariates and isinstance(learner, str) and learner in ("auto", *PROPENSITY_LEARNERS):
        return PropensityStack() if learner == "auto" else PropensityStack((learner,))
    if isinstance(learner, str) and learner in PROPENSITY_LEARNERS:
        learner = "auto"  # without covariates all are the same
    return resolve_propensity(learner, has_covariates)


def learners_by_treatment(learner, treatments: np.ndarray) -> list:
    """One learner per treatment."""
    labels = treatments.tolist()
    if not isinstance(learner, Mapping):
        return [learner] * len(labels)
    lacking = [label for label in labels if label not in learner]
    if lacking:
        raise InputError(f"model_regression has no learner for treatment {lacking[0]}; give one for every treatment.")
    return [learner[label] for label in labels]


@dataclass(frozen=True, slots=True)
class CrossFitted:
    """The nuisances of one draw of folds; parts that were given rather than estimated are None.

    Attributes
    ----------
    folds : FoldPlan
    regression : CrossFittedRegression or None
    propensity : CrossFit or None
    """

    folds: FoldPlan
    regression: CrossFittedRegression | None
    propensity: CrossFit | None

    def predictions(self) -> Nuisances:
        """Out of fold, for the rows of the fit."""
        return Nuisances(
            None if self.regression is None else self.regression.predictions,
            None if self.propensity is None else self.propensity.predictions,
        )

    def predict_new(
        self, Z: np.ndarray, row_of_cluster: np.ndarray | None, given: Nuisances = NOTHING_GIVEN
    ) -> Nuisances:
        """For other rows: averages over the fold models, or the one model that did not see the row's cluster.

        Parameters
        ----------
        Z : ndarray of shape (n, q)
        row_of_cluster : ndarray of shape (n,), int, or None
            A row of the fit with the same cluster; -1 for rows of new clusters.
        given : Nuisances
            Parts that are not to be predicted, because they are known.
        """
        held_out_of = None
        if row_of_cluster is not None:
            held_out_of = np.where(row_of_cluster < 0, -1, self.folds.fold[row_of_cluster])
        return Nuisances(
            None
            if self.regression is None or given.regression is not None
            else self.regression.predict_new(Z, held_out_of),
            None
            if self.propensity is None or given.propensity is not None
            else predict_new(self.propensity.models, Z, held_out_of),
        )


def cross_fit(
    Z: np.ndarray,
    observed: Observed,
    plans: list[FoldPlan],
    regression,
    propensity,
    executor: Any = None,
    *,
    divisor: Callable[[np.ndarray | None], np.ndarray | None] = lambda estimated: estimated,
) -> tuple[CrossFitted, ...]:
    """Cross-fit the nuisances whose learner is not None, once for every draw of folds.

    Parameters
    ----------
    Z : ndarray of shape (n, q)
        Nuisance covariates.
    observed : Observed
    plans : list of FoldPlan
    regression : OutcomeStack, scikit-learn regressor or classifier, mapping of treatment to one, or None
        A scikit-learn learner is fitted per arm and fold, to that arm's rows outside the fold.
    propensity : PropensityStack, scikit-learn classifier, or None
        One model of the arm per fold.
    executor : optional
        Where to fit; see :func:`policytree.common.executors.submitted`.
    divisor : callable
        From estimated propensities (n, K), None if there are none, to those that scores divide by; None if they divide
        by nothing. Default outcome models are targeted by them.

    Returns
    -------
    tuple of CrossFitted
        Probabilities are not clipped.
    """
    fits: list[FoldFits] = []
    counts: list[tuple[int, int]] = []
    for plan in plans:
        outcomes, arms = _outcome_fits(regression, Z, observed, plan), _arm_fits(propensity, Z, observed, plan)
        counts.append((len(outcomes), len(arms)))
        fits += outcomes + arms
    finished = _run(fits, executor)
    if isinstance(propensity, PropensityStack):
        _fit_again(propensity, counts, finished, Z, observed, executor)
    done = iter(finished)
    out = []
    for plan, (n_outcomes, n_arms) in zip(plans, counts, strict=True):
        outcomes_done, arms_done = ([next(done) for _ in range(count)] for count in (n_outcomes, n_arms))
        chances = _joined_arms(propensity, arms_done, observed)
        found = None
        if isinstance(regression, OutcomeStack):
            by = divisor(None if chances is None else chances.predictions)
            found = CrossFittedRegression(*regression.mixed(outcomes_done, Z, observed, by))
        elif outcomes_done:
            models = tuple(ArmModels(of_fold) for of_fold in zip(*(f.models for f in outcomes_done), strict=True))
            found = CrossFittedRegression(np.column_stack([f.predictions for f in outcomes_done]), models)
        out.append(CrossFitted(plan, found, chances))
    return tuple(out)


def _outcome_fits(regression, Z, observed: Observed, plan: FoldPlan) -> list[FoldFits]:
    if regression is None:
        return []
    if isinstance(regression, OutcomeStack):
        return regression.fits(Z, observed, plan)
    own: dict[str, Any] = {"sample_weight": observed.sample_weight, "groups": observed.groups}
    learners = learners_by_treatment(regression, observed.treatments)
    return [
        FoldFits(partial(fit_mean, learner), Z, observed.y, plan, observed.arm == k, **own)
        for k, learner in enumerate(learners)
    ]


def _arm_fits(propensity, Z, observed: Observed, plan: FoldPlan) -> list[FoldFits]:
    if propensity is None:
        return []
    if isinstance(propensity, PropensityStack):
        return propensity.fits(Z, observed, plan)
    fit = partial(fit_probabilities, propensity, n_classes=observed.n_arms)
    return [FoldFits(fit, Z, observed.arm, plan, None, observed.sample_weight, observed.groups)]


def _fit_again(stack: PropensityStack, counts, finished: list[CrossFit], Z, observed: Observed, executor) -> None:
    """Replace what turns out to need more rounds; ``counts``: of outcome and of arm learners, for every plan."""
    again: dict[int, FoldFits] = {}
    start = 0
    for n_outcomes, n_arms in counts:
        start += n_outcomes
        own = stack.fits_again(finished[start : start + n_arms], Z, observed)
        again |= {start + k: fits for k, fits in own.items()}
        start += n_arms
    for position, fit in zip(again, _run(list(again.values()), executor), strict=True):
        finished[position] = fit


def _joined_arms(propensity, done: list[CrossFit], observed: Observed) -> CrossFit | None:
    if not done:
        return None
    return propensity.mixed(done, observed) if isinstance(propensity, PropensityStack) else done[0]


@dataclass(frozen=True)
class _Fits:
    """Models of several nuisances, by their number and the fold: one task for workers."""

    fits: list[FoldFits]

    def __call__(self, part: tuple[int, int]) -> tuple[FittedModel, np.ndarray]:
        return self.fits[part[0]].of_fold(part[1])


def _run(fits: list[FoldFits], executor: Any) -> list[CrossFit]:
    if executor is None:
        return [fit.run() for fit in fits]
    parts = [(i, f) for i, fit in enumerate(fits) for f in range(fit.folds.n_folds)]
    found = dict(submitted(executor, _Fits(fits), parts))
    results = iter(found[k] for k in range(len(parts)))
    return [fit.assembled([next(results) for _ in range(fit.folds.n_folds)]) for fit in fits]


def median_of_repeats(parts: list[Nuisances]) -> Nuisances:
    """Elementwise median over repeated cross-fittings; propensities rescaled to sum to one.

    Every entry still comes from models that did not see the row, so the median does not either; it takes the luck of
    single fold draws out of the scores (EconML's ``mc_agg="median"``).
    """
    if len(parts) == 1:
        return parts[0]
    regression, propensity = (
        None if getattr(parts[0], name) is None else np.median([getattr(p, name) for p in parts], axis=0)
        for name in ("regression", "propensity")
    )
    if propensity is not None:
        propensity = propensity / propensity.sum(axis=1, keepdims=True)
    return Nuisances(regression, propensity)
