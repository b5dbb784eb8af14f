"""Bootstrap over clusters: how often each one is drawn, and percentile intervals of bounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from policytree.common.validation import check_count
from policytree.evaluation.inputs import generator, units_with_weight

N_BOOTSTRAP = 1_000
CELLS = 4_000_000  # numbers at a time: draws times rows


@dataclass(frozen=True, slots=True, eq=False)
class ClusterBootstrap:
    """Draws of all clusters with replacement, each taken whole.

    Attributes
    ----------
    counts : ndarray of shape (n_draws, n_clusters), uint16
        How often each cluster is drawn.
    cluster : ndarray of shape (n,), int64
        Every row's; -1 for rows without weight.
    weight : ndarray of shape (n,)
        Sampling weights.

    References
    ----------
    Field and Welsh (2007), Bootstrapping clustered data, Journal of the Royal Statistical Society B 69(3), 369-390.
    """

    counts: np.ndarray
    cluster: np.ndarray
    weight: np.ndarray

    @classmethod
    def draw(cls, clusters: np.ndarray, weight: np.ndarray, n_draws: int, random_state) -> ClusterBootstrap:
        """Draw.

        Parameters
        ----------
        clusters : ndarray of shape (n,), int
        weight : ndarray of shape (n,)
        n_draws : int
        random_state : int, RandomState or None

        Raises
        ------
        InputError
            If ``n_draws`` is less than 20.
        """
        check_count(n_draws, "n_bootstrap", 20, "1000")
        rng = generator(random_state)
        cluster, size = units_with_weight(clusters, weight)
        counts = np.empty((n_draws, size), dtype=np.uint16)
        for b in range(n_draws):
            counts[b] = np.bincount(rng.randint(size, size=size), minlength=size)
        return cls(counts, cluster, weight)

    def row_weights(self, rows: np.ndarray) -> Iterator[np.ndarray]:
        """Weights of these rows in the draws, some draws at a time: (draws, len(rows))."""
        step = max(1, CELLS // max(1, len(rows)))
        known = self.cluster[rows] >= 0
        own = np.where(known, self.weight[rows], 0.0)
        for start in range(0, len(self.counts), step):
            yield self.counts[start : start + step, np.where(known, self.cluster[rows], 0)] * own

    def means(self, scores: np.ndarray) -> np.ndarray:
        """Weighted means of scores (n, q) in every draw: (n_draws, q)."""
        used = self.cluster >= 0
        of, size = self.cluster[used], self.counts.shape[1]
        sums = [np.bincount(of, weights=self.weight[used] * s[used], minlength=size) for s in scores.T]
        total = np.bincount(of, weights=self.weight[used], minlength=size)
        table = np.column_stack([*sums, total])
        step = max(1, CELLS // size)
        drawn = [self.counts[a : a + step].astype(np.float64) @ table for a in range(0, len(self.counts), step)]
        out = np.concatenate(drawn)
        return out[:, :-1] / out[:, -1:]


def percentile(draws: np.ndarray, probability: float) -> float:
    """Quantile of bootstrap draws; infinite draws (a bound that does not exist) count as such."""
    # "lower"/"higher": no interpolation between a number and infinity, and never towards a shorter interval.
    return float(np.quantile(draws, probability, method="lower" if probability < 0.5 else "higher"))
