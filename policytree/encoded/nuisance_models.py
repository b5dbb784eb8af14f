"""Nuisance models of many rows: fitted to a sample, or batch by batch where the learner can.

A learner streams if it has ``partial_fit``, or is a pipeline whose last step has; the steps before are fitted to the
sample. All others are fitted to the sample alone.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import Pipeline, make_pipeline

from policytree.common.executors import submitted
from policytree.exceptions import InputError
from policytree.model_selection.crossfit import (
    MAX_CLASSES,
    FittedModel,
    MeanModel,
    ProbabilityModel,
    by_default_settings,
    fit_mean,
    fit_probabilities,
)
from policytree.weighting.nuisances import FEWEST_MISSING, observation_table
from policytree.weighting.time_to_event.outcome import TimeToEvent


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows that models learn from.

    Attributes
    ----------
    Z : ndarray of shape (m, q)
    y : ndarray of shape (m,)
        Outcome.
    arm, fold : ndarray of shape (m,), int64
    weight : ndarray of shape (m,), or None
    groups : ndarray of shape (m,), int64, or None
    in_outcomes, in_propensity : ndarray of shape (m,), bool, or None
        Whether the row is in the sample for outcome models, and in that for propensity models; None: all are.
    seen : ndarray of shape (m,), bool, or None
        Whether the outcome is not missing; ``y`` of the others is zero. None: all are seen.
    times : TimeToEvent, or None
        Where outcomes are times; ``y`` are then these, or what takes their place.
    in_hazards : ndarray of shape (m,), bool, or None
        Whether the row is in the sample for hazards.
    """

    Z: np.ndarray
    y: np.ndarray
    arm: np.ndarray
    fold: np.ndarray
    weight: np.ndarray | None = None
    groups: np.ndarray | None = None
    in_outcomes: np.ndarray | None = None
    in_propensity: np.ndarray | None = None
    seen: np.ndarray | None = None
    times: TimeToEvent | None = None
    in_hazards: np.ndarray | None = None

    def rows_of(self, model: Model) -> np.ndarray:
        """Rows that a model may learn from."""
        use = self.fold != model.fold
        sampled = self.in_propensity if model.arm is None else self.in_outcomes
        if model.arm is not None:
            use &= self.arm == model.arm
            if self.seen is not None:
                use &= self.seen
        return np.flatnonzero(use if sampled is None else use & sampled)


@dataclass
class Model:
    """One model: what it learns from, and how.

    Attributes
    ----------
    learner : scikit-learn learner
    fold : int
        The fold that it does not see.
    arm : int or None
        The treatment whose outcomes it learns; None for the probabilities of all treatments.
    values : ndarray
        The outcome's different values, sorted, where they are few; or the codes of all treatments.
    fitted : FittedModel or None
    """

    learner: Any
    fold: int
    arm: int | None
    values: np.ndarray
    fitted: FittedModel | None = None

    def __post_init__(self) -> None:
        self.learner = _one_pipeline(self.learner)

    @property
    def streams(self) -> bool:
        """Whether it learns from all rows, batch by batch."""
        last = self.learner.steps[-1][1] if isinstance(self.learner, Pipeline) else self.learner
        return hasattr(last, "partial_fit")

    @by_default_settings
    def fit_sample(self, sample: Batch) -> Model:
        """Fit to a sample, or make ready for batches."""
        rows = sample.rows_of(self)
        weight = None if sample.weight is None else sample.weight[rows]
        if not len(rows) or (weight is not None and not weight.any()):
            raise InputError(
                f"Without fold {self.fold}, no row with positive weight is left that a model could learn from; use "
                "fewer folds (cv of the RewardEstimator), or leave out rare treatments."
            )
        Z, target = self.columns(sample, rows), self.target(sample, rows)
        self._check_target(target)
        if self.streams:
            self.fitted = self._unfitted(Z)
            return self
        more = {"sample_weight": weight, "groups": None if sample.groups is None else sample.groups[rows]}
        if self.arm is None:
            self.fitted = fit_probabilities(self.learner, Z, target, len(self.values), **more)
        else:
            self.fitted = fit_mean(self.learner, Z, target, **more)
        return self

    def columns(self, batch: Batch, rows: np.ndarray) -> np.ndarray:
        """Return the learner's inputs for some rows of a batch."""
        return batch.Z[rows]

    def target(self, batch: Batch, rows: np.ndarray) -> np.ndarray:
        """Return its targets for them."""
        return batch.arm[rows] if self.arm is None else batch.y[rows]

    def _check_target(self, target: np.ndarray) -> None:
        if self.arm is None and not self.streams and (target == target[0]).all():
            raise InputError(
                f"Without fold {self.fold}, the sample for the propensity model ({len(target):,} rows) holds one "
                "treatment only; raise fit_rows, or use fewer folds."
            )

    def _unfitted(self, Z: np.ndarray) -> FittedModel:
        """A model whose last step has seen nothing, the steps before it fitted to a sample."""
        learner = clone(self.learner)
        if isinstance(learner, Pipeline) and len(learner.steps) > 1:
            learner[:-1].fit(Z)  # a view: the steps are the pipeline's own
        if self.arm is None:
            return ProbabilityModel(learner, len(self.values))
        if not is_classifier(learner):
            return MeanModel(learner, None)
        if len(self.values) > MAX_CLASSES:
            raise InputError(
                f"{type(self.learner).__name__} is a classifier, but the outcome has many distinct values; pass a "
                "regressor."
            )
        return MeanModel(learner, self.values)

    @by_default_settings
    def add(self, batch: Batch) -> None:
        """Learn from the rows of a batch."""
        rows = batch.rows_of(self)
        if not len(rows):
            return
        assert self.fitted is not None
        learner, Z = self.fitted.model, self.columns(batch, rows)
        last = learner
        if isinstance(learner, Pipeline):
            last = learner.steps[-1][1]
            Z = learner[:-1].transform(Z) if len(learner.steps) > 1 else Z
        target, more = self.target(batch, rows), {}
        if self.arm is not None and is_classifier(learner):
            target = np.searchsorted(self.values, target)
        if is_classifier(learner):
            more["classes"] = np.arange(len(self.values))
        if batch.weight is not None and "sample_weight" in inspect.signature(last.partial_fit).parameters:
            more["sample_weight"] = batch.weight[rows]
        last.partial_fit(Z, target, **more)


