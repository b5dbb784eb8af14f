"""The default nuisance models: a few learners, each fitted once per fold, mixed by their out-of-fold predictions.

Short-stacking (Ahrens, Hansen, Schaffer and Wiemann 2024, "Model averaging and double machine learning"): the folds
that keep rows from their own models also choose each learner's tuning (rounds of boosting, penalties) and the weights
of the mixture, so that no inner cross-validation is needed.

- Outcomes have five learners: a penalised linear model and boosted trees within each arm, and both over all arms, with
  the arm among their columns. Common structure is learnt from all rows, the rest from the arm's own. The fifth, a
  ridge on hinges and products within each arm, finds curved confounding in a few hundred rows, where trees do not yet
  (``benchmarks/curved_confounding.py``).
- Propensities have three: the arms' shares, a penalised multinomial logit and multinomial boosting. In a trial whose
  chances depend on nothing the shares get most of the weight.
- Boosted propensities then take ``UNDERSMOOTHING`` times the rounds of least error. The least error of propensities
  themselves is not the least error of what is divided by them: a smooth estimate leaves a bias of first order, a rough
  one adds variance, which intervals count (``benchmarks/nuisances.py`` has the coverage of both).
- Outcomes are targeted: in every arm the residuals, weighted by one over the propensity, are regressed on the
  predictions for all arms. Mixtures shrink, and what they shrink by is correlated with the propensity.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ParamSpec, TypeVar

import numpy as np
from scipy.optimize import lsq_linear, nnls
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from threadpoolctl import ThreadpoolController

from policytree.exceptions import InputError
from policytree.model_selection.crossfit import CrossFit, FoldFits
from policytree.model_selection.folds import FoldPlan
from policytree.weighting.boosting import Boosted, boost
from policytree.weighting.learners import RIDGE_PENALTIES, imputer
from policytree.weighting.study_data import StudyData

P = ParamSpec("P")
R = TypeVar("R")
ROUNDS = (1, 3, 6, 10, 15, 22, 30, 45, 65, 100)  # of boosted outcomes, to choose from
PROPENSITY_ROUNDS, PROPENSITY_RATE = (1, 2, 3, 5, 7, 10, 15, 21, 30, 45, 63, 90, 126), 0.2
UNDERSMOOTHING = 4.0  # rounds of boosted propensities, by those of least error
#: Stages of boosted propensities that are fitted at first, then where more may be used: in a trial the error is least
#: after one round. In none of 288 draws did the first ones choose other rounds than more stages do
#: (``benchmarks/propensity_rounds.py``).
RUNGS = (6, 9, len(PROPENSITY_ROUNDS))
LOGIT_PENALTIES = (0.03, 1.0)  # C of scikit-learn: one over the penalty
LOGIT_TOLERANCE = 1e-3  # of the gradient: probabilities are off by less than a thousandth
TARGETING_PENALTY = 3.0  # rows, one standard deviation off, that speak for leaving the predictions as they are
N_HINGES = 5  # of a covariate
MOST_PRODUCTS = 400  # of two covariates; beyond, curves have none
MOST_CURVES = 500_000  # numbers in the table of hinges and products; with more rows trees find what they find
MOST_INTERACTIONS = 50_000_000  # numbers in the table of arm x covariate terms; beyond, that learner is left out


class CovariateScaler(TransformerMixin, BaseEstimator):
    """Centre columns and divide them by their standard deviation, two-valued ones by half their range.

    A rare category stays small on that scale, so that a penalty shrinks its coefficient: divided by its own standard
    deviation, an indicator of three rows would be as large as a column on which all rows differ.
    """

    def fit(self, X, y=None):
        """Learn centre and scale of the float64 matrix ``X`` without missing values."""
        self.mean_ = X.mean(axis=0)
        low, high = X.min(axis=0), X.max(axis=0)
        two_valued = ((low == X) | (high == X)).all(axis=0)
        scale = np.where(two_valued, (high - low) / 2.0, X.std(axis=0))
        self.scale_ = np.where(scale > 0.0, scale, 1.0)
        return self

    def transform(self, X):
        """Columns in these units."""
        return (X - self.mean_) / self.scale_


class MissingFiller(TransformerMixin, BaseEstimator):
    """The house's ``imputer``, to the last bit, without its work where nothing is missing.

    Medians of masked arrays and several checks of the same table cost more than a ridge regression does.
    """

    def fit(self, X, y=None):
        """Learn medians of the float64 matrix ``X``, and which columns have missing values."""
        missing = np.isnan(X).any()
        self.imputer_ = imputer().fit(X) if missing else None
        self.medians_ = None if missing else np.median(X, axis=0)
        return self

    def transform(self, X):
        """A copy with medians in place of missing values, then an indicator for every column that had some in fit."""
        if self.imputer_ is not None:
            return self.imputer_.transform(X)
        # A copy laid out as the imputer's: the order of numbers in memory decides the order of sums, so the last bit.
        filled = np.hstack([X, np.empty((len(X), 0), order="F")])
        missing = np.isnan(filled)
        if missing.any():
            assert self.medians_ is not None, "fit has learnt medians where it made no imputer"
            np.copyto(filled, self.medians_, where=missing)
        return filled


def prepared() -> Pipeline:
    """Make the unfitted pipeline before linear learners: missing values imputed, columns scaled."""
    return make_pipeline(MissingFiller(), CovariateScaler())


# --- outcomes: learners of one table, with stages to choose from ---


@dataclass(frozen=True, slots=True)
class _Constant:
    """Constant prediction where all outcomes are the same."""

    value: float
    n_stages: int

    def stages(self, Z: np.ndarray) -> np.ndarray:
        return np.full((self.n_stages, len(Z)), self.value)

    def at(self, Z: np.ndarray, stage: int) -> np.ndarray:
        return np.full(len(Z), self.value)


@dataclass(frozen=True, slots=True)
class _Ridges:
    """Ridge regressions of one table, a stage for every penalty to choose from."""

    prepare: Pipeline | Interactions | Curves
    intercepts: np.ndarray
    coefficients: np.ndarray

    def stages(self, Z: np.ndarray) -> np.ndarray:
        return (self.prepare.transform(Z) @ self.coefficients + self.intercepts).T

    def at(self, Z: np.ndarray, stage: int) -> np.ndarray:
        return self.at_prepared(self.prepare.transform(Z), stage)

    def at_prepared(self, prepared: np.ndarray, stage: int) -> np.ndarray:
        return prepared @ self.coefficients[:, stage] + self.intercepts[stage]


@dataclass(frozen=True, slots=True)
class _Logits:
    """Logistic regressions of one table, a stage for every penalty to choose from."""

    prepare: Pipeline | Interactions | Curves
    models: tuple[LogisticRegression, ...]

    def stages(self, Z: np.ndarray) -> np.ndarray:
        prepared = self.prepare.transform(Z)
        return np.stack([model.predict_proba(prepared)[:, 1] for model in self.models])

    def at(self, Z: np.ndarray, stage: int) -> np.ndarray:
        return self.at_prepared(self.prepare.transform(Z), stage)

    def at_prepared(self, prepared: np.ndarray, stage: int) -> np.ndarray:
        return self.models[stage].predict_proba(prepared)[:, 1]


@dataclass(frozen=True, slots=True)
class _BoostedStages:
    """Boosted trees of one table, a stage for every number of rounds to choose from."""

    model: Boosted

    def stages(self, Z: np.ndarray) -> np.ndarray:
        return self.model.stages(Z, ROUNDS)

    def at(self, Z: np.ndarray, stage: int) -> np.ndarray:
        return self.model.stages(Z, ROUNDS[stage : stage + 1])[0]

    def with_columns(self, Z: np.ndarray, fixed: np.ndarray, stages: np.ndarray) -> np.ndarray:
        return self.model.with_columns(Z, fixed, [ROUNDS[stage] for stage in stages])


def linear_stages(
    prepare: Pipeline | Interactions | Curves,
    Z: np.ndarray,
    y: np.ndarray,
    w: np.ndarray | None,
    binary: bool,
    penalties=LOGIT_PENALTIES,
):
    """A penalised linear model of what ``prepare`` makes of a table; of a binary outcome logistic, with these C."""
    if np.ptp(y) == 0.0:
        return _Constant(float(y[0]), len(penalties if binary else RIDGE_PENALTIES))
    prepared = prepare.fit_transform(Z)
    if binary:
        return _Logits(prepare, logits(prepared, y, w, penalties))
    return _Ridges(prepare, *ridge_path(prepared, y, w, RIDGE_PENALTIES))


def logits(
    X: np.ndarray, y: np.ndarray, w: np.ndarray | None, penalties: tuple[float, ...] = LOGIT_PENALTIES
) -> tuple[LogisticRegression, ...]:
    """Logistic regressions of all penalties; ``y`` (n,) has two classes or more."""
    learners = (LogisticRegression(C=C, tol=LOGIT_TOLERANCE, max_iter=1_000) for C in penalties)
    return tuple(learner.fit(X, y, w) for learner in learners)


def ridge_path(X: np.ndarray, y: np.ndarray, w: np.ndarray | None, penalties: np.ndarray):
    """Ridge regressions of all penalties from one decomposition.

    Parameters
    ----------
    X : ndarray of shape (n, p)
    y : ndarray of shape (n,)
    w : ndarray of shape (n,), or None
        Weights of rows.
    penalties : ndarray of shape (S,)
        Per unit of weight.

    Returns
    -------
    intercepts : ndarray of shape (S,)
    coefficients : ndarray of shape (p, S)
        Minimise ``sum w (y - intercept - X coefficients)^2 + penalty sum(w) |coefficients|^2``.
    """
    w = np.ones(len(y)) if w is None else w
    centre, mean = np.average(X, axis=0, weights=w), np.average(y, weights=w)
    root = np.sqrt(w)
    A, b = (X - centre) * root[:, None], (y - mean) * root
    # The smaller of the two products has all that is needed: A'A, or AA' where there are more columns than rows.
    if len(A) > A.shape[1]:
        values, vectors = np.linalg.eigh(A.T @ A)
        right, seen = vectors, vectors.T @ (A.T @ b)
    else:
        values, vectors = np.linalg.eigh(A @ A.T)
        right, seen = A.T @ vectors, vectors.T @ b
    coefficients = right @ (seen[:, None] / (np.maximum(values, 0.0)[:, None] + penalties * w.sum()))
    return mean - centre @ coefficients, coefficients


def boosted_stages(Z: np.ndarray, y: np.ndarray, w: np.ndarray | None, binary: bool):
    """Boosted trees of a table."""
    if np.ptp(y) == 0.0:
        return _Constant(float(y[0]), len(ROUNDS))
    return _BoostedStages(boost(Z, y, w, "binary" if binary else "regression", ROUNDS[-1]))


# --- outcomes: learners of all arms ---


class Interactions(TransformerMixin, BaseEstimator):
    """Covariates, arms as columns, and their products, from a table whose last column is the arm.

    Parameters
    ----------
    n_arms : int
    """

    def __init__(self, n_arms):
        self.n_arms = n_arms

    def fit(self, X, y=None):
        """Learn how covariates are prepared, and the arms' shares."""
        self.prepare_ = prepared().fit(X[:, :-1])
        self.shares_ = indicators(X[:, -1], self.n_arms).mean(axis=0)
        return self

    def transform(self, X):
        """(n, q + K + q K) numbers; arms are centred, so that a covariate's own coefficient is its average one."""
        Z, arms = self.prepare_.transform(X[:, :-1]), 2.0 * (indicators(X[:, -1], self.n_arms) - self.shares_)
        return np.hstack([Z, arms, *(Z * arm[:, None] for arm in arms.T)])

    def of_arms(self, Z: np.ndarray, arms: Iterable[int]) -> Iterator[np.ndarray]:
        """Yield :meth:`transform` of all rows under one arm after the other, in an array that is used again."""
        Z = self.prepare_.transform(Z)
        (n, q), K = Z.shape, self.n_arms
        table, last = np.empty((n, q + K + q * K)), np.full(K, np.nan)
        table[:, :q] = Z
        products = [table[:, start : start + q] for start in range(q + K, q + K + q * K, q)] if q else []
        for arm in arms:
            own = 2.0 * (indicators(np.array([float(arm)]), K)[0] - self.shares_)
            table[:, q : q + K] = own
            for k, product in enumerate(products):
                if own[k] != last[k]:
                    np.multiply(Z, own[k], out=product)
            last = own
            yield table


