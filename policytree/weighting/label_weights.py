"""Weights and losses for labelled data without treatments: inverse propensity of a feature, costs."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from policytree.common.row_labels import aligns_rows
from policytree.common.typing import Column, Seed, Table
from policytree.common.validation import (
    as_numbers,
    as_series,
    sorted_labels,
    treatment_codes,
    weights,
)
from policytree.data.feature_encoder import as_pandas
from policytree.exceptions import InputError, quoted
from policytree.model_selection.crossfit import cross_fit_probabilities
from policytree.model_selection.folds import make_folds
from policytree.weighting.covariates import Covariates
from policytree.weighting.nuisances import resolve_propensity


@aligns_rows
def feature_propensity_weights(
    feature: Column,
    X: Table,
    *,
    model: Any = "auto",
    min_propensity: float = 0.01,
    cv: Any = 5,
    random_state: Seed = None,
    sample_weight: Column | None = None,
) -> np.ndarray:
    """One over the estimated probability of each row's value of one feature, given the others.

    The weighting of Behrouz, Lecuyer, Rudin & Seltzer (2022, arXiv:2210.06825) for data sets without a treatment: a
    binary feature stands in for it. Probabilities are out of fold.

    Parameters
    ----------
    feature : column of n values
        The feature that plays the treatment; few distinct values.
    X : table of shape (n, p)
        The other features, without ``feature``.
    model : "auto" or scikit-learn classifier
    min_propensity : float
        Probabilities below are raised to it.
    cv, random_state
        Folds, as in :func:`policytree.model_selection.folds.make_folds`.
    sample_weight : column of n numbers, optional
        Survey weights: they reach the model and are multiplied into the result.

    Returns
    -------
    ndarray of shape (n,), float64, > 0

    Raises
    ------
    InputError
        If values are missing, only one occurs, or some occur less often than there are folds.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from policytree.weighting import feature_propensity_weights
    >>> rng = np.random.default_rng(0)
    >>> X, feature = rng.normal(size=(100, 1)), rng.integers(2, size=100)
    >>> weights = feature_propensity_weights(feature, X, model=LogisticRegression(), cv=2, random_state=0)
    >>> weights.shape
    (100,)
    """
    if X is None:
        raise InputError("X is missing; pass the other features, from which the feature is to be predicted.")
    if not isinstance(min_propensity, Real) or not 0.0 <= min_propensity < 1.0:
        raise InputError(f"min_propensity must lie in [0, 1); got {quoted(min_propensity)}.")
    codes, values = treatment_codes(feature, argument="feature", what="value")
    w = weights(sample_weight, len(codes))
    covariates = Covariates.fit(X)
    Z = covariates.matrix(X, None, len(codes))
    folds = make_folds(
        len(codes), cv, strata=codes, stratum_names=values, random_state=random_state, what="Feature value"
    )
    fit = cross_fit_probabilities(resolve_propensity(model, True), Z, codes, len(values), folds, sample_weight=w)
    own = fit.predictions[np.arange(len(codes)), codes]
    out = 1.0 / np.maximum(own, min_propensity)
    return out if w is None else out * w


@aligns_rows
def cost_matrix_losses(
    y: Column, costs: Table | Mapping | None, *, sample_weight: Column | None = None
) -> pd.DataFrame:
    """Losses of every prediction for every row, from a matrix of misclassification costs.

    Parameters
    ----------
    y : column of n labels
        True classes.
    costs : DataFrame, array of shape (K, K), or mapping
        Cost of predicting the column's class when the row's class is true; labels sorted for arrays. A mapping
        ``{(true, predicted): cost}`` leaves what it does not name at zero.
    sample_weight : column of n numbers, optional
        Multiplied in.

    Returns
    -------
    DataFrame of shape (n, K)
        Columns are the classes that can be predicted. Minimise it, or negate it as rewards.

    Raises
    ------
    InputError
        If a true class has no row of costs, or costs are no finite numbers.

    Examples
    --------
    >>> from policytree.weighting.label_weights import cost_matrix_losses
    >>> missed = {("ill", "well"): 10.0, ("well", "ill"): 1.0}
    >>> cost_matrix_losses(["ill", "well"], missed)
       ill  well
    0  0.0  10.0
    1  1.0   0.0
    """
    series = as_series(y, "y").rename("y")
    table = cost_table(costs, sorted_labels(series.to_numpy()))
    losses = losses_by_table(series, table)
    w = weights(sample_weight, len(losses))
    return pd.DataFrame(losses if w is None else losses * w[:, None], index=series.index, columns=table.columns)


def losses_by_table(y: Column, table: pd.DataFrame) -> np.ndarray:
    """Losses of every prediction for every row, (n, K), by a table whose index has the true classes."""
    codes, _ = treatment_codes(y, treatments=table.index.to_numpy(), argument="y", what="class")
    losses = as_numbers(table.to_numpy(), "costs")[codes]
    if not np.isfinite(losses).all():
        raise InputError("costs holds missing or infinite values; give a finite cost for every class and prediction.")
    return losses


def cost_table(costs: Table | Mapping | None, labels: np.ndarray) -> pd.DataFrame:
    """Costs of :func:`cost_matrix_losses` as a table with the true classes in its index."""
    if isinstance(costs, pd.DataFrame):
        for axis, names in (("row", costs.index), ("column", costs.columns)):
            if not names.is_unique:
                raise InputError(f"costs has more than one {axis} {names[names.duplicated()][0]!s}; keep one of each.")
        return costs
    if as_pandas(costs) is not None:
        raise InputError("costs has columns but no row labels; pass a pandas DataFrame with the true classes as index.")
    if isinstance(costs, Mapping):
        return _cost_table_of_pairs(costs, labels)
    values = as_numbers(costs, "costs")
    if values.shape != (len(labels), len(labels)):
        raise InputError(f"costs has shape {values.shape}; with {len(labels)} classes it must be square of that size.")
    return pd.DataFrame(values, index=labels, columns=labels)


def _cost_table_of_pairs(costs: Mapping, labels: np.ndarray) -> pd.DataFrame:
    table = pd.DataFrame(0.0, index=labels, columns=labels)
    for pair, cost in costs.items():
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise InputError(f"costs must map pairs (true class, predicted class) to numbers; got the key {pair!r}.")
        unknown = [str(k) for k in pair if k not in set(labels)]
        if unknown:
            raise InputError(f"costs names the class {unknown[0]}, which does not occur in y.")
        value = as_numbers(cost, "costs")
        if value.ndim:
            raise InputError(f"costs must give one number for the pair {pair!r}; got {quoted(cost)}.")
        table.loc[pair] = float(value)
    return table
