"""Half-sample bootstrap: standard errors of estimates that are no plain means, with clusters and weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from policytree.common.row_labels import aligns_rows
from policytree.common.validation import check_count
from policytree.evaluation.inputs import units_with_weight
from policytree.exceptions import InputError

N_DRAWS = 200


@dataclass(frozen=True, slots=True, eq=False)
class HalfSamples:
    """Draws of half of the clusters, without replacement; the same ones every time it is iterated.

    An estimate on half of ``G`` clusters varies around the estimate on all of them as that one varies around the
    truth: a mean of ``m`` out of ``G`` has the variance ``(G - m) / (m G)`` times that between clusters, ``1 / G`` for
    ``m = G / 2``. So the standard deviation over draws is the standard error (for odd ``G`` after a factor). Iterate
    over it for the weights of the rows in each draw. Estimates that are taken on the same draws may be subtracted draw
    by draw: that gives the standard error of their paired difference.

    Attributes
    ----------
    weight : ndarray of shape (n,), float64
        Weights of the rows.
    unit_of : ndarray of shape (n,), int64, or None
        Cluster of every row, 0, ..., n_units - 1; -1 for rows without weight. None: each row is its own.
    n_units : int
        Clusters with positive weight.
    n_draws : int
    seed : int

    References
    ----------
    Politis, Romano and Wolf (1999), Subsampling, chapter 2. Yadlowsky, Fleming, Shah, Brunskill and Wager (2025),
    Journal of the American Statistical Association 120(549), 38-51, section 4 (for rankings).
    """

    weight: np.ndarray
    unit_of: np.ndarray | None
    n_units: int
    n_draws: int
    seed: int

    @classmethod
    @aligns_rows
    def of(
        cls, n: int, *, groups: np.ndarray | None, sample_weight: np.ndarray | None, n_draws: int, seed: int
    ) -> HalfSamples:
        """Make draws from checked cluster codes and weights (:func:`policytree.evaluation.inputs.rows_arguments`).

        Raises
        ------
        InputError
            If ``n_draws`` is less than two, or there are fewer than two clusters with weight.
        """
        check_count(n_draws, "n_bootstrap", 2, "200")
        weight = np.ones(n) if sample_weight is None else sample_weight
        if groups is None and (weight > 0).all():
            unit_of, n_units = None, n
        else:
            unit_of, n_units = units_with_weight(np.arange(n) if groups is None else groups, weight)
        if n_units < 2:
            unit = "rows" if groups is None else "clusters (groups)"
            raise InputError(f"A standard error needs at least two {unit} with positive weight; pass more data.")
        return cls(weight, unit_of, n_units, int(n_draws), seed)

    def __iter__(self) -> Iterator[np.ndarray]:
        """Weights of the rows in every draw, zero for those that are not in it; shape (n,), float64."""
        rng = np.random.default_rng(self.seed)
        chosen = np.zeros(self.n_units + 1)  # one more, for rows without weight: unit -1
        for _ in range(self.n_draws):
            chosen[:-1] = 0.0
            chosen[rng.permutation(self.n_units)[: self.n_units // 2]] = 1.0
            yield self.weight * (chosen[:-1] if self.unit_of is None else chosen[self.unit_of])

    def standard_error(self, replicates: np.ndarray) -> np.ndarray:
        """Standard errors from the estimates in every draw, shape (n_draws, ...); draws without an estimate are NaN."""
        half = self.n_units // 2
        factor = np.sqrt(half / (self.n_units - half))
        return factor * np.asarray(np.nanstd(replicates, axis=0, ddof=1))
