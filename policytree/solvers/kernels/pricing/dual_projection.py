"""Projection of row duals u onto the constraints of the known boxes and the dual target.

The projection is the nearest u (in the metric of the rows' ``scale``) whose sums over known boxes are at most their
bounds and whose total is ``target``. The multiplier of a box is how far u has moved because of it. Two methods take
turns:

    passes       Hildreth's algorithm steps through the boxes: u moves just onto the bound of one, or back as far as its
                 multiplier allows. Passes soon identify the binding boxes, and converge slowly
    gradients    conjugate gradients on the binding boxes as equations, until one of them no longer binds

The result need be neither exact nor optimal: pricing decides what it proves.

Rows are sorted by their codes, so that the rows of a box are few runs of neighbours. Gradient steps add to both ends of
every run, and take sums of runs from running sums of all rows.

Cost: two visits of the rows of every box in a pass, and of the runs of every binding box in a gradient step.
Symbols: K boxes known, of which n bind.
"""

from typing import NamedTuple

import numpy as np

from policytree.solvers.kernels.base.layout import (
    STOP,
    codes_2d,
    f8,
    i8,
    int_1d,
    int_2d,
    long_1d,
    long_2d,
    long_3d,
    real_1d,
)
from policytree.solvers.kernels.compiling import kernel

ALL_EVERY = 10  # before gradients, one pass of so many visits all boxes; the others visit binding ones
BETWEEN = 3  # passes between two runs of gradients
CLOSER = 0.25  # of the tolerance: how closely gradients solve the equations
NOTHING = 1e-12  # of what a climb begins with: too small to divide by


class FittedRows(NamedTuple):
    """The rows, sorted by their codes."""

    codes: codes_2d
    keys: long_2d  # (2, n)
    losses: long_2d
    scale: real_1d
    penalty: i8  # unit of bounds


class KnownBoxes(NamedTuple):
    """The rows of boxes, and what they bound."""

    index: int_1d  # rows of box k, ascending: index[start[k] : start[k + 1]]
    start: long_1d
    runs: int_2d  # the same as runs of rows: the first one and the first one behind, in runs[first[k] : first[k + 1]]
    first: long_1d
    bound: real_1d  # of the sum of u
    norm: real_1d  # sum of the rows' scale
    multiplier: real_1d
    names: long_2d  # (2, room for boxes): sums of the rows' keys


@kernel(takes=(KnownBoxes, i8))
def find_runs(known, k):
    """Write down the runs of the rows of box k."""
    index, runs = known.index, known.runs
    r = known.first[k]
    for q in range(known.start[k], known.start[k + 1]):
        i = index[q]
        if q > known.start[k] and runs[r - 1, 1] == i:
            runs[r - 1, 1] = i + 1
        else:
            runs[r, 0] = i
            runs[r, 1] = i + 1
            r += 1
    known.first[k + 1] = r


@kernel(separate=True)
def rows_of_box(codes, box, index, end, inside):
    """Append the rows of a box to ``index[:end]``; returns the end then."""
    p, n = codes.shape
    for i in range(n):
        inside[i] = 1
    for f in range(p):
        low, high = np.uint16(box[f, 0]), np.uint16(box[f, 1])
        for i in range(n):
            inside[i] &= (codes[f, i] >= low) & (codes[f, i] <= high)
    for i in range(n):
        index[end] = i
        end += np.int64(inside[i])
    return end


