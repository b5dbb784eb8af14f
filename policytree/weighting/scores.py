"""Rewards from fitted estimators of other libraries: doubly robust scores that they hold, or predicted effects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from policytree.common.row_labels import aligns_rows
from policytree.common.typing import PerTreatment, Table
from policytree.common.validation import columns_by_label, sorted_labels
from policytree.exceptions import InputError
from policytree.weighting.cate import plug_in_rewards
from policytree.weighting.costs import subtract_costs


def _name(estimator) -> str:
    return type(estimator).__name__


def _of_potential_outcomes(model) -> tuple[np.ndarray, list]:
    """DoubleMLAPOS: a score a level, of the mean outcome if everybody had it."""
    scores = [_mean_score(level) for level in model.modellist]
    return np.column_stack(scores), list(model.treatment_levels)


def _of_interactive_regression(model) -> tuple[np.ndarray, list]:
    """DoubleMLIRM: the score of the effect of treatment 1 against 0."""
    if model.score != "ATE":
        raise InputError(f"{_name(model)} has the score {model.score!r}; fit it with score='ATE'.")
    effect = _mean_score(model)
    return np.column_stack([np.zeros(len(effect)), effect]), [0, 1]


def _mean_score(model) -> np.ndarray:
    """(n,) the score that is free of the parameter, averaged over the repetitions of sample splitting."""
    elements = model.psi_elements
    if elements is None or np.isnan(elements["psi_b"]).any():
        raise InputError(f"{_name(model)} is not fitted; call its fit().")
    if not np.all(elements["psi_a"] == -1.0):
        raise InputError(f"{_name(model)} was fitted with weights; fit it without, so that each score is of one row.")
    return np.asarray(elements["psi_b"], dtype=np.float64)[:, :, 0].mean(axis=1)


def _cached(estimator):
    """Return EconML's cached predictions of its cross-fitted nuisance models."""
    cached = getattr(estimator, "_cached_values", None)
    if cached is None:
        raise InputError(f"{_name(estimator)} kept no scores; fit it with cache_values=True.")
    return cached


def _of_doubly_robust_learner(estimator) -> tuple[np.ndarray, list]:
    """DRLearner and its kin: pseudo-outcomes of every treatment, the control first."""
    scores = np.asarray(_cached(estimator).nuisances[0], dtype=np.float64)
    return scores.reshape(len(scores), -1), list(_categories(estimator))


def _of_causal_forest(estimator) -> tuple[np.ndarray, list]:
    """CausalForestDML: augmented scores as grf makes them, of residuals and out-of-bag effects.

    With m the outcome's model, e the propensities and tau the effects against the control (whose effect is zero),
    treatment k has the outcome m + tau_k - sum of e_j tau_j, and the row's own treatment its residual over e.
    """
    categories, cached = _categories(estimator), _cached(estimator)
    y, t = (np.asarray(part, dtype=np.float64) for part in cached.nuisances)
    if y.ndim > 1 and y.size != len(y):
        raise InputError(f"{_name(estimator)} was fitted to several outcomes; fit it to one.")
    t = t.reshape(len(t), -1)
    taken = np.column_stack([~(t > 0).any(axis=1), t > 0])
    chances = np.where(taken[:, 1:], 1.0 - t, -t)
    chances = np.column_stack([1.0 - chances.sum(axis=1), chances])
    if (own := chances[taken]).min() <= 0.0:
        raise InputError(
            f"{_name(estimator)} predicts that row {int(np.argmin(own))} cannot have the treatment that it had; use a "
            "model_t whose probabilities stay above zero, or drop such rows."
        )
    features = cached.X if estimator.featurizer is None else estimator.featurizer_.transform(cached.X)
    effects = np.asarray(estimator.model_cate.oob_predict(features), dtype=np.float64).reshape(len(t), -1)
    effects = np.column_stack([np.zeros(len(t)), effects])
    centred = effects - (chances * effects).sum(axis=1, keepdims=True)
    scores = centred + np.where(taken, (y.reshape(-1, 1) - centred) / np.where(taken, chances, 1.0), 0.0)
    return scores - scores[:, :1], list(categories)


def _categories(estimator) -> np.ndarray:
    """Labels of treatments, the control first."""
    categories = getattr(getattr(estimator, "transformer", None), "categories_", None)
    if categories is None:
        raise InputError(f"{_name(estimator)} was not fitted with discrete treatments; use discrete_treatment=True.")
    return np.asarray(categories[0])


