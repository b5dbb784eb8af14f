"""Boxes of strips of codes, for tables of few columns: how many strips, and what their boxes cost at least."""

from __future__ import annotations

import math

import numpy as np

from policytree.solvers.clock import Clock
from policytree.solvers.kernels.bag_boxes import fill_boxes
from policytree.solvers.kernels.bag_layout import CoarseBoxes, LeafCosts

MOST_BOXES, BOXES_OF_A_ROW = 1 << 20, 2000  # in all; for every merged row
FEWEST_STRIPS = 8  # of a column with more codes: of fewer, those that are dropped are too much
BYTES = 24  # of a box: its least cost, its shares


def no_boxes(columns: int) -> CoarseBoxes:
    """Where there are too many columns."""
    none = np.zeros(columns, np.int64)
    return CoarseBoxes(np.zeros(0), none, none, none, *np.zeros((2, columns, 1), np.int32))


def coarse_boxes(codes: np.ndarray, bins: np.ndarray, clock: Clock) -> CoarseBoxes:
    """Lay out the boxes of strips of merged rows, each strip with about as many of them.

    Parameters
    ----------
    codes : ndarray of shape (columns, n), uint16
    bins : ndarray of shape (columns,), int64
    clock : Clock
    """
    columns, n = codes.shape
    strips = _strips(bins, min(MOST_BOXES, BOXES_OF_A_ROW * n))
    if strips is None or not clock.fits_memory(BYTES * _boxes(strips)):
        return no_boxes(columns)
    up, down = np.zeros((2, columns, int(bins.max()) + 1), np.int32)
    for j in range(columns):
        ends = np.cumsum(np.bincount(codes[j], minlength=bins[j]))
        strip = np.arange(bins[j]) if strips[j] == bins[j] else (ends - 1) * strips[j] // n
        first = np.searchsorted(np.maximum(strip, 0), np.arange(strips[j] + 1))  # code that a strip begins with
        code = np.arange(bins[j] + 1)
        up[j, : bins[j] + 1] = np.searchsorted(first, code)
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


def _strip_of(boxes: CoarseBoxes, j: int, codes: np.ndarray) -> np.ndarray:
    """The strip of every code: the last one that begins at the code or before it."""
    return np.minimum(boxes.down[j, codes.astype(np.int64)], boxes.strips[j] - 1).astype(np.int64)


def _boxes(strips: np.ndarray) -> int:
    return math.prod(int(g) * (int(g) + 1) // 2 for g in strips)


def _strips(bins: np.ndarray, most: int) -> np.ndarray | None:
    """The largest number of strips that columns may have, each at most one for every code; None if it is too small."""
    if not len(bins) or float(np.prod(np.minimum(bins, FEWEST_STRIPS).astype(float))) > most:
        return None
    most_strips = int(bins.max())
    low, high = 0, most_strips
    while low < high:
        middle = (low + high + 1) // 2
        if _boxes(np.minimum(bins, middle)) <= most:
            low = middle
        else:
            high = middle - 1
    return np.minimum(bins, low) if low >= min(FEWEST_STRIPS, most_strips) else None
