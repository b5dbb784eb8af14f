"""An optimal tree, read off the values from the whole space down.

Cost: for each node one look at the values of both sides of every live cut.
Symbols: see layout.py; r depth left.
"""

from typing import NamedTuple

import numpy as np

from policytree.born_again.kernels.blocks import is_live
from policytree.born_again.kernels.layers import leaves_within
from policytree.born_again.kernels.layout import (
    Blocks,
    Core,
    Frame,
    Layers,
    bytes_1d,
    i8,
    long_1d,
    long_2d,
    short_1d,
)
from policytree.solvers.kernels.compiling import kernel

DEPTH, LEAVES, BOTH = 0, 1, 2
WORST = 1 << 40
FULL = -1


class Values(NamedTuple):
    """Depths and leaves of boxes; arrays that an objective does not need are of length 0 or 1."""

    objective: i8  # DEPTH: least depth; LEAVES: least leaves; BOTH: least leaves within a depth
    depths: bytes_1d
    leaves: short_1d
    layers: Layers


@kernel
def value_of(values, blocks, core, b, i, r):
    """Value of a box."""
    at = b * core.classes.shape[1] + i
    if values.objective == DEPTH:
        return np.int64(values.depths[at])
    if values.objective == LEAVES:
        return np.int64(values.leaves[at])
    return leaves_within(blocks, core, values.layers, values.leaves, b, i, r)


@kernel
def joint_value(values, left, right, r):
    """How good a split is whose sides have these values, if r is left for both."""
    if values.objective == DEPTH:
        return left + right if max(left, right) <= r else WORST
    return left + right


@kernel(takes=(Frame, Blocks, Core, Values, i8, long_2d, long_2d, long_1d))
def read_tree(frame, blocks, core, values, depth, nodes, stack, best):
    """Number of nodes of the tree of the whole space, or FULL if the arrays are.

    nodes : (most, 5), in preorder: feature (of the frame first, then of the core; -1 in leaves), cut, left, right,
    class. stack : (most, 5), best : (6), work space.
    """
    q = len(frame.cells)
    count, top = 0, 1
    for x in range(5):
        stack[0, x] = 0
    stack[0, 2] = depth
    stack[0, 3] = -1
    while top > 0:
        top -= 1
        b, i, r, parent, side = stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3], stack[top, 4]
        if count + 2 >= len(nodes) or top + 2 >= len(stack):
            return FULL
        if parent >= 0:
            nodes[parent, 2 + side] = count
        v = value_of(values, blocks, core, b, i, r)
        nodes[count, 0] = -1
        nodes[count, 1] = -1
        nodes[count, 2] = -1
        nodes[count, 3] = -1
        nodes[count, 4] = -1
        if v == (0 if values.objective == DEPTH else 1):
            nodes[count, 4] = core.classes[blocks.corner[b], i]
            count += 1
            continue
        least, s = WORST, blocks.first[b]
        for f in range(q):
            for t in range(blocks.lo[b, f], blocks.hi[b, f]):
                if is_live(blocks.live[b], frame.bit[f] + t):
                    c, d = blocks.children[s], blocks.children[s + 1]
                    s += 2
                    x = joint_value(
                        values,
                        value_of(values, blocks, core, c, i, r - 1),
                        value_of(values, blocks, core, d, i, r - 1),
                        r - 1,
                    )
                    if x < least:
                        least = x
                        best[0] = f
                        best[1] = t
                        best[2] = c
                        best[3] = i
                        best[4] = d
                        best[5] = i
        for s in range(core.first[i], core.first[i + 1]):
            split = core.by_target[s]
            left, right = core.left[split], core.right[split]
            x = joint_value(
                values,
                value_of(values, blocks, core, b, left, r - 1),
                value_of(values, blocks, core, b, right, r - 1),
                r - 1,
            )
            if x < least:
                least = x
                best[0] = q + core.feature[split]
                best[1] = core.cut[split]
                best[2] = b
                best[3] = left
                best[4] = b
                best[5] = right
        nodes[count, 0] = best[0]
        nodes[count, 1] = best[1]
        for k in range(2):  # the right side first: it waits below the left one
            stack[top, 0] = best[4 - 2 * k]
            stack[top, 1] = best[5 - 2 * k]
            stack[top, 2] = r - 1
            stack[top, 3] = count
            stack[top, 4] = 1 - k
            top += 1
        count += 1
    return count
