"""Some rows learn, the others judge: held-out rewards, and what was predicted for them by who never saw them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from policytree.common.calls import StudyLike, refuses_said_by_study
from policytree.common.docstrings import shares_documentation
from policytree.common.shared_arguments import STUDY
from policytree.common.typing import Column, PerTreatment, Seed, Table
from policytree.common.validation import columns_by_label
from policytree.data.views import Shown
from policytree.estimators.doubly_robust import DRPolicyTree
from policytree.evaluation.inputs import generator
from policytree.evaluation.policy_value.refits import Data, checked_direction, fit_finished
from policytree.exceptions import InputError, quoted
from policytree.study_check.directions import with_direction
from policytree.weighting.study_data import StudyData


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class HeldOutRewards(Shown):
    """Rewards of held-out rows, with the predictions of models that were fitted to the other rows.

    Attributes
    ----------
    rewards : DataFrame of shape (m, K)
        Scores of the rows that judge: their mean is what a treatment is worth.
    outcomes : DataFrame of shape (m, K)
        Outcomes predicted for them from their covariates: what a plan may be made with.
    rows : ndarray of shape (m,)
        Their positions in the data.
    groups, sample_weight : ndarray of shape (m,), or None
        With a target, ``sample_weight`` is that of averages over its people: next to none for rows of the study.
    direction : {"maximize", "minimize"}
        Whether larger or smaller outcomes are better, as the estimator has it.
    estimator : fitted estimator
        Learnt from the rows that are not in ``rows``.

    Examples
    --------
    >>> import numpy as np
    >>> from policytree import RewardEstimator, held_out_rewards
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(20, 80, size=(200, 1))
    >>> T = rng.permutation(np.repeat(["drug", "none"], 100))
    >>> Y = (T == "drug") * np.where(X[:, 0] > 50, 1.0, -1.0) + rng.normal(size=200)
    >>> held = held_out_rewards(RewardEstimator(cv=2, random_state=0), Y, T, X=X, propensity=0.5, random_state=0)
    >>> held.rewards.shape, len(held.rows)
    ((100, 2), 100)
    """

    rewards: pd.DataFrame = field(repr=False)
    outcomes: pd.DataFrame = field(repr=False)
    rows: np.ndarray = field(repr=False)
    groups: np.ndarray | None = field(repr=False)
    sample_weight: np.ndarray | None = field(repr=False)
    direction: str
    estimator: Any

    def predicted_gain(self, treatment: Any, baseline: Any) -> pd.Series:
        """Predict the gain of ``treatment`` over ``baseline``, (m,): larger is better, whatever the direction.

        Raises
        ------
        InputError
            If there is no such treatment.
        """
        for label in (treatment, baseline):
            if label not in self.outcomes.columns:
                known = ", ".join(map(str, self.outcomes.columns))
                raise InputError(f"There is no treatment {label!r}; the treatments are {known}.")
        sign = 1.0 if self.direction == "maximize" else -1.0
        return sign * (self.outcomes[treatment] - self.outcomes[baseline])


@refuses_said_by_study
@shares_documentation(STUDY)
def held_out_rewards(
    estimator: Any,
    Y: Column | StudyLike,
    T: Column | None = None,
    *,
    X: Table | None = None,
    W: Table | None = None,
    propensity: PerTreatment | None = None,
    groups: Column | None = None,
    sample_weight: Column | None = None,
    honest: float | Column = 0.5,
    random_state: Seed = None,
) -> HeldOutRewards:
    """Fit to some rows; estimate rewards and predict outcomes of the others with the fitted models.

    Honest rankings (:func:`policytree.evaluation.rank_average_treatment_effect`) and cost curves
    (:func:`policytree.evaluation.qini_curve`) need both: predictions to plan with, and scores that had no part in them.

    Parameters
    ----------
    estimator : RewardEstimator or DRPolicyTree
        Cloned, and fitted on the rows that learn. Its rewards are about everybody (``estimand="all"``): with an
        instrument, ``RewardEstimator(method="instrument")``, or a DRPolicyTree with that as its ``rewards``.
    honest : float in [0.1, 0.9], or array of shape (n,) of bool, or of row positions
        The share of rows that judge (to the nearest fraction with a denominator of at most ten), drawn in balance over
        treatments, no cluster divided; or which rows, such as ``rows`` of another such result.
    random_state : int, RandomState or None
        Draws the rows.

    Returns
    -------
    HeldOutRewards

    Raises
    ------
    InputError
        If an argument cannot be used, or one side lacks a treatment.

    Examples
    --------
    >>> import numpy as np
    >>> from policytree import RewardEstimator, held_out_rewards
    >>> from policytree.evaluation import rank_average_treatment_effect
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(800, 2))
    >>> T = rng.integers(2, size=800)
    >>> Y = X[:, 0] * T + rng.normal(size=800)
    >>> held = held_out_rewards(RewardEstimator(random_state=0), Y, T, X=X, propensity=0.5, random_state=0)
    >>> ranking = rank_average_treatment_effect(held.predicted_gain(1, 0), held)
    >>> bool(ranking.estimate.lower > 0)
    True
    """
    seen = StudyData.read(
        "held_out_rewards", Y, T=T, X=X, W=W, propensity=propensity, groups=groups, sample_weight=sample_weight
    ).with_covariates()
    estimator = with_direction(estimator, seen.direction)
    direction = checked_direction(estimator)
    _refuse_other_populations(estimator, seen)
    data = Data(replace(seen, sample_treatment_costs=None, budget_costs=None, outcomes=None, subgroups=None), direction)
    judging = judging_rows(honest, seen, random_state)
    rows = np.flatnonzero(judging)
    fitted = fit_finished(estimator, data, np.flatnonzero(~judging))
    outcomes = getattr(fitted, "reward_estimator_", fitted).predict_outcomes(**data.covariates(rows))
    outcomes = columns_by_label(outcomes, seen.treatments).to_numpy()
    frame = pd.DataFrame(outcomes, index=seen.index[rows], columns=seen.treatments)
    groups, weight = rows_of(seen, rows)
    return HeldOutRewards(data.held_out_rewards(fitted, rows), frame, rows, groups, weight, direction, fitted)


def _refuse_other_populations(estimator: Any, seen: StudyData) -> None:
    """Shares of people and budgets count everybody; rewards of the treated, or of compliers, do not."""
    offered = seen.instrument is not None
    rewards = estimator._reward_estimator(offered) if isinstance(estimator, DRPolicyTree) else estimator
    estimand = getattr(rewards, "estimand", "all")
    if estimand == "all":
        return
    everybody = "RewardEstimator(method='instrument')" if offered else "estimand='all'"
    raise InputError(
        f"estimator is about others than everybody (estimand={estimand!r}), but rankings and budgets count everybody; "
        f"use {everybody}."
    )


def rows_of(seen: StudyData, rows: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Clusters and weights of these rows."""
    return tuple(None if part is None else part[rows] for part in (seen.groups, seen.sample_weight))  # type: ignore[return-value]


