"""Refitting a learner without some rows, and what it then says about them; many refits side by side."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from policytree.common.executors import check_executor, submitted
from policytree.common.validation import columns_by_label
from policytree.constraints.people import further_outcomes
from policytree.estimators.doubly_robust import DRPolicyTree
from policytree.evaluation.inputs import check_direction
from policytree.evaluation.policy_value.validation import Fit
from policytree.exceptions import InputError, OverlapWarning, UnseenValueWarning, quoted
from policytree.model_selection.crossfit import models_shared
from policytree.problem.types import Status
from policytree.weighting.costs import treatment_costs
from policytree.weighting.propensities import is_constant
from policytree.weighting.reward_estimator import RewardEstimator
from policytree.weighting.stacked import per_person
from policytree.weighting.study_data import StudyData, by_columns
from policytree.weighting.time_to_event.outcome import warn_of_direction

Opinion = tuple[str, str]  # the target of models, "treatment" or "outcomes", and the learner instead of the mixture
FEWEST_TO_SHARE = 5  # folds: of fewer, models without two folds would learn from half of the rows or less


def refuse_stages(estimator) -> None:
    """Refuse estimators of several decisions."""
    if has_fit_parameter(estimator, "stages"):
        raise InputError(f"{type(estimator).__name__} decides at several stages; use cross_val_regime_value.")


def checked_direction(estimator) -> str:
    """Return the estimator's direction; refuse estimators that cannot be refitted from outcomes."""
    refuse_stages(estimator)
    if not has_fit_parameter(estimator, "propensity"):
        raise InputError(
            f"{type(estimator).__name__} does not estimate its own rewards, so it cannot be refitted inside the folds; "
            "use DRPolicyTree, or hold rows out yourself and call policy_value."
        )
    direction = stated_direction(estimator) or "maximize"
    check_direction(direction)
    return direction


def stated_direction(estimator) -> str | None:
    """The direction that somebody gave the estimator; None if nobody did."""
    return getattr(estimator, "direction", None)


def sliceable(table, argument: str, n: int):
    """Make a table sliceable by row numbers, keeping its kind: narwhals around frames, else an array."""
    if table is None:
        return None
    native = nw.from_native(table, eager_only=True, allow_series=True, pass_through=True)
    out = native if isinstance(native, (nw.DataFrame, nw.Series)) else np.asarray(table)
    if not out.shape:
        raise InputError(f"{argument} must be a table or a column, a frame or an array, with one row per row of Y.")
    if out.shape[:1] != (n,):
        raise InputError(f"{argument} has {len(out)} rows, but Y has {n}; give one row per row of Y.")
    return out


def _rows(table, rows: np.ndarray):
    """Those rows, in the user's own kind of table."""
    part = table[rows]
    return part.to_native() if isinstance(part, (nw.DataFrame, nw.Series)) else part


