"""Checked meaning of RewardEstimator's arguments; also for rows that are read in batches."""

from __future__ import annotations

from typing import Any

import numpy as np

from policytree.common.validation import check_choice, is_real
from policytree.exceptions import InputError, quoted
from policytree.weighting.direct_method import DirectMethod
from policytree.weighting.doubly_robust import DoublyRobust
from policytree.weighting.instrument import COMPLIERS, InstrumentalVariable
from policytree.weighting.matching import MatchingRewards
from policytree.weighting.overlap import DoublyRobustOverlap
from policytree.weighting.propensities import is_constant, propensity_matrix, warn_if_small
from policytree.weighting.registry import SCHEMES
from policytree.weighting.scheme import Nuisances, Scheme
from policytree.weighting.stacked import expanded, rows_of_study
from policytree.weighting.study_data import StudyData, outcome_matrix
from policytree.weighting.target_population import DoublyRobustTarget
from policytree.weighting.treated import DoublyRobustTreated

INSTRUMENT, MATCHING = "instrument", "matching"  # methods that are more than a scheme
ESTIMANDS = ("all", "treated", "overlap", "compliers")


def resolve_scheme(estimator: Any, treatments: np.ndarray, to_target: bool = False) -> Scheme:
    """The scheme that a RewardEstimator asks for; ``to_target``: of people beside those of the study.

    Raises
    ------
    InputError
        If ``method``, ``estimand`` and ``treated`` have no meaning together.
    """
    method = estimator.method
    if to_target:
        _check_target(estimator)
        return DoublyRobustTarget(estimator.max_target_weight)
    if is_instrumental(estimator):
        check_choice(estimator.estimand, "estimand", ("all", COMPLIERS))
        return InstrumentalVariable(estimator.estimand == COMPLIERS, estimator.min_compliance)
    other = estimand_scheme(estimator.estimand, estimator.treated, method, treatments)
    if other is not None:
        return other
    if all(hasattr(method, name) for name in ("rewards", "needs_regression", "needs_propensity")):
        return method
    check_choice(method, "method", [*sorted(SCHEMES), MATCHING, INSTRUMENT])
    return DirectMethod() if method == MATCHING else SCHEMES[method]


def is_matched(estimator: Any) -> bool:
    """Whether the rewards of a RewardEstimator are outcomes of people who are alike."""
    return isinstance(estimator.method, str) and estimator.method == MATCHING


def outcome_model(estimator: Any) -> Any:
    """Choose the outcome learner: ``model_regression``; by default of ``method="matching"``, matching.

    Raises
    ------
    InputError
        If rewards are to be by matching, and another model is given.
    """
    asked = estimator.model_regression
    if not is_matched(estimator) or isinstance(asked, MatchingRewards):
        return asked
    if not isinstance(asked, str) or asked != "auto":
        raise InputError(
            "method='matching' learns outcomes by matching; leave model_regression at 'auto', or make it a "
            f"MatchingRewards; got {quoted(asked)}."
        )
    return MatchingRewards()


def estimand_scheme(
    estimand: str, treated: Any, method: Any, treatments: np.ndarray
) -> DoublyRobustOverlap | DoublyRobustTreated | None:
    """The scheme of a population other than everybody; None for "all".

    Parameters
    ----------
    estimand : {"all", "treated", "overlap"}
    treated : label or None
    method : str or Scheme
        Must be "dr" for "treated" and "overlap".
    treatments : ndarray of shape (K,)

    Raises
    ------
    InputError
        If the combination has no meaning.
    """
    check_choice(estimand, "estimand", ESTIMANDS)
    if treated is not None and estimand != "treated":
        raise InputError(f"treated={treated!r} goes with estimand='treated'; got estimand={estimand!r}.")
    if estimand == "all":
        return None
    if estimand == "compliers":
        raise InputError("estimand='compliers' is about people who follow an instrument; set method='instrument'.")
    if not isinstance(method, str) or method != "dr":
        raise InputError(f"estimand={estimand!r} has doubly robust scores only; leave method at 'dr'.")
    return DoublyRobustOverlap() if estimand == "overlap" else DoublyRobustTreated(_treated(treated, treatments))


def _treated(treated: Any, treatments: np.ndarray) -> Any:
    """The treated arm's label: given, or the 1 of 0 and 1."""
    labels = treatments.tolist()
    known = ", ".join(map(str, labels))
    if treated is None:
        if len(labels) == 2 and set(labels) <= {0, 1}:
            return labels[1]
        raise InputError(f"estimand='treated' must know who the treated are; set treated= to one of {known}.")
    if str(treated) not in {str(label) for label in labels}:
        raise InputError(f"treated={treated!r} is not among the treatments; they are {known}.")
    return treated