def judging_rows(honest, seen: StudyData, random_state) -> np.ndarray:
    """Mask of the rows that judge, shape (n,)."""
    if isinstance(honest, Real) and not isinstance(honest, bool):
        if not 0.1 <= float(honest) <= 0.9:
            raise InputError(f"honest must be a share from 0.1 to 0.9, or rows; got {quoted(honest)}.")
        share = Fraction(float(honest)).limit_denominator(10)  # parts of equal size, balanced over treatments
        folds = seen.folds(share.denominator, generator(random_state))
        return folds.fold < share.numerator
    given = np.asarray(honest)
    if given.dtype == bool and given.shape == (seen.n,):
        mask = given.copy()
    elif given.ndim == 1 and given.dtype.kind in "iu" and len(given) and given.min() >= 0 and given.max() < seen.n:
        if len(np.unique(given)) < len(given):
            raise InputError("honest names some row positions more than once; a mask must be of booleans, not 0 and 1.")
        mask = np.zeros(seen.n, dtype=bool)
        mask[given] = True
    else:
        raise InputError(
            f"honest must be a share between 0 and 1, {seen.n} booleans or row positions; got {quoted(honest)}."
        )
    _refuse_divided(mask, seen)
    return mask


def _refuse_divided(mask: np.ndarray, seen: StudyData) -> None:
    """Both sides need every treatment, and no cluster may be on both."""
    for side, name in ((mask, "that judge"), (~mask, "that learn")):
        own = side if seen.study is None else side & seen.study
        if seen.study is not None and not (side & ~seen.study).any():
            raise InputError(f"honest leaves nobody of the target among those {name}.")
        lacking = np.flatnonzero(np.bincount(seen.arm[own], minlength=seen.n_arms) == 0)
        if len(lacking):
            raise InputError(f"honest leaves no row of treatment {seen.treatments[lacking[0]]!s} among those {name}.")
    if seen.groups is not None and np.intersect1d(seen.groups[mask], seen.groups[~mask]).size:
        raise InputError("honest puts rows of one cluster on both sides; keep clusters whole.")
