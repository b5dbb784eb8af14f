"""Checks of the estimators' arguments, and small sums over fitted trees."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import narwhals.stable.v2 as nw
import numpy as np

from policytree.common.validation import as_numbers, check_choice, is_real, is_whole, weights
from policytree.data.feature_encoder import as_pandas
from policytree.data.features import Feature
from policytree.exceptions import InputError, quoted
from policytree.solvers.core.exact_sums import ExactSums, exact_sums
from policytree.solvers.core.scoring import sums_of_nodes
from policytree.trees.tree import Tree

if TYPE_CHECKING:
    import pandas as pd

NAMES_SHOWN = 10

LARGEST = float(np.finfo(float).max)  # beyond, numbers are infinite or no floats at all


def check_number(name: str, value, low: float, *, integer: bool = False, none: bool = False) -> None:
    """Refuse a constructor argument outside its range, in one sentence."""
    if none and value is None:
        return
    fits = is_whole if integer else is_real
    if isinstance(value, np.floating):
        value = float(value)  # LARGEST is beyond smaller types
    if not fits(value) or isinstance(value, bool) or not low <= value <= LARGEST:
        what = "an integer" if integer else "a finite number"
        raise InputError(f"{name} must be {what} >= {low}{' or None' if none else ''}; got {quoted(value)}.")


def leaf_penalty(regularization: float, total_weight: float, argument: str = "regularization") -> float:
    """The price of a leaf in summed losses.

    Raises
    ------
    InputError
        If no floating-point number is so large.
    """
    penalty = float(regularization) * total_weight
    if not penalty <= LARGEST:
        raise InputError(
            f"{argument}={float(regularization):g} times the total weight of the rows, {total_weight:g}, is larger "
            "than numbers can be; lower it, or set max_leaf_nodes=1 for a single leaf."
        )
    return penalty


def check_seed(random_state, name: str = "random_state") -> None:
    """Refuse what cannot seed anything, whether or not this search draws something."""
    fits = is_whole(random_state) and 0 <= random_state < 2**32
    if not (random_state is None or fits or isinstance(random_state, np.random.RandomState)):
        raise InputError(
            f"{name} must be an integer from 0 to 2**32 - 1, a RandomState or None; got {quoted(random_state)}."
        )


def n_threads(n_jobs: int | None) -> int:
    """Threads as in joblib: None is one, -1 is all, -2 all but one."""
    if n_jobs is None:
        return 1
    if not is_whole(n_jobs) or n_jobs == 0:
        raise InputError(f"n_jobs must be a nonzero integer or None; got {quoted(n_jobs)}.")
    return int(n_jobs) if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + int(n_jobs))


def column_numbers(argument: str, columns, features: tuple[Feature, ...]) -> tuple[int, ...] | None:
    """Positions of columns given by name or position, one or a list of them; ascending. None stays None."""
    if columns is None:
        return None
    if isinstance(columns, str) or not _is_list(columns):
        columns = [columns]
    places = _places(features)
    found = tuple(sorted({_column_number(argument, column, places) for column in columns}))
    if not found:
        raise InputError(f"{argument} names no column; name at least one, or leave it at None.")
    return found


def _is_list(values) -> bool:
    """Arrays without a dimension look as if one could go through them."""
    return isinstance(values, Iterable) and getattr(values, "ndim", 1) > 0


def _places(features: tuple[Feature, ...]) -> dict[str, int]:
    return {feature.name: j for j, feature in enumerate(features)}


def _column_number(argument: str, column, places: Mapping[str, int]) -> int:
    """A name comes before a position: integers may be names."""
    position = is_whole(column) and not isinstance(column, bool)
    if (position or isinstance(column, str)) and str(column) in places:
        return places[str(column)]
    names = list(places)
    if position and 0 <= column < len(names):
        return int(column)
    shown = ", ".join(names[:NAMES_SHOWN]) + (", ..." if len(names) > NAMES_SHOWN else "")
    raise InputError(
        f"{argument} names the column {quoted(column)}, which X does not have; give names ({shown}) or positions from "
        f"0 to {len(names) - 1}."
    )


def _has_names(series: pd.Series) -> bool:
    """Whether the index of a Series says more than the numbers of its rows."""
    import pandas as pd

    return not isinstance(series.index, pd.RangeIndex)


def column_costs(argument: str, costs, features: tuple[Feature, ...]) -> np.ndarray | None:
    """A cost for every column from a mapping (columns left out: 0) or an array of shape (p,); None if all are zero."""
    if costs is None:
        return None
    if nw.dependencies.is_pandas_series(costs):
        costs = costs.to_dict() if _has_names(costs) else costs.tolist()
    if isinstance(costs, Mapping):
        places = _places(features)
        given = [(_column_number(argument, column, places), cost) for column, cost in costs.items()]
        if len({j for j, _ in given}) < len(given):
            raise InputError(f"{argument} names a column twice, by name and by position; keep one of the two.")
    else:
        values = list(costs) if _is_list(costs) and not isinstance(costs, str) else None
        if values is None or len(values) != len(features):
            raise InputError(
                f"{argument} must be a mapping from column to cost, or {len(features)} numbers, one a column of X; got "
                f"{repr(costs) if values is None else len(values)}."
            )
        given = list(enumerate(values))
    out = np.zeros(len(features))
    for j, cost in given:
        if not is_real(cost) or isinstance(cost, (bool, np.bool_)) or not 0 <= cost <= LARGEST:
            raise InputError(
                f"{argument} says that column {features[j].name!r} costs {quoted(cost)}; give a finite number >= 0."
            )
        out[j] = cost
    return out if out.any() else None


def reward_matrix(rewards, n: int, argument: str = "rewards") -> tuple[np.ndarray, np.ndarray]:
    """Rewards, or costs, as (n, K) float64, and the labels: column names, or 0 .. K - 1."""
    if rewards is None:
        raise InputError(
            "fit requires y to be passed, but the target y is None: give rewards, one column per treatment."
        )
    frame = as_pandas(rewards)
    matrix = as_numbers(rewards if frame is None else frame, argument)
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise InputError(f"{argument} must have one row per row of X and one column per label, shape (n, K).")
    labels = np.arange(matrix.shape[1]) if frame is None else frame.columns.to_numpy()
    if len(matrix) != n:
        raise InputError(f"{argument} has {len(matrix)} rows, but X has {n}; give one row of {argument} per row of X.")
    bad = np.flatnonzero(~np.isfinite(matrix).all(axis=0))
    if len(bad):
        raise InputError(
            f"Column {labels.tolist()[bad[0]]!r} of {argument} contains NaN or infinity; drop or mend those rows."
        )
    return matrix, labels


def weigh(X: np.ndarray, values: np.ndarray, arms: np.ndarray | None, sample_weight):
    """Drop rows of weight 0 (they count as absent); returns X, values, arms and the weights."""
    weight = weights(sample_weight, len(X), "X")
    if weight is None:
        return X, values, arms, np.ones(len(X))
    kept = weight > 0
    return X[kept], values[kept], arms if arms is None else arms[kept], weight[kept]


def node_means(tree: Tree, X: np.ndarray, values: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Weighted mean of ``values`` (n, K) over the training rows of every node; shape (node_count, K)."""
    leaf = (np.cumsum(tree.is_leaf) - 1)[tree.apply(X)]
    of_leaves = exact_sums(np.vstack([values.T * weight, weight]), leaf, tree.n_leaves)
    whole = sums_of_nodes(tree.feature, tree.children_right, of_leaves.whole)
    sums = ExactSums(whole, of_leaves.exponent).to_float()
    return sums[:, :-1] / sums[:, -1:]


