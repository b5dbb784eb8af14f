"""RewardEstimator: validate, cross-fit the nuisances a scheme needs, and hand out its rewards as a frame."""

from __future__ import annotations

import copy
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Self, TypedDict, Unpack, overload

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from policytree.common.calls import either_order
from policytree.common.docstrings import shares_documentation
from policytree.common.executors import check_executor
from policytree.common.typing import Column, PerTreatment, Seed, Table
from policytree.common.validation import as_series
from policytree.exceptions import InputError
from policytree.model_selection.crossfit import by_default_settings
from policytree.weighting.covariates import Covariates
from policytree.weighting.nuisances import CrossFitted, cross_fit, median_of_repeats, resolve_arms, resolve_outcomes
from policytree.weighting.observed import Observed, observe
from policytree.weighting.overlap import DoublyRobustOverlap
from policytree.weighting.propensities import clip, is_constant
from policytree.weighting.reward_arguments import (
    check_parameters,
    divided_by,
    given_nuisances,
    refuse_infinite_rewards,
    resolve_scheme,
)
from policytree.weighting.scheme import Nuisances, Scheme
from policytree.weighting.treated import DoublyRobustTreated

LEAST_DIVISOR = 1e-3  # of targeting, where min_propensity is smaller: no row then outweighs a thousand others


class _NewRowArguments(TypedDict, total=False):
    """What ``predict_rewards`` takes beside Y, T and X, for type checkers."""

    W: Table | None
    propensity: PerTreatment | None
    regression: PerTreatment | None
    groups: Column | None


class _FitArguments(_NewRowArguments, total=False):
    """What ``fit`` takes beside Y, T and X."""

    sample_weight: Column | None
    strata: Column | Table | None


