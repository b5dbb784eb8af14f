"""RewardEstimator: validate, cross-fit the nuisances a scheme needs, and hand out its rewards as a frame."""

from __future__ import annotations

import copy
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Self, Unpack, overload

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from policytree.common.calls import StudyLike, study_or_either_order
from policytree.common.docstrings import shares_documentation
from policytree.common.executors import check_executor
from policytree.common.nested_parameters import NestedParameters
from policytree.common.row_labels import aligns_rows
from policytree.common.typing import BesideArguments, Column, PerTreatment, Seed, Table
from policytree.common.validation import position_of, weights
from policytree.exceptions import InputError, quoted
from policytree.model_selection.crossfit import by_default_settings
from policytree.weighting.averages import average
from policytree.weighting.completion import complete_missing, completed
from policytree.weighting.covariates import Covariates
from policytree.weighting.doubly_robust import DoublyRobust
from policytree.weighting.effects import EffectModels, fit_effects
from policytree.weighting.extreme_rewards import extreme_rewards, warn_of_extreme
from policytree.weighting.instrument import (
    FirstStage,
    InstrumentalVariable,
    first_stage,
    offer_scores,
    over_first,
    refuse_as_covariate,
    warn_of_little_compliance,
)
from policytree.weighting.matching import MatchingRewards
from policytree.weighting.new_rows import (
    NewRows,
    Remembered,
    known_at_fit,
    of_status_quo,
    row_of_cluster,
    scheme_of,
)
from policytree.weighting.nuisances import (
    CrossFitted,
    median_of_repeats,
    resolve_effects,
)
from policytree.weighting.overlap import DoublyRobustOverlap
from policytree.weighting.pictures import NuisancePictures
from policytree.weighting.propensities import warn_if_lowered, warn_if_unobserved
from policytree.weighting.reward_arguments import (
    check_parameters,
    given_nuisances,
    is_instrumental,
    is_matched,
    refuse_infinite_rewards,
    resolve_scheme,
)
from policytree.weighting.reward_cross_fit import LEAST_DIVISOR, all_models, completed_nuisances, cross_fit_nuisances
from policytree.weighting.scheme import Nuisances, Scheme
from policytree.weighting.stacked import averaging_weight, expanded, per_person, study_mask
from policytree.weighting.study_data import StudyData
from policytree.weighting.target_population import DoublyRobustTarget
from policytree.weighting.target_support import covariate_table, target_support
from policytree.weighting.treated import DoublyRobustTreated


class NuisanceArguments(BesideArguments, total=False):
    """The same with expected outcomes from elsewhere."""

    regression: PerTreatment | None


MIXTURES = {"treatment": "propensity", "outcomes": "regression"}  # targets of mixed learners, and nuisances