class Curves(TransformerMixin, BaseEstimator):
    """Covariates, their hinges at a few quantiles, and the products of any two: bends and surfaces for a ridge.

    Columns of two values have no hinges. Of many covariates there are only hinges, since rows could not tell products
    apart. Beyond the values of ``fit`` all stays constant, since products of far values would be very large. Terms are
    not divided by their spread: a product that differs in three rows would be as large as one that differs in all.
    """

    def fit(self, X, y=None):
        """Learn how covariates are prepared, their range, and their knots."""
        self.prepare_ = prepared().fit(X)
        Z = self.prepare_.transform(X)
        self.low_, self.high_ = Z.min(axis=0), Z.max(axis=0)
        shares = np.arange(1, N_HINGES + 1) / (N_HINGES + 1.0)
        knots = (np.unique(np.quantile(column, shares, method="inverted_cdf")) for column in Z.T)
        self.knots_ = [k[(low < k) & (k < high)] for k, low, high in zip(knots, self.low_, self.high_, strict=True)]
        return self

    def transform(self, X):
        """(n, terms) numbers."""
        Z = np.clip(self.prepare_.transform(X), self.low_, self.high_)
        hinges = [np.maximum(column[:, None] - knots, 0.0) for column, knots in zip(Z.T, self.knots_, strict=True)]
        q = Z.shape[1]
        left, right = np.triu_indices(q if _n_pairs(q) <= MOST_PRODUCTS else 0, 1)
        return np.hstack([Z, *hinges, Z[:, left] * Z[:, right]])


