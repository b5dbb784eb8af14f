"""What a policy is worth: values, paired differences and leaves, with standard errors from influence functions."""

from __future__ import annotations

from dataclasses import dataclass

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from scipy.stats import t as student_t

from policytree.checks import as_series, check_level, group_codes, weights
from policytree.exceptions import InputError

DIRECTIONS = ("maximize", "minimize")
SUM_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """A mean with its standard error and confidence interval, in the outcome's unit.

    Attributes
    ----------
    value : float
    standard_error : float
        NaN if there are fewer than two clusters.
    lower, upper : float
        Ends of the confidence interval.
    level : float
        Its coverage, for example 0.95.
    n : int
        Rows with positive weight.
    n_clusters : int
        Clusters with positive weight; equal to ``n`` without clusters.
    influence : ndarray of shape (n_rows,)
        Each row's influence on ``value``; they sum to zero. Subtract those of two estimates on the same rows to get the
        influence of their difference.
    """

    value: float
    standard_error: float
    lower: float
    upper: float
    level: float
    n: int
    n_clusters: int
    influence: np.ndarray

    def to_frame(self) -> pd.DataFrame:
        """One row with every attribute but the influence."""
        columns = ("value", "standard_error", "lower", "upper", "level", "n", "n_clusters")
        return pd.DataFrame({column: [getattr(self, column)] for column in columns})

    def __repr__(self) -> str:
        return (
            f"Estimate(value={self.value:.6g}, standard_error={self.standard_error:.3g}, "
            f"{100 * self.level:g}% interval [{self.lower:.6g}, {self.upper:.6g}], n={self.n}, "
            f"n_clusters={self.n_clusters})"
        )


def mean_estimate(scores, *, groups=None, sample_weight=None, level: float = 0.95) -> Estimate:
    """Weighted mean of per-row scores, with a cluster-robust standard error.

    With weights ``w`` and scores ``s`` the mean is ``m = sum(w s) / sum(w)`` and row ``i`` has the influence
    ``n w_i (s_i - m) / sum(w)``. Influences are summed within clusters; the variance is ``G / (G - 1)`` times the sum
    of the squared cluster sums, over ``n ** 2``: the sandwich variance of a regression on a constant, as statsmodels'
    ``cov_type="cluster"`` has it. Without clusters every row is its own. The interval takes Student's t with ``G - 1``
    degrees of freedom, not the normal: with few clusters normal intervals are too short.

    Parameters
    ----------
    scores : ndarray of shape (n,), float64
    groups : ndarray of shape (n,), int, optional
        Cluster codes.
    sample_weight : ndarray of shape (n,), optional
        Sampling weights, >= 0. Weight 2 counts a row twice in the mean, but stays one piece of evidence.
    level : float
        Coverage of the interval, between 0 and 1.

    Returns
    -------
    Estimate

    References
    ----------
    Liang and Zeger (1986), Biometrika 73(1), 13-22. Cameron and Miller (2015), Journal of Human Resources 50(2),
    317-372, section II.B.
    """
    check_level(level)
    n_rows = len(scores)
    weight = np.ones(n_rows) if sample_weight is None else sample_weight
    groups = np.arange(n_rows) if groups is None else groups
    total = weight.sum()
    value = float(weight @ scores / total)
    influence = n_rows * weight * (scores - value) / total
    n_clusters = len(np.unique(groups[weight > 0]))
    standard_error = half_width = np.nan
    if n_clusters >= 2:
        cluster_sums = np.bincount(groups, weights=influence)
        standard_error = float(np.sqrt(n_clusters / (n_clusters - 1) * (cluster_sums @ cluster_sums)) / n_rows)
        half_width = float(student_t.ppf(0.5 + level / 2, n_clusters - 1)) * standard_error
    n = int((weight > 0).sum())
    return Estimate(value, standard_error, value - half_width, value + half_width, level, n, n_clusters, influence)


def policy_value(policy, rewards, *, groups=None, sample_weight=None, level: float = 0.95) -> Estimate:
    """Value of a policy: the mean reward if everybody got what it recommends.

    Honest only if the rewards of a row, and the policy, come from models that have not seen the row: use held-out data,
    or :func:`policytree.cross_val_policy_value`.

    Parameters
    ----------
    policy : array of shape (n,), one label, or array of shape (n, K)
        The recommended treatment of every row, one treatment for all, or the probability of each treatment (columns as
        in ``rewards``; a frame's columns are matched by name).
    rewards : DataFrame or array of shape (n, K)
        Reward of every row under every treatment, in the outcome's unit, for example from
        :class:`policytree.RewardEstimator`. Columns are the treatment labels; those of an array are 0, ..., K - 1.
        Rows are matched to ``policy`` by position.
    groups : array of shape (n,), optional
        Clusters, such as persons with several rows.
    sample_weight : array of shape (n,), optional
        Sampling weights, >= 0.
    level : float
        Coverage of the interval.

    Returns
    -------
    Estimate

    Raises
    ------
    InputError
        If the policy names a treatment without rewards, shapes differ, values are missing or infinite, probabilities
        are no probabilities, or there are fewer than two clusters.

    References
    ----------
    Dudik, Langford and Li (2011), Doubly robust policy evaluation and learning, ICML. Athey and Wager (2021),
    Econometrica 89(1), 133-161.
    """
    table = _reward_frame(rewards)
    scores = _policy_scores(policy, table, "policy")
    return _checked_estimate(scores, groups, sample_weight, level)


