"""Projection of row duals u onto the constraints of the known boxes and the dual target.

The projection is the nearest u (in the metric of the rows' ``scale``) whose sums over known boxes are at most their
bounds and whose total is ``target``. The multiplier of a box is how far u has moved because of it. Two methods take
turns:

    passes       Hildreth's algorithm steps through the boxes: u moves just onto the bound of one, or back as far as its
                 multiplier allows. Passes soon identify the binding boxes, and converge slowly
    gradients    conjugate gradients on the binding boxes as equations, until one of them no longer binds

The result need be neither exact nor optimal: pricing decides what it proves.

Cost: two visits of the rows of every box in a pass, and of every binding box in a gradient step.
Symbols: K boxes known, of which n bind.
"""

from typing import NamedTuple

import numpy as np

from policytree.solvers.kernels.base.layout import STOP, codes_2d, f8, i8, int_1d, long_1d, long_2d, real_1d
from policytree.solvers.kernels.compiling import kernel

ALL_EVERY = 10  # before gradients, one pass of so many visits all boxes; the others visit binding ones
BETWEEN = 3  # passes between two runs of gradients
CLOSER = 0.25  # of the tolerance: how closely gradients solve the equations
NOTHING = 1e-12  # of what a climb begins with: too small to divide by


class KnownBoxes(NamedTuple):
    """The rows of boxes, and what they bound."""

    index: int_1d  # rows of box k: index[start[k] : start[k + 1]]
    start: long_1d
    bound: real_1d  # of the sum of u
    norm: real_1d  # sum of the rows' scale
    multiplier: real_1d
    names: long_2d  # (2, room for boxes): sums of the rows' keys


@kernel(takes=(codes_2d, long_2d, long_2d, KnownBoxes, i8))
def rows_of_box(codes, box, keys, known, K):
    """Append the rows of a box as box K; return their number, or 0 if a box with the same rows is known."""
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
def drop_idle(known, K):
    """Drop boxes that do not bind; return the number of boxes left."""
    kept = 0
    for k in range(K):
        if known.multiplier[k] > 0:
            first, size = known.start[k], known.start[k + 1] - known.start[k]
            to = known.start[kept]
            for q in range(size):
                known.index[to + q] = known.index[first + q]
            known.start[kept + 1] = to + size
            known.bound[kept] = known.bound[k]
            known.norm[kept] = known.norm[k]
            known.multiplier[kept] = known.multiplier[k]
            known.names[0, kept] = known.names[0, k]
            known.names[1, kept] = known.names[1, k]
            kept += 1
    return kept


@kernel(separate=True)
def hildreth_pass(u, scale, known, K, target, every):
    """Step once through the binding boxes, or all; return the largest violation and the rows seen."""
    index, start, multiplier = known.index, known.start, known.multiplier
    worst, seen = 0.0, 0
    for k in range(K):
        if multiplier[k] == 0 and not every:
            continue
        seen += start[k + 1] - start[k]
        violation = -known.bound[k]
        for q in range(start[k], start[k + 1]):
            violation += u[index[q]]
        worst = max(worst, violation)
        step = max(violation / known.norm[k], -multiplier[k])
        if step != 0:
            multiplier[k] += step
            for q in range(start[k], start[k + 1]):
                u[index[q]] -= step * scale[index[q]]
    missing = (target - u.sum()) / scale.sum()
    for i in range(len(u)):
        u[i] += missing * scale[i]
    return worst, seen


@kernel(separate=True)
def sums_of_boxes(x, known, binding, n, sums):
    """Sum up x over the rows of boxes."""
    index, start = known.index, known.start
    for j in range(n):
        k = np.int64(binding[j])
        total = 0.0
        for q in range(start[k], start[k + 1]):
            total += x[index[q]]
        sums[j] = total


