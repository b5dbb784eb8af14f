"""Least leaves of every box within a depth, for all depths that matter: the trade-off between depth and leaves.

    leaves(box, 0) = 1 if its cells have one class, else none
    leaves(box, r) = least over cuts of leaves(left, r - 1) + leaves(right, r - 1)

which is least over all trees of depth r at most: first split, then trees of depth r - 1 at most on its sides. A tree of
depth D of the whole space meets a box with r <= D - s left, s being the number of splits that lead there at least:
those of the frame as the blocks were found, and one for every side of a box of the core that is not a side of the whole
core. Nothing else is computed. Boxes of the core come by that number, so that what a layer needs is the first part of a
vector. Layers are not stored where no box has a tree yet, nor from where on all boxes reach their least leaves.

Cost: for each layer as in values.py, for the boxes that matter.
Symbols: see layout.py; r depth left, D depth of the whole tree.
"""

import numpy as np

from policytree.born_again.kernels.layout import (
    LEAST,
    NO_LEAVES,
    NO_TREE,
    STOP,
    Blocks,
    Core,
    Layers,
    Order,
    long_1d,
    short_1d,
)
from policytree.born_again.kernels.values import rows_of_batch
from policytree.born_again.kernels.vectors import (
    LANES,
    REGISTER,
    keep_leaves,
    lower_split,
    turn_from_lanes,
    turn_to_lanes,
)
from policytree.solvers.kernels.compiling import kernel

SQUARE = REGISTER // 2


@kernel
def leaves_within(blocks, core, layers, least, b, i, r):
    """Least leaves of box i of the core in block b within depth r."""
    x = least[b * core.classes.shape[1] + i]
    if x == 1:
        return 1
    place = layers.place[b, r]
    if place == NO_TREE:
        return NO_LEAVES
    return np.int64(x if place == LEAST else layers.pool[place + i])


@kernel
def split_frame(blocks, layers, least, M, b, r, width, own):
    """One block's layer r from its sides in the frame: ``own[0]`` .. ``own[width - 1]``."""
    for i in range(0, width, LANES):
        keep_leaves(own, i, least, b * M + i)
    for s in range(blocks.first[b], blocks.first[b + 1], 2):
        c, d = blocks.children[s], blocks.children[s + 1]
        if r == 1:  # both sides are leaves: work space behind ``own``
            for i in range(0, width, LANES):
                keep_leaves(own, M, least, c * M + i)
                keep_leaves(own, M + LANES, least, d * M + i)
                lower_split(own, i, own, M, own, M + LANES)
            continue
        left, right = layers.place[c, r - 1], layers.place[d, r - 1]
        if left == NO_TREE or right == NO_TREE:
            continue
        one, other = left != LEAST, right != LEAST  # whether in the pool
        if not one:
            left = c * M
        if not other:
            right = d * M
        if one and other:
            for i in range(0, width, LANES):
                lower_split(own, i, layers.pool, left + i, layers.pool, right + i)
        elif one:
            for i in range(0, width, LANES):
                lower_split(own, i, layers.pool, left + i, least, right + i)
        elif other:
            for i in range(0, width, LANES):
                lower_split(own, i, least, left + i, layers.pool, right + i)
        else:
            for i in range(0, width, LANES):
                lower_split(own, i, least, left + i, least, right + i)


@kernel
def store_layer(layers, least, b, r, width, own, state):
    """Keep a layer, unless no box has a tree; whether all have their least leaves, so that more depth is no use."""
    any_tree, all_least = False, True
    at = b * (len(least) // len(layers.place))
    for i in range(width):
        if own[i] < NO_LEAVES:
            any_tree = True
        if own[i] != least[at + i]:
            all_least = False
    if all_least:
        for more in range(r, layers.depth + 1):
            layers.place[b, more] = LEAST
    elif any_tree:
        layers.place[b, r] = state[1]
        for i in range(width):
            layers.pool[state[1] + i] = own[i]
        state[1] += width
    else:
        layers.place[b, r] = NO_TREE
    return all_least


@kernel(takes=(Blocks, Core, Order, Layers, short_1d, short_1d, long_1d, long_1d))
def fill_layers(blocks, core, order, layers, least, work, state, flag):
    """Fill all layers. ``least``: leaves without a limit of depth, as ``values.least_leaves`` leaves them.

    ``work`` : (3 LANES M + 2 LANES) space. ``state`` : batches done, places of the pool used, then work space for LANES
    places and LANES marks.
    """
    M, D = core.classes.shape[1], layers.depth
    rows, done = state[2 : 2 + LANES], state[2 + LANES : 2 + 2 * LANES]
    size = M * LANES
    before, now = work[:size], work[size : 2 * size]
    own = work[2 * size :]
    while state[0] + 1 < len(order.batches) and flag[STOP] == 0:
        begin, end = order.batches[state[0]], order.batches[state[0] + 1]
        deepest = 0
        rows_of_batch(order, begin, end, M, rows)
        for k in range(end - begin):
            b = order.blocks[begin + k]
            done[k] = 0
            layers.place[b, 0] = NO_TREE  # but for leaves, which are looked up first
            deepest = max(deepest, D - blocks.depth[b])
        width = layers.widths[min(D, deepest)]
        for k in range(LANES):
            for i in range(0, width, LANES):
                keep_leaves(own, k * M + i, least, rows[k] + i)
            rows[k] = k * M
        for i in range(0, width, SQUARE):
            for k in range(0, LANES, SQUARE):
                turn_to_lanes(own, rows, k, i, before)
        for r in range(1, deepest + 1):
            width = layers.widths[deepest - r]
            for k in range(end - begin):
                b = order.blocks[begin + k]
                if done[k] == 0 and r <= D - blocks.depth[b]:
                    split_frame(blocks, layers, least, M, b, r, width, own[k * M :])
            for i in range(0, width, SQUARE):
                for k in range(0, LANES, SQUARE):
                    turn_to_lanes(own, rows, k, i, now)
            for i in range(width):
                if i < len(core.first) - 1:
                    for s in range(core.first[i], core.first[i + 1]):
                        split = core.by_target[s]
                        left, right = core.left[split] * LANES, core.right[split] * LANES
                        lower_split(now, i * LANES, before, left, before, right)
            for i in range(0, width, SQUARE):
                for k in range(0, LANES, SQUARE):
                    turn_from_lanes(own, rows, k, i, now)
            left_over = 0
            for k in range(end - begin):
                b = order.blocks[begin + k]
                slack = D - blocks.depth[b]
                if done[k] == 0 and r <= slack:
                    width = layers.widths[slack - r]
                    if store_layer(layers, least, b, r, width, own[k * M :], state):
                        done[k] = 1
                    else:
                        left_over += 1
            if left_over == 0:
                break
            before, now = now, before
        state[0] += 1
