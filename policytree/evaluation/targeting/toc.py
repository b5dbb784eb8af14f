"""The targeting operator characteristic (TOC), its areas, and their derivatives by the rows' weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """Rows by priority, highest first; among equals in the order of the file, which is then averaged out.

    Attributes
    ----------
    rows : ndarray of shape (n,)
        Positions of the rows.
    starts : ndarray of shape (n_groups,)
        Where in ``rows`` each group of equal priority begins.
    """

    rows: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, priority: np.ndarray) -> Order:
        """Sort; O(n log n)."""
        rows = np.argsort(-priority, kind="stable")
        ordered = priority[rows]
        return cls(rows, np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])))

    def group_of(self) -> np.ndarray:
        """Group of equal priority of every sorted row, (n,)."""
        return np.repeat(np.arange(len(self.starts)), np.diff(np.append(self.starts, len(self.rows))))


@dataclass(frozen=True, slots=True, eq=False)
class _Sorted:
    """Sorted rows: weights, mean scores of their groups, and the sums of both from the top."""

    weight: np.ndarray
    mean: np.ndarray
    cumulated_weight: np.ndarray
    cumulated_score: np.ndarray

    @classmethod
    def of(cls, order: Order, scores: np.ndarray, weight: np.ndarray) -> _Sorted:
        w, mean = weight[order.rows], scores[order.rows]
        if len(order.starts) < len(mean):  # equals share their mean
            total = np.add.reduceat(w, order.starts)
            sums = np.add.reduceat(w * mean, order.starts)
            mean = np.divide(sums, total, out=np.zeros(len(total)), where=total > 0)[order.group_of()]
        return cls(w, mean, w.cumsum(), (w * mean).cumsum())


def toc_and_areas(
    order: Order, scores: np.ndarray, weight: np.ndarray, shares: np.ndarray
) -> tuple[tuple[float, float], np.ndarray]:
    """AUTOC and QINI, and TOC at given shares of the weight, shape (len(shares),).

    A row in which a share ends counts by the part that is in it.

    Parameters
    ----------
    order : Order
    scores, weight : ndarray of shape (n,), in the order of the file
        At least one weight is positive.
    shares : ndarray, in (0, 1]
    """
    if len(order.starts) == 1:
        return (0.0, 0.0), np.zeros(len(shares))  # all are equals: nobody is first, not even by rounding
    s = _Sorted.of(order, scores, weight)
    total = s.cumulated_weight[-1]
    average = s.cumulated_score[-1] / total
    used = s.weight > 0
    w, c, sums = s.weight[used], s.cumulated_weight[used], s.cumulated_score[used]
    autoc = w @ (sums / c) / total - average
    qini = w @ (sums - average * c) / total**2
    at = shares * total
    reached = np.interp(at, np.append(0.0, c), np.append(0.0, sums))
    return (float(autoc), float(qini)), reached / at - average


def by_weight(order: Order, scores: np.ndarray, weight: np.ndarray, target: str) -> np.ndarray:
    """Derivative of AUTOC or QINI by the weight of every row, (n,): the infinitesimal jackknife.

    A row's weight moves the sums of all rows after it, and the mean of its equals. Zero for rows without weight.
    """
    s = _Sorted.of(order, scores, weight)
    w, c, x = s.weight, s.cumulated_weight, scores[order.rows]
    total, average = c[-1], s.cumulated_score[-1] / c[-1]
    if target == "AUTOC":
        reach = np.divide(s.cumulated_score, c, out=np.zeros(len(c)), where=c > 0)  # mean of all rows so far
        share = np.divide(w, c, out=np.zeros(len(c)), where=c > 0)
        own = reach + s.mean * _from_here(share) - _from_here(share * reach)
        area = w @ reach
        change = own + (x - s.mean) * _through_equals(order, w, c, share)
        out = change / total - area / total**2 - (x - average) / total
    else:
        after = _from_here(w)
        area, square = w @ s.cumulated_score, w @ c
        change = s.cumulated_score + s.mean * after + (x - s.mean) * _through_equals(order, w, c, w)
        change -= average * (c + after) + square * (x - average) / total
        out = change / total**2 - 2 * (area - average * square) / total**3
    back = np.zeros(len(out))
    back[order.rows] = np.where(w > 0, out, 0.0)
    return back


def _from_here(values: np.ndarray) -> np.ndarray:
    """Sum of each value and all after it."""
    return values[::-1].cumsum()[::-1]


def _through_equals(order: Order, w: np.ndarray, c: np.ndarray, share: np.ndarray) -> np.ndarray:
    """How far the sums move with the mean of a group of equals, per row: within it by parts, after it wholly."""
    total = np.add.reduceat(w, order.starts)
    group = order.group_of()
    before = (c - w)[order.starts]
    part = np.divide(c - before[group], total[group], out=np.zeros(len(c)), where=total[group] > 0)
    within = np.add.reduceat(share * part, order.starts)
    whole = np.add.reduceat(share, order.starts)
    return (within + _from_here(whole) - whole)[group]
