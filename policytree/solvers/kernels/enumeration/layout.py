"""Trees judged by several sums at once: the tuples that travel together.

Every tree has a vector of int64: first its *bound*, one number that says whether the tree can still be of use, then its
criteria, which are compared with other trees' (a loss, a spend, a share, false positives, the number of leaves, ...).
Each of them is a sum over the rows of what the leaf's action costs, plus something for every leaf, plus what rows pay
for the splits that they reach (as in base/layout.py): one criterion is like the other, and the bound like them.

    planes:   bound of action 1, 2, ... | criterion 1 of action 1, 2, ... | ... | counted rows | charges

Losses are relative to action 0, and charges (J for the bound, then J for every criterion) are what rows pay for a split
of each price, as in base/layout.py.

A tree of depth d is kept as a row of numbers: feature, cut, the left tree, the right tree; a tree of depth 0 is its
action. A leaf instead of a tree has feature -1 and itself on both sides.

    depth 1: 4 numbers          depth 2: 10 numbers         depth 3: 22 numbers

Symbols: A actions less one, V the bound and the criteria, R numbers of a tree, J different prices of splits.
"""

from typing import NamedTuple

from policytree.solvers.kernels.base.layout import codes_2d, i8, int_2d, long_1d, long_2d

STUMP, TWO_LEVELS, THREE_LEVELS = 4, 10, 22  # numbers that keep a tree


class Criteria(NamedTuple):
    """Rows, and what trees of them are judged by."""

    codes: codes_2d  # (features, rows)
    planes: long_2d  # (V * A + counts + V * J, rows)
    bins: long_1d  # codes of each feature
    n_losses: i8  # A
    minima: long_1d  # what each counted plane must come to in every leaf
    leaf: long_1d  # (V,): what a leaf adds
    prices: i8  # J
    groups: long_1d  # which of the prices a split on a feature has
    n: i8


class Points(NamedTuple):
    """Trees and their vectors; arrays are longer than what is in use."""

    values: long_2d  # (capacity, V)
    trees: int_2d  # (capacity, R)


class Wanted(NamedTuple):
    """Limits of the trees that are of use.

    ``caps`` holds the largest bound and criteria. With ``shift >= 0`` the tree with the least first criterion is all
    that is wanted: the caps of the criterion and of the bound, of which one counts ``2**shift`` of the criterion, fall
    with every tree found. Trees within the other caps need to be within the bound's, too. With -1 all are wanted.
    """

    caps: long_1d  # (V,)
    shift: i8
