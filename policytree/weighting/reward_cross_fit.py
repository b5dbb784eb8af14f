"""Cross-fitting of whatever nuisances a scheme of rewards needs and nobody gave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from policytree.model_selection.crossfit import CrossFit
from policytree.model_selection.folds import FoldPlan
from policytree.weighting.nuisances import (
    CrossFitted,
    cross_fit,
    cross_fit_uptake,
    fit_participation,
    median_of_repeats,
    resolve_arms,
    resolve_hazards,
    resolve_observation,
    resolve_outcomes,
    resolve_participation,
    resolve_uptake,
)
from policytree.weighting.propensities import clip
from policytree.weighting.reward_arguments import divided_by, outcome_model
from policytree.weighting.scheme import Nuisances, Scheme
from policytree.weighting.stacked import share_of_target
from policytree.weighting.study_data import StudyData

LEAST_DIVISOR = 1e-3  # of targeting, where min_propensity is smaller: no row then outweighs a thousand others


def cross_fit_nuisances(
    estimator: Any, Z: np.ndarray, whole: StudyData, scheme: Scheme, given: Nuisances, constant: Any
) -> tuple[CrossFitted, ...]:
    """Every repetition's nuisances; empty if the scheme needs nothing beyond what is given.

    ``constant``: known probabilities of treatment that are the same for every row.
    """
    observed = whole.of_study()
    random_state = check_random_state(estimator.random_state)
    seed, has_covariates = random_state.randint(2**31 - 1), Z.shape[1] > 0
    regression = propensity = None
    if scheme.needs_regression and given.regression is None:
        y = observed.y if observed.seen is None else observed.y[observed.seen]
        regression = resolve_outcomes(outcome_model(estimator), y, has_covariates, seed)
    if scheme.needs_propensity and given.propensity is None:
        propensity = resolve_arms(estimator.model_propensity, has_covariates)
    hazards = observation = uptake = None
    if observed.took is not None and given.uptake is None:
        uptake = resolve_uptake(estimator.model_uptake, observed.took, has_covariates, seed)
    if observed.times is not None:
        hazards = resolve_hazards(estimator.model_event, estimator.model_censoring, observed.times.entry is not None)
    if observed.seen is not None:
        observation = resolve_observation(estimator.model_observation)
    to_target = whole.study is not None
    learners = (regression, propensity, hazards, observation, uptake)
    if all(learner is None for learner in learners) and not to_target:
        return ()
    plans = [
        whole.folds(estimator.cv, random_state.randint(2**31 - 1), whose=f" of {estimator._called}")
        for _ in range(estimator.n_repeats)
    ]

    if to_target:
        return _for_target(
            estimator, Z, whole, plans, given, regression, propensity, hazards, observation, constant is not None
        )

    def divisor(estimated: np.ndarray | None) -> np.ndarray | None:
        if not scheme.needs_propensity:
            return None
        chances = given.propensity if estimated is None else estimated
        return None if chances is None else np.maximum(chances, max(estimator.min_propensity, LEAST_DIVISOR))

    repeats = cross_fit(
        Z, observed, plans, regression, propensity, estimator.executor, hazards=hazards, observation=observation,
        floor=estimator.min_observed, divisor=divisor,
    )  # fmt: skip
    if uptake is None:
        return repeats
    return tuple(cross_fit_uptake(uptake, repeat, Z, observed, divisor, estimator.executor) for repeat in repeats)


def _for_target(
    estimator: Any,
    Z: np.ndarray,
    whole: StudyData,
    plans: list[FoldPlan],
    given: Nuisances,
    regression: Any,
    propensity: Any,
    hazards: Any,
    observation: Any,
    is_constant: bool,
) -> tuple[CrossFitted, ...]:
    """Models of outcomes and treatments from the study's rows, of who is of the study from all; for all rows."""
    study = whole.study
    assert study is not None, "there is a target"
    own, observed = np.flatnonzero(study), whole.of_study()
    of_study = fit_participation(resolve_participation(estimator.model_study), Z, whole, plans, estimator.executor)
    odds = 1.0 / share_of_target(study, whole.sampling_weight) - 1.0
    ratios = [odds * each.predictions[:, 0] / np.maximum(each.predictions[:, 1], LEAST_DIVISOR) for each in of_study]
    ratio = np.clip(np.median(ratios, axis=0)[own], LEAST_DIVISOR, estimator.max_target_weight)

    def divisor(estimated: np.ndarray | None) -> np.ndarray | None:
        chances = None if given.propensity is None else given.propensity[own]
        chances = chances if estimated is None else estimated
        least = max(estimator.min_propensity, LEAST_DIVISOR)
        return None if chances is None else np.maximum(chances, least) / ratio[:, None]

    inner = [FoldPlan(plan.fold[own], plan.n_folds) for plan in plans]
    found = cross_fit(
        Z[own], observed, inner, regression, propensity, estimator.executor, hazards=hazards, observation=observation,
        floor=estimator.min_observed, divisor=divisor,
    )  # fmt: skip
    assignments: list[CrossFit | None] = [None] * len(plans)
    if given.propensity is not None and not is_constant:
        learner = resolve_arms(estimator.model_propensity, True)
        each = cross_fit(Z[own], observed.without_times(), inner, None, learner, estimator.executor)
        wholes = [part.over_all(Z, study, plan) for part, plan in zip(each, plans, strict=True)]
        assignments = [part.propensity for part in wholes]
    return tuple(
        replace(part.over_all(Z, study, plan), participation=chance, study_odds=odds, assignment=assignment)
        for part, plan, chance, assignment in zip(found, plans, of_study, assignments, strict=True)
    )


def completed_nuisances(
    estimator: Any, scheme: Scheme, given: Nuisances, repeats: list[Nuisances], observed: StudyData
) -> tuple[Nuisances, int]:
    """Given and estimated nuisances together, estimated propensities clipped; and the number of clipped rows."""
    estimated = median_of_repeats(repeats) if repeats else Nuisances()
    m, p, n_clipped, raw = given.regression, given.propensity, 0, None
    uptake = estimated.uptake if given.uptake is None else given.uptake
    if m is None:
        m = estimated.regression
    if p is None and estimated.propensity is not None:
        raw, divided = estimated.propensity, divided_by(scheme, observed.treatments)
        own = slice(None) if observed.study is None else observed.study
        p = raw.copy()
        p[own], n_clipped = clip(raw[own], estimator.min_propensity, observed.treatments, divided)
    if p is not None and observed.study is not None and estimated.assignment is not None:
        p = np.where(observed.study[:, None], p, estimated.assignment)
    nuisances = Nuisances(
        m, p, raw, estimated.observation, uptake=uptake, ratio=estimated.ratio, assignment=estimated.assignment
    )
    return nuisances, n_clipped


def all_models(repeats: Sequence[CrossFitted], nuisance: str) -> tuple[Any, ...] | None:
    """The models of a nuisance, of all folds and repetitions; None if none was fitted."""
    parts = [getattr(repeat, nuisance) for repeat in repeats]
    if not parts or parts[0] is None:
        return None
    return tuple(m for part in parts for m in (part.by_arm() if nuisance == "regression" else part.models))
