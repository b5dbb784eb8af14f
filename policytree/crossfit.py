"""Fold plans and out-of-fold predictions of any scikit-learn learner: no row is judged by a model that saw it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import GridSearchCV, KFold, RandomizedSearchCV, StratifiedGroupKFold, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from policytree.exceptions import InputError

MAX_CLASSES = 50  # a "classifier" of an outcome with more values than this is a mistake


@dataclass(frozen=True, slots=True)
class FoldPlan:
    """Which fold each row is held out in.

    Attributes
    ----------
    fold : ndarray of shape (n,), int64
        Row ``i`` is predicted by the model trained without fold ``fold[i]``.
    n_folds : int
    """

    fold: np.ndarray
    n_folds: int

    def splits(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Row indices (train, test) of every fold."""
        for f in range(self.n_folds):
            held_out = self.fold == f
            yield np.flatnonzero(~held_out), np.flatnonzero(held_out)


def make_folds(
    n: int, cv: Any = 5, *, strata=None, stratum_names=None, groups=None, random_state=None, what: str = "Treatment"
) -> FoldPlan:
    """Split rows into folds, balanced over strata, never splitting a cluster.

    Parameters
    ----------
    n : int
        Number of rows.
    cv : int, scikit-learn splitter, or array of shape (n,)
        Number of folds (shuffled by ``random_state``), an object with ``split(X, y, groups)``, or each row's fold.
    strata : ndarray of shape (n,), int, optional
        Codes 0, 1, ... (the arms). Every training part must hold every stratum.
    stratum_names : sequence, optional
        Names of the strata, for messages.
    groups : ndarray of shape (n,), int, optional
        Cluster codes 0, 1, ...; rows of one cluster stand in one fold.
    random_state : int, RandomState or None
    what : str
        What a stratum is called in messages.

    Returns
    -------
    FoldPlan

    Raises
    ------
    InputError
        If there are too few rows (or clusters) of some stratum, or ``cv`` cannot be used.
    """
    names = np.unique(strata) if stratum_names is None and strata is not None else stratum_names
    if np.ndim(cv) == 1:
        plan = _given_folds(np.asarray(cv), n, groups)
    elif isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        plan = _drawn_folds(n, int(cv), strata, names, groups, random_state, what)
    elif hasattr(cv, "split") and not isinstance(cv, str):
        y = np.zeros(n, dtype=np.int64) if strata is None else strata
        plan = _folds_of_splitter(cv, n, y, groups)
    else:
        raise InputError(f"cv must be a number of folds, a scikit-learn splitter or one fold id per row; got {cv!r}.")
    _check_folds(plan, strata, names, groups, what)
    return plan


def _drawn_folds(n, n_folds, strata, names, groups, random_state, what) -> FoldPlan:
    if n_folds < 2:
        raise InputError(f"cv must be at least 2, so that models never judge rows they saw; got {n_folds}.")
    unit = "rows" if groups is None else "clusters"
    n_units = n if groups is None else len(np.unique(groups))
    if n_units < n_folds:
        raise InputError(f"The data have {n_units} {unit}, fewer than cv={n_folds} folds; set cv to at most {n_units}.")
    if strata is not None:
        _refuse_small_strata(strata, names, groups, n_folds, unit, what)
    if strata is None and groups is None:
        splitter = KFold(n_folds, shuffle=True, random_state=random_state)
    else:
        kind = StratifiedKFold if groups is None else StratifiedGroupKFold
        splitter = kind(n_folds, shuffle=True, random_state=random_state)
    return _folds_of_splitter(splitter, n, np.zeros(n, dtype=np.int64) if strata is None else strata, groups)


def _refuse_small_strata(strata, names, groups, n_folds, unit, what) -> None:
    pairs = strata if groups is None else np.unique(np.column_stack([strata, groups]), axis=0)[:, 0]
    counts = np.bincount(pairs, minlength=len(names))
    k = int(counts.argmin())
    if counts[k] < n_folds:
        fewer = f"set cv={counts[k]}, " if counts[k] >= 2 else ""
        raise InputError(
            f"{what} {names[k]!s} has {counts[k]} {unit}, fewer than cv={n_folds} folds; {fewer}merge it "
            "with another or leave its rows out."
        )


