"""Values of trees on rows of any number, read a batch at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from policytree.common.validation import check_count, check_level
from policytree.encoded.reading import check_weights, kinds_of, outcome_to_learn, reward_columns, row_weights
from policytree.exceptions import InputError
from policytree.solvers.core.exact_sums import ExactSum
from policytree.study.outcomes import Rewards
from policytree.study.study import Study

COLUMNS = ("rule", "less", "value", "standard_error", "lower", "upper", "level", "n", "n_clusters")


def streamed_values(trees: Mapping[str, Any], study: Study, level: float, batch_rows: int) -> pd.DataFrame:
    """Of fitted trees by name, as :meth:`policytree.PolicyTree.streamed_values` says."""
    check_level(level)
    check_count(batch_rows, "batch_rows", 1)
    names = {name: columns_of(tree, name) for name, tree in trees.items()}
    rewards = rewards_to_judge(study)
    columns = list(dict.fromkeys(c for each in names.values() for c in each))
    sums = _Sums(study.cluster is not None)
    for table, first_row, weight, clusters in judged_batches(study, columns, batch_rows):
        sums.add(_scores(table, trees, names, rewards, first_row), weight, clusters)
    return sums.table(level)


def rewards_to_judge(study: Study) -> Rewards:
    """The rewards of a study that rules are judged by; one sentence for other outcomes."""
    rewards = outcome_to_learn(study, "Rules that are judged in batches")
    if not isinstance(rewards, Rewards):
        raise InputError("Rules are judged by rewards, and the outcome of this study is a Label; name Rewards([...]).")
    return rewards


def judged_batches(
    study: Study, columns: list[str], batch_rows: int, *, treatment: bool = False
) -> Iterator[tuple[Any, int, np.ndarray, np.ndarray | None]]:
    """Tables of rows to judge, each with the number of its first row, its rows' weights, and their clusters or None.

    Parameters
    ----------
    study : Study
        Whose outcome are rewards.
    columns : list of str
        Covariates of the rules.
    batch_rows : int
    treatment : bool
        Whether the treatments that people got are read as well.
    """
    opened, cluster = study.source, study.cluster
    opened.kinds(columns, "the rule")
    single = [study.weights, cluster, *(study.treatment.columns().values() if treatment else ())]
    read = [*study.outcome.columns().values(), *(name for name in single if name is not None)]
    kinds_of(study, opened, read)
    first_row, weights_of = 0, _BatchWeights()
    for table in opened.tables(list(dict.fromkeys([*columns, *read])), batch_rows):
        weight = weights_of.next(row_weights(table, study.weights, first_row), table.num_rows)
        yield table, first_row, weight, None if cluster is None else _clusters_of(table, cluster, first_row)
        first_row += table.num_rows
    if first_row == 0:
        raise InputError("The study has no rows; there is nothing to judge.")
    check_weights(weights_of.largest)


def columns_of(tree: Any, name: str) -> list[str]:
    """The columns that a tree was fitted on, or one sentence."""
    columns = [str(c) for c in getattr(tree, "feature_names_in_", ())]
    if not columns:
        raise InputError(f"The policy {name!r} is not fitted on named columns; fit it on a DataFrame or encoded rows.")
    return columns


def _scores(table: Any, trees, names, rewards: Rewards, first_row: int) -> dict[tuple[str, str], np.ndarray]:
    """Rewards under every rule, and differences; by rule and what it is compared with."""
    values = reward_columns(table, rewards, first_row)
    place = {label: k for k, label in enumerate(rewards.of)}
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


def _clusters_of(table: Any, cluster: str, first_row: int) -> np.ndarray:
    """The cluster of every row, or one sentence."""
    column = table.column(cluster).to_pandas()
    bad = np.flatnonzero(column.isna())
    if len(bad):
        raise InputError(
            f"Column {cluster!r} of cluster has no value in row {first_row + bad[0]}; give every row a cluster."
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
        """All estimates; see :func:`streamed_values`."""
        count = self.n if self.clusters is None else len(self.clusters)
        if count < 2:
            unit = "clusters" if self.clustered else "rows"
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
