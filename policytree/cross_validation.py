"""The honest value of a policy learner: nuisances and tree are refitted without the rows they are judged on."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from policytree.checks import check_level
from policytree.evaluation import DIRECTIONS, Estimate, mean_estimate
from policytree.exceptions import InputError, OverlapWarning, UnseenValueWarning
from policytree.folds import FoldPlan
from policytree.policy_values import PLUG_IN, POLICY, STATUS_QUO, PolicyValueTable
from policytree.types import Status
from policytree.weighting.costs import treatment_costs
from policytree.weighting.observed import Observed, observe
from policytree.weighting.propensities import is_constant


def cross_val_policy_value(
    estimator,
    Y,
    T,
    *,
    X,
    W=None,
    propensity=None,
    groups=None,
    strata=None,
    sample_weight=None,
    sample_treatment_costs=None,
    rivals: Mapping[str, Any] | None = None,
    cv=5,
    level: float = 0.95,
    random_state=None,
    progress: Callable[[int, int], None] | None = None,
) -> PolicyValueTable:
    """Held-out value of a policy learner, against every constant treatment, the status quo and the plug-in rule.

    For every fold, a clone of ``estimator`` (nuisance models and tree) is fitted on the other folds; it recommends
    treatments to the held-out rows, and its nuisance models, which have not seen them, score them. Scores of all folds
    are pooled and averaged; standard errors are as in :func:`policytree.policy_value`. The value is that of rules
    learnt in this way from a share ``1 - 1/cv`` of the data, averaged over the folds; the tree that you fit on all data
    is another one.

    Parameters
    ----------
    estimator : DRPolicyTree or the like
        Unfitted or fitted; it is cloned and never changed. Needs ``fit(Y, T, *, X, W, propensity, sample_weight,
        groups)``, ``predict(X)`` and, once fitted, ``reward_estimator_`` with ``predict_rewards(Y, T, *, X, W,
        propensity)`` and ``predict_outcomes(*, X, W)``, both (n, K) frames. Its ``direction`` ("maximize" if it has
        none) says which outcomes are better.
    Y : array of shape (n,)
        Outcome, in its unit.
    T : array of shape (n,)
        Treatment labels of any type.
    X : DataFrame or array of shape (n, p)
        What the rule may look at.
    W : DataFrame or array of shape (n, q), optional
        Further confounders.
    propensity : optional
        Known assignment probabilities, in any form that ``RewardEstimator.fit`` takes.
    groups : array of shape (n,), optional
        Clusters; never split between folds.
    strata : array of shape (n,) or table, optional
        Blocks within which treatment was assigned; folds are balanced over them (:meth:`RewardEstimator.fit`).
    sample_weight : array of shape (n,), optional
        Weights of the rows, in fitting and in the averages.
    sample_treatment_costs : optional
        What treatments cost, in the outcome's unit; forms as in :meth:`PolicyTree.fit`. All values are then net of
        costs, the status quo's too.
    rivals : mapping of str to estimator, optional
        Further learners to compare, each with ``fit(X, rewards)`` and ``predict(X)`` (labels), such as a
        :class:`PolicyTree` of another depth. Clones are fitted in every fold on the same rewards as the tree, net of
        costs; those whose ``fit`` takes ``T`` or ``sample_weight`` are given them.
    cv : int, scikit-learn splitter, or array of shape (n,)
        Number of folds, balanced over treatments; or a splitter; or each row's fold.
    level : float
        Coverage of the intervals.
    random_state : int, RandomState or None
        Draws the folds. The estimator's own randomness is set on the estimator.
    progress : callable, optional
        Called as ``progress(done, total)`` after every fold.

    Returns
    -------
    PolicyValueTable

    Raises
    ------
    InputError
        For bad data (see :class:`policytree.RewardEstimator`), too few rows or clusters of a treatment, or an estimator
        without the methods above.
    KeyboardInterrupt
        On Ctrl-C at any time, also where a search would have kept its best tree.

    Warns
    -----
    OverlapWarning
        Once for all folds, if some propensities are small.

    References
    ----------
    Athey and Wager (2021), Policy learning with observational data, Econometrica 89(1), 133-161, section 5 (values by
    cross-validation). Chernozhukov et al. (2018), Econometrics Journal 21(1), C1-C68 (cross-fitting).
    """
    check_level(level)  # before the work, not after
    direction = _direction(estimator)
    seen = observe(Y, T, sample_weight=sample_weight, groups=groups, strata=strata)
    costs = None
    if sample_treatment_costs is not None:
        costs = seen.frame(treatment_costs(sample_treatment_costs, seen.n, seen.treatments))
    data = _Data(seen, _table(X, "X", seen.n), _table(W, "W", seen.n), propensity, costs, direction)
    folds = seen.folds(cv, random_state)
    rivals = _checked_rivals(rivals, seen.treatments)
    held_out = _HeldOut(seen, rivals)
    trees, overlap_messages = _fold_by_fold(estimator, rivals, data, folds, held_out, progress)
    if overlap_messages:
        more = "" if len(overlap_messages) == 1 else f" ({len(overlap_messages) - 1} more such warnings in the folds)"
        warnings.warn(f"In cross-validation: {overlap_messages[0]}{more}", OverlapWarning, stacklevel=2)
    estimates, differences = _estimates(held_out, data, level)
    return PolicyValueTable(
        estimates,
        differences,
        direction,
        folds,
        seen.treatments[held_out.policy],
        seen.treatments[held_out.plug_in],
        {name: seen.treatments[codes] for name, codes in held_out.rivals.items()},
        seen.frame(held_out.rewards),
        trees,
    )


def _fold_by_fold(
    estimator, rivals: Mapping[str, Any], data: _Data, folds: FoldPlan, held_out: _HeldOut, progress
) -> tuple[tuple, list[str]]:
    """Fill ``held_out`` with what models of the other folds say; returns every fold's tree, and overlap warnings."""
    trees, messages = [], []
    for done, (train, test) in enumerate(folds.splits(), start=1):
        with _overlap_warnings_into(messages):
            fitted = _finished(clone(estimator).fit(**data.fit_arguments(train)))
            held_out.fill(fitted, data, test)
            held_out.fill_rivals(rivals, fitted, data, train, test)
        trees.append(getattr(fitted, "policy_tree_", fitted))
        if progress is not None:
            progress(done, folds.n_folds)
    return tuple(trees), messages


