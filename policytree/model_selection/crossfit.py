"""Out-of-fold predictions of any scikit-learn learner: no row is judged by a model that saw it."""

from __future__ import annotations

import functools
import hashlib
import pickle
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ParamSpec, Protocol, TypeVar

import numpy as np
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from policytree.common.executors import submitted
from policytree.common.model_count import expect_models
from policytree.exceptions import InputError
from policytree.model_selection.folds import FoldPlan

P = ParamSpec("P")
R = TypeVar("R")
MOST_SHARED = 128  # models that wait for their second fit
MAX_CLASSES = 50  # a "classifier" of an outcome with more values than this is a mistake


def by_default_settings(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator of what fits learners or predicts by them: scikit-learn's settings have no effect on it.

    The caller's settings are for the tools around an estimator. Inside, metadata routing would have pipelines refuse
    ``step__sample_weight``, and frames in place of arrays change what follows (their standard deviation divides by
    n - 1); and other threads and processes do not know them, so that results would depend on where models are fitted.
    """

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        with config_context(enable_metadata_routing=False, transform_output="default"):
            return function(*args, **kwargs)

    return called


def fit_argument(learner, name: str) -> str | None:
    """The keyword under which ``learner.fit`` takes a per-row array such as ``sample_weight``; None if it does not.

    Looks through pipelines (their last step) and scikit-learn's parameter searches.
    """
    if isinstance(learner, Pipeline):
        step, final = learner.steps[-1]
        inner = fit_argument(final, name)
        return None if inner is None else f"{step}__{inner}"
    if isinstance(learner, (GridSearchCV, RandomizedSearchCV)):
        return fit_argument(learner.estimator, name)
    return name if has_fit_parameter(learner, name) else None


@by_default_settings
def fit_learner(learner, X, y, *, sample_weight=None, groups=None):
    """A fitted clone of ``learner``; per-row arrays reach it if its ``fit`` takes them."""
    given = {"sample_weight": sample_weight, "groups": groups}
    arguments = {}
    for name, values in given.items():
        keyword = None if values is None else fit_argument(learner, name)
        if keyword is not None:
            arguments[keyword] = values
    return clone(learner).fit(X, y, **arguments)


def _name(learner) -> str:
    """Name a learner for the user: of a pipeline, its last step."""
    return _name(learner.steps[-1][1]) if isinstance(learner, Pipeline) else type(learner).__name__


class Predictor(Protocol):
    """Model that predicts from a table of numbers."""

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predictions for the rows of ``X``: (n,) means, or (n, K) means or probabilities."""


class FittedModel(Predictor, Protocol):
    """A nuisance model of one fold."""

    @property
    def model(self) -> Any:
        """The learner that was fitted."""


@dataclass(frozen=True, slots=True)
class MeanModel:
    """E[Y | X] by a fitted regressor, or by a fitted classifier as ``sum of values * probabilities``.

    Attributes
    ----------
    model : fitted scikit-learn learner
    values : ndarray of shape (n_classes,), or None
        The outcome's value for each class of a classifier; None for a regressor.
    """

    model: Any
    values: np.ndarray | None

    @by_default_settings
    def predict(self, X: np.ndarray) -> np.ndarray:
        """Expected outcomes, shape (n,), in the outcome's unit."""
        if self.values is None:
            return np.asarray(self.model.predict(X), dtype=np.float64).reshape(len(X))
        return self.model.predict_proba(X) @ self.values


@dataclass(frozen=True, slots=True)
class ProbabilityModel:
    """P(class | X) by a fitted classifier, its columns put in the order of the class codes.

    Attributes
    ----------
    model : fitted scikit-learn classifier
    n_classes : int
    """

    model: Any
    n_classes: int

    @by_default_settings
    def predict(self, X: np.ndarray) -> np.ndarray:
        """Probabilities, shape (n, n_classes); rows sum to one.

        Raises
        ------
        InputError
            If the learner's rows do not sum to one.
        """
        out = np.zeros((len(X), self.n_classes))
        out[:, self.model.classes_] = self.model.predict_proba(X)
        total = out.sum(axis=1)
        off = np.flatnonzero(np.abs(total - 1.0) > 1e-3)  # NaN is told apart elsewhere
        if len(off):
            raise InputError(
                f"{_name(self.model)} gives probabilities that sum to {total[off[0]]:.3g}, not to 1; use a "
                "classifier whose predict_proba is a distribution."
            )
        return out


def fit_mean(learner, X, y, *, sample_weight=None, groups=None) -> MeanModel:
    """Fit E[y | X] by a regressor or, for an outcome with few values (0/1), a classifier with ``predict_proba``.

    Raises
    ------
    InputError
        If a classifier meets an outcome with more than 50 distinct values.
    """
    if not is_classifier(learner):
        return MeanModel(fit_learner(learner, X, y, sample_weight=sample_weight, groups=groups), None)
    values, codes = np.unique(y, return_inverse=True)
    if len(values) > MAX_CLASSES:
        raise InputError(
            f"{_name(learner)} is a classifier, but the outcome has {len(values)} distinct values; pass a regressor."
        )
    if len(values) == 1:  # most classifiers refuse a single class, but an arm without any event is not an error
        learner = DummyClassifier(strategy="prior")
    model = fit_learner(learner, X, codes, sample_weight=sample_weight, groups=groups)
    return MeanModel(model, values[model.classes_].astype(np.float64))


def fit_probabilities(learner, X, codes, n_classes: int, *, sample_weight=None, groups=None) -> ProbabilityModel:
    """Fit P(code | X), codes in ``range(n_classes)``, by a classifier with ``predict_proba``."""
    model = fit_learner(learner, X, codes, sample_weight=sample_weight, groups=groups)
    return ProbabilityModel(model, n_classes)


@dataclass(frozen=True, slots=True)
class CrossFit:
    """Out-of-fold predictions and the models that made them.

    Attributes
    ----------
    predictions : ndarray of shape (n,) or (n, K)
        Row ``i`` is predicted by ``models[folds.fold[i]]``, which saw neither the row nor its cluster.
    models : tuple of FittedModel
        One per fold.
    folds : FoldPlan
    """

    predictions: np.ndarray
    models: tuple[FittedModel, ...]
    folds: FoldPlan


def _finite(predicted: np.ndarray, learner) -> np.ndarray:
    """The predictions, unless some are no numbers: rewards would silently be missing."""
    bad = int((~np.isfinite(predicted)).sum())
    if bad:
        raise InputError(
            f"{_name(learner)} predicts {bad} missing or infinite values; use another model, or rescale the data."
        )
    return predicted


class _SharedModels:
    """Models that wait for a second fit of the same learner to the same numbers."""

    def __init__(self) -> None:
        self._models: OrderedDict[bytes, FittedModel] = OrderedDict()
        self._lock = threading.Lock()

    def taken(self, key: bytes) -> FittedModel | None:
        """The model, which is needed no more: two fits share it and no third one follows."""
        with self._lock:
            return self._models.pop(key, None)

    def keep(self, key: bytes, model: FittedModel) -> None:
        with self._lock:
            self._models[key] = model
            while len(self._models) > MOST_SHARED:
                self._models.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._models.clear()


_SHARED = _SharedModels()  # of this process: refits run one after the other, in threads or in processes
_SHARES: ContextVar[bool] = ContextVar("policytree_shares_models", default=False)


@contextmanager
def models_shared(shared: bool = True) -> Iterator[None]:
    """Inside, a model that was fitted to the very same numbers, in an earlier such block, is not fitted again."""
    token = _SHARES.set(shared)
    try:
        yield
    finally:
        _SHARES.reset(token)


def forget_shared_models() -> None:
    """Drop the models of :func:`models_shared` that nobody asked for a second time."""
    _SHARED.clear()


@dataclass(frozen=True)
class _Training:
    """The rows that a model of one fold learns from: learners that are mixed share them."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None
    groups: np.ndarray | None

    @functools.cached_property
    def digest(self) -> bytes:
        """A hash of all these numbers."""
        found = hashlib.blake2b()
        for array in (self.X, self.y, self.weight, self.groups):
            found.update(repr(None if array is None else (array.shape, array.dtype.str)).encode())
            if array is not None:
                found.update(np.ascontiguousarray(array).data)
        return found.digest()

    def key(self, fit: Callable[..., Any]) -> bytes | None:
        """Hash a fit to these rows; None where the learner cannot be pickled."""
        try:
            return hashlib.blake2b(pickle.dumps(fit)).digest() + self.digest
        except (pickle.PicklingError, AttributeError, TypeError):  # as pickle says it of what is defined in a function
            return None


@dataclass(frozen=True)
class FoldFits:
    """The models of all folds, one to be fitted at a time, here or on a worker.

    Attributes
    ----------
    fit : callable
        ``fit(X, y, sample_weight=, groups=)`` gives a FittedModel; picklable.
    X : ndarray of shape (n, p)
    y : ndarray of shape (n,)
    folds : FoldPlan
    train_rows : ndarray of shape (n,), bool, or None
    sample_weight, groups : ndarray of shape (n,), or None
    """

    fit: Callable[..., FittedModel]
    X: np.ndarray
    y: np.ndarray
    folds: FoldPlan
    train_rows: np.ndarray | None = None
    sample_weight: np.ndarray | None = None
    groups: np.ndarray | None = None

    def of_fold(self, f: int, training: _Training | None = None) -> tuple[FittedModel, np.ndarray]:
        """The model that does not see a fold, and its predictions for it; ``training`` is what it would take."""
        training = self.training(f) if training is None else training
        key = training.key(self.fit) if _SHARES.get() else None
        model = None if key is None else _SHARED.taken(key)
        if model is None:
            model = self.fit(training.X, training.y, sample_weight=training.weight, groups=training.groups)
            if key is not None:
                _SHARED.keep(key, model)
        return model, _finite(model.predict(self.X[self.folds.fold == f]), model.model)

    def training(self, f: int) -> _Training:
        """Take the rows that the model of a fold learns from."""
        learns = self.folds.fold != f
        use = np.flatnonzero(learns if self.train_rows is None else self.train_rows & learns)
        X, y, weight, groups = (
            None if part is None else part[use] for part in (self.X, self.y, self.sample_weight, self.groups)
        )
        if weight is not None and not weight.any():
            raise InputError(
                f"Without one fold, all {len(use)} rows that a model is to learn from have sample_weight zero; use "
                "fewer folds, or leave out rows of weight zero and treatments with hardly any other."
            )
        assert X is not None and y is not None, "these are always given"
        return _Training(X, y, weight, groups)

    def same_rows(self, other: FoldFits) -> bool:
        """Whether models learn from the very same arrays as those of another learner."""
        arrays = ("X", "y", "train_rows", "sample_weight", "groups")
        return self.folds is other.folds and all(getattr(self, name) is getattr(other, name) for name in arrays)

    def assembled(self, fitted: list[tuple[FittedModel, np.ndarray]]) -> CrossFit:
        """Assemble the folds' models and predictions, given in their order."""
        predictions = np.empty((len(self.X), *fitted[0][1].shape[1:]))
        for f, (_, predicted) in enumerate(fitted):
            predictions[self.folds.fold == f] = predicted
        return CrossFit(predictions, tuple(model for model, _ in fitted), self.folds)

    def run(self) -> CrossFit:
        """All folds, one after the other."""
        return self.assembled([self.of_fold(f) for f in range(self.folds.n_folds)])


@dataclass(frozen=True)
class _Fits:
    """Models of several nuisances, by their number and the fold: one task for workers."""

    fits: list[FoldFits]
    last: list[tuple[FoldFits, int, _Training]] = field(default_factory=list, init=False)

    def __call__(self, part: tuple[int, int]) -> tuple[FittedModel, np.ndarray]:
        fit, f = self.fits[part[0]], part[1]
        for of, fold, training in tuple(self.last):  # one, or none; threads replace it in one step
            if fold == f and fit.same_rows(of):
                return fit.of_fold(f, training)
        training = fit.training(f)
        self.last[:] = [(fit, f, training)]
        return fit.of_fold(f, training)


def run_fits(fits: list[FoldFits], executor: Any) -> list[CrossFit]:
    """Several nuisances, one fold after the other, or on the workers of an executor.

    All models of a fold come before those of the next, so that their times are soon known
    (:mod:`policytree.common.model_count`).
    """
    parts = sorted(((i, f) for i, fit in enumerate(fits) for f in range(fit.folds.n_folds)), key=lambda part: part[1])
    fitted, task = expect_models(i for i, _ in parts), _Fits(fits)
    found = {}
    for k, result in submitted(executor, task, parts) if executor is not None else enumerate(map(task, parts)):
        found[parts[k]] = result
        fitted(parts[k][0])
    return [fit.assembled([found[i, f] for f in range(fit.folds.n_folds)]) for i, fit in enumerate(fits)]


def cross_fit_mean(learner, X, y, folds: FoldPlan, *, train_rows=None, sample_weight=None, groups=None) -> CrossFit:
    """Out-of-fold expected outcomes for all rows, learnt from the rows marked in ``train_rows`` (all by default).

    Parameters
    ----------
    learner : scikit-learn regressor, or classifier with ``predict_proba``
        Cloned for every fold. A classifier's prediction is the expected value over its classes.
    X : ndarray of shape (n, p), float64
    y : ndarray of shape (n,), float64
    folds : FoldPlan
    train_rows : ndarray of shape (n,), bool, optional
        The rows of one arm.
    sample_weight : ndarray of shape (n,), optional
        Passed on if the learner's ``fit`` takes it (through pipelines and searches as well); otherwise the learner is
        fitted without weights.
    groups : ndarray of shape (n,), optional
        Cluster codes, passed on if the learner's ``fit`` has an argument ``groups`` (for its own inner folds).

    Returns
    -------
    CrossFit
        ``predictions`` of shape (n,), in the outcome's unit.
    """
    return FoldFits(partial(fit_mean, learner), X, y, folds, train_rows, sample_weight, groups).run()


def cross_fit_probabilities(
    learner, X, codes, n_classes: int, folds: FoldPlan, *, sample_weight=None, groups=None
) -> CrossFit:
    """Out-of-fold class probabilities, ``predictions`` (n, n_classes); arguments as in :func:`cross_fit_mean`."""
    fit = partial(fit_probabilities, learner, n_classes=n_classes)
    return FoldFits(fit, X, codes, folds, None, sample_weight, groups).run()


def predict_new(models: tuple[Predictor, ...], X: np.ndarray, held_out_of: np.ndarray | None = None) -> np.ndarray:
    """Predictions for new rows: the average of the fold models.

    Parameters
    ----------
    models : tuple of Predictor
        One per fold.
    X : ndarray of shape (n, p)
    held_out_of : ndarray of shape (n,), int, optional
        Fold whose model is the only one that has not seen the row's cluster; -1 for rows of new clusters.

    Returns
    -------
    ndarray of shape (n,) or (n, K)
    """
    return averaged(np.stack([model.predict(X) for model in models]), held_out_of)


def averaged(each: np.ndarray, held_out_of: np.ndarray | None) -> np.ndarray:
    """The mean over fold models of what each says of new rows, ``each`` (F, n, ...); see :func:`predict_new`."""
    out = each.mean(axis=0)
    if held_out_of is not None:
        known = np.flatnonzero(held_out_of >= 0)
        out[known] = each[held_out_of[known], known]
    return out


def median_rule(values, standard_errors) -> tuple[float, float]:
    """One estimate from several cross-fittings of the same data, with a standard error that counts their spread.

    Parameters
    ----------
    values, standard_errors : array-like of shape (n_repeats,)
        Estimates that differ only in the draw of the folds, and their standard errors.

    Returns
    -------
    value : float
        Median of the estimates.
    standard_error : float
        ``sqrt(median(se_s^2 + (value_s - value)^2))``.

    References
    ----------
    Chernozhukov, Chetverikov, Demirer, Duflo, Hansen, Newey & Robins (2018), Econometrics Journal
    21(1), definition 3.3.
    """
    values, standard_errors = np.asarray(values, dtype=np.float64), np.asarray(standard_errors, dtype=np.float64)
    if values.ndim != 1 or values.shape != standard_errors.shape or not len(values):
        raise InputError("values and standard_errors must be two lists of the same length, one entry per repetition.")
    value = float(np.median(values))
    return value, float(np.sqrt(np.median(standard_errors**2 + (values - value) ** 2)))