def payment_groups(
    repeated_features: str, feature_groups, has_costs: bool, features: tuple[Feature, ...]
) -> np.ndarray | None:
    """The group of every column, of which only the first on a path is paid for; None if every split is paid for.

    ``feature_groups``: a mapping of group names to columns, or a list of lists of columns. Columns that it leaves out
    are alone.
    """
    check_choice(repeated_features, "repeated_features", ("charged", "free"))
    groups = np.arange(len(features))
    if feature_groups is None:
        return groups if repeated_features == "free" else None
    if repeated_features == "charged":
        raise InputError(
            "feature_groups say what is free once the first of a group was paid for; set repeated_features='free'."
        )
    if not has_costs:
        raise InputError("feature_groups say which feature_costs are paid together; pass feature_costs as well.")
    if isinstance(feature_groups, str) or not _is_list(feature_groups):
        raise InputError(
            f"feature_groups must be a mapping of names to lists of columns, or a list of such lists; got "
            f"{feature_groups!r}."
        )
    taken: set[int] = set()
    for each in feature_groups.values() if isinstance(feature_groups, Mapping) else feature_groups:
        columns = column_numbers("feature_groups", each, features) or ()
        twice = taken & set(columns)
        if twice:
            raise InputError(
                f"feature_groups holds the column {features[min(twice)].name!r} twice; keep it in one group."
            )
        taken |= set(columns)
        groups[list(columns)] = columns[0]
    return groups


def question_costs(tree: Tree, costs: np.ndarray | None, groups: np.ndarray | None) -> np.ndarray:
    """Return the cost of every node's question for everybody who reaches it; shape (node_count,), 0 in leaves.

    ``costs`` (p,) by feature, ``groups`` (p,): of a group, the first question on a path is paid for; None: all are.
    """
    out = np.zeros(tree.node_count)
    if costs is None:
        return out
    paid: dict[int, frozenset] = {0: frozenset()}
    for node in np.flatnonzero(~tree.is_leaf):  # preorder: parents come first
        j, before = int(tree.feature[node]), paid.get(int(node), frozenset())
        out[node] = 0.0 if groups is not None and int(groups[j]) in before else costs[j]
        if groups is not None:
            for child in (tree.children_left[node], tree.children_right[node]):
                paid[int(child)] = before | {int(groups[j])}
    return out


def expected_cost(tree: Tree, X: np.ndarray, node_costs: np.ndarray, weight: np.ndarray) -> float:
    """Weighted mean over rows of what the questions on their way cost; ``node_costs`` (node_count,)."""
    if not node_costs.any():
        return 0.0
    reached = tree.rows_of_nodes(X)
    paid = sum(node_costs[node] * weight[reached[node]].sum() for node in np.flatnonzero(node_costs))
    return float(paid / weight.sum())