@dataclass
class ObservationModel(Model):
    """A model of whether outcomes are seen, given the covariates and the treatment.

    Attributes
    ----------
    n_arms : int
    """

    n_arms: int = 0

    def columns(self, batch: Batch, rows: np.ndarray) -> np.ndarray:
        """Covariates, and an indicator of every treatment."""
        return observation_table(batch.Z[rows], batch.arm[rows], self.n_arms)

    def target(self, batch: Batch, rows: np.ndarray) -> np.ndarray:
        """One where the outcome is seen."""
        assert batch.seen is not None, "some outcomes are missing"
        return batch.seen[rows].astype(np.int64)

    def _check_target(self, target: np.ndarray) -> None:
        """Where hardly any outcome is missing, or seen, nothing can be learnt but how many are."""
        if np.bincount(target, minlength=2).min() < FEWEST_MISSING:
            self.learner = DummyClassifier(strategy="prior")


def _one_pipeline(learner: Any) -> Any:
    """A pipeline whose last step is a pipeline as one; others as they are."""
    steps: list[Any] = []
    while isinstance(learner, Pipeline):
        steps += [step for _, step in learner.steps[:-1]]
        learner = learner.steps[-1][1]
    return make_pipeline(*steps, learner) if steps else learner


@dataclass(frozen=True)
class _Fit:
    """Fits a model to the sample, by its place: a task for workers."""

    models: list[Model]
    sample: Batch

    def __call__(self, k: int) -> Model:
        return self.models[k].fit_sample(self.sample)


def fit_models(
    models: list[Model],
    sample: Batch,
    batches: Callable[[], Iterable[Batch]],
    each: Callable[[Callable, Iterable], list],
    executor: Any,
    told: Callable[[], None],
) -> list[Model]:
    """All models, fitted: to the sample, then those that stream to all rows, once.

    Parameters
    ----------
    models : list of Model
    sample : Batch
    batches : callable
        One reading of all rows to learn from.
    each : callable
        A map in threads.
    executor : object or None
        Where to fit to the sample, if not in these threads; see :func:`policytree.common.executors.submitted`.
    told : callable
        Called once a model is fitted to the sample.
    """
    fit = _Fit(models, sample)

    def fit_here(k: int) -> tuple[int, Model]:
        found = fit(k)
        told()
        return k, found

    places = range(len(models))
    fitted = dict(each(fit_here, places)) if executor is None else {}
    if executor is not None:
        for k, model in submitted(executor, fit, places):
            fitted[k] = model
            told()
    out = [fitted[k] for k in places]
    streaming = [model for model in out if model.streams]
    if streaming:
        for batch in batches():
            each(lambda model, batch=batch: model.add(batch), streaming)
    return out
