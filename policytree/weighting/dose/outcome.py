"""Expected outcomes as a function of covariates and dose, cross-fitted: smooth regressions and boosted trees, mixed.

As in :mod:`policytree.weighting.stacking`, the folds that keep rows from their own models also choose penalties, rounds
and the weights of the mixture. The table of every learner has the dose as its last column.

- "quadratic": penalised regression on covariates, dose, and the products of any two of them;
- "splines": on covariates, cubic splines of the dose, and covariates times the dose and its square;
- "boosted": boosted trees, which find thresholds and interactions, averaged over doses nearby.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer

from policytree.model_selection.crossfit import CrossFit, FoldFits, fit_mean
from policytree.model_selection.folds import FoldPlan
from policytree.weighting.stacking import MOST_INTERACTIONS, boosted_stages, convex_weights, linear_stages, prepared

LEARNERS = ("quadratic", "splines", "boosted")
PENALTIES = (0.003, 0.03, 0.3)  # C of logistic regressions
N_KNOTS = 5
OFFSETS = np.array([-0.8, -0.4, 0.0, 0.4, 0.8])  # of the doses over which boosted trees are averaged, in widths
OFFSET_WEIGHTS = (1.0 - OFFSETS**2) / (1.0 - OFFSETS**2).sum()
WIDTH = 1.4  # times the dose's standard deviation n^(-1/5): of those


class _DoseTerms(TransformerMixin, BaseEstimator):
    """Base of terms of covariates and dose: both prepared, from a table whose last column is the dose."""

    def fit(self, X, y=None):
        """Learn how covariates are prepared, and the dose's centre and spread."""
        self.prepare_ = prepared().fit(X[:, :-1])
        self.centre_, self.spread_ = X[:, -1].mean(), X[:, -1].std() or 1.0
        return self

    def _parts(self, X) -> tuple[np.ndarray, np.ndarray]:
        return self.prepare_.transform(X[:, :-1]), (X[:, -1] - self.centre_) / self.spread_


class Products(_DoseTerms):
    """Covariates, dose, and the products of any two of them; of many covariates, only those with the dose."""

    def fit(self, X, y=None):
        """Learn the columns."""
        super().fit(X)
        q = self._parts(X[:1])[0].shape[1]
        self.all_pairs_ = len(X) * (q + 1) * (q + 2) / 2 <= MOST_INTERACTIONS / 10 and q < len(X) / 10
        return self

    def transform(self, X):
        """(n, terms) numbers."""
        Z, t = self._parts(X)
        both = np.column_stack([Z, t])
        if not self.all_pairs_:
            return np.hstack([both, both * t[:, None]])
        left, right = np.triu_indices(both.shape[1])
        return np.hstack([both, both[:, left] * both[:, right]])


class Splines(_DoseTerms):
    """Covariates, cubic splines of the dose (linear beyond the outermost knots), covariates times dose and its square.

    Knots are quantiles of the dose.
    """

    def fit(self, X, y=None):
        """Learn the columns."""
        super().fit(X)
        t = self._parts(X)[1]
        knots = np.unique(np.quantile(t, np.linspace(0.02, 0.98, N_KNOTS)))
        if len(knots) < 2:
            knots = np.array([t.min(), t.max() if np.ptp(t) > 0.0 else t.min() + 1.0])
        self.splines_ = SplineTransformer(degree=3, knots=knots[:, None], extrapolation="linear", include_bias=False)
        self.splines_.fit(t[:, None])
        return self

    def transform(self, X):
        """(n, terms) numbers."""
        Z, t = self._parts(X)
        return np.hstack(
            [Z, t[:, None], 2.0 * self.splines_.transform(t[:, None]), Z * t[:, None], Z * t[:, None] ** 2]
        )


@dataclass(frozen=True, slots=True)
class Smoothed:
    """Boosted trees whose predictions are averaged over doses nearby: a step of theirs becomes a slope.

    Kernel weights leave those errors of the model that a bandwidth does not smooth out, and steps are such errors.

    Attributes
    ----------
    model : Any
    width : float
        Doses up to so far away count.
    """

    model: Any
    width: float

    def stages(self, table: np.ndarray) -> np.ndarray:
        """Of every stage, (S, n)."""
        return sum(w * self.model.stages(moved) for w, moved in self._moved(table))

    def at(self, table: np.ndarray, stage: int) -> np.ndarray:
        """Of one stage, (n,)."""
        return sum(w * self.model.at(moved, stage) for w, moved in self._moved(table))

    def _moved(self, table: np.ndarray) -> Iterator[tuple[float, np.ndarray]]:
        for offset, weight in zip(OFFSETS, OFFSET_WEIGHTS, strict=True):
            moved = table.copy()
            moved[:, -1] += offset * self.width
            yield weight, moved


@dataclass(frozen=True, slots=True)
class Staged:
    """A learner of one fold with stages to choose from."""

    model: Any

    def predict(self, table: np.ndarray) -> np.ndarray:
        """Of every stage, (n, S)."""
        return self.model.stages(table).T

    def at(self, table: np.ndarray, stage: int) -> np.ndarray:
        """Of one stage, (n,)."""
        return self.model.at(table, stage)