def _folds_of_splitter(splitter, n, y, groups) -> FoldPlan:
    fold = np.full(n, -1, dtype=np.int64)
    n_folds = 0
    with warnings.catch_warnings():
        # Splitters that know no clusters say so; whether clusters stayed together is checked afterwards.
        warnings.filterwarnings("ignore", message="The groups parameter is ignored", category=UserWarning)
        parts = [test for _, test in splitter.split(np.zeros((n, 1)), y, groups)]
    for f, test in enumerate(parts):
        if (fold[test] >= 0).any():
            raise InputError("cv holds some rows out more than once; use a splitter whose test parts do not overlap.")
        fold[test] = f
        n_folds = f + 1
    if (fold < 0).any():
        raise InputError(f"cv never holds out {(fold < 0).sum()} of {n} rows; use a splitter that covers every row.")
    return FoldPlan(fold, n_folds)


def _given_folds(fold: np.ndarray, n: int, groups) -> FoldPlan:
    if len(fold) != n:
        raise InputError(f"cv gives {len(fold)} fold ids for {n} rows; give one per row.")
    ids, codes = np.unique(fold, return_inverse=True)
    if len(ids) < 2:
        raise InputError("cv gives all rows the same fold id; use at least two folds.")
    return FoldPlan(codes.astype(np.int64), len(ids))


def _check_folds(plan: FoldPlan, strata, names, groups, what) -> None:
    """What a splitter or an array from the user, or an unlucky draw of clusters, may have broken."""
    if groups is not None:
        first = np.zeros(groups.max() + 1, dtype=np.int64)
        first[groups] = plan.fold
        if (first[groups] != plan.fold).any():
            raise InputError("cv puts rows of one cluster in different folds; use a splitter that respects groups.")
    if strata is not None:
        counts = np.zeros((plan.n_folds, len(names)), dtype=np.int64)
        np.add.at(counts, (plan.fold, strata), 1)
        alone = np.flatnonzero((counts == counts.sum(axis=0)).any(axis=0))
        if len(alone):
            raise InputError(
                f"All rows of {what.lower()} {names[alone[0]]!s} fall into one fold, so no model could learn it; use "
                "fewer folds or another random_state, or leave its rows out."
            )


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


def fit_learner(learner, X, y, *, sample_weight=None, groups=None):
    """A fitted clone of ``learner``; per-row arrays reach it if its ``fit`` takes them."""
    given = {"sample_weight": sample_weight, "groups": groups}
    arguments = {}
    for name, values in given.items():
        keyword = None if values is None else fit_argument(learner, name)
        if keyword is not None:
            arguments[keyword] = values
    return clone(learner).fit(X, y, **arguments)


class FittedModel(Protocol):
    """A nuisance model of one fold."""

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Predictions for the rows of ``X``: (n,) means or (n, K) probabilities."""


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

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Probabilities, shape (n, n_classes); rows sum to one."""
        out = np.zeros((len(X), self.n_classes))
        out[:, self.model.classes_] = self.model.predict_proba(X)
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
            f"{type(learner).__name__} is a classifier, but the outcome has {len(values)} distinct values; "
            "pass a regressor."
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


def _cross_fit(fit, X, y, folds: FoldPlan, train_rows, sample_weight, groups) -> CrossFit:
    models: list[FittedModel] = []
    predictions = None
    for train, test in folds.splits():
        use = train if train_rows is None else train[train_rows[train]]
        model = fit(
            X[use],
            y[use],
            sample_weight=None if sample_weight is None else sample_weight[use],
            groups=None if groups is None else groups[use],
        )
        predicted = model.predict(X[test])
        if predictions is None:
            predictions = np.empty((len(X), *predicted.shape[1:]))
        predictions[test] = predicted
        models.append(model)
    return CrossFit(predictions, tuple(models), folds)


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
    return _cross_fit(lambda *a, **k: fit_mean(learner, *a, **k), X, y, folds, train_rows, sample_weight, groups)


def cross_fit_probabilities(
    learner, X, codes, n_classes: int, folds: FoldPlan, *, sample_weight=None, groups=None
) -> CrossFit:
    """Out-of-fold class probabilities, ``predictions`` (n, n_classes); arguments as in :func:`cross_fit_mean`."""
    return _cross_fit(
        lambda X, y, **k: fit_probabilities(learner, X, y, n_classes, **k), X, codes, folds, None, sample_weight, groups
    )


def predict_new(models: tuple[FittedModel, ...], X: np.ndarray, held_out_of: np.ndarray | None = None) -> np.ndarray:
    """Predictions for new rows: the average of the fold models.

    Parameters
    ----------
    models : tuple of FittedModel
        One per fold.
    X : ndarray of shape (n, p)
    held_out_of : ndarray of shape (n,), int, optional
        Fold whose model is the only one that has not seen the row's cluster; -1 for rows of new clusters.

    Returns
    -------
    ndarray of shape (n,) or (n, K)
    """
    each = np.stack([model.predict(X) for model in models])
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
