"""Cross-fitted nuisances: what each treatment would bring, and how likely it was."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.dummy import DummyClassifier, DummyRegressor

from policytree.common.model_count import more_models_follow
from policytree.exceptions import InputError, quoted
from policytree.model_selection.crossfit import (
    CrossFit,
    FittedModel,
    FoldFits,
    fit_mean,
    fit_probabilities,
    predict_new,
    run_fits,
)
from policytree.model_selection.folds import FoldPlan
from policytree.weighting.completion import completed
from policytree.weighting.effect_outcomes import EffectModel, EffectOutcomes, MatchedModel, is_effect_estimator
from policytree.weighting.learners import OutcomeClassifier, OutcomeRegressor, imputed, propensity_learner
from policytree.weighting.matching import MatchingRewards
from policytree.weighting.scheme import Nuisances
from policytree.weighting.stacked import expanded
from policytree.weighting.stacking import (
    OUTCOME_LEARNERS,
    PROPENSITY_LEARNERS,
    OutcomeStack,
    PropensityStack,
    StackedOutcomes,
    indicators,
)
from policytree.weighting.study_data import StudyData
from policytree.weighting.time_to_event.censoring import CompletedOutcomes, complete_times
from policytree.weighting.time_to_event.hazards import HazardStack
from policytree.weighting.time_to_event.survival_models import check_survival_model

NOTHING_GIVEN = Nuisances()
FEWEST_MISSING = 5  # outcomes, and seen ones, among the rows that a model of who is missing learns from


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

    model: StackedOutcomes | EffectModel | MatchedModel
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
    models: tuple[ArmModels | StackedOutcomes | EffectModel | MatchedModel, ...]

    def predict_new(self, Z: np.ndarray, held_out_of: np.ndarray | None = None) -> np.ndarray:
        """Expected outcomes of new rows, shape (n, K): averaged over fold models."""
        return predict_new(self.models, Z, held_out_of)

    def untargeted(self, Z: np.ndarray, folds: FoldPlan) -> np.ndarray:
        """Expected outcomes (n, K) of the rows of the fit, out of fold, before default mixtures are targeted."""
        out = np.array(self.predictions)
        for model, (_, test) in zip(self.models, folds.splits(), strict=True):
            if isinstance(model, StackedOutcomes):
                out[test] = model.untargeted(Z[test])
        return out

    def untargeted_new(self, Z: np.ndarray) -> np.ndarray:
        """As :meth:`untargeted`, of new rows, averaged over fold models."""
        each = [m.untargeted(Z) if isinstance(m, StackedOutcomes) else m.predict(Z) for m in self.models]
        return np.mean(each, axis=0)

    def by_arm(self) -> tuple[tuple[FittedModel, ...], ...]:
        """The models, for every fold one per arm."""
        return tuple(
            m.models if isinstance(m, ArmModels) else tuple(ArmOfStack(m, k) for k in range(m.n_arms))
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


def resolve_learner(learner: Any, argument: str) -> Any:
    """The user's own learner, which takes missing values or has them imputed; None for "auto"."""
    return _resolve(learner, None, argument, True, None)


def _learns_all_arms(learner: Any) -> bool:
    return is_effect_estimator(learner) or isinstance(learner, MatchingRewards)


def _is_auto(learner: Any) -> bool:
    return isinstance(learner, str) and learner == "auto"


def resolve_regression(learner: Any, y: np.ndarray, has_covariates: bool, random_state):
    """The outcome learner: a classifier by default if all outcomes are 0 or 1. A mapping has one per treatment."""
    if isinstance(learner, Mapping):
        return {arm: resolve_regression(own, y, has_covariates, random_state) for arm, own in learner.items()}
    if _learns_all_arms(learner) or (isinstance(learner, str) and learner in OUTCOME_LEARNERS):
        named = quoted(learner) if isinstance(learner, str) else type(learner).__name__
        raise InputError(
            f"model_regression={named} learns the outcomes of all treatments together, and here one model is asked "
            "for; pass 'auto' or a scikit-learn estimator."
        )
    auto = (OutcomeClassifier if _is_binary(y) else OutcomeRegressor)(random_state=random_state)
    return _resolve(learner, auto, "model_regression", has_covariates, DummyRegressor())


