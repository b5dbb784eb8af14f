"""Boxes of strips of codes, for tables of few columns: their number, and the least cost of each."""

from __future__ import annotations

import math

import numpy as np

from policytree.problem.types import GATES, SizeGates
from policytree.solvers.core.limits import Clock
from policytree.solvers.core.rows import Splits
from policytree.solvers.kernels.subsets.ranking_boxes import fill_boxes
from policytree.solvers.kernels.subsets.ranking_costs import costs_of_rows
from policytree.solvers.kernels.subsets.ranking_layout import CoarseBoxes, LeafCosts

BYTES = 24  # of a box: its least cost, its shares


def no_boxes(columns: int) -> CoarseBoxes:
    """Where there are too many columns."""
    none = np.zeros(columns, np.int64)
    return CoarseBoxes(np.zeros(0), none, none, none, *np.zeros((2, columns, 1), np.int32))


def coarse_boxes(
    codes: np.ndarray, bins: np.ndarray, clock: Clock, most: float, gates: SizeGates = GATES
) -> CoarseBoxes:
    """Lay out the boxes of strips of merged rows, each strip with about as many of them.

    Parameters
    ----------
    codes : ndarray of shape (columns, n), uint16
    bins : ndarray of shape (columns,), int64
    clock : Clock
    most : float
        Boxes at most.
    gates : SizeGates, optional
    """
    columns, n = codes.shape
    strips = _strips(bins, min(most, gates.most_boxes_of_a_row * n), gates.least_strips)
    if strips is None or not clock.fits_memory(BYTES * _boxes(strips)):
        return no_boxes(columns)
    up, down = np.zeros((2, columns, int(bins.max()) + 1), np.int32)
    for j in range(columns):
        ends = np.cumsum(np.bincount(codes[j], minlength=bins[j]))
        strip = np.arange(bins[j]) if strips[j] == bins[j] else (ends - 1) * strips[j] // n
        first = np.searchsorted(np.maximum(strip, 0), np.arange(strips[j] + 1))  # code that a strip begins with
        code = np.arange(bins[j] + 1)
        up[j, : bins[j] + 1] = np.searchsorted(first, code)
        up[j, bins[j] + 1 :] = strips[j]  # nothing lies beyond
        down[j, : bins[j] + 1] = np.searchsorted(first, code, side="right") - 1
    intervals = strips * (strips + 1) // 2
    stride = np.concatenate([[1], np.cumprod(intervals[:-1])]).astype(np.int64)
    return CoarseBoxes(np.zeros(_boxes(strips)), strips, (strips < bins).astype(np.int64), stride, up, down)


def fill(
    boxes: CoarseBoxes, costs: LeafCosts, price: float, codes: np.ndarray, shares: np.ndarray, flag: np.ndarray
) -> CoarseBoxes:
    """The boxes with their least costs for a reference; ``shares`` (n, 2) are those of merged rows."""
    if not len(boxes.least):
        return boxes
    columns = len(boxes.strips)
    strip = np.stack([_strip_of(boxes, j, codes[j]) for j in range(columns)])
    cell = (strip * boxes.stride[:, None]).sum(axis=0)
    positive, negative = np.zeros((2, len(boxes.least)))
    np.add.at(positive, cell, shares[:, 0])
    np.add.at(negative, cell, shares[:, 1])
    boxes = boxes._replace(least=np.zeros(len(boxes.least)))
    first = np.tile(np.array([0, 1], np.int64), (columns, 1))
    fill_boxes(boxes, costs, price, positive, negative, first, flag)
    return boxes


def cuts_between_strips(boxes: CoarseBoxes) -> CoarseBoxes:
    """The same boxes, with cuts between strips only: then their least costs are those of such trees, no bounds."""
    return boxes._replace(gap=np.zeros_like(boxes.gap))


def least_tree(boxes: CoarseBoxes, costs: LeafCosts, price: float, codes: np.ndarray, shares: np.ndarray) -> Splits:
    """The tree of least cost whose cuts lie between strips, in preorder; ``boxes`` are filled for such cuts."""
    strip = np.stack([_strip_of(boxes, j, codes[j]) for j in range(len(codes))])
    splits: Splits = []
    stack = [(np.column_stack([np.zeros_like(boxes.strips), boxes.strips]), np.arange(codes.shape[1]))]
    while stack:
        box, rows = stack.pop()
        leaf = np.empty(1)
        costs_of_rows(costs, shares[rows].sum(axis=0)[None], leaf)
        least, column, cut = _least_cut(boxes, box)
        if leaf[0] + price <= least:
            splits.append((-1, 0))
            continue
        splits.append((column, int(np.searchsorted(boxes.up[column, 1:], cut, side="right")) - 1))
        left = strip[column, rows] < cut
        below, above = box.copy(), box.copy()
        below[column, 1] = above[column, 0] = cut
        stack += [(above, rows[~left]), (below, rows[left])]
    return splits


def _least_cut(boxes: CoarseBoxes, box: np.ndarray) -> tuple[float, int, int]:
    """The least sum of both sides of a box, the column, and the strip that the second side begins with."""
    digits = [_digit(int(g), a, b) for g, (a, b) in zip(boxes.strips, box.tolist(), strict=True)]
    base = int(np.dot(digits, boxes.stride))
    found = (np.inf, -1, 0)
    for j, (a, b) in enumerate(box.tolist()):
        g, stride = int(boxes.strips[j]), int(boxes.stride[j])
        for t in range(a + 1, b):
            one, two = (base + (_digit(g, *side) - digits[j]) * stride for side in ((a, t), (t, b)))
            found = min(found, (float(boxes.least[one] + boxes.least[two]), j, t))
    return found


def _digit(strips: int, first: int, end: int) -> int:
    """The number of an interval of strips among those of its column; see the kernel of that name."""
    w = end - first - 1
    return w * strips - w * (w - 1) // 2 + first


def _strip_of(boxes: CoarseBoxes, j: int, codes: np.ndarray) -> np.ndarray:
    """The strip of every code: the last one that begins at the code or before it."""
    return np.minimum(boxes.down[j, codes.astype(np.int64)], boxes.strips[j] - 1).astype(np.int64)


def _boxes(strips: np.ndarray) -> int:
    return math.prod(int(g) * (int(g) + 1) // 2 for g in strips)


def _strips(bins: np.ndarray, most: float, fewest: int) -> np.ndarray | None:
    """The largest number of strips that columns may have, each at most one for every code; None if it is too small.

    With fewer than ``fewest`` strips of a column that has more codes, boxes without the strips that are cut say little.
    """
    if not len(bins) or float(np.prod(np.minimum(bins, fewest).astype(float))) > most:
        return None
    most_strips = int(bins.max())
    low, high = 0, most_strips
    while low < high:
        middle = (low + high + 1) // 2
        if _boxes(np.minimum(bins, middle)) <= most:
            low = middle
        else:
            high = middle - 1
    return np.minimum(bins, low) if low >= min(fewest, most_strips) else None
