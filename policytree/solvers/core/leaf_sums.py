"""Class weights as integers, and the leaf statistics of a tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from policytree.problem.types import Problem
from policytree.solvers.core.columns import rows_of_splits, short_codes
from policytree.solvers.core.exact_sums import exact_sums
from policytree.solvers.core.merge import merge_equal_rows
from policytree.solvers.core.rows import Splits, counted_rows

MASS_BITS = 50  # the integer weights of all rows stay below 2**50
FINE_BITS = 60  # or 2**60, where a class may weigh next to nothing and still have its rates


@dataclass(frozen=True, slots=True)
class Masses:
    """Integer weights of negatives and positives, so that sums are exact and ties are ties.

    Attributes
    ----------
    negative, positive : ndarray of shape (n,), int64
        ``round(weight * 2**exponent)``; whole weights stay as they are (exponent 0).
    exponent : int
    moved : tuple of float
        The share of the weight of negatives, and of positives, that rounding moved.
    """

    negative: np.ndarray
    positive: np.ndarray
    exponent: int
    moved: tuple[float, float]

    @property
    def rounding(self) -> float:
        """The largest share of a class's weight that rounding moved."""
        return max(self.moved)

    @property
    def N(self) -> int:
        """Weight of all negatives."""
        return int(self.negative.sum())

    @property
    def P(self) -> int:
        """Weight of all positives."""
        return int(self.positive.sum())


def masses(problem: Problem, bits: int = MASS_BITS) -> Masses:
    """Integer weights, below ``2**bits`` in all, of a problem whose losses are the weights of wrongly labelled rows."""
    positive, negative = problem.losses[:, 0], problem.losses[:, 1]
    total = float(problem.losses.sum())
    whole = bool((problem.losses == np.rint(problem.losses)).all()) and total < 2.0**bits
    exponent = 0 if whole else bits - 1 - int(np.ceil(np.log2(total)))
    scaled = [np.rint(np.ldexp(w, exponent)) for w in (negative, positive)]
    one, other = (
        float(np.abs(np.ldexp(w, exponent) - s).sum() / np.ldexp(w, exponent).sum())
        for w, s in zip((negative, positive), scaled, strict=True)
    )
    return Masses(scaled[0].astype(np.int64), scaled[1].astype(np.int64), exponent, (one, other))


def merged_rows(problem: Problem) -> tuple[Problem, Masses]:
    """The problem with rows added up that no split tells apart, and their weights; as it is where leaves count rows."""
    sums, data = masses(problem, FINE_BITS), problem.data
    if counted_rows(problem)[0] or not len(data.codes):
        return problem, sums
    planes = np.vstack([sums.negative, sums.positive])
    codes, (negative, positive) = merge_equal_rows(short_codes(data), planes)
    losses = np.ldexp(np.column_stack([positive, negative]).astype(np.float64), -sums.exponent)
    merged = replace(problem, data=replace(data, codes=codes), losses=losses)
    return merged, replace(sums, negative=negative, positive=positive)


def leaf_stats_of(problem: Problem, sums: Masses, splits: Splits) -> list[tuple[int, int]]:
    """Weights of negatives and positives in every leaf."""
    reached = zip(splits, rows_of_splits(problem.data, splits), strict=True)
    leaves = (rows for (column, _), rows in reached if column < 0)
    return [(int(sums.negative[rows].sum()), int(sums.positive[rows].sum())) for rows in leaves]


def exact_leaf_stats(problem: Problem, splits: Splits) -> list[tuple[int, int]]:
    """Weights of negatives and positives in every leaf as they were given, unrounded, in one unit."""
    of_row, leaves = np.empty(problem.data.n_rows, dtype=np.int64), 0
    for (column, _), rows in zip(splits, rows_of_splits(problem.data, splits), strict=True):
        if column < 0:
            of_row[rows] = leaves
            leaves += 1
    sums = exact_sums(problem.losses.T, of_row, leaves).whole
    return [(negative, positive) for positive, negative in sums.tolist()]


def siblings(splits: Splits) -> Iterator[tuple[int, int]]:
    """Splits of which both sides are leaves: their places in preorder, and the number of the left leaf."""
    leaf = 0
    for k, (column, _) in enumerate(splits):
        if column < 0:
            leaf += 1
        elif splits[k + 1][0] < 0 and splits[k + 2][0] < 0:
            yield k, leaf


def with_leaf(splits: Splits, k: int) -> Splits:
    """The splits with a leaf instead of the split at ``k``, whose sides are leaves."""
    return [*splits[:k], (-1, 0), *splits[k + 3 :]]


def join_siblings(splits: Splits, labels: list[int]) -> tuple[Splits, list[int]]:
    """The same predictions without splits whose two leaves have one label."""
    while True:
        same = ((k, leaf) for k, leaf in siblings(splits) if labels[leaf] == labels[leaf + 1])
        k, leaf = next(same, (-1, -1))
        if k < 0:
            return splits, labels
        splits, labels = with_leaf(splits, k), [*labels[:leaf], *labels[leaf + 1 :]]


def exact_price(problem: Problem) -> Fraction:
    """The price of a leaf as a share of the total weight."""
    return Fraction(problem.leaf_penalty) / Fraction(float(problem.losses.sum()))