@dataclass(eq=False, repr=False)
class RewardEstimator(NuisancePictures, NestedParameters):
    """Estimate every person's reward under every treatment, an (n, K) frame, from a trial or an observational study.

    The nuisances (expected outcomes per treatment, probabilities of treatment) are cross-fitted: every row is judged by
    models that saw neither the row nor its cluster. Both learn from X and W together; pass as X what a policy may look
    at and as W what is needed for adjustment only.

    Parameters
    ----------
    model_regression : "auto", scikit-learn regressor or classifier, or mapping of treatment to one
        Outcome model, fitted per treatment. "auto" mixes ridge (for 0/1 outcomes: logistic) regression and boosted
        small trees, each within every treatment and over all of them, and ridge on bends and products of covariates,
        by their out-of-fold errors (:class:`policytree.weighting.stacking.OutcomeStack`), and "linear", "boosted",
        "linear over arms", "boosted over arms" or "curved" is one of these alone; predictions of 0/1 outcomes stay
        within. A classifier's
        prediction is the expected outcome (the probability, for 0/1). An unfitted effect estimator of EconML
        (``CausalForestDML(discrete_treatment=True)``, DR learners, metalearners) is fitted to all treatments at once;
        what its effects leave of outcomes is the outcome under the first one
        (:mod:`policytree.weighting.effect_outcomes`). So is a :class:`policytree.weighting.matching.MatchingRewards`.
        Learners see a float64 matrix (numbers as they are, one indicator column per category); those that refuse
        missing values get medians with indicators.
    model_propensity : "auto" or scikit-learn classifier
        P(T | X, W). "auto" mixes the treatments' shares, a multinomial logit that shrinks rare categories and
        multinomial boosting by their out-of-fold errors (:class:`policytree.weighting.stacking.PropensityStack`). Not
        used when ``propensity`` is given to ``fit``. Classifiers whose probabilities are off (forests, boosting, naive
        Bayes) are calibrated by scikit-learn inside every fold:
        ``CalibratedClassifierCV(RandomForestClassifier(), method="isotonic")``; look at
        :meth:`plot_calibration` before and after. Its own inner folds (``cv=5``) need five rows
        of every treatment in each training part.
    method : str or Scheme
        "dr" is doubly robust (:class:`policytree.weighting.doubly_robust.DoublyRobust`), "ipw" weighs by inverse
        propensities, "regression" takes the outcome models' predictions, "matching" those of people who are alike
        (:class:`policytree.weighting.matching.MatchingRewards`, learnt from the other folds and matched to their
        people; where its arguments matter, pass one as ``model_regression``); "dr_normalized" and "ipw_normalized" make
        every treatment's weights sum to one. Or an instance of a scheme. "instrument" learns the effect of a treatment
        from who was offered it (a study's ``Offered``), where people choose for reasons that bear on the outcome:
        :class:`policytree.weighting.instrument.InstrumentalVariable`. Rewards are then gains over the first of two
        treatments; all that is said of treatments under ``propensity``, ``regression`` and ``min_propensity`` is about
        offers.
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
    estimand : {"all", "treated", "overlap", "compliers"}
        Whom the rewards are about: all rows; those who got the treatment ``treated``
        (:class:`policytree.weighting.treated.DoublyRobustTreated`); those who might well have got any
        (:class:`policytree.weighting.overlap.DoublyRobustOverlap`); with ``method="instrument"``, those who follow the
        instrument (rewards are per person of all, others count as zero). :func:`policytree.policy_value` turns the
        rewards and ``population_`` into an effect with its standard error.
    treated : label, optional
        For ``estimand="treated"``: the treatment whose recipients are meant. Not needed where treatments are 0 and 1.
    executor : optional
        Where models are fitted: anything with ``submit`` as in ``concurrent.futures``, or ``client.get_executor()``
        of a dask client. Processes and dask's workers are sent the data once. Copies that are pickled have none.
    model_event, model_censoring : "auto" or survival model
        Of times to an event: models of the event and of censoring. "auto" mixes the arms' own rates, penalised
        log-linear rates with a smooth time, and boosted rates by their out-of-fold errors
        (:mod:`policytree.weighting.time_to_event.hazards`). Otherwise an object with ``fit(X, time, event)`` and
        ``predict_survival(X, times)``; copies of it are fitted within every treatment
        (:class:`policytree.weighting.time_to_event.survival_models.SurvivalModel`). Without X and W, the curves of
        Kaplan and Meier take their place.
    model_observation : "auto" or scikit-learn classifier
        P(the outcome is seen | X, W, T), where it is a ``MayBeMissing``; "auto" as for ``model_propensity``.
    min_observed : float in [0, 1)
        Estimated probabilities of being observed (not yet censored, not missing) below this are raised to it
        (``n_raised_``, with an ``OverlapWarning`` if many).
    model_uptake : "auto", or scikit-learn regressor or classifier
        With an instrument: P(second treatment | X, W, offer); "auto" as for 0/1 outcomes.
    min_compliance : float in (0, 1)
        With an instrument and ``estimand="all"``: estimated compliance below this is raised to it (``n_weak_``, with a
        ``WeakInstrumentWarning`` if many).
    model_effects : None, "auto" or scikit-learn regressor
        Model of the conditional average effects, for :meth:`predict_effects`: the doubly robust rewards are regressed
        on the covariates. "auto" mixes a lasso, a forest of large leaves and the difference of the outcome models
        (:mod:`policytree.weighting.effects`); a regressor is fitted alone, to every treatment's rewards. None fits
        nothing. Rewards do not depend on it; the plug-in rule of :func:`policytree.cross_val_policy_value` does.
    model_study : "auto" or scikit-learn classifier
        P(the row is of the study | X, W), where ``fit`` is given a target; "auto" as for ``model_propensity``.
    max_target_weight : float > 1
        The weight of a row of the study in the target, on average over the study one, is lowered to this where it is
        larger (``n_lowered_``, with an ``OverlapWarning`` if many).

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
    outcome_ : Series of shape (n,)
        Outcomes under the rows' own treatments: Y itself where all is known; otherwise with the same conditional mean
        as the target, if the model of events (outcomes) or that of censoring (missingness) is right. With a
        target of other people: scores whose mean is what the study's way of assigning treatments would bring there.
    horizon_, target_ : float and str, or None
        Of times to an event.
    n_raised_ : int
        Rows whose probability of being observed was raised; of times to an event, in half of the repetitions at least.
    extreme_rewards_ : ExtremeRewards or None
        Where outcomes may be censored or missing: how many rows have a reward, under the treatment they got, far
        outside of what the target can be; ``str()`` says why, and what to do.
    observation_ : Series of shape (n,), or None
        Probability that each outcome is seen, where some are missing.
    offers_ : ndarray of shape (M,), or None
        Labels of the instrument, sorted; columns of the next three and of ``regression_`` and ``propensity_``.
    offer_rewards_, uptake_rewards_ : DataFrame of shape (n, M), or None
        Doubly robust scores of offers: of outcomes (intention to treat), and of taking the second treatment.
    uptake_ : DataFrame of shape (n, M), or None
        Out-of-fold probability of taking the second treatment under every offer.
    compliance_ : Series of shape (n,), or None
        Effect of the instrument on uptake, given the covariates, before small values were raised.
    exclusion_bias_ : Series of shape (n,), or None
        By how much the second treatment's expected reward can be off, in units of the direct effect of offers on
        outcomes (:func:`policytree.evaluation.exclusion_sensitivity`).
    first_stage_ : FirstStage, or None
    n_weak_ : int
        Rows whose compliance was raised.
    population_ : ndarray of shape (n,)
        How many people of the target population every row stands for; (weighted) mean one, and one in every row for
        ``estimand="all"``. With ``study``: none in rows of the study, the same in all rows of the target.
    participation_ : Series of shape (n,), or None
        Probability that the row is of the study, given its covariates, where ``fit`` was given a target.
    target_ratio_ : Series of shape (n,), or None
        How often a row's covariates occur in the target, over how often in the study; before large ones are lowered.
    n_lowered_ : int
        Rows of the study whose weight in the target was lowered to ``max_target_weight``.

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
    method: Any = "dr"
    _: KW_ONLY
    min_propensity: float = 0.01
    cv: Any = 5
    n_repeats: int = 1
    random_state: Seed = None
    estimand: str = "all"
    treated: Any = None
    executor: Any = None
    model_event: Any = "auto"
    model_censoring: Any = "auto"
    model_observation: Any = "auto"
    min_observed: float = 0.02
    model_uptake: Any = "auto"
    min_compliance: float = 0.05
    model_effects: Any = None
    model_study: Any = "auto"
    max_target_weight: float = 50.0

    __metadata_request__fit: ClassVar = {"T": True}  # pipelines pass it on without being asked: nothing fits without
    _called = "RewardEstimator"  # by messages; an estimator that has one inside it gives it its own name

    def __sklearn_clone__(self) -> Self:
        """As clone copies it, with the same executor: workers are not copied."""
        bare = copy.copy(self)  # which has none, as what is pickled
        out = super(RewardEstimator, bare).__sklearn_clone__()
        out.executor = self.executor
        return out

    def __getstate__(self) -> dict[str, Any]:
        """Pickle all but the executor, whose workers stay with this process."""
        return {**super().__getstate__(), "executor": None}

    @overload
    def fit(self, study: StudyLike, /) -> Self: ...
    @overload
    def fit(self, Y: Column, T: Column, *, X: Table | None = None, **rest: Unpack[NuisanceArguments]) -> Self: ...
    @overload
    def fit(self, X: Table, Y: Column, *, T: Column, **rest: Unpack[NuisanceArguments]) -> Self: ...

    @study_or_either_order
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
    ) -> Self:
        """Estimate the nuisances out of fold, and the rewards of these rows.

        ``fit(study)`` of a :class:`policytree.Study`, which says all that follows; ``fit(Y, T, X=X)``; or ``fit(X, Y,
        T=T)`` as in scikit-learn: two arguments by position are X and Y if ``T`` has a name. So are those of
        ``fit_predict`` and ``predict_rewards``.

        Parameters
        ----------
        Y : column of n numbers
            Outcome.
        T : column of n labels, or DataFrame of n rows
            Several columns are several treatments at once, whose combinations become the arms.
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
            If many propensities fall below ``min_propensity``, or probabilities of being observed below
            ``min_observed``; or if single rewards are far outside of what the target can be (``extreme_rewards_``).
            With a target: if many of its people are outside the study's range, or the study hardly knows any like
            them (:func:`policytree.diagnostics.target_overlap`).

        References
        ----------
        Robins and Rotnitzky (1992), AIDS Epidemiology, 297-331; Rubin and van der Laan (2007), International Journal of
        Biostatistics 3(1) (outcomes in place of censored ones). Cui, Kosorok, Sverdrup, Wager and Zhu (2023), Journal
        of the Royal Statistical Society B 85(2), 179-211 (rewards from them).
        """
        check_executor(self.executor)
        data = self._read(
            "fit", Y, T=T, X=X, W=W, propensity=propensity, regression=regression, sample_weight=sample_weight,
            groups=groups,
        )  # fmt: skip
        X, W, observed = data.X, data.W, data.arrays()
        self._given_rows = observed.arm, observed.y  # as they came: outcomes may be completed below
        self.treatments_ = observed.treatments
        if observed.instrument is not None:
            refuse_as_covariate(observed, X=X, W=W)
        observed = self._by_offer(observed)
        scheme = resolve_scheme(self, observed.treatments, observed.study is not None)
        check_parameters(self, observed.n_arms)
        self.covariates_ = Covariates.fit(X, W)
        Z = self.covariates_.matrix(X, W, observed.n)
        if observed.study is not None and not Z.shape[1]:
            raise InputError("Study and target are told apart by covariates; pass X (or W) where there is a target.")
        if is_matched(self) and not Z.shape[1]:
            raise InputError("method='matching' needs covariates by which people are alike; pass X or W.")
        given = given_nuisances(self, data.propensity, data.regression, observed, scheme)
        memory = Remembered.of(data, observed.n_arms)
        self._forget(observed)
        as_given = observed
        if not Z.shape[1]:
            averages, observed, given, self.n_raised_ = average(self, observed, scheme, given)
            memory = replace(memory, averages=averages)
        self._memory = memory
        self.repeats_ = cross_fit_nuisances(self, Z, observed, scheme, given, memory.constant_propensity)
        self.folds_ = self.repeats_[0].folds.fold if self.repeats_ else None
        self.models_regression_ = all_models(self.repeats_, "regression")
        self.models_propensity_ = all_models(self.repeats_, "propensity")
        predicted = [r.predictions() for r in self.repeats_]
        nuisances, self.n_clipped_ = completed_nuisances(self, scheme, given, predicted, observed)
        self._keep_target(nuisances, observed, X, W)
        self.regression_ = None if nuisances.regression is None else observed.frame(nuisances.regression)
        self.propensity_ = None if nuisances.propensity is None else observed.frame(nuisances.propensity)
        if observed.times is not None:
            of_repeats = [r.completed for r in self.repeats_ if r.completed is not None]
            self.n_raised_ = int((np.mean([each.raised for each in of_repeats], axis=0) >= 0.5).sum())
            outcome = np.median([each.outcome for each in of_repeats], axis=0)
            observed = completed(
                observed, outcome if observed.study is None else expanded(outcome, observed.study, 0.0)
            )
        elif observed.seen is not None:
            self.n_raised_ = self._count_raised(nuisances, observed.seen)
            self.observation_ = pd.Series(nuisances.observation, index=observed.index, name="observation")
            if observed.study is not None:
                self.observation_ = self.observation_.where(observed.study)
            observed = complete_missing(observed, nuisances, self.min_observed)
        warn_if_unobserved(self.n_raised_, observed.n, self.min_observed)
        self._completed = outcome = observed.y
        if isinstance(scheme, InstrumentalVariable):
            effect, outcome = self._learn_compliance(scheme, observed, nuisances)
            rewards = over_first(effect)
        else:
            rewards = scheme.rewards(observed, nuisances)
            if isinstance(scheme, DoublyRobustTarget):
                outcome = scheme.own_outcomes(observed, nuisances)
        self.outcome_ = pd.Series(outcome, index=observed.index, name=data.name)
        self.rewards_ = _finite(rewards, observed, self.treatments_)
        self.population_ = np.ones(observed.n)
        if isinstance(scheme, (DoublyRobustOverlap, DoublyRobustTreated, DoublyRobustTarget)):
            self.population_ = scheme.population(observed, nuisances)
        self.extreme_rewards_ = None
        if as_given.times is not None or as_given.seen is not None:
            of_study = slice(None) if observed.study is None else observed.study
            about_rows = self.estimand == "all" and self.offers_ is None and observed.study is None
            own = self.rewards_.to_numpy() if about_rows else None
            self.extreme_rewards_ = extreme_rewards(own, observed.y[of_study], as_given.of_study())
            warn_of_extreme(self.extreme_rewards_)
        self._effects = self._fit_effects(Z, observed, nuisances)
        return self

    def _read(self, call: str, Y: Column | StudyLike, **columns: Any) -> StudyData:
        """Read a call's columns; a study's known chances are left out where the method divides by none.

        Raises
        ------
        InputError
            If they are an argument of the call, which would be ignored.
        """
        data = StudyData.read(call, Y, **columns)
        if data.propensity is None or resolve_scheme(self, data.treatments, data.study is not None).needs_propensity:
            return data
        if columns["propensity"] is not None:
            raise InputError(f"method={quoted(self.method)} does not use propensity; leave it out.")
        return replace(data, propensity=None)

    def rewards_by(self, method: str | Scheme, study: StudyLike) -> pd.DataFrame:
        """Rewards of the rows of a doubly robust fit by another method, from the same models.

        Parameters
        ----------
        method : str or Scheme
            The other method, by its name or as an object. "matching" alone fits models of its own.
        study : Study
            The rows of the fit.

        Returns
        -------
        DataFrame of shape (n, K)
            Those of "regression" know no propensities: a default mixture's before it was adjusted to these. Missing
            outcomes are completed by the models of the fit, whatever the method.

        Raises
        ------
        InputError
            If the method is unknown, the fit is not one of doubly robust rewards of everybody, or these are not its
            rows in its order.

        Examples
        --------
        >>> from policytree import RewardEstimator, load_dataset
        >>> study = load_dataset("lalonde").study()
        >>> model = RewardEstimator("linear", "logit", random_state=0).fit(study)
        >>> model.rewards_by("ipw", study).mean().round(-2).tolist()
        [5100.0, 6000.0]
        """
        check_is_fitted(self, "rewards_")
        other = clone(self).set_params(method=method)
        data = study.data
        scheme = resolve_scheme(other, data.treatments, data.study is not None)
        if is_matched(other):
            if not isinstance(self.model_regression, MatchingRewards):
                other.set_params(model_regression="auto")
            return other.fit(data).rewards_
        if self.regression_ is None or self.propensity_ is None or self.offers_ is not None or data.study is not None:
            raise InputError("Rewards by another method come from a fit with method='dr', without offers and target.")
        observed = data.arrays()
        same = zip((observed.arm, observed.y), self._given_rows, strict=True)
        if not (
            observed.index.equals(self.rewards_.index) and all(np.array_equal(*each, equal_nan=True) for each in same)
        ):
            raise InputError(
                "Rewards by another method are those of the rows of the fit; pass its study, rows unmoved."
            )
        observed = completed(observed, self._completed)
        regression = self.regression_.to_numpy()
        if self.models_regression_ is not None and not scheme.needs_propensity:
            Z = self.covariates_.matrix(data.X, data.W, data.n)
            regression = np.median([each.untargeted(Z) for each in self.repeats_], axis=0)
        return _finite(
            scheme.rewards(observed, Nuisances(regression, self.propensity_.to_numpy())), observed, self.treatments_
        )

    def _by_offer(self, observed: StudyData) -> StudyData:
        """With an instrument, offers in place of treatments: what all nuisances are about then."""
        asked = is_instrumental(self)
        if asked is not (observed.instrument is not None):
            raise InputError(
                "method='instrument' learns from who was offered what; fit it to a study with treatment=Offered(...)."
                if asked
                else "instrument goes with method='instrument'; set that, or leave instrument out."
            )
        self.offers_ = None if observed.instrument is None else observed.instrument.offers
        return observed if observed.instrument is None else observed.by_offer()

    def _forget(self, observed: StudyData) -> None:
        """Set what only some kinds of study have to what the others have."""
        self._asked = None if observed.times is None else observed.times.asked
        self.horizon_: float | None
        self.target_: str | None
        self.horizon_, self.target_ = (None, None) if self._asked is None else self._asked[1:]
        self.offer_rewards_ = self.uptake_rewards_ = self.uptake_ = self.compliance_ = self.exclusion_bias_ = None
        self.first_stage_: FirstStage | None = None
        self.observation_ = None
        self.n_weak_ = self.n_raised_ = 0

    def _learn_compliance(
        self, scheme: InstrumentalVariable, observed: StudyData, nuisances: Nuisances
    ) -> tuple[np.ndarray, np.ndarray]:
        """Keep what offers do to uptake, which new rows need as well; the scheme's ``effects`` of these rows."""
        scores = offer_scores(observed, nuisances)
        self.offer_rewards_, self.uptake_rewards_ = observed.frame(scores.outcome), observed.frame(scores.uptake)
        assert nuisances.uptake is not None, "arms are offers"
        self.uptake_ = observed.frame(nuisances.uptake)
        self.first_stage_ = first_stage(scores, observed)
        scheme = replace(scheme, stage=self.first_stage_)
        compliance = scheme.compliance(nuisances)
        self.compliance_ = pd.Series(compliance, index=observed.index, name="compliance")
        bias = scheme.largest_bias(nuisances)
        self.exclusion_bias_ = pd.Series(bias, index=observed.index, name="exclusion_bias")
        if not scheme.of_compliers:
            self.n_weak_ = warn_of_little_compliance(compliance, self.min_compliance)
        return scheme.effects(observed, nuisances, scores)

    def _count_raised(self, nuisances: Nuisances, seen: np.ndarray) -> int:
        assert nuisances.observation is not None, "some outcomes are missing"
        return int(((nuisances.observation < self.min_observed) & seen).sum())

    def _fit_effects(self, Z: np.ndarray, observed: StudyData, nuisances: Nuisances) -> EffectModels | None:
        """Models of effects from these rows' doubly robust rewards; None where nobody asked for them."""
        if self.model_effects is None:
            return None
        if self.offers_ is not None:
            raise InputError("model_effects knows no instrument; leave it out: predict_outcomes has the effects then.")
        if observed.study is not None:
            raise InputError("model_effects knows no target; leave it out, or fit it to the study alone.")
        learner = resolve_effects(self.model_effects, Z.shape[1] > 0)
        if nuisances.regression is None or nuisances.propensity is None:
            raise InputError(
                "Effects are learnt from doubly robust rewards; use method='dr', or leave out model_effects."
            )
        least = np.maximum(nuisances.propensity, max(self.min_propensity, LEAST_DIVISOR))
        rewards = DoublyRobust().rewards(observed, replace(nuisances, propensity=least))
        plan = self.repeats_[0].folds if self.repeats_ else observed.folds(self.cv, 0, whose=f" of {self._called}")
        outcomes = None
        if self.models_regression_ is not None:
            outcomes = np.median([r.untargeted(Z) for r in self.repeats_], axis=0)
        return fit_effects(learner, Z, rewards, least, observed.weight, plan, outcomes)

    def _keep_target(self, nuisances: Nuisances, observed: StudyData, X: Table | None, W: Table | None) -> None:
        """Store what tells study and target apart, count whose weight is lowered, and warn of too little overlap."""
        self.participation_ = self.target_ratio_ = None
        self.n_lowered_ = 0
        if nuisances.ratio is None or observed.study is None:
            return
        odds = self.repeats_[0].study_odds
        chance = pd.Series(odds / (odds + nuisances.ratio), index=observed.index, name="participation")
        self.participation_ = chance
        self.target_ratio_ = pd.Series(nuisances.ratio, index=observed.index, name="target_ratio")
        self.n_lowered_ = int((nuisances.ratio > self.max_target_weight)[observed.study].sum())
        warn_if_lowered(self.n_lowered_, int(observed.study.sum()), self.max_target_weight)
        support = target_support(
            covariate_table((X, W)), observed.study, nuisances.ratio, self.max_target_weight, observed.sampling_weight
        )
        support.warn(" target_overlap says where.")

    @by_default_settings
    @aligns_rows
    def predict_target_ratio(self, *, X: Table | None = None, W: Table | None = None) -> np.ndarray:
        """How often the covariates of new rows occur in the target, over how often in the study.

        Parameters
        ----------
        X, W : table of shape (n, p), optional
            Covariates, the columns of ``fit``.

        Returns
        -------
        ndarray of shape (n,)
            Large ratios are lowered to ``max_target_weight``.

        Raises
        ------
        InputError
            If ``fit`` was given no target, or a table differs from the one at fit.
        """
        check_is_fitted(self, "rewards_")
        if self.participation_ is None:
            raise InputError("fit was given no target; fit to a study with population=Population(...).")
        Z = self.covariates_.matrix(X, W)
        ratio = median_of_repeats([r.only("participation").predict_new(Z, None) for r in self.repeats_]).ratio
        assert ratio is not None, "there is a target"
        return np.minimum(ratio, self.max_target_weight)

    @aligns_rows
    def per_person(
        self, rewards: pd.DataFrame, sample_weight: Column | None = None, study: Column | None = None
    ) -> tuple[pd.DataFrame, Column | None]:
        """Rewards and weights whose weighted means, over any rows, are means over people of the target.

        Without ``study`` they are as they are given. With it, ``rewards_`` average to values of the target over all
        rows, and no more than that: means over some rows, such as a leaf's, divide by their people of the target.

        Parameters
        ----------
        rewards : DataFrame of shape (n, K)
            ``rewards_``, or what ``predict_rewards`` returned.
        sample_weight : column of n numbers >= 0, optional
            As it was passed to ``fit`` or ``predict_rewards``.
        study : column of n booleans (or 0 and 1), optional
            True for rows of the study, which come first, False for people of its population.

        Returns
        -------
        rewards : DataFrame of shape (n, K)
        sample_weight : column of n numbers, or None

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> from policytree import RewardEstimator, Study, policy_value
        >>> from policytree.study import Population
        >>> rng = np.random.default_rng(0)
        >>> everybody = pd.DataFrame({"risk": rng.uniform(size=300).round(1), "arm": rng.integers(2, size=300)})
        >>> everybody["score"] = everybody["risk"] * everybody["arm"] + rng.normal(size=300)
        >>> inside, others = everybody[:200], Population(everybody[200:])
        >>> study = Study(inside, treatment="arm", outcome="score", population=others)
        >>> model = RewardEstimator(random_state=0).fit(study)
        >>> rewards, weight = model.per_person(model.rewards_, study=np.arange(300) < 200)
        >>> value = policy_value(1, rewards, sample_weight=weight).value
        >>> bool(abs(value - model.rewards_[1].mean()) < 1e-6)
        True
        """
        if study is None:
            return rewards, sample_weight
        mask = study_mask(study, len(rewards), both=False)
        weight = weights(sample_weight, len(rewards))
        values = per_person(rewards.to_numpy(), mask, weight)
        return pd.DataFrame(values, index=rewards.index, columns=rewards.columns), averaging_weight(mask, weight)

    def completed_outcomes(self) -> np.ndarray:
        """Outcomes of the rows of the fit, completed where they were censored or missing; zero for the target, (n,)."""
        check_is_fitted(self, "rewards_")
        return self._completed

    @overload
    def fit_predict(self, study: StudyLike, /) -> pd.DataFrame: ...
    @overload
    def fit_predict(
        self, Y: Column, T: Column, *, X: Table | None = None, **rest: Unpack[NuisanceArguments]
    ) -> pd.DataFrame: ...
    @overload
    def fit_predict(self, X: Table, Y: Column, *, T: Column, **rest: Unpack[NuisanceArguments]) -> pd.DataFrame: ...

    @study_or_either_order
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
    ) -> pd.DataFrame:
        """``fit``, then ``rewards_``: an (n, K) DataFrame; arguments as in :meth:`fit`."""
        fitted = self.fit(
            self._read(
                "fit_predict", Y, T=T, X=X, W=W, propensity=propensity, regression=regression,
                sample_weight=sample_weight, groups=groups,
            )
        )  # fmt: skip
        return fitted.rewards_

    @overload
    def predict_rewards(self, study: StudyLike, /) -> pd.DataFrame: ...
    @overload
    def predict_rewards(
        self, Y: Column, T: Column, *, X: Table | None = None, **rest: Unpack[NuisanceArguments]
    ) -> pd.DataFrame: ...
    @overload
    def predict_rewards(self, X: Table, Y: Column, *, T: Column, **rest: Unpack[NuisanceArguments]) -> pd.DataFrame: ...

    @shares_documentation(fit)
    @study_or_either_order
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
        sample_weight: Column | None = None,
    ) -> pd.DataFrame:
        """Rewards of *new* rows, with the fitted nuisances averaged over the fold models.

        For the rows of the fit use ``rewards_``: here they would be judged by models that saw them. Horizon, target and
        what is done about missing outcomes are those of the fit.

        Parameters
        ----------
        propensity : optional
            Known assignment probabilities, where ``fit`` was given some. A propensity that was one distribution for all
            rows at fit need not be repeated.
        groups : column of n cluster labels, optional
            Rows of clusters that were in the fit are judged only by the models that did not see them.
        sample_weight : column of n numbers >= 0, optional
            Of these rows. Rewards depend on it where they divide by an average over rows: with ``study``, by the share
            of the target, and where a scheme is normalised.

        Returns
        -------
        DataFrame of shape (n, K)

        Raises
        ------
        InputError
            If a treatment is unknown or an argument given at fit is missing.
        """
        check_is_fitted(self, "rewards_")
        data = self._read(
            "predict_rewards", Y, T=T, X=X, W=W, propensity=propensity, regression=regression, groups=groups,
            sample_weight=sample_weight, **known_at_fit(self, Y),
        )  # fmt: skip
        scheme, observed, nuisances = NewRows(self, data).judged()
        return _finite(scheme.rewards(observed, nuisances), observed, self.treatments_)

    @shares_documentation(predict_rewards)
    @study_or_either_order
    @by_default_settings
    def predict_own_outcomes(
        self,
        Y: Column,
        T: Column,
        *,
        X: Table | None = None,
        W: Table | None = None,
        groups: Column | None = None,
        propensity: PerTreatment | None = None,
        regression: PerTreatment | None = None,
        sample_weight: Column | None = None,
    ) -> pd.Series:
        """Return outcomes under the own treatments of new rows: Y, completed where it is censored or missing.

        The mean over rows is the value of the treatments that they got; see ``outcome_``. With an instrument, outcomes
        are gains over the first treatment.

        Parameters
        ----------
        propensity : optional
            With an instrument, known probabilities of the offers, where ``fit`` was given some.
        regression : array or frame of shape (n, K), optional
            Expected outcomes, where ``fit`` was given some and outcomes may be missing.

        Returns
        -------
        Series of shape (n,)

        Raises
        ------
        InputError
            If a treatment is unknown, an argument given at fit is missing, or ``regression`` is not needed.
        """
        check_is_fitted(self, "rewards_")
        data = self._read(
            "predict_own_outcomes", Y, T=T, X=X, W=W, propensity=propensity, regression=regression, groups=groups,
            sample_weight=sample_weight, **known_at_fit(self, Y),
        )  # fmt: skip
        return NewRows(self, data).own_outcomes()

    def status_quo_of_costs(
        self, observed: StudyData, costs: np.ndarray, X: Table | None = None, W: Table | None = None
    ) -> np.ndarray:
        """As :meth:`predict_own_outcomes`, of what treatments cost, ``costs`` (n, K), in place of outcomes, (n,)."""
        Z = self.covariates_.matrix(X, W, observed.n)
        nuisances = of_status_quo(self, observed, Z, None, costs)
        paid = replace(observed, y=costs[np.arange(observed.n), observed.arm])
        scheme = scheme_of(self)
        assert isinstance(scheme, DoublyRobustTarget), "there is a target"
        return scheme.own_outcomes(paid, nuisances)

    @shares_documentation(predict_rewards)
    @by_default_settings
    @aligns_rows
    def predict_outcomes(
        self, *, X: Table | None = None, W: Table | None = None, groups: Column | None = None
    ) -> pd.DataFrame:
        """Expected outcome of new rows under every treatment, averaged over the fold models.

        With an instrument: what each treatment brings beyond the first.

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
        cluster = row_of_cluster(self, groups, len(Z))
        parts = ("regression",) if self.offers_ is None else ("regression", "propensity", "uptake")
        nuisances = median_of_repeats([r.only(*parts).predict_new(Z, cluster) for r in self.repeats_])
        values = nuisances.regression
        if self.offers_ is not None:
            scheme = resolve_scheme(self, self.treatments_)
            assert isinstance(scheme, InstrumentalVariable), "there are offers"
            values = replace(scheme, stage=self.first_stage_).expected(nuisances)
        table = X if X is not None else W
        index = table.index if isinstance(table, pd.DataFrame) else None
        return pd.DataFrame(values, index=index, columns=self.treatments_)

    @shares_documentation(predict_rewards)
    @by_default_settings
    @aligns_rows
    def predict_propensity(
        self, *, X: Table | None = None, W: Table | None = None, groups: Column | None = None
    ) -> pd.DataFrame:
        """Probability of every treatment for new rows, averaged over the fold models; with an instrument, of offers.

        Parameters
        ----------
        X, W : table of shape (n, p), optional
            Covariates, the columns of ``fit``.

        Returns
        -------
        DataFrame of shape (n, K)
            Raised to ``min_propensity``, as those are that rewards divide by.

        Raises
        ------
        InputError
            If no model of treatment was fitted (given, or not needed by the method), or a table differs from the one
            at fit.
        """
        check_is_fitted(self, "rewards_")
        if self.models_propensity_ is None:
            raise InputError("No model of treatment was fitted (given, or not needed by the method), so none predicts.")
        Z = self.covariates_.matrix(X, W)
        if not len(Z):
            raise InputError("X has no rows; pass at least one.")
        cluster = row_of_cluster(self, groups, len(Z))
        chances = median_of_repeats([r.only("propensity").predict_new(Z, cluster) for r in self.repeats_]).propensity
        assert chances is not None, "models of treatment were fitted"
        table = X if X is not None else W
        index = table.index if isinstance(table, pd.DataFrame) else None
        columns = self.treatments_ if self.offers_ is None else self.offers_
        return pd.DataFrame(np.maximum(chances, self.min_propensity), index=index, columns=columns)

    @by_default_settings
    @aligns_rows
    def predict_effects(self, *, X: Table | None = None, W: Table | None = None, reference: Any = None) -> pd.DataFrame:
        """Conditional average effect of every treatment against the reference, for new rows.

        The effect is what a treatment is expected to add to the outcome of people with these covariates. It is learnt
        as such, from the doubly robust rewards, and not as the difference of two predicted outcomes: where effects are
        small beside what else outcomes depend on, its sign is right more often. The treatment of the largest effect
        (the smallest, where less is better) is the plug-in rule.

        Parameters
        ----------
        X, W : table of shape (n, p), optional
            Covariates, the columns of ``fit``.
        reference : label, optional
            The treatment that effects are measured against; by default the first in sorted order.

        Returns
        -------
        DataFrame of shape (n, K)
            In the outcome's unit; zero in the column of the reference. These are point predictions. Whether effects
            differ at all is tested by :func:`policytree.heterogeneity_test`; what a group gains is estimated, with its
            interval, by the rewards of rows that had no say in the choice of the group.

        Raises
        ------
        InputError
            If no model of effects was asked for, or a table differs from the one at fit.

        References
        ----------
        Kennedy (2023), Electronic Journal of Statistics 17(2), 3008-3049 (regressing doubly robust scores). Nie and
        Wager (2021), Biometrika 108(2), 299-319 (weights).

        Examples
        --------
        >>> import numpy as np
        >>> from policytree import RewardEstimator
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(1000, 3))
        >>> T = rng.choice(["drug", "placebo"], size=1000)
        >>> Y = 5 * X[:, 1] + X[:, 0] * (T == "drug") + rng.normal(size=1000)
        >>> model = RewardEstimator(model_effects="auto", random_state=0).fit(Y, T, X=X, propensity=0.5)
        >>> new = np.array([[-1.0, 0, 0], [1.0, 0, 0]])
        >>> model.predict_effects(X=new, reference="placebo").round(1)
           drug  placebo
        0  -0.9      0.0
        1   0.9      0.0
        """
        check_is_fitted(self, "rewards_")
        if self._effects is None:
            raise InputError("No model of effects was fitted; pass model_effects='auto' to RewardEstimator.")
        position = position_of(reference, self.treatments_, "reference")
        Z = self.covariates_.matrix(X, W)
        if not len(Z):
            raise InputError("X has no rows; pass at least one.")

        def outcomes() -> np.ndarray:
            return np.median([r.untargeted_new(Z) for r in self.repeats_], axis=0)

        fitted = self.models_regression_ is not None
        values = self._effects.predict(Z, outcomes if fitted else None, position)
        table = X if X is not None else W
        index = table.index if isinstance(table, pd.DataFrame) else None
        return pd.DataFrame(values, index=index, columns=self.treatments_)

    @property
    def second_best_learners_(self) -> dict[str, str]:
        """By "treatment" and "outcomes", where a default mixture was fitted: its learner of second least error.

        Of outcomes, the best learner of the other family (linear or boosted) than the best one's.
        """
        found = {of: getattr(next(iter(models), None), "second_best", None) for of, models in self._mixtures().items()}
        return {of: learner for of, learner in found.items() if learner is not None}

    def learners(self) -> list[tuple[str, str]]:
        """List the learners of mixtures of several, each after what it predicts: "treatment" or "outcomes"."""
        mixtures = self._mixtures()
        return [(of, learner) for of in self.second_best_learners_ for learner in mixtures[of][0].learners]

    def by_learner(self, of: str, learner: str) -> Self:
        """A copy that judges new rows by one learner of a default mixture, and otherwise by the same models.

        Parameters
        ----------
        of : {"treatment", "outcomes"}
            Whose models are replaced.
        learner : str
            Of treatment "shares", "logit" or "boosted"; of outcomes "linear", "boosted", "linear over arms",
            "boosted over arms" or "curved".

        Raises
        ------
        InputError
            If these models are no mixture with that learner.
        """
        check_is_fitted(self, "rewards_")
        models = self._mixtures()[of]
        if not models or not all(learner in getattr(model, "learners", ()) for model in models):
            argument = f"model_{MIXTURES[of]}"
            raise InputError(f"No {learner!r} was fitted as a model of {of}: {argument} is not 'auto'.")
        other = copy.copy(self)

        def alone(repeat: CrossFitted) -> CrossFitted:
            part: Any = getattr(repeat, MIXTURES[of])
            return replace(repeat, **{MIXTURES[of]: replace(part, models=tuple(m.alone(learner) for m in part.models))})

        other.repeats_ = tuple(map(alone, self.repeats_))
        name = f"models_{MIXTURES[of]}_"
        setattr(other, name, all_models(other.repeats_, MIXTURES[of]))
        return other

    def _mixtures(self) -> dict[str, tuple[Any, ...]]:
        """The models of every fold, by what they are of; none where nothing was estimated."""
        parts = {of: [getattr(repeat, name) for repeat in self.repeats_] for of, name in MIXTURES.items()}
        return {of: tuple(m for part in found if part is not None for m in part.models) for of, found in parts.items()}


def _finite(rewards: np.ndarray, observed: StudyData, treatments: np.ndarray) -> pd.DataFrame:
    """Rewards as a frame, if they are numbers."""
    refuse_infinite_rewards(rewards, treatments)
    return pd.DataFrame(rewards, index=observed.index, columns=treatments)
