"""Rewards and policies as arrays: what the functions of this folder ask of their arguments."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from sklearn.utils import check_random_state

from policytree.common.validation import as_series, check_choice, columns_by_label, group_codes, weights
from policytree.estimators.inputs import check_seed
from policytree.evaluation.estimates import DIRECTIONS
from policytree.exceptions import InputError, quoted
from policytree.weighting.study_data import StudyData

SUM_TOLERANCE = 1e-6
FEWEST_UNITS = 10  # rows, or clusters, that a bootstrap or half-samples need for a standard error


def fitted_by_offers(estimator: Any) -> Any:
    """The RewardEstimator of an estimator that was fitted with an instrument."""
    fitted = getattr(estimator, "reward_estimator_", estimator)
    if getattr(fitted, "offers_", None) is None:
        raise InputError("estimator was fitted without an instrument; fit it to a study with treatment=Offered(...).")
    return fitted


def refuse_instrument(seen: StudyData, what: str) -> None:
    """Refuse what is about treatments whose probabilities are known given the covariates."""
    if seen.instrument is not None:
        raise InputError(
            f"{what} knows no instrument, with which people choose treatments for reasons that are not seen; judge "
            "the offers themselves by passing the instrument as T."
        )


def check_direction(direction: str) -> None:
    """Refuse any direction other than "maximize" and "minimize"."""
    check_choice(direction, "direction", DIRECTIONS)


def rows_arguments(groups, sample_weight, n: int) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Cluster codes and weights, one per row of the rewards."""
    for values, name in ((groups, "groups"), (sample_weight, "sample_weight")):
        if values is not None:
            column(values, name, n)
    return group_codes(groups, n), weights(sample_weight, n)


def units_with_weight(clusters: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, int]:
    """The unit of every row, 0, 1, ... in the order of their clusters and -1 for rows without weight; how many."""
    used, position = np.unique(clusters[weight > 0], return_inverse=True)
    unit = np.full(len(clusters), -1)
    unit[weight > 0] = position
    return unit, len(used)


def column(values, name: str, n: int) -> np.ndarray:
    """A column of ``n`` values without missing ones."""
    series = as_series(values, name)
    if len(series) != n:
        raise InputError(f"{name} has {len(series)} rows, but rewards has {n}; give one value per row.")
    if series.isna().any():
        raise InputError(
            f"{name} has missing values, the first in row {int(series.isna().argmax())}; leave such rows out."
        )
    return series.to_numpy()


def reward_frame(rewards, argument: str = "rewards") -> pd.DataFrame:
    """Rewards as a float64 frame whose columns are the labels; refuses what cannot be averaged."""
    table = labelled_table(rewards)
    if table is None:
        array = np.asarray(rewards)
        if array.ndim != 2:
            raise InputError(f"{argument} must have one column per treatment, shape (n, K); got shape {array.shape}.")
        table = pd.DataFrame(array)
    if table.shape[0] == 0 or table.shape[1] < 2:
        raise InputError(f"{argument} must have rows and at least two treatments; got shape {table.shape}.")
    if not table.columns.is_unique:
        twice = table.columns[table.columns.duplicated()][0]
        raise InputError(f"{argument} has two columns named {twice!s}; rename one.")
    try:
        table = table.astype(np.float64)
    except OverflowError as error:
        raise InputError(f"{argument} holds integers that no floating-point number can be; divide them.") from error
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{argument} holds values that are not numbers; give numbers in the outcome's unit."
        ) from error
    bad = np.argwhere(~np.isfinite(table.to_numpy()))
    if len(bad):
        row, k = bad[0]
        what = "The reward" if argument == "rewards" else f"{argument}: the value"
        raise InputError(f"{what} of treatment {table.columns[k]!s} is missing or infinite in row {row}; leave it out.")
    return table


def labelled_table(table) -> pd.DataFrame | None:
    """Return a pandas or polars table as pandas; None for anything without column names."""
    if isinstance(table, pd.DataFrame):
        return table  # as it is: narwhals wants text for column names
    native = nw.from_native(table, eager_only=True, pass_through=True)
    return pd.DataFrame(native.to_numpy(), columns=native.columns) if isinstance(native, nw.DataFrame) else None


def known_label(label: Any, labels: list, argument: str) -> Any:
    """The label as the data write it (0 may be 0.0); refuses labels that the data do not have."""
    for known in labels:
        if np.ndim(label) == 0 and known == label:
            return known
    raise InputError(f"{argument} is {quoted(label)}; the treatments are {', '.join(map(str, labels))}.")


def policy_scores(policy, rewards: pd.DataFrame, argument: str) -> np.ndarray:
    """Reward of every row under the policy, shape (n,)."""
    values = rewards.to_numpy()
    if np.ndim(policy) == 2 and np.shape(policy) != (len(values), 1):
        return (_probabilities(policy, rewards, argument) * values).sum(axis=1)
    return values[np.arange(len(values)), arm_codes(policy, rewards.columns, len(values), argument)]


def policy_probabilities(policy, table: pd.DataFrame, argument: str, of: str) -> np.ndarray:
    """Probability of every treatment under the policy, shape (n, K); ``of`` is what messages call the table."""
    n, n_arms = table.shape
    if np.ndim(policy) == 2 and np.shape(policy) != (n, 1):
        return _probabilities(policy, table, argument, of)
    out = np.zeros((n, n_arms))
    out[np.arange(n), arm_codes(policy, table.columns, n, argument, of)] = 1.0
    return out


def arm_codes(policy, labels: pd.Index, n: int, argument: str, of: str = "rewards") -> np.ndarray:
    """Position of each row's recommended treatment among ``labels``, shape (n,)."""
    if np.ndim(policy) == 0:
        if not isinstance(policy, Hashable):
            raise InputError(f"{argument} must be a label, or one for every row; got a {type(policy).__name__}.")
        series = pd.Series([policy], dtype=object)
    else:
        series = as_series(policy, argument)
        if len(series) != n:
            raise InputError(f"{argument} has {len(series)} rows, but {of} has {n}; give one label per row, or one.")
    values = series.to_numpy(dtype=object)
    codes = labels.astype(object).get_indexer(pd.Index(values, dtype=object))
    if (codes < 0).any():
        unknown = values[codes < 0][0]
        known = ", ".join(map(str, labels))
        raise InputError(f"{argument} recommends {unknown!r}, which has no {of}; the treatments are {known}.")
    return np.broadcast_to(codes, n)


def _probabilities(policy, rewards: pd.DataFrame, argument: str, of: str = "rewards") -> np.ndarray:
    table = labelled_table(policy)
    if table is not None:
        if set(table.columns) != set(rewards.columns):
            raise InputError(f"{argument} must have the columns of {of}: {', '.join(map(str, rewards.columns))}.")
        policy = columns_by_label(table, rewards.columns)
    probabilities = np.asarray(policy, dtype=np.float64)
    if probabilities.shape != rewards.shape:
        raise InputError(f"{argument} has shape {probabilities.shape}, but {of} has {rewards.shape}; they must agree.")
    sums = probabilities.sum(axis=1)
    if not ((probabilities >= 0).all() and (np.abs(sums - 1) <= SUM_TOLERANCE).all()):
        raise InputError(f"{argument} must hold probabilities: none negative, and every row summing to one.")
    return probabilities


def generator(random_state) -> np.random.RandomState:
    """Return a generator for a seed, a RandomState or None; refuses anything else in one sentence."""
    check_seed(random_state)
    return check_random_state(random_state)