def _n_pairs(q: int) -> int:
    return q * (q - 1) // 2


def indicators(arm: np.ndarray, n_arms: int) -> np.ndarray:
    """A column of zeros and ones for every arm, (n, K)."""
    return (arm[:, None] == np.arange(n_arms)).astype(np.float64)


@dataclass(frozen=True, slots=True)
class ByArm:
    """A model of its own for every arm."""

    models: tuple[Any, ...]

    @property
    def model(self) -> Any:
        """One of them, for messages."""
        return self.models[0]

    def predict(self, ZA: np.ndarray) -> np.ndarray:
        """Every stage's prediction for the arm that each row got, (n, S); rates of J bins: (n, J, S)."""
        out: np.ndarray | None = None
        for k, model in enumerate(self.models):
            own = ZA[:, -1] == k
            if own.any():
                found = np.moveaxis(model.stages(ZA[own, :-1]), 0, -1)
                out = np.empty((len(ZA), *found.shape[1:])) if out is None else out
                out[own] = found
        assert out is not None, "every row has an arm"
        return out

    def of_arm(self, Z: np.ndarray, k: int, stage: int) -> np.ndarray:
        """One stage's prediction under one arm, (n,) or (n, J)."""
        return self.models[k].at(Z, stage)


@dataclass(frozen=True, slots=True)
class OverArms:
    """One model of all arms; ``indicators``: arms are 0/1 columns of it, otherwise the last column is their code."""

    model: Any
    n_arms: int
    indicators: bool

    def predict(self, ZA: np.ndarray) -> np.ndarray:
        """Every stage's prediction for the arm that each row got, (n, S); rates of J bins: (n, J, S)."""
        return np.moveaxis(self.model.stages(self._columns(ZA)), 0, -1)

    def of_arm(self, Z: np.ndarray, k: int, stage: int) -> np.ndarray:
        """One stage's prediction under one arm, (n,) or (n, J)."""
        return self.model.at(self._columns(np.column_stack([Z, np.full(len(Z), float(k))])), stage)

    def of_arms(self, Z: np.ndarray, arms: Sequence[int], stages: np.ndarray) -> Iterator[np.ndarray]:
        """As :meth:`of_arm` of several arms, each with its stage; what they share is prepared once."""
        if not arms or isinstance(self.model, _Constant):
            yield from (self.model.at(Z, int(stages[k])) for k in arms)
        elif self.indicators:
            yield from self.model.with_columns(Z, np.eye(self.n_arms)[arms], stages[arms])
        else:
            for k, table in zip(arms, self.model.prepare.of_arms(Z, arms), strict=True):
                yield self.model.at_prepared(table, int(stages[k]))

    def _columns(self, ZA: np.ndarray) -> np.ndarray:
        return np.hstack([ZA[:, :-1], indicators(ZA[:, -1], self.n_arms)]) if self.indicators else ZA


