"""Two actions and two-valued columns: the words and tuples of the search by blocks of pair sums.

A column is *on* where its rarer code is. ``G[u, v]`` of a set of rows is the sum of their losses (action 1 less
action 0) where columns u and v are both on; its diagonal holds the sums of single columns. The block alone gives the
best tree of depth two for every first split:

                 u on                  u off
    v on      G[u, v]           G[v, v] - G[u, v]
    v off  G[u, u] - G[u, v]        the rest

so least and largest entries are all there is to keep. Blocks add up over rows: of the four sets that two columns k, j
make of a set, only the rows with both on are ever added up; the other three blocks are differences of the blocks of
all rows, of {k on} and of {j on}. So depth four costs one short sum and four scans for each pair of columns.

Blocks have the smallest type that holds every sum exactly, so values are exact and need no second look. Literals are
numbered column, and n + column where it is on.

Symbols: m rows, n columns, G sums of losses, F the same of losses below zero (what these rows cost at least).
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import types

from policytree.solvers.kernels.base.layout import i8, int_1d, long_1d, long_2d
from policytree.solvers.kernels.compiling import OneOf

BYTES = 64  # of a vector
UNKNOWN = -(1 << 61)
#: A solved side: sums of its rows' keys, its value, its first split, and whether the value is exact.
KEY1, KEY2, VALUE, ROOT, EXACT = 0, 1, 2, 3, 4
N_SOLVED = 5

if TYPE_CHECKING:  # what Python hands over for them
    sums_1d = np.ndarray
    sums_2d = np.ndarray
    byte_2d = np.ndarray
else:
    sums_1d = OneOf({kind: getattr(types, kind)[::1] for kind in ("int16", "int32", "int64")})
    sums_2d = OneOf({kind: getattr(types, kind)[:, ::1] for kind in ("int16", "int32", "int64")})
    byte_2d = types.uint8[:, ::1]


class Size(NamedTuple):
    """Sizes of blocks, and what their numbers stand for."""

    n: i8  # columns
    width: i8  # the same, padded to whole vectors
    shift: i8  # a sum s stands for s << shift
    penalty: i8  # of a leaf


class PairRows(NamedTuple):
    """The rows of a problem."""

    products: sums_1d  # (m * width): a row's loss where a column is on
    floors: sums_1d  # the same, not above zero; empty where nothing deeper than three is searched
    items: int_1d  # the columns that are on: items[start[i] : start[i + 1]]
    start: int_1d
    losses: long_1d  # (m)
    on: byte_2d  # (n, m)
    keys: long_2d  # (2, m), random: their sums name a set of rows


class Upper(NamedTuple):
    """Sums, floors and values of pairs of a larger set of rows, as in :class:`Blocks`."""

    sums: sums_1d
    floors: sums_1d
    diagonal: sums_1d
    floor_diagonal: sums_1d
    totals: long_1d
    pair_values: long_1d


class Blocks(NamedTuple):
    """Blocks of one node."""

    sums: sums_1d  # (n * width): sums of pairs
    floors: sums_1d  # the same of losses below zero: what these rows cost at least
    sums_on: sums_1d  # (n * n * width): the block of the rows where each column is on; (n * width): of one at a time
    diagonal: sums_1d  # (width): diagonal of G
    floor_diagonal: sums_1d  # (width): diagonal of F
    totals: long_1d  # (4): sums of losses, of floors, and of both keys
    keys_on: long_2d  # (2, n): sums of keys where a column is on
    two: long_1d  # (2 n): value of depth two of each literal's rows
    two_by_split: long_1d  # (2 n * n): the same by first split
    three: long_1d  # (2 n): bounds of depth three
    three_splits: long_1d  # (2 n): first splits there
    pair_values: long_1d  # (2 n * 2 n): values of depth two for pairs of literals, UNKNOWN where not met
    first: long_1d  # the rows where column j is on: listed[first[j] : first[j + 1]]
    listed: int_1d
    cube: long_1d  # (2 n * 2 n * 2 n): P of all nodes that are one literal's rows, shared by all searches
    literal: i8  # this node's literal; -1: the node has a P of its own
    upper: Upper  # the root, where this node is one literal's rows


class PairScratch(NamedTuple):
    """Arrays of one worker; see block_sums.pair_value."""

    sums_both: sums_1d  # (n * n * width)
    complement: sums_1d  # (n * width)
    diagonal: sums_1d  # (width)
    out: sums_2d  # (4, width)
    by_split: long_1d  # (n)
    pair_first: long_1d  # (n + 1)
    pair_listed: int_1d
    state: long_1d  # (n + 1)