def policy_difference(a, b, rewards, *, groups=None, sample_weight=None, level: float = 0.95) -> Estimate:
    """Value of policy ``a`` minus value of policy ``b`` on the same rows.

    Paired: the influence functions are subtracted, so rows on which both agree add no noise.

    Parameters
    ----------
    a, b : policies
        In any form that :func:`policy_value` takes.
    rewards, groups, sample_weight, level
        As in :func:`policy_value`.

    Returns
    -------
    Estimate

    Raises
    ------
    InputError
        As :func:`policy_value`.
    """
    table = _reward_frame(rewards)
    scores = _policy_scores(a, table, "a") - _policy_scores(b, table, "b")
    return _checked_estimate(scores, groups, sample_weight, level)


def leaf_summary(
    leaves, policy, rewards, *, groups=None, sample_weight=None, direction: str = "maximize"
) -> pd.DataFrame:
    """Who is in each leaf, what they get, and what each treatment would be worth there.

    Parameters
    ----------
    leaves : array of shape (n,)
        Leaf of every row, from a tree's ``apply``.
    policy : array of shape (n,), or one label
        The treatment recommended to every row, from its ``predict``; the same for all rows of a leaf.
    rewards, groups, sample_weight
        As in :func:`policy_value`. On the rows the tree was grown on, the chosen arm's value is flattered.
    direction : {"maximize", "minimize"}
        Which way rewards are better; it decides the second-best arm.

    Returns
    -------
    DataFrame
        One row per leaf, sorted by leaf id; two column levels. ``("n", "")``: rows. ``("share", "")``: share of the
        total weight. ``("arm", "")``: the chosen arm. ``("second_best", "")``: the best other arm. ``("value", arm)``,
        ``("standard_error", arm)``: every arm's value. ``("gain", "value")`` and ``("gain", "standard_error")``: the
        chosen arm's value minus the second best's (paired; negative is better when minimising). Standard errors are
        cluster-robust within the leaf, and NaN where a leaf holds fewer than two clusters.

    Raises
    ------
    InputError
        As :func:`policy_value`, and if a leaf gives more than one treatment, or has no weight.
    """
    if direction not in DIRECTIONS:
        raise InputError(f"direction must be 'maximize' or 'minimize'; got {direction!r}.")
    table = _reward_frame(rewards)
    arm = _arm_codes(policy, table.columns, len(table), "policy")
    codes, weight = _rows_arguments(groups, sample_weight, len(table))
    weight = np.ones(len(table)) if weight is None else weight
    ids, leaf_of = np.unique(_column(leaves, "leaves", len(table)), return_inverse=True)
    records = {}
    for position, leaf in enumerate(ids):
        rows = np.flatnonzero(leaf_of == position)
        chosen = np.unique(arm[rows])
        if len(chosen) > 1:
            names = ", ".join(str(table.columns[k]) for k in chosen)
            raise InputError(f"policy gives leaf {leaf} more than one treatment ({names}); pass the same tree's rows.")
        if not weight[rows].any():
            raise InputError(f"All rows of leaf {leaf} have sample_weight zero; leave them out.")
        row_codes = None if codes is None else codes[rows]
        records[leaf] = {
            ("n", ""): len(rows),
            ("share", ""): weight[rows].sum() / weight.sum(),
            **_leaf_record(table.iloc[rows], int(chosen[0]), row_codes, weight[rows], direction),
        }
    columns = pd.MultiIndex.from_tuples(next(iter(records.values())))
    return pd.DataFrame(records.values(), index=pd.Index(ids, name="leaf"), columns=columns)


def _leaf_record(rewards: pd.DataFrame, chosen: int, groups, weight, direction: str) -> dict:
    """Values of all arms in one leaf, and the paired gain over the best other arm."""
    scores, labels = rewards.to_numpy(), list(rewards.columns)
    arms = [mean_estimate(scores[:, k], groups=groups, sample_weight=weight) for k in range(len(labels))]
    record: dict = {("arm", ""): labels[chosen]}
    others = [k for k in range(len(labels)) if k != chosen]
    pick = max if direction == "maximize" else min
    second = pick(others, key=lambda k: arms[k].value)
    gain = mean_estimate(scores[:, chosen] - scores[:, second], groups=groups, sample_weight=weight)
    record[("second_best", "")] = labels[second]
    record |= {("value", label): estimate.value for label, estimate in zip(labels, arms, strict=True)}
    record |= {("standard_error", label): estimate.standard_error for label, estimate in zip(labels, arms, strict=True)}
    record |= {("gain", "value"): gain.value, ("gain", "standard_error"): gain.standard_error}
    return record