def resolve_outcomes(learner: Any, y: np.ndarray, has_covariates: bool, random_state):
    """As :func:`resolve_regression`, but "auto" is one stack for all treatments, and a name one learner of it."""
    if _learns_all_arms(learner):
        if not has_covariates:
            raise InputError("model_regression needs covariates; pass X or W, or leave it at 'auto' for arm averages.")
        return EffectOutcomes(learner, random_state)
    if isinstance(learner, str) and learner in OUTCOME_LEARNERS:
        return OutcomeStack(_is_binary(y), (learner,)) if has_covariates else DummyRegressor()
    if _is_auto(learner) and has_covariates:
        return OutcomeStack(_is_binary(y))
    return resolve_regression(learner, y, has_covariates, random_state)


def resolve_uptake(learner: Any, took: np.ndarray, has_covariates: bool, random_state):
    """As :func:`resolve_outcomes`, for whether the second treatment was taken."""
    if _is_auto(learner):
        return resolve_outcomes(learner, took, has_covariates, random_state)
    return _resolve(learner, None, "model_uptake", has_covariates, DummyRegressor())


def _is_binary(y: np.ndarray) -> bool:
    return bool(np.isin(y, (0.0, 1.0)).all())


def resolve_propensity(learner: Any, has_covariates: bool, argument: str = "model_propensity"):
    """The propensity learner; must be a classifier with probabilities."""
    named = type(learner).__name__  # as the user knows it, without what is put around it
    learner = _resolve(learner, propensity_learner(), argument, has_covariates, DummyClassifier(strategy="prior"))
    if not is_classifier(learner) or not hasattr(learner, "predict_proba"):
        raise InputError(
            f"{argument} must be a classifier with predict_proba; got {named}, use for instance LogisticRegression()."
        )
    return learner


def resolve_arms(learner: Any, has_covariates: bool):
    """As :func:`resolve_propensity`, but the default is a stack, or one learner of it by its name."""
    if has_covariates and isinstance(learner, str) and learner in ("auto", *PROPENSITY_LEARNERS):
        return PropensityStack() if learner == "auto" else PropensityStack((learner,))
    if isinstance(learner, str) and learner in PROPENSITY_LEARNERS:
        learner = "auto"  # without covariates all are the same
    return resolve_propensity(learner, has_covariates)


def resolve_observation(learner: Any):
    """The model of whether an outcome is seen: as that of treatment; the arm is always among its columns."""
    return PropensityStack() if _is_auto(learner) else resolve_propensity(learner, True, "model_observation")


def refuse_own_models(**models: Any) -> None:
    """Refuse learners of the user's, by the names of their arguments, where there are no covariates to learn from."""
    for argument, model in models.items():
        if not _is_auto(model):
            raise InputError(
                f"{argument} needs covariates; pass X or W, or leave {argument}='auto' for the curves of the arms."
            )


def resolve_effects(learner: Any, has_covariates: bool):
    """The user's own regressor of effects; None for the default mixture."""
    learner = _resolve(learner, None, "model_effects", has_covariates, None)
    if learner is not None and not is_regressor(learner):
        raise InputError(f"model_effects must be 'auto' or a regressor; got {type(learner).__name__}.")
    return learner


def resolve_participation(learner: Any):
    """The model of whether somebody is of the study or of the target: as that of treatment."""
    return PropensityStack() if _is_auto(learner) else resolve_propensity(learner, True, "model_study")


