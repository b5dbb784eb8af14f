"""Both stumps of two stages at once: the best pair by the score of the whole regime, not one stage after the other.

A person's score under the treatments a at the first stage and b at the second is phi(a, b), (n, K1, K2). A pair of
stumps divides people into four groups, by the sides of both splits. For a pair of features, a table holds the sums of
phi of all people with the same values of both, so that prefix sums over the table give every group of every pair of
thresholds; the best treatments of the second stump follow from those of the first. All pairs of stumps are looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

CELLS = 4_000_000  # numbers in a table of sums: a block of 32 megabytes


@dataclass(frozen=True, slots=True)
class StumpPair:
    """The best pair of stumps.

    Attributes
    ----------
    value : float
        Sum of the scores of all people.
    features : tuple of int
        Position of each stage's feature; -1 where the stage gives everybody the same.
    cuts : tuple of int
        Codes up to the cut go left.
    actions : tuple of (int, int)
        Positions of the treatments on the left and on the right, of each stage.
    """

    value: float
    features: tuple[int, int]
    cuts: tuple[int, int]
    actions: tuple[tuple[int, int], tuple[int, int]]

    def choices(self, stage: int, codes: np.ndarray) -> np.ndarray:
        """Positions of the treatments that people with these codes (n, p) get at a stage, 0 or 1."""
        left, right = self.actions[stage]
        if self.features[stage] < 0:
            return np.full(len(codes), left)
        return np.where(codes[:, self.features[stage]] <= self.cuts[stage], left, right)


def best_stump_pair(
    first: np.ndarray, second: np.ndarray, n_bins: tuple[np.ndarray, np.ndarray], scores: np.ndarray,
    min_leaf: tuple[int, int], counted: tuple[np.ndarray, np.ndarray],
) -> StumpPair:  # fmt: skip
    """The pair of trees of depth one, or zero, with the greatest sum of scores.

    Parameters
    ----------
    first, second : ndarray of shape (n, p), int
        Codes of what the rules of the two stages look at.
    n_bins : tuple of two ndarray of shape (p,), int
        Number of codes of every feature.
    scores : ndarray of shape (n, K1, K2), float64
        Larger is better.
    min_leaf : tuple of int
        Smallest number of people in a leaf of either stage.
    counted : tuple of two ndarray of shape (n,), bool
        People who are eligible at either stage, who count for ``min_leaf``.

    Returns
    -------
    StumpPair
    """
    best: StumpPair | None = None
    one, two = _columns(first, n_bins[0]), _columns(second, n_bins[1])
    allowed = [
        [_allowed_cuts(code, bins, counted[stage], min_leaf[stage]) for _, code, bins in columns]
        for stage, columns in enumerate((one, two))
    ]
    for (f1, code1, bins1), cuts1 in zip(one, allowed[0], strict=True):
        for (f2, code2, bins2), cuts2 in zip(two, allowed[1], strict=True):
            if not (cuts1.any() and cuts2.any()):
                continue
            for table, rows1, top in _tables(code1, code2, bins1, bins2, scores):
                cuts = rows1[cuts1[rows1]]
                if not len(cuts):
                    continue
                value, t1, t2, actions = _best_of_features(table[cuts - rows1[0]], top, cuts2)
                if best is None or value > best.value:
                    best = StumpPair(value, (f1, f2), (int(cuts[t1]), t2), actions)
    assert best is not None, "the pair of single leaves is always allowed"
    return best


def _columns(codes: np.ndarray, n_bins: np.ndarray) -> list[tuple[int, np.ndarray, int]]:
    """Features as (position, codes, number of codes); one more with a single code stands for a tree without a split."""
    constant = (-1, np.zeros(len(codes), dtype=np.int64), 1)
    return [constant, *((j, codes[:, j].astype(np.int64), int(n_bins[j])) for j in range(codes.shape[1]))]


def _allowed_cuts(code: np.ndarray, bins: int, counted: np.ndarray, least: int) -> np.ndarray:
    """Which cuts leave enough people on both sides, (bins,) or, of a single code, (1,)."""
    if bins == 1:
        return np.ones(1, dtype=bool)
    left = np.bincount(code[counted], minlength=bins).cumsum()
    right = left[-1] - left
    out = (left >= max(least, 1)) & (right >= max(least, 1))
    return out


def _tables(
    code1: np.ndarray, code2: np.ndarray, bins1: int, bins2: int, scores: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Sums of scores of people up to both codes, for blocks of the first code.

    Yields
    ------
    table : ndarray of shape (rows, bins2, K1, K2)
    rows : ndarray of int
        Codes of the first feature.
    top : ndarray of shape (1, bins2, K1, K2)
        The same of everybody, whatever the first code.
    """
    per_row = bins2 * scores.shape[1] * scores.shape[2]
    size = max(1, CELLS // per_row)
    order = np.argsort(code1, kind="stable")
    starts = np.searchsorted(code1[order], np.arange(0, bins1 + size, size))
    top = _sums(code2, bins2, scores).cumsum(axis=0)[None]
    carried = np.zeros_like(top[0])
    for block, (begin, end) in enumerate(pairwise(starts)):
        rows = np.arange(block * size, min((block + 1) * size, bins1))
        if not len(rows):
            return
        people = order[begin:end]
        cell = (code1[people] - rows[0]) * bins2 + code2[people]
        table = _sums(cell, len(rows) * bins2, scores[people]).reshape(len(rows), *top.shape[1:])
        table = table.cumsum(axis=0).cumsum(axis=1) + carried
        carried = table[-1]
        yield table, rows, top


def _sums(cell: np.ndarray, n_cells: int, scores: np.ndarray) -> np.ndarray:
    """Sums of scores (n, K1, K2) by cell, (n_cells, K1, K2)."""
    _, n1, n2 = scores.shape
    out = np.empty((n_cells, n1, n2))
    for a in range(n1):
        for b in range(n2):
            out[:, a, b] = np.bincount(cell, weights=scores[:, a, b], minlength=n_cells)
    return out


def _best_of_features(
    left: np.ndarray, top: np.ndarray, cuts2: np.ndarray
) -> tuple[float, int, int, tuple[tuple[int, int], tuple[int, int]]]:
    """The best pair on two features: its value, the row of ``left``, the second cut, the actions.

    Parameters
    ----------
    left : ndarray of shape (cuts of 1, bins2, K1, K2)
        Sums of people on the left of the first split, up to every second code.
    top : ndarray of shape (1, bins2, K1, K2)
        The same of everybody.
    cuts2 : ndarray of shape (bins2,), bool
    """
    t2 = np.flatnonzero(cuts2)
    left_left, left_both, both_left, everybody = left[:, t2], left[:, -1:], top[:, t2], top[:, -1:]
    left_right = left_both - left_left
    right_left = both_left - left_left
    right_right = everybody - left_both - right_left
    n1 = top.shape[2]
    best_value, best = -np.inf, (0, 0, 0, 0)
    for a in range(n1):
        for b in range(n1):
            # People on either side of the second split, under every second treatment: (cuts of 1, cuts of 2, K2).
            total = (left_left[:, :, a] + right_left[:, :, b]).max(axis=2)
            total += (left_right[:, :, a] + right_right[:, :, b]).max(axis=2)
            at = int(total.argmax())
            if total.flat[at] > best_value:
                best_value, best = float(total.flat[at]), (a, b, at // total.shape[1], at % total.shape[1])
    a, b, i, j = best
    c = int((left_left[i, j, a] + right_left[i, j, b]).argmax())
    d = int((left_right[i, j, a] + right_right[i, j, b]).argmax())
    return best_value, i, int(t2[j]), ((a, b), (c, d))
