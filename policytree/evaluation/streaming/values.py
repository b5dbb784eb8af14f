"""What trees are worth on rows of any number, read a batch at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from policytree.common.validation import check_count, check_level
from policytree.encoded.reading import Roles, check_weights, reward_columns, row_weights
from policytree.encoded.sources import open_source
from policytree.exceptions import InputError
from policytree.solvers.core.exact_sums import ExactSum

COLUMNS = ("rule", "less", "value", "standard_error", "lower", "upper", "level", "n", "n_clusters")


def streamed_policy_values(
    policies: Mapping[str, Any] | Any,
    source: Any,
    *,
    rewards: Sequence[str],
    weights: str | None = None,
    groups: str | None = None,
    level: float = 0.95,
    batch_rows: int = 1 << 18,
) -> pd.DataFrame:
    """Values of fitted trees and of every treatment for all, and the trees' advantages, from rows of any number.

    The estimates are those of :func:`policytree.policy_value`: influences are summed within clusters, and only sums
    over rows, or clusters, are kept. Without clusters sums are exact, so that no
    number depends on batches or on the order of rows. Honest only on rows that neither the tree nor the models behind
    the rewards have seen.

    Parameters
    ----------
    policies : fitted tree, or mapping of names to fitted trees
        Each fitted on named columns, with treatments among ``rewards``. One alone is called "policy".
    source : path, list of paths, Arrow dataset or table, DuckDB relation, or DataFrame
        Rows, in one of the forms that :func:`policytree.encoded.encode` reads; they are read once, a batch at a time.
    rewards : list of str
        Columns of rewards, one a treatment.
    weights : str, optional
        Column of sampling weights >= 0.
    groups : str, optional
        Column of clusters, of which one number each is kept in memory.
    level : float
        Coverage of the intervals.
    batch_rows : int, default 262,144

    Returns
    -------
    DataFrame
        One row a value (``less`` is empty) and one a difference of a tree and what stands in ``less``, with ``rule``,
        ``less``, ``value``, ``standard_error``, ``lower``, ``upper``, ``level``, ``n`` and ``n_clusters``.

    Raises
    ------
    InputError
        If a column is missing or cannot be used, a tree gives a treatment without rewards, or there are fewer than two
        rows or clusters.

    Examples
    --------
    >>> import pandas as pd
    >>> from policytree import PolicyTree
    >>> from policytree.encoded import streamed_policy_values
    >>> rows = pd.DataFrame({"age": [30, 40, 50, 60], "none": [1.0, 1, 0, 0], "drug": [0.0, 0, 2, 2]})
    >>> tree = PolicyTree(max_depth=1).fit(rows[["age"]], rows[["none", "drug"]])
    >>> values = streamed_policy_values(tree, rows, rewards=["none", "drug"])
    >>> values[["rule", "less", "value"]]
              rule         less  value
    0       policy                 1.5
    1  always none                 0.5
    2  always drug                 1.0
    3       policy  always none    1.0
    4       policy  always drug    0.5
    """
    check_level(level)
    check_count(batch_rows, "batch_rows", 1)
    trees = dict(policies) if isinstance(policies, Mapping) else {"policy": policies}
    names = {name: columns_of(tree, name) for name, tree in trees.items()}
    roles = Roles(tuple(dict.fromkeys(c for each in names.values() for c in each)), tuple(rewards), None, weights)
    sums = _Sums(groups is not None)
    for table, first_row, weight, clusters in judged_batches(source, roles, {"groups": groups}, batch_rows):
        sums.add(_scores(table, trees, names, roles, first_row), weight, clusters)
    return sums.table(level)


def judged_batches(
    source: Any, roles: Roles, single: Mapping[str, str | None], batch_rows: int
) -> Iterator[tuple[Any, int, np.ndarray, np.ndarray | None]]:
    """Tables of rows to judge, each with the number of its first row, its rows' weights, and their clusters or None.

    Parameters
    ----------
    source : see :func:`policytree.encoded.encode`
    roles : Roles
        Columns of covariates, rewards and weights.
    single : mapping of str to str or None
        Further columns by argument, among them "groups".
    batch_rows : int
    """
    opened, groups = open_source(source), single["groups"]
    asked = roles.by_argument() | {name: [] if column is None else [column] for name, column in single.items()}
    for argument, each in asked.items():
        opened.kinds(each, argument)
    columns = list(dict.fromkeys(name for each in asked.values() for name in each))
    first_row, weights_of = 0, _BatchWeights()
    for table in opened.tables(columns, batch_rows):
        weight = weights_of.next(row_weights(table, roles, first_row), table.num_rows)
        yield table, first_row, weight, None if groups is None else _clusters_of(table, groups, first_row)
        first_row += table.num_rows
    if first_row == 0:
        raise InputError("The source has no rows; there is nothing to judge.")
    check_weights(weights_of.largest)


def columns_of(tree: Any, name: str) -> list[str]:
    """The columns that a tree was fitted on, or one sentence."""
    columns = [str(c) for c in getattr(tree, "feature_names_in_", ())]
    if not columns:
        raise InputError(f"The policy {name!r} is not fitted on named columns; fit it on a DataFrame or encoded rows.")
    return columns


def _scores(table: Any, trees, names, roles: Roles, first_row: int) -> dict[tuple[str, str], np.ndarray]:
    """Rewards under every rule, and differences; by rule and what it is compared with."""
    values = reward_columns(table, roles, first_row)
    place = {label: k for k, label in enumerate(roles.rewards)}
    fixed = {f"always {label}": values[k] for label, k in place.items()}
    learnt = {}
    for name, tree in trees.items():
        predicted = [str(label) for label in tree.predict(table.select(names[name]).to_pandas())]
        lacking = sorted(set(predicted) - set(place))
        if lacking:
            raise InputError(f"The policy {name!r} gives {lacking[0]!r}, for which there is no column of rewards.")
        learnt[name] = values[[place[label] for label in predicted], np.arange(len(predicted))]
    out = {(name, ""): score for name, score in {**learnt, **fixed}.items()}
    order = list(learnt)
    for k, name in enumerate(order):
        others = {other: learnt[other] for other in order[k + 1 :]} | fixed
        out |= {(name, other): learnt[name] - score for other, score in others.items()}
    return out


def _clusters_of(table: Any, groups: str, first_row: int) -> np.ndarray:
    """The cluster of every row, or one sentence."""
    column = table.column(groups).to_pandas()
    bad = np.flatnonzero(column.isna())
    if len(bad):
        raise InputError(
            f"Column {groups!r} of groups has no value in row {first_row + bad[0]}; give every row a cluster."
        )
    return column.to_numpy()


@dataclass
class _BatchWeights:
    """Weights of batches, brought near 1 by one power of two: squares keep every digit, and no estimate changes."""

    largest: float = 0.0
    shift: int | None = None

    def next(self, weight: np.ndarray | None, rows: int) -> np.ndarray:
        """Weights of the next batch; 1 each if it has none."""
        if weight is None:
            self.largest = 1.0
            return np.ones(rows)
        largest = float(weight.max(initial=0.0))
        self.largest = max(self.largest, largest)
        if self.shift is None and largest > 0:
            self.shift = -int(np.frexp(largest)[1])
        with np.errstate(over="ignore"):  # refused when added up
            return np.ldexp(weight, self.shift or 0)


@dataclass
class _Sums:
    """Sums over rows that values and their variances follow from."""

    clustered: bool
    n: int = 0
    weight: ExactSum = field(default_factory=ExactSum)
    squares: ExactSum = field(default_factory=ExactSum)  # of weights
    moments: dict[tuple[str, str], tuple[ExactSum, ExactSum, ExactSum]] = field(default_factory=dict)
    clusters: pd.DataFrame | None = None  # by cluster: the weight, and weighted scores

    def add(self, scores: dict[tuple[str, str], np.ndarray], weight: np.ndarray, clusters: np.ndarray | None) -> None:
        """Add a batch."""
        self.n += int((weight > 0).sum())
        self.weight.add(weight)
        self.squares.add(weight * weight)
        for key, score in scores.items():
            parts = self.moments.setdefault(key, (ExactSum(), ExactSum(), ExactSum()))
            with np.errstate(over="ignore"):
                weighted = weight * score
                values = weighted, weighted * weight, weighted * weighted
            for total, each in zip(parts, values, strict=True):
                total.add(each)
        if clusters is not None:
            batch = pd.DataFrame({("", ""): weight, **{key: weight * score for key, score in scores.items()}})
            batch.columns = range(len(batch.columns))
            batch = batch[weight > 0].groupby(clusters[weight > 0], sort=False).sum()
            self.clusters = batch if self.clusters is None else self.clusters.add(batch, fill_value=0.0)

    def table(self, level: float) -> pd.DataFrame:
        """All estimates; see :func:`streamed_policy_values`."""
        count = self.n if self.clusters is None else len(self.clusters)
        if count < 2:
            unit = "clusters (groups)" if self.clustered else "rows"
            raise InputError(f"A standard error needs at least two {unit} with positive weight; pass more data.")
        total = self.weight.value
        rows = []
        for k, ((rule, less), (first, cross, second)) in enumerate(self.moments.items()):
            mean = first.value / total
            if self.clusters is None:
                spread = second.value - 2 * mean * cross.value + mean * mean * self.squares.value
            else:
                sums = self.clusters[k + 1] - float(mean) * self.clusters[0]
                spread = Fraction(float(sums @ sums))
            variance = count / (count - 1) * float(spread / total**2)
            error = float(np.sqrt(max(variance, 0.0)))
            half = float(stdtrit(count - 1, 0.5 + level / 2)) * error
            value = float(mean)
            rows.append((rule, less, value, error, value - half, value + half, level, self.n, count))
        return pd.DataFrame(rows, columns=list(COLUMNS))