@functools.cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


class _OneBlasThread:
    """One thread of linear algebra while anybody is inside; who leaves last restores what the first one found."""

    def __init__(self) -> None:
        self.lock, self.inside = threading.Lock(), 0
        self.limited: Any = None

    def __enter__(self) -> None:
        with self.lock:
            if self.inside == 0:
                self.limited = _blas().limit(limits=1)
            self.inside += 1

    def __exit__(self, *raised: object) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                self.limited.restore_original_limits()


ONE_BLAS_THREAD = _OneBlasThread()


def one_blas_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator of what fits a learner of few columns: linear algebra uses one thread.

    Two threads wait for each other more than they gain: 300 rows took .40 s of processor on two, .25 on one.
    """

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        with ONE_BLAS_THREAD:
            return function(*args, **kwargs)

    return called


@one_blas_thread
def _fit_outcomes(kind: str, n_arms: int, binary: bool, ZA, y, sample_weight=None, groups=None):
    """One of the five learners, fitted to a table whose last column is the arm; rows of weight zero say nothing."""
    if sample_weight is not None:
        kept = sample_weight > 0.0
        ZA, y, sample_weight = ZA[kept], y[kept], sample_weight[kept] / sample_weight[kept].mean()
    arm = ZA[:, -1]
    if kind == "linear over arms":
        return OverArms(linear_stages(Interactions(n_arms), ZA, y, sample_weight, binary), n_arms, False)
    if kind == "boosted over arms":
        Z = np.hstack([ZA[:, :-1], indicators(arm, n_arms)])
        return OverArms(boosted_stages(Z, y, sample_weight, binary), n_arms, True)
    models = []
    for k in range(n_arms):
        own = arm == k
        if not own.any():
            raise InputError(
                "Without one fold, all rows of a treatment that a model is to learn from have sample_weight zero; "
                "use fewer folds, or leave out rows of weight zero and treatments with hardly any other."
            )
        w = None if sample_weight is None else sample_weight[own]
        Z = ZA[own, :-1]
        if kind == "boosted":
            models.append(boosted_stages(Z, y[own], w, binary))
        elif kind == "curved":
            models.append(linear_stages(Curves(), Z, y[own], w, False))
        else:
            models.append(linear_stages(prepared(), Z, y[own], w, binary))
    return ByArm(tuple(models))


@dataclass(frozen=True, slots=True)
class StackedOutcomes:
    """The mixture of one fold's outcome models; a fitted model of all arms.

    Attributes
    ----------
    models : tuple of L fitted learners
    stages : ndarray of shape (L, K), int
        The stage of each learner that an arm uses.
    weights : ndarray of shape (L, K)
        At least 0; every arm's sum to one.
    limits : tuple of two floats
        Predictions are kept within these: 0 and 1 for a binary outcome.
    learners : tuple of L str
        Their kinds.
    errors : ndarray of shape (L,)
        Squared errors out of fold, summed over all folds.
    targeting : Targeting or None
    """

    models: tuple[Any, ...]
    stages: np.ndarray
    weights: np.ndarray
    limits: tuple[float, float]
    learners: tuple[str, ...]
    errors: np.ndarray
    targeting: Targeting | None = None

    @property
    def n_arms(self) -> int:
        """Arms whose outcomes are predicted."""
        return self.weights.shape[1]

    @property
    def second_best(self) -> str | None:
        """The best learner of the family that is not the best one's (boosted, or penalised linear): another view.

        None if all are of one family.
        """
        best, *others = (self.learners[at] for at in np.argsort(self.errors, kind="stable"))
        return next((name for name in others if name in OUTCOME_LEARNERS and _boosts(name) != _boosts(best)), None)

    def alone(self, learner: str) -> StackedOutcomes:
        """One of the learners in place of the mixture; targeting, which belongs to the mixture, is left out."""
        chosen = np.array([[float(name == learner)] for name in self.learners])
        return replace(self, weights=np.tile(chosen, self.weights.shape[1]), targeting=None)

    def untargeted(self, Z: np.ndarray) -> np.ndarray:
        """The mixture itself, (n, K)."""
        out = np.zeros((len(Z), self.weights.shape[1]))
        for model, stages, weights in zip(self.models, self.stages, self.weights, strict=True):
            used = np.flatnonzero(weights).tolist()
            if isinstance(model, OverArms):
                found = model.of_arms(Z, used, stages)
            else:
                found = (model.of_arm(Z, k, int(stages[k])) for k in used)
            for k, values in zip(used, found, strict=True):
                out[:, k] += weights[k] * values
        return np.clip(out, *self.limits)

    def predict(self, Z: np.ndarray) -> np.ndarray:
        """Expected outcomes under every arm, (n, K), in the outcome's unit."""
        out = self.untargeted(Z)
        return out if self.targeting is None else np.clip(self.targeting.adjusted(out), *self.limits)


