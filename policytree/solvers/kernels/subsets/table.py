"""The table of subsets of rows: what was proved of each, under its name.

Open addressing with a number of places that is a power of two; nothing is ever forgotten, so that a proof stands on
what was proved. Names have 128 bits (see index_sets.py and bit_sets.py): two sets among a million share one with
probability 1e-27, whatever the data.

Cost: one or two looks for a set.
Symbols: see layout.py.
"""

from policytree.solvers.kernels.base.layout import i8
from policytree.solvers.kernels.compiling import kernel
from policytree.solvers.kernels.subsets.layout import known_1d


@kernel(takes=(known_1d, i8, i8), borrows=True)
def place_of(table, key1, key2):
    """Where a set stands in the table, or the empty place where it would."""
    mask = len(table) - 1
    h = (key1 ^ (key1 >> 29)) & mask
    while (table[h].key1 != 0 or table[h].key2 != 0) and (table[h].key1 != key1 or table[h].key2 != key2):
        h = (h + 1) & mask
    return h


@kernel(takes=(known_1d, known_1d), borrows=True)
def copy_table(old, new):
    """Copy all entries to a larger table."""
    for entry in old:
        if entry.key1 != 0 or entry.key2 != 0:
            to = new[place_of(new, entry.key1, entry.key2)]
            to.key1 = entry.key1
            to.key2 = entry.key2
            to.low = entry.low
            to.up = entry.up
            to.split = entry.split
