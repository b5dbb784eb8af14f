"""Fits the numbers u of the rows to boxes that exceed what they may: projections, one box after the other.

u is to be the nearest (in the metric of the rows' ``scale``) whose sums over known boxes are at most their bounds and
whose sum in all is ``target``. Hildreth's algorithm steps through the boxes: u moves just onto the bound of one, and
back as far as later steps have made up for it. What it finds need be neither exact nor optimal: pricing says what it
proves.

Cost: two passes over the rows of every box in each sweep; boxes that bind are swept ten times as often.
Symbols: K boxes known; the dual of a box is how far u has moved because of it.
"""

from typing import NamedTuple

import numpy as np
from numba import types

from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.layout import codes_2d, i8, int_1d, long_1d, long_2d

ALL_EVERY = 10  # sweeps
f8 = types.float64
real_1d = types.float64[::1]


class KnownBoxes(NamedTuple):
    """The rows of boxes, and what they bound."""

    index: int_1d  # rows of box k: index[start[k] : start[k + 1]]
    start: long_1d
    bound: real_1d  # of the sum of u
    norm: real_1d  # sum of the rows' scale
    dual: real_1d
    names: long_2d  # (2, room for boxes): sums of the rows' keys


@kernel(takes=(codes_2d, long_2d, long_2d, KnownBoxes, i8))
def rows_of_box(codes, box, keys, known, K):
    """Append the rows of a box as box K; returns their number, or 0 if a box with the same rows is known."""
    p, n = codes.shape
    index, names = known.index, known.names
    first = known.start[K]
    end, key1, key2 = first, 0, 0
    for i in range(n):
        inside = True
        for f in range(p):
            c = np.int64(codes[f, i])
            if c < box[f, 0] or c > box[f, 1]:
                inside = False
                break
        if inside:
            index[end] = i
            end += 1
            key1 += keys[0, i]
            key2 += keys[1, i]
    for k in range(K):
        if names[0, k] == key1 and names[1, k] == key2:
            return 0
    names[0, K] = key1
    names[1, K] = key2
    known.start[K + 1] = end
    return end - first


@kernel(takes=(KnownBoxes, i8))
def forget_idle(known, K):
    """Drop boxes that do not bind; returns how many are left."""
    kept = 0
    for k in range(K):
        if known.dual[k] > 0:
            first, size = known.start[k], known.start[k + 1] - known.start[k]
            to = known.start[kept]
            for q in range(size):
                known.index[to + q] = known.index[first + q]
            known.start[kept + 1] = to + size
            known.bound[kept] = known.bound[k]
            known.norm[kept] = known.norm[k]
            known.dual[kept] = known.dual[k]
            known.names[0, kept] = known.names[0, k]
            known.names[1, kept] = known.names[1, k]
            kept += 1
    return kept


@kernel(takes=(real_1d, real_1d, KnownBoxes, i8, f8, i8, f8, long_1d))
def project(u, scale, known, K, target, sweeps, tolerance, control):
    """Move u onto all K bounds and the target, up to a tolerance or for a number of sweeps."""
    index, start, dual = known.index, known.start, known.dual
    whole = scale.sum()
    for sweep in range(sweeps):
        every = sweep % ALL_EVERY == 0
        worst = 0.0
        for k in range(K):
            if dual[k] == 0 and not every:
                continue
            over = -known.bound[k]
            for q in range(start[k], start[k + 1]):
                over += u[index[q]]
            worst = max(worst, over)
            step = max(over / known.norm[k], -dual[k])
            if step != 0:
                dual[k] += step
                for q in range(start[k], start[k + 1]):
                    u[index[q]] -= step * scale[index[q]]
        missing = (target - u.sum()) / whole
        for i in range(len(u)):
            u[i] += missing * scale[i]
        if (every and worst < tolerance) or control[0] != 0:
            break
