"""The table of subsets of rows, which holds what was proved of each under its name, and the choice of a split.

Open addressing with a number of places that is a power of two; nothing is ever forgotten, so that a proof stands on
what was proved. Names have 128 bits (see index_sets.py and bit_sets.py): two sets among a million share one with
probability 1e-27, whatever the data. Costs are int64, or float64 in the search over trees that are judged by their
leaf statistics.

Both searches bound the sides of every split: arrays (2, splits), ``low`` of lower bounds, ``up`` of what known trees
cost. They descend into the side with the wider gap of the split whose sides' bounds have the least sum.

Cost: one or two places for a set; one pass over the splits to choose one. Symbols: see layout.py.
"""

from typing import TYPE_CHECKING

import numpy as np
from numba import from_dtype, types

from policytree.solvers.kernels.base.layout import i8
from policytree.solvers.kernels.compiling import OneOf, kernel

FULL = 7  # tenths of the places that may be taken


def _entries(cost) -> np.dtype:
    """Make the type of a set's entry: name, ``low`` <= least cost <= ``up``, and how a tree of cost ``up`` begins."""
    return np.dtype([("key1", np.int64), ("key2", np.int64), ("low", cost), ("up", cost), ("split", np.int64)])


KNOWN, KNOWN_REAL = _entries(np.int64), _entries(np.float64)

if TYPE_CHECKING:  # what Python hands over for them
    known_1d = np.ndarray
    known_real_1d = np.ndarray
else:
    known_1d, known_real_1d = (types.Array(from_dtype(entries), 1, "C") for entries in (KNOWN, KNOWN_REAL))


@kernel(takes=(OneOf({"": known_1d, "real": known_real_1d}), i8, i8), borrows=True)
def place_of(table, key1, key2):
    """Where a set stands in the table, or the empty place where it would."""
    # Two zeros as keys mark an empty place. Entries are never removed, so a search may end at the first empty place.
    mask = len(table) - 1
    h = (key1 ^ (key1 >> 29)) & mask
    while (table[h].key1 != 0 or table[h].key2 != 0) and (table[h].key1 != key1 or table[h].key2 != key2):
        h = (h + 1) & mask
    return h


@kernel(inline="always")
def is_known(known):
    """Whether a place of the table is taken."""
    return known.key1 != 0 or known.key2 != 0


@kernel(inline="always")
def is_full(table, kept):
    """Whether a table that holds so many sets should take no more, since searches for places become long."""
    return 10 * kept > FULL * len(table)


@kernel(takes=(known_1d, known_1d), borrows=True)
def copy_table(old, new):
    """Copy all entries to a larger table."""
    for entry in old:
        if is_known(entry):
            to = new[place_of(new, entry.key1, entry.key2)]
            to.key1 = entry.key1
            to.key2 = entry.key2
            to.low = entry.low
            to.up = entry.up
            to.split = entry.split


@kernel(borrows=True)
def keep(table, key1, key2, low, up, split, takes_new):
    """Note what was proved of a set, a new one if the table takes it; returns how many sets were added."""
    known = table[place_of(table, key1, key2)]
    if is_known(known):
        known.low = max(known.low, low)
        if up < known.up:
            known.up = up
            known.split = split
        return 0
    if not takes_new:
        return 0
    known.key1 = key1
    known.key2 = key2
    known.low = low
    known.up = up
    known.split = split
    return 1


@kernel(borrows=True)
def tighten(low, up, side, t, bound, best):
    """Take over a bound of one side of a split, and what a tree on it costs: ``low`` never passes ``up``."""
    up[side, t] = min(up[side, t], best)
    low[side, t] = min(up[side, t], max(low[side, t], bound))


@kernel(borrows=True)
def least_two(splits, n, low, cost, never):
    """The least and the second least sum of both sides' bounds (``never`` without one), and the split of the least.

    ``cost`` holds what every split costs itself, or is None.
    """
    one, two, best = never, never, -1
    for j in range(n):
        t = splits[j]
        v = low[0, t] + low[1, t]
        if cost is not None:
            v += cost[t]
        if v < one:
            two = one
            one = v
            best = t
        elif v < two:
            two = v
    return one, two, best


@kernel(inline="always")
def wider_side(low, up, t):
    """The side of a split of which less is known."""
    return 0 if up[0, t] - low[0, t] >= up[1, t] - low[1, t] else 1