@dataclass(frozen=True, slots=True)
class Targeting:
    """How the residuals of an arm depend on the predictions for all arms.

    Attributes
    ----------
    centre : ndarray of shape (K, K)
        Of the predictions among the rows of an arm: a row for every arm.
    scale : float
        The outcome's standard deviation.
    coefficients : ndarray of shape (K, K + 1)
        A row for every arm: intercept, then a coefficient for every arm's prediction.
    """

    centre: np.ndarray
    scale: float
    coefficients: np.ndarray

    def adjusted(self, predictions: np.ndarray) -> np.ndarray:
        """Predictions with the expected residual added, (n, K)."""
        out = predictions.copy()
        for k, (centre, row) in enumerate(zip(self.centre, self.coefficients, strict=True)):
            out[:, k] += row[0] + (predictions - centre) / self.scale @ row[1:]
        return out


def _targeting(predictions, propensity, observed: StudyData, rows: np.ndarray) -> Targeting:
    """Ridge regression of each arm's residuals among ``rows``, weighted by one over the propensity."""
    K = predictions.shape[1]
    rows = rows[observed.weight[rows] > 0]
    # In the outcome's own unit: by their own spread, predictions that are nearly constant among these rows would get
    # slopes that other rows carry far away.
    scale = observed.y[rows].std() or 1.0
    centre, coefficients = np.zeros((K, K)), np.zeros((K, K + 1))
    for k in range(K):
        own = rows[observed.arm[rows] == k]
        w = observed.weight[own] / propensity[own, k]
        w = w / w.mean()
        centre[k] = np.average(predictions[own], axis=0, weights=w)
        A = np.column_stack([np.ones(len(own)), (predictions[own] - centre[k]) / scale])
        penalty = np.diag([0.0] + [TARGETING_PENALTY] * K)
        residual = observed.y[own] - predictions[own, k]
        coefficients[k] = np.linalg.solve(A.T @ (A * w[:, None]) + penalty, A.T @ (w * residual))
    return Targeting(centre, scale, coefficients)


