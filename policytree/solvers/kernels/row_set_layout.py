"""Proofs without a depth limit: the words and tuples of the search over row sets.

The value V(R) of a set of rows R is the least cost of any tree on them, with a price for every leaf. What is proved
of a set holds however it was reached, so a table keeps it under the set's name: the sum of two random 64-bit keys of
its rows.

What is summed up over the rows of a set, side by side for every row (padded to whole vectors of eight):

    losses       of actions 1, 2, ... less that of action 0 (n_losses of them)
    floor        the least loss of every row
    worst        the largest
    regrets      of each action k: what rows whose best action is k lose without it (only with three actions and more)
    count        of distinct rows
    keys         two

A code of a feature that most rows have is not added up: its sums are what the others leave of the total.

Symbols: a *split* is a place (f, t) as in layout.py; S places; Q sums; side 0 has the rows of code <= t.
"""

from typing import NamedTuple

import numpy as np
from numba import from_dtype, types

from policytree.solvers.kernels.layout import codes_2d, i8, int_1d, int_2d, long_1d, long_2d, long_3d

UNSPLIT = -1  # best split of a set: it is a leaf
# Counters: sets entered, rows summed up, sets in the table.
ENTERED, SUMMED, KEPT = 0, 1, 2

#: What is known of a set: ``low`` <= V <= ``up``, and the first split of a tree that costs ``up`` at most.
KNOWN = np.dtype([("key1", np.int64), ("key2", np.int64), ("low", np.int64), ("up", np.int64), ("split", np.int64)])

known_1d = types.Array(from_dtype(KNOWN), 1, "C")


class RowSetProblem(NamedTuple):
    """The rows of a problem, and what a leaf costs."""

    codes: codes_2d  # (features, rows)
    offset: long_1d  # where each feature's places begin, and the end of the last
    feature: int_1d  # of every place
    common: long_1d  # place of the code of every feature that most rows have
    numbers: long_2d  # (rows, Q): what is summed up
    start: long_1d  # places that row i adds to: items[start[i] : start[i + 1]]
    items: int_1d
    n_sums: i8  # of a row: Q without what pads it
    n_losses: i8
    penalty: i8


class Path(NamedTuple):
    """One level for every set on the path from the root."""

    index: int_2d  # its rows
    places: int_2d  # splits that may be of use in it
    scalars: long_2d  # see the names below
    low: long_3d  # (levels, 2, S): bounds of the sides of every split
    up: long_3d
    worst: long_3d  # sums of the sides
    floor: long_3d
    key1: long_3d
    key2: long_3d


# Names of a level's scalars.
N_ROWS, N_PLACES, BUDGET, BEST, SPLIT, LEAST, TOTAL_WORST, PLACE, SIDE, SET_KEY1, SET_KEY2 = range(11)
N_SCALARS = 11


class SumScratch(NamedTuple):
    """Sums of one set: by place, cumulated, and in total."""

    sums: long_2d  # (S, Q)
    total: long_2d  # (1, Q)
    part: long_2d  # (2, Q): of both sides of a split
