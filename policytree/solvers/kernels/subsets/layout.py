"""Proofs without a depth limit: the words and tuples of the subset search.

The value V(R) of a set of rows R is the least cost of any tree on them, with a price for every leaf. Proofs about a
set hold however it was reached, so a table keeps them under the set's name of 128 bits (see table.py).

Sums over the rows of a set:

    losses       of actions 1, 2, ... less that of action 0 (n_losses of them)
    floor        the least loss of every row
    worst        the largest
    regrets      of each action k: what rows whose best action is k lose without it (only with three actions and more)
    minima       counted rows that a leaf must have (n_minima of them)
    charges      what rows pay for a split of each price (only if splits cost something)
    worth        what any tree on the rows costs at least, less ``beyond`` (only where that is known: row duals)
    count        of rows

A set is kept in one of two ways: as a list of rows (``index_sets.py``: any losses), or as bits, in which rows of equal
losses stand side by side and are counted (``bit_sets.py``: few different losses).

Symbols: a *split* is a column j, a feature and a cut; S columns; Q sums; side 0 has the rows of code <= cut, side 1 the
others.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import types

from policytree.solvers.kernels.base.layout import codes_2d, i8, int_1d, int_2d, long_1d, long_2d, long_3d
from policytree.solvers.kernels.compiling import OneOf
from policytree.solvers.kernels.conflicts.layout import Conflicts
from policytree.solvers.kernels.subsets.table import known_1d

UNSPLIT = -1  # instead of a set's best split: it is a leaf
INTERVALS = -2  # INTERVALS - f: the best intervals of feature f, which is the last one that parts it
# Counters: sets entered, rows summed up, sets in the table; whether the path was too short to go on; and sets that only
# conflict pairs closed.
ENTERED, SUMMED, KEPT, STUCK, CLOSED = 0, 1, 2, 3, 4
N_COUNTERS = 5

if TYPE_CHECKING:  # what Python hands over for them
    words_1d = np.ndarray
    words_2d = np.ndarray
    bytes_1d = np.ndarray
    bytes_2d = np.ndarray
else:
    words_1d, words_2d = types.uint64[::1], types.uint64[:, ::1]
    bytes_1d, bytes_2d = types.uint8[::1], types.uint8[:, ::1]


class SetRules(NamedTuple):
    """Constraints and prices of trees, the places of the sums that these read, and the S columns.

    The Q sums of a set of rows are its losses, its minima, the charges for splits, the least cost of trees beyond the
    worth of the rows, and the number of rows.
    """

    n_losses: i8
    n_minima: i8
    charges: i8  # place of the first charge; 0 if splits are free
    n_sums: i8  # Q; the number of rows is the last sum
    beyond: i8  # place of the least cost beyond the rows' worth; -1 if there is none
    penalty: i8  # of a leaf
    minima: long_1d  # (n_minima,): least sums of a leaf
    groups: long_1d  # (S,): which of the charges a split on each column pays
    at_root: long_1d  # (S,): 1 where the first split may be
    root_is_bound: i8  # 1 if the first split may not be on every column
    feature: int_1d  # (S,)
    cut: int_1d  # (S,)


class RowLists(NamedTuple):
    """A set of every level as a list of rows."""

    codes: codes_2d  # (features, rows)
    offset: long_1d  # where each feature's codes begin, and the end of the last
    common: long_1d  # place of the code of every feature that most rows have
    first: long_1d  # the first column of every feature, and the end of the last
    numbers: long_2d  # (rows, sums and two keys, padded): what is summed up
    start: long_1d  # places of codes that row i adds to: items[start[i] : start[i + 1]]
    items: int_1d
    sums: long_2d  # of a set by code, cumulated (codes, as numbers)
    all_sums: long_2d  # (1, as numbers): of the whole set
    on_start: long_1d  # columns on whose side 1 row i is: on_items[on_start[i] : on_start[i + 1]]
    on_items: int_1d
    on_masks: bytes_2d  # (rows, width / 8): the same as bits
    pair_work: i8  # vectors that a row adds to sums of pairs, about
    pairs: long_3d  # (S, Q, width): sums of the rows on side 1 of two columns; empty if they would be too large
    index: int_2d  # (levels, rows)


class BitSets(NamedTuple):
    """A set of every level as bits: only the words that are not zero, and where they stand."""

    bits: words_2d  # (words, width): side 1 of every column
    values: long_2d  # (parts, Q): what one bit of a part adds to every sum
    keys: words_2d  # (words, 8): what names are made of
    own: long_1d  # the four sums that name the set itself
    value: words_2d  # (levels, words)
    where: int_2d
    part: long_2d  # (levels, parts + 1): the words of each part
    live: words_1d  # (words * width): the set's words within side 1 of its live columns


Lists = OneOf({"lists": RowLists, "bits": types.none})
Bits = OneOf({"lists": types.none, "bits": BitSets})


class Path(NamedTuple):
    """One level for every set on the path from the root. ``width`` is S padded to whole vectors."""

    places: int_2d  # columns that may be of use in it
    scalars: long_2d  # see the names below
    cost: long_2d  # (levels, width): of every split itself
    low: long_3d  # (levels, 2, width): bounds of the sides of every split
    up: long_3d
    worst: long_3d  # sums of the sides
    floor: long_3d
    key1: long_3d
    key2: long_3d


# Names of a level's scalars.
N_ROWS, N_PLACES, CUTOFF, BEST, SPLIT, LEAST, TOTAL_WORST, PLACE, SIDE, SET_KEY1, SET_KEY2 = range(11)
N_SCALARS = 11


class SetScratch(NamedTuple):
    """Numbers of the set that is entered."""

    total: long_1d  # (Q,)
    on: long_2d  # (Q, width): sums of side 1 of every column
    useful: long_2d  # (2, width): whether a leaf on a side may pay
    live_on: long_2d  # (Q, width): as ``on``, of the live columns; zero elsewhere
    live_mask: bytes_1d  # (width / 8): live columns as bits
    open_mask: bytes_1d  # (width / 8): of these, the open ones
    order: long_1d  # (width): the live columns, those that are open last
    pair: long_2d  # (Q, 8): sums of the rows on side 1 of two columns
    pair_low: long_2d  # (2, width): of each side of a live column, bounds from its own splits
    pair_up: long_2d


class SearchState(NamedTuple):
    """State of a search."""

    rules: SetRules
    path: Path
    table: known_1d
    scratch: SetScratch
    conflicts: Conflicts