class Data:
    """The user's data, sliced by row numbers into the arguments of estimators."""

    def __init__(self, seen: StudyData, direction: str):
        self.seen = seen.arrays()
        self.direction = direction
        warn_of_direction(seen.times, direction)
        self._costs, self._budget_costs = (
            None if each is None else seen.frame(treatment_costs(each, seen.n, seen.treatments))
            for each in (seen.sample_treatment_costs, seen.budget_costs)
        )
        self.further = {
            name: (sliceable(values, f"outcomes[{name!r}]", seen.n), way)
            for name, (values, way) in further_outcomes(seen.outcomes).items()
        }
        self._subgroups = sliceable(seen.subgroups, "subgroups", seen.n)
        self._X = sliceable(seen.X, "X", seen.n)
        self._W = sliceable(seen.W, "W", seen.n)
        self._propensity = propensity = seen.propensity
        n_arms = seen.n_arms if seen.instrument is None else len(seen.instrument.offers)
        self._per_row = propensity is not None and not is_constant(propensity, seen.n, n_arms)
        if self._per_row:
            propensity = pd.DataFrame(propensity) if isinstance(propensity, Mapping) else propensity
            self._propensity = sliceable(propensity, "propensity", seen.n)

    def costs(self, rows: np.ndarray) -> np.ndarray | None:
        """Return the costs of treatments for these rows, shape (len(rows), K); None if they cost nothing."""
        return None if self._costs is None else self._costs.to_numpy()[rows]

    def net(self, rewards: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Rewards, shape (len(rows), K), after what the treatments cost these rows."""
        costs = self.costs(rows)
        if costs is None:
            return rewards
        return rewards - costs if self.direction == "maximize" else rewards + costs

    def own_outcomes(self, fitted, rows: np.ndarray) -> np.ndarray:
        """Return outcomes of these rows under their own treatments, net of costs, shape (len(rows),).

        Where some outcomes are censored or missing, a fitted estimator that has not seen these rows completes them.
        """
        if self.seen.study is not None:
            return self._own_outcomes_in_target(fitted, rows)
        own, y = self.seen.arm[rows], self.seen.y[rows]
        if self.seen.times is not None or self.seen.seen is not None or self.seen.instrument is not None:
            estimator = getattr(fitted, "reward_estimator_", fitted)
            if not hasattr(estimator, "predict_own_outcomes"):
                raise InputError(
                    f"{type(estimator).__name__} has no predict_own_outcomes, which completes censored or missing "
                    "outcomes and those of an instrument; use RewardEstimator or DRPolicyTree."
                )
            known = {} if self.seen.instrument is None else self.propensities(rows)
            y = np.asarray(self._asked(estimator.predict_own_outcomes, rows, **known))
        return self.net(np.tile(y[:, None], self.seen.n_arms), rows)[np.arange(len(rows)), own]

    def _own_outcomes_in_target(self, fitted, rows: np.ndarray) -> np.ndarray:
        """Score the study's way of assigning treatments in the target, by rows, net of its costs."""
        estimator, costs = getattr(fitted, "reward_estimator_", fitted), self.costs(rows)
        if not isinstance(estimator, RewardEstimator):
            raise InputError(
                f"{type(estimator).__name__} knows no target; use RewardEstimator or DRPolicyTree, or leave it out."
            )
        outcome = np.asarray(self._asked(estimator.predict_own_outcomes, rows))
        if costs is not None:
            spent = estimator.status_quo_of_costs(self.seen.rows(rows), costs, **self.covariates(rows))
            outcome = outcome - spent if self.direction == "maximize" else outcome + spent
        return self.per_person(outcome, rows)

    def held_out_rewards(self, fitted, rows: np.ndarray, outcomes: pd.DataFrame | None = None) -> pd.DataFrame:
        """Rewards of rows that a fitted estimator has not seen, net of costs, by its own nuisance models.

        ``outcomes`` are its expected outcomes of these rows, where they are known already: averages over all fold
        models, as rewards are of rows whose clusters the fit has not seen.
        """
        estimator = getattr(fitted, "reward_estimator_", fitted)
        reusable = isinstance(estimator, RewardEstimator) and self.seen.instrument is None  # else they are of offers
        known = {} if outcomes is None or not reusable else {"regression": outcomes}
        rewards = self._asked(estimator.predict_rewards, rows, **self.propensities(rows), **known)
        values = _by_treatment(rewards, pd.Index(self.seen.treatments), "predict_rewards")
        values = self.per_person(values, rows)
        return pd.DataFrame(self.net(values, rows), index=self.seen.index[rows], columns=self.seen.treatments)

    def _asked(self, method: Callable[..., Any], rows: np.ndarray, **known: Any) -> Any:
        """Call a fitted estimator's method on rows that it has not seen; ``known``: their propensities and outcomes."""
        if not getattr(method, "takes_study", False):
            return method(**self.outcomes(rows), **self.covariates(rows), **known)
        part, known = self.seen.rows(rows), known | self.covariates(rows)
        weight = None if part.study is None else part.sample_weight  # rows are judged one by one
        return method(replace(part, sample_weight=weight, groups=None, strata=None, **known))

    def per_person(self, scores: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Scores of these rows, (n,) or (n, K), for averages with the weights of ``seen``."""
        seen = self.seen
        if seen.study is None:
            return scores
        weight = seen.learning_weight
        return per_person(scores, seen.study[rows], None if weight is None else weight[rows])

    def covariates(self, rows: np.ndarray) -> dict:
        """X and W of these rows."""
        return {"X": _rows(self._X, rows), "W": None if self._W is None else _rows(self._W, rows)}

    def observations(self, rows: np.ndarray) -> dict:
        """Y, T, X, W and propensity of these rows, with how their times ended."""
        return {**self.outcomes(rows), **self.propensities(rows), **self.covariates(rows)}

    def propensities(self, rows: np.ndarray) -> dict:
        """Known propensities of these rows."""
        return {"propensity": _rows(self._propensity, rows) if self._per_row else self._propensity}

    def outcomes(self, rows: np.ndarray) -> dict:
        """Y and T of these rows, with how their times ended and what they were offered."""
        seen, y = self.seen, self.seen.y[rows]
        if seen.seen is not None:
            y = np.where(seen.seen[rows], y, np.nan)
        how = {} if seen.times is None else seen.times.columns(rows)
        if seen.study is not None:
            how["study"] = seen.study[rows]
            if seen.learning_weight is not None:
                how["sample_weight"] = seen.learning_weight[rows]
        return {"Y": y, "T": seen.treatments[seen.arm[rows]], **how, **seen.offered(rows)}

    def fit_arguments(self, rows: np.ndarray) -> dict:
        """All arguments of ``fit`` for these rows."""
        seen = self.seen
        arguments = self.observations(rows) | seen.arguments(rows)
        arguments["sample_weight"] = None if seen.learning_weight is None else seen.learning_weight[rows]
        arguments["groups"] = None if seen.groups is None else seen.groups[rows]
        if seen.strata is not None:
            arguments["strata"] = seen.strata[rows]
        if self._costs is not None:
            arguments["sample_treatment_costs"] = self._costs.iloc[rows]
        if self._budget_costs is not None:
            arguments["budget_costs"] = self._budget_costs.iloc[rows]
        if self.further:
            arguments["outcomes"] = {name: (_rows(values, rows), way) for name, (values, way) in self.further.items()}
        if self._subgroups is not None:
            arguments["subgroups"] = _rows(self._subgroups, rows)
        return arguments

    def further_rewards(self, fitted, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Rewards (len(rows), K) of further outcomes of rows that a fitted estimator has not seen."""
        if not self.further:
            return {}
        estimators = getattr(fitted, "outcome_estimators_", None)
        if estimators is None:
            raise InputError(f"{type(fitted).__name__} has no outcome_estimators_; outcomes need a DRPolicyTree.")
        known = {"T": self.seen.treatments[self.seen.arm[rows]], **self.propensities(rows), **self.covariates(rows)}
        treatments = pd.Index(self.seen.treatments)
        return {
            name: _by_treatment(estimators[name].predict_rewards(_rows(values, rows), **known), treatments, name)
            for name, (values, _) in self.further.items()
        }

    def further_own(self, fitted, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Return further outcomes of these rows under their own treatments, (len(rows),)."""
        known = {"T": self.seen.treatments[self.seen.arm[rows]], **self.covariates(rows)}
        return {
            name: fitted.outcome_estimators_[name].predict_own_outcomes(_rows(values, rows), **known).to_numpy()
            for name, (values, _) in self.further.items()
        }


@dataclass(frozen=True, slots=True, eq=False)
class Support:
    """Chances of what was assigned to the rows that a refit learnt from.

    Attributes
    ----------
    rows : ndarray
        Positions of these rows.
    chances : ndarray of shape (n_rows, K)
        Raised to ``floor``.
    floor : float
    offers : ndarray of shape (n_rows, M), or None
        Where people may refuse what they are offered: rewards of the offers.
    """

    rows: np.ndarray
    chances: np.ndarray
    floor: float
    offers: np.ndarray | None = None


def _support(fitted, data: Data, fit: Fit) -> Support | None:
    """The chances that a refit estimated (of offers also those that were known); None where they are not shown."""
    rewards, seen = getattr(fitted, "reward_estimator_", None), data.seen
    if not isinstance(rewards, RewardEstimator) or rewards.propensity_ is None or seen.study is not None:
        return None
    if len(rewards.propensity_) != len(fit.train):
        return None
    if seen.instrument is not None:
        labels, offers = list(seen.instrument.offers), rewards.offer_rewards_
        chances = columns_by_label(rewards.propensity_, labels).to_numpy()
        if offers is None:
            return None
        return Support(fit.train, chances, rewards.min_propensity, columns_by_label(offers, labels).to_numpy())
    if rewards.models_propensity_ is None:
        return None
    return Support(fit.train, columns_by_label(rewards.propensity_, seen.treatments).to_numpy(), rewards.min_propensity)


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """A fitted model's decisions and rewards for held-out rows.

    Attributes
    ----------
    fit : Fit
    rewards : ndarray of shape (n_test, K)
        Net of treatment costs.
    other_rewards : mapping of (str, str) to ndarray of shape (n_test, K)
        The same by other models, where that was asked for, by what they are of ("treatment", "outcomes") and learner.
    outcome : ndarray of shape (n_test,)
        Outcomes under their own treatments, net of costs.
    policy, plug_in : ndarray of shape (n_test,), int
        Positions of treatments.
    rivals : mapping of str to ndarray of shape (n_test,), int
    training : mapping of str to ndarray of shape (n_train,), or None
        Scores of the rules on the rows that chose them, by the rewards that chose them, net of costs: "policy",
        "plug_in" and rivals by their names. None if the fitted estimator does not show these rewards.
    tree : object
        ``policy_tree_`` of the fitted estimator, or the estimator if it has none.
    warnings : tuple of WarningMessage
        Heard on the way.
    further : mapping of str to ndarray of shape (n_test, K)
        Rewards of further outcomes.
    further_own : mapping of str to ndarray of shape (n_test,)
        Further outcomes under their own treatments.
    support : Support or None
        Chances of treatment of the training rows, where they were estimated.
    second_best : mapping of str to str
        By what models are of, the learner of second least error, where there are several.
    nuisances : RewardEstimator or None
        The nuisance models that were fitted, unfitted, where they estimated chances of treatment.
    """

    fit: Fit
    rewards: np.ndarray
    other_rewards: Mapping[Opinion, np.ndarray]
    outcome: np.ndarray
    policy: np.ndarray
    plug_in: np.ndarray
    rivals: Mapping[str, np.ndarray]
    training: Mapping[str, np.ndarray] | None
    tree: Any
    warnings: tuple[warnings.WarningMessage, ...]
    further: Mapping[str, np.ndarray]
    further_own: Mapping[str, np.ndarray]
    support: Support | None = None
    second_best: Mapping[str, str] = field(default_factory=dict)
    nuisances: RewardEstimator | None = None


def refit(
    estimator, fit: Fit, *, rivals: Mapping[str, Any], data: Data, others: Mapping[str, str] | None = None
) -> Judged:
    """Learn from the training rows, judge the test rows.

    ``others``: learners that judge as well, by what they are models of; None: all of the default mixtures.
    """
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", UnseenValueWarning)  # a fold may lack rare categories
        folds = shared_folds(estimator, data.seen, fit)
        with models_shared(folds is not None):
            fitted = fit_finished(estimator if folds is None else _with_folds(estimator, folds), data, fit.train)
        treatments, rows = pd.Index(data.seen.treatments), fit.test
        covariates = data.covariates(rows)
        outcomes = _expected_outcomes(fitted, data, rows)
        rewards, nuisances = data.held_out_rewards(fitted, rows, outcomes).to_numpy(), _estimated(fitted)
        second_best = {} if nuisances is None else nuisances.second_best_learners_
        asked = others.items() if others is not None else [] if nuisances is None else nuisances.learners()
        other_rewards = {each: _rewards_by(each, fitted, data, rows, outcomes) for each in asked}
        learnt = _learn_rivals(rivals, fitted, data, fit)
        return Judged(
            fit,
            rewards,
            other_rewards,
            data.own_outcomes(fitted, rows),
            policy_codes(fitted, covariates["X"], treatments),
            _plug_in(fitted, outcomes, data, rows),
            {name: policy_codes(rival, covariates["X"], treatments) for name, rival in learnt.items()},
            _training_scores(fitted, learnt, data, fit),
            getattr(fitted, "policy_tree_", fitted),
            tuple(heard),
            data.further_rewards(fitted, rows),
            data.further_own(fitted, rows),
            _support(fitted, data, fit),
            second_best,
            None if nuisances is None else _as_asked(nuisances, estimator, folds is not None),
        )


def _estimated(fitted) -> RewardEstimator | None:
    """The fitted nuisance models, where they estimated chances of treatment."""
    rewards = getattr(fitted, "reward_estimator_", None)
    known = not isinstance(rewards, RewardEstimator) or rewards.models_propensity_ is None
    return None if known else rewards


def shared_folds(estimator, seen: StudyData, fit: Fit) -> np.ndarray | None:
    """Folds of the nuisance models of a refit that are folds of the evaluation, so that refits share models.

    The refit without fold ``a`` judges its rows of fold ``b`` by models that have seen neither. So does the refit
    without ``b``, with its rows of ``a``: ten pairs of five folds have ten models, where folds of its own for every
    refit need 25. These learn from 60 % of the rows instead of 64 %.

    Returns
    -------
    ndarray of shape (len(fit.train),), int, or None
        None where the estimator does not ask for as many folds as the evaluation has, for fewer than
        ``FEWEST_TO_SHARE`` or for repeated ones, or where two folds hold all rows of a treatment.
    """
    owner = _owner(estimator)
    if fit.folds is None or not isinstance(owner, (RewardEstimator, DRPolicyTree)) or not isinstance(owner.cv, int):
        return None
    if getattr(owner, "n_repeats", 1) != 1 or not FEWEST_TO_SHARE <= owner.cv == len(np.unique(fit.folds)) + 1:
        return None
    learning = np.ones(len(fit.train), dtype=bool)
    for part in (seen.seen, seen.study):
        if part is not None:
            learning &= part[fit.train]
    arm = seen.arm if seen.instrument is None else seen.instrument.code
    table = np.zeros((owner.cv, arm.max() + 1))
    np.add.at(table, (fit.folds[learning], arm[fit.train[learning]]), 1)
    return fit.folds if (table.sum(axis=0) > table).all() else None


def _owner(estimator) -> Any:
    """Whose argument ``cv`` has the folds of the nuisance models: the estimator's, or its ``rewards``'."""
    rewards = getattr(estimator, "rewards", None)
    return estimator if rewards is None else rewards


def _as_asked(nuisances: RewardEstimator, estimator, shares_folds: bool) -> RewardEstimator:
    """Unfitted nuisance models, with the number of folds that the estimator asks for."""
    asked = {"cv": _owner(estimator).cv} if shares_folds else {}
    return clone(nuisances).set_params(**asked)


def _with_folds(estimator, folds: np.ndarray) -> Any:
    """A clone whose nuisance models have these folds."""
    return clone(estimator).set_params(**{"cv" if _owner(estimator) is estimator else "rewards__cv": folds})


def _rewards_by(opinion: Opinion, fitted, data: Data, rows: np.ndarray, outcomes: pd.DataFrame) -> np.ndarray:
    """Rewards of these rows where one learner takes the place of a mixture; ``outcomes``: expected by the mixture."""
    judging = _judging_by(*opinion, fitted)
    same = outcomes if opinion[0] == "treatment" else None
    return data.held_out_rewards(judging, rows, same).to_numpy()


def _judging_by(of: str, learner: str, fitted) -> Any:
    """The nuisance models of an estimator, with the learner that is named in place of a mixture."""
    if not hasattr(fitted.reward_estimator_, "by_learner"):
        raise InputError(
            f"second_opinion takes an estimator whose reward_estimator_ is a RewardEstimator; leave it out for a "
            f"{type(fitted).__name__}."
        )
    return fitted.reward_estimator_.by_learner(of, learner)


def _expected_outcomes(fitted, data: Data, rows: np.ndarray) -> pd.DataFrame:
    """Expected outcomes of these rows under every treatment, in the order of the treatments."""
    treatments = pd.Index(data.seen.treatments)
    outcomes = fitted.reward_estimator_.predict_outcomes(**data.covariates(rows))
    values = _by_treatment(outcomes, treatments, "predict_outcomes")
    return pd.DataFrame(values, index=data.seen.index[rows], columns=treatments)


def _plug_in(fitted, outcomes: pd.DataFrame, data: Data, rows: np.ndarray) -> np.ndarray:
    """The treatment whose expected outcome, or effect where these have a model of their own, is best net of costs."""
    treatments, values = pd.Index(data.seen.treatments), outcomes.to_numpy()
    if getattr(fitted.reward_estimator_, "model_effects", None) is not None:
        effects = fitted.reward_estimator_.predict_effects(**data.covariates(rows))
        values = _by_treatment(effects, treatments, "predict_effects")
    predicted = data.net(values, rows)
    return predicted.argmax(axis=1) if data.direction == "maximize" else predicted.argmin(axis=1)


def _training_scores(fitted, rivals: Mapping[str, Any], data: Data, fit: Fit) -> dict[str, np.ndarray] | None:
    """Score the rules on the rows that chose them; None where the estimator does not show its rewards."""
    rewards, treatments = getattr(fitted, "rewards_", None), pd.Index(data.seen.treatments)
    if rewards is None or len(rewards) != len(fit.train):
        return None
    rewards = columns_by_label(rewards, treatments) if isinstance(rewards, pd.DataFrame) else rewards
    values = np.asarray(rewards, dtype=np.float64)
    if values.shape != (len(fit.train), len(treatments)):
        return None
    values = data.per_person(values, fit.train)
    net, every, X = data.net(values, fit.train), np.arange(len(fit.train)), data.covariates(fit.train)["X"]
    codes = {
        "policy": policy_codes(fitted, X, treatments),
        "plug_in": _plug_in(fitted, _expected_outcomes(fitted, data, fit.train), data, fit.train),
    }
    codes |= {name: policy_codes(rival, X, treatments) for name, rival in rivals.items()}
    return {name: net[every, chosen] for name, chosen in codes.items()}


def fit_finished(estimator, data: Data, rows: np.ndarray):
    """A clone of the estimator, fitted on these rows.

    Raises
    ------
    InputError
        If these rows do not suffice: says how many of all they are.
    KeyboardInterrupt
        Where a search answered Ctrl-C by keeping its best tree: half a value is none.
    """
    try:
        return finished(by_columns(clone(estimator).fit, **data.fit_arguments(rows)))
    except InputError as error:
        raise InputError(f"Learning again from {len(rows):,} of {data.seen.n:,} rows: {error}") from error


def _learn_rivals(rivals: Mapping[str, Any], fitted, data: Data, fit: Fit) -> dict[str, Any]:
    """Every rival, fitted on the rewards that the tree was learnt from."""
    if not rivals:
        return {}
    treatments = pd.Index(data.seen.treatments)
    arguments = data.fit_arguments(fit.train)
    gross = columns_by_label(getattr(fitted, "tree_rewards_", fitted.rewards_), treatments)
    each = data.net(data.per_person(gross.to_numpy(), fit.train), fit.train)
    rewards = pd.DataFrame(each, index=gross.index, columns=gross.columns)
    if data.seen.study is not None:
        assert data.seen.sample_weight is not None, "of averages over the target"
        arguments["sample_weight"] = data.seen.sample_weight[fit.train]
        _refuse_unweighted(rivals)
    learnt = {}
    for name, rival in rivals.items():
        taken = {key: arguments[key] for key in ("T", "sample_weight") if has_fit_parameter(rival, key)}
        learnt[name] = finished(clone(rival).fit(arguments["X"], rewards, **taken))
    return learnt


def _refuse_unweighted(rivals: Mapping[str, Any]) -> None:
    """Where people are those of a target, rewards have no meaning without their weights."""
    for name, rival in rivals.items():
        if not has_fit_parameter(rival, "sample_weight"):
            raise InputError(f"rivals: {name!r} takes no sample_weight, which rewards of a target need; leave it out.")


def finished(fitted):
    """Raise KeyboardInterrupt where a search kept its best tree on Ctrl-C: here Ctrl-C ends all refits."""
    if getattr(fitted, "status_", None) is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return fitted


def policy_codes(rule, X, treatments: pd.Index) -> np.ndarray:
    """Positions of what a fitted rule gives these rows."""
    codes = treatments.get_indexer(pd.Index(rule.predict(X)))
    if (codes < 0).any():
        raise InputError(f"{type(rule).__name__}.predict returned a label that is not among T's treatments.")
    return codes


def shown_policy(estimator, data: Data, rows: np.ndarray) -> np.ndarray | None:
    """Assign these rows by an estimator that was fitted on this very study; None if it was not."""
    fitted_rewards = getattr(estimator, "rewards_", None)
    if fitted_rewards is None or len(fitted_rewards) != data.seen.n:
        return None
    if list(getattr(fitted_rewards, "columns", data.seen.treatments)) != list(data.seen.treatments):
        return None  # fitted on another study
    try:
        return np.asarray(estimator.predict(data.covariates(rows)["X"]))
    except ValueError:  # fitted on other columns: not the rule of this study
        return None


def _by_treatment(frame: pd.DataFrame, treatments: pd.Index, method: str) -> np.ndarray:
    """Columns in the order of ``treatments``."""
    lacking = [str(label) for label in treatments if label not in frame.columns]
    if lacking:
        raise InputError(f"reward_estimator_.{method} gave no column for treatment {lacking[0]}.")
    return columns_by_label(frame, treatments).to_numpy(dtype=np.float64)


class Refitter:
    """Does refits, the first one alone: what it compiles is then on disk for the others, side by side if asked.

    Parameters
    ----------
    estimator : object
    task : callable (estimator, part) -> result
        One refit; picklable. ``part`` says which rows.
    n_jobs : int or None
        Processes, as in joblib.
    told : callable
        Called with every result as it comes.
    executor : optional
        Anything with ``submit``, as in ``concurrent.futures``; replaces processes of this machine.
    """

    def __init__(
        self,
        estimator,
        task: Callable[[Any, Any], Any],
        n_jobs,
        told: Callable[[Any], None],
        executor: Any = None,
    ):
        check_executor(executor)
        self._executor = executor
        self._estimator, self._task, self._told = estimator, task, told
        if n_jobs is not None and (not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0):
            raise InputError(f"n_jobs must be a nonzero integer or None; got {quoted(n_jobs)}.")
        self._jobs = effective_n_jobs(n_jobs)
        self._begun = False

    def run(self, parts: Sequence[Any]) -> list[Any]:
        """All results, in the order of the parts."""
        parts, done = list(parts), []
        alone = len(parts) if self._executor is None and self._jobs == 1 else int(not self._begun)
        for part in parts[:alone]:
            done.append(self._tell(self._task(self._estimator, part)))
        self._begun, parts = True, parts[alone:]
        later: dict[int, Any] = {}
        for position, result in self._parallel(parts):
            later[position] = self._tell(result)
        return done + [later[position] for position in range(len(parts))]

    def _parallel(self, parts: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        estimator = _quiet(self._estimator)
        if self._executor is not None:
            yield from submitted(self._executor, _Refit(self._task, estimator), parts)
            return
        task = _Refit(self._task, estimator)
        tasks = (delayed(_in_worker)(os.getpid(), k, task, part) for k, part in enumerate(parts))
        yield from Parallel(n_jobs=self._jobs, return_as="generator_unordered", pre_dispatch="2*n_jobs")(tasks)

    def _tell(self, result: Any) -> Any:
        self._told(result)
        return result


class Teller:
    """Passes on progress and warnings of refits; overlap warnings, which every refit repeats, come once.

    Parameters
    ----------
    total : int
        Refits to come.
    progress : callable of (done, total), or None
    """

    def __init__(self, total: int, progress: Callable[[int, int], None] | None):
        self._total, self._progress = total, progress
        self._done = 0
        self._overlap: list[str] = []

    def __call__(self, result: Any) -> None:
        """Count a refit, and pass on its ``warnings``."""
        for warning in result.warnings:
            if issubclass(warning.category, OverlapWarning):
                self._overlap.append(str(warning.message))
            else:
                warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        self.count()

    def count(self) -> None:
        """One refit more is done."""
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, self._total)

    def finish(self) -> None:
        """All is done, whatever was not needed."""
        if self._done < self._total:
            self._done = self._total - 1
            self.count()

    def warn_overlap(self, where: str, others: str) -> None:
        """Say once what the refits warned of; ``where`` begins the sentence, ``others`` names the other refits."""
        if self._overlap:
            more = "" if len(self._overlap) == 1 else f" ({len(self._overlap) - 1} more such warnings in {others})"
            warnings.warn(f"{where}: {self._overlap[0]}{more}", OverlapWarning, stacklevel=3)


def _in_worker(parent: int, position: int, task, part) -> tuple[int, Any]:
    """One task in a process of joblib's: a terminal's Ctrl-C reaches it too, but answering it is the parent's."""
    if os.getpid() != parent:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return position, task(part)


@dataclass(frozen=True)
class _Refit:
    """One refit as a task of a part alone."""

    task: Callable[[Any, Any], Any]
    estimator: Any

    def __call__(self, part: Any) -> Any:
        return self.task(self.estimator, part)


def _quiet(estimator):
    """Set one thread and no progress output, for one process of several."""
    quiet = {"n_jobs": 1, "verbose": 0, "executor": None, "rewards__executor": None}
    known = estimator.get_params()
    return clone(estimator).set_params(**{name: value for name, value in quiet.items() if name in known})
