"""Tuples and terms that the kernels of born-again trees share.

    cell       a product of intervals between neighbouring thresholds, one of every feature: it has one class
    box        a product of ranges of cells: feature j from lo[j] to hi[j], both included
    cut (j, t) lies between the cells t and t + 1 of feature j
    core       a few features with few cells: every box of theirs has its place in one vector of M numbers
    frame      the other features
    block      a box of the frame, together with all boxes of the core: a vector of M values
    live       a cut of the frame is live in a block if some pair of cells on either side of it there, equal but for
               that cut, has different classes. Only live cuts need be split on.

Blocks are trimmed: what lies beyond the first and last live cut of a feature is cut off, since the slab beside it has
the same classes. So few different blocks are left of the many boxes of the frame.

Symbols in the bodies of kernels: q features of the frame, W words of 64 cuts, M boxes of the core.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import types

i8 = types.int64
if TYPE_CHECKING:  # what Python hands over for them
    bytes_1d = np.ndarray
    bytes_2d = np.ndarray
    short_1d = np.ndarray
    short_2d = np.ndarray
    int_1d = np.ndarray
    int_2d = np.ndarray
    long_1d = np.ndarray
    long_2d = np.ndarray
    long_3d = np.ndarray
    real_1d = np.ndarray
    real_2d = np.ndarray
    real_3d = np.ndarray
else:
    bytes_1d, bytes_2d = types.uint8[::1], types.uint8[:, ::1]
    short_1d, short_2d = types.uint16[::1], types.uint16[:, ::1]
    int_1d, int_2d = types.int32[::1], types.int32[:, ::1]
    long_1d, long_2d, long_3d = types.int64[::1], types.int64[:, ::1], types.int64[:, :, ::1]
    real_1d, real_2d, real_3d = types.float64[::1], types.float64[:, ::1], types.float64[:, :, ::1]

MIXED = 255  # in tables of classes: more than one
NO_DEPTH = 250  # depth of a box that is not solved yet
NO_LEAVES = 0x3FFF  # leaves of a box that the depth left does not allow, and the most that are counted; two of them fit
STOP = 0  # place of the flag that stops a kernel

# Places in the state of the discovery of blocks.
FOUND, NEXT, CHILDREN = 0, 1, 2


class Frame(NamedTuple):
    """The features of the frame, and what answers which cuts are live in a box of them."""

    cells: long_1d  # (q,) cells of every feature
    bit: long_1d  # (q,) number of a feature's first cut
    stride: long_1d  # (q,) of cells, last feature fastest
    radix: long_1d  # (q,) of ranges of cells in keys of boxes
    ranged: i8  # the first features, whose ranges are rows of ``live``; of the others it has the cells
    row: long_1d  # (q,) stride of a feature's ranges or cells among the rows of ``live``
    live: long_2d  # (ranges of the first features x cells of the others, W) cuts across which a class changes


class Blocks(NamedTuple):
    """Blocks found so far, and the sides of their live cuts, cut after cut: left, right."""

    lo: short_2d  # (blocks, q)
    hi: short_2d  # (blocks, q)
    live: long_2d  # (blocks, W)
    corner: int_1d  # the cell of the frame at lo
    depth: short_1d  # splits of the frame that lead there at least
    first: long_1d  # (blocks + 1,) where its children begin
    children: int_1d  # blocks
    slots: int_1d  # hash table: block + 1, or 0
    keys: long_1d  # of the blocks in ``slots``


class Core(NamedTuple):
    """Boxes of the core, by the number of splits of the core that lead there at least, and their splits.

    Splits come by the size of what is split, so that sides come before what they are sides of.
    """

    classes: bytes_2d  # (cells of the frame, M): the class of a box of the core in a cell of the frame, or MIXED
    target: int_1d  # what is split
    left: int_1d
    right: int_1d
    feature: int_1d  # of the core
    cut: int_1d
    by_target: int_1d  # splits by what is split: those of box i stand at
    first: long_1d  # (M + 1,) first[i] .. first[i + 1] - 1


class Order(NamedTuple):
    """Blocks by their number of cuts, in batches of blocks that do not need each other."""

    blocks: int_1d
    batches: long_1d  # where each begins, and the end


class Layers(NamedTuple):
    """Least leaves of boxes within a depth r, for the blocks and depths where they matter; see layers.py."""

    depth: i8  # D, of the whole tree
    widths: long_1d  # (D + 1,) boxes of the core that at most s splits of the core lead to, filled up
    place: long_2d  # (blocks, D + 1) where the layer of a depth begins in the pool, or
    pool: short_1d


NO_TREE, LEAST = -1, -2  # in place of a place: no box has a tree of that depth; all have their least leaves
