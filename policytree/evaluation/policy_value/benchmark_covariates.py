"""Nuisances without some covariates: what the omission of these would have done, as a measure for what is omitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
from sklearn.base import clone

from policytree.common.calls import StudyLike, refuses_said_by_study
from policytree.common.docstrings import shares_documentation
from policytree.common.shared_arguments import STUDY
from policytree.common.typing import Column, PerTreatment, Table
from policytree.data.feature_encoder import as_pandas
from policytree.exceptions import InputError
from policytree.weighting.reward_arguments import is_instrumental
from policytree.weighting.reward_estimator import RewardEstimator
from policytree.weighting.study_data import StudyData


@refuses_said_by_study
@shares_documentation(STUDY)
def nuisances_without(
    estimator: Any,
    Y: Column | StudyLike,
    T: Column | None = None,
    *,
    X: Table | None = None,
    covariates: Sequence[Any] | Mapping[str, Sequence[Any]],
    W: Table | None = None,
    propensity: PerTreatment | None = None,
    sample_weight: Column | None = None,
    groups: Column | None = None,
) -> dict[str, tuple[pd.DataFrame, pd.DataFrame]]:
    """Cross-fit the nuisances again without each covariate, for ``benchmarks`` of :func:`omitted_variable_bounds`.

    Parameters
    ----------
    estimator : RewardEstimator, or fitted DRPolicyTree
        Cloned; give it a ``random_state``, so that folds are the same with and without a covariate. A tree's
        ``reward_estimator_`` is used.
    propensity : optional
        Known assignment probabilities; no covariate changes them.
    covariates : sequence of column names, or mapping of str to column names
        Columns of ``X`` or ``W`` to leave out, one at a time; of a mapping, all columns of an entry together.

    Returns
    -------
    dict of str to (DataFrame, DataFrame)
        ``propensity_`` and ``regression_``, each of shape (n, K), by the name of what was left out.

    Raises
    ------
    InputError
        If there is no such column, or the estimator's method has not both nuisances.

    Examples
    --------
    >>> import numpy as np
    >>> from policytree import RewardEstimator
    >>> from policytree.evaluation import nuisances_without
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(20, 80, size=(200, 1))
    >>> T = rng.permutation(np.repeat(["drug", "none"], 100))
    >>> Y = (T == "drug") * np.where(X[:, 0] > 50, 1.0, -1.0) + rng.normal(size=200)
    >>> model = RewardEstimator(cv=2, random_state=0)
    >>> without = nuisances_without(model, Y, T, X=X, covariates=[0], propensity=0.5)
    >>> list(without)
    ['0']
    """
    data = StudyData.read(
        "nuisances_without", Y, T=T, X=X, W=W, propensity=propensity, groups=groups, sample_weight=sample_weight
    ).with_covariates()
    estimator = getattr(estimator, "reward_estimator_", estimator)
    if not isinstance(estimator, RewardEstimator):
        raise InputError(
            f"{type(estimator).__name__} is no RewardEstimator; pass one, or a fitted DRPolicyTree, whose own is used."
        )
    if is_instrumental(estimator) or data.instrument is not None:
        raise InputError(
            "Bounds for omitted covariates know no instrument, whose probabilities are those of offers; pass the "
            "offers as T, or use exclusion_sensitivity."
        )
    if data.study is not None:
        raise InputError(
            "Bounds for omitted covariates are of the study; leave the target out, or use transport_sensitivity."
        )
    if isinstance(covariates, str):
        raise InputError(f"covariates must be a list of columns; write [{covariates!r}].")
    named = covariates if isinstance(covariates, Mapping) else {str(name): [name] for name in covariates}
    return {name: nuisances_of(each) for name, each in estimators_without(estimator, named, data).items()}


def estimators_without(
    estimator: RewardEstimator, named: Mapping[str, Any], data: StudyData
) -> dict[str, RewardEstimator]:
    """Clones fitted without some columns each, by the name of what was left out."""
    tables = {name: frame_of(table) for name, table in (("X", data.X), ("W", data.W)) if table is not None}
    return {
        name: clone(estimator).fit(
            replace(data, **_without(tables, [columns] if isinstance(columns, str) else columns))
        )
        for name, columns in named.items()
    }


def nuisances_of(fitted: RewardEstimator) -> tuple[pd.DataFrame, pd.DataFrame]:
    """``propensity_`` and ``regression_``.

    Raises
    ------
    InputError
        If one of them was not needed.
    """
    if fitted.propensity_ is None or fitted.regression_ is None:
        raise InputError(f"method={fitted.method!r} has not both nuisances; use method='dr'.")
    return fitted.propensity_, fitted.regression_


def frame_of(table: Table) -> pd.DataFrame:
    """The table as a frame; columns of an array are called 0, 1, ... ."""
    frame = as_pandas(table)
    return pd.DataFrame(table) if frame is None else frame


def _without(tables: dict[str, pd.DataFrame], columns: Sequence[Any]) -> dict[str, Any]:
    known = [column for frame in tables.values() for column in frame.columns]
    for column in columns:
        if column not in known:
            raise InputError(f"covariates names {column!r}, which is no column; they are {', '.join(map(str, known))}.")
    left = {name: frame.drop(columns=[c for c in columns if c in frame.columns]) for name, frame in tables.items()}
    return {name: frame if frame.shape[1] else None for name, frame in left.items()}
