"""Learners of one outcome or of the treatment that tune themselves: defaults where a single model is wanted.

Rewards use the mixtures of :mod:`policytree.weighting.stacking`. These serve where a learner is fitted once, as in
streamed rewards and in the test of heterogeneity.
"""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from policytree.model_selection.crossfit import fit_learner
from policytree.model_selection.folds import make_folds
from policytree.weighting.boosting import boost

LINEAR_ONLY_BELOW = 50  # rows: below, boosted trees with leaves of 20 cannot split anyway
ONE_SPLIT_FROM = 20_000  # rows: from here one held-out fifth says as much as three folds do
RIDGE_PENALTIES = np.logspace(-4, 2, 13)  # per row, standardised columns; the largest leaves only the mean


def imputed(learner):
    """``learner`` after median imputation with missingness indicators, unless it takes missing values itself."""
    return learner if get_tags(learner).input_tags.allow_nan else make_pipeline(imputer(), learner)


def imputer() -> SimpleImputer:
    """Medians in place of missing values, with an indicator column for every column that had some."""
    return SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)


def one_thread(user_api: str | None = "openmp") -> threadpool_limits:
    """A context in which boosting uses one thread; with None for ``user_api`` linear algebra as well.

    Trees of eight leaves leave little to share, and threads that wait for each other on a busy machine cost far more
    than they gain: 100,000 rows took 19 s on one thread and 187 s on two, with three other processes at work.
    """
    return threadpool_limits(1, user_api=user_api)


def _checked_weight(sample_weight, X):
    if sample_weight is None:
        return None
    return _check_sample_weight(sample_weight, X, ensure_non_negative=True)


def propensity_learner():
    """Multinomial logistic regression on imputed, standardised covariates (L2 penalty, C = 1: slight)."""
    return make_pipeline(imputer(), StandardScaler(), LogisticRegression(C=1.0, max_iter=1_000))


class _LinearAndBoosted(BaseEstimator):
    """A cross-validated blend of a penalised linear model and boosted small trees; see the two subclasses."""

    def __init__(self, max_rounds=150, random_state=None):
        self.max_rounds = max_rounds
        self.random_state = random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _fit_blend(self, X, y, target, sample_weight, groups):
        """Choose rounds and share on held-out rows, then refit on all; ``target`` is y as a number."""
        w = None if sample_weight is None else sample_weight / np.mean(sample_weight)
        self.boosted_share_, self.n_rounds_ = 0.0, 0
        n_units = len(y) if groups is None else len(np.unique(groups))
        if len(y) >= LINEAR_ONLY_BELOW and n_units >= 5:
            self.boosted_share_, self.n_rounds_ = self._choose(X, y, target, w, groups)
        share, rounds = self.boosted_share_, self.n_rounds_
        self.linear_ = self._fit_linear(X, y, w) if share < 1.0 else None
        self.boosted_ = self._fit_boosted(X, y, w, rounds) if share > 0.0 else None
        return self

    def _fit_linear(self, X, y, w):
        return fit_learner(self._linear(len(y)), X, y, sample_weight=w)

    def _fit_boosted(self, X, y, w, rounds):
        return boost(X, y, w, "binary" if self._classifies else "regression", rounds)

    def _choose(self, X, y, target, w, groups) -> tuple[float, int]:
        """The share of boosting (closed-form stacking weight in [0, 1]) and its number of rounds, by held-out error."""
        large = len(y) >= ONE_SPLIT_FROM
        strata = y if self._classifies and groups is None and np.bincount(y).min() >= 5 else None
        folds = make_folds(len(y), 5 if large else 3, strata=strata, groups=groups, random_state=self.random_state)
        linear, staged, rows = [], [], []
        for train, test in folds.splits():
            weight = None if w is None else w[train]
            if (weight is not None and not weight.any()) or (self._classifies and len(np.unique(y[train])) < 2):
                continue
            linear.append(self._mean(self._fit_linear(X[train], y[train], weight), X[test]))
            boosted = self._fit_boosted(X[train], y[train], weight, self.max_rounds)
            staged.append(boosted.stages(X[test], tuple(range(1, self.max_rounds + 1))).T)
            rows.append(test)
            if large:
                break
        if not rows:
            return 0.0, 0
        at = np.concatenate(rows)
        weight = np.ones(len(at)) if w is None else w[at]
        return stacking_share(np.concatenate(linear), np.concatenate(staged), target[at], weight)

    def _predict_blend(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite="allow-nan")
        share, out = self.boosted_share_, 0.0
        with one_thread():
            if self.linear_ is not None:
                out = out + (1.0 - share) * self._mean(self.linear_, X)
            if self.boosted_ is not None:
                out = out + share * self.boosted_.stages(X, (self.n_rounds_,))[0]
        return out