@dataclass(eq=False, repr=False)
class RewardEstimator(BaseEstimator):
    """Estimate every person's reward under every treatment, an (n, K) frame, from a trial or an observational study.

    The nuisances (expected outcomes per treatment, probabilities of treatment) are cross-fitted: every row is judged by
    models that saw neither the row nor its cluster. Both learn from X and W together; pass as X what a policy may look
    at and as W what is needed for adjustment only.

    Parameters
    ----------
    model_regression : "auto", scikit-learn regressor or classifier, or mapping of treatment to one
        Outcome model, fitted per treatment. "auto" mixes ridge (for 0/1 outcomes: logistic) regression and boosted
        small trees, each within every treatment and over all of them, by their out-of-fold errors
        (:class:`policytree.weighting.stacking.OutcomeStack`); predictions of 0/1 outcomes stay within. A classifier's
        prediction is the expected outcome (the probability, for 0/1). Learners see a float64 matrix (numbers as they
        are, one indicator column per category); those that refuse missing values get medians with indicators.
    model_propensity : "auto" or scikit-learn classifier
        P(T | X, W). "auto" mixes the treatments' shares, a multinomial logit that shrinks rare categories and
        multinomial boosting by their out-of-fold errors (:class:`policytree.weighting.stacking.PropensityStack`). Not
        used when ``propensity`` is given to ``fit``. Classifiers whose probabilities are off (forests, boosting, naive
        Bayes) are calibrated by scikit-learn inside every fold:
        ``CalibratedClassifierCV(RandomForestClassifier(), method="isotonic")``; look at
        :class:`policytree.CalibrationDisplay` before and after. Its own inner folds (``cv=5``) need five rows of every
        treatment in each training part.
    method : str or Scheme
        "doubly_robust" (see :class:`policytree.weighting.DoublyRobust`), another name in
        ``policytree.weighting.SCHEMES``, or an instance of a scheme.
    min_propensity : float in [0, 1/K)
        Estimated propensities below this are raised to it (counted in ``n_clipped_``, with an ``OverlapWarning``
        if many). Given propensities are never changed.
    cv : int, splitter, list of (train, test) rows, or array of shape (n,)
        Folds of the cross-fitting, balanced over treatments.
    n_repeats : int
        Cross-fit this often with new folds, and take every nuisance's median over the repetitions: results then depend
        less on the draw of folds. ``repeats_`` keeps each for :func:`policytree.model_selection.crossfit.median_rule`.
    random_state : int, RandomState or None
        Draws the folds and drives the default learners; the user's own learners keep their own.
    estimand : {"all", "treated", "overlap"}
        Whom the rewards are about: all rows; those who got the treatment ``treated``
        (:class:`policytree.weighting.DoublyRobustTreated`); or those who might well have got any
        (:class:`policytree.weighting.DoublyRobustOverlap`). :func:`policytree.average_effect` turns the rewards and
        ``population_`` into an effect with its standard error.
    treated : label, optional
        For ``estimand="treated"``: the treatment whose recipients are meant. Not needed where treatments are 0 and 1.
    executor : optional
        Where models are fitted: anything with ``submit`` as in ``concurrent.futures``, or ``client.get_executor()``
        of a dask client. Processes and dask's workers are sent the data once. Copies that are pickled have none.

    Attributes
    ----------
    treatments_ : ndarray of shape (K,)
        Labels, sorted.
    rewards_ : DataFrame of shape (n, K)
        Rewards in the outcome's unit, one column per treatment, rows as in Y.
    regression_, propensity_ : DataFrame of shape (n, K), or None
        Out-of-fold nuisances; propensities after clipping. None where the scheme does not need them.
    folds_ : ndarray of shape (n,), int64, or None
        Fold in which each row was held out (in the first repetition); None if nothing was estimated.
    models_regression_ : tuple (folds, of all repetitions) of tuples (treatments) of fitted models, or None
    models_propensity_ : tuple (folds, of all repetitions) of fitted models, or None
    repeats_ : tuple of CrossFitted
        The nuisances of every repetition; empty if nothing was estimated.
    n_clipped_ : int
        Rows with at least one propensity raised.
    population_ : ndarray of shape (n,)
        How many people of the target population every row stands for; (weighted) mean one, and one in every row for
        ``estimand="all"``.

    Notes
    -----
    Rows belong together by their position, as in scikit-learn: pandas indexes of Y, T, X and the rest are not aligned,
    and that of Y becomes the rewards'.

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

    model_regression: Any = "auto"
    model_propensity: Any = "auto"
    method: Any = "doubly_robust"
    _: KW_ONLY
    min_propensity: float = 0.01
    cv: Any = 5
    n_repeats: int = 1
    random_state: Seed = None
    estimand: str = "all"
    treated: Any = None
    executor: Any = None

    __metadata_request__fit: ClassVar = {"T": True}  # pipelines pass it on without being asked: nothing fits without
    _called = "RewardEstimator"  # by messages; an estimator that has one inside it gives it its own name

    def __sklearn_clone__(self) -> Self:
        """As clone copies it, with the same executor: workers are not copied."""
        bare = copy.copy(self)  # which has none, as what is pickled
        out = super(RewardEstimator, bare).__sklearn_clone__()
        out.executor = self.executor
        return out

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: all but the executor, whose workers stay with this process."""
        return {**super().__getstate__(), "executor": None}

    @overload
    def fit(self, Y: Column, T: Column, *, X: Table | None = None, **rest: Unpack[_FitArguments]) -> Self: ...
    @overload
    def fit(self, X: Table, Y: Column, *, T: Column, **rest: Unpack[_FitArguments]) -> Self: ...

    @either_order
    @by_default_settings
    def fit(
        self,
        Y: Column,
        T: Column,
        *,
        X: Table | None = None,
        W: Table | None = None,
        propensity: PerTreatment | None = None,
        regression: PerTreatment | None = None,
        sample_weight: Column | None = None,
        groups: Column | None = None,
        strata: Column | Table | None = None,
    ) -> Self:
        """Estimate the nuisances out of fold, and the rewards of these rows.

        ``fit(Y, T, X=X)``, or ``fit(X, Y, T=T)`` as in scikit-learn: two arguments by position are X and Y if ``T`` has
        a name. So are those of ``fit_predict`` and ``predict_rewards``.

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
        regression : array or frame of shape (n, K), optional
            Expected outcomes from elsewhere, made without the row's own outcome; no outcome model is fitted then.
        sample_weight : column of n numbers >= 0, optional
            Reaches every learner whose ``fit`` takes it.
        groups : column of n cluster labels, optional
            Rows of one cluster are never split between fitting and judging.
        strata : column of n labels, or table of several such columns, optional
            Blocks (sites, say) within which treatment was assigned: drawn folds hold each treatment of each block in
            equal numbers, as far as sizes and clusters allow. Put what predicts the outcome in X or W as well.

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
        check_executor(self.executor)
        observed = observe(Y, T, sample_weight=sample_weight, groups=groups, strata=strata)
        scheme = resolve_scheme(self, observed.treatments)
        check_parameters(self, observed.n_arms)
        self.covariates_ = Covariates.fit(X, W)
        Z = self.covariates_.matrix(X, W, observed.n)
        given = given_nuisances(self, propensity, regression, observed, scheme)
        self._remember(observed, groups, propensity, regression)
        self.repeats_ = self._cross_fit(Z, observed, scheme, given)
        self.folds_ = self.repeats_[0].folds.fold if self.repeats_ else None
        self.models_regression_ = self._all_models("regression")
        self.models_propensity_ = self._all_models("propensity")
        nuisances, self.n_clipped_ = self._complete(scheme, given, [r.predictions() for r in self.repeats_])
        self.regression_ = None if nuisances.regression is None else observed.frame(nuisances.regression)
        self.propensity_ = None if nuisances.propensity is None else observed.frame(nuisances.propensity)
        self.rewards_ = _finite(scheme.rewards(observed, nuisances), observed)
        self.population_ = np.ones(observed.n)
        if isinstance(scheme, (DoublyRobustOverlap, DoublyRobustTreated)):
            self.population_ = scheme.population(observed, nuisances)
        return self

    @overload
    def fit_predict(
        self, Y: Column, T: Column, *, X: Table | None = None, **rest: Unpack[_FitArguments]
    ) -> pd.DataFrame: ...
    @overload
    def fit_predict(self, X: Table, Y: Column, *, T: Column, **rest: Unpack[_FitArguments]) -> pd.DataFrame: ...

    @either_order
    def fit_predict(
        self,
        Y: Column,
        T: Column,
        *,
        X: Table | None = None,
        W: Table | None = None,
        propensity: PerTreatment | None = None,
        regression: PerTreatment | None = None,
        sample_weight: Column | None = None,
        groups: Column | None = None,
        strata: Column | Table | None = None,
    ) -> pd.DataFrame:
        """``fit``, then ``rewards_``: an (n, K) DataFrame; arguments as in :meth:`fit`."""
        rows = {"sample_weight": sample_weight, "groups": groups, "strata": strata}
        return self.fit(Y, T, X=X, W=W, propensity=propensity, regression=regression, **rows).rewards_

    @overload
    def predict_rewards(
        self, Y: Column, T: Column, *, X: Table | None = None, **rest: Unpack[_NewRowArguments]
    ) -> pd.DataFrame: ...
    @overload
    def predict_rewards(self, X: Table, Y: Column, *, T: Column, **rest: Unpack[_NewRowArguments]) -> pd.DataFrame: ...

    @shares_documentation(fit)
    @either_order
    @by_default_settings
    def predict_rewards(
        self,
        Y: Column,
        T: Column,
        *,
        X: Table | None = None,
        W: Table | None = None,
        propensity: PerTreatment | None = None,
        regression: PerTreatment | None = None,
        groups: Column | None = None,
    ) -> pd.DataFrame:
        """Rewards of *new* rows, with the fitted nuisances averaged over the fold models.

        For the rows of the fit use ``rewards_``: here they would be judged by models that saw them.

        Parameters
        ----------
        propensity : optional
            Known assignment probabilities, where ``fit`` was given some. A propensity that was one distribution for all
            rows at fit need not be repeated.
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
        scheme = resolve_scheme(self, self.treatments_)
        given = self._given_again(propensity, regression, observed, scheme)
        cluster = self._row_of_cluster(groups, observed.n)
        nuisances, _ = self._complete(scheme, given, [r.predict_new(Z, cluster, given) for r in self.repeats_])
        return _finite(scheme.rewards(observed, nuisances), observed)

    @shares_documentation(predict_rewards)
    @by_default_settings
    def predict_outcomes(
        self, *, X: Table | None = None, W: Table | None = None, groups: Column | None = None
    ) -> pd.DataFrame:
        """Expected outcome of new rows under every treatment, averaged over the fold models.

        Parameters
        ----------
        X, W : table of shape (n, p), optional
            Covariates, the columns of ``fit``.

        Returns
        -------
        DataFrame of shape (n, K), in the outcome's unit

        Raises
        ------
        InputError
            If the scheme fitted no outcome model, or a table differs from the one at fit.
        """
        check_is_fitted(self, "rewards_")
        if self.models_regression_ is None:
            raise InputError("No outcome model was fitted (given, or not needed by the method), so none can predict.")
        Z = self.covariates_.matrix(X, W)
        if not len(Z):
            raise InputError("X has no rows; pass at least one.")
        cluster = self._row_of_cluster(groups, len(Z))
        values = median_of_repeats([r.predict_new(Z, cluster) for r in self.repeats_]).regression
        table = X if X is not None else W
        index = table.index if isinstance(table, pd.DataFrame) else None
        return pd.DataFrame(values, index=index, columns=self.treatments_)

    @property
    def second_best_learner_(self) -> str | None:
        """The learner of the default mixture whose propensities have the second least error; None without a mixture."""
        models = self.models_propensity_
        return getattr(models[0], "second_best", None) if models else None

    def by_propensity_learner(self, learner: str) -> Self:
        """A copy that judges new rows by the propensities of one learner of the default mixture.

        Parameters
        ----------
        learner : {"shares", "logit", "boosted"}

        Raises
        ------
        InputError
            If propensities were not estimated by a mixture with that learner.
        """
        check_is_fitted(self, "rewards_")
        models = self.models_propensity_ or ()
        if not models or not all(learner in getattr(model, "learners", ()) for model in models):
            raise InputError(f"No {learner!r} was fitted as a model of treatment: model_propensity is not 'auto'.")
        other = copy.copy(self)

        def alone(repeat: CrossFitted) -> CrossFitted:
            assert repeat.propensity is not None, "there are models of treatment"
            stacks: tuple[Any, ...] = repeat.propensity.models
            chosen = tuple(stack.alone(learner) for stack in stacks)
            return replace(repeat, propensity=replace(repeat.propensity, models=chosen))

        other.repeats_ = tuple(map(alone, self.repeats_))
        other.models_propensity_ = other._all_models("propensity")
        return other

    def _given_again(self, propensity, regression, observed: Observed, scheme: Scheme) -> Nuisances:
        """As :func:`given_nuisances` for new rows: what was given row by row at fit must be given for them, too."""
        propensity = self._constant_propensity if propensity is None else propensity
        for name, value in (("propensity", propensity), ("regression", regression)):
            if value is None and name in self._given_at_fit:
                raise InputError(f"{name} was given row by row at fit; pass it for the new rows as well.")
        return given_nuisances(self, propensity, regression, observed, scheme)

    def _remember(self, observed: Observed, groups, propensity, regression) -> None:
        self.treatments_ = observed.treatments
        self._group_labels = None if groups is None else as_series(groups, "groups").to_numpy()
        given = {"propensity": propensity, "regression": regression}
        self._given_at_fit = {name for name, value in given.items() if value is not None}
        constant = propensity is not None and is_constant(propensity, observed.n, observed.n_arms)
        self._constant_propensity = propensity if constant else None

    def _cross_fit(self, Z, observed: Observed, scheme: Scheme, given: Nuisances) -> tuple:
        """Every repetition's nuisances; empty if the scheme needs nothing beyond what is given."""
        random_state = check_random_state(self.random_state)
        seed, has_covariates = random_state.randint(2**31 - 1), Z.shape[1] > 0
        regression = propensity = None
        if scheme.needs_regression and given.regression is None:
            regression = resolve_outcomes(self.model_regression, observed.y, has_covariates, seed)
        if scheme.needs_propensity and given.propensity is None:
            propensity = resolve_arms(self.model_propensity, has_covariates)
        if regression is None and propensity is None:
            return ()
        plans = [
            observed.folds(self.cv, random_state.randint(2**31 - 1), whose=f" of {self._called}")
            for _ in range(self.n_repeats)
        ]

        def divisor(estimated: np.ndarray | None) -> np.ndarray | None:
            if not scheme.needs_propensity:
                return None
            chances = given.propensity if estimated is None else estimated
            return None if chances is None else np.maximum(chances, max(self.min_propensity, LEAST_DIVISOR))

        return cross_fit(Z, observed, plans, regression, propensity, self.executor, divisor=divisor)

    def _all_models(self, nuisance: str) -> tuple | None:
        parts = [getattr(repeat, nuisance) for repeat in self.repeats_]
        if not parts or parts[0] is None:
            return None
        return tuple(m for part in parts for m in (part.by_arm() if nuisance == "regression" else part.models))

    def _complete(self, scheme: Scheme, given: Nuisances, repeats: list[Nuisances]) -> tuple[Nuisances, int]:
        """Given and estimated nuisances together, estimated propensities clipped; and the number of clipped rows."""
        estimated = median_of_repeats(repeats) if repeats else Nuisances()
        m, p, n_clipped, raw = given.regression, given.propensity, 0, None
        if m is None:
            m = estimated.regression
        if p is None and estimated.propensity is not None:
            raw, divided = estimated.propensity, divided_by(scheme, self.treatments_)
            p, n_clipped = clip(raw, self.min_propensity, self.treatments_, divided)
        return Nuisances(m, p, raw), n_clipped

    def _row_of_cluster(self, groups, n: int) -> np.ndarray | None:
        """A row of the fit from each row's cluster (its fold tells which models missed it); -1 for new clusters."""
        if groups is None:
            return None
        series = as_series(groups, "groups")
        if len(series) != n:
            raise InputError(f"groups has {len(series)} rows, but {n} are needed; give every row a cluster.")
        if self._group_labels is None or self.folds_ is None:
            raise InputError(
                "groups was not given at fit, so no model is known to have missed a cluster; leave it out."
            )
        first = pd.Series(self._group_labels).drop_duplicates()
        row_of = pd.Series(first.index, index=first.to_numpy())
        return series.map(row_of).fillna(-1).to_numpy().astype(np.int64)


def _finite(rewards: np.ndarray, observed: Observed) -> pd.DataFrame:
    """Rewards as a frame, if they are numbers."""
    refuse_infinite_rewards(rewards, observed.treatments)
    return observed.frame(rewards)