@aligns_rows
def rewards_from(
    estimator: Any, X: Table | None = None, *, sample_treatment_costs: PerTreatment | None = None
) -> pd.DataFrame:
    """Rewards from a fitted estimator of another library, so that nothing is fitted twice.

    Without ``X`` they are the doubly robust scores that the estimator holds, of the rows that it was fitted on; with
    ``X`` its predicted effects, of any rows. A tree learns from either. Predictions are smooth, no scores: an honest
    value needs doubly robust rewards.

    Parameters
    ----------
    estimator : fitted estimator
        With scores:

        - DoubleML's ``DoubleMLAPOS`` (any number of levels) and ``DoubleMLIRM`` (``score="ATE"``): the scores,
          averaged over repetitions of sample splitting.
        - EconML's ``DRLearner`` and its kin, fitted with ``cache_values=True``: the pseudo-outcomes.
        - EconML's ``CausalForestDML`` with ``discrete_treatment=True``, fitted with ``cache_values=True``: the
          scores that R's ``double_robust_scores`` makes of a causal forest, with out-of-bag effects.

        With effects: EconML's estimators of discrete treatments, and CausalML's metalearners.
    X : table of shape (n, p), optional
        Effect modifiers, as at the estimator's fit.
    sample_treatment_costs : optional
        Costs of treatments in the outcome's unit: a mapping from label, or an array of shape (K,) or (n, K).

    Returns
    -------
    DataFrame of shape (n, K)
        Columns are the sorted treatments, values are in the outcome's unit. Scores have a row for each row that the
        estimator was fitted on, in their order. ``DoubleMLAPOS`` and ``DRLearner`` give outcomes under every treatment;
        other scores, and effects, are gains over the control (EconML's first category, CausalML's ``control_name``),
        whose column is zero before costs: the best tree is the same, and its value is a gain.

    Raises
    ------
    InputError
        If the estimator holds no such scores (it says which argument of its ``fit`` keeps them), is no effect
        estimator, or was not fitted with discrete treatments and one outcome.

    See Also
    --------
    RewardEstimator : Rewards from outcomes, treatments and covariates.
    policytree.weighting.cate_effects : Effects with the standard errors and intervals of EconML.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> from policytree import rewards_from
    >>> def level(scores):  # in place of a fitted DoubleMLAPO
    ...     scores = np.reshape(scores, (-1, 1, 1))
    ...     return SimpleNamespace(psi_elements={"psi_a": -np.ones_like(scores), "psi_b": scores})
    >>> apos = SimpleNamespace(modellist=[level([1.0, 2.0]), level([3.0, -1.0])], treatment_levels=["none", "drug"])
    >>> rewards_from(apos)
       drug  none
    0   3.0   1.0
    1  -1.0   2.0
    >>> forest = SimpleNamespace(  # in place of a fitted estimator of EconML
    ...     transformer=SimpleNamespace(categories_=[["none", "drug"]]),
    ...     const_marginal_effect=lambda X: np.where(X > 50, 1.0, -1.0),
    ... )
    >>> rewards_from(forest, np.array([[30.0], [70.0]]))
       drug  none
    0  -1.0   0.0
    1   1.0   0.0
    """
    rewards = _held_scores(estimator) if X is None else plug_in_rewards(estimator, X)
    return rewards if sample_treatment_costs is None else subtract_costs(rewards, sample_treatment_costs)


def _held_scores(estimator: Any) -> pd.DataFrame:
    """The doubly robust scores of the rows that an estimator was fitted on, (n, K)."""
    if hasattr(estimator, "modellist") and hasattr(estimator, "treatment_levels"):
        scores, labels = _of_potential_outcomes(estimator)
    elif hasattr(estimator, "psi_elements") and {"ml_g0", "ml_g1"} <= set(getattr(estimator, "params_names", ())):
        scores, labels = _of_interactive_regression(estimator)
    elif hasattr(estimator, "models_propensity"):
        scores, labels = _of_doubly_robust_learner(estimator)
    elif hasattr(getattr(estimator, "model_cate", None), "oob_predict"):
        scores, labels = _of_causal_forest(estimator)
    else:
        raise InputError(
            f"{_name(estimator)} holds no doubly robust scores that are known here; pass a fitted DoubleMLAPOS, "
            "DoubleMLIRM, DRLearner or CausalForestDML (EconML's with cache_values=True), or X for predicted effects."
        )
    if not np.isfinite(scores).all():
        raise InputError(f"{_name(estimator)} has scores that are not finite; clip its propensities and fit it again.")
    return columns_by_label(pd.DataFrame(scores, columns=labels), sorted_labels(np.asarray(labels)))
