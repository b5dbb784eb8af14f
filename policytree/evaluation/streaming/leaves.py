"""Who is in each leaf and what each treatment is worth there, from rows of any number, read a batch at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pandas as pd

from policytree.common.validation import check_count, check_level
from policytree.encoded.reading import reward_columns
from policytree.encoded.study_rows import treatment_positions
from policytree.evaluation.leaves.estimates import (
    LeafParts,
    clustered_covariance,
    refuse_weightless_leaves,
    sign_of,
    small_sample,
)
from policytree.evaluation.streaming.values import columns_of, judged_batches, rewards_to_judge
from policytree.exceptions import InputError
from policytree.solvers.core.exact_sums import ExactSum
from policytree.study.study import Study


def streamed_leaves(tree: Any, study: Study, held_out: bool, level: float, batch_rows: int) -> pd.DataFrame:
    """As :meth:`policytree.PolicyTree.streamed_leaves` says."""
    check_level(level)
    check_count(batch_rows, "batch_rows", 1)
    names, rewards = columns_of(tree, "tree"), rewards_to_judge(study)
    better = study.direction or str(getattr(tree, "direction", "maximize"))
    labels, treatment = list(rewards.of), study.treatment.column
    sums = _LeafSums(labels, study.cluster is not None, bool(treatment))
    for table, first_row, weight, clusters in judged_batches(study, names, batch_rows, treatment=bool(treatment)):
        frame = table.select(names).to_pandas()
        sums.add(
            tree.apply(frame),
            [str(label) for label in tree.predict(frame)],
            reward_columns(table, rewards, first_row),
            weight,
            clusters,
            _received(table, treatment, labels, first_row) if treatment else None,
        )
    return sums.parts(sign_of(better)).frame(held_out, level)


def _received(table: Any, name: str, labels: list[str], first_row: int) -> np.ndarray:
    """The place of every row's treatment among the columns of rewards."""
    known = {str(value): value for value in table.column(name).unique().to_pylist() if value is not None}
    unknown = sorted({*known} - {*labels})
    if unknown:
        raise InputError(f"Column {name!r} of treatment holds {unknown[0]!r}, for which there is no column of rewards.")
    at = treatment_positions(table, name, list(known.values()), first_row)
    return np.array([labels.index(label) for label in known], dtype=np.int64)[at]


@dataclass
class _Leaf:
    """Sums over the rows of one leaf; w: weights, s: rewards."""

    chosen: int
    n: int = 0
    n_weighted: int = 0
    weight: ExactSum = field(default_factory=ExactSum)  # w
    squares: ExactSum = field(default_factory=ExactSum)  # w^2
    first: dict[int, ExactSum] = field(default_factory=dict)  # w s_j
    cross: dict[int, ExactSum] = field(default_factory=dict)  # w^2 s_j
    second: dict[tuple[int, int], ExactSum] = field(default_factory=dict)  # w^2 s_j s_k

    def add(self, scores: np.ndarray, w: np.ndarray) -> None:
        """Add rows: ``scores`` (K, m), weights ``w`` (m,)."""
        self.n += len(w)
        self.n_weighted += int((w > 0).sum())
        self.weight.add(w)
        self.squares.add(w * w)
        with np.errstate(over="ignore"):  # refused when added up
            weighted = w * scores
            for j, own in enumerate(weighted):
                self.first.setdefault(j, ExactSum()).add(own)
                self.cross.setdefault(j, ExactSum()).add(own * w)
            for j, k in combinations_with_replacement(range(len(scores)), 2):
                self.second.setdefault((j, k), ExactSum()).add(weighted[j] * weighted[k])

    def covariance(self) -> np.ndarray:
        """Of the arms' values, rows being clusters of their own, before the factor for small samples; (K, K)."""
        K, total = len(self.first), self.weight.value
        mean = [self.first[j].value / total for j in range(K)]
        out = np.zeros((K, K))
        for (j, k), second in self.second.items():
            spread = second.value - mean[j] * self.cross[k].value - mean[k] * self.cross[j].value
            spread += mean[j] * mean[k] * self.squares.value
            out[j, k] = out[k, j] = float(spread / total**2)
        return out