OUTCOME_LEARNERS = {
    "linear": "penalised linear models",
    "boosted": "boosted trees",
    "linear over arms": "a penalised linear model of all arms",
    "boosted over arms": "boosted trees of all arms",
    "curved": "penalised linear models with bends and products",
}


def _boosts(learner: str) -> bool:
    return learner.startswith("boosted")


EVENTS = "events"  # the models of the event as one more learner of times


@dataclass(frozen=True, slots=True)
class OutcomeStack:
    """The default outcome models (``model_regression="auto"``) before they are fitted.

    Attributes
    ----------
    binary : bool
        Whether all outcomes are 0 or 1: they are then classified, and predictions stay within.
    learners : tuple of str
        Some of ``OUTCOME_LEARNERS``.
    """

    binary: bool
    learners: tuple[str, ...] = tuple(OUTCOME_LEARNERS)

    def fits(self, Z: np.ndarray, observed: StudyData, plan: FoldPlan) -> list[FoldFits]:
        """List the fits: every learner in every fold."""
        K = observed.n_arms
        ZA, weight = np.column_stack([Z, observed.arm.astype(np.float64)]), observed.sample_weight
        return [
            FoldFits(partial(_fit_outcomes, kind, K, self.binary), ZA, observed.y, plan, observed.seen, weight)
            for kind in self._affordable(Z, K)
        ]

    def _affordable(self, Z: np.ndarray, n_arms: int) -> tuple[str, ...]:
        """The learners, without those whose table would be too large, if there are others."""
        n, q = Z.shape
        products = _n_pairs(q) if _n_pairs(q) <= MOST_PRODUCTS else 0
        large = {
            "linear over arms": n * (q + 1) * (n_arms + 1) > MOST_INTERACTIONS,
            "curved": n * (q * (N_HINGES + 1) + products) > MOST_CURVES,
        }
        return tuple(name for name in self.learners if len(self.learners) == 1 or not large.get(name, False))

    def mixed(self, fits: list[CrossFit], Z: np.ndarray, observed: StudyData, propensity: np.ndarray | None):
        """The mixture that fits best out of fold, targeted if propensities are known.

        Parameters
        ----------
        fits : list of CrossFit
            Of the learners, with (n, S) out-of-fold predictions for the arm that each row got; then, where outcomes are
            times, of the models of the event.
        Z : ndarray of shape (n, q)
        observed : StudyData
        propensity : ndarray of shape (n, K), or None
            Bounded away from zero.

        Returns
        -------
        predictions : ndarray of shape (n, K)
            Out of fold.
        models : tuple of StackedOutcomes, one per fold
        """
        plan, n_arms = fits[0].folds, observed.n_arms
        stages, weights = np.zeros((2, len(fits), n_arms))
        summed = np.zeros(len(fits))
        for k in range(n_arms):
            own = (observed.arm == k) & (observed.weight > 0)
            y, w = observed.y[own], observed.weight[own]
            errors = [w @ (fit.predictions[own] - y[:, None]) ** 2 for fit in fits]
            stages[:, k] = [e.argmin() for e in errors]
            summed += [e.min() for e in errors]
            best = np.column_stack([fit.predictions[own, int(s)] for fit, s in zip(fits, stages[:, k], strict=True)])
            weights[:, k] = convex_weights(best, y, w)
        limits = (0.0, 1.0) if self.binary else (-np.inf, np.inf)
        learners = self._affordable(Z, n_arms)
        learners += (EVENTS,) * (len(fits) - len(learners))
        models = [
            StackedOutcomes(
                tuple(fit.models[f] for fit in fits), stages.astype(np.int64), weights, limits, learners, summed
            )
            for f in range(plan.n_folds)
        ]
        predictions = np.empty((len(Z), n_arms))
        for f, (_, test) in enumerate(plan.splits()):
            predictions[test] = models[f].untargeted(Z[test])
        if propensity is None:
            return predictions, tuple(models)
        targeted = np.empty_like(predictions)
        for f, (train, test) in enumerate(plan.splits()):
            targeting = _targeting(predictions, propensity, observed, train)
            models[f] = replace(models[f], targeting=targeting)
            targeted[test] = np.clip(targeting.adjusted(predictions[test]), *limits)
        return targeted, tuple(models)