def _finished(fitted):
    """A search answers Ctrl-C by keeping its best tree; here Ctrl-C ends everything: half a value is none."""
    if getattr(fitted, "status_", None) is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return fitted


@contextmanager
def _overlap_warnings_into(messages: list[str]) -> Iterator[None]:
    """Collect overlap warnings, which every fold repeats; let all others through."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", OverlapWarning)
        warnings.simplefilter("ignore", UnseenValueWarning)  # rare categories of a fold: nothing to be done about
        yield
    for warning in caught:
        if issubclass(warning.category, OverlapWarning):
            messages.append(str(warning.message))
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def _direction(estimator) -> str:
    """Return the estimator's direction; refuse estimators that cannot be refitted from outcomes."""
    if not has_fit_parameter(estimator, "propensity"):
        raise InputError(
            f"{type(estimator).__name__} does not estimate its own rewards, so it cannot be refitted inside the folds; "
            "use DRPolicyTree, or hold rows out yourself and call policy_value."
        )
    direction = getattr(estimator, "direction", "maximize")
    if direction not in DIRECTIONS:
        raise InputError(f"direction must be 'maximize' or 'minimize'; got {direction!r}.")
    return direction


def _table(table, argument: str, n: int):
    """Make a table sliceable by row numbers, keeping its kind: narwhals around frames, else an array."""
    if table is None:
        return None
    native = nw.from_native(table, eager_only=True, allow_series=True, pass_through=True)
    sliceable = native if isinstance(native, (nw.DataFrame, nw.Series)) else np.asarray(table)
    if sliceable.shape[:1] != (n,):
        raise InputError(f"{argument} has {len(sliceable)} rows, but Y has {n}; give one row per row of Y.")
    return sliceable


def _rows(table, rows: np.ndarray):
    """Those rows, in the user's own kind of table."""
    part = table[rows]
    return part.to_native() if isinstance(part, (nw.DataFrame, nw.Series)) else part