@dataclass
class _LeafSums:
    """Sums that a summary is made of."""

    labels: list[str]
    clustered: bool
    counted: bool
    leaves: dict[int, _Leaf] = field(default_factory=dict)
    received: dict[int, np.ndarray] = field(default_factory=dict)
    clusters: pd.DataFrame | None = None  # by cluster and leaf: weights, weighted rewards

    def add(self, leaf, predicted, scores, weight, groups, received) -> None:
        """Add a batch."""
        ids, first, leaf_of = np.unique(leaf, return_index=True, return_inverse=True)
        for i, (each, row) in enumerate(zip(ids.tolist(), first.tolist(), strict=True)):
            if each not in self.leaves:
                self.leaves[each] = _Leaf(self._place(predicted[row]))
            own = np.flatnonzero(leaf_of == i)
            self.leaves[each].add(scores[:, own], weight[own])
            if received is not None:
                count = np.bincount(received[own], minlength=len(self.labels))
                self.received[each] = self.received.get(each, 0) + count
        if groups is not None:
            used = weight > 0
            batch = pd.DataFrame(np.vstack([weight, weight * scores])[:, used].T)
            batch = batch.groupby([groups[used], np.asarray(leaf)[used]], sort=False).sum()
            self.clusters = batch if self.clusters is None else self.clusters.add(batch, fill_value=0.0)

    def _place(self, label: str) -> int:
        if label not in self.labels:
            raise InputError(f"The tree gives {label!r}, for which there is no column of rewards.")
        return self.labels.index(label)

    def parts(self, sign: float) -> LeafParts:
        """Estimates by leaf."""
        ids = np.array(sorted(self.leaves))
        each = [self.leaves[leaf] for leaf in ids.tolist()]
        total = [leaf.weight.value for leaf in each]
        weights = np.array([float(t) for t in total])
        refuse_weightless_leaves(ids, weights)
        K = len(self.labels)
        value = np.array(
            [[float(leaf.first[j].value / t) for j in range(K)] for leaf, t in zip(each, total, strict=True)]
        )
        share = np.array([float(t / sum(total)) for t in total])
        if self.clusters is None:
            n_clusters = np.array([leaf.n_weighted for leaf in each])
            covariance = self._of_rows(each, n_clusters)
        else:
            n_clusters, covariance = self._of_clusters(ids, weights, value)
        received = np.array([self.received[leaf] for leaf in ids.tolist()]) if self.counted else None
        chosen = np.array([leaf.chosen for leaf in each])
        rows = np.array([leaf.n for leaf in each])
        return LeafParts(ids, self.labels, rows, chosen, share, value, covariance, n_clusters, sign, received)

    def _of_rows(self, each: list[_Leaf], n: np.ndarray) -> np.ndarray:
        K = len(self.labels)
        out = np.zeros((len(each) * K, len(each) * K))
        for i, (leaf, factor) in enumerate(zip(each, small_sample(n) ** 2, strict=True)):
            out[i * K : (i + 1) * K, i * K : (i + 1) * K] = factor * leaf.covariance()
        return out

    def _of_clusters(self, ids: np.ndarray, weights: np.ndarray, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        assert self.clusters is not None
        sums = self.clusters.to_numpy()
        cluster = self.clusters.index.codes[0]
        leaf = np.searchsorted(ids, self.clusters.index.get_level_values(1).to_numpy())
        influence = (sums[:, 1:] - value[leaf] * sums[:, :1]) / weights[leaf][:, None]
        order = np.lexsort([leaf, cluster])
        n = np.bincount(leaf, minlength=len(ids))
        return n, clustered_covariance(influence[order], cluster[order], leaf[order], n)