def resolve_hazards(event: Any, censoring: Any, has_entry: bool) -> tuple[HazardStack, HazardStack]:
    """The models of events and of censoring: mixtures by default, else the user's survival models."""
    for model, argument in ((event, "model_event"), (censoring, "model_censoring")):
        if not _is_auto(model):
            check_survival_model(model, argument)
            if has_entry:
                raise InputError("Survival models of your own know no entry; leave it out, or use the default models.")
    of_event, of_censoring = (HazardStack(None if _is_auto(model) else model) for model in (event, censoring))
    return of_event, of_censoring


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
    completed : CompletedOutcomes or None
        Of times to an event.
    observation : CrossFit or None
        Probabilities (n, 2) that outcomes are missing or seen, of covariates and the arm, where some are missing.
    n_arms : int
        Of the arms that ``observation`` tells apart.
    uptake : CrossFittedRegression or None
        Probabilities (n, M) of taking the second treatment, where arms are offers.
    participation : CrossFit or None
        Probabilities (n, 2) of being of the target or of the study, of covariates, where there is a target.
    study_odds : float
        (Weighted) rows of the study over rows of the target.
    assignment : CrossFit or None
        Probabilities of treatment in the study for all rows, where known ones differ between its rows.
    """

    folds: FoldPlan
    regression: CrossFittedRegression | None
    propensity: CrossFit | None
    completed: CompletedOutcomes | None = None
    observation: CrossFit | None = None
    n_arms: int = 0
    uptake: CrossFittedRegression | None = None
    participation: CrossFit | None = None
    study_odds: float = 1.0
    assignment: CrossFit | None = None

    def only(self, *parts: str) -> CrossFitted:
        """The same without other models, which then predict nothing."""
        others = {"regression", "propensity", "observation", "uptake", "participation", "assignment"} - set(parts)
        without: dict[str, Any] = dict.fromkeys(others)
        return replace(self, **without)

    def predictions(self) -> Nuisances:
        """Out of fold, for the rows of the fit."""
        return Nuisances(
            None if self.regression is None else self.regression.predictions,
            None if self.propensity is None else self.propensity.predictions,
            observation=None if self.observation is None else self.observation.predictions[:, 1],
            uptake=None if self.uptake is None else self.uptake.predictions,
            ratio=None if self.participation is None else self._ratio(self.participation.predictions),
            assignment=None if self.assignment is None else self.assignment.predictions,
        )

    def untargeted(self, Z: np.ndarray) -> np.ndarray:
        """Expected outcomes (n, K) of the rows of the fit, by :meth:`CrossFittedRegression.untargeted`."""
        assert self.regression is not None, "outcome models were fitted"
        return self.regression.untargeted(Z, self.folds)

    def untargeted_new(self, Z: np.ndarray) -> np.ndarray:
        """Expected outcomes (n, K) of new rows, likewise."""
        assert self.regression is not None, "outcome models were fitted"
        return self.regression.untargeted_new(Z)

    def _ratio(self, chances: np.ndarray) -> np.ndarray:
        """Density of covariates in the target over that in the study, (n,), from the probabilities of both."""
        return self.study_odds * chances[:, 0] / np.maximum(chances[:, 1], np.finfo(float).tiny)

    def held_out_of(self, row_of_cluster: np.ndarray | None) -> np.ndarray | None:
        """The fold in which each row's cluster was held out, (n,), -1 for new clusters; None without clusters."""
        if row_of_cluster is None:
            return None
        return np.where(row_of_cluster < 0, -1, self.folds.fold[row_of_cluster])

    def predict_new(
        self,
        Z: np.ndarray,
        row_of_cluster: np.ndarray | None,
        given: Nuisances = NOTHING_GIVEN,
        arm: np.ndarray | None = None,
    ) -> Nuisances:
        """For other rows: averages over the fold models, or the one model that did not see the row's cluster.

        Parameters
        ----------
        Z : ndarray of shape (n, q)
        row_of_cluster : ndarray of shape (n,), int, or None
            A row of the fit with the same cluster; -1 for rows of new clusters.
        given : Nuisances
            Parts that are not to be predicted, because they are known.
        arm : ndarray of shape (n,), int, or None
            The arm that each row got, for the probability that its outcome is seen.
        """
        held_out_of, observation = self.held_out_of(row_of_cluster), None
        if self.observation is not None and arm is not None:
            table = observation_table(Z, arm, self.n_arms)
            observation = predict_new(self.observation.models, table, held_out_of)[:, 1]
        return Nuisances(
            None
            if self.regression is None or given.regression is not None
            else self.regression.predict_new(Z, held_out_of),
            None
            if self.propensity is None or given.propensity is not None
            else predict_new(self.propensity.models, Z, held_out_of),
            observation=observation,
            uptake=None if self.uptake is None else self.uptake.predict_new(Z, held_out_of),
            ratio=None
            if self.participation is None
            else self._ratio(predict_new(self.participation.models, Z, held_out_of)),
            assignment=None if self.assignment is None else predict_new(self.assignment.models, Z, held_out_of),
        )

    def over_all(self, Z: np.ndarray, study: np.ndarray, plan: FoldPlan) -> CrossFitted:
        """The same with predictions for all rows of ``plan``, where models were fitted to those of the study.

        A row of the target is judged by the model that did not see its fold, in which the rows of its cluster are.
        """
        others = np.flatnonzero(~study)

        def whole(part, models):
            predictions = np.empty((len(Z), *part.shape[1:]))
            predictions[study] = part
            predictions[others] = predict_new(models, Z[others], plan.fold[others])
            return predictions

        regression, propensity, observation = self.regression, self.propensity, self.observation
        if regression is not None:
            regression = replace(regression, predictions=whole(regression.predictions, regression.models))
        if propensity is not None:
            propensity = CrossFit(whole(propensity.predictions, propensity.models), propensity.models, plan)
        if observation is not None:
            seen = expanded(observation.predictions, study, 1.0)
            observation = CrossFit(seen, observation.models, plan)
        return replace(self, folds=plan, regression=regression, propensity=propensity, observation=observation)