def _checked_estimate(scores: np.ndarray, groups, sample_weight, level: float) -> Estimate:
    codes, weight = _rows_arguments(groups, sample_weight, len(scores))
    estimate = mean_estimate(scores, groups=codes, sample_weight=weight, level=level)
    if estimate.n_clusters < 2:
        unit = "rows" if groups is None else "clusters (groups)"
        raise InputError(f"A standard error needs at least two {unit} with positive weight; pass more data.")
    return estimate


def _rows_arguments(groups, sample_weight, n: int) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Cluster codes and weights, one per row of the rewards."""
    for values, name in ((groups, "groups"), (sample_weight, "sample_weight")):
        if values is not None:
            _column(values, name, n)
    return group_codes(groups, n), weights(sample_weight, n)


def _column(values, name: str, n: int) -> np.ndarray:
    series = as_series(values, name)
    if len(series) != n:
        raise InputError(f"{name} has {len(series)} rows, but rewards has {n}; give one value per row.")
    if series.isna().any():
        raise InputError(
            f"{name} has missing values, the first in row {int(series.isna().argmax())}; leave such rows out."
        )
    return series.to_numpy()


def _reward_frame(rewards) -> pd.DataFrame:
    """Rewards as a float64 frame whose columns are the labels; refuses what cannot be averaged."""
    table = _labelled(rewards)
    if table is None:
        array = np.asarray(rewards)
        if array.ndim != 2:
            raise InputError(f"rewards must have one column per treatment, shape (n, K); got shape {array.shape}.")
        table = pd.DataFrame(array)
    if table.shape[0] == 0 or table.shape[1] < 2:
        raise InputError(f"rewards must have rows and at least two treatments; got shape {table.shape}.")
    if not table.columns.is_unique:
        raise InputError(f"rewards has two columns named {table.columns[table.columns.duplicated()][0]!s}; rename one.")
    try:
        table = table.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("rewards holds values that are not numbers; give numbers in the outcome's unit.") from error
    bad = np.argwhere(~np.isfinite(table.to_numpy()))
    if len(bad):
        row, k = bad[0]
        raise InputError(
            f"The reward of treatment {table.columns[k]!s} is missing or infinite in row {row}; leave it out."
        )
    return table


def _labelled(table) -> pd.DataFrame | None:
    """Return a pandas or polars table as pandas; None for anything without column names."""
    if isinstance(table, pd.DataFrame):
        return table  # as it is: narwhals wants text for column names
    native = nw.from_native(table, eager_only=True, pass_through=True)
    return pd.DataFrame(native.to_numpy(), columns=native.columns) if isinstance(native, nw.DataFrame) else None


def _policy_scores(policy, rewards: pd.DataFrame, argument: str) -> np.ndarray:
    """Reward of every row under the policy, shape (n,)."""
    values = rewards.to_numpy()
    if np.ndim(policy) == 2 and np.shape(policy) != (len(values), 1):
        return (_probabilities(policy, rewards, argument) * values).sum(axis=1)
    return values[np.arange(len(values)), _arm_codes(policy, rewards.columns, len(values), argument)]


def _arm_codes(policy, labels: pd.Index, n: int, argument: str) -> np.ndarray:
    """Position of each row's recommended treatment among ``labels``, shape (n,)."""
    if np.ndim(policy) == 0:
        series = pd.Series([policy], dtype=object)
    else:
        series = as_series(policy, argument)
        if len(series) != n:
            raise InputError(f"{argument} has {len(series)} rows, but rewards has {n}; give one label per row, or one.")
    values = series.to_numpy(dtype=object)
    codes = labels.astype(object).get_indexer(pd.Index(values, dtype=object))
    if (codes < 0).any():
        unknown = values[codes < 0][0]
        known = ", ".join(map(str, labels))
        raise InputError(f"{argument} recommends {unknown!r}, which has no rewards; the treatments are {known}.")
    return np.broadcast_to(codes, n)


def _probabilities(policy, rewards: pd.DataFrame, argument: str) -> np.ndarray:
    table = _labelled(policy)
    if table is not None:
        if set(table.columns) != set(rewards.columns):
            raise InputError(f"{argument} must have the columns of rewards: {', '.join(map(str, rewards.columns))}.")
        policy = table[list(rewards.columns)]
    probabilities = np.asarray(policy, dtype=np.float64)
    if probabilities.shape != rewards.shape:
        raise InputError(
            f"{argument} has shape {probabilities.shape}, but rewards has {rewards.shape}; they must agree."
        )
    sums = probabilities.sum(axis=1)
    if not ((probabilities >= 0).all() and (np.abs(sums - 1) <= SUM_TOLERANCE).all()):
        raise InputError(f"{argument} must hold probabilities: none negative, and every row summing to one.")
    return probabilities