def convex_weights(predictions: np.ndarray, y: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Weights of columns, at least 0 and summing to one, of least squared error.

    Parameters
    ----------
    predictions : ndarray of shape (n, L)
    y : ndarray of shape (n,)
    w : ndarray of shape (n,)
        Weights of rows.

    Returns
    -------
    ndarray of shape (L,)
        Equal weights where all columns are the same.
    """
    centre = np.average(y, weights=w)
    scale = np.sqrt(np.average((y - centre) ** 2, weights=w)) or 1.0
    root = np.sqrt(w / w.mean())
    A, b = (predictions - centre) / scale * root[:, None], (y - centre) / scale * root
    return on_simplex(A, b)


def on_simplex(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The point ``w`` of least ``|A w - b|`` among those that are at least 0 and sum to one."""
    # The sum is a row of its own, heavy enough to hold; what rounding leaves is divided out.
    heavy = 1e3 * np.sqrt(len(b))
    A, b = np.vstack([A, np.full((1, A.shape[1]), heavy)]), np.append(b, heavy)
    try:
        found = nnls(A, b)[0]
    except RuntimeError:  # before scipy 1.15 it may go round in circles where columns are nearly the same
        found = lsq_linear(A, b, (0, np.inf), method="bvls").x
    return found / found.sum()


# --- propensities ---


@dataclass(frozen=True, slots=True)
class _MultinomialLogits:
    """Multinomial logits of several penalties."""

    prepare: Pipeline
    models: tuple[LogisticRegression, ...]
    n_arms: int

    @property
    def model(self) -> Any:
        return self.models[0]

    def predict(self, Z: np.ndarray) -> np.ndarray:
        """(n, K, S) probabilities."""
        prepared = self.prepare.transform(Z)
        return np.stack([self._of(model, prepared) for model in self.models], axis=2)

    def at(self, Z: np.ndarray, stage: int) -> np.ndarray:
        return self._of(self.models[stage], self.prepare.transform(Z))

    def _of(self, model, prepared: np.ndarray) -> np.ndarray:
        out = np.zeros((len(prepared), self.n_arms))
        out[:, model.classes_.astype(np.int64)] = model.predict_proba(prepared)
        return out


@dataclass(frozen=True, slots=True)
class _BoostedArms:
    """Boosted probabilities of the arms after several numbers of rounds: the first ``n_stages`` of those there are."""

    model: Boosted
    n_stages: int

    def predict(self, Z: np.ndarray) -> np.ndarray:
        """(n, K, S) probabilities."""
        return np.moveaxis(self._arms(self.model.stages(Z, PROPENSITY_ROUNDS[: self.n_stages])), 0, 2)

    def at(self, Z: np.ndarray, stage: int) -> np.ndarray:
        return self._arms(self.model.stages(Z, PROPENSITY_ROUNDS[stage : stage + 1]))[0]

    def _arms(self, stages: np.ndarray) -> np.ndarray:
        return np.stack([1.0 - stages, stages], axis=2) if stages.ndim == 2 else stages


@dataclass(frozen=True, slots=True)
class _Shares:
    """The arms' shares, whatever the covariates."""

    shares: np.ndarray

    @property
    def model(self) -> Any:
        return self

    def predict(self, Z: np.ndarray) -> np.ndarray:
        """(n, K, 1) probabilities."""
        return np.tile(self.shares[:, None], (len(Z), 1, 1))

    def at(self, Z: np.ndarray, stage: int) -> np.ndarray:
        return np.tile(self.shares, (len(Z), 1))


@one_blas_thread
def _fit_arms(kind: str, n_arms: int, n_stages: int, Z, arm, sample_weight=None, groups=None):
    if sample_weight is not None:
        kept = sample_weight > 0.0
        Z, arm, sample_weight = Z[kept], arm[kept], sample_weight[kept] / sample_weight[kept].mean()
    if kind == "shares":
        w = np.ones(len(arm)) if sample_weight is None else sample_weight
        return _Shares(np.bincount(arm, weights=w, minlength=n_arms) / w.sum())
    if kind == "boosted":
        objective = "binary" if n_arms == 2 else "multiclass"
        rounds = PROPENSITY_ROUNDS[n_stages - 1]
        return _BoostedArms(boost(Z, arm, sample_weight, objective, rounds, PROPENSITY_RATE), n_stages)
    prepare = prepared()
    return _MultinomialLogits(prepare, logits(prepare.fit_transform(Z), arm, sample_weight), n_arms)


PROPENSITY_LEARNERS = {
    "shares": "the arms' shares, whatever the covariates",
    "logit": "a penalised logit",
    "boosted": "boosted trees",
}


LEARNERS_OF = {"treatment": PROPENSITY_LEARNERS, "outcomes": OUTCOME_LEARNERS}


@dataclass(frozen=True, slots=True)
class StackedPropensity:
    """The mixture of one fold's propensity models.

    Attributes
    ----------
    models : tuple of L fitted learners
    stages : tuple of L ints
    weights : ndarray of shape (L,)
        At least 0; they sum to one.
    learners : tuple of L str
        Their kinds.
    errors : ndarray of shape (L,)
        Brier scores out of fold, over all folds.
    """

    models: tuple[Any, ...]
    stages: tuple[int, ...]
    weights: np.ndarray
    learners: tuple[str, ...]
    errors: np.ndarray

    @property
    def model(self) -> StackedPropensity:
        """The mixture itself, which is what was fitted."""
        return self

    @property
    def second_best(self) -> str | None:
        """The learner of second least error; None if there is one only."""
        return None if len(self.learners) < 2 else self.learners[int(np.argsort(self.errors, kind="stable")[1])]

    def alone(self, learner: str) -> StackedPropensity:
        """One of the learners in place of the mixture."""
        chosen = np.array([name == learner for name in self.learners], dtype=np.float64)
        return replace(self, weights=chosen)

    def predict(self, Z: np.ndarray) -> np.ndarray:
        """Probabilities of the arms, (n, K)."""
        parts = zip(self.models, self.stages, self.weights, strict=True)
        return sum(w * model.at(Z, stage) for model, stage, w in parts if w > 0.0)


def _errors(fit: CrossFit, observed: StudyData) -> np.ndarray:
    """Summed Brier scores of every stage, (S,)."""
    got = indicators(observed.arm, observed.n_arms)
    return observed.weight @ ((fit.predictions - got[:, :, None]) ** 2).sum(axis=1)


@dataclass(frozen=True, slots=True)
class PropensityStack:
    """The default propensity models (``model_propensity="auto"``) before they are fitted, or one of them.

    Attributes
    ----------
    learners : tuple of str
        Some of ``PROPENSITY_LEARNERS``.
    """

    learners: tuple[str, ...] = tuple(PROPENSITY_LEARNERS)

    def fits(self, Z: np.ndarray, observed: StudyData, plan: FoldPlan) -> list[FoldFits]:
        """List the fits: every learner in every fold."""
        return [self._fits_of(kind, RUNGS[0], Z, observed, plan) for kind in self.learners]

    def fits_again(self, fits: list[CrossFit], Z: np.ndarray, observed: StudyData) -> dict[int, FoldFits]:
        """Return fits to repeat, by their position: boosted trees of which more rounds than there are may be used.

        Parameters
        ----------
        fits : list of CrossFit
            Of :meth:`fits`, or of what was repeated.
        Z : ndarray of shape (n, q)
        observed : StudyData
        """
        if "boosted" not in self.learners:
            return {}
        k = self.learners.index("boosted")
        errors = _errors(fits[k], observed)
        wanted = UNDERSMOOTHING * PROPENSITY_ROUNDS[int(errors.argmin())]
        more = next((n_stages for n_stages in RUNGS if n_stages > len(errors)), None)
        if more is None or wanted <= PROPENSITY_ROUNDS[len(errors) - 1]:
            return {}
        return {k: self._fits_of("boosted", more, Z, observed, fits[k].folds)}

    def _fits_of(self, kind: str, n_stages: int, Z: np.ndarray, observed: StudyData, plan: FoldPlan) -> FoldFits:
        fit = partial(_fit_arms, kind, observed.n_arms, n_stages)
        return FoldFits(fit, Z, observed.arm, plan, None, observed.sample_weight)

    def mixed(self, fits: list[CrossFit], observed: StudyData) -> CrossFit:
        """The mixture of least Brier score out of fold; its boosted part then gets more rounds (module docstring)."""
        w, n_arms, got = observed.weight, observed.n_arms, indicators(observed.arm, observed.n_arms)
        scores = [_errors(fit, observed) for fit in fits]
        stages = [int(score.argmin()) for score in scores]
        errors = np.array([score.min() for score in scores]) / w.sum()
        best = np.column_stack([fit.predictions[:, :, s].ravel() for fit, s in zip(fits, stages, strict=True)])
        weights = convex_weights(best, got.ravel(), np.repeat(w, n_arms))
        if "boosted" in self.learners:
            boosted = self.learners.index("boosted")
            rounds = np.array(PROPENSITY_ROUNDS[: len(scores[boosted])])
            stages[boosted] = int(np.abs(np.log(rounds / (UNDERSMOOTHING * rounds[stages[boosted]]))).argmin())
        predictions = sum(
            weight * fit.predictions[:, :, stage] for weight, fit, stage in zip(weights, fits, stages, strict=True)
        )
        plan = fits[0].folds
        models = tuple(
            StackedPropensity(tuple(fit.models[f] for fit in fits), tuple(stages), weights, self.learners, errors)
            for f in range(plan.n_folds)
        )
        return CrossFit(np.asarray(predictions), models, plan)