def stacking_share(linear: np.ndarray, staged: np.ndarray, target: np.ndarray, w: np.ndarray) -> tuple[float, int]:
    """The boosting rounds with the least held-out squared error, and the best share of boosting in a blend.

    Parameters
    ----------
    linear : ndarray of shape (n,)
        Held-out predictions of the linear model.
    staged : ndarray of shape (n, rounds)
        Held-out predictions of the boosted model after 1, 2, ... rounds.
    target, w : ndarray of shape (n,)
        Outcome and row weights.

    Returns
    -------
    share : float in [0, 1]
        Minimises ``sum w (target - (1 - share) linear - share boosted)^2``.
    rounds : int
    """
    errors = w @ (staged - target[:, None]) ** 2
    best = int(errors.argmin())
    step = staged[:, best] - linear
    scale = w @ step**2
    share = 0.0 if scale == 0.0 else float(np.clip(w @ (step * (target - linear)) / scale, 0.0, 1.0))
    return share, best + 1


class OutcomeRegressor(RegressorMixin, _LinearAndBoosted):
    """Expected outcome by a stacked blend of ridge regression and boosted trees of at most eight leaves.

    The ridge carries small arms and smooth trends, the trees find interactions when there is
    data for them; the blend's share and the number of rounds minimise the held-out squared error (three folds, one
    held-out fifth from 20,000 rows; clusters stay together). Missing values are imputed by the median, with an
    indicator, for the ridge, and routed by the trees. A constant outcome is predicted as such.

    Parameters
    ----------
    max_rounds : int
        Most boosting rounds.
    random_state : int, RandomState or None

    Attributes
    ----------
    boosted_share_ : float
        Share of the boosted trees in the prediction; the rest is the ridge's.
    n_rounds_ : int
        Boosting rounds used.
    linear_, boosted_ : fitted models, None where their share is zero

    References
    ----------
    van der Laan, Polley & Hubbard (2007), Super learner. Breiman (1996), Stacked regressions.
    """

    _classifies = False

    def _linear(self, n):
        return make_pipeline(imputer(), StandardScaler(), RidgeCV(alphas=RIDGE_PENALTIES * n))

    def _mean(self, model, X):
        return model.predict(X)

    def fit(self, X, y, sample_weight=None, groups=None):
        """Fit; ``groups`` (n,) keeps clusters together in the inner folds.

        Returns
        -------
        OutcomeRegressor
        """
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_all_finite="allow-nan", y_numeric=True)
        sample_weight = _checked_weight(sample_weight, X)
        y = y.astype(np.float64)
        if np.ptp(y) == 0.0 or X.shape[1] == 0:
            self.boosted_share_, self.n_rounds_, self.boosted_ = 0.0, 0, None
            self.linear_ = DummyRegressor().fit(X, y, sample_weight)
            return self
        with one_thread():
            return self._fit_blend(X, y, y, sample_weight, groups)

    def predict(self, X):
        """Expected outcome, shape (n,)."""
        return self._predict_blend(X)


class OutcomeClassifier(ClassifierMixin, _LinearAndBoosted):
    """Probability of a binary outcome by a stacked blend of logistic regression and boosted trees.

    As :class:`OutcomeRegressor`, with a slightly penalised logistic regression (C = 1 on standardised columns) in place
    of the ridge; share and rounds minimise the held-out squared error of the probability (Brier score).
    """

    _classifies = True

    def _linear(self, n):
        return make_pipeline(imputer(), StandardScaler(), LogisticRegression(C=1.0, max_iter=1_000))

    def _mean(self, model, X):
        return model.predict_proba(X)[:, 1]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X, y, sample_weight=None, groups=None):
        """Fit on labels of two classes; ``groups`` (n,) keeps clusters together in the inner folds.

        Returns
        -------
        OutcomeClassifier
        """
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_all_finite="allow-nan")
        check_classification_targets(y)
        sample_weight = _checked_weight(sample_weight, X)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) > 2:
            raise ValueError(f"Only binary classification is supported; y has {len(self.classes_)} classes.")
        if len(self.classes_) == 1 or X.shape[1] == 0 or np.bincount(codes).min() < 2:
            self.boosted_share_, self.n_rounds_, self.boosted_ = 0.0, 0, None
            self.linear_ = DummyClassifier(strategy="prior").fit(X, codes, sample_weight)
            return self
        with one_thread():
            return self._fit_blend(X, codes, codes.astype(np.float64), sample_weight, groups)

    def predict_proba(self, X):
        """Probabilities of the classes in ``classes_``, shape (n, n_classes)."""
        check_is_fitted(self)
        if len(self.classes_) == 1:
            X = validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite="allow-nan")
            return np.ones((len(X), 1))
        second = self._predict_blend(X)
        return np.column_stack([1.0 - second, second])

    def predict(self, X):
        """The more probable class, shape (n,)."""
        check_is_fitted(self)
        return self.classes_[self.predict_proba(X).argmax(axis=1)]