@kernel(takes=(FittedRows, long_3d, i8, KnownBoxes, i8, i8, i8))
def add_boxes(rows, boxes, at, known, K, most, allowance):
    """Append boxes from ``boxes[at]`` on whose rows are not known, until K is ``most`` or there is no room for another.

    There must be room for one. Returns the first box that was not looked at, and K.
    """
    codes, keys, losses, scale = rows.codes, rows.keys, rows.losses, rows.scale
    index, start, names = known.index, known.start, known.names
    n = len(scale)
    inside = np.empty(n, np.uint8)
    while at < len(boxes) and most > K and start[K] + n <= len(index):
        end = rows_of_box(codes, boxes[at], index, start[K], inside)
        at += 1
        key1, key2 = 0, 0
        for q in range(start[K], end):
            key1 += keys[0, index[q]]
            key2 += keys[1, index[q]]
        new = end > start[K]
        for k in range(K):
            new &= (names[0, k] != key1) | (names[1, k] != key2)
        if not new:
            continue
        names[0, K] = key1
        names[1, K] = key2
        start[K + 1] = end
        find_runs(known, K)
        norm, least = 0.0, 0
        for q in range(start[K], end):
            norm += scale[index[q]]
        for k in range(len(losses)):
            loss = 0
            for q in range(start[K], end):
                loss += losses[k, index[q]]
            least = loss if k == 0 else min(least, loss)
        known.bound[K] = (least + allowance) / rows.penalty
        known.norm[K] = norm
        known.multiplier[K] = 0.0
        K += 1
    return at, K


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
            find_runs(known, kept)
            known.bound[kept] = known.bound[k]
            known.norm[kept] = known.norm[k]
            known.multiplier[kept] = known.multiplier[k]
            known.names[0, kept] = known.names[0, k]
            known.names[1, kept] = known.names[1, k]
            kept += 1
    return kept


# Loops stand for sums of numpy's here: they take as long, and numba compiles those for half a second.
@kernel
def dot(x, y, n):
    """The sum of products of the first n numbers."""
    total = 0.0
    for i in range(n):
        total += x[i] * y[i]
    return total