def observation_table(Z: np.ndarray, arm: np.ndarray, n_arms: int) -> np.ndarray:
    """Stack the predictors of an outcome's being seen: covariates, and an indicator of every arm."""
    return np.hstack([Z, indicators(arm, n_arms)])


def cross_fit(
    Z: np.ndarray,
    observed: StudyData,
    plans: list[FoldPlan],
    regression,
    propensity,
    executor: Any = None,
    *,
    hazards: tuple[HazardStack, HazardStack] | None = None,
    observation=None,
    floor: float = 0.0,
    divisor: Callable[[np.ndarray | None], np.ndarray | None] = lambda estimated: estimated,
) -> tuple[CrossFitted, ...]:
    """Cross-fit the nuisances whose learner is not None, once for every draw of folds.

    Parameters
    ----------
    Z : ndarray of shape (n, q)
        Nuisance covariates.
    observed : StudyData
    plans : list of FoldPlan
    regression : OutcomeStack, EffectOutcomes, regressor, classifier, mapping to regressors or classifiers, or None
        A scikit-learn learner is fitted per arm and fold, to that arm's rows outside the fold.
    propensity : PropensityStack, scikit-learn classifier, or None
        One model of the arm per fold.
    executor : optional
        Where to fit; see :func:`policytree.common.executors.submitted`.
    hazards : tuple of two HazardStack, or None
        Of events and of censoring, where outcomes are times; the completed outcomes (their median over the draws of
        folds) are then what outcome models learn from, and the models of events are one more learner of the default
        mixture.
    observation : PropensityStack, scikit-learn classifier, or None
        Of whether an outcome is seen, where some are missing; outcome models learn from those that are seen.
    floor : float
        Least probability of being observed, of those that scores divide by.
    divisor : callable
        From estimated propensities (n, K), None if there are none, to those that scores divide by; None if they divide
        by nothing. Default outcome models are targeted by them.

    Returns
    -------
    tuple of CrossFitted
        Probabilities are not clipped.
    """
    completions: Sequence[CompletedOutcomes | None] = [None] * len(plans)
    if hazards is not None:
        with more_models_follow():
            completions = done_times = complete_times(Z, observed, plans, *hazards, floor, executor)
        observed = completed(observed, np.median([each.outcome for each in done_times], axis=0))
    watched: Sequence[CrossFit | None] = [None] * len(plans)
    if observation is not None:
        with more_models_follow():
            watched = _fit_observation(observation, Z, observed, plans, executor)
    of_outcomes = observed
    if observed.seen is not None:
        of_outcomes = replace(observed, sample_weight=observed.weight * observed.seen)
    fits: list[FoldFits] = []
    counts: list[tuple[int, int]] = []
    for plan in plans:
        outcomes, arms = _outcome_fits(regression, Z, of_outcomes, plan), _arm_fits(propensity, Z, observed, plan)
        counts.append((len(outcomes), len(arms)))
        fits += outcomes + arms
    finished = run_fits(fits, executor)
    if isinstance(propensity, PropensityStack):
        _fit_again(propensity, counts, finished, Z, observed, executor)
    done = iter(finished)
    out = []
    for plan, completion, seen, (n_outcomes, n_arms) in zip(plans, completions, watched, counts, strict=True):
        outcomes_done, arms_done = ([next(done) for _ in range(count)] for count in (n_outcomes, n_arms))
        chances = _joined_arms(propensity, arms_done, observed)
        found = None
        if isinstance(regression, OutcomeStack):
            by = divisor(None if chances is None else chances.predictions)
            if by is not None and seen is not None:
                by = by * np.maximum(seen.predictions[:, 1:], floor)
            if completion is not None and completion.predicts_from_start:
                outcomes_done.append(completion.learner(Z, observed.arm))
            found = CrossFittedRegression(*regression.mixed(outcomes_done, Z, of_outcomes, by))
        elif isinstance(regression, EffectOutcomes):
            found = CrossFittedRegression(*regression.joined(outcomes_done))
        elif outcomes_done:
            models = tuple(ArmModels(of_fold) for of_fold in zip(*(f.models for f in outcomes_done), strict=True))
            found = CrossFittedRegression(np.column_stack([f.predictions for f in outcomes_done]), models)
        out.append(CrossFitted(plan, found, chances, completion, seen, observed.n_arms))
    return tuple(out)