def is_instrumental(estimator: Any) -> bool:
    """Whether a RewardEstimator learns from offers who was moved to which treatment."""
    return isinstance(estimator.method, str) and estimator.method == INSTRUMENT


def _check_target(estimator: Any) -> None:
    """Refuse what has no meaning for people beside those of the study."""
    if estimator.estimand != "all" or estimator.treated is not None:
        raise InputError(
            f"With a target the rewards are about its people; leave estimand at 'all', not {estimator.estimand!r}."
        )
    if not isinstance(estimator.method, DoublyRobust) and quoted(estimator.method) != quoted("dr"):
        raise InputError("Rewards for a target are doubly robust only; leave method at 'dr'.")
    if getattr(estimator.method, "normalized", False):
        raise InputError("Rewards for a target have no normalised form; leave method at 'dr'.")
    largest = estimator.max_target_weight
    if not is_real(largest) or not largest > 1.0:
        raise InputError(f"max_target_weight must be larger than 1, such as 50; got {quoted(largest)}.")


def check_parameters(estimator: Any, n_arms: int) -> None:
    """Refuse numbers of a RewardEstimator that cannot be used with so many treatments."""
    floor = estimator.min_propensity
    if not is_real(floor) or not 0.0 <= floor < 1.0 / n_arms:
        raise InputError(
            f"min_propensity must lie in [0, 1/K) = [0, {1 / n_arms:.3g}) with {n_arms} treatments; got "
            f"{quoted(floor)}."
        )
    least = estimator.min_observed
    if not is_real(least) or not 0.0 <= least < 1.0:
        raise InputError(f"min_observed must lie in [0, 1), such as 0.02; got {quoted(least)}.")
    compliance = estimator.min_compliance
    if not is_real(compliance) or not 0.0 < compliance < 1.0:
        raise InputError(f"min_compliance must lie strictly between 0 and 1; got {quoted(compliance)}.")
    repeats = estimator.n_repeats
    if not isinstance(repeats, (int, np.integer)) or repeats < 1:
        raise InputError(f"n_repeats must be a whole number of at least 1; got {quoted(repeats)}.")
    if repeats > 1 and np.ndim(estimator.cv) == 1:
        raise InputError("With given folds every repetition would be the same; leave n_repeats at 1.")


def given_nuisances(estimator: Any, propensity, regression, observed: StudyData, scheme: Scheme) -> Nuisances:
    """Checked nuisances that the user knows or estimated elsewhere."""
    if regression is not None and not scheme.needs_regression:
        raise InputError(f"method={estimator.method!r} does not use regression; leave it out.")
    p = m = None
    if propensity is not None and observed.study is not None:
        of_study = propensity
        if not is_constant(propensity, observed.n, observed.n_arms):
            of_study = rows_of_study(propensity, observed.study, "propensity")
        p = propensity_matrix(of_study, int(observed.study.sum()), observed.treatments)
        warn_if_small(p, estimator.min_propensity, observed.treatments)
        p = expanded(p, observed.study, np.nan)
        if of_study is propensity:
            p[~observed.study] = p[observed.study][0]
    elif propensity is not None:
        shares = np.bincount(observed.arm, minlength=observed.n_arms) / observed.n
        p = propensity_matrix(propensity, observed.n, observed.treatments, observed.what, shares)
        divisors = divided_by(scheme, observed.treatments)
        warn_if_small(p, estimator.min_propensity, observed.treatments, divisors, observed.what)
    if regression is not None:
        m = outcome_matrix(regression, observed.n, observed.treatments, observed.what)
    return Nuisances(m, p)


def scores_by_row(scheme: Scheme) -> bool:
    """Whether it scores every row by itself, so that rows may come in batches."""
    return bool(getattr(scheme, "by_row", False))


def divided_by(scheme: Scheme, treatments: np.ndarray) -> np.ndarray | None:
    """Treatments whose propensity the scheme divides by, (K,) bool; None for all."""
    return scheme.divides_by(treatments) if hasattr(scheme, "divides_by") else None


def refuse_infinite_rewards(rewards: np.ndarray, treatments: np.ndarray, first_row: int = 0) -> None:
    """A probability of zero where the treatment was received has no reward; ``rewards`` (n, K)."""
    for row, k in np.argwhere(~np.isfinite(rewards))[:1]:
        raise InputError(
            f"The reward of treatment {treatments[k]!s} in row {first_row + row} is {rewards[row, k]}: its propensity "
            "is zero or the outcome too large; use a positive min_propensity, or rescale Y."
        )