@kernel(borrows=True)
def sum_of_rows(x, rows):
    """The sum over some rows; four sums, as each addition waits for the one before."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    n = len(rows)
    for q in range(0, n - 3, 4):
        a += x[np.uint64(rows[q])]
        b += x[np.uint64(rows[q + 1])]
        c += x[np.uint64(rows[q + 2])]
        d += x[np.uint64(rows[q + 3])]
    for q in range(n // 4 * 4, n):
        a += x[np.uint64(rows[q])]
    return (a + b) + (c + d)


@kernel(separate=True, borrows=True)
def hildreth_pass(u, scale, known, K, target, every):
    """Step once through the binding boxes, or all; return the largest violation and the rows seen."""
    index, start, multiplier = known.index, known.start, known.multiplier
    worst, seen = 0.0, 0
    for k in range(K):
        if multiplier[k] == 0 and not every:
            continue
        rows = index[start[k] : start[k + 1]]
        seen += len(rows)
        violation = sum_of_rows(u, rows) - known.bound[k]
        worst = max(worst, violation)
        # A step takes ``norm`` times itself off the sum: this one puts u onto the bound, or, where the sum is below it,
        # back as far as the multiplier, which never falls below zero, has moved it.
        step = max(violation / known.norm[k], -multiplier[k])
        if step != 0:
            multiplier[k] += step
            for q in range(len(rows)):
                i = np.uint64(rows[q])
                u[i] -= step * scale[i]
    total, unit = 0.0, 0.0
    for i in range(len(u)):
        total += u[i]
        unit += scale[i]
    missing = (target - total) / unit
    for i in range(len(u)):
        u[i] += missing * scale[i]
    return worst, seen


@kernel(separate=True, borrows=True)
def sums_of_boxes(running, known, binding, n, sums):
    """Sum up the rows of boxes; ``running`` are the sums of all rows before each."""
    runs, first = known.runs, known.first
    for j in range(n):
        k = np.int64(binding[j])
        of_box = runs[first[k] : first[k + 1]]
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        for r in range(0, len(of_box) - 1, 2):
            a += running[np.uint64(of_box[r, 1])]
            b += running[np.uint64(of_box[r, 0])]
            c += running[np.uint64(of_box[r + 1, 1])]
            d += running[np.uint64(of_box[r + 1, 0])]
        if len(of_box) % 2:
            a += running[np.uint64(of_box[-1, 1])]
            b += running[np.uint64(of_box[-1, 0])]
        sums[j] = (a - b) + (c - d)


@kernel(separate=True, borrows=True)
def move_by_multipliers(multipliers, scale, known, binding, n, moved):
    """The change of u if multipliers change by that and the total stays; return the number of runs seen."""
    runs, first = known.runs, known.first
    seen = len(moved)
    for i in range(len(moved)):
        moved[i] = 0.0
    # A box adds its step to both ends of each of its runs; running sums then give every row the steps of its boxes:
    #
    #     a box of rows 2 to 4       0  0  s  0  0 -s
    #     running sum                0  0  s  s  s  0
    for j in range(n):
        k = np.int64(binding[j])
        of_box = runs[first[k] : first[k + 1]]
        seen += len(of_box)
        step = multipliers[j]
        for r in range(len(of_box)):
            moved[np.uint64(of_box[r, 0])] += step
            moved[np.uint64(of_box[r, 1])] -= step
    here, total, unit = 0.0, 0.0, 0.0
    for i in range(len(scale)):
        here += moved[i]
        moved[i] = here
        total += here * scale[i]
        unit += scale[i]
    mean = total / unit  # without it the total would change
    for i in range(len(scale)):
        moved[i] = (moved[i] - mean) * scale[i]
    return seen


@kernel(separate=True)
def add_up(x, n, running):
    """Sums of the first numbers, of none to all n."""
    total = 0.0
    for i in range(n):
        running[i] = total
        total += x[i]
    running[n] = total


@kernel(separate=True)
def first_step(u, known, K, binding, vectors, running):
    """List the binding boxes, their violations, and the first direction of the gradients."""
    violation, step = vectors[0], vectors[1]
    n = 0
    for k in range(K):
        if known.multiplier[k] > 0:
            binding[n] = k
            n += 1
    add_up(u, len(u), running)
    sums_of_boxes(running, known, binding, n, violation)
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


@kernel
def is_below(x, n, limit):
    """Whether the first n numbers are all smaller than a limit in size."""
    below = True
    for i in range(n):
        below &= abs(x[i]) < limit
    return below


@kernel(separate=True)
def conjugate_gradients(u, scale, known, K, most, tolerance, binding, vectors, work):
    """Steps of conjugate gradients on the binding boxes, until one no longer binds.

    Returns the number of steps, whether a box was released, and the number of rows seen.
    """
    multiplier, norm = known.multiplier, known.norm
    moved, running = work
    n = first_step(u, known, K, binding, vectors, running)
    violation, step, sums = vectors[0], vectors[1], vectors[2]
    size = dot(violation, step, n)  # squared violations, each over its box's norm: the diagonal preconditioner
    least = NOTHING * size
    seen = 0
    for taken in range(1, most + 1):
        if is_below(violation, n, tolerance):
            return taken, False, seen
        seen += 2 * move_by_multipliers(step, scale, known, binding, n, moved)
        add_up(moved, len(u), running)
        sums_of_boxes(running, known, binding, n, sums)
        curvature = dot(step, sums, n)
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
        if gone:  # one equation less: the directions so far are not conjugate for the others alone
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
    binding, vectors = np.empty(K, np.int32), np.empty((3, K))
    moved, running = np.empty((2, len(u) + 1))  # a run may end behind the last row
    work = 0
    for s in range(passes):
        every = gradient_steps == 0 or s % ALL_EVERY == 0  # gradients only need the binding boxes
        worst, seen = hildreth_pass(u, scale, known, K, target, every)
        work += seen
        if (every and worst < tolerance) or control[STOP] != 0:
            return work
    left = gradient_steps
    while left > 0 and control[STOP] == 0:
        taken, gone, seen = conjugate_gradients(
            u, scale, known, K, left, CLOSER * tolerance, binding, vectors, (moved, running)
        )
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
