"""Plug-in rewards from a fitted effect estimator of EconML or CausalML, with EconML's own inference kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from policytree.common.typing import Table
from policytree.common.validation import check_level, sorted_labels
from policytree.data.views import Shown
from policytree.exceptions import InputError


@dataclass(frozen=True, slots=True, repr=False)
class CateEffects(Shown):
    """Conditional average effects of every treatment against the reference.

    Attributes
    ----------
    effects : DataFrame of shape (n, K)
        Zero in the reference's column; outcome's unit; columns are the sorted labels.
    reference : label
        The treatment that effects are measured against (EconML's first category, CausalML's ``control_name``).
    standard_errors, lower, upper : DataFrame of shape (n, K), or None
        EconML's pointwise inference; None if the estimator was fitted without. Zero in the reference's column.
    level : float
        Coverage of ``lower`` to ``upper``.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> from policytree.weighting import cate_effects
    >>> forest = SimpleNamespace(  # in place of a fitted estimator of EconML
    ...     transformer=SimpleNamespace(categories_=[["none", "drug"]]),
    ...     const_marginal_effect=lambda X: np.where(X > 50, 1.0, -1.0),
    ...     const_marginal_effect_inference=lambda X: SimpleNamespace(
    ...         point_estimate=np.where(X > 50, 1.0, -1.0), stderr=0.1 * np.ones(X.shape),
    ...         conf_int=lambda alpha: (np.where(X > 50, 0.8, -1.2), np.where(X > 50, 1.2, -0.8)),
    ...     ),
    ... )
    >>> effects = cate_effects(forest, np.array([[30.0], [70.0]]))
    >>> effects.reference, effects.lower["drug"].tolist()
    (np.str_('none'), [-1.2, 0.8])
    """

    effects: pd.DataFrame
    reference: object
    standard_errors: pd.DataFrame | None
    lower: pd.DataFrame | None
    upper: pd.DataFrame | None
    level: float


def _is_metalearner(estimator) -> bool:
    """Whether it is a fitted metalearner of CausalML."""
    return all(hasattr(estimator, name) for name in ("t_groups", "control_name", "predict"))


def _effects(estimator, X) -> np.ndarray:
    """Effects against the reference, as the estimator gives them."""
    if not _is_metalearner(estimator):
        return estimator.const_marginal_effect(X)
    return estimator.predict(X if isinstance(X, np.ndarray | pd.DataFrame) else np.asarray(X))


def _categories(estimator) -> np.ndarray:
    """Labels of treatments, the reference first."""
    if _is_metalearner(estimator):
        return np.array([estimator.control_name, *estimator.t_groups])
    if not hasattr(estimator, "const_marginal_effect"):
        raise InputError(
            f"{type(estimator).__name__} is not a fitted EconML effect estimator or CausalML metalearner: it has no "
            "const_marginal_effect."
        )
    transformer = getattr(estimator, "transformer", None)
    categories = getattr(transformer, "categories_", None)
    if categories is None:
        raise InputError(
            f"{type(estimator).__name__} was not fitted with discrete treatments; fit it with discrete_treatment=True."
        )
    return np.asarray(categories[0])


def _with_reference(values, n: int, categories: np.ndarray, index) -> pd.DataFrame:
    """(n, K) frame from EconML's (n, K - 1) or (n, 1, K - 1) effects, columns sorted."""
    values = np.asarray(values, dtype=np.float64)
    n_effects = len(categories) - 1
    if values.ndim == 1:  # estimators that drop the axis of a single treatment
        values = values[:, None]
    if values.ndim == 3 and values.shape[1] == 1:  # one outcome
        values = values[:, 0]
    if values.shape != (n, n_effects):
        raise InputError(
            f"The estimator gives effects of shape {values.shape}, not ({n}, {n_effects}); fit it on one outcome "
            "column and pass the X it was fitted on."
        )
    frame = pd.DataFrame(np.column_stack([np.zeros(n), values]), index=index, columns=categories)
    return frame[sorted_labels(categories)]


def cate_effects(estimator: Any, X: Table, *, level: float = 0.95) -> CateEffects:
    """Effects of all treatments for the rows of ``X``, with standard errors and intervals where EconML has them.

    Parameters
    ----------
    estimator : fitted estimator of effects of discrete treatments
        EconML's CausalForestDML, LinearDML, DRLearner, metalearners, ...; CausalML's metalearners, without inference.
    X : table of shape (n, p)
        The effect modifiers the estimator was fitted with; rows it has not seen, if their effects are to be judged.
    level : float in (0, 1)

    Returns
    -------
    CateEffects

    Raises
    ------
    InputError
        If the estimator is no effect estimator, or was not fitted with discrete treatments and one outcome.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> from policytree.weighting import cate_effects
    >>> forest = SimpleNamespace(  # in place of a fitted estimator of EconML
    ...     transformer=SimpleNamespace(categories_=[["none", "drug"]]),
    ...     const_marginal_effect=lambda X: np.where(X > 50, 1.0, -1.0),
    ...     const_marginal_effect_inference=lambda X: SimpleNamespace(
    ...         point_estimate=np.where(X > 50, 1.0, -1.0), stderr=0.1 * np.ones(X.shape),
    ...         conf_int=lambda alpha: (np.where(X > 50, 0.8, -1.2), np.where(X > 50, 1.2, -0.8)),
    ...     ),
    ... )
    >>> cate_effects(forest, np.array([[30.0], [70.0]])).effects
       drug  none
    0  -1.0   0.0
    1   1.0   0.0
    """
    check_level(level)
    categories = _categories(estimator)
    n, index = np.shape(X)[0], getattr(X, "index", None)

    def frame(values):
        return _with_reference(values, n, categories, index)

    try:
        inference = estimator.const_marginal_effect_inference(X)
    except AttributeError as error:  # EconML's way to say that the estimator was fitted without inference
        if "inference" not in str(error):
            raise
        effects = frame(_effects(estimator, X))
        return CateEffects(effects, categories[0], None, None, None, level)
    lower, upper = inference.conf_int(alpha=1.0 - level)
    return CateEffects(
        frame(inference.point_estimate), categories[0], frame(inference.stderr), frame(lower), frame(upper), level
    )


def plug_in_rewards(cate_estimator: Any, X: Table) -> pd.DataFrame:
    """Each treatment's estimated effect against the reference, whose column is zero: (n, K)."""
    categories = _categories(cate_estimator)
    return _with_reference(_effects(cate_estimator, X), np.shape(X)[0], categories, getattr(X, "index", None))
