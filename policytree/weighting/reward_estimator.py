"""RewardEstimator: validate, cross-fit the nuisances a scheme needs, and hand out its rewards as a frame."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from policytree.crossfit import make_folds, predict_new
from policytree.exceptions import InputError
from policytree.weighting.covariates import Covariates
from policytree.weighting.inputs import Observed, as_series, observe
from policytree.weighting.nuisances import (
    cross_fit_propensity,
    cross_fit_regression,
    resolve_propensity,
    resolve_regression,
)
from policytree.weighting.propensities import clip, is_constant, propensity_matrix, warn_if_small
from policytree.weighting.scheme import Nuisances, Scheme


class RewardEstimator(BaseEstimator):
    """What each treatment would bring each person: an (n, K) frame of rewards from a trial or an observational study.

    The nuisances (expected outcomes per treatment, probabilities of treatment) are cross-fitted: every row is judged by
    models that saw neither the row nor its cluster. Both learn from X and W together; pass as X what a policy may look
    at and as W what is needed for adjustment only.

    Parameters
    ----------
    model_regression : "auto" or scikit-learn regressor or classifier
        Outcome model, fitted per treatment. "auto" blends ridge (for 0/1 outcomes: logistic) regression with boosted
        small trees by held-out error (:class:`policytree.weighting.learners.OutcomeRegressor`). A classifier's
        prediction is the expected outcome (the probability, for 0/1). Learners see a float64 matrix (numbers as they
        are, one indicator column per category); those that refuse missing values get medians with indicators.
    model_propensity : "auto" or scikit-learn classifier
        P(T | X, W). "auto" is multinomial logistic regression on standardised covariates. Not used when ``propensity``
        is given to ``fit``. For other classifiers consider ``CalibratedClassifierCV``.
    method : str or Scheme
        "doubly_robust" (see :class:`policytree.weighting.DoublyRobust`), another name in
        ``policytree.weighting.SCHEMES``, or an instance of a scheme.
    min_propensity : float in [0, 1/K)
        Estimated propensities below this are raised to it (counted in ``n_clipped_``, with an ``OverlapWarning``
        if many). Given propensities are never changed.
    cv : int, splitter, or array of shape (n,)
        Folds of the cross-fitting, balanced over treatments.
    random_state : int, RandomState or None
        Draws the folds and drives the default learners; the user's own learners keep their own.

    Attributes
    ----------
    treatments_ : ndarray of shape (K,)
        Labels, sorted.
    rewards_ : DataFrame of shape (n, K)
        Rewards in the outcome's unit, one column per treatment, rows as in Y.
    regression_, propensity_ : DataFrame of shape (n, K), or None
        Out-of-fold nuisances; propensities after clipping. None where the scheme does not need them.
    folds_ : ndarray of shape (n,), int64, or None
        Fold in which each row was held out; None if nothing was estimated.
    models_regression_ : tuple (folds) of tuples (treatments) of fitted models, or None
    models_propensity_ : tuple (folds) of fitted models, or None
    n_clipped_ : int
        Rows with at least one propensity raised.

    Notes
    -----
    Without X and W the nuisances are the treatments' average outcomes and shares: right for a trial in which everybody
    had the same chances, and for nothing else.

    Examples
    --------
    >>> import numpy as np
    >>> from policytree import RewardEstimator
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 3))
    >>> T = rng.choice(["drug", "placebo"], size=500)
    >>> Y = X[:, 0] * (T == "drug") + rng.normal(size=500)
    >>> rewards = RewardEstimator(random_state=0).fit_predict(Y, T, X=X, propensity=0.5)
    >>> list(rewards.columns), rewards.shape
    (['drug', 'placebo'], (500, 2))
    """

    def __init__(
        self,
        model_regression="auto",
        model_propensity="auto",
        method="doubly_robust",
        *,
        min_propensity=0.01,
        cv=5,
        random_state=None,
    ):
        self.model_regression = model_regression
        self.model_propensity = model_propensity
        self.method = method
        self.min_propensity = min_propensity
        self.cv = cv
        self.random_state = random_state

    def fit(self, Y, T, *, X=None, W=None, propensity=None, sample_weight=None, groups=None):
        """Estimate the nuisances out of fold, and the rewards of these rows.

        Parameters
        ----------
        Y : column of n numbers
            Outcome.
        T : column of n labels
            Treatment received; numbers, text, booleans or categories.
        X, W : table of shape (n, p), optional
            Covariates: pandas or polars frame, or array of numbers; missing values are allowed.
        propensity : optional
            Known assignment probabilities: a number (two treatments: the probability of the second label in sorted
            order), a mapping from label to probability, or an array or frame of shape (K,), (n,) or (n, K); see
            :func:`policytree.weighting.propensities.propensity_matrix`.
        sample_weight : column of n numbers >= 0, optional
            Reaches every learner whose ``fit`` takes it.
        groups : column of n cluster labels, optional
            Rows of one cluster are never split between fitting and judging.

        Returns
        -------
        RewardEstimator

        Raises
        ------
        InputError
            If an argument cannot be used; the message says which and why.

        Warns
        -----
        OverlapWarning
            If many propensities fall below ``min_propensity``.
        """
        observed = observe(Y, T, sample_weight=sample_weight, groups=groups)
        scheme = self._scheme()
        self._check_floor(observed.n_arms)
        self.covariates_ = Covariates.fit(X, W)
        Z = self.covariates_.matrix(X, W, observed.n)
        given = self._given_propensity(propensity, observed, scheme)
        self._remember(observed, groups, propensity)
        estimates_propensity = scheme.needs_propensity and given is None
        self._plan_folds(observed, scheme.needs_regression or estimates_propensity)
        self._fit_regression(scheme, Z, observed)
        self._fit_propensity(scheme, Z, observed, given)
        self.rewards_ = observed.frame(scheme.rewards(observed, self._nuisances()))
        return self

    def fit_predict(self, Y, T, *, X=None, W=None, propensity=None, sample_weight=None, groups=None) -> pd.DataFrame:
        """``fit``, then ``rewards_``: an (n, K) DataFrame; arguments as in :meth:`fit`."""
        return self.fit(Y, T, X=X, W=W, propensity=propensity, sample_weight=sample_weight, groups=groups).rewards_

    def predict_rewards(self, Y, T, *, X=None, W=None, propensity=None, groups=None) -> pd.DataFrame:
        """Rewards of *new* rows, with the fitted nuisances averaged over the fold models.

        For the rows of the fit use ``rewards_``: here they would be judged by models that saw them.

        Parameters
        ----------
        Y, T, X, W, propensity
            As in :meth:`fit`. A propensity that was one distribution for all rows at fit need not be repeated.
        groups : column of n cluster labels, optional
            Rows of clusters that were in the fit are judged only by the models that did not see them.

        Returns
        -------
        DataFrame of shape (n, K)

        Raises
        ------
        InputError
            If a treatment is unknown or an argument given at fit is missing.
        """
        check_is_fitted(self, "rewards_")
        observed = observe(Y, T, treatments=self.treatments_)
        Z = self.covariates_.matrix(X, W, observed.n)
        held_out_of = self._held_out_of(groups, observed.n)
        regression = None if self._regression is None else self._regression.predict_new(Z, held_out_of)
        p = self._new_propensity(propensity, Z, observed, held_out_of)
        return observed.frame(self._scheme().rewards(observed, Nuisances(regression, p)))

    def predict_outcomes(self, *, X=None, W=None, groups=None) -> pd.DataFrame:
        """Expected outcome of new rows under every treatment, averaged over the fold models.

        Parameters
        ----------
        X, W : tables as in :meth:`fit`
        groups : column of n cluster labels, optional
            As in :meth:`predict_rewards`.

        Returns
        -------
        DataFrame of shape (n, K), in the outcome's unit

        Raises
        ------
        InputError
            If the scheme fitted no outcome model, or a table differs from the one at fit.
        """
        check_is_fitted(self, "rewards_")
        if self._regression is None:
            raise InputError(f"method={self.method!r} fits no outcome model; use 'doubly_robust' to predict outcomes.")
        Z = self.covariates_.matrix(X, W)
        values = self._regression.predict_new(Z, self._held_out_of(groups, len(Z)))
        table = X if X is not None else W
        index = table.index if isinstance(table, pd.DataFrame) else None
        return pd.DataFrame(values, index=index, columns=self.treatments_)

    def _scheme(self) -> Scheme:
        from policytree.weighting import SCHEMES  # the registry lives in the package, which imports this file

        if not isinstance(self.method, str):
            return self.method
        if self.method not in SCHEMES:
            raise InputError(f"method must be one of {', '.join(sorted(SCHEMES))}; got {self.method!r}.")
        return SCHEMES[self.method]

    def _check_floor(self, n_arms: int) -> None:
        if not 0.0 <= self.min_propensity < 1.0 / n_arms:
            raise InputError(
                f"min_propensity must lie in [0, 1/K) = [0, {1 / n_arms:.3g}) with {n_arms} treatments; got "
                f"{self.min_propensity!r}."
            )

    def _given_propensity(self, propensity, observed: Observed, scheme: Scheme):
        if propensity is None:
            return None
        if not scheme.needs_propensity:
            raise InputError(f"method={self.method!r} does not use propensities; leave propensity out.")
        given = propensity_matrix(propensity, observed.n, observed.treatments)
        warn_if_small(given, self.min_propensity, observed.treatments)
        return given

    def _remember(self, observed: Observed, groups, propensity) -> None:
        self.treatments_ = observed.treatments
        self._group_labels = None if groups is None else as_series(groups, "groups").to_numpy()
        self._propensity_given = propensity is not None
        constant = self._propensity_given and is_constant(propensity, observed.n, observed.n_arms)
        self._constant_propensity = propensity if constant else None

    def _plan_folds(self, observed: Observed, needed: bool) -> None:
        self._random_state = check_random_state(self.random_state).randint(2**31 - 1)
        self.folds_, self._folds = None, None
        if needed:
            self._folds = make_folds(
                observed.n,
                self.cv,
                strata=observed.arm,
                stratum_names=observed.treatments,
                groups=observed.groups,
                random_state=self._random_state,
            )
            self.folds_ = self._folds.fold

    def _fit_regression(self, scheme: Scheme, Z, observed: Observed) -> None:
        self._regression, self.regression_, self.models_regression_ = None, None, None
        if scheme.needs_regression:
            learner = resolve_regression(self.model_regression, observed.y, Z.shape[1] > 0, self._random_state)
            self._regression = cross_fit_regression(learner, Z, observed, self._folds)
            self.regression_ = observed.frame(self._regression.predictions)
            self.models_regression_ = self._regression.models

    def _fit_propensity(self, scheme: Scheme, Z, observed: Observed, given) -> None:
        self.propensity_, self.models_propensity_, self.n_clipped_ = None, None, 0
        if not scheme.needs_propensity:
            return
        values = given
        if given is None:
            learner = resolve_propensity(self.model_propensity, Z.shape[1] > 0)
            fit = cross_fit_propensity(learner, Z, observed, self._folds)
            self.models_propensity_ = fit.models
            values, self.n_clipped_ = clip(fit.predictions, self.min_propensity, observed.treatments)
        self.propensity_ = observed.frame(values)

    def _nuisances(self) -> Nuisances:
        parts = (self.regression_, self.propensity_)
        return Nuisances(*(None if part is None else part.to_numpy() for part in parts))

    def _new_propensity(self, propensity, Z, observed: Observed, held_out_of):
        if not self._scheme().needs_propensity:
            return None
        propensity = self._constant_propensity if propensity is None else propensity
        if propensity is not None:
            return propensity_matrix(propensity, observed.n, observed.treatments)
        if self._propensity_given:
            raise InputError("propensity was given row by row at fit; pass it for the new rows as well.")
        return clip(predict_new(self.models_propensity_, Z, held_out_of), self.min_propensity, observed.treatments)[0]

    def _held_out_of(self, groups, n: int) -> np.ndarray | None:
        """Fold whose models did not see each row's cluster; -1 for new clusters."""
        if groups is None:
            return None
        series = as_series(groups, "groups")
        if len(series) != n:
            raise InputError(f"groups has {len(series)} rows, but {n} are needed; give every row a cluster.")
        if self._group_labels is None or self.folds_ is None:
            raise InputError(
                "groups was not given at fit, so no model is known to have missed a cluster; leave it out."
            )
        fold_of = pd.Series(self.folds_, index=self._group_labels).groupby(level=0).first()
        return series.map(fold_of).fillna(-1).to_numpy().astype(np.int64)