class _Data:
    """The user's data, sliced by row numbers into the arguments of estimators."""

    def __init__(self, seen: Observed, X, W, propensity, costs: pd.DataFrame | None, direction: str):
        self.seen = seen
        self.direction = direction
        self._costs = costs
        self._X = X
        self._W = W
        self._propensity = propensity
        self._per_row = propensity is not None and not is_constant(propensity, seen.n, seen.n_arms)
        if self._per_row:
            propensity = pd.DataFrame(propensity) if isinstance(propensity, Mapping) else propensity
            self._propensity = _table(propensity, "propensity", seen.n)

    def net(self, rewards: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Rewards, shape (len(rows), K), after what the treatments cost these rows."""
        costs = 0.0 if self._costs is None else self._costs.to_numpy()[rows]
        return rewards - costs if self.direction == "maximize" else rewards + costs

    def net_outcome(self) -> np.ndarray:
        """Everybody's outcome after what the own treatment cost, shape (n,)."""
        every = np.arange(self.seen.n)
        return self.net(np.tile(self.seen.y[:, None], self.seen.n_arms), every)[every, self.seen.arm]

    def covariates(self, rows: np.ndarray) -> dict:
        """X and W of these rows."""
        return {"X": _rows(self._X, rows), "W": None if self._W is None else _rows(self._W, rows)}

    def observations(self, rows: np.ndarray) -> dict:
        """Y, T, X, W and propensity of these rows."""
        return {
            "Y": self.seen.y[rows],
            "T": self.seen.treatments[self.seen.arm[rows]],
            "propensity": _rows(self._propensity, rows) if self._per_row else self._propensity,
            **self.covariates(rows),
        }

    def fit_arguments(self, rows: np.ndarray) -> dict:
        """All arguments of ``fit`` for these rows."""
        seen = self.seen
        arguments = self.observations(rows)
        arguments["sample_weight"] = None if seen.sample_weight is None else seen.sample_weight[rows]
        arguments["groups"] = None if seen.groups is None else seen.groups[rows]
        if seen.strata is not None:
            arguments["strata"] = seen.strata[rows]
        if self._costs is not None:
            arguments["sample_treatment_costs"] = self._costs.iloc[rows]
        return arguments


class _HeldOut:
    """What models say about rows they have not seen, filled fold by fold."""

    def __init__(self, seen: Observed, rivals: Mapping[str, Any]):
        self._treatments = pd.Index(seen.treatments)
        self.rewards = np.full((seen.n, seen.n_arms), np.nan)
        self.policy, self.plug_in = np.full((2, seen.n), -1, dtype=np.intp)
        self.rivals = {name: np.full(seen.n, -1, dtype=np.intp) for name in rivals}

    def fill(self, fitted, data: _Data, rows: np.ndarray) -> None:
        """Score and treat the held-out ``rows`` with a model fitted on the other rows."""
        nuisances = fitted.reward_estimator_
        covariates = data.covariates(rows)
        rewards = nuisances.predict_rewards(**data.observations(rows))
        outcomes = nuisances.predict_outcomes(**covariates)
        self.rewards[rows] = data.net(_by_treatment(rewards, self._treatments, "predict_rewards"), rows)
        predicted = data.net(_by_treatment(outcomes, self._treatments, "predict_outcomes"), rows)
        self.plug_in[rows] = predicted.argmax(axis=1) if data.direction == "maximize" else predicted.argmin(axis=1)
        self.policy[rows] = self._codes(fitted, covariates["X"])

    def fill_rivals(self, rivals: Mapping[str, Any], fitted, data: _Data, train: np.ndarray, test: np.ndarray) -> None:
        """Learn every rival from the rewards that the tree was learnt from, and treat the held-out rows."""
        if not rivals:
            return
        arguments = data.fit_arguments(train)
        gross, X = fitted.rewards_[list(self._treatments)], data.covariates(test)["X"]
        rewards = pd.DataFrame(data.net(gross.to_numpy(), train), index=gross.index, columns=gross.columns)
        for name, rival in rivals.items():
            taken = {key: arguments[key] for key in ("T", "sample_weight") if has_fit_parameter(rival, key)}
            self.rivals[name][test] = self._codes(_finished(clone(rival).fit(arguments["X"], rewards, **taken)), X)

    def _codes(self, rule, X) -> np.ndarray:
        codes = self._treatments.get_indexer(pd.Index(rule.predict(X)))
        if (codes < 0).any():
            raise InputError(f"{type(rule).__name__}.predict returned a label that is not among T's treatments.")
        return codes


def _checked_rivals(rivals: Mapping[str, Any] | None, treatments: np.ndarray) -> Mapping[str, Any]:
    """Refuse names that a row of the table has already."""
    taken = {POLICY, STATUS_QUO, PLUG_IN, *(f"always {label}" for label in treatments)}
    if rivals is not None and not isinstance(rivals, Mapping):
        raise InputError(f"rivals must be a mapping of names to estimators or None; got {rivals!r}.")
    for name in rivals or {}:
        if name in taken:
            raise InputError(f"rivals holds {name!r}, which is the name of another rule of the table; choose another.")
    return rivals or {}


def _by_treatment(frame: pd.DataFrame, treatments: pd.Index, method: str) -> np.ndarray:
    """Columns in the order of ``treatments``."""
    lacking = [str(label) for label in treatments if label not in frame.columns]
    if lacking:
        raise InputError(f"reward_estimator_.{method} gave no column for treatment {lacking[0]}.")
    return frame[list(treatments)].to_numpy(dtype=np.float64)


def _estimates(held_out: _HeldOut, data: _Data, level: float) -> tuple[dict[str, Estimate], dict[str, Estimate]]:
    """Values of all rules on the pooled held-out rows, and the policy's paired differences."""
    seen = data.seen
    every = np.arange(seen.n)
    scores = {POLICY: held_out.rewards[every, held_out.policy]}
    scores |= {f"always {label}": held_out.rewards[:, k] for k, label in enumerate(seen.treatments)}
    scores |= {STATUS_QUO: data.net_outcome(), PLUG_IN: held_out.rewards[every, held_out.plug_in]}
    scores |= {name: held_out.rewards[every, codes] for name, codes in held_out.rivals.items()}
    options = {"groups": seen.groups, "sample_weight": seen.sample_weight, "level": level}
    estimates = {rule: mean_estimate(values, **options) for rule, values in scores.items()}
    differences = {
        rule: mean_estimate(scores[POLICY] - values, **options) for rule, values in scores.items() if rule != POLICY
    }
    return estimates, differences