@dataclass(frozen=True, slots=True)
class Single:
    """The user's own learner of one fold: a single stage."""

    model: Any

    def predict(self, table: np.ndarray) -> np.ndarray:
        """(n, 1)."""
        return self.model.predict(table)[:, None]

    def at(self, table: np.ndarray, stage: int) -> np.ndarray:
        """(n,)."""
        return self.model.predict(table)


@dataclass(frozen=True, slots=True)
class Mixture:
    """The models of one fold, mixed.

    Attributes
    ----------
    models : tuple of L fitted learners
    stages : ndarray of shape (L,), int
    weights : ndarray of shape (L,)
        At least 0; they sum to one.
    limits : tuple of two floats
        Predictions are kept within: 0 and 1 for a binary outcome.
    """

    models: tuple[Any, ...]
    stages: np.ndarray
    weights: np.ndarray
    limits: tuple[float, float]

    def predict(self, table: np.ndarray) -> np.ndarray:
        """(n,)."""
        out = np.zeros(len(table))
        for model, stage, weight in zip(self.models, self.stages, self.weights, strict=True):
            if weight > 0.0:
                out += weight * model.at(table, int(stage))
        return np.clip(out, *self.limits)

    def at_dose(self, Z: np.ndarray, dose: np.ndarray | float) -> np.ndarray:
        """Expected outcomes of rows, had they had this dose, (n,)."""
        return self.predict(np.column_stack([Z, np.broadcast_to(dose, len(Z))]))


def mixed(fits: list[CrossFit], y: np.ndarray, w: np.ndarray, limits=(-np.inf, np.inf)) -> tuple[Mixture, ...]:
    """The mixture of every fold: stages and weights are those of least out-of-fold squared error over all folds."""
    stages = np.array([(w @ (fit.predictions - y[:, None]) ** 2).argmin() for fit in fits])
    chosen = np.column_stack([fit.predictions[:, stage] for fit, stage in zip(fits, stages, strict=True)])
    weights = convex_weights(np.clip(chosen, *limits), y, w)
    return tuple(
        Mixture(tuple(fit.models[f] for fit in fits), stages, weights, limits) for f in range(fits[0].folds.n_folds)
    )


def with_weight(X: np.ndarray, y: np.ndarray, sample_weight: np.ndarray | None):
    """The rows of positive weight, and their weights, one on average; rows of weight zero say nothing."""
    if sample_weight is None:
        return X, y, None
    kept = sample_weight > 0.0
    return X[kept], y[kept], sample_weight[kept] / sample_weight[kept].mean()


def _fit(kind: str, binary: bool, X, y, sample_weight=None, groups=None) -> Staged:
    X, y, w = with_weight(X, y, sample_weight)
    if kind == "boosted":
        width = WIDTH * float(X[:, -1].std()) * len(X) ** (-1 / 5)
        return Staged(Smoothed(boosted_stages(X, y, w, binary), width))
    terms = Products() if kind == "quadratic" else Splines()
    return Staged(linear_stages(make_pipeline(terms), X, y, w, binary, PENALTIES))


def _fit_own(learner: Any, X, y, sample_weight=None, groups=None) -> Single:
    return Single(fit_mean(learner, X, y, sample_weight=sample_weight, groups=groups))


def fits_of(learner: Any, kinds: tuple[str, ...], fit: Any, X, y, plan: FoldPlan, w, groups) -> list[CrossFit]:
    """Every kind of learner, or the user's own, in every fold."""
    tasks = [partial(fit, kind) for kind in kinds] if learner is None else [partial(_fit_own, learner)]
    return [FoldFits(task, X, y, plan, sample_weight=w, groups=groups).run() for task in tasks]


def cross_fit_outcome(
    learner: Any,
    Z: np.ndarray,
    dose: np.ndarray,
    y: np.ndarray,
    plan: FoldPlan,
    sample_weight: np.ndarray | None,
    groups: np.ndarray | None,
) -> tuple[Mixture, ...]:
    """E[Y | covariates, dose], a model for every fold that did not see it.

    Parameters
    ----------
    learner : scikit-learn regressor or classifier, or None
        None for the default mixture.
    Z : ndarray of shape (n, q)
    dose, y : ndarray of shape (n,)
    plan : FoldPlan
    sample_weight, groups : ndarray of shape (n,), or None
    """
    table, binary = np.column_stack([Z, dose]), bool(np.isin(y, (0.0, 1.0)).all())

    def fit(kind: str, X, y, sample_weight=None, groups=None) -> Staged:
        return _fit(kind, binary, X, y, sample_weight, groups)

    fits = fits_of(learner, LEARNERS, fit, table, y, plan, sample_weight, groups)
    w = np.ones(len(y)) if sample_weight is None else sample_weight
    return mixed(fits, y, w, (0.0, 1.0) if binary else (-np.inf, np.inf))