@kernel(separate=True)
def move_by_multipliers(multipliers, scale, known, binding, n, moved):
    """The change of u if multipliers change by that and the total stays; return the number of rows seen."""
    index, start = known.index, known.start
    seen = len(moved)
    for i in range(len(moved)):
        moved[i] = 0.0
    for j in range(n):
        k = np.int64(binding[j])
        seen += start[k + 1] - start[k]
        for q in range(start[k], start[k + 1]):
            moved[index[q]] += multipliers[j]
    mean = (moved * scale).sum() / scale.sum()
    for i in range(len(moved)):
        moved[i] = (moved[i] - mean) * scale[i]
    return seen


@kernel(separate=True)
def first_step(u, known, K, binding, vectors):
    """List the binding boxes, their violations, and the first direction of the gradients."""
    violation, step = vectors[0], vectors[1]
    n = 0
    for k in range(K):
        if known.multiplier[k] > 0:
            binding[n] = k
            n += 1
    sums_of_boxes(u, known, binding, n, violation)
    for j in range(n):
        k = np.int64(binding[j])
        violation[j] -= known.bound[k]
        step[j] = violation[j] / known.norm[k]
    return n


@kernel(separate=True)
def furthest(multiplier, step, binding, n, length):
    """The longest step, at most ``length``, after which no multiplier is negative."""
    for j in range(n):
        k = np.int64(binding[j])
        if step[j] < 0 and multiplier[k] + length * step[j] < 0:
            length = multiplier[k] / -step[j]
    return length


@kernel(separate=True)
def conjugate_gradients(u, scale, known, K, most, tolerance, binding, vectors, moved):
    """Steps of conjugate gradients on the binding boxes, until one no longer binds.

    Returns the number of steps, whether a box was released, and the number of rows seen.
    """
    multiplier, norm = known.multiplier, known.norm
    n = first_step(u, known, K, binding, vectors)
    violation, step, sums = vectors[0], vectors[1], vectors[2]
    size = (violation[:n] * step[:n]).sum()
    least = NOTHING * size
    seen = 0
    for taken in range(1, most + 1):
        if np.abs(violation[:n]).max() < tolerance if n > 0 else True:
            return taken, False, seen
        seen += 2 * move_by_multipliers(step, scale, known, binding, n, moved)
        sums_of_boxes(moved, known, binding, n, sums)
        curvature = (step[:n] * sums[:n]).sum()
        if curvature <= least:
            return taken, False, seen
        length = furthest(multiplier, step, binding, n, size / curvature)
        for i in range(len(u)):
            u[i] -= length * moved[i]
        gone = False
        for j in range(n):
            k = np.int64(binding[j])
            multiplier[k] += length * step[j]
            if multiplier[k] < NOTHING:
                multiplier[k] = 0.0
                gone = True
            violation[j] -= length * sums[j]
        if gone:
            return taken, True, seen
        before, size = size, 0.0
        for j in range(n):
            size += violation[j] * violation[j] / norm[np.int64(binding[j])]
        for j in range(n):
            step[j] = violation[j] / norm[np.int64(binding[j])] + size / before * step[j]
    return most, False, seen


@kernel(takes=(real_1d, real_1d, KnownBoxes, i8, f8, f8, i8, i8, long_1d))
def project(u, scale, known, K, target, tolerance, passes, gradient_steps, control):
    """Project u onto K bounds and the target: passes, then gradient steps, up to a tolerance or those numbers of steps.

    Returns the number of rows of boxes that were seen.
    """
    binding, vectors, moved = np.empty(K, np.int32), np.empty((3, K)), np.empty(len(u))
    work = 0
    for s in range(passes):
        every = gradient_steps == 0 or s % ALL_EVERY == 0  # gradients only need the binding boxes
        worst, seen = hildreth_pass(u, scale, known, K, target, every)
        work += seen
        if (every and worst < tolerance) or control[STOP] != 0:
            return work
    left = gradient_steps
    while left > 0 and control[STOP] == 0:
        taken, gone, seen = conjugate_gradients(u, scale, known, K, left, CLOSER * tolerance, binding, vectors, moved)
        left -= taken
        work += seen
        worst, seen = hildreth_pass(u, scale, known, K, target, not gone)
        work += seen
        if gone:
            continue
        if worst < tolerance:
            break
        for _ in range(BETWEEN):
            work += hildreth_pass(u, scale, known, K, target, False)[1]
    return work