def cross_fit_uptake(
    learner: Any, repeat: CrossFitted, Z: np.ndarray, observed: StudyData, divisor: Callable, executor: Any = None
) -> CrossFitted:
    """With probabilities of taking the treatment under every offer, on the folds of the other nuisances."""
    assert observed.took is not None, "arms are offers"
    of_uptake = replace(observed, y=observed.took, times=None, seen=None)
    chances = None if repeat.propensity is None else repeat.propensity.predictions
    (found,) = cross_fit(Z, of_uptake, [repeat.folds], learner, None, executor, divisor=lambda _: divisor(chances))
    return replace(repeat, uptake=found.regression)


def _fit_observation(learner, Z, observed: StudyData, plans: list[FoldPlan], executor: Any) -> list[CrossFit]:
    """Whether outcomes are seen, by covariates and the arm: the two classes in place of the arms."""
    assert observed.seen is not None, "some outcomes are missing"
    classes = replace(observed, arm=observed.seen.astype(np.int64), treatments=np.array([0, 1]), seen=None)
    table = observation_table(Z, observed.arm, observed.n_arms)
    counts = [np.bincount(classes.arm[train], minlength=2).min() for plan in plans for train, _ in plan.splits()]
    if isinstance(learner, PropensityStack) and min(counts) < FEWEST_MISSING:
        learner = PropensityStack(("shares",))
    found = cross_fit(table, classes, plans, None, learner, executor)
    return [each.propensity for each in found if each.propensity is not None]


def fit_participation(learner, Z, observed: StudyData, plans: list[FoldPlan], executor: Any) -> list[CrossFit]:
    """Whether rows are of the study, by covariates: the two classes in place of the arms."""
    assert observed.study is not None, "there is a target"
    classes = replace(
        observed, arm=observed.study.astype(np.int64), treatments=np.array([0, 1]), times=None, seen=None, study=None,
        sample_weight=observed.sampling_weight, sampling_weight=None,
    )  # fmt: skip
    found = cross_fit(Z, classes, plans, None, learner, executor)
    return [each.propensity for each in found if each.propensity is not None]


def _outcome_fits(regression, Z, observed: StudyData, plan: FoldPlan) -> list[FoldFits]:
    if regression is None:
        return []
    if isinstance(regression, (OutcomeStack, EffectOutcomes)):
        return regression.fits(Z, observed, plan)
    own: dict[str, Any] = {"sample_weight": observed.sample_weight, "groups": observed.groups}
    learners = learners_by_treatment(regression, observed.treatments)
    seen = np.ones(observed.n, dtype=bool) if observed.seen is None else observed.seen
    return [
        FoldFits(partial(fit_mean, learner), Z, observed.y, plan, (observed.arm == k) & seen, **own)
        for k, learner in enumerate(learners)
    ]


def _arm_fits(propensity, Z, observed: StudyData, plan: FoldPlan) -> list[FoldFits]:
    if propensity is None:
        return []
    if isinstance(propensity, PropensityStack):
        return propensity.fits(Z, observed, plan)
    fit = partial(fit_probabilities, propensity, n_classes=observed.n_arms)
    return [FoldFits(fit, Z, observed.arm, plan, None, observed.sample_weight, observed.groups)]


def _fit_again(stack: PropensityStack, counts, finished: list[CrossFit], Z, observed: StudyData, executor) -> None:
    """Replace what turns out to need more rounds; ``counts``: of outcome and of arm learners, for every plan."""
    again: dict[int, FoldFits] | None = None
    while again is None or again:
        again, start = {}, 0
        for n_outcomes, n_arms in counts:
            start += n_outcomes
            own = stack.fits_again(finished[start : start + n_arms], Z, observed)
            again |= {start + k: fits for k, fits in own.items()}
            start += n_arms
        for position, fit in zip(again, run_fits(list(again.values()), executor), strict=True):
            finished[position] = fit


def _joined_arms(propensity, done: list[CrossFit], observed: StudyData) -> CrossFit | None:
    if not done:
        return None
    return propensity.mixed(done, observed) if isinstance(propensity, PropensityStack) else done[0]


def median_of_repeats(parts: list[Nuisances]) -> Nuisances:
    """Elementwise median over repeated cross-fittings; propensities rescaled to sum to one.

    Every entry still comes from models that did not see the row, so the median does not either; it takes the luck of
    single fold draws out of the scores (EconML's ``mc_agg="median"``).
    """
    if len(parts) == 1:
        return parts[0]
    names = ("regression", "propensity", "observation", "uptake", "ratio", "assignment")
    median = {
        name: None if getattr(parts[0], name) is None else np.median([getattr(p, name) for p in parts], axis=0)
        for name in names
    }
    if median["propensity"] is not None:
        median["propensity"] = median["propensity"] / median["propensity"].sum(axis=1, keepdims=True)
    return Nuisances(**median)
