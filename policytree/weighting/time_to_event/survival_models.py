"""The user's own survival models in place of the default ones: two methods, as hazards in bins."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from sklearn.utils.validation import has_fit_parameter

from policytree.exceptions import InputError
from policytree.weighting.stacking import ByArm

LEAST_SURVIVAL = 1e-12


class SurvivalModel(Protocol):
    """A model of times to an event that may take the place of the default ones.

    It is the ``model_event`` or ``model_censoring`` of :class:`policytree.RewardEstimator`. It is copied before every
    fit, and fitted within every arm of every fold: on the events of interest (others count as censored) or, as a model
    of censoring, on censoring as the event. If ``fit`` takes ``sample_weight``, it is
    passed. Within an arm of a fold a column may be constant.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from policytree import RewardEstimator, Study
    >>> from policytree.study import TimeToEvent
    >>> class Exponential:
    ...     def fit(self, X, time, event):
    ...         self.rate_ = event.sum() / time.sum()
    ...
    ...     def predict_survival(self, X, times):
    ...         return np.tile(np.exp(-self.rate_ * times), (len(X), 1))
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"age": rng.normal(size=200), "arm": rng.choice(["drug", "placebo"], 200)})
    >>> time, censored = rng.exponential(2.0, 200), rng.exponential(4.0, 200)
    >>> table["years"], table["died"] = np.minimum(time, censored), time <= censored
    >>> study = Study(table, treatment="arm", outcome=TimeToEvent("years", event="died", horizon=2.5))
    >>> RewardEstimator(model_event=Exponential(), random_state=0).fit(study).rewards_.shape
    (200, 2)
    """

    def fit(self, X: np.ndarray, time: np.ndarray, event: np.ndarray) -> Any:
        """Learn from rows of one arm.

        Parameters
        ----------
        X : ndarray of shape (n, p), float64
            Covariates, X beside W, with an indicator for each category; missing values are NaN.
        time : ndarray of shape (n,)
            Up to the event or to censoring, and to the horizon at most.
        event : ndarray of shape (n,), bool
            Whether the time ended with the event.
        """

    def predict_survival(self, X: np.ndarray, times: np.ndarray) -> np.ndarray:
        """Probability of no event by each of these times.

        Parameters
        ----------
        X : ndarray of shape (n, p), float64
        times : ndarray of shape (J,)
            Ascending, in the unit of ``time``.

        Returns
        -------
        ndarray of shape (n, J)
        """
        ...


def check_survival_model(model: Any, argument: str) -> None:
    """Refuse what lacks one of the two methods."""
    if isinstance(model, type):
        raise InputError(f"{argument} must be an instance; write {model.__name__}() instead of {model.__name__}.")
    for name in ("fit", "predict_survival"):
        if not callable(getattr(model, name, None)):
            raise InputError(
                f"{argument} must be 'auto' or have fit(X, time, event) and predict_survival(X, times); "
                f"{type(model).__name__} has no {name}."
            )


@dataclass(frozen=True, slots=True)
class _OfModel:
    """Hazards of a fitted survival model, in one stage."""

    fitted: Any
    edges: np.ndarray
    tied: bool

    def stages(self, Z: np.ndarray) -> np.ndarray:
        return self.at(Z, 0)[None]

    def at(self, Z: np.ndarray, stage: int) -> np.ndarray:
        survival = np.asarray(self.fitted.predict_survival(Z, self.edges[1:]), dtype=np.float64)
        shape = (len(Z), len(self.edges) - 1)
        if survival.shape != shape or not np.isfinite(survival).all():
            raise InputError(
                f"predict_survival of {type(self.fitted).__name__} must give finite probabilities of shape {shape}; "
                f"its shape is {survival.shape}."
            )
        steps = np.maximum(np.minimum.accumulate(np.clip(survival, 0.0, 1.0), axis=1), LEAST_SURVIVAL)
        before = np.column_stack([np.ones(len(Z)), steps[:, :-1]])
        return 1.0 - steps / before if self.tied else np.log(before / steps) / np.diff(self.edges)


@dataclass(frozen=True, slots=True)
class _NoEvent:
    """An arm that has no event to learn from."""

    n_bins: int

    def stages(self, Z: np.ndarray) -> np.ndarray:
        return np.zeros((1, len(Z), self.n_bins))

    def at(self, Z: np.ndarray, stage: int) -> np.ndarray:
        return np.zeros((len(Z), self.n_bins))


def fit_survival_model(
    model: SurvivalModel, n_arms: int, edges: np.ndarray, tied: bool, ZA: np.ndarray, y: np.ndarray, sample_weight=None,
    groups=None,
) -> ByArm:  # fmt: skip
    """A copy of the model fitted within every arm, to times that ``y`` (n, 2 J) has as time at risk and counts."""
    at_risk, counts = np.hsplit(y, 2)
    arm, event = ZA[:, -1], np.asarray(counts.any(axis=1))
    if tied:  # the end of the last bin at risk
        time = edges[1:][np.maximum(at_risk.shape[1] - 1 - (at_risk[:, ::-1] > 0.0).argmax(axis=1), 0)]
    else:
        time = edges[0] + at_risk.sum(axis=1)
    kept = np.asarray((at_risk > 0.0).any(axis=1))
    if sample_weight is not None:
        kept &= sample_weight > 0.0
    models: list[Any] = []
    for k in range(n_arms):
        own = kept & (arm == k)
        if not event[own].any():
            models.append(_NoEvent(len(edges) - 1))
            continue
        fitted = copy.deepcopy(model)
        taken = sample_weight is not None and has_fit_parameter(fitted, "sample_weight")
        weight = {"sample_weight": sample_weight[own]} if taken else {}
        fitted.fit(ZA[own, :-1], time[own], event[own], **weight)
        models.append(_OfModel(fitted, edges, tied))
    return ByArm(tuple(models))
