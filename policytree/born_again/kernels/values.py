"""Least depth and least leaves of every box of every block, from small boxes to large ones.

A box whose cells have one class is a leaf. Any other is split, at a live cut of the frame into the same box of the core
in two smaller blocks, or at a cut of the core into two smaller boxes of the same block:

    depth(box)  = 1 + least over cuts of max(depth(left), depth(right))
    leaves(box) =     least over cuts of leaves(left) + leaves(right)

Both are least over all trees: a tree on a box is a first split and two trees on its sides, and a split at a dead cut
can be left out. Blocks come by their number of cuts, so that sides come before what is split. Blocks with as many cuts
do not need each other: the splits of the core, which are short, are made in ``LANES`` of them at once.

Cost: for each block 2 M numbers for each live cut of the frame, and one for each split of a box of the core, in
vectors. Symbols: see layout.py; M is filled up to a multiple of LANES.
"""

import numpy as np

from policytree.born_again.kernels.layout import (
    MIXED,
    NO_DEPTH,
    NO_LEAVES,
    STOP,
    Blocks,
    Core,
    Order,
    bytes_1d,
    long_1d,
    short_1d,
)
from policytree.born_again.kernels.vectors import (
    LANES,
    REGISTER,
    first_split,
    lower_split,
    turn_from_lanes,
    turn_to_lanes,
)
from policytree.solvers.kernels.compiling import kernel

u1, u2 = np.uint8, np.uint16


@kernel
def rows_of_batch(order, begin, end, M, rows):
    """Where the values of a batch's blocks begin; a batch that is not full repeats its last one."""
    for k in range(LANES):
        rows[k] = order.blocks[min(begin + k, end - 1)] * M


@kernel(inline="always")
def fill_values(blocks, core, order, values, lanes, state, flag, leaf, none):
    """Values of all boxes; ``leaf``: of a box of one class, ``none``: of a box that is not split yet."""
    M, classes, rows = core.classes.shape[1], core.classes.reshape(-1), state[1:]
    square = REGISTER // values.itemsize
    while state[0] + 1 < len(order.batches) and flag[STOP] == 0:
        begin, end = order.batches[state[0]], order.batches[state[0] + 1]
        for k in range(begin, end):
            b = order.blocks[k]
            at, first, last = b * M, blocks.first[b], blocks.first[b + 1]
            if first == last:
                for i in range(M):
                    values[at + i] = leaf if classes[blocks.corner[b] * M + i] != MIXED else none
            for s in range(first, last, 2):
                c, d = blocks.children[s], blocks.children[s + 1]
                left, right = c * M, d * M
                if s == first:
                    one, other = blocks.corner[c] * M, blocks.corner[d] * M
                    for i in range(0, M, LANES):
                        first_split(values, at + i, left + i, right + i, classes, one + i, other + i)
                else:
                    for i in range(0, M, LANES):
                        lower_split(values, at + i, values, left + i, values, right + i)
        rows_of_batch(order, begin, end, M, rows)
        for i in range(0, M, square):
            for k in range(0, LANES, square):
                turn_to_lanes(values, rows, k, i, lanes)
        for s in range(len(core.target)):
            at, left, right = core.target[s] * LANES, core.left[s] * LANES, core.right[s] * LANES
            lower_split(lanes, at, lanes, left, lanes, right)
        for i in range(0, M, square):
            for k in range(0, LANES, square):
                turn_from_lanes(values, rows, k, i, lanes)
        state[0] += 1


@kernel(takes=(Blocks, Core, Order, bytes_1d, bytes_1d, long_1d, long_1d))
def least_depths(blocks, core, order, values, lanes, state, flag):
    """Least depth of every box of block b, from ``values[b * M]`` on.

    lanes : work space, M x LANES. state : how many batches of the order are done, then work space for LANES places.
    """
    fill_values(blocks, core, order, values, lanes, state, flag, u1(0), u1(NO_DEPTH))


@kernel(takes=(Blocks, Core, Order, short_1d, short_1d, long_1d, long_1d))
def least_leaves(blocks, core, order, values, lanes, state, flag):
    """Least leaves of every box, NO_LEAVES for that many or more; as :func:`least_depths`."""
    fill_values(blocks, core, order, values, lanes, state, flag, u2(1), u2(NO_LEAVES))
